"""Measures the cost of hardening (WEIR_HARDEN) in instructions and in requests per second, and
decides whether the cost is zero."""

import dataclasses
import os
import pathlib
import re
import statistics
import subprocess
import tempfile
import time

import figures
import measure
import works
from serving import LOAD_SECONDS_MORE_MAX, Failure, generator, on_processors, serving

IDS = ("instructions", "B1", "B2")
PROGRAM = "examples/example_bench"
# Two loads on one server. The difference of their counts excludes opening and closing connections.
# B15 is left out: its number of simultaneous connections, and with it the count, varies.
REQUESTS = {"B1": (16_384, 65_536), "B2": (4_096, 16_384), "B3": (4_096, 16_384),
            "B13": (4_096, 16_384)}
CONNECTIONS = 16
COUNTS = 3  # repetitions of the difference
# A thread that waits in io_uring_enter under valgrind blocks signals to all threads. Such a server
# must be killed.
STOP_SECONDS = 1
SETTLE_SECONDS_MAX = 10
DUMP_SECONDS_MAX = 30
# Hardening costs nothing if the lower end of the interval is at least this ratio.
NOTHING = 0.99


def variants(server, plain):
    """Returns the server's default build, and its build without hardening in the tree `plain`."""
    return [dataclasses.replace(server, name=f"{server.name} hardened"),
            dataclasses.replace(server, name=f"{server.name} plain",
                                program=str(plain / PROGRAM))]


class Instructions:
    """Instructions per request, counted by callgrind, which other load does not influence."""

    id = "instructions"
    title = "instructions of the server process per request, counted by callgrind"

    def __init__(self, pairs, options):
        self.pairs = pairs  # of hardened and plain servers
        self.options = options

    def seconds(self):
        return 12 * len(self.pairs) * 2 * len(REQUESTS)

    def run(self, say):
        rows = []
        for identity in REQUESTS:
            for hardened, plain in self.pairs:
                counts = {"hardened": self.count(hardened, works_by_id()[identity]),
                          "plain": self.count(plain, works_by_id()[identity])}
                row = row_of(identity, hardened.name.removesuffix(" hardened"), counts)
                rows.append(row)
                say(f"  {identity} {row['name']}: {row['hardened']:.1f} hardened, "
                    f"{row['plain']:.1f} plain")
        return {"title": self.title, "kind": "instructions", "summary": rows, "errors": 0,
                "markdown": instructions_markdown(rows)}

    def count(self, server, work):
        """Returns several counts of instructions per request."""
        few, many = REQUESTS[work.id]
        work = dataclasses.replace(work, connections=CONNECTIONS, busy_poll=False)
        with tempfile.TemporaryDirectory() as folder:
            command = [*valgrind(pathlib.Path(folder)),
                       *server.command(self.options.build, work, 0)]
            with serving(command, [self.options.server_cpu], stop_seconds=STOP_SECONDS) as running:
                counting = Counting(running.process.pid, pathlib.Path(folder))

                def spent(requests):
                    self.load(running, work, requests)
                    return counting.since_last()

                return for_each(spent, few, many)

    def load(self, running, work, requests):
        load = [*generator(self.options, running.port, work), "--requests", str(requests)]
        try:
            ran = subprocess.run(on_processors([self.options.load_cpu], load),
                                 capture_output=True, text=True, timeout=LOAD_SECONDS_MORE_MAX)
        except subprocess.TimeoutExpired:
            raise Failure("the generator did not end in time") from None
        if ran.returncode != 0:
            raise Failure(ran.stderr.strip() or ran.stdout.strip())


def for_each(spent, few, many):
    """Returns COUNTS counts of instructions per request, from the difference of two loads."""
    spent(few)  # a warm-up: the server allocates its reusable memory
    return [(spent(many) - spent(few)) / (many - few) for _ in range(COUNTS)]


def valgrind(folder):
    """Returns the start of a command line. Profiles and channels are in `folder`."""
    return ["valgrind", "-q", "--tool=callgrind", f"--vgdb-prefix={folder}/vgdb",
            f"--callgrind-out-file={folder}/callgrind"]


class Counting:
    """Counts the instructions of a running process that was started with valgrind()."""

    def __init__(self, process, folder):
        self.process = process
        self.folder = folder
        self.descriptors = self.open_descriptors()
        self.dumps = 0

    def since_last(self):
        """Returns the instructions since the last call. Waits until the server has closed all
        descriptors that it opened since this object was made, because it is idle then."""
        deadline = time.monotonic() + SETTLE_SECONDS_MAX
        while self.open_descriptors() > self.descriptors:
            if time.monotonic() > deadline:
                raise Failure("the server did not close the connections that its clients closed")
            time.sleep(0.01)
        try:
            ran = subprocess.run(["vgdb", f"--vgdb-prefix={self.folder}/vgdb",
                                  f"--pid={self.process}", "dump"], stdin=subprocess.DEVNULL,
                                 capture_output=True, text=True, timeout=DUMP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            raise Failure("vgdb did not end in time") from None
        if ran.returncode != 0:
            raise Failure(f"vgdb: {ran.stderr.strip()}")
        self.dumps += 1  # each dump has its own file and resets the counters
        return total_of((self.folder / f"callgrind.{self.dumps}").read_text())

    def open_descriptors(self):
        return len(os.listdir(f"/proc/{self.process}/fd"))


def total_of(profile):
    """Returns the total instructions of a callgrind profile."""
    found = re.search(r"^(?:totals|summary): (\d+)", profile, re.MULTILINE)
    if found is None:
        raise Failure("callgrind reported no total")
    return int(found.group(1))


def row_of(work, name, counts):
    """Returns the row of one server at one workload. `counts` has the counts of both variants."""
    medians = {variant: statistics.median(found) for variant, found in counts.items()}
    return {"work": work, "name": name, **medians, "cost": medians["hardened"] / medians["plain"],
            "counts": counts,
            "spread": max((max(found) - min(found)) / medians[variant]
                          for variant, found in counts.items())}


def instructions_markdown(rows):
    lines = ["| workload | server | hardened | plain | hardened / plain | counts differ by |",
             "|---|---|---|---|---|---|"]
    for row in rows:
        lines.append(f"| {row['work']} | {row['name']} | {row['hardened']:,.1f} | "
                     f"{row['plain']:,.1f} | {row['cost']:.3f} | {percent(row['spread'])} |")
    costs = [row["cost"] - 1 for row in rows]
    listed = [f"{identity} ({re.sub(r', [0-9,]+ (connections|at once)$', '', work.title)})"
              for identity, work in works_by_id().items() if identity in REQUESTS]
    return "\n\n".join([
        f"{', '.join(listed)}; {CONNECTIONS} connections, medians of {COUNTS} counts. What the "
        "kernel does for a request, which takes most of a server's time, is not counted.",
        "\n".join(lines),
        f"**Hardening costs {percent(min(costs))} to {percent(max(costs))} of the instructions "
        "that a server runs itself.**"])


class PairedRuns(measure.ServedWork):
    """A workload on both variants of each server, compared in each round."""

    def run(self, say):
        outcome = super().run(say)
        outcome["paired"] = paired(outcome["rounds"])
        outcome["markdown"] = served_markdown(outcome)
        return outcome


def paired(rounds):
    """Returns a row for each server: requests per CPU second, hardened / plain in each round."""
    names = dict.fromkeys(name.removesuffix(" hardened") for results in rounds for name in results
                          if name.endswith(" hardened"))
    rows = []
    for name in names:
        pairs = [(results[f"{name} hardened"], results[f"{name} plain"]) for results in rounds
                 if {f"{name} hardened", f"{name} plain"} <= results.keys()]
        ratios = [hardened["figure"] / plain["figure"] for hardened, plain in pairs
                  if not figures.waited(hardened) and not figures.waited(plain)]
        row = {"name": name, "verdict": "not judged"}
        if ratios:
            row["ratio"] = figures.spread(ratios)
            row["verdict"] = verdict(row["ratio"])
        rows.append(row)
    return rows


def verdict(ratio):
    """Returns the verdict on "hardening costs nothing"."""
    if ratio["pairs"] < figures.PAIRS_MIN:
        return "not judged"
    if ratio["high"] < 1:
        return "refuted"
    return "confirmed" if ratio["low"] >= NOTHING else "open"


def served_markdown(outcome):
    """Returns the ratios, their verdict, and the figures behind them, as Markdown."""
    rows = paired(outcome["rounds"])
    lines = ["| server | hardened / plain | min..max | 95 % | rounds |", "|---|---|---|---|---|"]
    for row in rows:
        ratio = row.get("ratio")
        lines.append(f"| {row['name']} | no figure | | | 0 |" if ratio is None else
                     f"| {row['name']} | {ratio['median']:.3f} "
                     f"| {ratio['min']:.3f}..{ratio['max']:.3f} "
                     f"| {ratio['low']:.3f}..{ratio['high']:.3f} | {ratio['pairs']} |")
    return "\n\n".join(["\n".join(lines), f"**{sentence(rows)}**",
                        figures.table(outcome["summary"])])


def sentence(rows):
    """Returns a sentence with the verdict for each server."""
    parts = []
    for row in rows:
        cost = row.get("ratio") and 1 - row["ratio"]["median"]
        if row["verdict"] == "refuted":
            parts.append(f"refuted for {row['name']}, which it costs {percent(cost)}")
        elif row["verdict"] == "confirmed":
            parts.append(f"confirmed for {row['name']}, within {percent(1 - NOTHING)}")
        elif row["verdict"] == "open":
            parts.append(f"open for {row['name']}: {percent(cost)}, but perhaps nothing")
        else:
            parts.append(f"not judged for {row['name']}: too few rounds")
    return f"That hardening costs nothing is {'; '.join(parts)}."


def percent(part):
    return f"{100 * part:.1f} %"


def page(report):
    """Returns the published page of a run: docs/bench/hardening.md."""
    if missing := [identity for identity in IDS if identity not in report["works"]]:
        raise SystemExit(f"publish: hardening: {', '.join(missing)} was not measured")
    parts = [
        figures.provenance(report),
        "Hardening as it is built by default (library assertions, fortified functions, stack "
        "protector, stack clash, position-independent, control-flow protection) beside a build "
        "without hardening (`WEIR_HARDEN=OFF`), by `./dev bench --hardening`: requests per second "
        "of the server's CPU time, hardened divided by plain in each round; the median of the "
        f"ratios, their ends, and the interval of the median. Below 1, hardening has a cost. "
        f"\"Nothing\" is confirmed if the whole interval is above {NOTHING}, and refuted if the "
        "whole interval is below 1.",
        "Control-flow protection has its cost here, but no effect: it is not active in programs "
        "that are linked on Debian 12 (cmake/WeirToolchain.cmake explains why)."]
    for identity, outcome in report["works"].items():
        served = outcome["kind"] == "served"
        parts += [f"### {identity}: {outcome['title']}",
                  served_markdown(outcome) if served else outcome["markdown"]]
    return "\n\n".join(parts) + "\n"


def works_by_id():
    return {work.id: dataclasses.replace(work, target=None) for work in works.WORKS}


def sections(servers, options):
    ours = [server for server in servers if server.kind == "weir" and not server.only]
    pairs = {server.name: variants(server, options.plain) for server in ours}
    served = [variant for name, pair in pairs.items() if name != "weir-poll" for variant in pair]
    every = works_by_id()
    return [Instructions(list(pairs.values()), options),
            *(PairedRuns(every[identity], served, options) for identity in ("B1", "B2"))]
