"""Random training steps whose loss asks for gradients itself: forces, gradient penalties, products
with a Hessian, steps inside a step, two losses."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from differential_parts import blocks, training
from differential_parts.programs import Dice, Program
from differential_parts.training import Step

MODES = ("fake", "fake", "fake", "real", "symbolic")
LOSSES = ("cross entropy", "sum", "squares")  # losses that can be differentiated twice
WRITING = (blocks._in_place_residual, blocks._relu_in_place, blocks._slice_write, blocks._mask, blocks._average, blocks._counted)
KINDS = ("forces", "forces", "penalty", "hessian", "inner step", "two losses", "detached forces", "twice")


class Nested(Step):
    """A model, and a loss that uses its values and gradients computed on the way."""

    def __init__(self, dice: Dice, kind: str | None = None) -> None:
        super().__init__(dice)
        self.kind = kind or dice.choice(KINDS)
        kinds = [*blocks.PLAIN, *[block for block in blocks.WRITING if block.function in WRITING]]
        kinds += blocks.CHECKPOINTED if dice.chance(0.1) else ()
        self.is_tagging = False
        self.blocks = dice.choices(kinds, k=dice.randint(1, 3))
        self.blocks.insert(0, dice.choice(blocks.PLAIN[:4]))  # ensures that there are parameters
        self.keeps = dice.randrange(len(self.blocks))
        self.loss = dice.choice(LOSSES)
        self.chunks = 1
        self.x = self.x[:1]
        self.parameters = [dice.tensor(size) * 0.5 for block in self.blocks for size in block.parameters]
        self.state = [dice.tensor(size).abs() for block in self.blocks for size in block.state]
        self.is_kept = dice.chance(0.8)  # the inner gradients may be differentiated
        self.inner_steps = dice.choice([1, 1, 2])
        self.marks_inner = dice.chance(0.3)  # if the marks are not PyTorch's

    def inner(self, output: Tensor, sources: Sequence[Tensor], *, create_graph: bool = True) -> list[Tensor]:
        """Gradients that forward reads; zeros for missing ones."""
        arguments = {"create_graph": create_graph, "retain_graph": True, "allow_unused": True, "materialize_grads": True}
        if not self.marks_inner:
            return list(torch.autograd.grad(output, sources, **arguments))
        with self.backward:
            return list(torch.autograd.grad(output, sources, **arguments))

    def outputs(
        self, x: Tensor, parameters: Sequence[Tensor], state: Sequence[Tensor], target: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The activation, the loss, and the activation that is kept."""
        h, kept = self.forward(x, parameters, state)
        loss = blocks.LOSSES[self.loss](h, target)
        if self.kind in ("forces", "detached forces", "penalty", "twice"):
            (force,) = self.inner(loss if self.kind == "twice" else h.sum(), [x], create_graph=self.kind != "detached forces")
            if self.kind == "penalty":
                return h, loss + ((force * force).sum(-1) + 1e-3).sqrt().sub(1.0).square().mean(), kept
            if self.kind == "detached forces":
                return h, loss + (h * force).mean(), kept
            if self.kind == "twice":
                (force,) = self.inner(force.square().sum(), [x])
            return h - force, loss + (force - x.detach()).square().mean(), kept
        if self.kind == "hessian":
            gradients = self.inner(loss, parameters)
            product = sum((gradient * (parameter.detach() + 1.0)).sum() for gradient, parameter in zip(gradients, parameters))
            return h, product, kept
        if self.kind == "inner step":
            for _ in range(self.inner_steps):
                gradients = self.inner(loss, parameters, create_graph=self.is_kept)
                parameters = [parameter - 0.1 * gradient for parameter, gradient in zip(parameters, gradients)]
                h, kept = self.forward(x.flip(0), parameters, state)
                loss = blocks.LOSSES[self.loss](h, target)
        return h, loss, kept

    def __call__(self, *given: Tensor) -> tuple[Tensor | None, ...]:
        parameters, state, target, (x,), buffers = self._parts(given)
        x = x.detach().requires_grad_()
        h, loss, kept = self.outputs(x, parameters, state, target)
        with self.backward:
            total = list(torch.autograd.grad(loss, parameters, allow_unused=True, retain_graph=self.kind == "two losses"))
        losses = [loss]
        # a second loss, of the same activations and the first loss's results
        if self.kind == "two losses":
            losses.append(
                h.square().mean() + sum(gradient.detach().square().sum() for gradient in total if gradient is not None) * h.mean()
            )
            if self.is_kept:
                h, kept = self.forward(h.tanh(), parameters, state)
                losses[-1] = losses[-1] + h.logsumexp(-1).sum()
            with self.backward:
                found = torch.autograd.grad(losses[-1], parameters, allow_unused=True)
                total = [training.sum_of(old, new) for old, new in zip(total, found)]
        with self.backward, torch.no_grad():
            result = self._finish(parameters, total, buffers, kept)
        return (*losses, *result, *self._extra(kept))


def nested(dice: Dice) -> Program:
    """A whole step in one graph, or a joint graph; mostly with PyTorch's own marks."""
    if dice.chance(0.35):
        return _joint(dice)
    step = Nested(dice)
    program = training.whole_step(dice, step, MODES, own=0.7)
    program.features |= {"nested backward", f"nested: {step.kind}"}
    return program


def _joint(dice: Dice) -> Program:
    step = Nested(dice, dice.choice([kind for kind in KINDS if kind != "two losses"]))

    step.marks_inner = dice.chance(0.1)

    def function(primals: Sequence[Tensor], tangents: Sequence[Tensor]) -> tuple:
        parameters, state, target, (x,), _ = step._parts(primals)
        x = x.detach().requires_grad_()
        h, loss, kept = step.outputs(x, parameters, state, target)
        with step.backward:
            found = torch.autograd.grad([h, loss], parameters, tangents, allow_unused=True)
        return (h, loss, *step._extra(kept)), found

    program = training.joint_of(dice, step, function, MODES, own=0.4)
    program.features |= {"nested backward", "joint with nested backward", f"nested: {step.kind}"}
    return program
