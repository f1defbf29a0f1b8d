"""YAML of others: baselines, and the files of the folders that Hydra is told to search."""

from pathlib import Path
from typing import Any

from hydra._internal.core_plugins import file_config_source
from hydra._internal.sources_registry import SourcesRegistry
from hydra.plugins.config_source import ConfigResult
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from env.base.errors import InputError
from env.base.files import MOST_YAML_BYTES, check_yaml, read_bytes
from env.base.schema import one_line


def read_yaml(file: Path, where: str) -> Any:
    """What is in a YAML file, in plain containers.

    Raises:
        InputError: it cannot be read, or is not YAML that `check_yaml` takes.
    """
    text = check_yaml(read_bytes(file, MOST_YAML_BYTES), where)
    try:
        return OmegaConf.to_container(OmegaConf.create(text))
    except (YAMLError, ValueError, OmegaConfBaseException) as error:
        raise InputError(f"{where}: not YAML, {one_line(str(error))}") from None


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
        check_yaml(read_bytes(file, MOST_YAML_BYTES, inside=folder), str(file))
        try:
            return super().load_config(config_path)
        except (YAMLError, ValueError, OmegaConfBaseException) as error:
            raise InputError(f"{file}: not YAML, {one_line(str(error))}") from None


SourcesRegistry.instance().types[FileConfigSource.scheme()] = FileConfigSource
