"""Starts the compared servers: Weir's program, and other servers if they are installed.

Nothing is downloaded. Node and Go are searched in their usual folders, and nginx also in the folder
of ./dev bench. An absent server is left out by name, with the reason.
"""

import argparse
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
MORE_PATHS = ("/usr/sbin", "/usr/local/go/bin")
BUILD_SECONDS_MAX = 300
TEST_SECONDS_MAX = 200  # the same limit within a test, for a slow machine
START_SECONDS_MAX = 30
LISTENING = re.compile(r"listening on \S*:([0-9]+)")


class MissingTool(Exception):
    """The reason why a server is absent."""


class Server:
    """A program that listens on 127.0.0.1. The end of `with` terminates it."""

    def __init__(self, name, command, port=None, folder=None):
        self.name = name
        self.command = command
        self.port = port
        self.folder = folder

    def __enter__(self):
        piped = None if self.port else subprocess.PIPE
        self.process = subprocess.Popen(self.command, cwd=self.folder, stdin=subprocess.DEVNULL,
                                        stdout=piped or subprocess.DEVNULL,
                                        stderr=subprocess.STDOUT, text=True)
        try:
            if self.port is None:
                self.port = self.read_port()
            else:
                self.wait_until_it_listens()
        except BaseException:
            self.__exit__()  # `with` calls it only if this function succeeds
            raise
        return self

    def wait_until_it_listens(self):
        deadline = time.monotonic() + START_SECONDS_MAX
        while self.process.poll() is None and time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                time.sleep(0.01)
        raise MissingTool(f"{self.name} does not start")

    def read_port(self):
        said = ""
        for line in self.process.stdout:
            said += line
            if match := LISTENING.search(line):
                return int(match.group(1))
        raise MissingTool(f"{self.name} does not start: {said.strip()}")

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.process.stdout:
            self.process.stdout.close()


def which(name):
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), *MORE_PATHS])
    found = shutil.which(name, path=path)
    if not found:
        raise MissingTool(f"{name} is not installed")
    return found


def weir(program):
    return Server("weir", [str(program), "--port", "0", "--address", "127.0.0.1", "--cores", "1",
                           "--no-pin"])


def node():
    return Server("node", [which("node"), str(HERE / "peers/reporter.js")])


def go(build, seconds_max=BUILD_SECONDS_MAX):
    """Builds the server if necessary, which takes half a minute with an empty cache of Go."""
    folder = build.resolve() / "differential"  # absolute, because go runs in another folder
    program = folder / "go-reporter"
    source = HERE / "peers/go"
    newest = max(file.stat().st_mtime for file in source.iterdir())
    if not program.exists() or program.stat().st_mtime < newest:
        compiler = which("go")
        folder.mkdir(parents=True, exist_ok=True)
        environment = os.environ | {"GOTOOLCHAIN": "local", "GOFLAGS": "-mod=mod", "GOPROXY": "off"}
        if not {"HOME", "XDG_CACHE_HOME", "GOCACHE"} & environment.keys():
            environment["GOCACHE"] = str(folder / "go-cache")
        # Other processes may build it at the same time.
        with tempfile.TemporaryDirectory(dir=folder, prefix="go-") as own:
            made = pathlib.Path(own) / program.name
            try:
                done = subprocess.run([compiler, "build", "-o", str(made), "."], cwd=source,
                                      env=environment, capture_output=True, text=True,
                                      timeout=seconds_max, check=False)
            except subprocess.TimeoutExpired as late:
                raise MissingTool(f"go build took more than {seconds_max} s") from late
            if done.returncode != 0:
                raise MissingTool(f"go build failed: {done.stderr.strip()}")
            made.replace(program)
    return Server("go", [str(program)])


def nginx(build, behind):
    """Returns nginx as a proxy before the server on port `behind`, with its own folder."""
    unpacked = build / "bench/peers/nginx/package/usr/sbin/nginx"
    program = str(unpacked) if unpacked.exists() else which("nginx")
    folder = tempfile.TemporaryDirectory(prefix="weir-nginx-")
    port = free_port()
    text = (HERE / "peers/nginx.conf").read_text()
    text = text.replace("@port@", str(port)).replace("@behind@", str(behind))
    configuration = pathlib.Path(folder.name) / "nginx.conf"
    configuration.write_text(text)
    server = Server("nginx", [program, "-p", folder.name, "-c", str(configuration), "-e", "stderr"],
                    port=port)
    server.kept = folder  # removed with the server
    return server


def free_port():
    """Returns a free port, because nginx does not report the port that the kernel chose."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def main():
    """Executes this server for other tests. The server prints its port."""
    parser = argparse.ArgumentParser()
    parser.add_argument("server", choices=("node", "go"))
    parser.add_argument("--build", type=pathlib.Path, required=True)
    options = parser.parse_args()
    try:
        server = node() if options.server == "node" else go(options.build, TEST_SECONDS_MAX)
    except MissingTool as reason:
        sys.exit(f"{options.server}: {reason}")
    os.execv(server.command[0], server.command)


if __name__ == "__main__":
    main()
