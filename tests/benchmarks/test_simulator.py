"""The simulator's benchmark prints what later runs are compared by."""

import json

import pytest

from benchmarks.simulator import UNITS, main


@pytest.mark.long
def test_json_has_all_figures(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--json", "--episodes", "2", "--no-compilation"])
    figures = json.loads(capsys.readouterr().out)
    assert set(figures) == set(UNITS) - {"cold_compile_s", "cached_load_s"}
    assert all(value > 0 for value in figures.values())


def test_table_names_all_figures(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "benchmarks.simulator.measure", lambda episodes, compilation: dict.fromkeys(UNITS, 1.0)
    )
    main([])
    printed = capsys.readouterr().out
    assert all(name[:20] in printed for name in UNITS)


def test_no_episodes_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--episodes", "0"])
    assert stop.value.code == 2
    assert "--episodes is 0, at least 1 is needed" in capsys.readouterr().err
