"""torch.fx graphs and the fxopt program.

    import fxopt

    fxopt.save(graph_module, "step.pb")                      # needs torch, as load, apply and run do
    fxopt.apply(graph_module, "canonicalize,cse,remat,dce")  # in place
    forward, backward = fxopt.partition(joint, num_fwd_outputs=1)
    torch.compile(model, backend="fxopt")
    fxopt.measure(graph_module, *inputs, file="times.json")  # seconds of its calls, for --measurement
    peaks = fxopt.mem("step.pb", "--device", "h100")         # what the program says, as data; needs no torch

bridge.py has what needs torch, partition.py what AOTAutograd and Dynamo ask for, tool.py what runs the program; origins.py knows the makers of graphs.
"""

import importlib

from fxopt.tool import FxoptError, FxoptWarning, explain, find_fxopt, mem, tags, verify

_OF_PARTITION = ("backend", "extract_forward", "partition", "partitioner")
_OF_TORCH = (
    "ExportError",
    "LoadError",
    "NOT_CARRIED",
    "NOT_CARRIED_THINGS",
    "Written",
    "apply",
    "graph_pass",
    "init_fake_groups",
    "last_frame",
    "load",
    "measure",
    "read_module",
    "run",
    "save",
    "target_name",
)

__all__ = ["FxoptError", "FxoptWarning", "explain", "find_fxopt", "mem", "tags", "verify", *_OF_PARTITION, *_OF_TORCH]


def __getattr__(name: str) -> object:
    if name in _OF_TORCH:
        from fxopt import bridge

        return getattr(bridge, name)
    if name in _OF_PARTITION:
        module = importlib.import_module("fxopt.partition")
        globals().update({item: getattr(module, item) for item in _OF_PARTITION})  # the function, not the module of its name
        return globals()[name]
    raise AttributeError(f"module 'fxopt' has no attribute {name!r}")
