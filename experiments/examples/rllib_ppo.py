"""RLlib's PPO with action masks, against an opponent on a Gymnasium vector environment or against itself on a PettingZoo one.

    make example NAME=rllib_ppo
    make example NAME=rllib_ppo ARGS="--env-runners 16 --address HOST:6379"
    make example NAME=rllib_ppo ARGS="--self-play --steps 150000"

The game is Liar's Dice with one die. Before training (seed 1) the policy wins 51.82 % against random play, 4.7 % of a best
response's edge; exploitability is 0.7684. Against random play, after 300,000 steps it wins 86.72 %, 94.1 % of the edge;
exploitability is 0.6534, because nothing there trains for it. In self-play, after 150,000 steps exploitability is 0.2781, and
it wins 81.34 % against random play. All figures are exact. The runs took 3.1 and 5.1 minutes of processor time, most of it in
RLlib's Python code, which handles one step of one game at a time.

Steps a second, learning included, on two busy cores (12 iterations each, alternating): 1,524 without environment runners, 977
with one and 1,026 with two. Runners send their games to the learner as Python objects, so they pay only with cores of their
own. Each machine of a cluster needs this package and the same versions; `ray start` makes it a node.
"""

from __future__ import annotations

import logging
import time
from typing import Any

import gymnasium
import numpy as np
import ray
import torch
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.algorithms.ppo.torch.default_ppo_torch_rl_module import DefaultPPOTorchRLModule
from ray.rllib.connectors.env_to_module.observation_preprocessor import SingleAgentObservationPreprocessor
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from ray.rllib.core.rl_module.multi_rl_module import MultiRLModuleSpec
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.env.wrappers.pettingzoo_env import PettingZooEnv
from ray.tune.registry import register_env

import dice_envs
from dice_envs.core.dice import derived_seeds
from dice_envs.exact import GameExact
from dice_envs.experiments.examples import CommandLine, policy_of

RULES = {"rules": "openspiel", "num_dice": 1}
OPPONENT = "random"
SHARED = "shared"  # RLlib's name of the network of all seats
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


def configured(seed: int, steps: int, env_runners: int = 0, self_play: bool = False) -> PPOConfig:
    """PPO on our vector environment, or on our AEC environment with one network for all seats."""
    config = (
        PPOConfig()
        .training(
            gamma=1.0,  # a game ends after a few moves, and only its end is rewarded
            lambda_=0.95,
            lr=[[0, 1e-3], [steps, 1e-5]],  # falls linearly
            train_batch_size_per_learner=4096,
            minibatch_size=1024,
            num_epochs=4,
            # Against a fixed opponent one action is best. In self-play a mixed policy is harder to exploit.
            entropy_coeff=0.25 if self_play else 0.01,
            use_kl_loss=False,  # clipping is enough
        )
        .env_runners(
            num_env_runners=env_runners,
            num_envs_per_env_runner=NUM_ENVS,
            sample_timeout_s=600,  # the first sample compiles the game
        )
        .debugging(seed=derived_seeds(seed, "RLlib")[0] >> 33, log_level="ERROR")  # RLlib takes 31 bits
    )
    network = RLModuleSpec(module_class=MaskedPPO, model_config=NETWORK)
    return with_itself(config, network) if self_play else with_opponent(config, network)


def with_opponent(config: PPOConfig, network: RLModuleSpec) -> PPOConfig:
    """The learner has one seat of many games."""
    return (
        # Gymnasium imports the part before the colon first, in every runner's process.
        config.environment("dice_envs:dice_envs/LiarsDice-v0", env_config={**RULES, "opponents": OPPONENT})
        .env_runners(
            # Our vector environment instead of many single ones. Its default autoreset mode is the one that RLlib expects:
            # the step after an end deals the next game (AutoresetMode.NEXT_STEP).
            gym_env_vectorize_mode="vector_entry_point",
            env_to_module_connector=lambda env, *_: MaskFromInfo(),
        )
        .callbacks(on_environment_created=keep_seeds_apart)
        .rl_module(rl_module_spec=network)
    )


def with_itself(config: PPOConfig, network: RLModuleSpec) -> PPOConfig:
    """The learner has every seat.

    RLlib makes an episode of each agent's own turns. Its wrapper passes on all that the agent has earned since its last turn,
    so a player that loses by the other's move learns from it. Observations are PettingZoo's dictionaries, which already hold
    the mask: `MaskedPPO` needs no connector here.
    """
    # RLlib's check of environments ignores masks and plays illegal actions, which raw_env refuses.
    register_env("liars_dice", lambda options: PettingZooEnv(dice_envs.liars_dice_v0.raw_env(**options)))
    return (
        config.environment("liars_dice", env_config=RULES, disable_env_checking=True)
        .multi_agent(policies={SHARED}, policy_mapping_fn=lambda agent, episode, **_: SHARED)
        .rl_module(rl_module_spec=MultiRLModuleSpec(rl_module_specs={SHARED: network}))
    )


def report(when: str, module: Any) -> None:
    """Print how good the policy is: exact figures, no games are played."""

    def logits(observations: torch.Tensor, masks: torch.Tensor) -> torch.Tensor:
        seen = {"observation": observations, "action_mask": masks}
        return module.forward_inference({Columns.OBS: seen})[Columns.ACTION_DIST_INPUTS]

    variant, policy = dice_envs.configure("liars_dice", **RULES), policy_of(logits)
    wins, _ = GameExact(variant.game).winning_shares(variant, [policy, OPPONENT])
    most = dice_envs.measure(variant, OPPONENT).measures[1].value
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
    line = CommandLine(__name__, steps=300_000)
    line.number("--env-runners", 0, 0, 10_000, "processes that play; 0: the one that learns plays too")
    line.add_argument("--address", help="of a Ray cluster, or auto; a local one is started if left out")
    line.add_argument("--self-play", action="store_true", help="learn at every seat, instead of against random play")
    options = line.read()
    local = {"num_cpus": max(options.env_runners, 1), "include_dashboard": False}
    where = {"address": options.address} if options.address else {"address": "local", **local}
    ray.init(**where, logging_level=logging.ERROR, log_to_driver=False)
    algorithm: Any = configured(options.seed, options.steps, options.env_runners, options.self_play).build_algo()
    own = SHARED if options.self_play else DEFAULT_MODULE_ID
    if options.env_runners:
        nodes = algorithm.env_runner_group.foreach_env_runner(
            lambda _: ray.get_runtime_context().get_node_id(), local_env_runner=False
        )
        print(f"{len(nodes)} environment runners on {len(set(nodes))} nodes", flush=True)
    report("before", algorithm.get_module(own))
    train(algorithm, options.steps)
    report("after", algorithm.get_module(own))
    algorithm.stop()
    ray.shutdown()


if __name__ == "__main__":
    main()
