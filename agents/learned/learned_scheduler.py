"""A trained policy as a scheduler: its agents decide through the layout they were trained in."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from agents.learned.policy_file import DESCRIPTION, load_policy
from agents.scheduler import Decision, Scheduler
from env.base.errors import InputError
from env.base.schema import validated
from env.learn.decisions import Decisions
from env.learn.layouts import AgentsConfig, Layout
from env.score.reward import Objective
from env.sim.declared.hardware import ClusterConfig
from env.sim.state.records import ASIDE, CHOOSE, PLACE, SHARE
from env.sim.view.raw_env import RawEnv

SHIPPED = Path(__file__).parent / "policies"
"""Trained policies that come with the project, by name; each has a model card, README.md."""
CODES = {"place": PLACE, "choose": CHOOSE, "share": SHARE}


class LearnedScheduler(Scheduler):
    """The policy of a `policy/` folder, or of the run folder that holds one, on a cluster.

    Args:
        path: the folder, or the name of a policy shipped with the project.
        cluster: to schedule; need not be the one that it was trained on.
        objective: to schedule for.
        agents: group `agents`; None means what the policy was trained with.
        queued: whether functions wait in a central queue.
        tenants: names of those that hold tickets.
        name: what tables call it.

    Attributes:
        trained_for: weights of J in training, by name.
        sha256: hash of its files.

    Raises:
        InputError: the folder is missing or damaged, the policy does not fit the cluster or
            `agents`, or it has agents for whom there is no queue, or no tenants.
    """

    def __init__(
        self,
        path: str | Path,
        cluster: ClusterConfig,
        objective: Objective,
        agents: dict[str, Any] | None = None,
        queued: bool = False,
        tenants: Sequence[str] = (),
        name: str = "learned",
    ) -> None:
        folder = policy_folder(path)
        policy, where = load_policy(folder), "agents"
        if agents is None:
            agents = policy.description.config.get("agents", {})
            where = f"{folder / DESCRIPTION}: config.agents"
        config = validated(AgentsConfig, agents, where)
        if config.queue is not None and not queued:
            raise InputError(f"policy: {folder} has an agent `queue`, it needs dispatch=queued")
        if config.tenants is not None and not (queued and tenants):
            raise InputError(
                f"policy: {folder} has agents of tenants, it needs dispatch=queued and "
                "workload.tenants with tickets"
            )
        self.name, self.kind, self.sha256 = name, "learned", policy.sha256
        self.order, self.fit, self.tiers = config.order, config.placement, config.memory_tiers
        older = dict.fromkeys(("completion_weight", "fairness_weight", "carbon_weight"), 0.0)
        self.trained_for = {**older, **policy.description.objective}
        self.asked = config.asked(cluster)
        self._codes = CODES | {kind.name: ASIDE + 1 + at for at, kind in enumerate(self.asked)}
        self._layout = Layout(config, objective, cluster, tenants, self.asked, see_future=False)
        self._policy = policy.fitted(self._layout, where=str(folder))

    def reset(self, env: RawEnv, objective: Objective, seed: np.random.SeedSequence) -> None:
        """Turns to a new episode; acting draws nothing at random."""
        self._decisions = Decisions.of(self._layout, env.state)

    def choose(self, decision: Decision) -> int:
        """Asks the agents, turn by turn."""
        (kind,) = (kind for kind in self._layout.kinds if kind.code == self._codes[decision.kind])
        question = decision.env.question
        subject = question.subject if question is not None else 0
        row = self._decisions.ask(decision.env.state, kind, self._policy.act, subject)
        queue = self._layout.config.queue
        holds = decision.kind == "choose" and queue is not None and row == queue.functions
        return len(decision.rows) - 1 if holds else row


def policy_folder(path: str | Path) -> Path:
    """The folder with `policy.json`: `path` itself, `path/policy`, or the shipped one of that name.

    Raises:
        InputError: none of them has one.
    """
    for folder in (Path(path), Path(path) / "policy", SHIPPED / path):
        # Whoever reads it refuses what is no regular file, or leads nowhere.
        if os.path.lexists(folder / DESCRIPTION):
            return folder
    shipped = ", ".join(sorted(file.parent.name for file in SHIPPED.glob(f"*/{DESCRIPTION}")))
    raise InputError(
        f"policy: no {DESCRIPTION} in '{path}' nor in '{Path(path) / 'policy'}'; "
        f"shipped with the project: {shipped}"
    )
