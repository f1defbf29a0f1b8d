"""Every action is checked where it enters: type, range, mask, and whether the agent is due.

What is refused changes nothing: the same turn can be answered again. Compiled code takes only
actions that have passed, and writes only to arrays that have.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from env.base.errors import InputError
from env.base.jit import compiled
from env.base.schema import one_line, short

if TYPE_CHECKING:
    from env.learn.agent import Agent, Observation

Action = Any
"""An integer; of an agent that bids two of them, its bid and its place."""
Drawn = tuple[int, tuple[int, int], int]
"""Of an episode: seed, worker and environment, and number."""
NO_PLACE: Final = -1
"""The place of a server type that bids 0 and does not win, where it does not matter."""
FLOAT = np.dtype(np.float32)
"""Of what agents see."""
MOST_NAMED = 5
"""How many agents or choices an error names."""

# What is wrong with an action.
NOTHING: Final = 0
OUTSIDE: Final = 1  # of its space
BID_MASKED: Final = 2
MASKED: Final = 3  # the choice, of a bidder the place
NOWHERE: Final = 4  # it wins with a bid of 0, and has named no place


@compiled
def first_fault(actions, mask, bids, acting):
    """The first row with an action that is not allowed, and what is wrong with it.

    Args:
        actions: int64 (R, 1), or (R, 2) of bids and places.
        mask: float32 (R, A), what the agents have seen.
        bids: B, 0 for none.
        acting: rows of one environment, which are together; 0: some of its agents only.
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
    if bids > 0 and acting > 0:
        for first in range(0, len(actions), acting):
            winner = -1
            for row in range(first, first + acting):  # one with room may bid more than 0
                if mask[row, 1] > 0.0 and (winner < 0 or actions[row, 0] > actions[winner, 0]):
                    winner = row
            if winner >= 0 and actions[winner, 1] == NO_PLACE:
                return winner, NOWHERE
    return -1, NOTHING


def taken(
    agents: Sequence[Agent],
    masks: Sequence[np.ndarray],
    actions: Mapping[str, Action],
    whole: bool = True,
) -> np.ndarray:
    """The actions of a turn in one environment.

    Args:
        agents: who is due, all of one space.
        masks: (A,) what each of them has seen.
        actions: by name.
        whole: whether all who bid are among them.

    Returns:
        int64 (R,), or (R, 2) of bids and places.

    Raises:
        InputError: agents are missing or not due, or an action is not allowed.
    """
    names = [agent.name for agent in agents]
    if not isinstance(actions, Mapping):
        raise InputError(f"actions: a mapping from agents is needed, found {short(actions)}")
    for fault, found in (
        ("missing", [name for name in names if name not in actions]),
        ("not due", [name for name in actions if name not in names]),
    ):
        if found:
            raise InputError(f"agents {fault}: {_some(found)}; due: {_some(names)}")
    rows = []
    for agent in agents:
        numbers = integers(actions[agent.name], 2 if agent.bids else 1)
        if numbers is None:
            raise _outside(agent, actions[agent.name])
        rows.append(numbers)
    parts = np.array(rows, np.int64)
    _refuse(parts, np.array(masks), len(agents) if whole else 0, agents.__getitem__)
    return parts if agents[0].bids else parts[:, 0]


class TurnOrder:
    """Which turn of a batch is due, and what its agents may do, as they have observed it.

    Args:
        agents_of: who can act at each turn, in the order of the turns.
        environments: E.
    """

    def __init__(self, agents_of: Mapping[int, Sequence[Agent]], environments: int) -> None:
        self._agents_of, self._turns = agents_of, tuple(agents_of)
        self._environments = environments
        self._masks: dict[int, np.ndarray] = {}
        self._shapes: dict[int, dict[str, tuple[int, ...]]] = {}
        for turn, agents in agents_of.items():
            rows = environments * (len(agents) if agents[0].bids else 1)
            blank = agents[0].blank_observation()
            self._shapes[turn] = {part: (rows, *zeros.shape) for part, zeros in blank.items()}
        self.begin()

    def begin(self) -> None:
        """The first turn of a decision is due."""
        self._taken = 0
        self._observed = False

    def check_room(self, turn: int, out: Observation) -> None:
        """Refuses what the observations of a turn cannot be written to.

        Raises:
            InputError: the turn is not due, or a part is missing or no array as it is needed.
        """
        self._check_due(turn)
        if not isinstance(out, Mapping):
            raise InputError(f"turn {turn}: a mapping from parts is needed, found {short(out)}")
        for part, shape in self._shapes[turn].items():
            given: Any = out.get(part)
            array = isinstance(given, np.ndarray)
            # `carray`: C-contiguous, aligned and writable.
            if array and (given.dtype, given.shape) == (FLOAT, shape) and given.flags.carray:
                continue
            found = f"{given.dtype} of {given.shape}" if array else short(given)
            raise InputError(
                f"turn {turn}: {part}: a writable C-contiguous array, {FLOAT} of {shape}, is "
                f"needed, found {found}"
            )

    def observed(self, turn: int, mask: np.ndarray) -> None:
        """Notes what the agents of a turn may do."""
        self._masks[turn] = mask.copy()
        self._observed = True

    def take(self, turn: int, actions: np.ndarray, acting: np.ndarray) -> np.ndarray:
        """Checks the actions of a turn; after it the next one is due.

        Args:
            turn: whose.
            actions: (E * A,), or (E * A, 2) of bids and places.
            acting: (E * A,) which of the turn's agents each row is of; below 0: nobody's.

        Returns:
            them as int64, C-contiguous.

        Raises:
            InputError: the turn is not due or has not been observed, or an action is not allowed.
        """
        self._check_due(turn)
        if not self._observed:
            raise InputError(f"turn {turn} has not been observed")
        agents, mask = self._agents_of[turn], self._masks[turn]
        shape = (len(mask), 2) if agents[0].bids else (len(mask),)
        if not isinstance(actions, np.ndarray):
            raise InputError(f"actions: an array is needed, found {short(actions)}")
        kind = actions.dtype
        if kind.kind not in "iu" or not np.can_cast(kind, np.int64) or actions.shape != shape:
            raise InputError(
                f"actions: integers of shape {shape} are needed, found {kind} of {actions.shape}"
            )
        together = len(mask) // self._environments
        found = np.ascontiguousarray(actions, np.int64)
        rows = np.flatnonzero(acting >= 0)
        parts, mask = found.reshape(len(found), -1)[rows], mask[rows]

        def whose(row: int) -> Agent:
            agent = agents[acting[rows[row]]]
            return agent._replace(name=f"environment {rows[row] // together}: {agent.name}")

        _refuse(parts, mask, together, whose, agents[0].bids)
        self._taken += 1
        self._observed = False
        return found

    def finish(self) -> None:
        """All turns have been taken, and the next decision begins.

        Raises:
            InputError: one has not.
        """
        if self._taken < len(self._turns):
            raise InputError(f"turn {self._turns[self._taken]} has not been taken")
        self.begin()

    def _check_due(self, turn: int) -> None:
        """Refuses a turn that is not due: another one is, or `step`."""
        due = self._turns[self._taken] if self._taken < len(self._turns) else None
        if type(turn) is not int or turn != due:
            named = "step" if due is None else f"turn {due}"
            raise InputError(f"turn {short(turn)} is not due; due: {named}")


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


MOST_ENVIRONMENTS: Final = 10_000
"""Of a batch."""
LARGEST_SEED: Final = 2**64 - 1
"""Of an episode, as RLlib's runners draw them."""


def next_episode(seed: Any, otherwise: Drawn) -> Drawn:
    """Which episode `reset` draws: the first one of the stream that a seed names in a worker.

    Args:
        seed: that `reset` was given, None for none.
        otherwise: which one without a seed.

    Raises:
        InputError: the seed is none.
    """
    if seed is None:
        return otherwise
    worker, _ = otherwise[1]
    return whole_number("seed", seed, 0, LARGEST_SEED), (worker, 0), 0


def seed_each(seed: Any, environments: int) -> Sequence[Any]:
    """One seed for each environment, None for none: those of a list, or those from a number on.

    Raises:
        InputError: there is not one for each.
    """
    if seed is None:
        return [None] * environments
    if not isinstance(seed, list | tuple):
        first = whole_number("seed", seed, 0, LARGEST_SEED - environments)
        return range(first, first + environments)
    if len(seed) != environments:
        raise InputError(f"seed: {environments} seeds are needed, found {len(seed)}")
    return seed


def nothing_played(method: str, ended: bool = False) -> InputError:
    """What a call outside an episode gets."""
    why = "the episode is over" if ended else "no episode is being played"
    return InputError(f"{method}: {why}, call reset() first")


def _refuse(
    actions: np.ndarray,
    mask: np.ndarray,
    acting: int,
    agent_of: Callable[[int], Agent],
    bids: int | None = None,
) -> None:
    """Raises the error of the first row that is not allowed; arguments as for `first_fault`."""
    if not len(actions):
        return
    bids = agent_of(0).bids if bids is None else bids
    row, fault = first_fault(actions, mask, bids, acting)
    if fault == NOTHING:
        return
    agent, own = agent_of(row), actions[row].tolist()
    if fault == OUTSIDE:
        raise _outside(agent, own if bids else own[0])
    if fault == NOWHERE:
        raise InputError(f"{agent.name}: bid 0 wins and needs a place, found {NO_PLACE}")
    first, last = (0, bids) if fault == BID_MASKED else (bids, mask.shape[1])
    what = "bid" if fault == BID_MASKED else "place" if bids else "action"
    allowed = _some(np.flatnonzero(mask[row, first:last]).tolist())
    chosen = own[0] if fault == BID_MASKED else own[-1]
    if what == "place":
        raise InputError(f"{agent.name}: place is masked: {chosen}; allowed: {allowed}")
    raise InputError(f"{agent.name}: {what} {chosen} is masked; allowed: {allowed}")


def _outside(agent: Agent, action: Action) -> InputError:
    parts = list(action) if isinstance(action, list | tuple) else None
    found = f"[{', '.join(map(short, parts))}]" if parts and len(parts) == 2 else short(action)
    return InputError(one_line(f"{agent.name}: {found} is not in {agent.action_space}"))


def integers(action: Any, count: int) -> list[int] | None:
    """The parts of an action, None if they are not so many integers of 64 bits."""
    parts: Any = action if count > 1 else [action]
    if isinstance(parts, np.ndarray):
        parts = parts.tolist()
    if not isinstance(parts, list | tuple) or len(parts) != count:
        return None
    # To Python a truth value is an integer, and so is a tensor that holds one.
    kinds = (getattr(part, "dtype", type(part).__name__) for part in parts)
    if any(str(kind).endswith("bool") for kind in kinds):
        return None
    try:
        numbers = [operator.index(part) for part in parts]
    except TypeError:
        return None
    limits = np.iinfo(np.int64)
    return numbers if limits.min <= min(numbers) and max(numbers) <= limits.max else None


def _some(found: Iterable[Any]) -> str:
    """The first of them, and how many more there are."""
    words = [each if isinstance(each, str) else short(each) for each in found]
    shown = ", ".join(one_line(word)[:60] for word in words[:MOST_NAMED])
    more = len(words) - MOST_NAMED
    return f"{shown} and {more} more" if more > 0 else shown


ATTEMPTS = 100
"""Episodes without a choice that are passed over before the world is refused."""


def no_choice() -> InputError:
    """What a world gets in which agents are never asked."""
    return InputError(
        f"agents.queue: of {ATTEMPTS} episodes none has a choice, in which two functions wait: let "
        "more arrive, or give fewer servers"
    )
