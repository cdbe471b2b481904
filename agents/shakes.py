"""Players of The Shakes: bandit policies, the dice argument as one of them, and Bayes-optimal play.

Every policy here says how likely it is to choose each treatment, given patients treated and saved. A physician draws
from these probabilities p. Maester i argues with probability p_i / max(p). The maester of the most likely treatment
therefore always argues; if one treatment has all the probability, only its maester does. Dice then decide among those
who argue.
"""

from __future__ import annotations

import dataclasses
from typing import Literal

import numpy as np

from dice_envs.agent import Turn, draw_actions
from dice_envs.dice import uniform
from dice_envs.exact.shakes import (
    Problem,
    Solution,
    argument_chances,
    best_of,
    beta_chances,
    efficacy_chances,
    solve,
    success_chances,
)
from dice_envs.game import Variant, check_choice, check_range
from dice_envs.games.shakes import ARGUE, Options, argue_all
from dice_envs.kernel import kernel

from .base import Deterministic, OfOneGame

__all__ = ["AGENTS", "UCB", "Argument", "Bayes", "Dogmatic", "Greedy", "TallyPolicy", "Thompson"]


@kernel
def _argue_all(params, states, out):
    for i in range(len(states)):
        out[i] = argue_all(params, states[i])


@kernel
def _sample_highest(params, states, out):
    """Sample each treatment's Beta(saved + 1, failed + 1) variable and write whose is highest. Both modified in place."""
    for i in range(len(states)):
        highest = -1.0
        for one in range(params.num_players):
            good = 0.0  # a gamma variable with a whole shape is a sum of exponential ones
            bad = 0.0
            for k in range(states[i]["treated"][one] + 2):
                wait = -np.log(1.0 - uniform(states[i]))
                if k <= states[i]["saved"][one]:
                    good += wait
                else:
                    bad += wait
            if good > highest * (good + bad):
                highest = good / (good + bad)
                out[i] = one


class TallyPolicy(OfOneGame):
    """A policy that looks at the tally only: patients treated and saved with each treatment."""

    plays = "shakes"
    tally_alone = True  # see `dice_envs.exact.shakes.measure`

    def chances(self, options: Options, treated: np.ndarray, saved: np.ndarray) -> np.ndarray:
        """How likely each treatment is chosen, (m, n) float64, from patients treated and saved, (m, n) whole numbers.

        Treatments that change places take their chances with them, so `dice_envs.exact.shakes.evaluate` may merge tallies.
        """
        raise NotImplementedError

    def probabilities(self, turn: Turn) -> np.ndarray:
        """The chance of each action, (n, num_actions) float64."""
        self.check(turn)
        options = turn.variant.options
        n = options.num_players
        states = turn.states
        chances = self.chances(options, states["treated"][:, :n], states["saved"][:, :n])
        if options.mode == "physician":
            return chances
        argues = np.take_along_axis(chances, turn.seats[:, None], axis=1) / chances.max(axis=1, keepdims=True)
        argues[turn.legal.sum(axis=1) == 1] = 1.0
        return np.hstack([1.0 - argues, argues])

    def act(self, turn: Turn) -> np.ndarray:
        """One legal action for each game, (n,) int64."""
        return draw_actions(turn.streams, self.probabilities(turn))


@dataclasses.dataclass(frozen=True)
class Greedy(TallyPolicy):
    """Chooses the treatment most likely to save the next patient; ties at random. Never explores on purpose.

    Attributes:
        posterior: "beta": each treatment's chance is (saved + 1) / (treated + 2), whatever the others did;
            "permutations": the chance given that the efficacies are the known ones in an unknown order.
    """

    posterior: Literal["beta", "permutations"] = "beta"

    def __post_init__(self) -> None:
        check_choice("posterior", self.posterior, ("beta", "permutations"))

    def chances(self, options: Options, treated: np.ndarray, saved: np.ndarray) -> np.ndarray:
        """See `TallyPolicy`."""
        if self.posterior == "beta" or options.competitive:  # equal efficacies: nothing is known of their order
            return best_of((saved + 1.0) / (treated + 2.0))
        return best_of(success_chances(Problem.of(options), treated, saved))


@dataclasses.dataclass(frozen=True)
class UCB(TallyPolicy):
    """Tries each treatment once, then chooses the highest upper confidence bound; ties at random.

    The bound is saved / treated + sqrt(exploration * ln(all patients) / treated): UCB1 of Auer, Cesa-Bianchi and
    Fischer, "Finite-time Analysis of the Multiarmed Bandit Problem", Machine Learning 47 (2002), where exploration is 2.

    Attributes:
        exploration: the weight of the confidence term, 0 or more.
    """

    exploration: float = 2.0

    def __post_init__(self) -> None:
        check_range("exploration", self.exploration, 0, 1e6, whole=False)

    def chances(self, options: Options, treated: np.ndarray, saved: np.ndarray) -> np.ndarray:
        """See `TallyPolicy`."""
        tried = np.maximum(treated, 1)
        patients = np.maximum(treated.sum(axis=1, keepdims=True), 1)
        bounds = saved / tried + np.sqrt(self.exploration * np.log(patients) / tried)
        return best_of(np.where(treated == 0, np.inf, bounds))


@dataclasses.dataclass(frozen=True)
class Thompson(TallyPolicy):
    """Chooses each treatment with the chance that it is the best (Thompson, Biometrika 25, 1933).

    Attributes:
        posterior: the model behind that chance. "beta": independent treatments, each with a Beta(saved + 1, failed + 1)
            chance to save; "permutations": the known efficacies in an unknown order.
    """

    posterior: Literal["beta", "permutations"] = "beta"

    def __post_init__(self) -> None:
        check_choice("posterior", self.posterior, ("beta", "permutations"))

    def chances(self, options: Options, treated: np.ndarray, saved: np.ndarray) -> np.ndarray:
        """See `TallyPolicy`."""
        if self.posterior == "beta":
            return beta_chances(treated, saved)
        if options.competitive:
            return np.full(treated.shape, 1 / treated.shape[1])
        best = efficacy_chances(Problem.of(options), treated, saved)[:, :, 0]
        return best / best.sum(axis=1, keepdims=True)

    def act(self, turn: Turn) -> np.ndarray:
        """One legal action for each game, (n,) int64. A physician samples a world from the posterior and acts on it."""
        self.check(turn)
        if turn.variant.options.mode != "physician":
            return super().act(turn)
        if self.posterior == "permutations":  # the states' hidden efficacies are such a sample already
            return turn.states["efficacy"].argmax(axis=1)
        out = np.empty(len(turn), np.int64)
        _sample_highest(turn.params, turn.states, out)
        return out


@dataclasses.dataclass(frozen=True)
class Argument(TallyPolicy):
    """The game's own rule as a policy: every maester argues with dice, and the winner's treatment is chosen.

    Tied maesters throw again, or a tie is broken at random, as the game's option `ties` says. With mode=maesters every
    maester always argues.
    """

    def chances(self, options: Options, treated: np.ndarray, saved: np.ndarray) -> np.ndarray:
        """See `TallyPolicy`."""
        return argument_chances(treated, saved, options.ties)

    def probabilities(self, turn: Turn) -> np.ndarray:
        """The chance of each action, (n, num_actions) float64."""
        self.check(turn)
        if turn.variant.options.mode == "maesters":
            return Dogmatic().probabilities(turn)
        return super().probabilities(turn)

    def act(self, turn: Turn) -> np.ndarray:
        """One legal action for each game, (n,) int64. A physician throws the dice."""
        self.check(turn)
        if turn.variant.options.mode == "maesters":
            return Dogmatic().act(turn)
        out = np.empty(len(turn), np.int64)
        _argue_all(turn.params, turn.states, out)
        return out


@dataclasses.dataclass(frozen=True)
class Dogmatic(OfOneGame, Deterministic):
    """The maester of the rules: always argues. Plays mode=maesters only."""

    plays = "shakes"
    tally_alone = True

    def check_variant(self, variant: Variant) -> None:
        """Raise ValueError for what is no game of maesters."""
        super().check_variant(variant)
        if variant.options.mode != "maesters":
            raise ValueError(
                f"dogmatic is a maester and plays mode=maesters only, not mode={variant.options.mode}; "
                f"a physician who decides as dogmatic maesters do is argument"
            )

    def act(self, turn: Turn) -> np.ndarray:
        """One legal action for each game, (n,) int64."""
        self.check(turn)
        return np.full(len(turn), ARGUE, np.int64)


@dataclasses.dataclass(frozen=True)
class Bayes(TallyPolicy):
    """Bayes-optimal in the cooperative variation: no policy that does not know the efficacies does better on average.

    Solved exactly on first use, within seconds. Equally good treatments are equally likely. With mode=maesters those who
    hold an optimal treatment argue and the others yield, which makes the team optimal too.

    Attributes:
        goal: "saved": the expected number of patients saved; "win": the chance that the team wins; None: what the
            game rewards.
    """

    goal: Literal["saved", "win"] | None = None

    def __post_init__(self) -> None:
        check_choice("goal", self.goal, (None, "saved", "win"))

    def check_variant(self, variant: Variant) -> None:
        """Raise ValueError for the competitive variation, and for what is too large. It is solved here."""
        super().check_variant(variant)
        self._solution(variant.options)

    def _solution(self, options: Options) -> Solution:
        return solve(Problem.of(options), self.goal or options.pays)  # type: ignore[arg-type]

    def chances(self, options: Options, treated: np.ndarray, saved: np.ndarray) -> np.ndarray:
        """See `TallyPolicy`."""
        return self._solution(options).chances(treated, saved)


AGENTS = {
    "argument": Argument,
    "bayes": Bayes,
    "dogmatic": Dogmatic,
    "greedy": Greedy,
    "thompson": Thompson,
    "ucb": UCB,
}
