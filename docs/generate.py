"""Write the pages that are made from the code and from stored results: a page a game, agents, presets, speed, and tables.

`make figures` writes them; they are under version control, and a test compares them with what is made. The files in `results`
and `bench` were written by commands that the tables name.
"""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import json
import math
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dice_envs import TASKS, Batch, Game, Variant, configure, evaluate, load, names
from dice_envs.agent.specs import for_game
from dice_envs.core.game import OVER, single_seat
from dice_envs.core.options import options_text
from dice_envs.evaluation import GAMES_WON
from dice_envs.experiments.commands.agents import rewards_text
from dice_envs.experiments.learners.command import grid_of
from dice_envs.experiments.learners.command import plot as plot_learners
from dice_envs.experiments.ui.grids import Grid
from dice_envs.experiments.ui.pages import saved_plot
from dice_envs.learn.presets import presets_of
from dice_envs.pictures.render import frame_size, rgb_array
from dice_envs.table.rules import attributes, is_table, sections
from dice_envs.table.sitting import Sitting

SEED = 1
DOCS = Path(__file__).parent


def pages() -> dict[Path, str]:
    """Return all pages that are made, or that have a part that is made, with their text."""
    made = {DOCS / "games" / f"{name}.md": game_page(load(name)) for name in names()}
    made |= {DOCS / "agents_in_full.md": agents_page(), DOCS / "presets.md": presets_page(), DOCS / "speed.md": speed_page()}
    parts = {
        "algorithms": algorithms_tables(DOCS / "results" / "learners"),
        "index": gallery(),
        "luck": luck_table(DOCS / "luck.json"),
        "language": language_table(DOCS / "language.json"),
    }
    return made | {DOCS / f"{name}.md": _with_part(DOCS / f"{name}.md", part) for name, part in parts.items()}


def _with_part(path: Path, part: str) -> str:
    """Return a page with what stands between its two marks replaced."""
    before, begin, after = path.read_text(encoding="utf-8").partition(_BEGIN)
    return f"{before}{begin}\n\n{part.strip()}\n\n{_END}{after.partition(_END)[2]}"


_BEGIN, _END = "<!-- made by docs/generate.py -->", "<!-- end -->"


def table(headings: Sequence[str], rows: Iterable[Sequence[Any]], right: Sequence[str] = ()) -> str:
    """A table in Markdown. Columns named in `right` are aligned to the right."""
    words = [number for number, heading in enumerate(headings) if heading not in right]
    return "\n".join(Grid("", headings, [[_cell(value) for value in row] for row in rows], words).markdown())


def _cell(value: Any) -> str:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


# --- games ------------------------------------------------------------------------------------------------------------


def game_page(game: Game) -> str:
    """The page of a game: picture, rules, how to make it, actions, observation, options, agents, training, what is known."""
    variant, alone = configure(game), single_seat(game)
    told = {heading: "\n\n".join(_markdown(paragraphs)) for heading, paragraphs in sections(game)}
    actions, published = told.pop("Actions"), DOCS / "results" / f"{game.name}.json"
    parts = [
        f"# {game.title}",
        f"![A game: {game.title}]({game.name}.gif)",
        told.pop(""),
        "## Play\n\n" + told.pop("Play"),
        "## Make it\n\n" + environments(game, variant, alone),
        f"## Actions and observations\n\n{actions}\n\n{_blocks(alone)}",
        "## Options\n\n" + options_table(game),
        "## Baselines\n\n" + _agents_of(game),
        *(["## Train\n\n" + training(game)] if game.name in TRAINED else []),
        *(
            ["## What is known exactly\n\n" + optimal_play(game)]
            if any(task.game == game.name for task in TASKS.values())
            else []
        ),
        *(f"## {heading}\n\n{text}" for heading, text in told.items()),
        *(["## Published figures beside ours\n\n" + figures(published)] if published.exists() else []),
    ]
    return "\n\n".join(parts) + "\n"


def gallery() -> str:
    """The cards of all games, for the first page: a picture, and what an agent sees and does. The best known comes first."""
    parts = []
    for name in sorted(names(), key=lambda name: name != "liars_dice"):
        game, page = load(name), f"games/{name}"
        card = environments_table(game, configure(game), single_seat(game))
        parts.append(f"### [{game.title}]({page}.md)\n\n![{game.title}]({page}.gif)\n\n{card}")
    return "\n\n".join(parts) + "\n"


def environments_table(game: Game, variant: Variant, alone: Variant) -> str:
    """Both ways to make a game, side by side: players, spaces, rewards and length of each."""
    headings, columns = ["", "Gymnasium", "PettingZoo AEC"], []
    makes = f'gymnasium.make("dice_envs/{game.env_name}-v0")', f"dice_envs.{game.name}_v0.env()"
    for make, each in zip(makes, (alone, variant), strict=True):
        facts, gym = each.facts, make.startswith("gym")
        others = facts.num_seats - 1
        mine = gym and others > 0
        moves = mean_moves(each) / (facts.num_seats if mine else 1)
        most = f"at most {facts.max_steps:,} moves" + " of all seats" * mine
        columns.append({
            "make": f"`{make}`",
            "players": "one" + f" against `opponents`, by default {others} × `random`" * mine if gym else f"{facts.num_seats}",
            "actions": f"`Discrete({facts.num_actions})`" + ", chosen simultaneously" * facts.simultaneous,
            "legal ones": '`info["action_mask"]`' if gym else '`observation["action_mask"]`',
            "observation": f"`Box(0, 1, ({facts.observation_size},), float32)`"
            + ', as `observation["observation"]`' * (not gym),
            "rewards": rewards_text(facts),
            "length": f"{most}; {moves:.3g} moves " + "of its own " * mine + "on average if all play at random",
        })  # fmt: skip
    return table(headings, [(row, *(column[row] for column in columns)) for row in columns[0]])


def mean_moves(variant: Variant, games: int = 2000) -> float:
    """Return how many moves a game takes on average, of all seats together, if all play at random."""
    batch, rng, moves = Batch(variant, games, seed=SEED), np.random.default_rng(SEED), 0
    while len(alive := np.flatnonzero(batch.seats != OVER)):
        masks = batch.legal()[alive]
        batch.play((masks * rng.uniform(1, 2, masks.shape)).argmax(axis=1), alive)
        moves += len(alive)
    return moves / games


def environments(game: Game, variant: Variant, alone: Variant) -> str:
    """Both ways to make a game, a program that plays by each, and the others."""
    others = [f'`gymnasium.make_vec("dice_envs/{game.env_name}-v0", num_envs=64)`']
    others += [f"`dice_envs.{game.name}_v0.parallel_env()`"] if variant.facts.simultaneous else []
    others += [f'`dice_envs.envs.sb3.make_vec_env("{game.name}", 64)`']
    made = environments_table(game, variant, alone)
    return f"{made}\n\n{_PROGRAM.format(game=game)}\n\nAlso {', '.join(others)}: see [interfaces](../interfaces.md)."


_PROGRAM = """```python
import gymnasium
from dice_envs import {game.name}_v0

env = gymnasium.make("dice_envs/{game.env_name}-v0")  # one learner
observation, info = env.reset(seed=1)
done = False
while not done:
    action = env.action_space.sample(info["action_mask"])
    observation, reward, terminated, truncated, info = env.step(action)
    done = terminated or truncated
print(reward)

env = {game.name}_v0.env()  # all seats
env.reset(seed=1)
for agent in env.agent_iter():
    observation, reward, terminated, truncated, info = env.last()
    action = env.action_space(agent).sample(observation["action_mask"])
    env.step(None if terminated or truncated else action)
```"""


def _markdown(paragraphs: Sequence[str]) -> Iterable[str]:
    """Paragraphs of rules as Markdown: text, lists and tables."""
    for kind, group in itertools.groupby(paragraphs, key=_kind):
        lines = list(group)
        text = ("\n\n" if kind == "text" else "\n").join(lines)
        cells = [re.split(r"\s{2,}", line.strip()) for line in lines] if kind == "table" else []
        yield table([""] * len(cells[0]), cells) if cells else text


def _kind(paragraph: str) -> str:
    return "table" if is_table(paragraph) else "list" if paragraph.startswith("- ") else "text"


def options_table(game: Game) -> str:
    """A table of options with defaults and meanings."""
    defaults = {field.name: field.default for field in dataclasses.fields(game.options)}
    listed = attributes(game.options)
    return table(
        ("option", "default", "meaning"), [(f"`{name}`", f"`{defaults.get(name)!r}`", text) for name, text in listed.items()]
    )


def _blocks(variant: Variant) -> str:
    rows, begin = [], 0
    for block in variant.blocks:
        if block.size:
            rows.append((f"{begin} … {begin + block.size - 1}" if block.size > 1 else begin, f"`{block.name}`", block.meaning))
        begin += block.size
    listed = table(("entries", "block", "meaning"), rows)
    return f"Layout for {variant}; `dice_envs.describe` puts an observation into words.\n\n{listed}"


def _agents_of(game: Game) -> str:
    any_game = for_game(None)
    own = {name: factory for name, factory in for_game(game.name).items() if name not in any_game}
    rows = [(f"`{name}`", _summary(factory)) for name, factory in own.items()]
    others = ", ".join(f"`{name}`" for name in any_game)
    listed = table(("agent", "plays"), rows)
    return f"{listed}\n\nAgents for any game: {others}. [All agents](../agents_in_full.md) with their parameters."


def _summary(factory: Any) -> str:
    return (inspect.getdoc(factory) or "").partition("\n\n")[0]


# --- training: twenty lines, and what they reach ------------------------------------------------------------------------

PROGRAM = """import dice_envs
import gymnasium
import numpy as np

options = {options}
game = dice_envs.configure("{name}", **options)
print("random play:", dice_envs.measure(game, "random", seed=1).measures[{number}])

trained = dice_envs.train(game, preset="{preset}", steps={steps:_}, seed=1)
print("trained:", dice_envs.measure(game, trained.policy, seed=1).measures[{number}])
trained.save("{name}.npz")  # the player ppo:{name}.npz

envs = gymnasium.make_vec("dice_envs/{env}-v0", 1000, {opponents}**options)
observations, infos = envs.reset(seed=1)
returns, going = np.zeros(1000), np.ones(1000, bool)
while going.any():
    logits = trained.policy.logits(observations)
    actions = np.where(infos["action_mask"] == 1, logits, -np.inf).argmax(axis=1)
    observations, rewards, terminated, truncated, infos = envs.step(actions)
    returns += going * rewards
    going &= ~(terminated | truncated)
print(f"{{returns.mean():.3f}} a game, likeliest actions")"""


@dataclasses.dataclass(frozen=True)
class Trained:
    """What PROGRAM trains in a game, and the figure that it reaches."""

    steps: int
    reached: tuple[float, ...]  # with seeds 1, 2, …
    error: float  # half-width of the 95 % interval of each; 0: exact
    what: str  # the figure in words
    random: float  # of random play
    best: float  # of optimal play
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # of the game
    preset: str = "quick"
    number: int = 0  # of the figure in `measure`
    opponents: str = ""  # in the games played afterwards


TRAINED = {
    "fatestones": Trained(4_000_000, (0.7935, 0.8286, 0.8184), 0.015, "share of a best response's edge", 0, 1, number=1),
    "liars_dice": Trained(
        1_000_000, (0.07929, 0.08506, 0.08159), 0, "exploitability", 0.7807, 0,
        {"rules": "openspiel", "num_dice": 1}, "equilibrium",
    ),
    "score_dice": Trained(
        4_000_000, (0.4341, 0.5281, 0.5268), 0.002, "mean return against sorted play", 0, 0.5475,
        opponents='opponents="highest", ',
    ),
    "shakes": Trained(
        1_000_000, (6.326, 6.326, 6.326), 0, "number of patients saved", 4, 6.362, {"mode": "physician"}
    ),
    "thirties": Trained(1_000_000, (30.12, 30.12, 30.14), 0, "mean score", 24.45, 30.15, {"num_players": 1}),
}  # fmt: skip


def program(game: Game) -> str:
    """A program that trains in the game, measures the policy, and plays with it."""
    each = TRAINED[game.name]
    options = json.dumps(each.options)
    return PROGRAM.format(name=game.name, env=game.env_name, **{**dataclasses.asdict(each), "options": options})


def training(game: Game) -> str:
    """The program, and what it reaches."""
    each = TRAINED[game.name]
    first, *others = (f"{value:.4g}" + f" ± {each.error:.2g}" * (each.error > 0) for value in each.reached)
    kind = "95 % intervals" if each.error else "exact"
    return (
        f"It prints the {each.what}, first of random play. With seed 1 the trained policy has **{first}**, with seeds 2 and 3 "
        f"{' and '.join(others)} ({kind}); random play has {each.random:g}, optimal play {each.best:g}. "
        f"[PPO results](../ppo.md) says what longer training reaches.\n\n```python\n{program(game)}\n```"
    )


# --- moving pictures ----------------------------------------------------------------------------------------------------

# game → options, the agent at every seat, seed
PLAYED: dict[str, tuple[dict[str, Any], str, int]] = {
    "fatestones": ({"hand_size": 5}, "strongest", 1),
    "liars_dice": ({"num_dice": 3}, "reader", 1),
    "score_dice": ({}, "highest", 1),
    "shakes": ({}, "dogmatic", 1),
    "thirties": ({"num_players": 2}, "heuristic", 1),
}
FRAMES = 16  # at most
WIDTH = 480  # in pixels
COLOURS = 48


def write_pictures() -> None:
    """Write a moving picture of each game, everything shown."""
    from PIL import Image

    for name, (options, agent, seed) in PLAYED.items():
        variant = configure(name, **options)
        sitting, size, frames = Sitting(variant, seed, [agent] * variant.facts.num_seats), frame_size(variant), []
        while True:
            image = Image.fromarray(rgb_array(sitting.picture(), size))
            small = image.resize((WIDTH, WIDTH * image.height // image.width), Image.Resampling.LANCZOS)
            frames.append(small.quantize(COLOURS))
            if sitting.over or len(frames) == FRAMES:
                break
            sitting.step()
        times = [1500] * (len(frames) - 1) + [4000]
        path = DOCS / "games" / f"{name}.gif"
        frames[0].save(path, save_all=True, append_images=frames[1:], duration=times, loop=0, optimize=True)
        print(f"{path}: {len(frames)} frames, {path.stat().st_size:,} bytes")


# --- what is known ------------------------------------------------------------------------------------------------------


def optimal_play(game: Game) -> str:
    """The values of random and optimal play in the game's tasks and the best agents: rows of the board's first table."""
    board = (DOCS / "board.md").read_text(encoding="utf-8").splitlines()
    lines = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in board if line.startswith("|")]
    headings, rows = lines[0], {line[0]: line for line in lines[2:]}
    tasks = [task for task in TASKS.values() if task.game == game.name]
    asked = "\n".join(f"- `{task.name}`: {task.asks}" for task in tasks)
    cells = [(*rows[task.name][:4], ", ".join(filter(None, rows[task.name][4:]))) for task in tasks]
    listed = table((*headings[:4], "best agents"), cells, ("random play", "optimal play"))
    return f"{asked}\n\n{listed}\n\n{_ABOUT_TASKS}"


_ABOUT_TASKS = (
    "Agents are shown with their scores, 0 for random play and 1 for optimal play. [The board](../board.md) has all agents "
    "and says how it was made. [`dice_envs.measure`](../measures.md) computes the same for any options and any agent; "
    "`dice-envs solve` computes optimal play itself."
)


def figures(path: Path) -> str:
    """Published figures beside ours, in a table for each source."""
    stored = json.loads(path.read_text(encoding="utf-8"))
    made = f"Written by `make figures NAME=results`, which runs `dice-envs {stored['command']}`."
    parts = [f"{made} ± is half of a 95 % interval."]
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
        own = for_game(game)
        chosen = own if game is None else {name: own[name] for name in own if name not in for_game(None)}
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
    return any(name in for_game(other) for other in names() if other != game)


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


def speed_page() -> str:
    """The results of `bench` for each version, newest first."""
    about = (
        "Results of `dice-envs bench` in a clone. Peers play the same game in the same run, but for the article's figures, "
        "which are as published. A ratio of 2 is twice as fast. Other processes may have run beside: ratios say more than "
        "rates."
    )
    headings = ("subject", "ours", "unit", "peer", "the peer's", "ratio", "note")
    parts = [f"# Speed\n\n{about}"]
    for path in sorted((DOCS / "bench").glob("*.json"), key=_version, reverse=True):
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


def learners_of(folder: Path) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Return the runs of `benchmark learners` in a folder: game and options → algorithm → runs, the smallest game first."""
    found: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for path in sorted(folder.glob("*.json"), key=lambda path: (_version(path), path.name)):
        made = json.loads(path.read_text(encoding="utf-8"))
        game, options = load(made["game"]), made["options"]
        for name in list(options):  # leave out what follows from others
            fewer = {each: value for each, value in options.items() if each != name}
            options = fewer if configure(game, **fewer).options == configure(game, **options).options else options
        title = f"{game.title}, `{options_text(options)}`"
        for run in made["runs"]:
            found.setdefault(title, {}).setdefault(run["algorithm"], []).append(run)
    return found


def algorithms_tables(folder: Path) -> str:
    """What known algorithms reach, a table for each game."""
    parts, minutes = [], 0.0
    for title, runs in learners_of(folder).items():
        grid = grid_of(title, runs)
        rows = [(f"`{row[0]}`", *row[1:], str(len(runs[row[0]])), _processors(runs[row[0]])) for row in grid.rows]
        minutes += sum(run["points"][-1]["minutes"] for each in runs.values() for run in each)
        headings = (*grid.headings, "seeds", "processor")
        parts.append(f"### {title}\n\n{table(headings, rows, headings[1:-1])}")
    parts.append(f"All runs together took {minutes / 60:.1f} hours of one core.")
    return "\n\n".join(parts) + "\n"


def _processors(runs: Sequence[dict[str, Any]]) -> str:
    """The makes of the processors of some runs: Intel Xeon of "Intel(R) Xeon(R) Processor"."""
    return ", ".join(sorted({re.sub(r"\(\w+\)|,? (CPU|Processor|\d).*", "", run["processor"]) for run in runs}))


def plot_algorithms(folder: Path) -> None:
    """Plot the curves of the first game."""
    runs = next(iter(learners_of(folder).values()))
    with saved_plot(DOCS / "_static", "algorithms", figsize=(10, 6)) as (_, axes):
        plot_learners(axes, runs)


def _with_error(value: float, error: float, share: bool) -> str:
    factor = 100 if share else 1
    return f"{factor * value:.3f} ± {factor * error:.3f}"


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["pages"]:
            (DOCS / "games").mkdir(exist_ok=True)
            for page, text in pages().items():
                page.write_text(text, encoding="utf-8")
        case ["pictures"]:
            write_pictures()
        case ["algorithms"]:
            plot_algorithms(DOCS / "results" / "learners")
        case ["luck"]:
            evaluate_all(DOCS / "luck.json")
        case [command, file]:
            keep(command, Path(file), DOCS / "results" / Path(file).name)
