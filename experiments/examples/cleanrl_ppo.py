"""Masked PPO in a single file, in CleanRL's style, on a Gymnasium vector environment.

    make example NAME=cleanrl_ppo ARGS="--seed 1"

The game is Liar's Dice with two dice each, against an agent that plays by the numbers. 1,000,000 decisions took 71 and 82
seconds on one core. The policy then wins 85.24 % of games with seed 1 and 85.26 % with seed 2; a best response wins 85.76 %.
All of these are exact. A best response to the policy itself wins 80 and 79 % (exploitability 0.597 and 0.573): a policy that
beats one opponent is not yet hard to beat. `tianshou_self_play` trains for that.
"""

from __future__ import annotations

import time
from typing import Any

import gymnasium
import torch
from torch import nn
from torch.distributions import Categorical

import dice_envs
from dice_envs.core.dice import derived_seeds
from dice_envs.experiments.examples import CommandLine, policy_of, print_wins

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
    """A dense layer with orthogonal initial weights and a bias of 0."""
    made = nn.Linear(inputs, outputs)
    nn.init.orthogonal_(made.weight, scale)
    nn.init.zeros_(made.bias)
    return made


class ActorCritic(nn.Module):
    """A policy and a value, each with a network of its own."""

    def __init__(self, observation_size: int, num_actions: int) -> None:
        super().__init__()
        self.actor = nn.Sequential(
            layer(observation_size, 128), nn.Tanh(), layer(128, 128), nn.Tanh(), layer(128, num_actions, 0.01)
        )
        self.critic = nn.Sequential(layer(observation_size, 128), nn.Tanh(), layer(128, 128), nn.Tanh(), layer(128, 1, 1.0))

    def policy(self, observations: torch.Tensor, masks: torch.Tensor) -> Categorical:
        """The distribution of actions. A logit of -inf gives probability 0, so that only legal actions are drawn and illegal
        ones have no gradient. The update must use the mask that was used in acting, so masks are stored with the
        observations."""
        return Categorical(logits=self.actor(observations).masked_fill(masks == 0, -torch.inf))

    def value(self, observations: torch.Tensor) -> torch.Tensor:
        """The learner's expected return from here on."""
        return self.critic(observations).squeeze(-1)


def train(steps: int, seed: int) -> ActorCritic:
    """Train against the opponent for about `steps` decisions of the learner."""
    torch.manual_seed(seed)
    # The opponent plays inside `step`: the learner is to move at every observation, and a reward is what its seat has earned
    # since its last decision. With SameStep an ended game is dealt again at once, so every step has a decision.
    envs: Any = gymnasium.make_vec(
        "dice_envs/LiarsDice-v0", num_envs=NUM_ENVS, opponents=OPPONENT, seat="random", autoreset_mode="SameStep", **GAME
    )
    size, num_actions = envs.single_observation_space.shape[0], int(envs.single_action_space.n)
    agent = ActorCritic(size, num_actions)
    optimizer = torch.optim.Adam(agent.parameters(), lr=LEARNING_RATE, eps=1e-5)

    observations = torch.zeros(NUM_STEPS, NUM_ENVS, size)
    masks = torch.zeros(NUM_STEPS, NUM_ENVS, num_actions, dtype=torch.int8)
    actions = torch.zeros(NUM_STEPS, NUM_ENVS, dtype=torch.long)
    log_probs, rewards, dones, values = (torch.zeros(NUM_STEPS, NUM_ENVS) for _ in range(4))

    # The whole run depends on its seed alone. Game i has a seed of its own: with seed + i, runs with the seeds 1 and 2 would
    # share all games but one.
    observation, info = envs.reset(seed=derived_seeds(seed, "games", NUM_ENVS))
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

        # Generalised advantage estimation. A game is won or lost at its end, so rewards are not discounted.
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


def report(agent: ActorCritic) -> None:
    """Print how good the policy is: exact figures, no games are played."""
    policy = policy_of(lambda observations, masks: agent.policy(observations, masks).logits)
    variant = dice_envs.configure("liars_dice", **GAME)
    print_wins(variant, policy, OPPONENT)
    exploitability = dice_envs.measure(variant, policy).measures[0]
    print(f"exploitability {exploitability.value:.4f} (0: optimal play): it has learned to beat {OPPONENT}, nothing else")


def main() -> None:
    """Read the options, train, measure."""
    options = CommandLine(__name__, steps=1_000_000).read()
    report(train(options.steps, options.seed))


if __name__ == "__main__":
    main()
