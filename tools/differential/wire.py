"""Sends a case to a server and reads what the server understood.

Each compared server reports its reading in a header `X-Understood`, a JSON object of method, target
and body. The client closes its sending side after the case, so that every server ends the
connection; no decision depends on a pause.
"""

import dataclasses
import json
import socket

SECONDS_MAX = 60  # only a hang takes this long
RECEIVED_MAX = 1 << 20


@dataclasses.dataclass(frozen=True)
class ParsedRequest:
    """One request as a server read it. An answer without the header has only a status."""
    status: int
    method: str = ""
    target: str = ""
    body_bytes: int = -1
    body: str = ""  # the first bytes, in hex

    @property
    def told(self):
        return self.body_bytes >= 0


class NoResponse(Exception):
    """A server that neither answers nor closes."""


def send(port, data):
    """Returns the list of ParsedRequest in order. Refused requests have only their status."""
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS_MAX) as connection:
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # an early refusal, whose answer has arrived
        received = b""
        try:
            while len(received) < RECEIVED_MAX and (piece := connection.recv(65536)):
                received += piece
        except ConnectionError:
            pass
        except TimeoutError:
            raise NoResponse(f"port {port} neither answers nor closes: {data!r}") from None
    return list(answers(received))


def answers(received):
    """Yields a ParsedRequest for each final answer. Invalid bytes end the list."""
    while received.startswith(b"HTTP/1."):
        head, end, received = received.partition(b"\r\n\r\n")
        lines = head.split(b"\r\n")
        status = int(lines[0][9:12])
        fields = {}
        for line in lines[1:]:
            name, _, value = line.partition(b":")
            fields[name.lower()] = value.strip()
        if not end or status < 200:
            continue
        told = fields.get(b"x-understood")
        understood = ParsedRequest(status)
        if told is not None and status < 300:
            understood = ParsedRequest(status, **json.loads(told.decode("latin-1")))
        yield understood
        if understood.method == "HEAD" or status in (204, 304):
            continue
        if fields.get(b"transfer-encoding", b"").lower() == b"chunked":
            received = behind_chunks(received)
        elif b"content-length" in fields:
            received = received[int(fields[b"content-length"]):]
        else:
            return  # the body ends with the connection


def behind_chunks(received):
    while True:
        line, _, received = received.partition(b"\r\n")
        if not line:
            return received
        size = int(line.split(b";")[0], 16)
        received = received[size + 2 :]
        if size == 0:
            return received
