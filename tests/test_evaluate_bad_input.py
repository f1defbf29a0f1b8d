"""`python evaluate.py` with bad input: one line, exit code 2, nothing written."""

import gzip
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
    "a file of a baseline": (["baselines=[no/such.yaml]"], "no/such.yaml: no such file"),
    "a name that is a file's": (["baselines=[random,no/random.yaml]"], "'random' is given twice"),
    "a file that is none": (["baselines=[text.yaml]"], "text.yaml: order, memory: missing"),
    "a word in a file": (["baselines=[word.yaml]"], "word.yaml"),
    "a step of nothing": (["lease.step=0.5"], "evaluate: lease.step: "),
    "an unknown lease": (["lease.kind=weekly"], "lease.kind: 'weekly' is unknown, allowed: hourly"),
    "a word for charged": (["lease=always", "lease.charged=maybe"], "evaluate: lease.charged: "),
    "negative patience": (["dispatch=queued", "dispatch.patience=-1"], "dispatch.patience: "),
    "a negative cold start": (["workload.container_cold_start=-1"], "container_cold_start: "),
    "an unknown keep-alive": (["keep_alive=lur"], "unknown option, did you mean 'lru'?"),
    "half a keep-alive": (["keep_alive.policy=fixed"], "evaluate: keep_alive.keep: missing"),
    "negative completion": (["objective.completion_weight=-1"], "objective.completion_weight: "),
    "an order where none waits": (
        ["baselines=[srf+random]"],
        "'srf+random' says who of a central queue",
    ),
    "an unknown order": (["dispatch=queued", "baselines=[srv+random]"], "'srv+random' is unknown"),
    "a reference that waits": (
        ["dispatch=queued", "baselines=[srf+rollout]"],
        "'srf+rollout' plays on in copies",
    ),
    "an order twice": (
        ["dispatch=queued", "baselines=[srf+random,srf+random]"],
        "'srf+random' is given twice",
    ),
    "no tiers": (["agents=placer", "agents.memory_tiers=[]"], "agents: memory_tiers"),
    "nobody": (["baselines=[]"], "neither a policy nor baselines"),
    "no episodes": (["episodes=0"], "episodes"),
    "a negative seed": (["seed=-1"], "seed"),
    "a word for a seed": (["seed=abc"], "seed: 'abc' is found, a whole number or a list of them"),
    "episodes without end": (["episodes=1000000000"], "episodes"),
    "the group of traces that was": (
        ["experiment=funcsched_load", "trace=azure2019"],
        "trace: unknown key, allowed: cluster, workflow, workload, ",
    ),
    "a key of a queue that was": (
        [*FREE, "dispatch.orders=[fcfs]"],
        "dispatch.orders: unknown key, allowed: dispatch.kind, dispatch.patience",
    ),
    "no trace named": (
        ["workload=azure2019"],
        "workload: source.path: missing",
    ),
    "a trace that is not there": (
        ["workload=azure2019", "workload.source.path=nowhere"],
        "nowhere/invocations.csv: no such file",
    ),
    "a file of a trace that is not there": (
        ["workload=azure2021", "workload.source.path=nowhere.csv"],
        "nowhere.csv: no such file",
    ),
    "an unknown kind of trace": (
        [*LIKE, "workload.source.kind=azure2020"],
        "workload: source.kind: 'azure2020' is unknown, did you mean 'azure2021'?",
    ),
    "an unknown sample": (
        [*LIKE, "workload/sampling=week_rear"],
        "workload/sampling=week_rear: unknown option, did you mean 'week_rare'?",
    ),
    "a sample of what is no trace": (["workload/sampling=week_rare"], "workload/sampling"),
    "a ratio above 1": ([*LIKE, "workload.sampling.ratio=1.5"], "workload: sampling.ratio: "),
    "a ratio at which nothing arrives": (
        [*LIKE, "workload.sampling.ratio=1e-9", "seed=[4]"],
        "workload.sampling: nothing arrives at ratio 1e-09 in episode 0 of seed 4, a higher",
    ),
    "a window behind the trace": (
        [*LIKE, "workload.sampling.start=1440"],
        "workload.sampling: with start 1440, compression 1 and workload.sampling.minutes 5 the ",
    ),
    "low above high": (
        [*LIKE, "workload.annotation.memory_factor=[3,2]"],
        "memory_factor is [3.0, 2.0], [low, high]",
    ),
    "arrivals of a trace": (
        [*LIKE, "workload.arrivals.mean_gap=3"],
        "workload.arrivals.mean_gap: unknown key, allowed: workload.sampling, ",
    ),
    "tenants of a trace": ([*LIKE, "+workload.tenants.a=1"], "tenants: Input should be 'owner' or"),
    "owners that no trace has": ([*LIKE, "+workload.tenants=owner"], "azure_like says no owner"),
    "workflows of a trace": (
        [*LIKE, "workflow=tiny"],
        "workflow: without effect, workload is a trace of single functions: leave it out",
    ),
    "a reference on a trace": ([*LIKE, "baselines=[rollout]"], "'rollout' plays on in copies"),
    "a deadline twice": (["slo=[2,2]"], "evaluate: slo: one of [2.0, 2.0] is given twice"),
    "a deadline of nothing": (["slo=[0]"], "evaluate: slo.0: Input should be greater than 0"),
    "late at once": (["late=0"], "evaluate: late: Input should be greater than 0"),
    "a number for a policy": ([*FREE, "policy=1"], "evaluate: policy"),
    "a key that a queue lacks": (
        [*FREE, "~workers"],
        "evaluate: workers: missing",
    ),
    "a queue that is resumed": (
        [*FREE, "resume=nowhere"],
        "resume: no run.json in 'nowhere'",
    ),
    "a word for episodes of a queue": (
        [*FREE, "episodes=abc"],
        "evaluate: episodes",
    ),
    "a seed twice": (["seed=[1,1]"], "given twice"),
    "no seed": (["seed=[]"], "seed: Tuple should have at least 1 item after validation, not 0"),
    "a mapping for a seed": (["seed={a: 1}"], "seed: a mapping is found, a whole number or a list"),
    "no workers": (["workers=0"], "workers"),
    "nothing to resume": (["resume=nowhere"], "resume: no run.json in 'nowhere'"),
    "a group": (["clutser=tiny"], "clutser: unknown key, did you mean 'cluster'?"),
    "an option": (["cluster=tinny"], "cluster=tinny: unknown option, did you mean 'tiny'?"),
    "a group for a key": (["baseline=drf"], "baseline: unknown key, did you mean 'baselines'?"),
    "an objective that nothing lowers": (
        ["lease=always", "objective.time_weight=0"],
        "objective: with lease=always nothing is paid, so cost alone is no objective",
    ),
    "an objective that nothing lowers in one scenario": (
        ["sweep={lease: [hourly,always]}", "objective.time_weight=0"],
        "so cost alone is no objective: give lease.charged=true, or a time_weight",
    ),
    "a key": (["episods=3"], "episods: unknown key, did you mean 'episodes'?"),
    "an added key": (["+workload.gap=3"], "workload: gap: unknown key"),
    "a folder": (["policy=nowhere"], "policy: no policy.json in 'nowhere'"),
    "a file for a folder": (["policy=text.json"], "policy: no policy.json in 'text.json'"),
    "a path too long": ([f"policy={'a' * 300}"], "cannot be read: File name too long"),
    "a bandwidth": (
        ["cluster.between_servers_bandwidth_bytes_per_s=-1"],
        "cluster: between_servers_bandwidth_bytes_per_s",
    ),
    "NaN in the objective": (["objective.time_weight=nan"], "objective.time_weight"),
    "NaN in the cluster": (
        ["cluster.server_types.small.hourly_rate=nan"],
        "server_types.small.hourly_rate",
    ),
    "NaN in the arrivals": (["workload.arrivals.mean_gap=nan"], "mean_gap"),
    "a tenant of nothing": (
        ["+workload.tenants.a=0"],
        "workload: tenants.a: Input should be greater than 0, found 0",
    ),
    "NaN of a tenant": (["+workload.tenants.a=nan"], "tenants.a: Input should be a finite"),
    "a tenant without tickets": (
        ["+workload.tenants={a: {share: 1, tickets: 2}, b: 1}"],
        "workload: tenants.b: has no tickets, but 'a' has",
    ),
    **{
        f"{amount} tickets": (
            [f"+workload.tenants={{a: {{share: 1, tickets: {amount}}}}}"],
            f"workload: tenants.a.tickets: Input should be {says}",
        )
        for amount, says in (
            ("0", "greater than or equal to 0.000000001"),
            ("-3", "greater than or equal to 0.000000001"),
            ("nan", "a finite number"),
            ("1e308", "less than or equal to"),
        )
    },
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
    "a currency of a tenant's name": (
        [
            "+workload.tenants={a: {share: 1, tickets: 2}}",
            "+workload.currencies={a: {tickets: 1}}",
        ],
        "'a' is that of a currency already",
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
    "a turn where nobody waits": (
        ["workload=tickets", "baselines=[stride]"],
        "baselines: 'stride' says who of a central queue goes next: dispatch=queued is needed",
    ),
    "two orders before a rule": (
        ["dispatch=queued", "baselines=[sjf+srf+best_fit]"],
        "'sjf+srf+best_fit': an order before another one is by tickets, 'sjf' is not",
    ),
    "a tenant that is never there": (
        ["workload=tickets", "dispatch=queued", "+workload.tenants.bob.active=[5,5]"],
        "tenants.bob: active is [5.0, 5.0], [from, until] ascending",
    ),
    "cores by nothing": (["cluster.cpu_share=lots"], "allowed: equal, tickets"),
    "cores by null": (
        ["cluster.cpu_share=null"],
        "cpu_share: Input should be 'equal' or 'tickets', found None",
    ),
    "negative fairness": (["objective.fairness_weight=-1"], "objective.fairness_weight: "),
    "a tenant of two words": (["+workload.tenants={a b: 1}"], "found 'a b'"),
    "a list of tenants": (
        ["~workload.tenants", "+workload.tenants=[a,b]"],
        "workload: tenants: a mapping is needed, found a list of 2",
    ),
    "an objective of nothing": (["objective.time_weight=0", "objective.cost_weight=0"], "all 0"),
    # The chain's second function needs 1,024 MB.
    "memory": (sorted(SMALL), "needs 1024 MB, the largest NUMA node has 1000"),
    "memory, of a workflow in the queue": (
        [*FREE, *sorted(SMALL)],
        "needs 1024 MB, the largest NUMA node has 1000",
    ),
    "memory, of a function of a trace": (
        [
            *(*LIKE, *sorted(SMALL), *FREE, "seed=[3,1]"),
            *("workload.annotation.min_memory=1001", "workload.annotation.max_memory=1001"),
        ],
        "workload, seed 3: workflow 'function_",
    ),
    "a free server": (
        ["cluster.server_types.large.hourly_rate=0"],
        "server_types.large.hourly_rate: found 0",
    ),
    "a tier twice": (["optimum.memory_tiers=[0.5,0.5]"], "one of [0.5, 0.5] is given twice"),
    "an address": (["ray.address=foo"], "ray.address: 'foo' is found"),
    "an address where nobody is": (
        ["workers=2", "ray.address=127.0.0.1:1"],
        "ray.address: '127.0.0.1:1': Connection refused",
    ),
    "a missing file": (["workflow=files", "workflow.path=nowhere.json"], "nowhere.json"),
    "no file named": (["workflow=files"], "path"),
    "an inline cycle": (["+workflow.mix.chain.edges=[{from: 0, to: 0, bytes: 1}]"], "chain"),
    "a cyclic file": (["workflow=files", "workflow.path=cyclic.json"], "cyclic.json"),
    "a file cut short": (["workflow=files", "workflow.path=cut.json.gz"], "cut.json.gz"),
    "an XML bomb": (["workflow=files", "workflow.path=bomb.dax"], "bomb.dax"),
    "a file without runtimes": (
        ["workflow=files", "workflow.path=bare.dax"],
        "bare.dax: no task has a runtime; to have them drawn, add "
        "workflow.annotation.without_runtimes=draw",
    ),
    "a file larger than allowed": (
        ["workflow=files", "workflow.path=zeros.json.gz"],
        "zeros.json.gz: more than 256,000,000 bytes (unpacked), too many",
    ),
    "a file larger than a limit of one's own": (
        ["workflow=files", "workflow.path=bare.dax", "workflow.max_bytes=10"],
        "bare.dax: more than 10 bytes",
    ),
    "a link that leads out": (
        ["workflow=files", "workflow.path=linked"],
        "away.dax: a link that leads out of",
    ),
    "a text": (["workflow=files", "workflow.path=text.json"], "text.json"),
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
    packed = gzip.compress((fixtures / "photo.json").read_bytes())
    (tmp_path / "cut.json.gz").write_bytes(packed[: len(packed) // 2])
    (tmp_path / "bomb.dax").write_text(
        '<!DOCTYPE a [<!ENTITY b "b"><!ENTITY c "&b;&b;">]><adag><job id="&c;"/></adag>'
    )
    (tmp_path / "text.json").write_text("{")
    (tmp_path / "bare.dax").write_text('<adag><job id="a" name="x"/></adag>')
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "away.dax").symlink_to(tmp_path / "bare.dax")
    (tmp_path / "zeros.json.gz").write_bytes(gzip.compress(bytes(10_000_000)) * 26)
    (tmp_path / "text.yaml").write_text("placement: {name: random}")
    (tmp_path / "word.yaml").write_text("random")


@pytest.mark.usefixtures("bad_files")
@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_one_line(case: str, command: Command) -> None:
    overrides, says = BAD[case]
    of_trace = any(word.startswith(("workload=azure", "experiment=")) for word in overrides)
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
