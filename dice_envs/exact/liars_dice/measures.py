"""Exact figures of Liar's Dice between two players: best responses to any agent, and one agent against another.

A whole game divides into rounds. A round ends with one player losing a die, and that player begins the next one. For
an agent that looks at the present round only, the rest of the game depends only on the dice left and on which player has
lost one. As long as winning a round is worth more than losing it, a best response wins each round as often as it
can; so each round is examined alone, and the game's value follows backward from its end. `walk` walks the rounds.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from dice_envs.agent import Agent
from dice_envs.core.dice import new_streams
from dice_envs.core.game import Variant
from dice_envs.core.kernel import kernel
from dice_envs.exact import BEST_RESPONSE_WINS, ActionValues, Effort, Measurement, asked
from dice_envs.exact.agents import is_random
from dice_envs.exact.liars_dice.elimination import check_two_players, rounds_of
from dice_envs.exact.liars_dice.multiplayer import measures as multiplayer
from dice_envs.exact.liars_dice.probes import check_fixed, check_steady, note_on_past_rounds
from dice_envs.exact.liars_dice.solver import solution_of, solved_already
from dice_envs.exact.liars_dice.sources import ROWS_AT_ONCE, Seats, source_of
from dice_envs.exact.liars_dice.stages import (
    MOST_INFORMATION_SETS,
    MOST_WALKED,
    Stage,
    check_measurable,
    first_stages,
    has_equal_seats,
    information_sets,
    opponent_wins,
    placed,
    response_wins,
    round_of,
    stages_of,
)
from dice_envs.exact.liars_dice.tree import Tree
from dice_envs.exact.liars_dice.walk import Record, meet
from dice_envs.games.liars_dice import (
    chance_at_least,
    chance_bid_exact,
    chance_bid_holds,
    legal,
    matching,
    may_call_exactly,
    wild_face,
)
from dice_envs.games.liars_dice.raises import NO_BID, face_of, quantity_of

__all__ = [
    "action_values",
    "check_in_passing",
    "exploitability",
    "measure",
    "odds",
    "record_response",
    "winning_probability",
]


def record_response(
    variant: Variant, agent: Any, seat: int, seed: int = 0
) -> tuple[float, dict[Stage, dict[tuple[int, ...], np.ndarray]]]:
    """Find a best response to the agent in a seat, for small games: how often it wins, and its choices.

    Returns:
        For each round the bids made before a decision → for each of its hands (see `Round.hands`) the bid that it makes,
        or −1 for a call. Nodes that the agent never reaches are left out.
    """
    check_measurable(variant, "a best response")
    book: dict[Stage, dict[tuple[int, ...], np.ndarray]] = {}

    def record(stage: Stage) -> Record:
        return book.setdefault(stage, {}).__setitem__

    values = response_wins(variant, agent, seat, seed=seed, record=record)
    return float(np.mean([value[0] for value in values])), book


def exploitability(variant: Variant, agent: Any, seed: int = 0) -> float:
    """Return what best responses win from an agent that states its probabilities, mean over the seats and the starters.

    Raises:
        ValueError: the game is not between two players for a win, or it is too large.
    """
    check_measurable(variant, "an exact measure", MOST_WALKED)
    return float(2 * np.mean([value[0] for found in _by_seat(variant, agent, seed) for value in found]) - 1)


def _by_seat(
    variant: Variant, agent: Any, seed: int, copies: int = 1, done: Callable[[float, float], Any] = lambda amount, total: None
) -> list[list[np.ndarray]]:
    """Return `response_wins` with the agent in each seat; in the first one only, if the agent plays alike in both.

    `done` is called with (amount done since the last call, amount in all).
    """
    seats = Seats() if has_equal_seats(variant) else None
    asked_in = [0] if seats is not None else [0, 1]

    def report(amount: float) -> None:
        done(amount, information_sets(variant, asked_in))

    found = [response_wins(variant, agent, 0, seed=seed, copies=copies, done=report, seats=seats)]
    if seats is None or not seats.alike:
        asked_in[:] = 0, 1
        found.append(response_wins(variant, agent, 1, seed=seed, copies=copies, done=report))
    return found


# --- the measure ----------------------------------------------------------------------------------------------------


def measure(variant: Variant, agent: Any, effort: Effort) -> list[Measurement]:
    """Measure exploitability, and how often a best response wins. See `dice_envs.exact.GameMeasure`.

    With three players or more the deviation gain is measured, see `dice_envs.exact.liars_dice.multiplayer.measures`.
    The game is zero-sum, so the mean over the seats of what best responses win is the mean of what they win above the
    game's value, as OpenSpiel counts exploitability (NashConv / 2).

    An agent whose answers are random is known by a sample of them. A best response to a sample wins more from it than
    could be won from the agent; the same response wins less from a second sample, on average, than the best could.
    The agent's exploitability lies between the two, and so does the interval given.

    Raises:
        ValueError: the game is not played for a win, or it is too large; or a best response of two players would rather lose
            a round than win it.
    """
    if variant.options.num_players > 2:
        return multiplayer.measure(variant, agent, effort)
    check_measurable(variant, "an exact measure", MOST_WALKED)
    of_past_rounds = note_on_past_rounds(variant, agent, effort.seed)
    copies = 2 if is_random(agent) else 1
    found = _by_seat(variant, agent, effort.seed, copies, effort.done)
    wins = np.array(found)  # (seats, who begins, copies)
    middle = (wins[..., 0] + wins[..., -1]) / 2
    rate, error = float(middle.mean()), float((wins[..., 0] - wins[..., -1]).mean()) / 2
    notes = [f"{information_sets(variant, range(len(found))):,.0f} information sets"]
    if of_past_rounds is not None:
        notes.append(of_past_rounds)
    gap, decisions = max(0.0, 2 * rate - 1), variant.facts.max_steps / 2
    return [
        Measurement("exploitability", 2 * rate - 1, 0.0, gap, 2 * error, "return", "; ".join(notes), 2 * decisions),
        Measurement(BEST_RESPONSE_WINS, rate, 0.5, gap / 2, error, "probability", _shares(variant, middle), decisions),
    ]


def _shares(variant: Variant, wins: np.ndarray) -> str:
    """Return how often the best response wins as the starter and otherwise, in words."""
    by_role: dict[bool, list[float]] = {True: [], False: []}
    for seat, row in enumerate(wins):
        for stage, share in zip(first_stages(variant, seat), row, strict=True):
            by_role[not stage.agent_starts].append(float(share))
    return f"{np.mean(by_role[True]):.6f} where it starts, {np.mean(by_role[False]):.6f} where it does not"


# --- one agent against another ----------------------------------------------------------------------------------------


def winning_probability(
    variant: Variant,
    agent: str | Agent | Callable[[np.ndarray, np.ndarray], Any],
    other: str | Agent | Callable[[np.ndarray, np.ndarray], Any],
    done: Callable[[float, float], Any] = lambda amount, total: None,
) -> float:
    """Return how often an agent wins from another, mean over the seats and the starters, without sampling.

    Args:
        variant: the game, between two players for a win.
        agent, other: as `dice_envs.measure` takes them; their answers must not be random.
        done: progress callback, called with (amount done since the last call, amount in all).

    Raises:
        ValueError: there is no exact result for the game, its options or the agents.
        AgentError: an agent's probabilities or actions are against the rules.
    """
    what = "an exact result of two agents"
    if variant.game.name != "liars_dice":
        raise ValueError(f"{what} is known for liars_dice only, not for {variant.game.name}")
    check_measurable(variant, what, MOST_WALKED)
    players = [asked(each, variant) for each in (agent, other)]
    for player in players:
        check_fixed(variant, player, what)
    by_seat = [stages_of(variant, seat) for seat in range(2)]
    total = float(sum(placed(variant, stage)[0].decisions[:, 0].sum() for stage in by_seat[0] + by_seat[1]))
    streams = new_streams(0, ROWS_AT_ONCE)[None]
    watched = (Seats(), Seats()) if has_equal_seats(variant) else (None, None)
    wins = []
    for seat, stages in enumerate(by_seat):
        chances = {}
        for stage in stages:
            played, number = placed(variant, stage)
            own = source_of(played, number, players[0], seat, streams, watched[0])
            others = source_of(played, 1 - number, players[1], 1 - seat, streams, watched[1])
            sources = (own, others) if stage.agent_starts else (others, own)
            started = meet(played, sources, lambda amount: done(amount, total))
            chances[stage] = np.array([1 - started if stage.agent_starts else started])
        wins += [1 - opponent_wins(stage, chances, variant, best=False)[0] for stage in first_stages(variant, seat)]
        if all(each is not None and each.alike for each in watched):
            done(total / 2, total)  # the other seat would give the same
            break
    for player in players:
        check_steady(variant, player, what)
    return float(np.mean(wins))


# --- action values --------------------------------------------------------------------------------------------------

MOST_IN_PASSING = (
    25_000_000  # probabilities of all rounds that are solved for a hint; five dice each of six faces have 20,589,901
)
PRECISION = 1e-3  # exploitability of the solution that values are taken from, as for the agent `nash`


def action_values(variant: Variant, state: Any, in_passing: bool = False) -> ActionValues:
    """Return what each action wins against optimal play between two players. See `dice_envs.exact.GameActionValues`.

    Takes the solution that `solve liars_dice` has kept; without one the game is solved first.
    """
    if in_passing:
        check_in_passing(variant)
    return solution_of(variant, PRECISION).action_values(state)


def check_in_passing(variant: Variant, precision: float = PRECISION) -> None:
    """Raise ValueError for a solution that takes more than about a minute to find, if it is not in memory."""
    if solved_already(variant, precision):
        return
    check_two_players(variant.options)
    if precision < PRECISION:
        raise ValueError(f"precision must be at least {PRECISION} where people wait for the solution, not {precision}")
    if size := _too_much(variant):
        raise ValueError(
            f"num_dice={variant.options.num_dice!r} with num_faces={variant.options.num_faces} is solved by finding {size}"
        )


@functools.lru_cache(maxsize=64)
def _too_much(variant: Variant) -> str:
    """Describe the size of a game that takes more than about a minute and a quarter of a GiB to solve; "" for others."""
    rounds = rounds_of(variant.options)
    sets = sum(round_of(variant, dice).information_sets(player) for dice in rounds for player in range(2))
    if sets > MOST_INFORMATION_SETS:
        return f"{sets:,.0f} information sets; in passing up to {MOST_INFORMATION_SETS:,}"
    # Trees merge information sets; building them takes a second or two.
    numbers = sum(int(Tree(variant, dice).kinds.size[0]) for dice in rounds)
    return f"{numbers:,} probabilities; in passing up to {MOST_IN_PASSING:,}" if numbers > MOST_IN_PASSING else ""


def odds(variant: Variant, state: Any) -> ActionValues:
    """Return the chances that each bid holds, and that a call is right, if all dice that the seat does not see are fair.

    See `dice_envs.exact.GameOdds`. The information in the others' bids is left out.
    """
    values = np.full(variant.facts.num_actions, np.nan)
    _odds(variant.params, np.array([state]), values)
    return ActionValues(
        values, "% likely", "how likely a bid holds and a call is right, with your dice and fair dice of the others"
    )


@kernel
def _odds(params, states, out):
    """Write the chance that each legal bid of states[0] holds, and that a call is right. In place."""
    state = states[0]
    seat = np.int64(state["seat"])
    mask = np.zeros(params.num_actions, np.int8)
    legal(params, state, mask)
    unseen = np.int64(state["in_play"]) - np.int64(state["dice"][seat])
    wild = wild_face(params, state)
    for bid in range(params.call):
        if mask[bid] != 0:
            face = face_of(params, bid)
            own = matching(wild, state["counts"][seat], face)
            out[bid] = chance_at_least(params, wild, quantity_of(params, bid) + 1, own, unseen, face)
    if state["bid"] != NO_BID:
        out[params.call] = 1.0 - chance_bid_holds(params, state, seat)
    if may_call_exactly(params, state):
        out[params.call + 1] = chance_bid_exact(params, state, seat)
