"""PPO for games with several learners at one table: SB3's MaskablePPO, in which every seat's moves teach.

The learner may have every seat of a game (`dice_envs.envs.sb3.make_vec_env(..., self_play=1.0)`). Each of its decisions is
then a sample; advantages follow the decisions of one seat, whatever the others do in between.

In zero-sum games plain policy gradients circle around the equilibrium. What pulls them in is a regulariser strong enough to
keep policies mixed: an entropy bonus, or a Kullback-Leibler term to a reference policy, fixed or slowly following the
learner. Sources: S. Sokota et al., A Unified Approach to Reinforcement Learning, Quantal Response Equilibria, and Two-Player
Zero-Sum Games (ICLR 2023, magnetic mirror descent); M. Rudolph et al., Reevaluating Policy Gradient Methods for
Imperfect-Information Games (2025), sections 3 and 5.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from dice_envs.core.extras import needs
from dice_envs.envs.sb3 import SeatVecEnv
from dice_envs.learn.policy_gradient import (
    Network,
    dense_layers,
    estimate_advantages,
    estimate_opposed_advantages,
    policy_gradient,
    policy_gradient_on_device,
    sample_actions,
)

with needs("sb3", "dice_envs.learn.ppo"):
    import torch
    from sb3_contrib import MaskablePPO
    from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
    from stable_baselines3.common.buffers import BaseBuffer
    from stable_baselines3.common.utils import explained_variance
    from torch import nn

__all__ = ["RegularisedPPO", "SeatBuffer", "dense_layers"]

Schedule = float | Callable[[float], float]  # a number, or a function of the share of training that remains, from 1 to 0


# --- the rollout ------------------------------------------------------------------------------------------------------


class SeatBuffer(BaseBuffer):
    """A rollout in which each row is a decision of the seat whose turn it was. All tensors are on the learner's device.

    Attributes:
        observations: (steps, games, size) float32.
        masks: (steps, games, actions) int8.
        logits: (steps, games, actions) float32, of the policy that played, before masking.
        states: (steps, games, seats × size) float32, what all seats saw; None where the critic does not ask for it.
        actions, log_probs, values, advantages, returns: (steps, games), int64 and float32.
        seats, ended: (steps, games) int64 and int8 on the CPU; earned: (steps, games, seats) float64.
    """

    def __init__(
        self,
        buffer_size: int,
        observation_space: Any,
        action_space: Any,
        device: Any = "auto",
        gae_lambda: float = 1.0,
        gamma: float = 1.0,
        n_envs: int = 1,
    ) -> None:
        super().__init__(buffer_size, observation_space, action_space, device, n_envs)
        self.gamma, self.gae_lambda = gamma, gae_lambda
        shape = (buffer_size, n_envs)
        self.observations = torch.empty((*shape, *self.obs_shape), device=self.device)
        self.masks = torch.empty((*shape, int(action_space.n)), dtype=torch.int8, device=self.device)
        self.logits = torch.empty((*shape, int(action_space.n)), device=self.device)
        self.states: torch.Tensor | None = None
        self.actions = np.empty(shape, np.int64)
        self.log_probs = np.empty(shape, np.float32)
        self.seats = np.empty(shape, np.int64)
        self.ended = np.empty(shape, np.int8)
        self.values = np.empty(shape, np.float32)
        self.advantages = np.empty(shape, np.float32)
        self.returns = np.empty(shape, np.float32)
        self.earned = np.empty((*shape, 1))

    def reset(self) -> None:
        self.pos = 0

    def add_sight(self, observations: Any, masks: Any, logits: Any, states: Any = None) -> None:
        """What a decision in each game is made from, all of them before it; `add` completes it."""
        t = self.pos
        self.observations[t], self.masks[t], self.logits[t] = observations, masks, logits
        if states is not None:
            if self.states is None:
                self.states = torch.empty((*self.actions.shape, states.shape[1]), device=self.device)
            self.states[t] = states

    def add(self, actions: Any, log_probs: Any, seats: Any, earned: Any, ended: Any) -> None:
        """The decision in each game; `earned` (games, seats) and `ended` are what came of it."""
        t = self.pos
        if self.earned.shape[2] != earned.shape[1]:
            self.earned = np.empty((*self.actions.shape, earned.shape[1]))
        self.actions[t], self.log_probs[t], self.seats[t] = actions, log_probs, seats
        self.earned[t], self.ended[t] = earned, ended
        self.pos += 1

    def estimate(
        self,
        values: np.ndarray,
        taken: np.ndarray,
        last_seats: np.ndarray,
        last_values: np.ndarray,
        out: np.ndarray,
        opposed: bool = False,
    ) -> None:
        """Set values, advantages and returns.

        values, taken: (steps, games), of each decision and of the action taken (see `estimate_advantages`); the others are
        of the position after the last step. opposed: whether a value is the negative of the other seat's (see
        `estimate_opposed_advantages`).
        """
        waits = np.zeros(self.actions.shape, np.int8)
        self.values[:] = values
        found = (self.seats, self.earned, self.ended, self.values, taken, last_seats, last_values)
        weights = (float(self.gamma), float(self.gae_lambda))
        if opposed:
            estimate_opposed_advantages(*found, *weights, self.advantages)
        else:
            estimate_advantages(*found, out, *weights, self.advantages, waits)
        self.returns[:] = self.advantages + taken
        self.waits = waits

    def _get_samples(self, batch_inds: np.ndarray, env: Any = None) -> Any:
        raise NotImplementedError("RegularisedPPO takes minibatches itself")


# --- the learner ------------------------------------------------------------------------------------------------------


def _at(schedule: Schedule, remaining: float) -> float:
    return float(schedule(remaining)) if callable(schedule) else float(schedule)


class RegularisedPPO(MaskablePPO):
    """MaskablePPO in which every seat that the learner has teaches, with a pull towards a reference policy.

    It trains on a `dice_envs.envs.sb3.SeatVecEnv`. Callbacks, TensorBoard, `save` and `load` work as in MaskablePPO. On a CPU
    the dense layers of `MlpPolicy` and the loss are computed by faster code than SB3's, with the same results but for rounding.

    Args:
        policy, env: as MaskablePPO's; `env` is a SeatVecEnv.
        ent_coef: weight of the entropy bonus; a function of the share of training that remains makes a schedule.
        kl_coef: weight of KL(policy ‖ reference), as a number or a schedule.
        reference_rate: how far the reference's weights move towards the learner's after each iteration, 0 to 1, as a number
            or a schedule. 0: it stays what the policy was in the beginning, which is almost uniform.
        exploration: the share of self-play games that start with random moves, as a number or a schedule (see
            `dice_envs.envs.learner.SeatGames`).
        proximal_coef: weight of KL(policy ‖ the policy that played), as a number or a schedule. With several epochs an
            update then becomes a step of mirror descent whose size, 1 / proximal_coef, is the same at all information
            sets, however often they come up; clipping alone leaves that to chance.
        settle: let the learning rate fall to 0, linearly, in the course of each update. Else its last few minibatches decide
            where it ends, which is more noise than the rollout itself brings.
        least_stake: above 0, the weights of entropy and divergences are multiplied at each decision by what is at stake there:
            half the difference between its best and its worst action by the central critic, but this at least. In a match of
            many rounds one may be worth a hundredth of a return of ±1 and another all of it, so no weight suits both.
        central_critic: whether the critic sees what all seats see (`SeatVecEnv.state`) and tells what every action is worth,
            as it may, since only training needs it. The policy's mean of these values is maximised then, and PPO's clipped
            loss is left with what a sampled action was worth beyond them: the gradient is the same in the mean, with far
            less noise. The critic has the hidden layers of the policy's own one, which is not used then.
        average_rate: the same for `average_policy`, a running mean of the policies' weights; 0: none is kept. The first
            2 / average_rate iterations are averaged linearly, iteration t counting as t does: what the policy was in the
            beginning is soon forgotten.
        normalize_advantage: divide advantages by their standard deviation over the rollout. Without it the entropy's weight
            keeps its meaning in units of reward.
        others: as MaskablePPO's.

    Attributes:
        reference_policy, average_policy: policies built as `policy`; None where they are not used.
    """

    policy: MaskableActorCriticPolicy
    env: Any
    rollout_buffer: Any
    policy_aliases: ClassVar[dict[str, Any]] = MaskablePPO.policy_aliases

    def __init__(
        self,
        policy: str | type[MaskableActorCriticPolicy],
        env: Any,
        *,
        ent_coef: Schedule = 0.0,
        kl_coef: Schedule = 0.0,
        reference_rate: Schedule = 0.0,
        proximal_coef: Schedule = 0.0,
        settle: bool = False,
        least_stake: float = 0.0,
        central_critic: bool = False,
        average_rate: float = 0.0,
        exploration: Schedule = 0.0,
        gamma: float = 1.0,
        **kwargs: Any,
    ) -> None:
        for name, schedule in (("reference_rate", reference_rate), ("average_rate", average_rate)):
            for rate in (_at(schedule, 1.0), _at(schedule, 0.0)):
                if not 0 <= rate <= 1:
                    raise ValueError(f"{name} must be 0 to 1, not {rate}")
        if central_critic and kwargs.get("normalize_advantage", True):
            raise ValueError("normalize_advantage must be false with central_critic, whose values are in units of reward")
        if not 0 <= least_stake < np.inf or (least_stake and not central_critic):
            raise ValueError(f"least_stake must be 0 without a central critic and 0 or more with one, not {least_stake}")
        self.kl_coef = kl_coef
        self.reference_rate = reference_rate
        self.proximal_coef = proximal_coef
        self.settle = settle
        self.least_stake = least_stake
        self.central_critic = central_critic
        self.average_rate = average_rate
        self.exploration = exploration
        self.reference_policy: Any = None
        self.average_policy: Any = None
        kwargs.setdefault("rollout_buffer_class", SeatBuffer)
        super().__init__(policy, env, ent_coef=ent_coef, gamma=gamma, **kwargs)  # type: ignore[arg-type]

    def _setup_model(self) -> None:
        if self.env is not None and not isinstance(self.env, SeatVecEnv):
            raise TypeError(f"env must be a dice_envs.envs.sb3.SeatVecEnv, not {type(self.env).__name__}")
        super()._setup_model()
        if self.central_critic:
            self._add_central_critic()
        self._network = Network(self.policy)
        if self.kl_coef != 0:
            self.reference_policy = _frozen(self.policy)
        if self.average_rate:
            self.average_policy = _frozen(self.policy)

    def _add_central_critic(self) -> None:
        if self.env is not None:
            facts = self.env.variant.facts
            self._state_size = facts.num_seats * facts.observation_size
        layers: list[nn.Module] = []
        size = self._state_size
        for module in self.policy.mlp_extractor.value_net:
            if isinstance(module, nn.Linear):
                layers += [nn.Linear(size, module.out_features), nn.Tanh()]
                size = module.out_features
        critic = nn.Sequential(*layers, nn.Linear(size, self.action_space.n))  # type: ignore[attr-defined]
        for layer in critic:
            if isinstance(layer, nn.Linear):  # as SB3 begins its own; but all actions seem alike at first
                nn.init.orthogonal_(layer.weight, gain=0.1 if layer is critic[-1] else np.sqrt(2))
                nn.init.zeros_(layer.bias)
        self.policy.central_critic = critic.to(self.device)
        self.policy.optimizer.add_param_group({"params": list(critic.parameters())})
        for unused in (self.policy.mlp_extractor.value_net, self.policy.value_net):
            unused.requires_grad_(False)

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "reference_policy", "average_policy", "_network"]

    def _get_torch_save_params(self) -> tuple[list[str], list[str]]:
        names, others = super()._get_torch_save_params()
        kept = [name for name in ("reference_policy", "average_policy") if getattr(self, name) is not None]
        return [*names, *kept], others

    def collect_rollouts(
        self, env: Any, callback: Any, rollout_buffer: Any, n_rollout_steps: int, use_masking: bool = True
    ) -> bool:
        """Play `n_rollout_steps` decisions in every game. False: a callback stops training."""
        self.policy.set_training_mode(False)
        rollout_buffer.reset()
        self._update_current_progress_remaining(self.num_timesteps, self._total_timesteps)
        env.games.exploration = _at(self.exploration, self._current_progress_remaining)
        callback.on_rollout_start()
        log_probs = np.empty(env.num_envs, np.float32)
        for _ in range(n_rollout_steps):
            masks, seats = env.masks, env.seats
            observations = torch.from_numpy(self._last_obs).to(self.device)
            with torch.no_grad():
                logits = self._network.logits(observations)
            states = torch.from_numpy(env.state()).flatten(1) if self.central_critic else None
            rollout_buffer.add_sight(observations, torch.from_numpy(masks), logits, states)
            actions = np.empty(env.num_envs, np.int64)
            sample_actions(
                logits.cpu().numpy(), masks, torch.rand(env.num_envs, dtype=torch.float64).numpy(), actions, log_probs
            )
            new_obs, rewards, dones, infos = env.step(actions)
            rollout_buffer.add(actions, log_probs, seats, env.earned, dones)
            self.num_timesteps += env.num_envs
            self._last_obs = new_obs
            self._last_episode_starts = dones
            callback.update_locals(locals())
            if not callback.on_step():
                return False
            self.ep_info_buffer.extend(infos[i]["episode"] for i in np.flatnonzero(dones))  # type: ignore[union-attr]
        with torch.no_grad():
            values, taken, last = self._judge(env, rollout_buffer)
        facts = env.variant.facts
        opposed = self.central_critic and facts.num_seats == 2 and facts.zero_sum
        out = env.games.states["out"][:, : facts.num_seats]
        rollout_buffer.estimate(values, taken, env.seats, last, out, opposed)
        callback.update_locals(locals())
        callback.on_rollout_end()
        return True

    def _judge(self, env: Any, buffer: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The critic's values of the rollout's decisions, of the actions taken, and of the positions after the last step."""
        shape = buffer.actions.shape
        last_seen = torch.from_numpy(self._last_obs).to(self.device)
        at_once = self.batch_size or buffer.actions.size
        if not self.central_critic:
            values = _in_parts(self._network.values, buffer.observations.flatten(0, 1), at_once)
            found = values.cpu().numpy().reshape(shape)
            return found, found, self._network.values(last_seen).cpu().numpy()
        worth = _in_parts(self._network.action_values, buffer.states.flatten(0, 1), at_once)
        values = _mean_under(buffer.logits.flatten(0, 1), buffer.masks.flatten(0, 1), worth)
        taken = worth.gather(1, torch.from_numpy(buffer.actions.reshape(-1, 1)).to(self.device))
        last_worth = self._network.action_values(torch.from_numpy(env.state()).flatten(1).to(self.device))
        last = _mean_under(self._network.logits(last_seen), torch.from_numpy(env.masks).to(self.device), last_worth)
        return values.cpu().numpy().reshape(shape), taken.cpu().numpy().reshape(shape), last.cpu().numpy()

    def train(self) -> None:
        """Learn from the rollout."""
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        remaining = self._current_progress_remaining
        clip = _at(self.clip_range, remaining)  # type: ignore[arg-type]
        entropy, pull = _at(self.ent_coef, remaining), _at(self.kl_coef, remaining)
        buffer = self.rollout_buffer
        count = buffer.actions.size
        batch = min(self.batch_size or count, count)
        on = self.device
        advantages, known = buffer.advantages.reshape(-1), buffer.waits.reshape(-1) == 0
        if self.normalize_advantage:
            settled = advantages[known]
            advantages = np.where(known, (advantages - settled.mean()) / (settled.std() + 1e-8), 0).astype(np.float32)
        columns = [
            torch.from_numpy(array.reshape(-1)).to(on)
            for array in (buffer.actions, buffer.log_probs, advantages, buffer.returns, known)
        ]
        observations, masks = buffer.observations.flatten(0, 1), buffer.masks.flatten(0, 1)
        reference = torch.empty((0, masks.shape[1]), device=on)
        if pull:
            with torch.no_grad():
                reference = _in_parts(Network(self.reference_policy).logits, observations, batch)
        near = _at(self.proximal_coef, remaining)
        if near:
            # Two divergences from fixed policies differ by a constant from one, from the policies' weighted geometric mean.
            played = buffer.logits.flatten(0, 1)
            reference = (pull * reference + near * played) / (pull + near) if pull else played
        states = buffer.states.flatten(0, 1) if self.central_critic else None
        action_values = torch.empty((0, masks.shape[1]), device=on)
        parameters = list(self.policy.parameters())
        groups = self.policy.optimizer.param_groups
        rate = groups[0]["lr"]
        sums = torch.zeros(6, dtype=torch.float64)
        updates = 0
        stop = False
        for _ in range(self.n_epochs):
            order = torch.randperm(count)
            for rows in order.to(on).split(batch):
                part = [column.index_select(0, rows) for column in columns]
                seen = observations.index_select(0, rows)
                legal = masks.index_select(0, rows)
                anchor = reference.index_select(0, rows) if len(reference) else reference
                logits = self._network.logits(seen)
                if states is None:
                    values = self._network.values(seen)
                else:
                    worth = self._network.action_values(states.index_select(0, rows))
                    values = worth.gather(1, part[0][:, None])[:, 0]
                    action_values = worth.detach()
                error = values.detach() - part[3]
                if states is not None:
                    error *= part[4]
                    part[2] = -error
                gradient, means = self._loss(logits.detach(), legal, part, action_values, anchor, clip, entropy, pull + near)
                self.policy.optimizer.zero_grad(set_to_none=True)
                torch.autograd.backward((logits, values), (gradient, error * (2 * self.vf_coef / len(rows))))
                nn.utils.clip_grad_norm_(parameters, self.max_grad_norm)
                if self.target_kl is not None and means[3] > 1.5 * self.target_kl:
                    stop = True
                    break
                if self.settle:
                    for group in groups:
                        group["lr"] = rate * (1 - updates * batch / (count * self.n_epochs))
                self.policy.optimizer.step()
                sums[:5] += means.cpu()
                sums[5] += error.square().mean().cpu()
                updates += 1
            self._n_updates += 1
            if stop:
                break
        with torch.no_grad():
            follow = _at(self.reference_rate, remaining)
            # Of iteration t: the running mean in which iteration t has a weight that grows as t does.
            fading = 2 / (self.num_timesteps // (self.n_steps * self.n_envs) + 1)
            average = min(max(self.average_rate, fading), 1.0)
            for policy, rate in ((self.reference_policy, follow), (self.average_policy, average)):
                if policy is not None and rate:
                    torch._foreach_lerp_([*policy.parameters()], [*parameters], rate)
        names = ("policy_gradient_loss", "entropy", "anchor_kl", "approx_kl", "clip_fraction", "value_loss")
        for name, mean in zip(names, (sums / max(updates, 1)).tolist(), strict=True):
            self.logger.record(f"train/{name}", mean)
        self.logger.record("train/explained_variance", explained_variance(buffer.values.ravel(), buffer.returns.ravel()))
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        for name, value in (("clip_range", clip), ("ent_coef", entropy), ("kl_coef", pull), ("proximal_coef", near)):
            self.logger.record(f"train/{name}", value)

    def _loss(
        self, logits: Any, legal: Any, part: list[Any], worth: Any, anchor: Any, clip: float, entropy: float, pull: float
    ) -> tuple[Any, Any]:
        actions, old, advantages = part[:3]
        if logits.device.type != "cpu":
            return policy_gradient_on_device(
                logits, legal, actions, old, advantages, worth, anchor, clip, entropy, pull, self.least_stake
            )
        gradient, means = torch.empty_like(logits), torch.empty(5, dtype=torch.float64)
        policy_gradient(
            logits.numpy(), legal.numpy(), actions.numpy(), old.numpy(), advantages.numpy(), worth.numpy(), anchor.numpy(),
            clip, entropy, pull, self.least_stake, gradient.numpy(), means.numpy(),
        )  # fmt: skip
        return gradient, means


def _in_parts(network: Callable[[Any], Any], inputs: torch.Tensor, rows: int) -> torch.Tensor:
    """What the network makes of all inputs, so many rows at a time."""
    return torch.cat([network(part) for part in inputs.split(rows)])


def _mean_under(logits: torch.Tensor, masks: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """The mean of each row's values under the policy: (n,)."""
    chances = logits.masked_fill(masks == 0, -torch.inf).softmax(1)
    return (chances * values).sum(1)


def _frozen(policy: MaskableActorCriticPolicy) -> MaskableActorCriticPolicy:
    """A copy that is not trained itself."""
    found = copy.deepcopy(policy)
    found.set_training_mode(False)
    for parameter in found.parameters():
        parameter.requires_grad_(False)
    return found
