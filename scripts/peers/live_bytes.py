"""Counts live bytes while PyTorch runs a graph on real tensors."""

from __future__ import annotations

from torch import Tensor
from torch.fx import GraphModule, Interpreter, Node
from torch.utils._pytree import tree_leaves


class Counted:
    """A graph as a function of its inputs that records the peak of live bytes: inputs and constants
    throughout, outputs to the end, other values to their last user."""

    def __init__(self, graph_module: GraphModule) -> None:
        self.interpreter = Interpreter(graph_module, garbage_collect_values=False)
        self.nodes = list(graph_module.graph.nodes)
        self.peak = 0
        self.holders: dict[int, list[Node]] = {}  # at the peak, by storage, in the graph's order
        self.held: dict[int, int] = {}  # its bytes

    def __call__(self, *inputs: object) -> object:
        env, last = self.interpreter.env, {source: node for node in self.nodes for source in (node, *node.all_input_nodes)}
        dying: dict[Node, list[Node]] = {}
        for source, node in last.items():
            if source.op == "call_function":
                dying.setdefault(node, []).append(source)
        self.interpreter.args_iter = iter(inputs)
        for node in sorted(self.nodes, key=lambda node: node.op != "get_attr"):
            env[node] = self.interpreter.run_node(node)
            live = [
                (source, leaf.untyped_storage())
                for source in env
                for leaf in tree_leaves(env[source])
                if isinstance(leaf, Tensor)
            ]
            held = {storage._cdata: storage.nbytes() for _, storage in live}
            if sum(held.values()) > self.peak:
                self.peak, self.held, self.holders = sum(held.values()), held, {}
                for source, storage in live:
                    self.holders.setdefault(storage._cdata, []).append(source)
            for dead in dying.get(node, ()) if node.op != "output" else ():
                del env[dead]
        return env[self.nodes[-1]]
