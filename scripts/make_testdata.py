#!/usr/bin/env python3
"""Makes the graphs of testdata/ that come from PyTorch, and testdata/README.md with where each came from.

    scripts/make_testdata.py [--fxopt PROGRAM] [-o testdata] [--form pb|json] [NAME...]

Needs torch; a GPU is neither needed nor used. Names: issue178935_vanilla, issue178935_selective (the two programs of
pytorch issue 178935, traced as the issue traces them) and llama1b (a Llama of 1.2 billion parameters, one training
step).
"""

from __future__ import annotations

import argparse
import concurrent.futures
import hashlib
import multiprocessing
import os
import pathlib
import platform
import sys
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

import fxopt_json
import fxopt_torch
import trace_gpu_free

Info = dict[str, object]
ROOT = pathlib.Path(__file__).resolve().parent.parent

# ---- pytorch issue 178935: selective checkpointing recomputes nothing when traced


def checkpointed_step(x: Tensor, w1: Tensor, w2: Tensor, context_fn: Callable | None) -> tuple[Tensor, ...]:
    """A perceptron in one checkpoint region (product, gelu, product), its sum, and the gradients of its weights."""

    def layer(x: Tensor, w1: Tensor, w2: Tensor) -> Tensor:
        return F.gelu(x @ w1) @ w2

    told = {} if context_fn is None else {"context_fn": context_fn}
    loss = checkpoint(layer, x, w1, w2, use_reentrant=False, **told).sum()
    return (loss, *torch.autograd.grad(loss, [w1, w2]))


def recompute_products() -> tuple[object, object]:
    """Selective checkpointing: products are to be recomputed, everything else saved."""

    def policy(context: object, op: object, *args: object, **kwargs: object) -> CheckpointPolicy:
        is_product = op == torch.ops.aten.mm.default
        return CheckpointPolicy.PREFER_RECOMPUTE if is_product else CheckpointPolicy.MUST_SAVE

    return create_selective_checkpoint_contexts(policy)


def trace_issue(context_fn: Callable | None) -> tuple[GraphModule, Info]:
    torch.fx.traceback.current_meta.clear()  # an earlier trace leaves its tags there
    x = torch.randn(2, 4)
    w1, w2 = torch.randn(4, 8, requires_grad=True), torch.randn(8, 4, requires_grad=True)

    def step(x: Tensor, w1: Tensor, w2: Tensor) -> tuple[Tensor, ...]:
        return checkpointed_step(x, w1, w2, context_fn)

    graph_module = make_fx(step, tracing_mode="fake", _allow_non_fake_inputs=True)(x, w1, w2)
    names = [node.name for node in graph_module.graph.nodes if node.op == "placeholder"]
    parameters = [{"role": "parameter", "fqn": fqn} for fqn in ("w1", "w2")]
    gradients = [{"role": "gradient", "of": of, "fqn": fqn} for of, fqn in zip(names[1:], ("w1", "w2"))]
    return graph_module, {"roles": ["input", *parameters], "outputs": ["loss", *gradients]}


# ---- a Llama of 1.2 billion parameters

VOCABULARY, WIDTH, LAYERS, HEADS, KV_HEADS, HIDDEN = 128256, 2048, 16, 32, 8, 8192
HEAD_WIDTH = WIDTH // HEADS
BATCH, SEQUENCE = 2, 2048


class Attention(nn.Module):
    """Causal attention over rotated heads, KV_HEADS of keys and values serving HEADS of queries."""

    def __init__(self) -> None:
        super().__init__()
        self.wq = nn.Linear(WIDTH, HEADS * HEAD_WIDTH, bias=False)
        self.wk = nn.Linear(WIDTH, KV_HEADS * HEAD_WIDTH, bias=False)
        self.wv = nn.Linear(WIDTH, KV_HEADS * HEAD_WIDTH, bias=False)
        self.wo = nn.Linear(HEADS * HEAD_WIDTH, WIDTH, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        batch, length, _ = x.shape
        q, k, v = (w(x).view(batch, length, -1, HEAD_WIDTH).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        k, v = (t.repeat_interleave(HEADS // KV_HEADS, dim=1) for t in (k, v))
        mixed = trace_gpu_free.flash_attention(q, k, v, causal=True)
        return self.wo(mixed.transpose(1, 2).reshape(batch, length, -1))


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary position embedding: the two halves of each head are the parts of complex numbers."""
    real, imaginary = x.float().chunk(2, dim=-1)
    return torch.cat((real * cos - imaginary * sin, imaginary * cos + real * sin), dim=-1).type_as(x)


class FeedForward(nn.Module):
    """Gated SiLU."""

    def __init__(self) -> None:
        super().__init__()
        self.w1 = nn.Linear(WIDTH, HIDDEN, bias=False)
        self.w2 = nn.Linear(HIDDEN, WIDTH, bias=False)
        self.w3 = nn.Linear(WIDTH, HIDDEN, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention_norm, self.ffn_norm = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.attention, self.feed_forward = Attention(), FeedForward()

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        x = x + self.attention(self.attention_norm(x), cos, sin)
        return x + self.feed_forward(self.ffn_norm(x))


class Llama(nn.Module):
    """Token embedding, layers, norm, and the embedding again as the output projection."""

    def __init__(self) -> None:
        super().__init__()
        self.tok_embeddings = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = nn.RMSNorm(WIDTH)
        self.output = nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.output.weight = self.tok_embeddings.weight
        self.register_buffer("rope_cos", torch.empty(SEQUENCE, HEAD_WIDTH // 2, dtype=torch.float32))
        self.register_buffer("rope_sin", torch.empty(SEQUENCE, HEAD_WIDTH // 2, dtype=torch.float32))

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.tok_embeddings(tokens)
        for layer in self.layers:
            x = layer(x, self.rope_cos, self.rope_sin)
        return self.output(self.norm(x))


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    with torch.fx.traceback.annotate({"module_fqn": "loss"}):
        return F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten())


def trace_llama() -> tuple[GraphModule, Info]:
    mode = trace_gpu_free.fake_mode()
    torch.set_default_dtype(torch.bfloat16)
    with mode, torch.device("cuda"):
        model = Llama()
        tokens = torch.empty(BATCH, SEQUENCE, dtype=torch.int64)
        labels = torch.empty(BATCH, SEQUENCE, dtype=torch.int64)
    torch.set_default_dtype(torch.float32)
    trace_gpu_free.annotate_modules(model, "layers")
    parameters, buffers = dict(model.named_parameters()), dict(model.named_buffers())

    def step(state: dict[str, Tensor], tokens: Tensor, labels: Tensor) -> list[Tensor]:
        with nn.utils.stateless._reparametrize_module(model, state, tie_weights=True):
            loss = cross_entropy(model(tokens), labels)
            return [loss, *torch.autograd.grad(loss, [state[name] for name in parameters])]

    graph_module = trace_gpu_free.trace_step(step, mode, [parameters | buffers, tokens, labels])
    names = [node.name for node in graph_module.graph.nodes if node.op == "placeholder"]
    roles: list[Info] = [{"role": "parameter", "fqn": fqn} for fqn in parameters]
    roles += [{"role": "buffer", "fqn": fqn, "persistent": True} for fqn in buffers]
    roles += [{"role": "input", "user_index": 0}, {"role": "input", "user_index": 1}]
    gradients = [{"role": "gradient", "of": of, "fqn": fqn} for of, fqn in zip(names, parameters)]
    return graph_module, {"roles": roles, "outputs": [{"role": "loss"}, *gradients]}


# ---- what there is, and where it came from

GRAPHS: dict[str, tuple[Callable[[], tuple[GraphModule, Info]], str]] = {
    "issue178935_vanilla": (
        lambda: trace_issue(None),
        "the first program of pytorch issue 178935: plain activation checkpointing under make_fx. Recomputation is"
        " already in the graph, no node is tagged or marked",
    ),
    "issue178935_selective": (
        lambda: trace_issue(recompute_products),
        "the second program: selective checkpointing that prefers to recompute products. Tags as the trace left them,"
        " nothing recomputed, nothing marked",
    ),
    "llama1b": (
        trace_llama,
        f"one training step (forward, cross entropy, backward) of a Llama of 1.2 billion parameters: {LAYERS} layers,"
        f" width {WIDTH}, {HEADS} heads, {KV_HEADS} key-value heads, hidden width {HIDDEN}, vocabulary {VOCABULARY},"
        f" tied embeddings, bfloat16, batch {BATCH}, sequence {SEQUENCE}, flash attention, as traced for one GPU."
        " Backward is marked, module paths and layers (as regions) are annotated, nothing is tagged",
    ),
}
_HEADING = "## Made by scripts/make_testdata.py"


def write_readme(folder: pathlib.Path, lines: list[str]) -> None:
    """Replaces this script's part of README.md, up to the next heading, and keeps the rest."""
    readme = folder / "README.md"
    text = readme.read_text(encoding="utf-8") if readme.exists() else "# Test data\n\n"
    before, _, rest = text.partition(_HEADING)
    _, heading, after = rest.partition("\n## ")
    versions = f"torch {torch.__version__}, Python {platform.python_version()}; no GPU. Not edited by hand."
    part = "\n".join([_HEADING, "", versions, "", *lines]) + "\n"
    readme.write_text(before + part + heading + after, encoding="utf-8")


def make(name: str, path: pathlib.Path, fxopt: str | None) -> int:
    """Traces one graph and writes it, file names relative to the repository. Returns how many nodes it has."""
    os.chdir(ROOT)
    graph_module, info = GRAPHS[name][0]()
    told = {"kind": "forward_loss_backward", "module_name": name, "recipe": f"scripts/make_testdata.py {name}"} | info
    module = fxopt_torch.save(graph_module, path, fxopt=fxopt, short_paths=True, **told)
    return len(module["graphs"][0]["nodes"])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Makes the graphs of testdata/ that come from PyTorch.")
    names = ", ".join(GRAPHS)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {names}; without any: all, and the README")
    parser.add_argument("-o", "--output", type=pathlib.Path, default=ROOT / "testdata", metavar="FOLDER")
    parser.add_argument("--form", default="pb", choices=["pb", "fxg", "json"])
    parser.add_argument("--fxopt", metavar="PROGRAM", help="the fxopt program (default: $FXOPT, else fxopt on PATH)")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.names if name not in GRAPHS]:
        parser.error(f"unknown names: {', '.join(unknown)}; there are {names}")

    folder = options.output.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    program = fxopt_json.find_fxopt(options.fxopt)
    lines = []
    # A process for each: sequence numbers count from its start, and tags leak from one trace into the next.
    spawn = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=spawn, max_tasks_per_child=1) as pool:
        for name in options.names or GRAPHS:
            path = folder / f"{name}.{options.form}"
            try:
                nodes = pool.submit(make, name, path, program and str(pathlib.Path(program).resolve())).result()
            except (fxopt_torch.ExportError, OSError, RuntimeError) as error:
                print(f"make_testdata: {name}: {error}", file=sys.stderr)
                return 1
            data = path.read_bytes()
            figures = f"{nodes} nodes, {len(data)} bytes, sha256 `{hashlib.sha256(data).hexdigest()}`"
            print(f"{path}: {figures}")
            command = f"`scripts/make_testdata.py {name}`"
            lines += [f"- `{path.name}`: {GRAPHS[name][1]}.", f"  {figures}; {command}"]
    if not options.names:
        write_readme(folder, lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
