"""Tables of Liar's Dice valued by a plain program that shares nothing with the project but what agents answer.

It enumerates the hands of all players together, and follows every bid. So it is slow, and good for a few dice.
"""

import functools
import itertools

import numpy as np

from dice_envs.agent import Turn
from dice_envs.core.batch import Batch
from dice_envs.core.dice import new_streams


def raises(options, dice, last, mover_dice=None):
    """The bids (quantity, face) that may follow the last one, or None; in a palifico round by the dice of who is to move."""
    faces, rule = range(1, options.num_faces + 1), options.raise_rule
    every = [(quantity, face) for quantity in range(1, dice + 1) for face in faces]
    if mover_dice is not None:
        rule = "same face" if mover_dice > 1 else "either" if rule == "perudo" else rule
    if last is None:
        return [bid for bid in every if bid[1] != 1] if rule == "perudo" else every
    quantity, face = last
    if rule == "perudo":  # ones count double
        twice = [((4 * more + 1, 0) if to == 1 else (2 * more, to), (more, to)) for more, to in every]
        lowest = (4 * quantity + 1, 0) if face == 1 else (2 * quantity, face)
        return [bid for rank, bid in twice if rank > lowest]
    follows = {
        "quantity": lambda more, to: more > quantity and (to >= face or (face == max(faces) and to == 1)),
        "either": lambda more, to: (more, to) > (quantity, face),
        "nondecreasing": lambda more, to: quantity <= more and face <= to and (quantity, face) != (more, to),
        "reset_quantity": lambda more, to: to > face or (to == face and more > quantity),
        "same face": lambda more, to: to == face and more > quantity,
    }[rule]
    return [bid for bid in every if follows(*bid)]


class Plain:
    """The shares of wins at tables, by place from the starter.

    `policy(dice, bids, place, hand)` returns the chance of each action, a bid (quantity, face) or "call", of a player with a
    hand, which is a tuple of faces, after bids; `dice` are those of each place, 0 for players who are out. There is one for all
    seats, or one for each.
    """

    def __init__(self, variant, *policies):
        self.options, self.policies = variant.options, policies
        self.faces = range(1, variant.options.num_faces + 1)

    def holds(self, bid, hands, palifico=False):
        quantity, face = bid
        wild = None if palifico else {None: None, "ones": 1, "highest": max(self.faces)}[self.options.wild]
        return sum(die in (face, wild) for hand in hands for die in hand) >= quantity

    def hands(self, number):
        return list(itertools.product(self.faces, repeat=number))

    def after(self, dice, loser):
        """The dice after a loss, the next starter first, and the former place of that starter."""
        left = list(dice)
        left[loser] -= 1
        starter = loser
        while left[starter] == 0:
            starter = (starter + 1) % len(dice)
        return tuple(left[starter:] + left[:starter]), starter

    def rest(self, which, dice, starter, place, loser):
        if self.options.rounds == "single":
            return (place != loser) / (len(dice) - 1)
        left, shift = self.after(dice, loser)
        now = (place - shift) % len(dice)
        if left[now] == 0:
            return 0.0
        return 1.0 if sum(number > 0 for number in left) == 1 else self.share(which, left, now, (starter + shift) % len(dice))

    @functools.cache  # noqa: B019 — lives as long as the test
    def share(self, which, dice, place, starter=0):
        """The share of the player at a place, "plays", "responds" or "alone", when the seat `starter` begins."""
        payoffs = {loser: self.rest(which, dice, starter, place, loser) for loser in range(len(dice)) if dice[loser]}
        if which == "alone":
            members = [each for each in payoffs if each != place]
            return -self.value(dice, starter, members, {loser: -share for loser, share in payoffs.items()})
        return self.value(dice, starter, [place] if which == "responds" else [], payoffs)

    def mean(self, which, seat):
        """The same of a seat, mean over who begins the game."""
        dice = self.options.dice_per_seat
        starters = range(len(dice) if self.options.starter == "random" else 1)
        return np.mean([self.share(which, dice[by:] + dice[:by], (seat - by) % len(dice), by) for by in starters])

    def value(self, dice, starter, members, payoffs):
        coalition = _Coalition(self, dice, starter, members, payoffs)
        joint = list(itertools.product(*(self.hands(dice[each]) for each in coalition.others)))
        own = list(itertools.product(*(self.hands(dice[each]) for each in members)))
        return float(np.mean([coalition.best((), hands, joint, np.full(len(joint), 1 / len(joint))) for hands in own]))

    def choices(self, dice, starter, bids, hand):
        """Between two players: action → the most that the one to move with this hand can win after it."""
        place, other = len(bids) % 2, 1 - len(bids) % 2
        coalition = _Coalition(
            self, dice, starter, [place], {loser: self.rest("responds", dice, starter, place, loser) for loser in (0, 1)}
        )
        joint, reach = [(theirs,) for theirs in self.hands(dice[other])], np.ones(self.options.num_faces ** dice[other])
        for made in range(other, len(bids), 2):
            reach *= [coalition.policies[other](dice, bids[:made], other, theirs)[bids[made]] for (theirs,) in joint]
        return {action: value / reach.sum() for action, value in coalition.choices(bids, (hand,), joint, reach)}


def is_palifico(options, dice, starter):
    """Whether the seat that starts a round of two players has just come down to one die, and the rules make something of it."""
    return options.palifico and options.rounds == "elimination" and dice[0] == 1 < options.dice_per_seat[starter]


class _Coalition:
    def __init__(self, plain, dice, starter, members, payoffs):
        self.plain, self.dice, self.members, self.payoffs = plain, dice, members, payoffs
        self.playing = list(payoffs)
        self.others = [each for each in payoffs if each not in members]
        self.policies = [plain.policies[(starter + place) % len(plain.policies)] for place in range(len(dice))]
        self.palifico = is_palifico(plain.options, dice, starter)

    def raises(self, bids, mover):
        last = bids[-1] if bids else None
        return raises(self.plain.options, sum(self.dice), last, self.dice[mover] if self.palifico else None)

    def choices(self, bids, own, joint, reach, answers=None):
        """Each action, and what the members win after it if it is taken with the chances in `answers`. See `best`."""
        mover, bidder = (self.playing[(len(bids) - ago) % len(self.playing)] for ago in (0, 1))
        for action in [*["call"] * bool(bids), *self.raises(bids, mover)]:
            after = reach if answers is None else reach * [answer.get(action, 0.0) for answer in answers]
            if action == "call":
                hold = [self.plain.holds(bids[-1], own + hands, self.palifico) for hands in joint]
                yield action, float(after @ np.where(hold, self.payoffs[mover], self.payoffs[bidder]))
            else:
                yield action, self.best((*bids, action), own, joint, after)

    def best(self, bids, own, joint, reach):
        """What the members win with their hands `own`, when others have the hands `joint` with probability `reach`."""
        if not reach.any():
            return 0.0
        mover = self.playing[len(bids) % len(self.playing)]
        if mover in self.members:
            return max(value for _, value in self.choices(bids, own, joint, reach))
        place = self.others.index(mover)
        answers = [self.policies[mover](self.dice, bids, mover, hands[place]) for hands in joint]
        return sum(value for _, value in self.choices(bids, own, joint, reach, answers))


# --- policies for both programs -------------------------------------------------------------------------------------------


def of_agent(variant, agent, seat=None):
    """An agent as a policy for `Plain`: of one seat, or of the seat at its place from the starter."""
    first = Batch(variant, 1, 0).states
    faces, call = variant.options.num_faces, variant.params.call

    @functools.cache
    def policy(dice, bids, place, hand):
        state, count = first.copy(), len(dice)
        at = place if seat is None else seat
        starter = (at - place) % count
        seats = (starter + np.arange(count)) % count
        state["dice"][0, seats], state["in_round"][0, seats] = dice, np.array(dice) > 0
        state["in_play"], state["starter"], state["seat"], state["counts"] = sum(dice), starter, at, 0
        state["palifico"] = is_palifico(variant.options, dice, starter)
        for die in hand:
            state["counts"][0, at, die - 1] += 1
        numbers = [(quantity - 1) * faces + face - 1 for quantity, face in bids]
        state["num_bids"], state["bid"] = len(bids), numbers[-1] if numbers else -1
        state["bids"][0, : len(bids)] = numbers
        chances = agent.probabilities(Turn(variant, state, np.zeros(1, np.int64), new_streams(0, 1)))[0]
        named = {(action // faces + 1, action % faces + 1): float(chances[action]) for action in range(call)}
        return {**named, "call": float(chances[call])}

    return policy


def plain_of(variant, *agents):
    """Tables of agents, one for each seat."""
    return Plain(variant, *(of_agent(variant, agent, seat) for seat, agent in enumerate(agents)))


def position(variant, hands, bids=()):
    """A first round that seat 0 has begun with these bids; hands are lists of faces."""
    batch = Batch(variant, 1, seed=1)
    batch.variant.arrange(batch.states[0], {"dice": hands})
    batch.states["starter"] = batch.states["seat"] = 0
    for bid in bids:
        batch.play([bid])
    return batch.states[0]
