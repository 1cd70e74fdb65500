"""A headless Chromium that says what it saw, driven over a pipe."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
_PAGE = """JSON.stringify({
  images: Array.from(document.images, image => [
    image.naturalWidth, image.naturalHeight, image.getBoundingClientRect().width]),
  width: document.documentElement.scrollWidth,
  title: document.title,
  scripts: document.scripts.length,
})"""


def find() -> str:
    """The browser's path; skips the test where there is none."""
    for name in _NAMES:
        if path := shutil.which(name):
            return path
    pytest.skip(f"needs a browser: none of {', '.join(_NAMES)} is installed")


class Chromium:
    """A browser with one page, for a `with` block.

    Attributes:
        messages: what pages wrote to the console, warnings and errors of the browser
            included.
        requests: addresses that were asked for, other than data: ones.
    """

    def __init__(self, profile: Path) -> None:
        self.messages: list[str] = []
        self.requests: list[str] = []
        self._count = 0
        self._buffer = b""
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()
        options = [
            "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
            "--disable-background-networking", "--no-first-run", "--mute-audio",
            f"--user-data-dir={profile}", "about:blank",
        ]  # fmt: skip
        # It talks on descriptors 3 and 4.
        moved = f'exec "$0" "$@" 3<&{to_browser} 4>&{from_browser}'
        self._process = subprocess.Popen(
            ["bash", "-c", moved, find(), *options],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)

    def __enter__(self) -> Chromium:
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        attached = self._call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable", session=True)
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._out)  # at the end of its input it ends
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._in)

    def look(self, page: Path, width: int) -> dict[str, Any]:
        """Loads a page at a width in CSS pixels; returns what its document says."""
        self._call(
            "Emulation.setDeviceMetricsOverride",
            session=True,
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        self._loaded = False
        self._call("Page.navigate", session=True, url=page.resolve().as_uri())
        while not self._loaded:
            self._receive()
        found = self._call("Runtime.evaluate", session=True, expression=_PAGE)
        return json.loads(found["result"]["value"])

    def _call(self, method: str, *, session: bool = False, **parameters: Any) -> Any:
        self._count += 1
        message: dict[str, Any] = {"id": self._count, "method": method}
        message["params"] = parameters
        if session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._count:
                assert "error" not in answer, answer
                return answer["result"]

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            piece = os.read(self._in, 1 << 16)
            assert piece, "the browser ended"
            self._buffer += piece
        line, _, self._buffer = self._buffer.partition(b"\0")
        message = json.loads(line)
        match message.get("method"):
            case "Page.loadEventFired":
                self._loaded = True
            case "Log.entryAdded":
                self.messages.append(message["params"]["entry"]["text"])
            case "Runtime.consoleAPICalled" | "Runtime.exceptionThrown":
                self.messages.append(str(message["params"]))
            case "Network.requestWillBeSent":
                url = message["params"]["request"]["url"]
                if not url.startswith("data:"):
                    self.requests.append(url)
        return message
