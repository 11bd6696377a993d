"""The recipe of Weir for Conan 2.

    conan create contrib/conan -s compiler.cppstd=23

The libraries that Weir uses are those of the system, so the recipe needs no remote. Each optional
part is an option: `-o weir/*:brotli=False` builds without brotli. Weir has static libraries only.
"""

import os
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load
from conan.tools.system.package_manager import Apt

required_conan_version = ">=2.0"

PACKAGES = ["pkg-config", "liburing-dev", "libre2-dev", "libcli11-dev", "libtomlplusplus-dev"]
# {option: its Debian package}
PARTS = {"tls": "libssl-dev", "ipsec_mb": "libipsec-mb-dev", "zlib": "zlib1g-dev",
         "libdeflate": "libdeflate-dev", "brotli": "libbrotli-dev", "zstd": "libzstd-dev",
         "spdlog": "libspdlog-dev"}
# {a target that Weir's own targets link: its libraries}
SYSTEM_LIBRARIES = {
    "Threads::Threads": ["pthread"], "PkgConfig::WEIR_LIBURING": ["uring"],
    "PkgConfig::WEIR_RE2": ["re2"], "OpenSSL::SSL": ["ssl"], "OpenSSL::Crypto": ["crypto"],
    "IPSec_MB": ["IPSec_MB"], "PkgConfig::WEIR_ZLIB": ["z"],
    "PkgConfig::WEIR_LIBDEFLATE": ["deflate"],
    "PkgConfig::WEIR_BROTLI": ["brotlienc", "brotlidec"], "PkgConfig::WEIR_ZSTD": ["zstd"]}


class WeirRecipe(ConanFile):
    name = "weir"
    license = "MIT"
    description = "network services in C++ that use every core"
    package_type = "static-library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"fPIC": [True, False], **{part: [True, False] for part in PARTS}}
    default_options = {"fPIC": True, **{part: True for part in PARTS}}

    def root(self):
        return os.path.join(self.recipe_folder, os.pardir, os.pardir)

    def set_version(self):
        lists = load(self, os.path.join(self.root(), "CMakeLists.txt"))
        self.version = re.search(r"project\(weir VERSION ([0-9.]+)", lists)[1]

    def export_sources(self):
        for pattern in ("CMakeLists.txt", "LICENSE", "cmake/*", "weir/*", "docs/gcc-12.md"):
            copy(self, pattern, self.root(), self.export_sources_folder,
                 excludes=("*_test.cpp", "*/test/*"))

    def config_options(self):
        if self.settings.arch != "x86_64":
            del self.options.ipsec_mb

    def configure(self):
        if not self.options.tls:
            self.options.rm_safe("ipsec_mb")

    def layout(self):
        cmake_layout(self)

    def validate(self):
        check_min_cppstd(self, 23)

    def parts(self):
        """Returns {option: whether it is on} for the options that this machine has."""
        return {part: bool(self.options.get_safe(part)) for part in PARTS}

    def system_requirements(self):
        on = [PARTS[part] for part, is_on in self.parts().items() if is_on]
        Apt(self).install(PACKAGES + on, check=True)

    def generate(self):
        toolchain = CMakeToolchain(self)
        for name in ("TESTS", "EXAMPLES", "TOOLS", "BENCH", "FUZZ", "WERROR"):
            toolchain.cache_variables[f"WEIR_{name}"] = False
        for part, is_on in self.parts().items():
            toolchain.cache_variables[f"WEIR_{part.upper()}"] = "ON" if is_on else "OFF"
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))

    def package_info(self):
        """Makes a component of each exported target, with the name of that target."""
        targets = load(self, os.path.join(self.package_folder, "lib/cmake/weir/weir-targets.cmake"))
        libraries = re.findall(r"^add_library\(weir::(\w+) (STATIC|INTERFACE) IMPORTED\)$", targets,
                               re.MULTILINE)
        links = dict(re.findall(
            r"^set_target_properties\(weir::(\w+) PROPERTIES\n"
            r"(?:  (?!INTERFACE_LINK).*\n)*  INTERFACE_LINK_LIBRARIES \"(.*)\"$", targets,
            re.MULTILINE))
        # The name weir::weir is that of a component, as in CMake: it has no libraries for tests.
        self.cpp_info.set_property("cmake_target_name", "weir::everything")
        for name, kind in libraries:
            component = self.cpp_info.components[name]
            component.set_property("cmake_target_name", f"weir::{name}")
            component.libs = [f"weir_{name}"] if kind == "STATIC" else []
            for linked in re.findall(r"[\w:]+", links.get(name, "").replace("LINK_ONLY:", "")):
                if linked.startswith("weir::"):
                    component.requires.append(linked.removeprefix("weir::"))
                else:
                    component.system_libs += SYSTEM_LIBRARIES[linked]
        base = self.cpp_info.components["base"]
        base.cxxflags = ["-fno-omit-frame-pointer"]  # profiles follow users' frames too
        if not self.options.spdlog:
            self.cpp_info.components["log"].defines = ["WEIR_WITHOUT_SPDLOG"]
