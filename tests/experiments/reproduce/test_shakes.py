"""`reproduce shakes`: the rules' and the notebook's figures beside exact ones."""

import numpy as np
import pytest
from scipy.stats import binom, chisquare

from dice_envs.experiments.reproduce import shakes
from dice_envs.games.shakes.exact.policies import Performance
from tests.support.commands import with_json


@pytest.mark.slow
def test_published_figures_beside_ours(tmp_path):
    rows = with_json(tmp_path, "reproduce", "shakes", "--games", 5000, "--seed", 4, "--report", tmp_path)[1]["rows"]
    # Only the claims that Thompson sampling is optimal, and the argument Thompson sampling, do not hold.
    wrong = [row for row in rows if row["agrees"] is False]
    assert all(row["note"] for row in wrong)
    assert {row["figure"].rpartition(", ")[0] for row in wrong} == {
        "choice v chance to be the best: distance",
        "argument, short of optimal: saved",
        "argument, short of optimal: P(win)",
        "thompson:permutations, short of optimal: saved",
        "thompson:permutations, short of optimal: P(win)",
    }
    assert sum(row["agrees"] is True for row in rows) >= len(shakes.CHECKED) + 36
    (notebook,) = [row for row in rows if row["published"] == pytest.approx(0.688)]
    assert notebook["ours"] == pytest.approx(0.6885, abs=5e-5)  # with four players, ties broken at random
    assert notebook["agrees"]
    assert {picture.name for picture in tmp_path.glob("*.png")} == {"shakes_distributions.png", "shakes_kept_die.png"}


def test_the_rules_example_is_shown():
    """After three patients of whom two were saved, four dice are thrown and the third lowest is kept."""
    (row,) = [row for row in shakes._kept_die_rows() if row.figure == "treated 3, saved 2: P(kept die = 6)"]
    assert row.ours == pytest.approx(binom.sf(1, 4, 1 / 6))


def test_played_games_are_held_against_the_distribution_with_its_tails_put_together():
    exact, games = binom.pmf(np.arange(13), 12, 0.5), 1000
    counts = np.random.default_rng(1).multinomial(games, exact)
    result = Performance(exact, 6.0, exact[8:].sum(), *[np.zeros(3)] * 4)
    rows = shakes._played_rows([("a policy", counts, result)], goal=8)
    ends = [0, *range(3, 11), 13]  # all of 0 to 2, and of 10 to 12, have too few games
    ours, theirs = (np.add.reduceat(values, ends[:-1]) for values in (counts, exact))
    p = chisquare(ours, theirs * games).pvalue
    assert rows[-1].note.endswith(f"chi-square p = {p:.4f}, which must be above 0.0001")
    assert rows[1].ours == counts[8:].sum() / games
    assert all(row.agrees for row in rows)
