"""The agent `queue`: what it sees of the central queue, what it may choose, and what that does.

It chooses among the first K waiting functions in the order of `funcsched`, or holds the memory back
until something changes. It is asked where one of those K fits and, if a rule places, two or more
wait.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Final, Literal

import numpy as np
from pydantic import Field

from env.base.schema import Strict
from env.learn.actions import Action, taken
from env.learn.agent import Agent, Observation
from env.learn.layouts import TURN_KINDS
from env.learn.observation import clip, log_of, log_seconds
from env.learn.turns import QUEUE_TURN
from env.sim.block import State
from env.sim.central_queue import CHOSEN, choose, oldest, starving, time_and_memory
from env.sim.dispatch import choose_node
from env.sim.engine import play
from env.sim.jit import compiled, places
from env.sim.records import CHOOSE, NONE
from env.sim.room import available_memory, free_memory
from env.sim.rules import DeclaredFunctions, Fit
from env.sim.warm import newest_idle

QUEUE_CONTEXT: Final = (
    "available_memory",  # of all nodes, free or reclaimable, share
    "largest_available",  # of one node, share of the largest node
    "idle_memory",  # of warm containers, share of all
    "running",  # functions
    "functions_waiting",
    "requests_waiting",
    "oldest_wait",  # seconds
    "backlog",  # of all that wait, (E + D * [W = 0] once) * R over all memory, seconds
    "first_fits",  # whether the first in the order does
)
CONTEXT: Final = places(QUEUE_CONTEXT)
QUEUE_ITEM: Final = (
    "hold",  # 1: the row of holding back, otherwise as that of the first in the order
    "execution",  # E, seconds
    "cold_start",  # D, seconds
    "warm",  # whether W > 0
    "seconds",  # E + D * [W = 0]
    "memory",  # R, share of the largest node
    "priority",  # (E + D * [W = 0]) * R
    "over_first",  # logarithm of that over that of the first
    "priority_together",  # the same with the cold start shared by all that wait
    "requests",  # of the function that wait
    "wait",  # of the first of them, seconds
    "starving",  # whether that is too long
    "position",  # in the order, share of K
    "fits",  # whether a node has room now
    "starts_warm",  # whether that node has a warm container of it
    "evicts",  # whether others have to be removed for it
    "running",  # functions of its image
    "share_of_available",  # R over the most that a node has available
)
ITEM: Final = places(QUEUE_ITEM)
QUEUE_CRITIC: Final = (
    "reference_left",  # cost of the reference still to come, share of its whole
    "lead",  # cost so far over that of the reference, share of its whole
    "active",  # requests that have arrived and not ended, logarithm
    "active_over_reference",  # logarithm
    "requests_left",  # to arrive, share
    "requests_in_all",  # logarithm
)
CRITIC: Final = places(QUEUE_CRITIC)

QUEUE_METRICS: Final = {
    "J": "mean completion time over that of `funcsched` on the same requests",
    "completion": "mean completion time, seconds",
    "reference": "that of `funcsched`, seconds",
    "queueing": "mean time in the central queue, seconds",
    "cold_start": "mean time of cold starts, seconds",
    "requests": "in the episode",
    "decisions": "in the episode",
}
"""Of a finished episode, and what each is."""


class QueueAgent(Strict):
    """Key `queue_agent` of the config group `dispatch`; an order of the central queue.

    Attributes:
        functions: K, how many waiting functions it chooses among, the first in the order of
            `funcsched`; requests of one function are one choice.
        starve_threshold: seconds of waiting from which on the oldest stands first in that order.
        placement: which of several equally suited nodes a function goes to; `learned` leaves it to
            the agents of the config group `agents`.
    """

    functions: Annotated[int, Field(ge=1, le=1000)]
    starve_threshold: Annotated[float, Field(ge=0, le=1e9)]
    placement: Literal["first_fit", "best_fit", "worst_fit", "learned"]

    @property
    def rule(self) -> Fit:
        """Of those who do not learn to place, such as the reference."""
        return "worst_fit" if self.placement == "learned" else self.placement

    def layout_with(self, layout: str) -> str:
        """What the agents together are called, `layout` being that of the group `agents`."""
        return f"queue_{layout}" if self.placement == "learned" else "queue"

    @property
    def agent(self) -> Agent:
        """Its spaces: a row a function, and the last one for holding back."""
        return Agent(
            "queue",
            "queue",
            QUEUE_ITEM,
            self.functions + 1,
            context_features=QUEUE_CONTEXT,
            critic_features=QUEUE_CRITIC,
        )

    def write(self, options: np.void) -> None:
        """Fills in the options of the engine."""
        options["order"] = CHOSEN
        options["starve_threshold"] = self.starve_threshold

    def rank(self, functions: DeclaredFunctions) -> np.ndarray:
        """(D,) see `Order` in env/sim/rules.py."""
        return np.zeros(len(functions.execution))


@compiled
def goes_before(state, key, declared, other_key, other):
    """Whether a declared function goes before another; of equal priority, who joined first."""
    if key != other_key:
        return key < other_key
    return state.waiting[declared].number < state.waiting[other].number


@compiled
def first_functions(state, first, keys):
    """Finds the first K declared functions that wait, in the order of `funcsched`.

    Args:
        first: out, int64 (K,), NONE behind the last.
        keys: out, float64 (K,), their priorities; -1 of the one that starves.

    Returns:
        how many functions wait.
    """
    first[:] = NONE
    waiting = 0
    starves = oldest(state)
    if starves != NONE and not starving(state, state.waiting[starves].first):
        starves = NONE
    for declared in range(len(state.waiting)):
        if state.waiting[declared].count == 0:
            continue
        waiting += 1
        key = -1.0 if declared == starves else time_and_memory(state, declared)
        place = min(waiting, len(first))
        while place > 0 and (
            first[place - 1] == NONE
            or goes_before(state, key, declared, keys[place - 1], first[place - 1])
        ):
            place -= 1
            if place + 1 < len(first):
                first[place + 1], keys[place + 1] = first[place], keys[place]
        if place < len(first):
            first[place], keys[place] = declared, key
    return waiting


@compiled
def play_to_choice(state, first, keys, places):
    """`play`, but what leaves no choice is decided: where none fits, all wait.

    Args:
        first, keys: as for `first_functions`.
        places: whether agents place. If not, there is no choice either where one function waits
            alone: it starts.
    """
    while True:
        kind = play(state)
        if kind != CHOOSE:
            return kind
        waiting = first_functions(state, first, keys)
        fit = 0
        for declared in first:
            if declared != NONE:
                fit += choose_node(state, state.waiting[declared].first) != NONE
        if fit > 0 and (places or waiting > 1):
            return CHOOSE
        if fit > 0:
            choose(state, first[0], NONE)


@compiled
def play_first(state, first, keys):
    """`play` with the first function in the order started, or waited for: that is `funcsched`."""
    while True:
        kind = play(state)
        if kind != CHOOSE:
            return kind
        first_functions(state, first, keys)
        if choose_node(state, state.waiting[first[0]].first) != NONE:
            choose(state, first[0], NONE)


@compiled
def see_queue(state, first, context, items, mask):
    """Writes the observation, but for the critic's part.

    Args:
        first: int64 (K,), see `first_functions`.
        context, items, mask: out, float32 (C,), (K + 1, I), (K + 1,).
    """
    waiting, images = state.waiting, state.images
    time = state.cluster[0].time
    memory = available = idle = 0.0
    largest, most = 0.0, 0.0
    for node in range(len(state.nodes)):
        own = float(available_memory(state, node))
        memory += state.nodes[node].memory
        available += own
        idle += own - free_memory(state, node)
        largest = max(largest, float(state.nodes[node].memory))
        most = max(most, own)
    running = 0
    for image in range(len(images)):
        running += images[image].running
    functions = 0
    oldest_wait = backlog = 0.0
    for declared in range(len(waiting)):
        count = waiting[declared].count
        if count > 0:
            functions += 1
            own = time_and_memory(state, declared)
            more = waiting[declared].execution * images[waiting[declared].image].memory
            backlog += own + (count - 1) * more
            since = state.functions[waiting[declared].first].submission_time
            oldest_wait = max(oldest_wait, time - since)
    hold = len(first)
    items[:] = 0.0
    mask[:] = 0.0
    of_first = time_and_memory(state, first[0])
    for row in range(len(first)):
        declared = first[row]
        if declared == NONE:
            break
        image = waiting[declared].image
        count = waiting[declared].count
        cold = 0.0 if images[image].warm > 0 else images[image].cold_start
        need = images[image].memory
        own = time_and_memory(state, declared)
        together = (waiting[declared].execution + cold / count) * need
        index = waiting[declared].first
        node = choose_node(state, index)
        items[row, ITEM.execution] = log_seconds(waiting[declared].execution)
        items[row, ITEM.cold_start] = log_seconds(images[image].cold_start)
        items[row, ITEM.warm] = 1.0 if images[image].warm > 0 else 0.0
        items[row, ITEM.seconds] = log_seconds(waiting[declared].execution + cold)
        items[row, ITEM.memory] = need / largest
        items[row, ITEM.priority] = log_of(own) / 10.0
        items[row, ITEM.over_first] = clip((log_of(own) - log_of(of_first)) / 3.0)
        items[row, ITEM.priority_together] = log_of(together) / 10.0
        items[row, ITEM.requests] = log_of(count) / 3.0
        items[row, ITEM.wait] = log_seconds(time - state.functions[index].submission_time)
        items[row, ITEM.starving] = 1.0 if starving(state, index) else 0.0
        items[row, ITEM.position] = row / len(first)
        if node != NONE:
            mask[row] = 1.0
            items[row, ITEM.fits] = 1.0
            if newest_idle(state, node, image) != NONE:
                items[row, ITEM.starts_warm] = 1.0
            elif free_memory(state, node) < need:
                items[row, ITEM.evicts] = 1.0
        items[row, ITEM.running] = log_of(images[image].running) / 3.0
        items[row, ITEM.share_of_available] = min(2.0, need / max(1.0, most))
    if running > 0:
        mask[hold] = 1.0
        for feature in range(items.shape[1]):
            items[hold, feature] = items[0, feature]
        items[hold, ITEM.hold] = 1.0
    context[CONTEXT.available_memory] = available / memory
    context[CONTEXT.largest_available] = most / largest
    context[CONTEXT.idle_memory] = idle / memory
    context[CONTEXT.running] = log_of(running) / 3.0
    context[CONTEXT.functions_waiting] = log_of(functions) / 3.0
    context[CONTEXT.requests_waiting] = log_of(state.queue[0].waiting) / 5.0
    context[CONTEXT.oldest_wait] = log_seconds(oldest_wait)
    context[CONTEXT.backlog] = log_seconds(backlog / memory)
    context[CONTEXT.first_fits] = mask[0]


def funcsched_choice(seen: Observation) -> int:
    """What `funcsched` does: starts the first function, or holds back for it until it fits."""
    mask = seen["mask"]
    return 0 if mask[0] > 0.0 else len(mask) - 1


Decide = Callable[[str, Observation], Action]
"""From the name of an agent and what it sees, without the critic's part, to its action."""


class QueueTurns:
    """The turns of a decision in one simulator; the `Chooser` of a `Rules`.

    Here the agent `queue` alone acts; `env/learn/queue_places.py` has agents that place.

    Args:
        settings: of the agent.
        decide: None where the episode is played step by step: by `see`, `act` and `finish`.

    Attributes:
        agents: by name.
        turns: as env/learn/turns.py numbers them.
    """

    def __init__(self, settings: QueueAgent, decide: Decide | None = None) -> None:
        self.agents = {settings.agent.name: settings.agent}
        self.turns: tuple[int, ...] = (QUEUE_TURN,)
        self._decide = decide
        self._first = np.zeros(settings.functions, np.int64)
        self._keys = np.zeros(settings.functions)
        self._chosen = NONE

    def play(self, state: State) -> int:
        """As `env.sim.dispatch.play`, up to where there is something to choose."""
        return int(play_to_choice(state, self._first, self._keys, False))

    def agents_of(self, turn: int) -> list[Agent]:
        """Who can act at a turn."""
        return [agent for agent in self.agents.values() if agent.kind == TURN_KINDS[turn]]

    def acting(self, turn: int) -> list[int]:
        """Who of `agents_of(turn)` does act."""
        return [0]

    def see(self, turn: int, agent: int, state: State, out: Observation) -> None:
        """Writes `context`, `items` and `mask` of one who acts."""
        see_queue(state, self._first, out["context"], out["items"], out["mask"])

    def act(self, turn: int, agent: int, state: State, action: Action) -> None:
        """Takes the action of one who acts, checked: of `queue` a row, or K to hold back."""
        self._chosen = NONE if action == len(self._first) else int(self._first[action])

    def finish(self, state: State) -> None:
        """Does what the turns have decided."""
        choose(state, self._chosen, NONE)

    def choose(self, state: State) -> None:
        """Takes all turns of a decision.

        Raises:
            InputError: what was decided is not allowed.
        """
        assert self._decide is not None
        for turn in self.turns:
            acting, actions, masks = self.acting(turn), {}, []
            if not acting:
                break  # `queue` holds back
            agents = [self.agents_of(turn)[index] for index in acting]
            for index, agent in zip(acting, agents, strict=True):
                seen = agent.blank_observation()
                del seen["critic"]
                self.see(turn, index, state, seen)
                masks.append(seen["mask"].copy())
                actions[agent.name] = self._decide(agent.name, seen)
            found = taken(agents, masks, actions).tolist()
            for index, action in zip(acting, found, strict=True):
                self.act(turn, index, state, action)
        self.finish(state)


class QueueReference(QueueTurns):
    """Chooses as `funcsched` does: the first function in the order, or nothing until it fits."""

    def play(self, state: State) -> int:
        """To the end."""
        return int(play_first(state, self._first, self._keys))
