"""Agents whose policy is hard to read: random, dependent on more than the position, or stated in few digits."""

from typing import Any, NamedTuple

import numpy as np
import pytest

from dice_envs.agent import Promises, draw_actions


def lowest(legal):
    """Always the lowest legal action."""
    return np.eye(legal.shape[1])[legal.argmax(axis=1)]


def highest(legal):
    """Always the highest legal action."""
    return lowest(legal[:, ::-1])[:, ::-1]


def uniform(legal):
    return legal / legal.sum(axis=1, keepdims=True)


class Mixed:
    """Plays one policy or, with some chance that may depend on the turn, another; states it."""

    def __init__(self, chance, base=lowest, other=uniform):
        self.chance, self.base, self.other = chance, base, other

    def policy(self, turn):
        chance = np.reshape(self.chance(turn) if callable(self.chance) else self.chance, (-1, 1))
        return (1 - chance) * self.base(turn.legal) + chance * self.other(turn.legal)

    probabilities = policy


class Acts(Mixed):
    """The same policy, played by its actions alone; they come from the agent's streams, or from a generator of its own."""

    probabilities = property()  # none

    def __init__(self, *policy, own=False):
        super().__init__(*policy)
        self.rng = np.random.default_rng(1) if own else None

    def draw(self, turn):
        policy = self.policy(turn)
        if self.rng is None:
            return draw_actions(turn.streams, policy)
        return (policy.cumsum(axis=1) > self.rng.random((len(turn), 1)) * (1 - 1e-12)).argmax(axis=1)

    def act(self, turn):
        return self.draw(turn)


class Promising(Acts):
    """The same, which declares that it is deterministic."""

    promises = Promises(deterministic=True)


class Draws(Acts):
    """The same policy, stated as 1 for an action that is drawn."""

    def probabilities(self, turn):
        return np.eye(turn.legal.shape[1], dtype=np.float32)[self.draw(turn)]


class Jitters(Mixed):
    """The same policy on average; the other one's share is drawn anew each time."""

    def probabilities(self, turn):
        drawn = turn.legal * turn.rng.exponential(size=turn.legal.shape)
        share = drawn / drawn.sum(axis=1, keepdims=True)
        return (1 - self.chance) * self.base(turn.legal) + self.chance * share


class Half(Mixed):
    """The same policy in a type of few digits."""

    def __init__(self, kind, *policy):
        super().__init__(*policy)
        self.kind = kind

    def probabilities(self, turn):
        policy = self.policy(turn)
        if self.kind == "bfloat16":
            torch = pytest.importorskip("torch")
            return torch.from_numpy(policy).to(torch.bfloat16)
        return policy.astype(self.kind)


class Rounded(Half):
    """That policy as numbers of full precision."""

    def probabilities(self, turn):
        stated = super().probabilities(turn)
        given = stated.double().numpy() if self.kind == "bfloat16" else stated.astype(np.float64)
        return given / given.sum(axis=1, keepdims=True)


class Counts(Mixed):
    """Changes with the number of calls or of rows so far."""

    def __init__(self, changes, rows=False):
        super().__init__(self.share)
        self.changes, self.rows, self.count = changes, rows, 0

    def share(self, turn):
        self.count += len(turn) if self.rows else 1
        return self.changes(self.count)


class Remembers(Mixed):
    """Plays by its notes, which say how often it has moved in the match."""

    promises = Promises(remembers=np.dtype([("moves", np.int64)]))

    def __init__(self):
        super().__init__(lambda turn: (turn.memory["moves"] > 0) / 2)

    def act(self, turn):
        turn.memory["moves"] += 1
        return draw_actions(turn.streams, self.policy(turn))


class Redrawn(Mixed):
    """Another policy after so many rows, as of a noisy network."""

    def __init__(self, rows):
        super().__init__(self.share)
        self.rows, self.count, self.rng = rows, 0, np.random.default_rng(1)
        self.drawn = 0.0

    def share(self, turn):
        before, self.count = self.count, self.count + len(turn)
        if before // self.rows < self.count // self.rows:
            self.drawn = self.rng.random()
        return self.drawn


def some(turn, one_in=3):
    """Return 1 at about a third of the positions, or fewer, else 0."""
    weights = 1 + np.arange(turn.observations.shape[1]) % 5
    return ((turn.observations @ weights * 4).round() % one_in == 0).astype(float)


def late(turn):
    """Return 1 at the last choices of a game: with two dice left, two patients or two columns."""
    states, options = turn._true_states[turn._index], turn.variant.options
    field = {"liars_dice": "in_play", "fatestones": "left", "thirties": "thrown", "shakes": "patients"}
    all_of = {"shakes": getattr(options, "patients", 0), "score_dice": getattr(options, "num_columns", 0)}
    name = turn.game.name
    return (np.abs(states[field.get(name, "column")] - all_of.get(name, 0)) == 2).astype(float)


def rows_from(first):
    return lambda turn: (np.arange(len(turn)) >= first) / 2


def seat(turn):
    return (turn.seats == turn.variant.facts.num_seats - 1) / 2


def batch_norm(turn):
    """A share that depends on the other rows, as from batch normalisation in training mode."""
    seen = turn.observations @ (1.0 + np.arange(turn.observations.shape[1]) % 5)
    return 1 / (1 + np.exp(-(seen - seen.mean()) / (seen.std() + 1e-3)))


class Awkward(NamedTuple):
    """An agent; the policy that it has where it has one, alone and at first if that is not always the same; and the words of a
    refusal, which agents that have no policy must meet with unless they are given an interval."""

    make: Any
    truth: Any
    words: str = "^$"
    has_policy: bool = True


RANDOM, ROW = "are random: an exact result at a table", "depends on the row that the position has"
SIZE, OTHERS = "depends on (the number of positions in )?the batch", "depends on the other positions"
TIME = f"on what it was asked before|{RANDOM}"
CHANCES = (0.001, 0.01, 0.1, 0.5)
MIXED = {chance: Mixed(chance) for chance in CHANCES}
LOW, HIGH, SEAT = Mixed(0.0), Mixed(0.0, highest), Mixed(seat)
PART, SELDOM, LATE = (
    Mixed(lambda turn: some(turn) / 5),
    Mixed(lambda turn: some(turn, 41) / 2),
    Mixed(lambda turn: late(turn) / 2),
)


def odd(turn):
    return np.arange(len(turn)) % 2


def few(turn):
    return float(len(turn) < 20)


def otherwise(chance):
    """A policy that plays the highest action where it does not play the lowest one."""
    return chance, lowest, highest


FAMILY = {
    **{f"acts, {c}": Awkward(lambda c=c: Acts(c), MIXED[c], RANDOM) for c in CHANCES},
    **{f"acts by its own generator, {c}": Awkward(lambda c=c: Acts(c, own=True), MIXED[c], RANDOM) for c in CHANCES},
    **{f"draws, {c}": Awkward(lambda c=c: Draws(c), MIXED[c], RANDOM) for c in CHANCES},
    **{f"draws by its own generator, {c}": Awkward(lambda c=c: Draws(c, own=True), MIXED[c], RANDOM) for c in CHANCES},
    **{f"jitters, {c}": Awkward(lambda c=c: Jitters(c), MIXED[c], RANDOM) for c in CHANCES[1:3]},
    "acts at random at some positions": Awkward(lambda: Acts(PART.chance), PART, RANDOM),
    "draws at some positions": Awkward(lambda: Draws(PART.chance), PART, RANDOM),
    "acts at random at rare positions": Awkward(lambda: Acts(SELDOM.chance), SELDOM, RANDOM),
    "draws at rare positions": Awkward(lambda: Draws(SELDOM.chance), SELDOM, RANDOM),
    "acts at random late in a game": Awkward(lambda: Acts(LATE.chance), LATE, RANDOM),
    "draws late in a game": Awkward(lambda: Draws(LATE.chance), LATE, RANDOM),
    "redrawn after 10,000 rows": Awkward(lambda: Redrawn(10_000), None, f"{RANDOM}|{TIME}", False),
    "redrawn after 700 rows": Awkward(lambda: Redrawn(700), None, f"{RANDOM}|{TIME}", False),
    "acts at random in one seat": Awkward(lambda: Acts(seat), SEAT, RANDOM),
    "draws in one seat": Awkward(lambda: Draws(seat), SEAT, RANDOM),
    "states another mixture in one seat": Awkward(lambda: Mixed(seat), SEAT),
    "states a mixture": Awkward(lambda: Mixed(0.01), MIXED[0.01]),
    "acts alike": Awkward(lambda: Acts(0.0), LOW),
    "acts alike in each seat": Awkward(
        lambda: Acts(*otherwise(lambda turn: 2 * seat(turn))), Mixed(*otherwise(lambda turn: 2 * seat(turn)))
    ),
    "promises to act alike": Awkward(lambda: Promising(0.0), LOW),
    "breaks its promise": Awkward(lambda: Promising(0.01), None, "promises deterministic=True, but"),
    "by row": Awkward(lambda: Mixed(odd), None, ROW, False),
    "acts by row": Awkward(lambda: Acts(*otherwise(odd)), None, ROW, False),
    "from row 64 on": Awkward(lambda: Mixed(rows_from(64)), None, ROW, False),
    "from row 200 on": Awkward(lambda: Mixed(rows_from(200)), None, ROW, False),
    "acts from row 64 on": Awkward(lambda: Acts(*otherwise(lambda turn: 2 * rows_from(64)(turn))), None, ROW, False),
    "acts at random from row 64 on": Awkward(lambda: Acts(rows_from(64)), LOW, f"{RANDOM}|{ROW}", False),
    "in small batches": Awkward(lambda: Mixed(few), None, SIZE, False),
    "acts in small batches": Awkward(lambda: Acts(*otherwise(few)), None, SIZE, False),
    "in batches of an odd size": Awkward(lambda: Mixed(lambda turn: len(turn) % 2 / 2), None, SIZE, False),
    "batch normalisation": Awkward(lambda: Mixed(batch_norm), None, OTHERS, False),
    "changes after 5 calls": Awkward(lambda: Counts(lambda calls: float(calls > 5)), None, TIME, False),
    "changes after 40 calls": Awkward(lambda: Counts(lambda calls: float(calls > 40)), None, TIME, False),
    "changes after 3,000 rows": Awkward(lambda: Counts(lambda rows: float(rows > 3000), rows=True), None, TIME, False),
    "changes all the time": Awkward(lambda: Counts(lambda calls: calls / (calls + 100)), None, TIME, False),
    "changes at each call": Awkward(lambda: Counts(lambda calls: float(calls % 2)), None, TIME, False),
    "remembers": Awkward(Remembers, LOW),
    "float16": Awkward(lambda: Half("float16", 0.3), Rounded("float16", 0.3)),
    "bfloat16": Awkward(lambda: Half("bfloat16", 0.3), Rounded("bfloat16", 0.3)),
}
