"""Small graphs of fake values for the tests beside this file, with functions that save and load
them."""

from __future__ import annotations

import subprocess
import unittest

import graph_description
import torch
from fxopt import bridge
from fxopt.tool import find_fxopt
from setting import InFolder
from torch._subclasses import FakeTensorMode
from torch.fx import Graph, GraphModule
from torch.fx.experimental.proxy_tensor import make_fx


needs_marks = unittest.skipUnless(
    hasattr(torch.compiler, "_non_strict_tracing_context"), f"torch {torch.__version__} cannot mark backward while tracing"
)


class Case(InFolder):
    def round_trip(self, graph_module, form="pb", **told):
        """Saves the module and reads it back. Checks that the description stays the same and that a
        second save gives the same bytes."""
        known = graph_description.describe(graph_module)
        path, again = self.folder / f"graph.{form}", self.folder / "again" / f"graph.{form}"
        bridge.save(graph_module, path, **told)
        loaded = bridge.load(path)
        lines = graph_description.differences(known, graph_description.describe(loaded))
        self.assertEqual(lines, [])
        again.parent.mkdir(exist_ok=True)
        bridge.save(loaded, again)
        self.assertEqual(path.read_bytes(), again.read_bytes())
        return loaded

    def verify(self, graph_module):
        """The exit code and the output of `fxopt verify` on the saved module."""
        path = self.folder / "verified.pb"
        bridge.save(graph_module, path)
        done = subprocess.run([find_fxopt(), "verify", str(path)], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr


def trace(function, *shapes, device="cpu", mode=None):
    """A trace on fake tensors of these shapes."""
    torch.fx.traceback.current_meta.clear()
    mode = mode or FakeTensorMode(allow_non_fake_inputs=True)
    with mode:
        inputs = [torch.empty(shape, device=device) for shape in shapes]
    return make_fx(function, tracing_mode="fake" if mode.shape_env is None else "real")(*inputs)


def annotated(function, *args, mode="fake"):
    """A trace with the metadata of annotate() and the autograd engine."""
    torch.fx.traceback.current_meta.clear()
    with torch.fx.traceback.preserve_node_meta(), torch.compiler._non_strict_tracing_context():
        with torch.compiler._patch_engine_backward():
            return make_fx(function, tracing_mode=mode)(*args)


def built(*calls, shape=(4,), device="cpu"):
    """A graph of one input. Each call is (target, arguments from the nodes so far). The last call
    is returned."""
    graph = Graph()
    nodes = [graph.placeholder("x")]
    with FakeTensorMode():
        nodes[0].meta["val"] = torch.empty(shape, device=device)
    for target, arguments in calls:
        name = target._opname if isinstance(target, torch._ops.OpOverload) else target.__name__
        nodes.append(graph.create_node("call_function", target, arguments(*nodes), {}, name=name))
    graph.output((nodes[-1],))
    return GraphModule({}, graph)
