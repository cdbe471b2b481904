"""Errors change nothing, in every interface and for every error, compared byte for byte."""

import copy
import functools
import types

import gymnasium
import numpy as np
import pyspiel
import pytest
import torch

import dice_envs.envs.sb3
from dice_envs import AgentError, Batch, IllegalActionError, SeatEnv, SeatVectorEnv, Variant, configure
from dice_envs.agent import Turn, Uniform, ask, ask_probabilities
from dice_envs.core.dice import new_streams
from dice_envs.core.game import load, names
from dice_envs.envs import aec
from dice_envs.envs.openspiel import AgentPolicy, PolicyAgent, openspiel_game
from dice_envs.envs.text import prompt, read_reply
from dice_envs.exact import action_values
from dice_envs.exact.odds import odds
from dice_envs.experiments.arena import play_table, tournament
from dice_envs.table.sitting import PERSON, Sitting

SCRATCH = {
    "_kept",
    "_action",
    "_actions",
    "_scratch",
    "_scratch_bytes",
    "_kernels",  # which refer to each other
    "_prepared",
}  # buffers that an interface overwrites before it reads them
every_game = pytest.mark.parametrize("name", names())


class Faulty:
    """Plays at random until `wrong` is set; then one of its actions is illegal."""

    def __init__(self):
        self.wrong = None

    def act(self, turn):
        actions = Uniform().act(turn)
        if self.wrong is None:
            return actions
        if callable(self.wrong):
            return self.wrong(actions)
        actions[-1] = self.wrong
        return actions


def remember(value):
    """The contents of an object, as plain values that compare by content."""
    if isinstance(value, np.ndarray):
        return [remember(item) for item in value] if value.dtype == object else (str(value.dtype), value.shape, value.tobytes())
    if isinstance(value, np.random.Generator):
        return repr(value.bit_generator.state)
    if isinstance(value, dict):
        return {key: remember(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [remember(item) for item in value]
    if (
        not isinstance(value, Variant)
        and type(value).__module__.split(".")[0] in ("dice_envs", "pettingzoo")
        and hasattr(value, "__dict__")
    ):
        return {key: remember(item) for key, item in vars(value).items() if key not in SCRATCH}
    return repr(value)


def fails(error, what, thing):
    """Assert that a call raises the error, in one readable line, and changes nothing."""
    before = remember(thing)
    with pytest.raises(error) as caught:
        what()
    assert len(str(caught.value).splitlines()) == 1
    assert len(str(caught.value)) < 2000
    assert remember(thing) == before
    return str(caught.value)


def bad_options(name):
    """Wrong reset options for each game that has any."""
    wrong = {
        "liars_dice": [{"dice": [[1]]}, {"dice": [[1, 1, 1, 1, 1], [1, 2, 3, 4, 9]]}, {"dice": 5}],
        "fatestones": [{"dice": [[123456] * 3, [123456, 123456, 1]]}, {"dice": [[123456]]}, {"dice": "x"}],
        "score_dice": [{"dice": [[1, 2, 3, 4, 5], [1, 2, 3, 4, 7]]}, {"dice": [[1]]}],
        "shakes": [{"efficacies": [1, 1, 1]}, {"efficacies": 4}],
        "thirties": [{"dice": [7, 7, 7, 7, 7, 7]}, {"dice": []}, {"dice": [1, 2], "aside": [1, 2, 3, "4"]}],
    }
    return [5, "dice", [("dice", 1)], {"dise": 1}, {3: 1}, *wrong.get(name, [])]


def test_every_game_with_reset_options_is_given_wrong_ones():
    for name in names():
        assert not load(name).reset_options or len(bad_options(name)) > len(bad_options("another"))


BAD_SEEDS = [-1, 1.5, "1", True, 2**64 + 0.5]


def resets(interface, name):
    """All wrong resets of the interface, as (error, call)."""
    for options in bad_options(name):
        yield (ValueError,), lambda options=options: interface.reset(options=options)
        yield (ValueError,), lambda options=options: interface.reset(seed=3, options=options)
    for seed in BAD_SEEDS:
        yield (ValueError, gymnasium.error.Error), lambda seed=seed: interface.reset(seed=seed)


NO_NUMBERS = [None, "call", "0", 1.0, True, np.True_, np.array(True), torch.tensor(True), torch.tensor(0.0), [0, [0]], {}]
NO_ACTIONS = [-1, -5, 10**6, -(2**63), 2**63, np.uint64(2**64 - 1), 2**70, 10**4000]
BAD_ACTIONS = [
    np.timedelta64(1, "s"),  # NumPy derives it from integers
    *NO_NUMBERS,
    *NO_ACTIONS,
    [0, 0, 0, 0, 0],
    torch.tensor([0, 0, 0, 0]),
]
BAD_VECTORS = [[0, 0, 10**6], [0.0, 0, 0], [True, 0, 0], np.array([0, 0, 2**64 - 1], np.uint64), torch.ones(3) > 0]


@every_game
def test_a_copy_takes_a_step_back_as_well(name):
    env = SeatEnv(name, opponents=Faulty(), illegal_action="raise")
    env.reset(seed=1)
    other = copy.deepcopy(env)
    for _ in range(100 if env.variant.facts.num_seats > 1 else 0):
        other.games.agents[0].wrong = -1
        before = other.games.states.tobytes()
        try:
            ended = other.step(other.action_masks().argmax())[2]  # where no opponent moves, nothing is wrong
        except AgentError:
            assert other.games.states.tobytes() == before
            return
        other.games.agents[0].wrong = None
        if ended:
            other.reset()
    assert env.variant.facts.num_seats == 1


@every_game
def test_single_env(name):
    opponent = Faulty()
    env = SeatEnv(name, opponents=opponent, illegal_action="raise")
    assert env.np_random_seed >= 0  # Gymnasium makes the stream when it is first asked for
    for call in (lambda: env.step(0), env.action_masks):
        fails(gymnasium.error.ResetNeeded, call, env)
    for error, call in resets(env, name):
        fails(error, call, env)
    env.reset(seed=1)
    for error, call in resets(env, name):
        fails(error, call, env)
    for action in BAD_ACTIONS:
        fails(IllegalActionError, lambda action=action: env.step(action), env)
    again = SeatEnv(name, opponents=Faulty(), illegal_action="raise")
    again.reset(seed=1)
    rng = np.random.default_rng(1)
    for _ in range(40):  # it continues as if nothing had been tried
        action = int(rng.choice(np.flatnonzero(env.action_masks())))
        results = [each.step(action) for each in (env, again)]
        np.testing.assert_array_equal(results[0][0], results[1][0])
        if results[0][2]:
            fails(gymnasium.error.ResetNeeded, lambda: env.step(0), env)
            np.testing.assert_array_equal(env.reset()[0], again.reset()[0])


@every_game
@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
def test_vector_env(name, mode):
    env = SeatVectorEnv(name, 3, autoreset_mode=mode)
    for call in (lambda: env.step(np.zeros(3, int)), env.action_masks):
        fails(gymnasium.error.ResetNeeded, call, env)
    some = np.array([True, False, False])
    fails(gymnasium.error.ResetNeeded, lambda: env.reset(options={"reset_mask": some}), env)
    env.reset(seed=1)
    for error, call in resets(env, name):
        fails(error, call, env)
    for seed in ([1, 2], [1, 2, -1], [1, "2", 3]):
        fails(ValueError, lambda seed=seed: env.reset(seed=seed), env)
        fails(ValueError, lambda seed=seed: env.reset(seed=seed, options={"reset_mask": ~some}), env)
    for mask in (5, [1, 0, 1], np.zeros(3, bool), np.ones(2, bool)):
        fails(ValueError, lambda mask=mask: env.reset(options={"reset_mask": mask}), env)
    for actions in (*BAD_ACTIONS, *BAD_VECTORS, [[0], [0], [0]], ["0", "0", "0"]):
        fails(IllegalActionError, lambda actions=actions: env.step(actions), env)


@every_game
def test_sb3_env(name):
    env = dice_envs.envs.sb3.make_vec_env(name, 3, seed=1)
    for call in (lambda: env.step(np.zeros(3, int)), env.action_masks):
        fails(gymnasium.error.ResetNeeded, call, env)
    env.reset()
    for options in bad_options(name)[3:]:
        env.seed(5)
        env.set_options(options)
        fails(ValueError, env.reset, env)
    env.set_options([{"dice": 1}, {}, {}])
    assert "the same for all" in fails(ValueError, env.reset, env)
    for actions in (*BAD_ACTIONS, *BAD_VECTORS):
        fails(IllegalActionError, lambda actions=actions: env.step(actions), env)


@every_game
@pytest.mark.parametrize("make", [aec.raw_env, aec.parallel_env])
def test_pettingzoo_envs(name, make):
    facts = configure(name).facts
    if make is aec.parallel_env and not facts.simultaneous:
        pytest.skip("turns are taken one after another")
    env = make(name)
    if make is aec.raw_env:
        fails(gymnasium.error.ResetNeeded, lambda: env.step(0), env)
    env.reset(seed=1)
    for error, call in resets(env, name):
        fails(error, call, env)
    for action in BAD_ACTIONS:
        whole = dict.fromkeys(env.agents, action) if make is aec.parallel_env else action
        fails(IllegalActionError, lambda whole=whole: env.step(whole), env)
    if make is aec.parallel_env:
        for actions in (None, 5, [0, 0], {}, {env.agents[0]: 0}, {env.agents[0]: 0, env.agents[1]: 10**6}):
            fails(IllegalActionError, lambda actions=actions: env.step(actions), env)


@every_game
def test_wrapped_pettingzoo_env(name):
    """PettingZoo's own wrappers count resets even if they fail, but the game inside stays as it was."""
    env = aec.env(name)
    env.reset(seed=1)
    for error, call in resets(env, name):
        fails(error, call, env.unwrapped)
    env.step(int(env.observe(env.agent_selection)["action_mask"].argmax()))


@every_game
def test_batch(name):
    for num_games in (0, -1, 1.5, "2", None, True):
        with pytest.raises(ValueError, match="num_games must be a whole number from 1"):
            Batch(name, num_games)
    for seed in BAD_SEEDS:
        with pytest.raises(ValueError, match="seed must be a whole number"):
            Batch(name, 1, seed=seed)
    batch = Batch(name, 3, seed=1)
    for actions in (*BAD_ACTIONS, *BAD_VECTORS):
        fails(IllegalActionError, lambda actions=actions: batch.play(actions), batch)
    legal = batch.legal().argmax(axis=1)
    for index in ([0, [1]], [0, 1, 3], [-1, 0, 1], [0, 0, 1], [0.0, 1, 2], [[0], [1], [2]], "012"):
        fails(ValueError, lambda index=index: batch.play(legal, index), batch)
        fails(ValueError, lambda index=index: batch.deal(index), batch)
    for seats in ([0, 0, 6], [-1, 0, 0], [0, 0], [0.5, 0, 0], 1):
        fails(ValueError, lambda seats=seats: batch.observe(seats), batch)


# --- every way in for an action --------------------------------------------------------------------------------------


def _reset(env):
    env.reset(**({} if isinstance(env, dice_envs.envs.sb3.SeatVecEnv) else {"seed": 1}))
    return env


def _vector(env):
    return env, lambda action: env.step([action])


def _parallel():
    env = _reset(aec.parallel_env("score_dice"))
    return env, lambda action: env.step({"player_0": action, "player_1": 0})


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


# Each returns something at a decision where 0 is legal, whose content must not change, and the way in for one action.
WAYS_IN = {
    "raw_env": lambda: (env := _reset(aec.raw_env("liars_dice")), env.step),
    "env": lambda: ((env := _reset(aec.env("liars_dice", illegal_action="raise"))).unwrapped, env.step),
    "parallel_env": _parallel,
    "SeatEnv": lambda: (env := _reset(SeatEnv("liars_dice", seat=0, illegal_action="raise")), env.step),
    "SeatVectorEnv": lambda: _vector(_reset(SeatVectorEnv("liars_dice", 1, seat=0))),
    "SeatVecEnv": lambda: _vector(_reset(dice_envs.envs.sb3.make_vec_env("liars_dice", 1, seat=0, seed=2))),
    "TensorEnv": lambda: _vector(_reset(dice_envs.TensorEnv("liars_dice", 1, seat=0, starter="first"))),
    "Batch": lambda: (batch := Batch("liars_dice", 1, seed=1), lambda action: batch.play([action])),
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
    for wrong in (elsewhere, sitting._states[-1], 3, None, Batch("thirties", 1).states[0]):
        for call in (
            action_values,
            odds,
            lambda *both: prompt(both[0], 0, state=both[1]),
            lambda *both: read_reply(*both, "call"),
        ):
            fails(ValueError, lambda call=call, wrong=wrong: call(variant, wrong), sitting)
    for ended in (_spiel("sampled", True), _spiel("explicit", True)):
        fails(ValueError, lambda ended=ended: AgentPolicy(ended.get_game(), "random").action_probabilities(ended), ended)


# --- faults of agents ---------------------------------------------------------------------------------------------

WRONG = [10**6, -1, lambda actions: actions[:-1], lambda actions: actions + 0.0, lambda actions: None]


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("name", [name for name in names() if configure(name).facts.num_seats > 1])
def test_an_opponents_fault_is_its_own_and_takes_back_the_learners_move(name, wrong):
    """In every interface, in steps and in resets, with either setting for the learner's own illegal actions."""
    options = {"mode": "maesters"} if name == "shakes" else {"num_players": 2} if name == "thirties" else {}
    opponent = Faulty()
    for kind in ("lose", "raise"):
        env = SeatEnv(name, opponents=opponent, seat=0, illegal_action=kind, **options)
        _, info = env.reset(seed=1)
        opponent.wrong = wrong
        while True:  # up to the opponent's answer
            action = int(info["action_mask"].argmax())
            try:
                _, _, ended, _, info = env.step(action)
            except AgentError:
                break
            if ended:
                env.reset()
        assert "Faulty in " + name in fails(AgentError, functools.partial(env.step, action), env)
        opponent.wrong = None
        env.step(action)
    opponent.wrong = wrong
    last = configure(name, **options).facts.num_seats - 1
    for make in (
        lambda: SeatEnv(name, opponents=opponent, seat=last, **options),
        lambda: SeatVectorEnv(name, 3, opponents=opponent, seat=last, **options),
        lambda: dice_envs.envs.sb3.make_vec_env(name, 3, opponents=opponent, seat=last, seed=1, **options),
    ):
        env = make()
        found = 0
        for seed in range(20):  # with some of them the opponent moves first
            if isinstance(env, dice_envs.envs.sb3.SeatVecEnv):
                env.seed(seed)
                reset = env.reset
            else:
                reset = functools.partial(env.reset, seed=seed)
            before = remember(env)
            try:
                reset()
            except AgentError:
                found += 1
                assert remember(env) == before
        assert found


@every_game
def test_vector_interfaces_take_back_a_whole_step(name):
    options = {**load(name).gym_options, **({"mode": "maesters"} if name == "shakes" else {})}
    options |= {"num_players": 2} if name == "thirties" else {}
    opponent = Faulty()
    for make in (
        lambda: SeatVectorEnv(name, 8, opponents=opponent, seat=0, **options),
        lambda: SeatVectorEnv(name, 8, opponents=opponent, seat=0, autoreset_mode="SameStep", **options),
        lambda: dice_envs.envs.sb3.make_vec_env(name, 8, opponents=opponent, seat=0, seed=1, **options),
    ):
        opponent.wrong = None
        env = make()
        env.reset()
        found = 0
        for _ in range(60):
            actions = env.action_masks().argmax(axis=1)
            opponent.wrong = 10**6
            before = remember(env)
            try:
                env.step(actions)
            except AgentError:
                found += 1
                assert remember(env) == before
                opponent.wrong = None
                env.step(actions)
        assert found


@every_game
@pytest.mark.parametrize("wrong", WRONG)
def test_the_arena_names_the_agent_that_plays_against_the_rules(name, wrong):
    variant = configure(name)
    faulty = Faulty()
    faulty.wrong = wrong
    players = [Uniform()] * (variant.facts.num_seats - 1) + [faulty]
    with pytest.raises(AgentError, match=f"Faulty in {name}"):
        play_table(variant, players, 50, 1)


def test_the_error_names_seat_game_and_action():
    faulty = Faulty()
    faulty.wrong = 9999
    with pytest.raises(AgentError, match=r"Faulty in liars_dice, seat \d of game 49: action 9999 does not exist; actions are"):
        tournament(configure("liars_dice"), ["faulty", "faulty"], 50, 1, agents=[faulty, faulty])


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda chances: chances[:, :-1], "must have shape"),
        (lambda chances: chances * np.nan, r"action 0 \(1 x 1\) must be 0 or more, not nan"),
        (lambda chances: np.eye(61)[np.full(len(chances), 60)], r"\(call\) must be 0, .* not legal, not 1.0"),
        (lambda chances: chances / 2, "must sum to 1, not 0.5"),
        (lambda chances: -chances, "must be 0 or more, not -0"),
    ],
)
def test_probabilities_are_a_distribution_over_legal_actions(wrong, words):
    class Claims:
        def probabilities(self, turn):
            turn.legal[:] = 1  # an agent's own copy
            return wrong(Uniform().probabilities(Turn(turn.variant, batch.states, np.arange(2), new_streams(1, 2))))

    batch = Batch("liars_dice", 2, seed=1)
    with pytest.raises(AgentError, match=words):
        ask_probabilities(Claims(), Turn(batch.variant, batch.states, np.arange(2), new_streams(1, 2)))
