"""How tenants share the cores of a NUMA node by their tickets; uses nothing of the engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from env.sim.declared.funding import Funding
from env.sim.state.queue_records import ON_NODE
from env.tickets.cpu_share import cpu_share


@dataclass(frozen=True)
class CoresByTickets:
    """The rule for the tenants of an episode.

    Attributes:
        funding: their tickets.
        owners: the tenant of each workflow.
    """

    funding: Funding
    owners: tuple[str, ...]
    _tickets: dict[frozenset[str], Mapping[str, int]] = field(default_factory=dict)

    def thread_speeds(self, threads: Mapping[int, int], cores: int, speed: int) -> dict[int, int]:
        """Operations/s of each thread, by workflow.

        Args:
            threads: that run on the node, by workflow.
            cores: of the node.
            speed: operations/s of one.
        """
        of_tenant: Counter[str] = Counter()
        for wf_id, count in threads.items():
            of_tenant[self.owners[wf_id]] += count
        tickets = self._worth(frozenset(of_tenant))
        rows = np.zeros(len(of_tenant), ON_NODE)
        rows["weight"] = [tickets[tenant] for tenant in of_tenant]
        rows["threads"] = list(of_tenant.values())
        cpu_share(rows, len(rows), cores, speed)
        speeds = dict(zip(of_tenant, (rows["speed"] // rows["threads"]).tolist(), strict=True))
        return {wf_id: speeds[self.owners[wf_id]] for wf_id in threads}

    def _worth(self, there: frozenset[str]) -> Mapping[str, int]:
        """Whole tickets of the tenants that run on a node, worth what they are without others."""
        if there not in self._tickets:
            rights = self.funding.rights()
            for tenant in self.funding.tenants:
                if tenant not in there:
                    rights.stop(tenant)
            self._tickets[there] = rights.whole_tickets(self.funding.rough)
        return self._tickets[there]
