"""`python evaluate.py` as users run it: on baselines, learned policies, real files, bad input."""

import gzip
import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from agents.baseline import known_baselines
from agents.command import PROJECT, run
from agents.evaluation import Contest, Played, Task, all_metrics
from agents.learned.network import PolicySizes, SetPolicyNetwork
from agents.learned.policy_file import features_of, save_policy
from agents.settings import Network
from env.layouts import AgentsConfig, Layout
from env.reward import Objective
from env.schema import validated
from env.sim.episode_file import cluster_from_config, read_episode
from env.sim.replay import differences, replayed
from env.sim.validate import violations
from evaluate import check, evaluate
from report.results import read_results
from report.statistics import Estimate
from report.summary import spread
from tests.env.worlds import LAYOUTS, TINY, world

EVALUATE = [sys.executable, str(PROJECT / "evaluate.py")]
RULES = ["random", "earliest_finish", "cheapest"]
BRIEF = [*TINY, f"baselines=[{','.join(RULES)}]", "episodes=3"]
FILES = {
    *("run.json", "results.parquet", "summary.csv", "summary.json", "summary.md"),
    *("figures", "episodes", "traces", "report.html"),
}

Rows = list[dict[str, Any]]


class Done(NamedTuple):
    """A finished command."""

    code: int
    out: str
    err: str


Command = Callable[..., Done]


def run_in(folder: Path) -> Path:
    """The folder of the only evaluation in a folder."""
    (file,) = folder.glob("outputs/*/*/summary.json")
    return file.parent


def rows_in(folder: Path) -> Rows:
    """What the summary of the only evaluation in a folder says of every policy."""
    rows: Rows = json.loads((run_in(folder) / "summary.json").read_text())["policies"]
    return rows


def without_speed(rows: Rows) -> Rows:
    for row in rows:
        del row["metrics"]["decisions_per_s"]
    return rows


@pytest.fixture
def command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Command]:
    """Runs the command in `tmp_path` and in this process: starting one takes seconds."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONHASHSEED", "0")

    def call(*overrides: str) -> Done:
        monkeypatch.setattr(sys, "argv", ["evaluate.py", *overrides])
        code = 0
        try:
            run(evaluate, "evaluate", check)
        except SystemExit as left:
            code = int(left.code or 0)
        captured = capsys.readouterr()
        return Done(code, captured.out, captured.err)

    yield call


def refused(done: Done, says: str) -> None:
    """One line, exit code 2, no outputs folder where the command ran."""
    assert done.code == 2, done
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1
    assert says in done.err
    assert done.out == ""
    assert not Path("outputs").exists()


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder where the command ran as a process of its own, and what it printed."""
    folder = tmp_path_factory.mktemp("elsewhere")
    done = subprocess.run(
        [*EVALUATE, *BRIEF],
        cwd=folder,
        text=True,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return folder, done.stdout


def test_the_table_shows_all_policies(finished: tuple[Path, str]) -> None:
    folder, printed = finished
    assert "…" not in printed
    for row in rows_in(folder):
        (line,) = [line for line in printed.splitlines() if line.split()[:1] == [row["policy"]]]
        assert spread(Estimate(**row["metrics"]["J"]["mean"])) in line
        assert spread(Estimate(**row["against"]["difference"]), "+") in line


def test_the_files(finished: tuple[Path, str]) -> None:
    folder, printed = finished
    results = run_in(folder)
    assert printed.splitlines()[-1] == f"results: {results}"
    events = {path.name for path in results.glob("events.out.tfevents.*")}
    assert len(events) == 1
    assert {path.name for path in results.iterdir()} == {*FILES, *events, ".hydra"}
    rows = rows_in(folder)
    assert sorted(row["policy"] for row in rows) == sorted(RULES)
    means = [row["metrics"]["J"]["mean"]["value"] for row in rows]
    assert means == sorted(means)
    for row in rows:
        assert list(row["metrics"]) == list(all_metrics())
    table = read_results(results)
    assert sorted(zip(table["policy"], table["seed"], table["episode"], strict=True)) == sorted(
        (policy, 0, episode) for policy in RULES for episode in range(3)
    )
    recorded = {path.name for path in (results / "episodes").iterdir()}
    assert recorded == {f"{policy}_0_0000.json" for policy in RULES}


def test_what_was_run(finished: tuple[Path, str]) -> None:
    run = json.loads((run_in(finished[0]) / "run.json").read_text())
    assert run["command"] == " ".join(["python evaluate.py", *BRIEF])
    assert (run["seeds"], run["episodes"]) == ([0], 3)
    assert run["config"]["baselines"] == RULES
    assert run["versions"]["numpy"] == np.__version__


def test_an_interrupted_evaluation_goes_on(
    finished: tuple[Path, str], command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played = []

    def counted(contest: Contest, task: Task) -> Played:
        if len(played) == 1:
            raise KeyboardInterrupt
        played.append((task.episode, task.policies))
        return play(contest, task)

    play = Contest.play
    monkeypatch.setattr(Contest, "play", counted)
    with pytest.raises(KeyboardInterrupt):
        command(*BRIEF)
    (folder,) = tmp_path.glob("outputs/*/*")
    assert not (folder / "results.parquet").exists()
    # Another episode, or anything else that changes numbers, is refused.
    done = command(*BRIEF, "objective.time_weight=2", f"resume={folder}")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "resume: objective.time_weight is 2" in done.err
    monkeypatch.setattr(Contest, "play", lambda *it: played.append(it[1].episode) or play(*it))
    assert command(*BRIEF, f"resume={folder}").code == 0
    # The first episode is not played again, and nothing is elsewhere.
    assert played == [(0, tuple(RULES)), 1, 2]
    assert run_in(tmp_path) == folder
    assert without_speed(rows_in(tmp_path)) == without_speed(rows_in(finished[0]))


def test_a_signal_stops_between_episodes(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(contest: Contest, task: Task) -> Played:
        signal.raise_signal(signal.SIGINT)
        return play(contest, task)

    play = Contest.play
    monkeypatch.setattr(Contest, "play", interrupted)
    monkeypatch.setattr(sys, "argv", ["evaluate.py", *BRIEF])
    with pytest.raises(SystemExit, match="stopped, 3 of 9 episodes are played.* resume=.*outputs"):
        run(evaluate, "evaluate", check)
    (rows,) = tmp_path.glob("outputs/*/*/unfinished.jsonl")
    assert len(rows.read_text().splitlines()) == 3


def test_every_seed_has_its_own_episodes(command: Command, tmp_path: Path) -> None:
    assert command(*BRIEF, "seed=[0,7]", "episodes=2").code == 0
    table = read_results(run_in(tmp_path))
    assert len(table) == 2 * 2 * len(RULES)
    assert len(set(table.loc[table["policy"] == "random", "J"])) == 4


def test_the_same_command_gives_the_same_numbers(
    finished: tuple[Path, str], command: Command, tmp_path: Path
) -> None:
    assert command(*BRIEF).code == 0
    assert without_speed(rows_in(tmp_path)) == without_speed(rows_in(finished[0]))


def test_another_seed_gives_others(
    finished: tuple[Path, str], command: Command, tmp_path: Path
) -> None:
    assert command(*BRIEF, "seed=[1]").code == 0
    assert without_speed(rows_in(tmp_path)) != without_speed(rows_in(finished[0]))


def test_recorded_episodes_replay(command: Command, tmp_path: Path) -> None:
    assert command(*BRIEF, "episodes=2", "record=2").code == 0
    files = sorted(tmp_path.glob("outputs/*/*/episodes/*"))
    assert len(files) == 2 * len(RULES)
    for file in files:
        episode = read_episode(file)
        assert episode.expected is not None
        assert violations(episode) == []
        assert differences(replayed(episode), episode.expected) == []


def test_references_are_shown_and_never_the_measure(command: Command, tmp_path: Path) -> None:
    done = command(*TINY, "baselines=[clairvoyant,random,rollout]", "episodes=2")
    assert done.code == 0, done.err
    rows = {row["policy"]: row for row in rows_in(tmp_path)}
    assert {name: row["kind"] for name, row in rows.items()} == {
        "clairvoyant": "reference",
        "random": "baseline",
        "rollout": "reference",
    }
    assert rows["random"]["against"]["difference"]["value"] == 0
    assert rows["clairvoyant"]["against"]["difference"]["value"] < 0
    assert "rollout (reference)" in done.out


def test_a_baseline_of_ones_own(command: Command, tmp_path: Path) -> None:
    rule = (PROJECT / "conf" / "baseline" / "cheapest.yaml").read_text()
    Path("mine").mkdir()
    Path("mine/thrifty.yaml").write_text(rule)
    done = command(*TINY, "baselines=[cheapest,mine/thrifty.yaml]", "episodes=2")
    assert done.code == 0, done.err
    rows = {row["policy"]: row for row in without_speed(rows_in(tmp_path))}
    assert rows["thrifty"] == rows["cheapest"] | {"policy": "thrifty"}


SMALL = {f"cluster.server_types.{kind}.memory_mb_per_numa_node=1000" for kind in ("small", "large")}
BAD: dict[str, tuple[list[str], str]] = {
    "a baseline": (["baselines=[earliest_finsh]"], "did you mean 'earliest_finish'?"),
    "a baseline twice": (["baselines=[random,random]"], "'random' is given twice"),
    "a file of a baseline": (["baselines=[no/such.yaml]"], "'no/such.yaml': No such file"),
    "a name that is a file's": (["baselines=[random,no/random.yaml]"], "'random' is given twice"),
    "a file that is none": (["baselines=[text.yaml]"], "text.yaml: order: missing"),
    "a word in a file": (["baselines=[word.yaml]"], "word.yaml"),
    "no tiers": (["agents=placer", "agents.memory_tiers=[]"], "agents: memory_tiers"),
    "nobody": (["baselines=[]"], "neither a policy nor baselines"),
    "no episodes": (["episodes=0"], "episodes"),
    "a negative seed": (["seed=-1"], "seed"),
    "a seed twice": (["seed=[1,1]"], "given twice"),
    "no seed": (["seed=[]"], "seed"),
    "no workers": (["workers=0"], "workers"),
    "nothing to resume": (["resume=nowhere"], "resume: no run.json in 'nowhere'"),
    "a group": (["clutser=tiny"], "clutser: unknown key, did you mean 'cluster'?"),
    "an option": (["cluster=tinny"], "cluster=tinny: unknown option, did you mean 'tiny'?"),
    "a key": (["episods=3"], "episods: unknown key, did you mean 'episodes'?"),
    "an added key": (["+workload.gap=3"], "workload: gap: unknown key"),
    "a folder": (["policy=nowhere"], "policy: no policy.json in 'nowhere'"),
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
    "an objective of nothing": (["objective.time_weight=0", "objective.cost_weight=0"], "both 0"),
    # The chain's second function needs 1,024 MB.
    "memory": (sorted(SMALL), "needs 1024 MB, the largest NUMA node has 1000"),
    "a free server": (
        ["cluster.server_types.large.hourly_rate=0"],
        "server_types.large.hourly_rate: found 0",
    ),
    "a missing file": (["workflow=files", "workflow.path=nowhere.json"], "nowhere.json"),
    "no file named": (["workflow=files"], "path"),
    "an inline cycle": (["+workflow.mix.chain.edges=[{from: 0, to: 0, bytes: 1}]"], "chain"),
    "a cyclic file": (["workflow=files", "workflow.path=cyclic.json"], "cyclic.json"),
    "a file cut short": (["workflow=files", "workflow.path=cut.json.gz"], "cut.json.gz"),
    "an XML bomb": (["workflow=files", "workflow.path=bomb.dax"], "bomb.dax"),
    "a text": (["workflow=files", "workflow.path=text.json"], "text.json"),
}


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
    (tmp_path / "text.yaml").write_text("placement: {name: random}")
    (tmp_path / "word.yaml").write_text("random")


@pytest.mark.usefixtures("bad_files")
@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_one_line(case: str, command: Command) -> None:
    overrides, says = BAD[case]
    refused(command(*BRIEF, *overrides), says)


def test_bad_input_ends_the_process_with_2(tmp_path: Path) -> None:
    done = subprocess.run(
        [*EVALUATE, *BRIEF, *sorted(SMALL)],
        cwd=tmp_path,
        text=True,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert list(tmp_path.iterdir()) == []


def make_policy(folder: Path, layout: str, network: Network = "pooling", **agents: Any) -> Path:
    """A policy with random weights, as a run on the tiny cluster would leave it."""
    config = world(*TINY, f"agents={layout}")
    settings = {**config["agents"], **agents}
    made = Layout(
        validated(AgentsConfig, settings, "agents"),
        validated(Objective, config["objective"], "objective"),
        cluster_from_config(config["cluster"], "cluster"),
        see_future=False,
    )
    features = features_of(made)
    shared = settings.get("share_type_policy", True)
    torch.manual_seed(0)
    sizes, weights = {}, {}
    for agent in made.agents.values():
        name = agent.kind if shared else agent.name
        counts = {part: len(names) for part, names in features[agent.kind].items()}
        sizes[name] = PolicySizes(
            context=counts["context"],
            item=counts["items"],
            choices=agent.choices,
            bids=agent.bids,
            hidden=(8, 8),
            network=network,
            function=counts["functions"],
            message_rounds=2,
        )
        policy = SetPolicyNetwork(sizes[name])
        for parameter in policy.parameters():
            torch.nn.init.normal_(parameter)
        weights[name] = {key: tensor.numpy() for key, tensor in policy.state_dict().items()}
    save_policy(
        folder,
        weights=weights,
        sizes=sizes,
        features=features,
        layout=layout,
        memory_tiers=settings["memory_tiers"],
        objective=config["objective"],
        config={**config, "agents": settings},
    )
    return folder


LEARNED = [
    pytest.param(layout, shared, id=f"{layout}-{'shared' if shared else 'own'}")
    for layout, shared in [*((layout, True) for layout in LAYOUTS), ("server_types", False)]
]


@pytest.mark.parametrize("cluster", ["tiny", "homogeneous"])
@pytest.mark.parametrize(("layout", "shared"), LEARNED)
def test_a_learned_policy_beside_baselines(
    layout: str, shared: bool, cluster: str, command: Command, tmp_path: Path
) -> None:
    agents = {} if layout == "placer" else {"share_type_policy": shared}
    make_policy(tmp_path / "run" / "policy", layout, **agents)
    done = command(
        *TINY,
        f"cluster={cluster}",
        "baselines=[random]",
        "policy=run",
        "episodes=1",
        "record=2",
    )
    assert done.code == 0, done.err
    assert {row["policy"] for row in rows_in(tmp_path)} == {"learned", "random"}
    (file,) = tmp_path.glob("outputs/*/*/episodes/learned_0_0000.json")
    assert violations(read_episode(file)) == []


def test_a_policy_that_sees_the_workflow_plays_in_its_window_alone(
    command: Command, tmp_path: Path
) -> None:
    make_policy(tmp_path / "mine", "placer", workflow_window=4)
    told = (*TINY, "baselines=[]", "policy=mine", "episodes=2")
    assert command(*told).code == 0
    done = command(*told, "agents=placer")
    assert done.code == 2
    assert "mine: agent placer needs the functions features best_time" in done.err


def test_a_learned_policy_alone_repeats(command: Command, tmp_path: Path) -> None:
    make_policy(tmp_path / "mine", "hierarchical")
    found = []
    for folder in ("first", "second"):
        overrides = ["baselines=[]", "policy=mine", "episodes=2", f"hydra.run.dir={folder}"]
        assert command(*TINY, *overrides).code == 0
        summary = json.loads((tmp_path / folder / "summary.json").read_text())
        found.append(summary["policies"])
    assert without_speed(found[0]) == without_speed(found[1])
    assert found[0][0]["against"]["difference"] == {"value": 0, "ci_low": 0, "ci_high": 0}


def edited(**changes: Callable[[Any], Any]) -> Callable[[Path], None]:
    """Changes keys of policy.json."""

    def change(folder: Path) -> None:
        file = folder / "policy.json"
        found = json.loads(file.read_text())
        file.write_text(json.dumps(found | {key: to(found[key]) for key, to in changes.items()}))

    return change


def overwritten(name: str, content: bytes) -> Callable[[Path], None]:
    """Replaces a file of the folder."""

    def change(folder: Path) -> None:
        (folder / name).write_bytes(content)

    return change


def without_type_agents(found: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in found.items() if key != "server"}


def renamed(features: dict[str, Any]) -> dict[str, Any]:
    features["placer"]["context"][0] = "humidity"
    return features


def nothing(folder: Path) -> None:
    """Leaves the policy as it is."""


AS_PLACER: dict[str, Any] = world(*TINY, "agents=placer")["agents"]
# What is done to a policy of the layout hierarchical, further arguments, what the error says.
UNFIT: dict[str, tuple[Callable[[Path], None], list[str], str]] = {
    "layout": (
        nothing,
        ["agents=placer"],
        "agents.layout hierarchical, the environment has placer",
    ),
    "memory tiers": (
        nothing,
        ["agents=hierarchical", "agents.memory_tiers=[0.25,1.0]"],
        "agents.memory_tiers [0.5, 0.75, 1.0], the environment has [0.25, 1.0]",
    ),
    "feature names": (edited(features=renamed), [], "needs the context features humidity"),
    "an agent left out": (
        edited(networks=without_type_agents, features=without_type_agents),
        [],
        "none for the agent server_small",
    ),
    "another layout in its name": (
        edited(layout=lambda _: "placer", config=lambda found: found | {"agents": AS_PLACER}),
        [],
        "agent memory needs the context features",
    ),
    "no agents in its config": (edited(config=lambda _: {}), [], "agents: layout: missing"),
    "cut short": (
        overwritten("policy.json", b'{"format": 1,'),
        [],
        "policy.json: not JSON",
    ),
    "weights cut short": (
        overwritten("server.safetensors", b"\x08\0\0"),
        [],
        "server.safetensors: damaged",
    ),
    "weights missing": (
        lambda folder: (folder / "memory.safetensors").unlink(),
        [],
        "memory.safetensors: no such file",
    ),
}


@pytest.mark.parametrize("case", UNFIT)
def test_a_policy_that_does_not_fit_is_refused(case: str, command: Command, tmp_path: Path) -> None:
    damage, overrides, says = UNFIT[case]
    damage(make_policy(tmp_path / "mine", "hierarchical"))
    refused(command(*BRIEF, "policy=mine", *overrides), says)


def test_a_policy_with_other_choices_than_its_layout_is_refused(
    command: Command, tmp_path: Path
) -> None:
    # Trained with three tiers; the file claims two.
    make_policy(tmp_path / "mine", "placer")
    two = [0.5, 1.0]
    edited(
        memory_tiers=lambda _: two,
        config=lambda found: found | {"agents": {**AS_PLACER, "memory_tiers": two}},
    )(tmp_path / "mine")
    says = "3 choices and 0 bids for the agent placer, which has 2 and 0"
    refused(command(*BRIEF, "policy=mine"), says)


REAL = [
    "wfinstances/blast-chameleon-small-001.json.gz",
    "wfinstances/montage-chameleon-2mass-005d-001.json.gz",
    "wfinstances/srasearch-chameleon-10a-003.json.gz",
    "pegasus_dax/Montage_25.xml.gz",
]


@pytest.mark.realdata
def test_all_baselines_on_real_workflows(command: Command, tmp_path: Path, data_dir: Path) -> None:
    paths = ",".join(str(data_dir / name) for name in REAL)
    done = command(
        "workflow=files", f"workflow.path=[{paths}]", "workload.arrivals.workflows=[2,3]",
        "episodes=2", "record=2",
    )  # fmt: skip
    assert done.code == 0, done.err
    rows = rows_in(tmp_path)
    known = set(known_baselines())
    assert {row["policy"] for row in rows} == known - {"rollout", "clairvoyant"}
    assert {row["kind"] for row in rows} == {"baseline"}
    for row in rows:
        # Neither is below what a schedule can reach; fetching data and cold starts come on top.
        assert row["metrics"]["slowdown"]["mean"]["value"] > 1
        assert row["metrics"]["cost_ratio"]["mean"]["value"] >= 1
    for file in tmp_path.glob("outputs/*/*/episodes/*_0_0000.json"):
        assert violations(read_episode(file)) == []


def test_the_shipped_policy_beats_the_tuned_rule_without_training(
    command: Command, tmp_path: Path
) -> None:
    rule = "greedy_objective_tuned"
    assert command("policy=hetero_numa", f"baselines=[{rule}]", "episodes=25").code == 0
    mean = {row["policy"]: row["metrics"]["J"]["mean"]["value"] for row in rows_in(tmp_path)}
    assert mean["learned"] < 0.95 * mean[rule]


def test_an_unknown_policy_is_told_the_shipped_ones(command: Command) -> None:
    done = command("policy=hetero_nuna")
    refused(done, "shipped with the project: hetero_numa")
