"""Agents of every layout between trainer and evaluation: cloned, saved, played, refused."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from agents.learned.algorithms import policy_spaces
from agents.learned.cloning import demonstrate
from agents.learned.learned_scheduler import LearnedScheduler
from agents.learned.network import SetPolicyNetwork
from agents.learned.policy_file import features_of, save_policy
from agents.learned.set_policy import policy_sizes
from agents.scheduler import play
from env.base.errors import InputError
from env.learn.multi_agent import ServerlessEnv
from env.learn.world import World
from env.sim.check.validate import violations
from env.sim.declared.episode import Episode
from env.sim.episode.recording import episode_of
from env.sim.episode.replay import played
from env.sim.view.raw_env import RawEnv
from tests.documents import refused_in_a_line
from tests.env.worlds import LAYOUTS, SECOND_TYPE, TENANTS, TINY, TRACE, with_queue, world

PLACED_AT_ONCE = ("dispatch=immediate", "agents=placer")
SEED = np.random.SeedSequence(0)


def save_untrained(
    folder: Path,
    *overrides: str,
    base: Sequence[str] = TRACE,
    shared: bool = True,
    network: str = "pooling",
) -> None:
    """A policy with random weights that prefers no row by much, as a run would leave it.

    Args:
        folder: to be written.
        overrides: of the world.
        base: what they override; a trace.
        shared: one policy for all agents of a kind.
        network: pooling or attention.
    """
    told = world(*base, *overrides)
    environment = ServerlessEnv(told)
    torch.manual_seed(0)
    model = {"hidden": (8, 8), "network": network, "message_rounds": 2}
    networks = {
        name: SetPolicyNetwork(policy_sizes(*pair, model))
        for name, pair in policy_spaces(environment, shared).items()
    }
    save_policy(
        folder,
        networks=networks,
        features=features_of(environment.members),
        layout=environment.layout.config.layout,
        memory_tiers=environment.layout.tiers,
        objective={},
        config={"agents": told["agents"]},
    )


def scheduler_of(folder: Path, environment: ServerlessEnv, queued: bool = True) -> LearnedScheduler:
    cluster, objective = environment.world.cluster, environment.objective
    tenants = environment.world.tenants
    return LearnedScheduler(folder, cluster, objective, None, queued, tenants)


WORLDS = {
    "trace": TRACE,
    "hourly": (*TRACE, "lease=hourly"),
    "workflows": ("dispatch=queued", "lease=always", *TINY),
}


@pytest.mark.parametrize("layout", [*LAYOUTS, "queue", "tenants"])
@pytest.mark.parametrize("name", WORLDS)
def test_it_plays_as_its_agents_do_in_training(name: str, layout: str, tmp_path: Path) -> None:
    """The likeliest actions, step by step in the environment, and by the scheduler's protocol."""
    overrides, shared = (*WORLDS[name], *with_queue(layout)), True
    if layout == "tenants":
        overrides, shared = TENANTS, name == "trace"
    save_untrained(tmp_path, base=overrides, shared=shared)
    environment = ServerlessEnv(world(*overrides))
    scheduler = scheduler_of(tmp_path, environment)
    seen, _ = environment.reset(seed=1)
    asked, raw = set(), environment.raw_env
    assert raw is not None
    while not raw.done:
        asked |= set(seen)
        actions = {agent: scheduler._policy.act(agent, own) for agent, own in seen.items()}
        seen, *_ = environment.step(actions)
    assert asked == set(environment.possible_agents)

    rules = environment.world.rules
    assert (scheduler.order, scheduler.fit) == (rules.order, rules.placement)
    workload, cluster = environment.world.training_episode(1, 0, 0, environment._batch._drawn[0][2])
    env = RawEnv.of(Episode(workload, cluster, rules))
    play(env, scheduler, environment.objective, SEED)
    fields = ["wf_id", "node", "start_time", "completion_time"]
    assert env.state.functions[fields].tolist() == raw.state.functions[fields].tolist()
    assert env.total_rent == raw.total_rent


@pytest.mark.parametrize("layout", LAYOUTS)
def test_those_who_place_need_networks_of_their_own(layout: str, tmp_path: Path) -> None:
    save_untrained(tmp_path, *with_queue(layout))
    environment = ServerlessEnv(world(*TRACE, *with_queue(layout), SECOND_TYPE))
    scheduler_of(tmp_path, environment)
    described = json.loads((tmp_path / "policy.json").read_text())
    described["networks"] = {"queue": described["networks"]["queue"]}
    (tmp_path / "policy.json").write_text(json.dumps(described))
    missing = r"networks: .* of the agent (placer|memory|server)_?.* found none"
    with pytest.raises(InputError, match=missing):
        scheduler_of(tmp_path, environment)


def test_what_does_not_fit_is_refused_in_one_line(tmp_path: Path) -> None:
    environment = ServerlessEnv(world(*TRACE, *PLACED_AT_ONCE))
    save_untrained(tmp_path / "queue")
    save_untrained(tmp_path / "placer", *PLACED_AT_ONCE)
    with_agent = world(*TRACE, *with_queue("placer"))["agents"]
    without = world(*TRACE, *PLACED_AT_ONCE)["agents"]

    def made(name: str, agents: dict[str, Any] | None, queued: bool) -> None:
        cluster, objective = environment.world.cluster, environment.objective
        LearnedScheduler(tmp_path / name, cluster, objective, agents, queued)

    made("placer", None, True)
    for given, says in (
        (("queue", None, False), "has an agent `queue`, it needs dispatch=queued"),
        (("queue", without, True), "trained with agents.layout queue"),
        (("placer", with_agent, True), "networks: choices and bids of the agent queue are"),
    ):
        with refused_in_a_line("", says):
            made(*given)


def recorded_of(teacher: str, layout: str, decisions: int = 200) -> dict[str, Any]:
    return demonstrate(teacher, decisions, world(*TRACE, *with_queue(layout)), every=5)


@pytest.mark.parametrize("layout", [*LAYOUTS, "queue"])
def test_funcsched_is_recorded_as_the_agent_sees_it(layout: str) -> None:
    recorded = recorded_of("funcsched", layout)
    others = {"placer": ["placer"], "hierarchical": ["memory", "placer", "server"]}
    others |= {"server_types": ["server"], "queue": []}
    assert sorted(recorded) == sorted(["queue", *others[layout]])
    obs, actions = recorded["queue"]["obs"], recorded["queue"]["actions"]
    assert set(actions.tolist()) == {0, 4}  # the first, or none until it fits
    for row, action in enumerate(actions):
        assert obs["mask"][row, action] == 1
        assert action == (0 if obs["mask"][row, 0] else 4)
    for policy in others[layout]:
        assert len(recorded[policy]["actions"]) > 10


@pytest.mark.parametrize(
    ("teacher", "overrides", "says"),
    [
        ("sjf", (), "the agent `queue` repeats the order funcsched alone"),
        ("sjf", ("agents=placer",), "without it functions go first come, first served"),
    ],
)
def test_teachers_of_other_orders_are_refused(
    teacher: str, overrides: tuple[str, ...], says: str
) -> None:
    with refused_in_a_line("", says):
        demonstrate(teacher, 1, world(*TRACE, *overrides))


@pytest.mark.parametrize("network", ["pooling", "attention"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_policy_of_the_tiny_cluster_schedules_any_other(
    layout: str, network: str, tmp_path: Path
) -> None:
    save_untrained(tmp_path, f"agents={layout}", base=TINY, network=network)
    trained = World(world(*TINY, f"agents={layout}")).cluster
    for name in ("hetero_numa", "homogeneous", "large"):
        given = World(world(*TINY, f"cluster={name}", f"agents={layout}"))
        assert given.cluster.server_types != trained.server_types
        workload = given.generator.evaluation_episode(0)
        env = RawEnv(workload.arrival_times, workload.templates, given.cluster, record=True)
        scheduler = LearnedScheduler(
            tmp_path, given.cluster, given.objective, agents=None, queued=False
        )
        play(env, scheduler, given.objective, np.random.SeedSequence(0))
        assert env.decisions == sum(each.function_count for each in workload.templates)
        assert violations(episode_of(env, name, "a test")) == []


def test_a_recorded_episode_has_what_was_granted_and_replays() -> None:
    environment = ServerlessEnv(world(*TENANTS))
    workload, cluster = environment.world.training_episode(0, 0, 0, 0)
    env = RawEnv.of(Episode(workload, cluster, environment.world.rules), record=True)
    rng, levels = np.random.default_rng(0), environment.world.agents.tenants.levels
    granted = {}
    while env.newcomer is not None:
        granted[env.newcomer] = float(rng.choice(levels))
        env.grant(granted[env.newcomer])
    recorded = episode_of(env, "granted", "")
    assert {own.workflow_id: own.tickets for own in recorded.workflows} == granted
    assert violations(recorded) == []
    again = played(recorded)
    assert again.runs.tolist() == env.runs.tolist()


def test_without_tickets_agents_of_tenants_are_refused(tmp_path: Path) -> None:
    save_untrained(tmp_path, base=TENANTS)
    environment = ServerlessEnv(world(*TENANTS))
    told = environment.world.cluster, environment.objective
    for queued, tenants in ((False, ("alice", "bob", "carol")), (True, ())):
        says = "has agents of tenants, it needs dispatch=queued and workload.tenants with tickets"
        with refused_in_a_line("", says):
            LearnedScheduler(tmp_path, *told, None, queued, tenants)
    with pytest.raises(InputError, match="no teacher grants tickets"):
        demonstrate("fcfs", 1, world(*TENANTS))
