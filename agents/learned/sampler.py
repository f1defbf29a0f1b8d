"""Plays environments side by side, turn by turn, and keeps what their agents did in columns.

RLlib shares the columns out as it does episodes.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import torch
import tree

from agents.learned.compiled_policy import writer_of
from agents.learned.network import MASKED_LOGIT, SetPolicyNetwork
from env.base.jit import compiled
from env.learn.batch import Batch
from env.learn.kind import NOBODY, Agent, Observation

# In `Steps.following`, where there is no row to go on with.
ENDED = -1
OPEN = -2
# In `Recorder`, of an agent that has not acted.
NO_ROW = -1


@dataclass(frozen=True)
class Steps:
    """The steps of all agents of one policy: R rows, those of one agent in the order of time.

    N choices (A in all, with bids), M items, C, I and V features.

    Attributes:
        obs: float32 `context` (R, C), `items` (R, M, I), `mask` (R, A), `critic` (R, V), and with a
            window of F functions of the workflow `functions` (R, F, G), `edges` (R, F, F).
        actions: (R,) int64, or (R, 2) of agents that bid.
        action_logp: (R,) float32, logarithm of the probability the action was sampled with.
        action_dist_inputs: (R, A) float32, the logits it was sampled from.
        rewards: (R,) float64, what the agent earned from this step to its next, or to the end of
            the episode.
        following: (R,) int64, the row of the agent's next step, always a later one. ENDED: the
            episode ended after this step. OPEN: its next step is not sampled yet; such a row only
            gives its value to the one before it, and comes again, to be trained on, in the next
            chunk.
        environment: (R,) int64, which of the sampler's environments the row is from.
    """

    obs: dict[str, np.ndarray]
    actions: np.ndarray
    action_logp: np.ndarray
    action_dist_inputs: np.ndarray
    rewards: np.ndarray
    following: np.ndarray
    environment: np.ndarray

    def __len__(self) -> int:
        return len(self.rewards)

    def select(self, chosen: np.ndarray) -> Self:
        """Some of the rows (R,) bool; whoever chooses takes all or none of an agent's episode."""
        if chosen.all():
            return self
        # Where each row lands. ENDED and OPEN stay what they are.
        landing = np.cumsum(chosen) - 1
        following = np.where(self.following >= 0, landing[self.following], self.following)
        columns = {**vars(self), "following": following}
        return replace(self, **tree.map_structure(lambda column: column[chosen], columns))

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """The rows of several samplers, one after the other."""
        if len(parts) == 1:
            return parts[0]
        starts = np.cumsum([0, *(len(part) for part in parts[:-1])])
        moved = [
            {**vars(part), "following": part.following + start * (part.following >= 0)}
            for part, start in zip(parts, starts, strict=True)
        ]
        return cls(**tree.map_structure(lambda *columns: np.concatenate(columns), *moved))


@dataclass(frozen=True)
class Chunk:
    """What one sampler (a thread of a runner) did in one go; takes the place of RLlib's episodes.

    RLlib measures it with `len` and, to share it among several learners, cuts it with slices.

    Attributes:
        modules: steps by policy (RLlib: module).
        steps: of the environments; one may be a step of several agents, or of one.
    """

    modules: dict[str, Steps]
    steps: int

    def __len__(self) -> int:
        return self.steps

    env_steps = __len__  # RLlib asks for both

    def slice(self, steps: slice, len_lookback_buffer: Any = None) -> Self:
        """The part `[:n]` or `[n:]` of the chunk, for one of several learners.

        Advantages need all steps of an episode, so the cut is between environments, where it is
        nearest to n. `[:n]` counts as n steps all the same: RLlib shares out by these numbers.
        There is nothing to look back into.
        """
        first, cut, _ = steps.indices(self.steps)
        head = steps.stop is not None
        share = (cut if head else first) / max(self.steps, 1)
        environments = np.concatenate([each.environment for each in self.modules.values()])
        numbers, rows = np.unique(environments, return_counts=True)
        # Rows up to and with each environment; the cut is after the one that is nearest.
        reached = np.concatenate([[0], np.cumsum(rows)])
        place = int(np.abs(reached - share * reached[-1]).argmin())
        chosen = numbers[:place] if head else numbers[place:]
        modules = {
            name: each.select(np.isin(each.environment, chosen))
            for name, each in self.modules.items()
        }
        return type(self)(modules, steps=cut if head else self.steps - first)

    __getitem__ = slice


class Recorder:
    """Columns of the steps of A agents of one kind in E environments.

    Between `begin` and `finish` every turn takes `room` for its observations and is then
    `record`ed; `earn` follows every decision. The last step of every agent, which does not know
    yet what it earns, is open and opens the next columns as well.

    Args:
        agents: whose steps these are; their rows have the same shape.
        environments: E.
        policies: name of the policy of each agent.

    Attributes:
        bids: B of the agents.
        policies: their names, each once.
    """

    def __init__(self, agents: Sequence[Agent], environments: int, policies: list[str]) -> None:
        self.bids, self.policies = agents[0].bids, list(dict.fromkeys(policies))
        # The last one is that of NOBODY.
        self._policy_of = np.array([*map(self.policies.index, policies), NOBODY])
        self._blank = agents[0].blank_observation()
        shapes = {part: (zeros.shape, np.float32) for part, zeros in self._blank.items()}
        self._shapes: dict[str, tuple[tuple[int, ...], type]] = {
            **shapes,
            "actions": ((2,) if agents[0].bids else (), np.int64),
            "action_logp": ((), np.float32),
            "action_dist_inputs": shapes["mask"],
            "rewards": ((), np.float64),
            **dict.fromkeys(("following", "environment", "agent"), ((), np.int64)),
        }
        self._last = np.full((environments, len(agents)), NO_ROW)
        self._memory: dict[str, np.ndarray] = {}
        self._columns = {name: self._empty(name, 0) for name in self._shapes}

    def begin(self, rows: int) -> None:
        """Makes columns for the open steps and `rows` more."""
        before = self.get_state()
        self._used = len(before["agent"])
        self._columns = {}  # so that their memory is free
        self._columns = {
            # Room for as many open steps as there can be: the same size every time.
            name: self._empty(name, self._last.size + rows)[: self._used + rows]
            for name in self._shapes
        }
        for name, column in self._columns.items():
            column[: self._used] = before[name]
        self._columns["rewards"][self._used :] = 0.0
        self._last[before["environment"], before["agent"]] = np.arange(self._used)

    def room(self, rows: int) -> Observation:
        """Where the observations of the next `rows` steps belong."""
        return {part: self._columns[part][self._used : self._used + rows] for part in self._blank}

    def record(
        self, acting: np.ndarray, actions: np.ndarray, logp: np.ndarray, logits: np.ndarray
    ) -> None:
        """The steps that the last `room` was for.

        Args:
            acting: (rows,) which of `agents` each is of, or NOBODY.
            actions: (rows,) int64, or (rows, 2) of agents that bid.
            logp: (rows,) float32.
            logits: (rows, A) float32.
        """
        columns, rows = self._columns, np.arange(self._used, self._used + len(acting))
        self._used += len(acting)
        environments = np.repeat(np.arange(len(self._last)), len(acting) // len(self._last))
        made = {
            "actions": actions,
            "action_logp": logp,
            "action_dist_inputs": logits,
            "agent": acting,
            "environment": environments,
            # Nobody goes on with the rows that are nobody's.
            "following": np.where(acting == NOBODY, ENDED, OPEN),
        }
        for name, values in made.items():
            columns[name][rows[0] : self._used] = values
        acted = acting != NOBODY
        agents, rows = (environments[acted], acting[acted]), rows[acted]
        before = self._last[agents]
        columns["following"][before[before != NO_ROW]] = rows[before != NO_ROW]
        self._last[agents] = rows

    def earn(self, earned: np.ndarray, done: np.ndarray) -> None:
        """What a decision earned each environment (E,), and which episodes it ended (E,).

        All its agents earn it by their last steps.
        """
        environments, agents = np.nonzero(self._last != NO_ROW)
        rows = self._last[environments, agents]
        self._columns["rewards"][rows] += earned[environments]
        self._columns["following"][rows[done[environments]]] = ENDED
        self._last[done] = NO_ROW

    def by_policy(self, acting: np.ndarray) -> dict[str, np.ndarray]:
        """Which rows (rows,) bool are of each policy, by the agents that act in them."""
        policies = self._policy_of[acting]
        return {name: policies == index for index, name in enumerate(self.policies)}

    def finish(self) -> dict[str, Steps]:
        """The steps that each policy made."""
        columns = dict(self._columns)
        agents = columns.pop("agent")
        steps = Steps(obs={part: columns.pop(part) for part in self._blank}, **columns)
        return {name: steps.select(rows) for name, rows in self.by_policy(agents).items()}

    def get_state(self) -> dict[str, Any]:
        """The open steps, by column."""
        open_rows = self._columns["following"] == OPEN
        return {name: column[open_rows] for name, column in self._columns.items()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Goes on from `get_state`."""
        self._last[:] = NO_ROW
        self._columns = dict(state)

    def _empty(self, name: str, rows: int) -> np.ndarray:
        """A column with any content, in memory that it had before if nobody holds that any more.

        The system hands out fresh memory page by page as it is first written, which takes longer
        than all that the environments write into it.
        """
        kept = self._memory.pop(name, None)
        # Two hold it: this call, and the one that counts.
        if kept is None or sys.getrefcount(kept) > 2 or len(kept) != rows:
            shape, dtype = self._shapes[name]
            kept = np.empty((rows, *shape), dtype)
        self._memory[name] = kept
        return kept[:]


@compiled
def choose(logits, bids, explore, chances, actions, logp) -> None:
    """Chooses every row's action: one of all columns, or a bid and one of the others.

    Args:
        logits: (rows, A) float32.
        bids: B, 0 where agents do not bid.
        explore: draw from the probabilities; else the likeliest.
        chances: (rows, parts) between 0 and 1, to draw with.
        actions: out, (rows, parts) int64.
        logp: out, (rows,) float32, the logarithm of the probability is added.
    """
    rows, parts = actions.shape
    for part in range(parts):
        begin = part * bids
        end = bids if part + 1 < parts else logits.shape[1]
        for row in range(rows):
            chosen = begin
            for column in range(begin + 1, end):
                if logits[row, column] > logits[row, chosen]:
                    chosen = column
            highest = logits[row, chosen]
            total = 0.0
            for column in range(begin, end):
                if logits[row, column] > MASKED_LOGIT:
                    total += np.exp(logits[row, column] - highest)
            if explore:
                left = chances[row, part] * total
                for column in range(begin, end):
                    if logits[row, column] > MASKED_LOGIT:
                        chosen = column
                        left -= np.exp(logits[row, column] - highest)
                        if left < 0.0:
                            break
            actions[row, part] = chosen - begin
            logp[row] += logits[row, chosen] - highest - np.log(total)


class Sampler:
    """What one thread of a runner does: a batch, its agents' policies, and columns of their steps.

    Nothing in it is shared with another sampler but the networks, which are only read.

    Args:
        batch: the environments; also an attribute.
        policy_of: name of the policy of an agent.
        random: what actions are drawn with.
    """

    def __init__(
        self, batch: Batch, policy_of: Callable[[str], str], random: np.random.Generator
    ) -> None:
        self.batch, self._random = batch, random
        self._recorders = {
            turn: Recorder(turn.agents, len(batch), [policy_of(each.name) for each in turn.agents])
            for turn in batch.turns
        }

    @torch.inference_mode()
    def play(
        self, networks: Mapping[str, SetPolicyNetwork], decisions: int, explore: bool
    ) -> Chunk:
        """So many decisions of every environment, by the networks of the policies.

        Who explores draws actions by their probabilities, and else takes the likeliest.
        """
        batch = self.batch
        write_logits = {name: writer_of(network) for name, network in networks.items()}
        for turn, recorder in self._recorders.items():
            recorder.begin(decisions * len(batch) * turn.together)
        taken = 0
        for _ in range(decisions):
            for turn, recorder in self._recorders.items():
                seen = recorder.room(len(batch) * turn.together)
                batch.observe(turn, seen)
                acting = batch.acting[turn]
                taken += int(np.count_nonzero(acting != NOBODY)) // turn.together
                logits = np.zeros_like(seen["mask"])  # of rows that are nobody's
                for name, chosen in recorder.by_policy(acting).items():
                    if len(rows := np.flatnonzero(chosen)):
                        write_logits[name](seen, rows, logits)
                actions = np.empty((len(acting), 2 if recorder.bids else 1), np.int64)
                chances = self._random.random(actions.shape)
                logp = np.zeros(len(acting), np.float32)
                choose(logits, recorder.bids, explore, chances, actions, logp)
                actions = actions if recorder.bids else actions[:, 0]
                batch.act(turn, actions)
                recorder.record(acting, actions, logp, logits)
            earned, done = batch.step()
            for recorder in self._recorders.values():
                recorder.earn(earned, done)
        modules: dict[str, Steps] = {}
        for recorder in self._recorders.values():
            modules |= recorder.finish()
        return Chunk(modules, taken)

    def get_state(self) -> dict[str, Any]:
        """Everything that sampling goes on from."""
        recorders = self._recorders.items()
        return {
            "batch": self.batch.get_state(),
            "random": self._random.bit_generator.state,
            "open": {turn.agents[0].kind: each.get_state() for turn, each in recorders},
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Goes on from `get_state` of a sampler with as many environments."""
        self.batch.set_state(state["batch"])
        self._random.bit_generator.state = state["random"]
        for turn, recorder in self._recorders.items():
            recorder.set_state(state["open"][turn.agents[0].kind])
