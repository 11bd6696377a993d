#!/usr/bin/env python3
"""Serves mixed load for minutes and checks that memory and descriptors stay constant.

The server is examples/limits.cpp, optimised. `weir bench` sends requests at a steady rate and
verifies each answer. Other clients upload, read large answers slowly, stop in the middle, reset and
stay idle; at times there are more clients than the limit of connections. Each minute prints one
line of a table.
"""

import argparse
import asyncio
import contextlib
import dataclasses
import logging
import pathlib
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import time

CONNECTIONS_MAX = 400
CLIENTS = 200  # besides `weir bench`; at times three times this number
STEADY_RATE = 2000
GROWTH_MAX = 4 << 20  # bytes of anonymous memory, between the second third of the run and its end
LARGE = 200_000  # bytes of the answer to GET /large


@dataclasses.dataclass
class Sample:
    minute: float
    resident: int
    anonymous: int
    descriptors: int
    threads: int
    connections: int
    requests: int


def verdict(samples, before):
    """Returns the faults of a run; empty if there are none. `before` and the last sample are taken
    without load."""
    faults = []
    loaded = samples[:-1]
    if len(loaded) < 3:
        faults.append("too short for a verdict")
        return faults
    settled = max(each.anonymous for each in loaded[:max(1, 2 * len(loaded) // 3)])
    last = loaded[-1].anonymous
    if last > settled + GROWTH_MAX:
        faults.append(f"anonymous memory grows: {last:,} bytes, {settled:,} bytes before")
    after = samples[-1]
    if after.descriptors > before.descriptors:
        faults.append(f"{after.descriptors} descriptors are open, {before.descriptors} before load")
    if after.connections > before.connections:
        faults.append(f"{after.connections} connections are open, {before.connections} before load")
    if after.threads > before.threads:
        faults.append(f"{after.threads} threads are running, {before.threads} before load")
    return faults


def header():
    return (f"{'minute':>6} {'resident':>12} {'anonymous':>12} {'fds':>6} {'threads':>7} "
            f"{'open':>6} {'requests':>12}")


def row(sample):
    return (f"{sample.minute:6.1f} {sample.resident:12,} {sample.anonymous:12,} "
            f"{sample.descriptors:6} {sample.threads:7} {sample.connections:6} "
            f"{sample.requests:12,}")


class Server:
    def __init__(self, build, backend):
        command = [build / "examples/example_limits", "--listen=127.0.0.1:0", "--runtime.cores=2",
                   "--runtime.pin=false", f"--runtime.backend={backend}",
                   f"--limits.connections_max={CONNECTIONS_MAX}", "--limits.head_timeout=2s",
                   "--limits.idle_timeout=20s", "--limits.body_rate.grace=2s",
                   "--limits.body_rate.stall_max=2s", "--limits.write_rate.grace=2s",
                   "--limits.write_rate.stall_max=2s"]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.port = None
        for line in self.process.stderr:
            print("   ", line.rstrip(), file=sys.stderr)
            if found := re.search(r"listening on \S+:(\d+)", line):
                self.port = int(found[1])
                break
        if self.port is None:
            sys.exit("soak: the server did not start listening")
        # The server continues to log, and must not wait for a reader.
        self.log = asyncio.to_thread(self.process.stderr.read)

    def total(self, report, name):
        found = re.search(rf"^{name} +([\d,]+)", report, re.MULTILINE)
        return int(found[1].replace(",", "")) if found else 0

    async def sample(self, started):
        folder = pathlib.Path(f"/proc/{self.process.pid}")
        status = (folder / "status").read_text()
        report = await self.report()
        return Sample((time.monotonic() - started) / 60,
                      int(re.search(r"VmRSS:\s+(\d+)", status)[1]) * 1024,
                      int(re.search(r"RssAnon:\s+(\d+)", status)[1]) * 1024,
                      len(list((folder / "fd").iterdir())),
                      int(re.search(r"Threads:\s+(\d+)", status)[1]),
                      self.total(report, "http connections open"),
                      self.total(report, "http requests"))

    async def report(self):
        while True:  # the server may be full
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
                writer.write(b"GET /report HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
                answer = await reader.read(-1)
                writer.close()
                if answer.startswith(b"HTTP/1.1 200"):
                    return answer.decode()
            await asyncio.sleep(0.1)


class Clients:
    """Clients beside the steady load. They verify the answers that they read completely."""

    def __init__(self, port, seed):
        self.port = port
        self.random = random.Random(seed)
        self.faults = []
        self.served = 0
        self.turned_away = 0

    async def run(self):
        kinds = [self.upload, self.chunks, self.download, self.read_slowly, self.stop_in_head,
                 self.stop_in_body, self.leave_answers, self.stay_idle, self.pipeline]
        while True:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
                try:
                    await self.random.choice(kinds)(reader, writer)
                finally:
                    if self.random.random() < 0.5:
                        reset = struct.pack("ii", 1, 0)
                        writer.get_extra_info("socket").setsockopt(
                            socket.SOL_SOCKET, socket.SO_LINGER, reset)
                    writer.transport.abort() if self.random.random() < 0.5 else writer.close()
            await asyncio.sleep(self.random.random() * 0.2)

    async def answer(self, reader, expected):
        """Reads one answer. Returns True if the request was served."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        size = int(re.search(r"Content-Length: (\d+)", head)[1])
        body = await reader.readexactly(size)
        if head.startswith(("HTTP/1.1 503", "HTTP/1.1 408")):  # 408: this process was too slow
            self.turned_away += 1
            return False
        if not head.startswith("HTTP/1.1 200") or body != expected:
            self.faults.append(f"{head.splitlines()[0]}, {size} bytes")
            return False
        self.served += 1
        return True

    async def upload(self, reader, writer):
        for _ in range(self.random.randrange(1, 20)):
            body = b"x" * self.random.randrange(60_000)
            writer.write(b"POST /count HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" %
                         len(body) + body)
            if not await self.answer(reader, b"%d bytes\n" % len(body)):
                return

    async def chunks(self, reader, writer):
        writer.write(b"POST /count HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n")
        sizes = [self.random.randrange(1, 3000) for _ in range(20)]
        for size in sizes:
            writer.write(b"%x;a=b\r\n" % size + b"c" * size + b"\r\n")
            await asyncio.sleep(0)
        writer.write(b"0\r\nA: b\r\n\r\n")
        await self.answer(reader, b"%d bytes\n" % sum(sizes))

    async def download(self, reader, writer):
        for _ in range(self.random.randrange(1, 5)):
            writer.write(b"GET /large HTTP/1.1\r\nHost: h\r\n\r\n")
            if not await self.answer(reader, b"x" * LARGE):
                return

    async def pipeline(self, reader, writer):
        count = self.random.randrange(1, 200)
        writer.write(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n" * count)
        for _ in range(count):
            if not await self.answer(reader, b"Hello, World!\n"):
                return

    async def read_slowly(self, reader, writer):
        writer.write(b"GET /large HTTP/1.1\r\nHost: h\r\n\r\n" * 30)
        for _ in range(20):
            await reader.read(500)
            await asyncio.sleep(0.3)

    async def stop_in_head(self, reader, writer):
        writer.write(b"GET / HTTP/1.1\r\nHost: h\r\nX: ")
        for _ in range(self.random.randrange(40)):
            writer.write(b"x")
            await asyncio.sleep(0.1)

    async def stop_in_body(self, reader, writer):
        writer.write(b"POST /count HTTP/1.1\r\nHost: h\r\nContent-Length: 60000\r\n\r\n")
        writer.write(b"x" * self.random.randrange(60_000))
        await asyncio.sleep(self.random.random() * 3)

    async def leave_answers(self, reader, writer):
        writer.write(b"GET /large HTTP/1.1\r\nHost: h\r\n\r\n" * 10)
        await reader.read(1000)

    async def stay_idle(self, reader, writer):
        await asyncio.sleep(self.random.random() * 5)


async def end(tasks):
    """Cancels tasks until they have ended: a task that is about to fail may ignore one."""
    while tasks:
        for task in tasks:
            task.cancel()
        _, tasks = await asyncio.wait(tasks, timeout=1)


async def load(clients, seconds):
    """Runs clients for `seconds`, alternating between CLIENTS and three times CLIENTS."""
    tasks = [asyncio.create_task(clients.run()) for _ in range(CLIENTS)]
    until = time.monotonic() + seconds
    try:
        while time.monotonic() < until:
            await asyncio.sleep(min(25, max(0.1, until - time.monotonic())))
            wanted = 3 * CLIENTS if len(tasks) == CLIENTS else CLIENTS
            await end(tasks[wanted:])
            del tasks[wanted:]
            while len(tasks) < wanted:
                tasks.append(asyncio.create_task(clients.run()))
    finally:
        await end(tasks)


async def soak(options):
    server = Server(options.build, options.backend)
    reading = asyncio.create_task(server.log)
    clients = Clients(server.port, options.seed)
    print(f"seed {options.seed}, {options.minutes:g} minutes, {options.backend}\n{header()}")
    started = time.monotonic()
    samples = [await server.sample(started)]
    print(row(samples[0]), flush=True)
    # Connects before the other clients, so that it is always served.
    bench = await asyncio.create_subprocess_exec(
        options.build / "bin/weir", "bench", f"http://127.0.0.1:{server.port}/", "-c", "32", "-d",
        "4", "--rate", str(STEADY_RATE), "-s", str(options.minutes * 60), "--timeout", "30",
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    await asyncio.sleep(0.5)
    loading = asyncio.create_task(load(clients, options.minutes * 60))
    lines = max(6, round(options.minutes))
    for number in range(1, lines + 1):
        at = started + options.minutes * 60 * number / lines
        await asyncio.sleep(max(0.0, at - time.monotonic()))
        if number < lines:
            samples.append(await server.sample(started))
            print(row(samples[-1]), flush=True)
    await loading
    printed = (await bench.communicate())[0].decode()
    for _ in range(20):  # until all connections have ended
        after = await server.sample(started)
        if after.connections <= samples[0].connections and \
                after.descriptors <= samples[0].descriptors:
            break
        # A request for a report leaves a connection that lingers for a second.
        await asyncio.sleep(1.5)
    print(row(after))
    faults = verdict(samples[1:] + [after], samples[0]) + clients.faults[:10]
    if not re.search(r"^ *errors +none$", printed, re.MULTILINE):  # late requests are no fault
        faults.append(f"weir bench ended with {bench.returncode}:\n{printed}")
    server.process.send_signal(signal.SIGTERM)
    if (status := await asyncio.to_thread(server.process.wait)) != 0:
        faults.append(f"the server ended with {status}")
    await reading
    print(f"{clients.served:,} answers to other clients than weir bench, "
          f"{clients.turned_away:,} clients rejected")
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="the release tree")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(100_000)
    # The server ends connections on purpose.
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    faults = asyncio.run(soak(options))
    for fault in faults:
        print(f"soak: {fault}", file=sys.stderr)
    print("soak: passed" if not faults else f"soak: {len(faults)} faults")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
