"""`dice_envs.TensorEnv`: in lock-step with the environment of Stable-Baselines3, on a CPU, on numba's simulator and on a GPU.

Run with NUMBA_ENABLE_CUDASIM=1, `TensorEnv` takes its turns as on a GPU.
"""

import copy
import pickle

import numba
import numpy as np
import pytest
import torch

import dice_envs
from dice_envs import Mixture
from dice_envs.agent.specs import resolve
from dice_envs.core.game import configure
from dice_envs.envs.learner import SeatGames
from dice_envs.envs.sb3 import make_vec_env
from tests.conftest import ROOT, python
from tests.support.policies import Faulty
from tests.support.subsets import few

ROWS = {
    "numbers": ("liars_dice", {"num_dice": 2}, {"opponents": "numbers"}),
    "self-play": ("liars_dice", {"num_players": 3, "num_dice": 2}, {"self_play": 0.5}),
    "pool": ("liars_dice", {}, {"opponents": Mixture(["random", "numbers", "numbers:bluff=1"]), "seat": 1}),
    "network": ("liars_dice", {"rules": "openspiel", "num_dice": 1}, {"opponents": "ppo"}),
    "fatestones": ("fatestones", {}, {"expected_rewards": True, "opponents": "strongest"}),
    "score dice": ("score_dice", {}, {"opponents": "highest", "self_play": 1.0}),
    "shakes": ("shakes", {"mode": "maesters"}, {"opponents": ["argument", "dogmatic"]}),
    "thirties": ("thirties", {"num_players": 1}, {}),
}
SIMULATED = bool(numba.config.ENABLE_CUDASIM)
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def lock_step(row, device="cpu", games=16, steps=60, seed=5):
    name, options, arguments = row
    ours = copy.copy(dice_envs.TensorEnv(name, games, **arguments, device=device, **options))  # also before the first game
    theirs = make_vec_env(name, games, seed=seed, **options)
    theirs.games = SeatGames(ours.variant, games, **arguments)
    ours.reset(seed)
    observations = theirs.reset()
    held = [ours.observations, ours.masks, ours.seats, ours.out]
    places = [tensor.data_ptr() for tensor in held]
    random = np.random.default_rng(0)
    envs = [ours]
    for step in range(steps):
        if step == steps // 3:
            envs += copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))
        masks, seats, views = theirs.action_masks(), theirs.games.learners.copy(), np.empty(ours.state().shape, np.float32)
        theirs.games.view_all(views)
        for env in envs:
            np.testing.assert_array_equal(env.observations.cpu(), observations)
            np.testing.assert_array_equal(env.masks.bool().cpu(), masks)
            np.testing.assert_array_equal(env.seats.cpu(), seats)
            np.testing.assert_array_equal(env.state().cpu(), views)
        if ours.variant.hands:
            dealt = (theirs.games.states["counts"][:, :2, None] == ours.variant.hands[0]).all(3)
            everyone = np.where((seats == 0)[:, None, None], views, views[:, ::-1])
            ours.view_hands(supposed := torch.ones(*dealt.shape, views.shape[2], device=device))
            np.testing.assert_array_equal(supposed.cpu()[torch.from_numpy(dealt)], everyone.reshape(2 * games, -1))
        if step == steps // 2:
            kept = ours.snapshot()
            for field, array in theirs.games.snapshot().items():
                np.testing.assert_array_equal(kept[field], array)
            ours.reset(seed + 1)
            ours.restore(kept)
        actions = np.where(masks, random.random(masks.shape), -1).argmax(axis=1)
        observations, rewards, ended, infos = theirs.step(actions)
        for env in envs:
            done = env.step(torch.from_numpy(actions).to(device))
            np.testing.assert_array_equal(done.earned.cpu().numpy()[np.arange(games), seats], rewards)
            np.testing.assert_array_equal(done.ended.cpu(), ended)
            np.testing.assert_array_equal(env.out.cpu(), theirs.games.states["out"][:, : ours.variant.facts.num_seats])
            for i in np.flatnonzero(ended):
                np.testing.assert_array_equal(done.players[i].cpu(), infos[i]["players"])
                assert infos[i]["episode"]["l"] == done.lengths[i]
                assert (done.returns[i].cpu() == infos[i]["episode"]["r"]).any()
    for env in envs:
        env.check()
    assert [tensor.data_ptr() for tensor in held] == places


@few(2, "row", ROWS.values(), ids=ROWS)
def test_it_plays_the_games_of_the_other_environment(row):
    lock_step(row, steps=20 if SIMULATED else 60)


@pytest.mark.skipif(SIMULATED, reason="this runs the simulator")
@pytest.mark.thorough
def test_the_same_on_the_simulator():
    run = "-m", "pytest", "-q", "-x", "-p", "no:xdist", "-p", "no:cacheprovider", __file__
    done = python(*run, env={"NUMBA_ENABLE_CUDASIM": "1"}, timeout=None, cwd=ROOT)
    assert done.returncode == 0, done.stdout[-2000:]
    assert " passed" in done.stdout


@pytest.mark.cuda
@needs_gpu
@pytest.mark.parametrize("name", [name for name in ROWS if name != "network"])
def test_the_same_on_a_gpu(name):
    """10^5 moves of the learner. (A network's logits are rounded otherwise there.)"""
    lock_step(ROWS[name], "cuda", games=1000, steps=100)


@pytest.mark.cuda
@needs_gpu
def test_a_graph_holds_steps():
    plain, graph = (dice_envs.TensorEnv("liars_dice", 64, "numbers", device="cuda") for _ in range(2))
    for env in (plain, graph):
        env.reset(1)
    assert graph.recording is not None
    actions = graph.masks.argmax(dim=1)
    graph.step(actions)
    graph.reset(1)
    held = torch.cuda.CUDAGraph()
    with torch.cuda.graph(held):
        actions.copy_(graph.masks.argmax(dim=1))
        graph.step(actions)
    for _ in range(100):
        plain.step(plain.masks.argmax(dim=1))
        held.replay()
        assert torch.equal(plain.observations, graph.observations)


@pytest.mark.skipif(not SIMULATED, reason="a CPU's kernels serve all variants of a game")
def test_equal_games_are_compiled_once():
    one, same, other = (dice_envs.TensorEnv("liars_dice", 2, num_dice=dice) for dice in (2, 2, 1))
    assert one._turns._kernels is same._turns._kernels
    assert one._turns._kernels is not other._turns._kernels


@pytest.mark.skipif(not SIMULATED, reason="graphs are of a GPU")
def test_a_recorded_step_of_numbers_that_have_changed_is_told():
    pool = Mixture(["numbers", "numbers:bluff=1"])
    env = dice_envs.TensorEnv("liars_dice", 2, pool, num_dice=2)
    before = env.recording
    assert env.recording == before is not None
    pool.agents[1] = dice_envs.make_agent("numbers:bluff=0.5")
    assert env.recording != before
    after, pool.weights = env.recording, [1.0, 3.0]
    assert env.recording != after


def test_a_wrong_step_changes_nothing():
    env = dice_envs.TensorEnv("liars_dice", 4)
    with pytest.raises(RuntimeError, match="call reset before step"):
        env.step(torch.zeros(4, dtype=torch.int64))
    env.reset(1)
    before, shown = env.snapshot(), env.observations.clone()
    for wrong in (torch.zeros(4), torch.zeros(4, dtype=torch.bool), torch.zeros(1, dtype=torch.int64), None, 0):
        with pytest.raises(dice_envs.IllegalActionError, match="actions must be"):
            env.step(wrong)
        for name, array in env.snapshot().items():
            np.testing.assert_array_equal(array, before[name])

    actions = torch.where(torch.arange(4) == 2, 1000, env.masks.argmax(dim=1))
    calls = [lambda: env.step(actions)]
    if SIMULATED:  # on a GPU the other games have gone on
        env.step(actions)
        calls = [copy.deepcopy(env).check, env.check]
    for call in calls:
        with pytest.raises(dice_envs.IllegalActionError, match="game 2: action 1000 does not exist"):
            call()
    for name, array in env.snapshot().items():
        assert SIMULATED or (array == before[name]).all()
        assert array.ndim == 0 or (array[2] == before[name][2]).all()
    assert torch.equal(env.observations[2], shown[2])


@pytest.mark.skipif(SIMULATED, reason="opponents without kernels")
def test_an_opponents_error_leaves_the_tensors_as_they_were():
    faulty = Faulty()
    env, twin = (dice_envs.TensorEnv("liars_dice", 8, who, seat=0, starter="first") for who in (faulty, Faulty()))
    env.reset(1)
    twin.reset(1)
    faulty.wrong, before = -5, [env.observations.clone(), env.masks.clone(), env.out.clone()]
    with pytest.raises(dice_envs.AgentError, match="Faulty in liars_dice"):
        env.step(env.masks.argmax(dim=1))
    assert all(map(torch.equal, before, [env.observations, env.masks, env.out]))
    faulty.wrong = None
    for each in (env, twin):
        each.step(each.masks.argmax(dim=1))
    assert torch.equal(env.observations, twin.observations)


@pytest.mark.parametrize("spec", ["nash", "reader", "mcts:5", "adaptive"])
def test_who_cannot_choose_on_a_gpu_is_named(spec):
    from dice_envs.agent import name_of
    from dice_envs.agent.compiled import mixed_team
    from dice_envs.envs.learner.device import networks_of

    variant, agents = configure("liars_dice", num_dice=1), [resolve("numbers"), resolve(spec)]
    with pytest.raises(
        ValueError, match=r"opponents must be policy networks \(ppo\) or have kernels .* 'cpu' takes it"
    ) as caught:
        networks_of(agents, mixed_team(agents, variant), variant)
    assert name_of(agents[1]) in str(caught.value)


@pytest.mark.library("torchrl", "`TensorEnv` as an EnvBase", game="liars_dice")
@pytest.mark.thorough
def test_torchrl_takes_the_games_as_its_own_environment():
    envs = pytest.importorskip("torchrl.envs")
    from torchrl.envs.utils import check_env_specs

    from dice_envs.experiments.examples.torchrl_ppo import TensorGames

    env = envs.TransformedEnv(TensorGames(4, "cpu"), envs.ActionMask())
    check_env_specs(env)
    env.set_seed(3)
    games = env.rollout(60, break_when_any_done=False)
    ended = games["next", "done"][..., 0]
    assert ended.sum() > 40
    assert (games["next", "reward"][..., 0].abs() == ended).all()  # won or lost at the end, nothing before
    assert (games["action_mask"].gather(-1, games["action"].unsqueeze(-1))).all()
