"""Solutions of Liar's Dice at tables: regret minimisation beside a plain program, certificates, files, and the agent."""

import itertools

import numpy as np
import pytest

from dice_envs import configure, measure
from dice_envs.games.liars_dice.exact.cfr import RoundSolver
from dice_envs.games.liars_dice.exact.shares import PLAYS, RESPONDS, SeatedAgents, mean_shares, shares_of
from dice_envs.games.liars_dice.exact.solution import SolvedRound
from dice_envs.games.liars_dice.exact.solver import solve
from dice_envs.games.liars_dice.exact.tree import Tree
from dice_envs.games.liars_dice.exact.walk import Coalition, Walk


class Plain:
    """Regret minimisation over all deals and all hands, with dictionaries: the same iterations as `RoundSolver`."""

    weights = None  # it is no mixture

    def __init__(self, round_, payoffs):
        self.round, self.payoffs, self.players = round_, payoffs, len(round_.dice)
        self.deals = [
            (deal, np.prod([round_.chances[player][hand] for player, hand in enumerate(deal)]))
            for deal in itertools.product(*[range(len(hands)) for hands in round_.hands])
        ]
        self.regrets, self.averages = {}, {}

    def strategy(self, numbers, path, hand):
        slot = path[-1] if path else 0
        moves = [*([0] if path else []), *self.round.rules.raises(slot).tolist()]  # 0: a call
        found = [numbers.get((path, hand, move), 0.0) for move in moves]
        return moves, [each / sum(found) if sum(found) else 1 / len(moves) for each in found]

    def ends(self, path, deal, player):
        """What a call is worth."""
        rules, mover = self.round.rules, len(path) % self.players
        matches = sum(self.round.matches[each][hand, rules.face[path[-1]]] for each, hand in enumerate(deal))
        return self.payoffs[player, mover if matches >= rules.need[path[-1]] else (mover - 1) % self.players]

    def learn(self, player, step, weight):
        """Learn regrets of a player, and averages of the player before."""
        before, changes = (player - 1) % self.players, {}

        def visit(path, deal, chance, others, own):
            mover = len(path) % self.players
            moves, chances = self.strategy(self.regrets, path, deal[mover])
            values = []
            for move, likely in zip(moves, chances, strict=True):
                if mover == before:  # each hand once, by its own reach, whatever the others hold
                    seen[path, deal[mover], move] = own * likely
                here = (others, own) if mover == player else (others * likely, own * likely if mover == before else own)
                values.append(self.ends(path, deal, player) if move == 0 else visit((*path, move), deal, chance, *here))
            value = sum(each * likely for each, likely in zip(values, chances, strict=True))
            if mover == player:
                for move, each in zip(moves, values, strict=True):
                    key = path, deal[mover], move
                    changes[key] = (
                        changes.get(key, 0.0) + chance * others * (each - value) / self.round.chances[mover][deal[mover]]
                    )
            return value

        seen = {}
        for deal, chance in self.deals:
            visit((), deal, chance, 1.0, 1.0)
        for key, change in changes.items():
            self.regrets[key] = max(0.0, self.regrets.get(key, 0.0) + step * change)
        for key, reach in seen.items():
            self.averages[key] = self.averages.get(key, 0.0) + weight * reach

    def write(self, asking):
        """Write the average strategies. See `moves.Source`."""
        for node, path in enumerate(asking.paths):
            hands = asking.hand[asking.entry_at[node] : asking.entry_at[node + 1]]
            for k, hand in enumerate(hands):
                moves, chances = self.strategy(self.averages, tuple((path + 1).tolist()), int(hand))
                if moves[0] == 0:
                    asking.calls[asking.entry_at[node] + k, 0] = chances[0]
                raises = chances[moves[0] == 0 :]
                for place, chance in enumerate(raises):
                    asking.raises[asking.raise_at[node] + place * len(hands) + k, 0] = chance


@pytest.mark.parametrize(("dice", "wild"), [((1, 1, 1), "ones"), ((2, 1, 1), "ones"), ((1, 1, 1, 1), "highest")])
def test_iterations_are_those_of_a_plain_program(dice, wild):
    """With random payoffs. Certificates are those of the walk that measures any agent."""
    variant = configure("liars_dice", num_players=len(dice), num_dice=dice, num_faces=2, wild=wild)
    payoffs = np.random.default_rng(0).random((len(dice), len(dice)))
    solver = RoundSolver(Tree(variant, dice), payoffs=payoffs)
    plain = Plain(solver.tree, payoffs)
    solver.iterate(3)
    for step, weight in [(1.0, 1.0), (2.0, 2**5.97), (2.0 * (1 + 2**-1.02), 2**5.97 * 1.5**5.955)]:
        for player in range(len(dice)):
            plain.learn(player, step, weight)
    everybody, certificate = range(len(dice)), solver.certify(payoffs, payoffs)
    solved = SolvedRound(solver.tree, solver.averages, certificate, 3, 0.0)
    certified = certificate.plays, solver.responds(payoffs)
    for found, members in zip(certified, [[()] * len(dice), [(player,) for player in everybody]], strict=True):
        coalitions = [Coalition(each, payoffs[player]) for player, each in enumerate(members)]
        ours = Walk(solver.tree, [solved] * len(dice), coalitions).values()
        assert ours == pytest.approx(Walk(solver.tree, [plain] * len(dice), coalitions).values(), abs=1e-12)
        assert found == pytest.approx(ours[:, 0], abs=1e-12)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("DICE_ENVS_CACHE", str(tmp_path))
    return tmp_path


@pytest.mark.thorough
def test_three_players_with_a_die_each_are_solved_and_certified_by_the_measure_of_any_agent(folder):
    variant = configure("liars_dice", num_players=3, num_dice=1, starter="first")
    solution = solve(variant, 1e-5)
    assert solution.plays == pytest.approx([25 / 72, 5 / 72, 42 / 72], abs=1e-4)

    class Solved(SeatedAgents):
        def __call__(self, round_, player, table):
            return solution.rounds[round_.dice]

    seated = Solved(["the solution"])
    found = mean_shares(variant, seated, shares_of(variant, seated, (PLAYS, RESPONDS)))
    assert solution.plays == pytest.approx(found.plays, abs=1e-12)
    assert solution.responds == pytest.approx(found.responds, abs=1e-12)
    assert solution.gain < 1e-5


def test_one_round_is_certified_in_the_shares_of_the_measure(folder):
    variant = configure("liars_dice", num_players=3, num_dice=1, num_faces=3, rounds="single")
    solution = solve(variant, 1e-2)
    measured = measure(variant, "nash:precision=0.01").measures[0]
    assert solution.plays.sum() == pytest.approx(1)
    assert solution.gain == pytest.approx(3 * measured.value, abs=1e-9)


def test_kept_rounds_are_taken_and_those_of_an_earlier_layout_solved_again_with_a_line(folder, capsys):
    variant = configure("liars_dice", num_players=3, num_dice=1, num_faces=2)
    first = solve(variant, 1e-3)
    (file,) = (folder / "liars_dice").rglob("*1-1-1-*.npz")
    again = solve(variant, 1e-3, resume=True)
    assert again.as_dict() | {"seconds": 0} == first.as_dict() | {"seconds": 0}
    assert capsys.readouterr().err == ""
    file.rename(file.with_name(f"{file.stem[:-12]}{'0' * 12}.npz"))
    assert solve(variant, 1e-3, resume=True).plays.tolist() == first.plays.tolist()
    assert capsys.readouterr().err == "1 v 1 v 1 dice: strategies of an earlier version do not fit: solved again\n"
