"""The Shakes: maesters argue with dice over whose treatment the next patient gets, and so run a bandit experiment.

Play
    N players each hold a treatment. Its efficacy, a number of pips, is dealt at random from a known list:
    2 players: 3, 1; 3: 4, 1, 1; 4: 4, 2, 1, 1; 5: 4, 2, 2, 1, 1; 6: 4, 2, 2, 2, 1, 1. Maesters argue over each patient:
    a maester throws one die, and one more for each patient it has treated; removes one die, the lowest first, for each
    patient it has saved; and keeps the lowest left. The highest kept die wins; tied maesters throw again. The winner
    treats the patient, who recovers if one more die shows at most the efficacy.
    Cooperative: 2 or 3 players have 12 patients, and the team wins if 5 recover; more players have 18 and need 7.
    Competitive: every efficacy is the same; the first to save 3 patients wins.

Source
    Allen Downey, "The Shakes: a Bayesian dice game for 2-6 players", rules (2020) and notebook, in the repository
    AllenDowney/TheShakes on GitHub; Creative Commons BY-NC-SA 4.0. The disease is after "the Shivers" of G. R. R. Martin.

Readings
    - In the rules maesters always argue, so their players decide nothing. Here a maester may also yield, so that the
      players together can follow any policy. A dogmatic player always argues.
    - The rules write the efficacies on the score sheet, since maesters are dogmatic and do not care. Here they are
      hidden: otherwise nothing is left to learn. They can be shown to everybody, as the rules do. The die thrown for a
      patient is hidden in any case: everybody sees only whether the patient recovered.
    - The competitive rules say that 3 of 6 patients recover, and then set every efficacy to 2. Here it is 2, but another
      can be chosen.
    - The rules let maesters argue in any order. Here they speak in seat order with open dice. A random seat opens the
      first argument, the next seat the next one, and so on. If all others have yielded, the last to speak must argue.
    - The rules do not bound a competitive game. Here it ends without a winner after 200 patients, or as many as are chosen.

In programs
    - `mode="physician"`, the default of `gymnasium.make`: one player picks the treatment of each patient.
      `mode="maesters"`, the default elsewhere: at its turn each maester argues or yields; the agent `dogmatic` argues.
    - `reroll_hidden` draws hidden efficacies from the exact posterior; `open_efficacies` shows them. `efficacy` is that of a
      competitive game.
    - A competitive game has at most num_patients * num_players actions. With 200, six players and efficacy 2, fewer than one
      game in 10**14 gets there. To truncate games, use PettingZoo's `max_cycles`.

Actions
    physician   0 … N-1: the treatment the patient gets
    maesters    0: yield, 1: argue
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np

from dice_envs.core.dice import below, roll, roll_counts, uniform
from dice_envs.core.game import Facts, Game
from dice_envs.core.kernel import kernel
from dice_envs.core.options import Range, check_list, check_names, check_range, check_types, shown, words
from dice_envs.core.state import MAX_SEATS, OVER, clear_rewards, end_game, next_seat, relative_seat, start_game, state_dtype
from dice_envs.core.view import Block, Picture, offsets, seat_labels
from dice_envs.games.shakes import pictures

FACES = 6
EFFICACIES = {2: (3, 1), 3: (4, 1, 1), 4: (4, 2, 1, 1), 5: (4, 2, 2, 1, 1), 6: (4, 2, 2, 2, 1, 1)}  # by number of players
TREATMENTS = (  # those of the rules
    "hot mustard",
    "dragon peppers",
    "wine with snake venom",
    "hot bath",
    "vegetables",
    "raw fish",
    "meat",
    "blood",
    "smoke",
    "wall of fire",
)
RESERVED_NAMES = ("nobody", "the team", "you")  # not allowed as names, since pictures use these words
MAX_PATIENTS = 200  # a maester throws one die more than it has treated patients; `roll_counts` throws at most 255
COMPETITIVE_GOAL = 3
MANY_PATIENTS = 6  # a competitive game shows n patients treated as n / (n + 6), so 6 patients give 0.5
YIELD, ARGUE = 0, 1  # the maesters' actions
NOBODY = -1  # value of `last_seat` before the first patient
SILENT = 0  # value of `strength` for a maester that yielded, is beaten, or has not spoken


def assignments(efficacies: tuple[int, ...]) -> np.ndarray:
    """Every way to deal the efficacies, once each: (ways, players) int8. All are equally likely."""
    return np.array(sorted(set(itertools.permutations(efficacies)), reverse=True), np.int8)


_NUM_WAYS = np.array([len(assignments(EFFICACIES[n])) if n in EFFICACIES else 0 for n in range(MAX_SEATS + 1)])
_WAYS = np.zeros((MAX_SEATS + 1, _NUM_WAYS.max(), MAX_SEATS), np.int8)  # [players, k]: the k-th assignment
for _n, _dealt in EFFICACIES.items():
    _WAYS[_n, : _NUM_WAYS[_n], :_n] = assignments(_dealt)
_POWERS = (np.arange(FACES + 1)[:, None] / FACES) ** np.arange(MAX_PATIENTS + 1)  # [pips, k]: (pips / 6)**k


# --- options ----------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Options:
    """Options of The Shakes; ValueError names the option, the value and what is allowed.

    Attributes:
        num_players: maesters, each with a treatment, 2 to 6.
        mode: "maesters": a seat for each, who argues or yields; "physician": one seat that picks treatments.
        variation: "cooperative" or "competitive" (maesters only).
        reward: "saved": 1 for each patient saved (cooperative: to every seat; competitive: to the maester who saved
            it); "win": at the end, cooperative 1 to every seat if the team has won, competitive 1 to the winner and
            -1/(n-1) to the others. None: "saved" if cooperative, "win" if competitive.
        ties: "again": tied maesters throw again (the rules); "random": a tie is broken at random (the notebook).
        efficacy: every treatment's efficacy in the competitive variation, 1 to 5.
        num_patients: patients that come, 1 to 200. None: 12 with 2 or 3 players and 18 with more; in the competitive
            variation 200, after which the game ends without a winner.
        goal: saved patients that win, at most as many as come. None: 5 with 2 or 3 players and 7 with more; 3 in the
            competitive variation.
        open_efficacies: true: everybody sees the efficacies, as on the rules' score sheet; false: nobody does. For the
            cooperative variation only: in the competitive one all are equal and known.
        treatments: names of the treatments in seat order, all different, of at most 24 characters each; or "rules": the
            first of the rules' ten (hot mustard, dragon peppers, wine with snake venom, hot bath, vegetables, raw fish,
            meat, blood, smoke, wall of fire). None: they have numbers. Names change words and pictures only.
        maesters: names of the players, in the same form. None: they have numbers.
    """

    num_players: Annotated[int, Range(min(EFFICACIES), max(EFFICACIES))] = 3
    mode: Literal["maesters", "physician"] = "maesters"
    variation: Literal["cooperative", "competitive"] = "cooperative"
    reward: Literal["saved", "win"] | None = None
    ties: Literal["again", "random"] = "again"
    efficacy: Annotated[int, Range(1, FACES - 1)] = 2
    num_patients: Annotated[int, Range(1, MAX_PATIENTS)] | None = None
    goal: int | None = None  # at most `num_patients`
    open_efficacies: bool = False
    treatments: tuple[str, ...] | Literal["rules"] | None = words()
    maesters: tuple[str, ...] | None = words()

    def __post_init__(self) -> None:
        check_types(self)
        if self.mode == "physician" and self.competitive:
            raise ValueError(
                'variation must be "cooperative" with mode="physician", not "competitive" (which needs mode="maesters")'
            )
        if not self.competitive and self.efficacy != type(self).efficacy:
            raise ValueError(
                f'efficacy must be left at {type(self).efficacy} with variation="cooperative", not {self.efficacy!r}'
            )
        if self.competitive and self.open_efficacies:
            raise ValueError(
                'open_efficacies must be false with variation="competitive", where all efficacies are equal and known'
            )
        if self.goal is None and self.to_win > self.patients:
            raise ValueError(f"num_patients must be at least {self.to_win}, the goal if none is given, not {self.patients}")
        check_range("goal", self.to_win, 1, self.patients)
        for option, given in (("treatments", self.treatments), ("maesters", self.maesters)):
            if given is None or (option == "treatments" and isinstance(given, str) and given == "rules"):
                continue
            check_names(option, given, self.num_players, RESERVED_NAMES)
            object.__setattr__(self, option, tuple(map(str, given)))

    @property
    def competitive(self) -> bool:
        """Whether maesters play against each other."""
        return self.variation == "competitive"

    @property
    def known(self) -> bool:
        """Whether everybody knows the efficacies."""
        return self.competitive or self.open_efficacies

    @property
    def efficacies(self) -> tuple[int, ...]:
        """The efficacies that are dealt, highest first."""
        return (self.efficacy,) * self.num_players if self.competitive else EFFICACIES[self.num_players]

    @property
    def patients(self) -> int:
        """The most patients that can come."""
        if self.num_patients is not None:
            return self.num_patients
        return MAX_PATIENTS if self.competitive else (12 if self.num_players <= 3 else 18)

    @property
    def to_win(self) -> int:
        """Saved patients that win: the team's, or in the competitive variation one maester's."""
        if self.goal is not None:
            return self.goal
        return COMPETITIVE_GOAL if self.competitive else (5 if self.num_players <= 3 else 7)

    @property
    def treatment_names(self) -> tuple[str, ...]:
        """The treatments' names in words and pictures, in seat order."""
        if self.treatments is None:
            return tuple(f"treatment {seat}" for seat in range(self.num_players))
        return TREATMENTS[: self.num_players] if isinstance(self.treatments, str) else self.treatments

    @property
    def pays(self) -> str:
        """The reward that applies: "saved" or "win"."""
        return self.reward or ("win" if self.competitive else "saved")


class Params(NamedTuple):
    """What the kernels receive."""

    num_players: int
    num_actions: int
    efficacies: tuple[int, ...]  # of all treatments before they are shuffled, padded with 0 to MAX_SEATS
    num_patients: int
    goal: int
    physician: bool
    competitive: bool
    known: bool  # everybody knows the efficacies
    show_efficacies: bool  # the observation has them
    random_ties: bool
    pay_saved: bool
    at: tuple[int, ...]  # where each of `_blocks` begins


def _blocks(options: Options) -> tuple[Block, ...]:
    """The observation's blocks. A maester sees seats in turn order, its own first; a physician sees all treatments in order."""
    n, patients, physician = options.num_players, options.patients, options.mode == "physician"
    labels = options.treatment_names if physician else seat_labels(n)
    arguing = 0 if physician else n
    treated = Block("treated", n, "patients treated / num_patients", (labels,), high=patients)
    saved = Block("saved", n, "patients saved / num_patients", (labels,), high=patients)
    if options.competitive:
        treated = treated._replace(meaning=f"n patients treated as n / (n + {MANY_PATIENTS})", half=MANY_PATIENTS)
        saved = saved._replace(meaning="patients saved / goal", high=options.to_win)
    return (
        treated,
        saved,
        Block("kept", arguing, "die kept in this argument / 6; 0 for seats that kept none", (labels,), high=FACES),
        Block("spoken", arguing, "1 for the seats that have spoken", (labels,), flags=True),
        Block("to_move", arguing, "1 for the seat to move", (labels,), flags=True),
        Block("left", 1, "patients left / num_patients", high=patients),
        Block("efficacy", n if options.open_efficacies else 0, f"efficacy / {FACES}", (labels,), high=FACES),
    )


def _params(options: Options) -> Params:
    n = options.num_players
    return Params(
        num_players=n,
        num_actions=n if options.mode == "physician" else 2,
        efficacies=options.efficacies + (0,) * (MAX_SEATS - n),
        num_patients=options.patients,
        goal=options.to_win,
        physician=options.mode == "physician",
        competitive=options.competitive,
        known=options.known,
        show_efficacies=options.open_efficacies,
        random_ties=options.ties == "random",
        pay_saved=options.pays == "saved",
        at=offsets(_blocks(options)),
    )


def _facts(options: Options) -> Facts:
    n = options.num_players
    physician = options.mode == "physician"
    most = 1.0
    if options.pays == "saved":
        most = float(options.to_win if options.competitive else options.patients)
    return Facts(
        num_seats=1 if physician else n,
        num_actions=n if physician else 2,
        min_return=-1.0 / (n - 1) if options.competitive and options.pays == "win" else 0.0,
        max_return=most,
        zero_sum=options.competitive and options.pays == "win",
        simultaneous=False,
        max_steps=options.patients * (1 if physician else n),
        cooperative=not options.competitive,
        winning_return=None if options.competitive else float(options.to_win) if options.pays == "saved" else 1.0,
    )


# --- state ------------------------------------------------------------------------------------------------------

STATE = state_dtype(
    [
        ("efficacy", np.int8, (MAX_SEATS,)),  # hidden unless `known`: pips at which each treatment saves
        ("treated", np.int16, (MAX_SEATS,)),  # patients that had each treatment
        ("saved", np.int16, (MAX_SEATS,)),  # those of these patients that recovered
        ("patients", np.int16),  # patients treated, all together
        ("dice", np.int16, (MAX_SEATS, 8)),  # each maester's last throw: how many dice show each face (two spare entries)
        ("strength", np.int8, (MAX_SEATS,)),  # die kept in this argument, or SILENT
        ("argued", np.int8, (MAX_SEATS,)),  # 1 for maesters that threw dice for this patient
        ("opener", np.int8),  # the seat that speaks first on this patient
        ("spoken", np.int8),  # number of seats that have spoken on this patient
        ("last_seat", np.int8),  # the seat whose treatment the last patient got, or NOBODY
        ("last_strength", np.int8),  # the die that won that argument; SILENT for a physician's choice
        ("last_recovered", np.int8),  # 1 if that patient recovered; the die itself would reveal more about the efficacy
    ]
)


# --- kernels ----------------------------------------------------------------------------------------------------


@kernel(allocates=False)
def deal(params, state):
    """Start a game. Modified in place."""
    start_game(state)
    for seat in range(MAX_SEATS):
        state["efficacy"][seat] = params.efficacies[seat]
        state["treated"][seat] = 0
        state["saved"][seat] = 0
        for face in range(8):
            state["dice"][seat, face] = 0
    for seat in range(params.num_players - 1, 0, -1):
        other = below(state, seat + 1)
        kept = state["efficacy"][seat]
        state["efficacy"][seat] = state["efficacy"][other]
        state["efficacy"][other] = kept
    state["patients"] = 0
    state["last_seat"] = NOBODY
    state["last_strength"] = SILENT
    state["last_recovered"] = 0
    state["opener"] = 0 if params.physician else below(state, params.num_players)
    _next_patient(state)


@kernel(allocates=False)
def _next_patient(state):
    for seat in range(MAX_SEATS):
        state["strength"][seat] = SILENT
        state["argued"][seat] = 0
    state["spoken"] = 0
    state["seat"] = state["opener"]


@kernel(allocates=False)
def argue(state, seat):
    """The maester throws its dice and keeps one: sets its `dice` and `strength`. Modified in place."""
    counts = state["dice"][seat]
    roll_counts(state, np.int64(state["treated"][seat]) + 1, FACES, counts)
    to_remove = np.int64(state["saved"][seat])
    kept = 0
    while kept < FACES - 1 and counts[kept] <= to_remove:
        to_remove -= counts[kept]
        kept += 1
    state["strength"][seat] = kept + 1
    state["argued"][seat] = 1


@kernel(allocates=False)
def settle(params, state):
    """Return the winner among all maesters whose `strength` is not SILENT; settle ties by `ties`. Modified in place."""
    strength = state["strength"]
    while True:
        best = 0
        tied = 0
        winner = 0
        for seat in range(params.num_players):
            if strength[seat] > best:
                best = strength[seat]
                tied = 0
            if strength[seat] == best:
                winner = seat
                tied += 1
        if tied == 1:
            return winner
        if params.random_ties:
            return _nth_with(state, best, below(state, tied))
        for seat in range(params.num_players):
            if strength[seat] == best:
                argue(state, seat)
            else:
                strength[seat] = SILENT


@kernel(allocates=False)
def _nth_with(state, strength, n):
    """The n-th maester, from 0, who keeps a die of this strength."""
    for seat in range(MAX_SEATS):
        if state["strength"][seat] == strength:
            if n == 0:
                return seat
            n -= 1
    return -1


@kernel(allocates=False)
def argue_all(params, state):
    """All maesters argue over a patient; returns whose treatment wins. Modified in place."""
    for seat in range(params.num_players):
        argue(state, seat)
    return settle(params, state)


@kernel(allocates=False, inline=True)
def legal(params, state, mask):
    """Mark the legal actions. Modified in place."""
    if params.physician:
        for treatment in range(params.num_players):
            mask[treatment] = 1
        return
    mask[ARGUE] = 1
    if not must_argue(params, state):
        mask[YIELD] = 1


@kernel(allocates=False)
def must_argue(params, state):
    """Whether the maester to speak is the last and all others have yielded."""
    if state["spoken"] < params.num_players - 1:
        return False
    argued = 0
    for seat in range(params.num_players):
        argued += state["argued"][seat]
    return argued == 0


@kernel(allocates=False, inline=True)
def random_action(params, state):
    """A uniformly random legal action. The state's stream is modified in place."""
    if params.physician:
        return below(state, params.num_players)
    must = must_argue(params, state)
    drawn = below(state, 1 if must else 2)  # always one draw, as from a mask
    return np.int64(ARGUE) if must else drawn


@kernel(allocates=False)
def likelihood(state, way, num_players):
    """The likelihood of all results so far if the treatments have the efficacies `way` (players,), up to a constant factor."""
    chance = 1.0
    for i in range(num_players):
        saved = state["saved"][i]
        chance *= _POWERS[way[i], saved] * _POWERS[FACES - way[i], state["treated"][i] - saved]
    return chance


@kernel(allocates=False)
def chance_to_recover(params, state, treatment):
    """The chance that a patient with this treatment recovers, given all that everybody knows."""
    if params.known:
        return state["efficacy"][treatment] / FACES
    n = params.num_players
    total = 0.0
    pips = 0.0
    for k in range(_NUM_WAYS[n]):
        chance = likelihood(state, _WAYS[n, k], n)
        total += chance
        pips += chance * _WAYS[n, k, treatment]
    return pips / (total * FACES)


@kernel(allocates=False, inline=True)
def play(params, state, action):
    """Treat a patient (physician), or argue or yield, and go on to the next decision. Modified in place."""
    _play(params, state, action, False)


@kernel(allocates=False)
def play_expected(params, state, action):
    """As `play`, but a patient pays its expected reward, given all results so far. Modified in place."""
    _play(params, state, action, True)


@kernel(allocates=False, inline=True)
def _play(params, state, action, pay_mean):
    clear_rewards(state)
    if params.physician:
        _treat(params, state, action, pay_mean)
        return
    speaker = np.int64(state["seat"])
    if action == ARGUE:
        argue(state, speaker)
    state["spoken"] += 1
    if state["spoken"] < params.num_players:
        state["seat"] = next_seat(speaker, params.num_players)
        return
    _treat(params, state, settle(params, state), pay_mean)
    if state["seat"] != OVER:
        state["opener"] = next_seat(np.int64(state["opener"]), params.num_players)
        _next_patient(state)


@kernel(allocates=False)
def _treat(params, state, treatment, pay_mean):
    """Treat the patient, set the rewards, and end the game if it is decided or this was the last patient."""
    chance = chance_to_recover(params, state, treatment) if pay_mean else 0.0
    recovers = roll(state, np.int64(FACES)) <= state["efficacy"][treatment]
    share = chance if pay_mean else np.float64(recovers)  # of the reward for a recovery
    state["last_seat"] = treatment
    state["last_strength"] = state["strength"][treatment]
    state["last_recovered"] = recovers
    state["treated"][treatment] += 1
    state["patients"] += 1
    over = state["patients"] == params.num_patients
    seats = 1 if params.physician else params.num_players
    if params.competitive:
        decides = state["saved"][treatment] + 1 >= params.goal
        if params.pay_saved:
            state["rewards"][treatment] = share
        elif decides:
            for seat in range(seats):
                state["rewards"][seat] = 0.0 - share / (params.num_players - 1)  # 0 and not -0 where nobody wins yet
            state["rewards"][treatment] = share
        over = over or (decides and recovers)
    else:
        missing = params.goal  # patients still to save
        for seat in range(params.num_players):
            missing -= state["saved"][seat]
        if params.pay_saved:
            pay = share
        elif not over or missing > 1:
            pay = 0.0
        elif missing == 1:
            pay = share
        else:
            pay = 1.0
        for seat in range(seats):
            state["rewards"][seat] = pay
    state["saved"][treatment] += recovers
    if over:
        end_game(state, seats)


@kernel(allocates=False, inline=True)
def observe(params, state, seat, out):
    """Write what the seat sees, as `_blocks` lays it out. Modified in place."""
    treated_at, saved_at, kept_at, spoken_at, mover_at, left_at, efficacy_at = params.at
    n = params.num_players
    patients = np.float32(params.num_patients)
    for other in range(n):
        at = other
        if not params.physician:
            at = relative_seat(other, seat, n)
            out[kept_at + at] = state["strength"][other] / np.float32(FACES)
            out[spoken_at + at] = relative_seat(other, np.int64(state["opener"]), n) < state["spoken"]
            out[mover_at + at] = state["seat"] == other
        if params.show_efficacies:
            out[efficacy_at + at] = state["efficacy"][other] / np.float32(FACES)
        treated, saved = np.float32(state["treated"][other]), np.float32(state["saved"][other])
        if params.competitive:
            out[treated_at + at] = treated / (treated + np.float32(MANY_PATIENTS))
            out[saved_at + at] = saved / np.float32(params.goal)
        else:
            out[treated_at + at] = treated / patients
            out[saved_at + at] = saved / patients
    out[left_at] = np.float32(params.num_patients - state["patients"]) / patients


@kernel(allocates=False)
def reroll_hidden(params, state, seat):
    """Draw the efficacies again from their posterior, given all treatments and recoveries. Modified in place."""
    if params.known:
        return
    n = params.num_players
    total = 0.0
    for k in range(_NUM_WAYS[n]):
        total += likelihood(state, _WAYS[n, k], n)
    at = uniform(state) * total
    drawn = 0
    for k in range(_NUM_WAYS[n]):
        chance = likelihood(state, _WAYS[n, k], n)
        if chance > 0.0:  # rounding must not draw an impossible assignment
            drawn = k
            at -= chance
            if at < 0.0:
                break
    for i in range(n):
        state["efficacy"][i] = _WAYS[n, drawn, i]


# --- the largest picture, positions (words and other pictures: `pictures`) --------------------------------------


def _full_picture(options: Options) -> Picture:
    """One maester with a die for each patient and one more, the others with one die each.

    A maester with t patients throws t + 1 dice. In lines of k dice, p patients shared out in any way take at most p // k
    lines and one for each maester, and this position takes as many. The note on the last patient has the longest names.
    """
    state = np.zeros((), STATE)
    state["seat"] = OVER
    state["patients"] = options.patients
    state["saved"] = state["treated"] = 1
    state["saved"][0] = state["treated"][0] = options.patients + 1
    state["efficacy"] = FACES - 1
    if options.mode == "maesters":
        state["argued"][: options.num_players] = 1
        state["dice"][: options.num_players, 0] = 1
        state["dice"][0, 0] = options.patients + 1
    state["last_recovered"] = 1
    lengths = [len(pictures.maester(options, i)) + len(options.treatment_names[i]) for i in range(options.num_players)]
    state["last_seat"] = int(np.argmax(lengths))
    shown_last = pictures.picture(options, state, None)
    most = options.patients + 1
    rows = [
        row._replace(detail=pictures.detail_of(options, state, i, None, most, most)) if i < options.num_players else row
        for i, row in enumerate(shown_last.rows)
    ]
    return shown_last._replace(rows=tuple(rows))


def _arrange(options: Options, state: Any, wanted: Mapping[str, Any]) -> None:
    """`{"efficacies": [1, 4, 1]}` deals the treatments' efficacies."""
    given = wanted["efficacies"]
    check_list("efficacies", given, options.num_players, "numbers of pips")
    for value in given:
        check_range("efficacies", value, 1, FACES - 1)
    if sorted(given) != sorted(options.efficacies):
        raise ValueError(f"efficacies must be an order of {', '.join(map(str, options.efficacies))}, not {shown(given)}")
    state["efficacy"][: options.num_players] = given


GAME = Game.of(
    globals() | vars(pictures),
    name="shakes",
    env_name="Shakes",
    title="The Shakes",
    reset_options=("efficacies",),
    gym_options={"mode": "physician"},
    first_game={"num_patients": 4, "goal": 2},
)
