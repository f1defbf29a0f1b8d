"""Behaviour cloning: policies learn to decide as a hand-written scheduler does.

`algo=bc` does nothing else; `algo.warm_start` begins the other algorithms with it. RLlib's own `BC`
reads recorded episodes from files through Ray Data. Here a teacher is asked in this process, and
what it does fits into memory: the networks of RLlib's learner learn it as it is.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import torch
import tree
from ray.rllib.algorithms import Algorithm, PPOConfig
from ray.rllib.core.columns import Columns
from ray.rllib.core.learner import Learner
from ray.rllib.core.rl_module import MultiRLModule, RLModule
from ray.rllib.core.rl_module.apis import TargetNetworkAPI
from ray.rllib.execution.rollout_ops import synchronous_parallel_sample
from ray.rllib.utils.debug import update_global_seed_if_necessary
from ray.rllib.utils.metrics import ENV_RUNNER_RESULTS, LEARNER_RESULTS
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.optim import Adam, Optimizer

from agents.baseline import make_baselines
from agents.learned.env_runner import FaultTolerantPPO
from agents.learned.learner import parts_of
from agents.learned.policy_file import policy_of
from agents.order.fcfs import Fcfs
from agents.order.funcsched import FuncSched
from agents.scheduler import Decision
from env.base.errors import InputError, located
from env.learn.actions import NO_PLACE
from env.learn.multi_agent import ServerlessEnv
from env.learn.placing import row_of
from env.learn.queue_agent import QueueAgent
from env.learn.tenant_agents import TenantAgents
from run.settings import BCSettings, CloningSettings, DQNSettings, TrainSettings, extremes

Columnar = dict[str, Any]
"""Of one policy: `obs`, a dict of columns as the observation space names them, and `actions`,
int64 (R,) or (R, 2). R rows in the order of time."""


def demonstrate(
    teacher: str,
    decisions: int,
    world: Mapping[str, Any],
    every: int = 1,
    seed: int = 0,
) -> dict[str, Columnar]:
    """Records, by policy, what a baseline decides in training episodes, as its agents would.

    Args:
        teacher: a name of conf/baseline, or the path of such a file.
        decisions: how many are kept; the last episode is cut.
        world: what the environment is built from.
        every: one decision in so many is kept. Neighbours are alike.
        seed: of the episodes and of what the teacher draws.

    Raises:
        InputError: there is no such baseline, it gives a function memory that is none of the
            agents' tiers, or it has an order that agents could not repeat.
    """
    environment = ServerlessEnv(world)
    objective, order = environment.world.objective, environment.world.rules.order
    shared = environment.world.agents.share_type_policy
    (scheduler,) = make_baselines([teacher], queued=order is not None)
    if environment.world.asked:
        raise InputError(f"'{teacher}' cannot be cloned: it does not show agents how to scale")
    repeatable = FuncSched if isinstance(order, QueueAgent) else Fcfs | None
    if isinstance(order, TenantAgents) or not isinstance(scheduler.order, repeatable):
        raise InputError(
            f"'{teacher}' cannot be cloned: the agent `queue` repeats the order funcsched alone, "
            "without it functions go first come, first served, and no teacher grants tickets"
        )
    steps: dict[str, list[Columnar]] = {
        policy_of(agent, shared): [] for agent in environment.possible_agents
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
                if env.choosing:  # by the order funcsched all wait for the first function
                    mask = observations["queue"]["mask"]
                    row = 0 if mask[0] > 0.0 else int(np.flatnonzero(mask)[-1])
                else:
                    decision = Decision(env, objective, scheduler.tiers, rng)
                    placement = decision.placement(scheduler.choose(decision))
                    row = row_of(environment.layout.tiers, decision.function.memory_req, *placement)
            for actions in environment.actions_for(row):
                by_agent = dict(zip(observations, actions, strict=True))
                if number % every == 0:
                    for agent, action in by_agent.items():
                        step = {Columns.OBS: observations[agent], Columns.ACTIONS: action}
                        steps[policy_of(agent, shared)].append(step)
                observations, rewards, *_ = environment.step(by_agent)
            number += len(rewards) > 0
        episode += 1
    environment.close()
    return {
        policy: tree.map_structure(lambda *rows: np.stack(rows), *made)
        for policy, made in steps.items()
        if made
    }


def check_teachers(settings: TrainSettings, world: Mapping[str, Any]) -> None:
    """Refuses teachers that cannot be cloned, as far as their first decisions show.

    Those that a search chooses from, too.

    Raises:
        InputError: there is no such baseline, or agents cannot do what it does.
    """
    space = {} if settings.tune is None else settings.tune.space
    for key in ("teacher", "warm_start"):
        teachers = {f"algo.{key}": [getattr(settings.algo, key, None)]}
        if key in space:
            teachers[f"tune.space.{key}"] = [*extremes(space[key])]
        for where, names in teachers.items():
            for name in filter(None, names):
                with located(where):
                    demonstrate(name, 1, world)


class Lesson:
    """A teacher's decisions: most to learn from, the last ones held out to be judged by.

    Args:
        teacher, world: see `demonstrate`.
        settings: shares and sizes.
        seed: of the episodes, and of the order in which decisions are learned.
    """

    def __init__(
        self, teacher: str, settings: CloningSettings, world: Mapping[str, Any], seed: int
    ) -> None:
        self._settings = settings
        self._rng = np.random.default_rng(seed)
        self._learned, self._held_out = {}, {}
        demonstrated = demonstrate(teacher, settings.decisions, world, settings.every, seed)
        for policy, columns in demonstrated.items():
            rows = len(columns[Columns.ACTIONS])
            first = rows - max(1, round(settings.held_out * rows))
            tensors = tree.map_structure(torch.from_numpy, columns)
            self._learned[policy] = _rows(tensors, slice(first))
            self._held_out[policy] = _rows(tensors, slice(first, rows))

    def teach(
        self, modules: MultiRLModule, optimizer_of: Callable[[str], Optimizer]
    ) -> dict[str, float]:
        """Goes through the decisions `epochs` times, by the cross-entropy of the masked logits.

        All policies take as many steps; those with fewer decisions repeat them. No critic changes.

        Returns:
            By policy the loss at its last step, in nats.
        """
        losses, optimizers = {}, {policy: optimizer_of(policy) for policy in self._learned}
        most = max(len(columns[Columns.ACTIONS]) for columns in self._learned.values())
        size = min(self._settings.batch_size, most)
        for _ in range(self._settings.epochs):
            for policy, columns in self._learned.items():
                order = self._rng.permutation(len(columns[Columns.ACTIONS]))
                for first in range(0, most, size):
                    rows = order.take(range(first, first + size), mode="wrap")
                    each = [
                        cross_entropy(logits, chosen, ignore_index=NO_PLACE, reduction="sum")
                        for logits, chosen in _parts(modules[policy], _rows(columns, rows))
                    ]
                    loss = torch.stack(each).sum() / size
                    optimizers[policy].zero_grad()
                    loss.backward()
                    optimizers[policy].step()
                    losses[policy] = loss.item()
        return losses

    @torch.inference_mode()
    def agreement(self, modules: MultiRLModule) -> dict[str, float]:
        """Share of the decisions held out that each policy's likeliest action repeats."""
        shares = {}
        for policy, columns in self._held_out.items():
            same = [
                (logits.argmax(dim=-1) == chosen) | (chosen == NO_PLACE)
                for logits, chosen in _parts(modules[policy], columns)
            ]
            shares[policy] = float(torch.stack(same).all(dim=0).float().mean())
        return shares


def _rows(columns: Columnar, rows: slice | np.ndarray) -> Columnar:
    return tree.map_structure(lambda column: column[rows], columns)


def _parts(module: RLModule, columns: Columnar) -> Iterable[tuple[Tensor, Tensor]]:
    """Logits and actions of each choice: of one, or of bid and place.

    The place of a server type that bids 0 does not matter: it is NO_PLACE.
    """
    actions = columns[Columns.ACTIONS]
    logits = module.policy(columns[Columns.OBS]).split(parts_of(module.action_space), dim=1)
    return zip(logits, actions.reshape(len(actions), -1).unbind(dim=1), strict=True)


class Cloning(FaultTolerantPPO):
    """`algo=bc`: an iteration goes through the teacher's decisions, then plays to measure its J.

    Of PPO it has the learner, with its networks and optimisers, and no loss. In its configuration
    `lesson` makes the `Lesson`.
    """

    def setup(self, config: PPOConfig) -> None:
        """Asks the teacher."""
        super().setup(config)
        self._lesson = config.lesson()

    def training_step(self) -> None:
        """Learn, judge, play."""
        self.learner_group.foreach_learner(self._learn)
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

    def _learn(self, learner: Learner) -> None:
        losses = self._lesson.teach(learner.module, learner.get_optimizer)
        for policy, share in self._lesson.agreement(learner.module).items():
            learned = {
                "cloning_loss": losses[policy],
                "agreement": share,
                "default_optimizer_learning_rate": self.config.lr,
            }
            self.metrics.log_dict(learned, key=(LEARNER_RESULTS, policy), window=1)


def warm_start(
    algorithm: Algorithm, settings: TrainSettings, world: Mapping[str, Any]
) -> dict[str, float]:
    """Lets the policies of a new algorithm begin as `algo.warm_start` decides, if that is set.

    Returns:
        By policy the share of decisions, of those it did not learn from, that it repeats.
    """
    algo, seed = settings.algo, algorithm.config.seed
    if isinstance(algo, DQNSettings | BCSettings) or algo.warm_start is None:
        return {}
    cloning = algo.cloning
    lesson = Lesson(algo.warm_start, cloning, world, seed)

    update_global_seed_if_necessary("torch", seed)
    modules = algorithm.config.rl_module_spec.build()
    lesson.teach(modules, lambda policy: Adam(modules[policy].parameters(), cloning.learning_rate))
    agreement = lesson.agreement(modules)
    weights = {}
    for policy, module in modules.items():
        module.policy.soften(cloning.temperature)
        weights[policy] = module.policy.state_dict()

    def take_over(learner: Learner) -> None:
        for policy, cloned in weights.items():
            module = learner.module[policy].unwrapped()
            module.policy.load_state_dict(cloned)
            if isinstance(module, TargetNetworkAPI):
                for source, target in module.get_target_network_pairs():
                    target.load_state_dict(source.state_dict())

    algorithm.learner_group.foreach_learner(take_over)
    algorithm.env_runner_group.sync_weights(
        from_worker_or_learner_group=algorithm.learner_group, inference_only=True
    )
    return agreement
