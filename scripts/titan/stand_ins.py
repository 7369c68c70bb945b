"""Replacements of torchtitan's passes by fxopt: the pipeline for each pass, and adapters of its
calls."""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from fxopt import bridge
from torch.fx import GraphModule, Node
from torch.utils.checkpoint import CheckpointPolicy

PACKAGE = "torchtitan.experiments.graph_trainer"
_RULES = "aliases,identity-views,identity-slices,round-trips,reshapes"


def _canonicalize(rules: str) -> str:
    return f'canonicalize{{compat=torch,rules="{rules}"}}'


# torchtitan's pass, as module.function below PACKAGE -> the pipeline that does its work.
PIPELINES = {
    "remove_noop_passes.eliminate_dead_code_pass": "dce{compat=torch,assertions=remove}",
    "remove_noop_passes.remove_detach_pass": _canonicalize("aliases"),
    "remove_noop_passes.remove_identity_view_pass": _canonicalize("identity-views"),
    "remove_noop_passes.remove_b2b_transpose_pass": _canonicalize("round-trips"),
    "remove_noop_passes.remove_identity_slice_pass": _canonicalize("identity-slices"),
    "remove_noop_passes.normalize_view_ops_as_reshape": _canonicalize("reshapes"),
    "remove_noop_passes.canonicalize_graph_pass": _canonicalize(_RULES),
    "selective_activation_remat.selective_activation_remat_pass": (
        'remat{compat=torch,exclude="lm_head,loss",own-subgraphs=true},raise-getitems'
    ),
}
TAGGING = "memory_policy.tag_sac_policy"  # its pipeline follows from its policy argument

# Passes without a counterpart, with the result of a pass that changes nothing.
ABSENT: Mapping[str, Callable[[GraphModule], object]] = {
    "fsdp_passes.deduplicate_fsdp_unshard_chains_pass": lambda gm: gm,
    "fsdp_passes.schedule_fsdp_comms_to_dense_regions_pass": lambda gm: gm,
    "cpu_offload.tag_all_offloadable_activations": lambda gm: gm,
    "cpu_offload.apply_cpu_offload_pass": lambda gm: gm,
    "cpu_offload.prefetch_reloads": lambda gm: 0,
    "ep_chunk_pass.apply_chunk_pass": lambda gm: gm,
    "ep_chunk_pass.ep_overlap_chunk_pass": lambda gm: gm,
    "ep_chunk_pass.populate_chunk_dim_metadata_pass": lambda gm: gm,
    "ep_overlap_pass._schedule_ep_overlap_regions": lambda gm: 0,
    "ep_pass_utils.concretize_ep_chunk_symbolic_shapes_pass": lambda gm: gm,
    "ep_eager_chunk.populate_eager_chunk_metadata_pass": lambda gm: gm,
    "performance_passes.annotate_rmsnorm_for_regional_inductor_pass": lambda gm: gm,
}

# Values of arguments that the tests leave out.
_FILLERS: Mapping[str, object] = {"group_size": 1, "group_name": "0"}


def run_fxopt(graph_module: GraphModule, pipeline: str) -> GraphModule:
    """Applies `pipeline` in place. Raises RuntimeError like torchtitan's passes if fxopt
    refuses."""
    try:
        return bridge.apply(graph_module, pipeline)
    except bridge.FxoptError as error:
        raise RuntimeError(str(error)) from error


def tag(
    graph_module: GraphModule,
    policy: Callable[[Node], CheckpointPolicy] | None,
    force_save: set[Node] | None,
) -> GraphModule:
    """Replaces tag_sac_policy by fxopt's sac. A policy of torchtitan maps to sac's options, nodes
    to save become stored tags."""
    pipeline = sac_pipeline(None) if policy is None else getattr(policy, "pipeline", None)
    if pipeline is None:
        raise NotImplementedError("a policy that is a Python function of nodes has no form outside this process")
    for node in force_save or ():
        node.meta["recompute"] = CheckpointPolicy.MUST_SAVE
    return run_fxopt(graph_module, pipeline)


def sac_pipeline(save_ops: set[object] | None) -> str:
    """Returns the pipeline of the default policy, which saves every op of a set and does not
    alternate matmuls."""
    saved = "" if save_ops is None else f',save-ops="{",".join(sorted(map(bridge.target_name, save_ops)))}"'
    return f'sac{{recompute-every=0,recompute-matmuls-of=""{saved}}}'


@contextlib.contextmanager
def well_formed(graph_module: GraphModule) -> Iterator[list[str]]:
    """Makes every call fit its operator's schema, and restores the calls at the end. Yields their
    names.

    torchtitan's tests chain operators as op(last, y) regardless of their schemas: relu(x, y) or
    reduce_scatter(x, y). fxopt refuses a graph that cannot run.
    """
    changed: list[tuple[Node, int, tuple[Any, ...], dict[str, Any]]] = []
    for node in graph_module.graph.nodes:
        if isinstance(node.target, torch._ops.OpOverload):
            changed += _fit(node, node.target._schema.arguments)
    try:
        yield [node.name for node, *_ in changed]
    finally:
        alive = set(graph_module.graph.nodes)
        for node, kept, surplus, keywords in changed:
            if node in alive:
                node.args = node.args[:kept] + surplus
                node.kwargs = {**{name: arg for name, arg in node.kwargs.items() if name in keywords}, **keywords}


def _fit(node: Node, arguments: list[Any]) -> list[tuple[Node, int, tuple[Any, ...], dict[str, Any]]]:
    """Removes surplus arguments and adds missing ones. Returns a record to undo it; empty for a
    call that fits."""
    places = [argument for argument in arguments if not argument.kwarg_only]
    known = {argument.name for argument in arguments}
    kept = min(len(node.args), len(places))
    missing = [a for a in places[kept:] if not a.has_default_value() and a.name not in node.kwargs]
    keywords = {name: arg for name, arg in node.kwargs.items() if name in known}
    if kept == len(node.args) and not missing and len(keywords) == len(node.kwargs):
        return []
    record = (node, kept, node.args[kept:], dict(node.kwargs))
    node.args = node.args[:kept] + tuple(_FILLERS[argument.name] for argument in missing)
    node.kwargs = keywords
    return [record]


def find(name: str) -> Callable[..., Any]:
    """Returns the function `name` of torchtitan."""
    module, function = name.split(".")
    return getattr(importlib.import_module(f"{PACKAGE}.{module}"), function)


def replace(old: object, new: object) -> None:
    """Replaces `old` by `new` in the globals of all modules of torchtitan's trainer."""
    for module_name, module in list(sys.modules.items()):
        if not module_name.startswith(PACKAGE):
            continue
        for attribute in [name for name, value in vars(module).items() if value is old]:
            setattr(module, attribute, new)
