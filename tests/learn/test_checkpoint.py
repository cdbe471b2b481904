"""Checkpoints: what is written is read back, and damaged files are refused with a message."""

import os
import zipfile

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dice_envs.learn import checkpoint
from dice_envs.learn.checkpoint import check_like, read_checkpoint, write_checkpoint

STATE = {"weights": torch.arange(6.0).reshape(2, 3), "words": "two words", "nested": [({1: torch.ones(2)}, 3)]}


def test_what_is_written_comes_back(tmp_path):
    path = tmp_path / "checkpoint.pt"
    write_checkpoint(path, STATE)
    check_like("state", read_checkpoint(path), {"format": checkpoint.FORMAT, **STATE})
    assert torch.equal(read_checkpoint(path)["weights"], STATE["weights"])
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
        check_like("state", state, {"format": checkpoint.FORMAT, **STATE})


def test_a_zip_bomb_is_refused_unopened(tmp_path):
    path = tmp_path / "checkpoint.pt"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", bytes(10**7))
    with pytest.raises(ValueError, match="it unpacks to more than its size"):
        read_checkpoint(path)


def test_a_file_cannot_run_code(tmp_path):
    class Evil:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "evil"),))

    torch.save({"format": checkpoint.FORMAT, "weights": Evil()}, tmp_path / "checkpoint.pt")
    with pytest.raises(ValueError, match="."):
        read_checkpoint(tmp_path / "checkpoint.pt")
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize("content", [{"format": 1}, {"format": torch.ones(2)}, {}, [1]])
def test_another_version_is_refused(tmp_path, content):
    path = tmp_path / "checkpoint.pt"
    torch.save(content, path)
    with pytest.raises(ValueError, match="is of another version"):
        read_checkpoint(path)


@pytest.mark.parametrize(
    ("found", "like", "words"),
    [
        ([1.0], torch.ones(1), "x is not an array"),
        (torch.ones(2).to_sparse(), torch.ones(2), "x is not an array"),
        (torch.ones(2, device="meta"), torch.ones(2), "x is not an array"),
        (torch.ones(3), torch.ones(2), r"x is torch.float32 \(3,\), not torch.float32 \(2,\)"),
        (torch.ones(2).double(), torch.ones(2), r"x is torch.float64 \(2,\), not"),
        (torch.tensor([1.0, torch.nan]), torch.ones(2), "x is not finite"),
        ({"a": 1}, {"a": 1, "b": 1}, "x has other parts than a, b"),
        ({"a": 1}, {}, "x has other parts than none"),
        ({0: 1}, [1], "x has other parts than 0"),
        ([1, 1], (1,), "x has other parts than 0"),
        ([[torch.ones(1)]], [[torch.zeros(1, 1)]], "x 0 0 is"),
        (True, 1, "x is of another version"),
        ("i4", "i8", "x is of another version"),
    ],
)
def test_what_is_built_otherwise_is_refused_in_words(found, like, words):
    with pytest.raises(ValueError, match=f"^{words}"):
        check_like("x", found, like)
