"""Exact figures of agents at tables of Liar's Dice: what each wins, what leaving its policy gains, what a coalition takes.

With three or more players no single number says how good a player is: what it wins depends on what the others let it have.
What can be said is how much one player gains by leaving the strategy of all others, its *deviation gain*: 0 in an
equilibrium and nowhere else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dice_envs.core.game import Variant
from dice_envs.exact import BEST_RESPONSE_WINS, DEVIATION_GAIN, Effort, Measurement
from dice_envs.exact.agents import asked
from dice_envs.exact.liars_dice.multiplayer.seating import Dice, check_table, first_tables, rounds_of, tables_of
from dice_envs.exact.liars_dice.multiplayer.shares import (
    Asked,
    Question,
    Shares,
    mean_shares,
    round_at,
    shares_of,
    table_key,
)
from dice_envs.exact.liars_dice.probes import check_fixed, check_steady, note_on_past_rounds

__all__ = ["MOST_VALUES", "check_size", "measure", "measure_table", "winning_shares"]

MOST_VALUES = 10e9  # of all hands at all nodes of all rounds; a core takes about half an hour
VALUES_A_SECOND = 6e6
MOST_OF_COALITION = 0.5e9  # values of joint hands up to which a coalition is measured, too
_WHAT = "an exact result at a table"
_SHARE = "share of wins"


def check_size(variant: Variant, what: str = _WHAT) -> None:
    """Raise ValueError for a reward that is not a win, and for a game with too many values."""
    options = variant.options
    check_table(options, what)
    values = _values(variant, _hands, [first_tables(options)[0].dice])
    if values <= MOST_VALUES:  # else the first round alone has too many, and there may be very many rounds
        values = _values(variant, _hands, rounds_of(variant))
    if values > MOST_VALUES:
        raise ValueError(
            f"num_players={options.num_players} with num_dice={options.num_dice!r}, num_faces={options.num_faces} and "
            f"raise_rule={options.raise_rule!r} makes at least {values:,.0f} values of hands at nodes, which take "
            f"{values / VALUES_A_SECOND / 3600:.3g} hours; {MOST_VALUES:,.0f} at most are allowed for {what}"
        )


def _values(variant: Variant, hands: Callable[[Variant, Dice], int], tables: Sequence[Dice]) -> float:
    """Return the number of values at all nodes of rounds, for so many hands of all parties in a round with these dice."""
    rounds = [round_at(variant, dice) for dice in tables]
    return float(sum(each.decisions[:, 0].sum() * hands(variant, each.dice) for each in rounds))


def _hands(variant: Variant, dice: Dice) -> int:
    """Return the number of hands of all players."""
    faces = variant.options.num_faces
    return sum(math.comb(number + faces - 1, number) for number in dice)


def _joint_hands(variant: Variant, dice: Dice) -> int:
    """Return the number of hands that all players but one hold together, summed over who is left out."""
    return _hands(variant, tuple(sum(dice) - number for number in dice))


# --- one strategy in all seats ------------------------------------------------------------------------------------------


def measure(variant: Variant, agent: Any, effort: Effort) -> list[Measurement]:
    """Measure the deviation gain of an agent that plays in all seats, and what a coalition takes from it.

    See `dice_envs.exact.GameMeasure`.

    Raises:
        ValueError: the reward is not a win, or the game is too large; or the agent's answers are random.
    """
    check_size(variant)
    check_steady(variant, agent, _WHAT, answers=0)
    note = note_on_past_rounds(variant, agent, effort.seed)
    alone = _values(variant, _joint_hands, rounds_of(variant)) <= MOST_OF_COALITION
    shares, by_place = _in_all_seats(variant, agent, Question(responds=True, alone=alone), effort)
    fair, rate = float(shares.plays.mean()), float(shares.responds.mean())
    gap, steps = max(0.0, rate - fair), variant.facts.max_steps
    sets = f"{_information_sets(variant, rounds_of(variant)):,.0f} information sets"
    found = [
        Measurement(DEVIATION_GAIN, rate - fair, 0.0, gap, unit=_SHARE, note="; ".join(filter(None, [sets, note])), span=steps),
        Measurement(BEST_RESPONSE_WINS, rate, fair, gap, unit="probability", note=_places(by_place), span=steps),
    ]
    if alone:
        left = float(shares.alone.mean())
        note = f"all others as one, each knowing the dice of all of them, leave it {left:.6f}; even the best play loses to them"
        found.append(Measurement("taken by a coalition", fair - left, 0.0, fair - left, unit=_SHARE, note=note, span=steps))
    return found


def _in_all_seats(variant: Variant, agent: Any, question: Question, effort: Effort) -> tuple[Shares, Shares]:
    """Return the shares at the beginning, by seat, and by place from the starter, mean over those who may begin."""
    total = _information_sets(variant, rounds_of(variant))

    def done(amount: float) -> None:
        effort.done(amount, total)

    seated = Asked(variant, [agent], effort.seed)
    known, merged = shares_of(variant, seated, question, True, done), True
    if not seated.alike:  # each seat is asked by itself
        total += _information_sets(variant, [table.dice for table in tables_of(variant)])
        seated = Asked(variant, [agent] * variant.options.num_players, effort.seed)
        known, merged = shares_of(variant, seated, question, False, done), False
    starts = [known[table_key(table, merged)] for table in first_tables(variant.options)]
    return mean_shares(variant, known, merged), Shares(*(np.mean(part, axis=0) for part in zip(*starts, strict=True)))


def _information_sets(variant: Variant, tables: Sequence[Dice]) -> float:
    """Return the number of information sets of all players in rounds with these dice."""
    rounds = [round_at(variant, dice) for dice in tables]
    return float(sum(each.information_sets(player) for each in rounds for player in range(len(each.dice))))


def _places(shares: Shares) -> str:
    """Return the shares of each place after the starter, in words."""
    plays, responds = (", ".join(f"{share:.6f}" for share in part) for part in (shares.plays, shares.responds))
    return f"by place from the starter {responds}, where the agent itself wins {plays}"


# --- different agents ---------------------------------------------------------------------------------------------------


def measure_table(variant: Variant, agents: Sequence[Any], effort: Effort) -> list[Measurement]:
    """Measure how much each of the agents at a table could gain by leaving its policy. See `dice_envs.exact.GameTableMeasure`.

    Raises:
        ValueError: the reward is not a win, or the game is too large; or an agent remembers past games, answers at random, or
            looks at past rounds.
    """
    shares = _of_agents(variant, agents, Question(responds=True), effort)
    found = []
    for number, (agent, own, best) in enumerate(zip(agents, shares.plays.tolist(), shares.responds.tolist(), strict=True)):
        gap, whose = max(0.0, best - own), f", seat {number + 1}: {agent.name}" if number else ""
        found += [
            Measurement(DEVIATION_GAIN + whose, best - own, 0.0, gap, unit=_SHARE),
            Measurement(BEST_RESPONSE_WINS + whose, best, own, gap, unit="probability", note=f"{agent.name} wins {own:.6f}"),
        ]
    return found


def winning_shares(
    variant: Variant, agents: Sequence[Any], done: Callable[[float, float], Any] = lambda amount, total: None
) -> list[float]:
    """Return each agent's share of wins at a table, without sampling.

    Args:
        variant: the game.
        agents: one for each seat, as `dice_envs.measure` takes them; their answers must not be random. They sit in this
            order, and each as often in every seat.
        done: progress callback, called with (amount done since the last call, amount in all).

    Raises:
        ValueError: there is no exact result for the game, its options or the agents.
        AgentError: an agent's probabilities or actions are against the rules.
    """
    players = [asked(each, variant) for each in agents]
    shares: list[float] = _of_agents(variant, players, Question(), Effort(done=done)).plays.tolist()
    return shares


def _of_agents(variant: Variant, agents: Sequence[Any], question: Question, effort: Effort) -> Shares:
    """Return the shares of each agent, mean over the seats that it may have."""
    check_size(variant)
    for agent in agents:
        check_fixed(variant, agent, _WHAT)
    seats = len(agents)
    total = _information_sets(variant, [table.dice for table in tables_of(variant)])
    options = variant.options
    are_equal = options.starter == "random" and len(set(options.dice_per_seat)) == 1
    found = []
    for shift in range(seats):
        seated = Asked(variant, [agents[(seat - shift) % seats] for seat in range(seats)], effort.seed)
        known = shares_of(variant, seated, question, False, lambda amount: effort.done(amount, total))
        found.append([np.roll(part, -shift) for part in mean_shares(variant, known, merged=False)])
        if are_equal and seated.alike:
            break  # the other seats would give the same
    for agent in agents:
        check_steady(variant, agent, _WHAT)
    return Shares(*(np.mean(part, axis=0) for part in zip(*found, strict=True)))
