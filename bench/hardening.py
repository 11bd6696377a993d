"""Weir with and without hardening: what the assertions, the protected stacks and the rest of
WEIR_HARDEN cost, in instructions and in requests."""

import dataclasses
import pathlib
import re
import subprocess
import tempfile

import measure
import works
from serving import LOAD_SECONDS_MORE_MAX, Failure, generator, on_processors, serving

IDS = ("instructions", "B1", "B2")
PROGRAM = "examples/example_bench"
# Two runs, of which the difference is counted: neither start nor end is in it.
REQUESTS = {"B1": (16_384, 65_536), "B2": (8_192, 32_768)}
CONNECTIONS = {"B1": 16, "B2": 16}


def variants(server, plain):
    """The server as it is built by default, and from the build tree `plain`, without hardening."""
    return [dataclasses.replace(server, name=f"{server.name} hardened"),
            dataclasses.replace(server, name=f"{server.name} plain",
                                program=str(plain / PROGRAM))]


def difference(hardened, plain):
    return f"{100 * (hardened / plain - 1):+.2f} %"


class Instructions:
    """Counted by callgrind, so that nothing else on the machine matters."""

    id = "instructions"
    title = "instructions of the server's own for a request, counted by callgrind"

    def __init__(self, pairs, options):
        self.pairs = pairs  # of variants
        self.options = options

    def seconds(self):
        return 15 * len(self.pairs) * 2 * len(REQUESTS)

    def run(self, say):
        rows = []
        for identity in REQUESTS:
            work = works_by_id()[identity]
            for hardened, plain in self.pairs:
                counts = {server.name: self.count(server, work) for server in (hardened, plain)}
                row = {"work": identity, "name": hardened.name.removesuffix(" hardened"),
                       "hardened": counts[hardened.name], "plain": counts[plain.name]}
                rows.append(row)
                say(f"  {identity} {row['name']}: {row['hardened']:.1f} hardened, "
                    f"{row['plain']:.1f} plain")
        return {"title": self.title, "kind": "instructions", "summary": rows, "errors": 0,
                "markdown": table(rows)}

    def count(self, server, work):
        """For each request."""
        few, many = REQUESTS[work.id]
        spent = [self.total(server, work, requests) for requests in (few, many)]
        return (spent[1] - spent[0]) / (many - few)

    def total(self, server, work, requests):
        with tempfile.TemporaryDirectory() as folder:
            profile = pathlib.Path(folder) / "callgrind"
            command = ["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={profile}",
                       *server.command(self.options.build, work, 0)]
            few = dataclasses.replace(work, connections=CONNECTIONS[work.id], busy_poll=False)
            with serving(command, [self.options.server_cpu]) as running:
                load = [*generator(self.options, running.port, few), "--requests", str(requests)]
                ran = subprocess.run(on_processors([self.options.load_cpu], load),
                                     capture_output=True, text=True,
                                     timeout=LOAD_SECONDS_MORE_MAX)
                if ran.returncode != 0:
                    raise Failure(ran.stderr.strip() or ran.stdout.strip())
            return total_of(profile.read_text())


def total_of(profile):
    """All instructions of a callgrind profile."""
    found = re.search(r"^(?:totals|summary): (\d+)", profile, re.MULTILINE)
    if found is None:
        raise Failure("callgrind has counted nothing")
    return int(found.group(1))


def table(rows):
    lines = ["| work | server | hardened | plain | cost |", "|---|---|---|---|---|"]
    for row in rows:
        lines.append(f"| {row['work']} | {row['name']} | {row['hardened']:.1f} | "
                     f"{row['plain']:.1f} | {difference(row['hardened'], row['plain'])} |")
    return "\n".join(lines)


def works_by_id():
    return {work.id: dataclasses.replace(work, target=None) for work in works.WORKS}


def sections(servers, options):
    ours = [server for server in servers
            if server.kind == "weir" and server.name != "weir-poll" and not server.only]
    pairs = [variants(server, options.plain) for server in ours]
    served = [variant for pair in pairs for variant in pair]
    every = works_by_id()
    return [Instructions(pairs, options),
            *(measure.ServedWork(every[identity], served, options) for identity in ("B1", "B2"))]
