#!/usr/bin/env python3
"""Starts contrib/httparena and sends the requests that HttpArena validates, for each profile.

    httparena_test.py --program FILE

The program listens on a loopback address of this process. The test is skipped if curl, which speaks
HTTP/2 here, or openssl, which makes the certificate, is not installed.
"""

import argparse
import base64
import gzip
import hashlib
import json
import os
import pathlib
import random
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
META = ROOT / "contrib/httparena/meta.json"
SKIPPED = 77
SECONDS_MAX = 30
HTTP1, HTTP1_TLS, HTTP2, HTTP2_TLS = 8080, 8081, 8082, 8443
CORRECT_PAIRS = ((1, 3), (12, 3), (22, 7), (31, 2), (50, 5))
WEBSOCKET_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
STATIC = {"reset.css": ("text/css", 8192), "app.js": ("text/javascript", 204_800),
          "manifest.json": ("application/json", 2883), "header.html": ("text/html", 122_880),
          "logo.svg": ("image/svg+xml", 15_344), "regular.woff2": ("font/woff2", 18_432),
          "hero.webp": ("image/webp", 46_080)}
TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10


def loopback_address():
    """An address that no other process uses: the ports of the profiles are fixed."""
    pid = os.getpid()
    return f"127.{1 + (pid >> 16 & 0x7f)}.{pid >> 8 & 0xff}.{pid & 0xff}"


def make_dataset():
    return [{"id": number, "name": f"Item {number}", "category": "tools", "price": 100 + number,
             "quantity": number % 7, "active": number % 2 == 0, "tags": ["a", "b"][:number % 3],
             "rating": {"score": number % 50, "count": number * 3}} for number in range(1, 51)]


def make_files(folder):
    """Writes files of each kind into a folder; texts have compressed neighbours."""
    folder.mkdir()
    for name, (_, size) in STATIC.items():
        content = (f"{name}\n" * size)[:size].encode()
        (folder / name).write_bytes(content)
        if not name.endswith((".woff2", ".webp")):
            (folder / f"{name}.gz").write_bytes(gzip.compress(content))
            (folder / f"{name}.br").write_bytes(b"not really brotli: " + name.encode())


class Connection:
    """A connection of HTTP/1.1 or of a WebSocket, which sends any bytes."""

    def __init__(self, address, port, alpn=()):
        self.socket = socket.create_connection((address, port), timeout=SECONDS_MAX)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if alpn:
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            context.set_alpn_protocols(list(alpn))
            self.socket = context.wrap_socket(self.socket)
        self.received = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, *pieces):
        for number, piece in enumerate(pieces):
            if number > 0:
                time.sleep(0.02)
            self.socket.sendall(piece)

    def take(self, count):
        while len(self.received) < count:
            self._receive()
        taken, self.received = self.received[:count], self.received[count:]
        return taken

    def take_line(self):
        while b"\r\n" not in self.received:
            self._receive()
        line, self.received = self.received.split(b"\r\n", 1)
        return line.decode()

    def _receive(self):
        more = self.socket.recv(1 << 16)
        if not more:
            raise EOFError(f"the server has closed after {self.received!r}")
        self.received += more

    def read_head(self):
        status = int(self.take_line().split()[1])
        headers = {}
        while line := self.take_line():
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        return status, headers

    def read(self):
        """Returns the status, the headers and the body of one response."""
        status, headers = self.read_head()
        if headers.get("transfer-encoding") != "chunked":
            return status, headers, self.take(int(headers["content-length"]))
        body = b""
        while size := int(self.take_line(), 16):
            body += self.take(size)
            self.take_line()
        self.take_line()
        return status, headers, body

    def send_frame(self, opcode, payload):
        mask = os.urandom(4)
        masked = bytes(each ^ mask[index % 4] for index, each in enumerate(payload))
        size = len(payload)
        length = struct.pack("!B", 0x80 | size) if size < 126 else struct.pack("!BH", 0xfe, size)
        self.send(bytes([0x80 | opcode]) + length + mask + masked)

    def read_frame(self):
        first, size = self.take(2)
        if size == 126:
            size, = struct.unpack("!H", self.take(2))
        return first & 0x0f, self.take(size)


def request(method, target, body=None, headers=""):
    length = "" if body is None else f"Content-Length: {len(body)}\r\n"
    head = f"{method} {target} HTTP/1.1\r\nHost: arena\r\n{headers}{length}\r\n"
    return head.encode() + (body or b"")


class Profiles(unittest.TestCase):
    program, process, address, folder = None, None, loopback_address(), None

    @classmethod
    def setUpClass(cls):
        data, certificates = cls.folder / "data", cls.folder / "certs"
        data.mkdir()
        certificates.mkdir()
        make_files(data / "static")
        (data / "dataset.json").write_text(json.dumps(make_dataset(), indent=2))
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                        "-subj", "/CN=localhost", "-keyout", certificates / "server.key", "-out",
                        certificates / "server.crt"], check=True, capture_output=True)
        cls.process = subprocess.Popen(
            [cls.program, "--listen", f"{cls.address}:{HTTP1}", "--data", data, "--certificates",
             certificates, "--runtime.cores", "2"], stderr=(cls.folder / "log").open("w"))
        cls.addClassCleanup(cls.process.kill)
        deadline = time.monotonic() + SECONDS_MAX
        for port in (HTTP1, HTTP1_TLS, HTTP2, HTTP2_TLS):
            while True:
                try:
                    socket.create_connection((cls.address, port)).close()
                    break
                except ConnectionRefusedError:
                    if cls.process.poll() is not None or time.monotonic() > deadline:
                        raise RuntimeError(f"no server: {(cls.folder / 'log').read_text()}")
                    time.sleep(0.05)

    @classmethod
    def tearDownClass(cls):
        cls.process.terminate()
        status = cls.process.wait(SECONDS_MAX)
        if status != 0:
            raise RuntimeError(f"exit status {status}: {(cls.folder / 'log').read_text()}")

    def connect(self, port=HTTP1, alpn=()):
        return Connection(self.address, port, alpn)

    def exchange(self, *pieces):
        with self.connect() as connection:
            connection.send(*pieces)
            return connection.read()

    def expect_text(self, expected, *pieces):
        status, headers, body = self.exchange(*pieces)
        self.assertEqual((status, body), (200, str(expected).encode()))
        self.assertTrue(headers["content-type"].startswith("text/plain"), headers)

    def curl(self, url, *options):
        """Returns (version of HTTP, status, media type, body)."""
        written = "\n%{http_version} %{http_code} %{content_type}"
        result = subprocess.run(["curl", "-sk", "--max-time", str(SECONDS_MAX), "-w", written,
                                 *options, url], capture_output=True)
        body, _, line = result.stdout.rpartition(b"\n")
        version, status, media_type = line.decode().split(" ", 2)
        return version, int(status), media_type.split(";")[0], body

    def expect_items(self, body, count, multiplier):
        order = json.loads(body)
        items = [item | {"total": item["price"] * item["quantity"] * multiplier}
                 for item in make_dataset()[:count]]
        self.assertEqual(order, {"count": count, "items": items})

    def test_meta(self):
        meta = json.loads(META.read_text())
        tested = {name.removeprefix("test_").replace("_", "-") for name in dir(self)
                  if name.startswith("test_")} - {"meta"}
        self.assertEqual(set(meta["tests"]), tested)
        self.assertEqual((meta["type"], meta["language"]), ("production", "C++"))

    def test_baseline(self):
        self.expect_text(55, request("GET", "/baseline11?a=13&b=42"))
        self.expect_text(75, request("POST", "/baseline11?a=13&b=42", b"20"))
        chunked = request("POST", "/baseline11?a=13&b=42", None, "Transfer-Encoding: chunked\r\n")
        self.expect_text(75, chunked + b"2\r\n20\r\n0\r\n\r\n")
        for _ in range(20):
            a, b, body = (random.randint(-10**6, 10**6) for _ in range(3))
            self.expect_text(a + b, request("GET", f"/baseline11?a={a}&b={b}"))
            self.expect_text(a + b + body,
                             request("POST", f"/baseline11?a={a}&b={b}", str(body).encode()))
        whole = request("POST", "/baseline11?a=13&b=42", b"20")
        for cut in (7, 30, len(whole) - 2, len(whole) - 1):
            self.expect_text(75, whole[:cut], whole[cut:])
        self.expect_text(75, whole[:-2], b"2", b"0")
        self.assertEqual(self.exchange(request("POST", "/baseline11?a=1&b=2", b"x"))[0], 400)

    def test_limited_conn(self):
        for _ in range(5):
            with self.connect() as connection:
                for a in range(10):
                    connection.send(request("GET", f"/baseline11?a={a}&b=1"))
                    self.assertEqual(connection.read()[2], str(a + 1).encode())

    def test_pipelined(self):
        self.expect_text("ok", request("GET", "/pipeline"))
        with self.connect() as connection:
            connection.send(request("GET", "/pipeline") * 16)
            for _ in range(16):
                self.assertEqual(connection.read()[2], b"ok")

    def test_json(self):
        for count, multiplier in CORRECT_PAIRS:
            status, headers, body = self.exchange(
                request("GET", f"/json/{count}?m={multiplier}"))
            self.assertEqual((status, headers["content-type"]), (200, "application/json"))
            self.assertNotIn("content-encoding", headers)
            self.expect_items(body, count, multiplier)
        self.expect_items(self.exchange(request("GET", "/json/1"))[2], 1, 1)

    def test_json_comp(self):
        for accepted in ("gzip, br", "gzip"):
            for count, multiplier in ((25, 3), (40, 7), (50, 2)):
                status, headers, body = self.exchange(
                    request("GET", f"/json/{count}?m={multiplier}", None,
                            f"Accept-Encoding: {accepted}\r\n"))
                self.assertEqual((status, headers["content-type"]), (200, "application/json"))
                self.assertIn(headers["content-encoding"], accepted.split(", "))
                if headers["content-encoding"] == "gzip":
                    self.expect_items(gzip.decompress(body), count, multiplier)
        self.assertNotIn("content-encoding", self.exchange(request("GET", "/json/50?m=1"))[1])

    def test_json_tls(self):
        for offered in (("http/1.1",), ("h2", "http/1.1")):
            with self.connect(HTTP1_TLS, offered) as connection:
                self.assertEqual(connection.socket.selected_alpn_protocol(), "http/1.1")
                for count, multiplier in ((7, 2), (23, 11), (50, 1)):
                    connection.send(request("GET", f"/json/{count}?m={multiplier}"))
                    status, headers, body = connection.read()
                    self.assertEqual((status, headers["content-type"]), (200, "application/json"))
                    self.expect_items(body, count, multiplier)

    def test_upload(self):
        for size in (0, 17, 512_000, 2 << 20, 10 << 20, 20 << 20):
            self.expect_text(size, request("POST", "/upload", os.urandom(size)))
        chunked = request("POST", "/upload", None, "Transfer-Encoding: chunked\r\n")
        self.expect_text(300_000, chunked + self.chunks(3, 100_000))

    @staticmethod
    def chunks(count, size):
        chunk = f"{size:x}\r\n".encode() + os.urandom(size) + b"\r\n"
        return chunk * count + b"0\r\n\r\n"

    def expect_sums(self, base, version, *options):
        for a, b in ((13, 42), (random.randint(0, 999), random.randint(0, 999))):
            self.assertEqual(self.curl(f"{base}/baseline2?a={a}&b={b}", *options),
                             (version, 200, "text/plain", str(a + b).encode()))

    def test_baseline_h2(self):
        self.expect_sums(f"https://{self.address}:{HTTP2_TLS}", "2", "--http2")

    def test_baseline_h2c(self):
        base = f"http://{self.address}:{HTTP2}"
        self.expect_sums(base, "2", "--http2-prior-knowledge")
        self.assertNotEqual(self.curl(f"{base}/baseline2?a=1&b=1", "--http1.1")[1], 200)

    def test_json_h2c(self):
        for count, multiplier in CORRECT_PAIRS:
            url = f"http://{self.address}:{HTTP2}/json/{count}?m={multiplier}"
            version, status, media_type, body = self.curl(url, "--http2-prior-knowledge")
            self.assertEqual((version, status, media_type), ("2", 200, "application/json"))
            self.expect_items(body, count, multiplier)

    def expect_files(self, base, expected_version, *options):
        folder = self.folder / "data/static"
        for name, (media_type, size) in STATIC.items():
            version, status, served_type, body = self.curl(f"{base}/static/{name}", *options)
            self.assertEqual((version, status, served_type, body),
                             (expected_version, 200, media_type, (folder / name).read_bytes()))
            self.assertEqual(len(body), size)
            accepts = ("-H", "Accept-Encoding: br;q=1, gzip;q=0.8")
            body = self.curl(f"{base}/static/{name}", *options, *accepts)[3]
            coded = folder / f"{name}.br"
            self.assertEqual(body, (coded if coded.exists() else folder / name).read_bytes())
        self.assertEqual(self.curl(f"{base}/static/nonexistent.txt", *options)[1], 404)
        outside = self.curl(f"{base}/static/../dataset.json", "--path-as-is", *options)
        self.assertIn(outside[1], (400, 404))

    def test_static(self):
        self.expect_files(f"http://{self.address}:{HTTP1}", "1.1")
        changed = self.folder / "data/static/reset.css.gz"
        for content in (b"one", b"two"):  # each file is read for each request
            changed.write_bytes(content)
            headers = "Accept-Encoding: gzip\r\n"
            status, sent, body = self.exchange(request("GET", "/static/reset.css", None, headers))
            self.assertEqual((status, sent["content-encoding"], body), (200, "gzip", content))

    def test_static_h2(self):
        self.expect_files(f"https://{self.address}:{HTTP2_TLS}", "2", "--http2")

    def open_websocket(self):
        key = base64.b64encode(os.urandom(16)).decode()
        connection = self.connect()
        connection.send(request("GET", "/ws", None, "Upgrade: websocket\r\nConnection: Upgrade\r\n"
                                f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n"))
        status, headers = connection.read_head()
        accepted = base64.b64encode(hashlib.sha1((key + WEBSOCKET_GUID).encode()).digest()).decode()
        self.assertEqual((status, headers["sec-websocket-accept"]), (101, accepted))
        return connection

    def test_echo_ws(self):
        for _ in range(2):
            with self.open_websocket() as connection:
                for sent in ((TEXT, b"hello"), (BINARY, os.urandom(256)), (TEXT, b"x" * 60_000)):
                    connection.send_frame(*sent)
                    self.assertEqual(connection.read_frame(), sent)
                for number in range(5):
                    connection.send_frame(TEXT, f"message {number}".encode())
                for number in range(5):
                    self.assertEqual(connection.read_frame(), (TEXT, f"message {number}".encode()))
                connection.send_frame(PING, b"p")
                self.assertEqual(connection.read_frame(), (PONG, b"p"))
                connection.send_frame(CLOSE, struct.pack("!H", 1000) + b"done")
                opcode, payload = connection.read_frame()
                self.assertEqual((opcode, payload[:2]), (CLOSE, struct.pack("!H", 1000)))
            status = self.exchange(request("GET", "/ws"))[0]  # no handshake
            self.assertTrue(400 <= status < 500, status)


def missing_tool():
    for tool in ("curl", "openssl"):
        if shutil.which(tool) is None:
            return f"{tool} is not installed"
    version = subprocess.run(["curl", "--version"], capture_output=True, text=True).stdout
    return None if "HTTP2" in version else "curl does not speak HTTP/2"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path, required=True)
    options, rest = parser.parse_known_args()
    if reason := missing_tool():
        print(f"skipped: {reason}")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="weir-httparena-") as folder:
        Profiles.program, Profiles.folder = options.program.resolve(), pathlib.Path(folder)
        tests = unittest.main(argv=[sys.argv[0], *rest], exit=False)
    return 0 if tests.result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
