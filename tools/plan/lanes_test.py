"""Tests of the lanes of CI."""

import unittest

import graph
import lanes
import tables
from plan_fixture import TREE, PlanTestCase

ALL = {"gcc": ["weir_base_test", "weir_net_test"], "tsan": ["weir_net_test"]}


class LanesTest(PlanTestCase):
    def lines_of(self, *paths):
        self.write(TREE)
        return lanes.lines(lanes.choose(paths, ALL, graph.Graph(self.root)))

    def test_a_lane_has_the_binaries_of_the_floors_that_the_change_reaches(self):
        self.assertEqual(self.lines_of("weir/base/time.hpp"),
                         ["gcc weir_base_test weir_net_test", "tsan weir_net_test"])
        self.assertEqual(self.lines_of("weir/net/tcp.cpp"),
                         ["gcc weir_net_test", "tsan weir_net_test"])
        self.assertEqual(self.lines_of("weir/base/text/hex.cpp"), ["gcc weir_base_test"])

    def test_lanes_are_empty_if_no_candidate_is_reached(self):
        self.assertEqual(self.lines_of("weir/http/server/serve.hpp", "docs/guide/first.md"), [])

    def test_the_toolchain_and_the_planner_reach_everything(self):
        for path in ("CMakeLists.txt", "cmake/WeirSuites.cmake", "dev", ".ci/run",
                     "tools/plan/lanes.py"):
            self.assertEqual(self.lines_of("docs/guide/first.md", path),
                             ["gcc weir_base_test weir_net_test", "tsan weir_net_test"])

    def test_scripts_that_no_path_reaches_are_left_out(self):
        self.assertEqual(lanes.left_out(["tests/install_test.py", "tools/mutate/mutate.py"]),
                         ["embed_fetchcontent_clang", "embed_subdirectory_gcc", "headers_selftest",
                          "stress_selftest"])
        self.assertNotIn("embed_subdirectory_gcc", lanes.left_out(["weir/http/form.hpp"]))
        self.assertIn("embed_subdirectory_gcc", lanes.left_out(["weir/http/form_test.cpp"]))
        for path in ("cmake/WeirParts.cmake", "CMakeLists.txt"):
            self.assertEqual(lanes.left_out([path]),
                             ["headers_selftest", "mutate_selftest", "stress_selftest"])
        for path in ("cmake/WeirSuites.cmake", "dev", "tools/plan/lanes.py"):
            self.assertIn("embed_subdirectory_gcc", lanes.left_out([path]))
        self.assertEqual(lanes.lines({}, ["package"]), ["left package"])

    def test_each_script_is_a_test(self):
        text = (tables.TOOLS.parent / "cmake/WeirTargets.cmake").read_text()
        for name in tables.SCRIPTS:
            self.assertIn(f"add_test(NAME {name}\n", text.replace(" COMMAND", "\n"))

    def test_an_unknown_base_reaches_everything(self):
        self.git("init", "-q")
        self.commit(TREE)
        chosen, left = lanes.since(self.root, "0" * 40)
        self.assertEqual(left, [])
        self.assertEqual(lanes.lines(chosen),
                         ["gcc weir_base_test weir_net_test", "tsan weir_net_test"])
        self.assertIn("the change is unknown", chosen["tsan"]["weir_net_test"])

    def test_lanes_follow_the_commits_since_the_base(self):
        self.git("init", "-q")
        self.commit(TREE)
        self.commit({"weir/base/text/hex.hpp": "long hex();\n"})
        chosen, left = lanes.since(self.root, "HEAD~1")
        self.assertEqual(lanes.lines(chosen), ["gcc weir_base_test"])
        self.assertIn("mutate_selftest", left)
        self.assertNotIn("embed_subdirectory_gcc", left)

    def test_reasons_say_which_file_uses_the_changed_path(self):
        self.write(TREE)
        chosen = lanes.choose(["weir/base/time.hpp"], ALL, graph.Graph(self.root))
        self.assertEqual(lanes.reasons(chosen, ALL), [
            "gcc: weir_base_test: weir/base/time.hpp changed",
            "gcc: weir_net_test: weir/base/time.hpp changed, which weir/net/tcp.cpp uses",
            "tsan: weir_net_test: weir/base/time.hpp changed, which weir/net/tcp.cpp uses"])
        chosen = lanes.choose(["weir/base/text/hex.hpp"], ALL, graph.Graph(self.root))
        self.assertIn("tsan: weir_net_test: not reached", lanes.reasons(chosen, ALL))

    def test_the_candidates_of_this_repository_are_test_binaries(self):
        found = lanes.candidates(tables.TOOLS.parent)
        self.assertEqual(sorted(found), ["gcc", "release", "tsan"])
        for binaries in found.values():
            self.assertTrue(binaries)
            for binary in binaries:
                tables.rank_of(binary)  # raises ValueError if it is unknown


if __name__ == "__main__":
    unittest.main()
