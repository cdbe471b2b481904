"""The start page, on which a table is made, the fields of its form, and the page of a table's links.

The fields are read from the type hints of a game's options.
"""

from __future__ import annotations

import contextlib
import dataclasses
import html
import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

from nicegui import background_tasks, events, ui

from dice_envs import load, names
from dice_envs.agent.specs import levels, usual
from dice_envs.core.game import Game, Variant
from dice_envs.core.options import Label, option_kinds, options_text, parse_options
from dice_envs.experiments.ui import seed_or_fresh
from dice_envs.experiments.web import NAMES, Table, Tables, make_agent
from dice_envs.experiments.web.parts import begin, bullets, button, heading, reporting, words
from dice_envs.table.rules import known_as, option_words, rules_in_short, variant_words
from dice_envs.table.sitting import PERSON, Sitting, parse_saved

OPTIMAL = "optimal player"
SHOWN_AT_FIRST = 3  # options; the others are folded away
ANOTHER = "another"  # in place of a level: the agent is typed


# --- the form ----------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Field:
    """One option. Without choices it is a number, or else a text, which is parsed as on the command line."""

    default: Any  # the default value, as the field shows it
    words: Label  # the option as players read it
    choices: Mapping[Any, str] = dataclasses.field(default_factory=dict)  # value → words, if there are few
    number: bool = False  # whether it is a number
    optional: bool = False  # whether a number may be left empty, which means None

    def meaning(self, value: Any) -> str:
        """Return what a value of the option means."""
        return self.words.meanings.get(str(value), self.words.help)


def fields_of(game: Game) -> dict[str, Field]:
    """Return a field for each option of the game, in its order, by their names."""
    kinds, words = option_kinds(game.options), option_words(game)
    return {name: _field(default, kinds[name], words[name]) for name, default in vars(game.options()).items()}


def _field(default: Any, kinds: Sequence[Any], words: Label) -> Field:
    optional = types.NoneType in kinds
    said = [kind for kind in kinds if kind is not types.NoneType]
    kind: Any = said[0] if len(said) == 1 else None
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if kind is bool:
        return Field(default, words, {True: "yes", False: "no"})
    if origin is Literal:
        none = {None: "none"} if optional else {}
        return Field(default, words, {value: str(value).replace("_", " ") for value in inner} | none)
    if kind is int or (origin is Annotated and inner[0] is int):
        return Field(default, words, {}, True, optional)
    return Field(options_text({"": default}).removeprefix("="), words)


def options_of(game: Game, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a filled-in form (name → content), without those left at their defaults, for the game to check.
    ValueError, naming the option, for a malformed text."""
    options: dict[str, Any] = {}
    for name, field in fields_of(game).items():
        value = whole(values.get(name, field.default))
        if field.number and value in ("", None):
            value = None if field.optional else ""
        if not field.number and not field.choices:
            value = "" if value is None else str(value).strip()
        if value != field.default:
            as_it_is = field.number or field.choices or value == ""  # the game says what may stand in an empty field
            options |= {name: value} if as_it_is else parse_options([f"{name}={value}"])
    return options


def whole(value: Any) -> Any:
    """Return a value of a form, where a whole number may be a float."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def follows(variant: Variant, values: Mapping[str, Any], fixed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a variant that are no choice: name → value.

    They are `fixed` ones, and those that another option sets, as `rules="perudo"` does: they differ from `values`, the content
    of the fields. Numbers that may be left empty are a choice in any case.
    """
    asked = {**vars(variant.game.options()), **options_of(variant.game, values)}
    free = {name for name, field in fields_of(variant.game).items() if field.optional}
    found = {name: value for name, value in vars(variant.options).items() if value != asked[name] and name not in free}
    return {**found, **fixed}


def in_labels(game: Game, problem: str) -> str:
    """Return an error in the words of the form: an option by its field's label, and '' as an empty field."""
    for name, option in option_words(game).items():
        problem = re.sub(rf"\b{name}\b", option.label, problem)
    return problem.replace("not ''", "not an empty field")


# --- the page ----------------------------------------------------------------------------------------------------------


class Tile(NamedTuple):
    """A game as people know it: a game with the options that its title stands for."""

    title: str
    game: Game
    options: Mapping[str, Any]
    at_first: Mapping[str, Any] = {}  # other options with which its page begins


def tiles() -> dict[str, Tile]:
    """Return what can be chosen on the start page, the usual one first: key in its address → tile."""
    games = [load(name) for name in names()]
    known = [
        Tile(title, game, options, game.usual_table.get(title, {}))
        for game in games
        for title, options in game.known_as.items()
    ]
    return {tile.title.lower(): tile for tile in known} | {game.name: Tile(game.title, game, {}) for game in games}


def _players(variant: Variant) -> dict[str, str]:
    """Return the agents that play a variant as fast as people wait for: spec → its level in words."""
    found = {}
    for level, spec in levels(variant).items():
        with contextlib.suppress(ValueError, OSError, ImportError):
            make_agent(variant, spec)
            found[spec] = level
    return found


class StartPage:
    """The form for a new table: game, options and players. `key` is that of the chosen tile.

    Links to this page must repeat the query string.
    """

    def __init__(self, tables: Tables, key: str, query: str = "") -> None:
        self.tables = tables
        self.client = ui.context.client
        self.tile = tiles()[key]
        self.game = self.tile.game
        self.values: dict[str, Any] = {name: field.default for name, field in fields_of(self.game).items()}
        self.values |= {**self.tile.options, **self.tile.at_first}
        self.inputs: dict[str, tuple[Field, Any]] = {}
        self.followed: dict[str, Any] = {}  # options that are no choice
        self.variant = self._configured().named(NAMES)
        self.players: dict[str, str] = {}  # agents to choose from: spec → words
        self.seats = [PERSON]  # PERSON or an agent's spec
        self.selects: dict[str, ui.select] = {}  # seat's name → choice of its player
        self.seed: float | None = None
        begin("dice-envs", "dice games to play", home="")
        with ui.element("div").classes("narrow column"):
            with ui.element("nav").classes("pick").props('aria-label="games"'):
                for each, tile in tiles().items():
                    link = ui.link(tile.title, f"/?game={each}{query}").classes("chosen" if each == key else "")
                    if each == key:
                        link.props("aria-current=page")
            with ui.element("section").classes("card"):
                heading("The rules")
                self.rules = ui.element("div").props("aria-live=polite")
                with ui.element("div").classes("line"):
                    button("Play now", self._start, "tool main", name="play-now", title="with the players and options below")
                    title = "a short game, in which the page says what to look at and what to press"
                    button("Show me how", self._learn, name="learn", title=title)
                    self.opponents = words("", "words", "span")
                    self.wait = ui.spinner(size="sm")
                    self.wait.visible = False
                self.error = words("", "bad").props("role=alert")
            with ui.element("section").classes("card"):
                heading("Who plays")
                self.box = ui.element("div").classes("column")
            with ui.element("section").classes("card"):
                heading("Options")
                self._options()
            self._build()
            with ui.element("section").classes("card"):
                heading("Go on with a saved game, or step through it")
                upload = ui.upload(auto_upload=True, max_files=1, on_upload=reporting(self._load))
                upload.props('accept=".json,application/json"')
                pick = words("Choose a file", "tool", "button").props("type=button data-name=load")
                pick.on("click", js_handler=f"() => runMethod({upload.id}, 'pickFiles', [])")

    def _offered(self, seat: int) -> str:
        """Return the opponent that is chosen at first: the strongest below optimal play, at further seats another below it."""
        found = [spec for spec in self.players if spec != "random"]
        below = [spec for spec in found if self.players[spec] != OPTIMAL] or found or ["random"]
        return below[-seat % len(below)]

    # --- options ----------------------------------------------------------------------------------------------------

    def _options(self) -> None:
        fields = list(fields_of(self.game).items())
        with ui.element("div").classes("form"):
            for name, field in fields[:SHOWN_AT_FIRST]:
                self._input(name, field)
        with ui.expansion("More options").classes("more"), ui.element("div").classes("form"):
            for name, field in fields[SHOWN_AT_FIRST:]:
                self._input(name, field)
            seed = ui.number("seed", placeholder="random").props("outlined dense clearable")
            seed.props["hint"] = "fixes all that is random; shown once the game is over"
            seed.on_value_change(lambda event: setattr(self, "seed", event.value)).classes("seed")

    def _input(self, name: str, field: Field) -> None:
        made: Any
        label, value = field.words.label, self.values[name]
        if field.choices:
            made = ui.select(dict(field.choices), label=label, value=value)
        elif field.number:
            made = ui.number(label, value=value)  # without limits, to which the browser would change what is typed
            made.props("clearable" if field.optional else "")
        else:
            made = ui.input(label, value=value)
        made.props("outlined dense").classes(f"option-{name}")
        made.on_value_change(reporting(lambda event: self._change(name, event.value)))
        self.inputs[name] = field, made

    def _change(self, name: str, value: Any) -> None:
        if name not in self.followed and self.values[name] != value:
            self.values[name] = value
            self._build()

    def _configured(self) -> Variant:
        return self.game.configure(**options_of(self.game, self.values))

    def _build(self) -> None:
        """Show what the options mean: the rules in force, values that follow from others, and who can play."""
        try:
            self.variant = self._configured().named(NAMES)
        except ValueError as problem:
            self.error.content = html.escape(in_labels(self.game, str(problem)))
            return
        self.error.content = ""
        self.rules.clear()
        with self.rules:
            bullets(rules_in_short(self.variant))
        self.followed = follows(self.variant, self.values, self.tile.options)
        for name, (field, made) in self.inputs.items():
            made.set_enabled(name not in self.followed)
            value = self.followed.get(name, self.values[name])
            made.set_value(value)
            meaning = "follows from the rules" if name in self.followed else field.meaning(value)
            if made.props.get("hint") != meaning:  # a field that is sent anew may lose what is typed
                made.props["hint"] = meaning
                made.update()
        # Whether optimal play is found quickly is not known at once, unless it was a moment ago.
        offered = levels(self.variant).items()
        self._offer({spec: level for level, spec in offered if level != OPTIMAL or spec in self.players})
        background_tasks.create(self._find_players())

    def _offer(self, found: Mapping[str, str]) -> None:
        """Offer these agents, in place of those that do not play any more."""
        gone, self.players = self.players.keys() - found.keys(), dict(found)
        count = self.variant.facts.num_seats
        kept = [self._offered(seat) if who in gone else who for seat, who in enumerate(self.seats)]
        seats = [*kept, *map(self._offered, range(len(kept), count))][:count]
        names = [self.variant.seat_name(seat) for seat in range(count)]
        if (seats, names) != (self.seats, list(self.selects)):
            self.seats = seats
            self._build_seats()
            return
        for select in self.selects.values():  # fields stay, with what is being typed
            select.set_options(self._choices())
        self._say_against_whom()

    async def _find_players(self) -> None:
        """Offer the agents that play the variant as fast as people wait for, and no others."""
        variant, before = self.variant, self.players
        found = await self.tables.run(lambda: _players(variant))
        if variant is self.variant and found != before and not self.client.is_deleted:
            with self.client:
                self._offer(found)

    # --- seats --------------------------------------------------------------------------------------------------------

    def _build_seats(self) -> None:
        self.box.clear()
        self.selects.clear()
        with self.box:
            for seat in range(len(self.seats)):
                self._seat(seat)
        self._say_against_whom()

    def _say_against_whom(self) -> None:
        others = [self.players.get(who, who) for who in dict.fromkeys(self.seats) if who != PERSON]
        against = ", ".join(f"{'an' if who[0] in 'aeiou' else 'a'} {who}" for who in others)
        against = " and ".join(against.rsplit(", ", 1))
        self.opponents.content = html.escape(f"against {against}" if others else "people only")

    def _seat(self, seat: int) -> None:
        """Add the choice of a seat's player, and a field for an agent that is no level."""
        who, name = self.seats[seat], self.variant.seat_name(seat)
        typed = who not in (PERSON, *self.players)
        with ui.element("div").classes("seat"):
            words(name, "")
            select = ui.select(self._choices(), value=ANOTHER if typed else who).classes(f"who-{seat}")
            select.props("outlined dense").props["aria-label"] = name
            if typed:
                agent = ui.input(value="" if who == ANOTHER else who, placeholder="as in the terminal, say mcts:500")
                agent.classes(f"how-{seat}").props("outlined dense").props["aria-label"] = f"the agent of {name}"
                agent.on_value_change(lambda event: self.seats.__setitem__(seat, (event.value or "").strip() or ANOTHER))
        select.on_value_change(reporting(lambda event: self._choose(seat, event.value)))
        self.selects[name] = select

    def _choices(self) -> dict[str, str]:
        return {PERSON: "a person", **self.players, ANOTHER: "another player …"}

    def _choose(self, seat: int, who: str) -> None:
        self.seats[seat] = who
        self._build_seats()

    # --- going --------------------------------------------------------------------------------------------------------

    async def _start(self) -> None:
        def make() -> Sitting:
            if ANOTHER in self.seats:
                raise ValueError("type which other player sits there, say mcts:500")
            variant = self._configured()
            seed = seed_or_fresh(whole(self.seed))
            return Sitting(variant, seed, self.seats[: variant.facts.num_seats], make_agent)

        await self._go(make)

    async def _learn(self) -> None:
        def make() -> Sitting:
            variant = self.game.configure(**{**self.game.first_game, **self.tile.at_first, **self.tile.options})
            others = [usual(variant)] * (variant.facts.num_seats - 1)
            return Sitting(variant, seed_or_fresh(None), [PERSON, *others], make_agent)

        await self._go(make, guided=True)

    async def _load(self, event: events.UploadEventArguments) -> None:
        content = await event.file.read()
        await self._go(lambda: Sitting.load(parse_saved(content), make_agent))

    async def _go(self, make: Callable[[], Sitting], guided: bool = False) -> None:
        if self.wait.visible:  # a second click
            return
        self.error.content = ""
        self.wait.visible = True
        try:
            table = await self.tables.run(lambda: self.tables.add(make()))
        except (ValueError, OSError, ImportError) as problem:
            self.error.content = html.escape(in_labels(self.game, str(problem)))
            return
        finally:
            self.wait.visible = False
        table.guided = guided
        if not self.client.is_deleted:
            ui.navigate.to(table.first_link)


def link_page(table: Table, base: str, alone: bool) -> None:
    """Show the links to a table with several people, which begin with `base`, such as `http://192.168.0.2:8080`.

    `alone` says whether only this machine reaches the server.
    """
    sitting = table.sitting
    begin(known_as(sitting.variant), variant_words(sitting.variant), "/" if alone else "")
    with ui.element("div").classes("narrow column"):
        with ui.element("section").classes("card column"):
            heading("One link for each person")
            words("Open one yourself and send the others on. Whoever has a link plays that seat and sees its dice.")
            if alone:
                words(
                    "These links work on this computer only. For others in your network, start the page with --host 0.0.0.0.",
                    "bad",
                )
            for path, view in table.links.items():
                if view.seat is not None:
                    _link(sitting.variant.seat_name(view.seat), base + path, path)
        with ui.element("section").classes("card column"):
            heading("Or everybody on this device")
            words("The dice are covered whenever it is somebody else's turn.")
            path = next(path for path, view in table.links.items() if view.kind == "together")
            ui.link("Play here", path).classes("link together")
        named = [f"{sitting.variant.seat_name(seat)}, {who}" for seat, who in enumerate(table.players) if who]
        if named:
            words(f"Agents: {', '.join(named)}")


def _link(name: str, url: str, path: str) -> None:
    def copy() -> None:
        ui.clipboard.write(url)
        ui.notify(f"The link of {name} is copied.")

    with ui.element("div").classes("line"):
        words(name, "", "strong")
        ui.link(url, path).classes("link seat-link")
        button("Copy", copy)
