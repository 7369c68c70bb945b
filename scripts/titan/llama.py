"""torchtitan's Llama 3 debug model, traced by its graph trainer: forward, loss and backward, on the
CPU."""

from __future__ import annotations

import functools

import torch
from torch.fx import GraphModule

BATCH = 2
LENGTH = 64


def trace() -> GraphModule:
    """Returns the cleaned trace of one step (6 layers, SDPA), before any tag. meta["run"]() runs it
    and returns its outputs."""
    from torchtitan.components.loss import CrossEntropyLoss
    from torchtitan.experiments.graph_trainer import remove_noop_passes
    from torchtitan.experiments.graph_trainer.llama3 import model_registry
    from torchtitan.experiments.graph_trainer.llama3.parallelize import annotate_llama
    from torchtitan.experiments.graph_trainer.make_fx_tracer import minimal_fx_tracer, run_traced
    from torchtitan.experiments.graph_trainer.trainer import make_fwd_bwd_step

    torch.manual_seed(0)
    config = model_registry("debugmodel", attn_backend="sdpa").model
    with torch.device("meta"):
        model = config.build()
    model.to_empty(device="cpu")
    with torch.no_grad():
        model.init_states(buffer_device=None)
    annotate_llama(model.train())
    step = make_fwd_bwd_step(model, CrossEntropyLoss.Config().build())
    tokens = torch.randint(0, config.vocab_size, (BATCH, LENGTH))
    positions = torch.arange(LENGTH).repeat(BATCH, 1)
    arguments = (tokens, tokens.clone(), torch.tensor(float(BATCH * LENGTH)), {"positions": positions})
    traced = minimal_fx_tracer(step, module=model)(*arguments)
    graph_module = traced.gm
    graph_module.meta["run"] = functools.partial(run_traced(traced, module=model), *arguments)
    remove_noop_passes.eliminate_dead_code_pass(graph_module)
    remove_noop_passes.canonicalize_graph_pass(graph_module)
    return graph_module
