"""Measure the seconds of a graph's calls by running it. The result is a Measurement of
schemas/profile.proto. Needs torch."""

from __future__ import annotations

import json
import os
import pathlib
import statistics
import time
from collections.abc import Sequence

import torch
from torch.fx import GraphModule, Interpreter, Node
from torch.fx.node import map_arg
from torch.utils import _pytree as pytree
from torch.utils._dtype_abbrs import dtype_abbrs

from fxopt.form import Json
from fxopt.writer import Exporter, in_file_order

_VERSION = 1  # the schema's version
_COLLECTIVES = ("_c10d_functional", "_c10d_functional_autograd")


def measure(
    graph_module: GraphModule,
    *inputs: object,
    file: str | os.PathLike[str] | None = None,
    name: str = "main",
    runs: int = 5,
    warmups: int = 2,
) -> Json:
    """Runs a graph `warmups` + `runs` times and returns the median seconds of each call.

    inputs: real tensors, one for each placeholder. Each run writes to the inputs that the graph
        mutates.
    file: the JSON file to write the measurement to, if any.
    name: the graph's name, as in save(). Uids are those that save() assigns.

    On a GPU a call's seconds are the time between two events of its stream. A collective's are the
    time from its start to its end with nothing running beside it. Calls without tensor operands and
    results are left out. Several ranks run it together, each with its own file.
    """
    nodes = _numbered(graph_module, name)
    seconds: dict[Node, list[float]] = {}
    types: dict[Node, str] = {}
    device = _device_of(inputs)
    for run in range(warmups + runs):
        timer = _Timer(graph_module, device)
        timer.run(*inputs)
        for node, took in timer.seconds().items():
            if run >= warmups:
                seconds.setdefault(node, []).append(took)
        types = timer.types
    calls = [
        {"uid": message["uid"], "target": message["target"], "types": types[node], "seconds": statistics.median(took)}
        for node, message in nodes
        if types.get(node, "") and (took := seconds.get(node))
    ]
    measured: Json = {
        "version": _VERSION,
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
        "software": [{"name": "torch", "version": torch.__version__}],
        "method": "cuda events" if device.type == "cuda" else "perf_counter",
        "runs": runs,
        "graphs": [{"graph": name, "nodes": calls}],
    }
    if file is not None:
        target = pathlib.Path(file)
        part = target.with_name(target.name + ".part")
        part.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
        part.replace(target)
    return measured


def _numbered(graph_module: GraphModule, name: str) -> list[tuple[Node, Json]]:
    """Returns the main graph's calls, each with the message that save() writes for it."""
    exporter = Exporter(pathlib.Path("graph.json"))
    main = exporter.module(graph_module, name=name)["graphs"][0]
    return [
        (node, message)
        for node, message in zip(in_file_order(graph_module.graph), main["nodes"], strict=True)
        if node.op == "call_function"
    ]


def _device_of(inputs: Sequence[object]) -> torch.device:
    devices = [leaf.device for leaf in pytree.tree_leaves(inputs) if isinstance(leaf, torch.Tensor)]
    return next((device for device in devices if device.type == "cuda"), torch.device("cpu"))


class _Timer(Interpreter):
    """One run that records each call's tensor types and seconds."""

    def __init__(self, graph_module: GraphModule, device: torch.device) -> None:
        super().__init__(graph_module)
        self.types: dict[Node, str] = {}
        self._cuda = device if device.type == "cuda" else None
        self._took: dict[Node, float] = {}
        self._events: dict[Node, tuple[torch.cuda.Event, torch.cuda.Event]] = {}

    def seconds(self) -> dict[Node, float]:
        if self._cuda is None:
            return self._took
        torch.cuda.synchronize(self._cuda)
        return self._took | {node: begin.elapsed_time(end) / 1e3 for node, (begin, end) in self._events.items()}

    def run_node(self, n: Node) -> object:
        if n.op != "call_function":
            return super().run_node(n)
        taken: list[Node] = []
        map_arg((n.args, n.kwargs), taken.append)
        given = _types(self.env[node] for node in taken)
        result = self._timed_collective(n) if _is_collective(n) else self._timed(n)
        made = _types([result])
        self.types[n] = f"{given} -> {made}" if given or made else ""
        return result

    def _timed(self, n: Node) -> object:
        if self._cuda is None:
            begin = time.perf_counter()
            result = super().run_node(n)
            self._took[n] = time.perf_counter() - begin
            return result
        events = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        events[0].record()
        result = super().run_node(n)
        events[1].record()
        self._events[n] = events
        return result

    def _timed_collective(self, n: Node) -> object:
        """With its wait: the graph's own wait then finds it done."""
        self._synchronize()
        begin = time.perf_counter()
        result = super().run_node(n)
        for leaf in pytree.tree_leaves(result):
            if isinstance(leaf, torch.Tensor):
                torch.ops._c10d_functional.wait_tensor(leaf)
        self._synchronize()
        self._took[n] = time.perf_counter() - begin
        return result

    def _synchronize(self) -> None:
        if self._cuda is not None:
            torch.cuda.synchronize(self._cuda)


def _is_collective(node: Node) -> bool:
    return getattr(node.target, "namespace", "") in _COLLECTIVES and "wait_tensor" not in str(node.target)


def _types(values: object) -> str:
    """Prints tensor types: "bf16[8,16], bf16[16,4]:1,16". Strides follow unless row-major."""
    return ", ".join(_type(leaf) for leaf in pytree.tree_leaves(list(values)) if isinstance(leaf, torch.Tensor))


def _type(tensor: torch.Tensor) -> str:
    text = f"{dtype_abbrs[tensor.dtype]}[{','.join(map(str, tensor.shape))}]"
    if tensor.layout != torch.strided or _is_row_major(tensor):
        return text
    return f"{text}:{','.join(map(str, tensor.stride()))}"


def _is_row_major(tensor: torch.Tensor) -> bool:
    expected = 1
    for size, stride in zip(reversed(tensor.shape), reversed(tensor.stride()), strict=True):
        if size != 1 and stride != expected:
            return False
        expected *= max(size, 1)
    return True
