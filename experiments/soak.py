"""`soak`: every game, with random options, through every interface, checked at every move for as long as asked.

Most moves are played in one compiled loop, which checks what the contract promises. The others go through the interfaces, by
callers who also do what they must not.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import itertools
import os
import types
import typing
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from rich.text import Text

from dice_envs.core.batch import Batch, IllegalAction, IllegalActionError
from dice_envs.core.dice import below, choose_from_mask, new_streams, next_u64
from dice_envs.core.game import OVER, Game, Variant, load
from dice_envs.core.kernel import kernel
from dice_envs.core.loops import compile_check
from dice_envs.core.options import shown
from dice_envs.envs import aec
from dice_envs.envs.gym import SeatEnv, SeatVectorEnv
from dice_envs.experiments.ui.console import console
from dice_envs.experiments.ui.grids import Grid

__all__ = ["CALLERS", "MOST_MOVES", "Fault", "Row", "broken", "grown", "random_variant", "resident_bytes", "show", "soak"]

MOST_MOVES = 10**13

ROUNDS = 10  # in each, every game is played in every way, with options drawn anew
VARIANTS = 4  # of a game in a round
SHARE = 2000  # one move in so many goes through each interface: they are a thousand times slower than the loop
LOOK = 8  # of so many moves, one is looked at more closely
WRONG = 0.05  # share of actions that are not legal
VECTOR_GAMES = 16
ROUNDING = 1e-4  # of sums of rewards
NAMES = ("Ada", "meat", "hot bath", "<b>", "Ł & Co", "x" * 24, '"', "drug 1")  # for options that take names
LEAVES = 64 * 2**20  # bytes that may be added from the second round on: caches of a fixed size fill up


class Fault(AssertionError):
    """A promise was broken."""


def ensure(holds: Any, what: str) -> None:
    """Raise Fault with these words unless it holds."""
    if not holds:
        raise Fault(what)


# --- options ----------------------------------------------------------------------------------------------------------


def random_variant(game: Game, rng: np.random.Generator) -> Variant:
    """The game with some options drawn at random among all that their types allow; those that it refuses are drawn again."""
    hints = typing.get_type_hints(game.options)
    while True:
        chosen = [name for name in hints if rng.random() < 0.5]
        try:
            return game.configure(**{name: _value(hints[name], rng) for name in chosen})
        except ValueError:
            continue


def _value(hint: Any, rng: np.random.Generator) -> Any:
    """A value of an option's type. Numbers are small ones, for the most part."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        kinds = typing.get_args(hint)
        return _value(kinds[rng.integers(len(kinds))], rng)
    if typing.get_origin(hint) is Literal:
        words = typing.get_args(hint)
        return words[rng.integers(len(words))]
    if typing.get_origin(hint) is tuple and typing.get_args(hint)[0] is str:
        return tuple(str(name) for name in rng.choice(NAMES, rng.integers(2, 7), replace=False))
    if typing.get_origin(hint) is tuple:
        digits = int(rng.choice([1, 2, 6]))  # six: a die of FateStones, its faces one after another
        numbers = [int("".join(map(str, rng.integers(1, 7, digits)))) for _ in range(rng.integers(1, 9))]
        return tuple(numbers)
    if hint is bool:
        return bool(rng.integers(2))
    if hint is int:
        return int(rng.integers(1, 9) if rng.random() < 0.8 else rng.integers(1, 201))
    if hint in (None, type(None)):
        return None
    raise TypeError(f"no values are known for options of the type {hint}")


# --- the compiled loop ------------------------------------------------------------------------------------------------


class _Promised(NamedTuple):
    """Facts, as the loop takes them."""

    num_seats: int
    max_steps: int
    min_return: float
    max_return: float
    zero_sum: bool


FAULTS = (
    "",
    "the seat to move does not exist",
    "a mask has entries other than 0 and 1, or none is legal",
    "an observation is not from 0 to 1",
    "what is hidden from a seat, drawn again, changes what it sees or may do",
    "an action is taken for legal and is not, or the other way round",
    "a game outlasts Facts.max_steps",
    "a return is not from Facts.min_return to Facts.max_return",
    "returns do not sum to 0",
)
NO_FAULT, NO_SEAT, NO_MASK, NOT_IN_RANGE, NOT_HIDDEN, NOT_TOLD, TOO_LONG, NO_RETURN, NO_SUM = range(len(FAULTS))


class _Space(NamedTuple):
    """Arrays that the loop writes into."""

    states: np.ndarray  # (2,): the game, and a copy with what is hidden drawn again
    stream: np.ndarray  # (1,): of the checks
    mask: np.ndarray  # (actions,) int8
    other_mask: np.ndarray  # (actions,) int8
    seen: np.ndarray  # (observation size,) float32
    seen_again: np.ndarray  # (observation size,) float32
    returns: np.ndarray  # (seats,) float64
    counts: np.ndarray  # (2,) int64: actions in this game, games ended


@functools.cache
def compile_loop(game: Game) -> Callable[..., int]:
    """The kernel `(params, promised, space, moves) → number of FAULTS`, which goes on with the game in `space`."""
    deal, legal, play, observe, reroll_hidden = game.deal, game.legal, game.play, game.observe, game.reroll_hidden
    may_play = compile_check(game)

    @kernel(tag=f"{game.deal.__module__}.{game.name}")
    def look(params, promised, space):
        state, copy, stream = space.states[0], space.states[1], space.stream[0]
        who = np.int64(below(stream, promised.num_seats))
        space.seen[:] = 0
        observe(params, state, who, space.seen)
        for value in space.seen:
            if not 0.0 <= value <= 1.0:
                return NOT_IN_RANGE
        space.states[1] = space.states[0]
        copy["rng"] = next_u64(stream)
        reroll_hidden(params, copy, who)
        space.seen_again[:] = 0
        observe(params, copy, who, space.seen_again)
        for k in range(len(space.seen)):
            if space.seen[k] != space.seen_again[k]:
                return NOT_HIDDEN
        if copy["seat"] != state["seat"]:
            return NOT_HIDDEN
        if who == state["seat"]:
            space.other_mask[:] = 0
            legal(params, copy, space.other_mask)
            for a in range(len(space.mask)):
                if space.mask[a] != space.other_mask[a]:
                    return NOT_HIDDEN
        action = np.int64(below(stream, len(space.mask) + 4)) - 2
        is_legal = 0 <= action < len(space.mask) and space.mask[action] != 0
        if may_play(params, state, action, space.other_mask) != is_legal:
            return NOT_TOLD
        return NO_FAULT

    @kernel(tag=f"{game.deal.__module__}.{game.name}")
    def loop(params, promised, space, moves):
        state = space.states[0]
        for _ in range(moves):
            if state["seat"] == OVER:
                deal(params, state)
                space.returns[:] = 0.0
                space.counts[0] = 0
            if not 0 <= state["seat"] < promised.num_seats:
                return NO_SEAT
            space.mask[:] = 0
            legal(params, state, space.mask)
            some = False
            for value in space.mask:
                if value != 0 and value != 1:
                    return NO_MASK
                some |= value == 1
            if not some:
                return NO_MASK
            if below(space.stream[0], LOOK) == 0:
                fault = look(params, promised, space)
                if fault != NO_FAULT:
                    return fault
            play(params, state, choose_from_mask(space.stream[0], space.mask))
            space.counts[0] += 1
            if space.counts[0] > promised.max_steps:
                return TOO_LONG
            total = 0.0
            for seat in range(promised.num_seats):
                space.returns[seat] += state["rewards"][seat]
                total += space.returns[seat]
            if state["seat"] == OVER:
                space.counts[1] += 1
                for seat in range(promised.num_seats):
                    low = promised.min_return - ROUNDING * (1.0 + abs(promised.min_return))
                    high = promised.max_return + ROUNDING * (1.0 + abs(promised.max_return))
                    if not low <= space.returns[seat] <= high:
                        return NO_RETURN
                if promised.zero_sum and abs(total) > ROUNDING * (1.0 + promised.max_return):
                    return NO_SUM
        return NO_FAULT

    compiled: Callable[..., int] = loop
    return compiled


def play_compiled(variant: Variant, moves: int, rng: np.random.Generator) -> int:
    """Play in the compiled loop; returns the games that ended."""
    facts, size = variant.facts, variant.facts.observation_size
    space = _Space(
        states=Batch(variant, 2, int(rng.integers(2**32))).states,
        stream=new_streams(int(rng.integers(2**32)), 1),
        mask=np.zeros(facts.num_actions, np.int8),
        other_mask=np.zeros(facts.num_actions, np.int8),
        seen=np.zeros(size, np.float32),
        seen_again=np.zeros(size, np.float32),
        returns=np.zeros(facts.num_seats),
        counts=np.zeros(2, np.int64),
    )
    promised = _Promised(facts.num_seats, facts.max_steps, facts.min_return, facts.max_return, facts.zero_sum)
    fault = compile_loop(variant.game)(variant.params, promised, space, moves)
    ensure(fault == NO_FAULT, f"{FAULTS[fault]} (after {int(space.counts[0])} actions of game {int(space.counts[1]) + 1})")
    return int(space.counts[1])


# --- the interfaces ---------------------------------------------------------------------------------------------------

JUNK: tuple[Any, ...] = (None, 0.5, "call", [0, 0], float("nan"), {}, b"1")


def _wrong(mask: np.ndarray, rng: np.random.Generator) -> int:
    """A whole number that is no legal action."""
    illegal = [-1, len(mask), *np.flatnonzero(mask == 0).tolist()]
    return int(illegal[rng.integers(len(illegal))])


def _right(mask: np.ndarray, rng: np.random.Generator) -> int:
    ensure(mask.any(), "a seat to move has no legal action")
    return int(rng.choice(np.flatnonzero(mask)))


def _refused(call: Callable[[Any], Any], action: Any) -> None:
    try:
        call(action)
    except IllegalActionError as problem:
        ensure("\n" not in str(problem) and len(str(problem)) < 1000, f"an error is too long: {shown(str(problem))}")
    else:
        raise Fault(f"{shown(action)} is not legal, and was played")


def _check_return(variant: Variant, earned: float) -> None:
    low, high = variant.facts.min_return, variant.facts.max_return
    rounding = ROUNDING * (1 + max(abs(low), abs(high)))
    ensure(low - rounding <= earned <= high + rounding, f"a return is {earned}, not from {low} to {high}")


def play_batch(variant: Variant, moves: int, rng: np.random.Generator) -> int:
    """Many games at once; wrong arrays change nothing."""
    batch = Batch(variant, VECTOR_GAMES, int(rng.integers(2**32)))
    ended = 0
    for _ in range(-(-moves // VECTOR_GAMES)):
        over = np.flatnonzero(batch.seats == OVER)
        ended += len(over)
        batch.deal(over)
        masks = batch.legal()
        actions = np.array([_right(mask, rng) for mask in masks])
        if rng.random() < WRONG:
            before = batch.states.tobytes()
            game = int(rng.integers(VECTOR_GAMES))
            wrong = actions.copy()
            wrong[game] = _wrong(masks[game], rng)
            for each in (wrong, actions[1:], actions + 0.5, actions[:, None], actions.astype(str), None):
                _refused(batch.play, each)
            ensure(batch.states.tobytes() == before, "refused actions have changed a game")
        batch.play(actions)
    return ended


def play_aec(variant: Variant, moves: int, rng: np.random.Generator) -> int:
    """PettingZoo's turns."""
    mode: IllegalAction = "raise" if rng.random() < 0.5 else "lose"
    env = aec.raw_env(variant, illegal_action=mode)
    ended, agents = 0, env.possible_agents
    earned: dict[str, float] = {}
    env.reset(seed=int(rng.integers(2**31)))
    for _ in range(moves):
        if not env.agents:
            for agent in agents:
                _check_return(variant, earned.get(agent, 0.0))
            ended += 1
            earned = {}
            env.reset()
        agent = env.agent_selection
        observation, _, terminated, truncated, info = env.last()
        ensure(env.observation_space(agent).contains(observation), "an observation is not in its space")
        if terminated or truncated:
            env.step(None)
            continue
        mask = info["action_mask"]
        ensure(np.array_equal(mask, observation["action_mask"]), "the masks of info and observation differ")
        action: int = _right(mask, rng)
        loses = False
        if rng.random() < WRONG:
            _refused(env.step, JUNK[rng.integers(len(JUNK))])
            wrong = _wrong(mask, rng)
            if mode == "raise":
                _refused(env.step, wrong)
                again = env.last()
                same = np.array_equal(again[0]["observation"], observation["observation"])
                ensure(same and env.agent_selection == agent, "a refused action has changed the game")
            else:
                action, loses = wrong, True
        env.step(action)
        for other in env.rewards:
            earned[other] = earned.get(other, 0.0) + env.rewards[other]
        if loses:
            ensure(all(env.terminations.values()), "an illegal action has not ended the game")
            ensure(abs(earned[agent] - variant.facts.min_return) < ROUNDING * (1 + abs(earned[agent])), "it lost too little")
    return ended


def play_parallel(variant: Variant, moves: int, rng: np.random.Generator) -> int:
    """PettingZoo's simultaneous choices, in games that have them."""
    env = aec.parallel_env(variant, illegal_action="raise")
    _, infos = env.reset(seed=int(rng.integers(2**31)))
    ended = 0
    for _ in range(-(-moves // variant.facts.num_seats)):
        if not env.agents:
            ended += 1
            _, infos = env.reset()
        actions: dict[str, Any] = {agent: _right(infos[agent]["action_mask"], rng) for agent in env.agents}
        if rng.random() < WRONG:
            agent = env.agents[rng.integers(len(env.agents))]
            _refused(env.step, {**actions, agent: _wrong(infos[agent]["action_mask"], rng)})
            _refused(env.step, {**actions, agent: JUNK[rng.integers(len(JUNK))]})
            _refused(env.step, {other: action for other, action in actions.items() if other != agent})
        observations, _, _, _, infos = env.step(actions)
        for agent, observation in observations.items():
            ensure(env.observation_space(agent).contains(observation), "an observation is not in its space")
    return ended


def play_single(variant: Variant, moves: int, rng: np.random.Generator) -> int:
    """Gymnasium's environment of one seat."""
    mode: IllegalAction = "raise" if rng.random() < 0.5 else "lose"
    env = SeatEnv(variant, illegal_action=mode)
    observation, info = env.reset(seed=int(rng.integers(2**31)))
    ended, earned = 0, 0.0
    for _ in range(moves):
        ensure(env.observation_space.contains(observation), "an observation is not in its space")
        action: int = _right(info["action_mask"], rng)
        if rng.random() < WRONG:
            _refused(env.step, JUNK[rng.integers(len(JUNK))])
            wrong = _wrong(info["action_mask"], rng)
            if mode == "raise":
                _refused(env.step, wrong)
            else:
                action = wrong
        observation, reward, terminated, truncated, info = env.step(action)
        earned += float(reward)
        if terminated or truncated:
            _check_return(variant, earned)
            ended, earned = ended + 1, 0.0
            observation, info = env.reset()
    return ended


def play_vector(variant: Variant, moves: int, rng: np.random.Generator) -> int:
    """Gymnasium's vector environment."""
    env = SeatVectorEnv(variant, VECTOR_GAMES, illegal_action="lose", autoreset_mode="SameStep")
    return _play_vector(variant, env, moves, rng, lambda: env.reset(seed=int(rng.integers(2**31)))[1]["action_mask"])


def _play_vector(variant: Variant, env: Any, moves: int, rng: np.random.Generator, reset: Callable[[], np.ndarray]) -> int:
    masks, earned, ended = reset(), np.zeros(VECTOR_GAMES), 0
    for _ in range(-(-moves // VECTOR_GAMES)):
        actions = np.array([_right(mask, rng) for mask in masks])
        if rng.random() < WRONG:
            for each in (actions[1:], actions + 0.5, actions[:, None], actions.astype(str), None):
                _refused(env.step, each)
            game = int(rng.integers(VECTOR_GAMES))
            actions[game] = _wrong(masks[game], rng)
        observations, rewards, ends, *_, infos = env.step(actions)
        ensure(observations.min() >= 0 and observations.max() <= 1, "an observation is not from 0 to 1")
        masks = infos["action_mask"] if isinstance(infos, dict) else env.action_masks()
        earned += rewards
        for total in earned[ends]:
            _check_return(variant, float(total))
        ended += int(ends.sum())
        earned[ends] = 0.0
    return ended


def play_sb3(variant: Variant, moves: int, rng: np.random.Generator) -> int:
    """Stable-Baselines3's vector environment."""
    from dice_envs.envs.sb3 import make_vec_env

    env = make_vec_env(variant, VECTOR_GAMES, seed=int(rng.integers(2**31)), illegal_action="lose")

    def reset() -> np.ndarray:
        env.reset()
        return env.action_masks()

    return _play_vector(variant, env, moves, rng, reset)


CALLERS: dict[str, Callable[[Variant, int, np.random.Generator], int]] = {
    "compiled loop": play_compiled,
    "Batch": play_batch,
    "AEC": play_aec,
    "parallel": play_parallel,
    "Gymnasium": play_single,
    "vector": play_vector,
    "SB3": play_sb3,
}


# --- all of it --------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Row:
    """One game through one interface.

    Attributes:
        game: its name.
        interface: of CALLERS.
        moves: played.
        games: that ended.
        variants: with different options.
        faults: what was broken, with the options and the seed.
    """

    game: str
    interface: str
    moves: int = 0
    games: int = 0
    variants: int = 0
    faults: list[str] = dataclasses.field(default_factory=list)


def resident_bytes() -> int:
    """Memory of the process that is in use now; 0 where the system does not tell."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return 0


def soak(
    games: Sequence[str], moves: int, seed: int, done: Callable[[float], Any] = lambda moves: None
) -> tuple[list[Row], list[int]]:
    """Play that many moves in all, in ROUNDS rounds.

    Args:
        games: by name.
        moves: in the compiled loop; one in SHARE more in each of the interfaces.
        seed: a fault is found again by the same seed and number of moves.
        done: told how many moves of the compiled loop have been played since it was told last.

    Returns:
        A row for each game and interface, and the memory in use after each round, in bytes.
    """
    rows = {(name, caller): Row(name, caller) for name, caller in itertools.product(games, CALLERS)}
    memory = []
    a_game = moves / len(games) / ROUNDS / VARIANTS
    for number in range(ROUNDS):
        for name, variant, own_seed in _variants(games, seed, number):
            for caller, play in CALLERS.items():
                if not _is_there(caller, variant):
                    continue
                row = rows[name, caller]
                share = round(a_game) if caller == "compiled loop" else round(a_game / SHARE) + VECTOR_GAMES
                try:
                    row.games += play(variant, share, np.random.default_rng([own_seed, len(row.interface)]))
                except Exception as problem:
                    row.faults.append(f"{variant}, seed {own_seed}: {type(problem).__name__}: {problem}")
                row.moves += share
                row.variants += 1
            done(a_game)
        memory.append(resident_bytes())
    return [row for row in rows.values() if row.variants], memory


def grown(memory: list[int]) -> int:
    """Bytes by which the memory has grown since the second round; by then everything has been compiled."""
    return memory[-1] - memory[1]


def broken(rows: list[Row], memory: list[int]) -> bool:
    """Whether something is wrong."""
    return any(row.faults for row in rows) or grown(memory) > LEAVES


def show(rows: list[Row], memory: list[int], seconds: float) -> None:
    """Print what was played, and what was wrong."""
    counts = [(row.moves, row.games, row.variants, len(row.faults)) for row in rows]
    cells = [(row.game, row.interface, *(f"{count:,}" for count in own)) for row, own in zip(rows, counts, strict=True)]
    Grid("", ("game", "interface", "moves", "games", "variants", "faults"), cells, (0, 1)).show()
    for row in rows:
        for fault in row.faults:
            console.print(Text.assemble(("broken: ", "red"), f"{row.interface}, {fault}"))
    moves, faults = sum(row.moves for row in rows), sum(len(row.faults) for row in rows)
    console.print(f"{moves:,} moves in {seconds:,.0f} s, {faults:,} faults", highlight=False)
    if memory[-1]:
        early, late = (f"{size / 2**20:,.0f} MiB" for size in (memory[1], memory[-1]))
        told = f"memory in use {early} after two rounds of {len(memory)}, {late} at the end"
        too_much = f": more than {LEAVES / 2**20:,.0f} MiB were added" if grown(memory) > LEAVES else ""
        console.print(told + too_much, highlight=False)


def _is_there(caller: str, variant: Variant) -> bool:
    """Whether a game can be played through this interface, with what is installed."""
    if caller == "parallel":
        return variant.facts.simultaneous
    return caller != "SB3" or importlib.util.find_spec("stable_baselines3") is not None


def _variants(games: Sequence[str], seed: int, number: int) -> Iterator[tuple[str, Variant, int]]:
    """Games with options for a round, the defaults in the first one, each with a seed of its own."""
    for place, name in enumerate(games):
        for each in range(VARIANTS):
            sequence = np.random.SeedSequence([seed, number, place, each])
            own_seed = int(sequence.generate_state(1)[0])
            game = load(name)
            first = number == 0 and each == 0
            yield name, game.configure() if first else random_variant(game, np.random.default_rng(own_seed)), own_seed
