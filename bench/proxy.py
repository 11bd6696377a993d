#!/usr/bin/env python3
"""Compares reverse proxies: GET with 64 connections, per second of the proxy's CPU time.

    bench/proxy.py [--build build/release] [--rounds 9] [--seconds 0.9] [--path /190]

The proxies are examples/gateway.cpp on epoll and io_uring, nginx, and HAProxy if it is installed,
each with one thread. They have one processor. The upstream (examples/bench.cpp) and the generator
share another one. "direct" is the same server without a proxy. Each round measures all of them in
turn. Run it on a quiet machine.
"""

import argparse
import json
import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import tempfile
import time

WARM_UP = 0.3  # seconds
NGINX = """daemon off; master_process off; pid nginx.pid; error_log stderr warn;
events {{ worker_connections 4000; multi_accept on; }}
http {{
  access_log off; keepalive_requests 1000000000; keepalive_timeout 1h;
  client_body_temp_path b; proxy_temp_path p; fastcgi_temp_path f; uwsgi_temp_path u;
  scgi_temp_path s;
  upstream up {{ server 127.0.0.1:{up}; keepalive 128; keepalive_requests 1000000000; }}
  server {{
    listen 127.0.0.1:{port} backlog=65535 reuseport;
    location / {{
      proxy_pass http://up; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_set_header X-Forwarded-For $remote_addr;
      proxy_set_header X-Forwarded-Proto $scheme;
      proxy_set_header X-Forwarded-Host $host;
    }}
  }}
}}
"""
HAPROXY = """global
  nbthread 1
  maxconn 4000
defaults
  mode http
  timeout connect 5s
  timeout client 1h
  timeout server 30s
  http-reuse always
frontend front
  bind 127.0.0.1:{port}
  option forwardfor
  default_backend back
backend back
  server up 127.0.0.1:{up}
"""


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def wait_for(port):
    for _ in range(500):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.01)
    raise SystemExit(f"nothing listens at port {port}")


def cpu_seconds(process):
    ticks = 0
    for stat in pathlib.Path(f"/proc/{process.pid}/task").glob("*/stat"):
        fields = stat.read_text().rsplit(")", 1)[1].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


class Servers:
    """The running servers, each with its name, its port and the path of its requests."""

    def __init__(self, build, path, folder):
        self.processes, self.all = [], {}
        self.build, self.folder = build, pathlib.Path(folder)
        up = free_port()
        self.start(1, up, [build / "examples/example_bench", "--backend", "epoll",
                           *self.weir_options(up)])
        for backend in ("epoll", "uring"):
            port = free_port()
            bench = [build / "examples/example_bench", "--backend", backend]
            self.add(f"direct-{backend}", port, path, [*bench, *self.weir_options(port)])
            port = free_port()
            gateway = [build / "examples/example_gateway", f"http://127.0.0.1:{up}", "--backend",
                       backend]
            self.add(f"weir-{backend}", port, f"/api{path}", [*gateway, *self.weir_options(port)])
        port = free_port()
        config = self.write("nginx.conf", NGINX.format(up=up, port=port))
        self.add("nginx", port, path, ["nginx", "-p", folder, "-c", config])
        if shutil.which("haproxy"):
            port = free_port()
            config = self.write("haproxy.cfg", HAPROXY.format(up=up, port=port))
            self.add("haproxy", port, path, ["haproxy", "-db", "-f", config])

    @staticmethod
    def weir_options(port):
        return ["--port", port, "--address", "127.0.0.1", "--cores", "1", "--no-pin"]

    def write(self, name, text):
        (self.folder / name).write_text(text)
        return self.folder / name

    def start(self, processor, port, command):
        process = subprocess.Popen(["taskset", "-c", str(processor), *map(str, command)],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.processes.append(process)
        wait_for(port)
        return process

    def add(self, name, port, path, command):
        self.all[name] = (self.start(0, port, command), f"http://127.0.0.1:{port}{path}")

    def measure(self, name, seconds):
        """Returns the requests per second of CPU time."""
        process, url = self.all[name]
        before = cpu_seconds(process)
        output = subprocess.run(
            ["taskset", "-c", "1", self.build / "bin/weir", "bench", "-c", "64", "-s",
             str(seconds), "--warm-up", str(WARM_UP), "--json", url],
            capture_output=True, text=True, check=True).stdout
        figures = json.loads(output)
        if figures["error_count"] > 0:
            raise SystemExit(f"{name}: {figures['error_count']} errors")
        requests = figures["responses"] * (1 + WARM_UP / figures["seconds"])
        return requests / (cpu_seconds(process) - before)

    def stop(self):
        for process in self.processes:
            process.terminate()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.9)
    parser.add_argument("--path", default="/190")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        servers = Servers(options.build.resolve(), options.path, folder)
        figures = {name: [] for name in servers.all}
        try:
            for _ in range(options.rounds):
                for name, measured in figures.items():
                    measured.append(servers.measure(name, options.seconds))
        finally:
            servers.stop()
    for name, measured in figures.items():
        print(f"{name:14} {statistics.median(measured):9.0f} requests per CPU second "
              f"({min(measured):.0f}..{max(measured):.0f})")


if __name__ == "__main__":
    main()
