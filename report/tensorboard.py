"""An evaluation in TensorBoard: figures as images, the mean of every metric, what it was told."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image


def write_events(
    folder: Path, means: Mapping[str, float], pictures: Sequence[Path], told: Mapping[str, Any]
) -> None:
    """Writes an event file; events of the folder that an earlier part of the run left are replaced.

    Args:
        folder: of the evaluation; TensorBoard calls the run by its path.
        means: by what they are called.
        pictures: .png files in its folder figures/.
        told: what was evaluated, for the page HPARAMS.
    """
    # PyTorch takes seconds to import.
    from torch.utils.tensorboard import SummaryWriter

    from run.hparams import write_hparams

    for old in folder.glob("events.out.tfevents.*"):
        old.unlink()
    with SummaryWriter(str(folder)) as writer:
        write_hparams(writer, told, folder)
        for name, value in means.items():
            writer.add_scalar(f"evaluation/{name}", value, global_step=0)
        for picture in pictures:
            name = picture.relative_to(folder / "figures").with_suffix("").as_posix()
            pixels = np.asarray(Image.open(picture))
            writer.add_image(f"evaluation/{name}", pixels, dataformats="HWC")
