"""Makes the graphs of a kind: by make_fx, torch.export, Dynamo or AOTAutograd, with real inputs for
the placeholders."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import default_partition
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import get_proxy_mode, make_fx
from torch.utils import _pytree as pytree

Function = Callable[..., Any]


@dataclass
class Traced:
    """A graph and the arguments of save(), with a value for each placeholder."""

    graph: Any
    inputs: list[object]
    told: dict[str, Any] = field(default_factory=dict)

    @property
    def graph_module(self) -> GraphModule:
        return self.graph if isinstance(self.graph, GraphModule) else self.graph.graph_module


@dataclass(frozen=True)
class Case:
    kind: str
    name: str
    make: Callable[[], Traced]


CASES: list[Case] = []


def graph(kind: str) -> Callable[[Callable[[], Traced]], Callable[[], Traced]]:
    """Registers a function that makes a graph of a kind."""

    def put(make: Callable[[], Traced]) -> Callable[[], Traced]:
        CASES.append(Case(kind, make.__name__, make))
        return make

    return put


def traces(
    kind: str, inputs: Callable[[], Sequence[object]], *, by: Function | None = None, **told: Any
) -> Callable[[Function], Function]:
    """Registers a function whose graph is traced on these inputs, by traced() or `by`. told: its
    other arguments."""

    def put(function: Function) -> Function:
        CASES.append(Case(kind, function.__name__, lambda: (by or traced)(function, *inputs(), **told)))
        return function

    return put


def differentiates(kind: str, inputs: Callable[[], Sequence[object]], **told: Any) -> Callable[[Function], Function]:
    """The same by differentiated()."""
    return traces(kind, inputs, by=differentiated, **told)


def copies(values: Sequence[object]) -> list[object]:
    """Tensors of the same sizes, strides and offsets on new storages; those that share one share
    one again."""
    storages: dict[int, Tensor] = {}
    objects: dict[int, object] = {}

    def copy(value: object) -> object:
        if not isinstance(value, Tensor):
            return value
        storage = value.untyped_storage()
        if storage._cdata not in storages:
            storages[storage._cdata] = torch.empty(0, dtype=torch.uint8).set_(storage.clone())
        result = torch.empty(0, dtype=value.dtype).set_(
            storages[storage._cdata].untyped_storage(), value.storage_offset(), value.shape, value.stride()
        )
        return result.requires_grad_() if value.requires_grad and value.is_leaf else result

    with torch.no_grad():
        return [objects.setdefault(id(value), copy(value)) for value in values]


def traced(function: Function, *inputs: object, mode: str = "fake", told: dict[str, Any] | None = None) -> Traced:
    """Traces by make_fx; nodes inside gradients() are marked as backward."""
    kept = copies(inputs)
    _backward.clear()
    # an earlier trace of checkpointed code leaves its tags there
    torch.fx.traceback.current_meta.clear()
    with torch.fx.traceback.preserve_node_meta():
        found = make_fx(function, tracing_mode=mode, _allow_non_fake_inputs=True)(*copies(inputs))
    for node in found.graph.nodes:
        if node.name in _backward:
            node.meta["autograd_backward"] = True
    return Traced(found, kept, told or {})


_backward: set[str] = set()  # names of backward nodes in the current trace


def gradients(total: Tensor, wanted: Sequence[Tensor]) -> tuple[Tensor | None, ...]:
    """torch.autograd.grad, whose nodes are recorded as backward."""
    nodes = get_proxy_mode().tracer.graph.nodes
    before = {node.name for node in nodes}
    found = torch.autograd.grad(total, list(wanted), allow_unused=True)
    _backward.update(node.name for node in nodes if node.name not in before)
    return found


def differentiated(function: Function, *inputs: object, mode: str = "fake", wanted: Sequence[int] | None = None) -> Traced:
    """The function's result, its sum, and the gradients of that sum, in one graph. wanted: inputs
    to differentiate by."""
    places = [i for i, value in enumerate(inputs) if isinstance(value, Tensor) and value.is_floating_point()]
    places = list(wanted) if wanted is not None else places

    def step(*given: object) -> list[Tensor]:
        values = [value.detach().requires_grad_() if i in places else value for i, value in enumerate(given)]
        outputs = [leaf for leaf in pytree.tree_leaves(function(*values)) if isinstance(leaf, Tensor)]
        loss = sum((leaf.float() * 1.5).sum() for leaf in outputs if leaf.is_floating_point() and leaf.requires_grad)
        return [loss.detach(), *(leaf.detach() for leaf in outputs), *gradients(loss, [values[i] for i in places])]

    return traced(step, *inputs, mode=mode, told={"kind": "forward_loss_backward"})


def training_step(model: nn.Module, loss: Function, *inputs: object, mode: str = "fake") -> Traced:
    """Forward, loss and the gradients of all parameters. Buffers are inputs that the graph may
    write."""
    names, parameters = zip(*model.named_parameters())
    buffer_names, buffers = zip(*model.named_buffers()) if list(model.buffers()) else ((), ())
    count, buffer_count = len(parameters), len(buffers)

    def step(*given: Tensor) -> list[Tensor]:
        own = [value.detach().requires_grad_() for value in given[:count]]
        state = dict(zip(names, own)) | dict(zip(buffer_names, given[count : count + buffer_count]))
        result = loss(torch.func.functional_call(model, state, given[count + buffer_count :]))
        return [result.detach(), *gradients(result, own)]

    given = [*(value.detach() for value in parameters), *buffers, *inputs]
    return traced(step, *given, mode=mode, told={"kind": "forward_loss_backward"})


class Called(nn.Module):
    """A function as a module."""

    def __init__(self, function: Function) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: object) -> object:
        return self.function(*inputs)


def exported(model: nn.Module | Function, *inputs: object, dynamic: Any = None, decomposed: bool = True) -> Traced:
    """Traces by torch.export: parameters, buffers and constants are inputs."""
    module = model if isinstance(model, nn.Module) else Called(model)
    shapes = {"inputs": dynamic} if dynamic is not None and isinstance(module, Called) else dynamic
    with _quietly():
        program = torch.export.export(module, tuple(copies(inputs)), dynamic_shapes=shapes, strict=False)
        program = program.run_decompositions({}) if decomposed else program
    state = {**program.constants, **program.state_dict}
    leaves = iter(pytree.tree_leaves(tuple(inputs)))
    values = [state[spec.target] if spec.target in state else next(leaves) for spec in program.graph_signature.input_specs]
    return Traced(program, copies([value.detach() if isinstance(value, Tensor) else value for value in values]))


def exported_module(model: nn.Module, *inputs: object, decomposed: bool = True) -> Traced:
    """Traces by torch.export, as a module that has parameters, buffers and constants as
    attributes."""
    with _quietly():
        program = torch.export.export(model, tuple(copies(inputs)), strict=False)
        program = program.run_decompositions({}) if decomposed else program
    return Traced(program.module(check_guards=False), copies(pytree.tree_leaves(tuple(inputs))))


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    torch._dynamo.reset()
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


class _Kept:
    """The graphs that a compiler received, and the inputs of their calls."""

    def __init__(self) -> None:
        self.graphs: dict[str, GraphModule] = {}
        self.calls: dict[str, list[object]] = {}
        # with the number of forward outputs; regions first
        self.joints: list[tuple[GraphModule, int]] = []

    def compiler(self, kind: str) -> Function:
        def compile(found: GraphModule, _: object) -> Function:
            self.graphs.setdefault(kind, found)

            def call(given: Sequence[object]) -> object:
                given = list(given)
                self.calls.setdefault(kind, copies(given))
                return found(*given)

            call._boxed_call = True
            return call

        return compile

    def cut(self, joint: GraphModule, given: object, *, num_fwd_outputs: int, **told: Any) -> tuple[GraphModule, GraphModule]:
        copy = GraphModule(joint, deepcopy(joint.graph))
        for old, new in zip(joint.graph.nodes, copy.graph.nodes):
            new.meta = dict(old.meta)
        self.joints.append((copy, num_fwd_outputs))
        return default_partition(joint, given, num_fwd_outputs=num_fwd_outputs, **told)


def compiled(function: Function, *inputs: object, which: str, dynamic: bool = False, fullgraph: bool = True) -> Traced:
    """A graph that torch.compile gives to a compiler.

    which: dynamo, forward, backward, inference, joint, or region (the joint graph of its first
    region). If there are several graphs, the first.
    """
    kept = _Kept()
    told = {"fw_compiler": kept.compiler("forward"), "bw_compiler": kept.compiler("backward")}
    autograd = aot_autograd(**told, inference_compiler=kept.compiler("inference"), partition_fn=kept.cut)

    def backend(found: GraphModule, example: list[object]) -> Function:
        if which != "dynamo":
            return autograd(found, example)
        kept.graphs.setdefault("dynamo", found)

        def call(*given: object) -> object:
            kept.calls.setdefault("dynamo", copies(given))
            return found(*given)

        return call

    with _quietly():
        result = torch.compile(function, backend=backend, fullgraph=fullgraph, dynamic=dynamic)(*inputs)
        outputs = [leaf for leaf in pytree.tree_leaves(result) if isinstance(leaf, Tensor) and leaf.requires_grad]
        if outputs and which in ("backward", "joint", "region"):
            sum((leaf * 1.5).sum() for leaf in outputs).backward()
    if which == "region":
        return _joint(*kept.joints[0], {})
    if which == "joint":
        forward = kept.graphs["forward"].graph.find_nodes(op="placeholder")
        return _joint(*kept.joints[-1], dict(zip((node.name for node in forward), kept.calls["forward"], strict=True)))
    return Traced(kept.graphs[which], kept.calls[which], {} if which in ("dynamo", "inference") else {"kind": which})


def _joint(joint: GraphModule, num_forward_outputs: int, known: Mapping[str, object]) -> Traced:
    """A joint graph with inputs of these names; others, such as tangents, are made."""
    generator = torch.Generator().manual_seed(7)
    inputs = [
        known[node.name] if node.name in known else _like(node.meta["val"], generator)
        for node in joint.graph.find_nodes(op="placeholder")
    ]
    return Traced(joint, inputs, {"kind": "joint", "num_forward_outputs": num_forward_outputs})


def _like(value: Tensor, generator: torch.Generator) -> Tensor:
    sizes, strides = ([_hint(item) for item in items] for items in (value.shape, value.stride()))
    elements = _hint(value.untyped_storage().nbytes()) // value.element_size()
    return torch.randn(elements, generator=generator).to(value.dtype).as_strided(sizes, strides, _hint(value.storage_offset()))


def _hint(size: object) -> int:
    return int(size.node.hint) if isinstance(size, torch.SymInt) else int(size)
