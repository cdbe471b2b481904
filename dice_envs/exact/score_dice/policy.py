"""Any agent's policy in score dice, at every information set of a roll or in random games; and the best response to it.

An agent may tell its dice apart by their places and may remember in which order they were shown. So an information set
is its hand, the order in which it has shown its dice, and the way in which the other's dice were shown. All information
sets are listed, and the agent is asked at those that its own choices can reach. Tied dice that are rolled again are not
followed here; random games are played to their end.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from dice_envs.agent import Turn, ask_probabilities
from dice_envs.core.dice import new_streams
from dice_envs.core.game import OVER, Variant
from dice_envs.games.score_dice import HELD, lowest_face, pair_points

__all__ = [
    "Roll",
    "Shown",
    "best_response",
    "count_paths",
    "count_sets",
    "in_games",
    "policy",
    "rolls",
    "shown_by_any",
    "shown_by_highest",
]

ROWS_AT_ONCE = 16_384  # information sets that an agent is asked about in one call
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


class Shown(NamedTuple):
    """The ways in which a player's dice can have been shown in the first c columns, as the other sees them."""

    order: np.ndarray  # (ways, c) int64: the dice shown, counted among those in hand before the first column
    faces: np.ndarray  # (ways, columns) int64: of all those dice; the lowest possible face for dice that are not seen
    parent: np.ndarray  # (ways,) int64: the way one column earlier
    chance: np.ndarray  # (ways,) float64: the share of all entries
    of: np.ndarray  # (entries,) int64: the way of each entry


# --- what can happen in a roll ------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=4)
def rolls(variant: Variant) -> tuple[Roll, ...]:
    """List all rolls that look different to both players before the first column; none if there are too many."""
    pools = variant.options.pools
    if max(map(math.prod, pools)) > MOST_ROLLS:
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
    state = np.zeros(1, variant.game.state)
    variant.kernels.deal(variant.params, state, np.zeros(1, np.int64))
    if len(pools[0]) == len(pools[1]):
        yield state, 1
        return
    larger = int(len(pools[1]) > len(pools[0]))
    smaller = (1,) * variant.options.num_columns
    ways: Counter[bytes] = Counter()
    found: dict[bytes, np.ndarray] = {}
    for faces in itertools.product(*(range(1, size + 1) for size in pools[larger])):
        dice = (smaller, faces) if larger == 1 else (faces, smaller)
        variant.game.arrange(variant.options, state[0], {"dice": dice})  # type: ignore[misc]
        held = state["status"] == HELD
        key = held.tobytes() + np.where(held, 0, state["faces"]).tobytes()
        ways[key] += 1
        found.setdefault(key, state.copy())
    for key, count in ways.items():
        yield found[key], count


def _orders(dice: int, length: int) -> np.ndarray:
    """Return all orders in which `length` of the dice can be shown, (orders, length) int64, sorted."""
    return np.array(list(itertools.permutations(range(dice), length)), np.int64)


def shown_by_highest(hands: np.ndarray, open_hands: bool) -> list[Shown]:
    """Return the dice that a player of its highest die can have shown before each column but the last. Entries: its hands."""
    order = np.argsort(-hands, axis=1, kind="stable")
    every = np.arange(len(hands))
    return _told_apart(hands, [(every, order[:, :length]) for length in range(hands.shape[1] - 1)], open_hands)


def shown_by_any(hands: np.ndarray, open_hands: bool) -> list[Shown]:
    """Return the dice that any player can have shown before each column but the last. Entries: its hands, in all orders."""
    entries = []
    for length in range(hands.shape[1] - 1):
        orders = _orders(hands.shape[1], length)
        entries.append((np.repeat(np.arange(len(hands)), len(orders)), np.tile(orders, (len(hands), 1))))
    return _told_apart(hands, entries, open_hands)


def _told_apart(hands: np.ndarray, entries: list[tuple[np.ndarray, np.ndarray]], open_hands: bool) -> list[Shown]:
    """Return the ways that look different.

    Entries before each column: hand (m,), and the dice that it shows (m, c). All entries have equally many successors in
    the next column, and these are adjacent.
    """
    found: list[Shown] = []
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
        found.append(Shown(rows[:, :length], rows[:, length:], parent, np.bincount(of) / len(of), of))
    return found


def count_sets(variant: Variant, seat: int, to_highest: bool) -> float:
    """Return the approximate number of the seat's information sets; infinite if there are too many rolls.

    The other player always shows its highest die if `to_highest`; otherwise it may play in any way.
    """
    total = 0 if rolls(variant) else math.inf
    for roll in rolls(variant):
        hands, others = roll.hands[seat], roll.hands[1 - seat]
        columns = hands.shape[1]
        subsets = [1, *itertools.repeat(0, columns)]  # by k: ways in which k of the other's dice can have been shown
        for faces in roll.faces(1 - seat):
            subsets = [more + fewer * faces for more, fewer in zip(subsets, [0, *subsets])]
        for column in range(columns - 1):
            ways = len(others) if variant.options.open_hands else subsets[column]
            if not to_highest:
                ways *= math.perm(columns, column) if variant.options.open_hands else math.factorial(column)
            total += len(hands) * math.perm(columns, column) * ways
    return total


def count_paths(variant: Variant) -> float:
    """Count the ways to play a roll, all hands and orders; infinite if there are too many rolls."""
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
        variant.kernels.play(variant.params, states, index, roll.places[who][dice])

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
    shown: list[Shown],
    seed: int,
    look: Callable[[np.ndarray, np.ndarray, np.ndarray], Any] = lambda states, chances, weights: None,
) -> list[np.ndarray]:
    """Return the agent's probabilities at the information sets that it can reach, for each column but the last.

    Args:
        variant: the game.
        agent: states its probabilities.
        seat: the agent's.
        roll: of both pools.
        shown: what the other can have shown.
        seed: of the agent's random streams.
        look: called after each question to the agent, with the states (n,), its probabilities (n, actions), and the chance
            of each information set if all of the other's entries are equally likely (n,).

    Returns:
        For each column (hands, own orders, ways, columns) float64, by dice in hand before the first column; 0 at
        information sets that the agent does not reach.
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
            last = orders[:, -1:]
            reach = reach[:, parents, ways.parent] * found[-1][:, parents, ways.parent, last]
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


def _dealt(variant: Variant, count: int, seed: np.random.SeedSequence) -> np.ndarray:
    states = np.zeros(count, variant.game.state)
    states["rng"] = new_streams(seed, count)["rng"]
    variant.kernels.deal(variant.params, states, np.arange(count))
    return states


def in_games(
    variant: Variant,
    agent: Any,
    seat: int,
    count: int,
    seed: tuple[int, int],
    rate: Callable[[np.ndarray, int, np.ndarray], np.ndarray],
) -> np.ndarray:
    """Rate the agent's choices in random games against a player that always shows its highest die.

    Args:
        variant: the game.
        agent: states its probabilities; it is asked where it has a choice.
        seat: the agent's.
        count: of games.
        seed: of the measurement, and the number of the first game. They fix the games and what is drawn from the agent's
            chances: agents with equal chances play the same games.
        rate: (states (n,), the seat, the agent's probabilities (n, actions)) → the rating of each choice (n,).

    Returns:
        The sum of the ratings in each game, (count,) float64.
    """
    deals, answers, choices = np.random.SeedSequence(seed[0], spawn_key=seed[1:]).spawn(3)
    states, streams, rng = _dealt(variant, count, deals), new_streams(answers, count), np.random.default_rng(choices)
    ratings = np.zeros(count)
    while (going := np.flatnonzero(states["seat"] != OVER)).size:
        mine = going[states["seat"][going] == seat]
        others = going[states["seat"][going] != seat]
        chances = _chances(variant, agent, states, mine, streams)
        ratings[mine] += rate(states[mine], seat, chances)
        drawn = rng.random(count, np.float32)[mine]  # at most 1 − 2**-24: below a rounded sum of chances
        variant.kernels.play(variant.params, states, mine, (chances.cumsum(axis=1) > drawn[:, None]).argmax(axis=1))
        hands = np.where(states["status"][others, 1 - seat] == HELD, states["faces"][others, 1 - seat], 0)
        variant.kernels.play(variant.params, states, others, hands.argmax(axis=1))  # the first of equal ones
    return ratings


def _chances(variant: Variant, agent: Any, states: np.ndarray, index: np.ndarray, streams: np.ndarray) -> np.ndarray:
    """Return the agent's probabilities in these games, (m, actions) float64. Its streams are modified in place."""
    masks = np.empty((len(index), variant.facts.num_actions), np.int8)
    variant.kernels.legal(variant.params, states, index, masks)
    chances = masks.astype(np.float64)
    free = np.flatnonzero(masks.sum(axis=1) > 1)
    if len(free):
        own = streams[index[free]]
        chances[free] = ask_probabilities(agent, Turn(variant, states, index[free], own))
        streams[index[free]] = own
    return chances


# --- best response ------------------------------------------------------------------------------------------------


def best_response(variant: Variant, seat: int, roll: Roll, shown: list[Shown], policies: list[list[np.ndarray]]) -> np.ndarray:
    """Return what the other seat wins from each policy by its best response to the first one, (policies,) float64.

    Args:
        variant: the game.
        seat: of the policies.
        roll: of both pools.
        shown: what the other can show (`shown_by_any`).
        policies: see `policy`.
    """
    hands, others = roll.hands[seat], roll.hands[1 - seat]
    columns = hands.shape[1]
    shape = (len(policies), *roll.faces(seat), len(others))  # an axis for each of the agent's dice in hand
    faces = range(variant.params.most_sides + 1)
    points_of_a = np.array([[pair_points(variant.params, a, b) for b in faces] for a in faces])
    points = -points_of_a if seat == 0 else points_of_a.T  # to the other seat, by the agent's face and its own
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
        best = choices[:, :1].argmax(axis=0, keepdims=True)
        return np.take_along_axis(choices, best, axis=0)[0]

    pairs = len(hands), len(others)
    won = respond((), (), np.ones((len(policies), *pairs)), np.zeros(pairs, np.int64))
    found: np.ndarray = won.reshape(len(policies), -1).sum(axis=1) / math.prod(pairs)
    return found
