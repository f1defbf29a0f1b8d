"""Rows of TensorBoard's page HPARAMS: what a run was told, beside its last metrics."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from tensorboard.plugins.hparams.summary_v2 import hparams_pb
from torch.utils.tensorboard import SummaryWriter


def write_hparams(writer: SummaryWriter, values: Mapping[str, Any], folder: Path) -> None:
    """The row of a run.

    TensorBoard puts the settings in which runs differ first, whatever they are, as long as no run
    declares its own columns.

    Args:
        writer: of the run's events.
        values: the settings, by name.
        folder: of the run.
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


def compared(told: Mapping[str, Any]) -> dict[str, Any]:
    """What runs side by side in TensorBoard are told apart by."""
    options = HydraConfig.get().runtime.choices
    groups = ("cluster", "workflow", "workload", "agents", "objective")
    names = {group: options[group] for group in groups}
    values = ("seed", "agents", "objective", "variation", "dispatch", "algo")
    return names | {key: told[key] for key in values}
