"""What all tests share: the folder of real samples, which not every machine has."""

from pathlib import Path

import pytest

DATA_DIR = Path(__file__).resolve().parents[2] / "shared" / "data"


def pytest_configure(config: pytest.Config) -> None:
    """Registers the marker of tests that need the real samples."""
    config.addinivalue_line("markers", "realdata: needs the real samples in ../shared/data")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skips those tests where the folder is absent."""
    if DATA_DIR.is_dir():
        return
    skip = pytest.mark.skip(reason=f"the real samples are not in {DATA_DIR}")
    for item in items:
        if "realdata" in item.keywords:
            item.add_marker(skip)


@pytest.fixture
def data_dir() -> Path:
    """The folder of real samples."""
    if not DATA_DIR.is_dir():
        pytest.skip(f"the real samples are not in {DATA_DIR}")
    return DATA_DIR
