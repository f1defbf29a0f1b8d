"""`RawEnv`: drives the entities from one decision to the next."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

from env.base.errors import InputError
from env.base.schema import listed, short
from env.resources.quantity import as_number
from env.sim.assembly.build import build
from env.sim.assembly.go_on import go_on
from env.sim.assembly.new_state import copy_state, reset
from env.sim.declared.aside import Question, next_question
from env.sim.declared.episode import Episode, EpisodeWorkload
from env.sim.declared.hardware import ClusterConfig
from env.sim.declared.images import Images
from env.sim.declared.resources import names_of
from env.sim.declared.rules import DEFAULT_RULES, Rules
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.events.engine import is_stuck, play, step
from env.sim.node.fit import ELSEWHERE, NAMED, named_need, short_of, suits
from env.sim.node.idle_forecast import learn
from env.sim.node.server_state import OUT_OF_SERVICE
from env.sim.queue.central_queue import choose
from env.sim.queue.workflow_tickets import grant
from env.sim.state.history import listening, runs_of
from env.sim.state.records import ASIDE, CHANGE, CHOOSE, DONE, ENTRY, NONE, PLACE, SHARE
from env.sim.state.timers import set_timer
from env.sim.view.hardware import Cluster, Resources, demands_of, left_of, resources_of
from env.sim.view.recorded import Recorded
from env.sim.view.workload import Function, Played, Workload
from env.tickets.rights import exact


class NodeBefore(NamedTuple):
    """A NUMA node at the submission time, before the placement, as in `NodeStatus`."""

    cpu: float
    memory: float
    load: float
    total_parallelism: int
    free_memory: int
    time_to_first_completion: float  # seconds, as is the next; 0 on an empty node
    time_to_last_completion: float


class StepLog(NamedTuple):
    """What one decision did. Times are seconds, memory is MB."""

    wf_id: int  # of the function placed, as is the next
    fn_id: int
    server_name: str
    server_id: int
    numa_node_id: int
    memory_alloc: int
    submission_time: float
    cold_start_time: float
    data_transfer_time: float
    creation_time: float
    rent: float  # USD, for the placement and all completions up to the next decision
    completed: tuple[tuple[int, int], ...]  # until then: (wf_id, fn_id), by (time, wf_id, fn_id)
    target_node_before: NodeBefore


class RawEnv(Played):
    """One episode: workflows arrive, functions become ready, the caller places each of them.

    Args:
        arrival_times: seconds, one a workflow; `wf_id` is the position in this list.
        workflow_templates: one a workflow.
        cluster_config: the hardware.
        seed: of what is drawn: which conditional calls are made, and when servers fail.
        record: keep every `StepLog` in `logs`, and the `history` also where functions belong to no
            image.
        rules: how the world works.
        images: of all functions; None: by their names, of which no container starts cold.

    Raises:
        InputError: see `Episode` and `build`.
    """

    shows = "time", "decisions", "done"
    time = Recorded(float, "Seconds: the last event.")
    total_rent = Recorded(float, "USD paid so far.")
    decisions = Recorded(int, "Decisions taken so far.")
    cold_starts = Recorded(int, "Servers started so far.")
    overcommits = Recorded(int, "Admissions after which a node's projection exceeded its memory.")

    def __init__(
        self,
        arrival_times: Sequence[float],
        workflow_templates: Sequence[WorkflowTemplate],
        cluster_config: ClusterConfig,
        seed: int | None = None,
        record: bool = False,
        rules: Rules = DEFAULT_RULES,
        images: Images | None = None,
    ) -> None:
        self.seed = seed
        arrivals, templates = tuple(arrival_times), tuple(workflow_templates)
        workload = EpisodeWorkload(arrivals, templates, images=images, turns_seed=seed or 0)
        self._begin(Episode(workload, cluster_config, rules), record)

    @classmethod
    def of(cls, episode: Episode, record: bool = False) -> Self:
        """The same of any episode, such as one with tenants."""
        env = object.__new__(cls)
        env.seed = None
        env._begin(episode, record)
        return env

    def _begin(self, episode: Episode, record: bool) -> None:
        self.episode, self.record = episode, record
        self.rules, self.cluster_config = episode.rules, episode.cluster
        self.tenants = episode.workload.tenants
        self.workflow_templates = episode.workload.templates
        self.arrival_times = tuple(float(time) for time in episode.workload.arrival_times)
        self.state = build(episode)
        self._listens = record or episode.images is not None
        if self._listens:
            self.state = listening(self.state)
        self._places, self._node_of = list(self.cluster_config.places), self.cluster_config.places
        self._named = names_of(self.episode.declared)
        self._memory_of = self.state.nodes["memory"].tolist()
        self.reset()

    def reset(self) -> None:
        """Starts the same episode again."""
        reset(self.state)
        learn(self.state, self.episode.earlier)
        self.logs: list[StepLog] = []
        self._taken = [np.zeros(0, ENTRY)]
        self._question: Question | None = None
        self._changed = 0
        for index, change in enumerate(self.episode.changes):
            set_timer(self.state, float(change.time), CHANGE, index, index)
        self._play_on(play(self.state))

    @property
    def done(self) -> bool:
        """Whether every function has ended."""
        return self._kind == DONE

    @property
    def _record(self) -> np.void:
        return self.state.cluster[0]

    @property
    def cluster(self) -> Cluster:
        """View of the hardware."""
        return Cluster(self.state, self.cluster_config)

    @property
    def resources(self) -> Resources:
        """What every NUMA node has of each resource at this moment, has left, and is asked for."""
        return resources_of(self.state, self._named)

    @cached_property
    def demands(self) -> np.ndarray:
        """(D, L) what declared functions need of each resource, as in `resources`."""
        return demands_of(self.state, self._named)

    def demand(self, function: Function) -> np.ndarray:
        """(L,) what a function that has arrived needs of each resource; to be read only."""
        index = self.function_index(function.wf_id, function.fn_id)
        needed: np.ndarray = self.demands[self.state.functions[index]["declared"]]
        return needed

    @property
    def workload(self) -> Workload:
        """View of all workflows."""
        return Workload(self)

    @property
    def current_function(self) -> Function | None:
        """The function to be placed now; None when the episode is over."""
        if self._kind != PLACE:
            return None
        deciding = self.state.functions[int(self.state.cluster[0]["deciding"])]
        return Function(self, int(deciding["wf_id"]), int(deciding["fn_id"]))

    def step(
        self, server_name: str, server_id: int, numa_node_id: int, memory_alloc: int
    ) -> StepLog:
        """Places the current function and plays on to the next decision.

        Args:
            server_name: server type.
            server_id: server within its type.
            numa_node_id: NUMA node within its server.
            memory_alloc: MB, 1 to the node's memory.

        Raises:
            InputError: the episode is over, there is no such place, the memory is out of range,
                there is no room, the server is out of service, or see `go_on`.
        """
        place_given = (server_name, server_id, numa_node_id)
        node = self._node_of.get(place_given)
        if node is None:
            node = self.cluster_config.node_index(*place_given)
        if self._kind != PLACE:
            raise InputError("step: the episode is over, call reset()")
        memory = int(memory_alloc)
        possible = 1 <= memory <= self._memory_of[node] and memory_alloc == memory
        if not possible or not suits(self.state, node, memory):
            raise InputError(self._refusal(node, memory_alloc, possible))
        kind, status, first, last = step(self.state, node, memory)
        self._play_on(kind)
        wf_id, fn_id, submitted, cold, transfer, ready, rent, count = self.state.log[0].item()
        done: tuple[tuple[int, int], ...] = ()
        if count:
            ended = sorted(self.state.completed[:count].tolist())
            done = tuple([(wf, fn) for _, wf, fn, _ in ended])
        before = NodeBefore._make((*status, first, last))
        log = StepLog(
            wf_id, fn_id, *place_given, memory, submitted, cold, transfer, ready, rent, done, before
        )
        if self.record:
            self.logs.append(log)
        return log

    def fork(self) -> RawEnv:
        """An independent copy at this moment, to which the same happens: arrivals, draws of calls.

        What is recorded is not copied.
        """
        other = object.__new__(RawEnv)
        other.__dict__.update(self.__dict__)
        other.state = copy_state(self.state)
        if aside := self.state.cluster["aside"][0]:
            other.state.cluster["aside"] = aside
        if self._listens:
            other.state.cluster["listens"] = 1
        other.logs, other._taken = [], list(self._taken)
        other.record = False
        return other

    @property
    def history(self) -> np.ndarray:
        """ENTRY records of all that has happened; see `record`."""
        self._taken = [np.concatenate(self._taken)]
        return self._taken[0]

    @property
    def runs(self) -> np.ndarray:
        """RUN records of what has run, in the order of ends."""
        return runs_of(self.history)

    @property
    def choosing(self) -> bool:
        """Whether the caller has to choose which waiting function goes next."""
        return self._kind == CHOOSE

    @property
    def waiting(self) -> tuple[int, ...]:
        """Indices of the declared functions of which requests wait; `state.waiting` has more.

        Empty unless the caller has to choose one of them.
        """
        waiting = np.flatnonzero(self.state.waiting["count"]).tolist() if self.choosing else ()
        return tuple(waiting)

    def choose(self, declared: int | None) -> None:
        """Lets the first waiting request of a declared function go next, and plays on.

        It starts once a node has room for it; until then all others wait behind it.

        Args:
            declared: one of `waiting`; None holds all back until something changes.

        Raises:
            InputError: no request of it waits, nothing is to be chosen, or nothing would change.
        """
        if not self.choosing or (declared is not None and declared not in self.waiting):
            raise InputError(
                f"choose: no request of declared function {short(declared)} is to be chosen now"
            )
        if declared is None and is_stuck(self.state):
            raise InputError("choose: nothing is to come that could be waited for")
        choose(self.state, NONE if declared is None else declared)
        self._play_on(play(self.state))

    @property
    def newcomer(self) -> int | None:
        """The workflow that has arrived and for which the caller has to name tickets, if any."""
        if self._kind != SHARE:
            return None
        return int(self.state.workflows[int(self.state.queue[0]["newcomer"])]["wf_id"])

    def grant(self, tickets: float) -> None:
        """Gives the newcomer so many tickets of its tenant's own currency, and plays on.

        Raises:
            InputError: nobody is to get tickets, or the amount is not allowed.
        """
        if self.newcomer is None:
            raise InputError("grant: no workflow is to get tickets now")
        amount = float(exact("tickets", tickets))
        grant(self.state, amount)
        self._play_on(play(self.state))

    @property
    def question(self) -> Question | None:
        """The decision of one of the episode's `asked` kinds that is due, if any."""
        return self._question if self._kind == ASIDE else None

    def answer(self, row: int) -> None:
        """Carries out a row of the `question`, and plays on.

        Raises:
            InputError: there is no question, or the row may not be chosen.
        """
        question = self.question
        if question is None:
            raise InputError("answer: nothing is asked now")
        if not 0 <= row < len(question.mask) or not question.mask[row]:
            allowed = listed([str(each) for each in np.flatnonzero(question.mask)])
            raise InputError(f"answer: {question.kind.name}: {short(row)}, allowed: {allowed}")
        question.kind.apply(self.state, question.subject, row)
        self._play_on(ASIDE)

    def played_to(self, kind: int) -> None:
        """Others have played its state, up to what `play` returned."""
        self._kind = kind

    def _play_on(self, kind: int) -> None:
        """On from what the engine stopped at, to the end or to what the caller has to decide."""
        if self._listens or kind < 0:
            kind = go_on(self, kind, self._taken.append)
        while kind == ASIDE and not self._asks():
            kind = go_on(self, play(self.state), self._taken.append)
        self._kind = kind

    def _asks(self) -> bool:
        """Makes the changes that are due; whether there is a question besides."""
        changes, cluster = self.episode.changes, self.state.cluster[0]
        for change in changes[self._changed :]:
            exact = change.events == cluster["events"] and change.time == cluster["time"]
            if not (exact if change.events is not None else self._changed < cluster["changes"]):
                break
            change.apply(self.state)
            self._changed += 1
        self._question = next_question(self.state, self.episode.asked, self._question)
        return self._question is not None

    def _refusal(self, node: int, memory_alloc: float, possible: bool) -> str:
        """Why a node does not take the current function; `possible`: it ever has the memory."""
        deciding = int(self.state.cluster[0]["deciding"])
        who = "function ({wf_id}, {fn_id})".format_map(self.state.functions[deciding])
        name, server_id, node_id = self.place_of(node)
        where = f"NUMA node {node_id} of server {name} {server_id}"
        if not possible:
            return (
                f"{who}: memory_alloc is {memory_alloc} MB, {where} takes whole numbers from 1 to "
                f"{self._memory_of[node]}"
            )
        state_name = self.cluster.servers[name][server_id].state_name
        if state_name in OUT_OF_SERVICE:
            return f"{who}: server {name} {server_id} is {state_name}, it takes nothing new"
        if short_of(self.state, node, deciding, int(memory_alloc), True) == ELSEWHERE:
            return f"{who}: must not run in the region of {where}"
        for empty, has in ((True, "has"), (False, "now has")):
            named = int(short_of(self.state, node, deciding, int(memory_alloc), empty)) - NAMED
            if named >= 0:
                need = int(named_need(self.state, deciding, named))
                left = int(left_of(self.state, named, empty)[node].sum())
                parts = " in parts" if left >= need else ""
                needed = f"needs {as_number(need)} {self._named[named]}"
                return f"{who} {needed}, {where} {has} {as_number(left)}{parts}"
        return (
            f"{who}: {where} has no {int(memory_alloc)} MB free or reclaimable now, "
            "or may not be started"
        )
