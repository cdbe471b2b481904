"""The numerical core of PPO: sampled actions, advantages of each seat, the loss's gradient, dense layers."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from dice_envs.agent.softmax import sample_softmax
from dice_envs.core.extras import needs
from dice_envs.core.kernel import kernel

with needs("sb3", "dice_envs.learn.policy_gradient"):
    import torch
    from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
    from torch import nn

__all__ = [
    "Decisions",
    "Dense",
    "Following",
    "Minibatch",
    "Network",
    "Weights",
    "arrays_of",
    "dense_layers",
    "estimate_advantages",
    "estimate_opposed_advantages",
    "mlp",
    "policy_gradient",
    "sample_actions",
]


# --- kernels ----------------------------------------------------------------------------------------------------------


@kernel(allocates=False)
def sample_actions(logits, masks, uniforms, actions, log_probs):
    """Sample from the softmax over the legal actions. `actions` and `log_probs` (n,) are modified in place."""
    for k in range(len(actions)):
        actions[k], log_probs[k] = sample_softmax(logits[k], masks[k], 0.0, uniforms[k])


class Decisions(NamedTuple):
    """The decisions of a rollout.

    Attributes:
        seats: (steps, games) int64, the seat that decides.
        earned: (steps, games, seats) float64, what each seat earns between this decision and the game's next one.
        ended: (steps, games) int8, whether the game ends before its next decision.
        values: (steps, games) float32, the critic's value before the action is chosen.
        taken: (steps, games) float32, its value of the action taken, or `values` where the critic values positions only. An
            advantage then says how much better the action was than the critic thought.
    """

    seats: np.ndarray
    earned: np.ndarray
    ended: np.ndarray
    values: np.ndarray
    taken: np.ndarray


class Following(NamedTuple):
    """The positions after a rollout's last step.

    Attributes:
        seats: (games,) int64, the seat to move.
        values: (games,) float32, the position's value for that seat.
        out: (games, seats) int8, 1 where the game is over for a seat though others play on.
    """

    seats: np.ndarray
    values: np.ndarray
    out: np.ndarray


@kernel
def estimate_advantages(decisions, following, gamma, decay, advantages, waits):
    """Generalised advantage estimates of each decision, over the decisions of its own seat.

    After a seat's last decision in the rollout only others may move before the rollout ends. The value of that seat's next
    decision is then unknown: the advantage is 0 and `waits` is 1. `advantages` float32 and `waits` int8 (steps, games) are
    modified in place.
    """
    steps, games = decisions.seats.shape
    num_seats = decisions.earned.shape[2]
    value = np.empty(num_seats)  # of the seat's next decision
    advantage = np.empty(num_seats)  # of the seat's next decision
    since = np.empty(num_seats)  # earned since the seat's previous decision
    known = np.empty(num_seats, np.int8)
    for game in range(games):
        for seat in range(num_seats):
            value[seat] = 0.0
            advantage[seat] = 0.0
            since[seat] = 0.0
            known[seat] = following.out[game, seat]
        value[following.seats[game]] = following.values[game]
        known[following.seats[game]] = 1
        for t in range(steps - 1, -1, -1):
            if decisions.ended[t, game] != 0:
                for seat in range(num_seats):
                    value[seat] = 0.0
                    advantage[seat] = 0.0
                    since[seat] = 0.0
                    known[seat] = 1
            for seat in range(num_seats):
                since[seat] += decisions.earned[t, game, seat]
            seat = decisions.seats[t, game]
            if known[seat]:
                surprise = since[seat] + gamma * value[seat] - decisions.taken[t, game]
                advantage[seat] = surprise + gamma * decay * advantage[seat]
                waits[t, game] = 0
            else:
                advantage[seat] = 0.0
                waits[t, game] = 1
                known[seat] = 1
            advantages[t, game] = advantage[seat]
            value[seat] = decisions.values[t, game]
            since[seat] = 0.0


@kernel
def estimate_opposed_advantages(decisions, following, gamma, decay, advantages):
    """Advantages in a zero-sum game of two seats whose critic sees both hands. `advantages` is modified in place.

    The value of the other seat's decision is then this seat's value negated. So each decision is followed by the game's next
    one, whoever makes it, and the luck of the other seat's choice adds no noise. `gamma` and `decay` count the game's
    decisions. Not for a critic that sees one hand: its value for the other seat is biased.
    """
    steps, games = decisions.seats.shape
    for game in range(games):
        value = following.values[game]
        next_seat = following.seats[game]
        advantage = 0.0
        for t in range(steps - 1, -1, -1):
            if decisions.ended[t, game] != 0:
                value = 0.0
                advantage = 0.0
            seat = decisions.seats[t, game]
            sign = 1.0 if seat == next_seat else -1.0
            surprise = decisions.earned[t, game, seat] + gamma * sign * value - decisions.taken[t, game]
            advantage = surprise + gamma * decay * sign * advantage
            advantages[t, game] = advantage
            value = decisions.values[t, game]
            next_seat = seat


class Minibatch(NamedTuple):
    """The decisions that a gradient is of, n rows.

    Attributes:
        logits: (n, actions) float32.
        masks: (n, actions) int8, the legal actions.
        actions: (n,) int64.
        old_log_probs: (n,) float32, when the action was taken.
        advantages: (n,) float32; with `action_values` only the advantage beyond them.
        action_values: (n, actions) float32, the critic's, or no rows. The policy's mean of them is maximised too.
        reference: (n, actions) float32, logits of the reference policy, or no rows where `Weights.pull` is 0.
    """

    logits: Any
    masks: Any
    actions: Any
    old_log_probs: Any
    advantages: Any
    action_values: Any
    reference: Any


class Weights(NamedTuple):
    """The parameters of the policy's loss.

    Attributes:
        clip: of the ratio of probabilities.
        entropy: weight of the entropy bonus.
        pull: weight of the divergence from the reference policy.
        least_stake: above 0, `entropy` and `pull` are multiplied in each row by its stake: half the difference between the
            best and the worst legal action by `action_values`, but at least this.
    """

    clip: float
    entropy: float
    pull: float
    least_stake: float


@kernel
def policy_gradient(batch, weights, gradient, sums):
    """The gradient of the policy's loss, mean over the rows, with respect to the logits. `gradient`, `sums` in place.

    A kernel, because autograd made training 9 % (preset equilibrium) to 17 % (preset match) slower.

    sums (5,): policy loss, entropy, divergence from the reference, approximate divergence from the old policy, share of
    clipped ratios.
    """
    rows, num_actions = batch.logits.shape
    log_p = np.empty(num_actions)
    log_r = np.empty(num_actions)
    has_values = len(batch.action_values) != 0
    sums[:] = 0.0
    for k in range(rows):
        mask = batch.masks[k]
        _log_softmax(batch.logits[k], mask, log_p)
        if weights.pull != 0.0:
            _log_softmax(batch.reference[k], mask, log_r)
        entropy = 0.0
        divergence = 0.0
        expected = 0.0
        best = -np.inf
        worst = np.inf
        for a in range(num_actions):
            gradient[k, a] = 0.0
            if mask[a] != 0:
                p = np.exp(log_p[a])
                gradient[k, a] = p
                entropy -= p * log_p[a]
                if has_values:
                    expected += p * batch.action_values[k, a]
                    best = max(best, batch.action_values[k, a])
                    worst = min(worst, batch.action_values[k, a])
                if weights.pull != 0.0:
                    divergence += p * (log_p[a] - log_r[a])
        stake = max(weights.least_stake, 0.5 * (best - worst)) if weights.least_stake != 0.0 else 1.0
        log_ratio = log_p[batch.actions[k]] - batch.old_log_probs[k]
        ratio = np.exp(log_ratio)
        gain = batch.advantages[k] * ratio
        clipped = batch.advantages[k] * min(max(ratio, 1.0 - weights.clip), 1.0 + weights.clip)
        step = -gain if gain <= clipped else 0.0  # the loss's derivative by the action's log probability
        for a in range(num_actions):
            if mask[a] != 0:
                p = gradient[k, a]
                slope = -step * p + stake * weights.entropy * p * (log_p[a] + entropy)
                if has_values:
                    slope -= p * (batch.action_values[k, a] - expected)
                if weights.pull != 0.0:
                    slope += stake * weights.pull * p * (log_p[a] - log_r[a] - divergence)
                gradient[k, a] = slope / rows
        gradient[k, batch.actions[k]] += step / rows
        sums[0] -= (min(gain, clipped) + expected) / rows
        sums[1] += entropy / rows
        sums[2] += divergence / rows
        sums[3] += (ratio - 1.0 - log_ratio) / rows
        sums[4] += (abs(ratio - 1.0) > weights.clip) / rows


@kernel(allocates=False)
def _log_softmax(logits, mask, out):
    """Log probabilities of the legal actions. Modified in place."""
    top = -np.inf
    for a in range(len(logits)):
        if mask[a] != 0:
            top = max(top, logits[a])
    total = 0.0
    for a in range(len(logits)):
        if mask[a] != 0:
            out[a] = logits[a] - top
            total += np.exp(out[a])
    log_total = np.log(total)
    for a in range(len(logits)):
        if mask[a] != 0:
            out[a] -= log_total


# --- dense layers -----------------------------------------------------------------------------------------------------


def _onednn_linear() -> Any:
    """oneDNN's linear layer, with an optional tanh; None where PyTorch has none.

    On processors that are not Intel's it is two to three times as fast as the default, and its tanh ten times as fast.
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


LINEAR = _onednn_linear()


class Dense(torch.autograd.Function):
    """inputs @ weightsᵀ + biases, with tanh if asked for, by oneDNN."""

    @staticmethod
    def forward(ctx: Any, inputs: Any, weights: Any, biases: Any, tanh: bool) -> Any:
        out = LINEAR(inputs, weights, biases, "tanh" if tanh else "none", [], "")
        ctx.save_for_backward(inputs, weights, out if tanh else None)
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        inputs, weights, out = ctx.saved_tensors
        if out is not None:
            gradient = torch.ops.aten.tanh_backward(gradient, out)
        to_inputs = LINEAR(gradient, weights.t(), None, "none", [], "") if ctx.needs_input_grad[0] else None
        return to_inputs, LINEAR(gradient.t(), inputs.t(), None, "none", [], ""), gradient.sum(0), None


def _run_layers(layers: list[tuple[nn.Linear, bool]], inputs: Any) -> Any:
    if LINEAR is None or inputs.device.type != "cpu" or inputs.dtype != torch.float32:
        for linear, tanh in layers:
            inputs = linear(inputs)
            inputs = inputs.tanh() if tanh else inputs
        return inputs
    for linear, tanh in layers:
        inputs = Dense.apply(inputs, linear.weight, linear.bias, tanh)
    return inputs


def mlp(sizes: Sequence[int]) -> Any:
    """An `nn.Sequential` of dense layers with tanh between them, from the inputs' size to the outputs'."""
    modules: list[nn.Module] = []
    for size, next_size in itertools.pairwise(sizes):
        modules += [nn.Linear(size, next_size), nn.Tanh()]
    return nn.Sequential(*modules[:-1])


def arrays_of(layers: Iterable[Any]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Copy dense layers: (weights (out, in), biases (out,)) float32 of each."""
    return [(layer.weight.detach().cpu().numpy().copy(), layer.bias.detach().cpu().numpy().copy()) for layer in layers]


def layers_of(body: nn.Module, head: nn.Module) -> list[tuple[nn.Linear, bool]] | None:
    """Dense layers as (layer, whether tanh follows); None for a network of another kind."""
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
    """Copy the actor of an `MlpPolicy`, as `arrays_of` does, first layer first.

    Raises:
        ValueError: it has other layers than dense ones with tanh between them.
    """
    layers = layers_of(policy.mlp_extractor.policy_net, policy.action_net)
    if layers is None or any(tanh != (i + 1 < len(layers)) for i, (_, tanh) in enumerate(layers)):
        raise ValueError("the actor must be dense layers with tanh between them")
    return arrays_of(layer for layer, _ in layers)


class Network:
    """Logits and values of an actor-critic policy, computed in the fastest available way.

    A policy may have a `central_critic`: dense layers with tanh between them, from the observations of all seats to the value
    of each action.
    """

    def __init__(self, policy: MaskableActorCriticPolicy) -> None:
        self.policy = policy
        plain = type(policy.features_extractor).__name__ == "FlattenExtractor"
        self._actor = layers_of(policy.mlp_extractor.policy_net, policy.action_net) if plain else None
        self._critic = layers_of(policy.mlp_extractor.value_net, policy.value_net) if plain else None
        central: Any = getattr(policy, "central_critic", None)
        self._central = None if central is None else layers_of(central[:-1], central[-1])

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

    def action_values(self, states: Any) -> Any:
        """(n, actions) float32, by the central critic."""
        assert self._central is not None, "the policy has no central critic"
        return _run_layers(self._central, states)
