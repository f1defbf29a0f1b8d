"""The recorded episodes of an evaluation, and what charts call their tenants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

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


def recordings_in(folder: Path, summary: Summary, results: pd.DataFrame) -> list[Recording]:
    """Those in the folder of an evaluation: by episode, best policy first."""
    played = results[["seed", "episode"]].drop_duplicates().sort_values(["seed", "episode"])
    found = [
        Recording(
            policy,
            f"{episode} of seed {seed}",
            folder / EPISODES / f"{recording_name(policy, seed, episode)}.json",
        )
        for seed, episode in played.itertuples(index=False)
        for policy in summary.ranked
    ]
    return [recording for recording in found if recording.path.is_file()]


def labels_of(workload: Mapping[str, Any], recordings: Sequence[Recording]) -> dict[str, str]:
    """What charts call tenants: by the shares that are declared of them.

    Those of a trace have none, so the work that their recorded workflows are decides.
    """
    declared = workload.get("tenants")
    if not isinstance(declared, str):
        return tenants.labels(tenants.shares(declared))
    # All policies of an episode have played the same workflows.
    one = {recording.episode: recording.path for recording in recordings}
    return tenants.labels(tenants.work_of(map(read_episode, one.values())))
