"""Every key of every group, typed anew, changes what is run or is refused."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hydra import compose, initialize_config_dir
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig, OmegaConf, open_dict

import train
from env.base.errors import InputError
from env.base.schema import validated
from env.learn.multi_agent import ServerlessEnv
from evaluation.evaluation_run import Evaluation
from run.command import CONF, plain
from run.effect import check_effect
from run.settings import TrainSettings
from run.sweep import scenarios_of
from tests.commands import InProcess
from tests.env.worlds import SECOND_TYPE, TENANTS, gym_mask, with_queue
from tests.env.worlds import TRACE as SHORT_TRACE

FILE = Path(__file__).parents[1] / "env" / "workloads" / "fixtures" / "photo.json"
SERVER = (
    "cluster=funcsched",
    "cluster.server_types.worker={server_count:1,memory_mb_per_numa_node:12288}",
)
SMALLER = "cluster.server_types.worker.memory_mb_per_numa_node=2560"
TRACE = (
    "workload=azure_like",
    "workload/annotation=reserved",
    *SERVER,
    "workload.source.functions=40",
    "workload.source.minutes=300",
    "workload.sampling.start=100",
    "workload.sampling.minutes=1",
    "workload.sampling.compression=100",
)
FREE = ("dispatch=queued", "lease=always")
COLD = "workload.container_cold_start=2.5"
WARM = ("keep_alive=fixed", "workload.container_cold_start=30.0")
TINY = ("cluster=tiny", "workflow=tiny", "workload=tiny")
SCORE = (
    "agents.score={economy:1.0,demand:1.0,own_use:0.5,"
    "arrival_use:10.0,arrival_horizon:10.0,known_use:1000.0}"
)
BRIEF = ("episodes=2", "record=0")
# Worlds of the same kind: where a limit is never met in one of them, it is in another.
WORLDS = {
    "evaluate": (
        (*TINY, "episodes=2", "baselines=[random,greedy_objective]"),
        (
            "cluster=tiny",
            "workflow=files",
            f"workflow.path={FILE}",
            "episodes=1",
            "baselines=[random]",
        ),
    ),
    "evaluate trace": (
        (
            *TRACE,
            "keep_alive=fixed",
            "lease.step=60",
            "baselines=[random,greedy_objective]",
            *BRIEF,
        ),
        (*TRACE, *FREE, "keep_alive=fixed", "baselines=[fcfs]", *BRIEF, "keep_alive.keep=5.0"),
    ),
    "evaluate queue": (
        (*TINY, *FREE, COLD, "baselines=[fcfs,sjf+random]", "episodes=4", "record=0"),
        (*TINY, *FREE, COLD, "baselines=[fcfs]", "episodes=4", "record=0", *SERVER, SMALLER),
    ),
    "evaluate waiting": (
        (*TINY, "dispatch=queued", *WARM, "baselines=[sjf+greedy_objective]", *BRIEF),
        (*TINY, *WARM, "lease=always", "lease.charged=true", "baselines=[random]", *BRIEF),
    ),
    "evaluate tickets": (
        (
            *("cluster=tiny", "workflow=tiny", "workload=tickets", "dispatch=queued", *BRIEF),
            *("workload.arrivals.workflows=[12,14]", "baselines=[fcfs,stride_workflows]"),
            "+workload.tenants.bob.active=[0.0,100.0]",
        ),
        (
            *("cluster=tiny", "workflow=tiny", "workload=tickets", "cluster.cpu_share=tickets"),
            *("baselines=[first_fit]", "episodes=2", "record=0"),
        ),
    ),
    "evaluate sweep": (
        (
            *(*TINY, *WARM, "baselines=[greedy_objective]", "episodes=3"),
            "sweep={dispatch: [immediate,queued], lease: [hourly,always]}",
        ),
    ),
    "train": (
        TINY,
        (*TINY, "agents=placer", "variation=wide", "variation.unvaried=0.5", SCORE),
    ),
    "train tenants": (
        (
            *(*TENANTS, "workload.arrivals.workflows=[30,40]", "keep_alive=fixed"),
            *("lease.charged=true", "cluster.server_types.large.server_count=1"),
        ),
        (
            *TENANTS,
            "lease=hourly",
            "cluster.server_types.large.server_count=1",
            "variation=wide",
            "variation.unvaried=0.5",
            COLD,
        ),
    ),
    "train trace": (
        SHORT_TRACE,
        (
            *SHORT_TRACE[:-2],
            *with_queue("placer"),
            *("lease=hourly", "objective=balanced", SECOND_TYPE, SCORE, "variation.unvaried=0.5"),
            *("workload.sampling.ratio=0.05", "cluster.server_types.small.hourly_rate=1.0"),
            "agents.score.demand=50.0",  # so much that small servers are not worth filling
        ),
    ),
}
# What these say is how to play or to learn, how long and what to show: their own tests see to it.
ELSEWHERE = ("algo", "ray", "budget", "checkpoint", "name", "resume", "policy", "workers")
ELSEWHERE += ("statistics", "report", "tune", "experiment", "baselines", "optimum", "seed")
ELSEWHERE += ("kind", "layout", "share_type_policy", "sweep", "late", "slo", "keep", "minimise")
ELSEWHERE += ("held_out",)
# Of files, and of what they lack: these worlds have one file, and it is complete.
OF_FILES = ("max_bytes", "without_runtimes", "missing_runtime", "missing_memory")
OF_FILES += ("missing_parallelism", "min_memory", "max_memory")


@pytest.fixture
def hydra() -> Iterator[None]:
    """Configurations can be composed, as within a command."""
    with initialize_config_dir(str(CONF), version_base="1.3"):
        yield


def composed(command: str, overrides: tuple[str, ...]) -> DictConfig:
    """As a command composes them; it is the one that Hydra knows from here on."""
    config = compose(command, overrides=list(overrides), return_hydra_config=True)
    HydraConfig.instance().set_config(config)
    with open_dict(config):
        del config["hydra"]
    return config


def evaluated(config: DictConfig) -> str:
    """What an evaluation plays."""
    rows = []
    for played in Evaluation(config).play(()):
        for row, recorded in played:
            values = {**vars(row), "metrics": {**row.metrics, "decisions_per_s": 0.0}}
            rows.append(repr((values, recorded)))
    return "\n".join(sorted(rows))


def trained(config: DictConfig) -> str:
    """What agents meet: some episodes, in which they choose at random."""
    train.check(config)
    settings = validated(TrainSettings, plain(config), "train")
    env = ServerlessEnv(train.world_of(settings))
    rng = np.random.default_rng(0)
    found: list[str] = []
    for _ in range(4):
        seen, _ = env.reset()
        for _ in range(60):
            actions = {}
            for name, own in seen.items():
                member = env.members[name]
                space = env.action_spaces[name]
                space.seed(int(rng.integers(2**31)))
                actions[name] = space.sample(mask=gym_mask(member, own["mask"]))
            seen, rewards, ends, _, infos = env.step(actions)
            found.append(repr((described(seen), rewards, described(infos))))
            if ends["__all__"]:
                break
    env.close()
    return "\n".join(found)


def described(found: Any) -> Any:
    if isinstance(found, Mapping):
        return {key: described(value) for key, value in found.items()}
    return found.tobytes() if isinstance(found, np.ndarray) else found


def leaves(tree: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in tree.items():
        if isinstance(value, Mapping) and value:
            yield from leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def others(value: Any) -> list[Any]:
    """Values like this one, some of which may be allowed."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value - 1, value * 2, value * 10, max(1, value // 10)]
    if isinstance(value, float):
        return [value * 2, value / 2, value + 0.5, value * 100, value / 100]
    if isinstance(value, list) and value:
        changed = [[*value[:-1], other] for other in others(value[-1])]
        changed += [[other, *value[1:]] for other in others(value[0])]
        return [*changed, value[:-1]]
    if value is None:
        return [1, 0.5, [1, 2], "x"]
    if isinstance(value, str):
        return ["x", "first_fit", "draw"]
    return [{"some": 1}]


def written(value: Any) -> str:
    """A value as Hydra reads it."""
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{name}:{written(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, list):
        return f"[{','.join(map(written, value))}]"
    return json.dumps(value)


def effects(command: str, world: tuple[str, ...]) -> dict[str, bool]:
    """Of every key that can be typed in a world, whether some value changes what is run.

    What is refused is played all the same, and nothing may change.
    """
    play: Callable[[DictConfig], str] = evaluated if command == "evaluate" else trained
    config = composed(command, world)
    before = play(config)
    found: dict[str, bool] = {}
    for key, value in leaves(OmegaConf.to_container(config)):
        first, last = key.split(".")[0], key.split(".")[-1]
        if {first, last} & {*ELSEWHERE} or (first == "workflow" and last in OF_FILES):
            continue
        typed = OverridesParser.create().parse_override(f"{key}=0")
        for other in (other for other in others(value) if other != value):
            changed = composed(command, (*world, f"++{key}={written(other)}"))
            refused = False
            try:
                scenarios = scenarios_of(plain(changed))
                check_effect(command, [(scenario.config, [typed]) for scenario in scenarios])
            except InputError:
                refused = True
            try:
                differs = play(changed) != before
            except InputError:
                continue
            if refused:
                assert not differs, f"{key} is refused and has an effect"
                break
            found[key] = differs
            if differs:
                break
    return found


@pytest.mark.usefixtures("hydra")
def test_of_a_sweep_one_job_suffices() -> None:
    typed = [OverridesParser.create().parse_override("ray.threads_per_learner=1")]
    ppo, appo = (plain(composed("train", (*TINY, f"algo={algo}"))) for algo in ("ppo", "appo"))
    check_effect("train", [(appo, typed), (ppo, typed)])
    check_effect("train", [(ppo, typed), (appo, typed)])
    with pytest.raises(InputError, match="ray.threads_per_learner: without effect, algo=ppo alone"):
        check_effect("train", [(appo, typed), (appo, typed)])


@pytest.mark.parametrize(
    ("command", "world", "typed"),
    [
        # A file in a mix is a file.
        ("evaluate", ["+workflow.mix.own={path: x, weight: 1}"], "workflow.max_bytes=1"),
        ("train", ["+workflow.mix.own={path: x}"], "workflow.annotation.without_runtimes=draw"),
        # What is null is drawn.
        (
            "evaluate",
            ["workflow=inline", "workflow.mix.album.functions.unpack.memory=null"],
            "workflow.annotation.missing_memory=[256,512]",
        ),
        # Some policies learn from what was before.
        (
            "evaluate",
            ["workload=azure_like", "keep_alive=hybrid_histogram"],
            "workload.sampling.history=3",
        ),
        # Some agents split the currencies of tenants.
        ("train", ["agents=tenants", "workload=tickets"], "objective.fairness_weight=1"),
        ("train", ["agents=tenants", "workload=tickets"], "workload.tenants.alice.tickets=5"),
        # Learners are processes of Ray's, too, and trials are.
        ("train", ["ray.num_learners=1"], "ray.num_cpus=4"),
        ("train", ["tune=asha"], "ray.num_cpus=4"),
        # Some trials begin with a clone.
        (
            "train",
            ["tune=asha", "+tune.space.warm_start={choices: [a, b]}"],
            "algo.cloning.epochs=3",
        ),
    ],
)
@pytest.mark.usefixtures("hydra")
def test_what_has_an_effect_passes(command: str, world: list[str], typed: str) -> None:
    override = OverridesParser.create().parse_override(typed)
    check_effect(command, [(plain(composed(command, tuple(world))), [override])])


def test_a_key_that_another_copies_passes(in_process: InProcess) -> None:
    played: list[int] = []
    command = in_process(
        "evaluate", lambda config: played.append(config.episodes), lambda config: None
    )
    # Without effect of its own: nobody is recorded.
    done = command("record=0", "report.episodes_mb=3", "episodes=${report.episodes_mb}")
    assert (done.code, played) == (0, [3]), done
    assert command("record=0", "report.episodes_mb=3").code == 2


@pytest.mark.parametrize("key", ["lease.kind", "lease.step", "objective.completion_weight"])
@pytest.mark.usefixtures("hydra")
def test_what_settings_need_cannot_be_taken_away(key: str) -> None:
    world = plain(composed("evaluate", ("lease=always", f"~{key}")))
    override = OverridesParser.create().parse_override(f"~{key}")
    with pytest.raises(InputError, match=f"~{key}: cannot be left out, give it a value"):
        check_effect("evaluate", [(world, [override])])
    taken = OverridesParser.create().parse_override("~workflow.mix.montage")
    check_effect("evaluate", [(plain(composed("evaluate", ())), [taken])])


@pytest.mark.parametrize(
    ("command", "told", "says"),
    [
        ("evaluate", ["record=0", "report.episodes_mb=3"], "record is 0"),
        ("evaluate", ["workload=azure_like", "workflow=tiny"], "workload is a trace of single"),
        (
            "evaluate",
            ["workload=azure_like", "keep_alive=lru", "workload.sampling.history=10"],
            "keep_alive does not learn from earlier requests",
        ),
        ("evaluate", ["workload=azure_like", "workload.seed=3"], "seed says it"),
        ("evaluate", [*FREE, "lease.step=60"], "lease.charged is false"),
        ("evaluate", [*FREE, "objective.cost_weight=3"], "nothing is paid"),
        (
            "evaluate",
            ["workload.container_cold_start='0'", "keep_alive=lru"],
            "dispatch is immediate and workload.container_cold_start=0",
        ),
        # What is meant counts, however it is written.
        (
            "evaluate",
            ["lease=always", "lease.charged=0", "lease.step=60"],
            "lease.charged is false",
        ),
        ("evaluate", ["lease=always", "lease.charged='no'", "lease.step=60"], "lease.charged is"),
        ("search_baseline", ["search.economy=['0',0]", "search.demand=[1,2]"], "search.economy is"),
        ("train", ["keep_alive=fixed"], "dispatch is immediate and workload."),
        (
            "train",
            [*TENANTS, "agents.tenants.mechanism=drf", "agents.tenants.resource=mb_seconds"],
            "agents.tenants.mechanism is drf",
        ),
        (
            "train",
            [*TENANTS, "+agents.tenants.winners=7"],
            "agents.tenants.mechanism is not multi_lottery",
        ),
        ("search_baseline", ["search.demand=[0.1,10.0]"], "search.economy is"),
        ("search_baseline", ["search.arrival_horizon=[1.0,9.0]"], "search.arrival_use is"),
        (
            "search_baseline",
            ["search.own_use=[1.0,9.0]"],
            "search.arrival_use and search.known_use",
        ),
        (
            "evaluate",
            ["keep_alive=lru", COLD, "optimum.functions=3"],
            "schedules are tried out where",
        ),
        ("evaluate", ["+lease.charged=true"], "lease=hourly is paid"),
        ("train", ["lease=always", "lease.step=60"], "lease.charged is false"),
        ("evaluate", ["agents=placer"], "policy is null"),
        ("train", ["tune=asha", "algo.entropy=0.1"], "tune.space.entropy says it"),
        ("train", ["variation={single: 0.5, load: 0.5}"], "variation.unvaried is 1"),
        (
            "train",
            ["workload=azure_like", "variation.unvaried=0.5", "variation.load=0.5"],
            "of a trace the rate of arrivals varies",
        ),
        ("train", ["agents=queue", "agents.score.rent=1"], "agents.layout is queue, a rule"),
        ("train", ["ray.num_cpus=4"], "ray.num_env_runners and ray.num_learners are 0"),
        (
            "train",
            ["+ray.runtime_env={env_vars: {A: b}}"],
            "ray.num_env_runners and ray.num_learners are 0",
        ),
        ("search_baseline", ["+workload.tenants.a=1"], "training tells no tenants apart"),
        ("train", ["objective.fairness_weight=1"], "training tells no tenants apart but with"),
        ("train", ["agents=tenants", "agents.score.rent=1"], "agents.layout is tenants, a rule"),
        ("train", ["workload=tickets", "cluster.cpu_share=tickets"], "training tells no tenants"),
        ("evaluate", ["cluster.cpu_share=tickets"], "no tenant holds tickets"),
        ("evaluate", ["objective.fairness_weight=1"], "dispatch is immediate, functions do not"),
        (
            "evaluate",
            ["dispatch=queued", "objective.fairness_weight=1"],
            "no tenant holds tickets",
        ),
        (
            "evaluate",
            ["workload=tickets", "workload.tenants.bob.tickets=7"],
            "dispatch is immediate and cluster.cpu_share equal, nothing goes by tickets",
        ),
        (
            "evaluate",
            ["workload=tickets", "dispatch=queued", "+workload.tenants.bob.workflows={x: 2}"],
            "none of the baselines goes by workflows",
        ),
    ],
)
@pytest.mark.usefixtures("hydra")
def test_the_line_names_what_makes_it_so(command: str, told: list[str], says: str) -> None:
    overrides = [OverridesParser.create().parse_override(each) for each in told]
    world = plain(composed(command, tuple(told)))
    key = overrides[-1].key_or_group
    with pytest.raises(InputError, match=f"{key}: without effect, {says}.*: leave it out"):
        check_effect(command, [(world, overrides)])


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=[pytest.mark.long] * (kind not in ("train", "evaluate")))
        for kind in WORLDS
    ],
)
@pytest.mark.usefixtures("hydra")
def test_every_key_has_an_effect_or_is_refused(kind: str) -> None:
    command = kind.split()[0]
    found: dict[str, bool] = {}
    for overrides in WORLDS[kind]:
        for key, effect in effects(command, overrides).items():
            found[key] = found.get(key, False) or effect
    assert len(found) > 20
    silent = [key for key, effect in found.items() if not effect]
    assert not silent, " ".join(silent)
