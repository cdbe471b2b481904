"""Small rounds of Liar's Dice solved to rounding error: one linear programme for each player.

Written as sequence weights, a player's strategies and the best-response values of the other player satisfy linear
constraints. So the strategy that leaves the other least to win is a linear programme, with a variable for each of the
player's numbers and one for each class of the other at each node: what that class can still win.

Source: D. Koller, N. Megiddo and B. von Stengel, "Fast Algorithms for Finding Randomized Strategies in Game Trees"
(STOC 1994).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

import numpy as np

from dice_envs.games.liars_dice.exact.tree import LEAF, Tree

MOST_NUMBERS = 20_000  # of a round: a second; the time grows faster than the square of the numbers
TOLERANCE = 1e-10  # how far the solver may be from a constraint; the least that HiGHS takes


@dataclasses.dataclass
class _Flow:
    """The probability that a class of the player makes its bids to a node: a constant and a sum of variables."""

    chance: float = 0.0
    variables: list[int] = dataclasses.field(default_factory=list)

    def add(self, other: _Flow) -> None:
        self.chance += other.chance
        self.variables += other.variables


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

    def _part(self, all_parts: np.ndarray, at: np.ndarray, kind: int, player: int) -> list[int]:
        """Return what `Kinds.match` or `Kinds.maps` has for each class of a player; `at` says where each player's begins."""
        part: list[int] = all_parts[at[player] :][: self.kinds.classes[kind, player]].tolist()
        return part

    def _visit(self, kind: int, offset: int, flows: list[_Flow]) -> int:
        """Add the constraints at a node and below it; return the first of the variables of the other's values there.

        `flows` has each of the player's classes at the node.
        """
        kinds, active, is_own = self.kinds, int(self.kinds.active[kind]), bool(self.kinds.mover[kind] == self.player)
        values, theirs = self.variables, range(int(kinds.classes[kind, self.other]))
        self.variables += len(theirs)
        choices: list[list[int]] = [[] for _ in range(active)]  # the player's variables, where it is to move
        won = [_Flow() for _ in theirs]  # by the other, in all

        def pays(their: int, parts: Iterable[_Flow]) -> None:
            """Say what an action, the mover's, is worth to a class of the other; where it moves, its value is no less."""
            part = won[their] if is_own else _Flow()
            for flow in parts:
                part.add(flow)
            if not is_own:
                (self.most if their < active else self.equal).add(part.variables, [values + their], -part.chance)

        if kind > 0:
            held = self._part(kinds.match, kinds.match_at[kind], kind, self.player)
            called = flows
            if is_own:
                called = [_Flow(0.0, [offset + each]) for each in range(active)] + flows[active:]
                choices = [[offset + each] for each in range(active)]
            for their, match in enumerate(self._part(kinds.match, kinds.match_at[kind], kind, self.other)):
                holds = [own + match >= kinds.needed[kind] for own in held]  # then the other wins what it has bid
                pays(their, (flow for flow, hold in zip(called, holds, strict=True) if hold == is_own))
        for edge in range(int(kinds.first_edge[kind]), int(kinds.first_edge[kind + 1])):
            at = offset + int(kinds.entry[edge])
            maps = [self._part(kinds.maps, kinds.map_at[edge], kind, player) for player in range(2)]
            allowed: Sequence[int] = range(active)
            if kinds.child[edge] == LEAF:
                allowed = kinds.allowed[kinds.allowed_at[edge] : kinds.allowed_at[edge + 1]].tolist()
            bids = [_Flow(0.0, [at + k]) for k in range(len(allowed))] if is_own else flows
            for k, each in enumerate(allowed if is_own else ()):
                choices[each].append(at + k)
            if kinds.child[edge] != LEAF:
                child = int(kinds.child[edge])
                below = [_Flow() for _ in range(int(kinds.classes[child, self.player]))]
                for flow, each in zip(bids, maps[self.player], strict=False):
                    below[each].add(flow)
                first = self._visit(child, offset + int(kinds.shift[edge]), below)
                for their in theirs if is_own else allowed:
                    pays(their, [_Flow(0.0, [first + maps[self.other][their]])])
            elif is_own:  # the other calls, and wins unless its dice match as well
                for their, all_match in enumerate(maps[self.other]):
                    pays(their, () if all_match else bids)
            else:
                for their in allowed:
                    pays(their, (flow for flow, matched in zip(flows, maps[self.player], strict=True) if matched))
        for each, chosen in enumerate(choices if is_own else ()):
            self.equal.add(chosen, flows[each].variables, flows[each].chance)
        for their, flow in enumerate(won if is_own else ()):
            self.equal.add([values + their], flow.variables, flow.chance)
        return values

    def minimise(self) -> np.ndarray:
        from scipy.optimize import linprog  # takes as long to import as all else together
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
    """Both players' best strategies in a round of at most MOST_NUMBERS numbers, (numbers,) float64; see `Kinds`. RuntimeError
    if the solver gives up."""
    size = int(tree.kinds.size[0])
    found = np.zeros(size)
    for player in range(2):
        found += _Programme(tree, player).minimise()[:size]
    return found
