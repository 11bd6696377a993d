"""Starts a server, puts load on it, and reads its memory use."""

import contextlib
import dataclasses
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time

LISTENING = re.compile(r"listening on \S*:(\d+)")
START_SECONDS_MAX = 15
STOP_SECONDS_MAX = 12
LOAD_SECONDS_MORE_MAX = 60


class Failure(Exception):
    """The reason why a measurement failed."""


@dataclasses.dataclass
class Running:
    """A listening server."""

    process: subprocess.Popen
    port: int

    def processes(self):
        """Returns the ids of the server's processes, children included."""
        return family(self.process.pid)

    def peak_bytes(self):
        """Returns the sum of the processes' peak resident bytes."""
        return sum(peak_bytes(process) for process in self.processes())

    def processor_seconds(self):
        """Returns the CPU time of the processes' present threads."""
        return sum(processor_seconds(process) for process in self.processes())

    def resident_bytes(self):
        return sum(resident_bytes(process) for process in self.processes())


def family(process):
    """Returns the ids of a process and of all its descendants."""
    found = [process]
    with contextlib.suppress(OSError):
        for task in pathlib.Path(f"/proc/{process}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += family(int(child))
    return found


def resident_bytes(process):
    """Returns the exact resident bytes (VmRSS is approximate); 0 if the process has ended."""
    try:
        rollup = pathlib.Path(f"/proc/{process}/smaps_rollup").read_text()
    except OSError:
        return 0
    found = re.search(r"^Rss:\s+(\d+) kB", rollup, re.MULTILINE)
    return int(found.group(1)) * 1024 if found else 0


def processor_seconds(process):
    """Returns the CPU time of a process's present threads; 0 if the process has ended."""
    try:
        return sum(int((task / "schedstat").read_text().split()[0])
                   for task in pathlib.Path(f"/proc/{process}/task").iterdir()) / 1e9
    except OSError:
        return 0


def peak_bytes(process):
    """Returns the peak resident bytes of a process; 0 if the process has ended."""
    try:
        status = pathlib.Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0
    found = re.search(r"^VmHWM:\s+(\d+) kB", status, re.MULTILINE)
    return int(found.group(1)) * 1024 if found else 0


def on_processors(numbers, command):
    return ["taskset", "--cpu-list", ",".join(map(str, numbers)), *command]


def first_of_all():
    """Returns a command prefix for real-time priority; empty if that is refused."""
    command = ["chrt", "--fifo", "1"]
    if not shutil.which(command[0]):
        return []
    tried = subprocess.run([*command, "true"], capture_output=True)
    return command if tried.returncode == 0 else []


@contextlib.contextmanager
def serving(command, processors, preload="", stop_seconds=STOP_SECONDS_MAX):
    """Yields a listening server. Terminates it afterwards; kills it if it does not end in time."""
    environment = dict(os.environ)
    if preload:
        environment["LD_PRELOAD"] = preload
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(on_processors(processors, command), stdin=subprocess.DEVNULL,
                                   stdout=log, stderr=subprocess.STDOUT, env=environment)
        try:
            running = Running(process, port_of(process, log, command))
            if preload:
                require_loaded(preload, running)
            yield running
        finally:
            process.terminate()
            try:
                process.wait(stop_seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def require_loaded(library, running):
    """Raises Failure if the library is not loaded: the loader itself only prints a line."""
    maps = "".join(pathlib.Path(f"/proc/{process}/maps").read_text()
                   for process in running.processes())
    if os.path.realpath(library) not in maps:
        raise Failure(f"{library} was not preloaded")


def port_of(process, log, command):
    deadline = time.monotonic() + START_SECONDS_MAX
    text = ""
    while time.monotonic() < deadline:
        log.seek(0)
        text = log.read()
        if found := LISTENING.search(text):
            return int(found.group(1))
        if process.poll() is not None:
            break
        time.sleep(0.01)
    raise Failure(f"does not serve: {' '.join(command)}\n{text}")


def load(options, port, processes, work, seconds, processor=None, warm_up=0, secure=False):
    """Runs `weir bench` on a server with these processes, over TLS if `secure`. Returns its report.
    """
    warm_up = max(options.warm_up, warm_up)
    command = [*generator(options, port, work, secure), "--abandon", "--seconds", str(seconds),
               "--warm-up", str(warm_up)]
    for process in processes:
        command += ["--server-pid", str(process)]
    processor = options.load_cpu if processor is None else processor
    return output_of(on_processors([processor], command), seconds + warm_up + LOAD_SECONDS_MORE_MAX)


def errors_of(load):
    """Returns the number of errors of a load, including unanswered and unsent requests."""
    found = load["error_count"] + load["unanswered"] + load["unsent"] + load["starved"]
    return found or int(load["responses"] == 0)


def generator(options, port, work, secure=False, host="127.0.0.1"):
    """Returns the generator's command line without a duration."""
    scheme = "https" if secure else "http"
    return [str(options.build / "bin/weir"), "bench", f"{scheme}://{host}:{port}{work.path}",
            "--json", *work.options(), *(work.tls_options() if secure else [])]


def output_of(command, seconds_max=LOAD_SECONDS_MORE_MAX, limit=lambda process: None):
    """Returns the JSON that a command prints, even if the command fails afterwards. Calls `limit`
    with the id of its process."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as process:
        try:
            limit(process.pid)
            output, errors = process.communicate(timeout=seconds_max)
            return json.loads(output)
        except subprocess.TimeoutExpired:
            process.kill()
            raise Failure(f"{command[0]} did not end in time") from None
        except json.JSONDecodeError:
            raise Failure(f"{' '.join(command)} failed: {(errors or output).strip()}") from None
