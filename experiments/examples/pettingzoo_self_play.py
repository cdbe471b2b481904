"""Self-play with action masks on a PettingZoo AEC environment, with SB3-contrib's MaskablePPO unchanged.

    make example NAME=pettingzoo_self_play ARGS="--seed 1"

The game is Liar's Dice with one die each under OpenSpiel's rules. 200,000 decisions of the learner took 65 seconds on one core.
Exploitability falls from 0.78 to 0.2137 (seed 1) and 0.2157 (seed 2), exactly; the policy wins 83.2 and 83.4 ± 1.6 % of 2,000
games against random play. `train --preset equilibrium` gets to 0.03 in minutes.

PettingZoo's own tutorial ("SB3: Action Masked PPO for Connect Four") wraps the environment so that SB3 moves for all seats in
turn. Its older versions do not run: Gymnasium 1 refuses the wrapper, which is no `gymnasium.Env`. Newer ones run, but were
reported not to learn, for two reasons:

- Its step returns what the mover has earned by this move. The winner moves last, so the loser's -1 is never seen: every game of
  Connect Four pays +1, and there is nothing to learn. Here a reward is all that the learner's seat has earned up to its next
  decision, as `env.last()` returns it.
- Its step returns the next seat's observation, so PPO takes the opponent's good positions for its own. Here the next
  observation is that of the learner's next decision.

That wrapper on this game, 20,480 steps with seed 0: the mean return rises to about 0.95, since the seats help whoever moves
last, and exploitability rises from 0.78 to 0.91. It also steps a single environment; here the moves at many tables are computed
in one call.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from pettingzoo import AECEnv
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv

import dice_envs
from dice_envs import liars_dice_v0
from dice_envs.core.dice import derived_seeds
from dice_envs.exact.intervals import share_half_width
from dice_envs.experiments.examples import CommandLine

GAME: dict[str, Any] = {"rules": "openspiel", "num_dice": 1}  # Liar's Dice, small enough to be measured exactly in a second
NUM_TABLES = 128
NUM_STEPS = 32  # of every table between two updates
ENTROPY = 0.1  # high: without a regulariser self-play runs in circles
AVERAGE_RATE = 0.05  # how far the averaged policy moves towards the learner after each update
GAMES = 2000  # against random play, at the end

Policy = Callable[[np.ndarray, np.ndarray], np.ndarray]  # observations and action masks of n positions → probabilities


def table_env() -> AECEnv[Any, Any, Any]:
    """One table. Any AEC environment whose observations hold an `action_mask` works."""
    return liars_dice_v0.raw_env(**GAME)


def draw(probabilities: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw an action from each row of probabilities (or of weights)."""
    cumulative = probabilities.cumsum(axis=1, dtype=np.float64)
    return (cumulative <= rng.random((len(cumulative), 1)) * cumulative[:, -1:]).sum(axis=1)


class SelfPlay(VecEnv):
    """Many tables as one single-agent environment: the learner has one seat, drawn for each game, `opponent` all others.

    The learner sees only positions at which it is to move. A reward is what its seat has earned since its last decision. So
    PPO's next value belongs to the same seat, and a loss by another seat's move is seen.
    """

    def __init__(self, num_tables: int, seed: int) -> None:
        self.tables = [table_env() for _ in range(num_tables)]
        self.rng = np.random.default_rng(seed)
        self.opponent: Policy = lambda observations, masks: masks / masks.sum(axis=1, keepdims=True)
        seat: str = self.tables[0].possible_agents[0]
        self.seats = [seat] * num_tables  # the learner's
        self.render_mode = None
        observations: Any = self.tables[0].observation_space(seat)["observation"]
        actions: Any = self.tables[0].action_space(seat)
        super().__init__(num_tables, observations, actions)
        self.observations = np.zeros((num_tables, *observations.shape), np.float32)
        self.masks = np.zeros((num_tables, actions.n), np.int8)

    def reset(self) -> np.ndarray:
        """Deal all tables and play up to the learner's turn."""
        for i in range(self.num_envs):
            self._deal(i, int(self.rng.integers(2**31)))
        self.step_wait()
        return self.observations.copy()

    def _deal(self, i: int, seed: int | None = None) -> None:
        self.tables[i].reset(seed)  # without a seed the table's random stream continues
        agents = self.tables[i].possible_agents
        self.seats[i] = agents[self.rng.integers(len(agents))]

    def step_async(self, actions: np.ndarray) -> None:
        """Play the learner's actions."""
        for table, action in zip(self.tables, actions.tolist(), strict=True):
            table.step(action)

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Play on at each table until the learner is to move, in this game or in the next one."""
        rewards, dones = np.zeros(self.num_envs, np.float32), np.zeros(self.num_envs, bool)
        infos: list[dict[str, Any]] = [{} for _ in self.tables]
        waiting = list(range(self.num_envs))
        while waiting:
            waiting = [i for i in waiting if not self._learner_moves(i, rewards, dones, infos)]
            if waiting:  # another seat is to move: its moves at all these tables are computed together
                actions = draw(self.opponent(self.observations[waiting], self.masks[waiting]), self.rng)
                for i, action in zip(waiting, actions.tolist(), strict=True):
                    self.tables[i].step(action)
        return self.observations.copy(), rewards, dones, infos

    def _learner_moves(self, i: int, rewards: np.ndarray, dones: np.ndarray, infos: list[dict[str, Any]]) -> bool:
        """Store the observation of the seat to move; return whether that seat is the learner's."""
        table = self.tables[i]
        while True:
            seen, reward, termination, truncation, _ = table.last()  # the reward is all since this seat's last move
            own = table.agent_selection == self.seats[i]
            if own and not dones[i]:
                rewards[i] = reward
            if not (termination or truncation):
                self.observations[i], self.masks[i] = seen["observation"], seen["action_mask"]
                return own
            if own:
                if not dones[i]:  # otherwise a game ended before the learner's first turn: no decision, nothing to learn
                    dones[i] = True
                    infos[i] = {"terminal_observation": seen["observation"], "TimeLimit.truncated": truncation}
                self._deal(i)
            else:
                table.step(None)  # an agent whose game has ended steps with None

    def action_masks(self) -> np.ndarray:
        """The masks that MaskablePPO asks for, (tables, actions) bool."""
        return self.masks.astype(bool)

    # MaskablePPO looks for `action_masks` and calls it by name; it expects one row for each table.
    def has_attr(self, attr_name: str) -> bool:
        return hasattr(self, attr_name)

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        return list(getattr(self, method_name)(*args, **kwargs))

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [getattr(self, attr_name)] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        setattr(self, attr_name, value)

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        return [False] * self.num_envs

    def close(self) -> None:
        pass


def policy_of(network: Any) -> Policy:
    """A network of SB3 as a function from observations and action masks to action probabilities."""

    def policy(observations: np.ndarray, masks: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            probabilities: np.ndarray = network.get_distribution(
                torch.from_numpy(observations), masks
            ).distribution.probs.numpy()
        return probabilities

    return policy


class Averaging(BaseCallback):
    """Keeps a running mean of the learner's weights. In self-play the learner keeps changing as its opponent does; the mean is
    closer to an equilibrium, so it is the policy to keep."""

    def __init__(self, average: Any, updates: int) -> None:
        super().__init__()
        self.average, self.updates, self.done = average, updates, 0

    def _on_rollout_start(self) -> None:
        if self.done % max(1, self.updates // 10) == 0:
            last, mean = exploitability(self.model.policy), exploitability(self.average)
            print(f"{self.num_timesteps:,} steps: exploitability {last:.4f}, averaged {mean:.4f}", flush=True)
        self.done += 1
        rate = max(AVERAGE_RATE, 1 / self.done)  # the first policies weigh no more than later ones
        with torch.no_grad():
            for mean_weight, weight in zip(self.average.parameters(), self.model.policy.parameters(), strict=True):
                mean_weight.lerp_(weight, rate)

    def _on_step(self) -> bool:
        return True


def exploitability(network: Any) -> float:
    """Return the exact mean winnings of a best response over both seats: 0 for optimal play."""
    return dice_envs.measure("liars_dice", policy_of(network), **GAME).measures[0].value


def play(network: Any, games: int, seed: int) -> int:
    """Play against random play, with the network first in every other game; return how many games it wins."""
    env, policy, rng = table_env(), policy_of(network), np.random.default_rng(seed)
    wins = 0
    for game in range(games):
        own = env.possible_agents[game % 2]
        env.reset(seed=int(rng.integers(2**31)))
        for agent in env.agent_iter():
            seen, reward, termination, truncation, _ = env.last()
            if termination or truncation:
                wins += agent == own and reward > 0
                env.step(None)
                continue
            mask = seen["action_mask"][None]
            chances = policy(seen["observation"][None], mask) if agent == own else mask
            env.step(int(draw(chances, rng)[0]))
    return wins


def main() -> None:
    """Read the options, train, measure."""
    line = CommandLine(__doc__, steps=200_000)
    line.number("--threads", 1, 1, 256, "PyTorch's")
    options = line.read()
    torch.set_num_threads(options.threads)

    env = SelfPlay(NUM_TABLES, options.seed)
    model = MaskablePPO(
        "MlpPolicy",
        env,
        n_steps=NUM_STEPS,
        batch_size=1024,
        n_epochs=4,
        learning_rate=lambda left: 1e-3 * left,
        gamma=1.0,
        ent_coef=ENTROPY,
        policy_kwargs={"net_arch": [128, 128]},
        seed=options.seed,
        device="cpu",
    )
    env.opponent = policy_of(model.policy)  # always the current network, which changes between rollouts only
    average = copy.deepcopy(model.policy)
    before = exploitability(average)
    model.learn(options.steps, callback=Averaging(average, -(-options.steps // (NUM_TABLES * NUM_STEPS))))
    after = exploitability(average)
    wins = play(average, GAMES, *derived_seeds(options.seed, "evaluation"))
    print(f"wins {wins / GAMES:.3f} ± {share_half_width(wins / GAMES, GAMES):.3f} of {GAMES:,} games against random play")
    print(f"exploitability {before:.4f} at first, {after:.4f} now (0: optimal play)")


if __name__ == "__main__":
    main()
