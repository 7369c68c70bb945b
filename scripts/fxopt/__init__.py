"""torch.fx graphs and the fxopt program.

    import fxopt

    fxopt.save(graph_module, "step.pb")                      # needs torch, as load, apply and run do
    fxopt.apply(graph_module, "canonicalize,cse,remat,dce")  # in place
    fxopt.measure(graph_module, *inputs, file="times.json")  # seconds of its calls, for --measurement
    peaks = fxopt.mem("step.pb", "--device", "h100")         # what the program says, as data; needs no torch

bridge.py has what needs torch, tool.py what runs the program; origins.py knows the makers of graphs.
"""

from fxopt.tool import FxoptError, FxoptWarning, explain, find_fxopt, mem, tags, verify

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

__all__ = ["FxoptError", "FxoptWarning", "explain", "find_fxopt", "mem", "tags", "verify", *_OF_TORCH]


def __getattr__(name: str) -> object:
    if name in _OF_TORCH:
        from fxopt import bridge

        return getattr(bridge, name)
    raise AttributeError(f"module 'fxopt' has no attribute {name!r}")
