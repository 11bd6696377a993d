"""Verifies once, before the measurement, that a server does a workload.

The generator compares every response with the first response; this module verifies the first. It
also verifies that the server answers pipelined requests in order, and that it closes a connection
if the request demands it.
"""

import json
import re
import socket
import ssl

SECONDS_MAX = 5
PIPELINED = 16
CLOSES = "closes before it has answered"
LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")
DATE = re.compile(rb"(?i)\r\ndate: [^\r]*")


class VerificationError(Exception):
    """The fault of a server."""


class Client:
    """A connection that returns whole responses."""

    def __init__(self, port, secure=False):
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=SECONDS_MAX)
        if secure:
            self._socket = unverified().wrap_socket(self._socket)
        self._rest = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()

    def send(self, data):
        self._socket.sendall(data)

    def response(self):
        """Returns (the whole response, its body)."""
        while b"\r\n\r\n" not in self._rest:
            self._rest += self._received()
        head, _, body = self._rest.partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200 "):
            raise VerificationError(f"answers {head.splitlines()[0].decode(errors='replace')}")
        length = LENGTH.search(head + b"\r\n")
        if not length:
            raise VerificationError("sends no Content-Length")
        while len(body) < int(length.group(1)):
            body += self._received()
        body, self._rest = body[:int(length.group(1))], body[int(length.group(1)):]
        return head + b"\r\n\r\n" + body, body

    def closed(self):
        """Returns true if the server ends the connection within SECONDS_MAX."""
        try:
            return not self._rest and self._socket.recv(1) == b""
        except TimeoutError:
            return False

    def _received(self):
        try:
            data = self._socket.recv(65536)
        except TimeoutError:
            raise VerificationError("does not answer") from None
        if not data:
            raise VerificationError(CLOSES)
        return data


def unverified():
    """Returns a client's context of TLS that accepts every certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def response_to(port, request, secure=False):
    """Returns the bytes of one response."""
    with Client(port, secure) as client:
        client.send(request)
        return client.response()[0]


def verify(server, work, port, response_bytes, secure=False):
    """Returns the length of the response. Raises VerificationError if the workload fails."""
    try:
        with Client(port, secure) as client:
            first = verify_one(client, server, work, response_bytes)
            if work.closing:
                if not client.closed():
                    raise VerificationError("does not close connections when asked to close")
                return len(first)
            verify_same(client, work.request() * PIPELINED, first)
            if work.body and not server.canned:
                verify_order(client, work)
            return len(first)
    except (ConnectionResetError, BrokenPipeError):
        raise VerificationError(CLOSES) from None
    except OSError as error:
        raise VerificationError(str(error)) from None


def verify_one(client, server, work, response_bytes):
    client.send(work.request())
    response, body = client.response()
    # The head of a peer's JSON or closing response may have any length; other responses are padded.
    free = work.body or work.closing or work.any_length
    if (server.canned or not free) and len(response) != response_bytes:
        raise VerificationError(f"answers {len(response)} bytes, not {response_bytes}")
    if work.body and not server.canned and sequence_of(body) != sequence_of(work.body):
        raise VerificationError(f"answers {body!r} to {work.body}")
    return response


def sequence_of(text):
    try:
        return json.loads(text)["sequence"]
    except (ValueError, KeyError, TypeError):
        return None


def verify_same(client, requests, first):
    """Sends all requests in one write. Every response must equal the first."""
    client.send(requests)
    for _ in range(PIPELINED):
        if DATE.sub(b"", client.response()[0]) != DATE.sub(b"", first):
            raise VerificationError("answers one request in two ways")


def verify_order(client, work):
    """Sends different requests in one write. The server must answer them in order."""
    digits = range(10)
    request = work.request()
    client.send(b"".join(request.replace(b": 2}", f": {digit}}}".encode()) for digit in digits))
    answered = [sequence_of(client.response()[1]) for _ in digits]
    if answered != list(digits):
        raise VerificationError(f"answers in the order {answered}")
