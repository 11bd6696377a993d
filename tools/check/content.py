"""Checks for forbidden content: unfinished code, hidden dependencies, paths of a machine."""

import re

import cxx_text
import floors

FIRST_HOSTED_RANK = floors.RANKS["task"]

# Split strings, so that this file passes its own checks.
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")
DISABLED = re.compile(r"^\s*#\s*if\s+0\b|\bDISABLED" r"_\w", re.MULTILINE)
MACHINE_PATH = re.compile(r"(?<![\w.}*-])/(ho" r"me|ro" r"ot|wo" r"rk|Use" r"rs)/\w")
MACROS_IN = "weir/base/result.hpp"  # WEIR_TRY: only a macro can return from its caller
MACRO = re.compile(r"^[ \t]*#[ \t]*define\b", re.MULTILINE)
USING_NAMESPACE = re.compile(r"^\s*using\s+namespace\s+(?!std::\w*literals\b)", re.MULTILINE)
ENVIRONMENT = re.compile(r"\b(secure_)?getenv\s*\(")
SLEEP = re.compile(r"\bthis_thread::sleep_\w+|\b(?:usleep|nanosleep)\s*\(")
# GCC refuses this (-Wdangling-else), because the macro begins with an if.
BARE_BRANCH = re.compile(r"^ *\}? *(?:else +)?(?:if \(.*\)|else) ((?:EXPECT|ASSERT)_\w+|FAIL)",
                         re.MULTILINE)
# `.value()` of a call's result is a reference into a temporary. C++23 keeps the temporary during
# the loop (P2718), but GCC 12 destroys it before the first iteration.
LOOP_OVER_TEMPORARY = re.compile(
    r"\bfor \([^;{}]*? : [^;{}]*\)\s*\.value\(\)\)(?!\s*[;,.)])")
WORLD = re.compile(
    r"\b(?:steady|system|high_resolution)_clock::now\b"
    r"|\bstd::(?:jthread|thread|condition_variable\w*|random_device|async)\b(?!::id|::hardware)"
    r"|\bthis_thread::sleep_\w+|\b(?:clock_gettime|gettimeofday|pthread_create)\s*\("
)


def matches(pattern, text):
    for match in pattern.finditer(text):
        yield cxx_text.line_of(text, match.end()), match.group(0).strip()


def check_unfinished(repository, report):
    for file in repository.files.values():
        for line, found in matches(UNFINISHED, file.text):
            report(file, line, "unfinished", f"{found}: finish it, or file an issue")
        if file.is_cxx:
            plain = cxx_text.without_comments(file.text)
            for line, found in matches(DISABLED, plain):
                report(file, line, "disabled", f"{found}: code is either run or deleted")


def check_machine_paths(repository, report):
    for file in repository.files.values():
        for line, found in matches(MACHINE_PATH, file.text):
            report(file, line, "machine-path", f"{found}... is a path of one machine")
        for line, _ in matches(re.compile(re.escape(str(repository.root)) + r"\b"), file.text):
            if len(repository.root.parts) > 2:
                report(file, line, "machine-path", "names the folder of this checkout")


def check_branches(repository, report):
    for file in repository.cxx:
        for line, found in matches(BARE_BRANCH, file.code):
            report(file, line, "bare-branch", f"{found}: needs braces after if or else")


def check_loops(repository, report):
    for file in repository.cxx:
        for line, _ in matches(LOOP_OVER_TEMPORARY, file.code):
            report(file, line, "loop-over-temporary",
                   "GCC 12 destroys what value() refers to: give the result a name")


def check_headers(repository, report):
    for file in repository.cxx:
        if not file.is_header:
            continue
        if "#pragma once" not in file.text:
            report(file, 1, "headers", "lacks #pragma once")
        for line, _ in matches(USING_NAMESPACE, file.code):
            report(file, line, "headers", "a header must not open a namespace for its includers")
        plain = cxx_text.without_comments(file.text)
        if file.path.startswith("weir/") and file.path != MACROS_IN:
            for line, _ in matches(MACRO, plain):
                report(file, line, "headers", f"no macros in headers, except in {MACROS_IN}")


def check_units(repository, report):
    """Checks that a unit begins with a comment, and that its source includes its header first."""
    for file in repository.cxx:
        own = re.sub(r"(_test)?\.cpp$", ".hpp", file.path)
        first = next((line for line in file.lines if line.strip() and line != "#pragma once"), "")
        if (file.is_header or own not in repository.files) and not first.startswith("//"):
            report(file, 1, "units", "the first comment says what the file is for")
        if not (file.is_source and file.path.startswith("weir/")) or file.is_test:
            continue
        folder = file.path.rpartition("/")[0]
        paths = [path for _, _, path in file.includes]
        if own in repository.files:
            if paths[:1] != [own]:
                report(file, 1, "units", "must include its own header first")
        elif not any(path.rpartition("/")[0] == folder for path in paths):
            report(file, 1, "units", "has no header beside it and includes none of its folder")


def check_world(repository, report):
    """Checks that code above the Platform uses it for the outside world. Unit tests never sleep."""
    for file in repository.cxx:
        floor = floors.floor_of(file.path)
        if floor is None:
            continue
        if file.is_test:
            for line, found in matches(SLEEP, file.code):
                report(file, line, "world", f"{found.rstrip('(')}: unit tests never sleep")
            continue  # a test may read the environment, for the seed of a replay
        if floors.is_for_tests(file.path):
            continue
        for line, _ in matches(ENVIRONMENT, file.code):
            report(file, line, "environment", "the library's behaviour is set by its caller alone")
        if floor in floors.TEST_FLOORS:
            continue
        if floors.RANKS.get(floor, 0) >= FIRST_HOSTED_RANK:
            for line, found in matches(WORLD, file.code):
                report(file, line, "world", f"{found.rstrip('(')}: ask the Platform")


CHECKS = [check_unfinished, check_machine_paths, check_branches, check_loops, check_headers,
          check_units, check_world]
