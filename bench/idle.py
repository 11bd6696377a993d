"""Measures the resident bytes of a server process for each idle keep-alive connection, also after
all connections had a request at the same moment."""

import resource
import signal
import socket
import ssl
import statistics
import time

import works
from serving import Failure, serving

CONNECTIONS = 10_000
ROUNDS = 3  # sizes hardly vary; a verdict needs all three rounds
FILES_MORE = 100  # other open files of a process
TARGET = 500
WORK = works.Workload("B15-idle", "")
SECONDS_MAX = 10
QUIET_SECONDS = 0.3
QUIET_SECONDS_AFTER_BURST = 1


class IdleMemory:
    """Compares a fresh process with and without connections in each round."""

    id = "B15-idle"
    work = WORK
    target = TARGET
    connect = staticmethod(lambda port: connect(port))
    title = (f"resident bytes of each of {CONNECTIONS:,} idle keep-alive connections, and a second"
             " after all had a request at the same moment")

    def __init__(self, servers, options):
        self.servers = [server for server in servers if server.joins(self.id)]
        self.options = options

    def seconds(self):
        return 6 * ROUNDS * len(self.servers)

    def run(self, say):
        say(f"{self.id}: {self.title}")
        found = {server.name: [] for server in self.servers}
        reasons = {}
        for number in range(ROUNDS):
            for server in self.servers:
                if server.name in reasons:
                    continue
                try:
                    found[server.name].append(each := self.measure(server))
                    say(f"  {number + 1}/{ROUNDS} {server.name:14} {each[0]:8.0f} bytes each, "
                        f"{each[1]:8.0f} after a burst")
                except (Failure, OSError) as reason:
                    reasons[server.name] = str(reason)
                    say(f"  {number + 1}/{ROUNDS} {server.name:14} no figure: {reason}")
        rows = [self.row(server, found[server.name], reasons.get(server.name))
                for server in self.servers]
        ours = {server.name for server in self.servers if server.kind != "peer"}
        return {"title": self.title, "kind": "idle", "summary": rows,
                "errors": len(ours & reasons.keys()), "markdown": table(rows)}

    def measure(self, server):
        allow_files(CONNECTIONS + FILES_MORE)
        command = server.command(self.options.build, self.work, 128)
        with serving(command, [self.options.server_cpu]) as running:
            self.answered(running.port)  # excludes the memory of the first use
            time.sleep(QUIET_SECONDS)
            before = running.resident_bytes()
            connections = [self.answered(running.port) for _ in range(CONNECTIONS)]
            time.sleep(QUIET_SECONDS)
            idle = running.resident_bytes()
            running.process.send_signal(signal.SIGSTOP)
            for connection in connections:
                self.ask(connection, 2)
            running.process.send_signal(signal.SIGCONT)
            for connection in connections:
                self.receive(connection)
            time.sleep(QUIET_SECONDS_AFTER_BURST)
            after = running.resident_bytes()
            for connection in connections:
                require_open(connection)
                connection.close()
        return (idle - before) / CONNECTIONS, (after - before) / CONNECTIONS

    def answered(self, port):
        """Returns a connection after one request and its complete response."""
        connection = self.connect(port)
        self.ask(connection, 1)
        self.receive(connection)
        return connection

    def ask(self, connection, _number):
        """Sends the request with this number on the connection."""
        connection.sendall(WORK.request())

    def receive(self, connection):
        receive_response(connection)

    @classmethod
    def row(cls, server, values, reason):
        row = {"name": server.name, "kind": server.kind}
        if reason or not values:
            return row | {"reason": reason}
        idle, after = zip(*values)
        row |= {"bytes": statistics.median(idle), "min": min(idle), "max": max(idle),
                "after": statistics.median(after), "after_min": min(after),
                "after_max": max(after)}
        if server.kind == "weir":
            most = max(*idle, *after)
            row["verdict"] = f"{'met' if most <= cls.target else 'MISSED'} (≤ {cls.target:,})"
        return row


def allow_files(count):
    """Raises this process's limit of open files to its maximum. Servers inherit the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if hard != resource.RLIM_INFINITY and hard < count:
        raise Failure(f"{count:,} open files are needed, {hard:,} are allowed")


def connect(port):
    return socket.create_connection(("127.0.0.1", port), timeout=SECONDS_MAX)


def receive_response(connection):
    """Receives one complete response."""
    response = b""
    while b"\r\n\r\n" not in response:
        data = connection.recv(4096)
        if not data:
            raise Failure("the server closed a keep-alive connection")
        response += data
    if not response.startswith(b"HTTP/1.1 200 "):
        raise Failure(f"answers {response.splitlines()[0].decode(errors='replace')}")


def require_open(connection):
    """Raises Failure if the server has closed the connection, which then costs no memory."""
    connection.setblocking(False)
    try:
        connection.recv(1)
    except (BlockingIOError, ssl.SSLWantReadError):
        return
    raise Failure("the server closed a keep-alive connection, or sent unexpected bytes")


def table(rows):
    lines = ["| server | bytes each | min..max | after a burst | min..max | target |",
             "|---|---|---|---|---|---|"]
    for row in rows:
        if "bytes" in row:
            lines.append(f"| {row['name']} | {row['bytes']:,.0f} | {row['min']:,.0f}.."
                         f"{row['max']:,.0f} | {row['after']:,.0f} | {row['after_min']:,.0f}.."
                         f"{row['after_max']:,.0f} | {row.get('verdict', '')} |")
        else:
            lines.append(f"| {row['name']} | no figure: {row['reason']} | | | | |")
    return "\n".join(lines)


def sections(servers, options):
    return [IdleMemory(servers, options)]
