"""Evaluation without luck: what a player is worth against an opponent, from a hundredth of the games.

`evaluate` plays games (`games`), values every decision of the player by `dice_envs.response_values`, and takes the luck out of
the results (`estimate`). `Scale` says how results read.
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
from dice_envs.agent.matches import GAMES_ASKED, check_match, pieces_of, remembering
from dice_envs.core.game import Game, Variant, single_seat
from dice_envs.core.options import check_seed
from dice_envs.core.work import Tell, counting, work
from dice_envs.evaluation.estimate import Adjusted, adjust, is_fair, luck_of
from dice_envs.evaluation.games import Group, expected_returns, independent, play_part, seats_of, worst_of
from dice_envs.exact import OPTIMAL, ActionValues, ResponseValues, asked, response_values
from dice_envs.exact.contract import GAMES_WON, Unit
from dice_envs.exact.intervals import results_half_width

MOST_GAMES = 10**6
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
