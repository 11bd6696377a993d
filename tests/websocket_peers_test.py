#!/usr/bin/env python3
"""Lets WebSocket libraries talk to Weir: Python's websockets and Node's ws, each as a client of
examples/websocket_echo.cpp, and as a server of tools/autobahn/client.cpp.

    websocket_peers_test.py --server FILE --client FILE [--node-modules FOLDER]

Debian has both: python3-websockets and node-ws. The test is skipped if neither is installed.
"""

import argparse
import asyncio
import contextlib
import os
import pathlib
import re
import shutil
import ssl
import subprocess
import sys
import tempfile
import time
import unittest

try:
    import websockets
    from websockets.exceptions import ConnectionClosed
except ImportError:
    websockets = None

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77
SECONDS_MAX = 60
LISTENING = re.compile(r"listening on \S*:([0-9]+)")
MESSAGES = ("", "text", "Grüße, 世界 🌍", "x" * 125, "x" * 126, "x" * 65_535, "x" * 65_536,
            "y" * 5_000_000, b"", b"\0\xff\x80", bytes(range(256)) * 40_000)
PATHS = ("/ws", "/compressed", "/windows")  # each one is a run of the client too
CODES = (1000, 1001, 1008, 1011, 3000, 4999)


@contextlib.contextmanager
def server_of(*command):
    """Runs a program until the end of `with`, and yields its port."""
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=log,
                                   stderr=log)
        try:
            deadline = time.monotonic() + SECONDS_MAX
            while process.poll() is None and time.monotonic() < deadline:
                log.seek(0)
                if found := LISTENING.search(log.read()):
                    yield int(found[1])
                    return
                time.sleep(0.02)
            log.seek(0)
            raise AssertionError(f"no server: {log.read()}")
        finally:
            process.terminate()
            process.wait(SECONDS_MAX)


def echo_server(*more):
    return server_of(given.server, "--port", "0", "--cores", "1", *more)


def run_client(port, run="ws"):
    subprocess.run([given.client, f"ws://127.0.0.1:{port}", run], check=True, timeout=SECONDS_MAX)


def unverified():
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def extensions_of(socket):
    """Returns the extensions that both sides use."""
    return getattr(socket, "protocol", socket).extensions


def connect(url, **more):
    return websockets.connect(url, max_size=None, ping_interval=None, **more)


async def expect_close(socket, code):
    """Waits until the peer has closed with this code."""
    try:
        await socket.recv()
    except ConnectionClosed as closed:
        received = closed.rcvd.code if closed.rcvd else None
        if received != code:
            raise AssertionError(f"closed with {received}, not with {code}") from None
        return
    raise AssertionError("a message that was not sent")


async def expect_echo(socket, message):
    received = await socket.recv()
    if received != message:
        raise AssertionError(f"{received[:50]!r} returns, not {message[:50]!r}")


async def send_in_fragments(socket, message):
    """Sends a message in three fragments."""
    third = len(message) // 3 + 1
    await socket.send([message[at:at + third] for at in range(0, max(len(message), 1), third)])


class Cases:
    """A server for the client of Weir, which runs cases as Autobahn's fuzzing server does."""

    def __init__(self):
        self.failures = []
        self.done = 0
        self.cases = [*(lambda socket, each=each: self.echo(socket, each) for each in MESSAGES),
                      *(lambda socket, each=each: socket.close(each) for each in CODES),
                      self.fragments, self.pings, self.many]

    async def echo(self, socket, message):
        await socket.send(message)
        await expect_echo(socket, message)

    async def fragments(self, socket):
        for message in ("abcdefghi" * 1000, b"123456789" * 20_000):
            await send_in_fragments(socket, message)
            await expect_echo(socket, message)

    async def pings(self, socket):
        for payload in (b"", b"ping", bytes(125)):
            await asyncio.wait_for(await socket.ping(payload or None), SECONDS_MAX)

    async def many(self, socket):
        texts = [f"message {number}" for number in range(1000)]
        for text in texts:
            await socket.send(text)
        for text in texts:
            await expect_echo(socket, text)

    async def serve(self, socket):
        """Handles one connection. Its path says what the client wants."""
        path = socket.request.path if hasattr(socket, "request") else socket.path  # before 14.0
        if path == "/getCaseCount":
            return await socket.send(str(len(self.cases)))
        if found := re.search(r"case=(\d+)", path):
            try:
                await self.cases[int(found[1]) - 1](socket)
                self.done += 1
            except (AssertionError, ConnectionClosed, asyncio.TimeoutError) as reason:
                self.failures.append(f"case {found[1]}: {reason!r}")


@unittest.skipIf(websockets is None, "websockets of Python is not installed")
class PythonTest(unittest.TestCase):
    def test_is_a_client(self):
        with echo_server() as port:
            for path in PATHS:
                asyncio.run(self.talk(f"ws://127.0.0.1:{port}{path}"))

    def test_is_a_client_over_tls(self):
        with echo_server("--tls-self-signed") as port:
            asyncio.run(self.talk(f"wss://127.0.0.1:{port}/ws", ssl=unverified()))

    async def talk(self, url, **more):
        async with connect(url, **more) as socket:
            self.assertEqual(bool(extensions_of(socket)), not url.endswith("/ws"))
            for message in MESSAGES:
                await socket.send(message)
                await expect_echo(socket, message)
                await send_in_fragments(socket, message)
                await expect_echo(socket, message)
            await asyncio.wait_for(await socket.ping(b"hello"), SECONDS_MAX)
            texts = [f"message {number}" for number in range(1000)]
            for text in texts:
                await socket.send(text)
            for text in texts:
                await expect_echo(socket, text)
        for code in CODES:
            async with connect(url, **more) as socket:
                await socket.close(code, "reason")
                self.assertEqual(socket.close_code, code)
        async with connect(url, subprotocols=["unknown"], **more) as socket:
            self.assertIsNone(socket.subprotocol)
            with contextlib.suppress(ConnectionClosed):
                await socket.send("x" * (33 * 1024 * 1024))
            await expect_close(socket, 1009)

    def test_is_a_server(self):
        for path in PATHS:
            asyncio.run(self.serve(path.strip("/")))

    async def serve(self, run):
        cases = Cases()
        async with websockets.serve(cases.serve, "127.0.0.1", 0, max_size=None,
                                    ping_interval=None) as server:
            port = next(iter(server.sockets)).getsockname()[1]
            await asyncio.get_running_loop().run_in_executor(None, run_client, port, run)
        self.assertEqual(cases.failures, [])
        self.assertEqual(cases.done, len(cases.cases))


def node_environment():
    modules = [str(given.node_modules)] if given.node_modules else []
    return os.environ | {"NODE_PATH": os.pathsep.join([*modules, "/usr/share/nodejs"])}


def node_has_ws():
    if shutil.which("node") is None:
        return False
    return subprocess.run(["node", "-e", "require('ws')"], env=node_environment(),
                          capture_output=True).returncode == 0


class NodeTest(unittest.TestCase):
    def setUp(self):
        if not node_has_ws():
            self.skipTest("ws of Node is not installed")

    def node(self, *arguments):
        return ["node", str(HERE / "peers/websocket.js"), *arguments]

    def test_is_a_client(self):
        for scheme, more in (("ws", ()), ("wss", ("--tls-self-signed",))):
            with echo_server(*more) as port:
                for path in PATHS:
                    url = f"{scheme}://127.0.0.1:{port}{path}"
                    ran = subprocess.run(self.node("client", url), env=node_environment(),
                                         timeout=SECONDS_MAX, text=True, capture_output=True)
                    self.assertEqual((ran.returncode, ran.stdout + ran.stderr), (0, ""))

    def test_is_a_server(self):
        for path in PATHS:
            self.serve(path.strip("/"))

    def serve(self, run):
        with subprocess.Popen(self.node("server"), env=node_environment(), text=True,
                              stdout=subprocess.PIPE) as server:
            port = int(LISTENING.search(server.stdout.readline())[1])
            run_client(port, run)
            output, _ = server.communicate(timeout=SECONDS_MAX)
        self.assertEqual((server.returncode, output), (0, ""))


def main():
    global given
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", required=True)
    parser.add_argument("--client", required=True)
    parser.add_argument("--node-modules", type=pathlib.Path)
    given = parser.parse_args()
    if websockets is None and not node_has_ws():
        print("skipped: neither websockets of Python nor ws of Node is installed")
        return SKIPPED
    result = unittest.main(argv=sys.argv[:1], exit=False, verbosity=2).result
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
