"""The contract of an agent (`Agent`): what it sees, returns and may offer; functions that ask it and check the answer; and
functions, PyTorch modules and models of Stable-Baselines3 as agents.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from typing import Any, Protocol, runtime_checkable

import gymnasium
import numpy as np

from dice_envs.agent.kernel import AgentKernel, Chooser, Network, compile_choices, random_choice
from dice_envs.core.batch import IllegalActionError, as_actions, explain_illegal
from dice_envs.core.dice import choose_weighted
from dice_envs.core.game import Variant
from dice_envs.core.kernel import kernel
from dice_envs.core.options import shown
from dice_envs.core.work import hinting, work

RESIGNS = -1  # in place of an action, by an agent that declares it (`Promises.resigns`)
_ROUNDING = 1e-4  # tolerance for sums of probabilities, because networks are float32; they are then rescaled to sum to 1
_SPACING = {"float16": 2.0**-10, "bfloat16": 2.0**-7}  # of numbers at 1, which is more than that tolerance


class AgentError(ValueError):
    """An agent returned invalid actions or probabilities. No game has changed, unless its kernel promised legal actions.

    The message names the agent, the game, the seat and the action.
    """


class Turn:
    """n games in which an agent is to move, as the agent may see them.

    Properties are computed when first read and are valid during `act` only. Reading them changes no game.

    Attributes:
        variant: the game with its options; `game`, `params` and `facts` are its parts.
        seats: (n,) int64, the seat that is to move in each game.
        streams: (n,) `dice_envs.core.dice.STREAM`, the agent's own random stream for each game. Agents draw from
            it in place, so their choices depend on each game's seed and not on which games share a batch.
        memory: (n,) of the data type that the agent `remembers`: its notes of this match, all zero when a match begins.
            Agents write in place. None without a memory.
    """

    def __init__(
        self, variant: Variant, states: np.ndarray, index: np.ndarray, streams: np.ndarray, memory: np.ndarray | None = None
    ) -> None:
        self.variant = variant
        self.game, self.params = variant.game, variant.params
        self._true_states = states
        self._index = index
        self.seats = states["seat"][index].astype(np.int64)
        self.streams = streams
        self.memory = memory

    def __len__(self) -> int:
        return len(self._index)

    @functools.cached_property
    def observations(self) -> np.ndarray:
        """(n, observation_size) float32."""
        out = np.empty((len(self), self.variant.facts.observation_size), np.float32)
        self.variant.kernels.observe(self._true_states, self._index, self.seats, out)
        return out

    @functools.cached_property
    def legal(self) -> np.ndarray:
        """(n, num_actions) int8, 1 where the action is legal; at least one is."""
        return self._masks.copy()  # the agent may write into it

    @functools.cached_property
    def _masks(self) -> np.ndarray:
        masks = np.empty((len(self), self.variant.facts.num_actions), np.int8)
        self.variant.kernels.legal(self._true_states, self._index, masks)
        return masks

    @functools.cached_property
    def states(self) -> np.ndarray:
        """(n,) sampled states: everything hidden from the mover, future dice included, is drawn again."""
        out = np.empty(len(self), self.game.state)
        self.variant.kernels.reroll(self._true_states, self._index, self.seats, self.streams, out)
        return out

    @functools.cached_property
    def rng(self) -> np.random.Generator:
        """A generator seeded from the agent's own streams, for agents that draw with NumPy."""
        seeds = self.streams["rng"].copy()
        self.streams["rng"] += np.uint64(0x9E3779B97F4A7C15)
        return np.random.default_rng(seeds)

    def choose(self, offered: AgentKernel) -> np.ndarray:
        """Return a kernel's actions, (n,) int64. Draws from `streams` in place."""
        choose_all = compile_choices(self.game, Chooser(offered.choose, bool(offered.reads_hidden)))
        sample, actions = np.empty(1, self.game.state), np.empty(len(self), np.int64)
        options = np.atleast_1d(offered.options)
        choose_all(self.params, options, self._true_states, self._index, self.streams, sample, actions)
        return actions


@runtime_checkable
class Agent(Protocol):
    """A player: `act(turn)` is all that it needs.

    These are optional; an agent that chooses by a kernel derives from `KernelAgent`.

    Attributes:
        probabilities: `probabilities(turn) -> (n, num_actions) float64`, the stochastic policy. Makes exact measures possible.
        note: what a reader of exact measures should know of the agent, such as gaps in its policy; they repeat it.
        promises: a `Promises`: facts that others may rely on, and what it offers in place of its answers.
        check_variant: `check_variant(variant)`, which raises ValueError for a variant that the agent does not play. Wrong
            games are then refused before they begin.
        plays: of its class, the name of its game, or those of its games; without it, it plays any.
        files: of its class, its parameters that name files, which specs written by others may not choose freely.
        reaches_out: of its class, whether it sends data to other programs. Specs written by others may not name it.
    """

    def act(self, turn: Turn) -> np.ndarray:
        """Return one legal action for each game of the turn, (n,) int64."""
        ...


def is_stochastic(agent: Any) -> bool:
    """Return whether the agent states its probabilities. Exact measures take it even without `act`."""
    return hasattr(agent, "probabilities")  # a subclass may hide those of its base: by a property without a getter


@dataclasses.dataclass(frozen=True)
class Promises:
    """An agent's promises: its attribute or property `promises`. Each has a default that is true of any agent. A game that
    knows more promises has a class derived from this one.

    A match is any number of games that the same players play one after another.

    Attributes:
        deterministic: `act` chooses the same action whenever it comes to a position. Exact measures are then exact for an
            agent that states no probabilities; otherwise they can't know, and give an interval.
        memoryless: the probabilities depend on the position itself (in Liar's Dice: the last bid, the dice left and the own
            dice), not on how it came about. Exact measures then ask less often.
        observes_only: the probabilities depend on the observations and the legal actions alone. Exact measures then ask once
            where two seats observe the same.
        looks_back: whether past rounds of a game may make a difference. Unless this is False, exact measures look for a
            difference and report it.
        strategy: a strategy that exact measures know without asking: "uniform", all legal actions are equally likely; or
            another one that the game's module in `dice_envs.exact` knows by this name.
        resigns: the agent may return RESIGNS in place of an action, which loses the game. Games such as those of `arena` take
            that; others raise AgentError.
        by_clock: what it does depends on how fast the machine is, so that a seed does not repeat its play.
        remembers: a NumPy data type. Gives the agent a memory: `Turn.memory` holds one record for each game, which the agent
            wrote at earlier turns of this match. It knows only what its own turns have shown. A field `game` of it is zeroed
            whenever a game begins. `act` updates the records;
            `probabilities` reads them and changes nothing. Exact measures ask the agent as at the beginning of a match.
        seats: the seats that it plays, if it has no policy for the others; None: all.
        variant: the only variant that a trained policy plays. Commands take the game's options from it.
        network: variant → the network whose softmax `probabilities` is, as numbers; or None. Exact measures then compute many
            answers at once. ValueError without `observes_only`.
        solution: variant → the stored solution that the agent plays; exact measures of Liar's Dice read it instead of asking.
        for_variant: variant → the agent that stands for this one there. Exact measures ask it.
        needs: called as (variant, positions), tells `dice_envs.core.work.needs` what it takes to be asked at so many positions,
            the game's solution included. The page calls it for agents that visitors name.
        prepare: called with a variant, does what the agent's first move would wait for, such as solving the game. The page
            calls it in a thread as soon as somebody looks at a table, while others still think.
    """

    deterministic: bool = False
    memoryless: bool = False
    observes_only: bool = False
    looks_back: bool = True
    strategy: str = ""
    resigns: bool = False
    by_clock: bool = False
    remembers: Any = None
    seats: tuple[int, ...] | None = None
    variant: Variant | None = None
    network: Callable[[Variant], Network | None] | None = None
    solution: Callable[[Variant], Any] | None = None
    for_variant: Callable[[Variant], Agent] | None = None
    needs: Callable[[Variant, int], object] | None = None
    prepare: Callable[[Variant], object] | None = None

    def __post_init__(self) -> None:
        if self.network is not None and not self.observes_only:
            raise ValueError("observes_only must be true with network, not False: a network sees observations alone")


_NONE = Promises()


def promises_of(agent: Any) -> Promises:
    """Return what the agent promises."""
    return getattr(agent, "promises", _NONE)


def check_plays(agent: Any, variant: Variant) -> None:
    """Raise ValueError if the agent does not play the variant. Call this before any game is played."""
    check = getattr(agent, "check_variant", None)
    if check is not None:
        check(variant)


def check_needs(agent: Any, variant: Variant, positions: int = 1) -> None:
    """Raise ValueError if it takes more to ask the agent at so many positions than people wait for who want to play; see
    `dice_envs.core.work.hinting`."""
    needs = promises_of(agent).needs
    if needs is not None:
        with hinting():
            needs(variant, positions)


def is_of(thing: Any, module: str, name: str) -> bool:
    """Return whether a thing is of a class of an optional package, without importing it: before others do, nothing is."""
    return isinstance(thing, getattr(sys.modules.get(module), name, ()))


@contextlib.contextmanager
def evaluation_mode(agent: Any) -> Iterator[None]:
    """Put a PyTorch module in evaluation mode while a block runs, then each of its parts back; other objects are left alone."""
    modes = [(each, each.training) for each in agent.modules()] if is_of(agent, "torch.nn", "Module") else []
    try:
        if modes:
            agent.eval()
        yield
    finally:
        if modes:
            agent.train(modes[0][1])  # a module's own `train` may do more than set flags
        for each, training in modes:
            each.training = training


def fresh_memory(agent: Any, shape: int | tuple[int, ...]) -> np.ndarray | None:
    """Return the agent's memory at the beginning of a match: zeros of the data type that it declares, None without one.
    AgentError if that has no fixed size."""
    declared = promises_of(agent).remembers
    if declared is None:
        return None
    try:
        kind = np.dtype(declared)
    except TypeError:
        raise AgentError(f"{name_of(agent)}: remembers must be a NumPy data type, not {shown(declared)}") from None
    if kind.hasobject or kind.itemsize == 0:
        raise AgentError(f"{name_of(agent)}: remembers must be a data type of a fixed size without objects, not {kind}")
    return np.zeros(shape, kind)


def forget_game(memory: np.ndarray | None) -> None:
    """Zero the fields `game` of an agent's memory, where there are any, since a game begins. In place."""
    if memory is None:
        return
    for name in memory.dtype.names or ():
        if name == "game":
            memory[name] = 0
        else:
            forget_game(memory[name])


def ask(
    agent: Agent,
    variant: Variant,
    states: np.ndarray,
    index: np.ndarray,
    streams: np.ndarray,
    memory: np.ndarray | None = None,
    may_resign: bool = False,
) -> np.ndarray:
    """Return the agent's action for each game of `index`, (m,) int64, all of them legal.

    Args:
        agent: the agent to move.
        variant: the game.
        states: the games.
        index: (m,) int64, the games in which the agent is to move.
        streams: one for each game of `states`; modified in place.
        memory: one record of `fresh_memory` for each game of `states`; modified in place. None: the agent plays as at the
            beginning of a match, and its notes are lost.
        may_resign: whether the games take RESIGNS from an agent that declares it.

    Raises:
        AgentError: an action is malformed or not legal; nothing has changed.
    """
    own = streams[index]
    remembered = fresh_memory(agent, len(index)) if memory is None else memory[index]
    with evaluation_mode(agent), work():
        answer = agent.act(Turn(variant, states, index, own, remembered))
    try:
        actions = as_actions(answer, len(index))
    except IllegalActionError as problem:
        raise AgentError(f"{name_of(agent)} in {variant.game.name}: {problem}") from None
    plays = actions != RESIGNS if promises_of(agent).resigns else np.ones(len(index), np.bool_)
    if not may_resign and not plays.all():
        raise AgentError(f"{name_of(agent)} in {variant.game.name} resigns, which these games do not take; those of `arena` do")
    games, played = index[plays], actions[plays]
    row = variant.kernels.first_illegal(states, games, played)
    if row >= 0:
        raise fault_of(agent, variant, states[games[row]], int(games[row]), int(played[row]))
    streams[index] = own
    if memory is not None:
        memory[index] = remembered
    return actions


def fault_of(agent: Agent, variant: Variant, state: Any, game: int, action: int) -> AgentError:
    """Return the error that names an agent and its illegal action in the game of this number."""
    reason = explain_illegal(variant, state, action)
    return AgentError(f"{name_of(agent)} in {variant.game.name}, seat {state['seat']} of game {game}: {reason}")


def ask_probabilities(agent: Any, turn: Turn) -> np.ndarray:
    """Return the agent's stochastic policy in each game of the turn, (n, num_actions) float64. Errors are those of `stated`."""
    return stated(agent, turn)[0]


def stated(agent: Any, turn: Turn) -> tuple[np.ndarray, float]:
    """Return the agent's stochastic policy in each game of the turn, and how finely it is stated.

    Returns:
        (n, num_actions) float64; and the spacing of numbers at 1 in the type of the agent's numbers where that is float16 or
        bfloat16, else 0.

    Raises:
        AgentError: the agent states no probabilities, or they are not a distribution over the legal actions.
    """
    if not is_stochastic(agent):
        raise AgentError(f"{name_of(agent)} states no probabilities, so it can only be measured by playing")
    if turn.memory is None:
        turn.memory = fresh_memory(agent, len(turn))
    who = f"{name_of(agent)} in {turn.game.name}"
    try:
        with evaluation_mode(agent), work():
            answer = agent.probabilities(turn)
    except ValueError as problem:
        if "when training" in str(problem):  # PyTorch's batch normalisation, asked for one row
            raise AgentError(f"{who}: {problem}; call eval() of its PyTorch module, which is in training mode") from problem
        raise
    spacing = _SPACING.get(str(getattr(answer, "dtype", "")).removeprefix("torch."), 0.0)
    if hasattr(answer, "detach"):  # a PyTorch tensor, perhaps one that requires gradients
        answer = answer.detach().cpu()
        answer = answer.float() if spacing else answer  # NumPy knows no bfloat16
    expected = (len(turn), turn.variant.facts.num_actions)
    try:
        given = np.asarray(answer)
        chances = np.asarray(np.real(given), np.float64)
    except (TypeError, ValueError):
        raise AgentError(f"{who}: probabilities must be numbers of shape {expected}, not {shown(answer)}") from None
    if given.dtype.kind in "cmM":
        raise AgentError(f"{who}: probabilities must be real numbers, not {given.dtype}")
    if chances.shape != expected:
        raise AgentError(f"{who}: probabilities must have shape {expected}, not {chances.shape}")
    legal = turn._masks
    unknown = ~np.isfinite(chances)
    wrong = unknown if unknown.any() else (chances < 0) | ((legal == 0) & (chances != 0))
    if wrong.any():
        row, action = np.argwhere(wrong)[0]
        words = turn.variant.describe_action(int(action))
        allowed = "0 or more" if legal[row, action] else "0, because the action is not legal"
        allowed = "a finite number" if unknown.any() else allowed
        raise AgentError(
            f"{who}, seat {turn.seats[row]}: the probability of action {action} ({words}) must be {allowed}, "
            f"not {chances[row, action]}"
        )
    sums = chances.sum(axis=1, keepdims=True)
    off = np.abs(sums[:, 0] - 1)
    if len(turn) and off.max() > max(_ROUNDING, 2 * spacing):
        row = int(off.argmax())
        raise AgentError(f"{who}, seat {turn.seats[row]}: probabilities must sum to 1, not {chances[row].sum()}")
    return chances / sums, spacing


def name_of(agent: Any) -> str:
    """Return a spec itself; for an agent its own `repr`, or its class with those fields that differ from their defaults."""
    kind = type(agent).__name__
    if not dataclasses.is_dataclass(agent):
        return agent if isinstance(agent, str) else kind
    if not hasattr(type(agent).__repr__, "__wrapped__"):  # its own, which no dataclass has made
        return repr(agent)
    values = {field: repr(getattr(agent, field.name)) for field in dataclasses.fields(agent) if field.repr}
    return f"{kind}({', '.join(f'{field.name}={value}' for field, value in values.items() if value != repr(field.default))})"


@kernel
def _draw_rows(streams, policies, out):
    for i in range(len(out)):
        out[i] = choose_weighted(streams[i], policies[i], policies.shape[1])


def draw_actions(streams: np.ndarray, policies: np.ndarray) -> np.ndarray:
    """Draw an action from each policy (n, num_actions): (n,) int64. `streams` (n,) is modified in place."""
    out = np.empty(len(policies), np.int64)
    _draw_rows(streams, policies, out)
    return out


class Drawing:
    """Base class of agents that draw each action from the probabilities that they state: a subclass only defines these."""

    def probabilities(self, turn: Turn) -> Any:
        raise NotImplementedError

    def act(self, turn: Turn) -> np.ndarray:
        return draw_actions(turn.streams, ask_probabilities(self, turn))


class KernelAgent:
    """Base class of agents that choose by a kernel: a subclass only defines `kernel(variant)`.

    Games between such agents are one compiled loop that does not call `act`, unless the agent has a memory.
    """

    def kernel(self, variant: Variant) -> AgentKernel | None:
        """Return the kernel for the variant; None where the subclass has its own `act`."""
        raise NotImplementedError

    def act(self, turn: Turn) -> np.ndarray:
        """Return one legal action for each game, (n,) int64."""
        check_plays(self, turn.variant)
        offered = self.kernel(turn.variant)
        if offered is None:
            raise NotImplementedError(f"{name_of(self)} has no kernel for {turn.variant}, and no act of its own")
        return turn.choose(offered)


class Uniform(KernelAgent):
    """Plays a uniformly random legal action. Named `random` on the command line."""

    promises = Promises(memoryless=True)

    def kernel(self, variant: Variant) -> AgentKernel | None:
        return AgentKernel(random_choice(variant.game), reads_hidden=False, always_legal=True)

    def probabilities(self, turn: Turn) -> np.ndarray:
        check_plays(self, turn.variant)
        legal = turn.legal.astype(np.float64)
        return legal / legal.sum(axis=1, keepdims=True)


# --- functions, PyTorch modules and models of Stable-Baselines3 as agents --------------------------------------------------


@dataclasses.dataclass(frozen=True, repr=False)
class FunctionAgent(Drawing):
    """A function from (observations, action masks) to action probabilities, or from observations alone to logits.

    Illegal actions are masked before the softmax of logits. A PyTorch module is given tensors on its device, in evaluation
    mode. Errors name the function.
    """

    function: Any

    promises = Promises(observes_only=True)

    def __repr__(self) -> str:
        return str(getattr(self.function, "__name__", type(self.function).__name__))

    def probabilities(self, turn: Turn) -> Any:
        if not is_of(self.function, "torch.nn", "Module"):
            return self._answer(self.function, turn.observations, turn.legal)
        import torch

        device = next((each.device for each in self.function.parameters()), None)
        with torch.no_grad(), evaluation_mode(self.function):
            seen = (torch.from_numpy(each).to(device) for each in (turn.observations, turn.legal))
            return self._answer(self.function.forward, *seen)

    def _answer(self, signed: Any, observations: Any, legal: Any) -> Any:
        """Return the probabilities that the function states, or those of its logits, in their type; `signed` has its signature.

        Raises:
            AgentError: logits of another shape.
        """
        if takes_masks(signed):
            return self.function(observations, legal)
        logits = self.function(observations)
        if getattr(logits, "shape", None) != legal.shape:
            got = f"shape {tuple(logits.shape)}" if hasattr(logits, "shape") else shown(logits)
            raise AgentError(f"{self} takes observations alone, so it must return logits of shape {(*legal.shape,)}, not {got}")
        if hasattr(logits, "detach"):  # a tensor
            import torch

            return logits.masked_fill(torch.as_tensor(legal == 0, device=logits.device), -torch.inf).softmax(dim=1)
        logits = np.where(legal, logits, -np.inf)
        with np.errstate(invalid="ignore"):  # NaN is reported with the probabilities
            weights = np.exp(logits - logits.max(axis=1, keepdims=True))
            return weights / weights.sum(axis=1, keepdims=True)


def takes_masks(function: Any) -> bool:
    """Return whether a function can be called with observations and masks; False: only with observations.

    True of functions whose signature cannot be read.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return True

    def takes(*given: None) -> bool:
        try:
            return bool(signature.bind(*given))
        except TypeError:
            return False

    return takes(None, None) or not takes(None)


@dataclasses.dataclass(frozen=True, repr=False)
class ModelAgent(FunctionAgent):
    """A model whose `predict` takes action masks, such as MaskablePPO. Its policy is asked in evaluation mode, as by `predict`.

    The VecNormalize of its environment normalises observations. With other wrappers that may change them a model is refused.
    """

    def __post_init__(self) -> None:
        model = self.function
        if not hasattr(model, "policy"):
            raise TypeError(f"{self} does not know how its environment changed observations: give the model that it belongs to")
        if "action_masks" not in inspect.signature(model.predict).parameters:
            lacks = "" if hasattr(model.policy, "get_distribution") else " and states no probabilities, only the best action"
            cure = "train MaskablePPO of SB3-contrib, or give a function of observations and masks that returns probabilities"
            raise TypeError(f"{self} takes no masks of legal actions{lacks}; {cure}")

    def _environment(self) -> tuple[Any, list[Any]]:
        """Return the model's environment, and those of its wrappers that may change observations, the inner ones first."""
        from stable_baselines3.common.vec_env import VecCheckNan, VecEnvWrapper, VecMonitor, VecVideoRecorder

        env, found = self.function.env, []
        while isinstance(env, VecEnvWrapper):
            found += [] if type(env) in (VecMonitor, VecCheckNan, VecVideoRecorder) else [env]
            env = env.venv
        return env, found[::-1]

    def check_variant(self, variant: Variant) -> None:
        """Raise ValueError if the model has other observations or actions, or saw observations that cannot be made here."""
        model, problem = self.function, ""
        env, wrappers = self._environment()  # a VecNormalize from another process has no env
        needed = f"{(variant.facts.observation_size,)} and Discrete({variant.facts.num_actions})"
        if (own := f"{model.observation_space.shape} and {model.action_space}") != needed:
            problem = f"its observations and actions are {own}, not {needed}; name the options that it was trained with"
        elif others := [name for each in wrappers if (name := type(each).__name__) != "VecNormalize"]:
            problem = f"{others[0]} may have changed its observations"
        elif not wrappers and (last := getattr(model, "_last_obs", None)) is not None and np.abs(last - 0.5).max() > 0.5:
            problem = "an unknown wrapper took its observations out of 0 to 1; load it with env=, its environment in wrappers"
        elif env is not None and not getattr(env, "closed", False) and any(env.env_is_wrapped(gymnasium.ObservationWrapper)):
            problem = "a Gymnasium wrapper changed its observations"
        if problem:
            cure = "a function or an agent of your own can prepare observations as in training"
            raise ValueError(f"{self} does not play {variant}: {problem}; {cure}")

    def probabilities(self, turn: Turn) -> Any:
        import torch

        policy, observations = self.function.policy, turn.observations
        for wrapper in self._environment()[1]:
            observations = wrapper.normalize_obs(observations)
        with torch.no_grad(), evaluation_mode(policy):
            tensor, _ = policy.obs_to_tensor(observations)
            return policy.get_distribution(tensor, action_masks=turn.legal).distribution.probs


def as_agent(agent: Any) -> Any:
    """Return a function, PyTorch module or model of SB3 as an agent, others as they are. TypeError: a class or unfit model."""
    if isinstance(agent, type):
        raise TypeError(f"an agent must be an object, not the class {agent.__name__}: {agent.__name__}(…) makes one")
    if isinstance(agent, Agent) or is_stochastic(agent):
        return agent
    kinds = {"stable_baselines3.common.base_class": "BaseAlgorithm", "stable_baselines3.common.policies": "BaseModel"}
    if any(is_of(agent, *kind) for kind in kinds.items()):
        return ModelAgent(agent)
    return FunctionAgent(agent) if callable(agent) else agent
