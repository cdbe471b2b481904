"""Results of tournaments: teams, copies of an agent, long names, and luck taken out of the results of pairs."""

import dataclasses
import itertools
import math
import re

import numpy as np
import pytest

from dice_envs import Promises, Uniform, configure, evaluate, make_agent, measure, response_values
from dice_envs.agent.specs import resolve
from dice_envs.agents.liars_dice import Numbers
from dice_envs.exact import BEST_RESPONSE_WINS, optima
from dice_envs.experiments.arena import best_responses, elo, elo_intervals, expanded, known_values, results, tournament
from dice_envs.experiments.arena.results import legend, tournament_grids
from dice_envs.experiments.ui import console
from dice_envs.experiments.ui.grids import joined, letters, short
from tests.evaluation.test_evaluate import SMALL as ONE_ROUND
from tests.evaluation.test_evaluate import values
from tests.support.commands import done, run, with_json
from tests.support.liars_dice_games import winning_probability
from tests.support.subsets import few


def test_copies_are_written_out():
    assert expanded(["ppo:a*b", "3*numbers:bluff=1", "random"]) == ["ppo:a*b", *["numbers:bluff=1"] * 3, "random"]
    for spec in ("0*random", "7*random", "99999999999999999999*random"):
        with pytest.raises(ValueError, match=r"the copies in .* must be a whole number from 1 to 6, not "):
            expanded([spec])


def test_letters_and_short_names():
    assert letters(28)[:3] == ["A", "B", "C"]
    assert letters(28)[25:] == ["Z", "AA", "AB"]
    path = "ppo:runs/a/very/long/path/of/some/run/policy.npz"
    assert len(short(path, 20)) == 20
    assert short(path, 20).startswith("ppo:runs/")
    assert short(path, 20).endswith("policy.npz"[-9:])
    assert short("random") == "random"
    assert legend(["random", path]) == [f"  B = {path}"]
    assert joined(["random", "numbers", "random"]) == "2 × random + numbers"


@pytest.mark.thorough
def test_a_team_is_told_what_it_earned(tmp_path):
    command = ["arena", "shakes", "2*bayes", "-o", "num_players=2", "--games", 4000, "--seed", 1, "--report", tmp_path]
    result, data = with_json(tmp_path, *command)
    (team,) = data["teams"]
    exact = measure("shakes", "bayes", mode="maesters", num_players=2).measures
    assert data["cooperative"]
    assert team["members"] == [0, 1]
    for found, half, measured in (("mean_return", "ci95", exact[0]), ("win", "win_ci95", exact[1])):
        assert 0 < team[half] < 0.1
        assert abs(team[found] - measured.value) < 2 * team[half]
    assert data["optimal"] == {measured.name: pytest.approx(measured.optimum) for measured in exact}
    (row,) = re.findall(r"2 × bayes.*", result)
    earned, _, short, *_ = map(float, re.findall(r"-?\d+\.\d+", row))
    assert earned == pytest.approx(team["mean_return"], abs=1e-4)
    assert short == pytest.approx(exact[0].optimum - earned, abs=2e-4)
    assert "optimal play" in result
    assert (tmp_path / "arena_shakes.png").exists()


def test_optima_are_those_of_measure():
    for game, options in (("shakes", {"num_players": 2, "reward": "win"}), ("thirties", {"goal": "optimal"})):
        found, measured = optima(game, **options), measure(game, "random", **options).measures
        assert next(iter(found)) == measured[0].name
        assert found == {each.name: pytest.approx(each.optimum) for each in measured if each.name in found}
    with pytest.raises(ValueError, match="is not known without an agent"):
        optima("liars_dice")
    with pytest.raises(ValueError, match=r"shakes \(num_players=2 mode=physician num_patients=200.* has about .* tallies"):
        optima("shakes", num_players=2, num_patients=200)


def test_copies_share_what_they_win(tmp_path):
    options = ["-o", "num_players=4", "-o", "num_dice=1", "--games", 2000, "--seed", 1, "--report", tmp_path]
    _, data = with_json(tmp_path, "arena", "liars_dice", "numbers", "3*random", *options)
    assert data["agents"] == ["numbers", *["random"] * 3]
    one, three = data["copies"]
    assert (one["seats"], three["seats"]) == (1, 3)
    assert one["win_rate"] + three["win_rate"] == pytest.approx(1)
    assert three["win_rate"] == pytest.approx(sum(data["win_rate"][0][1:]))
    assert one["win_rate"] > 0.4
    assert one["mean_return"] + 3 * three["mean_return"] == pytest.approx(0, abs=1e-6)


def test_who_plays_alone_is_told_how_often_it_wins():
    result = tournament(configure("shakes", mode="physician", num_players=2), ["bayes:win", "random"], 4000, 1)
    (best, worst), wins = result.teams, optima("shakes", num_players=2)["P(win)"]
    assert abs(best.win - wins) < 2 * best.win_ci95
    assert worst.win + worst.win_ci95 < best.win
    assert "Elo" not in tournament_grids(result)[0].headings, "nobody plays anybody"
    np.testing.assert_allclose(
        [team.mean_return for team in result.teams], [result.matrix("mean_return")[0][1], result.matrix("mean_return")[1][0]]
    )


def test_long_names_keep_columns_readable(tmp_path):
    bluffs = ["numbers:bluff=0.25,threshold=0.3,preset=text", "numbers:bluff=0.75,threshold=0.3,preset=text"]
    result = done("arena", "liars_dice", *bluffs, "random", "-o", "num_dice=1", "--games", 100, "--seed", 1)
    for letter, name in zip("AB", bluffs, strict=True):
        assert f"{letter} = {name}" in result
        assert f"v {letter}" in result
    assert "C = " not in result


@few(1, ("agents", "games"), [(2, 20), (2, 10), (3, 30), (4, 200)])
def test_intervals_of_elo_hold_the_true_ratings(agents, games):
    """A clean sweep has a finite limit towards the others; more agents than two are rated by all of their games."""
    rng, held, ends = np.random.default_rng(1), [], []
    for _ in range(100):
        true = rng.normal(0, 150, agents)
        true += 1500 - true.mean()
        result = results.Result("", {}, ["x"] * agents, games, 1)
        for one, other in itertools.combinations(range(agents), 2):
            won = (rng.random((games, 1)) < 1 / (1 + 10 ** ((true[other] - true[one]) / 400))).astype(float)
            for cell, share in (((one, other), won), ((other, one), 1 - won)):
                played = results.Played(share, by_match=False)
                result.meetings.append(results.Meeting.of(ONE_ROUND, cell, played, won == 0.5, played))
        limits = elo_intervals(result)
        held += [low <= rating <= high for (low, high), rating in zip(limits, true, strict=True)]
        ends += [
            math.isfinite(low) == (share > 0) for (low, _), share in zip(limits, np.nansum(np.array(result.win_rate, float), 1))
        ]
        assert all(low < rating < high for (low, high), rating in zip(limits, elo(result.win_rate, games), strict=True))
    assert np.mean(held) >= 0.93
    assert all(ends)


def test_mean_returns_are_shown_where_wins_do_not_say_all(monkeypatch):
    monkeypatch.setattr(console, "width", 200)
    assert "mean return" in done("arena", "thirties", *["random"] * 3, "-o", "num_players=3", "--games", 60, "--seed", 1)


SMALL = ("-o", "num_dice=1", "-o", "num_faces=3", "-o", "rounds=single")


@pytest.mark.parametrize("how", [("--exact",), ("--games", 400, "--seed", 0, "--without-luck"), ("--games", 400, "--seed", 0)])
def test_what_could_be_won_stands_beside_what_was(how, tmp_path):
    command, exact = ["arena", "liars-dice", "random", "numbers", *SMALL, *how], how == ("--exact",)
    result, data = with_json(tmp_path, *command, "--report", tmp_path)
    assert with_json(tmp_path, *command)[1] == data, "the seed repeats the result"
    assert (tmp_path / "arena_liars_dice.png").read_bytes().startswith(b"\x89PNG")
    options = {"num_dice": 1, "num_faces": 3, "rounds": "single"}
    assert (data["game"], data["options"], data["agents"]) == ("liars_dice", options, ["random", "numbers"])
    assert (data["exact"], data["games"], data["seed"]) == (exact, 0 if exact else 400, 0)
    assert data["win_rate"][0][0] is data["win_rate"][1][1] is None
    assert data["win_rate"][0][1] + data["win_rate"][1][0] == pytest.approx(1)
    assert (data["ci95"][0][1] == 0) == exact
    assert data["ci95"][0][1] < 0.1
    assert (data["plain_win_rate"] is not None) == data["without_luck"] == ("--without-luck" in how)
    assert [(edge["agent"], edge["opponent"]) for edge in data["edges"]] == [("random", "numbers"), ("numbers", "random")]
    for edge, (row, column) in zip(data["edges"], ((0, 1), (1, 0)), strict=True):
        (best,) = [m for m in measure("liars_dice", edge["opponent"], **options).measures if m.name == BEST_RESPONSE_WINS]
        assert edge["best_response_wins"] == pytest.approx(best.value)
        assert edge["best_response_ci95"] == 0
        assert edge["wins"] == data["win_rate"][row][column]
        assert edge["share"] == pytest.approx((edge["wins"] - 0.5) / (best.value - 0.5))
        assert edge["ci95"] == pytest.approx(data["ci95"][row][column] / (best.value - 0.5))
    assert "What is won and what could be, % of games" in result
    assert "mean return" not in result
    said = "numbers beats random: it wins " if exact else "random and numbers are too close to call: random wins "
    assert re.search(rf"^{said}[0-9. ±]+ %$", result, re.M)
    if exact:
        assert "exactly" in result
        assert re.search(r"│ random v numbers +│ +[0-9.]+ │ +[0-9.]+ │ +none │", result), "it loses"
    assert f"│ {100 * data['edges'][1]['wins']:.2f} │" in re.sub(" +", " ", result)


def test_who_is_not_better_is_not_said_to_be():
    assert "nash and nash are even: nash wins 50.0000 %\n" in done("arena", "liars-dice", "nash", "nash", *SMALL, "--exact")
    close = done("arena", "liars-dice", "random", "random", *SMALL, "--games", 100, "--seed", 1)
    assert "random and random are too close to call: random wins 4" in close


def test_too_few_games_for_a_share_are_said_in_words_with_how_many_it_takes(tmp_path):
    result, data = with_json(tmp_path, "arena", "fatestones", "strongest", "random", "--games", 1000, "--seed", 1)
    (first, second) = data["edges"]
    assert first["ci95"] > 0.5
    assert first["best_response_wins"] == pytest.approx(0.518, abs=0.001), "what could be won stands there all the same"
    words = (
        r"too few games for a share of the edge: within ± 20 % it takes about ([0-9,]+)\. Where .*--without-luck takes fewer"
    )
    (games,) = (int(each.replace(",", "")) for each in re.findall(words, result))
    assert games == pytest.approx(1000 * (max(first["ci95"], second["ci95"]) / 0.2) ** 2, rel=0.1)
    assert re.search(r"│ strongest v random +│ +[0-9.]+ │ +[0-9.]+ ± 0.0\d │ +too few games │", result)
    result, data = with_json(tmp_path, "arena", "fatestones", "strongest", "random", "--games", games, "--seed", 1)
    assert {round(edge["ci95"], 1) for edge in data["edges"]} == {0.2}
    assert "too few" not in result


def test_exact_results_of_a_table_have_four_digits():
    result = done("arena", "liars_dice", "random", "numbers", "random", "--exact", "-o", "num_players=3", *SMALL)
    assert re.search(r"│ B  numbers │ +\d\d\.\d{4} │ +0\.\d{4} │", result)


def test_no_best_response_is_sought_where_it_takes_long_or_nobody_wins():
    search = make_agent("mcts:5")
    variant = configure("liars_dice", num_dice=1)
    assert best_responses(variant, ["mcts"], [search]) == [None], "its answers are random"
    assert best_responses(configure("shakes"), ["random"] * 3, [Uniform()] * 3) == [None] * 3
    assert best_responses(configure("liars_dice"), ["random"], [Uniform()]) == [None], "with five dice it takes a minute"


def test_the_sample_of_deals_is_that_of_seed_0():
    arguments = configure("fatestones"), ["random"], [Uniform()]
    assert best_responses(*arguments) == best_responses(*arguments, seed=0) != best_responses(*arguments, seed=1)


def test_where_no_values_are_known_exploitability_says_what_can_be_won():
    variant = configure("fatestones", dice=(123456, 333444, 222555, 111666), hand_size=1)
    best, again = best_responses(variant, ["random"] * 2, [Uniform()] * 2)
    assert again is best, "found once"
    assert best == (0.5 + measure(variant, "random").measures[0].value / 2, 0.0)


# --- luck taken out ----------------------------------------------------------------------------------------------------

LUCKY = ("arena", "liars_dice", *SMALL, "--seed", "1")


def check_pair(found, plain, exact):
    """The same games with and without luck, and the exact share."""
    assert found.plain_win_rate == plain.win_rate
    assert found.plain_ci95 == plain.ci95
    assert found.draws == plain.draws
    assert found.ci95 < plain.ci95
    assert found.variance_ratio > 1
    assert abs(found.win_rate - exact) < 2 * found.ci95  # four standard errors
    assert found.mean_return == pytest.approx(2 * found.win_rate - 1)
    assert found.mean_return_ci95 == pytest.approx(2 * found.ci95)


@few(1, "agents", [("random", "nash"), ("nash", "random")])
def test_one_side_is_enough(agents):
    ways = [values() if spec == "nash" else None for spec in agents]
    plain = tournament(ONE_ROUND, agents, 2000, 1)
    found = tournament(ONE_ROUND, agents, 2000, 1, values=ways)
    exact = winning_probability(ONE_ROUND, *agents)
    check_pair(found.meetings[0], plain.meetings[0], exact)
    check_pair(found.meetings[1], plain.meetings[1], 1 - exact)
    assert found.win_rate[0][1] + found.win_rate[1][0] == pytest.approx(1)


def test_both_sides_are_taken_together():
    plain = tournament(ONE_ROUND, ["nash", "nash"], 200, 1)
    found = tournament(ONE_ROUND, ["nash", "nash"], 200, 1, values=[values(), values()])
    assert [each.plain_win_rate for each in found.meetings] == [each.win_rate for each in plain.meetings]
    assert found.win_rate[0][1] == pytest.approx(0.5, abs=1e-3)
    assert found.ci95[0][1] == pytest.approx((1 - 0.025 ** (1 / 200)) / 2, rel=0.02)  # either may lose what no game showed
    few = tournament(ONE_ROUND, ["nash", "nash"], 20, 1, values=[values(), values()])  # too few to fit coefficients
    assert few.win_rate[0][1] == pytest.approx(0.5, abs=1e-3)


def test_parts_of_matches_are_without_luck():
    found = tournament(ONE_ROUND, ["random", "nash"], 2000, 1, match=20, values=[None, values()])
    plain = tournament(ONE_ROUND, ["random", "nash"], 2000, 1, match=20)
    exact = winning_probability(ONE_ROUND, "random", "nash")
    first, second = found.meetings
    assert [part.first for part in first.parts] == [1, 11]
    for part, other, as_played in zip(first.parts, second.parts, plain.meetings[0].parts, strict=True):
        assert abs(part.win_rate - exact) < 2 * part.ci95
        assert part.ci95 < as_played.ci95
        assert part.win_rate + other.win_rate == pytest.approx(1)


def test_a_pair_plays_the_same_games_in_every_field():
    """So do three around a table, whoever is named first; copies of an agent have games of their own."""
    pair, turned, field = (
        tournament(ONE_ROUND, specs, 100, 1, values=[values()] * len(specs))
        for specs in (["random", "nash"], ["nash", "random"], ["numbers", "nash", "nash", "random"])
    )
    assert pair.meeting(0, 1) == dataclasses.replace(turned.meeting(1, 0), row=0, column=1)
    assert pair.meeting(0, 1) == dataclasses.replace(field.meeting(3, 1), row=0, column=1)
    assert pair.meeting(0, 1).plain_win_rate != field.meeting(3, 2).plain_win_rate
    three = configure("liars_dice", num_players=3, num_dice=1)
    one, other = (
        tournament(three, specs, 100, 1).win_rate[0]
        for specs in (["random", "numbers", "reader"], ["reader", "random", "numbers"])
    )
    assert one == [*other[1:], other[0]]


def test_an_agent_that_does_not_play_what_it_states_is_named():
    class Liar(Numbers):
        def kernel(self, variant):
            return Numbers(bluff=0.6).kernel(variant)

    variant = configure("liars_dice", num_dice=2)
    with pytest.warns(UserWarning, match="results are biased: Liar.* does not play as it states"):
        assert "results are biased" in evaluate(variant, "nash", Liar(), 2000, seed=1).note
    known = [response_values(variant, Liar()), None]
    (note,) = tournament(variant, ["liar", "nash"], 2000, 1, agents=[Liar(), resolve("nash")], values=known).notes
    assert note.startswith("results are biased: liar does not play as it states")
    assert not tournament(variant, ["numbers", "nash"], 2000, 1, values=known).notes


def test_intervals_count_matches_where_an_agent_remembers():
    """Ten matches in which an agent may have decided to play badly: of fifty games each, but known ten times only."""

    class Keeps(Uniform):
        promises = Promises(remembers=np.int64)

    for agent, width in ((Keeps(), 0.158), (Uniform(), 0.045)):
        found = tournament(ONE_ROUND, ["keeps", "random"], 500, 1, agents=[agent, Uniform()], match=50).meetings[0]
        assert found.ci95 == pytest.approx(width, rel=0.1)
        lucky = tournament(
            ONE_ROUND, ["keeps", "nash"], 500, 1, agents=[agent, resolve("nash")], match=50, values=[None, values()]
        )
        assert lucky.ci95[0][1] > (0.1 if width > 0.1 else 0)


def test_games_of_hardly_possible_points_have_useful_intervals():
    variant = configure("thirties", num_players=1, goal="optimal")
    found = tournament(variant, ["thirties", "thirties:heuristic"], 1000, 1)
    assert all(0.3 < each.mean_return_ci95 < 1 for each in found.meetings)
    assert all(each.mean_return_ci95 < 200 for each in tournament(variant, ["random"] * 2, 10, 1).meetings)
    alone = evaluate(variant, "thirties:heuristic", games=1000, seed=1)
    assert alone.error < 0.04 < 0.3 < alone.plain_error < 1


def test_who_thinks_by_the_clock_is_named():
    result = run(*LUCKY, "random", "mcts:1,seconds=1", "--games", 10, "--without-luck").output
    assert "MCTS thinks by the clock: the seed does not repeat its games" in result
    assert "no values against mcts:1,seconds=1: " in result
    assert "as played" in result, "the same games, in columns beside those without luck"


def test_agents_without_fixed_probabilities_have_no_values():
    variant = configure("liars_dice", num_dice=1)
    found, (reason,) = known_values(variant, ["adaptive"], [resolve("adaptive")])
    assert found == [None]
    assert "remembers past games" in str(reason)
    assert not tournament(variant, ["adaptive"] * 2, 10, 1, values=found * 2).without_luck, "no luck was taken out"
