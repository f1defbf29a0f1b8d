"""Rows of TensorBoard's page HPARAMS: the settings of a run beside its last metrics."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from tensorboard.plugins.hparams.summary_v2 import hparams_pb
from torch.utils.tensorboard import SummaryWriter


def write_hparams(writer: SummaryWriter, values: Mapping[str, Any], folder: Path) -> None:
    """Writes the row of the run in a folder: its settings by name.

    TensorBoard puts the settings in which runs differ first, as long as no run declares columns.
    """
    named = {
        key: value if isinstance(value, int | float) else str(value)
        for key, value in values.items()
    }
    # The column of names is narrow: what tells runs apart comes first.
    name = " ".join(reversed(folder.absolute().parts[-3:]))
    assert writer.file_writer is not None, "closed"
    writer.file_writer.add_summary(hparams_pb(named, trial_id=name))
    writer.flush()


def compared(config: Mapping[str, Any]) -> dict[str, Any]:
    """The settings by which TensorBoard tells runs apart."""
    options = HydraConfig.get().runtime.choices
    groups = ("cluster", "workflow", "workload", "agents", "objective")
    values = ("seed", "agents", "objective", "variation", "dispatch", "algo")
    return {group: options[group] for group in groups} | {key: config[key] for key in values}
