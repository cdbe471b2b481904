"""Recipes: ways of training, compared on the same number of steps."""

import dataclasses

import pytest

from dice_envs.experiments.sweep import RECIPES, runs_of
from dice_envs.learn.presets import PRESETS
from tests.support.commands import refusal, with_json


def test_every_recipe_is_a_preset_that_differs_in_how_it_regularises():
    runs = runs_of("liars_dice", "equilibrium", {"clip": [0.1, 0.3]}, [1, 2], list(RECIPES))
    assert len(runs) == len({name for name, *_ in runs}) == 4 * len(RECIPES)
    for _, recipe, settings, _ in runs:
        preset = dataclasses.replace(PRESETS["liars_dice"]["equilibrium"], **settings)
        assert preset.clip in (0.1, 0.3)
        assert preset.self_play == 1.0
        assert (preset.kl > 0) == (recipe.startswith("MMD") or "mirror" in recipe)
        assert (preset.reference_rate > 0) == (recipe == "MMD, moving reference" or "mirror" in recipe)
        assert (preset.proximal > 0) == preset.central_critic == ("mirror" in recipe)
    assert runs_of("liars_dice", "equilibrium", {}, [1], [])[0] == ("seed_1", "", {}, 1)
    with pytest.raises(ValueError, match=r"recipe must be one of 'plain', 'high entropy', .* not 'PPG'"):
        runs_of("liars_dice", "equilibrium", {}, [1], ["PPG"])
    with pytest.raises(ValueError, match="preset must be 'equilibrium' with recipes, which change its settings, not 'quick'"):
        runs_of("liars_dice", "quick", {}, [1], ["plain"])


def test_all_recipes_but_the_published_one():
    everything = runs_of("liars_dice", "equilibrium", {}, [1], ["published", "all"])
    assert sorted(recipe for _, recipe, *_ in everything) == sorted(RECIPES)
    assert "published" not in [recipe for _, recipe, *_ in runs_of("liars_dice", "equilibrium", {}, [1], ["all"])]
    with pytest.raises(ValueError, match="recipe names one twice: plain, plain, high entropy"):
        runs_of("liars_dice", "equilibrium", {}, [1], ["plain", "all"])


@pytest.mark.thorough
def test_the_command_measures_every_seed(tmp_path):
    """The same in this process, and with several runs at once in processes of their own."""
    small = ["-o", "rules=openspiel", "-o", "num_dice=1", "-o", "num_faces=3", "--steps", "4096", "--evaluation-games", "100"]
    for setting in ("num_envs=32", "num_steps=16", "minibatch=128", "hidden=8"):
        small += ["--set", setting]
    chosen = ["--preset", "equilibrium", "--recipe", "plain", "--recipe", "MMD, moving reference", "--seeds", "1"]
    rows = []
    for jobs in ("1", "2"):
        command = ["train", "liars_dice", *chosen, *small, "--jobs", jobs, "--out", tmp_path / jobs]
        told, found = with_json(tmp_path, *command)
        assert "gap of the averaged policy" in told
        rows.append([{key: value for key, value in row.items() if key != "minutes"} for row in found["rows"]])
    assert rows[0] == rows[1]
    assert [(row["recipe"], row["seed"]) for row in rows[0]] == [("plain", 1), ("MMD, moving reference", 1)]
    assert all(0 <= gap <= 2 for row in rows[0] for gap in row["gaps"].values())
    assert len({row["gaps"]["last"] for row in rows[0]}) == 2
    assert "has one seat" in refusal("train", "thirties", "--preset", "equilibrium", "--recipe", "plain")
