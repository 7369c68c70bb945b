"""A Llama's training step: peaks, bits and times of the eager step, of eager checkpointing, and of
the optimized graph."""

from __future__ import annotations

import contextlib
import os
import pathlib
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence

from fxopt_program import Fxopt
from results import Row, gib, ratio, table
from stage import Context, Process, Stage, each_unit

EAGER = {"eager": "none", "eager per-op": "per-op", "eager full": "full"}
GRAPHS = {
    "graph": "",
    "graph per-op": "canonicalize,cse,sac,remat,dce",
    "graph full": "canonicalize,cse,sac{policy=full},remat,dce",
}
REFERENCES = {"graph": "eager", "graph per-op": "eager per-op", "graph full": "eager full"}
STEPS = 4  # the first is not timed; without a GPU it is the only one
# Width, hidden width, layers, heads, heads of keys and values, words, batch, length: Llama 3.2 1B,
# and a small copy for a dry run.
SIZES = {
    False: (2048, 8192, 16, 32, 8, 128256, 2, 2048),
    True: (64, 128, 2, 4, 2, 97, 2, 16),
}


def processes(context: Context) -> list[Process]:
    return [Process([*EAGER, *GRAPHS], {"HF_HUB_OFFLINE": "1"})]


def run(context: Context, keys: Sequence[str]) -> Iterator[tuple[str, Row | None]]:
    """Runs the units. The eager step always runs first: its loss and gradients are the
    reference."""
    os.environ["FXOPT"] = context.fxopt
    step = Step(context)
    if "eager" not in keys:
        step.eager("none")
    yield from each_unit(keys, lambda key: step.eager(EAGER[key]) if key in EAGER else step.graph(key))


class Step:
    """The model, its inputs, and the results of the eager step."""

    def __init__(self, context: Context) -> None:
        import torch

        self.torch, self.context = torch, context
        self.device = torch.device("cpu" if context.is_dry else "cuda:0")
        self.reference: list[object] | None = None
        self.traced: tuple[object, dict[str, object]] | None = None
        torch.manual_seed(0)
        with torch.device(self.device):
            self.model = self.build()
            words, batch, length = SIZES[context.is_dry][5:]
            self.tokens, self.labels = (torch.randint(words, (batch, length)) for _ in range(2))
        self.layers = list(self.model.model.layers)
        self.forwards = [layer.forward for layer in self.layers]

    def build(self) -> object:
        from traces import joint_models
        from transformers import LlamaConfig, LlamaForCausalLM

        width, hidden, layers, heads, kv_heads, words, _, length = SIZES[self.context.is_dry]
        sizes = (width, hidden, layers, heads, kv_heads)
        config = LlamaConfig(**joint_models.decoder(length, words, sizes), tie_word_embeddings=True)
        before = self.torch.get_default_dtype()
        self.torch.set_default_dtype(self.torch.bfloat16)
        try:
            model = LlamaForCausalLM(config).train()
            model.tie_weights()
            return model
        finally:
            self.torch.set_default_dtype(before)

    # ---- the two ways to run a step

    def eager(self, policy: str) -> Row:
        torch, model = self.torch, self.model
        parameters = list(model.parameters())
        for layer, forward in zip(self.layers, self.forwards):
            layer.forward = forward if policy == "none" else checkpointed(forward, policy)

        def step() -> list[object]:
            loss = self.loss(model, self.tokens, self.labels)
            return [loss.detach(), *torch.autograd.grad(loss, parameters)]

        try:
            return self.measure(step, list, [*self.state.values(), self.tokens, self.labels], policy == "none")
        finally:
            for layer, forward in zip(self.layers, self.forwards):
                layer.forward = forward

    def graph(self, key: str) -> Row:
        from fxopt import bridge
        from torch.utils import _pytree as pytree

        if self.traced is None:
            self.traced = self.trace()
        graph_module, told = self.traced
        inputs = self.inputs(told)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "step.pb"
            bridge.save(graph_module, path, fxopt=self.context.fxopt, **told)
            fxopt = Fxopt(self.context.fxopt)
            if GRAPHS[key]:
                fxopt.opt(path, path, GRAPHS[key], "--no-reproducer")
            predicted = fxopt.peaks(path)[str(self.device)][0]
            optimized = bridge.load(path)

        def step() -> list[object]:
            return pytree.tree_leaves(bridge.run(optimized, inputs))

        return self.measure(step, lambda values: self.by_parameter(values, told), inputs) | {"predicted_ideal_peak": predicted}

    def by_parameter(self, values: list[object], told: dict[str, object]) -> list[object]:
        """Returns the loss and one gradient per parameter, as the eager step does. The graph has
        one gradient for each name of a parameter with two names."""
        found: dict[int, object] = {}
        for value, role in zip(values, told["outputs"], strict=True):
            if role.get("role") != "gradient" or value is None:
                continue
            parameter = id(self.state[role["fqn"].removeprefix("model.")])
            found[parameter] = value if parameter not in found else found[parameter] + value
        return [values[0], *(found[id(parameter)] for parameter in self.model.parameters())]

    def trace(self) -> tuple[object, dict[str, object]]:
        """Returns the joint graph of the same model, traced over fake tensors without device
        memory."""
        import trace_gpu_free
        from traces import close, number_identities, routes
        from traces.gpt2 import traceable

        torch, mode = self.torch, trace_gpu_free.fake_mode()
        with mode, torch.device(self.device):
            model = self.build()
            args = [torch.empty(self.tokens.shape, dtype=torch.int64) for _ in range(2)]
        trace_gpu_free.annotate_modules(model, "model.layers")
        with traceable(), self.attention():
            graph_module, told = routes.trace_joint(model, self.loss, args, mode)
        close()
        number_identities(graph_module)
        return graph_module, told

    @property
    def state(self) -> dict[str, object]:
        return dict(self.model.named_parameters(remove_duplicate=False)) | dict(self.model.named_buffers())

    def inputs(self, told: dict[str, object]) -> list[object]:
        state = self.state
        users = [self.tokens, self.labels]
        made: list[object] = []
        for role in told["roles"]:
            if role["role"] == "input":
                made.append(users[role["user_index"]])
            elif role["role"] == "tangent":
                made.append(self.torch.ones((), device=self.device))
            else:
                made.append(state[role["fqn"].removeprefix("model.")])
        return made

    def loss(self, model: object, tokens: object, labels: object) -> object:
        from traces import joint_models

        with self.attention():
            return joint_models.language(model, tokens, labels)

    def attention(self) -> contextlib.AbstractContextManager[object]:
        """Selects the same attention kernel for all steps, to make bits comparable."""
        from torch.nn.attention import SDPBackend, sdpa_kernel

        return contextlib.nullcontext() if self.context.is_dry else sdpa_kernel(SDPBackend.FLASH_ATTENTION)

    # ---- measuring

    def measure(
        self,
        step: Callable[[], list[object]],
        results: Callable[[list[object]], list[object]],
        given: list[object],
        is_reference: bool = False,
    ) -> Row:
        """Returns the peaks of the first and last steps in bytes, and the median time of all steps
        after the first. Results are live while peaks are read."""
        from cuda_meter import CudaMeter, FakeMeter

        meter = FakeMeter(self.device) if self.context.is_dry else CudaMeter(self.device)
        meter.empty_cache()
        if self.context.is_dry:
            meter.hold_all(given)  # memory in use before the step
        row: Row = {}
        seconds = []
        for number in range(1 if self.context.is_dry else STEPS):
            with meter:
                meter.reset()
                start = time.perf_counter()
                values = step()
                row["last_step"] = meter.peaks()  # synchronizes
                seconds.append(time.perf_counter() - start)
            if number == 0:
                row |= {"first_step": row["last_step"], "bits": self.compare(results(values), is_reference)}
            del values
        row["seconds_of_step"] = statistics.median(seconds[1:] or seconds)
        return row

    def compare(self, values: list[object], is_reference: bool) -> Row:
        """Counts the losses and gradients whose bits differ from the eager step's, which are kept
        on the host. Raises RuntimeError if the eager step failed."""
        if is_reference:
            self.reference = [value.cpu() for value in values]
            return {"compared": 0, "differ": 0}
        if self.reference is None:
            raise RuntimeError("nothing to compare with: the eager step failed")
        pairs = [(one.to(self.device), other) for one, other in zip(self.reference, values, strict=True)]
        differing = [(one, other) for one, other in pairs if not self.torch.equal(one, other)]
        most = max((float((one.float() - other.float()).abs().max()) for one, other in differing), default=0.0)
        return {"compared": len(pairs), "differ": len(differing), "largest_difference": most}


def checkpointed(forward: Callable[..., object], policy: str) -> Callable[..., object]:
    """Returns a layer's forward under eager checkpointing. per-op saves attention and every second
    matrix product, as `sac` does."""
    import torch
    from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

    aten = torch.ops.aten
    products = {aten.mm.default, aten.addmm.default, aten.bmm.default}
    attention = {
        aten._scaled_dot_product_flash_attention.default,
        aten._scaled_dot_product_flash_attention_for_cpu.default,
        aten._scaled_dot_product_efficient_attention.default,
        aten._scaled_dot_product_cudnn_attention.default,
    }

    def contexts() -> object:
        counts = {False: 0, True: 0}

        def decide(told: object, func: object, *args: object, **kwargs: object) -> CheckpointPolicy:
            if func in products:
                counts[told.is_recompute] += 1
                saves = counts[told.is_recompute] % 2 == 1
                return CheckpointPolicy.MUST_SAVE if saves else CheckpointPolicy.PREFER_RECOMPUTE
            return CheckpointPolicy.MUST_SAVE if func in attention else CheckpointPolicy.PREFER_RECOMPUTE

        return create_selective_checkpoint_contexts(decide)

    def run(*args: object, **kwargs: object) -> object:
        told = {"context_fn": contexts} if policy == "per-op" else {}
        return checkpoint(forward, *args, use_reentrant=False, **told, **kwargs)

    return run


def table_of(rows: Sequence[Row]) -> list[str]:
    by_key = {row["key"]: row for row in rows}
    kind = "allocated" if "allocated" in rows[0]["first_step"] else "requested"
    cells = []
    for key in (*EAGER, *GRAPHS):
        if key not in by_key:
            continue
        row, other = by_key[key], by_key.get(REFERENCES.get(key, ""))
        peak, bits = row["first_step"][kind], row["bits"]
        beside = ratio(peak, other["first_step"][kind]) if other else "-"
        equal = "reference" if not bits["compared"] else f"{bits['compared'] - bits['differ']} of {bits['compared']}"
        cells.append([
            key, gib(peak), gib(row["last_step"].get("reserved")), beside, gib(row.get("predicted_ideal_peak")), equal,
            f"{row['seconds_of_step'] * 1e3:.1f}",
        ])  # fmt: skip
    heads = ["step", f"{kind} GiB", "reserved", "/ eager", "predicted ideal peak", "bits equal", "ms"]
    return table(heads, cells)


STAGE = Stage("llama1b", "Llama 3.2 1B: eager, eager checkpointing, and as fxopt's graph", 2, 100, processes, run, table_of)
