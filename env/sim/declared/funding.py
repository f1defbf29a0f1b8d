"""Who holds which tickets of a cluster, as configurations and episode files say it."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import Annotated, Self

import numpy as np
from pydantic import Field, model_validator

from env.base.errors import InputError
from env.base.schema import Strict, TenantName
from env.sim.state import queue_records
from env.sim.state.records import NONE
from env.tickets.rights import MOST, Rights, Tickets, exact, whole_scale

BASE = "base"
"""The currency that all value comes from."""
FEW = 1000
"""Whole tickets, from which on rounding changes a share by less than a thousandth."""


class Grant(Strict):
    """Tickets that a tenant or a currency has.

    Attributes:
        tickets: how many.
        currency: of which; the base, or one that is declared.
    """

    tickets: Tickets
    currency: TenantName = BASE


class Funding(Strict):
    """The rights of all tenants.

    Attributes:
        tenants: what each holds.
        currencies: what backs each of them, other than the base.

    Raises:
        InputError: an amount is not allowed; a currency is unknown, has the name of a tenant or of
            the base, is backed by itself in a cycle, or nobody has tickets of it.
    """

    tenants: Annotated[dict[TenantName, Grant], Field(min_length=1)]
    currencies: dict[TenantName, Grant] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _sound(self) -> Self:
        if self.base_amount > MOST:
            raise InputError(
                f"tickets of the base: {float(self.base_amount):g} together, at most "
                f"{float(MOST):g} are allowed"
            )
        _ = self.values  # refuses what does not hold together
        held = {grant.currency for grant in (*self.tenants.values(), *self.currencies.values())}
        for name in self.currencies:
            if name not in held:
                raise InputError(f"currencies.{name}: nobody has tickets of it")
        return self

    @cached_property
    def _amounts(self) -> dict[str, Fraction]:
        """Tickets of each tenant and currency."""
        grants = {**self.tenants, **self.currencies}
        return {name: exact("tickets", grant.tickets) for name, grant in grants.items()}

    @cached_property
    def base_amount(self) -> Fraction:
        """Of all base tickets."""
        grants = {**self.tenants, **self.currencies}
        of_base = (name for name, grant in grants.items() if grant.currency == BASE)
        return sum((self._amounts[name] for name in of_base), Fraction(0))

    @cached_property
    def values(self) -> dict[str, Fraction]:
        """Base tickets that those of each tenant are worth if everybody competes."""
        return self.rights().values()

    def rights(self) -> Rights:
        """The same as a graph of currencies, in which every tenant competes.

        Raises:
            InputError: see the class.
        """
        # Without base tickets another amount is wrong: a currency is unknown, or there is a cycle.
        rights = Rights(self.base_amount or 1, BASE)
        for name in self.currencies:
            rights.add_currency(name)
        for name in self.tenants:
            rights.add_client(name)
        for group, grants in (("currencies", self.currencies), ("tenants", self.tenants)):
            for name, grant in grants.items():
                try:
                    rights.issue(self._amounts[name], grant.currency, to=name)
                except InputError as error:
                    raise InputError(f"{group}.{name}.{error}") from None
        for name in self.tenants:
            rights.start(name)
        return rights

    @cached_property
    def rough(self) -> bool:
        """Whether rounding to whole tickets could show: somebody has few, and not whole ones."""
        scale = whole_scale(self.base_amount)
        whole = {name: value * scale for name, value in self.values.items()}
        return any(
            count < FEW and (count.denominator > 1 or self.tenants[name].currency != BASE)
            for name, count in whole.items()
        )

    def records(self) -> tuple[np.ndarray, np.ndarray]:
        """(TENANT (K,), CURRENCY (1 + C,)), in the order declared.

        Amounts of the base are in whole tickets, unless these are `rough`.
        """
        scale = 1 if self.rough else whole_scale(self.base_amount)
        place = {name: index for index, name in enumerate((BASE, *self.currencies))}
        tenants = np.zeros(len(self.tenants), queue_records.TENANT)
        currencies = np.zeros(len(place), queue_records.CURRENCY)
        currencies[queue_records.BASE]["currency"] = NONE
        sums = currencies["sums"][:, queue_records.ALL]
        for rows, grants in ((tenants, self.tenants), (currencies[1:], self.currencies)):
            rows["currency"] = [place[grant.currency] for grant in grants.values()]
            rows["amount"] = [
                float(self._amounts[name] * (scale if grant.currency == BASE else 1))
                for name, grant in grants.items()
            ]
            np.add.at(sums, rows["currency"], rows["amount"])
        return tenants, currencies
