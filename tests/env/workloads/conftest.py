"""Fixture files and the configs of the project, composed as the program composes them."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import DictConfig, OmegaConf

from env.base.schema import validated
from env.workloads.annotation import AnnotationRules

CONF_DIR = Path(__file__).resolve().parents[3] / "conf"

Composed = Callable[..., dict[str, Any]]


@pytest.fixture
def fixtures() -> Path:
    """Small files written for these tests."""
    return Path(__file__).parent / "fixtures"


@cache
def _composed(overrides: tuple[str, ...]) -> DictConfig:
    with initialize_config_dir(str(CONF_DIR), version_base=None):
        return compose(overrides=list(overrides))


@pytest.fixture(scope="session")
def composed() -> Composed:
    """Composes config groups: composed("+workflow=study") is {"workflow": {...}}."""

    def of(*overrides: str) -> dict[str, Any]:
        found = OmegaConf.to_container(_composed(overrides))
        assert isinstance(found, dict)
        return {str(group): content for group, content in found.items()}

    return of


@pytest.fixture(scope="session")
def rules(composed: Composed) -> AnnotationRules:
    """The rules as conf states them."""
    return validated(
        AnnotationRules, composed("+workflow=files")["workflow"]["annotation"], "annotation"
    )
