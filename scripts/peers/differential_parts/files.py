"""Graph files as programs: inputs for their placeholders, and an execution before and after a
pipeline."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import pathlib
import tempfile
from collections.abc import Callable, Mapping, Sequence

import torch
from fxopt import bridge, form
from fxopt.tool import FxoptError
from torch import Tensor
from torch.fx import GraphModule, Node

from differential_parts import campaign, observe
from differential_parts.collectives import SimulatedRanks, join_group
from differential_parts.optimize import Optimizer
from differential_parts.programs import FAILING, WORLD, Dice, Program, Unusable, asking_gradients


def judge(
    path: pathlib.Path, passes: str, fxopt: str, known: Mapping[str, Tensor] | None = None, *, by_apply: bool = False
) -> list[str]:
    """The differences. Raises Unusable if the file cannot be executed or its own executions differ,
    FxoptError if fxopt refuses it. known: values for placeholders of these names, used if they fit
    the recorded ones."""
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "before.json"
        module, program = runnable(path, source, fxopt, known)
        graph_module = program.graph_module
        before = campaign.run_graph(program, graph_module)
        if may_be_differentiated(module):
            asking = dataclasses.replace(program, inputs=asking_gradients(program.inputs), has_gradients=True)
            seen = campaign.run_graph(asking, graph_module)
            if seen.error is None:
                program, before = asking, seen
        if before.error is not None and FAILING not in before.error:
            raise Unusable(before.error)
        if observe.differences(before, campaign.run_graph(program, graph_module)):
            raise Unusable("two runs of the original differ")
        optimizer = Optimizer(program, fxopt, source)
        try:
            after = optimizer.apply(passes) if by_apply else optimizer.run(passes)
        except FxoptError as error:
            if error.code != campaign.NOT_EQUIVALENT:
                raise
            after = optimizer.run(passes, prove=False)  # the proof stopped it
        return campaign.differences(before, campaign.run_graph(program, after.graph_module), passes)


def runnable(
    path: pathlib.Path, source: pathlib.Path, fxopt: str, known: Mapping[str, Tensor] | None = None
) -> tuple[dict, Program]:
    """The file as a program on the CPU, written to `source` in the JSON form, and the module.
    Raises Unusable if it cannot be executed, or if its recorded values are wrong."""
    module = bridge.read_module(path, fxopt)
    put_on_cpu(module)
    form.write_json(module, source)
    if "_c10d_functional." in source.read_text(encoding="utf-8"):
        join_group(WORLD)
    graph_module = bridge.load(source, fxopt=fxopt)
    program = Program(graph_module, inputs_of(graph_module, known or {}), told=_told(module))
    check_values(graph_module, program.inputs())
    return module, program


def _told(module: dict) -> dict[str, object]:
    graph = module["graphs"][0]
    return {"kind": graph["kind"].removeprefix("GRAPH_KIND_").lower()} if "kind" in graph else {}


def may_be_differentiated(module: dict) -> bool:
    """Whether nothing in the file shows that its main graph has a backward already."""
    graph = module["graphs"][0]
    return "kind" not in graph and not any("phase_markers" in node or "phase" in node for node in graph["nodes"])


class _Checked(torch.fx.Interpreter):
    """Executes a graph and compares each node's result with the value that the file records."""

    def run_node(self, node: Node) -> object:
        result, value = super().run_node(node), node.meta.get("val")
        if isinstance(result, Tensor) and isinstance(value, Tensor):
            if value.dtype != result.dtype or not _agree(value.shape, result.shape) or not _agree(_strides(value), _strides(result)):
                raise Unusable(f"%{node.name} differs from the value that the file records")
        return result


def _strides(value: Tensor) -> list[int | torch.SymInt]:
    """Strides, with 1 for dimensions of size 1: there they mean nothing, and kernels and fake
    tensors differ."""
    return [1 if isinstance(size, int) and size == 1 else stride for size, stride in zip(value.shape, value.stride())]


def _agree(told: Sequence[int | torch.SymInt], found: Sequence[int]) -> bool:
    """Whether sizes or strides are as recorded; symbols match anything."""
    return len(told) == len(found) and all(left == right for left, right in zip(told, found) if isinstance(left, int))


def check_values(graph_module: GraphModule, inputs: list[object]) -> None:
    """Raises Unusable if a recorded value is wrong, which shrinking a file may cause: passes rely
    on them."""
    attributes = observe.attributes_of(graph_module)
    try:
        with observe.kept(attributes), torch.no_grad(), SimulatedRanks(), contextlib.redirect_stdout(io.StringIO()):
            _Checked(graph_module).run(*inputs)
    except RuntimeError as error:
        if FAILING not in str(error):
            raise Unusable(f"it cannot be run: {str(error).splitlines()[0]}") from error


def put_on_cpu(message: object) -> None:
    """Sets the CPU as the device of every tensor without one: a file written by hand may omit
    it."""
    if isinstance(message, list):
        for item in message:
            put_on_cpu(item)
    if isinstance(message, dict):
        if "dtype" in message and "sizes" in message:
            message.setdefault("device", "cpu")
        for item in message.values():
            put_on_cpu(item)


def inputs_of(graph_module: GraphModule, known: Mapping[str, Tensor]) -> Callable[[], list[object]]:
    """Real inputs like the values of the placeholders; those on one storage share one. Raises
    Unusable if a placeholder has no value."""
    nodes = graph_module.graph.find_nodes(op="placeholder")

    def inputs() -> list[object]:
        dice, storages = Dice(1), {}
        return [_input(node, dice, storages, known.get(node.name)) for node in nodes]

    return inputs


def _input(node: Node, dice: Dice, storages: dict[object, Tensor], known: Tensor | None) -> object:
    value = node.meta.get("val", node.meta.get("example_value"))
    if value is None and known is not None:
        return known.clone()
    if isinstance(value, torch.SymInt | torch.SymFloat):
        return value.node.hint
    if value is None:
        raise Unusable(f"placeholder {node.name} has no value")
    if not isinstance(value, Tensor):
        return value
    sizes, strides, offset = ([_number(item) for item in items] for items in (value.shape, value.stride(), [value.storage_offset()]))
    elements = offset[0] + 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides)) if 0 not in sizes else offset[0]
    key = value.untyped_storage()._cdata
    base = storages.get(key)
    is_new = base is None or base.numel() < elements or base.dtype != value.dtype
    if is_new:
        storages[key] = base = _numbers(elements, value.dtype, dice)
    result = torch.as_strided(base, sizes, strides, offset[0])
    if is_new and 0 not in strides and known is not None and (known.shape, known.dtype) == (result.shape, result.dtype):
        result.copy_(known)
    return result


def values_of(program: Program) -> dict[str, Tensor]:
    """The tensor result of each node, by name, when the program is executed."""
    graph_module = program.graph_module
    values = _Values(graph_module)
    with observe.kept(observe.attributes_of(graph_module)), torch.no_grad(), SimulatedRanks(), contextlib.suppress(RuntimeError):
        values.run(*program.inputs())
    return values.found


class _Values(torch.fx.Interpreter):
    """Executes a graph and keeps copies of its nodes' tensor results."""

    def __init__(self, graph_module: GraphModule) -> None:
        super().__init__(graph_module)
        self.found: dict[str, Tensor] = {}

    def run_node(self, node: Node) -> object:
        result = super().run_node(node)
        if isinstance(result, Tensor):
            self.found[node.name] = result.detach().clone()
        return result


def _number(size: object) -> int:
    return int(size.node.hint) if isinstance(size, torch.SymInt) else int(size)


def _numbers(count: int, dtype: torch.dtype, dice: Dice) -> Tensor:
    if dtype == torch.bool:
        return torch.tensor([dice.chance(0.5) for _ in range(count)], dtype=dtype)
    if dtype.is_floating_point or dtype.is_complex:
        return dice.tensor((count,)).to(dtype)
    return torch.tensor([dice.randrange(2) for _ in range(count)], dtype=dtype)


def listing(graph_module: GraphModule) -> str:
    """The graph as text, each node with its tag and phase."""
    lines = []
    for node in graph_module.graph.nodes:
        marks = [str(node.meta["recompute"]).rpartition(".")[2]] if "recompute" in node.meta else []
        marks += ["backward"] if node.meta.get("autograd_backward") else []
        lines.append(f"  {node.format_node() or f'return {node.args[0]}'}" + (f"  # {', '.join(marks)}" if marks else ""))
    return "\n".join(lines).replace("torch.ops.", "")
