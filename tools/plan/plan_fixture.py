"""The fixture of the planner's tests: a small repository with floors, tests and programs."""

import pathlib
import subprocess
import tempfile
import unittest

import planner

CMAKE = """add_test(NAME ${WEIR_TEST_PREFIX}otlp COMMAND python3 ${folder}/otlp_test.py
    --program $<TARGET_FILE:example_traces>)
add_test(NAME check COMMAND python3 ${PROJECT_SOURCE_DIR}/tools/check/check.py)
"""
PAGE = """[hello](../../examples/hello.cpp)
```sh
curl localhost:8080/  # hello
```
"""


def source(*includes, more=""):
    return "".join(f'#include "{path}"\n' for path in includes) + more


def test(suite, *includes, more=""):
    return source(*includes, more=f"{more}TEST({suite}, Passes) {{}}\n")


TREE = {
    "dev": "part_gcc=(weir_base_test weir_net_test)\npart_tsan=(weir_net_test)\n",
    "cmake/WeirTargets.cmake": CMAKE,
    "weir/base/text/hex.hpp": "int hex();\n",
    "weir/base/text/hex.cpp": source("weir/base/text/hex.hpp"),
    "weir/base/text/hex_test.cpp": test("Hex", "weir/base/text/hex.hpp"),
    "weir/base/text/case_test.cpp": test("Case"),
    "weir/base/time.hpp": "int now();\n",
    "weir/base/time_test.cpp": test("Time", "weir/base/time.hpp"),
    "weir/task/sleep.hpp": source("weir/base/time.hpp"),
    "weir/task/sleep.cpp": source("weir/task/sleep.hpp", more="co_await 1;\n"),
    "weir/task/sleep_test.cpp": test("Sleep", "weir/task/sleep.hpp", "weir/base/time.hpp"),
    "weir/net/tcp.hpp": "int connect();\n",
    "weir/net/tcp.cpp": source("weir/net/tcp.hpp", "weir/task/sleep.hpp"),
    "weir/net/test/net_fixture.hpp": source("weir/net/tcp.hpp"),
    "weir/net/tcp_test.cpp": test("Tcp", "weir/net/test/net_fixture.hpp"),
    "weir/tls/stream.hpp": source("weir/net/tcp.hpp"),
    "weir/tls/stream_test.cpp": test("Tls", "weir/tls/stream.hpp", "weir/net/test/net_fixture.hpp",
                                     "weir/base/time.hpp"),
    "weir/http/server/serve.hpp": source("weir/net/tcp.hpp"),
    "weir/http/server/serve_test.cpp": test("Serve", "weir/http/server/serve.hpp",
                                            "weir/base/time.hpp"),
    "weir/profile/sampler.hpp": "",
    "weir/profile/sampler.cpp": source("weir/profile/sampler.hpp", more="std::atomic<int> a;\n"),
    "weir/profile/sampler_test.cpp": test("Sampler", "weir/profile/sampler.hpp"),
    "tools/simulate/heap.hpp": "",
    "tools/simulate/heap_test.cpp": test("Heap", "tools/simulate/heap.hpp"),
    "tools/simulate/tls_test.cpp": test("SimulatedTls"),
    "tools/check/words.py": "",
    "tools/check/words_test.py": "",
    "tools/autobahn/client.cpp": "",
    "tests/server.hpp": "",
    "tests/examples_test.cpp": test("Examples", "tests/server.hpp", more='Server("hello");\n'),
    "tests/cases_test.cpp": test("Cases", more='read("cases.json");\n'),
    "tests/data/cases.json": "{}",
    "tests/otlp_test.py": "",
    "examples/hello.cpp": "",
    "examples/traces.cpp": "",
    "examples/quiet.cpp": source("examples/quiet.hpp"),
    "examples/quiet.hpp": "",
    "docs/guide/first.md": PAGE,
    "fuzz/json_fuzz.cpp": source("fuzz/require.hpp"),
    "fuzz/require.hpp": "",
    "bench/run.py": "",
    "bench/inside/hop.cpp": "",
    "bench/limit/arguments/arguments.hpp": "",
    "bench/limit/arguments/arguments.cpp": source("bench/limit/arguments/arguments.hpp"),
    "bench/limit/canned.hpp": source("bench/limit/arguments/arguments.hpp"),
    "bench/limit/epoll_limit.cpp": source("bench/limit/canned.hpp"),
}


class PlanTestCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()

    def write(self, files):
        for path, text in files.items():
            file = self.root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)

    def git(self, *arguments):
        subprocess.run(["git", "-C", str(self.root), "-c", "user.name=a", "-c", "user.email=a@b",
                        *arguments], check=True, capture_output=True)

    def commit(self, files):
        self.write(files)
        self.git("add", "--all")
        self.git("commit", "-q", "-m", "change")

    def plan_of(self, *paths, tree=None):
        self.write(TREE if tree is None else tree)
        return planner.Planner(self.root, list(paths)).plan()

    def commands_of(self, *paths):
        """Returns the commands of all steps after the check, each as one string."""
        return [" ".join(step.command) for step in self.plan_of(*paths).steps[1:]]
