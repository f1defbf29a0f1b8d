"""What a simulator has done, as an episode file."""

from collections.abc import Iterable
from typing import Any, TypeVar

import numpy as np

from env.base.errors import InputError
from env.base.schema import Strict
from env.sim.declared.ordering import SharedOrder
from env.sim.declared.rules import Lease
from env.sim.episode import model
from env.sim.queue.central_queue import BY_RANK, BY_WORKFLOW
from env.sim.state.history import CONDITION, warm_periods_of
from env.sim.state.records import FAILED, FINISHED, INF, NONE, NOT_CALLED
from env.sim.view.raw_env import RawEnv

Row = TypeVar("Row", bound=Strict)


def episode_of(env: RawEnv, name: str, description: str) -> model.EpisodeFile:
    """The finished run of a `RawEnv(..., record=True)` as an episode file, results included.

    Raises:
        InputError: as for `results_of`.
    """
    results = results_of(env)
    state, queue, earlier = env.state, _queue(env), env.episode.earlier
    changes = env.history[env.history["kind"] == CONDITION]
    timed = queue is not None and queue.order == "chosen"
    decided = queue is None or timed or queue.placement == "asked"
    fields = set(model.ActionModel.model_fields) - (set() if timed else {"dispatch_time"})
    recovery = None
    if env.rules.recovery is not None:
        recovery = {**dict(env.rules.recovery), "seed": env.episode.workload.turns_seed}
    conditional = any((each.probability < 1).any() for each in env.workflow_templates)
    return model.EpisodeFile(
        name=name,
        description=description,
        options=model.Options.model_validate(
            {"queue": queue, "lease": _lease(env), "keep_alive": env.rules.keep_alive}
            | {"recovery": recovery}
            | {"begin_hour": env.episode.workload.begin_hour or None}
            | {"calls_seed": env.episode.workload.turns_seed if conditional else None}
        ),
        cluster=env.cluster_config,
        images=_rows(
            model.ImageModel,
            image_id=range(len(state.images)),
            container_cold_start=state.images["cold_start"],
            memory_mb=state.images["memory"],
        ),
        earlier=_rows(
            model.EarlierModel, **{key: earlier[key] for key in model.EarlierModel.model_fields}
        ),
        funding=env.episode.funding if len(state.tenants) else None,
        workflows=tuple(_workflow(env, wf_id) for wf_id in range(len(env.workflow_templates))),
        actions=tuple(
            model.ActionModel(**run.model_dump(include=fields)) for run in results.runs if decided
        ),
        changes=_rows(
            model.ChangeModel,
            **_servers(env, changes["node"]),
            time=changes["time"],
            condition=[model.CONDITIONS[condition] for condition in changes["flag"]],
            events=[None if number == NONE else int(number) for number in changes["number"]],
        ),
        expected=results,
    )


def results_of(env: RawEnv) -> model.Results:
    """What a finished `RawEnv(..., record=True)` computed.

    Raises:
        InputError: the episode is not over, its steps were not recorded, functions were skipped, or
            servers were changed otherwise than by its `changes`.
    """
    if not env.done:
        raise InputError("episode: not over yet, every function must be placed and completed")
    if not env.record:
        raise InputError("episode: not recorded, RawEnv(..., record=True) is needed")
    runs, warm = np.sort(env.runs, order="dispatched"), warm_periods_of(env.history)
    unfinished = _unfinished(env)
    scripted = not (env.state.cluster[0]["aside"] or len(env.state.recovery))
    later = env.history["number"] != NONE  # others are absent from the start
    if scripted and (later & (env.history["kind"] == CONDITION)).any():
        raise InputError("episode: servers were changed by a script, not by changes of the Episode")
    servers, regions = env.state.servers, env.cluster_config.regions
    ledger = env.state.ledger.reshape(len(servers), -1)
    lease_ends = servers["expiration_time"].tolist()
    ends = np.zeros(len(env.arrival_times))
    np.maximum.at(ends, runs["wf_id"], runs["end_time"])
    for row in unfinished:
        ends[row.workflow_id] = max(ends[row.workflow_id], row.time)
    return model.Results(
        runs=_rows(model.RunModel, **_columns_of_runs(env, runs)),
        unfinished=unfinished,
        warm_containers=_rows(
            model.WarmModel,
            **_nodes(env, warm["node"]),
            image=warm["image"],
            memory_mb=warm["memory"],
            begin_time=warm["time"],
            end_time=[end if end < INF else None for end in warm["end_time"].tolist()],
        ),
        servers=_rows(
            model.ServerLeaseModel,
            **_servers(env, range(len(servers))),
            lease_seconds=ledger["lease_seconds"].sum(axis=1),
            lease_expiration_time=[max(0.0, end) if end < INF else None for end in lease_ends],
            rent=ledger["rent"].sum(axis=1),
            egress=ledger["egress"].sum(axis=1) if regions else [None] * len(servers),
        ),
        total_rent=env.total_rent,
        last_completion_time=float(ends.max()),
        workflow_completion_times=tuple(ends.tolist()),
    )


def _unfinished(env: RawEnv) -> tuple[model.UnfinishedModel, ...]:
    """The functions that have failed or that nobody has called.

    Raises:
        InputError: one was skipped by a script, or failed otherwise than where servers change.
    """
    rows, functions = [], env.state.functions
    for wf_id, template in enumerate(env.workflow_templates):
        for fn_id in range(template.function_count):
            index = env.function_index(wf_id, fn_id)
            ended = functions[index]["state"]
            if ended == FINISHED:
                continue
            failed = ended == FAILED and len(env.state.recovery) > 0
            if not failed and ended != NOT_CALLED:
                raise InputError("episode: functions were skipped, which no episode file can say")
            rows.append(
                model.UnfinishedModel(
                    workflow_id=wf_id,
                    function_id=fn_id,
                    time=float(functions[index]["completion_time"]),
                    reason=model.REASONS[env.state.retried[index]["reason"] - 1 if failed else -1],
                )
            )
    return tuple(rows)


def _lease(env: RawEnv) -> Lease:
    """The lease without the trace of spot servers: what came of that are changes."""
    lease = env.rules.lease
    if lease.spot is None:
        return lease
    return lease.model_copy(update={"spot": lease.spot.model_copy(update={"trace": None})})


def _columns_of_runs(env: RawEnv, runs: np.ndarray) -> dict[str, Any]:
    """The columns of RUN records under their names in a file."""
    same = "queueing_time", "server_start_time", "data_transfer_time", "execution_time"
    columns: dict[str, Any] = {
        "workflow_id": runs["wf_id"],
        "function_id": runs["fn_id"],
        **_nodes(env, runs["node"]),
        "memory_allocated_mb": runs["memory_alloc"],
        "warm": runs["warm"] == 1,
        "outcome": [model.OUTCOMES[outcome] for outcome in runs["outcome"]],
        "container_cold_start_time": runs["cold_start_time"],
        **{key: runs[key] for key in (*model.MOMENTS, *same)},
    }
    if env.rules.order is not None:  # events of the queue are counted from 0
        numbers = np.unique([runs["joined"], runs["dispatched"]])
        columns |= {key: np.searchsorted(numbers, runs[key]) for key in ("joined", "dispatched")}
    return columns


def _queue(env: RawEnv) -> model.QueueModel | None:
    """The options of the central queue, as the engine has them."""
    options, order = env.state.options[0], env.rules.order
    if order is None:
        return None
    sharing = order.sharing if isinstance(order, SharedOrder) else None
    return model.QueueModel(
        order=model.ORDERS[options["order"]],
        placement=env.rules.placement,
        sharing=sharing,
        turns_seed=env.episode.workload.turns_seed if sharing is not None else None,
        lends=bool(options["lends"]) if options["order"] == BY_WORKFLOW else None,
        **{
            key: float(options[key]) if options[key] < INF else None
            for key in ("time_slice", "starve_threshold", "patience")
        },
    )


def _workflow(env: RawEnv, wf_id: int) -> model.WorkflowModel:
    """What was declared and drawn of a workflow."""
    state, template, work = env.state, env.workflow_templates[wf_id], env.episode.workload.work
    record, order = state.workflows[env.slot_of(wf_id)], state.options[0]["order"]
    first, count = state.templates[record["template"]]["first_function"], template.function_count
    columns: dict[str, Any] = {}
    if template.resources:
        units = zip(*(each.tolist() for each in template.resources.values()), strict=True)
        columns["resources"] = [dict(zip(template.resources, row, strict=True)) for row in units]
    if template.function_names:
        columns["name"] = [name or None for name in template.function_names]
    if template.regions:
        columns["regions"] = template.regions
    at = env.function_index(wf_id, 0)
    chosen = state.functions["region"][at : at + count].tolist()
    names = {NONE: None, **dict(enumerate(env.cluster_config.regions))}
    if len(state.images):
        declared = state.waiting[first : first + count]
        columns["image"] = declared["image"]
        if env.rules.order is not None and order == BY_RANK:
            columns["rank"] = declared["rank"]
    return model.WorkflowModel(
        workflow_id=wf_id,
        name=template.name if template.name not in ("", f"workflow {wf_id}") else None,
        arrival_time=env.arrival_times[wf_id],
        tenant=env.tenants[wf_id] if env.tenants else None,
        work=work[wf_id] if work else None,
        tickets=float(record["tickets"]) if order == BY_WORKFLOW else None,
        chosen_regions=tuple(names[each] for each in chosen) if max(chosen) != NONE else None,
        functions=_rows(
            model.FunctionModel,
            function_id=range(count),
            computation=template.computation,
            memory_required_mb=template.memory_req,
            parallelism=template.parallelism,
            **columns,
        ),
        edges=_rows(
            model.EdgeModel,
            source=template.edges[:, 0],
            target=template.edges[:, 1],
            data_bytes=template.data_bytes,
            probability=[each if each < 1 else None for each in template.probability.tolist()],
        ),
    )


def _rows(kind: type[Row], **columns: Any) -> tuple[Row, ...]:
    """A row for each place of some columns, with numbers of Python."""
    lists = [each.tolist() if isinstance(each, np.ndarray) else each for each in columns.values()]
    rows = (dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True))
    return tuple(kind.model_validate(row) for row in rows)


def _nodes(env: RawEnv, indices: Iterable[int]) -> dict[str, list[Any]]:
    """The columns of a row that say on which NUMA node it is."""
    places = [env.place_of(index) for index in indices]
    keys = ("server_type", "server_index", "numa_node_index")
    return {key: [place[at] for place in places] for at, key in enumerate(keys)}


def _servers(env: RawEnv, indices: Iterable[int]) -> dict[str, list[Any]]:
    """The columns of a row that say on which server it is."""
    columns = _nodes(env, (env.state.servers[index]["first_node"] for index in indices))
    columns.pop("numa_node_index")
    return columns
