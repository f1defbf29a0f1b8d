"""The benchmark of tickets prints what later runs are compared by; its peers go by its rules."""

import json
from collections import Counter
from random import Random

import numpy as np
import pytest

from benchmarks import tickets
from benchmarks.tickets import FITTED, MECHANISMS, OPERATIONS, PEERS, SETTINGS, main
from tests.env.tickets.made import Mechanism

EXACT = ("stride", "hierarchical_stride", "drf")
"""Peers without chance, and without rounding where tickets are powers of two."""


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tickets, "SIZES", (10, 1000))
    monkeypatch.setattr(tickets, "FITTED", FITTED[:3])


def test_all_figures_are_there(
    small: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    main(["--json", "--repeats", "1"])
    figures = json.loads(capsys.readouterr().out)
    assert {"lottery_ratio_1000", "stride_ratio_1000"} <= set(figures)
    for name in MECHANISMS:
        for operation in OPERATIONS:
            for what in ("ns", "plain_ns", "ratio"):
                assert figures[f"{name}_{operation}_1000_{what}"] > 0
    assert {f"{name}_fit_power" for name in MECHANISMS} <= set(figures)
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setattr(tickets, "measure_all", lambda *given: figures)
    main(["--repeats", "1"])
    printed = capsys.readouterr().out
    assert all(name in printed for name in (*MECHANISMS, *OPERATIONS))


def both(name: str, amounts: list[int], slots: int) -> tuple[Mechanism, tickets.Plain]:
    mechanism = Mechanism(name, slots, np.random.SeedSequence(0), **SETTINGS.get(name, {}))
    peer = PEERS[name](slots)
    mechanism.shares.clients["demand"] = 1.0
    for client, amount in enumerate(amounts):
        mechanism.join(client, amount)
        peer.join(client, amount)
    return mechanism, peer


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("seed", range(5))
def test_peers_make_the_same_choices(name: str, seed: int) -> None:
    random = Random(seed)
    mechanism, peer = both(name, [1 << random.randrange(6) for _ in range(16)], 16)
    for _ in range(1000):
        assert mechanism.allocate() == peer.allocate()


@pytest.mark.parametrize("name", MECHANISMS)
def test_peers_share_by_tickets(name: str) -> None:
    _, peer = both(name, [8, 4, 2, 2], 8)
    peer.leave(3)
    peer.join(3, 4)
    peer.change(0, 2)
    wins = Counter(peer.allocate() for _ in range(12_000))
    expected = np.array([2, 4, 2, 4]) * 1000
    assert [wins[client] for client in range(4)] == pytest.approx(expected, rel=0.1)
