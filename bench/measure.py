"""Measures the workloads of servers, each server in turn in every round (A B C A B C ...)."""

import cpu_share
import figures
import programs
import verify
import works
from serving import Failure, errors_of, load, serving

RETRIES_MAX = 2  # repetitions of a measurement of ours that was not saturated
BUSY_ENOUGH = 0.97  # for limit servers in a short probe; above figures.SATURATED
PROBE_SECONDS = 0.5
START_SECONDS = 0.45  # estimate for starting and ending a server and a generator
CONNECT_SECONDS = 0.00005
PORTS_EASILY_FOUND = 14_000  # half of Linux's default range; the kernel searches for more
SEARCH_SECONDS = 0.0006


class ServedWork:
    """A workload of works.py, on all servers that support it."""

    limits = programs.LIMITS

    def __init__(self, work, servers, options):
        self.id = work.id
        self.title = work.title
        self.work = work
        self.options = options
        self.left_out = {server.name: reason for server in servers
                         if (reason := server.refusal(work))}
        self.servers = [server for server in servers if server.name not in self.left_out]
        self.broken = {}  # our servers that fail the workload: {name: reason}
        self.response_bytes = 0
        self.lengths = {}  # {server: bytes of its response}
        self.share = 1

    def seconds(self):
        """Returns the estimated duration."""
        many = max(0, self.work.connections - PORTS_EASILY_FOUND)
        each = (self.options.seconds + self.options.warm_up + START_SECONDS
                + self.work.connections * CONNECT_SECONDS + many * SEARCH_SECONDS)
        runs = self.options.runs
        total = 0
        for server in self.servers:
            rounds = min(runs, self.work.peer_rounds) if server.kind == "peer" else runs
            total += rounds * (each + server.warm_up / self.work.shares[-1])
        return total + 4 * (each - self.options.seconds)

    def run(self, say):
        self.prepare(say)
        rounds = []
        for number in range(self.options.runs):
            # The first server changes each round, so that none is always first after a pause.
            turn = number % max(1, len(self.servers))
            results = {}
            for server in self.servers[turn:] + self.servers[:turn]:
                if server.kind == "peer" and not self.includes_peers(number):
                    continue
                reason = self.broken.get(server.name)
                result = failed(reason) if reason else self.saturated(server)
                results[server.name] = result
                say(f"  {number + 1}/{self.options.runs} {figures.in_a_line(server.name, result)}")
            rounds.append(results)
        rows = figures.summary(rounds, self.servers, self.work)
        return {
            "title": self.title,
            "kind": "served",
            "share_to": self.work.target.to if self.work.target else "all",
            "share_of": "figure" if self.work.saturates else "rate",
            "share_of_processor": self.share,
            "response_bytes": self.response_bytes,
            "left_out": self.left_out,
            "summary": rows,
            "rounds": rounds,
            "errors": sum(row["errors"] for row in rows if row["kind"] != "peer"),
            "lengths": self.lengths,
            "markdown": "\n\n".join([figures.table(rows), *self.other_lengths(),
                                     *self.exclusions(),
                                     *self.overtaking(rows, rounds, say)]),
        }

    def other_lengths(self):
        """Returns a sentence on the servers whose responses differ in length from Weir's."""
        others = [f"{name} {length}" for name, length in self.lengths.items()
                  if length != self.response_bytes]
        return [f"Responses have {self.response_bytes} bytes; other lengths: {', '.join(others)}."
                ] if others else []

    def exclusions(self):
        """Returns sentences on the servers that are left out or broken."""
        return [f"{what}: {', '.join(f'{name} ({reason})' for name, reason in those.items())}."
                for what, those in (("Not measured", self.left_out), ("Broken", self.broken))
                if those]

    def overtaking(self, rows, rounds, say):
        """Returns a sentence on the servers that are faster than both limit servers."""
        ahead = figures.faster_peers(rows, rounds) if self.work.saturates else {}
        if not ahead:
            return []
        named = ", ".join(f"{name} ({share:.2f})" for name, share in ahead.items())
        sentence = f"Faster than both limit servers, which must be improved first: {named}."
        say(f"  {sentence}")
        return [sentence]

    def includes_peers(self, number):
        """Returns true if a round includes peers: some rounds do, evenly spread."""
        wanted = min(self.work.peer_rounds, self.options.runs)
        return number * wanted % self.options.runs < wanted

    def prepare(self, say):
        """Leaves out peers that fail the workload, and marks our servers that fail it as broken.
        Finds the share of a processor at which the rest are saturated."""
        self.response_bytes = self.length_of_model()
        for server in list(self.servers):
            reason = self.flaw_of(server)
            if reason and server.kind == "peer":
                self.left_out[server.name] = reason
                self.servers.remove(server)
            elif reason:
                self.broken[server.name] = reason
        self.share = self.saturating_share()
        of = f", {100 * self.share:.0f} % of a processor each" if self.share < 1 else ""
        say(f"{self.id}: {self.title}; responses of {self.response_bytes} bytes{of}")
        for name, reason in self.left_out.items():
            say(f"  without {name}: {reason}")
        for name, reason in self.broken.items():
            say(f"  BROKEN: {name}: {reason}")

    def length_of_model(self):
        """Returns the length of Weir's response."""
        model = programs.MODEL.command(self.options.build, self.work, 0)
        with serving(model, [self.options.server_cpu]) as server:
            return len(verify.response_to(server.port, self.work.request(),
                                          programs.MODEL.secure(self.work)))

    def flaw_of(self, server):
        command = server.command(self.options.build, self.work, self.response_bytes)
        try:
            with serving(command, [self.options.server_cpu]) as running:
                self.lengths[server.name] = verify.verify(server, self.work, running.port,
                                                          self.response_bytes,
                                                          server.secure(self.work))
        except (Failure, verify.VerificationError) as reason:
            return str(reason)
        return ""

    def saturating_share(self):
        """Returns the largest share of a processor that saturates the limit servers."""
        if not cpu_share.possible():
            return 1
        if not self.work.saturates:
            return self.work.shares[0]
        for share in self.work.shares:
            looks = [self.measure(server, share, PROBE_SECONDS) for server in self.limits
                     if server.name not in self.broken]
            busy = [look["busy"] for look in looks if "busy" in look]
            if not busy:
                raise Failure("; ".join(look["reason"] for look in looks) or "no limit server")
            if min(busy) >= BUSY_ENOUGH:
                break
        return share

    def saturated(self, server):
        """Measures a server. Repeats an unsaturated measurement of our servers, at most twice."""
        result = self.measure(server)
        again = RETRIES_MAX if self.work.saturates and server.kind != "peer" else 0
        while again and "busy" in result and figures.waited(result):
            result = self.measure(server)
            again -= 1
        return result

    def measure(self, server, share=None, seconds=None):
        """Returns the numbers of one run of one server."""
        options = self.options
        command = server.command(options.build, self.work, self.response_bytes)
        try:
            with (cpu_share.limited(share or self.share) as (allowed, limit),
                  serving(command, [options.server_cpu], server.preload) as running):
                for process in running.processes():
                    limit(process)
                said = load(options, running.port, running.processes(), self.work,
                            seconds or options.seconds, warm_up=server.warm_up / allowed,
                            secure=server.secure(self.work))
                resident = running.peak_bytes()
        except Failure as reason:
            return failed(reason)
        used = said.get("server")
        if used is None:
            return failed("the server's processor time is unknown")
        return {
            "figure": used["responses_per_cpu_second"],
            "busy": used["busy"] / allowed,
            "rate": said["responses_per_second"],
            "p50": said["latency_ns"]["p50"],
            "p99": said["latency_ns"]["p99"],
            "resident": resident,
            "errors": errors_of(said),
            "load": said,
        }


def failed(reason):
    """Returns the result of a run without a figure."""
    return {"figure": 0, "errors": 1, "reason": str(reason)}


def sections(servers, options):
    return [ServedWork(work, [server for server in servers if server.joins(work.id)], options)
            for work in works.WORKS]
