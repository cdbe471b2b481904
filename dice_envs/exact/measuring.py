"""`measure`, `optima`, `action_values` and `response_values`: the same questions of every game."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, cast

import numpy as np

from dice_envs.agent import Agent, Uniform, fresh_memory, name_of
from dice_envs.agent.compiled import Team, compile_legal_chooser, context_of, team_of
from dice_envs.agent.kernel import Chooser
from dice_envs.core.batch import checked_record
from dice_envs.core.dice import new_streams
from dice_envs.core.game import OVER, Game, Variant, load, names, single_seat
from dice_envs.core.options import check_range, check_seed, is_list, shown
from dice_envs.core.work import Tell, counting, foretold, is_watched, work
from dice_envs.exact.agents import Asked, Mixed, RandomAnswers, Repeats, Sampled, Stated, ask_again, asked, parts_of, probe
from dice_envs.exact.contract import (
    BEST_RESPONSE_WINS,
    EXPLOITABILITY,
    MOST_SAMPLE,
    NASH_CONV,
    REPEATS,
    RETURN,
    ActionValues,
    Effort,
    GameExact,
    Measurement,
    Measures,
    ProfileValues,
    ResponseValues,
    offered,
)
from dice_envs.exact.intervals import half_width, t95

OPTIMAL = "nash"  # the opponent that is meant where none is named

NOTHING = 1e-12  # a gap of random play below this is a rounding error
_FRESH = "measured as the agent plays when a match begins, with nothing to remember"


def measure(
    game: str | Game | Variant,
    agent: str | Agent | Callable[..., Any] | Sequence[Any],
    *,
    seed: int = 0,
    sample: int | None = None,
    done: Tell | None = None,
    apply: Callable[[Callable[[int], Any], Sequence[int]], Iterable[Any]] = map,
    against: Sequence[str | Agent | Callable[..., Any]] = (),
    **options: Any,
) -> Measures:
    """Measure how far an agent is from optimal play, exactly where the game allows it.

    Args:
        game: a Variant, or a name or Game, which then stands for the variant that `gymnasium.make` gives (The Shakes'
            physician, one player's turn of Thirties).
        agent: a spec such as "numbers:bluff=0.25"; an Agent; or a function from observations (n, size) float32 and
            action masks (n, actions) int8 to action probabilities (n, actions): an array, or a PyTorch tensor on any device.
            A PyTorch module is such a function of tensors on the device of its parameters. A function or module that takes one
            argument gets observations alone and returns logits (n, actions); illegal actions are masked before the softmax.
            A model such as MaskablePPO sees what the VecNormalize of its environment makes of observations, if it has one:
            `load` takes it as `env`. Modules and models are asked in evaluation mode and left as they were. A sequence of
            them, one for each seat, is a profile: its exploitability, NashConv and each seat's gain are measured.
        seed: fixes all that is drawn.
        sample: number of deals or games to look at where there are too many for all of them; None: the game's default.
        done: progress callback, called with (amount done since the last call, amount in all). None: after ten seconds a line
            on standard error says how long it will take, unless this is part of some work (see `dice_envs.core.work`).
        apply: used like `map` to repeat the measurement with several seeds; an executor's `map` spreads repeats over processes.
        against: agents at the other seats in turn order; empty: the game's measure decides, which at a table of Liar's Dice
            seats copies of the agent there. Then there is no score.
        options: the game's options.

    An agent without probabilities is asked for its actions: twice, and many more times at every position once two answers
    have differed. If its answers are random, whether actions or probabilities, the measurement is repeated, and `error` is
    the 95 % half-width of the mean over the repeats. Answers that never differ are exact if they are probabilities, or if
    the agent declares them `deterministic`; otherwise `error` allows for answers that would differ too rarely to be seen. An
    agent that remembers past games is measured as it plays when a match begins.

    A `dice_envs.Mixture` is measured exactly in games of one round, where each of its agents counts by how likely it is to have
    come to a position, and with one player, as the mean. Elsewhere a best response learns in the course of a game which agent
    it faces: the figure is then the bound that holds, the mean of what best responses win from the agents.

    The agent is asked twice at all positions of 256 games that it plays with itself, and in the end again there and at a sample
    of all positions, in batches of other sizes and orders.

    Raises:
        ValueError: no exact measure is known for the game or the variant, the agent does not play it, or wrong arguments.
        AgentError: the agent's probabilities or actions are invalid, or depend on more than the position: on its row, on the
            other rows of the batch, or on earlier calls.
    """
    variant = single_seat(game, **options)
    seed = check_seed(seed)
    if sample is not None:
        check_range("sample", sample, 1, MOST_SAMPLE)
    with work(done or (None if is_watched() else foretold())):
        if is_list(agent):
            return _measure_profile(variant, cast("Sequence[Any]", agent), against, Effort(seed, sample))
        if against:
            return _measure_table(variant, agent, against, Effort(seed, sample))
        return _measure(variant, agent, Effort(seed, sample), apply)


def _measure(
    variant: Variant, agent: Any, effort: Effort, apply: Callable[[Callable[[int], Any], Sequence[int]], Iterable[Any]]
) -> Measures:
    """Measure one agent, again with other seeds if its answers are random."""
    seed, sample = effort.seed, effort.sample
    if offered(variant.game, "measure") is None:
        what = "no optimal play, equilibrium or best response is known"
        raise ValueError(f"{variant.game.name} cannot be measured exactly: {what}")
    player = asked(agent, variant)
    if isinstance(player, Mixed) and not GameExact(variant.game).is_one_round(variant):
        return _measure_parts(variant, player, effort, apply)
    try:
        runs = [_run(variant, player, effort)]
    except RandomAnswers as problem:  # so far it was asked too seldom
        if isinstance(player, Mixed):
            raise ValueError(f"{problem}: a mixture is measured where the probabilities of its agents are fixed") from None
        player = Sampled(player)
        runs = [_run(variant, player, effort)]
        seeds = np.random.SeedSequence(seed).generate_state(REPEATS - 1).tolist()
        if apply is map:
            runs += [_run(variant, player, Effort(each, sample)) for each in seeds]
        else:
            runs += apply(functools.partial(_repeat, variant, agent, player.repeats, sample), seeds)
    score, score_error = _score([found[0] for found, _ in runs], [baseline for _, baseline in runs], player)
    measures = tuple(_mean(list(repeated)) for repeated in zip(*(found for found, _ in runs), strict=True))
    measures = tuple(_allowing(each, player) for each in measures)
    notes = [_FRESH] * any(fresh_memory(each.agent, 1) is not None for each in parts_of(player))
    notes += [getattr(each.agent, "note", "") for each in parts_of(player)]
    measures = tuple(dataclasses.replace(each, note="; ".join(filter(None, (each.note, *notes)))) for each in measures)
    measures += _nash_conv(variant, measures[0])
    return Measures(variant.game.name, variant.changed_options(), player.name, seed, score, measures, score_error)


def _nash_conv(variant: Variant, headline: Measurement) -> tuple[Measurement, ...]:
    """Return the sum of what both players could gain, twice the exploitability: many count it so."""
    if headline.name != EXPLOITABILITY or variant.facts.num_seats != 2:
        return ()
    value, gap, error = 2 * headline.value, 2 * headline.gap, 2 * headline.error
    span = None if headline.span is None else 2 * headline.span
    return (Measurement(NASH_CONV, value, 0.0, gap, error, headline.unit, headline.note, span),)


_BOUND = (
    "a best response learns in the course of a game which of the agents it faces, so what it wins from the mixture is not "
    "known exactly: at most this, the mean of what best responses win from its agents"
)


def _measure_parts(variant: Variant, player: Mixed, effort: Effort, apply: Any) -> Measures:
    """Measure the agents of a mixture and return the means: of what a best response wins a bound, of the rest what it is.

    Raises:
        ValueError: each of several other seats would draw an agent of its own.
    """
    if variant.facts.num_seats > 2 or variant.facts.cooperative:
        raise ValueError(f"a mixture cannot be measured in {variant}, where each seat draws an agent of its own")
    found = [_measure(variant, each.agent, effort, apply) for each in player.parts]

    def mean(own: Sequence[Measurement]) -> Measurement:
        first = own[0]
        value, optimum, gap, error = player.weights @ [(each.value, each.optimum, each.gap, each.error) for each in own]
        bounds, headline = first.name in (EXPLOITABILITY, NASH_CONV, BEST_RESPONSE_WINS), first is found[0].measures[0]
        name, note = (f"{first.name}, at most", _BOUND if headline else "") if bounds else (first.name, first.note)
        return Measurement(name, float(value), float(optimum), float(gap), float(error), first.unit, note, is_bound=bounds)

    measures = tuple(mean(own) for own in zip(*(each.measures for each in found), strict=True))
    score, score_error = (None, None) if measures[0].is_bound else _mean_score(found, player.weights)
    return Measures(variant.game.name, variant.changed_options(), player.name, effort.seed, score, measures, score_error)


def _mean_score(found: Sequence[Measures], weights: np.ndarray) -> tuple[float | None, float | None]:
    """Return the score and its error of a mixture whose gap is the mean of its agents'. None as in `Measures`."""
    scores, errors = [each.score for each in found], [each.score_error for each in found]
    score, error = (None if None in each else float(weights @ each) for each in (scores, errors))
    return score, error


def _measure_profile(variant: Variant, agents: Sequence[Any], against: Sequence[Any], effort: Effort) -> Measures:
    """Measure a profile, an agent for each seat."""
    seats, found = variant.facts.num_seats, offered(variant.game, "measure_profile")
    if len(against):
        raise ValueError(f"against must be left out with a profile, not {shown(against)}: it has an agent for each seat")
    if found is None:
        having = ", ".join(name for name in names() if offered(load(name), "measure_profile"))
        raise ValueError(f"a profile of {variant.game.name} cannot be measured; games in which one can: {having}")
    if len(agents) != seats:
        raise ValueError(f"a profile must have an agent for each of the {seats} seats of {variant}, not {len(agents)}")
    players = [asked(each, variant, seat) for seat, each in enumerate(agents)]
    measures = tuple(_gains(players, found(variant, players, effort)))
    who = f"({', '.join(each.name for each in players)})"
    return Measures(variant.game.name, variant.changed_options(), who, effort.seed, None, measures)


def _gains(players: Sequence[Any], found: ProfileValues) -> Iterator[Measurement]:
    """Yield exploitability, NashConv and each seat's gain."""
    gains = found.responds - found.plays
    seats = gains.shape[1]

    def measurement(name: str, gained: np.ndarray, most: float, note: str) -> Measurement:
        value, error = float(gained.mean()), 0.0 if found.most is None else half_width(gained, 0.0, most * found.most)
        return Measurement(name, value, 0.0, max(0.0, value), error, found.unit, "; ".join(filter(None, (note, found.note))))

    yield measurement(EXPLOITABILITY, gains.mean(axis=1), 1, "NashConv / number of seats")
    yield measurement(NASH_CONV, gains.sum(axis=1), seats, "the sum of all seats' gains")
    for seat, player in enumerate(players):
        own, best = found.plays[:, seat].mean(), found.responds[:, seat].mean()
        note = f"{player.name}: {own:.6f} {found.unit}, a best response in its place: {best:.6f}"
        yield measurement(f"gain of seat {seat + 1}", gains[:, seat], 1, note)


def _measure_table(variant: Variant, agent: Any, against: Sequence[Any], effort: Effort) -> Measures:
    """Measure different agents at one table."""
    found = offered(variant.game, "measure_table")
    if found is None or variant.facts.num_seats < 2:
        raise ValueError(f"against must be left out: agents at one table of {variant} cannot be measured")
    others = variant.facts.num_seats - 1
    if not is_list(against) or len(against) != others:
        raise ValueError(f"against must name {others} agents, one for each other seat of {variant}, not {shown(against)}")
    players = [asked(each, variant) for each in (agent, *against)]
    measures = found(variant, players, effort)
    return Measures(variant.game.name, variant.changed_options(), players[0].name, effort.seed, None, tuple(measures))


def optima(game: str | Game | Variant, **options: Any) -> dict[str, float]:
    """Return what optimal play reaches of each quantity that `measure` gives: name → value, without asking an agent.

    What the game rewards comes first. `game` and `options` are those of `measure`.

    Raises:
        ValueError: not known of the game or of the variant.
    """
    variant = single_seat(game, **options)
    return GameExact(variant.game).optima(variant)


def _run(variant: Variant, player: Asked, effort: Effort) -> tuple[list[Measurement], float]:
    """Measure once; return the measurements, and the headline's gap for random play with the same random numbers.

    Raises:
        RandomAnswers: the player's answers are random, and it has not been asked as `Sampled`.
    """
    with counting(share=1 / REPEATS if player.is_random else 1) as part:
        try:
            for each in parts_of(player):
                probe(variant, each)
            found = GameExact(variant.game).measure(variant, player, effort)
            for each in parts_of(player):
                ask_again(variant, each)
        except RandomAnswers:
            part.undo()
            raise
    with work():
        return found, _random_gap(variant, effort.seed, effort.sample)


def _repeat(variant: Variant, agent: Any, repeats: Repeats, sample: int | None, seed: int) -> tuple[list[Measurement], float]:
    """Do what `_run` does of an agent with random answers in another process."""
    return _run(variant, Sampled(asked(agent, variant), repeats), Effort(seed, sample))


@functools.lru_cache(maxsize=64)
def _random_gap(variant: Variant, seed: int, sample: int | None) -> float:
    return GameExact(variant.game).measure(variant, Stated(Uniform()), Effort(seed, sample))[0].gap


def _score(headlines: list[Measurement], random_gaps: list[float], player: Asked) -> tuple[float | None, float | None]:
    """Return score and its error (see `Measures`) from the headline of each run and the gap of random play in it."""
    gaps, baselines = np.array([each.gap for each in headlines]), np.array(random_gaps)
    if baselines.mean() <= NOTHING:
        return None, None
    share = gaps.mean() / baselines.mean()
    error = _mean_error(headlines)
    if len(headlines) > 1:
        # The error of a ratio of two means is that of the residuals: the gaps less this share of random play's.
        error += t95(REPEATS - 1) * (gaps - share * baselines).std(ddof=1) / math.sqrt(len(headlines))
    elif error:
        return float(1 - share), None
    return float(1 - share), float(_allowed(error, headlines[0], player) / baselines.mean())


def _mean_error(repeated: list[Measurement]) -> float:
    """Return the mean error of single runs. It may come from two samples of answers, and is then negative by chance."""
    return max(0.0, sum(each.error for each in repeated) / len(repeated))


def _mean(repeated: list[Measurement]) -> Measurement:
    """Average a measurement over its repeats."""
    first = repeated[0]
    if len(repeated) == 1:
        return first
    values = np.array([(each.value, each.optimum, each.gap) for each in repeated])
    value, optimum, gap = values.mean(axis=0).tolist()
    within = _mean_error(repeated)
    error = float(within + t95(REPEATS - 1) * values[:, 0].std(ddof=1) / math.sqrt(len(repeated)))
    note = "; ".join(filter(None, (first.note, f"mean of {len(repeated)} runs, since the agent's answers are random")))
    return dataclasses.replace(first, value=value, optimum=optimum, gap=gap, error=error, note=note)


def _allowed(error: float, each: Measurement, player: Asked) -> float:
    """Return the error of a measurement, allowing for what answers that have not been seen could change."""
    rate = player.unseen
    if player.is_random and error <= NOTHING:  # all runs agree, though answers are random now and then
        rate = player.repeats.bound
    if rate and each.span is None:
        raise ValueError(
            f"answers of {player.name} may differ, since it does not promise deterministic=True or they are random, and "
            f"{each.name} has no span, which would bound what an answer that was not seen could change"
        )
    doubt = rate * (each.span or 0.0)
    return max(error, doubt) if player.is_random else error + doubt


def _allowing(each: Measurement, player: Asked) -> Measurement:
    """Allow in the error of a measurement for answers that have not been seen."""
    error, repeats = _allowed(each.error, each, player), player.repeats
    if error == each.error:
        return each
    counted = f"{repeats.differing or 'none'} of {repeats.number:,} answers differed when asked for again"
    note = "; ".join(filter(None, (each.note, f"{counted}; the interval allows for more")))
    return dataclasses.replace(each, error=error, note=note)


def action_values(variant: Variant, state: Any) -> ActionValues:
    """Return the value of each action of the seat to move with optimal play afterwards.

    It depends on what the seat knows alone. The first call may have to solve the game, which takes about a minute for Liar's
    Dice with five dice each, and minutes and some GiB for the largest games. Within `dice_envs.core.work.hinting()`, as for
    hints, reviews and the page, games that take more than about a minute or half a GiB are refused.

    Args:
        variant: the game.
        state: one record of a game, in which a seat is to move. The values of its own fields are not checked.

    Raises:
        ValueError: `state` is no such record, the game is over, no optimal play of the variant is known, or it takes too much
            to compute; the message then says how large the game is.
    """
    state = checked_record(variant, state)
    return GameExact(variant.game).action_values(variant, state)


def response_values(
    game: str | Game | Variant,
    opponent: str | Agent | Callable[..., Any] | None = None,
    *,
    done: Tell | None = None,
    **options: Any,
) -> ResponseValues:
    """Return what choices are worth against a fixed opponent if a best response follows, for many states at once.

    The first call for a game and an opponent may take a while: with five dice each all of Liar's Dice is walked through.

    Args:
        game: as for `measure`.
        opponent: as `measure` takes an agent; its probabilities must be fixed. None: optimal play, `nash`. Games of one
            seat and cooperative games have no opponent.
        done: progress callback, called with (amount done since the last call, amount in all).
        options: the game's options.

    Raises:
        ValueError: no best response to this opponent, or in this variant, is known; an opponent is named where there is none;
            or its probabilities are not fixed, because it remembers past games or its answers are random.
    """
    variant = single_seat(game, **options)
    alone = variant.facts.num_seats == 1 or variant.facts.cooperative
    if alone and opponent is not None:
        raise ValueError(f"opponent must be left out, not {name_of(opponent)}: the player of {variant.game.name} has all seats")
    find = GameExact(variant.game).response_values
    if alone:
        with work(done):
            return find(variant, None)
    player = asked(OPTIMAL if opponent is None else opponent, variant)
    player.name = player.name if opponent is not None else "optimal play"
    if fresh_memory(player.agent, 1) is not None:
        raise ValueError(f"{player.name} remembers past games, so its probabilities are not fixed")
    with work(done):
        try:
            return find(variant, player)
        except RandomAnswers:
            raise ValueError(f"{player.name} answers at random, so its probabilities are not known") from None


# --- odds ---------------------------------------------------------------------------------------------------------------

SAMPLE = 2_000  # states drawn by default
LEAST_SAMPLE = 100
MOST_GAMES = 1_000_000  # of a sample
MOST_RANDOM_MOVES = 20_000_000  # that the default sample of one state may take, if all games have full length


def odds(variant: Variant, state: Any, seed: int = 0, sample: int | None = None) -> ActionValues:
    """Return chances that inform the choice of each legal action: the game's own, or else those of `random_odds`.

    Liar's Dice has its own: how likely each bid holds.
    """
    own = GameExact(variant.game).odds(variant, checked_record(variant, state))
    return random_odds(variant, state, seed, sample) if own is None else own


def random_odds(variant: Variant, state: Any, seed: int = 0, sample: int | None = None) -> ActionValues:
    """Return the mean return of the seat to move after each legal action if all then play at random, in any game.

    All that the seat cannot know is drawn anew for each game of the sample. Every action is tried in the same games.

    Args:
        variant: the game.
        state: one record, in which a seat is to move.
        seed: fixes all that is drawn.
        sample: games for each action; None: SAMPLE, fewer where games can be very long, but LEAST_SAMPLE anyway.

    Raises:
        ValueError: `state` is no such record, the game is over, or wrong arguments.
    """
    state = checked_record(variant, state)
    seed = check_seed(seed)
    facts, legal = variant.facts, variant.legal_actions(state)
    if sample is None:
        sample = min(SAMPLE, max(LEAST_SAMPLE, MOST_RANDOM_MOVES // (facts.max_steps * len(legal))))
    check_range("sample", sample, 2, MOST_GAMES)
    team = team_of([Uniform()], variant)
    assert team is not None  # Uniform has a kernel
    hidden, streams = new_streams(seed, sample), new_streams(np.random.SeedSequence(seed, spawn_key=(1,)), sample)
    values, errors = np.full(facts.num_actions, np.nan), np.full(facts.num_actions, np.nan)
    for action, earned in zip(legal, play_out(variant, team, state, legal, hidden, streams)[0], strict=True):
        values[action] = earned.mean()
        errors[action] = half_width(earned, *facts.likely_returns)
    drawn = f"{sample:,} games for each action, 95 % intervals, seed {seed}"
    return ActionValues(values, RETURN, "mean return if all play at random afterwards", errors=errors, sample=drawn)


def play_out(
    variant: Variant, team: Team, state: Any, actions: Sequence[int], hidden: np.ndarray, streams: np.ndarray
) -> tuple[np.ndarray, int]:
    """Play games to their end after each action, with an agent at all seats.

    Args:
        variant: the game.
        team: the agent.
        state: one record. All that its seat to move cannot know is drawn anew for each game.
        actions: of that seat; all are tried in the same games.
        hidden, streams: (games,) random streams: of what is drawn anew, and of the agent.

    Returns:
        What the seat earns, (actions, games) float64, and the number of moves in all games.
    """
    seat, games, moves = int(state["seat"]), len(hidden), 0
    drawn, states = np.empty(games, variant.game.state), np.array([state], variant.game.state)
    variant.kernels.reroll(states, np.zeros(games, np.int64), np.full(games, seat), hidden, drawn)
    context, finish = context_of(variant, team), _compile_finish(variant.game, team.choosers)
    earned = np.zeros((len(actions), games))
    for action, results in zip(actions, earned, strict=True):
        moves += finish(context, drawn.copy(), action, seat, streams.copy(), results)
    return earned, moves


@functools.cache
def _compile_finish(game: Game, choosers: tuple[Chooser, ...]) -> Callable[..., int]:
    """Compile `(context, states, action, seat, streams, earned) → moves`: play the action, then let an agent play all seats.

    Writes what the seat earns. States and streams are overwritten.
    """
    choose, decorate = compile_legal_chooser(game, choosers)
    play = game.play

    @decorate
    def finish(context, states, action, seat, streams, earned):
        moves = len(states)
        for i in range(len(states)):
            state = states[i]
            play(context.params, state, action)
            earned[i] = state["rewards"][seat]
            while state["seat"] != OVER:
                play(context.params, state, choose(context, 0, state, streams[i]))
                earned[i] += state["rewards"][seat]
                moves += 1
        return moves

    return finish
