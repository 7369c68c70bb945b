#!/usr/bin/env python3
"""Tries the advice of `fxopt run --dry-run` for operators without a row, on the first call of each.

    scripts/peers/remedies.py FILE... [--fxopt PROGRAM] [--import MODULE]...

  decompose        the call is traced with PyTorch's decomposition: the operator must be gone
  trace its body   the same with the operator's Python function
  other attention  scaled_dot_product_attention is traced on the call's query, key and value:
                   PyTorch must have kernels for all its calls
  PyTorch          if the list names PyTorch as provider, the kernel must be registered for the
                   CPU, or listed by torchgen for CUDA

Prints for each operator the advice and its result. Exits with 1 if one does not hold. Needs torch,
and the libraries whose operators the file calls.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Callable

from command import command_line, program_of
import torch
from torch._subclasses import FakeTensorMode
from torch.fx import GraphModule, Node
from torch.fx.experimental.proxy_tensor import make_fx

import fxopt

EVERYWHERE = ("CompositeImplicitAutograd", "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional")


def has_kernel(target: torch._ops.OpOverload, key: str) -> bool:
    name = target._schema.name + ("." + target._overloadname if target._overloadname != "default" else "")
    return any(torch._C._dispatch_has_kernel_for_dispatch_key(name, k) for k in (key, *EVERYWHERE))


def values_of(node: Node) -> tuple[list, dict]:
    """The arguments of a call, with nodes replaced by their recorded values."""
    return torch.fx.map_arg((list(node.args), dict(node.kwargs)), lambda n: n.meta["val"])


def traced(call: Callable, tensors: list[torch.Tensor], table: dict) -> set[str]:
    graph = make_fx(call, decomposition_table=table, tracing_mode="real", _allow_non_fake_inputs=True)(*tensors)
    return {str(n.target) for n in graph.graph.nodes if n.op == "call_function" and "getitem" not in str(n.target)}


def retrace(node: Node, table: dict) -> set[str]:
    """The operators of the single call, traced with the table."""
    args, kwargs = values_of(node)
    leaves, spec = torch.utils._pytree.tree_flatten((args, kwargs))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    mode = next((leaves[i].fake_mode for i in places if hasattr(leaves[i], "fake_mode")), FakeTensorMode())

    def call(*tensors: torch.Tensor) -> object:
        filled = list(leaves)
        for place, tensor in zip(places, tensors, strict=True):
            filled[place] = tensor
        given, named = torch.utils._pytree.tree_unflatten(filled, spec)
        return node.target(*given, **named)

    with mode:
        return traced(call, [leaves[i] for i in places], table)


def try_remedy(node: Node, remedy: str) -> tuple[bool, str]:
    target = node.target
    if remedy == "decompose":
        after = retrace(node, torch._decomp.core_aten_decompositions())
    elif remedy == "trace its body":
        name = target._schema.name
        after = retrace(node, {target: torch._library.custom_ops.OPDEFS[name]._init_fn})
    elif remedy == "other attention":
        query, key, value = (argument.meta["val"] for argument in node.args[:3])
        with query.fake_mode:
            after = traced(torch.nn.functional.scaled_dot_product_attention, [query, key, value], {})
        return all(name.startswith("aten.") for name in after), ", ".join(sorted(after))
    else:
        return True, ""
    return str(target) not in after, ", ".join(sorted(after))


def check_kernel(target: object, provider: str, operand_is_cuda: bool, cuda: set[str]) -> bool:
    """Whether `provider` agrees with PyTorch's registry."""
    if not str(target).startswith("aten."):
        return provider == "none"
    there = str(target) not in cuda if operand_is_cuda else has_kernel(target, "CPU")
    return there == (provider == "pytorch")


def without_cuda() -> set[str]:
    from make_op_table import kernel_lists

    return {"aten." + (name if "." in name else name + ".default") for name in kernel_lists()["kNoCudaKernel"]}


def find_node(root: GraphModule, name: str) -> Node | None:
    graphs = [module.graph for module in root.modules() if isinstance(module, GraphModule)]
    return next((node for graph in graphs for node in graph.nodes if node.name == name), None)


def check_file(path: str, program: str, cuda: set[str]) -> int:
    told = subprocess.run([program, "run", path, "--dry-run", "--json"], capture_output=True, text=True, check=False)
    rows = json.loads(told.stdout)["result"]["operators"]
    loaded = fxopt.load(path, fxopt=program)
    wrong = 0
    for row in rows:
        if row["provider"] == "own":
            continue
        node = find_node(loaded, row["first"])
        if node is None:
            print(f"WRONG {row['operator']}: no node {row['first']} in {path}")
            wrong += 1
            continue
        try:
            held, after = try_remedy(node, row["remedy"])
        except Exception as error:  # noqa: BLE001 (the script looks for advice that fails)
            held, after = False, f"{type(error).__name__}: {str(error).splitlines()[0][:120]}"
        value = node.meta.get("val")
        first = value[0] if isinstance(value, (tuple, list)) else value
        is_cuda = isinstance(first, torch.Tensor) and first.device.type == "cuda"
        known = check_kernel(node.target, row["provider"], is_cuda, cuda)
        wrong += not (held and known)
        print(f"{'ok   ' if held and known else 'WRONG'} {row['operator']}: {row['remedy']}, PyTorch {row['provider']}{': ' + after if after else ''}")
    return wrong


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--import", dest="modules", action="append", default=[], metavar="MODULE", help="registers operators; repeatable")
    args = parser.parse_args()
    for module in args.modules:
        importlib.import_module(module)
    program = program_of(args)
    cuda = without_cuda()
    wrong = sum(check_file(path, program, cuda) for path in args.files)
    print(f"{len(args.files)} files: {wrong} wrong")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
