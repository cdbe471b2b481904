"""`arena`: agents against each other, every pair, or one table of N; win rates with intervals, and Elo.

`play_table` plays games at one table. `tournament` has agents meet and, on request, takes the luck out of the results of pairs;
`best_responses` says what could have been won. `results` holds and shows what agents won and earned.

Luck is what dice and choices of known probabilities did to a result; see `dice_envs.evaluation`. It is measured by the values
of an agent's choices against the other, whose probabilities must be known and fixed. If both are known, there are two kinds of
luck, and each is taken out with a coefficient from other games. No kind is chosen by its result, which would bias the mean.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import math
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from dice_envs.agent import Agent, check_plays, promises_of
from dice_envs.agent.compiled import team_of
from dice_envs.agent.matches import (
    GAMES_ASKED,
    GAMES_AT_ONCE,
    MOST_GAMES,
    Watch,
    check_match,
    pieces_of,
    play_pieces,
    remembering,
)
from dice_envs.agent.specs import lineup, resolve
from dice_envs.agents.chat import ChatMeter, logged
from dice_envs.core.dice import derived_seeds
from dice_envs.core.files import write_text
from dice_envs.core.game import MAX_SEATS, Variant, names, part_of
from dice_envs.core.options import check_range, check_seed, shown
from dice_envs.core.work import Tell, TooLong, counting, work
from dice_envs.evaluation import UNFAIR, check_games, expected_returns, independent, play_valued, scale_of, seats_of
from dice_envs.evaluation.estimate import Adjusted, adjust, is_fair, luck_of
from dice_envs.exact import GameExact, ResponseValues, measure, optima, response_values
from dice_envs.exact.contract import GAMES_WON
from dice_envs.experiments import ui
from dice_envs.experiments.arena import results
from dice_envs.experiments.jobs import HERE, Workers, resumable
from dice_envs.experiments.ui.grids import show_all

PIECES_IN_PART = 64  # so that a part of compiled games takes a tenth of a second or more
MOST_POSITIONS = 2_000_000  # at which an agent is asked for the best response to it, where nobody has asked for that
SAMPLE = 20_000  # of deals for it, where there are too many for all of them
_Ways = Sequence[ResponseValues | None]  # values of each agent's choices against the other; None: not known
_COPIES = re.compile(r"([0-9]+)\*(.+)")
LEAST_COMPARED = 100  # games of each meeting from which on a best response is looked for; with fewer, intervals are too wide


def main(
    game: ui.GameArgument,
    agents: ui.AgentsArgument,
    option: ui.OptionOption = None,
    games: ui.GamesOption = 10_000,
    seed: ui.SeedOption = None,
    json: ui.JsonOption = None,
    report: ui.ReportOption = None,
    match: Annotated[
        int, typer.Option(help="Games that a pair or table plays one after another; agents with a memory keep it.")
    ] = 1,
    log: Annotated[Path | None, typer.Option(help="Write the games as a log, where the game has a log format.")] = None,
    exact: Annotated[bool, typer.Option("--exact", help="Compute the win rates instead of playing: Liar's Dice.")] = False,
    without_luck: Annotated[
        bool, typer.Option("--without-luck", help="Take luck out of the results of pairs, as `evaluate` does, where possible.")
    ] = False,
    ray: ui.RayOption = None,
    resume: ui.ResumeOption = False,
) -> None:
    """Let agents play each other: every pair, or one table with an agent at each of three or more seats.

    `3*numbers` stands for three copies, so `ppo 3*numbers` is one agent against three at a table of four. In a cooperative
    game, such as The Shakes, the result is the team's return and its distance from optimal play.

    Seats rotate from game to game. Win rates come with 95 % intervals; a tie counts as half a win. With --exact they are
    computed, no games are played, and --games and --seed have no effect.

    Where a best response to an agent is known, a second table has what it wins from that agent, and the share of its edge
    over half that others took. Where it takes long to find, --without-luck finds it.

    With --without-luck the same games give smaller intervals: what dice and choices of known probabilities did to the chance
    to win is taken out. At least one agent of a pair must have fixed probabilities to which a best response is known.

    With --match N, games are played in matches of N at the same table. An agent with a memory, such as adaptive, then knows
    its opponent from earlier games. Intervals are then over matches, and each part of the match has its own win rates.

    If the game has one seat, agents play alone, and the one with the higher return wins. Options that you leave out are
    those of a trained policy, if one takes part.

    With --ray a cluster plays the games, with the same results. With --json finished games are kept beside that file; after
    a stop the same command with --resume continues.

    Example: arena liars_dice random numbers numbers:bluff=0.5 --games 100000
    """
    agents = expanded(agents)
    variant, players, policy = lineup(game, ui.game_options(option), agents)
    check_table(variant, len(agents), games)
    check_match(games, match)
    if without_luck:
        if variant.facts.num_seats != 2 or variant.facts.cooperative:
            raise ValueError(f"--without-luck is for pairs that play against each other, which {variant} is not: leave it out")
        check_games(games, match)
    given = {"log": log is not None, "ray": ray is not None, "resume": resume, "without-luck": without_luck}
    _check_together(exact, match, [name for name, is_given in given.items() if is_given])
    writer: Any = log_writer(variant, len(agents)) if log is not None else None
    ui.check_writable(log)
    ui.print_mode(variant, policy)
    players = logged(players, json, resume)
    meter = ChatMeter(players, alone=ray is None)
    meetings = num_meetings(variant, len(agents))
    hand_over = functools.partial(_hand_over, variant, players, json, report, log, writer)
    if exact:
        with ui.progress("computing"):
            result = exact_tournament(variant, agents, players)
        hand_over(result)
        return
    what = {"game": str(variant.plain), "agents": agents, "games": games, "match": match, "without_luck": without_luck}
    with resumable(json if log is None else None, resume, what, seed, ray, meter) as (seed, workers):
        values: list[ResponseValues | None] | None = None
        reasons: list[ValueError] = []
        if without_luck:
            with ui.progress("measuring values of choices"):
                values, reasons = known_values(variant, agents, players)
        with ui.progress(f"{meetings} × {games:,} games", meetings * games):
            result = tournament(variant, agents, games, seed, players, writer, match, workers, values)
        result.notes = [*result.notes, *map(str, reasons), *meter.lines()]
        hand_over(result, seed, values)


def _hand_over(
    variant: Variant,
    players: Sequence[Agent],
    json: Path | None,
    report: Path | None,
    log: Path | None,
    writer: Any,
    result: results.Result,
    seed: int = 0,
    values: Sequence[ResponseValues | None] | None = None,
) -> None:
    """Add what could be won, print the tables and write all files."""
    add_optimal(result, variant)
    if result.exact or result.games >= LEAST_COMPARED:
        with ui.progress("measuring what a best response wins"):
            result.compare(best_responses(variant, result.agents, players, values, seed))
    ui.finish(
        lambda: ui.console.print(said) if (said := results.verdict(result)) else None,
        lambda: show_all(results.tournament_grids(result)),
        lambda: ui.write_json(json, result.as_dict()),
        lambda: results.save_plot(report, f"arena_{variant.game.name}", result) if report is not None else None,
        lambda: write_text(log, writer.text()) if log is not None else None,
    )


def _check_together(exact: bool, match: int, given: Sequence[str]) -> None:
    """Raise ValueError for options that exclude each other; `given` are the names of those beside --exact."""
    if exact and match > 1:
        raise ValueError(f"--exact plays no matches, so --match must be 1 with it, not {match}")
    for name in given:
        if exact:
            raise ValueError(f"--exact plays no games: leave out --{name} or --exact")
        if "log" in given and name != "log":
            raise ValueError(f"--log records games that are played here, in one go: leave out --{name} or --log")


# --- tournaments -----------------------------------------------------------------------------------------------------


def play_table(
    variant: Variant,
    agents: Sequence[Agent],
    games: int,
    seed: int | np.random.SeedSequence,
    after_move: Callable[[np.ndarray, np.ndarray, np.ndarray], Any] | None = None,
    match: int = 1,
    workers: Workers = HERE,
) -> np.ndarray:
    """Play games with one agent a seat, seats rotating from game to game.

    Agents that all have kernels (see `dice_envs.Agent`) play in one compiled loop, with the same results.

    Args:
        variant: the game.
        agents: one for each seat; in game k of match m agent a sits at seat (a + m + k) mod seats.
        games: number of all games, 1 to MOST_GAMES.
        seed: fixes every game.
        after_move: called as (states, games, shift) after each turn with the games that have moved, ended ones
            included: their states, their numbers, and the seat of agent 0.
        match: number of games played one after another at the same table; agents with a memory (see
            `dice_envs.Agent`) keep it from game to game.
        workers: play parts of the games, to which agents are pickled; with `after_move` all are played in this process.

    Returns:
        Returns of each agent, (games, agents) float64: the games of a match one after another, match after match.

    Raises:
        ValueError: too few or too many games, or games that do not make whole matches.
        AgentError: an agent's action is malformed or not legal.
    """
    check_match(games, match)
    sequence = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(check_seed(seed))
    seats = variant.facts.num_seats
    compiled = after_move is None and team_of(agents, variant) is not None
    # A network's rounding depends on the batch size, so pieces are the same wherever they are played.
    size, in_part = (GAMES_AT_ONCE, PIECES_IN_PART) if compiled else (GAMES_ASKED, 1)
    pieces = pieces_of(games // match, seats, sequence, size)
    if after_move is not None:
        played = [play_pieces(variant, agents, match, pieces, Watch(after_move=after_move))]
    else:
        parts = [pieces[first : first + in_part] for first in range(0, len(pieces), in_part)]
        sizes = [match * sum(piece.number for piece in part) for part in parts]
        played = workers.run(play_pieces, (variant, agents, match), [(part,) for part in parts], sizes)
    return np.concatenate(played).reshape(games, seats)


def tournament(
    variant: Variant,
    specs: Sequence[str],
    games: int,
    seed: int,
    agents: Sequence[Agent] | None = None,
    log: Any = None,
    match: int = 1,
    workers: Workers = HERE,
    values: Sequence[ResponseValues | None] | None = None,
) -> results.Result:
    """Play every pair of agents (two seats), one table with an agent for each seat (more), or each agent alone (one seat).

    Of two agents that play alone, the one that earns more in its game wins against the other.

    Args:
        variant: the game.
        specs: of the agents.
        games: of each pair, table, or agent that plays alone; 1 to MOST_GAMES.
        seed: fixes every game. The same agents play the same games in every field and order.
        agents: those that play, if the specs are only their names; else the specs are resolved.
        log: records the games of one pair; made by `log_writer`.
        match: number of games played one after another at the same table, see `play_table`.
        workers: play the games.
        values: of choices against each agent (see `known_values`), to take luck out of the results of pairs; None where they
            are not known. The same games are played.

    Raises:
        ValueError: too few agents, or not one for each seat; one that does not play the variant; too few or too many games,
            or games that do not make whole matches.
    """
    check_table(variant, len(specs), games)
    check_match(games, match)
    seed, players = check_seed(seed), [resolve(each, variant.game.name) for each in (specs if agents is None else agents)]
    for player in players:
        check_plays(player, variant)
    n, seats = len(players), variant.facts.num_seats
    result = results.Result(variant.game.name, variant.changed_options(), list(specs), games, seed, seats=seats, match=match)
    result.cooperative, result.without_luck = variant.facts.cooperative and seats > 1, any(values or ())
    names, order = _order(specs, seats)
    valued: dict[Sequence[int], tuple[_Ways, np.ndarray]] = {}

    def play(members: Sequence[int]) -> np.ndarray:
        own = [players[member] for member in members]
        own_seed = np.random.SeedSequence(*derived_seeds(seed, " against ".join(names[member] for member in members)))
        ways = [None if values is None else values[member] for member in members[::-1]]  # against the other of two
        if any(each is not None for each in ways):
            pieces = pieces_of(games // match, 2, own_seed, GAMES_ASKED)
            sizes = [match * piece.number for piece in pieces]
            played = workers.run(play_valued, (variant, own, ways, match), [([piece],) for piece in pieces], sizes)
            valued[members] = ways, np.concatenate(played)
            return valued[members][1][:, :, :2].reshape(games, 2)
        after = log and (lambda states, games, shift: log.after_move(states, games, (shift + members.index(0)) % seats))
        return play_table(variant, own, games, own_seed, after, match, workers)

    def tables() -> Iterator[tuple[Sequence[int], np.ndarray]]:
        """Numbers of the agents that are compared, and their returns, (games, agents) float64."""
        groups = itertools.combinations(order, max(2, seats))
        if seats == 1:
            earned = [play([member]) for member in range(n)]
            for member, own in enumerate(earned):
                alone = results.Played.of(own, match, remembering([players[member]]))
                result.teams.append(results.TeamResult.of(variant, [member], alone))
            yield from ((pair, np.hstack([earned[member] for member in pair])) for pair in groups)
        else:
            yield from ((members, play(members)) for members in groups)

    for members, returns in tables():
        by_match = remembering([players[member] for member in members])
        _add_results(result, variant, members, returns, by_match)
        if members in valued:
            result.meetings[-2:], unfair = _without_luck(variant, result.meetings[-2:], *valued.pop(members), by_match)
            result.notes += [UNFAIR.format(specs[members[1 - agent]]) for agent in unfair]
    result.teams.sort(key=lambda each: each.members)
    result.meetings.sort(key=lambda each: (*sorted((each.row, each.column)), each.row))
    if not result.one_table:
        result.elo, result.elo_interval = elo(result.win_rate, games), elo_intervals(result)
    return result


def _order(specs: Sequence[str], seats: int) -> tuple[list[str], list[int]]:
    """Return a name of each agent of its own, and the agents in the order in which they sit down, which does not depend on the
    order or number of others: the same agents play the same games in every field."""
    names = [f"{spec}, copy {specs[:number].count(spec)}" for number, spec in enumerate(specs)]
    order = sorted(range(len(specs)), key=lambda number: names[number])
    return names, order if seats <= 2 else [*range(order[0], len(specs)), *range(order[0])]


def _add_results(result: results.Result, variant: Variant, members: Sequence[int], returns: np.ndarray, by_match: bool) -> None:
    """Add what agents at one table won and earned: returns (games, agents) float64; `by_match` as in `results.Played`."""
    shares, is_tie = results.shares_of(returns)
    if result.cooperative:
        together = results.Played.of(returns[:, 0], result.match, by_match)
        result.teams.append(results.TeamResult.of(variant, sorted(members), together))
    elif result.one_table and len(set(result.agents)) < len(members):
        own = np.argsort(members)
        result.copies = results.Copies.each_of(variant, result.agents, shares[:, own], returns[:, own], result.match, by_match)
    for place, member in enumerate(members):
        won, earned = (results.Played.of(each[:, place], result.match, by_match) for each in (shares, returns))
        cell = (0, member) if result.one_table else (member, members[1 - place])
        result.meetings.append(results.Meeting.of(variant, cell, won, is_tie, earned))


def exact_tournament(
    variant: Variant,
    specs: Sequence[str],
    agents: Sequence[Agent] | None = None,
) -> results.Result:
    """Compute the win rates of every pair of agents, or of all at one table, without playing.

    See `dice_envs.exact.GameExact.winning_shares`, also for what it raises.
    """
    check_table(variant, len(specs), 1)
    seats = variant.facts.num_seats
    result = results.Result(variant.game.name, variant.changed_options(), list(specs), 0, 0, seats=seats, exact=True)
    players: Sequence[str | Agent] = specs if agents is None else agents
    share = 1 / num_meetings(variant, len(specs))
    for members in itertools.combinations(range(len(specs)), max(2, seats)):
        own = [players[member] for member in members]
        with counting(share=share):
            shares = GameExact(variant.game).winning_shares(variant, own)
        returns = [(seats * share - 1) * -variant.facts.min_return for share in shares]  # all returns add up to 0
        for place, (member, share, earned) in enumerate(zip(members, shares, returns, strict=True)):
            cell = (0, member) if result.one_table else (member, members[1 - place])
            result.meetings.append(results.Meeting(*cell, share, 0.0, 0.0, earned, 0.0, (share, share)))
        if result.one_table and len(set(specs)) < seats:
            copies = results.Copies.each_of(variant, specs, np.array([shares]), np.array([returns]), 1, by_match=False)
            result.copies = [dataclasses.replace(each, ci95=0.0, mean_return_ci95=0.0) for each in copies]
    if not result.one_table:
        result.elo = elo(result.win_rate, MOST_GAMES)
    return result


def expanded(specs: Sequence[str]) -> list[str]:
    """Return specs with each `3*SPEC` replaced by three copies.

    Raises:
        ValueError: the number of copies is not 1 to MAX_SEATS.
    """
    found: list[str] = []
    for spec in specs:
        count = _COPIES.fullmatch(spec)
        if count is not None:
            check_range(f"the copies in {shown(spec)}", int(count[1][:9]), 1, MAX_SEATS)
        found += [spec] if count is None else [count[2]] * int(count[1])
    return found


def check_table(variant: Variant, agents: int, games: int) -> None:
    """Raise ValueError unless this number of agents can play a tournament of this number of games."""
    seats = variant.facts.num_seats
    check_range("games", games, 1, MOST_GAMES)
    if seats <= 2 and agents < 2:
        raise ValueError(f"an arena needs at least 2 agents, not {agents}")
    if seats > 2 and agents != seats:
        raise ValueError(f"{variant} has {seats} seats, so name {seats} agents, not {agents}")


def num_meetings(variant: Variant, agents: int) -> int:
    """Return how often a tournament plays its number of games: once for each pair, table, or agent that plays alone."""
    seats = variant.facts.num_seats
    return agents if seats == 1 else agents * (agents - 1) // 2 if seats == 2 else 1


def log_writer(variant: Variant, agents: int) -> Any:
    """Return a writer that records the games of one pair in the game's own log format: that of the module `log` in its folder.

    `play_table` calls its `after_move(states, games, shift)` with (m,) arrays: the states of the games that have just moved,
    their numbers, and agent 0's seat. `text()` returns the whole log.

    Raises:
        ValueError: the game has no log format, or the format does not hold these options or more than two agents.
    """
    module = part_of(variant.game.name, "log")
    if module is None:
        having = ", ".join(name for name in names() if part_of(name, "log"))
        raise ValueError(f"{variant.game.name} has no log format; those that have: {having}")
    if agents != 2:
        raise ValueError(f"a log holds the games of one pair: name 2 agents, not {agents}")
    return module.Writer(variant)


def elo(win_rate: results.Matrix | np.ndarray, games: int, known: int | None = None) -> list[float]:
    """Fit Elo ratings to all pairs at once (Bradley–Terry, Hunter's MM algorithm), mean 1500.

    Every pair gets half a win more each way, so that a clean sweep has a finite rating; not the pairs of an agent whose shares
    are `known`.
    """
    n = len(win_rate)
    wins = np.zeros((n, n))
    for i, j in itertools.permutations(range(n), 2):
        share = min(max(win_rate[i][j] or 0.0, 0.0), 1.0)  # without luck it may lie just outside
        wins[i, j] = share * games + (0.0 if known in (i, j) else 0.5)
    strength = np.ones(n)
    met = wins + wins.T
    for _ in range(10_000):
        new = wins.sum(1) / (met / (strength[:, None] + strength)).sum(1)
        new /= np.exp(np.log(new).mean())
        if np.abs(np.log(new / strength)).max() < 1e-10:
            break
        strength = new
    return (1500 + 400 * np.log10(strength)).tolist()


def elo_intervals(result: results.Result) -> list[tuple[float, float]]:
    """Return the limits of the 95 % interval of each rating, infinite where an agent may win all or none.

    At a limit all shares of the agent's wins are moved towards their own limits: by their distance over the root of their
    number, as far as the mean of independent shares may be off.
    """

    def limit(agent: int, side: int) -> float:
        moved = np.array(result.win_rate, float)
        for each in (meeting for meeting in result.meetings if meeting.row == agent):
            share = each.win_rate + (each.interval[side] - each.win_rate) / math.sqrt(len(moved) - 1)
            moved[agent, each.column], moved[each.column, agent] = share, 1 - share
        ends = (np.clip(np.delete(moved[agent], agent), 0, 1) == side).all()
        return (2 * side - 1) * math.inf if ends else elo(moved, result.games, agent)[agent]

    return [(limit(agent, 0), limit(agent, 1)) for agent in range(len(result.agents))]


def elo_gap(share: float, others: int = 1) -> float:
    """Return by how many Elo points an agent of this share of wins is above `others` of equal strength; infinite at 0 and 1."""
    share = min(max(share, 0.0), 1.0)  # a limit may lie outside
    with np.errstate(divide="ignore"):
        return float(400 * np.log10(np.divide(others * share, 1 - share)))


def add_optimal(result: results.Result, variant: Variant) -> None:
    """Add the return of optimal play to a tournament with teams, where it is known."""
    if result.teams:
        with contextlib.suppress(ValueError):
            result.optimal = optima(variant)


# --- what could have been won -----------------------------------------------------------------------------------------


def best_responses(
    variant: Variant,
    specs: Sequence[str],
    agents: Sequence[Agent],
    values: Sequence[ResponseValues | None] | None = None,
    seed: int = 0,
) -> list[results.Best | None]:
    """Return what a best response to each agent wins, None where it is not known; see `Result.compare`.

    Args:
        variant: the game. Nothing is known unless two players win or lose it.
        specs: of the agents; of several with one spec, the first is asked.
        agents: the agents. Without values, only those are tried that promise fixed probabilities, up to MOST_POSITIONS.
        values: of choices against each agent, from `known_values`, where they are at hand.
        seed: fixes the sample of deals, in games with too many for all of them.
    """
    if variant.facts.num_seats != 2 or not variant.facts.zero_sum:
        return [None] * len(agents)
    found = dict[str, results.Best | None]()
    for spec, agent, own in zip(specs, agents, values or [None] * len(agents), strict=True):
        if spec not in found:
            with counting(share=1 / len(set(specs))) as part, work(most=MOST_POSITIONS):
                found[spec] = _best_response(variant, agent, seed, part.advance) if own is None else won_by(variant, own)
    return [found[spec] for spec in specs]


def won_by(variant: Variant, values: ResponseValues) -> results.Best | None:
    """Return what the best response of these values wins."""
    scale = scale_of(variant, values)
    return results.Best(scale.of((values.start(0) + values.start(1)) / 2)) if scale.unit == GAMES_WON else None


def _best_response(variant: Variant, agent: Agent, seed: int, done: Tell) -> results.Best | None:
    """Return what a best response to an agent of fixed probabilities wins, if that is found soon: from what the game knows of
    the values of choices, else from the agent's exploitability, which is a best response's return, mean of both seats."""
    promised = promises_of(agent)
    if not (promised.memoryless or promised.observes_only or promised.strategy):
        return None
    with contextlib.suppress(ValueError):
        return won_by(variant, response_values(variant, agent, done=done))
    with contextlib.suppress(ValueError):
        headline = measure(variant, agent, seed=seed, sample=SAMPLE, done=done).measures[0]
        if headline.name == "exploitability" and variant.facts.max_return == 1:
            return results.Best(0.5 + headline.value / 2, headline.error / 2)
    return None


# --- without luck ---------------------------------------------------------------------------------------------------


def known_values(
    variant: Variant,
    specs: Sequence[str],
    agents: Sequence[Agent],
) -> tuple[list[ResponseValues | None], list[ValueError]]:
    """Return the values of choices against each agent, None where they are not known, and the reasons for these; TooLong where
    they take longer than they may.

    Args:
        variant: the game.
        specs: names of the agents; agents of one name share their values.
        agents: the agents.
    """
    found: dict[str, ResponseValues | None] = dict.fromkeys(specs)
    reasons: list[ValueError] = []
    for spec, agent in dict(zip(specs, agents, strict=True)).items():
        try:
            with counting(share=1 / len(found)) as part:
                values = response_values(variant, agent, done=part.advance)
            if scale_of(variant, values).unit != GAMES_WON:
                raise ValueError(f"{variant} is not won or lost alone")
            found[spec] = values
        except TooLong as problem:
            reasons.append(TooLong(f"no values against {spec}: there are {problem} to evaluate"))
        except ValueError as problem:
            reasons.append(ValueError(f"no values against {spec}: {problem}"))
    return [found[spec] for spec in specs], reasons


def _without_luck(
    variant: Variant, plain: Sequence[results.Meeting], ways: _Ways, played: np.ndarray, by_match: bool
) -> tuple[list[results.Meeting], list[int]]:
    """Take the luck out of both agents' plain meetings, given what `play_valued` returned; `by_match` as in `results.Played`.

    Returns:
        The meetings, and the agents by whose values luck is not fair.
    """
    earned, expected, lost, agents = played[:, :, 0], [], [], []
    scale = next(scale_of(variant, values) for values in ways if values is not None)
    for agent, (values, sign) in enumerate(zip(ways, (1, -1), strict=True)):
        if values is not None:  # in returns of the first agent: the second one's are their negatives
            expected.append(sign * expected_returns(values, *earned.shape, agent=agent))
            lost.append(played[:, :, 2 + agent])
            agents.append(agent)
    figures = scale.of(earned), scale.of(np.array(expected)), scale.factor * np.array(lost)
    losers = [1 - 2 * agent for agent in agents]
    most_lost = [None if values.most_lost is None else scale.factor * values.most_lost for values in ways if values is not None]

    def adjusted(here: slice = slice(None)) -> Adjusted:
        won, starts, given = (each[..., here] for each in figures)
        seat = seats_of(won.shape, by_match, agent=here.start or 0)
        own = [independent(each, by_match) for each in (won, starts, given)]
        return adjust(own[0], own[1], own[2], seat, most_lost=most_lost, losers=losers)

    whole = adjusted()
    parts = [(first, last, adjusted(slice(first - 1, last))) for first, last in results.parts_of(earned.shape[1])]
    won, starts, given = (independent(each, by_match) for each in figures)
    luck = luck_of(won, starts, given, losers)
    unfair = [agent for agent, own in zip(agents, luck, strict=True) if not is_fair(own, 2 * scale.spread)]
    found = []
    for own, shift, sign in zip(plain, (0, 1), (1, -1), strict=True):  # the second agent wins what the first one does not
        share = shift + sign * whole.value
        found.append(
            dataclasses.replace(
                own,
                win_rate=share,
                ci95=whole.error,
                interval=(share - whole.error, share + whole.error),
                mean_return=2 * share - 1,
                mean_return_ci95=2 * whole.error,
                parts=[results.Part(first, last, shift + sign * part.value, part.error) for first, last, part in parts],
                plain_win_rate=own.win_rate,
                plain_ci95=own.ci95,
                variance_ratio=whole.variance_ratio,
            )
        )
    return found, unfair
