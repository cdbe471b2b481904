"""Checkpoints: what is written is read back, and damaged files are refused with a message."""

import errno
import zipfile

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dice_envs.learn import checkpoint
from dice_envs.learn.checkpoint import read_checkpoint, write_checkpoint

STATE = {"weights": torch.arange(6.0).reshape(2, 3), "words": "two words", "nested": [({1: torch.ones(2)}, 3)]}


def check_whole(state):
    assert {name: str(value) for name, value in state.items()} == {
        name: str(value) for name, value in {"format": checkpoint.FORMAT, **STATE}.items()
    }


def test_what_is_written_comes_back(tmp_path):
    path = tmp_path / "checkpoint.pt"
    write_checkpoint(path, STATE)
    check_whole(read_checkpoint(path))
    assert [p.name for p in tmp_path.iterdir()] == ["checkpoint.pt"]


@given(st.data())
def test_changed_bytes_are_noticed_or_do_not_matter(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "changed.pt"
    write_checkpoint(path, STATE)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))] if data.draw(st.booleans()) else content)
    try:
        state = read_checkpoint(path)
    except ValueError as problem:
        assert str(problem)  # noqa: PT017 - an error is one of two good ends
    else:
        check_whole(state)


def test_a_zip_bomb_is_refused_unopened(tmp_path):
    path = tmp_path / "checkpoint.pt"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", bytes(10**7))
    with pytest.raises(ValueError, match="it unpacks to more than its size"):
        read_checkpoint(path)


@pytest.mark.parametrize("content", [{"format": 1}, {"format": torch.ones(2)}, {}, [1]])
def test_another_version_is_refused(tmp_path, content):
    path = tmp_path / "checkpoint.pt"
    torch.save(content, path)
    with pytest.raises(ValueError, match="is of another version"):
        read_checkpoint(path)


def test_a_full_disk_is_an_error_of_the_file(tmp_path, monkeypatch):
    path = tmp_path / "checkpoint.pt"
    write_checkpoint(path, STATE)
    before = path.read_bytes()

    def full(self, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(type(path), "write_bytes", full)
        with pytest.raises(OSError, match="No space left on device") as caught:
            write_checkpoint(path, {})
    assert caught.value.filename == str(path)
    assert path.read_bytes() == before
