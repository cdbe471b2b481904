"""Small rounds of Liar's Dice solved to rounding error: one linear programme for each player.

Written as sequence weights, a player's strategies and the best-response values of the other player satisfy linear
constraints. So the strategy that leaves the other least to win is a linear programme, with a variable for each of the
player's numbers and one for each class of the other at each node: what that class can still win.

Source: D. Koller, N. Megiddo and B. von Stengel, "Fast Algorithms for Finding Randomized Strategies in Game Trees"
(STOC 1994).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import numpy as np

from dice_envs.core.extras import needs
from dice_envs.exact.liars_dice.tree import LEAF, Tree

__all__ = ["MOST_NUMBERS", "solve_exactly"]

MOST_NUMBERS = 20_000  # of a round: a second; the time grows faster than the square of the numbers
TOLERANCE = 1e-10  # how far the solver may be from a constraint; the least that HiGHS takes


@dataclasses.dataclass
class _Flow:
    """The probability that a class of the player makes its bids to a node: a constant and a sum of variables."""

    chance: float = 0.0
    variables: list[int] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class _Rows:
    """Sparse rows of a linear programme: the sum of coefficient * variable against a bound."""

    rows: list[int] = dataclasses.field(default_factory=list)
    columns: list[int] = dataclasses.field(default_factory=list)
    coefficients: list[float] = dataclasses.field(default_factory=list)
    bounds: list[float] = dataclasses.field(default_factory=list)

    def add(self, plus: Iterable[int], minus: Iterable[int], bound: float) -> None:
        for columns, coefficient in ((plus, 1.0), (minus, -1.0)):
            for column in columns:
                self.rows.append(len(self.bounds))
                self.columns.append(column)
                self.coefficients.append(coefficient)
        self.bounds.append(bound)


class _Programme:
    """Minimise what the other player's best response wins."""

    def __init__(self, tree: Tree, player: int) -> None:
        self.kinds, self.player, self.other = tree.kinds, player, 1 - player
        self.variables = int(tree.kinds.size[0])
        self.most, self.equal = _Rows(), _Rows()
        values = self._visit(0, 0, [_Flow(chance) for chance in tree.class_chances[player].tolist()])
        self.cost = np.zeros(self.variables)
        self.cost[values : values + len(tree.class_chances[self.other])] = tree.class_chances[self.other]

    def _map(self, edge: int, player: int, kind: int) -> list[int]:
        at = self.kinds.map_at[edge, player]
        mapped: list[int] = self.kinds.maps[at : at + self.kinds.classes[kind, player]].tolist()
        return mapped

    def _match(self, kind: int, player: int) -> list[int]:
        at = self.kinds.match_at[kind, player]
        matched: list[int] = self.kinds.match[at : at + self.kinds.classes[kind, player]].tolist()
        return matched

    def _allowed(self, edge: int) -> list[int]:
        allowed: list[int] = self.kinds.allowed[self.kinds.allowed_at[edge] : self.kinds.allowed_at[edge + 1]].tolist()
        return allowed

    def _visit(self, kind: int, offset: int, flows: list[_Flow]) -> int:
        """Add the constraints at a node and below it; return the first of the variables of the other's values there."""
        values = self.variables
        self.variables += int(self.kinds.classes[kind, self.other])
        if self.kinds.mover[kind] == self.player:
            self._visit_own(kind, offset, flows, values)
        else:
            self._visit_other(kind, offset, flows, values)
        return values

    def _child(self, kind: int, offset: int, edge: int, flows: list[_Flow]) -> tuple[int, list[int]]:
        """Add the constraints below a raise; return the first of the other's values there, and each class's place in them."""
        child = int(self.kinds.child[edge])
        below = [_Flow() for _ in range(int(self.kinds.classes[child, self.player]))]
        for flow, each in zip(flows, self._map(edge, self.player, kind), strict=False):
            below[each].chance += flow.chance
            below[each].variables.extend(flow.variables)
        return self._visit(child, offset + int(self.kinds.shift[edge]), below), self._map(edge, self.other, kind)

    def _edges(self, kind: int) -> range:
        return range(int(self.kinds.first_edge[kind]), int(self.kinds.first_edge[kind + 1]))

    def _visit_own(self, kind: int, offset: int, flows: list[_Flow], values: int) -> None:
        kinds, active = self.kinds, int(self.kinds.active[kind])
        choices: list[list[int]] = [[offset + each] if kind > 0 else [] for each in range(active)]
        theirs = self._match(kind, self.other)
        wins: list[list[int]] = [[] for _ in theirs]
        sure = [0.0] * len(theirs)
        if kind > 0:
            for each, own in enumerate(self._match(kind, self.player)):
                called = flows[each] if each >= active else _Flow(0.0, [offset + each])
                for their, held in enumerate(theirs):
                    if own + held >= kinds.needed[kind]:  # the other has made the bid, and it holds
                        sure[their] += called.chance
                        wins[their].extend(called.variables)
        for edge in self._edges(kind):
            at = offset + int(kinds.entry[edge])
            if kinds.child[edge] == LEAF:
                bids = list(range(at, at + len(self._allowed(edge))))
                for each, bid in zip(self._allowed(edge), bids, strict=True):
                    choices[each].append(bid)
                for their, all_match in enumerate(self._map(edge, self.other, kind)):
                    if not all_match:
                        wins[their].extend(bids)
            else:
                for each in range(active):
                    choices[each].append(at + each)
                below, mapped = self._child(kind, offset, edge, [_Flow(0.0, [at + each]) for each in range(active)])
                for their, each in enumerate(mapped):
                    wins[their].append(below + each)
        for each, chosen in enumerate(choices):
            self.equal.add(chosen, flows[each].variables, flows[each].chance)
        for their, won in enumerate(wins):
            self.equal.add([values + their], won, sure[their])

    def _visit_other(self, kind: int, offset: int, flows: list[_Flow], values: int) -> None:
        kinds, active = self.kinds, int(self.kinds.active[kind])
        if kind > 0:
            owns = self._match(kind, self.player)
            for their, held in enumerate(self._match(kind, self.other)):
                failing = [flow for flow, own in zip(flows, owns, strict=True) if own + held < kinds.needed[kind]]
                rows = self.most if their < active else self.equal
                self._bound(rows, failing, values + their)
        for edge in self._edges(kind):
            if kinds.child[edge] == LEAF:
                all_match = self._map(edge, self.player, kind)
                holding = [flow for flow, matched in zip(flows, all_match, strict=True) if matched]
                for their in self._allowed(edge):
                    self._bound(self.most, holding, values + their)
            else:
                below, mapped = self._child(kind, offset, edge, flows)
                for their in range(active):
                    self.most.add([below + mapped[their]], [values + their], 0.0)

    @staticmethod
    def _bound(rows: _Rows, flows: list[_Flow], value: int) -> None:
        variables = [variable for flow in flows for variable in flow.variables]
        rows.add(variables, [value], -sum(flow.chance for flow in flows))

    def solve(self) -> np.ndarray:
        with needs("exact", "an exact solution of a round of Liar's Dice"):
            from scipy.optimize import linprog
            from scipy.sparse import csr_matrix

        def matrix(rows: _Rows) -> csr_matrix:
            return csr_matrix((rows.coefficients, (rows.rows, rows.columns)), (len(rows.bounds), self.variables))

        found = linprog(
            self.cost,
            A_ub=matrix(self.most),
            b_ub=self.most.bounds,
            A_eq=matrix(self.equal),
            b_eq=self.equal.bounds,
            bounds=(0, None),
            method="highs-ds",
            options={"primal_feasibility_tolerance": TOLERANCE, "dual_feasibility_tolerance": TOLERANCE},
        )
        if found.x is None:
            raise RuntimeError(f"the linear programme of a round was not solved: {found.message}")
        weights: np.ndarray = np.maximum(found.x, 0.0)
        return weights


def solve_exactly(tree: Tree) -> np.ndarray:
    """Both players' best strategies in a round of at most MOST_NUMBERS numbers, (numbers,) float64; see `Kinds`.

    Raises:
        ImportError: SciPy is not installed.
        RuntimeError: the solver gave up.
    """
    size = int(tree.kinds.size[0])
    found = np.zeros(size)
    for player in range(2):
        found += _Programme(tree, player).solve()[:size]
    return found
