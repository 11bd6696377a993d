"""Checks sizes: lines of a file, lines of a function, columns of a line.

The length of a file is an alarm. A long file causes a warning, and only a file that is far too long
causes a fault.
"""

import cxx_text

COLUMNS_MAX = 100
FUNCTION_LINES_MAX = 70
FILE_LINES_ALARM = 600  # the first length that causes a warning
TEST_LINES_ALARM = 900
EXAMPLE_LINES_ALARM = 91
FILE_LINES_MAX = 999  # of each file
CODE_SUFFIXES = (".cpp", ".hpp", ".py", ".cmake", "CMakeLists.txt")


def lines_alarm(file):
    if file.path.startswith("examples/"):
        return EXAMPLE_LINES_ALARM
    return TEST_LINES_ALARM if file.is_test else FILE_LINES_ALARM


def is_code(file):
    return file.path.endswith(CODE_SUFFIXES) or file.path == "dev"


def check_files(repository, report):
    for file in filter(is_code, repository.files.values()):
        lines = len(file.lines)
        if lines > FILE_LINES_MAX:
            report(file, lines, "file-size", f"{lines} lines; at most {FILE_LINES_MAX}")
        elif lines >= lines_alarm(file):
            report(file, lines, "file-size", f"{lines} lines: does it hold a second idea?",
                   warning=True)
        for number, line in enumerate(file.lines, 1):
            if len(line) > COLUMNS_MAX:
                report(file, number, "columns", f"{len(line)} columns; at most {COLUMNS_MAX}")


def check_functions(repository, report):
    for file in repository.cxx:
        try:
            found = cxx_text.functions(file.code)
        except cxx_text.UnbalancedBraces as error:
            report(file, error.args[0], "function-size", "brackets do not match here")
            continue
        for function in found:
            if function.lines > FUNCTION_LINES_MAX:
                head = " ".join(function.head.split())[:60]
                report(file, function.first_line, "function-size",
                       f"{function.lines} lines in `{head}`; at most {FUNCTION_LINES_MAX}")


CHECKS = [check_files, check_functions]
