"""Functions and PyTorch modules as agents, and models of Stable-Baselines3."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

import gymnasium
import numpy as np

from dice_envs.agent import AgentError, Drawing, Promises, Turn, evaluation_mode, is_of
from dice_envs.core.game import Variant
from dice_envs.core.options import shown


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
