"""Rooms: their sources, their mutants, and the tests and fuzzers that see them."""

import collections
import pathlib
import random
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "check"))

import floors  # noqa: E402
import schema  # noqa: E402

FLOORS = list(floors.FLOORS)  # from the lowest to the highest

OTHER_ROOMS = {"tools/weir": "weir_tool_test", "tools/simulate": "simulate_tool_test"}
TOOLS = [*OTHER_ROOMS, "tools/mutate"]  # the rooms outside weir/ that count
# Test binaries above all floors, with the folders of their tests.
SYSTEM_TESTS = {"weir_tool_test": "tools/weir", "simulate_tool_test": "tools/simulate",
                "weir_system_test": "tests"}
# The fuzzers of fuzz/ that run the code of a room.
FUZZERS = {
    "weir/base": ["radix_tree_fuzz"],
    "weir/json": ["json_fuzz"],
    "weir/config": ["config_fuzz"],
    "weir/net/dns": ["names_fuzz"],
    "weir/tls": ["tls_fuzz"],
    "weir/http/detail/h1": ["h1_parser_fuzz", "chunked_fuzz", "response_fuzz"],
    "weir/http/detail/h2": ["h2_session_fuzz", "hpack_fuzz"],
    "weir/http/syntax": ["uri_fuzz"],
    "weir/http/message": ["uri_fuzz", "problem_fuzz"],
    "weir/http/router": ["routing_fuzz"],
    "weir/http/matching": ["routing_fuzz", "arguments_fuzz", "problem_fuzz"],
    "weir/http/server": ["server_fuzz"],
    "weir/web/encoding": ["accept_encoding_fuzz"],
    "weir/web/files": ["files_fuzz"],
}


class Room:
    """A room with its sources, the test binaries that see them, and the mutants of a run."""

    def __init__(self, name, paths):
        self.name = name.rstrip("/")
        self.prefix = self.name if self.name.startswith("tools/") else f"weir/{self.name}"
        # A folder of Python scripts with unit tests, such as tools/mutate.
        self.scripts = self.name.startswith("tools/") and not any(
            in_room(self.name, each) for each in OTHER_ROOMS)
        self.paths = [path for path in paths if self._holds(path)]
        floor = self.name.split("/")[0]
        self.floor = self.prefix if self.name.startswith("tools/") else f"weir/{floor}"
        if self.name.startswith("tools/"):
            own = next((binary for prefix, binary in OTHER_ROOMS.items()
                        if in_room(self.name, prefix)), None)
            later = []
        else:
            own = f"weir_{floor}_test" if floor in FLOORS else None
            later = FLOORS[FLOORS.index(floor) + 1:] if floor in FLOORS else []
        binaries = {f"weir_{each}_test": f"weir/{each}" for each in later} | SYSTEM_TESTS
        tests = [path for path in paths if path.endswith("_test.cpp")]
        self.own = own
        self.above = [binary for binary, folder in binaries.items() if binary != own and
                      any(in_room(path, folder) for path in tests)]
        self.fuzzers = sorted({each for prefix, names in FUZZERS.items() for each in names
                               if in_room(prefix, self.prefix) or in_room(self.prefix, prefix)})
        self.order = []  # drawn mutants that were not tested yet
        self.reserve = []  # drawn mutants that the build holds, tested or not
        self.verdicts = {}  # by mutant
        self.uncounted = collections.Counter()  # by reason

    def _holds(self, path):
        endings = (".py",) if self.scripts else (".cpp", ".hpp")
        return (in_room(path, self.prefix) and path.endswith(endings) and not is_test(path))

    def next_batch(self, count):
        """Returns the mutants that are to be tested next, for `count` verdicts in all."""
        wanted = max(0, count - len(self.verdicts))
        batch, self.order = self.order[:wanted], self.order[wanted:]
        return batch


def is_test(path):
    """True for the code of tests and of their fixtures."""
    return (path.endswith(("_test.cpp", "_test.py", "_fixture.py")) or "/test/" in path or
            path.startswith("tests/"))


def in_room(path, prefix):
    return path == prefix or path.startswith(prefix + "/")


def only(mutants, keys):
    """Returns the mutants with one of the keys; all of them if there are no keys."""
    return [each for each in mutants if not keys or each.key in keys]


def draw(mutants, seed):
    """Returns the mutants in an order that the seed determines, each operator in turn. Of mutants
    that cross in their file, only the first is drawn: one build holds all that are drawn."""
    source = random.Random(seed)
    groups = collections.defaultdict(list)
    for each in sorted(mutants, key=lambda each: (each.operator, each.key)):
        groups[each.operator].append(each)
    for group in groups.values():
        source.shuffle(group)
    order = []
    while any(groups.values()):
        names = [name for name in sorted(groups) if groups[name]]
        source.shuffle(names)
        order += [groups[name].pop() for name in names]
    return schema.without_overlaps(order)
