"""A person, or several, against agents in the terminal; agents that are watched; saved games, played on or stepped through."""

from __future__ import annotations

import contextlib
import difflib
import functools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import typer
from rich.text import Text

from dice_envs import Variant
from dice_envs.agent import Agent
from dice_envs.agent.casting import cast
from dice_envs.core.files import write_text
from dice_envs.core.game import load
from dice_envs.core.options import check_range, shown
from dice_envs.experiments.arena import log_writer
from dice_envs.experiments.ui.console import console, print_mode
from dice_envs.experiments.ui.files import check_writable
from dice_envs.experiments.ui.options import game_options
from dice_envs.experiments.ui.progress import progress
from dice_envs.pictures.render import ansi
from dice_envs.table.advice import Advice, give_hint, give_odds, review
from dice_envs.table.rules import rules_text
from dice_envs.table.sitting import PERSON, Entry, Sitting

__all__ = ["Seated", "choose", "explain_mistake", "load_game", "number_choices", "open_game", "play_game", "set_up"]

MOST_LISTED = 12  # legal actions that are listed one by one
MOST_ADVISED = 8  # actions of which a hint or the odds tell
WIDTH = 100  # characters of a line
COMMANDS = {
    "help": "this",
    "rules": "the rules of the game",
    "hint": "what each choice is worth, with optimal play afterwards where that is known; ? is short for it",
    "odds": "the chances of each choice",
    "undo": "take back your last move and all that followed",
    "history": "the moves so far, as far as you may know them",
    "save FILE": "write the game into a file, with which `play --load FILE` goes on",
    "quit": "stop; q is short for it",
}
AFTER = "review, history, undo, save FILE; Enter leaves"
LOOKING = "Enter: next move, b: back, a number: to that move, e: to the end, history, save FILE, q: leave"


# --- words ------------------------------------------------------------------------------------------------------------


def _plain(words: str) -> str:
    """Words without case, blanks and signs: "3 x 5", "3x5" and "3 5" are the same."""
    return " ".join(re.findall(r"[a-wyz]+|\d+", words.lower()))


def _is_number(words: str) -> bool:
    return re.fullmatch(r"[0-9]{1,9}", words) is not None


@functools.lru_cache(maxsize=8)
def _own_numbers(variant: Variant) -> dict[int, int] | None:
    """Number → action for all actions of the variant, if their words have numbers that can be taken; else None."""
    found = [list(map(int, re.findall(r"\d+", variant.describe_action(action)))) for action in range(variant.facts.num_actions)]
    firsts = [numbers[0] for numbers in found if numbers]
    if len(set(firsts)) == len(found):
        return {first: action for action, first in enumerate(firsts)}
    if firsts and all(not numbers or numbers == [action] for action, numbers in enumerate(found)):
        return {action: action for action in range(len(found))}
    return None


def number_choices(variant: Variant, legal: Sequence[int]) -> dict[int, int]:
    """The number by which each legal action can be chosen: number → action.

    Numbers never say something else than the words do: where the words of each action begin with another number, those are
    taken ("die 2"); where the numbers in the words are the actions' own, these ("throw the 2 lowest again"). Otherwise
    what is legal is counted from 1.
    """
    own = _own_numbers(variant)
    if own is None:
        return dict(enumerate(legal, 1))
    return {number: action for number, action in own.items() if action in legal}


def choose(variant: Variant, legal: Sequence[int], words: str) -> int | None:
    """The legal action that a person means: its words or its number in the list, the first letters of its words, or `#` and the
    action as environments number it."""
    said = words.strip()
    if re.fullmatch(r"#\s*\d{1,9}", said):
        number = int(said.lstrip("# "))
        return number if number in legal else None
    wanted = _plain(said)
    if not wanted:
        return None
    meanings = {action: _plain(variant.describe_action(action)) for action in legal}
    exact = [action for action, meaning in meanings.items() if meaning == wanted]
    if len(exact) == 1:
        return exact[0]
    if _is_number(said):
        return number_choices(variant, legal).get(int(said))
    starts = [action for action, meaning in meanings.items() if meaning.startswith(wanted)]
    return starts[0] if len(starts) == 1 else None


def explain_mistake(variant: Variant, state: Any, legal: Sequence[int], words: str) -> str:
    """Why words that `choose` does not understand are no move now, in one line."""
    said = words.strip()
    wanted = _plain(said)
    everything = range(variant.facts.num_actions)
    meanings = {action: _plain(variant.describe_action(action)) for action in everything}
    meant = [action for action in everything if meanings[action] == wanted]
    if _is_number(said) and not meant:
        own = (_own_numbers(variant) or {}).get(int(said))
        meant = [] if own is None else [own]
    if not meant and wanted and not _is_number(said):
        meant = [action for action in everything if meanings[action].startswith(wanted)]
    if len(meant) == 1 and meant[0] not in legal:
        why = variant.explain_illegal(state, meant[0])
        return why or f"{variant.describe_action(meant[0])} is not legal now"
    several = [variant.describe_action(action) for action in meant if action in legal]
    if len(several) > 1:
        return f"{shown(said)} could be {', '.join(several[:3])}{' …' if len(several) > 3 else ''}"
    if _is_number(said):
        return f"{said} is the number of no choice"
    known = {variant.describe_action(action).lower() for action in legal} | {name.split()[0] for name in COMMANDS}
    near = difflib.get_close_matches(said.lower(), sorted(known), n=2, cutoff=0.6)
    if near:
        return f"{shown(said)} is no move; did you mean {' or '.join(near)}?"
    return f"{shown(said)} is no move; help says what can be typed"


def _listed(variant: Variant, legal: Sequence[int]) -> str:
    """The legal actions with their numbers, in lines; the middle of many is left out."""
    items = [f"{number}: {variant.describe_action(action)}" for number, action in number_choices(variant, legal).items()]
    if len(items) > MOST_LISTED:
        half = MOST_LISTED // 2
        items = [*items[:half], "…", *items[-half:]]
    lines = [""]
    for item in items:
        if lines[-1] and len(lines[-1]) + 3 + len(item) > WIDTH:
            lines.append("")
        lines[-1] += ("   " if lines[-1] else "") + item
    return "\n".join(lines)


def _help(variant: Variant) -> str:
    example = variant.describe_action(0)
    lines = [
        f"A move is its number in the list, its words ({example}), or as many of their first letters as tell it from others."
    ]
    if len(re.findall(r"\d+", example)) > 1 and _own_numbers(variant) is None:
        lines.append(
            "Signs may be left out, but a number alone is always that of a choice: 3 5 is 3 x 5, and 35 the 35th choice."
        )
    return "\n".join([*lines, "Or type:", *(f"  {name:10} {what}" for name, what in COMMANDS.items())])


def _told(advice: Advice) -> str:
    rows = advice.rows[:MOST_ADVISED]
    words, texts = (max(len(getattr(row, name)) for row in rows) for name in ("words", "text"))
    lines = [f"{advice.title}:"]
    for row in rows:
        share = "" if row.share is None else f"   optimal play does it {100 * row.share:5.1f} % of the time"
        lines.append(f"  {row.words:{words}}  {row.text:>{texts}}{share}")
    if len(advice.rows) > len(rows):
        lines.append(f"  … and {len(advice.rows) - len(rows)} more that are worth no more")
    return "\n".join([*lines, f"({advice.note})"])


def _entry(variant: Variant, entry: Entry, viewer: int | None) -> str:
    said = f"{variant.seat_name(entry.seat, viewer)}: {entry.words}"
    return "\n".join([said, *(f"  {note}" for note in entry.notes)])


# --- a game -----------------------------------------------------------------------------------------------------------


class _Terminal:
    """A sitting at one terminal."""

    def __init__(self, sitting: Sitting) -> None:
        self.sitting = sitting
        self._told: dict[int | None, int] = {}  # moves that each viewer has been told of
        self._looking: int | None = None  # the person who sees the screen

    @property
    def _reader(self) -> int | None:
        """Whose view is shown as it comes: the only person's, or everything where nobody plays."""
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
                self._tell(self._reader)

    def show_end(self) -> None:
        """The last moves, all that was hidden, and what everybody has earned."""
        sitting = self.sitting
        self._tell(self._reader)
        typer.echo(ansi(sitting.picture()))
        for seat in sitting.people or range(len(sitting.seats)):
            who = sitting.variant.seat_name(seat, seat if [seat] == list(sitting.people) else None)
            typer.echo(f"{who}: {sitting.returns[seat]:+g}")

    def after(self) -> bool:
        """What a person wants when the game is over. Returns whether to play on, after an undo."""
        typer.echo(f"the game is over: {AFTER}")
        while True:
            try:
                words = str(typer.prompt("", prompt_suffix="> ", default="", show_default=False)).strip()
            except typer.Abort:  # nothing more to read
                return False
            if words.lower() == "review":
                self.show_review()
            elif words.lower() == "undo":
                self._undo(self._reader)
                return True
            elif not self._command(words, None):
                near = difflib.get_close_matches(
                    words.lower(), ["review", "undo", "history", "save", "rules"], n=1, cutoff=0.75
                )
                if not near:
                    return False
                typer.echo(f"did you mean {near[0]}?")

    def show_review(self) -> None:
        """What each move of a person has cost."""
        sitting = self.sitting
        with progress("reviewing, moves", len(sitting)) as done:
            found = review(sitting, agents=not sitting.people, done=lambda moves, of: done())
        for move in found.moves:
            typer.echo(f"{sitting.variant.seat_name(move.seat, self._reader)}, {move.text}")
        for seat, text in found.texts.items():
            typer.echo(f"{sitting.variant.seat_name(seat, self._reader)}: {text}")
        if found.note:
            typer.echo(f"({found.note})")

    def _let_person_move(self, person: int) -> None:
        sitting = self.sitting
        if len(sitting.people) > 1 and self._looking != person:
            who = sitting.variant.seat_name(person)
            typer.prompt(f"{who}, press Enter when nobody else is looking", default="", show_default=False)
            console.clear()
        self._looking = person
        self._tell(person)
        typer.echo(ansi(sitting.picture(person)))
        legal = sitting.legal()
        choices = f"you can play   (help says what else can be typed, q quits)\n{_listed(sitting.variant, legal)}"
        typer.echo(choices)
        while True:
            words = str(typer.prompt("your move", prompt_suffix="> ")).strip()
            moves = {_plain(sitting.variant.describe_action(action)) for action in legal}
            if _plain(words) not in moves:  # a move's own words are never a command
                if words.lower() in ("q", "quit", "exit"):
                    raise KeyboardInterrupt
                if words.lower() == "undo":
                    if self._undo(person):
                        return
                    continue
                if self._command(words, person):
                    typer.echo(choices)
                    continue
            action = choose(sitting.variant, legal, words)
            if action is not None:
                sitting.play(action)
                return
            typer.echo(explain_mistake(sitting.variant, sitting.state, legal, words))

    def _command(self, words: str, person: int | None) -> bool:
        """Do what the words ask for beside moves. Returns whether they are a command. `person` is to move, if anybody is."""
        sitting = self.sitting
        name, _, rest = words.partition(" ")
        name = "hint" if words == "?" else name.lower()
        if rest.strip() and name != "save":
            return False
        if name == "help":
            typer.echo(_help(sitting.variant))
        elif name == "rules":
            typer.echo(rules_text(sitting.variant.game, WIDTH))
        elif name == "history":
            viewer = self._reader if person is None else person
            for entry in sitting.history(viewer):
                typer.echo(f"{entry.number:4}  {_entry(sitting.variant, entry, viewer)}")
        elif name == "save":
            self._save(rest.strip())
        elif name in ("hint", "odds") and person is not None:
            give = give_hint if name == "hint" else give_odds
            try:
                typer.echo(_told(give(sitting.variant, sitting.state, len(sitting))))
            except KeyboardInterrupt:  # solving may take longer than somebody wants to wait
                typer.echo("stopped")
        else:
            return False
        return True

    def _save(self, name: str) -> None:
        if not name:
            typer.echo("save needs the name of a file: save FILE")
            return
        try:
            self.sitting.save_to(Path(name))
        except (OSError, ValueError) as problem:
            typer.echo(f"not saved: {problem}")
        else:
            typer.echo(f"saved; `play --load {name}` goes on")

    def _undo(self, person: int | None) -> bool:
        try:
            self.sitting.undo(person)
        except ValueError as problem:
            typer.echo(str(problem))
            return False
        self._told = {viewer: min(moves, len(self.sitting)) for viewer, moves in self._told.items()}
        return True

    def _tell(self, viewer: int | None) -> None:
        """The moves that the viewer has not been told of, up to the first that it may not know yet."""
        for entry in self.sitting.history(viewer)[self._told.get(viewer, 0) :]:
            if entry.action is None:
                return
            typer.echo(_entry(self.sitting.variant, entry, viewer))
            self._told[viewer] = entry.number

    def look(self) -> None:
        """Step through the game, move by move; agents play on where it has not been played yet and nobody else sits there."""
        sitting, at = self.sitting, 0
        self._show(at)
        typer.echo(LOOKING)
        while True:
            try:
                words = str(typer.prompt(f"move {at}", prompt_suffix="> ", default="", show_default=False)).strip().lower()
            except typer.Abort:  # nothing more to read
                return
            if words in ("q", "quit", "exit"):
                return
            if words == "b":
                at = max(0, at - 1)
            elif _is_number(words):
                at = self._reach(int(words))
            elif words == "e":
                at = self._reach(sitting.variant.facts.max_steps)
            elif words == "":
                at = self._reach(at + 1)
            elif words == "review" and sitting.over:
                self.show_review()
                continue
            elif not self._command(words, None):
                typer.echo(LOOKING)
                continue
            else:
                continue
            self._show(at)

    def _reach(self, moves: int) -> int:
        """Let agents play until so many moves are there, or as many as can be."""
        while len(self.sitting) < moves and not self.sitting.over and not self.sitting.people:
            self.sitting.step()
        return min(moves, len(self.sitting))

    def _show(self, at: int) -> None:
        sitting = self.sitting
        if at:
            typer.echo(_entry(sitting.variant, sitting.history()[at - 1], None))
        position = sitting.position(at)
        typer.echo(ansi(position.picture))
        if at == len(sitting) and (sitting.over or sitting.people):
            earned = ", ".join(f"{sitting.variant.seat_name(seat)}: {value:+g}" for seat, value in enumerate(position.returns))
            typer.echo(earned if sitting.over else "the game was saved here; it is not over")


class Seated(NamedTuple):
    """A game that is set up, and who plays it.

    Attributes:
        sitting: the game.
        policy: what `cast` says of a trained policy.
        made: the agents by their specs.
    """

    sitting: Sitting
    policy: str
    made: dict[str, Agent]


def set_up(
    game: str,
    opponents: Sequence[str],
    options: Sequence[str],
    seat: int | None,
    people: int,
    seed: int,
    watch: bool = False,
) -> Seated:
    """Seat people and agents at a game.

    Args:
        game: its name.
        opponents: specs in seat order after the first person; one alone takes every seat that is left, and if there is
            none they play at random. In a game of one seat they are made only.
        options: game options, KEY=VALUE.
        seat: the first person's seat; None: chosen at random. The others sit next to it.
        people: how many people play here.
        seed: fixes the dice and the opponents.
        watch: nobody plays; agents take all seats, from `seat` or seat 0 on.

    Raises:
        ValueError: unknown names, or people and agents that are not as many as there are seats.
    """
    variant, agents, policy = cast(game, game_options(options), opponents)
    seats = variant.facts.num_seats
    if not watch:
        check_range("people", people, 1, seats)
    if seat is not None:
        check_range("seat", seat, 0, seats - 1)
    people = 0 if watch else people
    rng = np.random.default_rng(seed)
    first = (0 if watch else int(rng.integers(seats))) if seat is None else seat
    persons = [(first + i) % seats for i in range(people)]
    others = [(first + people + i) % seats for i in range(seats - people)]
    alone = seats == 1 and not watch
    if opponents and not alone and len(opponents) not in (min(1, len(others)), len(others)):
        what = "agent" if watch else "opponent"
        allowed = {0: "no opponent, since people take all seats", 1: f"1 {what}"}
        some = allowed.get(len(others), f"1 {what}, or {len(others)}, one for each {'seat' if watch else 'other seat'}")
        raise ValueError(f"name {some}; not {len(opponents)}")
    made = dict(zip(opponents, agents, strict=True))
    specs = list(opponents) if len(opponents) == len(others) else [*(opponents or ["random"])][:1] * len(others)
    seated = {**dict.fromkeys(persons, PERSON), **dict(zip(others, specs, strict=False))}
    sitting = _sit(variant, seed, [seated[place] for place in range(seats)], made)
    return Seated(sitting, policy, made)


@contextlib.contextmanager
def _logged(sitting: Sitting, log: Path | None) -> Iterator[None]:
    """Write the game's log, in its source's format, into a file when the block ends, however it ends.

    Player 1 of the log is the first person, or where nobody plays, seat 0.

    Raises:
        ValueError: the game has no log format, or cannot hold this variant.
        OSError: the file cannot be written.
    """
    if log is None:
        yield
        return
    writer = log_writer(sitting.variant, len(sitting.seats))
    check_writable(log)
    first = np.array([sitting.people[0] if sitting.people else 0])
    try:
        yield
    finally:
        for moves in range(1, len(sitting) + 1):
            writer.after_move(np.array([sitting.position(moves).state]), np.zeros(1, np.int64), first)
        write_text(log, writer.text())


def play_game(seated: Seated, reviewed: bool = False, log: Path | None = None) -> np.ndarray:
    """Play a game that `set_up` has set up at the terminal; where nobody plays, step through it.

    In a game of one seat the person plays alone; the opponents then play the same deal, and whoever earns most wins.

    Args:
        seated: the game.
        reviewed: show at the end what each move has cost.
        log: the file into which the game is written in its source's format.

    Returns:
        Each seat's return, (seats,) float64.

    Raises:
        ValueError: the game has no log format.
    """
    with _logged(seated.sitting, log):
        return _play_game(seated, reviewed)


def _play_game(seated: Seated, reviewed: bool) -> np.ndarray:
    sitting, made = seated.sitting, seated.made
    variant, people = sitting.variant, sitting.people
    alone = bool(people) and len(sitting.seats) == 1
    console.print(Text.assemble((variant.game.title, "bold"), f", seed {sitting.seed}"))
    print_mode(variant, seated.policy)
    terminal = _Terminal(sitting)
    if not alone:
        _introduce(sitting)
    if not people:
        terminal.look()
        return sitting.returns
    _play(terminal, reviewed, lambda: None if alone or len(people) > 1 else _tell_winner(sitting.returns, people[0]))
    returns = sitting.returns
    if alone:
        _play_after(variant, sitting.seed, made, float(returns[0]))
    return returns


def open_game(path: Path, game: str | None) -> Sitting:
    """A saved game.

    Args:
        path: its file.
        game: the name of the game that it should be; None: any.

    Raises:
        ValueError: the file holds no saved game, or another one.
        OSError: it cannot be read.
    """
    sitting = Sitting.load_from(path)
    if game is not None and load(game).name != sitting.variant.game.name:
        raise ValueError(f"{path} holds a game of {sitting.variant.game.name}, not {game}")
    return sitting


def load_game(path: Path, game: str | None, replay: bool, reviewed: bool = False, log: Path | None = None) -> np.ndarray:
    """Go on with a saved game, or if it is over or `replay` is asked for, step through it.

    Args:
        path, game: as for `open_game`, whose errors are raised.
        replay: step through it, though it may not be over.
        reviewed: show at the end what each move has cost.
        log: as for `play_game`.

    Returns:
        Each seat's return, (seats,) float64.
    """
    sitting = open_game(path, game)
    with _logged(sitting, log):
        return _go_on(sitting, replay, reviewed)


def _go_on(sitting: Sitting, replay: bool, reviewed: bool) -> np.ndarray:
    variant = sitting.variant
    console.print(Text.assemble((variant.game.title, "bold"), f", seed {sitting.seed}, after {len(sitting)} moves"))
    print_mode(variant, "")
    _introduce(sitting)
    terminal = _Terminal(sitting)
    if replay or sitting.over or not sitting.people:
        terminal.look()
        if reviewed and sitting.over:
            terminal.show_review()
    else:
        alone = sitting.people[0] if len(sitting.people) == 1 < len(sitting.seats) else None
        _play(terminal, reviewed, lambda: None if alone is None else _tell_winner(sitting.returns, alone))
    return sitting.returns


def _sit(variant: Variant, seed: int, seats: Sequence[str], made: dict[str, Agent]) -> Sitting:
    """A sitting with agents that have been made already; `random` need not have been."""
    if all(who in made or who == PERSON for who in seats):
        return Sitting(variant, seed, seats, lambda variant, spec: made[spec])
    return Sitting(variant, seed, seats)


def _introduce(sitting: Sitting) -> None:
    for place, who in enumerate(sitting.seats):
        if who != PERSON:
            console.print(Text(f"{sitting.variant.seat_name(place)}: {who}"))
        elif len(sitting.people) == 1:
            console.print(Text(f"{sitting.variant.seat_name(place)}: you"))


def _play(terminal: _Terminal, reviewed: bool, tell_winner: Any) -> None:
    """Play to the end, and again from wherever a person goes back to."""
    while True:
        terminal.play_on()
        terminal.show_end()
        tell_winner()
        if reviewed:
            terminal.show_review()
        if not terminal.after():
            return


def _play_after(variant: Variant, seed: int, made: dict[str, Agent], earned: float) -> None:
    """Let agents play the deal that a person has played alone."""
    totals = [earned]
    for spec in made:
        typer.echo(f"\n{spec} plays the same deal")
        terminal = _Terminal(_sit(variant, seed, [spec], made))
        terminal.play_on()
        typer.echo(ansi(terminal.sitting.picture()))
        totals += terminal.sitting.returns.tolist()
        typer.echo(f"{spec}: {totals[-1]:+g}")
    if len(totals) > 1:
        _tell_winner(np.array(totals), 0)


def _tell_winner(returns: np.ndarray, person: int) -> None:
    best = returns == returns.max()
    typer.echo("a tie" if best.all() else "you win" if best[person] else "you lose")
