#!/usr/bin/env python3
"""Checks that a built program has the marks of each family of WEIR_HARDEN.

The marks are in the program or in the library that it is linked with.

    hardened_test.py --build TREE --program PROGRAM --families assertions,fortify,...
"""

import argparse
import pathlib
import re
import subprocess
import sys


class Built:
    """The output of binutils for a program and for a library that is linked into it."""

    def __init__(self, program, library):
        self.head = said("readelf", "--wide", "--file-header", program)
        self.segments = said("readelf", "--wide", "--program-headers", program)
        self.dynamic = said("readelf", "--wide", "--dynamic", program)
        self.wanted = re.findall(r"\bU (\w+)", said("nm", "--dynamic", program))
        self.code = said("objdump", "--disassemble", "--no-show-raw-insn", program)
        self.objects = said("ar", "t", library).split()
        self.notes = said("readelf", "--wide", "--notes", library)
        self.is_x86 = "X86-64" in self.head


def said(*command):
    ran = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL)
    if ran.returncode != 0:
        raise SystemExit(f"FAILED: {' '.join(map(str, command))}\n{ran.stdout}")
    return ran.stdout


def pie(built):
    if not re.search(r"Type:\s+DYN .*Position-Independent Executable", built.head):
        yield "it is not position-independent"
    if "GNU_RELRO" not in built.segments:
        yield "no part of it is read-only after relocation (RELRO)"
    if not re.search(r"BIND_NOW|FLAGS_1.*\bNOW\b", built.dynamic):
        yield "its functions are not bound at the start (BIND_NOW)"


def stack_protector(built):
    if "__stack_chk_fail" not in built.wanted:
        yield "nothing in it checks its stack (__stack_chk_fail)"


def stack_clash(built):
    """Checks that large frames are allocated page by page, and that each page is touched."""
    if not built.is_x86:
        return
    if not re.search(r"\bsub\s+\$0x1000,%rsp\n[^\n]*\b(?:mov|or)q\s+\$0x0,\S*\(%rsp\)", built.code):
        yield "none of its frames is touched page by page"


def fortify(built):
    if not any(re.fullmatch(r"__(?!stack_)\w+_chk", name) for name in built.wanted):
        yield "it calls no fortified function (__memcpy_chk or the like)"


def assertions(built):
    if not any("__glibcxx_assert_fail" in name for name in built.wanted):
        yield "it has none of the library's assertions (std::__glibcxx_assert_fail)"


def control_flow(built):
    """Checks Weir's objects. A program lacks the note if the system's start files lack it."""
    if not built.is_x86:
        return
    fit = len(re.findall(r"x86 feature: IBT, SHSTK", built.notes))
    if fit < len(built.objects):
        yield f"{fit} of {len(built.objects)} objects are fit for control-flow protection"


FAMILIES = {"assertions": assertions, "fortify": fortify, "stack-protector": stack_protector,
            "stack-clash": stack_clash, "control-flow": control_flow, "pie": pie}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--families", required=True)
    options = parser.parse_args()
    built = Built(options.program, options.build / "libweir_net.a")
    families = options.families.split(",")
    missing = 0
    for family in families:
        for fault in FAMILIES[family](built):
            print(f"FAILED: {family}: {fault}")
            missing += 1
    print(f"{options.program.name}: {len(families)} families, {missing} faults")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
