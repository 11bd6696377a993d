"""Limits a server to a share of a processor if the generator cannot saturate a whole one."""

import contextlib
import os
import pathlib
import time

PERIOD_US = 10_000  # upper bound of a server's pause by throttling
ROOT = pathlib.Path("/sys/fs/cgroup")


def _limits(folder, share):
    """Returns {file: value} for a share, for control groups of version 1 or 2.

    The weight is ten times the default, so that other processes do not reduce the share.
    """
    quota = str(int(PERIOD_US * share))
    if (folder / "cpu.cfs_quota_us").exists():
        return {"cpu.cfs_period_us": str(PERIOD_US), "cpu.cfs_quota_us": quota,
                "cpu.shares": "10240"}
    return {"cpu.max": f"{quota} {PERIOD_US}", "cpu.weight": "1000"}


def possible():
    """Returns true if this process may create control groups."""
    with limited(0.5) as (share, _):
        return share < 1


@contextlib.contextmanager
def limited(share):
    """Yields the available share, and a function that limits a process to it. The share is 1 if
    control groups are not permitted."""
    folder = None
    if share < 1:
        parent = ROOT / "cpu" if (ROOT / "cpu").is_dir() else ROOT
        folder = parent / f"weir-bench-{os.getpid()}"
        try:
            folder.mkdir()
            for name, value in _limits(folder, share).items():
                (folder / name).write_text(value)
        except OSError:  # not permitted: the server is reported as not saturated
            with contextlib.suppress(OSError):
                folder.rmdir()
            folder = None
    if folder is None:
        yield 1, lambda process: None
        return
    try:
        yield share, lambda process: add(folder, process)
    finally:
        remove(folder)


def add(folder, process):
    with contextlib.suppress(ProcessLookupError):  # it has just ended
        (folder / "cgroup.procs").write_text(str(process))


def remove(folder):
    """Removes the group. Retries, because an ended process leaves the group with a delay."""
    for _ in range(50):
        try:
            return folder.rmdir()
        except OSError:
            time.sleep(0.02)
