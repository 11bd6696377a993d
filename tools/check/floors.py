"""What may include what: the floors of the house, and what must not leak out of a header."""

import re

RANKS = {
    "base": 0, "os": 1, "loop": 2, "task": 3, "cores": 4, "net": 5, "tls": 6, "json": 6, "http": 7,
    "app": 8,
}
FORBIDDEN_PAIRS = {("http", "tls")}
TESTING_RANK = 5.5  # the simulated world stands in for net and everything below
FIRST_CLEAN_RANK = 3  # from here up, no header may drag in the system or a heavy library

SYSTEM_HEADER = re.compile(
    r"^(sys/|linux/|netinet/|arpa/|net/if|asm/|bits/)"
    r"|^(unistd|fcntl|poll|pthread|sched|signal|netdb|dirent|dlfcn|ifaddrs|liburing)\.h$"
    r"|^(csignal|liburing/.*)$"
)
HEAVY_HEADER = re.compile(
    r"^(CLI|toml\+\+|re2|fmt|spdlog|openssl|nghttp2|simdjson|gtest|gmock)[/.]"
)
TEST_HEADER = re.compile(r"^(gtest|gmock)/")
NOT_INSTALLED = re.compile(r"_fixture\.hpp$|/[^/]*contract[^/]*$")  # as in cmake/WeirInstall.cmake
CMAKE_FLOOR = re.compile(r"^weir_floor\(\s*(\w+)([^)]*)\)", re.MULTILINE)


def floor_of(path):
    """The floor of weir/<floor>/... or of the umbrella header weir/<floor>.hpp, else None."""
    parts = path.split("/")
    if parts[0] != "weir":
        return None
    return parts[1].removesuffix(".hpp") if len(parts) == 2 else parts[1]


def rank_of(floor):
    return TESTING_RANK if floor == "testing" else RANKS.get(floor)


def may_use_testing(file):
    return file.is_test or file.path.startswith(
        ("weir/testing/", "fuzz/", "tools/simulate/", "examples/simulated.cpp",
         "examples/services_faked.cpp"))


def check_includes(repository, report):
    for file in repository.cxx:
        floor = floor_of(file.path)
        if floor is not None and rank_of(floor) is None:
            report(file, 1, "floors", f"weir/{floor} is not a floor")
            continue
        for line, opening, path in file.includes:
            check_include(repository, report, file, floor, line, opening, path)


def check_include(repository, report, file, floor, line, opening, path):
    if path.startswith(".") or "/../" in path:
        report(file, line, "floors", f"include {path} by its path from the root")
        return
    if not path.startswith("weir/"):
        if opening == '"' and path not in repository.files:
            report(file, line, "floors", f"{path} is not in this repository: use <{path}>")
        return
    target = floor_of(path)
    if path not in repository.files:
        report(file, line, "floors", f"{path} does not exist")
    elif repository.files[path].is_fixture and not file.is_test:
        report(file, line, "floors", "only tests may include a fixture")
    elif target == "testing" and not may_use_testing(file):
        report(file, line, "floors", "only tests may include weir/testing")
    elif floor is None or target == floor or target == "testing":
        return
    elif (floor, target) in FORBIDDEN_PAIRS:
        report(file, line, "floors", f"{floor} must never include {target}")
    elif rank_of(target) is not None and rank_of(target) >= rank_of(floor):
        report(file, line, "floors", f"{floor} may not include {target}: it is not a lower floor")


def check_header_reach(repository, report):
    """No system header, and no heavy library, is reachable from a header of floor 3 or above."""
    for file in repository.cxx:
        floor = floor_of(file.path)
        rank = rank_of(floor) if floor else None
        if not file.is_header or file.is_test or rank is None or rank < FIRST_CLEAN_RANK:
            continue
        for reached in repository.closure(file):
            for line, _, path in reached.includes:
                if SYSTEM_HEADER.match(path) or HEAVY_HEADER.match(path):
                    where = f"{reached.path}:{line}"
                    report(file, 1, "system-headers", f"reaches <{path}> through {where}")


def check_installed_headers(repository, report):
    """What users get needs no test library."""
    for file in repository.cxx:
        if not file.is_header or floor_of(file.path) is None or NOT_INSTALLED.search(file.path):
            continue
        for line, _, path in file.includes:
            if TEST_HEADER.match(path):
                report(file, line, "installed-headers",
                       f"<{path}> in a header that is installed: call it *_fixture.hpp")


def check_cmake_floors(repository, report):
    """CMakeLists.txt must not let a floor link what it may not include."""
    lists = repository.files.get("CMakeLists.txt")
    if lists is None:
        return
    for match in CMAKE_FLOOR.finditer(lists.text):
        floor = match.group(1)
        depends = re.split(r"\b(?:LIBS|HEADERS)\b", match.group(2).partition("DEPENDS")[2])[0]
        line = lists.text.count("\n", 0, match.start()) + 1
        for target in depends.split():
            if rank_of(floor) is None or rank_of(target) is None:
                report(lists, line, "floors", f"unknown floor in weir_floor({floor} ...)")
            elif rank_of(target) >= rank_of(floor) or (floor, target) in FORBIDDEN_PAIRS:
                report(lists, line, "floors", f"{floor} may not depend on {target}")


CHECKS = [check_includes, check_header_reach, check_installed_headers, check_cmake_floors]
