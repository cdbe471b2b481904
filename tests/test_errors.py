"""Errors change nothing, in every interface and for every error, compared byte for byte."""

import copy
import dataclasses
import functools
import re
import types
import warnings

import gymnasium
import numpy as np
import pyspiel
import pytest
import torch

import dice_envs.envs.sb3
from dice_envs import AgentError, Batch, IllegalActionError, SeatVectorEnv, configure
from dice_envs.agent import Turn, Uniform, ask
from dice_envs.core.dice import new_streams
from dice_envs.core.game import load, names
from dice_envs.envs.openspiel import AgentPolicy, PolicyAgent, openspiel_game
from dice_envs.envs.text import prompt, read_reply
from dice_envs.exact import action_values
from dice_envs.exact.measuring import odds
from dice_envs.experiments.arena import play_table
from dice_envs.table.sitting import PERSON, Sitting
from tests.support.interfaces import CALLERS, NO_ACTIONS, NO_NUMBERS, fails, moves, play, plays, refuses, remember
from tests.support.policies import Faulty
from tests.support.subsets import covering
from tests.support.variants import REWARDED

every_game = pytest.mark.parametrize("name", names())
FACE = "a whole number from 1 to 6"
BAD_OPTIONS = {  # wrong reset options with words of the refusal, for each game that has any
    "fatestones": [
        ({"dice": [[123456] * 3, [123456, 123456, 1]]}, "dice of seat 1 must be codes such as 123456, not 1"),
        *(({"dice": wrong}, "dice must be 2 lists of codes, one for each seat, not") for wrong in ([[123456]], "x")),
    ],
    "liars_dice": [
        *(({"dice": [[1] * 5, [1, 2, 3, 4, wrong]]}, f"dice of seat 1 must be {FACE}, not {wrong}") for wrong in (0, 9, 4.5)),
        *(({"dice": wrong}, "dice must be 2 lists of face values, one for each seat, not") for wrong in ([[1]], 5, "12")),
    ],
    "score_dice": [
        *(({"dice": [[1, 2, 3, 4, wrong], [1] * 5]}, f"dice of A must be {FACE}, not {wrong}") for wrong in (0, 7, 2.5)),
        *(({"dice": wrong}, "dice must be 2 lists of face values, A's and B's, not") for wrong in ([[1]], 5)),
    ],
    "shakes": [({"efficacies": wrong}, "efficacies must be") for wrong in ([1, 1, 1], 4, [4, 1], "141", [1, 4.0, 1])],
    "thirties": [
        ({"dice": [7] * 6}, f"dice must be {FACE}, not 7"),
        ({"dice": 5}, "dice must be a list of face values, not 5"),
        *(({"dice": wrong}, "dice must be at least one face value, and 6 with those of aside, not") for wrong in ([], [1, 2])),
        ({"aside": [1] * 6}, "at least one face value"),
        ({"dice": [1, 2], "aside": [1, 2, 3, "4"]}, f"aside must be {FACE}, not '4'"),
    ],
}
BAD_SEEDS = [-1, 1.5, "1", True, 2**64 + 0.5, np.timedelta64(1, "ns")]


def bad_options(name):
    """Wrong options of a reset, with words of the refusal."""
    known = ", ".join(load(name).reset_options) or "none"
    yield from ((wrong, "options must be a dictionary or None, not") for wrong in (5, "dice", [("dice", 1)]))
    yield from (({wrong: 1}, f"{name} has no reset option {wrong!r}; it has: {known}") for wrong in ("dise", 3))
    yield from BAD_OPTIONS.get(name, [])


def bad_resets(name):
    """Wrong arguments of a reset, with words of the refusal."""
    for options, words in bad_options(name):
        yield {"options": options}, words
        yield {"options": options, "seed": 3}, words
    yield from (({"seed": seed}, "seed must be a whole number") for seed in BAD_SEEDS)


def test_every_game_with_reset_options_is_given_wrong_ones():
    assert {name for name in names() if load(name).reset_options} <= BAD_OPTIONS.keys()


# The modes of SeatVectorEnv differ in what they deal again, not in what they refuse.
WAYS = [
    pytest.param(way, name, marks=[pytest.mark.thorough] if CALLERS[way].mode in ("NextStep", "Disabled") and number else [])
    for way in CALLERS
    for number, name in enumerate(names())
    if plays(way, name)
]


@pytest.mark.parametrize(("way", "name"), WAYS)
def test_mistakes_change_nothing(way, name):
    """Wrong resets and actions before and in a game, which then continues as if nothing had been tried."""
    caller, other = (CALLERS[way](name, **({} if way == "Batch" else {"illegal_action": "raise"})) for _ in range(2))
    env, inner = caller.env, caller.inner

    def resets_are_refused():
        for arguments, words in bad_resets(name) if way not in ("Batch", "SB3VecEnv") else ():
            assert words in fails((ValueError, gymnasium.error.Error), functools.partial(env.reset, **arguments), inner)

    if way not in ("Batch", "env", "parallel_env"):
        nobody = 0 if way in ("raw_env", "SeatEnv") else [0, 0, 0]
        for call in (lambda: env.step(nobody), *([] if way == "raw_env" else [env.action_masks])):
            fails(gymnasium.error.ResetNeeded, call, inner)
    if way == "SeatEnv":
        assert env.np_random_seed >= 0  # Gymnasium makes the stream when it is first asked for
        resets_are_refused()
    for each in (caller, other):
        each.reset(1)
    resets_are_refused()
    masks = caller.masks()
    legal = {key: int(mask.argmax()) for key, mask in masks.items()}
    for wrong in caller.mistakes(legal, masks):
        fails((IllegalActionError, AssertionError), lambda wrong=wrong: caller.send(wrong), inner)
    assert moves(caller, 40, seed=1) == moves(other, 40, seed=1)


@every_game
def test_wrong_resets_of_vectors(name):
    env = SeatVectorEnv(name, 3)
    some = np.array([True, False, False])
    fails(gymnasium.error.ResetNeeded, lambda: env.reset(options={"reset_mask": some}), env)
    env.reset(seed=1)
    for seed in ([1, 2], [1, 2, -1], [1, "2", 3]):
        fails(ValueError, lambda seed=seed: env.reset(seed=seed), env)
        fails(ValueError, lambda seed=seed: env.reset(seed=seed, options={"reset_mask": ~some}), env)
    for mask in (5, [1, 0, 1], np.zeros(3, bool), np.ones(2, bool)):
        fails(ValueError, lambda mask=mask: env.reset(options={"reset_mask": mask}), env)
    env = dice_envs.envs.sb3.make_vec_env(name, 3, seed=1)
    for options, words in bad_options(name):
        if isinstance(options, dict):
            env.seed(5)
            env.set_options(options)
            assert words in fails(ValueError, env.reset, env)
    env.set_options([{"dice": 1}, {}, {}])
    assert "the same for all" in fails(ValueError, env.reset, env)


LOSING = ["SeatEnv", "raw_env", "env", "parallel_env"]  # test_illegal_action compares the others with SeatEnv
CASES = [(way, *case) for way in LOSING for case in REWARDED if plays(way, case[0]) and (way, case[0]) != ("env", "shakes")]


@pytest.mark.parametrize(("way", "name", "options"), CASES)
def test_an_illegal_action_loses_the_game_with_one_warning(way, name, options, monkeypatch):
    monkeypatch.setattr("dice_envs.core.batch._warned", False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", "Record.rng")  # numba, when it compiles; see pyproject.toml
        caller = CALLERS[way](name, illegal_action="lose", **options)
        _, lost = play(caller, 120, np.random.default_rng(2), share=0.3)
    assert lost >= 10
    assert [str(warning.message)[:17] for warning in caught] == ["an illegal action"]


@pytest.mark.parametrize("way", CALLERS)
@pytest.mark.filterwarnings("ignore:an illegal action")
def test_only_one_game_for_a_seat_or_in_wrappers_is_lost_by_default(way):
    caller = CALLERS[way]("fatestones" if way == "parallel_env" else "liars_dice")
    caller.reset(1)
    masks = caller.masks()
    actions = {key: int(mask.argmax()) for key, mask in masks.items()}
    key, mask = next(iter(masks.items()))
    actions[key] = len(mask) if way == "parallel_env" or mask.all() else int(mask.argmin())
    with pytest.raises(ValueError, match=r"illegal_action must be .*lose.*raise.*not 'ignore'|no option 'illegal_action'"):
        CALLERS[way](caller.variant, illegal_action="ignore")
    if way in ("SeatEnv", "env"):
        result = caller.step(actions)
        assert (result.rewards[key], list(result.reasons)) == (-1.0, [key])
    else:
        refuses(caller, actions)


def test_a_careless_interface_is_found(monkeypatch):
    """One plays illegal actions, and one takes too much from the loser."""
    step, rng = SeatVectorEnv.step, np.random.default_rng(1)

    def takes_anything(env, actions):
        try:
            return step(env, actions)
        except IllegalActionError:
            return None

    monkeypatch.setattr(SeatVectorEnv, "step", takes_anything)
    with pytest.raises(AssertionError, match="accepted, with the result None"):
        play(CALLERS["SeatVectorEnv, SameStep"]("fatestones"), 300, rng)
    caller = CALLERS["raw_env"]("fatestones", illegal_action="raise")
    caller.variant.facts = dataclasses.replace(caller.variant.facts, max_return=0.5)
    with pytest.raises(AssertionError, match=r"a return is 1"):
        play(caller, 300, rng, lose=False)


@pytest.mark.parametrize("way", CALLERS)
def test_the_error_names_game_and_action(way):
    """The default of interfaces that do not lose by an illegal action."""
    name, wrong = ("fatestones", "3") if way == "parallel_env" else ("liars_dice", r"60 \(call\)")
    seat = {"seat": 0, "starter": "first"} if way.startswith(("Seat", "SB3")) else {}
    caller = CALLERS[way](name, **seat, **({"illegal_action": "raise"} if way in ("SeatEnv", "env") else {}))
    caller.reset(1)
    *others, last = caller.masks()
    actions = {**dict.fromkeys(others, 0), last: int(wrong.split()[0])}
    assert re.search(rf"^((game )?{last}: )?action {wrong} .*; (legal|actions).* 0", refuses(caller, actions))


@every_game
def test_batch(name):
    for num_games in (0, -1, 1.5, "2", None, True):
        with pytest.raises(ValueError, match="num_games must be a whole number from 1"):
            Batch(name, num_games)
    batch = Batch(name, 3, seed=1)
    legal = batch.legal().argmax(axis=1)
    for index in ([0, [1]], [0, 1, 3], [-1, 0, 1], [0, 0, 1], [0.0, 1, 2], [[0], [1], [2]], "012"):
        fails(ValueError, lambda index=index: batch.play(legal, index), batch)
        fails(ValueError, lambda index=index: batch.deal(index), batch)
    for seats in ([0, 0, 6], [-1, 0, 0], [0, 0], [0.5, 0, 0], 1):
        fails(ValueError, lambda seats=seats: batch.observe(seats), batch)


# --- every way in for an action --------------------------------------------------------------------------------------


def _tensors():
    env = dice_envs.TensorEnv("liars_dice", 1, seat=0, starter="first")
    env.reset(seed=1)
    return env, lambda action: env.step([action])


def _sitting():
    sitting = Sitting(configure("liars_dice"), 1, [PERSON] * 2)
    return sitting, sitting.play


def _saved():
    saved = Sitting(configure("liars_dice"), 1, [PERSON] * 2).save()
    return saved, lambda action: Sitting.load({**saved, "actions": [action]})


def _spiel(chance, at_chance):
    state = openspiel_game("liars_dice", chance=chance, rng_seed=1 if chance == "sampled" else -1).new_initial_state()
    while state.is_chance_node() and not at_chance:
        state.apply_action(state.legal_actions()[0])
    return state


def _spiel_method(chance, node, method):
    state = _spiel(chance, node == "chance")
    return state, getattr(state, method)


class Answers:
    """As an agent, acts on one answer; as an OpenSpiel policy, is sure of it."""

    def __init__(self, answer):
        self.answer = answer

    def act(self, turn):
        return [self.answer]

    def action_probabilities(self, state):
        return types.SimpleNamespace(items=lambda: [(self.answer, 1.0)])  # not every answer can be a dictionary's key


def _agent():
    batch = Batch("liars_dice", 1, seed=1)
    index, streams = np.zeros(1, np.int64), new_streams(1, 1)
    return [batch, streams], lambda action: ask(Answers(action), batch.variant, batch.states, index, streams)


def _policy():
    game = openspiel_game("liars_dice", perfect_recall=False)
    batch = Batch(game.variant, 1, seed=1)
    turn = Turn(game.variant, batch.states, np.zeros(1, np.int64), new_streams(1, 1))
    return batch, lambda action: PolicyAgent(game, Answers(action)).probabilities(turn)


# What `CALLERS` has not. Each returns something at a decision where 0 is legal, whose content must not change, and the way in
# for one action.
WAYS_IN = {
    "TensorEnv": _tensors,
    "Sitting": _sitting,
    "saved game": _saved,
    "agent": _agent,
    "OpenSpiel policy": _policy,
    **{
        f"OpenSpiel, {chance}, {node}, {method}": functools.partial(_spiel_method, chance, node, method)
        for chance in ("explicit", "sampled")
        for node in ("player", "chance")
        for method in ("apply_action", "child", "apply_action_with_legality_check")
    },
}
WHOLE = [int, np.int8, np.uint64, np.array, torch.tensor, lambda number: torch.tensor([number])]


@pytest.mark.parametrize("way", WAYS_IN)
def test_every_way_in_for_an_action_has_one_rule(way):
    """Only whole numbers that are legal are played; all others are refused and change nothing."""
    for whole in WHOLE if way != "saved game" else ():
        WAYS_IN[way]()[1](whole(0))
    thing, play = WAYS_IN[way]()
    does_not_exist = [61] if "chance" not in way else [2]  # in Liar's Dice 61 would be the exact call, which this one lacks
    for action in (*NO_NUMBERS, *NO_ACTIONS, *does_not_exist):
        fails((ValueError, AssertionError), lambda action=action: play(action), thing)
    if isinstance(thing, pyspiel.State):
        assert len(thing.history()) == ("player" in way) * (3 if "explicit" in way else 1)


def test_every_way_in_for_results_has_one_rule():
    """`TensorEnv.view_hands` is the only one."""
    env = dice_envs.TensorEnv("liars_dice", 2, rules="openspiel", num_dice=1)
    env.reset(1)
    fits = torch.zeros(2, 2, 6, env.variant.facts.observation_size)
    env.view_hands(fits)
    forms = [fits.flatten(), fits[1:], fits[..., 1:], fits.mT.contiguous().mT, fits[:1].expand_as(fits), fits.to_sparse()]
    for room in (*forms, fits.double(), fits.to("meta"), fits.clone().requires_grad_(), fits.numpy(), None):
        assert "out must be a contiguous tensor" in fails(ValueError, lambda room=room: env.view_hands(room), env)


def test_players_and_positions_that_do_not_exist_are_refused():
    sitting, _ = _sitting()
    variant, state = sitting.variant, sitting.state
    spiel = _spiel("sampled", False)
    observer = spiel.get_game().make_py_observer()
    elsewhere = state.copy()
    elsewhere["seat"] = 77
    for wrong in (-1, 2, 10**6, True, "0"):
        for call in (variant.picture, sitting.picture, sitting.history, sitting.position):
            fails(
                ValueError, lambda call=call, wrong=wrong: call(*([state] if call == variant.picture else []), wrong), sitting
            )
        fails(ValueError, lambda wrong=wrong: prompt(sitting, wrong), sitting)
        fails(ValueError, lambda wrong=wrong: observer.set_from(spiel, wrong), spiel)
        fails(ValueError, lambda wrong=wrong: observer.string_from(spiel, wrong), spiel)
    for wrong in (-1, 61, True, 0.0):
        fails(ValueError, lambda wrong=wrong: variant.describe_action(wrong), sitting)
    for wrong in (elsewhere, sitting.position(len(sitting)).states, 3, None, Batch("thirties", 1).states[0]):
        in_words = (lambda *both: prompt(both[0], 0, state=both[1]), lambda *both: read_reply(*both, "call"))
        for call in (action_values, odds, *in_words):
            fails(ValueError, lambda call=call, wrong=wrong: call(variant, wrong), sitting)
    for ended in (_spiel("sampled", True), _spiel("explicit", True)):
        fails(ValueError, lambda ended=ended: AgentPolicy(ended.get_game(), "random").action_probabilities(ended), ended)


# --- faults of agents ---------------------------------------------------------------------------------------------

WRONG = [10**6, -1, lambda actions: actions[:-1], lambda actions: actions + 0.0, lambda actions: None]
OPPOSED = [way for way in CALLERS if way.startswith(("Seat", "SB3"))]
TWO = {"shakes": {"mode": "maesters"}, "thirties": {"num_players": 2}}  # options with opponents, where the default has none


@covering(("way", "wrong", "name"), [*OPPOSED, "copy of SeatEnv"], WRONG, names(), most=30)
def test_an_opponents_fault_is_its_own_and_takes_back_the_learners_move(way, wrong, name):
    """In steps and in resets, with either setting for the learner's own illegal actions."""
    caller = CALLERS[way.removeprefix("copy of ")](
        name, opponents=Faulty(), illegal_action="raise" if callable(wrong) else "lose", **TWO.get(name, {})
    )
    if way.startswith("copy"):
        caller.hold(copy.deepcopy(caller.env))
    (opponent,), found = set(caller.inner.games.agents), {}

    def tried(what, call):
        """Make a call, and once more if an opponent that plays against the rules was asked."""
        opponent.wrong, before = wrong, remember(caller.env)
        try:
            return call()
        except AgentError as problem:
            found[what] = str(problem)
        finally:
            opponent.wrong = None
        assert remember(caller.env) == before
        return call()

    for seed in range(20):  # with some of them the opponent moves first
        if way == "SB3VecEnv":
            caller.env.seed(seed)
        tried("reset", caller.env.reset if way == "SB3VecEnv" else functools.partial(caller.reset, seed))
        for _ in range(3):
            actions = {key: int(mask.argmax()) for key, mask in caller.masks().items()}
            caller.restart(tried("step", functools.partial(caller.step, actions)).ended)
    where = rf", seat \d of game \d: action {wrong} " if isinstance(wrong, int) else ""
    assert all(re.match(f"Faulty in {name}{where}", found[what]) for what in ("reset", "step"))


def test_a_step_is_taken_back_where_a_truncated_game_cannot_begin_again():
    """The opponent answers by the rules in all games that are then cut off, and no more when they are dealt again."""
    answers = []
    opponent = Faulty()
    env = SeatVectorEnv("liars_dice", 8, opponents=opponent, autoreset_mode="SameStep", max_episode_steps=1, num_dice=2)
    _, info = env.reset(seed=3)
    before = remember(env)

    def in_the_second_round(actions):
        answers.append(len(actions))
        return actions + 10**6 * (len(answers) > 1)

    opponent.wrong = in_the_second_round
    with pytest.raises(AgentError):
        env.step(info["action_mask"].argmax(axis=1))
    assert len(answers) == 2
    assert remember(env) == before


@every_game
@pytest.mark.parametrize("wrong", WRONG)
def test_the_arena_names_the_agent_that_plays_against_the_rules(name, wrong):
    variant = configure(name)
    faulty = Faulty()
    faulty.wrong = wrong
    players = [Uniform()] * (variant.facts.num_seats - 1) + [faulty]
    where = rf", seat \d of game \d+: action {wrong} does not exist; actions are" if isinstance(wrong, int) else ""
    with pytest.raises(AgentError, match=f"Faulty in {name}{where}"):
        play_table(variant, players, 50, 1)


def test_where_warnings_are_errors_an_illegal_action_changes_nothing(monkeypatch):
    monkeypatch.setattr("dice_envs.core.batch._warned", False)
    env = SeatVectorEnv("liars_dice", 3, illegal_action="lose")
    env.reset(seed=1)
    before = remember(env)
    illegal = [int(np.flatnonzero(mask == 0)[0]) for mask in env.action_masks()]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="an illegal action has ended a game"):
            env.step(illegal)
    assert remember(env) == before
