"""The tables of the planner: which paths need the gate, a lane, or everything.

A room is named as in tools/check/floors.py. ALL stands for all rooms of a floor.
"""

import pathlib
import re
import sys

TOOLS = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(TOOLS / "check"))

import floors  # noqa: E402

ALL = None

# The request path: the rooms whose code runs for each request, each wait or each turn of a loop.
# A change of their sources runs the gate, which counts instructions.
REQUEST_PATH = {
    "base": ALL,
    "os": {"io"},
    "loop": {"contract", "", "readiness", "uring", "os"},
    "task": ALL,
    "runtime": {"messaging", "pool", ""},
    "net": {"", "listen"},
    "compression": ALL,
    "tls": {"records", ""},
    "json": ALL,
    "log": ALL,
    "http": {"syntax", "message", "h1", "h2", "ws", "matching", "router", "server"},
    "telemetry": ALL,
}
GATE_FILES = ("bench/gate/", "bench/gate.py")

# The rooms whose code several threads run. A change of their files runs the narrow tests of the
# floor under the thread sanitizer too. So does a file with a word of THREADS, in any room.
THREAD_ROOMS = {
    "os": {"process"},
    "loop": ALL,
    "task": {"sync"},
    "runtime": ALL,
    "net": ALL,
}
THREADS = re.compile(r"\bstd::(?:jthread|thread|(?:shared_|recursive_)?mutex|atomic\w*"
                     r"|condition_variable\w*)\b(?!::id|::hardware)")
# A source or header of weir/ with a word of COROUTINES runs the narrow tests of its floor by GCC 12
# too, which destroys some temporaries twice. A change of tests alone does not: ./dev check proves
# the rules that avoid this fault, and the build takes long.
COROUTINES = re.compile(r"\bco_(?:await|yield)\b")

# A change of one of these files can change what any build does: everything is configured again,
# and CI runs its lanes with all their test binaries. The latter holds for these tools too.
TOOLCHAIN = re.compile(r"CMakeLists\.txt$|cmake/|CMakePresets\.json$|dev$|\.ci/")
PLANNER = re.compile(r"tools/plan/")

# Long tests of scripts that CI leaves out unless a changed path matches. The build by GCC 12 is the
# only one of the whole library, so each source of it counts. BUILD is what configures a library
# that another project embeds or installs; the tests of tools have projects of their own.
BUILD = r"CMakeLists\.txt$|cmake/(?!WeirSuites\.cmake$)"
LIBRARY = r"weir/(?!.*_test\.cpp$)(?!.*/test/)"
EMBEDDING = rf"{BUILD}|tests/embed(?:/|_test\.py$)|README\.md$"
SCRIPTS = {
    "embed_fetchcontent_clang": re.compile(rf"{EMBEDDING}|weir/(?:tls|compression|log)/"),
    "embed_subdirectory_gcc": re.compile(rf"{EMBEDDING}|{LIBRARY}"),
    "headers_selftest": re.compile(r"tools/headers/"),
    "mutate_selftest": re.compile(r"tools/mutate/"),
    "package": re.compile(
        rf"{BUILD}|tests/install_test\.py$|tests/consumer/|LICENSE$|docs/gcc-12\.md$"),
    "stress_selftest": re.compile(r"tools/stress/"),
}
PRESETS = ("asan", "release", "gcc", "tsan", "fuzz", "plain")

# The folders outside weir/ whose *_test.cpp are one test binary.
TEST_BINARIES = {
    "tools/weir": "weir_tool_test",
    "tools/simulate": "simulate_tool_test",
    "tools/differential/http2": "weir_differential_test",
    "tests/openssl_user": "weir_openssl_user_test",  # before the folder around it
    "tests": "weir_system_test",
}
# Programs of these folders: the prefix of their targets.
PROGRAMS = {"examples": "example_", "contrib/httparena": "contrib_", "bench/limit": "",
            "bench/micro": "micro_", "bench/gate": "gate_", "bench/inside": "inside_",
            "tools/differential": "differential_", "tools/autobahn": "autobahn_"}

# Tests that include a changed header run in the binary of its own floor and in this many of other
# floors, the lowest first. A header of base would otherwise build everything.
OTHER_BINARIES_MAX = 1


def in_table(table, path):
    """Returns true if the table has the room of a file under weir/."""
    place = floors.place_of(path)
    if place is None or place[0] not in table:
        return False
    return table[place[0]] is ALL or place[1] in table[place[0]]


def is_test(path):
    """Returns true for tests and for what only tests include."""
    return (path.endswith(("_test.cpp", "_test.py", "_fixture.hpp", "_fixture.py")) or
            floors.is_for_tests(path) or path.startswith("tests/"))


TLS_ABSENT_TEST = "weir_tls_absent_test"  # of the sources that replace weir/tls without OpenSSL


def unit_of(path):
    """Returns the path that the files of a unit share: x of x.hpp, x.cpp and x_test.cpp."""
    return path.rsplit(".", 1)[0].removesuffix("_test")


def on_request_path(path):
    """Returns true for the files whose change runs the gate."""
    if path.startswith(GATE_FILES):
        return not is_test(path)
    return path.endswith((".cpp", ".hpp")) and not is_test(path) and in_table(REQUEST_PATH, path)


def binary_of(path):
    """Returns the test binary that holds the tests beside a C++ file, else None."""
    if path.startswith("weir/tls/detail/absent/"):
        return TLS_ABSENT_TEST
    floor = floors.floor_of(path)
    if floor is not None:
        return f"weir_{floor}_test" if floor in floors.FLOORS else None
    return next((binary for folder, binary in TEST_BINARIES.items()
                 if path.startswith(folder + "/") and not path.startswith("tests/consumer/")), None)


def rank_of(binary):
    """Returns the position of a test binary: floors from the lowest up, then the others."""
    order = [f"weir_{floor}_test" for floor in floors.FLOORS] + list(TEST_BINARIES.values())
    order.append(TLS_ABSENT_TEST)
    return order.index(binary)
