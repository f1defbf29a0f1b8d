"""One event after another told to a small cluster, with numbers worked out by hand."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from agents.baseline import known_baselines, make_baselines
from agents.learned.learned_scheduler import SHIPPED, LearnedScheduler
from agents.live import Assignment, LiveCluster
from agents.scheduler import Decision, Scheduler
from env.base.errors import InputError
from env.score.reward import Objective
from env.sim.declared.hardware import ClusterConfig, ServerType
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.state.block import CHANGING
from env.sim.view.workload import Function
from tests.recount import assert_recounted

OBJECTIVE = Objective(time_weight=1.0, cost_weight=1.0)
# Two servers with one NUMA node each: 2 cores of 1,000 operations/s, 4 MB, 10 s of cold start.
CLUSTER = ClusterConfig(1_000, 1e12, 1e12, 100.0, (ServerType("s", 2, 0.36, 10.0, 1, 2, 4),))
# 10 s, 8 s for the data to another server, 20 s.
CHAIN = WorkflowTemplate("chain", [10_000, 20_000], [3, 3], [1, 1], [(0, 1)], [800])
LONG = WorkflowTemplate("long", [3_500_000], [1], [1], [], [])


class InTurn(Scheduler):
    """Places on the NUMA nodes it is given, one after another, with the memory that is needed."""

    name = "in turn"

    def __init__(self, *nodes: int) -> None:
        self.nodes = list(nodes)
        self.seen: list[np.ndarray] = []

    def choose(self, decision: Decision) -> int:
        self.seen.append(decision.rows.copy())
        return self.nodes.pop(0)


def live_with(*nodes: int, most_active: int = 8) -> LiveCluster:
    return LiveCluster(CLUSTER, [CHAIN, LONG], InTurn(*nodes), OBJECTIVE, most_active)


def function(live: LiveCluster, wf_id: int, fn_id: int) -> Function:
    return live.env.workload.workflows[wf_id].functions[fn_id]


def running(*nodes: int) -> LiveCluster:
    """Function 0 of workflow `a` runs on server 0 since 10."""
    live = live_with(0, *nodes)
    live.arrived(0.0, "a", "chain")
    assert live.next_assignment(0.0) == Assignment("a", 0, "s", 0, 0, 3, starts_server=True)
    assert live.next_assignment(0.0) is None
    live.server_up(10.0, "s", 0)
    live.started(10.0, "a", 0)
    return live


def projected_end(live: LiveCluster, node: int = 0) -> float:
    return float(live.env.state.nodes[node]["next_completion"])


def told(live: LiveCluster) -> dict[str, Any]:
    """All that a live cluster knows, but for what has no meaning between calls."""
    state = live.env.state
    used = {
        "scratch": 0,
        "containers": state.cluster[0]["containers_used"],
        "submitted": state.cluster[0]["queue_size"],
        "timers": state.cluster[0]["timers_size"],
        "completed": state.log[0]["completed_count"],
    }
    records = {name: getattr(state, name)[: used.get(name)].tobytes() for name in CHANGING}
    known = {"up": live._up.tolist(), "started": live._started.tolist(), "slots": {**live._slots}}
    return {**records, **known, "asked": live.env.current_function}


def refused(live: LiveCluster, ask: Callable[[], object], *expected: str) -> None:
    before = told(live)
    with pytest.raises(InputError) as error:
        ask()
    line = str(error.value)
    assert line.isprintable() and len(line) < 250
    for part in expected:
        assert part in line
    assert told(live) == before


def test_a_server_and_its_data_come_late() -> None:
    live = live_with(0)
    live.arrived(5.0, "a", "chain")
    live.next_assignment(5.0)
    assert projected_end(live) == 25.0
    live.arrived(18.0, "b", "chain")  # and the server is not up
    assert projected_end(live) == 28.0
    live.server_up(20.0, "s", 0)
    assert projected_end(live) == 30.0
    live.arrived(24.0, "c", "chain")  # and the function has not started
    assert projected_end(live) == 34.0
    live.started(26.0, "a", 0)
    assert projected_end(live) == 36.0
    assert function(live, 0, 0).start_time == 26.0
    assert_recounted(live.env.state)


def test_a_server_and_its_data_come_early() -> None:
    live = live_with(0, 1)
    live.arrived(0.0, "a", "chain")
    live.next_assignment(0.0)
    live.server_up(4.0, "s", 0)
    assert projected_end(live) == 14.0
    live.started(4.0, "a", 0)
    live.finished(6.0, "a", 0)
    assert live.next_assignment(6.0).starts_server
    live.server_up(16.0, "s", 1)
    assert function(live, 0, 1).start_time == 24.0  # 8 s for the data, the model says
    live.started(17.0, "a", 1)
    assert function(live, 0, 1).creation_time == 17.0
    assert projected_end(live, 1) == 37.0
    assert_recounted(live.env.state)


def test_a_function_that_is_late_is_projected_to_end_at_any_moment() -> None:
    live = running(1)
    assert projected_end(live) == 20.0
    live.arrived(27.0, "b", "chain")
    live.next_assignment(27.0)
    assert function(live, 0, 0).state == "RUNNING"
    seen = live._scheduler.seen[-1]
    assert seen["first_completion"].tolist() == [pytest.approx(0.001), 0.0]
    # It has its memory until then, so another that needs 3 of 4 MB would wait.
    assert seen["waits"].tolist() == [1, 0]
    live.finished(30.0, "a", 0)
    assert function(live, 0, 0).completion_time == 30.0
    assert function(live, 0, 1).submission_time == 30.0
    assert_recounted(live.env.state)


def test_a_function_that_is_early_makes_room() -> None:
    live = running(0)
    live.arrived(12.0, "b", "chain")
    live.next_assignment(12.0)
    assert function(live, 1, 0).start_time is None
    live.finished(13.0, "a", 0)
    assert function(live, 1, 0).start_time == 13.0
    assert projected_end(live) == 23.0
    assert_recounted(live.env.state)


def test_a_function_that_waits_in_the_model_may_start_in_reality() -> None:
    live = running(0)
    live.arrived(12.0, "b", "chain")
    live.next_assignment(12.0)
    live.started(15.0, "b", 0)
    assert function(live, 1, 0).start_time == 15.0
    assert live.env.overcommits == 1
    live.finished(16.0, "b", 0)
    live.finished(20.0, "a", 0)
    assert_recounted(live.env.state)


def test_a_lease_goes_on_where_it_ended_while_a_function_is_late() -> None:
    live = live_with(0)
    live.arrived(0.0, "a", "long")
    live.next_assignment(0.0)
    live.server_up(10.0, "s", 0)
    live.started(10.0, "a", 0)  # projected to end at 3510
    server = live.env.cluster.servers["s"][0]
    assert server.expiration_time == 3600.0
    live.arrived(4000.0, "b", "chain")
    assert server.expiration_time == 7200.0
    live.finished(11_000.0, "a", 0)
    assert server.expiration_time == 14_400.0
    assert live.env.total_rent == pytest.approx(4 * 0.36)
    assert_recounted(live.env.state)


def test_a_function_projected_to_end_with_the_lease_has_not_ended_unless_told() -> None:
    live = live_with(0, 0)
    live.arrived(90.0, "a", "long")
    live.next_assignment(90.0)
    live.server_up(190.0, "s", 0)
    live.started(190.0, "a", 0)
    assert projected_end(live) == live.env.cluster.servers["s"][0].expiration_time == 3690.0
    live.arrived(3690.0, "b", "chain")
    assert not live.next_assignment(3690.0).starts_server
    live.finished(3690.5, "a", 0)
    assert_recounted(live.env.state)


def test_a_server_is_off_when_its_lease_ends_with_nothing_on_it() -> None:
    live = running(0, 0)
    live.finished(20.0, "a", 0)
    assert not live.next_assignment(30.0).starts_server
    live.started(30.0, "a", 1)
    live.finished(50.0, "a", 1)
    with pytest.raises(InputError, match="server s 0 is off, starting or up is needed"):
        live.server_gone(3600.0, "s", 0)
    live.arrived(3600.0, "b", "chain")
    assert live.next_assignment(3600.0).starts_server
    live.server_up(3610.0, "s", 0)


def test_what_runs_on_a_server_that_goes_is_placed_again() -> None:
    live = running(0, 1)
    live.server_gone(15.0, "s", 0)
    assert function(live, 0, 0).state == "SUBMITTED"
    assert live.env.total_rent == 0.36
    assert live._scheduler.nodes == [0, 1]
    with pytest.raises(InputError, match=r"^scheduler in turn: .* server s 0 is down"):
        live.next_assignment(15.0)
    assert live.next_assignment(15.0) == Assignment("a", 0, "s", 1, 0, 3, starts_server=True)
    live.server_up(25.0, "s", 1)
    live.started(25.0, "a", 0)
    assert projected_end(live, 1) == 35.0  # all of its work
    assert_recounted(live.env.state)


def test_a_server_that_nobody_started_is_leased_from_when_it_is_up() -> None:
    live = live_with(1)
    live.server_up(100.0, "s", 1)
    assert live.env.cluster.servers["s"][1].expiration_time == 3700.0
    live.arrived(200.0, "a", "chain")
    assert not live.next_assignment(200.0).starts_server
    live.started(200.0, "a", 0)
    assert projected_end(live, 1) == 210.0
    assert (live.env.total_rent, live.env.cold_starts) == (0.36, 0)


def test_workflows_come_without_end() -> None:
    """Records of finished workflows serve others, and their names are free again."""
    live = live_with(*[0] * 101, most_active=1)
    live.server_up(0.0, "s", 0)
    for round_ in range(100):
        time = 20.0 * round_
        live.arrived(time, "again", "long")
        with pytest.raises(InputError, match="^1 workflows are active: a larger most_act"):
            live.arrived(time, "other", "chain")
        assert live.next_assignment(time) is not None
        live.started(time, "again", 0)
        live.finished(time + 1.0, "again", 0)
    assert live.env.state.cluster[0]["finished_workflows"] == 100
    live.arrived(2000.0, "again", "chain")
    assert live.env.workload.workflows[0].template is CHAIN


WRONG: dict[str, tuple[Callable[[LiveCluster], object], str]] = {
    "the past": (
        lambda live: live.finished(9.0, "a", 0),
        "time is 9.0, at least 10.0 and",
    ),
    "arrived twice": (
        lambda live: live.arrived(11.0, "a", "long"),
        "workflow 'a' is active already",
    ),
    "started before it was placed": (
        lambda live: live.started(11.0, "a", 1),
        "function 1 of workflow 'a' is PENDING, RUNNING is needed",
    ),
    "started twice": (
        lambda live: live.started(11.0, "a", 0),
        "function 0 of workflow 'a' has started already",
    ),
    "finished, but never started": (
        lambda live: live.finished(11.0, "b", 0),
        "function 0 of workflow 'b' has not started",
    ),
    "started on a server that is not up": (
        lambda live: live.started(11.0, "b", 0),
        "function 0 of workflow 'b' is on server s 1, server_up is needed before",
    ),
    "no such server": (
        lambda live: live.server_gone(11.0, "s", 2),
        "server type 's' has servers 0 to 1 with NUMA nodes 0 to 0, found server 2",
    ),
    "up twice": (
        lambda live: live.server_up(11.0, "s", 0),
        "server s 0 is up, off or starting is needed",
    ),
    "back, but not gone": (
        lambda live: live.server_back(11.0, "s", 0),
        "server s 0 is up, gone is needed",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_is_refused_and_changes_nothing(name: str) -> None:
    live = running(1)
    tell, expected = WRONG[name]
    if "function 0 of workflow 'b'" in expected or "on server s 1" in expected:
        live.arrived(10.0, "b", "chain")
        live.next_assignment(10.0)
    refused(live, lambda: tell(live), expected)


class Answers(InTurn):
    """Answers what it is told to, or raises it; later, server 0."""

    tiers = (1.0, 2.0)

    def __init__(self, *answers: Any) -> None:
        super().__init__()
        self.answers = list(answers)

    def choose(self, decision: Decision) -> Any:
        # Forecasts write into the records, too.
        decision.candidates(decision.function.memory_req)
        answer = self.answers.pop(0) if self.answers else 0
        if isinstance(answer, BaseException):
            raise answer
        return answer


def late(*answers: Any) -> LiveCluster:
    """At 10, function 0 of `a` has just begun, to end at 20; from 10 on, `b` waits for a place."""
    live = LiveCluster(CLUSTER, [CHAIN, LONG], Answers(0, *answers), OBJECTIVE, 8)
    live.arrived(0.0, "a", "chain")
    assert live.next_assignment(0.0) is not None
    live.server_up(10.0, "s", 0)
    live.started(10.0, "a", 0)
    live.arrived(10.0, "b", "chain")
    return live


NEEDED = "choose: row: a whole number from 0 to 3 is needed, found"
WRONG_PLACES: list[tuple[Any, str]] = [
    (None, f"{NEEDED} None"),
    (0.0, f"{NEEDED} 0.0"),
    ("a\nb", rf"{NEEDED} 'a\nb'"),
    (10**30, f"{NEEDED} {10**30}"),
    (-1, f"{NEEDED} -1"),
    (1, "function (1, 0): memory_alloc is 6 MB, NUMA node 0 of server s 0 takes"),
]


@pytest.mark.parametrize(("answer", "says"), WRONG_PLACES, ids=lambda value: repr(value)[:20])
def test_a_place_that_is_not_possible(answer: Any, says: str) -> None:
    live = late(answer)
    refused(live, lambda: live.next_assignment(15.0), f"scheduler in turn: {says}")


@pytest.mark.parametrize("kind", [InputError, RuntimeError, KeyError, KeyboardInterrupt])
def test_whatever_a_scheduler_raises_changes_nothing(kind: type[BaseException]) -> None:
    """Even of what is late: at 25, function 0 of `a` should have ended at 20."""
    live = late(kind("no idea"))
    before = told(live)
    with pytest.raises(kind, match="no idea"):
        live.next_assignment(25.0)
    assert told(live) == before


def test_what_a_live_cluster_does_not_have_is_refused() -> None:
    for unfit in (make_baselines(["fcfs"], queued=True), make_baselines(["rollout"])):
        with pytest.raises(InputError, match="a live cluster has no central queue"):
            LiveCluster(CLUSTER, [CHAIN], unfit[0], OBJECTIVE)
    with pytest.raises(InputError, match="^workflows: two are called 'chain'"):
        LiveCluster(CLUSTER, [CHAIN, LONG, CHAIN], InTurn(), OBJECTIVE)
    big = WorkflowTemplate("big", [1], [5], [1], [], [])
    with pytest.raises(InputError, match="^workflow 'big'"):
        LiveCluster(CLUSTER, [CHAIN, big], InTurn(), OBJECTIVE)
    drawn = replace(CHAIN, probability=[0.5] * len(CHAIN.edges))
    with pytest.raises(InputError, match="^workflow 'chain': conditional calls, which cannot be"):
        LiveCluster(CLUSTER, [drawn], InTurn(), OBJECTIVE)


UNLIKE = ClusterConfig(
    *(1_000, 1e12, 1e12, 100.0),
    (
        ServerType("small", 2, 0.1, 10.0, 1, 2, 4),
        ServerType("large", 1, 0.4, 10.0, 2, 4, 16, resources={"gpu": 1}),
    ),
)
PLACERS: list[Scheduler] = [
    *(each for each in make_baselines(known_baselines()) if each.kind != "reference"),
    *(LearnedScheduler(path.name, UNLIKE, OBJECTIVE, name=path.name) for path in SHIPPED.iterdir()),
]


@pytest.mark.parametrize("scheduler", PLACERS, ids=lambda each: each.name)
@pytest.mark.parametrize("memory, gpu", [(8, 0), (1, 1)], ids=["memory", "gpu"])
def test_what_only_a_server_that_is_gone_holds_waits_and_all_others_are_placed(
    scheduler: Scheduler, memory: int, gpu: int
) -> None:
    """Half of 8 MB would find room on a small server, at half the speed; `stingy` gives no more."""
    only_large = WorkflowTemplate("only", [10_000], [memory], [1], [], [], resources={"gpu": [gpu]})
    live = LiveCluster(UNLIKE, [only_large, LONG], scheduler, OBJECTIVE)
    live.server_up(0.0, "large", 0)
    live.server_gone(1.0, "large", 0)
    live.arrived(2.0, "a", "only")
    assert live.next_assignment(2.0) is None
    live.arrived(3.0, "b", "long")
    live.arrived(3.0, "c", "only")
    live.arrived(4.0, "d", "long")
    found = [live.next_assignment(4.0) for _ in range(3)]
    assert [each and (each.workflow, each.server_name) for each in found] == [
        ("b", "small"),
        ("d", "small"),
        None,
    ]
    assert_recounted(live.env.state)
    live.server_back(5.0, "large", 0)
    found = [live.next_assignment(5.0) for _ in range(3)]
    assert [each and each.workflow for each in found] == ["a", "c", None]
    assert_recounted(live.env.state)
