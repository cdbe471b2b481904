"""Layout of the legal moves on the page."""

import pytest

from dice_envs import configure, load, names
from dice_envs.table.sitting import PERSON, Sitting

pytest.importorskip("nicegui")
from dice_envs.experiments.web.moves import arrange


def test_bids_lie_in_a_grid_and_other_moves_beside_it():
    sitting = Sitting(configure("liars_dice", num_dice=2, starter="first"), 1, [PERSON, PERSON])
    grid, others = arrange(sitting.variant, sitting.legal())
    assert grid is not None
    assert (grid.rows, grid.columns, others) == ((1, 2, 3, 4), (1, 2, 3, 4, 5, 6), [])
    words = {action: sitting.variant.describe_action(action) for action in sitting.legal()}
    assert {f"{row} x {column}": action for (row, column), action in grid.actions.items()} == {w: a for a, w in words.items()}
    sitting.play(grid.actions[3, 6])
    grid, others = arrange(sitting.variant, sitting.legal())
    assert grid is not None
    assert 3 not in grid.rows or min(column for row, column in grid.actions if row == 3) < 6
    assert [sitting.variant.describe_action(action) for action in others] == ["call"]


@pytest.mark.parametrize("game", [name for name in names() if name != "liars_dice"])
def test_other_moves_are_buttons(game):
    variant = load(game).configure()
    sitting = Sitting(variant, 1, [PERSON] * variant.facts.num_seats)
    assert arrange(variant, sitting.legal()) == (None, sitting.legal())
