"""Episodes in many simulators side by side, each turn of all of them one compiled call.

What agents see goes straight into the caller's buffers, and nothing is done in Python but starting
an episode and measuring one that has ended. `ServerlessEnv` is a batch of one.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from env.base.errors import InputError
from env.learn.actions import LARGEST_SEED, MOST_ENVIRONMENTS, whole_number
from env.learn.decisions import Decisions, applying, look
from env.learn.kind import Kind, Turn
from env.learn.world import World
from env.score.greedy_score import trace_greedy
from env.score.metrics import episode_metrics
from env.score.reward import cheapest_cost, ideal
from env.sim.assembly.build import arriving, build
from env.sim.assembly.new_state import allocate, catalogue, copy_into, hardware, reset
from env.sim.assembly.with_rules import plan_changes, stops, with_rules
from env.sim.declared.episode import Episode, EpisodeWorkload
from env.sim.declared.hardware import ClusterConfig
from env.sim.declared.resources import named_arrays
from env.sim.events.choosing import forced_choice, play_to_choice
from env.sim.state.block import State
from env.sim.state.records import ASIDE, CHOOSE, DONE, HOUR, NONE
from env.sim.view.raw_env import RawEnv
from env.workloads.generator import WorkloadGenerator

# Most episodes have the same cluster, or one of a few; what it gives is only copied from.
hardware_of = lru_cache(maxsize=64)(hardware)
# Episodes without a choice that are passed over before the world is refused.
ATTEMPTS = 100


class Drawn(NamedTuple):
    """Which training episode an environment plays, see `World.training_episode`."""

    seed: int
    worker: int
    environment: int
    number: int

    def following(self, seed: int | None = None) -> Drawn:
        """The next episode of the stream, or the first of the stream of a seed."""
        if seed is None:
            return self._replace(number=self.number + 1)
        return Drawn(whole_number("seed", seed, 0, LARGEST_SEED), self.worker, 0, 0)


class Ended(NamedTuple):
    """An episode that is over."""

    environment: int
    metrics: dict[str, float]  # `episode_metrics`, and J_relative, J over that of the reference


class Batch(Decisions):
    """E environments of one world, restarted when they end.

    A decision is: `observe` and `act` for each of `turns`, then `step`. Rows of NOBODY are blank,
    and what they do does not matter. Copies and pickles are independent.

    Args:
        world: where episodes come from.
        environments: E, from 1 to `MOST_ENVIRONMENTS`.
        seed: of the episodes.
        worker: number of the process, so that no two play the same episodes.
        first: number of the first environment in the process.
        apart: whether each episode is that of a `RawEnv`; none begins before `restart`.

    Raises:
        InputError: E is no such number.

    Attributes:
        states: of each environment, to be read only.
        ended: every episode that is over; whoever reads them clears them.
        raw_env: the last one begun, where episodes are apart.
    """

    def __init__(
        self,
        world: World,
        environments: int,
        seed: int,
        worker: int,
        first: int = 0,
        apart: bool = False,
    ) -> None:
        environments = whole_number("environments", environments, 1, MOST_ENVIRONMENTS)
        self.ended: list[Ended] = []
        self._world, self._apart = world, apart
        self._drawn = [Drawn(seed, worker, first + env, -1) for env in range(environments)]
        one, self._index = _one_state(world, apart)
        self.states, handles = one.copies(environments)
        self._asked = [kind for kind in world.layout.kinds if kind.due is not None]
        self._given: EpisodeWorkload | None = None
        super().__init__(world.layout, handles, len(one.functions))
        if not apart:
            self.restart()

    def __reduce__(self) -> tuple[Any, ...]:
        return Batch, (self._world, len(self), 0, 0, 0, self._apart), self.get_state()

    def restart(
        self,
        seeds: Sequence[int | None] | None = None,
        workload: EpisodeWorkload | None = None,
    ) -> None:
        """Every environment starts the next episode of its stream, or the stream of its seed.

        With a workload all play that, and their streams stay where they are.

        Raises:
            InputError: one is no seed, or there is not one for each. Then nothing has changed.
        """
        seeds = [None] * len(self) if seeds is None else seeds
        if len(seeds) != len(self):
            raise InputError(f"seed: {len(self)} seeds are needed, found {len(seeds)}")
        if workload is None:
            pairs = zip(self._drawn, seeds, strict=True)
            self._drawn = [drawn.following(seed) for drawn, seed in pairs]
        self._given = workload
        for env in range(len(self)):
            self._start_episode(env)

    def act(self, turn: Turn, actions: np.ndarray) -> None:
        """`decide`, and after the last turn of a decision plays on to the next one.

        Raises:
            InputError: as `decide`; or the engine ran out of records.
        """
        self.decide(turn, actions)
        kind = self.layout.kind_of[turn]
        if turn is kind.turns[-1]:
            applying(kind.apply)(kind.code, self._envs)
            for env in np.flatnonzero(self._envs.episodes["kind"] == ASIDE).tolist():
                self._turn_aside(env, kind)
            if (code := self._envs.episodes["kind"].min()) < 0:
                raise InputError(f"the engine ran out of records (code {code})")

    def step(self, rest: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Gives the rewards of what was decided, and restarts the environments that have ended.

        With `rest` the next episode begins in the next step, as in Gymnasium's NEXT_STEP: until
        then all turns are nobody's, and that step earns nothing.

        Returns:
            rewards, float64 (E,), the fall of each potential; bool (E,) whether episodes ended.
        """
        episodes = self._envs.episodes
        rewards = episodes["potential"] - episodes["reached"]
        episodes["potential"] = episodes["reached"]
        over, rested = episodes["kind"] == DONE, episodes["rests"] == 1
        done = over & ~rested
        self.ended += [self._measured(env) for env in np.flatnonzero(done).tolist()]
        following = np.flatnonzero(rested if rest else over)
        episodes["rests"] = done
        for env in following.tolist():
            self._drawn[env] = self._drawn[env].following()
            self._start_episode(env)
        return rewards, done

    def _measured(self, env: int) -> Ended:
        episode, world = self._envs.episodes[env], self._world
        metrics = episode_metrics(self.states[env], world.objective, world.cluster.power)
        metrics = {name: value for name, value in metrics.items() if not math.isnan(value)}
        metrics["J_relative"] = float(episode["reached"] / self._envs.trace[env, -1, 1])
        return Ended(env, metrics)

    def get_state(self) -> dict[str, Any]:
        """What it needs to go on exactly from the decision that is due, by name."""
        return {
            "blocks": [_packed(state) for state in self.states],
            "drawn": list(self._drawn),
            "episodes": self._envs.episodes.copy(),
            "choices": self._envs.choices.copy(),
            "given": self._given,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Goes on from `get_state` of a batch of the same world and size."""
        self._drawn[:], self._given = state["drawn"], state["given"]
        for env, block in enumerate(state["blocks"]):
            self._begin_episode(env)  # what is seen of the reference
            self.states[env].block[:] = np.frombuffer(zlib.decompress(block), np.uint8)
        self._envs.episodes[:], self._envs.choices[:] = state["episodes"], state["choices"]
        for env in range(len(self)):
            if self.kind(env) == CHOOSE:
                forced_choice(self.states[env], self._envs.queue[env])  # fills the queue
            look(self._envs, env)

    __setstate__ = set_state

    def _start_episode(self, env: int) -> None:
        """The episode drawn for an environment, or the next one in which agents have a choice."""
        for _ in range(ATTEMPTS):
            self._begin_episode(env)
            if self.kind(env) != DONE:
                look(self._envs, env)
                return
            self._drawn[env] = self._drawn[env].following()
        raise InputError(
            f"agents.queue: of {ATTEMPTS} episodes none has a choice, in which two functions wait: "
            "let more arrive, or give fewer servers"
        )

    def _begin_episode(self, env: int) -> None:
        """Has the reference play the episode drawn, then plays it up to the first choice."""
        self._load(env)
        episode, weights, world = self._envs.episodes[env], self._envs.objective[env], self._world
        state = self.states[env]
        self._turn_to(env, state)
        envs, nodes = self._envs, len(state.nodes)
        trace = envs.trace[env]
        weights[:], episode["cheapest"] = world.objective.weights, cheapest_cost(state)
        absent = state.servers["absent"].copy()
        if world.rules.lease.autoscale is not None:  # the reference has all servers
            state.servers["absent"] = 0
        seen = envs.candidates[env, 0, :nodes], envs.scores[env, 0, :nodes]
        trace_greedy(state, envs.weights, *seen, weights, episode["cheapest"], trace)
        state.servers["absent"] = absent
        if world.agents.relative_reward:
            # Where J differs by orders of magnitude from one episode to the next, a few would
            # otherwise be all that is learned from.
            reference = trace[-1, 1]
            weights /= reference
            trace[:, 1] /= reference
        state.cluster["aside"] = stops(world.asked)
        reset(state)
        episode["kind"] = play_to_choice(state, envs.queue[env])
        if episode["kind"] == ASIDE:
            self._turn_aside(env)
        episode["potential"] = ideal(weights)
        episode["rests"] = 0

    def _turn_aside(self, env: int, after: Kind | None = None) -> None:
        """Plays an environment in which something has happened on to its next decision.

        At this moment the kind `after` has been decided, of the subject in the choice.
        """
        state, choice = self.states[env], self._envs.choices[env]
        kinds = self._asked[self._asked.index(after) :] if after in self._asked else self._asked
        code = ASIDE
        while code == ASIDE:
            for kind in kinds:
                if kind.ticks != state.cluster[0]["ticked"]:
                    continue
                above = choice["subject"] if kind is after else NONE
                if (subject := kind.due(state, above)) != NONE:
                    choice["subject"], code = subject, kind.code
                    break
            else:
                after, kinds = None, self._asked
                code = play_to_choice(state, self._envs.queue[env])
        self._envs.episodes[env]["kind"] = code
        look(self._envs, env)

    def _load(self, env: int) -> None:
        """Gives an environment the records of the episode that is drawn for it."""
        workload, cluster = self._given, self._world.cluster
        if workload is None:
            workload, cluster = self._world.training_episode(*self._drawn[env])
        if self._index:
            self._write(env, workload, cluster)
            return
        episode = Episode(workload, cluster, self._world.rules, asked=self._world.asked)
        if self._apart:
            self.raw_env = RawEnv.of(episode)
        self.states[env] = state = self.raw_env.state if self._apart else build(episode)
        state.cluster["listens"] = 0  # nobody would take its history
        self._envs.states[env] = state[0]
        trace = self._envs.trace
        missing = len(state.functions) + 1 - trace.shape[1]
        if missing > 0:
            trace = np.pad(trace, ((0, 0), (0, missing), (0, 0)), mode="edge")
            self._envs = self._envs._replace(trace=trace)

    def _write(self, env: int, workload: EpisodeWorkload, cluster: ClusterConfig) -> None:
        """Writes the hardware and the arrivals of an episode into the records that are there."""
        state, (head, servers, nodes) = self.states[env], hardware_of(cluster)
        cpu, templates = int(head[0]["largest_node_cpu"]), workload.templates
        arrivals = arriving(workload, [self._index[id(template), cpu] for template in templates])
        count = len(servers)
        rows = {"servers": count, "ledger": count, "nodes": len(nodes), "slot_of": len(arrivals)}
        rules, plans = self._world.rules, len(state.recovery) * count
        state.use(rows | {"server_plans": plans}, arrivals=arrivals)
        per_slot = state.cluster["functions_per_slot"].copy()
        state.cluster[:], state.servers[:], state.nodes[:] = head, servers, nodes
        state.cluster["functions_per_slot"] = per_slot
        rules.lease.write(state.servers, cluster)
        state.cluster["seed"] = workload.turns_seed
        state.cluster["begin_time"] = workload.begin_hour * HOUR
        plan_changes(state, rules, cluster)


def _packed(state: State) -> bytes:
    """The records that are in use; the others, which hold anything, would be most of it."""
    used = state.blank()
    used.block[:] = 0
    copy_into(used, state)
    used.cluster["aside"] = state.cluster["aside"]
    return zlib.compress(used.block.tobytes())


def _one_state(world: World, apart: bool) -> tuple[State, dict[tuple[int, int], int]]:
    """A state with room for every episode of a world, and the index of templates in it.

    Templates are stored once for all environments of a batch. As best times and ranks depend on
    the largest NUMA node, they are stored for every size that it can have; the index is by the
    template's id and those cores. It is empty where every episode is built anew: as functions are
    drawn in each, tenants with tickets have their own templates, or all are to be `apart`.
    """
    generator = world.generator
    if apart or not isinstance(generator, WorkloadGenerator) or generator.config.funding:
        return allocate(world.largest_cluster, 1, 1, 1, []), {}
    cores = sorted({kind.cpu for kind in world.largest_cluster.server_types})
    pool = world.templates
    entries = [(template, cpu) for cpu in cores for template in pool]
    index = {(id(template), cpu): place for place, (template, cpu) in enumerate(entries)}
    most = generator.config.arrivals.most
    per_slot = max(template.function_count for template in pool)
    one = allocate(world.largest_cluster, most, per_slot, most, [])
    templates = [template for template, _ in entries]
    one = one.replaced(
        **catalogue(entries, world.cluster),
        **named_arrays(templates, world.largest_cluster, len(one.nodes), len(one.containers)),
    )
    every = EpisodeWorkload((0.0,) * len(pool), pool, images=world.images)
    episode = Episode(every, world.largest_cluster, world.rules, asked=world.asked)
    return with_rules(one, templates, episode), index
