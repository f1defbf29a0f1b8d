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

from env.base.csv_file import CsvFile
from env.base.errors import InputError
from env.base.files import MOST_VALUES, parse_json
from env.base.schema import Recorded, short, validated
from env.sim.declared.bounds import LARGEST_WHOLE
from env.workloads.task_graph import Task, TaskGraph

DEFINITION, MEASURED = "definition.json", "_processed.csv"
"""The name of the one, and how that of the other ends."""
TEXTS = "func", "request_id", "is_cold"
NUMBERS = "start", "end", "blob.download", "blob.upload", "max_mem_used"
"""Unix seconds, bytes, MB; blank where not said, as `is_cold` of orchestrators."""


class _Block(Recorded):
    """States by name, of which `root` is the first."""

    root: str
    states: dict[str, "_State"]


class _Step(Recorded):
    next: str | None = None
    failure: str | None = None


class _Function(_Step):
    """A function; in loops for each item of an array, or so often, one after the other."""

    type: Literal["task", "loop", "repeat"]
    func_name: str
    count: Annotated[int, Field(ge=1)] | None = None


class _Map(_Block, _Step):
    """A block for each item of an array, all at once."""

    type: Literal["map"]


class _Parallel(_Step):
    type: Literal["parallel"]
    parallel_functions: Annotated[list[_Block], Field(min_length=1)]


_State = Annotated[_Function | _Map | _Parallel, Field(discriminator="type")]


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
    used = [unrolled.profile(task.category) for task in unrolled.tasks]
    edge_bytes = {
        (source, target): round(min(used[source].upload, used[target].download))
        for source, target in sorted(unrolled.edges)
    }
    counts = Counter(
        {
            "tasks that failed when measured, left out": unrolled.failed,
            "runtimes of cold containers, as none was warm": sum(each.cold for each in used),
            "parallelism taken as 1": len(used),
        }
    )
    name = f"{path.parent.name}_{path.name.split(MEASURED)[0]}"
    return TaskGraph(name, str(path), tuple(unrolled.tasks), edge_bytes, assumptions=+counts)


class _Unrolled:
    """The tasks of a definition, whose categories are functions, and the edges between them."""

    def __init__(self, profiles: Mapping[str, _Profile], where: str) -> None:
        self.profiles, self.where = profiles, where
        self.tasks: list[Task] = []
        self.edges: set[tuple[int, int]] = set()
        self.failed = 0

    def profile(self, function: str) -> _Profile:
        """What was measured of a function."""
        return self.profiles.get(function, _Profile())

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
            if state.failure and _first(state) not in self.profiles:
                self.failed += 1
                name = state.failure
            else:
                before = self._state(state, before, times)
                name = state.next
        return before

    def _state(self, state: _State, before: list[int], times: int) -> list[int]:
        if isinstance(state, _Function):
            count = 1 if state.type == "task" else state.count
            for _ in range(count or self._often(state.func_name, times)):
                added, name = len(self.tasks), state.func_name
                of = self.profile(name)
                task = Task(f"{name}_{added}", name, of.runtime, memory=of.memory, cores=1)
                self.tasks.append(task)
                self.edges.update((task, added) for task in before)
                before = [added]
                if added + len(self.edges) > MOST_VALUES:
                    raise InputError(f"{self.where}: more than {MOST_VALUES:,} tasks and edges")
            return before
        width = self._often(_first(state), times) if isinstance(state, _Map) else 1
        blocks = [state] * width if isinstance(state, _Map) else state.parallel_functions
        return [last for block in blocks for last in self.block(block, before, times * width)]

    def _often(self, function: str, times: int) -> int:
        """How often a function is executed in each of so many copies of a block."""
        return max(1, round(self.profile(function).in_a_run / times))


def _first(state: _State | None) -> str:
    """The first function of a state."""
    if isinstance(state, _Parallel | _Map):
        block = state if isinstance(state, _Map) else state.parallel_functions[0]
        return _first(block.states.get(block.root))
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
