"""Plays on without Python: greedy placements to the end of an episode, from any moment, in forks.

Decisions are those of the placement `greedy_objective` with the memory that functions require.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from env.base.errors import InputError
from env.base.jit import compiled
from env.score.greedy_score import ScoreWeights, greedy_node, greedy_scores
from env.score.reward import Objective, arrived_objective, potential
from env.sim.assembly.new_state import copy_into, reset
from env.sim.events.choosing import choose_first
from env.sim.events.engine import play
from env.sim.events.placing import place
from env.sim.events.submissions import forget_future
from env.sim.forecast.candidates import are_twins, forecast, update_finish_bounds
from env.sim.node.fit import suits
from env.sim.queue.workflow_tickets import grant
from env.sim.state.block import State
from env.sim.state.queue_records import NodeBy
from env.sim.state.records import CANDIDATE, CHOOSE, INF, NONE, PLACE, SHARE


def buffers_of(state: State) -> tuple[np.ndarray, np.ndarray]:
    """What compiled code writes to while it plays: CANDIDATE (N,), and greedy scores (N,)."""
    return np.zeros(len(state.nodes), CANDIDATE), np.zeros(len(state.nodes))


@compiled
def play_greedy(state: State, weights: np.ndarray, candidates: np.ndarray, scores: np.ndarray):
    """Plays events and greedy placements until nothing is left to be placed or to end.

    Args:
        state: at any moment, also one at which a decision is due; nobody listens to it any more.
        weights: as `greedy_scores` takes them.
        candidates, scores: see `buffers_of`.

    Returns:
        DONE, or a negative error code.
    """
    state.cluster[0].listens = 0
    kind = play(state)
    while kind == PLACE:
        update_finish_bounds(state)
        kind = place_greedily(state, weights, candidates, scores)
        if kind == 0:
            kind = play(state)
    return kind


@compiled
def place_greedily(state: State, weights: np.ndarray, candidates: np.ndarray, scores: np.ndarray):
    """Places the current function; bounds of finish times are up to date. As `place` returns."""
    memory_req = state.functions[state.cluster[0].deciding].memory_req
    forecast(state, memory_req, candidates)
    greedy_scores(state, candidates, weights, scores)
    return place(state, greedy_node(candidates, scores), memory_req)


@compiled
def trace_greedy(state: State, weights, candidates, scores, objective, cheapest, trace) -> None:
    """Plays an episode as `play_greedy` and notes how its potential rises.

    Where the order is `chosen` it chooses as `funcsched`, where tickets are asked for each workflow
    gets those that its workload says, and it leaves to the engine what the engine places.

    Args:
        state, weights, candidates, scores: as for `play_greedy`.
        objective: float64 (5,), weights of J.
        cheapest: USD, see `cheapest_cost`.
        trace: out, float64 (D, 2), time and potential whenever a function is to start or a workflow
            to get tickets, then at time inf J; D is above the number of functions. What starts
            again because it was killed is noted as far as there are not more rows than functions.
    """
    reset(state)
    state.cluster[0].aside = 0
    kind = play(state)
    row = most = 0
    for arrival in range(len(state.arrivals)):
        most += state.templates[state.arrivals[arrival].template].function_count
    while kind in (PLACE, CHOOSE, SHARE):
        starts = kind != CHOOSE
        if kind == CHOOSE:
            starts = choose_first(state) and state.options[0].placement != NodeBy.asked
        if starts:
            update_finish_bounds(state)
        if starts and row < most:
            trace[row, 0] = state.cluster[0].time
            trace[row, 1] = potential(state, objective, cheapest)
            row += 1
        if kind == PLACE:
            kind = place_greedily(state, weights, candidates, scores)
        else:
            if kind == SHARE:
                grant(state, state.workflows[state.queue[0].newcomer].tickets)
            kind = 0
        if kind == 0:
            kind = play(state)
    update_finish_bounds(state)
    trace[row:, 0] = INF
    trace[row:, 1] = potential(state, objective, cheapest)


class Forks:
    """Forks of an episode, which `play_greedy` plays to their ends.

    Args:
        state: at a decision; stays as it is.
        clairvoyant: whether later workflows arrive in the forks, and calls are drawn there as in
            the episode; otherwise every call that is not drawn yet is made.
        objective: what J is made of.

    Raises:
        InputError: containers stay warm or start cold, or functions wait centrally; playing: more
            workflows are active in a fork than the state has slots.
    """

    def __init__(self, state: State, clairvoyant: bool, objective: Objective) -> None:
        if len(state.images) > 0:
            raise InputError(
                "rollout: schedules are tried out only where functions are placed at once and "
                "containers neither stay warm nor start cold"
            )
        self._state, self._clairvoyant, self._objective = state, clairvoyant, objective
        self._fork, self._buffers = state.blank(), buffers_of(state)

    def of_nodes(self, memory_alloc: int, weights: ScoreWeights) -> np.ndarray:
        """(N,) J if the current function goes to each node with so many MB.

        It is inf where that does not fit, or where an equal node has been tried (`are_twins`).
        """
        state, by_objective = self._state, weights.by_objective(self._objective)
        outcomes = np.full(len(state.nodes), INF)
        unrented = NONE  # the last node tried whose server has never been rented
        for node, server in enumerate(state.servers[state.nodes["server"]]):
            if suits(state, node, memory_alloc) and not are_twins(state, node, unrented):
                unrented = node if server["expiration_time"] == -INF else unrented
                outcomes[node] = self._outcome(by_objective, node, memory_alloc)
        return outcomes

    def of_rules(self, rules: Sequence[ScoreWeights]) -> np.ndarray:
        """(R,) J by each rule, weights of `greedy_objective`."""
        return np.array([self._outcome(rule.by_objective(self._objective)) for rule in rules])

    def _outcome(self, weights: np.ndarray, *first: int) -> float:
        """J after the placement `first` (node, MB) if given."""
        fork = self._fork
        copy_into(fork, self._state)
        if not self._clairvoyant:
            forget_future(fork)
        kind = place(fork, *first) if first else 0
        if kind == 0:
            kind = play_greedy(fork, weights, *self._buffers)
        if kind < 0:
            raise InputError(
                f"more than {len(fork.workflows)} workflows are active in a rollout: "
                "give RawEnv more workflow_slots"
            )
        return float(arrived_objective(fork, self._objective.weights))
