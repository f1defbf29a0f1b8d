"""The metrics that only an evaluation has, beside those of env/score/metrics.py."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import methodcaller

import numpy as np

from env.score.metrics import METRICS, FinishedEpisode, Metric
from env.sim.declared.workflow_template import upward_ranks
from env.sim.state.records import PREEMPTED
from env.sim.view.raw_env import RawEnv

SHARES = np.linspace(0.0, 1.0, 201)[1:]
"""Of what arrives, at which the distribution of flow times is kept."""


@dataclass(frozen=True)
class PlayedEpisode(FinishedEpisode):
    """A finished episode, and what only an evaluation knows of it."""

    env: RawEnv  # the simulator at its end
    seconds: float  # of wall time that playing it took
    best_J: float  # of the optimum; NaN where the episode is too large to try every schedule

    @cached_property
    def alone(self) -> np.ndarray:
        """(W,) seconds that every workflow takes alone, from containers that start cold."""
        state, cold = self.state, np.zeros(len(self.state.template_functions))
        if len(state.images):
            cold = state.images["cold_start"][state.waiting["image"]]
        if not cold.any():
            return state.templates["critical_path"][state.arrivals["template"]]
        distinct = {id(template): template for template in self.env.workflow_templates}.values()
        seconds = np.empty(len(state.templates))
        for index, template in enumerate(distinct):
            first = int(state.templates[index]["first_function"])
            own = slice(first, first + template.function_count)
            times = state.template_functions["best_time"][own] + cold[own]
            seconds[index] = upward_ranks(template, times).max()
        return seconds[state.arrivals["template"]]

    def part(self, field: str) -> float:
        """Seconds, mean over functions; NaN where they belong to no image."""
        state = self.state
        if not len(state.images):
            return np.nan
        return float(self._runs[field].sum() / self._functions)

    def preemptions(self) -> float:
        """Runs cut short over workflows."""
        return float((self._runs["outcome"] == PREEMPTED).sum() / len(self.state.arrivals))

    def met(self, deadline: float) -> float:
        """Share of workflows that took at most so many times what they take alone."""
        return float((self.flow_times <= deadline * self.alone).mean())

    @cached_property
    def _runs(self) -> np.ndarray:
        return self.env.runs


def all_metrics(deadlines: Sequence[float], late: float) -> Mapping[str, Metric]:
    """Every metric of an evaluation by name: `METRICS`, then its own.

    Args:
        deadlines: of workflows, in multiples of the time they take alone.
        late: seconds; flow times beyond are counted.
    """
    parts = {
        "server_start": ("server_start_time", "time in which servers start for them"),
        "container_start": ("cold_start_time", "time in which their containers start"),
        "transfer": ("data_transfer_time", "time in which their data arrive"),
        "execution": ("execution_time", "time in containers at work"),
    }
    own: list[Metric] = [
        Metric(
            "flow_time_median",
            "median over workflows of last completion - arrival",
            lambda played: float(np.median(played.flow_times)),
            unit="s",
        ),
        *(
            Metric(
                name, f"mean over functions of the {text}", methodcaller("part", field), unit="s"
            )
            for name, (field, text) in parts.items()
        ),
        Metric("preemptions", "runs cut short / workflows", PlayedEpisode.preemptions),
        Metric(
            "late",
            f"share of workflows with a flow time beyond {late:g} s",
            lambda played: float((played.flow_times > late).mean()),
            shown="share",
        ),
        *(
            Metric(
                f"slo_{deadline:g}",
                f"share of workflows complete within {deadline:g} times what they take alone, "
                "from containers that start cold",
                methodcaller("met", deadline),
                better="higher",
                shown="share",
            )
            for deadline in deadlines
        ),
        Metric(
            "decisions_per_s",
            "functions placed / seconds of wall time",
            lambda played: played.total("decisions") / played.seconds,
            better=None,
            shown="count",
        ),
        Metric(
            "optimum_gap",
            "J / J of the best of all schedules - 1, of episodes small enough to try them all",
            lambda played: played.J / played.best_J - 1,
            shown="share",
        ),
    ]
    return {**METRICS, **{metric.name: metric for metric in own}}
