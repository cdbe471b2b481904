"""What PPO computes besides the rollout: actions, advantages of each seat, the loss's gradient, dense layers."""

from __future__ import annotations

from typing import Any

import numpy as np

from dice_envs.core.extras import needs
from dice_envs.core.kernel import kernel

with needs("sb3", "dice_envs.learn.policy_gradient"):
    import torch
    from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
    from torch import nn

__all__ = [
    "Dense",
    "Network",
    "dense_layers",
    "estimate_advantages",
    "estimate_opposed_advantages",
    "policy_gradient",
    "policy_gradient_on_device",
    "sample_actions",
]


# --- kernels ----------------------------------------------------------------------------------------------------------


@kernel
def sample_actions(logits, masks, uniforms, actions, log_probs):
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
def estimate_advantages(seats, earned, ended, values, taken, last_seats, last_values, out, gamma, decay, advantages, waits):
    """Generalised advantage estimates of each decision, from its seat's own next decision on. In place.

    values: what a decision is worth before its action is chosen; taken: after that, where the critic knows it (then what is
    found is how much better the action was than the critic thought), and otherwise the same.

    A seat whose last decision in the rollout is followed by others' only has no estimate of what comes: that decision's
    advantage is 0, and `waits` is 1 there. seats, ended, values, taken, advantages, waits: (steps, games); earned:
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
                surprise = since[seat] + gamma * following[seat] - taken[t, game]
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
def estimate_opposed_advantages(seats, earned, ended, values, taken, last_seats, last_values, gamma, decay, advantages):
    """`estimate_advantages` where what one of two seats wins the other loses, and the critic sees what both see.

    What a decision of the other seat's is worth to this one is then known, too: it is the value's negative. So each decision
    is followed by the game's next one, whoever makes it, and the luck of the other seat's choice does not add to the noise.
    Shapes as there; gamma and decay count the game's decisions. A critic that sees one hand must not be used so: what the other
    seat believes, seen by this one, is biased.
    """
    steps, games = seats.shape
    for game in range(games):
        following = last_values[game]
        next_seat = last_seats[game]
        advantage = 0.0
        for t in range(steps - 1, -1, -1):
            if ended[t, game] != 0:
                following = 0.0
                advantage = 0.0
            seat = seats[t, game]
            sign = 1.0 if seat == next_seat else -1.0
            surprise = earned[t, game, seat] + gamma * sign * following - taken[t, game]
            advantage = surprise + gamma * decay * sign * advantage
            advantages[t, game] = advantage
            following = values[t, game]
            next_seat = seat


@kernel
def policy_gradient(
    logits, masks, actions, old_log_probs, advantages, action_values, reference,
    clip, entropy, pull, least_stake, gradient, sums,
):  # fmt: skip
    """The gradient of the policy's loss, mean over the rows, with respect to the logits. `gradient`, `sums` in place.

    action_values: what the critic expects of every action, of the same shape as logits, or of no rows. The policy's mean of
    them is then maximised too, and `advantages` are what the actions taken were worth beyond them.
    reference: logits of the reference policy, of the same shape, or of no rows where `pull` is 0.
    least_stake: above 0, `entropy` and `pull` are multiplied in each row by its stake: half the difference between its best
    and its worst legal action by `action_values`, but this at least. 0: they are not. sums (5,): policy loss, entropy,
    divergence from the reference, approximate divergence from the old policy, share of clipped ratios.
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
        expected = 0.0
        best = -np.inf
        worst = np.inf
        for a in range(actions_there):
            if masks[k, a] != 0:
                log_p[a] -= log_total
                p = np.exp(log_p[a])
                gradient[k, a] = p
                spread -= p * log_p[a]
                if len(action_values) != 0:
                    expected += p * action_values[k, a]
                    best = max(best, action_values[k, a])
                    worst = min(worst, action_values[k, a])
                if pull != 0.0:
                    log_r[a] -= log_reference
                    divergence += p * (log_p[a] - log_r[a])
            else:
                gradient[k, a] = 0.0
        stake = max(least_stake, 0.5 * (best - worst)) if least_stake != 0.0 else 1.0
        log_ratio = log_p[actions[k]] - old_log_probs[k]
        ratio = np.exp(log_ratio)
        gain = advantages[k] * ratio
        clipped = advantages[k] * min(max(ratio, 1.0 - clip), 1.0 + clip)
        step = -gain if gain <= clipped else 0.0  # the loss's derivative by the action's log probability
        for a in range(actions_there):
            if masks[k, a] != 0:
                p = gradient[k, a]
                slope = -step * p + stake * entropy * p * (log_p[a] + spread)
                if len(action_values) != 0:
                    slope -= p * (action_values[k, a] - expected)
                if pull != 0.0:
                    slope += stake * pull * p * (log_p[a] - log_r[a] - divergence)
                gradient[k, a] = slope / rows
        gradient[k, actions[k]] += step / rows
        sums[0] -= (min(gain, clipped) + expected) / rows
        sums[1] += spread / rows
        sums[2] += divergence / rows
        sums[3] += (ratio - 1.0 - log_ratio) / rows
        sums[4] += (abs(ratio - 1.0) > clip) / rows


def policy_gradient_on_device(device_logits: Any, masks: Any, actions: Any, old: Any, advantages: Any, action_values: Any,
                              reference: Any, clip: float, entropy: float, pull: float, least_stake: float,
                              ) -> tuple[Any, Any]:  # fmt: skip
    """As `policy_gradient`, with PyTorch, on any device: gradient and sums."""
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
    stake = torch.ones_like(spread)
    if least_stake:
        best = action_values.masked_fill(~legal, -torch.inf).amax(1, keepdim=True)
        worst = action_values.masked_fill(~legal, torch.inf).amin(1, keepdim=True)
        stake = (0.5 * (best - worst)).clamp(min=least_stake)
    slope = -step[:, None] * p + stake * entropy * p * (log_p + spread)
    expected = torch.zeros_like(spread)
    if len(action_values):
        expected = (p * action_values).sum(1, keepdim=True)
        slope -= p * (action_values - expected)
    divergence = torch.zeros_like(spread)
    if pull != 0:
        log_r = torch.log_softmax(reference.masked_fill(~legal, -torch.inf), dim=1).masked_fill(~legal, 0.0)
        divergence = (p * (log_p - log_r)).sum(1, keepdim=True)
        slope += stake * pull * p * (log_p - log_r - divergence)
    slope.scatter_add_(1, actions[:, None], step[:, None])
    gain = torch.minimum(gain, clipped) + expected[:, 0]
    means = [-gain, spread, divergence, ratio - 1 - log_ratio, ((ratio - 1).abs() > clip).float()]
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


LINEAR = _onednn_linear()


class Dense(torch.autograd.Function):
    """inputs @ weightsᵀ + biases, and tanh of it if asked, by oneDNN."""

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


def layers_of(body: nn.Module, head: nn.Module) -> list[tuple[nn.Linear, bool]] | None:
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
    layers = layers_of(policy.mlp_extractor.policy_net, policy.action_net)
    if layers is None or any(tanh != (i + 1 < len(layers)) for i, (_, tanh) in enumerate(layers)):
        raise ValueError("the actor must be dense layers with tanh between them")
    return [(layer.weight.detach().cpu().numpy().copy(), layer.bias.detach().cpu().numpy().copy()) for layer, _ in layers]


class Network:
    """Logits and values of an actor-critic policy, by the fastest way there is.

    A policy may have a `central_critic`, dense layers with tanh between them, from what all seats see to the value of each
    action.
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
