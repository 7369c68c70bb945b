"""Small graphs of fake values for the tests beside this file."""

from __future__ import annotations

import torch
from torch._subclasses import FakeTensorMode
from torch.fx import Graph, GraphModule
from torch.fx.experimental.proxy_tensor import make_fx


def trace(function, *shapes, device="cpu", mode=None):
    """A trace on fake tensors of these shapes."""
    torch.fx.traceback.current_meta.clear()
    mode = mode or FakeTensorMode(allow_non_fake_inputs=True)
    with mode:
        inputs = [torch.empty(shape, device=device) for shape in shapes]
    return make_fx(function, tracing_mode="fake" if mode.shape_env is None else "real")(*inputs)


def built(*calls, shape=(4,), device="cpu"):
    """A graph of one input: each call is (target, arguments from the nodes so far), the last one is returned."""
    graph = Graph()
    nodes = [graph.placeholder("x")]
    with FakeTensorMode():
        nodes[0].meta["val"] = torch.empty(shape, device=device)
    for target, arguments in calls:
        name = target._opname if isinstance(target, torch._ops.OpOverload) else target.__name__
        nodes.append(graph.create_node("call_function", target, arguments(*nodes), {}, name=name))
    graph.output((nodes[-1],))
    return GraphModule({}, graph)
