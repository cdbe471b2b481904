"""MaskablePPO of SB3-contrib, unchanged, as the learner of a run: `dice_envs.train(..., learner="sb3")`.

It trains on `dice_envs.envs.sb3` against fixed opponents and past selves. Of a preset it takes what MaskablePPO has: steps,
num_envs, num_steps, minibatch, epochs, the learning rate, clip, entropy, gae_lambda, value_weight, normalize and hidden.
Learning rate and entropy follow the preset's schedules. Returns are not discounted: a game ends after a few moves.

SB3 draws from the global random streams of PyTorch and NumPy, which are a run's own while it works. So runs in several threads
take turns; other threads should not draw from these streams meanwhile.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from dice_envs.core.dice import derived_seeds
from dice_envs.core.game import Variant
from dice_envs.core.machine import needs, torch_threads
from dice_envs.learn.presets import Preset

with needs("sb3", "dice_envs.learn.sb3"):
    import torch
    from sb3_contrib import MaskablePPO
    from stable_baselines3.common.logger import Logger

    from dice_envs.envs.sb3 import make_vec_env
    from dice_envs.learn.networks import ActorCritic


_GLOBAL_STREAMS = threading.RLock()


class StockPPO(ActorCritic):
    """A MaskablePPO, `model`, with its games. The arguments are those of `dice_envs.learn.ppo.PPO`."""

    def __init__(self, variant: Variant, preset: Preset, opponents: Any, seed: int, device: str = "cpu") -> None:
        p = preset
        self.seed, self.device = seed, torch.device(device)
        self._rate = p.learning_rate
        self.env = make_vec_env(variant, p.num_envs, opponents, seed=seed, expected_rewards=p.expected_rewards)
        with torch_threads(p.threads), self._streams("weights"):
            self.model = MaskablePPO(
                "MlpPolicy", self.env, n_steps=p.num_steps, batch_size=p.minibatch, n_epochs=p.epochs,
                learning_rate=lambda remaining: self._rate, clip_range=p.clip, normalize_advantage=p.normalize,
                vf_coef=p.value_weight, gamma=1.0, gae_lambda=p.gae_lambda, policy_kwargs={"net_arch": list(p.hidden)},
                device=device,
            )  # fmt: skip
        self.model.set_logger(Logger(None, []))
        policy = self.model.policy
        actors = {"last": [*policy.mlp_extractor.policy_net, policy.action_net]}
        super().__init__(variant, preset, actors, policy, policy.optimizer, self.env.games)
        self._begin(self.env.reset())

    def _begin(self, observations: Any) -> None:
        """Let `learn` go on from these observations instead of dealing the games anew."""
        self.model._last_obs = observations
        self.model._last_episode_starts = np.zeros(self.env.num_envs, bool)  # the first step's are not read

    @contextlib.contextmanager
    def _streams(self, purpose: str) -> Iterator[None]:
        """Give SB3, which draws from the global streams of PyTorch and NumPy, others of its own; then put the caller's back."""
        seeds, on_gpu = derived_seeds(self.seed, purpose, 2), self.device.type == "cuda"
        with _GLOBAL_STREAMS, torch.random.fork_rng(devices=[self.device] if on_gpu else []):
            kept = np.random.get_state()  # noqa: NPY002
            torch.default_generator.manual_seed(seeds[0])
            if on_gpu:
                torch.cuda.manual_seed(seeds[0])
            np.random.seed(seeds[1] % 2**32)  # noqa: NPY002
            try:
                yield
            finally:
                np.random.set_state(kept)  # noqa: NPY002

    def iterate(self, finished: Callable[[np.ndarray, np.ndarray], Any]) -> dict[str, float]:
        """Play a rollout and learn from it; see `dice_envs.learn.ppo.PPO.iterate`."""
        p, count = self.preset, self.preset.num_envs * self.preset.num_steps
        left = max(0.0, 1 - (self.steps + count) / p.steps)
        now = p.scheduled(left)
        self._rate, self.model.ent_coef, self.model.num_timesteps = now["learning_rate"], now["entropy"], self.steps

        def tell(found: Mapping[str, Any], others: Any) -> bool:
            ended = [info for info in found["infos"] if "episode" in info]
            if ended:
                finished(np.array([each["episode"]["r"] for each in ended]), np.array([each["players"] for each in ended]))
            return True

        # Every iteration has streams of its own, so that a checkpoint need not hold their states.
        with self._streams(f"iteration {self.steps}"):
            self.model.learn(count, callback=tell, reset_num_timesteps=False)
        self.steps = self.model.num_timesteps
        values = self.model.logger.name_to_value
        found = {name.removeprefix("train/"): float(value) for name, value in values.items()}
        values.clear()
        return found

    def restore(self, state: Mapping[str, Any]) -> None:
        super().restore(state)
        self._begin(self.games.view().observations)
