#!/usr/bin/env python3
"""Compares files of Weir with files of nginx: responses per second of the server's CPU time.

    files.py --build FOLDER [--runs N] [--seconds S] [--server-cpu N] [--load-cpu N]

Each server has one thread. The rounds of the servers alternate. nginx opens its files once
(open_file_cache), as Weir does, and sends them by sendfile(2).
"""

import argparse
import pathlib
import statistics
import sys
import tempfile

import serving
import works

ROOT = pathlib.Path(__file__).resolve().parent
FILES = {"f-1k": 1024, "f-100k": 100 * 1024, "f-10m": 10 * 1024 * 1024}
TARGETS = {"f-1k": 1.0, "f-100k": 1.0, "f-10m": 0.95}


def commands(options, folder):
    """Returns the command line of each server by its name."""
    site = [str(options.build / "examples/example_site"), str(folder), "--port", "0", "--address",
            "127.0.0.1", "--cores", "1", "--no-pin", "--backend"]
    nginx = ["python3", str(ROOT / "peers/nginx/start.py"), "--prefix", str(folder)]
    return {"nginx": nginx, **{f"weir-{each}": [*site, each] for each in ("uring", "epoll")}}


def measure(options, running, name):
    """Returns the responses per second of the server's CPU time in one round."""
    work = works.Workload(name, name, path=f"/{name}", any_length=True)
    load = serving.load(options, running.port, running.processes(), work, options.seconds)
    if found := serving.errors_of(load):
        raise serving.Failure(f"{name}: {found} errors: {load['errors']}")
    return load["server"]["responses_per_cpu_second"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True, help="a build of Weir")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.2)
    parser.add_argument("--warm-up", type=float, default=0.3)
    parser.add_argument("--server-cpu", type=int, default=0)
    parser.add_argument("--load-cpu", type=int, default=1)
    options = parser.parse_args()
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        files = pathlib.Path(folder) / "files"
        files.mkdir()
        for name, size in FILES.items():
            (files / name).write_bytes(bytes(size))
            (files.parent / name).write_bytes(bytes(size))
        servers = commands(options, folder)
        for _ in range(options.runs):
            for server, command in servers.items():
                with serving.serving(command, [options.server_cpu]) as running:
                    for name in FILES:
                        figures.setdefault((name, server), []).append(
                            measure(options, running, name))
    for name, target in TARGETS.items():
        base = statistics.median(figures[name, "nginx"])
        for server in servers:
            found = figures[name, server]
            ratio = statistics.median(found) / base
            verdict = "" if server == "nginx" else f" (target: {target:.2f})"
            print(f"{name:7} {server:11} {statistics.median(found):9,.0f} "
                  f"({min(found):,.0f} .. {max(found):,.0f})  {ratio:.2f} of nginx{verdict}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
