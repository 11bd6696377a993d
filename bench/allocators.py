"""Compares Weir with the system's allocator and with preloaded allocators. A server that allocates
nothing per request should show no difference."""

import dataclasses
import pathlib
import subprocess

import measure
import works

IDS = ("B1", "B2", "B13", "B15")
LIBRARIES = {
    "mimalloc": "libmimalloc.so.2",
    "jemalloc": "libjemalloc.so.2",
    "tcmalloc": "libtcmalloc_minimal.so.4",
}


def path_of(library):
    """Returns the path where the loader finds the library, or None."""
    for tool in ("ldconfig", "/sbin/ldconfig"):
        try:
            known = subprocess.run([tool, "-p"], capture_output=True, text=True).stdout
        except OSError:
            continue
        for line in known.splitlines():
            name, _, path = line.strip().partition(" => ")
            if name.split(" ")[0] == library and pathlib.Path(path).exists():
                return path
    return None


def variants(server, left_out):
    found = [dataclasses.replace(server, name=f"{server.name} malloc")]
    for name, library in LIBRARIES.items():
        if path := path_of(library):
            found.append(dataclasses.replace(server, name=f"{server.name} {name}", preload=path))
        else:
            left_out[name] = f"there is no {library}"
    return found


def sections(servers, options, left_out):
    """Returns the works to run. Adds each missing library to `left_out`, with the reason."""
    ours = [server for server in servers
            if server.kind == "weir" and server.name != "weir-poll" and not server.only]
    chosen = [variant for server in ours for variant in variants(server, left_out)]
    every = {work.id: dataclasses.replace(work, target=None) for work in works.WORKS}
    return [measure.ServedWork(every[identity], chosen, options) for identity in IDS]
