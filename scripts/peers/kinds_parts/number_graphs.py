"""Graphs of numbers: mixed types, integers, low precision, NaN and ties."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kinds_parts.tracing import Traced, differentiates, gradients, graph, traced, traces

NAN, INF = float("nan"), float("inf")


def odd_numbers() -> Tensor:
    return torch.tensor([[0.0, -0.0, NAN, INF], [-INF, 1.0, 1.0, -1.0], [2.5, NAN, 2.5, 1e-40]])


# ---- types


@traces("types", lambda: [torch.randn(3, 4), torch.arange(4), torch.tensor([True, False, True, False]), torch.randn(4).double()])
def mixed_sums(a: Tensor, i: Tensor, b: Tensor, d: Tensor) -> tuple:
    return a + i, i + 1, i + 1.0, b + i, b * True, a * d, torch.add(i, b, alpha=2), i / 2, i // 2, a + 1, a + 1.0, b + 1


@traces("types", lambda: [torch.randn(4), torch.tensor(2.0, dtype=torch.float64), torch.randn(4).half()])
def zero_dimensional_operands(a: Tensor, s: Tensor, half: Tensor) -> tuple:
    return (
        half * s,
        half * a,
        s + half.sum(),
        torch.where(a > 0, s, half),
        torch.where(a > 0, 1.0, 0),
        torch.cat([a, half, s[None]]),
    )


@traces("types", lambda: [torch.randn(3, 4) * 1e3, torch.arange(250, 258)])
def round_trips_of_types(a: Tensor, i: Tensor) -> tuple:
    return (
        a.bfloat16().float() + a.float(), a.double().float() * a, i.float().long() + i, a.to(torch.int32).to(torch.float32), i.int().long(),
        a.bool().float(), a.view(torch.int32).view(torch.float32), a.to(torch.complex64).real, i.to(torch.int8).to(torch.int64),
    )  # fmt: skip


@traces("types", lambda: [torch.randn(33), torch.arange(1, 9, dtype=torch.int8)])
def sums_that_name_a_type(a: Tensor, i: Tensor) -> tuple:
    h = a.bfloat16()
    return (
        h.sum(),
        h.sum(dtype=torch.float32),
        h.float().sum(),
        i.sum(),
        i.sum(dtype=torch.int32),
        i.prod(),
        h.mean(),
        i.float().mean(),
        h.cumsum(0),
        h.cumsum(0, dtype=torch.float64),
    )


@differentiates("types", lambda: [torch.randn(3, 4), torch.randn(4).bfloat16(), torch.randn(3, 1).double()])
def gradients_of_mixed_types(a: Tensor, h: Tensor, d: Tensor) -> Tensor:
    return (a * h + a * h).double() * d + (a.double() * d).float()


# ---- integers


@traces("integers", lambda: [torch.tensor([127, -128, 7, -7], dtype=torch.int8), torch.tensor([3, -3, 2, 2], dtype=torch.int8)])
def wrapped_and_divided(a: Tensor, b: Tensor) -> tuple:
    return (
        a + b,
        a * b,
        a // b,
        a % b,
        torch.remainder(a, b),
        torch.fmod(a, b),
        torch.div(a, b, rounding_mode="trunc"),
        a - b,
        -a,
        a.abs(),
        a << 1,
        a >> 1,
        a & b,
        a ^ b,
        ~a,
        a / b,
        torch.gcd(a, b),
    )


@traces("integers", lambda: [torch.tensor([2**53 + 1, 2**31, -(2**62), 2**24 + 1])])
def large_numbers(a: Tensor) -> tuple:
    return (
        a + 1,
        a + 1.0,
        a.float(),
        a.double().long(),
        a * 2,
        a.sum(),
        a == a.float(),
        a.clamp(max=2**53),
        a.to(torch.int32),
        a.bitwise_and(2**40),
        torch.full((2,), 2**62),
        a // 3,
    )


@traces("integers", lambda: [torch.tensor([0, 1, 200, 255], dtype=torch.uint8), torch.tensor([True, False, True, True])])
def bytes_and_bools(u: Tensor, b: Tensor) -> tuple:
    return (
        u + u,
        u - 1,
        u * 3,
        b.sum(),
        b.cumsum(0),
        b | ~b,
        u.sum(),
        u.float().mean(),
        u > 3,
        torch.logical_xor(b, u > 9),
        u.view(torch.int8),
        b.view(torch.uint8),
        b.to(torch.uint8).bool(),
        u.bitwise_left_shift(1),
    )


@traces("integers", lambda: [torch.tensor([0, 5, 2, 2])])
def ranges_and_counts(i: Tensor) -> tuple:
    return (
        torch.arange(5),
        torch.arange(5),
        torch.arange(0, 5, 2) + i[:3],
        torch.linspace(0, 1, 5),
        torch.arange(5.0),
        torch.arange(0, 5, dtype=torch.int32),
        torch.bincount(i, minlength=6),
        torch.bucketize(i, torch.tensor([1, 3])),
        F.one_hot(i, 6),
        torch.searchsorted(torch.tensor([1, 2, 4]), i),
        torch.cumprod(i, 0),
        i.diff(),
    )


# ---- low precision


@traces("low precision", lambda: [torch.randn(4, 8).bfloat16(), torch.randn(4, 8).bfloat16()])
def half_sums(a: Tensor, b: Tensor) -> tuple:
    return (
        a + b,
        (a.float() + b.float()).bfloat16(),
        a * b,
        a @ b.t(),
        (a.float() @ b.t().float()).bfloat16(),
        a.softmax(1),
        a.float().softmax(1).bfloat16(),
        a.exp(),
        a.sum(1),
        a.norm(),
    )


@traces("low precision", lambda: [torch.tensor([6e4, 300.0, 1e-7, -6e4]).half()])
def overflow_of_half(a: Tensor) -> tuple:
    return (
        a * a,
        a.float() * a.float(),
        (a * 4).half() / 4,
        a.sum(),
        a.double().sum().half(),
        a.to(torch.bfloat16).half(),
        a.half() + 1e-4,
    )


@traces("low precision", lambda: [torch.randn(4, 4) * 10])
def eight_bit_floats(a: Tensor) -> tuple:
    e, f = a.to(torch.float8_e4m3fn), a.to(torch.float8_e5m2)
    return (
        e.float(),
        f.float(),
        e.float() + a,
        e.view(torch.uint8),
        e.float().to(torch.float8_e4m3fn).float(),
        f.view(torch.int8).view(torch.float8_e5m2).float(),
        e,
    )


@graph("low precision")
def autocast_step() -> Traced:
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8), nn.LayerNorm(8))

    def loss(out: Tensor) -> Tensor:
        return out.float().pow(2).mean()

    names, parameters = zip(*model.named_parameters())

    def step(*given: Tensor) -> list[Tensor]:
        own = [value.detach().requires_grad_() for value in given[:-1]]
        with torch.autocast("cpu", torch.bfloat16):
            out = torch.func.functional_call(model, dict(zip(names, own)), given[-1])
        return [loss(out).detach(), *gradients(loss(out), own)]

    return traced(step, *(value.detach() for value in parameters), torch.randn(4, 8), told={"kind": "forward_loss_backward"})


@differentiates("low precision", lambda: [torch.randn(4, 4)])
def fake_quantization(a: Tensor) -> tuple:
    q = torch.fake_quantize_per_tensor_affine
    return (
        q(a, 0.1, 0, -8, 7),
        q(a, 0.1, 0, -8, 7) * 2,
        (a / 0.1).round().clamp(-8, 7) * 0.1,
        torch.fake_quantize_per_channel_affine(a, torch.full((4,), 0.1), torch.zeros(4), 0, -8, 7),
    )


# ---- NaN and ties


@traces("NaN and ties", lambda: [odd_numbers()])
def extremes_of_odd_numbers(a: Tensor) -> tuple:
    return (
        a.max(),
        a.min(1),
        a.amax(0),
        a.argmax(1),
        a.max(1),
        torch.fmax(a, a.flip(0)),
        torch.maximum(a, a.flip(0)),
        a.clamp(-1, 1),
        a.nan_to_num(),
        a.isnan(),
        a.aminmax(dim=0),
        a.median(1),
        a.nanmedian(),
        a.mode(1),
        a.kthvalue(2, 1),
    )


@traces("NaN and ties", lambda: [odd_numbers()])
def zeros_of_both_signs(a: Tensor) -> tuple:
    return (
        a * 0.0,
        a * -0.0,
        a + 0.0,
        a - 0.0,
        -a,
        a.neg().neg(),
        1.0 / a,
        a / -1.0,
        torch.full((2,), 0.0),
        torch.full((2,), -0.0),
        a.sign(),
        a.signbit(),
        torch.copysign(torch.ones(4), a),
        a == a,
        a * 1.0,
        a**1,
    )


@differentiates("NaN and ties", lambda: [torch.tensor([[1.0, 1.0, 0.0, 0.0], [0.0, 1.0, 1.0, 0.5]])])
def gradients_at_ties(a: Tensor) -> tuple:
    return (
        a.max(),
        a.amax(1),
        a.max(1).values,
        a.relu(),
        a.abs(),
        torch.maximum(a, a.flip(0)),
        a.clamp(0.0, 1.0),
        a.sort(1).values,
        a.median(),
        F.max_pool1d(a, 2),
        a.cummax(1).values,
        a.norm(),
    )


@traces("NaN and ties", lambda: [odd_numbers(), odd_numbers().flip(1)])
def comparisons_and_where(a: Tensor, b: Tensor) -> tuple:
    return (
        a == b,
        a != b,
        a < b,
        ~(a >= b),
        torch.where(a == a, a, b),
        torch.where(a.isnan(), 0.0, a),
        a.isclose(b),
        a.eq(b).all(),
        (a - a),
        (a / a),
        a.logsumexp(1),
        a.softmax(1),
        a.nansum(0),
    )
