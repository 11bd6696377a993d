"""What is measured: the works of the benchmarks, and the servers that do them."""

import dataclasses

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

    def command(self, build, work, response_bytes):
        command = [str(build / self.program), "--port", "0", *self.options]
        if self.canned:
            command += ["--response-bytes", str(response_bytes)]
            if work.body:
                command += ["--request-bytes", str(len(work.request()))]
            if work.closing:
                command.append("--close")
        return command


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

# Canned responses are as long as this one's.
MODEL = weir("epoll")
