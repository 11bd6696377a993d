"""Tests control groups of versions 1 and 2, in a folder that replaces their file system."""

import pathlib
import tempfile
import unittest
from unittest import mock

import cpu_share


class CpuShareTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def test_version_2_has_quota_and_period_in_one_file(self):
        self.assertEqual(cpu_share._limits(self.root, 0.5)["cpu.max"], "5000 10000")

    def test_version_1_has_a_file_for_each(self):
        (self.root / "cpu.cfs_quota_us").touch()
        limits = cpu_share._limits(self.root, 1.2)  # of two processors
        self.assertEqual((limits["cpu.cfs_quota_us"], limits["cpu.cfs_period_us"]),
                         ("12000", "10000"))

    def test_a_whole_processor_needs_no_group(self):
        with mock.patch.object(cpu_share, "ROOT", self.root / "absent"):
            with cpu_share.limited(1) as (share, _):
                self.assertEqual(share, 1)

    def test_the_share_is_whole_if_groups_are_not_permitted(self):
        with mock.patch.object(cpu_share, "ROOT", self.root / "absent"):
            with cpu_share.limited(0.5) as (share, limit):
                self.assertEqual(share, 1)
                limit(1)


if __name__ == "__main__":
    unittest.main()
