"""A new lease in one file: servers are paid by the second, and for a minute at least."""

import json
from pathlib import Path

import pytest

from env.score.lower_bound import lower_bound
from env.score.reward import Objective
from env.sim.declared.hardware import ServerType
from env.sim.declared.rules import Lease, Rules
from env.sim.view.raw_env import RawEnv
from evaluate import prepared
from tests.commands import InProcess
from tests.env.small import cluster_of, functions
from tests.env.worlds import TINY
from tests.episodes import checked

PER_SECOND = "kind: hourly\nstep: 1.0\nleast: 60\n"
CLUSTER = cluster_of(ServerType("one", 1, 3.6, 0.0, 1, 1, 100))
RULES = Rules(lease=Lease(step=1.0, least=60))


@pytest.mark.parametrize(("seconds", "paid"), [(10.0, 60), (60.5, 61), (600.0, 600)])
def test_rent_and_bound(seconds: float, paid: int) -> None:
    """One function of so many seconds, on a server of 3.6 USD an hour that starts at once."""
    work = functions(int(1000 * seconds), memory=100)
    env = RawEnv([0.0], [work], CLUSTER, record=True, rules=RULES)
    env.step("one", 0, 0, 100)
    assert env.total_rent == pytest.approx(0.001 * paid)
    bound = lower_bound(env.state, Objective(time_weight=0.0, cost_weight=1.0))
    # J counts rent in the cost of the work alone, at the price of a core-second.
    assert bound == pytest.approx(max(1.0, 60 / seconds))
    checked(env)


def test_the_report_says_what_is_paid(in_process: InProcess, tmp_path: Path) -> None:
    (tmp_path / "mine" / "lease").mkdir(parents=True)
    (tmp_path / "mine" / "lease" / "per_second.yaml").write_text(PER_SECOND)
    command = in_process("evaluate", prepared)
    told = ["--config-dir=mine", *TINY, "episodes=3", "baselines=[cheapest]"]
    rents = {}
    for lease in ("hourly", "per_second"):
        done = command(*told, f"lease={lease}", f"hydra.run.dir={lease}")
        assert done.code == 0, done.err
        summary = json.loads((tmp_path / lease / "summary.json").read_text())
        rents[lease] = summary["policies"][0]["metrics"]["rent"]["mean"]["value"]
    assert 0 < rents["per_second"] < rents["hourly"] / 2


def test_an_extended_lease_has_begun_before() -> None:
    """Jobs of 60 and 10 s, one after the other: what is paid at least is paid once."""
    jobs = [functions(1000 * seconds, memory=100) for seconds in (60, 10)]
    env = RawEnv([0.0, 0.0], jobs, CLUSTER, rules=RULES)
    env.step("one", 0, 0, 100)
    env.step("one", 0, 0, 100)
    assert env.total_rent == pytest.approx(0.001 * 70)
