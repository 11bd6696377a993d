"""The fixture of the tests of the checks: a small clean tree, and the faults that changes cause."""

import json
import pathlib
import tempfile
import unittest

import check

HEADER = "// The unit {0}.\n#pragma once\n\nnamespace weir {{\n\nint {0}();\n\n}}" \
         "  // namespace weir\n"
SOURCE = '#include "weir/{1}/{0}.hpp"\n\nnamespace weir {{\n\nint {0}() {{ return 1; }}\n\n}}' \
         "  // namespace weir\n"
UNITS = [("error", "base"), ("tcp", "net"), ("wire", "tls"), ("parse", "json"),
         ("serve", "http/server"), ("world", "sim")]


def clean_tree():
    tree = {".clang-format": "BasedOnStyle: Google\nColumnLimit: 100\n"}
    for name, floor in UNITS:
        tree[f"weir/{floor}/{name}.hpp"] = HEADER.format(name)
        tree[f"weir/{floor}/{name}.cpp"] = SOURCE.format(name, floor)
    return tree


class CheckTestCase(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name).resolve() / "tree"

    def check(self, changes, uncompiled=(), with_tools=False, since=None):
        """Returns the faults and the warnings of the clean tree with these changes."""
        tree = clean_tree() | changes
        for path, text in tree.items():
            file = self.root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        build = None
        if with_tools:
            build = self.root / "build"
            build.mkdir(exist_ok=True)
            commands = [{"directory": str(self.root), "file": path} for path in tree
                        if path.endswith(".cpp") and path not in uncompiled]
            (build / "compile_commands.json").write_text(json.dumps(commands))
        return check.check(self.root, build, since)[:2]

    def expect(self, rule, path, changes, message="", **options):
        faults, _ = self.check(changes, **options)
        self.expect_one(faults, rule, path, message)

    def expect_one(self, found, rule, path, message):
        hits = [each for each in found
                if each[0] == path and each[2] == rule and message in each[3]]
        self.assertTrue(hits, f"no {rule} in {path}; found: {found}")

    def expect_warning(self, rule, path, changes, message="", **options):
        """Expects a warning, and no fault."""
        faults, warnings = self.check(changes, **options)
        self.assertEqual(faults, [])
        self.expect_one(warnings, rule, path, message)

    def expect_clean(self, changes, **options):
        """Expects no fault and no warning."""
        self.assertEqual(self.check(changes, **options), ([], []))
