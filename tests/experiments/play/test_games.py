"""Games at the terminal as people type them, in every game and with all commands."""

import json
import re

import numpy as np
import pytest

from dice_envs import Batch, configure
from dice_envs.core.game import names
from dice_envs.core.options import option_texts
from dice_envs.experiments.ui import console
from dice_envs.experiments.words import number_choices
from dice_envs.table.rules import rules_in_short, rules_text
from dice_envs.table.sitting import Sitting
from tests.support.commands import run
from tests.support.sittings import finish
from tests.support.variants import SMALL


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setattr(console, "width", 140)  # whatever terminal runs the tests


def play(*arguments, typed=(), stopped=False):
    """What a game shows when these lines are typed, with which it must end, or be stopped."""
    result = run("play", *arguments, input="".join(f"{line}\n" for line in typed))
    assert result.exit_code == (130 if stopped else 0), result.output
    return result.stdout


def small(game):
    return [part for option in option_texts(SMALL[game]) for part in ("-o", option)]


@pytest.mark.parametrize(
    "game", [name if name == "thirties" else pytest.param(name, marks=pytest.mark.thorough) for name in names()]
)
def test_a_whole_game_with_every_command(game, tmp_path):
    path, variant = tmp_path / "game.json", configure(game)
    number, *_ = number_choices(variant, np.flatnonzero(Batch(variant, 1, seed=1).legal()[0]).tolist())
    typed = ["help", "rules", "rules all", "hint", "?", "odds", "undo", "nonsense", "save", f"save {tmp_path}"]
    typed += [f"save {path}", str(number), "history", "undo"]
    start = [game, "random", *small(game), "--seat", 0, "--seed", 4]
    stopped = play(*start, typed=[*typed, "history", "q"], stopped=True)
    wanted = [
        "save FILE",
        rules_in_short(configure(game, **SMALL[game]))[1][:60],
        rules_text(variant.game).splitlines()[2],
        "what each choice is worth",
        "optimal play does" if game != "liars_dice" else "the others hold what their bids suggest",  # a bid that it never makes
    ]
    wanted += ["the odds:", "there is nothing to undo", "'nonsense' is no move", f"saved; `play --load {path}` goes on"]
    wanted += ["save needs the name of a file", "this is a folder; a file is needed"]
    for words in wanted:
        assert words in stopped
    assert re.search(r" \d+  you: ", stopped), "the history"
    saved = Sitting.load(json.loads(path.read_text()))
    assert (saved.seats[0], saved.mover) == ("person", 0)
    moves = ["#0", "#1", "call", "argue", *"012345"] * 60
    went_on = play("--load", path, "--review", typed=moves)
    assert re.search(r"^(you win|you lose|a tie)$", went_on, re.M)
    again = play(*start, "--review", typed=moves)
    assert went_on.split("you can play")[1:] == again.split("you can play")[1:], "as if it had not been saved"
    assert re.search(r"^you, move \d+: ", went_on, re.M) or "you: gave nothing away" in went_on
    for seat in range(1, variant.facts.num_seats):
        assert f"{saved.variant.seat_name(seat)}: " in went_on


@pytest.mark.parametrize("game", names())
def test_a_finished_game_is_stepped_through(game, tmp_path):
    path = tmp_path / "game.json"
    sitting = finish(Sitting(configure(game), 5, ["random"] * configure(game).facts.num_seats))
    sitting.save_to(path)
    result = play("--load", path, typed=["", "", "b", "2", "e", "history", "hm", "q"])
    shown = re.findall(r"^move (\d+)>", result, re.M)
    assert shown == ["0", "1", "2", "1", "2", *[str(len(sitting))] * 3]
    last = sitting.history()[-1]
    assert f"{sitting.variant.seat_name(last.seat)}: {last.words}" in result
    earned = ", ".join(f"{sitting.variant.seat_name(seat)}: {value:+g}" for seat, value in enumerate(sitting.returns))
    assert earned in result


def test_agents_are_watched(tmp_path):
    path = tmp_path / "game.json"
    arguments = ["thirties", "random", "thirties", "-o", "rounds=1", "--watch", "--seed", 3]
    result = play(*arguments, typed=["", "", f"save {path}", "e", "review", "q"])
    assert "player 1: thirties" in result
    assert "player 1: gave nothing away" in result, "optimal play at a table, by points"
    assert re.search(r"player 0, move 1: .* cost ", result)
    assert [path.exists(), len(Sitting.load_from(path))] == [True, 2]
    assert play("--load", path, typed=["e", "q"]).count("rewards:") >= 1, "agents play on"


def test_an_undo_at_the_end_plays_on():
    start = ["thirties", "random", *small("thirties"), "--seat", 0, "--seed", 4]
    result = play(*start, typed=["keep all", "undo", "2", "0", "revew", "review"])
    assert result.count("the game is over: ") == 2
    assert "did you mean 'review'?" in result
    assert re.search(r"^you, move 1: throw the 2 lowest again", result, re.M)


def test_what_one_of_two_people_chooses_is_not_told_to_the_other():
    start = ["fatestones", *small("fatestones"), "--people", 2, "--seat", 0, "--seed", 4]
    result = play(*start, typed=["", "1", "", "history", "q"], stopped=True)
    others = result.split("player 1, press Enter")[1]
    assert "player 0: has chosen" in others
    assert "seed" not in result, "it would tell both of them the other's dice"
    assert "die 1\n" not in others.split("you can play")[0]


@pytest.fixture
def thrown_again(tmp_path):
    """A turn of Thirties in which all but the highest die are always thrown again, saved."""
    path = tmp_path / "turn.json"
    finish(Sitting(configure("thirties", num_players=1), 1, ["person"])).save_to(path)
    return path


def test_a_review_tells_luck_from_play_and_the_worst_move(thrown_again, monkeypatch):
    monkeypatch.setattr("dice_envs.experiments.words.WIDEST", 140)  # a move in one line
    result = play("--load", thrown_again, "--review", typed=["review", "q"])
    once, again = (part.partition("\n")[2] for part in result.split("move 0> ")[1:])
    assert once == again, "by the command, and by --review at the end"
    assert re.search(r"^you got \d+ pips: luck [+−][\d.]+ pips, play −[\d.]+ pips$", once, re.M)
    marks = re.findall(r"^you, move \d+: .*\[(\w+)\]$", once, re.M)
    assert {"best", "slip"} <= set(marks)
    blocks, signs = once.split("luck; own moves: ")[1].splitlines()[1:3]
    assert len(blocks.strip()) == 2 + 2 * len(marks), "start, before and after each move, end"
    assert [sign for sign in signs if sign in "=~?!"] == [{"best": "=", "fine": "~", "slip": "?"}.get(x, "!") for x in marks]
    costs = {int(number): float(cost) for number, cost in re.findall(r"move (\d+): .* cost ([\d.]+) pips", once)}
    assert f"the worst move: {max(costs, key=costs.get)}, " in once


def test_a_finished_game_is_played_on_from_a_move(thrown_again):
    moves = len(Sitting.load_from(thrown_again))
    typed = ["from", f"from {moves + 1}", "from 2", "0", "from 0", "from 1", "0", ""]
    result = play("--load", thrown_again, typed=typed)
    assert result.count(f"from needs the number of a move, 1 to {moves}") == 2
    assert result.count("from needs the number of a move, 1 to 2") == 1, "the game is shorter now"
    assert result.count("you: keep all") == 2
    first = Sitting.load_from(thrown_again).history()[0].words
    started = play("--load", thrown_again, "--from", 2, typed=["history", "0", ""])
    assert f"   1  you: {first}\n" in started
    assert "   2  you" not in started
