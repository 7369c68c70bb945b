"""Graphs that move and order elements: indexes, folds, sorts, scans."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from kinds_parts.tracing import differentiates, traces

aten = torch.ops.aten
NAN, INF = float("nan"), float("inf")


# ---- index and scatter


@traces("index", lambda: [torch.randn(3, 4), torch.tensor([[0, 1, 1], [2, 3, 0], [1, 1, 1]]), torch.randn(3, 3)])
def gathered_and_scattered(a: Tensor, i: Tensor, s: Tensor) -> tuple:
    return (
        a.gather(1, i), a.scatter(1, i, s), a.scatter_add(1, i, s), a.scatter_reduce(1, i, s, "amax"), a.scatter_reduce(1, i, s, "mean", include_self=False),
        a.gather(1, i) + a.gather(1, i), a.scatter(1, i, 2.0), a.scatter(1, i, s, reduce="multiply"),
    )  # fmt: skip


@traces("index", lambda: [torch.randn(4, 4), torch.tensor([0, 2, 2]), torch.randn(3, 4), torch.eye(4).bool()])
def index_put_in_place(a: Tensor, i: Tensor, v: Tensor, m: Tensor) -> tuple:
    first = a[i]
    a.index_put_((i,), v, accumulate=True)
    second = a[i]
    a[i, 0] = 5.0
    a[m] = -1.0
    return first, second, a[i], a[:, i], a[None, i, ..., 1], a[i.unsqueeze(1), i]


@differentiates("index", lambda: [torch.randn(3, 3), torch.randn(3, 3)])
def gradients_of_indexes(a: Tensor, v: Tensor) -> tuple:
    i = torch.tensor([1, 1, 0])
    return (
        a[i].sin(),
        a.index_select(1, i) * v,
        a.gather(0, i[None].expand(3, 3)),
        a.index_add(0, i, v),
        a.index_copy(0, torch.tensor([2, 0, 1]), v),
        torch.take(a, i),
        a.take_along_dim(i[:, None], 1),
    )


@traces("index", lambda: [torch.randn(4, 4), torch.randn(4, 4)])
def scatters_of_parts(a: Tensor, b: Tensor) -> tuple:
    return (
        a.slice_scatter(b[:2], 0, 1, 3), a.select_scatter(b[0], 0, 2), a.diagonal_scatter(b.diagonal()), torch.as_strided_scatter(a, b[0], (4,), (5,)),
        a.index_fill(1, torch.tensor([0, 3]), 9.0), a.masked_scatter(a > 0, b), a.masked_fill(b > 0, -INF), torch.index_reduce(a, 0, torch.tensor([0, 0, 1]), b[:3], "prod"),
    )  # fmt: skip


@traces("index", lambda: [torch.randn(3, 4)])
def negative_and_repeated_indexes(a: Tensor) -> tuple:
    i = torch.tensor([-1, 0, -1])
    b = a.clone()
    b[i] = torch.arange(12.0).view(3, 4)
    return (
        a[i],
        a[-1],
        a[..., -2:],
        a[::2, 1::2],
        a[[0, -1], [1, -1]],
        b,
        torch.bincount(torch.tensor([0, 1, 1, 3])),
        a.roll(-1, 0),
        a.flip(0)[i],
    )


# ---- folds


@traces("folds", lambda: [torch.randn(2, 3, 5, 5)])
def unfold_and_fold(x: Tensor) -> tuple:
    columns = F.unfold(x, 3, padding=1)
    return (
        columns,
        F.fold(columns, (5, 5), 3, padding=1),
        F.unfold(x, 3, padding=1).sum(),
        aten.col2im(columns, [5, 5], [3, 3], [1, 1], [1, 1], [1, 1]),
        aten.im2col(x, [2, 2], [2, 1], [0, 0], [2, 2]),
    )


@differentiates("folds", lambda: [torch.randn(1, 2, 6, 6)])
def gradients_of_folds(x: Tensor) -> tuple:
    return (
        F.unfold(x, 2, stride=2).sin(),
        F.fold(F.unfold(x, 2, dilation=2), (6, 6), 2, dilation=2),
        x.unfold(2, 3, 2).unfold(3, 2, 2),
    )


@differentiates("folds", lambda: [torch.randn(2, 4, 4, 4)])
def shuffled_pixels(x: Tensor) -> tuple:
    return (
        F.pixel_shuffle(x, 2),
        F.pixel_unshuffle(x, 2),
        F.channel_shuffle(x, 2),
        F.pixel_unshuffle(F.pixel_shuffle(x, 2), 2),
    )


@differentiates("folds", lambda: [torch.randn(1, 2, 6, 6)])
def pooled_and_interpolated(x: Tensor) -> tuple:
    values, places = F.max_pool2d(x, 2, return_indices=True)
    return (
        values, F.max_unpool2d(values, places, 2), F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), F.adaptive_avg_pool2d(x, (3, 2)), F.adaptive_max_pool2d(x, 2),
        F.interpolate(x, scale_factor=2, mode="bilinear"), F.interpolate(x, size=(3, 3), mode="nearest-exact"), F.pad(x, (1, 2, 0, 1), "reflect"), F.pad(x, (1, 1, 0, 1), "circular"), F.lp_pool2d(x, 2, 2),
    )  # fmt: skip


@differentiates("folds", lambda: [torch.randn(1, 2, 5, 5), torch.randn(1, 2, 3)])
def sampled_grids(x: Tensor, theta: Tensor) -> tuple:
    grid = F.affine_grid(theta, [1, 2, 4, 4], align_corners=False)
    return F.grid_sample(x, grid, align_corners=False), F.grid_sample(
        x, grid, mode="nearest", padding_mode="border", align_corners=True
    )


# ---- sorts and scans


@traces("sorts", lambda: [torch.tensor([[1.0, 0.0, 1.0, 0.0], [NAN, 2.0, -0.0, 0.0], [3.0, 3.0, 3.0, 3.0]])])
def sorted_with_ties(a: Tensor) -> tuple:
    values, places = a.sort(1)
    return (
        values,
        places,
        a.sort(dim=1, stable=True),
        a.sort(1, descending=True),
        a.argsort(1),
        a.topk(2, 1),
        a.topk(2, 1, largest=False),
        a.sort(1)[0] + values,
        a.msort(),
        places.argsort(1),
        a.kthvalue(2),
    )


@differentiates("sorts", lambda: [torch.randn(3, 5)])
def gradients_of_sorts(a: Tensor) -> tuple:
    return (
        a.sort(1)[0],
        a.topk(2, 1)[0] * 2,
        a.kthvalue(2, 1)[0],
        a.max(1)[0],
        a.gather(1, a.argsort(1)),
        a.sort(0, descending=True)[0].sin(),
        a.median(1)[0],
    )


@differentiates("sorts", lambda: [torch.randn(3, 4)])
def scans(a: Tensor) -> tuple:
    return (
        a.cumsum(1),
        a.cumprod(1),
        a.logcumsumexp(0),
        a.cummax(1)[0],
        a.cummin(0)[0],
        a.cumsum(0).cumsum(1),
        a.flip(1).cumsum(1).flip(1),
        torch.trapezoid(a),
        a.diff(),
    )


@traces("sorts", lambda: [torch.randn(3, 4)])
def in_place_scans_and_sorts(a: Tensor) -> tuple:
    b = a.clone()
    first = b.cumsum(1)
    b.cumsum_(1)
    values, places = torch.empty(3, 4), torch.empty(3, 4, dtype=torch.int64)
    torch.sort(b, 1, out=(values, places))
    b.cumprod_(0)
    return first, b, values, places, b.cumsum(1), torch.topk(b, 2)[1], b.histc(4), b.sum()
