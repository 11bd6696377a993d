import unittest

import times

STEPS = "build of asan\t310\t320\ngate\t12\t\n"
TESTS = """      Start  1: asan:base:Counter
 1/3 Test  #1: asan:base:Counter ...........   Passed    0.12 sec
 2/3 Test  #3: asan:system:On/Check ........   Passed   12.50 sec
 3/3 Test  #2: asan:tls:Of/AeadRecordsTest .***Failed    3.00 sec

67% tests passed, 1 tests failed out of 3

Total Test time (real) =  15.70 sec
"""


class TimesTest(unittest.TestCase):
    def test_finds_each_test_however_it_ended(self):
        self.assertEqual(times.tests(TESTS), [("asan:base:Counter", 0.12),
                                              ("asan:system:On/Check", 12.5),
                                              ("asan:tls:Of/AeadRecordsTest", 3.0)])

    def test_has_a_row_for_each_step_and_the_sum(self):
        lines = [line.split() for line in times.table(STEPS, TESTS).splitlines()]
        self.assertIn(["build", "of", "asan", "310", "320"], lines)
        self.assertIn(["gate", "12"], lines)
        self.assertIn(["tests", "16", "3"], lines)
        self.assertIn(["sum", "338"], lines)

    def test_begins_with_the_slowest_test(self):
        lines = times.table(STEPS, TESTS).splitlines()
        self.assertIn("12.5 s", lines[lines.index("the 10 slowest tests") + 1])

    def test_needs_no_tests(self):
        self.assertIn("sum", times.table(STEPS, "").split())


if __name__ == "__main__":
    unittest.main()
