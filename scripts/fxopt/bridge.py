"""Save, load, transform and run torch.fx graphs with fxopt.

    import fxopt

    fxopt.save(graph_module, "step.pb", kind="forward_loss_backward", roles=["parameter", "input"])
    graph_module = fxopt.load("step.pb")
    fxopt.apply(graph_module, "infer-phase,canonicalize,cse,remat,dce")  # in place
    outputs = fxopt.run(graph_module, inputs)

    python -m fxopt save MODULE:FUNCTION -o step.pb
    python -m fxopt load step.pb
    python -m fxopt not-carried

load(save(g)) equals g, also in another process: nodes, names, order, arguments, generated code,
metadata by value and type, shared storages, subgraphs, constants, symbols with hints, ranges and
guards, meshes and process groups. `python -m fxopt not-carried` lists the exceptions; anything else
that cannot be written is an error.

No GPU is needed: values are fake tensors. The fxopt program is $FXOPT, else the one in the package,
else fxopt on PATH.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import importlib.util
import json
import os
import pathlib
import sys
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import torch
from torch._subclasses import FakeTensorMode
from torch.fx import GraphModule
from torch.fx.graph import _PyTreeCodeGen
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import _disable_current_modes

from fxopt import form, origins, patcher, tool
from fxopt.form import Json
from fxopt.objects import name_of as target_name
from fxopt.reader import Importer, LoadError, init_fake_groups, located, make_groups
from fxopt.timing import measure
from fxopt.tool import FxoptError, FxoptWarning
from fxopt.writer import KINDS, NOT_CARRIED, NOT_CARRIED_THINGS, Exporter, ExportError, Roles, RoleSpec, last_frame

__all__ = [
    "NOT_CARRIED",
    "NOT_CARRIED_THINGS",
    "ExportError",
    "FxoptError",
    "FxoptWarning",
    "LoadError",
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
]


@dataclasses.dataclass(frozen=True)
class Written:
    """A file that save() wrote: its path and its numbers of graphs (subgraphs included), nodes,
    tags, and marks of a first partition (ap_must_save)."""

    path: str
    graphs: int
    nodes: int
    tags: int
    marks: int


def save(
    graph: object,
    path: str | os.PathLike[str],
    *,
    kind: str | None = None,
    roles: Roles = None,
    outputs: Sequence[RoleSpec] | None = None,
    num_forward_outputs: int | None = None,
    name: str = "main",
    module_name: str | None = None,
    recipe: str | None = None,
    short_paths: bool = False,
    drop: Collection[str] = (),
    fxopt: str | None = None,
) -> Written:
    """Writes a graph to `path` and returns the numbers of graphs, nodes, tags and marks written.

    graph: a GraphModule, an ExportedProgram or a JointWithDescriptors. The last two also give the
        roles of inputs and outputs. fxopt.origins has functions for other makers of graphs.
    kind: forward_loss_backward, joint, forward, backward, inference or optimizer. Default: joint if
        a placeholder is a tangent (backward if all outputs are gradients); forward if AOTAutograd
        records an output as saved for backward; forward_loss_backward if nodes are marked as
        autograd's backward; else unspecified.
    roles: the placeholders' roles, in order or by name. Each is a name such as "parameter", or the
        fields of the schema's InputSpec: {"role": "parameter", "fqn": "layers.0.weight"}.
        Default: AOTAutograd's descriptors.
    outputs: the roles of the output's leaves, in order: "loss" or
        {"role": "gradient", "of": placeholder name}.
    num_forward_outputs: the number of leading outputs that belong to the forward function, for a
        joint or forward graph.
    name: the main graph's name. Subgraphs are named <graph>.<attribute>.
    module_name: the module's name in the file. Default: `name`.
    recipe: the command that made the graph, for the record.
    short_paths: cuts machine-specific folders from file names: the current directory, and the path
        above the folder of installed packages.
    drop: metadata keys to leave out, besides those of NOT_CARRIED.
    fxopt: the fxopt program, which writes every form except .json (default: see find_fxopt).

    Tensors behind get_attr are stored inline up to 1 KiB. Larger ones go to a .safetensors file of
    the same name beside `path`, which needs the package safetensors. Raises ExportError for an
    object that cannot be written, RuntimeError if the fxopt program is missing or fails.
    """
    graph_module, known = origins.of(graph)
    told = {"kind": kind, "roles": roles, "outputs": outputs, "num_forward_outputs": num_forward_outputs}
    told = known | {key: value for key, value in told.items() if value is not None}
    target = pathlib.Path(path)
    exporter = Exporter(target, short_paths=short_paths, drop=drop)
    # The caller's fake mode would fake the ranks of meshes and the data of constants.
    with _disable_current_modes(), form.no_collection():
        module = exporter.module(graph_module, name=name, **told)
        if module_name:
            module["name"] = module_name
        if recipe:
            module["producer"]["recipe"] = recipe
        with exporter.large_constants():
            tool.write_module(module, target, fxopt)
    tool.tell_decisions(f"fxopt.save {target}", module)
    nodes = sum(len(graph["nodes"]) for graph in module["graphs"])
    return Written(str(target), len(module["graphs"]), nodes, *tool.decisions_in(module))


def read_module(path: str | os.PathLike[str], fxopt: str | None = None) -> Json:
    """Returns the module of a file of any form, in JSON form.

    Raises RuntimeError if the fxopt program is missing or refuses the file, LoadError for a .json
    file that holds no module.
    """
    source = pathlib.Path(path)
    if source.suffix == ".json":
        text = source.read_text(encoding="utf-8")
        with located(str(source)):
            return json.loads(text)["module"]
    program = tool.require_fxopt(fxopt, f"read {source}")
    with tempfile.TemporaryDirectory() as folder:
        target = pathlib.Path(folder) / "module.json"
        tool.run_fxopt(program, ["convert", str(source), "-o", str(target)], pathlib.Path(folder))
        return json.loads(target.read_text(encoding="utf-8"))["module"]


def load(
    path: str | os.PathLike[str], *, fake_mode: FakeTensorMode | None = None, fxopt: str | None = None
) -> GraphModule:
    """Returns the GraphModule in a file that save() or the fxopt program wrote.

    fake_mode: the mode of its values, whose ShapeEnv receives the symbols. Default: a new one.

    Import operators and classes of libraries other than torch first. Device meshes have no
    communicators. If torch.distributed is initialized, load() creates the process groups that a
    pass added, in one order on all ranks, so every rank must load its file. It creates no other
    groups; init_fake_groups(read_module(path)) makes fake ones. Raises LoadError for an object that
    this process cannot build, FxoptError for a file that the fxopt program refuses.
    """
    source = pathlib.Path(path)
    with _disable_current_modes(), form.no_collection():
        module = read_module(source, fxopt)
        with located(str(source)):
            make_groups(module)
            return Importer(module, source, fake_mode).load()


def apply(
    graph_module: GraphModule,
    passes: str | None = None,
    *,
    options: Sequence[str] = (),
    fxopt: str | None = None,
    **told: Any,
) -> GraphModule:
    """Runs fxopt's passes over `graph_module` in place and returns it.

    passes: a pipeline such as "cse,sac{policy=per-op},remat,dce". Default: fxopt's own; "" changes
        nothing.
    options: further options of `fxopt opt`, such as "--strict-tags".
    told: kind, roles, outputs and num_forward_outputs as in save(), if the graph lacks them.

    Remaining nodes are the same objects with the same metadata, except for tags and phases that a
    pass wrote. Copies have their own metadata and fake value. Issues FxoptWarning, after the module
    was changed, for the program's warnings and for tags without effect. Raises FxoptError with the
    program's error code if the program refuses; the module is then unchanged.
    """
    program = tool.require_fxopt(fxopt, "apply passes")
    with _disable_current_modes(), form.no_collection():
        patcher.apply(graph_module, passes, program, options, told)
    return graph_module


def graph_pass(passes: str | None = None, **told: Any) -> Callable[..., GraphModule]:
    """Returns apply() with these arguments as a function for a trainer's list of passes:
    (graph_module, example_inputs=None) -> graph_module."""

    def run_passes(graph_module: GraphModule, example_inputs: object = None, **_: object) -> GraphModule:
        return apply(graph_module, passes, **told)

    run_passes.__name__ = f"fxopt({'default' if passes is None else passes})"
    return run_passes


def run(graph_module: GraphModule, inputs: Sequence[object] | Mapping[str, object]) -> Any:
    """Runs the graph and returns its outputs.

    inputs: one for each placeholder, in order or by placeholder name; or the arguments of the
        graph's own calling convention, such as the two lists of AOTAutograd's joint graph.

    Runs under no_grad: a traced step holds its own backward, and autograd would keep all its
    intermediates alive.
    """
    placeholders = [node.target for node in graph_module.graph.nodes if node.op == "placeholder"]
    if isinstance(inputs, Mapping):
        inputs = [inputs[name] for name in placeholders]
    args, kwargs = _arguments(graph_module, inputs) if len(inputs) == len(placeholders) else (inputs, {})
    with torch.no_grad():
        return graph_module(*args, **kwargs)


def _arguments(graph_module: GraphModule, inputs: Sequence[object]) -> tuple[Sequence[object], dict[str, object]]:
    """Returns the arguments of the module's forward for one value per placeholder."""
    codegen = graph_module.graph._codegen
    if not isinstance(codegen, _PyTreeCodeGen) or any(isinstance(value, (list, tuple)) for value in inputs):
        return inputs, {}
    args = pytree.tree_unflatten(list(inputs), codegen.pytree_info.in_spec)
    has_keywords = isinstance(args, tuple) and len(args) == 2 and isinstance(args[0], tuple) and isinstance(args[1], dict)
    return args if has_keywords else (args, {})


# ---- command


def load_function(text: str) -> Any:
    """Returns the function named MODULE:FUNCTION. MODULE is a module's name or a .py file."""
    module_name, _, function_name = text.partition(":")
    if not module_name or not function_name:
        raise argparse.ArgumentTypeError(f"{text!r} is not MODULE:FUNCTION")
    try:
        if module_name.endswith(".py"):
            spec = importlib.util.spec_from_file_location(pathlib.Path(module_name).stem, module_name)
            module = importlib.util.module_from_spec(spec)
            sys.modules[module.__name__] = module  # makes its definitions importable by name
            spec.loader.exec_module(module)
        else:
            sys.path.insert(0, os.getcwd())
            module = importlib.import_module(module_name)
    except (ImportError, OSError) as error:
        raise argparse.ArgumentTypeError(f"cannot import {module_name}: {error}") from error
    if not callable(function := getattr(module, function_name, None)):
        raise argparse.ArgumentTypeError(f"{module_name} has no function {function_name}")
    return function


def _save(options: argparse.Namespace) -> None:
    result = options.function()
    graph, told = result if isinstance(result, tuple) else (result, {})
    told = {"kind": options.kind, "short_paths": options.short_paths, "drop": options.drop} | told
    written = save(graph, options.output, fxopt=options.fxopt, **told)
    print(f"{written.path}: {written.graphs} graphs, {written.nodes} nodes", file=sys.stderr)


def _load(options: argparse.Namespace) -> None:
    print(load(options.file, fxopt=options.fxopt).code)


def _not_carried(options: argparse.Namespace) -> None:
    for key, reason in NOT_CARRIED.items():
        print(f"metadata {key!r}: {reason}")
    for thing, reason in NOT_CARRIED_THINGS.items():
        print(f"{thing}: {reason}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="torch.fx graphs and fxopt.")
    commands = parser.add_subparsers(dest="command", required=True)
    saving = commands.add_parser("save", help="write the GraphModule that a Python function returns")
    saving.add_argument(
        "function",
        metavar="MODULE:FUNCTION",
        type=load_function,
        help="MODULE is a name or a .py file; FUNCTION() returns a graph, or (graph, arguments of fxopt.save)",
    )
    saving.add_argument("-o", "--output", required=True, metavar="FILE", help="a .pb, .fxg or .json file")
    saving.add_argument("--kind", choices=KINDS, help="the graph's kind, if FUNCTION gives none")
    saving.add_argument("--short-paths", action="store_true", help="cut machine-specific folders from file names")
    saving.add_argument("--drop", action="append", default=[], metavar="KEY", help="leave out this metadata key; repeatable")
    saving.set_defaults(act=_save)
    loading = commands.add_parser("load", help="read a graph and print the Python code that torch.fx generates for it")
    loading.add_argument("file", metavar="FILE")
    loading.set_defaults(act=_load)
    for command in (saving, loading):
        command.add_argument("--fxopt", metavar="PROGRAM", help="the fxopt program (default: $FXOPT, else on PATH)")
    listing = commands.add_parser("not-carried", help="list the facts that save does not write, with reasons")
    listing.set_defaults(act=_not_carried)
    return parser


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        options.act(options)
    except (ExportError, LoadError, OSError, RuntimeError, TypeError) as error:
        print(f"fxopt: {error}", file=sys.stderr)
        return 1
    return 0

