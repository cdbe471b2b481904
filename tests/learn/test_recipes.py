"""Recipes: ways of training, compared on the same number of steps."""

import dataclasses
import json

import pytest
from typer.testing import CliRunner

from dice_envs.experiments.__main__ import app
from dice_envs.experiments.commands.recipes import RECIPES, recipes_of
from dice_envs.learn.presets import PRESETS, Preset

TINY = Preset(steps=512, num_envs=32, num_steps=16, minibatch=128, epochs=1, hidden=(8,), threads=1, average_rate=0.5)


def test_every_recipe_is_a_preset_that_differs_in_how_it_regularises():
    made = recipes_of("liars_dice", 1000, list(RECIPES))
    assert list(made) == list(RECIPES)
    for name, preset in made.items():
        assert preset.steps == 1000
        assert preset.self_play == 1.0
        assert (preset.kl > 0) == (name.startswith("MMD") or "mirror" in name)
        assert (preset.reference_rate > 0) == (name == "MMD, moving reference" or "mirror" in name)
        assert (preset.proximal > 0) == preset.central_critic == ("mirror" in name)
    assert "published" not in recipes_of("liars_dice", 1000)
    ours = dataclasses.replace(PRESETS["liars_dice"]["equilibrium"], steps=1000, threads=1, measure_every=0, keep="last")
    assert made["mirror descent, central critic"] == ours
    with pytest.raises(ValueError, match="unknown recipe 'PPG'; recipes are: plain; high entropy; "):
        recipes_of("liars_dice", 1000, ["PPG"])


@pytest.mark.thorough  # its runs are processes of their own
def test_the_command_measures_every_seed(tmp_path, monkeypatch):
    monkeypatch.setitem(PRESETS["liars_dice"], "equilibrium", TINY)
    file = tmp_path / "rows.json"
    small = ["-o", "rules=openspiel", "-o", "num_dice=1", "-o", "num_faces=3", "--steps", "4096"]
    command = ["recipes", "liars_dice", "plain", "MMD, moving reference", *small, "--seeds", "2", "--jobs", "1"]
    result = CliRunner().invoke(app, [*command, "--json", str(file)])
    assert result.exit_code == 0, result.output
    rows = json.loads(file.read_text())["rows"]
    assert [(row["recipe"], row["seed"]) for row in rows] == [
        (name, seed) for name in ("plain", "MMD, moving reference") for seed in (0, 1)
    ]
    assert all(0 <= row["last"] <= 2 and 0 <= row["averaged"] <= 2 for row in rows)
    assert len({row["last"] for row in rows}) == 4
    refused = CliRunner().invoke(app, ["recipes", "thirties", "--seeds", "1"])
    assert refused.exit_code == 2
    assert "has one seat" in refused.stderr
