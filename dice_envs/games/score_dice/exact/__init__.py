"""Score dice: score distributions as fractions, and best responses; agents measured and choices valued.

`distribution` counts scores exactly, `solvers` has best responses to sorted play. Here any agent's policy is found, at every
information set of a roll or in random games, and compared with them. Play at random is an equilibrium (see the agent
`shuffled`), so no other one is computed.

An agent may tell its dice apart by their places and may remember in which order they were shown. So an information set
is its hand, the order in which it has shown its dice, and the way in which the other's dice were shown. All information
sets are listed, and the agent is asked at those that its own choices can reach. Tied dice that are rolled again are not
followed here; random games are played to their end.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from dice_envs.agent import Turn, ask_probabilities, promises_of
from dice_envs.core.batch import dealt
from dice_envs.core.dice import derived_seeds, new_streams
from dice_envs.core.game import OVER, Variant
from dice_envs.core.kernel import kernel
from dice_envs.core.work import advance
from dice_envs.exact.agents import is_random, is_uniform
from dice_envs.exact.contract import REPEATS, RETURN, ActionValues, Effort, Measurement, ResponseValues, Unit
from dice_envs.exact.intervals import half_width
from dice_envs.games.score_dice import HELD, MAX_DICE, Options, lowest_face, pair_points
from dice_envs.games.score_dice.exact.distribution import count_choices, score_distribution
from dice_envs.games.score_dice.exact.distribution import solve_game as solve_game
from dice_envs.games.score_dice.exact.solvers import check_response, points_of, response_to_highest, values_against_highest

ROWS_AT_ONCE = 16_384  # information sets that an agent is asked about in one call
MOST_SETS = 4_000_000  # information sets of one seat against sorted play, at all of which an agent is asked
FEW_SETS = 50_000  # the same for an agent with random answers; and for the exploitability of any agent
MOST_LISTED = 50_000_000  # ways to play a roll, all hands and orders, for which a best response to an agent is computed
SAMPLE = 20_000  # games played where there are too many information sets
GAMES_AT_ONCE = 2_000
MOST_ROLLS = 50_000  # rolls of one pool, beyond which none are listed


class Roll(NamedTuple):
    """A roll as both players see it before the first column. Pairs hold A's part and B's."""

    chance: float
    state: np.ndarray  # (1,) with the spare dice dropped; faces of dice in hand are undefined
    places: tuple[np.ndarray, np.ndarray]  # (columns,) int64: of the dice in hand
    hands: tuple[np.ndarray, np.ndarray]  # (hands, columns) int8: the faces that they can show, all equally likely

    def faces(self, seat: int) -> list[int]:
        """Count the faces that each of the seat's dice in hand can show."""
        return (np.ptp(self.hands[seat], axis=0) + 1).tolist()


class Showing(NamedTuple):
    """The ways in which a player's dice can have been shown in the first c columns, as the other sees them."""

    order: np.ndarray  # (ways, c) int64: the dice shown, counted among those in hand before the first column
    faces: np.ndarray  # (ways, columns) int64: of all those dice; the lowest possible face for dice that are not seen
    parent: np.ndarray  # (ways,) int64: the way one column earlier
    chance: np.ndarray  # (ways,) float64: the share of all entries
    of: np.ndarray  # (entries,) int64: the way of each entry


# --- what can happen in a roll ------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=4)
def rolls(variant: Variant) -> tuple[Roll, ...]:
    """List all rolls that look different to both players before the first column; none if there are too many.

    None are listed if tied dice are rolled again, either, since later rolls would be missing.
    """
    pools = variant.options.pools
    if variant.options.ties == "reroll" or max(map(math.prod, pools)) > MOST_ROLLS:
        return ()
    found = []
    different = list(_different_rolls(variant))
    for state, ways in different:
        places, hands = [], []
        for seat, pool in enumerate(pools):
            places.append(np.flatnonzero(state["status"][0, seat, : len(pool)] == HELD))
            lows = [int(lowest_face(variant.params, state[0], seat, place)) for place in places[-1]]
            faces = (range(low, pool[place] + 1) for low, place in zip(lows, places[-1], strict=True))
            hands.append(np.array(list(itertools.product(*faces)), np.int8))
        chance = ways / sum(each for _, each in different)
        found.append(Roll(chance, state, (places[0], places[1]), (hands[0], hands[1])))
    return tuple(found)


def _different_rolls(variant: Variant) -> Iterator[tuple[np.ndarray, int]]:
    """Yield states (1,) that differ in the dice dropped, each with the number of the larger pool's rolls that lead to it."""
    pools = variant.options.pools
    state = dealt(variant, 1)
    if len(pools[0]) == len(pools[1]):
        yield state, 1
        return
    larger = int(len(pools[1]) > len(pools[0]))
    smaller = (1,) * variant.options.num_columns
    ways: Counter[bytes] = Counter()
    found: dict[bytes, np.ndarray] = {}
    for faces in itertools.product(*(range(1, size + 1) for size in pools[larger])):
        variant.arrange(state[0], {"dice": (smaller, faces) if larger == 1 else (faces, smaller)})
        held = state["status"] == HELD
        key = held.tobytes() + np.where(held, 0, state["faces"]).tobytes()
        ways[key] += 1
        found.setdefault(key, state.copy())
    for key, count in ways.items():
        yield found[key], count


def _orders(dice: int, length: int) -> np.ndarray:
    """Return all orders in which `length` of the dice can be shown, (orders, length) int64, sorted."""
    return np.array(list(itertools.permutations(range(dice), length)), np.int64)


def shown_by_highest(hands: np.ndarray, open_hands: bool) -> list[Showing]:
    """Return the dice that a player of its highest die can have shown before each column but the last. Entries: its hands."""
    order = np.argsort(-hands, axis=1, kind="stable")
    every = np.arange(len(hands))
    return _distinct(hands, [(every, order[:, :length]) for length in range(hands.shape[1] - 1)], open_hands)


def shown_by_any(hands: np.ndarray, open_hands: bool) -> list[Showing]:
    """Return the dice that any player can have shown before each column but the last. Entries: its hands, in all orders."""
    entries = []
    for length in range(hands.shape[1] - 1):
        orders = _orders(hands.shape[1], length)
        entries.append((np.repeat(np.arange(len(hands)), len(orders)), np.tile(orders, (len(hands), 1))))
    return _distinct(hands, entries, open_hands)


def _distinct(hands: np.ndarray, entries: list[tuple[np.ndarray, np.ndarray]], open_hands: bool) -> list[Showing]:
    """Return the ways that look different.

    Entries before each column: hand (m,), and the dice that it shows (m, c). All entries have equally many successors in
    the next column, and these are adjacent.
    """
    found: list[Showing] = []
    for which, order in entries:
        faces = hands[which]
        if not open_hands:
            seen = np.zeros(faces.shape, bool)
            np.put_along_axis(seen, order, True, axis=1)
            faces = np.where(seen, faces, hands.min(axis=0))
        rows, first, of = np.unique(np.concatenate([order, faces], axis=1), axis=0, return_index=True, return_inverse=True)
        of = of.reshape(-1)
        before = found[-1].of if found else np.zeros(len(which), np.int64)
        parent = before[first // (len(which) // len(before))]
        length = order.shape[1]
        found.append(Showing(rows[:, :length], rows[:, length:], parent, np.bincount(of) / len(of), of))
    return found


def count_sets(variant: Variant, to_highest: bool) -> list[float]:
    """Return the approximate number of each seat's information sets; infinite if no rolls are listed.

    The other player always shows its highest die if `to_highest`; otherwise it may play in any way.
    """
    totals = [0.0 if rolls(variant) else math.inf] * 2
    for seat, roll in itertools.product(range(2), rolls(variant)):
        hands, others = roll.hands[seat], roll.hands[1 - seat]
        columns = hands.shape[1]
        subsets = count_choices((1, faces) for faces in roll.faces(1 - seat))  # ways to show k of the other's dice
        for column in range(columns - 1):
            ways = len(others) if variant.options.open_hands else int(subsets[column])
            if not to_highest:
                ways *= math.perm(columns, column) if variant.options.open_hands else math.factorial(column)
            totals[seat] += len(hands) * math.perm(columns, column) * ways
    return totals


def count_paths(variant: Variant) -> float:
    """Count the ways to play a roll, all hands and orders; infinite if no rolls are listed."""
    columns = math.factorial(variant.options.num_columns)
    return sum(len(roll.hands[0]) * len(roll.hands[1]) * columns**2 for roll in rolls(variant)) or math.inf


# --- what an agent does -------------------------------------------------------------------------------------------


def _positions(variant: Variant, roll: Roll, seat: int, hands: Any, orders: Any, faces: Any, shown: Any) -> np.ndarray:
    """Return states in which the seat holds hands (n, columns) and has shown its dice in these orders (n, c).

    The other has shown `shown` (n, c) of dice with these faces (n, columns).
    """
    index = np.arange(len(hands))
    states = np.repeat(roll.state, len(hands))
    states["faces"][:, seat, roll.places[seat]] = hands
    states["faces"][:, 1 - seat, roll.places[1 - seat]] = faces

    def play(who: int, dice: np.ndarray) -> None:
        variant.kernels.play(states, index, roll.places[who][dice])

    for column in range(orders.shape[1]):
        for who in range(2):
            play(who, (orders if who == seat else shown)[:, column])
    if seat == 1:  # A has chosen, but B cannot see what
        left = np.ones((len(hands), len(roll.places[0])), bool)
        np.put_along_axis(left, shown, False, axis=1)
        play(0, left.argmax(axis=1))
    return states


def policy(
    variant: Variant,
    agent: Any,
    seat: int,
    roll: Roll,
    shown: list[Showing],
    seed: int,
    look: Callable[[np.ndarray, np.ndarray, np.ndarray], Any] = lambda states, chances, weights: None,
) -> list[np.ndarray]:
    """Return the agent's probabilities at the information sets that it can reach, for each column but the last.

    They are (hands, own orders, ways, columns) float64, by dice in hand before the first column; 0 at information sets that the
    agent does not reach. `shown` is what the other can have shown. `look` is called after each question to the agent, with the
    states (n,), its probabilities (n, actions), and the chance of each information set if all of the other's entries are
    equally likely (n,).
    """
    hands, places = roll.hands[seat], roll.places[seat]
    columns = len(places)
    streams = new_streams(seed, ROWS_AT_ONCE)
    reach = np.ones((len(hands), 1, len(shown[0].faces) if shown else 1))
    found: list[np.ndarray] = []
    for column, ways in enumerate(shown):
        orders = _orders(columns, column)
        if column:
            parents = np.arange(len(orders))[:, None] // (columns - column + 1)
            reach = reach[:, parents, ways.parent] * found[-1][:, parents, ways.parent, orders[:, -1:]]
        chances = np.zeros((*reach.shape, columns))
        rows = np.argwhere(reach > 0)
        for start in range(0, len(rows), ROWS_AT_ONCE):
            hand, order, way = rows[start : start + ROWS_AT_ONCE].T
            states = _positions(variant, roll, seat, hands[hand], orders[order], ways.faces[way], ways.order[way])
            asked = ask_probabilities(agent, Turn(variant, states, np.arange(len(states)), streams[: len(states)]))
            chances[hand, order, way] = asked[:, places]
            look(states, asked, reach[hand, order, way] * ways.chance[way] / len(hands))
        found.append(chances)
    return found


# --- what it does in games ----------------------------------------------------------------------------------------


def _lost_in_games(variant: Variant, agent: Any, seat: int, count: int, seed: tuple[int, int]) -> np.ndarray:
    """Return what the agent's choices lose in each of `count` random games against sorted play, (count,) float64.

    `seed` is that of the measurement, and the number of the first game. They fix the games and what is drawn from the agent's
    chances: agents with equal chances play the same games.
    """
    deals, answers, choices = np.random.SeedSequence(seed[0], spawn_key=seed[1:]).spawn(3)
    states, streams, rng = dealt(variant, count, deals), new_streams(answers, count), np.random.default_rng(choices)
    lost = np.zeros(count)
    while (going := np.flatnonzero(states["seat"] != OVER)).size:
        mine = going[states["seat"][going] == seat]
        others = going[states["seat"][going] != seat]
        masks = np.empty((len(mine), variant.facts.num_actions), np.int8)
        variant.kernels.legal(states, mine, masks)
        chances = masks.astype(np.float64)
        free = np.flatnonzero(masks.sum(axis=1) > 1)  # the agent is asked where it has a choice
        if len(free):
            own = streams[mine[free]]
            chances[free] = ask_probabilities(agent, Turn(variant, states, mine[free], own))
            streams[mine[free]] = own
        lost[mine] += _losses(variant, states[mine], chances)
        drawn = rng.random(count, np.float32)[mine]  # at most 1 − 2**-24: below a rounded sum of chances
        variant.kernels.play(states, mine, (chances.cumsum(axis=1) > drawn[:, None]).argmax(axis=1))
        hands = np.where(states["status"][others, 1 - seat] == HELD, states["faces"][others, 1 - seat], 0)
        variant.kernels.play(states, others, hands.argmax(axis=1))  # the first of equal ones
    return lost


# --- best response ------------------------------------------------------------------------------------------------


def best_response(
    variant: Variant, seat: int, roll: Roll, shown: list[Showing], policies: list[list[np.ndarray]]
) -> np.ndarray:
    """Return what the other seat wins from each policy of `seat` by its best response to the first one, (policies,) float64.

    `shown` is what the other can show (`shown_by_any`).
    """
    hands, others = roll.hands[seat], roll.hands[1 - seat]
    columns = hands.shape[1]
    shape = (len(policies), *roll.faces(seat), len(others))  # an axis for each of the agent's dice in hand
    points = points_of(variant.params, 1 - seat).T  # by the agent's face and the other's
    numbers = [{tuple(order): number for number, order in enumerate(_orders(columns, c).tolist())} for c in range(columns - 1)]

    def respond(own: tuple[int, ...], other: tuple[int, ...], reach: np.ndarray, score: np.ndarray) -> np.ndarray:
        """Return what is won after these dice were shown, summed over what the responder cannot see.

        It has the shape above, with length 1 for dice not shown. `reach` (policies, hands, others): the agent's reach
        probabilities; `score`: (hands, others).
        """
        column = len(own)
        if column == columns:
            return (reach * (score if variant.params.pay_score else np.sign(score))).reshape(shape)
        chances = np.ones((*reach.shape, columns))
        if column < columns - 1:
            ways = shown[column].of.reshape(len(others), -1)[:, numbers[column][other]]
            chances = np.stack([each[column][:, numbers[column][own]][:, ways] for each in policies])
        totals = []
        for reply in range(columns):
            if reply in other:
                continue
            total: Any = 0.0
            for die in range(columns):
                goes_on = reach * chances[..., die]
                if die in own or not goes_on.any():
                    continue
                pair = points[hands[:, die, None], others[None, :, reply]]
                later = respond((*own, die), (*other, reply), goes_on, score + pair)
                total = total + (later if variant.options.open_hands else later.sum(axis=1 + die, keepdims=True))
            totals.append(total)
        choices = np.stack(totals)
        return np.take_along_axis(choices, choices[:, :1].argmax(axis=0, keepdims=True), axis=0)[0]

    pairs = len(hands), len(others)
    won = respond((), (), np.ones((len(policies), *pairs)), np.zeros(pairs, np.int64))
    return won.reshape(len(policies), -1).sum(axis=1) / math.prod(pairs)


# --- the measure ----------------------------------------------------------------------------------------------------


def measure(variant: Variant, agent: Any, effort: Effort) -> list[Measurement]:
    """Measure reward against `highest`, which shows its highest die, and exploitability. See `GameExact.measure`.

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
    sets = max(count_sets(variant, to_highest=True))
    if sets <= min(FEW_SETS if is_random(agent) else MOST_SETS, asked_for):
        lost, error = _loss_in_all(variant, agent, effort), 0.0
        note = f"all {sets:,.0f} information sets of each seat"
    else:
        lost, error, games = _loss_in_games(variant, agent, effort)
        note = f"a random sample of {games:,} games from each seat, whose choices are compared with exact values"
    steps = variant.facts.max_steps if options.ties == "reroll" else 2 * (options.num_columns - 1)
    span = steps / 2 * (variant.facts.max_return - variant.facts.min_return)
    headline = Measurement("reward against highest", optimum - lost, optimum, lost, error, "return", note, span)
    all_sets = max(count_sets(variant, to_highest=False))
    small = all_sets <= FEW_SETS and count_paths(variant) <= MOST_LISTED
    if not small or all_sets > asked_for:
        reason = "a smaller sample is asked for" if small else "the pools are too large"
        reason = "tied dice are rolled again" if options.ties == "reroll" else reason
        return [dataclasses.replace(headline, note=f"{note}; exploitability is not measured, since {reason}")]
    most = least = 0.0  # what best responses win from the agent above the value, mean of both seats
    for seat, roll in itertools.product(range(2), rolls(variant)):
        shown = shown_by_any(roll.hands[1 - seat], options.open_hands)
        policies = [policy(variant, agent, seat, roll, shown, effort.seed)]
        if is_random(agent):
            policies.append(policy(variant, agent, seat, roll, shown, derived_seeds(effort.seed, "again")[0]))
        won = best_response(variant, seat, roll, shown, policies)
        most += roll.chance * float(won[0]) / 2
        least += roll.chance * float(won[-1]) / 2
    middle, error = (most + least) / 2, (most - least) / 2
    note = f"all {all_sets:,.0f} information sets of each seat"
    return [headline, Measurement("exploitability", middle, 0.0, max(0.0, middle), error, "return", note, span)]


def _losses(variant: Variant, states: np.ndarray, chances: np.ndarray) -> np.ndarray:
    """Return what choices (n, actions) lose against `highest` by the best choice, given best play afterwards, (n,) float64."""
    values = values_against_highest(variant, states)
    behind = np.where(chances > 0, np.nanmax(values, axis=1, keepdims=True) - values, 0.0)
    return (chances * behind).sum(axis=1)


def _loss_in_all(variant: Variant, agent: Any, effort: Effort) -> float:
    """Return how much less than the best response the agent earns from `highest`, mean of both seats."""
    total = sum(count_sets(variant, to_highest=True))
    lost = 0.0

    def look(chance: float, states: np.ndarray, chances: np.ndarray, weights: np.ndarray) -> None:
        nonlocal lost
        lost += chance * float(weights @ _losses(variant, states, chances))
        advance(len(states), total)

    for seat, roll in itertools.product(range(2), rolls(variant)):
        shown = shown_by_highest(roll.hands[1 - seat], variant.options.open_hands)
        policy(variant, agent, seat, roll, shown, effort.seed, functools.partial(look, roll.chance))
    return lost / 2


def _loss_in_games(variant: Variant, agent: Any, effort: Effort) -> tuple[float, float, int]:
    """Return the same from random games, its 95 % half-width, and the number of games.

    An agent with random answers gets a tenth of the games and no error: it is measured ten times, and the error comes from
    these repeats.
    """
    games, varies = effort.sample or SAMPLE, is_random(agent)
    at_once = min(GAMES_AT_ONCE, max(2, games // REPEATS))
    planned = max(at_once, games // REPEATS) if varies else games
    lost = np.zeros(0)
    while len(lost) < planned:
        count = min(at_once, planned - len(lost))
        seed = effort.seed, len(lost)
        by_seat = [_lost_in_games(variant, agent, seat, count, seed) for seat in range(2)]
        lost = np.append(lost, (by_seat[0] + by_seat[1]) / 2)
        advance(count, planned)
    return float(lost.mean()), 0.0 if varies else half_width(lost, 0.0, 2.0), len(lost)


MOST_MATCHED = 12  # dice in hand for which all pairings with the other's are added up

# --- against play at random -----------------------------------------------------------------------------------------------


@kernel(allocates=False)
def _meet(params, state, pairs):
    """Set `pairs[i, j]` to P(own die i scores −1, 0 or 1 against the other's die j); return the dice in hand. In place.

    Dice are numbered in the order of their places; a seat holds at most MAX_DICE, the size of `pairs`.
    """
    seat = np.int64(state["seat"])
    count = 0
    for place in range(params.num_actions):
        if state["status"][seat, place] != HELD:
            continue
        own = np.int64(state["faces"][seat, place])
        met = 0
        for die in range(params.num_actions):
            if state["status"][1 - seat, die] != HELD:
                continue
            low, high = np.int64(lowest_face(params, state, 1 - seat, die)), params.sizes[1 - seat, die]
            if params.open_hands:
                low = high = np.int64(state["faces"][1 - seat, die])
            pairs[count, met] = 0.0
            for face in range(low, high + 1):
                points = pair_points(params, own, face) if seat == 0 else -pair_points(params, face, own)
                pairs[count, met, points + 1] += 1.0 / (high - low + 1)
            met += 1
        count += 1
    return count


@kernel(allocates=False)
def _pair_off(pairs, count, sums):
    """Write into the last row of sets, sums[2**count − 1], how the pairs score −count … count together, if each pairing has
    weight 1. In place.

    `sums` has a row for each set of the other's dice, as bits: sums over all ways in which the first own dice meet these.
    """
    sums[: 1 << count] = 0.0
    sums[0, count] = 1.0
    for met in range((1 << count) - 1):
        own = 0
        for j in range(count):
            own += met >> j & 1
        for j in range(count):
            if met >> j & 1:
                continue
            for score in range(count - own, count + own + 1):  # so score + k − 1 is from 0 to 2 count
                for k in range(3):
                    sums[met | 1 << j, score + k - 1] += sums[met, score] * pairs[own, j, k]


@kernel
def _against_random(params, states, sums, out):
    """Write the one value of all dice in hand, NaN for other dice. In place."""
    pairs = np.zeros((MAX_DICE, MAX_DICE, 3))
    out[:] = np.nan
    for n in range(len(states)):
        state = states[n]
        count = _meet(params, state, pairs)
        value = 0.0
        if params.pay_score:
            for i in range(count):
                for j in range(count):
                    value += (pairs[i, j, 2] - pairs[i, j, 0]) / count
        else:
            _pair_off(pairs, count, sums)
            ways = 1.0
            for i in range(count):
                ways *= i + 1
            before = np.int64(state["score"]) if state["seat"] == 0 else -np.int64(state["score"])
            for k in range(2 * count + 1):
                score = before + k - count
                value += (int(score > 0) - int(score < 0)) * sums[(1 << count) - 1, k] / ways
        for place in range(params.num_actions):
            if state["status"][state["seat"], place] == HELD:
                out[n, place] = value


def _values(variant: Variant, states: np.ndarray, most: int) -> np.ndarray:
    """Return the values of states in which no more than `most` dice are in hand, (n, num_actions) float64."""
    sums = np.zeros((1, 1) if variant.params.pay_score else (1 << most, 2 * most + 1))
    out = np.empty((len(states), variant.facts.num_actions))
    _against_random(variant.params, states, sums, out)
    return out


def _check_random(options: Options, dice: int) -> None:
    """Raise ValueError where values against play at random are not known, with this many dice in hand."""
    if options.ties == "reroll":
        raise ValueError("ties must be 'none' or 'a' for the value of a choice, not 'reroll'")
    if options.reward == "win" and dice > MOST_MATCHED:
        raise ValueError(f"action values need at most {MOST_MATCHED} dice in hand, not {dice}")


_NOTE = "against play at random, which is an equilibrium: every die is worth the same against it"


def action_values(variant: Variant, state: Any) -> ActionValues:
    """Return the value of each die in hand against play at random, which is an equilibrium: the same for all.

    Whatever the seat does, each of its dice meets a random one of the other's that are left. See
    `dice_envs.exact.GameExact.action_values`.
    """
    held = state["status"][int(state["seat"]), : variant.facts.num_actions] == HELD
    count = int(held.sum())
    _check_random(variant.options, count)
    (values,) = _values(variant, np.array([state]), count)
    unit = Unit("wins minus losses" if variant.options.reward == "win" else "points to come")
    return ActionValues(values, unit, _NOTE, held / count)


# --- against a fixed opponent ---------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=64)
def _value_at_random(options: Options) -> float:
    """Return what A wins if both play at random."""
    scores = score_distribution(*options.pools, options.ties, "unsorted")
    if options.reward == "win":
        return float(scores.win_bias) / 100
    return float(sum(score * chance for score, chance in scores.chances.items()))


def response_values(variant: Variant, opponent: Any) -> ResponseValues:
    """Return the values of choices against play at random (`nash`, `random`, `shuffled`) or `highest`.

    See `dice_envs.exact.GameExact.response_values`.

    Raises:
        ValueError: another opponent; tied dice are rolled again or too many dice in hand, against play at random; or a best
            response to sorted play takes too long to compute.
    """
    options = variant.options
    unit = RETURN if options.reward == "win" else Unit("points")
    if promises_of(opponent).strategy == "highest":
        check_response(options)
        note = "against sorted play, with the best response to it afterwards"

        def start(seat: int) -> float:
            return float(response_to_highest(options, seat).game_value())

        return ResponseValues(unit, note, start, functools.partial(values_against_highest, variant))
    if not is_uniform(opponent):
        raise ValueError(
            "opponent must be nash, random, shuffled or highest for the values of choices, "
            f"not {opponent.name}: no best response to others is known"
        )
    _check_random(options, options.num_columns)
    value = _value_at_random(options)  # to A, by any play of the seat
    values = functools.partial(_values, variant, most=options.num_columns)
    return ResponseValues(unit, _NOTE, lambda seat: -value if seat else value, values, most_lost=0.0)


def situations(variant: Variant, states: np.ndarray, actions: np.ndarray) -> dict[str, np.ndarray]:
    """Return headings for decisions: dice in hand, and the place of the chosen one among them by its face.

    See `dice_envs.exact.GameExact.situations`.
    """
    index = np.arange(len(states))
    seats = states["seat"].astype(np.int64)
    faces = np.where(states["status"][index, seats] == HELD, states["faces"][index, seats], 0)
    chosen = faces[index, actions]
    lowest = np.where(faces > 0, faces, np.iinfo(faces.dtype).max).min(axis=1)
    dice = np.array([f"{count} {'die' if count == 1 else 'dice'}" for count in range(MAX_DICE + 1)])
    choice = np.select([chosen == faces.max(axis=1), chosen == lowest], ["the highest die", "the lowest die"], "another die")
    return {"dice in hand": dice[(faces > 0).sum(axis=1)], "choice": choice}
