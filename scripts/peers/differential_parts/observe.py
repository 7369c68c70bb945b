"""Executes a graph and records everything that its caller can see afterwards."""

from __future__ import annotations

import contextlib
import io
import operator
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.fx import GraphModule
from torch.utils import _pytree as pytree

from differential_parts.collectives import SimulatedRanks

SEED = 11
# Merging equal values changes the order in which their gradients are summed up.
GRADIENT_TOLERANCE = 1e-4
# Exceptions that a graph may raise.
ERRORS = (ArithmeticError, AssertionError, AttributeError, LookupError, NameError, RuntimeError, TypeError, ValueError)


@dataclass
class Seen:
    """The observable results of one execution: tensors by name, which are one object or share a
    storage, the generator."""

    error: str | None = None
    tensors: dict[str, tuple] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)  # results that are no tensors
    objects: dict[str, str] = field(default_factory=dict)  # the first name of the same object
    storages: dict[str, str] = field(default_factory=dict)  # the first name on the same storage
    untouched: set[str] = field(default_factory=set)  # attributes that it left unchanged
    generator: bytes = b""
    printed: str = ""
    collectives: list[str] = field(default_factory=list)
    # sent and received, by group and other rank
    messages: dict[str, list[str]] = field(default_factory=dict)
    gradients: dict[str, Tensor | None] = field(default_factory=dict)


def execute(
    graph_module: Callable[..., object],
    inputs: Sequence[object],
    attributes: Mapping[str, Tensor],
    wanted: Sequence[str] | None = None,
) -> Seen:
    """Runs the graph. attributes: tensors it may write besides its inputs. wanted: names of inputs
    and attributes whose gradients are computed; None runs under no_grad."""
    named: dict[str, object] = {f"input {i}": value for i, value in enumerate(inputs)}
    named |= {f"attribute {path}": tensor for path, tensor in attributes.items()}
    known = {f"attribute {path}": _tensor(tensor) for path, tensor in attributes.items()}
    torch.manual_seed(SEED)
    seen = Seen()
    try:
        with torch.set_grad_enabled(wanted is not None), SimulatedRanks() as ranks, _caught_text() as text:
            result = graph_module(*inputs)
            seen.printed, seen.collectives, seen.messages = text.getvalue(), ranks.calls, ranks.finish()
            seen.generator = torch.get_rng_state().numpy().tobytes()
            leaves = pytree.tree_leaves(result, is_leaf=lambda leaf: leaf is None)
            named |= {f"output {i}": leaf for i, leaf in enumerate(leaves)}
            if wanted is not None:
                seen.gradients = _gradients(leaves, {name: named[name] for name in wanted if name in named})
    except ERRORS as error:
        seen.error = f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"
        return seen
    _describe(seen, named, asks_gradients=wanted is not None)
    seen.untouched = {name for name, parts in known.items() if seen.tensors[name][: len(parts)] == parts}
    return seen


@contextlib.contextmanager
def _caught_text() -> Iterator[io.StringIO]:
    with contextlib.redirect_stdout(io.StringIO()) as text, contextlib.redirect_stderr(io.StringIO()):
        yield text


def _gradients(leaves: Sequence[object], sources: Mapping[str, Tensor]) -> dict[str, Tensor | None]:
    """Gradients of a weighted sum of the outputs that autograd reaches."""
    total = None
    for i, leaf in enumerate(leaves):
        if isinstance(leaf, Tensor) and leaf.requires_grad and leaf.is_floating_point():
            weights = torch.linspace(0.5, 1.5, leaf.numel()).reshape(leaf.shape).to(leaf.dtype)
            term = (leaf * weights).sum() * (i + 1)
            total = term if total is None else total + term
    reached = {name: tensor for name, tensor in sources.items() if tensor.requires_grad and tensor.is_leaf}
    if total is None or not reached:
        return dict.fromkeys(reached)
    return dict(zip(reached, torch.autograd.grad(total, list(reached.values()), allow_unused=True)))


def _describe(seen: Seen, named: Mapping[str, object], *, asks_gradients: bool) -> None:
    objects: dict[int, str] = {}
    storages: dict[object, str] = {}
    for name, value in named.items():
        if not isinstance(value, Tensor):
            seen.values[name] = f"{type(value).__name__} {value!r}"
            continue
        seen.objects[name] = objects.setdefault(id(value), name)
        seen.storages[name] = storages.setdefault(storage_key(value), name)
        seen.tensors[name] = _tensor(value) + ((value.requires_grad,) if asks_gradients else ())


def storage_key(value: Tensor) -> object:
    storage = value.untyped_storage()
    return storage.data_ptr() if storage.nbytes() else ("empty", storage._cdata)


PARTS = ("dtype", "sizes", "strides", "offset", "storage's bytes", "data", "requires_grad")


def _tensor(value: Tensor) -> tuple:
    plain = value.detach().resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format)
    size = plain.numel() * plain.element_size()
    data = plain.reshape(-1).view(torch.uint8).numpy().tobytes() if size else b""
    storage_bytes = value.untyped_storage().nbytes()
    # The stride of a dimension of one element means nothing, and fake tensors record other strides
    # than kernels produce (view after unfold).
    strides = tuple(0 if size == 1 else stride for size, stride in zip(value.shape, value.stride()))
    return value.dtype, tuple(value.shape), strides, value.storage_offset(), storage_bytes, data


def described(value: object) -> object:
    """A snapshot of a value, to compare with another."""
    return _tensor(value) if isinstance(value, Tensor) else f"{type(value).__name__} {value!r}"


def differences(before: Seen, after: Seen, *, same_collectives: bool = False, all_collectives: bool = False) -> list[str]:
    """The differences that a caller sees in the second execution, in short words. same_collectives:
    the ranks must issue the same collectives in the same order; all_collectives: at least these,
    and as often."""
    if before.error or after.error:
        return [] if before.error == after.error else [f"raises {after.error}" if after.error else "raises no more"]
    lines = [f"{name}: {part}" for name in before.tensors for part in _parts(name, before, after)]
    # attributes that no node of the second execution reads
    forgotten = before.untouched - after.tensors.keys()
    for name, value in before.values.items():
        if after.values.get(name) != value:
            lines.append(f"{name}: {value} became {after.values.get(name, 'a tensor or nothing')}")
    count = [sum(name.startswith("output ") for name in [*seen.tensors, *seen.values]) for seen in (before, after)]
    if count[0] != count[1]:
        lines.append(f"{count[0]} outputs became {count[1]}")
    if not lines:
        lines += _partition("shares memory", before.storages, after.storages, forgotten)
        lines += _partition("is the same object", before.objects, after.objects, forgotten)
    if before.generator != after.generator:
        lines.append("the generator's state")
    if before.printed != after.printed:
        lines.append("printed text")
    if same_collectives and before.collectives != after.collectives:
        lines.append(f"{len(before.collectives)} collectives became {len(after.collectives)}, or others")
    if all_collectives and (lost := Counter(before.collectives) - Counter(after.collectives)):
        lines.append(f"collectives lost: {lost.total()}")
    lines += _message_lines(before.messages, after.messages)
    return lines + _gradient_lines(before.gradients, after.gradients)


def _message_lines(before: Mapping[str, list[str]], after: Mapping[str, list[str]]) -> Iterator[str]:
    """The other ranks wait for the same messages in the same order, even if collectives change."""
    for pair in sorted({*before, *after}):
        old, new = before.get(pair, []), after.get(pair, [])
        if len(old) != len(new):
            yield f"{pair}: {len(old)} messages became {len(new)}"
        for number, (one, other) in enumerate(zip(old, new), 1):
            if one != other:
                yield f"{pair}: message {number}, {one}, became {other}"
                break


def kind_of(difference: str) -> str:
    """The kind of a line of differences(), for tables."""
    for words, kind in _KINDS:
        if words in difference:
            return kind
    return "values"


_KINDS = (
    ("raises", "error"), ("no end", "error"), ("process died", "error"), ("exit ", "error"), ("gradient", "gradients"),
    ("requires_grad", "gradients"), ("generator", "generator"), ("shares memory", "shared memory"),
    ("same object", "one object"), ("printed", "effects"), ("collectives", "effects"), ("message", "messages"), ("sizes", "sizes"), ("strides", "sizes"),
    ("offset", "sizes"), ("bytes", "sizes"),
)  # fmt: skip


def _parts(name: str, before: Seen, after: Seen) -> Iterator[str]:
    if name not in after.tensors:
        if name not in before.untouched:
            yield "missing"
        return
    for part, left, right in zip(PARTS, before.tensors[name], after.tensors[name]):
        if left != right:
            yield part if part in ("data", "requires_grad") else f"{part} {left} became {right}"


def _partition(words: str, before: Mapping[str, str], after: Mapping[str, str], forgotten: Collection[str]) -> list[str]:
    lines = []
    for name, first in before.items():
        if name not in forgotten and first not in forgotten and after.get(name) != first:
            was, now = (f"as {x}" if x != name else "alone" for x in (first, after.get(name, name)))
            lines.append(f"{name} {words}: {was} before, {now} after")
    return lines


def _gradient_lines(before: Mapping[str, Tensor | None], after: Mapping[str, Tensor | None]) -> list[str]:
    lines = []
    for name, expected in before.items():
        found = after.get(name)
        if (expected is None) != (found is None):
            lines.append(f"gradient of {name}: {'none' if expected is None else 'one'} before only")
        elif expected is not None and found is not None:
            close = expected.shape == found.shape and torch.allclose(
                expected, found, rtol=GRADIENT_TOLERANCE, atol=GRADIENT_TOLERANCE, equal_nan=True
            )
            if not close:
                lines.append(f"gradient of {name}")
    return lines


def attributes_of(graph_module: GraphModule) -> dict[str, Tensor]:
    """The tensors that the graph reads by name."""
    result = {}
    for node in graph_module.graph.nodes:
        if node.op == "get_attr":
            with contextlib.suppress(AttributeError):
                value = operator.attrgetter(node.target)(graph_module)
                if isinstance(value, Tensor):
                    result[node.target] = value
    return result


@contextlib.contextmanager
def kept(attributes: Mapping[str, Tensor]) -> Iterator[None]:
    """Restores the tensors: data, sizes, strides, their storage, and their autograd state."""
    known = {}
    for path, tensor in attributes.items():
        with torch.no_grad():
            storage = tensor.untyped_storage()
            held = (tensor.detach(), storage.clone(), storage, tensor.requires_grad)
        known[path] = held
    try:
        yield
    finally:
        with torch.no_grad():
            for path, (shell, data, storage, requires_grad) in known.items():
                if storage.nbytes() != data.nbytes():
                    storage.resize_(data.nbytes())
                storage.copy_(data)
                attributes[path].data = shell
                if attributes[path].grad_fn is not None and not attributes[path]._is_view():
                    # a write in place made it a non-leaf
                    attributes[path].detach_().requires_grad_(requires_grad)


def shown(before: Seen, after: Seen) -> str:
    """Both executions, value by value, where their data differ."""
    lines = []
    for name, parts in before.tensors.items():
        other = after.tensors.get(name)
        if other == parts:
            continue
        lines.append(f"{name} before: {_shown(parts)}")
        lines.append(f"{name} after:  {_shown(other) if other is not None else 'missing'}")
    return "\n".join(lines)


def _shown(parts: tuple) -> str:
    dtype, sizes, strides, _, _, data = parts[:6]
    values = torch.frombuffer(bytearray(data), dtype=dtype).tolist()[:24] if data else []
    return f"{dtype} {sizes} {strides} {values}"
