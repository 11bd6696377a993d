"""The rules of includes: floors, rooms, public headers, and what a header must not reach.

A floor is a folder of weir/. A room is a folder of a floor. Files that lie in the floor's own
folder are the room "". A folder `detail` holds internal headers and is part of the room around it.
A room whose headers are all internal lies in the floor's own `detail` folder. A folder `test` holds
files that only tests include. All other headers are public.
"""

import re

# Floors from the lowest to the highest, each with its rooms from the lowest to the highest.
FLOORS = {
    "base": ["", "text"],
    "os": ["", "io", "machine", "process"],
    "loop": ["contract", "listen", "", "readiness", "uring", "process", "os"],
    "task": ["", "sync"],
    "runtime": ["messaging", "pool", "checks", ""],
    "net": ["", "listen", "dns"],
    "testing": ["network", "memory"],
    "sim": [""],
    "event": [""],
    "compression": [""],
    "tls": ["crypto", "certificate", "records", "", "absent"],
    "json": ["text", ""],
    "config": ["source", "type", ""],
    "log": [""],
    "http": ["syntax", "message", "h1", "h2", "ws", "client", "matching", "router", "server"],
    "doctor": [""],
    "web": ["clients", "cookies", "forms", "events", "encoding", "files", "auth", "middleware",
            "protection", "proxy"],
    "telemetry": ["metrics", "traces"],
    "profile": [""],
    "http_testing": [""],
    "app": ["describe", "handles", "graph", "lifecycle", ""],
    "admin": ["services", "pages", ""],
}
TEST_FLOORS = {"testing", "sim", "http_testing"}  # libraries for tests, of Weir and of its users
FORBIDDEN_PAIRS = {("json", "tls")}
RANKS = {floor: rank for rank, floor in enumerate(FLOORS)}
FIRST_CLEAN_RANK = RANKS["task"]  # from here up, no header may reach the system or a heavy library

SYSTEM_HEADER = re.compile(
    r"^(sys/|linux/|netinet/|arpa/|net/if|asm/|bits/)"
    r"|^(unistd|fcntl|poll|pthread|sched|signal|netdb|dirent|dlfcn|ifaddrs|liburing)\.h$"
    r"|^(csignal|liburing/.*)$"
)
HEAVY_HEADER = re.compile(
    r"^(zlib|zstd|libdeflate|brotli)[/.]"
    r"|^(CLI|toml\+\+|re2|fmt|spdlog|openssl|intel-ipsec-mb|nghttp2|simdjson|gtest|gmock)[/.]"
)
COMPRESSION = re.compile(r"^(zlib\.h|zstd\.h|libdeflate\.h|brotli/.*)$")
CRYPTO = re.compile(r"^(openssl/|intel-ipsec-mb\.h$)")
TEST_HEADER = re.compile(r"^(gtest|gmock)/")
TEST_LIBRARY_USERS = ("tools/simulate/", "examples/simulated.cpp", "examples/services_faked.cpp",
                      "examples/notes_tested.cpp", "examples/fan_out_tested.cpp")
USERS = ("examples/", "tests/consumer/", "tests/embed/", "contrib/conan/")  # public headers only


def place_of(path):
    """(floor, room) of a file under weir/, else None; the room of an umbrella weir/FLOOR.hpp is
    None."""
    parts = path.split("/")
    if parts[0] != "weir":
        return None
    if len(parts) == 2:
        return parts[1].removesuffix(".hpp"), None
    rooms = [part for part in parts[2:-1] if part != "detail"]
    return parts[1], rooms[0] if rooms else ""


def floor_of(path):
    place = place_of(path)
    return place[0] if place else None


def is_umbrella(path):
    return path.startswith("weir/") and path.count("/") == 1


def is_public(file):
    """Whether users may include it, as its path says."""
    parts = file.path.split("/")[:-1]
    return (file.is_header and parts[:1] == ["weir"] and "detail" not in parts and
            "test" not in parts)


def is_for_tests(path):
    return "test" in path.split("/")[1:-1] and path.startswith(("weir/", "tools/"))


def room_rank(place):
    """The place's rank within its floor; an unknown room has none."""
    floor, room = place
    if room == "test":
        return len(FLOORS[floor])
    if room is None:
        return len(FLOORS[floor]) + 1
    return FLOORS[floor].index(room) if room in FLOORS[floor] else None


def check_places(repository, report):
    """Every file lies in a known room."""
    for file in repository.cxx:
        place = place_of(file.path)
        if place is None:
            continue
        if place[0] not in FLOORS:
            report(file, 1, "floors", f"weir/{place[0]} is not a floor")
        elif room_rank(place) is None:
            report(file, 1, "rooms", f"{place[1]} is not a room of weir/{place[0]}")


def check_includes(repository, report):
    for file in repository.cxx:
        for line, opening, path in file.includes:
            check_spelling(repository, report, file, line, opening, path)
            if CRYPTO.match(path) and floor_of(file.path) not in (None, "tls"):
                report(file, line, "floors", f"only tls may include {path}")
            if COMPRESSION.match(path) and floor_of(file.path) not in (None, "compression"):
                report(file, line, "floors", f"only compression may include {path}")
            if path in repository.files and path.startswith("weir/"):
                check_direction(report, file, line, path)


def check_spelling(repository, report, file, line, opening, path):
    if path.startswith(".") or "/../" in path:
        report(file, line, "floors", f"include {path} by its path from the root")
    elif path.startswith("weir/") and path not in repository.files:
        report(file, line, "floors", f"{path} does not exist")
    elif not path.startswith("weir/") and opening == '"' and path not in repository.files:
        report(file, line, "floors", f"{path} is not in this repository: use <{path}>")


def check_direction(report, file, line, path):
    """An include goes to a lower room of the same floor or to a lower floor. A test may also
    include any room of its floor, fixtures, and the libraries for tests."""
    own, target = place_of(file.path), place_of(path)
    for_tests = file.is_test or is_for_tests(file.path) or file.path.startswith("fuzz/")
    if is_for_tests(path) and not for_tests:
        report(file, line, "floors", "only tests may include a fixture")
    elif target[0] in TEST_FLOORS and not (for_tests or own and own[0] in TEST_FLOORS or
                                           file.path.startswith(TEST_LIBRARY_USERS)):
        report(file, line, "floors", f"only tests may include weir/{target[0]}")
    elif own is None or own[0] not in FLOORS or target[0] not in FLOORS:
        return
    elif own[0] == target[0]:
        check_room(report, file, line, path)
    elif (own[0], target[0]) in FORBIDDEN_PAIRS:
        report(file, line, "floors", f"{own[0]} must never include {target[0]}")
    elif RANKS[target[0]] > RANKS[own[0]] and not (for_tests and target[0] in TEST_FLOORS):
        report(file, line, "floors",
               f"{own[0]} may not include {target[0]}: it is not a lower floor")


def check_room(report, file, line, path):
    own, target = room_rank(place_of(file.path)), room_rank(place_of(path))
    if not file.path.endswith("_test.cpp") and None not in (own, target) and target > own:
        report(file, line, "rooms",
               f"{file.path} may not include {path}: it is not in a lower room")


def check_public_headers(repository, report):
    """An umbrella includes every public header of its floor; examples include only public ones."""
    for file in repository.cxx:
        if is_umbrella(file.path):
            reached = {path for _, _, path in file.includes} | {file.path}
            for other in repository.cxx:
                if (is_public(other) and floor_of(other.path) == floor_of(file.path) and
                        other.path not in reached):
                    report(file, 1, "umbrellas", f"does not include {other.path}")
        if file.path.startswith(USERS):
            for line, _, path in file.includes:
                target = repository.files.get(path)
                if target and path.startswith("weir/") and not is_public(target):
                    report(file, line, "public", f"{path} is internal: users cannot include it")


def check_header_reach(repository, report):
    """No system header, and no heavy library, is reachable from a header of task or above."""
    for file in repository.cxx:
        floor = floor_of(file.path)
        rank = RANKS.get(floor) if floor else None
        if (not file.is_header or file.is_test or is_for_tests(file.path) or rank is None or
                rank < FIRST_CLEAN_RANK):
            continue
        for reached in repository.closure(file):
            for line, _, path in reached.includes:
                if SYSTEM_HEADER.match(path) or HEAVY_HEADER.match(path):
                    where = f"{reached.path}:{line}"
                    report(file, 1, "system-headers", f"reaches <{path}> through {where}")


def check_installed_headers(repository, report):
    """What users get needs no test library."""
    for file in repository.cxx:
        if not file.is_header or floor_of(file.path) is None or is_for_tests(file.path):
            continue
        for line, _, path in file.includes:
            if TEST_HEADER.match(path):
                report(file, line, "installed-headers",
                       f"<{path}> in a header that is installed: it belongs to a folder `test`")


CHECKS = [check_places, check_includes, check_public_headers, check_header_reach,
          check_installed_headers]
