"""What is measured: the works of the benchmarks, and the servers that do them."""

import dataclasses
import pathlib

HOST = "bench"  # of the same length in every request, whatever the port
PING_BODY = '{"sequence": 2}'
JSON_TYPE = "Content-Type: application/json"


@dataclasses.dataclass(frozen=True)
class Work:
    """One request, repeated; `load` are options of `weir bench`."""

    id: str
    title: str
    method: str = "GET"
    path: str = "/"
    fields: tuple = ()
    body: str = ""
    load: tuple = ()
    closing: bool = False
    server_share: float = 1  # of a processor; less where the client's side of the work is dearer

    def request(self):
        """The bytes of one request, as the generator sends it."""
        lines = [f"{self.method} {self.path} HTTP/1.1", f"Host: {HOST}", *self.fields]
        if self.closing:
            lines.append("Connection: close")
        if self.body:
            lines.append(f"Content-Length: {len(self.body)}")
        return ("\r\n".join(lines) + "\r\n\r\n" + self.body).encode()

    def options(self):
        options = ["--method", self.method, "--header", f"Host: {HOST}", *self.load]
        for field in self.fields:
            options += ["--header", field]
        if self.body:
            options += ["--body", self.body]
        if self.closing:
            options.append("--new-connections")
        return options


def ping(identity, connections):
    return Work(identity, f"JSON ping, {connections} connections", "POST", "/ping", (JSON_TYPE,),
                PING_BODY, ("--connections", str(connections)))


WORKS = [
    Work("B2", "GET, 64 connections", load=("--connections", "64")),
    Work("B1", "GET, 64 in one write, 512 connections",
         load=("--connections", "512", "--depth", "64")),
    Work("B1-64", "GET, 64 in one write, 64 connections",
         load=("--connections", "64", "--depth", "64")),
    ping("B13", 400),
    ping("B13-2", 2),
    Work("B15", "new connections, 64 at once", load=("--connections", "64"), closing=True,
         server_share=0.3),
]


@dataclasses.dataclass(frozen=True)
class Server:
    """A program that listens on 127.0.0.1 on a port of its own choice and prints it."""

    name: str
    program: str  # below the build tree
    options: tuple = ()
    canned: bool = False  # told how long requests and responses are
    source: str = ""  # of a peer: its folder in peers/
    refuses: tuple = ()  # (family of works, why this server is not measured at them)

    def command(self, build, work, response_bytes):
        command = [str(build / self.program), "--port", "0", *self.options]
        if self.canned:
            command += ["--response-bytes", str(response_bytes)]
            if work.body:
                command += ["--request-bytes", str(len(work.request()))]
            if work.closing:
                command.append("--close")
        return command

    def refusal(self, work):
        """Why this server is not measured at a work, or nothing."""
        return dict(self.refuses).get(work.id.partition("-")[0], "")


@dataclasses.dataclass(frozen=True)
class Peer(Server):
    """Somebody else's server, by a small program of ours in peers/; peers.py builds it."""

    tools: tuple = ()  # commands without which it is left out
    steps: tuple = ()  # commands that build it, in its copy of the folder
    home: pathlib.Path = None  # that copy

    def command(self, build, work, response_bytes):
        program = [part.format(home=self.home) for part in self.program.split()]
        return [*program, "--port", "0", *self.options]


def weir(backend):
    return Server(f"weir-{backend}", "examples/example_bench",
                  ("--address", "127.0.0.1", "--cores", "1", "--backend", backend))


SERVERS = [
    Server("limit-epoll", "bench/limit/epoll_limit", canned=True),
    Server("limit-uring", "bench/limit/uring_limit", canned=True),
    weir("uring"),
    weir("epoll"),
    weir("poll"),
]

NO_JSON = ("B13", "makes no JSON")

PEERS = [
    Peer("nginx", "python3 {home}/start.py --prefix {home}", source="nginx", tools=("nginx",),
         refuses=(NO_JSON,)),
    Peer("fasthttp", "{home}/fasthttp", source="fasthttp", tools=("go",),
         steps=(("go", "build", "-o", "fasthttp", "."),)),
    Peer("go-net-http", "{home}/nethttp", source="nethttp", tools=("go",),
         steps=(("go", "build", "-o", "nethttp", "."),)),
]

# Canned responses are as long as this one's.
MODEL = weir("epoll")
