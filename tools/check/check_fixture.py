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
CMAKE = "weir_floor(base)\nweir_floor(net DEPENDS base LIBS x)\n"


def clean_tree():
    tree = {"CMakeLists.txt": CMAKE, ".clang-format": "BasedOnStyle: Google\nColumnLimit: 100\n"}
    for name, floor in UNITS:
        tree[f"weir/{floor}/{name}.hpp"] = HEADER.format(name)
        tree[f"weir/{floor}/{name}.cpp"] = SOURCE.format(name, floor)
    return tree


class CheckTestCase(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name).resolve() / "tree"

    def faults_of(self, changes, uncompiled=(), with_tools=False):
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
        return check.check(self.root, build)[0]

    def expect(self, rule, path, changes, message="", **options):
        faults = self.faults_of(changes, **options)
        hits = [fault for fault in faults
                if fault[0] == path and fault[2] == rule and message in fault[3]]
        self.assertTrue(hits, f"no {rule} fault in {path}; found: {faults}")

    def expect_clean(self, changes, **options):
        self.assertEqual(self.faults_of(changes, **options), [])
