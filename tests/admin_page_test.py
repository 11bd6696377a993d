#!/usr/bin/env python3
"""Operates examples/operated.cpp by its admin pages: health, planted faults, `weir top`, and a page
in headless Chromium.

    admin_page_test.py --program FILE --tool FILE --screenshot FILE

Only the part with the browser is left out, with a message, if Chromium is not installed.
"""

import argparse
import base64
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
import web_page_test


SECONDS_MAX = 120
PAGES = ["overview", "cores", "routes", "connections", "clients", "slow_turns", "pools", "memory",
         "timers", "tasks", "services"]
ADMIN = re.compile(r"admin pages at (http://\S+)/weir/overview")
LISTENING = re.compile(r"listening on \S*:(\d+)$")


class Service:
    """The example, its service port and the URL of its admin listener."""

    def __init__(self, program, log):
        self.log = log
        # Another address than that of the admin pages, which have port 0 too.
        self.process = subprocess.Popen([program, "--port", "0", "--cores", "2"],
                                        stderr=log.open("w"))
        self.admin = self.port = None
        if not wait_until(self._find_admin, 30):
            raise SystemExit(f"no service: {log.read_text()}")
        # The services of the example take a second to start.
        self.first_status, self.first_health = self.ask_admin("/readyz?verbose")
        if not wait_until(self._find_port, 30):
            raise SystemExit(f"no service: {log.read_text()}")

    def _find_admin(self):
        match = ADMIN.search(self.log.read_text())
        self.admin = match and match[1]
        return self.admin

    def _find_port(self):
        ports = [match[1] for match in map(LISTENING.search, self.log.read_text().splitlines())
                 if match]
        self.port = next((each for each in ports if not self.admin.endswith(":" + each)), None)
        return self.port

    def ask_admin(self, path):
        """Returns the status and the body of an answer of the admin listener; 0 for no answer."""
        try:
            with urllib.request.urlopen(self.admin + path, timeout=20) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def get(self, path, timeout=20):
        """Returns the body of a page of the service, or of an error."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}",
                                        timeout=timeout) as answer:
                return answer.read()
        except OSError:
            return b""

    def page(self, name):
        with urllib.request.urlopen(f"{self.admin}/weir/{name}.json", timeout=20) as answer:
            return json.load(answer)


def health(program, endpoint):
    """Returns the exit status and the line of a health check."""
    done = subprocess.run([program, "--healthcheck", endpoint], timeout=30, text=True,
                          stdout=subprocess.PIPE)
    return done.returncode, done.stdout


def check(condition, what):
    print(("PASS " if condition else "FAIL ") + what)
    check.failed = check.failed or not condition


check.failed = False


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def wait_until(condition, seconds=20):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)  # between two looks
    return False


def check_soon(condition, what):
    """Waits for the condition, because a page shows what has happened a moment later."""
    check(wait_until(condition), what)


def start_faults(service):
    """Plants each fault, and returns the connection of the stuck request."""
    stuck = socket.create_connection(("127.0.0.1", int(service.port)))
    stuck.sendall(b"GET /stuck HTTP/1.1\r\nHost: x\r\n\r\n")
    for _ in range(3):
        service.get("/slow")
    service.get("/store")
    for _ in range(8):
        threading.Thread(target=service.get, args=("/pool",), daemon=True).start()
    return stuck


def check_faults(service):
    """Finds the planted faults by the pages alone."""
    def findings():
        return " | ".join(each["finding"] for each in service.page("overview")["findings"])

    def rows(page, name, key):
        return {each[key]: each for each in service.page(page)[name]}

    check_soon(lambda: "pool images is saturated" in findings(), "overview: saturated pool")
    check_soon(lambda: rows("pools", "pools", "name").get("images", {}).get("queued", 0) > 0,
               "pools: work waits")
    check_soon(lambda: "GET /slow" in findings(), "overview: slow handler")
    check_soon(lambda: "client target http://127.0.0.1:9 is unreachable" in findings(),
               "overview: unreachable store")
    check_soon(lambda: any("GET /slow" in each["cause"] and each["turns"] >= 3
                           for each in service.page("slow_turns")["slow_turns"]),
               "slow_turns: the route and its turns")
    check_soon(lambda: rows("routes", "routes", "route").get("GET /slow", {})
               .get("p50_seconds", 0) > 0.1, "routes: the slow handler")
    check_soon(lambda: rows("routes", "routes", "route").get("GET /store", {})
               .get("failures") == 1, "routes: the answer 502")
    check_soon(lambda: any(each["state"] == "unreachable" and each["last_error"]
                           for each in service.page("clients")["clients"]),
               "clients: the target with its error")
    check_soon(lambda: any(each["route"] == "GET /stuck" and each["state"] == "runs handler"
                           for each in service.page("connections")["connections"]),
               "connections: the stuck request")
    check_soon(lambda: any(each["trace_name"] == "GET /stuck"
                           for each in service.page("tasks")["tasks"]),
               "tasks: the stuck request")

    def frames():
        return rows("memory", "kinds", "kind")["coroutine frames"]["now"]

    before = frames()
    for _ in range(5):
        service.get("/leak")
    check_soon(lambda: frames() - before >= 400, "memory: leaked frames")


def check_top(tool, service):
    top = subprocess.run([tool, "top", service.admin, "--once"], timeout=30, capture_output=True,
                         text=True)
    check(top.returncode == 0 and "GET /slow" in top.stdout and "images" in top.stdout
          and "\x1b" not in top.stdout, "weir top --once")
    refused = subprocess.run([tool, "top", f"http://127.0.0.1:{free_port()}", "--once"], timeout=30,
                             capture_output=True)
    check(refused.returncode == 1, "weir top: no service")


def check_browser(service, screenshot):
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        print("SKIP browser: chromium is not installed")
        return
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile, \
            web_page_test.Browser(chromium, profile, time.monotonic() + 60) as browser:
        browser.call("Page.enable")
        browser.call("Log.enable")
        for name in PAGES:
            browser.call("Page.navigate", url=f"{service.admin}/weir/{name}")
            loaded = wait_until(lambda: browser.evaluate("document.readyState") == "complete" and
                                browser.evaluate("location.pathname") == f"/weir/{name}")
            check(loaded and browser.evaluate("document.body.innerText.length") > 50 and
                  browser.evaluate("document.styleSheets.length") == 1, f"browser: {name}")
            image = browser.call("Page.captureScreenshot", format="png")["data"]
            file = screenshot.with_name(f"{screenshot.stem}-{name}.png")
            file.write_bytes(base64.b64decode(image))
        refused = [event for event in browser.events if event.get("method") == "Log.entryAdded"
                   and "Content Security Policy" in event["params"]["entry"]["text"]]
        check(not refused, "browser: nothing breaks the content policy")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--screenshot", required=True, type=pathlib.Path)
    arguments = parser.parse_args()
    status, _ = health(arguments.program, f"127.0.0.1:{free_port()}")
    check(status == 1, "healthcheck: absent")
    with tempfile.TemporaryDirectory() as folder:
        service = Service(arguments.program, pathlib.Path(folder) / "log")
        try:
            endpoint = service.admin.removeprefix("http://")
            check(service.first_status == 503 and "Store" in service.first_health,
                  "readyz: the service starts, and which part of it")
            check_soon(lambda: health(arguments.program, endpoint)[0] == 0, "healthcheck: ready")
            stuck = start_faults(service)
            check_faults(service)
            check_top(arguments.tool, service)
            check_browser(service, arguments.screenshot)
            service.process.terminate()  # it drains, because a request is stuck
            check_soon(lambda: "draining" in health(arguments.program, endpoint)[1],
                       "healthcheck: draining")
            check(health(arguments.program, endpoint)[0] == 1, "healthcheck: draining is not ready")
            check(service.ask_admin("/livez")[0] == 200, "livez: alive while it drains")
            status, text = service.ask_admin("/readyz")
            check(status == 503 and "draining" in text, "readyz: draining")
            check(service.process.poll() is None, "the service still drains")
            stuck.close()
            check(service.process.wait(30) is not None, "the service ends")
            check(service.ask_admin("/livez")[0] == 0, "the admin listener ends with it")
        finally:
            service.process.kill()
    return 1 if check.failed else 0


if __name__ == "__main__":
    for name in ("http_proxy", "HTTP_PROXY"):  # for urllib
        os.environ.pop(name, None)
    sys.exit(main())
