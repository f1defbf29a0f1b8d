"""All that can be seen of rights, to compare before and after."""

from collections import Counter
from typing import Any

from env.tickets.rights import Currency, Rights


def picture(rights: Rights) -> dict[str, Any]:
    """Who holds what, what of it is borrowed, how much is issued, and what it is worth."""
    holders = rights.holders.values()
    return {
        "held": {
            holder.name: Counter((str(ticket), len(ticket.loans)) for ticket in holder.held)
            for holder in holders
        },
        "issued": [unit.issued_amount for unit in holders if isinstance(unit, Currency)],
        "loans": set(rights.loans),
        "values": rights.values(),
    }
