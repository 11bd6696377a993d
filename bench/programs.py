"""The measured servers: the limit servers, Weir on each backend, and peers."""

import dataclasses
import pathlib

import certificates


@dataclasses.dataclass(frozen=True)
class Server:
    """A program that listens on a free port of 127.0.0.1 and prints the port."""

    name: str
    program: str  # below the build tree
    options: tuple = ()
    preload: str = ""  # a library for LD_PRELOAD
    canned: bool = False  # True if it needs the lengths of requests and responses
    source: str = ""  # a peer's folder in peers/
    refuses: tuple = ()  # (family of workloads, reason why the server skips it)
    warm_up: float = 0  # seconds of a whole processor until the JIT is warm
    only: tuple = ()  # the workloads to measure; (): all
    # "no": without TLS, "too": with TLS in the workloads of TLS, "only": only in these
    tls: str = "no"
    anchor: bool = False  # True if its figure has no verdict and no share in the best
    http2: tuple = ()  # the workloads of HTTP/2 that it joins
    http1: bool = False  # True if clients use HTTP/1.1 in these

    @property
    def kind(self):
        """"limit", "weir", "peer" or "anchor"."""
        if self.anchor:
            return "anchor"
        if self.source:
            return "peer"
        return "limit" if self.canned else "weir"

    def command(self, build, work, response_bytes):
        command = [str(build / self.program), "--port", "0", *self.options]
        if self.canned:
            command += ["--response-bytes", str(response_bytes)]
            if work.body:
                command += ["--request-bytes", str(len(work.request()))]
            if work.closing:
                command.append("--close")
        return command + self.tls_options(build, work)

    def secure(self, work):
        """Returns true if the server speaks TLS in a workload."""
        return bool(work.tls) and self.tls != "no"

    def tls_options(self, build, work):
        return certificates.options(build, work.tls) if self.secure(work) else []

    def joins(self, identity):
        """Returns true if the server is measured at this workload."""
        if self.only:
            return identity in self.only
        if is_of_http2(identity):
            return identity in self.http2
        return self.tls != ("no" if is_of_tls(identity) else "only")

    def refusal(self, work):
        """Returns why the server skips a workload; empty if it does not."""
        return dict(self.refuses).get(work.id.partition("-")[0], "")


@dataclasses.dataclass(frozen=True)
class Peer(Server):
    """A server on another project's library: a small program in peers/, built by peers.py."""

    tools: tuple = ()  # required commands; the peer is left out without them
    library: str = ""  # a requirement of `steps`, named if they fail
    steps: tuple = ()  # build commands, run in the copy of its folder
    home: pathlib.Path = None  # the copy of its folder

    def command(self, build, work, response_bytes):
        program = [part.format(home=self.home) for part in self.program.split()]
        command = [*program, "--port", "0", *self.options]
        command += ["--response-bytes", str(response_bytes)] if self.canned else []
        return command + self.tls_options(build, work)


def is_of_tls(identity):
    """Returns true for the name of a workload of TLS: "T2-rsa"."""
    return identity.startswith("T")


def is_of_http2(identity):
    """Returns true for the name of a workload of HTTP/2: "H6-tls"."""
    return identity.startswith("H")


def weir(backend):
    poll = backend == "poll"
    return Server(f"weir-{backend}", "examples/example_bench",
                  ("--address", "127.0.0.1", "--cores", "1", "--backend", backend),
                  tls="no" if poll else "too",
                  http2=() if poll else ("H1", "H2", "H3", "H4", "H5", "H6", "H6-tls", "H7"))


def weir_plain(backend):
    """Returns weir(backend) without TLS, beside it in workloads over TLS."""
    same = weir(backend)
    return dataclasses.replace(same, name=f"{same.name}-plain", anchor=True, tls="no",
                               only=("T1", "T1-64", "H2"))


def weir_http1(backend):
    """Returns weir(backend) for clients of HTTP/1.1, beside it in workloads of HTTP/2."""
    same = weir(backend)
    return dataclasses.replace(same, name=f"{same.name}-http1", anchor=True, http1=True,
                               only=("H3", "H4", "H5"))


def weir_awake(backend):
    """Returns weir(backend) with busy waiting, for workloads about latency."""
    same = weir(backend)
    return dataclasses.replace(same, name=f"{same.name}-awake", only=("B13-2",), tls="no",
                               options=(*same.options, "--busy-wait", "100"))


LIMITS = [
    Server("limit-epoll", "bench/limit/epoll_limit", canned=True),
    Server("limit-uring", "bench/limit/uring_limit", canned=True),
]

TLS_LIMITS = [
    Server("limit-tls", "bench/limit/tls_limit", ("--cores", "1"), canned=True, tls="only"),
]

HTTP2_LIMITS = [
    Server("limit-http2", "bench/limit/h2_limit", canned=True, only=("H1",)),
]

# The signatures per second of CPU time by the library alone; no server.
SPEED = Server("openssl-speed", "", anchor=True, only=("T2-ecdsa", "T2-rsa"))

SERVERS = [
    *LIMITS,
    *TLS_LIMITS,
    *HTTP2_LIMITS,
    SPEED,
    weir("uring"),
    weir("epoll"),
    weir("poll"),
    weir_awake("uring"),
    weir_awake("epoll"),
    weir_plain("uring"),
    weir_plain("epoll"),
    weir_http1("uring"),
    weir_http1("epoll"),
]

HTTP2_REQUESTS = ("H1", "H2", "H3")
NO_JSON = ("B13", "makes no JSON")

PEERS = [
    Peer("nginx", "python3 {home}/start.py --prefix {home}", source="nginx", tls="too",
         library="nginx, or apt-get to fetch it", steps=(("python3", "fetch.py"),),
         refuses=(NO_JSON,)),
    Peer("nginx-http2", "python3 {home}/start.py --prefix {home} --http2", source="nginx",
         tls="too", library="nginx, or apt-get to fetch it", steps=(("python3", "fetch.py"),),
         only=HTTP2_REQUESTS),
    Peer("nghttpd", "python3 {home}/start.py", source="nghttpd", tools=("nghttpd",), tls="too",
         only=HTTP2_REQUESTS),
    Peer("h2o", "{home}/h2o_peer", source="h2o", tools=("cc",), tls="too",
         http2=(*HTTP2_REQUESTS, "H6", "H6-tls", "H7"),
         library="libh2o (libh2o-evloop-dev) and OpenSSL (libssl-dev)",
         steps=(("cc", "-std=gnu11", "-O2", "-o", "h2o_peer", "h2o_peer.c", "-lh2o-evloop", "-lssl",
                 "-lcrypto"),),
         refuses=(NO_JSON,)),
    Peer("fasthttp", "{home}/fasthttp", source="fasthttp", tools=("go",),
         steps=(("go", "build", "-o", "fasthttp", "."),)),
    Peer("go-net-http", "{home}/nethttp", source="nethttp", tools=("go",), tls="too",
         http2=HTTP2_REQUESTS,
         steps=(("go", "build", "-o", "nethttp", "."),)),
    Peer("hyper", "{home}/target/release/hyper_peer", source="hyper", tools=("cargo",), tls="too",
         steps=(("cargo", "build", "--release"),)),
    Peer("hyper-http2", "{home}/target/release/hyper_peer --http2", source="hyper",
         tools=("cargo",), tls="too", only=HTTP2_REQUESTS,
         steps=(("cargo", "build", "--release"),)),
    Peer("may_minihttp", "{home}/target/release/may_peer", source="may_minihttp",
         tools=("cargo",), steps=(("cargo", "build", "--release"),),
         refuses=(("B15", "answers Connection: close without closing"),)),
    Peer("ntex", "{home}/target/release/ntex_peer", source="ntex", tools=("cargo",),
         steps=(("cargo", "build", "--release"),)),
    Peer("libuv-octane", "{home}/octane", source="libuv", canned=True, tools=("cc",),
         library="libuv (libuv1-dev)",
         steps=(("cc", "-std=gnu11", "-O2", "-o", "octane", "octane.c", "-luv", "-pthread"),),
         refuses=(NO_JSON, ("B15", "reads no header, so it never closes"))),
    Peer("beast", "{home}/beast", source="beast", tools=("c++",),
         library="Boost 1.81 or later (libboost1.81-dev)",
         steps=(("c++", "-std=c++20", "-O2", "-DNDEBUG", "-o", "beast", "beast.cpp",
                 "-pthread"),)),
    Peer("node", "node {home}/server.js", source="node", tools=("node",), warm_up=1, tls="too"),
    Peer("express", "node {home}/server.js", source="express", tools=("node", "npm"), warm_up=2,
         steps=(("npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"),)),
]

# Clients on other projects' libraries. Each takes URL CONNECTIONS SECONDS WARM_UP BYTES, and prints
# the requests, the failures and the seconds of processor time of the measured time as JSON.
CLIENT_PEERS = [
    Peer("client-hyper", "{home}/target/release/client_hyper", source="client-hyper",
         tools=("cargo",), steps=(("cargo", "build", "--release"),)),
    Peer("client-curl", "{home}/client", source="client-curl", tools=("cc",),
         library="libcurl (libcurl4-openssl-dev)",
         steps=(("cc", "-std=gnu11", "-O2", "-o", "client", "client.c", "-lcurl"),)),
    Peer("client-go", "{home}/client-go", source="client-go", tools=("go",),
         steps=(("go", "build", "-o", "client-go", "."),)),
    Peer("client-undici", "node {home}/client.js", source="client-undici",
         tools=("node", "npm"), warm_up=1,
         steps=(("npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"),)),
]

# Servers of the works in web.py, which name them.
WEB_PEERS = [
    Peer("ws-go", "{home}/ws-go", source="ws-go", tools=("go",),
         steps=(("go", "build", "-o", "ws-go", "."),)),
    Peer("ws-node", "node {home}/server.js", source="ws-node", tools=("node", "npm"), warm_up=1,
         steps=(("npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"),)),
    Peer("ws-tungstenite", "{home}/target/release/ws_peer", source="ws-tungstenite",
         tools=("cargo",), steps=(("cargo", "build", "--release"),)),
    Peer("form-go", "{home}/form-go", source="form-go", tools=("go",),
         steps=(("go", "build", "-o", "form-go", "."),)),
]


def peers_called(names):
    """Returns the peers of `all`, `none`, or a list of names with commas."""
    known = {peer.name: peer for peer in PEERS}
    wanted = {"all": list(known), "none": []}.get(names, names.split(","))
    if unknown := [name for name in wanted if name not in known]:
        raise SystemExit(f"no such peer: {', '.join(unknown)}; there are {', '.join(known)}")
    return [known[name] for name in wanted]


# The server whose response length the canned responses copy.
MODEL = weir("epoll")
