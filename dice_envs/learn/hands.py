"""Values of actions over every hand that the other player may hold, for self-play of two.

A player does not see the other's hand, so an action is worth its mean over all hands. Each has its posterior probability as its
weight: that of the deal times those of the other's moves so far, had it held this hand. A game shows one hand, which is luck.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dice_envs.core.machine import needs

with needs("sb3", "dice_envs.learn.hands"):
    import torch
    from torch import Tensor, nn

    from dice_envs.envs.tensor import TensorEnv


class EveryHand(nn.Module):
    """Every hand of both players in n games, of a game with `hands`, that the learner plays against itself.

    A rollout has `steps` steps of each game.

    Attributes:
        known: (n, 2, hands) float32, log probability of each hand's deal and of all moves that the seat has made in this game,
            had it held the hand. It is kept from rollout to rollout, and in checkpoints.
    """

    def __init__(self, env: TensorEnv, steps: int) -> None:
        super().__init__()
        assert env.variant.hands is not None
        chances, seats, size = env.variant.hands[1], 2, env.variant.facts.observation_size
        self._env, self._dealt = env, torch.as_tensor(chances, dtype=torch.float32, device=env.device).log()
        self.known: Tensor
        self.register_buffer("known", self._dealt.repeat(env.num_envs, seats, 1))
        self._views = torch.zeros(steps, *self.known.shape, size, device=env.device)
        # Numbers that tell views apart, so that what is the same is computed once.
        self._keys = self._views.new_zeros(steps, *self.known.shape, dtype=torch.float64)
        self._key = torch.arange(1, 2 * size + 1, dtype=torch.float64, device=env.device).sin().view(2, size)

    def watch(self, t: int) -> None:
        """Note at step t of the rollout what each seat would see with each hand."""
        self._env.view_hands(self._views[t])
        torch.mv(self._views[t].flatten(0, 2).double(), self._key[0], out=self._keys[t].flatten())

    def expected(self, r: Any, log_policy: Callable[[Tensor, Tensor], Tensor], critic: Callable[[Tensor], Tensor]) -> Tensor:
        """Return each action's value at the decisions of a `Rollout` in which all games were watched, (steps, n, actions)."""
        (steps, n), hands = r.seats.shape, len(self._dealt)
        # Each decision's hands, as places of one row of `views` that has all: of the player who decides, and of the other.
        begins = torch.arange(steps * n * 2 * hands, device=r.seats.device).view(steps, n, 2 * hands)[:, :, :hands]
        own, other = (begins + seat.unsqueeze(2) * hands for seat in (r.seats, 1 - r.seats))
        views, keys = self._views.flatten(0, 3), self._keys.flatten()
        first, places = _distinct(keys[own].flatten())
        moves = log_policy(views[own.flatten()[first]], r.bias.flatten(0, 1)[first // hands])
        taken = r.actions.unsqueeze(2).expand(-1, -1, hands).flatten()
        weights = self._posterior(r, moves[places, taken].view(steps, n, hands))
        seen = r.inputs[:, :, : views.shape[1]].flatten(0, 1)
        first, places = _distinct(((seen.double() @ self._key[1]).view(steps, n, 1) + keys[other]).flatten())
        values = critic(torch.cat([seen[first // hands], views[other.flatten()[first]]], 1))
        return torch.einsum("tnh,tnha->tna", weights, values[places].view(steps, n, hands, -1))

    def _posterior(self, r: Any, moves: Tensor) -> Tensor:
        """Return probabilities of the other player's hands at each decision, (steps, n, hands).

        `moves` has the log probability of each decision's action for each hand of the player who made it.
        """
        weights, games = torch.empty_like(moves), torch.arange(moves.shape[1], device=moves.device)
        for t in range(len(moves)):
            weights[t] = self.known[games, 1 - r.seats[t]].softmax(1)
            self.known[games, r.seats[t]] += moves[t]
            self.known.copy_(torch.where(r.ended[t].view(-1, 1, 1), self._dealt, self.known))
        return weights


def _distinct(keys: Tensor) -> tuple[Tensor, Tensor]:
    """Return a row of each distinct key, and each row's place among them. On a GPU, whose graphs have fixed sizes, all rows."""
    rows = torch.arange(len(keys), device=keys.device)
    if keys.is_cuda:
        return rows, rows
    values, places = torch.unique(keys, return_inverse=True)
    return rows[: len(values)].clone().scatter_(0, places, rows), places
