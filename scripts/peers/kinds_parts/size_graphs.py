"""Graphs whose sizes are symbols, known only at run time, or zero."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kinds_parts.tracing import Traced, compiled, differentiates, exported, graph, traces


# ---- sizes of zero


@traces("zero sizes", lambda: [torch.randn(0, 3), torch.randn(2, 3)])
def sums_of_nothing(a: Tensor, b: Tensor) -> tuple:
    return (
        a.sum(),
        a.sum(0),
        a.sum(1),
        a.prod(),
        a.mean(),
        a @ a.t(),
        a.t() @ a,
        torch.cat([a, b]),
        a + 1.0,
        a.view(3, 0),
        a.all(),
        a.any(),
        a.std(1),
    )


@traces("zero sizes", lambda: [torch.randn(3, 2), torch.randn(0, 2)])
def writes_into_nothing(a: Tensor, b: Tensor) -> tuple:
    a[:0].fill_(2.0)
    b.add_(1.0)
    b.view(0, 2).copy_(a[:0])
    return (
        a[:0],
        a[:0],
        b,
        a * 2.0,
        a.narrow(0, 3, 0),
        a.split([0, 3])[0],
        a.index_select(0, torch.tensor([], dtype=torch.int64)),
    )


@differentiates("zero sizes", lambda: [torch.randn(0, 4), torch.randn(3, 4), torch.randn(3)])
def gradients_of_nothing(a: Tensor, w: Tensor, b: Tensor) -> tuple:
    return (F.linear(a, w, b), a.sin() @ w.t(), F.layer_norm(a, (4,)), a.softmax(0))


@traces("zero sizes", lambda: [torch.randn(0, 3, 5, 5), torch.randn(2, 3, 3, 3)])
def empty_batch_of_a_convolution(x: Tensor, w: Tensor) -> tuple:
    return F.conv2d(x, w), F.relu(F.conv2d(x, w)), F.pad(x, (1, 1)), x.flatten(1), F.avg_pool2d(x, 2)


@traces("zero sizes", lambda: [torch.randn(3, 4)])
def nothing_is_returned_twice(a: Tensor) -> tuple:
    e = torch.empty(0, 4)
    return (
        e,
        e.view(4, 0),
        torch.zeros(0, 4),
        a[3:],
        a[3:].clone(),
        torch.zeros(0),
        torch.zeros(0).sum() + a.sum(),
        torch.arange(0),
    )


# ---- symbolic sizes


@traces("symbolic sizes", lambda: [torch.randn(6, 5), torch.randn(3, 5)], mode="symbolic")
def sizes_are_computed_with(a: Tensor, b: Tensor) -> tuple:
    n, m = a.shape
    return (
        a.view(n * m),
        a.reshape(m, n),
        a.sum() / n,
        torch.zeros(n, m + 1),
        torch.arange(n),
        a.expand(2, n, m),
        torch.cat([a, b]),
        a.new_ones(n // 2, 3),
        a.view(n, m),
        a[: n - 1],
        torch.full((n,), m),
    )


@differentiates("symbolic sizes", lambda: [torch.randn(4, 3), torch.randn(3, 6)], mode="symbolic")
def gradients_of_symbolic_sizes(a: Tensor, w: Tensor) -> tuple:
    h = F.layer_norm(a @ w, (w.shape[1],))
    return (
        h.view(-1, 2).sin(),
        h.mean(0),
        h.view(a.shape[0], -1) * a.shape[0],
        F.softmax(h.reshape(h.shape), -1),
        h.split(a.shape[0] // 2)[0],
    )


@traces("symbolic sizes", lambda: [torch.randn(4, 6), torch.randn(3)], mode="symbolic")
def writes_of_symbolic_sizes(a: Tensor, b: Tensor) -> tuple:
    first = a.sum(1)
    a[1:].mul_(2.0)
    a.narrow(1, 0, b.shape[0]).add_(b)
    second = a.sum(1)
    c = a.clone().view(-1)
    c[: a.shape[0]].zero_()
    return first, second, a.sum(1), c, torch.as_strided(a, (a.shape[0],), (a.shape[1],))


@graph("symbolic sizes")
def exported_with_a_dynamic_batch() -> Traced:
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2), nn.Softmax(-1))
    return exported(model, torch.randn(5, 4), dynamic=({0: torch.export.Dim("batch", min=2, max=64)},))


@traces(
    "symbolic sizes", lambda: [torch.randn(5, 3), torch.randn(3, 4, requires_grad=True)], by=compiled, which="joint", dynamic=True
)
def dynamic_joint_graph(a: Tensor, w: Tensor) -> tuple:
    h = (a @ w).view(-1).sin()
    return (h.view(a.shape[0], -1) * a.shape[0]).exp(), h.sum()


@traces(
    "symbolic sizes",
    lambda: [torch.randn(3, 2, 7, 5), torch.randn(4, 2, 3, 3, requires_grad=True)],
    by=compiled,
    which="backward",
    dynamic=True,
)
def dynamic_backward(a: Tensor, w: Tensor) -> Tensor:
    return F.gelu(F.conv2d(a, w, padding=1)).flatten(1).sum(0)


# ---- sizes known only at run time


@traces("run-time sizes", lambda: [torch.randn(3, 4)], mode="symbolic")
def found_places(a: Tensor) -> tuple:
    places = a.nonzero()
    chosen = a[a > 0]
    return (
        places,
        chosen * 2.0,
        chosen.sum(),
        a.masked_select(a < 0),
        a.nonzero().shape[0] * a,
        torch.cat([chosen, chosen]),
        places.sum(0),
    )


@traces("run-time sizes", lambda: [torch.tensor([3, 1, 3, 2, 2, 1])], mode="symbolic")
def unique_values(i: Tensor) -> tuple:
    values, inverse, counts = torch.unique(i, return_inverse=True, return_counts=True)
    return (
        values,
        inverse,
        counts,
        torch.unique_consecutive(i),
        values[inverse],
        torch.zeros(values.shape[0]).index_add(0, inverse, torch.ones(6)),
        values + 1,
    )


@traces("run-time sizes", lambda: [torch.randn(4, 3), torch.tensor(3)], mode="symbolic")
def numbers_read_from_tensors(a: Tensor, n: Tensor) -> tuple:
    size = n.item()
    torch._check(size >= 2)
    torch._check(size <= 4)
    return (
        torch.zeros(size),
        torch.zeros(size) + 1.0,
        a * size,
        torch.arange(size),
        a.sum().item() + 1.0,
        torch.full((size, 2), 1.5).sum(),
    )


@traces("run-time sizes", lambda: [torch.randn(3, 4), torch.tensor([2, 0, 3])], mode="symbolic")
def repeated_by_counts(a: Tensor, counts: Tensor) -> tuple:
    many = a.repeat_interleave(counts, 0)
    return many, many.sum(0), many.sin() * many.cos(), torch.repeat_interleave(counts), a.repeat_interleave(2, 0)


@differentiates(
    "run-time sizes", lambda: [torch.randn(6, 4), torch.randn(3, 4, 4), torch.randn(4, 3)], mode="symbolic", wanted=[0, 1]
)
def experts_by_tokens(x: Tensor, w: Tensor, gate: Tensor) -> Tensor:
    """Tokens of each expert; their number depends on the data."""
    chosen = (x @ gate).argmax(1)
    out = torch.zeros_like(x)
    for expert in range(3):
        places = (chosen == expert).nonzero().squeeze(1)
        out = out.index_add(0, places, torch.tanh(x[places] @ w[expert]))
    return out


@traces("run-time sizes", lambda: [torch.randn(3, 4)], by=exported, decomposed=True)
def exported_run_time_sizes(a: Tensor) -> tuple:
    return (a[a > 0].sin(), a.nonzero(), a[a > 0].sin().sum())
