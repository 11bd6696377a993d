#!/usr/bin/env python3
"""Runs Autobahn's testsuite of WebSockets against Weir's server and against Weir's client.

The fuzzing client of Autobahn sends its cases to examples/websocket_echo.cpp. Its fuzzing server
sends them to tools/autobahn/client.cpp. Each case has a verdict of its own and one for the closing
handshake. The run fails for verdicts that EXPECTED does not allow.

Autobahn (`wstest`) is a program for Python 2.7 or PyPy 2.7: `pip install autobahntestsuite`. It is
named by the option or by the variable WEIR_WSTEST, or lies in the path. `./dev test autobahn` runs
this program with --as-test, and is skipped without Autobahn. It leaves out most cases of compressed
messages, which take long.
"""

import argparse
import collections
import contextlib
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 77
# The runs of each side: a name, which is the route of the server and an argument of the client, and
# the classes of its cases. 12 and 13 are those of compressed messages.
RUNS = {
    "ws": (1, 2, 3, 4, 5, 6, 7, 9, 10),
    "compressed": (12, 13),  # each message on its own
    "windows": (12, 13),     # messages that refer to earlier ones
}
# The cases of compressed messages that a test runs. All of them take ten minutes for each run.
TESTED = ("12.1.1", "12.1.5", "12.2.3", "12.3.1", "13.1.1", "13.3.1", "13.5.2", "13.7.1")
START_SECONDS_MAX = 30
LISTENING = re.compile(r"listening on \S*:([0-9]+)")
PASSED = ("OK", "OK")
# Cases that state a fact instead of a rule. NON-STRICT is no verdict that Weir gets, because it
# rejects invalid UTF-8 as soon as it arrives.
EXPECTED = {
    "7.1.6": {("INFORMATIONAL", "INFORMATIONAL")},
    "7.13.1": {("INFORMATIONAL", "INFORMATIONAL")},
    "7.13.2": {("INFORMATIONAL", "INFORMATIONAL")},
}


class Failure(Exception):
    """A run that gave no report."""


@contextlib.contextmanager
def running(command, log):
    """Runs a program until the end of `with`."""
    with log.open("w") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_until(condition, process, log):
    """Returns the first true value of condition()."""
    deadline = time.monotonic() + START_SECONDS_MAX
    while process.poll() is None and time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.05)
    raise Failure(f"no start: {log.read_text(encoding='utf-8')}")


def listens(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def write_spec(folder, cases, **more):
    """Writes the order of a run. Autobahn writes its report into `folder`/reports."""
    spec = {"outdir": str(folder / "reports"), "cases": cases, "exclude-cases": [],
            "exclude-agent-cases": {}, **more}
    path = folder / "spec.json"
    path.write_text(json.dumps(spec), encoding="ascii")
    return path


def test_server(options, folder, name, cases):
    """Autobahn's client against Weir's server."""
    log = folder / "server.log"
    command = [options.server, "--port", "0", "--cores", "1"]
    with running(command, log) as server:
        found = wait_until(lambda: LISTENING.search(log.read_text(encoding="utf-8")), server, log)
        spec = write_spec(folder, cases, servers=[
            {"agent": "weir", "url": f"ws://127.0.0.1:{found[1]}/{name}"}])
        with (folder / "wstest.log").open("w") as output:
            subprocess.run([options.wstest, "-m", "fuzzingclient", "-s", str(spec)], cwd=folder,
                           stdout=output, stderr=output, check=True)


def test_client(options, folder, name, cases):
    """Autobahn's server against Weir's client."""
    log = folder / "wstest.log"
    port = free_port()
    url = f"ws://127.0.0.1:{port}"
    spec = write_spec(folder, cases, url=url, webport=0)
    with running([options.wstest, "-m", "fuzzingserver", "-s", str(spec)], log) as server:
        wait_until(lambda: listens(port), server, log)
        subprocess.run([options.client, url, name], check=True)


def read_report(folder):
    index = folder / "reports/index.json"
    if not index.exists():
        raise Failure(f"no report: {(folder / 'wstest.log').read_text(encoding='utf-8')}")
    return json.loads(index.read_text(encoding="utf-8"))["weir"]


def unexpected(report):
    """Yields the cases with verdicts that EXPECTED does not allow."""
    for name, case in sorted(report.items()):
        verdicts = case["behavior"], case["behaviorClose"]
        if verdicts != PASSED and verdicts not in EXPECTED.get(name, ()):
            yield f"{name}: {verdicts[0]}, closing handshake {verdicts[1]}"


def run_side(options, direction, test, name):
    """Runs the cases of one side. Returns true if all have the expected verdicts."""
    cases = options.cases or [f"{each}.*" for each in RUNS[name]]
    if options.as_test and name != "ws":
        cases = TESTED
    with tempfile.TemporaryDirectory(prefix="weir-autobahn-") as folder:
        start = time.monotonic()
        path = pathlib.Path(folder)
        test(options, path, name, cases)
        report = read_report(path)
        if options.keep:
            shutil.copytree(path / "reports", options.keep / direction / name, dirs_exist_ok=True)
    verdicts = collections.Counter(each["behavior"] for each in report.values())
    counts = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common())
    seconds = time.monotonic() - start
    print(f"{direction}, {name}: {len(report)} cases in {seconds:.0f} s: {counts}", flush=True)
    failed = list(unexpected(report))
    for line in failed:
        print(f"{direction}, {name}: FAILED {line}")
    return bool(report) and not failed


def run(options):
    """Returns the exit status."""
    passed = True
    for direction, test in (("server", test_server), ("client", test_client)):
        for name in RUNS:
            if options.only in (None, direction) and options.run in (None, name):
                passed = run_side(options, direction, test, name) and passed
    return 0 if passed else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    build = ROOT / "build/release"
    parser.add_argument("--server", default=build / "examples/example_websocket_echo",
                        help="the program of the server (default: that of build/release)")
    parser.add_argument("--client", default=build / "tools/autobahn/autobahn_client",
                        help="the program of the client (default: that of build/release)")
    parser.add_argument("--as-test", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--wstest", default=os.environ.get("WEIR_WSTEST"),
                        help="the program of Autobahn")
    parser.add_argument("--only", choices=("server", "client"), help="the side of Weir to test")
    parser.add_argument("--run", choices=RUNS, help="the run of a side (default: all of RUNS)")
    parser.add_argument("--cases", nargs="+", metavar="CASE",
                        help="cases such as 9.1.2 or '7.*' (default: those of RUNS)")
    parser.add_argument("--keep", type=pathlib.Path, metavar="FOLDER",
                        help="keep the reports of Autobahn, with a page for each case")
    options = parser.parse_args()
    options.wstest = options.wstest or shutil.which("wstest")
    if options.wstest is None:
        print("skipped: wstest of Autobahn's testsuite is not installed")
        return SKIPPED if options.as_test else 1
    try:
        return run(options)
    except Failure as failure:
        print(failure)
        return 1


if __name__ == "__main__":
    sys.exit(main())
