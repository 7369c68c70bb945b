"""Small models that write state while they train: by custom operators, through views of buffers, by
recurrent layers, fake quantization and normalization. Each returns its loss. Each has `batch`, as
the models of training_loops.py."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

WIDTH = 8


@torch.library.custom_op("fxopt_unusual::add_scaled_", mutates_args={"total"})
def add_scaled_(value: Tensor, total: Tensor, factor: float) -> None:
    total.add_(value, alpha=factor)


@add_scaled_.register_fake
def _(value: Tensor, total: Tensor, factor: float) -> None:
    return None


@torch.library.custom_op("fxopt_unusual::note_", mutates_args={"total", "count"})
def note_(value: Tensor, total: Tensor, count: Tensor | None = None) -> Tensor:
    total.copy_(0.9 * total + 0.1 * value)
    if count is not None:
        count.add_(1)
    return value * 2


@note_.register_fake
def _(value: Tensor, total: Tensor, count: Tensor | None = None) -> Tensor:
    return torch.empty_like(value)


class _Model(nn.Module):
    @staticmethod
    def batch(size: int, generator: torch.Generator) -> tuple[Tensor, ...]:
        return (torch.randn(size, WIDTH, generator=generator),)


class WritesBuffer(_Model):
    """A custom operator writes a buffer that the loss reads afterwards."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)
        self.register_buffer("total", torch.zeros(WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.linear(x)
        add_scaled_(hidden.detach().mean(0), self.total, 0.5)
        return (hidden * self.total).tanh().mean()


class OptionalMutable(_Model):
    """A custom operator with an optional argument that it writes: once None, once a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.register_buffer("total", torch.zeros(WIDTH))
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.first(x).tanh()
        hidden = self.second(hidden * note_(hidden.detach().mean(0), self.total))
        noted = note_(hidden.detach().mean(0), self.total, self.count)
        return (hidden * self.total + noted).pow(2).mean() / (self.count + 1)


class BufferViews(_Model):
    """Writes through overlapping views of one buffer, and reads other views of it."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)
        self.register_buffer("ring", torch.zeros(4, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.linear(x)
        row = self.ring[1]
        row.copy_(hidden.detach().mean(0))
        self.ring.view(-1)[WIDTH // 2 : 2 * WIDTH].mul_(0.5)
        hidden = hidden + row
        self.ring.t()[:, 2:].add_(self.ring[:2].t())
        add_scaled_(hidden.detach().mean(0), self.ring[3], 0.1)
        return (hidden.sigmoid() * self.ring.sum(0)).mean()


class Recurrent(_Model):
    """LSTM and GRU with dropout between layers; the state is a buffer. The LSTM has a projection: the
    kernel without one (mkldnn_rnn_layer) does not train under aot_eager of PyTorch 2.15."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(WIDTH, 2 * WIDTH, num_layers=2, dropout=0.2, batch_first=True, proj_size=WIDTH)
        self.gru = nn.GRU(WIDTH, WIDTH, batch_first=True, bidirectional=True)
        self.register_buffer("hidden", torch.zeros(2, 2, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        steps, (hidden, _) = self.lstm(x.view(2, -1, WIDTH), (self.hidden.clone(), self.hidden.repeat(1, 1, 2)))
        self.hidden.copy_(hidden.detach())
        return self.gru(steps)[0].pow(2).mean()


class Quantized(_Model):
    """Quantization-aware training: the observers of inputs and weights write their statistics. They
    are called as operators, because Dynamo does not trace the modules of torch.ao."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.head = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        for name, start in (("low", torch.inf), ("high", -torch.inf), ("scale", 1.0)):
            self.register_buffer(name, torch.full((1,), start))
        self.register_buffer("zero_point", torch.zeros(1, dtype=torch.int32))
        self.register_buffer("on", torch.ones(1, dtype=torch.int64))
        self.register_buffer("scales", torch.ones(WIDTH))
        self.register_buffer("zero_points", torch.zeros(WIDTH, dtype=torch.int32))

    def quantize(self, x: Tensor) -> Tensor:
        return torch.fused_moving_avg_obs_fake_quant(
            x, self.on, self.on, self.low, self.high, self.scale, self.zero_point, 0.01, 0, 255, -1, False, False
        )

    def forward(self, x: Tensor) -> Tensor:
        weight = self.linear.weight
        self.scales.copy_(weight.detach().abs().amax(1) / 127)
        weight = torch.fake_quantize_per_channel_affine(weight, self.scales, self.zero_points, 0, -127, 127)
        hidden = nn.functional.linear(self.quantize(x), weight, self.linear.bias).relu()
        return self.head(self.quantize(hidden)).pow(2).mean()


class Normalized(_Model):
    """Spectral norm writes its vectors, batch norm its statistics, inside a checkpoint region too."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.utils.parametrizations.spectral_norm(nn.Linear(WIDTH, WIDTH))
        self.block = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.BatchNorm1d(WIDTH), nn.Dropout(0.2), nn.GELU())

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.first(x).tanh()
        return checkpoint(self.block, hidden, use_reentrant=False).pow(2).mean()


class Average(_Model):
    """An exponential average of the weights, kept in one flat buffer and written piece by piece."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)
        self.register_buffer("average", torch.zeros(WIDTH * WIDTH + WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        pieces = self.average.split([WIDTH * WIDTH, WIDTH])
        for piece, parameter in zip(pieces, (self.linear.weight, self.linear.bias), strict=True):
            piece.lerp_(parameter.detach().flatten(), 0.1)
        teacher = nn.functional.linear(x, pieces[0].view(WIDTH, WIDTH), pieces[1])
        return (self.linear(x) - teacher).pow(2).mean()


KINDS = (WritesBuffer, OptionalMutable, BufferViews, Recurrent, Quantized, Normalized, Average)
