"""`games` and `agents`: what there is to play, the options and parameters, and the trained policies of the package."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from dice_envs import configure, layout, load, measure, names
from dice_envs.agent.specs import aliases, for_game
from dice_envs.agents import ppo
from dice_envs.core.files import read_json
from dice_envs.core.game import Facts, gym_id
from dice_envs.core.options import options_text, shown
from dice_envs.experiments import ui
from dice_envs.experiments.ui.grids import Grid, figure_text
from dice_envs.table.rules import attributes, docstring, rules_in_short, sections


def list_games(
    game: Annotated[str | None, typer.Argument(help="A game, to see its rules, options, actions and observation.")] = None,
) -> None:
    """List the games, their environments, and their options with the defaults.

    With a game: its rules in short, the meaning of each option, actions, rewards, and the observation.

    Example: games liars_dice
    """
    for name in [game] if game else names():
        variant = configure(name)
        defaults = vars(variant.options)
        _heading(name, variant.game.title)
        module = f"; PettingZoo: dice_envs.{name}_v0" * (name in names())  # which a game of one's own has none of
        _flow(f"Gymnasium: {gym_id(variant.game)}{module}")
        if not game:
            _flow(f"options: {options_text(defaults)}")
            continue
        ui.console.print("\n  Rules")
        for sentence in rules_in_short(variant):
            _flow(sentence, 4)
        ui.console.print("\n  Options, with their defaults")
        meanings = attributes(variant.game.options)
        for option, value in defaults.items():
            _flow(": ".join(filter(None, (options_text({option: value}), meanings.get(option)))), 4)
        ui.console.print("\n  Actions")
        for line in (line for heading, lines in sections(variant.game) if heading == "Actions" for line in lines):
            _flow(line, 4, 8)
        ui.console.print("\n  Rewards, with these options")
        _flow(f"{rewards_text(variant.facts)}; at most {variant.facts.max_steps:,} moves", 4)
        ui.console.print("\n  Observation, with these options: entries, block, meaning")
        for line in layout(variant).splitlines():
            _flow(line, 4, 8)
    if not game:
        ui.console.print("\n`games GAME` says what each option means.")


def rewards_text(facts: Facts) -> str:
    """Say between which bounds one seat's rewards of a game lie, and whose they are."""
    kind = "zero-sum" if facts.zero_sum else "shared by all seats" if facts.cooperative else "each seat its own"
    return f"{facts.min_return:g} to {facts.max_return:g} in a game" + f", {kind}" * (facts.num_seats > 1)


def _heading(name: str, title: str) -> None:
    ui.console.print(Text.assemble("\n", (name, "bold"), f"  {title}"))


def _flow(text: str, margin: int = 2, hanging: int = 6) -> None:
    ui.console.print(textwrap.fill(text, ui.console.width, initial_indent=" " * margin, subsequent_indent=" " * hanging))


def list_agents(
    game: Annotated[str | None, typer.Argument(help="Only agents, or policies, that play this game.")] = None,
    policies: Annotated[bool, typer.Option("--policies", help="List the trained policies that come with the package.")] = False,
    json: ui.JsonOption = None,
    add: Annotated[
        Path | None, typer.Option(help="Measure the policy of this run's folder, add it to the package, and list all.")
    ] = None,
) -> None:
    """List the agents and their parameters, by the game that they play; with --policies, the trained policies.

    `ppo` plays the policies of the package without a path. Their figures are stored in their files, and written with --json;
    `measure GAME ppo -o ...` measures one anew.
    """
    games = names() if game is None else (load(game).name,)
    if add is not None:
        add_policy(add)
    if policies or add is not None or json is not None:
        list_policies(json, games)
        return
    _print_agents("any game", "", for_game(None))
    for each in games:
        own = {name: factory for name, factory in for_game(each).items() if name not in for_game(None)}
        _print_agents(each, load(each).title, own)
        for name, spec in aliases(each).items():
            ui.console.print(Text.assemble("\n  ", (name, "bold"), f"  another name of {spec}"))


def _print_agents(heading: str, title: str, factories: Mapping[str, Any]) -> None:
    _heading(heading, title)
    for name, factory in factories.items():
        ui.console.print(Text.assemble("\n  ", (name, "bold")))
        _print_docstring(docstring(factory))


def _print_docstring(text: str) -> None:
    """Print a docstring. Its lines flow to the terminal's width; each entry of a section begins a line."""
    flowing: list[tuple[int, str]] = []  # indentation and text of what begins a line
    goes_on = False
    for line in text.splitlines():
        words = line.strip()
        indent = len(line) - len(line.lstrip())
        if goes_on and words and (indent == 0 or indent > flowing[-1][0]):
            flowing[-1] = (flowing[-1][0], f"{flowing[-1][1]} {words}")
        else:
            flowing.append((indent, words))
        goes_on = bool(words) and not words.endswith(":")
    for indent, words in flowing:
        _flow(words, 4 + indent, 4 + 2 * indent)


def add_policy(folder: Path) -> None:
    """Put a finished run's policy into the package, under the folder's name and in half precision, and measure it so.

    Its header has the command that made it, the result of `measure` with the run's seed (if the variant has an exact measure)
    and its row of the run's cross table.

    Raises:
        ValueError: the folder does not hold a finished run, or its name is not letters, digits and _.
    """
    name = folder.resolve().name
    if not name.replace("_", "").isalnum():
        raise ValueError(f"the folder's name must be letters, digits and _, not {shown(name)}")
    policy = ppo.in_half(ppo.load_policy(folder))
    try:
        run, config = read_json(folder / "results.json"), read_json(folder / "config.json")
        known = {key: run[key] for key in ("command", "seed", "steps", "minutes") if run[key] is not None}
        about: dict[str, Any] = {"method": "ppo", **known}
        about["opponents"] = config["preset"]["opponents"]
        if (table := run.get("table")) is not None:
            about["table"] = {"agents": table["agents"], "win_rate": table["win_rate"][0], "ci95": table["ci95"][0]}
        ppo.check_about(about)
    except (OSError, ValueError, KeyError, TypeError, IndexError) as problem:
        raise ValueError(f"{str(folder)!r} holds no finished run of `train`: {problem}") from None
    for key, greedy in (("measures", False), ("greedy_measures", True)):
        start = time.perf_counter()
        try:
            with ui.progress(f"measuring {name}, {'likeliest actions' if greedy else 'as it is'}") as bar:
                found = measure(
                    policy.variant, ppo.Likeliest(policy) if greedy else policy, seed=about["seed"], done=bar.advance
                )
        except ValueError:  # the variant has no exact measure
            continue
        about[key] = ppo.measures_as_dicts(found)
        about["measuring_seconds"] = about.get("measuring_seconds", 0.0) + time.perf_counter() - start
    policy.about = ppo.check_about(about)
    ppo.save_policy(ppo.POLICIES / f"{name}.npz", policy, half=True)


def list_policies(json: Path | None, games: Sequence[str]) -> None:
    """Print the policies of the package for these games: the first measure of each, then its variant and its command."""
    rows = [_row(name, policy) for name, policy in ppo.shipped().items() if policy.variant.game.name in games]
    fields = ("file", "measured", "value", "greedy_value", "optimum")
    cells = [[figure_text(row[field], 4) for field in fields] for row in rows]
    Grid("trained policies", ("file", "measured", "as it is", "likeliest", "optimal"), cells, words=(0, 1), whole=(0,)).show()
    for row in rows:
        ui.console.whole_line(f"{row['file']}, {row['bytes']:,} bytes, plays {row['plays']}; made by\n  {row['command']}")
    ui.write_json(json, {"policies": rows})


def _row(name: str, policy: ppo.NetworkPolicy) -> dict[str, Any]:
    found, greedy = ((policy.about.get(key) or [{}])[0] for key in ("measures", "greedy_measures"))
    path, either = ppo.POLICIES / f"{name}.npz", found or greedy
    return {
        "file": path.name,
        "plays": str(policy.variant),
        "measured": either.get("name"),
        "value": found.get("value"),
        "greedy_value": greedy.get("value"),
        "optimum": either.get("optimum"),
        "bytes": path.stat().st_size,
        "command": policy.about.get("command"),
    }


COMMANDS = {"games": list_games, "agents": list_agents}
