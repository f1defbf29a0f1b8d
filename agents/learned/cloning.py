"""Behaviour cloning: policies learn to decide as a hand-written scheduler does.

`algo=bc` does nothing else; `algo.warm_start` begins the other algorithms with it. RLlib's own `BC`
reads recorded episodes from files through Ray Data. Here a teacher is asked in this process, and
what it does fits into memory: its decisions go to an RLlib learner as they are. The learner, the
checkpoints and the runners are RLlib's; only its pipeline for files is left out.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
import tree
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.core.columns import Columns
from ray.rllib.core.learner.learner_group import LearnerGroup
from ray.rllib.core.learner.torch.torch_learner import TorchLearner
from ray.rllib.core.rl_module.apis import TargetNetworkAPI
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.execution.rollout_ops import synchronous_parallel_sample
from ray.rllib.policy.sample_batch import MultiAgentBatch, SampleBatch
from ray.rllib.utils.metrics import ENV_RUNNER_RESULTS, LEARNER_RESULTS
from torch import Tensor
from torch.nn.functional import cross_entropy

from agents.baseline import make_baselines
from agents.learned.fault_tolerance import FaultTolerant
from agents.learned.loss import parts_of
from agents.learned.policy_file import policy_of
from agents.learned.set_policy import SetPolicy
from agents.order.fcfs import Fcfs
from agents.order.funcsched import FuncSched
from agents.scheduler import Decision, Scheduler
from env.base.errors import InputError, located
from env.learn.actions import NO_PLACE
from env.learn.kind import Observation
from env.learn.multi_agent import ServerlessEnv
from env.learn.placing import row_of
from env.learn.queue_agent import QueueAgent
from env.learn.tenant_agents import TenantAgents
from env.sim.declared.ordering import Order
from run.settings import AlgoSettings, BCSettings, CloningSettings, DQNSettings

Columnar = dict[str, Any]
"""Of one policy: `obs`, a dict of columns as the observation space names them, and `actions`,
int64 (R,) or (R, 2). R rows in the order of time."""

AGREEMENT = "agreement"
CLONING_LOSS = "cloning_loss"


def check_teacher(key: str, name: str, world: Mapping[str, Any]) -> None:
    """Refuses a teacher that cannot be cloned, as far as its first decisions show.

    Raises:
        InputError: there is no such baseline, or it gives memory of no tier.
    """
    with located(key):
        demonstrate(name, 1, world)


def demonstrate(
    teacher: str,
    decisions: int,
    world: Mapping[str, Any],
    *,
    every: int = 1,
    share_type_policy: bool = True,
    seed: int = 0,
) -> dict[str, Columnar]:
    """Records what a baseline decides in training episodes, as its agents would.

    Args:
        teacher: a name of conf/baseline, or the path of such a file.
        decisions: how many are kept; the last episode is cut.
        world: what the environment is built from.
        every: one decision in so many is kept. Neighbours are alike.
        share_type_policy: see `policy_of`.
        seed: of the episodes and of what the teacher draws.

    Returns:
        By policy.

    Raises:
        InputError: the teacher gives a function memory that is none of the agents' tiers, or has
            an order that nobody could repeat.
    """
    environment = ServerlessEnv(world)
    objective, order = environment.world.objective, environment.world.rules.order
    (scheduler,) = make_baselines([teacher], queued=order is not None)
    _check_order(teacher, scheduler, order)
    seen: dict[str, list[Columnar]] = {
        policy_of(agent, share_type_policy): [] for agent in environment.possible_agents
    }
    number = episode = 0
    while number < every * decisions:
        observations, _ = environment.reset(seed=None if episode else seed)
        env = environment.raw_env
        assert env is not None
        draws = np.random.SeedSequence(seed, spawn_key=(episode,))
        rng = np.random.default_rng(draws)
        scheduler.reset(env, objective, draws)
        while number < every * decisions and not env.done:
            with located(f"'{teacher}' cannot be cloned"):
                decision = Decision(env, objective, scheduler.tiers, rng)
                turns = _turns(environment, scheduler, decision, observations)
            for each in turns:
                actions = dict(zip(observations, each, strict=True))
                if number % every == 0:
                    for agent, action in actions.items():
                        step = {Columns.OBS: observations[agent], Columns.ACTIONS: action}
                        seen[policy_of(agent, share_type_policy)].append(step)
                observations, rewards, *_ = environment.step(actions)
            number += len(rewards) > 0
        episode += 1
    environment.close()
    return {
        policy: tree.map_structure(lambda *rows: np.stack(rows), *steps)
        for policy, steps in seen.items()
        if steps
    }


def _check_order(teacher: str, scheduler: Scheduler, order: Order | None) -> None:
    """Refuses a teacher that lets others go next than agents could, or than the world lets go."""
    repeated = FuncSched if isinstance(order, QueueAgent) else Fcfs | None
    if isinstance(order, TenantAgents) or not isinstance(scheduler.order, repeated):
        raise InputError(
            f"'{teacher}' cannot be cloned: the agent `queue` repeats the order funcsched alone, "
            "without it functions go first come, first served, and no teacher grants tickets"
        )


def _turns(
    environment: ServerlessEnv,
    scheduler: Scheduler,
    decision: Decision,
    seen: Mapping[str, Observation],
) -> list[np.ndarray]:
    """What a teacher does, turn by turn; by the order funcsched all wait for the first function."""
    if decision.env.choosing:
        mask = seen["queue"]["mask"]
        return environment.actions_for(0 if mask[0] > 0.0 else int(np.flatnonzero(mask)[-1]))
    node, memory_alloc = decision.placement(scheduler.choose(decision))
    tiers, memory_req = environment.layout.tiers, decision.function.memory_req
    return environment.actions_for(row_of(tiers, memory_req, node, memory_alloc))


class Lesson:
    """A teacher's decisions: most to learn from, the last ones held out to be judged by.

    Args:
        teacher: see `demonstrate`.
        settings: shares and sizes.
        world: what the environment is built from.
        share_type_policy: see `policy_of`.
        seed: of the episodes, and of the order in which decisions are learned.
    """

    def __init__(
        self,
        teacher: str,
        settings: CloningSettings,
        world: Mapping[str, Any],
        share_type_policy: bool,
        seed: int,
    ) -> None:
        self._settings = settings
        self._rng = np.random.default_rng(seed)
        self._learned, self.held_out = {}, {}
        demonstrations = demonstrate(
            teacher,
            settings.decisions,
            world,
            every=settings.every,
            share_type_policy=share_type_policy,
            seed=seed,
        )
        for policy, columns in demonstrations.items():
            rows = len(columns[Columns.ACTIONS])
            first = rows - max(1, round(settings.held_out * rows))
            self._learned[policy] = _rows(columns, np.arange(first))
            self.held_out[policy] = _rows(columns, np.arange(first, rows))

    def teach(self, learners: LearnerGroup) -> list[Any]:
        """Goes through the decisions `epochs` times; returns what the learners report."""
        reported = []
        for _ in range(self._settings.epochs):
            batches, steps = {}, 0
            for policy, columns in self._learned.items():
                rows = len(columns[Columns.ACTIONS])
                mixed = _rows(columns, self._rng.permutation(rows))
                batches[policy], steps = SampleBatch(mixed), max(steps, rows)
            reported += learners.update(
                batch=MultiAgentBatch(batches, steps),
                minibatch_size=min(self._settings.batch_size, steps),
                num_epochs=1,
            )
        return reported

    def agreement(self, learners: LearnerGroup) -> dict[str, float]:
        """Share of the decisions held out that each policy's likeliest action repeats."""
        found = learners.foreach_learner(lambda learner: _agreement(learner, self.held_out))
        shares: dict[str, float] = next(iter(found)).get()
        return shares


def _agreement(learner: Any, held_out: Mapping[str, Columnar]) -> dict[str, float]:
    found = {}
    for policy, columns in held_out.items():
        module = learner.module[policy].unwrapped()
        seen = {part: torch.from_numpy(rows) for part, rows in columns[Columns.OBS].items()}
        with torch.inference_mode():
            logits = module.logits(seen)
        same = torch.ones(len(logits), dtype=torch.bool)
        actions = torch.from_numpy(columns[Columns.ACTIONS])
        for part, chosen in _parts(module, logits, actions):
            same &= (part.argmax(dim=-1) == chosen) | (chosen == NO_PLACE)
        found[policy] = float(same.float().mean())
    return found


def _rows(columns: Columnar, rows: np.ndarray) -> Columnar:
    found: Columnar = tree.map_structure(lambda column: column[rows], columns)
    return found


def _parts(module: Any, logits: Tensor, actions: Tensor) -> Iterable[tuple[Tensor, Tensor]]:
    """Logits and actions of each choice: of one, or of bid and place."""
    chosen = actions.reshape(len(actions), -1).unbind(dim=1)
    return zip(logits.split(parts_of(module.action_space), dim=1), chosen, strict=True)


class CloningLearner(TorchLearner):
    """Cross-entropy of the masked logits against the teacher's actions; the critic is not touched.

    The place of a server type that bids 0 is left out: it does not matter.
    """

    def compute_loss_for_module(
        self,
        *,
        module_id: str,
        config: AlgorithmConfig,
        batch: dict[str, Any],
        fwd_out: dict[str, Tensor],
    ) -> Tensor:
        """Mean over the rows, in nats."""
        module = self.module[module_id].unwrapped()
        logits, actions = fwd_out[Columns.ACTION_DIST_INPUTS], batch[Columns.ACTIONS].long()
        loss = sum(
            (
                cross_entropy(part, chosen, ignore_index=NO_PLACE, reduction="sum")
                for part, chosen in _parts(module, logits, actions)
            ),
            torch.zeros(()),
        ) / len(logits)
        self.metrics.log_value((module_id, CLONING_LOSS), loss, window=1)
        return loss


class CloningConfig(AlgorithmConfig):
    """RLlib's configuration of `Cloning`; `lesson` makes what is learned."""

    def __init__(self, algo_class: type | None = None) -> None:
        super().__init__(algo_class=algo_class or Cloning)
        self.lesson: Callable[[], Lesson] | None = None

    def get_default_learner_class(self) -> type[CloningLearner]:
        """The learner of cross-entropy."""
        return CloningLearner

    def get_default_rl_module_spec(self) -> RLModuleSpec:
        """The policies of this project."""
        return RLModuleSpec(module_class=SetPolicy)


class Cloning(FaultTolerant):
    """`algo=bc`: an iteration goes through the teacher's decisions, then plays to measure its J."""

    @classmethod
    def get_default_config(cls) -> CloningConfig:
        """Of RLlib's kind."""
        return CloningConfig()

    def setup(self, config: CloningConfig) -> None:
        """Asks the teacher."""
        super().setup(config)
        assert config.lesson is not None
        self._lesson = config.lesson()

    def training_step(self) -> None:
        """Learn, judge, play."""
        learned = self._lesson.teach(self.learner_group)
        self.metrics.aggregate(learned, key=LEARNER_RESULTS)
        for policy, share in self._lesson.agreement(self.learner_group).items():
            self.metrics.log_value((LEARNER_RESULTS, policy, AGREEMENT), share, window=1)
        self.env_runner_group.sync_weights(
            from_worker_or_learner_group=self.learner_group, inference_only=True
        )
        _, played = synchronous_parallel_sample(
            worker_set=self.env_runner_group,
            sample_timeout_s=self.config.sample_timeout_s,
            _uses_new_env_runners=True,
            _return_metrics=True,
        )
        self.metrics.aggregate(played, key=ENV_RUNNER_RESULTS)


def warm_start(
    algorithm: Algorithm,
    algo: AlgoSettings,
    world: Mapping[str, Any],
    share_type_policy: bool,
    seed: int,
) -> dict[str, float]:
    """Lets the policies of a new algorithm begin as `algo.warm_start` decides, if that is told.

    No critic changes.

    Returns:
        By policy the share of decisions, of those it did not learn from, that it repeats.
    """
    if isinstance(algo, DQNSettings | BCSettings) or algo.warm_start is None:
        return {}
    settings = algo.cloning
    lesson = Lesson(algo.warm_start, settings, world, share_type_policy, seed)
    specs = {
        policy: replace(spec, module_class=SetPolicy)
        for policy, spec in algorithm.config.rl_module_spec.rl_module_specs.items()
    }
    config = CloningConfig().learners(num_learners=0).training(lr=settings.learning_rate)
    config.multi_agent(policies=set(specs)).debugging(seed=algorithm.config.seed)
    multi = type(algorithm.config.rl_module_spec)(rl_module_specs=specs)
    learners = config.build_learner_group(rl_module_spec=multi)
    lesson.teach(learners)
    cloned, agreement = learners.get_weights(), lesson.agreement(learners)
    learners.shutdown()
    algorithm.learner_group.foreach_learner(
        lambda learner: _take_over(learner, cloned, settings.temperature)
    )
    algorithm.env_runner_group.sync_weights(
        from_worker_or_learner_group=algorithm.learner_group, inference_only=True
    )
    return agreement


def _take_over(
    learner: Any, weights: Mapping[str, Mapping[str, np.ndarray]], temperature: float
) -> None:
    for policy, arrays in weights.items():
        module = learner.module[policy].unwrapped()
        mine = {key: torch.as_tensor(a) for key, a in arrays.items() if key.startswith("policy.")}
        module.load_state_dict(mine, strict=False)
        module.policy.soften(temperature)
        if isinstance(module, TargetNetworkAPI):
            for source, target in module.get_target_network_pairs():
                target.load_state_dict(source.state_dict())
