"""Networks that learn: dense layers, the policies that they are, and the states from which their training goes on."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from dice_envs.agents.ppo import NetworkPolicy
from dice_envs.core.game import Variant
from dice_envs.core.machine import needs
from dice_envs.core.options import check_range
from dice_envs.learn.checkpoint import check_like, copied
from dice_envs.learn.presets import Preset

with needs("sb3", "dice_envs.learn.networks"):
    import torch
    from torch import nn


class _Tanh(torch.autograd.Function):
    """tanh x = 2 σ(2x) - 1, within 3e-7. On AMD processors, where MKL computes PyTorch's own, it takes a third of the time."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        y = (x + x).sigmoid_().mul_(2).sub_(1)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        return torch.ops.aten.tanh_backward(gradient, *ctx.saved_tensors)


class Tanh(nn.Module):
    """The hyperbolic tangent."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.tanh() if x.is_cuda else _Tanh.apply(x)


def mlp(sizes: Sequence[int], draws: torch.Generator, gain: float | None = None, scale: float = 1.0) -> nn.Sequential:
    """Make dense layers with tanh between them. `sizes` are those of the inputs and of each layer.

    Initial weights come from `draws` and are orthogonal, the last layer's with this gain; None: PyTorch's. `scale` multiplies
    those of the first of several layers, whose units are then centred on inputs from 0 to 1.
    """
    layers = [nn.utils.skip_init(nn.Linear, size, following) for size, following in itertools.pairwise(sizes)]
    for layer in layers:  # as PyTorch does, but its layers draw from the global stream, which other threads draw from, too
        nn.init.kaiming_uniform_(layer.weight, a=math.sqrt(5), generator=draws)
        bound = 1 / math.sqrt(layer.in_features)
        nn.init.uniform_(layer.bias, -bound, bound, generator=draws)
    if gain is not None:
        for layer in layers:
            nn.init.orthogonal_(layer.weight, gain if layer is layers[-1] else 2**0.5, generator=draws)
            nn.init.zeros_(layer.bias)
    if scale != 1 and len(layers) > 1:
        with torch.no_grad():
            layers[0].weight.mul_(scale)
            layers[0].bias.copy_(-0.5 * layers[0].weight.sum(dim=1))
    return nn.Sequential(*[part for layer in layers for part in (layer, Tanh())][:-1])


def layers_of(network: Iterable[Any]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Copy the dense layers of `mlp`: (weights (out, in), biases (out,)) float32 of each, first layer first."""
    dense = [part for part in network if isinstance(part, nn.Linear)]
    return [(layer.weight.detach().cpu().numpy().copy(), layer.bias.detach().cpu().numpy().copy()) for layer in dense]


@dataclasses.dataclass(eq=False, repr=False)
class ActorCritic:
    """Networks with their optimiser and their games, as every learner has them.

    Attributes:
        variant: the game.
        preset: how to train.
        actors: the dense parts of the "last" policy and, where there is one, of the "averaged" one.
        networks: the module that holds all networks.
        optimizer: Adam, for those that learn.
        games: with `snapshot` and `restore`.
        steps: learner steps so far.
    """

    variant: Variant
    preset: Preset
    actors: Mapping[str, Iterable[Any]]
    networks: Any
    optimizer: torch.optim.Optimizer
    games: Any
    steps: int = 0

    def __post_init__(self) -> None:
        self._parameters = self.optimizer.param_groups[0]["params"]
        # Adam's means, which are 0, are made now, so that every state has them, and they keep their places.
        for parameter in self._parameters:
            parameter.grad = torch.zeros_like(parameter)
        self.optimizer.step()
        for part in self.optimizer.state.values():
            part["step"].zero_()

    def policy_with(self, layers: Iterable[tuple[Any, Any]]) -> NetworkPolicy:
        """Return layers, (weights, biases) as arrays or tensors on the CPU, as a policy of the game."""
        arrays = [(np.asarray(weights), np.asarray(biases)) for weights, biases in layers]
        return NetworkPolicy(self.variant.game.name, self.variant.changed_options(), arrays, floor=self.preset.floor)

    def policy(self, name: str = "last") -> NetworkPolicy:
        """Return a copy of the present policy, or of the "averaged" one, whose weights are a running mean."""
        return self.policy_with(layers_of(self.actors[name]))

    def policies(self) -> dict[str, NetworkPolicy]:
        """Return copies of the "last" policy and, where there is one, of the "averaged" one."""
        return {name: self.policy(name) for name in self.actors}

    def check_finite(self) -> None:
        """Raise ValueError if training has diverged. Checkpoints hold finite networks only."""
        if not torch.stack([parameter.isfinite().all() for parameter in self._parameters]).all():
            raise ValueError(
                f"the network's weights are not finite any more after {self.steps:,} steps; a lower learning rate keeps them "
                f"finite. A checkpoint, if there is one, is from before"
            )

    def state(self) -> dict[str, Any]:
        """Return copies of all that determines how training goes on, except the opponents, as tensors on the CPU."""
        env = {  # data types in words, and bytes: torch has few of NumPy's data types
            name: (str(np.lib.format.dtype_to_descr(array.dtype)), torch.from_numpy(array.reshape(-1).view(np.uint8)))
            for name, array in self.games.snapshot().items()
        }
        return {
            "num_timesteps": self.steps,
            "policy": copied(self.networks.state_dict()),
            "optimizer": {number: copied(self.optimizer.state[each]) for number, each in enumerate(self._parameters)},
            "env": env,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go back to what `state` returned for a learner made with the same arguments, on any device.

        Raises:
            ValueError or KeyError: it is no such state; nothing has changed.
        """
        p, steps, mine = self.preset, state["num_timesteps"], self.state()
        check_range("num_timesteps", steps, 0, 10**15)
        if steps % (p.num_envs * p.num_steps):
            raise ValueError(f"num_timesteps must be a multiple of {p.num_envs * p.num_steps}, not {steps}")
        for name in ("policy", "optimizer", "env"):
            check_like(name, state[name], mine[name])
        updates = min(steps * p.epochs // p.minibatch, 2**24)  # float32 counts no further
        if any((part["exp_avg_sq"] < 0).any() or part["step"] != updates for part in state["optimizer"].values()):
            raise ValueError(f"optimizer has means of squares below 0 or other steps than {updates}")
        parts = {name: part.contiguous().numpy() for name, (_, part) in state["env"].items()}
        here = self.games.snapshot()
        self.games.restore({name: parts[name].view(array.dtype).reshape(array.shape) for name, array in here.items()})
        self.steps = steps
        with torch.no_grad():  # in place: CUDA graphs know where everything is
            self.networks.load_state_dict(state["policy"])
            for number, parameter in enumerate(self._parameters):
                for name, tensor in self.optimizer.state[parameter].items():
                    tensor.copy_(state["optimizer"][number][name])
