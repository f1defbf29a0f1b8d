"""Plays on without Python: greedy placements to the end of an episode, from any moment, in forks.

`play_greedy` decides as the placement rule `greedy_objective` with the memory that functions
require. `rollout_outcomes` has it finish a fork for each node that the current function could go
to, `rule_outcomes` one for each of several rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np

from env.base.errors import InputError
from env.base.jit import compiled
from env.score.greedy_score import ScoreWeights, greedy_node, greedy_scores
from env.score.reward import Objective, arrived_objective, potential
from env.sim.assembly.new_state import copy_into, reset
from env.sim.events.choosing import choose_first
from env.sim.events.engine import play
from env.sim.events.placing import place
from env.sim.events.submissions import forget_arrivals
from env.sim.forecast.candidates import are_twins, forecast, update_finish_bounds
from env.sim.node.fit import suits
from env.sim.queue.workflow_tickets import grant
from env.sim.state.block import State
from env.sim.state.queue_records import NodeBy
from env.sim.state.records import CANDIDATE, CHOOSE, INF, NONE, PLACE, SHARE


class Buffers(NamedTuple):
    """What compiled code writes to while it plays: it allocates nothing.

    Attributes:
        candidates: (N,) CANDIDATE.
        scores: (N,) greedy scores.
    """

    candidates: np.ndarray
    scores: np.ndarray

    @classmethod
    def of(cls, state: State) -> Self:
        """For states with as many NUMA nodes as this one."""
        return cls(np.zeros(len(state.nodes), CANDIDATE), np.zeros(len(state.nodes)))


@compiled
def play_greedy(state, weights, candidates, scores):
    """Plays events and greedy placements until nothing is left to be placed or to end.

    Args:
        state: at any moment, also one at which a decision is due; nobody listens to it any more.
        weights: as `greedy_scores` takes them.
        candidates, scores: see `Buffers`.

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
def place_greedily(state, weights, candidates, scores):
    """Places the current function; bounds of finish times are up to date. As `place` returns."""
    memory_req = state.functions[state.cluster[0].deciding].memory_req
    forecast(state, memory_req, candidates)
    greedy_scores(state, candidates, weights, scores)
    return place(state, greedy_node(candidates, scores), memory_req)


@compiled
def trace_greedy(state, weights, objective, cheapest, relative, candidates, scores, trace):
    """Plays an episode as `play_greedy` and notes how its potential rises.

    What the greedy rule comes to in an episode tells a critic how hard the episode is; it is the
    reference among CRITIC_FEATURES. Where the order is `chosen` it chooses as `funcsched`, where
    tickets are asked for each workflow gets those that its workload says, and it leaves to the
    engine what the engine places.

    Args:
        state, weights, candidates, scores: as for `play_greedy`.
        objective: float64 (4,), its weights; out, with `relative`: divided by the J of the
            reference, so that the reference itself comes to 1.
        cheapest: USD, see `cheapest_cost`.
        relative: whether the potential of this episode, and with it rewards, count in that J.
            Where J differs by orders of magnitude from one episode to the next, a few would
            otherwise be all that is learned from.
        trace: out, float64 (D, 2), time and potential whenever a function is to start, or a
            workflow to get tickets, in this order, then at time inf J; D is above the number of
            functions.

    Returns:
        DONE, or a negative error code.
    """
    reset(state)
    state.cluster[0].aside = 0
    kind = play(state)
    row = 0
    while kind in (PLACE, CHOOSE, SHARE):
        starts = kind in (PLACE, SHARE)
        if kind == CHOOSE:
            starts = choose_first(state) and state.options[0].placement != NodeBy.asked
        if starts:
            update_finish_bounds(state)
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
    if relative:
        reference = trace[row, 1]
        for weight in range(len(objective)):
            objective[weight] /= reference
        for passed in range(len(trace)):
            trace[passed, 1] /= reference
    return kind


def rollout_outcomes(
    state: State,
    memory_alloc: int,
    clairvoyant: bool,
    objective: Objective,
    weights: ScoreWeights,
) -> np.ndarray:
    """(N,) J if the current function goes to each node and `play_greedy` does the rest.

    It is inf where the function does not fit, or where an equal node has been tried (`are_twins`).

    Args:
        state: at a decision; stays as it is.
        memory_alloc: MB for the current function.
        clairvoyant: whether later workflows arrive in the forks.
        objective: what J is made of.
        weights: as for `play_greedy`.

    Raises:
        InputError: see `_Forks`.
    """
    forks, by_objective = _Forks(state, clairvoyant, objective), weights.by_objective(objective)
    outcomes = np.full(len(state.nodes), INF)
    unrented = NONE  # the last node tried whose server has never been rented
    for node, server in enumerate(state.nodes["server"]):
        if suits(state, node, memory_alloc) and not are_twins(state, node, unrented):
            if state.servers[server]["expiration_time"] == -INF:
                unrented = node
            outcomes[node] = forks.outcome(by_objective, node, memory_alloc)
    return outcomes


def rule_outcomes(
    state: State, clairvoyant: bool, objective: Objective, rules: Sequence[ScoreWeights]
) -> np.ndarray:
    """(R,) J that each rule comes to when it plays on from this moment.

    Args:
        state: at a decision; stays as it is.
        clairvoyant: whether later workflows arrive.
        objective: what J is made of.
        rules: weights of `greedy_objective`.

    Raises:
        InputError: see `_Forks`.
    """
    forks = _Forks(state, clairvoyant, objective)
    return np.array([forks.outcome(weights.by_objective(objective)) for weights in rules])


class _Forks:
    """What an episode comes to from this moment on.

    Raises:
        InputError: containers stay warm or start cold, functions wait centrally, or more workflows
            are active in a fork than the state has slots.
    """

    def __init__(self, state: State, clairvoyant: bool, objective: Objective) -> None:
        if len(state.images) > 0:
            raise InputError(
                "rollout: schedules are tried out only where functions are placed at once and "
                "containers neither stay warm nor start cold"
            )
        self._state, self._clairvoyant, self._objective = state, clairvoyant, objective.weights
        self._fork, self._buffers = state.blank(), Buffers.of(state)

    def outcome(self, weights: np.ndarray, *first: int) -> float:
        """J if `play_greedy` does the rest, after the placement `first` (node, MB) if given."""
        fork = self._fork
        copy_into(fork, self._state)
        if not self._clairvoyant:
            forget_arrivals(fork)
        kind = place(fork, *first) if first else 0
        if kind == 0:
            kind = play_greedy(fork, weights, *self._buffers)
        if kind < 0:
            raise InputError(
                f"more than {len(fork.workflows)} workflows are active in a rollout: "
                "give RawEnv more workflow_slots"
            )
        return float(arrived_objective(fork, self._objective))
