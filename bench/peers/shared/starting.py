"""The common part of the scripts that execute an installed server. peers.py copies it."""

import os
import resource
import socket
import time

SECONDS_MAX = 10


def prepare(port):
    """Allows many files, and prints the port as soon as the program that this process executes next
    listens on it."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    # Uses a grandchild, so that the server's processes do not include it.
    if (child := os.fork()) == 0:
        if os.fork() == 0:
            announce(port)
        os._exit(0)
    os.waitpid(child, 0)


def announce(port):
    """Prints the port when a server listens on it."""
    deadline = time.monotonic() + SECONDS_MAX
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=SECONDS_MAX).close()
        except ConnectionRefusedError:
            time.sleep(0.01)
        else:
            print(f"listening on 127.0.0.1:{port}", flush=True)
            return
