"""How the engine is compiled: `compiled` is numba's `njit` with a cache that cannot go stale."""

import hashlib
import os
import tempfile
from collections import namedtuple
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numba
from numba import config
from numba.core.event import Event, Listener, register

# numba looks for changes only in the file of the function it caches, so a change in a function that
# is called from another file would go unnoticed. A cache folder named after all sources cures that.


def _cache_folder() -> Path:
    digest = hashlib.sha256(f"{numba.__version__} {config.BOUNDSCHECK}".encode())
    for source in sorted(Path(__file__).parent.parent.glob("**/*.py")):
        digest.update(source.read_bytes())
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    name = Path("serverless-scheduling") / digest.hexdigest()[:16]
    for parent in (base, Path(tempfile.gettempdir())):
        try:
            (parent / name).mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(parent / name, os.W_OK):
            return parent / name
    raise OSError(
        f"no folder for compiled code: neither {base} nor the temporary folder is writable"
    )


if not os.environ.get("NUMBA_CACHE_DIR"):
    config.CACHE_DIR = str(_cache_folder())

# The engine allocates nothing, so reference counting is switched off: with it, every call pays for
# all the arrays of a `State`, which made decisions six times slower. Without the lock of the
# interpreter (nogil) other threads run meanwhile. And calls are inlined: each would hand on all the
# words of all these arrays, which cost a quarter of a decision; compiling takes no longer.
compiled = numba.njit(cache=True, error_model="numpy", nogil=True, forceinline=True, _nrt=False)

# For what happens seldom: it is compiled once, not again in everything that calls it.
compiled_apart = numba.njit(cache=True, error_model="numpy", nogil=True, _nrt=False)


class _First(Listener):
    """Calls a function at the first compilation that no cache spares."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call: Callable[[], None] | None = call

    def on_start(self, event: Event) -> None:
        call, self._call = self._call, None
        if call is not None:
            call()

    def on_end(self, event: Event) -> None:
        pass


def before_compiling(call: Callable[[], None]) -> None:
    """Has a function called once, before the first compilation of this process."""
    register("numba:compile", _First(call))


def places(names: Sequence[str]) -> Any:
    """Where each of several names stands; compiled functions take it for constants."""
    return namedtuple("Places", names)(*range(len(names)))
