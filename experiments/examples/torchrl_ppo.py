"""Masked PPO from TorchRL's own parts (collector, MaskedCategorical, GAE, ClipPPOLoss), on games that are tensors.

    make example NAME=torchrl_ppo

It learns to beat the numbers agent in Liar's Dice with two dice each. After a million decisions, which took 1.7 minutes on one
core, it wins 0.8525 of the games (seed 1); a best response wins 0.8576 and uniformly random play 0.10, all exactly. Counted
from one half, that is 98.6 % of what can be won.

`--device cuda` plays and trains on a GPU. One game at a time is `GymEnv("dice_envs:dice_envs/LiarsDice-v0")`; the part before
the colon is what Gymnasium imports.
"""

from __future__ import annotations

import time
from typing import Any

import torch
from tensordict import TensorDict
from tensordict.nn import TensorDictModule
from torch import nn
from torchrl.collectors import Collector
from torchrl.data import Binary, Bounded, Categorical, Composite, Unbounded
from torchrl.envs import EnvBase
from torchrl.modules import MaskedCategorical, ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

import dice_envs
from dice_envs.experiments.examples import CommandLine, network, policy_of, print_wins

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


class TensorGames(EnvBase):
    """Many games stepped together, on any device: an ended game has been dealt again when its step returns."""

    def __init__(self, num_envs: int, device: str) -> None:
        self.games = dice_envs.TensorEnv("liars_dice", num_envs, OPPONENT, device=device, **GAME)
        super().__init__(device=self.games.device, batch_size=[num_envs])
        facts, n = self.games.variant.facts, num_envs
        self.observation_spec = Composite(
            observation=Bounded(0, 1, (n, facts.observation_size)),
            action_mask=Binary(shape=(n, facts.num_actions), dtype=torch.bool),
            shape=[n],
        ).to(self.device)
        self.action_spec = Categorical(facts.num_actions, (n,), device=self.device)
        self.reward_spec = Unbounded((n, 1), device=self.device)
        self.seed: int | None = None

    def _set_seed(self, seed: int | None) -> None:
        self.seed = seed  # of the next reset of all games

    def _reset(self, tensordict: TensorDict | None = None, **others: Any) -> TensorDict:
        if tensordict is None or "_reset" not in tensordict:
            self.games.reset(self.seed)
            self.seed = None
        return TensorDict(self._seen(), self.batch_size)  # ended games have been dealt again

    def _step(self, tensordict: TensorDict) -> TensorDict:
        seats = self.games.seats.unsqueeze(1).clone()
        done = self.games.step(tensordict["action"])
        result = {"reward": done.earned.gather(1, seats), "done": done.ended.unsqueeze(1).clone()}
        # The observation after an end is the next game's: no loss looks at the value of a position after the end.
        return TensorDict({**self._seen(), **result, "terminated": result["done"].clone()}, self.batch_size)

    def _seen(self) -> dict[str, torch.Tensor]:
        # Copies, since the next step overwrites the games' tensors.
        return {"observation": self.games.observations.clone(), "action_mask": self.games.masks.bool()}


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


def train(steps: int, seed: int, device: str) -> ProbabilisticActor:
    """Train against the opponent for about `steps` decisions of the learner."""
    torch.manual_seed(seed)
    env = TensorGames(NUM_ENVS, device)
    env.set_seed(seed)
    size, num_actions = env.observation_spec["observation"].shape[-1], env.action_spec.space.n
    actor = make_actor(size, num_actions).to(env.device)
    critic = ValueOperator(network(size, 1, 1.0), in_keys=["observation"]).to(env.device)
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
            for chosen in torch.randperm(BATCH, device=env.device).split(MINIBATCH):
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

    def logits(observations: torch.Tensor, masks: torch.Tensor) -> torch.Tensor:
        data = {"observation": observations, "action_mask": masks != 0}
        return actor.get_dist(TensorDict(data, batch_size=len(observations))).logits

    print_wins(dice_envs.configure("liars_dice", **GAME), policy_of(logits), OPPONENT)


def main() -> None:
    """Read the options, train, measure."""
    line = CommandLine(__name__, steps=1_000_000)
    line.add_argument("--device", default="cpu", help="PyTorch's, such as cpu or cuda")
    options = line.read()
    report(train(options.steps, options.seed, options.device).cpu())


if __name__ == "__main__":
    main()
