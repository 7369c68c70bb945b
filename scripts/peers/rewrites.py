#!/usr/bin/env python3
"""Runs PyTorch's own rewrites on real graphs, and judges them by `fxopt verify --against`.

    scripts/peers/rewrites.py [--fxopt PROGRAM] [--only REWRITE]... [NAME...]

Joint graphs of testdata are cut by the default and the min-cut partitioner; both graphs are
compared as one step. Every graph goes through AOTAutograd's CSE, dead code, remat on the tags of
each policy, and Inductor's joint-graph passes. A small step with an in-place activation, which
PyTorch 2.15 gets wrong, goes through remat; it is executed as well. Prints for each: nodes, the
verdict, the first difference, seconds of the fxopt program. Read any verdict other than "proved" by
hand: `differs` may be an algebraic rewrite rule, or a mistake in PyTorch's pass. Needs torch; no
GPU.
"""

from __future__ import annotations

import contextlib
import json
import pathlib
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator

from command import ROOT, command_line
import torch
from fxopt import bridge
from fxopt.reader import init_fake_groups
from fxopt_program import Fxopt
from memory import load
from remat_sides import torch_remat
from step_memory import as_json, cut
from torch._functorch.compile_utils import fx_graph_cse
from torch._functorch.partitioners import default_partition, min_cut_rematerialization_partition
from torch._inductor.fx_passes import joint_graph
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import CheckpointPolicy

JOINT = ("gpt2_joint", "gpt2_joint_twin", "resnet50_joint", "resnet50_joint_twin", "llama8b_joint", "llama8b_joint_twin")
WHOLE = ("gpt2_flb", "gpt2_flb_twin", "resnet50_flb", "resnet50_flb_twin", "llama8b_flb_twin", "llama1b_twin", "issue178935_selective")
PARTITIONS = {"default partition": default_partition, "min-cut partition": min_cut_rematerialization_partition}


def cse(graph_module: GraphModule) -> GraphModule:
    return GraphModule(graph_module, fx_graph_cse(graph_module.graph))


def dead_code(graph_module: GraphModule) -> GraphModule:
    graph_module.graph.eliminate_dead_code()
    return graph_module


class OnCpu(TorchDispatchMode):
    """Makes tensors on the CPU that are requested on another device."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # noqa: ANN001, ANN204, ARG002  # as PyTorch has it
        told = dict(kwargs or {})
        if told.get("device") is not None:
            told["device"] = torch.device("cpu")
        return func(*args, **told)


class Folder(joint_graph.UniformValueConstantFolder):
    """Inductor's constant folding, which calculates constants of one element, on the CPU; new nodes
    keep their device."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        with OnCpu():
            super().__init__(*args, **kwargs)

    def run(self) -> object:
        with OnCpu():
            return super().run()


def inductor(graph_module: GraphModule) -> GraphModule:
    joint_graph.UniformValueConstantFolder = Folder
    joint_graph.joint_graph_passes(graph_module)
    return graph_module


REWRITES: dict[str, Callable[[GraphModule], GraphModule]] = {
    "CSE": cse, "dead code": dead_code, "remat on tags": torch_remat, "Inductor joint-graph": inductor,
}  # fmt: skip


def in_place_activation(inputs: list[torch.Tensor]) -> GraphModule:
    """A step whose product is saved and whose in-place sigmoid is recomputed: it writes into the
    saved product."""

    def step(x: torch.Tensor, weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = torch.ops.aten.sigmoid_.default(x @ weight)
        gradient = torch.ones_like(hidden) * (hidden * (1 - hidden))
        return hidden.sum(), x.t() @ gradient

    graph_module = make_fx(step)(*inputs)
    is_backward = False
    for node in graph_module.graph.nodes:
        is_backward = is_backward or node.target is torch.ops.aten.ones_like.default
        if node.op == "call_function" and is_backward:
            node.meta["autograd_backward"] = True
        elif node.op == "call_function":
            is_product = node.target is torch.ops.aten.mm.default
            node.meta["recompute"] = CheckpointPolicy.MUST_SAVE if is_product else CheckpointPolicy.MUST_RECOMPUTE
    return graph_module


def made_row(fxopt: Fxopt, folder: pathlib.Path) -> tuple[int, str, float]:
    inputs = [torch.randn(4, 4), torch.randn(4, 4)]
    graph_module = in_place_activation(inputs)
    wanted = graph_module(*inputs)
    source, target = folder / "before.pb", folder / "after.pb"
    bridge.save(graph_module, source, fxopt=fxopt.program)
    result = torch_remat(graph_module)
    bridge.save(result, target, fxopt=fxopt.program)
    is_equal = all(map(torch.equal, wanted, result(*inputs)))
    verdict, seconds = judge(fxopt, source, [target])
    return len(result.graph.nodes), f"{verdict}; executed: {'equal' if is_equal else 'other'}", seconds


def judge(fxopt: Fxopt, before: pathlib.Path, after: list[pathlib.Path], *more: str) -> tuple[str, float]:
    """The program's verdict and first message, in one line."""
    start = time.perf_counter()
    run = subprocess.run(
        [fxopt.program, "verify", *map(str, after), "--against", str(before), "--json", *more], capture_output=True, text=True
    )
    seconds = time.perf_counter() - start
    told = json.loads(run.stdout)
    result = told["result"].get("step") or told["result"]["files"][0]
    verdict = str(result.get("proof", "broken"))
    first = next(iter([*told["errors"], *(each for each in told["warnings"] if each["code"] == "undecided")]), None)
    if first is None:
        return verdict, seconds
    node = f" at %{first['where']['node']}" if first["where"].get("node") else ""
    return f"{verdict}: {first['message']}{node}", seconds


def rows(fxopt: Fxopt, name: str, wanted: list[str], folder: pathlib.Path) -> Iterator[tuple[str, int, str, float]]:
    path = ROOT / "testdata" / (f"{name}.pb" if (ROOT / "testdata" / f"{name}.pb").exists() else f"{name}.pb.zst")
    for how, partition in PARTITIONS.items() if name in JOINT else ():
        if how in wanted:
            pair, files = cut(fxopt, name, folder, partition)
            nodes = sum(len(side.graph.nodes) for side in (pair.forward, pair.backward))
            yield how, nodes, *judge(fxopt, path, files["roles"], "--step")
    for how, rewrite in REWRITES.items():
        if how in wanted:
            yield how, *whole(fxopt, path, rewrite, folder)


def whole(fxopt: Fxopt, path: pathlib.Path, rewrite: Callable[[GraphModule], GraphModule], folder: pathlib.Path) -> tuple[int, str, float]:
    module = as_json(fxopt, path, folder)
    if module.get("groups"):
        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()
        init_fake_groups(module)
    graph_module = load(module, folder)
    source, target = folder / "before.pb", folder / "after.pb"
    bridge.save(graph_module, source, fxopt=fxopt.program)
    try:
        result = rewrite(graph_module)
    except Exception as error:  # noqa: BLE001  # any exception of PyTorch's pass is its result
        return len(graph_module.graph.nodes), f"the pass raises {type(error).__name__}: {str(error).splitlines()[0][:80]}", 0.0
    bridge.save(result, target, fxopt=fxopt.program)
    return len(result.graph.nodes), *judge(fxopt, source, [target])


def main() -> int:
    parser = command_line(__doc__)
    parser.add_argument("--only", action="append", choices=[*PARTITIONS, *REWRITES], metavar="REWRITE", help="repeatable")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"graphs (default: {' '.join((*JOINT, *WHOLE))})")
    options = parser.parse_args()
    fxopt = Fxopt(options.fxopt)
    warnings.simplefilter("ignore")
    print("| graph | rewrite | nodes | verdict | seconds |\n|---|---|---|---|---|")
    for name in options.names or (*JOINT, *WHOLE):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(None):
            for how, nodes, verdict, seconds in rows(fxopt, name, options.only or [*PARTITIONS, *REWRITES], pathlib.Path(folder)):
                print(f"| {name} | {how} | {nodes} | {verdict} | {seconds:.2f} |", flush=True)
    if not options.names and (options.only is None or "remat on tags" in options.only):
        with tempfile.TemporaryDirectory() as folder:
            nodes, verdict, seconds = made_row(fxopt, pathlib.Path(folder))
            print(f"| in place activation | remat on tags | {nodes} | {verdict} | {seconds:.2f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
