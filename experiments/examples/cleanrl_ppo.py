"""Masked PPO in a single file, in CleanRL's manner, on a Gymnasium vector environment.

    make example NAME=cleanrl_ppo ARGS="--seed 1"

Liar's Dice with two dice each, against an agent that plays by the numbers. After 1,000,000 decisions, 71 and 82 seconds of one
core, the policy wins 85.27 % of games with seed 1 and 85.28 % with seed 2, where a best response wins 85.76 %; all of these are
exact. A best response to the policy itself wins 80 % (exploitability 0.597 and 0.602): who learns to beat one opponent has not
learned to be hard to beat. `pettingzoo_self_play` is about that.
"""

from __future__ import annotations

import argparse
import secrets
import time
from typing import Any

import gymnasium
import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical

import dice_envs
from dice_envs.core.options import check_range
from dice_envs.exact.liars_dice.measures import winning_probability

GAME: dict[str, Any] = {"num_dice": 2, "past_rounds": False}  # this opponent's past rounds tell nothing
OPPONENT = "numbers"

NUM_ENVS = 512
NUM_STEPS = 32  # of every environment between two updates
MINIBATCH = 2048
EPOCHS = 4
LEARNING_RATE = 1e-3  # falls to 0 linearly
GAE_LAMBDA = 0.95
CLIP = 0.2
ENTROPY = 0.01
VALUE_WEIGHT = 0.5
MAX_GRADIENT = 0.5
BATCH = NUM_ENVS * NUM_STEPS


def layer(inputs: int, outputs: int, scale: float = 2**0.5) -> nn.Linear:
    """A dense layer with orthogonal weights and no bias at first."""
    made = nn.Linear(inputs, outputs)
    nn.init.orthogonal_(made.weight, scale)
    nn.init.zeros_(made.bias)
    return made


class Agent(nn.Module):
    """A policy and a value, each with a network of its own."""

    def __init__(self, observation_size: int, num_actions: int) -> None:
        super().__init__()
        self.actor = nn.Sequential(
            layer(observation_size, 128), nn.Tanh(), layer(128, 128), nn.Tanh(), layer(128, num_actions, 0.01)
        )
        self.critic = nn.Sequential(layer(observation_size, 128), nn.Tanh(), layer(128, 128), nn.Tanh(), layer(128, 1, 1.0))

    def policy(self, observations: torch.Tensor, masks: torch.Tensor) -> Categorical:
        """The distribution of actions. A logit of -inf is a probability of 0, so only legal actions are drawn, and the
        gradient of illegal ones is 0. The mask must be the same in acting and in learning, so it is stored."""
        return Categorical(logits=self.actor(observations).masked_fill(masks == 0, -torch.inf))

    def value(self, observations: torch.Tensor) -> torch.Tensor:
        """What the learner's seat is expected to earn from here on."""
        return self.critic(observations).squeeze(-1)


def train(steps: int, seed: int) -> Agent:
    """Train against the opponent for about `steps` decisions of the learner."""
    torch.manual_seed(seed)
    # The opponent plays inside `step`: each observation is one at which the learner decides, and a reward is what its seat
    # has earned since its last decision. With SameStep an ended game is dealt again at once, so no step is without a decision.
    envs: Any = gymnasium.make_vec(
        "dice_envs/LiarsDice-v0", num_envs=NUM_ENVS, opponents=OPPONENT, seat="random", autoreset_mode="SameStep", **GAME
    )
    size, num_actions = envs.single_observation_space.shape[0], int(envs.single_action_space.n)
    agent = Agent(size, num_actions)
    optimizer = torch.optim.Adam(agent.parameters(), lr=LEARNING_RATE, eps=1e-5)

    observations = torch.zeros(NUM_STEPS, NUM_ENVS, size)
    masks = torch.zeros(NUM_STEPS, NUM_ENVS, num_actions, dtype=torch.int8)
    actions = torch.zeros(NUM_STEPS, NUM_ENVS, dtype=torch.long)
    log_probs, rewards, dones, values = (torch.zeros(NUM_STEPS, NUM_ENVS) for _ in range(4))

    observation, info = envs.reset(seed=seed)  # game i has seed + i: the whole run depends on the seed alone
    began, num_updates = time.perf_counter(), -(-steps // BATCH)
    for update in range(num_updates):
        optimizer.param_groups[0]["lr"] = LEARNING_RATE * (1 - update / num_updates)
        games = wins = 0
        for step in range(NUM_STEPS):
            observations[step] = torch.from_numpy(observation)
            masks[step] = torch.from_numpy(info["action_mask"])
            with torch.no_grad():
                policy = agent.policy(observations[step], masks[step])
                actions[step] = policy.sample()
                log_probs[step] = policy.log_prob(actions[step])
                values[step] = agent.value(observations[step])
            observation, reward, terminated, _, info = envs.step(actions[step].numpy())  # no game here is truncated
            rewards[step], dones[step] = torch.from_numpy(reward), torch.from_numpy(terminated)
            games += int(terminated.sum())
            wins += int((reward[terminated] > 0).sum())

        # Generalised advantage estimation. The game is one of winning or losing at its end, so nothing is discounted.
        with torch.no_grad():
            next_value = agent.value(torch.from_numpy(observation))
            advantages = torch.zeros_like(rewards)
            trace = torch.zeros(NUM_ENVS)
            for step in reversed(range(NUM_STEPS)):
                alive = 1 - dones[step]
                trace = rewards[step] + alive * next_value - values[step] + GAE_LAMBDA * alive * trace
                advantages[step] = trace
                next_value = values[step]
            returns = advantages + values

        flat = [each.flatten(0, 1) for each in (observations, masks, actions, log_probs, advantages, returns)]
        for _ in range(EPOCHS):
            for chosen in torch.randperm(BATCH).split(MINIBATCH):
                seen, mask, action, old_log_prob, advantage, target = (each[chosen] for each in flat)
                policy = agent.policy(seen, mask)
                ratio = (policy.log_prob(action) - old_log_prob).exp()
                advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
                surrogate = torch.min(advantage * ratio, advantage * ratio.clamp(1 - CLIP, 1 + CLIP)).mean()
                value_loss = 0.5 * (agent.value(seen) - target).square().mean()
                loss = -surrogate + VALUE_WEIGHT * value_loss - ENTROPY * policy.entropy().mean()
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), MAX_GRADIENT)
                optimizer.step()
        if (update + 1) % max(1, num_updates // 10) == 0:
            done, seconds = (update + 1) * BATCH, time.perf_counter() - began
            print(f"{done:,} steps, {done / seconds:,.0f} a second: wins {wins / games:.1%} of {games:,} games", flush=True)
    envs.close()
    return agent


def report(agent: Agent) -> None:
    """How good the policy is, computed and not played."""

    def policy(observations: np.ndarray, masks: np.ndarray) -> torch.Tensor:
        """What `measure` takes: from observations and action masks to action probabilities, for any number of positions."""
        with torch.no_grad():
            return agent.policy(torch.from_numpy(observations), torch.from_numpy(masks)).probs

    variant = dice_envs.configure("liars_dice", **GAME)
    wins = winning_probability(variant, policy, OPPONENT)
    _, best_response = dice_envs.measure(variant, OPPONENT).measures
    exploitability = dice_envs.measure(variant, policy).measures[0]
    print(f"wins {wins:.4f} of the games against {OPPONENT}, where a best response wins {best_response.value:.4f}")
    print(f"exploitability {exploitability.value:.4f} (0: optimal play): it has learned to beat {OPPONENT}, nothing else")


def main() -> None:
    """Read the options, train, measure."""
    parser = argparse.ArgumentParser(usage=argparse.SUPPRESS, description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1_000_000, help="decisions of the learner, in all")
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
    print(f"seed {options.seed}", flush=True)
    report(train(options.steps, options.seed))


if __name__ == "__main__":
    main()
