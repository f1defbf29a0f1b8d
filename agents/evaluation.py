"""Evaluation: every scheduler on the same held-out episodes, and how they compare."""

import csv
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from scipy import stats

from agents.scheduler import Kind, Scheduler, play
from env.reward import METRICS, Objective, episode_metrics
from env.sim.cluster import ClusterConfig
from env.sim.episode_file import episode_of, write_episode
from env.sim.raw_env import RawEnv
from env.workloads.generator import WorkloadGenerator

CONFIDENCE = 0.95
COLUMNS = (*METRICS, "decisions_per_s", "J_over_best_baseline")
SCHEDULER_KEY = 2
"""First word of the spawn key of what schedulers draw; 0 and 1 are those of the episodes."""


@dataclass(frozen=True)
class Interval:
    """A mean with its 95% confidence interval (Student's t over episodes)."""

    mean: float
    ci_low: float
    ci_high: float

    @property
    def half_width(self) -> float:
        """What stands behind a ±."""
        return (self.ci_high - self.ci_low) / 2


def interval(values: Sequence[float]) -> Interval:
    """Mean and interval; a single value has an interval of no width."""
    mean = float(np.mean(values))
    if len(values) < 2:
        return Interval(mean, mean, mean)
    half = stats.sem(values) * stats.t.ppf(0.5 + CONFIDENCE / 2, len(values) - 1)
    return Interval(mean, mean - float(half), mean + float(half))


Results = dict[str, list[dict[str, float]]]
"""Per policy one row of metrics per episode."""


def evaluate_all(
    schedulers: Sequence[Scheduler],
    cluster: ClusterConfig,
    generator: WorkloadGenerator,
    objective: Objective,
    episodes: int,
    seed: int,
    record_to: Path | None,
    tell: Callable[[str, int, dict[str, float]], None],
) -> Results:
    """Plays held-out episodes 0 to `episodes` - 1 with every scheduler.

    Args:
        schedulers: who plays.
        cluster: the hardware.
        generator: of the episodes.
        objective: what J is made of.
        episodes: how many.
        seed: of what schedulers draw; the episodes have the seed of the generator.
        record_to: folder for episode files, made if it is missing; None for no files.
        tell: called after every episode with a scheduler's name, the episode's number and metrics.
    """
    results: Results = {scheduler.name: [] for scheduler in schedulers}
    if record_to is not None:
        record_to.mkdir(parents=True, exist_ok=True)
    for index in range(episodes):
        workload = generator.evaluation_episode(index)
        for scheduler in schedulers:
            record = record_to is not None
            env = RawEnv(workload.arrival_times, workload.templates, cluster, seed, record)
            started = time.perf_counter()
            draws = np.random.SeedSequence(seed, spawn_key=(SCHEDULER_KEY, index))
            play(env, scheduler, objective, draws)
            seconds = time.perf_counter() - started
            row = {
                **episode_metrics(env.state, objective),
                "decisions_per_s": env.decisions / seconds,
            }
            results[scheduler.name].append(row)
            if record_to is not None:
                name = f"{scheduler.name}_{index:04d}"
                description = f"held-out episode {index} of seed {seed}, placed by {scheduler.name}"
                write_episode(record_to / f"{name}.json", episode_of(env, name, description))
            tell(scheduler.name, index, row)
    return results


def summarise(results: Results, kinds: Mapping[str, Kind]) -> list[dict[str, str | Interval]]:
    """A row a policy, best J first: `policy`, `kind`, then an interval for each of `COLUMNS`.

    `J_over_best_baseline` is the paired difference of J to the baseline with the lowest mean J
    (below 0: better); without baselines, to the best learned policy, and else the best reference.

    Args:
        results: of every scheduler.
        kinds: what each of them is, by name.
    """
    means = {name: np.mean([row["J"] for row in rows]) for name, rows in results.items()}
    ranks: tuple[Kind, ...] = ("baseline", "learned", "reference")
    best = min(results, key=lambda name: (ranks.index(kinds[name]), means[name]))
    summary: list[dict[str, str | Interval]] = []
    for name in sorted(results, key=lambda name: means[name]):
        rows = results[name]
        differences = [
            row["J"] - other["J"] for row, other in zip(rows, results[best], strict=True)
        ]
        columns = {key: interval([row[key] for row in rows]) for key in COLUMNS[:-1]}
        summary.append(
            {"policy": name, "kind": kinds[name], **columns, COLUMNS[-1]: interval(differences)}
        )
    return summary


def write_summary(folder: Path, summary: list[dict[str, str | Interval]]) -> None:
    """`summary.json`, a list of rows, and `summary.csv`, the same with three columns a metric."""
    rows = [
        {key: vars(cell) if isinstance(cell, Interval) else cell for key, cell in row.items()}
        for row in summary
    ]
    (folder / "summary.json").write_text(json.dumps(rows, indent=2) + "\n")
    parts = ("mean", "ci_low", "ci_high")
    with (folder / "summary.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        headings = [f"{key}_{part}" for key in COLUMNS for part in parts]
        writer.writerow(["policy", "kind", *headings])
        for row in rows:
            cells = [row[key][part] for key in COLUMNS for part in parts]  # type: ignore[index]
            writer.writerow([row["policy"], row["kind"], *cells])


class EpisodeTable:
    """`episodes.csv`: a row a policy and episode, on disk as soon as it is known."""

    def __init__(self, folder: Path) -> None:
        self._file = (folder / "episodes.csv").open("w", newline="")
        self._writer = csv.writer(self._file)
        self._writer.writerow(["policy", "episode", *COLUMNS[:-1]])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._file.close()

    def add(self, policy: str, episode: int, row: dict[str, float]) -> None:
        """Writes one row."""
        self._writer.writerow([policy, episode, *(row[key] for key in COLUMNS[:-1])])
        self._file.flush()
