"""The works of the web: WebSocket echoes, files, compressed JSON, uploads of forms, a reverse
proxy, and messages to many WebSockets. Each has its own servers."""

import contextlib
import pathlib
import random
import socket
import statistics
import subprocess
import sys
import threading
import time

import contest
import figures
import inside
import programs
import works
from contest import Entry, Target
from serving import Failure, errors_of, load, on_processors, serving

ROOT = pathlib.Path(__file__).resolve().parent
BACKENDS = ("uring", "epoll")
ADDRESS = ("--port", "0", "--address", "127.0.0.1", "--cores", "1", "--no-pin", "--backend")
LOAD_SECONDS_MAX = 60
NGINX = next(peer for peer in programs.PEERS if peer.name == "nginx")
WEB_PEERS = {peer.name: peer for peer in programs.WEB_PEERS}


def weir(program, name="weir", options=(), kind="weir"):
    """Returns an example with each backend."""
    return [Entry(f"{name}-{each}", kind, (f"{{build}}/{program}", *options, *ADDRESS, each))
            for each in BACKENDS]


def peer(name, *options):
    found = WEB_PEERS[name]
    return Entry(name, "peer", (*found.program.split(), "--port", "0", *options), found)


class Requests(contest.Contest):
    """A contest whose load is one repeated request of `weir bench`."""

    work = works.Workload("", "", any_length=True)

    def load(self, entry, running):
        work = self.work_of(entry)
        report = load(self.options, running.port, running.processes(), work, self.options.seconds)
        if found := errors_of(report):
            raise Failure(f"{found} errors: {report['errors']}")
        used = report["responses"] / report["server"]["responses_per_cpu_second"]
        return report["responses"], report["seconds"], used

    def work_of(self, entry):
        del entry
        return self.work


def generated(options, entry, running, program, *words):
    """Puts the load of a program of limit/ on a server. Returns what Contest.load() does."""
    warm_up = options.warm_up + (entry.peer.warm_up if entry.peer else 0)
    command = [str(options.build / "bench/limit" / program), "--port", str(running.port),
               "--seconds", str(options.seconds), "--warm-up", str(warm_up), *map(str, words)]
    with subprocess.Popen(on_processors([options.load_cpu], command), text=True,
                          stdout=subprocess.PIPE) as process:
        process.stdout.readline()  # the load has begun
        before = running.processor_seconds()
        line = process.stdout.readline()
        used = running.processor_seconds() - before
    if process.returncode != 0 or not line:
        raise Failure("the load has failed")
    return float(line) * options.seconds, options.seconds, used


# ---- WebSockets ----------------------------------------------------------------------------------

class WebSocketEcho(contest.Contest):
    """Small messages that a server returns, with `depth` of them on their way."""

    unit = "echoes"

    def __init__(self, depth, least, options):
        super().__init__(f"W{depth}", f"WebSocket echo, 64 connections with {depth} messages of 5 "
                         "bytes on their way", options)
        self.depth = depth
        self.targets = (Target("limit", least), Target("peer", 1))

    def entries(self):
        return [Entry("limit", "limit", ("{build}/bench/limit/websocket_limit", "--port", "0")),
                *weir("examples/example_websocket_echo"),
                *map(peer, ("ws-go", "ws-node", "ws-tungstenite"))]

    def load(self, entry, running):
        return generated(self.options, entry, running, "websocket_load", "--depth", self.depth)


class Publish(inside.Inside):
    """Messages of a topic to many subscribers, beside plain writes to as many connections."""

    id = "W-publish"
    title = ("a message of 100 bytes to 10,000 WebSockets on two cores; microseconds of CPU time "
             "of each message")
    program = "bench/inside/inside_publish"
    arguments = ()
    round_seconds = 20
    most = 1.2  # times the CPU time of the plain writes

    def processors(self):
        return [self.options.server_cpu, self.options.load_cpu]

    def table(self, rows):
        by_name = {row["name"]: row["microseconds"] for row in rows}
        ratio = by_name["topic"] / by_name["writes"]
        verdict = "met" if ratio <= self.most else "MISSED"
        if self.options.runs < figures.PAIRS_MIN:
            verdict = f"not judged: {self.options.runs} rounds"
        return "\n".join(["| | microseconds of CPU time |", "|---|---|",
                          *(f"| {name} | {value:,.0f} |" for name, value in by_name.items()),
                          f"| topic / writes | {ratio:.2f} (≤ {self.most}): {verdict} |"])


# ---- Files and compressed JSON ------------------------------------------------------------------

class Files(contest.Contest):
    """One file, 64 connections. nginx opens it once (open_file_cache), and sends it by sendfile."""

    def __init__(self, name, size, least, options):
        super().__init__(f"F-{name}", f"a file of {name}, 64 connections", options)
        self.size = size
        self.path = None
        self.targets = (Target("nginx", least), Target("limit", 0.8))

    def prepare(self, place):
        content = random.Random(1).randbytes(self.size)
        for folder in (place / "files", place):  # of nginx, and of Weir
            folder.mkdir(exist_ok=True)
            self.path = folder / "f-file"
            self.path.write_bytes(content)
        return contextlib.nullcontext()

    def entries(self):
        nginx = Entry("nginx", "peer", ("python3", "{home}/start.py", "--prefix", "{place}"), NGINX)
        limit = Entry("limit", "limit", ("{build}/bench/limit/files_limit", "--port", "0",
                                         "{place}/f-file"))
        return [limit, *weir("examples/example_site", options=("{place}",)), nginx]

    def load(self, entry, running):
        return generated(self.options, entry, running, "files_load", "--path", "/f-file", "--file",
                         self.path)


class Compressed(Requests):
    """A JSON text of 9 KB that is compressed for each request, beside the library alone."""

    targets = (Target("limit", 0.90),)

    def __init__(self, coding, options):
        super().__init__(f"Z-{coding}", f"JSON of 9 KB, compressed by {coding}, 64 connections",
                         options)
        self.coding = coding
        self.work = works.Workload(self.id, self.title, path="/catalogue", any_length=True,
                                   fields=(f"Accept-Encoding: {coding}",))

    def entries(self):
        flags = ("--zstd",) if self.coding == "zstd" else ()
        return [Entry("limit", "limit", ("{build}/bench/limit/compression_limit", "--port", "0",
                                         *flags)),
                *weir("examples/example_compression")]


# ---- The reverse proxy ---------------------------------------------------------------------------

class Proxy(Requests):
    """GET through reverse proxies, each with one thread. The upstream shares the processor of the
    load. "direct" is the same server without a proxy. The limit passes bytes on without parsing,
    with two receives and two sends for each request."""

    targets = (Target("limit", 0.75), Target("nginx", 1), Target("haproxy", 1),
               Target("direct", 0.45))
    share = 0.5

    def __init__(self, options):
        super().__init__("P1", "GET of 190 bytes through a reverse proxy, 64 connections", options)
        self.upstream = ""

    @contextlib.contextmanager
    def prepare(self, place):
        command = programs.weir("epoll").command(self.options.build, works.WORKS[0], 0)
        with serving([*command, "--no-pin"], [self.options.load_cpu]) as running:
            self.upstream = f"127.0.0.1:{running.port}"
            yield

    def entries(self):
        others = [Entry(name, "peer", (sys.executable, str(ROOT / "proxies.py"), name, "{place}"))
                  for name in ("nginx", "haproxy")]
        limit = Entry("limit", "limit", ("{build}/bench/limit/proxy_limit", "--port", "0"))
        return [limit, *weir("examples/example_gateway"), *others,
                *weir("examples/example_bench", "direct", kind="direct")]

    def measure(self, entry, place):
        """Adds the upstream to the command line."""
        words = entry.command
        if entry.kind == "weir":
            words = (words[0], f"http://{self.upstream}", *words[1:])
        elif entry.kind == "peer":
            words = (*words, self.upstream)
        elif entry.kind == "limit":
            words = (*words, "--upstream", self.upstream.partition(":")[2])
        return super().measure(Entry(entry.name, entry.kind, words), place)

    def work_of(self, entry):
        path = "/api/190" if entry.kind == "weir" else "/190"
        return works.Workload(self.id, self.title, path=path, any_length=True)


# ---- Uploads of forms ----------------------------------------------------------------------------

class Upload(contest.Contest):
    """64 forms of 20 MB at the same time. Figures count megabytes of their content."""

    unit = "MB"
    uploads = 64
    content_bytes = 20_000_000
    boundary = "BOUNDARYboundary0123456789"
    resident_max = 2**20  # of a connection
    targets = (Target("form-go", 1),)

    def __init__(self, options):
        super().__init__("M1", "64 uploads of a multipart form with 20 MB at a time, and peak "
                         "bytes of a connection", options)
        self.pieces = []
        self.grown = {}  # {entry: bytes of a connection in each round}

    def seconds(self):
        return 5 * self.options.runs * len(self.entries())

    def entries(self):
        return [*weir("bench/inside/inside_form_server"), peer("form-go")]

    def prepare(self, place):
        start = (f'--{self.boundary}\r\nContent-Disposition: form-data; name="file"; '
                 'filename="a.bin"\r\nContent-Type: application/octet-stream\r\n\r\n').encode()
        end = f"\r\n--{self.boundary}--\r\n".encode()
        length = len(start) + self.content_bytes + len(end)
        head = (f"POST /form HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n"
                f"Content-Type: multipart/form-data; boundary={self.boundary}\r\n\r\n").encode()
        content = random.Random(1).randbytes(self.content_bytes)
        self.pieces = [head + start, memoryview(content), end]
        return contextlib.nullcontext()

    def load(self, entry, running):
        before, began, used = (running.resident_bytes(), time.monotonic(),
                               running.processor_seconds())
        answers = []
        threads = [threading.Thread(target=self.send, args=(running.port, answers))
                   for _ in range(self.uploads)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        seconds = time.monotonic() - began
        used = running.processor_seconds() - used
        if len(answers) != self.uploads:
            raise Failure(f"{len(answers)} of {self.uploads} uploads have an answer")
        grown = (running.peak_bytes() - before) / self.uploads
        self.grown.setdefault(entry.name, []).append(grown)
        return self.uploads * self.content_bytes / 1e6, seconds, used

    def send(self, port, answers):
        """Uploads one form."""
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)) as upload:
            upload.settimeout(LOAD_SECONDS_MAX)
            for piece in self.pieces:
                upload.sendall(piece)
            received = b""
            while not received.endswith(str(self.content_bytes).encode()):
                data = upload.recv(65536)
                if not data:
                    return
                received += data
            answers.append(received)

    def row(self, entry, rounds, entries):
        row = super().row(entry, rounds, entries)
        grown = self.grown.get(entry.name)
        if entry.kind == "weir" and grown:
            met = max(grown) <= self.resident_max
            row["targets"].append({
                "of": f"{entry.name}, peak bytes of a connection",
                "reached": f"{statistics.median(grown):,.0f} ({min(grown):,.0f}.."
                           f"{max(grown):,.0f})",
                "verdict": f"{'met' if met else 'MISSED'} (≤ {self.resident_max:,})"})
        return row


def sections(servers, options):
    del servers  # each work has its own
    return [WebSocketEcho(1, 0.92, options), WebSocketEcho(16, 0.75, options), Publish(options),
            Files("1k", 1024, 1, options), Files("100k", 100 * 1024, 1, options),
            Files("10m", 10 * 2**20, 0.95, options), Compressed("gzip", options),
            Compressed("zstd", options), Proxy(options), Upload(options)]
