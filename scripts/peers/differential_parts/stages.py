"""Random programs with sends and receives: pipeline stages, with forward, loss and backward of each
microbatch in one graph or as a joint graph, and straight lines of steps."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from differential_parts import blocks, messages, soup, steps, training
from differential_parts.blocks import WIDTH
from differential_parts.collectives import join_group
from differential_parts.programs import WORLD, Dice, Program
from differential_parts.training import Step

NEXT, PREVIOUS = 1, 2  # ranks; PREVIOUS = NEXT in a pipeline of two stages
FORWARD, BACKWARD = 0, 1  # sometimes used as tags
# not real: values of such a trace do not show shared memory
MODES = ("fake", "fake", "fake", "symbolic")


def sends(dice: Dice) -> Program:
    join_group(WORLD)
    kind = dice.random()
    program = _line(dice) if kind < 0.35 else _joint(dice) if kind < 0.5 else _step(dice)
    program.features.add("messages")
    return program


def _line(dice: Dice) -> Program:
    """Steps, many of which send or receive; one often does it twice."""
    kinds = [*steps.COMMON, *["messages"] * dice.choice([4, 8]), *dice.sample(steps.RARE, 2), "write", "view"]
    kinds += ["collective"] if dice.chance(0.3) else []
    program = soup.of_steps(dice, kinds, 16, dice.choice(MODES), dice.chance(0.3), False, bare=0.2)
    program.features.add("messages in a line")
    return program


class Stage(Step):
    """Layers between two ranks: for each microbatch, receives and sends an activation and a
    gradient."""

    def __init__(self, dice: Dice) -> None:
        super().__init__(dice, others=training.gathering(dice, 0.25))
        self.chunks = dice.choice([1, 2, 2, 3])
        self.x = [dice.tensor((self.batch, WIDTH)) for _ in range(self.chunks)]
        place = dice.choice(["first", "middle", "middle", "last"])
        self.is_first, self.is_last = place == "first", place == "last"
        self.previous = NEXT if dice.chance(0.3) else PREVIOUS
        self.schedule = dice.choice(["all forward first", "in turn", "one ahead"])
        self.tags = (0, 0) if dice.chance(0.5) else (FORWARD, BACKWARD)
        self.has_tag_of_each = dice.chance(0.2)
        # the memory that receives activations
        self.place = dice.choice(["fresh", "fresh", "like", "parts"])
        self.sent_as = dice.choice(
            ["itself", "itself", "itself", "view", "part", "buffer", "twice", "computed twice", "both ways"]
        )
        self.waits = dice.choice(["at once", "late", "reversed"])
        self.is_batched = dice.chance(0.2)
        self.is_ahead = dice.chance(0.25)  # receives are issued before they are needed

    def begin(self) -> None:
        """Resets the state of one execution."""
        self.pending: list[Tensor] = []
        self.buffer: Tensor | None = None
        self.parts: Tensor | None = None

    def receive(self, like: Tensor, number: int, peer: int, direction: int) -> Tensor:
        return messages.receive(self._place(like, number), peer, self._tag(direction, number))

    def _tag(self, direction: int, number: int) -> int:
        return self.tags[direction] + (2 * number if self.has_tag_of_each else 0)

    def _place(self, like: Tensor, number: int) -> Tensor:
        if self.place == "like":
            return torch.empty_like(like, memory_format=torch.contiguous_format)
        if self.place == "parts":
            self.parts = torch.empty(self.chunks, *like.shape) if self.parts is None else self.parts
            return self.parts[number]
        return torch.empty(like.shape)

    def send(self, value: Tensor, number: int, peer: int, direction: int) -> None:
        value, tag = value.detach().contiguous(), self._tag(direction, number)
        if self.sent_as == "view":
            value = value.view(-1)
        elif self.sent_as == "part":
            value = value[1:]
        elif self.sent_as == "computed twice":
            self._send(value * 2.0, peer, tag)
            value = value * 2.0
        elif self.sent_as == "twice":
            self._send(value, peer, tag)
        elif self.sent_as == "both ways":
            self._send(value, NEXT + PREVIOUS - peer, tag)
        elif self.sent_as == "buffer":
            self.settle()  # the buffer is written again
            self.buffer = torch.empty(value.shape) if self.buffer is None else self.buffer
            self.buffer.copy_(value)
            value = self.buffer
        self._send(value, peer, tag)

    def _send(self, value: Tensor, peer: int, tag: int) -> None:
        self.pending.append(messages.begin_send(value, peer, tag))
        if self.waits == "at once":
            self.settle()

    def settle(self) -> None:
        """Waits for all pending sends."""
        for sent in reversed(self.pending) if self.waits == "reversed" else self.pending:
            messages.wait(sent)
        self.pending = []

    def __call__(self, *given: Tensor) -> tuple[Tensor | None, ...]:
        parameters, state, target, xs, buffers = self._parts(given)
        self.begin()
        wanted = list(parameters) or (list(xs) if self.is_first else [])
        total: list = [None] * len(wanted)
        losses, found, kept = [], [], None
        order = _order(self.schedule, self.chunks)
        waiting: dict[int, tuple[Tensor, Tensor]] = {}
        arriving: list[Tensor] = []
        if self.is_ahead and not self.is_first:
            places = [self._place(x, number) for number, x in enumerate(xs)]
            arriving = [messages.begin_receive(place, self.previous, self._tag(0, number)) for number, place in enumerate(places)]
        for direction, number in order:
            if direction == FORWARD:
                x = xs[number]
                if not self.is_first:
                    got = messages.wait(arriving[number]) if arriving else self.receive(x, number, self.previous, FORWARD)
                    x = got.detach().requires_grad_()
                h, kept = self.forward(x, parameters, state)
                if self.is_last:
                    h = blocks.LOSSES[self.loss](h, target)
                    losses.append(h)
                else:
                    self.send(h, number, NEXT, FORWARD)
                waiting[number] = x, h
                continue
            x, h = waiting.pop(number)
            sources = wanted + ([] if self.is_first else [x])
            with self.backward:
                gradient = None if self.is_last else self.receive(h, number, NEXT, BACKWARD)
                if sources and h.requires_grad:
                    found = list(torch.autograd.grad(h, sources, gradient, allow_unused=True))
                    if not self.is_first and found[-1] is not None:
                        self._send_gradient(found[-1], number)
                    total = [training.sum_of(old, new) for old, new in zip(total, found)]
        with self.backward, torch.no_grad():
            self.settle()
            result = self._finish(wanted, total, buffers, kept)
        return (*losses, *result, *self._extra(kept))

    def _send_gradient(self, gradient: Tensor, number: int) -> None:
        if self.is_batched:
            place = torch.empty(gradient.shape)
            messages.exchange(gradient.detach().contiguous(), place, self.previous, self._tag(BACKWARD, number))
        else:
            self.send(gradient, number, self.previous, BACKWARD)


def _order(schedule: str, count: int) -> list[tuple[int, int]]:
    """(FORWARD or BACKWARD, microbatch number), in execution order."""
    forward, backward = [(FORWARD, number) for number in range(count)], [(BACKWARD, number) for number in range(count)]
    if schedule == "all forward first":
        return forward + backward
    if schedule == "in turn":
        return [item for pair in zip(forward, backward) for item in pair]
    between = [item for pair in zip(forward[1:], backward) for item in pair]
    return [forward[0], *between, backward[-1]]


def _step(dice: Dice) -> Program:
    stage = Stage(dice)
    program = training.whole_step(dice, stage, MODES, own=0.35)
    program.features |= {"pipeline stage", f"stage sends {stage.sent_as}"}
    return program


def _joint(dice: Dice) -> Program:
    """A stage with one microbatch, whose gradient is a tangent or comes from the next rank."""
    stage = Stage(dice)
    stage.chunks, stage.x = 1, stage.x[:1]
    comes = not stage.is_last and dice.chance(0.4)

    def function(primals: Sequence[Tensor], tangents: Sequence[Tensor]) -> tuple:
        parameters, state, target, xs, _ = stage._parts(primals)
        stage.begin()
        x = xs[0] if stage.is_first else stage.receive(xs[0], 0, stage.previous, FORWARD).detach().requires_grad_()
        h, kept = stage.forward(x, parameters, state)
        loss = blocks.LOSSES[stage.loss](h, target)
        stage.send(h, 0, NEXT, FORWARD)
        stage.settle()
        sources = list(parameters) + ([] if stage.is_first and parameters else [x])
        with stage.backward:
            come = [stage.receive(h, 0, NEXT, BACKWARD) if comes else tangents[0], tangents[1]]
            found = list(torch.autograd.grad([h, loss], sources, come, allow_unused=True))
            if not stage.is_first and found[-1] is not None:
                stage.send(found[-1], 0, stage.previous, BACKWARD)
            stage.settle()
        return (h, loss, *stage._extra(kept)), found[: len(parameters) or 1]

    program = training.joint_of(dice, stage, function, MODES, needs_marks=comes)
    program.features |= {"pipeline stage", "joint with messages"}
    return program
