"""Tests of the names of tests."""

import re
import unittest

import suites
import tables


class SuitesTest(unittest.TestCase):
    def test_suites_of_all_kinds_are_found(self):
        text = """TEST(Plain, A) {}
TEST_F(Fixture, A) {}
  TEST_P(Indented, A) {}
TEST(
    Broken, Line) {}
INSTANTIATE_TEST_SUITE_P(
    All, FromElsewhere, testing::Values(1));
// TEST(Comment, A)
EXPECT_EQ(Other, 1);
"""
        self.assertEqual(suites.suites_in(text),
                         ["Broken", "Fixture", "FromElsewhere", "Indented", "Plain"])

    def test_a_regex_matches_whole_names_of_suites_and_their_instances(self):
        regex = re.compile(suites.regex_of("asan", {"weir_base_test": {"List", "Map"},
                                                    "simulate_tool_test": {"Heap"}}, {"otlp"}))
        for name in ("asan:base:List", "asan:base:Map", "asan:base:All/List", "asan:base:List/0",
                     "asan:simulate_tool:Heap", "asan:otlp"):
            self.assertTrue(regex.search(name), name)
        for name in ("asan:base:LinkedList", "asan:base:Lists", "asan:os:List", "tsan:base:List",
                     "asan:otlp_more", "asan:base:Heap"):
            self.assertFalse(regex.search(name), name)

    def test_script_tests_have_a_script_programs_and_the_prefix(self):
        text = """add_test(NAME ${WEIR_TEST_PREFIX}page COMMAND python3 ${folder}/page_test.py
    --program $<TARGET_FILE:example_a> --tool $<TARGET_FILE:weir>
    --screenshot ${PROJECT_BINARY_DIR}/page.png)
add_test(NAME ${test}_replay COMMAND ${target} ${corpus})
add_test(NAME install COMMAND python3 ${folder}/install_test.py --p $<TARGET_FILE:weir>)
"""
        self.assertEqual(suites.script_tests(text),
                         [suites.ScriptTest("page", "page_test.py", ("example_a", "weir"))])

    def test_script_tests_of_this_repository_are_found(self):
        cmake = tables.TOOLS.parent / "cmake/WeirTargets.cmake"
        found = {test.name: test for test in suites.script_tests(cmake.read_text())}
        self.assertEqual(found["otlp"].targets, ("example_traces",))
        self.assertEqual(found["autobahn"].script, "autobahn.py")


if __name__ == "__main__":
    unittest.main()
