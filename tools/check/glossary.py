#!/usr/bin/env python3
"""Writes the list of public types in docs/glossary.md from the doc comments of public headers.

    glossary.py [--root FOLDER]

The terms before the marker are written by hand and stay unchanged.
"""

import argparse
import pathlib
import re

import words
from repository import Repository

MARKER = "<!-- types: written by tools/check/glossary.py -->"


def documented(file, line):
    """Returns the first sentence of the doc comment above a type; "" if it has none."""
    first = line - 1
    while first > 0 and not file.lines[first - 1].lstrip().startswith("///"):
        if re.search(r"[;}]\s*$", file.lines[first - 1]) or not file.lines[first - 1].strip():
            return ""
        first -= 1
    last = first
    while first > 0 and file.lines[first - 1].lstrip().startswith("///"):
        first -= 1
    lines = [re.sub(r"^\s*///\s?", "", each) for each in file.lines[first:last]]
    return next(iter(words.sentences(lines)), "")


def rows(repository):
    found = {}
    for name, file, line in words.public_types(repository):
        meaning = documented(file, line)
        if name not in found or meaning and not found[name][0]:
            found[name] = (meaning, file.path)
    for name in sorted(found, key=str.lower):
        meaning, path = found[name]
        if not meaning and name.endswith("Options") and name != "Options":
            meaning = f"Options of `{name.removesuffix('Options')}`."
        yield f"| `{name}` | {meaning.replace('|', chr(92) + '|')} | `{path}` |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", default=str(pathlib.Path(__file__).resolve().parents[2]))
    root = pathlib.Path(parser.parse_args().root)
    page = root / "docs/glossary.md"
    kept = page.read_text().partition(MARKER)[0]
    table = "\n".join(rows(Repository(root)))
    page.write_text(f"{kept}{MARKER}\n\n| type | meaning | header |\n|---|---|---|\n{table}\n")


if __name__ == "__main__":
    main()
