"""Agents of tenants: an instance by hand, rewards, that nobody is harmed, and what is refused."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from env.learn.decisions import Decisions
from env.learn.kind import Observation
from env.learn.layouts import AgentsConfig, Layout
from env.learn.multi_agent import ServerlessEnv
from env.learn.tenant_agents import LEVEL_FEATURES, TENANT_CONTEXT, TenantAgents, lead_of
from env.score.greedy_score import ScoreWeights
from env.score.reward import Objective
from env.sim.declared.episode import Episode, EpisodeWorkload
from env.sim.declared.hardware import ServerType
from env.sim.declared.keep_alive_policy import NoKeepAlive
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.queue.sharing import share_error
from env.sim.view.raw_env import RawEnv
from tests.env import small
from tests.env.learn.test_actions import refused
from tests.env.small import always_up
from tests.env.worlds import TENANTS, world

Act = Callable[[str, Observation], int]


def chain(*seconds: float, speed: int = 1000, memory: int = 100) -> WorkflowTemplate:
    """Functions of one thread, one after the other."""
    return small.chain(*(int(own * speed) for own in seconds), memory=memory)


def arriving(
    times: list[float], templates: list[WorkflowTemplate], tenants: str, **tickets: float
) -> EpisodeWorkload:
    funding = small.held(**tickets)
    return EpisodeWorkload(tuple(times), tuple(templates), tuple(tenants), funding=funding)


def test_an_instance_by_hand() -> None:
    """One core and memory for one function; a holds 3 tickets, b holds 1; levels are 1 and 3.

    a's workflow 0 (4 s) has the core from 0 to 4. At 1 arrive, in this order, a's 1 (1 s), which
    gets 1 ticket, a's 2 (1 s), which gets 3, and b's 3 (1 s). So 2 goes before 1. At 9 the core is
    idle and a's 4 (1 s) arrives.
    """
    cluster = small.cluster_of(ServerType("one", 1, 0.0, 0.0, 1, 1, 100))
    own = TenantAgents(
        levels=(1.0, 3.0), mechanism="stride", quantum=1.0, placement="worst_fit", lends=True
    )
    config = AgentsConfig(
        layout="tenants",
        tenants=own,
        memory_tiers=(1.0,),
        score=ScoreWeights(finish=0, delay=1, rent=0),
    )
    objective = Objective(time_weight=1, cost_weight=0)
    layout = Layout(config, objective, cluster, see_future=False, tenants=("a", "b"))
    assert list(layout.agents) == ["tenant_a", "tenant_b"]
    templates = [chain(4.0), *[chain(1.0)] * 4]
    workload = arriving([0.0, 1.0, 1.0, 1.0, 9.0], templates, "aaaba", a=3.0, b=1.0)
    raw = RawEnv.of(Episode(workload, cluster, always_up(own, NoKeepAlive())))
    decisions = Decisions.of(layout, raw.state)
    seen: list[Observation] = []
    names: list[str] = []
    for action in (0, 0, 1, 0, 0):

        def act(name: str, observation: Observation) -> int:
            names.append(name)
            seen.append(observation)
            return action  # noqa: B023 - asked before it changes

        assert decisions.ask(raw.state, layout.kinds[0], act) == action
        raw.grant((1.0, 3.0)[action])
    assert raw.done and names == ["tenant_a", "tenant_a", "tenant_a", "tenant_b", "tenant_a"]
    started = [int(run["wf_id"]) for run in np.sort(raw.runs, order="dispatched")]
    assert (started[0], started[-1]) == (0, 4)
    assert sorted(raw.runs["end_time"].tolist()) == [4.0, 5.0, 6.0, 7.0, 10.0]
    assert started.index(2) < started.index(1)

    def context(row: int, **wanted: float) -> None:
        for feature, value in wanted.items():
            found = seen[row]["context"][TENANT_CONTEXT.index(feature)]
            assert found == pytest.approx(value, abs=1e-6), (row, feature)

    def items(row: int, **wanted: list[float]) -> None:
        for feature, values in wanted.items():
            found = seen[row]["items"][:, LEVEL_FEATURES.index(feature)]  # (2,), a level a row
            assert found == pytest.approx(values, abs=1e-6), (row, feature)

    one = np.log1p(1.0)
    for row, mask in enumerate(own["mask"] for own in seen):
        assert mask.tolist() == [1.0, 1.0], row
    context(0, right=3 / 4, share=1.0, competing=0.0, lead=0.0, workflows=0.0, load=0.0)
    context(0, available_memory=1.0, functions_waiting=one / 5, critical_path=np.log1p(4.0) / 8)
    context(0, work=np.log1p(4.0) / 8, functions=one / 3, cores=one, arrival_gap=0.0)
    items(0, tickets=[1 / 3, 1.0], position=[0.0, 1.0], share_of_own=[1.0, 1.0])
    items(0, over_mean=[0.0, 0.0], slowdown=[np.log1p(4 / 3) / 3] * 2)  # at 3/4 of the core
    # Workflow 0 runs: it holds a ticket, but nothing of it waits or is left to be placed.
    context(1, workflows=one / 3, workflows_waiting=0.0, work_left=0.0, load=one)
    context(1, available_memory=0.0, arrival_gap=np.log1p(1 / 2) / 8)
    items(1, share_of_own=[1 / 2, 3 / 4], share_of_waiting=[1.0, 1.0])
    items(1, over_mean=[0.0, np.log(3.0) / 3])
    items(1, slowdown=[np.log1p(4 / 3 * 2) / 3, np.log1p(4 / 3 * 4 / 3) / 3])
    # Workflow 1 waits beside it, with a ticket.
    context(2, workflows=np.log1p(2.0) / 3, workflows_waiting=one / 3, work_left=one / 8)
    context(2, functions_waiting=np.log1p(2.0) / 5, others_functions_waiting=0.0)
    items(2, share_of_own=[1 / 3, 3 / 5], share_of_waiting=[1 / 2, 3 / 4])
    # b sees nothing of how a splits its tickets.
    context(3, right=1 / 4, share=1 / 4, competing=one / 3, workflows=0.0)
    context(3, others_functions_waiting=np.log1p(2.0) / 5, others_work_left=np.log1p(2.0) / 8)
    items(3, share_of_own=[1.0, 1.0], slowdown=[np.log1p(4.0) / 3] * 2)
    # Work counts that starts while both wait: a second or two, until b's or the last of a's starts.
    lead = {"aab": 2 - 3 / 4 * 2, "aba": 1 - 3 / 4 * 2, "baa": 0 - 3 / 4}
    whose = "".join("aaab"[wf_id] for wf_id in started[1:4])
    context(4, lead=np.sign(lead[whose]) * np.log1p(abs(lead[whose])) / 8, workflows=0.0)


def any_row(rng: np.random.Generator) -> Act:
    return lambda name, seen: int(rng.choice(np.flatnonzero(seen["mask"])))


def played(
    env: ServerlessEnv, act: Act, **given: Any
) -> tuple[dict[str, float], dict[str, float], int]:
    """What each agent earned in an episode, its metrics, and the number of turns."""
    seen, _ = env.reset(**given)
    earned, turns, over = dict.fromkeys(env.possible_agents, 0.0), 0, False
    while not over:
        actions = {name: act(name, own) for name, own in seen.items()}
        seen, rewards, ends, cuts, infos = env.step(actions)
        for name, reward in rewards.items():
            earned[name] += reward
        turns, over = turns + 1, ends["__all__"]
        assert not cuts["__all__"]
    assert seen.keys() == rewards.keys() == infos.keys() == earned.keys()
    assert all(ends.values())
    return earned, infos[env.possible_agents[0]]["episode_metrics"], turns


@pytest.mark.parametrize("fairness", [0.0, 5.0])
def test_all_earn_the_fall_of_j_and_fairness_may_count(fairness: float) -> None:
    own = f"objective.fairness_weight={fairness}", "agents.relative_reward=false"
    env = ServerlessEnv(world(*TENANTS, *own))
    assert env.possible_agents == ["tenant_alice", "tenant_bob", "tenant_carol"]
    for seed in range(3):
        earned, metrics, _ = played(env, any_row(np.random.default_rng(seed)), seed=seed)
        raw = env.raw_env
        assert raw is not None and metrics["share_error"] == share_error(raw.state) > 0.0
        slow = metrics["slowdown"] - 1.0
        for each in earned.values():
            assert each == pytest.approx(-slow - fairness * metrics["share_error"])


def test_rewards_count_in_the_j_of_equal_tickets() -> None:
    env = ServerlessEnv(world(*TENANTS))
    first, metrics, _ = played(env, lambda name, seen: 0, seed=1)
    # Time alone counts: J is the slowdown, and the least it can be is 1.
    assert first["tenant_bob"] == pytest.approx(1 / metrics["J"] - 1)
    other, found, _ = played(env, any_row(np.random.default_rng(0)), seed=1)
    assert other["tenant_bob"] == pytest.approx((1 - found["J"]) / metrics["J"])
    assert found["J"] != metrics["J"]


ADVERSARIES: dict[str, Callable[[int, int], int]] = {
    "lowest": lambda asked, levels: 0,
    "highest": lambda asked, levels: levels - 1,
    "alternating": lambda asked, levels: (levels - 1) * (asked % 2),
}
MOST, QUANTUM = 4.0, 1.0
"""Seconds of the longest function, and of what one counts as until it has ended."""


@pytest.mark.parametrize("adversary", ADVERSARIES)
@pytest.mark.parametrize("mechanism", ["stride", "hierarchical_stride"])
def test_nobody_is_harmed_by_the_agent_of_another_tenant(mechanism: str, adversary: str) -> None:
    """Alice and bob stay within the bound of stride of what they are entitled to, at every turn.

    Between two tenants with t and u tickets stride keeps the difference of use / tickets below
    (q + m) (1 / t + 1 / u), with q the quantum charged and m the longest function; so a tenant of t
    tickets is at most (q + m) (1 + t / u) from its share, u being the fewest. Functions have the
    only node to themselves, and arrive 2.3 times as fast as it can do them.
    """
    own = "levels=[1,1000,1000000]", f"mechanism={mechanism}", f"quantum={QUANTUM}"
    config = world(*TENANTS, *(f"agents.tenants.{each}" for each in own))
    kinds = config["cluster"]["server_types"]
    kinds["small"]["server_count"], kinds["large"]["server_count"] = 0, 1
    kinds["large"]["numa_nodes_per_server"] = 1
    env = ServerlessEnv(config)
    speed, rng, count = 1_000_000, np.random.default_rng(3), 150
    known = [chain(*seconds, speed=speed, memory=8192) for seconds in ((0.5,), (1.0, 1.0), (MOST,))]
    chosen = rng.integers(3, size=count)
    mean = float(np.mean([0.5, 2.0, MOST]))
    workload = arriving(
        np.sort(rng.uniform(0.0, count * mean / 2.3, count)).tolist(),
        [known[kind] for kind in chosen],
        [("alice", "bob", "carol")[each] for each in rng.integers(3, size=count)],
        alice=3.0,
        bob=2.0,
        carol=1.0,
    )
    asked = crowded = 0

    def act(name: str, seen: Observation) -> int:
        nonlocal asked, crowded
        state = env.raw_env.state
        crowded += int(state.queue[0]["tenants_waiting"]) == 3
        for tenant, tickets in ((0, 3.0), (1, 2.0)):
            assert abs(lead_of(state, tenant)) <= (QUANTUM + MOST) * (1 + tickets / 1.0)
        if name != "tenant_carol":
            return 0
        asked += 1
        return ADVERSARIES[adversary](asked, len(seen["mask"]))

    played(env, act, options={"workload": workload})
    assert crowded > count / 2


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        (("dispatch=immediate",), "agents.tenants: dispatch=immediate has no central queue"),
        (("workload=tenants",), "agents.tenants: workload.tenants hold no tickets"),
        (("agents.tenants=null",), "tenants is needed in layout tenants"),
        (("agents.tenants.levels=[2,1]",), "agents.tenants.levels: found [2.0, 1.0], ascending"),
        (
            ("+agents.queue={functions:4,starve_threshold:1,placement:best_fit}",),
            "layout tenants has no queue",
        ),
    ],
)
def test_what_cannot_be_trained_gets_one_line(overrides: tuple[str, ...], says: str) -> None:
    refused(ServerlessEnv, world(*TENANTS, *overrides), says)
