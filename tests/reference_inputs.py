"""Random worlds, as the reference and the engine play them."""

from collections.abc import Sequence

import numpy as np

from env.sim.episode.model import EpisodeFile
from env.sim.node.fit import need_of, suits
from env.sim.view.raw_env import RawEnv
from tests.recount import assert_tracked
from tests.reference_node import Job
from tests.reference_world import ReferenceWorld
from tests.strategies import World


def mean(idle_times: Sequence[float], order: tuple[int, ...] = (1, 0, 0)) -> float:
    """Stands in for ARIMA, which is slow and not what is tested here."""
    return float(np.mean(idle_times))


def placements_of(recorded: EpisodeFile) -> dict[tuple[int, int], tuple[int, int]]:
    """Node and MB of each function of a recorded episode."""
    nodes = recorded.cluster.places
    return {row.function: (nodes[row.place], row.memory_allocated_mb) for row in recorded.actions}


class Chooser:
    """Answers who is asked, in the engine and in the reference alike.

    With what the world says, or a node and MB at random: what is required, half of it or, where
    functions are placed at once, all that the node has.
    """

    def __init__(self, world: World) -> None:
        self.world, self.random = world, np.random.default_rng(world.seed)

    def __call__(
        self, candidates: Sequence[int], function: tuple[int, int], required: int
    ) -> tuple[int, int]:
        if self.world.placements:
            return self.world.placements[function]
        node = candidates[int(self.random.integers(min(len(candidates), self.world.spread)))]
        memories = [required, max(1, required // 2)]
        if self.world.episode.rules.order is None:
            memories.append(self.world.node_memories[node])
        return node, memories[int(self.random.integers(len(memories)))]


class Played(ReferenceWorld):
    """The reference, having played a world.

    Attributes:
        decided: of each decision the job, and its node just before.
    """

    def __init__(self, world: World) -> None:
        self.decided: list[tuple[Job, tuple[float, ...]]] = []
        self.chooser = Chooser(world)
        super().__init__(world.episode, mean)

    def decide(self, job: Job, candidates: list[int]) -> tuple[int, int]:
        node, memory = self.chooser(candidates, (job.wf_id, job.fn_id), job.memory_req)
        self.decided.append((job, self.nodes[node].status_at(self.now)))
        return node, memory


def engine(world: World) -> RawEnv:
    """The engine, having played the world, recorded."""
    chooser = Chooser(world)
    env = RawEnv.of(world.episode, record=True)
    while (function := env.current_function) is not None:
        assert_tracked(env.state)
        own, need = (function.wf_id, function.fn_id), function.memory_req
        if env.rules.order is not None:
            need = need_of(env.state, env.function_index(*own))
        nodes = range(len(env.state.nodes))
        candidates = [node for node in nodes if suits(env.state, node, need)]
        node, memory = chooser(candidates, own, function.memory_req)
        env.step(*env.place_of(node), memory)
    return env
