"""Traces a model and a loss as a training step by make_fx or as AOTAutograd's joint graph, and
makes real inputs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

import torch
import trace_gpu_free
from fxopt import origins
from torch import Tensor, nn
from torch._functorch.aot_autograd import aot_export_joint_with_descriptors
from torch._subclasses import FakeTensorMode
from torch.utils import _pytree as pytree

from traces import Traced, close, keep_open, random_like, seeded

Loss = Callable[..., Tensor]  # (model, *inputs) -> loss


def trace_step(model: nn.Module, loss: Loss, args: Sequence[Tensor], mode: FakeTensorMode) -> Traced:
    """Traces one step: loss(model, *args) and its gradients. Inputs are parameters, buffers,
    `args`."""
    parameters, buffers = dict(model.named_parameters()), dict(model.named_buffers())

    def step(state: dict[str, Tensor], *args: Tensor) -> list[Tensor]:
        with nn.utils.stateless._reparametrize_module(model, state, tie_weights=True):
            value = loss(model, *args)
            return [value, *torch.autograd.grad(value, [state[name] for name in parameters])]

    graph_module = trace_gpu_free.trace_step(step, mode, [parameters | buffers, *args])
    return origins.step(graph_module, parameters, buffers, persistent=model.state_dict())


class WithLoss(nn.Module):
    """A model and its loss as one module, as AOTAutograd requires."""

    def __init__(self, model: nn.Module, loss: Loss) -> None:
        super().__init__()
        self.model, self.loss = model, loss

    def forward(self, *args: object) -> Tensor:
        return self.loss(self.model, *args)


@contextlib.contextmanager
def aot_tracing(mode: FakeTensorMode, model: nn.Module) -> Iterator[None]:
    """Sets AOTAutograd up to trace over fake tensors of `mode` and keep annotations on nodes."""
    if any(parameter.is_cuda for parameter in model.parameters()):
        trace_gpu_free.enable_fake_cuda_backward()
    torch.fx.traceback.current_meta.clear()
    with (
        mode,
        torch._guards.tracing(torch._guards.TracingContext(mode)),
        torch.fx.traceback.preserve_node_meta(),
        torch.autograd.set_multithreading_enabled(False),
    ):
        yield


def trace_joint(model: nn.Module, loss: Loss, args: Sequence[object], mode: FakeTensorMode) -> Traced:
    """Traces the joint graph of loss(model, *args). Inputs are parameters, buffers, `args`, and the
    loss's tangent."""
    module = WithLoss(model, loss)
    with aot_tracing(mode, model):
        captured = aot_export_joint_with_descriptors(keep_open(), module, tuple(args))
    return origins.joint(captured, loss=0, module=module)


# Name suffix, route, and name of the kind of graph in README.md.
FORMS = (("flb", trace_step, "one training step"), ("joint", trace_joint, "AOTAutograd's joint graph"))


def real_inputs(traced: Traced, users: Sequence[object]) -> list[object]:
    """Returns real CPU arguments for a graph: `users` for the user's inputs, ones for tangents,
    small seeded numbers for the rest. Variances are positive."""
    close()  # AOTAutograd's modes would make them fake
    graph_module, told = traced
    generator = seeded()
    result: list[object] = []
    for node, role in zip(origins.placeholders(graph_module), told["roles"], strict=True):
        if role["role"] == "input":
            result.append(users[role["user_index"]])
        elif "alias_of_input" in role:
            result.append(result[role["alias_of_input"]])
        elif role["role"] == "tangent":
            result.append(torch.ones_like(random_like(node.meta["val"], generator)))
        else:
            tensor = random_like(node.meta["val"], generator)
            result.append(tensor.abs() if str(role.get("fqn")).endswith("running_var") else tensor)
    info = getattr(graph_module.graph._codegen, "pytree_info", None)
    return result if info is None else list(pytree.tree_unflatten(result, info.in_spec))
