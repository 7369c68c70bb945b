"""Mistakes that a pass could make, by class: each changes one place of a torch.fx graph.

No class checks whether its change matters: executing the graph shows it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

import torch
from torch import Tensor
from torch.fx import Graph, GraphModule, Node
from torch.fx.node import map_arg

from differential_parts.programs import Dice, is_random, writes

aten = torch.ops.aten
Edit = Callable[[GraphModule, Dice], bool]  # False: the graph has no place for it
EDITS: dict[str, Edit] = {}

_OTHER_OPS = {
    aten.neg.default: aten.abs.default, aten.sin.default: aten.cos.default, aten.cos.default: aten.sin.default,
    aten.exp.default: aten.tanh.default, aten.tanh.default: aten.sigmoid.default, aten.relu.default: aten.neg.default,
    aten.add.Tensor: aten.sub.Tensor, aten.sub.Tensor: aten.add.Tensor, aten.mul.Tensor: aten.div.Tensor,
    aten.div.Tensor: aten.mul.Tensor, aten.add_.Tensor: aten.sub_.Tensor, aten.mul_.Tensor: aten.div_.Tensor,
    aten.sum.default: aten.mean.default, aten.gelu.default: aten.relu.default, aten.sigmoid.default: aten.tanh.default,
    operator.add: operator.sub, operator.mul: operator.add, operator.sub: operator.add, torch.sin: torch.cos, torch.relu: torch.neg,
}  # fmt: skip
_WRITERS = {
    aten.add.Tensor: aten.add_.Tensor, aten.mul.Tensor: aten.mul_.Tensor, aten.sub.Tensor: aten.sub_.Tensor,
    aten.neg.default: aten.neg_.default, aten.sin.default: aten.sin_.default, aten.relu.default: aten.relu_.default,
    aten.exp.default: aten.exp_.default, aten.tanh.default: aten.tanh_.default, aten.t.default: aten.t_.default,
    aten.transpose.int: aten.transpose_.default, aten.unsqueeze.default: aten.unsqueeze_.default,
    aten.squeeze.dim: aten.squeeze_.dim,
}  # fmt: skip
_VIEWS = (
    aten.view.default, aten.t.default, aten.transpose.int, aten.permute.default, aten.select.int, aten.slice.Tensor,
    aten.alias.default, aten.unsqueeze.default, aten.squeeze.dim, aten.expand.default, aten.detach.default,
)  # fmt: skip


def edit(name: str) -> Callable[[Edit], Edit]:
    def add(function: Edit) -> Edit:
        EDITS[name] = function
        return function

    return add


def _calls(graph: Graph) -> list[Node]:
    return [node for node in graph.nodes if node.op in ("call_function", "call_method")]


def _value(node: Node) -> Tensor | None:
    value = node.meta.get("val", node.meta.get("example_value"))
    return value if isinstance(value, Tensor) else None


def _alike(node: Node, other: Node) -> bool:
    """Whether one could replace the other: equal sizes and dtype, as far as these are recorded."""
    left, right = _value(node), _value(other)
    if left is None or right is None:
        return left is None and right is None
    return left.dtype == right.dtype and str(left.shape) == str(right.shape)


def _pick(dice: Dice, nodes: list[Node]) -> Node | None:
    return dice.choice(nodes) if nodes else None


def _replace_arg(user: Node, old: Node, new: Node) -> None:
    """Replaces the first use of `old` in `user`."""
    seen = []

    def given(node: Node) -> Node:
        if node is old and not seen:
            seen.append(node)
            return new
        return node

    user.args = map_arg(user.args, given)
    if not seen:
        user.kwargs = map_arg(user.kwargs, given)


def _places(graph: Graph) -> dict[Node, int]:
    return {node: place for place, node in enumerate(graph.nodes)}


def _may_move_before(node: Node, other: Node, places: dict[Node, int]) -> bool:
    return all(places[source] < places[other] for source in node.all_input_nodes)


def _may_move_after(node: Node, other: Node, places: dict[Node, int]) -> bool:
    return all(places[user] > places[other] for user in node.users)


@edit("two arguments exchanged")
def exchange_arguments(graph_module: GraphModule, dice: Dice) -> bool:
    found = [
        node
        for node in _calls(graph_module.graph)
        if len(node.args) > 1 and all(isinstance(arg, Node) for arg in node.args[:2]) and node.args[0] is not node.args[1]
    ]
    node = _pick(dice, found)
    if node is not None:
        node.args = (node.args[1], node.args[0], *node.args[2:])
    return node is not None


@edit("another tensor given")
def give_another(graph_module: GraphModule, dice: Dice) -> bool:
    earlier: list[Node] = []
    found = []
    for node in graph_module.graph.nodes:
        if node.op != "output":
            found += [(node, old, new) for old in node.all_input_nodes for new in earlier[-12:] if old is not new and _alike(old, new)]
            earlier.append(node)
    if found:
        _replace_arg(*dice.choice(found))
    return bool(found)


@edit("a constant changed")
def change_constant(graph_module: GraphModule, dice: Dice) -> bool:
    found = [
        (node, i)
        for node in _calls(graph_module.graph)
        for i, arg in enumerate(node.args)
        if isinstance(arg, int | float) and not isinstance(arg, torch.SymInt)
    ]
    if found:
        node, i = dice.choice(found)
        arg = node.args[i]
        node.update_arg(i, not arg if isinstance(arg, bool) else arg + 1)
    return bool(found)


@edit("an element of a list changed")
def change_element(graph_module: GraphModule, dice: Dice) -> bool:
    found = [
        (node, i)
        for node in _calls(graph_module.graph)
        for i, arg in enumerate(node.args)
        if isinstance(arg, list | tuple) and len(arg) > 1 and all(isinstance(item, int) for item in arg)
    ]
    if found:
        node, i = dice.choice(found)
        node.update_arg(i, [*node.args[i][1:], node.args[i][0]])
    return bool(found)


@edit("a keyword argument dropped")
def drop_keyword(graph_module: GraphModule, dice: Dice) -> bool:
    node = _pick(dice, [node for node in _calls(graph_module.graph) if node.kwargs and not {"out", "group_name"} & set(node.kwargs)])
    if node is not None:
        gone = dice.choice(sorted(node.kwargs))
        node.kwargs = {key: value for key, value in node.kwargs.items() if key != gone}
    return node is not None


@edit("another operator")
def other_operator(graph_module: GraphModule, dice: Dice) -> bool:
    node = _pick(dice, [node for node in _calls(graph_module.graph) if node.target in _OTHER_OPS])
    if node is not None:
        node.target = _OTHER_OPS[node.target]
    return node is not None


@edit("another dtype")
def other_dtype(graph_module: GraphModule, dice: Dice) -> bool:
    def has_dtype(node: Node) -> bool:
        return any(isinstance(arg, torch.dtype) for arg in (*node.args, *node.kwargs.values()))

    def other(arg: object) -> object:
        return (torch.float64 if arg == torch.float32 else torch.float32) if isinstance(arg, torch.dtype) else arg

    node = _pick(dice, [node for node in _calls(graph_module.graph) if has_dtype(node)])
    if node is not None:
        node.args = tuple(other(arg) for arg in node.args)
        node.kwargs = {key: other(arg) for key, arg in node.kwargs.items()}
    return node is not None


@edit("a call moved to an earlier place")
def move_up(graph_module: GraphModule, dice: Dice) -> bool:
    return _move(graph_module.graph, dice, lambda node: not writes(node), up=True)


@edit("a call moved to a later place")
def move_down(graph_module: GraphModule, dice: Dice) -> bool:
    return _move(graph_module.graph, dice, lambda node: not writes(node), up=False)


@edit("a write moved to an earlier place")
def move_write_up(graph_module: GraphModule, dice: Dice) -> bool:
    return _move(graph_module.graph, dice, writes, up=True)


@edit("a write moved to a later place")
def move_write_down(graph_module: GraphModule, dice: Dice) -> bool:
    return _move(graph_module.graph, dice, writes, up=False)


def _move(graph: Graph, dice: Dice, is_wanted: Callable[[Node], bool], *, up: bool) -> bool:
    nodes, places = list(graph.nodes), _places(graph)
    found = []
    for place, node in enumerate(nodes):
        if node.op not in ("call_function", "call_method") or not is_wanted(node):
            continue
        others = nodes[max(0, place - 12) : place] if up else nodes[place + 1 : place + 13]
        legal = _may_move_before if up else _may_move_after
        found += [(node, other) for other in others if other.op not in ("placeholder", "output") and legal(node, other, places)]
    if not found:
        return False
    node, other = dice.choice(found)
    (other.prepend if up else other.append)(node)
    return True


@edit("a write dropped")
def drop_write(graph_module: GraphModule, dice: Dice) -> bool:
    found = [node for node in _calls(graph_module.graph) if writes(node) and node.args and isinstance(node.args[0], Node)]
    node = _pick(dice, found)
    if node is not None:
        node.replace_all_uses_with(node.args[0])
        graph_module.graph.erase_node(node)
    return node is not None


@edit("a write done twice")
def repeat_write(graph_module: GraphModule, dice: Dice) -> bool:
    node = _pick(dice, [node for node in _calls(graph_module.graph) if writes(node)])
    if node is not None:
        with graph_module.graph.inserting_after(node):
            graph_module.graph.node_copy(node)
    return node is not None


@edit("a call made in place")
def make_in_place(graph_module: GraphModule, dice: Dice) -> bool:
    node = _pick(dice, [node for node in _calls(graph_module.graph) if node.target in _WRITERS])
    if node is not None:
        node.target = _WRITERS[node.target]
    return node is not None


@edit("metadata changed in place")
def change_metadata(graph_module: GraphModule, dice: Dice) -> bool:
    found = [node for node in graph_module.graph.nodes if (value := _value(node)) is not None and value.dim() == 2 and node.users]
    node = _pick(dice, found)
    if node is not None:
        nodes = list(graph_module.graph.nodes)
        last = max([nodes.index(node), *(place for place, each in enumerate(nodes) if each.op == "placeholder")])
        with graph_module.graph.inserting_after(nodes[last]):
            graph_module.graph.call_function(aten.t_.default, (node,))
    return node is not None


@edit("an input or attribute written")
def write_input(graph_module: GraphModule, dice: Dice) -> bool:
    inputs = [node for node in graph_module.graph.nodes if node.op in ("placeholder", "get_attr")]
    found = [node for node in inputs if (value := _value(node)) is not None and value.is_floating_point()]
    node = _pick(dice, found)
    if node is not None:
        last = [each for each in graph_module.graph.nodes if each.op in ("placeholder", "get_attr")][-1]
        with graph_module.graph.inserting_after(last):
            graph_module.graph.call_function(aten.mul_.Tensor, (node, 2.0))
    return node is not None


@edit("two draws exchanged")
def exchange_draws(graph_module: GraphModule, dice: Dice) -> bool:
    return _exchange(graph_module.graph, dice, is_random)


@edit("a draw repeated")
def repeat_draw(graph_module: GraphModule, dice: Dice) -> bool:
    return _repeat(graph_module.graph, dice, is_random)


@edit("a call repeated for one reader")
def repeat_call(graph_module: GraphModule, dice: Dice) -> bool:
    return _repeat(graph_module.graph, dice, lambda node: not is_random(node))


def _repeat(graph: Graph, dice: Dice, is_wanted: Callable[[Node], bool]) -> bool:
    node = _pick(dice, [node for node in _calls(graph) if is_wanted(node) and node.users])
    if node is None:
        return False
    user = dice.choice(list(node.users))
    with graph.inserting_before(user):
        copy = graph.node_copy(node)
    _replace_arg(user, node, copy)
    return True


def _exchange(graph: Graph, dice: Dice, is_wanted: Callable[[Node], bool]) -> bool:
    places = _places(graph)
    found = [node for node in _calls(graph) if is_wanted(node)]
    pairs = [
        (first, second)
        for first, second in zip(found, found[1:])
        if _may_move_before(second, first, places) and second not in first.users
    ]
    if pairs:
        first, second = dice.choice(pairs)
        first.prepend(second)
    return bool(pairs)


@edit("two equal calls merged")
def merge_equal(graph_module: GraphModule, dice: Dice) -> bool:
    known: dict[str, Node] = {}
    pairs = []
    for node in _calls(graph_module.graph):
        key = f"{node.target} {node.args} {node.kwargs}"
        if key in known:
            pairs.append((known[key], node))
        known.setdefault(key, node)
    if pairs:
        kept, gone = dice.choice(pairs)
        gone.replace_all_uses_with(kept)
        graph_module.graph.erase_node(gone)
    return bool(pairs)


@edit("a copy made a view")
def copy_to_view(graph_module: GraphModule, dice: Dice) -> bool:
    node = _pick(dice, [node for node in _calls(graph_module.graph) if node.target in (aten.clone.default, aten.contiguous.default)])
    if node is not None:
        node.target, node.args, node.kwargs = aten.alias.default, node.args[:1], {}
    return node is not None


@edit("a view made a copy")
def view_to_copy(graph_module: GraphModule, dice: Dice) -> bool:
    node = _pick(dice, [node for node in _calls(graph_module.graph) if node.target in _VIEWS])
    if node is not None:
        with graph_module.graph.inserting_after(node):
            copy = graph_module.graph.call_function(aten.clone.default, (node,))
        node.replace_all_uses_with(copy, delete_user_cb=lambda user: user is not copy)
    return node is not None


@edit("outputs exchanged")
def exchange_outputs(graph_module: GraphModule, dice: Dice) -> bool:
    output = next(iter(reversed(graph_module.graph.nodes)))
    items = output.args[0]
    if not isinstance(items, list | tuple) or len(set(map(str, items))) < 2:
        return False
    first, second = dice.sample(range(len(items)), 2)
    changed = list(items)
    changed[first], changed[second] = items[second], items[first]
    output.args = (type(items)(changed),)
    return items[first] is not items[second]


@edit("a wait left out")
def drop_wait(graph_module: GraphModule, dice: Dice) -> bool:
    node = _pick(dice, [node for node in _calls(graph_module.graph) if "wait_tensor" in str(node.target)])
    if node is not None:
        node.replace_all_uses_with(node.args[0])
        graph_module.graph.erase_node(node)
    return node is not None


@edit("a write into the input of a collective")
def write_before_wait(graph_module: GraphModule, dice: Dice) -> bool:
    def starts(node: Node) -> bool:
        return "_c10d_functional." in str(node.target) and "wait_tensor" not in str(node.target)

    found = [node for node in _calls(graph_module.graph) if starts(node) and node.args and isinstance(node.args[0], Node)]
    node = _pick(dice, found)
    if node is not None:
        with graph_module.graph.inserting_after(node):
            graph_module.graph.call_function(aten.mul_.Tensor, (node.args[0], 3.0))
    return node is not None


@edit("two collectives exchanged")
def exchange_collectives(graph_module: GraphModule, dice: Dice) -> bool:
    return _exchange(
        graph_module.graph, dice, lambda node: "_c10d_functional." in str(node.target) and "wait_tensor" not in str(node.target)
    )


@edit("a detach dropped")
def drop_detach(graph_module: GraphModule, dice: Dice) -> bool:
    found = [node for node in _calls(graph_module.graph) if node.target in (aten.detach.default, "detach")]
    node = _pick(dice, found)
    if node is not None:
        node.replace_all_uses_with(node.args[0])
        graph_module.graph.erase_node(node)
    return node is not None


@edit("a call without readers dropped")
def drop_unread(graph_module: GraphModule, dice: Dice) -> bool:
    node = _pick(dice, [node for node in _calls(graph_module.graph) if not node.users])
    if node is not None:
        graph_module.graph.erase_node(node)
    return node is not None
