#!/usr/bin/env python3
"""Lets pprof read profiles of examples/profile.cpp, and compares them with those of perf.

    profile_test.py --program FILE [--seconds N]

pprof is a part of Go, and perf part of the tools of the kernel. A part is skipped if its program is
missing or may not run here. The status is 77 if both parts are skipped.
"""

import argparse
import collections
import http.client
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

SKIPPED = 77
LISTENING = re.compile(r"listening on \S*:(\d+)$", re.MULTILINE)
# Each request computes for many ticks of the kernel's clock. Beside other processes, a thread often
# begins at a tick, and the timers of CPU time miss work that ends before the next one.
TARGETS = ["/primes/200000", "/median/200000"]
HEAVIEST = 10
AGREEMENT_MIN = 0.9


def find(name, *folders):
    """Returns the path of a program, also outside of PATH."""
    return shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), *folders]))


def get(port, target, timeout=60):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        connection.request("GET", target)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def start_server(program, log):
    server = subprocess.Popen([program, "--port", "0", "--cores", "2"], stdout=log.open("w"),
                              stderr=subprocess.STDOUT)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and server.poll() is None:
        if found := LISTENING.search(log.read_text()):
            return server, int(found[1])
        time.sleep(0.05)
    server.kill()
    raise SystemExit(f"no server: {log.read_text()}")


class Load:
    """Threads that send requests until the end of the block."""

    def __init__(self, port):
        self.port, self.done = port, threading.Event()
        self.threads = [threading.Thread(target=self._send, args=(each,)) for each in TARGETS * 2]

    def _send(self, target):
        while not self.done.is_set():
            get(self.port, target)

    def __enter__(self):
        for each in self.threads:
            each.start()

    def __exit__(self, *_):
        self.done.set()
        for each in self.threads:
            each.join()


def pprof(go, file, *options):
    """Returns the lines of `go tool pprof`."""
    result = subprocess.run([go, "tool", "pprof", *options, str(file)], capture_output=True,
                            text=True, timeout=120, check=False,
                            env=os.environ | {"PPROF_TMPDIR": str(file.parent)})
    if result.returncode != 0:
        raise SystemExit(f"pprof {options}: {result.stderr}")
    return result.stdout.splitlines()


def check_pprof(go, port, folder, seconds):
    """Yields what is wrong with the profile as pprof reads it."""
    status, data = get(port, f"/profile?seconds={seconds}&hz=199")
    file = folder / "profile.pb.gz"
    file.write_bytes(data)
    if status != 200:
        yield f"the profile has the status {status}: {data[:500]}"
        return
    top = pprof(go, file, "-top")
    print("\n".join(top[:14]))
    functions = [line.split(None, 5) for line in top if re.match(r"\s*[0-9.]+\w* +[0-9.]+%", line)]
    if not any("is_prime" in row[5] or "count_primes" in row[5] for row in functions[:3]):
        yield "pprof does not show the primes among the three heaviest functions"
    tags = "\n".join(pprof(go, file, "-tags"))
    for text in ("route", "GET /primes/{below}", "GET /median/{count}", "coroutine", "core"):
        if text not in tags:
            yield f"pprof shows no label {text}: {tags[:1000]}"
    focused = "\n".join(pprof(go, file, "-top", "-tagfocus=route=GET /median"))
    if "count_primes" in focused or "median" not in focused:
        yield f"the label does not select the route: {focused[:1000]}"


def own_weights(folded):
    """Returns the share of each function without its calls."""
    weights = collections.Counter()
    for line in folded.decode().splitlines():
        stack, _, count = line.rpartition(" ")
        weights[plain(stack.rpartition(";")[2])] += int(count)
    return shares(weights)


def plain(name):
    """Returns the name of a function without its parameters, its result and parts of coroutines."""
    name = re.sub(r" \[clone [^]]*\]", "", name)
    name = re.sub(r"^\[.\] ", "", name)
    depth, begin = 0, 0
    for index, letter in enumerate(name):
        depth += {"(": 1, "<": 1, ")": -1, ">": -1}.get(letter, 0)
        if letter == " " and depth == 0 and not name[:index].endswith("operator"):
            begin = index + 1  # the result ends here
    name = name[begin:]
    for index in range(len(name) - 1, -1, -1) if name.endswith(")") else ():
        depth += {")": 1, "(": -1}.get(name[index], 0)
        if name[index] == "(" and depth == 0:
            return name[:index]
    return name


def shares(weights):
    total = sum(weights.values()) or 1
    return {name: weight / total for name, weight in weights.items()}


def perf_weights(perf, server, folder, seconds):
    """Returns the share of each function as perf sees it; None if perf may not run."""
    data = folder / "perf.data"
    recorded = subprocess.run(
        [perf, "record", "-q", "-e", "cpu-clock:u", "-F", "199", "-p", str(server.pid), "-o",
         str(data), "--", "sleep", str(seconds)], capture_output=True, text=True, check=False)
    if recorded.returncode != 0 or not data.exists():
        print(f"perf: {recorded.stderr.strip()[:300]}")
        return None
    shown = subprocess.run([perf, "report", "-i", str(data), "--stdio", "--no-children", "-F",
                            "sample,symbol", "-t", "\t"], capture_output=True, text=True,
                           check=False).stdout
    weights = collections.Counter()
    for line in shown.splitlines():
        count, _, name = line.strip().partition("\t")
        if count.strip().isdigit():
            weights[plain(name.strip())] += int(count)
    return shares(weights) if weights else None


def compare_with_perf(perf, server, port, folder, seconds):
    """Returns how far the shares of perf's heaviest functions agree with ours, from 0 to 1; None if
    perf may not run."""
    found = {}

    def record():
        found["own"] = get(port, f"/profile?seconds={seconds}&hz=199&format=folded")

    recorder = threading.Thread(target=record)
    recorder.start()
    theirs = perf_weights(perf, server, folder, seconds)
    recorder.join()
    if theirs is None:
        return None
    own = own_weights(found["own"][1])
    heaviest = sorted(theirs, key=theirs.get, reverse=True)[:HEAVIEST]
    for name in heaviest:
        print(f"{theirs[name]:6.1%} perf {own.get(name, 0):6.1%} weir  {name[:100]}")
    # perf counts user mode only; a function that calls the kernel has its time in our profile.
    ours, wanted = (shares({name: weights.get(name, 0) for name in heaviest})
                    for weights in (own, theirs))
    agreement = sum(min(ours[name], wanted[name]) for name in heaviest)
    print(f"agreement over the {len(heaviest)} heaviest functions: {agreement:.3f}")
    return agreement


def check_perf(perf, server, port, folder, seconds):
    """Yields if perf and we disagree. Few samples differ by chance, so it tries longer runs too."""
    for attempt in range(3):
        agreement = compare_with_perf(perf, server, port, folder, seconds * (attempt + 1))
        if agreement is None:
            print("skipped: perf may not run here")
            return
        if agreement >= AGREEMENT_MIN:
            return
    yield f"the agreement is {agreement:.3f}, wanted {AGREEMENT_MIN}"


def wait_for(condition, what, seconds=30):
    """Returns when the condition is true, and fails if it stays false."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit(f"after {seconds} s: {what}")
        time.sleep(0.01)


def timers(server):
    """Returns the number of POSIX timers of the server; None if the kernel does not tell."""
    try:
        text = pathlib.Path(f"/proc/{server.pid}/timers").read_text()
    except OSError:
        return None
    return len(re.findall(r"^ID:", text, re.MULTILINE))


def check_refusals(server, port):
    """Yields what is wrong with refusals, and what a profile leaves behind without its client."""
    for query in ("seconds=0", "seconds=61", "seconds=100000", "hz=0", "hz=1000"):
        if (status := get(port, f"/profile?{query}")[0]) != 400:
            yield f"{query} has the status {status}"
    if timers(server) is None:
        print("skipped: the kernel does not list timers")
        return
    wait_for(lambda: timers(server) == 0, "the server has timers without a profile")
    first = socket.create_connection(("127.0.0.1", port), timeout=60)
    first.sendall(b"GET /profile?seconds=60&hz=999 HTTP/1.1\r\nHost: a\r\n\r\n")
    wait_for(lambda: timers(server) > 0, "the profile has not begun")
    status, text = get(port, "/profile?seconds=1")
    if status != 409 or b"another profile" not in text:
        yield f"the second profile has the status {status}: {text[:300]}"
    first.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # reset
    first.close()
    wait_for(lambda: timers(server) == 0, "the profile continues without its client")
    if (status := get(port, "/profile?seconds=1&format=folded")[0]) != 200:
        yield f"the next profile has the status {status}"


def check_drain(server, port):
    """Yields if a drain does not end a profile early. It ends the server."""
    found = {}

    def record():
        found["answer"] = get(port, "/profile?seconds=60&format=folded", timeout=90)

    begin = time.monotonic()
    recorder = threading.Thread(target=record)
    recorder.start()
    wait_for(lambda: timers(server) != 0, "the profile has not begun")
    server.send_signal(signal.SIGTERM)
    recorder.join()
    if found.get("answer", (0, b""))[0] != 200:
        yield f"the profile in a drain: {found}"
    if time.monotonic() - begin > 50:
        yield "the drain waited for the profile"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--seconds", type=int, default=4)
    options = parser.parse_args()
    go = find("go", "/usr/local/go/bin", "/usr/lib/go/bin")
    perf = find("perf")
    if go is None and perf is None:
        print("skipped: neither go nor perf is installed")
        return SKIPPED
    wrong = []
    with tempfile.TemporaryDirectory(prefix="weir-profile-") as name:
        folder = pathlib.Path(name)
        server, port = start_server(options.program, folder / "server.log")
        try:
            with Load(port):
                if go is None:
                    print("skipped: go is not installed")
                else:
                    wrong += check_pprof(go, port, folder, options.seconds)
                if perf is None:
                    print("skipped: perf is not installed")
                else:
                    wrong += check_perf(perf, server, port, folder, options.seconds)
                wrong += check_refusals(server, port)
            wrong += check_drain(server, port)
            if (status := server.wait(60)) != 0:
                wrong.append(f"the server ended with {status}")
        finally:
            server.kill()
            server.wait()
        if wrong:
            print("\n".join(["FAILED:", *wrong, (folder / "server.log").read_text()[-3000:]]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
