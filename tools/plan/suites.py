"""What ctest calls the tests: the suites of test files, and the tests that are scripts."""

import dataclasses
import re

SUITE = re.compile(r"^[ \t]*(?:TEST|TEST_F|TEST_P|TYPED_TEST|TYPED_TEST_P)\(\s*(\w+)\s*,|"
                   r"^[ \t]*INSTANTIATE_\w+\(\s*\w+\s*,\s*(\w+)", re.MULTILINE)
SCRIPT_TEST = re.compile(r"add_test\(\s*NAME\s+\$\{WEIR_TEST_PREFIX\}(\w+)\s+COMMAND([^)]*)\)")
SCRIPT = re.compile(r"/(\w+\.py)\b")
TARGET = re.compile(r"\$<TARGET_FILE:(\w+)>")


@dataclasses.dataclass(frozen=True)
class ScriptTest:
    """A test of ctest that runs a script, with the programs that it starts."""
    name: str
    script: str  # the file's name
    targets: tuple


def suites_in(text):
    """Returns the names of the suites that a test file defines or instantiates, sorted."""
    return sorted({first or second for first, second in SUITE.findall(text)})


def name_of(binary):
    """Returns what cmake/WeirTargets.cmake calls a test binary in the names of its tests."""
    return re.sub(r"^weir_|_test$", "", binary)


def regex_of(preset, suites_by_binary, others=()):
    """Returns the regex for `ctest -R` of suites in a preset and of other tests with its prefix.
    A suite that is instantiated is PREFIX/SUITE, and one with types is SUITE/NUMBER."""
    parts = []
    for binary, suites in suites_by_binary.items():
        parts.append(f"{name_of(binary)}:([^/]*/)?({'|'.join(sorted(suites))})(/.*)?")
    return f"^{preset}:({'|'.join([*parts, *sorted(others)])})$"


def script_tests(cmake_text):
    """Returns the ScriptTests of a CMake file that name their programs and have the prefix."""
    found = []
    for name, command in SCRIPT_TEST.findall(cmake_text):
        script, targets = SCRIPT.search(command), tuple(TARGET.findall(command))
        if script and targets:
            found.append(ScriptTest(name, script[1], targets))
    return found
