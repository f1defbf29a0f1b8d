"""Every action is checked where it enters: type, range, mask, and whether the agent is due.

What is refused changes nothing: the same turn can be answered again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from env.base.errors import InputError
from env.base.schema import listed, one_line, short

if TYPE_CHECKING:
    from env.learn.kind import Agent

Action = Any
"""An integer; of an agent that bids two of them, its bid and its place."""
MOST_ENVIRONMENTS: Final = 10_000  # of a batch
LARGEST_SEED: Final = 2**64 - 1  # of an episode, as RLlib's runners draw them
NO_PLACE: Final = -1
"""The place of a server type that bids 0 and does not win, where it does not matter."""


def _refused(actions: np.ndarray, masks: np.ndarray, bids: int, together: int) -> np.ndarray:
    """(R,) which rows have an action that is not allowed; see `checked`.

    Args:
        actions: int64 (R, 1), or (R, 2) of bids and places.
        masks: float32 (R, A), of these rows.
        bids: B, 0 for none.
        together: rows of one environment; 0: some of its agents only.
    """
    places = actions[:, -1]
    refused = ~_allowed(masks[:, bids:], places)
    if bids:
        offers = actions[:, 0]
        refused &= (offers > 0) | (places != NO_PLACE)
        refused |= ~_allowed(masks[:, :bids], offers)
    if bids and together and not refused.any():
        # Whoever has room may bid more than 0.
        of_each = np.where(masks[:, 1] > 0.0, offers, -1).reshape(-1, together)
        winners = np.arange(0, len(actions), together) + of_each.argmax(axis=1)
        refused[winners] = (of_each.max(axis=1) >= 0) & (places[winners] == NO_PLACE)
    return refused


def _allowed(masks: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """(R,) whether a row of the masks (R, A) allows what was chosen, any integer."""
    inside = (chosen >= 0) & (chosen < masks.shape[1])
    return inside & (masks[np.arange(len(masks)), np.where(inside, chosen, 0)] > 0.0)


def actions_of(agents: Sequence[Agent], actions: Mapping[str, Action]) -> np.ndarray:
    """The actions, by name, of the agents that are due: int64 (R,), or (R, 2) of bids and places.

    Raises:
        InputError: agents are missing or not due, or an action is not made of integers.
    """
    names = [agent.name for agent in agents]
    given = list(actions) if isinstance(actions, Mapping) else [short(actions)]
    if set(given) != set(names):
        raise InputError(
            f"actions: those of {listed(names)} are due, found {listed(list(map(str, given)))}"
        )
    rows, shape = [np.asarray(actions[name]) for name in names], (2,) if agents[0].bids else ()
    for agent, row in zip(agents, rows, strict=True):
        if row.dtype.kind not in "iu" or row.shape != shape:
            found = short(actions[agent.name])
            raise InputError(one_line(f"{agent.name}: {found} is not in {agent.action_space}"))
    return np.array(rows, np.int64)


def checked(
    agents: Sequence[Agent],
    masks: np.ndarray,
    acting: np.ndarray,
    actions: np.ndarray,
    together: int,
) -> np.ndarray:
    """The actions of a turn as int64, C-contiguous.

    Args:
        agents: who can act at the turn, all of one space.
        masks: float32 (R, A), what the agents have seen.
        acting: (R,) which of the agents each row is of; below 0: nobody's.
        actions: integers (R,), or (R, 2) of bids and places.
        together: rows of one environment, of which one wins; 0: some of its agents only.

    Raises:
        InputError: they have another shape or type, or an action is not allowed.
    """
    bids = agents[0].bids
    shape, given = (len(masks), 2)[: 2 if bids else 1], np.asarray(actions)
    if given.dtype.kind not in "iu" or given.shape != shape:
        raise InputError(
            f"actions: integers of shape {shape} are needed, found {given.dtype} of {given.shape}"
        )
    given = np.ascontiguousarray(given, np.int64)
    rows = np.flatnonzero(acting >= 0)
    asked, seen = given.reshape(len(given), -1)[rows], masks[rows]
    refused = _refused(asked, seen, bids, together)
    if not refused.any():
        return given
    row = int(refused.argmax())
    where = f"environment {rows[row] // together}: " if 0 < together < len(masks) else ""
    allowed = listed([str(place) for place in np.flatnonzero(seen[row, bids:])])
    if bids:
        offers = listed([str(bid) for bid in np.flatnonzero(seen[row, :bids])])
        allowed = f"bids {offers}, places {allowed}, or {NO_PLACE} of a bid of 0 that does not win"
    name, action = agents[acting[rows[row]]].name, asked[row].tolist()
    found = action if bids else action[0]
    raise InputError(f"{where}{name}: {found} is not possible, allowed: {allowed}")


def whole_number(name: str, value: Any, least: int, most: int) -> int:
    """A number that a caller gives; `InputError` if it is not whole or out of range."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or not least <= value <= most:
        raise InputError(
            f"{name}: a whole number from {least} to {most} is needed, found {short(value)}"
        )
    return int(value)


def nothing_played(method: str, ended: bool = False) -> InputError:
    """What a call outside an episode gets."""
    why = "the episode is over" if ended else "no episode is being played"
    return InputError(f"{method}: {why}, call reset() first")
