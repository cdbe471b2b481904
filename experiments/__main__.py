"""The command line: `python -m experiments COMMAND`."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
import os
import platform
import shlex
import sys
import textwrap
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

import dice_envs.experiments.reproduce
import dice_envs.experiments.solve
from dice_envs import configure, layout, load, measure, names
from dice_envs.agent.casting import cast
from dice_envs.agents import for_game
from dice_envs.core.files import write_text
from dice_envs.core.game import check_choice, check_range, single_seat
from dice_envs.experiments.arena import (
    Result,
    add_optimal,
    check_match,
    check_table,
    exact_tournament,
    expanded,
    log_writer,
    num_meetings,
    save_plot,
    show,
    tournament,
)
from dice_envs.experiments.bench import chosen_parts
from dice_envs.experiments.discovery import add_commands
from dice_envs.experiments.distill import Settings, distill, hidden_sizes
from dice_envs.experiments.jobs.guard import ends_at_once
from dice_envs.experiments.jobs.workers import kept_beside, on_ray
from dice_envs.experiments.leaderboard import INTRO as BOARD_INTRO
from dice_envs.experiments.leaderboard import board, chosen, made_by, plan, source_of, unmeasured
from dice_envs.experiments.leaderboard import markdown as as_markdown
from dice_envs.experiments.leaderboard import plot as plot_board
from dice_envs.experiments.leaderboard import sections as board_sections
from dice_envs.experiments.leaderboard import show as show_board
from dice_envs.experiments.play import load_game, open_game, play_game, set_up
from dice_envs.experiments.policies import add_policy, list_policies
from dice_envs.experiments.recipes import RECIPES, compare, recipes_of
from dice_envs.experiments.recipes import show as show_recipes
from dice_envs.experiments.report import command_line, reproduce_all, with_page
from dice_envs.experiments.response import measure_response
from dice_envs.experiments.sheet import write_sheet
from dice_envs.experiments.soak import MOST_MOVES, broken
from dice_envs.experiments.soak import show as show_soak
from dice_envs.experiments.soak import soak as run_soak
from dice_envs.experiments.sweep import MOST_RUNS, parse_settings, sweep
from dice_envs.experiments.train import train as run_training
from dice_envs.experiments.ui.measures import measuring
from dice_envs.experiments.ui.measures import show as show_measures
from dice_envs.experiments.ui.options import (
    AgentsArgument,
    GameArgument,
    GamesOption,
    JsonOption,
    OptionOption,
    RayOption,
    ReportOption,
    ResumeOption,
    SeedOption,
    game_options,
    own_game,
)
from dice_envs.experiments.ui.output import (
    check_report,
    check_writable,
    console,
    finish,
    one_line_errors,
    plots_noted,
    print_mode,
    progress,
    seed_or_fresh,
    write_json,
)
from dice_envs.experiments.ui.page import About, versions, write_page
from dice_envs.learn.presets import presets_of
from dice_envs.table.sitting import Sitting

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Train, evaluate, solve and play the dice games. Start with: train liars_dice --preset quick",
)
reproduce_app = typer.Typer(no_args_is_help=True, help="Every figure of a source, published beside computed.")
solve_app = typer.Typer(no_args_is_help=True, help="Exact values of a game.")


def guarded(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command with bad input turned into one line, and ended by Ctrl-C at any time."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> Any:
        with ends_at_once(), one_line_errors():
            if isinstance(kwargs.get("game"), str):
                kwargs["game"] = own_game(kwargs["game"])
            return command(*args, **kwargs)

    return run


@app.command()
@guarded
def games() -> None:
    """List the games, their options, and what their observations hold."""
    for name in names():
        game = load(name)
        _print_heading(name, game.title)
        _, _, options = inspect.cleandoc(game.options.__doc__ or "").partition("Attributes:\n")
        console.print(textwrap.indent(options, "    "))
        console.print(Text.assemble("\n  ", ("observation", "bold"), ", with the default options: entries, block, meaning"))
        console.print("\n".join(f"    {line}" for line in layout(game).splitlines()))


@app.command("agents")
@guarded
def list_agents() -> None:
    """List the agents and their parameters, by the game that they play."""
    _print_agents("any game", "", for_game(None))
    for game in names():
        own = {name: factory for name, factory in for_game(game).items() if name not in for_game(None)}
        _print_agents(game, load(game).title, own)


@app.command("policies")
@guarded
def shipped_policies(
    json: JsonOption = None,
    add: Annotated[Path | None, typer.Option(help="First put the policy of this run's folder among them, measured.")] = None,
    name: Annotated[str, typer.Option(help="The name of its file there; the folder's if left out.")] = "",
    floor: Annotated[
        float | None, typer.Option(help="With --add: never take actions less likely than so many times the likeliest one.")
    ] = None,
) -> None:
    """List the trained policies that come with the package: `ppo` plays them without a path.

    Their figures are those that their files state; a policy is measured anew by `measure GAME ppo -o ...`.
    """
    check_writable(json)
    if add is not None:
        add_policy(add, name or add.name, floor)
    list_policies(json)


def _print_agents(heading: str, title: str, factories: Mapping[str, Any]) -> None:
    _print_heading(heading, title)
    for name, factory in factories.items():
        console.print(Text.assemble("\n  ", (name, "bold")))
        console.print(textwrap.indent(inspect.cleandoc(factory.__doc__ or ""), "    "))


def _print_heading(name: str, title: str) -> None:
    console.print(Text.assemble("\n", (name, "bold"), f"  {title}"))


@app.command()
@guarded
def arena(
    game: GameArgument,
    agents: AgentsArgument,
    option: OptionOption = None,
    games: GamesOption = 10_000,
    seed: SeedOption = None,
    json: JsonOption = None,
    report: ReportOption = None,
    match: Annotated[
        int, typer.Option(help="Games that the same agents play one after another; those that remember do so.")
    ] = 1,
    log: Annotated[Path | None, typer.Option(help="Write the games as a log, for games that have a log format.")] = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="Compute the win rates instead of playing: two-player Liar's Dice.")
    ] = False,
    ray: RayOption = None,
    resume: ResumeOption = False,
) -> None:
    """Let agents play each other: every pair, or one table with an agent at each of three or more seats.

    `3*numbers` stands for three of them, so `ppo 3*numbers` is one against a team at a table of four. Where all at a table are
    paid the same, as in The Shakes, it says what they have earned together, and how far that is from optimal play.

    Seats rotate from game to game. Win rates come with 95 % intervals; a tie counts as half a win. With --exact they are
    computed, no games are played, and --games and --seed have no effect.

    With --match N, the games of a pair come in matches of N at the same table. An agent that remembers, such as adaptive,
    then knows its opponent from the games before. Intervals are over matches, and parts of the match are shown apart.

    If the game has one seat, agents play alone, and the one with the higher return wins. Options that you leave out are
    those of a trained policy, if one takes part.

    With --ray the games are shared out on a cluster, and come out the same. With --json what has been played is kept beside
    that file, and after a stop the same command with --resume goes on from there.

    Example: arena liars_dice random numbers numbers:bluff=0.5 --games 100000
    """
    agents = expanded(agents)
    variant, players, policy = cast(game, game_options(option), agents)
    check_table(variant, len(agents), games)
    check_match(games, match)
    if exact and match > 1:
        raise ValueError(f"--exact plays no matches, so --match must be 1 with it, not {match}")
    for name, given in (("log", log is not None), ("ray", ray is not None), ("resume", resume)):
        if exact and given:
            raise ValueError(f"--exact plays no games: leave out --{name} or --exact")
        if log is not None and given and name != "log":
            raise ValueError(f"--log takes down games as they are played here, in one go: leave out --{name} or --log")
    writer: Any = log_writer(variant, len(agents)) if log is not None else None
    check_writable(json)
    check_writable(log)
    check_report(report)
    print_mode(variant, policy)
    meetings = num_meetings(variant, len(agents))

    def hand_over(result: Result) -> None:
        add_optimal(result, variant)
        finish(
            lambda: show(result),
            lambda: write_json(json, result),
            lambda: save_plot(report, f"arena_{variant.game.name}", result) if report is not None else None,
            lambda: write_text(log, writer.text()) if log is not None else None,
        )

    if exact:
        with progress("computing, %", 100) as done:
            result = exact_tournament(variant, agents, lambda share: done(100 * share / meetings), players)
        hand_over(result)
        return
    what = {"game": str(variant.plain), "agents": agents, "games": games, "match": match}
    with kept_beside(json if log is None else None, resume, what, seed) as kept, on_ray(ray, kept) as workers:
        seed = kept.seed if kept else seed_or_fresh(seed)
        with progress(f"{meetings} × {games:,} games", meetings * games) as done:
            result = tournament(variant, agents, games, seed, done, players, writer, match, workers)
        hand_over(result)


def _serve(sittings: list[Sitting], host: str | None, port: int | None, browser: bool) -> None:
    from dice_envs.experiments.web.server import HOST, serve  # of an extra of its own

    serve(sittings, HOST if host is None else host, port, browser)


@app.command()
@guarded
def play(
    game: Annotated[str | None, typer.Argument(help="The game, say liars_dice; `games` lists them.")] = None,
    agents: Annotated[
        list[str] | None,
        typer.Argument(help="Opponents in seat order after you, one for all seats, or none for random play."),
    ] = None,
    option: OptionOption = None,
    seat: Annotated[int | None, typer.Option(help="Your seat; chosen at random if left out.")] = None,
    people: Annotated[int | None, typer.Option(help="How many people play at this terminal, 1 if left out.")] = None,
    seed: SeedOption = None,
    watch: Annotated[bool, typer.Option("--watch", help="Nobody plays: step agents against each other.")] = False,
    load: Annotated[Path | None, typer.Option(help="Go on with a game that `save FILE` has written.")] = None,
    replay: Annotated[bool, typer.Option("--replay", help="With --load: step through the game, move by move.")] = False,
    review: Annotated[bool, typer.Option("--review", help="Show at the end what each of your moves has cost.")] = False,
    log: Annotated[Path | None, typer.Option(help="Write the game as a log, if it has a log format; you are player 1.")] = None,
    web: Annotated[
        bool, typer.Option("--web", help="Play on a page in the browser, every person on a device of their own.")
    ] = False,
    host: Annotated[str | None, typer.Option(help="With --web: 0.0.0.0 serves the network, not this machine alone.")] = None,
    port: Annotated[int | None, typer.Option(help="With --web: 8080 if left out and free.")] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="With --web: open a browser.")] = True,
) -> None:
    """Play at the terminal against any agents, with the dice shown as pictures. `help` there says what can be typed: rules,
    hint, odds, undo, history, save. With --web, play on a page instead.

    If the game has one seat, the agents play the same deal after you. Options that you leave out are those of a trained
    policy, if one takes part.

    Example: play liars_dice numbers:bluff=0.25 -o num_dice=3
    """
    if load is not None:
        given = {"--option": option, "--seat": seat, "--people": people, "--seed": seed, "--watch": watch or None}
        given["opponents"] = agents or None
        for name, value in given.items():
            if value is not None:
                raise ValueError(f"{name} cannot be given with --load: a saved game has its own")
    if not web:
        for name, unused in {"--host": host, "--port": port, "--no-browser": None if browser else True}.items():
            if unused is not None:
                raise ValueError(f"{name} is for the page: give --web, too")
    if web and log is not None:
        raise ValueError("--log takes down a game at the terminal: leave out --web or --log")
    if web and load is not None:
        _serve([open_game(load, game)], host, port, browser)
        return
    if load is not None:
        load_game(load, game, replay, review, log)
        return
    if game is None:
        raise ValueError(f"name a game, {', '.join(names())}, or a saved one with --load FILE")
    if replay:
        raise ValueError("--replay steps through a saved game: name it with --load FILE")
    if watch and people is not None:
        raise ValueError("--people cannot be given with --watch, where nobody plays")
    seated = set_up(game, agents or [], option or [], seat, 1 if people is None else people, seed_or_fresh(seed), watch)
    if not web:
        play_game(seated, review, log)
        return
    sitting = seated.sitting
    print_mode(sitting.variant, seated.policy)
    if len(sitting.people) == 1:  # who plays against others must not know it
        console.whole_line(f"seed {sitting.seed}")
    after = seated.made if sitting.variant.facts.num_seats == 1 and not watch else {}
    same_deal = [Sitting(sitting.variant, sitting.seed, [spec]) for spec in after]
    _serve([sitting, *same_deal], host, port, browser)


@app.command()
@guarded
def train(
    game: GameArgument,
    preset: Annotated[
        str, typer.Option(help="To beat opponents: quick (minutes) or full; to come close to equilibrium: equilibrium.")
    ] = "quick",
    out: Annotated[Path | None, typer.Option(help="Folder of the run; runs/GAME_PRESET if left out.")] = None,
    option: OptionOption = None,
    opponents: Annotated[
        list[str] | None, typer.Option("--opponent", help="A fixed opponent instead of the preset's; repeat it.")
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Decisions to learn from in all, instead of the preset's number.")] = None,
    seed: SeedOption = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue from the last checkpoint in the folder.")] = False,
    evaluation_games: Annotated[int, typer.Option(help="Games for each pair of agents in the final cross table.")] = 20_000,
    device: Annotated[str, typer.Option(help="Where the network is trained, say cpu or cuda.")] = "cpu",
    threads: Annotated[int | None, typer.Option(help="PyTorch's, instead of the preset's.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="A setting of the preset, NAME=VALUE; with several, NAME=VALUE,VALUE, each is a run."),
    ] = None,
    seeds: Annotated[int | None, typer.Option(help="Runs of each setting, with --seed and the next ones, or 1, 2, 3 …")] = None,
    ray: RayOption = None,
    json: JsonOption = None,
    report: ReportOption = None,
) -> None:
    """Train a PPO agent, measure it exactly where that is possible, and save it.

    With the presets quick and full it learns to beat a pool of opponents (--opponent) and past selves; with the preset
    equilibrium, in Liar's Dice of many rounds with match, it plays itself, and learns to be hard to beat. Exact gaps are
    recorded on the way where they are cheap.

    The agent is saved as OUT/policy.npz; `ppo:OUT` names it wherever agents are named, and brings its game options with
    it. Ctrl-C saves all and stops; --resume continues the run, after a kill too, and ends exactly as an undisturbed run
    does. Of The Shakes it trains a physician, of the game of 30s a player alone; -o takes the table instead.

    With --report the measures, tables and plots become one page.

    With --seeds, or several values of --set, there are many runs, each in a folder of its own inside OUT, and a table of all
    at the end; --ray shares them out on a cluster.

    Example: train liars_dice --out runs/three_dice -o num_dice=3 --opponent numbers --opponent random
    """
    plain = presets_of(game).get(preset) if game in names() else None
    values = parse_settings(settings or [], plain) if plain is not None else {}
    several = seeds is not None or any(len(each) > 1 for each in values.values())
    if ray is not None and not several:
        raise ValueError("--ray shares out several runs: add --seeds, or --set with several values")
    if not several or plain is None:  # a game or preset that does not exist is refused there
        chosen = {name: each for name, (each,) in values.items()}
        run_training(
            game,
            preset,
            out,
            option or [],
            opponents,
            steps,
            seed,
            resume,
            evaluation_games,
            json,
            device,
            threads,
            chosen,
            report,
        )
        return
    if report is not None:
        raise ValueError("--report shows one run: leave it out, or --seeds and several values of --set")
    check_range("seeds", 1 if seeds is None else seeds, 1, MOST_RUNS)
    first = 1 if seed is None else seed
    sweep(
        game,
        preset,
        out or Path("runs") / f"{game}_{preset}_sweep",
        values,
        range(first, first + (seeds or 1)),
        ray,
        resume,
        json,
        option=option or [],
        opponents=opponents,
        steps=steps,
        evaluation_games=evaluation_games,
        device=device,
        threads=threads or 1,
    )


@app.command()
@guarded
def recipes(
    game: GameArgument,
    names: Annotated[
        list[str] | None, typer.Argument(help=f"Recipes: {'; '.join(RECIPES)}. All but published if left out.")
    ] = None,
    option: OptionOption = None,
    steps: Annotated[int, typer.Option(help="Learner steps of each run.")] = 3_000_000,
    seeds: Annotated[int, typer.Option(help="Runs of each recipe, with seeds 0, 1, 2 …")] = 5,
    jobs: Annotated[int, typer.Option(help="Runs at once, one core each.")] = 2,
    json: JsonOption = None,
) -> None:
    """Compare ways of training by self-play: the exact gap from optimal play that each reaches, for every seed.

    Example: recipes liars_dice -o rules=openspiel -o num_dice=1 --steps 3000000
    """
    variant = single_seat(game, **game_options(option))
    check_range("seeds", seeds, 1, 1000)
    chosen = recipes_of(variant.game.name, steps, names or ())
    check_writable(json)
    print_mode(variant, "")
    with progress("runs", len(chosen) * seeds) as done:
        rows = compare(variant, chosen, range(seeds), jobs, done)
    finish(lambda: show_recipes(variant, rows), lambda: write_json(json, {"variant": str(variant), "rows": rows}))


@app.command("distill")
@guarded
def distill_solution(
    game: GameArgument,
    option: OptionOption = None,
    hidden: Annotated[str, typer.Option(help="The sizes of the hidden layers, separated by commas.")] = "512,512",
    steps: Annotated[int, typer.Option(help="Updates of the network, each from 2,048 positions.")] = Settings().steps,
    minutes: Annotated[
        float | None, typer.Option(help="Stop training after so many minutes; the seed alone does not repeat it then.")
    ] = None,
    rate: Annotated[float, typer.Option(help="Adam's learning rate, which falls to 0.")] = Settings().rate,
    memoryless: Annotated[
        bool, typer.Option("--memoryless", help="The network sees the last bid only: measured fast, but it plays worse.")
    ] = False,
    precision: Annotated[float, typer.Option(help="The solution's exploitability.")] = Settings().precision,
    out: Annotated[Path | None, typer.Option(help="The policy file; runs/liars_dice_distilled.npz if left out.")] = None,
    seed: SeedOption = None,
    json: JsonOption = None,
) -> None:
    """Train one small network to play as the solution of a two-player Liar's Dice does, and measure it exactly.

    The network is saved as a policy, so `ppo:OUT` plays it. Actions that are much less likely than the likeliest are
    never taken; how much less is chosen by what best responses win.

    Example: distill liars_dice -o num_dice=3 --hidden 256,256 --steps 3000
    """
    limit = math.inf if minutes is None else minutes
    settings = Settings(hidden_sizes(hidden), steps, limit, rate, memoryless, precision)
    distill(game, option or [], settings, out, seed, json)


@app.command("measure")
@guarded
def measure_agent(
    game: GameArgument,
    agent: Annotated[str, typer.Argument(help="The agent, say numbers:bluff=0.25; `agents` lists them.")],
    option: OptionOption = None,
    sample: Annotated[
        int | None, typer.Option(help="Deals or games looked at where there are too many for all of them.")
    ] = None,
    response: Annotated[
        str | None, typer.Option(help="ppo: train a response to the agent, whose winnings bound a best response's from below.")
    ] = None,
    minutes: Annotated[float, typer.Option(help="Of training, with --response.")] = 5.0,
    games: Annotated[int, typer.Option(help="Games that the trained response is judged by, with --response.")] = 20_000,
    seed: SeedOption = None,
    json: JsonOption = None,
    ray: RayOption = None,
) -> None:
    """Measure how far an agent is from optimal play: exactly where the game allows it, else with a 95 % interval.

    With --response ppo it trains a network to win from the agent, which has all other seats and does not learn. What that
    wins is a lower bound where no exact answer is known: with three players and more, or against agents with memory.

    Options that you leave out are those that the agent was trained on, if it is a trained policy. An agent whose answers are
    random is measured ten times, and --ray shares these out on a cluster.

    Example: measure liars_dice numbers:bluff=0.25 -o rules=openspiel -o num_dice=1
    """
    if response is not None:
        check_choice("--response", response, ("ppo",))
    variant, (player,), policy = cast(game, game_options(option), [agent], single_seat)
    seed = seed_or_fresh(seed)
    check_writable(json)
    print_mode(variant, policy)
    with on_ray(ray) as workers:
        if response is not None:
            with progress(f"training a response to {agent}, minutes", minutes) as done:
                measured = measure_response(variant, agent, player, minutes, games, seed, done=done, workers=workers)
        else:
            with measuring(agent) as done:
                apply = map if ray is None else workers.map
                measured = measure(variant, agent, seed=seed, sample=sample, done=done, apply=apply)
    finish(lambda: show_measures(measured, trained=response is not None), lambda: write_json(json, measured))


@app.command()
@guarded
def leaderboard(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Tasks (or a game, for all its tasks) and agents, in any order; all tasks, usual agents if left out."
        ),
    ] = None,
    agent: Annotated[
        list[str] | None, typer.Option(help="An agent of yours, MODULE:FACTORY, say mine:make; repeat it for more.")
    ] = None,
    sample: Annotated[
        int | None, typer.Option(help="Deals or games looked at where there are too many for all of them.")
    ] = None,
    minutes: Annotated[float, typer.Option(help="How long one agent on one task may take before fewer are looked at.")] = 3.0,
    seed: SeedOption = None,
    json: JsonOption = None,
    report: ReportOption = None,
    markdown: Annotated[Path | None, typer.Option(help="Write the board here as Markdown.")] = None,
    ray: RayOption = None,
    resume: ResumeOption = False,
) -> None:
    """The board: how far every agent is from optimal play, on every named task that it can play.

    A task is a game with options and the one quantity that counts (`dice_envs.TASKS`). A score is 0 for uniformly random play
    and 1 for optimal play. A game's name stands for all its tasks, so the agent of thirties is named with a strategy, say
    thirties:heuristic. What an agent cannot play, or not within --minutes, is left out with the reason.

    --agent puts an agent of yours on it: MODULE is found in the current folder, FACTORY is called without arguments, or with
    the game's variant if it takes one, and returns what `dice_envs.measure` takes.

    With --json each agent on a task is kept when it is done, and after a stop the same command with --resume goes on.

    Example: leaderboard liars_dice_openspiel_1 random nash --agent mine:make --report report
    """
    tasks, specs = chosen(names or [])
    others = {text: made_by(text) for text in agent or []}
    for path in (json, markdown):
        check_writable(path)
    check_report(report)
    given = {
        "names": [task.name for task in tasks],
        "agents": specs,
        "others": {text: source_of(text) for text in others},
        "sample": sample,
        "minutes": minutes,
    }
    with kept_beside(json, resume, {"board": given}, seed) as kept, on_ray(ray, kept) as workers:
        seed = kept.seed if kept else seed_or_fresh(seed)
        console.print(f"seed {seed}")
        rows = plan(tasks, specs or None, others)
        with progress("agents on tasks", len(rows)) as done:
            found = board([task.name for task in tasks], specs or None, others, seed, sample, minutes, done, workers)
        nowhere = unmeasured(found, [*specs, *others])
        words = " ".join(["leaderboard", *map(shlex.quote, names or [])])
        typed = {"agent": agent, "sample": sample, "minutes": None if minutes == 3.0 else minutes, "seed": seed}
        command = command_line(words, {**typed, "json": json, "report": report, "markdown": markdown})

        def write_report(folder: Path) -> None:
            with plots_noted() as plots:
                plot_board(folder, found)
            about = About(command, {"sample": sample or "each game's own", "minutes": minutes}, seed)
            write_page(folder, "dice-envs: the board", [BOARD_INTRO], board_sections(found, plots), about)

        if not nowhere:
            finish(
                lambda: show_board(found),
                lambda: write_json(json, {"command": command, **dataclasses.asdict(found)}),
                lambda: write_report(report) if report is not None else None,
                lambda: write_text(markdown, as_markdown(found, command)) if markdown is not None else None,
            )
    if nowhere:  # outside, so that what was kept is removed: it is of no use once the agent is mended
        raise ValueError(nowhere)


@app.command()
@guarded
def bench(
    only: Annotated[list[str] | None, typer.Argument(help="Games or parts, say liars_dice or search; all if left out.")] = None,
    quick: Annotated[bool, typer.Option(help="Smaller sizes: a look, not a measurement.")] = False,
    json: JsonOption = None,
) -> None:
    """Measure speed beside peers in the same run, on one core unless a row says otherwise."""
    parts = chosen_parts(only or [])
    check_writable(json)
    table = Table(title="bench", title_justify="left")
    for heading in ("game", "what", "ours", "aim", "peer", "peer's name", "ratio", "note"):
        table.add_column(heading, justify="right" if heading in ("ours", "aim", "peer", "ratio") else "left")
    rows = []
    for part in parts:
        for row in part.rows(quick):
            rows.append({**vars(row), "ratio": row.ratio})
            figures = [f"{value:,.4g} {row.unit}" if value is not None else "" for value in (row.ours, row.aim, row.peer)]
            ratio = f"{row.ratio:,.1f}×" if row.ratio else ""
            console.print(f"{row.name}: {figures[0]} {ratio}")
            table.add_row(part.game, row.name, *figures, row.peer_name, ratio, row.note)
    about = {
        "versions": versions(),
        "machine": {"processor": platform.processor() or platform.machine(), "cores": os.cpu_count()},
    }
    finish(lambda: console.print(table), lambda: write_json(json, {**about, "rows": rows}))


@app.command()
@guarded
def soak(
    games: Annotated[list[str] | None, typer.Argument(help="Games, say liars_dice; all if left out.")] = None,
    moves: Annotated[int, typer.Option(help="In the compiled loop; one in 2,000 more through each of the interfaces.")] = 10**7,
    seed: SeedOption = None,
    json: JsonOption = None,
) -> None:
    """Play every game with random options through every interface, and check at every move what they promise.

    Some callers do what they must not. What is wrong is listed with the options and the seed, and the command then fails.
    JSON: {"seed", "moves", "seconds", "memory": bytes after each round, "rows": [{"game", "interface", "moves", "games",
    "variants", "faults"}]}.

    Example: soak --moves 1000000000 --seed 1
    """
    check_range("moves", moves, 1, MOST_MOVES)
    chosen = [load(name).name for name in games or names()]
    seed = seed_or_fresh(seed)
    check_writable(json)
    console.print(f"seed {seed}")
    begun = time.perf_counter()
    with progress("moves", moves) as done:
        rows, memory = run_soak(chosen, moves, seed, done)
    seconds = time.perf_counter() - begun
    finish(
        lambda: show_soak(rows, memory, seconds),
        lambda: write_json(json, {"seed": seed, "moves": moves, "seconds": seconds, "memory": memory, "rows": rows}),
    )
    if broken(rows, memory):
        raise typer.Exit(1)


@app.command()
@guarded
def sheet(
    game: GameArgument,
    file: Annotated[Path, typer.Argument(help="Where it is written, as .svg or .html.")],
    option: OptionOption = None,
    paper: Annotated[str, typer.Option(help="a4 or letter.")] = "a4",
) -> None:
    """Write a score sheet to print, one page: a game with real dice. The Shakes has one.

    It follows from the options: who plays, what the treatments are called, how many patients come, and the rules in short.

    Example: sheet shakes sheet.html -o treatments=rules -o maesters=Ada,Ben,Cleo -o open_efficacies=true
    """
    write_sheet(file, configure(game, **game_options(option)), paper)
    console.whole_line(f"wrote {file}")


@reproduce_app.command("all")
@guarded
def all_sources(
    games: Annotated[
        int | None, typer.Option("--games", help="Games to play for each source; each one's own if left out.")
    ] = None,
    seed: SeedOption = None,
    json: JsonOption = None,
    report: ReportOption = None,
    ray: RayOption = None,
) -> None:
    """Every source, one after another; with --report one page of all their figures and plots.

    JSON: {"seed", "sources": {game: rows}}.

    Example: reproduce all --report report
    """
    reproduce_all(games, seed, json, report, ray)


add_commands(reproduce_app, dice_envs.experiments.reproduce, lambda main: guarded(with_page(main)))
add_commands(solve_app, dice_envs.experiments.solve, guarded)
app.add_typer(reproduce_app, name="reproduce")
app.add_typer(solve_app, name="solve")


def main(name: str) -> None:
    """Run the command line. `name`: how it was called, for its help."""
    for stream in ("stdout", "stderr"):
        if getattr(sys, stream) is None:  # closed by whoever started us
            setattr(sys, stream, open(os.devnull, "w"))  # noqa: SIM115
        # A result must not fail on a character that the terminal does not have.
        getattr(sys, stream).reconfigure(errors="backslashreplace")
    app(prog_name=name)


if __name__ == "__main__":
    main("python -m experiments")
