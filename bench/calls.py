"""Counts the system calls per request, by perf, while the server is saturated with B2."""

import contextlib
import json
import re
import shutil
import statistics
import subprocess

import cpu_share
import figures
import measure
import works
from serving import LOAD_SECONDS_MORE_MAX, Failure, generator, on_processors, serving

WORK = next(work for work in works.WORKS if work.id == "B2")
REQUESTS = 150_000
RESPONSE_BYTES = 128
ROUNDS = 3
ALL = "raw_syscalls:sys_enter"
ENTER = "syscalls:sys_enter_io_uring_enter"
EVENTS = (ALL, ENTER)
TARGETS = {"weir-uring": (ENTER, 0.1), "weir-epoll": (ALL, 2.1)}


class SystemCalls:
    id = "calls"
    title = f"system calls per request, {REQUESTS:,} requests over {WORK.connections} connections"

    def __init__(self, servers, options):
        self.servers = [server for server in servers if server.joins(self.id)]
        self.options = options

    def seconds(self):
        return 2 * ROUNDS * len(self.servers)

    def run(self, say):
        say(f"{self.id}: {self.title}")
        if reason := missing():
            say(f"  skipped: {reason}")
            return {"title": self.title, "kind": "calls", "summary": [], "errors": 0,
                    "markdown": f"Not counted: {reason}."}
        self.share = self.saturating_share()
        rows = []
        for server in self.servers:
            row = {"name": server.name, "kind": server.kind}
            rows.append(row)
            try:
                counts = [self.count(server) for _ in range(ROUNDS)]
            except Failure as reason:
                row["reason"] = str(reason)
                continue
            row |= row_of(server.name, counts)
            say(f"  {server.name:14} {row[ALL]:.3f} calls, {row[ENTER]:.3f} io_uring_enter")
        return {"title": self.title, "kind": "calls", "summary": rows,
                "errors": sum("reason" in row and row["kind"] != "peer" for row in rows),
                "markdown": table(rows)}

    def saturating_share(self):
        look = measure.ServedWork(WORK, [], self.options)
        look.response_bytes = RESPONSE_BYTES
        return look.saturating_share()

    def count(self, server):
        command = server.command(self.options.build, WORK, RESPONSE_BYTES)
        with (cpu_share.limited(self.share) as (allowed, limit),
              serving(command, [self.options.server_cpu]) as running):
            processes = [str(process) for process in running.processes()]
            load = [*generator(self.options, running.port, WORK), "--requests", str(REQUESTS)]
            for process in processes:
                limit(process)
                load += ["--server-pid", process]
            counting = ["perf", "stat", "-x", ",", "-e", ",".join(EVENTS),
                        "-p", ",".join(processes), "--"]
            try:
                ran = subprocess.run(
                    on_processors([self.options.load_cpu], counting + load),
                    capture_output=True, text=True, timeout=LOAD_SECONDS_MORE_MAX)
            except subprocess.TimeoutExpired:
                raise Failure("the generator did not end in time") from None
        if ran.returncode != 0:
            raise Failure(ran.stderr.strip() or ran.stdout.strip())
        return counts_of(ran.stderr) | {"busy": busy_of(ran.stdout) / allowed}


def counts_of(report):
    """Returns {event: count} of perf's report, which has `count,unit,event,...` in each line."""
    found = {}
    for line in report.splitlines():
        fields = line.split(",")
        if len(fields) > 2 and fields[2] in EVENTS and fields[0].isdigit():
            found[fields[2]] = int(fields[0])
    if uncounted := [event for event in EVENTS if event not in found]:
        raise Failure(f"perf has not counted {', '.join(uncounted)}")
    return found


def busy_of(report):
    """Returns the part of a processor that the server used, from the generator's JSON."""
    try:
        return json.loads(report)["server"]["busy"]
    except (ValueError, KeyError, TypeError):
        raise Failure("the server's processor time is not known") from None


def row_of(name, counts):
    """Returns the medians of one server's rounds. The verdict is "met" only if every round reaches
    the target: counts hardly vary, so few rounds are enough."""
    row = {event: statistics.median(count[event] for count in counts) / REQUESTS
           for event in EVENTS}
    row["busy"] = statistics.median(count["busy"] for count in counts)
    if name in TARGETS:
        event, most = TARGETS[name]
        worst = max(count[event] for count in counts) / REQUESTS
        row["verdict"] = f"{'met' if worst <= most else 'MISSED'} (≤ {most})"
        if row["busy"] < figures.SATURATED:
            row["verdict"] = "not judged: not saturated"
    return row


def missing():
    """Returns why calls cannot be counted on this machine; empty if they can."""
    if not shutil.which("perf"):
        return "perf is not installed"
    tried = subprocess.run(["perf", "stat", "-x", ",", "-e", ",".join(EVENTS), "true"],
                           capture_output=True, text=True)
    with contextlib.suppress(Failure):
        if tried.returncode == 0 and counts_of(tried.stderr)[ALL]:
            return ""
    return "perf may not count system calls: " + re.sub(r"\s+", " ", tried.stderr).strip()[:100]


def table(rows):
    lines = ["| server | system calls per request | io_uring_enter calls | target | busy |",
             "|---|---|---|---|---|"]
    for row in rows:
        if "reason" in row:
            lines.append(f"| {row['name']} | no figure: {row['reason']} | | | |")
        else:
            lines.append(f"| {row['name']} | {row[ALL]:.3f} | {row[ENTER]:.3f} "
                         f"| {row.get('verdict', '')} | {100 * row['busy']:.0f} % |")
    return "\n".join(lines)


def sections(servers, options):
    return [SystemCalls(servers, options)]
