#!/usr/bin/env python3
"""Builds a project that embeds Weir, and asks its service over loopback.

    embed_test.py --way fetchcontent|subdirectory --compiler clang++-19|g++-12 [--without-parts]

The project's CMakeLists.txt is the block of README.md for this way. It builds the service once as a
program and once as a shared library. The packages that only Weir's own tests, benchmarks and tools
need are hidden, and nothing of the project around Weir may change.

With --without-parts, OpenSSL, the libraries of compression, spdlog and ipsec-mb are hidden too. The
service then tells for each part that it is missing, and everything else works. Such a Weir is also
installed and used by find_package() and pkg-config.
"""

import argparse
import base64
import contextlib
import hashlib
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROJECT = ROOT / "tests" / "embed"
VERSION = re.search(r"project\(weir VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
WAYS = {"fetchcontent": "FetchContent_Declare(weir", "subdirectory": "add_subdirectory(weir)"}
BLOCK = re.compile(r"^```cmake\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Packages that the library does not use.
HIDDEN_PACKAGES = ("GTest", "benchmark", "simdjson", "nlohmann_json", "CLI11")
PARTS = ("OpenSSL", "zlib", "libdeflate", "brotli", "zstd", "spdlog")
# Modules of pkg-config that the project may see, with those that they require.
MODULES = ("liburing", "re2")
MODULES_OF_PARTS = ("openssl", "libssl", "libcrypto", "zlib", "libdeflate", "libbrotlienc",
                    "libbrotlidec", "libbrotlicommon", "libzstd")
BATCH = 24  # sources of the library that are compiled together
SECONDS_MAX = 60


def run(*command, **more):
    """Returns the output of a command. Exits with the output if the command fails."""
    ran = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL, **more)
    if ran.returncode != 0:
        raise SystemExit(f"FAILED: {' '.join(map(str, command))}\n{ran.stdout}")
    return ran.stdout


def check(condition, what):
    if not condition:
        raise SystemExit(f"FAILED: {what}")


def block_of(way):
    """Returns the block of README.md that embeds Weir in this way."""
    found = [each for each in BLOCK.findall((ROOT / "README.md").read_text()) if WAYS[way] in each]
    check(len(found) == 1, f"README.md has {len(found)} blocks with {WAYS[way]}")
    return found[0]


def write_project(folder, block, service):
    """Writes a project whose lines about Weir are those of the block."""
    folder.mkdir()
    for source in ("main.cpp", service):
        shutil.copy(PROJECT / source, folder)
    lines = block.strip().splitlines()
    links = [line for line in lines if line.startswith("target_link_libraries(service ")]
    check(len(links) == 1, f"the block links a target `service`:\n{block}")
    embeds = [line for line in lines if line not in links]
    text = ["cmake_minimum_required(VERSION 3.25)", "project(service LANGUAGES CXX)"]
    if service == "service.cpp":
        text += [f"include({PROJECT}/not_leaking.cmake)", "remember(before)", *embeds,
                 "remember(after)", "compare()", f"include({PROJECT}/targets.cmake)"]
        text += [f"add_executable(service main.cpp {service})", *links]
        text += ["if(CMAKE_POSITION_INDEPENDENT_CODE)", f"  add_library(plugin SHARED {service})",
                 *(line.replace("(service ", "(plugin ") for line in links),
                 "  target_link_options(plugin PRIVATE -Wl,-z,defs)",
                 "  add_executable(plugged main.cpp)",
                 "  target_link_libraries(plugged PRIVATE plugin)", "endif()"]
    else:
        text += [*embeds, f"add_executable(service {service})", *links]
    (folder / "CMakeLists.txt").write_text("\n".join(text) + "\n")


def only_modules(folder, names):
    """Returns an environment in which pkg-config knows these modules only."""
    folder.mkdir()
    paths = run("pkg-config", "--variable", "pc_path", "pkg-config").strip().split(":")
    for name in names:
        for path in paths:
            file = pathlib.Path(path, f"{name}.pc")
            if file.exists():
                # A link would give other values of ${pcfiledir}.
                shutil.copy(file, folder)
                break
    environment = dict(os.environ, PKG_CONFIG_LIBDIR=str(folder))
    environment.pop("PKG_CONFIG_PATH", None)
    return environment


def configure(way, compiler, folder, environment, *more):
    """Configures the project and returns what CMake printed."""
    options = [f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON" for name in HIDDEN_PACKAGES]
    if way == "fetchcontent":
        options.append(f"-DFETCHCONTENT_SOURCE_DIR_WEIR={ROOT}")
    else:
        (folder / "project" / "weir").symlink_to(ROOT)
    if cache := shutil.which("ccache"):
        options.append(f"-DCMAKE_CXX_COMPILER_LAUNCHER={cache}")
    said = run("cmake", "-G", "Ninja", "-S", folder / "project", "-B", folder / "build",
               f"-DCMAKE_CXX_COMPILER={compiler}", f"-DWEIR_BATCH={BATCH}", *options, *more,
               env=environment)
    cache = (folder / "build" / "CMakeCache.txt").read_text()
    for name in ("GTest_DIR", "benchmark_DIR", "simdjson_DIR", "WEIR_NLOHMANN_JSON",
                 "WEIR_NGHTTP2_FOUND", "WEIR_CCACHE"):
        check(f"\n{name}:" not in cache, f"the library searches for {name}")
    # CMake names the options that nothing has read.
    for name in HIDDEN_PACKAGES:
        check(f"CMAKE_DISABLE_FIND_PACKAGE_{name}\n" in said, f"the library wants {name}:\n{said}")
    check("CMAKE_BUILD_TYPE:STRING=\n" in cache, "Weir sets the build type of the project")
    return said


def build(folder, environment, *targets):
    # Settings of ccache for precompiled headers, as in cmake/WeirToolchain.cmake.
    environment = dict(
        environment, CCACHE_DEPEND="1", CCACHE_BASEDIR=str(ROOT), CCACHE_NOHASHDIR="1",
        CCACHE_SLOPPINESS="pch_defines,time_macros,include_file_mtime,include_file_ctime")
    run("cmake", "--build", folder, *(["--target", *targets] if targets else []), env=environment)


@contextlib.contextmanager
def serving(program):
    """Yields the URL of the started service, and checks that it ends in order."""
    server = subprocess.Popen([program, "--port", "0", "--address", "127.0.0.1", "--cores", "1"],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
    try:
        said = ""
        for line in server.stdout:
            said += line
            if found := re.search(r"listening on \S*:(\d+)", line):
                break
        else:
            raise SystemExit(f"FAILED: {program} does not serve:\n{said}")
        yield f"http://127.0.0.1:{found[1]}"
        server.send_signal(signal.SIGTERM)
        said += server.stdout.read()
        check(server.wait(SECONDS_MAX) == 0, f"{program} ends with an error:\n{said}")
    finally:
        server.kill()
        server.wait()


def get(url, **headers):
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers),
                                timeout=SECONDS_MAX) as answer:
        return answer.read().decode()


def ask_version(program):
    with serving(program) as url:
        version = get(f"{url}/version")
    check(version == VERSION, f"{program} answers {version}, not {VERSION}")


def embed(way, compiler, folder):
    environment = only_modules(folder / "modules", MODULES + MODULES_OF_PARTS)
    write_project(folder / "project", block_of(way), "service.cpp")
    shared = way == "subdirectory"
    configure(way, compiler, folder, environment,
              *(["-DCMAKE_POSITION_INDEPENDENT_CODE=ON"] if shared else []))
    build(folder / "build", environment)
    ask_version(folder / "build" / "service")
    if shared:
        ask_version(folder / "build" / "plugged")
    text = (folder / "build" / "build.ninja").read_text()
    flags = re.search(r"^build CMakeFiles/service.dir/service.cpp.o.*?^  FLAGS = ([^\n]*)", text,
                      re.MULTILINE | re.DOTALL)[1]
    check("-fno-omit-frame-pointer" in flags, f"users have no frame pointers: {flags}")
    check("-Werror" not in text, "an embedded Weir makes warnings errors")
    check("weir_admin_test" not in text and "example_hello" not in text, "more than the library")


# --- without parts -------------------------------------------------------------------------------

def echo(url):
    """Sends a message over a WebSocket and returns what comes back."""
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=SECONDS_MAX) as peer:
        key = base64.b64encode(os.urandom(16)).decode()
        peer.sendall(f"GET /echo HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\n"
                     "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                     f"Sec-WebSocket-Key: {key}\r\n\r\n".encode())
        stream = peer.makefile("rb")
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            line = stream.readline()
            check(line, f"the handshake ends after {head}")
            head += line
        digest = hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()
        check(base64.b64encode(digest) in head, f"the handshake is wrong: {head}")
        mask = b"\1\2\3\4"
        text = b"a message"
        masked = bytes(byte ^ mask[index % 4] for index, byte in enumerate(text))
        peer.sendall(bytes([0x81, 0x80 | len(text)]) + mask + masked)
        kind, size = stream.read(2)
        return stream.read(size).decode() if kind == 0x81 else f"a frame {kind}"


def basic(credentials):
    return "Basic " + base64.b64encode(credentials.encode()).decode()


def check_service(program):
    needed = run("readelf", "--dynamic", program)
    for library in ("libssl", "libcrypto", "libz.", "libdeflate", "libbrotli", "libzstd",
                    "libIPSec", "libspdlog"):
        check(library not in needed, f"the program links {library}:\n{needed}")
    with serving(program) as url:
        secure = url.replace("http:", "https:")
        for what, answer, expected in (
                ("plain HTTP", get(f"{url}/hello"), "hello"),
                ("the client", get(f"{url}/fetch?url={url}/hello"), "hello"),
                ("a WebSocket", echo(url), "a message"),
                ("https", get(f"{url}/fetch?url={secure}/hello"), "failed: library_failure\n"),
                ("compression", get(f"{url}/codings"), "none"),
                ("cookies", get(f"{url}/cookies"), "value, not supported here"),
                ("public keys", get(f"{url}/tokens"),
                 'jwt: this build of Weir has no OpenSSL: "RS256"'),
                ("a login", get(f"{url}/admin/name", Authorization=basic("ann:pass word")), "ann")):
            check(answer == expected, f"{what}: {answer!r} instead of {expected!r}")
        try:
            get(f"{url}/admin/name", Authorization=basic("ann:other"))
            raise SystemExit("FAILED: Basic authentication accepts a wrong password")
        except urllib.error.HTTPError as error:
            check(error.code == 401, f"a wrong password is answered with {error.code}")
    ran = subprocess.run([program, "--port", "0", "--tls-self-signed"], stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         timeout=SECONDS_MAX, check=False)
    check(ran.returncode == 1 and "this build of Weir has no OpenSSL" in ran.stdout,
          f"--tls-self-signed ends with {ran.returncode}: {ran.stdout}")


def check_spdlog_sink(prefix, compiler, flags):
    """Fails unless a call of spdlog_sink() is a clear error of the compiler."""
    code = ("#include <weir/log.hpp>\n"
            "auto f() { return weir::spdlog_sink(nullptr); }\n")
    ran = subprocess.run([compiler, "-std=c++23", "-c", "-x", "c++", "-", "-o", os.devnull, *flags],
                         input=code, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         check=False)
    check(ran.returncode != 0 and "this build of Weir has no spdlog_sink()" in ran.stdout,
          f"spdlog_sink() of {prefix} compiles, or the reason is not clear:\n{ran.stdout}")


def without_parts(way, compiler, folder):
    environment = only_modules(folder / "modules", MODULES)
    write_project(folder / "project", block_of(way), "without_parts.cpp")
    # A standard place for the installed files.
    said = configure(way, compiler, folder, environment, "-DWEIR_INSTALL=ON",
                     "-DCMAKE_DISABLE_FIND_PACKAGE_OpenSSL=ON",
                     f"-DCMAKE_INSTALL_PREFIX={folder}/usr")
    for part in PARTS:
        found = re.search(rf"^-- weir: without {part}: .* \(Debian: (?:lib\S+|zlib1g-dev)", said,
                          re.MULTILINE)
        check(found, f"no line says what is missing without {part}:\n{said}")
    build(folder / "build", environment)
    check_service(folder / "build" / "service")
    run("cmake", "--install", folder / "build")
    user = folder / "user"
    user.mkdir()
    shutil.copy(PROJECT / "without_parts.cpp", user)
    (user / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(service LANGUAGES CXX)\n"
        "find_package(weir 0.1 REQUIRED)\nadd_executable(service without_parts.cpp)\n"
        "target_link_libraries(service PRIVATE weir::weir)\n")
    run("cmake", "-G", "Ninja", "-S", user, "-B", user / "build",
        f"-DCMAKE_CXX_COMPILER={compiler}", f"-DCMAKE_PREFIX_PATH={folder}/usr",
        "-DCMAKE_DISABLE_FIND_PACKAGE_OpenSSL=ON", env=environment)
    build(user / "build", environment)
    check_service(user / "build" / "service")
    file, = (folder / "usr").rglob("weir.pc")
    environment["PKG_CONFIG_PATH"] = str(file.parent)
    flags = run("pkg-config", "--cflags", "--libs", "weir", env=environment).split()
    check("-lssl" not in flags and "-lz" not in flags, f"weir.pc links absent parts: {flags}")
    check_spdlog_sink(folder / "usr", compiler, flags)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--way", choices=WAYS, required=True)
    parser.add_argument("--compiler", default="clang++-19")
    parser.add_argument("--without-parts", action="store_true")
    options = parser.parse_args()
    if not shutil.which(options.compiler):
        raise SystemExit(f"FAILED: there is no {options.compiler}")
    # The compiler cache needs a folder whose name does not change.
    name = f"{options.way}-{options.compiler}{'-without-parts' if options.without_parts else ''}"
    folder = ROOT / "build" / "embed" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (without_parts if options.without_parts else embed)(options.way, options.compiler, folder)
    shutil.rmtree(folder)
    print(f"{options.way}, {options.compiler}: works")


if __name__ == "__main__":
    sys.exit(main())
