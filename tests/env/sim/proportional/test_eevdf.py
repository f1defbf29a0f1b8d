"""EEVDF: case 22, the bound on lags, and a slow model in fractions."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from env.sim.proportional import virtual_time
from env.sim.proportional.mechanism import Mechanism
from tests.env.sim.proportional.made import made


def lags(mechanism: Mechanism) -> np.ndarray:
    """Of all that compete, in units of the resource."""
    shares = mechanism.shares
    quantum = float(shares.head["quantum"][0])
    competing = np.flatnonzero(shares.clients["competing"])
    return np.array([quantum * virtual_time.lag(shares, client) for client in competing])


def test_case_22_three_tasks_with_slices_of_30_ms() -> None:
    mechanism = made("eevdf", (1, 1, 1), quantum=30.0)
    assert lags(mechanism) == pytest.approx([0, 0, 0])
    assert mechanism.allocate() == 0
    assert lags(mechanism) == pytest.approx([-20, 10, 10])
    assert mechanism.allocate() == 1
    assert lags(mechanism) == pytest.approx([-10, -10, 20])
    assert mechanism.allocate() == 2
    assert lags(mechanism) == pytest.approx([0, 0, 0], abs=1e-6)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(1, 200), min_size=2, max_size=20))
def test_case_22_no_lag_exceeds_a_quantum(tickets: list[int]) -> None:
    mechanism = made("eevdf", tickets)
    for _ in range(300):
        mechanism.allocate()
        now = lags(mechanism)
        assert np.abs(now).max() <= 1 + 1e-6
        assert abs(now.sum()) < 1e-6


class Model:
    """EEVDF in fractions; every client is looked at each time."""

    def __init__(self) -> None:
        self.virtual = Fraction(0)
        self.tickets: dict[int, int] = {}
        self.quanta: dict[int, Fraction] = {}
        self.eligible: dict[int, Fraction] = {}
        self.lags: dict[int, Fraction] = {}

    def lag(self, client: int) -> Fraction:
        return self.tickets[client] * (self.virtual - self.eligible[client])

    def join(self, client: int, tickets: int, quantum: Fraction) -> None:
        lag = self.lags.pop(client, Fraction(0)) if self.tickets else Fraction(0)
        if self.tickets:
            self.virtual -= lag / sum(self.tickets.values())
        self.tickets[client], self.quanta[client] = tickets, quantum
        self.eligible[client] = self.virtual - lag / tickets

    def leave(self, client: int) -> None:
        lag = self.lags[client] = self.lag(client)
        del self.tickets[client]
        if self.tickets:
            self.virtual += lag / sum(self.tickets.values())

    def change(self, client: int, tickets: int) -> None:
        lag = self.lag(client)
        self.tickets[client] = tickets
        self.eligible[client] = self.virtual - lag / tickets

    def use(self, client: int, amount: Fraction) -> None:
        self.eligible[client] += amount / self.tickets[client]
        self.virtual += amount / sum(self.tickets.values())

    def deadline(self, client: int) -> Fraction:
        return self.eligible[client] + self.quanta[client] / self.tickets[client]

    def near(self, client: int) -> bool:
        """Whether it may go next, if times are known to 1e-6."""
        tolerance = Fraction(1, 10**6)
        if self.eligible[client] > self.virtual + tolerance:
            return False
        surely = [c for c in self.tickets if self.eligible[c] <= self.virtual - tolerance]
        return all(self.deadline(client) <= self.deadline(c) + tolerance for c in surely)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_it_does_as_a_slow_model_does(seed: int) -> None:
    """With clients that join, leave, change, have quanta of their own and use parts of them."""
    random = np.random.default_rng(seed)
    mechanism, model = made("eevdf", (), slots=6), Model()
    for _ in range(150):
        client, tickets = int(random.integers(6)), int(random.integers(1, 9))
        competes = client in model.tickets
        kind = random.integers(8)
        if kind == 0 and not competes:
            quantum = Fraction(int(random.integers(1, 5)), 2)
            mechanism.join(client, tickets, float(quantum))
            model.join(client, tickets, quantum)
        elif kind == 1 and competes:
            mechanism.leave(client)
            model.leave(client)
        elif kind == 2 and competes:
            mechanism.change(client, tickets)
            model.change(client, tickets)
        elif kind > 2 and model.tickets:
            chosen = mechanism.allocate()
            assert chosen is not None and model.near(chosen)
            use = model.quanta[chosen]
            if kind > 5:
                use *= Fraction(int(random.integers(0, 5)), 2)
                mechanism.used(chosen, float(use))
            model.use(chosen, use)
        expected = [float(model.lag(each)) for each in sorted(model.tickets)]
        assert lags(mechanism) == pytest.approx(expected, abs=1e-6)
