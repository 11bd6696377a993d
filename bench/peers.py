"""Builds the peers: small programs in peers/, each on another project's server library.

A peer that cannot be built on this machine is left out by name, with the reason. It never makes a
benchmark fail. Sources are copied to a folder below the build tree and built there, so that no tool
leaves its files among the sources.
"""

import dataclasses
import os
import pathlib
import shutil
import subprocess

SOURCES = pathlib.Path(__file__).resolve().parent / "peers"
BUILD_SECONDS_MAX = 900
# Usual folders of toolchains that are not in the path.
MORE_PATHS = ("/usr/sbin", "/usr/local/go/bin", str(pathlib.Path.home() / ".cargo/bin"))


class Missing(Exception):
    """The reason why a peer is left out."""


def prepared(servers, folder, say):
    """Builds the peers. Returns the servers that can start, and {name: reason} of the others."""
    os.environ["PATH"] = os.pathsep.join([os.environ.get("PATH", os.defpath), *MORE_PATHS])
    folder = folder.resolve()
    ready, left_out = [], {}
    for server in servers:
        if not server.source:
            ready.append(server)
            continue
        try:
            ready.append(build(server, folder / server.source, say))
        except Missing as reason:
            left_out[server.name] = str(reason)
            say(f"without {server.name}: {reason}")
    return ready, left_out


def build(peer, home, say):
    """Builds a peer. Returns the peer with its build folder."""
    for tool in peer.tools:
        if not shutil.which(tool):
            raise Missing(f"{tool} is not installed")
    stamp = home / "built.txt"
    steps = "".join(f"{' '.join(step)}\n" for step in peer.steps)
    changed = [copy_sources(SOURCES / name, home) for name in (peer.source, "shared")]
    if any(changed) or not has_text(stamp, steps):
        stamp.unlink(missing_ok=True)
        log = home.parent / f"{peer.source}.log"
        with log.open("w") as output:
            for step in peer.steps:
                say(f"building {peer.name}: {' '.join(step)}")
                run(step, home, output, log, peer.library)
        stamp.write_text(steps)
    return dataclasses.replace(peer, home=home)


def has_text(file, text):
    return file.exists() and file.read_text() == text


def run(step, home, output, log, library):
    # Keeps npm from asking questions, and go from fetching a newer toolchain.
    environment = os.environ | {"GOTOOLCHAIN": "local", "CI": "true"}
    try:
        done = subprocess.run(step, cwd=home, env=environment, stdin=subprocess.DEVNULL,
                              stdout=output, stderr=subprocess.STDOUT, timeout=BUILD_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        raise Missing(f"{step[0]} took more than {BUILD_SECONDS_MAX} s, see {log}") from None
    if done.returncode != 0:
        needs = f"; it needs {library}" if library else ""
        raise Missing(f"`{' '.join(step)}` failed, see {log}{needs}")


def copy_sources(source, home):
    """Copies changed files. Returns true if a file has changed."""
    home.mkdir(parents=True, exist_ok=True)
    changed = False
    for file in source.rglob("*"):
        copy = home / file.relative_to(source)
        if file.is_dir():
            copy.mkdir(exist_ok=True)
        elif not copy.exists() or copy.read_bytes() != file.read_bytes():
            shutil.copy(file, copy)
            changed = True
    return changed
