"""How tenants share the cores of a NUMA node by their tickets; uses nothing of the engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from env.sim.declared.funding import Funding


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

        Whoever would get more than its threads can use gets just that, and the others share the
        rest by their tickets.

        Args:
            threads: that run on the node, by workflow.
            cores: of the node.
            speed: operations/s of one.
        """
        of_tenant: dict[str, int] = {}
        for wf_id, count in threads.items():
            of_tenant[self.owners[wf_id]] = of_tenant.get(self.owners[wf_id], 0) + count
        tickets = self._worth(frozenset(of_tenant))
        found: dict[str, int] = {}
        left, short = cores * speed, set(of_tenant)
        while short:
            total = sum(tickets[tenant] for tenant in short)
            sated = {
                tenant
                for tenant in short
                if left * tickets[tenant] >= of_tenant[tenant] * speed * total
            }
            if not sated:
                found |= {tenant: max(1, left * tickets[tenant] // total) for tenant in short}
                break
            found |= {tenant: of_tenant[tenant] * speed for tenant in sated}
            left -= sum(found[tenant] for tenant in sated)
            short -= sated
        return {
            wf_id: found[self.owners[wf_id]] // of_tenant[self.owners[wf_id]] for wf_id in threads
        }

    def _worth(self, there: frozenset[str]) -> Mapping[str, int]:
        """Whole tickets of the tenants that run on a node, worth what they are without others."""
        if there not in self._tickets:
            rights = self.funding.rights()
            for tenant in self.funding.tenants:
                if tenant not in there:
                    rights.stop(tenant)
            self._tickets[there] = rights.whole_tickets(self.funding.rough)
        return self._tickets[there]
