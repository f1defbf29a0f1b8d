"""What a training run is told, validated: groups, budget, checkpoints."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from env.layouts import AgentsConfig
from env.reward import Objective
from env.schema import Strict
from env.variation import Variation

Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
Count = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0, le=1)]
Network = Literal["pooling", "attention"]
Hidden = Annotated[tuple[Annotated[int, Field(ge=1, le=65_536)], ...], Field(min_length=1)]


class CloningSettings(Strict):
    """Behaviour cloning of a baseline (conf/algo/cloning/default.yaml explains each)."""

    decisions: Annotated[int, Field(ge=2, le=10_000_000)]
    held_out: Annotated[float, Field(gt=0, lt=1)]
    epochs: Count
    batch_size: Count
    learning_rate: Positive


class PPOSettings(Strict):
    """Proximal policy optimisation (conf/algo/ppo.yaml explains each)."""

    name: Literal["ppo"]
    sampler: Literal["fast", "rllib"]
    hidden: Hidden
    network: Network
    warm_start: str | None
    cloning: CloningSettings
    batch_size: Count
    minibatch_size: Count
    epochs: Count
    learning_rate: Positive
    entropy: NotNegative
    gamma: Share
    gae_lambda: Share
    clip: Positive
    kl_stop: Positive

    @model_validator(mode="after")
    def _sizes(self) -> Self:
        if self.minibatch_size > self.batch_size:
            raise ValueError(
                f"minibatch_size {self.minibatch_size} is above batch_size {self.batch_size}"
            )
        return self


class IMPALASettings(Strict):
    """Importance-weighted actors and learners (conf/algo/impala.yaml explains each)."""

    name: Literal["impala"]
    hidden: Hidden
    network: Network
    warm_start: str | None
    cloning: CloningSettings
    batch_size: Count
    iteration_steps: Count
    learning_rate: Positive
    entropy: NotNegative
    gamma: Share


class APPOSettings(Strict):
    """Asynchronous PPO (conf/algo/appo.yaml explains each)."""

    name: Literal["appo"]
    hidden: Hidden
    network: Network
    warm_start: str | None
    cloning: CloningSettings
    batch_size: Count
    iteration_steps: Count
    epochs: Count
    learning_rate: Positive
    entropy: NotNegative
    gamma: Share
    clip: Positive
    target_update: Count


class DQNSettings(Strict):
    """Deep Q-learning (conf/algo/dqn.yaml explains each)."""

    name: Literal["dqn"]
    hidden: Hidden
    network: Network
    batch_size: Count
    iteration_steps: Count
    replay_steps: Count
    warmup_steps: Count
    updates_per_step: Positive
    target_update_steps: Count
    learning_rate: Positive
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


class BCSettings(Strict):
    """Behaviour cloning and nothing else (conf/algo/bc.yaml explains each)."""

    name: Literal["bc"]
    hidden: Hidden
    network: Network
    teacher: str
    cloning: CloningSettings
    iteration_steps: Count


AlgoSettings = Annotated[
    PPOSettings | APPOSettings | IMPALASettings | DQNSettings | BCSettings,
    Field(discriminator="name"),
]


class RaySettings(Strict):
    """Where a run samples (conf/ray).

    Attributes:
        address: of a running Ray cluster; None starts Ray on this machine.
        num_cpus: cores Ray may use on this machine; None means all. Not with an address.
        num_env_runners: processes that sample; 0 samples in the training process.
        envs_per_runner: environments each of them steps.
        restart_failed_runners: go on when one dies; else the run stops with its error.
        runtime_env: Ray's runtime environment of the workers.
    """

    address: Annotated[str, Field(min_length=1)] | None
    num_cpus: Annotated[int, Field(ge=1, le=10_000)] | None
    num_env_runners: Annotated[int, Field(ge=0, le=10_000)]
    envs_per_runner: Annotated[int, Field(ge=1, le=10_000)]
    restart_failed_runners: bool
    runtime_env: dict[str, Any]

    @field_validator("runtime_env")
    @classmethod
    def _known_to_ray(cls, given: dict[str, Any]) -> dict[str, Any]:
        if given:
            from ray.runtime_env import RuntimeEnv  # Ray takes seconds to import

            try:
                RuntimeEnv(**given)
            except (TypeError, ValueError) as error:
                raise ValueError(str(error)) from None
        return given

    @model_validator(mode="after")
    def _cpus(self) -> Self:
        if self.address is not None and self.num_cpus is not None:
            raise ValueError("num_cpus is for a Ray started here, address names a running one")
        return self


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
        shares = [0.0]
        if self.minutes is not None:
            shares.append(seconds / (60 * self.minutes))
        if self.iterations is not None:
            shares.append(iterations / self.iterations)
        return max(shares)


class CheckpointSettings(Strict):
    """When to save, what to keep, and over how many episodes a policy's J is judged."""

    every_minutes: Positive
    keep: Count
    best_over: Count


class TrainSettings(Strict):
    """Everything `train.py` is told. The groups of the world are checked where they are built."""

    seed: Annotated[int, Field(ge=0, lt=2**32)]
    resume: str | None
    budget: BudgetSettings
    checkpoint: CheckpointSettings
    agents: AgentsConfig
    objective: Objective
    algo: AlgoSettings
    ray: RaySettings
    cluster: dict[str, Any]
    workflow: dict[str, Any]
    workload: dict[str, Any]
    variation: Variation

    @model_validator(mode="after")
    def _actions(self) -> Self:
        if self.algo.name == "dqn" and self.agents.layout == "server_types":
            raise ValueError(
                "algo=dqn chooses among single actions, the agents of layout server_types choose a "
                "bid and a place at once; its layouts are placer and hierarchical"
            )
        return self
