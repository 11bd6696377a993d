#!/usr/bin/env python3
"""Creates the package of contrib/conan without a remote, and runs its test_package.

The packages of Conan and its settings are in a temporary folder. The test is skipped if there is no
Conan 2 and pip cannot install it into a virtual environment.

    conan_test.py [--venv FOLDER]
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
VERSION = re.search(r"project\(weir VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
BATCH = 24  # sources of the library that are compiled together
SKIPPED = 77


def run(environment, *command):
    ran = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, env=environment,
                         stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL, check=False)
    if ran.returncode != 0:
        raise SystemExit(f"FAILED: {' '.join(map(str, command))}\n{ran.stdout}")
    return ran.stdout


def find_conan(venv):
    """Returns the path of Conan 2, or None. Installs it into a virtual environment if there is
    none and pip can."""
    known = [venv / "bin" / "conan"] if venv else []
    for program in (*known, shutil.which("conan")):
        if program and os.path.exists(program) and "version 2" in run(os.environ, program,
                                                                      "--version"):
            return program
    if venv is None:
        return None
    for command in ([sys.executable, "-m", "venv", venv],
                    [venv / "bin" / "pip", "install", "--quiet", "conan>=2,<3"]):
        if subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode != 0:
            return None
    return venv / "bin" / "conan"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--venv", type=pathlib.Path)
    conan = find_conan(parser.parse_args().venv)
    if conan is None:
        print("skipped: there is no Conan 2, and pip cannot install it")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="weir-conan-") as name:
        environment = dict(os.environ, CONAN_HOME=f"{name}/home", CC="gcc-12", CXX="g++-12",
                           CCACHE_DEPEND="1", CCACHE_NOHASHDIR="1", CCACHE_BASEDIR=name,
                           CCACHE_SLOPPINESS="pch_defines,time_macros,include_file_mtime,"
                                             "include_file_ctime")
        run(environment, conan, "profile", "detect")
        variables = {"WEIR_BATCH": str(BATCH)}
        if cache := shutil.which("ccache"):
            variables["CMAKE_CXX_COMPILER_LAUNCHER"] = cache
        # Conan builds the test of a package beside its recipe, and the tree stays clean.
        said = run(environment, conan, "create", ROOT / "contrib" / "conan", "--no-remote",
                   "--test-folder", shutil.copytree(ROOT / "contrib/conan/test_package",
                                                    f"{name}/test_package"),
                   "-s", "compiler.cppstd=23", "-s", "build_type=Debug",
                   "-c", f"tools.cmake.cmaketoolchain:extra_variables={variables}",
                   "-c", "tools.cmake.cmaketoolchain:generator=Ninja",
                   "-c", "tools.build:cxxflags=['-O0', '-g0']")
        if f"weir {VERSION}\n" not in said:
            raise SystemExit(f"FAILED: the test of the package has not run:\n{said}")
    print(f"weir/{VERSION}: created and tested")
    return 0


if __name__ == "__main__":
    sys.exit(main())
