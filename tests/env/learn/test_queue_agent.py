"""The agent `queue`: masks, order, features by hand, rewards, and that it can be `funcsched`."""

from typing import Any

import numpy as np
import pytest

from agents.order.funcsched import FuncSched
from agents.scheduler import Decision
from env.learn.decisions import Decisions
from env.learn.kind import Observation
from env.learn.layouts import AgentsConfig, Layout
from env.learn.multi_agent import ServerlessEnv
from env.learn.queue_agent import QUEUE_ITEM, QueueAgent
from env.score.greedy_score import ScoreWeights
from env.score.reward import Objective, ideal
from env.sim.declared.episode import Episode, EpisodeWorkload
from env.sim.declared.hardware import ClusterConfig, ServerType
from env.sim.declared.images import Images
from env.sim.declared.keep_alive_policy import Lru
from env.sim.declared.rules import Rules
from env.sim.view.raw_env import RawEnv
from env.workloads.traces import trace_samples
from env.workloads.traces.trace import FunctionProfiles
from env.workloads.traces.trace_samples import TRAINING_SEEDS
from tests.env.learn.test_actions import refused
from tests.env.learn.test_tenant_agents import any_row, played
from tests.env.sim.test_queueing import profiles
from tests.env.small import always_up
from tests.env.worlds import TRACE, world

UNIT = 5000
"""MB; a node of the world of `TRACE` has three."""
LEASES: dict[str, dict[str, Any]] = {
    "free": {"lease": {"kind": "always", "charged": False}},
    "paid": {"lease": {"kind": "always", "step": 60.0}, "keep_alive": {"policy": "faascache"}},
    "hourly": {"lease": {"kind": "hourly", "step": 60.0}},
    "patient": {
        "lease": {"kind": "hourly", "step": 60.0},
        "dispatch": {"kind": "queued", "patience": 30.0},
    },
}


def crowd(seed: int, requests: int = 300) -> EpisodeWorkload:
    """Requests for eight functions, several times what two nodes of three units can hold."""
    rng = np.random.default_rng(seed)
    known = FunctionProfiles(
        names=tuple("abcdefgh"),
        execution=rng.uniform(0.2, 2.0, 8),
        cold_start=rng.uniform(0.0, 3.0, 8),
        memory=UNIT * rng.integers(1, 4, 8),
    )
    times = np.sort(rng.uniform(0, requests / 2, requests))
    function = rng.integers(0, 8, requests)
    return workload_of(known, times, function, rng.uniform(0.5, 1.5, requests))


def workload_of(
    known: FunctionProfiles, times: np.ndarray, function: np.ndarray, drawn: np.ndarray
) -> EpisodeWorkload:
    """Requests that take `drawn` times the mean of their function."""
    templates = known.templates(1_000_000)
    seconds = known.execution[function] * drawn
    return EpisodeWorkload(
        arrival_times=tuple(times.tolist()),
        templates=tuple(templates[each] for each in function),
        work=tuple(known.operations(function, seconds, 1_000_000).tolist()),
        images=Images.by_name(templates, known.cold_start),
    )


def as_funcsched(name: str, seen: Observation) -> int:
    """The first in its order, or none until that fits."""
    return 0 if seen["mask"][0] else len(seen["mask"]) - 1


@pytest.mark.parametrize("lease", LEASES)
@pytest.mark.parametrize(("functions", "threshold"), [(1, 1e9), (3, 20.0), (8, 0.0)])
def test_choosing_as_funcsched_gives_its_schedule(
    functions: int, threshold: float, lease: str
) -> None:
    own = f"agents.queue.functions={functions}", f"agents.queue.starve_threshold={threshold}"
    env = ServerlessEnv(world(*TRACE, *own) | LEASES[lease])
    rule = env.world.rules
    order = FuncSched(starve_threshold=threshold)
    for seed in range(3):
        workload = crowd(seed)
        rules = Rules(order, "worst_fit", rule.patience, rule.lease, rule.keep_alive)
        expected = RawEnv.of(Episode(workload, env.world.cluster, rules))
        assert expected.runs["queueing_time"].max() > 20.0
        _, _, turns = played(env, as_funcsched, options={"workload": workload})
        assert turns > 30
        fields = ["wf_id", "node", "start_time", "completion_time"]
        by_agent, by_rule = (each.state.functions[fields] for each in (env.raw_env, expected))
        assert by_agent.tolist() == by_rule.tolist()


def test_masks_allow_what_fits_now_and_nothing_else() -> None:
    """Told from the controller's own records, at every choice of a busy episode."""
    env = ServerlessEnv(world(*TRACE, "agents.queue.functions=3"))
    workload = crowd(1)
    seen, _ = env.reset(options={"workload": workload})
    act = any_row(np.random.default_rng(0))
    choices = held = beyond = 0
    raw = env.raw_env
    while not raw.done:
        state, own = raw.state, seen["queue"]
        waiting = np.flatnonzero(state.waiting["count"])
        assert len(waiting) > 1
        images = state.images[state.waiting["image"]]
        cold = np.where(images["warm"] == 0, images["cold_start"], 0.0)
        priority = (state.waiting["execution"] + cold) * images["memory"]
        first = sorted(waiting, key=lambda j: (priority[j], state.waiting[j]["number"]))[:3]
        available = (state.nodes["memory"] - state.nodes["allocated_memory"]).max()
        fits = [float(images[j]["memory"] <= available) for j in first]
        running = float(state.images["running"].sum() > 0)
        assert own["mask"].tolist() == [*fits, *[0.0] * (3 - len(first)), running]
        assert own["items"][: len(first), QUEUE_ITEM.index("fits")].tolist() == fits
        assert sum(fits) > 0
        action = act("queue", own)
        choices, held, beyond = choices + 1, held + (action == 3), beyond + (len(waiting) > 3)
        seen, *_ = env.step({"queue": action})
    assert choices > 100 and held > 10 and beyond > 10


def test_the_example_of_the_paper_seen_by_the_agent() -> None:
    """2 units; F4 has run once and is warm when F1 to F4, of 1, 1, 2, 2 units, arrive at 2 s.

    P is 4, 4, 12 and 2. It takes F4, which ends at 3; then F3, at 3 + 5.75 + 0.25 = 9; F1 and F2
    end at 13.
    """
    known = profiles((0.5, 3.5, 1), (0.5, 3.5, 1), (0.25, 5.75, 2), (1.0, 0.0, 2))
    cluster = ClusterConfig(1_000_000, 1e9, 1e9, 1e9, (ServerType("s", 1, 0.1, 0.0, 1, 4, 2),))
    workload = workload_of(
        known, np.array([0.0, 2.0, 2.0, 2.0, 2.0]), np.array([3, 0, 1, 2, 3]), np.ones(5)
    )
    config = AgentsConfig(
        layout="queue",
        queue=QueueAgent(functions=4, starve_threshold=1e9, placement="worst_fit"),
        memory_tiers=(1.0,),
        score=ScoreWeights(finish=0, delay=1, rent=0),
    )
    objective = Objective(time_weight=0, cost_weight=0, completion_weight=1)
    layout = Layout(config, objective, cluster, see_future=False)
    raw = RawEnv.of(Episode(workload, cluster, always_up(config.queue, Lru())))
    decisions = Decisions.of(layout, raw.state)
    seen: list[Observation] = []
    actions = [0, 2]

    def act(name: str, observation: Observation) -> int:
        seen.append(observation)
        return actions.pop(0) if actions else 0

    while not raw.done:
        row = decisions.ask(raw.state, layout.kinds[0], act)
        asked = Decision(raw, objective)
        asked.carry_out(raw, min(row, len(asked.rows) - 1))
    ends = {int(run["wf_id"]): float(run["end_time"]) for run in raw.runs}
    assert ends == pytest.approx({0: 1.0, 1: 13.0, 2: 13.0, 3: 9.0, 4: 3.0})
    start, later = seen[:2]

    def column(observation: Observation, name: str) -> list[float]:
        return observation["items"][:4, QUEUE_ITEM.index(name)].tolist()

    assert start["mask"].tolist() == [1, 1, 1, 1, 0]  # nothing runs: no use in waiting
    assert column(start, "priority") == pytest.approx(np.log1p([2, 4, 4, 12]) / 10)
    assert column(start, "starts_warm") == [1, 0, 0, 0]
    assert column(start, "evicts") == [0, 1, 1, 1]  # F4's container fills the memory
    assert column(start, "memory") == [1, 0.5, 0.5, 1]
    assert column(later, "wait") == pytest.approx([np.log1p(1.0) / 8] * 3 + [0])
    assert later["mask"].tolist() == [1, 1, 1, 0, 0]
    # After that F1 and F2 fit together: one is chosen beside the other, then there is no choice.
    assert len(seen) == 3


@pytest.mark.parametrize("lease", LEASES)
def test_rewards_add_up_to_j_in_units_of_funcsched(lease: str) -> None:
    env = ServerlessEnv(world(*TRACE, "objective=balanced") | LEASES[lease])
    for seed in range(2):
        given = {"options": {"workload": crowd(seed)}}
        reference, by_rule, _ = played(env, as_funcsched, **given)
        least = float(ideal(env._batch._envs.objective[0]))
        assert reference["queue"] == pytest.approx(least - 1.0)
        earned, metrics, _ = played(env, any_row(np.random.default_rng(seed)), **given)
        assert earned["queue"] == pytest.approx(least - metrics["J"] / by_rule["J"])
        assert metrics["J"] != by_rule["J"]


def test_training_never_plays_what_is_held_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows end before the evaluated one begins, and seeds are none of an evaluation."""
    config = world(*TRACE, "workload.source.minutes=400", "workload.sampling.start=250")
    config["variation"]["arrival_rate"] = [0.5, 1.5]
    env = ServerlessEnv(config)
    drawn = []
    real = trace_samples.sample_recording

    def noted(recording: Any, own: Any) -> Any:
        drawn.append(own)
        return real(recording, own)

    monkeypatch.setattr(trace_samples, "sample_recording", noted)
    for _ in range(8):
        env.reset()
    assert len({own.sampling.start for own in drawn}) > 1
    ratios = [own.sampling.ratio for own in drawn]
    assert 0.5 <= min(ratios) < max(ratios) == 1.0
    for own in drawn:
        assert 0 <= own.sampling.start <= own.sampling.end <= 250
        assert own.seed >= TRAINING_SEEDS


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        (("workload.sampling.start=99",), "workload.sampling: start is 99 min"),
        (
            ("agents=placer", "agents.queue={functions:4,starve_threshold:1,placement:best_fit}"),
            "queue.placement is needed in layout queue",
        ),
        (("dispatch=immediate",), "agents.queue: dispatch=immediate has no central queue"),
        (("workload.sampling.ratio=1e-9",), "nothing arrives at ratio"),
        (
            (
                "workload.source.functions=1",
                "workload.source.daily_invocations={median:900,sigma:0}",
            ),
            "of 100 episodes none has a choice",
        ),
    ],
)
def test_what_cannot_be_trained_gets_one_line(overrides: tuple[str, ...], says: str) -> None:
    refused(lambda config: ServerlessEnv(config).reset(), world(*TRACE, *overrides), says)


def test_a_function_that_may_be_too_large_for_every_node_is_refused_before_training() -> None:
    """Episodes have a seed each: what counts is the most memory that any of them may draw."""
    node = "cluster.server_types.worker.memory_mb_per_numa_node"
    least = ("workload.annotation.max_memory=5000", "workload.annotation.memory_factor=[1,1]")
    ServerlessEnv(world(*TRACE, f"{node}=5000", *least))
    says = "needs 5000 MB, the largest NUMA node has 4999"
    refused(ServerlessEnv, world(*TRACE, f"{node}=4999", *least), says)
