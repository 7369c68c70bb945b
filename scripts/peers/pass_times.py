"""Times fxopt's passes and the passes of PyTorch (and torchtitan, if installed) that do the same
work."""

from __future__ import annotations

import gc
import importlib
import pathlib
import statistics
import time
from collections.abc import Callable

import remat_sides
from fxopt_program import Fxopt
from torch._functorch.compile_utils import fx_graph_cse, raise_getitems
from torch.fx import GraphModule


def _seconds(work: Callable[[GraphModule], object], graph_module: GraphModule, repeat: int) -> float:
    """The median over fresh copies of the graph. Copying is not timed, and no garbage is collected
    meanwhile."""
    times = []
    for _ in range(repeat):
        subject = remat_sides.copy_of(graph_module)
        gc.collect()
        gc.disable()
        start = time.perf_counter()
        work(subject)
        times.append(time.perf_counter() - start)
        gc.enable()
    return statistics.median(times)


def _fxopt_seconds(fxopt: Fxopt, source: pathlib.Path, passes: str, repeat: int) -> dict[str, float]:
    runs = [fxopt.seconds(source, source.with_name("timed.pb"), passes) for _ in range(repeat)]
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}


def _titan_canonicalize() -> Callable[[GraphModule], object] | None:
    """torchtitan's canonicalize_graph_pass; None if torchtitan is not installed. PyTorch has no
    such pass."""
    try:
        module = importlib.import_module("torchtitan.experiments.graph_trainer.remove_noop_passes")
    except ImportError:
        return None
    return module.canonicalize_graph_pass


def _line(twin: str, theirs: float, passes: str, ours: float) -> None:
    print(f"  {twin:<46} {theirs:9.4f} s   {passes:<42} {ours:9.5f} s   {theirs / ours:7.1f}x")


def print_times(
    fxopt: Fxopt, live: GraphModule, saved: pathlib.Path, tagged: dict[str, tuple[GraphModule, pathlib.Path]], repeat: int
) -> None:
    """live, saved: the untagged graph, in memory and as a file. tagged: the tagged ones by policy,
    both ways."""
    print(f"times, median of {repeat}: PyTorch's pass, fxopt's, ratio")
    ours = _fxopt_seconds(fxopt, saved, "canonicalize,cse,dce,raise-getitems", repeat)
    twins: dict[str, tuple[str, Callable[[GraphModule], object]]] = {
        "cse": ("fx_graph_cse", lambda subject: fx_graph_cse(subject.graph)),
        "dce": ("Graph.eliminate_dead_code", lambda subject: subject.graph.eliminate_dead_code()),
        "raise-getitems": ("raise_getitems", raise_getitems),
    }
    if (canonicalize := _titan_canonicalize()) is not None:
        twins = {"canonicalize": ("torchtitan canonicalize_graph_pass", canonicalize)} | twins
    else:
        print(f"  {'(torchtitan is not installed)':<60}   {'canonicalize':<42} {ours['canonicalize']:9.5f} s")
    for name, (twin, work) in twins.items():
        alone = _fxopt_seconds(fxopt, saved, name, repeat)[name]
        _line(twin, _seconds(work, live, repeat), name, alone)
    recompile = _seconds(GraphModule.recompile, live, repeat)
    print(f"  {'GraphModule.recompile, part of some of these':<46} {recompile:9.4f} s")
    for policy, (subject, path) in tagged.items():
        theirs = _seconds(remat_sides.torch_remat, subject, repeat)
        compat = _fxopt_seconds(fxopt, path, "remat{compat=torch},dce,raise-getitems", repeat)
        whole = sum(seconds for name, seconds in compat.items() if name.partition("{")[0] in ("remat", "dce", "raise-getitems"))
        title = f"remat_using_tags_for_fwd_loss_bwd_graph, {policy}"
        _line(title, theirs, "remat{compat=torch},dce,raise-getitems", whole)
        _line(title, theirs, "remat", _fxopt_seconds(fxopt, path, "remat", repeat)["remat"])
