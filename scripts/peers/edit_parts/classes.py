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
from edit_parts import Edit, Edits

aten = torch.ops.aten
EDITS = Edits(lambda graph_module: graph_module.graph)

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


def _calls(graph: Graph) -> list[Node]:
    return [node for node in graph.nodes if node.op in ("call_function", "call_method")]


def _that(is_wanted: Callable[[Node], bool]) -> Callable[[Graph], list[Node]]:
    """The calls that are wanted."""
    return lambda graph: [node for node in _calls(graph) if is_wanted(node)]


def _reads_a_node_first(node: Node) -> bool:
    """Whether the first argument is a node."""
    return bool(node.args) and isinstance(node.args[0], Node)


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


@EDITS.at(
    "two arguments exchanged",
    _that(lambda node: len(node.args) > 1 and all(isinstance(arg, Node) for arg in node.args[:2]) and node.args[0] is not node.args[1]),
)
def exchange_arguments(graph: Graph, node: Node) -> None:
    node.args = (node.args[1], node.args[0], *node.args[2:])


def _with_another(graph: Graph) -> list[tuple[Node, Node, Node]]:
    """A node, one that it reads, and an earlier one that is like that one."""
    earlier: list[Node] = []
    found = []
    for node in graph.nodes:
        if node.op != "output":
            found += [(node, old, new) for old in node.all_input_nodes for new in earlier[-12:] if old is not new and _alike(old, new)]
            earlier.append(node)
    return found


@EDITS.at("another tensor given", _with_another)
def give_another(graph: Graph, node: Node, old: Node, new: Node) -> None:
    _replace_arg(node, old, new)


def _argument(is_wanted: Callable[[object], bool]) -> Callable[[Graph], list[tuple[Node, int]]]:
    return lambda graph: [(node, i) for node in _calls(graph) for i, arg in enumerate(node.args) if is_wanted(arg)]


@EDITS.at("a constant changed", _argument(lambda arg: isinstance(arg, int | float) and not isinstance(arg, torch.SymInt)))
def change_constant(graph: Graph, node: Node, i: int) -> None:
    arg = node.args[i]
    node.update_arg(i, not arg if isinstance(arg, bool) else arg + 1)


@EDITS.at(
    "an element of a list changed",
    _argument(lambda arg: isinstance(arg, list | tuple) and len(arg) > 1 and all(isinstance(item, int) for item in arg)),
)
def change_element(graph: Graph, node: Node, i: int) -> None:
    node.update_arg(i, [*node.args[i][1:], node.args[i][0]])


@EDITS.whole("a keyword argument dropped")
def drop_keyword(graph_module: GraphModule, dice: Dice) -> bool:
    node = _pick(dice, _that(lambda node: node.kwargs and not {"out", "group_name"} & set(node.kwargs))(graph_module.graph))
    if node is not None:
        gone = dice.choice(sorted(node.kwargs))
        node.kwargs = {key: value for key, value in node.kwargs.items() if key != gone}
    return node is not None


@EDITS.at("another operator", _that(lambda node: node.target in _OTHER_OPS))
def other_operator(graph: Graph, node: Node) -> None:
    node.target = _OTHER_OPS[node.target]


@EDITS.at("another dtype", _that(lambda node: any(isinstance(arg, torch.dtype) for arg in (*node.args, *node.kwargs.values()))))
def other_dtype(graph: Graph, node: Node) -> None:
    def other(arg: object) -> object:
        return (torch.float64 if arg == torch.float32 else torch.float32) if isinstance(arg, torch.dtype) else arg

    node.args = tuple(other(arg) for arg in node.args)
    node.kwargs = {key: other(arg) for key, arg in node.kwargs.items()}


def _moves(is_wanted: Callable[[Node], bool], *, up: bool) -> Callable[[Graph], list[tuple[Node, Node]]]:
    """A call that may move, and the node that it may pass."""

    def places_of(graph: Graph) -> list[tuple[Node, Node]]:
        nodes, places = list(graph.nodes), _places(graph)
        found = []
        for place, node in enumerate(nodes):
            if node.op not in ("call_function", "call_method") or not is_wanted(node):
                continue
            others = nodes[max(0, place - 12) : place] if up else nodes[place + 1 : place + 13]
            legal = _may_move_before if up else _may_move_after
            found += [(node, other) for other in others if other.op not in ("placeholder", "output") and legal(node, other, places)]
        return found

    return places_of


def _put_before(graph: Graph, node: Node, other: Node) -> None:
    other.prepend(node)


def _put_after(graph: Graph, node: Node, other: Node) -> None:
    other.append(node)


EDITS.at("a call moved to an earlier place", _moves(lambda node: not writes(node), up=True))(_put_before)
EDITS.at("a call moved to a later place", _moves(lambda node: not writes(node), up=False))(_put_after)
EDITS.at("a write moved to an earlier place", _moves(writes, up=True))(_put_before)
EDITS.at("a write moved to a later place", _moves(writes, up=False))(_put_after)


@EDITS.at("a write dropped", _that(lambda node: writes(node) and _reads_a_node_first(node)))
def drop_for_its_argument(graph: Graph, node: Node) -> None:
    node.replace_all_uses_with(node.args[0])
    graph.erase_node(node)


@EDITS.at("a write done twice", _that(writes))
def repeat_write(graph: Graph, node: Node) -> None:
    with graph.inserting_after(node):
        graph.node_copy(node)


@EDITS.at("a call made in place", _that(lambda node: node.target in _WRITERS))
def make_in_place(graph: Graph, node: Node) -> None:
    node.target = _WRITERS[node.target]


@EDITS.at(
    "metadata changed in place",
    lambda graph: [node for node in graph.nodes if (value := _value(node)) is not None and value.dim() == 2 and node.users],
)
def change_metadata(graph: Graph, node: Node) -> None:
    nodes = list(graph.nodes)
    last = max([nodes.index(node), *(place for place, each in enumerate(nodes) if each.op == "placeholder")])
    with graph.inserting_after(nodes[last]):
        graph.call_function(aten.t_.default, (node,))


def _given(graph: Graph) -> list[Node]:
    return [node for node in graph.nodes if node.op in ("placeholder", "get_attr")]


@EDITS.at(
    "an input or attribute written",
    lambda graph: [node for node in _given(graph) if (value := _value(node)) is not None and value.is_floating_point()],
)
def write_input(graph: Graph, node: Node) -> None:
    with graph.inserting_after(_given(graph)[-1]):
        graph.call_function(aten.mul_.Tensor, (node, 2.0))


def _successive(is_wanted: Callable[[Node], bool]) -> Callable[[Graph], list[tuple[Node, Node]]]:
    """Successive calls that are wanted, the second first, if it may move before the first."""

    def pairs(graph: Graph) -> list[tuple[Node, Node]]:
        places, found = _places(graph), _that(is_wanted)(graph)
        return [
            (second, first)
            for first, second in zip(found, found[1:])
            if _may_move_before(second, first, places) and second not in first.users
        ]

    return pairs


def _repeating(is_wanted: Callable[[Node], bool]) -> Edit:
    """Repeats a call for one of its readers."""

    def repeat(graph_module: GraphModule, dice: Dice) -> bool:
        node = _pick(dice, _that(lambda node: is_wanted(node) and node.users)(graph_module.graph))
        if node is None:
            return False
        user = dice.choice(list(node.users))
        with graph_module.graph.inserting_before(user):
            copy = graph_module.graph.node_copy(node)
        _replace_arg(user, node, copy)
        return True

    return repeat


EDITS.at("two draws exchanged", _successive(is_random))(_put_before)
EDITS["a draw repeated"] = _repeating(is_random)
EDITS["a call repeated for one reader"] = _repeating(lambda node: not is_random(node))


def _equal_calls(graph: Graph) -> list[tuple[Node, Node]]:
    known: dict[str, Node] = {}
    pairs = []
    for node in _calls(graph):
        key = f"{node.target} {node.args} {node.kwargs}"
        if key in known:
            pairs.append((known[key], node))
        known.setdefault(key, node)
    return pairs


@EDITS.at("two equal calls merged", _equal_calls)
def merge_equal(graph: Graph, kept: Node, gone: Node) -> None:
    gone.replace_all_uses_with(kept)
    graph.erase_node(gone)


@EDITS.at("a copy made a view", _that(lambda node: node.target in (aten.clone.default, aten.contiguous.default)))
def copy_to_view(graph: Graph, node: Node) -> None:
    node.target, node.args, node.kwargs = aten.alias.default, node.args[:1], {}


@EDITS.at("a view made a copy", _that(lambda node: node.target in _VIEWS))
def view_to_copy(graph: Graph, node: Node) -> None:
    with graph.inserting_after(node):
        copy = graph.call_function(aten.clone.default, (node,))
    node.replace_all_uses_with(copy, delete_user_cb=lambda user: user is not copy)


@EDITS.whole("outputs exchanged")
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


def _starts(node: Node) -> bool:
    """Whether a call launches a collective."""
    return "_c10d_functional." in str(node.target) and "wait_tensor" not in str(node.target)


EDITS.at("a wait left out", _that(lambda node: "wait_tensor" in str(node.target)))(drop_for_its_argument)


@EDITS.at("a write into the input of a collective", _that(lambda node: _starts(node) and _reads_a_node_first(node)))
def write_before_wait(graph: Graph, node: Node) -> None:
    with graph.inserting_after(node):
        graph.call_function(aten.mul_.Tensor, (node.args[0], 3.0))


EDITS.at("two collectives exchanged", _successive(_starts))(_put_before)
EDITS.at("a detach dropped", _that(lambda node: node.target in (aten.detach.default, "detach")))(drop_for_its_argument)


@EDITS.at("a call without readers dropped", _that(lambda node: not node.users))
def drop_unread(graph: Graph, node: Node) -> None:
    graph.erase_node(node)
