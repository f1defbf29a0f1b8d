"""The settings of `train.py`, and those that `evaluate.py` shares; conf/ explains each."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Discriminator, Field, Tag, field_validator, model_validator

from env.base.schema import Strict, nearest, validated
from env.learn.actions import MOST_ENVIRONMENTS
from env.learn.layouts import AgentsConfig
from env.learn.training_episodes import Variation
from env.score.reward import Objective
from env.sim.declared.rules import RuleGroups
from run.composing import TRAINING_WORLD

Address = Annotated[str, Field(pattern=r"^(auto|(ray://)?[^\s/]+:\d{1,5})$")]
"""Of a running Ray cluster: `auto`, `host:port` or `ray://host:port`."""
RunName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.+-]{1,80}$")]
"""Part of the name of a folder."""
Positive = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0, le=1)]
Network = Literal["pooling", "attention"]
# Wider networks do not fit into memory, more rounds of messages never end.
Hidden = Annotated[
    tuple[Annotated[int, Field(ge=1, le=4096)], ...], Field(min_length=1, max_length=100)
]
MOST_ROUNDS = 1000
# Of an environment in a batch of APPO or IMPALA: a step counts when its agent is asked again, which
# is three turns later in the hierarchy.
LEAST_TURNS = 4
# Steps are held in memory. Adam moves each weight by about as much as its step size.
Steps = Annotated[int, Field(ge=1, le=10_000_000)]
StepSize = Annotated[float, Field(gt=0, le=1)]
# What single precision can still tell from 0, and from all there is.
Moderate = Annotated[float, Field(ge=1e-6, le=1e6)]


class CloningSettings(Strict):
    """Behaviour cloning of a baseline (conf/algo/cloning/default.yaml explains each)."""

    decisions: Annotated[int, Field(ge=2, le=10_000_000)]
    every: Annotated[int, Field(ge=1, le=10_000)]
    held_out: Annotated[float, Field(gt=0, lt=1)]
    epochs: Count
    batch_size: Steps
    learning_rate: StepSize
    temperature: Moderate


class NetworkSettings(Strict):
    """The networks of every algorithm (conf/algo/ppo.yaml explains each)."""

    hidden: Hidden
    network: Network
    message_rounds: Annotated[int, Field(ge=1, le=MOST_ROUNDS)]


class ActorCriticSettings(NetworkSettings):
    """What PPO, APPO and IMPALA have in common (conf/algo/ppo.yaml explains each)."""

    warm_start: Annotated[str, Field(min_length=1)] | None
    cloning: CloningSettings
    batch_size: Steps
    learning_rate: StepSize
    entropy: Annotated[float, Field(ge=0, le=1e6)]
    gamma: Share


class PPOSettings(ActorCriticSettings):
    """Proximal policy optimisation (conf/algo/ppo.yaml explains each)."""

    name: Literal["ppo"]
    sampler: Literal["fast", "rllib"]
    minibatch_size: Steps
    epochs: Count
    gae_lambda: Share
    clip: Moderate
    kl_stop: Positive

    @model_validator(mode="after")
    def _sizes(self) -> Self:
        if self.minibatch_size > self.batch_size:
            raise ValueError(
                f"minibatch_size {self.minibatch_size} is above batch_size {self.batch_size}"
            )
        return self


class IMPALASettings(ActorCriticSettings):
    """Importance-weighted actors and learners (conf/algo/impala.yaml explains each)."""

    name: Literal["impala"]
    iteration_steps: Steps


class APPOSettings(ActorCriticSettings):
    """Asynchronous PPO (conf/algo/appo.yaml explains each)."""

    name: Literal["appo"]
    iteration_steps: Steps
    epochs: Count
    clip: Moderate
    target_update: Count


class DQNSettings(NetworkSettings):
    """Deep Q-learning (conf/algo/dqn.yaml explains each)."""

    name: Literal["dqn"]
    batch_size: Steps
    iteration_steps: Steps
    replay_steps: Steps
    warmup_steps: Steps
    updates_per_step: Annotated[float, Field(gt=0, le=100)]
    target_update_steps: Count
    learning_rate: StepSize
    gamma: Share
    exploration: Share
    final_exploration: Share
    exploration_steps: Count

    @model_validator(mode="after")
    def _replay(self) -> Self:
        if self.warmup_steps > self.replay_steps:
            raise ValueError(
                f"warmup_steps {self.warmup_steps} is above replay_steps {self.replay_steps}"
            )
        return self


class BCSettings(NetworkSettings):
    """Behaviour cloning and nothing else (conf/algo/bc.yaml explains each)."""

    name: Literal["bc"]
    teacher: Annotated[str, Field(min_length=1)]
    cloning: CloningSettings
    iteration_steps: Steps


AlgoSettings = Annotated[
    PPOSettings | APPOSettings | IMPALASettings | DQNSettings | BCSettings,
    Field(discriminator="name"),
]


class RaySettings(Strict):
    """Where a run samples (conf/ray/local.yaml explains each)."""

    address: Address | None
    num_cpus: Annotated[int, Field(ge=1, le=10_000)] | None
    num_env_runners: Annotated[int, Field(ge=0, le=10_000)]
    envs_per_runner: Annotated[int, Field(ge=1, le=MOST_ENVIRONMENTS)]
    threads_per_runner: Annotated[int, Field(ge=1, le=1000)]
    num_learners: Annotated[int, Field(ge=0, le=1000)]
    threads_per_learner: Annotated[int, Field(ge=1, le=1000)]
    restart_failed_runners: bool
    wait_for_runners: Positive
    runtime_env: dict[str, Any]

    @field_validator("runtime_env")
    @classmethod
    def _known_to_ray(cls, given: dict[str, Any]) -> dict[str, Any]:
        if given:
            from ray.runtime_env import RuntimeEnv  # Ray takes seconds to import

            allowed = sorted(key for key in RuntimeEnv.known_fields if not key.startswith("_"))
            for key in given:
                if key not in allowed:
                    raise ValueError(f"{key}: unknown key, {nearest(key, allowed)}")
        return given

    @model_validator(mode="after")
    def _cpus(self) -> Self:
        if self.address is not None and self.num_cpus is not None:
            raise ValueError("num_cpus is for a Ray started here, address names a running one")
        return self


class Range(Strict):
    """Numbers that a setting is searched among (conf/tune/asha.yaml)."""

    low: float
    high: float
    log: bool = False

    @model_validator(mode="after")
    def _ends(self) -> Self:
        if self.low >= self.high:
            raise ValueError(f"low {self.low} is not below high {self.high}")
        if self.log and self.low <= 0:
            raise ValueError(f"low {self.low} is not above 0, as log needs it")
        return self


class Choices(Strict):
    """Values that a setting is searched among (conf/tune/asha.yaml)."""

    choices: Annotated[tuple[Any, ...], Field(min_length=2)]


def extremes(searched: Range | Choices) -> tuple[Any, ...]:
    """What must be allowed for all that is searched to be."""
    return searched.choices if isinstance(searched, Choices) else (searched.low, searched.high)


def _kind(searched: Any) -> str:
    keys = searched if isinstance(searched, Mapping) else dir(searched)
    return "choices" if "choices" in keys else "range"


Searched = Annotated[
    Annotated[Range, Tag("range")] | Annotated[Choices, Tag("choices")], Discriminator(_kind)
]


class TuneSettings(Strict):
    """A search by asynchronous successive halving (conf/tune/asha.yaml explains each)."""

    trials: Annotated[int, Field(ge=2, le=10_000)]
    parallel: Count
    space: Annotated[dict[str, Searched], Field(min_length=1)]
    first_cut: Annotated[float, Field(gt=0, le=100)]
    reduction: Annotated[float, Field(gt=1)]


class BudgetSettings(Strict):
    """When a run ends: at whichever comes first. Counted over all its parts when resumed."""

    minutes: Positive | None
    iterations: Count | None

    @model_validator(mode="after")
    def _ends(self) -> Self:
        if self.minutes is None and self.iterations is None:
            raise ValueError("minutes and iterations are both null, the run would never end")
        return self

    def progress(self, seconds: float, iterations: int) -> float:
        """The share of the budget that is used; 1 or more means it is over."""
        of_time = 0.0 if self.minutes is None else seconds / (60 * self.minutes)
        return max(of_time, 0.0 if self.iterations is None else iterations / self.iterations)


class CheckpointSettings(Strict):
    """When to save, and what to keep."""

    every_minutes: Positive
    keep: Count


class HeldOutSettings(Strict):
    """Which held-out episodes policies and hand-written schedulers play (conf/train.yaml)."""

    baselines: Annotated[tuple[str, ...], Field(min_length=1)]
    episodes: Annotated[int, Field(ge=2, le=1000)]
    functions: Count
    seed: Annotated[int, Field(ge=0, lt=2**32)]
    share: Annotated[float, Field(gt=0, le=1)]


class WorldSettings(RuleGroups):
    """Settings of both `train.py` and `evaluate.py`; plain groups are checked when built."""

    name: RunName | None
    resume: str | None
    objective: Objective
    cluster: dict[str, Any]
    workflow: dict[str, Any]
    workload: dict[str, Any]

    @model_validator(mode="after")
    def _something_to_lower(self) -> Self:
        timed = self.objective.time_weight or self.objective.completion_weight
        if self.objective.carbon_weight and self.cluster.get("power") is None:
            raise ValueError(
                "objective.carbon_weight: found, but cluster.power is null, so carbon is not known"
            )
        if self.lease.is_free and not self.cluster.get("regions") and not timed:
            raise ValueError(
                "objective: with lease=always nothing is paid, so cost alone is no objective: give "
                "lease.charged=true, or a time_weight or completion_weight above 0"
            )
        return self


class TrainSettings(WorldSettings):
    """The settings of `train.py`."""

    seed: Annotated[int, Field(ge=0, lt=2**32)]
    budget: BudgetSettings
    checkpoint: CheckpointSettings
    held_out: HeldOutSettings
    agents: AgentsConfig
    algo: AlgoSettings
    ray: RaySettings
    variation: Variation
    tune: TuneSettings | None = None

    def world(self) -> dict[str, Any]:
        """What the environment is built from, in plain containers: they travel to Ray's workers."""
        from env.workloads.source import is_trace
        from env.workloads.templates import WorkflowConfig

        groups = self.model_dump(mode="json", include={*TRAINING_WORLD, "seed"})
        if not is_trace(self.workload):
            # Makes its paths absolute.
            workflow = validated(WorkflowConfig, self.workflow, "workflow")
            groups["workflow"] = workflow.model_dump(mode="json", by_alias=True)
        return groups

    @model_validator(mode="after")
    def _fits_the_algorithm(self) -> Self:
        algo, environments = self.algo, self.ray.envs_per_runner * max(1, self.ray.num_env_runners)
        if algo.name == "dqn" and self.agents.layout == "server_types":
            raise ValueError(
                "algo=dqn chooses among single actions, the agents of layout server_types choose a "
                "bid and a place at once; its layouts are placer, hierarchical and queue"
            )
        if self.ray.num_learners > 0 and algo.name != "ppo":
            raise ValueError(
                f"ray.num_learners {self.ray.num_learners} is for algo=ppo; algo={algo.name} "
                f"learns in the training process, 0"
            )
        # These learn from pieces of episodes, in which agents must act twice.
        asynchronous = IMPALASettings | APPOSettings
        if isinstance(algo, asynchronous) and algo.batch_size < LEAST_TURNS * environments:
            raise ValueError(
                f"algo.batch_size {algo.batch_size} is less than {LEAST_TURNS} turns of each "
                f"of {environments} environments: give more, or fewer ray.envs_per_runner"
            )
        return self

    @model_validator(mode="after")
    def _search(self) -> Self:
        if self.tune is None:
            return self
        if self.resume is not None:
            raise ValueError("resume goes on with one training, tune starts many: give one of them")
        single = {**self.model_dump(), "tune": None}
        for key, values in self.tune.space.items():
            for value in extremes(values):
                drawn = {**single, "algo": {**single["algo"], key: value}}
                validated(TrainSettings, drawn, f"tune.space.{key} {value}")
        return self
