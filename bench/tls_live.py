"""The effects of TLS on a server that serves: plain requests beside handshakes on one core, and
certificates that are replaced under load."""

import concurrent.futures
import pathlib
import shutil
import socket
import ssl
import statistics
import tempfile
import time

import certificates
import figures
import idle
import verify
import works
from serving import (Failure, errors_of, first_of_all, generator, on_processors, output_of,
                     serving)

LOAD_SECONDS_MORE_MAX = 60
RELOAD_SECONDS = 12
START_SECONDS = 0.25  # the handshakes begin before the plain requests, and end after them
PLAIN_HOST = "127.0.0.2"  # examples/bench.cpp serves plain HTTP there


def put_load(options, port, work, seconds, *, secure, host="127.0.0.1", before=()):
    """Runs `weir bench`. Returns its report."""
    command = [*before, *generator(options, port, work, secure, host), "--seconds", str(seconds)]
    return output_of(on_processors([options.load_cpu], command), seconds + LOAD_SECONDS_MORE_MAX)


class WeirSection:
    """A section of the servers of Weir that join it."""

    def __init__(self, servers, options):
        self.servers = [server for server in servers
                        if server.kind == "weir" and server.joins(self.id)]
        self.options = options


class BesideHandshakes(WeirSection):
    """The p99 of plain requests with and without handshakes on the same core, in turn. The server
    and the generator of the plain requests have real-time priority, if that is allowed. Otherwise
    the other generator and other programs of the machine would delay them."""

    id = "T7"
    plain = works.Workload("T7", "", connections=16, rate=1000, saturates=False)
    handshakes = works.Workload("T7", "", closing=True, rate=500, tls="ecdsa", saturates=False)
    target = 2
    title = (f"p99 of {plain.rate:,} plain GETs per second on a core that also performs "
             f"{handshakes.rate} full handshakes per second")

    def seconds(self):
        return len(self.servers) * self.options.runs * 2 * (2 * self.options.seconds + 1)

    def run(self, say):
        say(f"{self.id}: {self.title}")
        rounds = []
        for number in range(self.options.runs):
            rounds.append(results := {})
            for server in self.servers:
                results[server.name] = each = self.measure(server)
                say(f"  {number + 1}/{self.options.runs} {server.name:14} p99 {each['with']:.0f} us"
                    f" with and {each['without']:.0f} us without, {each['errors']} errors")
        rows = [self.row(server, [results[server.name] for results in rounds])
                for server in self.servers]
        return {"title": self.title, "kind": "beside", "summary": rows, "rounds": rounds,
                "errors": sum(row["errors"] for row in rows), "markdown": beside_table(rows)}

    def measure(self, server):
        """Returns the p99 in microseconds with and without handshakes, and the errors."""
        port = free_port()
        command = server.command(self.options.build, self.handshakes, 0)
        command[command.index("--port") + 1] = str(port)
        with serving([*first_of_all(), *command], [self.options.server_cpu]):
            without, errors = self.ask(port)
            with concurrent.futures.ThreadPoolExecutor() as threads:
                seconds = 2 * (self.options.seconds + START_SECONDS)
                beside = threads.submit(put_load, self.options, port, self.handshakes, seconds,
                                        secure=True)
                time.sleep(START_SECONDS)
                loaded, more = self.ask(port)
                said = beside.result()
                # A handshake that is due while its generator waits for the processor is late.
                errors += more + errors_of(said | {"unsent": 0})
        return {"without": without, "with": loaded, "errors": errors}

    def ask(self, port):
        """Returns the p99 of plain requests in microseconds, and the errors."""
        said = put_load(self.options, port, self.plain, 2 * self.options.seconds, secure=False,
                        host=PLAIN_HOST, before=first_of_all())
        return said["latency_ns"]["p99"] / 1000, errors_of(said)

    def row(self, server, results):
        row = {"name": server.name, "kind": server.kind, "compared": "with / without handshakes",
               "errors": sum(each["errors"] for each in results),
               "ratio": figures.spread([each["with"] / each["without"] for each in results])}
        for key in ("with", "without"):
            row[key] = statistics.median(each[key] for each in results)
        if row["errors"]:
            row["verdict"] = "missed: errors"
        elif len(results) < figures.PAIRS_MIN:
            row["verdict"] = f"not judged: {len(results)} rounds"
        else:
            met = row["ratio"]["median"] <= self.target
            row["verdict"] = f"{'met' if met else 'MISSED'} (≤ {self.target})"
        return row


def free_port():
    """Returns a port that is free at both addresses of the server."""
    with socket.socket() as first, socket.socket() as second:
        first.bind(("127.0.0.1", 0))
        second.bind((PLAIN_HOST, first.getsockname()[1]))
        return first.getsockname()[1]


def beside_table(rows):
    lines = ["| server | p99 us with handshakes | without | ratio | min..max | target | errors |",
             "|---|---|---|---|---|---|---|"]
    for row in rows:
        ratio = row["ratio"]
        lines.append(f"| {row['name']} | {row['with']:.0f} | {row['without']:.0f} "
                     f"| {ratio['median']:.2f} | {ratio['min']:.2f}..{ratio['max']:.2f} "
                     f"| {row['verdict']} | {row['errors']} |")
    return "\n".join(lines)


class Reloads(WeirSection):
    """Replaces the certificate of a server under load. Each new handshake must show the newest."""

    id = "T8"
    count = 100
    kept = works.Workload("T8", "", connections=16, tls="ecdsa", saturates=False)
    new = works.Workload("T8", "", connections=4, closing=True, tls="ecdsa", saturates=False)
    title = (f"{count} reloads of the certificate under load, {kept.connections} kept connections "
             f"and {new.connections} new ones at a time")

    def seconds(self):
        return len(self.servers) * (RELOAD_SECONDS + 2)

    def run(self, say):
        say(f"{self.id}: {self.title}")
        rows = []
        for server in self.servers:
            rows.append(row := self.measure(server))
            say(f"  {server.name:14} {row['failed']} failed requests, {row['closed']} closed "
                f"connections, {row['requests']:,} requests: {row['verdict']}")
        return {"title": self.title, "kind": "reloads", "summary": rows,
                "errors": sum(row["failed"] + row["closed"] + row["stale"] for row in rows),
                "markdown": reload_table(rows)}

    def measure(self, server):
        folder = certificates.folder_of(self.options.build)
        pairs = [certificates.made(folder, "ecdsa", name) for name in ("first", "second")]
        with tempfile.TemporaryDirectory() as files:
            used = [pathlib.Path(files) / name for name in ("chain.pem", "key.pem")]
            replace(pairs[0], used)
            command = server.command(self.options.build, works.Workload("T8", ""), 0)
            command += ["--tls-cert", str(used[0]), "--tls-key", str(used[1])]
            with serving(command, [self.options.server_cpu]) as running:
                return self.row(server, *self.reload(running.port, pairs, used))

    def reload(self, port, pairs, used):
        """Returns the reports of both loads, the number of handshakes with an old certificate, and
        the number of reloads."""
        seconds = RELOAD_SECONDS
        stale = count = 0
        with concurrent.futures.ThreadPoolExecutor() as threads:
            loads = [threads.submit(put_load, self.options, port, work, seconds, secure=True)
                     for work in (self.kept, self.new)]
            began = time.monotonic()
            for count in range(1, self.count + 1):
                pause = began + START_SECONDS + count * (seconds - 2 * START_SECONDS) / self.count
                time.sleep(max(0, pause - time.monotonic()))
                replace(pairs[count % 2], used)
                request_reload(port)
                stale += shown(port) != ssl.PEM_cert_to_DER_cert(used[0].read_text())
            if any(load.done() for load in loads):
                raise Failure(f"the load ended before the last of {count} reloads")
            return *(load.result() for load in loads), stale, count

    def row(self, server, kept, new, stale, reloads):
        row = {"name": server.name, "kind": server.kind, "reloads": reloads, "stale": stale,
               "failed": errors_of(kept) + errors_of(new),
               "closed": kept["closed_by_server"] + kept["opened"] - self.kept.connections,
               "requests": kept["responses"] + new["responses"]}
        met = not row["failed"] and not row["closed"] and not stale
        row["verdict"] = f"{'met' if met else 'MISSED'} (0 failed, 0 closed)"
        return row


def replace(pair, used):
    """Puts the files of a certificate into the place of the used ones."""
    for source, target in zip(pair, used):
        shutil.copy(source, target)


def request_reload(port):
    request = b"POST /reload HTTP/1.1\r\nHost: bench\r\nContent-Length: 0\r\n\r\n"
    try:
        verify.response_to(port, request, secure=True)
    except verify.VerificationError as reason:
        raise Failure(f"the reload failed: {reason}") from None


def shown(port):
    """Returns the certificate that the server shows to a new client, in DER."""
    with verify.unverified().wrap_socket(idle.connect(port)) as connection:
        return connection.getpeercert(binary_form=True)


def reload_table(rows):
    lines = ["| server | reloads | requests | failed requests | closed connections "
             "| old certificates | target |", "|---|---|---|---|---|---|---|"]
    lines += [f"| {row['name']} | {row['reloads']} | {row['requests']:,} | {row['failed']} "
              f"| {row['closed']} | {row['stale']} | {row['verdict']} |" for row in rows]
    return "\n".join(lines)


def sections(servers, options):
    return [BesideHandshakes(servers, options), Reloads(servers, options)]
