"""The logits of a `SetPolicyNetwork` for the rows of a sampler: compiled, or else by torch.

For some hundred rows torch spends most of its time on overhead: it needs Python's lock at every
operation, and finds the processor's caches cold after the simulators have played. Networks with
attention, with a window of the workflow, with layers of several widths or with wide ones, for which
its matrix products are faster, stay with torch.

R rows, M items with K choices each, C context and I item features, B bids, H units of every hidden
layer.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any, NamedTuple, cast

import numpy as np
import torch

from agents.learned.network import MASKED_LOGIT, SetPolicyNetwork
from env.base.jit import compiled
from env.learn.kind import Observation

WIDEST = 64
"""Units of hidden layers that are compiled; with 128 torch is faster."""
TORCH_LOCK = Lock()
"""Held by whoever computes logits with torch: it hands Python's lock over at every operation, and
two threads that both do so wait for each other."""
WriteLogits = Callable[[Observation, np.ndarray, np.ndarray], None]
"""Writes the logits of some rows, given
- float32 columns as `SetPolicyNetwork` has them, of R rows, C-contiguous;
- int64, the numbers of the rows;
- out, float32 (R, B + M*K)."""


class Weights(NamedTuple):
    """Of the layers, inputs first; all float32."""

    context: np.ndarray  # (C, H)
    item: np.ndarray  # (I, H)
    hidden: np.ndarray  # (L - 1, H, H), of the L hidden layers but the first
    biases: np.ndarray  # (L, H)
    pooled: np.ndarray  # (2 H, H), of the mean and of the maximum
    embedded: np.ndarray  # (H, H)
    score_bias: np.ndarray  # (H,)
    choice: np.ndarray  # (H, K)
    choice_bias: np.ndarray  # (K,)
    bid: np.ndarray  # (2 H, B)
    bid_bias: np.ndarray  # (B,)


class Scratch(NamedTuple):
    """What is known of one row meanwhile."""

    present: np.ndarray  # int64 (M,), items with a choice that is allowed
    items: np.ndarray  # float32 (M, I), these
    shared: np.ndarray  # float32 (1, H), what all items have in common
    embedded: np.ndarray  # float32 (2, M, H), two layers of the present items
    pooled: np.ndarray  # float32 (1, 2 H), mean and maximum


@compiled
def layer(inputs: np.ndarray, count: int, weight, bias, out: np.ndarray) -> None:
    """Writes `bias + inputs[:count] @ weight` to `out[:count]`, four inputs at a time.

    So out is read and written a quarter as often.
    """
    for row in range(count):
        for j in range(len(bias)):
            out[row, j] = bias[j]
    whole = len(weight) // 4 * 4
    for i in range(0, whole, 4):
        for row in range(count):
            a, b = inputs[row, i], inputs[row, i + 1]
            c, d = inputs[row, i + 2], inputs[row, i + 3]
            for j in range(weight.shape[1]):
                out[row, j] += (
                    a * weight[i, j]
                    + b * weight[i + 1, j]
                    + c * weight[i + 2, j]
                    + d * weight[i + 3, j]
                )
    for i in range(whole, len(weight)):
        for row in range(count):
            for j in range(weight.shape[1]):
                out[row, j] += inputs[row, i] * weight[i, j]


@compiled
def unit(inputs: np.ndarray, weight, bias, column):
    """One unit of a layer: `bias[column] + inputs @ weight[:, column]`."""
    total = bias[column]
    for i in range(len(inputs)):
        total += inputs[i] * weight[i, column]
    return total


@compiled
def cut_below_zero(out: np.ndarray, count: int) -> None:
    """ReLU, in place."""
    for row in range(count):
        for j in range(out.shape[1]):
            out[row, j] = max(out[row, j], np.float32(0.0))


@compiled
def pool_items(embedded: np.ndarray, count: int, pooled: np.ndarray) -> None:
    """Mean and maximum of the present items, which are not negative; 0 where there is none."""
    width = embedded.shape[1]
    mean, highest = pooled[0, :width], pooled[0, width:]
    for j in range(width):
        mean[j] = highest[j] = 0.0
    for row in range(count):
        for j in range(width):
            mean[j] += embedded[row, j]
            highest[j] = max(highest[j], embedded[row, j])
    for j in range(width):
        mean[j] /= max(1, count)


@compiled
def gather_present(items: np.ndarray, mask: np.ndarray, bids, choices, scratch):
    """Collects the items that have a choice; returns how many."""
    count = 0
    for item in range(len(items)):
        allowed = False
        for choice in range(bids + item * choices, bids + (item + 1) * choices):
            allowed |= mask[choice] > 0.0
        if allowed:
            scratch.present[count] = item
            for feature in range(items.shape[1]):
                scratch.items[count, feature] = items[item, feature]
            count += 1
    return count


@compiled
def score_rows(weights, rows, context, items, mask, scratch, logits) -> None:
    """Writes the logits of some rows.

    Args:
        weights: `Weights`.
        rows: int64, their numbers.
        context, items, mask: float32 (R, C), (R, M, I), (R, B + M*K), as for `SetPolicyNetwork`.
        scratch: `Scratch`.
        logits: out, float32 (R, B + M*K).
    """
    bids, choices = len(weights.bid_bias), len(weights.choice_bias)
    shared, pooled = scratch.shared, scratch.pooled
    below, above = scratch.embedded[0], scratch.embedded[1]
    for row in rows:
        count = gather_present(items[row], mask[row], bids, choices, scratch)

        layer(context[row : row + 1], 1, weights.context, weights.biases[0], shared)
        layer(scratch.items, count, weights.item, shared[0], above)
        cut_below_zero(above, count)
        for number in range(len(weights.hidden)):
            below, above = above, below
            layer(below, count, weights.hidden[number], weights.biases[number + 1], above)
            cut_below_zero(above, count)

        pool_items(above, count, pooled)
        layer(pooled, 1, weights.pooled, weights.score_bias, shared)
        layer(above, count, weights.embedded, shared[0], below)
        cut_below_zero(below, count)

        out = logits[row]
        for bid in range(bids):
            out[bid] = unit(pooled[0], weights.bid, weights.bid_bias, bid)
        for position in range(count):
            first = bids + scratch.present[position] * choices
            for choice in range(choices):
                out[first + choice] = unit(
                    below[position], weights.choice, weights.choice_bias, choice
                )
        for choice in range(len(out)):
            if mask[row, choice] < 0.5:
                out[choice] = MASKED_LOGIT


def can_compile(network: SetPolicyNetwork) -> bool:
    """Whether a network's logits are compiled."""
    sizes = network.sizes
    looks_further = sizes.network != "pooling" or sizes.function > 0
    return not looks_further and len(set(sizes.hidden)) == 1 and sizes.hidden[0] <= WIDEST


def writer_of(network: SetPolicyNetwork) -> WriteLogits:
    """What writes the logits of a network as it is now; compiled, it has copied the weights."""

    def write_by_torch(seen: Observation, rows: np.ndarray, logits: np.ndarray) -> None:
        parts = {part: torch.from_numpy(column[rows]) for part, column in seen.items()}
        with TORCH_LOCK:
            logits[rows] = network(parts).numpy()

    if not can_compile(network):
        return write_by_torch
    weights = _weights_of(network)

    def write(seen: Observation, rows: np.ndarray, logits: np.ndarray) -> None:
        context, items, mask = seen["context"], seen["items"], seen["mask"]
        count, width = items.shape[1], len(weights.score_bias)
        # Compiled code does not look where arrays end.
        assert context.shape[1:] == weights.context.shape[:1]
        assert items.shape[2:] == weights.item.shape[:1]
        assert mask.shape[1] == len(weights.bid_bias) + count * len(weights.choice_bias)
        assert len(context) == len(items) == len(mask)
        assert logits.shape == mask.shape
        scratch = Scratch(
            present=np.empty(count, np.int64),
            items=np.empty(items.shape[1:], np.float32),
            shared=np.empty((1, width), np.float32),
            embedded=np.empty((2, count, width), np.float32),
            pooled=np.empty((1, 2 * width), np.float32),
        )
        score_rows(weights, rows, context, items, mask, scratch, logits)

    return write


def _weights_of(network: SetPolicyNetwork) -> Weights:
    sizes, width = network.sizes, network.sizes.hidden[0]
    first, *others = cast(Any, network.embed)[::2]  # without the ReLUs between
    of_item, of_context = first.weight.split([sizes.item, sizes.context], dim=1)
    score, _, choice = cast(Any, network.score)
    of_embedded, of_pooled = score.weight.split([width, 2 * width], dim=1)
    bid, bid_bias = torch.zeros(0, 2 * width), torch.zeros(0)
    if sizes.bids:
        bid, bid_bias = network.bid.weight, network.bid.bias
    tensors = {
        "context": of_context.T,
        "item": of_item.T,
        "hidden": torch.stack([torch.empty(width, width), *(each.weight.T for each in others)])[1:],
        "biases": torch.stack([each.bias for each in (first, *others)]),
        "pooled": of_pooled.T,
        "embedded": of_embedded.T,
        "score_bias": score.bias,
        "choice": choice.weight.T,
        "choice_bias": choice.bias,
        "bid": bid.T,
        "bid_bias": bid_bias,
    }
    return Weights(**{key: np.array(each.detach(), order="C") for key, each in tensors.items()})
