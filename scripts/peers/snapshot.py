#!/usr/bin/env python3
"""Reads the memory snapshot of `fxopt mem --snapshot` as PyTorch and its viewer do, and checks it.

  snapshot.py GRAPH [OPTION...]     options of `fxopt mem`; FXOPT names the program

Pickle: loads in Python, uses only opcodes that the viewer (MemoryViz.js of 2.15) supports, and
batches of a size that it accepts. Events: run backwards from the final segments, as the viewer
does; each refers to existing memory. Figures: the largest sums of allocated and reserved bytes on
the way are the peaks of the report. PyTorch: if torch can be imported, its own
torch.cuda._memory_viz reads the file.
"""

from __future__ import annotations

import io
import os
import pickle
import pickletools
import sys
import tempfile
from pathlib import Path

import command  # noqa: F401  the path of fxopt
from fxopt_program import Fxopt

# Opcodes that MemoryViz.js supports.
OPCODES = set(
    "PROTO FRAME STOP NONE NEWTRUE NEWFALSE BININT BININT1 BININT2 LONG1 BINFLOAT BINUNICODE SHORT_BINUNICODE EMPTY_DICT "
    "EMPTY_LIST EMPTY_TUPLE MARK TUPLE TUPLE1 TUPLE2 TUPLE3 APPEND APPENDS SETITEM SETITEMS LIST DICT MEMOIZE BINPUT "
    "LONG_BINPUT BINGET LONG_BINGET".split()
)
MAX_BATCH = 1000  # a batch becomes the arguments of one call
MAX_NUMBER = 2**53


class SnapshotError(ValueError):
    """A snapshot that PyTorch or its viewer would not read; the message gives the error."""


class _Batches(pickle._Unpickler):
    """Python's own unpickler, extended to record the number of items between a mark and its end."""

    largest = 0

    def pop_mark(self) -> list:
        items = super().pop_mark()
        self.largest = max(self.largest, len(items))
        return items


def read_pickle(data: bytes) -> dict:
    """The snapshot; checks opcodes, sizes of batches and of numbers."""
    for opcode, argument, position in pickletools.genops(data):
        if opcode.name not in OPCODES:
            raise SnapshotError(f"opcode {opcode.name} at byte {position}")
        if isinstance(argument, int) and abs(argument) >= MAX_NUMBER:
            raise SnapshotError(f"number {argument} at byte {position}")
    reader = _Batches(io.BytesIO(data))
    snapshot = reader.load()
    if reader.largest > 2 * MAX_BATCH:  # a dict entry is two items
        raise SnapshotError(f"a batch of {reader.largest} items")
    return snapshot


def check_segments(snapshot: dict) -> None:
    """Checks that blocks tile their segments, and that sums are those of the blocks."""
    for segment in snapshot["segments"]:
        at = segment["address"]
        for block in segment["blocks"]:
            if block["address"] != at:
                raise SnapshotError(f"a block at {block['address']:#x}, expected at {at:#x}")
            at += block["size"]
        if at != segment["address"] + segment["total_size"]:
            raise SnapshotError(f"the blocks of segment {segment['address']:#x} do not fill it")
        active = sum(block["size"] for block in segment["blocks"] if block["state"] != "inactive")
        if active != segment["active_size"]:
            raise SnapshotError(f"segment {segment['address']:#x} has {active} active bytes, but records another sum")


class Backwards:
    """The blocks and ranges before each event of one device, from the last event to the first."""

    def __init__(self, snapshot: dict, device: int) -> None:
        segments = [segment for segment in snapshot["segments"] if segment["device"] == device]
        self.ranges = {segment["address"]: segment["total_size"] for segment in segments}
        self.blocks = {
            block["address"]: (block["size"], block["requested_size"])
            for segment in segments
            for block in segment["blocks"]
            if block["state"] != "inactive"
        }

    def requested(self) -> int:
        return sum(requested for _, requested in self.blocks.values())

    def reserved(self) -> int:
        return sum(self.ranges.values())

    def _take_range(self, address: int, size: int) -> None:
        """Undoes the mapping of a range: a whole segment, or a part of an expandable one."""
        for start, length in list(self.ranges.items()):
            if start <= address and address + size <= start + length:
                del self.ranges[start]
                if start < address:
                    self.ranges[start] = address - start
                if address + size < start + length:
                    self.ranges[address + size] = start + length - address - size
                return
        raise SnapshotError(f"a segment is made at {address:#x}, but is missing later")

    def undo(self, event: dict) -> None:
        action, address, size = event["action"], event.get("addr"), event["size"]
        if action == "alloc":
            if self.blocks.pop(address, (0, None))[1] != size:
                raise SnapshotError(f"{size} bytes are allocated at {address:#x}, but are missing later")
        elif action == "free_completed":
            if address in self.blocks:
                raise SnapshotError(f"a block is freed at {address:#x}, but exists later")
            if not any(start <= address < start + length for start, length in self.ranges.items()):
                raise SnapshotError(f"a block is freed at {address:#x}, which is in no segment")
            self.blocks[address] = (size, size)
        elif action in ("segment_alloc", "segment_map"):
            self._take_range(address, size)
        elif action in ("segment_free", "segment_unmap"):
            self.ranges[address] = size


def check_frees(snapshot: dict, device: int) -> None:
    """Checks that a requested free completes before its address is used again, or is pending at the
    end."""
    requested = set()
    for event in snapshot["device_traces"][device]:
        address = event.get("addr")
        if event["action"] == "free_completed":
            requested.discard(address)
        elif address in requested and event["action"] in ("alloc", "free_requested"):
            raise SnapshotError(f"free_requested at {address:#x} without free_completed after it")
        elif event["action"] == "free_requested":
            requested.add(address)
    blocks = [block for segment in snapshot["segments"] if segment["device"] == device for block in segment["blocks"]]
    for address in sorted(requested - {block["address"] for block in blocks if block["state"] == "active_pending_free"}):
        raise SnapshotError(f"the free requested at {address:#x} is not pending at the end")


def check_events(snapshot: dict) -> list[tuple[int, int]]:
    """Runs each device's events backwards. Returns the largest sums of requested and reserved
    bytes, by device."""
    peaks = []
    for device, events in enumerate(snapshot["device_traces"]):
        state = Backwards(snapshot, device)
        requested, reserved = state.requested(), state.reserved()
        most_requested, most_reserved = requested, reserved
        check_frees(snapshot, device)
        for event in reversed(events):
            state.undo(event)
            sign = {"alloc": -1, "free_completed": 1}.get(event["action"], 0)
            requested += sign * event["size"]
            sign = {"segment_alloc": -1, "segment_map": -1, "segment_free": 1, "segment_unmap": 1}.get(event["action"], 0)
            reserved += sign * event["size"]
            most_requested, most_reserved = max(most_requested, requested), max(most_reserved, reserved)
        peaks.append((most_requested, most_reserved))
    return peaks


def check_with_torch(snapshot: dict) -> str:
    """Runs PyTorch's own reader on it. Returns a line with the result, or why it did not run."""
    try:
        from torch.cuda import _memory_viz
    except ImportError as error:
        return f"skipped: {error}"
    sizes = [len(make(snapshot)) for make in (_memory_viz.segsum, _memory_viz.trace, _memory_viz.trace_plot)]
    return f"torch.cuda._memory_viz reads it: segsum {sizes[0]}, trace {sizes[1]}, page {sizes[2]} characters"


def check(path: str, report: dict, expandable: bool) -> str:
    """Runs all checks of the file at `path`, against the report of the same call. Raises
    SnapshotError if one fails."""
    data = Path(path).read_bytes()
    snapshot = read_pickle(data)
    check_segments(snapshot)
    lines = [f"{len(data)} bytes, {sum(map(len, snapshot['device_traces']))} events"]
    for device, (requested, reserved) in enumerate(check_events(snapshot)):
        rows = [row for row in report["devices"] if row["device"] in (f"cuda:{device}", "cuda")]
        if not rows:
            continue
        run = rows[0]["allocator"][int(expandable)]
        wanted = run["requested"]["peak_bytes"], run["reserved"]["peak_bytes"]
        if (requested, reserved) != wanted:
            raise SnapshotError(f"cuda:{device}: peaks {(requested, reserved)} in the events, {wanted} in the report")
        lines.append(f"cuda:{device}: requested {requested} and reserved {reserved} at most, as in the report")
    lines.append(check_with_torch(snapshot))
    return "\n".join(lines)


def graph_of_step(graphs: list[dict]) -> dict:
    """The report on the graph in the snapshot: the first graph of the file with memory on a CUDA
    device, since a snapshot shows one step. Raises SnapshotError if no graph has it."""
    for graph in graphs:
        if any(row["device"].startswith("cuda") for row in graph["devices"]):
            return graph
    raise SnapshotError("a snapshot exists, but no graph of the report has a CUDA device")


def main(arguments: list[str]) -> int:
    if not arguments:
        print(__doc__, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "snapshot.pickle")
        expandable = any("expandable_segments:True" in word for word in arguments)
        try:
            result = Fxopt(None).run("mem", *arguments, "--snapshot", path)
            print(check(path, graph_of_step(result["files"][0]["graphs"]), expandable))
        except (SnapshotError, RuntimeError) as error:
            print(f"snapshot.py: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
