"""`evaluate`: what a player is worth, without luck."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from dice_envs import evaluate, response_values
from dice_envs.agent.specs import lineup
from dice_envs.agents.chat import ChatMeter, logged
from dice_envs.core.game import single_seat
from dice_envs.core.options import options_text
from dice_envs.evaluation import Evaluation, check_games
from dice_envs.experiments import ui
from dice_envs.experiments.jobs import resumable
from dice_envs.experiments.ui.grids import Grid, show_all
from dice_envs.experiments.ui.pages import bars, saved_plot

MOST_SHOWN = 5  # of the costliest decisions


def main(
    game: ui.GameArgument,
    agent: Annotated[str, typer.Argument(help="The player, say ppo; `agents` lists them.")],
    against: Annotated[
        str | None,
        typer.Option(help="The opponent, with fixed probabilities; nash if left out. Solo and team games have none."),
    ] = None,
    option: ui.OptionOption = None,
    games: Annotated[int, ui.count_option("--games", help="Number of games; seats rotate.")] = 1000,
    match: Annotated[int, typer.Option(help="Games played one after another; agents with a memory keep it.")] = 1,
    anytime: Annotated[
        bool, typer.Option("--anytime", help="Make intervals that you may look at as often as you like, with ever more games.")
    ] = False,
    seed: ui.SeedOption = None,
    json: ui.JsonOption = None,
    report: ui.ReportOption = None,
    ray: ui.RayOption = None,
    resume: ui.ResumeOption = False,
) -> None:
    """Evaluate a player without luck: what it wins from an opponent, and where it gives wins away.

    Every decision is compared with a best response to the opponent, whose values are known exactly. What dice and the
    opponent's choices do to the chance to win is luck, and is taken out. The mean stays right for any player, with a memory or
    with random answers, and good players need about a hundredth of the games.

    Whoever looks at some games, plays more and stops when the result is significant is wrong far too often. With --anytime
    intervals hold at all looks together; they are mostly 1.6 to 1.9 times as wide. Keep the seed, and the first
    games are the same.

    With --ray a cluster plays the games, with the same results. With --json finished games are kept beside that file; after
    a stop the same command with --resume continues.

    Example: evaluate liars_dice ppo --against nash -o num_dice=3
    """
    specs = [agent] if against is None else [agent, against]
    variant, (player, *_), policy = lineup(game, ui.game_options(option), specs, single_seat)
    check_games(games, match)
    ui.print_mode(variant, policy)
    (player,) = logged([player], json, resume)
    meter = ChatMeter([player], alone=ray is None)
    what = {"game": str(variant.plain), "agents": specs, "games": games, "match": match}
    with resumable(json, resume, what, seed, ray, meter) as (seed, workers):
        with ui.progress("values of choices") as bar:
            values = response_values(variant, against, done=bar.advance)
        with ui.progress(f"{games:,} games", games) as bar:
            play = functools.partial(evaluate, variant, player, against, games, seed=seed, match=match, anytime=anytime)
            found = play(name=agent, values=values, done=bar.advance, run=workers.run)
    grids = [_value_grid(found, meter.lines()), *_loss_grids(found), *_worst_grids(found)]
    ui.write_all(json, found, report, lambda folder: _save_plots(folder, found), lambda: show_all(grids))


# --- tables and a plot ----------------------------------------------------------------------------------------------


def _figures(found: Evaluation) -> Callable[..., str]:
    """Return what writes values of an evaluation."""
    return functools.partial(found.unit.figure, digits=4 - found.unit.is_share)


def _title(found: Evaluation) -> str:
    options = f" ({options_text(found.options)})" if found.options else ""
    against = f" against {found.against}" if found.against else ""
    matches = f" in matches of {found.match:,}" if found.match > 1 else ""
    return f"{found.agent}{against} in {found.game}{options}: {found.games:,} games{matches}, seed {found.seed}"


def _ratio(found: Evaluation) -> str:
    """The variance ratio in words."""
    if found.variance_ratio is None or found.variance_interval is None:
        return "all luck is taken out: the value is that of these games' decisions, whatever the dice did"
    low, high = found.variance_interval
    return (
        f"the variance is {found.variance_ratio:.3g} times smaller (95 % interval {low:.3g} to {high:.3g}); "
        f"the same interval takes about {found.plain_games:,.0f} games with luck"
    )


def _value_grid(found: Evaluation, notes: Sequence[str]) -> Grid:
    given, figure = found.best - found.value, _figures(found)
    rows = [
        ("without luck", figure(found.value, found.error), figure(given, found.error)),
        ("as played", figure(found.plain, found.plain_error), ""),
        ("a best response", figure(found.best), ""),
    ]
    taken = f"share of the luck taken out {found.coefficient:.3f}; {found.note}"
    return Grid(
        _title(found),
        ("", f"{found.unit.heading} ± 95 %{', at any time' * found.anytime}", "given away"),
        rows,
        notes=[_ratio(found), taken, *notes],
    )


def _loss_grids(found: Evaluation) -> list[Grid]:
    headings = ("", "decisions", "of them wrong", f"given away a game ({found.unit.heading})")
    grids, figure = [], _figures(found)
    for heading, losses in itertools.groupby(found.losses, lambda each: each.by):
        rows = [(each.label, f"{each.decisions:,}", f"{each.wrong:,}", figure(each.loss, each.error)) for each in losses]
        grids.append(Grid(f"given away by {heading}", headings, rows))
    return grids


def _worst_grids(found: Evaluation) -> list[Grid]:
    rows = [(_figures(found)(each.cost), each.position, each.played, each.better) for each in found.worst[:MOST_SHOWN]]
    headings = (f"cost ({found.unit.heading})", "the player saw", "it played", "better")
    return [Grid("the costliest decisions", headings, rows, words=(1, 2, 3))] if rows else []


def _save_plots(folder: Path, found: Evaluation) -> None:
    """Save a plot of where the player gives wins away, one part for each heading."""
    groups = {heading: list(losses) for heading, losses in itertools.groupby(found.losses, lambda each: each.by)}
    if not groups:
        return
    factor, rows = 100 if found.unit.is_share else 1, [len(losses) for losses in groups.values()]
    sizes = {"figsize": (8, 1.6 * len(rows) + 0.35 * sum(rows)), "gridspec_kw": {"height_ratios": [each + 1 for each in rows]}}
    caption = f"{_title(found)}: where it gives away what it lacks of a best response."
    with saved_plot(folder, f"evaluate_{found.game}", caption, nrows=len(rows), squeeze=False, **sizes) as (canvas, axes):
        for (heading, losses), own in zip(groups.items(), axes[:, 0], strict=True):
            values, errors = zip(*((factor * each.loss, factor * each.error) for each in losses), strict=True)
            bars(own, [each.label for each in losses], values, errors)
            own.set_title(f"by {heading}", loc="left")
            own.set_xlim(left=0)
        axes[-1, 0].set_xlabel(f"given away a game, {found.unit.heading} ± 95 %")
        canvas.suptitle(_title(found))
