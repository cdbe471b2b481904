"""PPO for games of several seats, in plain PyTorch, on a CPU or on a GPU.

It reads from top to bottom: the decisions to learn from and their advantages, an iteration, the rollout, the loss, the
policies that follow the learner.

The learner may play every seat of a game. Each of its decisions is then a sample; advantages follow the decisions of one
seat, whatever the others do in between. In zero-sum games plain policy gradients circle around the equilibrium. A regulariser
strong enough to keep policies mixed pulls them in: an entropy bonus, or a Kullback-Leibler term to a reference policy, fixed or
slowly following the learner.

Sources: J. Schulman et al., Proximal Policy Optimization Algorithms (2017), section 3, and High-Dimensional Continuous
Control Using Generalized Advantage Estimation (2016), section 3; S. Sokota et al., A Unified Approach to
Reinforcement Learning, Quantal Response Equilibria, and Two-Player Zero-Sum Games (ICLR 2023, magnetic mirror descent);
M. Rudolph et al., Reevaluating Policy Gradient Methods for Imperfect-Information Games (2025), sections 3 and 5.
"""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dice_envs.core.dice import derived_seeds
from dice_envs.core.game import Variant
from dice_envs.core.machine import needs, torch_threads
from dice_envs.learn.presets import Preset

with needs("sb3", "dice_envs.learn.ppo"):
    import torch
    from torch import Tensor, nn

    from dice_envs.envs.tensor import TensorEnv
    from dice_envs.learn.hands import EveryHand
    from dice_envs.learn.networks import ActorCritic, mlp

ILLEGAL = -1e9  # added to the logits of illegal actions: their probability is then exactly 0
MAX_GRAD_NORM = 0.5  # of the gradient, which is scaled down to it


# --- the decisions that it learns from -----------------------------------------------------------------------------


class Rollout:
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
        expected: (…, actions) float32, the actions' values over the other's hands; no actions without `every_hand`.
        known: bool, whether the value of the seat's next decision is known. After a seat's last decision in the rollout only
            others may move before the rollout ends; the advantage is then 0.
    """

    def __init__(self, variant: Variant, preset: Preset, device: torch.device) -> None:
        def room(*sizes: int, dtype: torch.dtype = torch.float32) -> Tensor:
            return torch.zeros(preset.num_steps, preset.num_envs, *sizes, dtype=dtype, device=device)

        seats, actions = variant.facts.num_seats, variant.facts.num_actions
        self.inputs = room(variant.facts.observation_size * (seats if preset.central_critic else 1))
        self.bias, self.played = room(actions), room(actions)
        self.anchor = room(actions if preset.kl or preset.proximal else 0)
        self.actions, self.seats = room(dtype=torch.int64), room(dtype=torch.int64)
        self.log_probs, self.earned = room(), room(seats)
        self.ended, self.players = room(dtype=torch.bool), room(seats, dtype=torch.int64)
        self.gained = room(dtype=torch.float64)
        self.values, self.taken, self.advantages, self.returns = room(), room(), room(), room()
        self.known = room(dtype=torch.bool)
        self.expected = room(actions if preset.every_hand else 0)


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


# --- the learner ------------------------------------------------------------------------------------------------------


class PPO(ActorCritic):
    """A learner: its games, its networks, and what it has learned.

    With several epochs and a proximal term an update is a step of mirror descent whose size, 1 / `preset.proximal`, is the same
    at all information sets, however often they come up; with clipping alone the size depends on chance.

    On a GPU rollout and update are recorded once as CUDA graphs, the rollout if all opponents play on the GPU.

    Args:
        variant: the game.
        preset: how to train. Fields of a run (opponents, past selves, measures, checkpoints) are not used, and `steps` for
            schedules alone.
        opponents: at the other seats, as `dice_envs.TensorEnv` takes them.
        seed: fixes weights, games and all that is drawn. Global random streams stay as they are.
        device: PyTorch's.

    Attributes:
        env: the games.
        rollout: the last one.
        networks: "actor"; "critic", with a value of the position or, if it is central, of each action; where the preset has
            them, the actors "reference" and "average". Others are those of `ActorCritic`.
    """

    def __init__(self, variant: Variant, preset: Preset, opponents: Any, seed: int, device: str = "cpu") -> None:
        p, facts = preset, variant.facts
        self.env = TensorEnv(
            variant, p.num_envs, opponents, self_play=p.self_play, expected_rewards=p.expected_rewards, device=device
        )
        self.device = self.env.device
        self.env.reset(seed)
        weights, self._draw_seed = (derived_seeds(seed, purpose)[0] for purpose in ("weights", "draws"))
        drawn = torch.Generator().manual_seed(weights)
        with torch_threads(p.threads):
            self._actor = mlp([facts.observation_size, *p.hidden, facts.num_actions], drawn, 0.01, p.input_scale)
            if p.central_critic:
                self._critic = mlp([facts.num_seats * facts.observation_size, *p.hidden, facts.num_actions], drawn, 0.1)
            else:
                self._critic = mlp([facts.observation_size, *p.hidden, 1], drawn, 1.0, p.input_scale)
        self.networks = nn.ModuleDict({"actor": self._actor, "critic": self._critic}).to(self.device)
        learning = list(self.networks.parameters())
        self._hands = EveryHand(self.env, p.num_steps) if p.every_hand else None
        if self._hands:
            self.networks["hands"] = self._hands
        for name, wanted in (("reference", p.kl), ("average", p.average_rate)):
            if wanted:
                self.networks[name] = copy.deepcopy(self._actor).requires_grad_(False)
        actors = {"last": self._actor} | ({"averaged": self.networks["average"]} if p.average_rate else {})
        # A tensor, so that a CUDA graph sees its changes; so are the weights in the loss.
        self._rate = torch.tensor(p.learning_rate, device=self.device)
        self._on_gpu = self.device.type == "cuda"
        adam = torch.optim.Adam(learning, self._rate, eps=1e-5, fused=True, capturable=self._on_gpu)
        super().__init__(variant, preset, actors, self.networks, adam, self.env)
        self._weights = {name: torch.zeros((), device=self.device) for name in ("entropy", "kl", "proximal")}
        self._sums = torch.zeros(6, device=self.device)
        self._draws = torch.Generator(self.device)
        self.rollout = r = Rollout(variant, p, self.device)
        columns = (r.inputs, r.bias, r.anchor, r.actions, r.log_probs, r.advantages, r.returns, r.known, r.expected)
        self._decisions = [column.flatten(0, 1) for column in columns]  # of all games in one row
        self._rows = torch.arange(p.minibatch, device=self.device)  # of a minibatch; they keep their place, for CUDA graphs
        self._graphs: dict[str, Callable[[], Any]] = {}
        self._recording: Any = None

    def iterate(
        self, finished: Callable[[np.ndarray, np.ndarray], Any] | None = None, left: float | None = None
    ) -> dict[str, float]:
        """Play a rollout and learn from it.

        Args:
            finished: is given the games that ended: the learner's returns (k,) float64, and who had each seat (k, seats) int64,
                the opponent's number or `dice_envs.envs.learner.LEARNER`.
            left: the share of training that remains, which schedules follow; None: by the preset's steps.

        Returns:
            Means of losses over the updates, and this iteration's parameters, by name.
        """
        p, r = self.preset, self.rollout
        count, total = p.num_envs * p.num_steps, p.epochs * p.num_envs * p.num_steps // p.minibatch
        left = max(0.0, 1 - (self.steps + count) / p.steps) if left is None else left
        now = p.scheduled(left)
        for name, weight in self._weights.items():
            weight.fill_(now[name])
        if self._on_gpu:
            self._record()
        # Every iteration has a stream of its own, so a checkpoint need not hold one, and serves every device.
        self._draws.manual_seed(np.random.SeedSequence((self._draw_seed, self.steps)).generate_state(1, np.uint64).item())
        self._graphs.get("play", self._play)()
        self.env.check()
        if finished is not None:
            over = r.ended.nonzero(as_tuple=True)
            finished(r.gained[over].cpu().numpy(), r.players[over].cpu().numpy())
        self._sums.zero_()
        updates = 0
        for _ in range(p.epochs):
            for rows in torch.randperm(count, generator=self._draws, device=self.device).split(p.minibatch):
                # Without `settle` the last few minibatches add more noise than the rollout itself.
                self._rate.fill_(now["learning_rate"] * (1 - updates / total if p.settle else 1))
                self._rows.copy_(rows)
                self._graphs.get("step", self._step)()
                updates += 1
        self.steps += count
        self._follow()
        names = ("policy_loss", "entropy", "divergence", "approx_kl", "clip_fraction", "value_loss", "explained_variance")
        unexplained = (r.returns - r.values).var() / r.returns.var()
        means = torch.cat([self._sums / updates, 1 - unexplained[None]]).tolist()
        found = dict(zip(names, means, strict=True))
        return found | {f"{name}_weight": now[name] for name in self._weights} | {"learning_rate": now["learning_rate"]}

    def _log_policy(self, actor: Any, observations: Tensor, bias: Tensor) -> Tensor:
        """Log probabilities of all actions, (n, actions) float32."""
        return torch.log_softmax(actor(observations).add_(bias), dim=-1)

    def _draw(self, log_policy: Tensor) -> Tensor:
        """Draw an action from each row's probabilities, (n,) int64."""
        chances = exp(log_policy)
        if self.device.type == "cuda":  # the smallest of exponential waiting times; sums in parallel are not monotone there
            return (chances / torch.empty_like(chances).exponential_(generator=self._draws)).argmax(1)
        sums = chances.cumsum(1)  # on a CPU exponentials for all actions would take a tenth of the training
        # Slightly below 1: no product may round to the whole sum, beyond which there is no action.
        at = torch.rand(len(sums), 1, generator=self._draws).mul_(1 - 1e-6) * sums[:, -1:]
        return torch.searchsorted(sums, at, right=True)[:, 0]

    def _inputs(self) -> Tensor:
        """The networks' inputs now: the observation, or all seats', the seat to move first."""
        return self.env.state().flatten(1) if self.preset.central_critic else self.env.observations

    @torch.inference_mode()
    def _play(self) -> None:
        """Play a rollout, and judge it: values, advantages, and the probabilities that the policy shall stay close to."""
        r, env, hands = self.rollout, self.env, self._hands
        for t in range(self.preset.num_steps):
            r.inputs[t].copy_(self._inputs())
            if hands:
                hands.watch(t)
            r.bias[t].copy_(env.masks).sub_(1).mul_(-ILLEGAL)
            r.played[t].copy_(log_policy := self._log_policy(self._actor, env.observations, r.bias[t]))
            r.actions[t].copy_(self._draw(log_policy))
            r.seats[t].copy_(env.seats)
            done = env.step(r.actions[t])
            r.earned[t].copy_(done.earned)
            r.ended[t].copy_(done.ended)
            r.players[t].copy_(done.players)
            r.gained[t].copy_(done.returns.gather(1, r.seats[t].unsqueeze(1))[:, 0])
        taken = r.actions.unsqueeze(2)
        r.log_probs.copy_(r.played.gather(2, taken)[:, :, 0])
        bias = torch.empty_like(r.bias[0]).copy_(env.masks).sub_(1).mul_(-ILLEGAL)
        last, worth = self._critic(self._inputs()), self._in_parts(self._critic, r.inputs)
        if self.preset.central_critic:  # the policy's mean of the actions' values
            r.values.copy_((exp(r.played) * worth).sum(2))
            r.taken.copy_(worth.gather(2, taken)[:, :, 0])
            last = (exp(self._log_policy(self._actor, env.observations, bias)) * last).sum(1, keepdim=True)
            if hands:
                r.expected.copy_(hands.expected(r, functools.partial(self._log_policy, self._actor), self._critic))
        else:
            r.values.copy_(worth[:, :, 0])
            r.taken.copy_(r.values)
        facts, seats = self.variant.facts, env.seats.unsqueeze(1)
        opposed = self.preset.central_critic and facts.num_seats == 2 and facts.zero_sum
        known, ahead = env.out != 0, torch.zeros_like(r.earned[0])
        if opposed:
            known, ahead = torch.ones_like(known), ahead - last
        estimate_advantages(r, ahead.scatter(1, seats, last), known.scatter(1, seats, True), self.preset.gae_lambda, opposed)
        if self.preset.normalize:
            mean = (r.advantages * r.known).sum() / r.known.sum()
            variance = ((r.advantages - mean).square() * r.known).sum() / r.known.sum()
            r.advantages.sub_(mean).div_(variance.sqrt() + 1e-8).mul_(r.known)
        if self.preset.kl or self.preset.proximal:
            torch.mul(r.played, self._weights["proximal"], out=r.anchor)
        if self.preset.kl:
            size = self.variant.facts.observation_size
            logits = self._in_parts(self.networks["reference"], r.inputs[:, :, :size])
            r.anchor.add_(torch.log_softmax(logits.add_(r.bias), 2).mul_(self._weights["kl"]))

    def _in_parts(self, network: Any, inputs: Tensor) -> Tensor:
        """The network's outputs for a rollout's inputs, computed as many rows at a time as a minibatch has."""
        found = torch.cat([network(part) for part in inputs.flatten(0, 1).split(self.preset.minibatch)])
        return found.unflatten(0, inputs.shape[:2])

    def _step(self) -> None:
        """Learn from the minibatch `_rows` of the rollout's decisions, (minibatch,) int64: one step of the optimiser."""
        p, weights = self.preset, self._weights
        drawn = (column.index_select(0, self._rows) for column in self._decisions)
        inputs, bias, anchor, actions, log_probs, advantages, returns, known, expected = drawn
        log_policy = self._log_policy(self._actor, inputs[:, : self.variant.facts.observation_size], bias)
        policy, actions = exp(log_policy), actions.unsqueeze(1)
        minus_entropy = (policy * log_policy).sum(1)
        # kl · KL(policy ‖ reference) + proximal · KL(policy ‖ the policy that played)
        divergence = (weights["kl"] + weights["proximal"]) * minus_entropy
        if p.kl or p.proximal:
            divergence = divergence - (policy * anchor).sum(1)
        regulariser = weights["entropy"] * minus_entropy + divergence
        worth = self._critic(inputs)
        if p.central_critic:
            # The policy's mean of the actions' values is maximised, and PPO's clipped loss covers only the advantage of the
            # action taken beyond its value: the expected gradient is the same, with far less noise.
            error = (worth.gather(1, actions)[:, 0] - returns) * known
            advantages, worth = -error.detach(), worth.detach()
            gain: Any = (policy * (expected if p.every_hand else worth)).sum(1)
            if p.least_stake:
                stake = (worth + bias).amax(1) - (worth - bias).amin(1)
                regulariser = regulariser * (stake / 2).clamp(min=p.least_stake)
        else:
            error, gain = worth[:, 0] - returns, 0.0
        log_ratio = log_policy.gather(1, actions)[:, 0] - log_probs
        ratio = log_ratio.exp()
        # PPO's min(A · ratio, A · clip(ratio, 1 - ε, 1 + ε)): the clipped product is the smaller one only at A + ε |A|.
        gain = gain + torch.minimum(advantages * ratio, advantages + p.clip * advantages.abs())
        value_loss = error.square().mean()
        loss = (regulariser - gain).mean() + p.value_weight * value_loss
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self._parameters, MAX_GRAD_NORM)
        self.optimizer.step()
        with torch.no_grad():
            clipped, moved = ((ratio - 1).abs() > p.clip).float(), ratio - 1 - log_ratio
            self._sums += torch.stack([-gain, -minus_entropy, divergence, moved, clipped, error.square()]).mean(1)

    @torch.no_grad()
    def _follow(self) -> None:
        """Move the reference and the averaged policy towards the learner's."""
        p = self.preset
        # Of iteration t: the running mean in which iteration t has weight t, so the initial policy is soon forgotten.
        fading = 2 / (self.steps // (p.num_envs * p.num_steps) + 1)
        for name, rate in {"reference": p.reference_rate, "average": min(max(p.average_rate, fading), 1.0)}.items():
            if name in self.networks:
                for following, parameter in zip(self.networks[name].parameters(), self._actor.parameters(), strict=True):
                    following.lerp_(parameter, rate)

    def _record(self) -> None:
        """Record rollout and update as CUDA graphs: launching hundreds of small kernels takes longer than they run.

        The rollout's graph holds its opponents, so it is recorded anew when they change, and not at all if they cannot be held.
        """
        recording = self.env.recording
        if self._graphs and recording == self._recording:
            return
        kept, precision = self.state(), torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("high")  # TF32: factors of ten bits, a seventh faster
        try:
            self._graphs.pop("play", None)
            self._play()
            if recording is not None:
                self._graphs["play"] = captured(self._play, self._draws)
            if "step" not in self._graphs:
                self._graphs["step"] = captured(self._step, self._draws)
        finally:
            torch.set_float32_matmul_precision(precision)
        self.restore(kept)
        self._recording = recording


def exp(x: Tensor) -> Tensor:
    """e to the x. Where MKL computes PyTorch's own, results of 0 take ten times as long, and illegal actions have these."""
    return (x * math.log2(math.e)).exp2()


def captured(work: Callable[[], Any], draws: torch.Generator) -> Callable[[], Any]:
    """Record a function's work on the GPU, with its random stream; return a function that does it again."""
    current, aside = torch.cuda.current_stream(), torch.cuda.Stream()
    aside.wait_stream(current)
    with torch.cuda.stream(aside):
        for _ in range(3):  # libraries get ready outside of the graph
            work()
    current.wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    graph.register_generator_state(draws)
    with torch.cuda.graph(graph):
        work()
    return graph.replay
