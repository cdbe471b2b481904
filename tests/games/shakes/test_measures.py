"""The Shakes: `measure`, beside brute force, evaluations and games."""

from fractions import Fraction

import numpy as np
import pytest

from dice_envs import configure, measure
from dice_envs.agent import AgentError, Promises, Uniform
from dice_envs.agent.specs import make_agent
from dice_envs.exact import Effort
from dice_envs.games.shakes import exact as shakes
from dice_envs.games.shakes.exact import policies
from dice_envs.games.shakes.exact.chances import Problem, kept_die, tallies
from dice_envs.games.shakes.exact.policies import as_policy, evaluate, solve
from tests.support.policies import Counted, Plays
from tests.support.shakes_tools import policy_of, tally, win_by_brute_force
from tests.support.subsets import covering


class Listener:
    """Argues by an arbitrary function of its information: the tally, the others' dice, its seat and the opener."""

    @staticmethod
    def quarters(treated, saved, strength, seat, opener):
        """The seat's probability of arguing, in quarters, by absolute seats."""
        heard = 3 * np.asarray(treated) + 5 * np.asarray(saved) + 7 * np.asarray(strength, np.int64)
        return (heard @ np.arange(2, 2 + heard.shape[-1]) + 3 * np.asarray(seat, np.int64) + opener) % 5

    def probabilities(self, turn):
        n, states = turn.params.num_players, turn.states
        seen = [states[name][:, :n] for name in ("treated", "saved", "strength")]
        argues = np.where(turn.legal[:, 0], self.quarters(*seen, states["seat"], states["opener"]) / 4, 1.0)
        return np.stack([1 - argues, argues], axis=1)

    def act(self, turn):
        drawn = turn.rng.random(len(turn))
        return (drawn < self.probabilities(turn)[:, 1]).astype(np.int64)


def team_by_brute_force(agent, n, opener, treated, saved, ties):
    """The distribution of the chosen treatment, from all actions and rolls of the maesters, as fractions."""
    dice = [kept_die(t, s) for t, s in zip(treated, saved, strict=True)]
    wins = [Fraction(0)] * n

    def speak(spoken, strength, chance):
        if spoken == n:
            top = [i for i in range(n) if strength[i] == max(strength)]
            again = win_by_brute_force([dice[i] for i in top], "again")
            for i, share in zip(top, again, strict=True):
                wins[i] += chance * (share if ties == "again" else Fraction(1, len(top)))
            return
        seat = (opener + spoken) % n
        forced = spoken == n - 1 and not any(strength)
        argues = Fraction(1) if forced else Fraction(int(agent.quarters(treated, saved, strength, seat, opener)), 4)
        for kept in range(7):
            said = 1 - argues if kept == 0 else argues * dice[seat][kept - 1]
            if said:
                speak(spoken + 1, [*strength[:seat], kept, *strength[seat + 1 :]], chance * said)

    speak(0, [0] * n, Fraction(1))
    return [float(share) for share in wins]


@pytest.mark.parametrize("ties", ["again", "random"])
@pytest.mark.parametrize(("treated", "saved"), [((3, 2), (1, 2)), ((2, 0, 1), (1, 0, 0)), ((4, 1, 3), (4, 0, 2))])
def test_a_tables_policy_against_all_that_may_be_said(treated, saved, ties):
    n, patients = len(treated), sum(treated)
    variant = configure("shakes", num_players=n, ties=ties)
    for first in range(n):
        policy = as_policy(Listener(), variant, first)
        expected = team_by_brute_force(Listener(), n, (first + patients) % n, treated, saved, ties)
        assert np.allclose(policy(*tally(treated, saved))[0], expected, atol=1e-13)


def test_what_only_resembles_random_play_is_asked():
    class Last(Uniform):
        def probabilities(self, turn):
            return np.eye(turn.legal.shape[1])[np.full(len(turn), -1)]

    problem = Problem.of(configure("shakes").options)
    always = evaluate(problem, lambda treated, saved: np.eye(3)[np.full(len(treated), 2)], merged=False)
    assert measure("shakes", Last()).measures[1].value == pytest.approx(always.win, abs=1e-12)


@covering(("ties", "spec"), ["again", "random"], ["random", "bayes", "thompson", "ucb", "argument", "dogmatic"])
def test_asking_once_a_tally_is_enough_for_agents_that_promise_it(spec, ties, monkeypatch):
    variant = configure("shakes", num_players=3, ties=ties, num_patients=5, goal=2)
    levels = tallies(Problem.of(variant.options), merged=False)[:-1]
    treated, saved = (np.concatenate([getattr(level, name) for level in levels]) for name in ("treated", "saved"))
    for first in range(3):
        once = as_policy(make_agent(spec), variant, first)
        with monkeypatch.context() as patched:
            patched.setattr(policies, "looks_at_tally_alone", lambda agent: False)
            always = as_policy(make_agent(spec), variant, first)
        assert once.func is not always.func
        assert np.allclose(once(treated, saved), always(treated, saved), atol=1e-13)


@pytest.mark.parametrize("tally_alone", [False, True])
@pytest.mark.parametrize("options", [{"mode": "physician"}, {}, {"open_efficacies": True}])
def test_an_agent_is_asked_at_as_many_positions_as_are_estimated(options, tally_alone, monkeypatch):
    monkeypatch.setattr(shakes, "_merges", lambda variant, agent: False)
    variant, agent = configure("shakes", num_players=3, num_patients=3, goal=2, **options), Counted("random")
    agent.promises = policies.TallyPromises() if tally_alone else Promises()
    shakes.measure(variant, agent, Effort())
    assert agent.count == shakes._positions(variant, agent)


@covering(("num_players", "spec"), [2, 3, 4], ["random", "bayes", "thompson", "greedy:permutations"])
def test_a_physicians_measure_is_its_evaluation(spec, num_players):
    for reward in ("saved", "win"):
        options = {"mode": "physician", "num_players": num_players, "reward": reward}
        problem = Problem.of(configure("shakes", **options).options)
        exact = evaluate(problem, policy_of(spec, num_players=num_players, reward=reward))
        for each in measure("shakes", spec, **options).measures:
            name = "saved" if each.name == "patients saved" else "win"
            assert each.value == pytest.approx(getattr(exact, name), abs=1e-12)
            assert each.optimum == solve(problem, name).value
            assert each.gap == pytest.approx(each.optimum - each.value, abs=1e-12)
            assert each.error == 0


@pytest.mark.thorough
def test_where_there_are_too_many_positions_games_are_played():
    options = {"mode": "maesters", "num_players": 5}
    variant = configure("shakes", **options)
    random = measure(variant, "random", sample=2_000)
    assert random.score == 0  # by the same games
    assert measure(variant, "random", sample=2_000) == random
    assert measure(variant, "random", sample=2_000, seed=1).measures != random.measures
    assert "2,000 games played: 42,181,425 positions are too many" in random.measures[0].note
    best = measure(variant, Plays("bayes"), sample=2_000).measures
    for each in best:
        assert 0 < each.error < 0.2
        assert each.value == pytest.approx(each.optimum, abs=2 * each.error)
    assert measure(variant, "bayes", sample=2_000).score == pytest.approx(1, abs=1e-9)
    physician = measure("shakes", Plays("random"), num_players=6, sample=2_000)
    assert physician.score == pytest.approx(0, abs=0.05)
    assert measure("shakes", "random", num_players=6).measures[0].error == 0


def test_illegal_play_names_the_agent():
    class Silent:
        def act(self, turn):
            return np.zeros(len(turn), np.int64)

    with pytest.raises(AgentError, match=r"Silent in shakes, seat \d of game \d+: action 0 \(yield\) is not legal now"):
        measure("shakes", Silent(), mode="maesters", num_players=4, sample=200)
