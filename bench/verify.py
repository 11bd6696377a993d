"""Whether a server does a work at all: asked once, before it is measured.

The generator compares every response with the first; this is about the first. It also asks what a
generator does not see: that pipelined requests are answered in order, and that a connection closes
when the request says so.
"""

import json
import re
import socket

SECONDS_MAX = 5
PIPELINED = 16
CLOSES = "closes before it has answered"
LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")
DATE = re.compile(rb"(?i)\r\ndate: [^\r]*")


class Flaw(Exception):
    """What a server does wrong."""


class Client:
    """One connection; gives whole responses."""

    def __init__(self, port):
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=SECONDS_MAX)
        self._rest = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()

    def send(self, data):
        self._socket.sendall(data)

    def response(self):
        """(the whole response, its body)"""
        while b"\r\n\r\n" not in self._rest:
            self._rest += self._received()
        head, _, body = self._rest.partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200 "):
            raise Flaw(f"answers {head.splitlines()[0].decode(errors='replace')}")
        length = LENGTH.search(head + b"\r\n")
        if not length:
            raise Flaw("sends no Content-Length")
        while len(body) < int(length.group(1)):
            body += self._received()
        body, self._rest = body[:int(length.group(1))], body[int(length.group(1)):]
        return head + b"\r\n\r\n" + body, body

    def closed(self):
        """Whether the server has ended the connection, or does so soon."""
        try:
            return not self._rest and self._socket.recv(1) == b""
        except TimeoutError:
            return False

    def _received(self):
        try:
            data = self._socket.recv(65536)
        except TimeoutError:
            raise Flaw("does not answer") from None
        if not data:
            raise Flaw(CLOSES)
        return data


def response_to(port, request):
    """The bytes of one response."""
    with Client(port) as client:
        client.send(request)
        return client.response()[0]


def verify(server, work, port, response_bytes):
    """The length of its response; raises Flaw if the server does not do the work, or another."""
    try:
        with Client(port) as client:
            first = verify_one(client, server, work, response_bytes)
            if work.closing:
                if not client.closed():
                    raise Flaw("keeps connections that it is asked to close")
                return len(first)
            verify_same(client, work.request() * PIPELINED, first)
            if work.body and not server.canned:
                verify_order(client, work)
            return len(first)
    except (ConnectionResetError, BrokenPipeError):
        raise Flaw(CLOSES) from None
    except OSError as error:
        raise Flaw(str(error)) from None


def verify_one(client, server, work, response_bytes):
    client.send(work.request())
    response, body = client.response()
    # What a peer says around JSON or of closing is its own affair; else its text is padded to fit.
    if (server.canned or not (work.body or work.closing)) and len(response) != response_bytes:
        raise Flaw(f"answers {len(response)} bytes, not {response_bytes}")
    if work.body and not server.canned and sequence_of(body) != sequence_of(work.body):
        raise Flaw(f"answers {body!r} to {work.body}")
    return response


def sequence_of(text):
    try:
        return json.loads(text)["sequence"]
    except (ValueError, KeyError, TypeError):
        return None


def verify_same(client, requests, first):
    """On the same connection, all in one write: as many responses, like the first one."""
    client.send(requests)
    for _ in range(PIPELINED):
        if DATE.sub(b"", client.response()[0]) != DATE.sub(b"", first):
            raise Flaw("answers one request in two ways")


def verify_order(client, work):
    """Different requests in one write are answered one by one, as they came."""
    digits = range(10)
    request = work.request()
    client.send(b"".join(request.replace(b": 2}", f": {digit}}}".encode()) for digit in digits))
    answered = [sequence_of(client.response()[1]) for _ in digits]
    if answered != list(digits):
        raise Flaw(f"answers in the order {answered}")
