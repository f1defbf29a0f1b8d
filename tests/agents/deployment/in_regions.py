"""Two regions with round numbers: the other one is slow, and by day emits less than home."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from agents.baseline import BaselineConfig, ComposedScheduler
from agents.placement.deployed import Deployed
from agents.scheduler import Scheduler, play
from env.base.schema import validated
from env.score.reward import Objective
from env.sim.declared.hardware import ClusterConfig, ServerType
from env.sim.declared.power import Power
from env.sim.declared.regions import Link, Region, Regions
from env.sim.declared.rules import Lease, Rules
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.view.raw_env import RawEnv
from tests.agents.deployment.tables import DEFAULT
from tests.env import small

HOME, AWAY = "aws:home", "aws:away"
POWER = Power(
    idle_core_w=0, busy_core_w=3600, memory_w_per_gb=0, pue=1, carbon_intensity_g_per_kwh=300
)
"""A busy core takes 1 kWh in 1,000 s; nothing else draws any."""
CLUSTER = ClusterConfig(
    *(1_000, 1e12, 1e12, 1e9),
    (ServerType("s", 20, 36.0, 0.0, 1, 4, 4096),),
    POWER,
    regions={
        HOME: Region(links={AWAY: Link(round_trip=0.5, bandwidth=1e8, egress=0.09)}),
        AWAY: Region(
            price=2.0,
            relative_performance=0.5,
            power={"pue": 2.0, "carbon_intensity_g_per_kwh": 50.0},
        ),
    },
    transfer_kwh_per_gb=0.5,
)
PRICES = {"request": 0.5, "gb_second": {"x86_64": 0.01, "arm64": 9.0}}
PER_USE = Lease(kind="always", charged=False, use=PRICES)


def chain(*seconds: float, size: int = 0, regions: Sequence[Regions] = ()) -> WorkflowTemplate:
    """Functions of 1 GB one after the other, of so many seconds at home."""
    made = small.chain(*(round(1_000 * each) for each in seconds), memory=1024, size=size)
    return replace(made, name="shop-0.0.1", regions=tuple(regions))


def episode(
    times: Sequence[float],
    template: WorkflowTemplate,
    cluster: ClusterConfig = CLUSTER,
    lease: Lease = PER_USE,
) -> RawEnv:
    templates, rules = [template] * len(times), Rules(lease=lease)
    return RawEnv(times, templates, cluster, record=True, rules=rules)


def scheduler(**settings: Any) -> ComposedScheduler:
    """Solves after one call, by `fine`; parts of the deployment, or others of the placement."""
    rule = {key: settings.pop(key) for key in [*settings] if key in Deployed.model_fields}
    deployment = DEFAULT | {"tokens_per_solve": 1.0} | settings
    solver = None if "plan" in rule else "fine"
    given = {
        "order": {"name": "submission"},
        "placement": {"name": "deployed", "deployment": deployment, "solver": solver} | rule,
        "memory": {"name": "required"},
    }
    return ComposedScheduler("caribou", validated(BaselineConfig, given, "caribou"))


def played(env: RawEnv, player: Scheduler, seed: int = 0) -> list[list[str]]:
    """Where the functions of each workflow have run."""
    env.reset()
    play(env, player, Objective(time_weight=1, cost_weight=1), np.random.SeedSequence(seed))
    region_of = {kind.name: kind.region or "" for kind in env.cluster_config.server_types}
    regions: list[list[str]] = [[] for _ in env.arrival_times]
    for log in sorted(env.logs, key=lambda log: (log.wf_id, log.fn_id)):
        regions[log.wf_id].append(region_of[log.server_name])
    return regions
