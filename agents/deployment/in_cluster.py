"""What plans in the simulator are estimated from: what is declared, in place of what was measured.

That is a run at full speed: nothing waits for cores, for servers to start, or for a container.
"""

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np

from agents.deployment.inputs import (
    CLIENT,
    GIGABYTE,
    HOURS,
    MB_PER_GB,
    SECONDS_PER_HOUR,
    Inputs,
    Transfers,
)
from env.base.errors import InputError
from env.sim.assembly.region_records import region_arrays
from env.sim.declared.hardware import ClusterConfig
from env.sim.declared.power import JOULES_PER_KWH
from env.sim.declared.resources import holders
from env.sim.declared.rules import Lease
from env.sim.declared.workflow_template import WorkflowTemplate


def nodes_of(template: WorkflowTemplate) -> tuple[str, ...]:
    """What plans call its functions: by their names, or by number where these do not differ."""
    names, count = template.function_names, template.function_count
    return names if len(set(names)) == count else tuple(map(str, range(count)))


def grids_of(cluster: ClusterConfig) -> list[np.ndarray]:
    """(H,) gCO2e/kWh of each region by hour from time 0, which begin again."""
    records = region_arrays(cluster)
    return np.split(records["intensity"]["grams"], records["regions"]["first_hour"][1:])


def forecast(grids: Sequence[np.ndarray], time: float) -> np.ndarray:
    """(24, R) gCO2e/kWh by hour of the day, of the 24 hours from that of a time on.

    They come as they are forecast. Time 0 is midnight.
    """
    hours = int(time // SECONDS_PER_HOUR) + np.arange(HOURS)
    coming = np.transpose([grid[hours % len(grid)] for grid in grids])
    return np.roll(coming, hours[0] % HOURS, axis=0)


def inputs_in(cluster: ClusterConfig, lease: Lease, template: WorkflowTemplate) -> Inputs:
    """What is declared of a workflow in the regions of a cluster, from time 0 on.

    In each region the fastest servers that hold a function count. A second of it costs what is paid
    per use or, where servers are leased, its share of their cores. It takes the electricity of busy
    cores and of its memory.

    Raises:
        InputError: a function must not run at home, or no server there holds it.
    """
    regions, nodes = tuple(cluster.regions), nodes_of(template)
    home = regions.index(cluster.home or regions[0])
    permitted = np.zeros((len(nodes), len(regions)), np.bool_)
    seconds, usd, kwh = np.zeros((3, *permitted.shape))
    fits = holders([template], cluster)
    for node, at in np.ndindex(permitted.shape):
        threads, gigabytes = int(template.parallelism[node]), template.memory_req[node] / MB_PER_GB
        speeds = {
            kind: cluster.speed_of(kind) * min(threads, kind.cpu)
            for kind, holds in zip(cluster.server_types, fits[node], strict=True)
            if holds and kind.count and kind.region == regions[at]
        }
        if not speeds:
            continue
        kind = max(speeds, key=lambda each: speeds[each])
        cores = min(threads, kind.cpu)
        permitted[node, at], seconds[node, at] = True, template.computation[node] / speeds[kind]
        if lease.use:
            price = getattr(lease.use.gb_second, kind.architecture)
            usd[node, at] = gigabytes * price * cluster.price_of(kind)
        elif not lease.is_free:
            usd[node, at] = cores / kind.cores * cluster.rate_of(kind) / SECONDS_PER_HOUR
        if power := cluster.power_in(kind.region):
            watts = cores * power.busy_core_w + gigabytes * power.memory_w_per_gb
            kwh[node, at] = watts * power.pue / JOULES_PER_KWH
    for node in np.flatnonzero(~permitted[:, home]):
        where = f"cannot run in {regions[home]}, which is home"
        raise InputError(f"{template.label}: {nodes[node]} {where}")

    records = region_arrays(cluster)["links"]
    links = dict(zip(product(regions, regions), records, strict=True))
    called = template.edges[:, 1].tolist()
    edges = [(node, CLIENT, 1.0, 0) for node in range(len(nodes)) if node not in called]
    sources, sizes = template.edges[:, 0].tolist(), template.data_bytes.tolist()
    edges += zip(called, sources, template.probability.tolist(), sizes, strict=True)
    edges.sort()
    requests = [
        lease.use.request * at.price if lease.use else 0.0 for at in cluster.regions.values()
    ]
    return Inputs(
        nodes=nodes,
        regions=regions,
        home=home,
        permitted=permitted,
        order=np.array(template.topological_order()),
        edges=np.array([(source, target) for target, source, *_ in edges]),
        probability=np.array([probability for *_, probability, _ in edges]),
        transfers=[_transfers(links, data_bytes) for *_, data_bytes in edges],
        executions=seconds[:, :, None].tolist(),
        request=np.array(requests),
        usd_per_s=usd,
        egress=records["egress"].reshape(len(regions), -1) * GIGABYTE,
        kwh_per_s=kwh,
        kwh_per_gb=cluster.transfer_kwh_per_gb * (1.0 - np.eye(len(regions))),
        intensity=forecast(grids_of(cluster), 0.0),
    )


def _transfers(links: Mapping[tuple[str, str], np.void], data_bytes: int) -> Transfers:
    """So much data between any two regions."""
    size, measured = data_bytes / GIGABYTE, {}
    for pair, link in links.items():
        measured[pair] = {size: [link["round_trip"] + data_bytes / link["bandwidth"]]}
    return Transfers(measured, {}, 0.0, [size])
