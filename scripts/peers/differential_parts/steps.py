"""The steps of random programs, by kind. Each takes a tape and adds a step or a few. Sizes are read
when a step runs, not when it is made, so that a symbolic trace can be run at other sizes."""

from __future__ import annotations

import torch
from torch import Tensor

from differential_parts import custom_ops, higher_order, messages
from differential_parts.programs import aten
from differential_parts.tape import Tape, has_dims, is_float

UNARY = (
    torch.sin, torch.cos, torch.neg, torch.abs, torch.relu, torch.sigmoid, torch.tanh, torch.square, torch.sign,
    lambda a: a * 2.0, lambda a: a + 1.0, lambda a: a - 0.5, lambda a: 1.0 - a, lambda a: a * 1.0, lambda a: a + 0.0,
    lambda a: a.clamp(-1.0, 1.0), lambda a: a.clone(), lambda a: torch.nn.functional.gelu(a),
    lambda a: a.masked_fill(a > 0.5, 0.25), lambda a: torch.cumsum(a, 0), lambda a: a.contiguous(),
    lambda a: torch.softmax(a, -1), lambda a: torch.ops.prims.convert_element_type.default(a, torch.float64).float(),
    lambda a: torch.zeros_like(a), lambda a: torch.full_like(a, 3.0), lambda a: torch.flip(a, [0]),
)  # fmt: skip
BINARY = (torch.add, torch.mul, torch.sub, torch.maximum, torch.atan2, lambda a, b: torch.where(a > b, a, b))
REDUCTIONS = (
    lambda a: a.sum(0), lambda a: a.sum(), lambda a: a.mean(-1), lambda a: a.amax(0), lambda a: a.sum(-1, keepdim=True),
    lambda a: a.norm(), lambda a: torch.var_mean(a, 0), lambda a: torch.max(a, 0), lambda a: torch.sort(a, dim=0, stable=True),
    lambda a: torch.topk(a, 1, 0), lambda a: torch.aminmax(a), lambda a: torch.native_layer_norm(a, [a.shape[-1]], None, None, 1e-5),
)  # fmt: skip
VIEWS = (
    lambda a: a.view(-1), lambda a: a.view(a.shape[0], -1), lambda a: a.view(a.shape[-1], -1), lambda a: a.reshape(-1),
    lambda a: a.reshape(a.shape[-1], -1), lambda a: a.flatten(), lambda a: a.t(), lambda a: a.transpose(0, -1),
    lambda a: a.unsqueeze(0), lambda a: a.unsqueeze(-1), lambda a: a.squeeze(), lambda a: a.squeeze(0),
    lambda a: a.select(0, 0), lambda a: a.select(-1, 1), lambda a: a[1:], lambda a: a[:1], lambda a: a[..., ::2],
    lambda a: a[0], lambda a: a.narrow(0, 0, 2), lambda a: a.expand(2, *a.shape), lambda a: a.movedim(0, -1),
    lambda a: a.diagonal(), lambda a: a.permute(*reversed(range(a.dim()))), lambda a: a.unfold(0, 2, 1),
    lambda a: a.split(1), lambda a: a.chunk(2), lambda a: a.unbind(0), lambda a: torch.tensor_split(a, 2, -1),
    lambda a: a.detach(), lambda a: aten.alias(a), lambda a: a.view_as(a), lambda a: a.view(torch.int32).view(torch.float32),
    lambda a: torch.as_strided(a, (2, 2), (1, 2)), lambda a: torch.as_strided(a, (2,), (1,), 1),
    lambda a: torch.view_as_real(torch.complex(a, a)), lambda a: torch._neg_view(a), lambda a: a.swapaxes(0, 1),
    lambda a: torch.broadcast_to(a, (2, *a.shape)), lambda a: a.ravel(), lambda a: a.T, lambda a: a.t().reshape(-1),
    lambda a: a.t().contiguous(), lambda a: a.expand(2, *a.shape).reshape(-1), lambda a: a.t().flatten(), lambda a: a[..., ::2].reshape(-1),
)  # fmt: skip
# Steps that nearly do nothing, and steps that differ little from another step.
NEARLY = (
    lambda a: a.transpose(0, 1).transpose(1, 2), lambda a: a.permute(1, 2, 0).permute(1, 2, 0), lambda a: a.t().view(-1, 1),
    lambda a: a.unsqueeze(0).squeeze(-1), lambda a: a.unsqueeze(0).unsqueeze(0).squeeze(0), lambda a: a[:2], lambda a: a[:4],
    lambda a: a[..., :4], lambda a: a[..., 0:4:2], lambda a: a.expand(*a.shape[:-1], 4), lambda a: a.view(-1).view(2, -1),
    lambda a: a.view(torch.int32).to(torch.float32), lambda a: a.t().reshape(a.shape), lambda a: a.t().contiguous(),
    lambda a: a.to(torch.float16).to(torch.float32), lambda a: torch.as_strided(a, a.shape, tuple(reversed(a.stride()))),
    lambda a: torch.full((2,), 1), lambda a: torch.full((2,), 1.0), lambda a: torch.full((2,), True), lambda a: a.sum(0),
    lambda a: a.sum(0, dtype=torch.float64), lambda a: a.masked_fill(a > 0, 0.0), lambda a: a.masked_fill(a > 0, -0.0),
    lambda a: torch.arange(4), lambda a: torch.arange(4.0), lambda a: a.mean(0), lambda a: a.mean(0, keepdim=True),
    lambda a: torch.full((4,), 0.0), lambda a: torch.full((4,), -0.0), lambda a: a * 1, lambda a: a * True, lambda a: a.add(1, alpha=2),
    lambda a: a.squeeze(0), lambda a: a.squeeze(-1), lambda a: a.select(0, -1), lambda a: a.narrow(0, 1, 1), lambda a: a[-1:],
    lambda a: aten.slice.Tensor(a, 0, 0, 9223372036854775807, 2), lambda a: a.swapaxes(0, -1), lambda a: a.transpose(-1, -2).t(),
    lambda a: a.contiguous(memory_format=torch.contiguous_format), lambda a: a.view(a.shape[0], -1, 1).squeeze(0),
    lambda a: a.clamp(max=0.5) - a.clamp(0, 0.5), lambda a: a.clamp(None, 0.0) - a.clamp(0.0, None), lambda a: a.add(a, alpha=2) - (a + a),
)  # fmt: skip


def _copies_around_a_write(a: Tensor) -> Tensor:
    """A reshape that copies, before and after its memory is written through another view."""
    turned = a.transpose(0, -1)
    first = turned.reshape(-1)
    a.view(-1).add_(1.0)
    return torch.cat([first, turned.reshape(-1)])


def _second_view_changes(a: Tensor) -> Tensor:
    """Two equal views; an op changes the sizes of one."""
    first, second = a.view(-1), a.view(-1)
    second.unsqueeze_(0)
    return torch.cat([first.sum(0).view(-1), second.sum(0).view(-1)])


def _first_view_changes(a: Tensor) -> Tensor:
    first, second = a.view(-1), a.view(-1)
    first.unsqueeze_(0)
    return torch.cat([first.sum(0).view(-1), second.sum(0).view(-1)])


def _sizes_change_between(a: Tensor) -> Tensor:
    """The same call before and after its argument is transposed in place; a make_fx trace names the
    result instead."""
    copy = aten.clone.default(a)
    first = aten.sum.dim_IntList(copy, [0])
    aten.transpose_.default(copy, 0, -1)
    return torch.cat([first.view(-1), aten.sum.dim_IntList(copy, [0]).view(-1)])


def _transposed_between(a: Tensor) -> Tensor:
    """A transpose of a transpose; the inner one is transposed in place first."""
    turned = aten.t.default(a.view(a.shape[0], -1))
    aten.t_.default(turned)
    return aten.t.default(turned)


def _row_of_what_is_turned(a: Tensor) -> Tensor:
    copy = aten.clone.default(a)
    aten.transpose_.default(copy, 0, -1)
    return copy[0] * 2.0


def _column_of_what_is_turned(a: Tensor) -> Tensor:
    """The same for two dimensions, however many there are."""
    copy = aten.view.default(aten.clone.default(a), [a.shape[0], -1])
    aten.transpose_.default(copy, 0, 1)
    return copy[0] * 2.0


def _two_names(a: Tensor) -> tuple[Tensor, Tensor]:
    """Two views that both equal the tensor they view, which has no name itself."""
    made = a * 2.0
    return made.view(made.shape), aten.alias(made)


def _thrice(a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Three equal calls; the first is not returned."""
    total = aten.sin.default(a).sum()
    return aten.sin.default(a), aten.sin.default(a), total


def _written_through_alias(a: Tensor) -> Tensor:
    """A write through a result that another library's operator declares as a view."""
    copy = aten.clone.default(a)
    custom_ops.ops.flat(copy).mul_(2.0)
    return copy + 1.0


def _read_around_alias(a: Tensor) -> Tensor:
    copy = aten.clone.default(a)
    flat, before = custom_ops.ops.flat(copy), copy * 2.0
    flat.add_(1.0)
    return before.view(-1) - (copy * 2.0).view(-1)


def _written_with_its_alias(a: Tensor) -> Tensor:
    """An op that refuses one tensor twice, because its memory is not dense, but takes an alias of
    it."""
    part = aten.clone.default(a)[..., ::2]
    aten.index_put_.default(part, [torch.arange(part.shape[0])], aten.alias.default(part))
    return part * 2.0


def _written_with_its_equal(a: Tensor) -> Tensor:
    copy = aten.clone.default(a)
    part, same = copy[..., ::2], copy[..., ::2]
    aten.index_put_.default(part, [torch.arange(part.shape[0])], same)
    return part * 2.0


def _views_around_set(a: Tensor) -> Tensor:
    """The same view of a tensor before and after it is moved to other memory."""
    moved = torch.zeros_like(a)
    first = aten.view.default(moved, [-1])
    aten.set_.source_Tensor(moved, a.clone())
    return torch.cat([first * 2.0, aten.view.default(moved, [-1]) * 2.0])


def _written_after_set(a: Tensor) -> Tensor:
    """A write to the memory that another tensor was moved to."""
    moved, memory = torch.zeros_like(a), a.clone()
    moved.set_(memory)
    memory.view(-1).add_(1.0)
    return moved * 2.0


def _views_around_out(a: Tensor) -> Tensor:
    """The same view of a tensor before and after out= makes it larger."""
    held = torch.zeros(0)
    first = aten.view.default(held, [-1])
    torch.mul(a, 2.0, out=held)
    return torch.cat([first * 2.0, aten.view.default(held, [-1]) * 2.0])


def _row_around_out(a: Tensor) -> Tensor:
    held = torch.zeros(2, 1)
    first = held[0] * 2.0
    torch.mul(a, 2.0, out=held.resize_(0))
    return torch.cat([first.view(-1), (held[0] * 2.0).view(-1)])


def _written_through_reshape(a: Tensor) -> Tensor:
    """A write through a view that only strides distinguish from a copy."""
    copy = aten.clone.default(a)
    aten.reshape.default(copy, [-1]).mul_(2.0)
    return copy + 1.0


# Each has two calls that are nearly equal to a caller.
PAIRS = (
    lambda a: torch.stack([a * 0.0, a * -0.0]), lambda a: torch.stack([torch.full((4,), 0.0), torch.full((4,), -0.0)]),
    lambda a: torch.stack([a.clamp(max=0.5), a.clamp(0, 0.5)]), lambda a: torch.stack([a.add(a, alpha=2), a + a]),
    _copies_around_a_write, _copies_around_a_write, _second_view_changes, _second_view_changes, _first_view_changes,
    _sizes_change_between, _two_names, _written_after_set, _written_after_set, _transposed_between, _transposed_between,
    _row_of_what_is_turned, _row_of_what_is_turned, _row_of_what_is_turned, _views_around_set, _views_around_set, _two_names, _thrice,
    _written_with_its_alias, _written_with_its_equal, _written_through_alias, _read_around_alias, _thrice, _transposed_between, _transposed_between,
    _transposed_between, lambda a: aten.t.default(a.narrow(0, 0, 2)) * 2.0, lambda a: aten.t.default(a.view(a.shape[-1], -1)) + 1.0,
    lambda a: a.t().reshape(a.shape) * 2.0, lambda a: a.transpose(0, -1).contiguous() + 1.0,
)  # fmt: skip
# Pairs whose difference only a graph without values hides.
UNRECORDED = (*PAIRS, *3 * (_column_of_what_is_turned, _views_around_out), _row_around_out, _transposed_between, _written_through_reshape, _written_through_reshape)
CUSTOM = (
    lambda a: custom_ops.ops.twice(a), lambda a: custom_ops.ops.add_into(a, 1.0), lambda a: custom_ops.ops.add_into(a.view(-1), 2.0),
    lambda a: custom_ops.ops.add_into(a[0], 3.0), lambda a: custom_ops.ops.swap_into(a, a.sin()), lambda a: custom_ops.ops.twice(a.t()),
    lambda a: custom_ops.ops.shift_(a, 1.0), lambda a: custom_ops.ops.flat(a), lambda a: custom_ops.ops.flat(a).mul_(2.0),
    lambda a: custom_ops.ops.shift_(a.view(-1), 1.0),
)  # fmt: skip
NOTHINGS = (
    lambda a: aten.alias(a), lambda a: a.detach(), lambda a: a.view(a.shape), lambda a: a.t().t(),
    lambda a: a.transpose(0, 1).transpose(0, 1), lambda a: a.unsqueeze(0).squeeze(0), lambda a: a.expand(a.shape),
    lambda a: a.permute(*range(a.dim())), lambda a: a[:], lambda a: a.view(-1).view(a.shape), lambda a: a.reshape(a.shape),
    lambda a: a.to(torch.float32), lambda a: a.to(torch.float64).to(torch.float32), lambda a: a.contiguous(),
    lambda a: a.to(torch.bfloat16).to(torch.float32), lambda a: a.view(torch.int32).view(torch.float32),
    lambda a: a.permute(1, 0).permute(1, 0), lambda a: a.clone(),
    lambda a: torch.as_strided(a, a.shape, a.stride()), lambda a: aten.slice.Tensor(a, 0, 0, 9223372036854775807),
    lambda a: aten._to_copy(a, dtype=torch.float32), lambda a: a.type_as(a), lambda a: a.positive(),
    lambda a: a.unsqueeze(-1).squeeze(-1), lambda a: a.reshape(-1).view(a.shape), lambda a: a.neg().neg(),
    lambda a: a.flatten().unflatten(0, a.shape), lambda a: torch.dropout(a, 0.5, False), lambda a: aten.lift_fresh(a),
)  # fmt: skip
WRITES = (
    lambda a: a.add_(1.0), lambda a: a.mul_(2.0), lambda a: a.sub_(0.5), lambda a: a.neg_(), lambda a: a.sin_(),
    lambda a: a.zero_(), lambda a: a.fill_(3.0), lambda a: a.relu_(), lambda a: a.clamp_(-0.5, 0.5), lambda a: a.abs_(),
    lambda a: a[:1].add_(1.0), lambda a: a.view(-1).mul_(3.0), lambda a: a.t().add_(2.0), lambda a: a.select(0, 0).fill_(7.0),
    lambda a: a.masked_fill_(a > 0, 0.5), lambda a: a.diagonal().zero_(), lambda a: a.copy_(a.sin()), lambda a: a.cumsum_(0),
    lambda a: a.index_fill_(0, torch.zeros(1, dtype=torch.int64), 5.0), lambda a: a.detach().add_(1.0),
    lambda a: a.unsqueeze(0).mul_(0.5), lambda a: a[..., ::2].neg_(), lambda a: a.sigmoid_(), lambda a: a.squeeze().add_(4.0),
    lambda a: torch._foreach_add_([a], 1.0), lambda a: a.reshape(-1).add_(6.0), lambda a: a.flatten().mul_(1.5),
    lambda a: torch.relu_(a), lambda a: a.exp_().clamp_(max=2.0), lambda a: a.triu_(), lambda a: a.split(1)[0].add_(1.0),
    lambda a: a.to(torch.float32).mul_(2.0), lambda a: a.contiguous().add_(1.0),
)  # fmt: skip
BINARY_WRITES = (
    lambda a, b: a.add_(b), lambda a, b: a.mul_(b), lambda a, b: a.copy_(b), lambda a, b: a.sub_(b, alpha=2.0),
    lambda a, b: a[0].copy_(b[0]), lambda a, b: a.view(-1)[:2].add_(b.view(-1)[:2]), lambda a, b: torch._foreach_mul_([a], [b]),
    lambda a, b: torch._foreach_copy_([a], [b]), lambda a, b: a.index_add_(0, torch.zeros(b.shape[0], dtype=torch.int64), b),
    lambda a, b: a.scatter_(0, torch.zeros(b.shape, dtype=torch.int64), b), lambda a, b: a.lerp_(b, 0.5),
    lambda a, b: a.index_put_((torch.zeros(1, dtype=torch.int64),), b[:1]), lambda a, b: a.addcmul_(b, b),
    lambda a, b: aten.copy_.default(a, b), lambda a, b: a.masked_scatter_(a > 0, b),
)  # fmt: skip
SIZE_CHANGES = (
    lambda a: a.t_(), lambda a: a.unsqueeze_(0), lambda a: a.unsqueeze_(-1), lambda a: a.squeeze_(), lambda a: a.squeeze_(0),
    lambda a: a.transpose_(0, 1), lambda a: a.transpose_(0, -1), lambda a: a.as_strided_((2, 2), (1, 2)), lambda a: a.swapaxes_(0, 1),
    lambda a: a.as_strided_((2,), (1,)), lambda a: a.resize_(2, 2), lambda a: a.resize_(a.numel()), lambda a: a.resize_(2),
    lambda a: aten.t_.default(a), lambda a: a.as_strided_((a.numel(),), (1,)), lambda a: a.view(-1, 2).t_(),
    lambda a: aten.alias(a).t_(), lambda a: a.add_(1.0).t_(), lambda a: a.mul_(2.0).unsqueeze_(0), lambda a: a.detach_(),
    lambda a: a.clone().t_(),
)  # fmt: skip
RESIZES = (
    lambda a: a.resize_(2, 2), lambda a: a.resize_(a.numel()), lambda a: a.resize_(2), lambda a: a.resize_(2, 2).add_(1.0),
    lambda a: a.resize_(4, 2).fill_(2.0), lambda a: a.resize_(a.shape), lambda a: a.resize_(1, a.numel()), lambda a: a.view(-1).resize_(2),
)  # fmt: skip
SETS = (
    lambda a, b: a.set_(b), lambda a, b: a.set_(b.clone()), lambda a, b: a.set_(torch.zeros_like(a)), lambda a, b: a.set_(b.view(-1)),
    lambda a, b: aten.set_.source_Tensor(a, b), lambda a, b: a.resize_as_(b).copy_(b), lambda a, b: a.set_(b.detach()),
    lambda a, b: aten.set_.source_Tensor_storage_offset(a, b, 0, [2], [1]),
)  # fmt: skip
OUTS = (
    lambda a, b, c: torch.add(a, b, out=c), lambda a, b, c: torch.mul(a, b, out=c), lambda a, b, c: torch.sin(a, out=c),
    lambda a, b, c: torch.mm(a, b, out=c), lambda a, b, c: torch.maximum(a, b, out=c), lambda a, b, c: torch.sum(a, 0, out=c),
    lambda a, b, c: torch.clamp(a, -1.0, 1.0, out=c), lambda a, b, c: torch.cat([a[:1], b[:1]], out=c.view(-1)[:0].view(0)),
    lambda a, b, c: aten.copy.out(a, b, out=c), lambda a, b, c: torch.add(a, b, out=c.t()), lambda a, b, c: torch.neg(b, out=c.view(a.shape)),
    lambda a, b, c: torch.sort(a, 0, out=(c, torch.empty(a.shape, dtype=torch.int64).zero_())),
    lambda a, b, c: torch.stack([a[0], b[0]], out=c), lambda a, b, c: aten.relu.out(a, out=c),
)  # fmt: skip
DRAWS = (
    lambda a: torch.rand_like(a), lambda a: torch.randn_like(a), lambda a: torch.nn.functional.dropout(a, 0.5, True),
    lambda a: torch.bernoulli(torch.full_like(a, 0.5)), lambda a: torch.rand(2, 4), lambda a: torch.randint(0, 9, (4,)).float(),
    lambda a: torch.randperm(4).float(), lambda a: aten.native_dropout(a, 0.3, True), lambda a: torch.normal(0.0, 1.0, (2, 2)),
    lambda a: a.uniform_(), lambda a: a.normal_(), lambda a: a.bernoulli_(0.5), lambda a: torch.nn.functional.dropout(a, 0.5, True, True),
    lambda a: torch.multinomial(torch.ones(4), 2).float(), lambda a: torch.rrelu(a, 0.1, 0.9, True), lambda a: a.exponential_(),
    lambda a: a + torch.rand_like(a), lambda a: torch.randint_like(a, 5), lambda a: aten.native_dropout(a, 0.0, True),
)  # fmt: skip
def _half_stopped(a: Tensor) -> Tensor:
    """The same call with and without gradients."""
    with torch.no_grad():
        scale = a.sin()
    return a.sin() * scale


def _stopped_view(a: Tensor) -> Tensor:
    with torch.no_grad():
        same = a.view_as(a)
    return a.view_as(a) * same.view(same.shape)


def _stopped_view_of_a_part(a: Tensor) -> Tensor:
    """A view without gradients of a tensor with them, which one node makes and another takes
    apart."""
    part = a.split(1)[0]
    with torch.no_grad():
        same = part.view(part.shape)
    return same * 2.0 + part


MODES = (_half_stopped, _stopped_view, _stopped_view_of_a_part, lambda a: a.detach() * a, lambda a: a * 2.0 + (a * 2.0).detach())
CHECKS = (
    lambda a: aten._assert_async.msg(a.isnan().any().logical_not() | True, "never"),
    lambda a: torch._check(a.shape[0] >= 0), lambda a: aten._assert_tensor_metadata(a, None, None, torch.float32),
    lambda a: aten._assert_scalar(True, "never"), lambda a: torch.ops.aten.sym_size.int(a, 0),
)  # fmt: skip
INDEXES = (
    lambda a: a[torch.tensor([0, 1])], lambda a: torch.index_select(a, 0, torch.zeros(2, dtype=torch.int64)),
    lambda a: torch.gather(a, 0, torch.zeros(a.shape, dtype=torch.int64)), lambda a: torch.take(a, torch.tensor([0, 1])),
    lambda a: a.index_put((torch.tensor([0]),), torch.ones(())), lambda a: aten.slice_scatter(a, a[:1], 0, 0, 1),
    lambda a: aten.select_scatter(a, a[0], 0, 1), lambda a: a.index_fill(0, torch.tensor([1]), 2.0),
    lambda a: torch.scatter(a, 0, torch.zeros(a.shape, dtype=torch.int64), 1.0), lambda a: torch.roll(a, 1, 0),
)  # fmt: skip
JOINS = (lambda a, b: torch.cat([a, b]), lambda a, b: torch.stack([a, b]), lambda a, b: a @ b, lambda a, b: torch.outer(a.view(-1), b.view(-1))[:2, :4])
COLLECTIVES = (
    lambda a: c10d().all_reduce(a, "sum", "0"), lambda a: c10d().wait_tensor(c10d().broadcast(a, 1, "0")),
    lambda a: c10d().wait_tensor(c10d().all_reduce(a.t(), "sum", "0")), lambda a: c10d().wait_tensor(c10d().all_reduce(a[:1], "sum", "0")),
    lambda a: c10d().wait_tensor(c10d().all_reduce(a, "sum", "0")), lambda a: c10d().wait_tensor(c10d().all_gather_into_tensor(a, 2, "0")),
    lambda a: c10d().wait_tensor(c10d().all_reduce_(a.view(-1), "sum", "0")), lambda a: c10d().wait_tensor(c10d().all_reduce_(a, "sum", "0")),
    lambda a: c10d().wait_tensor(c10d().reduce_scatter_tensor(a, "sum", 2, "0")), lambda a: c10d().wait_tensor(a),
    lambda a: c10d().wait_tensor(c10d().all_to_all_single(a, [1, 1], [1, 1], "0")), lambda a: c10d().wait_tensor(a),
    lambda a: _waited_late(a), lambda a: c10d().wait_tensor(c10d().broadcast_(a, 1, "0")),
)  # fmt: skip


def _waited_late(a: Tensor) -> Tensor:
    reduced = c10d().all_reduce(a, "sum", "0")
    other = a.sin()
    return c10d().wait_tensor(reduced) + other


def c10d() -> object:
    return torch.ops._c10d_functional


def unary(table: tuple, fits=is_float, *, writes: bool = False, wanted: bool = False):
    def step(tape: Tape) -> None:
        place, first = tape.pick(fits), len(tape.pool)
        if place is not None:
            tape.do(tape.dice.choice(table), place)
            if wanted:
                tape.want(*range(first, len(tape.pool)))
            if writes:
                tape.written.append(place)

    return step


def _around(tape: Tape) -> None:
    """The same step before and after a write, or a change of sizes, of its input or of memory
    shared with it."""
    place = tape.pick(has_dims(1))
    if place is None or not is_float(tape.pool[place]):
        return
    function = tape.dice.choice(tape.dice.choice([UNARY, UNARY, VIEWS, REDUCTIONS, NEARLY, CUSTOM]))
    first = tape.do(function, place)
    written = place
    if tape.dice.chance(0.4):
        written = tape.beside(place)
    elif tape.dice.chance(0.6):
        view = tape.do(tape.dice.choice(VIEWS), place)
        written = place if view is None or not is_float(tape.pool[view]) else view
    tape.do(tape.dice.choice(WRITES if tape.dice.chance(0.8) else SIZE_CHANGES), written)
    tape.written.append(written)
    tape.want(first, tape.do(function, place))


def _two(table: tuple, *, writes: bool = False):
    def step(tape: Tape) -> None:
        first = tape.pick(is_float)
        second = tape.pick(lambda value: is_float(value) and (first is None or value.shape == tape.pool[first].shape))
        if second is None or tape.dice.chance(0.2):
            second = tape.pick(is_float)
        if first is not None and second is not None:
            tape.do(tape.dice.choice(table), first, second)
            if writes:
                tape.written.append(first)

    return step


def _out(tape: Tape) -> None:
    places = [tape.pick(is_float) for _ in range(3)]
    if None not in places:
        if tape.dice.chance(0.6):
            shape = tape.pool[places[0]].shape
            same = [tape.pick(lambda value: is_float(value) and value.shape == shape) for _ in range(2)]
            places[1:] = same
        tape.do(tape.dice.choice(OUTS), *places)
        tape.written.append(places[2])


def _factory(tape: Tape) -> None:
    kind = tape.dice.choice([torch.zeros, torch.ones, lambda *s: torch.full(s, 2.0), lambda *s: torch.empty(*s).fill_(1.5)])
    sizes = tape.dice.choice([(2, 4), (4,), (4, 2), (2, 2)])
    place = tape.do(lambda: kind(*sizes))
    if place is not None and tape.dice.chance(0.5):
        tape.do(tape.dice.choice(WRITES), place)
        tape.written.append(place)


def _mixed_types(tape: Tape) -> None:
    place = tape.pick()
    if place is not None:
        kind = tape.dice.choice([torch.float64, torch.bfloat16, torch.int64, torch.bool, torch.float32, torch.float16])
        table = [lambda a: a.to(kind), lambda a: aten._to_copy(a, dtype=kind), lambda a: a.type(kind), lambda a: a.to(kind).to(torch.float32)]
        tape.do(tape.dice.choice(table), place)


KINDS = {
    "pure": unary(UNARY),
    "binary": _two(BINARY),
    "reduction": unary(REDUCTIONS),
    "view": unary(VIEWS),
    "nothing": unary(NOTHINGS),
    "write": unary(WRITES, writes=True),
    "binary write": _two(BINARY_WRITES, writes=True),
    "size change": unary(SIZE_CHANGES, writes=True),
    "resize_": unary(RESIZES, writes=True),
    "set_": _two(SETS, writes=True),
    "out=": _out,
    "draw": unary(DRAWS, writes=True, wanted=True),
    "check": unary(CHECKS),
    "index": unary(INDEXES, has_dims(1)),
    "join": _two(JOINS),
    "collective": unary(COLLECTIVES, has_dims(1), writes=True),
    "messages": messages.step,
    "factory": _factory,
    "types": _mixed_types,
    "nearly": unary(NEARLY, wanted=True),
    "custom": unary(CUSTOM, writes=True, wanted=True),
    "higher-order": higher_order.step,
    "again": Tape.again,
    "around": _around,
    "pairs": unary(PAIRS, writes=True, wanted=True),
    "modes": unary(MODES, wanted=True),
    "unrecorded": unary(UNRECORDED, writes=True, wanted=True),
}
# Kinds for leaves, which nothing may write.
FOR_GRADIENTS = ("pure", "view", "nothing", "again", "modes", "modes", "modes", "index")
# Each program has some of the others besides these.
COMMON = ("pure", "view", "nothing", "again", "write", "nearly", "around", "pairs", "pairs")
RARE = tuple(kind for kind in KINDS if kind not in (*COMMON, "modes", "unrecorded", "messages"))
