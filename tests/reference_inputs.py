"""What the engine is given, as the reference world takes it."""

from collections.abc import Mapping, Sequence
from dataclasses import astuple
from typing import Any, NamedTuple

import numpy as np

from agents.order.funcsched import FuncSched
from agents.order.srtf import Srtf
from env.sim.assembly.build import build
from env.sim.declared.episode import Episode, EpisodeWorkload
from env.sim.declared.hardware import ClusterConfig
from env.sim.declared.images import Images
from env.sim.declared.keep_alive_policy import FaasCache, Fixed, HybridHistogram, Lru, NoKeepAlive
from env.sim.declared.ordering import FIRST_COME, Order, declared_functions
from env.sim.declared.rules import KeepAlive
from env.sim.declared.workflow_template import WorkflowTemplate
from tests.reference_node import NOBODY
from tests.reference_records import Function, Image, Job, Rules
from tests.reference_world import ReferenceWorld
from tests.strategies import Scenario


def mean(idle_times: Sequence[float], order: tuple[int, ...] = (1, 0, 0)) -> float:
    """Stands in for ARIMA, which is slow and not what is tested here."""
    return float(np.mean(idle_times))


def rules_of(order: Order, keep_alive: KeepAlive, **others: Any) -> Rules:
    """The options of an order and a keep-alive policy, and others by name."""
    assert isinstance(keep_alive, NoKeepAlive | Fixed | Lru | FaasCache | HybridHistogram)
    dynamic: dict[type, str] = {Srtf: "srtf", FuncSched: "funcsched"}
    own = {
        name: getattr(keep_alive, name)
        for name in Rules.__dataclass_fields__
        if hasattr(keep_alive, name) and name != "keep_alive"
    }
    if isinstance(keep_alive, HybridHistogram):
        own["keep"] = keep_alive.fixed_keep
    return Rules(
        order=dynamic.get(type(order), "rank"),
        time_slice=getattr(order, "time_slice", getattr(order, "check_interval", np.inf)),
        starve_threshold=getattr(order, "starve_threshold", np.inf),
        keep_alive=keep_alive.policy,
        **own,
        **others,
    )


def jobs_of(
    times: Sequence[float],
    templates: Sequence[WorkflowTemplate],
    cluster: ClusterConfig,
    images: Images,
    order: Order,
    work: Sequence[int] = (),
) -> list[Job]:
    """The functions of workflows, ranked by an order; of a template they are declared once.

    Where each workflow is a single function, `work` has the operations that are drawn for it.
    """
    distinct = list(dict.fromkeys(templates))
    image_of = np.concatenate([images.of[template] for template in distinct])
    known_of_images = np.zeros(len(images.cold_start), [("cold_start", float), ("memory", int)])
    known_of_images["cold_start"] = images.cold_start
    known_of_images["memory"] = images.memory
    state = build(Episode(EpisodeWorkload(tuple(times), tuple(templates)), cluster))
    known = declared_functions(state, distinct, image_of, known_of_images, cluster)
    ranks = order.rank(known)
    made = [Image(float(seconds)) for seconds in images.cold_start]
    declared = iter(zip(image_of, known.execution, ranks, strict=True))
    functions = {}
    for template in distinct:
        for fn_id, (threads, memory) in enumerate(
            zip(template.parallelism, template.memory_req, strict=True)
        ):
            image, execution, rank = next(declared)
            functions[template, fn_id] = Function(
                made[image],
                float(execution),
                int(threads),
                int(memory),
                float(rank),
                {name: int(units[fn_id]) for name, units in template.resources.items()},
            )
    jobs = []
    for wf_id, (time, template) in enumerate(zip(times, templates, strict=True)):
        own = [
            Job(wf_id, fn_id, functions[template, fn_id], int(operations), time)
            for fn_id, operations in enumerate(work[wf_id : wf_id + 1] or template.computation)
        ]
        for (source, target), size in zip(template.edges, template.data_bytes, strict=True):
            own[target].predecessors.append((own[source], int(size)))
        jobs += own
    return jobs


def plain_jobs(
    times: Sequence[float], templates: Sequence[WorkflowTemplate], cluster: ClusterConfig
) -> list[Job]:
    """The functions of workflows that are placed at once."""
    return jobs_of(times, templates, cluster, Images.by_name(templates, 0.0), FIRST_COME)


class Decided(NamedTuple):
    """A decision: the function, when its container could start, and its node just before."""

    wf_id: int
    fn_id: int
    creation_time: float
    node_before: tuple[float, ...]


def play_plain(
    scenario: Scenario, owners: Mapping[int, tuple[str, int]] = NOBODY
) -> tuple[ReferenceWorld, list[Decided]]:
    """The reference, having played a scenario, and its decisions; `owners` as in `Rules`."""
    times, templates, cluster = scenario.arrival_times, scenario.templates, scenario.cluster
    jobs = plain_jobs(times, templates, cluster)
    statuses: list[tuple[Job, tuple[float, ...]]] = []

    def decide(played: ReferenceWorld, job: Job, _: list[int]) -> tuple[int, int]:
        name, server_id, node_id, memory = scenario.placements[job.wf_id, job.fn_id]
        number = cluster.places[name, server_id, node_id]
        statuses.append((job, astuple(played.nodes[number].status_at(played.now))))
        return number, memory

    rules = Rules(dispatch="immediate", lease="hourly", owners=owners)
    played = ReferenceWorld(cluster, jobs, rules, mean, decide)
    decided = []
    for job, status in statuses:
        assert job.container is not None
        decided.append(Decided(job.wf_id, job.fn_id, job.container.creation_time, status))
    return played, decided
