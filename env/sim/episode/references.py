"""What the fields of an episode file say of each other: ids, places, and keys that need others."""

from typing import Any

from env.base.errors import InputError
from env.base.schema import nearest, short
from env.sim.episode.model import WITHIN, EpisodeFile
from env.sim.episode.rows import named


def check_references(episode: EpisodeFile) -> None:
    """Checks ids in order, DAGs, the cluster, actions, and keys that need other keys.

    Raises:
        InputError: one line with the place, what was found and what is allowed.
    """
    _check_ids("images", [image.image_id for image in episode.images])
    _check_ids("workflows", [workflow.workflow_id for workflow in episode.workflows])
    for index, workflow in enumerate(episode.workflows):
        functions = [function.function_id for function in workflow.functions]
        _check_ids(f"workflows.{index}.functions", functions)
    episode.templates()
    episode.cluster_config()
    _check_queue(episode)
    _check_workflows(episode)
    _check_images(episode)
    _check_actions(episode)


def _check_ids(where: str, ids: list[int]) -> None:
    for position, number in enumerate(ids):
        if number != position:
            raise InputError(
                f"{where}.{position}: id {number} found, ids must be 0 to {len(ids) - 1} in order"
            )


def _check_given(key: str, value: Any, needed: bool, condition: str) -> None:
    """A key that is needed where a condition holds, and allowed only there."""
    if needed != (value is not None):
        must = "needed with" if needed else "allowed only with"
        raise InputError(f"{key}: {value} found, it is {must} {condition}")


def _check_workflows(episode: EpisodeFile) -> None:
    queue, funding = episode.options.queue, episode.funding
    count = len(episode.workflows)
    for what, some in (
        ("a tenant", len(episode.tenants)),
        ("work", sum(workflow.work is not None for workflow in episode.workflows)),
    ):
        if 0 < some < count:
            raise InputError(f"workflows: {some} of {count} have {what}, all or none are needed")
    for workflow in episode.workflows:
        where = f"workflows.{workflow.workflow_id}"
        if workflow.work and len(workflow.functions) > 1:
            raise InputError(
                f"{where}.work: {len(workflow.functions)} functions, work is drawn of 1"
            )
        by_workflow = queue is not None and queue.order == "by_workflow"
        _check_given(f"{where}.tickets", workflow.tickets, by_workflow, "order 'by_workflow'")
        if funding is not None and workflow.tenant not in funding.tenants:
            raise InputError(
                f"{where}.tenant: {short(workflow.tenant)} found, one of funding.tenants is needed"
            )
        by_rank = queue is not None and queue.order == "by_rank"
        for function in workflow.functions:
            key = f"{where}.functions.{function.function_id}.rank"
            _check_given(key, function.rank, by_rank, "order 'by_rank'")


def _check_queue(episode: EpisodeFile) -> None:
    queue, where = episode.options.queue, "options.queue"
    by_tickets = episode.cluster.cpu_share == "tickets"
    if by_tickets and episode.funding is None:
        raise InputError("funding: missing, cluster.cpu_share needs it")
    if episode.funding is not None and queue is None and not by_tickets:
        raise InputError(
            "funding: found, it is allowed only with options.queue or cluster.cpu_share"
        )
    if queue is None:
        return
    by_workflow = queue.order == "by_workflow"
    _check_given(
        f"{where}.turns_seed", queue.turns_seed, queue.sharing is not None, f"{where}.sharing"
    )
    _check_given(f"{where}.lends", queue.lends, by_workflow, "order 'by_workflow'")
    if queue.sharing is None:
        if by_workflow:
            raise InputError(f"{where}.sharing: missing, order 'by_workflow' needs it")
        return
    if episode.funding is None:
        raise InputError(f"funding: missing, {where}.sharing needs it")
    if queue.order not in WITHIN or queue.time_slice is not None:
        raise InputError(
            f"{where}: order '{queue.order}' and time_slice {queue.time_slice} found, with sharing "
            f"{' and '.join(WITHIN)} are allowed, without a time_slice"
        )


def _check_images(episode: EpisodeFile) -> None:
    options, count = episode.options, len(episode.images)
    if not count and (options.queue or options.keep_alive.policy != "none"):
        raise InputError("images: none found, a queue or a keep-alive policy needs them")
    if episode.earlier and options.keep_alive.history[1] == 0:
        raise InputError(
            f"earlier: {len(episode.earlier)} found, keep_alive '{options.keep_alive.policy}' "
            "knows of none"
        )
    used: dict[str, int | None] = {
        f"workflows.{wf_id}.functions.{fn_id}": function.image
        for (wf_id, fn_id), function in episode.functions.items()
    }
    used |= {f"earlier.{index}": row.image for index, row in enumerate(episode.earlier)}
    for where, image in used.items():
        if (image is None) != (count == 0) or (image is not None and image >= count):
            allowed = f"allowed are 0 to {count - 1}" if count else "there are no images"
            raise InputError(f"{where}.image: {image} found, {allowed}")
        if image is not None and episode.images[image].memory_mb < 1:
            raise InputError(
                f"images.{image}.memory_mb: 0 found, a function of it needs at least 1"
            )


def _check_actions(episode: EpisodeFile) -> None:
    queue, functions, memory = episode.options.queue, episode.functions, episode.node_memory
    types = {declared.name: declared for declared in episode.cluster.server_types}
    by_engine = queue is not None and queue.order != "chosen" and queue.placement != "asked"
    if queue is not None and by_engine and episode.actions:
        raise InputError(
            f"actions: {len(episode.actions)} found, order '{queue.order}' and placement "
            f"'{queue.placement}' need none"
        )
    placed = set()
    for index, action in enumerate(episode.actions):
        where = f"actions.{index}"
        if action.function not in functions:
            raise InputError(f"{where}: {named(action.function)} is not among the workflows")
        if action.server_type not in types:
            raise InputError(
                f"{where}.server_type: unknown type '{action.server_type}', "
                f"{nearest(action.server_type, list(types))}"
            )
        declared = types[action.server_type]
        for key, number, limit in (
            ("server_index", action.server_index, declared.count),
            ("numa_node_index", action.numa_node_index, declared.numa_nodes),
        ):
            if number >= limit:
                raise InputError(f"{where}.{key}: {number} found, allowed are 0 to {limit - 1}")
        if action.memory_allocated_mb > memory[action.place]:
            raise InputError(
                f"{where}: {named(action.function)} gets {action.memory_allocated_mb} MB on a NUMA "
                f"node of '{declared.name}', which has {memory[action.place]} MB"
            )
        chosen = queue is not None and queue.order == "chosen"
        _check_given(f"{where}.dispatch_time", action.dispatch_time, chosen, "order 'chosen'")
        if queue is None and action.function in placed:
            raise InputError(f"{where}: {named(action.function)} is placed twice")
        placed.add(action.function)
    if queue is None and (missing := functions.keys() - placed):
        raise InputError(f"actions: {named(min(missing))} is never placed")
