"""Plants one fault at a time in the sources of a room and says which the tests find.

    mutate.py [--room http/detail/h1] [--count 50] [--seed S] [--since COMMIT] [--only KEY...]
              [--minutes N] [--floor-only]

Without --room it takes each floor in turn, and the command-line tool.

The faults are planted in a copy of the repository, build/mutate/tree, in which all drawn mutants of
a file are compiled together. An environment variable selects one of them at run time. The exit
status is 0 unless the tool itself fails: the scores are printed, not judged.
"""

import argparse
import collections
import concurrent.futures
import hashlib
import json
import math
import multiprocessing
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "check"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from clang import cindex  # noqa: E402

import floors  # noqa: E402
import operators  # noqa: E402
import runner  # noqa: E402
import schema  # noqa: E402
import tree as trees  # noqa: E402

OTHER_ROOMS = {"tools/weir": "weir_tool_test", "tools/simulate": "simulate_tool_test"}
SYSTEM_TESTS = ["weir_tool_test", "simulate_tool_test", "weir_system_test"]
HEADERS_OF_CLANG = "/usr/lib/llvm-19/lib/clang/19/include"
RECORDING_SECONDS_MAX = 1800  # of the tests of one binary
SAMPLES_MAX = 4  # sources that are compiled to compare the object code of a header's mutant


def progress(text):
    end = "\r" if sys.stderr.isatty() else "\n"
    if sys.stderr.isatty():
        print(f"\033[K{text}", end=end, file=sys.stderr, flush=True)
    elif not hasattr(progress, "last") or time.monotonic() > progress.last + 10:
        progress.last = time.monotonic()
        print(text, end=end, file=sys.stderr, flush=True)


class Room:
    """The sources of a room and the test binaries that see them, the room's own floor first."""

    def __init__(self, name, paths):
        self.name = name.rstrip("/")
        self.prefix = self.name if self.name.startswith("tools/") else f"weir/{self.name}"
        self.paths = [path for path in paths if self._holds(path)]
        ranks = list(floors.FLOORS)
        floor = self.name.split("/")[0]
        if self.name.startswith("tools/"):
            own = next((binary for prefix, binary in OTHER_ROOMS.items()
                        if self.name.startswith(prefix)), None)
            above = [each for each in SYSTEM_TESTS if each != own]
        else:
            own = f"weir_{floor}_test" if floor in ranks else None
            later = ranks[ranks.index(floor) + 1:] if floor in ranks else []
            above = [f"weir_{each}_test" for each in later] + SYSTEM_TESTS
        self.own = own
        self.above = [each for each in above if each not in ("weir_tls_test",)]

    def _holds(self, path):
        return (path.startswith(self.prefix + "/") and path.endswith((".cpp", ".hpp")) and
                not path.endswith("_test.cpp") and "/test/" not in path)


def flags_of(root):
    return ["-std=c++2b", "-D_GLIBCXX_ASSERTIONS", f"-I{root}", f"-I{HEADERS_OF_CLANG}", "-w"]


def find_in(arguments):
    """Returns the mutants of one file. Runs in a process of its own: libclang keeps its memory."""
    root, path, flags = arguments
    name = str(pathlib.Path(root) / path)
    options = cindex.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD
    unit = cindex.Index.create().parse(name, args=["-x", "c++", *flags], options=options)
    errors = [str(each) for each in unit.diagnostics if each.severity >= 3]
    if errors:
        return path, [], errors[0]
    return path, operators.Finder(unit, path, name).mutants(), None


def changed_lines(root, commit):
    """Returns {path: set of lines} that changed since a commit."""
    text = subprocess.run(["git", "-C", str(root), "diff", "-U0", "--no-color", commit, "--"],
                          check=True, capture_output=True, text=True).stdout
    lines, path = collections.defaultdict(set), None
    for line in text.splitlines():
        if line.startswith("+++ b/"):
            path = line[6:]
        elif found := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line):
            first, count = int(found[1]), int(found[2] or 1)
            lines[path].update(range(first, first + count))
    return lines


def only(mutants, keys):
    """Returns the mutants with one of the keys; all of them if there are no keys."""
    return [each for each in mutants if not keys or each.key in keys]


def draw(mutants, seed):
    """Returns the mutants in an order that the seed determines, each operator in turn."""
    source = random.Random(seed)
    groups = collections.defaultdict(list)
    for each in sorted(mutants, key=lambda each: (each.operator, each.key)):
        groups[each.operator].append(each)
    for group in groups.values():
        source.shuffle(group)
    order = []
    while any(groups.values()):
        names = [name for name in sorted(groups) if groups[name]]
        source.shuffle(names)
        order += [groups[name].pop() for name in names]
    return order


class Results:
    """The verdicts of earlier runs, by mutant and by the content of the sources and tests."""

    def __init__(self, path, digest):
        self._path = path
        self._digest = digest
        self._all = json.loads(path.read_text()) if path.exists() else {}

    def get(self, mutant):
        return self._all.get(f"{self._digest} {mutant.key}")

    def put(self, mutant, verdict):
        self._all[f"{self._digest} {mutant.key}"] = verdict
        scratch = self._path.with_suffix(".new")
        scratch.write_text(json.dumps(self._all, indent=0))
        scratch.replace(self._path)


def digest_of(root, paths):
    digest = hashlib.sha256()
    for path in sorted(paths):
        if path.endswith((".cpp", ".hpp", ".txt", ".cmake")):
            digest.update(path.encode() + b"\0" + (root / path).read_bytes())
    return digest.hexdigest()[:16]


class Session:
    """One run of the tool over one room."""

    def __init__(self, options, root, room, end):
        self._options = options
        self._root = root
        self._jobs = os.cpu_count() or 1
        self._tree = trees.Tree(root, root / "build" / "mutate" / "tree", self._jobs)
        paths = self._tree.files()
        self._room = Room(room, paths)
        if not self._room.paths or self._room.own is None:
            raise SystemExit(f"mutate: no such room: {room}")
        self._binaries = [self._room.own] + ([] if options.floor_only else self._room.above)
        self._folder = root / "build" / "mutate"
        self._folder.mkdir(parents=True, exist_ok=True)
        self._results = Results(self._folder / "results.json",
                                digest_of(root, paths) + ("-floor" if options.floor_only else ""))
        self._uncounted = collections.Counter()
        self._order = []
        self._end = end

    def run(self):
        everything = self._find()
        if not everything:
            return
        self._order = draw(everything, self._options.seed)
        print(f"mutate: {self._room.prefix}: {len(everything)} mutants, "
              f"{min(self._options.count, len(everything))} drawn with seed {self._options.seed}")
        verdicts = {}
        try:
            while len(verdicts) < self._options.count and self._order:
                batch = self._next_batch(self._options.count - len(verdicts))
                self._judge_batch(batch, verdicts)
        finally:
            self._report(verdicts)

    def print_drawn(self):
        for mutant in draw(self._find(), self._options.seed)[:self._options.count]:
            print(mutant.key, mutant.text())

    def _find(self):
        flags = flags_of(self._root)
        lines = changed_lines(self._root, self._options.since) if self._options.since else None
        paths = [path for path in self._room.paths if lines is None or path in lines]
        jobs = [(str(self._root), path, flags) for path in paths]
        mutants = []
        with multiprocessing.Pool(self._jobs, maxtasksperchild=20) as pool:
            for done, (path, found, error) in enumerate(pool.imap_unordered(find_in, jobs), 1):
                progress(f"mutate: [{done}/{len(jobs)}] parsing")
                if error:
                    print(f"mutate: {path} is left out: {error}", file=sys.stderr)
                mutants += [each for each in found if lines is None or each.line in lines[path]]
        return only(mutants, self._options.only)

    def _next_batch(self, count):
        batch, self._order = self._order[:count], self._order[count:]
        return batch

    def _judge_batch(self, batch, verdicts):
        """Adds {mutant: verdict} of the mutants that count to `verdicts`."""
        fresh = []
        for mutant in batch:
            known = self._results.get(mutant)
            if known is None:
                fresh.append(mutant)
            elif known["found"] == "uncounted":
                self._uncounted[known["how"]] += 1
            else:
                verdicts[mutant] = known
        fresh, numbers = self._build(fresh)
        if not numbers:
            return
        for mutant, verdict in self._run_tests(numbers):
            reason = self._uncounted_because(mutant) if verdict["found"] == "no" else None
            if reason:
                verdict = {"found": "uncounted", "how": reason}
                self._uncounted[reason] += 1
            else:
                verdicts[mutant] = verdict
            self._results.put(mutant, verdict)

    def _build(self, mutants):
        """Compiles the mutants together. Returns those that compile, and their numbers."""
        while True:
            kept = []
            for path in {each.path for each in mutants}:
                kept += schema.without_overlaps([each for each in mutants if each.path == path])
            self._order = [each for each in mutants if each not in kept] + self._order
            mutants = kept
            numbers = {each: number for number, each in enumerate(mutants)}
            if not numbers:
                return mutants, numbers
            self._tree.write(numbers, len(numbers))
            self._tree.configure()
            lines = self._tree.compile(self._binaries, lambda text: progress(f"mutate: {text}"),
                                       self._end)
            if not lines:
                return mutants, numbers
            wrong = set()
            for path, line in lines:
                wrong |= schema.numbers_at((self._tree.folder / path).read_bytes(), line)
            if not wrong:
                raise trees.BuildFailed(f"errors outside mutants: {sorted(lines)[:5]}")
            for mutant in [each for each in mutants if numbers[each] in wrong]:
                self._uncounted["do not compile"] += 1
                self._results.put(mutant, {"found": "uncounted", "how": "do not compile"})
            mutants = [each for each in mutants if numbers[each] not in wrong]

    def _run_tests(self, numbers):
        build = self._tree.build
        own, above = [], []
        for binary in self._binaries:
            progress(f"mutate: recording {binary}")
            left = self._end - time.monotonic()
            recording = runner.Recording(build, f"tests/{binary}", len(numbers), self._jobs,
                                         max(0, min(left, RECORDING_SECONDS_MAX)))
            if time.monotonic() > self._end:
                raise trees.OutOfTime
            (own if binary == self._room.own else above).extend(recording.tests)
            if recording.failed:
                print(f"mutate: {binary}: left out, they fail without a mutant: "
                      f"{' '.join(recording.failed)}", file=sys.stderr)
        begun = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(self._jobs) as pool:
            waiting = {pool.submit(judge_twice, build, number, own, above): mutant
                       for mutant, number in numbers.items()}
            for done, future in enumerate(concurrent.futures.as_completed(waiting), 1):
                if time.monotonic() > self._end:
                    pool.shutdown(wait=False, cancel_futures=True)
                    raise trees.OutOfTime
                left = (time.monotonic() - begun) / done * (len(waiting) - done)
                progress(f"mutate: [{done}/{len(waiting)}] tested, {left / 60:.0f} min left")
                yield waiting[future], future.result()

    def _uncounted_because(self, mutant):
        """Returns why a mutant does not count if it is compiled alone, at -O2; None if it does."""
        code = (self._root / mutant.path).read_bytes()
        planted = schema.plant(code, mutant)
        with tempfile.TemporaryDirectory() as folder:
            target = pathlib.Path(folder) / mutant.path
            target.parent.mkdir(parents=True)
            for source in self._samples(mutant.path):
                objects = []
                for content in (code, planted):
                    target.write_bytes(content)
                    objects.append(self._object(folder, source))
                if objects[1] is None:  # the compiler evaluates the code, too
                    return "do not compile"
                if objects[0] != objects[1]:
                    return None
        return "same object code"

    def _samples(self, path):
        """Returns sources whose object code depends on a file, the nearest first."""
        if path.endswith(".cpp"):
            return [path]
        include = f'#include "{path}"'
        sources = [each for each in self._tree.files()
                   if each.endswith(".cpp") and each.startswith(("weir/", "tests/"))]
        using = [each for each in sources if include in (self._root / each).read_text()]
        using.sort(key=lambda each: (-len(os.path.commonprefix([each, path])), each))
        return using[:SAMPLES_MAX]

    def _object(self, folder, source):
        name = pathlib.Path(folder) / source
        if not name.exists():
            name = self._root / source
        output = pathlib.Path(folder) / "object.o"
        command = ["clang++-19", "-O2", "-c", f"-I{folder}", *flags_of(self._root), str(name), "-o",
                   str(output)]
        compiled = subprocess.run(command, capture_output=True, check=False)
        return output.read_bytes() if compiled.returncode == 0 else None

    def _report(self, verdicts):
        explained = explanations(self._root)
        own = sum(each["found"] == "own" for each in verdicts.values())
        above = sum(each["found"] == "above" for each in verdicts.values())
        survivors = [mutant for mutant, each in verdicts.items() if each["found"] == "no"]
        for mutant in sorted(survivors, key=lambda each: (each.path, each.line)):
            reason = explained.get(mutant.key)
            note = f"explained: {reason}" if reason else verdicts[mutant]["how"]
            print(f"survived {mutant.key} {mutant.text()} ({note})")
        for mutant in sorted(verdicts, key=lambda each: (each.path, each.line)):
            if verdicts[mutant]["found"] == "above":
                print(f"found above {mutant.key} {mutant.text()} ({verdicts[mutant]['how']})")
        total = max(1, len(verdicts))
        print(f"{self._room.prefix}: {len(verdicts)} mutants, seed {self._options.seed}: "
              f"{own / total:.2f} found by the tests of the floor"
              + ("" if self._options.floor_only else f", {(own + above) / total:.2f} by all tests"))
        reasons = sum(mutant.key in explained for mutant in survivors)
        if reasons:
            print(f"  explained in docs/mutants.md: {reasons} of {len(survivors)} survivors")
        for reason, count in sorted(self._uncounted.items()):
            print(f"  not counted: {count} {reason}")


def judge_twice(build, number, own, above):
    """Runs the tests of the floor, then those of the floors above."""
    verdict = runner.judge(build, number, own)
    if verdict.found:
        return {"found": "own", "how": verdict.how}
    higher = runner.judge(build, number, above)
    if higher.found:
        return {"found": "above", "how": higher.how}
    return {"found": "no", "how": verdict.how if not above else
            f"floor: {verdict.how}; above: {higher.how}"}


def explanations(root):
    """Returns {key: reason} of the survivors that docs/mutants.md explains."""
    path = root / "docs" / "mutants.md"
    if not path.exists():
        return {}
    rows = re.findall(r"^\|([ `,0-9a-f]*)\|[^|]*\|([^|]*)\|", path.read_text(), re.MULTILINE)
    return {key: reason.strip() for keys, reason in rows
            for key in re.findall("[0-9a-f]{12}", keys)}


def main():
    parser = argparse.ArgumentParser(description="Plants faults and runs the tests.")
    parser.add_argument("--room", help="a floor or room, such as http/detail/h1 (default: all)")
    parser.add_argument("--count", type=int, default=50, help="mutants to test (default: 50)")
    parser.add_argument("--seed", type=int, default=None, help="draws the same mutants again")
    parser.add_argument("--since", help="only mutants of lines that changed since this commit")
    parser.add_argument("--only", metavar="KEY", nargs="+", default=[],
                        help="only the mutants with these keys, to see if a new test finds them")
    parser.add_argument("--floor-only", action="store_true",
                        help="run the tests of the floor, not those of the floors above")
    parser.add_argument("--minutes", type=float, default=math.inf,
                        help="stop after this time, and print the results so far")
    parser.add_argument("--list", action="store_true", help="print the drawn mutants and stop")
    options = parser.parse_args()
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(1 << 32)
    root = pathlib.Path(__file__).resolve().parents[2]
    end = time.monotonic() + 60 * options.minutes
    every = [each for each in floors.FLOORS if (root / "weir" / each).is_dir()] + ["tools/weir"]
    try:
        for room in [options.room] if options.room else every:
            session = Session(options, root, room, end)
            if options.list:
                session.print_drawn()
            else:
                session.run()
        return 0
    except KeyboardInterrupt:
        print("\nmutate: interrupted", file=sys.stderr)
        return 130
    except trees.OutOfTime:
        print(f"mutate: stopped after {options.minutes:g} minutes")
        return 0
    except trees.BuildFailed as error:
        print(f"mutate: the build failed: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
