#!/usr/bin/env python3
"""Traces the joint graphs of small training models, each of another architecture.

    scripts/peers/small_models.py OUT [NAME...]

Writes OUT/NAME.pb.zst for each model (default: all) and prints its name and the number of nodes.
`partitions.py --table OUT/*.pb.zst` compares partitioners on these graphs. Exits with 1 at the first
model that cannot be traced. Needs torch; no GPU.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import fxopt  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from fxopt.origins import joint  # noqa: E402
from torch import Tensor, arange, nn, randint, randn  # noqa: E402
from torch._functorch.aot_autograd import aot_export_joint_with_descriptors  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

torch.manual_seed(0)


def attend(q: Tensor, k: Tensor, v: Tensor, heads: int, bias: Tensor | float = 0.0) -> Tensor:
    q, k, v = (x.unflatten(-1, (heads, -1)).transpose(1, 2) for x in (q, k, v))
    return ((q @ k.mT / q.shape[-1] ** 0.5 + bias).softmax(-1) @ v).transpose(1, 2).flatten(2)


class Layers(nn.Module):
    """Runs the method called `name`, whose defaults are the example inputs. The first run creates the
    layers and weights; later runs use them in the same order."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.model = getattr(self, name)
        self.inputs = self.model.__defaults__
        self(*self.inputs)

    def forward(self, *inputs: Tensor) -> Tensor:
        self.count = 0
        result = self.model(*inputs)
        return result.pow(2).mean() if result.ndim > 0 else result

    def of(self, make: Callable, *arguments: object, **options: object) -> nn.Module | nn.Parameter:
        self.count += 1
        if not hasattr(self, f"own{self.count}"):
            setattr(self, f"own{self.count}", make(*arguments, **options))
        return getattr(self, f"own{self.count}")

    def weight(self, *shape: int) -> Tensor:
        return self.of(lambda: nn.Parameter(randn(shape) * 0.1))

    def linear(self, x: Tensor, *widths: int, by: Callable = F.relu) -> Tensor:
        for i, width in enumerate(widths):
            x = self.of(nn.Linear, x.shape[-1], width)(by(x) if i > 0 else x)
        return x

    def norm(self, x: Tensor) -> Tensor:
        return self.of(nn.LayerNorm, x.shape[-1])(x)

    def conv(self, x: Tensor, width: int, size: int, **options: object) -> Tensor:
        return self.of(nn.Conv2d, x.shape[1], width, size, padding=size // 2, **options)(x)

    def batch_norm(self, x: Tensor) -> Tensor:
        return self.of(nn.BatchNorm1d if x.ndim < 4 else nn.BatchNorm2d, x.shape[1])(x)


class Models(Layers):
    def kan(self, x: Tensor = randn(24, 6)) -> Tensor:
        basis = torch.exp(-(((self.batch_norm(x)[..., None] - torch.linspace(-2, 2, 5)) * 1.5) ** 2))
        return torch.einsum("bik,iok->bo", basis, self.weight(6, 4, 5)) + self.linear(F.silu(x), 4)

    def gelu(self, x: Tensor = randn(32, 20), classes: Tensor = randint(7, (32,))) -> Tensor:
        x = F.gelu(self.norm(self.linear(F.gelu(self.norm(self.linear(x, 64))), 48)))
        return F.cross_entropy(self.linear(x, 7), classes, label_smoothing=0.1)

    def swiglu(self, x: Tensor = randn(3, 10, 36)) -> Tensor:
        y = x * x.pow(2).mean(-1, keepdim=True).add(1e-6).rsqrt() * self.weight(36)
        return x + self.linear(F.silu(self.linear(y, 80)) * self.linear(y, 80), 36)

    def group_norm(self, x: Tensor = randn(4, 6, 14, 14)) -> Tensor:
        x = F.silu(self.of(nn.GroupNorm, 3, 12)(self.conv(x, 12, 3)))
        return F.hardswish(self.of(nn.GroupNorm, 5, 20)(self.conv(x, 20, 3, stride=2))).mean((2, 3))

    def siren(self, xy: Tensor = randn(200, 2), colors: Tensor = randn(200, 3)) -> Tensor:
        return F.mse_loss(self.linear(torch.sin(30 * self.linear(xy, 26)), 34, 18, 3, by=torch.sin), colors)

    def nerf(self, rays: Tensor = randn(12, 16, 3), color: Tensor = randn(12, 3)) -> Tensor:
        angles = (rays[..., None] * 2.0 ** arange(4)).flatten(-2)
        x = self.linear(torch.cat((rays, angles.sin(), angles.cos()), -1), 32, 24, 4)
        density, shade = F.softplus(x[..., :1]), x[..., 1:].sigmoid()
        return F.mse_loss((density.cumsum(1).neg().exp() * density.expm1() * shade).sum(1), color)

    def weight_norm(self, x: Tensor = randn(16, 30)) -> Tensor:
        x = F.elu(F.linear(x, self.weight(44, 1) * F.normalize(self.weight(44, 30), dim=1)))
        return self.linear(x, 12).square().sum(1).sqrt().mean()

    def mixed_precision(self, x: Tensor = randn(30, 24), target: Tensor = randn(30, 8)) -> Tensor:
        for rows, columns in ((72, 24), (54, 72), (8, 54)):
            x = F.gelu(F.linear(x.bfloat16(), self.weight(rows, columns).bfloat16(), self.weight(rows).bfloat16()))
        return F.mse_loss(x.float(), target)

    def checkpointed(self, x: Tensor = randn(5, 12, 32)) -> Tensor:
        block = self.of(nn.Sequential, nn.LayerNorm(32), nn.Linear(32, 96), nn.GELU(), nn.Linear(96, 32))
        return self.linear(x + checkpoint(block, x, use_reentrant=False, preserve_rng_state=False), 24)

    def diffusion(self, x: Tensor = randn(36, 10), when: Tensor = randint(1000, (36, 1))) -> Tensor:
        angles, noise = when * torch.exp(-arange(8) / 2), torch.randn_like(x)
        x = self.linear(torch.cos(when / 640) * x + torch.sin(when / 640) * noise, 52)
        scale, shift = self.linear(torch.cat((angles.sin(), angles.cos()), 1), 40, 104, by=F.silu).chunk(2, 1)
        return F.mse_loss(self.linear(x + F.silu(self.norm(x) * (1 + scale) + shift), 10), noise)

    def experts(self, x: Tensor = randn(48, 16)) -> Tensor:
        gates, chosen = self.linear(x, 4).softmax(-1).topk(2)
        weights = torch.zeros(48, 4).scatter(1, chosen, gates / gates.sum(1, keepdim=True))
        hidden = F.silu(torch.einsum("ti,eih->teh", x, self.weight(4, 16, 28)))
        return torch.einsum("teh,eho,te->to", hidden, self.weight(4, 28, 16), weights) - x

    def mixer(self, x: Tensor = randn(4, 18, 26)) -> Tensor:
        x = x + self.linear(self.norm(x).mT, 32, 18, by=F.gelu).mT
        return self.linear((x + self.linear(self.norm(x), 60, 26, by=F.gelu)).mean(1), 3).logsumexp(1).mean()

    def softmax_block(self, x: Tensor = randn(2, 24, 40)) -> Tensor:
        later = torch.full((24, 24), -torch.inf).triu(1)
        x = x + self.linear(attend(*self.linear(self.norm(x), 120).chunk(3, -1), 5, later), 40)
        return x + self.linear(self.norm(x), 96, 40, by=F.gelu)

    def fused_block(self, x: Tensor = randn(2, 20, 64)) -> Tensor:
        q, k, v = self.linear(self.norm(x), 192).view(2, 20, 3, 4, 16).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        return x + self.linear(F.relu(self.linear(self.norm(x + self.linear(y, 64)), 128)).square(), 64)

    def alibi(self, words: Tensor = randint(61, (3, 17))) -> Tensor:
        x, far = self.of(nn.Embedding, 61, 24)(words), arange(17) - arange(17)[:, None]
        bias = (far * 2.0 ** -arange(1, 4)[:, None, None]).masked_fill(far > 0, -torch.inf)
        x = self.norm(x + self.linear(attend(*self.linear(x, 72).chunk(3, -1), 3, bias), 24))
        return F.cross_entropy(F.linear(x, self.own1.weight)[:, :-1].flatten(0, 1), words[:, 1:].flatten())

    def rotary(self, x: Tensor = randn(3, 16, 48)) -> Tensor:
        turn = torch.polar(torch.ones(16, 1, 6), torch.outer(arange(16.0), 100 ** -(arange(6) / 6))[:, None])
        q, k, v = self.linear(x, 144).chunk(3, -1)
        q, k = (torch.view_as_real(torch.view_as_complex(y.view(3, 16, 4, 6, 2)) * turn).flatten(2) for y in (q, k))
        return x + self.linear(attend(q, k, v, 4), 48)

    def grouped_query(self, x: Tensor = randn(2, 22, 56)) -> Tensor:
        q, (k, v) = self.linear(x, 48), self.linear(x, 32).view(2, 22, 2, 2, 8).unbind(2)
        k, v = (y.repeat_interleave(3, 2).flatten(2) for y in (F.normalize(k, dim=-1), v))
        return self.linear(attend(q, k, v, 6), 56).sub(x).abs().mean()

    def linear_attention(self, x: Tensor = randn(4, 30, 32)) -> Tensor:
        q, k, v = F.elu(self.linear(x, 20)) + 1, F.elu(self.linear(x, 20)) + 1, self.linear(x, 32)
        return x + self.linear(q @ (k.mT @ v) / (q * k.sum(1, keepdim=True)).sum(-1, keepdim=True), 32)

    def perceiver(self, x: Tensor = randn(3, 60, 14), classes: Tensor = randint(5, (3,))) -> Tensor:
        latent, (k, v) = self.weight(8, 36).expand(3, 8, 36), self.linear(self.norm(x), 48).chunk(2, -1)
        latent = latent + self.linear(attend(self.linear(self.norm(latent), 24), k, v, 2), 36)
        return F.cross_entropy(self.linear(latent.mean(1), 5), classes)

    def set_pooling(self, x: Tensor = randn(6, 15, 10), size: Tensor = randint(14, (6, 1, 1, 1))) -> Tensor:
        bias = torch.zeros(6, 1, 1, 15).masked_fill(arange(15) > size, -torch.inf)
        k, v = self.linear(x, 28, 56).chunk(2, -1)
        return F.dropout(attend(self.weight(1, 3, 28), k, v, 4, bias), 0.1).flatten(1).norm(dim=1).mean()

    def hopfield(self, x: Tensor = randn(34, 18)) -> Tensor:
        patterns, state = self.norm(self.weight(42, 18)), self.norm(x)
        for _ in range(3):
            state = (2.0 * state @ patterns.T).softmax(-1) @ patterns
        return self.linear(state, 18) - x

    def windows(self, x: Tensor = randn(2, 12, 12, 20)) -> Tensor:
        y = torch.roll(self.norm(x), (-2, -2), (1, 2)).view(2, 3, 4, 3, 4, 20).transpose(2, 3).reshape(18, 16, 20)
        y = self.linear(attend(*self.linear(y, 60).chunk(3, -1), 2, self.weight(2, 16, 16)), 20).view(2, 3, 3, 4, 4, 20)
        return x + torch.roll(y.transpose(2, 3).reshape(2, 12, 12, 20), (2, 2), (1, 2))

    def graph_convolution(self, x: Tensor = randn(40, 12), edges: Tensor = randint(40, (2, 160))) -> Tensor:
        degree = torch.ones(40).index_add(0, edges[1], torch.ones(160)).rsqrt()
        sent = self.linear(x, 30)[edges[0]] * (degree[edges[0]] * degree[edges[1]])[:, None]
        x = F.relu(torch.zeros(40, 30).index_add(0, edges[1], sent))
        return self.linear(x, 6).log_softmax(1)[:, 0].neg().mean()

    def graph_attention(self, x: Tensor = randn(24, 8), edges: Tensor = randint(24, (2, 90))) -> Tensor:
        (i, j), v, zeros = edges, self.linear(x, 16).view(-1, 2, 8), torch.zeros(24, 2)
        w = (F.leaky_relu(v[i] + self.linear(x, 16).view(-1, 2, 8)[j], 0.2) * self.weight(2, 8)).sum(-1)
        w = (w - zeros.scatter_reduce(0, j[:, None].expand_as(w), w.detach(), "amax", include_self=False)[j]).exp()
        w = F.dropout(w / (zeros.index_add(0, j, w)[j] + 1e-16), 0.1)
        return self.linear(F.relu(torch.zeros(24, 2, 8).index_add(0, j, v[i] * w[..., None]).flatten(1)), 3)

    def deep_sets(self, x: Tensor = randn(9, 21, 5)) -> Tensor:
        x = F.elu(self.linear(x, 33) - self.linear(x.amax(1, keepdim=True), 33))
        return self.linear(x.mean(1), 17, 1, by=F.elu)

    def capsules(self, x: Tensor = randn(5, 24, 6), classes: Tensor = randint(4, (5,))) -> Tensor:
        votes, logits = torch.einsum("bnd,ncde->bnce", x, self.weight(24, 4, 6, 8)), torch.zeros(5, 24, 4)
        for _ in range(3):
            total = (logits.softmax(2)[..., None] * votes).sum(1)
            square = total.pow(2).sum(-1, keepdim=True)
            out = square / (1 + square) * total * (square + 1e-8).rsqrt()
            logits = logits + (votes * out[:, None]).sum(-1)
        return F.multi_margin_loss(out.norm(dim=-1), classes, margin=0.8)

    def click_rate(self, dense: Tensor = randn(48, 13), ids: Tensor = randint(50, (48, 4))) -> Tensor:
        rows = [self.linear(dense, 34, 16), *(self.of(nn.Embedding, 50 + 30 * i, 16)(ids[:, i]) for i in range(4))]
        low, x = torch.tril_indices(5, 5, -1), torch.stack(rows, 1)
        x = torch.cat((rows[0], (x @ x.mT)[:, low[0], low[1]]), 1)
        return F.binary_cross_entropy_with_logits(self.linear(x, 32, 1), (dense[:, :1] > 0).float())

    def factorization(self, pairs: Tensor = randint(70, (2, 128)), stars: Tensor = randn(128)) -> Tensor:
        user, item = self.of(nn.Embedding, 70, 12)(pairs[0]), self.of(nn.EmbeddingBag, 90, 12)(pairs[1:].T)
        return F.mse_loss((user * item).sum(1) + self.weight(70)[pairs[0]], stars) + 0.01 * user.pow(2).mean()

    def convnext(self, x: Tensor = randn(2, 18, 10, 10)) -> Tensor:
        y = self.norm(self.conv(x, 18, 7, groups=18).permute(0, 2, 3, 1))
        return x + (self.weight(18) * self.linear(y, 72, 18, by=F.gelu)).permute(0, 3, 1, 2)

    def residual(self, x: Tensor = randn(3, 10, 16, 16)) -> Tensor:
        y = F.relu(self.batch_norm(self.conv(x, 24, 3, stride=2, bias=False)))
        y = self.batch_norm(self.conv(y, 24, 3, bias=False))
        return F.adaptive_avg_pool2d(F.relu(y + self.batch_norm(self.conv(x, 24, 1, stride=2))), 1)

    def dense_block(self, x: Tensor = randn(3, 9, 12, 12)) -> Tensor:
        for _ in range(4):
            x = torch.cat((x, self.conv(F.relu(self.batch_norm(x)), 7, 3)), 1)
        return F.avg_pool2d(self.conv(x, 16, 1), 2)

    def inception(self, x: Tensor = randn(2, 15, 14, 14), classes: Tensor = randint(6, (2,))) -> Tensor:
        x = (self.conv(x, 9, 3), self.conv(F.relu(self.conv(x, 6, 1)), 8, 5), self.conv(F.max_pool2d(x, 3, 1, 1), 5, 1))
        return F.cross_entropy(self.linear(F.relu(torch.cat(x, 1)).mean((2, 3)), 6), classes)

    def squeeze_excite(self, x: Tensor = randn(4, 20, 9, 9)) -> Tensor:
        y = F.silu(self.batch_norm(self.conv(x, 28, 3)))
        return x + self.conv(y * self.linear(y.mean((2, 3)), 7, 28).sigmoid()[..., None, None], 20, 1)

    def two_level_unet(self, x: Tensor = randn(2, 3, 16, 16), mask: Tensor = randint(2, (2, 1, 16, 16))) -> Tensor:
        top = F.relu(self.conv(x, 8, 3))
        low = F.relu(self.conv(F.max_pool2d(top, 2), 14, 3))
        low = torch.cat((low, F.interpolate(F.relu(self.conv(F.max_pool2d(low, 2), 22, 3)), scale_factor=2)), 1)
        logits = self.conv(torch.cat((top, self.of(nn.ConvTranspose2d, 36, 8, 2, stride=2)(low)), 1), 1, 1)
        chance, each = logits.sigmoid(), F.binary_cross_entropy_with_logits(logits, mask.float(), reduction="none")
        return ((1 - torch.exp(-each)) ** 2 * each).mean() - 2 * (chance * mask).sum() / (chance + mask).sum()

    def dilated(self, x: Tensor = randn(4, 16, 50)) -> Tensor:
        for far in (1, 2, 4):
            x = x + F.dropout(F.relu(self.of(nn.Conv1d, 16, 16, 3, dilation=far)(F.pad(x, (2 * far, 0)))), 0.2)
        return x[..., -1]

    def bilinear_pooling(self, x: Tensor = randn(3, 6, 11, 11), classes: Tensor = randint(8, (3,))) -> Tensor:
        x = (F.relu(self.conv(x, 14, 3)).flatten(2) @ F.relu(self.conv(x, 10, 3)).flatten(2).mT).flatten(1)
        return F.cross_entropy(self.linear(F.normalize(x.sign() * (x.abs() + 1e-5).sqrt()), 8), classes)

    def fourier(self, x: Tensor = randn(5, 32, 2)) -> Tensor:
        x, weight = self.linear(x, 20).mT, torch.view_as_complex(self.weight(20, 20, 6, 2))
        mixed = torch.fft.irfft(torch.einsum("bit,iot->bot", torch.fft.rfft(x)[..., :6], weight), n=32)
        return self.linear(F.gelu(mixed + self.of(nn.Conv1d, 20, 20, 1)(x)).mT, 1)

    def lstm(self, words: Tensor = randint(37, (6, 8))) -> Tensor:
        rows, cell, state = self.of(nn.Embedding, 37, 19)(words), self.of(nn.LSTMCell, 19, 23), None
        return self.linear(torch.stack([(state := cell(row, state))[0] for row in rows[:, :-1].unbind(1)], 1), 37)

    def state_space(self, x: Tensor = randn(3, 40, 18)) -> Tensor:
        powers = torch.exp(-self.weight(18, 6).exp()[..., None] * arange(40))
        kernel = torch.fft.rfft((self.weight(18, 6)[..., None] * powers).sum(1), n=80)
        y = torch.fft.irfft(torch.fft.rfft(x.mT, n=80) * kernel, n=80)[..., :40].mT
        return x + F.glu(self.linear(F.gelu(y + x * self.weight(18)), 36))

    def gated_scan(self, x: Tensor = randn(2, 7, 20)) -> Tensor:
        (u, gate), state, found = self.linear(x, 64).chunk(2, -1), torch.zeros(2, 32, 4), []
        step, (into, out) = F.softplus(self.linear(u, 32)), self.linear(u, 8).chunk(2, -1)
        decay = torch.exp(-step[..., None] * self.weight(32, 4).exp())
        for t in range(7):
            state = decay[:, t] * state + (step * u)[:, t, :, None] * into[:, t, None]
            found.append((state * out[:, t, None]).sum(-1))
        return self.linear(torch.stack(found, 1) * F.silu(gate), 20)

    def token_shift(self, x: Tensor = randn(3, 10, 30)) -> Tensor:
        before, far = F.pad(x, (0, 0, 1, -1)), (arange(10)[:, None] - arange(10))[..., None]
        r, k, v = (self.linear(torch.lerp(before, x, self.weight(30).sigmoid()), 30) for _ in range(3))
        weights = torch.exp((-self.weight(30).exp() * far).masked_fill(far < 0, -torch.inf) + k.clamp(max=8)[:, None])
        return x + self.linear(r.sigmoid() * (weights * v[:, None]).sum(2) / weights.sum(2), 30)

    def variational(self, x: Tensor = randn(22, 35)) -> Tensor:
        mean, log = self.linear(x, 28, 20).chunk(2, 1)
        out = self.linear(mean + torch.randn_like(mean) * (log / 2).exp(), 24, 35)
        return F.mse_loss(out, x) - 0.5 * (1 + log - mean.pow(2) - log.exp()).mean()

    def coupling(self, x: Tensor = randn(50, 8), total: Tensor = torch.zeros(50)) -> Tensor:
        for width in (16, 24, 12):
            (a, b), (scale, shift) = x.chunk(2, 1), self.linear(x[:, :4], width, 8).chunk(2, 1)
            x, total = torch.cat((b * scale.tanh().exp() + shift, a), 1), total + scale.tanh().sum(1)
        return (0.5 * x.pow(2).sum(1) - total).mean()

    def contrastive(self, images: Tensor = randn(16, 45), words: Tensor = randn(16, 31)) -> Tensor:
        words = F.normalize(self.linear(words, 38, 20, by=F.gelu))
        logits = F.normalize(self.linear(images, 20)) @ words.T * self.weight(1).exp()
        return F.cross_entropy(logits, arange(16)) + F.cross_entropy(logits.T, arange(16))

    def gumbel(self, x: Tensor = randn(19, 15)) -> Tensor:
        logits = self.linear(x, 37, 24).view(19, 3, 8)
        kept = self.linear(F.gumbel_softmax(logits, tau=0.7, hard=True).flatten(1), 15)
        return F.mse_loss(kept, x) + (logits.softmax(-1) * logits.log_softmax(-1)).sum(-1).mean()


MODELS = [name for name in vars(Models) if not name.startswith("_")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", metavar="OUT", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"a model (default: {' '.join(MODELS)})")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.names or MODELS:
        torch.manual_seed(0)
        model = Models(name)
        with ExitStack() as stack:
            captured = aot_export_joint_with_descriptors(stack, model, model.inputs)
        graph, told = joint(captured, loss=0, module=model)
        fxopt.save(graph, options.out / f"{name}.pb.zst", **told)
        print(name, len(graph.graph.nodes), flush=True)


if __name__ == "__main__":
    main()
