"""Searches the weights of `greedy_objective` for one world and objective, on training episodes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Self

import numpy as np
from pydantic import Field, model_validator

from env.base.errors import InputError
from env.base.schema import Strict
from env.learn.training_episodes import TrainingEpisodes
from env.score.greedy_play import buffers_of, play_greedy
from env.score.greedy_score import MOST_ECONOMY, MOST_WEIGHT, Economy, ScoreWeights, Weight
from env.score.reward import Objective, arrived_objective
from env.sim.assembly.new_state import reset
from env.sim.view.raw_env import RawEnv
from env.workloads.source import is_trace
from evaluation.statistics import Estimate, estimate
from run.settings import RunName

UNTUNED = ScoreWeights(finish=1.0, delay=1.0, rent=1.0)
"""Of the baseline `greedy_objective`: what a search has to improve on."""
FIRST_SPREAD = 0.7
"""Standard deviation of the logarithm of weights drawn near good ones (about a factor of 2)."""
DIGITS = 3
"""Significant digits of weights."""
CONFIDENCE = 0.95
"""Of the intervals."""


class SearchSettings(Strict):
    """How much is searched (conf/search_baseline.yaml explains each)."""

    candidates: Annotated[int, Field(ge=2, le=100_000)]
    episodes: Annotated[int, Field(ge=2, le=100_000)]
    rounds: Annotated[int, Field(ge=1, le=16)]
    finish: tuple[Weight, Weight]
    rent: tuple[Weight, Weight]
    rent_per_core: tuple[Weight, Weight]
    economy: tuple[Economy, Economy]
    demand: tuple[Weight, Weight]
    own_use: tuple[Weight, Weight]
    arrival_use: tuple[Weight, Weight]
    arrival_horizon: tuple[Weight, Weight]
    known_use: tuple[Weight, Weight]

    @model_validator(mode="after")
    def _ranges(self) -> Self:
        for name, (low, high) in self.ranges.items():
            if low > high or (low == 0) != (high == 0):
                raise ValueError(
                    f"{name} is [least, most], both above 0, or [0, 0] to leave it out, "
                    f"found [{low}, {high}]"
                )
        if all(low == high for low, high in self.ranges.values()):
            raise ValueError(
                "nothing to search: a weight is needed as [least, most] with least below most"
            )
        if self.candidates < 2**self.rounds:
            raise ValueError(
                f"candidates halve every round and end with 2 or more: {self.rounds} rounds need "
                f"{2**self.rounds}, found {self.candidates}"
            )
        return self

    @property
    def ranges(self) -> dict[str, tuple[float, float]]:
        """By the name of a weight, what it is drawn from; those left out are missing."""
        weights = {name: value for name, value in self if name in ScoreWeights.model_fields}
        return {name: value for name, value in weights.items() if value != (0, 0)}

    @property
    def sizes(self) -> list[tuple[int, int]]:
        """(candidates, episodes) of every round."""
        return [
            (self.candidates >> number, self.episodes << number) for number in range(self.rounds)
        ]

    @property
    def plays(self) -> int:
        """Episodes that the whole search plays."""
        (count, episodes), *later = self.sizes
        halves = sum(count // 2 * (episodes // 2 + episodes) for count, episodes in later)
        return count * episodes + halves + 2 * self.sizes[-1][1]


class SearchCommand(Strict):
    """Everything `search_baseline.py` is told; conf/search_baseline.yaml explains each."""

    seed: Annotated[int, Field(ge=0, lt=2**32)]
    name: RunName | None
    search: SearchSettings
    objective: Objective
    cluster: dict[str, Any]
    workflow: dict[str, Any]
    workload: dict[str, Any]
    variation: dict[str, Any]

    def training_episodes(self) -> TrainingEpisodes:
        """The episodes that are played.

        Raises:
            InputError: there are none, or they are requests of a trace, whose work is drawn.
        """
        if is_trace(self.workload):
            raise InputError("workload: weights are searched on workflows, found a trace")
        return TrainingEpisodes(dict(self))


@dataclass
class Candidate:
    """Weights, and the J of every training episode that they have played, by its number."""

    weights: ScoreWeights
    js: dict[int, float] = field(default_factory=dict)

    @property
    def mean(self) -> float:
        """Mean J."""
        return float(np.mean(list(self.js.values())))


@dataclass(frozen=True)
class Found:
    """What a search came to.

    Attributes:
        weights: the best.
        tried: number of weights that were played.
        searched: number of training episodes of the last round.
        played: episodes, those of all weights added up.
        j, untuned: J of the best and of the untuned weights on `searched` further episodes.
        difference: J of the best - J of the untuned weights on these, paired.
    """

    weights: ScoreWeights
    tried: int
    searched: int
    played: int
    j: Estimate
    untuned: Estimate
    difference: Estimate


@dataclass
class WeightSearch:
    """Random search with successive halving, refined around what has been good so far.

    The first round draws weights log-uniformly. Every further round plays twice as many episodes
    with half as many candidates: half of these are the best of the round before, the others are
    drawn near them, twice as near every round. All candidates of a round play the same episodes.
    The score only ranks nodes, so its scale is free: delay is 1. Source of the halving: Jamieson,
    Talwalkar, AISTATS 2016.

    Attributes:
        seed: of the weights that are drawn and of the training episodes.
        tell: called after every episode with the number of episodes played so far.
        played: that number.
    """

    episodes: TrainingEpisodes
    objective: Objective
    settings: SearchSettings
    seed: int
    tell: Callable[[int], None]
    played: int = 0

    def __post_init__(self) -> None:
        self._rng = np.random.default_rng(self.seed)

    def run(self) -> Found:
        """Searches, then measures the best on as many episodes that no candidate has played."""
        untuned = Candidate(UNTUNED)
        pool, tried, spread = [untuned], 1, FIRST_SPREAD
        for count, episodes in self.settings.sizes:
            if tried == 1:
                new = [self._anywhere() for _ in range(count - 1)]
            else:
                pool = sorted(pool, key=lambda candidate: candidate.mean)[: count // 2]
                new = [self._near(candidate, spread) for candidate in pool]
                spread /= 2
            pool = pool + new
            tried += len(new)
            self._play(pool, range(episodes))
        best = min(pool, key=lambda candidate: candidate.mean)
        fresh = range(episodes, 2 * episodes)
        self._play([best, untuned], fresh)
        j, other = (np.array([each.js[number] for number in fresh]) for each in (best, untuned))
        measured = [estimate(values, CONFIDENCE) for values in (j, other, j - other)]
        return Found(best.weights, tried, episodes, self.played, *measured)

    def _anywhere(self) -> Candidate:
        """Weights of the configured ranges."""
        ranges = np.log(list(self.settings.ranges.values()))
        drawn = np.exp(self._rng.uniform(*ranges.T))
        return _candidate(dict(zip(self.settings.ranges, drawn, strict=True)))

    def _near(self, candidate: Candidate, spread: float) -> Candidate:
        """Weights that differ a little, but for what has one value, or none as UNTUNED's demand."""
        ranges = self.settings.ranges
        factors = np.exp(self._rng.normal(0.0, spread, len(ranges)))
        near = {}
        for (name, (least, most)), factor in zip(ranges.items(), factors, strict=True):
            weight = getattr(candidate.weights, name)
            if weight is not None:
                bound = MOST_ECONOMY if name == "economy" else MOST_WEIGHT
                near[name] = min(weight * factor, bound) if least < most else least
        return _candidate(near)

    def _play(self, candidates: Sequence[Candidate], episodes: range) -> None:
        """Has every candidate play those of the training episodes that it has not played."""
        for number in episodes:
            waiting = [candidate for candidate in candidates if number not in candidate.js]
            if not waiting:
                continue
            workload, cluster = self.episodes.training_episode(self.seed, 0, 0, number)
            state = RawEnv(workload.arrival_times, workload.templates, cluster).state
            buffers = buffers_of(state)
            for candidate in waiting:
                weights = candidate.weights.by_objective(self.objective)
                reset(state)
                play_greedy(state, weights, *buffers)
                candidate.js[number] = arrived_objective(state, self.objective.weights)
                self.played += 1
            self.tell(self.played)


def _candidate(weights: Mapping[str, float]) -> Candidate:
    """Weights of few digits, so that a file shows exactly what was played."""
    rounded = {name: float(f"{weight:.{DIGITS}g}") for name, weight in weights.items()}
    return Candidate(ScoreWeights.model_validate({"finish": 0, "delay": 1, "rent": 0} | rounded))
