"""`python evaluate.py` with bad input: one line, exit code 2, nothing written."""

import json
import subprocess
from pathlib import Path

import pytest

from evaluate import prepared
from run.command import PROJECT
from tests.commands import Command, InProcess, refused
from tests.evaluate_command import BRIEF, EVALUATE

FREE = ("dispatch=queued", "lease=always", "record=0")
LIKE = ("workload=azure_like", "workload.source.functions=40")
SMALL = {f"cluster.server_types.{kind}.memory_mb_per_numa_node=1000" for kind in ("small", "large")}
BAD: dict[str, tuple[list[str], str]] = {
    "a baseline": (["baselines=[earliest_finsh]"], "did you mean 'earliest_finish'?"),
    "a baseline twice": (["baselines=[random,random]"], "'random' is given twice"),
    "a file that is none": (["baselines=[text.yaml]"], "text.yaml: order, memory: missing"),
    "an unknown lease": (["lease.kind=weekly"], "lease.kind: 'weekly' is unknown, allowed: hourly"),
    "half a keep-alive": (["keep_alive.policy=fixed"], "evaluate: keep_alive.keep: missing"),
    "an unknown order": (["dispatch=queued", "baselines=[srv+random]"], "'srv+random' is unknown"),
    "a reference that waits": (
        ["dispatch=queued", "baselines=[srf+rollout]"],
        "'srf+rollout' plays on in copies",
    ),
    "nobody": (["baselines=[]"], "neither a policy nor baselines"),
    "a negative seed": (["seed=-1"], "seed"),
    "a word for a seed": (["seed=abc"], "seed: 'abc' is found, a whole number or a list of them"),
    "a trace that is not there": (
        ["workload=azure2019", "workload.source.path=nowhere"],
        "nowhere/invocations.csv: no such file",
    ),
    "an unknown kind of trace": (
        [*LIKE, "workload.source.kind=azure2020"],
        "workload: source.kind: 'azure2020' is unknown, did you mean 'azure2021'?",
    ),
    "a window behind the trace": (
        [*LIKE, "workload.sampling.start=1440"],
        "workload.sampling: with start 1440, compression 1 and workload.sampling.minutes 5 the ",
    ),
    "low above high": (
        [*LIKE, "workload.annotation.memory_factor=[3,2]"],
        "memory_factor is [3.0, 2.0], [low, high]",
    ),
    "tenants of a trace": ([*LIKE, "+workload.tenants.a=1"], "tenants: Input should be 'owner' or"),
    "owners that no trace has": ([*LIKE, "+workload.tenants=owner"], "azure_like says no owner"),
    "a reference on a trace": ([*LIKE, "baselines=[rollout]"], "'rollout' plays on in copies"),
    "a deadline twice": (["slo=[2,2]"], "evaluate: slo: one of [2.0, 2.0] is given twice"),
    "a seed twice": (["seed=[1,1]"], "given twice"),
    "no seed": (["seed=[]"], "seed: Tuple should have at least 1 item after validation, not 0"),
    "a mapping for a seed": (["seed={a: 1}"], "seed: a mapping is found, a whole number or a list"),
    "nothing to resume": (["resume=nowhere"], "resume: no run.json in 'nowhere'"),
    "a group for a key": (["baseline=drf"], "baseline: unknown key, did you mean 'baselines'?"),
    "an objective that nothing lowers in one scenario": (
        ["sweep={lease: [hourly,always]}", "objective.time_weight=0"],
        "so cost alone is no objective: give lease.charged=true, or a time_weight",
    ),
    "a folder": (["policy=nowhere"], "policy: no policy.json in 'nowhere'"),
    "a file for a folder": (["policy=text.json"], "policy: no policy.json in 'text.json'"),
    "a path too long": ([f"policy={'a' * 300}"], "cannot be read: File name too long"),
    "a tenant without tickets": (
        ["+workload.tenants={a: {share: 1, tickets: 2}, b: 1}"],
        "workload: tenants.b: has no tickets, but 'a' has",
    ),
    "tickets of an unknown currency": (
        ["+workload.tenants={a: {share: 1, tickets: 2, currency: x}}"],
        "workload: tenants.a.currency: 'x' is unknown, allowed: base",
    ),
    "a cycle of currencies": (
        [
            "+workload.tenants={a: {share: 1, tickets: 2, currency: x}}",
            "+workload.currencies={x: {tickets: 1, currency: y}, y: {tickets: 1, currency: x}}",
        ],
        "workload: currencies.y.currency: 'y', a cycle: y -> x -> y",
    ),
    "a currency of nobody": (
        ["dispatch=queued", "+workload.currencies={a: {tickets: 1}}"],
        "currencies: no tenant has tickets",
    ),
    "turns without tickets": (
        ["dispatch=queued", "baselines=[stride]"],
        "'stride': tenants take turns by tickets, and workload.tenants holds none",
    ),
    "an order within a tenant that cuts short": (
        ["workload=tickets", "dispatch=queued", "baselines=[stride+rr]"],
        "'stride+rr': within a tenant functions go by critical_path, fcfs, ",
    ),
    "a second order within a tenant": (
        ["workload=tickets", "dispatch=queued", "baselines=[stride_workflows+sjf]"],
        "'stride_workflows+sjf': 'stride_workflows' says who goes next within a tenant",
    ),
    "half a pair": (
        ["dispatch=queued", "baselines=[sjf+]"],
        "'sjf+': a name is needed after the +",
    ),
    "two orders before a rule": (
        ["dispatch=queued", "baselines=[sjf+srf+best_fit]"],
        "'sjf+srf+best_fit': an order before another one is by tickets, 'sjf' is not",
    ),
    "a tenant that is never there": (
        ["workload=tickets", "dispatch=queued", "+workload.tenants.bob.active=[5,5]"],
        "tenants.bob: active is [5.0, 5.0], [from, until] ascending",
    ),
    "cores by null": (
        ["cluster.cpu_share=null"],
        "cpu_share: Input should be 'equal' or 'tickets', found None",
    ),
    "a tenant of two words": (["+workload.tenants={a b: 1}"], "found 'a b'"),
    "a list of tenants": (
        ["~workload.tenants", "+workload.tenants=[a,b]"],
        "workload: tenants: a mapping is needed, found a list of 2",
    ),
    # The chain's second function needs 1,024 MB.
    "memory": (sorted(SMALL), "needs 1024 MB, the largest NUMA node has 1000"),
    "memory, of a function of a trace": (
        [
            *(*LIKE, *sorted(SMALL), *FREE, "seed=[3,1]"),
            *("workload.annotation.min_memory=1001", "workload.annotation.max_memory=1001"),
        ],
        "workload, seed 3: workflow 'function_",
    ),
    "a tier twice": (["optimum.memory_tiers=[0.5,0.5]"], "one of [0.5, 0.5] is given twice"),
    "a cyclic file": (["workflow=files", "workflow.path=cyclic.json"], "cyclic.json"),
    "an XML bomb": (["workflow=files", "workflow.path=bomb.dax"], "bomb.dax"),
    "a file larger than a limit of one's own": (
        ["workflow=files", "workflow.path=bare.dax", "workflow.max_bytes=10"],
        "bare.dax: more than 10 bytes",
    ),
}


@pytest.fixture
def command(in_process: InProcess) -> Command:
    return in_process("evaluate", prepared)


@pytest.fixture
def bad_files(tmp_path: Path) -> None:
    fixtures = PROJECT / "tests" / "env" / "workloads" / "fixtures"
    photo = json.loads((fixtures / "photo.json").read_text())
    tasks = photo["workflow"]["specification"]["tasks"]
    for task in tasks:
        task["parents"] = task["children"] = [tasks[0]["id"]]
    (tmp_path / "cyclic.json").write_text(json.dumps(photo))
    (tmp_path / "bomb.dax").write_text(
        '<!DOCTYPE a [<!ENTITY b "b"><!ENTITY c "&b;&b;">]><adag><job id="&c;"/></adag>'
    )
    (tmp_path / "text.json").write_text("{")
    (tmp_path / "bare.dax").write_text('<adag><job id="a" name="x"/></adag>')
    (tmp_path / "text.yaml").write_text("placement: {name: random}")


@pytest.mark.usefixtures("bad_files")
@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_one_line(case: str, command: Command) -> None:
    overrides, says = BAD[case]
    of_trace = any(word.startswith("workload=azure") for word in overrides)
    told = [
        word for word in BRIEF if not of_trace or word not in ("workflow=tiny", "workload=tiny")
    ]
    refused(command(*told, *overrides), says)


def test_bad_input_ends_the_process_with_2(tmp_path: Path) -> None:
    done = subprocess.run(
        [*EVALUATE, *BRIEF, *sorted(SMALL)],
        cwd=tmp_path,
        text=True,
        capture_output=True,
        timeout=600,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert list(tmp_path.iterdir()) == []
