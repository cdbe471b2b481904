"""Files are written whole or not at all, and what a killed process leaves of them is removed."""

import contextlib
import os
import time

import pytest

from dice_envs.core.files import atomic, remove_left_overs, write_text


def age(path, seconds):
    then = time.time() - seconds
    os.utime(path, (then, then))


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "result [1].json"
    write_text(path, "first")
    with contextlib.suppress(ZeroDivisionError), atomic(path) as temporary:
        temporary.write_text("half")
        raise ZeroDivisionError
    assert path.read_text() == "first"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_names_the_file_that_was_wanted(tmp_path):
    path = tmp_path / "result.json"
    with pytest.raises(OSError, match="No space") as caught, atomic(path):
        raise OSError(28, "No space left on device")
    assert caught.value.filename == str(path)
    assert not list(tmp_path.iterdir())


def test_writing_a_file_removes_its_own_old_left_overs(tmp_path):
    path = tmp_path / "result [1].json"
    old, fresh, others = (
        tmp_path / f".{name}.tmp" for name in (f"{path.name}.abcd_123", f"{path.name}.abcd_124", "x.abcd_123")
    )
    for left_over in (old, fresh, others):
        left_over.write_text("half")
    age(old, 4000)
    age(others, 4000)
    write_text(path, "whole")
    assert {p.name for p in tmp_path.iterdir()} == {path.name, fresh.name, others.name}


def test_all_left_overs_of_a_folder_and_nothing_else(tmp_path):
    kept = ["notes.tmp", ".notes.tmp", ".notes.abc.tmp", ".a.ABCDEFGH.tmp", "checkpoint.pt"]
    for name in (*kept, ".checkpoint.pt.abcd_123.tmp", ".x.png.12345678.tmp"):
        (tmp_path / name).write_text("")
    remove_left_overs(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(kept)
