"""The decisions that PPO learns from, and generalised advantage estimates of them for each seat.

Source: J. Schulman et al., High-Dimensional Continuous Control Using Generalized Advantage Estimation (2016), section 3.
"""

from __future__ import annotations

from typing import NamedTuple

from dice_envs.core.extras import needs
from dice_envs.core.game import Variant
from dice_envs.learn.presets import Preset

with needs("sb3", "dice_envs.learn.rollout"):
    import torch
    from torch import Tensor

ILLEGAL = -1e9  # added to the logits of illegal actions: their probability is then exactly 0


class Rollout(NamedTuple):
    """Decisions in each game, (steps, games, ...); each is one of the seat whose turn it was.

    Attributes:
        inputs: of the networks, float32: the observation; with a central critic those of all seats, the seat to move first.
        bias: (…, actions) float32, 0 for legal actions and ILLEGAL for others.
        played: (…, actions) float32, log probabilities of the policy that played.
        anchor: (…, actions) float32, log probabilities of the reference policy and of the one that played, each multiplied by
            its weight in the loss; no actions where there are no such terms.
        actions, seats: int64.
        log_probs: float32, of the actions taken.
        earned: (…, seats) float32, what each seat earns between this decision and the game's next one.
        ended: bool, whether the game ends before its next decision.
        players: (…, seats) int64, and gained: float64, of the game: who had each seat, and the seat's return so far.
        values: float32, the critic's value before the action is chosen.
        taken: float32, its value of the action taken, or `values` where the critic values positions only. An advantage then
            says how much better the action was than the critic thought.
        advantages, returns: float32.
        known: bool, whether the value of the seat's next decision is known. After a seat's last decision in the rollout only
            others may move before the rollout ends; the advantage is then 0.
    """

    inputs: Tensor
    bias: Tensor
    played: Tensor
    anchor: Tensor
    actions: Tensor
    seats: Tensor
    log_probs: Tensor
    earned: Tensor
    ended: Tensor
    players: Tensor
    gained: Tensor
    values: Tensor
    taken: Tensor
    advantages: Tensor
    returns: Tensor
    known: Tensor


def room_for_rollout(variant: Variant, preset: Preset, device: torch.device) -> Rollout:
    """Return a rollout of zeros for the preset's games and steps."""
    shape, facts = (preset.num_steps, preset.num_envs), variant.facts
    seats, actions = facts.num_seats, facts.num_actions

    def room(*sizes: int, dtype: torch.dtype = torch.float32) -> Tensor:
        return torch.zeros(*shape, *sizes, dtype=dtype, device=device)

    return Rollout(
        inputs=room(facts.observation_size * (seats if preset.central_critic else 1)),
        bias=room(actions),
        played=room(actions),
        anchor=room(actions if preset.kl or preset.proximal else 0),
        actions=room(dtype=torch.int64),
        seats=room(dtype=torch.int64),
        log_probs=room(),
        earned=room(seats),
        ended=room(dtype=torch.bool),
        players=room(seats, dtype=torch.int64),
        gained=room(dtype=torch.float64),
        values=room(),
        taken=room(),
        advantages=room(),
        returns=room(),
        known=room(dtype=torch.bool),
    )


def estimate_advantages(r: Rollout, ahead: Tensor, known: Tensor, decay: float, opposed: bool) -> None:
    """Set generalised advantage estimates and returns of each decision, over the decisions of its own seat, undiscounted.

    Args:
        r: a rollout; `advantages`, `returns` and `known` are modified in place.
        ahead: (games, seats) float32, the value of the position after the last step for each seat where it is known.
            Modified in place.
        known: (games, seats) bool, where it is. Modified in place.
        decay: lambda, 0 to 1.
        opposed: whether the game is zero-sum between two seats, and the critic sees both hands. The value of the other seat's
            decision is then this seat's value negated, so each decision is followed by the game's next one, whoever makes it,
            and the luck of the other seat's choice adds no noise. Not for a critic that sees one hand: its value for the
            other seat is biased.
    """
    # ahead[seat]: rewards up to its next decision, the value there, and the decayed advantage of it.
    for t in range(len(r.seats) - 1, -1, -1):
        ended, seat, taken = r.ended[t].unsqueeze(1), r.seats[t].unsqueeze(1), r.taken[t].unsqueeze(1)
        ahead.masked_fill_(ended, 0.0).add_(r.earned[t])
        known.logical_or_(ended)
        sure = known.gather(1, seat)
        advantage = (ahead.gather(1, seat) - taken) * sure
        r.advantages[t].copy_(advantage[:, 0])
        r.known[t].copy_(sure[:, 0])
        worth = r.values[t].unsqueeze(1) + decay * advantage
        if opposed:
            ahead.copy_(-worth)
        ahead.scatter_(1, seat, worth)
        known.scatter_(1, seat, True)
    torch.add(r.advantages, r.taken, out=r.returns)
