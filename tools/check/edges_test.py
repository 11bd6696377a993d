"""Proves that each rule about the edges between floors can fail."""

import pathlib
import unittest

from check_fixture import CheckTestCase, HEADER

LISTS = """# The floors.
weir_floor(base)
weir_floor(net  DEPENDS base LIBS Threads::Threads)
weir_floor(tls  DEPENDS net
  base LIBS OpenSSL::SSL)
weir_floor(json)
weir_floor(http DEPENDS json tls net INCLUDES CLI11::CLI11)
weir_floor(sim  DEPENDS net)
"""
PICTURE = """# Architecture

```floors
http -> json, tls          the server
sim  -> net
json
tls  -> net
net  -> base               streams
base                       results
```
"""
INCLUDES = {"net/tcp.hpp": ["base/error.hpp"], "tls/wire.hpp": ["net/tcp.hpp", "base/error.hpp"],
            "http/server/serve.hpp": ["json/parse.hpp", "tls/wire.hpp", "net/tcp.hpp"],
            "sim/world.hpp": ["net/tcp.hpp"]}


def file_with(name, included):
    lines = "".join(f'#include "weir/{path}"\n' for path in included)
    return HEADER.format(name).replace("once\n", f"once\n{lines}")


def tree(lists=LISTS, picture=PICTURE, **changed):
    """Returns a tree with edges; `changed` replaces the includes of a header, by its name."""
    files = {f"weir/{path}": file_with(pathlib.Path(path).stem,
                                       changed.get(pathlib.Path(path).stem, included))
             for path, included in INCLUDES.items()}
    return files | {"CMakeLists.txt": lists, "ARCHITECTURE.md": picture}


class EdgesTest(CheckTestCase):
    def expect_in_lists(self, old, new, message, path="CMakeLists.txt"):
        self.assertIn(old, LISTS)
        self.expect("edges", path, tree(LISTS.replace(old, new)), message)

    def expect_in_picture(self, old, new, message):
        self.assertIn(old, PICTURE)
        self.expect("edges", "ARCHITECTURE.md", tree(picture=PICTURE.replace(old, new)), message)

    def test_edges_that_agree(self):
        self.expect_clean(tree())

    # -- the lists

    def test_an_include_needs_an_edge(self):
        # This holds for an include that other edges imply, and for one of an umbrella.
        self.expect_in_lists("json tls net", "json tls", "lacks net", "weir/http/server/serve.hpp")
        self.expect_in_lists("json tls net", "json net", "lacks tls", "weir/http/server/serve.hpp")
        umbrella = file_with("json", ["base/error.hpp"])
        self.expect("edges", "weir/json.hpp", tree() | {"weir/json.hpp": umbrella}, "lacks base")

    def test_an_include_of_a_source_needs_an_edge(self):
        source = '#include "weir/json/parse.hpp"\n#include "weir/base/error.hpp"\n'
        self.expect("edges", "weir/json/parse.cpp", tree() | {"weir/json/parse.cpp": source},
                    "weir_floor(json DEPENDS ...) lacks base")

    def test_an_edge_needs_an_include(self):
        self.expect_in_lists("weir_floor(json)", "weir_floor(json DEPENDS base)",
                             "json DEPENDS base, but no file of json includes base")
        self.expect("edges", "CMakeLists.txt", tree(wire=["net/tcp.hpp"]), "tls DEPENDS base")

    def test_an_edge_needs_an_include_outside_of_tests(self):
        lists = LISTS.replace("weir_floor(json)", "weir_floor(json DEPENDS base)")
        for path in ("weir/json/parse_test.cpp", "weir/json/test/parse_fixture.hpp",
                     "weir/json/test/parsing.hpp"):
            fixture = {path: file_with("parsing", ["base/error.hpp"])}
            self.expect("edges", "CMakeLists.txt", tree(lists) | fixture, "json DEPENDS base")
            (self.root / path).unlink()

    def test_an_edge_to_a_higher_floor(self):
        self.expect_in_lists("net  DEPENDS base", "net  DEPENDS http base", "net DEPENDS http")
        self.expect_in_lists("net  DEPENDS base", "net  DEPENDS util base", "net DEPENDS util")

    def test_libraries_are_no_edges(self):
        self.expect_in_lists("INCLUDES CLI11::CLI11", "INCLUDES base LIBS x DEPENDS net",
                             "lacks json", "weir/http/server/serve.hpp")

    def test_every_floor_is_in_the_lists(self):
        self.expect_in_lists("weir_floor(json)\n", "", "lacks weir_floor(json)")
        self.expect_in_lists("weir_floor(json)", "weir_floor(json)\nweir_floor(log)",
                             "log is not a floor with files")

    # -- the picture

    def test_an_include_needs_an_edge_in_the_picture(self):
        self.expect_in_picture("-> json, tls", "-> json", "lacks the edge http -> tls")
        self.expect_in_picture("tls  -> net", "tls", "lacks the edge tls -> net")

    def test_an_edge_in_the_picture_needs_an_include(self):
        self.expect_in_picture("\njson\n", "\njson -> net\n", "json -> net: there is no such")
        self.expect_in_picture("json, tls", "json, tls, util", "http -> util: there is no such")

    def test_the_picture_leaves_implied_edges_out(self):
        self.expect_in_picture("json, tls", "json, tls, net", "http -> net: others imply it")
        self.expect_in_picture("tls  -> net", "tls  -> net, base", "tls -> base: others imply it")

    def test_every_floor_is_in_the_picture_once(self):
        self.expect_in_picture("\njson\n", "\n", "the picture lacks the floor json")
        self.expect_in_picture("\njson\n", "\njson\njson\n", "of a new floor: json")
        self.expect_in_picture("\njson\n", "\njson\nlog\n", "of a new floor: log")

    def test_the_picture_can_be_read(self):
        self.expect_in_picture("```floors", "```text", "has no picture")
        for line in ("tls => net", "tls -> net,base", "tls -> net and more", "", " tls -> net"):
            self.expect_in_picture("tls  -> net", line, f"not of a new floor: {line}")

    # -- tests

    def expect_of_tests(self, call, path, files, enough):
        """Expects a fault with this call in the lists, and none with the call that is enough."""
        with self.subTest(call):
            self.expect("edges", path, tree(LISTS + call) | files, "leads to net")
            self.expect_clean(tree(LISTS + enough) | files)
        for each in files:
            (self.root / each).unlink()

    def test_tests_link_what_they_include(self):
        test = "weir/json/parse_test.cpp"
        files = {test: file_with("parse_test", ["json/parse.hpp", "net/tcp.hpp"])}
        for enough in ("weir_floor_tests(json DEPENDS net)", "weir_floor_tests(json DEPENDS sim)",
                       "weir_floor_tests(json DEPENDS sim_fixtures PRECOMPILE weir/net/tcp.hpp)"):
            self.expect_of_tests("weir_floor_tests(json)", test, files, enough)

    def test_tests_link_what_their_fixtures_include(self):
        test, fixture = "weir/json/parse_test.cpp", "weir/json/test/parse_fixture.hpp"
        files = {test: file_with("parse_test", ["json/test/parse_fixture.hpp"]),
                 fixture: file_with("parse_fixture", ["json/parse.hpp", "net/tcp.hpp"])}
        self.expect_of_tests("weir_floor_tests(json)", test, files,
                             "weir_floor_tests(json DEPENDS net)")
        self.expect_of_tests(f"weir_floor_tests(json PRECOMPILE {fixture})", "CMakeLists.txt",
                             {fixture: files[fixture]},
                             f"weir_floor_tests(json DEPENDS net PRECOMPILE {fixture})")

    def test_tests_link_what_they_precompile(self):
        call = "weir_floor_tests(json {} PRECOMPILE weir/json/parse.hpp\n  weir/net/tcp.hpp)"
        self.expect_of_tests(call.format(""), "CMakeLists.txt", {}, call.format("DEPENDS net"))
        self.expect("edges", "CMakeLists.txt", tree(LISTS + call.replace("tcp", "udp")),
                    "weir/net/udp.hpp does not exist")

    def test_fixtures_with_sources_link_what_they_include(self):
        source = "weir/json/test/parsing.cpp"
        files = {source: '#include "weir/json/test/parsing.hpp"\n#include "weir/net/tcp.hpp"\n',
                 "weir/json/test/parsing.hpp": HEADER.format("parsing")}
        self.expect_of_tests("weir_floor_fixtures(json)", source, files, "")
        source = {path.replace("json", "sim"): text.replace("json", "sim")
                  for path, text in files.items()}
        self.expect_clean(tree(LISTS + "weir_floor_fixtures(sim)") | source)


if __name__ == "__main__":
    unittest.main()
