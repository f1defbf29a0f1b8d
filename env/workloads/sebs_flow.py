"""SeBS-Flow: a `definition.json`, and what was measured of its functions, as CSV beside it.

https://github.com/spcl/serverless-benchmarks, Schmid et al., EuroSys 2025. A row of the CSV is one
execution of a function; those of one `request_id` are one run of the workflow.
"""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import numpy as np
from pydantic import Field

from env.base.errors import InputError
from env.base.files import MOST_VALUES, parse_json
from env.base.schema import Recorded, short, validated
from env.sim.declared.bounds import LARGEST_WHOLE
from env.workloads.task_graph import Task, TaskGraph
from env.workloads.traces.csv_file import CsvFile

DEFINITION, MEASURED = "definition.json", "_processed.csv"
"""The name of the one, and how that of the other ends."""
TEXTS = "func", "request_id", "is_cold"
NUMBERS = "start", "end", "blob.download", "blob.upload", "max_mem_used"
"""Unix seconds, bytes, MB; blank where not said, as `is_cold` of orchestrators."""


class _Block(Recorded):
    """States by name, of which `root` is the first."""

    root: str
    states: dict[str, "_State"]


class _Task(Recorded):
    type: Literal["task"]
    func_name: str
    next: str | None = None
    failure: str | None = None


class _Map(_Block):
    """A block for each item of an array, all at once."""

    type: Literal["map"]
    next: str | None = None


class _Parallel(Recorded):
    type: Literal["parallel"]
    parallel_functions: Annotated[list[_Block], Field(min_length=1)]
    next: str | None = None


class _Loop(Recorded):
    """A function for each item of an array, or so often, one after the other."""

    type: Literal["loop", "repeat"]
    func_name: str
    count: Annotated[int, Field(ge=1)] | None = None
    next: str | None = None


_State = Annotated[_Task | _Map | _Parallel | _Loop, Field(discriminator="type")]


class _Profile(NamedTuple):
    """What was measured of a function; its default: nothing."""

    in_a_run: float = 1  # executions, median
    runtime: float | None = None  # s, median of the executions in warm containers, if there are any
    memory: float | None = None  # MB, the most
    download: float = 0  # bytes from the store, median
    upload: float = 0  # bytes to it, median
    cold: bool = False  # whether no container was warm


def read_sebs_flow(definition: bytes, path: Path, max_bytes: int) -> TaskGraph:
    """The workflow of a definition as one CSV file measured it.

    - A map is as wide, and a loop as long, as there were executions of its function in a run.
    - A task that was never measured although it has a `failure` state has failed, and that state
      takes its place: nothing is recorded of a function that raises.
    - Functions exchange data through a store: an edge moves no more than its source uploads, nor
      than its target downloads.
    - Functions use one core: the largest have 2,048 MB, for which AWS gives 1.2 vCPU.

    Raises:
        InputError: the file has no such columns, or the definition names a state that is not there,
            leads back to one or unrolls to too many tasks and edges.
    """
    where = str(path.with_name(DEFINITION))
    block = validated(_Block, parse_json(definition, where), where)
    unrolled = _Unrolled(_profiles(path, max_bytes), where)
    unrolled.block(block, [], 1)
    used = [unrolled.profiles.get(function, _Profile()) for function in unrolled.functions]
    tasks = tuple(
        Task(f"{function}_{at}", function, profile.runtime, memory=profile.memory, cores=1)
        for at, (function, profile) in enumerate(zip(unrolled.functions, used, strict=True))
    )
    edge_bytes = {
        (source, target): round(min(used[source].upload, used[target].download))
        for source, target in sorted(unrolled.edges)
    }
    counts = Counter(
        {
            "tasks that failed when measured, left out": unrolled.failed,
            "runtimes of cold containers, as none was warm": sum(each.cold for each in used),
            "parallelism taken as 1": len(tasks),
        }
    )
    name = f"{path.parent.name}_{path.name.split(MEASURED)[0]}"
    return TaskGraph(name, str(path), tasks, edge_bytes, assumptions=+counts)


class _Unrolled:
    """The tasks of a definition, each with its function, and the edges between them."""

    def __init__(self, profiles: Mapping[str, _Profile], where: str) -> None:
        self.profiles, self.where = profiles, where
        self.functions: list[str] = []
        self.edges: set[tuple[int, int]] = set()
        self.failed = 0

    def block(self, block: _Block, before: list[int], times: int) -> list[int]:
        """Adds a block after some tasks, one of so many copies; returns its last tasks."""
        name: str | None = block.root
        passed: set[str] = set()
        while name is not None:
            if name not in block.states or name in passed:
                fault = "comes again" if name in passed else "no such state"
                raise InputError(f"{self.where}: state {short(name)}: {fault}")
            passed.add(name)
            state = block.states[name]
            if isinstance(state, _Task) and state.failure and state.func_name not in self.profiles:
                self.failed += 1
                name = state.failure
            else:
                before = self._state(state, before, times)
                name = state.next
        return before

    def _state(self, state: _State, before: list[int], times: int) -> list[int]:
        if isinstance(state, _Parallel):
            return [
                last
                for branch in state.parallel_functions
                for last in self.block(branch, before, times)
            ]
        if isinstance(state, _Map):
            width = self._often(_function_of(state), times)
            copies = (self.block(state, before, times * width) for _ in range(width))
            return [last for copy in copies for last in copy]
        count = 1
        if isinstance(state, _Loop):
            count = state.count or self._often(state.func_name, times)
        for _ in range(count):
            added = len(self.functions)
            self.functions.append(state.func_name)
            self.edges.update((task, added) for task in before)
            before = [added]
            if added + len(self.edges) > MOST_VALUES:
                raise InputError(f"{self.where}: more than {MOST_VALUES:,} tasks and edges")
        return before

    def _often(self, function: str, times: int) -> int:
        """How often a function is executed in each of so many copies of a block."""
        return max(1, round(self.profiles.get(function, _Profile()).in_a_run / times))


def _function_of(block: _Block) -> str:
    """The first function of a block."""
    state = block.states.get(block.root)
    if isinstance(state, _Map):
        return _function_of(state)
    if isinstance(state, _Parallel):
        return _function_of(state.parallel_functions[0])
    return state.func_name if state else ""


def _profiles(path: Path, max_bytes: int) -> dict[str, _Profile]:
    """What was measured of each function."""
    numbers = dict.fromkeys(NUMBERS, float(LARGEST_WHOLE))
    columns = CsvFile(path, max_bytes).read(TEXTS, numbers, blanks=True, blank_texts=TEXTS[2:])
    profiles = {}
    for function in dict.fromkeys(columns["func"]):
        rows = {key: column[columns["func"] == function] for key, column in columns.items()}
        warm = rows["is_cold"] == "False"
        seconds = (rows["end"] - rows["start"])[warm if warm.any() else slice(None)]
        memory = float(np.fmax.reduce(rows["max_mem_used"]))
        profiles[function] = _Profile(
            in_a_run=float(np.median(list(Counter(rows["request_id"]).values()))),
            runtime=max(0.0, float(np.nanmedian(seconds))),
            memory=None if np.isnan(memory) else memory,
            download=float(np.median(np.nan_to_num(rows["blob.download"]))),
            upload=float(np.median(np.nan_to_num(rows["blob.upload"]))),
            cold=not warm.any(),
        )
    return profiles
