"""Graphs of losses with every reduction, and of draws."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from kinds_parts.tracing import Function, compiled, differentiates, traces

aten = torch.ops.aten
REDUCTIONS = ("none", "mean", "sum")


def each(function: Function, *given: Tensor, **told: object) -> list[Tensor]:
    """A loss with every reduction."""
    return [function(*given, reduction=reduction, **told) for reduction in REDUCTIONS]


# ---- losses


@differentiates("losses", lambda: [torch.randn(3, 4), torch.randn(3, 4)])
def distances(a: Tensor, b: Tensor) -> list[Tensor]:
    found = each(F.mse_loss, a, b) + each(F.l1_loss, a, b) + each(F.smooth_l1_loss, a, b) + each(F.smooth_l1_loss, a, b, beta=0.0)
    return found + each(F.huber_loss, a, b, delta=0.5) + each(F.smooth_l1_loss, a, b, beta=0.5)


@differentiates("losses", lambda: [torch.randn(3, 4), (torch.randn(3, 4) > 0).float(), torch.rand(3, 4)], wanted=[0])
def two_classes(a: Tensor, t: Tensor, w: Tensor) -> list[Tensor]:
    p = a.sigmoid()
    found = (
        each(F.binary_cross_entropy, p, t)
        + each(F.binary_cross_entropy, p, t, weight=w)
        + each(F.binary_cross_entropy_with_logits, a, t)
    )
    found += each(F.binary_cross_entropy_with_logits, a, t, pos_weight=w[0]) + each(F.soft_margin_loss, a, t * 2 - 1)
    return found + each(F.multilabel_soft_margin_loss, a, t) + each(F.hinge_embedding_loss, a, t * 2 - 1)


@differentiates("losses", lambda: [torch.randn(6, 5), torch.tensor([0, 1, 2, 3, 4, 1]), torch.rand(5)], wanted=[0])
def many_classes(a: Tensor, t: Tensor, w: Tensor) -> list[Tensor]:
    found = (
        each(F.nll_loss, a.log_softmax(1), t)
        + each(F.nll_loss, a.log_softmax(1), t, weight=w, ignore_index=1)
        + each(F.cross_entropy, a, t)
    )
    found += (
        each(F.cross_entropy, a, t, weight=w, label_smoothing=0.1)
        + each(F.cross_entropy, a, a.flip(1).softmax(1))
        + each(F.cross_entropy, a, t, ignore_index=0)
    )
    return found + each(F.multi_margin_loss, a, t) + each(F.nll_loss, a.view(1, 5, 2, 3).log_softmax(1), t.view(1, 2, 3))


@differentiates("losses", lambda: [torch.randn(3, 4), torch.full((3,), 2)], wanted=[0])
def every_class_is_left_out(a: Tensor, t: Tensor) -> list[Tensor]:
    """A mean over nothing, which is not a number."""
    return each(F.cross_entropy, a, t, ignore_index=2) + each(F.nll_loss, a.log_softmax(1), t, ignore_index=2)


@differentiates("losses", lambda: [torch.randn(3, 4), torch.randn(3, 4)])
def distributions(a: Tensor, b: Tensor) -> list[Tensor]:
    found = each(F.kl_div, a.log_softmax(1), b.softmax(1)) + [
        F.kl_div(a.log_softmax(1), b.log_softmax(1), reduction="batchmean", log_target=True)
    ]
    return found + each(F.poisson_nll_loss, a, b.exp()) + each(F.poisson_nll_loss, a.exp(), b.exp(), log_input=False, full=True)


@differentiates("losses", lambda: [torch.randn(3, 4), torch.randn(3, 4), torch.randn(3, 4)])
def ranks_and_triplets(a: Tensor, b: Tensor, c: Tensor) -> list[Tensor]:
    y = torch.tensor([1.0, -1.0, 1.0])
    found = (
        each(F.margin_ranking_loss, a.sum(1), b.sum(1), y, margin=0.1)
        + each(F.triplet_margin_loss, a, b, c)
        + each(F.cosine_embedding_loss, a, b, y)
    )
    return found + [
        F.pairwise_distance(a, b),
        F.cosine_similarity(a, c),
        torch.cdist(a, b),
        F.multilabel_margin_loss(a, torch.tensor([[0, 2, -1, 1]] * 3)),
    ]


@differentiates(
    "losses", lambda: [torch.randn(6, 2, 5), torch.tensor([[1, 2, 2], [3, 4, 0]]).clamp(min=1)], mode="real", wanted=[0]
)
def ctc(a: Tensor, t: Tensor) -> list[Tensor]:
    """Fake tensors cannot trace it: sizes depend on data."""
    log = a.log_softmax(2)
    lengths = ([6, 5], [3, 2])
    return (
        each(F.ctc_loss, log, t, *lengths)
        + each(F.ctc_loss, log, t, *lengths, zero_infinity=True)
        + [F.ctc_loss(log, t, (2, 6), (3, 3), zero_infinity=True)]
    )


@differentiates("losses", lambda: [torch.randn(8, 4), torch.randn(6, 4), torch.arange(8) % 6])
def chunked_cross_entropy(h: Tensor, w: Tensor, t: Tensor) -> list[Tensor]:
    return [F.cross_entropy(part @ w.t(), target, reduction="sum") / 8 for part, target in zip(h.chunk(4), t.chunk(4))]


# ---- draws


@traces("draws", lambda: [torch.randn(3, 4)])
def the_same_draw_twice(a: Tensor) -> tuple:
    return (
        torch.rand_like(a),
        torch.rand_like(a),
        torch.randn(3, 4),
        torch.randn(3, 4),
        torch.bernoulli(a.sigmoid()),
        torch.bernoulli(a.sigmoid()),
        torch.randint(0, 9, (4,)),
        torch.randperm(5),
        torch.normal(0.0, 1.0, (2, 2)),
    )


@traces("draws", lambda: [torch.randn(3, 4)])
def draws_that_nobody_reads(a: Tensor) -> tuple:
    torch.rand(5)
    F.dropout(a, 0.3, True)
    b = a.clone()
    b.normal_()
    c = F.dropout(a, 0.0, True) + F.dropout(a, 1.0, True)
    torch.empty(0).uniform_()
    return c, torch.rand(2), F.dropout(a, 0.3, False), torch.multinomial(a.softmax(1), 2), F.rrelu(a, training=True)


@differentiates("draws", lambda: [torch.randn(4, 4), torch.randn(4, 4)])
def dropout_with_gradients(a: Tensor, w: Tensor) -> tuple:
    h = F.dropout(a @ w, 0.4, True)
    h = F.gelu(h)
    h = F.alpha_dropout(h @ w, 0.2, True)
    return (
        F.dropout(h, 0.5, True).sin(),
        F.dropout1d(h[None], 0.5, True),
        F.gumbel_softmax(h, hard=True),
        F.feature_alpha_dropout(h, 0.5, True),
    )


@traces("draws", lambda: [torch.randn(3, 4)])
def draws_in_place(a: Tensor) -> tuple:
    a.bernoulli_(0.5)
    first = a.sum()
    a.t()[0].uniform_()
    second = a.sum()
    b = torch.empty(3, 4).exponential_().log_normal_()
    return (
        first,
        second,
        b,
        a.sum(),
        torch.empty(4).geometric_(0.5),
        torch.empty(4).cauchy_().clamp(-1, 1),
        torch.empty(3).random_(10),
    )


@traces("draws", lambda: [torch.randn(4, 4), torch.randn(4, 4, requires_grad=True)], by=compiled, which="joint")
def joint_graph_with_dropout(a: Tensor, w: Tensor) -> Tensor:
    return F.dropout(F.relu(F.dropout(a, 0.5) @ w), 0.5) * torch.rand_like(a)


@traces("draws", lambda: [torch.randn(3, 4)])
def seeds_within_the_graph(a: Tensor) -> tuple:
    return (
        torch.rand(3) + aten.rand.default([3]),
        aten.randn.default([2, 2]),
        aten.native_dropout(a, 0.5, True),
        aten.native_dropout(a, 0.5, True)[0],
        aten.rand_like(a) * 0,
        aten.randint.low(2, 5, [3]),
    )
