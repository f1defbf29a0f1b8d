"""Every action is checked where it enters: type, range, mask, and whether the agent is due.

What is refused changes nothing: the same turn can be answered again. Compiled code takes only
actions that have passed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from env.base.errors import InputError
from env.base.jit import compiled
from env.base.schema import listed, one_line, short

if TYPE_CHECKING:
    from env.learn.agent import Agent

Action = Any
"""An integer; of an agent that bids two of them, its bid and its place."""
MOST_ENVIRONMENTS: Final = 10_000
"""Of a batch."""
LARGEST_SEED: Final = 2**64 - 1
"""Of an episode, as RLlib's runners draw them."""
NO_PLACE: Final = -1
"""The place of a server type that bids 0 and does not win, where it does not matter."""
# What is wrong with an action.
NOTHING: Final = 0
OUTSIDE: Final = 1  # of its space
BID_MASKED: Final = 2
MASKED: Final = 3  # the choice, of a bidder the place
NOWHERE: Final = 4  # it wins with a bid of 0, and has named no place


@compiled
def first_fault(actions, mask, bids, together):
    """The first row with an action that is not allowed, and what is wrong with it.

    Args:
        actions: int64 (R, 1), or (R, 2) of bids and places.
        mask: float32 (R, A), what the agents have seen.
        bids: B, 0 for none.
        together: rows of one environment; 0: some of its agents only.
    """
    parts = actions.shape[1]
    places = mask.shape[1] - bids
    for row in range(len(actions)):
        place = actions[row, parts - 1]
        asked = True
        if bids > 0:
            bid = actions[row, 0]
            if bid < 0 or bid >= bids:
                return row, OUTSIDE
            if mask[row, bid] <= 0.0:
                return row, BID_MASKED
            asked = bid > 0 or place != NO_PLACE
        if asked and (place < 0 or place >= places):
            return row, OUTSIDE
        if asked and mask[row, bids + place] <= 0.0:
            return row, MASKED
    if bids > 0 and together > 0:
        for first in range(0, len(actions), together):
            winner = -1
            for row in range(first, first + together):  # one with room may bid more than 0
                if mask[row, 1] > 0.0 and (winner < 0 or actions[row, 0] > actions[winner, 0]):
                    winner = row
            if winner >= 0 and actions[winner, 1] == NO_PLACE:
                return winner, NOWHERE
    return -1, NOTHING


def actions_of(agents: Sequence[Agent], actions: Mapping[str, Action]) -> np.ndarray:
    """The actions of a turn as rows.

    Args:
        agents: who is due, all of one space.
        actions: by name.

    Returns:
        int64 (R,), or (R, 2) of bids and places.

    Raises:
        InputError: agents are missing or not due, or an action is not made of integers.
    """
    names = [agent.name for agent in agents]
    if not isinstance(actions, Mapping):
        raise InputError(f"actions: a mapping from agents is needed, found {short(actions)}")
    for fault, wrong in (
        ("missing", [name for name in names if name not in actions]),
        ("not due", [str(name) for name in actions if name not in names]),
    ):
        if wrong:
            raise InputError(f"agents {fault}: {listed(wrong)}; due: {listed(names)}")
    rows, shape = [], (2,) if agents[0].bids else ()
    for agent in agents:
        row = np.asarray(actions[agent.name])
        if row.dtype.kind not in "iu" or row.shape != shape:
            raise _outside(agent, actions[agent.name])
        rows.append(row)
    return np.array(rows, np.int64)


def taken(
    agents: Sequence[Agent],
    masks: np.ndarray,
    acting: np.ndarray,
    actions: np.ndarray,
    together: int,
) -> np.ndarray:
    """The actions of a turn in some environments, of which each has as many rows.

    Args:
        agents: who can act at the turn, all of one space.
        masks: float32 (R, A), what the agents have seen.
        acting: (R,) which of the agents each row is of; below 0: nobody's.
        actions: integers (R,), or (R, 2) of bids and places.
        together: rows of one environment; 0: some of its agents only.

    Returns:
        them as int64, C-contiguous.

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
    row, fault = first_fault(asked, seen, bids, together)
    if fault == NOTHING:
        return given
    agent, action = agents[acting[rows[row]]], asked[row].tolist()
    if 0 < together < len(masks):
        agent = agent._replace(name=f"environment {rows[row] // together}: {agent.name}")
    if fault == OUTSIDE:
        raise _outside(agent, action if bids else action[0])
    if fault == NOWHERE:
        raise InputError(f"{agent.name}: bid 0 wins and needs a place, found {NO_PLACE}")
    if fault == BID_MASKED:
        what, chosen, possible = "bid", action[0], seen[row, :bids]
    else:
        what, chosen, possible = "place" if bids else "action", action[-1], seen[row, bids:]
    allowed = listed([str(choice) for choice in np.flatnonzero(possible)])
    raise InputError(f"{agent.name}: {what} {chosen} is masked; allowed: {allowed}")


def whole_number(name: str, value: Any, least: int, most: int) -> int:
    """A number that a caller gives.

    Raises:
        InputError: it is not whole or out of range.
    """
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


def _outside(agent: Agent, action: Action) -> InputError:
    shown = action if isinstance(action, list) else short(action)
    return InputError(one_line(f"{agent.name}: {shown} is not in {agent.action_space}"))
