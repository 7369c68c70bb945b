"""Describes a GraphModule completely, as plain JSON by value and type, to compare two processes.

Written without the exporter's code: it walks torch's own objects. The description has no object
addresses; storages and graphs are numbered in order of appearance. Objects without a rule here
appear as their type and repr.
"""

from __future__ import annotations

import ctypes
import dataclasses
import enum
import hashlib
import importlib
import re

import torch
from torch.fx import GraphModule, Node
from torch.utils._python_dispatch import _disable_current_modes

STACKS = {"nn_module_stack", "source_fn_stack", "fwd_nn_module_stack", "fwd_source_fn_stack", "torch_fn"}
NOT_COMPARED = {"eager_input_vals", "grapharg", "creation_timestamp"}


def type_of(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


class Describer:
    def __init__(self) -> None:
        self.storages: dict[int, int] = {}
        self.held: list[object] = []
        self.graphs: dict[int, str] = {}
        self.envs: list[object] = []
        self.symbols: set[str] = set()  # symbols that a described value reads

    def number(self, value: object) -> object:
        if not isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
            return value
        expr, env = value.node.expr, value.node.shape_env
        if expr.is_Integer:
            return int(expr)
        self.symbols |= {str(symbol) for symbol in expr.free_symbols}
        if env is not None and not any(env is known for known in self.envs):
            self.envs.append(env)
        # a symbol that a guard fixed has its value
        hint = repr(value.node._hint) if expr.free_symbols else str(expr)
        return [type_of(value), str(expr), type_of(expr), hint]

    def tensor(self, tensor: torch.Tensor) -> dict:
        result = {
            "type": type_of(tensor),
            "is_parameter": isinstance(tensor, torch.nn.Parameter),
            "dtype": str(tensor.dtype),
            "device": str(tensor.device),
            "layout": str(tensor.layout),
            "shape": [self.number(size) for size in tensor.shape],
            "requires_grad": tensor.requires_grad,
            "conj": tensor.is_conj(),
            "neg": tensor.is_neg(),
        }
        if tensor.layout == torch.strided:
            storage = tensor.untyped_storage()
            if storage._cdata not in self.storages:
                self.storages[storage._cdata] = len(self.storages)
                self.held.append(storage)
            result["stride"] = [self.number(stride) for stride in tensor.stride()]
            result["offset"] = self.number(tensor.storage_offset())
            result["storage"] = [self.storages[storage._cdata], self.number(storage.nbytes())]
        return result

    def mesh(self, mesh: object) -> dict:
        return {
            "type": type_of(mesh),
            "device_type": mesh.device_type,
            "ranks": mesh.mesh.tolist(),
            "names": list(mesh.mesh_dim_names or ()),
            "groups": [str(name) for name in mesh._dim_group_names],
            "coordinate": list(mesh.get_coordinate() or ()),
        }

    def named(self, value: object, in_stack: bool) -> list:
        name = f"{value.__module__}.{value.__qualname__}"
        if in_stack and not _is_importable(value.__module__, value.__qualname__, value):
            return ["builtins.str", name]
        return [type_of(value), name]

    def value(self, value: object, in_stack: bool = False) -> object:
        """The value by type and content."""

        def inner(item: object) -> object:
            return self.value(item, in_stack)

        if value is None or type(value) in (bool, int, str):
            return [type_of(value), value]
        if isinstance(value, float | complex | bytes):
            return [type_of(value), repr(value)]
        if isinstance(value, Node):
            return ["node", value.graph.owning_module is not None, value.name]
        if isinstance(value, enum.Enum):
            return [type_of(value), value.name]
        if isinstance(value, GraphModule):
            return ["GraphModule", self.graphs.get(id(value), "?")]
        if isinstance(value, torch.Tensor):
            return self.tensor(value)
        if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
            number = self.number(value)
            return number if isinstance(number, list) else inner(number)
        if isinstance(value, torch._ops.OperatorBase | torch._ops.OpOverloadPacket):
            return [type_of(value), str(value)]
        if type(value).__name__ == "FakeScriptObject":
            return [type_of(value), inner(value.real_obj)]
        if type(value).__name__ == "DeviceMesh":
            return self.mesh(value)
        if isinstance(value, torch.Generator):
            return [type_of(value), str(value.device)]
        if isinstance(value, torch.fx.traceback.NodeSource):
            return [type_of(value), inner(value.to_dict())]
        if isinstance(value, dict):
            pairs = [[inner(key), inner(item)] for key, item in value.items()]
            return [type_of(value), sorted(pairs, key=repr)]
        if isinstance(value, list | tuple):
            return [type_of(value), *map(inner, value)]
        if isinstance(value, set | frozenset):
            return [type_of(value), sorted(map(inner, value), key=repr)]
        if isinstance(value, slice):
            return ["slice", inner(value.start), inner(value.stop), inner(value.step)]
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            names = [field.name for field in dataclasses.fields(value)]
            return [type_of(value), [[name, inner(getattr(value, name, "unset"))] for name in names]]
        if callable(value) and hasattr(value, "__qualname__") and getattr(value, "__module__", None):
            return self.named(value, in_stack)
        return [type_of(value), re.sub(r" at 0x[0-9a-f]+", "", repr(value))]

    def node(self, node: Node) -> dict:
        meta = {key: value for key, value in node.meta.items() if key not in NOT_COMPARED}
        return {
            "op": node.op,
            "name": node.name,
            "target": self.value(node.target),
            "args": self.value(tuple(node.args)),
            "kwargs": [[key, self.value(value)] for key, value in node.kwargs.items()],
            "users": sorted(user.name for user in node.users),
            "type": self.value(node.type),
            "meta": {key: self.value(value, key in STACKS) for key, value in sorted(meta.items())},
        }

    def attribute(self, owner: GraphModule, path: str) -> object:
        folder, _, name = path.rpartition(".")
        module = owner.get_submodule(folder)
        item = getattr(module, name)
        if isinstance(item, GraphModule):
            return self.value(item)
        if not isinstance(item, torch.Tensor):
            return [type_of(item), repr(item)]
        kinds = ("_parameters", "_buffers", "_modules", "_non_persistent_buffers_set")
        result = self.tensor(item) | {"kept_in": [kind for kind in kinds if name in getattr(module, kind)]}
        if not isinstance(item, torch._subclasses.FakeTensor) and not item.is_meta:
            data = item.detach().cpu().contiguous()
            result["data"] = hashlib.sha256(ctypes.string_at(data.data_ptr(), data.nbytes)).hexdigest()
        return result

    def graph(self, name: str, graph_module: GraphModule, result: dict) -> None:
        """Describes the graph and its subgraphs, by name."""
        if id(graph_module) in self.graphs:
            return
        self.graphs[id(graph_module)] = name
        paths = list(dict.fromkeys(n.target for n in graph_module.graph.nodes if n.op in ("get_attr", "call_module")))
        for path in paths:
            child = graph_module
            for part in path.split("."):
                child = getattr(child, part)
            if isinstance(child, GraphModule):
                self.graph(f"{name}.{path}", child, result)
        codegen = graph_module.graph._codegen
        result[name] = {
            "class": type(graph_module).__name__,
            "training": graph_module.training,
            "code": graph_module.code,
            "readable": graph_module.print_readable(print_output=False),
            "codegen": type(codegen).__name__,
            "pytree": re.sub(r" at 0x[0-9a-f]+", "", repr(getattr(codegen, "pytree_info", None))),
            "meta": {str(key): self.value(value) for key, value in sorted(graph_module.meta.items())},
            "attributes": {path: self.attribute(graph_module, path) for path in paths},
            "nodes": [self.node(node) for node in graph_module.graph.nodes],
        }

    def environment(self, env: object) -> dict:
        hints = env.backed_var_to_val if hasattr(env, "backed_var_to_val") else env.var_to_val
        conditions = [guard.expr for guard in env.guards]
        conditions += [entry.expr for found in env.deferred_runtime_asserts.values() for entry in found]
        told = self.symbols | {str(symbol) for condition in conditions for symbol in condition.free_symbols}
        read = {str(symbol): symbol for symbol in env.var_to_range if str(symbol) in told}
        return {
            "symbols": {name: sorted(map(str, symbol._assumptions_orig.items())) for name, symbol in sorted(read.items())},
            "ranges": {str(symbol): str(found) for symbol, found in env.var_to_range.items() if str(symbol) in told},
            "hints": {str(symbol): str(hint) for symbol, hint in hints.items() if str(symbol) in told},
            "guards": [str(guard.expr) for guard in env.guards],
            "asserts": sorted(str((a.expr, a.msg)) for found in env.deferred_runtime_asserts.values() for a in found),
        }


def _is_importable(module: str, qualified: str, value: object) -> bool:
    if module == "__main__":
        return False
    try:
        found = importlib.import_module(module)
        for part in qualified.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError):
        return False
    return found is value


def process_groups() -> dict:
    """The process groups of this process by name."""
    dist = torch.distributed
    if not dist.is_available() or not dist.is_initialized():
        return {}
    world = dist.distributed_c10d._world
    return {
        str(name): [dist.get_process_group_ranks(group), group.group_desc, dist.get_rank(), dist.get_world_size()]
        for group, name in world.pg_names.items()
    }


def describe(graph_module: GraphModule) -> dict:
    """The description of a module: graphs, symbols, process groups."""
    describer = Describer()
    graphs: dict = {}
    # AOTAutograd leaves its modes on: they would fake the ranks of meshes
    with _disable_current_modes():
        describer.graph("main", graph_module, graphs)
        symbols = [describer.environment(env) for env in describer.envs]
    return {"graphs": graphs, "symbols": symbols, "groups": process_groups()}


def differences(a: object, b: object, where: str = "") -> list[str]:
    """The differences of two descriptions: paths with both sides, at most one per differing
    leaf."""
    if type(a) is not type(b):
        return [f"{where}: {str(a)[:120]} | {str(b)[:120]}"]
    if isinstance(a, dict):
        result = [f"{where}.{key}: only on one side" for key in sorted(a.keys() ^ b.keys())]
        return result + [line for key in a if key in b for line in differences(a[key], b[key], f"{where}.{key}")]
    if isinstance(a, list):
        if len(a) != len(b):
            return [f"{where}: {len(a)} | {len(b)} items"]
        return [line for i, (x, y) in enumerate(zip(a, b)) for line in differences(x, y, f"{where}[{i}]")]
    return [] if a == b else [f"{where}: {str(a)[:160]} | {str(b)[:160]}"]
