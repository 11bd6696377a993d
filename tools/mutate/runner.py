"""Runs tests against mutants: which tests reach a mutant, and whether one of them fails."""

import concurrent.futures
import dataclasses
import os
import pathlib
import signal
import subprocess
import time

LEAST_SECONDS = 20  # time limit of a run, in addition to a multiple of its usual time
SLOWDOWN = 8


@dataclasses.dataclass
class Test:
    binary: str
    name: str
    seconds: float
    reaches: frozenset


class Recording:
    """The tests of a binary that pass without a mutant, with the mutants that they reach."""

    def __init__(self, build, binary, count, shards, limit=1800):
        self.tests = []
        self.failed = []
        self._build = pathlib.Path(build)
        self._limit = limit
        with concurrent.futures.ThreadPoolExecutor(shards) as pool:
            list(pool.map(lambda shard: self._record(binary, count, shard, shards), range(shards)))

    def _record(self, binary, count, shard, shards):
        stem = self._build / f"{pathlib.Path(binary).name}.{shard}"
        reached, record = stem.with_suffix(f".{shard}.reached"), stem.with_suffix(f".{shard}.txt")
        reached.write_bytes(bytes(max(count, 1)))
        record.write_text("")
        run([str(self._build / binary)], self._limit, {
            "WEIR_MUTANTS_REACHED": str(reached), "WEIR_MUTANTS_RECORD": str(record),
            "GTEST_TOTAL_SHARDS": str(shards), "GTEST_SHARD_INDEX": str(shard)})
        for line in record.read_text().splitlines():
            name, result, milliseconds, *numbers = line.split()
            if result == "passed":
                reaches = frozenset(map(int, numbers))
                self.tests.append(Test(binary, name, int(milliseconds) / 1000, reaches))
            elif result == "failed":
                self.failed.append(name)


def run(command, limit, environment):
    """Runs a command with a time limit. Returns its exit status, or None after the limit."""
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env=os.environ | sanitizer_options() | environment, start_new_session=True)
    try:
        return process.wait(limit)
    except subprocess.TimeoutExpired:
        return None
    finally:
        # The group also has the processes that the tests have started.
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()


def sanitizer_options():
    return {"ASAN_OPTIONS": "fast_unwind_on_malloc=1:symbolize=0", "UBSAN_OPTIONS": "symbolize=0"}


@dataclasses.dataclass
class Verdict:
    found: bool
    how: str  # the test that failed, "hang", or why no test could fail
    seconds: float = 0


def judge(build, number, tests):
    """Runs the tests that reach a mutant, binary by binary, until one fails."""
    begun = time.monotonic()
    mine = [each for each in tests if number in each.reaches]
    if not mine:
        return Verdict(False, "no test reaches it")
    for binary in dict.fromkeys(each.binary for each in mine):
        chosen = sorted((each for each in mine if each.binary == binary),
                        key=lambda each: each.seconds)
        for group in (chosen[:40], chosen[40:]):
            if not group:
                continue
            how = fails(build, binary, number, group)
            if how:
                return Verdict(True, how, time.monotonic() - begun)
    return Verdict(False, f"{len(mine)} tests reach it", time.monotonic() - begun)


def fails(build, binary, number, tests):
    """Returns how the tests fail with the mutant; empty if all pass."""
    limit = LEAST_SECONDS + SLOWDOWN * sum(each.seconds for each in tests)
    names = pathlib.Path(build) / f"mutant-{number}.flags"
    names.write_text("--gtest_filter=" + ":".join(each.name for each in tests) + "\n")
    status = run([str(pathlib.Path(build) / binary), f"--gtest_flagfile={names}",
                  "--gtest_fail_fast"], limit, {"WEIR_MUTANT": str(number)})
    names.unlink()
    if status is None:
        return f"{binary}: hang"
    return f"{binary}: status {status}" if status != 0 else ""
