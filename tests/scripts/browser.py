"""A headless Chromium over its DevTools protocol, through a pipe: JSON messages that end with a
zero byte."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from typing import Any

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")

TIMEOUT_S = 60

# Chromium reads commands from descriptor 3 and writes answers to descriptor 4. Host names do not
# resolve, but pages of this machine open.
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--remote-debugging-pipe",
)


def find_browser() -> str | None:
    """The path of the browser, or None. FXOPT_BROWSER names another one."""
    given = os.environ.get("FXOPT_BROWSER")
    return given or next((path for path in map(shutil.which, NAMES) if path), None)


class Page:
    """One page in a browser of its own, with the messages that it logged and the URLs that it
    requested."""

    def __init__(self, browser: str, width: int, height: int) -> None:
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        command_read, self._commands = os.pipe()
        self._answers, answer_write = os.pipe()
        # The shell connects the two pipes to the descriptors that the browser uses.
        shell = f'exec "$@" 3<&{command_read} 4>&{answer_write}'
        arguments = [*FLAGS, f"--window-size={width},{height}", f"--user-data-dir={self._profile.name}"]
        self._process = subprocess.Popen(
            ["bash", "-c", shell, "browser", browser, *arguments, "about:blank"],
            pass_fds=(command_read, answer_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(command_read)
        os.close(answer_write)
        self._unread = b""
        self._last_id = 0
        self.messages: list[str] = []
        self.requests: list[str] = []
        self._loaded = False
        target = self._browser_call("Target.createTarget", url="about:blank", width=width, height=height)["targetId"]
        self._session = self._browser_call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )

    def close(self) -> None:
        self._browser_call("Browser.close")
        self._process.wait(timeout=30)
        os.close(self._commands)
        os.close(self._answers)
        self._profile.cleanup()

    def __enter__(self) -> Page:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self, url: str) -> None:
        self._loaded = False
        self.call("Page.navigate", url=url)
        while not self._loaded:
            self._read()

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression, or the value that a promise resolves to."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise AssertionError(json.dumps(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def key(self, name: str) -> None:
        text = name if len(name) == 1 else ""
        self.call("Input.dispatchKeyEvent", type="keyDown", key=name, text=text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=name)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._exchange(method, parameters, {"sessionId": self._session})

    def _browser_call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._exchange(method, parameters, {})

    def _exchange(self, method: str, parameters: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
        self._last_id += 1
        message = {"id": self._last_id, "method": method, "params": parameters, **more}
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") != self._last_id:
                continue
            if "error" in answer:
                raise AssertionError(f"{method}: {answer['error']}")
            return answer["result"]

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._unread:
            if not select.select([self._answers], [], [], TIMEOUT_S)[0]:
                raise AssertionError(f"the browser has said nothing for {TIMEOUT_S} s")
            received = os.read(self._answers, 1 << 16)
            if not received:
                raise AssertionError("the browser has ended")
            self._unread += received
        line, self._unread = self._unread.split(b"\0", 1)
        message = json.loads(line)
        handler = EVENTS.get(message.get("method", ""))
        if handler is not None:
            handler(self, message["params"])
        return message

    def _on_load(self, _: dict[str, Any]) -> None:
        self._loaded = True

    def _on_console(self, event: dict[str, Any]) -> None:
        self.messages.append(f"{event['type']}: {event['args']}")

    def _on_exception(self, event: dict[str, Any]) -> None:
        self.messages.append(f"exception: {event['exceptionDetails']}")

    def _on_log(self, event: dict[str, Any]) -> None:
        self.messages.append(f"{event['entry']['level']}: {event['entry']['text']}")

    def _on_request(self, event: dict[str, Any]) -> None:
        self.requests.append(event["request"]["url"])


EVENTS: dict[str, Callable[[Page, dict[str, Any]], None]] = {
    "Page.loadEventFired": Page._on_load,
    "Runtime.consoleAPICalled": Page._on_console,
    "Runtime.exceptionThrown": Page._on_exception,
    "Log.entryAdded": Page._on_log,
    "Network.requestWillBeSent": Page._on_request,
}
