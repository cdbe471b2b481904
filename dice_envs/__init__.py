"""Five dice games as reinforcement-learning environments in which the right answer is known.

`import dice_envs` registers every game with Gymnasium (`dice_envs/LiarsDice-v0`) and, from version 1.27, with PettingZoo
(`dice_envs/liars_dice-v0`). It also offers PettingZoo-style modules (`from dice_envs import liars_dice_v0`).
"""

from __future__ import annotations

import signal
import sys

from dice_envs.core.machine import is_starting

if is_starting() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends the command without a word while it imports for seconds

import importlib
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pettingzoo

from dice_envs.agent import Agent, AgentError, Promises, Turn, Uniform
from dice_envs.agent.mixture import Mixture
from dice_envs.agent.specs import make_agent
from dice_envs.core.batch import Batch, IllegalActionError
from dice_envs.core.game import Facts, Game, Variant, configure, load, names, register, register_id
from dice_envs.core.state import state_dtype
from dice_envs.core.view import Block, Picture, Row
from dice_envs.envs import aec
from dice_envs.envs.gym import SeatEnv, SeatVectorEnv
from dice_envs.evaluation import Evaluation, evaluate
from dice_envs.exact import ActionValues, Measurement, Measures, ResponseValues, action_values, measure, response_values
from dice_envs.learn import TrainingCallback, train
from dice_envs.pictures import Description, Reading, describe, layout
from dice_envs.tasks import TASKS, Task

if TYPE_CHECKING:
    from dice_envs.envs.tensor import TensorEnv as TensorEnv
    from dice_envs.learn.run import TrainingRun as TrainingRun
    from dice_envs.v0_modules import *  # noqa: F403 - the modules that `_register` makes, written by `make figures NAME=stubs`

__all__ = [
    "TASKS",
    "ActionValues",
    "Agent",
    "AgentError",
    "Batch",
    "Block",
    "Description",
    "Evaluation",
    "Facts",
    "Game",
    "IllegalActionError",
    "Measurement",
    "Measures",
    "Mixture",
    "Picture",
    "Pool",
    "Promises",
    "Reading",
    "ResponseValues",
    "Row",
    "SeatEnv",
    "SeatVectorEnv",
    "Task",
    "TrainingCallback",
    "Turn",
    "Uniform",
    "Variant",
    "action_values",
    "configure",
    "describe",
    "evaluate",
    "layout",
    "load",
    "make_agent",
    "measure",
    "names",
    "register",
    "response_values",
    "state_dtype",
    "train",
]

Pool = Mixture  # its name as the opponents of a learner

try:
    __version__ = metadata.version("dice-envs")
except metadata.PackageNotFoundError:  # run from a checkout that is not installed
    __version__ = "0+unknown"

_folder = Path(__file__).resolve().parent
if not (_folder / "agents").exists():  # the wheel has `agents` and `experiments` inside this package, a checkout beside it
    sys.modules[__name__].__path__.append(str(_folder.parent))


if not TYPE_CHECKING:  # a checker would take every misspelt name for one of these

    def __getattr__(name: str) -> Any:
        """Import `TensorEnv`, which needs PyTorch, and `TrainingRun`, which needs agents, when they are first asked for."""
        if module := {"TensorEnv": "dice_envs.envs.tensor", "TrainingRun": "dice_envs.learn.run"}.get(name):
            return getattr(importlib.import_module(module), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _register(name: str) -> None:
    game = load(name)
    register_id(game)
    module_name = f"{__name__}.{name}_v0"
    module = aec.make_module(name, module_name)
    sys.modules[module_name] = module
    globals()[f"{name}_v0"] = module
    if hasattr(pettingzoo, "register"):  # PettingZoo 1.27 or later
        pettingzoo.register("aec", f"dice_envs/{name}-v0", entry_point=module.env)
        if configure(game).facts.simultaneous:
            pettingzoo.register("parallel", f"dice_envs/{name}-v0", entry_point=module.parallel_env)


for _name in names():
    _register(_name)
