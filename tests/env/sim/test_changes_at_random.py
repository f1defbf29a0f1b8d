"""Servers fail, drain and come back whenever: the validator agrees, a replay is the same."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from agents.baseline import make_baselines
from env.sim.declared.episode import Episode, EpisodeWorkload
from env.sim.declared.images import Images
from env.sim.declared.rules import Rules
from env.sim.declared.server_changes import ListedChanges, RandomFailures, Recovery
from env.sim.view.raw_env import RawEnv
from tests.episodes import checked
from tests.recorded_worlds import CLUSTER, DIAMOND, FUNDING, KEPT, LEASES, ORDERS, SHORT, played

SERVERS = ("small 0", "small 1", "large 0")
FOUND = (128, 133, 134)
"""Seeds that found a fault once."""
SHARED = ("stride", "stride_workflows")
BASELINES = make_baselines(SHARED, queued=True, funded=True)


def events(rng: np.random.Generator, ends: np.ndarray) -> list[dict[str, Any]]:
    """Changes of servers, half of them at the very moments at which runs were to end."""
    listed = []
    for _ in range(rng.integers(1, 9)):
        time = float(rng.choice(ends) if rng.random() < 0.5 else rng.uniform(0.0, 300.0))
        action = str(rng.choice(["join", "drain", "leave", "fail", "fail"]))
        event: dict[str, Any] = {"time": time, "server": str(rng.choice(SERVERS)), "action": action}
        if action == "drain":
            event["notice"] = float(rng.choice([0.0, 5.0, 60.0]))
        if action == "fail":
            event["repair"] = [None, 0.0, 30.0, 200.0][rng.integers(4)]
        listed.append(event)
    return listed


def episode(seed: int) -> Episode:
    """A small one of any kind in which servers change."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 9))
    templates = [(DIAMOND, SHORT)[rng.integers(2)] for _ in range(count)]
    times = np.sort(rng.integers(0, 120, count)).astype(float)
    order = str(rng.choice([*ORDERS, "immediate", "stride", "stride_workflows"]))
    orders = ORDERS | {each.name: each.order for each in BASELINES}
    rules = Rules(
        orders[order],
        str(rng.choice(["asked", "worst_fit"])) if order != "immediate" else "worst_fit",
        patience=float(rng.choice([0.0, 20.0])),
        lease=LEASES[str(rng.choice(list(LEASES)))],
        keep_alive=KEPT[str(rng.choice(list(KEPT)))],
    )
    images = Images.by_name([DIAMOND, SHORT], 2.5)
    workload = EpisodeWorkload(tuple(times), tuple(templates), images=images, turns_seed=seed)
    if order in SHARED:
        tenants = tuple(str(tenant) for tenant in rng.choice(["a", "b", "c"], count))
        workload = replace(workload, tenants=tenants, funding=FUNDING)
    whole = Episode(workload, CLUSTER, rules)
    changes: Any = RandomFailures.model_validate(
        {
            "kind": "random",
            "failures": {"shape": 1.0, "scale": float(rng.choice([30.0, 200.0]))},
            "repairs": {"shape": 0.5, "scale": 20.0},
        }
    )
    if rng.random() < 0.6:
        ends = played(RawEnv.of(whole, record=True)).runs["end_time"]
        changes = ListedChanges(kind="listed", events=events(rng, ends))
    recovery = Recovery.model_validate(
        {
            "retries": [None, 0, 1, 3][rng.integers(4)] if changes.kind == "listed" else 4,
            "backoff": {"wait": float(rng.choice([0.0, 3.0])), "factor": 2.0, "jitter": 0.5},
            "data_durability": str(rng.choice(["durable", "server"])),
            "checkpoint": [None, 2.0][rng.integers(2)],
        }
    )
    return replace(whole, rules=replace(rules, changes=changes, recovery=recovery))


def phase(run: np.void) -> str:
    """What a run was about when it was killed."""
    if run["end_time"] > run["start_time"]:
        return "running"
    passed = run["end_time"] - run["dispatch_time"]
    for key in ("server_start_time", "cold_start_time", "data_transfer_time"):
        passed -= run[key]
        if run[key] > 0 and passed <= 1e-9:
            return key
    return "waiting" if passed > 1e-9 else "at once"


@pytest.mark.parametrize(
    "seeds", [[*range(60), *FOUND], pytest.param(range(1000), marks=pytest.mark.long)], ids=len
)
def test_many(seeds: Sequence[int]) -> None:
    """All of them, and that everything that can happen does."""
    phases: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    again = 0
    for seed in seeds:
        env = played(RawEnv.of(episode(seed), record=True))
        results = checked(env).expected
        assert results is not None
        phases.update(phase(run) for run in env.runs[env.runs["outcome"] == 2])
        reasons.update(row.reason for row in results.unfinished)
        completed = Counter(run.function for run in results.runs if run.outcome == "completed")
        again += max(completed.values(), default=0) > 1
    starts = {"server_start_time", "cold_start_time", "data_transfer_time"}
    assert phases.keys() >= {*starts, "running", "waiting"}, phases
    assert reasons.keys() == {"retries", "predecessor", "no server"}, reasons
    assert again > 0
