"""Graphs written by hand, not traced from a model.

They have the shapes of AutoParallel on Llama-3 8B over dp 16 and tp 8 (pull request 467 of
meta-pytorch/autoparallel). Weights sharded over both mesh dimensions are gathered in two steps: 49
chains have two permutes between the steps that cancel each other, 64 have none. 32 gradients are
gathered behind an alias, and then the rank's own shard is sliced out again. 40 matmuls of weights'
gradients may run one after the other before the first of their reduce-scatters.

Further graphs are a step of FSDP with replicas (HSDP), and the two stages of a pipeline.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist
import trace_gpu_free
from fxopt import origins
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.fx.experimental.proxy_tensor import make_fx

from traces import Graph, Told, Traced, fake_world, place, random_like, seeded

DP, TP = 16, 8
ROWS, COLUMNS, TOKENS = 4, 24, 6  # sizes of a weight's shard, and rows of its left operand
PERMUTED_PAIRS, DIRECT_PAIRS, ROUND_TRIPS = 49, 64, 32
# A run of matmuls: their number, the sides of a weight, and the rows of activations.
RUN, RUN_WIDTH, RUN_TOKENS = 40, 4096, 2048
REPLICAS, SHARDS, HYBRID_LAYERS, WIDTH = 2, 4, 8, 32
STAGES, MICROBATCHES, BATCH = 2, 2, 6
Function = Callable[..., list[Tensor]]
Group = tuple[int, str]  # size and name


@functools.cache
def groups() -> tuple[Group, Group]:
    """Returns the groups of dp and tp.

    All ranks together also get a group for each order of chains, as a pass that fuses two gathers
    needs: the mesh's own order for tp before dp, the transposed one for dp before tp.
    """
    sizes = mesh_sizes()
    fake_world(sizes[0] * sizes[1])
    mesh = init_device_mesh("cpu", sizes, mesh_dim_names=("dp", "tp"))
    mesh["dp", "tp"]._flatten("dp_tp")
    ranks = mesh.mesh.t().flatten().tolist()
    dist.new_group(ranks, sort_ranks=False, group_desc="tp_dp")
    return (sizes[0], mesh.get_group("dp").group_name), (sizes[1], mesh.get_group("tp").group_name)


def mesh_sizes() -> tuple[int, int]:
    return place.mesh or (DP, TP)


def gather(x: Tensor, group: Group) -> Tensor:
    collective = torch.ops._c10d_functional
    return collective.wait_tensor(collective.all_gather_into_tensor(x, *group))


def scatter_sum(x: Tensor, group: Group) -> Tensor:
    collective = torch.ops._c10d_functional
    return collective.wait_tensor(collective.reduce_scatter_tensor(x, "sum", *group))


def chained_gathers(first: Group, second: Group, permuted: bool) -> Function:
    """Gathers each weight over one group, then over the other, and uses it once."""

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
    """Gathers each layer's gradient behind an alias for two products; a sum reads the rank's own
    shard, sliced out of the gathered tensor."""

    def function(gradient: Tensor, *weights: Tensor) -> list[Tensor]:
        rows = gradient.shape[0]
        first = dist.get_rank() % tp[0] * rows
        for i in range(0, len(weights), 2):
            whole = gather(torch.ops.aten.alias(gradient), tp)
            products = whole @ weights[i] + whole @ weights[i + 1]
            gradient = torch.ops.aten.slice(whole, 0, first, first + rows) + scatter_sum(products, tp)
        return [gradient]

    return function


def _chains(pairs: int, tp_first: bool, permuted: bool) -> tuple[Function, list[tuple[int, int]]]:
    dp, tp = groups()
    function = chained_gathers(*((tp, dp) if tp_first else (dp, tp)), permuted)
    return function, [(TOKENS, ROWS * dp[0] * tp[0]), *[(ROWS, COLUMNS)] * pairs]


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


@dataclass(frozen=True)
class Input:
    """An input of a hand-written step: a tensor of that size, or the mesh, with its role for
    save()."""

    role: Told
    size: tuple[int, ...] | None = None  # None: the mesh


@dataclass(frozen=True)
class Recipe:
    """A hand-written step, with its arguments for save()."""

    function: Callable[..., list[object]]
    inputs: Sequence[Input]
    outputs: Sequence[Told]  # a gradient's "of" is its parameter's index among the inputs
    kind: str
    mesh: DeviceMesh | None = None
    forward_outputs: int | None = None
    dtype: torch.dtype = torch.float32
    device: str = "cpu"


def matmul_run(late: bool) -> Recipe:
    """Backward of consecutive layers. Each of 40 matmuls computes a weight's gradient, which is
    summed over dp. The incoming gradient passes through a chain of threshold_backward calls. The
    first matmul reads the incoming gradient, and each later matmul reads the result of one of
    these calls. The first node recomputes the block's first residual sum, which only the last
    matmul reads.

    late: all matmuls come before the first reduce-scatter, as a sort of the same graph may leave
        them.
    """
    dp, _ = groups()

    def function(gradient: Tensor, residual: Tensor, attended: Tensor, projection: Tensor, *saved: Tensor) -> list[Tensor]:
        total = attended @ projection + residual
        products, parts = [], []
        for i, x in enumerate((*saved, total)):
            if i > 0:
                gradient = torch.ops.aten.threshold_backward(gradient, saved[i - 1], 0)
            products.append(gradient.t() @ x)
            if not late:
                parts.append(scatter_sum(products.pop(), dp))
        return parts + [scatter_sum(product, dp) for product in products]

    tokens, weight = (RUN_TOKENS, RUN_WIDTH), (RUN_WIDTH, RUN_WIDTH)
    takes = [Input({"role": "tangent"}, tokens), Input({"role": "saved_value"}, tokens), Input({"role": "saved_value"}, tokens)]
    takes += [Input({"role": "saved_value", "fqn": "block.projection.weight"}, weight)]
    takes += [Input({"role": "saved_value"}, tokens) for _ in range(RUN - 1)]
    outputs = [{"role": "gradient", "fqn": f"block.{i}.weight"} for i in reversed(range(RUN))]
    return Recipe(function, takes, outputs, "backward", dtype=torch.bfloat16, device="cuda")


def hsdp() -> Recipe:
    """Forward and backward of eight layers. Weights are gathered over dp_shard. Their gradients are
    averaged over dp_shard by reduce-scatters, then over dp_replicate by all-reduces."""
    replicas, shards = place.mesh or (REPLICAS, SHARDS)
    fake_world(replicas * shards)
    mesh = init_device_mesh("cpu", (replicas, shards), mesh_dim_names=("dp_replicate", "dp_shard"))
    shard, replicate = (shards, mesh.get_group("dp_shard").group_name), mesh.get_group("dp_replicate").group_name
    collective = torch.ops._c10d_functional

    def average(x: Tensor) -> Tensor:
        part = collective.wait_tensor(collective.reduce_scatter_tensor(x, "avg", *shard))
        return collective.wait_tensor(collective.all_reduce(part, "avg", replicate))

    def function(*inputs: object) -> list[object]:
        *parameters, x, gradient = inputs
        values, weights, gradients = [x], [], []
        for part in parameters[::2]:  # pairs of a shard and its mesh
            weights.append(gather(part, shard))
            values.append(torch.relu(values[-1] @ weights[-1]))
        for i in reversed(range(HYBRID_LAYERS)):
            gradient = torch.ops.aten.threshold_backward(gradient, values[i + 1], 0)
            product = values[i].t() @ gradient
            if i > 0:
                gradient = gradient @ weights[i].t()
            gradients.append(average(product))
        # One output per primal, as in AOTAutograd: each gradient and its mesh, None for x.
        pairs = zip(reversed(gradients), parameters[1::2])
        return [values[-1], *(item for pair in pairs for item in pair), None]

    takes, outputs = [], [{"role": "user"}]
    for i in range(HYBRID_LAYERS):
        for part, size in (("_local_tensor", (WIDTH // shards, WIDTH)), ("device_mesh", None)):
            known = {"fqn": f"layers.{i}.weight", "subclass_path": [part]}
            outputs.append({"role": "gradient", "of": len(takes)} | known)
            takes.append(Input({"role": "parameter"} | known, size))
    takes += [Input({"role": "input", "user_index": 0}, (BATCH, WIDTH)), Input({"role": "tangent"}, (BATCH, WIDTH))]
    return Recipe(function, takes, [*outputs, {}], "joint", mesh, forward_outputs=1)


def first_stage() -> Recipe:
    """Rank 0 of a pipeline: sends the activations of each microbatch, then receives the gradient of
    each."""
    fake_world(STAGES, rank=0)
    there, name = 1, dist.group.WORLD.group_name
    collective = torch.ops._c10d_functional

    def function(weight: Tensor, *batches: Tensor) -> list[Tensor]:
        values, sent, parts = [], [], []
        for x in batches:
            values.append(torch.relu(x @ weight))
            sent.append(collective.isend(values[-1], there, 0, name))
        for x, value, sending in zip(batches, values, sent):
            collective.wait_tensor(sending)
            gradient = collective.wait_tensor(collective.irecv(torch.empty_like(value), there, 0, name))
            parts.append(x.t() @ torch.ops.aten.threshold_backward(gradient, value, 0))
        return [functools.reduce(torch.add, parts)]

    return _stage(function, "stages.0.weight", [])


def last_stage() -> Recipe:
    """Rank 1: receives the activations, computes the loss, and sends the gradients back."""
    fake_world(STAGES, rank=1)
    there, name = 0, dist.group.WORLD.group_name
    collective = torch.ops._c10d_functional

    def function(weight: Tensor, *targets: Tensor) -> list[Tensor]:
        values, errors, parts, sent = [], [], [], []
        for target in targets:
            place = torch.empty(target.shape)
            values.append(collective.wait_tensor(collective.irecv(place, there, 0, name)))
            errors.append(values[-1] @ weight - target)
        loss = functools.reduce(torch.add, [error.square().mean() for error in errors])
        for value, error in zip(values, errors):
            gradient = error * (2 / error.numel())
            parts.append(value.t() @ gradient)
            sent.append(collective.isend(gradient @ weight.t(), there, 0, name))
        for sending in sent:
            collective.wait_tensor(sending)
        return [loss, functools.reduce(torch.add, parts)]

    return _stage(function, "stages.1.weight", [{"role": "loss"}])


def _stage(function: Function, weight: str, outputs: list[Told]) -> Recipe:
    takes = [Input({"role": "parameter", "fqn": weight}, (WIDTH, WIDTH))]
    takes += [Input({"role": "input", "user_index": i}, (BATCH, WIDTH)) for i in range(MICROBATCHES)]
    return Recipe(function, takes, [*outputs, {"role": "gradient", "of": 0, "fqn": weight}], "forward_loss_backward")


def trace_recipe(write: Callable[[], Recipe]) -> Traced:
    recipe = write()
    torch.fx.traceback.current_meta.clear()
    with trace_gpu_free.fake_mode():
        args = [
            recipe.mesh if given.size is None else torch.empty(given.size, dtype=recipe.dtype, device=recipe.device)
            for given in recipe.inputs
        ]
        graph_module = make_fx(recipe.function)(*args)
    names = [node.name for node in origins.placeholders(graph_module)]
    outputs = [spec | ({"of": names[spec["of"]]} if "of" in spec else {}) for spec in recipe.outputs]
    told = {"kind": recipe.kind, "roles": [given.role for given in recipe.inputs], "outputs": outputs}
    if recipe.forward_outputs is not None:
        told["num_forward_outputs"] = recipe.forward_outputs
    return graph_module, told


def recipe_inputs(write: Callable[[], Recipe]) -> list[object]:
    recipe, generator = write(), seeded()
    return [recipe.mesh if given.size is None else random_like(torch.empty(given.size), generator) for given in recipe.inputs]


def _graphs() -> Iterator[tuple[str, Graph]]:
    where = "on a mesh of dp 16 and tp 8"
    source = "See pull request 467 of meta-pytorch/autoparallel"
    for permuted, pairs in ((True, PERMUTED_PAIRS), (False, DIRECT_PAIRS)):
        shape = "with two cancelling permutes in between" if permuted else "with nothing in between"
        for tp_first in (True, False):
            first, second = ("tp", "dp") if tp_first else ("dp", "tp")
            build = functools.partial(_chains, pairs, tp_first, permuted)
            yield f"built_{'permuted' if permuted else 'direct'}_{first}_{second}", Graph(
                functools.partial(trace, build),
                f"{pairs} weights {where}. Each weight is gathered over {first} and then over {second}, {shape}. {source}",
                functools.partial(inputs, build),
                has_ranks=True,
                has_mesh=True,
            )
    yield "built_alias_round_trips", Graph(
        functools.partial(trace, _round_trips),
        f"{ROUND_TRIPS} gradients {where}. An alias of each gradient is gathered, and the rank's own shard is then sliced out of"
        f" the result. {source}",
        functools.partial(inputs, _round_trips),
        has_ranks=True,
        has_mesh=True,
    )
    run = (
        f"backward of a block {where}. Each of {RUN} matmuls computes the gradient of one weight, which a reduce-scatter sums"
        " over dp. The incoming gradient passes through a chain of threshold_backward calls. The first matmul reads the"
        " incoming gradient, and each later matmul reads the result of one of these calls. Only the last matmul reads the"
        " first residual sum of the block"
    )
    early = "Each reduce-scatter comes before the next matmul"
    late = "All reduce-scatters come after the last matmul, so the peak is higher than in `built_matmul_run`"
    for suffix, order in (("", early), ("_late", late)):
        yield f"built_matmul_run{suffix}", Graph(
            functools.partial(trace_recipe, functools.partial(matmul_run, bool(suffix))),
            f"{run}. {order}. {source} (a cap on the size of compute batches)",
            has_ranks=True,
        )
    yield "built_hsdp", Graph(
        functools.partial(trace_recipe, hsdp),
        f"forward and backward of {HYBRID_LAYERS} layers on a mesh of dp_replicate {REPLICAS} and dp_shard {SHARDS}. Weights are"
        " gathered over dp_shard. Gradients are averaged by a reduce-scatter over dp_shard and an all-reduce over"
        " dp_replicate",
        functools.partial(recipe_inputs, hsdp),
        has_ranks=True,
        has_mesh=True,
    )
    stage = f"in a pipeline of {STAGES} ranks with {MICROBATCHES} microbatches"
    group = "Both directions use one process group"
    for rank, (write, does) in enumerate(
        ((first_stage, "sends activations and receives gradients"), (last_stage, "receives activations and sends gradients"))
    ):
        yield f"built_pipeline_{rank}", Graph(
            functools.partial(trace_recipe, write), f"stage {rank} {stage}, which {does}. {group}"
        )


GRAPHS = dict(_graphs())
