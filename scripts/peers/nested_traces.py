"""Traces of the steps in nested_models.py, and the node where backward of each loss starts."""

from __future__ import annotations

import contextlib
import pathlib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
import trace_gpu_free
from fxopt import bridge, origins
from nested_models import CASES, Case
from torch import Tensor, nn
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import get_proxy_mode
from traces import close, routes

MARKS = ("autograd_backward", "partitioner_tag")


@dataclass
class Traced:
    graph_module: GraphModule
    told: dict[str, object]  # for save()
    seeds: list[str]  # for each loss, the node that starts its backward


def differentiate(case: Case, loss: Tensor, state: dict[str, Tensor]) -> dict[str, Tensor | None]:
    if case.by == "backward":
        loss.backward(retain_graph=True)
        return {name: parameter.grad for name, parameter in state.items()}
    found = torch.autograd.grad(loss, list(state.values()), retain_graph=True, allow_unused=True)
    return dict(zip(state, found, strict=True))


@dataclass
class Run:
    """Runs a step while it is traced."""

    case: Case
    model: nn.Module
    seeds: list[str] = field(default_factory=list)
    losses: list[Tensor] = field(default_factory=list)
    others: tuple[Tensor, ...] = ()
    total: dict[str, Tensor] = field(default_factory=dict)  # by parameter, the sum of its gradients

    def add(self, found: dict[str, Tensor | None]) -> None:
        for name, value in found.items():
            if value is not None:
                adds = name in self.total and self.case.by == "grad"  # .grad is a sum already
                self.total[name] = self.total[name] + value if adds else value

    def __call__(self, state: dict[str, Tensor], *args: Tensor) -> list[Tensor]:
        graph = get_proxy_mode().tracer.graph
        with nn.utils.stateless._reparametrize_module(self.model, state, tie_weights=True):
            step = self.case.step(self.model, *args)
            sent = None
            while True:
                try:
                    loss = step.send(sent)
                except StopIteration as end:
                    self.others = end.value
                    return [*self.losses, *self.others, *self.total.values()]
                last = next(reversed(graph.nodes))
                sent = differentiate(self.case, loss, state)
                self.seeds.append(last.next.name)
                self.losses.append(loss)
                self.add(sent)


def make(case: Case) -> tuple[nn.Module, list[Tensor], torch._subclasses.FakeTensorMode]:
    mode = trace_gpu_free.fake_mode()
    with mode:
        model, args = case.model(), [torch.randn(size) for size in case.sizes]
    trace_gpu_free.annotate_modules(model, "layers")
    return model, args, mode


def trace_whole(case: Case) -> Traced:
    model, args, mode = make(case)
    run, parameters = Run(case, model), dict(model.named_parameters())
    graph_module = trace_gpu_free.trace_step(run, mode, [parameters, *args])
    names = dict(zip(parameters, (node.name for node in origins.placeholders(graph_module))))
    nodes = {node.name: node for node in graph_module.graph.nodes}
    assert all(nodes[seed].target is torch.ops.aten.ones_like.default for seed in run.seeds), "no backward begins there"
    roles = [{"role": "parameter", "fqn": name} for name in parameters]
    roles += [{"role": "input", "user_index": i} for i in range(len(args))]
    outputs = [{"role": "loss"} for _ in run.losses] + [{"role": "user"} for _ in run.others]
    outputs += [{"role": "gradient", "of": names[name], "fqn": name} for name in run.total]
    return Traced(graph_module, {"kind": "forward_loss_backward", "roles": roles, "outputs": outputs}, run.seeds)


def trace_joint(case: Case) -> Traced:
    model, args, mode = make(case)
    graph_module, told = routes.trace_joint(model, lambda model, *args: next(case.step(model, *args)), args, mode)
    inputs = zip(origins.placeholders(graph_module), told["roles"], strict=True)
    return Traced(graph_module, told, [node.name for node, role in inputs if role["role"] == "tangent"])


def files_of(name: str, folder: pathlib.Path, program: str) -> Iterator[tuple[str, pathlib.Path, list[str]]]:
    """Yields each graph of a model: name, file, seeds."""
    case = CASES[name]
    for route, trace in (("", trace_whole), ("_joint", trace_joint))[: 1 + case.is_joint]:
        with contextlib.redirect_stderr(None), warnings.catch_warnings(action="ignore"):
            traced = trace(case)
            close()
        for form in ("marked", "bare"):
            path = folder / f"{name}{route}_{form}.pb"
            with contextlib.redirect_stderr(None):
                bridge.save(traced.graph_module, path, short_paths=True, fxopt=program, **traced.told)
            yield f"{name}{route} {form}", path, traced.seeds
            for node in traced.graph_module.graph.nodes:
                for key in MARKS:
                    node.meta.pop(key, None)
