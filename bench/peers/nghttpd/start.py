"""Executes nghttpd on a free port, and prints the port when nghttpd accepts connections."""

import argparse
import os
import pathlib
import shutil
import socket
import sys

# Among the sources, the common part is not beside this file.
sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "shared"))
import starting

FILES = pathlib.Path(__file__).resolve().parent / "files"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="on 127.0.0.1; 0: any free one")
    parser.add_argument("--tls-cert", help="chain in PEM; without it, plain HTTP/2")
    parser.add_argument("--tls-key", help="key in PEM")
    options = parser.parse_args()
    port = options.port or free_port()
    FILES.mkdir(exist_ok=True)
    (FILES / "index.html").write_text("Hello nghttp2\n")
    starting.prepare(port)
    secure = [options.tls_key, options.tls_cert] if options.tls_cert else ["--no-tls"]
    os.execv(shutil.which("nghttpd"), ["nghttpd", "--address", "127.0.0.1", "--htdocs", str(FILES),
                                       str(port), *secure])


if __name__ == "__main__":
    main()
