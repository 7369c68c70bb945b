"""AOTAutograd's forward and backward graphs of checkpointed attention blocks with dropout, for any
batch size."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from unittest import mock

import torch
import torch.nn.functional as F
import trace_gpu_free
from fxopt import origins
from fxopt.values import AbsentGenerator
from torch import Tensor, nn
from torch._functorch import partitioners
from torch._functorch.aot_autograd import aot_compile_joint_with_descriptors, aot_export_joint_with_descriptors
from torch.fx import GraphModule
from torch.utils.checkpoint import checkpoint

from traces import Graph, Substitution, Traced, close, keep_open, routes, seeded


@dataclass(frozen=True)
class Size:
    device: str
    layers: int
    width: int
    heads: int
    batch: int  # in the trace; the graphs accept any
    length: int
    classes: int


FULL = Size("cuda", layers=4, width=512, heads=8, batch=16, length=256, classes=1000)
TWIN = Size("cpu", layers=2, width=32, heads=2, batch=3, length=8, classes=10)
SUBSTITUTIONS = (
    Substitution("4 layers, width 512, 8 heads", "2 layers, width 32, 2 heads", "memory and time"),
    Substitution("batch 16, length 256, 1000 classes", "batch 3, length 8, 10 classes", "memory and time"),
    Substitution("device cuda:0", "device cpu", "the copy runs on a CPU"),
    Substitution(
        "higher_order.graphsafe_run_with_rng_state on a generator that is an input",
        "higher_order.run_and_save_rng_state and run_with_rng_state on a state that is saved",
        "the original's operators run only on GPUs",
    ),
)


class Block(nn.Module):
    """Attention with dropout on its weights and on its result."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.heads = size.heads
        self.norm = nn.LayerNorm(size.width)
        self.qkv = nn.Linear(size.width, 3 * size.width)
        self.out = nn.Linear(size.width, size.width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        qkv = self.qkv(self.norm(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        weights = dropout((q @ k.transpose(-2, -1) * (width // self.heads) ** -0.5).softmax(-1))
        return dropout(self.out((weights @ v).transpose(1, 2).reshape(batch, length, width)))


def dropout(x: Tensor) -> Tensor:
    """Dropout by the operator of a GPU. On a CPU, dropout calls four simpler operators."""
    return torch.ops.aten.native_dropout(x, 0.1, True)[0]


class Classifier(nn.Module):
    """Checkpointed blocks, a mean over positions, and classes. Counts its steps."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block(size) for _ in range(size.layers))
        self.head = nn.Linear(size.width, size.classes)
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))

    def forward(self, x: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        self.steps.add_(1)
        for block in self.blocks:
            x = x + checkpoint(block, x, use_reentrant=False)
        scores = self.head(x.mean(1))
        return F.cross_entropy(scores, labels), scores.detach().view(-1, 2)


@contextlib.contextmanager
def _random_numbers(device: str) -> Iterator[None]:
    """Provides a GPU's generator, whose state the partitioner gives to recomputed draws."""
    if device == "cpu" or torch.cuda.is_available():
        yield
    else:
        with mock.patch.object(torch.cuda, "default_generators", (AbsentGenerator("cuda:0"),)):
            yield


def capture(size: Size) -> tuple[Traced, Traced]:
    """Captures both graphs by Dynamo, AOTAutograd's joint graph and the min-cut partitioner."""
    from torch._dynamo.functional_export import dynamo_graph_capture_for_export

    trace_gpu_free.enable_fake_cuda_backward()
    torch._dynamo.reset()  # after a capture with other sizes, more sizes would become symbols
    torch.fx.traceback.current_meta.clear()
    mode = trace_gpu_free.fake_mode()
    with mode, torch.device(size.device):
        model = Classifier(size).train()
        x = torch.empty(size.batch, size.length, size.width)
        labels = torch.empty(size.batch, dtype=torch.int64)
    for tensor in (x, labels):
        torch._dynamo.mark_dynamic(tensor, 0, min=2, max=4096)
    graphs: list[GraphModule] = []

    def keep(graph_module: GraphModule, args: object) -> GraphModule:
        graphs.append(graph_module)
        return graph_module

    with torch.fx.traceback.preserve_node_meta(), _random_numbers(size.device):
        with mode:
            captured = dynamo_graph_capture_for_export(model)(x, labels)
        with torch._guards.tracing(captured.meta["tracing_context"]):
            joint = aot_export_joint_with_descriptors(keep_open(), captured, (x, labels))
            partition = partitioners.min_cut_rematerialization_partition
            aot_compile_joint_with_descriptors(joint, partition_fn=partition, fw_compiler=keep, bw_compiler=keep)
    return origins.pair(*graphs, joint._aot_state.fw_metadata, loss=0)


def inputs(which: int) -> list[object]:
    """Returns real inputs of the forward graph, or the inputs of the backward graph that it
    saves."""
    forward, backward = capture(TWIN)
    close()  # AOTAutograd's modes would make these fake
    generator = seeded()
    x = torch.randn(TWIN.batch, TWIN.length, TWIN.width, generator=generator)
    labels = torch.randint(TWIN.classes, (TWIN.batch,), generator=generator)
    result = routes.real_inputs(forward, [x, labels])
    if which == 0:
        return result
    torch.manual_seed(0)
    with torch.no_grad():
        saved = forward[0](*result)
    return [
        saved[role["saved_from_output"]] if role["role"] == "saved_value" else torch.ones(())
        for role in backward[1]["roles"]
    ]


def _graphs() -> Iterator[tuple[str, Graph]]:
    for which, side in enumerate(("forward", "backward")):
        about = (
            f"{side} graph of checkpointed attention blocks with dropout, from AOTAutograd's min-cut partitioner."
            " Recomputed dropout uses saved random states. The graph has views, a step counter in a buffer, and a symbolic"
            " batch size"
        )
        yield f"pair_{side}", Graph(lambda which=which: capture(FULL)[which], f"{about}. Size: 4 layers, width 512")
        yield f"pair_{side}_twin", Graph(
            lambda which=which: capture(TWIN)[which],
            f"small copy: {about}",
            functools.partial(inputs, which),
            SUBSTITUTIONS,
        )


GRAPHS = dict(_graphs())
