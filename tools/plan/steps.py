"""Steps of a plan, and the selection of tests that makes one."""

import collections
import dataclasses

import suites
import tables


def counted(count, noun):
    """Returns the count with its noun in singular or plural: "2 suites"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


@dataclasses.dataclass
class Step:
    """One command of a plan. It is run in the repository's folder."""
    title: str
    command: list
    reasons: list
    quiet: bool = False  # prints its output only if it fails


@dataclasses.dataclass
class Plan:
    steps: list
    left: list  # what remains for ./dev test, one line each


class Selection:
    """The tests and programs of one preset that the plan needs."""

    def __init__(self, preset):
        self.preset = preset
        self.suites = collections.defaultdict(set)  # by test binary
        self.others = set()  # tests of ctest outside test binaries, without their prefix
        self.targets = set()  # programs to build
        self.reasons = []

    def add_test(self, name, targets, reason):
        self.others.add(name)
        self.add_targets(targets, reason)

    def add_targets(self, targets, reason):
        self.targets.update(targets)
        self.reasons.append(reason)

    def step(self):
        """Returns the step that builds the targets and runs the tests; None if there are none."""
        binaries = sorted(self.suites, key=tables.rank_of)
        targets = [*binaries, *sorted(self.targets)]
        if not targets:
            return None
        regex, parts = "-", []
        if self.suites or self.others:
            ordered = {binary: self.suites[binary] for binary in binaries}
            regex = suites.regex_of(self.preset, ordered, self.others)
        parts += [f"{counted(len(self.suites[each]), 'suite')} of {each}" for each in binaries]
        parts += [f"the test {each}" for each in sorted(self.others)]
        title = f"{self.preset}: {', '.join(parts) or 'build ' + ', '.join(targets)}"
        return Step(title, ["./dev", "narrow", self.preset, regex, *targets], self.reasons)
