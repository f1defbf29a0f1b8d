"""What one group says and another makes void is refused where it is typed."""

import pytest

from tests.commands import InProcess, doing, refused

TRACE = "workload=azure_like"
CASES = (
    ("train", ["workload.seed=3"], "seed says it"),
    ("evaluate", [TRACE, "workflow=tiny"], "workload is a trace of single functions"),
    ("evaluate", ["keep_alive=lru"], "dispatch is immediate and workload.container_cold_start=0"),
    ("evaluate", ["dispatch=queued", "lease=always", "dispatch.patience=9"], "lease=always, no"),
    ("evaluate", ["lease=always", "+lease.step=60"], "lease=always without lease.charged"),
    ("evaluate", ["agents=placer"], "policy is null"),
    ("evaluate", ["sweep={lease: [hourly]}", "record=5"], "nothing is recorded where something"),
    ("evaluate", ["workload=tickets", "objective.fairness_weight=1"], "no tenants with tickets"),
    ("search_baseline", ["+workload.tenants.a=1"], "training tells no tenants apart"),
    ("train", ["variation={single: 0.5, load: 0.5}"], "variation.unvaried is 1"),
    ("search_baseline", ["workload.container_cold_start=2"], "weights are searched where"),
)
PASS = (
    # A value that says what is so anyway.
    ("evaluate", ["keep_alive=none", "record=1", "sweep={lease: [hourly]}"]),
    ("train", ["variation.load=1.0", "lease=hourly", "+lease.charged=true"]),
    # What another group gives an effect.
    ("evaluate", ["keep_alive=lru", "workload.container_cold_start=2"]),
    ("evaluate", ["lease=always", "lease.charged=true", "+lease.step=60"]),
    ("evaluate", ["workload=tickets", "dispatch=queued", "objective.fairness_weight=1"]),
    ("train", ["agents=tenants", "workload=tickets", "workload.tenants.alice.tickets=5"]),
    ("train", ["variation=wide", "variation.load=0.5"]),
)


@pytest.mark.parametrize(("command", "told", "says"), CASES)
def test_a_row_names_what_makes_it_so(
    command: str, told: list[str], says: str, in_process: InProcess
) -> None:
    done = in_process(command, doing(lambda config, folder: None))(*told)
    key = told[-1].lstrip("+").partition("=")[0]
    refused(done, f"error: {key}: without effect, {says}")
    assert done.err.endswith(": leave it out\n")


@pytest.mark.parametrize(("command", "told"), PASS)
def test_what_counts_or_is_so_anyway_passes(
    command: str, told: list[str], in_process: InProcess
) -> None:
    done = in_process(command, doing(lambda config, folder: None))(*told)
    assert done.code == 0, done


def test_of_several_jobs_one_suffices(in_process: InProcess) -> None:
    command = in_process("evaluate", doing(lambda config, folder: None))
    assert command("-m", "dispatch=immediate,queued", "keep_alive=lru").code == 0
    assert command("-m", "seed=1,2", "keep_alive=lru").code == 2
