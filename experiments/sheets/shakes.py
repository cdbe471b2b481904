"""The score sheet of The Shakes: treatments and their maesters, efficacies, boxes to tick for patients treated and saved."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from dice_envs import Variant
from dice_envs.experiments.sheets import Paper, Sheet
from dice_envs.games.shakes import TREATMENTS, Options
from dice_envs.pictures.drawing import (
    EDGE,
    GOLD,
    GOLD_EDGE,
    INK,
    LEADING,
    PAPER,
    SOFT,
    Circle,
    Rect,
    Shape,
    Text,
    text_width,
    wrapped,
)

__all__ = ["sheet"]

MARGIN = 40
TITLE, HEADING, NAME, WORDS, SMALL = 24.0, 9.0, 11.5, 9.5, 8.0  # sizes of letters
LETTER = 0.54  # mean width of a letter of running text / its size
NAMES, EFFICACY, LABEL = 112, 58, 42  # widths of columns; boxes have the rest
ROW, BOX, GAP = 46, 13.0, 1.6  # height of a row; boxes, as large as they may be
MOST_BOXES = 24  # in a line; more patients are counted by tally marks
MOST_NUMBERED = 40  # patients of a team that have a box each
MOST_COUNTED = 30  # patients of a team for which there are numbers to cross off when one is saved
IN_LINE, TRACK = 20, 24.5  # boxes of the team's track, and the room that each takes


def sheet(variant: Variant, paper: Paper) -> Sheet:
    """Draw the page for these options."""
    options: Options = variant.options
    shapes = list(itertools.chain(_head(options, paper), _table(options, paper)))
    y: float = _HEAD + ROW * options.num_players + 26
    if not options.competitive:
        more, y = _team(options, paper, y)
        shapes += more
    shapes += _rules(options, paper, y)
    shapes += _foot(options, paper)
    title = f"The Shakes: score sheet for {_players(options)}"
    return Sheet(title, f"{title}; {_aim(options)}.", tuple(shapes))


_HEAD = MARGIN + 72  # where the first row begins


def _players(options: Options) -> str:
    if options.mode == "physician":
        return f"a physician with {options.num_players} treatments"
    return f"{options.num_players} maesters"


def _aim(options: Options) -> str:
    if options.competitive:
        return f"the first to save {options.to_win} wins"
    who = "the physician" if options.mode == "physician" else "the team"
    return f"{options.patients} patients, {who} wins with {options.to_win} saved or more"


def _head(options: Options, paper: Paper) -> Iterator[Shape]:
    right = paper.width - MARGIN
    yield Text(MARGIN, MARGIN + TITLE, ("The Shakes",), TITLE, INK, bold=True)
    yield Text(MARGIN, MARGIN + TITLE + 18, (f"{_players(options)}: {_aim(options)}",), 11, SOFT)
    yield Text(right - 104, MARGIN + TITLE, ("date",), HEADING, SOFT)
    yield from _line(right - 82, MARGIN + TITLE + 2, 82)


def _line(x: float, y: float, width: float) -> Iterator[Shape]:
    """Draw a line to write on."""
    yield Rect(x, y, width, 0.7, 0, SOFT)


def _fitted(x: float, y: float, text: str, width: float, bold: bool = False) -> Text:
    """Draw a name, in smaller letters if it would not fit."""
    return Text(x, y, (text,), min(NAME, NAME * width / text_width(text, NAME, bold)), INK, bold=bold)


# --- the table --------------------------------------------------------------------------------------------------------


def _table(options: Options, paper: Paper) -> Iterator[Shape]:
    """Draw a row for each treatment: names, efficacy, and two lines of boxes."""
    left, width = MARGIN, paper.width - 2 * MARGIN
    held = options.mode == "maesters" or options.maesters is not None
    columns = (["maester"] if held else []) + ["treatment"]
    tally = left + NAMES * len(columns) + EFFICACY
    for i, heading in enumerate([*columns, "efficacy"]):
        yield Text(left + NAMES * i + 6, _HEAD - 7, (heading,), HEADING, SOFT, bold=True)
    yield Text(tally, _HEAD - 7, ("patients",), HEADING, SOFT, bold=True)
    for seat in range(options.num_players):
        top = _HEAD + ROW * seat
        middle = top + ROW / 2
        yield Rect(left, top, width, ROW - 5, 5, PAPER, EDGE, 1)
        names = ([options.maesters[seat] if options.maesters else ""] if held else []) + [
            options.treatment_names[seat] if options.treatments is not None else ""
        ]
        for i, name in enumerate(names):
            x = left + NAMES * i + 6
            if name:
                yield _fitted(x, middle + 1.5, name, NAMES - 14, bold=i == 0)
            else:
                yield from _line(x, middle + 5, NAMES - 16)
        cell = left + NAMES * len(columns) + 8
        yield Rect(cell, top + 8.5, 26, 26, 4, PAPER, INK, 1)
        if options.competitive:
            yield Text(cell + 13, top + 26.5, (str(options.efficacy),), 14, INK, "middle", bold=True)
        most = options.patients
        yield from _boxes(tally, top + 5.5, left + width - tally - 6, "treated", most)
        yield from _boxes(tally, top + 23, left + width - tally - 6, "saved", options.to_win if options.competitive else most)


def _boxes(x: float, y: float, width: float, label: str, count: int) -> Iterator[Shape]:
    """Draw boxes to tick, with a wider gap after every fifth; one long box for tally marks instead of too many."""
    yield Text(x, y + 10, (label,), HEADING, SOFT)
    x, room = x + LABEL, width - LABEL
    if count > MOST_BOXES:
        yield Rect(x, y, room, BOX, 2, PAPER, SOFT, 0.8)
        return
    fives = 3 * ((count - 1) // 5)
    size = min(BOX, (room - fives) / count - GAP)
    for k in range(count):
        yield Rect(x + k * (size + GAP) + 3 * (k // 5), y + (BOX - size) / 2, size, size, 2, PAPER, SOFT, 0.8)


# --- the team ---------------------------------------------------------------------------------------------------------


def _team(options: Options, paper: Paper, y: float) -> tuple[list[Shape], float]:
    """Draw the patients one by one, and numbers to count those saved; return the shapes and where they end."""
    shapes: list[Shape] = [Text(MARGIN, y, ("all patients",), HEADING, SOFT, bold=True)]
    if options.patients > MOST_NUMBERED:
        shapes.append(Rect(MARGIN + 70, y - 12, paper.width - 2 * MARGIN - 70, 18, 3, PAPER, SOFT, 0.8))
        return shapes, y + 28
    said = "write down the treatment that each got" if options.mode == "physician" else "write down who treated each"
    shapes.append(
        Text(MARGIN + 62, y, (f"{said}, and cross out those who died; {options.to_win} survivors win",), HEADING, SOFT)
    )
    y += 8
    for k in range(options.patients):
        x, top = MARGIN + TRACK * (k % IN_LINE), y + (TRACK + 2) * (k // IN_LINE)
        shapes.append(Rect(x, top, TRACK - 3, TRACK - 3, 3, PAPER, SOFT, 0.8))
        shapes.append(Text(x + 2.5, top + 7.5, (str(k + 1),), 6, SOFT))
    y += (TRACK + 2) * (-(-options.patients // IN_LINE)) + 6
    if options.patients > MOST_COUNTED:
        return shapes, y + 18
    shapes.append(Text(MARGIN, y + 9, ("saved",), HEADING, SOFT))
    for k in range(options.patients):
        x, top = MARGIN + 36 + 16 * k, y + 6
        fill, edge = (GOLD, GOLD_EDGE) if k + 1 == options.to_win else (PAPER, SOFT)
        shapes.append(Circle(x, top, 6.2, fill, edge, 0.9))
        shapes.append(Text(x, top + 2.2, (str(k + 1),), 6, SOFT, "middle"))
    return shapes, y + 38


# --- the rules --------------------------------------------------------------------------------------------------------


def _rules(options: Options, paper: Paper, y: float) -> Iterator[Shape]:
    yield Text(MARGIN, y, ("How to play",), 12, INK, bold=True)
    y += 17
    letters = int((paper.width - 2 * MARGIN - 16) / (LETTER * WORDS))
    for number, rule in enumerate(_how_to_play(options), 1):
        lines = wrapped(rule, letters)
        yield Text(MARGIN, y, (f"{number}.",), WORDS, INK, bold=True)
        yield Text(MARGIN + 16, y, lines, WORDS, INK)
        y += WORDS * LEADING * len(lines) + 4


def _how_to_play(options: Options) -> list[str]:
    """Return the rules in a few words, for these options."""
    physician = options.mode == "physician"
    dealt = ", ".join(map(str, options.efficacies))
    rules = []
    if options.treatments is None:
        rules.append("Name the treatments, no two alike. A name changes nothing but the talk.")
    if options.competitive:
        rules.append(f"Every treatment has efficacy {options.efficacy}.")
    elif options.open_efficacies:
        who = "For every treatment throw" if physician else "Every maester throws"
        rules.append(
            f"{who} two dice; from the highest total to the lowest they get efficacies {dealt}, and equal totals are "
            "thrown again. Write them into the column for all to see."
        )
    else:
        rules.append(
            f"Somebody who does not play deals the efficacies {dealt} in secret, throws a die for each patient out of sight, "
            "and tells only whether the patient recovers. The column is filled in at the end."
        )
    if physician:
        rules.append("Choose a treatment for each patient as it comes.")
    else:
        ties = "throw again" if options.ties == "again" else "let chance decide"
        rules.append(
            "Over each patient the maesters argue: throw one die and another for each patient you have treated so far, take "
            "away the lowest, as many as you have saved, and keep the lowest that is left."
        )
        rules.append(
            f"Whoever keeps the highest die treats the patient; those who tie {ties}. As a variant one may stay silent while "
            "somebody else argues."
        )
    die = (
        "The patient recovers if a die shows"
        if not options.known
        else "Throw one die for the patient, who recovers if it shows"
    )
    rules.append(f"{die} the efficacy or less. Tick a box beside treated, and one beside saved if the patient lives.")
    if options.competitive:
        end = f" After {options.patients} patients nobody has won." if options.num_patients is not None else ""
        rules.append(f"The first to save {options.to_win} wins.{end}")
    else:
        who = "you have won" if physician else "the team has won"
        rules.append(f"After {options.patients} patients {who} if {options.to_win} or more of them live.")
    return rules


def _foot(options: Options, paper: Paper) -> Iterator[Shape]:
    y = paper.height - MARGIN
    if options.treatments is None:
        letters = int((paper.width - 2 * MARGIN) / (LETTER * SMALL))
        lines = wrapped(f"Treatments to choose from: {', '.join(TREATMENTS)}, or your own.", letters)
        yield Text(MARGIN, y - 14 - SMALL * LEADING * (len(lines) - 1), lines, SMALL, SOFT)
    source = "After The Shakes by Allen Downey (2020), AllenDowney/TheShakes on GitHub, Creative Commons BY-NC-SA 4.0."
    yield Text(MARGIN, y, (source,), SMALL, SOFT)
