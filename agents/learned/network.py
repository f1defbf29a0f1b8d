"""The networks of a policy that scores a set of items. Plain torch, so evaluation needs no RLlib.

N observations, M items with K choices each, C context, I item and V critic features, B bids.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

# Far below every real logit, so that its probability is exactly 0, and finite, so that entropy and
# KL divergence stay finite.
MASKED_LOGIT = -1e9


@dataclass(frozen=True)
class PolicySizes:
    """What the shape of a policy's weights depends on; the number of items is not among it.

    Attributes:
        context: C, features of the function and the workload.
        item: I, features of one item.
        choices: K, choices per item (memory tiers, or 1).
        bids: B, bid levels; 0 where the agent does not bid.
        hidden: widths of the hidden layers.
    """

    context: int
    item: int
    choices: int
    bids: int
    hidden: tuple[int, ...]


class SetPolicyNetwork(nn.Module):
    """Logits of every choice of every item: shared weights, mean and max pool, masked."""

    def __init__(self, sizes: PolicySizes) -> None:
        super().__init__()
        width = sizes.hidden[-1]
        self.sizes = sizes
        self.embed = mlp([sizes.context + sizes.item, *sizes.hidden])
        self.score = nn.Sequential(
            nn.Linear(3 * width, width), nn.ReLU(), small_linear(width, sizes.choices)
        )
        if sizes.bids:
            self.bid = small_linear(2 * width, sizes.bids)

    def forward(self, context: Tensor, items: Tensor, mask: Tensor) -> Tensor:
        """Scores.

        Args:
            context: (N, C).
            items: (N, M, I).
            mask: (N, B + M*K), 1 = allowed, item-major.

        Returns:
            (N, B + M*K) logits; what the mask forbids has `MASKED_LOGIT`.
        """
        embedded = self.embed(torch.cat([items, beside(context, items)], dim=-1))  # (N, M, H)
        pooled = pool(embedded, present_items(mask, items, self.sizes.bids))  # (N, 2H)
        scores: Tensor = self.score(torch.cat([embedded, beside(pooled, items)], dim=-1))
        logits = scores.flatten(1)
        if self.sizes.bids:
            logits = torch.cat([self.bid(pooled), logits], dim=-1)
        return logits.masked_fill(mask < 0.5, MASKED_LOGIT)


class SetValueNetwork(nn.Module):
    """Value of an observation, from the context, the pooled items and the critic's features."""

    def __init__(self, sizes: PolicySizes, critic: int) -> None:
        super().__init__()
        self.bids = sizes.bids
        self.body = mlp([sizes.context + 2 * sizes.item + critic, *sizes.hidden])
        self.head = nn.Linear(sizes.hidden[-1], 1)

    def forward(self, context: Tensor, items: Tensor, mask: Tensor, critic: Tensor) -> Tensor:
        """Values (N,). Arguments as for the policy network, and critic: (N, V)."""
        pooled = pool(items, present_items(mask, items, self.bids))
        values: Tensor = self.head(self.body(torch.cat([context, pooled, critic], dim=-1)))
        return values.squeeze(-1)


def present_items(mask: Tensor, items: Tensor, bids: int) -> Tensor:
    """(N, M) bool: items with a choice that is allowed. The others may be padding."""
    allowed = mask[:, bids:] > 0.5
    return allowed.reshape(len(items), items.shape[1], -1).any(dim=-1)


def pool(items: Tensor, present: Tensor) -> Tensor:
    """Mean and maximum over the present items (N, M, H) -> (N, 2H); zeros where there is none."""
    keep = present.unsqueeze(-1)
    count = keep.sum(dim=1).clamp(min=1)
    mean = items.masked_fill(~keep, 0.0).sum(dim=1) / count
    highest = items.masked_fill(~keep, -torch.inf).amax(dim=1)
    highest = highest.masked_fill(~present.any(dim=1, keepdim=True), 0.0)
    return torch.cat([mean, highest], dim=-1)


def beside(vector: Tensor, items: Tensor) -> Tensor:
    """Repeats (N, H) for each of the M items: (N, M, H), without copying."""
    return vector.unsqueeze(1).expand(-1, items.shape[1], -1)


def mlp(widths: Sequence[int]) -> nn.Sequential:
    """Linear layers, each followed by ReLU."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers)


def small_linear(inputs: int, outputs: int) -> nn.Linear:
    """A last layer whose logits start near 0: the untrained policy is nearly uniform."""
    layer = nn.Linear(inputs, outputs)
    with torch.no_grad():
        layer.weight.mul_(0.01)
        layer.bias.zero_()
    return layer
