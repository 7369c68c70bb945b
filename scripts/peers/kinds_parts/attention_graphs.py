"""Graphs of attention, and the whole step of a small transformer."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kinds_parts.tracing import Traced, compiled, differentiates, exported, graph, traces, training_step


# ---- attention


def heads(sequence: int = 5) -> list[Tensor]:
    return [torch.randn(2, 2, sequence, 4) for _ in range(3)]


@differentiates("attention", heads)
def masked_attention(q: Tensor, k: Tensor, v: Tensor) -> tuple:
    mask = torch.ones(5, 5).tril().bool()
    bias = torch.zeros(5, 5).masked_fill(~mask, -math.inf)
    return (
        F.scaled_dot_product_attention(q, k, v, mask),
        F.scaled_dot_product_attention(q, k, v, bias),
        F.scaled_dot_product_attention(q, k, v, is_causal=True),
        F.scaled_dot_product_attention(q, k, v),
        F.scaled_dot_product_attention(q, k, v, scale=0.3),
    )


@differentiates("attention", heads)
def rows_that_see_nothing(q: Tensor, k: Tensor, v: Tensor) -> tuple:
    mask = torch.ones(5, 5).tril(-1).bool()
    scores = (q @ k.mT).masked_fill(~mask, -math.inf)
    return (
        F.scaled_dot_product_attention(q, k, v, mask),
        scores.softmax(-1) @ v,
        scores.softmax(-1).nan_to_num() @ v,
        torch.where(mask, scores, -1e9).softmax(-1) @ v,
    )


@differentiates("attention", heads)
def grouped_queries_and_dropout(q: Tensor, k: Tensor, v: Tensor) -> tuple:
    wide = torch.cat([q, q.flip(1)], 1)
    return (
        F.scaled_dot_product_attention(wide, k, v, enable_gqa=True),
        F.scaled_dot_product_attention(q, k, v, dropout_p=0.3),
        F.scaled_dot_product_attention(q, k[:, :1], v[:, :1]),
    )


@graph("attention")
def a_layer_of_pytorch() -> Traced:
    class Attends(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

        def forward(self, x: Tensor) -> Tensor:
            mask = torch.tensor([[False, False, True], [False, False, False]])
            out, weights = self.attention(x, x, x, key_padding_mask=mask)
            return out + weights.sum()

    return training_step(Attends(), lambda out: out.pow(2).mean(), torch.randn(2, 3, 8))


@traces("attention", lambda: [*heads(), torch.randn(2, 2, 10, 4)])
def rotated_and_cached(q: Tensor, k: Tensor, v: Tensor, cache: Tensor) -> tuple:
    angle = torch.outer(torch.arange(5.0), torch.tensor([1.0, 0.1]))
    turn = torch.polar(torch.ones_like(angle), angle)

    def rotated(x: Tensor) -> Tensor:
        return torch.view_as_real(torch.view_as_complex(x.view(2, 2, 5, 2, 2)) * turn).flatten(3)

    before = cache.sum()
    cache[:, :, 5:].copy_(rotated(k))
    return before, F.scaled_dot_product_attention(rotated(q), cache, torch.cat([v, v], 2)), cache.sum(), rotated(k)


@graph("attention")
def joint_graph_of_attention() -> Traced:
    q, k, v = (value.requires_grad_() for value in heads())
    return compiled(
        lambda q, k, v: F.scaled_dot_product_attention(q.sin(), k.sin(), v, is_causal=True).tanh(), q, k, v, which="joint"
    )


# ---- a transformer


class Layer(nn.Module):
    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.attention_norm, self.norm = nn.RMSNorm(8), nn.LayerNorm(8)
        self.qkv, self.out = nn.Linear(8, 24, bias=False), nn.Linear(8, 8)
        self.up, self.gate, self.down = nn.Linear(8, 16), nn.Linear(8, 16), nn.Linear(16, 8)
        self.dropout = dropout

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(self.attention_norm(x)).view(*x.shape[:2], 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        h = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(x.shape)
        x = x + F.dropout(self.out(h), self.dropout, self.training)
        h = self.norm(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Transformer(nn.Module):
    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(16, 8), nn.Embedding(6, 8)
        self.layers = nn.ModuleList(Layer(dropout) for _ in range(3))
        self.norm, self.head = nn.LayerNorm(8), nn.Linear(8, 16, bias=False)

    def forward(self, i: Tensor) -> Tensor:
        x = self.words(i) + self.places(torch.arange(i.shape[1]))
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


def sentences() -> Tensor:
    return torch.arange(12).view(2, 6) % 7


def word_loss(out: Tensor) -> Tensor:
    return F.cross_entropy(out.flatten(0, 1), torch.arange(12) % 5)


@graph("transformer")
def whole_step() -> Traced:
    return training_step(Transformer(), word_loss, sentences())


@graph("transformer")
def whole_step_with_dropout() -> Traced:
    return training_step(Transformer(0.2), word_loss, sentences())


@graph("transformer")
def whole_step_of_half_precision() -> Traced:
    return training_step(Transformer(0.1).bfloat16(), lambda out: word_loss(out.float()), sentences())


@graph("transformer")
def joint_step() -> Traced:
    model = Transformer(0.1)
    return compiled(lambda i: word_loss(model(i)), sentences(), which="joint")


@graph("transformer")
def whole_step_of_symbolic_sizes() -> Traced:
    return training_step(Transformer(), lambda out: out.float().logsumexp(-1).mean(), sentences(), mode="symbolic")


@graph("transformer")
def exported_transformer() -> Traced:
    return exported(Transformer().eval(), sentences())
