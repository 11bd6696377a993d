"""Starts the servers that are compared: Weir's program, and others' where they are present.

Nothing is fetched. Node and Go are looked for where they are usually installed, nginx also where
./dev bench has unpacked it; what is absent is left out, by name and with the reason.
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
TEST_SECONDS_MAX = 80  # the same where a test waits for it
START_SECONDS_MAX = 30
LISTENING = re.compile(r"listening on \S*:([0-9]+)")


class Absent(Exception):
    """Why a server is not there."""


class Server:
    """A program that listens on 127.0.0.1; killed at the end of `with`."""

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
            self.__exit__()  # which `with` calls only after this
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
        raise Absent(f"{self.name} does not start")

    def read_port(self):
        said = ""
        for line in self.process.stdout:
            said += line
            if match := LISTENING.search(line):
                return int(match.group(1))
        raise Absent(f"{self.name} does not start: {said.strip()}")

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
        raise Absent(f"there is no {name}")
    return found


def weir(program):
    return Server("weir", [str(program), "--port", "0", "--address", "127.0.0.1", "--cores", "1",
                           "--no-pin"])


def node():
    return Server("node", [which("node"), str(HERE / "peers/reporter.js")])


def go(build, seconds_max=BUILD_SECONDS_MAX):
    """Builds it where that has not been done yet: half a minute if Go has built nothing before."""
    folder = build.resolve() / "differential"  # go runs elsewhere
    program = folder / "go-reporter"
    source = HERE / "peers/go"
    newest = max(file.stat().st_mtime for file in source.iterdir())
    if not program.exists() or program.stat().st_mtime < newest:
        compiler = which("go")
        folder.mkdir(parents=True, exist_ok=True)
        environment = os.environ | {"GOTOOLCHAIN": "local", "GOFLAGS": "-mod=mod", "GOPROXY": "off"}
        if not {"HOME", "XDG_CACHE_HOME", "GOCACHE"} & environment.keys():
            environment["GOCACHE"] = str(folder / "go-cache")
        # Others may build it at the same time.
        with tempfile.TemporaryDirectory(dir=folder, prefix="go-") as own:
            made = pathlib.Path(own) / program.name
            try:
                done = subprocess.run([compiler, "build", "-o", str(made), "."], cwd=source,
                                      env=environment, capture_output=True, text=True,
                                      timeout=seconds_max, check=False)
            except subprocess.TimeoutExpired as late:
                raise Absent(f"go build takes more than {seconds_max} s") from late
            if done.returncode != 0:
                raise Absent(f"go build failed: {done.stderr.strip()}")
            made.replace(program)
    return Server("go", [str(program)])


def nginx(build, behind):
    """nginx as a proxy before the server on port `behind`, with a folder of its own."""
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
    server.kept = folder  # removed with it
    return server


def free_port():
    """One that nobody has now; nginx cannot be asked which it took."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def main():
    """For other tests: becomes this server, which prints its port."""
    parser = argparse.ArgumentParser()
    parser.add_argument("server", choices=("node", "go"))
    parser.add_argument("--build", type=pathlib.Path, required=True)
    options = parser.parse_args()
    try:
        server = node() if options.server == "node" else go(options.build, TEST_SECONDS_MAX)
    except Absent as reason:
        sys.exit(f"{options.server}: {reason}")
    os.execv(server.command[0], server.command)


if __name__ == "__main__":
    main()
