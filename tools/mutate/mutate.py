"""Plants one fault at a time in the sources of a room and says which the tests find.

    mutate.py [--room http/detail/h1...] [--count 50] [--seed S] [--since COMMIT] [--only KEY...]
              [--skip N] [--pool N] [--by tests|simulate|fuzz] [--minutes N] [--floor-only] [--list]

Without --room it takes all floors and the tools weir, simulate and mutate.

The faults are planted in a copy of the repository, build/mutate/tree, in which all drawn mutants of
a file are compiled together. An environment variable selects one of them at run time. The exit
status is 0 unless the tool itself fails: the scores are printed, not judged.
"""

import argparse
import concurrent.futures
import dataclasses
import fcntl
import hashlib
import itertools
import json
import math
import multiprocessing
import pathlib
import random
import re
import sys
import time

from clang import cindex

import changes
import deadline
import independence
import object_code
import operators
import rooms
import runner
import schema
import scripts as script_faults
import tree as trees

RECORDING_SECONDS_MAX = 1800  # of the tests of one binary
FINDERS = {
    "tests": lambda options, root: runner.Tests(options.floor_only),
    "simulate": lambda options, root: runner.Simulation(),
    "fuzz": lambda options, root: runner.Fuzzers(root),
}


def progress(text):
    end = "\r" if sys.stderr.isatty() else "\n"
    if sys.stderr.isatty():
        print(f"\033[K{text}", end=end, file=sys.stderr, flush=True)
    elif not hasattr(progress, "last") or time.monotonic() > progress.last + 10:
        progress.last = time.monotonic()
        print(text, end=end, file=sys.stderr, flush=True)


def minutes_left(seconds, done, count):
    """Returns how long a task will still take, of which `done` of `count` parts took `seconds`."""
    return seconds / done * (count - done) / 60


def parallel_tests(processors):
    """Returns how many tests run at the same time. Many tests mostly wait, so three tests share two
    processors."""
    return (processors * 3 + 1) // 2


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


def parsed(jobs, processes):
    """Yields the results of find_in(), in any order. Stops parsing at the end of the run."""
    with multiprocessing.Pool(processes, maxtasksperchild=20) as pool:
        results = pool.imap_unordered(find_in, jobs)
        for _ in jobs:
            try:
                yield results.next(deadline.OF_RUN.left())
            except multiprocessing.TimeoutError:
                raise deadline.OutOfTime from None


class Results:
    """The verdicts of earlier runs, by mutant and by the content that they depend on."""

    def __init__(self, path):
        self._path = path
        self._all = json.loads(path.read_text()) if path.exists() else {}

    def get(self, mutant, digests):
        known = (self._all.get(f"{digest} {mutant.key}") for digest in digests)
        return next((each for each in known if each), None)

    def put(self, mutant, digest, verdict):
        self._all[f"{digest} {mutant.key}"] = verdict
        write_json(self._path, self._all)


def write_json(path, content):
    scratch = path.with_suffix(".new")
    scratch.write_text(json.dumps(content))
    scratch.replace(path)


def digest_of(root, paths):
    digest = hashlib.sha256()
    for path in sorted(paths):
        if path.endswith((".cpp", ".hpp", ".txt", ".cmake", ".py")):
            digest.update(path.encode() + b"\0" + (root / path).read_bytes())
    return digest.hexdigest()


class Digests:
    """The contents that a verdict depends on."""

    def __init__(self, root, paths, finder):
        self._root = root
        self._scripts = [each for each in paths if each.endswith(".py")]
        self._finder = finder
        self._paths = [each for each in paths if not each.endswith(".py")]
        tool = pathlib.Path(__file__).parent
        self._tool = digest_of(tool, [each.name for each in tool.glob("*.py")
                                      if not rooms.is_test(each.name)])
        self._all = f"{digest_of(root, self._paths)} {self._tool} {finder.name}"
        self._of_room = {}

    def of(self, room, found):
        """Returns the digest for a verdict. New tests elsewhere do not change that the tests of the
        floor find a mutant."""
        if room.scripts or (found == "own" and self._finder.finds_by_floor):
            return self._of_floor(room)
        return self._all

    def every(self, room):
        return [self.of(room, each) for each in ("own", "no")]

    def _of_floor(self, room):
        if room.own not in self._of_room:
            paths = self._scripts if room.scripts else [
                each for each in self._paths
                if not rooms.is_test(each) or rooms.in_room(each, room.floor)]
            digest = digest_of(self._root, paths)
            self._of_room[room.own] = f"{digest} {self._tool} {room.own}"
        return self._of_room[room.own]


class Session:
    """One run of the tool over rooms. All of their mutants are in one build."""

    def __init__(self, options, root, names):
        self._options = options
        self._root = root
        self._jobs = multiprocessing.cpu_count()
        self._finder = FINDERS[options.by](options, root)
        self._tree = trees.Tree(root, root / "build" / "mutate" / "tree", self._jobs,
                                self._finder.preset)
        paths = self._tree.files()
        self._rooms = [rooms.Room(each, paths) for each in names]
        for room in self._rooms:
            if not room.paths or (room.own is None and not room.scripts):
                raise SystemExit(f"mutate: no such room: {room.name}")
        if options.by == "fuzz":
            self._rooms = [each for each in self._rooms if each.fuzzers]
        if options.by != "tests":
            self._rooms = [each for each in self._rooms if not each.scripts]
        self._objects = object_code.ObjectCode(root, paths)
        folder = root / "build" / "mutate"
        self._results = Results(folder / "results.json")
        self._found = folder / "found.json"
        self._digests = Digests(root, paths, self._finder)
        self._headers = digest_of(root, [each for each in paths if each.endswith(".hpp")])

    def run(self):
        self._draw()
        for room in self._rooms:
            count = len(room.order)
            if count:
                print(f"mutate: {room.prefix}: {count} mutants, {min(self._options.count, count)} "
                      f"drawn with seed {self._options.seed}", flush=True)
            room.reserve = room.order[:self._options.pool]
            room.order = room.order[self._options.skip:]
        try:
            while self._judge_batch():
                pass
        finally:
            for room in self._rooms:
                self._report(room)

    def print_drawn(self):
        self._draw()
        for room in self._rooms:
            for mutant in room.order[self._options.skip:][:self._options.count]:
                print(mutant.key, mutant.text())

    def _draw(self):
        found = self._find()
        for room in self._rooms:
            mutants = [each for path in room.paths for each in found.get(path, [])]
            room.order = rooms.draw(rooms.only(mutants, self._options.only), self._options.seed)

    def _find(self):
        """Returns {path: mutants} of all rooms."""
        since = self._options.since
        lines = changes.changed_lines(self._root, since) if since else None
        paths = {path for room in self._rooms for path in room.paths
                 if lines is None or path in lines}
        scripts = {path for path in paths if path.endswith(".py")}
        found = self._find_all(sorted(paths - scripts))
        found |= {path: script_faults.find(self._root, path) for path in scripts}
        return {path: [each for each in found[path] if lines is None or each.line in lines[path]]
                for path in paths}

    def _find_all(self, paths):
        """Returns {path: mutants}. Parses only the files that have changed since the last run, or
        all if a header has changed."""
        flags = object_code.flags_of(self._root)
        sources = [pathlib.Path(each.__file__).read_text() for each in (operators, independence)]
        common = hashlib.sha256("".join([self._headers, *sources]).encode()).hexdigest()
        stamps = {path: f"{common} {digest_of(self._root, [path])}" for path in paths}
        known = json.loads(self._found.read_text()) if self._found.exists() else {}
        mutants = {path: [operators.Mutant(**each) for each in known[path]["mutants"]]
                   for path in paths if path in known and known[path]["stamp"] == stamps[path]}
        jobs = [(str(self._root), path, flags) for path in paths if path not in mutants]
        try:
            for done, (path, found, error) in enumerate(parsed(jobs, self._jobs), 1):
                progress(f"mutate: [{done}/{len(jobs)}] parsing")
                mutants[path] = found
                if error:
                    print(f"mutate: {path} is left out: {error}", file=sys.stderr)
                else:
                    known[path] = {"stamp": stamps[path],
                                   "mutants": [dataclasses.asdict(each) for each in found]}
        finally:
            write_json(self._found, known)
        return mutants

    def _judge_batch(self):
        """Tests the next mutants of all rooms. Returns false if there are none."""
        fresh, batch = {}, []
        for room in self._rooms:
            batch += [(room, each) for each in room.next_batch(self._options.count)]
        for room, mutant in batch:
            known = self._results.get(mutant, self._digests.every(room))
            if known is None:
                fresh[mutant] = room
            else:
                self._note(room, mutant, known)
        self._judge_scripts({each: room for each, room in fresh.items() if room.scripts})
        fresh = {each: room for each, room in fresh.items() if not room.scripts}
        numbers = self._build(fresh)
        if numbers:
            self._judge(fresh, numbers)
        return bool(batch)

    def _judge(self, fresh, numbers):
        """Tests mutants, {mutant: room}, with their numbers in the build."""
        of_threads = {}
        for mutant, verdict in self._run_tests(self._finder, self._tree, fresh, numbers):
            if verdict["found"] == "no":
                reason = self._objects.uncounted_because(mutant)
                if reason:
                    verdict = {"found": "uncounted", "how": reason}
            if (verdict["found"] in ("no", "above") and self._finder.finds_by_floor and
                    mutant.operator in operators.OF_THREADS):
                of_threads[mutant] = verdict
            else:
                self._note(fresh[mutant], mutant, verdict)
        if of_threads:
            self._judge_threads(of_threads, fresh, numbers)

    def _judge_threads(self, verdicts, fresh, numbers):
        """Tests mutants, {mutant: verdict}, with the tests of the floor under the thread
        sanitizer."""
        tree = trees.Tree(self._root, self._tree.folder, self._jobs, "tsan")
        finder = runner.SingleTests(self._finder)
        tree.configure()
        targets = list(dict.fromkeys(fresh[each].own for each in verdicts))
        errors = tree.compile(targets, lambda text: progress(f"mutate: tsan: {text}"))
        if errors:
            raise trees.BuildFailed(f"errors under the thread sanitizer: {sorted(errors)[:5]}")
        mine = {each: numbers[each] for each in verdicts}
        for mutant, verdict in self._run_tests(finder, tree, fresh, mine):
            self._note(fresh[mutant], mutant,
                       verdict if verdict["found"] == "own" else verdicts[mutant])

    def _judge_scripts(self, fresh):
        for room in dict.fromkeys(fresh.values()):
            mine = [each for each in fresh if fresh[each] == room]
            copies = script_faults.Scripts(self._root, self._tree.folder.parent, self._jobs)
            judged = copies.judge(room.name, mine)
            for done, (mutant, verdict) in enumerate(judged, 1):
                progress(f"mutate: [{done}/{len(mine)}] {room.name} tested")
                self._note(room, mutant, verdict)

    def _note(self, room, mutant, verdict):
        self._results.put(mutant, self._digests.of(room, verdict["found"]), verdict)
        if verdict["found"] == "uncounted":
            room.uncounted[verdict["how"]] += 1
        else:
            room.verdicts[mutant] = verdict

    def _targets(self, of_rooms):
        return list(dict.fromkeys(each for room in of_rooms for each in self._finder.targets(room)))

    def _build(self, fresh):
        """Compiles mutants, {mutant: room}, together, unless the last build holds them. Returns
        {mutant: number} of those that compile."""
        if not fresh:
            return {}
        numbers = self._numbers(fresh)
        targets = self._targets(fresh.values())
        while True:
            self._tree.write(numbers)
            self._tree.configure()
            errors = self._tree.compile(targets, lambda text: progress(f"mutate: {text}"))
            if not errors:
                break
            wrong = set().union(*map(self._blamed, errors))
            if not wrong:
                raise trees.BuildFailed(f"errors outside mutants: {sorted(errors)[:5]}")
            numbers = {each: None if number in wrong else number
                       for each, number in numbers.items()}
        compiled = {each: number for each, number in numbers.items() if number is not None}
        self._count = 1 + max([0, *compiled.values()])
        for mutant, number in numbers.items():
            if number is None and mutant in fresh:
                self._note(fresh[mutant], mutant,
                           {"found": "uncounted", "how": "do not compile"})
        return {each: compiled[each] for each in fresh if each in compiled}

    def _numbers(self, fresh):
        """Returns {mutant: number} for a build with the mutants of `fresh`, {mutant: room}. The
        number of a mutant that does not compile is None. Files whose mutants the last build holds
        do not change, so they need not be compiled again."""
        held = self._tree.held()
        reserve = [each for room in self._rooms if not room.scripts for each in room.reserve]
        wanted = list(fresh) if all(each in held for each in fresh) else [*fresh, *reserve]
        together = schema.without_overlaps(dict.fromkeys(wanted))
        changed = {each.path for each in together if each not in held}
        numbers = {each: held[each] for each in held if each.path not in changed}
        used = set(numbers.values())
        unused = (each for each in itertools.count() if each not in used)
        for each in together:
            if each.path in changed:
                numbers[each] = None if each in held and held[each] is None else next(unused)
        return numbers

    def _blamed(self, places):
        """Returns the number of the mutant that causes an error, as a set of at most one."""
        for path, line, column in places:
            rendered = (self._tree.folder / path).read_bytes()
            number = schema.number_at(rendered, line, column)
            if number is not None:
                return {number}
        return set()

    def _run_tests(self, finder, tree, fresh, numbers):
        """Yields (mutant, verdict) of the mutants in `numbers`."""
        targets = dict.fromkeys(target for mutant in numbers
                                for target in finder.targets(fresh[mutant]))
        for target in targets:
            progress(f"mutate: recording {target}")
            for message in finder.record(tree.build, [target], self._count, self._jobs,
                                         RECORDING_SECONDS_MAX):
                print(f"mutate: {message}", file=sys.stderr)
        begun = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(parallel_tests(self._jobs)) as pool:
            waiting = {pool.submit(finder.judge, tree.build, fresh[mutant], number): mutant
                       for mutant, number in numbers.items()}
            try:
                for done, future in enumerate(concurrent.futures.as_completed(waiting), 1):
                    left = minutes_left(time.monotonic() - begun, done, len(waiting))
                    progress(f"mutate: [{done}/{len(waiting)}] tested, {left:.0f} min left")
                    yield waiting[future], future.result()
            finally:
                pool.shutdown(cancel_futures=True)

    def _report(self, room):
        explained = explanations(self._root)
        verdicts = room.verdicts
        if not verdicts:
            return
        in_order = sorted(verdicts, key=lambda each: (each.path, each.begin, each.after))
        survivors = [each for each in in_order if verdicts[each]["found"] == "no"]
        for mutant in survivors:
            reason = explained.get(mutant.key)
            note = f"explained: {reason}" if reason else verdicts[mutant]["how"]
            print(f"survived {mutant.key} {mutant.text()} ({note})")
        for mutant in in_order:
            if verdicts[mutant]["found"] == "above":
                print(f"found above {mutant.key} {mutant.text()} ({verdicts[mutant]['how']})")
        own = sum(each["found"] == "own" for each in verdicts.values())
        above = sum(each["found"] == "above" for each in verdicts.values())
        print(f"{room.prefix}: {len(verdicts)} mutants, seed {self._options.seed}: "
              f"{self._finder.summary(own, above, len(verdicts))}")
        reasons = sum(mutant.key in explained for mutant in survivors)
        if reasons and len(verdicts) > reasons:
            print(f"  without the {reasons} that docs/mutants.md explains: "
                  f"{self._finder.summary(own, above, len(verdicts) - reasons)}")
        for reason, count in sorted(room.uncounted.items()):
            print(f"  not counted: {count} {reason}", flush=True)


def explanations(root):
    """Returns {key: reason} of the survivors that docs/mutants.md explains."""
    path = root / "docs" / "mutants.md"
    if not path.exists():
        return {}
    rows = re.findall(r"^\|([ `,0-9a-f]*)\|[^|]*\|([^|]*)\|", path.read_text(), re.MULTILINE)
    return {key: reason.strip() for keys, reason in rows
            for key in re.findall("[0-9a-f]{12}", keys)}


def options_of(arguments):
    parser = argparse.ArgumentParser(description="Plants faults and runs the tests.")
    parser.add_argument("--room", metavar="ROOM", nargs="+",
                        help="floors or rooms, such as http/detail/h1 (default: all floors)")
    parser.add_argument("--count", type=int, default=50,
                        help="mutants of each room to test (default: 50)")
    parser.add_argument("--skip", type=int, default=0, metavar="N",
                        help="leave out the first N mutants of each draw")
    parser.add_argument("--pool", type=int, default=0, metavar="N",
                        help="compile the first N mutants of each draw, for later runs with the "
                             "same seed and --skip, or --only")
    parser.add_argument("--by", choices=FINDERS, default="tests",
                        help="what finds the mutants: the tests (default), ./dev simulate alone, "
                             "or the fuzzers of the room alone, for a minute each")
    parser.add_argument("--seed", type=int, default=None, help="draws the same mutants again")
    parser.add_argument("--since", help="only mutants of lines that changed since this commit")
    parser.add_argument("--only", metavar="KEY", nargs="+", default=[],
                        help="only the mutants with these keys, to see if a new test finds them")
    parser.add_argument("--floor-only", action="store_true",
                        help="run the tests of the floor, not those of the floors above")
    parser.add_argument("--minutes", type=float, default=math.inf,
                        help="stop after this time, and print the results so far")
    parser.add_argument("--list", action="store_true", help="print the drawn mutants and stop")
    options = parser.parse_args(arguments)
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(1 << 32)
    return options


def is_alone(lock):
    """Locks a file until it is closed. Returns false if another run has locked it: two runs would
    write mutants into the same tree."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except BlockingIOError:
        return False


def main(root, arguments):
    options = options_of(arguments)
    deadline.OF_RUN.set(60 * options.minutes)
    every = [each for each in rooms.FLOORS if (root / "weir" / each).is_dir()]
    folder = root / "build" / "mutate"
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with open(folder / "lock", "w") as lock:
            if not is_alone(lock):
                print(f"mutate: another run uses {folder}: wait for its end", file=sys.stderr)
                return 1
            session = Session(options, root, options.room or every + rooms.TOOLS)
            if options.list:
                session.print_drawn()
            else:
                session.run()
        return 0
    except KeyboardInterrupt:
        print("\nmutate: interrupted", file=sys.stderr)
        return 130
    except deadline.OutOfTime:
        print(f"mutate: stopped after {options.minutes:g} minutes")
        return 0
    except trees.BuildFailed as error:
        print(f"mutate: the build failed: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(__file__).resolve().parents[2], sys.argv[1:]))
