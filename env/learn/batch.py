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
    TurnOrder,
    next_episode,
    no_choice,
    seed_each,
    whole_number,
)
from env.learn.agent import Agent, Observation
from env.learn.batch_turns import (
    EPISODE,
    choose_all,
    decide_all,
    place_all,
    see_all,
    start_decisions,
)
from env.learn.layouts import NOBODY, WINDOW_PARTS
from env.learn.turns import (
    BID_TURN,
    CHOICE,
    NODE_TURN,
    OF_ALL,
    QUEUE_TURN,
    SHARE_TURN,
    Sight,
    turn_to_episode,
)
from env.learn.world import World
from env.score.greedy_play import trace_greedy
from env.score.reward import cheapest_cost, ideal
from env.sim.block import State
from env.sim.choosing import play_to_choice
from env.sim.forecast import update_finish_bounds
from env.sim.hardware import ClusterConfig
from env.sim.records import ARRIVING, CHOOSE, DONE, NONE
from env.sim.resources import named_arrays
from env.sim.rules import with_rules, write_lease
from env.sim.state import allocate, arriving, catalogue, copy_into, hardware, reset
from env.workloads.generator import EpisodeWorkload, WorkloadGenerator

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
        self._streams = [(seed, (worker, first + env)) for env in range(environments)]
        self._weights = np.tile(world.objective.weights, (environments, 1))
        one, self._first_template = _one_state(world)
        self._states, self._handles = one.copies(environments)
        self._arrivals = np.zeros((environments, len(one.slot_of)), ARRIVING)
        self._drawn: list[Drawn] = [(*stream, 0) for stream in self._streams]
        sight = self.layout.new_sight(len(one.functions))
        self._sights = Sight._make((*_stacked(sight[:-OF_ALL], environments), *sight[-OF_ALL:]))
        self._episodes = np.zeros(environments, EPISODE)
        self._choices = np.zeros(environments, CHOICE)
        self._rewards = np.zeros(environments)
        self._unasked = np.zeros(environments, np.int64)
        self._first_of_placing = self.layout.placing[0] if self.layout.placing else NONE
        self._order = TurnOrder({turn: self.agents_of(turn) for turn in self.turns}, environments)
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
        own = zip(self._streams, self._episodes["number"].tolist(), strict=True)
        begun = [
            next_episode(each, (*stream, number))
            for each, (stream, number) in zip(seed_each(seed, len(self)), own, strict=True)
        ]
        self._streams = [(each, stream) for each, stream, _ in begun]
        self._episodes["number"] = [number for *_, number in begun]
        for env in range(len(self)):
            self._start_episode(env)
        self._begin()

    def agents_of(self, turn: int) -> list[Agent]:
        """Who can act at a turn; all do at once, but for NODE_TURN and SHARE_TURN, where one does.

        At a turn that is nobody's in an environment none of them does there.
        """
        return self.layout.agents_of[turn]

    def acting(self, turn: int) -> np.ndarray:
        """(E * A,) which of `agents_of(turn)` each row is of, or NOBODY."""
        acting = np.zeros((len(self), 1), np.int64)
        if turn == NODE_TURN:
            acting[:, 0] = self._choices["type"]
        elif turn == SHARE_TURN:
            acting[:, 0] = self._episodes["tenant"]
        elif turn == BID_TURN:
            acting = np.tile(np.arange(len(self.agents_of(turn))), (len(self), 1))
        acting[~self._due(turn)] = NOBODY
        return acting.ravel()

    def _due(self, turn: int) -> np.ndarray:
        """(E,) whether a turn is one of each environment's agents, or nobody's."""
        kinds = self._episodes["kind"]
        due: np.ndarray = (kinds != DONE) & ((kinds == CHOOSE) == (turn == QUEUE_TURN))
        return due

    def observe(self, turn: int, out: Observation) -> None:
        """Writes what the agents of a turn see.

        Args:
            turn: of `turns`, in their order.
            out: the parts of `Agent.observation_space`, float32, of E * A rows, C-contiguous.

        Raises:
            InputError: the turn is not due, or a part is missing or no such array.
        """
        self._order.check_room(turn, out)
        see_all(
            turn,
            self._handles,
            self._sights,
            self._episodes,
            self._choices,
            self.agents_of(turn)[0].bids,
            out["context"],
            out["items"],
            out["mask"],
            out["critic"],
        )
        self._order.observed(turn, out["mask"])
        for part in WINDOW_PARTS & out.keys():
            rows = out[part].reshape(len(self), -1, *out[part].shape[1:])
            rows[:] = getattr(self._sights, part)[:, None]
            rows[~self._due(turn)] = 0.0

    def act(self, turn: int, actions: np.ndarray) -> None:
        """Takes the actions of a turn: integers (E,), or (E * A, 2) of bids and places.

        Raises:
            InputError: the turn is not due or has not been observed, or an action is not allowed.
                Then nothing has changed, and the turn can be answered again.
        """
        bids, actions = self._unasked, self._order.take(turn, actions, self.acting(turn))
        if actions.ndim == 2:
            bids, actions = np.ascontiguousarray(actions.T)
        decide_all(turn, self._sights, self._episodes, self._choices, actions, bids)
        if turn == QUEUE_TURN:
            choose_all(
                self._first_of_placing,
                self._handles,
                self._sights,
                self._episodes,
                self._choices,
                self._weights,
            )

    def step(self, rest: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Places, plays on to the next choices, and restarts the environments that end.

        Args:
            rest: where an episode ends the next one begins in the next step, as in Gymnasium's
                NEXT_STEP: until then all turns are nobody's, and that step earns nothing.

        Returns:
            rewards, float64 (E,), and whether the episodes have ended, bool (E,).

        Raises:
            InputError: a turn has not been taken, or the engine ran out of records.
        """
        self._order.finish()
        kinds = self._episodes["kind"]
        rested = kinds == DONE
        place_all(
            self._first_of_placing,
            self._handles,
            self._sights,
            self._episodes,
            self._choices,
            self._weights,
            self._rewards,
        )
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
            self._start_episode(env)
        if len(following):
            self._start_decisions(following)
        return self._rewards.copy(), done

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
        self._streams = [(seed, stream) for seed, stream, _ in self._drawn]
        for env, block in enumerate(state["blocks"]):
            self._load(env)
            self._begin_episode(env)  # what is seen of the reference
            # Earlier versions did not pack the records.
            block = zlib.decompress(block) if isinstance(block, bytes) else block
            self.state(env).block[:] = np.frombuffer(block, np.uint8)
        for name in EPISODE.names or ():  # earlier versions had more
            self._episodes[name] = state["episodes"][name]
        self._begin()

    __setstate__ = set_state

    def _begin(self) -> None:
        """All environments have come to a decision."""
        self._start_decisions(np.arange(len(self)))
        self._order.begin()

    def _start_decisions(self, environments: np.ndarray) -> None:
        """Of those that have just come to one."""
        start_decisions(
            self._first_of_placing,
            self._handles,
            self._sights,
            self._episodes,
            self._weights,
            environments,
        )

    def _start_episode(self, env: int) -> None:
        """The next episode of the environment's stream in which agents have a choice."""
        episode = self._episodes[env]
        for _ in range(ATTEMPTS):
            self._drawn[env] = *self._streams[env], int(episode["number"])
            episode["number"] += 1
            self._load(env)
            self._begin_episode(env)
            if episode["kind"] != DONE:
                return
        raise no_choice()

    def _begin_episode(self, env: int) -> None:
        """Has the reference play an episode, then plays it up to the first choice."""
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
        self._states[env] = state = workload.env(cluster, self._world.rules).state
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
        arrivals = arriving(
            workload.arrival_times, [first[id(template)] for template in workload.templates]
        )
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
    if not isinstance(generator, WorkloadGenerator) or generator.funding is not None:
        return allocate(world.largest_cluster, 1, 1, 1, []), {}
    cores = sorted({kind.cpu for kind in world.largest_cluster.server_types})
    pool = world.templates
    entries = [(template, cpu) for cpu in cores for template in pool]
    index: dict[int, dict[int, int]] = {cpu: {} for cpu in cores}
    for position, (template, cpu) in enumerate(entries):
        index[cpu][id(template)] = position
    most = generator.most_workflows
    per_slot = max(template.function_count for template in pool)
    one = allocate(world.largest_cluster, most, per_slot, most, [])
    shared = catalogue(entries, world.cluster.single_core_speed)
    names = ("templates", "template_functions", "predecessors", "successors")
    templates = [template for template, _ in entries]
    one = one.replaced(
        **dict(zip(names, shared, strict=True)),
        **named_arrays(templates, world.largest_cluster, len(one.nodes)),
    )
    known = EpisodeWorkload((), pool, cold_start=generator.container_cold_start)
    images = known.images(world.rules)
    return with_rules(one, templates, images, world.rules, world.largest_cluster), index


def _stacked(arrays: tuple[np.ndarray, ...], count: int) -> list[np.ndarray]:
    """The arrays with a first dimension of environments, all alike."""
    return [np.repeat(array[None], count, axis=0) for array in arrays]
