#!/usr/bin/env python3
"""Runs the benchmarks: `./dev bench`.

Each server in turn does each work, again and again (A B C A B C ...), on a processor of its own,
with the load generator on another. The main figure is requests per second of the server's own
processor time, next to how busy it was; ratios are of neighbours in time.
"""

import argparse
import contextlib
import datetime
import json
import os
import pathlib
import platform
import re
import socket
import subprocess
import sys
import tempfile
import time

import cpu_share
import figures
import programs

LISTENING = re.compile(r"listening on \S*:(\d+)")
START_SECONDS_MAX = 10
STOP_SECONDS_MAX = 10


def say(text):
    print(text, file=sys.stderr, flush=True)


def on_processor(number, command):
    return ["taskset", "--cpu-list", str(number), *command]


@contextlib.contextmanager
def serving(command, processor):
    """A server's process and port; ended at the end."""
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(on_processor(processor, command), stdin=subprocess.DEVNULL,
                                   stdout=log, stderr=subprocess.STDOUT)
        try:
            yield process, port_of(process, log, command)
        finally:
            process.terminate()
            try:
                process.wait(STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def port_of(process, log, command):
    deadline = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < deadline:
        log.seek(0)
        text = log.read()
        if found := LISTENING.search(text):
            return int(found.group(1))
        if process.poll() is not None:
            break
        time.sleep(0.02)
    raise RuntimeError(f"does not serve: {' '.join(command)}\n{text}")


def response_to(port, request):
    """The bytes of one response, for the length that canned ones shall have."""
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        connection.sendall(request)
        received = b""
        while b"\r\n\r\n" not in received:
            received += received_from(connection)
        head, _, body = received.partition(b"\r\n\r\n")
        length = int(re.search(rb"(?i)\r\ncontent-length: *(\d+)", head).group(1))
        while len(body) < length:
            body += received_from(connection)
    if not head.startswith(b"HTTP/1.1 200 "):
        raise RuntimeError(f"not a good response: {head.decode(errors='replace')}")
    return head + b"\r\n\r\n" + body


def received_from(connection):
    data = connection.recv(65536)
    if not data:
        raise RuntimeError("the connection ended before the response did")
    return data


def resident_bytes(process):
    status = pathlib.Path(f"/proc/{process}/status").read_text()
    found = re.search(r"^VmRSS:\s+(\d+) kB", status, re.MULTILINE)
    return int(found.group(1)) * 1024 if found else 0


def measure(server, work, options, response_bytes):
    """One run of one server, as a dictionary of numbers."""
    command = server.command(options.build, work, response_bytes)
    with (cpu_share.limited(work.server_share) as (allowed, limit),
          serving(command, options.server_cpu) as (process, port)):
        limit(process.pid)
        generator = [str(options.build / "bin/weir"), "bench",
                     f"http://127.0.0.1:{port}{work.path}", "--json",
                     "--seconds", str(options.seconds), "--server-pid", str(process.pid),
                     *work.options()]
        ran = subprocess.run(on_processor(options.load_cpu, generator), capture_output=True,
                             text=True, timeout=options.seconds + 120)
        resident = resident_bytes(process.pid)
    try:
        load = json.loads(ran.stdout)
    except json.JSONDecodeError:
        raise RuntimeError(f"the generator failed: {ran.stderr or ran.stdout}") from None
    share = load.get("server", {"responses_per_cpu_second": 0, "busy": 0})
    return {
        "figure": share["responses_per_cpu_second"],
        "busy": share["busy"] / allowed,
        "rate": load["responses_per_second"],
        "p50": load["latency_ns"]["p50"],
        "p99": load["latency_ns"]["p99"],
        "resident": resident,
        "errors": load["error_count"],
        "load": load,
    }


def run_work(work, servers, options):
    """All rounds of one work: a list of {server's name: result}."""
    model = programs.MODEL.command(options.build, work, 0)
    with serving(model, options.server_cpu) as (_, port):
        response_bytes = len(response_to(port, work.request()))
    say(f"{work.id}: {work.title}; responses of {response_bytes} bytes")
    rounds = []
    for number in range(options.runs):
        results = {}
        # Each starts a round in turn, so that none is always the first after a pause.
        turn = number % len(servers)
        for server in servers[turn:] + servers[:turn]:
            result = measure(server, work, options, response_bytes)
            results[server.name] = result
            errors = f", {result['errors']} ERRORS" if result["errors"] else ""
            say(f"  {number + 1}/{options.runs} {server.name:12} "
                f"{figures.thousands(result['figure']):>8} k per CPU second, "
                f"{100 * result['busy']:5.1f} % busy, p99 {result['p99'] / 1000:.0f} us{errors}")
        rounds.append(results)
    return rounds


def machine():
    model = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    return {
        "processor": model.group(1) if model else platform.machine(),
        "processors": os.cpu_count(),
        "kernel": platform.release(),
        "date": datetime.date.today().isoformat(),
    }


def parse_arguments():
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--only", action="append", default=[], metavar="NAME",
                        help="a work or a server (a part of its name will do); may be repeated")
    parser.add_argument("--seconds", type=float, default=2, help="of each run (2)")
    parser.add_argument("--runs", type=int, default=9, help="of each server and work (9)")
    parser.add_argument("--server-cpu", type=int, default=0, metavar="N")
    parser.add_argument("--load-cpu", type=int, default=1, metavar="N")
    parser.add_argument("--out", type=pathlib.Path, help="folder for bench.md and bench.json")
    return parser.parse_args()


def chosen(options):
    """The works and servers that --only names; all of a kind of which it names none."""
    exact = {work.id for work in programs.WORKS}
    works = [work for work in programs.WORKS if work.id in options.only] or programs.WORKS
    parts = [name for name in options.only if name not in exact]
    servers = [server for server in programs.SERVERS if any(part in server.name for part in parts)]
    if parts and not servers:
        raise SystemExit(f"nothing is called {', '.join(parts)}; there are "
                         f"{', '.join(sorted(exact))} and "
                         f"{', '.join(server.name for server in programs.SERVERS)}")
    return works, servers or programs.SERVERS


def main():
    options = parse_arguments()
    works, servers = chosen(options)
    usable = os.sched_getaffinity(0)
    if not {options.server_cpu, options.load_cpu} <= usable:
        raise SystemExit(f"needs two processors; this process may use {sorted(usable)}")
    say(f"about {len(works) * len(servers) * options.runs * (options.seconds + 0.4) / 60:.0f} "
        f"minutes, load {os.getloadavg()[0]:.1f}")
    report = {"machine": machine(), "seconds": options.seconds, "works": {}}
    text = []
    errors = 0
    for work in works:
        rounds = run_work(work, servers, options)
        rows = figures.summary(rounds, [server.name for server in servers])
        errors += sum(row["errors"] for row in rows)
        report["works"][work.id] = {"title": work.title, "summary": rows, "rounds": rounds}
        text += [f"### {work.id}: {work.title}", "", figures.table(rows), ""]
        print("\n".join(text[-4:]), flush=True)
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "bench.json").write_text(json.dumps(report, indent=1))
        (options.out / "bench.md").write_text("\n".join(text))
        say(f"written to {options.out}")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
