"""Tenants take turns by their tickets: by hand, what each is entitled to, and what is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.order.fcfs import Fcfs
from agents.order.funcsched import FuncSched
from agents.order.tickets import ByUse, DominantResource, InTurn, SeveralWinners, Workflows
from benchmarks.trace_player import Simulation
from env.base.errors import InputError
from env.sim.assembly.new_state import reset
from env.sim.declared.funding import Funding, Grant
from env.sim.declared.hardware import ServerType
from env.sim.declared.images import Images
from env.sim.declared.keep_alive_policy import NoKeepAlive
from env.sim.declared.ordering import Order
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.events.endings import bring_back, take_down
from env.sim.events.engine import play
from env.sim.view.raw_env import RawEnv
from env.workloads.traces.trace import REQUEST, FunctionProfiles
from tests.env import small
from tests.env.small import SPEED, always_up, cluster_of, held
from tests.episodes import begun

ONE_AT_A_TIME = cluster_of(ServerType("one", 1, 0.0, 0.0, 1, 8, 100))
ALL = ("lottery", "multi_lottery", "stride", "hierarchical_stride", "drf")
MOST = 4.0
"""Seconds of the longest function."""


def order(name: str, within: Any = None, kind: Any = ByUse, **others: Any) -> InTurn:
    told = {"name": name, "within": within or Fcfs(), "half_life": None, **others}
    if name == "drf":
        return DominantResource(**told)
    told = {"resource": "core_seconds", "quantum": 1.0, **told}
    return SeveralWinners(winners=6, **told) if name == "multi_lottery" else kind(**told)


def chain(*seconds: float, memory: int = 100) -> WorkflowTemplate:
    """Functions one after the other; one of 100 MB has the node to itself."""
    return small.chain(*(round(own * SPEED) for own in seconds), memory=memory)


def env_of(
    templates: Sequence[WorkflowTemplate],
    tenants: Sequence[str],
    how: Order,
    funding: Funding | None,
    **others: Any,
) -> RawEnv:
    """Workflows that come at once to a node which runs one function of theirs at a time."""
    given = {"times": [0.0] * len(templates), "turns_seed": 1, **others}
    return begun(
        templates=templates,
        cluster=ONE_AT_A_TIME,
        tenants=tenants,
        funding=funding,
        rules=always_up(how, NoKeepAlive()),
        images=Images.by_name(templates, 0.0),
        **given,
    )


def turns(env: RawEnv) -> list[str]:
    """Whose functions were started, in this order."""
    runs = np.sort(env.runs, order="dispatched")
    return [env.tenants[wf_id] for wf_id in runs["wf_id"].tolist()]


def test_a_rich_workflow_that_waits_for_its_functions_does_not_stand_behind_poor_ones() -> None:
    """The example of the documentation: 6 tickets against 1, a chain of 4 against single ones."""
    templates = [chain(1.0, 1.0, 1.0, 1.0), *[chain(1.0)] * 4]
    tickets = [6.0, 1.0, 1.0, 1.0, 1.0]
    for lends, end in ((True, 4.0), (False, 8.0)):
        how = order("stride", Workflows(lends=lends))
        env = env_of(templates, ["a"] * 5, how, held(a=1), tickets=tickets)
        assert env.runs["end_time"][env.runs["wf_id"] == 0].max() == end


class Asking(ByUse):
    """Asks how many tickets each workflow gets."""

    name: Literal["stride", "hierarchical_stride"]

    def write(self, options: np.void) -> None:
        super().write(options)
        options["asks_tickets"] = 1


@given(data=st.data(), name=st.sampled_from(["stride", "hierarchical_stride"]))
def test_nobody_is_harmed_by_how_another_splits_its_own(data: st.DataObject, name: Any) -> None:
    """Whatever c does within its currency, a and b get what they are entitled to."""
    count = 120
    how = order(name, Workflows(), Asking)
    drawn = st.floats(1e-6, 1e9)
    kinds = data.draw(st.lists(st.integers(0, 2), min_size=count, max_size=count))
    templates = [chain(0.5), chain(1.0, 1.0), chain(MOST)]
    tenants = ["a", "b", "c"] * (count // 3)
    env = env_of([templates[kind] for kind in kinds], tenants, how, held(a=3, b=2, c=1))
    while not env.done:
        assert env.newcomer is not None
        env.grant(data.draw(drawn) if tenants[env.newcomer] == "c" else 1.0)
    runs = np.sort(env.runs, order="dispatched")
    whose = np.array([tenants[wf_id] for wf_id in runs["wf_id"]])
    last = {tenant: np.flatnonzero(whose == tenant)[-1] for tenant in "abc"}
    until = min(last.values())  # all three wait up to there, but for between functions of a chain
    own = {t: runs["execution_time"][:until][whose[:until] == t].sum() for t in "abc"}
    # Shares of a and b against each other: within a function of each, and the quantum charged.
    assert abs(own["a"] / 3 - own["b"] / 2) <= 2 * (MOST + 1.0)


def test_a_grant_is_asked_for_each_workflow_and_checked() -> None:
    how = order("stride", Workflows(), Asking)
    env = env_of([chain(1.0), chain(1.0)], ["a", "a"], how, held(a=1), times=[0.0, 9.0])
    assert env.newcomer == 0
    for wrong in (0.0, -1.0, float("nan"), float("inf"), 1e300, "many"):
        with pytest.raises(InputError, match="tickets: "):
            env.grant(wrong)  # type: ignore[arg-type]
    env.grant(2.0)
    assert (env.newcomer, env.time) == (1, 9.0)
    env.grant(1.0)
    assert env.done
    with pytest.raises(InputError, match="no workflow is to get tickets"):
        env.grant(1.0)


def test_equal_requests_of_a_trace_go_as_they_came() -> None:
    """Though slots of requests that have ended are taken by those that come."""
    requests = np.zeros(60, REQUEST)
    requests["time"], requests["duration"] = np.arange(60) * 0.1, 1.0
    ones = np.ones(1)
    profiles = FunctionProfiles(("f",), ones, 0 * ones, ones)
    how = order("stride", Workflows())
    server = cluster_of(ServerType("s", 1, 0.0, 0.0, 1, 1, 1), speed=1_000_000)
    simulation = Simulation(profiles, server, always_up(how, NoKeepAlive()), ("a",), held(a=1))
    runs = np.concatenate(list(simulation.play(lambda: iter([requests]))))
    assert runs["wf_id"].tolist() == list(range(60))


@pytest.mark.parametrize("name", ALL)
def test_a_tenant_whose_functions_no_server_holds_keeps_nobody_waiting(name: str) -> None:
    """Those of a need the large server, which is down while b's run; then they run, too."""
    kinds = (ServerType("s", 1, 0.0, 0.0, 1, 8, 50), ServerType("l", 1, 0.0, 0.0, 1, 8, 100))
    large, small = chain(1.0, memory=100), chain(1.0, memory=50)
    env = begun(
        [0.0] * 40,
        [large, small] * 20,
        cluster_of(*kinds),
        tenants=["a", "b"] * 20,
        funding=held(a=1, b=1),
        rules=always_up(order(name), NoKeepAlive()),
        images=Images(np.zeros(2), {large: np.array([0]), small: np.array([1])}),
    )
    reset(env.state)
    take_down(env.state, 1)
    env._taken = []
    with pytest.raises(InputError, match="20 functions wait at 20.0 s, and no server in service"):
        env._play_on(play(env.state))
    assert turns(env) == ["b"] * 20
    bring_back(env.state, 1)
    env._play_on(play(env.state))
    assert env.done and turns(env)[20:] == ["a"] * 20


def test_a_tenant_that_sends_nothing_does_not_round_the_tickets_of_others() -> None:
    """Tickets 1 : 2 beside one of a million, which sends a workflow only after all others."""
    tenants = ["a", "b"] * 60
    for rich in (1, 1e3, 1e6, 1e11):
        funding = held(a=0.5, b=1, rich=rich)
        templates, arrival_times = [chain(1.0)] * 121, [*[0.0] * 120, 500.0]
        env = env_of(templates, [*tenants, "rich"], order("stride"), funding, times=arrival_times)
        assert Counter(turns(env)[:60]) == {"a": 20, "b": 40}
        # All of b's have gone after 90, and then a waits alone.
        assert env.state.tenants["received"] == pytest.approx([30.0, 60.0, 0.0], abs=1.0)
        assert env.state.tenants["entitled"] == pytest.approx([30.0, 60.0, 0.0], abs=1.0)


@pytest.mark.parametrize("name", ["stride", "hierarchical_stride"])
def test_what_nobody_contested_is_not_charged(name: str) -> None:
    """a is alone when its 100 s begin; those who come a second later get every other turn."""
    templates = [chain(100.0)] + [chain(1.0)] * 60
    tenants, times = ["a", *["a", "b"] * 30], [0.0] + [1.0] * 60
    env = env_of(templates, tenants, order(name), held(a=1, b=1), times=times)
    found = turns(env)
    assert found[0] == "a"
    for first in range(1, 41, 4):
        assert Counter(found[first : first + 4]) == {"a": 2, "b": 2}


NEEDS = {"core_seconds": (1.0 + 3.0) / 2, "mb_seconds": (100.0 + 150.0) / 2, "dominant": 1.25}


@pytest.mark.parametrize("resource", NEEDS)
def test_the_quantum_is_what_functions_need_on_average(resource: str) -> None:
    """1 s of 100 MB and 3 s of 50 MB, on 8 cores and 100 MB: the memory is the dominant one."""
    templates = [chain(1.0, memory=100), chain(3.0, memory=50)]
    told = order("stride", resource=resource, quantum=None)
    state = env_of(templates, ["a", "b"], told, held(a=1, b=1)).state
    assert state.share_head["quantum"][0] == pytest.approx(NEEDS[resource])
    with pytest.raises(InputError, match="quantum of stride: 1e-09, a function needs up to "):
        env_of(templates, ["a", "b"], order("stride", quantum=1e-9), held(a=1, b=1))


def test_a_currency_that_nobody_has_is_refused() -> None:
    told = {"tenants": {"a": {"tickets": 1}}, "currencies": {"gold": {"tickets": 1}}}
    with pytest.raises(ValueError, match="currencies.gold: nobody has tickets of it"):
        Funding.model_validate(told)


def test_who_has_no_tickets_cannot_take_turns() -> None:
    with pytest.raises(InputError, match="tenants with tickets are needed"):
        env_of([chain(1.0)], ["a"], order("stride"), None)
    with pytest.raises(InputError, match="tenants: 'b' holds no tickets"):
        env_of([chain(1.0)], ["b"], order("stride"), held(a=1))


def test_nothing_is_left_of_tickets_that_have_gone() -> None:
    """b and c share what a unit backs 1 : 3, once a has gone that held 1e17 times as much of it."""
    of_unit = {"a": 1e12, "b": 1e-5, "c": 3e-5}
    tenants = {name: Grant(tickets=own, currency="unit") for name, own in of_unit.items()}
    backing = {"unit": Grant(tickets=1)}
    funding = Funding(tenants=tenants | {"d": Grant(tickets=1)}, currencies=backing)
    whose = ["a", *["b", "c", "d"] * 40]
    found = turns(env_of([chain(1.0)] * 121, whose, order("stride"), funding))
    first = found.index("a") + 1
    assert Counter(found[first : first + 64]) == pytest.approx({"b": 8, "c": 24, "d": 32}, abs=2)


@pytest.mark.parametrize("name", ["stride", "hierarchical_stride"])
def test_who_starves_goes_first_though_the_turn_had_been_another_tenants(name: str) -> None:
    """a's last, the oldest of the tenant in turn, starves at 115 s; b's large one does at 110 s."""
    arriving = {
        "first": (0.0, "a", chain(70.0, memory=80)),
        "second": (1.0, "a", chain(10.0, memory=90)),
        "long": (60.0, "b", chain(1000.0, memory=10)),
        "short": (60.0, "b", chain(10.0, memory=50)),
        "last": (65.0, "a", chain(1000.0, memory=70)),
    }
    times, tenants, templates = zip(*arriving.values(), strict=True)
    how = order(name, FuncSched(starve_threshold=50.0))
    env = env_of(templates, tenants, how, held(a=1000, b=1), times=times)
    began = dict(zip(env.runs["wf_id"].tolist(), env.runs["dispatch_time"].tolist(), strict=True))
    # `short` would go before `long`, and has no room from 80 s on.
    assert [began[number] for number in range(5)] == [0.0, 70.0, 110.0, 1080.0, 80.0]
