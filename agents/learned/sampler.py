"""Plays environments side by side, turn by turn, and keeps what their agents did in columns."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from agents.learned.chunk import Chunk, Recorder, Steps
from agents.learned.compiled_policy import writer_of
from agents.learned.network import MASKED_LOGIT, SetPolicyNetwork
from env.base.jit import compiled
from env.learn.batch import Batch
from env.learn.kind import NOBODY


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
        """So many decisions of every environment.

        Args:
            networks: of the policies, by name.
            decisions: of each environment.
            explore: draw actions by their probabilities; else the likeliest.
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
