"""Tests the verdict on idle connections, and the limit of open files."""

import resource
import unittest
from unittest import mock

import idle
import programs
from serving import Failure


class IdleTest(unittest.TestCase):
    def test_every_round_must_reach_the_target(self):
        def verdict(*values):
            return idle.IdleMemory.row(programs.weir("epoll"), list(values), None)["verdict"]

        self.assertTrue(verdict((400.0, 450.0), (410.0, 460.0), (500.0, 500.0)).startswith("met"))
        self.assertTrue(verdict((400.0, 450.0), (501.0, 460.0)).startswith("MISSED"))
        self.assertTrue(verdict((400.0, 450.0), (410.0, 501.0)).startswith("MISSED"))

    def test_the_table_has_the_bytes_before_and_after_a_burst(self):
        row = idle.IdleMemory.row(programs.weir("epoll"), [(400.0, 470.0), (410.0, 460.0)], None)
        self.assertIn("| weir-epoll | 405 | 400..410 | 465 | 460..470 | met",
                      idle.table([row]))

    def test_a_failure_is_no_figure(self):
        row = idle.IdleMemory.row(programs.weir("epoll"), [(400.0, 400.0)], "closed")
        self.assertEqual(row["reason"], "closed")
        self.assertNotIn("verdict", row)

    def test_the_limit_of_files_is_raised_as_far_as_it_goes(self):
        with (mock.patch.object(resource, "getrlimit", lambda _: (1024, 20_000)),
              mock.patch.object(resource, "setrlimit") as raised):
            idle.allow_files(10_100)
            raised.assert_called_once_with(resource.RLIMIT_NOFILE, (20_000, 20_000))
            with self.assertRaisesRegex(Failure, "20,000 are allowed"):
                idle.allow_files(20_001)


if __name__ == "__main__":
    unittest.main()
