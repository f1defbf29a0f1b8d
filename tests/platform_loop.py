"""A platform with times of its own: a small, slow event loop that asks a live cluster.

Functions take what is drawn for them, whoever else runs beside them; servers start when they are
told to, late or early; servers go and come back. It keeps its own books, and checks that nothing is
asked of it that is not possible.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from itertools import count

import numpy as np

from agents.live import Assignment, LiveCluster
from env.sim.declared.episode import EpisodeWorkload
from env.sim.declared.hardware import ClusterConfig

Server = tuple[str, int]
Called = tuple[int, int]
"""Workflow and function."""


class Platform:
    """Runs an episode, placing as a live cluster says.

    Args:
        live: is told everything; called by their numbers.
        cluster: the hardware.
        episode: what arrives.
        rng: of all draws.
        spread: factors of what is declared are drawn from 1 / spread to spread.
        mean_gap: seconds between two servers that go, inf for none.
        check: called after whatever happened.
    """

    def __init__(
        self,
        live: LiveCluster,
        cluster: ClusterConfig,
        episode: EpisodeWorkload,
        rng: np.random.Generator,
        spread: float,
        mean_gap: float,
        check: Callable[[], None],
    ) -> None:
        self.live, self.episode, self.rng, self.spread = live, episode, rng, spread
        self.check, self.mean_gap = check, mean_gap
        self.types = {kind.name: kind for kind in cluster.server_types}
        self.events: list[tuple[float, int, Callable[..., None], tuple]] = []
        self.numbers = count()
        self.now = 0.0
        self.left = {wf: set(range(t.function_count)) for wf, t in enumerate(episode.templates)}
        self.active: set[int] = set()
        self.running: dict[Called, Server] = {}
        self.attempts: dict[Called, int] = {}
        self.boots: dict[Server, int] = {}
        self.up: dict[Server, bool] = {}  # of those that are started: whether they are up
        self.gone: set[Server] = set()
        self.killed = 0

    def play(self) -> None:
        """To the end of the last workflow."""
        for wf_id, time in enumerate(self.episode.arrival_times):
            self.at(time, self.arrive, wf_id)
        if self.mean_gap < np.inf:
            self.at(self.rng.exponential(self.mean_gap), self.lose_one)
        while self.events and (self.left or self.running):
            time, _, happen, told = heapq.heappop(self.events)
            assert time >= self.now
            self.now = time
            happen(*told)
            self.check()
            for found in iter(self.ask, None):
                self.place(*found)
                self.check()
        assert not self.left and not self.running

    def at(self, time: float, happen: Callable[..., None], *told: object) -> None:
        heapq.heappush(self.events, (float(time), next(self.numbers), happen, told))

    def factor(self) -> float:
        return float(np.exp(self.rng.uniform(-1, 1) * np.log(self.spread)))

    def ready(self, wf_id: int) -> Iterator[int]:
        """Functions that have not been placed and whose predecessors have finished."""
        edges = self.episode.templates[wf_id].edges
        for fn_id in self.left[wf_id]:
            waits_for = set(edges[edges[:, 1] == fn_id, 0].tolist())
            if (wf_id, fn_id) not in self.running and not waits_for & self.left[wf_id]:
                yield fn_id

    def ask(self) -> Assignment | None:
        """The next placement; idle servers are switched off at the end of their leases first."""
        busy = self.running.values()
        for server in [each for each in self.up if each not in busy]:
            name, server_id = server
            lease_end = self.live.env.cluster.servers[name][server_id].expiration_time
            if lease_end <= self.now:
                del self.up[server]
        return self.live.next_assignment(self.now)

    def place(
        self,
        workflow: str,
        fn_id: int,
        name: str,
        server_id: int,
        numa_node_id: int,
        memory: int,
        starts: bool,
    ) -> None:
        key, server, kind = (int(workflow), fn_id), (name, server_id), self.types[name]
        assert fn_id in self.ready(key[0]) and server not in self.gone
        assert server_id < kind.count and numa_node_id < kind.numa_nodes
        assert 1 <= memory <= kind.memory
        assert starts == (server not in self.up)
        self.running[key] = server
        self.attempts[key] = self.attempts.get(key, 0) + 1
        if starts:
            self.up[server] = False
            self.boots[server] = self.boots.get(server, 0) + 1
            late = kind.cold_start_latency * self.factor()
            self.at(self.now + late, self.boot, server, self.boots[server])
        elif self.up[server]:
            self.fetch(key)

    def fetch(self, key: Called) -> None:
        """Data comes, then the function starts."""
        self.at(self.now + self.rng.exponential(2.0), self.start, key, self.attempts[key])

    def arrive(self, wf_id: int) -> None:
        self.active.add(wf_id)
        self.live.arrived(self.now, str(wf_id), self.episode.templates[wf_id].name)

    def boot(self, server: Server, number: int) -> None:
        if self.boots[server] != number or server not in self.up:
            return
        self.up[server] = True
        self.live.server_up(self.now, *server)
        for key, where in self.running.items():
            if where == server:
                self.fetch(key)

    def start(self, key: Called, attempt: int) -> None:
        if key not in self.running or self.attempts[key] != attempt:
            return
        self.live.started(self.now, str(key[0]), key[1])
        template = self.episode.templates[key[0]]
        cores = min(int(template.parallelism[key[1]]), self.types[self.running[key][0]].cpu)
        speed = cores * int(self.live.env.state.cluster[0]["single_core_speed"])
        seconds = int(template.computation[key[1]]) / speed
        self.at(self.now + seconds * self.factor(), self.finish, key, attempt)

    def finish(self, key: Called, attempt: int) -> None:
        if key not in self.running or self.attempts[key] != attempt:
            return
        del self.running[key]
        self.live.finished(self.now, str(key[0]), key[1])
        self.left[key[0]].remove(key[1])
        if not self.left[key[0]]:
            del self.left[key[0]]

    def lose_one(self) -> None:
        """A server in use goes, with what runs on it, and can be had again a minute later."""
        self.at(self.now + self.rng.exponential(self.mean_gap), self.lose_one)
        in_use = sorted(set(self.running.values()))
        if not in_use:
            return
        server = in_use[self.rng.integers(len(in_use))]
        self.live.server_gone(self.now, *server)
        self.gone.add(server)
        del self.up[server]
        for key in [key for key, where in self.running.items() if where == server]:
            del self.running[key]
            self.killed += 1
        self.at(self.now + 60.0, self.bring_back, server)

    def bring_back(self, server: Server) -> None:
        self.gone.remove(server)
        self.live.server_back(self.now, *server)
