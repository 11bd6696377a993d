#!/usr/bin/env python3
"""Installs Weir from a build tree and builds the project in tests/consumer with it.

Each compiler builds the project with CMake and with pkg-config. If the environment variable
WEIR_SWEEP_SECONDS is below 60, one compiler uses CMake and the other uses pkg-config, chosen anew
in each run. The test in the simulated world runs, and the service answers requests.

    install_test.py --build TREE [--package]

With --package, the test installs the Debian package into a root of its own. Only the packages that
apt would install with it on an empty machine exist there. The package must have the files that an
installation from the build tree has. One build of the project then shows that they work there.
"""

import argparse
import contextlib
import filecmp
import json
import os
import pathlib
import platform
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.request

CONSUMER = pathlib.Path(__file__).resolve().parent / "consumer"
VERSION = re.search(r"project\(weir VERSION ([0-9.]+)",
                    (CONSUMER.parent.parent / "CMakeLists.txt").read_text()).group(1)
# Packages that weir-config.cmake and the libraries need on a machine that builds with Weir.
NEEDED = {"liburing-dev", "libre2-dev", "libssl-dev", "zlib1g-dev", "libdeflate-dev",
          "libbrotli-dev", "libzstd-dev", "pkg-config"}
if platform.machine() == "x86_64":
    NEEDED.add("libipsec-mb-dev")
COMPILERS = ("clang++-19", "g++-12")
# Options for apt: a system without any package. The caches of this machine stay unchanged.
NOTHING_INSTALLED = ("-o", "Dir::State::status=/dev/null", "-o", "Dir::Cache::pkgcache=",
                     "-o", "Dir::Cache::srcpkgcache=", "-o", "Debug::NoLocking=1")
GCC_12_PAGE = "docs/gcc-12.md"
SECONDS_MAX = 60
SAMPLES = float(os.environ.get("WEIR_SWEEP_SECONDS", "3600")) < 60
INCLUDE = re.compile(r'^#include ["<](weir/[^">]+)', re.MULTILINE)


def run(*command, **more):
    """Returns the output of a command. Exits with the output if the command fails."""
    ran = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL, **more)
    if ran.returncode != 0:
        raise SystemExit(f"FAILED: {' '.join(map(str, command))}\n{ran.stdout}")
    return ran.stdout


def install(build, folder):
    run("cmake", "--install", build, "--prefix", folder / "usr")
    return folder / "usr"


def needed_packages(package):
    """Returns the packages that apt would install with this one on an empty machine.

    Returns None if apt has no package lists."""
    if not shutil.which("apt-get"):
        return None
    known = run("apt-cache", *NOTHING_INSTALLED, "policy", "libc6")
    if not re.search(r"Candidate: [^(\s]", known):
        return None
    planned = run("apt-get", "--simulate", *NOTHING_INSTALLED, "--no-install-recommends",
                  "install", package)
    names = set(re.findall(r"^Inst (\S+)", planned, re.MULTILINE)) - {"weir"}
    if missing := NEEDED - names:
        raise SystemExit(f"FAILED: the package is installed without {missing}:\n{planned}")
    return names


def status_of(names):
    """Returns dpkg's status entries of these packages, or of all packages for None."""
    status = pathlib.Path("/var/lib/dpkg/status").read_text()
    if names is None:
        return status
    stanzas = re.findall(r"^Package: (\S+)\n((?:.+\n)*)", status, re.MULTILINE)
    return "\n".join(f"Package: {name}\n{rest}" for name, rest in stanzas if name in names)


def install_package(build, folder):
    """Installs the package into a root that lists the needed packages without their files."""
    run("cpack", "-G", "DEB", "-B", folder, "--config", build / "CPackConfig.cmake")
    package, = folder.glob("*.deb")
    depends = run("dpkg-deb", "--field", package, "Depends")
    if missing := NEEDED - {part.split()[0] for part in depends.split(",")}:
        raise SystemExit(f"FAILED: the package does not depend on {missing}: {depends}")
    root = folder / "root"
    known = root / "var/lib/dpkg"
    (known / "info").mkdir(parents=True)
    (known / "updates").mkdir()
    names = needed_packages(package)
    if names is None:
        print("apt has no package lists: its plan is not checked, and all packages of this machine "
              "count as installed", flush=True)
    else:
        print(f"apt would install {len(names)} packages with it on an empty machine", flush=True)
    (known / "status").write_text(status_of(names))
    # dpkg needs programs of the system administrator.
    path = os.environ["PATH"] + ":/usr/sbin:/sbin"
    run("dpkg", f"--root={root}", "--force-not-root", "--install", package,
        env=dict(os.environ, PATH=path))
    listed = run("dpkg", f"--root={root}", "--listfiles", "weir")
    for file in ("/usr/bin/weir", "/usr/include/weir/http.hpp"):
        if file not in listed.splitlines():
            raise SystemExit(f"FAILED: {file} is not in the package:\n{listed}")
    return root / "usr"


def files_of(folder):
    return {path.relative_to(folder).as_posix(): path for path in folder.rglob("*")
            if path.is_file()}


def check_same_files(packaged, installed):
    """Fails if two installed trees differ. Only programs may: the package has them stripped."""
    packaged, installed = files_of(packaged), files_of(installed)
    if differing := packaged.keys() ^ installed.keys():
        raise SystemExit(f"FAILED: only one of the package and the build tree has {differing}")
    for name, path in packaged.items():
        if not name.startswith("bin/") and not filecmp.cmp(path, installed[name], shallow=False):
            raise SystemExit(f"FAILED: {name} of the package differs from that of the build tree")
    print(f"{len(packaged)} files: as installed from the build tree", flush=True)


def check_frame_pointers(flags):
    """Fails if users of the package do not get the option that profiles need."""
    if "-fno-omit-frame-pointer" not in flags:
        raise SystemExit(f"FAILED: a user's program has no frame pointers: {flags}")


def by_cmake(prefix, compiler, folder):
    run("cmake", "-S", CONSUMER, "-B", folder, f"-DCMAKE_CXX_COMPILER={compiler}",
        f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Release",
        "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON",
        *(["-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG"] if SAMPLES else []))
    check_frame_pointers((folder / "compile_commands.json").read_text())
    run("cmake", "--build", folder)
    run("ctest", "--test-dir", folder, "--output-on-failure", "--timeout", SECONDS_MAX)
    return folder / "consumer"


def by_pkg_config(prefix, compiler, folder):
    file, = prefix.rglob("weir.pc")
    environment = dict(os.environ, PKG_CONFIG_PATH=str(file.parent))
    folder.mkdir()
    for program, package in (("consumer", "weir"), ("consumer_test", "weir-sim")):
        flags = run("pkg-config", "--cflags", "--libs", package, env=environment).split()
        check_frame_pointers(flags)
        if run("pkg-config", "--modversion", package, env=environment).strip() != VERSION:
            raise SystemExit(f"FAILED: pkg-config reports another version of {package}")
        said = run(compiler, "-std=c++23", "-O1", "-Wall", "-Wextra", "-Werror",
                   CONSUMER / f"{program}.cpp", "-o", folder / program, *flags)
        if (GCC_12_PAGE in said) != (compiler == "g++-12"):
            raise SystemExit(f"FAILED: the note on GCC 12 must appear with GCC 12 only:\n{said}")
    replay(folder / "consumer_test")
    return folder / "consumer"


def replay(test):
    """Runs a test again with the replay command that it printed. Both outputs must be equal."""
    said = run(test)
    command = re.search(r"replay: (.*)", said).group(1)
    if run(*command.split()) != said:
        raise SystemExit(f"FAILED: the output of {command} differs from:\n{said}")


def check_headers(prefix):
    """Fails if an installed header includes a missing one, or if the public headers do not compile.
    `./dev check` compiles each header alone."""
    include = prefix / "include"
    public = []
    for header in sorted((include / "weir").rglob("*.hpp")):
        path = header.relative_to(include).as_posix()
        for included in INCLUDE.findall(header.read_text()):
            if not (include / included).exists():
                raise SystemExit(f"FAILED: {path} includes {included}, which is not installed")
        if "test" in path.split("/"):
            raise SystemExit(f"FAILED: {path} is a fixture and is installed")
        if "detail" not in path.split("/"):
            public.append(f"#include <{path}>\n")
    for compiler in COMPILERS:
        subprocess.run([compiler, "-std=c++23", "-fsyntax-only", "-Wall", "-Wextra", "-Werror",
                        "-DWEIR_KNOWS_GCC_12", f"-I{include}", "-x", "c++", "-"],
                       input="".join(public), text=True, check=True)
    print(f"{len(public)} public headers: compile", flush=True)


@contextlib.contextmanager
def serving(program):
    server = subprocess.Popen([program, "--port", "0", "--address", "127.0.0.1", "--cores", "1"],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
    try:
        yield server
    finally:
        server.kill()
        server.wait()


def ask(program):
    """Checks that the service answers requests and ends after SIGTERM."""
    with serving(program) as server:
        said = ""
        for line in server.stdout:
            said += line
            if found := re.search(r"listening on \S*:(\d+)", line):
                break
        else:
            raise SystemExit(f"FAILED: {program} does not serve:\n{said}")
        address = f"http://127.0.0.1:{found.group(1)}"
        with urllib.request.urlopen(f"{address}/version", timeout=SECONDS_MAX) as answer:
            version = answer.read().decode()
        request = urllib.request.Request(f"{address}/sums",
                                         json.dumps({"left": 20, "right": 22}).encode(),
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=SECONDS_MAX) as answer:
            total = answer.read().decode()
        server.send_signal(signal.SIGTERM)
        server.stdout.read()
        status = server.wait(SECONDS_MAX)
    if (version, total, status) != (VERSION, '{"total":42}', 0):
        raise SystemExit(f"FAILED: {program}: version {version}, 20 + 22 = {total}, exit {status}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--package", action="store_true")
    options = parser.parse_args()
    if missing := [compiler for compiler in COMPILERS if not shutil.which(compiler)]:
        raise SystemExit(f"FAILED: there is no {' and no '.join(missing)}")
    with tempfile.TemporaryDirectory(prefix="weir-install-") as name:
        folder = pathlib.Path(name)
        prefix = (install_package if options.package else install)(options.build, folder)
        if not (prefix / "share/doc/weir/gcc-12.md").exists():
            raise SystemExit("FAILED: the page that GCC 12's note names is not installed")
        tool = run(prefix / "bin/weir", "--version").strip()
        if tool != VERSION:
            raise SystemExit(f"FAILED: weir --version says {tool}, not {VERSION}")
        if options.package:
            check_same_files(prefix, install(options.build, folder / "installed"))
            ways = ((by_cmake, "clang++-19"),)
        else:
            check_headers(prefix)
            ways = tuple((way, compiler) for compiler in COMPILERS
                         for way in (by_cmake, by_pkg_config))
            if SAMPLES:
                ways = random.choice(((ways[0], ways[3]), (ways[1], ways[2])))
        for way, compiler in ways:
            ask(way(prefix, compiler, folder / f"{way.__name__}-{compiler}"))
            print(f"{way.__name__}, {compiler}: works", flush=True)


if __name__ == "__main__":
    sys.exit(main())
