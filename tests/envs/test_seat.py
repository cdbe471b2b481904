"""One seat against opponents: autoreset modes, opponents, rewards, wrong input, SB3."""

import numpy as np
import pytest

from dice_envs import Mixture, SeatEnv, SeatVectorEnv, configure, make_agent
from dice_envs.core.game import OVER
from dice_envs.envs import aec
from dice_envs.envs.text import TextEnv
from tests.support.chance import assert_distributed, assert_even
from tests.support.interfaces import fails, remember


def test_returned_arrays_are_the_callers_to_keep():
    env = SeatVectorEnv("liars_dice", 8)
    observations, infos = env.reset(seed=1)
    kept = []
    for _ in range(30):
        kept.append(((observations, infos), remember((observations, infos))))
        observations, *_, infos = env.step(infos["action_mask"].argmax(axis=1))
    assert all(remember(live) == then for live, then in kept)


def test_the_learner_is_paid_what_its_seat_earns():
    """The environment's returns are the game's: +1 for winners, and a loss is paid when another seat ends the game."""
    env = SeatVectorEnv("liars_dice", 64, autoreset_mode="SameStep", opponents="numbers", num_dice=2)
    _, infos = env.reset(seed=1)
    seen = []
    for _ in range(200):
        _, rewards, ended, _, infos = env.step(infos["action_mask"].argmax(axis=1))
        assert not rewards[~ended].any()
        seen.extend(rewards[ended])
    assert {-1.0, 1.0} == set(seen)


def test_the_learner_ends_when_it_is_out_though_others_play_on():
    env = SeatEnv("liars_dice", num_players=3, num_dice=1, seat=0, starter="first", illegal_action="raise")
    env.reset(seed=3, options={"dice": [[1], [2], [3]]})
    observation, reward, ended, _, _ = env.step(17)  # three sixes: nothing can be raised, so they are called
    assert ended
    assert reward == pytest.approx(-0.5)
    assert env.games.states["seat"][0] != OVER, "two others still play"
    assert env.observation_space.contains(observation)


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_a_game_that_ends_before_the_learners_first_turn_is_dealt_again(mode):
    """In a single round of three the others often bid and call before the last seat is asked."""
    options = {"num_players": 3, "num_dice": 1, "rounds": "single", "starter": "first"}
    env = SeatVectorEnv("liars_dice", 200, opponents="random", seat=2, autoreset_mode=mode, **options)
    _, infos = env.reset(seed=1)
    assert (env.games.states["seat"] == 2).all()
    for _ in range(3):
        _, _, ended, _, infos = env.step(infos["action_mask"].argmax(axis=1))
        assert ((env.games.states["seat"] == 2) | (ended & (mode == "NextStep"))).all()


def test_seat_is_drawn_for_each_game_or_fixed():
    env = SeatVectorEnv("liars_dice", 3000, num_players=3, num_dice=1)
    _, infos = env.reset(seed=2)
    assert_even(np.bincount(infos["seat"], minlength=3))
    _, infos = SeatVectorEnv("liars_dice", 30, num_players=3, seat=2).reset(seed=2)
    assert set(infos["seat"]) == {2}


def test_opponents_by_seat_and_by_pool():
    class Recorder:
        def __init__(self):
            self.seats = set()

        def act(self, turn):
            self.seats |= set(turn.seats.tolist())
            return turn.legal.argmax(axis=1)

    first, second = Recorder(), Recorder()
    env = SeatVectorEnv("liars_dice", 20, opponents=[first, second], seat=1, num_players=3)
    _, infos = env.reset(seed=1)
    for _ in range(20):
        _, _, _, _, infos = env.step(infos["action_mask"].argmax(axis=1))
    assert first.seats == {2}, "opponents are listed in turn order after the learner"
    assert second.seats == {0}
    pool = Mixture([Recorder(), Recorder(), Recorder()], weights=[1, 0, 3])
    env = SeatVectorEnv("liars_dice", 4000, opponents=pool, autoreset_mode="SameStep")
    env.reset(seed=1)
    players = env.games.players.max(axis=1)
    assert_distributed(np.bincount(players, minlength=3), [0.25, 0, 0.75])
    for weights in ([1, 2], ["1"] * 3, [np.timedelta64(1, "ns")] * 3):
        with pytest.raises(ValueError, match="weights must be 3 non-negative numbers"):
            Mixture(["random"] * 3, weights=weights)


def test_whose_options_change_is_followed_from_the_next_reset_and_a_pool_at_once():
    games = {"num_envs": 20, "seat": 0, "starter": "first", "rounds": "single", "autoreset_mode": "SameStep"}

    def called(env):
        """The share of games in which the opponent has called the learner's lowest bid."""
        return env.step(env.action_masks().argmax(axis=1))[2].mean()

    opponent = make_agent("numbers:threshold=0")
    env = SeatVectorEnv("liars_dice", opponents=opponent, **games)
    env.reset(seed=1)
    assert called(env) == 0
    object.__setattr__(opponent, "threshold", 1.0)  # ours are frozen; those of others may change
    assert called(env) == 0
    env.reset(seed=2)
    assert called(env) > 0.2
    pool = Mixture(["numbers:threshold=0"])
    env = SeatVectorEnv("liars_dice", opponents=pool, **games)
    env.reset(seed=1)
    assert called(env) == 0
    pool.agents[0] = opponent
    assert called(env) > 0.2
    pool.agents.append(make_agent("numbers:threshold=0"))
    pool.weights = [0.5, 0.5]
    for weights in ([0.0, 1.0], [1.0, 0.0]):
        pool.weights[:] = weights
        env.reset()
        assert (called(env) > 0.2) == (weights[0] == 1)


def test_actions_that_are_handed_in_stay_as_they_are():
    for mode in ("NextStep", "SameStep"):
        env = SeatVectorEnv("liars_dice", 8, autoreset_mode=mode, opponents="numbers")
        _, infos = env.reset(seed=1)
        for _ in range(20):
            actions = infos["action_mask"].argmax(axis=1)
            before, (_, _, _, _, infos) = actions.copy(), env.step(actions)
            np.testing.assert_array_equal(actions, before)


def test_what_an_agent_is_shown_is_its_own_to_change():
    """In PettingZoo's environment, also when it looks twice."""
    for make in (aec.raw_env, aec.env):
        env = make("liars_dice", num_dice=2)
        env.reset(seed=1)
        first = remember(env.last())
        for _ in range(3):
            observation, *_, info = env.last()
            assert remember(env.last()) == first
            observation["observation"][:] = 7
            observation["action_mask"][:] = 7
        env.step(int(info["action_mask"].argmax()))
        assert env.last()[0]["observation"].max() <= 1


WRONG = [
    ({"opponents": "nobody"}, "unknown agent 'nobody'"),
    ({"opponents": ["random", "random"]}, "opponents must be one agent"),
    ({"seat": 2}, "seat must be one of 'random', 0, 1, not 2"),
    ({"seat": "first"}, "seat must be one of 'random', 0, 1, not 'first'"),
    ({"illegal_action": "ignore"}, "illegal_action must be one of 'lose', 'raise', not 'ignore'"),
    ({"render_mode": "3d"}, "render_mode must be one of "),
    ({"num_dice": 0}, "num_dice must be"),
]


@pytest.mark.parametrize(
    ("make", "arguments", "words"),
    [
        *((make, *row) for make in (SeatVectorEnv, TextEnv) for row in WRONG),
        (SeatVectorEnv, {"num_envs": 0}, "num_envs must be a whole number from 1"),
        (SeatVectorEnv, {"autoreset_mode": "Never"}, "must be one of 'NextStep', 'SameStep', 'Disabled', not 'Never'"),
        (TextEnv, {"rules": "often"}, "rules must be "),
    ],
)
def test_wrong_arguments_are_named(make, arguments, words):
    with pytest.raises(ValueError, match=".") as caught:
        make("liars_dice", **arguments)
    assert words in str(caught.value)


@pytest.mark.parametrize("name", ["liars_dice", "thirties"])
def test_a_wrong_snapshot_is_refused_and_changes_nothing(name):
    """One from before the first game, of other games, of another form, or with any number changed."""
    games, *others = (SeatVectorEnv(name, 4, **options).games for options in ({}, {"num_dice": 2}, {"seat": 0}))
    wrong = [games.snapshot(), None, 5]
    for each in (games, *others):
        each.start(np.arange(4), None, [3, 4, 5, 6])
    kept = games.snapshot()
    wrong += [each.snapshot() for each in others]
    for field, array in kept.items():
        wrong += [{**kept, field: form} for form in (None, array[..., None], np.zeros(array.shape, "S1"))]
        for part in array.dtype.names or [...]:
            changed = array.copy()
            for entry in changed[part].flat[-1:]:
                changed[part].flat[-1] = entry[1:] if field == "checksum" else entry + 1
                wrong.append({**kept, field: changed})
    assert len(wrong) > 45
    for each in wrong:
        assert "snapshot" in fails(ValueError, lambda each=each: games.restore(each), games)
    games.restore(kept)


def test_variant_passes_through():
    variant = configure("liars_dice", num_dice=3)
    assert SeatEnv(variant).variant is variant
    assert SeatEnv(variant, num_faces=4).variant.options.num_dice == 3
