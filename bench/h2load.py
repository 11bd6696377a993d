"""Runs h2load of nghttp2, which asks a server by HTTP/2 or HTTP/1.1, and reads its report."""

import re
import subprocess

from serving import Failure, on_processors

SECONDS_MAX = 120
# The suffixes of its durations, in seconds.
UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1}
REQUESTS = re.compile(r"^requests: (\d+) total, \d+ started, (\d+) done, (\d+) succeeded, "
                      r"(\d+) failed, (\d+) errored, (\d+) timeout", re.MULTILINE)
STATUSES = re.compile(r"^status codes: (\d+) 2xx, (\d+) 3xx", re.MULTILINE)
FINISHED = re.compile(r"^finished in ([\d.]+)(us|ms|s),", re.MULTILINE)
DATA = re.compile(r"^traffic: .*\((\d+)\) data$", re.MULTILINE)


def command(url, requests, connections, streams, http1=False, upload=None):
    """Returns the command line for a number of requests, shared by the connections."""
    return ["h2load", "--requests", str(requests), "--clients", str(connections),
            "--max-concurrent-streams", str(streams), *(["--h1"] if http1 else []),
            *(["--data", str(upload)] if upload else []), url]


def run(processor, words):
    """Runs h2load on a processor. Returns its numbers."""
    try:
        ran = subprocess.run(on_processors([processor], words), stdin=subprocess.DEVNULL,
                             capture_output=True, text=True, timeout=SECONDS_MAX)
    except subprocess.TimeoutExpired:
        raise Failure("h2load did not end in time") from None
    return numbers(ran.stdout, ran.stderr)


def numbers(report, reason=""):
    """Returns the numbers of a report. A request without a complete 2xx response is an error."""
    found = [pattern.search(report) for pattern in (REQUESTS, STATUSES, FINISHED, DATA)]
    if not all(found):
        raise Failure(f"h2load failed: {(reason or report).strip()}")
    requests, statuses, finished, data = found
    total, done, succeeded, *_ = map(int, requests.groups())
    return {"requests": total, "errors": total - min(done, succeeded, int(statuses.group(1))),
            "seconds": float(finished.group(1)) * UNITS[finished.group(2)],
            "data": int(data.group(1))}
