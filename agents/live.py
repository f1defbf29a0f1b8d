"""A scheduler in production: events are reported to a cluster, which is asked for placements.

Its state is the simulator's, so that every scheduler works as it does in an evaluation. What has
not been reported yet is projected as in the simulator.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

import numpy as np

from agents.scheduler import Decision, Scheduler, Shown
from env.base.errors import InputError, located
from env.base.schema import nearest, short
from env.learn.actions import whole_number
from env.score.reward import Objective, check_rates
from env.sim.assembly.new_state import copy_into, reset
from env.sim.declared.bounds import LONGEST
from env.sim.declared.episode import Episode, EpisodeWorkload
from env.sim.declared.hardware import ClusterConfig
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.events.actual import finish_function, pass_time, server_is_up, start_function
from env.sim.events.endings import bring_back, take_down
from env.sim.events.placing import place
from env.sim.events.submissions import any_to_place, arrive
from env.sim.node.fit import suits
from env.sim.state.records import DOWN, ENTRY, MORE_ARRIVALS, PLACE, RUNNING, STATE_NAMES
from env.sim.view.raw_env import RawEnv

MOST_ACTIVE: Final = 100_000
"""Workflows at once: records of all their functions are made at the start, kilobytes a workflow."""


class Assignment(NamedTuple):
    """Where a function is to run.

    Attributes:
        workflow: as it was called when it arrived.
        function: its number in the workflow.
        server_name, server_id, numa_node_id: where.
        memory_alloc: MB it is given.
        starts_server: whether the server has to be started for it.
    """

    workflow: str
    function: int
    server_name: str
    server_id: int
    numa_node_id: int
    memory_alloc: int
    starts_server: bool


class LiveCluster:
    """A cluster as it really is, as far as that has been reported, and a scheduler that is asked.

    The world is the plain one of docs/model.md: functions are placed once they are ready, servers
    are started by placements and leased by the hour. Every method takes the time at which something
    happened, in seconds since a moment of the caller's choice. It raises `InputError`, and changes
    nothing, if that is before the time of the last call, if a name is unknown, or if what it
    reports cannot be now, such as the end of a function that has not started.

    Args:
        cluster: the servers there can be; all are off.
        workflows: what can arrive, with names of their own.
        scheduler: who places, learned or hand-written.
        objective: what it places for.
        most_active: workflows that can be active at once, 1 to `MOST_ACTIVE`.
        seed: of what the scheduler draws at random.

    Attributes:
        env: the state, with the views of docs/model.md; to be read only.

    Raises:
        InputError: two workflows have one name, a workflow does not fit the cluster, `most_active`
            is out of range, calls are conditional, or the scheduler needs a central queue or knows
            the future.
    """

    def __init__(
        self,
        cluster: ClusterConfig,
        workflows: Sequence[WorkflowTemplate],
        scheduler: Scheduler,
        objective: Objective,
        most_active: int = 256,
        seed: int = 0,
    ) -> None:
        self._templates: dict[str, int] = {}
        for row, template in enumerate(workflows):
            if self._templates.setdefault(template.name, row) != row:
                raise InputError(f"workflows: two are called {short(template.name)}")
            if (template.probability < 1).any():
                raise InputError(f"{template.label}: conditional calls, which cannot be reported")
        most_active = whole_number("most_active", most_active, 1, MOST_ACTIVE)
        if scheduler.order is not None or scheduler.kind == "reference":
            raise InputError(
                f"scheduler {scheduler.name}: a live cluster has no central queue to be ordered, "
                "and no copies for references to play on in"
            )
        check_rates(cluster)
        self.env = _LiveEnv(workflows, cluster, most_active)
        self._objective, self._scheduler = objective, scheduler
        self._slots: dict[str, int] = {}
        self._names: dict[int, str] = {}
        self._started = np.zeros(len(self.env.state.functions), np.bool_)
        self._up = np.zeros(len(self.env.state.servers), np.bool_)
        sequence = np.random.SeedSequence(seed)
        self._rng = np.random.default_rng(sequence)
        scheduler.reset(Shown(self.env), objective, sequence)

    def __repr__(self) -> str:
        return f"LiveCluster(time={self.env.time}, active={len(self._slots)} workflows)"

    def arrived(self, time: float, workflow: str, template: str) -> None:
        """A workflow has arrived: its functions without predecessors can be placed.

        Args:
            time: seconds.
            workflow: what it is called from now on, as long as it is active.
            template: name of one of `workflows`.
        """
        state = self.env.state
        if workflow in self._slots:
            raise InputError(f"workflow {short(workflow)} is active already")
        if template not in self._templates:
            near = nearest(template, list(self._templates))
            raise InputError(f"template {short(template)} is unknown, {near}")
        if not state.cluster[0]["free_slots"]:
            raise InputError(
                f"{len(state.workflows)} workflows are active: a larger most_active is needed"
            )
        time = self._pass(time)
        slot = int(state.free_slots[state.cluster[0]["first_free_slot"]])
        self.env.arrive(slot, time, self._templates[template])
        self._slots[workflow], self._names[slot] = slot, workflow

    def next_assignment(self, time: float) -> Assignment | None:
        """Where the next function that is ready is to run; None if none can be placed now.

        It counts as placed from now on; what no server in service holds waits. To be asked until it
        returns None after `arrived`, `finished`, `server_gone` and `server_back`.

        Raises:
            InputError: the scheduler chose what is not possible; the function then waits on.
                Whatever else the scheduler raises changes nothing either.
        """
        env, state = self.env, self.env.state
        if not state.cluster[0]["queue_size"]:
            self._pass(time, all_reported=True)
            return None
        with env.undone_if_raised():
            time = self._pass(time, all_reported=True)
            if not env.decides():
                return None
            decision = Decision(env, self._objective, self._scheduler.tiers, self._rng)
            function = decision.function
            with located(f"scheduler {self._scheduler.name}"):
                node, memory_alloc = decision.placement(self._scheduler.choose(decision))
                server = int(state.nodes[node]["server"])
                starts = not state.servers[server]["expiration_time"] > time
                env.place(node, memory_alloc)
        if starts:
            self._up[server] = False
        self._started[env.function_index(function.wf_id, function.fn_id)] = False
        name, where = self._names[function.wf_id], env.place_of(node)
        return Assignment(name, function.fn_id, *where, memory_alloc, starts)

    def started(self, time: float, workflow: str, function: int) -> None:
        """A placed function has begun to compute: its server is up, its data is there."""
        index = self._running(workflow, function, started=False)
        node = self.env.state.functions[index]["node"]
        if not self._up[self.env.state.nodes[node]["server"]]:
            name, server_id, _ = self.env.place_of(node)
            raise InputError(
                f"function {function} of workflow {short(workflow)} is on server {name} "
                f"{server_id}, server_up is needed before"
            )
        time = self._pass(time)
        start_function(self.env.state, index, time)
        self._started[index] = True

    def finished(self, time: float, workflow: str, function: int) -> None:
        """A function has finished: what waited for it alone can be placed."""
        index = self._running(workflow, function, started=True)
        time = self._pass(time)
        finish_function(self.env.state, index, time)
        slot = self._slots[workflow]
        if not np.isnan(self.env.state.workflows[slot]["completion_time"]):
            del self._slots[workflow], self._names[slot]

    def server_up(self, time: float, server_name: str, server_id: int) -> None:
        """A server that was started is up. One that no placement started is leased from now on."""
        server = self._server(time, server_name, server_id, "off", "starting")
        server_is_up(self.env.state, server, float(time))
        self._up[server] = True

    def server_gone(self, time: float, server_name: str, server_id: int) -> None:
        """A server that was up or starting is gone, and no function is placed on it any more.

        What was placed there and has not finished is killed: it is ready to be placed again, with
        all of its work. What was paid for the server stays paid. A server on which nothing runs at
        the end of its lease is off by itself; that is not reported.
        """
        server = self._server(time, server_name, server_id, "starting", "up")
        take_down(self.env.state, server)
        self._up[server] = False

    def server_back(self, time: float, server_name: str, server_id: int) -> None:
        """A server that was gone can be started again by placements."""
        server = self._server(time, server_name, server_id, "gone")
        bring_back(self.env.state, server)

    def _pass(self, time: float, all_reported: bool = False) -> float:
        """Goes on to the time of an event, which must not be past."""
        now = self.env.time
        if not now <= time <= LONGEST:
            raise InputError(f"time is {time}, at least {now} and at most {LONGEST:g} is needed")
        time = float(time)
        pass_time(self.env.state, time, self._up, self._started, all_reported)
        return time

    def _running(self, workflow: str, function: int, started: bool) -> int:
        """Index of a function that is placed, has not finished, and has begun to compute or not."""
        if workflow not in self._slots:
            raise InputError(f"no active workflow is called {short(workflow)}")
        slot = self._slots[workflow]
        count = self.env.workflow_templates[slot].function_count
        if not 0 <= function < count:
            raise InputError(
                f"workflow {short(workflow)} has functions 0 to {count - 1}, found {function}"
            )
        index = self.env.function_index(slot, function)
        state = STATE_NAMES[int(self.env.state.functions[index]["state"])]
        named = f"function {function} of workflow {short(workflow)}"
        if state != STATE_NAMES[RUNNING]:
            raise InputError(f"{named} is {state}, RUNNING is needed")
        if self._started[index] != started:
            raise InputError(f"{named} has {'not started' if started else 'started already'}")
        return index

    def _server(self, time: float, server_name: str, server_id: int, *states: str) -> int:
        """Index of a server that is in one of these states; goes on to the time of its event."""
        node = self.env.cluster_config.node_index(server_name, server_id, 0)
        server = int(self.env.state.nodes[node]["server"])
        record = self.env.state.servers[server]
        state = "up" if self._up[server] else "starting"
        if record["condition"] == DOWN:
            state = "gone"
        elif record["expiration_time"] <= time and record["container_count"] == 0:
            state = "off"  # what runs on it late would keep it up
        if state not in states:
            raise InputError(
                f"server {server_name} {server_id} is {state}, {' or '.join(states)} is needed"
            )
        self._pass(time)
        return server


class _LiveEnv(RawEnv):
    """The simulator with nothing in it, for `LiveCluster` to fill.

    A workflow has the number of the slot that it is in.
    """

    def __init__(
        self, workflows: Sequence[WorkflowTemplate], cluster: ClusterConfig, most_active: int
    ) -> None:
        # As if each of them arrived, so that all are checked and known to the records.
        count = max(most_active, len(workflows))
        each = [workflows[row % len(workflows)] for row in range(count)] if workflows else []
        workload = EpisodeWorkload((0.0,) * len(each), tuple(each))
        self._begin(Episode(workload, cluster, workflow_slots=most_active), record=False)
        self._before = self.state.blank()

    def reset(self) -> None:
        """Nothing has arrived, and nothing is known of what will."""
        reset(self.state)
        self.state.cluster["arrivals_left"] = self.state.cluster["timers_size"] = 0
        self.logs, self._taken = [], [np.zeros(0, ENTRY)]
        self._kind = MORE_ARRIVALS

    def arrive(self, slot: int, time: float, template: int) -> None:
        """A workflow arrives in the next free slot."""
        self.state.arrivals[slot] = (time, slot, template, 0, 0, 1.0)
        templates, times = list(self.workflow_templates), list(self.arrival_times)
        templates[slot], times[slot] = self.episode.workload.templates[template], time
        self.workflow_templates, self.arrival_times = tuple(templates), tuple(times)
        arrive(self.state, slot)

    @contextmanager
    def undone_if_raised(self) -> Iterator[None]:
        """Whatever is raised inside leaves everything as it was before."""
        copy_into(self._before, self.state)
        try:
            yield
        except BaseException:
            copy_into(self.state, self._before)
            self._kind = MORE_ARRIVALS
            raise

    def decides(self) -> bool:
        """Whether a function can be placed, which then is `current_function`."""
        places = bool(any_to_place(self.state))
        self._kind = PLACE if places else MORE_ARRIVALS
        return places

    def place(self, node: int, memory_alloc: int) -> None:
        """Places the current function.

        Raises:
            InputError: the node does not have the memory, or takes nothing.
        """
        possible = 1 <= memory_alloc <= self._memory_of[node]
        if not possible or not suits(self.state, node, memory_alloc):
            raise InputError(self._refusal(node, memory_alloc, possible))
        place(self.state, node, memory_alloc)
        self._kind = MORE_ARRIVALS
