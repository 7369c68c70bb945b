"""Graphs that no model gave: written by hand in the shapes that AutoParallel met on Llama-3 8B over dp 16 and tp 8.

From meta-pytorch/autoparallel pull request 467: weights sharded over both meshes are gathered in two steps (49 chains
with two permutes that cancel each other between the steps, 64 without), and 32 gradients are gathered behind an alias
only for the shard to be cut out again.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

import torch
import torch.distributed as dist
import trace_gpu_free
from fxopt import origins
from torch import Tensor
from torch.distributed.device_mesh import init_device_mesh
from torch.fx.experimental.proxy_tensor import make_fx

from traces import Graph, Traced, fake_world, random_like, seeded

DP, TP = 16, 8
ROWS, COLUMNS, TOKENS = 4, 24, 6  # of a weight's shard, and of the values it is multiplied with
PERMUTED_PAIRS, DIRECT_PAIRS, ROUND_TRIPS = 49, 64, 32
Function = Callable[..., list[Tensor]]
Group = tuple[int, str]  # size and name


@functools.cache
def groups() -> tuple[Group, Group]:
    """The groups of dp and tp. Besides, the ranks of both get a group in the order of each kind of chain, as a pass
    that joins two gathers needs it: the mesh's own order for tp before dp, the other for dp before tp."""
    fake_world(DP * TP)
    mesh = init_device_mesh("cpu", (DP, TP), mesh_dim_names=("dp", "tp"))
    mesh["dp", "tp"]._flatten("dp_tp")
    ranks = mesh.mesh.t().flatten().tolist()
    dist.new_group(ranks, sort_ranks=False, group_desc="tp_dp")
    return (DP, mesh.get_group("dp").group_name), (TP, mesh.get_group("tp").group_name)


def gather(x: Tensor, group: Group) -> Tensor:
    collective = torch.ops._c10d_functional
    return collective.wait_tensor(collective.all_gather_into_tensor(x, *group))


def scatter_sum(x: Tensor, group: Group) -> Tensor:
    collective = torch.ops._c10d_functional
    return collective.wait_tensor(collective.reduce_scatter_tensor(x, "sum", *group))


def chained_gathers(first: Group, second: Group, permuted: bool) -> Function:
    """Each weight gathered over one group, then over the other, and used once."""

    def function(x: Tensor, *weights: Tensor) -> list[Tensor]:
        products = []
        for weight in weights:
            part = gather(weight, first)
            if permuted:
                part = part.permute(1, 0).permute(1, 0)
            products.append(x @ gather(part, second))
        return products

    return function


def alias_round_trips(tp: Group) -> Function:
    """Each layer's gradient is gathered behind an alias for two products; the sum beside them takes its shard back."""

    def function(gradient: Tensor, *weights: Tensor) -> list[Tensor]:
        rows = gradient.shape[0]
        for i in range(0, len(weights), 2):
            whole = gather(torch.ops.aten.alias(gradient), tp)
            products = whole @ weights[i] + whole @ weights[i + 1]
            gradient = torch.ops.aten.slice(whole, 0, 0, rows) + scatter_sum(products, tp)
        return [gradient]

    return function


def _chains(pairs: int, tp_first: bool, permuted: bool) -> tuple[Function, list[tuple[int, int]]]:
    dp, tp = groups()
    function = chained_gathers(*((tp, dp) if tp_first else (dp, tp)), permuted)
    return function, [(TOKENS, ROWS * DP * TP), *[(ROWS, COLUMNS)] * pairs]


def _round_trips() -> tuple[Function, list[tuple[int, int]]]:
    return alias_round_trips(groups()[1]), [(ROWS, COLUMNS), *[(COLUMNS, COLUMNS)] * (2 * ROUND_TRIPS)]


def trace(build: Callable[[], tuple[Function, list[tuple[int, int]]]]) -> Traced:
    function, sizes = build()
    torch.fx.traceback.current_meta.clear()
    mode = trace_gpu_free.fake_mode()
    with mode:
        graph_module = make_fx(function)(*(torch.empty(size) for size in sizes))
    roles = [{"role": "input", "user_index": 0}]
    roles += [{"role": "parameter", "fqn": f"weights.{i}"} for i in range(len(sizes) - 1)]
    outputs = ["user"] * len(origins.output_leaves(graph_module))
    return graph_module, {"kind": "forward", "roles": roles, "outputs": outputs}


def inputs(build: Callable[[], tuple[Function, list[tuple[int, int]]]]) -> list[object]:
    generator = seeded()
    return [random_like(torch.empty(size), generator) for size in build()[1]]


def _graphs() -> Iterator[tuple[str, Graph]]:
    where = "over a mesh of dp 16 and tp 8 (pull request 467 of meta-pytorch/autoparallel); built by a script, no model"
    for permuted, pairs in ((True, PERMUTED_PAIRS), (False, DIRECT_PAIRS)):
        shape = "two permutes that cancel between them" if permuted else "nothing between them"
        for tp_first in (True, False):
            first, second = ("tp", "dp") if tp_first else ("dp", "tp")
            build = functools.partial(_chains, pairs, tp_first, permuted)
            yield f"built_{'permuted' if permuted else 'direct'}_{first}_{second}", Graph(
                functools.partial(trace, build),
                f"{pairs} weights each gathered over {first}, then over {second}, {shape}, {where}",
                functools.partial(inputs, build),
            )
    yield "built_alias_round_trips", Graph(
        functools.partial(trace, _round_trips),
        f"{ROUND_TRIPS} gradients gathered behind an alias, whose own shard is cut out again, {where}",
        functools.partial(inputs, _round_trips),
    )


GRAPHS = dict(_graphs())
