"""YAML of others: baselines, and the files of the folders that Hydra is told to search."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from hydra._internal.core_plugins import file_config_source
from hydra._internal.sources_registry import SourcesRegistry
from hydra.plugins.config_source import ConfigResult
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from env.base.errors import InputError
from env.base.files import MOST_YAML_BYTES, check_yaml, read_bytes
from env.base.schema import one_line
from run.interpolation import check_written


def read_yaml(file: Path, where: str) -> Any:
    """What is in a YAML file, in plain containers.

    Raises:
        InputError: it cannot be read, or is not YAML that `check_yaml` and `check_written` take.
    """
    with _checked(read_bytes(file, MOST_YAML_BYTES), where) as text:
        return OmegaConf.to_container(OmegaConf.create(text))


# Hydra keeps the first of two sources of one scheme if they have the same name.
class FileConfigSource(file_config_source.FileConfigSource):
    """Where Hydra reads config files from: those it uses are checked before it parses them."""

    def load_config(self, config_path: str) -> ConfigResult:
        """Reads one file.

        Raises:
            InputError: see `read_yaml`; or the file is a link that leads out of its folder.
        """
        folder = Path(self.path)
        file = folder / self._normalize_file_name(config_path)
        with _checked(read_bytes(file, MOST_YAML_BYTES, inside=folder), str(file)):
            return super().load_config(config_path)


@contextmanager
def _checked(content: bytes, where: str) -> Iterator[str]:
    """The text of YAML, for a block that parses it."""
    text = check_yaml(content, where)
    try:
        # OmegaConf parses interpolations while it makes a config, so they are checked before.
        check_written("", yaml.load(text, yaml.BaseLoader), where)
        yield text
    except InputError:  # is a ValueError
        raise
    except (yaml.YAMLError, ValueError, OmegaConfBaseException) as error:
        raise InputError(f"{where}: not YAML, {one_line(str(error))}") from None


SourcesRegistry.instance().types[FileConfigSource.scheme()] = FileConfigSource
