#!/usr/bin/env python3
"""Finds operators whose results have another memory layout than fake tensors record.

    scripts/peers/layouts.py [--only NAME] [--samples N] [--json FILE]

Takes the sample inputs of PyTorch's own operator tests (op_db) and lays the tensors out in five
ways (contiguous, transposed, channels last, expanded, sliced). Executes each call on the CPU, and
repeats every operator that it reaches over fake tensors of the same layout. Prints operators whose
real and fake results differ in strides, offset, or memory shared with an argument, and operators
whose result holds more bytes than its sizes and strides need. Each must be marked in the op table
(`chooses_layout`; `holds` or `clones_storage`). Exits with 1 if one is not. Needs torch.
"""

from __future__ import annotations

import argparse
import json
import logging
import pathlib
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch._subclasses import FakeTensorMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

ROOT = pathlib.Path(__file__).resolve().parents[2]
KINDS = ("strides", "offset", "sharing", "bytes")


def contiguous(x: Tensor) -> Tensor:
    return x.contiguous()


def transposed(x: Tensor) -> Tensor:
    return x.mT.contiguous().mT if x.dim() > 1 else x


def channels_last(x: Tensor) -> Tensor:
    return x.contiguous(memory_format=torch.channels_last) if x.dim() == 4 else x


def expanded(x: Tensor) -> Tensor:
    return x[:1].expand_as(x) if x.dim() > 0 and x.shape[0] > 1 else x


def sliced(x: Tensor) -> Tensor:
    if x.dim() == 0 or x.numel() == 0:
        return x
    wide = torch.cat([x, x], dim=-1)
    return wide[..., : x.shape[-1]]


LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    each.__name__: each for each in (contiguous, transposed, channels_last, expanded, sliced)
}


@dataclass
class Found:
    """The number of calls of one operator, and the first difference of each kind."""

    calls: int = 0
    differences: dict[str, str] = field(default_factory=dict)


def facts(values: object, given: object) -> list[tuple[tuple[int, ...], tuple[int, ...], int, int, int]]:
    """For each tensor: sizes, strides, offset, the argument that it shares memory with (-1: none),
    bytes of its storage."""
    storages = [leaf.untyped_storage()._cdata for leaf in pytree.tree_leaves(given) if isinstance(leaf, Tensor)]
    result = []
    for leaf in pytree.tree_leaves(values):
        if isinstance(leaf, Tensor) and leaf.layout == torch.strided:
            storage = leaf.untyped_storage()
            shared = storages.index(storage._cdata) if storage._cdata in storages else -1
            result.append((tuple(leaf.shape), leaf.stride(), leaf.storage_offset(), shared, storage.nbytes()))
    return result


def matters(sizes: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...]:
    """The strides that decide where elements are stored: none for a dimension of one element, and
    none without elements."""
    return () if 0 in sizes else tuple(stride for size, stride in zip(sizes, strides) if size > 1)


def needed(sizes: tuple[int, ...], strides: tuple[int, ...], width: int) -> int:
    if 0 in sizes:
        return 0
    return (1 + sum((size - 1) * stride for size, stride in zip(sizes, strides))) * width


class Recorder(TorchDispatchMode):
    """Repeats each operator over fake tensors laid out as its arguments are."""

    def __init__(self, found: dict[str, Found], layout: str) -> None:
        super().__init__()
        self.found, self.layout = found, layout

    def __torch_dispatch__(self, func: object, types: object, args: tuple = (), kwargs: dict | None = None) -> object:
        kwargs = kwargs or {}
        fake = self.fake(func, args, kwargs)
        result = func(*args, **kwargs)
        if fake is not None:
            self.compare(func, facts(result, (args, kwargs)), *fake)
        return result

    def fake(self, func: object, args: tuple, kwargs: dict) -> tuple[object, ...] | None:
        try:
            with FakeTensorMode() as mode:
                memo: dict[int, Tensor] = {}

                def convert(leaf: object) -> object:
                    if not isinstance(leaf, Tensor):
                        return leaf
                    if id(leaf) not in memo:
                        memo[id(leaf)] = mode.from_tensor(leaf)
                    return memo[id(leaf)]

                fake_args, fake_kwargs = pytree.tree_map(convert, (args, kwargs))
                result = func(*fake_args, **fake_kwargs)
                return facts(result, (fake_args, fake_kwargs)), [
                    leaf.element_size() for leaf in pytree.tree_leaves(result) if isinstance(leaf, Tensor) and leaf.layout == torch.strided
                ]
        except Exception:  # sizes that depend on data, or no fake kernel
            return None

    def compare(self, func: object, real: list, fake: list, widths: list[int]) -> None:
        entry = self.found.setdefault(str(func), Found())
        entry.calls += 1
        for place, (one, other) in enumerate(zip(real, fake)):
            (sizes, strides, offset, shared, size), (fake_sizes, fake_strides, fake_offset, fake_shared, _) = one, other
            if sizes != fake_sizes:
                continue
            if matters(sizes, strides) != matters(sizes, fake_strides):
                self.note(entry, "strides", f"result {place} of {sizes}: {strides}, recorded {fake_strides}")
            if offset != fake_offset and 0 not in sizes:
                self.note(entry, "offset", f"result {place}: {offset}, recorded {fake_offset}")
            if (shared < 0) != (fake_shared < 0) and 0 not in sizes:
                self.note(entry, "sharing", f"result {place} of {sizes}: with {shared}, recorded {fake_shared}")
            if shared < 0 and size > max(needed(sizes, strides, widths[place]), 1) + offset * widths[place]:
                self.note(entry, "bytes", f"result {place} of {sizes}: {size} held")

    def note(self, entry: Found, kind: str, text: str) -> None:
        entry.differences.setdefault(kind, f"{self.layout}: {text}")


def samples(only: str | None, count: int) -> Iterator[tuple[object, object]]:
    from torch.testing._internal.common_methods_invocations import op_db

    for info in op_db:
        if only is not None and info.name != only:
            continue
        dtype = torch.float32 if torch.float32 in info.dtypes else min(info.dtypes, key=str, default=None)
        try:
            for number, sample in enumerate(info.sample_inputs("cpu", dtype, requires_grad=info.supports_autograd)):
                if number >= count:
                    break
                yield info, sample
        except Exception:
            continue


def run(info: object, sample: object, name: str, found: dict[str, Found]) -> None:
    lay_out = LAYOUTS[name]

    def convert(leaf: object) -> object:
        if not isinstance(leaf, Tensor) or leaf.layout != torch.strided:
            return leaf
        return lay_out(leaf.detach()).requires_grad_(leaf.requires_grad)

    try:
        given, args, kwargs = pytree.tree_map(convert, (sample.input, sample.args, sample.kwargs))
        with Recorder(found, name):
            result = info.op(given, *args, **kwargs)
            leaves = [leaf for leaf in pytree.tree_leaves(result) if isinstance(leaf, Tensor) and leaf.requires_grad]
            if leaves and not leaves[0].is_complex():
                leaves[0].sum().backward()
    except Exception:
        return


MARKS = {"strides": (".chooses_layout = true",), "bytes": (".holds = ", ".clones_storage = true")}


def marked(kind: str) -> set[str]:
    """The operators whose table rows are marked for such differences."""
    text = "".join((ROOT / "ir" / "ops" / name).read_text(encoding="utf-8") for name in ("aten.inc", "extra.inc", "libraries.inc"))
    return {line.split('"')[1] for line in text.splitlines() if any(mark in line for mark in MARKS[kind])}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="NAME", help="one operator of op_db")
    parser.add_argument("--samples", type=int, default=4, metavar="N", help="samples of each operator (default: 4)")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write the findings there")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)  # operators without a fake kernel log at length
    torch.manual_seed(0)
    found: dict[str, Found] = {}
    for info, sample in samples(options.only, options.samples):
        for name in LAYOUTS:
            run(info, sample, name, found)
    different = {name: entry for name, entry in sorted(found.items()) if entry.differences}
    for name, entry in different.items():
        for kind, text in entry.differences.items():
            print(f"{name}: {kind}: {text}")
    if options.json is not None:
        told = {name: {"calls": entry.calls, "differences": entry.differences} for name, entry in sorted(found.items())}
        options.json.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    calls = sum(entry.calls for entry in found.values())
    print(f"{len(found)} operators, {calls} calls; " + ", ".join(
        f"{sum(kind in entry.differences for entry in different.values())} differ in {kind}" for kind in KINDS
    ))
    missing = {name for kind in MARKS for name in {n for n, entry in different.items() if kind in entry.differences} - marked(kind)}
    print(f"not marked: {', '.join(sorted(missing)) or 'none'}")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
