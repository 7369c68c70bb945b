"""The page that `fxopt mem --html` writes, in a headless browser. Needs the program and Chromium,
but not torch."""

from __future__ import annotations

import json
import unittest

import browser
from fxopt_program import Fxopt
from setting import TESTDATA, InFolder, needs_program

WIDTH, HEIGHT = 1366, 768
GRAPH = str(TESTDATA / "llama1b.pb")

# A script smuggled in by a name would set a variable. Markup in a name would make an element.
HOSTILE = r"""fxg 0
graph @main {
  %x: f32[9]@"cuda:0" = placeholder()
  %"</script><script>bad=1</script>": f32[9]@"cuda:0" = aten.neg.default(%x) {module_path="<img src=x onerror=bad=1>"}
  %"a\"b'c\n\x01": f32[9]@"cuda:0" = aten.neg.default(%"</script><script>bad=1</script>") {module_path="<!-- <script>"}
  return (%"a\"b'c\n\x01",)
}
"""


def grouped(number: int) -> str:
    return f"{number:,}"


@needs_program
@unittest.skipIf(browser.find_browser() is None, "no Chromium: install chromium, chromium-driver and Selenium")
class HtmlReport(InFolder):
    def setUp(self) -> None:
        super().setUp()
        self.page = browser.Page(browser.find_browser() or "", WIDTH, HEIGHT)
        self.addCleanup(self.page.close)

    def open(self, *arguments: str) -> list[dict]:
        """Opens the page of a call, and returns its reports, one for each device of each graph."""
        path = self.folder / "report.html"
        result = Fxopt(None).run("mem", *arguments, "--html", str(path))
        self.page.open(path.as_uri())
        return [device for file in result["files"] for graph in file["graphs"] for device in graph["devices"]]

    def text(self, selector: str) -> str:
        return self.page.evaluate(f"document.querySelector({json.dumps(selector)}).textContent")

    def rows(self, selector: str) -> list[list[str]]:
        rows = f"[...document.querySelectorAll({json.dumps(selector + ' tbody tr')})]"
        return self.page.evaluate(f"{rows}.map((row) => [...row.cells].map((cell) => cell.textContent))")

    def box(self, selector: str) -> dict[str, float]:
        return self.page.evaluate(f"document.querySelector({json.dumps(selector)}).getBoundingClientRect().toJSON()")

    def place(self) -> int:
        return int(self.page.evaluate("document.getElementById('node-name').dataset.place"))

    def shown_bytes(self) -> dict[str, int]:
        """The bytes of the selected node in the panel beside the chart."""
        cells = "[...document.querySelectorAll('#series tr')].map((row) => [row.cells[0].textContent, row.cells[1]])"
        return self.page.evaluate(f"Object.fromEntries({cells}.map(([k, c]) => [k, Number(c.dataset.bytes)]))")

    def axis(self) -> list[str]:
        labels = "document.querySelectorAll('.dygraph-axis-label-x')"
        return self.page.evaluate(f"[...{labels}].map((label) => label.textContent)")

    def choose(self, element: str, value: str) -> None:
        self.page.evaluate(
            f"(() => {{ const list = document.getElementById('{element}'); list.value = '{value}';"
            " list.dispatchEvent(new Event('change')); })()"
        )

    def settle(self) -> None:
        self.page.evaluate("new Promise((done) => setTimeout(done, 250))")

    def check_quiet(self) -> None:
        """Checks that the console is empty and that the page requested nothing but itself."""
        self.assertEqual(self.page.messages, [])
        asked = [url for url in self.page.requests if not url.startswith("data:")]
        self.assertEqual(asked, [(self.folder / "report.html").as_uri()])

    def test_first_screen_has_peak_node_and_top_five_of_the_json(self) -> None:
        device = self.open(GRAPH)[0]
        for selector in ("#peak-size", "#peak-metric", "#peak-bytes", "#peak-place", "#top-five", "#chart"):
            box = self.box(selector)
            with self.subTest(selector=selector):
                self.assertTrue(box["left"] >= 0 and box["top"] >= 0, box)
                self.assertTrue(box["right"] <= WIDTH and box["bottom"] <= HEIGHT, box)
        self.assertEqual(self.text("#peak-bytes"), f"{grouped(device['peak_bytes'])} B")
        self.assertEqual(self.text("#peak-metric"), f"{device['model']} peak")
        place = self.text("#peak-place")
        self.assertIn(f"at node%{device['node']}place{grouped(device['position'] + 1)} of ", place)
        self.assertIn(f"module{device['module_path'] or 'none'}phase", place)
        rows = [row[1:] for row in self.rows("#top-five")]
        keys = ("type", "class", "phase", "module_path")
        wanted = [
            [f"{grouped(row['bytes'])} B", f"%{row['node']}", *(row[key] for key in keys)] for row in device["top"][:5]
        ]
        self.assertEqual(rows, wanted)
        for row in range(1, 6):
            cell = self.box(f"#top-five tbody tr:nth-child({row}) td:nth-child(3)")
            self.assertTrue(cell["right"] <= WIDTH and cell["bottom"] <= HEIGHT, cell)
        self.check_quiet()

    def test_tables_are_those_of_the_json(self) -> None:
        device = self.open(GRAPH, "--device", "h100", "--top", "40")[0]
        self.assertEqual(
            [[row[1], row[2]] for row in self.rows("#storages")],
            [[f"{grouped(row['bytes'])} B", f"%{row['node']}"] for row in device["top"]],
        )
        self.assertEqual([row[0] for row in self.rows("#by-class")], [row["name"] for row in device["by_class"]])
        peaks = {row[0]: row[2] for row in self.rows("#peaks")}
        for run in device["allocator"]:
            for metric in ("allocated", "active", "reserved"):
                shown = peaks[f"{metric}, {run['segments']} segments"]
                self.assertEqual(shown, f"{grouped(run[metric]['peak_bytes'])} B")
        self.assertEqual(peaks["arena"], f"{grouped(device['arena']['bytes'])} B")
        outside = [row[0] for row in self.rows("#outside")]
        self.assertEqual(outside, [row["name"] for row in device["outside"]] + ["the device has"])
        self.check_quiet()

    def test_the_timeline_at_the_peak_is_the_json(self) -> None:
        device = self.open(GRAPH, "--device", "h100")[0]
        self.assertEqual(self.place(), device["position"])
        shown = self.shown_bytes()
        for share in device["by_class"]:
            self.assertEqual(shown[share["name"]], share["bytes"])
        self.assertEqual(shown["requested"], device["peak_bytes"])
        self.check_quiet()

    def test_hover_and_keys_choose_a_node(self) -> None:
        self.open(GRAPH)
        box = self.box("#chart")
        self.page.mouse("mouseMoved", box["x"] + box["width"] * 0.3, box["y"] + box["height"] * 0.4)
        place, name = self.place(), self.text("#node-name")
        self.assertGreater(place, 0)
        shown = self.shown_bytes()
        classes = sum(value for key, value in shown.items() if "," not in key and key != "requested")
        self.assertEqual(classes, shown["requested"])
        self.page.mouse("mouseMoved", box["x"] + box["width"] * 0.7, box["y"] + box["height"] * 0.4)
        self.assertGreater(self.place(), place)
        self.assertNotEqual(self.text("#node-name"), name)
        place = self.place()
        self.page.evaluate("document.getElementById('chart-frame').focus()")
        self.page.key("ArrowRight")
        self.assertEqual(self.place(), place + 1)
        self.page.key("Home")
        self.assertEqual(self.place(), 0)
        self.check_quiet()

    def test_drag_and_keys_zoom(self) -> None:
        self.open(GRAPH)
        whole = self.axis()
        box = self.box("#chart")
        y = box["y"] + 100
        self.page.mouse("mousePressed", box["x"] + 300, y, button="left", buttons=1, clickCount=1)
        for x in (350, 420, 500):
            self.page.mouse("mouseMoved", box["x"] + x, y, button="left", buttons=1)
        self.page.mouse("mouseReleased", box["x"] + 500, y, button="left", clickCount=1)
        self.settle()
        part = self.axis()
        self.assertNotEqual(part, whole)
        self.page.evaluate("document.getElementById('chart-frame').focus()")
        self.page.key("+")
        self.settle()
        self.assertNotEqual(self.axis(), part)
        self.page.key("0")
        self.settle()
        self.assertEqual(self.axis(), whole)
        self.page.key("p")
        self.settle()
        self.assertNotEqual(self.axis(), whole)
        self.assertFalse(self.page.evaluate("document.getElementById('peak-mark').hidden"))
        self.check_quiet()

    def test_two_reports_are_overlaid(self) -> None:
        second = self.folder / "second.fxg"
        second.write_text(HOSTILE)
        devices = self.open(GRAPH, str(second))
        names = [row[0] for row in self.rows("#series")]
        self.assertIn("overlaid: requested", names)
        overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        self.assertEqual(self.page.evaluate(overflow), 0)
        self.choose("axis", "percent")
        self.assertIn("%", self.axis()[0])
        self.assertEqual(self.shown_bytes()["requested"], devices[0]["peak_bytes"])
        self.choose("other", "0")  # itself
        self.assertEqual(self.shown_bytes()["overlaid: requested"], devices[0]["peak_bytes"])
        self.assertEqual(self.text("#node-other"), f"overlaid: %{devices[0]['node']}")
        self.choose("report", "1")
        self.assertEqual(self.text("#peak-bytes"), f"{grouped(devices[1]['peak_bytes'])} B")
        self.check_quiet()

    def test_names_stay_text(self) -> None:
        path = self.folder / "hostile.fxg"
        path.write_text(HOSTILE)
        device = self.open(str(path))[0]
        self.assertIn("<script>", self.text("#peak-place") + self.text("#storages"))
        self.assertEqual(device["node"], "a\"b'c\n\x01")
        self.assertIn("%a\"b'c\\x0a\\x01", self.text("#peak-place"))
        self.assertIsNone(self.page.evaluate("window.bad"))
        self.assertIsNone(self.page.evaluate("document.querySelector('[onerror]')"))
        self.check_quiet()

    def test_marks_collectives_of_several_tensors(self) -> None:
        bucketed = str(self.folder / "bucketed.pb")
        Fxopt(None).run("opt", str(TESTDATA / "llama8b_flb_twin.pb.zst"), "-o", bucketed, "--passes", "bucket{max-growth=-1}")
        buckets = self.open(bucketed)[0]["buckets"]
        self.assertGreater(len(buckets), 0)
        self.assertEqual(sorted(row[3] for row in self.rows("#buckets")), sorted(f"%{row['node']}" for row in buckets))
        marks = self.page.evaluate("[...document.querySelectorAll('#bucket-marks span')].map((mark) => mark.title)")
        self.assertEqual([title.split(":")[0] for title in marks], [f"%{row['node']}" for row in buckets])
        chart, mark = self.box("#chart"), self.box("#bucket-marks span")
        self.assertTrue(chart["left"] <= mark["left"] < mark["right"] <= chart["right"], (chart, mark))
        self.check_quiet()

    def test_without_such_collectives_there_is_no_section_of_them(self) -> None:
        self.open(GRAPH)
        self.assertEqual(self.box("#buckets-section")["height"], 0)

    def test_dark_and_light(self) -> None:
        self.open(GRAPH)
        papers = []
        for scheme in ("light", "dark"):
            features = [{"name": "prefers-color-scheme", "value": scheme}]
            self.page.call("Emulation.setEmulatedMedia", features=features)
            papers.append(self.page.evaluate("getComputedStyle(document.body).backgroundColor"))
        self.assertEqual(papers, ["rgb(255, 255, 255)", "rgb(20, 23, 26)"])
        self.check_quiet()

    def test_the_same_bytes_each_time(self) -> None:
        Fxopt(None).run("mem", GRAPH, "--html", str(self.folder / "a.html"), "--trace", str(self.folder / "a.json"))
        Fxopt(None).run("mem", GRAPH, "--html", str(self.folder / "b.html"), "--trace", str(self.folder / "b.json"))
        for name in ("html", "json"):
            self.assertEqual((self.folder / f"a.{name}").read_bytes(), (self.folder / f"b.{name}").read_bytes())


if __name__ == "__main__":
    unittest.main()
