"""Policies in the cooperative Shakes: Bayes-optimal play, agents as policies, and the patients that a policy saves.

With open efficacies the most effective treatment is best for every patient, so optimal play has a closed form. Policies that
look at the tally alone do as well with open efficacies as with hidden ones. All others are evaluated for each deal of the
efficacies (`evaluate_open`).
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable
from typing import Annotated, Any, Literal

import numpy as np
from scipy.special import bdtrc

from dice_envs.agent import Promises, Turn, ask_probabilities, promises_of
from dice_envs.agent.specs import make_agent
from dice_envs.core.batch import dealt
from dice_envs.core.dice import new_streams
from dice_envs.core.game import Variant
from dice_envs.core.work import advance, clock, needs
from dice_envs.exact.agents import is_uniform
from dice_envs.exact.contract import Shown, Solved
from dice_envs.exact.kept import kept
from dice_envs.games.shakes import ARGUE, FACES, SILENT, Options, assignments
from dice_envs.games.shakes.exact.chances import (
    MOST_KEPT,
    MOST_TALLIES,
    TIE,
    Policy,
    Problem,
    best_of,
    code_bits,
    code_of,
    count_merged,
    efficacy_chances,
    kept_chances,
    keys_of,
    set_chances,
    success_chances,
    tallies,
    tie_chances,
)

ROWS_AT_ONCE = 1 << 16  # tallies or positions that are asked about in one call
SECONDS_A_TALLY, BYTES_A_TALLY = 1e-5, 1024  # of merged tallies, at most, to solve a game


@dataclasses.dataclass(frozen=True)
class OptimalPlay:
    """Bayes-optimal play: the highest expectation of all policies that do not know the efficacies.

    Attributes:
        problem: the game solved.
        reward: "saved" or "win".
        value: the optimal expectation of patients saved, or the optimal chance to win.
        q: for each number of patients treated, the value of each choice at each merged tally, (m, n) float64.
    """

    problem: Problem
    reward: str
    value: float
    q: list[np.ndarray]

    def chances(self, treated: np.ndarray, saved: np.ndarray) -> np.ndarray:
        """Return the policy (see `Policy`): the best treatments, equally likely. Rows may be at different patients."""
        return best_of(self.values(treated, saved))

    def values(self, treated: np.ndarray, saved: np.ndarray) -> np.ndarray:
        """Return the value of each choice, (m, n) float64: patients saved from now on, or the chance to win.

        Args:
            treated, saved: (m, n) patients treated and saved with each treatment; rows may be at different patients.
        """
        bits, levels = code_bits(self.problem.num_patients), tallies(self.problem)
        codes = code_of(treated, saved)
        order = np.argsort(codes, axis=1, kind="stable")
        keys = keys_of(np.take_along_axis(codes, order, axis=1), bits)
        patients = treated.sum(axis=1)
        out = np.empty(treated.shape)
        for level in np.unique(patients):
            mine = np.flatnonzero(patients == level)
            out[mine[:, None], order[mine]] = self.q[level][np.searchsorted(levels[level].keys, keys[mine])]
        return out

    @functools.cached_property
    def most_lost(self) -> float:
        """The most that choices can give away in one game, with the worst luck."""
        levels = tallies(self.problem)
        worst = np.zeros(len(levels[-1].keys))
        for level, q in zip(levels[-2::-1], self.q[::-1], strict=True):
            worst = (q.max(axis=1, keepdims=True) - q + worst[level.children].max(axis=2)).max(axis=1)
        return float(worst[0])


@kept(MOST_KEPT, lambda solution: sum(values.nbytes for values in solution.q))
def solve(problem: Problem, reward: Literal["saved", "win"]) -> OptimalPlay:
    """Find Bayes-optimal play by dynamic programming, from the last patient backwards over merged tallies.

    Raises:
        ValueError: there are too many tallies, or the efficacies are open: see `open_values`.
    """
    if problem.open_efficacies:
        raise ValueError("open_efficacies must be false to solve by tallies: with open ones see open_values")
    if reward not in ("saved", "win"):
        raise ValueError(f"reward must be 'saved' or 'win', not {reward!r}")
    levels = tallies(problem)
    pays = float(reward == "saved")
    values = (levels[-1].saved.sum(axis=1) >= problem.goal) * (1.0 - pays)
    q: list[np.ndarray] = []
    for level in reversed(levels[:-1]):
        assert level.children is not None
        success = success_chances(problem, level.treated, level.saved)
        after = values[level.children]
        q.append((1 - success) * after[:, :, 0] + success * (pays + after[:, :, 1]))
        values = q[-1].max(axis=1)
    return OptimalPlay(problem, reward, float(values[0]), q[::-1])


# --- open efficacies --------------------------------------------------------------------------------------------


def _chance_of_at_least(patients: Any, least: Any, pips: Any) -> Any:
    """Return P(at least `least` of these patients recover with a treatment of this efficacy), numbers or arrays."""
    return bdtrc(np.clip(least, 0, patients + 1) - 1.0, patients, pips / FACES)


def open_optimum(problem: Problem, reward: Literal["saved", "win"]) -> float:
    """Return what optimal play reaches if the efficacies are open: every patient gets the most effective treatment."""
    best = max(problem.efficacies)
    if reward == "saved":
        return problem.num_patients * best / FACES
    return float(_chance_of_at_least(problem.num_patients, problem.goal, best))


def open_values(
    problem: Problem, reward: Literal["saved", "win"], efficacies: np.ndarray, treated: np.ndarray, saved: np.ndarray
) -> np.ndarray:
    """Return the value of giving each treatment to the next patient, (m, n) float64, if the efficacies (m, n) are open.

    As in `OptimalPlay.values`: patients saved from now on, or the chance to win, with optimal play afterwards.
    """
    left = problem.num_patients - treated.sum(axis=1, dtype=np.int64) - 1  # patients after this one
    best = efficacies.max(axis=1)
    success = efficacies / FACES
    if reward == "saved":
        return success + (left * best / FACES)[:, None]
    missing = problem.goal - saved.sum(axis=1, dtype=np.int64)
    recovered, died = (_chance_of_at_least(left, missing - one, best)[:, None] for one in (1, 0))
    return success * recovered + (1 - success) * died


def check_needs(variant: Variant) -> None:
    """Raise `TooLong` if the game takes more time or memory to solve than it may here; see `dice_envs.core.work.needs`."""
    if not variant.options.open_efficacies:
        about = count_merged(Problem.of(variant.options))
        needs(f"{variant} has about {about:,} tallies", about * SECONDS_A_TALLY, about * BYTES_A_TALLY)


# --- what policies save ---------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Performance:
    """The exact performance of a policy.

    Attributes:
        distribution: P(k patients saved), (num_patients + 1,) float64.
        saved: the expectation.
        win: P(the team wins).
        shares: the expected share of patients that get a treatment of each of `problem.kinds`.
        matching_gap: distance of the choice from probability matching, which chooses each treatment with the chance that it
            is the best: total variation, averaged over patients.
        most_dice: P(k is the most dice that a maester throws at once in a game), (num_patients + 1,) float64, if every
            maester argues.
        most_treated: P(the treatment used most is given to k patients), (num_patients + 1,) float64.
    """

    distribution: np.ndarray
    saved: float
    win: float
    shares: np.ndarray
    matching_gap: float
    most_dice: np.ndarray
    most_treated: np.ndarray

    def reached(self, goal: str) -> float:
        """Return the patients saved for the goal "saved", P(the team wins) for "win"."""
        return self.saved if goal == "saved" else self.win


def evaluate(problem: Problem, policy: Policy, merged: bool = True) -> Performance:
    """Return the exact performance of a policy.

    Args:
        problem: the game.
        policy: see `Policy`. With `merged` it is asked about one order of each tally only, so it must be equivariant:
            treatments that change places take their probabilities with them.
        merged: False for policies that tell treatments apart by their place.

    Raises:
        ValueError: the policy's probabilities are not a distribution, or there are too many tallies.
    """
    levels = tallies(problem, merged)
    mass: Any = np.ones(1)
    shares = np.zeros(len(problem.kinds))
    gap = 0.0
    most_dice = np.zeros(problem.num_patients + 1)
    for level in levels[:-1]:
        assert level.children is not None
        met = np.flatnonzero(mass > 0)
        treated, saved = level.treated[met], level.saved[met]
        chances = _chosen(policy, treated, saved)
        posterior = efficacy_chances(problem, treated, saved)
        success = posterior @ (np.array(problem.kinds) / FACES)
        flow = mass[met, None] * chances
        shares += np.einsum("mn,mnk->k", flow, posterior)
        best = posterior[:, :, 0] / posterior[:, :, 0].sum(axis=1, keepdims=True)
        gap += float(mass[met] @ np.abs(chances - best).sum(axis=1)) / 2
        if level is levels[-2]:
            most_dice += np.bincount(treated.max(axis=1) + 1, mass[met], problem.num_patients + 1)
        to = level.children[met]
        size = int(level.children.max()) + 1
        mass = np.bincount(to[:, :, 0].ravel(), (flow * (1 - success)).ravel(), size)
        mass += np.bincount(to[:, :, 1].ravel(), (flow * success).ravel(), size)
    distribution = np.bincount(levels[-1].saved.sum(axis=1), mass, problem.num_patients + 1)
    most_treated = np.bincount(levels[-1].treated.max(axis=1), mass, problem.num_patients + 1)
    return _evaluation(problem, distribution, shares, gap, most_dice, most_treated)


def _evaluation(
    problem: Problem, distribution: np.ndarray, shares: np.ndarray, gap: float, most_dice: np.ndarray, most_treated: np.ndarray
) -> Performance:
    """Return a Performance; `shares` and `gap` are summed over patients."""
    return Performance(
        distribution=distribution,
        saved=float(distribution @ np.arange(len(distribution))),
        win=float(distribution[problem.goal :].sum()),
        shares=shares / problem.num_patients,
        matching_gap=gap / problem.num_patients,
        most_dice=most_dice,
        most_treated=most_treated,
    )


def _chosen(policy: Policy, treated: np.ndarray, saved: np.ndarray) -> np.ndarray:
    """Return the policy's probabilities, (m, n) float64. ValueError if they are not a distribution."""
    starts = range(0, len(treated), ROWS_AT_ONCE)
    chances = np.concatenate([policy(*(each[first : first + ROWS_AT_ONCE] for each in (treated, saved))) for first in starts])
    if chances.shape != treated.shape or (chances < -TIE).any() or not np.allclose(chances.sum(axis=1), 1, atol=1e-5):
        raise ValueError(f"a policy must give {treated.shape[1]} chances that add up to 1 at every tally")
    return chances / chances.sum(axis=1, keepdims=True)


class TooManyReached(ValueError):
    """A policy reaches more tallies than it may be asked at."""


def evaluate_open(
    problem: Problem,
    policy_of: Callable[[np.ndarray], Policy],
    most: int = MOST_TALLIES,
) -> Performance:
    """Return the exact distribution of what policies that know the efficacies achieve, over all deals of the efficacies.

    Args:
        problem: the game.
        policy_of: the efficacies (n,) int8 of the treatments → the policy that knows them. It is asked only at the tallies
            that it reaches.
        most: limit on the tallies at which the policies are asked, all deals together.

    Raises:
        TooManyReached: the policies reach more tallies.
        ValueError: a policy's probabilities are not a distribution.
    """
    ways = assignments(problem.efficacies)
    found = []
    for efficacies in ways:
        one, asked = _evaluate_known(problem, efficacies, policy_of(efficacies), most)
        most -= asked
        found.append(one)
        advance(1, len(ways))

    return Performance(*(np.mean(figures, axis=0) for figures in zip(*(vars(one).values() for one in found), strict=True)))


def _evaluate_known(problem: Problem, efficacies: np.ndarray, policy: Policy, most: int) -> tuple[Performance, int]:
    """Return the evaluation for one deal of `evaluate_open`, and the number of tallies at which the policy was asked."""
    n, patients = len(efficacies), problem.num_patients
    bits = code_bits(patients)
    success = efficacies / FACES
    kind_of = np.array([problem.kinds.index(int(pips)) for pips in efficacies])
    best = (efficacies == efficacies.max()) / (efficacies == efficacies.max()).sum()
    treated = saved = np.zeros((1, n), np.int16)
    mass: Any = np.ones(1)
    shares, gap, asked = np.zeros(len(problem.kinds)), 0.0, 0
    for _ in range(patients):
        asked += len(mass)
        if asked > most:
            raise TooManyReached(f"num_players={n} with num_patients={patients} has too many tallies that this policy reaches")
        chances = _chosen(policy, treated, saved)
        flow = mass[:, None] * chances
        np.add.at(shares, kind_of, flow.sum(axis=0))
        gap += float(mass @ np.abs(chances - best).sum(axis=1)) / 2
        most_dice = np.bincount(treated.max(axis=1) + 1, mass, patients + 1)
        row, one = np.nonzero(flow)
        after = np.hstack([treated[row], saved[row]])
        after[np.arange(len(row)), one] += 1
        better = after.copy()
        better[np.arange(len(row)), n + one] += 1
        reached = np.vstack([after, better])
        if n * bits <= 64:
            keys = keys_of(code_of(reached[:, :n], reached[:, n:]), bits)
            _, first, to = np.unique(keys, return_index=True, return_inverse=True)
        else:
            _, first, to = np.unique(reached, axis=0, return_index=True, return_inverse=True)
        weights = np.concatenate([flow[row, one] * (1 - success[one]), flow[row, one] * success[one]])
        mass = np.bincount(to.ravel(), weights, len(first))
        treated, saved = reached[first, :n], reached[first, n:]
    distribution = np.bincount(saved.sum(axis=1), mass, patients + 1)
    most_treated = np.bincount(treated.max(axis=1), mass, patients + 1)
    return _evaluation(problem, distribution, shares, gap, most_dice, most_treated), asked


# --- agents as policies ---------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class TallyPromises(Promises):
    """Promises of an agent that looks at the tally only, so that exact measures merge tallies. Treatments that change places
    take its probabilities with them; at a table at least one maester always chooses to argue.

    Attributes:
        reads_efficacies: the agent also looks at efficacies that are open.
    """

    reads_efficacies: bool = False


def looks_at_tally_alone(agent: Any) -> bool:
    """Return whether the agent promises that its choices depend on the tally alone; see `measure`."""
    return is_uniform(agent) or isinstance(promises_of(agent), TallyPromises)


def sees_efficacies(variant: Variant, agent: Any) -> bool:
    """Return whether the agent's choices may depend on the efficacies: they are open, and it looks at more than the tally."""
    promised = promises_of(agent)
    reads = promised.reads_efficacies if isinstance(promised, TallyPromises) else not is_uniform(agent)
    return bool(variant.options.open_efficacies) and reads


def as_policy(agent: Any, variant: Variant, opener: int = 0, seed: int = 0, efficacies: np.ndarray | None = None) -> Policy:
    """Return the policy of an agent as the physician of `variant`, or of a table where it plays every maester.

    A maester is asked about every combination of dice that those before it may have kept. As in the observation, it sees which
    die each of them kept, but not the dice taken away. One that looks at the tally alone is asked once for each tally, as the
    first to speak: the order of speaking matters only where all may yield, because then the last must argue.

    Args:
        agent: see `dice_envs.agent.ask_probabilities`. Unless it looks at the tally alone, evaluate with `merged=False`.
        variant: the game.
        opener: the maester that speaks first on the first patient.
        seed: of the agent's own random streams.
        efficacies: (n,) of the treatments, if they are open; see `evaluate_open`.

    Raises:
        ValueError: the variant is another game, or the agent sees efficacies that are not given.
        AgentError: the agent states no probabilities; raised when the policy is first asked.
    """
    if variant.game.name != "shakes":
        raise ValueError(f"the game must be shakes for a policy of its agents, not {variant.game.name}")
    if efficacies is None and sees_efficacies(variant, agent):
        raise ValueError("open_efficacies: what this agent does depends on the efficacies, so they must be given")
    seeds = np.random.SeedSequence(seed)

    def answers(treated: np.ndarray, saved: np.ndarray, **fields: Any) -> np.ndarray:
        """Return the agent's probabilities in states with these tallies, in which nobody has spoken unless `fields` say so.

        Streams are new, and efficacies random unless they are given. (m, num_actions) float64.
        """
        states = dealt(variant, len(treated))
        states["patients"] = treated.sum(axis=1)
        known = {} if efficacies is None else {"efficacy": efficacies}
        for name, value in {"treated": treated, "saved": saved, **known, **fields}.items():
            field = states[name]
            (field[:, : treated.shape[1]] if field.ndim == 2 else field)[...] = value
        return ask_probabilities(
            agent, Turn(variant, states, np.arange(len(states)), new_streams(seeds.spawn(1)[0], len(states)))
        )

    if variant.options.mode == "physician":
        return answers
    return functools.partial(_tally_team if looks_at_tally_alone(agent) else _team, answers, variant.options, opener)


def evaluate_agent(variant: Variant, agent: Any) -> Performance:
    """Return the exact performance of an agent as the physician, which is asked at as few tallies as possible."""
    problem = Problem.of(variant.options)
    if sees_efficacies(variant, agent):
        return evaluate_open(problem, lambda efficacies: as_policy(agent, variant, efficacies=efficacies))
    return evaluate(problem, as_policy(agent, variant), merged=looks_at_tally_alone(agent))


def shares_by_efficacy(variant: Variant, found: Performance) -> str:
    """Return the share of patients that get a treatment of each efficacy, in words."""
    kinds = Problem.of(variant.options).kinds
    return ", ".join(f"{pips}: {share:.4f}" for pips, share in zip(kinds, found.shares, strict=True))


def solve_game(
    variant: Variant,
    policy: Annotated[str, "optimal, or an agent: argument, thompson, ucb:1, ppo:PATH, ..."] = "optimal",
) -> Solved:
    """The exact value of a physician's policy in The Shakes, and the distribution of patients saved.

    With -o open_efficacies=true the physician knows how effective each treatment is, as on the rules' score sheet; so does
    optimal play.

    JSON: {"value", "distribution"}; entry k of the distribution, from k = 0, is the probability that k patients are saved.

    Example: solve shakes -o num_players=4 -o reward=win --policy argument
    """
    options = variant.options
    if options.mode != "physician":
        raise ValueError(f"mode must be physician for the value of a policy, not {options.mode}")
    agent = make_agent(f"bayes:{options.pays}" if policy == "optimal" else policy)
    start = clock()
    found = evaluate_agent(variant, agent)
    seconds, value = clock() - start, found.reached(options.pays)
    shown: list[Shown] = [
        ((policy, "bold"), f", {options.num_players} players, {options.patients} patients"),
        f"patients saved {found.saved:.6f}, P(win) {found.win:.6f}; {options.pays} counts: {value:.6f}",
        f"share of patients by efficacy: {shares_by_efficacy(variant, found)}",
        *(f"{k:3d} saved {chance:10.6f} {'█' * round(150 * chance)}" for k, chance in enumerate(found.distribution)),
        f"exact, in {seconds:.1f} s",
    ]
    data = {"value": value, "distribution": found.distribution, "policy": policy, "reward": options.pays}
    return Solved(shown, {**data, "options": variant.changed_options()})


# --- a table of maesters as a policy ------------------------------------------------------------------------------

# A set of maesters is a number, whose bit k stands for column k.


def _tally_team(
    answers: Callable[..., np.ndarray], options: Options, opener: int, treated: np.ndarray, saved: np.ndarray
) -> np.ndarray:
    """Return P(each maester wins), (m, n), where every maester is an agent that looks at the tally alone."""
    n, sets = options.num_players, np.ones((len(treated), 1))
    for seat in range(n):
        argues = answers(treated, saved, opener=seat, seat=seat)[:, [ARGUE]]
        sets = np.hstack([sets * (1 - argues), sets * argues])
    last = (opener + treated.sum(axis=1) - 1) % n
    sets[np.arange(len(sets)), 1 << last] += sets[:, 0]  # if all others yield, the last must argue
    return np.einsum("ms,msn->mn", sets, set_chances(treated, saved, options.ties))


@functools.lru_cache(maxsize=8)
def _histories(spoken: int) -> np.ndarray:
    """Return all outcomes of the first `spoken` maesters, (7**spoken, spoken) int8: the die each kept, or SILENT."""
    said = list(itertools.product(range(FACES + 1), repeat=spoken))
    return np.array(said, np.int8).reshape(len(said), spoken)


def _team(
    answers: Callable[..., np.ndarray], options: Options, opener: int, treated: np.ndarray, saved: np.ndarray
) -> np.ndarray:
    """Return P(each maester wins), (m, n), where the agent plays every maester."""
    n = options.num_players
    at_once = max(1, ROWS_AT_ONCE // len(_histories(n - 1)))
    order = (opener + treated.sum(axis=1)[:, None] + np.arange(n)) % n  # seats as they speak
    blocks = [slice(first, first + at_once) for first in range(0, len(treated), at_once)]
    tied = np.concatenate([_tied(answers, treated[rows], saved[rows], order[rows]) for rows in blocks])
    in_turn = np.take_along_axis(treated, order, axis=1), np.take_along_axis(saved, order, axis=1)
    wins = np.einsum("ms,msn->mn", tied, tie_chances(*in_turn, options.ties))
    by_seat = np.empty(wins.shape)
    np.put_along_axis(by_seat, order, wins, axis=1)
    return by_seat


def _tied(answers: Callable[..., np.ndarray], treated: np.ndarray, saved: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Return P(each set of maesters keeps the highest die), (m, 2**n) float64, once all have spoken.

    `order` (m, n): seats as they speak; column k of a set stands for the k-th of them.
    """
    count, n = treated.shape
    rows = np.arange(count)
    kept = kept_chances(treated, saved)
    reached = np.ones((count, 1))  # P(each history)
    for spoken in range(n):
        row, history = np.nonzero(reached)
        strength = np.full((len(row), n), SILENT, np.int8)
        np.put_along_axis(strength, order[row, :spoken], _histories(spoken)[history], axis=1)
        before = {"spoken": spoken, "strength": strength, "argued": strength != SILENT}
        argues = np.zeros((*reached.shape, 1))
        asked = answers(treated[row], saved[row], opener=order[row, 0], seat=order[row, spoken], **before)
        argues[row, history] = asked[:, [ARGUE]]
        said = np.concatenate([1 - argues, argues * kept[rows, order[:, spoken]][:, None, :]], axis=2)
        reached = (reached[:, :, None] * said).reshape(count, -1)
    strengths = _histories(n)
    highest = (strengths == strengths.max(axis=1, keepdims=True)) @ (1 << np.arange(n))
    return np.stack([reached[:, highest == tied].sum(axis=1) for tied in range(1 << n)], axis=1)
