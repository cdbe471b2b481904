"""Players of The Shakes: bandit policies, the dice argument as one of them, and Bayes-optimal play.

Every policy here gives each treatment's probability, from the tally: patients treated and saved. Only Bayes-optimal play
also uses efficacies, where they are open. A physician draws from these probabilities p. Maester i argues with probability
p_i / max(p). The maester of the most likely treatment therefore always argues; if one treatment has all the probability,
only its maester does. Dice then decide among those who argue.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Annotated, Literal

import numpy as np

from dice_envs.agent import KernelAgent, Turn, draw_actions
from dice_envs.agent.kernel import NO_OPTIONS, AgentKernel
from dice_envs.core.dice import below, next_u64, uniform
from dice_envs.core.game import Variant
from dice_envs.core.kernel import kernel
from dice_envs.core.options import Range
from dice_envs.games.shakes import ARGUE, YIELD, Options, argue_all, must_argue
from dice_envs.games.shakes.exact.chances import (
    TIE,
    Problem,
    argument_chances,
    best_of,
    beta_chances,
    efficacy_chances,
    success_chances,
)
from dice_envs.games.shakes.exact.policies import OptimalPlay, TallyPromises, check_needs, solve

from .base import Checked, Deterministic, OfOneGame, fair_kernel

_ARGUES = np.int64(ARGUE)


@kernel(allocates=False)
def _choose_by_argument(params, options, state, stream):
    """Return the treatment that wins when all argue. `state` is a sample, so dice may be thrown in it."""
    state["rng"] = next_u64(stream)
    return np.int64(argue_all(params, state))


@kernel(allocates=False)
def _choose_to_argue(params, options, state, stream):
    return _ARGUES


@kernel(allocates=False)
def _choose_by_sample(params, options, state, stream):
    """Draw a Beta(saved + 1, failed + 1) variable for each treatment; return the treatment of the highest."""
    highest = -1.0
    best = np.int64(0)
    for one in range(params.num_players):
        good = 0.0  # a gamma variable with a whole shape is a sum of exponential ones
        bad = 0.0
        for k in range(state["treated"][one] + 2):
            wait = -np.log(1.0 - uniform(stream))
            if k <= state["saved"][one]:
                good += wait
            else:
                bad += wait
        if good > highest * (good + bad):
            highest = good / (good + bad)
            best = np.int64(one)
    return best


@kernel(allocates=False)
def _success(options, treated, saved, patients):
    """Return the probability that the next patient is saved, with a Beta(1, 1) prior."""
    return (saved + 1.0) / (treated + 2.0)


@kernel(allocates=False)
def _bound(options, treated, saved, patients):
    """Return a treatment's upper confidence bound, given all patients so far; infinite for one not tried yet."""
    if treated == 0:
        return np.inf
    return saved / treated + math.sqrt(options["exploration"] * np.log(patients) / treated)


def _by_score(score: Callable[..., float]) -> tuple[Callable[..., int], Callable[..., None]]:
    """Return the kernels of a policy that takes the highest score, ties at random: one chooses, one scores many tallies."""
    compiled = functools.partial(kernel, allocates=False)

    @compiled
    def score_at(options, state, one):
        return score(options, np.int64(state["treated"][one]), np.int64(state["saved"][one]), np.int64(state["patients"]))

    @compiled
    def choose(params, options, state, stream):
        best = -np.inf
        for one in range(params.num_players):
            best = max(best, score_at(options, state, one))
        if not params.physician:  # a maester argues if its own treatment is among the best
            among = score_at(options, state, np.int64(state["seat"])) >= best - TIE
            return _ARGUES if among or must_argue(params, state) else np.int64(YIELD)
        equal = 0
        for one in range(params.num_players):
            equal += score_at(options, state, one) >= best - TIE
        left = below(stream, equal)
        for one in range(params.num_players):
            if score_at(options, state, one) >= best - TIE:
                if left == 0:
                    return np.int64(one)
                left -= 1
        return np.int64(-1)  # never: one of them was drawn

    @compiled
    def score_all(options, treated, saved, out):
        for i in range(len(out)):
            patients = np.int64(0)
            for one in range(out.shape[1]):
                patients += treated[i, one]
            for one in range(out.shape[1]):
                out[i, one] = score(options[0], np.int64(treated[i, one]), np.int64(saved[i, one]), patients)

    return choose, score_all


_choose_by_success, _score_success = _by_score(_success)
_choose_by_bound, _score_bounds = _by_score(_bound)
_EXPLORATION = np.dtype([("exploration", np.float64)])


class TallyPolicy(Checked, OfOneGame, KernelAgent):
    """A policy that depends on the tally only: patients treated and saved with each treatment."""

    plays = "shakes"
    promises = TallyPromises()

    def chances(self, options: Options, treated: np.ndarray, saved: np.ndarray) -> np.ndarray:
        """Return each treatment's probability, (m, n) float64, given patients treated and saved, (m, n) whole numbers.

        Permuting the treatments permutes the result, so `dice_envs.games.shakes.exact.policies.evaluate` may merge tallies.
        """
        raise NotImplementedError

    def _chances_at(self, options: Options, states: np.ndarray) -> np.ndarray:
        """Return each treatment's probability in each state, (m, n) float64."""
        n = options.num_players
        return self.chances(options, states["treated"][:, :n], states["saved"][:, :n])

    def probabilities(self, turn: Turn) -> np.ndarray:
        self.check_variant(turn.variant)
        options = turn.variant.options
        chances = self._chances_at(options, turn.states)
        if options.mode == "physician":
            return chances
        argues = np.take_along_axis(chances, turn.seats[:, None], axis=1) / chances.max(axis=1, keepdims=True)
        argues[turn.legal.sum(axis=1) == 1] = 1.0
        return np.hstack([1.0 - argues, argues])

    def kernel(self, variant: Variant) -> AgentKernel | None:
        """Return the kernel; None: actions are drawn from `probabilities`."""
        return None

    def act(self, turn: Turn) -> np.ndarray:
        self.check_variant(turn.variant)
        if self.kernel(turn.variant) is None:
            return draw_actions(turn.streams, self.probabilities(turn))
        return super().act(turn)


@dataclasses.dataclass(frozen=True)
class Greedy(TallyPolicy):
    """Chooses the treatment most likely to save the next patient; ties at random. Never explores on purpose.

    Attributes:
        posterior: "beta": each treatment's probability is (saved + 1) / (treated + 2), whatever the others did;
            "permutations": the probability given that the efficacies are the known ones in an unknown order.
    """

    posterior: Literal["beta", "permutations"] = "beta"

    def _independent(self, options: Options) -> bool:
        """Whether each treatment is judged by itself, as always in the competitive variation: all efficacies are equal."""
        return self.posterior == "beta" or options.competitive

    def kernel(self, variant: Variant) -> AgentKernel | None:
        return fair_kernel(_choose_by_success) if self._independent(variant.options) else None

    def chances(self, options: Options, treated: np.ndarray, saved: np.ndarray) -> np.ndarray:
        if self._independent(options):
            scores = np.empty(treated.shape)
            _score_success(NO_OPTIONS[None], treated, saved, scores)
            return best_of(scores)
        return best_of(success_chances(Problem.of(options), treated, saved))


@dataclasses.dataclass(frozen=True)
class UCB(TallyPolicy):
    """Tries each treatment once, then chooses the highest upper confidence bound; ties at random.

    The bound is saved / treated + sqrt(exploration * ln(all patients) / treated): UCB1 of Auer, Cesa-Bianchi and
    Fischer, "Finite-time Analysis of the Multiarmed Bandit Problem", Machine Learning 47 (2002), where exploration is 2.

    Attributes:
        exploration: the weight of the confidence term, 0 or more.
    """

    exploration: Annotated[float, Range(0, 1e6)] = 2.0

    @property
    def _options(self) -> np.ndarray:
        return np.array((self.exploration,), _EXPLORATION)

    def kernel(self, variant: Variant) -> AgentKernel:
        return fair_kernel(_choose_by_bound, self._options)

    def chances(self, options: Options, treated: np.ndarray, saved: np.ndarray) -> np.ndarray:
        scores = np.empty(treated.shape)
        _score_bounds(self._options[None], treated, saved, scores)
        return best_of(scores)


@dataclasses.dataclass(frozen=True)
class Thompson(TallyPolicy):
    """Chooses each treatment with the probability that it is the best (Thompson, Biometrika 25, 1933).

    Attributes:
        posterior: the model behind this probability. "beta": independent efficacies, each distributed as
            Beta(saved + 1, failed + 1); "permutations": the known efficacies in an unknown order.
    """

    posterior: Literal["beta", "permutations"] = "beta"

    def chances(self, options: Options, treated: np.ndarray, saved: np.ndarray) -> np.ndarray:
        if self.posterior == "beta":
            return beta_chances(treated, saved)
        if options.competitive:
            return np.full(treated.shape, 1 / treated.shape[1])
        best = efficacy_chances(Problem.of(options), treated, saved)[:, :, 0]
        return best / best.sum(axis=1, keepdims=True)

    def kernel(self, variant: Variant) -> AgentKernel | None:
        """See `TallyPolicy`. A physician samples efficacies from the posterior and takes the best treatment."""
        physician = variant.options.mode == "physician"
        return fair_kernel(_choose_by_sample) if physician and self.posterior == "beta" else None

    def act(self, turn: Turn) -> np.ndarray:
        self.check_variant(turn.variant)
        options = turn.variant.options
        if options.mode == "physician" and self.posterior == "permutations" and not options.open_efficacies:
            return turn.states["efficacy"].argmax(axis=1)  # the states' hidden efficacies are a sample from the posterior
        return super().act(turn)


@dataclasses.dataclass(frozen=True)
class Argument(TallyPolicy):
    """The game's own rule as a policy: all maesters argue with dice, and the winner's treatment is chosen.

    Tied maesters throw again, or ties are broken at random, as the game's option `ties` says. With mode=maesters every
    maester always argues.
    """

    def chances(self, options: Options, treated: np.ndarray, saved: np.ndarray) -> np.ndarray:
        return argument_chances(treated, saved, options.ties)

    def probabilities(self, turn: Turn) -> np.ndarray:
        self.check_variant(turn.variant)
        if turn.variant.options.mode == "maesters":
            return Dogmatic().probabilities(turn)
        return super().probabilities(turn)

    def kernel(self, variant: Variant) -> AgentKernel:
        """See `TallyPolicy`. A physician throws the dice."""
        if variant.options.mode == "maesters":
            return Dogmatic().kernel(variant)
        return AgentKernel(_choose_by_argument, always_legal=True)


@dataclasses.dataclass(frozen=True)
class Dogmatic(OfOneGame, KernelAgent, Deterministic):
    """A maester that always argues, as in the rules. Plays mode=maesters only."""

    plays = "shakes"
    promises = TallyPromises()

    def check_variant(self, variant: Variant) -> None:
        """Raise ValueError for another game, or another mode than maesters."""
        super().check_variant(variant)
        if variant.options.mode != "maesters":
            raise ValueError(
                f"dogmatic is a maester and plays mode=maesters only, not mode={variant.options.mode}; "
                "argument is a physician that decides as dogmatic maesters do"
            )

    def kernel(self, variant: Variant) -> AgentKernel:
        return fair_kernel(_choose_to_argue)


@dataclasses.dataclass(frozen=True)
class Bayes(TallyPolicy):
    """Bayes-optimal in the cooperative variation: no policy without knowledge of the efficacies does better on average.

    Open efficacies: chooses the most effective treatment. Hidden ones: the game is solved exactly on first use, within
    seconds. Equally good treatments are equally likely. With mode=maesters, maesters with an optimal treatment argue and the
    others yield, so the team is optimal too.

    Attributes:
        goal: "saved": the expected number of patients saved; "win": the probability that the team wins; None: what the
            game rewards.
    """

    goal: Literal["saved", "win"] | None = None

    def check_variant(self, variant: Variant) -> None:
        """Raise ValueError for the competitive variation, or a game too large to solve. Solves the game."""
        super().check_variant(variant)
        if not variant.options.open_efficacies:
            self._solution(variant.options)

    @functools.cached_property
    def promises(self) -> TallyPromises:  # type: ignore[override]
        """It looks at the tally, and at efficacies that are open."""
        return TallyPromises(reads_efficacies=True, needs=self._needs)

    def _needs(self, variant: Variant, positions: int) -> None:
        super().check_variant(variant)
        check_needs(variant)

    def _solution(self, options: Options) -> OptimalPlay:
        return solve(Problem.of(options), self.goal or options.pays)  # type: ignore[arg-type]

    def chances(self, options: Options, treated: np.ndarray, saved: np.ndarray) -> np.ndarray:
        """See `TallyPolicy`. ValueError where efficacies are open: choices then depend on them."""
        if options.open_efficacies:
            raise ValueError("open_efficacies must be false for choices by the tally alone: bayes uses open ones")
        return self._solution(options).chances(treated, saved)

    def _chances_at(self, options: Options, states: np.ndarray) -> np.ndarray:
        if options.open_efficacies:
            return best_of(states["efficacy"][:, : options.num_players].astype(np.float64))
        return super()._chances_at(options, states)


LEVELS = {"beginner": "random", "sensible maester": "argument"}
AGENTS = {"argument": Argument, "bayes": Bayes, "dogmatic": Dogmatic, "greedy": Greedy, "thompson": Thompson, "ucb": UCB}
ALIASES = {"heuristic": "greedy"}
