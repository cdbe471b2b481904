"""Every agent plays whole games with every game and option that it supports, and refuses all others by name.

A new game needs no change here; a new agent needs a row in ROWS.
"""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest

from dice_envs.agent import Turn, Uniform, ask, check_plays
from dice_envs.agent.specs import factories, make_agent
from dice_envs.agents.mcts.search import rollouts
from dice_envs.core.batch import Batch
from dice_envs.core.dice import new_streams
from dice_envs.core.game import OVER, Variant, configure, names
from dice_envs.games.liars_dice.raises import ROUND_KINDS, round_kinds
from tests.conftest import scaled
from tests.support.policies import save_random_policy
from tests.support.turns import turn_at
from tests.support.variants import IDS, MORE_OPTIONS, VARIANTS

pytestmark = pytest.mark.thorough

GAMES = scaled(6, 1)  # at each seat
MOST_TURNS = scaled(1_000_000, 12)  # whole games, unless they run as Python
SEARCH = f"mcts:{scaled(20, 3)}"


def keep_pairs(throw, aside):
    """A custom strategy for `thirties`: keep pairs, and the highest die."""
    return next((k for k in range(len(throw) - 1) if throw[k] == throw[k + 1]), len(throw) - 1)


def plays_all(spec: str, variant: Variant) -> str | None:
    return None


def search_is_offered(spec: str, variant: Variant) -> str | None:
    if "expect=true" in spec and variant.game.expect is None:
        return f"expect must be false for {variant.game.name}"
    for rollout, (game, _) in rollouts().items():
        if f"rollout={rollout}" in spec and game != variant.game.name:
            return f"rollout must be one of .* for {variant.game.name}, not '{rollout}'"
    return None


def is_a_maester(spec: str, variant: Variant) -> str | None:
    return None if variant.options.mode == "maesters" else "plays mode=maesters only"


def can_be_solved(spec: str, variant: Variant) -> str | None:
    if variant.options.competitive:
        return 'needs variation="cooperative"'
    return "the exact analysis takes 20,000,000 at most" if variant.options.patients == 200 else None


def has_a_value(spec: str, variant: Variant) -> str | None:
    if variant.game.name == "liars_dice":
        if variant.options.exact_call:
            return "exact_call must be false"
        for option in [ROUND_KINDS[kind] for kind in round_kinds(variant.options)] if variant.options.num_players > 2 else []:
            return f"{option} must be false"
        if variant.options.reward != "win":
            return "reward must be 'win'"
    return None


def shows_dice_again(spec: str, variant: Variant) -> str | None:
    """Whether `adaptive` can learn: two players, the article's rule, rounds after a call, at most five dice."""
    if variant.options.num_players != 2:
        return "num_players must be 2"
    if refusal := has_a_value(spec, variant):
        return refusal
    if variant.options.rounds == "single":
        return "rounds must be 'elimination' for adaptive play"
    return "raise_rule must be 'quantity'" if variant.options.raise_rule != "quantity" else None


def default_options_only(spec: str, variant: Variant) -> str | None:
    return f"{spec} plays {variant.game.name} with " if variant.changed_options() else None


def second_stage_is_finite(spec: str, variant: Variant) -> str | None:
    """With two faces the goal `optimal` has no best play: the expected points of the second stage are infinite."""
    wants = spec.partition(":")[2] or "goal"
    optimal = wants == "optimal" or (wants == "goal" and variant.facts.num_seats > 1)
    return "goal must not be 'optimal' with num_faces=2" if optimal and variant.options.num_faces == 2 else None


class Row(NamedTuple):
    """An agent's games (None for every game), the specs to try, and the words with which it refuses a variant."""

    games: tuple[str, ...] | None
    specs: tuple[str, ...]
    refusal: Callable[[str, Variant], str | None] = plays_all


SEARCHES = (
    *("final=mixed", "select=regret", "select=regret,final=best,exploration=0", "opponent=random", "expect=true"),
    *("opponent=random,expect=true", "threads=2", *(f"rollout={rollout}" for rollout in rollouts())),
)
ROWS = {
    "random": Row(None, ("random",)),
    "mcts": Row(None, (SEARCH, *(f"{SEARCH},{settings}" for settings in SEARCHES)), search_is_offered),
    "mix": Row(None, (f"mix:0.5*random+0.5*{SEARCH}",)),
    "ppo": Row(None, ("ppo", "ppo,greedy=true")),
    "hint": Row(None, ("hint:games=20",)),
    "nash": Row(("fatestones", "liars_dice", "score_dice"), ("nash", "nash:1e-2"), has_a_value),
    # Liar's Dice
    "adaptive": Row(("liars_dice",), ("adaptive", "adaptive:caution=0"), shows_dice_again),
    "numbers": Row(
        ("liars_dice",),
        (
            *("numbers", "numbers:bluff=0.5", "numbers:bluff=1,threshold=0.3", "numbers:preset=article,bluff=0.5"),
            "numbers:chance=more,bluff_faces=own,bluff=1",
        ),
    ),
    "champion": Row(("liars_dice",), ("champion",), default_options_only),
    "reader": Row(("liars_dice",), ("reader", "reader:learn=false", "reader:nerve=0", "reader:nerve=1")),
    # FateStones
    "best_response": Row(
        ("fatestones",), ("best_response", "best_response:nash", "best_response:opponent=nash", f"best_response:{SEARCH}")
    ),
    "strongest": Row(("fatestones",), ("strongest",)),
    # Score dice
    "highest": Row(("score_dice",), ("highest",)),
    "shuffled": Row(("score_dice",), ("shuffled",)),
    "score_response": Row(("score_dice",), ("score_response",)),
    # The Shakes
    "argument": Row(("shakes",), ("argument",)),
    "bayes": Row(("shakes",), ("bayes", "bayes:goal=saved", "bayes:goal=win"), can_be_solved),
    "dogmatic": Row(("shakes",), ("dogmatic",), is_a_maester),
    "greedy": Row(("shakes",), ("greedy", "greedy:posterior=permutations")),
    "thompson": Row(("shakes",), ("thompson", "thompson:posterior=permutations")),
    "ucb": Row(("shakes",), ("ucb", "ucb:exploration=0")),
    # The game of 30s
    "thirties": Row(
        ("thirties",),
        (
            *("thirties", "thirties:goal", "thirties:sixes", "thirties:fives_and_sixes", "thirties:beginner"),
            *("thirties:heuristic", "thirties:maximize", "thirties:minimize_loss", "thirties:thirty_or_over"),
            *("thirties:optimal", f"thirties:{__name__}:keep_pairs"),
        ),
        second_stage_is_finite,
    ),
}


def takes_too_long(spec: str, variant: Variant) -> bool:
    """Whether exact play, or search as plain Python, is too expensive to test."""
    options = variant.options
    if numba.config.DISABLE_JIT and spec.startswith("mcts"):  # its code is the same for all options
        name = variant.game.name
        return variant.options not in [configure(name, **each).options for each in ({}, *MORE_OPTIONS.get(name, [])[:1])]
    if spec.startswith("hint"):  # where neither a kernel finds hints nor optimal play is known at once
        return make_agent(spec).kernel(variant) is None and variant.game.name not in ("fatestones", "thirties")
    if spec.startswith("adaptive"):
        return shows_dice_again(spec, variant) is None and min(variant.options.dice_per_seat) > scaled(2, 1)
    if spec.startswith("nash") and variant.game.name == "liars_dice":  # whole games of five dice take minutes
        large = min(options.dice_per_seat) > 1 or (options.num_players > 2 and sum(options.dice_per_seat) > 4)
        return large and has_a_value(spec, variant) is None
    if spec == "score_response":  # it weighs every possible hand of the other player: 24 dice would take forever
        return max(map(len, variant.options.pools)) > 7
    if spec.startswith("bayes"):  # a second when compiled, a minute as Python
        return bool(numba.config.DISABLE_JIT) and variant.options.num_players >= 5
    return False


CASES = [
    pytest.param(spec, game, options, id=f"{identity}-{spec}")
    for (game, options), identity in zip(VARIANTS, IDS, strict=True)
    for row in ROWS.values()
    if row.games is None or game in row.games
    for spec in row.specs
    if not takes_too_long(spec, configure(game, **options))
]
ELSEWHERE = [
    pytest.param(spec, game, id=f"{game}-{spec}")
    for game in names()
    for row in ROWS.values()
    if row.games is not None and game not in row.games
    for spec in row.specs
]


# --- playing ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def make(tmp_path):
    """Make an agent from its spec; `ppo` gets a policy file with random weights for the variant."""

    def from_spec(spec: str, variant: Variant) -> Any:
        name, comma, rest = spec.partition(",")
        if name != "ppo":
            return make_agent(spec)
        return make_agent(f"ppo:{save_random_policy(tmp_path / 'policy.npz', variant)}{comma}{rest}")

    return from_spec


def check_probabilities(agent: Any, turn: Turn) -> None:
    chances = agent.probabilities(turn)
    assert chances.shape == turn.legal.shape
    assert np.isfinite(chances).all()
    assert (chances >= 0).all()
    np.testing.assert_allclose(chances.sum(axis=1), 1, atol=1e-9)
    assert not chances[turn.legal == 0].any(), "an illegal action has a chance"


def play(variant: Variant, agent: Any, seat: int) -> None:
    """Play games with the agent at one seat and random play at the others; every move is checked."""
    facts = variant.facts
    batch = Batch(variant, GAMES, seed=seat)
    own, others = new_streams(seat + 100, GAMES), new_streams(seat + 200, GAMES)
    returns = np.zeros((GAMES, facts.num_seats))
    for _ in range(MOST_TURNS):
        mine, theirs = np.flatnonzero(batch.seats == seat), np.flatnonzero((batch.seats != seat) & (batch.seats != OVER))
        if not len(mine) + len(theirs):
            break
        legal = batch.legal()
        if len(mine):
            if hasattr(agent, "probabilities"):
                check_probabilities(agent, Turn(variant, batch.states, mine, own[mine]))
            actions = ask(agent, variant, batch.states, mine, own)
            assert (actions >= 0).all()
            assert legal[mine, actions].all(), "an illegal action"
            batch.play(actions, mine)
            returns[mine] += batch.rewards[mine]
        if len(theirs):
            batch.play(ask(Uniform(), variant, batch.states, theirs, others), theirs)
            returns[theirs] += batch.rewards[theirs]
    over = returns[batch.seats == OVER]
    assert len(over) == GAMES or facts.max_steps > MOST_TURNS
    assert (over >= facts.min_return - 1e-5).all()
    assert (over <= facts.max_return + 1e-5).all()


def test_every_agent_has_a_row():
    assert sorted([*ROWS, "chat"]) == sorted(factories())  # a language model needs a server: tests/agents/test_chat.py


@pytest.mark.parametrize(("spec", "game", "options"), CASES)
def test_an_agent_plays_or_refuses(spec, game, options, make):
    variant = configure(game, **options)
    row = ROWS[spec.partition(":")[0].partition(",")[0]]
    agent = make(spec, variant)
    refusal = row.refusal(spec, variant)
    if refusal is None:
        check_plays(agent, variant)
        for seat in range(variant.facts.num_seats):
            play(variant, agent, seat)
    else:
        with pytest.raises(ValueError, match=refusal):
            agent.act(first_turn(variant))
        with pytest.raises(ValueError, match=refusal):
            check_plays(agent, variant)


@pytest.mark.parametrize(("spec", "game"), ELSEWHERE)
def test_an_agent_of_another_game_refuses(spec, game):
    name = spec.partition(":")[0]
    agent, turn = make_agent(spec), first_turn(configure(game))
    for question in (agent.act, *([agent.probabilities] if hasattr(agent, "probabilities") else [])):
        with pytest.raises(ValueError, match=f"{name} plays {' and '.join(ROWS[name].games)} only, not {game}"):
            question(turn)


@pytest.mark.parametrize("game", names())
def test_a_policy_of_another_variant_refuses(game, make):
    trained, other = (configure(name) for name in (game, next(name for name in names() if name != game)))
    agent = make("ppo", trained)
    for question in (agent.act, agent.probabilities):
        with pytest.raises(ValueError, match=re.escape(f"trained on {trained}; it cannot play {other.game.name}")):
            question(first_turn(other))


def first_turn(variant: Variant) -> Turn:
    return turn_at(variant, Batch(variant, 2, seed=1).states)
