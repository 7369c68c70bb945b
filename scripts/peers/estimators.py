"""PyTorch's own estimates of peak memory for a torch.fx graph."""

from __future__ import annotations

import torch
from bound_values import BoundGraph, BoundInterpreter
from torch.distributed._tools.mem_tracker import MemTracker
from torch.fx import GraphModule
from torch.utils._pytree import tree_leaves


def mem_tracker(bound: BoundGraph) -> dict[str, int]:
    """The peak of each device as MemTracker counts it, with inputs and constants registered."""
    given = {node: bound.given(node) for node in bound.nodes if node.op in ("placeholder", "get_attr")}
    tracker = MemTracker()
    tracker.supports_higher_order_operators = True
    tracker.track_external(*(leaf for leaf in tree_leaves(list(given.values())) if isinstance(leaf, torch.Tensor)))
    with bound.mode, torch.no_grad(), tracker:
        BoundInterpreter(bound).run(*(value for node, value in given.items() if node.op == "placeholder"))
    return {str(device): parts["Total"] for device, parts in tracker.get_tracker_snapshot("peak").items()}


def inductor(graph_module: GraphModule) -> int:
    """The peak by Inductor's estimator over all devices but CPUs, from the values recorded in the
    graph: inputs counted, nothing donated, unbacked sizes as in its own configuration."""
    from torch._inductor.fx_passes.memory_estimator import build_memory_profile

    given = {node for node in graph_module.graph.nodes if node.op in ("placeholder", "get_attr")}
    return max(build_memory_profile(graph_module.graph, lambda node: node not in given))
