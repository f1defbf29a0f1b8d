"""All that can be seen of rights, to compare before and after."""

from collections import Counter
from typing import Any

from env.tickets.rights import Rights
from env.tickets.ticket import Client, Currency


def holders(rights: Rights) -> list[Client | Currency]:
    """All clients and currencies."""
    return list(rights._holders.values())  # type: ignore[arg-type]


def picture(rights: Rights) -> dict[str, Any]:
    """Who holds what, who lends what, what is active, and what it is worth."""
    seen: dict[str, Any] = {}
    for holder in holders(rights):
        seen[holder.name] = (
            Counter((str(ticket), ticket.active, len(ticket.loans)) for ticket in holder.held),
            len(holder.loans),
            holder.active,
        )
    return {
        "holders": seen,
        "values": rights.values(),
        "amounts": {
            one.name: (one.issued_amount, one.active_amount, len(one.issued))
            for one in holders(rights)
            if isinstance(one, Currency)
        },
    }
