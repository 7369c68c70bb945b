"""Roles of inputs and outputs as each maker of PyTorch graphs records them, for fxopt.save().

Each function takes the framework's own object and returns (GraphModule, keyword arguments of save):

    of(origin)                            any object that save() accepts
    exported(program)                     torch.export's ExportedProgram
    traced_step(traced, module)           TracedResult of torchtitan's graph_trainer
    joint(captured)                       AOTAutograd's joint graph with descriptors
    pair(forward, backward, metadata)     AOTAutograd's forward and backward graphs: two results
    step(graph_module, ...)               a plain make_fx trace of step(state dict, inputs)

Roles come from the framework's tables. A role that follows only from convention is marked
"guessed".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.fx import GraphModule, Node
from torch.utils import _pytree as pytree

from fxopt.training import input_spec, output_spec

if TYPE_CHECKING:
    from torch.export import ExportedProgram

Told = dict[str, Any]
Saved = tuple[GraphModule, Told]


def placeholders(graph_module: GraphModule) -> list[Node]:
    return graph_module.graph.find_nodes(op="placeholder")


def output_leaves(graph_module: GraphModule) -> list[object]:
    """Returns the graph's outputs, flattened, including Nones."""
    return pytree.tree_leaves(_output(graph_module).args[0], is_leaf=lambda leaf: leaf is None)


def _output(graph_module: GraphModule) -> Node:
    return next(iter(reversed(graph_module.graph.nodes)))


def _known(**fields: object) -> Told:
    """Returns the fields that are neither None nor False."""
    return {key: value for key, value in fields.items() if value is not None and value is not False}


def _first_of_each(tensors: Iterable[object]) -> dict[int, int]:
    """Maps the position of each repeated tensor to the position of its first occurrence."""
    first: dict[int, int] = {}
    tensors = list(tensors)  # keeps them alive, so ids stay unique
    positions = {i: first.setdefault(id(tensor), i) for i, tensor in enumerate(tensors) if tensor is not None}
    return {i: earlier for i, earlier in positions.items() if earlier != i}


def of(origin: object) -> Saved:
    """Returns the graph and roles of a GraphModule, an ExportedProgram or a JointWithDescriptors.

    Raises TypeError for other objects; other functions of this module take them with more
    arguments.
    """
    if isinstance(origin, GraphModule):
        return origin, {}
    if isinstance(origin, torch.export.ExportedProgram):
        return exported(origin)
    if type(origin).__name__ == "JointWithDescriptors":
        return joint(origin)
    hint = "; pass it with its module to fxopt.origins.traced_step" if type(origin).__name__ == "TracedResult" else ""
    raise TypeError(f"not a graph: an object of type {type(origin).__name__}{hint}")


# ---- torch.export

_EXPORT_INPUTS = {
    "USER_INPUT": "input",
    "PARAMETER": "parameter",
    "BUFFER": "buffer",
    "CONSTANT_TENSOR": "constant",
    "CUSTOM_OBJ": "constant",
    "TOKEN": "token",
}
_EXPORT_OUTPUTS = {
    "USER_OUTPUT": "user",
    "LOSS_OUTPUT": "loss",
    "BUFFER_MUTATION": "mutation",
    "PARAMETER_MUTATION": "mutation",
    "GRADIENT_TO_PARAMETER": "gradient",
    "GRADIENT_TO_USER_INPUT": "gradient",
    "USER_INPUT_MUTATION": "mutation",
    "TOKEN": "token",
}


def exported(program: ExportedProgram) -> Saved:
    """Returns the graph and roles of an exported program, from its graph signature."""
    signature = program.graph_signature
    state = {**program.constants, **program.state_dict}
    aliases = _first_of_each(state.get(spec.target) for spec in signature.input_specs)
    outputs, mutated = _exported_outputs(signature)
    roles, names, user_index = [], {}, 0
    for i, spec in enumerate(signature.input_specs):
        role = _known(role=_EXPORT_INPUTS[spec.kind.name], fqn=spec.target, persistent=spec.persistent)
        if spec.kind.name == "USER_INPUT":
            role["user_index"] = user_index
            user_index += 1
        name = spec.target or spec.arg.name
        names[name] = spec.arg.name
        roles.append(role | _known(alias_of_input=aliases.get(i), mutated=name in mutated))
    for spec in outputs:
        if target := spec.pop("target", None):
            spec["of"] = names[target]
            if target != names[target]:
                spec["fqn"] = target
    told: Told = {"roles": roles, "outputs": outputs}
    if any(spec["role"] == "gradient" for spec in outputs):
        # Without gradients the kind is unknown: autograd may differentiate an exported program.
        told["kind"] = "forward_loss_backward"
    return program.graph_module, told


def _exported_outputs(signature: Any) -> tuple[list[Told], set[str]]:
    """Returns roles of the outputs, still with their targets, and the set of mutated targets."""
    outputs = [_known(role=_EXPORT_OUTPUTS[spec.kind.name], target=spec.target) for spec in signature.output_specs]
    return outputs, {spec["target"] for spec in outputs if spec["role"] == "mutation"}


# ---- torchtitan's graph_trainer


def traced_step(
    traced: Any,
    module: nn.Module | None,
    optimizer: torch.optim.Optimizer | None = None,
    *,
    is_forward_backward_step: bool = False,
) -> Saved:
    """Returns the graph and roles of a step traced by minimal_fx_tracer.

    module, optimizer: the objects the step was traced with.
    is_forward_backward_step: the traced function is make_fwd_bwd_step's, which returns the loss and
        the gradients of the parameters in order. Otherwise these roles are inferred from the number
        of outputs and marked as guessed.
    """
    flat = _traced_inputs(traced, module, optimizer)
    roles: list[Told] = []
    position = 0
    firsts: dict[int, int] = {}  # the first placeholder of each of the framework's inputs
    names = [node.name for node in placeholders(traced.gm)]
    first_names: dict[str, list[str]] = {}  # the placeholders of each fqn
    for i, (spec, alias) in enumerate(flat):
        firsts[i] = position
        paths = _subclass_paths(traced.input_subclass_layouts.get(i))
        for offset, path in enumerate(paths):
            aliased = None if alias is None else firsts[alias] + offset
            static = position < traced.num_static_inputs
            roles.append(spec | _known(subclass_path=path or None, alias_of_input=aliased, static_address=static))
            if "fqn" in spec:
                first_names.setdefault(str(spec["fqn"]), []).append(names[position])
            position += 1
    told: Told = {"kind": "forward_loss_backward", "roles": roles}
    if outputs := _traced_outputs(traced, module, first_names, is_forward_backward_step):
        told["outputs"] = outputs
    return traced.gm, told


def _traced_inputs(
    traced: Any, module: nn.Module | None, optimizer: torch.optim.Optimizer | None
) -> list[tuple[Told, int | None]]:
    """Returns the framework's inputs, with subclasses intact: the role of each, and the position of
    an earlier input that is the same tensor."""
    parameters = dict(module.named_parameters(remove_duplicate=False)) if module is not None else {}
    buffers = dict(module.named_buffers(remove_duplicate=False)) if module is not None else {}
    persistent = _persistent_buffers(module) if module is not None else set()
    result: list[tuple[Told, int | None]] = []
    aliases = _first_of_each(parameters.get(fqn, buffers.get(fqn)) for fqn in traced.state_fqns)
    for i, fqn in enumerate(traced.state_fqns):
        role = "parameter" if fqn in parameters else "buffer"
        result.append((_known(role=role, fqn=fqn, persistent=fqn in persistent), aliases.get(i)))
    users = traced.user_inputs_spec.num_leaves
    count = traced.num_flat_inputs - len(traced.state_fqns) - users
    result += [(spec, None) for spec in _optimizer_inputs(optimizer, list(parameters), count)]
    return result + [({"role": "input", "user_index": i}, None) for i in range(users)]


def _optimizer_inputs(optimizer: torch.optim.Optimizer | None, parameters: Sequence[str], count: int) -> list[Told]:
    """Returns roles of the optimizer's state, in the order of its state dict:
    {state: {parameter: {key: tensor}}, param_groups}."""
    if optimizer is None or count == 0:
        return [{"role": "optimizer_state"} for _ in range(count)]
    leaves, _ = pytree.tree_flatten_with_path(optimizer.state_dict())
    result = []
    for path, _ in leaves:
        keys = [getattr(key, "key", getattr(key, "idx", None)) for key in path]
        spec = {"role": "optimizer_state", "optimizer_key": str(keys[-1] if keys[0] == "state" else keys[2])}
        if keys[0] == "state" and len(optimizer.param_groups) == 1 and keys[1] < len(parameters):
            spec["fqn"] = parameters[keys[1]]
        result.append(spec)
    return result


def _persistent_buffers(module: nn.Module) -> set[str]:
    """Returns the names of the buffers that belong to the state dict."""
    names = set()
    for prefix, owner in module.named_modules(remove_duplicate=False):
        for name in owner._buffers:
            if name not in owner._non_persistent_buffers_set:
                names.add(f"{prefix}.{name}" if prefix else name)
    return names


def _subclass_paths(layout: Any) -> list[list[str]]:
    """Returns, for each plain tensor of an input or output, its path of attributes in the
    subclass."""

    def paths(meta: Any) -> list[list[str]]:
        if meta is None:
            return [[]]
        return [[attr, *path] for attr in meta.attrs for path in paths(meta.inner_metas[attr][1])]

    return paths(layout.meta) if layout is not None else [[]]


def _traced_outputs(
    traced: Any, module: nn.Module | None, inputs: Mapping[str, Sequence[str]], told: bool
) -> list[Told]:
    """Returns roles of the loss and gradients; empty if the number of outputs does not match.

    told: the caller knows that these are the outputs; otherwise the roles are guessed.
    """
    if module is None:
        return []
    fqns = [fqn for fqn, p in module.named_parameters(remove_duplicate=False) if p.requires_grad]
    if traced.num_flat_outputs != 1 + len(fqns):
        return []
    guessed = _known(guessed=not told)
    layouts = traced.output_subclass_layouts
    result = [{"role": "loss"} | _known(subclass_path=p or None) | guessed for p in _subclass_paths(layouts.get(0))]
    for i, fqn in enumerate(fqns, start=1):
        paths, of = _subclass_paths(layouts.get(i)), inputs[fqn]
        parts = of if len(of) == len(paths) else [of[0]] * len(paths)
        for path, part in zip(paths, parts):
            result.append({"role": "gradient", "of": part, "fqn": fqn} | _known(subclass_path=path or None) | guessed)
    return result


# ---- AOTAutograd


def joint(captured: Any, *, loss: int | None = None, module: nn.Module | None = None) -> Saved:
    """Returns the graph and roles of a joint graph with descriptors (JointWithDescriptors of
    aot_export_joint_with_descriptors).

    loss: the index of the loss among the user's outputs. Default: an output with a tangent and no
        dimensions, marked as guessed.
    module: the captured module, which knows the buffers that belong to the state dict.
    """
    graph_module, metadata = captured.graph_module, captured._aot_state.fw_metadata
    nodes = placeholders(graph_module)
    roles = [_described_input(node) for node in nodes]
    _add_input_metadata(roles, metadata)
    if module is not None:
        _add_module_facts(roles, module)
    outputs = _described_outputs(graph_module, nodes)
    _add_output_metadata(outputs, metadata)
    _mark_loss(graph_module, outputs, roles, metadata.num_mutated_inp_runtime_indices, loss)
    return graph_module, {
        "kind": "joint",
        "roles": roles,
        "outputs": outputs,
        "num_forward_outputs": _forward_outputs(metadata),
    }


def _add_module_facts(roles: list[Told], module: nn.Module) -> None:
    """Marks buffers that belong to the state dict, and inputs that are one tensor under two
    names."""
    persistent = _persistent_buffers(module)
    state = dict(module.named_parameters(remove_duplicate=False)) | dict(module.named_buffers(remove_duplicate=False))
    for role in roles:
        if role.get("role") == "buffer" and role.get("fqn") in persistent:
            role["persistent"] = True
    first: dict[object, int] = {}
    for i, role in enumerate(roles):
        if role.get("role") not in ("parameter", "buffer") or role.get("fqn") not in state:
            continue
        key = (id(state[role["fqn"]]), tuple(role.get("subclass_path", ())))
        if first.setdefault(key, i) != i:
            role["alias_of_input"] = first[key]


def pair(
    forward: GraphModule, backward: GraphModule, metadata: Any, *, loss: int | None = None
) -> tuple[Saved, Saved]:
    """Returns graph and roles of the graphs that AOTAutograd hands to the forward and backward
    compilers.

    metadata: AOTAutograd's ViewAndMutationMeta at that time, from TracingContext.get() or
        JointWithDescriptors._aot_state.
    loss: the index of the loss among the user's outputs, if known.
    """
    return _forward(forward, metadata, loss), _backward(forward, backward, metadata)


def _forward(graph_module: GraphModule, metadata: Any, loss: int | None) -> Saved:
    nodes = placeholders(graph_module)
    roles = [_described_input(node) for node in nodes]
    _add_input_metadata(roles, metadata)
    _mark_rng_states(roles, metadata)
    if _output(graph_module).meta.get("desc") is not None:
        outputs = _described_outputs(graph_module, nodes)
    else:
        outputs = _counted_outputs(graph_module, roles, metadata)
    _add_output_metadata(outputs, metadata)
    first = _forward_outputs(metadata)
    for spec in outputs[first:]:
        spec["role"] = "saved_value"
    start, stop, _ = metadata.tensors_saved_for_backwards_no_vc_check_slice.indices(len(outputs))
    for spec in outputs[start:stop]:
        spec["no_version_check"] = True
    if loss is not None:
        outputs[metadata.num_mutated_inp_runtime_indices + loss]["role"] = "loss"
    return graph_module, {"kind": "forward", "roles": roles, "outputs": outputs, "num_forward_outputs": first}


def _backward(forward: GraphModule, graph_module: GraphModule, metadata: Any) -> Saved:
    nodes = placeholders(graph_module)
    saved = _saved_positions(forward, metadata)
    donated = set(metadata.bw_donated_idxs or ())
    roles: list[Told] = []
    for i, node in enumerate(nodes):
        if i >= len(saved):
            roles.append(_described_input(node))
            continue
        # The descriptor, if any, is the saved forward input's.
        of_input = {k: v for k, v in _described_input(node).items() if k in ("fqn", "subclass_path", "desc")}
        told = _known(donated=i in donated, static_address=node.meta.get("is_static_input"))
        roles.append({"role": "saved_value", "saved_from_output": saved[i]} | of_input | told)
    _mark_rng_states(roles, metadata)
    return graph_module, {"kind": "backward", "roles": roles, "outputs": _described_outputs(graph_module, nodes)}


def _saved_positions(forward: GraphModule, metadata: Any) -> list[int]:
    """Returns the position among the forward graph's outputs of each saved value, in the order of
    the backward graph's inputs.

    The forward outputs end in tensors, opaque objects, sizes. The backward inputs begin with the
    sizes.
    """
    count, first = len(output_leaves(forward)), _forward_outputs(metadata)
    sizes = metadata.num_symints_saved_for_bw or 0
    return [*range(count - sizes, count), *range(first, count - sizes)]


def _forward_outputs(metadata: Any) -> int:
    """Returns the number of outputs that belong to the forward function, with subclasses
    flattened."""
    plain = sum(len(positions) for positions in _flat_ranges(metadata.subclass_fw_graph_out_meta))
    return max(plain, metadata.num_forward_returns) + metadata.num_outputs_rng_offset


def _described_input(node: Node) -> Told:
    """Returns fields from a placeholder's descriptor, spelled as in save()."""
    if (desc := node.meta.get("desc")) is None:
        return {"role": "rng_state"} if isinstance(node.meta.get("val"), torch.Generator) else {}
    return _spoken(input_spec(repr(desc)), "INPUT_ROLE_")


def _spoken(spec: Told, prefix: str) -> Told:
    return spec | ({"role": str(spec["role"]).removeprefix(prefix).lower()} if "role" in spec else {})


def _described_outputs(graph_module: GraphModule, nodes: Sequence[Node]) -> list[Told]:
    leaves = output_leaves(graph_module)
    descriptors = _output(graph_module).meta.get("desc") or [None] * len(leaves)
    by_descriptor = {repr(node.meta["desc"]): node.name for node in nodes if node.meta.get("desc") is not None}
    result = []
    for leaf, desc in zip(leaves, descriptors, strict=True):
        result.append({} if desc is None else _spoken(output_spec(repr(desc), by_descriptor), "OUTPUT_ROLE_"))
    return result


def _counted_outputs(graph_module: GraphModule, roles: Sequence[Told], metadata: Any) -> list[Told]:
    """Returns roles of a forward graph's outputs from the metadata's counts. The partitioner drops
    the descriptors if it inserts states of random number generators.

    The order is mutated inputs, the user's outputs, bases of views, offset, saved values.
    """
    names = [node.name for node in placeholders(graph_module)]
    inputs = _flat_ranges(metadata.subclass_inp_meta)
    outputs: list[Told] = []
    for i in metadata.mutated_inp_runtime_indices:
        for position in (len(metadata.tokens) + p for p in inputs[i]):
            fqn = roles[position].get("fqn")
            outputs.append({"role": "mutation", "of": names[position]} | _known(fqn=fqn))
    results = _flat_ranges(metadata.subclass_fw_graph_out_meta)[len(metadata.mutated_inp_runtime_indices) :]
    for i, positions in enumerate(results):
        outputs += [{"role": "user" if i < metadata.num_outputs else "intermediate_base"} for _ in positions]
    outputs += [{"role": "rng_offset"} for _ in range(metadata.num_outputs_rng_offset)]
    saved = len(output_leaves(graph_module)) - len(outputs)
    return outputs + [{"role": "saved_value"} for _ in range(saved)]


def _flat_ranges(metas: Sequence[Any]) -> list[range]:
    """Returns the positions of each input in the graph, which has subclasses flattened."""
    ranges, start = [], 0
    for meta in metas:
        ranges.append(range(start, start + getattr(meta, "arg_count", 1)))
        start = ranges[-1].stop
    return ranges


def _add_input_metadata(roles: list[Told], metadata: Any) -> None:
    """Adds AOTAutograd's facts about inputs: mutated or not, with a static address or not."""
    tokens, static = len(metadata.tokens), set(metadata.static_input_indices)
    for i, positions in enumerate(_flat_ranges(metadata.subclass_inp_meta)):
        info = metadata.input_info[i]
        for position in positions:
            written = info.mutates_data or info.mutates_metadata
            roles[tokens + position] |= _known(mutated=written, static_address=i in static)


def _add_output_metadata(outputs: list[Told], metadata: Any) -> None:
    """Marks the user's outputs that are inputs or views of inputs."""
    offset = len(metadata.tokens) + metadata.num_mutated_inp_runtime_indices
    if any(hasattr(meta, "attrs") for meta in metadata.subclass_fw_graph_out_meta):
        return  # positions count subclasses, not the graph's plain tensors
    for i, info in enumerate(metadata.output_info):
        if info.output_type.name in ("alias_of_input", "is_input") and offset + i < len(outputs):
            outputs[offset + i]["alias_of_input"] = info.base_idx + len(metadata.tokens)


def _mark_loss(
    graph_module: GraphModule, outputs: list[Told], roles: Sequence[Told], offset: int, loss: int | None
) -> None:
    if loss is not None:
        outputs[offset + loss]["role"] = "loss"
        return
    tangents = {role.get("desc") for role in roles if role.get("role") == "tangent"}
    for leaf, spec in zip(output_leaves(graph_module), outputs):
        value = leaf.meta.get("val") if isinstance(leaf, Node) else None
        has_tangent = f"TangentAOTInput(output={spec.get('desc')})" in tangents
        if has_tangent and isinstance(value, Tensor) and value.ndim == 0:
            spec |= {"role": "loss", "guessed": True}


def _mark_rng_states(roles: list[Told], metadata: Any) -> None:
    """Marks generators, which follow all inputs with a descriptor."""
    count = metadata.num_graphsafe_rng_states
    for role in roles[len(roles) - count :]:
        role["role"] = "rng_state"


# ---- make_fx


def step(
    graph_module: GraphModule,
    parameters: Mapping[str, Tensor] | Sequence[str],
    buffers: Mapping[str, Tensor] | Sequence[str] = (),
    *,
    persistent: Iterable[str] | None = None,
    outputs: str = "loss_and_gradients",
) -> Saved:
    """Returns the graph and roles of a make_fx trace of step({**parameters, **buffers}, *inputs).

    make_fx records no roles, so the caller gives them.

    parameters, buffers: the names of the state in order, or tensors by name. Tensors also reveal
        aliases.
    persistent: the buffers that belong to the state dict. Default: all.
    outputs: "loss_and_gradients" (the loss, then gradients of all parameters in order) or "user".

    Raises ValueError if the outputs are not a loss and these gradients.
    """
    names = [node.name for node in placeholders(graph_module)]
    state = [parameters[name] if isinstance(parameters, Mapping) else None for name in parameters]
    state += [buffers[name] if isinstance(buffers, Mapping) else None for name in buffers]
    aliases = _first_of_each(state)
    kept = set(buffers) if persistent is None else set(persistent)
    roles = [{"role": "parameter", "fqn": fqn} for fqn in parameters]
    roles += [{"role": "buffer", "fqn": fqn} | _known(persistent=fqn in kept) for fqn in buffers]
    for i, alias in aliases.items():
        roles[i]["alias_of_input"] = alias
    roles += [{"role": "input", "user_index": i} for i in range(len(names) - len(roles))]
    leaves = output_leaves(graph_module)
    if outputs == "user":
        return graph_module, {"kind": "inference", "roles": roles, "outputs": ["user"] * len(leaves)}
    gradients = [{"role": "gradient", "of": of, "fqn": fqn} for of, fqn in zip(names, parameters)]
    if len(leaves) != 1 + len(gradients):
        raise ValueError(f"the graph has {len(leaves)} outputs, not a loss and {len(gradients)} gradients")
    return graph_module, {
        "kind": "forward_loss_backward",
        "roles": roles,
        "outputs": [{"role": "loss"}, *gradients],
    }
