"""Mistakes that a partitioner could make, by class: each changes one place of a pair of graphs.

The pair is a forward and a backward graph, in the JSON form. As in classes.py, no class checks
whether its change matters.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator

from fxopt.form import Json, floating, leaves

from differential_parts.programs import Dice
from edit_parts import Edits

PAIR_EDITS = Edits()
UNCHANGED = "nothing: the pair as it was cut"


class Half:
    """One graph of a pair. A leaf is an argument of its output; edits change it in place."""

    def __init__(self, record: Json) -> None:
        self.record = record
        self.nodes: list[Json] = record["nodes"]
        self.by_name = {node["name"]: node for node in self.nodes}
        self.output = next(node for node in self.nodes if node["kind"] == "NODE_KIND_OUTPUT")
        self.leaves = [leaf for arg in self.output["args"] for leaf in leaves(arg)]

    @property
    def calls(self) -> list[Json]:
        return [node for node in self.nodes if node["kind"] == "NODE_KIND_CALL_FUNCTION"]

    @property
    def inputs(self) -> list[Json]:
        return [node for node in self.nodes if node["kind"] == "NODE_KIND_PLACEHOLDER"]

    def before(self, node: Json) -> list[Json]:
        return self.nodes[: self.nodes.index(node)]

    def of(self, leaf: Json) -> Json:
        return self.by_name[leaf["node"]]


class Pair:
    """A module of a forward and a backward graph."""

    def __init__(self, module: Json) -> None:
        self.module = copy.deepcopy(module)
        self.module.pop("certificate", None)
        by_kind = {graph.get("kind"): graph for graph in self.module["graphs"]}
        self.forward, self.backward = Half(by_kind["GRAPH_KIND_FORWARD"]), Half(by_kind["GRAPH_KIND_BACKWARD"])
        self.count = int(self.forward.record["num_forward_outputs"])
        self.bindings: list[Json] = self.module["invocations"][-1].get("bindings", [])

    @property
    def user_leaves(self) -> list[Json]:
        return [leaf for leaf in self.forward.leaves[: self.count] if "node" in leaf]

    @property
    def saved_leaves(self) -> list[Json]:
        return self.forward.leaves[self.count :]

    @property
    def saved_inputs(self) -> list[Json]:
        """The saved inputs of backward, in order."""
        return [node for node in self.backward.inputs if "saved_from_output" in node.get("input", {})]

    def call(self, half: Half, before: Json, target: str, args: list[Json], like: Json) -> Json:
        """Inserts a new call at that place, with a value like that of another node."""
        value = copy.deepcopy(like.get("value", {}))
        for tensor in _records(value, lambda message: "dtype" in message):
            tensor.pop("storage", None)
        uid = int(self.module["counters"]["next_uid"])
        self.module["counters"]["next_uid"] = uid + 1
        node = {"kind": "NODE_KIND_CALL_FUNCTION", "name": f"edited_{uid}", "target": target, "args": args, "value": value, "uid": uid}
        half.nodes.insert(half.nodes.index(before), node)
        half.by_name[node["name"]] = node
        return node


def _records(message: object, is_wanted: Callable[[Json], bool]) -> Iterator[Json]:
    """The records in a message that are wanted, at any depth."""
    if isinstance(message, dict) and is_wanted(message):
        yield message
    for item in message.values() if isinstance(message, dict) else message if isinstance(message, list) else ():
        yield from _records(item, is_wanted)


def _is_reference(message: Json) -> bool:
    """Whether an argument is a node."""
    return isinstance(message.get("node"), str)


def _reads(node: Json) -> list[Json]:
    return [reference for key in ("args", "kwargs") for reference in _records(node.get(key, []), _is_reference)]


def _type(node: Json) -> object:
    """A key that is equal for two interchangeable tensors; None for a node that is no tensor."""
    tensor = node.get("value", {}).get("tensor")
    return None if tensor is None else str([tensor["dtype"], tensor.get("sizes"), tensor.get("symbolic_sizes")])


def _is_float(node: Json) -> bool:
    return node.get("value", {}).get("tensor", {}).get("dtype", "").startswith("DTYPE_FLOAT")


def _alike(nodes: Iterable[Json]) -> list[tuple[Json, Json]]:
    """Pairs of different nodes of one type."""
    known = list(nodes)
    return [
        (one, other)
        for i, one in enumerate(known)
        for other in known[i + 1 :]
        if one is not other and _type(one) is not None and _type(one) == _type(other)
    ]


def _name(node: Json) -> str:
    return node["target"].split(".")[1] if node.get("target", "").count(".") else ""


def _writes(node: Json) -> bool:
    return _name(node).endswith("_") and not _name(node).startswith("_")


@PAIR_EDITS.whole(UNCHANGED)
def change_nothing(pair: Pair, dice: Dice) -> bool:
    return True


Places = list[tuple[Json, Json]]


def _point(pair: Pair, reference: Json, node: Json) -> None:
    """Makes one argument refer to another node."""
    reference["node"] = node["name"]


def _others_saved(pair: Pair) -> Places:
    half = pair.forward
    return [
        (leaf, node)
        for leaf in pair.saved_leaves
        for node in half.before(half.output)
        if node is not half.of(leaf) and _type(node) is not None and _type(node) == _type(half.of(leaf))
    ]


PAIR_EDITS.at("another value saved", _others_saved)(_point)


def _exchange(pair: Pair, one: Json, other: Json) -> None:
    one["node"], other["node"] = other["node"], one["node"]


def _two(references: list[Json], half: Half, *, alike: bool) -> Places:
    return [
        (one, other)
        for i, one in enumerate(references)
        for other in references[i + 1 :]
        if one["node"] != other["node"] and (not alike or _type(half.of(one)) == _type(half.of(other)))
    ]


PAIR_EDITS.at("two saved outputs exchanged", lambda pair: _two(pair.saved_leaves, pair.forward, alike=True))(_exchange)
PAIR_EDITS.at("two saved outputs of other types exchanged", lambda pair: _two(pair.saved_leaves, pair.forward, alike=False))(_exchange)


@PAIR_EDITS.at("two inputs of backward exchanged", lambda pair: _alike(pair.saved_inputs))
def exchange_bindings(pair: Pair, *chosen: Json) -> None:
    inputs = [node["name"] for node in pair.backward.inputs]
    one, other = (
        next(item for item in pair.bindings if item.get("input", 0) == inputs.index(node["name"])) for node in chosen
    )
    one["output"], other["output"] = other.get("output", 0), one.get("output", 0)
    specs = [node["input"] for node in chosen]
    specs[0]["saved_from_output"], specs[1]["saved_from_output"] = specs[1]["saved_from_output"], specs[0]["saved_from_output"]


def _other_inputs(pair: Pair) -> Places:
    by_name = {node["name"]: node for node in pair.saved_inputs}
    return [
        (reference, other)
        for node in pair.backward.calls
        for reference in _reads(node)
        if reference["node"] in by_name
        for other in by_name.values()
        if other["name"] != reference["node"] and _type(other) == _type(by_name[reference["node"]])
    ]


def _returned_saved(pair: Pair) -> Places:
    return [(leaf, pair.forward.of(saved)) for leaf in pair.user_leaves for saved in pair.saved_leaves if leaf["node"] != saved["node"]]


def _gradients(pair: Pair) -> list[Json]:
    return [leaf for leaf in pair.backward.leaves if "node" in leaf]


PAIR_EDITS.at("a saved input read in place of another", _other_inputs)(_point)
PAIR_EDITS.at("user outputs exchanged", lambda pair: _two(pair.user_leaves, pair.forward, alike=False))(_exchange)
PAIR_EDITS.at("a saved value returned to the user", _returned_saved)(_point)


@PAIR_EDITS.whole("gradients exchanged")
def exchange_gradients(pair: Pair, dice: Dice) -> bool:
    places = _two(_gradients(pair), pair.backward, alike=dice.chance(0.5))
    if places:
        _exchange(pair, *dice.choice(places))
    return bool(places)


@PAIR_EDITS.at("a gradient left out", _gradients)
def drop_gradient(pair: Pair, leaf: Json) -> None:
    leaf.clear()
    leaf["none"] = True


def _other_tangents(pair: Pair) -> Places:
    names = [node["name"] for node in pair.backward.inputs if node.get("input", {}).get("role") == "INPUT_ROLE_TANGENT"]
    return [
        (reference, pair.backward.by_name[other])
        for node in pair.backward.calls
        for reference in _reads(node)
        for other in names
        if reference["node"] in names and other != reference["node"]
    ]


PAIR_EDITS.at("a tangent read in place of another", _other_tangents)(_point)


def _saved_floats(pair: Pair) -> list[Json]:
    return [leaf for leaf in pair.saved_leaves if _is_float(pair.forward.of(leaf))]


def _call_at_end(pair: Pair, target: str, leaf: Json) -> str:
    """Calls an operator on a saved value at forward's end. Returns the call's name."""
    half = pair.forward
    return pair.call(half, half.output, target, [{"node": leaf["node"]}], half.of(leaf))["name"]


@PAIR_EDITS.at("another value saved by an op after it", _saved_floats)
def change_saved(pair: Pair, leaf: Json) -> None:
    leaf["node"] = _call_at_end(pair, "aten.neg.default", leaf)


@PAIR_EDITS.at("a saved value changed in place at forward's end", _saved_floats)
def write_saved(pair: Pair, leaf: Json) -> None:
    _call_at_end(pair, "aten.neg_.default", leaf)


@PAIR_EDITS.at(
    "a saved value changed in place at backward's start",
    lambda pair: [node for node in pair.saved_inputs if _is_float(node) and pair.backward.calls],
)
def write_received(pair: Pair, node: Json) -> None:
    pair.call(pair.backward, pair.backward.calls[0], "aten.neg_.default", [{"node": node["name"]}], node)


@PAIR_EDITS.at(
    "a copy saved in place of the value", lambda pair: [leaf for leaf in pair.saved_leaves if _type(pair.forward.of(leaf)) is not None]
)
def save_copy(pair: Pair, leaf: Json) -> None:
    leaf["node"] = _call_at_end(pair, "aten.clone.default", leaf)


def _writes_of(half: Half) -> Places:
    return [(half, node) for node in half.calls if _writes(node) and "node" in node["args"][0]]


def _drop_write(pair: Pair, half: Half, gone: Json) -> None:
    half.nodes.remove(gone)
    _read_instead(gone["name"], gone["args"][0]["node"], half.nodes)


PAIR_EDITS.at("a write of forward lost", lambda pair: _writes_of(pair.forward))(_drop_write)
PAIR_EDITS.at("a write of backward lost", lambda pair: _writes_of(pair.backward))(_drop_write)


def _old_values(pair: Pair) -> Places:
    specs = pair.forward.record.get("outputs", [])
    return [
        (leaf, pair.forward.by_name[spec["of"]])
        for leaf, spec in zip(pair.forward.leaves, specs)
        if spec.get("role") == "OUTPUT_ROLE_MUTATION" and "node" in leaf
    ]


def _other_operands(pair: Pair) -> Places:
    half = pair.backward
    copies = [node for node in half.calls if any(origin.get("kind") == "ORIGIN_RECOMPUTED" for origin in node.get("origins", []))]
    return [
        (reference, other)
        for node in copies
        for reference in _reads(node)
        for other in half.before(node)
        if other["name"] != reference["node"] and _type(other) is not None and _type(other) == _type(half.by_name[reference["node"]])
    ]


PAIR_EDITS.at("an input returned in place of its new value", _old_values)(_point)
PAIR_EDITS.at("a recomputed copy reads another value", _other_operands)(_point)


@PAIR_EDITS.whole("a saved value recomputed from another value")
def recompute_otherwise(pair: Pair, dice: Dice) -> bool:
    """Recomputes a saved value in backward, from inputs of backward that have the types of its
    operands."""
    places = []
    by_type: dict[object, list[Json]] = {}
    for node in pair.backward.inputs:
        by_type.setdefault(_type(node), []).append(node)
    for node in pair.saved_inputs:
        call = pair.forward.of(pair.forward.leaves[int(node["input"]["saved_from_output"])])
        given = [pair.forward.by_name[reference["node"]] for reference in _reads(call)] if "target" in call else []
        if call["kind"] == "NODE_KIND_CALL_FUNCTION" and given and all(_type(each) in by_type for each in given) and not _writes(call):
            places.append((node, call))
    if not places or not pair.backward.calls:
        return False
    node, call = dice.choice(places)
    again = pair.call(pair.backward, pair.backward.calls[0], call["target"], copy.deepcopy(call.get("args", [])), call)
    again["kwargs"] = copy.deepcopy(call.get("kwargs", []))
    for reference in _reads(again):
        reference["node"] = dice.choice(by_type[_type(pair.forward.by_name[reference["node"]])])["name"]
    _read_new(pair.backward, node, again)
    return True


def _read_new(half: Half, old: Json, new: Json) -> None:
    """Lets all nodes after the new one read it in place of the old one."""
    _read_instead(old["name"], new["name"], half.nodes[half.nodes.index(new) + 1 :])


def _read_instead(old: str, new: str, nodes: list[Json]) -> None:
    for reference in (reference for node in nodes for reference in _reads(node)):
        if reference["node"] == old:
            reference["node"] = new


@PAIR_EDITS.at(
    "a draw of forward drawn again by backward",
    lambda pair: [node for node in pair.saved_inputs if _is_float(node) and _is_drawn(pair, node) and pair.backward.calls],
)
def draw_again(pair: Pair, node: Json) -> None:
    half = [{"node": node["name"]}, floating(0.5)]
    _read_new(pair.backward, node, pair.call(pair.backward, pair.backward.calls[0], "aten.bernoulli.p", half, node))


def _is_drawn(pair: Pair, node: Json) -> bool:
    """Whether the value is a draw, or a draw after in-place writes or getitems."""
    value = pair.forward.of(pair.forward.leaves[int(node["input"]["saved_from_output"])])
    while value["kind"] == "NODE_KIND_CALL_FUNCTION":
        if any(word in value["target"] for word in ("rand", "bernoulli", "dropout")):
            return True
        if not _writes(value) and not value["target"].startswith("operator.getitem"):
            return False
        value = pair.forward.by_name[value["args"][0]["node"]]
    return False
