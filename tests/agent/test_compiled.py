"""Agents with kernels: compiled games give exactly the results of games in which Python asks each agent."""

import functools

import numba
import numpy as np
import pytest

from dice_envs import AgentError, Mixture, Uniform, configure
from dice_envs.agent import KernelAgent, Promises
from dice_envs.agent.compiled import compile_games, team_of
from dice_envs.agent.kernel import AgentKernel
from dice_envs.agent.specs import make_agent
from dice_envs.agents.liars_dice import Numbers
from dice_envs.core.batch import Batch
from dice_envs.core.dice import below
from dice_envs.core.kernel import kernel
from dice_envs.envs.learner import SeatGames
from dice_envs.experiments.arena import play_table
from tests.conftest import scaled
from tests.support.interfaces import refused
from tests.support.turns import begun, played, turn_at

ROUNDS = scaled(40, 5)  # turns of the learner
GAMES = scaled(24, 3)

# Games, options and agents with kernels; several seats, so that there are opponents, then games of one seat.
SEATED = [
    ("liars_dice", {}, ["random", "numbers", "numbers:bluff=0.5", "numbers:preset=article,bluff=1", "reader"]),
    ("fatestones", {}, ["random", "strongest"]),
    ("score_dice", {}, ["random", "highest", "shuffled"]),
    ("shakes", {"mode": "maesters"}, ["random", "dogmatic", "argument", "greedy", "ucb", "ucb:exploration=1"]),
    (
        "thirties",
        {"num_players": 2},
        ["random", "thirties:sixes", "thirties:beginner", "thirties:heuristic", "thirties:maximize"],
    ),
    ("shakes", {"mode": "physician"}, ["random", "argument", "greedy", "ucb", "thompson"]),
    ("thirties", {"num_players": 1}, ["random", "thirties:fives_and_sixes", "thirties"]),
]


class Asked:
    """Hides an agent's kernel, so that Python asks it, and always gives it samples of the state."""

    def __init__(self, agent):
        self.agent = agent

    def act(self, turn):
        offered = self.agent.kernel(turn.variant)
        return turn.choose(offered._replace(reads_hidden=True))


def copies(opponents):
    """The same opponents without kernels."""
    if isinstance(opponents, Mixture):
        return Mixture([Asked(agent) for agent in opponents.agents], opponents.weights)
    return [Asked(agent) for agent in opponents]


def history(variant, opponents, **arguments):
    """All outputs and the state of an environment while a learner plays at random."""
    return list(played(variant, opponents, GAMES, ROUNDS, seed=3, **arguments))


def same(one, other):
    assert len(one) == len(other)
    for ours, theirs in zip(one, other, strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "options", "specs"), SEATED)
def test_both_ways_show_and_leave_the_same(name, options, specs):
    """For every agent with a kernel, in a pool; a learner at every seat; self-play; matches that each agent begins."""
    variant = configure(name, **options)
    made, seats = [make_agent(spec) for spec in specs], variant.facts.num_seats
    assert not team_of(made, variant).may_fail, "no copy of games is kept for the agents of this project"
    if seats > 1:
        pool = Mixture(made, weights=list(range(1, len(made) + 1)))
        same(history(variant, pool), history(variant, copies(pool)))
        same(history(variant, pool, self_play=0.5), history(variant, copies(pool), self_play=0.5))
    for first in range(len(made)):
        table = [made[(first + place) % len(made)] for place in range(seats)]
        same([play_table(variant, table, 12, 5, match=3)], [play_table(variant, copies(table), 12, 5, match=3)])


def test_both_ways_play_liars_dice_the_same():
    """One game of three different players, for the fast tests."""
    variant = configure("liars_dice", num_players=3, num_dice=2)
    made = [Uniform(), Numbers(0.5)]
    same(history(variant, made), history(variant, copies(made)))
    mixed = [made[0], Asked(made[1])]
    assert team_of(mixed, variant) is None
    same(history(variant, mixed), history(variant, made))
    table = [*made, Numbers(1.0, preset="article")]
    compiled, asked = (
        [play_table(variant, each, 3 * GAMES, 1, match=match) for match in (1, 3)] for each in (table, copies(table))
    )
    same(compiled, asked)
    loop = compile_games(variant.game, team_of(table, variant).choosers)
    assert numba.config.DISABLE_JIT or len(loop.signatures) == 1, "agents with other options share the machine code"


@pytest.mark.parametrize(("name", "options"), [("fatestones", {}), ("shakes", {"mode": "maesters"})])
def test_both_ways_pay_the_same_expected_rewards(name, options):
    variant = configure(name, **options)
    loop, asked = (history(variant, agent, expected_rewards=True) for agent in (Uniform(), Asked(Uniform())))
    same(loop, asked)


# --- what a kernel may do ---------------------------------------------------------------------------------------------

_MANNERS = np.dtype([("wrong", np.int64)])


@kernel
def _with_manners(params, options, state, stream):
    """FateStones: a random die; an illegal action if the hand has the wrong size."""
    if options["wrong"] == state["left"]:
        return params.num_actions + 3
    return below(stream, state["left"])


class Mannered(KernelAgent):
    def __init__(self, wrong=0):
        self.wrong = wrong

    def kernel(self, variant):
        return AgentKernel(_with_manners, np.array((self.wrong,), _MANNERS))


@kernel
def _peeking(params, options, state, stream):
    """FateStones: the hidden die to which the other seat has committed; otherwise a random one."""
    return state["committed"] if state["committed"] >= 0 else below(stream, state["left"])


class Peeking(KernelAgent):
    def kernel(self, variant):
        return AgentKernel(_peeking, reads_hidden=True)


def everything(games):
    return [array.copy() for array in games.snapshot().values()]


@pytest.mark.parametrize("make", [Mannered, lambda wrong: Asked(Mannered(wrong))], ids=["compiled", "asked"])
def test_a_kernels_illegal_action_is_named_and_changes_nothing(make):
    """In a step, in the first moves of new games, and at a table, wherever the faulty game is in the batch."""
    variant = configure("fatestones")
    games = begun(variant, make(0), 40, seat=0)
    faulty = make(2)  # wrong after a tie, which takes one die of three
    games._agents[:] = [faulty]
    found = 0
    for _ in range(20):
        before = everything(games)
        actions, begins = games.view().masks.argmax(axis=1), games.ended()
        problem, _ = refused(lambda now=(actions, begins): games.advance(*now, restart=False), AgentError)
        if problem is None:
            continue
        found += 1
        assert "in fatestones, seat 1 of game" in problem
        assert "action 6 does not exist; actions are 0 to 2" in problem
        same(everything(games), before)
        games._agents[:] = [make(0)]
        games.advance(actions, begins, restart=False)
        games._agents[:] = [faulty]
    assert found
    with pytest.raises(AgentError, match="in fatestones, seat . of game"):
        play_table(variant, [make(0), faulty], 100, 1)


class Faulty(Mannered):
    """Chooses an illegal action with its first hand."""

    def __init__(self, wrong=3):
        super().__init__(wrong)


@pytest.mark.parametrize("place", [0, 1])
def test_of_several_agents_the_one_with_the_illegal_action_is_named(place):
    """By its name and seat, at a table of two and in a step against a pool of three."""
    variant = configure("fatestones", hand_size=3)
    table = [Mannered(), Mannered()]
    table[place] = Faulty()
    with pytest.raises(AgentError, match="^Faulty in fatestones, seat . of game"):
        play_table(variant, table, 100, 1)
    pool = Mixture([Mannered(), *table])
    games = SeatGames(variant, 40, pool, seat=0)
    games.seed_games(np.arange(40), list(range(40)))
    problem, _ = refused(lambda: games.start(np.arange(40)), AgentError)
    advance = functools.partial(games.advance, np.zeros(40, np.int64), np.zeros(40, bool), restart=True)
    for _ in range(3):
        problem = problem or refused(advance, AgentError)[0]
    assert problem.startswith("Faulty in fatestones, seat 1 of game")


def test_an_agent_of_a_pool_that_still_plays_cannot_be_removed():
    pool = Mixture([Mannered(), Mannered()])
    games = begun(configure("fatestones"), pool, 20, seat=0)
    del pool.agents[1]
    with pytest.raises(ValueError, match="agents that still play cannot be removed from a pool, which has only 1 now"):
        games.advance(np.zeros(20, np.int64), np.zeros(20, bool), restart=False)


class Promising(Mannered):
    """Promises that its actions are legal, and breaks the promise where one is given as wrong."""

    def kernel(self, variant):
        return super().kernel(variant)._replace(always_legal=True)


def test_a_broken_promise_is_found():
    variant = configure("fatestones")
    assert team_of([Mannered()], variant).may_fail
    assert team_of([Mannered(), Promising()], variant).may_fail
    assert not team_of([Promising(), Uniform()], variant).may_fail
    games = begun(variant, Promising(2), 40, seat=0)

    def play_on():
        for _ in range(20):
            games.advance(games.view().masks.argmax(axis=1), games.ended(), restart=False)

    with pytest.raises(AgentError, match="^Promising in fatestones, seat 1 of game .* action 6 does not exist"):
        play_on()


def test_a_kernel_sees_a_sample_of_what_is_hidden():
    """Against a seat that always commits to its first die, peeking would be obvious."""
    variant = configure("fatestones")
    games = begun(variant, Peeking(), 200, seat=0)
    full = games.states["left"] == 3
    games.advance(np.zeros(200, np.int64), np.zeros(200, bool), restart=False)
    chosen = games.states["choices"][full, 1]
    assert len(chosen) > 100
    counts = np.bincount(chosen, minlength=3)
    assert ((counts - len(chosen) / 3) ** 2 / (len(chosen) / 3)).sum() < 14  # chi-square with 2 degrees of freedom: 1 in 1,000


def test_what_is_no_kernel_is_refused_and_who_remembers_is_asked():
    class Plain(KernelAgent):
        def __init__(self, offered):
            self.offered = offered

        def kernel(self, variant):
            return self.offered

    variant = configure("fatestones")
    turn = turn_at(variant, Batch(variant, 2, seed=1).states)
    with pytest.raises(AgentError, match="the options of its kernel must be one NumPy record, not 0.5"):
        play_table(variant, [Plain(AgentKernel(_peeking, 0.5)), Uniform()], 2, 1)
    with pytest.raises(TypeError, match="must be a function decorated with dice_envs.core.kernel.kernel, not 7"):
        Plain(AgentKernel(7)).act(turn)
    with pytest.raises(NotImplementedError, match="Plain has no kernel for fatestones"):
        Plain(None).act(turn)
    remembering = Mannered()
    remembering.promises = Promises(remembers=np.dtype([("turns", np.int64)]))
    assert team_of([Plain(None)], variant) is team_of([remembering], variant) is None
