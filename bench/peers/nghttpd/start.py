"""Executes nghttpd on a free port, and prints the port when nghttpd accepts connections."""

import argparse
import os
import pathlib
import resource
import shutil
import socket
import time

SECONDS_MAX = 10
FILES = pathlib.Path(__file__).resolve().parent / "files"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def announce(port):
    """Prints the port when nghttpd listens on it."""
    deadline = time.monotonic() + SECONDS_MAX
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=SECONDS_MAX).close()
        except ConnectionRefusedError:
            time.sleep(0.01)
        else:
            print(f"listening on 127.0.0.1:{port}", flush=True)
            return


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="on 127.0.0.1; 0: any free one")
    parser.add_argument("--tls-cert", help="chain in PEM; without it, plain HTTP/2")
    parser.add_argument("--tls-key", help="key in PEM")
    options = parser.parse_args()
    port = options.port or free_port()
    FILES.mkdir(exist_ok=True)
    (FILES / "index.html").write_text("Hello nghttp2\n")
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))

    # Uses a grandchild, so that the server's processes do not include it.
    if (child := os.fork()) == 0:
        if os.fork() == 0:
            announce(port)
        return
    os.waitpid(child, 0)
    secure = [options.tls_key, options.tls_cert] if options.tls_cert else ["--no-tls"]
    os.execv(shutil.which("nghttpd"), ["nghttpd", "--address", "127.0.0.1", "--htdocs", str(FILES),
                                       str(port), *secure])


if __name__ == "__main__":
    main()
