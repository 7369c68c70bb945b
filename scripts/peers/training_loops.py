#!/usr/bin/env python3
"""Compares training loops cut by fxopt, as `partition_fn` and as `backend="fxopt"`, with PyTorch's.

    scripts/peers/training_loops.py [--fxopt PROGRAM] [--steps N] [NAME...]

The models are small but complete: GPT-2, ResNet-18, T5 from transformers and torchvision, and a
perceptron; and those of unusual_models.py, which write state while they train. The latter run only
with `backend="fxopt"`, with five lists of passes, and are compared with `backend="aot_eager"`. All
but ResNet-18 have dropout. In rows called "dynamic" the batch size changes from
step to step, and the model is compiled for any. Each loop starts with the same weights and the same
generator; dropout draws from it, step after step, inputs do not. Each loop is compared bit by bit
with the loop over default_partition, or over aot_eager: the loss of every step, and at the end parameters, buffers
(batch norm's running statistics), AdamW's state, and the generator's state. "graphs" is the number
of joint graphs that were cut. Both halves are run by eager operators on the CPU.

NAME is a part of a model and its batch, such as "gpt2" or "t5 static" (default: all, ten minutes).
Exits with 1 if something differs. Needs torch, torchvision, transformers; no GPU.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from command import command_line
import fxopt
import torch
from functorch.compile import make_boxed_func
from torch import Tensor, nn
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import default_partition, min_cut_rematerialization_partition

import unusual_models

STEPS, BATCH, LENGTH, WORDS, CLASSES = 20, 4, 16, 97, 10
Partition = Callable[..., tuple[torch.fx.GraphModule, torch.fx.GraphModule]]


# ---- models that return their loss


class Gpt2(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        import transformers

        config = transformers.GPT2Config(
            vocab_size=WORDS, n_positions=LENGTH, n_embd=32, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=0
        )
        self.inner = transformers.GPT2LMHeadModel(config)

    def forward(self, words: Tensor) -> Tensor:
        logits = self.inner(words, use_cache=False).logits[:, :-1]
        return nn.functional.cross_entropy(logits.flatten(0, 1), words[:, 1:].flatten())

    @staticmethod
    def batch(size: int, generator: torch.Generator) -> tuple[Tensor, ...]:
        return (torch.randint(WORDS, (size, LENGTH), generator=generator),)


class Resnet18(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        import torchvision

        self.inner = torchvision.models.resnet18(num_classes=CLASSES)

    def forward(self, images: Tensor, classes: Tensor) -> Tensor:
        return nn.functional.cross_entropy(self.inner(images), classes)

    @staticmethod
    def batch(size: int, generator: torch.Generator) -> tuple[Tensor, ...]:
        images = torch.randn(size, 3, 32, 32, generator=generator)
        return images, torch.randint(CLASSES, (size,), generator=generator)


class T5(nn.Module):
    """An encoder and a decoder that reads its output."""

    def __init__(self) -> None:
        super().__init__()
        import transformers

        config = transformers.T5Config(
            vocab_size=WORDS, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, decoder_start_token_id=0
        )
        self.inner = transformers.T5ForConditionalGeneration(config)

    def forward(self, words: Tensor, answer: Tensor) -> Tensor:
        logits = self.inner(input_ids=words, decoder_input_ids=answer, use_cache=False).logits[:, :-1]
        return nn.functional.cross_entropy(logits.flatten(0, 1), answer[:, 1:].flatten())

    @staticmethod
    def batch(size: int, generator: torch.Generator) -> tuple[Tensor, ...]:
        words = torch.randint(WORDS, (size, LENGTH), generator=generator)
        return words, torch.randint(WORDS, (size, LENGTH // 2), generator=generator)


class Perceptron(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layers = [(nn.Linear(32, 32), nn.GELU(), nn.Dropout(0.3)) for _ in range(3)]
        self.inner = nn.Sequential(*(module for layer in layers for module in layer), nn.Linear(32, CLASSES))

    def forward(self, x: Tensor, classes: Tensor) -> Tensor:
        return nn.functional.cross_entropy(self.inner(x), classes)

    @staticmethod
    def batch(size: int, generator: torch.Generator) -> tuple[Tensor, ...]:
        x = torch.randn(size, 32, generator=generator)
        return x, torch.randint(CLASSES, (size,), generator=generator)


KINDS = (Gpt2, Resnet18, T5, Perceptron, *unusual_models.KINDS)


# ---- ways to compile them


def by(partition_fn: Partition) -> Callable:
    boxed = lambda graph_module, _: make_boxed_func(graph_module.forward)  # noqa: E731
    return aot_autograd(fw_compiler=boxed, partition_fn=partition_fn)


REFERENCE = "PyTorch default"
PARTITIONERS: dict[str, Callable[[], Partition]] = {
    REFERENCE: lambda: default_partition,
    "PyTorch min-cut": lambda: min_cut_rematerialization_partition,
    "partition_fn": fxopt.partitioner,
    "partition_fn mode=min-cut": lambda: fxopt.partitioner(cut="mode=min-cut"),
    "partition_fn mode=min-cut,compat=torch": lambda: fxopt.partitioner(cut="mode=min-cut,compat=torch"),
    "partition_fn sac{policy=full}": lambda: fxopt.partitioner("sac{policy=full}"),
}
OPTIONS: dict[str, dict[str, str]] = {
    "backend": {},
    "backend cse,dce mode=min-cut": {"passes": "cse,dce", "cut": "mode=min-cut"},
}
WAYS = (*PARTITIONERS, *OPTIONS)
EAGER = "aot_eager"
# The lists of passes for unusual models.
OPTIONS_OF_UNUSUAL: dict[str, dict[str, str]] = {
    "backend": {},
    "backend cse,dce": {"passes": "canonicalize,cse,dce"},
    "backend mode=min-cut": {"passes": "cse,dce", "cut": "mode=min-cut"},
    "backend sac{policy=full}": {"passes": "canonicalize,cse,sac{policy=full}"},
    "backend sac{policy=per-op},bucket": {"passes": "sac{policy=per-op},bucket,dce"},
}


def compiled(model: nn.Module, way: str, *, dynamic: bool) -> Callable[..., Tensor]:
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    torch._dynamo.config.allow_rnn = True
    told = {"fullgraph": True, "dynamic": dynamic}
    if way == EAGER:
        return torch.compile(model, backend="aot_eager", **told)
    if (options := OPTIONS.get(way, OPTIONS_OF_UNUSUAL.get(way))) is not None:
        if "fxopt" not in torch._dynamo.list_backends(None):  # the package is not installed
            torch._dynamo.register_backend(fxopt.backend, name="fxopt")
        return torch.compile(model, backend="fxopt", options=options, **told)
    return torch.compile(model, backend=by(PARTITIONERS[way]()), **told)


@dataclass(frozen=True)
class Loop:
    """The result of one loop."""

    losses: list[float]
    state: dict[str, Tensor]  # state of the model, the optimizer, the generator
    graphs: int
    seconds: float

    def difference(self, other: Loop) -> str:
        """The first difference from the other loop; empty if they are equal."""
        for step, (a, b) in enumerate(zip(self.losses, other.losses, strict=True)):
            if a != b:
                return f"loss of step {step}: {a} for {b}"
        names = [name for name, value in self.state.items() if not torch.equal(value, other.state[name])]
        return f"{len(names)} of {len(self.state)} tensors: {', '.join(names[:3])}" if names else ""


def run(kind: type[nn.Module], way: str, steps: int, *, dynamic: bool) -> Loop:
    start = time.perf_counter()
    torch.manual_seed(0)
    model = kind().train()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    step = compiled(model, way, dynamic=dynamic)
    generator, losses = torch.Generator().manual_seed(1), []
    for i in range(steps):
        loss = step(*kind.batch(BATCH + (2 * (i % 3) if dynamic else 0), generator))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    state = {**model.state_dict(), "generator": torch.get_rng_state()}
    for i, kept in enumerate(optimizer.state.values()):
        state |= {f"optimizer {i} {key}": value for key, value in kept.items()}
    return Loop(losses, state, torch._dynamo.utils.counters["stats"]["unique_graphs"], time.perf_counter() - start)


def main() -> int:
    parser = command_line(__doc__)
    parser.add_argument("--steps", type=int, default=STEPS, metavar="N")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    if options.fxopt:
        os.environ["FXOPT"] = options.fxopt  # the backend has no option for it
    torch.set_num_threads(1)
    wrong = 0
    print("| model | batch | cut by | graphs | first and last loss | losses, state at the end | s |")
    print(f"|{'---|' * 7}")
    for kind in KINDS:
        for dynamic in (False, True):
            batch = "dynamic" if dynamic else "static"
            if options.names and not any(name.lower() in f"{kind.__name__} {batch}".lower() for name in options.names):
                continue
            is_unusual = kind in unusual_models.KINDS
            reference = EAGER if is_unusual else REFERENCE
            expected = run(kind, reference, options.steps, dynamic=dynamic)
            for way in (EAGER, *OPTIONS_OF_UNUSUAL) if is_unusual else WAYS:
                loop = expected if way == reference else run(kind, way, options.steps, dynamic=dynamic)
                difference = loop.difference(expected)
                result = f"DIFFERS, {difference}" if difference else f"{len(loop.losses)} and {len(loop.state)} equal"
                losses = f"{loop.losses[0]:.6f}, {loop.losses[-1]:.6f}"
                cells = [kind.__name__, batch, way, str(loop.graphs), losses, result, f"{loop.seconds:.1f}"]
                print(f"| {' | '.join(cells)} |", flush=True)
                wrong += bool(difference)
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
