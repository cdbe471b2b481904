"""Values of choices against a fixed opponent in Liar's Dice, compared with plain recursion and with play."""

import functools

import numpy as np
import pytest

from dice_envs import Turn, configure, make_agent
from dice_envs.agent import Promises
from dice_envs.core.batch import Batch
from dice_envs.core.dice import new_streams
from dice_envs.core.game import OVER
from dice_envs.exact import asked, response_values
from dice_envs.exact.liars_dice import values as module
from dice_envs.exact.liars_dice.hands import hands_of
from dice_envs.exact.liars_dice.measures import exploitability
from dice_envs.exact.liars_dice.solver import solution_of
from dice_envs.exact.liars_dice.values import bluffs, situations
from tests.support.policies import Noisy
from tests.support.subsets import covering, few

GAMES = [
    {"num_dice": 1, "num_faces": 4},
    {"num_dice": (2, 1), "num_faces": 3},
    {"num_dice": (1, 2), "num_faces": 3, "wild": "ones", "starter": "first"},
    {"num_dice": 2, "num_faces": 2, "wild": "highest"},
    {"num_dice": (2, 1), "num_faces": 2, "rules": "openspiel"},
    {"num_dice": 1, "num_faces": 3, "raise_rule": "either"},
]
FORGETFUL = {"past_rounds": False}  # so that `uneven` does not observe past rounds


def uneven(observations, masks):
    """Probabilities above 0 of all legal actions, which depend on all that is observed."""
    waves = np.sin(np.arange(observations.shape[1] * masks.shape[1])).reshape(-1, masks.shape[1])
    weights = np.exp(observations @ waves) * masks
    return weights / weights.sum(axis=1, keepdims=True)


class BySeat:
    """Plays at random in seat 0 and unevenly in seat 1."""

    def act(self, turn):
        raise NotImplementedError

    def probabilities(self, turn):
        chances = turn.legal / turn.legal.sum(axis=1, keepdims=True)
        return np.where((turn.seats == 0)[:, None], chances, uneven(turn.observations, turn.legal))


OPPONENTS = ["nash", "numbers", "numbers:bluff=0.5", "random", uneven, BySeat()]


class Asks:
    """Plays the solution, but does not say that it does."""

    promises = Promises(looks_back=False)

    def __init__(self):
        self.player = make_agent("nash")

    def act(self, turn):
        raise NotImplementedError

    def probabilities(self, turn):
        return self.player.probabilities(turn)


class Plain:
    """Best-response values by plain recursion over deals, bids and calls of the game itself."""

    def __init__(self, variant, opponent, seat):
        self.variant, self.opponent, self.seat = variant, opponent, seat
        self.faces = variant.options.num_faces
        self.values = functools.cache(self._values)

    def state(self, own, other, dice, starter, bids):
        """Return a state in which the seat holds `own` and its opponent `other`."""
        state = np.zeros(1, self.variant.game.state)
        self.variant.kernels.deal(self.variant.params, state, np.zeros(1, np.int64))
        state["dice"][0, :2] = state["in_round"][0, :2] = dice
        state["in_round"][0, :2] = 1
        state["in_play"], state["starter"] = sum(dice), starter
        state["num_bids"], state["bid"] = len(bids), bids[-1] if bids else -1
        state["bids"][0, : len(bids)] = bids
        state["seat"] = (starter + len(bids)) % 2
        state["counts"][0, self.seat], state["counts"][0, 1 - self.seat] = own, other
        return state

    def turn(self, hand, dice, starter, bids):
        """Return the turn of the seat to move, which holds the hand."""
        return Turn(self.variant, self.state(hand, hand, dice, starter, bids), np.zeros(1, np.int64), new_streams(0, 1))

    def holds(self, bid, own, other):
        wild = {None: None, "ones": 0, "highest": self.faces - 1}[self.variant.options.wild]
        face = bid % self.faces
        faces = {face} if wild is None else {face, wild}
        return sum(own[each] + other[each] for each in faces) > bid // self.faces

    @functools.cache  # noqa: B019
    def chances(self, other, dice, starter, bids):
        return asked(self.opponent, self.variant).probabilities(self.turn(other, dice, starter, bids))[0]

    def legal(self, dice, starter, bids, own):
        return np.flatnonzero(self.turn(own, dice, starter, bids).legal[0]).tolist()

    def hands(self, dice):
        hands, chances = hands_of(self.variant, dice)
        return [(tuple(hand), chance) for hand, chance in zip(hands.tolist(), chances, strict=True)]

    def posterior(self, dice, starter, bids):
        """The opponent's hands, in proportion to how likely it has them and has made its bids."""
        found = []
        for hand, chance in self.hands(dice[1 - self.seat]):
            for k in range(len(bids)):
                if (starter + k) % 2 != self.seat:
                    chance *= self.chances(hand, dice, starter, bids[:k])[bids[k]]
            found.append((hand, chance))
        return found

    def after(self, dice, loser):
        """The best return after a seat has lost a die."""
        left = tuple(n - (seat == loser) for seat, n in enumerate(dice))
        if self.variant.options.rounds == "single" or 0 in left:
            return -1.0 if loser == self.seat else 1.0
        return self.root(left, loser)

    @functools.cache  # noqa: B019
    def root(self, dice, starter):
        return sum(chance * self.best(own, dice, starter, ()) for own, chance in self.hands(dice[self.seat]))

    def best(self, own, dice, starter, bids):
        """The best return with a hand after bids, whoever is to move."""
        if (starter + len(bids)) % 2 == self.seat:
            return max(self.values(own, dice, starter, bids).values())
        total = reached = 0.0
        for other, weight in self.posterior(dice, starter, bids):
            if weight > 0:
                reached += weight
                called = self.chances(other, dice, starter, bids)[-1]
                if called > 0:
                    loser = 1 - self.seat if self.holds(bids[-1], own, other) else self.seat
                    total += weight * called * self.after(dice, loser)
        for bid in self.legal(dice, starter, bids, own):
            if bid != self.variant.params.call:
                part = sum(
                    w * self.chances(o, dice, starter, bids)[bid] for o, w in self.posterior(dice, starter, bids) if w > 0
                )
                if part > 0:
                    total += part * self.best(own, dice, starter, (*bids, bid))
        return total / reached

    def _values(self, own, dice, starter, bids):
        """Action → the best return after it."""
        found = {}
        for action in self.legal(dice, starter, bids, own):
            if action == self.variant.params.call:
                hands = self.posterior(dice, starter, bids)
                losses = [self.seat if self.holds(bids[-1], own, other) else 1 - self.seat for other, _ in hands]
                weights = [weight for _, weight in hands]
                found[action] = np.average([self.after(dice, loser) for loser in losses], weights=weights)
            else:
                found[action] = self.best(own, dice, starter, (*bids, action))
        return found


def played(variant, opponent, seat, games=60):
    """States in which the seat is to move in games of a random player against the opponent."""
    rng = np.random.default_rng(seat)
    batch, found, player = Batch(variant, games, seat), [], asked(opponent, variant)
    streams = new_streams(1, games)
    while len(going := np.flatnonzero(batch.states["seat"] != OVER)):
        mine = batch.states["seat"][going] == seat
        found.append(batch.states[going[mine]])
        chances = batch.legal()[going].astype(float)
        others = going[~mine]
        if len(others):
            chances[~mine] = player.probabilities(Turn(variant, batch.states, others, streams[others]))
        chances /= chances.sum(axis=1, keepdims=True)
        actions = (chances.cumsum(axis=1) > rng.random((len(going), 1))).argmax(axis=1)
        batch.play(actions, going)
    return np.concatenate(found)


@covering(("options", "opponent"), GAMES, OPPONENTS)
def test_values_are_those_of_plain_recursion(options, opponent):
    """At each state, of each legal action, foolish ones too."""
    variant = configure("liars_dice", **options, **FORGETFUL)
    found = response_values(variant, opponent)
    for seat in range(2):
        plain = Plain(variant, opponent, seat)
        starters = range(2) if variant.options.starter == "random" else [0]
        dice = variant.options.dice_per_seat
        assert found.start(seat) == pytest.approx(np.mean([plain.root(dice, each) for each in starters]), abs=1e-9)
        states = played(variant, opponent, seat)
        assert len(states) >= 50
        for state, values in zip(states, found.action_values(states), strict=True):
            bids = tuple(state["bids"][: state["num_bids"]].tolist())
            own, left = tuple(state["counts"][seat].tolist()), tuple(state["dice"][:2].tolist())
            expected = np.full(len(values), np.nan)
            for action, value in plain.values(own, left, int(state["starter"]), bids).items():
                expected[action] = value
            assert values == pytest.approx(expected, abs=1e-9, nan_ok=True)


def test_hidden_dice_make_no_difference():
    variant = configure("liars_dice", num_dice=2)
    found = response_values(variant, "numbers:bluff=0.5")
    states = played(variant, "numbers:bluff=0.5", 0)
    expected = found.action_values(states)
    states["counts"][:, 1] = np.arange(states["counts"].shape[2])[::-1]
    assert np.array_equal(found.action_values(states), expected, equal_nan=True)


@covering(("options", "opponent"), [{"num_dice": 2}, {"num_dice": (2, 1), "starter": "first", "wild": "ones"}], OPPONENTS)
def test_a_best_response_wins_what_the_measure_says(options, opponent):
    variant = configure("liars_dice", **options, **FORGETFUL)
    found = response_values(variant, opponent)
    mean = (found.start(0) + found.start(1)) / 2
    assert mean == pytest.approx(exploitability(variant, asked(opponent, variant)), abs=1e-12)


def test_the_solution_says_the_same():
    """Its action values, which it finds state by state from its own tree, are chances to win against itself."""
    variant = configure("liars_dice", num_dice=2)
    solution = solution_of(variant, 1e-3)
    states = played(variant, "nash", 0, games=10)
    for state, values in zip(states, response_values(variant, "nash").action_values(states), strict=True):
        expected = 2 * solution.action_values(state).values - 1
        assert values == pytest.approx(expected, abs=2 * max(solution.exploitability, 0) + 1e-9, nan_ok=True)


@pytest.mark.parametrize(
    ("options", "opponent", "words"),
    [
        ({"num_players": 3}, "numbers", "num_players must be 2 for the value of a choice, not 3"),
        ({"num_dice": 2, "reward": "dice"}, "numbers", "reward must be 'win' for the value of a choice, not 'dice'"),
        ({"num_dice": 6}, "numbers", "250,000,000 at most are allowed for the value of a choice"),
        ({"num_dice": 2}, "reader", "past rounds matter to reader: the value of a choice is known for agents that look at one"),
        ({"num_dice": 1}, Noisy(), "are random: the value of a choice is known for agents whose probabilities are fixed"),
        ({"num_dice": 1}, "adaptive", "adaptive remembers past games"),
    ],
    ids=["players", "reward", "size", "past rounds", "random answers", "memory"],
)
def test_what_has_no_table_is_refused(options, opponent, words):
    with pytest.raises(ValueError, match=".") as caught:
        response_values(configure("liars_dice", **options), opponent)
    assert words in str(caught.value)


def test_too_large_a_table_is_refused_before_it_is_filled(monkeypatch):
    monkeypatch.setattr(module, "MOST_BYTES", 1000)
    with pytest.raises(
        ValueError, match=r"num_dice=2 with num_faces=5 needs [\d,]+ numbers for the value of a choice; 125 at most"
    ):
        response_values("liars_dice", "numbers", num_dice=2, num_faces=5)


def test_equal_opponents_share_a_table():
    variant = configure("liars_dice", num_dice=1, num_faces=3)
    assert response_values(variant, "numbers:bluff=0.5") is response_values(variant, "numbers:bluff=0.5")
    assert response_values(variant, "numbers:bluff=0.5") is not response_values(variant, "numbers")
    assert response_values(variant, uneven) is not response_values(variant, uneven), "a function may change"


def test_progress_ends_where_it_should():
    told = []
    for options in ({"num_dice": 2, "num_faces": 3}, {"num_dice": (2, 1), "num_faces": 3}):
        response_values("liars_dice", uneven, done=lambda amount, total: told.append(amount / total), **options, **FORGETFUL)
        assert sum(told) == pytest.approx(1)
        told.clear()


def test_headings():
    variant = configure("liars_dice", num_dice=(2, 1))
    batch = Batch(variant, 1, 0)
    batch.states["starter"], batch.states["seat"] = 0, 0
    states, actions = [], [0, 6, variant.params.call]
    for action in actions:
        states.append(batch.states[0].copy())
        batch.play(np.array([action]), np.array([0]))
    found = situations(variant, np.array(states), np.array(actions))
    assert {heading: labels.tolist() for heading, labels in found.items()} == {
        "round": ["1"] * 3,
        "dice left": ["2 v 1", "1 v 2", "2 v 1"],
        "decision": ["first bid", "raise", "call"],
    }
    single = configure("liars_dice", num_dice=2, rounds="single")
    assert set(situations(single, np.array(states), np.array(actions))) == {"dice left", "decision"}


@few(
    2,
    ("options", "dice", "faces"),
    [
        ({}, (2, 2, 5), {1, 3, 4, 6}),
        ({"wild": "ones"}, (2, 2, 5), {1, 3, 4, 6}),
        ({"wild": "ones"}, (1, 2, 2), set()),
        ({"wild": "highest"}, (6, 2, 2), set()),
        ({"rules": "perudo"}, (3, 3, 3), {1, 2, 4, 5, 6}),
    ],
)
def test_a_bluff_is_a_bid_on_a_face_of_which_one_holds_none(options, dice, faces):
    variant = configure("liars_dice", num_dice=3, **options)
    state = Batch(variant, 1, 0).states[0].copy()
    state["counts"][state["seat"]] = np.bincount(np.array(dice) - 1, minlength=state["counts"].shape[1])
    (found,) = bluffs(variant, np.array([state]))
    words = [variant.describe_action(int(action)) for action in np.flatnonzero(found)]
    assert {int(each.split(" x ")[1]) for each in words} == faces
    assert len(words) == 6 * len(faces)


@few(2, "options", [{"num_dice": 2, "wild": "ones"}, {"num_dice": (2, 3), "num_faces": 3}], ids=str)
def test_the_solution_is_read_as_it_plays(options):
    """Its numbers, read without asking, against its answers; whichever the walk takes, a best response wins as often."""
    variant = configure("liars_dice", **options)
    by_reading = response_values(variant, "nash")
    assert asked("nash", variant).promises.solution is not None
    by_asking = response_values(variant, Asks())
    for seat in range(2):
        assert by_reading.start(seat) == pytest.approx(by_asking.start(seat), abs=1e-12)
        states = played(variant, "nash", seat)
        expected = by_asking.action_values(states)
        assert by_reading.action_values(states) == pytest.approx(expected, abs=1e-9, nan_ok=True)


def test_what_a_choice_is_worth_is_the_mean_of_what_follows():
    """Over the opponent's hands, its answers, calls and new deals, by the game's own rules, up to rounding."""
    variant = configure("liars_dice", num_dice=(2, 1), num_faces=3)
    opponent = "numbers:bluff=0.5"
    found = response_values(variant, opponent)
    for seat in range(2):
        plain = Plain(variant, opponent, seat)
        for state in played(variant, opponent, seat, games=30):
            values = found.action_values(np.array([state]))[0]
            for action in np.flatnonzero(~np.isnan(values)):
                assert values[action] == pytest.approx(mean_after(found, plain, state, int(action)), abs=1e-9)


def mean_after(found, plain, state, action):
    """Return the mean of the best value at the seat's next decision, or of the return, after an action."""
    seat, bids = plain.seat, tuple(state["bids"][: state["num_bids"]].tolist())
    own, dice, starter = tuple(state["counts"][seat].tolist()), tuple(state["dice"][:2].tolist()), int(state["starter"])
    hands = plain.posterior(dice, starter, bids)
    total = 0.0
    for other, weight in hands:
        if action == plain.variant.params.call:
            total += weight * next_value(found, plain, dice, seat if plain.holds(bids[-1], own, other) else 1 - seat)
            continue
        answers = plain.chances(other, dice, starter, (*bids, action))
        for answer in np.flatnonzero(answers).tolist():
            if answer == plain.variant.params.call:
                loser = 1 - seat if plain.holds(action, own, other) else seat
                total += weight * answers[answer] * next_value(found, plain, dice, loser)
            else:
                after = plain.state(own, own, dice, starter, (*bids, action, answer))
                total += weight * answers[answer] * np.nanmax(found.action_values(after))
    return total / sum(weight for _, weight in hands)


def next_value(found, plain, dice, loser):
    """Return the mean of the best value at the seat's first decision in the round after one that a seat has lost."""
    left = tuple(count - (seat == loser) for seat, count in enumerate(dice))
    if 0 in left:
        return -1.0 if loser == plain.seat else 1.0
    total = 0.0
    for own, chance in plain.hands(left[plain.seat]):
        if loser == plain.seat:
            total += chance * np.nanmax(found.action_values(plain.state(own, own, left, loser, ())))
            continue
        for other, others_chance in plain.hands(left[loser]):
            opening = plain.chances(other, left, loser, ())
            for bid in np.flatnonzero(opening).tolist():
                best = np.nanmax(found.action_values(plain.state(own, own, left, loser, (bid,))))
                total += chance * others_chance * opening[bid] * best
    return total


def test_positions_that_the_opponent_never_reaches():
    """Its dice are taken for fair there, and raises as if they were called. With one die it never bids 1 × 1."""
    variant = configure("liars_dice", num_dice=1, num_faces=3, rounds="single")
    state = Plain(variant, "numbers", 0).state((1, 0, 0, 0, 0, 0, 0, 0), (0, 0, 1, 0, 0, 0, 0, 0), (1, 1), 1, (0,))
    values = response_values(variant, "numbers").action_values(state)[0]
    assert values == pytest.approx([np.nan] * 3 + [2 / 3 - 1, -1, -1, -1], abs=1e-12, nan_ok=True)
