"""A game at one terminal: reads what people type and shows the table."""

from __future__ import annotations

from pathlib import Path

import typer

from dice_envs.core.options import did_you_mean
from dice_envs.experiments.jobs.guard import answer_interrupt
from dice_envs.experiments.play.words import (
    AFTER,
    LOOKING,
    OVER,
    advice_text,
    choose,
    entry_text,
    explain_mistake,
    help_text,
    is_number,
    listed,
    make_review,
    plain,
    review_lines,
    say,
    width,
)
from dice_envs.experiments.ui.console import console
from dice_envs.pictures.render import ansi
from dice_envs.table.advice import give_hint, give_odds
from dice_envs.table.rules import rules_in_short, rules_text
from dice_envs.table.sitting import Sitting


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
                self._tell(self._reader)

    def show_end(self) -> None:
        """Show the last moves, all that was hidden, and the returns."""
        sitting = self.sitting
        self._tell(self._reader)
        typer.echo(ansi(sitting.picture()))
        for seat in sitting.people or range(len(sitting.seats)):
            who = sitting.variant.seat_name(seat, seat if [seat] == list(sitting.people) else None)
            say(f"{who}: {sitting.returns[seat]:+g}")
        if len(sitting.people) > 1:
            say(f"the seed was {sitting.seed}")

    def after(self) -> bool:
        """Read commands after the end. Return whether to play on, after `undo` or `from N`."""
        say(f"the game is over: {AFTER}")
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
            elif words.lower().startswith("from"):
                if self._go_back(words):
                    return True
            elif not self._command(words, None):
                near = did_you_mean(words.lower(), ["review", "undo", "from", "history", "save", "rules"])
                if not near:
                    return False
                say(near.removeprefix("; "))

    def show_review(self) -> None:
        """Show the cost of each move of a person, and how much of the result was luck."""
        for line in review_lines(make_review(self.sitting, agents=not self.sitting.people), self.sitting, self._reader):
            say(line)

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
        choices = f"you can play   (help says what else can be typed, q quits)\n{listed(sitting.variant, legal)}"
        say(choices)
        while True:
            words = str(typer.prompt("your move", prompt_suffix="> ")).strip()
            moves = {plain(sitting.variant.describe_action(action)) for action in legal}
            if plain(words) not in moves:  # a move's words come before a command of the same name
                if words.lower() in ("q", "quit", "exit"):
                    raise KeyboardInterrupt
                if words.lower() == "undo":
                    if self._undo(person):
                        return
                    continue
                if self._command(words, person):
                    say(choices)
                    continue
            action = choose(sitting.variant, legal, words)
            if action is not None:
                sitting.play(action)
                return
            say(explain_mistake(sitting.variant, sitting.state, legal, words))

    def _command(self, words: str, person: int | None) -> bool:
        """Carry out a command that is not a move. Return whether the words are one. `person` is to move; None after the end."""
        sitting = self.sitting
        name, _, rest = words.partition(" ")
        name = "hint" if words == "?" else name.lower()
        if rest.strip() and name != "save" and (name, rest.strip()) != ("rules", "all"):
            return False
        if name == "help":
            say(help_text(sitting.variant))
        elif name == "rules":
            say(rules_text(sitting.variant.game, width()) if rest else "\n".join(rules_in_short(sitting.variant)))
        elif name == "history":
            viewer = self._reader if person is None else person
            for entry in sitting.history(viewer):
                say(f"{entry.number:4}  {entry_text(sitting.variant, entry, viewer)}")
        elif name == "save":
            self._save(rest.strip())
        elif name in ("hint", "odds") and person is not None:
            give = give_hint if name == "hint" else give_odds
            try:
                say(advice_text(give(sitting.variant, sitting.state, len(sitting))))
            except KeyboardInterrupt:  # solving may take longer than a person wants to wait
                answer_interrupt()
                say("stopped")
        else:
            return False
        return True

    def _save(self, name: str) -> None:
        if not name:
            say("save needs the name of a file: save FILE")
            return
        try:
            self.sitting.save_to(Path(name))
        except (OSError, ValueError) as problem:
            say(f"not saved: {problem}")
        else:
            typer.echo(f"saved; `play --load {name}` goes on")  # unbroken, so that it can be copied

    def _undo(self, person: int | None) -> bool:
        try:
            self.sitting.undo(person)
        except ValueError as problem:
            say(str(problem))
            return False
        self._forget()
        return True

    def _go_back(self, words: str) -> bool:
        """Take back move N and all after it, as `from N` says. Return whether that was possible."""
        number, most = words[len("from") :].strip(), len(self.sitting)
        if not is_number(number) or not 1 <= int(number) <= most:
            say(f"from needs the number of a move, 1 to {most}, as in: from {most}")
            return False
        self.sitting.cut(int(number) - 1)
        self._forget()
        return True

    def _forget(self) -> None:
        """Forget that moves were shown that have been taken back."""
        self._shown = {viewer: min(moves, len(self.sitting)) for viewer, moves in self._shown.items()}

    def _tell(self, viewer: int | None) -> None:
        """Show the moves that are new to the viewer, up to the first that it may not know yet."""
        for entry in self.sitting.history(viewer, self._shown.get(viewer, 0)):
            if entry.action is None:
                return
            say(entry_text(self.sitting.variant, entry, viewer))
            self._shown[viewer] = entry.number

    def look(self) -> bool:
        """Step through the game, move by move. Past its last move, agents play on if no person takes part.

        Return whether people play on, after `from N`.
        """
        sitting, at = self.sitting, 0
        self._show(at)
        say(LOOKING)
        if sitting.over and sitting.people:
            say(OVER)
        while True:
            try:
                words = str(typer.prompt(f"move {at}", prompt_suffix="> ", default="", show_default=False)).strip().lower()
            except typer.Abort:  # nothing more to read
                return False
            if words in ("q", "quit", "exit"):
                return False
            if words == "b":
                at = max(0, at - 1)
            elif is_number(words):
                at = self._reach(int(words))
            elif words == "e":
                at = self._reach(sitting.variant.facts.max_steps)
            elif words == "":
                at = self._reach(at + 1)
            elif words == "review" and sitting.over:
                self.show_review()
                continue
            elif words.startswith("from") and sitting.over and sitting.people:
                if self._go_back(words):
                    return True
                continue
            elif not self._command(words, None):
                say(LOOKING)
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
            say(entry_text(sitting.variant, sitting.history(None, at - 1, at)[0], None))
        position = sitting.position(at)
        typer.echo(ansi(position.picture))
        if at == len(sitting) and (sitting.over or sitting.people):
            earned = ", ".join(f"{sitting.variant.seat_name(seat)}: {value:+g}" for seat, value in enumerate(position.returns))
            say(earned if sitting.over else "the game was saved here; it is not over")
