"""The workloads of TLS: requests, handshakes, two serving cores, and idle connections."""

import dataclasses
import functools
import re
import statistics
import subprocess

import figures
import idle
import measure
import programs
import scaling
import verify
import works
from serving import on_processors

SPEED_SECONDS = 1
HANDSHAKE = functools.partial(works.Workload, closing=True, peer_rounds=5)


def get(identity, title, **more):
    return works.Workload(identity, f"GET over TLS 1.3, {title}", tls="ecdsa", any_length=True,
                          **more)


LIMIT = functools.partial(works.Target, to="limit")
WORKS = [
    get("T1", "64 connections", shares=(0.3, 0.2), target=LIMIT(1.00)),
    get("T1-64", "64 in one write, 64 connections", depth=64, shares=(0.6, 0.45, 0.3, 0.2)),
    HANDSHAKE("T2-ecdsa", "full handshakes, ECDSA P-256, TLS 1.3, each with one GET", tls="ecdsa",
              shares=(0.3, 0.2), target=LIMIT(0.90)),
    HANDSHAKE("T2-rsa", "full handshakes, RSA-2048, TLS 1.3, each with one GET", tls="rsa",
              shares=(0.75, 0.6, 0.45, 0.3), target=LIMIT(0.90)),
    HANDSHAKE("T3-13", "resumed handshakes, TLS 1.3, each with one GET", tls="ecdsa", resumes=True,
              shares=(0.4, 0.3, 0.2), target=LIMIT(0.90)),
    HANDSHAKE("T3-12", "resumed handshakes, TLS 1.2, each with one GET", tls="ecdsa", resumes=True,
              tls_version="1.2", shares=(0.4, 0.3, 0.2), target=LIMIT(0.90)),
    get("T6-16k", "responses with 16 KiB, 64 connections", path="/16k",
        shares=(0.6, 0.45, 0.3, 0.2)),
    get("T6-1m", "responses with 1 MiB, 16 connections", path="/1m", connections=16,
        shares=(0.6, 0.45, 0.3, 0.2)),
]

BODY_BYTES = {"/16k": 16 * 1024, "/1m": 1024 * 1024}

# {workload: {anchor: least ratio of Weir to it}}. "-plain" is the same backend without TLS.
ANCHORS = {
    "T1": {"-plain": 0.80},
    "T1-64": {"-plain": 0.75},
    "T2-rsa": {programs.SPEED.name: 0.80},
}
# The only peer to be behind of, per workload; all peers in the others.
ONLY_PEER = {"T6-16k": "nginx", "T6-1m": "nginx"}


class TlsWork(measure.ServedWork):
    """A workload of TLS. Weir's figures are also compared with anchors and with each peer."""

    limits = programs.TLS_LIMITS
    anchors = ANCHORS

    def run(self, say):
        outcome = super().run(say)
        for row in outcome["summary"]:
            if row["kind"] == "weir":
                row["targets"] = targets(row, self.work, outcome, self.anchors)
        if size := BODY_BYTES.get(self.work.path):
            each = [f"{row['name']} {row['figure'] * size / 2**20:,.0f}"
                    for row in outcome["summary"] if "figure" in row]
            outcome["markdown"] += f"\n\nMiB of bodies per CPU second: {', '.join(each)}."
        outcome["markdown"] += "\n\n" + target_table(outcome["summary"])
        return outcome

    def flaw_of(self, server):
        return "" if server == programs.SPEED else super().flaw_of(server)

    def measure(self, server, share=None, seconds=None):
        if server != programs.SPEED:
            return super().measure(server, share, seconds)
        rate = signatures(self.work.tls, self.options.server_cpu)
        return {"figure": rate, "busy": 1, "rate": rate, "p50": 0, "p99": 0, "resident": 0,
                "errors": 0}


def signatures(key, processor):
    """Returns the signatures per second of CPU time that `openssl speed` reaches."""
    name = {"ecdsa": "ecdsap256", "rsa": "rsa2048"}[key]
    command = ["openssl", "speed", "-seconds", str(SPEED_SECONDS), "-mr", name]
    ran = subprocess.run(on_processors([processor], command), capture_output=True, text=True,
                         check=True)
    # +F2:number:bits:signatures per second:verifications per second
    return float(re.search(r"^\+F\d:\d+:\d+:([\d.]+):", ran.stdout, re.MULTILINE).group(1))


def targets(row, work, outcome, anchors=ANCHORS):
    """Returns the targets of a row of Weir: its verdict, the anchors, and the peers."""
    name, rounds = row["name"], outcome["rounds"]
    found = []
    if "verdict" in row and "share" in row:
        share = row["share"]
        found.append({"of": f"{name} / the limit server", "verdict": row["verdict"],
                      "reached": reached(share)})
    least_of = {each["name"]: 1 for each in outcome["summary"] if each["kind"] == "peer"
                and ONLY_PEER.get(work.id, each["name"]) == each["name"]}
    for anchor, least in anchors.get(work.id, {}).items():
        least_of[f"{name}{anchor}" if anchor.startswith("-") else anchor] = least
    for other, least in least_of.items():
        ratios = figures.ratios(rounds, [name], others={other}, judging=True)[name]
        found.append(target(f"{name} / {other}", ratios, least, row["errors"], len(rounds)))
    return found


def target(title, ratios, least, errors, rounds):
    """Returns the line of one comparison. Peers run in some rounds only, so all of their rounds are
    judged if the run has enough rounds."""
    line = {"of": title, "reached": "–"}
    if ratios:
        line["reached"] = reached(figures.spread(ratios))
    if errors:
        line["verdict"] = "missed: errors"
    elif not ratios or rounds < figures.PAIRS_MIN:
        line["verdict"] = f"not judged: saturated in {len(ratios)} of {rounds} rounds"
    else:
        met = statistics.median(ratios) >= least
        line["verdict"] = f"{'met' if met else 'MISSED'} (≥ {least:.2f})"
    return line


def reached(spread):
    return f"{spread['median']:.3f} ({spread['min']:.3f}..{spread['max']:.3f})"


def target_table(rows):
    lines = ["| | median (min..max) | target |", "|---|---|---|"]
    lines += [f"| {target['of']} | {target['reached']} | {target['verdict']} |"
              for row in rows for target in row.get("targets", [])]
    return "\n".join(lines)


class TwoCores(scaling.Scaling):
    """Compares the handshakes of two loops with those of one, per second of CPU time."""

    id = "T4"
    limits = programs.TLS_LIMITS
    limit = "limit-tls"
    shares = (0.2, 0.15, 0.1)
    title = "full handshakes on two cores, ECDSA P-256, TLS 1.3: per second of CPU time"
    work = dataclasses.replace(WORKS[2], id="T4", connections=32, busy_poll=False)
    names = {"one": "one loop", "two": "two loops", "own": "two loops, a library context each"}
    wanted = (("two", "one", 0.95),)
    wanted_of_limits = (("two", "one", None), ("own", "one", None))

    def commands(self, server, shape):
        if shape != "own":
            return super().commands(server, shape)
        (command, processors), = super().commands(server, "two")
        return [([*command, "--own-library"], processors)]


class TlsIdleMemory(idle.IdleMemory):
    """Bytes of idle connections over TLS 1.3."""

    id = "T5"
    title = idle.IdleMemory.title.replace("keep-alive", "TLS")
    work = works.Workload("T5", "", tls="ecdsa")
    target = 1024
    context = functools.cached_property(lambda self: verify.unverified())

    def seconds(self):
        return 25 * idle.ROUNDS * len(self.servers)

    def connect(self, port):
        return self.context.wrap_socket(idle.connect(port))


def sections(servers, options):
    return [*(TlsWork(work, [server for server in servers if server.joins(work.id)], options)
              for work in WORKS),
            TwoCores(servers, options), TlsIdleMemory(servers, options)]
