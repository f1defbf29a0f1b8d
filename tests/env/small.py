"""Small clusters and workflows, to follow an episode by hand."""

from typing import Any

from env.sim.declared.funding import Funding
from env.sim.declared.hardware import ClusterConfig, ServerType
from env.sim.declared.workflow_template import WorkflowTemplate

SPEED = 1_000
"""Operations per second of a core."""


def cluster_of(*servers: ServerType, speed: int = SPEED, **others: Any) -> ClusterConfig:
    """Links move 1e9 bytes a second; `others` are fields of `ClusterConfig`."""
    return ClusterConfig(speed, 1e9, 1e9, 1e9, servers, **others)


def functions(
    *work: int, memory: int = 1, threads: int = 1, name: str = "functions", **others: Any
) -> WorkflowTemplate:
    """Functions of so many operations that wait for nobody; all need the same."""
    count = len(work)
    return WorkflowTemplate(name, work, [memory] * count, [threads] * count, [], [], **others)


def chain(*work: int, memory: int = 1, threads: int = 1, size: int = 0) -> WorkflowTemplate:
    """Functions of so many operations one after the other, `size` bytes between two."""
    count = len(work)
    edges = [(source, source + 1) for source in range(count - 1)]
    sizes = [size] * len(edges)
    return WorkflowTemplate("chain", work, [memory] * count, [threads] * count, edges, sizes)


def held(**tickets: float) -> Funding:
    """Tickets of the base that tenants hold."""
    tenants = {name: {"tickets": amount} for name, amount in tickets.items()}
    return Funding.model_validate({"tenants": tenants})
