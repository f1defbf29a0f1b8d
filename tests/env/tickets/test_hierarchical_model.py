"""Hierarchical stride against a slow model: pairs of groups, each ahead by so many quanta."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.env.tickets.made import made

LEAVES = 8


class Model:
    """What each left group of a pair has had beyond its share of the pair, in fractions."""

    def __init__(self) -> None:
        self.tickets = [0] * LEAVES
        self.ahead = [Fraction(0)] * LEAVES

    def group(self, node: int) -> int:
        """Tickets below an entry of the tree."""
        if node >= LEAVES:
            return self.tickets[node - LEAVES]
        return self.group(2 * node) + self.group(2 * node + 1)

    def hold(self, client: int, tickets: int) -> None:
        """Nobody's quanta change with tickets, but a pair without tickets forgets."""
        self.tickets[client] = tickets
        self.ahead = [
            self.ahead[i] if self.group(max(i, 1)) else Fraction(0) for i in range(LEAVES)
        ]

    def gap(self, node: int) -> Fraction:
        """Above 0 if the right group goes first."""
        left, right = self.group(2 * node), self.group(2 * node + 1)
        return (1 + self.ahead[node]) * right - (1 - self.ahead[node]) * left

    def may_go(self, client: int) -> bool:
        """Whether it may go next, as far as rounding can tell."""
        node = LEAVES + client
        while node > 1:
            beside, gap = self.group(node ^ 1), self.gap(node // 2)
            behind = gap > Fraction(1, 10**9) if node % 2 == 0 else gap < -Fraction(1, 10**9)
            if not self.group(node) or (beside and behind):
                return False
            node //= 2
        return True

    def use(self, client: int, quanta: Fraction) -> None:
        node = LEAVES + client
        while node > 1:
            pair = self.group(node // 2)
            if pair:
                part = quanta * Fraction(self.group(node ^ 1), pair)
                self.ahead[node // 2] += part if node % 2 == 0 else -part
            node //= 2


@given(st.integers(0, 2**32))
def test_it_does_as_a_slow_model_does(seed: int) -> None:
    random = np.random.default_rng(seed)
    mechanism, model = made("hierarchical_stride", (), slots=LEAVES), Model()
    for _ in range(150):
        client, tickets = int(random.integers(LEAVES)), int(random.integers(1, 9))
        competes = model.tickets[client] > 0
        kind = random.integers(8)
        if kind == 0 and not competes:
            mechanism.join(client, tickets)
            model.hold(client, tickets)
        elif kind == 1 and competes:
            mechanism.leave(client)
            model.hold(client, 0)
        elif kind == 2 and competes:
            mechanism.change(client, tickets)
            model.hold(client, tickets)
        elif kind > 2 and any(model.tickets):
            chosen = mechanism.allocate()
            assert model.may_go(chosen)
            use = Fraction(1)
            if kind > 5:
                use = Fraction(int(random.integers(0, 9)), 4)
                mechanism.used(chosen, float(use))
            model.use(chosen, use)
        totals = [model.group(node) for node in range(1, LEAVES)]
        lags = mechanism.shares.pairs["lag"][1:] / np.maximum(totals, 1)
        assert lags == pytest.approx([float(one) for one in model.ahead[1:]], abs=1e-9)
