"""Executes nginx on a free port, and prints the port when nginx accepts connections."""

import argparse
import os
import pathlib
import socket
import sys

import fetch

# Among the sources, the common part is not beside this file.
sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "shared"))
import starting


def reserve(port):
    """Returns a socket that reserves a free port for nginx, which shares the port."""
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    reserved.bind(("127.0.0.1", port))
    return reserved


def write_files(folder):
    folder.mkdir(exist_ok=True)
    for name, size in (("16k", 16 * 1024), ("1m", 1024 * 1024)):
        (folder / name).write_bytes(bytes(size))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="on 127.0.0.1; 0: any free one")
    parser.add_argument("--prefix", type=pathlib.Path, required=True,
                        help="folder for its configuration and files")
    parser.add_argument("--tls-cert", help="chain in PEM; without it, plain HTTP")
    parser.add_argument("--tls-key", help="key in PEM")
    parser.add_argument("--http2", action="store_true",
                        help="HTTP/2, without TLS by prior knowledge")
    options = parser.parse_args()

    reserved = reserve(options.port)
    port = reserved.getsockname()[1]
    configuration = options.prefix / "started.conf"
    text = (pathlib.Path(__file__).parent / "nginx.conf").read_text()
    certificate = (f"ssl_certificate {options.tls_cert}; ssl_certificate_key {options.tls_key};"
                   if options.tls_cert else "")
    for name, value in (("port", str(port)), ("ssl", " ssl" if certificate else ""),
                        ("http2", " http2" if options.http2 else ""),
                        ("certificate", certificate)):
        text = text.replace(f"@{name}@", value)
    configuration.write_text(text)
    write_files(options.prefix / "files")
    starting.prepare(port)
    # Stays open in nginx, so that the port stays reserved while nginx runs.
    reserved.set_inheritable(True)
    os.execv(fetch.program(), ["nginx", "-p", f"{options.prefix}/", "-c", str(configuration),
                               "-e", "stderr"])


if __name__ == "__main__":
    main()
