"""Games of a learner against opponents, on which the environments of `gym` and `sb3` are built.

The learner sees the game only at its own turns. Opponents move inside `advance`, many games at a time. A reward is
what the learner earned up to its next turn or the end of its game.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

import numpy as np
from gymnasium import spaces

from dice_envs.agent import Agent, fault_of
from dice_envs.agent.compiled import NO_FAULT, Team, context_of, team_of
from dice_envs.core.batch import (
    ILLEGAL_ACTIONS,
    MOST_GAMES,
    IllegalAction,
    IllegalActionError,
    as_actions,
    explain_illegal,
    forfeit,
    illegal_error,
    play_checked,
    warn_forfeit,
)
from dice_envs.core.dice import STREAM, mix, uniform
from dice_envs.core.expected import with_expected_rewards
from dice_envs.core.game import OVER, Game, UnknownOptionError, Variant, single_seat
from dice_envs.core.kernel import kernel
from dice_envs.core.loops import Kernels, compile_kernels
from dice_envs.core.options import check_choice, check_range, check_reset_options, check_seed, shown
from dice_envs.envs.learner.compiled import Moves, compile_advance, empty_step
from dice_envs.envs.learner.opponents import Memories, Opponents, Pool, resolve_opponents
from dice_envs.envs.learner.records import LEARNER, Finals, Seats, Shown, Start, Step, first_rows, room_for, seat_players

__all__ = ["SeatGames", "check_arrays", "seat_spaces", "seat_variant"]

_ASIDE = np.uint64(0xD1CE5EED0DD5)  # separates the opponents' streams from the game's own


@kernel
def _seat_all(states, index, start, seats):
    for i in index:
        seat_players(states[i], start, seats, i)


@kernel
def _choose_games(states, index, share, chosen):
    for k in range(len(index)):
        chosen[k] = uniform(states[index[k]]) < share


@kernel
def _mix_all(streams, aside):
    for i in range(len(streams)):
        streams[i]["rng"] = mix(streams[i]["rng"] ^ aside)


class _UnchangedOnError:
    """A context manager that restores the arrays if its block raises. It cannot be nested in itself."""

    def __init__(self, *arrays: np.ndarray) -> None:
        # Copied as bytes: NumPy copies records field by field, which takes many times as long.
        self._arrays = tuple(array.reshape(-1).view(np.uint8) for array in arrays if array.size)
        self._kept = tuple(np.empty_like(array) for array in self._arrays)

    def __enter__(self) -> None:
        for kept, array in zip(self._kept, self._arrays):
            kept[...] = array

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is not None:
            for kept, array in zip(self._kept, self._arrays):
                array[...] = kept


class SeatGames:
    """n games, in each of which the learner has one seat or all of them.

    Game i depends only on its own seed and on the learner's actions in it, never on the other games, as long as agents
    draw their random numbers from `Turn.streams`.

    An opponent's memory (see `dice_envs.Agent`) is kept from game to game, at the same place after the learner's. Its match
    begins when the game is seeded, or when a Pool puts another agent in its place.

    If `advance` fails, by wrong input or an opponent's illegal action, nothing has changed, unless the opponent's kernel had
    promised that its actions are legal. Call `start` and `play` inside
    `with games.unchanged_on_error:`, which makes them atomic as well.

    Where all opponents choose by kernels (see `dice_envs.Agent`), `advance` is one compiled loop; otherwise Python asks each
    of them, move by move. Results are the same.

    Args:
        variant: the game.
        num_games: number of games.
        opponents: an agent or spec for all other seats; a sequence, one for each other seat in turn order after
            the learner's; or a Pool.
        seat: the learner's seat, or "random" to draw it for each game.
        self_play: the share of games in which the learner has every seat, 0 to 1. Each game is drawn when it starts.
        illegal_action: "raise": an illegal action of the learner's raises IllegalActionError; "lose": it ends the game with
            the least possible return, for learners without masks. The first one in a process gives a warning.
        expected_rewards: pay a roll's expected reward (see `dice_envs.core.expected`).

    Attributes:
        returns: (n, seats) float64, each seat's rewards since its game began.
        illegal: games that the last `play` ended for an illegal action → reason.
        exploration: the share of self-play games that start with random moves, 1, 2, 3 … with probability 1/2, 1/4, 1/8 …
            They show positions that the learner would not reach. 0 at first; may be changed between games.
        learners: (n,) int64, the learner's seat; where it has all, the one that is to move or moved last.

    Raises:
        ValueError: wrong arguments; an opponent does not play the variant; or `expected_rewards` for a game that does not
            compute them.
    """

    def __init__(
        self,
        variant: Variant,
        num_games: int,
        opponents: Opponents = "random",
        seat: int | str = "random",
        self_play: float = 0.0,
        illegal_action: IllegalAction = "raise",
        expected_rewards: bool = False,
    ) -> None:
        facts = variant.facts
        check_choice("illegal_action", illegal_action, ILLEGAL_ACTIONS)
        check_range("num_envs", num_games, 1, MOST_GAMES)
        check_range("self_play", self_play, 0, 1, whole=False)
        if expected_rewards:
            with_expected_rewards(variant.game)  # raises where the game does not compute them
        if seat != "random":
            if isinstance(seat, str):
                raise ValueError(f"seat must be 'random' or a number from 0 to {facts.num_seats - 1}, not {shown(seat)}")
            check_range("seat", seat, 0, facts.num_seats - 1)
        self.variant = variant
        self.num_games = num_games
        self.fixed_seat = -1 if seat == "random" else int(seat)
        self.self_play = float(self_play) if facts.num_seats > 1 else 0.0
        self.illegal_action = illegal_action
        self.expected_rewards = expected_rewards
        self.illegal: dict[int, str] = {}
        self.exploration = 0.0
        self.pool = opponents if isinstance(opponents, Pool) else None
        self._agents = resolve_opponents(opponents, variant)
        self.states = np.zeros(num_games, variant.game.state)
        self.streams = np.zeros(num_games, STREAM)
        self._seats = Seats(
            learners=np.zeros(num_games, np.int64),
            players=np.full((num_games, facts.num_seats), LEARNER, np.int64),
            shared=np.zeros(num_games, bool),
            earned=np.zeros((num_games, facts.num_seats)),
            returns=np.zeros((num_games, facts.num_seats)),
        )
        self.learners, self.players, self.returns = self._seats.learners, self._seats.players, self._seats.returns
        self._memories = Memories(self._agents, num_games, facts.num_seats)
        self.memories = self._memories.records
        self.unchanged_on_error = _UnchangedOnError(self.states, self.streams, *self._seats, self.memories)
        self.seed_games(np.arange(num_games), [None] * num_games)

    @property
    def _played(self) -> Game:
        """The game whose kernels are played."""
        return with_expected_rewards(self.variant.game) if self.expected_rewards else self.variant.game

    @property
    def _kernels(self) -> Kernels:
        return compile_kernels(self._played)

    @property
    def agents(self) -> list[Agent]:
        """The opponents, in the order of their numbers in `players`."""
        return self.pool.agents if self.pool else self._agents

    def seed_games(self, index: np.ndarray, seeds: Sequence[int | None]) -> None:
        """Seed games one by one (None: fresh entropy). The seeds apply from each game's next `start`.

        Raises:
            ValueError: a wrong seed; nothing has changed.
        """
        checked = [check_seed(seed) for seed in seeds]
        for i, seed in zip(index, checked, strict=True):
            self.states["rng"][i] = np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]
        self.memories[index] = 0
        self.streams[index] = self.states["rng"][index].view(STREAM)
        chosen = self.streams[index]
        _mix_all(chosen, _ASIDE)
        self.streams[index] = chosen

    # --- the beginning of games ---------------------------------------------------------------------------------------

    def start(self, index: np.ndarray, arrange: Any = None) -> None:
        """Deal these games and play up to the learner's first turn. Their random streams continue.

        A game that ends before the learner's first turn is dealt again, because the learner decides nothing in it.

        Args:
            index: (m,) integers, the games.
            arrange: the game's own reset options.

        Raises:
            ValueError: wrong reset options.
            AgentError: an opponent's action is malformed or not legal.
        """
        index = np.asarray(index, np.int64)
        check_reset_options(arrange)
        arranged = bool(arrange) and self.variant.game.arrange is not None
        team = None if arranged else self._team()
        while len(index):
            if team is not None:
                moves = Moves(index, index, np.ones(len(index), bool), restart=False)
                _, again = self._run(team, moves, show=False)
                index = index[again]
                continue
            self._deal(index, arrange if arranged else None)
            self._answer(index)
            index = index[self.ended(index)]
            if arranged and len(index):
                raise ValueError("the arranged game ends before the learner's turn")

    def _deal(self, index: np.ndarray, arrange: Any) -> None:
        """Seat the players and deal; with exploration, make random first moves."""
        variant = self.variant
        before = self._at_places(index) if self.pool and self.memories.size else None
        _seat_all(self.states, index, self._start, self._seats)
        if before is not None:
            rows, places = np.nonzero(before != self._at_places(index))
            self.memories[index[rows], places] = 0
        variant.kernels.deal(variant.params, self.states, index)
        if arrange:
            for i in index:
                variant.game.arrange(variant.options, self.states[i], arrange)  # type: ignore[misc]
        self.returns[index] = 0
        self._seats.earned[index] = 0
        if self.self_play and self.exploration:
            chosen = np.empty(len(index), bool)
            _choose_games(self.states, index, self.exploration, chosen)
            mask = np.empty(variant.facts.num_actions, np.int8)
            self._kernels.wander(variant.params, self.states, index[chosen & self._seats.shared[index]], mask)

    def _team(self) -> Team | None:
        """Return the opponents if games can be one compiled loop, which has no random first moves for exploration."""
        return None if self.self_play and self.exploration else team_of(self.agents, self.variant)

    @property
    def _start(self) -> Start:
        return Start(
            num_seats=self.variant.facts.num_seats,
            fixed_seat=self.fixed_seat,
            several=len(self.agents) > 1,
            weights=self.pool.shares() if self.pool else np.zeros(0),
            self_play=self.self_play,
        )

    def _at_places(self, index: np.ndarray) -> np.ndarray:
        """Return the number of the agent at each place after the learner's, (m, seats) int64; LEARNER at place 0."""
        seats = self.players.shape[1]
        places = (self.learners[index, None] + np.arange(seats)) % seats
        found: np.ndarray = np.take_along_axis(self.players[index], places, axis=1)
        return found

    # --- turns --------------------------------------------------------------------------------------------------------

    def advance(self, actions: Any, begins: np.ndarray, restart: bool) -> Step:
        """Play one turn of the learner in all games, up to its next one. If it fails, nothing has changed (but see the class).

        Args:
            actions: (n,) integers; ignored in games that begin.
            begins: (n,) bool, the games that begin now; the learner plays in the others.
            restart: whether games that end begin again at once.

        Raises:
            IllegalActionError: an action of the learner's is malformed or not legal.
            AgentError: an opponent's action is.
        """
        everything = np.arange(self.num_games)
        moves = Moves(everything, as_actions(actions, self.num_games), begins, restart)
        team = self._team()
        reasons = self.illegal
        self.illegal = {}
        try:
            if team is not None:
                try:
                    return self._advance_compiled(team, moves)
                except IllegalActionError:  # nothing has changed
                    if self.illegal_action == "raise":
                        raise
            with self.unchanged_on_error:
                return self._advance_by_asking(moves)
        except BaseException:
            self.illegal = reasons
            raise

    def _advance_compiled(self, team: Team, moves: Moves) -> Step:
        # The learner's faults are found before anything changes.
        with self.unchanged_on_error if team.may_fail else contextlib.nullcontext():
            step, again = self._run(team, moves, show=True)
            if again.any():
                games = moves.games[again]
                self.start(games)
                step.shown.observations[again], step.shown.masks[again] = self.view(games)
        return step

    def _run(self, team: Team, moves: Moves, show: bool) -> tuple[Step, np.ndarray]:
        """Run the compiled loop once; return the step, and (m,) bool where a new game ended before the learner's first turn.

        Raises:
            IllegalActionError: an action of the learner's is not legal; nothing has changed.
            AgentError: an opponent's action is; games have changed.
            ValueError: the pool has lost an agent that still plays.
        """
        if self.players.max() >= len(team.numbers):
            raise ValueError(f"agents that still play cannot be removed from a pool, which has only {len(team.numbers)} now")
        count = len(moves.games)
        step, again = empty_step(self.variant, count, show, moves.restart), np.empty(count, bool)
        context = context_of(self.variant, team)
        loop = compile_advance(self._played, team.choosers)
        finals = loop(context, self.states, self.streams, self._start, self._seats, moves, again, step)
        row, player, action = context.fault.tolist()
        if row != NO_FAULT:
            game = int(moves.games[row])
            if player == LEARNER:
                raise illegal_error(self.variant, self.states[game], game, action)
            raise fault_of(self.agents[player], self.variant, self.states[game], game, action)
        return step._replace(finals=first_rows(step.finals, finals)) if moves.restart else step, again

    def _advance_by_asking(self, moves: Moves) -> Step:
        everything = moves.games
        earned, ended = np.zeros(self.returns.shape), np.zeros(self.num_games, bool)
        playing = everything[~moves.begins]
        if len(playing):
            earned[playing], ended[playing] = self.play(playing, moves.actions[playing])
        self.start(everything[moves.begins])
        over = everything[ended] if moves.restart else everything[:0]
        finals = Finals(over, self.learners[over], self.players[over], self.returns[over], self.view(over))
        self.start(over)
        return Step(earned, ended, self.view(everything), finals)

    def play(self, index: np.ndarray, actions: Any) -> tuple[np.ndarray, np.ndarray]:
        """Play the learner's actions in the games of `index`, and the opponents' answers.

        Returns:
            (m, seats) float64, each seat's rewards up to the learner's next turn; (m,) bool, whether the learner's game has
            ended.

        Raises:
            IllegalActionError: an action of the learner's is malformed; or it is not legal, and `illegal_action` is "raise".
            AgentError: an opponent's action is malformed or not legal.
        """
        if self.illegal_action == "lose":
            self._play_or_lose(index, as_actions(actions, len(index)))
        else:
            play_checked(self.variant, self.states, index, actions, self._kernels)
        self._seats.earned[index] += self.states["rewards"][index, : self.variant.facts.num_seats]
        self._answer(index)
        earned = self._seats.earned[index]
        self._seats.earned[index] = 0
        self.returns[index] += earned
        return earned, self.ended(index)

    def _play_or_lose(self, index: np.ndarray, actions: np.ndarray) -> None:
        """Play the legal actions; end the games with the others."""
        variant = self.variant
        masks = np.empty((len(index), variant.facts.num_actions), np.int8)
        variant.kernels.legal(variant.params, self.states, index, masks)
        exists = (actions >= 0) & (actions < variant.facts.num_actions)
        legal = exists & (masks[np.arange(len(index)), np.where(exists, actions, 0)] != 0)
        self._kernels.play(variant.params, self.states, index[legal], actions[legal])
        self.illegal = {}
        for i, action in zip(index[~legal], actions[~legal]):
            self.illegal[int(i)] = explain_illegal(variant, self.states[i], int(action))
            forfeit(variant, self.states[i], [self.learners[i]], self.returns[i] + self._seats.earned[i])
            warn_forfeit()

    def _answer(self, index: np.ndarray) -> None:
        """Let opponents play in the games of `index` until the learner's turn or the end of its game."""
        variant = self.variant
        while True:
            seats = self.states["seat"][index].astype(np.int64)
            if self.self_play:
                to_move = self._seats.shared[index] & (seats != OVER)
                self.learners[index[to_move]] = seats[to_move]
            waits = (seats == OVER) | (seats == self.learners[index])
            if not waits.all() or (seats == OVER).any():
                waits |= self._is_out(index)
            if waits.all():
                return
            index, seats = index[~waits], seats[~waits]
            players = self.players[index, seats]
            for number, agent in enumerate(self.agents):
                mine = index if len(self.agents) == 1 else index[players == number]
                if len(mine):
                    actions = self._memories.ask(agent, variant, self.states, mine, self.streams, self.learners)
                    self._kernels.play(variant.params, self.states, mine, actions)
                    self._seats.earned[mine] += self.states["rewards"][mine, : variant.facts.num_seats]

    def ended(self, index: np.ndarray) -> np.ndarray:
        """Whether the learner's game has ended, (m,) bool: the game is over, or the learner is out of it."""
        return (self.states["seat"][index] == OVER) | self._is_out(index)

    def _is_out(self, index: np.ndarray) -> np.ndarray:
        """Whether the learner has one seat and that is out, (m,) bool."""
        return (self.states["out"][index, self.learners[index]] != 0) & ~self._seats.shared[index]

    def view(self, index: np.ndarray) -> Shown:
        """Return the games as the learners see them now, in fresh arrays."""
        shown = room_for(self.variant, len(index))
        self.variant.kernels.view(self.variant.params, self.states, index, self.learners[index], *shown)
        shown.masks[self.ended(index)] = 1
        return shown

    # --- snapshots ----------------------------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, np.ndarray]:
        """Return copies of everything that determines how started games continue, except the agents themselves."""
        states = np.zeros(self.num_games, self.states.dtype)
        states[:] = self.states  # `copy` would also copy the undefined padding bytes between fields
        kept = {
            "states": states,
            "learners": self.learners.copy(),
            "players": self.players.copy(),
            "streams": self.streams.copy(),
            "earned": self._seats.earned.copy(),
            "returns": self.returns.copy(),
        }
        return {**kept, "memories": self.memories.copy()} if self.memories.size else kept

    def restore(self, snapshot: Mapping[str, np.ndarray]) -> None:
        """Go back to a snapshot of the same variant, number of games and agents.

        Only the seat to move of each state is checked; the game's own fields are taken as they are.

        Raises:
            ValueError: it is not a snapshot of such games; nothing has changed.
        """
        check_arrays(snapshot, self.snapshot())
        learners, players, seat = snapshot["learners"], snapshot["players"], snapshot["states"]["seat"]
        seats = np.arange(self.variant.facts.num_seats)
        if not np.isin(learners, seats if self.fixed_seat < 0 else self.fixed_seat).all():
            raise ValueError("the snapshot has learners at seats where they cannot be")
        if not ((seat >= OVER) & (seat < len(seats))).all():
            raise ValueError("the snapshot has seats to move that the game does not have")
        shared = (players == LEARNER).all(axis=1) & (self.self_play > 0)
        learns = (seats == learners[:, None]) | shared[:, None]
        if (players[learns] != LEARNER).any() or not np.isin(players[~learns], np.arange(len(self.agents))).all():
            raise ValueError(f"the snapshot has opponents other than the {len(self.agents)} there are")
        self.states[:] = snapshot["states"]
        self.streams[:] = snapshot["streams"]
        held = {"learners": learners, "players": players, "shared": shared}
        held |= {"earned": snapshot["earned"], "returns": snapshot["returns"]}
        for own, given in zip(self._seats, Seats(**held), strict=True):
            own[:] = given
        if self.memories.size:
            self.memories[:] = snapshot["memories"]


def check_arrays(found: Mapping[str, Any], like: Mapping[str, np.ndarray]) -> None:
    """Raise ValueError unless `found` has an array of the same kind for each of `like`, with finite numbers in it."""
    for name, array in like.items():
        given = found.get(name)
        if not isinstance(given, np.ndarray) or given.dtype != array.dtype or given.shape != array.shape:
            raise ValueError(f"a snapshot of these games has {name} of shape {array.shape} and the same data type")
        if given.dtype.kind == "f" and not np.isfinite(given).all():
            raise ValueError(f"the snapshot's {name} are not all finite")


def seat_variant(game: str | Game | Variant, options: Mapping[str, Any]) -> Variant:
    """Return the variant that an environment of one seat plays.

    Raises:
        UnknownOptionError: the game has no such option. The message contains Python's words for an unknown keyword argument,
            because TorchRL tries the argument `frameskip` and drops it when it reads them.
        ValueError: an option's value is not allowed.
    """
    try:
        return single_seat(game, **options)
    except UnknownOptionError as problem:
        raise UnknownOptionError(f"unexpected keyword argument {problem.option!r}: {problem}", problem.option) from None


def seat_spaces(variant: Variant) -> tuple[spaces.Box, spaces.Discrete]:
    """Return the observation and action space of one seat."""
    facts = variant.facts
    return spaces.Box(0.0, 1.0, (facts.observation_size,), np.float32), spaces.Discrete(facts.num_actions)
