"""Exact figures of Liar's Dice: best responses to any agent, what a player gains by leaving its policy, and one agent against
another.

Between two players a best response wins each round as often as it can, as long as winning a round is worth more than losing
it: see `shares`. With three or more players no single number says how good a player is: what it wins depends on what the
others let it have. What can be said is how much one player gains by leaving the strategy of all others, its *deviation gain*:
0 in an equilibrium and nowhere else.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dice_envs.core.game import Variant
from dice_envs.core.work import counting
from dice_envs.exact import BEST_RESPONSE_WINS, DEVIATION_GAIN, ActionValues, Effort, Measurement, asked
from dice_envs.exact.agents import Mixed, is_random
from dice_envs.exact.contract import RETURN, ProfileValues, Unit
from dice_envs.games.liars_dice.exact.moves import Nodes, PlayerMoves
from dice_envs.games.liars_dice.exact.round import CALL
from dice_envs.games.liars_dice.exact.seating import Dice, Table, check_rounds, check_two_players, first_tables, rounds_of
from dice_envs.games.liars_dice.exact.shares import (
    ALONE,
    MOST_WALKED,
    PLAYS,
    RESPONDS,
    SeatedAgents,
    Shares,
    check_measurable,
    has_equal_seats,
    in_both_seats,
    information_sets,
    mean_shares,
    response_wins,
    round_at,
    shares_of,
)
from dice_envs.games.liars_dice.exact.solver import HINT_PRECISION, check_needs, solution_of
from dice_envs.games.liars_dice.exact.sources import fixed_in_a_round, note_on_past_rounds
from dice_envs.games.liars_dice.exact.walk import Keep, Others, Winnings

MOST_VALUES = 10e9  # of all hands at all nodes of all rounds at a table; a core takes about half an hour
VALUES_A_SECOND = 6e6
MOST_OF_COALITION = 0.5e9  # values of joint hands up to which a coalition is measured, too
_WHAT = "an exact result at a table"
_OF_TWO = "an exact result of two agents"
_SHARE = "share of wins"


def record_response(variant: Variant, agent: Any, seat: int) -> dict[Table, dict[tuple[int, ...], np.ndarray]]:
    """Find a best response to the agent in a seat, for small games.

    Returns:
        For each round the bids made before a decision → for each of its hands (see `Round.hands`) the bid that it makes,
        or −1 for a call. Nodes that the agent never reaches are left out.
    """
    check_measurable(variant, "a best response")
    book: dict[Table, dict[tuple[int, ...], np.ndarray]] = {}

    def keep(table: Table) -> Keep:
        round_, player, choices = round_at(variant, table.dice), table.place(1 - seat), book.setdefault(table, {})
        rules, classes = round_.rules, round_.classes_of((player,), round_.matches[player], is_sure=True)

        def keep_choices(batch: Nodes, others: Others, found: Winnings, chosen: PlayerMoves | np.ndarray) -> None:
            for i, slot in enumerate(batch.slots if isinstance(chosen, np.ndarray) else ()):
                edge = chosen[found.at[i] + classes.of[player, slot]]
                choices[tuple(batch.paths[i].tolist())] = np.where(edge == CALL, CALL, rules.bid[rules.child[edge]])

        return keep_choices

    response_wins(variant, agent, seat, keep=keep)
    return book


# --- the measure ----------------------------------------------------------------------------------------------------


def measure(variant: Variant, agent: Any, effort: Effort) -> list[Measurement]:
    """Measure exploitability, and how often a best response wins. See `dice_envs.exact.GameExact.measure`.

    With three players or more the deviation gain is measured of an agent in all seats, and what a coalition takes from it.
    The game of two is zero-sum, so the mean over the seats of what best responses win is the mean of what they win above the
    game's value, as OpenSpiel counts exploitability (NashConv / 2).

    An agent whose answers are random is known by a sample of them. A best response to a sample wins more from it than
    could be won from the agent; the same response wins less from a second sample, on average, than the best could.
    The agent's exploitability lies between the two, and so does the interval given.

    Raises:
        ValueError: the game is not played for a win, or it is too large; a best response of two players would rather lose a
            round than win it; or the answers of an agent at a larger table are random.
    """
    if variant.options.num_players > 2:
        return _measure_in_all_seats(variant, agent, effort)
    check_measurable(variant, "an exact measure", MOST_WALKED)
    of_past_rounds = note_on_past_rounds(variant, agent, effort.seed)
    # With the agent in each seat `response_wins` goes through the rounds, `walk.Walk` through the nodes of each. There
    # `moves_of` asks the agent, by a source from `source_of`, and the response is chosen.
    respond = functools.partial(response_wins, variant, agent, seed=effort.seed, copies=2 if is_random(agent) else 1)
    found = in_both_seats(variant, respond)
    wins = np.array([[known[table] for table in first_tables(variant.options)] for known in found])
    middle = (wins[..., 0] + wins[..., -1]) / 2
    rate, error = float(middle.mean()), float((wins[..., 0] - wins[..., -1]).mean()) / 2
    sets = f"{information_sets(variant, range(len(wins))):,.0f} information sets"
    note = "; ".join(filter(None, [sets, of_past_rounds]))
    starts = np.array([[table.starter != seat for table in first_tables(variant.options)] for seat in range(len(wins))])
    by_role = f"{middle[starts].mean():.6f} where it starts, {middle[~starts].mean():.6f} where it does not"
    gap, decisions = max(0.0, 2 * rate - 1), variant.facts.max_steps / 2
    return [
        Measurement("exploitability", 2 * rate - 1, 0.0, gap, 2 * error, "return", note, 2 * decisions),
        Measurement(BEST_RESPONSE_WINS, rate, 0.5, gap / 2, error, "probability", by_role, decisions),
    ]


# --- one strategy in all seats ------------------------------------------------------------------------------------------


def _measure_in_all_seats(variant: Variant, agent: Any, effort: Effort) -> list[Measurement]:
    """Measure the deviation gain of an agent that plays in all seats, and what a coalition takes from it."""
    check_size(variant)
    if is_random(agent):
        raise ValueError(f"the answers of {agent.name} are random: {_WHAT} is known for agents whose probabilities are fixed")
    note = note_on_past_rounds(variant, agent, effort.seed)
    alone = _values(variant, rounds_of(variant.options), joint=True) <= MOST_OF_COALITION
    shares = _in_all_seats(variant, agent, (PLAYS, RESPONDS, *[ALONE] * alone), effort)
    fair, left, steps = float(shares.plays.mean()), float(shares.alone.mean()), variant.facts.max_steps
    sets = f"{information_sets(variant, dice=rounds_of(variant.options)):,.0f} information sets"
    plays, responds = (", ".join(f"{share:.6f}" for share in part) for part in (shares.plays, shares.responds))
    by_place = f"by place from the starter {responds}, where the agent itself wins {plays}"
    notes = "; ".join(filter(None, [sets, note])), by_place
    found = _gain(fair, float(shares.responds.mean()), notes, span=steps)
    if alone:
        note = f"all others as one, each knowing the dice of all of them, leave it {left:.6f}; even the best play loses to them"
        found.append(Measurement("taken by a coalition", fair - left, 0.0, fair - left, unit=_SHARE, note=note, span=steps))
    return found


def _gain(own: float, best: float, notes: tuple[str, str], whose: str = "", span: float | None = None) -> list[Measurement]:
    """Return the deviation gain of an agent, and how often a best response wins in its place."""
    gap = max(0.0, best - own)
    return [
        Measurement(DEVIATION_GAIN + whose, best - own, 0.0, gap, unit=_SHARE, note=notes[0], span=span),
        Measurement(BEST_RESPONSE_WINS + whose, best, own, gap, unit="probability", note=notes[1], span=span),
    ]


def _in_all_seats(variant: Variant, agent: Any, parts: Sequence[int], effort: Effort) -> Shares:
    """Return the shares at the beginning by place from the starter, mean over those who may begin."""
    total = information_sets(variant, dice=rounds_of(variant.options))
    seated = SeatedAgents([agent], effort.seed)
    with counting(total):
        known = shares_of(variant, seated, parts)
    if not seated.seats.alike:  # each seat is asked by itself
        seated = SeatedAgents([agent] * variant.options.num_players, effort.seed)
        with counting(total + information_sets(variant)):
            known = shares_of(variant, seated, parts)
    return Shares(*np.mean([known[seated.key(table)] for table in first_tables(variant.options)], axis=0))


def check_size(variant: Variant, what: str = _WHAT) -> None:
    """Raise ValueError for a reward that is not a win, and for a game with too many values."""
    options = variant.options
    check_rounds(options, what)
    values = _values(variant, [first_tables(options)[0].dice])
    if values <= MOST_VALUES:  # else the first round alone has too many, and there may be very many rounds
        values = _values(variant, rounds_of(options))
    if values > MOST_VALUES:
        raise ValueError(
            f"num_players={options.num_players} with num_dice={options.num_dice!r}, num_faces={options.num_faces} and "
            f"raise_rule={options.raise_rule!r} makes at least {values:,.0f} values of hands at nodes, which take "
            f"{values / VALUES_A_SECOND / 3600:.3g} hours; {MOST_VALUES:,.0f} at most are allowed for {what}"
        )


def _values(variant: Variant, tables: Sequence[Dice], joint: bool = False) -> float:
    """Return the total number of hand values over all nodes of these rounds.

    They are of each player's hands or, if `joint`, of those that all players but one hold together, for each left out.
    """
    more, total = variant.options.num_faces - 1, 0.0
    for each in (round_at(variant, dice) for dice in tables):
        dice = [sum(each.dice) - number if joint else number for number in each.dice]
        total += float(each.decisions[:, 0].sum()) * sum(math.comb(number + more, number) for number in dice)
    return total


# --- different agents ---------------------------------------------------------------------------------------------------


def measure_table(variant: Variant, agents: Sequence[Any], effort: Effort) -> list[Measurement]:
    """Measure how much each of the agents at a table could gain by leaving its policy.

    See `dice_envs.exact.GameExact.measure_table`.

    Raises:
        ValueError: the reward is not a win, or the game is too large; or an agent remembers past games, answers at random, or
            looks at past rounds.
    """
    check_size(variant)
    shares = _of_agents(variant, agents, (PLAYS, RESPONDS), effort)
    found = []
    for number, (agent, own, best) in enumerate(zip(agents, shares.plays.tolist(), shares.responds.tolist(), strict=True)):
        whose = f", seat {number + 1}: {agent.name}" if number else ""
        found += _gain(own, best, ("", f"{agent.name} wins {own:.6f}"), whose)
    return found


def measure_profile(variant: Variant, agents: Sequence[Any], effort: Effort) -> ProfileValues:
    """Return what the agents of a profile win, and what best responses do. See `dice_envs.exact.GameExact.measure_profile`.

    Raises:
        ValueError: as of `measure_table`; or a mixture plays games of more than one round.
    """
    check_size(variant)
    if not is_one_round(variant) and any(isinstance(each, Mixed) for each in agents):
        raise ValueError("a mixture in a profile is measured in games of one round: in others it is not known what it gains")
    seated = SeatedAgents(agents, effort.seed)
    with fixed_in_a_round(variant, agents, "an exact result of a profile"), counting(information_sets(variant)):
        known = shares_of(variant, seated, (PLAYS, RESPONDS))
    shares = mean_shares(variant, seated, known)
    if len(agents) > 2:
        return ProfileValues(shares.plays[None], shares.responds[None], Unit(_SHARE))
    return ProfileValues(2 * shares.plays[None] - 1, 2 * shares.responds[None] - 1, RETURN)


def is_one_round(variant: Variant) -> bool:
    """Return whether a game is one round. See `dice_envs.exact.GameExact.is_one_round`."""
    return bool(variant.options.rounds == "single" or sum(variant.options.dice_per_seat) == 2)


def winning_shares(variant: Variant, agents: Sequence[Any]) -> list[float]:
    """Return each agent's share of wins at a table. See `dice_envs.exact.GameExact.winning_shares`."""
    what = _OF_TWO if len(agents) == 2 else _WHAT
    if len(agents) == 2:
        check_measurable(variant, what, MOST_WALKED)
    else:
        check_size(variant, what)
    players = [asked(each, variant) for each in agents]
    shares: list[float] = _of_agents(variant, players, (PLAYS,), Effort(), what).plays.tolist()
    return shares


def _of_agents(variant: Variant, agents: Sequence[Any], parts: Sequence[int], effort: Effort, what: str = _WHAT) -> Shares:
    """Return the shares of each agent, mean over the seats that it may have. ValueError names `what` is not known."""
    seats, total = len(agents), information_sets(variant)
    seatings = 1 if has_equal_seats(variant) else seats
    found: list[np.ndarray] = []
    with fixed_in_a_round(variant, agents, what):
        while len(found) < seatings:
            shift = len(found)
            seated = SeatedAgents([agents[(seat - shift) % seats] for seat in range(seats)], effort.seed)
            with counting(total * seatings):
                known = shares_of(variant, seated, parts)
            found.append(np.roll(mean_shares(variant, seated, known), -shift, axis=1))
            if not seated.seats.alike:  # else the other seats would give the same
                seatings = seats
    return Shares(*np.mean(found, axis=0))


# --- action values --------------------------------------------------------------------------------------------------


def action_values(variant: Variant, state: Any) -> ActionValues:
    """Return what each action wins against optimal play between two players. See `dice_envs.exact.GameExact.action_values`.

    Takes the solution that `solve liars_dice` has kept; without one the game is solved first.
    """
    check_two_players(variant.options)
    check_needs(variant)
    return solution_of(variant.options, HINT_PRECISION).action_values(state)
