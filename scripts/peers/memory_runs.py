"""Executes a graph on its device, finds the allocator's peaks, and bills allocations to nodes.

With `is_dry` no device is needed: it runs over fake tensors, and a replacement for the allocator
counts requested bytes only.
"""

from __future__ import annotations

import contextlib
import pathlib
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field

import memory
import torch
import workspaces
from bound_values import BoundGraph, BoundInterpreter, symbols
from cuda_meter import CudaMeter, FakeMeter
from device_inputs import make_inputs
from fxopt import bridge
from fxopt.form import Json
from fxopt_program import Fxopt
from peak_counter import replay
from torch.fx import GraphModule


class Skip(ValueError):
    """A graph that cannot be measured; the message gives the reason."""


@dataclass
class Subject:
    """A runnable graph, and its inputs and device."""

    graph_module: GraphModule
    bound: BoundGraph
    sizes: dict[str, int]
    device: torch.device
    remarks: list[str] = field(default_factory=list)


def prepare(path: pathlib.Path, fxopt: Fxopt) -> Subject:
    """The graph of a file; joins its process groups. Raises Skip if it cannot be measured."""
    return subject_of(bridge.read_module(path, fxopt.program))


def subject_of(module: Json) -> Subject:
    """The same for a module that is already read."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            graph_module = memory.load(module, pathlib.Path(folder))
        except bridge.LoadError as error:
            raise Skip(f"torch {torch.__version__} cannot load it: {error}") from error
    sizes = symbols(graph_module)
    if None in sizes.values():
        raise Skip("its sizes depend on data")
    subject = Subject(graph_module, BoundGraph(graph_module, sizes), sizes, cuda_device(module))
    subject.remarks = remarks(subject, module)
    if module.get("groups") and not torch.distributed.is_initialized():
        bridge.init_fake_groups(module)
    return subject


def remarks(subject: Subject, module: Json) -> list[str]:
    """Known reasons why the measurement may differ from the prediction, neither being wrong."""
    result = []
    if any(getattr(node.target, "_name", "").startswith("flex_attention") for node in subject.bound.nodes):
        result.append("flex_attention runs unfused here: it allocates the scores, which a compiled one never holds")
    if memory.donated(module):
        result.append("inputs are donated: the prediction frees them, and this run keeps them")
    if module.get("groups"):
        result.append("collectives run without other ranks, on one stream")
    return result


def cuda_device(module: Json) -> torch.device:
    found = {str(record.get("device")) for record in module.get("storages", ())}
    devices = sorted(device for device in found if device.startswith("cuda"))
    if len(devices) != 1:
        raise Skip(f"it is on {', '.join(devices)}: one device is measured" if devices else "it holds nothing on CUDA")
    return torch.device(devices[0])


# ---- measurement


def run_steps(step: Callable[[], object], meter: CudaMeter | FakeMeter, steps: int) -> Iterator[tuple[int, dict[str, int]]]:
    """The number of each step and its peaks."""
    for number in range(1, steps + 1):
        meter.reset()
        outputs = step()  # live while the peaks are read
        peaks = meter.peaks()
        del outputs
        yield number, peaks


@contextlib.contextmanager
def allocator(subject: Subject, is_dry: bool) -> Iterator[tuple[CudaMeter | FakeMeter, list[object]]]:
    """The meter, and the graph's inputs, allocated after everything else is released."""
    if is_dry:
        inputs = [subject.bound.given(node) for node in subject.bound.nodes if node.op == "placeholder"]
        with subject.bound.mode, torch.no_grad(), FakeMeter(subject.device) as meter:
            for node in subject.bound.nodes:
                if node.op in ("placeholder", "get_attr"):
                    meter.hold_all(subject.bound.given(node))
            yield meter, inputs
        return
    with CudaMeter(subject.device) as meter:
        meter.empty_cache()
        yield meter, make_inputs(subject.bound)


def measure(subject: Subject, steps: int, is_dry: bool, snapshot: pathlib.Path | None = None) -> Json:
    """The peaks of the first step and of the last, by number. snapshot: the file for PyTorch's
    snapshot of the first step, on a device."""
    result: Json = {}
    with allocator(subject, is_dry) as (meter, inputs):

        def step() -> object:
            if is_dry:
                return BoundInterpreter(subject.bound).run(*inputs)
            return bridge.run(subject.graph_module, inputs)

        is_recorded = snapshot is not None and not is_dry
        if is_recorded:
            meter.record()
        for number, peaks in run_steps(step, meter, steps):
            if number in (1, steps):
                result[str(number)] = peaks
            if number == 1 and is_recorded:
                meter.dump(snapshot)
    return result


def bill(subject: Subject, is_dry: bool) -> Json:
    """The bills of the first run and of the second, and the allocations in the graph."""
    bound = subject.bound if is_dry else None
    with allocator(subject, is_dry) as (meter, inputs):
        first, second = (workspaces.bill(subject.graph_module, inputs, meter, bound) for _ in range(2))
    predicted: dict[str, list[int]] = {}
    for storage in replay(BoundGraph(subject.graph_module, subject.sizes)).storages:
        if storage.bytes > 0 and torch.device(storage.device) == subject.device:
            predicted.setdefault(storage.node, []).append(storage.bytes)
    return {
        "first_difference": workspaces.first_difference(first, predicted),
        "first_difference_of_results": workspaces.first_difference(second, predicted, is_hidden_expected=True),
        "operators": workspaces.by_operator(second),
        "once": workspaces.by_operator(workspaces.only_first(first, second)),
        "nodes": [asdict(entry) | {"beside": entry.beside} for entry in second if entry.hidden],
    }
