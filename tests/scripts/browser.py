"""A headless Chromium, controlled by Selenium and Debian's chromedriver."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
from typing import Any

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")

# Host names do not resolve, but pages of this machine open.
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)


def find_browser() -> str | None:
    """The path of the browser. None if the browser, its driver or Selenium is missing. FXOPT_BROWSER
    names another browser."""
    if shutil.which("chromedriver") is None or importlib.util.find_spec("selenium") is None:
        return None
    given = os.environ.get("FXOPT_BROWSER")
    return given or next((path for path in map(shutil.which, NAMES) if path), None)


class Page:
    """One page in a browser of its own."""

    def __init__(self, browser: str, width: int, height: int) -> None:
        from selenium import webdriver

        options = webdriver.ChromeOptions()
        options.binary_location = browser
        for flag in (*FLAGS, f"--window-size={width},{height}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        service = webdriver.ChromeService(executable_path=shutil.which("chromedriver"))
        self._driver = webdriver.Chrome(options=options, service=service)
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )

    def close(self) -> None:
        self._driver.quit()

    def __enter__(self) -> Page:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def messages(self) -> list[str]:
        """The messages that the page logged since the last call, uncaught exceptions included."""
        return [entry["message"] for entry in self._driver.get_log("browser")]

    @property
    def requests(self) -> list[str]:
        """The URLs that the page requested since the last call."""
        events = [json.loads(entry["message"])["message"] for entry in self._driver.get_log("performance")]
        return [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]

    def open(self, url: str) -> None:
        self._driver.get(url)

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
        """Runs a command of the DevTools protocol."""
        return self._driver.execute_cdp_cmd(method, parameters)
