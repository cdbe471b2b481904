"""The interfaces to a game as one table, with what each must refuse, and a caller that makes mistakes at random."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterator
from typing import Any, ClassVar

import gymnasium
import numpy as np
import torch

from dice_envs.core.batch import Batch, IllegalActionError
from dice_envs.core.game import OVER, Variant, configure
from dice_envs.envs import aec
from dice_envs.envs.gym import SeatEnv, SeatVectorEnv
from dice_envs.envs.sb3 import SB3VecEnv

# Buffers that an interface overwrites before it reads them, and kernels, which refer to each other.
SCRATCH = {"_kept", "_action", "_actions", "_scratch", "_scratch_bytes", "_kernels", "_prepared", "_finals"}
ROUNDING = 1e-4  # relative, in sums of rewards
LONGEST = 2000  # most characters of a message

NO_NUMBERS = [
    *(None, "call", "0", 1.0, float("nan"), True, np.True_, [0, [0]], {}),
    *(np.array(True), torch.tensor(True), torch.tensor(0.0)),
    *(np.timedelta64(0, "ns"), np.datetime64(0, "ns"), np.array([0], "m8[ns]")),  # whole numbers to Python's int
]
NO_ACTIONS = [-1, -5, 10**6, -(2**63), 2**63, np.uint64(2**64 - 1), 2**70, 10**4000]
BAD_ACTIONS = [*NO_NUMBERS, *NO_ACTIONS, [0, 0, 0, 0, 0], torch.tensor([0, 0, 0, 0])]


def remember(value: Any) -> Any:
    """Return the contents of an object as plain values that compare by content."""
    if isinstance(value, np.ndarray):
        return [remember(item) for item in value] if value.dtype == object else (str(value.dtype), value.shape, value.tobytes())
    if isinstance(value, np.random.Generator):
        return repr(value.bit_generator.state)
    if isinstance(value, dict):
        return {key: remember(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [remember(item) for item in value]
    package = type(value).__module__.split(".")[0]
    if not isinstance(value, Variant) and package in ("dice_envs", "pettingzoo") and hasattr(value, "__dict__"):
        return {key: remember(item) for key, item in vars(value).items() if key not in SCRATCH}
    return repr(value)


def refused(call: Any, errors: Any = ValueError, thing: Any = None) -> tuple[str | None, Any]:
    """Return (None, result), or (message, None) if the call was refused in one line; it may then have changed nothing."""
    before = remember(thing)
    try:
        return None, call()
    except errors as problem:
        text = str(problem)
    assert len(text.splitlines()) == 1, text
    assert text.strip()
    assert len(text) < LONGEST, text
    assert remember(thing) == before, text
    return text, None


def fails(error: Any, call: Any, thing: Any) -> str:
    """Return the message of a call that must raise the error, in one readable line, and change nothing."""
    message, result = refused(call, error, thing)
    assert message is not None, f"accepted, with the result {result!r:.200}"
    return message


def refuses(caller: Single, actions: dict[Any, Any]) -> str:
    """Return the message of an interface that must refuse actions by key; its wrapper may do it first."""
    return fails((IllegalActionError, AssertionError), lambda: caller.send(caller.form(actions)), caller.inner)


def illegal(mask: np.ndarray) -> list[int]:
    """Return whole numbers that are no legal action."""
    return [-1, len(mask), *np.flatnonzero(mask == 0).tolist()]


@dataclasses.dataclass
class Result:
    """What a step brought. A key is the number of a game, or PettingZoo's name of an agent.

    Attributes:
        seen: all that the step returned, to compare.
        rewards: by key.
        ended: keys whose game is over.
        reasons: why a key has lost by an illegal action.
    """

    seen: Any
    rewards: dict[Any, float] = dataclasses.field(default_factory=dict)
    ended: list[Any] = dataclasses.field(default_factory=list)
    reasons: dict[Any, str] = dataclasses.field(default_factory=dict)


class Single:
    """Calls SeatEnv. Ended games are dealt again in `restart`."""

    make: ClassVar[Any] = SeatEnv
    mode: ClassVar[str] = ""  # autoreset
    loses: ClassVar[bool] = True  # whether an illegal action may lose the game
    blocks: ClassVar[bool] = False  # whether actions that do not exist are refused although illegal ones lose
    in_place: ClassVar[Any] = ()  # what is also handed over in place of one of several actions

    def __init__(self, game: Any, **arguments: Any) -> None:
        self.hold(type(self).make(game, **arguments))

    def hold(self, env: Any) -> None:
        """Call this environment from now on."""
        self.env, self.inner = env, getattr(env, "unwrapped", env)  # PettingZoo's wrappers count what fails, too
        self.variant: Variant = self.inner.variant

    def reset(self, seed: int) -> Any:
        return self.env.reset(seed=seed)

    def masks(self) -> dict[Any, np.ndarray]:
        """Return the legal actions of all that are to move, by key."""
        return {0: self.env.action_masks()}

    def form(self, actions: dict[Any, Any]) -> Any:
        """Return actions by key as `step` takes them."""
        return actions[0]

    def send(self, actions: Any) -> Any:
        """Hand actions to the interface as they are."""
        return self.env.step(actions)

    def mistakes(self, actions: dict[Any, Any], masks: dict[Any, np.ndarray]) -> Iterator[Any]:
        """Yield what must be refused instead of legal actions."""
        yield from BAD_ACTIONS
        key, mask = list(masks.items())[-1]
        yield from (self.form({**actions, key: wrong}) for wrong in (*self.in_place, *illegal(mask)[:4]))

    def step(self, actions: dict[Any, Any]) -> Result:
        observation, reward, ended, truncated, info = seen = self.send(self.form(actions))
        assert self.env.observation_space.contains(observation)
        assert not truncated
        assert not ended or info["action_mask"].all(), "after the end any action will do"
        reasons = dict(self.env.games.illegal) if info["illegal_action"] else {}
        return Result(seen, {0: reward}, [0] if ended else [], reasons)

    def restart(self, ended: list[Any]) -> None:
        """Deal the games that are over anew, if the interface does not."""
        if ended:
            fails(gymnasium.error.ResetNeeded, lambda: self.env.step(0), self.env)
            self.env.reset()


class Vector(Single):
    """Calls SeatVectorEnv, which deals again at once, in the next step, or when it is reset."""

    make = SeatVectorEnv
    mode = "SameStep"
    in_place = (*NO_NUMBERS, *NO_ACTIONS)

    def __init__(self, game: Any, **arguments: Any) -> None:
        super().__init__(game, num_envs=3, autoreset_mode=self.mode, **arguments)

    def masks(self) -> dict[Any, np.ndarray]:
        return dict(enumerate(self.env.action_masks()))

    def form(self, actions: dict[Any, Any]) -> Any:
        return [actions[game] for game in range(3)]

    def mistakes(self, actions: dict[Any, Any], masks: dict[Any, np.ndarray]) -> Iterator[Any]:
        yield from super().mistakes(actions, masks)
        whole = np.array(self.form(actions))
        yield from (whole[1:], whole + 0.5, whole[:, None], whole.astype(str), whole.astype(bool), torch.ones(3) > 0)
        yield np.array([0, 0, 2**64 - 1], np.uint64)

    def step(self, actions: dict[Any, Any]) -> Result:
        observations, rewards, ended, _, infos = seen = self.send(self.form(actions))
        assert 0 <= observations.min() <= observations.max() <= 1
        lost = infos.get("final_info", infos)["illegal_action"]
        reasons = {game: self.env.games.illegal[game] for game in np.flatnonzero(lost).tolist()}
        return Result(seen, dict(enumerate(rewards.tolist())), np.flatnonzero(ended).tolist(), reasons)

    def restart(self, ended: list[Any]) -> None:
        if self.mode == "Disabled" and ended:
            fails(gymnasium.error.ResetNeeded, lambda: self.env.step([0, 0, 0]), self.env)
            self.env.reset(options={"reset_mask": np.isin(np.arange(3), ended)})


class StableBaselines(Vector):
    """Calls SB3's environment."""

    make = SB3VecEnv

    def __init__(self, game: Any, **arguments: Any) -> None:
        self.hold(SB3VecEnv(game, 3, **arguments))

    def reset(self, seed: int) -> Any:
        self.env.seed(seed)
        return self.env.reset()

    def step(self, actions: dict[Any, Any]) -> Result:
        observations, rewards, ended, infos = self.send(self.form(actions))
        assert 0 <= observations.min() <= observations.max() <= 1
        reasons = {game: info["illegal_action"] for game, info in enumerate(infos) if "illegal_action" in info}
        episodes = [(info["episode"]["r"], info["episode"]["l"], info["players"]) for info in infos if "episode" in info]
        seen = observations, rewards, ended, self.env.action_masks(), episodes
        return Result(seen, dict(enumerate(rewards.tolist())), np.flatnonzero(ended).tolist(), reasons)


class Games(Vector):
    """Calls Batch, which plays the moves of all seats."""

    loses = False

    def __init__(self, game: Any, **options: Any) -> None:
        self.hold(Batch(game, 3, seed=1, **options))

    def reset(self, seed: int) -> Any:
        self.env.deal()

    def masks(self) -> dict[Any, np.ndarray]:
        return dict(enumerate(self.env.legal()))

    def send(self, actions: Any) -> Any:
        return self.env.play(actions)

    def step(self, actions: dict[Any, Any]) -> Result:
        self.send(self.form(actions))
        return Result(self.env.observe(), ended=np.flatnonzero(self.env.seats == OVER).tolist())

    def restart(self, ended: list[Any]) -> None:
        self.env.deal(np.array(ended, int))


class Turns(Single):
    """Calls PettingZoo's AEC environment."""

    make = aec.raw_env

    def masks(self) -> dict[Any, np.ndarray]:
        agent = self.env.agent_selection
        observation, *_, info = self.env.last()
        assert self.env.observation_space(agent).contains(observation)
        np.testing.assert_array_equal(info["action_mask"], observation["action_mask"])
        return {agent: info["action_mask"]}

    def form(self, actions: dict[Any, Any]) -> Any:
        return actions[self.env.agent_selection]

    def step(self, actions: dict[Any, Any]) -> Result:
        env, agent = self.env, self.env.agent_selection
        self.send(self.form(actions))
        rewards, infos, over = dict(env.rewards), dict(env.infos), all(env.terminations.values())
        reasons = {agent: infos[agent]["illegal_action"]} if "illegal_action" in infos[agent] else {}
        assert not reasons or over, "an illegal action ends the game"
        assert not reasons or not any(reward for other, reward in rewards.items() if other != agent)
        seen = [env.observe(each) for each in env.agents], rewards, env.terminations.copy()
        while env.agents and env.terminations[env.agent_selection]:
            env.step(None)
        return Result(seen, rewards, [] if env.agents else env.possible_agents, reasons)

    def restart(self, ended: list[Any]) -> None:
        if ended:
            self.env.reset()


class Wrapped(Turns):
    """Calls PettingZoo's AEC environment in PettingZoo's wrappers."""

    make = aec.env
    blocks = True


class Simultaneous(Turns):
    """Calls PettingZoo's parallel environment."""

    make = aec.parallel_env
    in_place = (*NO_NUMBERS, *NO_ACTIONS)

    def reset(self, seed: int | None = None) -> Any:
        self.shown = self.env.reset(seed=seed)

    def masks(self) -> dict[Any, np.ndarray]:
        return {agent: self.shown[1][agent]["action_mask"] for agent in self.env.agents}

    def form(self, actions: dict[Any, Any]) -> Any:
        return actions

    def mistakes(self, actions: dict[Any, Any], masks: dict[Any, np.ndarray]) -> Iterator[Any]:
        yield from super().mistakes(actions, masks)
        yield from (dict.fromkeys(actions, wrong) for wrong in BAD_ACTIONS)
        yield from ({other: actions[other] for other in actions if other != agent} for agent in actions)

    def step(self, actions: dict[Any, Any]) -> Result:
        observations, rewards, terminations, _, infos = seen = self.send(actions)
        self.shown = observations, infos
        for agent, observation in observations.items():
            assert self.env.observation_space(agent).contains(observation)
        reasons = {agent: info["illegal_action"] for agent, info in infos.items() if "illegal_action" in info}
        assert not reasons or all(terminations.values()), "an illegal action ends the game"
        assert not reasons or not any(reward for agent, reward in rewards.items() if agent not in reasons)
        return Result(seen, rewards, [] if self.env.agents else self.env.possible_agents, reasons)

    def restart(self, ended: list[Any]) -> None:
        if ended:
            self.reset()


CALLERS: dict[str, type[Single]] = {
    "Batch": Games,
    "SeatEnv": Single,
    **{f"SeatVectorEnv, {mode}": type(mode, (Vector,), {"mode": mode}) for mode in ("NextStep", "SameStep", "Disabled")},
    "SB3VecEnv": StableBaselines,
    "raw_env": Turns,
    "env": Wrapped,
    "parallel_env": Simultaneous,
}


def plays(way: str, game: str) -> bool:
    """Return whether the interface has the game."""
    return way != "parallel_env" or configure(game).facts.simultaneous


def moves(caller: Single, count: int, seed: int) -> list[Any]:
    """Make random legal moves, over several games, and return all that is seen of them as values to compare."""
    rng, seen = np.random.default_rng(seed), []
    for _ in range(count):
        masks = caller.masks()
        result = caller.step({key: int(rng.choice(np.flatnonzero(mask))) for key, mask in masks.items()})
        seen.append(remember([masks, result.seen]))
        caller.restart(result.ended)
    return seen


def play(caller: Single, steps: int, rng: np.random.Generator, share: float = 0.05, lose: bool = True) -> tuple[int, int]:
    """Play at random, with mistakes in a share of the steps. Return how many games ended, and how many a mistake has lost.

    Illegal actions lose the game if `lose`, as the interface was made, and are refused otherwise. What is no action is always
    refused. Raise AssertionError if the interface is wrong about anything.
    """
    facts = caller.variant.facts
    rounding = ROUNDING * (1 + max(abs(facts.min_return), abs(facts.max_return)))
    earned: collections.Counter[Any] = collections.Counter()
    ended = lost = 0
    caller.reset(int(rng.integers(2**31)))
    for _ in range(steps):
        masks = caller.masks()
        assert all(mask.any() and set(np.unique(mask)) <= {0, 1} for mask in masks.values()), "a seat to move has legal actions"
        actions: dict[Any, Any] = {key: int(rng.choice(np.flatnonzero(mask))) for key, mask in masks.items()}
        expected = {}
        if rng.random() < share:
            keys = list(masks) if rng.random() < 0.2 else [list(masks)[rng.integers(len(masks))]]
            junk = NO_NUMBERS[rng.integers(len(NO_NUMBERS))]
            refuses(caller, {**actions, keys[0]: junk})
            for key in keys:
                wrong = illegal(masks[key])[2 if lose and caller.blocks else 0 :]
                if wrong:
                    expected[key] = int(wrong[rng.integers(len(wrong))])
            if lose:
                actions |= expected
            elif expected:
                refuses(caller, actions | expected)
                expected = {}
        result = caller.step(actions)
        assert result.reasons.keys() == expected.keys(), "what loses is illegal, and the reverse"
        for key, number in expected.items():
            assert f"action {number} " in result.reasons[key]
        earned.update(result.rewards)
        for key in result.ended:
            ended += 1
            lost += key in expected
            high = facts.min_return if key in expected else facts.max_return
            assert facts.min_return - rounding <= earned[key] <= high + rounding, f"a return is {earned[key]}"
            earned[key] = 0
        caller.restart(result.ended)
    return ended, lost
