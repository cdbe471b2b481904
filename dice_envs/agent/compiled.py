"""Games between agents that choose by kernels (`dice_envs.agent.kernel`): each loop over them is compiled as a whole."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from dice_envs.agent import Agent, AgentError, check_plays, fault_of
from dice_envs.agent.kernel import Chooser, compile_chooser, random_choice
from dice_envs.core.dice import STREAM, below, choose_weighted, uniform
from dice_envs.core.game import OVER, Game, Variant
from dice_envs.core.kernel import identity, kernel
from dice_envs.core.loops import compile_check, compile_view
from dice_envs.core.options import shown
from dice_envs.core.state import relative_seat

__all__ = [
    "LEARNER",
    "NO_FAULT",
    "Advance",
    "Finals",
    "Seats",
    "Shown",
    "Start",
    "Team",
    "compile_advance",
    "play_games",
    "seat_players",
    "team_of",
]

LEARNER = -1  # the learner's number in arrays that list the player of each seat
NO_ACTION = -1
NO_FAULT = -1  # in the first entry of `fault`, which otherwise holds a row, the number of the player and its action


class Team(NamedTuple):
    """Agents that choose by kernels in one variant.

    Attributes:
        choosers: their kernels, each once.
        numbers: (agents, 2) int64, the place of each agent's kernel among these, and the row of its options.
        options: for each kernel, the options of the agents that choose by it, an array of its data type.
        may_fail: whether their actions have to be checked; those of `random` do not.
    """

    choosers: tuple[Chooser, ...]
    numbers: np.ndarray
    options: tuple[np.ndarray, ...]
    may_fail: bool


def team_of(agents: Sequence[Agent], variant: Variant) -> Team | None:
    """The agents as a team; None if some of them do not choose by kernels, or remember.

    Raises:
        ValueError: an agent does not play the variant.
        AgentError: the options of a kernel are not one record.
    """
    kinds: dict[tuple[Chooser, np.dtype[Any]], list[np.ndarray]] = {}
    places = []
    for agent in agents:
        check_plays(agent, variant)
        offers = getattr(agent, "kernel", None)
        offered = None if offers is None or getattr(agent, "remembers", None) is not None else offers(variant)
        if offered is None:
            return None
        options = offered.options
        if not isinstance(options, (np.ndarray, np.void)) or options.shape != () or options.dtype.fields is None:
            raise AgentError(
                f"{type(agent).__name__}: the options of its kernel must be one NumPy record, not {shown(options)}"
            )
        kind = Chooser(offered.choose, bool(offered.reads_hidden)), options.dtype
        rows = kinds.setdefault(kind, [])
        places.append((kind, len(rows)))
        rows.append(np.asarray(options))
    # In an order of their own, so that the same agents at other seats share one loop.
    kinds = dict(sorted(kinds.items(), key=lambda entry: _name_of_kind(*entry[0])))
    order = {kind: number for number, kind in enumerate(kinds)}
    return Team(
        choosers=tuple(chooser for chooser, _ in kinds),
        numbers=np.array([(order[kind], row) for kind, row in places], np.int64).reshape(len(places), 2),
        options=tuple(np.array(rows, dtype) for (_, dtype), rows in kinds.items()),
        may_fail=_may_fail(variant.game, (chooser for chooser, _ in kinds)),
    )


def _name_of_kind(chooser: Chooser, options: np.dtype[Any]) -> str:
    choose: Any = chooser.choose
    return f"{choose.__module__}.{choose.__qualname__} {identity(choose)} {chooser.reads_hidden} {options}"


def _may_fail(game: Game, choosers: Iterable[Chooser]) -> bool:
    trusted = random_choice(game)
    return any(chooser.choose is not trusted for chooser in choosers)


# --- who sits where ---------------------------------------------------------------------------------------------------


class Start(NamedTuple):
    """How a game with a learner begins.

    Attributes:
        num_seats: of the game.
        fixed_seat: the learner's; below 0: drawn.
        several: whether each place after the learner's has its own agent.
        weights: how often each agent of a pool is drawn, (agents,) float64; empty without a pool.
        self_play: the share of games in which the learner has every seat.
    """

    num_seats: int
    fixed_seat: int
    several: bool
    weights: np.ndarray
    self_play: float


class Seats(NamedTuple):
    """Who plays n games, and what they have earned.

    Attributes:
        learners: (n,) int64, the learner's seat.
        players: (n, seats) int64, the number of the agent at each seat, or LEARNER.
        shared: (n,) bool, where the learner has every seat.
        earned: (n, seats) float64, each seat's rewards since the learner's last turn.
    """

    learners: np.ndarray
    players: np.ndarray
    shared: np.ndarray
    earned: np.ndarray


@kernel(allocates=False)
def seat_players(state, start, seats, i):
    """Draw who plays game i, of which this is the state. Modified in place."""
    learner = below(state, start.num_seats) if start.fixed_seat < 0 else np.int64(start.fixed_seat)
    seats.learners[i] = learner
    for seat in range(start.num_seats):
        if seat == learner:
            seats.players[i, seat] = LEARNER
        elif len(start.weights) > 0:
            seats.players[i, seat] = choose_weighted(state, start.weights, len(start.weights))
        elif start.several:
            seats.players[i, seat] = (seat - learner) % start.num_seats - 1
        else:
            seats.players[i, seat] = 0
    if start.self_play > 0.0:
        seats.shared[i] = uniform(state) < start.self_play
        if seats.shared[i]:
            for seat in range(start.num_seats):
                seats.players[i, seat] = LEARNER


# --- loops ------------------------------------------------------------------------------------------------------------


class Shown(NamedTuple):
    """What the learner sees of some games.

    Attributes:
        observations: (m, size) float32.
        masks: (m, actions) int8, the legal actions; all 0 where it is not the learner's turn.
    """

    observations: np.ndarray
    masks: np.ndarray


class Finals(NamedTuple):
    """Games that have ended, as they stood at their end.

    Attributes:
        games: (m,) int64, which of the games they are.
        learners: (m,) int64.
        players: (m, seats) int64.
        returns: (m, seats) float64, what each seat has been paid in all; for who runs the loop to write.
        shown: a row for each of them.
    """

    games: np.ndarray
    learners: np.ndarray
    players: np.ndarray
    returns: np.ndarray
    shown: Shown


class Advance(NamedTuple):
    """What `compile_advance` writes: row k belongs to game index[k].

    Attributes:
        earned: (m, seats) float64, what each seat has earned up to the learner's next turn.
        ended: (m,) bool, where the learner's game has ended.
        again: (m,) bool, where a game that has begun ended before the learner's first turn.
        shown: the games as they stand then; without rows if this is not wanted.
        finals: of the games that have ended and begun again, with m rows to write into.
    """

    earned: np.ndarray
    ended: np.ndarray
    again: np.ndarray
    shown: Shown
    finals: Finals


@functools.cache
def compile_advance(game: Game, choosers: tuple[Chooser, ...]) -> Callable[..., int]:
    """One turn of the learner in many games as one loop, with all that follows up to its next turn:
    `(params, options, numbers, states, streams, start, seats, index, actions, begins, restart, sample, mask, out, fault)`.

    The games of `index` for which `begins` (m,) bool is set begin; in the others the learner plays `actions` (m,) int64.
    With `restart` a game that ends begins again at once. `sample` (1,) of the game's states and `mask` (actions,) int8 are
    work space. `out` is an `Advance`.

    Returns how many rows of `out.finals` are written. Otherwise `fault` (3,) int64 holds a row, who is at fault (LEARNER or
    the number of an agent) and the action. A fault of the learner is found before anything has changed; at one of an
    agent's the game is left as it stood when it was to move.
    """
    choose, decorate = compile_chooser(game, choosers)
    may_play, careful, view = compile_check(game), _may_fail(game, choosers), compile_view(game)
    deal, play = game.deal, game.play

    @decorate(merge=True)
    def play_on(params, options, numbers, state, stream, seats, i, action, sample, mask, fault):
        """Play the action, if there is one, and the agents' answers; returns whether all of them were legal."""
        while True:
            if action != NO_ACTION:
                play(params, state, action)
                for each in range(seats.earned.shape[1]):
                    seats.earned[i, each] += state["rewards"][each]
            seat = np.int64(state["seat"])
            if seat == OVER:
                return True
            if seats.shared[i]:
                seats.learners[i] = seat
            if seat == seats.learners[i] or state["out"][seats.learners[i]] != 0:
                return True
            agent = seats.players[i, seat]
            action = choose(numbers[agent, 0], numbers[agent, 1], params, options, state, stream, sample)
            if careful and not may_play(params, state, action, mask):
                fault[1] = agent
                fault[2] = action
                return False

    @decorate(merge=True)
    def begin(params, state, start, seats, i):
        seat_players(state, start, seats, i)
        deal(params, state)
        for each in range(seats.earned.shape[1]):
            seats.earned[i, each] = 0.0

    @decorate
    def advance(
        params, options, numbers, states, streams, start, seats, index, actions, begins, restart, sample, mask, out, fault
    ):
        fault[0] = NO_FAULT
        for k in range(len(index)):
            if not begins[k] and not may_play(params, states[index[k]], actions[k], mask):
                fault[0] = k
                fault[1] = LEARNER
                fault[2] = actions[k]
                return 0
        finals = 0
        for k in range(len(index)):
            i = index[k]
            state = states[i]
            out.ended[k] = False
            out.again[k] = False
            for each in range(seats.earned.shape[1]):
                out.earned[k, each] = 0.0
            starts = begins[k]
            while True:  # twice where a game ends and begins again
                action = np.int64(NO_ACTION)
                if starts:
                    begin(params, state, start, seats, i)
                else:
                    action = actions[k]
                if not play_on(params, options, numbers, state, streams[i], seats, i, action, sample, mask, fault):
                    fault[0] = k
                    return 0
                learner = seats.learners[i]
                over = state["seat"] == OVER or (state["out"][learner] != 0 and not seats.shared[i])
                if starts:
                    out.again[k] = over
                else:
                    out.ended[k] = over
                    for each in range(seats.earned.shape[1]):
                        out.earned[k, each] = seats.earned[i, each]
                        seats.earned[i, each] = 0.0
                is_final = restart and over and not starts
                shown = out.finals.shown if is_final else out.shown
                row = finals if is_final else k
                if len(shown.masks) > 0:
                    view(params, state, learner, shown.observations[row], shown.masks[row])
                if not is_final:
                    break
                out.finals.games[row] = i
                out.finals.learners[row] = learner
                for each in range(seats.players.shape[1]):
                    out.finals.players[row, each] = seats.players[i, each]
                finals += 1
                starts = True
        return finals

    loop: Callable[..., int] = advance
    return loop


@functools.cache
def _compile_games(game: Game, choosers: tuple[Chooser, ...]) -> Callable[..., None]:
    choose, decorate = compile_chooser(game, choosers)
    may_play, careful = compile_check(game), _may_fail(game, choosers)
    deal, play = game.deal, game.play

    @decorate
    def play_all(params, options, numbers, states, streams, shifts, returns, sample, mask, fault):
        fault[0] = NO_FAULT
        seats = returns.shape[2]
        for i in range(len(states)):
            state = states[i]
            for place in range(returns.shape[1]):
                for agent in range(seats):
                    returns[i, place, agent] = 0.0
                deal(params, state)
                shift = (shifts[i] + place) % seats
                while state["seat"] != OVER:
                    agent = relative_seat(np.int64(state["seat"]), shift, seats)
                    action = choose(numbers[agent, 0], numbers[agent, 1], params, options, state, streams[agent, i], sample)
                    if careful and not may_play(params, state, action, mask):
                        fault[0] = i
                        fault[1] = agent
                        fault[2] = action
                        return
                    play(params, state, action)
                    for each in range(seats):
                        returns[i, place, relative_seat(each, shift, seats)] += state["rewards"][each]

    loop: Callable[..., None] = play_all
    return loop


def play_games(
    variant: Variant,
    agents: Sequence[Agent],
    team: Team,
    states: np.ndarray,
    streams: Sequence[np.ndarray],
    shifts: np.ndarray,
    match: int,
) -> np.ndarray:
    """Play `match` games one after another at each of n tables, with one agent a seat.

    Args:
        variant: the game.
        agents: as many as it has seats.
        team: they, as `team_of` has them.
        states: (n,), with their random streams set; modified in place.
        streams: each agent's, (n,) each; not modified.
        shifts: (n,) int64, the seat of the first agent in the first game. The agents sit one seat further in each next one.
        match: how many games.

    Returns:
        Returns of each agent in each game, (n, match, agents) float64.

    Raises:
        AgentError: an agent's action is not legal.
    """
    facts = variant.facts
    returns = np.empty((len(states), match, facts.num_seats))
    sample, mask, fault = np.empty(1, variant.game.state), np.empty(facts.num_actions, np.int8), np.empty(3, np.int64)
    loop = _compile_games(variant.game, team.choosers)
    loop(
        variant.params, team.options, team.numbers, states, np.stack(streams).view(STREAM), shifts, returns, sample, mask, fault
    )  # fmt: skip
    if fault[0] != NO_FAULT:
        raise fault_of(agents[fault[1]], variant, states[fault[0]], int(fault[0]), int(fault[2]))
    return returns
