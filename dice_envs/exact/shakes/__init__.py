"""The cooperative Shakes, exactly: closed forms, evaluations of policies, Bayes-optimal play, agents' measures.

`tally` lists the tallies, which are all that a policy needs to know; `argument` holds the kept die and the chances to win an
argument, `posterior` the posteriors of the treatments; `solution` optimal play; `evaluation` the
distribution of the patients that a policy saves; `policies` turns agents into policies; `measures` evaluates
agents, `values` the choices in a position.

Everything is summed in float64 over non-negative terms, so figures are good to about 12 digits.
"""

from dice_envs.exact.shakes.argument import argument_chances, kept_die
from dice_envs.exact.shakes.evaluation import Evaluation, evaluate, evaluate_open
from dice_envs.exact.shakes.measures import measure, optima
from dice_envs.exact.shakes.policies import as_policy, as_tally_team, as_team
from dice_envs.exact.shakes.posterior import beta_chances, efficacy_chances, success_chances
from dice_envs.exact.shakes.solution import Solution, check_in_passing, open_optimum, open_values, solve
from dice_envs.exact.shakes.tally import TIE, Policy, Problem, best_of, tallies
from dice_envs.exact.shakes.values import action_values, response_values, situations

__all__ = [
    "TIE",
    "Evaluation",
    "Policy",
    "Problem",
    "Solution",
    "action_values",
    "argument_chances",
    "as_policy",
    "as_tally_team",
    "as_team",
    "best_of",
    "beta_chances",
    "check_in_passing",
    "efficacy_chances",
    "evaluate",
    "evaluate_open",
    "kept_die",
    "measure",
    "open_optimum",
    "open_values",
    "optima",
    "response_values",
    "situations",
    "solve",
    "success_chances",
    "tallies",
]
