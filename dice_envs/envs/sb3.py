"""Any game as a Stable-Baselines3 VecEnv, with action masks for MaskablePPO of SB3-contrib, or for learners without masks."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from dice_envs.core.batch import IllegalAction
from dice_envs.core.dice import derived_seeds
from dice_envs.core.game import Game, Variant
from dice_envs.core.machine import needs
from dice_envs.core.options import check_seed
from dice_envs.envs.learner import Opponents, SeatGames, seat_spaces, seat_variant
from dice_envs.pictures.render import check_mode

with needs("sb3", "dice_envs.envs.sb3"):
    from stable_baselines3.common.vec_env import VecEnv


class SB3VecEnv(VecEnv):
    """Many games with one learner's seat each. An ended game is dealt again at once: its last observation is in
    `info["terminal_observation"]`, its return and length in `info["episode"]`, as from SB3's Monitor.

    SB3's algorithms assume that a game's steps are those of one seat, so there is no self-play; `dice_envs.train` has it.

    Arguments as for `dice_envs.SeatVectorEnv`; `expected_rewards` as for `dice_envs.envs.learner.SeatGames`. Learners without
    masks (PPO, A2C, DQN) need `illegal_action="lose"`; `info["illegal_action"]` then says why a game ended.
    """

    def __init__(
        self,
        game: str | Game | Variant,
        num_envs: int = 1,
        opponents: Opponents = "random",
        seat: int | str = "random",
        render_mode: str | None = None,
        illegal_action: IllegalAction = "raise",
        expected_rewards: bool = False,
        **options: Any,
    ) -> None:
        check_mode(render_mode)
        self.variant = seat_variant(game, options)
        self.games = SeatGames(self.variant, num_envs, opponents, seat, 0.0, illegal_action, expected_rewards)
        self.render_mode = render_mode
        super().__init__(num_envs, *seat_spaces(self.variant))
        self._all = np.arange(num_envs)
        self._start_time = time.time()

    def seed(self, seed: int | None = None) -> Sequence[int]:
        """Give each game a seed of its own for the next reset, and return these; None: fresh ones.

        Runs with different seeds share no games. `dice_envs.SeatEnv` reset with a game's seed plays that game.

        Raises:
            ValueError: a wrong seed; nothing has changed.
        """
        seeds = derived_seeds(check_seed(seed), "games", self.num_envs)
        self._seeds = list(seeds)
        return seeds

    def reset(self) -> np.ndarray:
        """Deal all games, with the seeds and options given to `seed` and `set_options` since the last reset.

        Raises:
            ValueError: wrong seeds or options, or options that differ between games; nothing has changed.
            AgentError: an opponent's action is malformed or not legal; nothing has changed.
        """
        if len(self._options) != self.num_envs or any(repr(options) != repr(self._options[0]) for options in self._options):
            raise ValueError(f"reset options must be the same for all {self.num_envs} games of a SB3VecEnv")
        shown = self.games.start(self._all, self._options[0], self._seeds)
        self._reset_seeds()
        self._reset_options()
        return shown.observations

    def step_async(self, actions: np.ndarray) -> None:
        self._actions = actions

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        done = self.games.advance(self._actions, np.zeros(self.num_envs, bool), restart=True)
        infos: list[dict[str, Any]] = [{} for _ in self._all]
        elapsed = time.time() - self._start_time
        for i, observation in zip(np.flatnonzero(done.ended).tolist(), done.finals.observations[done.ended], strict=True):
            infos[i] = {
                "terminal_observation": observation,
                "TimeLimit.truncated": False,
                "episode": {"r": float(done.returns[i, done.learners[i]]), "l": int(done.lengths[i]), "t": elapsed},
                "players": done.players[i].copy(),
            }
            if i in self.games.illegal:
                infos[i]["illegal_action"] = self.games.illegal[i]
        return done.shown.observations, done.rewards.astype(np.float32), done.ended.copy(), infos

    def action_masks(self) -> np.ndarray:
        """Return the legal actions, (num_envs, actions) bool."""
        return self.games.action_masks()

    def close(self) -> None:
        """Nothing to release."""

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [getattr(self, attr_name) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Set an attribute of this environment: its games have no attributes of their own."""
        if len(list(self._get_indices(indices))) != self.num_envs:
            raise ValueError(f"{attr_name} can be set for all games only, not for {indices}")
        setattr(self, attr_name, value)

    def env_method(self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any) -> list[Any]:
        """Call `action_masks` or `render` for single games, as SB3 does."""
        if method_name == "action_masks":
            return list(self.action_masks()[list(self._get_indices(indices))])
        if method_name == "render":
            return [self.games.draw(i, self.render_mode) for i in self._get_indices(indices)]
        raise AttributeError(f"SB3VecEnv has no method {method_name!r} for single games; it has action_masks and render")

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        return [False for _ in self._get_indices(indices)]

    def get_images(self) -> Sequence[np.ndarray | None]:
        is_drawn = self.render_mode == "rgb_array"
        return [self.games.draw(i, self.render_mode) if is_drawn else None for i in range(self.num_envs)]


def make_vec_env(
    game: str | Game | Variant,
    num_envs: int = 1,
    opponents: Opponents = "random",
    seat: int | str = "random",
    seed: int | None = None,
    **arguments: Any,
) -> SB3VecEnv:
    """Make a SB3VecEnv, with its other arguments, whose games have independent random streams, which `seed` fixes."""
    env = SB3VecEnv(game, num_envs, opponents, seat, **arguments)
    env.seed(seed)
    return env
