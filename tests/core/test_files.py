"""Files are written whole or not at all, left-overs are removed, and a locked folder is one process's alone."""

import contextlib
import os
import subprocess
import sys
import time

import pytest

from dice_envs.core.files import NOT_KEPT, atomic, folder_lock, keep_file, remove_left_overs, write_text
from tests.conftest import ROOT


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


def test_an_error_names_the_locked_folder_and_the_process_that_uses_it(tmp_path):
    left_over = tmp_path / ".policy.npz.abcd_123.tmp"
    left_over.write_text("half")
    message = rf"{tmp_path} is in use by process {os.getpid()} on .+, since \d{{4}}-\d\d-\d\d \d\d:.+, or choose another --out"
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
