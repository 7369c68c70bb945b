"""Puts one graph through pipelines: compares PyTorch's results before and after, the proof's
verdict, and the ideal peak with a count."""

from __future__ import annotations

import json
import pathlib
import shutil
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import fxopt
import torch
from differential_parts import observe
from fxopt import tool
from fxopt.tool import FxoptError
from torch import Tensor
from torch.fx import GraphModule
from torch.fx.graph import CodeGen

from kinds_parts import counting
from kinds_parts.counting import leaves_of, names_of
from kinds_parts.tracing import Case, Traced, copies

Json = dict[str, Any]
ALL_RULES = 'canonicalize{rules="aliases,identity-views,identity-slices,round-trips,reshapes"},cse,dce'
PIPELINES = (
    "infer-phase,canonicalize,cse,remat,dce", "canonicalize", "cse", "canonicalize,cse,dce", "remat,dce", "sac{policy=full},remat,dce",
    "sac{policy=per-op},remat,dce", "canonicalize,cse,sac{policy=full},remat,dce", "raise-getitems", "infer-phase,canonicalize,cse,dce", "dce",
    "cse{across-phases=true},dce", ALL_RULES,
)  # fmt: skip
CUTS = (
    "partition", "partition{mode=min-cut}", "partition{mode=min-cut,compat=torch}", "sac{policy=full},partition", "sac{policy=per-op},partition",
    "canonicalize,cse,dce,partition,canonicalize,cse,dce", "partition{mode=inference}", "partition,join", "partition{mode=min-cut},join",
    "partition{mode=min-cut,mark-saved=true},join,partition{mode=save-all}", "canonicalize,cse,sac{policy=full},remat,partition",
)  # fmt: skip
LOADED = "(saved and loaded)"
NOT_PROVED = "undecided"


@dataclass
class Row:
    """The counts of one kind."""

    graphs: int = 0
    runs: int = 0
    changed: int = 0  # runs whose pipeline changed the graph
    refused: int = 0
    undecided: int = 0
    wrong: int = 0
    equal: int = 0  # peaks
    reasons: int = 0
    unequal: int = 0

    def add(self, other: Row) -> None:
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


@dataclass
class Judged:
    """The outcome of one graph. lines: all errors; notes: correct results that deserve
    attention."""

    row: Row = field(default_factory=Row)
    lines: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class Unusable(Exception):
    """The graph shows nothing: PyTorch cannot make or run it, or two runs of it differ."""


class Judge:
    def __init__(self, case: Case, program: str, folder: pathlib.Path, write: pathlib.Path | None, every_node: bool) -> None:
        self.case = case
        self.program = program
        self.folder = folder
        self.write = write
        self.every_node = every_node
        self.result = Judged()
        self.source = folder / "before.pb"

    def run(self, count: int | None) -> Judged:
        self.result.row.graphs = 1
        torch.manual_seed(0)
        try:
            self.traced = self.case.make()
        except Exception as error:  # anything that PyTorch raises
            self._wrong("-", f"it cannot be made: {type(error).__name__}: {_first_line(error)}")
            return self.result
        try:
            fxopt.save(self.traced.graph, self.source, fxopt=self.program, **self.traced.told)
            self._before()
        # a graph that PyTorch makes must be savable, loadable and runnable
        except Exception as error:
            self._wrong(LOADED, f"{type(error).__name__}: {_first_line(error)}")
            return self.result
        pipelines = PIPELINES + (CUTS if self.is_joint else ())
        for number, passes in enumerate(pipelines[:count]):
            self.result.row.runs += 1
            try:
                self._judge(passes, self.folder / f"after{number}.pb")
            except FxoptError as error:
                self._refused(passes, error)
            except Exception as error:  # fxopt's output must be loadable and runnable
                self._wrong(passes, f"{type(error).__name__}: {_first_line(error)}")
        return self.result

    @property
    def is_joint(self) -> bool:
        return self.traced.told.get("kind") == "joint"

    def _before(self) -> None:
        self.module = fxopt.read_module(self.source, self.program)
        self.written = _written(self.module) if self.is_joint else {}
        self.graph_module = loaded(self.source, self.program)
        self._names = names_of(self.graph_module)
        self.seen = self._seen(self.graph_module)
        if self.seen.error is not None:
            raise Unusable(self.seen.error)
        if again := observe.differences(self.seen, self._seen(self.graph_module)):
            raise Unusable(f"two runs differ: {'; '.join(again[:3])}")
        made = plain(self.traced.graph_module)
        if found := observe.differences(self._seen(made), self.seen):
            self._wrong(LOADED, "; ".join(found[:3]))
        self._peak(LOADED, self.graph_module, self.source)

    def _seen(self, graph_module: GraphModule) -> observe.Seen:
        return self._execute(lambda *given: self._with_writes(graph_module, given), observe.attributes_of(graph_module))

    def _with_writes(self, graph_module: GraphModule, given: Sequence[object]) -> list[object]:
        outputs = leaves_of(graph_module(*given))
        self._write(given, outputs)
        return outputs

    def _execute(self, function: Callable[..., object], attributes: dict[str, Tensor]) -> observe.Seen:
        with observe.kept(attributes):
            return observe.execute(function, copies(self.traced.inputs), attributes)

    # ---- one pipeline

    def _judge(self, passes: str, target: pathlib.Path) -> None:
        is_pair = "partition" in passes and not passes.endswith("join") and "inference" not in passes
        split = ("--split",) if is_pair else ()
        told = self._call("opt", str(self.source), "-o", str(target), "--passes", passes, "--no-reproducer", *split)
        self.result.row.changed += any(step["changed"] for step in told["result"]["files"][0]["passes"])
        for warning in told["warnings"]:
            if warning["code"] == "unproved":
                self._note(passes, f"opt: {warning['message']}")
        halves = [target.with_name(f"{target.stem}.{half}.pb") for half in ("forward", "backward")]
        paths = halves if is_pair else [target]
        proof = self._verify(
            paths, is_step="partition" in passes and "inference" not in passes, is_inference="inference" in passes
        )
        if proof != "proved":
            self.result.row.undecided += proof == NOT_PROVED
            (self._note if proof == NOT_PROVED else self._wrong)(passes, f"verify: {proof}", *paths)
        if is_pair:
            self._judge_pair(passes, *halves)
            return
        after = loaded(target, self.program)
        if "inference" in passes:
            self._judge_inference(passes, after, target)
            return
        self._compare(passes, self.seen, self._seen(after), target)
        self._peak(passes, after, target)

    def _verify(self, paths: Sequence[pathlib.Path], *, is_step: bool, is_inference: bool) -> str:
        options = ["--step"] * is_step + ["--allow", "no-backward"] * is_inference
        try:
            told = self._call("verify", *map(str, paths), *options, "--against", str(self.source))
        except FxoptError as error:
            return f"exit code {error.exit_code}: {_first_line(error)}"
        return (told["result"]["step"] if is_step else told["result"]["files"][0]).get("proof", "no answer")

    def _judge_pair(self, passes: str, *paths: pathlib.Path) -> None:
        forward, backward = (loaded(path, self.program) for path in paths)
        attributes = observe.attributes_of(forward)
        for path, tensor in observe.attributes_of(backward).items():
            if path in attributes:
                _put(backward, path, attributes[path])
            attributes.setdefault(path, tensor)
        count = self.traced.told["num_forward_outputs"]

        def step(*given: object) -> list[object]:
            named = dict(zip(self._names, given, strict=True))
            returned = leaves_of(forward(*[named[name] for name in names_of(forward)]))
            for place, name in self.written.items():
                named[name].copy_(returned[place])
            saved = {leaf.name: value for leaf, value in zip(counting.outputs_of(forward), returned, strict=True) if hasattr(leaf, "name")}
            saved |= named  # a saved input is the input itself
            return [*returned[:count], *leaves_of(backward(*[saved[name] for name in names_of(backward)]))]

        self._compare(passes, self.seen, self._execute(step, attributes), *paths)
        inputs = dict(zip(self._names, copies(self.traced.inputs), strict=True))
        torch.manual_seed(observe.SEED)
        with observe.kept(attributes):
            counted = counting.peak_of_pair(forward, backward, inputs, self.written, count)
        self._compare_peaks(passes, counted, paths, (forward, backward), None)

    def _judge_inference(self, passes: str, after: GraphModule, target: pathlib.Path) -> None:
        """Compares the results of forward alone."""
        count = self.traced.told["num_forward_outputs"]
        places = [self._names.index(name) for name in names_of(after)]

        def joint(*given: object) -> list[object]:
            return self._with_writes(self.graph_module, given)[:count]

        def forward(*given: object) -> list[object]:
            outputs = leaves_of(after(*[given[place] for place in places]))
            self._write(given, outputs)
            return outputs

        before = self._execute(joint, observe.attributes_of(self.graph_module))
        found = self._execute(forward, observe.attributes_of(after))
        found.generator = before.generator if found.error is None else b""  # backward may also draw
        self._compare(passes, before, found, target)
        self._peak(passes, after, target, [self.traced.inputs[place] for place in places])

    def _write(self, given: Sequence[object], outputs: Sequence[object]) -> None:
        for place, name in self.written.items():
            given[self._names.index(name)].copy_(outputs[place])

    def _compare(self, passes: str, before: observe.Seen, after: observe.Seen, *paths: pathlib.Path) -> None:
        if found := observe.differences(before, after):
            more = f"; {len(found) - 4} more" if len(found) > 4 else ""
            self._wrong(passes, "; ".join(found[:4]) + more, *paths)

    # ---- peaks

    def _peak(self, passes: str, graph_module: GraphModule, path: pathlib.Path, inputs: Sequence[object] | None = None) -> None:
        given = self.traced.inputs if inputs is None else inputs
        torch.manual_seed(observe.SEED)
        with observe.kept(observe.attributes_of(graph_module)):
            run = counting.counted(graph_module, copies(given))
        self._compare_peaks(passes, run.peak, [path], [graph_module], given)
        if self.every_node and (found := self._other_node(run, path)):
            self.result.lines.append(self._line(passes, found))

    def _other_node(self, run: counting.Run, path: pathlib.Path) -> str:
        """The first node at which the live bytes differ from fxopt's; empty if none does or sizes
        are unknown."""
        trace = self.folder / "trace.json"
        report = self._memory([path], None, "--trace", str(trace))
        if report["unknown_storages"]:
            return ""
        for event in json.loads(trace.read_text(encoding="utf-8"))["traceEvents"]:
            said = sum(event.get("args", {}).get("live_bytes", {}).values())
            if event["ph"] == "X" and event["name"] in run.live and said != run.live[event["name"]]:
                return f"at %{event['name']} ({event['args']['target']}) {said} live bytes are reported, {run.live[event['name']]} counted"
        return ""

    def _compare_peaks(
        self,
        passes: str,
        counted: counting.Counted,
        paths: Sequence[pathlib.Path],
        graph_modules: Sequence[GraphModule],
        inputs: Sequence[object] | None,
    ) -> None:
        report, sizes = self._memory(paths), {}
        if report["unknown_storages"] and inputs is not None:
            torch.manual_seed(observe.SEED)
            with observe.kept(observe.attributes_of(graph_modules[0])):
                sizes = counting.sizes_of_symbols(graph_modules[0], copies(inputs))
            report = self._memory(paths, sizes)
        said = sum(device["ideal"]["peak_bytes"] for device in report["devices"])
        if said == counted.bytes and not report["unknown_storages"]:
            self.result.row.equal += 1
            return
        nodes = ", ".join(device["ideal"]["node"] for device in report["devices"])
        shown = f"the reported peak is {said} at %{nodes}, the counted one {counted.bytes} at %{counted.node}"
        reason = self._reason(report, said, counted, graph_modules, inputs, sizes)
        if reason:
            self.result.row.reasons += 1
            self._note(passes, f"{shown}: {reason}")
        else:
            self.result.row.unequal += 1
            self._write_files(passes, paths)
            self.result.lines.append(self._line(passes, shown))

    def _memory(self, paths: Sequence[pathlib.Path], sizes: Mapping[str, int] | None = None, *more: str) -> Json:
        symbols = [argument for name, size in (sizes or {}).items() for argument in ("--symbol", f"{name}={size}")]
        told = self._call("mem", *map(str, paths), *symbols, *(["--step"] * (len(paths) > 1)), *more)
        return told["result"]["files"][0]["graphs"][0]

    def _reason(
        self,
        report: Json,
        said: int,
        counted: counting.Counted,
        graph_modules: Sequence[GraphModule],
        inputs: Sequence[object] | None,
        sizes: Mapping[str, int],
    ) -> str:
        """Why the peaks may differ; empty without a known reason."""
        if report["unknown_storages"]:
            names = ", ".join(report["unknown_nodes"][:3])
            reason = f"the report calls it a lower bound, {report['unknown_storages']} sizes are unknown ({names})"
            return reason if said <= counted.bytes else ""
        if inputs is None:
            return ""
        torch.manual_seed(observe.SEED)
        with observe.kept(observe.attributes_of(graph_modules[0])):
            record = counting.other_record(graph_modules[0], copies(inputs), sizes)
        if not record:
            return ""
        is_recorded = counting.recorded_peak(graph_modules[0], sizes) == said
        return f"it is what PyTorch recorded: {record}" if is_recorded else ""

    # ---- commands and messages

    def _call(self, *arguments: str) -> Json:
        (self.folder / "envelope.json").unlink(missing_ok=True)
        return tool.call(self.program, arguments, self.folder)

    def _refused(self, passes: str, error: FxoptError) -> None:
        if error.exit_code == 1 or error.exit_code < 0 or error.code == "FX0420":
            self._wrong(passes, f"exit code {error.exit_code}: {_first_line(error)}")
            return
        self.result.row.refused += 1
        self._note(passes, f"refused: {_first_line(error)}")

    def _line(self, passes: str, text: str) -> str:
        return f"{self.case.kind}: {self.case.name}: '{passes}': {text}".replace(f"{self.folder}/", "")

    def _note(self, passes: str, text: str, *_: pathlib.Path) -> None:
        self.result.notes.append(self._line(passes, text))

    def _wrong(self, passes: str, text: str, *paths: pathlib.Path) -> None:
        self.result.row.wrong += 1
        self.result.lines.append(self._line(passes, text))
        self._write_files(passes, paths)

    def _write_files(self, passes: str, paths: Sequence[pathlib.Path]) -> None:
        if self.write is None:
            return
        self.write.mkdir(parents=True, exist_ok=True)
        for path in (self.source, *(path for path in paths if path != self.source)):
            for found in path.parent.glob(f"{path.stem}.*") if path.exists() else ():
                name = (
                    f"{self.case.name}.{found.name}" if path == self.source else f"{self.case.name}.{_words(passes)}.{found.name}"
                )
                shutil.copy(found, self.write / name)


def plain(graph_module: GraphModule) -> GraphModule:
    """Makes the graph callable with a value for each placeholder."""
    graph_module.graph.set_codegen(CodeGen())
    graph_module.recompile()
    return graph_module


def loaded(path: pathlib.Path, program: str) -> GraphModule:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return plain(fxopt.load(path, fxopt=program))


def _put(graph_module: GraphModule, path: str, tensor: Tensor) -> None:
    *folders, name = path.split(".")
    owner = graph_module.get_submodule(".".join(folders))
    setattr(owner, name, tensor)


def _written(module: Json) -> dict[int, str]:
    """Outputs of the main graph that are new values of inputs, by their place."""
    specs = module["graphs"][0].get("outputs", ())
    return {place: spec["of"] for place, spec in enumerate(specs) if spec.get("role") == "OUTPUT_ROLE_MUTATION"}


def _first_line(error: BaseException) -> str:
    lines = [line for line in str(error).strip().splitlines() if line]
    return " | ".join(lines[:2])[:300]


def _words(passes: str) -> str:
    return "".join(letter if letter.isalnum() or letter == "-" else "_" for letter in passes).strip("_")


__all__ = ["Judge", "Judged", "Row", "Traced"]
