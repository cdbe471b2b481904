"""Words at the terminal: how people name a move, why a word is not a move now, and choices, advice and reviews as text."""

from __future__ import annotations

import functools
import itertools
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import typer

from dice_envs import Variant
from dice_envs.core.options import did_you_mean, shown
from dice_envs.experiments.ui import console
from dice_envs.table.advice import Advice, Judged, Review, Split, level, noted
from dice_envs.table.sitting import Entry, Sitting

MOST_LISTED = 12  # legal actions; of more, the first and the last are listed
MOST_ADVISED = 8  # rows of a hint or of odds
WIDEST = 100  # characters of a line that reads well
COMMANDS = {
    "help": "this",
    "rules": "the rules in force, in a few lines; `rules all` adds sources and how they are read",
    "hint": "what each choice is worth, with optimal play afterwards where that is known; ? is short for it",
    "odds": "the chances of each choice",
    "undo": "take back your last move and all after it",
    "history": "the moves so far, as far as you may know them",
    "save FILE": "write the game into a file; `play --load FILE` continues it",
    "quit": "stop; q is short for it",
}
AFTER = "review, history, undo, from N: play on from the position before move N, save FILE; Enter leaves"
LOOKING = "Enter: next move, b: back, a number: to that move, e: to the end, history, save FILE, q: leave"
OVER = "the game is over: review, from N: play on from the position before move N"
BLOCKS = "▁▂▃▄▅▆▇█"
SIGNS = {"best": "=", "fine": "~", "slip": "?", "blunder": "!"}  # of a mark, in one column
COLOURS = {"best": "green", "fine": "green", "slip": "yellow", "blunder": "red"}
LEGEND = f"+ - luck; own moves: {', '.join(f'{sign} {mark}' for mark, sign in SIGNS.items())}"
LEAST_LUCK = 0.005  # share of the graph's range; the sign of a smaller change is left out


def width() -> int:
    """Return the number of characters of a line of text on this terminal."""
    return min(WIDEST, console.width)


def say(text: str) -> None:
    """Print text; break lines that are too long for the terminal between words, below the second column if there are two."""
    for line in text.split("\n"):
        columns = re.match(r" +\S+(?: \S+)*  +(?=\S)", line)
        indent = " " * (columns.end() if columns else len(line) - len(line.lstrip()) + 2)
        typer.echo(textwrap.fill(line, width(), subsequent_indent=indent, break_on_hyphens=False, break_long_words=False))


def plain(words: str) -> str:
    """Return words without case, blanks and signs: "3 x 5", "3x5" and "3 5" become the same."""
    return " ".join(re.findall(r"[a-wyz]+|\d+", words.lower()))


def is_number(words: str) -> bool:
    """Return whether the words are a whole number, such as that of a choice."""
    return re.fullmatch(r"[0-9]{1,9}", words) is not None


@functools.lru_cache(maxsize=8)
def _own_numbers(variant: Variant) -> dict[int, int] | None:
    """Return number → action for all actions of the variant, from the numbers in their words; None if those do not fit."""
    moves = [variant.describe_action(action) for action in range(variant.facts.num_actions)]
    if all(move.kind == "die" for move in moves):
        return {move.numbers[0]: action for action, move in enumerate(moves)}
    if any(move.numbers for move in moves) and all(move.numbers in ((), (action,)) for action, move in enumerate(moves)):
        return {action: action for action in range(len(moves))}
    return None


def number_choices(variant: Variant, legal: Sequence[int]) -> dict[int, int]:
    """Return number → legal action, for choosing by number.

    A number never contradicts the words. If each action has a die of its own ("die 2"), its number is used;
    so is a number in the words that equals the action ("throw the 2 lowest again"). Otherwise legal actions count from 1.
    """
    own = _own_numbers(variant)
    if own is None:
        return dict(enumerate(legal, 1))
    return {number: action for number, action in own.items() if action in legal}


def _meant(variant: Variant, said: str, actions: Iterable[int], numbers: Mapping[int, int]) -> list[int]:
    """Return the actions that are meant: those of these words, else that of this number, else those whose words begin so."""
    wanted = plain(said)
    meanings = {action: plain(variant.describe_action(action)) for action in actions if wanted}
    exact = [action for action, meaning in meanings.items() if meaning == wanted]
    if exact or not is_number(said):
        return exact or [action for action, meaning in meanings.items() if meaning.startswith(wanted)]
    return [numbers[int(said)]] if int(said) in numbers else []


def choose(variant: Variant, legal: Sequence[int], words: str) -> int | None:
    """Return the legal action that a person means, None if none or several are meant.

    It may be named by its words, its number in the list, the first letters of its words, or `#` and the environments' number.
    """
    said = words.strip()
    if re.fullmatch(r"#\s*\d{1,9}", said):
        meant = [int(said.lstrip("# "))]
    else:
        meant = _meant(variant, said, legal, number_choices(variant, legal))
    return meant[0] if len(meant) == 1 and meant[0] in legal else None


def explain_mistake(variant: Variant, state: Any, legal: Sequence[int], words: str) -> str:
    """Explain in one line why words that `choose` does not understand are not a move now."""
    said = words.strip()
    meant = _meant(variant, said, range(variant.facts.num_actions), _own_numbers(variant) or {})
    if len(meant) == 1 and meant[0] not in legal:
        return variant.why_not(state, meant[0]).text()
    several = [variant.describe_action(action) for action in meant if action in legal]
    if len(several) > 1:
        return f"{shown(said)} could be {', '.join(several[:3])}{' …' if len(several) > 3 else ''}"
    if is_number(said):
        numbers = sorted(number_choices(variant, legal))
        whole = numbers == list(range(numbers[0], numbers[-1] + 1))
        pick = f"{numbers[0]} to {numbers[-1]}" if whole and len(numbers) > 2 else " or ".join(map(str, numbers))
        return f"there is no choice {said}; pick {pick}"
    known = {variant.describe_action(action).lower() for action in legal} | {name.split()[0] for name in COMMANDS}
    near = did_you_mean(said.lower(), sorted(known))
    return f"{shown(said)} is no move{near or '; help says what can be typed'}"


def listed(variant: Variant, legal: Sequence[int]) -> str:
    """Return the legal actions with their numbers, in lines; the middle of a long list is left out."""
    items = [f"{number}: {variant.describe_action(action)}" for number, action in number_choices(variant, legal).items()]
    if len(items) > MOST_LISTED:
        half = MOST_LISTED // 2
        items = [*items[:half], "…", *items[-half:]]
    lines = [""]
    for item in items:
        if lines[-1] and len(lines[-1]) + 3 + len(item) > width():
            lines.append("")
        lines[-1] += ("   " if lines[-1] else "") + item
    return "\n".join(lines)


def help_text(variant: Variant) -> str:
    """Return the answer to `help`: how moves are named, and the commands."""
    example = variant.describe_action(0)
    lines = [
        f"A move is its number in the list, its words ({example}), or the beginning of its words if no other move shares it."
    ]
    if example.kind == "bid":
        lines.append("Signs may be left out. A number alone is always a number in the list: 3 5 is 3 x 5, and 35 is choice 35.")
    return "\n".join([*lines, "Or type:", *(f"  {name:10} {what}" for name, what in COMMANDS.items())])


def advice_text(advice: Advice) -> str:
    """Return advice in a sentence, if it has one, and as a table, the best choices first."""
    rows = advice.rows[:MOST_ADVISED]
    words, texts = max(len(row.words) for row in rows), max(len(row.text) for row in rows)
    lines = [*filter(None, [advice.sentence]), f"{advice.title}: {advice.meaning}"]
    for row in rows:
        share = "" if row.share is None else f"   optimal play does it {100 * row.share:5.1f} % of the time"
        lines.append(f"  {row.words:{words}}  {row.text:>{texts}}{share}")
    if len(advice.rows) > len(rows):
        lines.append(f"  … and {len(advice.rows) - len(rows)} more that are worth no more")
    return "\n".join([*lines, f"({noted(advice)})"])


def entry_text(variant: Variant, entry: Entry, viewer: int | None) -> str:
    """Return a move with its notes, in lines."""
    said = f"{variant.seat_name(entry.seat, viewer)}: {entry.words}"
    return "\n".join([said, *(f"  {note}" for note in entry.notes)])


# --- reviews -----------------------------------------------------------------------------------------------------------


def review_lines(found: Review, sitting: Sitting, viewer: int | None, commands: bool = True) -> Iterator[str]:
    """Yield the lines of a review, in colours. The viewer, if any, is called "you"; `commands` names those of the terminal."""
    for move in found.moves:
        mark = typer.style(f"[{move.mark}]", fg=COLOURS[move.mark])
        yield f"{sitting.variant.seat_name(move.seat, viewer)}, {move.text}  {mark}"
    for seat, text in found.texts.items():
        yield f"{sitting.variant.seat_name(seat, viewer)}: {text}"
        split, worst = found.splits.get(seat), found.worst.get(seat)
        if split is not None:
            yield split.text
            yield from graph_lines(split, [move for move in found.moves if move.seat == seat])
        if worst is not None:
            onward = f"; `from {worst.number}` plays on from there" if commands and seat in sitting.people else ""
            yield f"the worst move: {worst.number}, {worst.words}{onward}"
    if found.note:
        yield f"({noted(found)})"


def graph_lines(split: Split, moves: Sequence[Judged]) -> Iterator[str]:
    """Yield a seat's expected result along a game: a line of blocks, and below it what changed it, `moves` among others."""
    values = [point.value for point in split.points]
    low, high = (0.0, 1.0) if split.scale.unit.is_share else (min(values), max(values))
    span = max(high - low, 1e-9)
    marks = {move.number: move.mark for move in moves}
    blocks = [BLOCKS[min(len(BLOCKS) - 1, int((value - low) / span * len(BLOCKS)))] for value in values]
    columns = [(blocks[0], " ", "")]
    for block, (before, point) in zip(blocks[1:], itertools.pairwise(split.points), strict=True):
        change = (point.value - before.value) / span
        mark = marks[point.number] if point.by == "play" else None
        sign = SIGNS[mark] if mark else " " if abs(change) < LEAST_LUCK else "+" if change > 0 else "-"
        columns.append((block, sign, COLOURS[mark] if mark else "blue"))
    what = "chance to win" if split.scale.unit.is_share else f"expected {split.scale.unit}"
    yield f"{what}: {level(split.start, split.scale)} at the start, {level(split.result, split.scale)} at the end   ({LEGEND})"
    most = width() - 2
    for first in range(0, len(columns), most):
        part = columns[first : first + most]
        yield "  " + "".join(typer.style(block, fg=colour or None) for block, _, colour in part)
        yield "  " + "".join(typer.style(sign, fg=colour or None) for _, sign, colour in part)
