"""Many simulators side by side, each turn of all of them one compiled call.

Decision by decision a `Batch` does what as many `ServerlessEnv` would, for every layout; it differs
in what it costs: observations go straight into the caller's buffers, and nothing is done in Python
but starting an episode and measuring one that has ended. E environments, and A agents that act in a
turn, give E * A rows, those of one environment together. A turn can be nobody's in some of them:
that of `queue` where only one function waits, those of a placement where `queue` holds back.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from env.base.errors import InputError
from env.learn.actions import (
    ATTEMPTS,
    MOST_ENVIRONMENTS,
    Drawn,
    next_episode,
    no_choice,
    seed_each,
    taken_by_rows,
    whole_number,
)
from env.learn.agent import Agent, Observation
from env.learn.batch_turns import (
    EPISODE,
    Environments,
    choose_all,
    decide_all,
    look_at,
    place_all,
    see_all,
)
from env.learn.layouts import NOBODY, WINDOW_PARTS
from env.learn.turns import (
    CHOICE,
    OF_ALL,
    QUEUE_TURN,
    Sight,
    turn_to_episode,
)
from env.learn.world import World
from env.score.greedy_play import trace_greedy
from env.score.reward import cheapest_cost, ideal
from env.sim.assembly.build import arriving, build
from env.sim.assembly.new_state import allocate, catalogue, copy_into, hardware, reset
from env.sim.assembly.with_rules import with_rules, write_lease
from env.sim.declared.episode import Episode, EpisodeWorkload
from env.sim.declared.hardware import ClusterConfig
from env.sim.declared.resources import named_arrays
from env.sim.events.choosing import play_to_choice
from env.sim.forecast.candidates import update_finish_bounds
from env.sim.state.block import State
from env.sim.state.records import ARRIVING, DONE, NONE
from env.workloads.generator import WorkloadGenerator

# Most episodes have the same cluster, or one of a few; what it gives is only copied from.
hardware_of = lru_cache(maxsize=64)(hardware)


class Ended(NamedTuple):
    """An episode that is over.

    Attributes:
        environment: where.
        turns: that were an agent's, as many as `ServerlessEnv` takes steps.
        metrics: `episode_metrics`, and J_relative, J in units of the reference's in this episode.
        earned: by all its agents together.
    """

    environment: int
    turns: int
    metrics: dict[str, float]
    earned: float


class Batch:
    """E environments of one world, restarted when they end.

    A decision is: `observe` and `act` for each of `turns`, then `step`. Rows of NOBODY are blank,
    and what they do does not matter. Copies and pickles are independent; in them the decision that
    is due begins with its first turn.

    Args:
        world: where episodes come from.
        environments: E.
        seed: of the episodes.
        worker: number of the process, so that no two play the same episodes.
        first: number of the first environment in the process.

    Raises:
        InputError: E is not a whole number from 1 to `MOST_ENVIRONMENTS`.

    Attributes:
        layout: the agents and their turns.
        ended: every episode that is over; whoever reads them clears them.
    """

    def __init__(
        self, world: World, environments: int, seed: int, worker: int, first: int = 0
    ) -> None:
        environments = whole_number("environments", environments, 1, MOST_ENVIRONMENTS)
        self.layout = world.layout()
        self.turns = self.layout.turns
        self.ended: list[Ended] = []
        self._world = world
        self._drawn: list[Drawn] = [
            (seed, (worker, first + env), -1) for env in range(environments)
        ]
        self._weights = np.tile(world.objective.weights, (environments, 1))
        one, self._first_template = _one_state(world)
        self._states, self._handles = one.copies(environments)
        self._arrivals = np.zeros((environments, len(one.slot_of)), ARRIVING)
        sight = self.layout.new_sight(len(one.functions))
        stacked = (np.repeat(part[None], environments, axis=0) for part in sight[:-OF_ALL])
        self._sights = Sight._make((*stacked, *sight[-OF_ALL:]))
        self._episodes = np.zeros(environments, EPISODE)
        self._choices = np.zeros(environments, CHOICE)
        self._masks: dict[int, np.ndarray] = {}
        self._acting: dict[int, np.ndarray] = {}
        self._first_of_placing = self.layout.placing[0] if self.layout.placing else NONE
        self.restart()

    def __len__(self) -> int:
        return len(self._episodes)

    def __reduce__(self) -> tuple[Any, ...]:
        return Batch, (self._world, len(self), 0, 0), self.get_state()

    @property
    def nbytes(self) -> int:
        """Of the simulators and of what is seen of them, which have a part for each environment."""
        own = (*(state.block for state in self._states), *self._sights[:-OF_ALL])
        return sum(array.nbytes for array in own)

    def restart(self, seed: int | Sequence[int | None] | None = None) -> None:
        """Every environment starts the next episode of its stream, wherever it was.

        Args:
            seed: of the first environment, the next one has the next seed; or one for each. It
                starts the stream that `ServerlessEnv.reset` starts with the same seed; with None
                an environment stays in its own.

        Raises:
            InputError: a seed is none, or there is not one for each. Then nothing has changed.
        """
        self._drawn = [
            next_episode(each, _following(drawn))
            for each, drawn in zip(seed_each(seed, len(self)), self._drawn, strict=True)
        ]
        for env in range(len(self)):
            self._start_episode(env)
        self._look_at(range(len(self)))

    def agents_of(self, turn: int) -> list[Agent]:
        """Who can act at a turn; all do at once, but for NODE_TURN and SHARE_TURN, where one does.

        At a turn that is nobody's in an environment none of them does there.
        """
        return self.layout.agents_of[turn]

    def acting(self, turn: int) -> np.ndarray:
        """(E * A,) which of `agents_of(turn)` each row observed is of, or NOBODY."""
        return self._acting[turn]

    def observe(self, turn: int, out: Observation) -> None:
        """Writes what the agents of a turn see.

        Args:
            turn: of `turns`, in their order.
            out: the parts of `Agent.observation_space`, float32, of E * A rows, C-contiguous.
        """
        self._acting[turn] = acting = np.empty(len(out["mask"]), np.int64)
        see_all(
            turn,
            self._all,
            self.agents_of(turn)[0].bids,
            acting,
            out["context"],
            out["items"],
            out["mask"],
            out["critic"],
        )
        self._masks[turn] = out["mask"].copy()  # the observation is the caller's
        for part in WINDOW_PARTS & out.keys():
            rows = out[part].reshape(len(self), -1, *out[part].shape[1:])
            rows[:] = getattr(self._sights, part)[:, None]
            out[part][acting == NOBODY] = 0.0

    def act(self, turn: int, actions: np.ndarray) -> None:
        """Takes the actions of a turn: integers (E,), or (E * A, 2) of bids and places.

        Raises:
            InputError: an action is not allowed. Then nothing has changed, and the turn can be
                answered again.
        """
        agents, mask, acting = self.agents_of(turn), self._masks[turn], self.acting(turn)
        actions = taken_by_rows(agents, mask, acting, actions, len(self))
        bids = np.zeros_like(actions)
        if actions.ndim == 2:
            bids, actions = np.ascontiguousarray(actions.T)
        decide_all(turn, self._all, actions, bids)
        if turn == QUEUE_TURN:
            choose_all(self._first_of_placing, self._all)

    def step(self, rest: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Places, plays on to the next choices, and restarts the environments that end.

        Args:
            rest: where an episode ends the next one begins in the next step, as in Gymnasium's
                NEXT_STEP: until then all turns are nobody's, and that step earns nothing.

        Returns:
            rewards, float64 (E,), and whether the episodes have ended, bool (E,).

        Raises:
            InputError: the engine ran out of records.
        """
        kinds, rewards = self._episodes["kind"], np.zeros(len(self))
        rested = kinds == DONE
        place_all(self._first_of_placing, self._all, rewards)
        if kinds.min() < 0:
            raise InputError(f"the engine ran out of records (code {kinds.min()})")
        done = (kinds == DONE) & ~rested
        for env in np.flatnonzero(done).tolist():
            metrics = self._world.metrics(self.state(env))
            each = float(ideal(self._weights[env]) - self._episodes[env]["potential"])
            earned = len(self.layout.agents) * each
            turns = int(self._episodes[env]["turns"])
            relative = self._episodes[env]["potential"] / self._sights.trace[env, -1, 1]
            metrics["J_relative"] = float(relative)
            self.ended.append(Ended(env, turns, metrics, earned))
        following = np.flatnonzero(rested if rest else kinds == DONE)
        for env in following.tolist():
            self._drawn[env] = _following(self._drawn[env])
            self._start_episode(env)
        self._look_at(following)
        return rewards, done

    def state(self, env: int) -> State:
        """The `State` of one environment, to be read only."""
        return self._states[env]

    def get_state(self) -> dict[str, Any]:
        """What it needs to go on exactly from the decision that is due, by name."""
        return {
            "blocks": [_packed(state) for state in self._states],
            "drawn": list(self._drawn),
            "episodes": self._episodes.copy(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Goes on from `get_state` of a batch of the same world and size."""
        self._drawn[:] = state["drawn"]
        for env, block in enumerate(state["blocks"]):
            self._begin_episode(env)  # what is seen of the reference
            # Earlier versions did not pack the records.
            block = zlib.decompress(block) if isinstance(block, bytes) else block
            self.state(env).block[:] = np.frombuffer(block, np.uint8)
        for name in EPISODE.names or ():  # earlier versions had more
            self._episodes[name] = state["episodes"][name]
        self._look_at(range(len(self)))

    __setstate__ = set_state

    @property
    def _all(self) -> Environments:
        return Environments(
            self._handles, self._sights, self._episodes, self._choices, self._weights
        )

    def _look_at(self, environments: Sequence[int] | np.ndarray) -> None:
        """Some environments have come to a decision."""
        if len(environments):
            look_at(self._first_of_placing, self._all, np.array(environments))

    def _start_episode(self, env: int) -> None:
        """The episode drawn for an environment, or the next one in which agents have a choice."""
        for _ in range(ATTEMPTS):
            self._begin_episode(env)
            if self._episodes[env]["kind"] != DONE:
                return
            self._drawn[env] = _following(self._drawn[env])
        raise no_choice()

    def _begin_episode(self, env: int) -> None:
        """Has the reference play the episode drawn, then plays it up to the first choice."""
        self._load(env)
        episode, state, sight = self._episodes[env], self.state(env), self._sight(env)
        episode["cheapest"] = cheapest = cheapest_cost(state)
        nodes = len(state.nodes)
        self._weights[env] = self._world.objective.weights
        trace_greedy(
            state,
            sight.weights,
            self._weights[env],
            cheapest,
            self._world.agents.relative_reward,
            sight.candidates[0][:nodes],
            sight.scores[0][:nodes],
            sight.trace,
        )
        reset(state)
        episode["kind"] = play_to_choice(state, sight.queue)
        episode["potential"] = ideal(self._weights[env])
        episode["turns"] = 0
        update_finish_bounds(state)
        turn_to_episode(state, sight)

    def _load(self, env: int) -> None:
        """Gives an environment the records of the episode that is drawn for it."""
        seed, stream, number = self._drawn[env]
        workload, cluster = self._world.training_episode(seed, *stream, number)
        if self._first_template:
            self._write(env, workload, cluster)
            return
        self._states[env] = state = build(Episode(workload, cluster, self._world.rules))
        self._handles[env] = state[0]
        trace = self._sights.trace
        missing = len(state.functions) + 1 - trace.shape[1]
        if missing > 0:
            trace = np.pad(trace, ((0, 0), (0, missing), (0, 0)), mode="edge")
            self._sights = self._sights._replace(trace=trace)

    def _write(self, env: int, workload: EpisodeWorkload, cluster: ClusterConfig) -> None:
        """Writes the hardware and the arrivals of an episode into the records that are there."""
        state, (head, servers, nodes) = self._states[env], hardware_of(cluster)
        first = self._first_template[int(head[0]["largest_node_cpu"])]
        arrivals = arriving(workload, [first[id(template)] for template in workload.templates])
        own = self._arrivals[env, : len(arrivals)]
        own[:] = arrivals
        count = len(servers)
        rows = {"servers": count, "ledger": count, "nodes": len(nodes), "slot_of": len(own)}
        state.use(rows, arrivals=own)
        per_slot = state.cluster["functions_per_slot"].copy()
        state.cluster[:], state.servers[:], state.nodes[:] = head, servers, nodes
        state.cluster["functions_per_slot"] = per_slot
        write_lease(state.servers, self._world.rules.lease)

    def _sight(self, env: int) -> Sight:
        own = (part[env] for part in self._sights[:-OF_ALL])
        return Sight._make((*own, *self._sights[-OF_ALL:]))


def _following(drawn: Drawn) -> Drawn:
    """The next episode of a stream."""
    seed, stream, number = drawn
    return seed, stream, number + 1


def _packed(state: State) -> bytes:
    """The records that are in use; the others, which hold anything, would be most of it."""
    used = state.blank()
    used.block[:] = 0
    copy_into(used, state)
    return zlib.compress(used.block.tobytes())


def _one_state(world: World) -> tuple[State, dict[int, dict[int, int]]]:
    """A state with room for every episode of a world, and where to find templates in it.

    Where functions are drawn anew in every episode, each brings a state of its own; and so it does
    where tenants hold tickets, as then each has its own templates.

    Templates are stored once for all environments of a batch. As best times and ranks depend on
    the largest NUMA node, they are stored for every size that it can have; the index is by those
    cores and the template's id.
    """
    generator = world.generator
    if not isinstance(generator, WorkloadGenerator) or generator.config.funding is not None:
        return allocate(world.largest_cluster, 1, 1, 1, []), {}
    cores = sorted({kind.cpu for kind in world.largest_cluster.server_types})
    pool = world.templates
    entries = [(template, cpu) for cpu in cores for template in pool]
    index: dict[int, dict[int, int]] = {cpu: {} for cpu in cores}
    for position, (template, cpu) in enumerate(entries):
        index[cpu][id(template)] = position
    most = generator.config.arrivals.most
    per_slot = max(template.function_count for template in pool)
    one = allocate(world.largest_cluster, most, per_slot, most, [])
    templates = [template for template, _ in entries]
    one = one.replaced(
        **catalogue(entries, world.cluster.single_core_speed),
        **named_arrays(templates, world.largest_cluster, len(one.nodes)),
    )
    every = EpisodeWorkload((0.0,) * len(pool), pool, images=world.images)
    return with_rules(one, templates, Episode(every, world.largest_cluster, world.rules)), index
