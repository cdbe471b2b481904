"""Images have one size for each variant, whatever happens in the game, and video recorders accept them."""

import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import dice_envs.envs.sb3
from dice_envs import Batch, Picture, Row, SeatEnv, configure
from dice_envs.core.game import load, names
from dice_envs.envs import aec
from dice_envs.envs.text import TextEnv
from dice_envs.pictures.drawing import layout
from dice_envs.pictures.render import MOST_HEIGHT, frame_size, rgb_array, svg
from tests.games.test_conformance import played_on
from tests.support.subsets import few
from tests.support.variants import IDS, MARKED

every_game = pytest.mark.parametrize("name", names())


@pytest.mark.parametrize(("name", "options"), MARKED, ids=IDS)
def test_every_picture_of_a_game_fits_its_frame(name, options):
    variant = configure(name, **options)
    height, width = frame_size(variant)
    assert height % 16 == width % 16 == 0
    assert height <= MOST_HEIGHT
    for state in played_on(variant, 1, range(100)).states:
        assert max(layout(variant.picture(state, viewer)).height for viewer in (None, 0)) <= height


def test_many_dice_of_the_shakes_fit():
    variant = configure("shakes", num_players=6, num_patients=60)
    height, _ = frame_size(variant)
    assert height < MOST_HEIGHT
    batch = Batch(variant, 1, seed=1)
    state = batch.states[0]
    state["argued"][:] = 1
    for shares in ([10] * 6, [60, 0, 0, 0, 0, 0], [12] * 5 + [0], [24, 12, 24, 0, 0, 0], [1, 12, 12, 12, 12, 11]):
        state["treated"] = shares
        state["dice"][:, 5] = np.array(shares) + 1
        assert layout(variant.picture(state)).height <= height


@pytest.mark.parametrize("num_patients", [10, 100])
def test_the_longest_words_of_the_shakes_fit(num_patients):
    variant = configure("shakes", num_patients=num_patients)
    state = Batch(variant, 1, seed=1).states[0]
    state["treated"][0] = state["saved"][0] = num_patients
    assert len(variant.picture(state).rows[0].detail) <= len(variant.full_picture().rows[0].detail)


def test_a_picture_that_is_too_large_is_made_smaller():
    rows = tuple(Row(f"row {i}", (1, 2, 3)) for i in range(30))
    whole = rgb_array(Picture("Long", rows))
    assert whole.shape == (layout(Picture("Long", rows)).height, 640, 3)
    small = rgb_array(Picture("Long", rows), (320, 640))
    assert small.shape == (320, 640, 3)
    assert small.dtype == np.uint8
    assert len(whole) > 2000
    dice = (small < 150).all(axis=2)
    assert dice[300:].any(), "the last rows are in it"
    assert not dice[:, 200:].any(), "its shape is kept"


@few(2, "name", names())
def test_frames_in_play_have_one_size(name):
    env = SeatEnv(name, render_mode="rgb_array")
    vector = gymnasium.make_vec(f"dice_envs/{load(name).env_name}-v0", num_envs=2, render_mode="rgb_array")
    venv = dice_envs.envs.sb3.make_vec_env(name, 2, render_mode="rgb_array", seed=1)
    table = aec.raw_env(name, render_mode="rgb_array", **load(name).gym_options)
    assert env._repr_svg_() is None
    assert table._repr_svg_() is None
    words = TextEnv(name, render_mode="rgb_array")
    undealt = [each.render for each in (env, vector, table, words, aec.env(name, render_mode="ansi"))]
    for draw in (*undealt, venv.get_images, table.state, lambda: table.observe("player_0")):
        with pytest.raises((gymnasium.error.ResetNeeded, AssertionError), match="reset"):
            draw()
    _, info = env.reset(seed=1)
    _, infos = vector.reset(seed=1)
    venv.reset()
    table.reset(seed=1)
    shape = (*frame_size(env.variant), 3)
    for _ in range(12):
        frames = [env.render(), *vector.render(), *venv.get_images(), table.render()]
        assert {frame.shape for frame in frames} == {shape}
        assert {frame.dtype for frame in frames} == {np.dtype(np.uint8)}
        assert env._repr_svg_() == svg(env.variant.picture(env.games.states[0], int(env.games.learners[0])))
        mover = int(table.agent_selection.removeprefix("player_"))
        assert table._repr_svg_() == svg(table.variant.picture(table._states[0], mover))
        _, _, ended, _, info = env.step(int(info["action_mask"].argmax()))
        if ended:
            _, info = env.reset()
        *_, infos = vector.step(infos["action_mask"].argmax(axis=1))
        venv.step(venv.action_masks().argmax(axis=1))
        table.step(int(table.infos[table.agent_selection]["action_mask"].argmax()))
        if not table.agents or any(table.terminations.values()):
            table.reset()


def test_without_pillow_only_images_fail(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    for make in (SeatEnv, dice_envs.SeatVectorEnv, dice_envs.envs.sb3.make_vec_env, aec.raw_env, aec.parallel_env):
        for mode in (None, "ansi", "human"):
            make("fatestones", render_mode=mode)
        with pytest.raises(ImportError, match=r"'rgb_array' needs Pillow: pip install \"dice-envs\[render\]\""):
            make("fatestones", render_mode="rgb_array")


def play_on(env, steps):
    """Play the first legal action at each step, of one game or of many."""
    _, info = env.reset(seed=1)
    for _ in range(steps):
        _, _, ended, _, info = env.step(info["action_mask"].argmax(axis=-1))
        if ended is True:
            _, info = env.reset()
    return env


def video(folder, size):
    """(frames, height, width) of a video in which something moves, of one game or more of this size."""
    clips = pytest.importorskip("moviepy")
    (path,) = Path(folder).glob("*.mp4")
    clip = clips.VideoFileClip(str(path))
    frames = np.array(list(clip.iter_frames()), float)
    clip.close()
    assert np.diff(frames, axis=0).any()
    assert min(frames.shape[1:3]) >= min(size)
    return frames.shape[:3]


@pytest.mark.library("gymnasium", "RecordVideo, vector RecordVideo, HumanRendering")
@pytest.mark.library("stable-baselines3", "VecVideoRecorder")
@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore")
@every_game
def test_videos(name, tmp_path, monkeypatch):
    """Recorded by Gymnasium and SB3, of one or a few games."""
    pytest.importorskip("moviepy")
    from gymnasium.wrappers import HumanRendering, RecordVideo
    from stable_baselines3.common.vec_env import VecVideoRecorder

    identifier = f"dice_envs/{load(name).env_name}-v0"
    size = frame_size(gymnasium.make(identifier).unwrapped.variant)
    first = {"step_trigger": lambda step: step == 0}
    one, many, of_sb3 = (str(tmp_path / folder) for folder in ("one", "many", "sb3"))
    env = gymnasium.make(identifier, render_mode="rgb_array")
    play_on(RecordVideo(env, one, episode_trigger=lambda _: False, video_length=30, **first), 40).close()
    shape = video(one, size)
    assert shape[1:] == size
    assert shape[0] >= 29

    if hasattr(gymnasium.wrappers.vector, "RecordVideo"):  # Gymnasium 1.2 or later
        vector = gymnasium.make_vec(identifier, num_envs=3, render_mode="rgb_array")
        play_on(gymnasium.wrappers.vector.RecordVideo(vector, many, video_length=10, **first), 15).close()
        video(many, size)

    venv = dice_envs.envs.sb3.make_vec_env(name, 2, render_mode="rgb_array", seed=1)
    venv = VecVideoRecorder(venv, of_sb3, record_video_trigger=lambda step: step == 0, video_length=10)
    venv.reset()
    for _ in range(15):
        venv.step(np.array(venv.env_method("action_masks")).argmax(axis=1))
    venv.close()
    video(of_sb3, size)

    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    shown = play_on(HumanRendering(gymnasium.make(identifier, render_mode="rgb_array")), 5)
    assert shown.window.get_size() == size[::-1]
    shown.close()
