#!/usr/bin/env python3
"""Runs the overlay port of contrib/vcpkg with stand-ins of the functions of vcpkg.

The stand-ins configure, build and install Weir for real, with the libraries of the system. A
project then finds the installed files. The test proves that the port's manifest is well-formed,
that its features are options of Weir, and that the portfile's steps work. It does not prove that
vcpkg has ports with the names of the dependencies, that these have what Weir needs, or that
vcpkg's own checks after a build accept the files: vcpkg is not installed here.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PORT = ROOT / "contrib" / "vcpkg" / "weir"
VERSION = re.search(r"project\(weir VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
FEATURES_ON = ("brotli", "tls")
BATCH = 24  # sources of the library that are compiled together

STAND_INS = """
cmake_minimum_required(VERSION 3.25)
set(CURRENT_PACKAGES_DIR "{folder}/packages")
set(FEATURES {features})

macro(vcpkg_check_linkage)
endmacro()
function(vcpkg_check_features)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "OUT_FEATURE_OPTIONS" "FEATURES")
  set(options)
  while(arg_FEATURES)
    list(POP_FRONT arg_FEATURES feature option)
    if(feature IN_LIST FEATURES)
      list(APPEND options -D${{option}}=ON)
    else()
      list(APPEND options -D${{option}}=OFF)
    endif()
  endwhile()
  set(${{arg_OUT_FEATURE_OPTIONS}} ${{options}} PARENT_SCOPE)
endfunction()
function(vcpkg_find_acquire_program name)
  find_program(${{name}} pkg-config REQUIRED)
endfunction()
function(vcpkg_cmake_configure)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "SOURCE_PATH" "OPTIONS")
  execute_process(COMMAND ${{CMAKE_COMMAND}} -G Ninja -S ${{arg_SOURCE_PATH}} -B {folder}/build
    -DCMAKE_INSTALL_PREFIX=${{CURRENT_PACKAGES_DIR}} -DCMAKE_BUILD_TYPE=Debug
    -DCMAKE_CXX_FLAGS_DEBUG=-O0 -DCMAKE_CXX_COMPILER={compiler} -DBUILD_SHARED_LIBS=OFF
    -DWEIR_BATCH={batch} ${{arg_OPTIONS}} COMMAND_ERROR_IS_FATAL ANY)
endfunction()
function(vcpkg_cmake_install)
  execute_process(COMMAND ${{CMAKE_COMMAND}} --build {folder}/build --target install
    COMMAND_ERROR_IS_FATAL ANY)
endfunction()
function(vcpkg_cmake_config_fixup)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "CONFIG_PATH" "")
  if(NOT EXISTS ${{CURRENT_PACKAGES_DIR}}/${{arg_CONFIG_PATH}}/weir-config.cmake)
    message(FATAL_ERROR "no package in ${{arg_CONFIG_PATH}}")
  endif()
endfunction()
function(vcpkg_fixup_pkgconfig)
endfunction()
function(vcpkg_install_copyright)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "FILE_LIST")
  file(INSTALL ${{arg_FILE_LIST}} DESTINATION ${{CURRENT_PACKAGES_DIR}}/share/weir)
endfunction()

include("{port}/portfile.cmake")
"""


def run(*command):
    environment = dict(os.environ, CCACHE_NOHASHDIR="1", CCACHE_BASEDIR=str(ROOT))
    ran = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, env=environment,
                         stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL, check=False)
    if ran.returncode != 0:
        raise SystemExit(f"FAILED: {' '.join(map(str, command))}\n{ran.stdout}")
    return ran.stdout


def check(condition, what):
    if not condition:
        raise SystemExit(f"FAILED: {what}")


def check_manifest():
    """Checks what vcpkg demands of a manifest, and that each feature is an option of the port."""
    manifest = json.loads((PORT / "vcpkg.json").read_text())
    check(manifest["name"] == "weir" and manifest["version"] == VERSION,
          f"the port is {manifest['name']} {manifest['version']}, not weir {VERSION}")
    portfile = (PORT / "portfile.cmake").read_text()
    options = dict(re.findall(r"^    (\S+) (WEIR_\w+)", portfile, re.MULTILINE))
    features = manifest["features"]
    check(set(options) == set(features), f"features {sorted(features)}, options {options}")
    check(set(manifest["default-features"]) <= set(features), "an unknown default feature")
    parts = (ROOT / "cmake" / "WeirParts.cmake").read_text()
    known = re.search(r"foreach\(part IN ITEMS ([^)]*)\)", parts)[1].split()
    check({option.removeprefix("WEIR_") for option in options.values()} <= set(known),
          f"an option is not one of {known}")
    lists = [manifest["dependencies"], *(each["dependencies"] for each in features.values())]
    for dependency in (each for names in lists for each in names):
        name = dependency if isinstance(dependency, str) else dependency["name"]
        check(NAME.fullmatch(name), f"not the name of a port: {name}")
    for name, feature in features.items():
        check(NAME.fullmatch(name) and feature["description"], f"feature {name}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compiler", default="clang++-19")
    options = parser.parse_args()
    check_manifest()
    with tempfile.TemporaryDirectory(prefix="weir-vcpkg-") as name:
        folder = pathlib.Path(name)
        script = folder / "run.cmake"
        script.write_text(STAND_INS.format(folder=folder, port=PORT, compiler=options.compiler,
                                           batch=BATCH, features=" ".join(FEATURES_ON)))
        said = run("cmake", "-P", script)
        for part in ("zlib", "libdeflate", "zstd", "spdlog", "ipsec-mb"):
            check(f"weir: without {part}: " in said, f"the port builds {part}:\n{said}")
        packages = folder / "packages"
        for file in ("share/weir/LICENSE", "share/weir/usage", "include/weir/http.hpp"):
            check((packages / file).exists(), f"the port does not install {file}")
        check(not (packages / "bin").exists(), "the port installs programs")
        user = folder / "user"
        shutil.copytree(ROOT / "contrib" / "conan" / "test_package", user)
        run("cmake", "-G", "Ninja", "-S", user, "-B", user / "build",
            f"-DCMAKE_CXX_COMPILER={options.compiler}", f"-DCMAKE_PREFIX_PATH={packages}")
        run("cmake", "--build", user / "build")
        said = run(user / "build" / "service_test")
        check(said == f"weir {VERSION}\n", f"the program says {said}")
    print("the portfile's steps work; vcpkg itself is not tested")


if __name__ == "__main__":
    sys.exit(main())
