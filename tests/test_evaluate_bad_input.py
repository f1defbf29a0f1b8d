"""`python evaluate.py` with bad input: one line, exit code 2, nothing written."""

from pathlib import Path

import pytest

from agents.baseline import make_baselines
from tests.commands import Command, refused
from tests.documents import refused_in_a_line
from tests.env.worlds import TINY
from tests.evaluate_command import BRIEF, EVALUATE, ended

LIKE = ("workload=azure_like", "workload.source.functions=40")
SMALL = {f"cluster.server_types.{kind}.memory_mb_per_numa_node=1000" for kind in ("small", "large")}
BAD: dict[str, tuple[list[str], str]] = {
    "a baseline": (["baselines=[earliest_finsh]"], "did you mean 'earliest_finish'?"),
    "nobody": (["baselines=[]"], "neither a policy nor baselines"),
    "no trace named": (["workload=azure2019"], "workload: source.path: missing"),
    "owners that no trace has": ([*LIKE, "+workload.tenants=owner"], "azure_like says no owner"),
    "a deadline twice": (["slo=[2,2]"], "evaluate: slo: one of [2.0, 2.0] is given twice"),
    "a word for a seed": (["seed=abc"], "seed: Input should be a valid integer"),
    "a group for a key": (["baseline=drf"], "baseline: unknown key, did you mean 'baselines'?"),
    "a missing file": (["workflow=files", "workflow.path=nowhere.json"], "nowhere.json"),
    "a folder": (["policy=nowhere"], "policy: no policy.json in 'nowhere'"),
    "a tenant without tickets": (
        ["+workload.tenants={a: {share: 1, tickets: 2}, b: 1}"],
        "workload: tenants.b: has no tickets, but 'a' has",
    ),
    "tickets of an unknown currency": (
        ["+workload.tenants={a: {share: 1, tickets: 2, currency: x}}"],
        "workload: tenants.a.currency: 'x' is unknown, allowed: base",
    ),
    "a currency of nobody": (
        ["dispatch=queued", "+workload.currencies={a: {tickets: 1}}"],
        "currencies: no tenant has tickets",
    ),
    "a tenant that goes before it comes": (
        ["workload=tickets", "dispatch=queued", "+workload.tenants.bob.active=[6,5]"],
        "tenants.bob.active: found [6.0, 5.0], ascending numbers are needed",
    ),
    "an objective of nothing": (["objective.time_weight=0", "objective.cost_weight=0"], "all 0"),
    "no promise": (['keep={slowdown: "3"}'], "evaluate: keep: slowdown: one of <, <=, >, >= and"),
    "memory": (sorted(SMALL), "needs 1024 MB, the largest NUMA node has 1000"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_one_line(case: str, command: Command, tmp_path: Path) -> None:
    overrides, says = BAD[case]
    left_out = TINY[1:] if any(word.startswith("workload=azure") for word in overrides) else ()
    refused(command(*(word for word in BRIEF if word not in left_out), *overrides), says)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("no/such.yaml", "no/such.yaml: no such file"),
        ("srf+rollout", "'srf+rollout' plays on in copies"),
        ("stride", "'stride': tenants take turns by tickets, and workload.tenants holds none"),
        ("sjf+", "baselines: '' is unknown, allowed: autoscale_queue, "),
        (
            "stride+rr",
            "'stride+rr': within: Input tag 'rr' found using 'name' does not match any of the "
            "expected tags: 'critical_path', 'fcfs', ",
        ),
        ("stride_workflows+sjf", "': 'stride_workflows' says who goes next within a tenant"),
        ("sjf+srf+best_fit", "': an order before another one is by tickets, 'sjf' is not"),
    ],
)
def test_baselines_that_cannot_play_here(name: str, says: str) -> None:
    with refused_in_a_line("", says):
        make_baselines([name], queued=True, forks=False, funded=name != "stride")


def test_bad_input_ends_the_process_with_2(tmp_path: Path) -> None:
    done = ended([*EVALUATE, *BRIEF, *sorted(SMALL)], tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert list(tmp_path.iterdir()) == []
