"""Chromium on this machine, without a window, in a folder of its own: driven by its DevTools protocol over a pipe.

What a page does is gathered as it happens: what it says on its console, what fails, and what it asks for over the
network. Every wait has a limit, and says what it waited for.
"""

import base64
import fcntl
import json
import os
import select
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from services.chromium.packages import fonts, libraries, program
from services.jars import Say
from services.processes import die_with_parent

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--remote-debugging-pipe",
)
PATIENCE_SECONDS = 60.0
ABOVE = 100
"""File descriptors from here on are nobody's yet."""
Answer = dict[str, Any]


class BrowserError(Exception):
    """The browser, or a page, did not do what it was asked for."""


@dataclass
class Page:
    """A page, and what it has done so far. `console`: what it said there, and what it did not catch; `asked`: the
    addresses that it asked for.
    """

    wire: "Wire"
    session: str
    console: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def call(self, method: str, **parameters: Any) -> Answer:
        return self.wire.call(method, session=self.session, **parameters)

    def open(self, url: str) -> None:
        self.call("Page.navigate", url=url)

    def value(self, expression: str) -> Any:
        """What an expression of JavaScript is, or what the promise that it is comes to."""
        told = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in told:
            raise BrowserError(f"{expression}: {told['exceptionDetails']}")
        return told["result"].get("value")

    def wait(self, expression: str, seconds: float = PATIENCE_SECONDS) -> Any:
        """Until the expression is true; what it is then."""
        until = time.monotonic() + seconds
        while True:
            if found := self.value(expression):
                return found
            if time.monotonic() > until:
                shown = self.value("document.querySelector('main')?.innerText")
                raise BrowserError(f"waited for {expression}\nconsole: {self.console}\nshown:\n{shown}")
            self.wire.listen(0.02)

    def press(self, key: str, *, text: str = "", shift: bool = False) -> None:
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowRight": 39, "Home": 36, "End": 35, " ": 32}
        about = {"key": key, "windowsVirtualKeyCode": codes.get(key, 0), "modifiers": 8 if shift else 0}
        written = {"text": "\r"} if key == "Enter" else {"text": text} if text else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", **about, **written)
        self.call("Input.dispatchKeyEvent", type="keyUp", **about)

    def write(self, text: str) -> None:
        """Into what has the focus."""
        self.call("Input.insertText", text=text)

    def resize(self, width: int, height: int, *, scale: float = 1) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=False
        )

    def prefer(self, **features: str) -> None:
        """`prefer(color_scheme="dark")`"""
        wanted = [{"name": f"prefers-{name.replace('_', '-')}", "value": value} for name, value in features.items()]
        self.call("Emulation.setEmulatedMedia", features=wanted)

    def picture(self, *, whole: bool = False) -> bytes:
        """What is seen, as PNG."""
        told = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        return base64.b64decode(told["data"])

    def hear(self, method: str, told: Answer) -> None:
        match method:
            case "Runtime.consoleAPICalled":
                self.console.append(" ".join(str(each.get("value", each.get("description"))) for each in told["args"]))
            case "Runtime.exceptionThrown":
                details = told["exceptionDetails"]
                self.console.append(str(details.get("exception", {}).get("description", details["text"])))
            case "Log.entryAdded":
                self.console.append(f"{told['entry']['text']} {told['entry'].get('url', '')}")
            case "Network.requestWillBeSent":
                self.asked.append(told["request"]["url"])


class Wire:
    """The protocol: calls and their answers, and events between them, each message ended by a zero byte."""

    def __init__(self, read: int, write: int, said: str) -> None:
        self.pages: dict[str, Page] = {}
        self._read = read
        self._write = write
        self._said = said
        self._calls = 0
        self._answers: dict[int, Answer] = {}
        self._unread = b""

    def call(self, method: str, *, session: str | None = None, **parameters: Any) -> Answer:
        self._calls += 1
        number = self._calls
        message = {"id": number, "method": method, "params": parameters, **({"sessionId": session} if session else {})}
        os.write(self._write, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + PATIENCE_SECONDS
        while number not in self._answers:
            if time.monotonic() > until:
                raise BrowserError(f"Chromium did not answer {method}")
            self.listen(0.5)
        told = self._answers.pop(number)
        if "error" in told:
            raise BrowserError(f"{method}: {told['error']}")
        result: Answer = told["result"]
        return result

    def listen(self, seconds: float) -> None:
        """Takes in what has come, or comes within so many seconds."""
        if not select.select([self._read], [], [], seconds)[0]:
            return
        data = os.read(self._read, 1 << 20)
        if not data:
            raise BrowserError(f"Chromium has ended: {Path(self._said).read_text(errors='replace')[-500:]}")
        *messages, self._unread = (self._unread + data).split(b"\0")
        for message in map(json.loads, messages):
            if "id" in message:
                self._answers[message["id"]] = message
            elif page := self.pages.get(message.get("sessionId", "")):
                page.hear(message["method"], message["params"])


@dataclass
class Browser:
    wire: Wire

    @contextmanager
    def page(self) -> Iterator[Page]:
        """A page in a window of its own, which shares nothing with others."""
        context = self.wire.call("Target.createBrowserContext")["browserContextId"]
        target = self.wire.call("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        session = self.wire.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = self.wire.pages[session] = Page(self.wire, session)
        for domain in ("Page", "Runtime", "Log", "Network", "Accessibility"):
            page.call(f"{domain}.enable")
        try:
            yield page
        finally:
            self.wire.call("Target.disposeBrowserContext", browserContextId=context)


@contextmanager
def browser_in(folder: Path, *, say: Say = print) -> Iterator[Browser]:
    """Chromium with a profile in the folder; when this is left, it is gone."""
    path = program(say=say)
    to_it, ours_to_it = os.pipe()
    ours_from_it, from_it = os.pipe()

    def wired() -> None:
        """Chromium reads from 3 and writes to 4, whatever they were: both ends are moved out of the way first."""
        die_with_parent()
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, ABOVE) for end in (to_it, from_it)]
        for number, end in zip((3, 4), ends, strict=True):
            os.dup2(end, number)

    with open(folder / "chromium.txt", "wb") as output:
        process = subprocess.Popen(
            [str(path), *FLAGS, f"--user-data-dir={folder / 'profile'}", "about:blank"],
            env=_environment(path, folder),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            close_fds=False,
            preexec_fn=wired,
        )
    for end in (to_it, from_it):
        os.close(end)
    try:
        yield Browser(Wire(ours_from_it, ours_to_it, output.name))
    finally:
        process.kill()
        process.wait()
        for end in (ours_from_it, ours_to_it):
            os.close(end)


def _environment(path: Path, folder: Path) -> dict[str, str]:
    found = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8", "TZ": "UTC", "HOME": str(folder)}
    if where := libraries(path):
        found["LD_LIBRARY_PATH"] = os.pathsep.join(map(str, where))
    if (settings := fonts(path, folder)) is not None:
        found["FONTCONFIG_FILE"] = str(settings)
    return found
