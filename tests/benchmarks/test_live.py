"""The benchmark of live clusters prints what its page tells."""

import json

import pytest

from benchmarks.live import UNITS, main


@pytest.mark.long
def test_json_has_all_figures(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--json", "--episodes", "1"])
    figures = json.loads(capsys.readouterr().out)
    assert set(figures) == set(UNITS)
    assert all(value > 0 for value in figures.values())


def test_no_episodes_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--episodes", "0"])
    assert stop.value.code == 2
    assert "--episodes is 0, at least 1 is needed" in capsys.readouterr().err
