"""YAML of others: baselines, and the files of the folders that Hydra is told to search."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from hydra._internal import config_loader_impl
from hydra._internal.config_repository import CachingConfigRepository, IConfigRepository
from hydra._internal.core_plugins import file_config_source
from hydra._internal.sources_registry import SourcesRegistry
from hydra.core.default_element import GroupDefault
from hydra.plugins.config_source import ConfigResult
from omegaconf import DictConfig, ListConfig, OmegaConf

from env.base.errors import InputError
from env.base.files import MOST_YAML_BYTES, check_yaml, parsing_yaml, read_bytes
from env.base.schema import short
from run.interpolation import check_written, leaves

WHOSE = "what runs here is typed or stands in conf/, a folder of configs may not say it"
HEADER_CHARACTERS = 512
"""Within which Hydra looks for `# @package`."""
MOST_LOOKS = 1000
"""At configs and at entries of their lists of defaults, in a composition. Hydra looks at each three
times whenever it is named; what conf/ has comes to 250."""
PROTECTED = ("hydra.", "ray.address", "ray.runtime_env")
"""What says what runs here, and where."""
FILLED_IN = ("hydra.overrides.", "hydra.runtime.", "hydra.searchpath", "hydra.job.override_dirname")
"""What Hydra itself writes into its node."""


def read_yaml(file: Path, where: str) -> Any:
    """What is in a YAML file, in plain containers.

    Raises:
        InputError: it cannot be read, or is not YAML that `check_yaml` and `check_written` take.
    """
    return OmegaConf.to_container(
        _parsed(check_yaml(read_bytes(file, MOST_YAML_BYTES), where), where)
    )


def check_composed(found: Mapping[str, Any], own: Mapping[str, Any]) -> None:
    """Refuses what a folder of configs has changed of `PROTECTED`, in whatever way.

    Args:
        found: the configuration, composed with the folder.
        own: composed of conf/ and what was typed alone.

    Raises:
        InputError: they differ.
    """
    values, expected = dict(leaves("", found)), dict(leaves("", own))
    changed = [name for name in values | expected if values.get(name) != expected.get(name)]
    for name in changed:
        if name.startswith(PROTECTED) and not name.startswith(FILLED_IN):
            raise InputError(f"{name}: {WHOSE}")


# Hydra keeps the first of two sources of one scheme if they have the same name.
class FileConfigSource(file_config_source.FileConfigSource):
    """Where Hydra reads config files from: those it uses are checked before it gets them."""

    def load_config(self, config_path: str) -> ConfigResult:
        """Reads one file.

        Raises:
            InputError: see `read_yaml`; or the file is a link that leads out of its folder, or one
                of a folder beside conf/ that says what runs on this machine.
        """
        folder = Path(self.path)
        file = folder / self._normalize_file_name(config_path)
        text = check_yaml(read_bytes(file, MOST_YAML_BYTES, inside=folder), str(file))
        config = _parsed(text, str(file))
        with parsing_yaml(str(file)):
            header = self._get_header_dict(text[:HEADER_CHARACTERS])
        if self.provider != "main":  # as Hydra calls conf/
            placed = {"its folder": Path(config_path).parent, "@package": header["package"]}
            _check_harmless(OmegaConf.to_container(config), placed, file)
        return ConfigResult(self.provider, str(file), config, header)


class BoundedRepository(CachingConfigRepository):
    """Where Hydra gets the configs of a composition, each as often as it looks at it."""

    def __init__(self, delegate: IConfigRepository) -> None:
        super().__init__(delegate)
        self._looks: Counter[str] = Counter()

    def load_config(self, config_path: str) -> ConfigResult | None:
        """Takes one config.

        Raises:
            InputError: lists of defaults name too many.
        """
        config = super().load_config(config_path)
        if config is not None:
            entries = config.defaults_list or ()
            groups = [each for each in entries if isinstance(each, GroupDefault)]
            options = sum(len(each.get_options()) for each in groups if each.is_options())
            self._looks[config.path] += 1 + len(entries) + options
            if self._looks.total() > MOST_LOOKS:
                file = self._looks.most_common(1)[0][0]
                raise InputError(
                    f"{file}: defaults: too many, twice as many at every level, or in a circle"
                )
        return config


def _parsed(text: str, where: str) -> DictConfig | ListConfig:
    with parsing_yaml(where):
        # OmegaConf parses interpolations while it makes a config, so they are checked before.
        tree = yaml.load(text, yaml.BaseLoader)
        if not isinstance(tree, dict | None):
            raise InputError(f"{where}: a mapping is needed, found {short(tree)}")
        check_written("", tree, where)
        return OmegaConf.create(text)


def _check_harmless(tree: Any, placed: Mapping[str, Any], file: Path) -> None:
    """Refuses what would say what runs on this machine.

    Args:
        tree: of the file, with its defaults.
        placed: what else tells Hydra where the tree goes.
        file: for errors.

    Raises:
        InputError: it sets something of Hydra or of Ray's processes, joins a Ray cluster, names a
            Python object, or goes on with a run, whose checkpoints are pickles.
    """
    placed = {**placed, "defaults": tree.get("defaults")}
    for name, value in leaves("", {**tree, **placed}):
        keys = name.split(".")
        # Hydra cuts packages in ways of its own, so a word in them counts wherever it is.
        elsewhere = f"{name} {value}" if keys[0] in placed else ""
        if (
            keys[0] == "hydra"
            or "hydra" in elsewhere
            or "_target_" in keys
            or ("runtime_env" in keys and value != {})
            or "runtime_env" in elsewhere
            or (keys[-1] == "address" and isinstance(value, str))
            or (name == "resume" and value is not None)
        ):
            raise InputError(f"{file}: {name}: {WHOSE}")


SourcesRegistry.instance().types[FileConfigSource.scheme()] = FileConfigSource
config_loader_impl.CachingConfigRepository = BoundedRepository  # type: ignore[misc]
