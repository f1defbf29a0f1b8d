"""The agent `queue`: masks, order, features by hand, rewards, and that it can be `funcsched`."""

import itertools
from typing import Any

import numpy as np
import pytest
from hydra import compose, initialize_config_dir
from ray.rllib.utils.pre_checks.env import check_multiagent_environments

from agents.order.funcsched import FuncSched
from env.base.errors import InputError
from env.base.schema import validated
from env.learn import queue_world
from env.learn.agent import Observation
from env.learn.queue_agent import (
    QUEUE_ITEM,
    QueueAgent,
    QueueReference,
    QueueTurns,
)
from env.learn.queue_env import QueueBatch, QueueEnv
from env.learn.queue_places import choice_by_rule
from env.learn.queue_world import HELD_OUT_SEEDS, QueueEpisode, QueueWorkload
from env.learn.turns import QUEUE_TURN
from env.sim.check.validate import violations
from env.sim.check.validate_queued import queued_violations
from env.sim.episode.recording import episode_of
from env.sim.episode.replay import differences, replayed
from env.sim.hardware import ClusterConfig, ServerType
from env.sim.keep_alive_policy import FaasCache, Fixed, Lru
from env.sim.rules import Images, KeepAlive, Rules
from env.sim.view.raw_env import RawEnv
from env.workloads.traces.simulate import Simulation, simulate, stream
from env.workloads.traces.trace import REQUEST, FunctionProfiles, Trace
from run.command import CONF, plain
from run.settings import TrainSettings
from tests.env.sim.test_queueing import cluster, diamond, profiles
from tests.env.worlds import sampling_with_masks
from train import world_of

ARGUMENTS = {"placement": "worst_fit"}
QUEUE = ("experiment=queue_agent", "trace.source.functions=40", "trace.source.minutes=200")
SHORT = (*QUEUE, "trace.sampling.minutes=1", "cluster.server_types.worker.server_count=2")
"""100 minutes of 40 functions in one, on two servers: more than they can hold."""
BUSY = {"kind": "representative", "start": 100, "compression": 100, "ratios": [1.0]}


def agent(functions: int = 4, starve_threshold: float = 1e9) -> QueueAgent:
    return QueueAgent(functions=functions, starve_threshold=starve_threshold, **ARGUMENTS)


def crowd(seed: int, requests: int = 300) -> Trace:
    """Requests for eight functions, several times what three units of memory can hold."""
    rng = np.random.default_rng(seed)
    known = FunctionProfiles(
        names=tuple("abcdefgh"),
        execution=rng.uniform(0.2, 2.0, 8),
        cold_start=rng.uniform(0.0, 3.0, 8),
        memory=rng.integers(1, 4, 8),
        parallelism=np.ones(8, np.int64),
    )
    found = np.zeros(requests, REQUEST)
    found["time"] = np.sort(rng.uniform(0, requests / 2, requests))
    found["function"] = rng.integers(0, 8, requests)
    found["duration"] = known.execution[found["function"]] * rng.uniform(0.5, 1.5, requests)
    return Trace(known, lambda: iter([found]))


def any_allowed(rng: np.random.Generator) -> Any:
    return lambda name, seen: int(rng.choice(np.flatnonzero(seen["mask"])))


def as_the_rule(name: str, seen: Observation) -> Any:
    return choice_by_rule(agent().agent, seen)


@pytest.mark.parametrize("keep_alive", [Lru(), Fixed(keep=5.0), FaasCache()])
@pytest.mark.parametrize("threshold", [0.0, 20.0, 1e9])
@pytest.mark.parametrize("functions", [1, 3, 8])
def test_choosing_as_funcsched_gives_its_schedule(
    functions: int, threshold: float, keep_alive: KeepAlive
) -> None:
    settings = agent(functions, threshold)
    for seed in range(3):
        trace = crowd(seed)
        rule = Rules.always_up(FuncSched(starve_threshold=threshold), keep_alive)
        expected = simulate(trace, cluster(3, servers=2), rule)
        assert expected.queueing.max() > 20.0
        for chooser in (QueueTurns(settings, as_the_rule), QueueReference(settings)):
            chosen = Rules.always_up(settings, keep_alive, "worst_fit", chooser)
            found = simulate(trace, cluster(3, servers=2), chosen)
            assert found.completion.tolist() == expected.completion.tolist()
            assert found.node.tolist() == expected.node.tolist()


def test_the_same_holds_for_workflows() -> None:
    template = diamond()
    images = Images.by_name([template], {"split": 1.0, "work": 2.0, "join": 3.0})
    arrivals, templates = [0.0, 0.5, 1.0], [template] * 3

    def runs(queueing: Rules) -> np.ndarray:
        env = RawEnv(arrivals, templates, cluster(2), rules=queueing, images=images)
        assert env.done and env.waiting == ()
        return env.runs

    settings = agent()
    expected = runs(Rules.always_up(FuncSched(starve_threshold=1e9), Lru()))
    assert len(expected) == 12
    turn = QueueTurns(settings, as_the_rule)
    assert runs(Rules.always_up(settings, Lru(), "worst_fit", turn)).tolist() == expected.tolist()


@pytest.mark.parametrize("kind", [QueueTurns, QueueReference])
def test_what_the_agent_chooses_is_recorded_and_played_again(kind: type[QueueTurns]) -> None:
    template = diamond()
    images = Images.by_name([template], {"split": 1.0, "work": 2.0, "join": 3.0})
    settings = agent()
    rules = Rules.always_up(settings, Lru(), "worst_fit", kind(settings, as_the_rule))
    arrivals = [0.0, 0.5, 1.0]
    env = RawEnv(arrivals, [template] * 3, cluster(2), record=True, rules=rules, images=images)
    episode = episode_of(env, "learned", "a test")
    assert len(episode.actions) == 12
    assert episode.expected is not None
    assert differences(replayed(episode), episode.expected) == []
    assert violations(episode) == []


def test_masks_allow_what_fits_now_and_nothing_else() -> None:
    """Told from the controller's own records, at every choice of a busy trace."""
    settings = agent(functions=3)
    trace, nodes = crowd(1), cluster(3, servers=2)
    turn = QueueTurns(settings)
    simulation = Simulation(
        trace.profiles, nodes, Rules.always_up(settings, Lru(), "worst_fit", turn)
    )
    seen, rng = settings.agent.blank_observation(), np.random.default_rng(0)
    choices, held, beyond = 0, 0, 0
    for _ in simulation.play(trace):
        if not simulation.choosing:
            continue
        state = simulation.state
        turn.see(QUEUE_TURN, 0, state, seen)
        waiting = np.flatnonzero(state.waiting["count"])
        assert len(waiting) > 1
        cold = np.where(
            state.images["warm"] == 0, trace.profiles.cold_start, 0.0
        )  # image j is that of function j
        priority = (trace.profiles.execution + cold) * trace.profiles.memory
        first = sorted(waiting, key=lambda j: (priority[j], state.waiting[j]["number"]))[:3]
        available = (state.nodes["memory"] - state.nodes["allocated_memory"]).max()
        fits = [float(trace.profiles.memory[j] <= available) for j in first]
        running = float(state.images["running"].sum() > 0)
        assert seen["mask"].tolist() == [*fits, *[0.0] * (3 - len(first)), running]
        assert seen["items"][: len(first), QUEUE_ITEM.index("fits")].tolist() == fits
        assert sum(fits) > 0
        action = any_allowed(rng)("queue", seen)
        choices, held, beyond = choices + 1, held + (action == 3), beyond + (len(waiting) > 3)
        turn.act(QUEUE_TURN, 0, state, action)
        turn.finish(state)
    assert choices > 100 and held > 10 and beyond > 10


def test_any_choices_give_a_right_schedule() -> None:
    settings = agent(functions=3)
    for seed in range(3):
        decide = any_allowed(np.random.default_rng(seed))
        queueing = Rules.always_up(settings, Lru(), "worst_fit", QueueTurns(settings, decide))
        nodes = cluster(3, servers=2)
        runs = np.concatenate(list(stream(crowd(seed), nodes, queueing)))
        assert len(runs) == 300
        assert queued_violations(runs, np.array([3, 3])) == []


def test_the_example_of_the_paper_seen_by_the_agent() -> None:
    """2 units; F1 to F4 need 1, 1, 2, 2 and arrive at 0; F4 alone is warm: P = 4, 4, 12, 2.

    It takes F4, which ends at 1; then F3, which ends at 1 + 5.75 + 0.25 = 7; F1 and F2 end at 11.
    """
    known = profiles((0.5, 3.5, 1), (0.5, 3.5, 1), (0.25, 5.75, 2), (1.0, 0.0, 2))
    server = ClusterConfig(1_000_000, 1e9, 1e9, 1e9, (ServerType("s", 1, 0.0, 0.0, 1, 4, 2),))
    arrivals = np.array([(0.0, 0, 0.5), (0.0, 1, 0.5), (0.0, 2, 0.25), (0.0, 3, 1.0)], REQUEST)
    seen: list[Observation] = []
    actions = itertools.chain([0, 2], itertools.repeat(0))

    def decide(name: str, now: Observation) -> int:
        seen.append({part: array.copy() for part, array in now.items()})
        return next(actions)

    settings = agent()
    queueing = Rules.always_up(settings, Lru(), "worst_fit", QueueTurns(settings, decide))
    trace = Trace(known, lambda: iter([arrivals]))
    found = simulate(trace, server, queueing, warm=[(0, 3)])
    assert found.completion.tolist() == pytest.approx([11.0, 11.0, 7.0, 1.0])
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


def workload(seed: int) -> QueueWorkload:
    trace = crowd(seed)
    (requests,) = trace.requests()
    nothing = Trace(trace.profiles, lambda: iter(()))
    return QueueWorkload(trace.profiles, requests, nothing, Lru())


def test_rewards_add_up_to_the_mean_completion_time() -> None:
    settings, nodes = agent(), cluster(3, servers=2)
    for seed in range(3):
        env = QueueEnv(short_world())
        episode = QueueEpisode(workload(seed), nodes, settings)
        observations, _ = env.reset(options={"episode": episode})
        decide, actions, rewards = any_allowed(np.random.default_rng(seed)), [], []
        over = False
        while not over:
            actions.append(decide("queue", observations["queue"]))
            observations, reward, terminateds, _, infos = env.step({"queue": actions[-1]})
            rewards.append(reward["queue"])
            over = terminateds["__all__"]
        metrics = infos["queue"]["episode_metrics"]
        again = iter(actions)
        turn = QueueTurns(settings, lambda *seen, again=again: next(again))
        queueing = Rules.always_up(settings, Lru(), "worst_fit", turn)
        own = simulate(crowd(seed), nodes, queueing).completion.mean()
        rule = Rules.always_up(FuncSched(starve_threshold=1e9), Lru())
        reference = simulate(crowd(seed), nodes, rule).completion.mean()
        assert metrics["completion"] == pytest.approx(own)
        assert metrics["J"] == pytest.approx(own / reference)
        assert sum(rewards) == pytest.approx(-own / reference)
        assert max(rewards) <= 1e-12
        assert metrics["decisions"] == len(actions)


def test_deciding_as_the_reference_never_leads_nor_lags() -> None:
    episode = QueueEpisode(workload(0), cluster(3, servers=2), agent())
    seen = agent().agent.blank_observation()
    left = []
    while not episode.done:
        episode.see(QUEUE_TURN, 0, seen)
        left.append(seen["critic"][0])
        assert seen["critic"][1] == pytest.approx(0.0, abs=1e-6)
        assert seen["critic"][3] == pytest.approx(0.0, abs=1e-6)
        episode.act(QUEUE_TURN, 0, as_the_rule("queue", seen))
        episode.step()
    assert left == sorted(left, reverse=True)
    assert episode.metrics["J"] == pytest.approx(1.0)


def composed(*overrides: str) -> dict[str, Any]:
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return plain(compose("train", overrides=list(overrides)))


def short_world(*overrides: str, **sample: Any) -> dict[str, Any]:
    """What `QueueEnv` is built from: the experiment, much smaller."""
    config = composed(*SHORT, *overrides)
    config["dispatch"]["samples"]["representative"] = {**BUSY, **sample}
    return world_of(validated(TrainSettings, config, "train"))


def test_rllib_accepts_it_and_the_same_seed_repeats() -> None:
    env = QueueEnv(short_world())
    check_multiagent_environments(sampling_with_masks(env))
    first, again = (env.reset(seed=3)[0]["queue"] for _ in range(2))
    other = env.reset(seed=4)[0]["queue"]
    assert env.get_observation_space("queue").contains(first)
    assert first["items"].shape == (17, len(QUEUE_ITEM))
    assert all(np.array_equal(first[part], again[part]) for part in first)
    assert not np.array_equal(first["items"], other["items"])


def test_a_batch_goes_on_where_it_was() -> None:
    world = QueueEnv(short_world()).world
    batch, later = (QueueBatch(world, 2, seed=1, worker=0) for _ in range(2))
    (turn,) = batch.turns
    seen = [
        {
            part: np.zeros((2, *array.shape), np.float32)
            for part, array in world.agent.agent.blank_observation().items()
        }
        for _ in range(2)
    ]
    rng = np.random.default_rng(0)

    def step(one: QueueBatch, out: Observation, actions: np.ndarray | None = None) -> Any:
        one.observe(turn, out)
        if actions is None:
            actions = np.array([rng.choice(np.flatnonzero(mask)) for mask in out["mask"]])
        one.act(turn, actions)
        return actions, one.step()

    while not batch.ended:
        step(batch, seen[0])
    assert batch.ended[0].earned == -batch.ended[0].metrics["J"]
    for _ in range(20):
        step(batch, seen[0])
    later.set_state(batch.get_state())
    for _ in range(20):
        actions, (rewards, done) = step(batch, seen[0])
        _, (rewards_again, done_again) = step(later, seen[1], actions)
        assert all(np.array_equal(seen[0][part], seen[1][part]) for part in seen[0])
        assert rewards.tolist() == rewards_again.tolist()
        assert done.tolist() == done_again.tolist()


def test_a_window_beyond_the_trace_is_named_by_its_sample() -> None:
    """When the world is built; windows that end with the trace are all in it."""
    QueueEnv(short_world("trace.source.minutes=250", start=250))
    with pytest.raises(InputError, match=r"^dispatch\.samples\.representative: with start "):
        QueueEnv(short_world("trace.source.minutes=249", start=250))


def test_training_never_plays_what_is_held_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows end before the evaluated one begins, and seeds are none of an evaluation."""
    env = QueueEnv(short_world("trace.source.minutes=400", start=250))
    drawn = []
    real = queue_world.sample_recording

    def noted(recording: Any, config: Any) -> Any:
        drawn.append(config)
        return real(recording, config)

    monkeypatch.setattr(queue_world, "sample_recording", noted)
    for _ in range(5):
        env.reset()
    assert len({config.sampling.start for config in drawn}) > 1
    for config in drawn:
        assert 0 <= config.sampling.start <= config.sampling.end <= 250
        assert config.seed >= HELD_OUT_SEEDS


@pytest.mark.parametrize(
    ("overrides", "sample", "says"),
    [
        ((), {"start": 99}, "samples.representative: start is 99 min"),
        (("dispatch.queue_agent.functions=0",), {}, "queue_agent.functions"),
        (("dispatch.queue_agent.placement=best",), {}, "queue_agent.placement"),
        (("algo.warm_start=sjf",), {}, "can be taught by funcsched alone, not by 'sjf'"),
        (("dispatch.keep_alives=[lur]",), {}, "did you mean 'lru'"),
        ((), {"ratios": [1e-9]}, "none has a choice"),
    ],
)
def test_what_cannot_be_trained_gets_one_line(
    overrides: tuple[str, ...], sample: dict[str, Any], says: str
) -> None:
    with pytest.raises(InputError) as error:
        QueueEnv(short_world(*overrides, **sample)).reset()
    assert says in str(error.value) and "\n" not in str(error.value)


def test_a_function_that_may_be_too_large_for_every_node_is_refused_before_training() -> None:
    """Episodes have a seed each: what counts is the most memory that any of them may draw."""
    node = "cluster.server_types.worker.memory_mb_per_numa_node"
    least = ("trace.annotation.max_memory=5000", "trace.annotation.memory_factor=[1,1]")
    QueueEnv(short_world(f"{node}=5000", *least))
    with pytest.raises(InputError) as error:
        QueueEnv(short_world(f"{node}=4999", *least))
    said = str(error.value)
    assert said.startswith("trace.annotation: with memory_factor 1 and max_memory 5000 function '")
    assert said.endswith("needs 5000 MB, the largest NUMA node has 4999")


@pytest.mark.parametrize("override", ["dispatch=queued lease=always", "trace=azure_like"])
def test_a_queue_and_a_trace_belong_together(override: str) -> None:
    with pytest.raises(InputError, match="both dispatch=queued lease=always and a") as error:
        validated(TrainSettings, composed(*override.split()), "train")
    assert "\n" not in str(error.value)
