"""What evaluate.py would say of policies that still learn: they play the held-out episodes."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from agents.baseline import make_baselines
from agents.learned.evaluator import Evaluated
from agents.learned.network import SetPolicyNetwork
from agents.learned.policy_file import policy_of
from agents.learned.sampler import Sampler
from env.base.errors import InputError, located
from env.learn.batch import Batch
from env.learn.world import World
from env.score.metrics import FinishedEpisode
from env.score.reward import check_world
from env.sim.declared.episode import EpisodeWorkload
from env.sim.declared.hardware import ClusterConfig
from env.sim.declared.images import Images
from env.sim.declared.ordering import FIRST_COME
from env.workloads.generator import WorkloadGenerator
from env.workloads.source import is_funded
from evaluation.contest import Contest, Task
from evaluation.statistics import CONFIDENCE, compared
from run.settings import HeldOutSettings

FRAGMENT = 16
"""Decisions of every environment between looks at which episodes have ended."""


class EvaluatedWorld(World):
    """The world that evaluate.py plays in: nothing varies, and its episodes are the held-out ones.

    Args:
        config: of the world that is trained in, as `World` takes it.
        settings: which episodes, and which hand-written schedulers.

    Raises:
        InputError: what arrives cannot be made or fits no server, or a scheduler is unknown, is a
            reference, or does not work in this world.
    """

    def __init__(self, config: Mapping[str, Any], settings: HeldOutSettings) -> None:
        self._settings = settings
        workload = {**config["workload"], "seed": settings.seed}
        super().__init__({**config, "workload": workload, "variation": None})
        with located("held_out"):
            queued, funded = self.rules.order is not None, is_funded(config["workload"])
            self._baselines = make_baselines(settings.baselines, queued, funded=funded)
            for each in self._baselines:
                if each.kind == "reference":
                    raise InputError(f"baselines: '{each.name}' is a reference, not a baseline")
        if isinstance(self.generator, WorkloadGenerator):
            self.templates = self.generator.evaluation_templates(0)
            cold_start = self.generator.config.container_cold_start
            self.images = Images.by_name(self.templates, cold_start)
            check_world(self.templates, self.cluster)
        self.workloads: list[EpisodeWorkload] = []  # of the episodes, by their numbers
        functions = 0
        while len(self.workloads) < settings.episodes and (
            len(self.workloads) < 2 or functions < settings.functions
        ):
            self.workloads.append(self.generator.evaluation_episode(len(self.workloads)))
            functions += sum(each.function_count for each in self.workloads[-1].templates)

    @cached_property
    def undecided(self) -> dict[int, float]:
        """J of the episodes in which agents have no choice, by their numbers."""
        ends = map(self.undecided_end, self.workloads)
        return {
            number: FinishedEpisode(end, self.objective, None).J
            for number, end in enumerate(ends)
            if end is not None
        }

    @cached_property
    def decided(self) -> list[int]:
        """Numbers of the other episodes: environment i of a batch plays that of place i."""
        return [each for each in range(len(self.workloads)) if each not in self.undecided]

    def training_episode(
        self, seed: int, worker: int, environment: int, episode: int
    ) -> tuple[EpisodeWorkload, ClusterConfig]:
        """What a batch of this world plays, again and again."""
        return self.workloads[self.decided[environment]], self.cluster

    def baselines(self) -> dict[str, list[float]]:
        """J of the hand-written schedulers in every episode; they play as in evaluate.py."""
        # Agents that choose have no part in this.
        queued = self.rules.order is not None
        contest = Contest(
            self._baselines,
            self.cluster,
            {self._settings.seed: self.generator},
            self.objective,
            optimum=None,
            rules=replace(self.rules, order=FIRST_COME) if queued else self.rules,
            deadlines=(),
            late=np.inf,
        )
        J: dict[str, list[float]] = {each.name: [] for each in self._baselines}
        for number in range(len(self.workloads)):
            for row, _ in contest.play(Task("", self._settings.seed, number, tuple(J), False)):
                J[row.policy].append(row.metrics["J"])
        return J


class HeldOut:
    """The held-out episodes of a world, and what the best rule comes to in them."""

    def __init__(self, config: Mapping[str, Any], settings: HeldOutSettings) -> None:
        self._config, self._settings = config, settings
        baselines = EvaluatedWorld(config, settings).baselines()
        self.rule = min(baselines, key=lambda name: np.mean(baselines[name]))
        self.rule_J = np.array(baselines[self.rule])  # (N,) in every episode

    @cached_property
    def _world(self) -> EvaluatedWorld:
        """Made where policies play, which may be another process."""
        return EvaluatedWorld(self._config, self._settings)

    def evaluate(self, networks: Mapping[str, SetPolicyNetwork]) -> Evaluated:
        """Compares policies with the rule, see `play`."""
        J, J_rule = self.play(networks), float(self.rule_J.mean())
        percent = compared(J, self.rule_J, CONFIDENCE).difference.over(J_rule / 100.0)
        return Evaluated(float(J.mean()), J_rule, percent.value, percent.ci_low, percent.ci_high)

    def play(self, networks: Mapping[str, SetPolicyNetwork]) -> np.ndarray:
        """(N,) J of policies in every episode, with their likeliest actions as in evaluate.py.

        Everything random is its own: training draws the same whether or not this is played.
        """
        world = self._world
        J = np.array([world.undecided.get(each, np.nan) for each in range(len(world.workloads))])
        left = set(world.decided)
        if not left:
            return J
        sampler = Sampler(
            Batch(world, len(left), seed=0, worker=0),
            partial(policy_of, share_type_policy=world.agents.share_type_policy),
            np.random.default_rng(0),
        )
        while left:
            sampler.play(networks, FRAGMENT, explore=False)
            for ended in sampler.batch.ended:
                J[world.decided[ended.environment]] = ended.metrics["J"]
                left.discard(world.decided[ended.environment])
            sampler.batch.ended.clear()
        return J

    def of_rule(self) -> str:
        """The rule, in words."""
        return (
            f"{self.rule}, the best of {len(self._settings.baselines)} hand-written schedulers: "
            f"J {self.rule_J.mean():.4g} over {len(self.rule_J)} held-out episodes"
        )

    def of_policy(self, result: Evaluated) -> str:
        """What policies are against the rule, in words."""
        verdict = "neither shown to be better nor worse"
        if result.difference_high < 0 or result.difference_low > 0:
            verdict = "better" if result.difference_high < 0 else "worse"
        return (
            f"{verdict} than {self.rule}, the best baseline: J {result.J:.4g} against "
            f"{result.J_rule:.4g}, {result.as_text()} over {len(self.rule_J)} held-out episodes"
        )
