"""`solve shakes`: values, distributions, and refusals."""

import math
import re
import time

from dice_envs import configure
from dice_envs.agent.specs import make_agent
from dice_envs.experiments.reproduce import printed
from dice_envs.games.shakes.exact.chances import Problem, argument_chances
from dice_envs.games.shakes.exact.policies import as_policy, evaluate
from tests.support.commands import with_json
from tests.support.subsets import few


@few(1, ("policy", "value"), [("optimal", "0.8056"), ("argument", "0.716603")])
def test_solve_writes_value_and_distribution(tmp_path, policy, value):
    _, written = with_json(tmp_path, "solve", "shakes", "-o", "num_players=4", "-o", "reward=win", "--policy", policy)
    assert printed("", "", value, written["value"]).agrees
    assert len(written["distribution"]) == 19
    assert math.isclose(sum(written["distribution"]), 1, abs_tol=1e-12)
    assert math.isclose(sum(written["distribution"][7:]), written["value"], abs_tol=1e-12)


def test_solve_evaluates_any_agent_with_probabilities(tmp_path):
    begun = time.perf_counter()
    told, written = with_json(tmp_path, "solve", "shakes", "--policy", "random")
    assert float(re.search(r"exact, in ([\d.]+) s", told)[1]) < time.perf_counter() - begun + 0.1, "it is rounded"
    assert math.isclose(written["value"], 4, abs_tol=1e-12)
    policy = as_policy(make_agent("argument"), configure("shakes", mode="physician"))
    problem = Problem.of(configure("shakes").options)
    assert math.isclose(evaluate(problem, policy, merged=False).saved, evaluate(problem, argument_chances).saved)
