"""What a simulator has done, as an episode file."""

from typing import Any

import numpy as np

from env.base.errors import InputError
from env.sim.declared.ordering import SharedOrder
from env.sim.episode.model import ORDERS, EpisodeFile, Options, QueueModel
from env.sim.episode.rows import (
    CONDITIONS,
    MOMENTS,
    OUTCOMES,
    PARTS,
    ActionModel,
    ChangeModel,
    EarlierModel,
    EdgeModel,
    FunctionModel,
    ImageModel,
    Results,
    RunModel,
    ServerLeaseModel,
    WarmModel,
    WorkflowModel,
    unnamed,
)
from env.sim.queue.central_queue import BY_WORKFLOW
from env.sim.state.history import CONDITION
from env.sim.state.records import COMPLETED, INF
from env.sim.view.raw_env import RawEnv
from env.sim.view.workflow import Workflow


def episode_of(env: RawEnv, name: str, description: str) -> EpisodeFile:
    """The finished run of a `RawEnv(..., record=True)` as an episode file, results included.

    Raises:
        InputError: as for `results_of`.
    """
    results = results_of(env)
    state, queue = env.state, _queue(env)
    decided = queue is None or queue.order == "chosen" or queue.placement == "asked"
    timed = queue is not None and queue.order == "chosen"
    return EpisodeFile(
        name=name,
        description=description,
        options=Options.model_validate(
            {"queue": queue, "lease": env.rules.lease, "keep_alive": env.rules.keep_alive}
        ),
        cluster=env.cluster_config,
        images=tuple(
            ImageModel(
                image_id=index,
                container_cold_start=float(image["cold_start"]),
                memory_mb=int(image["memory"]),
            )
            for index, image in enumerate(state.images)
        ),
        earlier=tuple(
            EarlierModel(image=image, begin=begin, end=end)
            for image, begin, end in env.episode.earlier.tolist()
        ),
        funding=env.episode.funding if len(state.tenants) else None,
        workflows=tuple(_workflow(env, workflow) for workflow in env.workload.workflows),
        actions=tuple(
            ActionModel(
                **run.model_dump(include=set(ActionModel.model_fields) - {"dispatch_time"}),
                dispatch_time=run.dispatch_time if timed else None,
            )
            for run in results.runs
            if decided
        ),
        changes=tuple(
            ChangeModel(
                time=float(entry["time"]),
                server_type=server[0],
                server_index=server[1],
                condition=CONDITIONS[entry["flag"]],
                events=int(entry["number"]),
            )
            for entry in env.history[env.history["kind"] == CONDITION]
            for server in [_names(env)[entry["node"]]]
        ),
        expected=results,
    )


def results_of(env: RawEnv) -> Results:
    """What a finished `RawEnv(..., record=True)` computed.

    Raises:
        InputError: the episode is not over, its steps were not recorded, functions were skipped or
            have failed, or servers were changed otherwise than by its `changes`.
    """
    if not env.done:
        raise InputError("episode: not over yet, every function must be placed and completed")
    if not env.record:
        raise InputError("episode: not recorded, RawEnv(..., record=True) is needed")
    runs = env.runs
    count = sum(template.function_count for template in env.workflow_templates)
    if (runs["outcome"] == COMPLETED).sum() < count:
        raise InputError("episode: functions were skipped, which no episode file can say")
    if not env.state.cluster[0]["aside"] and (env.history["kind"] == CONDITION).any():
        raise InputError("episode: servers were changed by a script, not by changes of the Episode")
    ends = np.zeros(len(env.arrival_times))
    np.maximum.at(ends, runs["wf_id"], runs["end_time"])
    return Results(
        runs=_runs(env),
        warm_containers=tuple(
            WarmModel.model_validate(
                _place(env, period.node)
                | {
                    "image": period.image,
                    "memory_mb": period.memory,
                    "begin_time": period.begin,
                    "end_time": period.end if period.end < INF else None,
                }
            )
            for period in env.warm_periods
        ),
        servers=_servers(env),
        total_rent=env.total_rent,
        last_completion_time=float(ends.max()),
        workflow_completion_times=tuple(ends.tolist()),
    )


def _runs(env: RawEnv) -> tuple[RunModel, ...]:
    """In the order of dispatch; events of the queue are counted from 0."""
    runs, queued = np.sort(env.runs, order="dispatched"), env.rules.order is not None
    numbers = np.unique(np.concatenate([runs["joined"], runs["dispatched"]]))
    return tuple(
        RunModel.model_validate(
            {
                "workflow_id": int(run["wf_id"]),
                "function_id": int(run["fn_id"]),
                **_place(env, int(run["node"])),
                "memory_allocated_mb": int(run["memory_alloc"]),
                "warm": bool(run["warm"]),
                "outcome": OUTCOMES[run["outcome"]],
                **{key: float(run[key]) for key in MOMENTS},
                **{part: float(run[key]) for part, key in PARTS.items()},
                **{
                    key: int(np.searchsorted(numbers, run[key]))
                    for key in ("joined", "dispatched")
                    if queued
                },
            }
        )
        for run in runs
    )


def _servers(env: RawEnv) -> tuple[ServerLeaseModel, ...]:
    ledger = env.state.ledger.reshape(len(env.state.servers), -1)
    return tuple(
        ServerLeaseModel(
            server_type=name,
            server_index=server_id,
            lease_seconds=float(accounts["lease_seconds"].sum()),
            lease_expiration_time=max(0.0, end) if end < INF else None,
            rent=float(accounts["rent"].sum()),
        )
        for (name, server_id), accounts, end in zip(
            _names(env), ledger, env.state.servers["expiration_time"].tolist(), strict=True
        )
    )


def _names(env: RawEnv) -> list[tuple[str, int]]:
    """(server type, server) of every server."""
    return list(dict.fromkeys(place[:2] for place in env.cluster_config.places))


def _queue(env: RawEnv) -> QueueModel | None:
    """The options of the central queue, as the engine has them."""
    options, order = env.state.options[0], env.rules.order
    if order is None:
        return None
    seconds = {
        key: float(options[key]) if options[key] < INF else None
        for key in ("time_slice", "starve_threshold", "patience")
    }
    sharing = order.sharing if isinstance(order, SharedOrder) else None
    return QueueModel(
        order=ORDERS[options["order"]],
        placement=env.rules.placement,
        sharing=sharing,
        turns_seed=env.episode.workload.turns_seed if sharing is not None else None,
        lends=bool(options["lends"]) if options["order"] == BY_WORKFLOW else None,
        **seconds,
    )


def _workflow(env: RawEnv, workflow: Workflow) -> WorkflowModel:
    """What was declared and drawn of a workflow."""
    state, template, wf_id = env.state, workflow.template, workflow.wf_id
    record = state.workflows[env.slot_of(wf_id)]
    first = int(state.templates[record["template"]]["first_function"])
    order = state.options[0]["order"]
    names = template.function_names or template.function_count * ("",)

    def entry(fn_id: int) -> dict[str, Any]:
        if not len(state.images):
            return {}
        declared = state.waiting[first + fn_id]
        ranked = env.rules.order is not None and ORDERS[order] == "by_rank"
        return {
            "image": int(declared["image"]),
            "rank": float(declared["rank"]) if ranked else None,
        }

    return WorkflowModel(
        workflow_id=wf_id,
        name=template.name if template.name not in ("", unnamed(wf_id)) else None,
        arrival_time=workflow.arrival_time,
        tenant=workflow.tenant,
        work=env.episode.workload.work[wf_id] if env.episode.workload.work else None,
        tickets=float(record["tickets"]) if order == BY_WORKFLOW else None,
        functions=tuple(
            FunctionModel(
                function_id=fn_id,
                name=names[fn_id] or None,
                computation=int(template.computation[fn_id]),
                memory_required_mb=int(template.memory_req[fn_id]),
                parallelism=int(template.parallelism[fn_id]),
                **entry(fn_id),
            )
            for fn_id in range(template.function_count)
        ),
        edges=tuple(
            EdgeModel(source=int(source), target=int(target), data_bytes=int(data_bytes))
            for (source, target), data_bytes in zip(
                template.edges, template.data_bytes, strict=True
            )
        ),
    )


def _place(env: RawEnv, node: int) -> dict[str, str | int]:
    keys = ("server_type", "server_index", "numa_node_index")
    return dict(zip(keys, env.place_of(node), strict=True))
