"""Write the pages that are made from the code: a page for each game, agents, presets, and tables of stored results.

The pages go into `generated`, which is not under version control. The files in `results` and `bench` were written by commands
that the tables name.
"""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import json
import math
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dice_envs import TASKS, Batch, Game, Variant, agents, configure, evaluate, load, names
from dice_envs.core.game import OVER, single_seat
from dice_envs.core.options import options_text
from dice_envs.evaluation import GAMES_WON
from dice_envs.experiments.ui.grids import Grid
from dice_envs.learn.presets import presets_of
from dice_envs.pictures.render import svg
from dice_envs.table.rules import attributes, is_table, sections

SEED = 1  # of the random play that leads to the pictured positions
MOVES = 6  # played before the picture


def write_pages(docs: Path) -> None:
    """Write all generated pages below `docs`/generated. Unchanged pages are left alone."""
    for name in names():
        _write(docs / "generated" / "games" / f"{name}.md", game_page(load(name), docs))
        _write(docs / "generated" / "games" / f"{name}.svg", svg(_position(single_seat(load(name)))))
    _write(docs / "generated" / "gallery.txt", gallery())
    _write(docs / "generated" / "agents.md", agents_page())
    _write(docs / "generated" / "speed.md", speed_page(docs / "bench"))
    _write(docs / "generated" / "presets.md", presets_page())
    _write(docs / "generated" / "luck.txt", luck_table(docs / "luck.json"))
    _write(docs / "generated" / "language.txt", language_table(docs / "language.json"))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def table(headings: Sequence[str], rows: Iterable[Sequence[Any]], right: Sequence[str] = ()) -> str:
    """A table in Markdown. Columns named in `right` are aligned to the right."""
    words = [number for number, heading in enumerate(headings) if heading not in right]
    return "\n".join(Grid("", headings, [[_cell(value) for value in row] for row in rows], words).markdown())


def _cell(value: Any) -> str:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


# --- games ------------------------------------------------------------------------------------------------------------


def game_page(game: Game, docs: Path) -> str:
    """The page of a game: rules, picture, options, environments, observation, agents, optimal play, published figures."""
    variant, alone = configure(game), single_seat(game)
    parts = [
        f"# {game.title}",
        card(variant, alone),
        rules(game),
        f"```{{figure}} {game.name}.svg\n:alt: {game.title}\n:width: 100%\n\nA position with everything shown.\n```",
        "## Options\n\n" + options_table(game),
        "## Interfaces\n\n" + environments(game, variant, alone),
        "## Observation\n\n" + _blocks(alone),
        "## Agents\n\n" + _agents_of(game),
    ]
    if any(task.game == game.name for task in TASKS.values()):
        parts.append("## Optimal play\n\n" + optimal_play(game, (docs / "board.md").read_text(encoding="utf-8")))
    published = docs / "results" / f"{game.name}.json"
    if published.exists():
        parts.append("## Published figures beside ours\n\n" + figures(published))
    return "\n\n".join(parts) + "\n"


def gallery() -> str:
    """The cards of all games, for the first page: a picture that leads to the game's page, and what an agent sees and does.

    The game that most people come for is the first.
    """
    parts = []
    for name in sorted(names(), key=lambda name: name != "liars_dice"):
        game, about = load(name), f"generated/games/{name}"
        image = f"```{{figure}} {about}.svg\n:alt: {game.title}\n:width: 420px\n:target: {about}.html\n```"
        parts.append(f"### [{game.title}]({about}.md)\n\n{image}\n\n{card(configure(game), single_seat(game))}")
    return "\n\n".join(parts) + "\n"


def card(variant: Variant, alone: Variant) -> str:
    """A table of what an agent meets in a game: seats, spaces, rewards, length, and what is known exactly."""
    facts = variant.facts
    kind = "zero-sum" if facts.zero_sum else "shared by all seats" if facts.cooperative else "each seat its own"
    every = ", chosen simultaneously" if facts.simultaneous else ""
    tasks = [task for task in TASKS.values() if task.game == variant.game.name]
    exact = list(dict.fromkeys(task.headline for task in tasks if not task.field))
    rows = [
        ("make", f'`gymnasium.make("dice_envs/{variant.game.env_name}-v0")`, `dice_envs.{variant.game.name}_v0.env()`'),
        ("seats", facts.num_seats if facts.num_seats == alone.facts.num_seats else f"{facts.num_seats}; 1 in Gymnasium"),
        ("actions", f"`Discrete({facts.num_actions})`, illegal ones masked{every}"),
        ("observation", f"`Box(0, 1, ({facts.observation_size},), float32)`"),
        ("rewards", f"{facts.min_return:g} to {facts.max_return:g} in a game, {kind}"),
        ("length", f"at most {facts.max_steps:,} moves"),
    ]
    if exact:
        count = f"{len(tasks)} task" + "s" * (len(tasks) > 1)
        rows.append(("measured by", f"{', '.join(exact)}, exactly; {count} on the board"))
    return table(("", ""), rows)


def rules(game: Game) -> str:
    """A game's rules as Markdown: headings, paragraphs, lists, and tables as preformatted text."""
    parts = []
    for heading, paragraphs in sections(game):
        parts += [f"## {heading}"] if heading else []
        for kind, lines in itertools.groupby(paragraphs, key=_kind):
            text = ("\n\n" if kind == "text" else "\n").join(lines)
            parts.append(f"```text\n{text}\n```" if kind == "table" else text)
    return "\n\n".join(parts)


def _kind(paragraph: str) -> str:
    return "table" if is_table(paragraph) else "list" if paragraph.startswith("- ") else "text"


def options_table(game: Game) -> str:
    """A table of options with defaults and meanings."""
    defaults = {field.name: field.default for field in dataclasses.fields(game.options)}
    listed = attributes(game.options)
    return table(
        ("option", "default", "meaning"), [(f"`{name}`", f"`{defaults.get(name)!r}`", text) for name, text in listed.items()]
    )


def environments(game: Game, variant: Variant, alone: Variant) -> str:
    """A table of environments: how to make each, and its spaces."""
    rows = [("PettingZoo AEC", f"`from dice_envs import {game.name}_v0`, `{game.name}_v0.env()`", variant)]
    if variant.facts.simultaneous:
        rows.append(("PettingZoo parallel", f"`{game.name}_v0.parallel_env()`", variant))
    rows.append(("Gymnasium, single and vector", f'`gymnasium.make("dice_envs/{game.env_name}-v0")`, `make_vec`', alone))
    rows.append(("Stable-Baselines3", f'`dice_envs.envs.sb3.make_vec_env("{game.name}", 8)`', alone))
    cells = [(*row[:2], each.facts.num_seats, each.facts.num_actions, each.facts.observation_size) for *row, each in rows]
    made = table(("interface", "made by", "seats", "actions", "observation"), cells, ("seats", "actions", "observation"))
    facts = variant.facts
    kind = "zero-sum" if facts.zero_sum else "not zero-sum"
    commits = ", and players choose simultaneously" if facts.simultaneous else ""
    said = (
        f"With the default options a game takes at most {facts.max_steps:,} moves, returns lie between "
        f"{facts.min_return:g} and {facts.max_return:g}, the game is {kind}{commits}."
    )
    return f"{made}\n\nActions are whole numbers, observations float32 in [0, 1]. {said}"


def _blocks(variant: Variant) -> str:
    rows, begin = [], 0
    for block in variant.blocks:
        if block.size:
            rows.append((f"{begin} … {begin + block.size - 1}" if block.size > 1 else begin, f"`{block.name}`", block.meaning))
        begin += block.size
    listed = table(("entries", "block", "meaning"), rows)
    return f"Layout for {variant}; `dice_envs.describe` puts an observation into words.\n\n{listed}"


def _agents_of(game: Game) -> str:
    any_game = agents.for_game(None)
    own = {name: factory for name, factory in agents.for_game(game.name).items() if name not in any_game}
    rows = [(f"`{name}`", _summary(factory)) for name, factory in own.items()]
    others = ", ".join(f"`{name}`" for name in any_game)
    listed = table(("agent", "plays"), rows)
    return f"{listed}\n\nAgents for any game: {others}. [All agents](../agents.md) with their parameters."


def _summary(factory: Any) -> str:
    return (inspect.getdoc(factory) or "").partition("\n\n")[0]


def _position(variant: Variant) -> Any:
    """A picture of a game in progress, with everything shown."""
    batch, rng = Batch(variant, 1, seed=SEED), np.random.default_rng(SEED)
    for _ in range(MOVES):
        before = batch.states.copy()
        batch.play(np.array([rng.choice(np.flatnonzero(batch.legal()[0]))]))
        if batch.seats[0] == OVER:
            return variant.picture(before[0])
    return variant.picture(batch.states[0])


def optimal_play(game: Game, board: str) -> str:
    """The values of random and optimal play in the game's tasks and the best agents: rows of the board's first table."""
    lines = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in board.splitlines() if line.startswith("|")]
    headings, rows = lines[0], {line[0]: line for line in lines[2:]}
    tasks = [task for task in TASKS.values() if task.game == game.name]
    asked = "\n".join(f"- `{task.name}`: {task.asks}" for task in tasks)
    listed = table(headings, [rows[task.name] for task in tasks], ("random play", "optimal play"))
    return f"{asked}\n\n{listed}\n\n{_ABOUT_TASKS}"


_ABOUT_TASKS = (
    "Agents are shown with their scores, 0 for random play and 1 for optimal play. [The board](../../board.md) has all agents "
    "and says how it was made. [`dice_envs.measure`](../../measures.md) computes the same for any options and any agent; "
    "`dice-envs solve` computes optimal play itself."
)


def figures(path: Path) -> str:
    """Published figures beside ours, in a table for each source."""
    stored = json.loads(path.read_text(encoding="utf-8"))
    parts = [f"Written by `make results`, which runs `dice-envs {stored['command']}`. ± is half of a 95 % interval."]
    for source, rows in itertools.groupby(stored["rows"], key=lambda row: row["source"]):
        cells = [
            (row["figure"], row["published"], row["ours"], row["error"] or "exact", _AGREES[row["agrees"]], row["note"])
            for row in rows
        ]
        listed = table(("figure", "published", "ours", "±", "agrees", "note"), cells, ("published", "ours", "±"))
        parts.append(f"**{source}**\n\n{listed}")
    return "\n\n".join(parts)


_AGREES = {True: "yes", False: "no", None: ""}


def keep(command: str, made: Path, kept: Path) -> None:
    """Store the rows with a published figure from the JSON of `reproduce`, and the command."""
    rows = [row for row in json.loads(made.read_text(encoding="utf-8"))["rows"] if row["published"] is not None]
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    kept.write_text(f'{{"command": {json.dumps(command)}, "rows": [\n{lines}\n]}}\n', encoding="utf-8")


# --- agents, presets, speed -------------------------------------------------------------------------------------------


def agents_page() -> str:
    """All agents with their parameters."""
    parts = ["# Agents in full\n\nAll agents with their parameters, as `dice-envs agents` lists them."]
    for game in (None, *names()):
        own = agents.for_game(game)
        chosen = own if game is None else {name: own[name] for name in own if name not in agents.for_game(None)}
        parts.append(f"## {load(game).title if game else 'Any game'}")
        for name, factory in chosen.items():
            text, _, _ = (inspect.getdoc(factory) or "").partition("Attributes:\n")
            listed = attributes(factory)
            parameters = (
                table(("parameter", "meaning"), [(f"`{key}`", meaning) for key, meaning in listed.items()]) if listed else ""
            )
            parts.append(
                f"### {name}{f' ({game})' if game and _elsewhere(name, game) else ''}\n\n{text.strip()}\n\n{parameters}"
            )
    return "\n\n".join(parts) + "\n"


def _elsewhere(name: str, game: str) -> bool:
    return any(name in agents.for_game(other) for other in names() if other != game)


def presets_page() -> str:
    """The settings of all presets of `train`, with their meanings."""
    parts = ["# Presets in full\n\nThe settings of each preset of `train`. `--set NAME=VALUE` changes one."]
    meaning = attributes(type(next(iter(presets_of("").values()))))
    parts.append(table(("setting", "meaning"), [(f"`{name}`", text) for name, text in meaning.items()]))
    for game in names():
        presets = presets_of(game)
        settings = [field.name for field in dataclasses.fields(next(iter(presets.values())))]
        rows = [[f"`{name}`", *(f"`{getattr(preset, name)}`" for preset in presets.values())] for name in settings]
        parts.append(f"## {load(game).title}\n\n{table(('setting', *presets), rows)}")
    return "\n\n".join(parts) + "\n"


def speed_page(folder: Path) -> str:
    """The results of `bench` for each version, newest first."""
    about = "Results of `dice-envs bench`, beside peers in the same run. A ratio of 2 is twice as fast."
    headings = ("subject", "ours", "unit", "peer", "the peer's", "ratio", "note")
    parts = [f"# Speed\n\n{about}"]
    for path in sorted(folder.glob("*.json"), key=_version, reverse=True):
        bench = json.loads(path.read_text(encoding="utf-8"))
        rows = []
        for row in bench["rows"]:
            ours, peer, ratio = (_figure(row[key]) for key in ("ours", "peer", "ratio"))
            rows.append((row["name"], ours, row["unit"], row["peer_name"], peer, ratio, row["note"]))
        machine = ", ".join(f"{key} {value}" for key, value in bench.get("machine", {}).items())
        parts += [f"## {path.stem}", machine, table(headings, rows, ("ours", "the peer's", "ratio"))]
    return "\n\n".join(parts) + "\n"


def _version(path: Path) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", path.stem))


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:,.3g}" if value < 1000 else f"{value:,.0f}"


# --- evaluation without luck ------------------------------------------------------------------------------------------

# game, options, player, opponent
EVALUATED: tuple[tuple[str, dict[str, Any], str, str | None], ...] = (
    *(("liars_dice", {"num_dice": 3}, player, "nash") for player in ("nash", "ppo", "reader", "adaptive", "mcts:100")),
    *(("liars_dice", {"num_dice": 3}, player, "nash") for player in ("numbers:bluff=0", "numbers:bluff=1", "random")),
    ("liars_dice", {"num_dice": 3}, "ppo", "numbers:bluff=0.25"),
    ("liars_dice", {"num_dice": 3}, "numbers:bluff=1", "numbers:bluff=0"),
    ("liars_dice", {}, "champion", "nash"),
    ("liars_dice", {}, "numbers", "nash"),
    ("liars_dice", {}, "random", "nash"),
    ("fatestones", {}, "random", "nash"),
    ("fatestones", {}, "mcts:100", "nash"),
    ("thirties", {}, "thirties:strategy=heuristic", None),
    ("thirties", {}, "random", None),
    ("shakes", {}, "thompson", None),
    ("shakes", {}, "random", None),
    ("score_dice", {}, "ppo", "highest"),
    ("score_dice", {}, "random", "highest"),
)
GAMES_EVALUATED = 10_000


def evaluate_all(path: Path) -> None:
    """Evaluate all pairs of EVALUATED, and write what the documentation shows of them."""
    rows = []
    for game, options, player, opponent in EVALUATED:
        found = evaluate(game, player, opponent, GAMES_EVALUATED, seed=SEED, **options)
        print(found.agent, found.against, found.value, found.variance_ratio, flush=True)
        rows.append({name: value for name, value in found.as_dict().items() if name not in ("losses", "worst")})
    path.write_text("[\n" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n]\n", encoding="utf-8")


def luck_table(path: Path) -> str:
    """Evaluations of many players, with and without luck."""
    headings = ("game", "player", "opponent", "plain", "without luck", "unit", "variance", "95 %", "coefficient")
    headings += ("games for ± 0.1 %",)
    rows = []
    for row in json.loads(path.read_text(encoding="utf-8")):
        share = row["unit"] == GAMES_WON
        results = [_with_error(row[name], row[error], share) for name, error in (("plain", "plain_error"), ("value", "error"))]
        game = f"{row['game']} {options_text(row['options'])}"
        ratio, interval = row["variance_ratio"], row["variance_interval"]
        times = ("all luck", "") if ratio is None else (_figure(ratio), f"{_figure(interval[0])} to {_figure(interval[1])}")
        unit = "% of games won" if share else row["unit"]
        # An interval shrinks with the root of the games, but it never gets below the loss that none of them may have shown.
        games = [max(row["games"] * (row[name] / 0.001) ** 2, math.log(40) / 0.001) for name in ("error", "plain_error")]
        needed = [f"{math.ceil(each):,}" for each in games] if share else []
        rows.append(
            (game, row["agent"], row["against"], *results, unit, *times, f"{row['coefficient']:.3f}", " and ".join(needed))
        )
    return table(headings, rows, headings[3:5] + headings[6:]) + "\n"


def language_table(path: Path) -> str:
    """Scripted players through words: `benchmark language`."""
    headings = ("task", "player", "regret a move", "unit", "wrong moves", "result without luck", "unit")
    rows = []
    for row in json.loads(path.read_text(encoding="utf-8"))["scores"]:
        won, share = row["result_unit"] == GAMES_WON, row["unit"].startswith("%")
        regret, result = _with_error(row["regret"], row["error"], share), _with_error(row["result"], row["result_error"], won)
        unit = "% of games won" if won else row["result_unit"]
        rows.append((row["task"], row["player"], regret, row["unit"], f"{100 * row['wrong']:.0f} %", result, unit))
    return table(headings, rows, (headings[2], headings[4], headings[5])) + "\n"


def _with_error(value: float, error: float, share: bool) -> str:
    factor = 100 if share else 1
    return f"{factor * value:.3f} ± {factor * error:.3f}"


if __name__ == "__main__":
    if sys.argv[1] == "luck":
        evaluate_all(Path(__file__).parent / "luck.json")
    else:
        keep(sys.argv[1], Path(sys.argv[2]), Path(__file__).parent / "results" / Path(sys.argv[2]).name)
