#!/usr/bin/env python3
"""Opens the page of examples/web_page.cpp in headless Chromium and checks what it reports.

    web_page_test.py --program FILE --screenshot FILE

The page runs its own checks, and writes a line "PASS name: ..." or "FAIL name: ..." for each. This
test drives the browser by the DevTools protocol over pipes. It is skipped if Chromium is not
installed.
"""

import argparse
import base64
import json
import os
import pathlib
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SKIPPED = 77
SECONDS_MAX = 90
UPLOAD_BYTES_PER_SECOND = 8 << 20
UPLOAD_STEPS_MIN = 3
CHECKS = ["protocol", "fetch", "upload", "seek", "events", "websocket"]
LISTENING = re.compile(r"listening on \S*:(\d+)$")


class Browser:
    """Chromium with one tab. It reads commands from descriptor 3 and answers on descriptor 4."""

    def __init__(self, program, profile, deadline):
        self.deadline = deadline
        self.log = open(pathlib.Path(profile) / "chromium.log", "w+b")
        commands, self.commands = os.pipe()
        self.answers, answers = os.pipe()
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec "$0" "$@" 3<&{commands} 4>&{answers}', program, "--headless=new",
             "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--ignore-certificate-errors", "--window-size=900,900", "--remote-debugging-pipe",
             f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(commands, answers), stdout=self.log, stderr=self.log, start_new_session=True)
        os.close(commands)
        os.close(answers)
        self.received, self.last_id, self.session, self.events = b"", 0, None, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target,
                                 flatten=True)["sessionId"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.commands)
        os.close(self.answers)
        os.killpg(self.process.pid, signal.SIGKILL)  # Chromium and its children
        self.process.wait()
        self.log.close()

    def call(self, method, **parameters):
        """Sends one command and returns its result."""
        self.last_id += 1
        message = {"id": self.last_id, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self.last_id:
                if "error" in answer:
                    raise SystemExit(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def _read(self):
        while b"\0" not in self.received:
            left = self.deadline - time.monotonic()
            readable = select.select([self.answers], [], [], max(left, 0))[0]
            more = os.read(self.answers, 1 << 16) if readable else b""
            if not more:
                self.log.seek(0)
                log = self.log.read().decode(errors="replace")
                raise SystemExit(f"no answer of Chromium, which says: {log[-2000:]}")
            self.received += more
        message, self.received = self.received.split(b"\0", 1)
        return json.loads(message)

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        return result["result"].get("value")


def start_server(program, log):
    """Returns the process and its port."""
    server = subprocess.Popen([program, "--tls-self-signed", "--port", "0"], stderr=log.open("w"))
    deadline = time.monotonic() + 30
    while server.poll() is None and time.monotonic() < deadline:
        if match := next(filter(None, map(LISTENING.search, log.read_text().splitlines())), None):
            return server, int(match[1])
        time.sleep(0.05)
    server.kill()
    raise SystemExit(f"no server: {log.read_text()}")


def run_page(browser, url, screenshot):
    """Returns the lines of the results when the page has completed its checks."""
    browser.call("Network.enable")
    # An upload at the speed of a network reports its progress several times.
    browser.call("Network.emulateNetworkConditions", offline=False, latency=0,
                 downloadThroughput=-1, uploadThroughput=UPLOAD_BYTES_PER_SECOND)
    browser.call("Page.enable")
    browser.call("Page.navigate", url=url)
    while browser.evaluate("document.body?.dataset.done") != "yes":
        if time.monotonic() > browser.deadline:
            break
        time.sleep(0.1)
    image = browser.call("Page.captureScreenshot", format="png")["data"]
    screenshot.write_bytes(base64.b64decode(image))
    return browser.evaluate("[...document.querySelectorAll('#results li')].map(e => e.innerText)")


def websocket_statuses(browser):
    """Returns the statuses of opening handshakes: 200 over HTTP/2, 101 over HTTP/1.1."""
    return [event["params"]["response"]["status"] for event in browser.events
            if event.get("method") == "Network.webSocketHandshakeResponseReceived"]


def failures(lines):
    """Yields what is wrong with the lines of the page."""
    results = {}
    for line in lines or []:
        word, name, *_ = line.split()
        results[name.removesuffix(":")] = word
        if steps := re.search(r"in (\d+) steps$", line):
            if int(steps[1]) < UPLOAD_STEPS_MIN:
                yield f"the upload reported its progress {steps[1]} times"
    for name in CHECKS:
        if results.pop(name, "no line") != "PASS":
            yield f"{name} did not pass"
    for name in results:
        yield f"{name} is not a check of this test"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--screenshot", type=pathlib.Path, required=True)
    options = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        print("skipped: Chromium is not installed")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="weir-page-", ignore_cleanup_errors=True) as folder:
        log = pathlib.Path(folder) / "server.log"
        server, port = start_server(options.program, log)
        try:
            with Browser(chromium, folder, time.monotonic() + SECONDS_MAX) as browser:
                lines = run_page(browser, f"https://127.0.0.1:{port}/", options.screenshot)
                print(f"handshakes of WebSockets: {websocket_statuses(browser)}")
            print("\n".join(lines or ["no results"]))
            wrong = list(failures(lines))
            server.send_signal(signal.SIGTERM)
            if (status := server.wait(30)) != 0:
                wrong.append(f"the server ended with {status}")
        finally:
            server.kill()
            server.wait()
        if wrong:
            print("\n".join(["FAILED:", *wrong, log.read_text()]))
        return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
