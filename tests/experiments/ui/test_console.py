"""Shared parts of commands: verbatim output, results that survive a full disk, errors in one line, progress."""

import errno
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import typer

from dice_envs import configure
from dice_envs.core.work import advance
from dice_envs.experiments.reproduce import Finding
from dice_envs.experiments.ui import check_writable, finish, one_line_errors, progress, write_json
from dice_envs.experiments.ui.pages import bars, logarithmic, saved_plot
from dice_envs.games.liars_dice.exact.report import HATCHES
from tests.conftest import ROOT
from tests.support.commands import error_of, process, run, with_json
from tests.support.policies import save_random_policy
from tests.support.subsets import few

COMMAND = "-m", "experiments"
ARENA = ["arena", "fatestones", "random", "random", "--games", "20", "--seed", "1"]
FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def full(*args, **kwargs):
    raise FULL


def last_json(output):
    return json.JSONDecoder().raw_decode(output[output.index("\n{\n") + 1 :])[0]


def test_brackets_are_brackets(tmp_path):
    """Paths and agents' names were once read as rich's markup, which lost results before the JSON was written."""
    folder = tmp_path / "[" / "y]" / ":smile:$x"
    folder.mkdir(parents=True)
    agent = f"ppo:{save_random_policy(folder / 'policy.npz', configure('fatestones'))}"
    result, data = with_json(folder, "arena", "fatestones", agent, "random", "--games", 10, "--report", folder)
    assert data["agents"] == [agent, "random"]
    assert "[/y]/:smile:$x" in result.replace("\n", "").replace(" ", "")
    assert f"plot: {folder / 'arena_fatestones.png'}" in result


# --- results that must not be lost ----------------------------------------------------------------------------------


def test_files_that_cannot_be_written_at_the_end(tmp_path, monkeypatch):
    """They print the table, then the JSON on standard output, then one line that names every file."""
    monkeypatch.setattr(Path, "write_text", full)
    out, log = tmp_path / "out.json", tmp_path / "log.csv"
    result = run(*ARENA, "--json", out, "--log", log, "--report", tmp_path)
    line = error_of(result)
    for path in (out, log):
        assert f"{path}: No space left on device" in line
    assert "% won" in result.stdout
    assert last_json(result.stdout)["games"] == 20
    assert [path.name for path in tmp_path.iterdir()] == ["arena_fatestones.png"], "what could be written is there"


@few(
    3,
    "command",
    [
        ["solve", "fatestones", "--draws", "100"],
        ["solve", "score-dice", "-o", "pool_a=6", "-o", "pool_b=6"],
        ["solve", "shakes", "-o", "num_players=2", "--policy", "random"],
        ["solve", "thirties", "--strategy", "sixes"],
        ["reproduce", "thirties", "--report", "report"],
        pytest.param(
            ["reproduce", "liars-dice", "--games", "10", "--dice", "1", "--report", "report"], marks=pytest.mark.thorough
        ),
    ],
)
def test_every_result_goes_to_the_terminal_if_nowhere_else(command, tmp_path, monkeypatch):
    monkeypatch.setattr("dice_envs.experiments.ui.SOON", float("inf"))  # kernels may compile for longer
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Path, "write_text", full)
    result = run(*command, "--json", "out.json")
    assert error_of(result) == "error: out.json: No space left on device"
    assert last_json("\n" + result.stdout)
    assert ("--report" in command) == bool(list(tmp_path.glob("report/*.png")))


@pytest.mark.thorough
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_standard_output_on_a_full_disk(tmp_path):
    with open("/dev/full", "w") as nowhere, process(*COMMAND, *ARENA, "--json", tmp_path / "out.json", stdout=nowhere) as arena:
        errors = arena.stderr.read()
    assert arena.returncode == 2
    assert errors.startswith("error: standard output cannot be written (No space left on device); the rest follows here\n")
    assert "% won" in errors
    assert "Traceback" not in errors
    assert "Exception ignored" not in errors
    assert json.loads((tmp_path / "out.json").read_text())["games"] == 20


@pytest.mark.thorough
def test_a_reader_that_has_had_enough(tmp_path):
    """`arena ... | head -1` ends quietly, and its files are written."""
    read, write = os.pipe()
    os.close(read)
    with process(*COMMAND, *ARENA, "--json", tmp_path / "out.json", stdout=write) as arena:
        os.close(write)
        assert arena.stderr.read() == ""
    assert arena.returncode == 1
    assert json.loads((tmp_path / "out.json").read_text())["games"] == 20


@pytest.mark.thorough
def test_characters_that_the_terminal_does_not_have():
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    with process(*COMMAND, *ARENA, env=environment) as arena:
        assert r"% won \xb1 95 % interval" in arena.stdout.read()
        assert arena.stderr.read() == ""
    assert arena.returncode == 0


@pytest.mark.thorough
@pytest.mark.parametrize(
    "command",
    ["play thirties <&-", "play thirties --watch <&-", "play thirties <&- >&-", "play thirties 0>/dev/null", "mcp <&-"],
)
def test_a_process_that_cannot_read_ends_with_a_line(command):
    line = f"exec {sys.executable} -m experiments {command}"
    done = subprocess.run(["sh", "-c", line], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode in (0, 2, 130)
    assert len(done.stderr.splitlines()) <= 1, done.stderr


def test_a_folder_is_made_where_something_is_written(tmp_path):
    check_writable(tmp_path / "new" / "file")
    assert not (tmp_path / "new").exists(), "nothing is made before the work"
    write_json(tmp_path / "new" / "er" / "file", 1)
    assert (tmp_path / "new" / "er" / "file").is_file()


def test_json_is_whole_or_on_the_terminal(tmp_path, capsys):
    """An estimate from a few games may be infinite, which must not lose the other figures."""
    rows = [Finding("", "closeness", 0.3, math.inf, math.nan)]
    write_json(tmp_path / "a.json", {"a": np.float32(0.5), "b": np.array([-np.inf, 1]), "c": Path("d"), "rows": rows})
    found = json.loads((tmp_path / "a.json").read_text())
    assert (found["rows"][0].pop("ours"), found["rows"][0].pop("error")) == (None, None)
    assert found == {"a": 0.5, "b": [None, 1], "c": "d", "rows": [mock.ANY]}
    wide = {"a": "x" * 1000}
    with pytest.raises(FileExistsError):
        write_json(tmp_path / "a.json" / "b.json", wide)  # below a file
    assert json.loads(capsys.readouterr().out) == wide, "long lines stay whole"
    write_json(None, wide)
    assert capsys.readouterr().out == ""


def text_of(problem, capsys):
    with pytest.raises(typer.Exit) as caught, one_line_errors():
        raise problem
    (line,) = capsys.readouterr().err.splitlines()
    return caught.value.exit_code, line


def test_errors_are_one_line(capsys):
    assert text_of(ValueError("a\nb\r\n\tc\u2028d"), capsys) == (2, "error: a b c d")
    assert text_of(ValueError(), capsys) == (2, "error: ValueError")
    assert text_of(FileNotFoundError(2, "not there", "a\nb"), capsys) == (2, "error: a b: not there")
    assert text_of(MemoryError("8 GiB"), capsys) == (2, "error: out of memory: 8 GiB")
    for problem in (KeyboardInterrupt(), typer.Abort()):
        assert text_of(problem, capsys) == (130, "stopped")
    code, line = text_of(ValueError("x" * 10**6), capsys)
    assert code == 2
    assert len(line) < 1100


@pytest.mark.parametrize(
    ("problems", "raised", "words"),
    [
        ([BrokenPipeError(), OSError(errno.ENOSPC, "full", "a"), ValueError("b")], OSError, "^a: full; b$"),
        ([ValueError("b"), ZeroDivisionError("a bug")], ZeroDivisionError, "a bug"),  # which keeps its traceback
        ([BrokenPipeError("gone")] * 2, BrokenPipeError, "gone"),
        ([ValueError("b")], ValueError, "b"),
    ],
)
def test_finish_does_every_part(problems, raised, words):
    parts = [mock.Mock(side_effect=problem) for problem in [*problems, None]]
    with pytest.raises(raised, match=words):
        finish(*parts)
    assert [part.call_count for part in parts] == [1] * len(parts)
    finish(parts[-1])


# --- progress -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("label", "total", "told", "lines"),  # `told`: the second and what has been done since
    [
        (
            "3 × 2,000 games",
            6000,
            [(second, 60 if second > 5 else 0) for second in range(1, 70)],
            ["5 %, 300 of 6,000, about 3 min", "35 %, 2,100 of 6,000, about 72 s"],
        ),
        (
            "[games]",
            10,
            [(11, 0), (41, 1), (9000, 1)],
            ["0 %, 0 of 10", "10 %, 1 of 10, about 4 min", "20 %, 2 of 10, about 10.0 h"],
        ),
        ("measuring", None, [(11, 0.001), (21, 0.019), (31, 0.0), (51, 0.48)], ["0 %", "2 %, about 9 min", "50 %, about 40 s"]),
    ],
)
def test_progress_without_a_terminal_is_a_line_now_and_then(label, total, told, lines, capsys):
    now = 0.0
    with progress(label, total, lambda: now) as bar:
        for second, amount in told:
            now = float(second)
            bar.advance(amount, 1)
        shown = capsys.readouterr().err.splitlines()
    assert shown == [f"{label}: {line} left" if "about" in line else f"{label}: {line}" for line in lines]


def test_progress_that_cannot_be_told_stops_no_work(monkeypatch):
    monkeypatch.setattr("dice_envs.experiments.ui.typer.echo", full)
    with progress("games", 10, iter((0.0, 11.0, 11.0)).__next__):
        advance()


def test_a_terminal_gets_a_bar_and_a_log_lines(capsys, monkeypatch):
    """FORCE_COLOR, which services for continuous integration set, makes rich take a log for a terminal."""
    for is_terminal in (False, True):
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setattr(sys.stderr, "isatty", lambda answer=is_terminal: answer)
        with progress("[/games]", 10, iter((0.0, 11.0, 11.0)).__next__):
            advance(10)
        shown = capsys.readouterr().err
        assert (shown == "[/games]: 100 %, 10 of 10\n") != is_terminal
        assert "[/games]" in shown


def test_plots_need_nothing_that_the_users_own_settings_ask_for(tmp_path):
    import matplotlib

    with matplotlib.rc_context({"text.usetex": True, "font.size": 40, "figure.facecolor": "red"}):
        with saved_plot(tmp_path, "plot") as (canvas, axes):
            axes.set_title("100 %")
            assert not axes.title.get_usetex(), "LaTeX may be missing"
            assert matplotlib.colors.to_hex(canvas.get_facecolor()) == "#ffffff"
        assert matplotlib.rcParams["text.usetex"]
    assert (tmp_path / "plot.png").exists()


def test_logarithmic_axes_are_labelled_with_plain_numbers(tmp_path):
    with saved_plot(tmp_path, "plot") as (canvas, axes):
        axes.plot([1, 2], [0.02, 0.6])
        logarithmic(axes, "y")
        canvas.canvas.draw()
        labels = [label.get_text() for label in axes.get_yticklabels()]
        assert {"0.05", "0.1", "0.2"} <= set(labels)


def test_lines_and_bars_are_told_apart_without_colours(tmp_path):
    with saved_plot(tmp_path, "plot") as (_, axes):
        for number in range(8):
            axes.plot([1, 2], [number, 1])
            axes.errorbar([1, 2], [1, number], [1, 1])
        assert (
            len({line.get_marker() for line in axes.lines if len(line.get_marker()) == 1} - {"_", "|"}) == len(HATCHES) + 2 == 8
        )
    assert len(set(HATCHES)) == 6, "seats of a game"


def test_bars_whose_interval_is_not_known_are_hatched(tmp_path):
    with saved_plot(tmp_path, "plot") as (_, axes):
        bars(axes, "abc", [1, 1, 1], [0, 0.1, None])
        assert [bar.get_hatch() for bar in axes.patches] == ["", "", "//"]
