"""Exact figures of Liar's Dice between two players: best responses to any agent, and one agent against another.

A whole game divides into rounds. A round ends with one player losing a die, and that player begins the next one. For
an agent that looks at the present round only, the rest of the game depends only on the dice left and on which player has
lost one. As long as winning a round is worth more than losing it, a best response wins each round as often as it
can; so each round is examined alone, and the game's value follows backward from its end. `walk` walks the rounds.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from dice_envs.agent import Agent, Turn, ask_probabilities, fresh_memory
from dice_envs.core.batch import Batch
from dice_envs.core.dice import choose_from_mask, new_streams
from dice_envs.core.game import Variant
from dice_envs.core.kernel import kernel
from dice_envs.exact import BEST_RESPONSE_WINS, COMPARED, ActionValues, Effort, Measurement, asked
from dice_envs.exact.liars_dice.elimination import Dice, check_two_players, rounds_of, wins_game
from dice_envs.exact.liars_dice.round import Round
from dice_envs.exact.liars_dice.solver import solution_of, solved_already
from dice_envs.exact.liars_dice.sources import ROWS_AT_ONCE, Seats, source_of
from dice_envs.exact.liars_dice.tree import Tree
from dice_envs.exact.liars_dice.walk import Record, meet, respond
from dice_envs.games.liars_dice import NO_BID, chance_at_least, chance_bid_holds, face_of, legal, matching, quantity_of

__all__ = [
    "MOST_INFORMATION_SETS",
    "Stage",
    "check_measurable",
    "exploitability",
    "has_equal_seats",
    "measure",
    "past_rounds_matter",
    "record_response",
    "response_wins",
    "winning_probability",
]

MOST_INFORMATION_SETS = 250_000_000  # of one round, both players together; enough for five dice each by the article's rule
PROBED = 512  # positions at which an agent is tested for whether past rounds matter to it
# Each player's bids that calls may have shown there, and those of them that named a face it held most of.
PASTS = ((1, 0), (1, 1), (10, 0), (10, 5), (10, 10))
_PROBE_GAMES, _PROBE_STEPS = 256, 12
_ROUNDING = 1e-9
_OF_THE_PAST = ("bids_shown", "bids_honest", "shown", "shown_bid", "caller", "loser")  # state fields that calls have set


class Stage(NamedTuple):
    """A game at the beginning of a round."""

    agent: int  # dice of the agent
    other: int  # dice of its opponent
    agent_starts: bool


def check_measurable(variant: Variant, what: str) -> None:
    """Raise ValueError, naming `what` is not available, unless the game is small enough and between two players for a win."""
    options = variant.options
    check_two_players(options, what)
    sets = sum(_round(variant, options.dice_per_seat).information_sets(player) for player in range(2))
    if sets > MOST_INFORMATION_SETS:
        raise ValueError(
            f"num_dice={options.num_dice!r} with num_faces={options.num_faces} and raise_rule={options.raise_rule!r} makes a "
            f"round of about {sets:,.0f} information sets; {MOST_INFORMATION_SETS:,} at most are allowed for {what}"
        )


@functools.lru_cache(maxsize=64)
def _round(variant: Variant, dice: tuple[int, int]) -> Round:
    return Round(variant, dice)


def _starters(variant: Variant) -> tuple[int, ...]:
    """Return the seats that may begin the game."""
    return (0, 1) if variant.options.starter == "random" else (0,)


def has_equal_seats(variant: Variant) -> bool:
    """Return whether both seats have the same number of dice and begin equally often, which makes them symmetric."""
    first, second = variant.options.dice_per_seat
    return bool(first == second and variant.options.starter == "random")


def _first_stages(variant: Variant, seat: int) -> list[Stage]:
    dice = variant.options.dice_per_seat
    return [Stage(dice[seat], dice[1 - seat], starter == seat) for starter in _starters(variant)]


def _stages(variant: Variant, seat: int) -> list[Stage]:
    """Return the rounds that a game may reach with the agent in the seat, those with fewer dice first.

    After the first round, the starter has just lost a die.
    """
    stages = set(_first_stages(variant, seat))
    if variant.options.rounds == "elimination":
        own, other = variant.options.dice_per_seat[seat], variant.options.dice_per_seat[1 - seat]
        stages |= {Stage(a, b, True) for a in range(1, own) for b in range(1, other + 1)}
        stages |= {Stage(a, b, False) for a in range(1, own + 1) for b in range(1, other)}
    return sorted(stages, key=lambda stage: (stage.agent + stage.other, stage))


def _information_sets(variant: Variant, seats: Iterable[int]) -> float:
    """Return the number of information sets at which the agent has a choice, over all rounds."""
    total = 0.0
    for seat in seats:
        for stage in _stages(variant, seat):
            played, player = _placed(variant, stage)
            total += played.information_sets(player)
    return total


def _placed(variant: Variant, stage: Stage) -> tuple[Round, int]:
    """Return the round, and which of its players the agent is."""
    if stage.agent_starts:
        return _round(variant, (stage.agent, stage.other)), 0
    return _round(variant, (stage.other, stage.agent)), 1


def _opponent_wins(stage: Stage, chances: dict[Stage, np.ndarray], variant: Variant, best: bool) -> np.ndarray:
    """Return the chance that the agent's opponent wins the game from a stage on, from its chances in each round.

    With `best` the first number of each is a best response's, and winning a round must be worth no less than losing it.

    Raises:
        ValueError: losing a round is worth more.
    """
    if variant.options.rounds == "single":
        return chances[stage]

    def value(dice: Dice, won: Any, lost: Any, chance: np.ndarray) -> np.ndarray:
        after_win, after_loss = np.ravel(won)[0], np.ravel(lost)[0]
        if best and after_win < after_loss - _ROUNDING:
            raise ValueError(
                f"no best response is known: with {dice[0]} dice against the agent's {dice[1]} one would rather lose "
                f"the round than win it ({after_loss:.6f} of the games are won after it is lost, {after_win:.6f} after it is "
                "won)"
            )
        mean: np.ndarray = lost + (won - lost) * chance
        return mean

    def chance(own: int, others: int, starts: bool) -> np.ndarray:
        return chances[Stage(others, own, not starts)]

    found: np.ndarray = wins_game((stage.other, stage.agent), not stage.agent_starts, chance, value)
    return found


def response_wins(
    variant: Variant,
    agent: Any,
    seat: int,
    seed: int = 0,
    copies: int = 1,
    done: Callable[[float], Any] = lambda amount: None,
    record: Callable[[Stage], Record] | None = None,
    seats: Seats | None = None,
) -> list[np.ndarray]:
    """Return how often a best response wins from an agent that states its probabilities, for each seat that may begin.

    Args:
        variant: the game, between two players for a win.
        agent: see `dice_envs.agent.ask_probabilities`; it is taken to look at the present round only.
        seat: the agent's.
        seed: of the agent's own random streams.
        copies: 2: the agent is asked twice everywhere, and the best response to its first answers is valued against the
            second ones too.
        done: progress callback, called with the number of information sets done since the last call.
        record: makes, for a round, the callback for the response at each node (see `walk.respond`).
        seats: compares the agent's answers in the other seat.

    Returns:
        (copies,) float64 for each seat that may begin.
    """
    streams = np.array([new_streams(seed + copy, ROWS_AT_ONCE) for copy in range(copies)])
    stages = _stages(variant, seat)
    chances = {}
    for stage in stages:
        played, player = _placed(variant, stage)
        source = source_of(played, player, agent, seat, streams, seats)
        chances[stage] = respond(played, player, source, copies, done, record(stage) if record is not None else None)
    return [_opponent_wins(stage, chances, variant, best=True) for stage in _first_stages(variant, seat)]


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

    values = response_wins(variant, agent, seat, seed, record=record)
    return float(np.mean([value[0] for value in values])), book


def exploitability(variant: Variant, agent: Any, seed: int = 0) -> float:
    """Return what best responses win from an agent that states its probabilities, mean over the seats and the starters.

    Raises:
        ValueError: the game is not between two players for a win, or it is too large.
    """
    check_measurable(variant, "an exact measure")
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
        done(amount, _information_sets(variant, asked_in))

    found = [response_wins(variant, agent, 0, seed, copies, report, seats=seats)]
    if seats is None or not seats.alike:
        asked_in[:] = 0, 1
        found.append(response_wins(variant, agent, 1, seed, copies, report))
    return found


# --- past rounds ----------------------------------------------------------------------------------------------------


@kernel
def _draw_legal(states, masks, actions):
    for i in range(len(actions)):
        actions[i] = choose_from_mask(states[i], masks[i])


def past_rounds_matter(variant: Variant, agent: Any, seed: int = 0) -> bool | None:
    """Return whether dice and bids that calls have shown in past rounds make a difference to an agent.

    An agent may declare that they make none (`looks_back = False`, or `memoryless`). Any other is asked at positions of
    random play after the first round: as if no call had been seen, with the calls seen there, and with each of PASTS.

    Returns:
        True where a difference was seen, False where there can be none, None where none was seen.
    """
    options = variant.options
    if options.rounds == "single" or sum(options.dice_per_seat) == 2:
        return False  # there are no past rounds
    if getattr(agent, "memoryless", False) or getattr(agent, "looks_back", None) is False:
        return False
    if getattr(agent, "observes_only", False) and not options.past_rounds:
        return False  # it does not observe them
    states = _positions(variant, seed, PROBED, later=True)
    forgotten, fresh = states.copy(), Batch(variant, 1, seed).states
    for name in _OF_THE_PAST:
        forgotten[name] = fresh[name]
    everywhere, streams = np.arange(len(states)), new_streams(seed, len(states))

    def answers(positions: np.ndarray) -> np.ndarray:
        return ask_probabilities(agent, Turn(variant, positions, everywhere, streams.copy()))

    expected = answers(forgotten)

    def matters(positions: np.ndarray) -> bool:
        return bool(np.abs(answers(positions) - expected).max() > _ROUNDING)

    if matters(states):
        return True
    for shown, honest in PASTS:
        forgotten["bids_shown"][:, :2], forgotten["bids_honest"][:, :2] = shown, honest
        if matters(forgotten):
            return True
    return None


def _positions(variant: Variant, seed: int, most: int, later: bool = False) -> np.ndarray:
    """Return up to `most` positions of random play with a choice; with `later` only those after the first round."""
    batch = Batch(variant, _PROBE_GAMES, seed)
    positions = []
    for _ in range(_PROBE_STEPS):
        masks = batch.legal()
        wanted = masks.sum(axis=1) > 1
        if later:
            wanted &= batch.states["in_play"] < sum(variant.options.dice_per_seat)
        positions.append(batch.states[wanted])
        actions = np.zeros(_PROBE_GAMES, np.int64)
        _draw_legal(batch.states, masks, actions)
        going = np.flatnonzero(batch.states["seat"] >= 0)
        batch.play(actions[going], going)
    states = np.concatenate(positions)
    return states[np.linspace(0, len(states) - 1, min(most, len(states))).astype(np.int64)]


def _see_if_random(variant: Variant, agent: Any) -> None:
    """Ask the agent at a few positions of random play, which sets its `is_random`."""
    states = _positions(variant, 0, COMPARED)
    ask_probabilities(agent, Turn(variant, states, np.arange(len(states)), new_streams(0, len(states))))


_OF_PAST_ROUNDS = {
    True: "the best response is to how the agent plays before it has seen a call; past rounds matter to it, so the figure is "
    "neither an upper nor a lower bound of what can be won from it",
    None: f"past rounds made no difference to the agent at {PROBED} positions; it does not declare that they never do",
}


# --- the measure ----------------------------------------------------------------------------------------------------


def measure(variant: Variant, agent: Any, effort: Effort) -> list[Measurement]:
    """Measure exploitability, and how often a best response wins. See `dice_envs.exact.GameMeasure`.

    The game is zero-sum, so the mean over the seats of what best responses win is the mean of what they win above the
    game's value, as OpenSpiel counts exploitability (NashConv / 2).

    An agent whose answers are random is known by a sample of them. A best response to a sample wins more from it than
    could be won from the agent; the same response wins less from a second sample, on average, than the best could.
    The agent's exploitability lies between the two, and so does the interval given.

    Raises:
        ValueError: the game is not between two players for a win, or it is too large; or a best response would rather lose
            a round than win it.
    """
    check_measurable(variant, "an exact measure")
    _see_if_random(variant, agent)
    of_past_rounds = _OF_PAST_ROUNDS.get(past_rounds_matter(variant, agent, effort.seed))
    copies = 2 if getattr(agent, "is_random", False) else 1
    while True:
        found = _by_seat(variant, agent, effort.seed, copies, effort.done)  # type: ignore[arg-type]
        if copies == 2 or not getattr(agent, "is_random", False):
            break
        copies = 2  # the agent's randomness has shown only now
    wins = np.array(found)  # (seats, who begins, copies)
    middle = (wins[..., 0] + wins[..., -1]) / 2
    rate, error = float(middle.mean()), float((wins[..., 0] - wins[..., -1]).mean()) / 2
    notes = [f"{_information_sets(variant, range(len(found))):,.0f} information sets"]
    if of_past_rounds is not None:
        notes.append(of_past_rounds)
    gap = max(0.0, 2 * rate - 1)
    return [
        Measurement("exploitability", 2 * rate - 1, 0.0, gap, 2 * error, "return", "; ".join(notes)),
        Measurement(BEST_RESPONSE_WINS, rate, 0.5, gap / 2, error, "probability", _shares(variant, middle)),
    ]


def _shares(variant: Variant, wins: np.ndarray) -> str:
    """Return how often the best response wins as the starter and otherwise, in words."""
    by_role: dict[bool, list[float]] = {True: [], False: []}
    for seat, row in enumerate(wins):
        for stage, share in zip(_first_stages(variant, seat), row, strict=True):
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
    check_measurable(variant, what)
    players = [asked(each, variant) for each in (agent, other)]
    for player in players:
        if fresh_memory(player.agent, 1) is not None:
            raise ValueError(f"{player.name} remembers past games: {what} is known for agents that look at one round only")
        _check_steady(variant, player, what)
        if past_rounds_matter(variant, player):
            raise ValueError(f"past rounds matter to {player.name}: {what} is known for agents that look at one round only")
    stages_of = [_stages(variant, seat) for seat in range(2)]
    total = float(sum(_placed(variant, stage)[0].decisions[:, 0].sum() for stage in stages_of[0] + stages_of[1]))
    streams = new_streams(0, ROWS_AT_ONCE)[None]
    watched = (Seats(), Seats()) if has_equal_seats(variant) else (None, None)
    wins = []
    for seat, stages in enumerate(stages_of):
        chances = {}
        for stage in stages:
            played, number = _placed(variant, stage)
            own = source_of(played, number, players[0], seat, streams, watched[0])
            others = source_of(played, 1 - number, players[1], 1 - seat, streams, watched[1])
            sources = (own, others) if stage.agent_starts else (others, own)
            started = meet(played, sources, lambda amount: done(amount, total))
            chances[stage] = np.array([1 - started if stage.agent_starts else started])
        wins += [1 - _opponent_wins(stage, chances, variant, best=False)[0] for stage in _first_stages(variant, seat)]
        if all(each is not None and each.alike for each in watched):
            done(total / 2, total)  # the other seat would give the same
            break
    for player in players:
        _check_steady(variant, player, what)
    return float(np.mean(wins))


def _check_steady(variant: Variant, player: Any, what: str) -> None:
    """Raise ValueError if the player's answers are random, as far as can be seen."""
    _see_if_random(variant, player)
    if player.is_random:
        raise ValueError(f"the answers of {player.name} are random: {what} is known for agents whose probabilities are fixed")


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
    sets = sum(_round(variant, dice).information_sets(player) for dice in rounds for player in range(2))
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
    for bid in range(params.call):
        if mask[bid] != 0:
            face = face_of(params, bid)
            own = matching(params, state["counts"][seat], face)
            out[bid] = chance_at_least(params, quantity_of(params, bid) + 1, own, unseen, face)
    if state["bid"] != NO_BID:
        out[params.call] = 1.0 - chance_bid_holds(params, state, seat)
