"""Tests of the changed paths."""

import unittest

import changed
from plan_fixture import PlanTestCase


class ChangedTest(PlanTestCase):
    def setUp(self):
        super().setUp()
        self.git("init", "-q", "-b", "main")
        self.commit({"a": "1", "b": "1", "c": "1", ".gitignore": "*.log\n"})

    def test_changes_of_the_tree_are_staged_unstaged_and_untracked(self):
        self.write({"a": "2", "b": "2", "new": "", "old.log": ""})
        self.git("add", "a")
        change = changed.find(self.root)
        self.assertEqual((change.since, change.paths), ("HEAD", ["a", "b", "new"]))

    def test_a_clean_tree_shows_the_last_commit(self):
        self.commit({"b": "2"})
        self.commit({"a": "2"})
        change = changed.find(self.root)
        self.assertEqual((change.since, change.paths), ("HEAD~1", ["a"]))

    def test_the_first_commit_shows_all_its_files(self):
        self.assertEqual(changed.find(self.root).paths, [".gitignore", "a", "b", "c"])

    def test_changes_are_those_since_the_upstream_branch_left(self):
        self.git("update-ref", "refs/remotes/origin/main", "HEAD")
        self.git("checkout", "-q", "--detach")
        self.commit({"upstream": "1"})
        self.git("update-ref", "refs/remotes/origin/main", "HEAD")
        self.git("checkout", "-q", "main")
        self.commit({"a": "2"})
        self.write({"b": "2"})
        change = changed.find(self.root)
        self.assertEqual((change.since, change.paths), ("origin/main", ["a", "b"]))

    def test_a_commit_can_be_given(self):
        self.git("tag", "base")
        self.commit({"a": "2"})
        self.commit({"b": "2"})
        self.write({"c": "2"})
        self.assertEqual(changed.find(self.root, "base").paths, ["a", "b", "c"])

    def test_deleted_files_and_both_names_of_a_renamed_file_are_changed(self):
        (self.root / "a").unlink()
        self.git("mv", "b", "z")
        self.assertEqual(changed.find(self.root).paths, ["a", "b", "z"])

    def test_names_keep_their_blanks_and_letters(self):
        self.write({"ä b": "", "line\nbreak": ""})
        self.assertEqual(changed.find(self.root).paths, ["line\nbreak", "ä b"])

    def test_an_unknown_commit_is_an_error(self):
        for commit in ("0" * 40, "nonsense", "--help"):
            with self.assertRaises(changed.UnknownCommit):
                changed.find(self.root, commit)


if __name__ == "__main__":
    unittest.main()
