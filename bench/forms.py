#!/usr/bin/env python3
"""Uploads 64 forms of 20 MB at the same time, and prints what the server needed for them.

    forms.py [--lines] [--rounds N] SERVER...

Each SERVER is a command that serves POST /form at the port `{port}`, such as
`build/release/bench/inside_form_server --port {port}` or `form-go {port}`. The servers take turns.
A line has the bytes of content per second of the server's CPU, and the memory of a connection: the
growth of the server at its peak. The content is random, or lines of text.
"""

import argparse
import os
import random
import shlex
import socket
import statistics
import subprocess
import threading
import time

UPLOADS = 64
CONTENT_BYTES = 20_000_000
BOUNDARY = "BOUNDARYboundary0123456789"
LINE = b"a line of text of a log file, with a number: 12345678\r\n"


def request(content):
    start = (f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="a.bin"\r\n'
             "Content-Type: application/octet-stream\r\n\r\n").encode()
    end = f"\r\n--{BOUNDARY}--\r\n".encode()
    length = len(start) + len(content) + len(end)
    head = (f"POST /form HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n"
            f"Content-Type: multipart/form-data; boundary={BOUNDARY}\r\n\r\n").encode()
    return [head + start, memoryview(content), end]


class Server:
    """A running server, and what it has used."""

    def __init__(self, command):
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.process = subprocess.Popen(shlex.split(command.format(port=self.port)),
                                        stderr=subprocess.DEVNULL)
        until = time.monotonic() + 10
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            except ConnectionRefusedError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.02)

    def cpu_seconds(self):
        with open(f"/proc/{self.process.pid}/stat") as stat:
            fields = stat.read().rsplit(") ")[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_kib(self):
        with open(f"/proc/{self.process.pid}/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))

    def end(self):
        self.process.terminate()
        self.process.wait()


def upload(port, pieces, answers):
    with socket.create_connection(("127.0.0.1", port)) as connection:
        for piece in pieces:
            connection.sendall(piece)
        received = b""
        while not received.endswith(str(CONTENT_BYTES).encode()):
            data = connection.recv(65536)
            if not data:
                return
            received += data
        answers.append(received)


def measure(command, pieces):
    """Returns (megabytes per CPU second, KiB of a connection)."""
    server = Server(command)
    try:
        idle, before, answers = server.resident_kib(), server.cpu_seconds(), []
        threads = [threading.Thread(target=upload, args=(server.port, pieces, answers))
                   for _ in range(UPLOADS)]
        for thread in threads:
            thread.start()
        peak = idle
        while any(thread.is_alive() for thread in threads):
            peak = max(peak, server.resident_kib())
            time.sleep(0.01)
        used = server.cpu_seconds() - before
        if len(answers) != UPLOADS:
            raise SystemExit(f"FAILED: {command} answered {len(answers)} of {UPLOADS} uploads")
        return UPLOADS * CONTENT_BYTES / used / 1e6, (peak - idle) / UPLOADS
    finally:
        server.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lines", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("servers", nargs="+")
    options = parser.parse_args()
    random.seed(1)
    content = (LINE * (CONTENT_BYTES // len(LINE) + 1))[:CONTENT_BYTES]
    pieces = request(content if options.lines else random.randbytes(CONTENT_BYTES))
    figures = {server: [] for server in options.servers}
    for _ in range(options.rounds):
        for server in options.servers:
            figures[server].append(measure(server, pieces))
    for server, measured in figures.items():
        rates, memory = zip(*measured)
        print(f"{server}: {statistics.median(rates):.0f} ({min(rates):.0f}..{max(rates):.0f}) MB "
              f"per CPU second; {statistics.median(memory):.0f} ({min(memory):.0f}.."
              f"{max(memory):.0f}) KiB a connection")


if __name__ == "__main__":
    main()
