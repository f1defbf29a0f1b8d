"""How the engine is compiled: `compiled` is numba's `njit` with a cache that cannot go stale."""

import hashlib
import os
import tempfile
from collections import namedtuple
from collections.abc import Callable, Sequence
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
    *("tickets", "sim/state", "sim/queue", "sim/node", "sim/events", "sim/forecast"),
    *("sim/assembly", "score", "learn"),
)
"""Folders of env/ whose files hold what is compiled, or the constants in it."""
OURS = ("env.", "agents.", "benchmarks.")


def _cache_folder() -> Path:
    digest = hashlib.sha256(f"{numba.__version__} {config.BOUNDSCHECK}".encode())
    for room in ROOMS:
        for source in sorted((Path(__file__).parent.parent / room).glob("*.py")):
            digest.update(source.read_bytes())
    base = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache")
    # The temporary folder is everybody's, so what stands in it has the user's number in its name.
    shared = Path(tempfile.gettempdir()) / f"serverless-scheduling-{os.getuid()}"
    for parent in (base / "serverless-scheduling", shared):
        try:
            folder = parent.expanduser() / digest.hexdigest()[:16]
            folder.mkdir(parents=True, exist_ok=True)
        except (OSError, RuntimeError):  # RuntimeError: the user has no home
            continue
        if os.access(folder, os.W_OK):
            return folder
    raise OSError(f"no folder for compiled code: neither {base} nor {shared.parent} is writable")


if not os.environ.get("NUMBA_CACHE_DIR"):
    config.CACHE_DIR = str(_cache_folder())

# The engine allocates nothing, so reference counting is switched off. Without the lock of the
# interpreter (nogil) other threads run meanwhile. C never calls what is compiled here.
OPTIONS = {
    "nopython": True,
    "boundscheck": None,  # NUMBA_BOUNDSCHECK says it
    "error_model": "numpy",
    "nogil": True,
    "_nrt": False,
    "no_cfunc_wrapper": True,
}


class _Compiled(CPUDispatcher):
    """A function whose code is part of whatever calls it."""

    @global_compiler_lock
    def compile(self, sig: Any) -> Any:
        """numba's; what is read from the cache hands on which functions have to be read before."""
        entry = super().compile(sig)
        found = self.overloads[normalize_signature(sig)[0]]
        found.library._reload_init.update(found.reload_init)
        return entry


class _Apart(_Compiled):
    """A function whose callers know its name alone, so that it is compiled once.

    Its address is noted under the name, by which callers find it. Those that are read from the
    cache have read before them what they call: numba's `_reload_init`.
    """

    @global_compiler_lock
    def compile(self, sig: Any) -> Any:
        """As above, then the name in place of the code."""
        args, _ = normalize_signature(sig)
        known = args in self.overloads
        entry = super().compile(sig)
        if known:
            return entry
        found = self.overloads[args]
        named = copy(found.fndesc)
        named.mangled_name = f"{self.__module__}.{self.__qualname__}{args}"
        address = found.library.get_pointer_to_function(found.fndesc.llvm_func_name)
        llvmlite.binding.add_symbol(named.mangled_name, address)
        reader = found.codegen.create_library(named.mangled_name)
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
    """Of a function and, in turn, of those that it is made with."""
    inner = (cell.cell_contents.py_func for cell in function.__closure__ or ())
    own = f"{function.__module__}.{function.__qualname__}"
    return own, *(name for each in inner for name in _names(each))


def _cached(dispatcher: Any) -> Any:
    # No cache folder is named after the sources of what others write.
    if all(name.startswith(OURS) for name in _names(dispatcher.py_func)):
        dispatcher._cache = _Cache(dispatcher.py_func)
    return dispatcher


def compiled(function: Callable[..., Any]) -> Any:
    """For functions that are small or called in one place: inlined, as a call has its cost."""
    return _cached(_Compiled(function, targetoptions={**OPTIONS, "forceinline": True}))


def compiled_apart(function: Callable[..., Any]) -> Any:
    """For all others: compiled once, not again in everything that calls them."""
    return _cached(_Apart(function, targetoptions=dict(OPTIONS)))


def nothing_compiled() -> bool:
    """Whether the cache is empty, so that whatever is called is compiled first."""
    return not any(Path(config.CACHE_DIR).glob("*"))


def places(names: Sequence[str]) -> Any:
    """Where each of several names stands; compiled functions take it for constants."""
    return namedtuple("Places", names)(*range(len(names)))
