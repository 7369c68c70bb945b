"""GPT-2 with dropout, by transformers: forward, shifted cross entropy, backward."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from unittest import mock

import torch
import torch.nn.functional as F
import trace_gpu_free
from torch import Tensor, nn
from torch._subclasses import FakeTensorMode

from traces import Graph, Substitution, Traced, routes, seeded


@dataclass(frozen=True)
class Size:
    device: str
    layers: int
    width: int
    heads: int
    vocabulary: int
    batch: int
    length: int


FULL = Size("cuda", layers=12, width=768, heads=12, vocabulary=50257, batch=8, length=1024)
TWIN = Size("cpu", layers=2, width=32, heads=2, vocabulary=97, batch=2, length=16)
SUBSTITUTIONS = (
    Substitution("12 layers, width 768, 12 heads", "2 layers, width 32, 2 heads", "memory and time"),
    Substitution("vocabulary 50257, batch 8, length 1024", "vocabulary 97, batch 2, length 16", "memory and time"),
    Substitution("device cuda:0", "device cpu", "the copy runs on a CPU"),
)


def _fused_dropout(x: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Dropout by the operator of a GPU. On a CPU, dropout calls four simpler operators."""
    return torch.ops.aten.native_dropout(x, p, training)[0] if training and p > 0 else x


@contextlib.contextmanager
def traceable() -> Iterator[None]:
    """Makes models of transformers traceable: they look for packed sequences in the data of a
    tensor."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    import transformers.masking_utils

    nothing = mock.patch.object(transformers.masking_utils, "find_packed_sequence_indices", lambda *a, **k: None)
    with nothing, mock.patch.object(F, "dropout", _fused_dropout):
        yield


def build(size: Size, mode: FakeTensorMode) -> tuple[nn.Module, list[Tensor]]:
    """Returns the model in training mode and its input, the tokens."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        n_layer=size.layers,
        n_embd=size.width,
        n_head=size.heads,
        vocab_size=size.vocabulary,
        n_positions=size.length,
        bos_token_id=size.vocabulary - 1,
        eos_token_id=size.vocabulary - 1,
        attn_implementation="eager",
        use_cache=False,
    )
    with mode, torch.device(size.device):
        model = GPT2LMHeadModel(config).train()
        tokens = torch.empty(size.batch, size.length, dtype=torch.int64)
    model.tie_weights()
    return model, [tokens]


def loss(model: nn.Module, tokens: Tensor) -> Tensor:
    """Returns the cross entropy of the next tokens."""
    logits = model(tokens).logits[:, :-1].flatten(0, 1).float()
    with torch.fx.traceback.annotate({"module_fqn": "loss"}):
        return F.cross_entropy(logits, tokens[:, 1:].flatten())


def trace(size: Size, route: Callable[..., Traced]) -> Traced:
    mode = trace_gpu_free.fake_mode()
    model, args = build(size, mode)
    trace_gpu_free.annotate_modules(model, "transformer.h")
    with traceable():
        return route(model, loss, args, mode)


def inputs(route: Callable[..., Traced]) -> list[object]:
    tokens = torch.randint(TWIN.vocabulary, (TWIN.batch, TWIN.length), generator=seeded())
    return routes.real_inputs(trace(TWIN, route), [tokens])


def _graphs() -> Iterator[tuple[str, Graph]]:
    for suffix, route, what in routes.FORMS:
        about = f"{what} of GPT-2 (transformers) with dropout 0.1 and eager attention"
        full = f"{about}: 124 million parameters, 12 layers, tied embeddings, batch 8, length 1024, float32"
        yield f"gpt2_{suffix}", Graph(functools.partial(trace, FULL, route), full)
        yield f"gpt2_{suffix}_twin", Graph(
            functools.partial(trace, TWIN, route),
            f"small copy: {about}",
            functools.partial(inputs, route),
            SUBSTITUTIONS,
        )


GRAPHS = dict(_graphs())
