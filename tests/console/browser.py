"""A headless Chromium, driven over its DevTools protocol.

with Browser(program, tmp_path) as browser:
    browser.open(url)
    browser.wait("document.querySelector('h1')")

1. Messages are JSON, separated by zero bytes, over two pipes: no port, and no library is needed.
2. `problems` has every exception and every error that the page logged, such as a violation of its policy.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import select
import shlex
import shutil
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.waiting import LIMIT_S, wait_until

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"),
    *("--no-first-run", "--disable-component-update", "--disable-sync", "--ignore-certificate-errors"),
    *("--remote-debugging-pipe", "--hide-scrollbars", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
)


NAVIGATED = "Inspected target navigated or closed"


class ProtocolError(Exception):
    """The browser refused a call."""


class Browser:
    """One browser with one page."""

    def __init__(self, program: str, folder: Path) -> None:
        self._command = [program, *FLAGS, f"--user-data-dir={folder / 'profile'}", "about:blank"]
        self._log = folder / "browser.log"
        self._numbers = itertools.count(1)
        self._received = b""
        self._session: dict[str, str] = {}
        self.problems: list[str] = []

    def __enter__(self) -> Self:
        child_reads, self._writes = os.pipe()
        self._reads, child_writes = os.pipe()
        script = f"exec {shlex.join(self._command)} 3<&{child_reads} 4>&{child_writes}"
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(
                ["bash", "-c", script], pass_fds=(child_reads, child_writes), stdout=log, stderr=log
            )
        os.close(child_reads)
        os.close(child_writes)
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self._session = {"sessionId": session}
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        try:
            self._process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._reads)
        os.close(self._writes)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The result of a method of the protocol."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters, **self._session}
        os.write(self._writes, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._message()
            if answer.get("id") == number:
                if "error" in answer:
                    raise ProtocolError(f"{method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result

    def open(self, url: str) -> None:
        self.call("Page.navigate", url=url)

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page."""
        result = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in result, f"{expression}: {result['exceptionDetails']}"
        return result["result"].get("value")

    def wait(self, expression: str) -> Any:
        """Until the expression is true; its value. Elements count as true."""
        asked = f"(() => {{ const found = {expression}; return found instanceof Element ? true : found; }})()"

        def look() -> Any:
            try:
                return self.evaluate(asked)
            except ProtocolError as error:
                if NAVIGATED not in str(error):  # the page that was asked is being replaced by the next one
                    raise
                return None

        return wait_until(look, why=lambda: f"{expression} in {self.text()}; {self.problems}")

    def text(self) -> str:
        """What the page shows."""
        return str(self.evaluate("document.body?.innerText ?? ''"))

    def press(self, key: str) -> None:
        text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def click(self, x: float, y: float) -> None:
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def resize(self, width: int, height: int) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def set_theme(self, scheme: str) -> None:
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def screenshot(self) -> bytes:
        """The visible part of the page as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._received:
            ready, _, _ = select.select([self._reads], [], [], LIMIT_S)
            piece = os.read(self._reads, 1 << 20) if ready else b""
            assert piece, f"the browser does not answer:\n{self._log.read_text(errors='replace')[-2000:]}"
            self._received += piece
        raw, _, self._received = self._received.partition(b"\0")
        message: dict[str, Any] = json.loads(raw)
        if message.get("method") == "Runtime.exceptionThrown":
            self.problems.append(str(message["params"]["exceptionDetails"]))
        elif message.get("method") == "Log.entryAdded" and message["params"]["entry"]["level"] == "error":
            self.problems.append(str(message["params"]["entry"]))
        return message
