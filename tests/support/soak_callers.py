"""Callers of the interfaces. Each also makes the mistakes that an interface must refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dice_envs.core.batch import Batch, IllegalAction, IllegalActionError
from dice_envs.core.game import OVER, Variant
from dice_envs.core.options import shown
from dice_envs.envs import aec
from dice_envs.envs.gym import SeatEnv, SeatVectorEnv
from tests.support.soak_loop import ROUNDING, Fault, ensure, play_compiled

__all__ = ["CALLERS", "VECTOR_GAMES", "play_aec", "play_batch", "play_vector"]

WRONG = 0.05  # share of actions that are not legal
VECTOR_GAMES = 16
JUNK: tuple[Any, ...] = (None, 0.5, "call", [0, 0], float("nan"), {}, b"1")


def _wrong(mask: np.ndarray, rng: np.random.Generator) -> int:
    """Return a whole number that is not a legal action."""
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
    """Play many games at once; wrong arrays must change nothing."""
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
    """Play PettingZoo's AEC environment."""
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
    """Play PettingZoo's parallel environment, for games with simultaneous choices."""
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
    """Play Gymnasium's environment of one seat."""
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
    """Play Gymnasium's vector environment."""
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
    """Play Stable-Baselines3's vector environment."""
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
