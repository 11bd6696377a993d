"""Tests that the tables name what exists."""

import unittest

import tables  # first: it lets tools/check be found
import floors


class TablesTest(unittest.TestCase):
    def test_floors_and_rooms_of_the_tables_exist(self):
        for table in (tables.REQUEST_PATH, tables.THREAD_ROOMS):
            for floor, rooms in table.items():
                self.assertIn(floor, floors.FLOORS)
                self.assertLessEqual(rooms or set(), set(floors.FLOORS[floor]))

    def test_folders_and_files_of_the_tables_exist(self):
        root = tables.TOOLS.parent
        for path in (*tables.TEST_BINARIES, *tables.PROGRAMS, *tables.GATE_FILES):
            self.assertTrue((root / path).exists(), path)
        presets = (root / "CMakePresets.json").read_text()
        for preset in tables.PRESETS:
            self.assertIn(f'"name": "{preset}"', presets)

    def test_the_request_path_has_sources_and_no_tests(self):
        for path in ("weir/http/detail/h1/parser.cpp", "weir/base/result.hpp",
                     "weir/tls/detail/records/keys.cpp", "bench/gate/operations.cpp",
                     "bench/gate.py"):
            self.assertTrue(tables.on_request_path(path), path)
        for path in ("weir/http/detail/h1/parser_test.cpp", "weir/http/client/client.cpp",
                     "weir/net/dns/resolver.cpp", "weir/net/test/net_fixture.hpp",
                     "weir/admin/admin.cpp", "weir/http.hpp", "bench/gate_test.py",
                     "docs/guide/http2.md"):
            self.assertFalse(tables.on_request_path(path), path)

    def test_threads_and_coroutines_are_seen_by_words(self):
        for code in ("std::atomic<int> a;", "std::mutex m;", "std::jthread t;",
                     "std::condition_variable_any c;", "std::atomic_ref r;"):
            self.assertTrue(tables.THREADS.search(code), code)
        for code in ("std::thread::id a;", "std::thread::hardware_concurrency()", "my::mutex m;"):
            self.assertFalse(tables.THREADS.search(code), code)
        self.assertTrue(tables.COROUTINES.search("co_await x;"))
        self.assertFalse(tables.COROUTINES.search("co_return x;"))

    def test_files_have_the_binary_of_their_floor_or_folder(self):
        for path, binary in (("weir/http/detail/h1/parser.cpp", "weir_http_test"),
                             ("weir/http.hpp", "weir_http_test"),
                             ("tools/weir/check/rules.cpp", "weir_tool_test"),
                             ("tools/differential/http2/a_test.cpp", "weir_differential_test"),
                             ("tests/server.cpp", "weir_system_test"),
                             ("tests/consumer/main.cpp", None), ("weir/unknown/a.cpp", None),
                             ("examples/hello.cpp", None)):
            self.assertEqual(tables.binary_of(path), binary)


if __name__ == "__main__":
    unittest.main()
