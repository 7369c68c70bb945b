"""Random recompute tags on a traced step, unlike any policy's, for comparing the results of
passes."""

from __future__ import annotations

import random

import remat_sides
from torch.fx import GraphModule
from torch.utils.checkpoint import CheckpointPolicy

_RECOMPUTE = (CheckpointPolicy.PREFER_RECOMPUTE, CheckpointPolicy.MUST_RECOMPUTE)
_SAVE = (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE)


def tag_randomly(graph_module: GraphModule, seed: int) -> GraphModule:
    """A copy whose calls carry random tags, with or without explicit regions, sometimes also on
    backward nodes. The seed decides how dense they are; the same seed gives the same tags."""
    source = random.Random(seed)
    untagged, recomputed = source.choice([0, 0.2, 0.5]), source.choice([0.2, 0.5, 0.8, 0.95, 1])
    on_backward, has_regions = source.choice([0, 0, 0.1]), source.choice([False, True])
    result = remat_sides.copy_of(graph_module)
    for node in result.graph.nodes:
        custom = dict(node.meta.get("custom", {}))
        if not has_regions and custom.pop("ac_region_id", None) is not None:
            node.meta["custom"] = custom
        odds = on_backward if node.meta.get("autograd_backward") else 1 - untagged
        if node.op != "call_function" or source.random() >= odds:
            continue
        node.meta["recompute"] = source.choice(_RECOMPUTE if source.random() < recomputed else _SAVE)
    return result
