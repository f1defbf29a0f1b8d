"""The networks of a policy that scores a set of items. Plain torch, so evaluation needs no RLlib.

N observations, M items with K choices each, C context, I item and V critic features, B bids, F
functions in the window of the workflow with G features each.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any

import torch
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass
from torch import Tensor, nn
from torch.nn.functional import linear, relu, scaled_dot_product_attention

from run.settings import MOST_ROUNDS, Hidden, Network

Count = Annotated[int, Field(ge=1, le=65_536)]
Maybe = Annotated[int, Field(ge=0, le=65_536)]

# Far below every real logit, so that its probability is exactly 0, and finite, so that entropy and
# KL divergence stay finite.
MASKED_LOGIT = -1e9
# Farther from 0 than any feature, and finite, so that 0 times it is 0.
FAR = 1e30
HEADS = 2
"""Of the attention between items, each a quarter as wide as an embedded item."""


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class PolicySizes:
    """What the shape of a policy's weights depends on; the number of items is not among it.

    Attributes:
        context: C, features of the function and the workload.
        item: I, features of one item.
        choices: K, choices per item (memory tiers, or 1).
        bids: B, bid levels; 0 where the agent does not bid.
        hidden: widths of the hidden layers.
        network: what items know of each other.
        function: G, features of one function of the workflow; 0 where there is no window of it.
        message_rounds: between the functions of the window.
    """

    context: Count
    item: Count
    choices: Count
    bids: Maybe
    hidden: Hidden
    network: Network = "pooling"
    function: Maybe = 0
    message_rounds: Annotated[int, Field(ge=0, le=MOST_ROUNDS)] = 0


class SetPolicyNetwork(nn.Module):
    """Logits of every choice of every item: shared weights, mean and max pool, masked.

    With attention, embedded items look at each other before they are pooled and scored. Without it,
    samplers compute the same without torch (`writer_of`).
    """

    def __init__(self, sizes: PolicySizes) -> None:
        super().__init__()
        width = sizes.hidden[-1]
        self.sizes = sizes
        self.context = Context(sizes)
        self.embed = mlp([self.context.width + sizes.item, *sizes.hidden])
        if sizes.network == "attention":
            self.attend = Attention(width)
        self.score = nn.Sequential(
            nn.Linear(3 * width, width), nn.ReLU(inplace=True), small_linear(width, sizes.choices)
        )
        if sizes.bids:
            self.bid = small_linear(2 * width, sizes.bids)

    def forward(self, seen: Mapping[str, Tensor]) -> Tensor:
        """Scores.

        Args:
            seen: `context` (N, C), `items` (N, M, I), `mask` (N, B + M*K), 1 = allowed, item-major;
                with a window of the workflow `functions` (N, F, G) and `edges` (N, F, F).

        Returns:
            (N, B + M*K) logits; what the mask forbids has `MASKED_LOGIT`.
        """
        items, mask = seen["items"], seen["mask"]
        context = self.context(seen)
        embedded = along(self.embed, items, context).unflatten(0, items.shape[:2])  # (N, M, H)
        present = present_items(mask, items, self.sizes.bids)
        if self.sizes.network == "attention":
            embedded = self.attend(embedded, present)
        pooled = pool(embedded, present)  # (N, 2H)
        scores = along(self.score, embedded, pooled)  # (N*M, K)
        logits = scores.view(len(items), -1)
        if self.sizes.bids:
            logits = torch.cat([self.bid(pooled), logits], dim=-1)
        return logits.masked_fill(mask < 0.5, MASKED_LOGIT)

    @torch.no_grad()
    def soften(self, temperature: float) -> None:
        """Divides all logits by a temperature: the same order, but less certain above 1."""
        for last in (self.score[-1], *([self.bid] if self.sizes.bids else ())):
            for parameter in last.parameters():
                parameter.div_(temperature)


class Context(nn.Module):
    """What all items share: the context and, with a window of the workflow, what its DAG says."""

    def __init__(self, sizes: PolicySizes) -> None:
        super().__init__()
        self.width = sizes.context
        self.messages: MessagePassing | None = None
        if sizes.function:
            width = max(1, sizes.hidden[0] // 2)
            self.width += width
            self.messages = MessagePassing(sizes.function, width, sizes.message_rounds)

    def forward(self, seen: Mapping[str, Tensor]) -> Tensor:
        """(N, `width`). Argument as for the policy network."""
        context = seen["context"]
        if self.messages is None:
            return context
        return torch.cat([context, self.messages(seen["functions"], seen["edges"])], dim=-1)


class MessagePassing(nn.Module):
    """Embeds the current function by what is around it in the DAG of its workflow.

    In each round every function hears the mean of its successors and the mean of its predecessors:
    a relational graph convolution (Schlichtkrull et al. 2018, arXiv:1703.06103) whose weights all
    rounds share, as those of Decima do (Mao et al. 2019, arXiv:1810.01963). A function that is
    farther away than there are rounds is not heard of.
    """

    def __init__(self, features: int, width: int, rounds: int) -> None:
        super().__init__()
        self.rounds = rounds
        self.own = nn.Linear(features, width)
        self.heard = nn.Linear(2 * width, width, bias=False)

    def forward(self, functions: Tensor, edges: Tensor) -> Tensor:
        """(N, F, G), (N, F, F) -> (N, width), of the first function. Rows without edges are mute.

        An edge is 1 where the function of the column waits for that of the row.
        """
        of_successors = edges / edges.sum(dim=2, keepdim=True).clamp(min=1)
        of_predecessors = (edges / edges.sum(dim=1, keepdim=True).clamp(min=1)).mT
        own = self.own(functions)
        embedded = relu(own)
        for later in reversed(range(self.rounds)):
            if later == 0:  # nobody hears what the others would still learn
                own, of_successors, of_predecessors = (
                    each[:, :1] for each in (own, of_successors, of_predecessors)
                )
            heard = torch.cat([of_successors @ embedded, of_predecessors @ embedded], dim=-1)
            embedded = relu(own + self.heard(heard))
        return embedded[:, 0]


class Attention(nn.Module):
    """Multi-head self-attention of items (Vaswani et al. 2017, arXiv:1706.03762), added to them.

    What is attended to is normalised first, and what comes of it added unchanged, as in
    arXiv:2002.04745: the block starts near the network without it.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        inner = HEADS * max(1, width // 4)
        self.norm = nn.LayerNorm(width)
        self.project = nn.Linear(width, 3 * inner)
        self.out = nn.Linear(inner, width)

    def forward(self, items: Tensor, present: Tensor) -> Tensor:
        """(N, M, H) -> (N, M, H). Items look at the present ones (N, M) alone."""
        projected = self.project(self.norm(items)).unflatten(-1, (3, HEADS, -1))
        queries, keys, values = projected.permute(2, 0, 3, 1, 4)  # each (N, HEADS, M, H / 4)
        # Finite, so that a row without present items stays so.
        bias = ((present - 1) * FAR)[:, None, None, :]
        attended = scaled_dot_product_attention(queries, keys, values, bias)
        return items + self.out(attended.transpose(1, 2).flatten(2))


class SetValueNetwork(nn.Module):
    """Value of an observation, from the context, the embedded and pooled items and the future."""

    def __init__(self, sizes: PolicySizes, critic: int) -> None:
        super().__init__()
        embedded = max(1, sizes.hidden[0] // 2)
        self.bids = sizes.bids
        self.context = Context(sizes)
        self.embed = mlp([sizes.item, embedded])
        self.body = mlp([self.context.width + 2 * embedded + critic, *sizes.hidden])
        self.head = nn.Linear(sizes.hidden[-1], 1)

    def forward(self, seen: Mapping[str, Tensor]) -> Tensor:
        """Values (N,). Argument as for the policy network, with `critic` (N, V)."""
        items, critic = seen["items"], seen["critic"]
        # Flat, as in `along`.
        embedded = self.embed(items.flatten(0, 1)).unflatten(0, items.shape[:2])
        pooled = pool(embedded, present_items(seen["mask"], items, self.bids))
        return self.head(self.body(torch.cat([self.context(seen), pooled, critic], -1))).squeeze(-1)


def present_items(mask: Tensor, items: Tensor, bids: int) -> Tensor:
    """(N, M) 1 for items with a choice that is allowed, 0 for the others: maybe padding."""
    return mask[:, bids:].reshape(*items.shape[:2], -1).amax(dim=-1)


def pool(items: Tensor, present: Tensor) -> Tensor:
    """Mean and maximum over the present items (N, M, H) -> (N, 2H); zeros where there is none."""
    return _Pool.apply(items, present)


class _Pool(torch.autograd.Function):
    """`pool`; its gradient is torch's, in four passes over the items instead of ten."""

    @staticmethod
    def forward(ctx: Any, items: Tensor, present: Tensor) -> Tensor:
        count = present.sum(dim=1, keepdim=True)
        share = (present / count.clamp(min=1)).unsqueeze(-1)  # (N, M, 1)
        mean = torch.bmm(share.mT, items).squeeze(1)
        highest = (items + ((present - 1) * FAR).unsqueeze(-1)).amax(dim=1)
        ctx.save_for_backward(items, present, share, highest)
        return torch.cat([mean, highest * count.clamp(max=1)], dim=-1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        items, present, share, highest = ctx.saved_tensors
        of_mean, of_highest = gradients[0].chunk(2, dim=1)
        # 1 where an item has the maximum, as floats, which is faster; ties share the gradient.
        top = torch.eq(items, highest.unsqueeze(1), out=torch.empty_like(items))
        top.mul_(present.unsqueeze(-1))
        top.mul_((of_highest / top.sum(dim=1).clamp(min=1)).unsqueeze(1))
        return top.addcmul_(share, of_mean.unsqueeze(1)), None


def along(layers: nn.Sequential, items: Tensor, row: Tensor) -> Tensor:
    """layers(cat([items (N, M, I), row (N, R) repeated])) -> (N*M, outputs of the last layer).

    The row's part of the first layer is computed once, and nothing is copied. From there on the
    rows are flat: ReLU in place on a view, which is what a linear layer makes of (N, M, H), would
    cost copies in the backward pass. The first layer is linear, the second ReLU.
    """
    first, relu, *others = layers
    assert isinstance(first, nn.Linear)
    of_item, of_row = first.weight.split([items.shape[-1], row.shape[-1]], dim=1)
    hidden = linear(items, of_item)
    hidden = relu(hidden.add_(linear(row, of_row, first.bias).unsqueeze(1)))
    hidden = hidden.flatten(0, 1)
    for layer in others:
        hidden = layer(hidden)
    return hidden


def mlp(widths: Sequence[int]) -> nn.Sequential:
    """Linear layers, each followed by ReLU."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layers += [nn.Linear(inputs, outputs), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers)


def small_linear(inputs: int, outputs: int) -> nn.Linear:
    """A last layer whose logits start near 0: the untrained policy is nearly uniform."""
    layer = nn.Linear(inputs, outputs)
    with torch.no_grad():
        layer.weight.mul_(0.01)
        layer.bias.zero_()
    return layer
