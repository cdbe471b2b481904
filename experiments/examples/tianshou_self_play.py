"""Self-play with Tianshou's PPO, on a PettingZoo environment in which every seat is the learner's.

    make example NAME=tianshou_self_play

It learns Liar's Dice with one die each by OpenSpiel's rules, and is told exactly how far it is from optimal play: 400,000
moves in 4.5 minutes of one core bring its exploitability from 0.7807 to 0.2991 (seed 1). This is
plain PPO with an entropy bonus, for few moves; docs/ppo.md says which recipes come nearer to 0.

Two things have to be done that Tianshou 2.0 leaves to its users: its PPO does not look at action masks (see `Network`), and
what a seat is paid while another moves is lost (see `SelfPlay`).
"""

from __future__ import annotations

import argparse
import logging
import secrets
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
from torch import nn

import dice_envs
from dice_envs.core.options import check_range

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


class Network(ActionReprNet):
    """Logits of the actions, or a value. Tianshou hands it what PettingZooEnv makes of an observation: `obs`, `mask` and
    `agent_id`. Only its DQN looks at the mask, so that a PPO's network has to."""

    def __init__(self, inputs: int, outputs: int, scale: float, masked: bool) -> None:
        super().__init__()
        layers = nn.Linear(inputs, 128), nn.Linear(128, 128), nn.Linear(128, outputs)
        for layer, gain in zip(layers, (2**0.5, 2**0.5, scale), strict=True):
            nn.init.orthogonal_(layer.weight, gain)
            nn.init.zeros_(layer.bias)
        self.layers = nn.Sequential(layers[0], nn.Tanh(), layers[1], nn.Tanh(), layers[2])
        self.masked = masked

    def forward(self, obs: Any, state: Any = None, info: Any = None) -> Any:
        out = self.layers(torch.as_tensor(obs.obs, dtype=torch.float32))
        if not self.masked:
            return out  # Tianshou calls a critic without a state
        return out.masked_fill(~torch.as_tensor(obs.mask), -torch.inf), state


class SelfPlay(MultiAgentOnPolicyAlgorithm):
    """Hands each seat its own moves, with all that it earns up to its next one.

    A game is stored as one sequence of everybody's moves, with the rewards of all seats at each. Tianshou picks a seat's
    moves out of it but leaves behind what it is paid while another moves: who bids and is called would never learn that it
    has lost. Nor would the last move of such a seat end a game.
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
        batch.obs_next = batch.obs[np.where(last, 0, following)]  # the seat's own next position; the end's value is not used
        return super()._preprocess_batch(batch, buffer, indices)


def make_env() -> PettingZooEnv:
    """One game, every seat of which is Tianshou's."""
    return PettingZooEnv(dice_envs.liars_dice_v0.raw_env(**GAME))


def make_algorithm() -> SelfPlay:
    """PPO with one network for all seats: what one seat learns, the others know."""
    env = make_env()
    size, num_actions = env.observation_space["observation"].shape[0], int(env.action_space.n)
    actor = Network(size, num_actions, 0.01, masked=True)
    learner: PPO = PPO(
        policy=DiscreteActorPolicy(actor=actor, action_space=env.action_space),
        critic=Network(size, 1, 1.0, masked=False),
        optim=AdamOptimizerFactory(lr=LEARNING_RATE, eps=1e-5),
        eps_clip=CLIP,
        vf_coef=VALUE_WEIGHT,
        ent_coef=ENTROPY,
        max_grad_norm=MAX_GRADIENT,
        gae_lambda=GAE_LAMBDA,
        gamma=1.0,  # the game is one of winning or losing at its end
        max_batchsize=MINIBATCH,
    )
    return SelfPlay(algorithms=[learner] * len(env.agents), env=env)


def train(algorithm: SelfPlay, steps: int, seed: int) -> None:
    """Train by self-play for about `steps` moves, of both seats together."""
    games = DummyVectorEnv([make_env] * NUM_ENVS)
    games.seed(seed)  # game i has seed + i
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
            collection_step_num_episodes=NUM_GAMES,  # whole games, so that nobody waits for a reward
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


def exploitability(algorithm: SelfPlay) -> float:
    """How far the policy is from optimal play, computed and not played."""
    actor = algorithm.get_algorithm("player_0").policy.actor

    def policy(observations: np.ndarray, masks: np.ndarray) -> torch.Tensor:
        """What `measure` takes: from observations and action masks to action probabilities, for any number of positions."""
        with torch.no_grad():
            logits, _ = actor(Batch(obs=observations, mask=masks != 0))
        return torch.softmax(logits, dim=1)

    return dice_envs.measure("liars_dice", policy, **GAME).measures[0].value


def main() -> None:
    """Read the options, train, measure."""
    parser = argparse.ArgumentParser(usage=argparse.SUPPRESS, description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=400_000, help="moves of both seats, in all")
    parser.add_argument("--seed", type=int, default=secrets.randbits(31), help="fixes all that is random; fresh if left out")
    parser.add_argument("--threads", type=int, default=1, help="PyTorch's")
    options = parser.parse_args()
    try:
        check_range("--steps", options.steps, 1, 10**10)
        check_range("--seed", options.seed, 0, 2**32 - 1)
        check_range("--threads", options.threads, 1, 256)
    except ValueError as problem:
        parser.error(str(problem))
    torch.set_num_threads(options.threads)
    logging.getLogger("tianshou").setLevel(logging.ERROR)  # it warns at every update that there are two seats' returns
    print(f"seed {options.seed}", flush=True)
    torch.manual_seed(options.seed)
    np.random.seed(options.seed)  # noqa: NPY002 - Tianshou shuffles with it
    algorithm = make_algorithm()
    before = exploitability(algorithm)
    train(algorithm, options.steps, options.seed)
    print(f"exploitability from {before:.4f} to {exploitability(algorithm):.4f} (0: optimal play)")


if __name__ == "__main__":
    main()
