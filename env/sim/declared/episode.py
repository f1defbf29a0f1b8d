"""The specification of an episode: what arrives, on what hardware, by what rules."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from numbers import Integral, Real

import numpy as np

from env.base.errors import InputError
from env.base.schema import short
from env.sim.declared.aside import Change, DecisionKind
from env.sim.declared.bounds import LARGEST_WORK, LONGEST
from env.sim.declared.funding import Funding
from env.sim.declared.hardware import ClusterConfig
from env.sim.declared.images import NOTHING_EARLIER, Images
from env.sim.declared.ordering import SharedOrder
from env.sim.declared.resources import check_needs
from env.sim.declared.rules import DEFAULT_RULES, Rules
from env.sim.declared.workflow_template import WorkflowTemplate


@dataclass(frozen=True)
class EpisodeWorkload:
    """What arrives in one episode.

    Attributes:
        arrival_times: seconds, one for each workflow; `wf_id` is the position in here.
        templates: the workflow that arrives at each of them; equal objects are stored once.
        tenants: whose each workflow is; empty where there are no tenants.
        work: operations of each workflow's only function, where they are drawn; else empty.
        tickets: of each workflow, in its tenant's own currency; empty: one each.
        images: of all functions that may arrive, whether or not they do in this episode: what an
            image needs does not tell what is to come; None: by the names of those that arrive, of
            which no container starts cold.
        funding: the tickets of the tenants; None where nobody holds any.
        turns_seed: of what the engine draws: turns of tenants, failures of servers, back-offs,
            conditional calls.
        begin_hour: time 0 in hours of the carbon intensities.
    """

    arrival_times: tuple[float, ...]
    templates: tuple[WorkflowTemplate, ...]
    tenants: tuple[str, ...] = ()
    work: tuple[int, ...] = ()
    tickets: tuple[float, ...] = ()
    images: Images | None = None
    funding: Funding | None = None
    turns_seed: int = 0
    begin_hour: int = 0


@dataclass(frozen=True)
class Episode:
    """What an episode is built from, see `build` in env/sim/assembly.

    Attributes:
        workload: what arrives.
        cluster: the hardware.
        rules: how the world works.
        workflow_slots: workflows that can be active at once; None means all of them. With fewer,
            records are recycled and an endless trace runs in bounded memory.
        asked: kinds of decision beside the engine's own.
        changes: of the cluster, by time.
        absent: servers that are not there at time 0, by their index.

    Raises:
        InputError: the lengths of what arrives differ, work is given of a workflow of several
            functions, an arrival time is not a number >= 0, tickets are not above 0, there are no
            slots, a function fits no NUMA node, or tenants share by tickets which they do not hold.
    """

    workload: EpisodeWorkload
    cluster: ClusterConfig
    rules: Rules = DEFAULT_RULES
    workflow_slots: int | None = None
    asked: tuple[DecisionKind, ...] = ()
    changes: tuple[Change, ...] = ()
    absent: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        self._check_arrivals()
        if self.workflow_slots is not None and self.workflow_slots < 1:
            raise InputError(f"workflow_slots: at least 1 is needed, found {self.workflow_slots}")
        times = [change.time for change in self.changes]
        if times != sorted(times):
            raise InputError(f"changes: they have to be in the order of their times, found {times}")
        templates, images, order = list(self.declared), self.images, self.rules.order
        check_needs(templates, self.cluster)
        if order is not None and images is not None:
            check_needs(templates, self.cluster, images.memory[images.of_all(templates)])
        self._check_work()
        _ = self.owners  # refuses who holds no tickets
        if self.funding is None and self.cluster.cpu_share == "tickets":
            raise InputError("cluster: cpu_share is 'tickets': tenants with tickets are needed")
        if self.funding is None and isinstance(order, SharedOrder):
            raise InputError(f"order '{order.sharing.mechanism}': tenants with tickets are needed")
        if self.rules.servers_change and self.rules.recovery is None:
            raise InputError("rules: servers change, what becomes of killed functions is needed")

    @cached_property
    def declared(self) -> dict[WorkflowTemplate, None]:
        """The distinct templates, in the order of their first arrival."""
        return dict.fromkeys(self.workload.templates)

    @cached_property
    def images(self) -> Images | None:
        """Of all functions; None in a world in which no container stays warm or starts cold."""
        given, rules = self.workload.images, self.rules
        if rules.order is None and not rules.keeps_warm:
            return given if given is not None and given.cold_start.any() else None
        return Images.by_name(self.declared, 0.0) if given is None else given

    @cached_property
    def earlier(self) -> np.ndarray:
        """EARLIER (K,), the executions before time 0 that the keep-alive policy learns from."""
        if self.images is None or self.rules.keep_alive.history[1] == 0:
            return NOTHING_EARLIER
        return self.images.earlier()

    @property
    def funding(self) -> Funding | None:
        """The tickets of the tenants; None where there are no tenants, or holds any."""
        return self.workload.funding if self.workload.tenants else None

    @cached_property
    def owners(self) -> list[int]:
        """Number of each workflow's tenant; all are 0 where there are no tenants.

        Raises:
            InputError: a tenant holds no tickets, but others do.
        """
        names = self.workload.tenants or ("",) * len(self.workload.templates)
        known = dict.fromkeys(names) if self.funding is None else self.funding.tenants
        numbers = {name: number for number, name in enumerate(known)}
        for name in names:
            if name not in numbers:
                raise InputError(f"tenants: {short(name)} holds no tickets")
        return [numbers[name] for name in names]

    def _check_arrivals(self) -> None:
        times, templates = self.workload.arrival_times, self.workload.templates
        count = len(templates)
        if len(times) != count:
            raise InputError(f"{len(times)} arrival times but {count} workflow templates")
        if not templates:
            raise InputError("workload: no workflows, at least 1 is needed")
        for wf_id, time in enumerate(times):
            if not (isinstance(time, Real) and 0 <= time <= LONGEST):
                raise InputError(
                    f"workflow {wf_id}: arrival_time is {short(time)}, "
                    f"at least 0 and at most {LONGEST:g} is needed"
                )
        for what in ("tenants", "tickets", "work"):
            given = getattr(self.workload, what)
            if len(given) not in (0, count):
                raise InputError(f"{count} workflow templates but {len(given)} {what}")
        if not all(0 < given < np.inf for given in self.workload.tickets):
            raise InputError("tickets: numbers above 0 are needed")

    def _check_work(self) -> None:
        pairs = zip(self.workload.work, self.workload.templates, strict=False)
        for wf_id, (operations, template) in enumerate(pairs):
            if template.function_count > 1:
                raise InputError(
                    f"{template.label}: {template.function_count} functions, work is drawn of 1"
                )
            if not (isinstance(operations, Integral) and 1 <= operations <= LARGEST_WORK):
                raise InputError(
                    f"workflow {wf_id}: work is {short(operations)} operations, a whole number "
                    f"from 1 to {LARGEST_WORK:g} is needed"
                )
