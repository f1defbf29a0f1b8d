"""An evaluation in TensorBoard: its figures as images, and the mean of every metric."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt

from report.summary import Summary


def write_events(folder: Path, summary: Summary, pictures: Sequence[Path]) -> None:
    """Writes an event file; events of the folder that an earlier part of the run left are replaced.

    Args:
        folder: of the evaluation; TensorBoard calls the run by its path.
        summary: of the evaluation.
        pictures: .png files.
    """
    from torch.utils.tensorboard import SummaryWriter  # PyTorch takes seconds to import

    for old in folder.glob("events.out.tfevents.*"):
        old.unlink()
    with SummaryWriter(str(folder)) as writer:
        for policy in summary.policies:
            for name, distribution in policy.metrics.items():
                value = distribution.mean.value
                writer.add_scalar(f"evaluation/{name}/{policy.policy}", value, global_step=0)
        for picture in pictures:
            image = plt.imread(picture)
            writer.add_image(f"evaluation/{picture.stem}", image, dataformats="HWC")
