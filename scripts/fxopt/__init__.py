"""torch.fx graphs and the fxopt program.

    import fxopt

    fxopt.save(graph_module, "step.pb")                      # needs torch, like load, apply, run
    fxopt.apply(graph_module, "canonicalize,cse,remat,dce")  # in place
    forward, backward = fxopt.partition(joint, num_fwd_outputs=1)
    torch.compile(model, backend="fxopt")
    fxopt.measure(graph_module, *inputs, file="times.json")  # seconds per call, for --measurement
    peaks = fxopt.mem("step.pb", "--device", "h100")         # the report as data; needs no torch

tool.py runs the program and needs no torch; bridge.py needs torch. partition.py has the functions
for AOTAutograd and Dynamo, origins.py the roles that each maker of graphs records.
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
        # The name `partition` must lead to the function, not to its module.
        globals().update({item: getattr(module, item) for item in _OF_PARTITION})
        return globals()[name]
    raise AttributeError(f"module 'fxopt' has no attribute {name!r}")
