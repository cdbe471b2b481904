"""Losses of parts of an agent's play against a solution of Liar's Dice, compared with a plain program."""

from types import SimpleNamespace

import pytest

from dice_envs import agents, configure
from dice_envs.agents.liars_dice import LiarsDiceNash
from dice_envs.exact.liars_dice.solver import solve
from dice_envs.experiments.reproduce.liars_dice.habits import PARTS, Replaced, games_won, mean_loss, wins_against
from tests.support.liars_dice_games import winning_probability
from tests.support.liars_dice_tables import Plain, of_agent
from tests.support.subsets import covering

pytestmark = pytest.mark.thorough


def of_solution(solution):
    """A solution as a policy for `Plain`."""
    return of_agent(solution.variant, SimpleNamespace(probabilities=lambda turn: solution.probabilities(turn.states)))


def plain_wins(solution, agent, dice, player, part):
    """The probability that the agent, as player 0 or 1, wins a round with a part of its play replaced."""
    as_it_plays, as_solved = of_agent(solution.variant, agent), of_solution(solution)

    def raises_of(chances):
        """The chance of each raise if it raises; empty if it never does."""
        total = 1 - chances["call"]
        return {bid: chance / total for bid, chance in chances.items() if bid != "call"} if total > 0 else {}

    def marginal(raises, which, value):
        return sum(chance for bid, chance in raises.items() if bid[which] == value)

    def mixed(dice, bids, place, hand):
        own, best = (each(dice, bids, place, hand) for each in (as_it_plays, as_solved))
        call = (best if part.calls else own)["call"]
        raises, others = raises_of(own), raises_of(best)
        if part.raises if bids else part.quantity and part.face:
            raises, others = others, raises
        elif not bids and (part.quantity or part.face):
            quantities, faces = (others, raises) if part.quantity else (raises, others)
            raises = {bid: marginal(quantities, 0, bid[0]) * marginal(faces, 1, bid[1]) for bid in raises}
        return {**{bid: (1 - call) * chance for bid, chance in (raises or others).items()}, "call": call}

    options = {"num_dice": dice, "num_faces": solution.variant.options.num_faces, "rounds": "single", "starter": "first"}
    policies = (mixed, as_solved) if player == 0 else (as_solved, mixed)
    return Plain(configure("liars_dice", **options), *policies).share("plays", dice, player)


ALL = Replaced(calls=True, quantity=True, face=True, raises=True)


@covering(("bluff", "part"), [0, 0.75], [*PARTS.values(), ALL])
def test_a_plain_program_wins_as_often(bluff, part):
    solution = solve(configure("liars_dice", num_dice=2, num_faces=3), 1e-3)
    agent = agents.make(f"numbers:bluff={bluff}")
    played = wins_against(solution, agent, {"part": part})["part"]
    for dice, each in played.items():
        assert each.starting == pytest.approx(plain_wins(solution, agent, dice, 0, part), abs=1e-9)
        assert each.following == pytest.approx(plain_wins(solution, agent, dice, 1, part), abs=1e-9)
        assert part is not ALL or (each.loss, each.best_starting) == pytest.approx((0, each.starting), abs=1e-9)
    assert part is not ALL or games_won(played, 2) == pytest.approx(0.5, abs=1e-9)


def test_an_agent_that_sees_all_bids_is_asked_at_each_node():
    """The solution as the agent wins as often as itself, whichever part is replaced."""
    solution = solve(configure("liars_dice", num_dice=2), 1e-3)
    for played in wins_against(solution, LiarsDiceNash(1e-3), {"nothing": Replaced(), "calls": Replaced(calls=True)}).values():
        assert mean_loss(solution, played) == pytest.approx(0, abs=1e-9)


def test_a_game_is_won_as_often_as_by_asking_both_agents():
    variant = configure("liars_dice", num_dice=2)
    numbers, nash = agents.make("numbers:bluff=0.25"), LiarsDiceNash(1e-3)
    played = wins_against(solve(variant, 1e-3, resume=True), numbers, {"nothing": Replaced()})["nothing"]
    assert games_won(played, 2) == pytest.approx(winning_probability(variant, numbers, nash), abs=1e-9)
    assert games_won(played, 2) < 0.5
