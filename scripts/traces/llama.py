"""A Llama of 1.2 billion parameters, written out: one training step with flash attention."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import torch
import torch.nn.functional as F
import trace_gpu_free
from torch import Tensor, nn

from traces import Graph, Substitution, Traced, routes, seeded


@dataclass(frozen=True)
class Size:
    device: str
    layers: int
    width: int
    heads: int
    kv_heads: int
    hidden: int
    vocabulary: int
    batch: int
    length: int

    @property
    def head_width(self) -> int:
        return self.width // self.heads


FULL = Size("cuda", 16, width=2048, heads=32, kv_heads=8, hidden=8192, vocabulary=128256, batch=2, length=2048)
TWIN = Size("cpu", 2, width=64, heads=4, kv_heads=1, hidden=256, vocabulary=203, batch=2, length=32)
SUBSTITUTIONS = (
    Substitution("16 layers, width 2048, 32 heads, 8 key-value heads", "2 layers, width 64, 4 heads, 1 key-value head", "memory and time"),
    Substitution("vocabulary 128256, length 2048", "vocabulary 203, length 32", "memory and time"),
    Substitution("device cuda:0", "device cpu", "the copy runs on a CPU"),
    Substitution(
        "aten._scaled_dot_product_flash_attention and its backward, nine results",
        "aten._scaled_dot_product_flash_attention_for_cpu and its backward, two results",
        "the original's operators run only on GPUs",
    ),
    Substitution(
        "aten._fused_rms_norm and its backward", "the elementary operators they consist of", "a CPU has no kernel"
    ),
)


class Attention(nn.Module):
    """Causal attention over rotated heads. Several query heads share a head of keys and values."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.size = size
        self.wq = nn.Linear(size.width, size.heads * size.head_width, bias=False)
        self.wk = nn.Linear(size.width, size.kv_heads * size.head_width, bias=False)
        self.wv = nn.Linear(size.width, size.kv_heads * size.head_width, bias=False)
        self.wo = nn.Linear(size.heads * size.head_width, size.width, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        batch, length, _ = x.shape
        heads = (batch, length, -1, self.size.head_width)
        q, k, v = (w(x).view(heads).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        k, v = (t.repeat_interleave(self.size.heads // self.size.kv_heads, dim=1) for t in (k, v))
        mixed = trace_gpu_free.flash_attention(q, k, v, causal=True)
        return self.wo(mixed.transpose(1, 2).reshape(batch, length, -1))


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary position embedding: the two halves of each head are the parts of complex numbers."""
    real, imaginary = x.float().chunk(2, dim=-1)
    return torch.cat((real * cos - imaginary * sin, imaginary * cos + real * sin), dim=-1).type_as(x)


class FeedForward(nn.Module):
    """Gated SiLU."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.w1 = nn.Linear(size.width, size.hidden, bias=False)
        self.w2 = nn.Linear(size.hidden, size.width, bias=False)
        self.w3 = nn.Linear(size.width, size.hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Layer(nn.Module):
    def __init__(self, size: Size) -> None:
        super().__init__()
        self.attention_norm, self.ffn_norm = nn.RMSNorm(size.width), nn.RMSNorm(size.width)
        self.attention, self.feed_forward = Attention(size), FeedForward(size)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        x = x + self.attention(self.attention_norm(x), cos, sin)
        return x + self.feed_forward(self.ffn_norm(x))


class Llama(nn.Module):
    """Token embedding, layers, norm, and the embedding as the output projection."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.tok_embeddings = nn.Embedding(size.vocabulary, size.width)
        self.layers = nn.ModuleList(Layer(size) for _ in range(size.layers))
        self.norm = nn.RMSNorm(size.width)
        self.output = nn.Linear(size.width, size.vocabulary, bias=False)
        self.output.weight = self.tok_embeddings.weight
        self.register_buffer("rope_cos", torch.empty(size.length, size.head_width // 2, dtype=torch.float32))
        self.register_buffer("rope_sin", torch.empty(size.length, size.head_width // 2, dtype=torch.float32))

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.tok_embeddings(tokens)
        for layer in self.layers:
            x = layer(x, self.rope_cos, self.rope_sin)
        return self.output(self.norm(x))


def loss(model: nn.Module, tokens: Tensor, labels: Tensor) -> Tensor:
    logits = model(tokens)
    with torch.fx.traceback.annotate({"module_fqn": "loss"}):
        return F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten())


def trace(size: Size = FULL) -> Traced:
    mode = trace_gpu_free.fake_mode()
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)
    with mode, torch.device(size.device):
        model = Llama(size)
        tokens = torch.empty(size.batch, size.length, dtype=torch.int64)
        labels = torch.empty(size.batch, size.length, dtype=torch.int64)
    torch.set_default_dtype(default)
    trace_gpu_free.annotate_modules(model, "layers")
    return routes.trace_step(model, loss, [tokens, labels], mode)


def inputs() -> list[object]:
    generator = seeded()
    shape = (TWIN.batch, TWIN.length)
    tokens, labels = (torch.randint(TWIN.vocabulary, shape, generator=generator) for _ in range(2))
    return routes.real_inputs(trace(TWIN), [tokens, labels])


GRAPHS = {
    "llama1b": Graph(
        trace,
        "one training step (forward, cross entropy, backward) of a Llama of 1.2 billion parameters: 16 layers, width"
        " 2048, 32 heads, 8 key-value heads, hidden width 8192, vocabulary 128256, tied embeddings, bfloat16, batch 2,"
        " sequence 2048, flash attention, as traced for one GPU. Backward nodes are marked, and module paths and layers"
        " are annotated. No node has a recompute tag",
    ),
    "llama1b_twin": Graph(
        functools.partial(trace, TWIN), "small copy: the training step of llama1b", inputs, SUBSTITUTIONS
    ),
}
