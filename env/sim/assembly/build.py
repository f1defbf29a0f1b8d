"""Builds the `State` of an episode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from env.base.errors import InputError
from env.sim.assembly.new_state import allocate, reset
from env.sim.assembly.with_rules import with_rules
from env.sim.declared.bounds import LARGEST_WORK, LONGEST
from env.sim.declared.episode import Episode, EpisodeWorkload
from env.sim.declared.hardware import ClusterConfig
from env.sim.declared.ordering import SharedOrder
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.state import records
from env.sim.state.block import State


def build(episode: Episode) -> State:
    """The state of an episode, reset.

    Where tenants take turns, the functions of each are declared apart, as they queue apart.

    Raises:
        InputError: a workflow takes longer than times are exact, or there is more work than can be
            counted.
    """
    workload, owners = episode.workload, episode.owners
    apart = isinstance(episode.rules.order, SharedOrder)
    pairs = [
        (template, owner if apart else 0)
        for template, owner in zip(workload.templates, owners, strict=True)
    ]
    places = {pair: place for place, pair in enumerate(dict.fromkeys(pairs))}
    templates = [template for template, _ in places]
    per_slot = max(template.function_count for template in templates)
    slots = min(episode.workflow_slots or len(pairs), len(pairs))
    state = allocate(episode.cluster, slots, per_slot, len(pairs), templates, max(owners) + 1)
    state.arrivals[:] = arriving(workload, [places[pair] for pair in pairs], owners)
    _check_size(state, templates)
    state = with_rules(state, templates, episode, [owner for _, owner in places])
    reset(state)
    return state


def arriving(
    workload: EpisodeWorkload, templates: Sequence[int], owners: Sequence[int] | int = 0
) -> np.ndarray:
    """ARRIVING (W,) of the workflows, by time and then by number.

    Args:
        workload: what arrives.
        templates: of each workflow, by its place among those of the state.
        owners: number of its tenant.
    """
    arrivals = np.zeros(len(templates), records.ARRIVING)
    arrivals["time"], arrivals["template"] = workload.arrival_times, templates
    arrivals["wf_id"] = np.arange(len(templates))
    arrivals["tenant"] = owners
    arrivals["computation"] = workload.work or 0
    arrivals["tickets"] = workload.tickets or 1.0
    return arrivals[np.argsort(arrivals["time"], kind="stable")]


def check_workflows(templates: Sequence[WorkflowTemplate], cluster: ClusterConfig) -> None:
    """Refuses workflows that a cluster cannot run, whether or not an episode draws them."""
    every = EpisodeWorkload((0.0,) * len(templates), tuple(templates))
    build(Episode(every, replace(cluster, cpu_share="equal"), workflow_slots=1))


def drawn_shares(state: State) -> np.ndarray:
    """(W,) what the work of every workflow is over what it declares: 1 where none is drawn."""
    drawn = state.arrivals["computation"]
    if not drawn.any():
        return np.ones(len(drawn))
    first = state.templates["first_function"][state.arrivals["template"]]
    shares: np.ndarray = drawn / state.template_functions["computation"][first]
    return shares


def _check_size(state: State, templates: Sequence[WorkflowTemplate]) -> None:
    """Refuses what takes longer than times are exact, and more work than can be counted."""
    cluster, arriving, shares = state.cluster[0], state.arrivals["template"], drawn_shares(state)
    seconds = state.templates["critical_path"][arriving] * shares
    longest = int(np.argmax(seconds))
    if seconds[longest] > LONGEST:
        raise InputError(
            f"{templates[arriving[longest]].label}: takes {seconds[longest]:g} s at full speed, "
            f"at most {LONGEST:g} s are possible"
        )
    widest = max(templates, key=lambda template: template.data_bytes.max(initial=0))
    data_bytes = widest.data_bytes.max(initial=0)
    slowest = min([cluster["network_bandwidth"], *state.links["bandwidth"]])
    transfer = data_bytes / slowest
    if transfer > LONGEST:
        raise InputError(
            f"{widest.label}: {data_bytes:g} bytes of edge "
            f"{widest.edge_label(int(widest.data_bytes.argmax()))} take {transfer:g} s between "
            f"servers, at most {LONGEST:g} s are possible"
        )
    work = (state.templates["work"][arriving] * shares).sum() * cluster["single_core_speed"]
    if work > LARGEST_WORK:
        raise InputError(
            f"workload: {work:g} operations in all, at most {LARGEST_WORK:g} are possible"
        )
