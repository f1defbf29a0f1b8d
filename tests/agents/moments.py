"""Moments of small episodes at which a decision is due, to ask rules about."""

from collections.abc import Mapping

import numpy as np

from agents.rule_kinds import PlacementRule
from agents.scheduler import Decision
from env.score.reward import Objective
from env.sim.declared.hardware import ClusterConfig, ServerType
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.view.raw_env import RawEnv

BALANCED = Objective(time_weight=1.0, cost_weight=1.0)
SLOW, FAST, FAST_TOO = 0, 1, 2
"""NUMA nodes of `TWO_TYPES`, by index."""
SLOW_TYPE = ServerType("slow", 1, 0.36, 10.0, numa_nodes=1, cpu=2, memory=1000)
FAST_TYPE = ServerType("fast", 1, 3.6, 60.0, 2, cpu=4, memory=4000, single_core_speed=2000)
TWO_TYPES = ClusterConfig(1000, 1e6, 1e5, 1e4, (SLOW_TYPE, FAST_TYPE))


LONG = 10**6
"""Operations: 1,000 s on a core of the slow node."""


class Fn:
    """A function: operations, MB, threads."""

    def __init__(self, computation: int = 1000, memory: int = 100, parallelism: int = 1) -> None:
        self.row = (computation, memory, parallelism)


def workflow(
    *functions: Fn, edges: Mapping[tuple[int, int], int] | None = None
) -> WorkflowTemplate:
    """A workflow; edges give bytes by (source, target)."""
    computation, memory, parallelism = np.array([fn.row for fn in functions]).T
    edges = edges or {}
    return WorkflowTemplate(
        name="test",
        computation=computation,
        memory_req=memory,
        parallelism=parallelism,
        edges=np.array(list(edges), np.int64).reshape(-1, 2),
        data_bytes=np.array(list(edges.values()), np.int64),
    )


def moment(
    *placed: tuple[int, Fn], ask: Fn, cluster: ClusterConfig = TWO_TYPES, later: float = 0.0
) -> Decision:
    """The decision about `ask`, `later` seconds after every other function was put on its node."""
    templates = [workflow(fn) for _, fn in placed] + [workflow(ask)]
    env = RawEnv([0.0] * len(placed) + [later], templates, cluster)
    for node, fn in placed:
        env.step(*env.place_of(node), fn.row[1])
    return Decision(env, BALANCED)


def chosen(
    rule: PlacementRule, decision: Decision, memory: int | None = None, seed: int = 0
) -> int:
    """The node that a rule takes; memory: what the function needs unless told otherwise."""
    required = decision.function.memory_req
    tiers = (1.0 if memory is None else memory / required,)
    rng = np.random.default_rng(seed)
    return rule.choose(Decision(decision.env, decision.objective, tiers, rng))
