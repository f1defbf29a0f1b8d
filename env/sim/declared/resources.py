"""The vector of resources: what a NUMA node has, and what a function needs of each.

Cores come first, then memory, then the *named resources*, as GPU or license, in 1/10,000: a
container holds all that its function needs of them, from its admission to its end. Where their
units have ids (env/resources/instances.py), a node has a place for each id, else a single one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from env.base.errors import InputError
from env.base.schema import listed, nearest
from env.resources.instances import check_whole_or_fraction
from env.resources.quantity import UNIT
from env.sim.declared.hardware import CPU, ClusterConfig
from env.sim.declared.regions import check_known, permitted_regions
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.node.fit import MEMORY, NAMED


def names_of(templates: Iterable[WorkflowTemplate]) -> tuple[str, ...]:
    """The named resources that any function needs, in the order of the vector: CPU comes first."""
    needed = {name for each in templates for name, units in each.resources.items() if units.any()}
    return tuple(sorted(needed, key=lambda name: (name != CPU, name)))


def capacities(config: ClusterConfig, names: Sequence[str]) -> np.ndarray:
    """(types, resources) what a NUMA node of each server type has."""
    rows = [
        (kind.cpu, kind.memory, *(kind.offered(name) for name in names))
        for kind in config.server_types
    ]
    return np.array(rows, np.int64)


def needs(templates: Sequence[WorkflowTemplate], names: Sequence[str]) -> np.ndarray:
    """(D, resources) what each function of the templates needs, one template after the other."""
    rows = [np.zeros((0, NAMED + len(names)), np.int64)]
    for each in templates:
        none = np.zeros(each.function_count)
        named = (np.rint(each.resources.get(name, none) * UNIT).astype(np.int64) for name in names)
        rows.append(np.column_stack([each.parallelism, each.memory_req, *named]))
    return np.concatenate(rows)


def named_arrays(
    templates: Sequence[WorkflowTemplate], config: ClusterConfig, nodes: int, containers: int
) -> dict[str, np.ndarray]:
    """The arrays of a `State` about named resources; empty where no function needs any."""
    names = names_of(templates)
    has = capacities(config, names)[:, NAMED:]
    places, first = [np.zeros((len(has), 0), np.int64)], [0]
    for name, of_types in zip(names, has.T, strict=True):
        ids = max(1, -(-int(of_types.max()) // UNIT)) if config.has_ids(name) else 1
        most = UNIT if ids > 1 else None
        places.append(np.clip(of_types[:, None] - UNIT * np.arange(ids), 0, most))
        first.append(first[-1] + ids)
    return {
        "named_first": np.array(first),
        "named_capacity": np.concatenate(places, axis=1).ravel(),
        "named_needs": needs(templates, names)[:, NAMED:].ravel(),
        "named_left": np.zeros(nodes * first[-1], np.int64),
        "named_taken": np.zeros(containers * first[-1], np.int64),
        "named_kept": np.zeros(first[-1], np.int64),
    }


def holders(
    templates: Sequence[WorkflowTemplate], config: ClusterConfig, memory: np.ndarray | None = None
) -> np.ndarray:
    """(D, types) which server types have a NUMA node that holds each function when it is empty.

    Cores are shared, so there are always enough. Arguments as for `check_needs`.
    """
    names = names_of(templates)
    wanted = needs(templates, names)
    if memory is not None:
        wanted[:, MEMORY] = memory
    enough = np.less_equal(wanted[:, None], capacities(config, names))
    return np.asarray(enough[:, :, MEMORY:].all(axis=2)) & permitting(templates, config)


def permitting(templates: Sequence[WorkflowTemplate], config: ClusterConfig) -> np.ndarray:
    """(D, types) which server types stand where each function may run."""
    names = list(config.regions)
    masks = np.concatenate([region_masks(each, config) for each in templates] or [np.zeros(0, int)])
    regions = [names.index(kind.region) if kind.region else 0 for kind in config.server_types]
    return (masks[:, None] == 0) | (masks[:, None] >> np.array(regions) & 1 == 1)


def region_masks(template: WorkflowTemplate, config: ClusterConfig) -> np.ndarray:
    """(F,) the regions of a cluster where each function may run, as bits; 0: everywhere.

    Raises:
        InputError: a function names a region that the cluster has not, or may run in none of it.
    """
    masks = np.zeros(template.function_count, np.int64)
    for fn_id, declared in enumerate(template.regions if config.regions else ()):
        where = f"{template.label}: function {fn_id}: regions"
        check_known(
            where, (*(declared.allowed or ()), *(declared.disallowed or ())), config.regions
        )
        permitted = permitted_regions(config.regions, declared.allowed, declared.disallowed)
        if not permitted:
            raise InputError(f"{where}: it may run in none of {listed(config.regions)}")
        if len(permitted) < len(config.regions):
            masks[fn_id] = sum(1 << list(config.regions).index(name) for name in permitted)
    return masks


def check_needs(
    templates: Sequence[WorkflowTemplate], config: ClusterConfig, memory: np.ndarray | None = None
) -> None:
    """Refuses functions that no NUMA node holds, and those that need 1.5 of units with ids.

    Args:
        templates: distinct.
        config: the hardware.
        memory: (D,) MB that the functions are given, where that is not what each needs.

    Raises:
        InputError: a function needs more of a resource than any node has, or all that it needs is
            on no node together.
    """
    names = names_of(templates)
    for template in templates:
        for name, amounts in template.resources.items() if names else ():
            for fn_id, units in enumerate(np.rint(amounts * UNIT).astype(np.int64).tolist()):
                if config.has_ids(name):
                    where = f"{template.label}: function {fn_id}: resources.{name}"
                    check_whole_or_fraction(where, units)
    present = [kind.count > 0 for kind in config.server_types]
    unfit = np.logical_not(holders(templates, config, memory)[:, present].any(axis=1))
    if not unfit.any():
        return
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
    scales = np.array([1] + [UNIT] * len(names))
    for needed, has, unit in zip(wanted[fn_id] / scales, most / scales, units, strict=True):
        if needed > has:
            offered = {name for kind in config.server_types for name in (CPU, *kind.resources)}
            hint = f"; {nearest(unit, sorted(offered))}" if has == 0 else ""
            most_of_all = f"the largest NUMA node has {has:.10g}{hint}"
            raise InputError(f"{where} {needed:.10g} {unit}, {most_of_all}")
    pairs = zip(wanted[fn_id] / scales, units, strict=True)
    parts = ", ".join(f"{needed:.10g} {unit}" for needed, unit in pairs if needed)
    there = " where it may run" if template.regions else ""
    raise InputError(f"{where} {parts}, no NUMA node{there} has all of it")
