"""Evaluation without luck: what a player is worth against an opponent, from a hundredth of the games.

`evaluate` plays games, values every decision of the player by `dice_envs.response_values`, and takes the luck out of the
results (`estimate`). `Scale` says how results read.
"""

from __future__ import annotations

import dataclasses
import json
import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from dice_envs.agent import Agent, name_of
from dice_envs.agent.matches import GAMES_ASKED, Piece, Watch, check_match, pieces_of, play_pieces, remembering
from dice_envs.core.game import Game, Variant, single_seat
from dice_envs.core.options import check_seed
from dice_envs.core.work import Tell, counting, work
from dice_envs.evaluation.estimate import Adjusted, adjust, is_fair, luck_of
from dice_envs.exact import OPTIMAL, ActionValues, GameExact, ResponseValues, asked, response_values
from dice_envs.exact.contract import GAMES_WON, Unit
from dice_envs.exact.intervals import results_half_width
from dice_envs.pictures.render import in_words

MOST_GAMES = 10**6
MOST_KEPT = 10  # of the costliest decisions
NO_COST = 1e-6  # a smaller one is rounding: large tables of values are float32
# Decisions, those that cost something, and the cost of each game in which any did, or of each match if an agent remembers.
Group = tuple[int, int, list[float]]
UNFAIR = "results are biased: {} does not play as it states, since the mean of luck is more than 4 standard errors from 0"

# Does parts of the work: `(function, shared arguments, parts, sizes) → results`; see `evaluate`.
Run = Callable[[Callable[..., Any], Sequence[Any], Sequence[Sequence[Any]], Sequence[float]], list[Any]]


class Scale(NamedTuple):
    """A linear scale: a return r reads `shift + factor * r`.

    Attributes:
        shift, factor: of the scale.
        unit: GAMES_WON, or the unit of the game's returns.
        low, high: the worst and the best possible result.
    """

    shift: float
    factor: float
    unit: Unit
    low: float
    high: float

    @property
    def spread(self) -> float:
        """The best possible result less the worst."""
        return self.high - self.low

    def of(self, returns: Any) -> Any:
        """Return what returns read, a number or an array."""
        return self.shift + self.factor * returns


def scale_of(variant: Variant, values: ResponseValues | ActionValues) -> Scale:
    """Return the share of games won, where a tie counts half, if one of the players wins a game; else the returns."""
    facts, seats, returns = variant.facts, variant.facts.num_seats, variant.facts.likely_returns
    if seats > 1 and facts.zero_sum and returns == (-1 / (seats - 1), 1.0):
        return Scale(1 / seats, (seats - 1) / seats, GAMES_WON, 0.0, 1.0)
    return Scale(0.0, 1.0, values.unit, *returns)


def percent_of_winning(variant: Variant, values: ActionValues) -> ActionValues:
    """Return values in percent of winning, where a tie counts half, if they are returns of a game that is won or lost."""
    scale = scale_of(variant, values)
    if scale.unit != GAMES_WON or values.unit.is_share:
        return values
    errors = None if values.errors is None else scale.factor * values.errors
    return values._replace(values=scale.of(values.values), unit=GAMES_WON, errors=errors)


@dataclasses.dataclass(frozen=True)
class Loss:
    """What decisions of one kind give away.

    Attributes:
        by: the heading under which decisions are sorted, such as "dice left".
        label: the kind, such as "5 v 4".
        decisions: how many there were.
        wrong: how many of them cost something.
        loss: cost of all of them, per game.
        error: half of the 95 % interval of `loss`.
    """

    by: str
    label: str
    decisions: int
    wrong: int
    loss: float
    error: float


@dataclasses.dataclass(frozen=True)
class Mistake:
    """A costly decision.

    Attributes:
        game: number of the game, from 0.
        cost: of the decision.
        position: what the player saw, in words.
        played, better: its action, and the best one.
    """

    game: int
    cost: float
    position: str
    played: str
    better: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Evaluation(Adjusted):
    """What a player is worth against an opponent.

    All results are in `unit`. Errors are half of 95 % intervals, over games, or over matches if an agent remembers past games.
    From 500 of them on they are asymptotic (see `dice_envs.exact.intervals`). The attributes of `Adjusted` come first.

    Attributes:
        game, options: what was played; options that differ from their defaults.
        agent, against: the player and its opponent; `against` is empty where there is none.
        games: number of games.
        match: games that the same players played one after another.
        seed: fixes all games.
        unit: "games won" where two players win or lose a game, and a tie counts half; else the unit of the returns.
        best: expected result of a best response to the opponent.
        losses: where the player gives away what it lacks of `best`.
        worst: its costliest decisions.
        note: what the values assume; and what is wrong, if the opponent does not play the probabilities that it states.
        anytime: whether intervals hold at all looks together.
    """

    game: str
    options: dict[str, Any]
    agent: str
    against: str
    games: int
    match: int
    seed: int
    unit: Unit
    best: float
    losses: tuple[Loss, ...]
    worst: tuple[Mistake, ...]
    note: str
    anytime: bool = False

    def __str__(self) -> str:
        """Return the result in one line: `ppo against nash: 0.489 ± 0.013 games won, by 200 games (0.52 ± 0.07 with luck)`."""
        plain = f"{self.plain:.3f} ± {self.plain_error:.2g} with luck"
        result = f"{self.value:.3f} ± {self.error:.2g} {self.unit}"
        against = f" against {self.against}" if self.against else ""
        return f"{self.agent}{against}: {result}, by {self.games:,} games ({plain})"

    @property
    def plain_games(self) -> float:
        """Number of games that the plain mean needs for the same interval. Its width falls with the square root of that."""
        return self.games * (self.plain_error / self.error) ** 2 if self.error else math.inf

    def as_dict(self) -> dict[str, Any]:
        """Return the form that JSON files hold."""
        return dataclasses.asdict(self)

    def json(self) -> str:
        """Return the same as JSON."""
        return json.dumps(self.as_dict())


def evaluate(
    game: str | Game | Variant,
    agent: str | Agent | Callable[..., Any],
    opponent: str | Agent | None = None,
    games: int = 1000,
    *,
    seed: int = 0,
    match: int = 1,
    anytime: bool = False,
    name: str = "",
    values: ResponseValues | None = None,
    done: Tell | None = None,
    run: Run | None = None,
    **options: Any,
) -> Evaluation:
    """Play games of an agent against an opponent whose probabilities are known, and take the luck out of its results.

    Luck is what dice and the opponent's choices do to the chance to win, of which every value is known exactly. The mean is
    unbiased for any agent: with a memory, with random answers, or a person. A UserWarning says if luck shows that the opponent
    does not play the probabilities that it states.

    Args:
        game: as for `dice_envs.measure`.
        agent: the player, as for `dice_envs.measure`; or any object with `act`.
        opponent: a spec or an agent of fixed probabilities. None: optimal play, `nash`. Games of one seat and cooperative games
            have no opponent; in these the agent has all seats.
        games: number of games; seats rotate.
        seed: fixes every game.
        match: number of games that are played one after another at the same table; agents with a memory keep it.
        anytime: make intervals for those who look at the first games, then at more of them with the same seed, and stop when
            they like: they hold at all looks together, and are mostly 1.6 to 1.9 times as wide.
        name: of the agent in the result; its spec or class if left out.
        values: those of `dice_envs.response_values(game, opponent)`, if they are at hand.
        done: progress callback, called with (games that have ended since the last call, games in all).
        run: does the work in parts, as `(function, shared arguments, parts, sizes)`; left out: in this process.
        options: the game's options.

    Raises:
        ValueError: no best response to this opponent, or in this variant, is known; fewer than two matches; wrong arguments.
        AgentError: an agent's action is not legal.
    """
    variant = single_seat(game, **options)
    check_games(games, match)
    player, own_name = _player(agent, variant)
    values = response_values(variant, opponent) if values is None else values
    agents = [player] * variant.facts.num_seats if values.whole_team else [player, _player(opponent or OPTIMAL, variant)[0]]
    pieces = pieces_of(games // match, len(agents), np.random.SeedSequence(check_seed(seed)), GAMES_ASKED)
    sizes = [float(match * piece.number) for piece in pieces]
    run = run or (lambda function, shared, parts, sizes: [function(*shared, *part) for part in parts])
    with work(done), counting(games):
        found = run(play_part, (variant, agents, values, match), [([piece],) for piece in pieces], sizes)
    earned = np.concatenate([np.array(part["earned"]) for part in found])
    lost = np.concatenate([np.array(part["lost"]) for part in found])
    scale, by_match, note = scale_of(variant, values), remembering(agents), values.note
    expected = expected_returns(values, *earned.shape)
    won, starts, given = (independent(each, by_match) for each in (scale.of(earned), scale.of(expected), scale.factor * lost))
    seat = seats_of(earned.shape, by_match, 1 if values.whole_team else 2)
    most_lost = scale.spread if values.most_lost is None else scale.factor * values.most_lost
    adjusted = adjust(won, starts, given, seat, scale.low, scale.high, (most_lost,), anytime=anytime)
    if not values.whole_team and not is_fair(luck_of(won, starts, given)[0], scale.spread + most_lost):
        note = f"{note}; {UNFAIR.format(name_of(opponent or OPTIMAL))}"
        warnings.warn(UNFAIR.format(name_of(opponent or OPTIMAL)), stacklevel=2)
    worst = worst_of([decision for part in found for decision in part["worst"]])
    return Evaluation(
        game=variant.game.name,
        options=variant.changed_options(),
        agent=name or own_name,
        against="" if values.whole_team else name_of(opponent or OPTIMAL),
        games=games,
        match=match,
        seed=seed,
        unit=scale.unit,
        **vars(adjusted),
        best=scale.of(float(expected.mean())),
        losses=_losses([part["groups"] for part in found], scale.factor, most_lost, games, match if by_match else 1),
        worst=tuple(Mistake(**{**each, "cost": scale.factor * each["cost"]}) for each in worst),
        note=note,
        anytime=anytime,
    )


def check_games(games: int, match: int = 1) -> None:
    """Raise ValueError unless `games` make whole matches of `match` games, two or more."""
    check_match(games, match, 2 * match, MOST_GAMES)


def _player(agent: Any, variant: Variant) -> tuple[Agent, str]:
    """Return the agent as it plays, and its name."""
    player = asked(agent, variant)
    return (player.agent if isinstance(player.agent, Agent) else player), player.name


def _losses(
    parts: Sequence[dict[str, dict[str, Group]]], factor: float, most_lost: float, games: int, unit: int
) -> tuple[Loss, ...]:
    """Add up the groups of all parts; so many games in a row depend on each other."""
    found: dict[tuple[str, str], list[Group]] = {}
    for part in parts:
        for heading, groups in part.items():
            for label, group in groups.items():
                found.setdefault((heading, label), []).append(group)
    losses = []
    for (heading, label), same in found.items():
        decisions, wrong, given = zip(*same, strict=True)
        costs = np.zeros(games // unit)  # in any order
        lost = np.concatenate(given)
        costs[: len(lost)] = factor / unit * lost
        error = results_half_width(costs, 0.0, most_lost)
        losses.append(Loss(heading, label, sum(decisions), sum(wrong), float(costs.mean()), error))
    headings = list(dict.fromkeys(each.by for each in losses))
    numbers = {each.label: float(each.label) if each.label.isdecimal() else math.inf for each in losses}  # before words
    return tuple(sorted(losses, key=lambda each: (headings.index(each.by), numbers[each.label], each.label)))


# --- games of the player: what each one earned, and what each of its decisions gave away ----------------------------------


class _Decisions:
    """Collects the player's decisions while its games are played.

    Attributes:
        lost: (matches, games) float64, what all decisions of a game gave away, in returns.
    """

    def __init__(self, variant: Variant, values: ResponseValues, match: int, pieces: Sequence[Piece], alone: bool) -> None:
        self._variant, self._values, self._unit = variant, values, 1 if alone else match
        self._first = pieces[0].first * match
        self.lost = np.zeros((sum(piece.number for piece in pieces), match))
        self._made = np.zeros(self.lost.size, np.int64)  # decisions so far, by game
        self._by: dict[str, dict[str, tuple[np.ndarray, np.ndarray]]] = {}
        self._worst: list[dict[str, Any]] = []
        self._exact = GameExact(variant.game)

    def before_move(self, agent: int, states: np.ndarray, games: np.ndarray, actions: np.ndarray) -> None:
        """See `dice_envs.agent.matches.Watch`. Agent 0 is the player, or all are."""
        if agent != 0 and not self._values.whole_team:
            return
        values = self._values.action_values(states)
        rows = np.flatnonzero((~np.isnan(values)).sum(axis=1) > 1)
        if not len(rows):
            return
        states, actions, values, place = states[rows], actions[rows], values[rows], games[rows] - self._first
        cost = costs_of(values, actions)
        np.add.at(self.lost.reshape(-1), place, cost)
        self._made[place] += 1
        labels = self._exact.situations(self._variant, states, actions)
        for heading, names in (labels or {"decision of the game": self._made[place].astype(str)}).items():
            groups = self._by.setdefault(heading, {})
            for name in np.unique(names):
                mine = names == name
                counts, costs = groups.setdefault(str(name), (np.zeros(2, np.int64), np.zeros(self.lost.size // self._unit)))
                counts += len(cost[mine]), (cost[mine] > 0).sum()
                np.add.at(costs, place[mine] // self._unit, cost[mine])
        self._keep_worst(states, games[rows], actions, values, cost)

    def _keep_worst(
        self, states: np.ndarray, games: np.ndarray, actions: np.ndarray, values: np.ndarray, cost: np.ndarray
    ) -> None:
        """Keep the costliest decisions in words."""
        least = self._worst[-1]["cost"] if len(self._worst) == MOST_KEPT else 0.0
        say = self._variant.describe_action
        for row in np.argsort(-cost)[:MOST_KEPT].tolist():
            if cost[row] <= least:
                break
            best, seat = int(np.nanargmax(values[row])), int(states[row]["seat"])
            self._worst.append(
                {
                    "cost": float(cost[row]),
                    "game": int(games[row]),
                    "position": in_words(self._variant.picture(states[row], seat)),
                    "played": say(int(actions[row])),
                    "better": say(best),
                }
            )
        self._worst = worst_of(self._worst)

    def as_dict(self) -> dict[str, Any]:
        """Return groups and the costliest decisions in what JSON can hold."""
        groups: dict[str, dict[str, Group]] = {}
        for heading, found in self._by.items():
            groups[heading] = {name: (*counts.tolist(), costs[costs > 0].tolist()) for name, (counts, costs) in found.items()}
        return {"lost": self.lost.tolist(), "groups": groups, "worst": self._worst}


def costs_of(values: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """Return what each action gives away, (n,) float64, from the values (n, num_actions) of all."""
    costs = np.nanmax(values, axis=1) - values[np.arange(len(actions)), actions]
    costs[costs < NO_COST] = 0.0
    return np.asarray(costs)


def expected_returns(values: ResponseValues, matches: int, match: int, *, agent: int = 0) -> np.ndarray:
    """Return what a best response expects in an agent's seat of each game, (matches, match) float64; see `play_pieces`."""
    if values.whole_team:
        return np.full((matches, match), values.start(0))
    seats = (np.arange(matches)[:, None] + np.arange(match) + agent) % 2
    return np.array([values.start(0), values.start(1)])[seats]


def seats_of(shape: tuple[int, ...], by_match: bool, seats: int = 2, agent: int = 0) -> np.ndarray:
    """Return an agent's seat in each game of (matches, games), or in the first of each match, (n,) int64; see `play_pieces`."""
    found = (np.arange(shape[0])[:, None] + np.arange(shape[1]) + agent) % seats
    return np.asarray(found[:, 0] if by_match else found.ravel())


def independent(values: np.ndarray, by_match: bool) -> np.ndarray:
    """Return values (…, matches, games) as (…, n) that are independent: of all games, or means of matches."""
    return values.mean(axis=-1) if by_match else values.reshape(*values.shape[:-2], -1)


def worst_of(decisions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the costliest decisions, the same one at the same position once."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for each in sorted(decisions, key=lambda each: (-each["cost"], each["game"])):
        found.setdefault((each["position"], each["played"]), each)
    return list(found.values())[:MOST_KEPT]


def play_part(
    variant: Variant,
    agents: Sequence[Agent],
    values: ResponseValues,
    match: int,
    pieces: Sequence[Piece],
) -> dict[str, Any]:
    """Play matches and value the decisions of the player, agent 0, or of all agents in a team.

    Returns:
        What JSON can hold: "earned" and "lost", the player's return of each game and what its decisions gave away (matches,
        games); "groups", by heading and label: see `Group`; "worst", the costliest decisions.
    """
    decisions = _Decisions(variant, values, match, pieces, alone=not remembering(agents))
    returns = play_pieces(variant, agents, match, pieces, Watch(before_move=decisions.before_move))
    return {"earned": returns[:, :, 0].tolist(), **decisions.as_dict()}


def play_valued(
    variant: Variant,
    agents: Sequence[Agent],
    values: Sequence[ResponseValues | None],
    match: int,
    pieces: Sequence[Piece],
) -> np.ndarray:
    """Play matches of two agents and value the decisions of both, as far as that is known.

    Args:
        variant: a game of two seats.
        agents: both.
        values: of each one's choices against the other; None where they are not known.
        match, pieces: as for `play_part`.

    Returns:
        (matches, games, 4) float64: the return of each agent, and what the decisions of each gave away, 0 where not known.
    """
    first = pieces[0].first * match
    lost = np.zeros((2, match * sum(piece.number for piece in pieces)))

    def before_move(agent: int, states: np.ndarray, games: np.ndarray, actions: np.ndarray) -> None:
        own = values[agent]
        if own is not None:
            np.add.at(lost[agent], games - first, costs_of(own.action_values(states), actions))

    returns = play_pieces(variant, agents, match, pieces, Watch(before_move=before_move))
    return np.concatenate([returns, lost.T.reshape(-1, match, 2)], axis=2)
