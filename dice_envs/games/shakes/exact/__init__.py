"""The cooperative Shakes, exactly: closed forms, evaluations of policies, Bayes-optimal play, agents' measures.

`chances` has tallies, arguments and posteriors; `policies` optimal play, agents as policies and what policies save. Here agents
are measured and choices valued.

Everything is summed in float64 over non-negative terms, so figures are good to about 12 digits.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from dice_envs.agent import Agent, Uniform, ask
from dice_envs.core.batch import dealt
from dice_envs.core.dice import new_streams
from dice_envs.core.game import OVER, Variant
from dice_envs.core.kernel import kernel
from dice_envs.core.options import check_range
from dice_envs.core.work import advance, counting, hinting, work
from dice_envs.exact.agents import is_uniform, original
from dice_envs.exact.contract import GAMES_WON, MOST_SAMPLE, ActionValues, Effort, Measurement, ResponseValues, Unit
from dice_envs.exact.intervals import half_width, share_half_width
from dice_envs.games.shakes import ARGUE, FACES, SILENT, YIELD, assignments
from dice_envs.games.shakes.exact.chances import TIE, Policy, Problem, kept_chances, tallies, tie_chances
from dice_envs.games.shakes.exact.policies import (
    TooManyReached,
    as_policy,
    check_needs,
    evaluate,
    evaluate_open,
    looks_at_tally_alone,
    open_optimum,
    open_values,
    sees_efficacies,
    solve,
)
from dice_envs.games.shakes.exact.policies import solve_game as solve_game

MOST_ASKED = 10_000_000  # positions at which `measure` asks an agent; where there are more it plays games instead
MOST_TRIED = 200_000  # positions at which it asks with open efficacies to see whether the agent reaches only few of them
GAMES = 20_000  # how many it plays by default
LEAST_GAMES = 100  # fewer give no usable estimate of the error
GAMES_AT_ONCE = 1 << 16
ROWS_SETTLED = 4096  # arguments whose outcomes are valued at once
SAVED, WIN = "patients saved", "P(win)"


def _merges(variant: Variant, agent: Any) -> bool:
    """Return whether `evaluate` may merge tallies. Where all may yield it may not, since then the last to speak must argue."""
    return looks_at_tally_alone(agent) and not (variant.options.mode == "maesters" and is_uniform(agent))


def _openers(variant: Variant, agent: Any) -> range:
    """Return the seats that may open the game, if it makes a difference to the agent; else the first one."""
    matters = variant.options.mode == "maesters" and not looks_at_tally_alone(agent)
    return range(variant.options.num_players if matters else 1)


def _positions(variant: Variant, agent: Any) -> int:
    """Return the number of positions at which the agent is asked if no tallies are merged."""
    n, patients = variant.options.num_players, variant.options.patients
    ways = len(assignments(variant.options.efficacies)) if sees_efficacies(variant, agent) else 1
    return ways * math.comb(patients - 1 + 2 * n, 2 * n) * _positions_at_tally(variant, agent)


def _positions_at_tally(variant: Variant, agent: Any) -> int:
    n = variant.options.num_players
    if variant.options.mode == "physician":
        return 1
    return n * (1 if looks_at_tally_alone(agent) else sum(7**spoken for spoken in range(n)))


class _Outcome(NamedTuple):
    """The patients that an agent saves."""

    distribution: np.ndarray  # (num_patients + 1,) float64: P(k patients are saved)
    games: int  # played to find it; 0: it is exact
    note: str


def _exactly(variant: Variant, agent: Any, seed: int) -> _Outcome:
    """Return the outcome of an agent that does not see the efficacies, from its answers at all tallies."""
    problem, merged = Problem.of(variant.options), _merges(variant, agent)
    policies = [as_policy(agent, variant, opener, seed) for opener in _openers(variant, agent)]
    count = sum(len(level.keys) for level in tallies(problem, merged)[:-1])

    def watched(policy: Policy, treated: np.ndarray, saved: np.ndarray) -> np.ndarray:
        chances = policy(treated, saved)
        advance(len(treated), count * len(policies))
        return chances

    found = [evaluate(problem, functools.partial(watched, policy), merged).distribution for policy in policies]
    return _Outcome(np.mean(found, axis=0), 0, f"all {count:,} tallies")


@functools.lru_cache(maxsize=16)
def _random_exactly(variant: Variant) -> _Outcome:
    """Return the outcome of uniformly random play. Cached: every score needs it, and a table of four takes ten seconds."""
    with work():
        return _exactly(variant, Uniform(), 0)


def _openly(variant: Variant, agent: Any, effort: Effort) -> _Outcome:
    """Return the outcome of an agent that sees the efficacies: exact, unless it reaches too many positions."""
    problem, openers = Problem.of(variant.options), _openers(variant, agent)
    allowed = MOST_ASKED if _positions(variant, agent) <= MOST_ASKED else MOST_TRIED
    found = []
    try:
        for opener in openers:
            most = allowed // _positions_at_tally(variant, agent)
            policy_of = functools.partial(as_policy, agent, variant, opener, effort.seed)
            with counting(share=1 / len(openers)):
                found.append(evaluate_open(problem, policy_of, most).distribution)
    except TooManyReached:
        return _by_playing(variant, agent, effort)
    return _Outcome(np.mean(found, axis=0), 0, f"all {len(assignments(problem.efficacies))} deals of the efficacies")


def _by_playing(variant: Variant, agent: Any, effort: Effort) -> _Outcome:
    """Return the outcome of a sample of games with the agent at every seat."""
    games = GAMES if effort.sample is None else effort.sample
    check_range("sample", games, LEAST_GAMES, MOST_SAMPLE)
    given = original(agent)
    player = given if isinstance(given, Agent) else agent  # errors name the agent as given
    counts = np.zeros(variant.options.patients + 1, np.int64)
    seeds = np.random.SeedSequence(effort.seed)
    for first in range(0, games, GAMES_AT_ONCE):
        index = np.arange(min(GAMES_AT_ONCE, games - first))
        deals, answers = seeds.spawn(2)
        states, own = dealt(variant, len(index), deals), new_streams(answers, len(index))
        while states["seat"][0] != OVER:  # all games are equally long
            variant.kernels.play(states, index, ask(player, variant, states, index, own))
        counts += np.bincount(states["saved"].sum(axis=1), minlength=len(counts))
        advance(len(index), games)
    note = f"{games:,} games played: {_positions(variant, agent):,} positions are too many to ask at"
    return _Outcome(counts / games, games, note)


def optima(variant: Variant) -> dict[str, float]:
    """Return what Bayes-optimal play reaches, the quantity that the game rewards first. See `dice_envs.exact.optima`.

    Raises:
        ValueError: the variation is competitive, or the game takes too long to solve.
    """
    with hinting():
        check_needs(variant)
    return _best(variant)


def _best(variant: Variant) -> dict[str, float]:
    options = variant.options
    if options.competitive:
        raise ValueError("variation must be 'cooperative' for an exact measure, not 'competitive': no optimal play is known")
    problem = Problem.of(options)
    find = open_optimum if options.open_efficacies else lambda problem, reward: solve(problem, reward).value
    best = {SAVED: find(problem, "saved"), WIN: find(problem, "win")}
    return best if options.pays == "saved" else dict(reversed(best.items()))


def measure(variant: Variant, agent: Any, effort: Effort) -> list[Measurement]:
    """Measure patients saved and P(win), the one that the game rewards first. See `dice_envs.exact.GameExact.measure`.

    A physician is asked at every tally. At the table the agent plays every maester, and is asked at every tally, for each
    seat that may open the game and all dice that others may have kept. Above MOST_ASKED positions (such as a physician
    with six treatments, or four maesters) GAMES games are played instead, or `effort.sample`.

    Of agents with `TallyPromises`, tallies are merged, and the measure is exact for all sizes
    that can be solved.

    With open efficacies such an agent does as well as with hidden ones, unless it promises `reads_efficacies`. In that case,
    and without `TallyPromises`, the agent is asked at the tallies that it reaches, for every deal of the efficacies.

    Takes seconds for agents that answer quickly; a minute and 3 GiB for a physician with five treatments whose
    tallies cannot be merged.

    Raises:
        ValueError: the variation is competitive, or the game is too large to be solved.
    """
    best = _best(variant)
    if sees_efficacies(variant, agent):
        found = _openly(variant, agent, effort)
    elif not _merges(variant, agent) and _positions(variant, agent) > MOST_ASKED:
        found = _by_playing(variant, agent, effort)
    elif is_uniform(agent):
        found = _random_exactly(variant)
    else:
        found = _exactly(variant, agent, effort.seed)
    counted = np.arange(len(found.distribution))
    saved = float(found.distribution @ counted)
    win = float(found.distribution[variant.options.to_win :].sum())
    steps, patients = variant.facts.max_steps, variant.options.patients
    errors = 0.0, 0.0
    if found.games:
        errors = half_width(counted, 0, patients, found.games * found.distribution), share_half_width(win, found.games)
    figures = {SAVED: (saved, errors[0], "patients", steps * patients), WIN: (win, errors[1], "probability", steps)}

    def measurement(name: str, value: float, error: float, unit: str, span: float) -> Measurement:
        return Measurement(name, value, best[name], max(0.0, best[name] - value), error, unit, found.note, span)

    return [measurement(name, *figures[name]) for name in best]


# --- values of choices over one patient ------------------------------------------------------------------------------------
# All maesters have the same information and the same goal, so these are one player's decisions in turn. Of the argument so far
# only the highest kept die and its holders matter. `after[best, holders]` is the value once some have spoken.


@kernel(allocates=False)
def _argues(seat, best, holders, kept, after):
    """Return the value if the maester throws its dice, now that these hold the highest die; SILENT and 0 if nobody does."""
    value = 0.0
    for v in range(FACES):
        die = v + 1
        if die > best:
            value += kept[v] * after[die, 1 << seat]
        else:
            value += kept[v] * after[best, holders | (1 << seat) if die == best else holders]
    return value


@kernel(allocates=False)
def _speak_before(seat, must, kept, after, before):
    """Set `before` from `after`, the values once this maester too has spoken. In place.

    `must`: it is the last, so it must argue if nobody has. Sets of holders that cannot be yet are filled, too, and never read.
    """
    for best in range(FACES + 1):
        for holders in range(1 if best > SILENT else 0, after.shape[1] if best > SILENT else 1):
            value = _argues(seat, best, holders, kept, after)
            if not (must and best == SILENT):
                value = max(value, after[best, holders])
            before[best, holders] = value


@kernel
def _argue_or_yield(states, settled, kept, out):
    """Write the values of yielding (NaN where it is illegal) and of arguing into `out` (m, 2). In place.

    `settled` (m, sets) is the value once all have spoken, by the holders of the highest die; `kept` (m, n, FACES) is
    P(each maester's kept die shows v).
    """
    n, sets = kept.shape[1], settled.shape[1]
    after, before = np.zeros((FACES + 1, sets)), np.zeros((FACES + 1, sets))
    for row in range(len(states)):
        state = states[row]
        for best in range(1, FACES + 1):
            after[best] = settled[row]
        spoken, opener = np.int64(state["spoken"]), np.int64(state["opener"])
        for k in range(n - 1, spoken, -1):
            seat = (opener + k) % n
            _speak_before(seat, k == n - 1, kept[row, seat], after, before)
            after, before = before, after
        best, holders = 0, 0
        for seat in range(n):
            best = max(best, np.int64(state["strength"][seat]))
        for seat in range(n):
            if best != SILENT and state["strength"][seat] == best:
                holders |= 1 << seat
        seat = (opener + spoken) % n
        must = best == SILENT and spoken == n - 1
        out[row, YIELD] = np.nan if must else after[best, holders]
        out[row, ARGUE] = _argues(seat, best, holders, kept[row, seat], after)


# --- one state and many ---------------------------------------------------------------------------------------------------


def _values(variant: Variant, states: np.ndarray) -> np.ndarray:
    """Return the rewards to come after each action with Bayes-optimal play afterwards, (m, num_actions) float64."""
    options = variant.options
    n, problem = options.num_players, Problem.of(options)
    treated, saved = states["treated"][:, :n], states["saved"][:, :n]
    if options.open_efficacies:
        worth = open_values(problem, options.pays, states["efficacy"][:, :n], treated, saved)
    else:
        worth = solve(problem, options.pays).values(treated, saved)
    if options.mode == "physician":
        return worth
    out = np.empty((len(states), variant.facts.num_actions))
    for first in range(0, len(states), ROWS_SETTLED):
        some = slice(first, first + ROWS_SETTLED)
        settled = np.einsum("msn,mn->ms", tie_chances(treated[some], saved[some], options.ties), worth[some])
        _argue_or_yield(states[some], settled, kept_chances(treated[some], saved[some]), out[some])
    return out


def _note(variant: Variant) -> str:
    known = "players see" if variant.options.open_efficacies else "players cannot see"
    what = "patients saved from now on, " if variant.options.pays == "saved" else ""
    return f"{what}with the best play of all afterwards; {known} how well each treatment works"


def action_values(variant: Variant, state: Any) -> ActionValues:
    """Return the value of each treatment, or of arguing and yielding, with Bayes-optimal play afterwards.

    See `dice_envs.exact.GameExact.action_values`.
    """
    check_needs(variant)
    (values,) = _values(variant, np.array([state]))
    mix = (values >= np.nanmax(values) - TIE).astype(np.float64)
    unit = Unit("patients") if variant.options.pays == "saved" else GAMES_WON
    return ActionValues(values, unit, _note(variant), mix / mix.sum())


def response_values(variant: Variant, opponent: Any) -> ResponseValues:
    """Return the values of choices of a physician or of a whole table. See `dice_envs.exact.GameExact.response_values`.

    At the start it is the expectation of Bayes-optimal play, in which maesters do as well as a physician.

    Raises:
        ValueError: a competitive game, or one with too many tallies.
    """
    options = variant.options
    problem = Problem.of(options)
    unit, most = Unit("patients saved") if options.pays == "saved" else GAMES_WON, None
    if options.open_efficacies:
        value = open_optimum(problem, options.pays)
    else:
        solution = solve(problem, options.pays)
        value, most = solution.value, solution.most_lost if options.mode == "physician" else None
    values = functools.partial(_values, variant)
    return ResponseValues(unit, _note(variant), lambda seat: value, values, whole_team=True, most_lost=most)


def situations(variant: Variant, states: np.ndarray, actions: np.ndarray) -> dict[str, np.ndarray]:
    """Return headings for decisions: the patient, and what was chosen. See `dice_envs.exact.GameExact.situations`."""
    patient = np.array([f"patient {number}" for number in range(1, variant.options.patients + 1)])[states["patients"]]
    if variant.options.mode == "physician":
        tried = states["treated"][np.arange(len(states)), actions] > 0
        return {"patient": patient, "treatment": np.where(tried, "tried before", "not tried before")}
    return {"patient": patient, "choice": np.where(np.asarray(actions) == ARGUE, "argue", "yield")}
