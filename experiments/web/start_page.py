"""The start page, on which a table is made, and the page of a table's links."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from nicegui import events, ui

from dice_envs import agents, load, names
from dice_envs.core.game import Game, Variant
from dice_envs.experiments.ui.options import seed_or_fresh
from dice_envs.experiments.web.forms import Field, fields_of, follows, in_labels, options_of, whole
from dice_envs.experiments.web.parts import begin, bullets, button, heading, in_names, reporting, words
from dice_envs.experiments.web.table import Table, Tables, make_agent
from dice_envs.table.rules import known_as, rules_in_short, variant_words
from dice_envs.table.sitting import PERSON, Sitting, parse_saved

__all__ = ["StartPage", "link_page", "tiles"]

OPTIMAL = "optimal player"
SHOWN_AT_FIRST = 3  # options; the others are folded away
ANOTHER = "another"  # in place of a level: the agent is typed


class Tile(NamedTuple):
    """A game as people know it: a game with the options that its title stands for."""

    title: str
    game: Game
    options: Mapping[str, Any]


def tiles() -> dict[str, Tile]:
    """Return what can be chosen on the start page, the usual one first: key in its address → tile."""
    games = [load(name) for name in names()]
    known = {title.lower(): Tile(title, game, options) for game in games for title, options in game.known_as.items()}
    return {**known, **{game.name: Tile(game.title, game, {}) for game in games}}


def _players(variant: Variant) -> dict[str, str]:
    """Return the agents that play a variant as fast as people wait for: spec → its level in words."""
    return {spec: words for words, spec in agents.levels(variant).items() if _plays(variant, spec)}


def _plays(variant: Variant, spec: str) -> bool:
    try:
        make_agent(variant, spec)
    except (ValueError, OSError, ImportError):
        return False
    return True


class StartPage:
    """The form for a new table: game, options and players.

    Args:
        tables: the server's tables.
        key: of the chosen tile.
        query: query string that links to this page must repeat.
    """

    def __init__(self, tables: Tables, key: str, query: str = "") -> None:
        self.tables = tables
        self.client = ui.context.client
        self.tile = tiles()[key]
        self.game = self.tile.game
        self.values: dict[str, Any] = {field.name: field.default for field in fields_of(self.game)}
        self.values |= self.tile.options
        self.inputs: dict[str, tuple[Field, Any]] = {}
        self.followed: dict[str, Any] = {}  # options that are no choice
        self.variant = self._configured()
        self.players = _players(self.variant)
        self.seats = [PERSON, *[self._usual] * (self.variant.facts.num_seats - 1)]  # PERSON or an agent's spec
        self.seed: float | None = None
        begin("dice-envs", "dice games to play", home="")
        with ui.element("div").classes("narrow"):
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

    @property
    def _usual(self) -> str:
        """The opponent for a first game: the best that people know how to beat, just below optimal play, or any."""
        found = [spec for spec in self.players if spec != "random"]
        below = [spec for spec in found if self.players[spec] != OPTIMAL]
        return (below or found or ["random"])[-1]

    # --- options ----------------------------------------------------------------------------------------------------

    def _options(self) -> None:
        fields = fields_of(self.game)
        with ui.element("div").classes("form"):
            for field in fields[:SHOWN_AT_FIRST]:
                self._input(field)
        with ui.expansion("More options").classes("more"), ui.element("div").classes("form"):
            for field in fields[SHOWN_AT_FIRST:]:
                self._input(field)
            seed = ui.number("seed", placeholder="random", min=0, precision=0).props("outlined dense clearable")
            seed.props["hint"] = "fixes all that is random; shown once the game is over"
            seed.on_value_change(lambda event: setattr(self, "seed", event.value)).classes("seed")

    def _input(self, field: Field) -> None:
        made: Any
        label, value = field.words.label, self.values[field.name]
        if field.kind == "choice":
            made = ui.select(dict(field.choices), label=label, value=value)
        elif field.kind == "switch":
            made = ui.select({True: "yes", False: "no"}, label=label, value=value)
        elif field.kind == "number":
            made = ui.number(label, value=value, min=field.low, max=field.high, precision=0)
            made.props("clearable" if field.optional else "")
        else:
            made = ui.input(label, value=value)
        made.props("outlined dense").classes(f"option-{field.name}")
        made.on_value_change(reporting(lambda event: self._change(field.name, event.value)))
        self.inputs[field.name] = field, made

    def _change(self, name: str, value: Any) -> None:
        if name not in self.followed and self.values[name] != value:
            self.values[name] = value
            self._build()

    def _configured(self) -> Variant:
        return self.game.configure(**options_of(self.game, self.values))

    def _build(self) -> None:
        """Show what the options mean: the rules in force, values that follow from others, and who can play."""
        try:
            self.variant = self._configured()
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
            made.props["hint"] = "follows from the rules" if name in self.followed else field.meaning(value)
            made.update()
        usual, self.players = self._usual, _players(self.variant)
        count = self.variant.facts.num_seats
        kept = [who if who in (PERSON, *self.players) or _plays(self.variant, who) else self._usual for who in self.seats]
        self.seats = [*kept, *[usual if usual in self.players else self._usual] * count][:count]
        if PERSON not in self.seats and PERSON in kept:
            self.seats[0] = PERSON
        self._build_seats()

    # --- seats --------------------------------------------------------------------------------------------------------

    def _build_seats(self) -> None:
        self.box.clear()
        count, people = len(self.seats), self.seats.count(PERSON)
        choices = {0: "none: watch agents", **{n: f"{n} {'person' if n == 1 else 'people'}" for n in range(1, count + 1)}}
        with self.box:
            select = ui.select(choices, label="people", value=people).props("outlined dense").classes("people")
            select.on_value_change(reporting(lambda event: self._set_people(event.value)))
            for seat in range(count):
                self._seat(seat)
        others = [self.players.get(who, who) for who in dict.fromkeys(self.seats) if who != PERSON]
        self.opponents.content = html.escape(
            f"against {' and '.join(f'a {who}' for who in others)}" if others else "people only"
        )

    def _seat(self, seat: int) -> None:
        """Add the choice of a seat's player, and a field for an agent that is no level."""
        who, name = self.seats[seat], in_names(self.variant.seat_name(seat))
        typed = who not in (PERSON, *self.players)
        choices = {PERSON: "a person", **self.players, ANOTHER: "another player …"}
        with ui.element("div").classes("seat"):
            words(name, "")
            select = ui.select(choices, value=ANOTHER if typed else who).classes(f"who-{seat}")
            select.props("outlined dense").props["aria-label"] = name
            if typed:
                agent = ui.input(value="" if who == ANOTHER else who, placeholder="as in the terminal, say mcts:500")
                agent.classes(f"how-{seat}").props("outlined dense").props["aria-label"] = f"the agent of {name}"
                agent.on_value_change(lambda event: self.seats.__setitem__(seat, (event.value or "").strip() or ANOTHER))
        select.on_value_change(reporting(lambda event: self._choose(seat, event.value)))

    def _choose(self, seat: int, who: str) -> None:
        self.seats[seat] = who
        self._build_seats()

    def _set_people(self, count: int) -> None:
        agent = next((who for who in self.seats if who != PERSON), self._usual)
        self.seats = [PERSON if seat < count else agent if who == PERSON else who for seat, who in enumerate(self.seats)]
        self._build_seats()

    # --- going --------------------------------------------------------------------------------------------------------

    async def _start(self) -> None:
        def make() -> Sitting:
            if ANOTHER in self.seats:
                raise ValueError("type which other player sits there, say mcts:500")
            variant = self._configured()
            seed = seed_or_fresh(None if self.seed is None else whole("seed", self.seed))
            return Sitting(variant, seed, self.seats[: variant.facts.num_seats], make_agent)

        await self._go(make)

    async def _learn(self) -> None:
        def make() -> Sitting:
            variant = self.game.configure(**{**self.game.first_game, **self.tile.options})
            others = [agents.usual(variant)] * (variant.facts.num_seats - 1)
            return Sitting(variant, seed_or_fresh(None), [PERSON, *others], make_agent)

        await self._go(make, guided=True)

    async def _load(self, event: events.UploadEventArguments) -> None:
        content = await event.file.read()
        await self._go(lambda: Sitting.load(parse_saved(content), make_agent), saved=True)

    async def _go(self, make: Callable[[], Sitting], saved: bool = False, guided: bool = False) -> None:
        if self.wait.visible:  # a second click
            return
        self.error.content = ""
        self.wait.visible = True
        try:
            table = await self.tables.make(make, saved)
        except (ValueError, OSError, ImportError) as problem:
            self.error.content = html.escape(in_labels(self.game, str(problem)))
            return
        finally:
            self.wait.visible = False
        table.guided = guided
        if not self.client.is_deleted:
            ui.navigate.to(table.first_link)


def link_page(table: Table, base: str, alone: bool) -> None:
    """Show the links to a table with several people.

    Args:
        table: the table.
        base: beginning of the links, such as `http://192.168.0.2:8080`.
        alone: whether only this machine reaches the server.
    """
    sitting = table.sitting
    begin(known_as(sitting.variant), variant_words(sitting.variant), "/" if alone else "")
    with ui.element("div").classes("narrow"):
        with ui.element("section").classes("card column"):
            heading("One link for each person")
            words("Open one yourself and send the others on. Whoever has a link plays that seat and sees its dice.")
            if alone:
                words(
                    "These links work on this computer only. For others in your network, start the page with --host 0.0.0.0.",
                    "bad",
                )
            for path, place in table.links.items():
                if place.kind == "seat":
                    name = "player" if place.seat is None else sitting.variant.seat_name(place.seat)
                    _link(name, base + path, path)
        with ui.element("section").classes("card column"):
            heading("Or everybody on this device")
            words("The dice are covered whenever it is somebody else's turn.")
            path = next(path for path, place in table.links.items() if place.kind == "together")
            ui.link("Play here", path).classes("link together")
        named = [(sitting.variant.seat_name(seat), who) for seat, who in enumerate(sitting.seats) if seat not in sitting.people]
        if named:
            words("Agents: " + ", ".join(f"{name}, {agents.in_words(sitting.variant, who)}" for name, who in named))


def _link(name: str, url: str, path: str) -> None:
    name = in_names(name)

    def copy() -> None:
        ui.clipboard.write(url)
        ui.notify(f"The link of {name} is copied.")

    with ui.element("div").classes("line"):
        words(name, "", "strong")
        ui.link(url, path).classes("link seat-link")
        button("Copy", copy)
