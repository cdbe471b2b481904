"""The decorator that compiles kernels and caches the machine code on disk.

`numba.njit(cache=True)` notices a change only in the function's own file, and never reuses cached closures.
Here the cache key holds a hash, the stamp, of every source file of `dice_envs`, of the package a kernel lives in and
of the packages of the kernels that it calls (the rules of a game may be a user's own file), so any edit recompiles.
The key also holds a tag and the names of the kernels in the closure, and of theirs: they tell apart kernels that are
built by the same function.

Only this file and `parts` rely on numba's internals. If they change, kernels still compile and run, but are not
cached, and one warning says so. `parts` is left out with versions of numba newer than those it was tried with.
`NUMBA_DISABLE_JIT=1` runs every kernel as plain Python.
"""

from __future__ import annotations

import functools
import hashlib
import os
import sys
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, overload

import numba
import numpy as np

from dice_envs.core.files import ABANDONED_AFTER, atomic, remove_left_overs

__all__ = ["identity", "is_kernel", "kernel", "makes_arrays", "package_stamp"]

_F = TypeVar("_F", bound=Callable[..., Any])

_OWN_PACKAGE = Path(__file__).resolve().parent.parent
_EMPTY_CELL = types.CellType()  # the cell of a name that has no value yet
# Settings that change the machine code: NUMBA_BOUNDSCHECK, NUMBA_DEBUGINFO, NUMBA_OPT.
_SETTINGS = ("BOUNDSCHECK", "DEBUGINFO_DEFAULT", "OPT")

# Every state begins with its stream, so a helper compiled for one record type is used for others. numba warns of that.
warnings.filterwarnings("ignore", message=r"Record\(rng", category=numba.NumbaExperimentalFeatureWarning)

_TARGET_OPTIONS: Any = None
try:
    from numba.core.registry import CPUTarget  # type: ignore[import-untyped,unused-ignore]

    _TARGET_OPTIONS = getattr(CPUTarget, "options", None)
except ImportError:  # pragma: no cover
    pass

try:
    from numba.core.caching import CompileResultCacheImpl, _Cache, dumps
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


@functools.cache
def _digest_of_sources(folder: Path) -> bytes:
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.digest()


def package_stamp(*source_files: str | os.PathLike[str]) -> str:
    """A short hash of every source file that a kernel may use if it and the kernels that it calls are in `source_files`.

    These are all files of `dice_envs` and of the top-level packages that `source_files` belong to; a lone script counts as
    a package. The sources of a package are read once per process.
    """
    digest = hashlib.sha256(_digest_of_sources(_OWN_PACKAGE))
    for root in sorted({_root_of(os.fspath(file)) for file in source_files} - {_OWN_PACKAGE}):
        if root.is_dir():
            digest.update(_digest_of_sources(root))
        else:
            digest.update(root.read_bytes() if root.exists() else b"")
    return digest.hexdigest()[:16]


@functools.cache
def _root_of(source_file: str) -> Path:
    """The folder of the top-level package that the file belongs to, or a lone script itself."""
    path = Path(source_file).resolve()
    package = path.parent
    while (package.parent / "__init__.py").exists():
        package = package.parent
    return package if (package / "__init__.py").exists() else path


def _called(function: Callable[..., Any]) -> list[Any]:
    """The functions and kernels that a function may call: those it closes over, then those of its module that it names."""
    closed = (cell.cell_contents for cell in function.__closure__ or () if cell != _EMPTY_CELL)
    named = (function.__globals__.get(name) for name in function.__code__.co_names)
    return [value for value in (*closed, *named) if hasattr(getattr(value, "py_func", value), "__code__")]


class _KernelCache(_Cache):
    """Machine code on disk: a file for each kernel, tag, stamp, argument types and settings of numba that change the code.

    File names contain the whole key, so processes that compile at the same time never mix up their files.
    """

    def __init__(self, function: Callable[..., Any], tag: str) -> None:
        self._impl = CompileResultCacheImpl(function)
        self._folder = Path(self._impl.locator.get_cache_path())
        names, sources = [f"{function.__module__}.{function.__qualname__}", tag], {function.__code__.co_filename}
        for called in _called(function):
            plain = getattr(called, "py_func", called)
            names.append(identity(called) or f"{plain.__module__}.{plain.__qualname__}")
            sources |= getattr(getattr(called, "_cache", None), "sources", {plain.__code__.co_filename})
        self.sources = frozenset(sources)  # the files of the kernel and of the kernels that it calls
        # One hash of the names and the tag keeps the file name short.
        self.prefix = f"{function.__name__}-{hashlib.sha256(':'.join(names).encode()).hexdigest()[:12]}"
        self._stamp = package_stamp(*sources)
        self._enabled = True

    @property
    def cache_path(self) -> str:
        return str(self._folder)

    def _file(self, signature: Any, codegen: Any) -> Path:
        settings = [getattr(numba.config, name, None) for name in _SETTINGS]
        key = (str(signature), codegen.magic_tuple(), settings, numba.__version__, sys.version, np.__version__)
        return self._folder / f"{self.prefix}-{self._stamp}-{hashlib.sha256(repr(key).encode()).hexdigest()[:16]}.nbc"

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        if not self._enabled:
            return None
        try:
            payload = _pickle.loads(self._file(sig, target_context.codegen()).read_bytes())
            loaded = self._rebuild(target_context, payload)
        except FileNotFoundError:
            return None
        except Exception:  # a damaged file counts as missing
            return None
        # Unpickling makes a class of __main__ anew, and code compiled for the copy would never be called.
        return loaded if loaded.signature.args == tuple(getattr(sig, "args", sig)) else None

    def _rebuild(self, target_context: Any, payload: Any) -> Any:
        if parts is None:
            target_context.refresh()
        else:
            parts.prepare(target_context, payload)
        return self._impl.rebuild(target_context, payload)

    def save_overload(self, sig: Any, data: Any) -> None:
        if not self._enabled or not self._impl.check_cachable(data):
            return
        target = self._file(sig, data.codegen)
        try:
            payload = dumps(self._impl.reduce(data))
            self._folder.mkdir(parents=True, exist_ok=True)
            with atomic(target) as temporary:
                temporary.write_bytes(payload)
            remove_left_overs(self._folder, older_than=ABANDONED_AFTER)
            for old in self._folder.glob(f"{self.prefix}-*.nbc"):
                if not old.name.startswith(f"{self.prefix}-{self._stamp}-"):
                    old.unlink(missing_ok=True)
        except OSError:  # on a read-only or full disk kernels run without a cache
            self._enabled = False

    def enable(self) -> None:
        self._enabled = True

    def disable(self) -> None:
        self._enabled = False

    def flush(self) -> None:
        for path in self._folder.glob(f"{self.prefix}-*.nbc"):
            path.unlink(missing_ok=True)


class _PartCache(_KernelCache):
    """LLVM code on disk, of kernels as parts of others."""

    def __init__(self, function: Callable[..., Any], tag: str) -> None:
        super().__init__(function, f"{tag} part")

    def _rebuild(self, target_context: Any, payload: Any) -> Any:
        return parts.rebuild_part(target_context, payload)


def identity(compiled: Any) -> str | None:
    """A kernel's unique name, for the tags of kernels built around it; None if it is not cached."""
    cache = getattr(compiled, "_cache", None)
    return cache.prefix if isinstance(cache, _KernelCache) else None


def is_kernel(function: Any) -> bool:
    """Whether kernels can call a function: it is compiled, or kernels run as plain Python."""
    return callable(function) and (hasattr(function, "py_func") or kernel(_nothing) is _nothing)


def _nothing() -> None:
    pass


def makes_arrays(compiled: Any) -> bool:
    """Whether a kernel may make arrays. Kernels that call it must then have `allocates` too."""
    return bool(getattr(compiled, "targetoptions", {}).get("_nrt", True))


_warned = False


def _warn_uncached(reason: str) -> None:
    """Warn that kernels are not cached, once per process, since usually this concerns all of them."""
    global _warned
    if not _warned:
        _warned = True
        message = f"dice_envs recompiles its kernels in every process: {reason} (NUMBA_CACHE_DIR can name a folder for them)"
        warnings.warn(message, RuntimeWarning, stacklevel=4)


@overload
def kernel(function: _F) -> _F: ...
@overload
def kernel(
    *, tag: str = "", cache: bool = True, allocates: bool = True, inline: bool = False, merge: bool = False
) -> Callable[[_F], _F]: ...
@overload
def kernel(
    function: _F, *, tag: str = "", cache: bool = True, allocates: bool = True, inline: bool = False, merge: bool = False
) -> _F: ...
def kernel(
    function: Callable[..., Any] | None = None,
    *,
    tag: str = "",
    cache: bool = True,
    allocates: bool = True,
    inline: bool = False,
    merge: bool = False,
) -> Any:
    """Compile a function with numba in nopython mode, without the GIL, and cache it on disk.

    Args:
        function: the function, when used as a bare decorator.
        tag: tells this kernel apart from others with the same qualified name, for example by the name of the game. Needed
            for kernels built inside a function, because their machine code depends on their closure.
        cache: False for kernels whose closure no tag can describe.
        allocates: False for kernels that make no arrays. Skips reference counting of array arguments, a large cost
            when small kernels call each other. (numba's own option `_nrt`; ignored where it is unknown.)
        inline: True to copy the kernel's code into every caller, which saves passing its many parameters in a loop.
            (numba's own option `forceinline`; ignored where it is unknown.)
        merge: True to copy the kernel's source into its caller, of which there should be one. (numba's
            `inline="always"`.) Other kernels have parts, which are compiled once and optimised in each caller (`parts`).

    Returns:
        A numba dispatcher; with `NUMBA_DISABLE_JIT=1` the function itself. Type checkers see the function's own type, and
        so report a kernel whose arguments differ from the contract's.
    """
    if function is None:
        return functools.partial(kernel, tag=tag, cache=cache, allocates=allocates, inline=inline, merge=merge)
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
    if not allocates and hasattr(_TARGET_OPTIONS, "_nrt"):
        options["_nrt"] = False
    if inline and hasattr(_TARGET_OPTIONS, "forceinline"):
        options["forceinline"] = True
    if merge:
        options["inline"] = "always"
    compiled: Any = numba.njit(**options)(function)
    if compiled is not function and not merge and parts is not None:
        compiled = parts.with_part(compiled)
    if compiled is function or not cache:
        return compiled
    try:
        compiled._cache = _KernelCache(function, tag)
        if parts is not None and isinstance(compiled, parts.Kernel):
            compiled.part._cache = _PartCache(function, tag)
    except Exception as problem:  # numba's internals differ, or the source is not a file
        _warn_uncached(f"{type(problem).__name__}: {problem}")
    return compiled
