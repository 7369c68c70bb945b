"""Graphs of layers and their gradients: convolutions, norms, embeddings."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kinds_parts.tracing import Traced, compiled, differentiates, exported, graph, traces, training_step

aten = torch.ops.aten


# ---- convolutions


@differentiates(
    "convolutions", lambda: [torch.randn(2, 4, 6, 6), torch.randn(3, 4, 3, 3), torch.randn(3), torch.randn(8, 1, 3, 3)]
)
def kinds_of_convolutions(x: Tensor, w: Tensor, b: Tensor, g: Tensor) -> tuple:
    return (
        F.conv2d(x, w, b),
        F.conv2d(x, w, b, stride=2, padding=1),
        F.conv2d(x, w, dilation=2),
        F.conv2d(x, g, groups=4),
        F.conv_transpose2d(x, w.transpose(0, 1)),
        F.conv2d(x, w, b),
    )


@differentiates("convolutions", lambda: [torch.randn(1, 4, 4, 4), torch.randn(4, 3, 3, 3)])
def transposed_and_grouped(x: Tensor, w: Tensor) -> tuple:
    return F.conv_transpose2d(x, w, stride=2, padding=1, output_padding=1, groups=2), F.conv_transpose2d(
        x, w, groups=2, dilation=2
    )


@differentiates(
    "convolutions",
    lambda: [
        torch.randn(2, 4, 6, 6).to(memory_format=torch.channels_last),
        torch.randn(4, 4, 3, 3).to(memory_format=torch.channels_last),
    ],
)
def channels_last(x: Tensor, w: Tensor) -> tuple:
    y = F.relu(F.conv2d(x, w, padding=1))
    z = F.conv2d(y, w, padding=1)
    return (
        z + y,
        F.max_pool2d(z, 2),
        y.contiguous(),
        z.to(memory_format=torch.channels_last),
        F.batch_norm(z, None, None, training=True),
    )


@differentiates(
    "convolutions", lambda: [torch.randn(2, 3, 8), torch.randn(2, 3, 3), torch.randn(1, 2, 4, 4, 4), torch.randn(2, 2, 2, 2, 2)]
)
def one_and_three_dimensions(x: Tensor, w: Tensor, y: Tensor, v: Tensor) -> tuple:
    return (
        F.conv1d(x, w, padding="same"),
        F.conv3d(y, v),
        F.conv_transpose1d(x, w.transpose(0, 1)),
        F.conv_transpose3d(y, v.transpose(0, 1)),
        F.conv1d(x[0], w),
    )


@graph("convolutions")
def residual_network() -> Traced:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Conv2d(4, 4, 3, padding=1, bias=False), nn.Conv2d(4, 4, 3, padding=1, groups=2)
            self.norm, self.relu = nn.BatchNorm2d(4), nn.ReLU(inplace=True)

        def forward(self, x: Tensor) -> Tensor:
            return self.relu(self.norm(self.first(x)) + self.second(self.relu(x * 1.0)))

    model = nn.Sequential(nn.Conv2d(3, 4, 3), Block(), Block(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3))
    return training_step(model, lambda out: F.cross_entropy(out, torch.tensor([0, 2])), torch.randn(2, 3, 8, 8))


# ---- norms


@graph("norms")
def batch_norm_writes_its_buffers() -> Traced:
    return training_step(
        nn.Sequential(
            nn.BatchNorm1d(4), nn.Linear(4, 4), nn.BatchNorm1d(4, momentum=0.5), nn.ReLU(), nn.BatchNorm1d(4, affine=False)
        ),
        lambda out: out.pow(3).sum(),
        torch.randn(6, 4),
    )


@traces("norms", lambda: [torch.randn(6, 4), torch.zeros(4), torch.ones(4)])
def buffers_are_read_between_writes(x: Tensor, mean: Tensor, variance: Tensor) -> tuple:
    first = F.batch_norm(x, mean, variance, training=False)
    second = F.batch_norm(x, mean, variance, training=True, momentum=0.3)
    third = F.batch_norm(x, mean, variance, training=False)
    return first, second, third, F.batch_norm(x, mean, variance, training=True), mean + variance


@differentiates("norms", lambda: [torch.randn(2, 4, 6), torch.randn(6), torch.randn(6)])
def layer_group_and_rms(x: Tensor, w: Tensor, b: Tensor) -> tuple:
    return (
        F.layer_norm(x, (6,), w, b),
        F.group_norm(x, 2, b[:4], w[:4]),
        F.rms_norm(x, (6,), w),
        F.layer_norm(x, (4, 6)),
        F.instance_norm(x),
        F.layer_norm(x, (6,), w, b) * 2,
        F.normalize(x, dim=1),
        F.local_response_norm(x, 2),
    )


@traces("norms", lambda: [torch.randn(6, 4).bfloat16(), torch.randn(4).bfloat16()])
def statistics_of_half_precision(x: Tensor, w: Tensor) -> tuple:
    return (
        aten.native_layer_norm(x, [4], w, None, 1e-5),
        aten.native_group_norm(x, w, None, 3, 4, 2, 2, 1e-5),
        aten.native_batch_norm(x.t(), None, None, None, None, True, 0.1, 1e-5),
    )


@traces("norms", lambda: [torch.randn(6, 4), torch.randn(6, 4), torch.randn(4)])
def gradients_of_parameters_alone(g: Tensor, x: Tensor, w: Tensor) -> tuple:
    mean, scale = x.mean(0), x.var(0, unbiased=False).add(1e-5).rsqrt()
    found = aten.native_batch_norm_backward(g, x, w, None, None, mean, scale, True, 1e-5, [False, True, True])
    more = aten.native_layer_norm_backward(g, x, [4], x.mean(1, True), x.std(1, keepdim=True), w, w, [True, False, True])
    return found[1], found[2], more[0], more[2], found[1] * 2


@graph("norms")
def joint_graph_of_batch_norm() -> Traced:
    model = nn.Sequential(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3))
    return compiled(model, torch.randn(3, 2, 6, 6), which="joint")


@graph("norms")
def exported_batch_norm() -> Traced:
    return exported(nn.Sequential(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.GroupNorm(2, 4)), torch.randn(3, 2, 6, 6))


# ---- embeddings


@differentiates("embeddings", lambda: [torch.randn(6, 4), torch.tensor([[0, 1, 1], [5, 2, 1]])])
def tables_of_words(table: Tensor, i: Tensor) -> tuple:
    return (
        F.embedding(i, table),
        F.embedding(i, table, padding_idx=1).sin(),
        F.embedding(i, table, scale_grad_by_freq=True),
        F.embedding(i.t(), table),
        F.embedding(i, table) @ table.t(),
    )


@differentiates(
    "embeddings", lambda: [torch.randn(6, 4), torch.tensor([0, 1, 1, 5, 2, 1]), torch.tensor([0, 2, 2]), torch.randn(6)]
)
def bags(table: Tensor, i: Tensor, o: Tensor, w: Tensor) -> tuple:
    found = [F.embedding_bag(i, table, o, mode=mode) for mode in ("sum", "mean", "max")]
    return (
        *found,
        F.embedding_bag(i, table, o, mode="sum", per_sample_weights=w),
        F.embedding_bag(i.view(2, 3), table),
        F.embedding_bag(i, table, o, mode="mean", padding_idx=1),
        F.embedding_bag(i, table, torch.cat([o, o.new_tensor([6])]), include_last_offset=True),
    )


@traces("embeddings", lambda: [torch.randn(6, 4), torch.tensor([0, 3, 3])])
def renormed_in_place(table: Tensor, i: Tensor) -> tuple:
    before = F.embedding(i, table)
    after = F.embedding(i, table, max_norm=1.0)
    return before, after, F.embedding(i, table), table.norm(dim=1)


@graph("embeddings")
def tied_to_the_output() -> Traced:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table, self.mix = nn.Embedding(8, 4), nn.Linear(4, 4)

        def forward(self, i: Tensor) -> Tensor:
            return torch.tanh(self.mix(self.table(i))) @ self.table.weight.t()

    return training_step(
        Tied(), lambda out: F.cross_entropy(out.flatten(0, 1), torch.arange(6)), torch.tensor([[0, 1, 2], [7, 7, 3]])
    )


@traces("embeddings", lambda: [torch.randn(4, 3), torch.tensor([1, 3]), torch.tensor([0, 0, 1, 2, 2])])
def empty_bags(table: Tensor, i: Tensor, o: Tensor) -> tuple:
    """Empty bags, at the ends and in between."""
    return (
        aten._embedding_bag(table, i, o, False, 1),
        aten._embedding_bag(table, i, o, False, 2),
        F.embedding_bag(i, table, o),
    )
