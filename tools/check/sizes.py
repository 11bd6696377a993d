"""Checks sizes: lines of a file, lines of a function, columns of a line."""

import cxx_text

COLUMNS_MAX = 100
FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 500
TEST_LINES_MAX = 800
EXAMPLE_LINES_MAX = 90
CODE_SUFFIXES = (".cpp", ".hpp", ".py", ".cmake", "CMakeLists.txt")


def lines_max(file):
    if file.path.startswith("examples/"):
        return EXAMPLE_LINES_MAX
    return TEST_LINES_MAX if file.is_test else FILE_LINES_MAX


def is_code(file):
    return file.path.endswith(CODE_SUFFIXES) or file.path == "dev"


def check_files(repository, report):
    for file in filter(is_code, repository.files.values()):
        if len(file.lines) > lines_max(file):
            report(file, len(file.lines), "file-size",
                   f"{len(file.lines)} lines; at most {lines_max(file)}")
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
