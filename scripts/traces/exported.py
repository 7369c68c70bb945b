"""An inference program by torch.export: any batch size, a mutated cache, a branch on data."""

from __future__ import annotations

import contextlib
import functools
from dataclasses import dataclass

import torch
import torch.nn.functional as F
import trace_gpu_free
from fxopt import origins
from torch import Tensor, nn

from traces import Graph, Substitution, Traced, routes, seeded


@dataclass(frozen=True)
class Size:
    device: str
    layers: int
    width: int
    heads: int
    vocabulary: int
    batch: int  # in the trace; the graph accepts 2 to `most`
    most: int
    length: int


FULL = Size("cuda", layers=4, width=1024, heads=16, vocabulary=32000, batch=8, most=64, length=512)
TWIN = Size("cpu", layers=2, width=32, heads=2, vocabulary=61, batch=3, most=64, length=8)
SUBSTITUTIONS = (
    Substitution("4 layers, width 1024, 16 heads", "2 layers, width 32, 2 heads", "memory and time"),
    Substitution("vocabulary 32000, batch 8, length 512", "vocabulary 61, batch 3, length 8", "memory and time"),
    Substitution("device cuda:0", "device cpu", "the copy runs on a CPU"),
)


class Layer(nn.Module):
    """Attention over the cache, then a perceptron."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.heads = size.heads
        self.norm = nn.LayerNorm(size.width)
        self.qkv = nn.Linear(size.width, 3 * size.width)
        self.up, self.down = nn.Linear(size.width, 4 * size.width), nn.Linear(4 * size.width, size.width)
        self.register_buffer("keys", torch.zeros(size.most, size.length, size.width))
        self.register_buffer("mask", torch.ones(size.length, size.length).tril().log(), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm(x)).chunk(3, dim=-1)
        self.keys[:batch].copy_(k)
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in (q, self.keys[:batch], v))
        weights = (q @ k.transpose(-2, -1) * (width // self.heads) ** -0.5 + self.mask).softmax(-1)
        x = x + (weights @ v).transpose(1, 2).reshape(batch, length, width)
        return x + self.down(F.gelu(self.up(x)))


class Decoder(nn.Module):
    """Scores of the next token, sharpened if they are flat. Counts the tokens it has seen."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.embedding = nn.Embedding(size.vocabulary, size.width)
        self.layers = nn.ModuleList(Layer(size) for _ in range(size.layers))
        self.output = nn.Linear(size.width, size.vocabulary, bias=False)
        self.output.weight = self.embedding.weight
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64))
        self.temperature = torch.full((), 0.5)

    def forward(self, tokens: Tensor) -> dict[str, Tensor]:
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        scores = self.output(x[:, -1])
        self.seen.add_(tokens.numel())
        flat = scores.amax() - scores.amin() < 1
        scores = torch.cond(flat, lambda s: s / self.temperature, lambda s: s.clone(), (scores,))
        return {"scores": scores, "best": scores.argmax(-1)}


def trace(size: Size) -> Traced:
    trace_gpu_free.enable_fake_cuda_backward()
    torch._dynamo.reset()
    fake = trace_gpu_free.fake_mode() if size.device == "cuda" else contextlib.nullcontext()
    with fake, torch.device(size.device):
        model = Decoder(size).eval()
        tokens = torch.zeros(size.batch, size.length, dtype=torch.int64)
        batch = torch.export.Dim("batch", min=2, max=size.most)
        program = torch.export.export(model, (tokens,), dynamic_shapes=({0: batch},), strict=False)
        # Decomposes nothing; writes to buffers become outputs.
        program = program.run_decompositions({})
    return origins.exported(program)


def inputs() -> list[object]:
    tokens = torch.randint(TWIN.vocabulary, (TWIN.batch, TWIN.length), generator=seeded())
    return routes.real_inputs(trace(TWIN), [tokens])


ABOUT = (
    "an inference program, exported by torch.export. The program is a decoder with a symbolic batch size. It updates a"
    " key cache and a token count in buffers, and has a data-dependent branch (cond), tied embeddings, a constant, and"
    " buffers outside the state dict"
)
GRAPHS = {
    "exported": Graph(functools.partial(trace, FULL), f"{ABOUT}. Size: 4 layers, width 1024, batch 8, length 512"),
    "exported_twin": Graph(functools.partial(trace, TWIN), f"small copy of `exported`: {ABOUT}", inputs, SUBSTITUTIONS),
}
