"""The files of conf/keep_alive, and what is refused."""

from pathlib import Path

import pytest

from env.base.files import read_yaml
from env.base.schema import validated
from env.sim.declared.keep_alive_policy import HybridHistogram
from env.sim.episode.model import Options
from run.command import CONF
from tests.documents import refused_in_a_line

FILES = sorted((CONF / "keep_alive").glob("*.yaml"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_file_is_named_after_its_policy(file: Path) -> None:
    config = validated(Options, {"keep_alive": read_yaml(file, file.stem)}, "conf/keep_alive")
    assert config.keep_alive.policy == file.stem


def test_the_histogram_is_that_of_the_paper() -> None:
    """Shahrad et al. 2020: 4 hours by the minute."""
    given = read_yaml(CONF / "keep_alive" / "hybrid_histogram.yaml", "the histogram")
    config = HybridHistogram(**given)
    assert config.bin * config.bins == 4 * 3600
    assert (config.prewarm_percentile, config.keep_percentile) == (5.0, 99.0)
    with refused_in_a_line("evaluate: ", "is 99.5, at most keep_percentile, 99.0"):
        validated(Options, {"keep_alive": given | {"prewarm_percentile": 99.5}}, "evaluate")
