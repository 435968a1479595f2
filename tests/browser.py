"""Headless Debian Chromium, controlled over a pipe by its debugging protocol."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
ANSWER_WITHIN_S = 300.0


class Browser:
    """One page; `complaints` has its console messages, `requests` the URLs that it requested."""

    def __init__(self) -> None:
        program = shutil.which("chromium")
        if program is None:
            raise FileNotFoundError("chromium")
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self._number = 0
        self._events: list[dict[str, Any]] = []
        self._buffer = b""
        self._profile = tempfile.mkdtemp(prefix="chromium-")
        to_browser, self._to = os.pipe()
        self._from, from_browser = os.pipe()

        def pipes() -> None:
            # The protocol uses descriptors 3 and 4. Pipes move to free ones first, so none is overwritten.
            low, high = (fcntl.fcntl(one, fcntl.F_DUPFD, 5) for one in (to_browser, from_browser))
            os.dup2(low, 3)
            os.dup2(high, 4)

        self._process = subprocess.Popen(
            [program, *FLAGS, f"--user-data-dir={self._profile}", "about:blank"],
            preexec_fn=pipes,
            close_fds=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        target = self._ask("Target.createTarget", {"url": "about:blank"}, session=None)["targetId"]
        attached = self._ask("Target.attachToTarget", {"targetId": target, "flatten": True}, session=None)
        self._session: str | None = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ):
        self._process.terminate()
        self._process.wait(timeout=120)
        os.close(self._to)
        os.close(self._from)
        shutil.rmtree(self._profile, ignore_errors=True)

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._ask(method, parameters, self._session)

    def show(self, path: Path, width: int, height: int = 900, scheme: str = "light") -> None:
        """Opens a file at a width in CSS pixels, with a light or dark colour scheme."""
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.complaints.clear()
        self.requests.clear()
        self._events.clear()
        self.ask("Page.navigate", url=path.resolve().as_uri())
        deadline = time.monotonic() + ANSWER_WITHIN_S
        while not any(event["method"] == "Page.loadEventFired" for event in self._events):
            self._read(deadline)

    def evaluate(self, expression: str) -> Any:
        return self.ask("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def point(self, selector: str) -> None:
        """Scrolls to an element and moves the mouse to its middle."""
        find = f"document.querySelector({json.dumps(selector)})"
        x, y = self.evaluate(
            f"{find}.scrollIntoView({{block: 'center'}}); var box = {find}.getBoundingClientRect();"
            "[box.x + box.width / 2, box.y + box.height / 2]"
        )
        self.ask("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def download(self, expression: str, folder: Path, name: str) -> bytes:
        """Runs a script and returns the file that it saves."""
        self.ask("Page.setDownloadBehavior", behavior="allow", downloadPath=str(folder))
        self.evaluate(expression)
        deadline = time.monotonic() + ANSWER_WITHIN_S
        while not (folder / name).exists():
            if time.monotonic() > deadline:
                raise TimeoutError(f"no {name}")
            time.sleep(0.05)
        return (folder / name).read_bytes()

    def screenshot(self, path: Path) -> None:
        """The whole page as a PNG."""
        picture = self.ask("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(picture["data"]))

    def print(self, path: Path) -> None:
        """Writes the page as a PDF, as it would be printed."""
        paper = self.ask("Page.printToPDF", printBackground=False, preferCSSPageSize=True)
        path.write_bytes(base64.b64decode(paper["data"]))

    def _ask(self, method: str, parameters: dict[str, Any], session: str | None) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + ANSWER_WITHIN_S
        while True:
            answer = self._read(deadline)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def _read(self, deadline: float) -> dict[str, Any]:
        import select

        while b"\0" not in self._buffer:
            if not select.select([self._from], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise TimeoutError("chromium does not answer")
            chunk = os.read(self._from, 1 << 16)
            if not chunk:
                raise ConnectionError("chromium is gone")
            self._buffer += chunk
        line, self._buffer = self._buffer.split(b"\0", 1)
        message: dict[str, Any] = json.loads(line)
        if "method" in message:
            self._note(message)
        return message

    def _note(self, event: dict[str, Any]) -> None:
        method, about = event["method"], event.get("params", {})
        if method == "Log.entryAdded":
            self.complaints.append(f"{about['entry']['level']}: {about['entry']['text']}")
        elif method == "Runtime.consoleAPICalled":
            self.complaints.append(f"{about['type']}: {[one.get('value') for one in about['args']]}")
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(f"exception: {about['exceptionDetails'].get('text')}")
        elif method == "Network.requestWillBeSent":
            self.requests.append(about["request"]["url"])
        self._events.append(event)
