"""`python evaluate.py keep=...`: how many servers a promise needs."""

import json
from pathlib import Path

from tests.commands import Command, refused
from tests.env.worlds import TINY
from tests.evaluate_command import BRIEF, run_in

SWEEP = "sweep={cluster.server_types.small.server_count: [1,4]}"
# No large server, and so much at once that one small one is not enough.
BUSY = [
    *TINY,
    "cluster.server_types.large.server_count=0",
    "workload.arrivals.mean_gap=1",
    "workload.arrivals.workflows=[20,20]",
    "baselines=[round_robin,earliest_finish]",
    "episodes=8",
]


def test_how_many_servers_a_promise_needs(command: Command, tmp_path: Path) -> None:
    """The bound is between what one and what four servers come to, whoever places."""
    assert command(*BUSY, SWEEP, 'keep={slowdown_p95: "<1e9"}').code == 0
    found = json.loads((run_in(tmp_path) / "promise.json").read_text())["rows"]
    means = {(row["scenario"], row["policy"]): row["means"][0] for row in found}
    few, many = ([mean for (where, _), mean in means.items() if f"={n}" in where] for n in (1, 4))
    low, high = max(mean["ci_high"] for mean in many), min(mean["ci_low"] for mean in few)
    assert low < high
    (tmp_path / "outputs").rename(tmp_path / "before")
    done = command(*BUSY, SWEEP, f'keep={{slowdown_p95: "<{(low + high) / 2}"}}', "minimise=rent")
    assert done.code == 0, done.err
    assert "with small.server_count=4" in done.out
    assert "2 surely keep it, 2 surely do not" in done.out
    best = json.loads((run_in(tmp_path) / "promise.json").read_text())["best"]
    rents = [row["spent"]["value"] for row in found if row["scenario"].endswith("=4")]
    assert best["spent"]["value"] == min(rents)


def test_promises_may_change_when_an_evaluation_goes_on(command: Command, tmp_path: Path) -> None:
    assert command(*BRIEF, 'keep={slowdown: "<0"}').code == 0
    done = command(*BRIEF, 'keep={slowdown: ">0"}', f"resume={run_in(tmp_path)}")
    assert done.code == 0 and "Cheapest that surely keeps slowdown > 0" in done.out


def test_what_is_no_promise_is_refused(command: Command) -> None:
    says = "evaluate: keep: slowdown: one of <, <=, >, >= and a number"
    refused(command(*BRIEF, 'keep={slowdown: "3"}'), says)
