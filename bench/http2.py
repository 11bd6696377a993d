"""The workloads of HTTP/2: requests, one request at a time, large bodies, and memory. h2load of
nghttp2 is the client, also of HTTP/1.1, so that both have the same one."""

import dataclasses
import functools
import math
import pathlib
import struct

import cpu_share
import figures
import h2load
import idle
import measure
import programs
import tls
import verify
import works
from serving import Failure, serving

MIB = 2**20
PROBE_SECONDS = 0.1
NOTHING = ({"requests": 0, "errors": 0, "seconds": 0}, 0)  # a load of no requests
FILES_MORE = 100
RESIDENT_MAX = MIB  # of a connection with an upload
OTHERS_OF_MEMORY = "h2o"


@dataclasses.dataclass(frozen=True)
class Http2Workload(works.Workload):
    """A workload of h2load. `depth` is the number of streams at a time of a connection."""

    probe: int = 0  # requests for the verification of a server; also estimates its speed
    body_bytes: int = 11  # of each response of Weir
    upload_bytes: int = 0
    mib: int = 0  # of the bodies of one request. If not 0, figures count MiB, not requests.
    any_length: bool = True


def gets(identity, title, **more):
    return Http2Workload(identity, f"GET over HTTP/2, {title}", depth=100, probe=25_600, **more)


WORKS = [
    gets("H1", "64 connections with 100 streams, prior knowledge", shares=(0.3, 0.2, 0.1),
         target=works.Target(0.70, to="limit")),
    gets("H2", "64 connections with 100 streams, TLS 1.3", tls="ecdsa",
         shares=(0.6, 0.45, 0.3, 0.2)),
    Http2Workload("H3", "GET over HTTP/2, 64 connections with one stream at a time", probe=6400,
                  shares=(0.45, 0.3, 0.2)),
    Http2Workload("H4", "responses with 100 MiB over HTTP/2, one connection; figures count MiB",
                  path="/100m", connections=1, probe=4, body_bytes=100 * MIB, mib=100,
                  shares=(0.6, 0.45, 0.3, 0.2)),
    Http2Workload("H5", "64 uploads of 20 MiB over HTTP/2 at a time; figures count MiB", "POST",
                  "/upload", probe=64, body_bytes=8, upload_bytes=20 * MIB, mib=20,
                  shares=(0.6, 0.45, 0.3, 0.2)),
    dataclasses.replace(gets("H7", "1,024 connections with 100 streams, and its peak memory",
                             shares=(0.3, 0.2)), connections=1024, probe=102_400),
]

# {workload: {anchor of the same backend: least ratio of Weir to it}}
ANCHORS = {
    "H2": {"-plain": 0.85},
    "H3": {"-http1": 0.80},
    "H4": {"-http1": 0.90},
    "H5": {"-http1": 0.90},
}


class Http2Work(tls.TlsWork):
    """A workload of h2load. Weir's figures are also compared with anchors and with each peer."""

    anchors = ANCHORS

    def __init__(self, work, servers, options):
        super().__init__(work, servers, options)
        # Without a limit server, the share of a processor must saturate the servers of Weir.
        self.limits = ([server for server in servers if server.kind == "limit"]
                       or [server for server in servers if server.kind != "peer"] or servers)
        self.speeds = {}  # {server: requests per second of CPU time in its verification}

    def run(self, say):
        idle.allow_files(2 * self.work.connections + FILES_MORE)
        outcome = super().run(say)
        if self.work.upload_bytes or self.work.connections > 64:
            for row in outcome["summary"]:
                if row["kind"] == "weir":
                    row["targets"].append(self.memory_target(row["name"], outcome["rounds"]))
            outcome["markdown"] += "\n\n" + memory_table(outcome["summary"])
        return outcome

    def length_of_model(self):
        return self.work.body_bytes

    def flaw_of(self, server):
        """Verifies the responses of a server, and estimates its speed."""
        try:
            with self.started(server) as running:
                said, used = self.ask(server, running, self.work.probe)
        except Failure as reason:
            return str(reason)
        if said["errors"]:
            return f"{said['errors']} of {said['requests']} requests failed"
        length = said["data"] / said["requests"]
        self.lengths[server.name] = round(length)
        ours = server.kind in ("weir", "anchor")
        if not length or (length != self.work.body_bytes if ours else length % 1):
            return f"answers {length} bytes, not {self.work.body_bytes}"
        self.speeds[server.name] = said["requests"] / used
        return ""

    def started(self, server):
        command = server.command(self.options.build, self.work, 128)
        return serving(command, [self.options.server_cpu], server.preload)

    def ask(self, server, running, requests):
        """Sends requests. Returns the numbers of h2load, and the server's seconds of CPU time."""
        work = self.work
        scheme = "https" if server.secure(work) else "http"
        words = h2load.command(f"{scheme}://127.0.0.1:{running.port}{work.path}", requests,
                               work.connections, work.depth, server.http1, self.uploaded_file())
        used = running.processor_seconds()
        said = h2load.run(self.options.load_cpu, words)
        return said, running.processor_seconds() - used

    def uploaded_file(self):
        """Returns the file that h2load sends, or None."""
        if not self.work.upload_bytes:
            return None
        file = pathlib.Path(self.options.build).resolve().parent / "bench/upload"
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("wb") as content:
            content.truncate(self.work.upload_bytes)
        return file

    def measure(self, server, share=None, seconds=None):
        seconds = seconds or self.options.seconds
        if server.name not in self.speeds:
            return measure.failed("was not verified")
        try:
            with (cpu_share.limited(share or self.share) as (allowed, limit),
                  self.started(server) as running):
                for process in running.processes():
                    limit(process)
                before = running.resident_bytes()
                few = self.requests_of(server, PROBE_SECONDS * allowed)
                self.ask(server, running, few)
                base = NOTHING if self.work.mib else self.ask(server, running, few)
                many = self.requests_of(server, seconds * allowed)
                whole = self.ask(server, running, base[0]["requests"] + many)
                peak = running.peak_bytes()
        except Failure as reason:
            return measure.failed(reason)
        return self.result(base, whole, allowed) | {
            "resident": peak, "grown": (peak - before) / self.work.connections}

    def result(self, base, whole, allowed):
        """Returns the numbers of the second load without those of the first one. Both open as many
        connections, so that the difference has no handshakes."""
        (less, used_before), (said, used) = base, whole
        errors = less["errors"] + said["errors"]
        requests = said["requests"] - less["requests"]
        seconds = said["seconds"] - less["seconds"]
        used -= used_before
        if used <= 0 or seconds <= 0 or said["errors"] == said["requests"]:
            return measure.failed("no request succeeded") | {"errors": errors or 1}
        worth = self.work.mib or 1
        return {"figure": requests * worth / used, "busy": used / seconds / allowed,
                "rate": requests * worth / seconds, "p50": 0, "p99": 0, "errors": errors,
                "load": said}

    def requests_of(self, server, processor_seconds):
        """Returns about as many requests as the server answers in this CPU time, the same number
        for each stream."""
        each = self.work.connections * self.work.depth
        return each * max(1, math.ceil(self.speeds[server.name] * processor_seconds / each))

    def memory_target(self, name, rounds):
        """Returns the line of the target for memory: of an upload, or beside h2o."""
        results = [each[name] for each in rounds if each.get(name, {}).get("figure")]
        errors = sum(each[name]["errors"] for each in rounds)
        if self.work.upload_bytes:
            return memory_line(f"{name}, peak bytes of a connection",
                               [each["grown"] for each in results], RESIDENT_MAX, errors, "{:,.0f}")
        ratios = [each[name]["resident"] / each[OTHERS_OF_MEMORY]["resident"] for each in rounds
                  if each.get(name, {}).get("figure")
                  and each.get(OTHERS_OF_MEMORY, {}).get("figure")]
        return memory_line(f"{name} / {OTHERS_OF_MEMORY}, peak memory", ratios, 1, errors, "{:.2f}")


def memory_line(title, values, most, errors, form):
    """Returns the line of a target for memory, which every round must reach."""
    line = {"of": title, "reached": "–"}
    if values:
        spread = figures.spread(values)
        line["reached"] = (f"{form.format(spread['median'])} ({form.format(spread['min'])}.."
                           f"{form.format(spread['max'])})")
    if errors:
        line["verdict"] = "missed: errors"
    elif len(values) < idle.ROUNDS:
        line["verdict"] = f"not judged: {len(values)} rounds"
    else:
        line["verdict"] = f"{'met' if max(values) <= most else 'MISSED'} (≤ {most:,})"
    return line


def memory_table(rows):
    lines = ["| memory | median (min..max) | target |", "|---|---|---|"]
    lines += [f"| {row['targets'][-1]['of']} | {row['targets'][-1]['reached']} "
              f"| {row['targets'][-1]['verdict']} |" for row in rows if row["kind"] == "weir"]
    return "\n".join(lines)


# ---- Idle connections ----------------------------------------------------------------------------

SETTINGS, ACK, HEADERS, END_STREAM, END_HEADERS, DATA = 4, 1, 1, 1, 4, 0
# :method GET, :path /, :scheme http or https, :authority bench
FIELDS = {scheme: bytes([0x82, 0x84, index, 0x41, len(works.HOST)]) + works.HOST.encode()
          for scheme, index in (("http", 0x86), ("https", 0x87))}
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


class Http2IdleMemory(idle.IdleMemory):
    """Bytes of idle connections of HTTP/2."""

    id = "H6"
    title = idle.IdleMemory.title.replace("keep-alive", "HTTP/2")
    work = works.Workload("H6", "")
    target = 1024

    def seconds(self):
        return 15 * idle.ROUNDS * len(self.servers)

    def ask(self, connection, number):
        greeting = b"" if number > 1 else (PREFACE + frame(SETTINGS, 0, 0)
                                           + frame(SETTINGS, ACK, 0))
        fields = FIELDS["https" if self.work.tls else "http"]
        connection.sendall(greeting + frame(HEADERS, END_STREAM | END_HEADERS, 2 * number - 1,
                                            fields))

    def receive(self, connection):
        """Returns when a response has ended, and has no bytes behind it."""
        received, status = b"", False
        while True:
            data = connection.recv(4096)
            if not data:
                raise Failure("the server closed an idle connection")
            received += data
            ended = False
            while len(received) >= 9 + (size := int.from_bytes(received[:3])) and not ended:
                kind, flags = received[3:5]
                status = status or (kind == HEADERS and received[9:10] == b"\x88")
                ended = kind in (HEADERS, DATA) and bool(flags & END_STREAM)
                received = received[9 + size:]
            if ended and not received:
                if not status:
                    raise Failure("the server answers no 200")
                return


class TlsIdleMemory(Http2IdleMemory):
    """Bytes of idle connections of HTTP/2 over TLS 1.3."""

    id = "H6-tls"
    title = idle.IdleMemory.title.replace("keep-alive", "HTTP/2 over TLS")
    work = works.Workload("H6-tls", "", tls="ecdsa")
    target = 1536

    @functools.cached_property
    def context(self):
        context = verify.unverified()
        context.set_alpn_protocols(["h2"])
        return context

    def seconds(self):
        return 25 * idle.ROUNDS * len(self.servers)

    def connect(self, port):
        return self.context.wrap_socket(idle.connect(port))


def sections(servers, options):
    return [*(Http2Work(work, [server for server in servers if server.joins(work.id)], options)
              for work in WORKS),
            Http2IdleMemory(servers, options), TlsIdleMemory(servers, options)]
