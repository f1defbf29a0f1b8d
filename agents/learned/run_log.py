"""What a training run tells while it goes: a progress line, TensorBoard events and metrics.csv."""

import csv
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from ray.rllib.utils.metrics import ENV_RUNNER_RESULTS, LEARNER_RESULTS, NUM_ENV_STEPS_SAMPLED
from rich.console import Console
from rich.live import Live
from torch.utils.tensorboard import SummaryWriter

from agents.learned.callbacks import EPISODE_METRICS
from agents.learned.checkpoint import RunState
from env.reward import METRICS

# Our names of what each policy's learner reports, and RLlib's, which differ between algorithms: the
# first that is there counts. A learner reports what it has.
LEARNER_METRICS = {
    "loss/{}/policy": ("policy_loss", "mean_pi_loss"),
    "loss/{}/value": ("vf_loss_unclipped", "mean_vf_loss", "vf_loss"),
    "loss/{}/q": ("qf_loss",),
    "loss/{}/cloning": ("cloning_loss",),
    "agreement/{}": ("agreement",),
    "explained_variance/{}": ("vf_explained_var",),
    "entropy/{}": ("entropy",),
    "KL/{}": ("mean_kl_loss",),
    "q/{}": ("qf_mean",),
    "learning_rate/{}": ("default_optimizer_learning_rate",),
    "entropy_weight/{}": ("curr_entropy_coeff",),
}
# Seconds between lines where there is no terminal to redraw a line on.
LINE_EVERY = 10.0


def episodes_of(result: Mapping[str, Any]) -> dict[str, list[float]]:
    """The metrics of the episodes that finished in an iteration, one value each; maybe none."""
    series = result.get(ENV_RUNNER_RESULTS, {}).get(EPISODE_METRICS, {})
    # RLlib gives an empty series as the number NaN.
    return {name: values for name, values in series.items() if isinstance(values, list) and values}


def env_steps_of(result: Mapping[str, Any]) -> int:
    """Environment steps sampled in an iteration; 0 when every runner was lost in it."""
    return int(result.get(ENV_RUNNER_RESULTS, {}).get(NUM_ENV_STEPS_SAMPLED, 0))


def measures_of(result: Mapping[str, Any], seconds: float) -> dict[str, float]:
    """What an iteration measured, under the names that people read.

    Args:
        result: of `Algorithm.train()`.
        seconds: that it took.
    """
    measures = {name: float(np.mean(values)) for name, values in episodes_of(result).items()}
    measures["env_steps_per_s"] = env_steps_of(result) / seconds
    for policy, learned in result.get(LEARNER_RESULTS, {}).items():
        for name, keys in LEARNER_METRICS.items():
            for key in [key for key in keys if key in learned][:1]:
                measures[name.format(policy)] = float(learned[key])
    return measures


class RunLog:
    """Writes every iteration of a run; a context manager."""

    def __init__(self, folder: Path, policies: Iterable[str]) -> None:
        self._writer = SummaryWriter(str(folder))
        self._file = (folder / "metrics.csv").open("w", newline="")
        learned = [name.format(policy) for policy in policies for name in LEARNER_METRICS]
        self._table = csv.DictWriter(
            self._file,
            ["iteration", "env_steps", "seconds", *METRICS, "env_steps_per_s", *learned],
            extrasaction="ignore",
        )
        self._table.writeheader()
        self._console = Console()
        self._line = Live(console=self._console, transient=False, auto_refresh=False)
        self._last_line = -math.inf

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._line.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._line.stop()
        self._writer.close()
        self._file.close()

    def write(self, measures: dict[str, float], state: RunState, progress: float) -> None:
        """Writes an iteration everywhere.

        Args:
            measures: from `measures_of`.
            state: of the run, this iteration included.
            progress: share of the budget that is used.
        """
        for name, value in measures.items():
            self._writer.add_scalar(name, value, global_step=state.env_steps)
        self._writer.flush()
        row = {
            "iteration": state.iteration,
            "env_steps": state.env_steps,
            "seconds": round(state.seconds, 1),
        }
        self._table.writerow(row | {name: f"{value:.6g}" for name, value in measures.items()})
        self._file.flush()
        left = state.seconds * (1 / progress - 1) if progress < 1 else 0.0
        self._show(
            f"iteration {state.iteration}  "
            f"{measures['env_steps_per_s']:,.0f} env steps/s  "
            f"J {_number(state.J)}  best J {_number(state.best)}  left {_duration(left)}",
            state.seconds,
        )

    def _show(self, line: str, seconds: float) -> None:
        if self._console.is_terminal:
            self._line.update(line, refresh=True)
        elif seconds - self._last_line >= LINE_EVERY:
            self._last_line = seconds
            self._console.print(line, highlight=False)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
