"""What was registered with a Ray that another test has ended is gone with it."""

import pytest

from env.learn.multi_agent import register


@pytest.fixture(autouse=True)
def registered() -> None:
    register()
