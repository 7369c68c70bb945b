"""Find and run the fxopt program, and return its reports as data.

Needs the standard library only, except for a graph that is not in a file yet.
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
    """The fxopt program refused.

    code: the first error's code, such as FX0306; `fxopt help FX0306` explains it.
    exit_code: the program's exit code.
    errors: all errors, as in the program's JSON envelope.
    """

    def __init__(self, message: str, code: str, exit_code: int, errors: Sequence[Json]) -> None:
        super().__init__(message)
        self.code = code
        self.exit_code = exit_code
        self.errors = errors


class FxoptWarning(UserWarning):
    """A warning of the fxopt program with its code, or a count of tags without effect."""


def run_fxopt(program: str, arguments: Sequence[str], folder: pathlib.Path) -> Json:
    """Runs the program and returns the result in its JSON envelope.

    Issues the program's warnings as FxoptWarning. Raises FxoptError if the exit code is not 0.
    """
    told = call(program, arguments, folder)
    warn_of(told)
    return told.get("result", {})


def call(program: str, arguments: Sequence[str], folder: pathlib.Path) -> Json:
    """Runs the program and returns its JSON envelope. Raises FxoptError if the exit code is not
    0."""
    envelope = folder / "envelope.json"
    run = subprocess.run([program, *arguments, f"--json={envelope}"], capture_output=True, text=True)
    told = json.loads(envelope.read_text(encoding="utf-8")) if envelope.exists() else {}
    if run.returncode != 0:
        errors = told.get("errors", [])
        code = str(errors[0].get("code", "")) if errors else ""
        message = run.stderr.strip().replace(f"{folder}/", "") or f"{program} exited with {run.returncode}"
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
    """Counts a module's tags, and its values that a first partition marked as saved
    (ap_must_save)."""
    tags, marked = 0, set()
    for graph in module["graphs"]:
        for node in graph["nodes"]:
            tags += "tag" in node
            items = next((entry["value"] for entry in node.get("meta", ()) if entry["key"] == "custom"), {})
            marked |= {(graph["name"], *value) for value in _marked_by(node, items.get("dict", {}).get("items", ()))}
    return tags, len(marked)


def _marked_by(node: Json, items: Sequence[Json]) -> list[tuple[str, int]]:
    """Returns the marked values that the items of `custom` name: (name of the call, index of its
    result), with index -1 if the mark names no index."""
    custom = {item["key"].get("string"): item["value"] for item in items}
    mark = custom.get("ap_must_save", {})
    if node["kind"] != "NODE_KIND_CALL_FUNCTION" or mark.get("bool_value") is False or not mark or "none" in mark:
        return []
    name = custom.get("ap_must_save_as", {}).get("string", node["name"])
    parts = custom.get("ap_must_save_getitem_indices")
    places = parts.get("ints", {}).get("values", ()) if parts else ()
    return [(name, int(place)) for place in places] if parts else [(name, -1)]


def tell_decisions(what: str, module: Json) -> None:
    """Logs one line with the numbers of tags and marks seen, so that users can check theirs
    arrived."""
    tags, marks = decisions_in(module)
    of_marks = f"{marks} {'mark' if marks == 1 else 'marks'} (ap_must_save)"
    _logger().info("%s: saw %d %s, %s", what, tags, "tag" if tags == 1 else "tags", of_marks)


def _logger() -> logging.Logger:
    """Returns the logger "fxopt". Unless it is configured, its lines go to standard error."""
    logger = logging.getLogger("fxopt")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.INFO)
    if not logger.hasHandlers():
        logger.addHandler(logging.StreamHandler())
    return logger


def warn(message: str) -> None:
    """Issues an FxoptWarning that points at the caller's line outside this package."""
    warnings.warn(message, FxoptWarning, stacklevel=_frames_here())


def _frames_here() -> int:
    """Counts the frames from warn() up to the first one outside this package."""
    folder = str(pathlib.Path(__file__).resolve().parent)
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and str(pathlib.Path(frame.f_code.co_filename).resolve().parent) == folder:
        frame, level = frame.f_back, level + 1
    return level


def find_fxopt(option: str | None = None) -> str | None:
    """Returns the path of the fxopt program: `option`, else the environment variable FXOPT, else
    the program in the package, else `fxopt` on PATH. None if it does not exist."""
    if name := option or os.environ.get("FXOPT"):
        return shutil.which(name)
    carried = pathlib.Path(__file__).resolve().parent / "bin" / "fxopt"
    return str(carried) if carried.exists() else shutil.which("fxopt")


def require_fxopt(option: str | None, purpose: str) -> str:
    """Like find_fxopt(), but raises RuntimeError if no program exists.

    purpose: completes the error message "cannot ...".
    """
    program = find_fxopt(option)
    if program is None:
        wanted = option or os.environ.get("FXOPT") or "fxopt on PATH"
        raise RuntimeError(f"cannot {purpose}: no fxopt program ({wanted}); build it, or set FXOPT to it")
    return program


def write_module(module: Json, path: str | os.PathLike[str], fxopt: str | None = None) -> None:
    """Writes `module` in the form that the path's extension names. The fxopt program writes every
    form except .json, and refuses the same modules for .json if it exists.

    Raises RuntimeError if the program refuses the module, or is missing and needed.
    """
    target = pathlib.Path(path)
    is_json = target.suffix == ".json"
    program = find_fxopt(fxopt)
    if program is None and not is_json:
        wanted = fxopt or os.environ.get("FXOPT") or "fxopt on PATH"
        raise RuntimeError(
            f"cannot write {target}: no fxopt program ({wanted}); build it, set FXOPT to it, or write .json"
        )
    if program is not None:
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder) / "module.json"
            form.write_json(module, source)
            product = pathlib.Path(folder) / "module.pb" if is_json else target
            run = subprocess.run([program, "convert", str(source), "-o", str(product)], capture_output=True, text=True)
        if run.returncode != 0:
            reason = f"{program} convert exited with {run.returncode}: {run.stderr.strip()}"
            raise RuntimeError(f"cannot write {target}: {reason}")
    if is_json:
        form.write_json(module, target)


# ---- commands on a file, or on a graph that save() takes


def mem(graph: object, *options: str, fxopt: str | None = None) -> Json:
    """Returns the object of `fxopt mem --json`: a file's memory by graph and device.

    graph: the path of a file, or a graph that save() accepts.
    options: options of the command, such as "--device", "h100".

    Raises FxoptError if the program refuses or a gate fails.
    """
    return _on_file("mem", graph, [], options, fxopt)


def explain(graph: object, node: str, *options: str, fxopt: str | None = None) -> Json:
    """Returns the object of `fxopt explain --json` for a node: why it is saved or recomputed, and
    the effect of the other choice. Arguments as in mem()."""
    return _on_file("explain", graph, [node], options, fxopt)


def tags(graph: object, *options: str, fxopt: str | None = None) -> Json:
    """Returns the object of `fxopt tags --json`: the verdict of each tag. Arguments as in mem()."""
    return _on_file("tags", graph, [], options, fxopt)


def verify(graph: object, *options: str, fxopt: str | None = None) -> Json:
    """Returns the object of `fxopt verify --json` for a well-formed graph. Arguments as in mem().

    Raises FxoptError if the graph is not well-formed, with every violation in its `errors`.
    """
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
