"""Graphs with shared memory: writes through views, strides, aliased outputs, constants."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from kinds_parts.tracing import Traced, compiled, differentiates, exported, exported_module, graph, traced, traces

aten = torch.ops.aten


# ---- writes through views


@traces("view writes", lambda: [torch.randn(3, 4)])
def read_before_and_after(a: Tensor) -> tuple:
    base = a * 1.0
    first, row = base.sin(), base[1]
    row.mul_(2.0)
    second = base.sin()
    base.t()[0].add_(1.0)
    return first, second, base.sin(), row + 0.0


@traces("view writes", lambda: [torch.randn(4, 4), torch.randn(4, 4)])
def writes_into_inputs(a: Tensor, b: Tensor) -> tuple:
    a.view(-1)[::2].copy_(b.view(-1)[::2])
    c = a + b
    b.diagonal().zero_()
    d = a + b
    a.narrow(0, 1, 2).t().fill_(3.0)
    return c, d, a + b


@graph("view writes")
def inputs_of_one_storage() -> Traced:
    storage = torch.randn(12)

    def written(a: Tensor, b: Tensor) -> tuple:
        first = a * 2.0
        b.add_(1.0)
        second = a * 2.0
        a[0].zero_()
        return first, second, b * 2.0

    return traced(written, storage.view(3, 4), storage[2:8])


@traces("view writes", lambda: [torch.randn(12)])
def chain_of_views(a: Tensor) -> tuple:
    base = a.clone()
    view = base.view(2, 6).unsqueeze(0).squeeze(0).t().t().view(3, 4)
    same = base.view(3, 4)
    same[0] = 7.0
    total = view.sum()
    view.transpose(0, 1)[1].exp_()
    return total, base.sum(), view.clone(), same.unbind(0)[2].neg()


@traces("view writes", lambda: [torch.randn(4, 4), torch.randn(4, 4)], by=compiled, which="inference")
def functionalized_writes(a: Tensor, b: Tensor) -> Tensor:
    a[1:].mul_(b[1:])
    b.t()[0].add_(a.sum())
    return a @ b


@traces("view writes", lambda: [torch.randn(3, 4, 2)])
def real_and_imaginary_parts(a: Tensor) -> tuple:
    c = torch.view_as_complex(a.clone())
    before = c.abs()
    c.real.mul_(2.0)
    torch.view_as_real(c)[..., 1].neg_()
    return before, c.abs(), c.conj().resolve_conj(), c.conj().imag.clone()


# ---- strides


@traces("strides", lambda: [torch.randn(8)])
def overlapping_windows(a: Tensor) -> tuple:
    seen = a.as_strided((5, 4), (1, 1))
    return seen.sum(1), seen * 2.0, a.as_strided((5, 4), (1, 1)).sum(1), seen.unfold(0, 2, 1).sum(-1), seen.contiguous()


@traces("strides", lambda: [torch.randn(8)])
def write_seen_by_an_overlap(a: Tensor) -> tuple:
    base = a * 1.0
    seen = base.as_strided((3, 4), (2, 1))
    before = seen.sum(1)
    base[2:4].fill_(5.0)
    between = seen.sum(1)
    base.as_strided((2, 2), (4, 1), 1).zero_()
    return before, between, seen.sum(1)


@traces("strides", lambda: [torch.randn(3, 4), torch.randn(1, 4)])
def expanded_operands(a: Tensor, b: Tensor) -> tuple:
    wide = b.expand(3, 4)
    return (
        a + wide,
        wide.t() + a.t(),
        wide.contiguous(),
        wide.reshape(-1),
        wide.clone(),
        torch.empty_like(wide).fill_(1.0),
        wide.flip(0),
        wide + 0.0,
    )


@differentiates("strides", lambda: [torch.randn(3, 4)])
def gradient_of_as_strided(a: Tensor) -> tuple:
    return a.as_strided((3, 3), (1, 1)).pow(2), a.t().as_strided((2, 2), (4, 1), 1).sin(), a.unfold(1, 2, 1)


@traces("strides", lambda: [torch.randn(3, 2).t(), torch.randn(2, 6)[:, ::2], torch.randn(4).expand(2, 4)])
def strides_of_inputs_that_are_not_dense(a: Tensor, b: Tensor, c: Tensor) -> tuple:
    return (
        a + b,
        a.contiguous() + b.contiguous(),
        torch.empty_like(a).copy_(b),
        c * 2.0,
        c.reshape(-1),
        a.t().contiguous().t(),
        a.view(6) if a.is_contiguous() else a.reshape(6),
    )


@traces("strides", lambda: [torch.randn(2, 3, 4)])
def swapped_and_moved(a: Tensor) -> tuple:
    return (
        a.permute(2, 0, 1).permute(1, 2, 0) + a,
        a.movedim(0, -1).movedim(-1, 0),
        a.transpose(0, 2).contiguous().transpose(0, 2),
        a.permute(2, 0, 1).reshape(4, -1),
        a.mT.mT,
        a.swapdims(0, 1).flatten(1),
    )


# ---- outputs that alias


@traces("aliases", lambda: [torch.randn(3, 4), torch.randn(3, 4)])
def inputs_and_views_are_returned(a: Tensor, b: Tensor) -> tuple:
    return (a, a.view(-1), a.t(), b, b[0], a.detach(), aten.alias(a), a + b, a)


@traces("aliases", lambda: [torch.randn(3, 4)])
def equal_results_are_not_one(a: Tensor) -> tuple:
    return (
        a.sin(),
        a.sin(),
        a.sin().view(-1),
        a.clone(),
        a.clone(),
        torch.zeros(3),
        torch.zeros(3),
        a.sin().add_(1.0),
        a.contiguous(),
        a.to(torch.float32),
    )


@traces("aliases", lambda: [torch.randn(3, 4)])
def one_result_many_times(a: Tensor) -> tuple:
    h = a.exp()
    return h, h, h.view(-1), h.view(3, 4), h.t().t(), h[:], h.split(1)[0], h.chunk(2, 1), h.detach(), aten.alias(h)


@traces("aliases", lambda: [torch.randn(3, 4), torch.randn(3, 4)])
def written_inputs_are_returned(a: Tensor, b: Tensor) -> tuple:
    c = a.add_(1.0)
    d = b.t_()
    return c, a, a.view(-1), d, b * 2.0


@traces("aliases", lambda: [torch.randn(3, 4, requires_grad=True), torch.randn(3, 4)], by=compiled, which="forward")
def compiled_aliases(a: Tensor, b: Tensor) -> tuple:
    h = (a * b).sin()
    return h, h.view(-1), a.view(-1), h, a, h[0]


@traces("aliases", lambda: [torch.randn(3, 4)])
def expanded_results(a: Tensor) -> tuple:
    s = a.sum()
    return (
        s.expand(3),
        s,
        s.expand(3).clone(),
        a.real,
        a.expand(2, 3, 4),
        torch.broadcast_tensors(a, s)[1],
        a.unfold(1, 2, 1),
        a.view_as(a),
        a.reshape(3, 4),
    )


# ---- constants and attributes


class Constants(nn.Module):
    """Reads parameters, buffers and plain tensors; writes one buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 4))
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))
        self.register_buffer("average", torch.zeros(4))
        self.register_buffer("mask", torch.ones(4, 4).tril(), persistent=False)
        self.table = torch.arange(8.0).view(2, 4)

    def forward(self, x: Tensor) -> tuple:
        self.count.add_(1)
        self.average.mul_(0.9).add_(x.mean(0) * 0.1)
        return (
            x @ (self.weight * self.mask) + self.average,
            x[:2] + self.table,
            self.count * 2,
            torch.tensor([1.0, 2.0]),
            self.table[0],
        )


@graph("constants")
def attributes_of_a_module() -> Traced:
    return exported_module(Constants().requires_grad_(False), torch.randn(3, 4))


@graph("constants")
def constants_as_inputs() -> Traced:
    return exported(Constants(), torch.randn(3, 4))


@graph("constants")
def tensors_of_the_function() -> Traced:
    held, same = torch.randn(4), torch.arange(4.0)

    def reads(a: Tensor) -> tuple:
        made = torch.tensor([1.0, 2.0, 3.0, 4.0])
        again = torch.tensor([1.0, 2.0, 3.0, 4.0])
        return a + held, a * same, made + a, again, made, held * same, torch.scalar_tensor(2.0) * a, a.new_tensor([1.0, 2.0])

    return traced(reads, torch.randn(3, 4))


@traces("constants", lambda: [torch.randn(3, 4)])
def tensors_made_and_written(a: Tensor) -> tuple:
    zeros, other = torch.zeros(3, 4), torch.zeros(3, 4)
    zeros.add_(a)
    other[0] = a[0]
    third = torch.zeros(3, 4)
    return (
        zeros,
        other,
        third,
        torch.ones_like(a),
        torch.ones_like(a).mul_(2.0),
        torch.eye(3),
        torch.full_like(a, 2),
        torch.empty(3).fill_(1.0),
        a.new_zeros(2),
        a.new_full((2,), 1),
    )


@graph("constants")
def dynamo_keeps_methods() -> Traced:
    model = Constants().requires_grad_(False)
    return compiled(
        lambda x: (model(x)[0].view(-1), model.weight.t() @ x.t(), x[0], x[..., 1:]), torch.randn(4, 4), which="dynamo"
    )
