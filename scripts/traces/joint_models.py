#!/usr/bin/env python3
"""AOTAutograd's joint graphs of well-known models, as a partitioner receives them. testdata/ holds
some.

    scripts/traces/joint_models.py -o FOLDER [--twin | --small] [--fxopt PROGRAM] [NAME...]
    scripts/traces/joint_models.py --list

Writes FOLDER/NAME_joint.pb for each named model (default: all). --twin writes
FOLDER/NAME_joint_twin.pb, a small copy that a CPU runs in a few seconds. --small writes
FOLDER/NAME_joint_small.pb, the same sizes on a GPU. Models come from torchvision and transformers,
or are written out here. They are built from configurations, without weights, on fake tensors. No
GPU is needed or used, but attention calls a GPU's kernels. As a module it has GRAPHS like the other
families, with real inputs for the small copies.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import functools
import math
import multiprocessing
import os
import pathlib
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
if str(ROOT / "scripts") not in sys.path:
    sys.path.insert(0, str(ROOT / "scripts"))

import torch
import torch.nn.functional as F
import trace_gpu_free
from fxopt import bridge, tool
from torch import Tensor, nn

from traces import Graph, Traced, close, gpt2, number_identities, random_like, routes, seeded

_scaled_dot_product_attention = F.scaled_dot_product_attention


@dataclass(frozen=True)
class Input:
    """An input of a step: numbers around 0, or whole numbers from 0 up to `below`, exclusive."""

    shape: Sequence[int]
    below: int = 0

    def fake(self) -> Tensor:
        return torch.empty(self.shape, dtype=torch.int64 if self.below else None)

    def real(self, dtype: torch.dtype, generator: torch.Generator) -> Tensor:
        if self.below:
            return torch.randint(self.below, tuple(self.shape), generator=generator)
        return random_like(torch.empty(self.shape, dtype=dtype), generator)


Sample = tuple[nn.Module, routes.Loss, list[Input]]


@dataclass(frozen=True)
class Model:
    """A model to trace. `build` makes it, its loss and its inputs, small if its argument is
    true."""

    build: Callable[[bool], Sample]
    about: str
    dtype: torch.dtype = torch.float32
    autocast: bool = False  # to bfloat16
    layers: str = ""  # the module list whose members are regions


# ---- tracing


def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """scaled_dot_product_attention by a GPU's kernel. Without a driver it would become plain
    products."""
    if query.device.type == "cpu":
        told = {"scale": scale, "enable_gqa": enable_gqa}
        return _scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, **told)
    if attn_mask is not None:
        raise NotImplementedError("the choice of a kernel with a mask is not implemented")
    if query.dtype in (torch.float16, torch.bfloat16):
        flash = torch.ops.aten._scaled_dot_product_flash_attention
        return flash(query, key, value, dropout_p, is_causal, scale=scale)[0]
    efficient = torch.ops.aten._scaled_dot_product_efficient_attention
    return efficient(query, key, value, None, True, dropout_p, is_causal, scale=scale)[0]


@contextlib.contextmanager
def _traceable() -> Iterator[None]:
    """Answers the questions of models and autocast about the GPU as if one existed."""
    import transformers.integrations.moe

    with (
        gpt2.traceable(),
        mock.patch.object(F, "scaled_dot_product_attention", _attention),
        mock.patch.object(transformers.integrations.moe, "_can_use_grouped_mm", lambda *a: True),
        mock.patch.object(torch.cuda.amp.common, "amp_definitely_not_available", lambda: False),
        mock.patch.object(torch.cuda, "is_bf16_supported", lambda *a: True),
    ):
        yield


@contextlib.contextmanager
def _default_dtype(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def trace(model: Model, is_small: bool, device: str) -> Traced:
    return _trace(model, is_small, device)[0]


def inputs(model: Model) -> list[object]:
    traced, specs = _trace(model, True, "cpu")
    close()  # AOTAutograd's modes would make these fake
    generator = seeded()
    return routes.real_inputs(traced, [spec.real(model.dtype, generator) for spec in specs])


def _trace(model: Model, is_small: bool, device: str) -> tuple[Traced, list[Input]]:
    os.environ["HF_HUB_OFFLINE"] = "1"
    mode = trace_gpu_free.fake_mode()
    # trunc_normal_ reads the numbers it drew, which fake tensors lack.
    unset = mock.patch.object(nn.init, "trunc_normal_", lambda tensor, *a, **k: tensor)
    with mode, torch.device(device), _default_dtype(model.dtype), unset:
        module, loss, specs = model.build(is_small)
        module.train()
        args = [spec.fake() for spec in specs]
    trace_gpu_free.annotate_modules(module, model.layers)

    def mixed(module: nn.Module, *args: Tensor) -> Tensor:
        with torch.autocast(device, torch.bfloat16):
            return loss(module, *args)

    with _traceable():
        return routes.trace_joint(module, mixed if model.autocast else loss, args, mode), specs


# ---- losses


def classes(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Returns the cross entropy of one label per image."""
    scores = model(images)
    with torch.fx.traceback.annotate({"module_fqn": "loss"}):
        return F.cross_entropy(scores, labels)


def _tokens(logits: Tensor, labels: Tensor) -> Tensor:
    with torch.fx.traceback.annotate({"module_fqn": "loss"}):
        return F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten())


def language(model: nn.Module, tokens: Tensor, labels: Tensor) -> Tensor:
    """Returns the cross entropy of one label per token."""
    return _tokens(model(tokens).logits, labels)


def masked_language(model: nn.Module, tokens: Tensor, kinds: Tensor, labels: Tensor) -> Tensor:
    return _tokens(model(tokens, token_type_ids=kinds).logits, labels)


def translation(model: nn.Module, source: Tensor, tokens: Tensor, labels: Tensor) -> Tensor:
    return _tokens(model(source, decoder_input_ids=tokens, use_cache=False).logits, labels)


def clicks(model: nn.Module, numbers: Tensor, ids: Tensor, labels: Tensor) -> Tensor:
    scores = model(numbers, ids)
    with torch.fx.traceback.annotate({"module_fqn": "loss"}):
        return F.binary_cross_entropy_with_logits(scores, labels)


def denoising(model: nn.Module, images: Tensor, times: Tensor, labels: Tensor) -> Tensor:
    """Returns the error of the model's estimate of the noise mixed into the images."""
    noise = torch.randn_like(images)
    angles = (times.float() / TIMES * (math.pi / 2))[:, None, None, None]
    found = model(images * angles.cos() + noise * angles.sin(), times, labels)
    with torch.fx.traceback.annotate({"module_fqn": "loss"}):
        return F.mse_loss(found.float(), noise)


# ---- images


def vit(twin: bool) -> Sample:
    from torchvision.models import VisionTransformer

    batch, pixels, count = (2, 32, 10) if twin else (32, 224, 1000)
    layers, heads, width, hidden = (2, 2, 32, 64) if twin else (12, 12, 768, 3072)
    model = VisionTransformer(pixels, 16, layers, heads, width, hidden, dropout=0.1, num_classes=count)
    return model, classes, [Input((batch, 3, pixels, pixels)), Input((batch,), count)]


def swin(twin: bool) -> Sample:
    from torchvision.models import SwinTransformer

    batch, pixels, count = (2, 32, 10) if twin else (32, 224, 1000)
    width, depths, heads = (16, [2, 2], [1, 2]) if twin else (96, [2, 2, 6, 2], [3, 6, 12, 24])
    window = [2, 2] if twin else [7, 7]
    model = SwinTransformer([4, 4], width, depths, heads, window, stochastic_depth_prob=0.2, num_classes=count)
    return model, classes, [Input((batch, 3, pixels, pixels)), Input((batch,), count)]


def convnext(twin: bool) -> Sample:
    from torchvision.models import ConvNeXt
    from torchvision.models.convnext import CNBlockConfig

    batch, pixels, count = (2, 32, 10) if twin else (32, 224, 1000)
    widths, depths = ([8, 16, 16, 32], [1, 1, 2, 1]) if twin else ([96, 192, 384, 768], [3, 3, 9, 3])
    blocks = [CNBlockConfig(*sizes) for sizes in zip(widths, [*widths[1:], None], depths)]
    model = ConvNeXt(blocks, stochastic_depth_prob=0.1, num_classes=count)
    return model, classes, [Input((batch, 3, pixels, pixels)), Input((batch,), count)]


def efficientnet(twin: bool) -> Sample:
    from torchvision.models import EfficientNet
    from torchvision.models.efficientnet import MBConvConfig

    batch, pixels, count = (2, 32, 10) if twin else (32, 224, 1000)
    rows = [
        (1, 3, 1, 32, 16, 1),
        (6, 3, 2, 16, 24, 2),
        (6, 5, 2, 24, 40, 2),
        (6, 3, 2, 40, 80, 3),
        (6, 5, 1, 80, 112, 3),
        (6, 5, 2, 112, 192, 4),
        (6, 3, 1, 192, 320, 1),
    ]
    width, depth = (0.25, 0.25) if twin else (1.0, 1.0)
    blocks = [MBConvConfig(*row, width_mult=width, depth_mult=depth) for row in (rows[:3] if twin else rows)]
    last = 32 if twin else 1280
    model = EfficientNet(blocks, dropout=0.2, num_classes=count, last_channel=last)
    return model, classes, [Input((batch, 3, pixels, pixels)), Input((batch,), count)]


class MixerBlock(nn.Module):
    """Two perceptrons with residual sums: over the patches of each channel, and over the channels
    of each patch."""

    def __init__(self, patches: int, width: int, token_width: int, channel_width: int) -> None:
        super().__init__()
        self.token_norm, self.channel_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.tokens = nn.Sequential(nn.Linear(patches, token_width), nn.GELU(), nn.Linear(token_width, patches))
        self.channels = nn.Sequential(nn.Linear(width, channel_width), nn.GELU(), nn.Linear(channel_width, width))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.tokens(self.token_norm(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(self.channel_norm(x))


class Mixer(nn.Module):
    """MLP-Mixer: patches, blocks, a mean over patches, classes."""

    def __init__(self, pixels: int, layers: int, width: int, token_width: int, channel_width: int, count: int) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, width, 16, 16)
        patches = (pixels // 16) ** 2
        self.blocks = nn.ModuleList(MixerBlock(patches, width, token_width, channel_width) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, count)

    def forward(self, images: Tensor) -> Tensor:
        x = self.stem(images).flatten(2).transpose(1, 2)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x).mean(1))


def mixer(twin: bool) -> Sample:
    batch, pixels, count = (2, 32, 10) if twin else (32, 224, 1000)
    sizes = (2, 32, 16, 64) if twin else (12, 768, 384, 3072)
    return Mixer(pixels, *sizes, count), classes, [Input((batch, 3, pixels, pixels)), Input((batch,), count)]


# ---- diffusion

TIMES = 1000


class ResidualBlock(nn.Module):
    """Two convolutions behind group norms, the second scaled and shifted by the time. May halve or
    double the image."""

    def __init__(self, channels: int, out: int, time: int, groups: int, resize: float = 1) -> None:
        super().__init__()
        self.resize = resize
        self.in_norm, self.out_norm = nn.GroupNorm(groups, channels), nn.GroupNorm(groups, out)
        self.first, self.second = nn.Conv2d(channels, out, 3, padding=1), nn.Conv2d(out, out, 3, padding=1)
        self.time = nn.Linear(time, 2 * out)
        self.dropout = nn.Dropout(0.1)
        self.skip = nn.Identity() if channels == out else nn.Conv2d(channels, out, 1)

    def resized(self, x: Tensor) -> Tensor:
        if self.resize < 1:
            return F.avg_pool2d(x, 2)
        return F.interpolate(x, scale_factor=2.0) if self.resize > 1 else x

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        h = self.first(self.resized(F.silu(self.in_norm(x))))
        scale, shift = self.time(F.silu(time))[:, :, None, None].chunk(2, dim=1)
        h = self.out_norm(h) * (1 + scale) + shift
        return self.skip(self.resized(x)) + self.second(self.dropout(F.silu(h)))


class ImageAttention(nn.Module):
    """Attention between all positions of an image, with a residual sum."""

    def __init__(self, channels: int, head_width: int, groups: int) -> None:
        super().__init__()
        self.head_width = head_width
        self.norm = nn.GroupNorm(groups, channels)
        self.qkv, self.out = nn.Linear(channels, 3 * channels), nn.Linear(channels, channels)

    def forward(self, x: Tensor) -> Tensor:
        batch, channels, _, _ = x.shape
        qkv = self.qkv(self.norm(x).flatten(2).transpose(1, 2))
        q, k, v = (t.view(batch, -1, channels // self.head_width, self.head_width) for t in qkv.chunk(3, dim=2))
        mixed = F.scaled_dot_product_attention(*(t.transpose(1, 2) for t in (q, k, v)))
        return x + self.out(mixed.transpose(1, 2).flatten(2)).transpose(1, 2).reshape(x.shape)


class Stage(nn.Module):
    """A residual block and, at small image sizes, attention."""

    def __init__(self, block: ResidualBlock, attention: ImageAttention | None) -> None:
        super().__init__()
        self.block, self.attention = block, attention

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        x = self.block(x, time)
        return x if self.attention is None else self.attention(x)


class UNet(nn.Module):
    """The class-conditional diffusion model of Dhariwal and Nichol. Each level halves the image,
    and each result on the way down is an input on the way up. The levels in `attended` and the
    middle have attention."""

    def __init__(
        self,
        width: int,
        multiples: Sequence[int],
        blocks: int,
        attended: Sequence[int],
        head_width: int,
        groups: int,
        labels: int,
    ) -> None:
        super().__init__()
        time = 4 * width
        self.width = width
        self.time = nn.Sequential(nn.Linear(width, time), nn.SiLU(), nn.Linear(time, time))
        self.label = nn.Embedding(labels, time)

        def stage(channels: int, out: int, level: int, resize: float = 1) -> Stage:
            attention = ImageAttention(out, head_width, groups) if level in attended and resize == 1 else None
            return Stage(ResidualBlock(channels, out, time, groups, resize), attention)

        self.stem = nn.Conv2d(3, width, 3, padding=1)
        self.down, self.up = nn.ModuleList(), nn.ModuleList()
        channels, kept = width, [width]
        for level, multiple in enumerate(multiples):
            for _ in range(blocks):
                self.down.append(stage(channels, multiple * width, level))
                channels = multiple * width
                kept.append(channels)
            if level + 1 < len(multiples):
                self.down.append(stage(channels, channels, level, 0.5))
                kept.append(channels)
        self.middle = nn.ModuleList([stage(channels, channels, attended[-1]), stage(channels, channels, -1)])
        for level, multiple in reversed(list(enumerate(multiples))):
            for _ in range(blocks + 1):
                self.up.append(stage(channels + kept.pop(), multiple * width, level))
                channels = multiple * width
            if level:
                self.up.append(stage(channels, channels, level, 2))
        self.norm, self.out = nn.GroupNorm(groups, channels), nn.Conv2d(channels, 3, 3, padding=1)

    def forward(self, images: Tensor, times: Tensor, labels: Tensor) -> Tensor:
        half = self.width // 2
        rates = torch.exp(torch.arange(half, device=times.device) * (-math.log(1e4) / half))
        angles = times.float()[:, None] * rates
        time = self.time(torch.cat((angles.cos(), angles.sin()), dim=1)) + self.label(labels)
        x = self.stem(images)
        kept = [x]
        for stage in self.down:
            x = stage(x, time)
            kept.append(x)
        for stage in self.middle:
            x = stage(x, time)
        for stage in self.up:
            x = stage(x if stage.block.resize > 1 else torch.cat((x, kept.pop()), dim=1), time)
        return self.out(F.silu(self.norm(x)))


def unet(twin: bool) -> Sample:
    batch, pixels, count = (2, 16, 10) if twin else (32, 64, 1000)
    model = UNet(16, (1, 2), 1, (1,), 8, 4, count) if twin else UNet(192, (1, 2, 3, 4), 3, (1, 2, 3), 64, 32, count)
    return model, denoising, [Input((batch, 3, pixels, pixels)), Input((batch,), TIMES), Input((batch,), count)]


# ---- language and speech


def bert(twin: bool) -> Sample:
    from transformers import BertConfig, BertForMaskedLM

    batch, length, words = (2, 16, 97) if twin else (16, 512, 30522)
    small = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    config = BertConfig(vocab_size=words, max_position_embeddings=length, attn_implementation="eager", **(small if twin else {}))
    shape = (batch, length)
    return BertForMaskedLM(config), masked_language, [Input(shape, words), Input(shape, 2), Input(shape, words)]


def t5(twin: bool) -> Sample:
    from transformers import T5Config, T5ForConditionalGeneration

    batch, length, words = (2, 16, 97) if twin else (16, 512, 32128)
    small = {"d_model": 32, "d_kv": 16, "d_ff": 64, "num_layers": 2, "num_heads": 2}
    config = T5Config(vocab_size=words, attn_implementation="eager", use_cache=False, **(small if twin else {}))
    tokens = [Input((batch, length), words)] * 3
    return T5ForConditionalGeneration(config), translation, tokens


def whisper(twin: bool) -> Sample:
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    batch, frames, length, words = (2, 16, 12, 97) if twin else (8, 1500, 448, 51865)
    width, layers, heads = (32, 2, 2) if twin else (768, 12, 12)
    config = WhisperConfig(
        vocab_size=words,
        d_model=width,
        encoder_layers=layers,
        decoder_layers=layers,
        encoder_attention_heads=heads,
        decoder_attention_heads=heads,
        encoder_ffn_dim=4 * width,
        decoder_ffn_dim=4 * width,
        max_source_positions=frames,
        max_target_positions=length,
        pad_token_id=words - 1,
        bos_token_id=words - 1,
        eos_token_id=words - 1,
        decoder_start_token_id=words - 2,
        attn_implementation="sdpa",
        use_cache=False,
    )
    tokens = Input((batch, length), words)
    spectra = Input((batch, config.num_mel_bins, 2 * frames))
    return WhisperForConditionalGeneration(config), translation, [spectra, tokens, tokens]


def decoder(length: int, words: int, sizes: Sequence[int]) -> dict[str, object]:
    """Returns the common part of decoders' configurations.

    sizes: width, hidden width, layers, heads, heads of keys and values.
    """
    width, hidden, layers, heads, kv_heads = sizes
    return {
        "vocab_size": words,
        "hidden_size": width,
        "intermediate_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "max_position_embeddings": length,
        "attn_implementation": "sdpa",
        "use_cache": False,
    }


def qwen2(twin: bool) -> Sample:
    from transformers import Qwen2Config, Qwen2ForCausalLM

    batch, length, words = (2, 16, 97) if twin else (8, 2048, 151936)
    sizes = (32, 64, 2, 4, 2) if twin else (1536, 8960, 8, 12, 2)
    config = Qwen2Config(**decoder(length, words, sizes), tie_word_embeddings=True)
    return Qwen2ForCausalLM(config), language, [Input((batch, length), words)] * 2


def llama(twin: bool) -> Sample:
    from transformers import LlamaConfig, LlamaForCausalLM

    batch, length, words = (2, 16, 97) if twin else (4, 2048, 128256)
    sizes = (32, 64, 2, 4, 2) if twin else (2048, 8192, 8, 32, 8)
    config = LlamaConfig(**decoder(length, words, sizes), tie_word_embeddings=True)
    return LlamaForCausalLM(config), language, [Input((batch, length), words)] * 2


def mixtral(twin: bool) -> Sample:
    from transformers import MixtralConfig, MixtralForCausalLM

    batch, length, words = (2, 16, 97) if twin else (8, 2048, 32000)
    sizes = (32, 64, 2, 4, 2) if twin else (4096, 14336, 4, 32, 8)
    config = MixtralConfig(
        **decoder(length, words, sizes), num_local_experts=4 if twin else 8, experts_implementation="grouped_mm"
    )
    return MixtralForCausalLM(config), language, [Input((batch, length), words)] * 2


# ---- recommendation


def perceptron(widths: Sequence[int], *, bare: bool = False) -> nn.Sequential:
    """Returns linear layers with rectifiers. bare: without a rectifier after the last layer."""
    layers: list[nn.Module] = []
    for width, out in zip(widths, widths[1:]):
        layers += [nn.Linear(width, out), nn.ReLU()]
    return nn.Sequential(*(layers[:-1] if bare else layers))


class Cross(nn.Module):
    """Low-rank cross layers: products of the features with linear maps of themselves."""

    def __init__(self, width: int, rank: int, layers: int) -> None:
        super().__init__()
        self.inner = nn.ModuleList(nn.Linear(width, rank, bias=False) for _ in range(layers))
        self.outer = nn.ModuleList(nn.Linear(rank, width) for _ in range(layers))

    def forward(self, features: Tensor) -> Tensor:
        x = features
        for inner, outer in zip(self.inner, self.outer):
            x = features * outer(inner(x)) + x
        return x


class DLRM(nn.Module):
    """Predicts clicks from 13 numbers and several ids per category, with cross layers
    (DLRM-DCNv2)."""

    def __init__(
        self, tables: int, rows: int, width: int, bottom: Sequence[int], cross: tuple[int, int], top: Sequence[int]
    ) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(rows, width, mode="sum") for _ in range(tables))
        self.bottom = perceptron([NUMBERS, *bottom, width])
        self.cross = Cross((tables + 1) * width, *cross)
        self.top = perceptron([(tables + 1) * width, *top, 1], bare=True)

    def forward(self, numbers: Tensor, ids: Tensor) -> Tensor:
        found = [table(chosen) for table, chosen in zip(self.tables, ids.unbind(0))]
        return self.top(self.cross(torch.cat([self.bottom(numbers), *found], dim=1))).squeeze(1)


NUMBERS = 13


def dlrm(twin: bool) -> Sample:
    batch, tables, rows, bag = (2, 4, 50, 3) if twin else (65536, 26, 40000, 8)
    sizes = (8, (16,), (8, 2), (32, 16)) if twin else (128, (512, 256), (512, 3), (1024, 1024, 512, 256))
    args = [Input((batch, NUMBERS)), Input((tables, batch, bag), rows), Input((batch,))]
    return DLRM(tables, rows, *sizes), clicks, args


MODELS = {
    "vit": Model(vit, "ViT-B/16 with dropout 0.1, batch 32, autocast to bfloat16", autocast=True, layers="encoder.layers"),
    "swin": Model(swin, "Swin-T with stochastic depth, batch 32, float32"),
    "convnext": Model(convnext, "ConvNeXt-T with stochastic depth, batch 32, float32"),
    "efficientnet": Model(efficientnet, "EfficientNet-B0 with batch norm in training mode, batch 32, float32"),
    "mixer": Model(mixer, "MLP-Mixer B/16, written out, batch 32, bfloat16", torch.bfloat16, layers="blocks"),
    "unet": Model(
        unet, "UNet of a diffusion model of 64 x 64 pixels, written out, batch 32, autocast to bfloat16", autocast=True
    ),
    "bert": Model(bert, "BERT base with dropout and eager attention, batch 16, length 512, float32", layers="bert.encoder.layer"),
    "t5": Model(t5, "T5 small with dropout and eager attention, batch 16, lengths 512, float32"),
    "whisper": Model(whisper, "Whisper small, batch 8, 30 seconds of sound, 448 tokens, float32"),
    "qwen2": Model(qwen2, "8 layers of Qwen2 1.5B, batch 8, length 2048, bfloat16", torch.bfloat16, layers="model.layers"),
    "llama": Model(llama, "8 layers of Llama 3.2 1B, batch 4, length 2048, bfloat16", torch.bfloat16, layers="model.layers"),
    "mixtral": Model(mixtral, "4 layers of Mixtral 8x7B, batch 8, length 2048, bfloat16", torch.bfloat16, layers="model.layers"),
    "dlrm": Model(dlrm, "DLRM with cross layers, written out: 26 tables of 40000 rows, batch 65536, float32"),
}


def _graphs() -> Iterator[tuple[str, Graph]]:
    for name, model in MODELS.items():
        about = f"AOTAutograd's joint graph of {model.about}"
        yield f"{name}_joint", Graph(functools.partial(trace, model, False, "cuda"), about)
        yield f"{name}_joint_small", Graph(functools.partial(trace, model, True, "cuda"), f"small: {about}")
        yield (
            f"{name}_joint_twin",
            Graph(
                functools.partial(trace, model, True, "cpu"),
                f"small copy: {about}",
                functools.partial(inputs, model),
            ),
        )


GRAPHS = dict(_graphs())


# ---- command


def make(name: str, path: pathlib.Path, recipe: str, fxopt: str | None) -> int:
    """Traces one graph and writes it, with file names relative to the repository. Returns its
    number of nodes. Use one process per graph: a trace leaves state behind that affects the
    next."""
    os.chdir(ROOT)
    graph_module, told = GRAPHS[name].trace()
    number_identities(graph_module)
    told = {"module_name": name, "recipe": recipe} | told
    written = bridge.save(graph_module, path, fxopt=fxopt, short_paths=True, **told)
    close()
    return written.nodes


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Traces AOTAutograd's joint graphs of well-known models.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="the models, see --list (default: all)")
    parser.add_argument("-o", "--output", type=pathlib.Path, metavar="FOLDER")
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument("--twin", dest="kind", action="store_const", const="twin", help="small copies for a CPU")
    sizes.add_argument("--small", dest="kind", action="store_const", const="small", help="small copies for a GPU")
    parser.add_argument("--fxopt", metavar="PROGRAM", help="the fxopt program (default: $FXOPT, else fxopt on PATH)")
    parser.add_argument("--list", action="store_true", help="print names and descriptions")
    options = parser.parse_args(arguments)
    if options.list:
        print("\n".join(f"{name}: {model.about}" for name, model in MODELS.items()))
        return 0
    if options.output is None:
        parser.error("-o FOLDER is required")
    if unknown := [name for name in options.names if name not in MODELS]:
        parser.error(f"unknown names: {', '.join(unknown)}; names are {', '.join(MODELS)}")

    folder = options.output.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    program = tool.find_fxopt(options.fxopt)
    program = program and str(pathlib.Path(program).resolve())
    failed = False
    spawn = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=spawn, max_tasks_per_child=1) as pool:
        for name in options.names or MODELS:
            graph = f"{name}_joint_{options.kind}" if options.kind else f"{name}_joint"
            path = folder / f"{graph}.pb"
            recipe = f"scripts/traces/joint_models.py {name}" + (f" --{options.kind}" if options.kind else "")
            try:
                nodes = pool.submit(make, graph, path, recipe, program).result()
            except Exception as error:  # the other models are still made
                print(f"joint_models: {name}: {type(error).__name__}: {error}", file=sys.stderr)
                failed = True
                continue
            print(f"{path}: {nodes} nodes", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
