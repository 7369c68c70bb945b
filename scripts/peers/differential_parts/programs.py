"""Defines a random program, common to every family, and helpers that make one from a seed."""

from __future__ import annotations

import copy
import operator
import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule, Node
from torch.utils import _pytree as pytree
from torch.utils.checkpoint import CheckpointPolicy

aten = torch.ops.aten

FAILING = "this assertion fails"
WORLD = 2  # ranks of the process group that collectives name


class Unusable(Exception):
    """PyTorch itself cannot trace or run the drawn program; it is skipped and counted."""


@dataclass
class Program:
    """A graph with inputs for it. `features` name its properties; `told` is for bridge.save."""

    graph_module: GraphModule
    inputs: Callable[[], list[object]]  # the same new objects at each call
    features: set[str] = field(default_factory=set)
    told: dict[str, Any] = field(default_factory=dict)
    has_gradients: bool = False  # autograd runs through it: its gradients are compared
    parameters: Sequence[str] = ()  # attributes that get gradients
    backward: frozenset[str] = frozenset()  # joint graph: names of the nodes that compute gradients
    num_forward_outputs: int = 0  # joint graph only

    def forward(self) -> Program:
        """The joint graph without its gradients and tangents, which are the last inputs. Writes of
        a backward pass inside forward stay: those before the last output of forward that depend on
        no tangent."""
        graph_module = GraphModule(self.graph_module, copy.deepcopy(self.graph_module.graph))
        graph = graph_module.graph
        kept = leaves_of(graph_module)[: self.num_forward_outputs]
        graph.output_node().args = (tuple(kept),)
        last = max((node for node in kept if isinstance(node, Node)), default=None)
        of_tangents: set[Node] = set()
        for node in graph.nodes:
            is_tangent = node.op == "placeholder" and node.name in self.backward
            if is_tangent or any(source in of_tangents for source in node.all_input_nodes):
                of_tangents.add(node)
        for node in reversed(graph.nodes):
            is_inner_write = last is not None and node < last and writes(node) and node not in of_tangents
            if node.name in self.backward and node.op != "output" and not node.users and not is_inner_write:
                graph.erase_node(node)
        graph_module.recompile()
        count = len(graph.find_nodes(op="placeholder"))
        return replace(self, graph_module=graph_module, inputs=lambda: self.inputs()[:count])


def leaves_of(graph_module: GraphModule) -> list[object]:
    """The values that the graph returns, including None."""
    return pytree.tree_leaves(graph_module.graph.output_node().args, is_leaf=lambda leaf: leaf is None)


class Dice(random.Random):
    """Random choices of one program."""

    def chance(self, probability: float) -> bool:
        return self.random() < probability

    def tensor(self, sizes: Sequence[int], *, special: bool = False) -> Tensor:
        """Random numbers; `special` adds zeros of both signs, infinities and not-a-numbers."""
        generator = torch.Generator().manual_seed(self.randrange(2**31))
        result = torch.randn(tuple(sizes), generator=generator)
        if special and result.numel() > 3:
            flat = result.view(-1)
            for value in (-0.0, 0.0, float("inf"), float("nan"), -float("inf")):
                if self.chance(0.3):
                    flat[self.randrange(flat.numel())] = value
        return result


def share_memory(inputs: Sequence[object]) -> bool:
    tensors = [value for value in inputs if isinstance(value, Tensor)]
    return len({value.untyped_storage().data_ptr() for value in tensors}) < len(tensors)


def asking_gradients(inputs: Callable[[], list[object]]) -> Callable[[], list[object]]:
    """The same inputs; those of a floating-point type require gradients."""

    def asking() -> list[object]:
        given = inputs()
        for value in given:
            if isinstance(value, Tensor) and value.is_floating_point():
                value.requires_grad_()
        return given

    return asking


def schema_of(node: Node) -> torch._C.FunctionSchema | None:
    return getattr(node.target, "_schema", None)


def writes(node: Node) -> bool:
    """Whether a call writes one of its arguments, by its name or schema."""
    if node.op == "call_method":
        return str(node.target).endswith("_") and not str(node.target).endswith("__") or node.target == "__setitem__"
    if node.op != "call_function":
        return False
    schema = schema_of(node)
    return node.target is operator.setitem or schema is not None and schema.is_mutable


def returns_its_argument(node: Node) -> bool:
    """Whether a call writes its first argument and returns it, as in-place ops do."""
    schema = schema_of(node)
    if schema is None or len(schema.returns) != 1 or not schema.arguments or not node.args:
        return False
    given, result = schema.arguments[0].alias_info, schema.returns[0].alias_info
    if given is None or result is None or not given.is_write or not isinstance(node.args[0], Node):
        return False
    return given.before_set == result.before_set


def is_random(node: Node) -> bool:
    return torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())


def _is_once(node: Node) -> bool:
    """Whether the call must not be recomputed."""
    return writes(node) or is_random(node) or op_name(node) in MESSAGES


MESSAGES = frozenset({"isend", "irecv", "batch_p2p_ops"})
METADATA_CHANGES = frozenset("t_ transpose_ unsqueeze_ squeeze_ as_strided_ resize_ set_ swapdims_ swapaxes_".split())


def op_name(node: Node) -> str:
    """The operator's name without namespace and overload."""
    schema = schema_of(node)
    return schema.name.partition("::")[2] if schema is not None else getattr(node.target, "__name__", str(node.target))


def _is_view(node: Node) -> bool:
    schema = schema_of(node)
    if schema is None or schema.is_mutable:
        return False
    return any(argument.alias_info is not None for argument in schema.arguments)


def features_of(graph_module: GraphModule) -> set[str]:
    """The features that the graph itself shows."""
    return set().union(*map(features_of_node, graph_module.graph.nodes))


def features_of_node(node: Node) -> set[str]:
    found: set[str] = set()
    if node.op == "call_method":
        found.add("call_method")
    if node.op not in ("call_function", "call_method"):
        return found
    name = op_name(node)
    first = node.args[0] if node.args else None
    if writes(node):
        found.add("in-place")
        if isinstance(first, Node) and (_is_view(first) or first.target is operator.getitem):
            found.add("in-place on a view")
        if isinstance(first, Node) and first.op in ("placeholder", "get_attr"):
            found.add("mutated input")
        if node.meta.get("autograd_backward"):
            found.add("write in backward")
        schema = schema_of(node)
        if schema is not None and any(argument.is_out for argument in schema.arguments):
            found.add("out=")
        if name in ("set_", "resize_"):
            found.add(name)
    if name in METADATA_CHANGES or name.rpartition("::")[2] in METADATA_CHANGES:
        found.add("size change")
    if is_random(node):
        found.add("random")
    if getattr(node.target, "namespace", "") in ("_c10d_functional", "c10d_functional"):
        found.add("collective")
    if isinstance(node.target, torch._ops.HigherOrderOperator):
        found |= {"higher-order", f"higher-order {node.target.name()}"}
    if node.target is operator.getitem and not isinstance(node.args[1], int):
        found.add("getitem of a tensor")
    if getattr(node.target, "namespace", "") == "differential":
        found.add("custom operator")
    if "recompute" in node.meta:
        found.add("tags")
    if "ap_must_save" in (node.meta.get("custom") or {}):
        found.add("marks")
    if node.meta.get("autograd_backward"):
        found.add("phase marks")
    return found


def mark_as_saved(graph_module: GraphModule, dice: Dice, backward: Collection[Node]) -> None:
    """Marks of a first partition on random forward calls, in the forms of autoparallel and fxopt,
    and on a few backward ones, where they mean nothing. Most calls that cannot be recomputed are
    marked: save-all refuses the others."""
    density, is_named = dice.choice([0.1, 0.4, 0.8]), dice.chance(0.5)
    for node in graph_module.graph.nodes:
        if node.op != "call_function" or node in backward and not dice.chance(0.05):
            continue
        must = _is_once(node)
        if not dice.chance(0.95 if must else density):
            continue
        custom: dict[str, object] = {"ap_must_save": True}
        if isinstance(node.meta.get("val"), tuple | list) and dice.chance(0.8):
            custom["ap_must_save_getitem_indices"] = [i for i in range(len(node.meta["val"])) if must or dice.chance(0.6)]
        if is_named:
            custom["ap_must_save_as"] = node.name
        node.meta["custom"] = (node.meta.get("custom") or {}) | custom


def give_marks(
    graph_module: GraphModule, dice: Dice, backward: Collection[Node], *, marks: bool, tags: bool = True
) -> None:
    """Adds random recompute tags to forward calls and a few backward ones, and `autograd_backward`
    to backward ones; sometimes marks of a first partition."""
    density, careless = dice.choice([0.4, 0.8, 1.0, 1.0]), dice.chance(0.03)
    must, keeps = dice.choice([0.2, 0.8, 1.0]), dice.choice([0, 0, 0.15, 0.3])
    has_regions = dice.chance(0.3)
    if dice.chance(0.35):
        mark_as_saved(graph_module, dice, backward)
    for place, node in enumerate(graph_module.graph.nodes):
        if node.op not in ("call_function", "call_method"):
            continue
        if node in backward and marks:
            node.meta["autograd_backward"] = True
        if not tags or node in backward and not dice.chance(0.03):
            continue
        if not careless and _is_once(node) or not dice.chance(density):
            continue
        kind = "MUST" if dice.chance(must) else "PREFER"
        node.meta["recompute"] = CheckpointPolicy[f"{kind}_{'SAVE' if dice.chance(keeps) else 'RECOMPUTE'}"]
        if has_regions:
            node.meta["ac_graph_id"] = place // 6
