"""Plans the deployment of a workflow in code: `python -m agents.deployment KEY=VALUE ...`.

Keys, explained in conf/plan.yaml and in the groups that it names, are code=FILE.py, with config.yml
beside it, tables=FILE.duckdb, plan=FILE.json, solver=fine, deployment.tolerance=0.02 and the like.
"""

from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import yaml
from hydra import initialize_config_dir
from pydantic import Field

from agents.deployment import solvers
from agents.deployment.inputs import DeploymentSettings, Inputs
from agents.deployment.plan import DeploymentPlan, daily_plan, write_plan
from agents.deployment.problem import Solver
from agents.rule_kinds import in_folder
from env.base.errors import InputError
from env.base.pipes import until_reader_leaves
from env.base.schema import Strict, validated
from env.tables.tables import Tables
from env.workloads.annotation import AnnotationRules, annotate
from env.workloads.code.analysis import read_code
from env.workloads.code.configuration import read_configuration
from env.workloads.code.logical import logical_dag, workflow_file
from env.workloads.inline import InlineEntry, inline_graph
from run.command import CONF, refuse
from run.composing import composed, plain


class PlanCommand(Strict):
    """The settings; conf/plan.yaml explains each."""

    code: str
    tables: str
    plan: Annotated[str, Field(pattern=r"\.json$")] | None  # so it takes the place of no code
    seed: Annotated[int, Field(ge=0, lt=2**32)]
    deployment: DeploymentSettings
    solver: Annotated[Any, in_folder(solvers, Solver)]
    annotation: AnnotationRules

    def made(self, now: datetime) -> DeploymentPlan:
        """The plan, made at a moment.

        Raises:
            InputError: something of it cannot be read, or no plan keeps the hard constraints.
        """
        code, beside = read_code(Path(self.code)), Path(self.code).with_name("config.yml")
        given = read_configuration(beside, code)
        text = workflow_file(logical_dag(code, given), given, str(beside))
        name, where = code.workflow_id, str(beside)
        entry = validated(InlineEntry, yaml.safe_load(text)["mix"][name], where)
        # Plans do not depend on computations, nor on the speed that these are reckoned with.
        template, _ = annotate(inline_graph(entry, name, where), self.annotation, 1)
        inputs = Inputs(Tables(self.tables), template, given.home_region, self.deployment)
        return daily_plan(inputs, given, self.solver, self.deployment, self.seed, now)


def table_of(plan: DeploymentPlan) -> pd.DataFrame:
    """By hour where nodes run; means of all runs, also those at home, beside means at home."""
    rows = {}
    for hour, placement in plan.hours.items():
        here, home = placement.current_deployment, placement.home_deployment
        means = pd.DataFrame([home.metrics["average"], here.metrics["average"]])
        changes = (1 - plan.home_share) * means.pct_change().iloc[1].fillna(0)
        regions = pd.Series(here.instances).groupby(here.instances).groups
        words = [f"{region}: {', '.join(nodes)}" for region, nodes in regions.items()]
        rows[hour] = {**changes.map("{:+.1%}".format), "regions": "; ".join(words)}
    return pd.DataFrame.from_dict(rows, orient="index")


@until_reader_leaves()
def main(arguments: Sequence[str] | None = None) -> None:
    """The command; bad input gets one line and exit code 2."""
    parser = ArgumentParser(
        prog="python -m agents.deployment",
        description=__doc__,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("words", metavar="KEY=VALUE", nargs="+")
    try:
        with initialize_config_dir(str(CONF), version_base="1.3"):
            config, _ = composed("plan", parser.parse_args(arguments).words)
        command = validated(PlanCommand, plain(config), "plan")
        plan = command.made(datetime.now(UTC))
        if command.plan:
            write_plan(plan, Path(command.plan))
    except InputError as error:
        refuse(error)
    until = f"until {plan.expiry_time:%F %R} UTC, beside home"
    print(f"{plan.workflow_name} {plan.workflow_version} by hour (UTC), {until}")
    print(table_of(plan).to_string())


if __name__ == "__main__":
    main()
