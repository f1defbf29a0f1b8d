"""Small clusters, workflows and policies, to follow an episode by hand."""

from typing import Any

from env.sim.declared.funding import Funding
from env.sim.declared.hardware import ClusterConfig, ServerType
from env.sim.declared.keep_alive_policy import HybridHistogram, KeepAlivePolicy
from env.sim.declared.ordering import Order
from env.sim.declared.rules import Lease, Placement, Rules
from env.sim.declared.workflow_template import WorkflowTemplate

SPEED = 1_000
"""Operations per second of a core."""


def cluster_of(*servers: ServerType, speed: int = SPEED, **others: Any) -> ClusterConfig:
    """Links move 1e9 bytes a second; `others` are fields of `ClusterConfig`."""
    return ClusterConfig(speed, 1e9, 1e9, 1e9, servers, **others)


def always_up(
    order: Order, keep_alive: KeepAlivePolicy, placement: Placement = "worst_fit"
) -> Rules:
    """Functions wait centrally, all servers are up from the start, and nothing is paid."""
    lease = Lease(kind="always", charged=False)
    return Rules(order, placement, lease=lease, keep_alive=keep_alive)


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


def ten_second_bins(bins: int, margin: float) -> HybridHistogram:
    """Two idle times are enough for a histogram of bins of 10 s; without one 50 s are kept."""
    return HybridHistogram(
        bin=10.0,
        bins=bins,
        prewarm_percentile=5.0,
        keep_percentile=99.0,
        margin=margin,
        least_idle_times=2,
        least_variation=1.0,
        fixed_keep=50.0,
        most_out_of_bounds=0.5,
        forecast_margin=0.15,
        forecast_from=10,
        forecast_order=(1, 0, 0),
    )
