"""Metadata of training frameworks on nodes, inputs and outputs, as fields of the schema and back.

Standard library only. Covers torch.fx's recompute and partitioner tags, torchtitan's annotations,
and AOTAutograd's descriptors of inputs and outputs.
"""

from __future__ import annotations

import ast
import re

from fxopt.form import Json, integer

# ---- metadata of nodes

TAGS = {
    "MUST_SAVE": "TAG_MUST_SAVE",
    "PREFER_SAVE": "TAG_PREFER_SAVE",
    "MUST_RECOMPUTE": "TAG_MUST_RECOMPUTE",
    "PREFER_RECOMPUTE": "TAG_PREFER_RECOMPUTE",
    "MUST_CPU_OFFLOAD": "TAG_MUST_OFFLOAD",
    "PREFER_CPU_OFFLOAD": "TAG_PREFER_OFFLOAD",
}
_POLICIES = {tag: policy for policy, tag in TAGS.items()}
_PARTITIONER_TAGS = {
    "is_forward": "PHASE_MARKER_IS_FORWARD",
    "is_backward": "PHASE_MARKER_IS_BACKWARD",
    "must_be_in_forward": "PHASE_MARKER_MUST_BE_IN_FORWARD",
    "must_be_in_backward": "PHASE_MARKER_MUST_BE_IN_BACKWARD",
}
_CUSTOM_MARKERS = {
    ("phase", "backward"): "PHASE_MARKER_CUSTOM_PHASE_BACKWARD",
    ("phase", "forward"): "PHASE_MARKER_CUSTOM_PHASE_FORWARD",
    ("remat_pass_tag", "is_backward"): "PHASE_MARKER_REMAT_PASS_TAG",
    ("ap_graph_part", "forward"): "PHASE_MARKER_AP_FORWARD",
    ("ap_graph_part", "backward"): "PHASE_MARKER_AP_BACKWARD",
}
_FORWARD_MARKERS = frozenset(
    f"PHASE_MARKER_{name}" for name in ("IS_FORWARD", "MUST_BE_IN_FORWARD", "CUSTOM_PHASE_FORWARD", "AP_FORWARD")
)


def _region(meta: dict[str, object], custom: dict) -> Json:
    region: Json = {}
    if "ac_graph_id" in meta:
        if meta["ac_graph_id"] is None:
            region["id_is_none"] = True
        elif type(meta["ac_graph_id"]) is int:
            region["id"] = integer(meta["ac_graph_id"])
    elif type(custom.get("ac_region_id")) is int:
        region["id"] = integer(custom["ac_region_id"])
    if meta.get("has_backward_hook") is True:
        region["has_backward_hook"] = True
    return region


def _bucket(value: object) -> Json | None:
    """Returns `fsdp_bucket` as a Bucket, if it is exactly {plan_fqns, direction}."""
    if not isinstance(value, dict) or list(value) != ["plan_fqns", "direction"]:
        return None
    fqns, direction = value["plan_fqns"], value["direction"]
    if not isinstance(fqns, tuple) or not all(isinstance(x, str) for x in (*fqns, direction)):
        return None
    return {"plan_fqns": list(fqns), "direction": direction}


# The second is on a backward node and holds the stack of its forward node.
_STACKS = ("nn_module_stack", "fwd_nn_module_stack")
# Dynamo's name of the compiled module: a local or global variable, or an item, attribute or closure
# cell of one.
_ROOT = re.compile(r"^([LG]\['[^']*'\](\[\d+\]|\.__\w+__|\.cell_contents)*|L__self__)\.?")


def _module_path(meta: dict[str, object], custom: dict) -> tuple[str, str]:
    """Returns the path of the innermost module that called a node, and the metadata key it came
    from; the key is empty for custom.module_fqn."""
    if isinstance(custom.get("module_fqn"), str):
        return custom["module_fqn"], ""
    for key in _STACKS:
        stack = meta.get(key)
        if not isinstance(stack, dict) or not stack:
            continue
        entry = list(stack.values())[-1]
        if isinstance(entry, tuple) and entry and isinstance(entry[0], str):
            path = _ROOT.sub("", entry[0])
            return re.sub(r"\[['\"]?([^\]'\"]*)['\"]?\]", r".\1", path).lstrip("."), key
    return "", ""


def pair_by_seq_nr(nodes: list[Json]) -> None:
    """Gives each backward node without a module path the path of the forward node with the same
    autograd sequence number."""
    paths: dict[object, str] = {}
    for node in nodes:
        if "seq_nr" in node and node.get("module_path") and node.get("phase") != "PHASE_BACKWARD":
            paths.setdefault(node["seq_nr"], node["module_path"])
    for node in nodes:
        path = paths.get(node.get("seq_nr")) if "module_path" not in node and node.get("phase") == "PHASE_BACKWARD" else None
        if path is not None:
            node["module_path"], node["module_path_source"] = path, "seq_nr"


def training_fields(meta: dict[str, object]) -> tuple[Json, set[str]]:
    """Returns the node fields for metadata of known meaning, and the keys that these fields
    replace.

    `meta` maps keys to plain values; `recompute` is the policy's name. A phase is written only if a
    marker gives it. The fields replace `custom` only if it is exactly {'module_fqn': path}.
    Otherwise the whole dict stays metadata, and the path and the region id (custom.ac_region_id)
    are written as fields in addition. A value of an unexpected type stays metadata.
    """
    fields: Json = {}
    consumed: set[str] = set()
    custom = meta.get("custom") if isinstance(meta.get("custom"), dict) else {}

    markers = []
    if meta.get("autograd_backward") is True:
        markers.append("PHASE_MARKER_AUTOGRAD_BACKWARD")
        consumed.add("autograd_backward")
    if meta.get("partitioner_tag") in _PARTITIONER_TAGS:
        markers.append(_PARTITIONER_TAGS[meta["partitioner_tag"]])
        consumed.add("partitioner_tag")
    if custom:
        markers += [marker for (key, value), marker in _CUSTOM_MARKERS.items() if custom.get(key) == value]
    if markers:
        fields["phase"] = "PHASE_FORWARD" if _FORWARD_MARKERS.issuperset(markers) else "PHASE_BACKWARD"
        fields["phase_markers"] = markers
    if isinstance(meta.get("recompute"), str) and meta["recompute"] in TAGS:
        fields["tag"] = TAGS[meta["recompute"]]
        consumed.add("recompute")
    if region := _region(meta, custom):
        fields["region"] = region
        told_twice = "id" in region and custom.get("ac_region_id") == region["id"]
        if ("id" in region or "id_is_none" in region) and not told_twice:
            consumed.add("ac_graph_id")
        if "has_backward_hook" in region:
            consumed.add("has_backward_hook")
    path, source = _module_path(meta, custom)
    if source and path:
        fields["module_path"], fields["module_path_source"] = path, source
    elif isinstance(custom.get("module_fqn"), str):
        fields["module_path"] = path
        if len(custom) == 1:
            consumed.add("custom")
    if type(meta.get("seq_nr")) is int and -(2**63) <= meta["seq_nr"] < 2**63:
        fields["seq_nr"] = integer(meta["seq_nr"])
        consumed.add("seq_nr")
    if (bucket := _bucket(meta.get("fsdp_bucket"))) is not None:
        fields["bucket"] = bucket
        consumed.add("fsdp_bucket")
    return fields, consumed


# The metadata keys that training_meta() returns, except `custom`.
TRAINING_KEYS = frozenset("autograd_backward partitioner_tag recompute ac_graph_id has_backward_hook seq_nr fsdp_bucket".split())
# The fields of a node that training_meta() reads, and the phase, which follows from them.
TRAINING_FIELDS = tuple("phase phase_markers tag region module_path module_path_source seq_nr bucket".split())
_AS_META = {
    "PHASE_MARKER_AUTOGRAD_BACKWARD": ("autograd_backward", True),
    **{marker: ("partitioner_tag", tag) for tag, marker in _PARTITIONER_TAGS.items()},
}


def training_meta(node: Json, custom: object) -> dict[str, object]:
    """Returns the metadata that training_fields() replaced by fields.

    custom: the node's metadata of that key. The recompute policy is returned by name.
    """
    meta: dict[str, object] = {}
    for marker in node.get("phase_markers", ()):
        if marker in _AS_META:
            key, value = _AS_META[marker]
            meta[key] = value
    if node.get("tag") in _POLICIES:
        meta["recompute"] = _POLICIES[node["tag"]]
    region = node.get("region", {})
    if region.get("id_is_none"):
        meta["ac_graph_id"] = None
    elif "id" in region and not (isinstance(custom, dict) and custom.get("ac_region_id") == int(region["id"])):
        meta["ac_graph_id"] = int(region["id"])
    if region.get("has_backward_hook"):
        meta["has_backward_hook"] = True
    if "module_path" in node and custom is None and "module_path_source" not in node:
        meta["custom"] = {"module_fqn": node["module_path"]}
    if "seq_nr" in node:
        meta["seq_nr"] = int(node["seq_nr"])
    if (bucket := node.get("bucket")) is not None and set(bucket) <= {"plan_fqns", "direction"}:
        meta["fsdp_bucket"] = {"plan_fqns": tuple(bucket.get("plan_fqns", ())), "direction": bucket.get("direction", "")}
    return meta


# ---- calling conventions, from the framework's descriptors

_INPUTS = {
    "ParamAOTInput": "INPUT_ROLE_PARAMETER",
    "BufferAOTInput": "INPUT_ROLE_BUFFER",
    "PlainAOTInput": "INPUT_ROLE_INPUT",
    "TangentAOTInput": "INPUT_ROLE_TANGENT",
    "PhiloxForwardSeedAOTInput": "INPUT_ROLE_SEED",
    "PhiloxBackwardSeedAOTInput": "INPUT_ROLE_SEED",
    "PhiloxForwardBaseOffsetAOTInput": "INPUT_ROLE_RNG_OFFSET",
    "PhiloxBackwardBaseOffsetAOTInput": "INPUT_ROLE_RNG_OFFSET",
    "ForwardTokenAOTInput": "INPUT_ROLE_TOKEN",
    "BackwardTokenAOTInput": "INPUT_ROLE_TOKEN",
    "SubclassSizeAOTInput": "INPUT_ROLE_SYMBOL",
    "SubclassStrideAOTInput": "INPUT_ROLE_SYMBOL",
    "ViewBaseAOTInput": "INPUT_ROLE_INPUT",
    "SyntheticBaseAOTInput": "INPUT_ROLE_INPUT",
}
_OUTPUTS = {
    "PlainAOTOutput": "OUTPUT_ROLE_USER",
    "GradAOTOutput": "OUTPUT_ROLE_GRADIENT",
    "InputMutationAOTOutput": "OUTPUT_ROLE_MUTATION",
    "IntermediateBaseAOTOutput": "OUTPUT_ROLE_INTERMEDIATE_BASE",
    "PhiloxUpdatedForwardOffsetAOTOutput": "OUTPUT_ROLE_RNG_OFFSET",
    "PhiloxUpdatedBackwardOffsetAOTOutput": "OUTPUT_ROLE_RNG_OFFSET",
    "ForwardTokenAOTOutput": "OUTPUT_ROLE_TOKEN",
    "BackwardTokenAOTOutput": "OUTPUT_ROLE_TOKEN",
    "SavedForBackwardsAOTOutput": "OUTPUT_ROLE_SAVED_VALUE",
    "SavedForBackwardsNoVcCheckAOTOutput": "OUTPUT_ROLE_SAVED_VALUE",
}


def _descriptor(text: str) -> tuple[str, dict[str, ast.expr], list[str]] | None:
    """Returns class, fields and subclass path (outermost first) of a printed descriptor; None if it
    does not parse."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        return None
    path: list[str] = []
    while isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name):
        fields = {keyword.arg: keyword.value for keyword in tree.keywords if keyword.arg}
        if not tree.func.id.startswith("SubclassGetAttr") or not isinstance(fields.get("attr"), ast.Constant):
            return tree.func.id, fields, path
        path.insert(0, str(fields["attr"].value))
        tree = fields.get("base")
    return None


def input_spec(descriptor: str) -> Json:
    """Returns a placeholder's InputSpec from the framework's descriptor (its repr)."""
    spec: Json = {}
    if (parsed := _descriptor(descriptor)) is not None:
        name, fields, path = parsed
        if name in _INPUTS:
            spec["role"] = _INPUTS[name]
        if isinstance(fields.get("target"), ast.Constant):
            spec["fqn"] = fields["target"].value
        if path:
            spec["subclass_path"] = path
        if name == "PlainAOTInput" and isinstance(fields.get("idx"), ast.Constant):
            spec["user_index"] = fields["idx"].value
    spec["desc"] = descriptor
    return spec


def output_spec(descriptor: str, placeholders: dict[str, str]) -> Json:
    """Returns an output leaf's OutputSpec. `placeholders` maps descriptors of placeholders to
    names."""
    spec: Json = {}
    if (parsed := _descriptor(descriptor)) is not None:
        name, fields, path = parsed
        if name in _OUTPUTS:
            spec["role"] = _OUTPUTS[name]
        if name == "SavedForBackwardsNoVcCheckAOTOutput":
            spec["no_version_check"] = True
        of = fields.get("grad_of") or fields.get("mutated_input")
        if of is not None:
            source = ast.unparse(of)
            for attribute in path:
                source = f"SubclassGetAttrAOTInput(base={source}, attr={attribute!r})"
            of_input = input_spec(source)
            if source in placeholders:
                spec["of"] = placeholders[source]
            if "fqn" in of_input:
                spec["fqn"] = of_input["fqn"]
        if path:
            spec["subclass_path"] = path
    spec["desc"] = descriptor
    return spec
