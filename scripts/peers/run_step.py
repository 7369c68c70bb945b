#!/usr/bin/env python3
"""Runs training steps by `fxopt run` and by PyTorch on equal inputs and draws; compares outputs.

    scripts/peers/run_step.py FILE... [--fxopt PROGRAM] [--seed N] [--write FOLDER]

Inputs are generated as by `--fill random`: this script repeats the generator. Dropout masks are
taken from fxopt's run. PyTorch executes the graph in the file node by node. Its outputs are passed
to `fxopt run --expect`, under `--tolerance auto`. The largest distance of both from PyTorch's step
in float64 is printed beside it. Exits with 1 if one differs. --write keeps PyTorch's outputs as
FOLDER/NAME.safetensors. Needs torch, numpy and safetensors.
"""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import tempfile

from command import command_line, program_of
import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch.fx import GraphModule, Interpreter, Node

import fxopt

DROPOUT = torch.ops.aten.native_dropout.default


def philox(seed: int, high: int, low: np.ndarray) -> np.ndarray:
    """Four words of Philox 4x32-10 for each counter (low, high)."""
    mask = np.uint64(0xFFFFFFFF)
    c = [low & mask, low >> np.uint64(32), np.full_like(low, high & 0xFFFFFFFF), np.full_like(low, high >> 32)]
    k = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        a, b = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = [(b >> np.uint64(32)) ^ c[1] ^ np.uint64(k[0]), b & mask, (a >> np.uint64(32)) ^ c[3] ^ np.uint64(k[1]), a & mask]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return np.stack(c, axis=-1)


def words(seed: int, slot: int, count: int) -> np.ndarray:
    counters = np.arange((count + 3) // 4, dtype=np.uint64)
    return philox(seed, slot, counters).reshape(-1)[:count]


def index_bound(node: Node) -> int:
    """The rows of the smallest table that a node's elements index, through views and copies."""
    bound = 1 << 62
    for user in node.users:
        name = str(user.target)
        if name == "aten.embedding.default" and user.args[1] is node:
            bound = min(bound, user.args[0].meta["val"].shape[0])
        elif name == "aten.embedding_dense_backward.default" and user.args[1] is node:
            bound = min(bound, user.args[2])
        elif name.startswith("aten.nll_loss") and node in user.args[1:3]:
            table = user.args[0] if "forward" in name else user.args[1]
            bound = min(bound, table.meta["val"].shape[-1])
        elif name in ("aten.clone.default", "aten._to_copy.default") or getattr(user.target, "is_view", False):
            bound = min(bound, index_bound(user))
    return bound


def fnv1a(text: str) -> int:
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


def make_up(node: Node, name: str, role: str, seed: int) -> torch.Tensor:
    value = node.meta["val"]
    count = value.numel()
    drawn = words(seed, fnv1a(name), count)
    if not value.dtype.is_floating_point:
        bound = min(index_bound(node), 1 << 62)
        bound = 2 if bound == 1 << 62 else bound
        whole = (drawn * np.uint64(bound)) >> np.uint64(32)
        return torch.from_numpy(whole.astype(np.int64)).to(value.dtype).reshape(value.shape)
    uniform = (drawn >> np.uint64(8)).astype(np.float64) * 2.0**-24
    scale = 1.0
    if role == "parameter":
        scale = 0.5 if value.dim() < 2 else 1 / np.sqrt(float(max(value.shape[-1], 1)))
    made = uniform * 0.01 if role == "optimizer_state" else (2 * uniform - 1) * scale
    return torch.from_numpy(made).to(value.dtype).reshape(value.shape)


class WithMasks(Interpreter):
    """Takes dropout masks from a table; runs everything on the CPU, in float64 if requested."""

    def __init__(self, graph: GraphModule, masks: dict[str, torch.Tensor], *, wide: bool) -> None:
        super().__init__(graph)
        self.masks, self.wide = masks, wide

    def run_node(self, node: Node) -> object:
        if node.target is DROPOUT:
            x, p, _ = self.fetch_args_kwargs_from_env(node)[0]
            mask = self.masks[node.name + ".1"]
            return x * mask * (0.0 if p == 1 else 1 / (1 - p)), mask
        if node.op == "call_function" and ("device" in node.kwargs or "dtype" in node.kwargs):
            kwargs = dict(node.kwargs)
            if "device" in kwargs:
                kwargs["device"] = torch.device("cpu")
            if self.wide and getattr(kwargs.get("dtype"), "is_floating_point", False):
                kwargs["dtype"] = torch.float64
            args = self.fetch_args_kwargs_from_env(node)[0]
            return node.target(*args, **kwargs)
        if self.wide and "_softmax_backward_data" in str(node.target):
            g, y, dim, _ = self.fetch_args_kwargs_from_env(node)[0]
            return node.target(g, y, dim, torch.float64)
        return super().run_node(node)


def execute(graph: GraphModule, inputs: list[torch.Tensor], masks: dict[str, torch.Tensor], *, wide: bool) -> list[torch.Tensor]:
    if wide:
        inputs = [x.double() if x.dtype.is_floating_point else x for x in inputs]
    with torch.no_grad():
        results = WithMasks(graph, masks, wide=wide).run(*inputs)
    return torch.utils._pytree.tree_leaves(results)


def specs_of(path: str, program: str) -> dict[str, tuple[str, str]]:
    """By placeholder: the role in the file, and the model's name for it."""
    graph = fxopt.read_module(path, fxopt=program)["graphs"][0]
    specs = {node["name"]: node["input"] for node in graph["nodes"] if node.get("input")}
    return {name: (spec.get("role", "").lower().removeprefix("input_role_"), spec.get("fqn", "")) for name, spec in specs.items()}


def make_up_all(graph: GraphModule, path: str, program: str, seed: int) -> list[torch.Tensor]:
    """Generates inputs; inputs on one storage are one tensor: the first."""
    specs = specs_of(path, program)
    made: dict[int, torch.Tensor] = {}
    inputs = []
    for node in graph.graph.nodes:
        if node.op != "placeholder":
            continue
        role, fqn = specs.get(node.name, ("", ""))
        storage = node.meta["val"].untyped_storage()._cdata
        if storage not in made:
            made[storage] = make_up(node, fqn or node.name, role, seed)
        inputs.append(made[storage])
    return inputs


def run(program: str, *arguments: str) -> tuple[int, dict, str]:
    done = subprocess.run([program, "run", *arguments, "--json"], capture_output=True, text=True, check=False)
    envelope = json.loads(done.stdout)
    return done.returncode, envelope.get("result", {}), json.dumps(envelope.get("errors", []))


def check_file(path: str, program: str, seed: int, write: pathlib.Path | None) -> bool:
    graph = fxopt.load(path, fxopt=program)
    inputs = make_up_all(graph, path, program, seed)
    dropouts = [node.name for node in graph.graph.nodes if node.target is DROPOUT]
    with tempfile.TemporaryDirectory() as folder:
        ours = str(pathlib.Path(folder) / "ours.safetensors")
        saves = [word for name in dropouts for word in ("--save", name)]
        code, _, errors = run(program, path, "--fill", "random", "--seed", str(seed), "--output", ours, *saves)
        if code != 0:
            print(f"{path}: fxopt run exits with {code}: {errors}")
            return False
        got = load_file(ours)
        masks = {name: value for name, value in got.items() if name.endswith(".1")}
        eager = execute(graph, inputs, masks, wide=False)
        wide = execute(graph, inputs, masks, wide=True)
        pairs = {name: pair for name, *pair in zip(output_names(path, program), eager, wide, strict=True) if isinstance(pair[0], torch.Tensor)}
        outputs = {name: value for name, (value, _) in pairs.items()}
        expected = pathlib.Path(folder) / "expected.safetensors"
        save_file({name: value.contiguous().clone() for name, value in outputs.items()}, expected)
        code, result, errors = run(program, path, "--fill", "random", "--seed", str(seed), "--expect", str(expected))
        distance = {"fxopt": 0.0, "PyTorch": 0.0}
        for name, (there, exact) in pairs.items():
            if not there.dtype.is_floating_point:
                continue
            size = exact.abs().max().item() or 1.0
            for who, value in (("fxopt", got[name]), ("PyTorch", there)):
                distance[who] = max(distance[who], (value.double() - exact).abs().max().item() / size)
        compared = len(result.get("comparison", []))
        verdict = "ok" if code == 0 else f"DIFFERS {errors}"
        print(f"{path}: {compared} outputs, largest distance from float64: fxopt {distance['fxopt']:.2e}, PyTorch {distance['PyTorch']:.2e}: {verdict}")
        if write is not None:
            name = pathlib.Path(path).name.split(".")[0]
            save_file({name: value.contiguous().clone() for name, value in outputs.items()}, write / f"{name}.safetensors")
        return code == 0 and compared == len(outputs)


def output_names(path: str, program: str) -> list[str]:
    """The names of all outputs, as `fxopt run` writes them in files."""
    return run(program, path, "--dry-run")[1]["output_names"]


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", type=pathlib.Path, metavar="FOLDER", help="keep PyTorch's outputs")
    args = parser.parse_args()
    program = program_of(args)
    results = [check_file(path, program, args.seed, args.write) for path in args.files]
    sys.exit(not all(results))


if __name__ == "__main__":
    main()
