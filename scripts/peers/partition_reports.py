#!/usr/bin/env python3
"""Runs programs from user reports on PyTorch's partitioners: eagerly, and cut by PyTorch and fxopt.

    scripts/peers/partition_reports.py [--fxopt PROGRAM] [NAME...]

Each program runs eagerly, without checkpointing, and through AOTAutograd, from the same inputs. Its
outputs before and after backward, the gradients, and the final inputs and buffers are compared bit
by bit. Both graphs of a pair are run by eager operators on the CPU: a difference comes from the
capture or the cut, not from a code generator. "saves" lists saved values that are no inputs. An
error reports its place: in the capture, before the partitioner is called; in the partition; or in
the run of the pair.

"(between)": the caller writes a tensor between forward and backward. No graph shows the write, so a
minimal cut may read the written tensor. There fxopt must give the results of PyTorch's partitioner
of the same kind.

NAME is a part of a report or program (default: all). Exits with 1 if fxopt fails or gives another
result than eager execution, unless PyTorch's capture fails, or both of PyTorch's partitioners do at
the same place. Needs torch; no GPU.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from unittest import mock

from command import command_line
import fxopt
import torch
from functorch.compile import aot_function, make_boxed_func
from torch import Tensor
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import default_partition, min_cut_rematerialization_partition
from torch._inductor.decomposition import select_decomp_table
from torch.fx import GraphModule, Node
from torch.utils._pytree import tree_leaves
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

Partition = Callable[..., tuple[GraphModule, GraphModule]]
Tensors = tuple[Tensor, ...]
SHAPE = (4, 4)
THEIRS: dict[str, Partition] = {
    "PyTorch default": default_partition, "PyTorch min-cut": min_cut_rematerialization_partition,
}  # fmt: skip
CUTS = {  # for each of ours, PyTorch's of the same kind
    "fxopt default": ("", "PyTorch default"),
    "fxopt min-cut": ("mode=min-cut", "PyTorch min-cut"),
    "fxopt min-cut, compat=torch": ("mode=min-cut,compat=torch", "PyTorch min-cut"),
}
EQUAL = "equal"


# ---- operators that write an argument, as a user's kernel does


def _add_into(total: Tensor, x: Tensor) -> None:
    total.add_(x)


def _sin_into(x: Tensor, out: Tensor) -> None:
    out.copy_(x.sin())


_library = torch.library.Library("fxopt_reports", "DEF")
_library.define("add_into(Tensor(a!) total, Tensor x) -> ()")
_library.define("sin_into(Tensor x, Tensor(a!) out) -> ()")
_library.impl("add_into", _add_into, "CompositeExplicitAutograd")
_library.impl("sin_into", _sin_into, "CompositeExplicitAutograd")


# ---- pytorch 197039: min-cut recomputes in backward a read of memory written after the read


def reads_before_write(weight: Tensor, state: Tensor) -> Tensors:
    """The state is read, then written. Backward needs the value read; recomputed from the state it
    differs."""
    scale = state.exp()
    out = weight.sin() * scale
    state.mul_(0.5)
    return (out,)


def reads_view_before_write(weight: Tensor, state: Tensor) -> Tensors:
    """The same through a view: the result computed from the view must be saved, not the view, which
    shows the write."""
    scale = state[1:].t().exp()
    out = weight[:, 1:].sin() * scale
    state.mul_(0.5)
    return (out,)


def copies_before_write(weight: Tensor, state: Tensor) -> Tensors:
    """The read is a copy: a partitioner that takes the state itself for it reads the written
    value."""
    kept = state.clone()
    out = weight * kept
    state.add_(1.0)
    return (out,)


def reads_what_it_wrote(weight: Tensor, state: Tensor) -> Tensors:
    """The written state is also read; recomputed from the state, it is written twice."""
    state.mul_(0.5)
    return (weight.sin() * state.exp(),)


def reads_on_both_sides(weight: Tensor, state: Tensor) -> Tensors:
    """A counter: read, written, read, written."""
    first = weight.sin() * state.cos()
    state.add_(1.0)
    second = first.cos() * state.cos()
    state.add_(1.0)
    return (second,)


def reads(weight: Tensor, state: Tensor) -> Tensors:
    """Nothing in the program writes the state; the caller does, between forward and backward."""
    return (weight.sin() * state.exp(),)


def reads_view(weight: Tensor, state: Tensor) -> Tensors:
    """The same through a view."""
    return (weight[:, 1:].sin() * state[1:].t().exp(),)


def overwrite(outputs: Tensors, state: Tensor) -> None:
    state.mul_(0.5)


# ---- pytorch 174124 (and 172956): a tensor that forward returns is saved, and written in backward


class _AddsInBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, total: Tensor, by_kernel: bool, own: bool) -> Tensor:
        ctx.save_for_backward(total)
        ctx.by_kernel, ctx.own = by_kernel, own
        return x * 2.0

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor | None, ...]:
        (total,) = ctx.saved_tensors
        addend = torch.ones_like(gradient) if ctx.own else gradient
        if ctx.by_kernel:
            torch.ops.fxopt_reports.add_into(total, addend)
        else:
            total.add_(addend)
        return gradient * 2.0, None, None, None


def returns_what_backward_writes(weight: Tensor) -> Tensors:
    """Forward makes and returns the tensor; backward adds the gradient to it."""
    total = weight.detach().cos()
    return _AddsInBackward.apply(weight, total, False, False).sin(), total


def returns_what_a_kernel_writes(weight: Tensor) -> Tensors:
    """The user's operator writes it. In the report it is a Triton kernel, which needs a GPU."""
    total = weight.detach().cos()
    return _AddsInBackward.apply(weight, total, True, False).sin(), total


def returns_what_backward_counts_in(weight: Tensor) -> Tensors:
    """The added value depends on no gradient, so nothing prevents the addition in forward."""
    total = weight.detach().cos()
    return _AddsInBackward.apply(weight, total, False, True).sin(), total


def keeps_what_backward_writes(weight: Tensor) -> Tensors:
    """The tensor is not returned."""
    total = weight.detach().cos()
    return (_AddsInBackward.apply(weight, total, False, False).sin(),)


def writes_a_buffer_in_backward(weight: Tensor, state: Tensor) -> Tensors:
    """The tensor is a buffer, not made in forward, such as the maxima that 8-bit training keeps."""
    return (_AddsInBackward.apply(weight, state, False, False).sin(),)


# ---- pytorch 113737: in-place operators in a selectively checkpointed region. Eager execution with
# the checkpoint is no reference: it keeps the value to be saved, lets the region overwrite it, and
# reads it when it runs the region again (or refuses, by default). The reference is the same
# functions without checkpointing.


def _saves_products(context: object, op: object, *args: object, **kwargs: object) -> CheckpointPolicy:
    is_product = op is torch.ops.aten.mm.default
    return CheckpointPolicy.MUST_SAVE if is_product else CheckpointPolicy.PREFER_RECOMPUTE


def _saves_activations(context: object, op: object, *args: object, **kwargs: object) -> CheckpointPolicy:
    is_product = op is torch.ops.aten.mm.default
    return CheckpointPolicy.MUST_RECOMPUTE if is_product else CheckpointPolicy.MUST_SAVE


def _region(function: Callable, policy: Callable, *inputs: Tensor) -> Tensor:
    contexts = partial(create_selective_checkpoint_contexts, policy, allow_cache_entry_mutation=True)
    return checkpoint(function, *inputs, use_reentrant=False, context_fn=contexts)


def _activates(x: Tensor, weight: Tensor) -> Tensor:
    return torch.selu_(x.sin() @ weight)


def _activates_twice(x: Tensor, weight: Tensor) -> Tensor:
    return _activates(torch.selu_((x.sin() @ weight).mul_(2.0)), weight)


def _multiplies(x: Tensor, weight: Tensor) -> Tensor:
    return x.sin() @ weight


def saves_what_is_written(x: Tensor, weight: Tensor) -> Tensors:
    """The product must be saved, and selu_ overwrites it."""
    return (_region(_activates, _saves_products, x, weight).cos(),)


def saves_writes(x: Tensor, weight: Tensor) -> Tensors:
    """The in-place operators must be saved, the products recomputed."""
    return (_region(_activates, _saves_activations, x, weight).cos(),)


def saves_what_is_written_twice(x: Tensor, weight: Tensor) -> Tensors:
    """Two layers and three writes; one overwrites the result of an earlier one."""
    return (_region(_activates_twice, _saves_products, x, weight).cos(),)


def writes_the_result(x: Tensor, weight: Tensor) -> Tensors:
    """The region's result must be saved, and is written outside the region."""
    return (torch.selu_(_region(_multiplies, _saves_products, x, weight)).cos(),)


# ---- pytorch 171966 (and 170160): a factory whose tensor is written is saved, not recomputed


class _WritesIntoOnes(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        out = torch.ones_like(x)
        torch.ops.fxopt_reports.sin_into(x, out)
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx, gradient: Tensor) -> Tensor:
        (saved,) = ctx.saved_tensors
        out = torch.ones_like(gradient)
        torch.ops.fxopt_reports.sin_into(saved, out)
        return out * gradient


def writes_into_ones(weight: Tensor) -> Tensors:
    """Forward and backward each make a tensor of ones, and an operator writes it. If they are
    merged, one tensor lives throughout. The report is about Inductor's later in-place writes; here
    "saves" shows whether more than the result is saved."""
    return (_WritesIntoOnes.apply(weight),)


def fills_a_mask(weight: Tensor) -> Tensors:
    """Zeros that are written in place, element by element; backward reads the result."""
    mask = torch.zeros(SHAPE)
    mask[1:].fill_(1.0)
    mask.diagonal().add_(0.5)
    return (weight.sin() * mask,)


# ---- related to pytorch 174124: a tensor kept on ctx, not by save_for_backward, may be written
# before backward


class _Keeps(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor) -> Tensors:
        kept = x.cos()
        saved = kept.exp()
        ctx.save_for_backward(saved)
        ctx.kept = kept
        return saved.sin(), kept

    @staticmethod
    def backward(ctx, gradient: Tensor, _: Tensor) -> Tensor:
        return ctx.saved_tensors[0] * gradient * ctx.kept


def keeps_and_saves(weight: Tensor) -> Tensors:
    """One tensor is kept and returned, a later one saved. AOTAutograd checks the first of the saved
    tensors for writes, but not the last: a partitioner must order them so."""
    return _Keeps.apply(weight)


def overwrite_output(outputs: Tensors, _: Tensor) -> None:
    outputs[1].detach().mul_(0.5)


# ---- pytorch 146693: backward calls that need no gradient are moved to forward


class _DrawsInBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        return x.sin()

    @staticmethod
    def backward(ctx, gradient: Tensor) -> Tensor:
        return gradient * torch.rand(SHAPE)


def draws_in_backward(weight: Tensor) -> Tensors:
    """A draw in forward differs from backward's own draw after the caller has drawn. AOTAutograd
    marks no phase on nodes traced from the Function's backward."""
    return (_DrawsInBackward.apply(weight).cos(),)


def draw(outputs: Tensors, _: Tensor) -> None:
    torch.rand(3)


@dataclass(frozen=True)
class Program:
    """forward(*parameters, *state) -> outputs; the first output has a gradient."""

    report: str
    forward: Callable[..., Tensors]
    parameters: int = 1
    has_state: bool = False
    # the caller's writes: outputs, or the last input
    between: Callable[[Tensors, Tensor], None] | None = None
    # writes to inputs are in the graph; otherwise AOTAutograd makes them after forward
    writes_kept: bool = False
    by_dynamo: bool = False
    decomposes: bool = False  # by Inductor's table, which turns ones_like() into full()

    @property
    def name(self) -> str:
        how = ["between"] * (self.between is not None) + ["writes in the graph"] * self.writes_kept
        return " ".join([self.forward.__name__, *(f"({each})" for each in how)])

    def compiled(self, partition_fn: Partition) -> Callable[..., Tensors]:
        told = {
            "fw_compiler": lambda graph_module, _: make_boxed_func(graph_module.forward),
            "partition_fn": partition_fn,
            "decompositions": select_decomp_table() if self.decomposes else {},
            "keep_inference_input_mutations": self.writes_kept,
        }
        torch._dynamo.reset()
        if self.by_dynamo:
            return torch.compile(self.forward, backend=aot_autograd(**told), fullgraph=True)
        return aot_function(self.forward, **told)

    def run(self, forward: Callable[..., Tensors]) -> dict[str, Tensor]:
        """The values that a caller sees."""
        torch.manual_seed(0)
        generator = torch.Generator().manual_seed(1)
        inputs = [torch.randn(SHAPE, generator=generator) for _ in range(self.parameters + self.has_state)]
        wanted = [tensor.requires_grad_() for tensor in inputs[: self.parameters]]
        outputs = forward(*inputs)
        seen = {f"output {i} after forward": output.detach().clone() for i, output in enumerate(outputs)}
        if self.between is not None:
            self.between(outputs, inputs[-1])
        gradients = torch.autograd.grad(outputs[0].square().sum(), wanted)
        seen |= {f"gradient {i}": gradient for i, gradient in enumerate(gradients)}
        seen |= {f"output {i}": output.detach() for i, output in enumerate(outputs)}
        return seen | {"state": inputs[-1]} if self.has_state else seen


WRITES = (reads_before_write, reads_view_before_write, copies_before_write, reads_what_it_wrote, reads_on_both_sides)
RETURNS = (returns_what_backward_writes, returns_what_backward_counts_in, keeps_what_backward_writes)
REGIONS = (saves_what_is_written, saves_writes, saves_what_is_written_twice, writes_the_result)
PROGRAMS = (
    *(Program("pytorch 197039", each, has_state=True, writes_kept=kept) for each in WRITES for kept in (False, True)),
    *(Program("pytorch 197039", each, has_state=True, between=overwrite) for each in (reads, reads_view)),
    *(Program("pytorch 174124", each) for each in RETURNS),
    Program("pytorch 174124", returns_what_a_kernel_writes, by_dynamo=True),
    Program("pytorch 174124", writes_a_buffer_in_backward, has_state=True),
    Program("pytorch 174124", writes_a_buffer_in_backward, has_state=True, writes_kept=True),
    Program("pytorch 174124", keeps_and_saves, between=overwrite_output, by_dynamo=True),
    Program("pytorch 146693", draws_in_backward, between=draw, by_dynamo=True),
    *(Program("pytorch 113737", each, parameters=2, by_dynamo=True) for each in REGIONS),
    *(Program("pytorch 171966", each, by_dynamo=True, decomposes=True) for each in (writes_into_ones, fills_a_mask)),
)


# ---- running them


class Watched:
    """A partitioner that records how far it came and its saved values."""

    def __init__(self, partition_fn: Partition) -> None:
        self.partition_fn, self.place, self.saved = partition_fn, "capture", []

    def __call__(
        self, joint: GraphModule, inputs: object, *, num_fwd_outputs: int, **more: object
    ) -> tuple[GraphModule, GraphModule]:
        self.place = "partition"
        forward, backward = self.partition_fn(joint, inputs, num_fwd_outputs=num_fwd_outputs, **more)
        self.place = "run"
        leaves = tree_leaves(forward.graph.output_node().args[0], is_leaf=lambda leaf: leaf is None)[num_fwd_outputs:]
        self.saved = [leaf.name for leaf in leaves if isinstance(leaf, Node) and leaf.op != "placeholder"]
        return forward, backward


def is_same(a: Tensor, b: Tensor) -> bool:
    if (a.shape, a.dtype) != (b.shape, b.dtype):
        return False
    return torch.equal(a.contiguous().view(torch.uint8), b.contiguous().view(torch.uint8))


def _without_checkpoint(function: Callable, *inputs: Tensor, **_: object) -> Tensor:
    return function(*inputs)


def expected_of(program: Program) -> dict[str, Tensor]:
    with mock.patch.object(sys.modules[__name__], "checkpoint", _without_checkpoint):
        return program.run(program.forward)


def differences(expected: dict[str, Tensor], found: dict[str, Tensor]) -> str:
    wrong = [
        f"{name} by {(value - found[name]).abs().max():.3g}"
        for name, value in expected.items()
        if not is_same(value, found[name])
    ]
    return f"differs: {', '.join(wrong)}" if wrong else EQUAL


def first_words(error: BaseException) -> str:
    error = getattr(error, "inner_exception", error)
    text = next((line for line in str(error).splitlines() if line.strip()), "")
    _, found, code = text.partition("error[")
    return f"{type(error).__name__}: {code.replace(']', '', 1) if found else text}"[:110]


@dataclass(frozen=True)
class Result:
    place: str
    text: str
    saved: list[str]


def result_of(program: Program, partition_fn: Partition, expected: dict[str, Tensor]) -> Result:
    watched = Watched(partition_fn)
    try:
        found = program.run(program.compiled(watched))
    except Exception as error:  # noqa: BLE001  # whatever a partitioner or an operator raises
        return Result(watched.place, f"{watched.place}: {first_words(error)}", watched.saved)
    return Result("end", differences(expected, found), watched.saved)


def judged(program: Program, executable: str | None) -> Iterator[tuple[str, Result, bool]]:
    """Yields each partitioner, its outcome, and whether the outcome is fxopt's error."""
    expected = expected_of(program)
    theirs = {name: result_of(program, partition_fn, expected) for name, partition_fn in THEIRS.items()}
    for name, result in theirs.items():
        yield name, result, False
    for name, (cut, kind) in CUTS.items():
        result = result_of(program, fxopt.partitioner(cut=cut, fxopt=executable), expected)
        others = [theirs[kind]] if program.between is not None else theirs.values()
        is_shared = all(each.text != EQUAL and each.place == result.place for each in others)
        yield name, result, not (result.text == EQUAL or result.place == "capture" or is_shared)


def main() -> int:
    parser = command_line(__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    wrong = 0
    print("| report | program | partitioner | saves | outputs, gradients, writes |\n|---|---|---|---|---|")
    for program in PROGRAMS:
        if options.names and not any(name in f"{program.report} {program.name}" for name in options.names):
            continue
        for name, result, is_wrong in judged(program, options.fxopt):
            text = f"{'WRONG ' * is_wrong}{result.text}"
            cells = [program.report, program.name, name, ", ".join(result.saved) or "-", text]
            print(f"| {' | '.join(cells)} |", flush=True)
            wrong += is_wrong
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
