"""D. Oehm, "Liar's Dice in R" (Gradient Descending, 2018): its simulations and examples, and the answer to its question."""

from __future__ import annotations

import dataclasses
from math import comb
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from dice_envs import Batch, configure
from dice_envs.agent import Turn
from dice_envs.agent.matches import MOST_GAMES
from dice_envs.agent.specs import make_agent
from dice_envs.agents.liars_dice import Numbers, chance_most
from dice_envs.core.dice import new_streams
from dice_envs.core.options import check_range
from dice_envs.exact.contract import LEAST_PRECISION, plus_minus
from dice_envs.exact.intervals import share_half_width
from dice_envs.experiments import ui
from dice_envs.experiments.arena import play_table
from dice_envs.experiments.jobs import HERE, Workers, resumable
from dice_envs.experiments.reproduce import Chapter, Finding, chapter_of, draw_across, print_rows, printed
from dice_envs.experiments.reproduce.liars_dice.answer import draw_answer, findings, show, work_out
from dice_envs.experiments.ui.pages import ORANGE, saved_plot
from dice_envs.games.liars_dice import chance_at_least

SOURCE = "Oehm 2018, section 'Bluff or play the numbers'"
PUBLISHED_GAMES = 10_000
POSTERIOR_DRAWS, POSTERIOR_BINS = 100_000, 30  # of the article's histogram
# Wins printed by the article: the agents' bluffs → counts.
PUBLISHED = {(1.0, 0.0): (4934, 5066), (1.0, 0.75, 0.25, 0.0): (2379, 2465, 2540, 2616)}

# The program and the text differ in two ways; the last two styles have one of them each.
STYLES = {
    "its program": "preset=article",
    "its text": "preset=text",
    "text, but calls as its program": "preset=text,chance=more",
    "text, but bluffs as its program": "preset=text,bluff_faces=own",
}

EXPLANATION = (
    "Why the article saw a coin flip: its program is not the agent that its text describes. The program calls as if "
    "one more die were needed than was bid, and picks a bluffed face in proportion to the agent's own dice, so that a "
    "bluff mostly names a face it holds. The rows between show what each of the two does alone: played as the text "
    "says, the agent that always bluffs clearly loses to the one that never does. The first bid, one more than the agent "
    "holds of its best face, is the program's in all rows, because the text does not say how an agent opens."
)

WON = "bluffing"  # a table with a column for each agent
AGENT = "Oehm 2018, section 'The agent'"
RULES = "Oehm 2018, sections 'The rules' and 'Play the game'"
FACES, DICE = 6, 5
THREES, FIVES = 2, 4  # indices of faces
BID, HELD = 7, 2  # threes that are bid, and that the agent holds

MOST_DICE = 5  # of each player; more take hours to solve


def main(
    games: ui.GamesOption = 1_000_000,
    seed: ui.SeedOption = None,
    dice: Annotated[int, typer.Option(help="Dice of each player in the game that is solved, 1 to 5.")] = 5,
    precision: Annotated[float, typer.Option(help="The exploitability of the solution, for returns of ±1.")] = 1e-3,
    json: ui.JsonOption = None,
    report: ui.ReportOption = None,
    ray: ui.RayOption = None,
    resume: ui.ResumeOption = False,
) -> Chapter:
    """Oehm's simulations with two and four players, played as his program plays and as his text says; his posterior and his
    worked examples; then the answer to his question, bluff or play the numbers, from an exact solution of the two-player game.

    Five dice take a minute or two to solve, once: solved rounds are kept and used again.

    Example: reproduce liars-dice --dice 3
    """
    check_range("games", games, 1, MOST_GAMES)
    check_range("dice", dice, 1, MOST_DICE)
    check_range("precision", precision, LEAST_PRECISION, 1, whole=False)
    what = {"source": "liars_dice", "games": games, "dice": dice, "precision": precision}
    with resumable(json, resume, what, seed, ray) as (seed, workers):
        rows = _simulate(games, seed, workers)
        rows += posterior_rows(rows)
        print_rows(f"Liar's Dice, {games:,} games each, seed {seed}", rows, digits=2)
        ui.console.print(EXPLANATION)
        examples = worked_examples()
        print_rows("The article's worked examples", examples, digits=2)
        answer = work_out(dice, precision)
        answers = findings(answer)
        show(answer, answers)

        def draw(folder: Path) -> None:
            draw_across(folder, "liars_dice", WON, "% of games won, by who plays and the agent's bluff", rows, 1)
            draw_posterior(folder, rows)
            draw_answer(folder, answers)

        title = "Liar's Dice: D. Oehm, “Liar's Dice in R” (2018), and the answer to its question"
        data = {"seed": seed, "games": games, "dice": dice, "precision": precision, "rows": rows + examples + answers}
        return chapter_of(title, data, json, report, draw)


# --- the article's two simulations, as its program plays and as its text says ----------------------------------------


def _simulate(games: int, seed: int, workers: Workers = HERE) -> list[Finding]:
    """Play both tables in every style; return the shares of wins beside the article's."""
    rows: list[Finding] = []
    with ui.progress("games", len(PUBLISHED) * len(STYLES) * games):
        for (bluffs, counts), table_seed in zip(PUBLISHED.items(), np.random.SeedSequence(seed).spawn(2), strict=True):
            variant = configure("liars_dice", num_players=len(bluffs), num_dice=6)
            for (style, parameters), style_seed in zip(STYLES.items(), table_seed.spawn(len(STYLES)), strict=True):
                players = [make_agent(f"numbers:{parameters},bluff={bluff}") for bluff in bluffs]
                wins = (play_table(variant, players, games, style_seed, workers=workers) > 0).mean(axis=0)
                for bluff, share, count in zip(bluffs, wins, counts, strict=True):
                    published = 100 * count / PUBLISHED_GAMES
                    ours, error = 100 * float(share), 100 * share_half_width(float(share), games)
                    # The article's own sampling error is much larger than ours, so both intervals count.
                    reach = (error**2 + (100 * share_half_width(count / PUBLISHED_GAMES, PUBLISHED_GAMES)) ** 2) ** 0.5
                    beside = (published, ours, error, abs(ours - published) <= reach, f"{count} of {PUBLISHED_GAMES:,}")
                    figures = beside if style == "its program" else (None, ours, error)
                    who, agent = f"{len(bluffs)} players, {style}", f"bluff {bluff:g}"
                    row = Finding(SOURCE, f"{who}: % won by {agent}", *figures)
                    rows.append(dataclasses.replace(row, cell=(WON, who, agent)))
    return rows


def _ours(rows: list[Finding]) -> tuple[float, float]:
    """Return the share, in %, of our two-player games by the article's program that bluff 0 wins, and its ±."""
    row = next(row for row in rows if row.figure == "2 players, its program: % won by bluff 0")
    assert isinstance(row.ours, float)
    return row.ours, row.error


def _posterior() -> Any:
    """Return the article's posterior of the share of games that bluff 0 wins: Beta(wins, losses)."""
    from scipy.stats import beta

    losses, wins = PUBLISHED[1.0, 0.0]
    return beta(wins, losses)


def posterior_rows(rows: list[Finding]) -> list[Finding]:
    """Return the exact figures behind the article's histogram, and where our games lie in it."""
    posterior, (share, error) = _posterior(), _ours(rows)
    low, high = 100 * posterior.ppf([0.025, 0.975])
    figures = (
        (
            "posterior of the share won by bluff 0, as the article draws it: mean, %",
            100 * posterior.mean(),
            (high - low) / 2,
            f"95 % between {low:.2f} and {high:.2f}; the article prints the picture alone",
        ),
        ("the same: % that bluff 0 wins more than half", 100 * posterior.sf(0.5), 0.0, "given the article's counts"),
        (
            "the same: % that it wins more than it wins of our games",
            100 * posterior.sf(share / 100),
            0.0,
            f"given the article's counts; our games {plus_minus(share, error)} %",
        ),
    )
    return [Finding(SOURCE, figure, None, float(value), float(reach), None, note) for figure, value, reach, note in figures]


def draw_posterior(folder: Path, rows: list[Finding]) -> None:
    """Plot the article's histogram of the win rate, and our games in it."""
    posterior, (share, error) = _posterior(), _ours(rows)
    caption = (
        f"The share of games won by the agent that never bluffs, against the one that always does: the article's histogram of "
        f"{POSTERIOR_DRAWS:,} draws, here with the numbers expected in each bar. The band is the 95 % interval of our games."
    )
    first, last = posterior.ppf([1 / POSTERIOR_DRAWS, 1 - 1 / POSTERIOR_DRAWS])
    edges = np.linspace(first, last, POSTERIOR_BINS + 1)
    expected = POSTERIOR_DRAWS * np.diff(posterior.cdf(edges))
    with saved_plot(folder, "liars_dice_posterior", caption) as (_, panel):
        widths, label = 100 * np.diff(edges), f"the article's {PUBLISHED_GAMES:,} games"
        panel.bar(100 * edges[:-1], expected, widths, align="edge", color="#89c2d9", edgecolor="#333333", label=label)
        panel.axvspan(share - error, share + error, color=ORANGE, alpha=0.7, label="our games, its program")
        panel.axvline(50, color="black", linewidth=0.8, linestyle="--", label="an even share")
        title = "Posterior of the win rate: 2 players, 6 dice"
        panel.set(xlabel="% of games won by bluff 0", ylabel=f"of {POSTERIOR_DRAWS:,} draws", title=title)
        panel.legend()


# --- its worked examples: how likely an agent calls, the effect of a known die, and the loser of a call --------------


def worked_examples() -> list[Finding]:
    """Return all examples as rows, which are exact."""
    return [*_called(), *_one_known(), *_who_loses()]


def _after_bid(dice: list[list[int]], quantity: int, face: int) -> Batch:
    """Return a first round with these dice, in which seat 0 has bid."""
    table = Batch("liars_dice", 1, seed=0, num_players=len(dice), num_dice=len(dice[0]), starter="first")
    table.variant.arrange(table.states[0], {"dice": dice})
    table.play(np.array([(quantity - 1) * FACES + face]))
    return table


def _called() -> list[Finding]:
    """Ask the agent of the text and that of the program: five players with five dice each, seven 3s bid, two in hand."""
    others = [[1] * DICE] * 3
    table = _after_bid([[1] * DICE, [THREES + 1] * HELD + [1] * (DICE - HELD), *others], BID, THREES)
    turn = Turn(table.variant, table.states, np.arange(1), new_streams(0, 1))
    text, program = (100 * float(Numbers(preset=each).probabilities(turn)[0, -1]) for each in ("text", "article"))
    figure = "25 dice, seven 3s bid, two in hand: % called"
    note = "five 3s in 20 dice or fewer: the program also calls what holds exactly"
    return [
        printed(AGENT, f"{figure}, its text", "77", text, "fewer than five 3s in 20 dice"),
        Finding(AGENT, f"{figure}, its program", None, program, 0.0, None, note),
    ]


def _one_known() -> list[Finding]:
    """Return the chance of the same bid if its bidder does not bluff: in the article's way, and in two by Bayes' rule."""
    params = configure("liars_dice", num_players=5, num_dice=DICE).params
    need, unseen = BID - HELD, DICE * (DICE - 1)

    def holds(known: int, others: int) -> float:
        """Return the chance, in %, that the bid holds given `known` 3s and `others` unknown dice."""
        return 100 * float(chance_at_least(params, params.wild, need, known, others, THREES))

    def by_bayes(likelihood: np.ndarray) -> float:
        """Return the mean chance over the bidder's number of 3s, given the likelihood of the evidence for each number."""
        prior = np.array([comb(DICE, k) * (FACES - 1.0) ** (DICE - k) for k in range(DICE + 1)])
        chances = [holds(k, unseen - DICE) for k in range(DICE + 1)]
        return float(np.average(chances, weights=prior * likelihood))

    without, known = holds(0, unseen), holds(1, unseen - 1)
    some = by_bayes(np.arange(DICE + 1) > 0)
    most = by_bayes(chance_most(FACES)[DICE, : DICE + 1])
    return [
        Finding(
            AGENT,
            "the same bid, one 3 of the bidder's known: % that four of 19 other dice show it",
            "slightly higher",
            known,
            0.0,
            known > without,
            f"{without:.2f} if none is known; the article asks for it and prints no figure",
        ),
        Finding(
            AGENT,
            "the same, the bidder has at least one 3: % that the bid holds, by Bayes' rule",
            None,
            some,
            note="less than four 3s in 19 dice: that would take a die that is known, not just that there is one",
        ),
        Finding(
            AGENT,
            "the same, the bidder has most 3s: % that the bid holds, by Bayes' rule",
            None,
            most,
            note="what a bid says of somebody who never bluffs; a tie counts as half",
        ),
    ]


def _loser(there: int, bid: int) -> str:
    """Return the player that loses a die if `bid` 5s are bid and called, and `there` are there."""
    spread = [FIVES + 1] * there + [1] * (4 * 6 - there)  # four players with six dice, as in the article
    table = _after_bid([spread[seat::4] for seat in range(4)], bid, FIVES)
    table.play(np.array([table.variant.params.call]))
    return {0: "the bidder", 1: "the caller"}[int(table.states["loser"][0])]


def _who_loses() -> list[Finding]:
    """Return the rules' sentence case by case, and the game that the article tells."""
    words, lost = {3: "three", 4: "four", 5: "five"}, {there: _loser(there, 4) for there in (3, 4, 5)}
    lost_in_game = f"backwards: in the game it tells, this is lost by {lost[3]}, and so it is in its program"
    called = "backwards as well: a bid says “at least”, and its program takes the die from the caller"
    rows = []
    for what, there, named, wrong in (
        ("the game it tells", 4, "the caller", ""),
        ("the game it tells", 3, "the bidder", ""),
        ("the rule's sentence", 3, "the caller", lost_in_game),
        ("the rule's sentence", 4, "the caller", ""),
        ("the rule's sentence", 5, "the bidder", called),
    ):
        figure, agrees = f"{what}: four 5s bid, {words[there]} there, lost by", named == lost[there]
        rows.append(Finding(RULES, figure, named, lost[there], 0.0, agrees, "" if agrees else wrong))
    return rows
