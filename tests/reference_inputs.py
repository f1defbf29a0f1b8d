"""Random worlds, as the reference and the engine play them."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from env.sim.assembly.build import build
from env.sim.declared.episode import Episode
from env.sim.declared.images import Images
from env.sim.declared.ordering import FIRST_COME, declared_functions
from env.sim.declared.resources import names_of
from env.sim.node.fit import need_of, suits
from env.sim.view.raw_env import RawEnv
from tests.recount import assert_tracked
from tests.reference_node import Image, Job
from tests.reference_world import ReferenceWorld
from tests.strategies import World


def mean(idle_times: Sequence[float], order: tuple[int, ...] = (1, 0, 0)) -> float:
    """Stands in for ARIMA, which is slow and not what is tested here."""
    return float(np.mean(idle_times))


def jobs_of(episode: Episode) -> list[Job]:
    """The functions of the workflows, ranked by the order; tickets are those of the base."""
    workload, templates, rules = episode.workload, list(episode.declared), episode.rules
    images = episode.images or Images.by_name(templates, 0.0)
    image_of = images.of_all(templates)
    of_images = np.zeros(len(images.cold_start), [("cold_start", float), ("memory", int)])
    of_images["cold_start"], of_images["memory"] = images.cold_start, images.memory
    known = declared_functions(build(episode), templates, image_of, of_images, episode.cluster)
    ranks = (rules.order or FIRST_COME).rank(known)
    keep = getattr(rules.keep_alive, "keep", getattr(rules.keep_alive, "fixed_keep", 0.0))
    made = [Image(float(seconds), (0.0, keep)) for seconds in images.cold_start]
    rows = iter(zip(image_of, known.execution, ranks, strict=True))
    declared = {each: [next(rows) for _ in range(each.function_count)] for each in templates}
    jobs = []
    for wf_id, template in enumerate(workload.templates):
        owner = None
        if episode.cluster.cpu_share == "tickets":
            assert episode.funding is not None
            tenant = workload.tenants[wf_id]
            owner = tenant, Fraction(episode.funding.tenants[tenant].tickets)
        own = []
        for fn_id, (number, expected, rank) in enumerate(declared[template]):
            image, memory = made[number], int(template.memory_req[fn_id])
            image.memory = max(image.memory, memory)
            job = Job(
                wf_id,
                fn_id,
                image,
                int(workload.work[wf_id] if workload.work else template.computation[fn_id]),
                int(template.parallelism[fn_id]),
                memory,
                {name: int(units[fn_id]) for name, units in template.resources.items()},
                workload.arrival_times[wf_id],
                float(expected),
                float(rank),
                owner,
            )
            own.append(job)
        for (source, target), size in zip(template.edges, template.data_bytes, strict=True):
            own[target].predecessors.append((own[source], int(size)))
        jobs += own
    return jobs


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
        episode = world.episode
        super().__init__(episode.cluster, jobs_of(episode), episode.rules, mean)

    def decide(self, job: Job, candidates: list[int]) -> tuple[int, int]:
        node, memory = self.chooser(candidates, (job.wf_id, job.fn_id), job.memory_req)
        self.decided.append((job, self.nodes[node].status_at(self.now)))
        return node, memory


def engine(world: World) -> RawEnv:
    """The engine, having played the world, recorded if it can be."""
    chooser = Chooser(world)
    # Of named resources an episode file knows nothing.
    env = RawEnv.of(world.episode, record=not names_of(world.episode.declared))
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
