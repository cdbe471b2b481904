"""A kernel in two forms: one that Python calls, and a part of it that is compiled into other kernels.

numba makes machine code and a wrapper for Python of every function that it compiles, optimises all of it, and does this
again in each caller, which contains the function's code. Most kernels are only called by kernels, so most of that is
never used. A part is LLVM code alone: it is optimised and becomes machine code as part of the kernel that Python calls.

This file relies on numba's internals. Where they differ, `kernel` makes numba's own dispatchers.
"""

from __future__ import annotations

import functools
import gc
import sys
from collections.abc import Callable
from typing import Any, cast

from llvmlite import binding as llvm
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, compile_result
from numba.core.registry import CPUDispatcher
from numba.core.runtime import rtsys

CODE = sys._getframe().f_code  # of this file as it runs, for the keys of what it makes


class _PartLibrary(JITCodeLibrary):
    """LLVM code without machine code."""

    def add_linking_library(self, library: Any) -> None:
        if library is not rtsys.library:  # every kernel that Python calls links it
            super().add_linking_library(library)

    def _optimize_functions(self, ll_module: Any) -> None:
        if not hasattr(self._codegen, "_pass_builder"):  # numba 0.60
            super()._optimize_functions(ll_module)
            return
        ll_module.data_layout = self._codegen._data_layout
        for function in ll_module.functions:
            if not function.is_declaration:
                passes, builder = self._codegen._function_pass_manager(opt=1)
                passes.run(function, builder)

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        dynamic = (each.name for each in self._final_module.global_variables if each.name.startswith("numba.dynamic.globals"))
        self._dynamic_globals.extend(dynamic)  # code with addresses of this process, which numba does not cache
        self._finalized = True

    def serialize_using_object_code(self) -> Any:
        return self.serialize_using_bitcode()


class _ShortLibrary(JITCodeLibrary):
    """Machine code whose loops are not vectorised."""

    def _optimize_final_module(self) -> None:
        made = self._codegen._module_pass_manager(loop_vectorize=False)
        passes, *builder = made if isinstance(made, tuple) else (made,)  # no builder in numba 0.60
        passes.run(self._final_module, *builder)


class _ShortCompiler(Compiler):  # type: ignore[misc]
    """numba's compiler, for kernels with short loops."""

    library: type = _ShortLibrary

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        self.state.library = self.library(self.state.targetctx.codegen(), func.__qualname__)
        self.state.library.enable_object_caching()
        return super().compile_extra(func)


class _PartCompiler(_ShortCompiler):
    """numba's compiler, up to LLVM code."""

    library = _PartLibrary

    def __init__(
        self, typingctx: Any, targetctx: Any, library: Any, args: Any, return_type: Any, flags: Any, locals: Any
    ) -> None:
        flags.no_compile = flags.no_cpython_wrapper = True
        super().__init__(typingctx, targetctx, library, args, return_type, flags, locals)


class _Part(CPUDispatcher):
    """The dispatcher that serves compiled callers of a kernel."""

    def add_overload(self, cres: Any) -> None:
        key = object()  # numba finds the code by it, as it does by the machine code's entry point
        self.targetctx.insert_user_function(key, cres.fndesc, [cres.library])
        self.overloads[tuple(cres.signature.args)] = cres._replace(entry_point=key)


class Kernel(CPUDispatcher):
    """The dispatcher that serves Python."""

    @functools.cached_property
    def part(self) -> Any:
        return _Part(self.py_func, targetoptions=self.targetoptions, pipeline_class=_PartCompiler)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        return self.part.get_call_template(args, kws)

    def get_overload(self, sig: Any) -> Any:
        return self.part.get_overload(sig)

    def compile(self, sig: Any) -> Any:
        """Compile while Python collects no garbage: looking through millions of objects in use takes a tenth of the time."""
        collects = gc.isenabled()
        gc.disable()
        try:
            return super().compile(sig)
        finally:
            if collects:
                gc.enable()

    @property
    def is_compiling(self) -> Any:
        return self._compiling_counter or self.part._compiling_counter

    def add_overload(self, cres: Any) -> None:
        for environment in cres.referenced_envs or cres._find_referenced_environments():  # those of its parts, too
            cres.library.codegen.set_env(environment.env_name, environment)
        super().add_overload(cres)


def with_part(compiled: Any, short_loops: bool) -> Kernel:
    """Give one of numba's dispatchers a part for the kernels that call it."""
    compiled.__class__ = Kernel
    if short_loops:
        compiled._compiler.pipeline_class = _ShortCompiler
    return cast(Kernel, compiled)


def rebuild_part(target_context: Any, payload: tuple[Any, ...]) -> Any:
    """Return numba's compile result of a part from what its `_reduce` returned."""
    (name, _, code), fndesc, environment, signature, objectmode, lifted, annotation, reload_init, referenced_envs = payload
    for function in reload_init:
        function()
    library = _PartLibrary(target_context.codegen(), name)
    library._final_module = llvm.parse_bitcode(code)
    library._finalize_final_module()
    return compile_result(
        target_context=target_context,
        typing_context=target_context.typing_context,
        library=library,
        environment=environment,
        fndesc=fndesc,
        type_annotation=annotation,
        signature=signature,
        objectmode=objectmode,
        lifted=lifted,
        reload_init=reload_init,
        referenced_envs=referenced_envs,
    )


def prepare(target_context: Any, payload: tuple[Any, ...]) -> None:
    """Prepare numba for cached machine code.

    `refresh` prepares it for any code and takes a second, most of it for imports. It is left out only where all symbols of
    the code are known, because loading code with unknown symbols ends the process.
    """
    rtsys.initialize(target_context)
    _, _, (_, code) = payload[0]
    module, engine = llvm.parse_bitcode(code), target_context.codegen()._engine
    for symbol in (*module.functions, *module.global_variables):
        known = not symbol.is_declaration or symbol.name.startswith("llvm.") or engine.is_symbol_defined(symbol.name)
        if not known and not llvm.address_of_symbol(symbol.name):
            target_context.refresh()
            return
