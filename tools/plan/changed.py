"""Finds the paths that a change touches, by git."""

import dataclasses
import subprocess

UPSTREAM = "origin/main"
EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


@dataclasses.dataclass
class Change:
    """Changed paths, sorted, and what they are compared with, in words. A deleted file and both
    names of a renamed file are among the paths."""
    since: str
    paths: list


class UnknownCommit(Exception):
    pass


def git(root, *arguments):
    """Returns what git prints, without the line break at the end."""
    ran = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True)
    if ran.returncode != 0:
        raise UnknownCommit(f"git {' '.join(arguments)}: {ran.stderr.strip()}")
    return ran.stdout.rstrip("\n")


def resolve(root, commit):
    """Returns the hash of a commit, or None if the repository does not have it."""
    try:
        return git(root, "rev-parse", "--verify", "--quiet", "--end-of-options",
                   f"{commit}^{{commit}}")
    except UnknownCommit:
        return None


def merge_base(root, commit):
    """Returns the newest commit that both HEAD and `commit` contain."""
    if resolve(root, commit) is None:
        raise UnknownCommit(f"{commit} is not a commit of this repository")
    return git(root, "merge-base", commit, "HEAD")


def untracked(root):
    return git(root, "ls-files", "-z", "--others", "--exclude-standard").split("\0")[:-1]


def paths_since(root, base):
    """Returns the paths that differ between a commit and the working tree."""
    listed = git(root, "diff", "--name-only", "--no-renames", "-z", base, "--").split("\0")[:-1]
    return sorted({*listed, *untracked(root)})


def find(root, since=None):
    """Returns the Change since the merge base with a commit, working tree included.

    Without a commit it is the upstream branch if there is one. Otherwise it is HEAD if the working
    tree has changes, and HEAD~1 if it has none."""
    if since is not None:
        return Change(since, paths_since(root, merge_base(root, since)))
    if resolve(root, UPSTREAM) is not None:
        return Change(UPSTREAM, paths_since(root, merge_base(root, UPSTREAM)))
    paths = paths_since(root, "HEAD")
    if paths:
        return Change("HEAD", paths)
    if resolve(root, "HEAD~1") is None:
        return Change("the beginning", paths_since(root, EMPTY_TREE))
    return Change("HEAD~1", paths_since(root, "HEAD~1"))
