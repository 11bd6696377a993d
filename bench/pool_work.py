"""The load on a pool (B6, B7): computing, sleeping and mixed work, in three cases of clients."""

import dataclasses
import hashlib
import json
import socket
import threading
import time

KINDS = ("cpu", "sleep", "mix")
OPERATIONS = 10  # per request
SLEEP_SECONDS = 0.05
KEY_BYTES = 512
SECONDS_MAX = 120  # timeout of each step
PROBE_SECONDS = 0.05


@dataclasses.dataclass(frozen=True)
class Case:
    id: str
    clients: int
    requests: int  # per client, in sequence

    @property
    def operations(self):
        return self.clients * self.requests * OPERATIONS


CASES = (Case("case-1", 1, 15), Case("case-2", 15, 1), Case("case-3", 15, 5))


def computing(kind, operations):
    """Returns how many of `operations` compute; the rest sleep."""
    return {"cpu": operations, "sleep": 0, "mix": operations // 2}[kind]


def least_seconds(kind, case, size, operation_seconds, processors):
    """Returns the minimum duration of the work with `size` threads (None: unlimited)."""
    computed = computing(kind, case.operations) * operation_seconds
    slept = (case.operations - computing(kind, case.operations)) * SLEEP_SECONDS
    least = max(computed / processors, SLEEP_SECONDS if slept else 0)
    return max(least, (computed + slept) / size) if size else least


def iterations_for(seconds, processors):
    """Returns the iterations for which case 3 of computing takes at least `seconds` here."""
    tried = 1000
    fastest = min(seconds_of(tried) for _ in range(20))
    return max(1, round(tried * seconds * processors / (CASES[-1].operations * fastest)))


def seconds_of(iterations):
    began = time.perf_counter()
    hashlib.pbkdf2_hmac("sha512", b"", b"", iterations, KEY_BYTES)
    return time.perf_counter() - began


class Connection:
    """Sends requests without a body and reads whole responses."""

    def __init__(self, port):
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=SECONDS_MAX)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, method, path):
        """Sends a request. Returns (status, body)."""
        self._socket.sendall(f"{method} {path} HTTP/1.1\r\nHost: bench\r\n"
                             f"{'Content-Length: 0' if method == 'POST' else 'Accept: */*'}"
                             "\r\n\r\n".encode())
        received = b""
        while True:
            head, end, body = received.partition(b"\r\n\r\n")
            if end and len(body) >= length_of(head):
                return int(head.split(b" ", 2)[1]), body
            more = self._socket.recv(1 << 20)
            if not more:
                raise OSError("the server closed a keep-alive connection")
            received += more


def length_of(head):
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0


def generate_load(port, kind, case, iterations):
    """Runs all clients at the same time, until all requests are answered. Returns the sorted times
    of sending, in nanoseconds of the monotonic clock."""
    path = f"/test/{kind}/{iterations}"
    connections = [Connection(port) for _ in range(case.clients)]
    begin = threading.Event()
    sent, wrong = [], []

    def ask_all(connection):
        begin.wait()
        try:
            for _ in range(case.requests):
                sent.append(time.monotonic_ns())
                status, _ = connection.ask("POST", path)
                if status != 202:
                    wrong.append(f"{path} is answered with {status}")
        except OSError as error:
            wrong.append(str(error))

    clients = [threading.Thread(target=ask_all, args=(each,)) for each in connections]
    for client in clients:
        client.start()
    begin.set()
    for client in clients:
        client.join()
    if wrong:
        raise OSError(wrong[0])
    return sorted(sent)


def ended(port, count):
    """Waits until `count` operations have ended. Returns the operations and the pool's reports."""
    connection = Connection(port)
    operations, pools = [], []
    deadline = time.monotonic() + SECONDS_MAX
    while len(operations) < count:
        if time.monotonic() > deadline:
            raise OSError(f"{len(operations)} of {count} operations have ended")
        _, body = connection.ask("GET", f"/report/{len(operations)}")
        report = json.loads(body)
        operations += report.pop("ended")
        pools.append(report)
        if report.get("refused"):
            raise OSError(f"{report['refused']} operations were refused")
        if len(operations) < count:
            time.sleep(PROBE_SECONDS)
    if len(operations) != count:
        raise OSError(f"{len(operations)} operations have ended instead of {count}")
    return operations, pools
