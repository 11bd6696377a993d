"""Runs tests against mutants: which tests reach a mutant, and whether one of them fails."""

import concurrent.futures
import dataclasses
import json
import math
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

import deadline

LEAST_SECONDS = 20  # time limit of a run, in addition to a multiple of its usual time
SLOWDOWN = 8
SINGLE_SECONDS_MAX = 20  # of the tests that run alone, the shortest first
ABOVE_SECONDS_MAX = 30  # of the tests of one binary above the floor, the shortest first
SEEDS = 20  # of each scenario of ./dev simulate
FUZZ_SECONDS = 60


@dataclasses.dataclass
class Test:
    binary: str
    name: str
    seconds: float
    reaches: frozenset


class Recording:
    """The tests of a binary that pass without a mutant, with the mutants that they reach."""

    def __init__(self, build, binary, count, shards, limit):
        self.tests = []
        self.failed = []
        self.broken = []  # how shards ended that have not run all of their tests
        self._build = pathlib.Path(build)
        self._limit = limit
        with concurrent.futures.ThreadPoolExecutor(shards) as pool:
            list(pool.map(lambda shard: self._record(binary, count, shard, shards), range(shards)))

    def _record(self, binary, count, shard, shards):
        stem = self._build / f"{pathlib.Path(binary).name}.{shard}"
        reached, record = stem.with_suffix(f".{shard}.reached"), stem.with_suffix(f".{shard}.txt")
        reached.write_bytes(bytes(count))
        record.write_text("")
        status = run([str(self._build / binary)], self._limit, {
            "WEIR_MUTANTS_REACHED": str(reached), "WEIR_MUTANTS_RECORD": str(record),
            "GTEST_TOTAL_SHARDS": str(shards), "GTEST_SHARD_INDEX": str(shard)})
        lines = record.read_text().splitlines()
        if status not in (0, 1):  # neither all tests passed nor one failed
            how = "time limit" if status is None else f"status {status}"
            self.broken.append(f"{how} after {lines[-1].split()[0] if lines else 'no test'}")
        for line in lines:
            name, result, milliseconds, *numbers = line.split()
            if result == "passed":
                reaches = frozenset(map(int, numbers))
                self.tests.append(Test(binary, name, int(milliseconds) / 1000, reaches))
            elif result == "failed":
                self.failed.append(name)


def recorded(build, binary, count, jobs, limit):
    """Returns the tests of a binary, the names of the tests that fail without a mutant, and how
    shards ended before their last test. Runs the tests only if the binary has changed since the
    last complete run."""
    program = pathlib.Path(build) / binary
    kept = program.with_suffix(".recording.json")
    status = program.stat()
    stamp = [status.st_mtime_ns, status.st_size, count]
    if kept.exists():
        known = json.loads(kept.read_text())
        if known["stamp"] == stamp:
            tests = [Test(binary, name, seconds, frozenset(reaches))
                     for name, seconds, reaches in known["tests"]]
            return tests, known["failed"], []
    recording = Recording(build, binary, count, jobs, limit)
    if not recording.broken:
        tests = [(each.name, each.seconds, sorted(each.reaches)) for each in recording.tests]
        kept.write_text(json.dumps({"stamp": stamp, "failed": recording.failed, "tests": tests}))
    return recording.tests, recording.failed, recording.broken


def run(command, limit, environment, folder=None):
    """Runs a command with a time limit. Returns its exit status, or None after the limit. Raises
    OutOfTime at the end of the run of the tool."""
    left = deadline.OF_RUN.left()
    # If this process is killed, the command ends too, and so do the commands that it runs this way.
    process = subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", "--", *command], stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env=os.environ | sanitizer_options() | environment, start_new_session=True, cwd=folder)
    try:
        return process.wait(limit if left is None else min(limit, left))
    except subprocess.TimeoutExpired:
        deadline.OF_RUN.left()
        return None
    finally:
        # The group also has the processes that the tests have started.
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()


def sanitizer_options():
    """Returns the environment of the sanitizers. They end a program with another status than failed
    tests do."""
    return {"ASAN_OPTIONS": "fast_unwind_on_malloc=1:symbolize=0:exitcode=99",
            "UBSAN_OPTIONS": "symbolize=0:exitcode=99", "TSAN_OPTIONS": "symbolize=0"}


@dataclasses.dataclass
class Verdict:
    found: bool
    how: str  # the test that failed, "hang", or why no test could fail


def judge(build, number, tests, seconds_max=math.inf):
    """Runs the tests that reach a mutant, binary by binary, until one fails. `seconds_max` limits
    the usual time of the tests of one binary; the longest tests are left out."""
    mine = [each for each in tests if number in each.reaches]
    if not mine:
        return Verdict(False, "no test reaches it")
    for binary in dict.fromkeys(each.binary for each in mine):
        chosen = within([each for each in mine if each.binary == binary], seconds_max)
        for group in (chosen[:40], chosen[40:]):
            if not group:
                continue
            how = fails(build, binary, number, group)
            if how:
                return Verdict(True, how)
    return Verdict(False, f"{len(mine)} tests reach it")


def within(tests, seconds_max):
    """Returns the shortest tests, the shortest first, whose usual time is within a limit."""
    chosen, seconds = [], 0
    for each in sorted(tests, key=lambda each: each.seconds):
        seconds += each.seconds
        if seconds > seconds_max and chosen:
            break
        chosen.append(each)
    return chosen


def fails(build, binary, number, tests):
    """Returns how the tests fail with the mutant, or without one; empty if all pass."""
    limit = LEAST_SECONDS + SLOWDOWN * sum(each.seconds for each in tests)
    with tempfile.NamedTemporaryFile("w", dir=build, suffix=".flags") as names:
        names.write("--gtest_filter=" + ":".join(each.name for each in tests) + "\n")
        names.flush()
        status = run([str(pathlib.Path(build) / binary), f"--gtest_flagfile={names.name}",
                      "--gtest_fail_fast"], limit,
                     {} if number is None else {"WEIR_MUTANT": str(number)})
    if status is None:
        return f"{binary}: hang"
    return f"{binary}: status {status}" if status != 0 else ""


class Tests:
    """Finds mutants with the tests of their floor, then with those of the floors above."""

    preset = "asan"
    finds_by_floor = True

    def __init__(self, floor_only):
        self._floor_only = floor_only
        self._tests = {}
        self.name = "tests-of-floor" if floor_only else "tests"

    def recorded(self, target):
        return self._tests[target]

    def targets(self, room):
        return [room.own] if self._floor_only else [room.own, *room.above]

    def record(self, build, targets, count, jobs, limit):
        """Runs the tests without a mutant. Returns a message for each binary with failed tests."""
        messages = []
        for target in targets:
            tests, failed, broken = recorded(build, f"tests/{target}", count, jobs, limit)
            self._tests[target] = tests
            if broken:
                messages.append(f"{target}: later tests are left out: {'; '.join(broken)}")
            if failed:
                messages.append(f"{target}: left out, they fail without a mutant: "
                                f"{' '.join(failed)}")
        return messages

    def judge(self, build, room, number):
        own = judge(build, number, self._tests[room.own])
        if own.found:
            return {"found": "own", "how": own.how}
        if self._floor_only:
            return {"found": "no", "how": own.how}
        tests = [each for binary in room.above for each in self._tests[binary]]
        above = judge(build, number, tests, ABOVE_SECONDS_MAX)
        how = above.how if above.found else f"floor: {own.how}; above: {above.how}"
        return {"found": "above" if above.found else "no", "how": how}

    def summary(self, own, above, total):
        floor = f"{own / total:.2f} found by the tests of the floor"
        return floor if self._floor_only else f"{floor}, {(own + above) / total:.2f} by all tests"


class SingleTests:
    """Finds mutants with the tests of their floor in another build, each in a process of its own.
    The thread sanitizer does not allow all tests in one process. Uses the recording of `tests`."""

    def __init__(self, tests):
        self._tests = tests

    def targets(self, room):
        return [room.own]

    def record(self, build, targets, count, jobs, limit):
        return []

    def judge(self, build, room, number):
        mine = [each for each in self._tests.recorded(room.own) if number in each.reaches]
        for test in within(mine, SINGLE_SECONDS_MAX):
            how = fails(build, test.binary, number, [test])
            if how and not fails(build, test.binary, None, [test]):
                where = f"{test.name} in {pathlib.Path(build).name}"
                return {"found": "own", "how": f"{how} of {where}"}
        return {"found": "no", "how": f"{len(mine)} tests reach it"}


class Programs:
    """Finds mutants with programs that fail, each alone."""

    finds_by_floor = False

    def __init__(self):
        self._reached = {}

    def record(self, build, targets, count, jobs, limit):
        """Runs the programs without a mutant. Returns a message for each program that fails."""
        messages = []
        for target in targets:
            reached = pathlib.Path(build) / f"{target}.reached"
            reached.write_bytes(bytes(count))
            begun = time.monotonic()
            how = self._run(build, target, limit, {"WEIR_MUTANTS_REACHED": str(reached)})
            seconds = time.monotonic() - begun
            numbers = {number for number, byte in enumerate(reached.read_bytes()) if byte}
            self._reached[target] = (set() if how else numbers), seconds
            if how:
                messages.append(f"{target}: left out, it fails without a mutant: {how}")
        return messages

    def judge(self, build, room, number):
        hows = []
        for target in self.targets(room):
            numbers, seconds = self._reached[target]
            if number not in numbers:
                hows.append(f"{target} does not reach it")
                continue
            how = self._run(build, target, LEAST_SECONDS + SLOWDOWN * seconds,
                            {"WEIR_MUTANT": str(number)})
            if how:
                return {"found": "own", "how": how}
            hows.append(f"{target} reaches it")
        return {"found": "no", "how": "; ".join(hows)}

    def _run(self, build, target, limit, environment):
        with tempfile.TemporaryDirectory() as scratch:
            status = run(self.command(pathlib.Path(build), target, scratch), limit, environment,
                         scratch)
        if status is None:
            return f"{target}: hang"
        return f"{target}: status {status}" if status != 0 else ""

    def summary(self, own, above, total):
        return f"{own / total:.2f} found by {self.what} alone"


class Simulation(Programs):
    """Finds mutants with ./dev simulate."""

    name = "simulate"
    preset = "asan"
    what = f"./dev simulate --seeds {SEEDS}"

    def targets(self, room):
        return ["simulate"]

    def command(self, build, target, scratch):
        return [str(build / "bin" / "simulate"), "--seeds", str(SEEDS)]


class Fuzzers(Programs):
    """Finds mutants with the fuzzers of a room."""

    name = "fuzz"
    preset = "fuzz"
    what = f"{FUZZ_SECONDS} s of each fuzzer"

    def __init__(self, root):
        super().__init__()
        self._root = pathlib.Path(root)

    def targets(self, room):
        return [f"fuzz_{each}" for each in room.fuzzers]

    def command(self, build, target, scratch):
        corpus = pathlib.Path(scratch) / "corpus"
        shutil.copytree(self._root / "fuzz" / "corpus" / target.removeprefix("fuzz_"), corpus)
        return [str(build / "fuzz" / target), f"-max_total_time={FUZZ_SECONDS}", "-timeout=10",
                str(corpus)]
