"""OpenSpiel's algorithms, as its authors ship them.

They learn on OpenSpiel's own Liar's Dice where it is the same game, because that is compiled, else on `openspiel_game`. Their
settings are the published ones for Liar's Dice where there are any: M. Rudolph et al., Reevaluating Policy Gradient Methods for
Imperfect-Information Games (2025), `best_hyperparameters` of their repository, for the lowest exploitability; else OpenSpiel's.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dice_envs import Mixture
from dice_envs.agent import Turn, draw_actions
from dice_envs.core.game import Variant, configure
from dice_envs.core.machine import needs
from dice_envs.envs.openspiel import openspiel_game
from dice_envs.experiments.learners import DECISIONS, reseed

with needs("learners", "benchmark learners"):
    import pyspiel
    import torch
    from open_spiel.python import policy as policies
    from open_spiel.python import rl_environment
    from open_spiel.python.algorithms import mmd_dilated
    from open_spiel.python.pytorch import deep_cfr, escher, nfsp, policy_gradient
    from torch import nn

ITERATIONS, STATES = "iterations", "states"

# --- games and policies -----------------------------------------------------------------------------------------------


def game_of(variant: Variant) -> Any:
    """Return the game as OpenSpiel plays it. An information state is an observation if the game is not OpenSpiel's own."""
    options = variant.options
    if variant.game.name == "liars_dice":
        own = configure("liars_dice", rules="openspiel", num_dice=options.num_dice, num_faces=options.num_faces)
        if variant.same_rules(own):
            return pyspiel.load_game(f"liars_dice(players=2,numdice={options.num_dice},dice_sides={options.num_faces})")
    return openspiel_game(variant, chance="sampled", perfect_recall=False)


def is_own(game: Any) -> bool:
    """Return whether a game is OpenSpiel's own Liar's Dice."""
    return bool(game.get_type().short_name == "liars_dice")


def _dice(turn: Turn, game: Any) -> np.ndarray:
    """Return the faces of the dice of those to move, from 0 on and in order, (n, dice) int64."""
    dice, faces = (game.get_parameters()[name] for name in ("numdice", "dice_sides"))
    up_to = turn.states["counts"][np.arange(len(turn)), turn.seats, :faces].cumsum(axis=1)
    return (up_to[:, :, None] <= np.arange(dice)).sum(axis=1)


def tensors_of(turn: Turn, game: Any) -> np.ndarray:
    """Return the information states of those to move as OpenSpiel's tensors, (n, size) float32."""
    seats = np.eye(2, dtype=np.float32)[turn.seats]
    if not is_own(game):
        return np.concatenate([seats, turn.observations], axis=1)
    dice = np.eye(game.get_parameters()["dice_sides"], dtype=np.float32)[_dice(turn, game)].reshape(len(turn), -1)
    made = np.arange(turn.states["bids"].shape[1]) < turn.states["num_bids"][:, None]
    bids = np.zeros((len(turn), game.num_distinct_actions()), np.float32)
    row, place = np.nonzero(made)
    bids[row, turn.states["bids"][row, place]] = 1
    return np.concatenate([seats, dice, bids], axis=1)


class SeatNetworks:
    """A network of information states for each seat as an agent: logits, whose softmax is over the legal actions."""

    def __init__(self, game: Any, networks: Sequence[Callable[[torch.Tensor], torch.Tensor]]) -> None:
        self.game, self.networks = game, networks

    def act(self, turn: Turn) -> np.ndarray:
        return draw_actions(turn.streams, self.probabilities(turn))

    def probabilities(self, turn: Turn) -> np.ndarray:
        seen = torch.from_numpy(tensors_of(turn, self.game))
        chances = np.empty((len(turn), self.game.num_distinct_actions()))
        with torch.no_grad():
            for seat, network in enumerate(self.networks):
                mine = np.flatnonzero(turn.seats == seat)
                logits = network(seen[mine]).masked_fill(torch.from_numpy(turn.legal[mine] == 0), -torch.inf)
                chances[mine] = logits.softmax(dim=1).double().numpy()
        return chances / chances.sum(axis=1, keepdims=True)


class StatePolicy:
    """A policy of OpenSpiel's own Liar's Dice as an agent: it is asked for the chances of each action in each state."""

    def __init__(self, game: Any, ask: Callable[[Any], Mapping[int, float]]) -> None:
        self.game, self.ask = game, ask

    def act(self, turn: Turn) -> np.ndarray:
        return draw_actions(turn.streams, self.probabilities(turn))

    def probabilities(self, turn: Turn) -> np.ndarray:
        chances = np.zeros((len(turn), self.game.num_distinct_actions()))
        others = [0] * self.game.get_parameters()["numdice"]  # no information state depends on them
        for row, (own, seat, state) in enumerate(zip(_dice(turn, self.game).tolist(), turn.seats, turn.states, strict=True)):
            at = self.game.new_initial_state()
            for action in (*(own if seat == 0 else others), *(own if seat == 1 else others)):
                at.apply_action(action)
            for action in state["bids"][: state["num_bids"]].tolist():
                at.apply_action(action)
            for action, chance in self.ask(at).items():
                chances[row, action] = chance
        return chances


def explicit(variant: Variant) -> Any:
    """Return the game for algorithms that walk all of it. ValueError unless it is OpenSpiel's own."""
    game = game_of(variant)
    if not is_own(game):
        raise ValueError(f"this algorithm walks the whole game; it learns OpenSpiel's own Liar's Dice, not {variant}")
    return game


# --- learners by playing ------------------------------------------------------------------------------------------------


class _ByPlaying:
    """Agents of `rl_environment`, one for each seat, that learn from games with each other."""

    unit = DECISIONS

    def __init__(self, variant: Variant, seed: int, steps: int, make: Callable[[int, int, int], Any]) -> None:
        self.game = game_of(variant)
        self.env = rl_environment.Environment(self.game)
        size, actions = self.env.observation_spec()["info_state"][0], self.env.action_spec()["num_actions"]
        self.agents = [make(seat, size, actions) for seat in range(self.game.num_players())]
        reseed(seed)
        self.env.seed(seed % 2**32)

    def train(self, steps: int) -> int:
        taken = 0
        while taken < steps:
            step = self.env.reset()
            while not step.last():
                step = self.env.step([self.agents[step.observations["current_player"]].step(step).action])
                taken += 1
            for agent in self.agents:
                agent.step(step)
        return taken

    def network(self, agent: Any) -> nn.Module:
        """Return the network of an agent's policy, which gives logits."""
        raise NotImplementedError

    def policy(self) -> SeatNetworks:
        return SeatNetworks(self.game, [self.network(agent) for agent in self.agents])


class NFSP(_ByPlaying):
    """Neural fictitious self-play, with the published settings. Its policy is the average one.

    Both networks take the average one's batch size: OpenSpiel's class has one for both.
    """

    def __init__(self, variant: Variant, seed: int, steps: int) -> None:
        inner = {
            "replay_buffer_capacity": 500_000, "update_target_network_every": 4000, "epsilon_start": 0.03, "epsilon_end": 0.001,
            "epsilon_decay_duration": 40_000_000,
        }  # fmt: skip

        def make(seat: int, size: int, actions: int) -> nfsp.NFSP:
            return nfsp.NFSP(
                seat, size, actions, [512] * 3, 500_000, 0.1**0.5, batch_size=16, rl_learning_rate=0.01,
                sl_learning_rate=0.00125, min_buffer_size_to_learn=125, learn_every=128, optimizer_str="adam",
                seed=seed % 2**31, **inner,
            )  # fmt: skip

        super().__init__(variant, seed, steps, make)
        for agent in self.agents:  # its value networks have the same seed in every run
            inside = agent._rl_agent
            _redraw(inside._q_network)
            inside._target_q_network.load_state_dict(inside._q_network.state_dict())

    def network(self, agent: Any) -> nn.Module:
        return agent._avg_network


class RPG(_ByPlaying):
    """Regret policy gradient, with OpenSpiel's settings."""

    loss = "rpg"

    def __init__(self, variant: Variant, seed: int, steps: int) -> None:
        super().__init__(variant, seed, steps, lambda *sizes: policy_gradient.PolicyGradient(*sizes, loss_str=self.loss))

    def network(self, agent: Any) -> nn.Module:
        return agent.policy_logits_network


class QPG(RPG):
    """Q-based policy gradient, with OpenSpiel's settings."""

    loss = "qpg"


class NeuRD(RPG):
    """Neural replicator dynamics, as OpenSpiel's policy gradient, with its settings: its solver fails in version 2.0.2."""

    loss = "neurd"


def _redraw(*networks: nn.Module) -> None:
    """Draw a network's weights anew: with one seed of its own, it has the same in every run."""
    for network in networks:
        for part in network.modules():
            reset = getattr(part, "reset_parameters", None)
            if callable(reset):
                reset()


# --- learners by walks of the game -------------------------------------------------------------------------------------


class DeepCFR:
    """Deep counterfactual regret minimisation, with the settings of OpenSpiel's example."""

    unit = ITERATIONS

    def __init__(self, variant: Variant, seed: int, steps: int) -> None:
        self.game = explicit(variant)
        self.solver = deep_cfr.DeepCFRSolver(
            self.game, (64,), (64,), num_iterations=1, num_traversals=375, learning_rate=1e-3, batch_size_advantage=256,
            batch_size_strategy=256, memory_capacity=100_000, policy_network_train_steps=2500,
            advantage_network_train_steps=375, seed=seed % 2**31,
        )  # fmt: skip
        reseed(seed)

    def train(self, steps: int) -> int:
        self.solver.solve()
        return 1

    def policy(self) -> SeatNetworks:
        # Its last layer is a softmax over all actions: the logarithm gives it back over the legal ones.
        return SeatNetworks(self.game, [lambda seen: self.solver._policy_network(seen).clamp_min(1e-30).log()] * 2)


class ESCHER:
    """ESCHER, with OpenSpiel's settings: an iteration with the published ones takes an hour of a core."""

    unit = STATES

    def __init__(self, variant: Variant, seed: int, steps: int) -> None:
        self.game = explicit(variant)
        self.agent = escher.Agent(self.game, escher.Config())
        self.config = escher.TrainConfig(self.game)
        self.config.iterations = self.config.games_vs_random = 1
        reseed(seed)
        _redraw(self.agent.avg_policy_net, *self.agent.regret_nets, *self.agent.value_nets)

    def train(self, steps: int) -> int:
        before = self.agent.num_touched
        escher.train(self.config, self.agent)
        return int(self.agent.num_touched - before)

    def policy(self) -> SeatNetworks:
        return SeatNetworks(self.game, [self.agent.avg_policy_net] * 2)


class CFRPlus:
    """CFR+, compiled. Its policy is the average."""

    unit = ITERATIONS

    def __init__(self, variant: Variant, seed: int, steps: int) -> None:
        self.game = explicit(variant)
        self.solver = self.make(seed)

    def make(self, seed: int) -> Any:
        return pyspiel.CFRPlusSolver(self.game)

    def advance(self) -> None:
        self.solver.evaluate_and_update_policy()

    def train(self, steps: int) -> int:
        for _ in range(steps):
            self.advance()
        return steps

    def policy(self) -> StatePolicy:
        return StatePolicy(self.game, self.solver.average_policy().action_probabilities)


class ExternalMCCFR(CFRPlus):
    """Monte Carlo CFR with external sampling, compiled."""

    def make(self, seed: int) -> Any:
        return pyspiel.ExternalSamplingMCCFRSolver(self.game, seed=seed % 2**31)

    def advance(self) -> None:
        self.solver.run_iteration()


class OutcomeMCCFR(ExternalMCCFR):
    """Monte Carlo CFR with outcome sampling, compiled."""

    def make(self, seed: int) -> Any:
        return pyspiel.OutcomeSamplingMCCFRSolver(self.game, seed=seed % 2**31)


class MMD:
    """Mirror descent with dilated entropy over the sequence form, as in OpenSpiel's example. Its policy is the average."""

    unit = ITERATIONS

    def __init__(self, variant: Variant, seed: int, steps: int) -> None:
        self.game = explicit(variant)
        self.solver = mmd_dilated.MMDDilatedEnt(self.game, alpha=0, stepsize=1)

    def train(self, steps: int) -> int:
        for _ in range(steps):
            self.solver.update_sequences()
        return steps

    def policy(self) -> StatePolicy:
        return StatePolicy(self.game, self.solver.get_avg_policies().action_probabilities)


class PSRO:
    """Policy-space response oracles with OpenSpiel's exact best responses: learned ones need JAX. Its policy is a mixture."""

    unit = ITERATIONS

    def __init__(self, variant: Variant, seed: int, steps: int, games: int = 250) -> None:
        with needs("learners", "psro"):
            from open_spiel.python.algorithms.psro_v2 import best_response_oracle, psro_v2

        self.game = explicit(variant)
        oracle = best_response_oracle.BestResponseOracle(best_response_backend="cpp", game=self.game)
        uniform = policies.UniformRandomPolicy(self.game)
        with contextlib.redirect_stdout(io.StringIO()):
            self.solver = psro_v2.PSROSolver(
                self.game, oracle, games, [uniform, uniform], training_strategy_selector="probabilistic",
                meta_strategy_method="nash",
            )  # fmt: skip

    def train(self, steps: int) -> int:
        with contextlib.redirect_stdout(io.StringIO()):
            self.solver.iteration()
        return 1

    def policy(self) -> list[Mixture]:
        agents = [[StatePolicy(self.game, each.action_probabilities) for each in own] for own in self.solver.get_policies()]
        return [Mixture(*own) for own in zip(agents, self.solver.get_meta_strategies(), strict=True)]
