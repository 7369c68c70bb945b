"""Runs the fxopt program from Python and reads the JSON form of its output. Standard library
only."""

from __future__ import annotations

import json
import pathlib
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

from fxopt import tool
from fxopt.form import Json

_ALL = "1000000000"  # more storages than any graph has


@dataclass
class Requested:
    """The bytes of one device's storages, as fxopt predicts."""

    # bytes and node; one entry unless the ways to run segments disagree
    peaks: list[tuple[int, str]]
    live: list[tuple[str, int]]  # the storages at the ideal peak: the node that makes each, bytes
    unknown: list[str]  # nodes whose storages have no known size, on any device


class Fxopt:
    """Runs the program; raises RuntimeError with its message if it fails."""

    def __init__(self, option: str | None) -> None:
        program = tool.find_fxopt(option)
        if program is None:
            raise RuntimeError(f"no fxopt program ({option or 'fxopt on PATH'}): build it, then give --fxopt or set FXOPT")
        self.program = program

    def run(self, *arguments: str) -> Json:
        """The `result` of the JSON envelope that the call writes."""
        command = [self.program, *arguments, "--json"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)} exited with {done.returncode}: {done.stderr.strip()}")
        return json.loads(done.stdout)["result"]

    def opt(self, source: pathlib.Path, target: pathlib.Path, passes: str, *flags: str) -> Json:
        """The report on the single file."""
        return self.run("opt", str(source), "-o", str(target), "--passes", passes, *flags)["files"][0]

    def seconds(self, source: pathlib.Path, target: pathlib.Path, passes: str) -> dict[str, float]:
        """The time of each pass of a pipeline without verification in between, and of loading and
        writing."""
        report = self.opt(source, target, passes, "--timing", "--no-verify")
        return {step["pass"]: step["seconds"] for step in report["passes"]} | report["seconds"]

    def peaks(self, path: pathlib.Path) -> dict[str, tuple[int, str, int]]:
        """The ideal peak of each device, the node that reaches it, and the number of storages live
        there."""
        graph = self.run("mem", str(path))["files"][0]["graphs"][0]
        if graph["unknown_storages"]:
            raise RuntimeError(f"{path}: {graph['unknown_storages']} storages of unknown size")
        devices = graph["devices"]
        return {device["device"]: (device["peak_bytes"], device["node"], device["live_storages"]) for device in devices}


    def requested(self, path: pathlib.Path, sizes: Mapping[str, int]) -> dict[str, Requested]:
        """The bytes that the main graph requests on each device without workspaces, symbols bound
        to `sizes`."""
        graph = self._memory(path, sizes, "--top", _ALL)
        return {device["device"]: _requested(device, graph["unknown_nodes"]) for device in graph["devices"]}

    def allocator_peaks(
        self, path: pathlib.Path, sizes: Mapping[str, int], profile: str | None = None
    ) -> dict[str, dict[str, dict[str, int]]]:
        """The main graph's use of the allocator: device, way to run segments, kind of peak, bytes.

        profile: a device profile with the workspaces of operators; without one they count as zero.
        """
        flags = ["--device", profile] if profile is not None else []
        kinds = ("requested", "allocated", "active", "reserved")
        return {
            device["device"]: {
                row["segments"]: {kind: row[kind]["peak_bytes"] for kind in kinds} for row in device["allocator"]
            }
            for device in self._memory(path, sizes, *flags)["devices"]
        }

    def _memory(self, path: pathlib.Path, sizes: Mapping[str, int], *flags: str) -> Json:
        bound = [argument for name, size in sizes.items() for argument in ("--symbol", f"{name}={size}")]
        return self.run("mem", str(path), *bound, *flags)["files"][0]["graphs"][0]


def _requested(device: Json, unknown: list[str]) -> Requested:
    # the CPU has no allocator model
    rows = [row["requested"] for row in device["allocator"]] or [device]
    peaks = sorted({(row["peak_bytes"], row["node"]) for row in rows})
    return Requested(peaks, [(item["node"], item["bytes"]) for item in device["top"]], unknown)


def read_main(path: pathlib.Path) -> Json:
    """The first graph of a module's JSON form."""
    return json.loads(path.read_text(encoding="utf-8"))["module"]["graphs"][0]


def recompute_origin(node: Json) -> int | None:
    """The uid of the node that this one repeats; None if the node is no recomputed copy."""
    kinds = {origin["kind"]: int(origin.get("uid", 0)) for origin in node.get("origins", ())}
    return kinds.get("ORIGIN_RECOMPUTED")
