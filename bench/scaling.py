"""B4: the gain of a second serving core, and one process with two loops beside two processes. The
two processes are independent, or workers of one service (`--processes 2`). Also B13 with the user's
logic on another core than the connection's.

Servers and generators share both processors. A control group limits the servers to a part of each
processor, so that they are the bottleneck. The same two generators load all shapes equally.
"""

import concurrent.futures
import contextlib
import dataclasses
import time

import cpu_share
import figures
import programs
import verify
import works
from serving import Failure, errors_of, load, serving

SHARES = (0.4, 0.3, 0.2)  # the server's part of each processor
START_SECONDS = 0.5
WORKER_SECONDS_MAX = 5


class Scaling:
    """Measures Weir's backends, and the limit server in the shapes that it supports."""

    id = "B4"
    limits = programs.LIMITS
    limit = "limit-epoll"  # the limit server that is measured, too
    shares = SHARES
    title = "two serving cores: requests per second of CPU time"
    # The number of connections is per generator.
    work = works.Workload("B4", "", path="/190", connections=500, busy_poll=False)
    names = {"one": "one loop", "two": "two loops", "pair": "two processes",
             "workers": "two workers"}
    wanted = (("two", "one", 0.95), ("two", "pair", 0.97), ("two", "workers", 0.97))
    wanted_of_limits = (("pair", "one", None),)

    def __init__(self, servers, options):
        self.servers = [server for server in servers
                        if (server.kind == "weir" and server.joins(self.id))
                        or (server.name == self.limit and self.wanted_of_limits)]
        self.options = options
        self.processors = (options.server_cpu, options.load_cpu)
        self.share = self.shares[0]

    def seconds(self):
        each = self.options.seconds + self.options.warm_up + START_SECONDS
        shapes = sum(len(self.shapes_of(server)) for server in self.servers)
        return each * self.options.runs * shapes

    def wanted_by(self, server):
        """Returns [(shape, shape to compare with, minimum ratio or None)]."""
        return self.wanted if server.kind == "weir" else self.wanted_of_limits

    def shapes_of(self, server):
        return list(dict.fromkeys(shape for upper, lower, _ in self.wanted_by(server)
                                  for shape in (lower, upper)))

    def work_of(self, _shape):
        return self.work

    def run(self, say):
        if not cpu_share.possible():
            raise Failure("servers and generators share processors in this work, which needs "
                          "control groups, and these are not permitted")
        model = programs.MODEL.command(self.options.build, self.work, 0)
        with serving(model, self.processors) as server:
            self.response_bytes = len(verify.response_to(server.port, self.work.request(),
                                                         programs.MODEL.secure(self.work)))
        self.share = self.saturating_share()
        say(f"{self.id}: {self.title}; servers have {100 * self.share:.0f} % of each processor")
        rounds = []
        for number in range(self.options.runs):
            results = {}
            for server in self.servers:
                for shape in self.shapes_of(server):
                    name = f"{server.name} {shape}"
                    results[name] = self.measure(server, shape)
                    say(f"  {number + 1}/{self.options.runs} "
                        f"{figures.in_a_line(f'{name:18}', results[name])}")
            rounds.append(results)
        rows = [row for server in self.servers for row in self.rows_of(server, rounds)]
        return {"title": self.title, "kind": "scaling", "share_of_processor": self.share,
                "summary": rows, "rounds": rounds, "errors": sum(row["errors"] for row in rows),
                "markdown": table(rows)}

    def saturating_share(self):
        for share in self.shares:
            self.share = share
            looks = [self.measure(server, "one") for server in self.limits]
            busy = [look["busy"] for look in looks if "busy" in look]
            if not busy:
                raise Failure("; ".join(look["reason"] for look in looks))
            if min(busy) >= figures.SATURATED:
                break
        return share

    def measure(self, server, shape):
        """Measures one run of one shape, with both generators."""
        commands = self.commands(server, shape)
        loops = 1 if shape == "one" else 2
        try:
            with (cpu_share.limited(self.share * loops) as (allowed, limit),
                  contextlib.ExitStack() as stack):
                running = [stack.enter_context(serving(command, processors))
                           for command, processors in commands]
                processes = processes_of(running, 3 if shape == "workers" else len(running))
                for process in processes:
                    limit(process)
                ports = [running[0].port, running[-1].port]
                return total(self.loads(self.work_of(shape), ports, processes,
                                        server.secure(self.work)), allowed)
        except Failure as reason:
            return {"figure": 0, "errors": 1, "reason": str(reason)}

    def commands(self, server, shape):
        """Returns the command of each server to start, with its processors."""
        first, second = self.processors
        command = server.command(self.options.build, self.work, self.response_bytes)
        if shape == "one":
            return [(command, [first])]
        if shape == "pair":
            return [(command, [first]), (command, [second])]
        command[command.index("--cores") + 1] = "2"
        if shape == "workers":
            command += ["--processes", "2"]
        return [(command, [first, second])]

    def loads(self, work, ports, processes, secure):
        with concurrent.futures.ThreadPoolExecutor() as threads:
            started = [threads.submit(load, self.options, port, processes, work,
                                      self.options.seconds, processor, secure=secure)
                       for port, processor in zip(ports, self.processors)]
            return [each.result() for each in started]

    def rows_of(self, server, rounds):
        """Returns the ratios between the shapes of one server in the same round."""
        rows = []
        for upper, lower, target in self.wanted_by(server):
            pairs = [(results[f"{server.name} {upper}"], results[f"{server.name} {lower}"])
                     for results in rounds]
            row = {"name": server.name, "compared": f"{self.names[upper]} / {self.names[lower]}",
                   "errors": sum(each["errors"] for pair in pairs for each in pair)}
            rows.append(row)
            found = [a["figure"] / b["figure"] for a, b in pairs
                     if not figures.waited(a) and not figures.waited(b)]
            if not found:
                continue
            row["ratio"] = figures.spread(found)
            row["busy"] = min(min(a["busy"], b["busy"]) for a, b in pairs
                              if not figures.waited(a) and not figures.waited(b))
            if target:
                row["verdict"] = verdict(row, target)
        return rows


class Elsewhere(Scaling):
    """Compares handlers on another core with handlers on the connection's core."""

    id = "B13-elsewhere"
    title = "JSON ping, the user's logic on another core than the connection's: per CPU second"
    work = works.ping("B13-elsewhere", 200, busy_poll=False)
    names = {"here": "on the connection's core", "elsewhere": "logic on another core"}
    wanted = (("elsewhere", "here", None),)
    wanted_of_limits = ()

    def work_of(self, shape):
        if shape == "here":
            return self.work
        return dataclasses.replace(self.work, path=f"{self.work.path}/elsewhere")


def processes_of(servers, count):
    """Waits for `count` processes of all servers and returns them: workers start late."""
    deadline = time.monotonic() + WORKER_SECONDS_MAX
    while True:
        found = [process for server in servers for process in server.processes()]
        if len(found) >= count:
            return found
        if time.monotonic() > deadline:
            raise Failure(f"{len(found)} processes instead of {count}")
        time.sleep(0.01)


def total(loads, allowed):
    """Returns the sum of both generators. Their windows of measurement are nearly simultaneous."""
    if any(not each.get("server") or not each["server"]["busy"] for each in loads):
        raise Failure("the server's processor time is unknown or zero")
    rate = sum(each["responses_per_second"] for each in loads)
    busy = sum(each["server"]["busy"] for each in loads) / len(loads)
    return {
        "figure": rate / busy,
        "rate": rate,
        "busy": busy / allowed,
        "p99": max(each["latency_ns"]["p99"] for each in loads),
        "errors": sum(map(errors_of, loads)),
    }


def verdict(row, target):
    if row["errors"]:
        return "missed: errors"
    if row["ratio"]["pairs"] < figures.PAIRS_MIN:
        return f"not judged: saturated in {row['ratio']['pairs']} rounds"
    return f"{'met' if row['ratio']['median'] >= target else 'MISSED'} (≥ {target})"


def table(rows):
    lines = ["| server | per CPU second | median | min..max | 95 % | target | least busy "
             "| errors |", "|---|---|---|---|---|---|---|---|"]
    for row in rows:
        if "ratio" not in row:
            lines.append(f"| {row['name']} | {row['compared']} | no figure | | | | "
                         f"| {row['errors']} |")
            continue
        ratio = row["ratio"]
        lines.append(f"| {row['name']} | {row['compared']} | {ratio['median']:.3f} "
                     f"| {ratio['min']:.3f}..{ratio['max']:.3f} "
                     f"| {ratio['low']:.3f}..{ratio['high']:.3f} | {row.get('verdict', '')} "
                     f"| {100 * row['busy']:.0f} % | {row['errors']} |")
    return "\n".join(lines)


def sections(servers, options):
    return [Scaling(servers, options), Elsewhere(servers, options)]
