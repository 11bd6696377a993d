"""Tests of the parts of a run: the tree, its rooms, and what is kept."""

import contextlib
import io
import os
import pathlib
import subprocess
import sys
import threading
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import mutate  # noqa: E402
import operators  # noqa: E402
import rooms  # noqa: E402
import runner  # noqa: E402
import tree as trees  # noqa: E402
from mutate_fixture import Sandbox  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]


class TreeTest(Sandbox):
    def setUp(self):
        super().setUp()
        self.root, self.copy = self.folder / "root", self.folder / "copy"
        self.root.mkdir()
        (self.root / "a.cpp").write_text("int f(int a) { return a < 1; }\n")
        (self.root / "b.txt").write_text("text\n")
        subprocess.run(["git", "init", "-q", str(self.root)], check=True)
        self.tree = trees.Tree(self.root, self.copy, 1)

    def test_only_the_copy_holds_mutants(self):
        before = (self.root / "a.cpp").read_bytes()
        _, found, _ = mutate.find_in((str(self.root), "a.cpp", []))
        self.tree.write({each: n for n, each in enumerate(found)})
        self.assertEqual((self.root / "a.cpp").read_bytes(), before)
        self.assertIn(b"weir_mutate::on(0)", (self.copy / "a.cpp").read_bytes())
        self.assertEqual((self.copy / "b.txt").read_text(), "text\n")

    def use_ninja(self, script):
        self.program("ninja", script)
        path = os.environ["PATH"]
        self.addCleanup(os.environ.__setitem__, "PATH", path)
        os.environ["PATH"] = f"{self.folder}:{path}"

    def test_a_build_reports_its_progress(self):
        self.use_ninja('[ "$NINJA_STATUS" = "[%f/%t] " ] || exit 1\n'
                       "echo '[3/7] Building a.o'; echo 'a warning'; echo '[7/7] Linking'\n")
        told = []
        threads = set(threading.enumerate())
        self.assertEqual(self.tree.compile(["all"], told.append), set())
        for thread in set(threading.enumerate()) - threads:
            thread.join(10)
            self.assertFalse(thread.is_alive())
        self.assertEqual(told, ["[3/7] building", "[7/7] building"])

    def test_the_errors_of_a_build_have_the_places_of_their_notes(self):
        inside = self.copy / "a.cpp"
        self.use_ninja(f"echo '{inside}:1:2: error: no'; echo '{inside}:3:4: note: here'\n"
                       f"echo '/usr/include/b.h:5:6: error: no'; echo '{inside}:7:8: note: here'\n"
                       f"echo '{inside}:9:1: warning: odd'; exit 1\n")
        self.assertEqual(self.tree.compile(["all"], lambda text: None),
                         {(("a.cpp", 1, 2), ("a.cpp", 3, 4)), (("a.cpp", 7, 8),)})

    def test_a_build_that_fails_elsewhere_is_reported(self):
        self.use_ninja("echo 'no such target'; exit 1\n")
        with self.assertRaisesRegex(trees.BuildFailed, "no such target"):
            self.tree.compile(["all"], lambda text: None)

    def test_the_compiler_cache_shares_files_with_the_repository(self):
        inside = trees.Tree(self.root, self.root / "build/tree", 1)
        for base, expected in ((self.root, inside.folder), (self.folder, self.folder)):
            self.use_ninja(f'[ "$CCACHE_BASEDIR" = "{expected}" ] || echo wrong; exit 1')
            with unittest.mock.patch.dict(os.environ, CCACHE_BASEDIR=str(base)):
                with self.assertRaises(trees.BuildFailed) as failure:
                    inside.compile(["all"], lambda text: None)
            self.assertEqual(str(failure.exception), "")
        self.use_ninja(f'[ "$CCACHE_BASEDIR" = "{self.root}" ] || echo wrong; exit 1')
        with unittest.mock.patch.dict(os.environ, CCACHE_BASEDIR=str(self.root)):
            with self.assertRaises(trees.BuildFailed) as failure:
                self.tree.compile(["all"], lambda text: None)  # the copy is outside
        self.assertEqual(str(failure.exception), "")

    def test_the_end_of_the_output_of_a_failed_build_is_reported(self):
        self.use_ninja("head -c 4000 /dev/zero | tr '\\0' a; echo end; exit 1\n")
        with self.assertRaises(trees.BuildFailed) as failure:
            self.tree.compile(["all"], lambda text: None)
        self.assertEqual(str(failure.exception), "a" * 2996 + "end\n")

    def test_a_note_without_an_error_has_no_place(self):
        inside = self.copy / "a.cpp"
        self.use_ninja(f"echo '{inside}:1:2: warning: odd'; echo '{inside}:3:4: note: here'\n"
                       f"echo '{inside}:5:6: error: no'; exit 1\n")
        self.assertEqual(self.tree.compile(["all"], lambda text: None), {(("a.cpp", 5, 6),)})

    def test_a_tree_is_configured_once_with_its_preset(self):
        self.program("cmake", f'echo "$PWD $*" >>{self.folder}/calls\n')
        self.use_ninja("")
        tree = trees.Tree(self.root, self.copy, 1, "tsan")
        self.copy.mkdir()
        tree.configure()
        self.assertEqual(
            (self.folder / "calls").read_text(),
            f"{self.copy} --preset tsan -S {self.copy} -B {self.copy}/build/tsan "
            f"-DWEIR_TEST_MAIN={self.copy}/weir_mutate_main.cpp -DWEIR_BATCH=0\n")
        tree.build.mkdir(parents=True)
        (tree.build / "build.ninja").write_text("")
        tree.configure()
        self.assertEqual((self.folder / "calls").read_text().count("\n"), 1)

    def test_a_tree_that_cannot_be_configured_is_an_error(self):
        self.program("cmake", "exit 1\n")
        self.use_ninja("")
        self.copy.mkdir()
        with self.assertRaises(subprocess.CalledProcessError):
            self.tree.configure()

    def test_ignored_and_deleted_files_are_not_copied(self):
        (self.root / ".gitignore").write_text("*.log\n")
        (self.root / "a.log").write_text("text\n")
        subprocess.run(["git", "-C", str(self.root), "add", "."], check=True)
        (self.root / "b.txt").unlink()
        self.assertEqual(self.tree.files(), [".gitignore", "a.cpp"])

    def test_a_folder_that_is_no_repository_is_an_error(self):
        with self.assertRaises(subprocess.CalledProcessError):
            trees.Tree(self.folder, self.copy, 1).files()

    def test_a_copy_can_be_written_again(self):
        self.tree.write({})
        self.tree.write({})
        header = self.copy / "weir_mutate.hpp"
        self.assertEqual(header.stat().st_mode & 0o777, 0o644)

    def test_the_tree_holds_the_mutants_of_unchanged_files(self):
        found = mutate.find_in((str(self.root), "a.cpp", []))[1]
        numbers = {each: number for number, each in enumerate(found)} | {found[1]: None}
        self.assertEqual(self.tree.held(), {})
        self.tree.write(numbers)
        self.assertEqual(self.tree.held(), numbers)
        self.assertNotIn(b"weir_mutate::on(1)", (self.copy / "a.cpp").read_bytes())
        (self.root / "a.cpp").write_text("int f(int a) { return a < 1; }\n\n")
        self.assertEqual(self.tree.held(), {})

    def test_changed_permissions_of_a_file_are_copied(self):
        (self.root / "run").write_text("#!/bin/sh\n")
        (self.root / "run").chmod(0o755)
        self.tree.write({})
        self.assertEqual((self.copy / "run").stat().st_mode & 0o777, 0o755)

    def test_only_the_build_stays_besides_the_files_of_the_repository(self):
        for name in ("build/asan/a.o", "old/a.cpp"):
            (self.copy / name).parent.mkdir(parents=True)
            (self.copy / name).write_text("")
        self.tree.write({})
        files = [each for each in self.copy.rglob("*") if each.is_file()]
        self.assertEqual(sorted(each.relative_to(self.copy).as_posix() for each in files),
                         ["a.cpp", "b.txt", "build/asan/a.o", "weir_mutate.hpp",
                          "weir_mutate_main.cpp"])

    def test_a_file_is_written_only_if_it_changes(self):
        self.tree.write({})
        old = (self.copy / "a.cpp").stat().st_mtime_ns
        (self.root / "b.txt").unlink()
        self.tree.write({})
        self.assertEqual((self.copy / "a.cpp").stat().st_mtime_ns, old)
        self.assertFalse((self.copy / "b.txt").exists())


class DigestsTest(Sandbox):
    """A verdict is kept as long as what it depends on stays the same."""

    FILES = ("weir/base/a.cpp", "weir/base/a_test.cpp", "weir/os/b.cpp", "weir/os/b_test.cpp",
             "tools/mutate/c.py", "README.md")

    def digests(self, changed=None, floor_only=False, room="base", finder=None):
        """Returns the digests of the verdicts "own" and "no"."""
        for path in self.FILES:
            (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / path).write_text("new" if path == changed else "old")
        finder = finder or runner.Tests(floor_only)
        digests = mutate.Digests(self.folder, list(self.FILES), finder)
        return digests.every(rooms.Room(room, list(self.FILES)))

    def changes(self, changed, room="base"):
        return [old != new for old, new in zip(self.digests(room=room),
                                               self.digests(changed, room=room))]

    def test_tests_change_only_what_they_find(self):
        self.assertEqual(self.changes("weir/base/a_test.cpp"), [True, True])
        self.assertEqual(self.changes("weir/os/b_test.cpp"), [False, True])

    def test_a_new_tool_changes_all_verdicts(self):
        old = self.digests()
        tool = self.folder / "tool/mutate.py"
        tool.parent.mkdir()
        tool.write_text("# Another tool.\n")
        with unittest.mock.patch.object(mutate, "__file__", str(tool)):
            new = self.digests()
            (tool.parent / "mutate_test.py").write_text("# A test.\n")
            self.assertEqual(self.digests(), new)
        self.assertEqual([one != other for one, other in zip(old, new)], [True, True])

    def test_all_code_changes_what_the_simulation_finds(self):
        finder = runner.Simulation()
        old = self.digests(finder=finder)
        self.assertNotEqual(old[0], self.digests("weir/os/b_test.cpp", finder=finder)[0])
        self.assertNotEqual(old[0], self.digests()[0])

    def test_sources_change_all_verdicts(self):
        self.assertEqual(self.changes("weir/base/a.cpp"), [True, True])
        self.assertEqual(self.changes("weir/os/b.cpp"), [True, True])

    def test_documents_and_scripts_change_no_verdict_of_a_floor(self):
        self.assertEqual(self.changes("README.md"), [False, False])
        self.assertEqual(self.changes("tools/mutate/c.py"), [False, False])

    def test_scripts_depend_on_scripts(self):
        self.assertEqual(self.changes("tools/mutate/c.py", "tools/mutate"), [True, True])
        self.assertEqual(self.changes("weir/base/a_test.cpp", "tools/mutate"), [False, False])

    def test_survivors_of_the_floor_may_be_found_above(self):
        self.assertNotEqual(self.digests(floor_only=True)[1], self.digests()[1])
        self.assertEqual(self.digests(floor_only=True)[0], self.digests()[0])

    def test_only_rooms_of_a_floor_share_verdicts_of_its_tests(self):
        self.assertNotEqual(self.digests(room="os")[0], self.digests(room="base")[0])
        self.assertEqual(self.digests(room="base/detail")[0], self.digests(room="base")[0])


class RepositoryTest(Sandbox):
    def test_rows_of_the_page_explain_mutants(self):
        self.assertEqual(mutate.explanations(self.folder), {})
        (self.folder / "docs").mkdir()
        (self.folder / "docs/mutants.md").write_text(
            "| mutant | change | why |\n|---|---|---|\n"
            "| `0123456789ab`, `ba9876543210` | a.cpp:3 | no test can tell |\n"
            "| `aaaaaaaaaaaa` | b.cpp:4 | the same |\nThe text `cccccccccccc` is no row.\n")
        self.assertEqual(mutate.explanations(self.folder), {
            "0123456789ab": "no test can tell", "ba9876543210": "no test can tell",
            "aaaaaaaaaaaa": "the same"})

    def test_a_seed_is_chosen_if_none_is_given(self):
        seeds = {mutate.options_of([]).seed for _ in range(3)}
        self.assertEqual(len(seeds), 3)
        self.assertEqual(mutate.options_of(["--seed", "0"]).seed, 0)
        with unittest.mock.patch("random.SystemRandom.randrange", side_effect=lambda end: end - 1):
            self.assertEqual(mutate.options_of([]).seed, 0xFFFFFFFF)

    def test_a_run_draws_fifty_mutants_for_the_tests_of_all_floors(self):
        options = vars(mutate.options_of([]))
        options.pop("seed")
        self.assertEqual(options, {
            "room": None, "count": 50, "skip": 0, "pool": 0, "by": "tests", "since": None,
            "only": [], "floor_only": False, "minutes": float("inf"), "list": False})

    def test_a_run_ends_after_its_minutes(self):
        with unittest.mock.patch.object(mutate, "Session"), unittest.mock.patch.object(
                mutate.deadline.OF_RUN, "set") as end:
            self.assertEqual(mutate.main(self.folder, ["--room", "base", "--minutes", "2"]), 0)
        end.assert_called_once_with(120)

    def test_a_result_is_read_again(self):
        path = self.folder / "results.json"
        mutant = operators.Mutant("a.cpp", 1, 2, 3, "constant", "1", "2", "")
        results = mutate.Results(path)
        self.assertIsNone(results.get(mutant, ["new", "old"]))
        results.put(mutant, "old", {"found": "own"})
        again = mutate.Results(path)
        self.assertEqual(again.get(mutant, ["new", "old"]), {"found": "own"})
        self.assertIsNone(again.get(mutant, ["new"]))


class ProgressTest(unittest.TestCase):
    def printed(self, *times, terminal=False):
        """Returns what is printed if progress() is called at these times, in seconds."""
        vars(mutate.progress).pop("last", None)
        self.addCleanup(vars(mutate.progress).pop, "last", None)
        output = io.StringIO()
        output.isatty = lambda: terminal
        with unittest.mock.patch("time.monotonic") as now, contextlib.redirect_stderr(output):
            for each in times:
                now.return_value = each
                mutate.progress(f"at {each}")
        return output.getvalue()

    def test_a_file_has_a_line_each_ten_seconds(self):
        self.assertEqual(self.printed(100, 105, 110, 110.5, 111, 121), "at 100\nat 110.5\nat 121\n")

    def test_the_time_that_is_left_follows_from_the_parts_that_are_done(self):
        self.assertEqual(mutate.minutes_left(120, 2, 6), 4)

    def test_three_tests_share_two_processors(self):
        self.assertEqual([mutate.parallel_tests(each) for each in (1, 2, 3, 4)], [2, 3, 5, 6])

    def test_a_terminal_has_one_line_that_changes(self):
        self.assertEqual(self.printed(100, 101, terminal=True), "\033[Kat 100\r\033[Kat 101\r")


class RoomTest(unittest.TestCase):
    def test_a_part_of_a_room_has_the_fuzzers_of_the_room(self):
        self.assertEqual(rooms.Room("json/detail", []).fuzzers, ["json_fuzz"])
        self.assertEqual(rooms.Room("runtime", []).fuzzers, [])

    def test_a_floor_has_the_fuzzers_of_its_rooms(self):
        self.assertIn("h1_parser_fuzz", rooms.Room("http", []).fuzzers)

    def test_a_room_outside_weir_has_the_tests_of_its_program(self):
        room = rooms.Room("tools/weir", trees.Tree(ROOT, ROOT, 1).files())
        self.assertEqual((room.own, room.scripts), ("weir_tool_test", False))
        self.assertEqual(room.above, ["simulate_tool_test", "weir_system_test"])
        self.assertIn("tools/weir/main.cpp", room.paths)

    def test_a_room_of_scripts_has_their_tests(self):
        room = rooms.Room("tools/mutate/", ["tools/mutate/a.py", "tools/mutate/a_test.py",
                                            "tools/mutate.py", "tools/mutate/b.cpp"])
        self.assertEqual((room.own, room.scripts), (None, True))
        self.assertEqual(room.paths, ["tools/mutate/a.py"])

    def test_fixtures_and_folders_of_tests_have_no_mutants(self):
        paths = ["weir/base/a.cpp", "weir/base/test/b.cpp", "tests/c.cpp", "weir/base/d_test.cpp"]
        self.assertEqual([each for each in paths if rooms.is_test(each)], paths[1:])
        self.assertEqual(rooms.Room("base", paths).paths, paths[:1])

    def test_only_floors_with_tests_are_above(self):
        paths = ["weir/os/a.cpp", "weir/net/b_test.cpp"]
        self.assertEqual(rooms.Room("base", paths).above, ["weir_net_test"])

    def test_the_tests_of_a_tool_depend_on_its_own_folder(self):
        self.assertEqual(rooms.Room("tools/weir/check", []).floor, "tools/weir/check")
        self.assertEqual(rooms.Room("http/detail", []).floor, "weir/http")

    def test_a_room_begins_without_verdicts(self):
        room = rooms.Room("base", [])
        room.uncounted["a"] += 1
        self.assertEqual((room.order, room.reserve, room.verdicts, room.uncounted["b"]),
                         ([], [], {}, 0))

    def test_three_tools_count(self):
        self.assertEqual(rooms.TOOLS, ["tools/weir", "tools/simulate", "tools/mutate"])

    def test_mutants_are_tested_until_enough_have_a_verdict(self):
        room = rooms.Room("base", [])
        room.order = list(range(10))
        self.assertEqual(room.next_batch(4), [0, 1, 2, 3])
        room.verdicts = dict.fromkeys(range(3))  # one did not count
        self.assertEqual(room.next_batch(4), [4])
        room.verdicts = dict.fromkeys(range(4))
        self.assertEqual(room.next_batch(4), [])

    def test_the_tests_of_the_floor_come_before_those_above(self):
        room = rooms.Room("http/detail/h1", trees.Tree(ROOT, ROOT, 1).files())
        self.assertEqual(room.own, "weir_http_test")
        self.assertEqual(room.above[:2], ["weir_doctor_test", "weir_web_test"])
        self.assertIn("weir/http/detail/h1/parser.cpp", room.paths)
        self.assertFalse([each for each in room.paths if each.endswith("_test.cpp")])


if __name__ == "__main__":
    unittest.main()
