"""Games of a learner against opponents, on which the environments of `gym`, `sb3` and `tensor` are built.

The learner sees the game only at its own turns. Opponents move inside `advance`, many games at a time. A reward is
what the learner earned up to its next turn or the end of its game.

Here are SeatGames, and the variant and the spaces of one seat. `turn` says what is kept of a game and a turn, and has the
kernel that takes turns; `device` drives it on a GPU.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded

from dice_envs.agent import Agent, AgentError, ask, check_plays, fault_of, fresh_memory, name_of
from dice_envs.agent.compiled import ASKED, NO_ACTION, NO_FAULT, mixed_team
from dice_envs.agent.mixture import Mixture, Opponents, resolve_opponents
from dice_envs.agent.specs import resolve
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
from dice_envs.core.dice import mix
from dice_envs.core.files import checksum
from dice_envs.core.game import OVER, Game, UnknownOptionError, Variant, single_seat, with_expected_rewards
from dice_envs.core.options import check_choice, check_range, check_reset_options, check_seed, python_value
from dice_envs.core.state import MAX_SEATS
from dice_envs.envs.learner.turn import (
    ANSWERS,
    ARRANGES,
    ASKS,
    BEGINS,
    FAILS,
    FORFEITS,
    LEARNER,
    SHOWS,
    TABLE,
    TURN,
    Shown,
    Step,
    compile_advance,
    compile_views,
    game_record,
    part,
    room_for,
)
from dice_envs.pictures.render import render

__all__ = ["LEARNER", "Mixture", "Opponents", "Shown", "Step"]


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


class Prepared(NamedTuple):
    """What turns need of opponents that were looked up."""

    identity: tuple[Any, ...]  # of the opponents and of a pool's weights
    agents: list[Agent]  # in the order of their numbers in `players`; kept, so that no others get their ids
    team: Any
    weights: np.ndarray | None  # the probability of each agent of a pool, (agents,) float64
    lasting: tuple[Any, ...]  # the arguments of the loop that stay as they are
    loop: Callable[..., int]


_NOT_PREPARED = Prepared((), [], None, None, (), len)
_ASIDE = np.uint64(0xD1CE5EED0DD5)  # separates the opponents' streams from the game's own
_mix: Callable[[np.ndarray], np.ndarray] = getattr(mix, "py_func", mix)  # of arrays, without compiling it


@dataclasses.dataclass(eq=False, repr=False)
class SeatGames:
    """n games, in each of which the learner has one seat or all of them.

    Game i depends only on its own seed and on the learner's actions in it, never on the other games, as long as agents
    draw their random numbers from `Turn.streams`.

    An opponent's memory (see `dice_envs.Agent`) is kept from game to game, at the same place after the learner's. Its match
    begins when the game is seeded, or when a Mixture puts another agent in its place.

    A step is one compiled loop (`turn`), in which opponents with kernels choose (see `dice_envs.Agent`). Where the others are
    to move, it stops, Python asks them, and it goes on.

    Args:
        variant: the game.
        num_games: number of games.
        opponents: an agent or spec for all other seats; a sequence, one for each other seat in turn order after
            the learner's; or a Mixture.
        seat: the learner's seat, or "random" to draw it for each game.
        self_play: the share of games in which the learner has every seat, 0 to 1. Each game is drawn when it starts.
        illegal_action: "raise": an illegal action of the learner's raises IllegalActionError; "lose": it ends the game with
            the least possible return, for learners without masks. The first one in a process gives a warning.
        expected_rewards: pay a roll's expected reward (see `dice_envs.core.game.with_expected_rewards`).

    Opponents are looked up when games are dealt by `start`, and when a list or Mixture of them has changed. So one whose
    options change under way is followed from the next `reset` on; put another into a Mixture to change at once.

    Attributes:
        records: (n,) of `game_record`, the games.
        masks: (n, actions) int8, the learners' legal actions as they were last shown; None before the first `start`.
        illegal: games that the last `advance` ended for an illegal action → reason.

    Raises:
        ValueError: wrong arguments; an opponent does not play the variant; or `expected_rewards` for a game that does not
            compute them.
    """

    states = part("records", "state", "(n,) of the game's states.")
    streams = part("records", "stream", "(n,) `dice_envs.core.dice.STREAM`, for the opponents' draws.")
    memories = part("records", "memory", "(n, seats, bytes) uint8, notes of the agent at each place after the learner's.", True)
    learners = part("records", "learner", "(n,) int64, the learner's seat; where it has all, that of the last or next move.")
    players = part("records", "players", "(n, seats) int64, the number of the agent at each seat, or LEARNER.", True)

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
        self.num_seats, self.illegal = facts.num_seats, dict[int, str]()
        self.masks: np.ndarray | None = None
        opponents = resolve(opponents, variant.game.name) if isinstance(opponents, str) else opponents
        self.pool = opponents if isinstance(opponents, Mixture) else None
        self._agents = resolve_opponents(opponents, variant)
        remembered = [memory.itemsize for agent in self._agents if (memory := fresh_memory(agent, 0)) is not None]
        self.records = np.zeros(num_games, game_record(variant, max(remembered, default=0)))
        self.records["players"], self.records["length"] = LEARNER, -1
        self.table = np.zeros(1, TABLE)
        places = np.append(LEARNER, np.resize(np.arange(len(self._agents)), MAX_SEATS - 1))
        self.table[0] = facts.num_seats, -1 if seat == "random" else int(seat), self.self_play, places
        self._finals = room_for(variant, num_games)  # kept: in fresh memory some steps would take a fifth longer
        self._nobody, self._shapes = room_for(variant, 0), (*(each.shape for each in self._finals), num_games)
        self._plain = np.full(num_games, NO_ACTION), np.full(num_games, SHOWS, np.int8)
        self._prepared, self._kept = _NOT_PREPARED, np.empty(self.records.nbytes, np.uint8)
        self.seed_games(np.arange(num_games), [None] * num_games)

    def __getstate__(self) -> dict[str, Any]:  # without kernels, which can't be pickled where they are interpreted
        return {**vars(self), "_prepared": _NOT_PREPARED}

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
        sequences = [np.random.SeedSequence(check_seed(seed)) for seed in seeds]
        words = np.array([sequence.generate_state(1, np.uint64)[0] for sequence in sequences], np.uint64)
        self.states["rng"][index], self.streams["rng"][index] = words, _mix(words ^ _ASIDE)
        self.records["memory"][index] = 0

    @contextlib.contextmanager
    def _unchanged_on_error(self) -> Iterator[None]:
        """Put all games back if the block raises."""
        games = self.records.view(np.uint8)  # as bytes: NumPy copies records field by field, which takes many times as long
        self._kept[...] = games
        try:
            yield
        except BaseException:
            games[...] = self._kept
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
        actions, orders = self._plain[0], self._plain[1].copy()
        orders[index] = ARRANGES if arrange else BEGINS
        given = [(i, seed) for i, seed in zip(index, seeds, strict=True) if seed is not None] if seeds else []
        with self._unchanged_on_error():
            self.seed_games(np.array([i for i, _ in given], np.int64), [seed for _, seed in given])
            self.follow(always=True)
            step = self._empty_step()
            self._run(step, actions, orders, 0)
            if arrange:
                for i in index:
                    self.variant.arrange(self.states[i], arrange)
                self._run(step)
                if self.ended()[index].any():
                    raise ValueError("the arranged game ends before the learner's turn")
        self.masks = step.shown.masks
        return step.shown

    def _empty_step(self) -> Step[np.ndarray]:
        """Return a step's fresh arrays, without finals."""
        seen, legal, count = self._shapes
        shown = Shown(np.empty(seen, np.float32), np.empty(legal, np.int8))
        return Step(np.empty(count, TURN), self.num_seats, shown, self._nobody)

    def follow(self, always: bool = False) -> Prepared:
        """Look up the opponents and a pool's weights: always, or if others have taken their places.

        Raises:
            ValueError: an opponent does not play the variant; or the pool has lost an agent that still plays.
            AgentError: an agent's kernel is malformed.
        """
        before, agents, weights = self._prepared, self.agents, self.pool.weights if self.pool else None
        identity = *map(id, agents), None if weights is None else tuple(weights)
        if identity == before.identity and (not always or mixed_team(agents, self.variant) is before.team):
            return before
        for agent in agents:
            check_plays(agent, self.variant)
        team, shares = mixed_team(agents, self.variant), self.pool.shares() if self.pool else None
        if self.players.max() >= len(agents):
            raise ValueError(f"agents that still play cannot be removed from a pool, which has only {len(agents)} now")
        sample = np.empty(1, self.variant.game.state)
        lasting = tuple(self.variant.params), team.numbers, team.options, sample, self.table, shares, self.records
        self._prepared = Prepared(identity, list(agents), team, shares, lasting, compile_advance(self.played, team.choosers))
        return self._prepared

    # --- turns --------------------------------------------------------------------------------------------------------

    def advance(
        self, actions: Any, begins: np.ndarray, restart: bool, into: Step | None = None, most: int = MOST_ACTION
    ) -> Step:
        """Play one turn of the learner in all games, up to its next one.

        If it fails, nothing has changed, unless an opponent's kernel had promised that its actions are legal and they are not.

        Args:
            actions: (n,) integers; ignored in games that begin.
            begins: (n,) bool, contiguous, the games that begin now; the learner plays in the others.
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
        step = self._empty_step() if into is None else into
        if restart and into is None:
            step.finals = self._finals
        turn = step, actions, begins.view(np.int8), most if restart else 0
        if self.follow().team.may_fail:
            with self._unchanged_on_error():
                self.illegal = self._run(*turn)
        else:
            self.illegal = self._run(*turn)
        self.masks = step.shown.masks
        return step

    def _run(
        self, step: Step[np.ndarray], actions: np.ndarray | None = None, orders: Any = None, most: int = 0
    ) -> dict[int, str]:
        """Take the learner's turns, with opponents' answers; without actions, those that have not come to an end.

        Return the games that end for an illegal action → reason.

        Raises:
            IllegalActionError: an action of the learner's is not legal, and `illegal_action` is "raise"; nothing has changed.
            AgentError: an opponent's action is malformed or not legal; games have changed.
        """
        *_, lasting, loop = self._prepared
        given = self._plain if actions is None else (actions, orders)
        arguments = lasting, step.turns, (*given, most), (*step.shown, *step.finals)
        stands, reasons = loop(*arguments, actions is None, 0, self.num_games), {}
        while stands != NO_FAULT:
            if stands == ASKED:
                self._answer(step.turns)
            elif (player := step.turns["fault"][stands, 1]) == LEARNER:
                reasons = self._lose(step.turns)
            else:
                action = int(step.turns["fault"][stands, 2])
                raise fault_of(self._prepared.agents[player], self.variant, self.states[stands], stands, action)
            stands = loop(*arguments, True, 0, self.num_games)
        return reasons

    def _lose(self, turns: np.ndarray) -> dict[int, str]:
        """Let the learner lose the games in which its action is illegal; return the reasons."""
        games = np.flatnonzero(turns["todo"] == FAILS).tolist()
        wrong = {game: int(turns["action"][game]) for game in games}
        if self.illegal_action == "raise":
            raise illegal_error(self.variant, self.states[games[0]], games[0], wrong[games[0]])
        reasons = {game: explain_illegal(self.variant, self.states[game], action) for game, action in wrong.items()}
        warn_forfeit()  # raises where warnings are errors, so before anything changes
        for game in games:
            state, learner, record = self.states[game], self.learners[game], self.records[game]
            forfeit(self.variant, state, [learner], record["returns"] + record["earned"])
            record["earned"][learner] += state["rewards"][learner]
            turns["todo"][game] = FORFEITS
        return reasons

    def _answer(self, turns: np.ndarray) -> None:
        """Ask the agents without a kernel where they are to move."""
        games = np.flatnonzero(turns["todo"] == ASKS)
        seats = self.states["seat"][games]
        players, places = self.players[games, seats], (seats - self.learners[games]) % self.players.shape[1]
        for number in np.unique(players):
            agent, index, place = self._prepared.agents[number], games[players == number], places[players == number]
            memory = fresh_memory(agent, self.num_games)
            size = 0 if memory is None else memory.itemsize
            if size > self.memories.shape[2]:
                raise AgentError(f"{name_of(agent)} remembers: it must be among the opponents from the beginning")
            if memory is not None:
                memory[index] = np.ascontiguousarray(self.memories[index, place, :size]).view(memory.dtype)[:, 0]
            turns["action"][index] = ask(agent, self.variant, self.states, index, self.streams, memory)
            if memory is not None:
                self.memories[index, place, :size] = memory[index, None].view(np.uint8)
        turns["todo"][games] = ANSWERS

    # --- what is seen -------------------------------------------------------------------------------------------------

    def ended(self) -> np.ndarray:
        """Whether the learner's game has ended, (n,) bool: the game is over, or the learner is out of it."""
        is_out = np.take_along_axis(self.states["out"], self.learners[:, None], axis=1)[:, 0] != 0
        return (self.states["seat"] == OVER) | (is_out & ~self.records["shared"])

    def view(self) -> Shown[np.ndarray]:
        """Return all games as the learners see them now, in fresh arrays."""
        step = self._empty_step()
        self.follow()
        self._run(step, *self._plain)
        self.masks = step.shown.masks
        return step.shown

    def view_all(self, out: np.ndarray) -> None:
        """Write what all seats see into `out`, (n, seats, size) float32: the learner first, then the others in turn order."""
        compile_views(self.variant.game)[1](self.variant.params, self.records, out)

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
        kept = {name: np.zeros(array.shape, array.dtype) for name, array in self._parts().items()}
        for copied, array in zip(kept.values(), self._parts().values(), strict=True):
            copied[...] = array  # `copy` would also copy the undefined padding bytes between fields
        return {**kept, "checksum": np.array(self._checksum(kept))}

    def _parts(self) -> dict[str, np.ndarray]:
        records, seats = self.records, self.players.shape[1]
        return {
            "states": self.states,
            "streams": self.streams,
            "memories": self.memories,
            "learners": self.learners,
            "players": self.players,
            "shared": records["shared"],
            "earned": records["earned"][:, :seats],
            "returns": records["returns"][:, :seats],
            "lengths": records["length"],
        }

    def _checksum(self, kept: Mapping[str, np.ndarray]) -> str:
        return checksum((self.variant.plain, int(self.table["fixed_seat"][0]), self.self_play > 0), kept)

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
        for array, before in zip(self._parts().values(), kept.values(), strict=True):
            array[...] = before
        return self.view()
