"""Fixture files and the rules of annotation."""

from pathlib import Path

import pytest

from env.base.schema import validated
from env.workloads.annotation import AnnotationRules
from tests.env.worlds import composed


@pytest.fixture
def fixtures() -> Path:
    """Small files written for these tests."""
    return Path(__file__).parent / "fixtures"


@pytest.fixture(scope="session")
def rules() -> AnnotationRules:
    """The rules as conf states them."""
    declared = composed("+workflow=files")["workflow"]["annotation"]
    return validated(AnnotationRules, declared, "annotation")
