"""The start page, on which a table is made, and the page of a table's links."""

from __future__ import annotations

import html
import inspect
from collections.abc import Callable
from typing import Any

from nicegui import events, ui

from dice_envs import agents, load, names
from dice_envs.agent import check_plays
from dice_envs.core.game import Game, Variant
from dice_envs.core.options import options_text
from dice_envs.experiments.ui.options import seed_or_fresh
from dice_envs.experiments.web.forms import Field, fields_of, options_of, whole
from dice_envs.experiments.web.parts import begin, bullets, button, heading, reporting, words
from dice_envs.experiments.web.table import Table, Tables, make_agent
from dice_envs.table.rules import rules_in_short
from dice_envs.table.sitting import PERSON, Sitting, parse_saved

__all__ = ["StartPage", "link_page"]

SHOWN_AT_FIRST = 3  # options; the others are folded away


class StartPage:
    """The form for a new table: game, options and players.

    Args:
        tables: the server's tables.
        game: name of the chosen game.
        query: query string that links to this page must repeat.
    """

    def __init__(self, tables: Tables, game: str, query: str = "") -> None:
        self.tables = tables
        self.client = ui.context.client
        self.game: Game = load(game)
        self.values: dict[str, Any] = {field.name: field.default for field in fields_of(self.game)}
        self.seats: list[str] = []  # PERSON or an agent's spec
        self.seated: Variant = self.game.configure()  # the variant whose seats are shown
        self.seed: float | None = None
        begin("dice-envs", "dice games to play", home="")
        with ui.element("div").classes("narrow"):
            self._pick(query)
            with ui.element("section").classes("card"):
                heading("The rules")
                self.rules = ui.element("div").props("aria-live=polite")
                with ui.element("div").classes("line"):
                    button("Play now", self._start, "tool main", name="play-now", title="with the options and players below")
                    title = "a short one, in which the page says what to look at and what to press"
                    button("Show me how", self._learn, name="learn", title=title)
                    self.level_box = ui.element("div")
                    self.opponents = words("", "words", "span")
            with ui.element("section").classes("card"):
                heading("Options")
                self._options()
            with ui.element("section").classes("card"):
                heading("Who plays")
                self.box = ui.element("div").classes("column")
                self._refresh_seats()
            with ui.element("section").classes("card"):
                with ui.element("div").classes("line"):
                    seed = ui.number("seed", placeholder="random", min=0, precision=0).props("outlined dense clearable")
                    seed.on_value_change(lambda event: setattr(self, "seed", event.value)).classes("seed")
                    button("Start", self._start, "tool main", name="start")
                    self.wait = ui.spinner(size="sm")
                    self.wait.visible = False
                words("The seed fixes all that is random. It is shown once the game is over.")
                self.error = words("", "bad").props("role=alert")
            with ui.element("section").classes("card"):
                heading("Go on with a saved game, or step through it")
                upload = ui.upload(auto_upload=True, max_files=1, on_upload=reporting(self._load))
                upload.props('accept=".json,application/json"')
                pick = words("Choose a file", "tool", "button").props("type=button data-name=load")
                pick.on("click", js_handler=f"() => runMethod({upload.id}, 'pickFiles', [])")

    def _pick(self, query: str) -> None:
        with ui.element("nav").classes("pick").props('aria-label="games"'):
            for name in names():
                chosen = name == self.game.name
                link = ui.link(load(name).title, f"/?game={name}{query}").classes("chosen" if chosen else "")
                if chosen:
                    link.props("aria-current=page")

    # --- options ----------------------------------------------------------------------------------------------------

    def _options(self) -> None:
        fields = fields_of(self.game)
        with ui.element("div").classes("form"):
            for field in fields[:SHOWN_AT_FIRST]:
                self._input(field)
        if fields[SHOWN_AT_FIRST:]:
            with ui.expansion("More options").classes("more"), ui.element("div").classes("form"):
                for field in fields[SHOWN_AT_FIRST:]:
                    self._input(field)

    def _input(self, field: Field) -> None:
        made: Any
        if field.kind == "choice":
            made = ui.select(dict(field.choices), label=_label(field.name), value=field.default)
        elif field.kind == "switch":
            made = ui.select({True: "yes", False: "no"}, label=_label(field.name), value=field.default)
        elif field.kind == "number":
            made = ui.number(_label(field.name), value=field.default, min=field.low, max=field.high, precision=0)
            made.props("clearable" if field.optional else "")
        else:
            made = ui.input(_label(field.name), value=field.default)
        made.props("outlined dense").classes(f"option-{field.name}")
        made.props["hint"] = field.help
        made.on_value_change(reporting(lambda event: self._change(field.name, event.value)))

    def _change(self, name: str, value: Any) -> None:
        self.values[name] = value
        self._refresh_seats()

    def _variant(self) -> Variant:
        return self.game.configure(**options_of(self.game, self.values))

    # --- seats --------------------------------------------------------------------------------------------------------

    def _refresh_seats(self) -> None:
        try:
            variant = self._variant()
        except ValueError:  # shown when Start is pressed
            return
        self.rules.clear()
        with self.rules:
            bullets(rules_in_short(variant))
        count = variant.facts.num_seats
        renamed = any(variant.seat_name(seat) != self.seated.seat_name(seat) for seat in range(count))
        self.seated = variant
        if len(self.seats) != count:
            self.seats = [*self.seats, *[_usual_agent(variant)] * count][:count]
            if PERSON not in self.seats:
                self.seats[0] = PERSON
            self._build_seats()
            self._build_levels()
        elif renamed or not self.box.default_slot.children:
            self._build_seats()

    @property
    def _others(self) -> list[str]:
        """The agents that are chosen, each once."""
        return [who for who in dict.fromkeys(self.seats) if who != PERSON]

    def _build_seats(self) -> None:
        self.box.clear()
        count, people = len(self.seats), self.seats.count(PERSON)
        choices = {0: "none: watch agents", **{n: f"{n} {'person' if n == 1 else 'people'}" for n in range(1, count + 1)}}
        with self.box:
            select = ui.select(choices, label="people", value=people).props("outlined dense").classes("people")
            select.on_value_change(reporting(lambda event: self._set_people(event.value)))
            for seat in range(count):
                self._seat(seat)

    def _seat(self, seat: int) -> None:
        """Add the choice of a seat's player, and a field for an agent's parameters."""
        known = {name: name for name, made in agents.for_game(self.game.name).items() if not agents.required(made)}
        who, _, typed = self.seats[seat].partition(":")
        with ui.element("div").classes("seat"):
            name = self.seated.seat_name(seat)
            words(name, "")
            select = ui.select({PERSON: "a person", **known}, value=who).classes(f"who-{seat}")
            select.props("outlined dense").props["aria-label"] = name
            parameters = ui.input(value=typed).classes(f"how-{seat}").props("outlined dense")
            parameters.props["aria-label"] = f"parameters of {name}"
            about = words("", "words about-agent")

        def show() -> None:
            example = _example(select.value)
            parameters.visible, about.visible = bool(example), select.value != PERSON
            parameters.props["placeholder"] = f"parameters, say {example}"
            about.content = html.escape(_described(select.value))
            self._name_opponents()

        def choose() -> None:
            self.seats[seat] = select.value
            parameters.value = ""  # they were another agent's
            show()

        def enter() -> None:
            given = parameters.value or ""
            self.seats[seat] = f"{select.value}:{given}" if given.strip() else select.value
            self._name_opponents()

        show()
        select.on_value_change(choose)
        parameters.on_value_change(enter)

    def _build_levels(self) -> None:
        """Offer levels of opponents in words; a choice seats them everywhere but at people's seats."""
        self.level_box.clear()
        offered = {spec: f"opponent: {level}" for level, spec in agents.levels(self.seated).items()}
        if offered:
            with self.level_box:
                select = ui.select(offered, value=next((who for who in self._others[:1] if who in offered), None))
                select.props('outlined dense aria-label="level of the opponents"').classes("level")
                select.on_value_change(reporting(lambda event: self._seat_agents(event.value)))

    def _seat_agents(self, spec: str) -> None:
        self.seats = [who if who == PERSON else spec for who in self.seats]
        self._build_seats()

    def _name_opponents(self) -> None:
        self.opponents.content = html.escape(f"against {' and '.join(self._others)}" if self._others else "people only")

    def _set_people(self, count: int) -> None:
        agent = next(iter(self._others), "") or _usual_agent(self._variant())
        self.seats = [PERSON if seat < count else agent if who == PERSON else who for seat, who in enumerate(self.seats)]
        self._build_seats()

    # --- going --------------------------------------------------------------------------------------------------------

    async def _start(self) -> None:
        def make() -> Sitting:
            variant = self._variant()
            seed = seed_or_fresh(None if self.seed is None else whole("seed", self.seed))
            return Sitting(variant, seed, self.seats[: variant.facts.num_seats], make_agent)

        await self._go(make)

    async def _learn(self) -> None:
        def make() -> Sitting:
            variant = self.game.configure(**self.game.first_game)
            others = [_usual_agent(variant)] * (variant.facts.num_seats - 1)
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
            self.error.content = html.escape(str(problem))
            raise ValueError(str(problem)) from None
        finally:
            self.wait.visible = False
        table.guided = guided
        if not self.client.is_deleted:
            ui.navigate.to(table.first_link)


def _described(agent: str) -> str:
    """Return an agent in a sentence: the first line of its docstring."""
    return "" if agent == PERSON else (inspect.getdoc(agents.factories()[agent]) or "").partition("\n")[0].replace("`", "")


def _example(agent: str) -> str:
    """Return one parameter of an agent with its default, as typed; empty if it has none."""
    parameters = {} if agent == PERSON else agents.parameters_of(agents.factories()[agent])
    known = {name: each.default for name, each in parameters.items() if each.default is not each.empty}
    return options_text(dict(list(known.items())[:1]))


def _label(option: str) -> str:
    """Return an option's name in words: `num_players` becomes `players`."""
    return option.removeprefix("num_").replace("_", " ")


def link_page(table: Table, base: str, alone: bool) -> None:
    """Show the links to a table with several people.

    Args:
        table: the table.
        base: beginning of the links, such as `http://192.168.0.2:8080`.
        alone: whether only this machine reaches the server.
    """
    sitting = table.sitting
    begin(sitting.variant.game.title, str(sitting.variant), "/" if alone else "")
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
        agents_here = [f"{name}: {who}" for name, who in named]
        if agents_here:
            words("Agents: " + ", ".join(agents_here))


def _link(name: str, url: str, path: str) -> None:
    def copy() -> None:
        ui.clipboard.write(url)
        ui.notify(f"The link of {name} is copied.")

    with ui.element("div").classes("line"):
        words(name, "", "strong")
        ui.link(url, path).classes("link seat-link")
        button("Copy", copy)


def _usual_agent(variant: Variant) -> str:
    """Return the opponent for a first game: the second level, else the first of the game's own agents, or `random`."""
    if len(levels := list(agents.levels(variant).values())) > 1:
        return levels[1]
    everywhere = agents.for_game(None)
    for name in agents.for_game(variant.game.name):
        if name in everywhere:
            continue
        try:
            check_plays(agents.make(name), variant)
        except (ValueError, OSError, ImportError):
            continue
        return name
    return "random"
