"""How the engine is compiled: `compiled` is numba's `njit` with a cache that cannot go stale."""

import hashlib
import os
import tempfile
from collections import namedtuple
from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import copy
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import llvmlite.binding
import numba
from numba import config
from numba.core.caching import FunctionCache
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher
from numba.core.sigutils import normalize_signature

# numba looks for changes only in the file of the function it caches, so a change in a function that
# is called from another file would go unnoticed. A cache folder named after the sources cures that.
ROOMS = (
    *("tickets", "resources", "sim/state", "sim/queue", "sim/node", "sim/events", "sim/forecast"),
    *("sim/assembly", "score", "learn"),
)
"""Folders of env/ whose files hold what is compiled, or the constants in it."""
OURS = ("env.", "agents.", "benchmarks.")


def _cache_folder() -> Path:
    digest = hashlib.sha256(f"{numba.__version__} {config.BOUNDSCHECK}".encode())
    for room in ROOMS:
        for source in sorted((Path(__file__).parent.parent / room).glob("*.py")):
            digest.update(source.read_bytes())
    home = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "serverless-scheduling"
    # The temporary folder is everybody's, so what stands in it has the user's number in its name.
    shared = Path(tempfile.gettempdir()) / f"serverless-scheduling-{os.getuid()}"
    for parent in (home, shared):
        with suppress(OSError, RuntimeError):  # RuntimeError: the user has no home
            folder = parent.expanduser() / digest.hexdigest()[:16]
            folder.mkdir(parents=True, exist_ok=True)
            if os.access(folder, os.W_OK):
                return folder
    raise OSError(f"no folder for compiled code: neither {home} nor {shared} can be written to")


if not os.environ.get("NUMBA_CACHE_DIR"):
    config.CACHE_DIR = str(_cache_folder())

# The engine allocates nothing, so reference counting (nrt) is off: 1.3 times the decisions a second
# of benchmarks/simulator.py. Without wrappers for C it compiles in 42 s in place of 50 s. Without
# the lock of the interpreter (nogil) other threads run meanwhile.
OPTIONS = {
    "nopython": True,
    "boundscheck": None,  # NUMBA_BOUNDSCHECK says it
    "error_model": "numpy",
    "nogil": True,
    "_nrt": False,
    "no_cfunc_wrapper": True,
}


class _Compiled(CPUDispatcher):
    """A compiled function: part of its callers (`forceinline`), or compiled once, apart from them.

    Callers of a function apart know its name alone, under which its address is noted. Whatever is
    read from the cache has read before what it calls: numba's `_reload_init`. With plain `njit` in
    its place, which compiles a function again in each of its callers, benchmarks/simulator.py takes
    119 s of processor time to compile instead of 42 s, and 43 MB of cache instead of 20 MB; what it
    compiled is as fast (numba 0.68).
    """

    @global_compiler_lock
    def compile(self, sig: Any) -> Any:
        """As numba does; then, of a function apart, its name takes the place of its code."""
        args, _ = normalize_signature(sig)
        finished = args in self.overloads
        entry = super().compile(sig)
        result = self.overloads[args]
        result.library._reload_init.update(result.reload_init)
        if finished or self.targetoptions.get("forceinline"):
            return entry
        named = copy(result.fndesc)
        named.mangled_name = f"{self.__module__}.{self.__qualname__}{args}"
        address = result.library.get_pointer_to_function(result.fndesc.llvm_func_name)
        llvmlite.binding.add_symbol(named.mangled_name, address)
        reader = result.codegen.create_library(named.mangled_name)
        reader._shared_module = llvmlite.binding.parse_assembly("")
        reader._reload_init.add(partial(_read, self.__module__, self.__qualname__, args))
        reader.finalize()
        self.targetctx.remove_user_function(entry)
        self.targetctx.insert_user_function(entry, named, [reader])
        return entry


def _read(module: str, name: str, args: tuple[Any, ...]) -> None:
    """Makes sure that a function is known under its name."""
    getattr(import_module(module), name).compile(args)


class _Cache(FunctionCache):
    """numba's; functions are known by their names, as their code differs in every process."""

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return sig, codegen.magic_tuple(), _names(self._py_func)


def _names(function: Any) -> tuple[str, ...]:
    """The name of a function, and those of the functions that it is made with."""
    inner = (cell.cell_contents.py_func for cell in function.__closure__ or ())
    name = f"{function.__module__}.{function.__qualname__}"
    return name, *(name for each in inner for name in _names(each))


def compiled(function: Callable[..., Any], forceinline: bool = True) -> Any:
    """For functions that are small or called in one place: inlined, 1.1 times the decisions."""
    dispatcher = _Compiled(function, targetoptions={**OPTIONS, "forceinline": forceinline})
    # No cache folder is named after the sources of what others write.
    if all(name.startswith(OURS) for name in _names(function)):
        dispatcher._cache = _Cache(function)
    return dispatcher


def compiled_apart(function: Callable[..., Any]) -> Any:
    """For all others: compiled once, not again in everything that calls them."""
    return compiled(function, forceinline=False)


def nothing_compiled() -> bool:
    """Whether the cache is empty, so that whatever is called is compiled first."""
    return not any(Path(config.CACHE_DIR).glob("*"))


def places(names: Sequence[str]) -> Any:
    """Where each of several names stands; compiled functions take it for constants."""
    return namedtuple("Places", names)(*range(len(names)))
