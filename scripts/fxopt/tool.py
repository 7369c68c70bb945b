"""The fxopt program: where it is, one call of it, what it warns of, and commands that need nothing else. Standard library
only, but for graphs that are not in a file yet.
"""

from __future__ import annotations

import json
import logging
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Sequence

from fxopt import form
from fxopt.form import Json


class FxoptError(RuntimeError):
    """The fxopt program refused: `code` is its error code (FX0306; `fxopt help FX0306` explains it), `exit_code` that of
    the program, `errors` all it said, as in its JSON envelope."""

    def __init__(self, message: str, code: str, exit_code: int, errors: Sequence[Json]) -> None:
        super().__init__(message)
        self.code = code
        self.exit_code = exit_code
        self.errors = errors


class FxoptWarning(UserWarning):
    """What the fxopt program warned of, with its code, or tags that it did not carry out."""


def run_fxopt(program: str, arguments: Sequence[str], folder: pathlib.Path) -> Json:
    """The result in the JSON envelope of one call, whose warnings are issued as FxoptWarning. FxoptError when the program
    does not exit with 0."""
    told = call(program, arguments, folder)
    warn_of(told)
    return told.get("result", {})


def call(program: str, arguments: Sequence[str], folder: pathlib.Path) -> Json:
    """The whole envelope."""
    envelope = folder / "envelope.json"
    run = subprocess.run([program, *arguments, f"--json={envelope}"], capture_output=True, text=True)
    told = json.loads(envelope.read_text(encoding="utf-8")) if envelope.exists() else {}
    if run.returncode != 0:
        errors = told.get("errors", [])
        code = str(errors[0].get("code", "")) if errors else ""
        message = run.stderr.strip() or f"{program} exited with {run.returncode}"
        raise FxoptError(message, code, run.returncode, errors)
    return told


def warn_of(told: Json) -> None:
    """Issues the warnings of an envelope, and one for tags that had no effect."""
    for each in told.get("warnings", []):
        warn(f"fxopt: {each['message']} [{each['code']}]")
    for file in told.get("result", {}).get("files", []):
        if count := file.get("tags_without_effect", 0):
            listed = ", ".join(f"{number} {word}" for word, number in file["tags"].items())
            of = f"{count} {'tag' if count == 1 else 'tags'}"
            warn(f"fxopt: {of} without effect (tags: {listed}); `fxopt help verdicts` explains the words")


def decisions_in(module: Json) -> tuple[int, int]:
    """How many tags the graphs of a module carry, and how many values are marked as saved by a first partition (ap_must_save)."""
    tags, marked = 0, set()
    for graph in module["graphs"]:
        for node in graph["nodes"]:
            tags += "tag" in node
            items = next((entry["value"] for entry in node.get("meta", ()) if entry["key"] == "custom"), {})
            marked |= {(graph["name"], *value) for value in _marked_by(node, items.get("dict", {}).get("items", ()))}
    return tags, len(marked)


def _marked_by(node: Json, items: Sequence[Json]) -> list[tuple[str, int]]:
    """The marked values that the items of `custom` name: by call, and by place where it has several results."""
    custom = {item["key"].get("string"): item["value"] for item in items}
    mark = custom.get("ap_must_save", {})
    if node["kind"] != "NODE_KIND_CALL_FUNCTION" or mark.get("bool_value") is False or not mark or "none" in mark:
        return []
    name = custom.get("ap_must_save_as", {}).get("string", node["name"])
    parts = custom.get("ap_must_save_getitem_indices")
    places = parts.get("ints", {}).get("values", ()) if parts else ()
    return [(name, int(place)) for place in places] if parts else [(name, -1)]


def tell_decisions(what: str, module: Json) -> None:
    """One line on the tags and marks that were seen, for whoever wonders whether theirs arrived."""
    tags, marks = decisions_in(module)
    of_marks = f"{marks} {'mark' if marks == 1 else 'marks'} (ap_must_save)"
    _logger().info("%s: saw %d %s, %s", what, tags, "tag" if tags == 1 else "tags", of_marks)


def _logger() -> logging.Logger:
    """The logger "fxopt". Where nobody has set it up, its lines go to standard error."""
    logger = logging.getLogger("fxopt")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.INFO)
    if not logger.hasHandlers():
        logger.addHandler(logging.StreamHandler())
    return logger


def warn(message: str) -> None:
    """Says it once for each line that calls, as seen by whoever imports this package."""
    warnings.warn(message, FxoptWarning, stacklevel=_frames_here())


def _frames_here() -> int:
    """The frames from warn() up to the first outside of this package."""
    folder = str(pathlib.Path(__file__).resolve().parent)
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and str(pathlib.Path(frame.f_code.co_filename).resolve().parent) == folder:
        frame, level = frame.f_back, level + 1
    return level


def find_fxopt(option: str | None = None) -> str | None:
    """The fxopt program: the option, else the environment variable FXOPT, else the one that the package carries, else
    `fxopt` on PATH."""
    if name := option or os.environ.get("FXOPT"):
        return shutil.which(name)
    carried = pathlib.Path(__file__).resolve().parent / "bin" / "fxopt"
    return str(carried) if carried.exists() else shutil.which("fxopt")


def require_fxopt(option: str | None, purpose: str) -> str:
    """The same. RuntimeError where there is none: it could not do what `purpose` says."""
    program = find_fxopt(option)
    if program is None:
        wanted = option or os.environ.get("FXOPT") or "fxopt on PATH"
        raise RuntimeError(f"cannot {purpose}: no fxopt program ({wanted}); build it, or set FXOPT to it")
    return program


def write_module(module: Json, path: str | os.PathLike[str], fxopt: str | None = None) -> None:
    """Writes `module` in the form that the name's extension asks for: .json here, any other by the fxopt program.

    RuntimeError when the program is missing or refuses the module.
    """
    target = pathlib.Path(path)
    if target.suffix == ".json":
        form.write_json(module, target)
        return
    program = find_fxopt(fxopt)
    if program is None:
        wanted = fxopt or os.environ.get("FXOPT") or "fxopt on PATH"
        raise RuntimeError(
            f"cannot write {target}: no fxopt program ({wanted}); build it, set FXOPT to it, or write .json"
        )
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "module.json"
        form.write_json(module, source)
        run = subprocess.run([program, "convert", str(source), "-o", str(target)], capture_output=True, text=True)
    if run.returncode != 0:
        reason = f"{program} convert exited with {run.returncode}: {run.stderr.strip()}"
        raise RuntimeError(f"cannot write {target}: {reason}")


# ---- commands on a file, or on a graph that save() takes


def mem(graph: object, *options: str, fxopt: str | None = None) -> Json:
    """What `fxopt mem --json` says of a graph: its memory by graph and device.

    graph: the path of a file, or what save() takes.
    options: of the command, such as "--device", "h100". FxoptError where the program refuses or a gate fails.
    """
    return _on_file("mem", graph, [], options, fxopt)


def explain(graph: object, node: str, *options: str, fxopt: str | None = None) -> Json:
    """What `fxopt explain --json` says of a node: why it is saved or recomputed, and what the other choice would do."""
    return _on_file("explain", graph, [node], options, fxopt)


def tags(graph: object, *options: str, fxopt: str | None = None) -> Json:
    """What `fxopt tags --json` says: what became, or would become, of each tag."""
    return _on_file("tags", graph, [], options, fxopt)


def verify(graph: object, *options: str, fxopt: str | None = None) -> Json:
    """What `fxopt verify --json` says of a well-formed graph. FxoptError, with all that is broken in `errors`, where it is
    not."""
    return _on_file("verify", graph, [], options, fxopt)


def _on_file(command: str, graph: object, more: Sequence[str], options: Sequence[str], fxopt: str | None) -> Json:
    program = require_fxopt(fxopt, f"run fxopt {command}")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if not isinstance(graph, str | os.PathLike):
            from fxopt import bridge  # needs torch

            graph = bridge.save(graph, folder / "graph.pb", fxopt=program).path
        result = run_fxopt(program, [command, os.fspath(graph), *more, *options], folder)
        return result["files"][0] if "files" in result else result
