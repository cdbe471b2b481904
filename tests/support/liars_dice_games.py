"""Liar's Dice of two players by plain recursion over the game's kernels, with agents or best responses in the seats."""

import collections
import itertools

import numpy as np

from dice_envs.agent import Turn, ask_probabilities
from dice_envs.core.batch import dealt
from dice_envs.core.dice import new_streams
from dice_envs.exact import Effort
from dice_envs.exact.liars_dice import measure, winning_shares
from dice_envs.exact.liars_dice.round import hands_of
from dice_envs.exact.liars_dice.walk import Party, Walk


def exploitability(variant, agent):
    """What best responses win from an agent that states its probabilities."""
    return measure(variant, agent, Effort())[0].value


def winning_probability(variant, agent, other, *done):
    """How often an agent wins from another."""
    return winning_shares(variant, [agent, other], *done)[0]


def respond(round_, player, source):
    """How often the best response to a player wins a round of two."""
    return Walk(round_, [source, source], [Party((1 - player,), np.eye(2)[player])]).values()[0]


class PlainGames:
    """Values of whole games by recursion over the game's kernels: each hand, all raises, the true stakes of every round."""

    def __init__(self, variant, *players):
        self.variant, self.players = variant, players  # by seat; None is the best response
        self.responds = players.index(None) if None in players else None
        self.counted = self.responds or 0  # the seat whose wins are counted
        self.known, self.values = {}, {}
        self.palifico = set()  # rounds, by dice and starter, that the kernels have called so

    def position(self, dice, starter, path, hands):
        state = dealt(self.variant, 1)
        state["palifico"] = (dice, starter) in self.palifico
        state["dice"][0, :2] = dice
        state["in_play"] = sum(dice)
        state["seat"] = state["starter"] = starter
        state["counts"][0, :2] = hands
        for bid in path:
            self.variant.kernels.play(self.variant.params, state, np.zeros(1, np.int64), np.array([bid]))
        return state

    def chances(self, seat, dice, starter, path, hands):
        """The probabilities of the seat's actions with its hand (the other hand is hidden), (actions,)."""
        key = seat, dice, starter, path, tuple(hands[seat])
        if key not in self.known:
            state = self.position(dice, starter, path, hands)
            turn = Turn(self.variant, state, np.zeros(1, np.int64), new_streams(1, 1))
            self.known[key] = ask_probabilities(self.players[seat], turn)[0]
        return self.known[key]

    def value(self, dice, starter):
        """The probability that seat 0 wins the game from this round on."""
        if (dice, starter) not in self.values:
            self.values[dice, starter] = self.first_value(dice, starter)
        return self.values[dice, starter]

    def first_value(self, dice, starter):
        hands = [hands_of(self.variant, each) for each in dice]
        pairs = list(itertools.product(range(len(hands[0][0])), range(len(hands[1][0]))))
        weights = {(a, b): hands[0][1][a] * hands[1][1][b] for a, b in pairs}
        won = sum(self.best(dice, starter, (), weights, hands).values())
        return 1 - won if self.counted else won

    def after_call(self, dice, starter, path, hands):
        """The probability that seat 0 wins after the bid is called."""
        state = self.position(dice, starter, path, hands)
        self.variant.kernels.play(self.variant.params, state, np.zeros(1, np.int64), np.array([self.variant.params.call]))
        left = tuple(state["dice"][0, :2].tolist())
        if state["seat"][0] < 0:
            return float(state["rewards"][0, 0] > 0)
        if state["palifico"][0]:
            self.palifico.add((left, int(state["seat"][0])))
        return self.value(left, int(state["seat"][0]))

    def legal(self, dice, starter, path, hands):
        return self.variant.legal_actions(self.position(dice, starter, path, hands)[0])

    def best(self, dice, starter, path, weights, hands):
        """For each hand of the seat whose wins are counted, its probability of winning times that of reaching the position.

        `weights` has the probability of reaching it with each pair of hands, without the choices of the best response.
        """
        if not weights:
            return collections.Counter()
        combine = max if (starter + len(path)) % 2 == self.responds else sum
        legal = self.legal(dice, starter, path, [hands[0][0][0], hands[1][0][0]])
        won = [self.after(dice, starter, path, weights, hands, action) for action in legal]
        return collections.Counter(
            {hand: combine(each[hand] for each in won) for hand in {pair[self.counted] for pair in weights}}
        )

    def after(self, dice, starter, path, weights, hands, action):
        """The same after an action at the position."""
        seat = (starter + len(path)) % 2
        both = {pair: [hands[each][0][pair[each]] for each in range(2)] for pair in weights}
        if seat != self.responds:
            chances = {pair: self.chances(seat, dice, starter, path, both[pair])[action] for pair in weights}
            weights = {pair: weight * chances[pair] for pair, weight in weights.items() if chances[pair] > 0}
        if action != self.variant.params.call:
            return self.best(dice, starter, (*path, action), weights, hands)
        won = collections.Counter()
        for pair, weight in weights.items():
            first = self.after_call(dice, starter, path, both[pair])
            won[pair[self.counted]] += weight * (1 - first if self.counted else first)
        return won

    def mean(self):
        """The probability that seat 0 wins, mean over who begins."""
        starters = (0, 1) if self.variant.options.starter == "random" else (0,)
        return np.mean([self.value(self.variant.options.dice_per_seat, starter) for starter in starters])

    def choices(self, own, dice, starter, path):
        """Action → the most that the best response can return after it, with a hand, when it is to move after these bids."""
        seat, other = self.responds, 1 - self.responds
        hands = [hands_of(self.variant, each) for each in dice]
        (mine,) = np.flatnonzero((hands[seat][0] == own).all(axis=1)).tolist()
        weights = {}
        for theirs, chance in enumerate(hands[other][1].tolist()):
            pair = (mine, theirs) if seat == 0 else (theirs, mine)
            both = [hands[each][0][pair[each]] for each in range(2)]
            for made, bid in enumerate(path):
                if (starter + made) % 2 == other:
                    chance *= self.chances(other, dice, starter, path[:made], both)[bid]
            weights[pair] = chance
        return {
            action: 2 * self.after(dice, starter, path, weights, hands, action)[mine] / sum(weights.values()) - 1
            for action in self.legal(dice, starter, path, [hands[0][0][0], hands[1][0][0]])
        }
