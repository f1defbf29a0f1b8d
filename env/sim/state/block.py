"""`State`: all arrays of an episode. What changes is one block of memory, so a fork is one copy.

Compiled code gets a `State` as one small array, that of the addresses of all the others. Plain
numba takes a NamedTuple of the arrays: a call from Python then costs 18 us in place of 3, more than
a decision, and each function that is called from Python compiles 0.7 s longer.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, lower_getattr
from numba.np.arrayobj import array_record_getattr, make_array, populate_array

from env.base.errors import InputError
from env.sim.state import change_records, queue_records, records
from env.tickets import records as shares

INTEGER: Final = np.dtype(np.int64)
FLOAT: Final = np.dtype(np.float64)

# `slots` is the number of workflows that can be active at once, F the largest number of functions
# of a template, S of servers, N of NUMA nodes, W of workflows, K of tenants. Of the central queue
# and of images (queue_records.py): D is the number of declared functions, J of images; these arrays
# are empty where nobody waits centrally and containers neither start cold nor stay warm. X is the
# number of named resources (resources.py) that functions need, mostly none; R that of their places.
# Where no server changes by itself the arrays of that (change_records.py) are empty. Q is how many
# regions there are.
COPIED: Final = {
    "cluster": records.CLUSTER,  # (2,), the second as the first is at time 0
    "servers": records.SERVER,  # (S,)
    "ledger": records.LEDGER,  # (S * K,), of server s for tenant k at s * K + k
    "nodes": records.NUMA_NODE,  # (N,)
    "workflows": records.WORKFLOW,  # (slots,)
    "functions": records.FUNCTION,  # (slots * F,), function fn of slot s at s * F + fn
    "tree": INTEGER,  # (2 * L,), tournament of nodes by next completion, winner at 1
    "free_slots": INTEGER,  # (slots,), ring
    "slot_of": INTEGER,  # (W,), slot of a workflow, or NONE, or RECYCLED
    "log": records.LOG,  # (1,)
    "queue": queue_records.QUEUE,  # (1,)
    "waiting": queue_records.WAITING,  # (D,), one a declared function
    "by_priority": INTEGER,  # (2 * L,), tournament of `waiting`, winner at 1
    "by_age": INTEGER,  # (2 * L,), the same by the number of the first request
    "requests": queue_records.REQUEST,  # (slots * F,)
    "tenants": queue_records.TENANT,  # (K,) where they hold tickets, as have the next
    "currencies": queue_records.CURRENCY,  # (C,)
    # Of the mechanism by which they take turns (env/tickets/records.py).
    "share_head": shares.HEAD,
    "share_clients": shares.CLIENT,
    "share_nodes": shares.NODE,
    "share_pairs": shares.PAIR,
    "images": queue_records.IMAGE,  # (J,)
    "newest": INTEGER,  # (N * J,), newest idle container of image j on node n at n * J + j
    "histograms": INTEGER,  # (J, B), idle times by bin
    "idle_times": FLOAT,  # (J, H), ring of the last idle times, seconds
    "server_plans": change_records.SERVER_PLAN,  # (S,)
    "recovery": change_records.RECOVERY,  # (1,)
    "retried": change_records.RETRIED,  # (slots * F,)
    "named_left": INTEGER,  # (N * R,), what admitted containers of node n leave, from n * R on
}
"""These are copied whole."""
IN_USE: Final = {
    "containers": records.CONTAINER,  # (slots * F + 1,), the last one is the forecast's candidate
    "submitted": records.EVENT,  # (slots * F,), heap of functions to be placed: (time, wf, fn)
    "timers": records.EVENT,  # heap: (time, kind, id)
    "tracked": INTEGER,  # (slots,), slots of workflows, see `tracked_count`
    "completed": records.EVENT,  # (slots * F,), (time, wf, fn) completed since the last placement
    "on_node": queue_records.ON_NODE,  # (K,), without meaning between calls
    "idle": queue_records.IDLE,
    "history": records.ENTRY,  # since it was last taken; empty where nobody ever listens
    "named_taken": INTEGER,  # from c * R on, by container c: where it is admitted
    "named_kept": INTEGER,  # (R,), what a node has left while the forecast plays it
    "scratch": records.PROJECTED,  # (slots * F,), without meaning between calls
}
"""Of these a copy gets what is in use, see `copy_into` in env/sim/assembly/new_state.py."""
CHANGING: Final = {**COPIED, **IN_USE}
FIXED: Final = {
    "options": queue_records.OPTIONS,  # (1,)
    "templates": records.TEMPLATE,  # (T,)
    "template_functions": records.TEMPLATE_FUNCTION,
    "predecessors": records.EDGE,  # per function in ascending id
    "probability": FLOAT,  # of the call along each of `predecessors`
    "successors": records.EDGE,
    "named_first": INTEGER,  # (X + 1,), first place of resource x, and R
    "named_capacity": INTEGER,  # of a node of server type t from t * R on
    "named_needs": INTEGER,  # of resource x by declared function d at d * X + x
    "arrivals": records.ARRIVING,  # (W,), by (time, wf_id)
    "plan": change_records.PLANNED_CHANGE,
    "regions": records.REGION,  # (Q,), one where a cluster has none
    "links": records.LINK,  # (Q * Q,), from region r to t at r * Q + t; empty where there are none
    "intensity": records.INTENSITY,  # of all regions
}
FIELDS: Final = {**CHANGING, **FIXED}
TABLES: Final = ("histograms", "idle_times")
"""Arrays of two dimensions."""
OF_PAIRS: Final = {"ledger": "servers x tenants", "newest": "NUMA nodes x images"}
MACHINE: Final = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
"""Bytes of memory."""

LINE: Final = np.dtype([("words", np.int64, (8,))])
COMPILED: Final = {**FIELDS, "whole": LINE}
"""What compiled code finds, also all that is COPIED as one array, and what its last LINE takes."""

# Of each of them: address, rows, columns.
HANDLE: Final = np.dtype([("words", np.int64, (3 * len(COMPILED),))])


class State(np.ndarray):
    """All arrays of one episode, as attributes of the names in `FIELDS`.

    The object itself is the array of their addresses.
    """

    words: np.ndarray
    block: np.ndarray
    fixed: Mapping[str, np.ndarray]

    @classmethod
    def of(cls, arrays: Mapping[str, np.ndarray]) -> State:
        """A state with copies of the arrays that change; the others are shared.

        Args:
            arrays: by the names in `FIELDS`, all of them.

        Raises:
            InputError: the machine has no memory for them.
        """
        shapes = [arrays[name].shape for name in FIELDS]
        sizes = [arrays[name].nbytes for name in CHANGING]
        if sum(sizes) > MACHINE:
            size, name = max(zip(sizes, CHANGING, strict=True))
            raise InputError(
                f"an episode needs {sum(sizes) / 1e9:.3g} GB, of which the machine has "
                f"{MACHINE / 1e9:.3g}: {size / 1e9:.3g} are for {len(arrays[name])} records "
                f"'{name}' ({OF_PAIRS.get(name, 'for what is active at once')})"
            )
        block = np.empty(sum(sizes), np.uint8)
        words = np.zeros((len(COMPILED), 3), np.int64)
        words[: len(CHANGING), 0] = address(block) + np.cumsum([0, *sizes[:-1]])
        whole = -(-sum(sizes[: len(COPIED)]) // LINE.itemsize)
        words[:, 1] = [*(shape[0] for shape in shapes), whole]
        words[:, 2] = [*(shape[-1] for shape in shapes), whole]
        state = cls._on(words, block, {})
        state._share({name: arrays[name] for name in FIXED})
        for name in CHANGING:
            getattr(state, name)[:] = arrays[name]
        return state

    @classmethod
    def _on(cls, words: np.ndarray, block: np.ndarray, fixed: Mapping[str, np.ndarray]) -> State:
        """A state whose addresses, rows and columns are `words`, (fields, 3)."""
        words[-1, 0] = words[0, 0]  # the whole begins with the first
        state = np.ndarray.__new__(cls, 1, HANDLE, words)
        state.words, state.block, state.fixed = words, block, fixed
        return state

    def _share(self, fixed: Mapping[str, np.ndarray]) -> None:
        self.fixed = fixed
        for row, (name, dtype) in enumerate(FIXED.items(), len(CHANGING)):
            array = fixed[name]
            assert array.dtype == dtype and array.flags.c_contiguous
            self.words[row] = address(array), len(array), len(array)

    def __getattr__(self, name: str) -> np.ndarray:
        """An array, made when it is first asked for."""
        if name in FIXED:
            array = self.fixed[name]
        elif name in CHANGING:
            row = list(CHANGING).index(name)
            start, rows, columns = self.words[row].tolist()
            shape = (rows, columns) if name in TABLES else (rows,)
            offset = start - address(self.block)
            array = np.ndarray(shape, CHANGING[name], self.block, offset)
        else:
            raise AttributeError(name)
        self.__dict__[name] = array
        return array

    def replaced(self, **arrays: np.ndarray) -> State:
        """The state with other arrays: the same memory if what changes stays, else a new one."""
        if arrays.keys() <= FIXED.keys():
            other = State._on(self.words.copy(), self.block, {})
            other._share({**self.fixed, **arrays})
            return other
        return State.of({name: getattr(self, name) for name in FIELDS} | arrays)

    @cached_property
    def read_only(self) -> State:
        """The same memory in arrays that cannot be written; compiled code does all the same."""
        fixed = {name: array.view() for name, array in self.fixed.items()}
        other = State._on(self.words, self.block.view(), fixed)
        for array in (other.block, *other.fixed.values()):
            array.flags.writeable = False
        return other

    def blank(self) -> State:
        """A state like this one whose arrays that change are without meaning."""
        words, block = self.words.copy(), np.empty_like(self.block)
        words[: len(CHANGING), 0] += address(block) - address(self.block)
        return State._on(words, block, self.fixed)

    def copies(self, count: int) -> tuple[list[State], np.ndarray]:
        """Independent copies, and the handles of all of them side by side: (count,) HANDLE."""
        blocks = np.repeat(self.block[None], count, axis=0)
        words = np.repeat(self.words[None], count, axis=0)
        moved = [address(block) - address(self.block) for block in blocks]
        words[:, : len(CHANGING), 0] += np.array(moved)[:, None]
        states = [State._on(*each, self.fixed) for each in zip(words, blocks, strict=True)]
        return states, words.reshape(count, -1).view(HANDLE).reshape(count)

    def use(self, rows: Mapping[str, int], **fixed: np.ndarray) -> None:
        """Makes the first rows of some arrays all that is used of them, and shares others."""
        for name, count in rows.items():
            self.words[list(CHANGING).index(name), 1] = count
        for name in (*rows, *fixed):
            self.__dict__.pop(name, None)
        self._share({**self.fixed, **fixed})

    def __deepcopy__(self, memo: dict[int, Any] | None) -> State:
        other = self.blank()
        other.block[:] = self.block
        return other

    def __reduce__(self) -> tuple[Any, ...]:
        return State.of, ({name: np.array(getattr(self, name)) for name in FIELDS},)


def address(array: np.ndarray) -> int:
    """Where the data of an array begin."""
    start: int = array.ctypes.data
    return start


# How compiled code finds an array: by its address, which is invariant as long as a call lasts.

HANDLE_TYPE: Final = numba.from_dtype(HANDLE)
ARRAY_TYPES: Final = {
    name: types.Array(numba.from_dtype(dtype), 2 if name in TABLES else 1, "C")
    for name, dtype in COMPILED.items()
}


@infer_getattr
class _Arrays(AttributeTemplate):
    key = types.Array

    def generic_resolve(self, state: types.Array, name: str) -> types.Array | None:
        return ARRAY_TYPES.get(name) if state.dtype == HANDLE_TYPE else None


def _lower(row: int, name: str) -> None:
    array_type = ARRAY_TYPES[name]

    @lower_getattr(types.Array, name)
    def look_up(context: Any, builder: Any, given: types.Array, value: Any) -> Any:
        if given.dtype != HANDLE_TYPE:
            return array_record_getattr(context, builder, given, value, name)
        integer = ir.IntType(64)
        words = builder.bitcast(
            make_array(given)(context, builder, value).data, integer.as_pointer()
        )
        invariant = builder.module.add_metadata([])

        def word(part: int) -> Any:
            loaded = builder.load(builder.gep(words, [ir.Constant(integer, 3 * row + part)]))
            loaded.set_metadata("invariant.load", invariant)
            return loaded

        array = make_array(array_type)(context, builder)
        itemsize = ir.Constant(integer, COMPILED[name].itemsize)
        shape, strides = [word(1)], [itemsize]
        if array_type.ndim == 2:
            shape.append(word(2))
            strides.insert(0, builder.mul(shape[1], itemsize))
        populate_array(
            array,
            data=builder.inttoptr(word(0), array.data.type),
            shape=cgutils.pack_array(builder, shape),
            strides=cgutils.pack_array(builder, strides),
            itemsize=itemsize,
            meminfo=None,
        )
        return array._getvalue()


for _row, _name in enumerate(COMPILED):
    _lower(_row, _name)
