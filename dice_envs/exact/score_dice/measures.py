"""Exact best responses in score dice to a player who always plays its highest die, and `measure`.

Values are exact up to the rounding of floating point: nothing is sampled.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter, defaultdict
from typing import Any

import numpy as np

from dice_envs.core.game import Variant
from dice_envs.core.kernel import kernel
from dice_envs.exact import REPEATS, ActionValues, Effort, Measurement
from dice_envs.exact.intervals import Z95
from dice_envs.exact.score_dice.hands import (
    NONE_TIED,
    WHOLE_GAME,
    Die,
    Range,
    Sizes,
    Tied,
    VariantRules,
    deals,
    hands,
    known_ranges,
    settle,
)
from dice_envs.exact.score_dice.policy import (
    answers_at_random,
    best_response,
    count_paths,
    count_sets,
    in_games,
    policy,
    rolls,
    shown_by_any,
    shown_by_highest,
)
from dice_envs.games.score_dice import HELD, Options, lowest_face

__all__ = ["ResponseToHighest", "count_situations", "response_to_highest"]

# --- best response ----------------------------------------------------------------------------------------------------


@functools.cache
def next_highest(dice: tuple[Range, ...]) -> tuple[tuple[float, Die, tuple[Range, ...]], ...]:
    """Return what a player of its highest die can show next: (chance, die, what is then known of the others).

    `dice` are in the order of their places.
    """
    found: dict[tuple[Die, tuple[Range, ...]], float] = defaultdict(float)
    for i, die in enumerate(dice):
        for face in range(die.low, die.high + 1):
            chance = 1 / (die.high - die.low + 1)
            rest = []
            for j, other in enumerate(dice):
                if j == i:
                    continue
                high = min(other.high, face - (j < i))  # equal faces go by place
                chance *= max(0, high - other.low + 1) / (other.high - other.low + 1)
                rest.append(Range(other.low, high, other.size))
            if chance > 0:
                found[Die(face, die.size, die.low), tuple(rest)] += chance
    return tuple((chance, die, rest) for (die, rest), chance in found.items())


class ResponseToHighest(VariantRules):
    """The exact best response to a player who always shows its highest die, of equal ones the first.

    With open hands this is Tian Ji's horse race. With hidden hands each die that the other shows is an upper bound for
    the rest.

    Args:
        options: of the game.
        seat: the responding player's.
    """

    def __init__(self, options: Options, seat: int) -> None:
        super().__init__(options, seat)
        self._pools = options.pools if seat == 0 else options.pools[::-1]
        self._values: dict[Any, float] = {}
        self._looping: dict[Any, float] = {}  # values that depend on the value assumed in `_loop`
        self._loop: tuple[Any, float] | None = None  # the roll whose value is being iterated, and its current value
        self._rolls: dict[Any, float] = {}
        self._by_situation: dict[bytes, np.ndarray] = {}  # see `action_values`

    def value(self, own: tuple[Die, ...], other: tuple[Range, ...], score: int = 0, tied: Tied = NONE_TIED) -> float:
        """Return the expected reward still to come, with best play.

        Args:
            own: dice in hand, in any order.
            other: what is known of the other's dice in hand, in the order of their places (if all faces are known: the
                highest first, the larger of equal ones).
            score: the player's points minus the other's.
            tied: dice of this roll that tied, if ties are rolled again.
        """
        if self.decided(score, len(own) + len(tied[0])):
            return self.reward(score)
        if not own:
            return self.roll_value(*tied, score) if tied[0] else self.reward(score)
        own = tuple(sorted(own, reverse=True))
        key = (own, other, self.carried(score), tied)
        # The whole roll can come again only while every pair of it has tied.
        memory = self._looping if self._loop and self._loop[0] == self._roll_key(own, other, tied, score) else self._values
        if key not in memory:
            memory[key] = max(value for _, value in self.choices(own, other, score, tied))
        return memory[key]

    def choices(
        self, own: tuple[Die, ...], other: tuple[Range, ...], score: int = 0, tied: Tied = NONE_TIED
    ) -> list[tuple[Die, float]]:
        """Return every distinct die that can be shown, and its value. Arguments as for `value`."""
        result = []
        for die in dict.fromkeys(own):
            at = own.index(die)
            rest = own[:at] + own[at + 1 :]
            value = 0.0
            for chance, shown, others in next_highest(other):
                points = self.points(die.face, shown.face)
                value += chance * (self.paid(points) + self.value(rest, others, score + points, self.tie(die, shown, tied)))
            result.append((die, value))
        return result

    def _roll_key(self, own: tuple[Die, ...], other: tuple[Range, ...], tied: Tied, score: int) -> Any:
        mine = tuple(sorted((*tied[0], *(die.size for die in own)), reverse=True))
        theirs = tuple(sorted((*tied[1], *(die.size for die in other)), reverse=True))
        return self.roll_key(mine, theirs, score)

    def roll_value(self, own: Sizes, other: Sizes, score: int = 0) -> float:
        """Return the value before dice of these sizes, equally many on either side, are rolled."""
        key = self.roll_key(own, other, score)
        if self._loop and self._loop[0] == key:
            return self._loop[1]
        if key not in self._rolls:
            outer = self._loop, self._looping

            def once(value: float) -> float:
                self._loop, self._looping = (key, value), {}
                pools = self._pools if key == WHOLE_GAME else (own, other)
                return self._expected(*pools, score)

            self._rolls[key] = settle(once) if self.options.ties == "reroll" else once(0.0)
            self._loop, self._looping = outer
        return self._rolls[key]

    def _expected(self, own: Sizes, other: Sizes, score: int) -> float:
        """Return the value before these pools are rolled and spare dice dropped."""
        columns = min(len(own), len(other))
        total = 0.0
        for mine, chance_mine in deals(own, columns):
            for dice, chance_hand in hands(mine).items():
                hand = tuple(Die(die.face, die.size) for die in dice)  # `low` no longer matters
                for theirs, chance_theirs in deals(other, columns):
                    total += chance_mine * chance_hand * chance_theirs * self._seen_value(hand, theirs, score)
        return total

    def _seen_value(self, own: tuple[Die, ...], other: tuple[Range, ...], score: int) -> float:
        """Return the value after the roll. With open hands the other's dice are seen, too."""
        if not self.options.open_hands:
            return self.value(own, other, score)
        return sum(
            chance * self.value(own, tuple(Range(die.face, die.face, die.size) for die in hand), score)
            for hand, chance in hands(other).items()
        )

    def game_value(self) -> float:
        """Return the expected reward of a whole game for the responding player."""
        own, other = self._pools
        columns = self.options.num_columns
        return self.roll_value(own[:columns], other[:columns])

    def action_values(self, variant: Variant, states: np.ndarray) -> np.ndarray:
        """Return the expected reward still to come for each die shown now, with best play afterwards, (n, actions) float64.

        −inf for dice that are not in hand. The other is assumed to show its highest die from now on, even if it has not done
        so before.

        Args:
            variant: the game, with the options of this response.
            states: (n,) states in which the seat is to choose; what it cannot see is not read.
        """
        dice = variant.params.num_actions
        found = np.zeros((len(states), _SITUATION * dice + 1), np.int8)
        places = np.zeros((len(states), dice), np.int64)
        _write_situations(variant.params, states, self.seat, found, places)
        as_bytes = found.view(f"S{found.shape[1]}").reshape(-1)  # far faster to sort than rows
        _, first, which = np.unique(as_bytes, return_index=True, return_inverse=True)
        values = np.array([self._values_in(row) for row in found[first]]).reshape(-1, dice)[which]
        out = np.full((len(states), dice), -np.inf)
        in_hand = np.isfinite(values)
        out[np.nonzero(in_hand)[0], places[in_hand]] = values[in_hand]
        return out

    def _values_in(self, row: np.ndarray) -> np.ndarray:
        """Return the value of each own die of a row of `_write_situations`, (dice,) float64; −inf without a die."""
        key = row.tobytes()
        if key not in self._by_situation:
            parts = (part[part > 0].tolist() for part in row[:-1].reshape(_SITUATION, -1))
            faces, sizes, lows, highs, others, own_tied, other_tied = parts
            own = tuple(map(Die, faces, sizes))
            values = dict(
                self.choices(own, tuple(map(Range, lows, highs, others)), int(row[-1]), (tuple(own_tied), tuple(other_tied)))
            )
            self._by_situation[key] = np.full(len(row) // _SITUATION, -np.inf)
            self._by_situation[key][: len(own)] = [values[die] for die in own]
        return self._by_situation[key]


@functools.lru_cache(maxsize=16)
def response_to_highest(options: Options, seat: int) -> ResponseToHighest:
    """Return the response, cached with all values that it has computed so far."""
    return ResponseToHighest(options, seat)


_SITUATION = 7  # parts of a situation, each with an entry for every die of the larger pool; the score follows


@kernel
def _write_situations(params, states, seat, out, places):
    """Write all that the rest of the game depends on, as the seat knows it. The last two are modified in place.

    Parts of a row of `out`, padded with zeros: faces of the seat's dice in hand, the highest first; their sizes; of the
    other's dice in hand the lowest face each can show, the highest, and the size; sizes of the dice that tied and are
    rolled again, the seat's and the other's. Then the score. `places` holds the places of the seat's dice.
    """
    dice = params.num_actions
    for i in range(len(states)):
        state = states[i]
        row = out[i]
        held = 0
        for face in range(params.most_sides, 0, -1):
            for die in range(dice):  # the larger of equal ones comes first, as pools are kept
                if state["status"][seat, die] == HELD and state["faces"][seat, die] == face:
                    row[held] = face
                    row[dice + held] = params.sizes[seat][die]
                    places[i, held] = die
                    held += 1
        if params.open_hands:
            _write_known(params, state, 1 - seat, row[2 * dice :])
        else:
            _write_ranges(params, state, 1 - seat, row[2 * dice :])
        if params.reroll:
            for part in range(2):
                _write_tied(params, state, seat if part == 0 else 1 - seat, row[(5 + part) * dice :])
        if not params.pay_score:
            row[_SITUATION * dice] = state["score"] if seat == 0 else -state["score"]


@kernel
def _write_known(params, state, seat, out):
    dice = params.num_actions
    held = 0
    for face in range(params.most_sides, 0, -1):
        for die in range(dice):
            if state["status"][seat, die] == HELD and state["faces"][seat, die] == face:
                out[held] = face
                out[dice + held] = face
                out[2 * dice + held] = params.sizes[seat][die]
                held += 1


@kernel
def _write_ranges(params, state, seat, out):
    dice = params.num_actions
    held = 0
    possible = True
    for die in range(dice):
        if state["status"][seat, die] == HELD:
            out[held] = lowest_face(params, state, seat, die)
            out[dice + held] = _highest_face(params, state, seat, die)
            out[2 * dice + held] = params.sizes[seat][die]
            possible &= out[held] <= out[dice + held]
            held += 1
    if not possible:
        for k in range(held):
            out[dice + k] = out[2 * dice + k]


@kernel
def _highest_face(params, state, seat, die):
    """The highest face that a die in hand can show if its owner has always shown its highest die."""
    most = np.int64(params.sizes[seat][die])
    for column in range(state["column"]):
        shown = state["shown"][seat, column]
        most = min(most, np.int64(state["faces"][seat, shown]) - (die < shown))
    return most


@kernel
def _write_tied(params, state, seat, out):
    tied = 0
    for size in range(params.most_sides, 0, -1):
        for column in range(state["column"]):
            own, other = state["shown"][seat, column], state["shown"][1 - seat, column]
            if state["faces"][seat, own] == state["faces"][1 - seat, other] and params.sizes[seat][own] == size:
                out[tied] = size
                tied += 1


# --- what a choice is worth -----------------------------------------------------------------------------------------

MOST_MATCHED = 12  # dice in hand for which all pairings with the other's are added up


def action_values(variant: Variant, state: Any, in_passing: bool = False) -> ActionValues:
    """Return the value of each die in hand against play at random, which is an equilibrium: the same for all.

    Whatever the seat does, each of its dice meets a random one of the other's that are left. See
    `dice_envs.exact.GameActionValues`.
    """
    options = variant.options
    seat = int(state["seat"])
    if options.ties == "reroll":
        raise ValueError("ties must be 'none' or 'a' for the value of a choice, not 'reroll'")
    rules = VariantRules(options, seat)
    held = np.flatnonzero(state["status"][seat] == HELD)
    others = [known for _, known in known_ranges(variant, state, 1 - seat)]
    count = len(held)
    if options.reward == "win" and count > MOST_MATCHED:
        raise ValueError(f"action values need at most {MOST_MATCHED} dice in hand, not {count}")
    chances = np.zeros((count, count, 3))  # P(own die i scores −1, 0 or 1 against the other's die j)
    for (i, place), (j, known) in itertools.product(enumerate(held), enumerate(others)):
        for face in range(known.low, known.high + 1):
            points = rules.points(int(state["faces"][seat, place]), face)
            chances[i, j, 1 + points] += 1 / (known.high - known.low + 1)
    if options.reward == "score":
        value = float((chances[:, :, 2] - chances[:, :, 0]).sum()) / count
    else:
        score = int(state["score"]) if seat == 0 else -int(state["score"])
        value = sum(chance * rules.reward(score + points) for points, chance in enumerate(_paired(chances), -count))
    values, mix = np.full(variant.facts.num_actions, np.nan), np.zeros(variant.facts.num_actions)
    values[held], mix[held] = value, 1 / count
    unit = "wins minus losses" if options.reward == "win" else "points to come"
    note = "against play at random, which is an equilibrium: every die is worth the same against it"
    return ActionValues(values, unit, note, mix)


def _paired(chances: np.ndarray) -> np.ndarray:
    """Return P(the pairs score −k … k together) if all pairings of k dice a side are equally likely, (2k + 1,) float64."""
    count = len(chances)
    sums = {0: np.ones(1)}  # by the set of the other's dice that have been met, as bits: sums over all ways to meet them
    for row in chances:
        longer: dict[int, np.ndarray] = {}
        for met, before in sums.items():
            for j in range(count):
                if not met >> j & 1:
                    after = np.convolve(before, row[j])
                    longer[met | 1 << j] = longer.get(met | 1 << j, 0) + after
        sums = longer
    result: np.ndarray = sums[(1 << count) - 1] / math.factorial(count)
    return result


# --- the measure --------------------------------------------------------------------------------------------------

MOST_SITUATIONS = 250_000  # for which one seat's response to sorted play is computed, in half a minute
MOST_SETS = 4_000_000  # information sets of one seat against sorted play, at all of which an agent is asked
FEW_SETS = 50_000  # the same for an agent with random answers; and for the exploitability of any agent
MOST_LISTED = 50_000_000  # ways to play a roll, all hands and orders, for which a best response to an agent is computed
SAMPLE = 20_000  # games played where there are too many information sets
GAMES_AT_ONCE = 2_000


def measure(variant: Variant, agent: Any, effort: Effort) -> list[Measurement]:
    """Measure reward against `highest`, which shows its highest die, and exploitability. See `dice_envs.exact.GameMeasure`.

    Playing at random is an equilibrium with any pools, so its exploitability is 0. The headline is therefore the reward
    won from sorted play, mean of both seats, compared with the best response to it. A random player wins 0 by this mean,
    and so does `highest` itself.

    An agent's reward is that of the best response, minus what each of its choices loses against the best choice, given
    best play afterwards. With at most MOST_SETS information sets all choices are evaluated (unless a smaller sample is
    asked for). With more, and where tied dice are rolled again, the choices in random games are evaluated; the best
    response loses exactly 0 there, too. 4d6 against 4d6 has 3.5 million information sets, ten seconds for a fast agent; 5d6
    are sampled.

    Exploitability is measured up to FEW_SETS information sets, about those of 3d8 against 3d8, and if tied dice are not
    rolled again. For random answers it lies between two bounds. On average a best response to one sample of the answers wins
    more from that sample than can be won from the agent, and less from another sample. The middle is reported.

    Raises:
        ValueError: the best response to sorted play takes too long to compute; or the sample is too small.
    """
    options = variant.options
    check_response(options)
    if effort.sample == 1:
        raise ValueError("sample must be at least 2 games, not 1: a single game has no error")
    optimum = sum(response_to_highest(options, seat).game_value() for seat in range(2)) / 2
    asked_for = effort.sample or math.inf
    sets = _count_sets(variant, to_highest=True)
    is_random = FEW_SETS < sets <= MOST_SETS and answers_at_random(variant, agent, effort.seed)
    if sets <= min(FEW_SETS if is_random else MOST_SETS, asked_for):
        lost, error = _loss_in_all(variant, agent, effort), 0.0
        note = f"all {sets:,} information sets of each seat"
    else:
        lost, error, games = _loss_in_games(variant, agent, effort)
        note = f"a random sample of {games:,} games from each seat, whose choices are compared with exact values"
    all_sets = _count_sets(variant, to_highest=False)
    small = all_sets <= FEW_SETS and count_paths(variant) <= MOST_LISTED
    if not small or all_sets > asked_for:
        reason = "a smaller sample is asked for" if small else "the pools are too large"
        reason = "tied dice are rolled again" if options.ties == "reroll" else reason
        note = f"{note}; exploitability is not measured, since {reason}"
        return [Measurement("reward against highest", optimum - lost, optimum, lost, error, "return", note)]
    won, won_error = _exploitability(variant, agent, effort.seed)
    return [
        Measurement("reward against highest", optimum - lost, optimum, lost, error, "return", note),
        Measurement(
            "exploitability", won, 0.0, max(0.0, won), won_error, "return", f"all {all_sets:,} information sets of each seat"
        ),
    ]


def check_response(options: Options) -> None:
    """Raise ValueError if the best response to sorted play would take too long."""
    situations = max(count_situations(options, seat) for seat in range(2))
    if situations > MOST_SITUATIONS:
        raise ValueError(
            f"pool_a={options.pool_a} and pool_b={options.pool_b} are too large: the best response to sorted play has up to "
            f"{situations:,.0f} situations, and at most {MOST_SITUATIONS:,} are computed"
        )


def count_situations(options: Options, seat: int) -> float:
    """Return an upper bound on the number of situations for which the response to sorted play is computed.

    If tied dice are rolled again, it is a rough estimate.
    """
    own, other = options.pools if seat == 0 else options.pools[::-1]
    spare = len(other) - options.num_columns
    own_hands, other_hands = _count_hands(own), _count_hands(other)
    sizes = _count_choices([[1.0] * (count + 1) for count in Counter(other).values()])
    total = _count_deals(own, options) * own_hands[options.num_columns] * _count_deals(other, options)
    for column in range(options.num_columns):
        left = options.num_columns - column
        if options.open_hands:
            ranges = other_hands[left]
        else:  # the die shown last bounds those left, by its face and by its place among them
            ranges = max(other) * min(sizes[left] * (left + 1), math.comb(len(other), left) * (column + spare))
            ranges *= max(other) * (options.num_columns + 1) if spare else 1  # and so does the highest die dropped
        total += own_hands[left] * ranges * (1 if options.reward == "score" else 2 * column + 1)
    return float(total)


def _count_deals(pool: Sizes, options: Options) -> float:
    """Return how many times `deals` yields, at most."""
    spare = len(pool) - options.num_columns
    return math.comb(len(pool), spare) * spare * max(pool) if spare else 1


def _count_hands(pool: Sizes) -> np.ndarray:
    """Count the different hands that k of these dice can make, by k, (dice + 1,) float64."""
    kinds = Counter(pool).items()
    return _count_choices([[math.comb(size + held - 1, held) for held in range(count + 1)] for size, count in kinds])


def _count_choices(kinds: list[list[float]]) -> np.ndarray:
    """Count the ways to take n dice, by n, if k dice of kind i can be taken in kinds[i][k] ways."""
    return functools.reduce(np.convolve, (np.array(ways, np.float64) for ways in kinds))


def _count_sets(variant: Variant, to_highest: bool) -> float:
    """Return the larger `count_sets` of both seats; infinite if tied dice are rolled again, as later rolls are not listed."""
    if variant.options.ties == "reroll":
        return math.inf
    return max(count_sets(variant, seat, to_highest) for seat in range(2))


def _losses(variant: Variant, states: np.ndarray, seat: int, chances: np.ndarray) -> np.ndarray:
    """Return what choices with these probabilities (n, actions) lose against `highest`, (n,) float64.

    They are compared with the best choice, given best play afterwards.
    """
    values = response_to_highest(variant.options, seat).action_values(variant, states)
    behind = np.where(chances > 0, values.max(axis=1, keepdims=True) - values, 0.0)
    return (chances * behind).sum(axis=1)


def _loss_in_all(variant: Variant, agent: Any, effort: Effort) -> float:
    """Return how much less than the best response the agent earns from `highest`, mean of both seats."""
    total = sum(int(count_sets(variant, seat, to_highest=True)) for seat in range(2))
    lost = 0.0

    def look(seat: int, chance: float, states: np.ndarray, chances: np.ndarray, weights: np.ndarray) -> None:
        nonlocal lost
        lost += chance * float(weights @ _losses(variant, states, seat, chances))
        effort.done(len(states), total)

    for seat, roll in itertools.product(range(2), rolls(variant)):
        shown = shown_by_highest(roll.hands[1 - seat], variant.options.open_hands)
        policy(variant, agent, seat, roll, shown, effort.seed, functools.partial(look, seat, roll.chance))
    return lost / 2


def _loss_in_games(variant: Variant, agent: Any, effort: Effort) -> tuple[float, float, int]:
    """Return the same from random games, its 95 % half-width, and the number of games.

    An agent with random answers gets a tenth of the games and no error: it is measured ten times, and the error comes from
    these repeats.
    """
    games = planned = effort.sample or SAMPLE
    at_once = min(GAMES_AT_ONCE, max(2, games // REPEATS))
    lost = np.zeros(0)
    while len(lost) < planned:
        count = min(at_once, planned - len(lost))
        seed = [effort.seed, len(lost)]
        by_seat = [in_games(variant, agent, seat, count, seed, functools.partial(_losses, variant)) for seat in range(2)]
        lost = np.append(lost, (by_seat[0] + by_seat[1]) / 2)
        is_random = getattr(agent, "is_random", False)
        planned = max(at_once, games // REPEATS) if is_random else games
        effort.done(count, planned)
    error = 0.0 if is_random else float(Z95 * lost.std(ddof=1) / math.sqrt(len(lost)))
    return float(lost.mean()), error, len(lost)


def _exploitability(variant: Variant, agent: Any, seed: int) -> tuple[float, float]:
    """Return what best responses win from the agent, mean of both seats, and the half-width of its interval.

    The game's values to the two seats cancel out, so this is also the gain above the value.
    """
    most = least = 0.0
    for seat, roll in itertools.product(range(2), rolls(variant)):
        shown = shown_by_any(roll.hands[1 - seat], variant.options.open_hands)
        policies = [policy(variant, agent, seat, roll, shown, seed)]
        if getattr(agent, "is_random", False):
            policies.append(policy(variant, agent, seat, roll, shown, seed + 1))
        won = best_response(variant, seat, roll, shown, policies)
        most += roll.chance * float(won[0]) / 2
        least += roll.chance * float(won[-1]) / 2
    return (most + least) / 2, (most - least) / 2
