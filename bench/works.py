"""The works that are asked of servers: one request, repeated, and what Weir shall reach at it."""

import dataclasses

HOST = "bench"  # of the same length in every request, whatever the port
PING_BODY = '{"sequence": 2}'
# io_uring receives into buffers that all connections share; when all of these are answered at once,
# it runs out of them.
MANY_CONNECTIONS = 256
JSON_TYPE = "Content-Type: application/json"


@dataclasses.dataclass(frozen=True)
class Target:
    """What the median of the paired ratios shall reach, and the lower end of its interval.

    Ratios are of requests per CPU second to the best program of the same round (`to` "all") or to
    the best limit server of it ("limit"); with "peers", of requests per second to the best server
    that is neither a limit server nor Weir's.
    """

    median: float
    low: float = 0
    to: str = "all"


@dataclasses.dataclass(frozen=True)
class Work:
    """`load` are options of `weir bench`."""

    id: str
    title: str
    method: str = "GET"
    path: str = "/"
    fields: tuple = ()
    body: str = ""
    connections: int = 64
    depth: int = 1
    closing: bool = False
    # Of a processor, tried from the left until the generator keeps the limit servers busy.
    shares: tuple = (0.9, 0.75, 0.6, 0.45, 0.3)
    # Else it is about latency: nobody is to be busy, and shares are of requests per second.
    saturates: bool = True
    # The generator never sleeps, so that no server's time goes into waking it: else the slower a
    # server is, the more it pays for that. Not where they share a processor.
    busy_poll: bool = True
    peer_rounds: int = 5  # others' servers are left out of the other rounds, to save time
    target: Target = None

    def request(self):
        """The bytes of one request, as the generator sends it."""
        lines = [f"{self.method} {self.path} HTTP/1.1", f"Host: {HOST}", *self.fields]
        if self.closing:
            lines.append("Connection: close")
        if self.body:
            lines.append(f"Content-Length: {len(self.body)}")
        return ("\r\n".join(lines) + "\r\n\r\n" + self.body).encode()

    def options(self):
        options = ["--method", self.method, "--header", f"Host: {HOST}",
                   "--connections", str(self.connections), "--depth", str(self.depth),
                   "--backend", "epoll" if self.connections > MANY_CONNECTIONS else "auto"]
        for field in self.fields:
            options += ["--header", field]
        if self.body:
            options += ["--body", self.body]
        if self.closing:
            options.append("--new-connections")
        if self.saturates and self.busy_poll:
            options.append("--busy-poll")
        return options


def ping(identity, connections, **more):
    return Work(identity, f"JSON ping, {connections:,} connections", "POST", "/ping", (JSON_TYPE,),
                PING_BODY, connections, **more)


WORKS = [
    Work("B1", "GET, 64 in one write, 512 connections", connections=512, depth=64,
         target=Target(0.70)),
    Work("B1-64", "GET, 64 in one write, 64 connections", depth=64),
    Work("B2", "GET, 64 connections", target=Target(0.95, 0.92)),
    Work("B3", "GET of 190 bytes, 1,000 connections", path="/190", connections=1000),
    ping("B13", 400, target=Target(0.92)),
    ping("B13-2", 2, shares=(1,), saturates=False, peer_rounds=9,
         target=Target(1, to="peers")),
    # A client spends seconds on finding free ports for so many.
    ping("B13-19000", 19_000, peer_rounds=3, target=Target(0.92, to="limit")),
    Work("B15", "new connections, 64 at once", closing=True, shares=(0.3, 0.2),
         target=Target(0.92)),
]
