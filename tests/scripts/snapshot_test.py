"""The memory snapshot that fxopt writes, read as PyTorch and its viewer read it. Needs the program,
but not torch."""

from __future__ import annotations

import copy
import pathlib
import pickle
import unittest

import snapshot as judge
from fxopt_program import Fxopt
from setting import InFolder, TESTDATA, needs_program

GRAPH = TESTDATA / "llama1b.pb"
OPTIONS = (
    (),
    ("--steady", "--device", "h100"),
    ("--alloc-conf", "expandable_segments:True"),
    ("--alloc-conf", "max_split_size_mb:200,roundup_power2_divisions:[256:1,512:2,>:4]"),
    ("--device-memory", "8GiB"),
)

# 20 MiB each, or 40. The two collectives are the only consumers of their inputs, and nothing is
# allocated behind the last wait.
COLLECTIVES = """process_group {uid="0", ranks=[0, 1]}
graph @main {
  output_spec {role=gradient, of="p"}
  %p: f32[5242880]@cuda:0 = placeholder() {input={role=parameter}}
  %x: f32[5242880]@cuda:0 = aten.exp.default(%p)
  %all: f32[10485760]@cuda:0 = _c10d_functional.all_gather_into_tensor.default(%x, 2, group("0"))
  %y: f32[5242880]@cuda:0 = aten.exp.default(%p)
  %w: f32[10485760]@cuda:0 = _c10d_functional.wait_tensor.default(%all)
  %g: f32[5242880]@cuda:0 = aten.exp.default(%p)
  %sum: f32[5242880]@cuda:0 = _c10d_functional.all_reduce.default(%g, "sum", group("0"))
  %d: f32[5242880]@cuda:0 = _c10d_functional.wait_tensor.default(%sum)
  return %d
}
"""


@needs_program
class Snapshot(InFolder):
    def setUp(self) -> None:
        super().setUp()
        self.path = str(self.folder / "snapshot.pickle")

    def write(self, *options: str, graph: str = str(GRAPH)) -> dict:
        """Writes the snapshot, and returns the report of the same call."""
        result = Fxopt(None).run("mem", graph, *options, "--snapshot", self.path)
        return judge.graph_of_step(result["files"][0]["graphs"])

    def write_collectives(self, *options: str) -> dict:
        """Writes the snapshot of COLLECTIVES, with recorded streams."""
        graph = pathlib.Path(self.path).with_name("collectives.fxg")
        graph.write_text(COLLECTIVES)
        return self.write("--comm-lifetime", "record_stream", *options, graph=str(graph))

    def load(self) -> dict:
        return pickle.loads(pathlib.Path(self.path).read_bytes())

    def test_each_way_to_run_the_allocator(self) -> None:
        for options in OPTIONS:
            with self.subTest(options=options):
                report = self.write(*options)
                judge.check(self.path, report, "expandable_segments:True" in options)

    def test_recorded_streams_part_the_request_from_the_free(self) -> None:
        expandable = ("--alloc-conf", "expandable_segments:True")
        for options in ((), expandable, ("--steady",), ("--steady", *expandable), ("--device-memory", "100MiB")):
            with self.subTest(options=options):
                report = self.write_collectives(*options)
                judge.check(self.path, report, "expandable_segments:True" in options)

    def test_what_is_released_is_pending_until_an_allocation_behind_the_wait(self) -> None:
        self.write_collectives()
        snapshot = self.load()
        events = [
            (event["action"], event["frames"][0]["filename"])
            for event in snapshot["device_traces"][0]
            if event["frames"] and event["frames"][0]["filename"] in ("x", "y", "g")
        ]
        # %y has no consumer. %g's request is behind %sum's allocation, and no allocation follows.
        self.assertEqual(
            [f"{action} {node}" for action, node in events],
            ["alloc x", "free_requested x", "alloc y", "free_requested y", "free_completed y"]
            + ["free_completed x", "alloc g", "free_requested g"],
        )
        blocks = [block for segment in snapshot["segments"] for block in segment["blocks"]]
        pending = [block["frames"][0]["filename"] for block in blocks if block["state"] == "active_pending_free"]
        self.assertEqual(pending, ["g"])

    def test_of_several_graphs_the_first_on_a_gpu_is_shown(self) -> None:
        source = pathlib.Path(self.path).with_suffix(".fxg")
        graphs = [
            f'graph @{name} {{\n  %x: f32[{size}]@"{device}" = placeholder()\n  return (%x,)\n}}\n'
            for name, size, device in (("host", 9, "cpu"), ("small", 1000, "cuda:0"), ("large", 9000, "cuda:0"))
        ]
        source.write_text("fxg 0\n" + "".join(graphs), encoding="utf-8")
        report = self.write(graph=str(source))
        self.assertEqual(report["graph"], "small")
        judge.check(self.path, report, False)

    def test_frames_name_node_module_and_source(self) -> None:
        self.write()
        frames = [event["frames"] for event in self.load()["device_traces"][0] if event["action"] == "alloc"]
        named = next(one for one in frames if one[0]["filename"] == "mm_4")
        self.assertEqual(named[0]["name"], "aten.mm.default bf16[4096, 8192]")
        self.assertEqual(named[1], {"name": "module", "filename": "layers.0.feed_forward.w1", "line": 0})
        self.assertTrue(named[2]["filename"].endswith("torch/nn/modules/linear.py"))

    def test_the_same_bytes_each_time(self) -> None:
        self.write()
        first = pathlib.Path(self.path).read_bytes()
        self.write()
        self.assertEqual(pathlib.Path(self.path).read_bytes(), first)

    def test_memory_that_runs_out_is_an_event(self) -> None:
        self.write("--device-memory", "8GiB")
        last = self.load()["device_traces"][0][-1]
        self.assertEqual(last["action"], "oom")
        self.assertNotIn("addr", last)

    def test_the_checks_notice_what_is_wrong(self) -> None:
        self.write()
        good = self.load()

        def refuse(change) -> None:
            bad = copy.deepcopy(good)
            change(bad)
            with self.assertRaises(judge.SnapshotError):
                judge.check_segments(bad)
                judge.check_events(bad)

        def events(snapshot: dict) -> list:
            return snapshot["device_traces"][0]

        refuse(lambda bad: bad["segments"][0]["blocks"].pop())
        refuse(lambda bad: bad["segments"][-1].update(total_size=1 << 20))
        refuse(lambda bad: events(bad).remove(next(e for e in events(bad) if e["action"] == "free_completed")))
        refuse(lambda bad: events(bad).append({"action": "free_completed", "addr": 64, "size": 8, "stream": 0}))
        refuse(lambda bad: next(e for e in events(bad) if e["action"] == "alloc").update(addr=64))
        self.write_collectives()
        good = self.load()
        # A request may stay open at the end if its block is pending.
        judge.check_events(good)
        refuse(lambda bad: events(bad).remove(next(e for e in events(bad) if e["action"] == "free_completed")))

        def keep_pending(bad: dict) -> None:
            for block in (block for segment in bad["segments"] for block in segment["blocks"]):
                if block["state"] == "active_pending_free":
                    block["state"] = "active_allocated"

        refuse(keep_pending)


if __name__ == "__main__":
    unittest.main()
