"""Calls of operators to try. They come from the samples of PyTorch's OpInfo database, their
in-place and out variants, other values of the arguments that decide between view and copy, and
calls by hand. Deterministic."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from op_run import Call, execute, is_ordinary
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

DTYPES = (torch.float32, torch.int64, torch.complex64, torch.bool)
SAMPLES = {torch.float32: 12}  # samples per operator and dtype; for other dtypes:
SAMPLES_OF_OTHERS = 4
RECORDED = 12  # recorded calls kept per overload
VARIED = 2  # recorded calls whose arguments are varied
FAMILY = 8  # calls from which other overloads of the same family are made
DERIVED = 24  # calls per overload made from those of other overloads


def target_name(target: Callable[..., Any]) -> str:
    return str(target) if isinstance(target, torch._ops.OpOverload) else f"operator.{target.__name__}"


def overload(name: str) -> torch._ops.OpOverload | None:
    namespace, packet, which = name.split(".")
    try:
        return getattr(getattr(getattr(torch.ops, namespace), packet), which)
    except AttributeError:
        return None


def _kind(leaf: Any, first: torch.Tensor | None) -> Any:
    """The properties of an argument that may decide the effects of a call."""
    if isinstance(leaf, torch.Tensor):
        bits = leaf.is_contiguous(), leaf.is_conj(), leaf.is_neg(), leaf.storage_offset() != 0
        alike = first is not None and (leaf.shape == first.shape, leaf.dtype == first.dtype)
        return str(leaf.dtype), min(leaf.dim(), 3), leaf.numel() == 0, bits, alike
    if isinstance(leaf, bool | str) or leaf is None:
        return leaf
    if isinstance(leaf, int):
        return max(-2, min(leaf, 2))
    if isinstance(leaf, float):
        return leaf if leaf in (0, 1) else "other"
    return str(leaf)


def _has_tensor_for_number(target: torch._ops.OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a tensor of one element is passed as a number, which is accepted; graphs have an
    item() there."""
    arguments = target._schema.arguments
    given = [*zip(arguments, args, strict=False), *((a, kwargs[a.name]) for a in arguments if a.name in kwargs)]
    return any("Tensor" not in str(a.type) and any(isinstance(x, torch.Tensor) for x in pytree.tree_leaves(value)) for a, value in given)


class CallBook:
    """Calls by overload: each kind of arguments once, and limited in number per overload."""

    def __init__(self) -> None:
        self.calls: dict[str, dict[Any, Call]] = {}

    def add(self, target: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], limit: int = 10**9) -> None:
        known = self.calls.setdefault(target_name(target), {})
        leaves = pytree.tree_leaves((args, kwargs))
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        if len(known) >= limit or not all(is_ordinary(tensor) for tensor in tensors):
            return
        if any(isinstance(leaf, torch.Generator | torch.UntypedStorage | torch.SymInt) for leaf in leaves):
            return
        if isinstance(target, torch._ops.OpOverload) and _has_tensor_for_number(target, args, kwargs):
            return
        first = tensors[0] if tensors else None
        key = len(args), tuple(kwargs), tuple(_kind(leaf, first) for leaf in leaves)
        if key not in known:
            known[key] = Call.of(target, args, kwargs)

    def of(self, name: str) -> list[Call]:
        return list(self.calls.get(name, {}).values())


# ---- calls of OpInfo's samples


class _Recorder(TorchDispatchMode):
    def __init__(self, book: CallBook) -> None:
        super().__init__()
        self.book = book

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        self.book.add(func, args, kwargs or {}, RECORDED)
        return func(*args, **(kwargs or {}))


def _packets(op: Any) -> list[str]:
    """Names that the registry may have for an operator of OpInfo: nn.functional.pad is aten::pad,
    linalg.norm aten::linalg_norm."""
    names = {op.aten_name, op.name.split(".")[-1], op.name.replace(".", "_")} | {a.name.split(".")[-1] for a in op.aliases}
    return sorted(name + tail for name in names if name for tail in ("", "_"))


def _add_packet(book: CallBook, packet: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Adds the overload that the framework would choose. The dispatch mode does not see it, since
    it decomposes before."""
    found = getattr(torch.ops.aten, packet, None)
    if found is None:
        return
    try:
        chosen = torch._C._jit_resolve_packet(f"aten::{packet}", *args, **kwargs)
    except RuntimeError:
        return
    book.add(getattr(found, chosen), args, kwargs, RECORDED)


def _samples(op: Any) -> Iterator[Any]:
    dtypes = [dtype for dtype in DTYPES if dtype in op.dtypes] or sorted(op.dtypes, key=str)[:1]
    for dtype in dtypes:
        try:
            yield from itertools.islice(op.sample_inputs("cpu", dtype), SAMPLES.get(dtype, SAMPLES_OF_OTHERS))
        except Exception:  # a sample that needs a missing package or device
            continue


def add_opinfo(book: CallBook) -> int:
    """Records every operator of the database; returns how many there are."""
    from torch.testing._internal.common_methods_invocations import op_db

    for op in op_db:
        for sample in _samples(op):
            args = (sample.input, *sample.args)
            for packet in _packets(op):
                _add_packet(book, packet, args, sample.kwargs)
            try:
                with _Recorder(book):
                    op.op(*args, **sample.kwargs)
            except Exception:
                continue
    return len(op_db)


# ---- other overloads of the same family, by argument names


def bound(call: Call) -> dict[str, Any]:
    """The arguments of a call by the names of its schema."""
    args, kwargs = call.arguments()
    names = [argument.name for argument in call.target._schema.arguments]
    return dict(zip(names, args, strict=False)) | kwargs


def made(target: torch._ops.OpOverload, values: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """Arguments of `target` from values by name; None where one is missing."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    has_gap = False
    for argument in target._schema.arguments:
        if argument.name not in values:
            if not argument.has_default_value():
                return None
            has_gap = True
        elif argument.kwarg_only or has_gap:
            kwargs[argument.name] = values[argument.name]
        else:
            args.append(values[argument.name])
    return tuple(args), kwargs


def is_written(argument: Any) -> bool:
    return argument.alias_info is not None and argument.alias_info.is_write


_OUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "right": torch.zeros_like,
    "empty": lambda t: torch.empty(0, dtype=t.dtype),
    "wrong": lambda t: torch.zeros(7, dtype=t.dtype),
    "strided": lambda t: torch.zeros((*t.shape, 2), dtype=t.dtype)[..., 0],
}


def _outs(target: torch._ops.OpOverload, values: dict[str, Any], outputs: list[torch.Tensor]) -> Iterator[dict[str, Any]]:
    missing = [a for a in target._schema.arguments if is_written(a) and a.name not in values]
    if not missing:
        yield {}
    elif outputs:
        for make in _OUTS.values():
            outs = [make(output) for output in outputs]
            lists = {a.name: outs for a in missing if "List" in str(a.type)}
            yield {a.name: outs[min(i, len(outs) - 1)] for i, a in enumerate(missing)} | lists


def add_families(book: CallBook, table: list[str]) -> None:
    """Adds in-place, out, functional and copy variants, and other overloads, of the known calls."""
    family: dict[str, list[str]] = {}
    for name in table:
        if name.startswith(("aten.", "prims.")):
            family.setdefault(_stem(name), []).append(name)
    for name in sorted(book.calls):
        source = overload(name) if name.count(".") == 2 else None
        others = [other for other in family.get(_stem(name), []) if other != name]
        if source is None or not others:
            continue
        for call in book.of(name)[:FAMILY]:
            _add_relatives(book, call, others)


def _stem(name: str) -> str:
    namespace, packet, _ = (name + "..").split(".")[:3]
    return namespace + "." + packet.removesuffix("_copy").removesuffix("_functional").strip("_")


def _add_relatives(book: CallBook, call: Call, names: list[str]) -> None:
    values = bound(call)
    try:
        outputs = [x for x in execute(call).outputs if isinstance(x, torch.Tensor) and is_ordinary(x)]
    except Exception:
        return
    for name in names:
        target = overload(name)
        for outs in _outs(target, values, outputs) if target is not None else ():
            arguments = made(target, values | outs)
            if arguments is not None:
                book.add(target, *arguments, DERIVED)


# ---- other values of deciding arguments


def _values(argument: Any, first: torch.Tensor | None) -> list[Any]:
    kind = str(argument.real_type if hasattr(argument, "real_type") else argument.type)
    values: list[Any] = [None] if kind.startswith("Optional") or kind.endswith("?") else []
    if "bool" in kind:
        values += [False, True]
    elif "ScalarType" in kind or "dtype" in argument.name:
        values += [torch.float32, torch.float64, torch.int64] + ([first.dtype] if first is not None else [])
    elif "MemoryFormat" in kind:
        values += [torch.contiguous_format, torch.preserve_format, torch.channels_last]
    elif "Layout" in kind:
        values += [torch.strided]
    elif "Device" in kind:
        values += [torch.device("cpu")]
    elif "List[int]" in kind or "SymInt[]" in kind or "int[]" in kind:
        values += [[]] + ([list(first.shape), list(range(first.dim()))] if first is not None else [])
    elif kind in ("float", "Optional[float]", "float?"):
        values += [0.0, 0.5, 1.0]
    elif kind in ("int", "SymInt", "Optional[int]", "int?", "SymInt?"):
        values += [0, 1, -1]
    return values


def add_variations(book: CallBook) -> None:
    """Changes one argument at a time: flags, dtypes, sizes, and the memory layout of tensors."""
    for name in sorted(book.calls):
        if name.count(".") != 2 or "out" in name.split(".")[-1]:
            continue
        for call in book.of(name)[:VARIED]:
            _vary_values(book, call)
            _vary_tensors(book, call)


def _vary_values(book: CallBook, call: Call) -> None:
    values = bound(call)
    first = next(iter(call.tensors()), None)
    for argument in call.target._schema.arguments:
        for value in _values(argument, first):
            arguments = made(call.target, values | {argument.name: value})
            if arguments is not None:
                book.add(call.target, *arguments)


def gapped(tensor: torch.Tensor) -> torch.Tensor:
    """The same elements with gaps between them."""
    wide = torch.zeros((*tensor.shape, 2), dtype=tensor.dtype)
    wide[..., 0] = tensor
    return wide[..., 0]


def turned(tensor: torch.Tensor) -> torch.Tensor:
    """The same elements, with the first dimension innermost."""
    return tensor.movedim(0, -1).contiguous().movedim(-1, 0) if tensor.dim() > 1 else gapped(tensor)


def shifted(tensor: torch.Tensor) -> torch.Tensor:
    """The same elements after a few others."""
    flat = torch.cat([torch.zeros(3, dtype=tensor.dtype), tensor.resolve_conj().resolve_neg().reshape(-1)])
    return flat[3:].view(tensor.shape)


def emptied(tensor: torch.Tensor) -> torch.Tensor:
    return tensor[:0].contiguous() if tensor.dim() else tensor


def _vary_tensors(book: CallBook, call: Call) -> None:
    tensors = call.tensors()
    changes: list[list[torch.Tensor]] = []
    if tensors:
        changes += [[change(tensors[0]), *tensors[1:]] for change in (gapped, turned, shifted)]
        changes += [[change(tensor) for tensor in tensors] for change in (emptied, turned)]
        changes += [[tensor.double() if tensor.is_floating_point() else tensor for tensor in tensors]]
        changes += [[tensor.bfloat16() if tensor.is_floating_point() else tensor for tensor in tensors]]
    for changed in changes:
        book.add(call.target, *call.with_tensors(changed).arguments())


# ---- calls made from a schema alone

_NUMBERS = {"int": 1, "SymInt": 1, "float": 0.5, "bool": False, "number": 2, "Scalar": 2, "str": "none"}


def _made_up(argument: Any, shape: tuple[int, ...], dtype: torch.dtype) -> Any:
    kind = str(argument.type).removeprefix("Optional[").rstrip("]") if "List" not in str(argument.type) else str(argument.type)
    integral = any(word in argument.name for word in ("ind", "target", "label", "length", "offsets"))
    tensor = torch.zeros(shape, dtype=torch.int64) if integral else _numbers(shape, dtype)
    if "List" in kind:
        inner = kind[kind.index("List[") + 5 :].rstrip("]").removeprefix("Optional[")
        count = 2 if "Tensor" in inner else len(shape)
        return [tensor.clone() if "Tensor" in inner else _NUMBERS.get(inner) for _ in range(count)]
    return tensor if kind == "Tensor" else _NUMBERS.get(kind)


def _numbers(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    count = math.prod(shape)
    return (torch.arange(1, count + 1) % 5 + 1).to(dtype).reshape(shape)


def add_made_up(book: CallBook, table: list[str]) -> None:
    """Adds calls of overloads that nothing above reached, with arguments of the schema's types."""
    for name in table:
        target = overload(name) if name.count(".") == 2 and not book.calls.get(name) else None
        if target is None or not name.startswith(("aten.", "prims.")):
            continue
        for shape, dtype in itertools.product([(3,), (3, 3), (2, 3, 4), (1, 2, 4, 4)], [torch.float32, torch.int64, torch.bool]):
            required = [a for a in target._schema.arguments if not a.has_default_value()]
            arguments = made(target, {a.name: _made_up(a, shape, dtype) for a in required})
            if arguments is not None:
                book.add(target, *arguments)
