"""The tree of a round of Liar's Dice: its size, and that pruned branches are worth nothing."""

import numpy as np
import pytest

from dice_envs import configure
from dice_envs.exact.liars_dice.round import Round
from dice_envs.exact.liars_dice.tree import LEAF, Tree
from tests.support.subsets import covering

RULES = [
    {},
    {"num_faces": 4, "raise_rule": "either"},
    {"wild": "ones"},
    {"num_faces": 4, "raise_rule": "either", "wild": "highest"},
    {"num_faces": 3, "raise_rule": "either", "wild": "ones"},
    {"num_faces": 2, "wild": "highest"},
    {"num_faces": 4, "raise_rule": "nondecreasing"},
    {"num_faces": 3, "raise_rule": "reset_quantity"},
    {"num_faces": 3, "raise_rule": "reset_quantity", "wild": "highest"},
]
DICE = [(1, 1), (2, 1), (1, 2), (2, 2)]


def tree_of(dice, **options):
    return Tree(configure("liars_dice", num_dice=6, **options), dice)


@pytest.mark.parametrize(("dice", "nodes"), [(2, 634), (3, 10_605), (4, 180_840), (5, 3_113_852)])
def test_public_nodes_as_an_independent_program_counted_them(dice, nodes):
    assert tree_of((dice, dice)).nodes == nodes


@pytest.mark.parametrize(("dice", "nodes"), [(1, 448), (2, 8_832), (3, 107_712), (5, 8_579_072)])
def test_public_nodes_of_textarenas_rule(dice, nodes):
    assert Round(configure("liars_dice", rules="textarena", num_dice=5), (dice, dice)).nodes == nodes


def test_a_round_that_is_too_large_is_refused_before_it_is_built():
    with pytest.raises(ValueError, match="num_dice=\\(6, 6\\) with num_faces=8 and raise_rule='either' makes a round of"):
        tree_of((6, 6), num_faces=8, raise_rule="either")


@covering(("dice", "rules"), DICE, RULES)
def test_kinds_hold_together(dice, rules):
    """Probabilities sum to 1, maps lead to existing classes, and different nodes never share an index."""
    tree = tree_of(dice, **rules)
    kinds = tree.kinds
    for player in range(2):
        assert tree.class_chances[player].sum() == pytest.approx(1)
        assert len(tree.class_chances[player]) == kinds.classes[0, player]
    seen = np.zeros(kinds.size[0], int)
    waiting = [(0, 0)]
    while waiting:
        kind, offset = waiting.pop()
        mover, active = kinds.mover[kind], kinds.active[kind]
        assert active <= kinds.classes[kind, mover]
        if kind > 0:
            seen[offset : offset + active] += 1
        for edge in range(kinds.first_edge[kind], kinds.first_edge[kind + 1]):
            child = kinds.child[edge]
            allowed = kinds.allowed[kinds.allowed_at[edge] : kinds.allowed_at[edge + 1]]
            entries = active if child != LEAF else len(allowed)
            seen[offset + kinds.entry[edge] : offset + kinds.entry[edge] + entries] += 1
            for player in range(2):
                part = kinds.maps[kinds.map_at[edge, player] :][: kinds.classes[kind, player]]
                assert part.min() >= 0
                assert part.max() < (2 if child == LEAF else kinds.classes[child, player])
            if child != LEAF:
                waiting.append((child, offset + kinds.shift[edge]))
    assert (seen == 1).all()
