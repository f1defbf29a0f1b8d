"""What a training writes as it goes: lines of progress, TensorBoard events, metrics.csv."""

import csv
import json
import math
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
from ray.rllib.utils import metrics
from torch.utils.tensorboard import SummaryWriter

from agents.learned.checkpoint import RunState
from agents.learned.env_runner import EPISODE_METRICS
from agents.learned.evaluator import Evaluated
from agents.learned.metrics_file import METRICS, rows_until
from env.base.files import written_whole
from env.score.metrics import METRICS as OF_EPISODES
from env.sim.declared.hardware import cluster_from_config
from env.workloads.assumptions import printed
from env.workloads.source import is_trace
from env.workloads.templates import assumed_of
from env.workloads.traces.trace_samples import assumed_of_trace
from run.composing import leaves
from run.hparams import write_hparams
from run.run_folder import ASSUMPTIONS

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
# Our names of what RLlib counts of remote runners.
RUNNERS = {
    "runners": "num_healthy_workers",
    "runners_restarted": "num_remote_worker_restarts",
    "runners_timed_out": "num_env_runners_dropped_lifetime",
}
# Cards of TensorBoard's page, and what each holds beside curves of their own card, as loss/placer;
# what else episodes report is in episodes_more.
CARDS = {
    "held_out": Evaluated._fields,
    "episodes": ("J_relative", "slowdown", "cost_ratio"),
    "rates": ("env_steps_per_s",),
    "runners": tuple(RUNNERS),
}
CHARTS = {
    "held out": {
        "J, and that of the baseline": ["Multiline", ["held_out/J$", "held_out/J_rule"]],
        "difference to the baseline, %": [
            "Margin",
            ["held_out/difference", "held_out/difference_low", "held_out/difference_high"],
        ],
    }
}
"""TensorBoard's page CUSTOM SCALARS: curves that belong together in one chart."""
LINE_EVERY = 10.0  # seconds


def episodes_of(result: Mapping[str, Any]) -> dict[str, list[float]]:
    """The metrics of the episodes that finished in an iteration, one value each; maybe none."""
    series = result.get(metrics.ENV_RUNNER_RESULTS, {}).get(EPISODE_METRICS, {})
    # RLlib gives an empty series as the number NaN.
    return {name: values for name, values in series.items() if isinstance(values, list) and values}


def env_steps_of(result: Mapping[str, Any]) -> int:
    """Environment steps sampled in an iteration; 0 when every runner was lost in it."""
    steps = result.get(metrics.ENV_RUNNER_RESULTS, {}).get(metrics.NUM_ENV_STEPS_SAMPLED, 0)
    # RLlib gives a sum over nothing as the number NaN.
    return 0 if math.isnan(steps) else int(steps)


def measures_of(result: Mapping[str, Any], seconds: float) -> dict[str, float]:
    """What an iteration, of so many seconds, measured, under the names that people read."""
    # What no episode has, as carbon where it is not known, has no curve. J of episodes that vary
    # is mostly that of a few: J_relative stands in its place.
    measures = {
        name: float(np.mean(values))
        for name, values in episodes_of(result).items()
        if name != "J" and not np.isnan(values).all()
    }
    measures["env_steps_per_s"] = env_steps_of(result) / seconds
    for name, key in RUNNERS.items():
        measures[name] = float(result[metrics.FAULT_TOLERANCE_STATS][key])
    for policy, learned in result.get(metrics.LEARNER_RESULTS, {}).items():
        for name, keys in LEARNER_METRICS.items():
            for key in [key for key in keys if key in learned][:1]:
                measures[name.format(policy)] = float(learned[key])
    return measures


def tell_assumed(world: dict[str, Any], folder: Path) -> None:
    """Says what is assumed of what arrives, and keeps it in `ASSUMPTIONS`."""
    if is_trace(world["workload"]):
        assumptions = assumed_of_trace(world["workload"])
    else:
        speed = cluster_from_config(world["cluster"], "cluster").single_core_speed
        assumptions = assumed_of([(world["workflow"], speed)], "training")
    for line in printed(assumptions):
        print(line)
    if assumptions:
        with written_whole(folder / ASSUMPTIONS) as temporary:
            temporary.write_text(json.dumps(assumptions, indent=2))


class RunLog(AbstractContextManager["RunLog"]):
    """TensorBoard events and metrics.csv of a run, and its lines in the terminal.

    Those of a resumed run continue.

    Args:
        folder, policies: of the run, these by name.
        runners: remote ones, when none is lost.
        state: of the run so far; rows and events of later iterations are dropped.
        settings: plain containers, for TensorBoard's page HPARAMS.

    Raises:
        InputError: metrics.csv of a resumed run is damaged.
    """

    def __init__(
        self,
        folder: Path,
        policies: Iterable[str],
        runners: int,
        state: RunState,
        settings: Mapping[str, Any],
    ) -> None:
        kept = rows_until(folder, state.iteration) if state.iteration else []
        later = state.env_steps + 1 if state.iteration else None
        self._writer = SummaryWriter(str(folder), purge_step=later)
        self._writer.add_custom_scalars(CHARTS)
        write_hparams(self._writer, dict(leaves("", settings)), folder)
        self._file = (folder / METRICS).open("w", newline="")
        columns = ["iteration", "env_steps", "seconds", *CARDS["held_out"], *CARDS["episodes"]]
        columns += [*OF_EPISODES, "env_steps_per_s", *RUNNERS]
        columns += [name.format(policy) for policy in policies for name in LEARNER_METRICS]
        columns = list(dict.fromkeys(columns))
        self._table = csv.DictWriter(self._file, columns, extrasaction="ignore")
        self._table.writeheader()
        self._table.writerows(kept)
        self._file.flush()  # a run that is killed now keeps them
        self._evaluated = "-"
        self._last_line = -math.inf
        self._runners = runners
        self._healthy, self._timed_out = float(runners), 0.0

    def __exit__(self, *error: object) -> None:
        self._file.close()
        self._writer.close()

    def write(self, measures: Mapping[str, float], state: RunState, progress: float) -> None:
        """Writes an iteration everywhere: its `measures_of`, and `Evaluated` where that was done.

        The state of the run and the share of the budget that is used include it.
        """
        for name, value in measures.items():
            card = next((card for card, names in CARDS.items() if name in names), "episodes_more")
            tag = name if "/" in name else f"{card}/{name}"
            self._writer.add_scalar(tag, value, global_step=state.env_steps)
        self._writer.flush()
        row = {name: f"{value:.6g}" for name, value in measures.items()}
        row["seconds"] = f"{state.seconds:.1f}"
        self._table.writerow(row | {"iteration": state.iteration, "env_steps": state.env_steps})
        self._file.flush()

        healthy, timed_out = measures["runners"], measures["runners_timed_out"]
        if healthy != self._healthy:
            lost = self._runners - healthy
            line = f"{lost:.0f} of {self._runners} runners lost, going on with {healthy:.0f}"
            print(line if lost else f"all {self._runners} runners are there again")
        if timed_out > self._timed_out:
            print(f"{timed_out - self._timed_out:.0f} runners did not answer in time")
        self._healthy, self._timed_out = healthy, timed_out

        if "difference" in measures:
            evaluated = Evaluated(**{name: measures[name] for name in Evaluated._fields})
            self._evaluated = evaluated.as_text()
        if progress >= 1 or state.seconds - self._last_line >= LINE_EVERY:
            self._last_line = state.seconds
            best = "-" if state.best is None else f"{state.best:+.1f}%"
            left = timedelta(seconds=round(state.seconds * max(0.0, 1 / progress - 1)))
            print(
                f"iteration {state.iteration}  J against the baseline {self._evaluated}  "
                f"best {best}  left {left}  {measures['env_steps_per_s']:,.0f} steps/s",
                flush=True,
            )
