#!/usr/bin/env python3
"""Measures the cost of traces: of an unsampled and a sampled request, and of a collector that is
living, dead or stalled.

    traces.py --build build/release [--part ping|tail] [--runs 9]

`ping` compares requests per second of the server's processor time, POST /ping on 400 connections.
`tail` compares the p99 of GET at a fixed rate. Each round measures all variants in turn, and the
ratios are those of one round.
"""

import argparse
import contextlib
import http.server
import os
import pathlib
import socket
import statistics
import sys
import threading
import types
import urllib.request

import works
from serving import errors_of, load, serving

PING = works.ping("B13", 400)
TAIL = works.Workload("B2", "GET at a fixed rate", connections=64, rate=20_000, saturates=False)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def living():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


@contextlib.contextmanager
def dead():
    """A port where nothing listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@contextlib.contextmanager
def stalled():
    """Accepts connections and never answers."""
    kept = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        def accept():
            with contextlib.suppress(OSError):
                while True:
                    kept.append(listener.accept()[0])
        threading.Thread(target=accept, daemon=True).start()
        yield listener.getsockname()[1]
    for each in kept:
        each.close()


# Variants: the collector, and the part of the requests that is sampled; None: no filter.
VARIANTS = {
    "ping": {"off": (dead, None), "0 %": (living, 0), "1 %": (living, 0.01), "100 %": (living, 1)},
    "tail": {"off": (dead, None), "living": (living, 1), "dead": (dead, 1),
             "stalled": (stalled, 1)},
}


def measure(options, collector, ratio, work):
    """Returns the report of the generator and the counts of the tracer."""
    with collector() as port:
        variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}",
                     "OTEL_TRACES_SAMPLER": "parentbased_traceidratio",
                     "OTEL_TRACES_SAMPLER_ARG": str(ratio)}
        if ratio is None:
            variables = {"OTEL_SDK_DISABLED": "true"}
        os.environ.update(variables)
        try:
            command = [str(options.build / "bench/inside/inside_traced_server"), "--address",
                       "127.0.0.1", "--port", "0", "--cores", "1", "--no-pin"]
            with serving(command, [options.server_cpu]) as server:
                report = load(options, server.port, server.processes(), work, options.seconds)
                url = f"http://127.0.0.1:{server.port}/counts"
                with urllib.request.urlopen(url, timeout=10) as answer:
                    counts = answer.read().decode().split()
                resident = server.resident_bytes()
        finally:
            for name in variables:
                del os.environ[name]
    # A fixed rate ends with requests that are not answered yet.
    errors = report["error_count"] if work.rate else errors_of(report)
    if errors:
        sys.exit(f"traces.py: {errors} errors of the load: {report['errors']}")
    report["resident"] = resident
    report["counts"] = dict(zip(counts[::2], map(int, counts[1::2])))
    return report


def run(options, part):
    variants = VARIANTS[part]
    work = PING if part == "ping" else TAIL
    rounds = []
    for number in range(options.runs):
        results = {}
        names = list(variants)
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            report = measure(options, *variants[name], work)
            results[name] = figure = types.SimpleNamespace(
                value=options.figure[part](report), counts=report["counts"],
                resident=report["resident"])
            print(f"  {number + 1}/{options.runs} {name:8} {figure.value:12.1f} "
                  f"{figure.resident / 2**20:6.1f} MiB {figure.counts}", flush=True)
        rounds.append(results)
    print(f"{work.title}: {options.unit[part]}")
    for name in variants:
        values = [each[name].value for each in rounds]
        ratios = sorted(each[name].value / each["off"].value for each in rounds)
        print(f"  {name:8} {statistics.median(values):12.1f}   against off: median "
              f"{statistics.median(ratios):.3f} ({ratios[0]:.3f}..{ratios[-1]:.3f})   resident "
              f"{max(each[name].resident for each in rounds) / 2**20:.1f} MiB at most")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--part", choices=sorted(VARIANTS), action="append")
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--warm-up", type=float, default=0.3)
    parser.add_argument("--server-cpu", type=int, default=0)
    parser.add_argument("--load-cpu", type=int, default=1)
    options = parser.parse_args()
    options.build = options.build.resolve()
    options.figure = {"ping": requests_per_cpu_second, "tail": p99}
    options.unit = {"ping": "requests per second of the server's processor time",
                    "tail": "p99 in microseconds"}
    for part in options.part or sorted(VARIANTS):
        run(options, part)


def requests_per_cpu_second(report):
    return report["server"]["responses_per_cpu_second"]


def p99(report):
    return report["latency_ns"]["p99"] / 1000


if __name__ == "__main__":
    main()
