"""Servers go down, drain and come back, functions are skipped, whenever: all records agree."""

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from env.sim.assembly import with_rules
from env.sim.assembly.new_state import reset
from env.sim.declared.resources import holders
from env.sim.events.endings import bring_back, drain, skip_function, take_down
from env.sim.events.engine import play
from env.sim.events.placing import place
from env.sim.node import idle_forecast
from env.sim.node.fit import need_of, suits
from env.sim.node.idle_forecast import answer_forecasts
from env.sim.state import history, records
from env.sim.view.raw_env import RawEnv
from tests.recount import assert_recounted, most_memory
from tests.reference_inputs import mean
from tests.strategies import World, worlds


@dataclass
class Troubled:
    """An episode in which servers go down, drain and come back, and functions are skipped.

    Attributes:
        env: of the episode; the engine stops whenever a container has ended.
        world: what it plays.
        likely: how often something happens where the engine stops.
        troubles: how often something may happen still.
        outages: of each server (condition, begin, end) of the times out of service.
    """

    env: RawEnv
    world: World
    random: np.random.Generator
    likely: float
    troubles: int = 20
    history: list[np.ndarray] = field(default_factory=list)
    outages: dict[int, list[tuple[int, float, float]]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def play(self) -> None:
        """Plays to the end, counting all records anew wherever the engine stops."""
        state = self.env.state
        while True:
            self._trouble()
            kind = play(state)
            while kind in (records.FORECAST, records.MORE_WARM):
                if kind == records.FORECAST:
                    answer_forecasts(state)
                else:
                    state = self.env.state = with_rules.with_more_warm(state)
                kind = play(state)
            assert_recounted(state)
            self.history.append(state.history[: int(state.cluster[0]["entries"])].copy())
            state.cluster[0]["entries"] = 0
            if kind == records.DONE:
                return
            if kind == records.NO_SERVER:
                assert not any(self._held(index) for index in self._waiting())
                assert (state.servers["condition"] != records.IN_SERVICE).any()
                assert (state.nodes["next_completion"] == np.inf).all()
                for server in range(len(state.servers)):
                    self._change(bring_back, server)
            elif kind == records.PLACE and not self._trouble():
                self._place()
            else:
                assert kind in (records.PLACE, records.TAKE_HISTORY)

    def _waiting(self) -> list[int]:
        """Submitted functions, in the order of submission."""
        state = self.env.state
        entries = state.submitted[: int(state.cluster[0]["queue_size"])]
        return [int(index) for *_, index in sorted(entries.tolist())]

    def _held(self, function: int) -> bool:
        """Whether a server in service has a node that holds a function when it is empty."""
        state, queued = self.env.state, self.env.rules.order is not None
        memory = state.images["memory"][state.waiting["image"]] if queued else None
        episode = self.world.episode
        holds = holders(list(episode.declared), episode.cluster, memory)
        in_service = state.servers["type"][state.servers["condition"] == records.IN_SERVICE]
        return bool(holds[state.functions[function]["declared"], in_service].any())

    def _place(self) -> None:
        state = self.env.state
        function = int(state.cluster[0]["deciding"])
        queued = self.env.rules.order is not None
        if not queued:
            assert function == next(each for each in self._waiting() if self._held(each))
        own = int(state.functions[function]["memory_req"])
        need = need_of(state, function) if queued else 1
        candidates = [node for node in range(len(state.nodes)) if suits(state, node, need)]
        node = candidates[int(self.random.integers(len(candidates)))]
        most = self.world.node_memories[node]
        memory = min(int(self.random.choice([own, max(1, own // 2)])), most)
        assert place(state, node, memory) == 0
        assert_recounted(state)

    def _trouble(self) -> bool:
        """Whether something has happened."""
        state = self.env.state
        if self.troubles == 0 or self.random.random() >= self.likely:
            return False
        self.troubles -= 1
        server = int(self.random.integers(len(state.servers)))
        pending = [
            slot * int(state.cluster[0]["functions_per_slot"]) + fn_id
            for slot, workflow in enumerate(state.workflows)
            if workflow["wf_id"] >= 0
            for fn_id in range(state.templates["function_count"][workflow["template"]])
        ]
        what = self.random.choice(["down", "down", "drain", "back", "back", "skip"])
        if what == "skip" and pending:
            function = int(self.random.choice(pending))
            could = state.functions[function]["state"] == records.PENDING
            assert skip_function(state, function) == could
            assert not skip_function(state, function)
        else:
            known = {"down": take_down, "drain": drain}
            self._change(known.get(what, bring_back), server)
        assert_recounted(state)
        return True

    def _change(self, change: Callable[..., None], server: int) -> None:
        """Changes the condition of a server, and notes since when."""
        state = self.env.state
        time = float(state.cluster[0]["time"])
        before = int(state.servers[server]["condition"])
        change(state, server)
        after = int(state.servers[server]["condition"])
        if before != records.IN_SERVICE:
            condition, begin, _ = self.outages[server].pop()
            self.outages[server].append((condition, begin, time))
        if after != records.IN_SERVICE:
            self.outages[server].append((after, time, np.inf))


@given(world=worlds(), seed=st.integers(0, 10_000), likely=st.sampled_from([0.05, 0.3, 0.6]))
def test_whatever_happens_all_records_agree_and_every_function_ends_once(
    world: World, seed: int, likely: float
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(idle_forecast, "next_idle_time", mean)
        patch.setattr(history, "ROOM", 1)
        patch.setattr(with_rules, "WARM", 1)
        # Of what is declared, not drawn: nothing runs for less.
        workload = replace(world.episode.workload, work=())
        env = RawEnv.of(replace(world.episode, workload=workload))
        env.state = history.listening(env.state)  # also where functions have no images
        # The constructor has played on to the first decision: trouble comes from time 0.
        reset(env.state)
        troubled = Troubled(env, world, np.random.default_rng(seed), likely)
        troubled.play()
    check_ends(troubled)


def check_ends(troubled: Troubled) -> None:
    """Every function has ended once, and nothing ran where and when nothing could."""
    state, episode = troubled.env.state, troubled.world.episode
    runs = history.runs_of(np.concatenate(troubled.history))
    completed, killed = (
        Counter(runs[["wf_id", "fn_id"]][runs["outcome"] == outcome].tolist())
        for outcome in (records.COMPLETED, records.KILLED)
    )
    per_slot = int(state.cluster[0]["functions_per_slot"])
    for wf_id, template in enumerate(episode.workload.templates):
        for fn_id in range(template.function_count):
            record = state.functions[int(state.slot_of[wf_id]) * per_slot + fn_id]
            assert record["state"] in (records.FINISHED, records.SKIPPED, records.NOT_CALLED)
            assert completed[wf_id, fn_id] == (record["state"] == records.FINISHED)
            assert killed[wf_id, fn_id] == record["attempt"]
    assert state.cluster[0]["finished_workflows"] == len(episode.workload.templates)
    for run in runs:
        for condition, begin, end in troubled.outages[int(state.nodes[run["node"]]["server"])]:
            assert not begin < run["dispatch_time"] < end
            if condition == records.DOWN:
                assert run["end_time"] <= begin or run["dispatch_time"] >= end
    if episode.rules.order is not None:
        reference = episode.cluster.single_core_speed
        kinds = episode.cluster.server_types
        speed = max(kind.single_core_speed or reference for kind in kinds)
        least = state.waiting["execution"] * reference / speed
        for node, memory in enumerate(state.nodes["memory"]):
            assert most_memory(runs, node) <= memory
        check_runs(runs, least)


def check_runs(runs: np.ndarray, least: np.ndarray) -> None:
    """A function waits, runs, and waits again; one that is killed begins anew.

    None of the declared functions completes in less than its `least` seconds, at full speed.
    """
    of_function: dict[tuple[int, int], list[np.void]] = defaultdict(list)
    for run in runs:
        of_function[int(run["wf_id"]), int(run["fn_id"])].append(run)
    for own in of_function.values():
        since, served = own[0]["submission_time"], 0.0
        for run in own:
            assert run["joined_time"] == since
            moments = [run[f"{key}_time"] for key in ("joined", "dispatch", "start", "end")]
            assert moments == sorted(moments)
            seconds = run["end_time"] - run["start_time"]
            served = 0.0 if run["outcome"] == records.KILLED else served + seconds
            assert run["queueing_time"] == run["dispatch_time"] - since
            since = run["end_time"]
        if own[-1]["outcome"] == records.COMPLETED:
            assert served >= least[own[-1]["declared"]] - 1e-9 - 1e-12 * since
