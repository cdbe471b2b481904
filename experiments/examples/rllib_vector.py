"""RLlib's PPO with action masks on a Gymnasium vector environment, with environment runners on any number of machines.

    make example NAME=rllib_vector
    make example NAME=rllib_vector ARGS="--env-runners 16 --address HOST:6379"

The game is Liar's Dice with one die, against random play. Before training (seed 1) the policy wins 51.82 %, 4.7 % of a best
response's edge; exploitability is 0.7684. After 300,000 steps it wins 86.72 %, 94.1 % of the edge; exploitability is 0.6534,
because nothing here trains for it. All figures are exact. The run took 3.1 minutes of processor time (7.4 minutes on a busy
core), most of it in RLlib's Python code, which handles one step of one game at a time.

Steps a second, learning included, on two busy cores (12 iterations each, alternating): 1,524 without environment runners, 977
with one and 1,026 with two. Runners send their games to the learner as Python objects, so they pay only with cores of their
own. Each machine of a cluster needs this package and the same versions; `ray start` makes it a node.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import ray
import torch
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.algorithms.ppo.torch.default_ppo_torch_rl_module import DefaultPPOTorchRLModule
from ray.rllib.connectors.env_to_module.observation_preprocessor import SingleAgentObservationPreprocessor
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from ray.rllib.core.rl_module.rl_module import RLModuleSpec

import dice_envs
from dice_envs.core.dice import derived_seeds
from dice_envs.exact.liars_dice.measures import winning_probability
from dice_envs.experiments.examples import CommandLine

RULES = {"rules": "openspiel", "num_dice": 1}
OPPONENT = "random"
NUM_ENVS = 64  # for each runner; more gain little, because RLlib handles every game's step in Python
NETWORK = DefaultModelConfig(fcnet_hiddens=[64, 64], fcnet_activation="tanh", vf_share_layers=False)


class MaskedPPO(DefaultPPOTorchRLModule):
    """RLlib's network for PPO on observations {"observation", "action_mask"}: illegal actions get no probability.

    The mask is part of the observation because RLlib stores observations for the learner: the loss needs the policy that acted,
    with its mask.
    """

    def __init__(self, *, observation_space: gymnasium.spaces.Dict, **kwargs: Any) -> None:
        super().__init__(observation_space=observation_space["observation"], **kwargs)  # the layers' input
        self.observation_space = observation_space  # a batch's observations

    def _forward(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        return masked(super()._forward(without_mask(batch), **kwargs), batch)

    def _forward_train(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        return masked(super()._forward_train(without_mask(batch), **kwargs), batch)

    def compute_values(self, batch: dict[str, Any], embeddings: Any = None) -> Any:
        return super().compute_values(without_mask(batch), embeddings)


def without_mask(batch: dict[str, Any]) -> dict[str, Any]:
    """A copy of the batch for the layers. The batch itself stays unchanged: the learner uses it several times."""
    return {**batch, Columns.OBS: batch[Columns.OBS]["observation"]}


def masked(outputs: dict[str, Any], batch: dict[str, Any]) -> dict[str, Any]:
    """The outputs with the least finite logit for illegal actions.

    Not minus infinity: RLlib also evaluates the last observation of a game, where no action is legal. Its loss is masked out,
    but NaN times 0 would still be NaN.
    """
    illegal = batch[Columns.OBS]["action_mask"] == 0
    logits = outputs[Columns.ACTION_DIST_INPUTS]
    return {**outputs, Columns.ACTION_DIST_INPUTS: logits.masked_fill(illegal, torch.finfo(logits.dtype).min)}


class MaskFromInfo(SingleAgentObservationPreprocessor):
    """Env-to-module connector that puts the mask from `info` into the observation."""

    def recompute_output_observation_space(self, observations: Any, actions: Any) -> gymnasium.spaces.Dict:
        mask = gymnasium.spaces.Box(0, 1, (int(actions.n),), np.int8)
        return gymnasium.spaces.Dict({"observation": observations, "action_mask": mask})

    def preprocess(self, observation: np.ndarray, episode: Any) -> dict[str, np.ndarray]:
        return {"observation": observation, "action_mask": episode.get_infos(-1)["action_mask"]}


def keep_seeds_apart(*, env_runner: Any, env: gymnasium.vector.VectorEnv, **_: Any) -> None:
    """Give every game of every runner a seed of its own.

    RLlib seeds runner k with seed + k, and a vector environment seeds its game i with that + i. So game 1 of the first runner
    would get the same dice as game 0 of the second one, and so on: nearly all games would be duplicates.
    """
    env_runner._seed = (env_runner.config.seed + env_runner.worker_index) * env.num_envs


def ppo(seed: int, steps: int, entropy: float) -> PPOConfig:
    """The settings that both RLlib examples share."""
    return (
        PPOConfig()
        .training(
            gamma=1.0,  # a game ends after a few moves, and only its end is rewarded
            lambda_=0.95,
            lr=[[0, 1e-3], [steps, 1e-5]],  # falls linearly
            train_batch_size_per_learner=4096,
            minibatch_size=1024,
            num_epochs=4,
            entropy_coeff=entropy,
            use_kl_loss=False,  # clipping is enough
        )
        .env_runners(num_envs_per_env_runner=NUM_ENVS, sample_timeout_s=600)  # the first sample compiles the game
        .debugging(seed=derived_seeds(seed, "RLlib")[0] >> 33, log_level="ERROR")  # RLlib takes 31 bits
    )


def configured(seed: int, steps: int, env_runners: int = 0) -> PPOConfig:
    """PPO on our vector environment."""
    return (
        ppo(seed, steps, entropy=0.01)
        # Gymnasium imports the part before the colon first, in every runner's process.
        .environment("dice_envs:dice_envs/LiarsDice-v0", env_config={**RULES, "opponents": OPPONENT})
        .env_runners(
            num_env_runners=env_runners,
            # Our vector environment instead of many single ones. Its default autoreset mode is the one that RLlib expects:
            # the step after an end deals the next game (AutoresetMode.NEXT_STEP).
            gym_env_vectorize_mode="vector_entry_point",
            env_to_module_connector=lambda env, *_: MaskFromInfo(),
        )
        .callbacks(on_environment_created=keep_seeds_apart)
        .rl_module(rl_module_spec=RLModuleSpec(module_class=MaskedPPO, model_config=NETWORK))
    )


def policy_of(module: Any) -> Callable[[np.ndarray, np.ndarray], torch.Tensor]:
    """The network as `dice_envs.measure` takes a policy: a function of observations and masks."""

    def policy(observations: np.ndarray, masks: np.ndarray) -> torch.Tensor:
        seen = {"observation": torch.from_numpy(observations), "action_mask": torch.from_numpy(masks)}
        with torch.no_grad():
            return torch.softmax(module.forward_inference({Columns.OBS: seen})[Columns.ACTION_DIST_INPUTS], dim=1)

    return policy


def report(when: str, module: Any) -> None:
    """Print how good the policy is: exact figures, no games are played."""
    variant, policy = dice_envs.configure("liars_dice", **RULES), policy_of(module)
    wins, most = winning_probability(variant, policy, OPPONENT), dice_envs.measure(variant, OPPONENT).measures[1].value
    measured = dice_envs.measure(variant, policy)
    print(
        f"{when}: wins {wins:.2%} against {OPPONENT}, {(wins - 0.5) / (most - 0.5):.1%} of a best response's edge; "
        f"{measured.measures[0].name} {measured.measures[0].value:.4f}",
        flush=True,
    )


def train(algorithm: Any, steps: int) -> None:
    """Train for `steps` environment steps or a few more, and print the speed."""

    def iterate() -> int:
        return int(algorithm.train()["env_runners"]["num_env_steps_sampled_lifetime"])

    first = taken = iterate()  # loads and compiles, so its speed does not count
    began = time.perf_counter()
    while taken < steps:
        taken = iterate()
    seconds = time.perf_counter() - began
    speed = f", {(taken - first) / seconds:,.0f} a second after the first {first:,}" if taken > first else ""
    print(f"{taken:,} environment steps{speed}", flush=True)


def main() -> None:
    """Read the options, train, measure."""
    line = CommandLine(__doc__, steps=300_000)
    line.number("--env-runners", 0, 0, 10_000, "processes that play; 0: the one that learns plays too")
    line.add_argument("--address", help="of a Ray cluster, or auto; a local one is started if left out")
    options = line.read()
    torch.set_num_threads(1)  # the networks are small, and environment runners have the other cores
    if options.address:
        ray.init(address=options.address, logging_level=logging.ERROR, log_to_driver=False)
    else:
        cpus = max(options.env_runners, 1)
        ray.init(address="local", num_cpus=cpus, include_dashboard=False, logging_level=logging.ERROR, log_to_driver=False)
    algorithm: Any = configured(options.seed, options.steps, options.env_runners).build_algo()
    if options.env_runners:
        nodes = algorithm.env_runner_group.foreach_env_runner(
            lambda _: ray.get_runtime_context().get_node_id(), local_env_runner=False
        )
        print(f"{len(nodes)} environment runners on {len(set(nodes))} nodes", flush=True)
    report("before", algorithm.get_module())
    train(algorithm, options.steps)
    report("after", algorithm.get_module())
    algorithm.stop()
    ray.shutdown()


if __name__ == "__main__":
    main()
