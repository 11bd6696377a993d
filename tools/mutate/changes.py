"""Says which lines of a repository have changed since a commit."""

import collections
import re
import subprocess


def changed_lines(root, commit):
    """Returns {path: set of lines} that changed since a commit. Of deleted lines, those are the
    lines before and after. Of a file that git does not track, all lines are changed."""
    lines = collections.defaultdict(set)
    for path in git(root, "ls-files", "-z", "--others", "--exclude-standard").split("\0")[:-1]:
        lines[path].update(range(1, (root / path).read_bytes().count(b"\n") + 2))
    text = git(root, "diff", "-U0", "--no-color", "--diff-filter=d", commit, "--")
    for line in text.splitlines():
        if line.startswith("+++ b/"):
            path = line[6:]
        elif found := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line):
            first, count = int(found[1]), int(found[2] or 1)
            lines[path].update(range(first, first + (count or 2)))
    return lines


def git(root, *arguments):
    """Returns what git prints."""
    return subprocess.run(["git", "-C", str(root), *arguments], check=True, capture_output=True,
                          text=True).stdout
