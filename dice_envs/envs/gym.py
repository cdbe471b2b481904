"""Gymnasium environments of one seat: a single game, or many at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from dice_envs.core.batch import MOST_ACTION, IllegalAction, IllegalActionError, as_action, as_array
from dice_envs.core.game import Game, Variant
from dice_envs.core.options import check_choice, check_range, check_reset_options, check_seed, is_list, is_whole, shown
from dice_envs.envs.learner import Opponents, SeatGames, Shown, Step, seat_spaces, seat_variant
from dice_envs.pictures.render import RENDER_FPS, RENDER_MODES, check_mode, svg


def _or_fresh(env: Any, seed: Any) -> Any:
    """Return the seed; at the first reset the environment's own fresh one if none is given."""
    return env.np_random_seed if seed is None and env.games.masks is None and env.np_random_seed >= 0 else seed


def _present(infos: dict[str, Any], where: np.ndarray) -> dict[str, Any]:
    """Add to each entry, as Gymnasium does, in which games it is present."""
    return infos | {f"_{name}": where.copy() for name in infos}


class SeatEnv(gymnasium.Env[np.ndarray, Any]):
    """One seat of a game as a single-agent environment.

    Observations are float32 in [0, 1]; `info["action_mask"]` (int8) and `action_masks()` (bool) show the legal actions. When a
    game has ended they mark all actions, none of which will be played, so that a masked softmax has no NaN. `info["seat"]` is
    the learner's seat, `info["illegal_action"]` () bool whether its last action was illegal.

    Args:
        game: name, Game or Variant.
        opponents: see `SeatGames`.
        seat: the learner's seat, or "random" to draw it for each game.
        render_mode: "human", "ansi", "rgb_array" or None.
        illegal_action: "lose": an illegal action of the learner's ends the game with the least possible return, and
            `games.illegal` says why, for learners without masks; the first one in a process gives a warning. "raise": it
            raises IllegalActionError and changes nothing. An action that is not a whole number always raises
            IllegalActionError; an opponent's illegal action raises AgentError.
        options: the game's options.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": RENDER_MODES, "render_fps": RENDER_FPS}  # type: ignore[misc]

    def __init__(
        self,
        game: str | Game | Variant,
        opponents: Opponents = "random",
        seat: int | str = "random",
        render_mode: str | None = None,
        illegal_action: IllegalAction = "lose",
        **options: Any,
    ) -> None:
        check_mode(render_mode)
        self.variant = seat_variant(game, options)
        self.games = SeatGames(self.variant, 1, opponents, seat, illegal_action=illegal_action)
        self.render_mode = render_mode
        self.observation_space, self.action_space = seat_spaces(self.variant)
        self._playing = False
        self._action, self._plays = np.zeros(1, np.int64), np.zeros(1, bool)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        """Deal a game and play up to the learner's turn. A seed fixes this game and those after it; without one the
        random stream continues. `options` are the game's own reset options. `np_random_seed` is the last seed, at first a
        fresh one; games draw from streams of their own, not from `np_random`.

        Raises:
            ValueError: a wrong seed or wrong options; nothing has changed.
            AgentError: an opponent's action is malformed or not legal; nothing has changed.
        """
        seed = check_seed(_or_fresh(self, seed))
        shown = self.games.start(np.zeros(1, np.int64), options, [seed])
        super().reset(seed=seed)
        self._playing = True
        return self._show(shown, illegal=False)

    def _show(self, shown: Shown, illegal: bool) -> tuple[np.ndarray, dict[str, Any]]:
        if self.render_mode == "human":
            self.render()
        # Arrays and NumPy numbers under the same keys at all times, as TorchRL and Gymnasium's vector environments need them.
        info = {"action_mask": shown.masks[0].copy(), "seat": self.games.learners[0], "illegal_action": np.array(illegal)}
        return shown.observations[0], info

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        if not self._playing:
            raise gymnasium.error.ResetNeeded("call reset before step: no game has begun, or the last one has ended")
        self._action[0] = as_action(action)
        try:
            done = self.games.advance(self._action, self._plays, restart=False)
        except IllegalActionError as problem:
            raise IllegalActionError(problem.reason) from None
        ended = done.ended.item()
        self._playing = not ended
        observation, info = self._show(done.shown, illegal=bool(self.games.illegal))
        return observation, done.rewards.item(), ended, False, info

    def action_masks(self) -> np.ndarray:
        """Return the legal actions, (actions,) bool, as MaskablePPO expects them."""
        return self.games.action_masks()[0]

    def render(self) -> Any:
        """Draw the table as the learner sees it."""
        return self.games.draw(0, self.render_mode)

    def _repr_svg_(self) -> str | None:
        """Draw the table for a notebook, as the learner sees it; nothing before the first game."""
        if self.games.masks is None:
            return None
        return svg(self.variant.picture(self.games.states[0], int(self.games.learners[0])))


class SeatVectorEnv(VectorEnv[np.ndarray, np.ndarray, np.ndarray]):
    """Many games of one seat each, stepped together. Game i seeded with s + i runs like `SeatEnv` seeded with s + i.

    `infos["action_mask"]` is (num_envs, actions) int8. Where a game has just ended and the next action will be ignored, all
    actions are marked, so that a masked softmax has no NaN. If an illegal action raises IllegalActionError, or an opponent's
    raises AgentError, no game has changed. `infos` has the form that Gymnasium's SyncVectorEnv gives it.

    Args:
        num_envs: number of games.
        autoreset_mode: "NextStep" (the step after an end deals again and ignores the action), "SameStep" (an ended
            game is dealt again at once; its last observation is in `infos["final_obs"]`) or "Disabled" (reset with
            `options={"reset_mask": ...}`).
        illegal_action: as for `SeatEnv`, but "raise" by default.
        max_episode_steps: truncate a game after this many steps of the learner, as Gymnasium's TimeLimit does; None: never.
        others: as for `SeatEnv`.
    """

    metadata: dict[str, Any] = {"render_modes": RENDER_MODES, "render_fps": RENDER_FPS}  # noqa: RUF012 - as VectorEnv has it

    def __init__(
        self,
        game: str | Game | Variant,
        num_envs: int = 1,
        opponents: Opponents = "random",
        seat: int | str = "random",
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        render_mode: str | None = None,
        illegal_action: IllegalAction = "raise",
        max_episode_steps: int | None = None,
        **options: Any,
    ) -> None:
        check_mode(render_mode)
        if max_episode_steps is not None:
            check_range("max_episode_steps", max_episode_steps, 1, MOST_ACTION)
        modes = [mode.value for mode in AutoresetMode]
        check_choice("autoreset_mode", getattr(autoreset_mode, "value", autoreset_mode), modes)
        self.variant = seat_variant(game, options)
        self.games = SeatGames(self.variant, num_envs, opponents, seat, illegal_action=illegal_action)
        self.num_envs = num_envs
        self.render_mode = render_mode
        self.max_episode_steps = max_episode_steps
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {**self.metadata, "autoreset_mode": self.autoreset_mode}
        self.single_observation_space, self.single_action_space = seat_spaces(self.variant)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._all = np.arange(num_envs)
        self._every, self._none = np.ones(num_envs, bool), np.zeros(num_envs, bool)
        self._ended = self._none.copy()

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Deal all games, or those of `options["reset_mask"]` (num_envs,) bool. An int seed s seeds game i with s + i.

        Training runs whose seeds are neighbours would share games then; a list of `num_envs` seeds keeps them apart.
        `np_random_seed` is the int that seeded all games last, at first a fresh one, and -1 after a list or a mask. Games draw
        from streams of their own, not from `np_random`.

        Raises:
            ValueError: wrong seeds or options; nothing has changed.
            AgentError: an opponent's action is malformed or not legal; nothing has changed.
        """
        check_reset_options(options)
        arrange, index = dict(options or {}), self._all
        if "reset_mask" in arrange:
            mask = as_array("reset_mask", arrange.pop("reset_mask"))
            if mask.shape != (self.num_envs,) or mask.dtype != bool or not mask.any():
                raise ValueError(f"reset_mask must be ({self.num_envs},) bool with some True, not {mask.dtype} {mask.shape}")
            index = self._all[mask]
            if self.games.masks is None and not mask.all():
                raise gymnasium.error.ResetNeeded("the first reset deals all games; leave reset_mask out")
        seed = _or_fresh(self, seed)
        of_all = self._seeds(seed)
        seeds = [of_all[i] for i in index]
        shown = self.games.start(index, arrange, seeds)
        if len(index) == self.num_envs and is_whole(seed):
            super().reset(seed=seeds[0])
        elif any(each is not None for each in seeds):
            self.np_random = self.np_random  # its seed is then -1
        self._ended[index] = False
        return self._show({}, shown, self._none.copy())

    def _seeds(self, seed: Any) -> list[int | None]:
        """Return one seed for each game."""
        if seed is None or is_whole(seed):
            first = check_seed(seed)
            return [None if first is None else first + i for i in range(self.num_envs)]
        if not is_list(seed) or len(seed) != self.num_envs:
            raise ValueError(f"seed must be a whole number from 0, {self.num_envs} of them, or None, not {shown(seed)}")
        return list(seed)

    def _show(self, infos: dict[str, Any], shown: Shown, illegal: np.ndarray) -> tuple[np.ndarray, dict[str, Any]]:
        found = {"action_mask": shown.masks.copy(), "seat": self.games.learners.copy(), "illegal_action": illegal}
        infos |= _present(found, self._every)
        return shown.observations, infos

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        if self.autoreset_mode is AutoresetMode.DISABLED and self._ended.any():
            raise gymnasium.error.ResetNeeded(f"{self._ended.sum()} games have ended; reset them with options['reset_mask']")
        same_step = self.autoreset_mode is AutoresetMode.SAME_STEP
        most = self.max_episode_steps or MOST_ACTION
        done = self.games.advance(actions, self._ended, same_step, most=most)  # with next-step reset ended games begin now
        truncated = done.lengths >= most if self.max_episode_steps else self._none.copy()  # of ended games, too: see TimeLimit
        ended, illegal = done.ended.copy(), self._none.copy()
        over = ended | truncated
        if self.games.illegal:
            illegal[list(self.games.illegal)] = True
        infos: dict[str, Any] = {}
        if same_step and over.any():
            infos, illegal = self._finals(over, done, illegal), self._none.copy()
        elif not same_step:
            self._ended = over
        observations, infos = self._show(infos, done.shown, illegal)
        return observations, done.rewards.copy(), ended, truncated, infos

    def _finals(self, over: np.ndarray, done: Step, illegal: np.ndarray) -> dict[str, Any]:
        """Return the entries of `infos` about games that have begun again."""
        observations, masks = np.full(self.num_envs, None, object), done.finals.masks * over[:, None].view(np.int8)
        ended = np.flatnonzero(over)
        for i, observation in zip(ended.tolist(), done.finals.observations[ended], strict=True):
            observations[i] = observation
        info = _present({"action_mask": masks, "seat": np.where(over, done.learners, 0), "illegal_action": illegal}, over)
        return {"final_obs": observations, "_final_obs": over, "final_info": info, "_final_info": over.copy()}

    def action_masks(self) -> np.ndarray:
        """Return the legal actions, (num_envs, actions) bool."""
        return self.games.action_masks()

    def render(self) -> tuple[Any, ...] | None:
        """Draw each game as its learner sees it; None without a render_mode."""
        if self.render_mode is None:
            return None
        return tuple(self.games.draw(i, self.render_mode) for i in range(self.num_envs))
