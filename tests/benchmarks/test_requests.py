"""The benchmark of requests prints what later runs are compared by; its peer has the same rules."""

import json

import numpy as np
import pytest

from agents.order.fcfs import Fcfs
from benchmarks.requests import CLUSTER, UNITS, day, main, play_plain
from benchmarks.trace_player import simulate
from env.sim.declared.hardware import ClusterConfig, ServerType
from env.sim.declared.keep_alive_policy import Lru
from env.sim.declared.rules import Rules


def test_json_has_all_figures(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--json", "--requests", "2000"])
    figures = json.loads(capsys.readouterr().out)
    assert set(figures) == set(UNITS)
    assert all(value > 0 for value in figures.values())


@pytest.mark.parametrize("memory", [2048, 16384])
def test_the_plain_loop_has_the_same_completion_times(memory: int) -> None:
    """On one server of 2 cores requests of a whole day wait, share cores and evict each other."""
    small = ClusterConfig(
        CLUSTER.single_core_speed, 1.0, 1.0, 1.0, (ServerType("s", 2, 0, 0, 1, 2, memory),)
    )
    trace = day(3000)
    crowded = type(trace)(trace.profiles, lambda: map(_faster, trace.requests()))
    played = simulate(crowded, small, Rules.always_up(Fcfs(), Lru()))
    assert play_plain(crowded, small, 3000) == played.completion.tolist()


def _faster(chunk: np.ndarray) -> np.ndarray:
    faster = chunk.copy()
    faster["time"] /= 40.0
    return faster


@pytest.mark.parametrize("count", ["0", "10000000000000"])
def test_no_requests_and_more_than_memory_are_refused(
    count: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--requests", count])
    assert stop.value.code == 2
    assert f"--requests is {count}, 1 to 100000000 are allowed" in capsys.readouterr().err
