"""Configurations drawn at random: see fuzz.py, which also plays more of them."""

import pytest

from tests.fuzz import outcomes


@pytest.mark.long
def test_three_minutes() -> None:
    played = list(outcomes(first=0, minutes=3.0))
    assert set(played) <= {"played", "refused"}
    assert played.count("played") > played.count("refused")
