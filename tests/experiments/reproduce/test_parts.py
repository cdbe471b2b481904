"""Losses of parts of an agent's play against a solution of Liar's Dice, compared with a plain program."""

import itertools

import numpy as np
import pytest

from dice_envs import agents, configure
from dice_envs.agent import Turn
from dice_envs.agents.liars_dice import LiarsDiceNash
from dice_envs.core.dice import new_streams
from dice_envs.exact.liars_dice.measures import winning_probability
from dice_envs.exact.liars_dice.solver import solve
from dice_envs.experiments.reproduce.liars_dice.habits import (
    BOTH,
    KEPT,
    PARTS,
    QUANTITY,
    Replaced,
    mean_loss,
    wins_against,
    wins_games,
)
from dice_envs.games.liars_dice import STATE
from dice_envs.games.liars_dice.raises import NO_BID
from tests.support.subsets import covering

pytestmark = pytest.mark.thorough


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def plain_wins(solution, agent, dice, player, part):
    """The probability that the agent, as player 0 or 1, wins a round with a part of its play replaced."""
    variant = solution.variant
    faces = variant.params.num_faces

    def state_of(throws, bids):
        mover = len(bids) % 2
        state = np.zeros(1, STATE)
        state["dice"][0, :2] = dice
        state["in_round"][0, :2] = 1
        state["in_play"], state["seat"], state["num_bids"] = sum(dice), mover, len(bids)
        state["bid"] = bids[-1] if bids else NO_BID
        state["bids"][0, : len(bids)] = bids
        state["counts"][0, mover, :faces] = [throws[mover].count(face) for face in range(faces)]
        return state

    def conditional(chances):
        return chances[:-1] / chances[:-1].sum() if chances[:-1].sum() > 0 else None

    def marginal(bids, of):
        out = {}
        for bid, chance in enumerate(bids):
            out[of(bid)] = out.get(of(bid), 0.0) + chance
        return out

    def policy(state, bids):
        best = solution.probabilities(state)[0]
        if len(bids) % 2 != player:
            return best
        own = agent.probabilities(Turn(variant, state, np.arange(1), new_streams(0, 1)))[0]
        call = (best if part.calls else own)[-1]
        raises, others = conditional(own), conditional(best)
        if bids:
            if part.raises:
                raises, others = others, raises
        elif part.opening == BOTH:
            raises = others
        elif part.opening != KEPT:
            quantities, named = (others, raises) if part.opening == QUANTITY else (raises, others)
            quantities, named = marginal(quantities, lambda bid: bid // faces), marginal(named, lambda bid: bid % faces)
            raises = np.array([quantities[bid // faces] * named[bid % faces] for bid in range(len(own) - 1)])
        raises = others if raises is None else raises
        return np.append((1 - call) * raises if call < 1 else np.zeros(len(own) - 1), call)

    def wins(throws, bids):
        mover, total = len(bids) % 2, 0.0
        for action, chance in enumerate(policy(state_of(throws, bids), bids)):
            if chance == 0:
                continue
            if action == variant.params.call:
                quantity, face = divmod(bids[-1], faces)
                holds = sum(throw.count(face) for throw in throws) > quantity
                total += chance * ((mover == player) != holds)
            else:
                total += chance * wins(throws, (*bids, action))
        return total

    throws = itertools.product(*(itertools.product(range(faces), repeat=number) for number in dice))
    return np.mean([wins(each, ()) for each in throws])


ALL = Replaced(calls=True, opening=BOTH, raises=True)


@covering(("bluff", "part"), [0, 0.75], [*PARTS.values(), ALL])
def test_a_plain_program_wins_as_often(bluff, part):
    solution = solve(configure("liars_dice", num_dice=2, num_faces=3), 1e-3)
    agent = agents.make(f"numbers:bluff={bluff}")
    for dice, played in wins_against(solution, agent, {"part": part})["part"].items():
        assert played.starting == pytest.approx(plain_wins(solution, agent, dice, 0, part), abs=1e-9)
        assert played.following == pytest.approx(plain_wins(solution, agent, dice, 1, part), abs=1e-9)


def test_an_agent_that_sees_all_bids_is_asked_at_each_node():
    """The solution as the agent wins as often as itself, whichever part is replaced."""
    solution = solve(configure("liars_dice", num_dice=2), 1e-3)
    for played in wins_against(solution, LiarsDiceNash(1e-3), {"nothing": Replaced(), "calls": Replaced(calls=True)}).values():
        assert mean_loss(solution, played) == pytest.approx(0, abs=1e-9)


@pytest.mark.slow
def test_all_parts_together_are_the_solution():
    solution = solve(configure("liars_dice", num_dice=3), 1e-2)
    played = wins_against(solution, agents.make("numbers:bluff=1"), {"all": ALL})["all"]
    for each in played.values():
        assert each.starting == pytest.approx(each.best_starting, abs=1e-9)
        assert each.following == pytest.approx(each.best_following, abs=1e-9)
        assert each.loss == pytest.approx(0, abs=1e-9)
    assert mean_loss(solution, played) == pytest.approx(0, abs=1e-9)
    assert wins_games(played, 3) == pytest.approx(0.5, abs=1e-9)


def test_a_game_is_won_as_often_as_by_asking_both_agents():
    variant = configure("liars_dice", num_dice=2)
    numbers, nash = agents.make("numbers:bluff=0.25"), LiarsDiceNash(1e-3)
    played = wins_against(solve(variant, 1e-3, resume=True), numbers, {"nothing": Replaced()})["nothing"]
    assert wins_games(played, 2) == pytest.approx(winning_probability(variant, numbers, nash), abs=1e-9)
    assert wins_games(played, 2) < 0.5
