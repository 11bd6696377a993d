#!/usr/bin/env python3
"""Measures pools of threads for blocking work: `./dev bench pool`.

B6 and B7: each request starts ten operations and is answered immediately. There are three cases,
with work that computes, sleeps, or both, for fixed sizes and for Weir's automatic size. Node's pool
is measured at the same sizes, in one process and in a cluster of two. Meanwhile, another client
requests a cheap endpoint at a fixed rate.
"""

import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import time

import peers
import pool_figures
import pool_plot
import pool_work
import programs
import run
import serving
from pool_figures import AUTOMATIC
from run import in_minutes, say

SIZES = (*(str(2**power) for power in range(2, 11)), AUTOMATIC)
PEER_ROUNDS = 3  # of nine: peers join every third round
START_SECONDS = 0.4
CHEAP_RATE = 250  # requests per second
CHEAP_CONNECTIONS = 2
IDLE_SECONDS = 0.6
CHEAP_SECONDS_MIN = 0.4  # a shorter run has no p99
NODE = programs.Peer("node", "", source="node-pool", tools=("node",), steps=(
    # Without the compiler or Node's headers, it runs only the computing work.
    ("sh", "-c", 'cc -shared -fPIC -O2 -o sleep.node sleep.c -I"$(dirname "$(dirname '
                 '"$(readlink -f "$(command -v node)")")")/include/node" || true'),))


@dataclasses.dataclass(frozen=True)
class Program:
    name: str
    start: tuple  # the command; {size} is replaced
    sizes: tuple
    kinds: tuple = pool_work.KINDS

    def command(self, size):
        return [part.format(size=size) for part in self.start]


def program_names():
    return ("weir", "node", "node-cluster")


def prepared(build, wanted):
    """Returns the programs that can be measured, and {name: reason} of the others."""
    sizes = SIZES[:-1]
    weir = (str(build / "examples/example_pool_lab"), "--pool", "{size}", "--port", "0",
            "--address", "127.0.0.1")
    ready = [Program("weir", weir, SIZES)]
    left_out = {}
    if wanted.intersection(program_names()[1:]):
        node, left_out = peers.prepared([NODE], build.parent / "bench/peers", say)
        for home in (each.home for each in node):
            kinds = pool_work.KINDS if (home / "sleep.node").exists() else ("cpu",)
            if kinds == ("cpu",):
                left_out["node, sleep and mix"] = "Node's headers or a compiler are not installed"
            start = ("env", "UV_THREADPOOL_SIZE={size}", "node", str(home / "server.js"))
            ready.append(Program("node", start, sizes, kinds))
            ready.append(Program("node-cluster", (*start, "--processes", "2"), sizes, kinds))
    return [program for program in ready if program.name in wanted], left_out


class Laboratory:
    def __init__(self, options, each_program, iterations, operation_seconds):
        self.options = options
        self.programs = each_program
        self.iterations = iterations
        self.operation_seconds = operation_seconds
        self.processors = sorted(os.sched_getaffinity(0))
        self.works = [(kind, case) for kind in pool_work.KINDS for case in pool_work.CASES
                      if options.wants(kind) and options.wants(case.id)]
        # {kind, case id: {program: [{size: result} of each round]}}
        self.rounds = {(kind, case.id): {program.name: [] for program in each_program}
                       for kind, case in self.works}
        self.errors = 0

    def plan(self):
        """Yields all measurements in order. A round has every size of a work one after the other,
        so that compared measurements are neighbours in time."""
        for number in range(self.options.runs):
            for kind, case in self.works:
                for program in self.programs:
                    if kind not in program.kinds or not self.joins(program, number):
                        continue
                    sizes = [size for size in program.sizes if size in self.options.sizes]
                    turn = number % max(1, len(sizes))
                    for size in sizes[turn:] + sizes[:turn]:
                        yield number, kind, case, program, size

    def joins(self, program, number):
        return program.name == "weir" or number % PEER_ROUNDS == 0

    def seconds(self, kind, case, size):
        return START_SECONDS + IDLE_SECONDS + self.least_seconds(kind, case, size)

    def least_seconds(self, kind, case, size):
        threads = None if size == AUTOMATIC else int(size)
        return pool_work.least_seconds(kind, case, threads, self.operation_seconds,
                                       len(self.processors))

    def run(self):
        plan = list(self.plan())
        left = sum(self.seconds(kind, case, size) for _, kind, case, _, size in plan)
        say(f"{len(plan)} measurements, about {in_minutes(left)}; an operation that computes is "
            f"{self.iterations:,} iterations, {1000 * self.operation_seconds:.1f} ms")
        planned, began = left, time.monotonic()
        for number, kind, case, program, size in plan:
            result = self.measured(kind, case, program, size)
            rounds = self.rounds[kind, case.id][program.name]
            while len(rounds) <= number:
                rounds.append({})
            if "makespan" in result:
                rounds[number][size] = result
            left -= self.seconds(kind, case, size)
            pace = (time.monotonic() - began) / max(planned - left, 1e-9)
            say(f"  {number + 1}/{self.options.runs} {kind:5} {case.id} {program.name:12} "
                f"{size:>4}: {in_a_line(result)}; {in_minutes(max(left, 0) * pace)} left")

    def measured(self, kind, case, program, size):
        try:
            with serving.serving(program.command(size), self.processors) as server:
                return self.measure(kind, case, size, server.port)
        except (serving.Failure, OSError, ValueError) as reason:
            self.errors += 1
            return {"error": str(reason)}

    def measure(self, kind, case, size, port):
        with cheap(self.options.build, port, IDLE_SECONDS) as idle:
            pass
        # The generator ends before the work, so that it sees only a busy pool.
        with cheap(self.options.build, port, 0.8 * self.least_seconds(kind, case, size)) as busy:
            sent = pool_work.generate_load(port, kind, case, self.iterations)
            operations, pools = pool_work.ended(port, case.operations)
        result = pool_figures.outcome(sent, operations, pools)
        return result | {"cheap_idle_us": idle.p99_us, "cheap_us": busy.p99_us}


class Cheap:
    """The result for the cheap endpoint."""

    p99_us = None


@contextlib.contextmanager
def cheap(build, port, seconds):
    """Requests the cheap endpoint at a fixed rate during the block, and waits for the generator.
    Latency counts from the time when a request was due. The generator therefore gets real-time
    priority if that is allowed, so that it does not wait for a processor."""
    found = Cheap()
    if seconds < CHEAP_SECONDS_MIN:
        yield found
        return
    command = [*serving.first_of_all(), str(build / "bin/weir"), "bench",
               f"http://127.0.0.1:{port}/",
               "--connections", str(CHEAP_CONNECTIONS), "--rate", str(CHEAP_RATE),
               "--seconds", str(seconds), "--json"]
    asking = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield found
        output, errors = asking.communicate(timeout=pool_work.SECONDS_MAX)
    finally:
        asking.kill()
        asking.wait()
    if asking.returncode != 0:
        raise OSError(f"the cheap endpoint: {errors.strip() or output.strip()}")
    found.p99_us = json.loads(output)["latency_ns"]["p99"] / 1000


def in_a_line(result):
    if "error" in result:
        return f"ERROR: {result['error']}"
    busy = f", cheap p99 {result['cheap_us']:,.0f} us" if result["cheap_us"] else ""
    return (f"{result['makespan']:7,.0f} ms, on average {result['average']:7,.0f} ms, "
            f"up to {result['size']} threads{busy}")


def text_of(report, laboratory):
    """(Markdown, SVG)"""
    machine = report["machine"]
    parts = [f"{machine['processor']}, {machine['processors']} processors, Linux "
             f"{machine['kernel']}, {machine['date']}, commit {machine['commit']}. "
             f"{report['runs']} rounds; {report['iterations']:,} iterations."]
    parts += [f"Without {name}: {reason}." for name, reason in report["left_out"].items()]
    drawn, lines, cheap_lines, tables = {}, [], {}, []
    for (kind, case), programs_rounds in laboratory.rounds.items():
        rows = {(name, size): pool_figures.row(found)
                for name, rounds in programs_rounds.items() for size in SIZES
                if (found := [results[size] for results in rounds if size in results])}
        if not rows:
            continue
        lines += pool_figures.judged(kind, case, programs_rounds.get("weir", []))
        if (kind, case) == ("cpu", "case-3"):
            cheap_lines = pool_figures.cheap_lines(programs_rounds)
        drawn[f"{kind}, {case}"] = rows
        tables.append(f"### {kind}, {case}\n\n{pool_figures.table(rows)}")
    parts.append("### Targets\n\n" + pool_figures.target_table(lines, cheap_lines))
    return "\n\n".join(parts + tables) + "\n", pool_plot.drawing(report, drawn)


def write(report, laboratory, folder):
    folder.mkdir(parents=True, exist_ok=True)
    report["rounds"] = {f"{kind}, {case}": rounds
                        for (kind, case), rounds in laboratory.rounds.items()}
    markdown, drawing = text_of(report, laboratory)
    (folder / "pool.json").write_text(json.dumps(report, indent=1))
    (folder / "pool.md").write_text(markdown)
    (folder / "pool.svg").write_text(drawing)
    return markdown


def name_filter(only):
    """Returns a predicate on kinds, cases and programs. A group without a name in `only` is
    included completely."""
    groups = (pool_work.KINDS, tuple(case.id for case in pool_work.CASES), program_names())

    def wants(name):
        group = next(group for group in groups if name in group)
        named = [each for each in only if each in group]
        return not named or name in named

    return wants


def parse_arguments():
    known = (*pool_work.KINDS, *(case.id for case in pool_work.CASES), *program_names())
    parser = argparse.ArgumentParser(prog="./dev bench pool", description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--only", action="append", default=[], metavar="NAME", choices=known,
                        help=f"one of {', '.join(known)}; may be repeated")
    parser.add_argument("--sizes", default=",".join(SIZES), metavar="N,...",
                        help=f"sizes from {','.join(SIZES)} (all)")
    parser.add_argument("--seconds", type=float, default=2,
                        help="minimum duration of case 3 of computing work (2)")
    parser.add_argument("--runs", type=int, default=9,
                        help="rounds; peers join every third round (9)")
    parser.add_argument("--peers", default="all", choices=("all", "none"),
                        help="peers to measure (all)")
    options = parser.parse_args()
    options.sizes = options.sizes.split(",")
    if unknown := set(options.sizes) - set(SIZES):
        parser.error(f"no such size: {', '.join(unknown)}")
    options.wants = name_filter(options.only)
    return options


def main():
    options = parse_arguments()
    wanted = {name for name in program_names() if options.wants(name)
              and (name == "weir" or options.peers == "all")}
    each_program, left_out = prepared(options.build, wanted)
    processors = len(os.sched_getaffinity(0))
    iterations = pool_work.iterations_for(options.seconds, processors)
    operation_seconds = options.seconds * processors / pool_work.CASES[-1].operations
    laboratory = Laboratory(options, each_program, iterations, operation_seconds)
    report = {"machine": run.machine(), "seconds": options.seconds, "runs": options.runs,
              "iterations": iterations, "left_out": left_out}
    laboratory.run()
    print(write(report, laboratory, options.out))
    say(f"written to {options.out}")
    return 1 if laboratory.errors else 0


if __name__ == "__main__":
    sys.exit(main())
