"""Small but complete models of libraries, and one step of each under torch.compile."""

from __future__ import annotations

import sys
from collections.abc import Callable
from unittest import mock

import torch
from fxopt.partition import backend as fxopt_backend
from torch import Tensor, nn
from torch.fx import GraphModule

Pair = tuple[GraphModule, GraphModule]

PICTURE = (8, 3, 32, 32)
SENTENCE, WORDS = (8, 64), 61


def _transformers(kind: str, config: dict[str, object]) -> nn.Module:
    import transformers

    return getattr(transformers, kind)(getattr(transformers, config.pop("config"))(**config))


def gpt2() -> nn.Module:
    """GPT-2 with dropout, whose draws are saved."""
    return _transformers(
        "GPT2LMHeadModel",
        {"config": "GPT2Config", "vocab_size": WORDS, "n_positions": 64, "n_embd": 32, "n_layer": 8, "n_head": 4, "use_cache": False,
         "bos_token_id": 0, "eos_token_id": 0},
    )  # fmt: skip


def llama() -> nn.Module:
    return _transformers(
        "LlamaForCausalLM",
        {"config": "LlamaConfig", "vocab_size": WORDS, "hidden_size": 32, "intermediate_size": 96, "num_hidden_layers": 8,
         "num_attention_heads": 4, "num_key_value_heads": 2, "use_cache": False},
    )  # fmt: skip


def bert() -> nn.Module:
    return _transformers(
        "BertForMaskedLM",
        {"config": "BertConfig", "vocab_size": WORDS, "hidden_size": 32, "intermediate_size": 128, "num_hidden_layers": 8,
         "num_attention_heads": 4, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0},
    )  # fmt: skip


def t5_encoder() -> nn.Module:
    return _transformers(
        "T5EncoderModel",
        {"config": "T5Config", "vocab_size": WORDS, "d_model": 32, "d_kv": 8, "d_ff": 128, "num_layers": 8, "num_heads": 4,
         "dropout_rate": 0.0},
    )  # fmt: skip


def timm_vit() -> nn.Module:
    from timm.models.vision_transformer import VisionTransformer

    return VisionTransformer(img_size=32, patch_size=4, embed_dim=32, depth=8, num_heads=4, num_classes=10)


def timm_mixer() -> nn.Module:
    from timm.models.mlp_mixer import MlpMixer

    return MlpMixer(img_size=32, patch_size=4, embed_dim=32, num_blocks=8, num_classes=10)


def torchvision_swin() -> nn.Module:
    from torchvision.models import SwinTransformer

    return SwinTransformer([4, 4], 32, [6, 2], [2, 4], [4, 4], stochastic_depth_prob=0.0, num_classes=10)


def torchvision_convnext() -> nn.Module:
    from torchvision.models.convnext import CNBlockConfig, ConvNeXt

    return ConvNeXt([CNBlockConfig(32, 64, 4), CNBlockConfig(64, None, 4)], num_classes=10)


COMPILED: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "gpt2": (gpt2, SENTENCE), "llama": (llama, SENTENCE), "bert": (bert, SENTENCE), "t5_encoder": (t5_encoder, SENTENCE),
    "timm_vit": (timm_vit, PICTURE), "timm_mixer": (timm_mixer, PICTURE),
    "torchvision_swin": (torchvision_swin, PICTURE), "torchvision_convnext": (torchvision_convnext, PICTURE),
}  # fmt: skip


def run_compiled(
    make: Callable[[], nn.Module], size: tuple[int, ...], backend: str, options: dict[str, str] | None
) -> tuple[list[Tensor], list[Pair]]:
    """The loss and the gradients, and the pairs of graphs that fxopt cut meanwhile."""
    pairs, module = [], sys.modules["fxopt.partition"]
    cut = module.partition

    def noted(*args: object, **kwargs: object) -> tuple[GraphModule, GraphModule]:
        pairs.append(cut(*args, **kwargs))
        return pairs[-1]

    torch._dynamo.reset()
    torch.manual_seed(0)
    model = make().train()
    inputs = torch.randint(WORDS, size) if len(size) == 2 else torch.randn(size)
    if "fxopt" not in torch._dynamo.list_backends(None):  # the package is not installed
        torch._dynamo.register_backend(fxopt_backend, name="fxopt")
    with mock.patch.object(module, "partition", noted):
        found = torch.compile(model, backend=backend, options=options, fullgraph=True)(inputs)
    found = next((getattr(found, key) for key in ("logits", "last_hidden_state") if hasattr(found, key)), found)
    loss = found.square().mean()
    loss.backward()
    return [loss.detach(), *(p.grad for p in model.parameters() if p.grad is not None)], pairs
