"""Weir with the system's allocator and with others preloaded: a server that allocates nothing per
request should not care."""

import dataclasses
import pathlib
import subprocess

import measure
import works

IDS = ("B1", "B2", "B13")
LIBRARIES = {
    "mimalloc": "libmimalloc.so.2",
    "jemalloc": "libjemalloc.so.2",
    "tcmalloc": "libtcmalloc_minimal.so.4",
}


def path_of(library):
    """Where the loader finds it; None if it does not."""
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


def variants(server, say):
    found = [dataclasses.replace(server, name=f"{server.name} malloc")]
    for name, library in LIBRARIES.items():
        if path := path_of(library):
            found.append(dataclasses.replace(server, name=f"{server.name} {name}", preload=path))
        else:
            say(f"without {name}: there is no {library}")
    return found


def sections(servers, options, say):
    chosen = [variant for server in servers if server.kind == "weir" and server.name != "weir-poll"
              for variant in variants(server, say)]
    every = {work.id: dataclasses.replace(work, target=None) for work in works.WORKS}
    return [measure.ServedWork(every[identity], chosen, options) for identity in IDS]
