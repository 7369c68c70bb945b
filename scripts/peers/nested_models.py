"""Models of repeated blocks with autograd inside forward, as functions that yield losses.

A step is a generator, called with (model, inputs). It yields each loss at the place where the program calls backward, is sent
the gradients of all parameters by name (None for a missing one), and returns the other results of
forward. Code after a `yield` runs after that backward. Blocks are named `layers.0`, `layers.1`, ...
in every network. Activations are large compared with parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from unittest import mock

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

WIDTH, LAYERS, BATCH, HEADS, LENGTH = 16, 6, 256, 2, 32
Gradients = dict[str, Tensor | None]
Step = Generator[Tensor, Gradients, tuple[Tensor, ...]]


@dataclass(frozen=True)
class Case:
    model: Callable[[], nn.Module]
    step: Callable[..., Step]
    sizes: tuple[tuple[int, ...], ...]  # sizes of its inputs
    # how its losses are differentiated: torch.autograd.grad, or `backward` into .grad
    by: str = "grad"
    is_joint: bool = False  # also traced as AOTAutograd's joint graph


# ---- networks


class Block(nn.Module):
    def __init__(self, width: int, norm: Callable[[int], nn.Module] = nn.LayerNorm) -> None:
        super().__init__()
        self.norm, self.wide, self.narrow = norm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.narrow(torch.tanh(self.wide(self.norm(x))))


class Net(nn.Module):
    """A network from `entering` numbers to `leaving` numbers."""

    def __init__(self, entering: int = WIDTH, leaving: int = 1, norm: Callable[[int], nn.Module] = nn.LayerNorm) -> None:
        super().__init__()
        self.first = nn.Linear(entering, WIDTH)
        self.layers = nn.ModuleList(Block(WIDTH, norm) for _ in range(LAYERS))
        self.lm_head = nn.Linear(WIDTH, leaving)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        for layer in self.layers:
            x = layer(x)
        return self.lm_head(x)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.block = Block(WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        parts = self.qkv(self.norm(x)).unflatten(-1, (3, HEADS, WIDTH // HEADS)).permute(2, 0, 3, 1, 4)
        q, k, v = parts.unbind()
        mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, LENGTH, LENGTH, device="cpu")
        # on the CPU it refuses to be differentiated
        with mock.patch("torch.nn.attention.flex_attention._validate_device"):
            y = flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: s - 0.1 * (i - j).abs(), block_mask=mask)
        return self.block(x + self.out(y.transpose(1, 2).flatten(-2)))


class Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Attention() for _ in range(4))
        self.lm_head = nn.Linear(WIDTH, 1)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return self.lm_head(x)


class Adversaries(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.generator, self.critic = Net(leaving=WIDTH), Net()


class Coder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = Net(leaving=4), Net(4, WIDTH)


class Heads(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.one, self.other = Net(leaving=WIDTH), nn.Linear(WIDTH, 1), nn.Linear(WIDTH, 3)


def grad(value: Tensor, of: Tensor | list[Tensor], *, again: bool = True) -> tuple[Tensor, ...]:
    return torch.autograd.grad(value, of, create_graph=again, retain_graph=True)


# ---- steps


def forces(model: nn.Module, places: Tensor, energies: Tensor, pulls: Tensor) -> Step:
    """Interatomic potentials: forces are gradients of the energy, and both are in the loss."""
    places = places.detach().requires_grad_(True)
    energy = model(places).squeeze(-1)
    (slope,) = grad(energy.sum(), places)
    yield F.mse_loss(energy, energies) + F.mse_loss(-slope, pulls)
    return (energy.detach(), -slope.detach())


def wgan_gp(model: nn.Module, real: Tensor, fake: Tensor, mix: Tensor) -> Step:
    between = (mix * real + (1 - mix) * fake).detach().requires_grad_(True)
    (slope,) = grad(model(between).sum(), between)
    penalty = ((slope.norm(2, dim=1) - 1) ** 2).mean()
    yield model(fake).mean() - model(real).mean() + 10 * penalty
    return (penalty.detach(),)


def r1(model: nn.Module, real: Tensor, fake: Tensor) -> Step:
    real = real.detach().requires_grad_(True)
    score = model(real)
    (slope,) = grad(score.sum(), real)
    yield F.softplus(-score).mean() + F.softplus(model(fake)).mean() + 5 * slope.square().sum(1).mean()
    return ()


def flex_adversarial(model: nn.Module, x: Tensor, target: Tensor) -> Step:
    """Adversarial training: the input moves along the sign of its gradient, through flex
    attention."""
    x = x.detach().requires_grad_(True)
    (slope,) = grad(F.mse_loss(model(x), target), x, again=False)
    yield F.mse_loss(model(x.detach() + 0.1 * slope.sign()), target)
    return ()


def physics(model: nn.Module, x: Tensor, t: Tensor) -> Step:
    """Burgers' equation: u_t + u u_x = 0.01 u_xx."""
    x, t = x.detach().requires_grad_(True), t.detach().requires_grad_(True)
    u = model(torch.cat([x, t], 1))
    u_x, u_t = grad(u.sum(), [x, t])
    (u_xx,) = grad(u_x.sum(), x)
    residual = u_t + u * u_x - 0.01 * u_xx
    yield residual.square().mean()
    return (u.detach(),)


def maml(model: nn.Module, support: Tensor, labels: Tensor, query: Tensor, answers: Tensor) -> Step:
    """One inner step of gradient descent; the outer loss is differentiated through it."""
    parameters = dict(model.named_parameters())
    inner = F.mse_loss(model(support), labels)
    slopes = grad(inner, list(parameters.values()))
    moved = {name: p - 0.1 * slope for (name, p), slope in zip(parameters.items(), slopes, strict=True)}
    yield F.mse_loss(functional_call(model, moved, (query,)), answers)
    return (inner.detach(),)


def hessian(model: nn.Module, x: Tensor, target: Tensor) -> Step:
    """A loss and its sharpness along its own gradient: a Hessian-vector product."""
    parameters = list(model.parameters())
    loss = F.mse_loss(model(x), target)
    slopes = grad(loss, parameters)
    products = grad(sum((s * s.detach()).sum() for s in slopes), parameters)
    yield loss + 0.1 * sum((p * s.detach()).sum() for p, s in zip(products, slopes, strict=True))
    return (loss.detach(),)


def two_losses(model: nn.Module, x: Tensor, target: Tensor, other: Tensor) -> Step:
    """Two heads on one body, each with a backward call of its own that adds to the same .grad."""
    seen = model.body(x)
    yield F.mse_loss(model.one(seen), target)
    yield F.mse_loss(model.other(seen), other)
    return ()


def microbatches(model: nn.Module, first: Tensor, second: Tensor) -> Step:
    """The second half of the batch goes forward after backward of the first."""
    for part in (first, second):
        yield model(part).square().mean()
    return ()


def implicit(model: nn.Module, x: Tensor, target: Tensor) -> Step:
    """A layer whose output minimizes an energy, found by three steps of descent."""
    z = torch.zeros_like(x).requires_grad_(True)
    for _ in range(3):
        energy = model(z * x).sum() + 0.5 * (z - x).square().sum()
        z = z - 0.1 * grad(energy, z)[0]
    yield F.mse_loss(z, target)
    return ()


class FixedPoint(torch.autograd.Function):
    """z = f(z + x); backward builds the graph of one more f, and solves by a series."""

    @staticmethod
    def forward(context: object, model: nn.Module, x: Tensor, *parameters: Tensor) -> Tensor:
        z = torch.zeros_like(x)
        for _ in range(3):
            z = 0.5 * model(z + x)
        context.model = model
        context.save_for_backward(x, z, *parameters)
        return z

    @staticmethod
    def backward(context: object, slope: Tensor) -> tuple[Tensor | None, ...]:
        x, z, *parameters = context.saved_tensors
        with torch.enable_grad():
            z = z.detach().requires_grad_(True)
            y = 0.5 * context.model(z + x)
        total = slope
        for _ in range(2):
            total = slope + torch.autograd.grad(y, z, total, retain_graph=True)[0]
        return (None, None, *torch.autograd.grad(y, parameters, total))


def equilibrium(model: nn.Module, x: Tensor, target: Tensor) -> Step:
    """A fixed point with an implicit gradient: autograd runs inside backward."""
    yield F.mse_loss(FixedPoint.apply(model, x, *model.parameters()), target)
    return ()


def scores(model: nn.Module, x: Tensor, v: Tensor) -> Step:
    """Sliced score matching of an energy: v' (d score / d x) v + 1/2 |v' score|^2."""
    x = x.detach().requires_grad_(True)
    (score,) = grad(-model(x).sum(), x)
    along = (score * v).sum(1)
    (bend,) = grad(along.sum(), x)
    yield ((bend * v).sum(1) + 0.5 * along.square()).mean()
    return ()


def contractive(model: nn.Module, x: Tensor) -> Step:
    """An autoencoder whose code's Jacobian is small, row by row through one vjp."""
    code, pull = torch.func.vjp(model.encoder, x)
    rows = [pull(torch.zeros_like(code).index_fill(1, torch.tensor([i]), 1.0))[0] for i in range(2)]
    yield F.mse_loss(model.decoder(code), x) + 0.1 * sum(row.square().sum(1).mean() for row in rows)
    return ()


def adversaries(model: nn.Module, real: Tensor, noise: Tensor) -> Step:
    """The critic's loss and backward, then the generator's, through the same critic."""
    fake = model.generator(noise)
    yield F.softplus(-model.critic(real)).mean() + F.softplus(model.critic(fake.detach())).mean()
    yield F.softplus(-model.critic(fake)).mean()
    return ()


def adversaries_in_turn(model: nn.Module, real: Tensor, noise: Tensor) -> Step:
    """The same with a step of the critic in between: the generator's loss needs the first
    backward."""
    fake = model.generator(noise)
    slopes = yield F.softplus(-model.critic(real)).mean() + F.softplus(model.critic(fake.detach())).mean()
    moved = {n: p - 0.1 * slopes[f"critic.{n}"] for n, p in model.critic.named_parameters()}
    yield F.softplus(-functional_call(model.critic, moved, (fake,))).mean()
    return ()


def func_grad(model: nn.Module, x: Tensor, target: Tensor) -> Step:
    slope = torch.func.grad(lambda z: model(z).sum())(x)
    yield F.mse_loss(slope, target)
    return (slope.detach(),)


def func_jvp(model: nn.Module, x: Tensor, v: Tensor, target: Tensor) -> Step:
    """Forward mode: no backward runs inside forward. Two norms in a row cannot be traced so (torch
    2.15)."""
    value, push = torch.func.jvp(model, (x,), (v,))
    yield F.mse_loss(value, target) + push.square().mean()
    return ()


def saliency(model: nn.Module, x: Tensor, target: Tensor) -> Step:
    """Weights each row of the loss by a gradient that is not differentiated; returns the loss
    before scaling and a scaled one."""
    x = x.detach().requires_grad_(True)
    y = model(x)
    weights = grad(y.sum(), x, again=False)[0].abs().mean(1, keepdim=True)
    loss = (weights * (y - target).square()).mean()
    yield loss * 128.0
    return (loss.detach(), loss.detach().exp())


ROWS, ONE, PIXELS = (BATCH, WIDTH), (BATCH, 1), (8, LENGTH, WIDTH)
CASES: dict[str, Case] = {
    "forces": Case(Net, forces, (ROWS, (BATCH,), ROWS), is_joint=True),
    "wgan_gp": Case(Net, wgan_gp, (ROWS, ROWS, ONE), is_joint=True),
    "r1": Case(Net, r1, (ROWS, ROWS)),
    "flex_adversarial": Case(Transformer, flex_adversarial, (PIXELS, (8, LENGTH, 1))),
    "physics": Case(lambda: Net(2), physics, (ONE, ONE), is_joint=True),
    "maml": Case(Net, maml, (ROWS, ONE, ROWS, ONE), is_joint=True),
    "hessian": Case(Net, hessian, (ROWS, ONE)),
    "two_losses": Case(Heads, two_losses, (ROWS, ONE, (BATCH, 3)), by="backward"),
    "microbatches": Case(Net, microbatches, (ROWS, ROWS)),
    "implicit": Case(Net, implicit, (ROWS, ROWS)),
    "equilibrium": Case(lambda: Net(leaving=WIDTH), equilibrium, (ROWS, ROWS)),
    "scores": Case(Net, scores, (ROWS, ROWS)),
    "contractive": Case(Coder, contractive, (ROWS,)),
    "adversaries": Case(Adversaries, adversaries, (ROWS, ROWS)),
    "adversaries_in_turn": Case(Adversaries, adversaries_in_turn, (ROWS, ROWS)),
    "func_grad": Case(Net, func_grad, (ROWS, ROWS), is_joint=True),
    "func_jvp": Case(lambda: Net(norm=nn.Identity), func_jvp, (ROWS, ROWS, ONE)),
    "saliency": Case(Net, saliency, (ROWS, ONE), is_joint=True),
}
