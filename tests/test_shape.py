"""Limits on functions: lines, arguments of kernels, depth of nested blocks, and names that games' options have."""

import ast
import contextlib
import functools
import importlib
import inspect
import types

import pytest

from dice_envs import load, names
from tests.conftest import ROOT

FOLDERS = ("dice_envs", "agents", "experiments")
MOST_LINES = 80
MOST_ARGUMENTS = 8
DEEPEST = 4
# `kernel`, and the names under which it is used with fixed arguments.
DECORATORS = ("kernel", "compiled", "decorate", "inlined")
BLOCKS = (ast.If, ast.For, ast.While, ast.With, ast.Try, ast.Match)


@functools.cache
def trees(folder: str) -> dict[str, ast.Module]:
    """The folder's files by their paths, parsed."""
    return {str(path.relative_to(ROOT)): ast.parse(path.read_text()) for path in sorted((ROOT / folder).rglob("*.py"))}


@functools.cache
def functions() -> list[tuple[str, ast.FunctionDef]]:
    return [
        (f"{path}:{node.lineno} {node.name}", node)
        for folder in FOLDERS
        for path, tree in trees(folder).items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def lines(function: ast.FunctionDef) -> int:
    """A function's lines, without the signature of `__init__`, which may have many options."""
    first = function.body[0] if function.name == "__init__" else function
    return function.end_lineno - first.lineno + 1


def arguments(function: ast.FunctionDef) -> int:
    return len(function.args.posonlyargs) + len(function.args.args) + len(function.args.kwonlyargs)


def depth(node: ast.AST) -> int:
    """The depth of nested blocks. An `elif` has the depth of its `if`; nested functions count separately."""
    deepest = 0
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            continue
        is_elif = isinstance(node, ast.If) and node.orelse == [child] and isinstance(child, ast.If)
        deepest = max(deepest, depth(child) + (isinstance(child, BLOCKS) and not is_elif))
    return deepest


def is_kernel(function: ast.FunctionDef) -> bool:
    return any(name in ast.unparse(decorator) for decorator in function.decorator_list for name in DECORATORS)


def test_functions_fit_a_screen():
    assert {name: lines(function) for name, function in functions() if lines(function) > MOST_LINES} == {}


def test_kernels_take_records():
    kernels = [(name, arguments(function)) for name, function in functions() if is_kernel(function)]
    assert len(kernels) > 200
    assert {name: count for name, count in kernels if count > MOST_ARGUMENTS} == {}


def test_nothing_is_nested_deep():
    depths = {name: depth(function) for name, function in functions()}
    assert {name: found for name, found in depths.items() if found > DEEPEST} == {}
    assert DEEPEST in depths.values(), "the limit may be lower"


def test_no_parameter_hides_an_option_of_a_game():
    """Functions that take any keywords hand them on, mostly to `configure`."""
    options = {option for name in names() for option in load(name).options.__dataclass_fields__}
    for where, node in functions():
        assert not node.args.kwarg or options.isdisjoint(each.arg for each in (*node.args.args, *node.args.kwonlyargs)), where


@pytest.mark.parametrize("folder", [*FOLDERS, "tests"])
def test_a_constant_is_set_once(folder):
    """Linters find functions that are defined twice, but not constants: the later one would also be that of tests before it."""
    for path, tree in trees(folder).items():
        statements = [node for node in tree.body if isinstance(node, ast.Assign)]
        found = [target.id for node in statements for target in node.targets if isinstance(target, ast.Name)]
        constants = [name for name in found if name.isupper()]
        assert len(constants) == len(set(constants)), path


def imported(tree):
    """The project's functions and classes that a file of tests imports by name."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "dice_envs":
            with contextlib.suppress(ImportError):  # of an extra
                module = importlib.import_module(node.module)
                found |= {each.asname or each.name: vars(module).get(each.name) for each in node.names}
    signed = (thing for thing in found.items() if isinstance(thing[1], types.FunctionType | type))
    return {name: thing for name, thing in signed if not (isinstance(thing, type) and issubclass(thing, BaseException))}


def test_tests_call_functions_with_arguments_that_they_take():
    """Most tests run at night only, and mypy does not look at their calls: those of a changed signature are found here."""
    looked_at = 0
    for path, tree in trees("tests").items():
        known = imported(tree)
        for call in ast.walk(tree):
            if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in known):
                continue
            if any(isinstance(each, ast.Starred) for each in call.args) or None in (each.arg for each in call.keywords):
                continue
            looked_at += 1
            try:
                inspect.signature(known[call.func.id]).bind(*call.args, **{each.arg: each for each in call.keywords})
            except TypeError as problem:
                pytest.fail(f"{path}:{call.lineno} {call.func.id}: {problem}")
    assert looked_at > 1000


# Each game's file has its own; an example is read by itself; the rest are private to two programs.
SAME = {"ActorCritic", "Group", "Options", "Params", "Played", "Table"}


def test_no_class_has_the_name_of_another():
    found = [
        node.name
        for folder in FOLDERS
        for tree in trees(folder).values()
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    ]
    assert {name for name in found if found.count(name) > 1 and not name.startswith("_")} == SAME
