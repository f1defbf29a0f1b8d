"""Deployment plans, hour by hour: how they are made, and the file that holds them."""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import AwareDatetime, Field

from agents.deployment.inputs import HOURS, DeploymentSettings, Inputs, Share
from agents.deployment.problem import Estimate, Plan, Problem, Solver, best_plan
from env.base.errors import InputError
from env.base.files import parse_json, read_bytes, written_whole
from env.base.schema import Strict, listed, validated
from env.workloads.code.analysis import RegionName
from env.workloads.code.configuration import Configuration

Hour = Annotated[int, Field(ge=0, lt=HOURS)]


class Deployment(Strict):
    """The region of each node, and metrics of a run."""

    instances: dict[str, RegionName]
    metrics: Estimate


class Placement(Strict):
    """Where runs go, and where those go that stay at home."""

    current_deployment: Deployment
    home_deployment: Deployment


class DeploymentPlan(Strict):
    """The workflow placement decisions of Caribou's design document, for a day.

    Attributes:
        expiry_time: until when they hold.
        home_share: of runs, which have the home deployment.
        hours: by hour of the day (UTC); each holds until the next one, around the clock.
    """

    workflow_name: str
    workflow_version: str
    expiry_time: AwareDatetime
    home_share: Share
    hours: Annotated[dict[Hour, Placement], Field(min_length=1)]

    def instances(self, hour: int, draw: float) -> Mapping[str, str]:
        """The region of each node in an hour, in a run that a draw from [0, 1) may keep at home."""
        placement = self.hours[max(self.hours, key=lambda begin: (begin <= hour, begin))]
        at_home = draw < self.home_share
        return (placement.home_deployment if at_home else placement.current_deployment).instances


def daily_plan(
    inputs: Inputs,
    given: Configuration,
    solver: Solver,
    settings: DeploymentSettings,
    seed: int,
    now: datetime,
) -> DeploymentPlan:
    """Solves a day; what holds for some hours is made for their mean carbon intensity.

    The published code takes that of the first of them.

    Raises:
        InputError: the solver finds no valid plan.
    """
    draws, *rngs = np.random.default_rng(seed).spawn(1 + settings.solves_per_day)
    problem = Problem(inputs, given.constraints, settings, draws)
    hours, length = {}, HOURS // settings.solves_per_day

    def deployment(plan: Plan) -> Deployment:
        regions = (inputs.regions[region] for region in plan)
        instances = dict(zip(inputs.nodes, regions, strict=True))
        return Deployment(instances=instances, metrics=problem.estimate(plan))

    for hour, rng in zip(range(0, HOURS, length), rngs, strict=True):
        problem.turn_to(inputs.intensity[hour : hour + length].mean(axis=0))
        hours[hour] = Placement(
            current_deployment=deployment(best_plan(problem, solver, rng)),
            home_deployment=deployment(problem.home),
        )
    return DeploymentPlan(
        workflow_name=given.workflow_name,
        workflow_version=given.workflow_version,
        expiry_time=now + timedelta(seconds=settings.expiry),
        home_share=settings.home_share,
        hours=hours,
    )


def write_plan(plan: DeploymentPlan, path: Path) -> None:
    """Writes a file that `read_plan` reads."""
    with written_whole(path) as temporary:
        temporary.write_text(plan.model_dump_json(indent=1))


def read_plan(path: Path, workflow_id: str, nodes: Collection[str]) -> DeploymentPlan:
    """The plan of a workflow, NAME-VERSION, and its nodes.

    Raises:
        InputError: the file is none, or that of another workflow, another version or other nodes.
    """
    where = str(path)
    plan = validated(DeploymentPlan, parse_json(read_bytes(path), where), where)
    found = f"{plan.workflow_name}-{plan.workflow_version}"
    if found != workflow_id:
        raise InputError(f"{where}: a plan of {found}, one of {workflow_id} is needed")
    for hour, placement in plan.hours.items():
        for each in (placement.current_deployment, placement.home_deployment):
            if differing := each.instances.keys() ^ set(nodes):
                which = listed(sorted(differing))
                raise InputError(f"{where}: hours.{hour}: other nodes than the workflow's: {which}")
    return plan
