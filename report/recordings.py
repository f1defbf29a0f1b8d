"""The recorded episodes of an evaluation, and what charts call their tenants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from env.sim.episode.episode_file import read_episode
from evaluation.contest import recording_name
from evaluation.results import EPISODES
from report import tenants
from report.summary import Summary


class Recording(NamedTuple):
    """A policy's recording of an episode, what people call that, and the file."""

    policy: str
    episode: str
    path: Path


def recordings_in(folder: Path, summary: Summary) -> list[Recording]:
    """Those in the folder of an evaluation: by episode, best policy first."""
    episodes = summary.results[["seed", "episode"]].drop_duplicates()
    found = [
        Recording(
            policy,
            f"{episode} of seed {seed}",
            folder / EPISODES / f"{recording_name(policy, seed, episode)}.json",
        )
        for seed, episode in episodes.sort_values(["seed", "episode"]).itertuples(index=False)
        for policy in summary.ranked
    ]
    return [recording for recording in found if recording.path.is_file()]


def labels_of(workload: Mapping[str, Any], recordings: Sequence[Recording]) -> dict[str, str]:
    """What charts call tenants: by the shares that are declared of them.

    Those of a trace have none, so the work that their recorded workflows are decides.
    """
    declared = workload.get("tenants") or {}
    if not isinstance(declared, str):
        return tenants.labels(
            {
                name: float(told["share"] if isinstance(told, Mapping) else told)
                for name, told in declared.items()
            }
        )
    work: Counter[str] = Counter()
    # All policies of an episode have played the same workflows.
    for path in {recording.episode: recording.path for recording in recordings}.values():
        for workflow in read_episode(path).workflows:
            if workflow.tenant is not None:
                declared_work = sum(function.computation for function in workflow.functions)
                work[workflow.tenant] += workflow.work or declared_work
    return tenants.labels(work)
