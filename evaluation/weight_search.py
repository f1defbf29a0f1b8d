"""Searches the weights of `greedy_objective` for one world and objective, on training episodes."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from pydantic import AfterValidator, Field

from env.base.errors import InputError
from env.base.schema import Strict
from env.learn.training_episodes import TrainingEpisodes
from env.score.greedy_score import (
    MOST_ECONOMY,
    MOST_WEIGHT,
    Economy,
    ScoreWeights,
    Weight,
    buffers_of,
    play_greedy,
)
from env.score.reward import Objective, arrived_objective
from env.sim.assembly.new_state import reset
from env.sim.view.raw_env import RawEnv
from env.workloads.source import is_trace
from evaluation.statistics import CONFIDENCE, Estimate, estimate
from run.settings import RunName

UNTUNED = ScoreWeights(finish=1.0, delay=1.0, rent=1.0)
"""Of the baseline `greedy_objective`: what a search has to improve on."""
FIRST_SPREAD = 0.7
"""Standard deviation of the logarithm of weights drawn near good ones (about a factor of 2)."""
DIGITS = 3
"""Significant digits of weights."""


def _range(bounds: tuple[float, float]) -> tuple[float, float]:
    low, high = bounds
    if low > high or (low == 0) != (high == 0):
        raise ValueError(f"[least, most] are both above 0, or [0, 0], found [{low}, {high}]")
    return bounds


Range = Annotated[tuple[Weight, Weight], AfterValidator(_range)]
"""What a weight is drawn from; [0, 0] leaves it out."""


class SearchSettings(Strict):
    """How much is searched (conf/search_baseline.yaml explains each)."""

    candidates: Annotated[int, Field(ge=2, le=100_000)]
    episodes: Annotated[int, Field(ge=2, le=100_000)]
    rounds: Annotated[int, Field(ge=1, le=16)]
    finish: Range
    rent: Range
    rent_per_core: Range
    economy: Annotated[tuple[Economy, Economy], AfterValidator(_range)]
    demand: Range
    own_use: Range
    arrival_use: Range
    arrival_horizon: Range
    known_use: Range

    @property
    def ranges(self) -> dict[str, tuple[float, float]]:
        """By the name of a weight, what it is drawn from; those left out are missing."""
        weights = {name: value for name, value in self if name in ScoreWeights.model_fields}
        return {name: value for name, value in weights.items() if value != (0, 0)}

    @property
    def sizes(self) -> list[tuple[int, int]]:
        """(candidates, episodes) of every round."""
        return [
            (max(2, self.candidates >> number), self.episodes << number)
            for number in range(self.rounds)
        ]

    @property
    def plays(self) -> int:
        """Episodes that the whole search plays."""
        (count, episodes), *later = self.sizes
        halves = sum(count // 2 * (episodes // 2 + episodes) for count, episodes in later)
        return count * episodes + halves + 2 * self.sizes[-1][1]


class SearchCommand(Strict):
    """The settings of `search_baseline.py`; conf/search_baseline.yaml explains each."""

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


@dataclass(frozen=True)
class SearchResult:
    """What a search came to."""

    weights: ScoreWeights  # the best
    tried: int  # number of weights that were played
    searched: int  # number of training episodes of the last round
    played: int  # episodes, those of all weights added up
    j: Estimate  # J of the best weights on `searched` further episodes
    untuned: Estimate  # J of the untuned weights on the same
    difference: Estimate  # J of the best - J of the untuned weights on these, paired


@dataclass
class WeightSearch:
    """Random search with successive halving, refined around what has been good so far.

    The first round draws weights log-uniformly. Every further round plays twice as many episodes
    with half as many candidates: half of these are the best of the round before, the others are
    drawn near them, twice as near every round. All candidates of a round play the same episodes.
    The score only ranks nodes, so its scale is free: delay is 1. Source of the halving: Jamieson,
    Talwalkar, AISTATS 2016.

    """

    episodes: TrainingEpisodes
    objective: Objective
    settings: SearchSettings
    seed: int  # of the weights that are drawn and of the training episodes
    tell: Callable[[int], None]  # called after every episode with the number of those played so far
    played: int = 0  # that number

    def __post_init__(self) -> None:
        self._rng = np.random.default_rng(self.seed)
        # By weights, J of every training episode that they have played, by its number.
        self._js: defaultdict[ScoreWeights, dict[int, float]] = defaultdict(dict)

    def run(self) -> SearchResult:
        """Searches, then measures the best on as many episodes that no candidate has played."""
        pool, tried, spread = [UNTUNED], 1, FIRST_SPREAD
        for count, episodes in self.settings.sizes:
            if tried == 1:
                new = [self._anywhere() for _ in range(count - 1)]
            else:
                pool = sorted(pool, key=self._mean)[: count // 2]
                new = [self._near(weights, spread) for weights in pool]
                spread /= 2
            pool = pool + new
            tried += len(new)
            self._play(pool, range(episodes))
        best = min(pool, key=self._mean)
        fresh = range(episodes, 2 * episodes)
        self._play([best, UNTUNED], fresh)
        j, other = (
            np.array([self._js[weights][number] for number in fresh]) for weights in (best, UNTUNED)
        )
        measured = [estimate(values, CONFIDENCE) for values in (j, other, j - other)]
        return SearchResult(best, tried, episodes, self.played, *measured)

    def _mean(self, weights: ScoreWeights) -> float:
        return float(np.mean(list(self._js[weights].values())))

    def _anywhere(self) -> ScoreWeights:
        """Weights of the configured ranges."""
        ranges = self.settings.ranges
        drawn = np.exp(self._rng.uniform(*np.log(list(ranges.values())).T))
        return _rounded(dict(zip(ranges, drawn, strict=True)))

    def _near(self, weights: ScoreWeights, spread: float) -> ScoreWeights:
        """Weights that differ a little, but for what has one value, or none as UNTUNED's demand."""
        ranges = self.settings.ranges
        factors = np.exp(self._rng.normal(0.0, spread, len(ranges)))
        near = {}
        for (name, (least, most)), factor in zip(ranges.items(), factors, strict=True):
            weight = getattr(weights, name)
            if weight is not None:
                bound = MOST_ECONOMY if name == "economy" else MOST_WEIGHT
                near[name] = min(weight * factor, bound) if least < most else least
        return _rounded(near)

    def _play(self, pool: Sequence[ScoreWeights], episodes: range) -> None:
        """Has all weights play those of the training episodes that they have not played."""
        for number in episodes:
            waiting = [weights for weights in pool if number not in self._js[weights]]
            if not waiting:
                continue
            workload, cluster = self.episodes.training_episode(self.seed, 0, 0, number)
            state = RawEnv(workload.arrival_times, workload.templates, cluster).state
            buffers = buffers_of(state)
            for weights in waiting:
                reset(state)
                play_greedy(state, weights.by_objective(self.objective), *buffers)
                self._js[weights][number] = arrived_objective(state, self.objective.weights)
            self.played += len(waiting)
            self.tell(self.played)


def _rounded(weights: Mapping[str, float]) -> ScoreWeights:
    """Weights of few digits, so that a file shows exactly what was played."""
    rounded = {name: float(f"{weight:.{DIGITS}g}") for name, weight in weights.items()}
    return ScoreWeights.model_validate({"finish": 0, "delay": 1, "rent": 0} | rounded)
