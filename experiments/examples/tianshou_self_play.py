"""Self-play with Tianshou's PPO on a PettingZoo environment: the learner has every seat.

    make example NAME=tianshou_self_play

The game is Liar's Dice with one die each under OpenSpiel's rules. 400,000 moves, 4.5 minutes on one core, bring the exact
exploitability from 0.7807 to 0.2991 (seed 1). This is plain PPO with an entropy bonus and few moves; docs/ppo.md has recipes
that come nearer to 0.

Tianshou 2.0 leaves two things to its users: its PPO ignores action masks (see `MaskedNet`), and it loses what a seat is paid
while another moves (see `PaidBySeat`).
"""

from __future__ import annotations

import logging
import time
from typing import Any

import numpy as np
import torch
from tianshou.algorithm import PPO
from tianshou.algorithm.modelfree.reinforce import DiscreteActorPolicy
from tianshou.algorithm.multiagent.marl import MultiAgentOnPolicyAlgorithm
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Batch, Collector, ReplayBuffer, VectorReplayBuffer
from tianshou.env import DummyVectorEnv, PettingZooEnv
from tianshou.trainer import OnPolicyTrainerParams
from tianshou.utils.net.common import ActionReprNet

import dice_envs
from dice_envs.core.dice import derived_seeds
from dice_envs.experiments.examples import CommandLine, network, policy_of

GAME: dict[str, Any] = {"rules": "openspiel", "num_dice": 1}  # options of Liar's Dice

NUM_ENVS = 64
NUM_GAMES = 512  # between two updates
MINIBATCH = 256
EPOCHS = 4
LEARNING_RATE = 2e-3  # falls to 0 linearly
GAE_LAMBDA = 0.95
CLIP = 0.2
ENTROPY = 0.05  # keeps the policy mixed, without which self-play runs in circles
VALUE_WEIGHT = 0.5
MAX_GRADIENT = 0.5
MOST_MOVES = 16  # no game is longer: 12 bids and a call


class MaskedNet(ActionReprNet):
    """Logits of the actions, or a value. Tianshou passes in PettingZooEnv's form of an observation: `obs`, `mask` and
    `agent_id`. Of its algorithms only DQN reads the mask, so with PPO the network has to."""

    def __init__(self, inputs: int, outputs: int, scale: float, masked: bool) -> None:
        super().__init__()
        self.layers = network(inputs, outputs, scale)
        self.masked = masked

    def forward(self, obs: Any, state: Any = None, info: Any = None) -> Any:
        out = self.layers(torch.as_tensor(obs.obs, dtype=torch.float32))
        if not self.masked:
            return out  # Tianshou calls a critic without a state
        return out.masked_fill(~torch.as_tensor(obs.mask), -torch.inf), state


class PaidBySeat(MultiAgentOnPolicyAlgorithm):
    """Gives each seat its own moves, each with all that the seat earns up to its next one.

    A game is stored as one sequence of all seats' moves, with the rewards of all seats at each. Tianshou picks out a seat's
    moves but drops what the seat is paid while another moves. A bidder that is called would never learn that it has lost, and
    its last move would not end the game.
    """

    def _preprocess_batch(self, batch: Any, buffer: ReplayBuffer, indices: np.ndarray) -> Any:
        seats = np.array([self._dispatcher.agent_idx[agent] for agent in batch.obs.agent_id])
        ends = batch.terminated | batch.truncated
        rewards, last = np.zeros_like(batch.rew), np.zeros_like(ends)
        following = np.arange(len(seats))
        unpaid, next_move = np.zeros(batch.rew.shape[1]), np.zeros(batch.rew.shape[1], int)
        for i in reversed(range(len(seats))):  # every game is complete, and a game's moves stand in order
            if ends[i]:
                unpaid[:], next_move[:] = 0, -1
            unpaid += batch.rew[i]
            seat = seats[i]
            rewards[i, seat], unpaid[seat] = unpaid[seat], 0
            last[i] = next_move[seat] < 0
            following[i], next_move[seat] = next_move[seat], i
        batch.rew = rewards
        batch.terminated = buffer.terminated[indices] = last  # of the seat's game; Tianshou looks in both places
        batch.obs_next = batch.obs[np.where(last, 0, following)]  # the seat's own next position; unused after its last move
        return super()._preprocess_batch(batch, buffer, indices)


def make_env() -> PettingZooEnv:
    """One game in which Tianshou has every seat."""
    return PettingZooEnv(dice_envs.liars_dice_v0.raw_env(**GAME))


def make_algorithm() -> PaidBySeat:
    """PPO with one network for all seats."""
    env = make_env()
    size, num_actions = env.observation_space["observation"].shape[0], int(env.action_space.n)
    actor = MaskedNet(size, num_actions, 0.01, masked=True)
    learner: PPO = PPO(
        policy=DiscreteActorPolicy(actor=actor, action_space=env.action_space),
        critic=MaskedNet(size, 1, 1.0, masked=False),
        optim=AdamOptimizerFactory(lr=LEARNING_RATE, eps=1e-5),
        eps_clip=CLIP,
        vf_coef=VALUE_WEIGHT,
        ent_coef=ENTROPY,
        max_grad_norm=MAX_GRADIENT,
        gae_lambda=GAE_LAMBDA,
        gamma=1.0,  # the game is one of winning or losing at its end
        max_batchsize=MINIBATCH,
    )
    return PaidBySeat(algorithms=[learner] * len(env.agents), env=env)


def train(algorithm: PaidBySeat, steps: int, seed: int) -> None:
    """Train by self-play for about `steps` moves, of both seats together."""
    games = DummyVectorEnv([make_env] * NUM_ENVS)
    games.seed(derived_seeds(seed, "games", NUM_ENVS))
    collector = Collector(algorithm, games, VectorReplayBuffer(4 * NUM_GAMES * MOST_MOVES, NUM_ENVS))
    optimizer = algorithm.get_algorithm("player_0").optim._optim
    began, reported = time.perf_counter(), 0

    def before_games(epoch: int, done: int) -> None:
        nonlocal reported
        optimizer.param_groups[0]["lr"] = LEARNING_RATE * max(0.0, 1 - done / steps)
        if done - reported >= steps // 10:
            reported = done
            print(f"{done:,} steps, {done / (time.perf_counter() - began):,.0f} a second", flush=True)

    algorithm.run_training(
        OnPolicyTrainerParams(
            training_collector=collector,
            collection_step_num_env_steps=None,
            collection_step_num_episodes=NUM_GAMES,  # whole games, so that every move's reward is known
            max_epochs=1,
            epoch_num_steps=steps,
            batch_size=MINIBATCH,
            update_step_num_repetitions=EPOCHS,
            training_fn=before_games,
            multi_agent_return_reduction=lambda returns: returns[:, 0],
            verbose=False,
            show_progress=False,
        )
    )


def exploitability(algorithm: PaidBySeat) -> float:
    """Return how far the policy is from optimal play, exactly."""
    actor = algorithm.get_algorithm("player_0").policy.actor
    policy = policy_of(lambda observations, masks: actor(Batch(obs=observations, mask=masks != 0))[0])
    return dice_envs.measure("liars_dice", policy, **GAME).measures[0].value


def main() -> None:
    """Read the options, train, measure."""
    options = CommandLine(__name__, steps=400_000, of="moves of both seats").read()
    logging.getLogger("tianshou").setLevel(logging.ERROR)  # at every update it warns of two seats' returns
    torch.manual_seed(options.seed)
    np.random.seed(derived_seeds(options.seed, "shuffling")[0] % 2**32)  # noqa: NPY002 - Tianshou shuffles with it
    algorithm = make_algorithm()
    before = exploitability(algorithm)
    train(algorithm, options.steps, options.seed)
    print(f"exploitability from {before:.4f} to {exploitability(algorithm):.4f} (0: optimal play)")


if __name__ == "__main__":
    main()
