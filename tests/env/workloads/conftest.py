"""Fixture files and the configs of the project, composed as the program composes them."""

import copy
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from env.base.schema import validated
from env.workloads.annotation import AnnotationRules

CONF_DIR = Path(__file__).resolve().parents[3] / "conf"

Composed = Callable[..., dict[str, Any]]


@pytest.fixture
def fixtures() -> Path:
    """Small files written for these tests."""
    return Path(__file__).parent / "fixtures"


@cache
def _composed(overrides: tuple[str, ...]) -> Any:
    with initialize_config_dir(str(CONF_DIR), version_base=None):
        return OmegaConf.to_container(compose(overrides=list(overrides)))


@pytest.fixture(scope="session")
def composed() -> Composed:
    """Composes config groups: composed("+workflow=study") is {"workflow": {...}}."""
    return lambda *overrides: copy.deepcopy(_composed(overrides))


@pytest.fixture(scope="session")
def rules(composed: Composed) -> AnnotationRules:
    """The rules as conf states them."""
    return validated(
        AnnotationRules, composed("+workflow=files")["workflow"]["annotation"], "annotation"
    )
