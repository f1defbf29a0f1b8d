"""What was measured of workflows: logs from episode files, and their summary by region.

An instance is a function of a workflow, by its name; a GB is 10^9 bytes.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Any, Final

from env.base.errors import InputError
from env.sim.check.schedule import Schedule
from env.sim.check.servers import GB, transfer_seconds
from env.sim.episode.episode_file import read_episode
from env.sim.episode.model import WorkflowModel
from env.tables.collectors import CollectorSettings
from env.tables.tables import AVAILABLE, Rows, Tables

TIME: Final = "%Y-%m-%d %H:%M:%S,%f%z"
"""How the document writes it."""

Log = dict[str, Any]
"""Of one run of a workflow; regions in it are a mapping of provider and region."""


def workflow_rows(
    tables: Tables, inputs: Sequence[str], settings: CollectorSettings, now: datetime
) -> dict[str, Rows]:
    """Reads episode files, whose time 0 is now; runs that the tables have stay as they are.

    The document's fields, and in addition the calls that were not made, `non_executions` of a log.
    Runs in part in a region that is not available are not in `workflow_instance_table`.
    """
    available, before = tables.rows(AVAILABLE), tables.rows("workflow_summary_table", least=0)
    logs = {name: {log["run_id"]: log for log in row["logs"]} for name, row in before.items()}
    for file in inputs:
        found = False
        for name, log in _logs(file, settings.home, now):
            logs.setdefault(name, {}).setdefault(log["run_id"], log)
            found = True
        if not found:
            raise InputError(f"{file}: no workflow that has a name has finished, one is needed")
    summaries, instances = {}, {}
    for name, by_id in logs.items():
        runs = sorted(by_id.values(), key=lambda log: (log["start_time"], log["run_id"]))
        synced = max(
            datetime.strptime(log["start_time"], TIME) + timedelta(seconds=log["runtime"])
            for log in runs
        )
        last = {"logs": runs, "last_sync_time": synced.strftime(TIME)}
        summaries[name] = {**_counted(runs), **last}
        if usable := [log for log in runs if available.keys() >= {*_regions(log).values()}]:
            instances[name] = {**_counted(usable), **_summary(usable)}
    return {"workflow_summary_table": summaries, "workflow_instance_table": instances}


def _logs(file: str, home: str, now: datetime) -> Iterator[tuple[str, Log]]:
    """(workflow, log) of those of an episode file that have a name and have finished."""
    episode = read_episode(file)
    if episode.expected is None:
        raise InputError(f"{file}: expected: missing, the results of the episode are needed")
    schedule, ends = Schedule(episode, episode.expected), episode.expected.workflow_completion_times
    ended = schedule.completed.keys() | schedule.not_called.keys()
    content = blake2b(episode.model_dump_json().encode(), digest_size=12).hexdigest()
    for workflow in episode.workflows:
        wf_id, begin = workflow.workflow_id, workflow.arrival_time
        if workflow.name and all((wf_id, each.function_id) in ended for each in workflow.functions):
            log = {
                "run_id": f"{content}{wf_id:08x}",
                "runtime": ends[wf_id] - begin,
                "start_time": (now + timedelta(seconds=begin)).strftime(TIME),
            }
            yield workflow.name, log | _measured(schedule, workflow, home)


def _measured(schedule: Schedule, workflow: WorkflowModel, home: str) -> Log:
    """Executions and transfers of a workflow, its start hop, and calls that were not made.

    Waiting and the start of servers and containers are in no latency.
    """
    wf_id = workflow.workflow_id
    names = {each.function_id: each.name or str(each.function_id) for each in workflow.functions}
    completed = schedule.completed
    runs = {each: completed[wf_id, each][-1] for each in names if (wf_id, each) in completed}
    at = {each: schedule.types[run.server_type].region or home for each, run in runs.items()}
    edges = [edge for edge in workflow.edges if edge.source in runs]
    made = {edge for edge in edges if schedule.is_taken(wf_id, edge)}
    first = min(runs.keys() - {edge.target for edge in workflow.edges})
    return {
        "execution_latencies": {
            names[each]: {"latency": run.execution_time, "provider_region": at[each]}
            for each, run in runs.items()
        },
        "transmission_data": [
            {
                "transmission_size": edge.data_bytes / GB,
                "transmission_latency": transfer_seconds(
                    schedule, runs[edge.source], runs[edge.target], edge.data_bytes
                ),
                "from_instance": names[edge.source],
                "to_instance": names[edge.target],
                "from_region": _parts(at[edge.source]),
                "to_region": _parts(at[edge.target]),
            }
            for edge in edges
            if edge in made
        ],
        "non_executions": [
            [names[edge.source], names[edge.target]] for edge in edges if edge not in made
        ],
        "start_hop_latency": runs[first].data_transfer_time,
        "start_hop_data_transfer_size": 0.0,
        "start_hop_destination": _parts(at[first]),
    }


def _summary(logs: Sequence[Log]) -> dict[str, Any]:
    """Samples of executions and transfers by instance and region, and how often calls were made."""
    hops: dict[str, Any] = {}
    instances: dict[str, Any] = {}
    calls: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for log in logs:
        hop = ":".join(log["start_hop_destination"].values())
        _add(log["start_hop_latency"], hops, hop, str(log["start_hop_data_transfer_size"]))
        at = _regions(log)
        for name, region in at.items():
            latency = log["execution_latencies"][name]["latency"]
            _add(latency, instances, name, "executions", region)
        for data in log["transmission_data"]:
            source, target = data["from_instance"], data["to_instance"]
            where = source, "to_instance", target, "regions_to_regions", at[source], at[target]
            _add(data["transmission_latency"], instances, *where, str(data["transmission_size"]))
            calls[source, target].append(True)
        for source, target in log["non_executions"]:
            calls[source, target].append(False)
    for instance in instances.values():
        instance["invocations"] = sum(map(len, instance["executions"].values()))
        instance.setdefault("to_instance", {})
    for (source, target), made in calls.items():
        counts = instances[source]["to_instance"].setdefault(target, {"regions_to_regions": {}})
        counts["invoked"], counts["non_executions"] = made.count(True), made.count(False)
        counts["invocation_probability"] = made.count(True) / len(made)
    return {"start_hop_summary": hops, "instance_summary": instances}


def _add(sample: float, samples: dict[str, Any], *keys: str) -> None:
    """Adds a sample to a list that lies below some keys."""
    for key in keys[:-1]:
        samples = samples.setdefault(key, {})
    samples.setdefault(keys[-1], []).append(sample)


def _counted(logs: Sequence[Log]) -> dict[str, Any]:
    """What both tables say of some runs."""
    return {
        "workflow_runtime_samples": [log["runtime"] for log in logs],
        "daily_invocation_counts": Counter(f"{log['start_time'][:10]}+0000" for log in logs),
    }


def _regions(log: Log) -> dict[str, str]:
    """In which each instance was executed."""
    return {name: run["provider_region"] for name, run in log["execution_latencies"].items()}


def _parts(region: str) -> dict[str, str]:
    """A region as logs write it."""
    return dict(zip(("provider", "region"), region.split(":", 1), strict=False))
