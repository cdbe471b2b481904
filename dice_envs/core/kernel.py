"""The decorator that compiles kernels and caches the machine code on disk.

`numba.njit(cache=True)` notices a change only in the function's own file, and never reuses cached closures.
Here the cache key is made of what is compiled, not of files: the byte code of the kernel and of all kernels that it calls, and
the values that machine code freezes, which are global names, attributes of modules, closures and default arguments.
A kernel that depends on anything else is compiled in every process (`_Content`). What `numba.extending` adds to types and
functions of NumPy is not seen: it belongs to no kernel.

Only this file, `parts` and the clock of `work` rely on numba's internals. If they change, kernels still compile and run, but
are not cached, and one warning says so. `parts` is left out with versions of numba newer than those it was tried with.
`NUMBA_DISABLE_JIT=1` runs every kernel as plain Python.
"""

from __future__ import annotations

import contextlib
import dis
import enum
import functools
import hashlib
import operator
import os
import secrets
import sys
import time
import types
import warnings
import weakref
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar, overload

import llvmlite
import numba
import numpy as np

from dice_envs.core.files import ABANDONED_AFTER, keep_file, read_bytes, remove_left_overs, warn_not_kept

_F = TypeVar("_F", bound=Callable[..., Any])

# Settings that change the machine code, as environment variables after NUMBA_. The processor is part of the key by itself.
_SETTINGS = ["BOUNDSCHECK", "DEBUGINFO_DEFAULT", "OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "USING_SVML", "DEBUG_NRT"]
_SETTINGS += ["ENABLE_PROFILING", "EXTEND_VARIABLE_LIFETIMES", "LLVM_REFPRUNE_PASS", "LLVM_REFPRUNE_FLAGS"]
_MOST_BYTES = 2**28  # of a file of machine code
_UNUSED_AFTER = 30 * 86400.0  # seconds without use after which machine code is removed

# Every state begins with its stream, so a helper compiled for one record type is used for others. numba warns of that.
# Its message may begin with a colour, and numba-cuda has a category of its own.
warnings.filterwarnings("ignore", message=r".*Record\(rng")

_TARGET_OPTIONS: list[str] = []  # that this version of numba knows
try:
    from numba.core.registry import CPUTarget  # type: ignore[import-untyped,unused-ignore]

    _TARGET_OPTIONS = dir(CPUTarget.options)
except (ImportError, AttributeError):  # pragma: no cover
    pass

# In machine code a function goes by its name, the types of its arguments and a number, which numba counts from 1 in each
# process. Of two functions from the cache with one number, made of one source with different closures, or for records that were
# numbered alike, the first was called in place of the second. So these numbers are random.
try:
    from numba.core.bytecode import FunctionIdentity

    FunctionIdentity._unique_ids = iter(functools.partial(secrets.randbits, 62), -1)  # type: ignore[assignment,unused-ignore]
except ImportError:  # pragma: no cover - another numba
    pass

try:
    from numba.core.caching import CompileResultCacheImpl, _Cache, dumps
    from numba.core.dispatcher import Dispatcher
    from numba.core.serialize import pickle as _pickle
except ImportError:  # pragma: no cover - another numba
    _Cache = object  # type: ignore[assignment,misc]
    CompileResultCacheImpl = None  # type: ignore[assignment,misc]

# Parts need more of numba's internals than can be checked here. Versions that no test has run with do without. The oldest
# that are supported have been tried.
_LAST_TRIED = (0, 68)
parts: Any = None
if numba.version_info.short <= _LAST_TRIED:
    from dice_envs.core import parts


# --- keys -------------------------------------------------------------------------------------------------------------

_PLAIN = {type(None), bool, int, float, complex, str, bytes, types.EllipsisType}  # `repr` tells their values apart
_CODE = ["co_code", "co_names", "co_varnames", "co_freevars", "co_cellvars", "co_flags", "co_exceptiontable"]
_CODE += ["co_argcount", "co_posonlyargcount", "co_kwonlyargcount"]
_read_code = operator.attrgetter(*_CODE)
_IN_LIBRARIES = (types.FunctionType, types.BuiltinFunctionType, type, np.ufunc, type(np.sum))
_LIBRARIES = ("builtins", "cmath", "math", "numba", "numpy", "operator")  # their versions are part of every key
_MISSING = object()


class _NoKeyError(Exception):
    """A kernel depends on something that has no key, or that has changed since the kernel was compiled."""


class _Content:
    """A hash of values, the same in every process that has the same values. `_NoKeyError` says that one has none.

    Attributes:
        functions: those met among the values, in order; their own contents are not part of the hash.
    """

    def __init__(self, values: Iterable[Any], names: Iterable[str] = ()) -> None:
        """Hash the values; of a module, only those attributes that are in `names`."""
        self._hash = hashlib.sha256()
        self._names = sorted(names)
        self._modules: list[types.ModuleType] = []
        self.functions: list[types.FunctionType] = []
        for value in values:
            self._add(value)
        self.digest = self._hash.digest()

    def _write(self, kind: str, data: bytes) -> None:
        self._hash.update(b"%s %d " % (kind.encode(), len(data)))
        self._hash.update(data)

    def _add_all(self, kind: str, values: Iterable[Any]) -> None:
        values = tuple(values)
        self._write(kind, str(len(values)).encode())
        for value in values:
            self._add(value)

    def _add(self, value: Any) -> None:
        kind = type(value)
        if kind in _PLAIN:
            self._write(kind.__name__, repr(value).encode())
        elif kind is types.CodeType:
            self._write("code", repr(list(_read_code(value))).encode())
            self._add(value.co_consts)
            if vars(numba.config).get("DEBUGINFO_DEFAULT"):
                self._add_all("lines", (value.co_filename, value.co_firstlineno, value.co_linetable))
        elif kind in (tuple, list) and all(type(each) in _PLAIN for each in value):
            self._write("plain", repr(value).encode())
        elif kind in (tuple, list):
            self._add_all(kind.__name__, value)
        elif kind is dict:
            self._add_all("dict", sorted(value.items(), key=repr))
        elif kind is frozenset and all(type(each) in _PLAIN for each in value):
            self._write("frozenset", repr(sorted(map(repr, value))).encode())
        elif isinstance(value, (np.ndarray, np.generic)) and not value.dtype.hasobject:
            self._write(kind.__name__, f"{value.dtype!r} {value.shape} {value.flags}".encode())
            self._write("data", value.tobytes())
        elif isinstance(value, enum.Enum):
            self._add_all("member", (kind, value.name))
        elif isinstance(value, tuple) and hasattr(value, "_fields"):
            self._add_all("named tuple", (kind, tuple(value)))
        elif isinstance(value, Dispatcher):
            self._write("function", str(len(self.functions)).encode())
            self.functions.append(value.py_func)
            self._add_all("options", (value.targetoptions, value.locals))
        else:
            self._add_type_or_module(value)

    def _add_type_or_module(self, value: Any) -> None:
        module = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None) or "numpy"
        if isinstance(value, numba.types.Dispatcher):
            self._add(value.dispatcher)
        elif isinstance(value, numba.types.Type) and not isinstance(value, numba.types.ClassInstanceType):
            self._add_all(type(value).__name__, (value.key,))
        elif isinstance(value, np.dtype) and not value.hasobject:
            self._write("dtype", repr(value).encode())
        elif isinstance(value, (*_IN_LIBRARIES, types.ModuleType)) and module.partition(".")[0] in _LIBRARIES:
            self._write("library", f"{module} {value.__name__}".encode())
        elif isinstance(value, types.ModuleType):
            if value not in self._modules:
                self._modules.append(value)
                found = ((name, getattr(value, name, _MISSING)) for name in self._names)
                self._add_all("module", (pair for pair in found if pair[1] is not _MISSING))
        elif isinstance(value, enum.EnumType):
            self._add_all("enum", ((name, value[name].value) for name in value.__members__))
        elif isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields"):
            self._add_all(
                "fields", (value.__module__, value.__qualname__, value._fields, getattr(value, "_field_defaults", None))
            )
        elif isinstance(value, type) and issubclass(value, Exception):
            self._add_all("exception", (value.__module__, value.__qualname__))
        else:
            raise _NoKeyError(f"{type(value).__name__} {getattr(value, '__name__', '')}")


_NUMBERS = "random"  # machine code from before they were is not used
_MADE_BY = _Content([parts and parts.CODE, _NUMBERS]).digest
_COMPILER = (numba.__version__, llvmlite.__version__, np.__version__, sys.version, _MADE_BY)
_first: weakref.WeakKeyDictionary[types.FunctionType, tuple[bytes, list[types.FunctionType]]] = weakref.WeakKeyDictionary()


@functools.cache
def _loaded(code: types.CodeType) -> set[str]:
    """The global names that byte code loads; `co_names` has names of attributes, too."""
    return {each.argval for each in dis.get_instructions(code) if each.opname == "LOAD_GLOBAL"}


def _frozen(function: types.FunctionType) -> _Content:
    """What the machine code of a function depends on, without that of the functions that it calls."""
    codes = [function.__code__]
    for code in codes:
        codes += (each for each in code.co_consts if isinstance(each, types.CodeType))
    names = {name for code in codes for name in code.co_names}
    loaded = {name for code in codes for name in _loaded(code)}
    named = [(name, function.__globals__[name]) for name in sorted(loaded & function.__globals__.keys())]
    defaults = function.__defaults__, function.__kwdefaults__
    content = _Content((function.__code__, defaults, *_closed(function), *named), names)
    found = content.digest, content.functions
    # Code compiled in this process froze the first values; it must never be cached under the key of later ones.
    if _first.setdefault(function, found) != found:
        raise _NoKeyError(f"{function.__qualname__} depends on a value that has changed")
    return content


def _named(function: types.FunctionType) -> _Content:
    """What tells a function apart from others that stay when its source is edited: its name and its closure."""
    return _Content((function.__module__, function.__qualname__, *_closed(function)))


def _closed(function: types.FunctionType) -> list[Any]:
    return [("empty",) if cell == types.CellType() else cell.cell_contents for cell in function.__closure__ or ()]


def _hash_of_all(compiled: Any, content: Callable[[types.FunctionType], _Content]) -> str:
    """Hash the contents of a kernel and of all functions that it reaches, numbered since they may call each other."""
    start = _Content([compiled])
    digest, numbers = hashlib.sha256(start.digest), dict.fromkeys(start.functions, 0)
    waiting = list(numbers)
    for function in waiting:
        found = content(function)
        fresh = dict.fromkeys(each for each in found.functions if each not in numbers)
        waiting += fresh
        numbers |= zip(fresh, range(len(numbers), len(waiting)))
        digest.update(found.digest + repr([numbers[each] for each in found.functions]).encode())
    return digest.hexdigest()


# --- the cache --------------------------------------------------------------------------------------------------------


class _KernelCache(_Cache):
    """Machine code on disk: a file for each kernel, key, argument types and settings of numba that change the code.

    File names contain the whole key, so processes that compile at the same time never mix up their files.
    """

    def __init__(self, compiled: Any, form: str) -> None:
        self._compiled, self._form = compiled, form
        self._enabled = True

    @functools.cached_property
    def _impl(self) -> Any:
        return CompileResultCacheImpl(self._compiled.py_func)

    @functools.cached_property
    def _folder(self) -> Path:
        return Path(self._impl.locator.get_cache_path())

    @property
    def cache_path(self) -> str:
        return str(self._folder)

    @functools.cached_property
    def prefix(self) -> str:
        """Begins the names of all files of this kernel, whatever its source was."""
        named = f"{self._form} {sys.flags.optimize} {_hash_of_all(self._compiled, _named)}"  # with -O the byte code is another
        return f"{self._compiled.py_func.__name__}-{hashlib.sha256(named.encode()).hexdigest()[:12]}"

    @property
    def key(self) -> str:
        """Hash of all that the kernel is compiled from, as it is now. `_NoKeyError` says that it must not be cached."""
        return _hash_of_all(self._compiled, _frozen)[:16]

    def _file(self, signature: Any, codegen: Any) -> Path | None:
        """The file for these argument types; None where nothing can be cached."""
        if not self._enabled:
            return None
        try:
            settings = [vars(numba.config).get(name) for name in _SETTINGS]
            arguments = _Content(getattr(signature, "args", signature))
            if arguments.functions:  # their code would have to be part of the key
                return None
            rest = repr((arguments.digest, codegen.magic_tuple(), settings, _COMPILER))
            return self._folder / f"{self.prefix}-{self.key}-{hashlib.sha256(rest.encode()).hexdigest()[:16]}.nbc"
        except _NoKeyError:
            return None
        except Exception as problem:  # numba's internals differ, or no folder can be written
            self._enabled = False
            warn_not_kept("NUMBA_CACHE_DIR", f"{type(problem).__name__}: {problem}")
            return None

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        path = self._file(sig, target_context.codegen())
        if path is None:
            return None
        try:
            loaded = self._rebuild(target_context, _pickle.loads(read_bytes(path, _MOST_BYTES)))
        except Exception:  # there is none; a damaged one counts as missing
            return None
        with contextlib.suppress(OSError):  # gone already, or not ours
            if time.time() - path.stat().st_mtime > _UNUSED_AFTER / 2:
                os.utime(path)  # it is used
        # Unpickling makes a class of __main__ anew, and code compiled for the copy would never be called.
        return loaded if loaded.signature.args == tuple(getattr(sig, "args", sig)) else None

    def _rebuild(self, target_context: Any, payload: Any) -> Any:
        if parts is None:
            target_context.refresh()
        else:
            parts.prepare(target_context, payload)
        return self._impl.rebuild(target_context, payload)

    def save_overload(self, sig: Any, data: Any) -> None:
        target = self._file(sig, data.codegen)
        if target is None or not self._impl.check_cachable(data):
            return
        payload = dumps(self._impl.reduce(data))
        self._enabled = keep_file(target, lambda temporary: temporary.write_bytes(payload), "NUMBA_CACHE_DIR")
        remove_left_overs(self._folder, older_than=ABANDONED_AFTER)
        self._remove_stale(target)

    def _remove_stale(self, written: Path) -> None:
        """Remove this kernel's code for other sources, and code under its name that has not been used for long."""
        current = written.name.rpartition("-")[0]
        for old in self._folder.glob(f"{self._compiled.py_func.__name__}-*.nbc"):
            stale = old.name.startswith(f"{self.prefix}-") and not old.name.startswith(f"{current}-")
            with contextlib.suppress(OSError):  # another process has removed it, or it is not ours
                if stale or time.time() - old.stat().st_mtime > _UNUSED_AFTER:
                    old.unlink()

    def enable(self) -> None:
        self._enabled = True

    def disable(self) -> None:
        self._enabled = False

    def flush(self) -> None:
        for path in self._folder.glob(f"{self.prefix}-*.nbc"):
            path.unlink(missing_ok=True)


class _PartCache(_KernelCache):
    """LLVM code on disk, of kernels as parts of others."""

    def _rebuild(self, target_context: Any, payload: Any) -> Any:
        return parts.rebuild_part(target_context, payload)


def identity(compiled: Any) -> str | None:
    """A hash of all that a kernel is compiled from, the same in every process; None if it is not cached."""
    cache = getattr(compiled, "_cache", None)
    try:
        return cache.key if isinstance(cache, _KernelCache) else None
    except _NoKeyError:
        return None


def is_kernel(function: Any) -> bool:
    """Whether kernels can call a function: it is compiled, or kernels run as plain Python."""
    return callable(function) and (hasattr(function, "py_func") or bool(vars(numba.config).get("DISABLE_JIT")))


def makes_arrays(compiled: Any) -> bool:
    """Whether a kernel may make arrays. Kernels that call it must then have `allocates` too."""
    return bool(getattr(compiled, "targetoptions", {}).get("_nrt", True))


@overload
def kernel(function: _F) -> _F: ...
@overload
def kernel(
    *, allocates: bool = True, inline: bool = False, merge: bool = False, short_loops: bool = False
) -> Callable[[_F], _F]: ...
@overload
def kernel(
    function: _F, *, allocates: bool = True, inline: bool = False, merge: bool = False, short_loops: bool = False
) -> _F: ...
def kernel(
    function: Callable[..., Any] | None = None,
    *,
    allocates: bool = True,
    inline: bool = False,
    merge: bool = False,
    short_loops: bool = False,
) -> Any:
    """Compile a function with numba in nopython mode, without the GIL, and cache it on disk.

    Args:
        function: the function, when used as a bare decorator.
        allocates: False for kernels that make no arrays. Skips reference counting of array arguments, a large cost
            when small kernels call each other. (numba's own option `_nrt`; ignored where it is unknown.)
        inline: True to copy the kernel's code into every caller, which saves passing its many parameters in a loop.
            (numba's own option `forceinline`; ignored where it is unknown.)
        merge: True to copy the kernel's source into its caller, of which there should be one. (numba's
            `inline="always"`.) Other kernels have parts, which are compiled once and optimised in each caller (`parts`).
        short_loops: True not to vectorise what Python calls: a rule's loops over faces or seats are too short to gain from it.

    Returns:
        A numba dispatcher; with `NUMBA_DISABLE_JIT=1` the function itself. Type checkers see the function's own type, and
        so report a kernel whose arguments differ from the contract's.
    """
    if function is None:
        return functools.partial(kernel, allocates=allocates, inline=inline, merge=merge, short_loops=short_loops)
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
    if not allocates and "_nrt" in _TARGET_OPTIONS:
        options["_nrt"] = False
    if inline and "forceinline" in _TARGET_OPTIONS:
        options["forceinline"] = True
    if merge:
        options["inline"] = "always"
    compiled: Any = numba.njit(**options)(function)
    if compiled is not function and not merge and parts is not None:
        compiled = parts.with_part(compiled, short_loops)
    if compiled is function:
        return compiled
    try:
        compiled._cache = _KernelCache(compiled, "short loops" if short_loops else "")
        if parts is not None and isinstance(compiled, parts.Kernel):
            compiled.part._cache = _PartCache(compiled, "part")
    except Exception as problem:  # numba's internals differ, or the source is not a file
        warn_not_kept("NUMBA_CACHE_DIR", f"{type(problem).__name__}: {problem}")
    return compiled
