"""Chooses what CI runs in part: test binaries of some builds, and long tests of scripts."""

import re

import tables  # first: it lets tools/check be found
import changed
import floors
import graph

CANDIDATES = re.compile(r"^part_(release|gcc|tsan)=\(([^)]*)\)", re.MULTILINE)


def candidates(root):
    """Returns {preset: test binaries} that ./dev test --ci runs beside the build asan."""
    return {preset: binaries.split()
            for preset, binaries in CANDIDATES.findall((root / "dev").read_text())}


def choose(paths, all_lanes, include_graph):
    """Returns {preset: {binary: reason}} of the binaries whose floors the change reaches."""
    for path in paths:
        if tables.TOOLCHAIN.match(path) or tables.PLANNER.match(path):
            return everything(all_lanes, f"{path} can change what each lane runs")
    users = {}  # by binary: the first changed path that reaches it, and the file that uses it
    for path in paths:
        for floor, user in include_graph.floors_reached(path).items():
            users.setdefault(f"weir_{floor}_test", (path, user))
    lanes = {}
    for preset, binaries in all_lanes.items():
        lanes[preset] = {}
        for binary in binaries:
            if binary in users:
                path, user = users[binary]
                lanes[preset][binary] = f"{path} changed" + (
                    "" if floors.floor_of(path) == floors.floor_of(user) else
                    f", which {user} uses")
    return lanes


def left_out(paths):
    """Returns the tests of scripts that CI leaves out, because no changed path reaches them."""
    return [test for test, reached in tables.SCRIPTS.items()
            if not any(reached.match(path) for path in paths)]


def everything(all_lanes, reason):
    return {preset: dict.fromkeys(binaries, reason) for preset, binaries in all_lanes.items()}


def since(root, commit):
    """Returns {preset: {binary: reason}} of what changed since a commit, and the tests of scripts
    that are left out."""
    all_lanes = candidates(root)
    try:
        change = changed.find(root, commit)
    except changed.UnknownCommit as error:
        return everything(all_lanes, f"the change is unknown: {error}"), []
    return choose(change.paths, all_lanes, graph.Graph(root)), left_out(change.paths)


def lines(lanes, left=()):
    """Returns a line `PRESET BINARY...` for each preset that has work, and a line `left TEST...`
    if tests are left out."""
    return [" ".join([preset, *binaries]) for preset, binaries in lanes.items() if binaries] + (
        [" ".join(["left", *left])] if left else [])


def reasons(lanes, all_lanes, left=()):
    """Returns a line for each candidate: why it runs, or that it does not."""
    return [f"scripts: {test}: not reached" for test in left] + [
        f"{preset}: {binary}: {lanes[preset].get(binary, 'not reached')}"
        for preset, binaries in all_lanes.items() for binary in binaries]
