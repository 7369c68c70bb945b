"""A graph's values with a number in place of every symbol, so that fake kernels can run it."""

from __future__ import annotations

import operator
from collections.abc import Mapping

import sympy
import torch
from torch._subclasses import FakeTensor, FakeTensorMode
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException
from torch.fx import GraphModule, Interpreter, Node
from torch.utils._pytree import tree_map

_SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)


class BoundError(ValueError):
    """A value that cannot be computed at the given sizes; the message names the symbol or the
    node."""


def _hints(value: torch.SymInt | torch.SymFloat | torch.SymBool) -> Mapping[object, object]:
    env = value.node.shape_env
    return env.backed_var_to_val if hasattr(env, "backed_var_to_val") else env.var_to_val


def symbols(graph_module: GraphModule) -> dict[str, int | None]:
    """The symbols in sizes and numbers of the graph, sorted, with their hints; None for an unbacked
    one."""
    result: dict[str, int | None] = {}

    def visit(value: object) -> None:
        if isinstance(value, FakeTensor):
            visit([*value.shape, *value.stride(), value.storage_offset(), value.untyped_storage().nbytes()])
        elif isinstance(value, (list, tuple)):
            for item in value:
                visit(item)
        elif isinstance(value, _SYMBOLIC):
            for symbol in value.node.expr.free_symbols:
                hint = _hints(value).get(symbol)
                result[str(symbol)] = None if hint is None else int(hint)

    for node in graph_module.graph.nodes:
        visit(node.meta.get("val"))
    return dict(sorted(result.items()))


class BoundGraph:
    """The inputs, constants and calls of a graph at given sizes, as fake tensors of one mode.

    sizes: values of symbols by name; other symbols take their hints. If an op reads a result out of
    data (a count, a number of elements), the value recorded in the graph at these sizes is used.
    Tensors that share a storage there share one here.
    """

    def __init__(self, graph_module: GraphModule, sizes: Mapping[str, int] | None = None) -> None:
        self.graph_module = graph_module
        self.nodes = list(graph_module.graph.nodes)
        self.mode = FakeTensorMode(allow_non_fake_inputs=True)
        self.mode.cache_enabled = False  # every call computes its own result, without a cache
        self._sizes = dict(sizes or {})
        self._storages: dict[int, torch.UntypedStorage] = {}
        self._given: dict[Node, object] = {}

    def number(self, value: object) -> object:
        """A size, a number or a bool; values without symbols are unchanged."""
        if not isinstance(value, _SYMBOLIC):
            return value
        expr = value.node.expr
        bound = {symbol: self._sizes.get(str(symbol), _hints(value).get(symbol)) for symbol in expr.free_symbols}
        for symbol, number in bound.items():
            if number is None:
                raise BoundError(f"no value for the symbol {symbol}")
        known = expr.xreplace({symbol: sympy.sympify(number) for symbol, number in bound.items()})
        kind = {torch.SymInt: int, torch.SymFloat: float, torch.SymBool: bool}[type(value)]
        return kind(known)

    def value(self, value: object, *, is_fresh: bool = False) -> object:
        """A value of the graph at the given sizes. is_fresh: in storages of its own."""
        storages = {} if is_fresh else self._storages

        def leaf(item: object) -> object:
            return self._tensor(item, storages) if isinstance(item, FakeTensor) else self.number(item)

        return tree_map(leaf, value)

    def _tensor(self, tensor: FakeTensor, storages: dict[int, torch.UntypedStorage]) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage._cdata not in storages:
            storages[storage._cdata] = torch.UntypedStorage(self.number(storage.nbytes()), device="meta")
        sizes, strides = ([self.number(item) for item in items] for items in (tensor.shape, tensor.stride()))
        plain = torch.empty(0, dtype=tensor.dtype, device="meta")
        with torch.no_grad():
            plain.set_(storages[storage._cdata], self.number(tensor.storage_offset()), sizes, strides)
            plain = torch._conj(plain) if tensor.is_conj() else plain
            plain = torch._neg_view(plain) if tensor.is_neg() else plain
        return FakeTensor(self.mode, plain, tensor.device)

    def given(self, node: Node) -> object:
        """The value of a placeholder or get_attr, the same object each time."""
        if node not in self._given:
            self._given[node] = self._new(node)
        return self._given[node]

    def _new(self, node: Node) -> object:
        if node.op == "placeholder":
            if "val" not in node.meta:
                raise BoundError(f"placeholder {node.name} has no value")
            return self.value(node.meta["val"])
        item = operator.attrgetter(node.target)(self.graph_module)
        if isinstance(item, FakeTensor):
            return self.value(item)
        return self.mode.from_tensor(item, static_shapes=True) if isinstance(item, torch.Tensor) else item

    def call(self, node: Node, args: tuple, kwargs: dict) -> object:
        """The result of a call. Raises BoundError, naming the node, if its fake kernel fails."""
        try:
            return node.target(*args, **kwargs)
        except (DataDependentOutputException, DynamicOutputShapeException):
            if "val" not in node.meta:
                raise BoundError(f"node {node.name} ({node.target}) reads data, and the graph has no value for it") from None
            return self.value(node.meta["val"], is_fresh=True)
        except Exception as error:
            raise BoundError(f"node {node.name} ({node.target}): {error}") from error


class BoundInterpreter(Interpreter):
    """Runs a graph over fake tensors at given sizes; values are freed after their last use, unused
    ones at once."""

    def __init__(self, bound: BoundGraph) -> None:
        super().__init__(bound.graph_module)
        self._bound = bound

    def run_node(self, node: Node) -> object:
        if node.op == "get_attr":
            return self._bound.given(node)
        if node.op != "call_function":
            return super().run_node(node)
        value = self._bound.call(node, *self.fetch_args_kwargs_from_env(node))
        return value if node.users else None
