"""`play` and `mcp`: people and agents at the terminal or on a page, and an assistant that plays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import typer
from rich.text import Text

from dice_envs import Variant, names
from dice_envs.agent import Agent
from dice_envs.agent.specs import NotHarmless, lineup, make_player
from dice_envs.core.game import load
from dice_envs.core.options import check_range, did_you_mean
from dice_envs.experiments import ui, words
from dice_envs.experiments.jobs.guard import answer_interrupt
from dice_envs.pictures.render import ansi
from dice_envs.table.advice import give_hint, give_odds, review
from dice_envs.table.rules import rules_in_short, rules_text
from dice_envs.table.sitting import PERSON, Sitting


def play(
    game: Annotated[str | None, typer.Argument(help="The game, say liars_dice; `games` lists them.")] = None,
    agents: Annotated[
        list[str] | None,
        typer.Argument(
            help="Opponents in seat order after you, one for all other seats, or none for random play; with --load "
            "instead of the saved ones."
        ),
    ] = None,
    option: ui.OptionOption = None,
    seat: Annotated[int | None, typer.Option(help="Your seat; chosen at random if left out.")] = None,
    people: Annotated[int | None, typer.Option(help="How many people play at this terminal, 1 if left out.")] = None,
    seed: ui.SeedOption = None,
    watch: Annotated[bool, typer.Option("--watch", help="Nobody plays: step agents against each other.")] = False,
    load: Annotated[Path | None, typer.Option(help="Go on with a game that `save FILE` has written.")] = None,
    replay: Annotated[bool, typer.Option("--replay", help="With --load: step through the game, move by move.")] = False,
    start: Annotated[
        int | None, typer.Option("--from", help="With --load: go on from the position before this move, say your worst one.")
    ] = None,
    review: Annotated[
        bool, typer.Option("--review", help="Show at the end what each of your moves has cost, and how much was luck.")
    ] = False,
    web: Annotated[
        bool, typer.Option("--web", help="Play on a page in the browser; each person may use a device of their own.")
    ] = False,
    host: Annotated[
        str | None, typer.Option(help="With --web: address to listen on; 0.0.0.0 serves your network, too.")
    ] = None,
    port: Annotated[int | None, typer.Option(help="With --web: port to listen on; 8080 or a free one if left out.")] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="With --web: open a browser.")] = True,
) -> None:
    """Play at the terminal against any agents, with the dice shown as pictures. Type `help` there for the commands: rules,
    hint, odds, undo, history, save. With --web, play on a page instead; without a game it begins with all games to choose from.

    If the game has one seat, the agents play the same deal after you. If a trained policy takes part, options that you leave
    out are those of its training.

    Example: play liars_dice numbers:bluff=0.25 -o num_dice=3
    """
    given = {"--option": option, "--seat": seat, "--people": people, "--seed": seed, "--watch": watch or None}
    if load is not None:
        for name, value in given.items():
            if value is not None:
                raise ValueError(f"{name} cannot be given with --load: a saved game has its own")
    if not web:
        for name, unused in {"--host": host, "--port": port, "--no-browser": None if browser else True}.items():
            if unused is not None:
                raise ValueError(f"{name} is for the page: add --web")
    if load is not None:
        saved = open_game(load, game, start, agents or [])
        if web:
            _serve([saved], host, port, browser)
        else:
            play_game(Seated(saved, "", {}), replay, review)
        return
    if replay:
        raise ValueError("--replay steps through a saved game: name it with --load FILE")
    if start is not None:
        raise ValueError("--from takes up a saved game: name it with --load FILE")
    if game is None and web and all(value is None for value in given.values()):
        _serve([], host, port, browser)
        return
    if game is None:
        raise ValueError(f"name a game, {', '.join(names())}, or a saved one with --load FILE")
    if watch and people is not None:
        raise ValueError("--people cannot be given with --watch, where nobody plays")
    seated = set_up(game, agents or [], option or [], seat, 1 if people is None else people, ui.seed_or_fresh(seed), watch)
    if web:
        _serve(_tables(seated), host, port, browser)
    else:
        play_game(seated, reviewed=review)


def _tables(seated: Seated) -> list[Sitting]:
    """Return the game to serve; in a game of one seat that a person has, also the same deal for each agent."""
    sitting = seated.sitting
    ui.print_mode(sitting.variant, seated.policy)
    if len(sitting.people) == 1:  # the seed reveals all dice: hide it if people play each other
        ui.console.whole_line(f"seed {sitting.seed}")
    after = seated.made if sitting.people and len(sitting.seats) == 1 else {}
    return [sitting, *(Sitting(sitting.variant, sitting.seed, [spec]) for spec in after)]


def _serve(sittings: list[Sitting], host: str | None, port: int | None, browser: bool) -> None:
    from dice_envs.experiments.web.server import HOST, serve  # of an extra of its own

    serve(sittings, HOST if host is None else host, port, browser)


def mcp() -> None:
    """Serve the games to an assistant by the Model Context Protocol, on standard input and output: it plays, asks for rules,
    hints and the price of a move, and reviews its play. The assistant's program starts this command.
    """
    from dice_envs.experiments.assistant import serve  # of an extra of its own

    serve()


# --- games at one terminal -------------------------------------------------------------------------------------------


class Seated(NamedTuple):
    """A game that is set up, with its players."""

    sitting: Sitting
    policy: str  # the trained policy that set the options, as `cast` names it
    made: dict[str, Agent]  # spec → agent


def set_up(
    game: str, opponents: Sequence[str], options: Sequence[str], seat: int | None, people: int, seed: int, watch: bool = False
) -> Seated:
    """Seat people and agents at a game.

    Args:
        game: its name.
        opponents: specs in seat order after the last person. One takes all remaining seats; none means random play. In a
            game of one seat they are only made, not seated.
        options: game options, KEY=VALUE.
        seat: the first person's seat; None: chosen at random. Other people sit next to it.
        people: number of people who play here.
        seed: fixes the dice and the opponents.
        watch: nobody plays; agents take all seats, from `seat` or seat 0 on.

    Raises:
        ValueError: unknown names, or the wrong number of people or agents for the seats.
    """
    variant, agents, policy = lineup(game, ui.game_options(options), opponents)
    seats = variant.facts.num_seats
    if not watch:
        check_range("people", people, 1, seats)
    if seat is not None:
        check_range("seat", seat, 0, seats - 1)
    people = 0 if watch else people
    rng = np.random.default_rng(seed)
    first = (0 if watch else int(rng.integers(seats))) if seat is None else seat
    others = seats - people
    alone = seats == 1 and not watch
    if opponents and not alone and len(opponents) not in (min(1, others), others):
        what = "agent" if watch else "opponent"
        allowed = {0: "no opponent, since people take all seats", 1: f"1 {what}"}
        some = allowed.get(others, f"1 {what}, or {others}, one for each {'seat' if watch else 'other seat'}")
        raise ValueError(f"name {some}; not {len(opponents)}")
    made = dict(zip(opponents, agents, strict=True))
    specs = list(opponents) if len(opponents) == others else [*(opponents or ["random"])][:1] * others
    turns = [PERSON] * people + specs  # from the first person on
    sitting = Sitting(variant, seed, [turns[place - first] for place in range(seats)], _maker(made))
    return Seated(sitting, policy, made)


def play_game(seated: Seated, replay: bool = False, reviewed: bool = False) -> None:
    """Play a game at the terminal, a new or a saved one; step through it if it is over, has no people, or `replay` is set.

    With `reviewed` it ends with the cost of each move. In a game of one seat the person plays alone. The opponents then play
    the same deal, and the highest return wins.
    """
    sitting = seated.sitting
    people, alone = sitting.people, len(sitting.seats) == 1
    ui.console.print(_title(sitting) + (f", after {len(sitting)} moves" if len(sitting) else ""))
    ui.print_mode(sitting.variant, seated.policy)
    for place, who in enumerate(() if people and alone else sitting.seats):
        if who != PERSON or len(people) == 1:
            ui.console.print(Text(f"{sitting.variant.seat_name(place)}: {'you' if who == PERSON else who}"))
    terminal = Terminal(sitting)
    if (replay or sitting.over or not people) and not terminal.look():
        if reviewed and sitting.over:
            terminal.show_review()
        return
    goes_on = True
    while goes_on:  # and again after each undo
        terminal.play_on()
        terminal.show_end()
        if len(people) == 1 and not alone:
            _announce_winner(sitting.returns, people[0])
        if reviewed:
            terminal.show_review()
        goes_on = terminal.after()
    if alone:
        _play_after(sitting.variant, sitting.seed, seated.made, float(sitting.returns[0]))


def open_game(path: Path, game: str | None, start: int | None = None, opponents: Sequence[str] = ()) -> Sitting:
    """Return a saved game, which must be one of `game` if that is given; the move `start` and all after it are taken back.

    `opponents` play instead of the agents that the file names, in seat order; one takes all seats.

    Raises:
        ValueError: the file is not a saved game, or is one of another game; an agent that the file names could do harm; or
            `start` is not the number of one of its moves.
        OSError: the file cannot be read.
    """
    try:
        sitting = Sitting.load_from(path, agents=opponents)
    except NotHarmless as problem:
        raise ValueError(f"{problem}. Name who plays instead: play GAME AGENT --load {path}") from None
    if game is not None and load(game).name != sitting.variant.game.name:
        raise ValueError(f"{path} holds a game of {sitting.variant.game.name}, not {game}")
    if start is not None:
        if not 1 <= start <= len(sitting):
            raise ValueError(f"--from must be the number of a move, 1 to {len(sitting)} in {path}, not {start}")
        sitting.cut(start - 1)
    return sitting


def _maker(made: dict[str, Agent]) -> Callable[[Variant, str], Agent]:
    """Return a function that makes agents from specs, but for those that were made before."""
    return lambda variant, spec: made.get(spec) or make_player(variant, spec)


def _title(sitting: Sitting) -> Text:
    """The game, and its seed unless that would tell people about each other's dice."""
    secret = len(sitting.people) > 1 and not sitting.over
    return Text.assemble((sitting.variant.game.title, "bold"), "" if secret else f", seed {sitting.seed}")


def _play_after(variant: Variant, seed: int, made: dict[str, Agent], earned: float) -> None:
    """Let the agents play the deal that a person has played alone, and say who wins."""
    totals = [earned]
    for spec in made:
        typer.echo(f"\n{spec} plays the same deal")
        terminal = Terminal(Sitting(variant, seed, [spec], _maker(made)))
        terminal.play_on()
        typer.echo(ansi(terminal.sitting.picture()))
        totals += terminal.sitting.returns.tolist()
        typer.echo(f"{spec}: {totals[-1]:+g}")
    if len(totals) > 1:
        _announce_winner(np.array(totals), 0)


def _announce_winner(returns: np.ndarray, person: int) -> None:
    best = returns == returns.max()
    typer.echo("a tie" if best.all() else "you win" if best[person] else "you lose")


# --- what people type, and the table as they see it --------------------------------------------------------------------


LEAVING = ("q", "quit", "exit")


def _typed(prompt: str) -> str:
    """Return what is typed, which may be nothing; "q" where nothing more can be read."""
    try:
        return str(typer.prompt(prompt, prompt_suffix="> ", default="", show_default=False)).strip()
    except typer.Abort:
        return LEAVING[0]


class Terminal:
    """A sitting at one terminal."""

    def __init__(self, sitting: Sitting) -> None:
        self.sitting = sitting
        self._shown: dict[int | None, int] = {}  # viewer → number of moves shown
        self._looking: int | None = None  # the person who sees the screen

    @property
    def _reader(self) -> int | None:
        """The viewer of the moves: the only person, else None, who sees everything."""
        return self.sitting.people[0] if len(self.sitting.people) == 1 else None

    def play_on(self) -> None:
        """Play to the end."""
        sitting = self.sitting
        while not sitting.over:
            if sitting.mover in sitting.people:
                self._let_person_move(sitting.mover)
            else:
                sitting.step()
            if len(sitting.people) <= 1:
                self._show_new_moves(self._reader)

    def show_end(self) -> None:
        """Show the last moves, all that was hidden, and the returns."""
        sitting = self.sitting
        self._show_new_moves(self._reader)
        typer.echo(ansi(sitting.picture()))
        for seat in sitting.people or range(len(sitting.seats)):
            who = sitting.variant.seat_name(seat, seat if [seat] == list(sitting.people) else None)
            words.say(f"{who}: {sitting.returns[seat]:+g}")
        if len(sitting.people) > 1:
            words.say(f"the seed was {sitting.seed}")

    def after(self) -> bool:
        """Read commands after the end. Return whether to play on, after `undo` or `from N`."""
        words.say(f"the game is over: {words.AFTER}")
        while True:
            typed = _typed("")
            if typed.lower() == "undo":
                self._take_back(lambda: self.sitting.undo(self._reader))
                return True
            elif typed.lower().startswith("from"):
                if self._go_back(typed):
                    return True
            elif not self._command(typed, None):
                near = did_you_mean(typed.lower(), ["review", "undo", "from", "history", "save", "rules"])
                if not near:
                    return False
                words.say(near.removeprefix("; "))

    def show_review(self) -> None:
        """Show the cost of each move of a person, and how much of the result was luck."""
        with ui.progress("reviewing, moves", len(self.sitting)):
            found = review(self.sitting, agents=not self.sitting.people)
        for line in words.review_lines(found, self.sitting, self._reader):
            words.say(line)

    def _let_person_move(self, person: int) -> None:
        sitting = self.sitting
        if len(sitting.people) > 1 and self._looking != person:
            who = sitting.variant.seat_name(person)
            typer.prompt(f"{who}, press Enter when nobody else is looking", default="", show_default=False)
            ui.console.clear()
        self._looking = person
        self._show_new_moves(person)
        typer.echo(ansi(sitting.picture(person)))
        legal = sitting.legal()
        choices = f"you can play   (help says what else can be typed, q quits)\n{words.listed(sitting.variant, legal)}"
        words.say(choices)
        while True:
            typed = str(typer.prompt("your move", prompt_suffix="> ")).strip()
            moves = {words.plain(sitting.variant.describe_action(action)) for action in legal}
            if words.plain(typed) not in moves:  # a move's words come before a command of the same name
                if typed.lower() in LEAVING:
                    raise KeyboardInterrupt
                if typed.lower() == "undo":
                    if self._take_back(lambda: sitting.undo(person)):
                        return
                    continue
                if self._command(typed, person):
                    words.say(choices)
                    continue
            action = words.choose(sitting.variant, legal, typed)
            if action is not None:
                sitting.play(action)
                return
            words.say(words.explain_mistake(sitting.variant, sitting.state, legal, typed))

    def _command(self, typed: str, person: int | None) -> bool:
        """Carry out a command that is not a move. Return whether it is one. `person` is to move; None after the end."""
        sitting = self.sitting
        name, _, rest = typed.partition(" ")
        name = "hint" if typed == "?" else name.lower()
        if rest.strip() and name != "save" and (name, rest.strip()) != ("rules", "all"):
            return False
        if name == "help":
            words.say(words.help_text(sitting.variant))
        elif name == "rules":
            words.say(rules_text(sitting.variant.game, words.width()) if rest else "\n".join(rules_in_short(sitting.variant)))
        elif name == "history":
            viewer = self._reader if person is None else person
            for entry in sitting.history(viewer):
                words.say(f"{entry.number:4}  {words.entry_text(sitting.variant, entry, viewer)}")
        elif name == "save":
            self._save(rest.strip())
        elif name == "review" and sitting.over:
            self.show_review()
        elif name in ("hint", "odds") and person is not None:
            give = give_hint if name == "hint" else give_odds
            try:
                words.say(words.advice_text(give(sitting.variant, sitting.state, len(sitting))))
            except KeyboardInterrupt:  # solving may take longer than a person wants to wait
                answer_interrupt()
                words.say("stopped")
        else:
            return False
        return True

    def _save(self, name: str) -> None:
        if not name:
            words.say("save needs the name of a file: save FILE")
            return
        try:
            self.sitting.save_to(Path(name))
        except (OSError, ValueError) as problem:
            words.say(f"not saved: {problem}")
        else:
            typer.echo(f"saved; `play --load {name}` goes on")  # unbroken, so that it can be copied

    def _go_back(self, typed: str) -> bool:
        """Take back move N and all after it, as `from N` says. Return whether that was possible."""
        number, most = typed[len("from") :].strip(), len(self.sitting)

        def cut() -> None:
            if not words.is_number(number) or not 1 <= int(number) <= most:
                raise ValueError(f"from needs the number of a move, 1 to {most}, as in: from {most}")
            self.sitting.cut(int(number) - 1)

        return self._take_back(cut)

    def _take_back(self, moves: Callable[[], None]) -> bool:
        """Take moves back, and forget that they were shown. Return whether that was possible; if not, say why."""
        try:
            moves()
        except ValueError as problem:
            words.say(str(problem))
            return False
        self._shown = {viewer: min(shown, len(self.sitting)) for viewer, shown in self._shown.items()}
        return True

    def _show_new_moves(self, viewer: int | None) -> None:
        """Show the moves that are new to the viewer, up to the first that it may not know yet."""
        for entry in self.sitting.history(viewer, self._shown.get(viewer, 0)):
            if entry.action is None:
                return
            words.say(words.entry_text(self.sitting.variant, entry, viewer))
            self._shown[viewer] = entry.number

    def look(self) -> bool:
        """Step through the game, move by move. Past its last move, agents play on if no person takes part.

        Return whether people play on, after `from N`.
        """
        sitting, at = self.sitting, 0
        self._show(at)
        words.say(words.LOOKING)
        if sitting.over and sitting.people:
            words.say(words.OVER)
        while True:
            typed = _typed(f"move {at}").lower()
            if typed in LEAVING:
                return False
            if typed == "b":
                at = max(0, at - 1)
            elif words.is_number(typed):
                at = self._reach(int(typed))
            elif typed == "e":
                at = self._reach(sitting.variant.facts.max_steps)
            elif typed == "":
                at = self._reach(at + 1)
            elif typed.startswith("from") and sitting.over and sitting.people:
                if self._go_back(typed):
                    return True
                continue
            elif not self._command(typed, None):
                words.say(words.LOOKING)
                continue
            else:
                continue
            self._show(at)

    def _reach(self, moves: int) -> int:
        """Let agents play until `moves` moves are made, if no person takes part; return the position reached."""
        while len(self.sitting) < moves and not self.sitting.over and not self.sitting.people:
            self.sitting.step()
        return min(moves, len(self.sitting))

    def _show(self, at: int) -> None:
        sitting = self.sitting
        if at:
            words.say(words.entry_text(sitting.variant, sitting.history(None, at - 1, at)[0], None))
        typer.echo(ansi(sitting.picture(moves=at)))
        if at == len(sitting) and (sitting.over or sitting.people):
            earned = ", ".join(f"{sitting.variant.seat_name(seat)}: {value:+g}" for seat, value in enumerate(sitting.returns))
            words.say(earned if sitting.over else "the game was saved here; it is not over")


COMMANDS = {"play": play, "mcp": mcp}
