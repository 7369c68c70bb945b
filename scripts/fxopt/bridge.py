"""torch.fx graphs and fxopt: save, load, apply, run.

    from fxopt import tool
    from fxopt import bridge

    fxopt.save(graph_module, "step.pb", kind="forward_loss_backward", roles=["parameter", "input"])
    graph_module = fxopt.load("step.pb")
    fxopt.apply(graph_module, "infer-phase,canonicalize,cse,remat,dce")  # in place
    outputs = fxopt.run(graph_module, inputs)

    python -m fxopt save MODULE:FUNCTION -o step.pb
    python -m fxopt load step.pb
    python -m fxopt not-carried

load(save(g)) equals g, in another process too: nodes, names, order, arguments, generated code, metadata by value and
type, which tensors share a storage, subgraphs, constants, symbols with hints, ranges and guards, meshes and process
groups. What is not carried is listed (not-carried); anything else that cannot be written is an error.
No GPU is needed: values are fake tensors. The fxopt program is $FXOPT, else the one that the package carries, else fxopt on PATH.
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
    """A file that save() wrote: where it is, how many graphs it has, subgraphs included, how many nodes these, and how many tags and
    marks of a first partition (ap_must_save) these."""

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
    """Writes a graph to `path` and returns what was written, in numbers.

    graph: a GraphModule; or an ExportedProgram or JointWithDescriptors, which tell roles besides. For other makers of
        graphs see fxopt.origins.
    kind: forward_loss_backward, joint, forward, backward, inference or optimizer; when absent, joint if a placeholder
        is a tangent (backward if all outputs are gradients), forward if AOTAutograd says that an output is saved for
        backward, forward_loss_backward if nodes are marked as autograd's backward, else unspecified.
    roles: of the placeholders, in order or by name; each a role such as "parameter", or the fields of the schema's
        InputSpec, {"role": "parameter", "fqn": "layers.0.weight"}. Where absent, AOTAutograd's descriptors decide.
    outputs: of the leaves of the output, likewise: "loss" or {"role": "gradient", "of": placeholder name}.
    name: of the main graph; subgraphs are named <graph>.<attribute>.
    recipe: the command that made the graph, for the record.
    short_paths: cuts what names this machine from file names.
    drop: metadata keys to leave out, besides those of NOT_CARRIED.
    fxopt: the fxopt program that writes every form but .json (default: $FXOPT, else fxopt on PATH).

    Tensors behind get_attr are written inline up to 1 KiB, larger ones to a file .safetensors of the same name beside
    `path`, which needs the package safetensors. ExportError for what cannot be written, RuntimeError when the fxopt
    program is missing or fails.
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
    """The JSON form of the module in a file of any form. RuntimeError when the fxopt program is missing or refuses it,
    LoadError for a .json file that is none."""
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
    """The GraphModule in a file that save() or the fxopt program wrote.

    fake_mode: the mode its values belong to, its ShapeEnv taking the symbols; a new one when absent.

    Operators and classes of other libraries than torch must have been imported. Device meshes have no communicators. Where
    torch.distributed is initialized, process groups that a pass added are made, on all ranks in one order, so that every rank must
    load its file; others are not: init_fake_groups(read_module(path)) makes fake ones. LoadError for what this process
    cannot build, FxoptError for a file that the fxopt program refuses.
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
    """Runs passes of fxopt over `graph_module` in place and returns it, so that it can stand in any list of passes.

    passes: a pipeline such as "cse,sac{policy=per-op},remat,dce" (default: fxopt's own; "" changes nothing).
    options: further options of `fxopt opt`, such as "--strict-tags".
    told: kind, roles, outputs, num_forward_outputs as of save(), where the graph does not say them itself.

    Nodes that stay are the same objects with the same metadata, but for tags and phases that a pass wrote; copies have
    metadata and a fake value of their own. FxoptWarning, after the module was changed, for what the program warns of and
    for tags that had no effect. FxoptError, with the tool's code, when the program refuses; the module is then as it was.
    """
    program = tool.require_fxopt(fxopt, "apply passes")
    with _disable_current_modes(), form.no_collection():
        patcher.apply(graph_module, passes, program, options, told)
    return graph_module


def graph_pass(passes: str | None = None, **told: Any) -> Callable[..., GraphModule]:
    """apply() with these arguments as a function (graph_module, example_inputs=None) -> graph_module, which is what
    trainers put in their lists of passes."""

    def run_passes(graph_module: GraphModule, example_inputs: object = None, **_: object) -> GraphModule:
        return apply(graph_module, passes, **told)

    run_passes.__name__ = f"fxopt({'default' if passes is None else passes})"
    return run_passes


def run(graph_module: GraphModule, inputs: Sequence[object] | Mapping[str, object]) -> Any:
    """The outputs of the graph on these inputs, by position or by placeholder name. Its own arguments, such as the two lists of
    AOTAutograd's joint graph, are taken as well.

    Runs under no_grad: a traced step holds its own backward, and autograd would keep every intermediate of it alive.
    """
    placeholders = [node.target for node in graph_module.graph.nodes if node.op == "placeholder"]
    if isinstance(inputs, Mapping):
        inputs = [inputs[name] for name in placeholders]
    args, kwargs = _arguments(graph_module, inputs) if len(inputs) == len(placeholders) else (inputs, {})
    with torch.no_grad():
        return graph_module(*args, **kwargs)


def _arguments(graph_module: GraphModule, inputs: Sequence[object]) -> tuple[Sequence[object], dict[str, object]]:
    """What forward takes in place of a value for each placeholder."""
    codegen = graph_module.graph._codegen
    if not isinstance(codegen, _PyTreeCodeGen) or any(isinstance(value, (list, tuple)) for value in inputs):
        return inputs, {}
    args = pytree.tree_unflatten(list(inputs), codegen.pytree_info.in_spec)
    has_keywords = isinstance(args, tuple) and len(args) == 2 and isinstance(args[0], tuple) and isinstance(args[1], dict)
    return args if has_keywords else (args, {})


# ---- command


def load_function(text: str) -> Any:
    """MODULE:FUNCTION, where MODULE is a module's name or a .py file."""
    module_name, _, function_name = text.partition(":")
    if not module_name or not function_name:
        raise argparse.ArgumentTypeError(f"{text!r} is not MODULE:FUNCTION")
    try:
        if module_name.endswith(".py"):
            spec = importlib.util.spec_from_file_location(pathlib.Path(module_name).stem, module_name)
            module = importlib.util.module_from_spec(spec)
            sys.modules[module.__name__] = module  # what it defines can be found again by name
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
        help="MODULE is a name or a .py file; FUNCTION() returns what save takes: a graph, or (graph, arguments)",
    )
    saving.add_argument("-o", "--output", required=True, metavar="FILE", help="a .pb, .fxg or .json file")
    saving.add_argument("--kind", choices=KINDS, help="of the graph, when the function does not say")
    saving.add_argument("--short-paths", action="store_true", help="cut what names this machine from file names")
    saving.add_argument("--drop", action="append", default=[], metavar="KEY", help="a metadata key to leave out")
    saving.set_defaults(act=_save)
    loading = commands.add_parser("load", help="read a graph and print the Python code that torch.fx generates for it")
    loading.add_argument("file", metavar="FILE")
    loading.set_defaults(act=_load)
    for command in (saving, loading):
        command.add_argument("--fxopt", metavar="PROGRAM", help="the fxopt program (default: $FXOPT, else on PATH)")
    listing = commands.add_parser("not-carried", help="list what save does not write, and why")
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

