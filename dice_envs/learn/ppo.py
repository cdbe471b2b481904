"""PPO for self-play: SB3's MaskablePPO, which learns from the decisions of every seat that it plays.

The learner may play every seat of a game (`dice_envs.envs.sb3.make_vec_env(..., self_play=1.0)`). Each of its decisions is
then a sample; advantages follow the decisions of one seat, whatever the others do in between.

In zero-sum games plain policy gradients circle around the equilibrium. A regulariser strong enough to keep policies mixed
pulls them in: an entropy bonus, or a Kullback-Leibler term to a reference policy, fixed or slowly following the learner.

Sources: S. Sokota et al., A Unified Approach to Reinforcement Learning, Quantal Response Equilibria, and Two-Player
Zero-Sum Games (ICLR 2023, magnetic mirror descent); M. Rudolph et al., Reevaluating Policy Gradient Methods for
Imperfect-Information Games (2025), sections 3 and 5.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dice_envs.core.dice import derived_seeds
from dice_envs.core.extras import needs
from dice_envs.envs.sb3 import SeatVecEnv
from dice_envs.learn.policy_gradient import (
    Decisions,
    Following,
    Minibatch,
    Network,
    Weights,
    dense_layers,
    estimate_advantages,
    estimate_opposed_advantages,
    mlp,
    policy_gradient,
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
        states: (steps, games, seats × size) float32, the observations of all seats; None unless the critic sees them.
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
        """Add the inputs of a decision in each game; `add` completes it."""
        t = self.pos
        self.observations[t], self.masks[t], self.logits[t] = observations, masks, logits
        if states is not None:
            if self.states is None:
                self.states = torch.empty((*self.actions.shape, states.shape[1]), device=self.device)
            self.states[t] = states

    def add(self, actions: Any, log_probs: Any, seats: Any, earned: Any, ended: Any) -> None:
        """Add the decision in each game and its results, `earned` (games, seats) and `ended`."""
        t = self.pos
        if self.earned.shape[2] != earned.shape[1]:
            self.earned = np.empty((*self.actions.shape, earned.shape[1]))
        self.actions[t], self.log_probs[t], self.seats[t] = actions, log_probs, seats
        self.earned[t], self.ended[t] = earned, ended
        self.pos += 1

    def estimate(self, values: np.ndarray, taken: np.ndarray, following: Following, opposed: bool = False) -> None:
        """Set values, advantages and returns.

        Args:
            values, taken: (steps, games), of each decision and of the action taken (see `Decisions`).
            following: the positions after the last step.
            opposed: whether a value is the other seat's negated (see `estimate_opposed_advantages`).
        """
        waits = np.zeros(self.actions.shape, np.int8)
        self.values[:] = values
        decisions = Decisions(self.seats, self.earned, self.ended, self.values, taken)
        if opposed:
            estimate_opposed_advantages(decisions, following, float(self.gamma), float(self.gae_lambda), self.advantages)
        else:
            estimate_advantages(decisions, following, float(self.gamma), float(self.gae_lambda), self.advantages, waits)
        self.returns[:] = self.advantages + taken
        self.waits = waits

    def _get_samples(self, batch_inds: np.ndarray, env: Any = None) -> Any:
        raise NotImplementedError("RegularisedPPO takes minibatches itself")


# --- the learner ------------------------------------------------------------------------------------------------------


def _at(schedule: Schedule, remaining: float) -> float:
    return float(schedule(remaining)) if callable(schedule) else float(schedule)


class RegularisedPPO(MaskablePPO):
    """MaskablePPO that learns from every seat it plays, with a pull towards a reference policy.

    It trains on a `dice_envs.envs.sb3.SeatVecEnv`. Callbacks, TensorBoard, `save` and `load` work as in MaskablePPO. The loss,
    and on a CPU the dense layers of `MlpPolicy`, are computed by faster code than SB3's; results differ by rounding only.

    Args:
        policy, env: as MaskablePPO's; `env` is a SeatVecEnv.
        ent_coef: weight of the entropy bonus; a function of the share of training that remains makes a schedule.
        kl_coef: weight of KL(policy ‖ reference), as a number or a schedule.
        reference_rate: how far the reference's weights move towards the learner's after each iteration, 0 to 1, as a number
            or a schedule. 0: the reference stays the initial policy, which is almost uniform.
        exploration: the share of self-play games that start with random moves, as a number or a schedule (see
            `dice_envs.envs.learner.SeatGames`).
        proximal_coef: weight of KL(policy ‖ the policy that played), as a number or a schedule. With several epochs an
            update then becomes a step of mirror descent whose size, 1 / proximal_coef, is the same at all information
            sets, however often they come up; with clipping alone the size depends on chance.
        settle: decrease the learning rate linearly to 0 during each update. Otherwise the update's last few minibatches add
            more noise than the rollout itself.
        least_stake: above 0, the weights of entropy and divergences are multiplied at each decision by its stake: half the
            difference between its best and its worst action by the central critic, but at least this. In a match of many
            rounds one round may be worth a hundredth of a return of ±1 and another all of it, so no fixed weight suits both.
        central_critic: whether the critic sees the observations of all seats (`SeatVecEnv.state`) and values every action;
            only training needs it. The policy's mean of these values is then maximised, and PPO's clipped loss covers only
            the advantage of a sampled action beyond them: the expected gradient is the same, with far less noise. The critic
            has the hidden layers of the policy's own one, which is then unused.
        average_rate: as `reference_rate`, for `average_policy`, a running mean of the policies' weights; 0: none is kept.
            Iteration t has weight t in the first 2 / average_rate iterations, so the initial policy is soon forgotten.
        normalize_advantage: divide advantages by their standard deviation over the rollout. Without it, the entropy's weight
            is in units of reward.
        others: as MaskablePPO's.

    Attributes:
        reference_policy, average_policy: policies with the architecture of `policy`; None where they are not used.
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
        (weights,) = derived_seeds(self.seed, "weights")
        with torch.random.fork_rng(devices=[]):  # networks draw their first weights from PyTorch's global stream
            torch.default_generator.manual_seed(weights)
            super()._setup_model()
            if self.central_critic:
                self._add_central_critic()
        self._network = Network(self.policy)
        if self.kl_coef != 0:
            self.reference_policy = _frozen(self.policy)
        if self.average_rate:
            self.average_policy = _frozen(self.policy)

    def set_random_seed(self, seed: int | None = None) -> None:
        """Seed the games and the learner's own draws. Global random streams stay as they are, other than in MaskablePPO."""
        self._draws = torch.Generator().manual_seed(*derived_seeds(seed, "draws"))
        if seed is not None and self.env is not None:
            self.env.seed(seed)

    def _add_central_critic(self) -> None:
        if self.env is not None:
            facts = self.env.variant.facts
            self._state_size = facts.num_seats * facts.observation_size
        hidden = [each.out_features for each in self.policy.mlp_extractor.value_net if isinstance(each, nn.Linear)]
        critic = mlp([self._state_size, *hidden, self.action_space.n])  # type: ignore[attr-defined]
        for layer in critic[::2]:  # dense layers, initialised as SB3's, but with almost equal action values
            nn.init.orthogonal_(layer.weight, gain=0.1 if layer is critic[-1] else np.sqrt(2))
            nn.init.zeros_(layer.bias)
        self.policy.central_critic = critic.to(self.device)
        self.policy.optimizer.add_param_group({"params": list(critic.parameters())})
        for unused in (self.policy.mlp_extractor.value_net, self.policy.value_net):
            unused.requires_grad_(False)

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "reference_policy", "average_policy", "_network", "_draws"]

    def _get_torch_save_params(self) -> tuple[list[str], list[str]]:
        names, others = super()._get_torch_save_params()
        kept = [name for name in ("reference_policy", "average_policy") if getattr(self, name) is not None]
        return [*names, *kept], others

    def collect_rollouts(
        self, env: Any, callback: Any, rollout_buffer: Any, n_rollout_steps: int, use_masking: bool = True
    ) -> bool:
        """Play `n_rollout_steps` decisions in every game. False if a callback stops training."""
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
            drawn = torch.rand(env.num_envs, dtype=torch.float64, generator=self._draws)
            sample_actions(logits.cpu().numpy(), masks, drawn.numpy(), actions, log_probs)
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
        following = Following(env.seats, last, env.games.states["out"][:, : facts.num_seats])
        rollout_buffer.estimate(values, taken, following, opposed)
        callback.update_locals(locals())
        callback.on_rollout_end()
        return True

    def _judge(self, env: Any, buffer: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Values by the critic: of the rollout's decisions, of the actions taken, and of the positions after the last step."""
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
        entropy, pull, near = (_at(weight, remaining) for weight in (self.ent_coef, self.kl_coef, self.proximal_coef))
        weights = Weights(clip, entropy, pull + near, self.least_stake)
        count = self.rollout_buffer.actions.size
        batch = min(self.batch_size or count, count)
        data = self._rollout_data(pull, near, batch)
        groups = self.policy.optimizer.param_groups
        rate = groups[0]["lr"]
        sums = torch.zeros(6, dtype=torch.float64)
        updates = 0
        stop = False
        for _ in range(self.n_epochs):
            order = torch.randperm(count, generator=self._draws)
            for rows in order.to(self.device).split(batch):
                means = self._backward(data.select(rows), weights)
                if self.target_kl is not None and means[3] > 1.5 * self.target_kl:
                    stop = True
                    break
                if self.settle:
                    for group in groups:
                        group["lr"] = rate * (1 - updates * batch / (count * self.n_epochs))
                self.policy.optimizer.step()
                sums += means
                updates += 1
            self._n_updates += 1
            if stop:
                break
        self._move_followers(remaining)
        names = ("policy_gradient_loss", "entropy", "anchor_kl", "approx_kl", "clip_fraction", "value_loss")
        found = dict(zip(names, (sums / max(updates, 1)).tolist(), strict=True))
        found |= {"clip_range": clip, "ent_coef": entropy, "kl_coef": pull, "proximal_coef": near}
        buffer = self.rollout_buffer
        found["explained_variance"] = explained_variance(buffer.values.ravel(), buffer.returns.ravel())
        for name, value in found.items():
            self.logger.record(f"train/{name}", value)
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")

    def _rollout_data(self, pull: float, near: float, batch: int) -> _RolloutData:
        """The rollout as tensors; the reference policy, weighted by `pull` and `near`, is computed `batch` rows at a time."""
        buffer = self.rollout_buffer
        advantages, known = buffer.advantages.reshape(-1), buffer.waits.reshape(-1) == 0
        if self.normalize_advantage:
            settled = advantages[known]
            advantages = np.where(known, (advantages - settled.mean()) / (settled.std() + 1e-8), 0).astype(np.float32)
        observations, masks = buffer.observations.flatten(0, 1), buffer.masks.flatten(0, 1)
        reference = torch.empty((0, masks.shape[1]), device=self.device)
        if pull:
            with torch.no_grad():
                reference = _in_parts(Network(self.reference_policy).logits, observations, batch)
        if near:
            # Two divergences from fixed policies differ by a constant from one, from the policies' weighted geometric mean.
            played = buffer.logits.flatten(0, 1)
            reference = (pull * reference + near * played) / (pull + near) if pull else played
        columns = (buffer.actions, buffer.log_probs, advantages, buffer.returns, known)
        return _RolloutData(
            observations,
            masks,
            reference,
            buffer.states.flatten(0, 1) if self.central_critic else reference[:0],
            *(torch.from_numpy(column.reshape(-1)).to(self.device) for column in columns),
        )

    def _backward(self, part: _RolloutData, weights: Weights) -> torch.Tensor:
        """Set the parameters' gradients for one minibatch; return the sums of `policy_gradient` and the value loss."""
        logits = self._network.logits(part.observations)
        advantages, action_values = part.advantages, logits[:0].detach()
        if not self.central_critic:
            values = self._network.values(part.observations)
            error = values.detach() - part.returns
        else:
            worth = self._network.action_values(part.states)
            values = worth.gather(1, part.actions[:, None])[:, 0]
            action_values = worth.detach()
            error = (values.detach() - part.returns) * part.known
            advantages = -error
        batch = Minibatch(
            *(tensor.cpu().numpy() for tensor in (logits.detach(), part.masks, part.actions, part.log_probs)),
            *(tensor.cpu().numpy() for tensor in (advantages, action_values, part.reference)),
        )
        gradient, means = np.empty_like(batch.logits), np.empty(6)
        policy_gradient(batch, weights, gradient, means[:5])
        self.policy.optimizer.zero_grad(set_to_none=True)
        to_values = error * (2 * self.vf_coef / len(error))
        torch.autograd.backward((logits, values), (torch.from_numpy(gradient).to(self.device), to_values))
        nn.utils.clip_grad_norm_(self.policy.parameters(), self.max_grad_norm)
        means[5] = error.square().mean().item()
        return torch.from_numpy(means)

    def _move_followers(self, remaining: float) -> None:
        """Move the reference policy and the averaged policy towards the learner's."""
        # Of iteration t: the running mean in which iteration t has weight t.
        fading = 2 / (self.num_timesteps // (self.n_steps * self.n_envs) + 1)
        average = min(max(self.average_rate, fading), 1.0)
        follow = _at(self.reference_rate, remaining)
        with torch.no_grad():
            for policy, rate in ((self.reference_policy, follow), (self.average_policy, average)):
                if policy is not None and rate:
                    torch._foreach_lerp_([*policy.parameters()], [*self.policy.parameters()], rate)


class _RolloutData(NamedTuple):
    """A rollout as tensors on the learner's device, a row for each decision. `reference` and `states` may have no rows."""

    observations: torch.Tensor
    masks: torch.Tensor
    reference: torch.Tensor
    states: torch.Tensor
    actions: torch.Tensor
    log_probs: torch.Tensor
    advantages: torch.Tensor
    returns: torch.Tensor
    known: torch.Tensor

    def select(self, rows: torch.Tensor) -> _RolloutData:
        """Some of the rows."""
        return _RolloutData(*(column.index_select(0, rows) if len(column) else column for column in self))


def _in_parts(network: Callable[[Any], Any], inputs: torch.Tensor, rows: int) -> torch.Tensor:
    """The network's outputs for all inputs, computed `rows` rows at a time."""
    return torch.cat([network(part) for part in inputs.split(rows)])


def _mean_under(logits: torch.Tensor, masks: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """The mean of each row's values under the policy: (n,)."""
    chances = logits.masked_fill(masks == 0, -torch.inf).softmax(1)
    return (chances * values).sum(1)


def _frozen(policy: MaskableActorCriticPolicy) -> MaskableActorCriticPolicy:
    """A copy whose parameters are not trained."""
    found = copy.deepcopy(policy)
    found.set_training_mode(False)
    for parameter in found.parameters():
        parameter.requires_grad_(False)
    return found
