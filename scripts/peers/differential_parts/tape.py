"""A random straight-line program: steps over a pool of tensors, each tried by running it before it
is added."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from differential_parts.programs import Dice, share_memory

MAX_ELEMENTS = 96
MAX_GATHERED = 12

Function = Callable[..., object]


@dataclass(frozen=True)
class Step:
    function: Function
    reads: tuple[int, ...]


def tensors_in(result: object) -> list[Tensor]:
    """The tensors of a step's result: itself, or the elements of a tuple or list."""
    if isinstance(result, Tensor):
        return [result]
    return [part for part in result if isinstance(part, Tensor)] if isinstance(result, tuple | list) else []


class Tape:
    """Steps and their results. Positions in the pool are names: replay() puts the same value at
    each position."""

    def __init__(self, dice: Dice, inputs: Sequence[Tensor]) -> None:
        self.dice = dice
        self.pool: list[Tensor] = list(inputs)
        self.steps: list[Step] = []
        self.inputs = len(inputs)
        self.has_shared_inputs = share_memory(inputs)
        self.written: list[int] = []  # positions that a step wrote or changed
        self.wanted: list[int] = []  # positions that are preferred as outputs

    def do(self, function: Function, *reads: int) -> int | None:
        """Adds the step if it runs. Returns the position of its first result, None if it has
        none."""
        try:
            results = tensors_in(function(*(self.pool[read] for read in reads)))
        except (RuntimeError, IndexError, TypeError, ValueError):
            return None
        if any(result.numel() > MAX_ELEMENTS for result in results):
            return None
        self.steps.append(Step(function, reads))
        self.pool.extend(results)
        return len(self.pool) - len(results) if results else None

    def again(self, last: int = 8) -> None:
        """Repeats one of the last steps with the same arguments."""
        if self.steps:
            step = self.dice.choice(self.steps[-last:])
            self.want(self.do(step.function, *step.reads))

    def want(self, *places: int | None) -> None:
        self.wanted += [place for place in places if place is not None]

    def pick(self, fits: Callable[[Tensor], bool] = lambda value: True) -> int | None:
        """A position: more often a late one, one on a written storage, or an input."""
        places = [place for place, value in enumerate(self.pool) if fits(value)]
        if not places:
            return None
        if self.has_shared_inputs and places[0] < self.inputs and self.dice.chance(0.3):
            return self.dice.choice([place for place in places if place < self.inputs])
        if self.dice.chance(0.4):
            return self.dice.choice(places[-4:])
        if self.written and self.dice.chance(0.35):
            beside = [place for place in self._on_storage_of(self.dice.choice(self.written)) if fits(self.pool[place])]
            if beside:
                return self.dice.choice(beside)
        return self.dice.choice(places)

    def beside(self, place: int) -> int:
        """A position on the same memory, which may be another input."""
        return self.dice.choice([other for other in self._on_storage_of(place) if is_float(self.pool[other])])

    def _on_storage_of(self, place: int) -> list[int]:
        storage = self.pool[place].untyped_storage().data_ptr()
        return [other for other, value in enumerate(self.pool) if value.untyped_storage().data_ptr() == storage]

    def replay(self, inputs: Sequence[Tensor], outputs: Sequence[int]) -> list[Tensor]:
        pool = list(inputs)
        for step in self.steps:
            pool.extend(tensors_in(step.function(*(pool[read] for read in step.reads))))
        return [pool[place] for place in outputs]

    def gather(self) -> int:
        """Gathers all elements of preferred and some other positions in one tensor. As an output,
        it shows them all, and none is returned itself."""
        places = self.wanted[-MAX_GATHERED:]
        places += self.dice.choices(range(len(self.pool)), k=2)
        places = list(dict.fromkeys(places))
        self.steps.append(Step(_gathered, tuple(places)))
        self.pool.append(_gathered(*(self.pool[place] for place in places)))
        return len(self.pool) - 1

    def choose_outputs(self) -> list[int]:
        """Some of the pool: the latest, written tensors, views, sometimes an input or one tensor
        twice."""
        if self.dice.chance(0.4):
            return [self.gather()]
        last = len(self.pool) - 1
        count = self.dice.randint(1, 4)
        chosen = [self.dice.choice([last, max(0, last - 1), self.dice.randint(0, last)])]
        if self.wanted and self.dice.chance(0.7):
            first = self.dice.randrange(len(self.wanted))
            chosen += [*self.wanted[first : first + 2], self.dice.choice(self.wanted)]
        for _ in range(count):
            place = self.pick()
            chosen.append(self.dice.randint(0, last) if place is None else place)
        return chosen if self.dice.chance(0.2) else list(dict.fromkeys(chosen))


def _gathered(*values: Tensor) -> Tensor:
    return torch.cat([value.reshape(-1).to(torch.float32) for value in values])


def is_float(value: Tensor) -> bool:
    return value.dtype == torch.float32


def has_dims(count: int) -> Callable[[Tensor], bool]:
    return lambda value: value.dim() >= count
