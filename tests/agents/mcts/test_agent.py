"""Search, in FateStones, where the exact answer is known, and in Liar's Dice."""

import itertools
import threading
import types
from functools import cache

import numpy as np
import pytest

from dice_envs import Batch, configure, measure
from dice_envs.agent import Turn
from dice_envs.agent.specs import make_agent
from dice_envs.agents.mcts import FIRST_CHUNK, MCTS, next_chunk
from dice_envs.agents.mcts.search import Searches
from dice_envs.agents.mcts.tree import EDGE, count_visit
from dice_envs.experiments.reproduce.fatestones import JointSearch
from dice_envs.games.fatestones import DIE_OF_CODE
from dice_envs.games.fatestones.exact import evaluate, first_choices
from dice_envs.games.fatestones.exact.draws import draw_hands
from tests.support.turns import turn_at


@cache
def fair():
    return configure("fatestones")


def turn_of(game: str, games: int, seed: int = 1, moves: int = 0, **options) -> Turn:
    batch = Batch(game, games, seed, **options)
    for _ in range(moves):
        batch.play(batch.legal().argmax(axis=1))
    return turn_at(batch.variant, batch.states, seed)


def test_an_edge_counts_its_visits_and_their_mean_value():
    edge = np.zeros(1, EDGE)
    for visits, values in enumerate(([1.0], [1.0, 0.0], [1.0, 0.0, -0.25]), 1):
        count_visit(edge[0], values[-1])
        assert edge["visits"] == visits
        assert edge["mean"] == pytest.approx(np.mean(values))
        assert edge["width"] == pytest.approx(visits**-0.5)


SPECS = ["mcts:20", "mcts:20,select=regret", "mcts:20,opponent=random", "mcts:1", "mcts:20,final=mixed"]


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("game", [pytest.param("fatestones", marks=pytest.mark.thorough), "liars_dice"])
@pytest.mark.parametrize("moves", [0, 1])
def test_policies_are_legal_and_games_are_left_alone(game, spec, moves):
    turn = turn_of(game, 30, moves=moves)
    before = turn._true_states.copy()
    policies = make_agent(spec).probabilities(turn)
    assert policies.sum(axis=1) == pytest.approx(1)
    assert (policies[turn.legal == 0] == 0).all()
    assert (turn._true_states == before).all()
    actions = make_agent(spec).act(turn_of(game, 30, moves=moves))
    assert (turn.legal[np.arange(30), actions] == 1).all()


@pytest.mark.thorough
def test_the_waiting_commitment_has_no_influence():
    """The search of seat 1 does not depend on the choice of seat 0."""
    policies = []
    for committed in range(3):
        batch = Batch("fatestones", 50, seed=3)
        batch.play(np.full(50, committed))
        policies.append(MCTS(200, select="regret").probabilities(turn_at(batch.variant, batch.states)))
    assert (policies[0] == policies[1]).all()
    assert (policies[0] == policies[2]).all()


@pytest.mark.thorough
def test_against_random_with_rolls_averaged_50_simulations_take_the_edge():
    share, error = first_choices(fair(), make_agent("mcts:50,opponent=random,expect=true"), draw_hands(fair(), 500, 1), 1)
    assert share - error >= 0.95


def lost_by(found):
    """What is lost on these draws, and the half-width of the normal distribution's interval, which no unseen draw widens."""
    lost = -found.kept.mean(axis=1)
    return lost.mean(), 1.96 * lost.std() / len(lost) ** 0.5


@pytest.mark.thorough
def test_regret_matching_comes_near_equilibrium_and_uct_does_not():
    hands = draw_hands(fair(), 40, 3)
    near, error = lost_by(evaluate(fair(), make_agent("mcts:2000,select=regret,expect=true"), hands, 1))
    assert near + error < 0.008
    for agent in (MCTS(1000), JointSearch(1000)):
        lost, error = lost_by(evaluate(fair(), agent, hands, 1))
        assert lost - error > 0.02


@pytest.mark.thorough
def test_search_finds_the_winning_die():
    """Against two worse dice, every rule must find the best one; the joint rule lets the other player choose a losing die."""
    specs = ("mcts:200", "mcts:200,select=regret,final=best", "mcts:200,rollout=strongest")
    for agent in (*map(make_agent, specs), JointSearch(200)):
        assert (agent.act(fatestones_turn((666666, 111111, 111111), (333333,) * 3)) == 0).all()


@pytest.mark.thorough
def test_interpreted_search_is_compiled_search(run_python):
    program = (
        "import numpy as np\n"
        "from dice_envs import Batch\n"
        "from dice_envs.agent import Turn\n"
        "from dice_envs.agent.specs import make_agent\n"
        "from dice_envs.core.dice import new_streams\n"
        "np.seterr(over='ignore')\n"
        "b = Batch('fatestones', 2, 1)\n"
        "for s in ('mcts:12', 'mcts:12,select=regret', 'mcts:12,opponent=random,expect=true', 'nash'):\n"
        "    t = Turn(b.variant, b.states, np.arange(2), new_streams(1, 2))\n"
        "    print(make_agent(s).probabilities(t).round(9).tolist())\n"
    )
    assert run_python(program, NUMBA_DISABLE_JIT="0") == run_python(program, NUMBA_DISABLE_JIT="1") != ""


def fatestones_turn(first, second, games=20):
    """A turn of seat 0 with these dice in both hands."""
    variant = configure("fatestones", dice=[*first, *second], hand_size=len(first))
    states = np.zeros(games, variant.game.state)
    states["committed"], states["left"], states["hands"] = -1, len(first), -1
    states["hands"][:, :, : len(first)] = [[DIE_OF_CODE[code] for code in hand] for hand in (first, second)]
    return turn_at(variant, states)


@pytest.mark.thorough
def test_after_a_tie_the_dice_left_are_those_of_the_tie():
    """333333 ties with 333333, then the remaining die loses; against 555555 it loses at once. 444444 wins half of the time."""
    search = MCTS(300, opponent="random", expect=True)
    policies, values = search.search(fatestones_turn((333333, 444444), (333333, 555555)))
    assert (policies[:, 1] == 1).all()
    assert values == pytest.approx(np.full(20, values[0]))
    assert -0.15 < values[0] <= 0


@pytest.mark.thorough
def test_the_other_seat_plays_for_itself():
    """444444 wins against 333333 and loses against 555555, which the other seat therefore chooses."""
    _, values = MCTS(500).search(fatestones_turn((444444, 111111), (333333, 555555)))
    assert values.mean() < -0.5


def test_a_search_that_is_stopped_makes_one_chunk_of_simulations():
    turn, stop = turn_of("liars_dice", 2), threading.Event()
    stop.set()
    searches = Searches(turn.states, turn.streams, np.zeros((2, turn.variant.facts.num_actions)), np.zeros(2))
    MCTS(10_000_000)._search_all(turn.variant, searches, stop)
    assert 0 < searches.policies.sum() <= FIRST_CHUNK


@pytest.mark.thorough
@pytest.mark.parametrize("chunk", [1, 7])
@pytest.mark.parametrize("game", ["liars_dice", "score_dice"])
def test_the_moments_at_which_a_search_can_be_stopped_change_nothing(game, chunk, monkeypatch):
    whole = MCTS(40).search(turn_of(game, 3))
    monkeypatch.setattr("dice_envs.agents.mcts.FIRST_CHUNK", chunk)
    monkeypatch.setattr("dice_envs.agents.mcts.next_chunk", lambda *given: chunk)
    for found, expected in zip(MCTS(40).search(turn_of(game, 3)), whole, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_a_search_by_the_clock_ends_with_it(monkeypatch):
    clock = itertools.count()  # a second passes between any two looks
    monkeypatch.setattr("dice_envs.agents.mcts.time", types.SimpleNamespace(monotonic=lambda: float(next(clock))))
    turn = turn_of("liars_dice", 3)
    policies, _ = MCTS(seconds=4).search(turn)  # of ten million simulations
    assert policies.sum(axis=1) == pytest.approx(1)
    assert (policies[turn.legal == 0] == 0).all()
    assert next(clock) == 1 + 3 * 5, "for each game one look when it begins, and four more until its time is over"
    assert MCTS(seconds=4).promises.by_clock
    MCTS(simulations=10**5, seconds=None).promises.needs(configure("thirties"), 1)  # where nobody waits
    assert not MCTS().promises.by_clock


def test_chunks_grow_and_shrink_with_their_time():
    seconds = [0.01, 0.01, 0.15, 0.3, 0.3]
    assert list(itertools.accumulate(seconds, next_chunk, initial=2)) == [2, 4, 8, 8, 4, 2]
    assert next_chunk(1, 100.0) == 1


def test_threads_stop_with_the_first_that_fails(monkeypatch):
    seen, both = [], threading.Barrier(2)

    def search_all(self, variant, searches, stop):
        if both.wait() == 0:
            raise KeyboardInterrupt
        seen.append(stop.wait(300))

    monkeypatch.setattr("dice_envs.core.machine.os.sched_getaffinity", lambda process: range(2), raising=False)
    monkeypatch.setattr(MCTS, "_search_all", search_all)
    with pytest.raises(KeyboardInterrupt):
        MCTS(10, threads=256).search(turn_of("liars_dice", 20))
    assert seen == [True]


ONE_DIE = configure("liars_dice", rules="openspiel", num_dice=1)


@pytest.mark.thorough
def test_more_simulations_leave_less_to_be_won_at_liars_dice():
    short, long = (measure(ONE_DIE, f"mcts:{n},select=regret", seed=1).measures[0].value for n in (10, 300))
    assert long < short - 0.05
