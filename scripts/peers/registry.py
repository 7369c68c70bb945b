#!/usr/bin/env python3
"""Counts the operators that PyTorch registers: rows of fxopt's table, schemas that go into the file,
opaque ones. Executes the schemas that `fxopt.save` calls exact and the operators whose rows are
barriers, and looks for effects that neither states.

    scripts/peers/registry.py [--tries N] [--only NAME] [--list]

Each exact operator is called up to N times with made-up arguments: plain and quantized tensors, lists
of one and two tensors, numbers, words. Each operator runs in a process of its own. A call shows a
hidden effect if the bytes, sizes or storage of an argument change, or a result shares the storage of
an argument, without an annotation in the schema, or if the call draws random numbers without the tag
nondeterministic_seeded. Exits with 1 if an operator that has a kernel is opaque, or has an effect
that is not stated. Needs torch and expecttest; no GPU.
"""

from __future__ import annotations

import argparse
import collections
import ctypes
import importlib
import os
import pathlib
import pickle
import random
import re
import signal
import sys
import tempfile
import warnings
from typing import Any

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[1])]

import torch  # noqa: E402
from fxopt import writer  # noqa: E402
from make_op_table import MODULES, hides_effects  # noqa: E402
from op_calls import overload as overload_of  # noqa: E402
from op_facts import table_names  # noqa: E402
from op_run import address, shape_of  # noqa: E402
from torch.utils import _pytree as pytree  # noqa: E402

SECONDS = 20  # limit for one operator
# Writes of barriers that their rows state and their schemas do not.
WRITES = {f"aten.set.source_Tensor{end}": ("writes source",) for end in ("", "_out")}
WORDS = ("none", "relu", "sum", "add", "mean", "linear", "max", "amax")


def registered() -> dict[str, torch._ops.OpOverload | None]:
    """The dispatcher's operators by target. None: torch.ops cannot call it."""
    for module in MODULES:
        importlib.import_module(module)
    result: dict[str, torch._ops.OpOverload | None] = {}
    for name in sorted(torch._C._dispatch_get_all_op_names()):
        namespace, rest = name.split("::")
        packet, _, overload = rest.partition(".")
        target = f"{namespace}.{packet}.{overload or 'default'}"
        result[target] = overload_of(target)
    return result


def has_kernel(operator: torch._ops.OpOverload) -> bool:
    return bool(re.search(r"^(?!debug)\w+(\[\w+\])?: registered", torch._C._dispatch_dump(operator.name()), re.MULTILINE))


# ---- made-up arguments


def _tensor(random_: random.Random) -> torch.Tensor:
    shape = random_.choice(((4, 4), (4, 4), (1, 4, 8, 8), (4,), (2, 4, 4), (1, 4, 4, 4, 4), (1,)))
    kind = random_.randrange(8)
    generator = torch.Generator().manual_seed(random_.randrange(1 << 30))
    values = torch.randn(shape, generator=generator)
    if kind < 3:
        return values
    if kind == 3:
        return values.abs().mul(2).long()
    if kind == 4:
        return values > 0
    if kind == 5:
        return values.abs().mul(40).to(torch.uint8)
    if kind == 6:
        return values.to(random_.choice((torch.float16, torch.bfloat16, torch.int8, torch.int32, torch.float64)))
    return torch.quantize_per_tensor(values, 0.1, 0, random_.choice((torch.quint8, torch.qint8)))


def made_up(kind: str, random_: random.Random) -> Any:
    """An argument of that type. Raises LookupError for types that are not made up."""
    if inner := re.fullmatch(r"(Optional|List)\[(.+)\]", kind):
        if inner[1] == "Optional":
            return None if random_.random() < 0.6 else made_up(inner[2], random_)
        return [made_up(inner[2], random_) for _ in range(random_.choice((1, 1, 2, 2, 3)))]
    if kind in ("int", "SymInt"):
        return random_.choice((0, 1, 1, 2, 4, -1))
    if kind in ("float", "SymFloat", "number", "Scalar"):
        return random_.choice((0.1, 0.5, 1.0, 2.0))
    if kind in ("bool", "SymBool"):
        return random_.random() < 0.5
    if kind == "Tensor":
        return _tensor(random_)
    if kind == "str":
        return random_.choice(WORDS)
    if kind == "ScalarType":
        return random_.choice((torch.float32, torch.quint8, torch.qint8, torch.int32, torch.uint8))
    if kind == "Device":
        return torch.device("cpu")
    if kind == "Layout":
        return torch.strided
    if kind == "MemoryFormat":
        return torch.contiguous_format
    raise LookupError(kind)


# ---- effects


def _state(tensor: torch.Tensor) -> tuple[Any, ...]:
    storage = tensor.untyped_storage()
    size = storage.nbytes()
    return address(tensor), shape_of(tensor), ctypes.string_at(storage.data_ptr(), size) if size else b""


def hidden_effects(operator: torch._ops.OpOverload, args: list[Any], kwargs: dict[str, Any]) -> set[str]:
    """Calls the operator. Returns the effects that its schema does not state."""
    schema = operator._schema
    given = [
        *zip((a for a in schema.arguments if not a.kwarg_only), args),
        *((a, kwargs[a.name]) for a in schema.arguments if a.kwarg_only),
    ]
    tensors = [
        (argument, leaf) for argument, value in given for leaf in pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)
    ]
    before = [_state(tensor) for _, tensor in tensors]
    torch.manual_seed(0)
    state = torch.get_rng_state()
    result = operator(*args, **kwargs)
    found = set()
    if not torch.equal(state, torch.get_rng_state()) and torch.Tag.nondeterministic_seeded not in operator.tags:
        found.add("draws")
    values = result if isinstance(result, tuple) else (result,)
    for (argument, tensor), old in zip(tensors, before, strict=True):
        alias = argument.alias_info
        if _state(tensor) != old and not (alias and alias.is_write):
            found.add(f"writes {argument.name}")
        for returned, value in zip(schema.returns, values):
            is_shared = any(
                address(x) == old[0]
                for x in pytree.tree_leaves(value)
                if isinstance(x, torch.Tensor) and x.layout is torch.strided
            )
            if is_shared and not (alias and returned.alias_info and alias.before_set & returned.alias_info.before_set):
                found.add(f"returns the storage of {argument.name}")
    return found


def examine(name: str, operator: torch._ops.OpOverload, tries: int) -> tuple[int, set[str], str]:
    """The number of successful calls, hidden effects, and the last error."""
    random_, called, found, error = random.Random(name), 0, set(), ""
    for _ in range(tries):
        try:
            args, kwargs = [], {}
            for argument in operator._schema.arguments:
                value = made_up(str(argument.real_type), random_)
                if argument.kwarg_only:
                    kwargs[argument.name] = value
                else:
                    args.append(value)
        except LookupError as missing:
            return 0, found, f"takes a {missing}"
        try:
            found |= hidden_effects(operator, args, kwargs)
            called += 1
        except Exception as failure:
            error = str(failure).splitlines()[0][:90] if str(failure) else type(failure).__name__
    return called, found, error


def examine_apart(name: str, operator: torch._ops.OpOverload, tries: int) -> tuple[int, set[str], str]:
    """examine() in a process of its own, for kernels that crash on made-up arguments."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS)
        os.chdir(tempfile.mkdtemp())  # from_file makes files
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        with os.fdopen(write, "wb") as out:
            for part in range(4):  # what came before a crash counts
                pickle.dump(examine(f"{name} {part}", operator, tries // 4), out)
                out.flush()
        os._exit(0)
    os.close(write)
    called, found, error = 0, set(), "crashes"
    with os.fdopen(read, "rb") as source:
        try:
            while True:
                more = pickle.load(source)
                called, found, error = called + more[0], found | more[1], more[2]
        except EOFError:
            pass
    os.waitpid(child, 0)
    return called, found, error


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--tries", type=int, default=400, metavar="N", help="calls of each operator (default: 400; 0: only count)"
    )
    parser.add_argument("--only", default="", metavar="NAME", help="only operators whose names contain NAME")
    parser.add_argument("--list", action="store_true", help="list operators that could not be called")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    rows, counts = set(table_names()), collections.Counter()
    wrong, exact, barriers = [], [], []
    for name, operator in registered().items():
        if operator is None or not (name in rows or has_kernel(operator)):
            counts["no kernel"] += 1
        elif name in rows:
            hides = hides_effects(name, operator)
            counts["row of the table" + (", a barrier whose results may hold arguments" if hides else "")] += 1
            if hides:
                barriers.append((name, operator))
        elif writer._op_schema(name, operator).get("pure"):
            counts["schema in the file, exact"] += 1
            exact.append((name, operator))
        elif writer._op_schema(name, operator).get("effectful"):
            counts["schema in the file, with an effect token"] += 1
        else:
            counts["opaque"] += 1
            wrong.append(f"{name}: opaque")
    names = {str(s.name) + ("." + s.overload_name if s.overload_name else "") for s in torch._C._jit_get_all_schemas()}
    counts["of TorchScript's interpreter alone"] = len(names - set(torch._C._dispatch_get_all_op_names()))
    for kind, count in counts.items():
        print(f"{count:6d}  {kind}")
    for kind, operators in {"exact schemas": exact, "barriers": barriers}.items() if options.tries else ():
        outcomes = collections.Counter()
        for name, operator in operators:
            if options.only not in name:
                continue
            called, found, error = examine_apart(name, operator, options.tries)
            outcomes["executed" if called else "no call succeeded"] += 1
            outcomes["calls"] += called
            stated = ("returns", *WRITES.get(name, ())) if operators is barriers else ()
            wrong += [f"{name}: {effect}" for effect in sorted(found) if not effect.startswith(stated)]
            if options.list and not called:
                print(f"        {name}: {error}")
        for outcome, count in outcomes.items():
            print(f"{count:6d}  {kind}: {outcome}")
    print(*wrong, sep="\n")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
