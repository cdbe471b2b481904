"""Masked PPO from TorchRL's own parts (collector, MaskedCategorical, GAE, ClipPPOLoss), on a Gymnasium vector environment.

    make example NAME=torchrl_ppo

It learns to beat the numbers agent in Liar's Dice with two dice each. After a million decisions, which took 1.7 minutes on one
core, it wins 0.8525 of the games (seed 1); a best response wins 0.8576 and uniformly random play 0.10, all exactly. Counted
from one half, that is 98.6 % of what can be won.

One game at a time is `GymEnv("dice_envs:dice_envs/LiarsDice-v0")`; the part before the colon is what Gymnasium imports.
"""

from __future__ import annotations

import time
from typing import Any

import gymnasium
import numpy as np
import torch
from tensordict import TensorDict
from tensordict.nn import TensorDictModule
from torch import nn
from torchrl.collectors import Collector
from torchrl.data import Binary
from torchrl.envs import DTypeCastTransform, GymWrapper, TransformedEnv, default_info_dict_reader
from torchrl.modules import MaskedCategorical, ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

import dice_envs
from dice_envs.core.dice import derived_seeds
from dice_envs.exact.liars_dice.measures import winning_probability
from dice_envs.experiments.examples import CommandLine

GAME: dict[str, Any] = {"num_dice": 2, "past_rounds": False}  # past rounds tell nothing about this opponent
OPPONENT = "numbers"

NUM_ENVS = 512
BATCH = 32 * NUM_ENVS  # decisions of the learner between two updates
MINIBATCH = 2048
EPOCHS = 4
LEARNING_RATE = 1e-3  # falls to 0 linearly
GAE_LAMBDA = 0.95
CLIP = 0.2
ENTROPY = 0.01
VALUE_WEIGHT = 0.5
MAX_GRADIENT = 0.5


def make_env() -> TransformedEnv:
    """Many games stepped together, as one TorchRL environment."""
    # TorchRL resets ended games itself, so Gymnasium's autoreset is disabled.
    games = gymnasium.make_vec(
        "dice_envs:dice_envs/LiarsDice-v0", num_envs=NUM_ENVS, opponents=OPPONENT, autoreset_mode="Disabled", **GAME
    )
    env = GymWrapper(games, categorical_action_encoding=True)
    # The mask comes in the infos. TorchRL ignores these unless a reader says which entries to copy, and their specs.
    num_actions = env.action_spec.space.n
    masks = Binary(num_actions, shape=(NUM_ENVS, num_actions), dtype=torch.int8)
    env.set_info_dict_reader(default_info_dict_reader(["action_mask"], spec=[masks]))
    return TransformedEnv(env, DTypeCastTransform(torch.int8, torch.bool, in_keys=["action_mask"]))


def network(inputs: int, outputs: int, scale: float) -> nn.Sequential:
    """A policy or a value; a small `scale` makes the first policy nearly uniform."""
    layers = nn.Linear(inputs, 128), nn.Linear(128, 128), nn.Linear(128, outputs)
    for layer, gain in zip(layers, (2**0.5, 2**0.5, scale), strict=True):
        nn.init.orthogonal_(layer.weight, gain)
        nn.init.zeros_(layer.bias)
    return nn.Sequential(layers[0], nn.Tanh(), layers[1], nn.Tanh(), layers[2])


def make_actor(observation_size: int, num_actions: int) -> ProbabilisticActor:
    """A policy that draws only legal actions. The loss rebuilds the same distribution from the stored masks, so that acting and
    learning agree."""
    logits = TensorDictModule(network(observation_size, num_actions, 0.01), in_keys=["observation"], out_keys=["logits"])
    return ProbabilisticActor(
        logits,
        in_keys={"logits": "logits", "mask": "action_mask"},  # the distribution's arguments and where they come from
        distribution_class=MaskedCategorical,
        return_log_prob=True,
    )


def train(steps: int, seed: int) -> ProbabilisticActor:
    """Train against the opponent for about `steps` decisions of the learner."""
    torch.manual_seed(seed)
    env = make_env()
    env.set_seed(derived_seeds(seed, "games")[0] >> 1)  # game i has this + i, far from the seeds of other runs
    size, num_actions = env.observation_spec["observation"].shape[-1], env.action_spec.space.n
    actor = make_actor(size, num_actions)
    critic = ValueOperator(network(size, 1, 1.0), in_keys=["observation"])
    # A game is won or lost at its end, so rewards are not discounted. The opponent plays inside the environment's step: a
    # reward is all that the learner's seat has earned since its last decision, by the opponent's moves too.
    advantage = GAE(gamma=1.0, lmbda=GAE_LAMBDA, value_network=critic)
    loss_of = ClipPPOLoss(
        actor, critic, clip_epsilon=CLIP, entropy_coeff=ENTROPY, critic_coeff=VALUE_WEIGHT, normalize_advantage=True
    )
    optimizer = torch.optim.Adam(loss_of.parameters(), lr=LEARNING_RATE, eps=1e-5)
    num_updates = -(-steps // BATCH)
    collector = Collector(
        env, actor, frames_per_batch=BATCH, total_frames=num_updates * BATCH, auto_register_policy_transforms=False
    )
    began = time.perf_counter()
    for update, batch in enumerate(collector):
        optimizer.param_groups[0]["lr"] = LEARNING_RATE * (1 - update / num_updates)
        with torch.no_grad():
            advantage(batch)  # writes `advantage` and `value_target`
        flat = batch.reshape(-1)
        for _ in range(EPOCHS):
            for chosen in torch.randperm(BATCH).split(MINIBATCH):
                losses = loss_of(flat[chosen])
                optimizer.zero_grad()
                (losses["loss_objective"] + losses["loss_critic"] + losses["loss_entropy"]).backward()
                nn.utils.clip_grad_norm_(loss_of.parameters(), MAX_GRADIENT)
                optimizer.step()
        if (update + 1) % max(1, num_updates // 10) == 0:
            done, seconds = (update + 1) * BATCH, time.perf_counter() - began
            earned = batch["next", "reward"][batch["next", "done"]]
            won = (earned > 0).float().mean().item()
            print(f"{done:,} steps, {done / seconds:,.0f} a second: wins {won:.1%} of {len(earned):,} games", flush=True)
    collector.shutdown()
    return actor


def report(actor: ProbabilisticActor) -> None:
    """Print how good the policy is: exact figures, no games are played."""

    def policy(observations: np.ndarray, masks: np.ndarray) -> torch.Tensor:
        """The policy as `measure` takes it: observations and action masks of n positions → action probabilities."""
        data = {"observation": torch.from_numpy(observations), "action_mask": torch.from_numpy(masks) != 0}
        with torch.no_grad():
            return actor.get_dist(TensorDict(data, batch_size=len(observations))).probs

    variant = dice_envs.configure("liars_dice", **GAME)
    wins = winning_probability(variant, policy, OPPONENT)
    best = dice_envs.measure(variant, OPPONENT).measures[1].value
    print(f"wins {wins:.4f} of the games against {OPPONENT}; a best response wins {best:.4f}")


def main() -> None:
    """Read the options, train, measure."""
    line = CommandLine(__doc__, steps=1_000_000)
    line.number("--threads", 1, 1, 256, "PyTorch's")
    options = line.read()
    torch.set_num_threads(options.threads)
    report(train(options.steps, options.seed))


if __name__ == "__main__":
    main()
