"""Agents against each other: every pair, or one table of N; win rates with intervals, and Elo."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import dice_envs.experiments.logs
from dice_envs.agent import Agent, ask, check_plays, fresh_memory, resolve
from dice_envs.agent.compiled import play_games, team_of
from dice_envs.core.dice import new_streams
from dice_envs.core.game import MAX_SEATS, OVER, Variant
from dice_envs.core.options import check_range, options_text, shown
from dice_envs.exact import optima
from dice_envs.exact.intervals import Z95, wilson_half_width
from dice_envs.exact.liars_dice.measures import winning_probability
from dice_envs.experiments.discovery import modules
from dice_envs.experiments.jobs.workers import HERE, Workers
from dice_envs.experiments.ui.console import console
from dice_envs.experiments.ui.grids import Grid
from dice_envs.experiments.ui.names import joined, legend, letters, short
from dice_envs.experiments.ui.plots import saved_plot

__all__ = [
    "MOST_GAMES",
    "Result",
    "add_optimal",
    "check_match",
    "check_table",
    "elo",
    "exact_tournament",
    "expanded",
    "log_writer",
    "num_meetings",
    "parts_of",
    "play_table",
    "save_plot",
    "show",
    "tournament",
]

GAMES_AT_ONCE = 2048  # of one chunk, which has a seed of its own; their states stay in the processor's cache
GAMES_ASKED = 256  # played at once where agents are asked: fewer would cost time, more would make few parts of slow games
PIECES_IN_PART = 64  # so that a part of compiled games takes a tenth of a second or more
MOST_GAMES = 10**7  # of one meeting: the returns of all are kept, 8 bytes a seat
MOST_IN_MATCH = 10**5
_COPIES = re.compile(r"([0-9]+)\*(.+)")
PARTS_END = (10, 50)  # a match is shown in parts: its first 10 games, the next 40, the rest


@dataclasses.dataclass
class Result:
    """A tournament. `win_rate[i][j]` is row agent i's share of wins against column agent j (a tie counts half);
    with more than two seats there is one row, each agent's share at the one table. In a game of one seat an agent wins
    against another if it earns more. NaN-free: None where not played."""

    game: str
    options: dict[str, Any]
    agents: list[str]
    games: int
    seed: int
    win_rate: list[list[float | None]]
    ci95: list[list[float | None]]  # half-widths
    draws: list[list[float | None]]  # shares of ties
    mean_return: list[list[float | None]]
    elo: list[float] | None = None
    seats: int = 2
    mean_return_ci95: list[list[float | None]] = dataclasses.field(default_factory=list)  # half-widths
    exact: bool = False  # computed: no games were played, and the intervals are 0
    match: int = 1  # games played one after another by the same players; intervals then count matches, not games
    parts: list[Part] = dataclasses.field(default_factory=list)  # of the matches, where they are long enough
    cooperative: bool = False  # all at a table are paid the same: `teams` says what they have earned
    teams: list[Team] = dataclasses.field(default_factory=list)  # of a cooperative game, or each agent that plays alone
    copies: list[Copies] = dataclasses.field(default_factory=list)  # at one table, where agents sit there more than once
    optimal: dict[str, float] | None = None  # what optimal play reaches: first of the return, then of P(win), each alone


@dataclasses.dataclass
class Team:
    """What those who play together have earned, or one who plays alone."""

    members: list[int]  # numbers of agents
    mean_return: float
    ci95: float
    win: float | None = None  # the share of games that they have won; None where a game cannot be won
    win_ci95: float | None = None


@dataclasses.dataclass
class Copies:
    """What all copies of one agent have earned at one table."""

    agent: str
    seats: int  # how many they have
    win_rate: float  # the share of games that one of them wins
    ci95: float
    mean_return: float  # of one seat
    mean_return_ci95: float


@dataclasses.dataclass
class Part:
    """What was won in one part of all matches; as in `Result`."""

    first: int  # number of the part's first game in its match, from 1
    last: int
    win_rate: list[list[float | None]]
    ci95: list[list[float | None]]


def play_table(
    variant: Variant,
    agents: Sequence[Agent],
    games: int,
    seed: int | np.random.SeedSequence,
    done: Callable[[int], Any] = lambda amount: None,
    after_move: Callable[[np.ndarray, np.ndarray, np.ndarray], Any] | None = None,
    match: int = 1,
    workers: Workers = HERE,
) -> np.ndarray:
    """Play games with one agent a seat, seats rotating from game to game.

    Agents that all choose by kernels (see `dice_envs.Agent`) play in one compiled loop, and end as they would without it.

    Args:
        variant: the game.
        agents: as many as there are seats; in game k of match m agent a sits at seat (a + m + k) mod seats.
        games: how many in all, 1 to MOST_GAMES.
        seed: fixes every game.
        done: told how many games have ended, as they end.
        after_move: called as (states, games, shift) after each turn with the games that have moved, ended ones
            included: their states, their numbers, and the seat of agent 0.
        match: how many games are played one after another at the same table: agents that remember (see
            `dice_envs.Agent`) then know what they have written in earlier ones.
        workers: where parts of the games are played; with `after_move` it is always here. Agents are pickled to get elsewhere.

    Returns:
        Returns of each agent, (games, agents) float64: the games of a match one after another, match after match.

    Raises:
        ValueError: too few or too many games, or games that do not make whole matches.
        AgentError: an agent's action is malformed or not legal.
    """
    check_match(games, match)
    sequence = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    seats, matches = variant.facts.num_seats, games // match
    seeds = [chunk.spawn(1 + seats) for chunk in sequence.spawn(math.ceil(matches / GAMES_AT_ONCE))]
    compiled = after_move is None and team_of(agents, variant) is not None
    # A network rounds in another way in batches of another size, so pieces are the same wherever they are played.
    size, in_part = (GAMES_AT_ONCE, PIECES_IN_PART) if compiled else (GAMES_ASKED, 1)
    pieces = [
        Piece(first, min(size, matches - first), seeds[first // GAMES_AT_ONCE]) for first in range(0, matches, size)
    ]  # fmt: skip
    parts = [pieces[first : first + in_part] for first in range(0, len(pieces), in_part)]
    if after_move is not None:
        played = [_play(variant, agents, match, part, done, after_move) for part in parts]
    else:
        sizes = [match * sum(piece.number for piece in part) for part in parts]
        played = workers.run(_play, (variant, agents, match), [(part,) for part in parts], sizes, done)
    return np.concatenate(played).reshape(games, seats)


class Piece(NamedTuple):
    """Matches of one table that are played at once: `number` of them from the `first` on, within one chunk of GAMES_AT_ONCE.

    `seeds` are the chunk's: of its games, then of each agent.
    """

    first: int
    number: int
    seeds: list[np.random.SeedSequence]


def _play(
    variant: Variant,
    agents: Sequence[Agent],
    match: int,
    pieces: Sequence[Piece],
    done: Callable[[int], Any],
    after_move: Callable[[np.ndarray, np.ndarray, np.ndarray], Any] | None = None,
) -> np.ndarray:
    """Play pieces one after another: the returns of each agent, (matches, match, agents) float64."""
    seats = variant.facts.num_seats
    team = team_of(agents, variant) if after_move is None else None
    played = []
    for first, count, seeds in pieces:
        skipped = first % GAMES_AT_ONCE
        rng, *streams = (new_streams(seed, skipped + count)[skipped:] for seed in seeds)
        states = np.zeros(count, variant.game.state)
        states["rng"] = rng["rng"]
        shifts = (first + np.arange(count)) % seats
        if team is not None:
            played.append(play_games(variant, agents, team, states, streams, shifts, match))
            done(count * match)
        else:
            played.append(_ask_through(variant, agents, match, first, states, streams, shifts, done, after_move))
    return np.concatenate(played)


def _ask_through(
    variant: Variant,
    agents: Sequence[Agent],
    match: int,
    first: int,
    states: np.ndarray,
    streams: Sequence[np.ndarray],
    shifts: np.ndarray,
    done: Callable[[int], Any],
    after_move: Callable[[np.ndarray, np.ndarray, np.ndarray], Any] | None,
) -> np.ndarray:
    """Play matches by asking the agents move by move."""
    seats, kernels, params, count = variant.facts.num_seats, variant.kernels, variant.params, len(states)
    returns = np.zeros((count, match, seats))
    memories = [fresh_memory(agent, count) for agent in agents]
    for place in range(match):  # the tables' random streams go on from game to game
        index = np.arange(count)
        kernels.deal(params, states, index)
        earned = np.zeros((count, seats))
        shift = (shifts + place) % seats
        while True:
            goes_on = states["seat"][index] != OVER
            done(len(index) - int(goes_on.sum()))
            index = index[goes_on]
            if not len(index):
                break
            # Each game's mover is decided once: an agent that has just moved waits for the next round.
            who = (states["seat"][index] - shift[index]) % seats
            for number, agent in enumerate(agents):
                mine = index[who == number]
                if len(mine):
                    actions = ask(agent, variant, states, mine, streams[number], memories[number])
                    kernels.play(params, states, mine, actions)
                    earned[mine] += states["rewards"][mine, :seats]
            if after_move is not None:
                after_move(states[index], (first + index) * match + place, shift[index])
        # Column a: what agent a earned, wherever it sat.
        returns[:, place] = np.take_along_axis(earned, (np.arange(seats) + shift[:, None]) % seats, axis=1)
    return returns


def check_match(games: int, match: int) -> None:
    """Raise ValueError unless so many games can be played in matches of that many."""
    check_range("games", games, 1, MOST_GAMES)
    check_range("match", match, 1, MOST_IN_MATCH)
    if games % match:
        raise ValueError(f"games must be a multiple of match={match}, so that all matches are whole, not {games}")


def parts_of(match: int) -> list[tuple[int, int]]:
    """The first and the last game, from 1, of each part of a match; none where it is not longer than its first part."""
    starts = [1, *(end + 1 for end in PARTS_END if end < match)]
    ends = [*(end for end in PARTS_END if end < match), match]
    return list(zip(starts, ends, strict=True)) if len(starts) > 1 else []


def _shares(returns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each agent's share of each game, (games, agents): 1 for the single best return, equal shares among the best;
    and whether all shared, (games,) bool."""
    best = returns >= returns.max(axis=1, keepdims=True) - 1e-6
    return best / best.sum(axis=1, keepdims=True), best.all(axis=1)


def _half_width(shares: np.ndarray) -> float:
    """95 % half-width of a mean share, from the shares of each match, (matches, games) float64.

    Wilson's for single games, so that 0 and 1 get a real one. Games of one match are not independent: then Student's over
    the matches, and no less than Wilson's of as many clean sweeps.
    """
    if shares.shape[1] > 1:
        means, games = shares.mean(axis=1), shares.size
        if len(means) < 2:
            return 1.0
        from scipy.special import stdtrit  # here, because it takes long to import

        least = Z95 * Z95 / (2 * (games + Z95 * Z95))
        return max(least, float(stdtrit(len(means) - 1, 0.975) * means.std(ddof=1)) / math.sqrt(len(means)))
    mean = float(shares.mean())
    return wilson_half_width(mean, len(shares), float(shares.var())) if 0 <= mean <= 1 else 1.0


def _spread(variant: Variant, returns: np.ndarray) -> float:
    """95 % half-width of a mean return, from the returns of each match, (matches, games) float64, as shares have it of what a
    game can bring."""
    low, high = variant.facts.min_return, variant.facts.max_return
    return (high - low) * _half_width((returns - low) / (high - low))


def _team(variant: Variant, members: list[int], returns: np.ndarray) -> Team:
    """What a team has earned, from the returns of each match, (matches, games) float64."""
    team = Team(members, float(returns.mean()), _spread(variant, returns))
    winning = variant.facts.winning_return
    if winning is not None:
        won = (returns >= winning - 1e-6).astype(np.float64)
        team.win, team.win_ci95 = float(won.mean()), _half_width(won)
    return team


def _copies(variant: Variant, specs: Sequence[str], shares: np.ndarray, returns: np.ndarray, match: int) -> list[Copies]:
    """Each spec with all its seats, from shares and returns (games, seats) float64 at one table."""
    found = []
    for spec in dict.fromkeys(specs):
        mine = [place for place, other in enumerate(specs) if other == spec]
        share = shares[:, mine].sum(axis=1).reshape(-1, match)
        earned = returns[:, mine].mean(axis=1).reshape(-1, match)
        widths = _half_width(share), _spread(variant, earned)
        found.append(Copies(spec, len(mine), float(share.mean()), widths[0], float(earned.mean()), widths[1]))
    return found


def expanded(specs: Sequence[str]) -> list[str]:
    """Specs with `3*SPEC` written out as three.

    Raises:
        ValueError: not so many copies, or copies of nothing.
    """
    found: list[str] = []
    for spec in specs:
        count = _COPIES.fullmatch(spec)
        if count is None:
            found.append(spec)
            continue
        check_range(f"the copies in {shown(spec)}", int(count[1][:9]), 1, MAX_SEATS)
        found += [count[2]] * int(count[1])
    return found


def tournament(
    variant: Variant,
    specs: Sequence[str],
    games: int,
    seed: int,
    done: Callable[[int], Any] = lambda amount: None,
    agents: Sequence[Agent] | None = None,
    log: Any = None,
    match: int = 1,
    workers: Workers = HERE,
) -> Result:
    """Every pair of agents (two seats), one table with one agent a seat (more), or each agent alone (one seat): of two
    agents, that which earns more in its game then wins against the other.

    `log` takes the games of one pair, as `log_writer` makes it. `match` games are played one after another at the same
    table (see `play_table`); games of one match are not independent, so the intervals then come from whole matches.
    `workers` play the games.

    Raises:
        ValueError: too few agents, or not one for each seat; one that does not play the variant; too few or too many games,
            or games that do not make whole matches.
    """
    check_table(variant, len(specs), games)
    check_match(games, match)
    seats = variant.facts.num_seats
    players = list(agents) if agents is not None else [resolve(spec) for spec in specs]
    for player in players:
        check_plays(player, variant)
    n = len(players)
    options, facts = variant.changed_options(), variant.facts
    result = Result(variant.game.name, options, list(specs), games, seed, [], [], [], [], seats=seats, match=match)
    result.cooperative = facts.cooperative and seats > 1
    result.parts = [Part(first, last, [], []) for first, last in parts_of(match)]
    in_pairs = seats <= 2
    tables = [result.win_rate, result.ci95, result.draws, result.mean_return, result.mean_return_ci95]
    for table in tables + [table for part in result.parts for table in (part.win_rate, part.ci95)]:
        table.extend([None] * n for _ in range(n if in_pairs else 1))
    after_move = None if log is None else log.after_move
    seeds = np.random.SeedSequence(seed).spawn(num_meetings(variant, n))
    groups = list(itertools.combinations(range(n), 2)) if in_pairs else [tuple(range(n))]

    def meet(members: Sequence[int], meeting_seed: np.random.SeedSequence) -> np.ndarray:
        return play_table(variant, [players[m] for m in members], games, meeting_seed, done, after_move, match, workers)

    earned = [meet([member], own_seed) for member, own_seed in enumerate(seeds)] if seats == 1 else []
    for member, returns in enumerate(earned):
        result.teams.append(_team(variant, [member], returns.reshape(-1, match)))
    for number, members in enumerate(groups):
        returns = np.hstack([earned[member] for member in members]) if seats == 1 else meet(members, seeds[number])
        shares, is_tie = _shares(returns)
        if result.cooperative:
            result.teams.append(_team(variant, list(members), returns[:, 0].reshape(-1, match)))
        elif seats > 2 and len(set(specs)) < n:
            result.copies = _copies(variant, specs, shares, returns, match)
        for place, member in enumerate(members):
            row, column = (member, members[1 - place]) if in_pairs else (0, member)
            by_match, earned_by_match = (of[:, place].reshape(-1, match) for of in (shares, returns))
            result.win_rate[row][column] = float(by_match.mean())
            result.ci95[row][column] = _half_width(by_match)
            result.draws[row][column] = float(is_tie.mean())
            result.mean_return[row][column] = float(earned_by_match.mean())
            result.mean_return_ci95[row][column] = _spread(variant, earned_by_match)
            for part in result.parts:
                own = by_match[:, part.first - 1 : part.last]
                part.win_rate[row][column] = float(own.mean())
                part.ci95[row][column] = _half_width(own)
    if in_pairs:
        result.elo = elo(result.win_rate, games)
    return result


def exact_tournament(
    variant: Variant,
    specs: Sequence[str],
    done: Callable[[float], Any] = lambda amount: None,
    agents: Sequence[Agent] | None = None,
) -> Result:
    """Every pair of agents, without playing: see `dice_envs.exact.liars_dice.winning_probability`, which also says what it
    raises. `done` is told of the share of a pair that has been computed."""
    check_table(variant, len(specs), 1)
    n = len(specs)
    tables: list[list[list[float | None]]] = [[[None] * n for _ in range(n)] for _ in range(4)]
    rates, errors, draws, returns = tables
    for pair in itertools.combinations(range(n), 2):
        first, second = (specs[member] if agents is None else agents[member] for member in pair)
        rate = winning_probability(variant, first, second, lambda amount, total: done(amount / total))
        for (row, column), won in zip((pair, pair[::-1]), (rate, 1 - rate), strict=True):
            rates[row][column], errors[row][column], draws[row][column], returns[row][column] = won, 0.0, 0.0, 2 * won - 1
    ratings = elo(rates, MOST_GAMES)
    options = variant.changed_options()
    return Result(
        variant.game.name,
        options,
        list(specs),
        0,
        0,
        rates,
        errors,
        draws,
        returns,
        ratings,
        mean_return_ci95=errors,
        exact=True,
    )


def check_table(variant: Variant, agents: int, games: int) -> None:
    """Raise ValueError unless that number of agents can play a tournament of that number of games."""
    seats = variant.facts.num_seats
    check_range("games", games, 1, MOST_GAMES)
    if seats <= 2 and agents < 2:
        raise ValueError(f"an arena needs at least 2 agents, not {agents}")
    if seats > 2 and agents != seats:
        raise ValueError(f"{variant} has {seats} seats, so name {seats} agents, not {agents}")


def num_meetings(variant: Variant, agents: int) -> int:
    """How often a tournament plays its number of games: once for each pair, or table, or agent that plays alone."""
    seats = variant.facts.num_seats
    return agents if seats == 1 else agents * (agents - 1) // 2 if seats == 2 else 1


def log_writer(variant: Variant, agents: int) -> Any:
    """What takes the games of one pair for a log in the game's own format (see `dice_envs.experiments.logs`).

    Raises:
        ValueError: the game has no log format, or cannot hold games of these options or of more than two agents.
    """
    formats = modules(dice_envs.experiments.logs)
    if variant.game.name not in formats:
        raise ValueError(f"{variant.game.name} has no log format; those that have: {', '.join(formats)}")
    if agents != 2:
        raise ValueError(f"a log holds the games of one pair: name 2 agents, not {agents}")
    return formats[variant.game.name].Writer(variant)


def elo(win_rate: list[list[float | None]], games: int) -> list[float]:
    """Elo ratings that fit all pairs at once (Bradley–Terry, Hunter's MM algorithm), mean 1500.

    Half a win each way is added to every pair, so that a clean sweep has a finite rating.
    """
    n = len(win_rate)
    wins = np.zeros((n, n))
    for i, j in itertools.permutations(range(n), 2):
        share = win_rate[i][j]
        wins[i, j] = 0.5 + (0.0 if share is None else share) * games
    strength = np.ones(n)
    met = wins + wins.T
    for _ in range(10_000):
        new = wins.sum(1) / (met / (strength[:, None] + strength)).sum(1)
        new /= np.exp(np.log(new).mean())
        if np.abs(np.log(new / strength)).max() < 1e-10:
            break
        strength = new
    return (1500 + 400 * np.log10(strength)).tolist()


def _share(rate: float | None, half: float | None, exact: bool) -> str:
    if rate is None or half is None:
        return ""
    return f"{100 * rate:.4f}" if exact else f"{100 * rate:.2f} ± {100 * half:.2f}"


def add_optimal(result: Result, variant: Variant) -> None:
    """Add what optimal play earns where that is what counts, and is known."""
    if result.teams:
        with contextlib.suppress(ValueError):
            result.optimal = optima(variant)


def show(result: Result) -> None:
    """The tournament on the terminal: % of games that the row's agent wins, and where all play alone or at one table what it
    earns; of a cooperative game what each team earns."""
    if result.cooperative:
        _show_teams(result)
    else:
        _show_wins(result)
    for line in legend(result.agents):
        console.whole_line(f"  {line}")


def _title(result: Result, what: str) -> str:
    game = f"{result.game} ({options_text(result.options)})" if result.options else result.game
    if result.exact:
        return f"{game}: {what}, exactly"
    matches = f" in matches of {result.match:,}" if result.match > 1 else ""
    return f"{game}: {what} ± 95 % interval, {result.games:,} games each{matches}, seed {result.seed}"


def _named(result: Result) -> list[str]:
    """Each agent as rows name it: its letter and its name."""
    return [f"{letter}  {short(name)}" for letter, name in zip(letters(len(result.agents)), result.agents, strict=True)]


def _show_wins(result: Result) -> None:
    won = "% of games in which it earns more than the other, each alone," if result.seats == 1 else "% won"
    n, one_table = len(result.agents), len(result.win_rate) == 1
    rated = result.elo if result.seats > 1 else None
    wins = result.seats == 1 and all(team.win is not None for team in result.teams)
    # Columns have the rows' letters: names side by side would be cut until none could be told from another.
    headings = ["agent", *(("Elo",) if rated else ()), *(["share of wins"] if one_table else [f"v {x}" for x in letters(n)])]
    headings += [*(("mean return",) if result.seats != 2 else ()), *(("P(win), %",) if wins else ())]
    rows = []
    for i, name in enumerate(_named(result)):
        row, columns = (0, [i]) if one_table else (i, range(n))
        cells = [name, *((f"{rated[i]:.0f}",) if rated else ())]
        cells += [_share(result.win_rate[row][j], result.ci95[row][j], result.exact) for j in columns]
        if result.seats != 2:
            j = columns[0] if one_table else (i + 1) % n
            cells.append(f"{result.mean_return[row][j]:.4f} ± {result.mean_return_ci95[row][j]:.4f}")
        if wins:
            cells.append(_share(result.teams[i].win, result.teams[i].win_ci95, False))
        rows.append(cells)
    if result.seats == 1 and (best := _optimal_cells(result)):
        rows.append(["optimal play", *[""] * n, *best[: 1 + wins]])
    Grid(_title(result, won), headings, rows, rules=[n - 1]).show()
    if result.copies:
        _show_copies(result)
    if result.parts:
        _show_parts(result)
    if one_table:
        ties = [f"{100 * share:.2f} %" for share in result.draws[0][:1] if share]
    else:
        names = letters(n)
        pairs = itertools.combinations(range(n), 2)
        ties = [f"{names[i]} v {names[j]} {100 * share:.2f} %" for i, j in pairs if (share := result.draws[i][j])]
    if ties:
        console.print(f"ties: {', '.join(ties)}")


def _optimal_cells(result: Result) -> list[str]:
    """What optimal play earns, and P(win) where that is known."""
    if not result.optimal:
        return []
    earned, *others = result.optimal.values()
    return [f"{earned:.4f}", *(f"{100 * chance:.2f}" for chance in others[:1])]


def _show_teams(result: Result) -> None:
    """What each team earns, and how far that is from optimal play."""
    unit = f" ({next(iter(result.optimal))})" if result.optimal else ""
    wins = all(team.win is not None for team in result.teams)
    headings = ["team", "mean return", *(("short of optimal",) if result.optimal else ()), *(("P(win), %",) if wins else ())]
    rows = []
    for team in result.teams:
        cells = [joined([result.agents[member] for member in team.members]), f"{team.mean_return:.4f} ± {team.ci95:.4f}"]
        if result.optimal:
            cells.append(f"{next(iter(result.optimal.values())) - team.mean_return:.4f} ± {team.ci95:.4f}")
        if wins:
            cells.append(_share(team.win, team.win_ci95, False))
        rows.append(cells)
    if best := _optimal_cells(result):
        rows.append(["optimal play", best[0], "", *best[1 : 1 + wins]])
    Grid(_title(result, f"what the team earns{unit}"), headings, rows, rules=[len(result.teams) - 1]).show()
    if result.optimal and wins and len(result.optimal) > 1:
        console.print("  each optimum is that of the best play for it alone")


def _show_copies(result: Result) -> None:
    """Agents that sit at the table more than once: what all their copies earn."""
    rows = []
    for each in result.copies:
        even = f"{100 * each.seats / result.seats:.2f}"
        earned = f"{each.mean_return:.4f} ± {each.mean_return_ci95:.4f}"
        rows.append((short(each.agent), str(each.seats), even, _share(each.win_rate, each.ci95, False), earned))
    headings = ("agent", "seats", "even share", "share of wins", "mean return of a seat")
    Grid("all copies of an agent", headings, rows).show()


def _show_parts(result: Result) -> None:
    """The share that each agent wins in each part of the matches."""
    one_table = len(result.win_rate) == 1
    n = len(result.agents)
    cells = [(0, i) for i in range(n)] if one_table else list(itertools.combinations(range(n), 2))
    rows = []
    for row, column in cells:
        name = short(result.agents[column])
        name = name if one_table else f"{short(result.agents[row])} v {name}"
        shares = [_share(part.win_rate[row][column], part.ci95[row][column], False) for part in result.parts]
        rows.append((name, *shares))
    headings = ("agents", *(f"games {part.first}-{part.last}" for part in result.parts))
    Grid("% won by part of the match ± 95 % interval", headings, rows).show()


def save_plot(folder: Path, name: str, result: Result) -> None:
    """The tournament as a plot in the folder: a cross table of pairs, else bars."""
    names = [text.replace("  ", ": ") for text in _named(result)]
    if len(result.win_rate) == 1 or result.cooperative:
        bars = len(result.teams) if result.cooperative else len(names)
        caption = f"{_title(result, 'what teams earn' if result.cooperative else 'share of wins at one table')}."
        with saved_plot(folder, name, caption, figsize=(8, 1.8 + 0.45 * bars)) as (_, axes):
            _plot_bars(axes, result, names)
        return
    size = 2 + 1.1 * len(result.agents)
    caption = f"{_title(result, '% of games that the agent of the row wins')}."
    with saved_plot(folder, name, caption, figsize=(size + 0.1 * max(map(len, names)), size)) as (_, axes):
        _plot_win_rates(axes, result, names)


def _plot_bars(axes: Any, result: Result, names: list[str]) -> None:
    """What teams earn, or the share of wins of each at one table."""
    if result.cooperative:
        names = [joined([result.agents[member] for member in team.members]) for team in result.teams]
        values, halves = [team.mean_return for team in result.teams], [team.ci95 for team in result.teams]
        mark = None if result.optimal is None else ("optimal play", next(iter(result.optimal.values())))
        what = next(iter(result.optimal)) if result.optimal else "mean return"
    else:
        values, halves = ([100 * (each or 0.0) for each in table[0]] for table in (result.win_rate, result.ci95))
        mark, what = ("an even share", 100 / result.seats), "% of games won"
    places = np.arange(len(values))[::-1]
    axes.barh(places, values, 0.6, xerr=halves, capsize=3, color="#2a6f97", ecolor="#333333")
    for place, value, half in zip(places, values, halves, strict=True):
        axes.annotate(f"{value:.4g} ± {half:.2g}", (0, place), (4, 0), textcoords="offset points", va="center", color="white")
    if mark is not None:
        axes.axvline(mark[1], color="#e76f51", linestyle="--", label=f"{mark[0]}: {mark[1]:.4g}")
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False)
    axes.set_yticks(places, names)
    axes.set_xlim(0, 1.05 * max(*values, mark[1] if mark else 0.0, 1e-9) if min(values) >= 0 else None)
    axes.set_xlabel(what)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(f"{result.game}: {result.games:,} games, seed {result.seed}", pad=28)


def _plot_win_rates(axes: Any, result: Result, names: list[str]) -> None:
    """The cross table as coloured cells."""
    rates = np.array([[np.nan if rate is None else rate for rate in row] for row in result.win_rate], float)
    axes.imshow(rates, cmap="RdYlGn", vmin=0, vmax=1)
    for (i, j), rate in np.ndenumerate(rates):
        half = result.ci95[i][j]
        if half is not None:
            text = f"{100 * rate:.1f}" + ("" if result.exact else f"\n±{100 * half:.1f}")
            axes.text(j, i, text, ha="center", va="center", fontsize=10, color="white" if abs(rate - 0.5) > 0.35 else "black")
    axes.set_xticks(range(len(names)), [f"v {letter}" for letter in letters(len(names))])
    axes.xaxis.tick_top()
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    how = "exactly" if result.exact else f"{result.games:,} games each, seed {result.seed}"
    axes.set_title(f"{result.game}: % won by the row's agent\n({how})", fontsize=11)
