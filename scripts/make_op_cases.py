#!/usr/bin/env python3
"""Writes tests/cases/ops: calls of the operators that have kernels in fxopt, with PyTorch's results
in float64.

    scripts/make_op_cases.py [--out FOLDER] [--check]

FAMILY.fxg has one graph per call. FAMILY.safetensors has its inputs, its results in float64 and,
for rounded
results, the scale S of their error: an implementation's error may be up to k eps S, with the k of
    the operator's row. Each family has cases for dtypes, layouts (contiguous, transposed, sliced,
    expanded), broadcasting, sizes of 0 and 1, numbers in place of tensors, and special values.

Prints PyTorch's own worst |error| / (eps S) of each operator if above 0.5, for comparison with the
row's k. --check compares with the existing files instead of writing. Needs torch and safetensors.
"""

from __future__ import annotations

import argparse
import copy
import math
import pathlib
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import torch
from safetensors.torch import save
from torch import Tensor

ROOT = pathlib.Path(__file__).resolve().parent.parent
aten = torch.ops.aten
NAMES = {torch.float32: "f32", torch.float64: "f64", torch.bfloat16: "bf16", torch.float16: "f16", torch.int64: "i64", torch.int32: "i32",
         torch.int16: "i16", torch.int8: "i8", torch.uint8: "u8", torch.bool: "b8"}
SPECIAL = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 0.5, 3.0, -2.5, 1e-3, 88.0]
Scale = Callable[[list, Tensor | tuple], Tensor | tuple]


@dataclass
class Case:
    target: torch._ops.OpOverload
    args: list
    scale: Scale | None = None  # takes float64 arguments and results; None: nothing is rounded
    kwargs: dict = field(default_factory=dict)
    results: int = 1  # the number of compared results


generator = torch.Generator().manual_seed(0)


def made(*shape: int | tuple, dtype: torch.dtype = torch.float32, low: float = -2.0, high: float = 2.0) -> Tensor:
    shape = () if shape == ((),) else shape
    if dtype == torch.bool:
        return torch.rand(shape, generator=generator) < 0.5
    if not dtype.is_floating_point:
        low = max(low, 0) if dtype == torch.uint8 else low
        return torch.randint(int(low), int(high) + 1, shape, generator=generator).to(dtype)
    return (torch.rand(shape, generator=generator, dtype=torch.float64) * (high - low) + low).to(dtype)


def layouts(x: Tensor) -> Iterator[Tensor]:
    """Yields the tensor, and tensors of the same sizes with other strides."""
    yield x
    if x.dim() >= 2:
        yield x.mT.contiguous().mT
    if x.dim() >= 1:
        wide = torch.stack([x, x], dim=-1)
        yield wide[..., 0]
        yield x[:1].expand(x.shape)


def special(dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Returns all pairs of special values."""
    values = torch.tensor(SPECIAL, dtype=torch.float64).to(dtype)
    return values.repeat_interleave(len(SPECIAL)), values.repeat(len(SPECIAL))


def size(x: object) -> object:
    return x.double().abs() if isinstance(x, Tensor) else abs(x)


REAL = (torch.float32, torch.float64, torch.bfloat16, torch.float16)


def add_scale(a: list, _: Tensor) -> Tensor:
    alpha = a[2] if len(a) > 2 else 1
    return size(a[0]) + size(alpha) * size(a[1])


def magnitude(_: list, y: Tensor) -> Tensor:
    return y.abs()


def pointwise() -> Iterator[Case]:
    binary = [(aten.add.Tensor, add_scale), (aten.sub.Tensor, add_scale), (aten.mul.Tensor, magnitude)]
    for target, scale in binary:
        for dtype in (*REAL, torch.int64, torch.int32, torch.uint8):
            yield Case(target, [made(3, 5, dtype=dtype), made(3, 5, dtype=dtype)], scale)
        for x in layouts(made(4, 6)):
            yield Case(target, [x, made(4, 6).t().contiguous().t()], scale)
        for other in (made(6), made(4, 1), made(()), made(1, 1), made(4, 6)[:, :1]):
            yield Case(target, [made(4, 6), other], scale)
        yield Case(target, [made(0, 3), made(3)], scale)
        yield Case(target, [made(2, 1, 3, 1, 2), made(1, 2, 1, 2, 1)], scale)
        yield Case(target, list(special(torch.float32)), scale)
        yield Case(target, [made(7), 3], scale)
        yield Case(target, [made(7), 1e-3], scale)
        yield Case(target, [made(7, dtype=torch.bfloat16), 1e-3], scale)
        yield Case(target, [made(7, dtype=torch.int64), 3], scale)
        yield Case(target, [made(2000), made(2000)], scale)
        yield Case(target, [made(7, dtype=torch.int64), made(7)], scale)
        yield Case(target, [made(7, dtype=torch.bool), made(7)], scale) if target is not aten.sub.Tensor else Case(target, [made(3), made(3)], scale)
    for target in (aten.add.Tensor, aten.sub.Tensor):
        yield Case(target, [made(3, 5), made(3, 5)], lambda a, _: size(a[0]) + 2.5 * size(a[1]), {"alpha": 2.5})
        yield Case(target, [made(5, dtype=torch.int64), made(5, dtype=torch.int64)], None, {"alpha": 3})
    yield Case(aten.mul.Scalar, [made(3, 5), 3], magnitude)
    for dtype in (*REAL, torch.int64, torch.int32, torch.bool):
        yield Case(aten.le.Tensor, [made(4, 6, dtype=dtype), made(6, dtype=dtype)])
    yield Case(aten.le.Tensor, list(special(torch.float32)))
    yield Case(aten.le.Tensor, [made(5, dtype=torch.int64), made(5)])
    for dtype in (*REAL, torch.int64):
        yield Case(aten.where.self, [made(4, 6, dtype=torch.bool), made(4, 6, dtype=dtype), made(6, dtype=dtype)])
    yield Case(aten.where.self, [made(2, 1, 4, 4, dtype=torch.bool), made(()), torch.tensor(-3.4028234663852886e38)])
    yield Case(aten.where.self, [made(144, dtype=torch.bool), *special(torch.float32)])
    for dtype in REAL:
        wide = torch.linspace(-12, 12, 500, dtype=torch.float64).to(dtype)
        yield Case(aten.tanh.default, [wide], magnitude)
        yield Case(aten.tanh.default, [torch.tensor([*SPECIAL, 1e-30, 1e-8, 1e-4, 20.0], dtype=torch.float64).to(dtype)], magnitude)
        yield Case(aten.tanh_backward.default, [made(300, dtype=dtype), made(300, dtype=dtype, low=-1, high=1)], lambda a, _: size(a[0]) * (1 + a[1] ** 2))
        for exponent in (0, 1, 2, 3, 4, 0.5, -1, -2, 2.5, -0.5):
            yield Case(aten.pow.Tensor_Scalar, [made(100, dtype=dtype, low=0.01, high=8), exponent], magnitude)
            yield Case(aten.pow.Tensor_Scalar, [torch.tensor(SPECIAL, dtype=torch.float64).to(dtype), exponent], magnitude)
        yield Case(aten.native_dropout_backward.default, [made(40, dtype=dtype), made(40, dtype=torch.bool), 1.25], magnitude)
    for target, scale in ((aten.add_.Tensor, add_scale), (aten.mul_.Tensor, magnitude)):
        yield Case(target, [made(4, 6), made(6)], scale)
        yield Case(target, [made(4, 6).t(), made(6, 4, dtype=torch.bfloat16)], scale)
        yield Case(target, [made(5, dtype=torch.bfloat16), made(5)], scale)
        yield Case(target, [made(5, dtype=torch.int64), 3], scale)
    yield Case(aten.pow.Tensor_Scalar, [made(30, dtype=torch.int64, low=-9, high=9), 3])
    yield Case(aten.tanh.default, [made(4, 6).t()], magnitude)
    yield Case(aten.tanh.default, [made(9, dtype=torch.int64)], magnitude)
    yield Case(aten.tanh.default, [made(0)], magnitude)


def copies() -> Iterator[Case]:
    for source in (*REAL, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool):
        for target in (torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.int32, torch.bool):
            if source != target:
                yield Case(aten._to_copy.default, [made(40, dtype=source, low=0, high=100)], magnitude if target.is_floating_point else None, {"dtype": target})
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        ties = torch.tensor([1 + 2.0**-8, 1 + 3 * 2.0**-8, 1 + 2.0**-11, 1 + 3 * 2.0**-11, 65519, 65520, 1e-7, 6e-8, 3e-8, 1e-40, 3.4e38, *SPECIAL], dtype=torch.float64)
        yield Case(aten._to_copy.default, [ties], magnitude, {"dtype": dtype})
        yield Case(aten._to_copy.default, [ties.float()], magnitude, {"dtype": dtype}) if dtype != torch.float32 else Case(aten.clone.default, [ties])
    for x in layouts(made(4, 6)):
        yield Case(aten.clone.default, [x], None, {"memory_format": torch.contiguous_format})
        yield Case(aten._to_copy.default, [x], magnitude, {"dtype": torch.bfloat16})
    yield Case(aten.clone.default, [made(8, 1, 3, 3).to(memory_format=torch.channels_last)])
    yield Case(aten.clone.default, [made(2, 3, 4, 5).permute(3, 1, 0, 2)], None, {"memory_format": torch.contiguous_format})
    yield Case(aten.clone.default, [made(0, 4)])
    yield Case(aten.clone.default, [made(())])
    yield Case(aten.clone.default, [made(3000)[::2]], None, {"memory_format": torch.contiguous_format})
    for source in (made(6), made(4, 6, dtype=torch.float64), made(4, 6, dtype=torch.int64), made(6, 4).t()):
        yield Case(aten.copy_.default, [made(4, 6), source], magnitude)
    for dim in (0, 1, -1):
        yield Case(aten.cat.default, [[made(2, 3), made(2, 3), made(2, 3)], dim])
    yield Case(aten.cat.default, [[made(2, 3), made(0), made(4, 3)], 0])
    yield Case(aten.cat.default, [[made(2, 3).t(), made(3, 5)], 1])
    yield Case(aten.cat.default, [[made(2, dtype=torch.int64), made(2)], 0])
    yield Case(aten.cat.default, [[made(3, 0), made(3, 2)], 1])
    yield Case(aten.cat.default, [[made(2, 40) for _ in range(36)], 1])
    for start, end, step in ((0, -1, 1), (1, 5, 2), (-3, 1 << 62, 1), (0, 0, 1)):
        grad = made(4, 6)[:, start:end:step]
        yield Case(aten.slice_backward.default, [grad.contiguous(), [4, 6], 1, start, end, step])
    yield Case(aten.zeros.default, [[3, 4]], None, {"dtype": torch.float32})
    yield Case(aten.zeros.default, [[]], None, {"dtype": torch.float32})
    yield Case(aten.ones_like.default, [made(4, 6).t()])
    yield Case(aten.scalar_tensor.default, [-3.4028234663852886e38], magnitude, {"dtype": torch.float32})
    yield Case(aten.arange.default, [1500], None, {"dtype": torch.int64})
    yield Case(aten.arange.default, [0], None, {"dtype": torch.int64})
    yield Case(aten.arange.default, [7], None, {"dtype": torch.float32})


def total(dims: list[int] | None) -> Scale:
    return lambda a, y: a[0].abs().sum(dims or list(range(a[0].dim())), keepdim=y.dim() == a[0].dim() and a[0].dim() > 0)


def reductions() -> Iterator[Case]:
    for dims in ([0], [1], [0, 1], [-1], None):
        for keep in (True, False):
            yield Case(aten.sum.dim_IntList, [made(5, 70), dims, keep], total(dims))
            yield Case(aten.amax.default, [made(5, 70), dims or [], keep])
    for x in layouts(made(6, 40)):
        yield Case(aten.sum.dim_IntList, [x, [1]], total([1]))
        yield Case(aten.sum.dim_IntList, [x, [0], True], total([0]))
    yield Case(aten.sum.dim_IntList, [made(3, 4, 5), [0, 2]], total([0, 2]))
    yield Case(aten.sum.dim_IntList, [made(3, 4, 5).permute(2, 0, 1), [1]], total([1]))
    for count in (0, 1, 31, 32, 33, 1024, 4095, 4096, 4097, 9000):
        yield Case(aten.sum.dim_IntList, [made(count), [0]], total([0]))
    yield Case(aten.sum.dim_IntList, [made(4100, 3), [0]], total([0]))
    for dtype in (torch.float64, torch.bfloat16, torch.float16):
        yield Case(aten.sum.dim_IntList, [made(300, dtype=dtype), [0]], total([0]))
    yield Case(aten.sum.dim_IntList, [torch.ones(5000, dtype=torch.bfloat16), [0]], total([0]))
    yield Case(aten.sum.dim_IntList, [torch.ones(5000, dtype=torch.bool), [0]])
    yield Case(aten.sum.dim_IntList, [made(300, dtype=torch.int32, low=-1000, high=1000), [0]])
    yield Case(aten.sum.dim_IntList, [torch.tensor([1.0, math.inf, -1.0]), [0]], total([0]))
    yield Case(aten.sum.dim_IntList, [torch.tensor([1.0, math.inf, -math.inf]), [0]], total([0]))
    yield Case(aten.sum.dim_IntList, [made(2, 0), [1]], total([1]))
    yield Case(aten.amax.default, [torch.tensor([1.0, math.nan, 3.0]), [0]])
    yield Case(aten.amax.default, [torch.tensor([-math.inf, -math.inf]), [0]])
    yield Case(aten.amax.default, [made(50, dtype=torch.int64, low=-90, high=-10), [0]])


def softmax_scale(dim: int) -> Scale:
    return lambda a, y: y * (1 + a[0].abs().amax(dim, keepdim=True))


def norms() -> Iterator[Case]:
    for shape, dim in (((3, 7), 1), ((3, 7), 0), ((2, 3, 40), -1), ((2, 3, 40), 1), ((4,), 0), ((1, 4200), 1)):
        for dtype in (torch.float32, torch.float64, torch.bfloat16):
            if math.prod(shape) > 1000 and dtype != torch.float32:
                continue
            x, g = made(*shape, dtype=dtype, low=-8, high=8), made(*shape, dtype=dtype)
            if shape == (1, 4200):
                yield Case(aten._softmax.default, [x, dim, False], softmax_scale(dim))
                continue
            yield Case(aten._softmax.default, [x, dim, False], softmax_scale(dim))
            yield Case(aten._log_softmax.default, [x, dim, False], lambda a, y: a[0].abs().amax(a[1], keepdim=True) + math.log(a[0].shape[a[1]]) + 0 * y)
            y = torch.softmax(x, dim)
            yield Case(aten._softmax_backward_data.default, [g, y, dim, dtype], lambda a, _: a[1] * (a[0].abs() + (a[0] * a[1]).abs().sum(a[2], keepdim=True)))
            z = torch.log_softmax(x, dim)
            yield Case(aten._log_softmax_backward_data.default, [g, z, dim, dtype], lambda a, _: a[0].abs() + a[1].exp() * a[0].abs().sum(a[2], keepdim=True))
    blind = torch.tensor([[1.0, -math.inf, 2.0], [-math.inf, -math.inf, -math.inf], [math.nan, 1.0, 2.0]])
    yield Case(aten._softmax.default, [blind, 1, False], lambda _, y: torch.ones_like(y))
    yield Case(aten._softmax.default, [made(4, 6).t(), 1, False], softmax_scale(1))

    def layer_norm_scale(a: list, r: tuple) -> tuple:
        x, row, w, b = a[0], a[1], a[2], a[3]
        dims = list(range(x.dim() - len(row), x.dim()))
        w, b = (1.0 if w is None else w.abs()), (0.0 if b is None else b.abs())
        away = (x.abs() + x.abs().mean(dims, keepdim=True)) * r[2]
        return w * away + b + 0 * r[0], x.abs().mean(dims, keepdim=True) + 0 * r[1], r[2]

    def layer_norm_backward_scale(a: list, r: tuple) -> tuple:
        g, x, row, mean, rstd, w = a[:6]
        dims = list(range(x.dim() - len(row), x.dim()))
        rows = list(range(x.dim() - len(row)))
        h = (x.abs() + mean.abs()) * rstd
        gw = g.abs() * (1.0 if w is None else w.abs())
        dx = rstd * (gw + gw.mean(dims, keepdim=True) + h * (gw * h).mean(dims, keepdim=True))
        sums = [(g.abs() * h).sum(rows) if rows else g.abs() * h, g.abs().sum(rows) if rows else g.abs()]
        return tuple(s for s, result in zip((dx, *sums), r, strict=True) if result is not None)

    for shape, row in (((4, 6, 32), [32]), ((3, 5), [5]), ((2, 3, 4), [3, 4]), ((5, 1), [1]), ((2, 1100), [1100]), ((40, 70), [70])):
        for dtype in (torch.float32, torch.float64, torch.bfloat16):
            if math.prod(shape) > 1000 and dtype != torch.float32:
                continue
            x, g, w, b = made(*shape, dtype=dtype), made(*shape, dtype=dtype), made(*row, dtype=dtype), made(*row, dtype=dtype)
            for weight, bias in ((w, b), (None, None))[: 1 if math.prod(shape) > 1000 else 2]:
                yield Case(aten.native_layer_norm.default, [x, row, weight, bias, 1e-5], layer_norm_scale, results=3)
            _, mean, rstd = aten.native_layer_norm.default(x, row, w, b, 1e-5)
            yield Case(aten.native_layer_norm_backward.default, [g, x, row, mean, rstd, w, b, [True, True, True]], layer_norm_backward_scale, results=3)
    x, g, w, b = made(4, 6), made(4, 6), made(6), made(6)
    _, mean, rstd = aten.native_layer_norm.default(x, [6], w, b, 1e-5)
    yield Case(aten.native_layer_norm_backward.default, [g, x, [6], mean, rstd, w, b, [True, False, False]], layer_norm_backward_scale)
    yield Case(aten.native_layer_norm.default, [made(6, 4).t(), [6], w, b, 1e-5], layer_norm_scale, results=3)


def product_scale(a: list, y: Tensor) -> Tensor:
    return torch.matmul(a[0].abs(), a[1].abs()) + 0 * y


def products() -> Iterator[Case]:
    for m, k, n in ((3, 5, 4), (1, 1, 1), (7, 300, 9), (100, 3, 260), (6, 16, 33), (0, 3, 2), (3, 0, 2), (97, 257, 5)):
        yield Case(aten.mm.default, [made(m, k), made(k, n)], product_scale)
    for dtype in (torch.float64, torch.bfloat16, torch.float16, torch.int64):
        yield Case(aten.mm.default, [made(5, 40, dtype=dtype), made(40, 7, dtype=dtype)], product_scale)
    for a in layouts(made(9, 20)):
        for b in layouts(made(20, 17)):
            yield Case(aten.mm.default, [a, b], product_scale)
    yield Case(aten.mm.default, [torch.tensor([[1.0, math.inf], [math.nan, 0.0]]), torch.tensor([[1.0, 0.0], [2.0, 1.0]])], product_scale)
    for shape in ((2, 3, 4), (1, 5, 2), (3, 0, 2)):
        yield Case(aten.bmm.default, [made(*shape), made(shape[0], shape[2], 6)], product_scale)
    yield Case(aten.bmm.default, [made(4, 16, 8), made(4, 16, 8).transpose(1, 2)], product_scale)
    scale = lambda a, y: torch.matmul(a[1].abs(), a[2].abs()) * 2 + a[0].abs().nan_to_num() * 2 + 0 * y  # noqa: E731
    for bias in (made(6), made(4, 6), made(4, 1), made(())):
        yield Case(aten.addmm.default, [bias, made(4, 5), made(5, 6)], scale)
    yield Case(aten.addmm.default, [made(6), made(4, 5), made(5, 6)], scale, {"beta": 2, "alpha": 0.5})
    yield Case(aten.addmm.default, [torch.full((6,), math.nan), made(4, 5), made(5, 6)], scale, {"beta": 0})
    yield Case(aten.addmm.default, [made(6, dtype=torch.bfloat16), made(4, 5, dtype=torch.bfloat16), made(5, 6, dtype=torch.bfloat16)], scale)


def indexed() -> Iterator[Case]:
    ids = torch.randint(0, 9, (2, 5), generator=generator)
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.int64):
        yield Case(aten.embedding.default, [made(9, 70, dtype=dtype), ids])
    yield Case(aten.embedding.default, [made(70, 9).t(), ids])
    yield Case(aten.embedding.default, [made(9, 3), ids.t()])
    yield Case(aten.embedding.default, [made(9, 3), ids[:0]])

    def rows_scale(a: list, y: Tensor) -> Tensor:
        sums = torch.zeros_like(y)
        kept = a[1].flatten() != a[3]
        sums.index_add_(0, a[1].flatten()[kept], a[0].abs().reshape(-1, y.shape[1])[kept])
        return sums

    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        yield Case(aten.embedding_dense_backward.default, [made(2, 5, 70, dtype=dtype), ids, 9, -1, False], rows_scale)
    yield Case(aten.embedding_dense_backward.default, [made(2, 5, 3), ids, 9, int(ids[0, 0]), False], rows_scale)
    yield Case(aten.embedding_dense_backward.default, [made(1000, 2), torch.zeros(1000, dtype=torch.int64), 2, -1, False], rows_scale)
    target = torch.randint(0, 7, (12,), generator=generator)
    for dtype in (torch.float32, torch.float64):
        x, w = torch.log_softmax(made(12, 7, dtype=dtype), 1), made(7, dtype=dtype, low=0.1, high=2)
        for weight in (None, w):
            for reduction in (0, 1, 2):
                for ignored in (-100, int(target[0])):
                    args = [x, target, weight, reduction, ignored]
                    yield Case(aten.nll_loss_forward.default, args, lambda a, r: (a[0].abs().max() * 12 * (1 if a[2] is None else a[2].max()) + 0 * r[0].abs(), r[1].abs()), results=2)
                    y, sum_of_weights = aten.nll_loss_forward.default(*args)
                    yield Case(aten.nll_loss_backward.default, [torch.ones_like(y), x, target, weight, reduction, ignored, sum_of_weights], magnitude)


FAMILIES = {"pointwise": pointwise, "copies": copies, "reductions": reductions, "norms": norms, "products": products, "indexed": indexed}


# -- text

def type_text(x: Tensor) -> str:
    text = f"{NAMES[x.dtype]}[{', '.join(map(str, x.shape))}]"
    return text if x.is_contiguous() else text + f"({', '.join(map(str, x.stride()))})"


def arg_text(x: object, names: dict[int, str]) -> str:
    if isinstance(x, Tensor):
        return names[id(x)]
    if isinstance(x, (list, tuple)):
        return f"[{', '.join(arg_text(item, names) for item in x)}]"
    if isinstance(x, torch.dtype):
        return f"dtype({NAMES[x]})"
    if isinstance(x, torch.memory_format):
        return f"memory_format({str(x).removeprefix('torch.').removesuffix('_format')})"
    return repr(x)


def tensors_in(x: object) -> Iterator[Tensor]:
    if isinstance(x, Tensor):
        yield x
    elif isinstance(x, (list, tuple)):
        for item in x:
            yield from tensors_in(item)


def graph_text(name: str, case: Case, results: list[Tensor | None]) -> str:
    tensors = list({id(x): x for x in tensors_in(case.args)}.values())
    names = {id(x): f"%{chr(97 + i)}" if len(tensors) < 20 else f"%a{i}" for i, x in enumerate(tensors)}
    lines = [f"graph @{name} {{"]
    lines += [f"  {names[id(x)]}: {type_text(x)} = placeholder()" for x in tensors]
    args = [arg_text(x, names) for x in case.args] + [f"{key}={arg_text(value, names)}" for key, value in case.kwargs.items()]
    call = f"{case.target}({', '.join(args)})"
    if len(results) == 1:
        lines += [f"  %r: {type_text(results[0])} = {call}", "  return (%r,)"]
    else:
        types = ", ".join("None" if x is None else type_text(x) for x in results)
        lines += [f"  %r: ({types}) = {call}"]
        kept = [i for i, x in enumerate(results) if x is not None]
        lines += [f"  %r{i}: {type_text(results[i])} = operator.getitem(%r, {i})" for i in kept]
        lines += [f"  return ({', '.join(f'%r{i}' for i in kept)},)"]
    return "\n".join([*lines, "}\n"])


# -- values

def widen(x: object, *, narrow: bool = False) -> object:
    """Converts reals to float64. narrow: rounds numbers to float32 first, for kernels that compute
    in float32."""
    if isinstance(x, Tensor):
        return x.double() if x.dtype.is_floating_point else x
    if isinstance(x, float) and narrow:
        return torch.tensor(x, dtype=torch.float32).item()
    if isinstance(x, torch.dtype):
        return torch.float64 if x.is_floating_point else x
    return [widen(item, narrow=narrow) for item in x] if isinstance(x, list) else x


def as_list(x: object) -> list:
    return list(x) if isinstance(x, (tuple, list)) else [x]


def worst_error(ours: Tensor, exact: Tensor, scale: Tensor) -> float:
    if not ours.dtype.is_floating_point:
        return 0.0 if torch.equal(ours.double(), exact.double()) else math.inf
    eps = torch.finfo(ours.dtype).eps
    error = (ours.double() - exact).abs() - torch.finfo(ours.dtype).smallest_normal * eps
    usable = exact.isfinite() & ours.isfinite() & (scale > 0)
    return (error[usable] / (eps * scale.expand(error.shape)[usable])).max().item() if usable.any() else 0.0


def build(family: str) -> tuple[str, bytes, dict[str, float]]:
    generator.manual_seed(zlib.crc32(family.encode()))  # makes families independent of each other
    text, tensors, worst = "", {}, {}
    for number, case in enumerate(FAMILIES[family]()):
        name = f"{case.target.__name__.split('.')[0].strip('_')}_{number}"
        results = as_list(case.target(*copy.deepcopy(case.args), **case.kwargs))
        text += graph_text(name, case, results)
        for i, x in enumerate({id(x): x for x in tensors_in(case.args)}.values()):
            tensors[f"{name}/in{i}"] = x.contiguous().clone()
        narrow = family == "pointwise" and all(x.dtype != torch.float64 for x in tensors_in(case.args))
        wide_args = [widen(x, narrow=narrow) for x in case.args]
        exact = as_list(case.target(*copy.deepcopy(wide_args), **{key: widen(value) for key, value in case.kwargs.items()}))
        pairs = [(ours, x) for ours, x in zip(results, exact, strict=True) if ours is not None]
        scale_args = [*wide_args, case.kwargs["alpha"]] if "alpha" in case.kwargs and case.target is aten.add.Tensor else wide_args
        is_rounded = case.scale is not None and any(ours.dtype.is_floating_point for ours, _ in pairs)
        scales = [None] * len(pairs) if not is_rounded else as_list(case.scale(scale_args, exact[0] if len(exact) == 1 else tuple(exact)))
        for i, ((ours, x), scale) in enumerate(zip(pairs, scales, strict=True)):
            tensors[f"{name}/out{i}"] = x.double().contiguous().clone() if ours.dtype.is_floating_point else ours.contiguous().clone()
            if scale is None or not ours.dtype.is_floating_point:
                continue
            scale = scale.double().expand(x.shape).contiguous().clone()
            tensors[f"{name}/scale{i}"] = scale if ours.dtype == torch.float64 else scale.float()
            error = worst_error(ours, x.double(), scale)
            key = f"{case.target} {NAMES[ours.dtype]}"
            worst[key] = max(worst.get(key, 0.0), error)
    return text, save(tensors), worst


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "tests" / "cases" / "ops", help="folder (default: %(default)s)")
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a file would change")
    args = parser.parse_args()
    changed = False
    args.out.mkdir(parents=True, exist_ok=True)
    for family in FAMILIES:
        text, data, worst = build(family)
        for path, content in ((args.out / f"{family}.fxg", text.encode()), (args.out / f"{family}.safetensors", data)):
            changed |= not path.exists() or path.read_bytes() != content
            if not args.check:
                path.write_bytes(content)
        print(f"{family}: {text.count('graph @')} calls, {len(data)} bytes; PyTorch's worst |error| / (eps S):")
        print("  " + ", ".join(f"{key} {value:.2f}" for key, value in sorted(worst.items()) if value > 0.5))
    sys.exit(args.check and changed)


if __name__ == "__main__":
    main()
