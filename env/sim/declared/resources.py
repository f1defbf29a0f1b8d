"""The vector of resources: what a NUMA node has, and what a function needs of each.

Cores come first, then memory, then the *named resources*, as gpu or license: whole units, of which
a container holds all that its function needs, from its admission to its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from env.base.errors import InputError
from env.base.schema import listed
from env.sim.declared.hardware import ClusterConfig
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.node.fit import MEMORY, NAMED


def names_of(templates: Iterable[WorkflowTemplate]) -> tuple[str, ...]:
    """The named resources that any function needs, in the order of the vector."""
    needed = {name for each in templates for name, units in each.resources.items() if units.any()}
    return tuple(sorted(needed))


def capacities(config: ClusterConfig, names: Sequence[str]) -> np.ndarray:
    """(types, resources) what a NUMA node of each server type has."""
    rows = [
        (kind.cpu, kind.memory, *(kind.resources.get(name, 0) for name in names))
        for kind in config.server_types
    ]
    return np.array(rows, np.int64)


def needs(templates: Sequence[WorkflowTemplate], names: Sequence[str]) -> np.ndarray:
    """(D, resources) what each function of the templates needs, one template after the other."""
    rows = [np.zeros((0, NAMED + len(names)), np.int64)]
    for each in templates:
        none = np.zeros(each.function_count, np.int64)
        named = (each.resources.get(name, none) for name in names)
        rows.append(np.column_stack([each.parallelism, each.memory_req, *named]))
    return np.concatenate(rows)


def named_arrays(
    templates: Sequence[WorkflowTemplate], config: ClusterConfig, nodes: int
) -> dict[str, np.ndarray]:
    """The arrays of a `State` about named resources; empty where no function needs any."""
    names = names_of(templates)
    return {
        "named_capacity": capacities(config, names)[:, NAMED:].ravel(),
        "named_needs": needs(templates, names)[:, NAMED:].ravel(),
        "named_held": np.zeros(nodes * len(names), np.int64),
        "named_kept": np.zeros(len(names), np.int64),
    }


def check_recordable(templates: Iterable[WorkflowTemplate]) -> None:
    """Refuses functions that need named resources, of which an episode file knows nothing.

    Raises:
        InputError: there is one.
    """
    names = names_of(templates)
    if names:
        raise InputError(
            f"record: functions need {listed(names)}, for which an episode file has no place, "
            "so only 0 is possible"
        )


def holders(
    templates: Sequence[WorkflowTemplate],
    config: ClusterConfig,
    memory: np.ndarray | None = None,
) -> np.ndarray:
    """(D, types) which server types have a NUMA node that holds each function when it is empty.

    Cores are shared, so there are always enough. Arguments as for `check_needs`.
    """
    names = names_of(templates)
    wanted = needs(templates, names)
    if memory is not None:
        wanted[:, MEMORY] = memory
    enough = np.less_equal(wanted[:, None], capacities(config, names))
    return np.asarray(enough[:, :, MEMORY:].all(axis=2))


def check_needs(
    templates: Sequence[WorkflowTemplate],
    config: ClusterConfig,
    memory: np.ndarray | None = None,
) -> None:
    """Refuses functions that no NUMA node holds.

    Args:
        templates: distinct.
        config: the hardware.
        memory: (D,) MB that the functions are given, where that is not what each needs.

    Raises:
        InputError: a function needs more of a resource than any node has, or all that it needs is
            on no node together.
    """
    present = [kind.count > 0 for kind in config.server_types]
    unfit = np.logical_not(holders(templates, config, memory)[:, present].any(axis=1))
    if not unfit.any():
        return
    names = names_of(templates)
    units = ("MB", *names)
    most = capacities(config, names)[present, MEMORY:].max(axis=0)
    first = 0
    for template in templates:
        functions = slice(first, first + template.function_count)
        first = functions.stop
        if unfit[functions].any():
            break
    wanted = needs([template], names)[:, MEMORY:]
    if memory is not None:
        wanted[:, 0] = memory[functions]
    fn_id = int(np.where(unfit[functions], wanted[:, 0], -1).argmax())
    where = f"{template.label}: function {fn_id} needs"
    for needed, has, unit in zip(wanted[fn_id], most, units, strict=True):
        if needed > has:
            raise InputError(f"{where} {needed} {unit}, the largest NUMA node has {has}")
    pairs = zip(wanted[fn_id], units, strict=True)
    parts = ", ".join(f"{needed} {unit}" for needed, unit in pairs if needed)
    raise InputError(f"{where} {parts}, no NUMA node has all of it")
