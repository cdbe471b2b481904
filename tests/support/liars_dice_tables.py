"""Tables of Liar's Dice valued by a plain program that shares nothing with the project but what agents answer.

It enumerates the hands of all players together, and follows every bid. So it is slow, and good for a few dice.
"""

import functools
import itertools

import numpy as np

from dice_envs.agent import Turn
from dice_envs.core.batch import Batch
from dice_envs.core.dice import new_streams


class Plain:
    """The shares of wins at tables, by place from the starter.

    `policy(dice, bids, place, hand)` returns the chance of each action, a bid (quantity, face) or "call", of a player with a
    hand, which is a tuple of faces, after bids; `dice` are those of each place, 0 for players who are out. There is one for all
    seats, or one for each.
    """

    def __init__(self, variant, *policies):
        self.options, self.policies = variant.options, policies
        self.faces = range(1, variant.options.num_faces + 1)

    def raises(self, dice, bids):
        every = [(quantity, face) for quantity in range(1, sum(dice) + 1) for face in self.faces]
        if not bids:
            return [bid for bid in every if bid[1] != 1] if self.options.raise_rule == "perudo" else every
        quantity, face = bids[-1]
        if self.options.raise_rule == "either":
            return [bid for bid in every if bid > (quantity, face)]
        if self.options.raise_rule == "perudo":  # ones count double
            twice = [((4 * more + 1, 0) if to == 1 else (2 * more, to), (more, to)) for more, to in every]
            last = (4 * quantity + 1, 0) if face == 1 else (2 * quantity, face)
            return [bid for worth, bid in twice if worth > last]
        most = max(self.faces)
        return [(more, to) for more, to in every if more > quantity and (to >= face or (face == most and to == 1))]

    def holds(self, bid, hands):
        quantity, face = bid
        wild = {None: None, "ones": 1, "highest": max(self.faces)}[self.options.wild]
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
        playing = [each for each in range(len(dice)) if dice[each]]
        worth = {loser: self.rest(which, dice, starter, place, loser) for loser in playing}
        if which == "alone":
            members = [each for each in playing if each != place]
            return -self.value(dice, starter, members, {loser: -share for loser, share in worth.items()})
        return self.value(dice, starter, [place] if which == "responds" else [], worth)

    def value(self, dice, starter, members, worth):
        playing = [each for each in range(len(dice)) if dice[each]]
        others = [each for each in playing if each not in members]
        joint = list(itertools.product(*(self.hands(dice[each]) for each in others)))
        own = list(itertools.product(*(self.hands(dice[each]) for each in members)))
        policies = [self.policies[(starter + place) % len(self.policies)] for place in range(len(dice))]
        party = _Party(self, dice, playing, members, others, worth, policies)
        return float(np.mean([party.best((), hands, joint, np.full(len(joint), 1 / len(joint))) for hands in own]))


class _Party:
    def __init__(self, plain, dice, playing, members, others, worth, policies):
        self.plain, self.dice, self.playing, self.members = plain, dice, playing, members
        self.others, self.worth, self.policies = others, worth, policies

    def best(self, bids, own, joint, reach):
        """What the members win with their hands `own`, when others have the hands `joint` with probability `reach`."""
        mover = self.playing[len(bids) % len(self.playing)]
        bidder = self.playing[(len(bids) - 1) % len(self.playing)]
        raises = self.plain.raises(self.dice, bids)

        def called(chances):
            hold = [self.plain.holds(bids[-1], own + hands) for hands in joint]
            return float(sum(c * self.worth[mover if held else bidder] for c, held in zip(chances, hold, strict=True)))

        if not reach.any():
            return 0.0
        if mover in self.members:
            values = [self.best((*bids, bid), own, joint, reach) for bid in raises]
            return max(values + ([called(reach)] if bids else []))
        place = self.others.index(mover)
        answers = [self.policies[mover](self.dice, bids, mover, hands[place]) for hands in joint]
        total = called(reach * [answer.get("call", 0.0) for answer in answers]) if bids else 0.0
        for bid in raises:
            total += self.best((*bids, bid), own, joint, reach * [answer.get(bid, 0.0) for answer in answers])
        return total


# --- policies for both programs -------------------------------------------------------------------------------------------


def of_agent(variant, agent):
    """An agent as a policy for `Plain`."""
    first = Batch(variant, 1, 0).states
    faces, call = variant.options.num_faces, variant.params.call

    @functools.cache
    def policy(dice, bids, place, hand):
        state = first.copy()
        count = len(dice)
        state["dice"][0, :count], state["in_round"][0, :count] = dice, np.array(dice) > 0
        state["in_play"], state["starter"], state["seat"], state["counts"] = sum(dice), 0, place, 0
        for die in hand:
            state["counts"][0, place, die - 1] += 1
        numbers = [(quantity - 1) * faces + face - 1 for quantity, face in bids]
        state["num_bids"], state["bid"] = len(bids), numbers[-1] if numbers else -1
        state["bids"][0, : len(bids)] = numbers
        chances = agent.probabilities(Turn(variant, state, np.zeros(1, np.int64), new_streams(0, 1)))[0]
        named = {(action // faces + 1, action % faces + 1): float(chances[action]) for action in range(call)}
        return {**named, "call": float(chances[call])}

    return policy


class Uneven:
    """Plays any legal action, with chances that depend on its hand, the dice left and all bids made, the same in all seats."""

    def probabilities(self, turn):
        states, legal = turn.states, turn.legal
        weights = np.zeros(legal.shape)
        for row, state in enumerate(states):
            starter, count = int(state["starter"]), turn.variant.params.num_players
            dice = [int(state["dice"][(starter + place) % count]) for place in range(count)]
            bids = state["bids"][: state["num_bids"]].astype(int)
            own = state["counts"][state["seat"]].astype(int)
            key = 3 * (own @ np.arange(1, len(own) + 1)) + 5 * bids.sum() + 7 * len(bids) + dice @ np.arange(1, count + 1)
            weights[row] = legal[row] * (1 + (key + 11 * np.arange(legal.shape[1])) % 13)
        return weights / weights.sum(axis=1, keepdims=True)

    def act(self, turn):
        return self.probabilities(turn).argmax(axis=1)
