"""The episode of a file as the simulator takes it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from env.base.errors import InputError
from env.sim.declared.aside import Change
from env.sim.declared.episode import Episode, EpisodeWorkload
from env.sim.declared.images import Images
from env.sim.declared.ordering import Sharing
from env.sim.declared.regions import check_known
from env.sim.declared.rules import Rules
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.episode.model import ORDERS, EpisodeFile, QueueModel
from env.sim.events.endings import bring_back, drain, take_down
from env.sim.state.block import State
from env.sim.state.queue_records import EARLIER
from env.sim.state.records import INF, NONE

MAKE: Final = {"in service": bring_back, "draining": drain, "down": take_down}
"""What gives a server a condition."""


@dataclass(frozen=True)
class RecordedOrder:
    """The order of a file's queue; see `Order` in env/sim/declared/ordering.py."""

    queue: QueueModel
    ranks: np.ndarray  # (D,) of the declared functions; zeros where the order does not go by them

    def write(self, options: np.void) -> None:
        """Fills in the options of the engine."""
        options["order"] = ORDERS.index(self.queue.order)
        options["time_slice"] = _or_never(self.queue.time_slice)
        options["starve_threshold"] = _or_never(self.queue.starve_threshold)
        options["lends"] = self.queue.lends or False

    def rank(self, functions: object) -> np.ndarray:
        """(D,) as recorded."""
        return self.ranks


@dataclass(frozen=True)
class RecordedTurns(RecordedOrder):
    """The same, where tenants take turns; see `SharedOrder` in env/sim/declared/ordering.py."""

    sharing: Sharing


def specification(episode: EpisodeFile) -> Episode:
    """The episode of a file.

    Raises:
        InputError: ids are not in order, a function has no image although others have, the
            simulator cannot run it, or see `Images`.
    """
    options, queue, workflows = episode.options, episode.options.queue, episode.workflows
    _check_ids("images", [image.image_id for image in episode.images])
    _check_ids("workflows", [workflow.workflow_id for workflow in workflows])
    for index, workflow in enumerate(workflows):
        functions = [function.function_id for function in workflow.functions]
        _check_ids(f"workflows.{index}.functions", functions)
    if not episode.images and (queue or options.keep_alive.policy != "none"):
        raise InputError("images: none found, a queue or a keep-alive policy needs them")
    templates = episode.templates()
    workload = EpisodeWorkload(
        tuple(each.arrival_time for each in workflows),
        tuple(templates),
        tenants=tuple(each.tenant for each in workflows if each.tenant is not None),
        work=tuple(each.work for each in workflows if each.work is not None),
        tickets=tuple(each.tickets for each in workflows if each.tickets is not None),
        images=_images(episode, templates) if episode.images else None,
        funding=episode.funding,
        turns_seed=options.seed,
        begin_hour=options.begin_hour or 0,
    )
    groups = {key: getattr(options, key) for key in ("lease", "keep_alive", "recovery")}
    rules = Rules(**groups)
    if queue is not None:
        order = _order(episode, queue, templates)
        rules = Rules(order, queue.placement, queue.patience, **groups)
    changes, absent = _changes(episode)
    in_order = tuple(sorted((*changes, *_chosen(episode)), key=lambda change: change.time))
    return Episode(workload, episode.cluster, rules, changes=in_order, absent=absent)


def _chosen(episode: EpisodeFile) -> Iterator[Change]:
    """Chooses the regions of functions when their workflows arrive: they count later."""
    regions = list(episode.cluster.regions)
    for wf_id, workflow in enumerate(episode.workflows):
        if workflow.chosen_regions is not None:
            where = f"workflows.{wf_id}.chosen_regions"
            check_known(where, filter(None, workflow.chosen_regions), episode.cluster.regions)
            chosen = [regions.index(name) if name else NONE for name in workflow.chosen_regions]
            yield Change(workflow.arrival_time, partial(_choose, wf_id, chosen))


def _choose(wf_id: int, regions: Sequence[int], state: State) -> None:
    first = state.slot_of[wf_id] * state.cluster[0]["functions_per_slot"]
    state.functions["region"][first : first + len(regions)] = regions


def _changes(episode: EpisodeFile) -> tuple[tuple[Change, ...], tuple[int, ...]]:
    """The changes of servers, and those that are not there from the start."""
    servers = list(dict.fromkeys(place[:2] for place in episode.cluster.places))
    changes, absent = [], []
    for index, row in enumerate(episode.changes):
        if row.server not in servers:
            raise InputError(
                f"changes.{index}: there is no server {row.server_type} {row.server_index}"
            )
        server = servers.index(row.server)
        if row.events is None:
            absent.append(server)
        else:
            changes.append(
                Change(row.time, partial(MAKE[row.condition], server=server), row.events)
            )
    return tuple(changes), tuple(absent)


def _check_ids(where: str, ids: Sequence[int]) -> None:
    for position, number in enumerate(ids):
        if number != position:
            raise InputError(
                f"{where}.{position}: id {number} found, ids must be 0 to {len(ids) - 1} in order"
            )


def _images(episode: EpisodeFile, templates: Sequence[WorkflowTemplate]) -> Images:
    images = episode.images
    earlier = np.array([(row.image, row.begin, row.end) for row in episode.earlier], EARLIER)
    used = [function.image for function in episode.functions.values()]
    for image in (*used, *earlier["image"]):
        if image is None or image >= len(images):
            raise InputError(f"image: {image} found, allowed are 0 to {len(images) - 1}")
    return Images(
        np.array([image.container_cold_start for image in images]),
        {
            template: np.array([function.image for function in workflow.functions])
            for template, workflow in zip(templates, episode.workflows, strict=True)
        },
        np.array([image.memory_mb for image in images]),
        lambda: earlier,
    )


def _order(
    episode: EpisodeFile, queue: QueueModel, templates: Sequence[WorkflowTemplate]
) -> RecordedOrder:
    """The order of the queue; where tenants take turns, functions of each are declared apart."""
    declared = {
        (template, workflow.tenant if queue.sharing is not None else None): workflow
        for template, workflow in zip(templates, episode.workflows, strict=True)
    }
    ranks = np.array(
        [function.rank or 0.0 for workflow in declared.values() for function in workflow.functions]
    )
    if queue.sharing is None:
        return RecordedOrder(queue, ranks)
    return RecordedTurns(queue, ranks, queue.sharing)


def _or_never(seconds: float | None) -> float:
    return INF if seconds is None else seconds
