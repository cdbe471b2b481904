"""Any game as a PettingZoo environment: `raw_env`, `env`, and `parallel_env` for simultaneous games."""

from __future__ import annotations

import copy
import dataclasses
import inspect
from collections.abc import Callable, Collection, Mapping
from types import ModuleType
from typing import Any, ClassVar, Literal, TypeAlias, get_type_hints

import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from gymnasium.utils import seeding
from pettingzoo import AECEnv, ParallelEnv
from pettingzoo.utils import wrappers

from dice_envs.core.batch import (
    ILLEGAL_ACTIONS,
    MOST_ACTION,
    IllegalAction,
    IllegalActionError,
    as_action,
    explain_illegal,
    forfeit,
    warn_forfeit,
)
from dice_envs.core.game import OVER, Game, Variant, configure, load
from dice_envs.core.options import check_choice, check_range, check_reset_options, check_seed, shown
from dice_envs.pictures.render import RENDER_FPS, RENDER_MODES, check_mode, render, svg

Observation: TypeAlias = Literal["dict", "box"]


class _Table:
    """One game in progress: the common base of the two PettingZoo environments.

    Copies and pickles continue the game where it stood.
    """

    _needs_simultaneous: ClassVar[bool] = False

    def __init__(
        self,
        game: str | Game | Variant,
        render_mode: str | None = None,
        max_cycles: int | None = None,
        illegal_action: IllegalAction = "raise",
        observation: Observation = "dict",
        **options: Any,
    ) -> None:
        check_mode(render_mode)
        check_choice("illegal_action", illegal_action, ILLEGAL_ACTIONS)
        check_choice("observation", observation, ("dict", "box"))
        if max_cycles is not None:
            check_range("max_cycles", max_cycles, 1, MOST_ACTION)
        self.variant = configure(game, **options)
        facts = self.variant.facts
        if self._needs_simultaneous and not facts.simultaneous:
            raise ValueError(f"{self.variant.game.name} is not simultaneous: use its env or raw_env")
        self.render_mode = render_mode
        self.max_cycles = max_cycles
        self.illegal_action = illegal_action
        self._boxed = observation == "box"
        self.metadata = {
            "name": f"{self.variant.game.name}_v0",
            "render_modes": RENDER_MODES,
            "render_fps": RENDER_FPS,
            "is_parallelizable": facts.simultaneous,
        }
        self.possible_agents = [f"player_{seat}" for seat in range(facts.num_seats)]
        self.agents: list[str] = []
        self._seat_of = {agent: seat for seat, agent in enumerate(self.possible_agents)}
        seen = spaces.Box(0.0, 1.0, (facts.observation_size,), np.float32)
        both = spaces.Dict({"observation": seen, "action_mask": spaces.Box(0, 1, (facts.num_actions,), np.int8)})
        self.observation_spaces = {agent: copy.deepcopy(seen if self._boxed else both) for agent in self.possible_agents}
        self.action_spaces = {agent: spaces.Discrete(facts.num_actions) for agent in self.possible_agents}
        self.state_space = spaces.Box(0.0, 1.0, (facts.num_seats, facts.observation_size), np.float32)
        self._states = np.zeros(1, self.variant.game.state)
        self._returns = [0.0] * facts.num_seats  # what each seat has earned in this game
        self._num_steps = 0
        self._np_random: np.random.Generator | None = None
        self._shown: tuple[np.ndarray, np.ndarray] | None = None  # what the mover sees, until it is given out
        self._bind()

    def _bind(self) -> None:
        """Set the attributes derived from the state and the variant, which are neither copied nor pickled."""
        self._kernels = self.variant.kernels
        self._index = np.zeros(1, np.int64)
        self._action = np.zeros(1, np.int64)
        self._shapes = (1, self.variant.facts.observation_size), (1, self.variant.facts.num_actions)
        # Copied as bytes: NumPy copies records field by field, which takes many times as long.
        self._scratch = self._states.copy()
        self._bytes, self._scratch_bytes = self._states.view(np.uint8), self._scratch.view(np.uint8)
        # Views into the state: reading them is much cheaper than reading fields of a record.
        self._mover = self._states["seat"]
        self._rewards = self._states["rewards"][0, : self.variant.facts.num_seats]
        self._out = self._states["out"][0, : self.variant.facts.num_seats]

    def __getstate__(self) -> dict[str, Any]:
        bound = {"_kernels", "_index", "_action", "_shapes", "_scratch", "_bytes", "_scratch_bytes", "_mover", "_rewards"}
        return {name: value for name, value in vars(self).items() if name not in bound | {"_out"}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._bind()

    def _observed(self, observation: np.ndarray, mask: np.ndarray) -> Any:
        return observation if self._boxed else {"observation": observation, "action_mask": mask}

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Discrete:
        return self.action_spaces[agent]

    def state(self) -> np.ndarray:
        """Return all seats' observations, (seats, observation_size) float32, for centralised training.

        ResetNeeded before the first game.
        """
        self._check_dealt("state")
        return np.stack([self._view(seat)[0] for seat in range(self.variant.facts.num_seats)])

    def render(self) -> str | np.ndarray | None:
        """Draw the game with all dice visible: as text for `ansi`, an image for `rgb_array`, printed for `human`."""
        return render(self.variant, None if self._np_random is None else self._states[0], None, self.render_mode)

    def _repr_svg_(self) -> str | None:
        """Draw the game for a notebook: as the seat to move sees it; all of it when it is over."""
        mover = int(self._mover[0])
        if not self.agents and mover != OVER:
            return None
        return svg(self.variant.picture(self._states[0], None if mover == OVER else mover))

    def close(self) -> None:
        """Nothing to release; PettingZoo's own tests ask for it."""

    def _check_dealt(self, call: str) -> None:
        if self._np_random is None:
            raise ResetNeeded(f"call reset before {call}: no game has begun")

    def _deal(self, seed: int | None, options: dict[str, Any] | None) -> None:
        seed = check_seed(seed)
        check_reset_options(options)
        rng = self._np_random
        if seed is not None or rng is None:
            rng, _ = seeding.np_random(seed)
        elif options:  # options may be invalid, and an error must leave the stream unchanged
            rng = copy.deepcopy(rng)
        fresh = self._states.copy()
        fresh["rng"] = rng.integers(2**64, dtype=np.uint64)
        self._kernels.deal(fresh, self._index)
        if options:
            self.variant.arrange(fresh[0], options)
        self._np_random = rng
        self._states[:] = fresh
        self._returns = [0.0] * len(self._returns)
        self._num_steps = 0
        self._shown = None

    def _view(self, seat: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the seat's observation and action mask as new arrays; the mask is all 0 unless the seat is to move."""
        observation, mask = np.empty(self._shapes[0], np.float32), np.empty(self._shapes[1], np.int8)
        self._action[0] = seat
        self._kernels.view(self._states, self._index, self._action, False, observation, mask)
        return observation[0], mask[0]

    def _masks(self) -> list[np.ndarray]:
        """Return every seat's mask at the beginning of a simultaneous game's round, where all seats choose in turn.

        Legal actions do not depend on the choices of other seats, so any are played here.
        """
        masks, seat = np.zeros((len(self.possible_agents), self._shapes[1][1]), np.int8), self._mover.item()
        if seat != OVER:
            masks[seat] = (self._shown or self._view(seat))[1]
            self._scratch_bytes[:] = self._bytes
            seen, mask = np.empty(self._shapes[0], np.float32), np.empty(self._shapes[1], np.int8)
            for _ in range(len(masks) - 1):
                self._action[0] = masks[seat].argmax()
                self._kernels.view(self._scratch, self._index, self._action, True, seen, mask)
                seat = self._scratch["seat"].item()
                masks[seat] = mask
        return list(masks)

    def _play(self, states: np.ndarray, agent: str, action: Any) -> tuple[str, tuple[np.ndarray, np.ndarray] | None]:
        """Play the action. Return "", or why it is not legal; and what `_view` returns of the seat that is to move next.

        IllegalActionError if it is malformed; or not legal, and `illegal_action` is "raise".
        """
        number = self._action[0] = as_action(action, f"the action of {agent}")
        observation, mask = np.empty(self._shapes[0], np.float32), np.empty(self._shapes[1], np.int8)
        if self._kernels.view(states, self._index, self._action, True, observation, mask) < 0:
            return "", (observation[0], mask[0])
        reason = f"{agent}: {explain_illegal(self.variant, states[0], number)}"
        if self.illegal_action == "raise":
            raise IllegalActionError(reason)
        return reason, None

    def _forfeit(self, agents: Collection[str]) -> None:
        warn_forfeit()
        forfeit(self.variant, self._states[0], [self._seat_of[agent] for agent in agents], self._returns)


class _Usual(wrappers.OrderEnforcingWrapper[str, Any, int]):
    """PettingZoo's OrderEnforcingWrapper, with the check of its AssertOutOfBoundsWrapper, for integers of PyTorch too.

    One wrapper that asks the environment itself: in two of them, each attribute goes through six functions.
    """

    def last(self, observe: bool = True) -> Any:
        return self.env.last(observe) if self._has_reset else super().last(observe)

    def step(self, action: Any) -> None:
        if self._has_reset and self.env.agents:
            agent = self.env.agent_selection
            number = -1 if action is None else as_action(action)
            is_dead = self.env.terminations[agent] or self.env.truncations[agent]
            assert 0 <= number < self.env.action_space(agent).n or (action is None and is_dead), "action is not in action space"
            action = action if action is None else number
        super().step(action)

    def __str__(self) -> str:
        return str(self.env)


class DiceAECEnv(_Table, AECEnv[str, Any, int]):
    """A game in which seats act one at a time. In a simultaneous game no seat sees another's choice before all have chosen.

    `infos[agent]["action_mask"]`, (actions,) int8, marks the legal actions; it is 0 for agents that are not to move. In a
    simultaneous game an agent that has yet to choose in this round has its legal actions already, as PettingZoo's
    `aec_to_parallel` needs them.

    Args:
        game: name, Game or Variant.
        render_mode: "human", "ansi", "rgb_array" or None.
        max_cycles: truncate after this many actions; None: never.
        illegal_action: "raise": an illegal action raises IllegalActionError and changes nothing; "lose": it ends the game
            for all, the agent gets the least possible return, and `infos[agent]["illegal_action"]` says why. The first one
            in a process gives a warning.
        observation: "dict": `{"observation": (size,) float32, "action_mask": (actions,) int8}`; "box": (size,) float32
            alone, for learners that do not support dictionaries.
        options: the game's options.
    """

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Deal a new game. A seed fixes it; without one the random stream continues. `options` are the game's own reset
        options (see its file), for example `{"dice": [[1, 1, 6], [2, 3, 4]]}` for Liar's Dice.

        Raises:
            ValueError: wrong options; nothing has changed.
        """
        self._deal(seed, options)
        self.agents = self.possible_agents[:]
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self._skip_agent_selection = None
        self._waiting: dict[int, np.ndarray] = {}  # masks of seats that will choose in this round
        self._find_mover()

    def _find_mover(self) -> None:
        seat = self._seat = self._mover.item()
        self._shown = None if seat == OVER else self._shown or self._view(seat)
        self.infos: dict[str, dict[str, Any]] = {}
        for agent in self.agents:
            if self._shown and self._seat_of[agent] == seat:
                self.agent_selection = agent
                self.infos[agent] = {"action_mask": self._shown[1].copy()}
            else:
                self.infos[agent] = {"action_mask": np.zeros(self._shapes[1][1], np.int8)}
        if self.variant.facts.simultaneous:  # the masks of the seats that choose after the mover in this round
            if seat == OVER:
                self._waiting = {}
            elif self._num_steps % len(self.possible_agents) == 0:
                self._waiting = dict(enumerate(self._masks()))
            self._waiting.pop(seat, None)
            for other, mask in self._waiting.items():
                self.infos[self.possible_agents[other]] = {"action_mask": mask.copy()}

    def observe(self, agent: str) -> Any:
        self._check_dealt("observe")
        seat = self._seat_of[agent]
        if seat != self._seat:
            observation, mask = self._view(seat)
            if seat in self._waiting:
                mask[:] = self._waiting[seat]
        else:
            (observation, mask), self._shown = self._shown or self._view(seat), None
            if self.truncations.get(agent):
                mask[:] = 0
        return self._observed(observation, mask)

    def step(self, action: int | None) -> None:
        """Play the action of `agent_selection`; None for an agent whose game has ended.

        Raises:
            IllegalActionError: the action is malformed, or not legal and `illegal_action` is "raise"; nothing has changed.
            ResetNeeded: no game has been dealt, or it is over for all.
        """
        if not self.agents:
            raise ResetNeeded("call reset before step: no game has begun, or the last one has ended")
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)  # type: ignore[arg-type]
            return
        reason, self._shown = self._play(self._states, agent, action)
        if reason:
            self._forfeit([agent])
        self._cumulative_rewards[agent] = 0.0
        self._num_steps += 1
        rewards, out, over = self._rewards.tolist(), self._out.tolist(), self._mover.item() == OVER
        capped = not over and self.max_cycles is not None and self._num_steps >= self.max_cycles
        ended = over or capped
        for other in self.agents:
            seat = self._seat_of[other]
            reward = self.rewards[other] = rewards[seat]
            self._cumulative_rewards[other] += reward
            self._returns[seat] += reward
            if over or out[seat]:
                self.terminations[other] = ended = True
            elif capped:
                self.truncations[other] = True
        self._find_mover()
        if reason:
            self.infos[agent]["illegal_action"] = reason
        if ended:
            self._waiting = {} if capped else self._waiting
            for other in self.agents:
                if self.truncations[other]:
                    self.infos[other]["action_mask"][:] = 0
            self._deads_step_first()
        if self.render_mode == "human":
            self.render()


class DiceParallelEnv(_Table, ParallelEnv[str, Any, int]):
    """A simultaneous game in which all seats commit at once. Arguments as for `DiceAECEnv`; `max_cycles` counts
    steps of all seats together, and every agent that acts illegally loses."""

    _needs_simultaneous = True

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        self._deal(seed, options)
        self.agents = self.possible_agents[:]
        return self._views()

    def _views(self) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        masks = self._masks()
        observations = {
            agent: self._observed(self._view(seat)[0], masks[seat].copy())
            for agent, seat in self._seat_of.items()
            if agent in self.agents
        }
        return observations, {agent: {"action_mask": masks[self._seat_of[agent]]} for agent in self.agents}

    def step(self, actions: dict[str, int]) -> tuple[Any, Any, Any, Any, Any]:
        """Play all seats' actions at once.

        Raises:
            IllegalActionError: an action is missing or malformed, or not legal and `illegal_action` is "raise"; nothing has
                changed.
            ResetNeeded: no game has been dealt.
        """
        self._check_dealt("step")
        if not self.agents:
            return {}, {}, {}, {}, {}
        if not isinstance(actions, Mapping):
            raise IllegalActionError(f"actions must be a dictionary, agent → action, not {shown(actions)}")
        missing = [agent for agent in self.agents if agent not in actions]
        if missing:
            raise IllegalActionError(f"no action for {', '.join(missing)}")
        after = self._states.copy()
        rewards = np.zeros(len(self.agents))
        reasons = {}
        for _ in self.agents:
            agent = self.possible_agents[after["seat"][0]]
            reason, _ = self._play(after, agent, actions[agent])
            if reason:  # check the other actions too; they do not depend on this one
                reasons[agent] = reason
                self._play(after, agent, self._masks()[self._seat_of[agent]].argmax())
            rewards += after["rewards"][0, : len(rewards)]
        if reasons:
            self._forfeit(reasons)
            rewards[:] = self._rewards
        else:
            self._states[:] = after
        self._returns = [earned + reward for earned, reward in zip(self._returns, rewards.tolist(), strict=True)]
        self._num_steps += 1
        over = bool(self._states["seat"][0] == OVER)  # also after an illegal action
        capped = not over and self.max_cycles is not None and self._num_steps >= self.max_cycles
        observations, infos = self._views()
        for agent, reason in reasons.items():
            infos[agent]["illegal_action"] = reason
        result = (
            observations,
            {agent: float(rewards[seat]) for agent, seat in self._seat_of.items()},
            dict.fromkeys(self.agents, over),
            dict.fromkeys(self.agents, capped),
            infos,
        )
        if over or capped:
            self.agents = []
        if self.render_mode == "human":
            self.render()
        return result


def raw_env(game: str | Game | Variant, **kwargs: Any) -> DiceAECEnv:
    """Make the bare AEC environment: the fastest one, which raises IllegalActionError for an illegal action."""
    return DiceAECEnv(game, **kwargs)


def env(game: str | Game | Variant, illegal_action: IllegalAction = "lose", **kwargs: Any) -> AECEnv[Any, Any, Any]:
    """Make the AEC environment in PettingZoo's usual wrappers; an illegal action loses the game.

    `DiceAECEnv` itself handles illegal actions. PettingZoo's TerminateIllegalWrapper is left out: it warns at every illegal
    action, and knows neither the agent's return so far nor the game's least return.
    """
    return _Usual(raw_env(game, illegal_action=illegal_action, **kwargs))


def parallel_env(game: str | Game | Variant, **kwargs: Any) -> DiceParallelEnv:
    """Make the environment in which all seats of a simultaneous game commit at once."""
    return DiceParallelEnv(game, **kwargs)


def _bound_to(name: str, make: Callable[..., Any], module: str) -> Callable[..., Any]:
    def bound(**kwargs: Any) -> Any:
        return make(name, **kwargs)

    bound.__name__ = bound.__qualname__ = make.__name__
    bound.__module__ = module
    bound.__doc__ = make.__doc__
    bound.__signature__ = _signature(name, make)  # type: ignore[attr-defined]
    return bound


def _signature(name: str, make: Callable[..., Any]) -> inspect.Signature:
    """Return the options of the game and of all environments as keywords, for `help` and editors."""
    options = load(name).options
    hints = get_type_hints(options)
    known = [(field.name, field.default, hints[field.name]) for field in dataclasses.fields(options)]
    known += [("render_mode", None, str | None), ("max_cycles", None, int | None)]
    known += [("illegal_action", "lose" if make is env else "raise", IllegalAction), ("observation", "dict", Observation)]
    parameters = [
        inspect.Parameter(option, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)
        for option, default, hint in known
    ]
    return inspect.Signature(parameters, return_annotation=get_type_hints(make)["return"])


def make_module(name: str, module_name: str) -> ModuleType:
    """Make a PettingZoo-style module for the game: `env`, `raw_env`, and `parallel_env`."""
    module = ModuleType(module_name, f"The game {name} in PettingZoo's form: env, raw_env and, if simultaneous, parallel_env.")
    for make in (env, raw_env, parallel_env):
        setattr(module, make.__name__, _bound_to(name, make, module_name))
    return module
