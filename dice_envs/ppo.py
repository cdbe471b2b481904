"""PPO for games with several learners at one table: SB3's MaskablePPO, in which every seat's moves teach.

The learner may have every seat of a game (`dice_envs.sb3.make_vec_env(..., self_play=1.0)`). Each of its decisions is then a
sample; advantages follow the decisions of one seat, whatever the others do in between.

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
import torch
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.buffers import BaseBuffer
from stable_baselines3.common.utils import explained_variance
from torch import nn

from dice_envs.kernel import kernel
from dice_envs.sb3 import SeatVecEnv

__all__ = ["RegularisedPPO", "SeatBuffer", "dense_layers"]

Schedule = float | Callable[[float], float]  # a number, or a function of the share of training that remains, from 1 to 0


# --- kernels ----------------------------------------------------------------------------------------------------------


@kernel
def _sample(logits, masks, uniforms, actions, log_probs):
    """Draw from the softmax over the legal actions. `actions` and `log_probs` (n,) are modified in place."""
    for k in range(len(actions)):
        top = -np.inf
        for a in range(logits.shape[1]):
            if masks[k, a] != 0:
                top = max(top, logits[k, a])
        total = 0.0
        for a in range(logits.shape[1]):
            if masks[k, a] != 0:
                total += np.exp(logits[k, a] - top)
        remaining = uniforms[k] * total
        chosen = -1
        for a in range(logits.shape[1]):
            if masks[k, a] != 0:
                chosen = a
                remaining -= np.exp(logits[k, a] - top)
                if remaining < 0:
                    break
        actions[k] = chosen
        log_probs[k] = logits[k, chosen] - top - np.log(total)


@kernel
def _advantages(seats, earned, ended, values, last_seats, last_values, out, gamma, decay, advantages, waits):
    """Generalised advantage estimates of each decision, from its seat's own next decision on. In place.

    A seat whose last decision in the rollout is followed by others' only has no estimate of what comes: that decision's
    advantage is 0, and `waits` is 1 there. seats, ended, values, advantages, waits: (steps, games); earned:
    (steps, games, seats), what each seat earned between this decision and the game's next one; out (games, seats): 1 where
    the seat's game is over though others play on.
    """
    steps, games = seats.shape
    num_seats = earned.shape[2]
    following = np.empty(num_seats)  # the value of the seat's next decision
    advantage = np.empty(num_seats)  # and its advantage
    since = np.empty(num_seats)  # earned since the seat's decision before that
    known = np.empty(num_seats, np.int8)
    for game in range(games):
        for seat in range(num_seats):
            following[seat] = 0.0
            advantage[seat] = 0.0
            since[seat] = 0.0
            known[seat] = out[game, seat]
        following[last_seats[game]] = last_values[game]
        known[last_seats[game]] = 1
        for t in range(steps - 1, -1, -1):
            if ended[t, game] != 0:
                for seat in range(num_seats):
                    following[seat] = 0.0
                    advantage[seat] = 0.0
                    since[seat] = 0.0
                    known[seat] = 1
            for seat in range(num_seats):
                since[seat] += earned[t, game, seat]
            seat = seats[t, game]
            if known[seat]:
                surprise = since[seat] + gamma * following[seat] - values[t, game]
                advantage[seat] = surprise + gamma * decay * advantage[seat]
                waits[t, game] = 0
            else:
                advantage[seat] = 0.0
                waits[t, game] = 1
                known[seat] = 1
            advantages[t, game] = advantage[seat]
            following[seat] = values[t, game]
            since[seat] = 0.0


@kernel
def _policy_gradient(logits, masks, actions, old_log_probs, advantages, reference, clip, entropy, pull, gradient, sums):
    """The gradient of the policy's loss, mean over the rows, with respect to the logits. `gradient`, `sums` in place.

    reference: logits of the reference policy, of the same shape, or of no rows where `pull` is 0. sums (5,): policy loss,
    entropy, divergence from the reference, approximate divergence from the old policy, share of clipped ratios.
    """
    rows, actions_there = logits.shape
    log_p = np.empty(actions_there)
    log_r = np.empty(actions_there)
    sums[:] = 0.0
    for k in range(rows):
        top = -np.inf
        for a in range(actions_there):
            if masks[k, a] != 0:
                top = max(top, logits[k, a])
        total = 0.0
        for a in range(actions_there):
            if masks[k, a] != 0:
                log_p[a] = logits[k, a] - top
                total += np.exp(log_p[a])
        log_total = np.log(total)
        if pull != 0.0:
            top = -np.inf
            for a in range(actions_there):
                if masks[k, a] != 0:
                    top = max(top, reference[k, a])
            total = 0.0
            for a in range(actions_there):
                if masks[k, a] != 0:
                    log_r[a] = reference[k, a] - top
                    total += np.exp(log_r[a])
            log_reference = np.log(total)
        spread = 0.0  # the entropy
        divergence = 0.0
        for a in range(actions_there):
            if masks[k, a] != 0:
                log_p[a] -= log_total
                p = np.exp(log_p[a])
                gradient[k, a] = p
                spread -= p * log_p[a]
                if pull != 0.0:
                    log_r[a] -= log_reference
                    divergence += p * (log_p[a] - log_r[a])
            else:
                gradient[k, a] = 0.0
        log_ratio = log_p[actions[k]] - old_log_probs[k]
        ratio = np.exp(log_ratio)
        gain = advantages[k] * ratio
        clipped = advantages[k] * min(max(ratio, 1.0 - clip), 1.0 + clip)
        step = -gain if gain <= clipped else 0.0  # the loss's derivative by the action's log probability
        for a in range(actions_there):
            if masks[k, a] != 0:
                p = gradient[k, a]
                slope = -step * p + entropy * p * (log_p[a] + spread)
                if pull != 0.0:
                    slope += pull * p * (log_p[a] - log_r[a] - divergence)
                gradient[k, a] = slope / rows
        gradient[k, actions[k]] += step / rows
        sums[0] -= min(gain, clipped) / rows
        sums[1] += spread / rows
        sums[2] += divergence / rows
        sums[3] += (ratio - 1.0 - log_ratio) / rows
        sums[4] += (abs(ratio - 1.0) > clip) / rows


def _policy_gradient_on(device_logits: Any, masks: Any, actions: Any, old: Any, advantages: Any, reference: Any,
                        clip: float, entropy: float, pull: float) -> tuple[Any, Any]:  # fmt: skip
    """As `_policy_gradient`, with PyTorch, on any device: gradient and sums."""
    legal = masks != 0
    rows = len(device_logits)
    log_p = torch.log_softmax(device_logits.masked_fill(~legal, -torch.inf), dim=1).masked_fill(~legal, 0.0)
    p = log_p.exp() * legal
    spread = -(p * log_p).sum(1, keepdim=True)
    log_ratio = log_p.gather(1, actions[:, None])[:, 0] - old
    ratio = log_ratio.exp()
    gain = advantages * ratio
    clipped = advantages * ratio.clamp(1 - clip, 1 + clip)
    step = torch.where(gain <= clipped, -gain, 0.0)
    slope = -step[:, None] * p + entropy * p * (log_p + spread)
    divergence = torch.zeros_like(spread)
    if pull != 0:
        log_r = torch.log_softmax(reference.masked_fill(~legal, -torch.inf), dim=1).masked_fill(~legal, 0.0)
        divergence = (p * (log_p - log_r)).sum(1, keepdim=True)
        slope += pull * p * (log_p - log_r - divergence)
    slope.scatter_add_(1, actions[:, None], step[:, None])
    means = [-torch.minimum(gain, clipped), spread, divergence, ratio - 1 - log_ratio, ((ratio - 1).abs() > clip).float()]
    return slope / rows, torch.stack([mean.mean() for mean in means])


# --- dense layers -----------------------------------------------------------------------------------------------------


def _onednn_linear() -> Any:
    """oneDNN's linear layer, with a tanh behind it where asked; None where PyTorch has none.

    On processors that are not Intel's it is two to three times as fast as the default, and its tanh ten times.
    """
    if not torch.backends.mkldnn.is_available():
        return None
    linear = getattr(torch.ops.mkldnn, "_linear_pointwise", None)
    if linear is None:
        return None
    try:
        tried = linear(torch.ones(2, 2), torch.ones(1, 2), torch.zeros(1), "tanh", [], "")
    except (RuntimeError, NotImplementedError):
        return None
    return linear if torch.allclose(tried, torch.full((2, 1), 2.0).tanh()) else None


_LINEAR = _onednn_linear()


class _Dense(torch.autograd.Function):
    """inputs @ weightsᵀ + biases, and tanh of it if asked, by oneDNN."""

    @staticmethod
    def forward(ctx: Any, inputs: Any, weights: Any, biases: Any, tanh: bool) -> Any:
        out = _LINEAR(inputs, weights, biases, "tanh" if tanh else "none", [], "")
        ctx.save_for_backward(inputs, weights, out if tanh else None)
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        inputs, weights, out = ctx.saved_tensors
        if out is not None:
            gradient = torch.ops.aten.tanh_backward(gradient, out)
        to_inputs = _LINEAR(gradient, weights.t(), None, "none", [], "") if ctx.needs_input_grad[0] else None
        return to_inputs, _LINEAR(gradient.t(), inputs.t(), None, "none", [], ""), gradient.sum(0), None


def _run_layers(layers: list[tuple[nn.Linear, bool]], inputs: Any) -> Any:
    if _LINEAR is None or inputs.device.type != "cpu" or inputs.dtype != torch.float32:
        for linear, tanh in layers:
            inputs = linear(inputs)
            inputs = inputs.tanh() if tanh else inputs
        return inputs
    for linear, tanh in layers:
        inputs = _Dense.apply(inputs, linear.weight, linear.bias, tanh)
    return inputs


def _layers_of(body: nn.Module, head: nn.Module) -> list[tuple[nn.Linear, bool]] | None:
    """Dense layers, each with whether tanh follows; None for a network of another kind."""
    modules = [*body, head] if isinstance(body, nn.Sequential) else []
    layers: list[tuple[nn.Linear, bool]] = []
    for module in modules:
        if isinstance(module, nn.Linear):
            layers.append((module, False))
        elif isinstance(module, nn.Tanh) and layers and not layers[-1][1]:
            layers[-1] = (layers[-1][0], True)
        else:
            return None
    return layers or None


def dense_layers(policy: MaskableActorCriticPolicy) -> list[tuple[np.ndarray, np.ndarray]]:
    """The actor of an `MlpPolicy`, copied: (weights (out, in), biases (out,)) float32 of each layer, first layer first.

    Raises:
        ValueError: it has other layers than dense ones with tanh between them.
    """
    layers = _layers_of(policy.mlp_extractor.policy_net, policy.action_net)
    if layers is None or any(tanh != (i + 1 < len(layers)) for i, (_, tanh) in enumerate(layers)):
        raise ValueError("the actor must be dense layers with tanh between them")
    return [(layer.weight.detach().cpu().numpy().copy(), layer.bias.detach().cpu().numpy().copy()) for layer, _ in layers]


class _Network:
    """Logits and values of an actor-critic policy, by the fastest way there is."""

    def __init__(self, policy: MaskableActorCriticPolicy) -> None:
        self.policy = policy
        plain = type(policy.features_extractor).__name__ == "FlattenExtractor"
        self._actor = _layers_of(policy.mlp_extractor.policy_net, policy.action_net) if plain else None
        self._critic = _layers_of(policy.mlp_extractor.value_net, policy.value_net) if plain else None

    def logits(self, observations: Any) -> Any:
        """(n, actions) float32, before masking."""
        if self._actor is not None:
            return _run_layers(self._actor, observations)
        features: Any = self.policy.extract_features(observations, self.policy.pi_features_extractor)
        return self.policy.action_net(self.policy.mlp_extractor.forward_actor(features))

    def values(self, observations: Any) -> Any:
        """(n,) float32."""
        if self._critic is not None:
            return _run_layers(self._critic, observations)[:, 0]
        return self.policy.predict_values(observations)[:, 0]


# --- the rollout ------------------------------------------------------------------------------------------------------


class SeatBuffer(BaseBuffer):
    """A rollout in which each row is a decision of the seat whose turn it was. All tensors are on the learner's device.

    Attributes:
        observations: (steps, games, size) float32.
        masks: (steps, games, actions) int8.
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
        self.full = False

    def add(self, observations: Any, masks: Any, actions: Any, log_probs: Any, seats: Any, earned: Any, ended: Any) -> None:
        """One decision in each game: `observations` and `masks` before it, `earned` (games, seats) and `ended` after it."""
        t = self.pos
        if self.earned.shape[2] != earned.shape[1]:
            self.earned = np.empty((*self.actions.shape, earned.shape[1]))
        self.observations[t] = observations
        self.masks[t] = masks
        self.actions[t], self.log_probs[t], self.seats[t] = actions, log_probs, seats
        self.earned[t], self.ended[t] = earned, ended
        self.pos += 1
        self.full = self.pos == self.buffer_size

    def estimate(self, values: np.ndarray, last_seats: np.ndarray, last_values: np.ndarray, out: np.ndarray) -> None:
        """Set values, advantages and returns. values: (steps, games); the others are of the position after the last step."""
        waits = np.empty(self.actions.shape, np.int8)
        self.values[:] = values
        _advantages(
            self.seats, self.earned, self.ended, self.values, last_seats, last_values, out, float(self.gamma),
            float(self.gae_lambda), self.advantages, waits,
        )  # fmt: skip
        self.returns[:] = self.advantages + self.values
        self.waits = waits

    def _get_samples(self, batch_inds: np.ndarray, env: Any = None) -> Any:
        raise NotImplementedError("RegularisedPPO takes minibatches itself")


# --- the learner ------------------------------------------------------------------------------------------------------


def _at(schedule: Schedule, remaining: float) -> float:
    return float(schedule(remaining)) if callable(schedule) else float(schedule)


class RegularisedPPO(MaskablePPO):
    """MaskablePPO in which every seat that the learner has teaches, with a pull towards a reference policy.

    It trains on a `dice_envs.sb3.SeatVecEnv`. Callbacks, TensorBoard, `save` and `load` work as in MaskablePPO. On a CPU the
    dense layers of `MlpPolicy` and the loss are computed by faster code than SB3's, with the same results but for rounding.

    Args:
        policy, env: as MaskablePPO's; `env` is a SeatVecEnv.
        ent_coef: weight of the entropy bonus; a function of the share of training that remains makes a schedule.
        kl_coef: weight of KL(policy ‖ reference), as a number or a schedule.
        reference_rate: how far the reference's weights move towards the learner's after each iteration, 0 to 1, as a number
            or a schedule. 0: it stays what the policy was in the beginning, which is almost uniform.
        exploration: the share of self-play games that start with random moves, as a number or a schedule (see
            `dice_envs.seat.SeatGames`).
        average_rate: the same for `average_policy`, a running mean of the policies; 0: none is kept.
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
        average_rate: float = 0.0,
        exploration: Schedule = 0.0,
        gamma: float = 1.0,
        **kwargs: Any,
    ) -> None:
        for name, schedule in (("reference_rate", reference_rate), ("average_rate", average_rate)):
            for rate in (_at(schedule, 1.0), _at(schedule, 0.0)):
                if not 0 <= rate <= 1:
                    raise ValueError(f"{name} must be 0 to 1, not {rate}")
        self.kl_coef = kl_coef
        self.reference_rate = reference_rate
        self.average_rate = average_rate
        self.exploration = exploration
        self.reference_policy: Any = None
        self.average_policy: Any = None
        kwargs.setdefault("rollout_buffer_class", SeatBuffer)
        super().__init__(policy, env, ent_coef=ent_coef, gamma=gamma, **kwargs)  # type: ignore[arg-type]

    def _setup_model(self) -> None:
        if self.env is not None and not isinstance(self.env, SeatVecEnv):
            raise TypeError(f"env must be a dice_envs.sb3.SeatVecEnv, not {type(self.env).__name__}")
        super()._setup_model()
        self._network = _Network(self.policy)
        if self.kl_coef != 0:
            self.reference_policy = _frozen(self.policy)
        if self.average_rate:
            self.average_policy = _frozen(self.policy)

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
                logits = self._network.logits(observations).cpu().numpy()
            actions = np.empty(env.num_envs, np.int64)
            _sample(logits, masks, torch.rand(env.num_envs, dtype=torch.float64).numpy(), actions, log_probs)
            new_obs, rewards, dones, infos = env.step(actions)
            rollout_buffer.add(observations, torch.from_numpy(masks), actions, log_probs, seats, env.earned, dones)
            self.num_timesteps += env.num_envs
            self._last_obs = new_obs
            self._last_episode_starts = dones
            callback.update_locals(locals())
            if not callback.on_step():
                return False
            self.ep_info_buffer.extend(infos[i]["episode"] for i in np.flatnonzero(dones))  # type: ignore[union-attr]
        with torch.no_grad():
            everything = rollout_buffer.observations.flatten(0, 1)
            values = torch.cat([self._network.values(part) for part in everything.split(self.batch_size or len(everything))])
            last = self._network.values(torch.from_numpy(self._last_obs).to(self.device))
        rollout_buffer.estimate(
            values.cpu().numpy().reshape(rollout_buffer.actions.shape),
            env.seats,
            last.cpu().numpy(),
            env.games.states["out"][:, : env.earned.shape[1]],
        )
        callback.update_locals(locals())
        callback.on_rollout_end()
        return True

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
        advantages = buffer.advantages.reshape(-1)
        if self.normalize_advantage:
            settled = advantages[buffer.waits.reshape(-1) == 0]
            advantages = np.where(
                buffer.waits.reshape(-1) == 0, (advantages - settled.mean()) / (settled.std() + 1e-8), 0
            ).astype(np.float32)
        columns = [
            torch.from_numpy(array.reshape(-1)).to(on)
            for array in (buffer.actions, buffer.log_probs, advantages, buffer.returns)
        ]
        observations, masks = buffer.observations.flatten(0, 1), buffer.masks.flatten(0, 1)
        reference = torch.empty((0, masks.shape[1]), device=on)
        if pull:
            with torch.no_grad():
                follows = _Network(self.reference_policy)
                reference = torch.cat([follows.logits(part) for part in observations.split(batch)])
        parameters = list(self.policy.parameters())
        sums = torch.zeros(6, dtype=torch.float64)
        updates = 0
        stop = False
        for _ in range(self.n_epochs):
            order = torch.randperm(count)
            for rows in order.to(on).split(batch):
                part = [column.index_select(0, rows) for column in columns]
                seen = observations.index_select(0, rows)
                legal = masks.index_select(0, rows)
                near = reference.index_select(0, rows) if pull else reference
                logits, values = self._network.logits(seen), self._network.values(seen)
                gradient, means = self._loss(logits.detach(), legal, part, near, clip, entropy, pull)
                error = values.detach() - part[3]
                self.policy.optimizer.zero_grad(set_to_none=True)
                torch.autograd.backward((logits, values), (gradient, error * (2 * self.vf_coef / len(rows))))
                nn.utils.clip_grad_norm_(parameters, self.max_grad_norm)
                if self.target_kl is not None and means[3] > 1.5 * self.target_kl:
                    stop = True
                    break
                self.policy.optimizer.step()
                sums[:5] += means.cpu()
                sums[5] += error.square().mean().cpu()
                updates += 1
            self._n_updates += 1
            if stop:
                break
        with torch.no_grad():
            follow = _at(self.reference_rate, remaining)
            for policy, rate in ((self.reference_policy, follow), (self.average_policy, self.average_rate)):
                if policy is not None and rate:
                    torch._foreach_lerp_([*policy.parameters()], [*parameters], rate)
        names = ("policy_gradient_loss", "entropy", "reference_kl", "approx_kl", "clip_fraction", "value_loss")
        for name, mean in zip(names, (sums / max(updates, 1)).tolist(), strict=True):
            self.logger.record(f"train/{name}", mean)
        self.logger.record("train/explained_variance", explained_variance(buffer.values.ravel(), buffer.returns.ravel()))
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        for name, value in (("clip_range", clip), ("ent_coef", entropy), ("kl_coef", pull)):
            self.logger.record(f"train/{name}", value)

    def _loss(
        self, logits: Any, legal: Any, part: list[Any], near: Any, clip: float, entropy: float, pull: float
    ) -> tuple[Any, Any]:
        actions, old, advantages, _ = part
        if logits.device.type != "cpu":
            return _policy_gradient_on(logits, legal, actions, old, advantages, near, clip, entropy, pull)
        gradient, means = torch.empty_like(logits), torch.empty(5, dtype=torch.float64)
        _policy_gradient(
            logits.numpy(), legal.numpy(), actions.numpy(), old.numpy(), advantages.numpy(), near.numpy(), clip, entropy,
            pull, gradient.numpy(), means.numpy(),
        )  # fmt: skip
        return gradient, means


def _frozen(policy: MaskableActorCriticPolicy) -> MaskableActorCriticPolicy:
    """A copy that is not trained itself."""
    found = copy.deepcopy(policy)
    found.set_training_mode(False)
    for parameter in found.parameters():
        parameter.requires_grad_(False)
    return found
