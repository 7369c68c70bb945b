"""Training steps of torchtitan's graph_trainer: Llama-3 and DeepSeek-V3 over fake process groups,
and debug models.

Models are traced over fake tensors, on a CUDA device if torchtitan targets a GPU. inputs() builds a
real model on a CPU.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
import trace_gpu_free
from fxopt import origins
from torch import Tensor, nn
from torch._subclasses import FakeTensorMode
from torch.utils import _pytree as pytree

from traces import Graph, Substitution, Traced, fake_world, place, routes, seeded

_SPMD_BACKEND = "partial_dtensor"


@dataclass(frozen=True)
class Step:
    """A model of torchtitan's registry, its ranks, and the size of its inputs on one rank."""

    family: str
    flavor: str
    attention: str
    device: str
    batch: int
    length: int
    layers: int | None = None  # the number of the flavor's layers to keep
    fsdp: int = 1
    tensor: int = 1
    expert: int = 1
    chunks: int = 1  # number of chunks of the loss
    spread: bool = True  # parallelized over meshes, even of one rank; else the plain model
    cleaned: bool = False  # by torchtitan's passes for dead code and no-op nodes

    def placed(self) -> Step:
        """Returns the same step over the mesh of `place`, whose second dimension is for experts if
        any, else for tensor parallelism."""
        if place.mesh is None or not self.spread:
            return self
        outer, inner = place.mesh
        if self.expert > 1:
            return dataclasses.replace(self, fsdp=outer * inner, expert=inner)
        return dataclasses.replace(self, fsdp=outer, tensor=inner)


LLAMA8B = Step("llama3", "8B", "flex", "cuda", batch=2, length=8192, fsdp=16, tensor=8)
LLAMA8B_TWIN = Step("llama3", "debugmodel", "flex", "cpu", batch=2, length=128, layers=2, fsdp=2, tensor=2)
DEEPSEEK16B = Step("deepseek_v3", "16B", "flex", "cuda", batch=2, length=4096, fsdp=16, expert=8)
DEEPSEEK16B_TWIN = Step("deepseek_v3", "debugmodel", "flex", "cpu", batch=2, length=128, layers=3, fsdp=4, expert=2)
DEBUG_LLAMA = Step("llama3", "debugmodel", "sdpa", "cpu", batch=2, length=64, spread=False, cleaned=True)
CHUNKED_LLAMA = Step("llama3", "debugmodel", "sdpa", "cpu", batch=2, length=64, layers=2, chunks=4, spread=False)

NORM = Substitution(
    "aten._fused_rms_norm and its backward", "the elementary operators they consist of", "a CPU has no kernel"
)
SLICES = Substitution(
    "slices that select all elements of a gathered tensor",
    "fewer of these slices",
    "DTensor leaves out some of these slices at this size",
)
LLAMA8B_SUBSTITUTIONS = (
    Substitution(
        "flavor 8B: 32 layers, width 4096, 32 heads, 8 key-value heads", "flavor debugmodel: 2 layers, width 256, 16 heads", "memory"
    ),
    Substitution("batch 2, sequence 8192", "batch 2, sequence 128", "memory and time"),
    Substitution(
        "16 x 8 ranks",
        "2 x 2 ranks; each collective computes its result as if all ranks had the same data",
        "memory and time",
    ),
    Substitution("device cuda:0", "device cpu", "the copy runs on a CPU"),
    NORM,
    SLICES,
)
DEEPSEEK16B_SUBSTITUTIONS = (
    Substitution("flavor 16B: 27 layers, 64 experts", "flavor debugmodel: 3 layers, 8 experts", "memory and time"),
    Substitution("batch 2, sequence 4096", "batch 2, sequence 128", "memory and time"),
    Substitution(
        "16 ranks, 8 for experts",
        "4 ranks, 2 for experts; each collective computes its result as if all ranks had the same data",
        "memory and time",
    ),
    Substitution("device cuda:0", "device cpu", "the copy runs on a CPU"),
    Substitution("autocast to float32 in the router", "none", "a CPU has no autocast to float32"),
    NORM,
    SLICES,
)


@dataclass(frozen=True)
class Built:
    """A model on its meshes, its loss, and the arguments of one step."""

    model: nn.Module
    loss: object
    args: tuple[object, ...]  # tokens, labels, number of valid tokens, further model arguments
    mode: FakeTensorMode | None  # None: all tensors are real


def build(step: Step, real: bool = False) -> Built:
    """Builds the model as torchtitan's trainer does, fake or real. Meshes read real numbers, so
    they are built before any fake mode."""
    from torchtitan.components.loss import CrossEntropyLoss
    from torchtitan.experiments.graph_trainer.chunked_loss import ChunkedLossWrapperWithParamGrads
    from torchtitan.experiments.graph_trainer.common_utils import maybe_register_blockmask_pytree_node

    model = _spread(step) if step.spread else _plain(step)
    maybe_register_blockmask_pytree_node()
    mode = None if real else trace_gpu_free.fake_mode()
    torch.manual_seed(0)
    with mode or contextlib.nullcontext():
        model.to_empty(device=step.device)
        if mode is None:
            with torch.no_grad():
                model.init_states(buffer_device=None)
        args = _arguments(step, model)
    loss = CrossEntropyLoss.Config().build()
    if step.chunks > 1:
        loss = ChunkedLossWrapperWithParamGrads.Config(num_chunks=step.chunks).build()
        loss.set_lm_head(model.lm_head)
        model._skip_lm_head = True
    return Built(model.train(), loss, args, mode)


def _spec(step: Step) -> Any:
    """Returns torchtitan's specification of the model: configuration and parallelization."""
    registry = importlib.import_module(f"torchtitan.experiments.graph_trainer.{step.family}")
    spec = registry.model_registry(step.flavor, attn_backend=step.attention)
    spec.model.layers = spec.model.layers[: step.layers]
    for layer in spec.model.layers:  # a trainer's configuration does this
        layer.attention.rope = dataclasses.replace(layer.attention.rope, max_seq_len=step.length)
    return spec


def _plain(step: Step) -> nn.Module:
    """Returns the whole model on `meta`. Its modules write their paths on nodes."""
    from torchtitan.experiments.graph_trainer.common_utils import annotate_module_fqns

    with torch.device("meta"):
        model = _spec(step).model.build()
    annotate_module_fqns(model)
    return model


@functools.cache
def _meshes(fsdp: int, tensor: int, expert: int, device: str) -> Any:
    """Returns torchtitan's meshes of fake ranks. They are the same in a process each time, so a
    graph finds its groups whatever ran before it."""
    from torchtitan.distributed import ParallelDims
    from torchtitan.distributed import utils as dist_utils

    fake_world(fsdp * tensor)
    dist_utils.set_spmd_backend(_SPMD_BACKEND)
    dims = ParallelDims(
        dp_replicate=1,
        dp_shard=fsdp,
        cp=1,
        tp=tensor,
        pp=1,
        ep=expert,
        world_size=fsdp * tensor,
        spmd_backend=_SPMD_BACKEND,
    )
    with mock.patch("torchtitan.distributed.parallel_dims.device_type", device):
        dims.build_mesh()
    return dims


def _spread(step: Step) -> nn.Module:
    """Returns the model on `meta`, with parameters sharded over the meshes."""
    from torchtitan.config import ParallelismConfig, TrainingConfig
    from torchtitan.experiments.graph_trainer.configs import GraphTrainerCompileConfig

    dims = _meshes(step.fsdp, step.tensor, step.expert, step.device)
    parallelism = ParallelismConfig(
        data_parallel_shard_degree=step.fsdp,
        tensor_parallel_degree=step.tensor,
        expert_parallel_degree=step.expert,
        spmd_backend=_SPMD_BACKEND,
    )
    training = TrainingConfig(
        local_batch_size=step.batch,
        seq_len=step.length,
        mixed_precision_param="bfloat16",
        mixed_precision_reduce="float32",
    )
    spec, compiling = _spec(step), GraphTrainerCompileConfig(enable=True)
    spec.model.update_from_config(
        config=SimpleNamespace(
            training=training,
            parallelism=parallelism,
            debug=SimpleNamespace(moe_force_load_balance=True, deterministic=False, seed=0),
            compile=compiling,
            activation_checkpoint=None,
            model_spec=spec,
        )
    )
    with torch.device("meta"):
        model = spec.model.build()
    return spec.parallelize_fn(
        model,
        parallel_dims=dims,
        training=training,
        parallelism=parallelism,
        compile_config=compiling,
        ac_config=None,
        dump_folder="",
    )


def _arguments(step: Step, model: nn.Module) -> tuple[object, ...]:
    """Returns tokens, labels, the number of valid tokens over all ranks, positions and, for flex
    attention, masks."""
    shape, device = (step.batch, step.length), torch.device(step.device)
    vocabulary = model.config.vocab_size
    tokens, labels = (torch.randint(vocabulary, shape, generator=_generator(device), device=device) for _ in range(2))
    valid = torch.tensor(step.batch * step.length * step.fsdp, device=device)
    positions = torch.arange(step.length, dtype=torch.int32, device=device).repeat(step.batch, 1)
    further: dict[str, object] = {"positions": positions}
    if step.attention == "flex":
        with torch.compiler.set_stance("force_eager"):  # Inductor would look for a driver
            further["attention_masks"] = model.get_attention_masks(positions=positions)
    return tokens, labels, valid, further


def _generator(device: torch.device) -> torch.Generator | None:
    return seeded() if device.type == "cpu" else None


@contextlib.contextmanager
def _as_traced(step: Step, built: Built) -> Iterator[None]:
    """Makes torchtitan's tracer use the model's fake mode, and keeps the loss on its shards. Also
    disables a
    check: flex attention refuses backward on a CPU, although its operators run there."""
    from torch.distributed.tensor.parallel import loss_parallel
    from torchtitan.experiments.graph_trainer import make_fx_tracer

    torch.fx.traceback.current_meta.clear()
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch("torch.nn.attention.flex_attention._validate_device"))
        if step.tensor > 1:
            stack.enter_context(loss_parallel())
        if built.mode is not None:
            trace_gpu_free.enable_fake_cuda_backward()
            stack.enter_context(mock.patch.object(make_fx_tracer, "FakeTensorMode", lambda **told: built.mode))
            stack.enter_context(mock.patch.object(make_fx_tracer, "_fakeify_input", lambda mode, t, input_name: t))
        yield


def trace_step(step: Step) -> Traced:
    """Traces forward, loss and backward as graph_trainer does."""
    from torchtitan.experiments.graph_trainer.make_fx_tracer import minimal_fx_tracer
    from torchtitan.experiments.graph_trainer.remove_noop_passes import (
        canonicalize_graph_pass,
        eliminate_dead_code_pass,
    )
    from torchtitan.experiments.graph_trainer.trainer import make_fwd_bwd_step

    step = step.placed()
    built = build(step)
    with _as_traced(step, built):
        function = make_fwd_bwd_step(built.model, built.loss)
        traced = minimal_fx_tracer(function, module=built.model)(*built.args)
    if step.cleaned:
        eliminate_dead_code_pass(traced.gm)
        canonicalize_graph_pass(traced.gm)
    return origins.traced_step(traced, built.model, is_forward_backward_step=True)


def trace_joint(step: Step) -> Traced:
    """Traces AOTAutograd's joint graph of the same model and loss."""
    from torchtitan.experiments.graph_trainer.common_utils import compute_annotated_loss
    from torchtitan.experiments.graph_trainer.make_fx_tracer import _skip_nested_compile

    step = step.placed()
    built = build(step)

    def loss(model: nn.Module, tokens: Tensor, labels: Tensor, valid: Tensor, further: dict[str, object]) -> Tensor:
        return compute_annotated_loss(built.loss, model(tokens, **further), labels, {"global_valid_tokens": valid})

    with _as_traced(step, built), _skip_nested_compile():
        return routes.trace_joint(built.model, loss, built.args, built.mode)


def inputs(step: Step, route: Callable[[Step], Traced]) -> list[object]:
    """Returns inputs of the traced graph: the state of a real model, then its inputs. A DTensor
    becomes its shard and mesh."""
    from torchtitan.experiments.graph_trainer.make_fx_tracer import _unwrap_subclasses, extract_module_state

    built = build(step.placed(), real=True)
    flat, _ = _unwrap_subclasses([*extract_module_state(built.model).values(), *pytree.tree_leaves(built.args)])
    flat = [leaf.detach() if isinstance(leaf, Tensor) else leaf for leaf in flat]
    return [flat, [torch.ones(())]] if route is trace_joint else flat


def _graphs() -> Iterator[tuple[str, Graph]]:
    from_trainer = "It is traced as torchtitan's graph_trainer does"
    llama = (
        "with FSDP over 16 fake ranks, tensor parallelism over 8 fake ranks, and flex attention (graph_trainer's"
        " default, which a CPU can run)"
    )
    for suffix, route, what in (
        ("flb", trace_step, f"one training step of Llama-3 8B. {from_trainer}, {llama}"),
        ("joint", trace_joint, f"AOTAutograd's joint graph of Llama-3 8B, exported with descriptors, {llama}"),
    ):
        full = f"{what}. Size: 32 layers, batch 2, sequence 8192, bfloat16 with float32 reductions"
        yield f"llama8b_{suffix}", Graph(functools.partial(route, LLAMA8B), full, has_ranks=True, has_mesh=True)
        yield f"llama8b_{suffix}_twin", _twin(LLAMA8B_TWIN, route, what, LLAMA8B_SUBSTITUTIONS)
    about = (
        f"one training step of DeepSeek-V3 16B (a mixture of 64 experts). {from_trainer}, with FSDP over 16 fake ranks,"
        " expert parallelism over 8 fake ranks, flex attention, and data-dependent sizes"
    )
    full = f"{about}. Size: 27 layers, batch 2, sequence 4096"
    yield "deepseek16b", Graph(functools.partial(trace_step, DEEPSEEK16B), full, has_ranks=True, has_mesh=True)
    yield "deepseek16b_twin", _twin(DEEPSEEK16B_TWIN, trace_step, about, DEEPSEEK16B_SUBSTITUTIONS)
    debug = "of torchtitan's debug Llama on a CPU, on one rank"
    yield "titan_debug", Graph(
        functools.partial(trace_step, DEBUG_LLAMA),
        f"one training step {debug}: 6 layers, after torchtitan's passes removed dead code and no-op nodes."
        " The nodes that sum several gradients of one value have the module path of the loss",
        functools.partial(inputs, DEBUG_LLAMA, trace_step),
    )
    yield "titan_chunked_loss", Graph(
        functools.partial(trace_step, CHUNKED_LLAMA),
        f"one training step {debug}: 2 layers, with the loss in 4 chunks. Forward and backward alternate. Each"
        " chunk copies its gradient in place into a slice of one buffer. Only the order of the nodes shows that the"
        " buffer is read after these copies",
        functools.partial(inputs, CHUNKED_LLAMA, trace_step),
    )


def _twin(step: Step, route: Callable[[Step], Traced], about: str, substitutions: Sequence[Substitution]) -> Graph:
    return Graph(
        functools.partial(route, step),
        f"small copy: {about}",
        functools.partial(inputs, step, route),
        substitutions,
        has_ranks=True,
        has_mesh=True,
    )


GRAPHS = dict(_graphs())
