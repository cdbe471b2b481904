"""The FateStones project's table, recounted and replayed with its search; and searches that find what that one misses.

Source of its search
    The project's `gameSimulator.py` (GameAISchool2025members/FateStones, commit 5de8e6c), which passes its positions to
    L. H. Miles's minimal MCTS (the gist that the project's README names). Reimplemented from their behaviour.

Behaviour of its search, which does not find the best die
    A position becomes a tree with three kinds of nodes in turn: dice in hand, a pair of dice chosen, a pair of faces rolled.
    After a tie the tree continues with the dice that are left. Four traits keep it from finding the best die:

    - The searcher chooses both dice of a pair, and plays its own die of the pair with the best mean reward.
    - A face that a die has several times counts once: 144444 rolls 1 half of the time.
    - The tree chooses the rolls too, by UCB1, as if a player chose them.
    - The reward r becomes 1 − r at each level, rolls included. So the rolls are an opponent's choice; after one tie, three
      levels further down, wins count as losses, and after two ties as wins again.

    Each simulation expands one node: the first one the root, the next nine one pair each of three dice against three. So
    MCTS(10) sees each pair once.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from dice_envs import Agent, configure
from dice_envs.agent import KernelAgent, Promises
from dice_envs.agent.kernel import AgentKernel
from dice_envs.agent.matches import MOST_GAMES
from dice_envs.agent.specs import make_agent
from dice_envs.agents.base import Checked, Deterministic, OfOneGame
from dice_envs.agents.mcts import MCTS
from dice_envs.agents.mcts.tree import SALT, Selection, choose_by_ucb, count_visit, keep_visits
from dice_envs.core.dice import below, derived_seeds, mix
from dice_envs.core.game import Variant
from dice_envs.core.kernel import kernel
from dice_envs.core.options import Range, check_range
from dice_envs.core.work import advance
from dice_envs.exact.intervals import Z95, share_half_width
from dice_envs.experiments import ui
from dice_envs.experiments.arena import play_table
from dice_envs.experiments.jobs import Workers, resumable
from dice_envs.experiments.reproduce import Chapter, Finding, chapter_of, print_rows
from dice_envs.experiments.ui.pages import logarithmic, saved_plot
from dice_envs.games.fatestones import CODES, COUNTS, NUM_FACES
from dice_envs.games.fatestones.exact import evaluate, first_choices
from dice_envs.games.fatestones.exact.draws import MOST_DRAWS, circles, draw_hands, margins, solve_draws
from dice_envs.games.fatestones.log import Log, Writer, read_log

SOURCE = "FateStones README, Results"
# The source's table, player 1's wins, losses and ties over 10,000 games.
PUBLISHED = {
    "random v random": (4913, 5031, 2033),
    "MCTS(10) v random": (4951, 5006, 2025),
    "MCTS(50) v random": (4910, 5061, 1959),
    "MCTS(10) v MCTS(10)": (5025, 4940, 1969),
}

RULES = {  # the curves: label → agent; {} is its number of simulations
    "the source's search": "project:{}",
    "UCT that picks both dice": "joint:{}",
    "mcts, decoupled UCT": "mcts:{},select=uct",
    "mcts, decoupled UCT, mixed": "mcts:{},select=uct,final=mixed",
    "mcts, regret matching": "mcts:{},select=regret",
    "mcts, regret matching, rolls averaged": "mcts:{},select=regret,expect=true",
}
SIZES = (10, 50, 200, 1000, 10_000, 100_000)  # numbers of simulations
LEAST_DRAWS = 20  # on which a search is measured
MOST_FOR_OWN = 50_000  # draws for the source's search: its share is small, so it takes many to measure
PROJECT = (10, 50, 1000)  # simulations with which the source's search is measured: the published numbers, and many more
# Settings of searches that know that their opponent plays at random, and their numbers of simulations.
AGAINST_RANDOM = {"opponent=random": (50, 1000, 100_000), "opponent=random,expect=true": (50,)}


def main(
    log: Annotated[list[Path] | None, typer.Option(help="Recount a log in the source's format; repeat it for more.")] = None,
    games: ui.GamesOption = 100_000,
    draws: Annotated[int, ui.count_option(help="Sampled draws for the exact values.")] = 100_000,
    work: Annotated[float, typer.Option(help="Simulation budget per point of each curve, in millions.")] = 10.0,
    most: Annotated[int, ui.count_option(help="Most simulations a move in the curves.")] = 10_000,
    seed: ui.SeedOption = None,
    json: ui.JsonOption = None,
    report: ui.ReportOption = None,
    ray: ui.RayOption = None,
    resume: ui.ResumeOption = False,
) -> Chapter:
    """FateStones: the source's table, how much can be won, why its search won nothing, and a search that wins.

    Example: reproduce fatestones --log mcts10_vs_random.csv --report report
    """
    check_range("games", games, 1, MOST_GAMES)
    check_range("draws", draws, 2, MOST_DRAWS)
    check_range("work", work, 1e-6, 1e6, whole=False)
    check_range("most", most, 10, 100_000)
    logs = {path: read_log(path) for path in log or []}
    what = {"source": "fatestones", "games": games, "draws": draws, "work": work, "most": most}
    with resumable(json, resume, what, seed, ray) as (seed, workers):
        ui.console.print(f"seed {seed}")
        variant = configure("fatestones")
        rows: list[Finding] = []
        for path, rolls in logs.items():
            rows += _recount(path, rolls)
        recounted = {name: log.edge_share() for log in logs.values() for name in _names_of(log)}
        rows += _replay(games, recounted, seed, workers)
        print_rows("The source's table", rows)

        hands = draw_hands(variant, draws, seed)
        exact = solve_draws(hands)
        best, error = exact.best_response, exact.best_response_error
        values = [
            Finding("exact play", "best response to random, margin a draw", None, best, error),
            Finding("exact play", "Nash against random, margin a draw", None, exact.nash, exact.nash_error),
            Finding("exact play", "most left to be won from Nash, any draw", None, f"{exact.gap:.1e}", exact.gap),
        ]
        for spec in ("random", "best_response:random", "nash"):
            values += _measure(variant, spec, hands[:2000], seed)
        values += _open_question()
        searches = _captures(hands, work, seed, workers)
        values += searches
        print_rows("How much can be won from a random player (wins − losses a draw)", values, digits=5)
        _explain(best, searches[: len(PROJECT)], games)

        curves = _curves(hands, most, work, seed, workers)
        data = {"seed": seed, "rows": rows + values, "curves": curves}
        title = "FateStones: the project's README, and what can be won"
        return chapter_of(title, data, json, report, lambda folder: _draw(folder, curves))


def _open_question() -> list[Finding]:
    """Answer the source's open question, a measure by which 111111 is the worst of all 462 dice and 666666 the best: the
    mean margin."""
    everyone = np.arange(len(CODES))
    mean = margins(everyone).mean(axis=1)
    found = circles(configure("fatestones").params.bag)
    rows = []
    for what, wanted, die in (("worst", 111111, int(mean.argmin())), ("best", 666666, int(mean.argmax()))):
        note = f"mean margin {mean[die]:+.4f} against a random one of the 462"
        rows.append(Finding("dice", f"{what} die of all 462", wanted, CODES[die], 0.0, CODES[die] == wanted, note))
    strongest = " > ".join(str(CODES[die]) for die in (*found[0].dice, found[0].dice[0]))
    note = f"the strongest: {strongest}, each by {found[0].least:.4f} or more"
    return [*rows, Finding("dice", "circles of three among the fair dice", None, len(found), 0.0, note=note)]


def _measure(variant: Variant, spec: str, hands: np.ndarray, seed: int) -> list[Finding]:
    """Measure an agent that states its probabilities exactly on draws."""
    result = evaluate(variant, make_agent(spec), hands, seed)
    figures = (
        ("share of the edge", result.edge_share()),
        ("margin against random", result.margin()),
        ("exploitability", result.exploitability()),
    )
    note = f"{len(hands):,} draws"
    return [Finding("exact play", f"{spec}: {figure}", None, *ours, note=note) for figure, ours in figures]


def _explain(edge: float, own: Sequence[Finding], games: int) -> None:
    """Print why the source's search won nothing, and why its games could hardly have shown it."""
    shares = ", ".join(f"{row.ours:+.3f} ± {row.error:.3f} ({size:,})" for size, row in zip(PROJECT, own, strict=True))
    lines = [
        f"The best response wins {100 * edge:.1f} games in a hundred more than it loses, so at best {50 + 50 * edge:.1f} % of",
        "decided games. The source's search takes none of that edge, however long it searches. Of the edge it takes, by",
        f"simulations: {shares}. Its simulator, read and rewritten here:",
        "- gives each different face of a die the same chance, so 144444 is a fair coin of 1 and 4;",
        "- lets the tree choose the rolls, as if they were moves;",
        "- reverses the reward at each level, rolls included: an opponent picks them, and after a tie a win is a loss;",
        "- picks the opponent's die too, and plays its own die of the pair that did best on average. With 10 simulations",
        "  each pair of three dice against three has been tried once.",
        "With the game's own odds and no reversal, a search that picks both dice takes some of the edge; see the curves.",
        f"The least margin that 10,000 games can tell from 0 is {100 * Z95 / 100:.1f} in a hundred, half of the whole edge;",
        f"that of {games:,} games is {100 * Z95 / math.sqrt(games):.2f}.",
    ]
    ui.console.print("\n".join(lines))


# --- the source's table ----------------------------------------------------------------------------------------------


def _names_of(log: Log) -> list[str]:
    """Return the published columns that a log's wins, losses and ties equal: one or none."""
    return [name for name, published in PUBLISHED.items() if published == log.record()]


def _recount(path: Path, log: Log) -> list[Finding]:
    """Return a log's wins, losses and ties, beside the published column that they equal, if any; and its edge."""
    counts, names = log.record(), _names_of(log)
    published = PUBLISHED[names[0]] if names else (None, None, None)
    label = names[0] if names else path.name
    rows = []
    for what, known, count in zip(("wins", "losses", "ties"), published, counts, strict=True):
        agrees = None if known is None else known == count
        rows.append(Finding(SOURCE, f"{label}: {what}", known, count, 0.0, agrees, f"recount of {path.name}"))
    for player in range(2):
        share, error = log.edge_share(player)
        rows.append(Finding(SOURCE, f"{label}: share of the edge, player {player + 1}", None, share, error))
    return rows


def _played_again(games: int, specs: Sequence[str], seed: int) -> list[float]:
    """Play a pair; return its wins, losses and ties, its share of the edge and that share's error."""
    variant = configure("fatestones")
    writer = Writer(variant)
    play_table(variant, [agent_of(spec) for spec in specs], games, seed, after_move=writer.after_move)
    log = writer.log()
    return [*log.record(), *log.edge_share()]


def _replay(games: int, recounted: dict[str, tuple[float, float]], seed: int, workers: Workers) -> list[Finding]:
    """Play the source's pairs again; return player 1's shares of decided games and of the edge, and the share of ties."""
    rows = []
    # The source's MCTS(10) is the search below, project:10.
    pairs = [[name.replace("MCTS(", "project:").rstrip(")") for name in label.split(" v ")] for label in PUBLISHED]
    parts = [*zip(pairs, derived_seeds(seed, "pairs", len(pairs)), strict=True)]
    with ui.progress("the source's pairs, games", len(parts) * games):
        played = workers.run(_played_again, (games,), parts, [games] * len(parts))
    for (label, counts), specs, (wins, losses, ties, share, error) in zip(PUBLISHED.items(), pairs, played, strict=True):
        for what, part, whole, known, known_whole in (
            ("% of decided games", wins, wins + losses, counts[0], sum(counts[:2])),
            ("% of rolls tied", ties, wins + losses + ties, counts[2], sum(counts)),
        ):
            ours, published = part / whole, known / known_whole
            half, known_error = share_half_width(ours, whole), share_half_width(published, known_whole)
            note = f"{games:,} games; the published figure is itself ± {100 * known_error:.2f}"
            agrees = abs(ours - published) <= math.hypot(half, known_error)
            rows.append(Finding(SOURCE, f"{label}: {what}", 100 * published, 100 * ours, 100 * half, agrees, note))
        published_share, published_error = recounted.get(label, (None, 0.0))
        agrees = None if published_share is None else abs(share - published_share) <= math.hypot(error, published_error)
        note = " v ".join(specs)
        if published_share is not None:
            note += f"; the recounted log's is itself ± {published_error:.3f}"
        rows.append(Finding(SOURCE, f"{label}: share of the edge, player 1", published_share, share, error, agrees, note))
    return rows


# --- searches measured -----------------------------------------------------------------------------------------------


def agent_of(spec: str) -> Agent:
    """Return the agent of a spec; `project:N` and `joint:N` are searches of this package with N simulations."""
    name, _, simulations = spec.partition(":")
    return SEARCHES[name](int(simulations)) if name in SEARCHES else make_agent(spec)


def _affordable(hands: np.ndarray, searches: int, simulations: int, work: float, most: int = 2000) -> np.ndarray:
    """Return the draws that `work` million simulations allow, from LEAST_DRAWS to `most` of them."""
    return hands[: max(LEAST_DRAWS, min(most, int(work * 1e6 / (searches * simulations))))]


def _captured(seed: int, spec: str, hands: np.ndarray) -> list[float]:
    """Return the share of the edge against random that a search's first choices capture, and its error."""
    found = first_choices(configure("fatestones"), agent_of(spec), hands, seed)
    advance()
    return list(found)


def _captures(hands: np.ndarray, work: float, seed: int, workers: Workers) -> list[Finding]:
    """Return the share of the edge against random that searches capture: the source's on a larger sample of draws."""
    own = draw_hands(configure("fatestones"), MOST_FOR_OWN, *derived_seeds(seed, "own search"))
    parts = [(f"project:{size}", _affordable(own, 2, size, work, most=MOST_FOR_OWN)) for size in PROJECT]
    for settings, sizes in AGAINST_RANDOM.items():
        parts += [(f"mcts:{size},{settings}", _affordable(hands, 2, size, work)) for size in sizes]
    with ui.progress("searches against random", len(parts)):
        found = workers.run(_captured, (seed,), parts)
    rows = []
    for (spec, some), (share, error) in zip(parts, found, strict=True):
        whose = "the source's search; " if spec.startswith("project:") else ""
        note = f"{whose}{len(some):,} draws"
        words = spec.replace(",", ", ")  # which a narrow terminal can break there
        rows.append(Finding("search", f"{words}: share of the edge", None, share, error, note=note))
    return rows


def _evaluated(seed: int, spec: str, hands: np.ndarray) -> dict[str, float]:
    """Return a search's share of the edge and its exploitability, each with its error."""
    result = evaluate(configure("fatestones"), agent_of(spec), hands, seed)
    advance()
    (share, share_error), (lost, lost_error) = result.edge_share(), result.exploitability()
    return {"edge_share": share, "edge_share_ci95": share_error, "exploitability": lost, "exploitability_ci95": lost_error}


def _curves(hands: np.ndarray, most: int, work: float, seed: int, workers: Workers) -> list[dict[str, Any]]:
    """Return the share of the edge and the exploitability by simulations for each selection rule, and print them."""
    points, rows = [], []
    places = [(label, size) for label in RULES for size in SIZES if size <= most]
    parts = [(RULES[label].format(size), _affordable(hands, 38, size, work)) for label, size in places]
    with ui.progress("points of curves", len(parts)):
        found = workers.run(_evaluated, (seed,), parts)
    for (label, size), (_, some), figures in zip(places, parts, found, strict=True):
        points.append({"game": "fatestones", "rule": label, "simulations": size, "draws": len(some), **figures})
        share, share_error, lost, lost_error = figures.values()
        note = f"{len(some):,} draws"
        rows.append(Finding("search", f"{label}, {size:,}: share of the edge", None, share, share_error, note=note))
        rows.append(Finding("search", f"{label}, {size:,}: exploitability", None, lost, lost_error))
    print_rows("How well search plays against anyone (exploitability: upper bound, a draw)", rows)
    return points


# --- plots -----------------------------------------------------------------------------------------------------------


def _draw(report: Path, points: list[dict[str, Any]]) -> None:
    """Save the plots of the curves."""
    for quantity, label, title in (
        ("edge_share", "share of the edge", "FateStones: share of the edge against random play that search captures"),
        ("exploitability", "exploitability", "FateStones: what a best response wins from search, a draw"),
    ):
        caption = f"{title}, by simulations a move and rule of selection; bars are 95 % intervals, none over ± half the edge."
        with saved_plot(report, f"fatestones_{quantity}", caption, figsize=(10, 5)) as (_, axes):
            for rule in RULES:
                mine = [
                    point for point in points if point["rule"] == rule and point["edge_share_ci95"] < 0.5
                ]  # others say nothing
                line = [[point[name] for point in mine] for name in ("simulations", quantity, f"{quantity}_ci95")]
                axes.errorbar(*line, capsize=3, label=rule)
            logarithmic(axes, "x")
            axes.set(xlabel="simulations a move", ylabel=label)
            axes.set_title(title, fontsize=12)
            axes.grid(alpha=0.3)
            axes.axhline(0, color="grey", linewidth=0.8)
            axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))


# --- the searches ----------------------------------------------------------------------------------------------------

HAND = 3  # dice of the source's hands
# A node's number: (own dice left, the other's, as bits), then 0 or 1 + the pair chosen, then 0 or 1 + the faces rolled.
_ROLLS = 1 + NUM_FACES * NUM_FACES
_A_POSITION = (1 + HAND * HAND) * _ROLLS
_NODES = (1 << 2 * HAND) * _A_POSITION
_MOST_CHILDREN = NUM_FACES * NUM_FACES
_MOST_DEPTH = 3 * HAND + 1  # three levels a roll, and the position in which no dice are left


@kernel(allocates=False)
def _children(dice, node, out):
    """Write the node's children into `out` (_MOST_CHILDREN,) and return their number, 0 for a terminal node. In place.

    `dice` (2, HAND) are rows of FACES, the searcher's first.
    """
    position, pair, roll = node // _A_POSITION, node % _A_POSITION // _ROLLS, node % _ROLLS
    own, other = position >> HAND, position % (1 << HAND)
    count = 0
    if pair == 0:
        for i in range(HAND):
            for j in range(HAND):
                if own >> i & 1 and other >> j & 1:
                    out[count] = node + (1 + i * HAND + j) * _ROLLS
                    count += 1
        return count
    i, j = (pair - 1) // HAND, (pair - 1) % HAND
    if roll == 0:
        for mine in range(NUM_FACES):
            for theirs in range(NUM_FACES):
                if COUNTS[dice[0, i], mine] > 0 and COUNTS[dice[1, j], theirs] > 0:
                    out[count] = node + 1 + mine * NUM_FACES + theirs
                    count += 1
    elif (roll - 1) // NUM_FACES == (roll - 1) % NUM_FACES:
        out[0] = ((own ^ (1 << i)) << HAND | (other ^ (1 << j))) * _A_POSITION
        count = 1
    return count


@kernel(allocates=False)
def _reward(node):
    """Return a terminal node's reward to the searcher: 1 for a higher roll, 0 for a lower one, 0.5 when no dice are left."""
    roll = node % _ROLLS
    if roll == 0:
        return 0.5
    return 1.0 if (roll - 1) // NUM_FACES > (roll - 1) % NUM_FACES else 0.0


@kernel(allocates=False)
def _pick(children, count, parent, visits, totals, explores, stream):
    """Return a random one of the children with the highest mean reward; unvisited ones come last.

    If it explores, a random unvisited child; if there is none, a random one with the highest UCB1 (constant 1).
    """
    chosen = children[0]
    fresh = 0
    for k in range(count if explores else 0):
        if visits[children[k]] == 0:
            fresh += 1
            if below(stream, fresh) == 0:
                chosen = children[k]
    if fresh > 0:
        return chosen
    best = -1.0
    equal = 0
    for k in range(count):
        child = children[k]
        value = totals[child] / visits[child] if visits[child] > 0 else -0.5  # below every mean reward
        if explores:
            value += math.sqrt(math.log(visits[parent]) / visits[child])
        equal = 1 if value > best else equal + 1 if value == best else equal
        if value > best or (value == best and below(stream, equal) == 0):
            best = value
            chosen = child
    return chosen


@kernel(allocates=False)
def _simulate(dice, root, visits, totals, path, children, stream):
    """Simulate once: descend to an unvisited node, play at random from there to the end, and back up the reward. In place."""
    node = root
    depth = 0
    path[0] = root
    count = _children(dice, node, children)
    while visits[node] > 0 and count > 0:
        node = _pick(children, count, node, visits, totals, True, stream)
        depth += 1
        path[depth] = node
        count = _children(dice, node, children)
    is_turned = True
    while count > 0:
        node = children[below(stream, count)]
        is_turned = not is_turned
        count = _children(dice, node, children)
    reward = 1.0 - _reward(node) if is_turned else _reward(node)
    for level in range(depth, -1, -1):
        visits[path[level]] += 1
        totals[path[level]] += reward
        reward = 1.0 - reward


@kernel
def _choose(params, options, state, stream):
    """Return the mover's die of the pair with the highest mean reward after `options["simulations"]` simulations."""
    visits, totals = np.zeros(_NODES, np.int64), np.zeros(_NODES)
    path, children = np.empty(_MOST_DEPTH, np.int64), np.empty(_MOST_CHILDREN, np.int64)
    seat, left = np.int64(state["seat"]), np.int64(state["left"])
    dice = np.zeros((2, HAND), np.int64)
    for i in range(left):
        dice[0, i] = state["hands"][seat, i]
        dice[1, i] = state["hands"][1 - seat, i]
    root = (((1 << left) - 1) << HAND | ((1 << left) - 1)) * _A_POSITION
    for _ in range(options["simulations"]):
        _simulate(dice, root, visits, totals, path, children, stream)
    pair = _pick(children, _children(dice, root, children), root, visits, totals, False, stream)
    return (pair % _A_POSITION // _ROLLS - 1) // HAND


@dataclasses.dataclass(frozen=True)
class ProjectSearch(Checked, OfOneGame, KernelAgent, Deterministic):
    """The search of the FateStones project. Ties are broken at random; the source takes the first of a set.

    Attributes:
        simulations: for each choice, 1 to 1,000,000; the source publishes 10 and 50.
    """

    plays = "fatestones"
    promises = Promises(memoryless=True)

    simulations: Annotated[int, Range(1, 1_000_000)] = 10

    def check_variant(self, variant: Variant) -> None:
        """Raise ValueError for another game, or hands of more than three dice."""
        super().check_variant(variant)
        check_range("hand_size", variant.params.hand_size, 1, HAND)

    def kernel(self, variant: Variant) -> AgentKernel:
        """Return the search as a kernel."""
        options = np.zeros((), [("simulations", np.int64)])
        options["simulations"] = self.simulations
        return AgentKernel(_choose, options, reads_hidden=False)


@kernel(allocates=False, inline=True)
def _back_up(settings, run, tree):
    """Count each step's visit with the searcher's return, whichever seat moved. In place."""
    seat = run["searcher"]
    for d in range(run["depth"]):
        step = tree.path[d]
        count_visit(tree.edges[step["edge"]], (run["earned"][seat] - step["before"][seat]) / step["weight"])
        tree.nodes[step["node"]]["visits"] += 1


@kernel(allocates=False, inline=True)
def _note(run, action):
    """Picks are seen, so nodes depend on the path. In place."""
    run["chain"] = mix(run["chain"] + SALT * np.uint64(action + 1))


_JOINT = Selection(choose_by_ucb, _back_up, keep_visits, _note)


@dataclasses.dataclass(frozen=True)
class JointSearch(MCTS):
    """UCT whose searcher picks for all seats: the agent `mcts` with another selection. It cannot model a random opponent."""

    @property
    def selection(self) -> Selection:
        return _JOINT


SEARCHES = {"project": ProjectSearch, "joint": JointSearch}  # this package's searches, by their names in specs
