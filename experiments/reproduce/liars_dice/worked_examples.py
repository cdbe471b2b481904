"""The article's worked examples: how likely an agent calls, the effect of a known die, and the loser of a call."""

from __future__ import annotations

from math import comb

import numpy as np

from dice_envs import Batch, configure
from dice_envs.agent import Turn
from dice_envs.agents.liars_dice import Numbers, chance_most
from dice_envs.core.dice import new_streams
from dice_envs.experiments.ui.findings import Finding
from dice_envs.games.liars_dice import chance_at_least

AGENT = "Oehm 2018, section 'The agent'"
RULES = "Oehm 2018, sections 'The rules' and 'Play the game'"
FACES, DICE = 6, 5
THREES, FIVES = 2, 4  # indices of faces
BID, HELD = 7, 2  # threes that are bid, and that the agent holds


def worked_examples() -> list[Finding]:
    """Return all examples as rows, which are exact."""
    return [*_called(), *_one_known(), *_who_loses()]


def _after_bid(dice: list[list[int]], quantity: int, face: int) -> Batch:
    """Return a first round with these dice, in which seat 0 has bid."""
    table = Batch("liars_dice", 1, seed=0, num_players=len(dice), num_dice=len(dice[0]), starter="first")
    assert table.variant.game.arrange is not None
    table.variant.game.arrange(table.variant.options, table.states[0], {"dice": dice})
    table.play(np.array([(quantity - 1) * FACES + face]))
    return table


def _called() -> list[Finding]:
    """Ask the agent of the text and that of the program: five players with five dice each, seven 3s bid, two in hand."""
    others = [[1] * DICE] * 3
    table = _after_bid([[1] * DICE, [THREES + 1] * HELD + [1] * (DICE - HELD), *others], BID, THREES)
    rows = []
    for style, agent, published in (
        ("its text", Numbers(preset="text"), 77.0),
        ("its program", Numbers(preset="article"), None),
    ):
        turn = Turn(table.variant, table.states, np.arange(1), new_streams(0, 1))
        called = 100 * float(agent.probabilities(turn)[0, -1])
        note = (
            "fewer than five 3s in 20 dice"
            if published
            else "five 3s in 20 dice or fewer: the program also calls what holds exactly"
        )
        agrees = None if published is None else round(called) == published
        figure = f"25 dice, seven 3s bid, two in hand: % called, {style}"
        rows.append(Finding(AGENT, figure, published, called, 0.0, agrees, note))
    return rows


def _one_known() -> list[Finding]:
    """Return the chance of the same bid if its bidder does not bluff: in the article's way, and in two by Bayes' rule."""
    params = configure("liars_dice", num_players=5, num_dice=DICE).params
    need, unseen = BID - HELD, DICE * (DICE - 1)

    def holds(known: int, others: int) -> float:
        """Return the chance, in %, that the bid holds given `known` 3s and `others` unknown dice."""
        return 100 * float(chance_at_least(params, params.wild, need, known, others, THREES))

    def by_bayes(likelihood: np.ndarray) -> float:
        """Return the mean chance over the bidder's number of 3s, given the likelihood of the evidence for each number."""
        prior = np.array([comb(DICE, k) * (FACES - 1.0) ** (DICE - k) for k in range(DICE + 1)])
        chances = [holds(k, unseen - DICE) for k in range(DICE + 1)]
        return float(np.average(chances, weights=prior * likelihood))

    without, known = holds(0, unseen), holds(1, unseen - 1)
    some = by_bayes(np.arange(DICE + 1) > 0)
    most = by_bayes(chance_most(FACES)[DICE, : DICE + 1])
    return [
        Finding(
            AGENT,
            "the same bid, one 3 of the bidder's known: % that four of 19 other dice show it",
            "slightly higher",
            known,
            0.0,
            known > without,
            f"{without:.2f} if none is known; the article asks for it and prints no figure",
        ),
        Finding(
            AGENT,
            "the same, the bidder has at least one 3: % that the bid holds, by Bayes' rule",
            None,
            some,
            note="less than four 3s in 19 dice: that would take a die that is known, not just that there is one",
        ),
        Finding(
            AGENT,
            "the same, the bidder has most 3s: % that the bid holds, by Bayes' rule",
            None,
            most,
            note="what a bid says of somebody who never bluffs; a tie counts as half",
        ),
    ]


def _loser(there: int, bid: int) -> str:
    """Return the player that loses a die if `bid` 5s are bid and called, and `there` are there."""
    spread = [FIVES + 1] * there + [1] * (4 * 6 - there)  # four players with six dice, as in the article
    table = _after_bid([spread[seat::4] for seat in range(4)], bid, FIVES)
    table.play(np.array([table.variant.params.call]))
    return {0: "the bidder", 1: "the caller"}[int(table.states["loser"][0])]


def _who_loses() -> list[Finding]:
    """Return the rules' sentence case by case, and the game that the article tells."""
    ours = {there: _loser(there, 4) for there in (3, 4, 5)}
    sentence = {3: "the caller", 4: "the caller", 5: "the bidder"}
    why = {
        3: f"backwards: in the game it tells, this is lost by {ours[3]}, and so it is in its program",
        4: "",
        5: "backwards as well: a bid says “at least”, and its program takes the die from the caller",
    }
    words = {3: "three", 4: "four", 5: "five"}
    rows = [
        Finding(
            RULES, f"the game it tells: four 5s bid, {words[there]} there, lost by", told, ours[there], 0.0, told == ours[there]
        )
        for there, told in ((4, "the caller"), (3, "the bidder"))
    ]
    for there, says in sentence.items():
        agrees = says == ours[there]
        figure = f"the rule's sentence: four 5s bid, {words[there]} there, lost by"
        rows.append(Finding(RULES, figure, says, ours[there], 0.0, agrees, "" if agrees else why[there]))
    return rows
