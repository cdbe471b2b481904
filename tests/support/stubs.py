"""The type stub of the games' modules, for type checkers and editors: `python -m tests.support.stubs` rewrites it.

`dice_envs.liars_dice_v0` and the others are made when the package is imported, one for each file of `dice_envs/games`. Type
checkers cannot see them without the stub, which also has the options of their functions.
"""

import inspect
import json
import types
from typing import Any, Literal, Union, get_args, get_origin

import dice_envs

PATH = dice_envs.__path__[0] + "/v0_modules.pyi"

HEAD = '''"""The games in PettingZoo's form, as `dice_envs` offers them. `make figures NAME=stubs` writes it."""

from collections.abc import Sequence
from typing import Any, Literal

from pettingzoo import AECEnv

from dice_envs.envs.aec import DiceAECEnv, DiceParallelEnv
'''


def hint_text(hint: Any) -> str:
    """A type as written in the stub. An option that accepts a tuple also accepts a list."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return " | ".join(map(hint_text, arguments))
    if origin is Literal:
        return f"Literal[{', '.join(value_text(value) for value in arguments)}]"
    if origin is tuple:
        return f"Sequence[{hint_text(arguments[0])}]"
    if origin is not None:
        return f"{origin.__name__}[{', '.join(map(hint_text, arguments))}]"
    return "None" if hint is types.NoneType else getattr(hint, "__name__", str(hint))


def value_text(value: Any) -> str:
    """A value as the formatter would write it."""
    return json.dumps(value) if isinstance(value, str) else repr(value)


def function_text(function: Any) -> str:
    """One function of a module, with its options."""
    signature = inspect.signature(function)
    options = "".join(
        f"        {option.name}: {hint_text(option.annotation)} = {value_text(option.default)},\n"
        for option in signature.parameters.values()
    )
    returned = hint_text(signature.return_annotation)
    return f"    @staticmethod\n    def {function.__name__}(\n        *,\n{options}    ) -> {returned}: ...\n"


def stub() -> str:
    text = HEAD
    for name in dice_envs.names():
        module = getattr(dice_envs, f"{name}_v0")
        functions = [module.env, module.raw_env]
        if dice_envs.configure(name).facts.simultaneous:
            functions.append(module.parallel_env)
        text += f"\nclass {name}_v0:\n" + "".join(map(function_text, functions))
    return text


if __name__ == "__main__":
    with open(PATH, "w", encoding="utf-8") as file:
        file.write(stub())
    print(PATH)
