"""Games of a learner against opponents, on which the environments of `gym`, `sb3` and `tensor` are built.

The learner sees the game only at its own turns. Opponents move inside `advance`, many games at a time. A reward is
what the learner earned up to its next turn or the end of its game.

Here are SeatGames, and the variant and the spaces of one seat. `records` holds shared arrays, `turn` a learner's turn as one
kernel, and `device` the turn on a GPU.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded

from dice_envs.agent import Agent, AgentError, ask, fault_of, fresh_memory, name_of
from dice_envs.agent.casting import Opponents, Pool, resolve_opponents
from dice_envs.agent.compiled import ASKED, NO_ACTION, NO_FAULT, Team, context_of, mixed_team
from dice_envs.core.batch import (
    ILLEGAL_ACTIONS,
    MOST_ACTION,
    MOST_GAMES,
    IllegalAction,
    as_actions,
    explain_illegal,
    forfeit,
    illegal_error,
    warn_forfeit,
)
from dice_envs.core.dice import STREAM, mix
from dice_envs.core.files import checksum
from dice_envs.core.game import OVER, Game, UnknownOptionError, Variant, single_seat, with_expected_rewards
from dice_envs.core.options import check_choice, check_range, check_reset_options, check_seed, python_value
from dice_envs.envs.learner.records import LEARNER, Orders, Seating, Shown, Start, Step, empty_step, room_for
from dice_envs.envs.learner.turn import ANSWERS, ASKS, BEGINS, FAILS, FORFEITS, PLAYS, compile_advance
from dice_envs.pictures.render import render

__all__ = ["LEARNER", "Opponents", "Pool", "Shown", "Step"]


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
    return spaces.Box(0.0, 1.0, (variant.facts.observation_size,), np.float32), spaces.Discrete(variant.facts.num_actions)


_ASIDE = np.uint64(0xD1CE5EED0DD5)  # separates the opponents' streams from the game's own


@dataclasses.dataclass(eq=False, repr=False)
class SeatGames:
    """n games, in each of which the learner has one seat or all of them.

    Game i depends only on its own seed and on the learner's actions in it, never on the other games, as long as agents
    draw their random numbers from `Turn.streams`.

    An opponent's memory (see `dice_envs.Agent`) is kept from game to game, at the same place after the learner's. Its match
    begins when the game is seeded, or when a Pool puts another agent in its place.

    A step is one compiled loop (`turn`), in which opponents with kernels choose (see `dice_envs.Agent`). Where the others are
    to move, it stops, Python asks them, and it goes on.

    Args:
        variant: the game.
        num_games: number of games.
        opponents: an agent or spec for all other seats; a sequence, one for each other seat in turn order after
            the learner's; or a Pool.
        seat: the learner's seat, or "random" to draw it for each game.
        self_play: the share of games in which the learner has every seat, 0 to 1. Each game is drawn when it starts.
        illegal_action: "raise": an illegal action of the learner's raises IllegalActionError; "lose": it ends the game with
            the least possible return, for learners without masks. The first one in a process gives a warning.
        expected_rewards: pay a roll's expected reward (see `dice_envs.core.game.with_expected_rewards`).

    Attributes:
        seats: the arrays of all games; `states`, `streams`, `memories`, `learners` and `players` are the same ones.
        masks: (n, actions) int8, the learners' legal actions as they were last shown; None before the first `start`.
        illegal: games that the last `advance` ended for an illegal action → reason.

    Raises:
        ValueError: wrong arguments; an opponent does not play the variant; or `expected_rewards` for a game that does not
            compute them.
    """

    variant: Variant
    num_games: int
    opponents: dataclasses.InitVar[Opponents] = "random"
    seat: dataclasses.InitVar[int | str] = "random"
    self_play: float = 0.0
    illegal_action: IllegalAction = "raise"
    expected_rewards: bool = False

    def __post_init__(self, opponents: Opponents, seat: int | str) -> None:
        variant, num_games, facts = self.variant, self.num_games, self.variant.facts
        check_choice("illegal_action", self.illegal_action, ILLEGAL_ACTIONS)
        check_range("num_envs", num_games, 1, MOST_GAMES)
        check_range("self_play", self.self_play, 0, 1, whole=False)
        if self.expected_rewards:
            with_expected_rewards(variant.game)  # raises where the game does not compute them
        check_choice("seat", python_value(seat), ("random", *range(facts.num_seats)))
        self.self_play = float(self.self_play) if facts.num_seats > 1 else 0.0
        self.illegal: dict[int, str] = {}
        self.masks: np.ndarray | None = None
        self.pool = opponents if isinstance(opponents, Pool) else None
        self._agents = resolve_opponents(opponents, variant)
        remembered = [memory.itemsize for agent in self._agents if (memory := fresh_memory(agent, 0)) is not None]
        self.seats = Seating(
            states=np.zeros(num_games, variant.game.state),
            streams=np.zeros(num_games, STREAM),
            memories=np.zeros((num_games, facts.num_seats, max(remembered, default=0)), np.uint8),
            learners=np.zeros(num_games, np.int64),
            players=np.full((num_games, facts.num_seats), LEARNER, np.int64),
            shared=np.zeros(num_games, bool),
            earned=np.zeros((num_games, facts.num_seats)),
            returns=np.zeros((num_games, facts.num_seats)),
            lengths=np.full(num_games, -1),
        )
        self.states, self.streams, self.memories, self.learners, self.players, *_ = self.seats
        self._begin = Start(
            fixed_seat=-1 if seat == "random" else int(seat),
            places=np.append(LEARNER, np.resize(np.arange(len(self._agents)), facts.num_seats - 1)),
            weights=np.zeros(0),
            self_play=self.self_play,
            before=np.empty(facts.num_seats, np.int64),
        )
        self._prepared: tuple[Any, ...] = (None,)  # a team, its context, and whether some of it are asked
        self._finals = room_for(variant, num_games)  # kept: in fresh memory some steps would take a fifth longer
        self._all = np.arange(num_games)
        self.seed_games(self._all, [None] * num_games)

    def __getstate__(self) -> dict[str, Any]:  # without kernels, which can't be pickled where they are interpreted
        return {**vars(self), "_prepared": (None,)}

    @property
    def played(self) -> Game:
        """The game whose kernels are played."""
        return with_expected_rewards(self.variant.game) if self.expected_rewards else self.variant.game

    @property
    def agents(self) -> list[Agent]:
        """The opponents, in the order of their numbers in `players`."""
        return self.pool.agents if self.pool else self._agents

    def seed_games(self, index: np.ndarray, seeds: Sequence[int | None]) -> None:
        """Seed games one by one (None: fresh entropy), from each one's next `start` on. ValueError before any change."""
        for i, seed in zip(index, [check_seed(seed) for seed in seeds], strict=True):
            self.states["rng"][i] = np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]
            self.streams["rng"][i] = mix(self.states["rng"][i] ^ _ASIDE)
        self.memories[index] = 0

    @contextlib.contextmanager
    def _unchanged_on_error(self) -> Iterator[None]:
        """Put all arrays back if the block raises."""
        # Copied as bytes: NumPy copies records field by field, which takes many times as long.
        arrays = [array.reshape(-1).view(np.uint8) for array in self.seats if array.size]
        kept = [array.copy() for array in arrays]
        try:
            yield
        except BaseException:
            for array, before in zip(arrays, kept, strict=True):
                array[...] = before
            raise

    # --- the beginning of games ---------------------------------------------------------------------------------------

    def start(self, index: np.ndarray, arrange: Any = None, seeds: Sequence[int | None] | None = None) -> Shown:
        """Deal these games and play up to the learner's first turn; return all games as the learners see them now.

        A game that ends before the learner's first turn is dealt again, because the learner decides nothing in it.

        Args:
            index: (m,) integers, the games.
            arrange: the game's own reset options.
            seeds: of these games; where there is none, the game's random streams continue.

        Raises:
            ValueError: wrong seeds or reset options; nothing has changed.
            AgentError: an opponent's action is malformed or not legal; nothing has changed.
        """
        index = np.asarray(index, np.int64)
        check_reset_options(arrange)
        todo = np.zeros(self.num_games, np.int8)
        todo[index] = BEGINS
        actions = np.full(self.num_games, NO_ACTION, np.int64)
        moves = Orders(actions, todo, restart=False, most=MOST_ACTION, arranged=bool(arrange))
        step = empty_step(self.variant, self.num_games)
        given = [(i, seed) for i, seed in zip(index, seeds, strict=True) if seed is not None] if seeds else []
        with self._unchanged_on_error():
            self.seed_games(np.array([i for i, _ in given], np.int64), [seed for _, seed in given])
            team = mixed_team(self.agents, self.variant)
            self._run(team, moves, step)
            if arrange:
                for i in index:
                    self.variant.arrange(self.states[i], arrange)
                self._run(team, moves, step)
                if self.ended()[index].any():
                    raise ValueError("the arranged game ends before the learner's turn")
        return self.view()

    @property
    def begin(self) -> Start:
        """How games begin now."""
        return self._begin._replace(weights=self.pool.shares()) if self.pool else self._begin

    # --- turns --------------------------------------------------------------------------------------------------------

    def advance(
        self, actions: Any, begins: np.ndarray, restart: bool, into: Step | None = None, most: int = MOST_ACTION
    ) -> Step:
        """Play one turn of the learner in all games, up to its next one.

        If it fails, nothing has changed, unless an opponent's kernel had promised that its actions are legal and they are not.

        Args:
            actions: (n,) integers; ignored in games that begin.
            begins: (n,) bool, the games that begin now; the learner plays in the others.
            restart: whether games that end begin again at once.
            into: arrays to write the step into; None: fresh ones.
            most: the learner's turns after which games that go on begin again, too, if `restart`.

        Raises:
            ResetNeeded: no game has begun.
            IllegalActionError: an action of the learner's is malformed; or it is not legal, and `illegal_action` is "raise".
            AgentError: an opponent's action is.
        """
        if self.masks is None:
            raise ResetNeeded("call reset before step")
        actions = as_actions(actions, self.num_games)
        moves = Orders(actions, begins * np.int8(BEGINS - PLAYS) + np.int8(PLAYS), restart, most, arranged=False)
        step = empty_step(self.variant, self.num_games) if into is None else into
        if restart and into is None:
            step = step._replace(finals=self._finals)
        team = mixed_team(self.agents, self.variant)
        with self._unchanged_on_error() if team.may_fail else contextlib.nullcontext():
            self.illegal = self._run(team, moves, step)
        self.masks = step.shown.masks
        return step

    def _run(self, team: Team, moves: Orders, step: Step) -> dict[int, str]:
        """Take the learner's turns, with opponents' answers; return those that end for an illegal action → reason.

        Raises:
            IllegalActionError: an action of the learner's is not legal, and `illegal_action` is "raise"; nothing has changed.
            AgentError: an opponent's action is malformed or not legal; games have changed.
            ValueError: the pool has lost an agent that still plays.
        """
        if self.players.max() >= len(team.numbers):
            raise ValueError(f"agents that still play cannot be removed from a pool, which has only {len(team.numbers)} now")
        if self._prepared[0] is not team:
            self._prepared = team, context_of(self.variant, team), (team.numbers[:, 0] == ASKED).any()
        (_, context, asks), start = self._prepared, self.begin
        loop = compile_advance(self.played, team.choosers)
        reasons: dict[int, str] = {}
        while True:
            loop(context, self.seats, start, moves, step)
            game, player, action = context.fault.tolist()
            if game == NO_FAULT:
                if not asks or not self._answer(moves):
                    return reasons
            elif player == LEARNER:
                reasons = self._lose(moves)
            else:
                raise fault_of(self.agents[player], self.variant, self.states[game], game, action)

    def _lose(self, moves: Orders) -> dict[int, str]:
        """Let the learner lose the games in which its action is illegal; return the reasons."""
        games = np.flatnonzero(moves.todo == FAILS).tolist()
        if self.illegal_action == "raise":
            raise illegal_error(self.variant, self.states[games[0]], games[0], int(moves.actions[games[0]]))
        reasons = {game: explain_illegal(self.variant, self.states[game], int(moves.actions[game])) for game in games}
        warn_forfeit()  # raises where warnings are errors, so before anything changes
        for game in games:
            state, learner = self.states[game], self.learners[game]
            forfeit(self.variant, state, [learner], self.seats.returns[game] + self.seats.earned[game])
            self.seats.earned[game, learner] += state["rewards"][learner]
            moves.todo[game] = FORFEITS
        return reasons

    def _answer(self, moves: Orders) -> bool:
        """Ask the agents without a kernel where they are to move; return whether there were any."""
        games = np.flatnonzero(moves.todo == ASKS)
        seats = self.states["seat"][games]
        players, places = self.players[games, seats], (seats - self.learners[games]) % self.players.shape[1]
        for number in np.unique(players):
            agent, index, place = self.agents[number], games[players == number], places[players == number]
            memory = fresh_memory(agent, self.num_games)
            size = 0 if memory is None else memory.itemsize
            if size > self.memories.shape[2]:
                raise AgentError(f"{name_of(agent)} remembers: it must be among the opponents from the beginning")
            if memory is not None:
                memory[index] = np.ascontiguousarray(self.memories[index, place, :size]).view(memory.dtype)[:, 0]
            moves.actions[index] = ask(agent, self.variant, self.states, index, self.streams, memory)
            if memory is not None:
                self.memories[index, place, :size] = memory[index, None].view(np.uint8)
        moves.todo[games] = ANSWERS
        return len(games) > 0

    # --- what is seen -------------------------------------------------------------------------------------------------

    def ended(self) -> np.ndarray:
        """Whether the learner's game has ended, (n,) bool: the game is over, or the learner is out of it."""
        is_out = (self.states["out"][self._all, self.learners] != 0) & ~self.seats.shared
        return (self.states["seat"] == OVER) | is_out

    def view(self) -> Shown:
        """Return all games as the learners see them now, in fresh arrays."""
        shown = room_for(self.variant, self.num_games)
        self.variant.kernels.view(self.variant.params, self.states, self._all, self.learners, *shown)
        shown.masks[self.ended()] = 1
        self.masks = shown.masks
        return shown

    def view_all(self, out: np.ndarray) -> None:
        """Write what all seats see into `out`, (n, seats, size) float32: the learner first, then the others in turn order."""
        for place in range(out.shape[1]):
            seats = (self.learners + place) % out.shape[1]
            self.variant.kernels.observe(self.variant.params, self.states, self._all, seats, out[:, place])

    def action_masks(self) -> np.ndarray:
        """Return the learners' legal actions, (n, actions) bool, as MaskablePPO expects them; ResetNeeded before `start`."""
        if self.masks is None:
            raise ResetNeeded("call reset before action_masks")
        return self.masks.astype(bool)

    def draw(self, i: int, mode: str | None) -> Any:
        """Draw game i as its learner sees it, see `dice_envs.pictures.render.render`."""
        return render(self.variant, None if self.masks is None else self.states[i], int(self.learners[i]), mode)

    # --- snapshots ----------------------------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, np.ndarray]:
        """Return copies of everything that determines how started games continue, except the agents themselves."""
        kept = {name: np.zeros(array.shape, array.dtype) for name, array in self.seats._asdict().items()}
        for copied, array in zip(kept.values(), self.seats, strict=True):
            copied[...] = array  # `copy` would also copy the undefined padding bytes between fields
        return {**kept, "checksum": np.array(self._checksum(kept))}

    def _checksum(self, kept: Mapping[str, np.ndarray]) -> str:
        return checksum((self.variant.plain, self._begin.fixed_seat, self.self_play > 0), kept)

    def restore(self, snapshot: Mapping[str, np.ndarray]) -> Shown:
        """Go back to a snapshot of the same variant, number of games and agents; return the games as learners see them.

        Its checksum must fit. Otherwise the values of states are not checked: games do not declare which are possible, and for
        others kernels may read out of bounds.

        Raises:
            ValueError: it is not a snapshot of such games, or has been changed; nothing has changed.
        """
        kept = self.snapshot()
        for name, array in kept.items():
            given = snapshot.get(name) if isinstance(snapshot, Mapping) else None
            if not isinstance(given, np.ndarray) or given.dtype != array.dtype or given.shape != array.shape:
                raise ValueError(f"a snapshot of these games has {name} of shape {array.shape} and the same data type")
            array[...] = given
        if str(kept.pop("checksum")) != self._checksum(kept):
            raise ValueError(f"the snapshot has been changed, or is of games made otherwise than these of {self.variant}")
        if (kept["lengths"] < 0).any():
            raise ValueError("the snapshot has games that have not begun")
        if kept["players"].max() >= len(self.agents):
            raise ValueError(f"the snapshot has opponents other than the {len(self.agents)} there are")
        for array, before in zip(self.seats, kept.values(), strict=True):
            array[...] = before
        return self.view()
