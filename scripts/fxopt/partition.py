"""Cuts joint graphs into forward and backward, as AOTAutograd and Dynamo need them.

    forward, backward = fxopt.partition(joint, num_fwd_outputs=1, passes="cse,sac{policy=full}")
    forward = fxopt.extract_forward(joint, num_fwd_outputs=1)
    aot_module(model, fw_compiler=..., partition_fn=fxopt.partitioner("sac{policy=full}"))
    torch.compile(model, backend="fxopt", options={"cut": "mode=min-cut"})

Tags in the graph, tags that passes write, or a minimum cut decide which values backward recomputes.
All other values that backward reads are saved. `fxopt passes partition` describes the modes and the
calling convention.
"""

from __future__ import annotations

import collections
import json
import pathlib
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor
from torch._functorch._aot_autograd import descriptors
from torch._functorch._aot_autograd.utils import _is_primal
from torch.fx import Graph, GraphModule, Node
from torch.utils._python_dispatch import _disable_current_modes

from fxopt import bridge, draws, form, tool
from fxopt.form import Json
from fxopt.reader import ArgReader
from fxopt.writer import Exporter

__all__ = ["backend", "extract_forward", "partition", "partitioner"]

_saved: collections.Counter[str] = collections.Counter()  # graphs that this process saved, by folder


def partition(
    joint: GraphModule,
    *,
    num_fwd_outputs: int,
    passes: str | None = None,
    cut: str = "",
    fxopt: str | None = None,
    **told: Any,
) -> tuple[GraphModule, GraphModule]:
    """Cuts a joint graph, and returns the forward and the backward graph. The passes also change the
    joint graph.

    num_fwd_outputs: the number of forward outputs, which come first.
    passes: a pipeline that runs before the cut, such as "cse,sac{policy=per-op}" (default: none).
    cut: options of the pass partition, such as "mode=min-cut" or "mode=min-cut,mark-saved=true".
    told: the arguments `roles` and `outputs` of save(), for a graph that does not record them. If no
        input has a descriptor or the role of a tangent, inputs with "tangents" in their names are
        tangents, as in PyTorch.

    Nodes keep their names and metadata. If a random call is tagged for recompute, forward also saves the
    state of the generator, so that backward draws the same numbers. Errors and warnings are those of
    apply(). Raises FxoptError with FX0803 if the graph cannot be cut. Raises ValueError for mode=inference, which returns one graph:
    use extract_forward().
    """
    if "inference" in cut:
        raise ValueError("partition gives two graphs; extract_forward() gives forward alone")
    if cuts := re.search(r"(?:^|,)\s*(partition|join)\s*(?:[,{]|$)", passes or ""):
        raise ValueError(f"passes must not contain {cuts[1]}: the graph is cut after them; options of the cut belong in cut=")
    told = _complete(told, joint, num_fwd_outputs)
    program = tool.require_fxopt(fxopt, "partition")
    _put_inputs_first(joint)
    # The first part of partition changes nodes. The second part, the cut, only moves them.
    uncut = f"partition{{{','.join(filter(None, (cut, 'cut=false')))}}}"
    new_states = draws.expose_states(joint)
    try:
        bridge.apply(joint, ",".join(filter(None, (passes, uncut))), fxopt=program, **told)
    except tool.FxoptError:
        draws.hide_states(joint, new_states)
        raise
    with _disable_current_modes(), form.no_collection():
        graphs = _cut(joint, program, "partition,raise-getitems" if "compat=torch" in cut else "partition", told)
        forward, backward = _half(joint, graphs["GRAPH_KIND_FORWARD"]), _half(joint, graphs["GRAPH_KIND_BACKWARD"])
        _move_unchecked_last(forward, backward, num_fwd_outputs)
        _describe_outputs(joint, forward, backward, num_fwd_outputs)
        draws.use_saved_draws(forward, backward, draws.exposed_states(joint))
        return forward, backward


def extract_forward(joint: GraphModule, *, num_fwd_outputs: int, fxopt: str | None = None, **told: Any) -> GraphModule:
    """Returns the forward graph of a joint graph for inference. It has all inputs except tangents, and
    no node that only backward needs. It keeps the writes, draws and assertions of forward. The joint
    graph does not change, except that inputs after calls move to the front.

    Arguments and errors are those of partition().
    """
    told = _complete(told, joint, num_fwd_outputs)
    _put_inputs_first(joint)
    with _disable_current_modes(), form.no_collection():
        graphs = _cut(joint, tool.require_fxopt(fxopt, "extract_forward"), "partition{mode=inference}", told)
        return _half(joint, graphs["GRAPH_KIND_INFERENCE"])


def _cut(joint: GraphModule, program: str, cut: str, told: Mapping[str, Any]) -> dict[str, Json]:
    """Returns the graphs of the cut by kind. All their nodes are nodes of the joint graph."""
    module = Exporter(pathlib.Path("module.json"), is_lenient=True).module(joint, **told)
    # The saved values are already decided. Tags that were overridden must not decide again.
    for graph in module["graphs"]:
        for node in graph["nodes"]:
            node.pop("tag", None)
            node["meta"] = [entry for entry in node.get("meta", ()) if entry["key"] != "custom"]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        source, target = folder / "joint.json", folder / "pair.json"
        form.write_json(module, source)
        tool.call(program, ["opt", str(source), "-o", str(target), "--passes", cut], folder)
        graphs = json.loads(target.read_text(encoding="utf-8"))["module"]["graphs"]
    return {graph.get("kind"): graph for graph in reversed(graphs)}


def _complete(told: Mapping[str, Any], joint: GraphModule, num_fwd_outputs: int) -> dict[str, Any]:
    """Returns the arguments of save() for a joint graph."""
    roles = told.get("roles")
    if roles is None or isinstance(roles, Mapping):
        has_tangent = any("tangent" in str(role) for role in (roles or {}).values())
        roles = {**({} if has_tangent else _roles_by_name(joint)), **(roles or {})}
    return {"kind": "joint", "num_forward_outputs": num_fwd_outputs, **told, "roles": roles}


def _roles_by_name(joint: GraphModule) -> dict[str, Json]:
    """Returns the roles of tangents that only their names show, as in graphs from printed code."""
    inputs = joint.graph.find_nodes(op="placeholder")
    if any("desc" in node.meta for node in inputs):
        return {}
    return {node.name: {"role": "tangent"} for node in inputs if "tangents" in str(node.target)}


def _put_inputs_first(joint: GraphModule) -> None:
    """Moves inputs to the front. AOTAutograd adds the tokens of backward's effects after calls."""
    nodes = list(joint.graph.nodes)
    first = next(node for node in nodes if node.op != "placeholder")
    late = [node for node in nodes[nodes.index(first) :] if node.op == "placeholder"]
    for node in late:
        first.prepend(node)
    if late:
        joint.recompile()


def _half(joint: GraphModule, record: Json) -> GraphModule:
    """Builds one of the two graphs from copies of the joint graph's nodes."""
    graph, copies = Graph(), {}
    live = {node.name: node for node in joint.graph.nodes}
    for message in record["nodes"]:
        name, kind = message["name"], message["kind"]
        if kind == "NODE_KIND_OUTPUT":
            graph.output(tuple(ArgReader(None, None).argument(message["args"][0], copies)))
            continue
        node = live[name]
        if kind == "NODE_KIND_PLACEHOLDER" and node.op != "placeholder":
            copy = graph.placeholder(name)
            copy.meta = dict(node.meta)
        else:
            copy = graph.node_copy(node, lambda source: copies[source.name])
        copies[name] = copy
    return GraphModule(joint, graph)


def _is_unchecked(node: Node) -> bool:
    """Returns whether an autograd.Function that Dynamo traced keeps the value without
    save_for_backward. Writes to such a value are allowed."""
    return bool(node.meta.get("saved_tensor_with_no_vc_check"))


def _move_unchecked_last(forward: GraphModule, backward: GraphModule, num_fwd_outputs: int) -> None:
    """Moves the saved tensors that AOTAutograd must not check for writes to the end. AOTAutograd has
    only their number, and skips the last ones."""
    output = forward.graph.output_node()
    leaves = list(output.args[0])
    places = [i for i in range(num_fwd_outputs, len(leaves)) if isinstance(leaves[i].meta.get("val"), Tensor)]
    saved = sorted((leaves[i] for i in places), key=_is_unchecked)
    if not any(map(_is_unchecked, saved)):
        return
    for place, leaf in zip(places, saved, strict=True):
        leaves[place] = leaf
    output.args = (type(output.args[0])(leaves),)
    names = {leaf.name for leaf in saved}
    inputs = [node for node in backward.graph.find_nodes(op="placeholder") if node.name in names]
    after = inputs[-1].next
    for node in sorted(inputs, key=_is_unchecked):
        after.prepend(node)
    for half in (forward, backward):
        half.recompile()


def _describe_outputs(joint: GraphModule, forward: GraphModule, backward: GraphModule, num_fwd_outputs: int) -> None:
    """Writes the metadata of outputs that AOTAutograd's tools and Inductor read: descriptors of the
    leaves, and their stack traces."""
    known = joint.graph.output_node().meta.get("desc")
    checked = descriptors.SavedForBackwardsAOTOutput
    unchecked = getattr(descriptors, "SavedForBackwardsNoVcCheckAOTOutput", checked)
    for half, found in ((forward, slice(num_fwd_outputs)), (backward, slice(num_fwd_outputs, None))):
        output = half.graph.output_node()
        leaves = output.args[0]
        output.meta["output_stack_traces"] = [leaf.meta.get("stack_trace") if isinstance(leaf, Node) else None for leaf in leaves]
        if known is not None:
            saved = leaves[num_fwd_outputs:] if half is forward else ()
            more = [(unchecked if _is_unchecked(leaf) else checked)(i) for i, leaf in enumerate(saved)]
            output.meta["desc"] = [*known[found], *more]


def _mark_static_inputs(joint: GraphModule, places: Sequence[int]) -> dict[str, Json]:
    """Marks the primals at these places as inputs with a static address, and returns their roles.
    Without marks, Inductor assumes a static address for every input of backward."""
    primals = [node for node in joint.graph.find_nodes(op="placeholder") if _is_primal(node)]
    for place, node in enumerate(primals):
        node.meta["is_static_input"] = place in places
    return {node.name: {"static_address": True} for node in primals if node.meta["is_static_input"]}


def partitioner(
    passes: str | None = None, *, cut: str = "", save: str | None = None, fxopt: str | None = None
) -> Callable[..., tuple[GraphModule, GraphModule]]:
    """Returns partition() with these arguments as a `partition_fn` for aot_module, aot_function and
    the AOT backends of Dynamo.

    save: a folder for the joint graphs before the passes: joint_0.pb, joint_1.pb, ... in the order of
        compilation.
    """

    def partition_fn(
        joint_module: GraphModule,
        joint_inputs: object = None,
        *,
        num_fwd_outputs: int,
        static_lifetime_input_indices: Sequence[int] | None = None,
        **_: object,
    ) -> tuple[GraphModule, GraphModule]:
        roles = _mark_static_inputs(joint_module, static_lifetime_input_indices or ())
        if save is not None:
            _save(joint_module, save, kind="joint", num_forward_outputs=num_fwd_outputs, roles=roles, fxopt=fxopt)
        return partition(joint_module, num_fwd_outputs=num_fwd_outputs, passes=passes, cut=cut, fxopt=fxopt, roles=roles)

    return partition_fn


def _save(joint: GraphModule, folder: str, roles: Mapping[str, Json], **told: Any) -> None:
    """Saves a joint graph. Inputs with a static address are parameters and buffers, which Dynamo passes
    as plain inputs."""
    output = joint.graph.output_node()
    described = zip(output.args[0], output.meta.get("desc", ()), strict=False)
    trained = [desc.grad_of for leaf, desc in described if leaf is not None and hasattr(desc, "grad_of")]
    found = {node.name: node.meta.get("desc") for node in joint.graph.find_nodes(op="placeholder")}
    named = {name: {**role, "role": "parameter" if found[name] in trained else "buffer"} for name, role in roles.items()}
    path = pathlib.Path(folder).absolute()
    path.mkdir(parents=True, exist_ok=True)
    with _disable_current_modes():
        bridge.save(joint, path / f"joint_{_saved[str(path)]}.pb", roles=named, **told)
    _saved[str(path)] += 1


def backend(
    graph_module: GraphModule, inputs: Sequence[object], *, options: Mapping[str, object] | None = None, **_: object
) -> Callable:
    """The Dynamo backend "fxopt". fxopt cuts the graphs, and PyTorch's eager operators run them.

    options: "passes", "cut" and "save", as in partitioner(). Raises ValueError for any other option.
    """
    from torch._dynamo.backends.common import aot_autograd
    from torch._dynamo.backends.debugging import boxed_nop

    if unknown := set(options or {}) - {"passes", "cut", "save"}:
        raise ValueError(f"the backend fxopt has no option {', '.join(sorted(unknown))}; it has passes, cut and save")
    # boxed_nop() drops each argument after its last use, so that saved values are freed in backward.
    return aot_autograd(fw_compiler=boxed_nop, partition_fn=partitioner(**(options or {})))(graph_module, inputs)
