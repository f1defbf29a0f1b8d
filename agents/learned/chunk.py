"""What the fast environment runner samples and the learner takes: steps in columns, no episodes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import tree

# In `Steps.following`, where there is no row to go on with.
ENDED = -1
OPEN = -2


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
