"""What simulators are looked at with, before their agents are asked.

One simulator is looked at through a `Sight`; those of E of them side by side have one dimension
more. T server types, K memory tiers, F functions in the window of the workflow, Q waiting functions
that `queue` chooses among, L numbers of tickets that a workflow can get.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from env.base.jit import compiled

# What has been decided so far of a subject: `row` is the answer, the others are steps towards it.
CHOICE = np.dtype([(name, np.int64) for name in ("subject", "row", "tier", "type", "bid")])

# What the episode of an environment is.
EPISODE = np.dtype(
    [
        ("cheapest", np.float64),  # USD, see `cheapest_cost`
        ("potential", np.float64),  # when rewards were last given
        ("reached", np.float64),  # the potential now
        ("kind", np.int64),  # of the decision that is due, as `play` returns it; or DONE
        ("rests", np.int64),  # 1: its end has been reported, the next one begins in the next step
        ("turns", np.int64),  # that were an agent's in this episode
    ]
)


class Sight(NamedTuple):
    """What a simulator is looked at with: constants of the episode and buffers of the decision."""

    first_node: np.ndarray  # int64 (T + 1,), NUMA nodes of type t are first_node[t : t + 2]
    candidates: np.ndarray  # CANDIDATE (K, nodes); of the last tier alone where no agent chooses it
    scores: np.ndarray  # float64, as `candidates`, greedy scores
    nodes: np.ndarray  # float32, as `candidates` and (I,), NODE_FEATURES
    context: np.ndarray  # float32 (C,), CONTEXT_FEATURES
    critic: np.ndarray  # float32 (V,), CRITIC_FEATURES
    able: np.ndarray  # int64 (T,), 1: the server type has room for the function, and may bid
    trace: np.ndarray  # float64 (D, 2), time and potential of the reference; (0, 2): unknown
    cursor: np.ndarray  # int64 (1,), its last row that is not after the present
    window: np.ndarray  # int64 (F,), scratch of the next two
    functions: np.ndarray  # float32 (F, G), FUNCTION_FEATURES
    edges: np.ndarray  # float32 (F, F), see env/learn/workflow_window.py
    queue: np.ndarray  # FIRST (Q,), what `queue` chooses among; see env/sim/events/choosing.py
    # These never change and are the same for all environments.
    tiers: np.ndarray  # float64 (K,), ratios of memory_req
    weights: np.ndarray  # float64 (10,), of the greedy score
    levels: np.ndarray  # float64 (L,), tickets that a workflow can get


class Environments(NamedTuple):
    """E simulators side by side, and how far each of them is."""

    states: np.ndarray  # HANDLE (E,), of each `State`
    sights: Sight  # with a dimension of environments, but for the fields that never change
    episodes: np.ndarray  # EPISODE (E,)
    choices: np.ndarray  # CHOICE (E,)
    weights: np.ndarray  # float64 (E, 4), those of the objective as rewards count them


@compiled
def sight_of(sights, env):
    """The `Sight` of one environment: views of its rows."""
    return Sight(
        sights.first_node[env],
        sights.candidates[env],
        sights.scores[env],
        sights.nodes[env],
        sights.context[env],
        sights.critic[env],
        sights.able[env],
        sights.trace[env],
        sights.cursor[env],
        sights.window[env],
        sights.functions[env],
        sights.edges[env],
        sights.queue[env],
        sights.tiers,
        sights.weights,
        sights.levels,
    )
