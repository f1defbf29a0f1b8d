"""A kind of decision: who is asked, turn by turn, what they see, and what becomes of the answer.

An answer is a row of what the kind offers. The compiled functions of a kind are for one simulator
of `Environments`; env/learn/decisions.py plays E of them side by side. T server types, K memory
tiers, F functions in the window of the workflow, Q waiting functions that `queue` chooses among, L
numbers of tickets that a workflow can get.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Discrete, MultiDiscrete

from env.base.jit import compiled
from env.learn.observation import CONTEXT_FEATURES, CRITIC_FEATURES, LIMIT
from env.learn.workflow_window import FUNCTION_FEATURES

Observation = dict[str, np.ndarray]
NOBODY: Final = -1
"""Of a row at a turn that is nobody's in its environment."""

# What has been decided so far of a subject: `row` is the answer, the others are steps towards it.
CHOICE = np.dtype([(name, np.int64) for name in ("subject", "row", "tier", "type")])

# What the episode of an environment is.
EPISODE = np.dtype(
    [
        ("cheapest", np.float64),  # USD, see `cheapest_cost`
        ("potential", np.float64),  # when rewards were last given
        ("reached", np.float64),  # the potential now
        ("kind", np.int64),  # of the decision that is due, as `play` returns it; or DONE
        ("cursor", np.int64),  # of `trace` the last row that is not after the present
        ("rests", np.int64),  # 1: its end has been reported, the next one begins in the next step
    ]
)


class Environments(NamedTuple):
    """E simulators side by side, how far each of them is, and the buffers of their decisions."""

    states: Any  # HANDLE (E,), of each `State`
    episodes: np.ndarray  # EPISODE (E,)
    choices: np.ndarray  # CHOICE (E,)
    objective: np.ndarray  # float64 (E, 5), its weights as rewards count them
    first_node: np.ndarray  # int64 (E, T + 1), NUMA nodes of type t are first_node[env, t : t + 2]
    candidates: np.ndarray  # CANDIDATE (E, K, nodes); of the last tier alone if no agent chooses it
    scores: np.ndarray  # float64, as `candidates`, greedy scores
    nodes: np.ndarray  # float32, as `candidates` and (I,), features of nodes
    context: np.ndarray  # float32 (E, C), CONTEXT_FEATURES
    critic: np.ndarray  # float32 (E, V), CRITIC_FEATURES
    able: np.ndarray  # int64 (E, T), 1: the server type has room for the function, and may bid
    trace: np.ndarray  # float64 (E, D, 2), time and potential of the reference; (E, 0, 2): unknown
    window: np.ndarray  # int64 (E, F), scratch of the next two
    functions: np.ndarray  # float32 (E, F, G), FUNCTION_FEATURES
    edges: np.ndarray  # float32 (E, F, F), see env/learn/workflow_window.py
    queue: np.ndarray  # FIRST (E, Q), what `queue` chooses among; see env/sim/events/choosing.py
    # These are the same for all simulators.
    tiers: np.ndarray  # float64 (K,), ratios of memory_req
    weights: np.ndarray  # float64 (10,), of the greedy score
    levels: np.ndarray  # float64 (L,), tickets that a workflow can get


class Agent(NamedTuple):
    """One agent of a layout; agents of one kind can share a policy."""

    name: str  # its id in the environment
    kind: str  # `placer`, `memory`, `server`, `queue`, `tenant`, `scaler` or `region`
    item_features: tuple[str, ...]  # names of the columns of its `items`
    items: int  # M, number of rows
    choices: int = 1  # K, choices per item
    bids: int = 0  # B, number of bids, 0 for none
    window: int = 0  # F, functions seen of the workflow
    context_features: tuple[str, ...] = CONTEXT_FEATURES  # names of its `context`

    @property
    def parts(self) -> dict[str, tuple[int, ...]]:
        """Shapes of what it observes: context (C,), items (M, I), mask (A,) and critic (V,).

        With a window of the workflow also functions (F, G) and edges (F, F).
        """
        parts: dict[str, tuple[int, ...]] = {
            "context": (len(self.context_features),),
            "items": (self.items, len(self.item_features)),
            "mask": (self.bids + self.items * self.choices,),
            "critic": (len(CRITIC_FEATURES),),
        }
        if self.window:
            parts["functions"] = (self.window, len(FUNCTION_FEATURES))
            parts["edges"] = (self.window, self.window)
        return parts

    @property
    def observation_space(self) -> gym.spaces.Dict:
        """The parts, all float32."""
        limits = {"mask": (0.0, 1.0), "edges": (0.0, 1.0)}
        spaces: dict[str, gym.Space[Any]] = {
            part: Box(*limits.get(part, (-LIMIT, LIMIT)), shape, np.float32)
            for part, shape in self.parts.items()
        }
        return gym.spaces.Dict(spaces)

    @property
    def action_space(self) -> gym.Space:
        """Discrete(M * K), action = item * K + choice; with bids MultiDiscrete([B, M * K])."""
        if self.bids:
            return MultiDiscrete([self.bids, self.items * self.choices])
        return Discrete(self.items * self.choices)

    def of_each(self, names: Sequence[str]) -> list[Agent]:
        """Agents of this kind, one for each of the names."""
        return [self._replace(name=f"{self.kind}_{name}") for name in names]

    def blank_observation(self) -> Observation:
        """What it sees when there is nothing to decide: zeros, the first choice allowed."""
        blank = {part: np.zeros(shape, np.float32) for part, shape in self.parts.items()}
        blank["mask"][[0, self.bids]] = 1.0
        return blank


def answer(envs: Environments, due: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """`Turn.decide` where the action itself is decided."""
    return actions


@compiled
def itself(agent: int, envs: Environments, env: int):
    """`Turn.acting` where all act at once."""
    return agent


@dataclass(frozen=True, eq=False)
class Turn:
    """A turn of a decision: agents of one space see and act, all at once or one of them.

    `see` and `acting` are compiled. `agent` is the place among `agents`.
    """

    agents: list[Agent]  # who can act at it
    # see(agent, state, envs, env, context, items, mask): writes what an agent sees; mask is 0.
    see: Any
    # acting(agent, envs, env): which agent acts.
    acting: Any = itself
    decides: str = "row"  # field of CHOICE
    # What actions decide. Args: all environments; integers (D,), which of them; their actions,
    # integers (D,), or (D, A, 2) of bids and places.
    decide: Callable[[Environments, np.ndarray, np.ndarray], np.ndarray] = answer

    @property
    def together(self) -> int:
        """A, how many agents act at once in an environment."""
        return len(self.agents) if self.acting is itself else 1

    def room(self, environments: int) -> Observation:
        """Zeros for what its agents see in so many environments: E * A rows of each part."""
        rows, parts = environments * self.together, self.agents[0].parts
        return {part: np.zeros((rows, *shape), np.float32) for part, shape in parts.items()}


@dataclass(frozen=True, eq=False)
class Kind:
    """A kind of decision."""

    code: int  # what `play` returns where one is due
    turns: tuple[Turn, ...]  # until a row has been chosen
    # Compiled, apply(state, envs, env): carries it out; returns 0, ASIDE where another decision of
    # this moment may be due, or an error code.
    apply: Any
    # What agents do, turn by turn, so that a row is chosen: of the row and the `first_node`
    # of the episode; integers (A,), or (A, 2) of bids and places.
    actions: Callable[[int, np.ndarray], list[np.ndarray]] = lambda row, _: [np.array([row])]
    due: Any = None  # of a kind beside the engine's own, see `DecisionKind`, as the next
    ticks: bool = False
