"""Starting a server, loading it, and reading what it uses."""

import contextlib
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import tempfile
import time

LISTENING = re.compile(r"listening on \S*:(\d+)")
START_SECONDS_MAX = 15
STOP_SECONDS_MAX = 12
LOAD_SECONDS_MORE_MAX = 60


class Failure(Exception):
    """Why something could not be measured."""


@dataclasses.dataclass
class Running:
    """A server that listens."""

    process: subprocess.Popen
    port: int

    def processes(self):
        """The ids of the server's processes: a server may work in children of the first."""
        return family(self.process.pid)

    def peak_bytes(self):
        """The most that was resident at once: while it was loaded, that is."""
        return sum(peak_bytes(process) for process in self.processes())

    def resident_bytes(self):
        return sum(resident_bytes(process) for process in self.processes())


def family(process):
    """This process and all that came from it."""
    found = [process]
    with contextlib.suppress(OSError):
        for task in pathlib.Path(f"/proc/{process}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += family(int(child))
    return found


def resident_bytes(process):
    """Exactly, unlike VmRSS, which is summed up by and by; 0 for a process that has gone."""
    try:
        rollup = pathlib.Path(f"/proc/{process}/smaps_rollup").read_text()
    except OSError:
        return 0
    found = re.search(r"^Rss:\s+(\d+) kB", rollup, re.MULTILINE)
    return int(found.group(1)) * 1024 if found else 0


def peak_bytes(process):
    """Of its whole life; 0 for a process that has gone."""
    try:
        status = pathlib.Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0
    found = re.search(r"^VmHWM:\s+(\d+) kB", status, re.MULTILINE)
    return int(found.group(1)) * 1024 if found else 0


def on_processors(numbers, command):
    return ["taskset", "--cpu-list", ",".join(map(str, numbers)), *command]


@contextlib.contextmanager
def serving(command, processors, preload="", stop_seconds=STOP_SECONDS_MAX):
    """A server that listens; ended at the end, and killed where it does not end in time."""
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
    """The loader only prints a line when it cannot preload what it was asked to."""
    maps = "".join(pathlib.Path(f"/proc/{process}/maps").read_text()
                   for process in running.processes())
    if os.path.realpath(library) not in maps:
        raise Failure(f"{library} has not been preloaded")


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


def load(options, port, processes, work, seconds, processor=None, warm_up=0):
    """What `weir bench` says of its load on a server that is made of these processes."""
    warm_up = max(options.warm_up, warm_up)
    command = [*generator(options, port, work), "--abandon", "--seconds", str(seconds),
               "--warm-up", str(warm_up)]
    for process in processes:
        command += ["--server-pid", str(process)]
    processor = options.load_cpu if processor is None else processor
    return said(on_processors([processor], command), seconds + warm_up + LOAD_SECONDS_MORE_MAX)


def errors_of(load):
    """What went wrong in it: also what was never answered, or not even sent."""
    found = load["error_count"] + load["unanswered"] + load["unsent"] + load["starved"]
    return found or int(load["responses"] == 0)


def generator(options, port, work):
    """The beginning of a command line, which does not yet say for how long."""
    return [str(options.build / "bin/weir"), "bench", f"http://127.0.0.1:{port}{work.path}",
            "--json", *work.options()]


def said(command, seconds_max=LOAD_SECONDS_MORE_MAX):
    """The JSON that a command prints; it may fail, having printed it."""
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=seconds_max)
        return json.loads(ran.stdout)
    except subprocess.TimeoutExpired:
        raise Failure(f"{command[0]} does not come to an end") from None
    except json.JSONDecodeError:
        raise Failure(f"{' '.join(command)} failed: {(ran.stderr or ran.stdout).strip()}") from None
