"""Tests the verification of servers: accepted servers and detected faults."""

import json
import re
import socket
import threading
import types
import unittest

import verify

BODY = re.compile(rb"\r\n\r\n(\{[^}]*\})?")


def reply(body, length=None, status="200 OK"):
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body) if length is None else length}"
    return f"{head}\r\n\r\n{body}".encode()


def work(body="", closing=False):
    head = "POST /ping HTTP/1.1\r\nHost: x\r\n\r\n" if body else "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
    return types.SimpleNamespace(request=lambda: (head + body).encode(), body=body,
                                 closing=closing, any_length=False)


PLAIN = work()
PING = work('{"sequence": 2}')
CLOSING = work(closing=True)
PEER = types.SimpleNamespace(canned=False)
CANNED = types.SimpleNamespace(canned=True)


def echo(requests):
    """Returns a correct server's answers to these bodies."""
    return b"".join(reply(body.decode()) for body in requests)


class Script:
    """A server whose answers to the requests of each read come from a function.

    It closes the connection if the function returns None.
    """

    def __init__(self, answer, close_after=None):
        self._answer = answer
        self._close_after = close_after
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._listener.close()

    def _serve(self):
        peer, _ = self._listener.accept()
        served = 0
        with peer:
            while data := peer.recv(65536):
                answer = self._answer(BODY.findall(data))
                if answer is None:
                    return
                peer.sendall(answer)
                served += 1
                if served == self._close_after:
                    return


class VerifyTest(unittest.TestCase):
    def wait_less(self):
        """Shortens the timeout, for responses that never come."""
        self.addCleanup(setattr, verify, "SECONDS_MAX", verify.SECONDS_MAX)
        verify.SECONDS_MAX = 0.5

    def expect_flaw(self, message, asked, answer, server=PEER, response_bytes=None, **script):
        with (Script(answer, **script) as running,
              self.assertRaises(verify.VerificationError) as raised):
            verify.verify(server, asked, running.port, response_bytes or len(reply("")))
        self.assertIn(message, str(raised.exception))

    def test_a_correct_server_passes(self):
        with Script(echo) as running:
            length = verify.verify(PEER, PLAIN, running.port, len(reply("")))
            self.assertEqual(length, len(reply("")))
        with Script(echo) as running:
            length = verify.verify(PEER, PING, running.port, 1)
            self.assertEqual(length, len(reply(PING.body)))
        with Script(echo, close_after=1) as running:
            length = verify.verify(PEER, CLOSING, running.port, 1)
            self.assertEqual(length, len(reply("")))

    def test_the_date_may_change(self):
        dates = iter(range(100))

        def dated(requests):
            return b"".join(b"HTTP/1.1 200 OK\r\nDate: %02d\r\nContent-Length: 0\r\n\r\n" %
                            next(dates) for _ in requests)

        with Script(dated) as running:
            verify.verify(PEER, PLAIN, running.port, len(dated([b""])))

    def test_a_wrong_status(self):
        self.expect_flaw("404 Not Found", PLAIN, lambda _: reply("", status="404 Not Found"))

    def test_a_wrong_length(self):
        self.expect_flaw("not 7", PLAIN, echo, response_bytes=7)
        self.expect_flaw("not 7", PING, echo, server=CANNED, response_bytes=7)

    def test_no_length(self):
        self.expect_flaw("no Content-Length", PLAIN, lambda _: b"HTTP/1.1 200 OK\r\n\r\n")

    def test_a_body_that_is_cut(self):
        self.wait_less()
        self.expect_flaw("does not answer", PLAIN, lambda _: reply("ab", length=3))

    def test_a_connection_that_ends_early(self):
        self.expect_flaw("closes before", PLAIN, lambda _: None)
        self.expect_flaw("closes before", PLAIN, echo, close_after=1)

    def test_a_body_of_another_request(self):
        self.expect_flaw("answers b'{\"sequence\": 3}'", PING,
                         lambda requests: reply('{"sequence": 3}') * len(requests))
        self.expect_flaw("answers b'pong'", PING, lambda requests: reply("pong") * len(requests))

    def test_requests_in_one_write_that_get_fewer_answers(self):
        self.wait_less()
        self.expect_flaw("does not answer", PLAIN, lambda requests: reply(""))

    def test_requests_in_one_write_that_get_other_answers(self):
        def second_differs(requests):
            return reply("") * (len(requests) - 1) + reply("more")

        self.expect_flaw("in two ways", PLAIN,
                         lambda requests: second_differs(requests) if requests[1:] else reply(""))

    def test_answers_out_of_order(self):
        def backwards(requests):
            numbers = {json.loads(body)["sequence"] for body in requests}
            return echo(requests[::-1] if len(numbers) > 1 else requests)

        self.expect_flaw("in the order [9, 8,", PING, backwards)

    def test_a_connection_that_does_not_close(self):
        self.wait_less()
        self.expect_flaw("asked to close", CLOSING, echo)

    def test_a_closed_port(self):
        with socket.socket() as reserved:
            reserved.bind(("127.0.0.1", 0))
            with self.assertRaises(verify.VerificationError):
                verify.verify(PEER, PLAIN, reserved.getsockname()[1], 1)


if __name__ == "__main__":
    unittest.main()
