"""Commands that are killed again and again, at random moments and while they write, or whose disk is full, continue from
what they have kept, end with the same result, and leave nothing half written.

KILLS=50 in the environment kills each command 50 times.
"""

import dataclasses
import json
import os
import random
import signal
import time

import numpy as np
import pytest

from dice_envs.learn.checkpoint import read_checkpoint
from tests.learn.test_train import REGULARISED
from tests.learn.test_train import ending as ending_of_training
from tests.support import kills
from tests.support.kills import BEFORE, FULL, MOMENT, REMOVING, WAYS, Death

KILLS = int(os.environ.get("KILLS", "4"))
SEED = 1
ROOM = 500  # bytes that are always left, for the line that says what is wrong
SECONDS = {"seconds": 0}


def json_less_seconds(path):
    return json.loads(path.read_text(), object_hook=lambda found: {**found, **(SECONDS if "seconds" in found else {})})


def whole_file(path):
    """A file's contents without timings; raises if the file is not whole."""
    if path.suffix == ".json":
        return json_less_seconds(path)
    if path.suffix == ".pt":
        return read_checkpoint(path)["num_timesteps"]
    found = np.load(path, allow_pickle=False)
    if isinstance(found, np.ndarray):
        return found.tobytes()
    with found:
        return {name: found[name].tobytes() for name in found.files if name not in ("seconds", "checksum")}


def files_of(folder):
    """The command's files, except its lock and unfinished ones."""
    return sorted(path for path in folder.rglob("*") if path.suffix in (".json", ".pt", ".npz", ".npy") and path.name[0] != ".")


@dataclasses.dataclass(frozen=True)
class Job:
    """A command, its options to resume, the files to compare at its end, and its finished work."""

    arguments: tuple
    presets: dict = dataclasses.field(default_factory=dict)

    def ending(self, folder):
        if self.arguments[0] == "train":
            return ending_of_training(folder / "run")
        return {str(path.relative_to(folder)): whole_file(path) for path in files_of(folder)}

    def finished(self, folder):
        """The finished work, which must not be lost: parts, rounds or training steps; the result itself counts as all."""
        if self.arguments[0] == "train":
            path = folder / "run" / "checkpoint.pt"
            return set(range(0, read_checkpoint(path)["num_timesteps"] + 1, 512)) if path.exists() else set()
        return {path.name for path in files_of(folder)}

    def has_result(self, folder):
        return (folder / "out.json").exists()


TRAINING = dataclasses.replace(REGULARISED, steps=24 * 512, checkpoint_every=3, snapshot_every=4)
JSON = ("--json", "out.json")
JOBS = {
    "train": Job(
        ("train", "liars_dice", "--evaluation-games", "50", "--seed", "3", "-o", "num_dice=1", "--out", "run", *JSON),
        {"liars_dice": TRAINING},
    ),
    "arena": Job(("arena", "liars_dice", "numbers", "mcts:20", "-o", "num_dice=2", "--games", "1500", "--seed", "3", *JSON)),
    # With this precision some rounds are solved again.
    "solve liars_dice": Job(("solve", "liars_dice", "-o", "num_dice=3", "--precision", "1e-3", *JSON)),
    "solve fatestones": Job(("solve", "fatestones", "--draws", "100000", "--seed", "2", *JSON)),
}


def drawn(rng, whole):
    """A random disturbance of the next process, of any kind, at any point or moment of an undisturbed one."""
    way = rng.choice([way for way in WAYS if way != REMOVING or whole.counts[REMOVING]])
    if way == MOMENT:
        return Death(way, rng.randrange(int(1000 * whole.seconds) + 1))
    if way == FULL:
        return Death(way, int(ROOM * (whole.largest / ROOM) ** rng.random()))  # small limits are as likely as large ones
    return Death(way, rng.randint(1, whole.counts[REMOVING if way == REMOVING else BEFORE]))


def age(folder):
    """Make files two hours old, because newer ones may still be being written and are not removed."""
    then = time.time() - 7200
    for path in folder.rglob(".*.tmp"):
        os.utime(path, (then, then))


@pytest.mark.thorough
@pytest.mark.parametrize("name", JOBS)
def test_a_command_that_is_killed_or_finds_the_disk_full_ends_as_if_nothing_had_been(name, tmp_path, capsys):
    job, rng = JOBS[name], random.Random(SEED)
    whole = kills.run(job.arguments, tmp_path / "whole", changes=job.presets)
    assert whole.status == 0, whole.errors
    expected = job.ending(tmp_path / "whole")
    story, seen, endings = [], dict.fromkeys(WAYS, 0), 0
    folder = tmp_path / "0"
    while True:
        death = drawn(rng, whole) if sum(seen.values()) < KILLS else None
        before = job.finished(folder) if folder.exists() else set()
        end = kills.run((*job.arguments, "--resume"), folder, death, job.presets)
        story.append((death, end.status))
        told = f"seed {SEED}, run {folder.name}: {story}\n{end.errors}"
        assert end.status == 0 or (death and end.status == (2 if death.way == FULL else -signal.SIGKILL)), told
        for path in files_of(folder):
            whole_file(path)  # no file is half written under its final name
        assert "Traceback" not in end.errors, told
        if end.status != 0:
            seen[death.way] += 1
        if death and death.way == FULL and end.status != 0:
            assert len([line for line in end.errors.splitlines() if line.startswith("error: ")]) == 1, told
        assert before <= job.finished(folder) or job.has_result(folder), told
        if end.status == 0:
            endings += 1
            if (folder / "out.json.parts").exists():
                pytest.fail(f"parts are left: {told}")
            age(folder)
            if list(folder.rglob(".*.tmp")) or (death and death.way == FULL):  # which may have kept less of what it solved
                again = kills.run((*job.arguments, "--resume"), folder, None, job.presets)
                assert again.status == 0, f"{told}\n{again.errors}"
            assert job.ending(folder) == expected, told
            assert not list(folder.rglob(".*.tmp")), told
            if death is None:
                break
            story, folder = [], tmp_path / str(endings)
    with capsys.disabled():
        print(f"\n{name}: {', '.join(f'{count} {way}' for way, count in seen.items())}; {endings} runs ended the same")
