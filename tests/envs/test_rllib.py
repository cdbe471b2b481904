"""RLlib accepts the environments, and its examples learn. Ray pins another Gymnasium, so this has its own job:
`make test-rllib`."""

import itertools
import re
import subprocess
import sys
import tempfile

import numpy as np
import pytest

pytest.importorskip("ray.rllib", exc_type=ImportError)

from dice_envs.core.game import configure, names
from dice_envs.envs import aec


@pytest.mark.library("ray", "RLlib's PettingZooEnv")
@pytest.mark.parametrize("name", [name for name in names() if configure(name).facts.num_seats > 1])
def test_rllib_pettingzoo_env(name):
    from ray.rllib.env.wrappers.pettingzoo_env import PettingZooEnv

    env = PettingZooEnv(aec.env(name))
    rng = np.random.default_rng(0)
    for seed in range(3):
        observations, _ = env.reset(seed=seed)
        done = {"__all__": False}
        steps = 0
        while not done["__all__"] and steps < 500:
            (agent, observation), *_ = observations.items()
            assert env.get_observation_space(agent).contains(observation)
            legal = np.flatnonzero(observation["action_mask"])
            observations, rewards, done, _, _ = env.step({agent: int(rng.choice(legal)) if len(legal) else None})
            assert all(isinstance(reward, float | int) for reward in rewards.values())
            steps += 1
        assert steps > 0


def run_example(name, *arguments):
    """Run the example and return what it prints. Its Ray processes are stopped."""
    command = [sys.executable, "-m", f"dice_envs.experiments.examples.{name}", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    return done.stdout


def check_edges(printed):
    """The printed share of a best response's edge, in per cent, has grown; other measured figures are plausible."""
    found = re.findall(r"^(before|after): wins ([\d.]+)% .*, (-?[\d.]+)% of .* edge; exploitability ([\d.]+)$", printed, re.M)
    assert [when for when, *_ in found] == ["before", "after"], printed
    for _, wins, _, exploitability in found:
        assert 0 < float(wins) < 90  # a best response wins 89.04 %
        assert 0 < float(exploitability) <= 1
    before, after = (float(edge) for _, _, edge, _ in found)
    assert after > before + 10, printed


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(options, marks=pytest.mark.library("ray", f"RLlib, example `{' '.join(options)}`", game="liars_dice"))
        for options in (["rllib_ppo"], ["rllib_ppo", "--self-play"])
    ],
)
def test_examples_learn(options):
    printed = run_example(*options, "--steps", 8000, "--seed", 1)
    assert printed.startswith("seed 1\n")
    check_edges(printed)


@pytest.mark.parametrize(
    ("option", "value", "allowed"),
    [("--steps", "0", "1 to 10000000000"), ("--env-runners", "-1", "0 to 10000"), ("--seed", "-5", "0 to 4294967295")],
)
def test_bad_options_of_the_example(option, value, allowed, monkeypatch, capsys):
    from dice_envs.experiments.examples import rllib_ppo

    monkeypatch.setattr(sys, "argv", ["rllib_ppo", option, value])
    with pytest.raises(SystemExit, match="2"):
        rllib_ppo.main()
    assert f"{option} must be a whole number from {allowed}, not {value}" in capsys.readouterr().err


@pytest.mark.library("ray", "RLlib on a cluster of two nodes", game="liars_dice")
def test_example_on_a_cluster_of_two_nodes(monkeypatch):
    from ray.cluster_utils import Cluster

    # A separate folder, so that no other Ray program on this machine finds the cluster. Its sockets need a short path.
    with tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as folder:
        monkeypatch.setenv("RAY_TMPDIR", folder)
        # Each node has room for one environment runner, so two of them need both nodes.
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
        try:
            cluster.add_node(num_cpus=1)
            options = ("--env-runners", 2, "--address", cluster.address)
            printed = run_example("rllib_ppo", "--steps", 8000, "--seed", 1, *options)
        finally:
            cluster.shutdown()
    assert "2 environment runners on 2 nodes" in printed
    check_edges(printed)


def test_no_two_games_of_an_example_have_the_same_seed():
    from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner

    from dice_envs.experiments.examples.rllib_ppo import NUM_ENVS, configured

    streams = []
    for seed, index in itertools.product((5, 6), (1, 2)):
        config = configured(seed=seed, steps=1, env_runners=2)
        runner = SingleAgentEnvRunner(config=config, worker_index=index, num_workers=2)
        runner.sample(num_timesteps=0)  # deals the first games
        streams += runner.env.unwrapped.games.states["rng"].tolist()
        runner.stop()
    assert len(set(streams)) == 4 * NUM_ENVS
