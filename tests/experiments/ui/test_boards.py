"""How the board of the leaderboard is shown."""

import contextlib
import types

from dice_envs.experiments.ui import boards
from dice_envs.experiments.ui.plots import saved_plot


def test_at_most_three_tasks_stand_side_by_side(tmp_path, monkeypatch):
    grids = []

    @contextlib.contextmanager
    def noted(folder, name, caption, **kwargs):
        grids.append((kwargs["nrows"], kwargs["ncols"]))
        with saved_plot(folder, name, caption, **kwargs) as drawn:
            yield drawn

    monkeypatch.setattr(boards, "saved_plot", noted)
    standing = types.SimpleNamespace(agent="random", score=0.0, score_error=None)
    for count in (1, 3, 4, 7):
        tasks = [types.SimpleNamespace(name=f"task {number}", standings=[standing]) for number in range(count)]
        boards.plot(tmp_path, types.SimpleNamespace(tasks=tasks))
    assert grids == [(1, 1), (1, 3), (2, 3), (3, 3)]
