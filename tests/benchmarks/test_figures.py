"""Benchmarks print what their pages tell and later runs are compared by; a peer has equal rules."""

import json
from importlib import import_module

import numpy as np
import pytest

from agents.order.fcfs import Fcfs
from benchmarks import simulator
from benchmarks.requests import CLUSTER, day, play_plain
from benchmarks.trace_player import Requests, simulate
from env.sim.declared.hardware import ClusterConfig, ServerType
from env.sim.declared.keep_alive_policy import Lru
from tests.env.small import always_up


@pytest.mark.parametrize(
    ("name", "arguments", "left_out"),
    [
        ("requests", ["--requests", "2000"], set()),
        ("plans", ["--seconds", "0.3"], set()),
        pytest.param("live", ["--episodes", "1"], set(), marks=pytest.mark.long),
        pytest.param(
            "simulator",
            ["--episodes", "2", "--no-compilation"],
            {"cold_compile_s", "cached_load_s"},
            marks=pytest.mark.long,
        ),
    ],
)
def test_json_has_all_figures(
    name: str, arguments: list[str], left_out: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    benchmark = import_module(f"benchmarks.{name}")
    benchmark.main(["--json", *arguments])
    figures = json.loads(capsys.readouterr().out)
    assert set(figures) == set(benchmark.UNITS) - left_out
    assert all(value > 0 for value in figures.values())


def test_a_table_names_all_figures(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    figures = dict.fromkeys(simulator.UNITS, 1.0)
    monkeypatch.setattr(simulator, "measure", lambda episodes, compilation: figures)
    simulator.main([])
    printed = capsys.readouterr().out
    assert all(name[:20] in printed for name in figures)


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("live", ["--episodes", "0"], "--episodes is 0, at least 1 is needed"),
        ("simulator", ["--episodes", "0"], "--episodes is 0, at least 1 is needed"),
        ("requests", ["--requests", "10000000000000"], "is 10000000000000, 1 to 100000000 are"),
        ("tickets", ["--repeats", "0"], "--repeats is 0, at least 1 is needed"),
        ("training", ["--repeats", "0"], "--repeats is 0, at least 1 is needed"),
        ("training", ["--nope"], "unrecognized arguments: --nope"),
        ("own_loop", ["--repeats", "0"], "--repeats is 0, at least 1 is needed"),
        ("own_loop", ["--nope"], "unrecognized arguments: --nope"),
    ],
)
def test_wrong_arguments_are_refused(
    name: str, arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        import_module(f"benchmarks.{name}").main(arguments)
    said = capsys.readouterr().err
    assert left.value.code == 2
    assert says in said and said.count("\n") == 1


@pytest.mark.parametrize("memory", [2048, 16384])
def test_the_plain_loop_has_the_same_completion_times(memory: int) -> None:
    """On one server of 2 cores requests of a whole day wait, share cores and evict each other."""
    small = ClusterConfig(
        CLUSTER.single_core_speed, 1.0, 1.0, 1.0, (ServerType("s", 2, 0, 0, 1, 2, memory),)
    )
    trace = day(3000)
    crowded = type(trace)(trace.profiles, lambda: map(_faster, trace.requests()))
    played = Requests.of(simulate(crowded, small, always_up(Fcfs(), Lru())))
    assert play_plain(crowded, small, 3000) == played.completion.tolist()


def _faster(chunk: np.ndarray) -> np.ndarray:
    faster = chunk.copy()
    faster["time"] /= 40.0
    return faster
