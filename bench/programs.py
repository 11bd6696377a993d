"""The servers that are measured: the limit, Weir on each backend, and peers."""

import dataclasses
import pathlib


@dataclasses.dataclass(frozen=True)
class Server:
    """A program that listens on 127.0.0.1 on a port of its own choice and prints it."""

    name: str
    program: str  # below the build tree
    options: tuple = ()
    preload: str = ""  # a library to load before all others
    canned: bool = False  # told how long requests and responses are
    source: str = ""  # of a peer: its folder in peers/
    refuses: tuple = ()  # (family of works, why this server is not measured at them)
    warm_up: float = 0  # seconds of a whole processor, until it has compiled what it runs
    only: tuple = ()  # the works that it does; (): all

    @property
    def kind(self):
        """"limit", "weir" or "peer"."""
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
        return command

    def joins(self, identity):
        """Whether it is measured at a work at all."""
        return not self.only or identity in self.only

    def refusal(self, work):
        """Why this server is not measured at a work, or nothing."""
        return dict(self.refuses).get(work.id.partition("-")[0], "")


@dataclasses.dataclass(frozen=True)
class Peer(Server):
    """Somebody else's server, by a small program of ours in peers/; peers.py builds it."""

    tools: tuple = ()  # commands without which it is left out
    library: str = ""  # what `steps` cannot do without: named when they fail
    steps: tuple = ()  # commands that build it, in its copy of the folder
    home: pathlib.Path = None  # that copy

    def command(self, build, work, response_bytes):
        program = [part.format(home=self.home) for part in self.program.split()]
        command = [*program, "--port", "0", *self.options]
        return command + (["--response-bytes", str(response_bytes)] if self.canned else [])


def weir(backend):
    return Server(f"weir-{backend}", "examples/example_bench",
                  ("--address", "127.0.0.1", "--cores", "1", "--backend", backend))


def weir_awake(backend):
    """The same, awake for a while before it sleeps: for what is about latency."""
    same = weir(backend)
    return dataclasses.replace(same, name=f"{same.name}-awake", only=("B13-2",),
                               options=(*same.options, "--busy-wait", "100"))


LIMITS = [
    Server("limit-epoll", "bench/limit/epoll_limit", canned=True),
    Server("limit-uring", "bench/limit/uring_limit", canned=True),
]

SERVERS = [
    *LIMITS,
    weir("uring"),
    weir("epoll"),
    weir("poll"),
    weir_awake("uring"),
    weir_awake("epoll"),
]

NO_JSON = ("B13", "makes no JSON")

PEERS = [
    Peer("nginx", "python3 {home}/start.py --prefix {home}", source="nginx",
         library="nginx, or apt-get to fetch it", steps=(("python3", "fetch.py"),),
         refuses=(NO_JSON,)),
    Peer("fasthttp", "{home}/fasthttp", source="fasthttp", tools=("go",),
         steps=(("go", "build", "-o", "fasthttp", "."),)),
    Peer("go-net-http", "{home}/nethttp", source="nethttp", tools=("go",),
         steps=(("go", "build", "-o", "nethttp", "."),)),
    Peer("hyper", "{home}/target/release/hyper_peer", source="hyper", tools=("cargo",),
         steps=(("cargo", "build", "--release"),)),
    Peer("may_minihttp", "{home}/target/release/may_peer", source="may_minihttp",
         tools=("cargo",), steps=(("cargo", "build", "--release"),),
         refuses=(("B15", "answers Connection: close without closing"),)),
    Peer("ntex", "{home}/target/release/ntex_peer", source="ntex", tools=("cargo",),
         steps=(("cargo", "build", "--release"),)),
    Peer("libuv-octane", "{home}/octane", source="libuv", canned=True, tools=("cc",),
         library="libuv (libuv1-dev)",
         steps=(("cc", "-std=gnu11", "-O2", "-o", "octane", "octane.c", "-luv", "-pthread"),),
         refuses=(NO_JSON, ("B15", "reads no field, so it never closes"))),
    Peer("beast", "{home}/beast", source="beast", tools=("c++",),
         library="Boost 1.81 or later (libboost1.81-dev)",
         steps=(("c++", "-std=c++20", "-O2", "-DNDEBUG", "-o", "beast", "beast.cpp",
                 "-pthread"),)),
    Peer("node", "node {home}/server.js", source="node", tools=("node",), warm_up=1),
    Peer("express", "node {home}/server.js", source="express", tools=("node", "npm"), warm_up=2,
         steps=(("npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"),)),
]


def peers_called(names):
    """`all`, `none`, or those named, with commas between them."""
    known = {peer.name: peer for peer in PEERS}
    wanted = {"all": list(known), "none": []}.get(names, names.split(","))
    if unknown := [name for name in wanted if name not in known]:
        raise SystemExit(f"no such peer: {', '.join(unknown)}; there are {', '.join(known)}")
    return [known[name] for name in wanted]


# Canned responses are as long as this one's.
MODEL = weir("epoll")
