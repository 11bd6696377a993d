"""Weir with and without hardening: what the assertions, the protected stacks and the rest of
WEIR_HARDEN cost, in instructions and in requests, and whether that is nothing."""

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
# Two loads on one server, of which the difference is counted: opening and closing is not in it. Not
# B15: how many connections come at once, and with that the count, is different each time.
REQUESTS = {"B1": (16_384, 65_536), "B2": (4_096, 16_384), "B3": (4_096, 16_384),
            "B13": (4_096, 16_384)}
CONNECTIONS = 16
COUNTS = 3  # times that the difference is taken
# Under valgrind, a thread that waits in io_uring_enter lets no other one see a signal: such a
# server is killed.
STOP_SECONDS = 1
SETTLE_SECONDS_MAX = 10
DUMP_SECONDS_MAX = 30
# "Costs nothing" holds where the interval does not go below this.
NOTHING = 0.99


def variants(server, plain):
    """The server as it is built by default, and from the build tree `plain`, without hardening."""
    return [dataclasses.replace(server, name=f"{server.name} hardened"),
            dataclasses.replace(server, name=f"{server.name} plain",
                                program=str(plain / PROGRAM))]


class Instructions:
    """Counted by callgrind, so that nothing else on the machine matters."""

    id = "instructions"
    title = "instructions of the server's own for a request, counted by callgrind"

    def __init__(self, pairs, options):
        self.pairs = pairs  # of variants
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
        """For each request, a few times."""
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
            raise Failure("the generator does not come to an end") from None
        if ran.returncode != 0:
            raise Failure(ran.stderr.strip() or ran.stdout.strip())


def for_each(spent, few, many):
    """Instructions for a request, some times, from what so many of them have `spent`."""
    spent(few)  # memory that is kept for the next is asked for once
    return [(spent(many) - spent(few)) / (many - few) for _ in range(COUNTS)]


def valgrind(folder):
    """The beginning of a command line, whose profiles and channels are in this folder."""
    return ["valgrind", "-q", "--tool=callgrind", f"--vgdb-prefix={folder}/vgdb",
            f"--callgrind-out-file={folder}/callgrind"]


class Counting:
    """The instructions of a process that valgrind() has begun, while it goes on."""

    def __init__(self, process, folder):
        self.process = process
        self.folder = folder
        self.descriptors = self.open_descriptors()
        self.dumps = 0

    def since_last(self):
        """When it has closed what it has opened since this was made: it has nothing to do then."""
        deadline = time.monotonic() + SETTLE_SECONDS_MAX
        while self.open_descriptors() > self.descriptors:
            if time.monotonic() > deadline:
                raise Failure("the server does not close what its clients have closed")
            time.sleep(0.01)
        try:
            ran = subprocess.run(["vgdb", f"--vgdb-prefix={self.folder}/vgdb",
                                  f"--pid={self.process}", "dump"], stdin=subprocess.DEVNULL,
                                 capture_output=True, text=True, timeout=DUMP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            raise Failure("vgdb does not come to an end") from None
        if ran.returncode != 0:
            raise Failure(f"vgdb: {ran.stderr.strip()}")
        self.dumps += 1  # each has a file of its own, and sets the counters to zero
        return total_of((self.folder / f"callgrind.{self.dumps}").read_text())

    def open_descriptors(self):
        return len(os.listdir(f"/proc/{self.process}/fd"))


def total_of(profile):
    """All instructions of a callgrind profile."""
    found = re.search(r"^(?:totals|summary): (\d+)", profile, re.MULTILINE)
    if found is None:
        raise Failure("callgrind has counted nothing")
    return int(found.group(1))


def row_of(work, name, counts):
    """Of one server at one work; `counts` are those of both variants."""
    medians = {variant: statistics.median(found) for variant, found in counts.items()}
    return {"work": work, "name": name, **medians, "cost": medians["hardened"] / medians["plain"],
            "counts": counts,
            "spread": max((max(found) - min(found)) / medians[variant]
                          for variant, found in counts.items())}


def instructions_markdown(rows):
    lines = ["| work | server | hardened | plain | hardened / plain | counts differ by |",
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


class Beside(measure.ServedWork):
    """A work on both variants of each server, which are compared in each round."""

    def run(self, say):
        outcome = super().run(say)
        outcome["paired"] = paired(outcome["rounds"])
        outcome["markdown"] = served_markdown(outcome)
        return outcome


def paired(rounds):
    """A row for each server: requests per CPU second, hardened / plain in the same round."""
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
    """On "hardening costs nothing"."""
    if ratio["pairs"] < figures.PAIRS_MIN:
        return "not judged"
    if ratio["high"] < 1:
        return "refuted"
    return "confirmed" if ratio["low"] >= NOTHING else "open"


def served_markdown(outcome):
    """The ratios and what they say; and the figures that they are made of."""
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
    """Whether hardening costs nothing, for each server."""
    said = []
    for row in rows:
        cost = row.get("ratio") and 1 - row["ratio"]["median"]
        if row["verdict"] == "refuted":
            said.append(f"refuted for {row['name']}, which it costs {percent(cost)}")
        elif row["verdict"] == "confirmed":
            said.append(f"confirmed for {row['name']}, within {percent(1 - NOTHING)}")
        elif row["verdict"] == "open":
            said.append(f"open for {row['name']}: {percent(cost)}, but perhaps nothing")
        else:
            said.append(f"not judged for {row['name']}: too few rounds")
    return f"That hardening costs nothing is {'; '.join(said)}."


def percent(part):
    return f"{100 * part:.1f} %"


def page(report):
    """What is published of a run: docs/bench/hardening.md."""
    if missing := [identity for identity in IDS if identity not in report["works"]]:
        raise SystemExit(f"publish: hardening: {', '.join(missing)} was not measured")
    parts = [
        figures.provenance(report),
        "Hardening as it is built by default (library assertions, fortified functions, stack "
        "protector, stack clash, position-independent, control-flow protection) beside a build "
        "without any of it (`WEIR_HARDEN=OFF`), by `./dev bench --hardening`: requests per second "
        "of the server's CPU time, in each round the one divided by the other; the median of "
        f"these, their ends, and the interval of the median. Below 1, hardening costs something. "
        f"\"Nothing\" is confirmed where the whole interval is above {NOTHING}, and refuted where "
        "all of it is below 1.",
        "Of control-flow protection this is the price without the use: no program that is linked "
        "on Debian 12 has it switched on (cmake/WeirToolchain.cmake says why)."]
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
            *(Beside(every[identity], served, options) for identity in ("B1", "B2"))]
