"""Placement `deployed`: functions run in the regions that a deployment plan has for them."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from pydantic import BeforeValidator, PrivateAttr, model_validator

from agents.deployment import solvers
from agents.deployment.inputs import HOURS, DeploymentSettings
from agents.deployment.manager import DeploymentManager, nodes_of
from agents.deployment.plan import DeploymentPlan, read_plan
from agents.deployment.problem import Solver
from agents.rule_kinds import PlacementRule, in_folder
from agents.scheduler import Decision
from env.base.errors import InputError
from env.base.files import read_yaml
from env.sim.declared.regions import check_known, permitted_regions
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.state.records import HOUR
from env.sim.view.raw_env import RawEnv
from env.workloads.code.configuration import Constraints
from run.command import CONF

PlanAt = Callable[[float], DeploymentPlan | None]
"""The plan of what arrives at a time; None: home."""


def _read(group: str, given: Any) -> Any:
    """An option of a config group by its name; what is no name is the option itself."""
    file = f"{group}/{given}.yaml"
    return read_yaml(CONF / file, f"conf/{file}") if isinstance(given, str) else given


class Deployed(PlacementRule):
    """The region by plan, and there the node where a function ends first.

    A workflow keeps to the plan that was active when it arrived. Where no server of the region can
    be chosen, functions go home, and if need be anywhere.

    Attributes:
        deployment, solver: options of config groups, or their names. Without a solver or a file all
            is at home.
        constraints: what plans have to keep to, as in the `config.yml` of a workflow in code.
        plan: a file of `python -m agents.deployment`; it holds for ever.
    """

    needs_regions: ClassVar[bool] = True
    deployment: Annotated[DeploymentSettings, BeforeValidator(partial(_read, "deployment"))]
    solver: (
        Annotated[Any, in_folder(solvers, Solver), BeforeValidator(partial(_read, "solver"))] | None
    ) = None
    constraints: Constraints = Constraints()
    plan: str | None = None
    _solves: np.random.SeedSequence = PrivateAttr()
    _draws: np.ndarray = PrivateAttr()
    _plans: dict[WorkflowTemplate, PlanAt] = PrivateAttr()

    @model_validator(mode="after")
    def _one_source_of_plans(self) -> Self:
        if self.solver is not None and self.plan is not None:
            raise ValueError("solver and plan are both given, one of them is possible")
        return self

    def reset(self, env: RawEnv, seed: np.random.SeedSequence) -> None:
        """No workflow has a plan, and who stays at home is drawn.

        Raises:
            InputError: the cluster has no regions.
        """
        if not env.cluster_config.regions:
            raise InputError("it chooses among regions: cluster.regions has none")
        own = np.random.SeedSequence(seed.entropy, spawn_key=seed.spawn_key)
        self._solves, draws = own.spawn(2)
        self._draws = np.random.default_rng(draws).random(len(env.arrival_times))
        self._plans = {}

    def choose(self, decision: Decision) -> int:
        env, (wf_id, fn_id) = decision.env, (decision.function.wf_id, decision.function.fn_id)
        template, arrival = env.workflow_templates[wf_id], env.arrival_times[wf_id]
        if template not in self._plans:
            self._plans[template] = self._plan_of(template, env)
        plan, state = self._plans[template](arrival), env.state
        wanted = home = int(state.cluster["home"][0])
        if plan is not None:
            hour = int((arrival + state.cluster["begin_time"][0]) // HOUR) % HOURS
            region = plan.instances(hour, self._draws[wf_id])
            name = region[nodes_of(template)[fn_id]]
            wanted = list(env.cluster_config.regions).index(name)
        regions = state.servers["region"][state.nodes["server"]]
        away = np.select([regions == wanted, regions == home], [0, 1], 2)
        return decision.smallest(away, decision.rows["finish_time"])

    def _plan_of(self, template: WorkflowTemplate, env: RawEnv) -> PlanAt:
        """The plan of a workflow by the time at which it arrives."""
        if self.plan is not None:
            path, names = Path(self.plan), nodes_of(template)
            fixed = read_plan(path, template.name, names)
            for hour, each in fixed.hours.items():
                for there in (each.current_deployment, each.home_deployment):
                    where = f"{path}: hours.{hour}"
                    check_known(where, there.instances.values(), env.cluster_config.regions)
                    for name, declared in zip(names, template.regions, strict=False):
                        region = there.instances[name]
                        if not permitted_regions((region,), declared.allowed, declared.disallowed):
                            raise InputError(f"{where}: {name} must not run in {region}")
            return lambda time: fixed
        if self.solver is None:
            return lambda time: None
        rng = np.random.default_rng(self._solves.spawn(1)[0])
        given = self.constraints, self.solver, self.deployment, rng
        return DeploymentManager(env, template, *given).plan_at
