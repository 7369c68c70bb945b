"""ResNet-50, by torchvision: convolutions, batch norm with running statistics, cross entropy,
backward."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
import trace_gpu_free
from torch import Tensor, nn
from torch._subclasses import FakeTensorMode

from traces import Graph, Substitution, Traced, random_like, routes, seeded


@dataclass(frozen=True)
class Size:
    device: str
    blocks: tuple[int, int, int, int]
    width: int  # width per group of a bottleneck's middle convolution
    classes: int
    batch: int
    pixels: int


FULL = Size("cuda", blocks=(3, 4, 6, 3), width=64, classes=1000, batch=32, pixels=224)
TWIN = Size("cpu", blocks=(1, 1, 1, 1), width=8, classes=10, batch=2, pixels=32)
SUBSTITUTIONS = (
    Substitution("3, 4, 6, 3 bottlenecks, width 64", "1, 1, 1, 1 bottlenecks, width 8", "memory and time"),
    Substitution("batch 32, 224 x 224 pixels, 1000 classes", "batch 2, 32 x 32 pixels, 10 classes", "memory and time"),
    Substitution("device cuda:0", "device cpu", "the copy runs on a CPU"),
    Substitution(
        "aten.cudnn_batch_norm and its backward",
        "aten.native_batch_norm and its backward",
        "the original's operators run only on GPUs",
    ),
)


def build(size: Size, mode: FakeTensorMode) -> tuple[nn.Module, list[Tensor]]:
    """Returns the model in training mode, and its images and labels."""
    from torchvision.models.resnet import Bottleneck, ResNet

    with mode, torch.device(size.device):
        model = ResNet(Bottleneck, list(size.blocks), num_classes=size.classes, width_per_group=size.width).train()
        images = torch.empty(size.batch, 3, size.pixels, size.pixels)
        labels = torch.empty(size.batch, dtype=torch.int64)
    return model, [images, labels]


def loss(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    scores = model(images)
    with torch.fx.traceback.annotate({"module_fqn": "loss"}):
        return F.cross_entropy(scores, labels)


def trace(size: Size, route: Callable[..., Traced]) -> Traced:
    mode = trace_gpu_free.fake_mode()
    model, args = build(size, mode)
    trace_gpu_free.annotate_modules(model, "")
    return route(model, loss, args, mode)


def inputs(route: Callable[..., Traced]) -> list[object]:
    generator = seeded()
    images = random_like(torch.empty(TWIN.batch, 3, TWIN.pixels, TWIN.pixels), generator)
    labels = torch.randint(TWIN.classes, (TWIN.batch,), generator=generator)
    return routes.real_inputs(trace(TWIN, route), [images, labels])


def _graphs() -> Iterator[tuple[str, Graph]]:
    for suffix, route, what in routes.FORMS:
        about = f"{what} of ResNet-50 (torchvision) with batch norm in training mode"
        full = f"{about}: 25.6 million parameters, batch 32, 224 x 224 pixels, float32"
        yield f"resnet50_{suffix}", Graph(functools.partial(trace, FULL, route), full)
        yield f"resnet50_{suffix}_twin", Graph(
            functools.partial(trace, TWIN, route),
            f"small copy: {about}",
            functools.partial(inputs, route),
            SUBSTITUTIONS if suffix == "flb" else SUBSTITUTIONS[:-1],
        )


GRAPHS = dict(_graphs())
