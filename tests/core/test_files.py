"""Files are written whole or not at all, left-overs are removed, and a locked folder is one process's alone."""

import contextlib
import errno
import itertools
import os
import subprocess
import sys
import time
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from dice_envs.core.files import (
    NOT_KEPT,
    atomic,
    folder_lock,
    keep_file,
    read_archive,
    read_json,
    remove_left_overs,
    write_archive,
    write_text,
)
from dice_envs.experiments.ui import check_writable
from dice_envs.learn.checkpoint import read_checkpoint
from dice_envs.table.sitting import Sitting
from tests.conftest import ROOT, posix


def age(path, seconds):
    then = time.time() - seconds
    os.utime(path, (then, then))


def test_a_file_is_written_whole_or_not_at_all_and_an_error_names_it(tmp_path):
    path = tmp_path / "result [1].json"
    write_text(path, "first")

    def fail(problem):
        with atomic(path) as temporary:
            temporary.write_text("half")
            raise problem

    for problem in (ZeroDivisionError(), OSError(28, "No space left on device")):
        with pytest.raises(type(problem)) as caught:
            fail(problem)
    assert caught.value.filename == str(path)
    assert path.read_text() == "first"
    assert list(tmp_path.iterdir()) == [path]


BUSY, FINAL = (PermissionError(code, os.strerror(code)) for code in (errno.EACCES, errno.EPERM))


@pytest.mark.parametrize(("answers", "tries"), [([BUSY, BUSY, None], [3]), ([BUSY] * 99, range(2, 99)), ([FINAL, None], [1])])
def test_a_file_that_another_process_has_open_is_replaced_for_a_while(answers, tries, tmp_path, monkeypatch):
    monkeypatch.setattr("dice_envs.core.files.PATIENCE", 0.1)
    monkeypatch.setattr(Path, "replace", replace := mock.Mock(side_effect=answers))
    with contextlib.nullcontext() if None in answers[2:] else pytest.raises(PermissionError, match="'.*result.json'"):
        write_text(tmp_path / "result.json", "new")
    assert replace.call_count in tries


@posix
def test_only_plain_files_are_replaced_or_read(tmp_path):
    """A device or FIFO would be lost, and reading it might never end."""
    pipe, told = tmp_path / "pipe", []
    os.mkfifo(pipe)
    for write in (check_writable, lambda path: write_text(path, ""), lambda path: write_archive(path, "part 1", {})):
        with pytest.raises(OSError, match="this is no plain file: '.*pipe'"):
            write(pipe)
    for read in (read_json, read_checkpoint, Sitting.load_from):
        with pytest.raises(ValueError, match="it is no plain file"):
            read(pipe)
    assert read_archive(pipe, "part 1", dict, told.append) is None
    assert "it is no plain file" in told.pop()
    assert pipe.is_fifo()


@posix
def test_new_files_follow_the_umask_and_replaced_ones_keep_their_permissions(tmp_path):
    before = os.umask(0o027)
    try:
        for name, mode in {"new": None, "private": 0o600, "shared": 0o666, "read only": 0o444}.items():
            path = tmp_path / name
            if mode is not None:
                path.touch()
                path.chmod(mode)
            write_text(path, "text")
            assert path.stat().st_mode & 0o777 == (0o640 if mode is None else mode), name
    finally:
        os.umask(before)


@posix
def test_a_link_is_written_through(tmp_path):
    folder, link, target = tmp_path / "folder", tmp_path / "link.json", tmp_path / "folder" / "result.json"
    folder.mkdir()
    link.symlink_to("between.json")
    (tmp_path / "between.json").symlink_to(target)
    for text in ("new", "replaced"):
        write_text(link, text)
        assert link.is_symlink()
        assert target.read_text() == text
    assert list(folder.iterdir()) == [target]
    (tmp_path / "between.json").unlink()
    (tmp_path / "between.json").symlink_to(link)
    for write in (lambda: write_text(link, ""), lambda: check_writable(link)):
        with pytest.raises(OSError, match="symbolic links"):
            write()
    assert link.is_symlink()


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


@pytest.mark.parametrize("fault", ["a file", "full disk"])
def test_what_cannot_be_kept_is_told_once_and_fails_nothing(fault, tmp_path):
    def write(path):
        path.write_text("half")
        if fault == "full disk":
            raise OSError(28, "No space left on device")

    (tmp_path / "file").write_text("")
    folder = tmp_path / ("file" if fault == "a file" else "folder")
    with pytest.warns(RuntimeWarning, match="SOME_FOLDER can name another folder") as seen:
        kept = [keep_file(folder / "kept", write, "SOME_FOLDER") for _ in range(2)]
    NOT_KEPT.clear()
    assert kept == [False, False]
    assert len(seen) == 1
    assert not list(tmp_path.glob("folder/*"))
    assert keep_file(tmp_path / "new" / "kept", lambda path: path.write_text("whole"), "SOME_FOLDER")
    assert (tmp_path / "new" / "kept").read_text() == "whole"


def test_all_left_overs_of_a_folder_and_nothing_else(tmp_path):
    kept = ["notes.tmp", ".notes.tmp", ".notes.abc.tmp", ".a.ABCDEFGH.tmp", "checkpoint.pt"]
    for name in (*kept, ".checkpoint.pt.abcd_123.tmp", ".x.png.12345678.tmp"):
        (tmp_path / name).write_text("")
    remove_left_overs(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(kept)


@pytest.mark.parametrize("content", ["", "{1", '{"a": NaN}', '{"a": 1e999}', "-Infinity", "[" * 100_000, "\udc80", "[1]", "3"])
def test_what_is_no_object_of_json_is_a_value_error(tmp_path, content):
    path = tmp_path / "plan.json"
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(ValueError, match="."):
        read_json(path)


MEMBERS = {"numbers": np.arange(6, dtype=np.uint16), "words": np.array("ab"), "seconds": np.array(0.5)}


def lying(path, work="part 1", **changes):
    """Write an archive of other content with the checksum of what it held."""
    write_archive(path, work, MEMBERS)
    with np.load(path) as file:
        np.savez(path.with_suffix(".other.npz"), **{**{name: file[name] for name in file.files}, **changes})
    return path.with_suffix(".other.npz").read_bytes()


def test_an_archive_is_what_was_written_or_nothing(tmp_path):
    """Each damage is told in a line, and each bit matters or belongs to nothing that is read."""
    path, told = tmp_path / "folder" / "part.npz", []
    write_archive(path, "part 1", MEMBERS)
    whole = path.read_bytes()
    flipped = [bytes([*whole[:at], whole[at] ^ 1 << at % 8, *whole[at + 1 :]]) for at in range(0, len(whole), 3)]
    wrong = {
        "empty": b"",
        "text": b"[1, 2, 3]",
        "cut": whole[: len(whole) // 2],
        "value": lying(path, numbers=MEMBERS["numbers"] + np.uint16(1)),
        "type": lying(path, numbers=MEMBERS["numbers"].astype(np.int16)),
        "shape": lying(path, numbers=MEMBERS["numbers"].reshape(2, 3)),
        "more": lying(path, others=np.zeros(1)),
        "objects": lying(path, numbers=np.array([None])),
        "checksum": lying(path, checksum=np.array(1.0)),
        "swapped": lying(path, "part 2"),
    }
    for name, content in itertools.chain(wrong.items(), enumerate(flipped)):
        path.write_bytes(content)
        found = read_archive(path, "part 1", dict, told.append)
        if found is None:
            assert [str(path) in line for line in told] == [True], name
            told.clear()
        else:
            assert name not in wrong
            assert {name: each.tobytes() for name, each in found.items()} == {k: v.tobytes() for k, v in MEMBERS.items()}
    path.write_bytes(whole)
    assert read_archive(path, "part 1", lambda members: members["missing"], told.append) is None
    assert "'missing'" in told.pop()
    assert read_archive(path, "part 1", dict, told.append, most=10) is None
    assert "bytes, more than 10)" in told.pop()
    assert read_archive(tmp_path / "none.npz", "part 1", dict, told.append) is None
    assert not told


def test_archives_without_a_checksum_are_earlier_ones(tmp_path):
    path, told = tmp_path / "part.npz", []
    np.savez(path, **MEMBERS)
    assert read_archive(path, "part 1", dict, told.append) is None
    assert "an earlier version wrote it, without a checksum" in told.pop()
    assert read_archive(path, "part 1", dict, told.append, unchecked=True).keys() == MEMBERS.keys()
    with pytest.raises(TypeError, match="numbers holds objects"):
        write_archive(path, "part 1", {"numbers": [None]})


def test_an_error_names_the_locked_folder_and_the_process_that_uses_it(tmp_path):
    left_over = tmp_path / ".policy.npz.abcd_123.tmp"
    left_over.write_text("half")
    message = rf"{tmp_path.name} is in use by process {os.getpid()} on .+, since [-\d]{{10}} \d\d:.+, or choose another --out"
    with folder_lock(tmp_path, "--out"):
        assert not left_over.exists()
        left_over.write_text("being written")
        for _ in range(2):  # the refusal does not affect the first process
            with pytest.raises(ValueError, match=message):
                folder_lock(tmp_path, "--out").__enter__()
        assert left_over.exists()
    with folder_lock(tmp_path, "--out"):
        pass


def test_a_lock_whose_owner_is_not_written_yet(tmp_path):
    with folder_lock(tmp_path, "--out"):
        for content in ("", "[]", "{}"):
            (tmp_path / ".owner.json").write_text(content)
            with pytest.raises(ValueError, match="is in use by another process"):
                folder_lock(tmp_path, "--out").__enter__()


def test_a_killed_process_leaves_no_lock(tmp_path):
    code = (
        "import pathlib, time; from dice_envs.core.files import folder_lock\n"
        f"with folder_lock(pathlib.Path({str(tmp_path)!r}), '--out'): print('in', flush=True); time.sleep(600)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "in\n"
    for _ in range(2):
        with pytest.raises(ValueError, match=f"is in use by process {process.pid} on "):
            folder_lock(tmp_path, "--out").__enter__()
    process.kill()
    process.wait()
    assert (tmp_path / ".owner.json").exists()
    with folder_lock(tmp_path, "--out"):
        assert f'"pid": {os.getpid()}' in (tmp_path / ".owner.json").read_text()
