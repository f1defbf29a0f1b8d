"""Conditional calls: who runs, when and with what data where functions may not be called."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agents.baseline import make_baselines
from agents.order.fcfs import Fcfs
from agents.scheduler import play
from env.score.greedy_score import Forks, ScoreWeights
from env.score.lower_bound import lower_bound
from env.score.metrics import episode_metrics
from env.score.optimum import optimum
from env.score.reward import Objective
from env.sim.declared.hardware import ClusterConfig, ServerType
from env.sim.declared.rules import Lease, Rules
from env.sim.declared.server_changes import Recovery
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.events.endings import bring_back, skip_function, take_down
from env.sim.forecast.candidates import forecast_placements
from env.sim.view.raw_env import RawEnv
from report.timeline import read_timeline
from report.trace import trace_of
from tests.documents import left_out, put
from tests.env.sim.test_ways_out import go_on
from tests.episodes import begun, checked, end, objections, written
from tests.recount import assert_recounted

NEVER, SURELY = 1e-300, float(np.nextafter(1.0, 0.0))
"""Probabilities of calls that are drawn, but of which everybody knows what is drawn."""
TWO = ClusterConfig(1_000, 1e18, 1e18, 100.0, (ServerType("s", 2, 3.6, 0.0, 1, 4, 100),))
"""Servers that start at once, 100 bytes a second between them."""
TIME, BOTH = (Objective(time_weight=1, cost_weight=weight) for weight in (0, 1))


def workflow(*edges: tuple[int, int, float], size: int = 0) -> WorkflowTemplate:
    """Functions of 10 s each; calls with a probability, along which `size` bytes are moved."""
    count = 1 + max(max(edge[:2]) for edge in edges)
    ends, chances = [edge[:2] for edge in edges], np.array([edge[2] for edge in edges])
    work, ones, sizes = [10_000] * count, [1] * count, [size] * len(edges)
    return WorkflowTemplate("w", work, ones, ones, ends, sizes, probability=chances)


def diamond(to_1: float, to_2: float, from_1: float = 1, from_2: float = 1) -> WorkflowTemplate:
    """Function 3 waits for 1 and 2, which wait for 0; 4 waits for 3; 100 bytes on each edge."""
    edges = (0, 1, to_1), (0, 2, to_2), (1, 3, from_1), (2, 3, from_2), (3, 4, 1)
    return workflow(*edges, size=100)


def one(template: WorkflowTemplate, **others: Any) -> RawEnv:
    """One such workflow at time 0, recorded."""
    return begun([0.0], [template], TWO, record=True, **others)


def placed(env: RawEnv, *servers: int) -> RawEnv:
    """The same, after the next functions were placed on these servers."""
    for server in servers:
        env.step("s", server, 0, 1)
    return env


def states(env: RawEnv) -> list[str]:
    return [function.state for function in env.workload.workflows[0].functions]


def unfinished(env: RawEnv) -> list[tuple[int, float, str]]:
    """(function, time, reason) of those that its file says have not finished."""
    results = checked(env).expected
    assert results is not None
    return [(row.function_id, row.time, row.reason) for row in results.unfinished]


def called(env: RawEnv) -> list[tuple[int, int]]:
    return sorted(set(env.runs[["wf_id", "fn_id"]].tolist()))


@pytest.mark.parametrize("seed", [0, 1])
def test_calls_are_made_as_often_as_their_probability_says(seed: int) -> None:
    """Of 1,000 draws; 0.07 is 4.4 standard deviations."""
    fork = [workflow((0, 1, 0.5), (0, 2, 0.5))] * 1_000
    ran = set(called(end(begun([0.0] * 1_000, fork, TWO, record=True, turns_seed=seed))))
    drawn = np.array([[(wf_id, fn_id) in ran for fn_id in (1, 2)] for wf_id in range(1_000)])
    assert drawn.mean(axis=0) == pytest.approx([0.5, 0.5], abs=0.07)
    assert drawn.all(axis=1).mean() == pytest.approx(0.25, abs=0.07)


def test_a_synchronisation_node_runs_with_the_data_of_those_that_called_it(tmp_path: Path) -> None:
    """0 ends at 10 and calls 2 alone, which has its data in 1 s on the other server and ends at 21.

    3 is back on the first server: 1 s for the data of 2, none for those of 1. It ends at 32.
    """
    env = placed(one(diamond(NEVER, SURELY)), 0, 1)
    assert states(env) == ["FINISHED", "NOT_CALLED", "FINISHED", "SUBMITTED", "PENDING"]
    assert env.time == 21.0
    assert forecast_placements(env.state, 1)["data_transfer_time"] == pytest.approx([1.0, 0.0])
    placed(env, 0, 0)
    assert env.runs["end_time"] == pytest.approx([10.0, 21.0, 32.0, 42.0])
    assert env.state.ledger["egress_bytes"].tolist() == [100.0, 100.0]
    assert unfinished(env) == [(1, 10.0, "not called")]
    timeline = read_timeline(written(env, tmp_path / "e.json"))
    assert timeline.containers["fn_id"].tolist() == [0, 2, 3, 4]
    assert timeline.flow_times == pytest.approx([42.0])
    assert len(trace_of(timeline)["traceEvents"]) > 4


def test_what_no_branch_calls_is_skipped_and_so_is_what_is_behind_it() -> None:
    """1 ends at 20 and 2, whose data take a second, at 21: that is when nobody calls 3, nor 4."""
    env = placed(one(diamond(1, 1, from_1=NEVER, from_2=NEVER)), 0, 0, 1)
    assert env.done and env.time == 21.0
    assert states(env)[3:] == ["NOT_CALLED"] * 2
    assert_recounted(env.state)
    assert unfinished(env) == [(3, 21.0, "not called"), (4, 21.0, "not called")]


def test_a_workflow_may_end_by_a_skip() -> None:
    """Of four functions in a chain, 40 s, the first runs for 10 s; slowdowns are of the whole.

    A core costs 0.9 USD an hour: 40 s of work are worth 0.01 USD, and an hour of a server is paid.
    """
    chain = workflow((0, 1, NEVER), (1, 2, 1), (2, 3, 1))
    env = end(one(chain))
    assert unfinished(env) == [(fn_id, 10.0, "not called") for fn_id in (1, 2, 3)]
    assert env.workload.workflows[0].completion_time == 10.0
    metrics = episode_metrics(env.state, BOTH)
    assert metrics["slowdown"] == 0.25
    assert metrics["cost_ratio"] == pytest.approx(3.6 / 0.01)
    assert metrics["utilisation"] == pytest.approx(10 / (4 * 3600))
    assert env.state.cluster[0]["placed_work"] == env.state.cluster[0]["arrived_work"] == 40.0
    assert lower_bound(env.state, BOTH) == optimum(one(chain), BOTH, [1.0]) == metrics["J"]


def test_the_bound_is_the_longest_chain_of_what_was_called() -> None:
    """1 is not called, so 0 and 3 are it: 20 s of 30 s."""
    env = end(one(workflow((0, 1, NEVER), (1, 3, 1), (0, 3, SURELY), (1, 2, 1))))
    assert [row[0] for row in unfinished(env)] == [1, 2]
    assert lower_bound(env.state, TIME) == pytest.approx(20 / 30)


def test_the_same_calls_are_drawn_whoever_schedules() -> None:
    rng = np.random.default_rng(0)
    edges = [(a, b, 0.5) for b in range(8) for a in range(b) if rng.random() < 0.4]
    templates = [workflow(*edges)] * 30
    found = []
    for name in ("greedy_objective_tuned", "random", "earliest_finish"):
        env = begun([0.0] * 30, templates, TWO, record=True, turns_seed=7)
        play(env, make_baselines([name])[0], TIME, np.random.SeedSequence(0))
        found.append(called(env))
        checked(env)
    queued = Rules(order=Fcfs(), placement="first_fit", lease=Lease(kind="always"))
    env = begun([0.0] * 30, templates, TWO, record=True, rules=queued, turns_seed=7)
    found.append(called(env))
    checked(env)
    assert all(each == found[0] for each in found)
    assert 30 < len(found[0]) < 240
    other = end(begun([0.0] * 30, templates, TWO, record=True, turns_seed=8))
    assert called(other) != found[0]


def test_a_skip_by_a_script_calls_and_takes_no_probability() -> None:
    """As where calls are certain: whoever is skipped by a script calls all that it could."""
    env = one(diamond(NEVER, SURELY, from_1=NEVER))
    assert skip_function(env.state, 1) and skip_function(env.state, 2)
    go_on(env)
    end(env)
    assert states(env) == ["FINISHED", "SKIPPED", "SKIPPED", "FINISHED", "FINISHED"]


def test_a_play_out_does_not_know_what_will_be_drawn() -> None:
    """Of a chain whose second function is not called: 10 s of 20 s, or, as far as is known, all."""
    env = one(workflow((0, 1, NEVER)))
    weights = [ScoreWeights(finish=1.0, delay=0.0, rent=0.0)]
    assert Forks(env.state, True, TIME).of_rules(weights) == pytest.approx([0.5])
    assert Forks(env.state, False, TIME).of_rules(weights) == pytest.approx([1.0])
    assert states(end(env.fork())) == states(end(env)) == ["FINISHED", "NOT_CALLED"]


RECOVERY = Rules(recovery=Recovery(data_durability="server", retries=0))


def test_a_caller_that_runs_again_makes_the_same_calls() -> None:
    """The data of 0 are lost while 2 waits to be placed; 1 was not called, and is not then."""
    env = placed(one(diamond(NEVER, SURELY), rules=RECOVERY), 0)
    take_down(env.state, 0)
    bring_back(env.state, 0)
    go_on(env)
    assert states(env) == ["SUBMITTED", "NOT_CALLED", "PENDING", "PENDING", "PENDING"]
    end(env)
    assert env.runs["fn_id"].tolist() == [0, 0, 2, 3, 4]
    assert_recounted(env.state)


def test_data_of_a_function_that_does_not_call_are_not_read_and_not_made_again() -> None:
    """1 and 2 run on two servers, and 2 alone calls 3; then the server with data of 1 is lost."""
    env = placed(one(diamond(1, 1, from_1=NEVER), rules=RECOVERY), 1, 0, 1)
    assert forecast_placements(env.state, 1)["data_transfer_time"] == pytest.approx([1.0, 0.0])
    take_down(env.state, 0)
    go_on(env)
    assert states(env) == ["FINISHED", "FINISHED", "FINISHED", "SUBMITTED", "PENDING"]
    placed(env, 1, 1)
    assert env.runs["data_transfer_time"] == pytest.approx([0.0, 0.0, 1.0, 0.0, 0.0])


def test_a_failed_caller_fails_what_others_may_have_called() -> None:
    """1 is killed and may not try again; 3 fails with it, whatever 2 calls."""
    env = placed(one(diamond(1, 1, from_1=0.5), rules=RECOVERY), 1, 0)
    take_down(env.state, 0)
    go_on(env)
    placed(env, 1)
    assert states(env) == ["FINISHED", "FAILED", "FINISHED", "FAILED", "FAILED"]


def test_files_say_who_was_not_called_and_the_validator_draws_again() -> None:
    recorded = checked(end(one(workflow((0, 1, NEVER), (1, 2, 1)), turns_seed=5)))
    certain = checked(end(one(workflow((0, 1, 1), (1, 2, 1)))))
    assert (recorded.options.calls_seed, certain.options.calls_seed) == (5, None)
    found = objections(recorded, put("expected", "unfinished", 1, "time", to=12.0))
    assert found[0].startswith("workflow 0 function 2: not called is 12.0, 10.0 ")
    found = objections(recorded, left_out("expected", "unfinished", 1))
    assert found == ["workflow 0 function 2 is finished 0 times, exactly once is needed"]
    found = objections(recorded, put("workflows", to=certain.workflows))
    assert found == ["workflow 0 function 1: has to run, but is said not to be called"]
    found = objections(certain, put("workflows", to=recorded.workflows))
    assert found == ["workflow 0 function 1: runs, but no function that has finished calls it"]
