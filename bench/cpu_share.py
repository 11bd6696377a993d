"""Less than a whole processor for a server, where the generator alone cannot keep one busy."""

import contextlib
import os
import pathlib
import time

PERIOD_US = 10_000  # short, so that a server is never held up for longer than this
ROOT = pathlib.Path("/sys/fs/cgroup")


def _limits(folder, share):
    """The files to write for a share, of the old kind of control group or the new.

    With ten times the usual weight, so that the share is had whatever else runs.
    """
    quota = str(int(PERIOD_US * share))
    if (folder / "cpu.cfs_quota_us").exists():
        return {"cpu.cfs_period_us": str(PERIOD_US), "cpu.cfs_quota_us": quota,
                "cpu.shares": "10240"}
    return {"cpu.max": f"{quota} {PERIOD_US}", "cpu.weight": "1000"}


def possible():
    """Whether this machine lets us have control groups."""
    with limited(0.5) as (share, _):
        return share < 1


@contextlib.contextmanager
def limited(share):
    """Yields the share that can be had here, and a function that limits a process to it."""
    folder = None
    if share < 1:
        parent = ROOT / "cpu" if (ROOT / "cpu").is_dir() else ROOT
        folder = parent / f"weir-bench-{os.getpid()}"
        try:
            folder.mkdir()
            for name, value in _limits(folder, share).items():
                (folder / name).write_text(value)
        except OSError:  # not permitted: the server then shows as not saturated
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
    """A process that has ended may still be leaving the group."""
    for _ in range(50):
        try:
            return folder.rmdir()
        except OSError:
            time.sleep(0.02)
