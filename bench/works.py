"""The workloads of servers: one repeated request each, and the target for Weir."""

import dataclasses

HOST = "bench"  # one length for all ports
PING_BODY = '{"sequence": 2}'
# io_uring receives into buffers that all connections share. It runs out of buffers if more
# connections than this receive responses at the same time.
MANY_CONNECTIONS = 256
JSON_TYPE = "Content-Type: application/json"


@dataclasses.dataclass(frozen=True)
class Target:
    """The required median of the paired ratios, and the required lower end of its interval.

    A ratio compares requests per CPU second with the best program of the same round (`to` "all") or
    with its best limit server ("limit"). With "peers", it compares requests per second with the
    best server that is neither a limit server nor Weir.
    """

    median: float
    low: float = 0
    to: str = "all"


@dataclasses.dataclass(frozen=True)
class Workload:
    """One workload: a request and the options of `weir bench` for it."""

    id: str
    title: str
    method: str = "GET"
    path: str = "/"
    fields: tuple = ()
    body: str = ""
    connections: int = 64
    depth: int = 1
    closing: bool = False
    rate: float = 0  # requests per second; 0: as many as the server answers
    tls: str = ""  # kind of the certificate's key, see certificates.py; "": without TLS
    tls_version: str = "1.3"
    resumes: bool = False  # new connections resume sessions
    any_length: bool = False  # the heads of peers may make responses longer
    # Shares of a processor, tried in order until the generator saturates the limit servers.
    shares: tuple = (0.9, 0.75, 0.6, 0.45, 0.3)
    # False for workloads about latency: no server is saturated, and ratios use requests per second.
    saturates: bool = True
    # The generator never sleeps, so that no server spends time on waking it: slower servers would
    # spend more. False if the generator and the servers share a processor.
    busy_poll: bool = True
    peer_rounds: int = 5  # peers skip the other rounds, to save time
    target: Target = None

    def request(self):
        """Returns the bytes of one request, as the generator sends it."""
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
        if self.rate:
            options += ["--rate", str(self.rate)]
        if self.saturates and self.busy_poll:
            options.append("--busy-poll")
        return options

    def tls_options(self):
        return ["--tls-version", self.tls_version, *(["--resume"] if self.resumes else [])]


def ping(identity, connections, **more):
    return Workload(identity, f"JSON ping, {connections:,} connections", "POST", "/ping",
                    (JSON_TYPE,), PING_BODY, connections, **more)


WORKS = [
    Workload("B1", "GET, 64 in one write, 512 connections", connections=512, depth=64,
         target=Target(0.70)),
    Workload("B1-64", "GET, 64 in one write, 64 connections", depth=64),
    Workload("B2", "GET, 64 connections", target=Target(0.95, 0.92)),
    Workload("B3", "GET of 190 bytes, 1,000 connections", path="/190", connections=1000),
    ping("B13", 400, target=Target(0.92)),
    ping("B13-2", 2, shares=(1,), saturates=False, peer_rounds=9,
         target=Target(1, to="peers")),
    # A client needs seconds to find free ports for 19,000 connections.
    ping("B13-19000", 19_000, peer_rounds=3, target=Target(0.92, to="limit")),
    Workload("B15", "new connections, 64 at a time", closing=True, shares=(0.3, 0.2),
         target=Target(0.92)),
]
