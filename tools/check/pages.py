"""Checks README.md and docs/guide: code comes from examples, links and commands lead somewhere."""

import posixpath
import re
import textwrap

README_LINES_MAX = 190
PAGE = re.compile(r"^(README\.md|docs/guide/[^/]+\.md)$")
FENCE = re.compile(r"^```(\w*)$")
EXAMPLE = re.compile(r"\bexamples/\w+\.[ch]pp\b")
RUN = re.compile(r"\./dev run ([a-z]\w*)")
LINK = re.compile(r"\]\(([^()#\s]+)(?:#[^()\s]*)?\)")


def pages(repository):
    return [file for file in repository.files.values() if PAGE.match(file.path)]


def code_blocks(file):
    """Yields (line, example, code) of each block of C++. The example is the last file of examples/
    that the page names above the block; None if it names none."""
    example, language, start, code = None, None, 0, []
    for number, line in enumerate(file.lines, 1):
        fence = FENCE.match(line)
        if fence and language is None:
            language, start, code = fence[1], number, []
        elif fence:
            if language == "cpp":
                yield start, example, "\n".join(code)
            language = None
        elif language is not None:
            code.append(line)
        elif named := EXAMPLE.findall(line):
            example = named[-1]


def contains(text, code):
    """Returns true if the code is a run of whole lines of the text, whatever their indentation."""
    lines, wanted = text.splitlines(), textwrap.dedent(code).strip("\n").splitlines()
    for first in range(len(lines) - len(wanted) + 1):
        part = "\n".join(lines[first:first + len(wanted)])
        if textwrap.dedent(part).splitlines() == wanted:
            return True
    return False


def check_code(repository, report):
    for file in pages(repository):
        for line, example, code in code_blocks(file):
            if example not in repository.files:
                report(file, line, "page-code", "name the example above the code, in examples/")
            elif not contains(repository.files[example].text, code):
                report(file, line, "page-code", f"the code is not a part of {example}")


def check_references(repository, report):
    """Checks that linked files and examples of `./dev run` exist."""
    for file in pages(repository):
        folder = posixpath.dirname(file.path)
        for number, line in enumerate(file.lines, 1):
            for name in RUN.findall(line):
                if f"examples/{name}.cpp" not in repository.files:
                    report(file, number, "page-run", f"there is no example {name}")
            for target in LINK.findall(line):
                path = posixpath.normpath(posixpath.join(folder, target))
                if ":" not in target and not (repository.root / path).exists():
                    report(file, number, "page-link", f"there is no {path}")


def check_readme(repository, report):
    readme = repository.files.get("README.md")
    if readme and len(readme.lines) > README_LINES_MAX:
        report(readme, len(readme.lines), "page-size",
               f"{len(readme.lines)} lines; at most {README_LINES_MAX}")


CHECKS = [check_code, check_references, check_readme]
