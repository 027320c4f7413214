"""Runs an example, and decides in a real Chromium when it asks somebody to: by the link and the login that it prints.

python3 deciding.py COMMAND…

What the example says is passed on, and what was seen in the browser is told beside it. Nothing but the standard library
is needed: Chromium is spoken to through two pipes.
"""

from __future__ import annotations

import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any

# Longer than any page takes on a busy machine.
PATIENCE_SECS = 60.0
LOOK_PAUSE_SECS = 0.02
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    # Without it a page that was loaded a moment ago drops what the mouse does before its first frame.
    "--allow-pre-commit-input", "--remote-debugging-pipe",
)  # fmt: skip
ASKED = re.compile(r"^Open (\S+)$")
LOGIN = re.compile(r"Sign in as (\S+), with the password (\S+)$")


class Chromium:
    """A browser with nothing in it yet, and one tab."""

    def __enter__(self) -> Chromium:
        program = next(filter(None, map(shutil.which, NAMES)), None)
        if program is None:
            sys.exit("no Chromium is installed")
        self._profile = tempfile.TemporaryDirectory(prefix="countersign-chromium-", ignore_cleanup_errors=True)
        heard, self._to = os.pipe()
        self._from, says = os.pipe()
        # It reads from 3 and writes to 4.
        moved = f'exec "$0" "$@" 3<&{heard} 4>&{says}'
        self._process = subprocess.Popen(
            ["bash", "-c", moved, program, *FLAGS, f"--user-data-dir={self._profile.name}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=(heard, says),
        )  # fmt: skip
        os.close(heard)
        os.close(says)
        self._said, self._number, self._session = b"", 0, ""
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._session = ""
        try:
            if kind is None:
                self._call("Browser.close")
                self._process.wait(PATIENCE_SECS)
        finally:
            self._process.kill()
            self._process.wait()
            self._profile.cleanup()

    def goto(self, url: str) -> None:
        """Opens an address."""
        self._call("Page.navigate", url=url)
        self.until("document.readyState === 'complete' && location.href !== 'about:blank'")

    def fill(self, label: str, text: str) -> None:
        """Types into the field of that label."""
        labels = "[...document.querySelectorAll('main label')]"
        self._click(f"{labels}.find((it) => it.innerText.trim().startsWith({json.dumps(label)})).control")
        self._call("Input.insertText", text=text)

    def press(self, label: str, *, then: str) -> None:
        """Presses what is labelled so, and waits for a page that says something."""
        buttons = "[...document.querySelectorAll('main button, main a')]"
        self._click(f"{buttons}.find((it) => it.innerText.trim() === {json.dumps(label)})")
        self.until(f"document.body.innerText.includes({json.dumps(then)})")

    def until(self, condition: str) -> None:
        """Waits until the page says yes."""
        ends = time.monotonic() + PATIENCE_SECS
        while self.js(f"Boolean({condition})") is not True:
            if time.monotonic() > ends:
                raise TimeoutError(f"never: {condition}, on {self.js('location.href + document.body.innerText')}")
            time.sleep(LOOK_PAUSE_SECS)

    def js(self, expression: str) -> Any:
        """What an expression gives on the page that is there; `None` while one makes way for another."""
        found = self._call("Runtime.evaluate", fails=True, expression=expression, returnByValue=True)
        return None if "exceptionDetails" in found else found.get("result", {}).get("value")

    def _click(self, element: str) -> None:
        """A click of the mouse on the middle of an element that rests where it is and feels the mouse."""
        place = (
            f"(() => {{ const it = {element}; it.scrollIntoView({{ block: 'center', behavior: 'instant' }});"
            "const box = it.getBoundingClientRect();"
            "return [box.left + box.width / 2, box.top + box.height / 2, it.matches(':hover')]; })()"
        )
        before, ends = None, time.monotonic() + PATIENCE_SECS
        while time.monotonic() < ends:
            found = self.js(place)
            if found and found[2] and found[:2] == before:
                for kind in ("mousePressed", "mouseReleased"):
                    self._mouse(kind, found, button="left", clickCount=1)
                return
            before = found and found[:2]
            if found:
                self._mouse("mouseMoved", found)
            time.sleep(LOOK_PAUSE_SECS)
        raise TimeoutError(f"the mouse never reached {element}")

    def _mouse(self, kind: str, at: list[float], **how: Any) -> None:
        self._call("Input.dispatchMouseEvent", type=kind, x=at[0], y=at[1], **how)

    def _call(self, method: str, *, fails: bool = False, **params: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        ends = time.monotonic() + PATIENCE_SECS
        while True:
            said = self._hear(ends)
            if said.get("id") == self._number:
                if "error" in said and not fails:
                    raise RuntimeError(f"{method}: {said['error']}")
                return said.get("result", {})

    def _hear(self, ends: float) -> dict[str, Any]:
        while b"\0" not in self._said:
            if not select.select([self._from], [], [], max(0.0, ends - time.monotonic()))[0]:
                raise TimeoutError("Chromium says nothing")
            some = os.read(self._from, 1 << 16)
            if not some:
                raise RuntimeError("Chromium is gone")
            self._said += some
        whole, _, self._said = self._said.partition(b"\0")
        found: dict[str, Any] = json.loads(whole)
        return found


def decide(browser: Chromium, url: str, name: str, password: str) -> None:
    """Signs in if nobody is, reads, and approves: twice, as the page asks it."""
    browser.goto(url)
    if browser.js("location.pathname").startswith("/sign-in"):
        browser.fill("User name", name)
        browser.fill("Password", password)
        browser.press("Sign in", then="Comment")
    if browser.js("location.origin + location.pathname") != url:
        raise RuntimeError(f"another page than the one that was printed: {browser.js('location.href')}")
    proof = "document.querySelector('.proof-check')"
    browser.until(f"{proof}.dataset.state && {proof}.innerText.includes('matches')")
    print("in Chromium:", browser.js(f"{proof}.innerText").splitlines()[0], flush=True)
    browser.fill("Comment", "Eva called.")
    browser.press("Approve", then="Approve this change?")
    browser.press("Confirm", then=f"Approved by {name}")
    print(f"in Chromium: {name} approved it", flush=True)


def main(command: list[str]) -> int:
    """The example's own status."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("told to end"))
    with (
        Chromium() as browser,
        # In a session of its own, so that whatever it began can be ended with it.
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
        ) as run,
    ):
        assert run.stdout is not None
        url = ""
        try:
            for line in run.stdout:
                print(line, end="", flush=True)
                asked, login = ASKED.search(line), LOGIN.search(line)
                url = asked[1] if asked else url
                if url and login:
                    decide(browser, url, login[1], login[2])
                    url = ""
        except BaseException:
            os.killpg(run.pid, signal.SIGTERM)
            raise
        return run.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
