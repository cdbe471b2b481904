"""Values of choices in the cooperative Shakes, for one state and for many: of treatments, and of arguing and yielding."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from dice_envs.core.game import Variant
from dice_envs.core.kernel import kernel
from dice_envs.core.state import MAX_SEATS
from dice_envs.exact import ActionValues
from dice_envs.exact.shakes.argument import dice_table, multiply, win_among
from dice_envs.exact.shakes.solution import check_in_passing, open_optimum, open_values, solve
from dice_envs.exact.shakes.tally import TIE, Problem, code_of, rounded_up
from dice_envs.games.shakes import ARGUE, FACES, SILENT, YIELD

__all__ = ["action_values", "response_values", "situations"]

_SETS = 1 << MAX_SEATS  # of maesters, as bits

# --- over one patient -----------------------------------------------------------------------------------------------------
# All maesters have the same information and the same goal, so these are one player's decisions in turn. Of the argument so far
# only the highest kept die and its holders matter. `after[best, holders]` is the value once some have spoken; the sizes of all
# arrays are those of MAX_SEATS maesters.


@kernel(allocates=False)
def _settle(worth, wins, random_ties, after):
    """Set `after` once all have spoken: one of the holders of the highest die treats the patient. In place."""
    n = len(worth)
    for holders in range(1, 1 << n):
        value, count = 0.0, 0
        for seat in range(n):
            if holders >> seat & 1:
                count += 1
                value += worth[seat] if random_ties else wins[holders, seat] * worth[seat]
        for best in range(1, FACES + 1):
            after[best, holders] = value / count if random_ties else value


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
def _argue_or_yield(params, states, codes, worth, equal, lower, out):
    """Write the values of yielding (NaN where it is illegal) and of arguing. In place.

    Args:
        params: of the game.
        states: (m,) states in which a maester is to speak.
        codes, worth: (m, n) each maester's tally, and the value if its treatment is given to this patient.
        equal, lower: (codes, FACES) P(the kept die shows v), P(it shows less).
        out: (m, 2).
    """
    n = codes.shape[1]
    sets = 1 << n
    all_equal, all_lower = np.empty((sets, FACES)), np.empty((sets, FACES))
    wins = np.zeros((sets, n))
    after, before = np.zeros((FACES + 1, sets)), np.zeros((FACES + 1, sets))
    for row in range(len(states)):
        state = states[row]
        if not params.random_ties:
            multiply(codes, row, equal, all_equal)
            multiply(codes, row, lower, all_lower)
            for among in range(1, sets):
                win_among(among, all_equal, all_lower, False, wins)
        _settle(worth[row], wins, params.random_ties, after)
        spoken, opener = np.int64(state["spoken"]), np.int64(state["opener"])
        for k in range(n - 1, spoken, -1):
            seat = (opener + k) % n
            _speak_before(seat, k == n - 1, equal[codes[row, seat]], after, before)
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
        out[row, ARGUE] = _argues(seat, best, holders, equal[codes[row, seat]], after)


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
    tables = dice_table(rounded_up(options.patients))
    _argue_or_yield(variant.params, states, code_of(treated, saved), worth, *tables, out)
    return out


def _note(variant: Variant) -> str:
    known = "players see" if variant.options.open_efficacies else "players cannot see"
    what = "patients saved from now on, " if variant.options.pays == "saved" else ""
    return f"{what}with the best play of all afterwards; {known} how well each treatment works"


def action_values(variant: Variant, state: Any, in_passing: bool = False) -> ActionValues:
    """Return the value of each treatment, or of arguing and yielding, with Bayes-optimal play afterwards.

    See `dice_envs.exact.GameActionValues`.
    """
    if in_passing:
        check_in_passing(variant)
    (values,) = _values(variant, np.array([state]))
    mix = (values >= np.nanmax(values) - TIE).astype(np.float64)
    unit = "patients" if variant.options.pays == "saved" else "% of games won"
    return ActionValues(values, unit, _note(variant), mix / mix.sum())


@dataclasses.dataclass(frozen=True)
class TeamValues:
    """Values of choices in a cooperative game, in which the player is the physician or has all seats.

    See `dice_envs.exact.ResponseValues`.
    """

    variant: Variant
    value: float
    unit: str
    note: str
    whole_team = True

    def start(self, seat: int) -> float:
        """Return the expectation of Bayes-optimal play, in which maesters do as well as a physician."""
        return self.value

    def action_values(self, states: np.ndarray) -> np.ndarray:
        """Return the patients saved from now on, or the chance to win, after each action, (n, num_actions) float64."""
        return _values(self.variant, states)


def response_values(
    variant: Variant, opponent: Any, /, done: Callable[[float, float], Any] = lambda amount, total: None
) -> TeamValues:
    """Return the values of choices of a physician or of a whole table. See `dice_envs.exact.GameResponseValues`.

    Raises:
        ValueError: a competitive game, or one with too many tallies.
    """
    options = variant.options
    problem = Problem.of(options)
    if options.open_efficacies:
        value = open_optimum(problem, options.pays)
    else:
        value = solve(problem, options.pays).value
    return TeamValues(variant, value, "patients saved" if options.pays == "saved" else "games won", _note(variant))


def situations(variant: Variant, states: np.ndarray, actions: np.ndarray) -> dict[str, np.ndarray]:
    """Return headings for decisions: the patient, and what was chosen. See `dice_envs.exact.GameSituations`."""
    patient = np.array([f"patient {number}" for number in range(1, variant.options.patients + 1)])[states["patients"]]
    if variant.options.mode == "physician":
        tried = states["treated"][np.arange(len(states)), actions] > 0
        return {"patient": patient, "treatment": np.where(tried, "tried before", "not tried before")}
    return {"patient": patient, "choice": np.where(np.asarray(actions) == ARGUE, "argue", "yield")}
