"""`reproduce thirties`: every figure of M. Veeningen, "The game of 30s: an analysis" (2008)."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

from dice_envs.experiments import ui
from dice_envs.experiments.reproduce import Chapter, Finding, chapter_of, print_rows, printed
from dice_envs.experiments.ui.pages import saved_plot
from dice_envs.games.thirties.exact.figures import Analysis, Distribution, Player, analyse, foreknowledge, relative_skill
from dice_envs.games.thirties.exact.strategies import Dice, Rules, expected_given, named, second_stage, solve, throws

# The paper's figures, as text so that their number of digits says how closely to compare. Decimal commas are points.
SECOND_STAGE = "33.4 16.2 17.5 15.0 10.6 5.7 1.7"  # % of goes with 0 … 6 dice put aside (section 2)
EXPECTED_GIVEN = "2.957 5.881 8.805 11.729 14.653 17.544"  # x = 1 … 6 (section 2)
EXPECTED_SCORES = "3.5 8.24 13.42 18.84 24.44 30.15"  # 1 … 6 dice, maximize (section 5.1)
CASES = """0 0 0 0 0 1 120 5559 140415 2295917 26961804 243186064 1761009258 10548865640 53382512169 231819153536
    875005590819 2901709118414 8529157971990 22389985444124 52878106491024 113138747356859 220611662263293
    394418890670077 650852554950924 999741100146929 1434473497468812 1934059403898576 2463943616644536
    2861800487411056 3042036163586292 2906925982320528 2378161702400352 1546022052862848 709229931628032
    193663098021888"""  # scores 1 … 36, maximize (section 4)
ALL_CASES = "21936950640377856"
CASES_AFTER_5_5 = """0 0 0 0 1 26 286 1921 9275 34950 107257 274689 598802 1130739 1907953 2928270 4252198 5887777
    6962712 8665736 11827416 8230836 4981764 2132064 531504 0 0 0 0 0 0 0 0 0 0 0 0"""  # scores 10 … 46 (section 4)
ALL_CASES_AFTER_5_5 = "60466176"
EXCEPTIONS = (  # throw, optimal, heuristic (section 5.1)
    "15555 4 1, 15556 4 1, 25555 4 1, 25556 4 1, 35555 4 1, 35556 4 1, "
    "155555 5 1, 155556 5 1, 155566 4 1, 255555 5 1, 255556 5 1, 255566 4 1, "
    "355555 5 1, 355556 5 1, 355566 4 1, 455555 5 0, 455556 5 0"
)
STRATEGIES = {  # section 5.2: expected score, P(30 or more) in %, points below 30, above 30, for the next player
    "thirty_or_over": ("30over", "29.92 67.44 1.05 0.97 2.86"),
    "optimal": ("aggressive", "30.13 60.79 1.12 1.25 3.68"),
    "minimize_loss": ("minloss", "29.95 65.60 1.00 0.95 2.80"),
    "maximize": ("maximize", "30.15 62.17 1.07 1.23 3.60"),
    "heuristic": ("heuristic", "30.15 62.08 1.07 1.22 3.57"),
}
COLUMNS = ("expected score", "P(30 or more), %", "points below 30", "points above 30", "points for the next player")
PAPER = "Veeningen 2008, section"
# Section 6: where Dutch courts see a game of skill, and what other games have there.
LIMIT_OF_SKILL = 0.20
SKILL_ELSEWHERE = "roulette 0, black jack 0.049, simple poker about 0.40"


RULES = Rules()


@functools.cache
def _player(name: str) -> Player:
    """Return the player of a strategy of this name, which keeps what it has computed."""
    return Player(RULES, named(RULES, name))


@functools.cache
def _analysis(name: str) -> Analysis:
    return analyse(RULES, _player(name))


def position(throw: Dice, aside: Dice | None) -> str:
    """Format a position as the paper does, `5 6 6 6 | 5 5`; without the bar if `aside` is None."""
    shown = " ".join(map(str, throw))
    return shown if aside is None else f"{shown} | {' '.join(map(str, aside))}".rstrip()


def compared(section: str, name: str, published: str, ours: Fraction, note: str = "") -> Finding:
    """Return a row that agrees if ours, rounded to the digits that the paper prints, is what it prints."""
    return printed(f"{PAPER} {section}", name, published, ours, note)


def printed_by_program(name: str, published: str, ours: Fraction) -> Finding:
    """Return a row for a figure of the paper's program (section 4). It agrees to one unit in the last of its six decimals.

    Single precision holds fewer digits.
    """
    row = compared("4", name, published, ours)
    if not row.agrees and abs(ours - Fraction(published)) <= Fraction(1, 10**6):
        row.agrees = True
        row.note = "one unit off in the eighth digit"
    return row


def same(section: str, name: str, published: object, ours: object, note: str = "") -> Finding:
    """Return a row for a whole number or a text; it agrees if it is the same."""
    return Finding(f"{PAPER} {section}", name, str(published), str(ours), 0.0, str(published) == str(ours), note)


def all_rows() -> list[Finding]:
    """Return every figure of the paper beside ours."""
    parts = (_second_stage, _program_output, _optimal_strategy, _other_strategies, _luck_or_chance)
    return list(itertools.chain.from_iterable(part() for part in parts))


def _second_stage() -> Iterator[Finding]:
    chances, given = second_stage(RULES), expected_given(RULES)
    assert given is not None  # only two faces make it infinite
    for aside, (published, chance) in enumerate(zip(SECOND_STAGE.split(), chances, strict=True)):
        row = compared("2", f"{aside} dice put aside, %", published, 100 * chance)
        if not row.agrees:
            row.note = "a slip of the paper: its own formula, evaluated, gives ours"
        yield row
    again = chances[-1]
    mean = sum((count * chance for count, chance in enumerate(chances[:-1])), Fraction(0)) / (1 - again)
    yield compared("2", "chance that all come aside", "0.017", again)
    yield compared("2", "dice put aside if not all are", "1.69", mean)
    for x, published in enumerate(EXPECTED_GIVEN.split(), start=1):
        yield compared("2", f"expected points, x = {x}", published, given[x])


def _program_output() -> Iterator[Finding]:
    best, cautious, reaching = map(_player, ("maximize", "minimize_loss", "thirty_or_over"))
    yield printed_by_program("expected score, maximize", "30.151976", best.expected_score())
    found = _analysis("maximize").distribution
    yield from _cases("maximize", 1, CASES, ALL_CASES, found)
    in_text = "a slip of the paper: the count that its program printed gives ours"
    yield compared("4", "all cases / 10^14, in the text", "219.56", Fraction(found.total, 10**14), in_text)
    lines: list[tuple[Player, Dice, Dice, int, str]] = [
        (best, (3, 5, 5, 5, 6, 6), (), 4, "30.843641"),
        (cautious, (5, 6, 6, 6), (5, 5), 0, "33.000000"),
        (cautious, (6, 6, 6, 6), (5, 5), 0, "34.000000"),
    ]
    for player, throw, aside, again, score in lines:
        chosen, expected = player.advice(throw, aside)
        name = f"{player.strategy.name}, {position(throw, aside or None)}"
        yield printed_by_program(f"{name}: expected score", score, expected)
        yield same("4", f"{name}: dice to throw again", again, chosen)
    after = cautious.expected_score((5, 5))
    yield printed_by_program("minimize_loss, 5 5 aside: expected score", "28.785912", after)
    yield compared("4", "the same in the text", "29.79", after, "a slip of the paper: the program's output above it says 28.79")
    yield from _cases("minimize_loss, 5 5 aside", 10, CASES_AFTER_5_5, ALL_CASES_AFTER_5_5, cautious.distribution((5, 5)))
    compared_lines: list[tuple[Dice, Dice, str]] = [((5, 5, 6, 6, 6), (1,), "0 / 2"), ((1, 1, 5, 6, 6, 6), (), "2 / 3")]
    for throw, aside, published in compared_lines:
        ours = f"{cautious.strategy(throw, aside)} / {reaching.strategy(throw, aside)}"
        yield same("4", f"minimize_loss / thirty_or_over, {position(throw, aside)}", published, ours)


def _cases(name: str, first: int, published: str, total: str, ours: Distribution) -> Iterator[Finding]:
    """Compare the whole numbers of cases of section 4, a row for each score; its lists include scores that cannot occur."""
    for score, cases in enumerate(published.split(), start=first):
        index = score - ours.first
        inside = 0 <= index < len(ours.weights)
        if inside or cases != "0":
            yield same("4", f"{name}: cases with score {score}", cases, ours.weights[index] if inside else 0)
    yield same("4", f"{name}: all cases", total, ours.total)


def _optimal_strategy() -> Iterator[Finding]:
    best, thumb = _player("maximize").strategy, _player("heuristic").strategy
    reaching = _player("thirty_or_over").strategy
    again, score = _player("maximize").advice((4, 5, 5, 5, 5, 6))
    yield same("1.4", "maximize, 4 5 5 5 5 6: dice to throw again", 5, again)
    yield compared("1.4", "maximize, 4 5 5 5 5 6: expected score", "30.44", score)
    examples: list[tuple[str, Dice, Dice, int]] = [
        ("1.3", (3, 6), (5, 5, 5, 6), 0),
        ("1.3", (3, 6), (6, 6, 6, 6), 1),
        ("1.4", (4, 5, 5, 5, 5, 6), (), 0),
    ]
    for section, throw, aside, wanted in examples:
        name = f"thirty_or_over, {position(throw, aside or None)}"
        yield same(section, f"{name}: dice to throw again", wanted, reaching(throw, aside))
    choices = {throw: (best(throw), thumb(throw)) for dice in range(1, 7) for throw, _ in throws(dice, 6)}
    ours = {throw: f"{one} / {other}" for throw, (one, other) in choices.items() if one != other}
    listed: list[Dice] = []
    for entry in EXCEPTIONS.split(", "):
        digits, one, other = entry.split()
        throw = tuple(map(int, digits))
        listed.append(throw)
        yield same("5.1", f"{' '.join(digits)}: optimal / heuristic", f"{one} / {other}", ours.get(throw, "the same"))
    yield same("5.1", "exceptions that the tables do not list", 0, len(set(ours) - set(listed)))
    yield same("5.1", "exceptions with four dice or fewer", 0, sum(len(throw) <= 4 for throw in ours))
    for dice, published in enumerate(EXPECTED_SCORES.split(), start=1):
        expected = _player("maximize").expected_with(dice)
        yield compared("5.1", f"expected score with {dice} dice, maximize", published, expected)


def _other_strategies() -> Iterator[Finding]:
    for name, (label, line) in STRATEGIES.items():
        for row in _columns(label, line, _analysis(name)):
            if not row.agrees and name == "optimal":
                row.note = "by the second stage's expected points; the paper weighed pips above 30 in another way, see below"
            yield row
    for name, published in (("sixes", "29.8"), ("fives_and_sixes", "29.64")):
        yield compared("1.3", f"{name}: expected score", published, _analysis(name).score)


def _columns(name: str, published: str, found: Analysis) -> list[Finding]:
    """Compare a strategy's figures with a line of section 5.2."""
    assert found.given is not None
    values = (found.score, 100 * found.reached, found.below, found.above, found.given)
    return [
        compared("5.2", f"{name}: {heading}", figure, ours)
        for heading, figure, ours in zip(COLUMNS, published.split(), values, strict=True)
    ]


def explained() -> Iterator[Finding]:
    """Explain the paper's strategy "aggressive": a pip above 30 counts as a fixed number of points below it.

    The weights that give all five published figures are searched for among hundredths.
    """
    label, _ = STRATEGIES["optimal"]
    tried = {weight: _weighed(weight) for weight in range(200, 500)}
    fitting = {weight: rows for weight, rows in tried.items() if all(row.agrees for row in rows)}
    if not fitting:
        yield same("5.2", f"{label}: a weight of pips above 30 that gives all figures", "some", "none from 2 to 5")
        return
    low, high = min(fitting), max(fitting)
    for row in fitting[(low + high) // 2]:
        row.note = f"as all weights from {low / 100} to {high / 100} give it"
        yield row


def _weighed(weight: int) -> list[Finding]:
    """Compare the paper's figures with the best strategy if a pip above 30 is worth `weight` hundredths of a point."""
    label, line = STRATEGIES["optimal"]

    def value(score: int) -> Fraction:
        above = Fraction(score - RULES.target)
        return above * weight / 100 if above > 0 else above

    return _columns(f"{label}, a pip above 30 as {weight / 100} points below", line, analyse(RULES, solve(RULES, value)[0]))


def _luck_or_chance() -> Iterator[Finding]:
    best = _analysis("maximize").score
    knowing = foreknowledge(RULES).mean
    yield compared("6", "expected score, optimal", "30.1520", best)
    simulated = (
        "the paper simulated it; in ours throws after different choices are independent. One sequence of numbers for all "
        "choices would be another way to fix them, which is not computed here"
    )
    yield compared("6", "expected score with foreknowledge", "32.73", knowing, simulated)
    yield compared("6", "beginner: expected score", "29.7232", _analysis("beginner").score)
    for name, published in (("beginner", "0.14"), ("heuristic", "0.0024")):
        skill = relative_skill(_analysis(name).score, best, knowing)
        verdict = "chance" if skill < LIMIT_OF_SKILL else "skill"
        note = f"a game of {verdict}: the limit is {LIMIT_OF_SKILL}; {SKILL_ELSEWHERE} by the paper"
        yield compared("6", f"relative skill against {name}", published, skill, note)


def main(json: ui.JsonOption = None, report: ui.ReportOption = None) -> Chapter:
    """The game of 30s: every figure of M. Veeningen's analysis (2008), all of them exact.

    A figure agrees if ours, rounded to the digits that the paper prints, is what it prints.
    """
    rows = [*all_rows(), *explained()]
    for source, group in itertools.groupby(sorted(rows, key=lambda row: row.source), key=lambda row: row.source):
        print_rows(source, list(group), digits=6)
    ui.console.print(f"{sum(bool(row.agrees) for row in rows)} of {len(rows)} figures agree")
    title = "The game of 30s: M. Veeningen, “The game of 30s: an analysis” (2008)"
    return chapter_of(title, {"rows": rows}, json, report, _draw)


def _draw(folder: Path) -> None:
    """Save the paper's plot: the distribution of the score under each strategy of section 5.2."""
    caption = "The exact distribution of the score under each strategy of section 5.2; the dotted line is the target of 30."
    with saved_plot(folder, "thirties_scores", caption, figsize=(9, 5)) as (_, axes):
        for name, (label, _) in STRATEGIES.items():
            found = _analysis(name).distribution
            scores = range(found.first, found.first + len(found.weights))
            share = [100 * weight / found.total for weight in found.weights]
            axes.plot(scores, share, linewidth=1, label=label)
        axes.axvline(30, color="grey", linewidth=0.8, linestyle=":")
        axes.set(xlim=(17.5, 36.5), ylim=(0, None), xlabel="score", ylabel="chance, %")
        axes.set_title("The game of 30s: scores of the strategies")
        axes.locator_params(axis="x", integer=True)
        axes.legend(loc="upper left")
