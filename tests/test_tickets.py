"""The experiments of conf/experiment/tickets_* that evaluate: each runs, their directions hold."""

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from env.sim.check.validate import violations
from env.sim.episode.episode_file import read_episode
from env.sim.episode.replay import played
from evaluate import prepared
from evaluation.shares import Shares, shares_of
from run.command import CONF
from tests.commands import Command, InProcess
from tests.evaluate_command import results_in, run_in, told_in

EXPERIMENTS = sorted(
    path.stem
    for path in (CONF / "experiment").glob("tickets_*.yaml")
    if "\nbaselines:" in path.read_text()  # others train, tests/test_train.py
)
FOLDER = Path(__file__).parent / "env" / "workloads" / "fixtures" / "azure2019"
COUNT = "workload.arrivals.workflows"
BRIEF = {
    "tickets_orders": [f"{COUNT}=[60,60]"],
    "tickets_joins": [f"{COUNT}=[100,100]", "workload.tenants.carol.active=[20,50]"],
    "tickets_flood": [f"{COUNT}=[100,100]"],
    "tickets_azure": [
        f"workload.source.path={FOLDER}",
        "workload.sampling.start=0",
        "workload.sampling.minutes=2",
        "workload.sampling.compression=2",
        "workload.sampling.ratio=1.0",
    ],
}
"""What is played of each in a moment."""


@pytest.fixture
def command(in_process: InProcess, request: pytest.FixtureRequest) -> Command:
    """With figures, which take long to draw, for one experiment."""
    return in_process("evaluate", prepared, figures="[tickets_flood]" in request.node.name)


def finished(command: Command, folder: Path, experiment: str, *overrides: str) -> pd.DataFrame:
    done = command(f"experiment={experiment}", *BRIEF[experiment], "episodes=1", *overrides)
    assert done.code == 0, done.err
    return results_in(folder).set_index("policy")


def recorded_shares(folder: Path, policy: str) -> Shares:
    (file,) = (run_in(folder) / "episodes").glob(f"{policy}_*.json")
    episode = read_episode(file)
    assert violations(episode) == []
    return shares_of(played(episode))


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_every_experiment_is_played(experiment: str, command: Command, tmp_path: Path) -> None:
    found = finished(command, tmp_path, experiment)
    assert set(found.index) == set(told_in(tmp_path)["config"]["baselines"])
    assert found[["share_error", "jain"]].notna().all(axis=None)
    assert (found["J"] == found["completion"]).all()  # nothing else counts
    if experiment == "tickets_azure":
        return  # nothing is recorded
    run = run_in(tmp_path)
    assert (run / "figures" / "shares.png").is_file() == (experiment == "tickets_flood")
    page = (run / "report.html").read_text()
    assert 'id="shares-upper"' in page and ">Shares of tenants</h2>" in page
    for policy, shares in shares_on(page).items():
        assert shares["line"].startswith(f"Jain's index {found.loc[policy, 'jain']:.3f};")
        received = [sum(row) for row in zip(*(one[1] for one in shares["curves"]), strict=True)]
        entitled = [sum(row) for row in zip(*(one[2] for one in shares["curves"]), strict=True)]
        assert received == pytest.approx(entitled, abs=0.01)
    if experiment in CHECKS:
        fcfs, stride = (recorded_shares(tmp_path, policy) for policy in ("fcfs", "stride"))
        assert stride.jain > fcfs.jain
        CHECKS[experiment](fcfs, stride)


def check_flood(fcfs: Shares, stride: Shares) -> None:
    """Who floods the queue takes nothing from others."""
    assert stride.tenants["tickets"].tolist() == pytest.approx([1 / 3] * 3)
    assert (stride.tenants["response"] < 0.7 * fcfs.tenants["response"])[1:].all()


def check_joins(fcfs: Shares, stride: Shares) -> None:
    """Carol holds half of the tickets, and competes from 20 s on."""
    for shares in (fcfs, stride):
        carol = shares.tenants.index.get_loc("carol")
        assert (shares.entitled[shares.times < 20.0, carol] == 0).all()
        assert shares.entitled[-1, carol] > 0
    assert stride.tenants["response"]["carol"] < 0.8 * fcfs.tenants["response"]["carol"]


CHECKS = {"tickets_flood": check_flood, "tickets_joins": check_joins}


def shares_on(page: str) -> dict[str, Any]:
    """What the report has of the shares of its first episode, by policy."""
    scripts = re.findall(
        r'class="episode" data-episode="0 of [^"]*" data-policy="([^"]*)">(.*?)</script>', page
    )
    return {policy: json.loads(data)["shares"] for policy, data in scripts}


def test_orders_by_tickets_share_better(command: Command, tmp_path: Path) -> None:
    longer = f"{COUNT}=[200,200]"  # until it is known what functions use
    found = finished(command, tmp_path, "tickets_orders", longer, "episodes=2", "record=0")
    errors = found.groupby("policy")["share_error"].mean()
    for order in ("lottery", "stride", "hierarchical_stride", "drf"):
        assert errors[order] < 0.7 * errors["fcfs"], order
