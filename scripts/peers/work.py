#!/usr/bin/env python3
"""Compares fxopt's counts of floating-point operations in graphs with torch.utils.flop_counter's.

  work.py [--fxopt PROGRAM] [GRAPH...]     default: the graphs of testdata

Both count the same operators: those for which PyTorch has a formula. Operators that only fxopt
counts are printed beside. Symbols have the values of their hints; a graph with other symbols is
left out. Exits with 1 if a graph's count differs.
"""

from __future__ import annotations

import pathlib
import sys

from command import ROOT, command_line
import torch
from torch.fx import GraphModule, Node
from torch.utils._pytree import tree_map
from torch.utils.flop_counter import flop_registry


from fxopt import bridge
from fxopt_program import Fxopt

# Operators that fxopt counts and PyTorch has no formula for.
OWN = ("aten.mv.default", "aten.dot.default", "aten.linear.default", "aten.matmul.default")


def _value(node: Node) -> object:
    return node.meta.get("val")


def _hinted(value: object) -> object:
    """A size without symbols: a small copy of the tensor on the meta device, with hints as
    sizes."""
    if isinstance(value, torch.Tensor):
        sizes = [int(size) if isinstance(size, int) else size.node.hint for size in value.shape]
        if None in sizes:
            raise LookupError("a symbol without a hint")
        return torch.empty(sizes, dtype=value.dtype, device="meta")
    if isinstance(value, torch.SymInt):
        return value.node.hint
    return value


def torch_flops(graph_module: GraphModule) -> int:
    """The sum over the calls that PyTorch has a formula for. Raises LookupError if a size is not
    known."""
    total = 0
    for node in graph_module.graph.nodes:
        packet = getattr(node.target, "overloadpacket", None)
        if node.op != "call_function" or packet not in flop_registry:
            continue
        args = tree_map(_hinted, torch.fx.node.map_arg(node.args, _value))
        kwargs = tree_map(_hinted, torch.fx.node.map_arg(node.kwargs, _value))
        total += flop_registry[packet](*args, **kwargs, out_val=tree_map(_hinted, _value(node)))
    return total


def compare(fxopt: Fxopt, path: pathlib.Path) -> tuple[int, int, list[str]]:
    """fxopt's count, PyTorch's, and the operators that only fxopt counts."""
    graph_module = bridge.load(str(path))
    ours = fxopt.run("diff", str(path), str(path))["graphs"][0]["before"]["work"]["flops"]
    own = sorted({str(node.target) for node in graph_module.graph.nodes} & set(OWN))
    return ours, torch_flops(graph_module), own


def main() -> int:
    parser = command_line(__doc__)
    parser.add_argument("graphs", nargs="*", type=pathlib.Path)
    arguments = parser.parse_args()
    graphs = arguments.graphs or sorted((ROOT / "testdata").glob("*.pb*"))
    fxopt = Fxopt(arguments.fxopt)
    print(f"torch {torch.__version__}\n\n| graph | fxopt | torch.utils.flop_counter | ratio | only fxopt counts |\n|---|--:|--:|--:|---|")
    differs = 0
    for path in graphs:
        name = path.name.split(".")[0]
        try:
            ours, theirs, own = compare(fxopt, path)
        except LookupError as error:
            print(f"| {name} | - | - | - | left out: {error} |")
            continue
        ratio = f"{ours / theirs:.6f}" if theirs else "-"
        differs += ours != theirs and not own
        print(f"| {name} | {ours} | {theirs} | {ratio} | {', '.join(own)} |", flush=True)
    return 1 if differs else 0


if __name__ == "__main__":
    sys.exit(main())
