"""Proves that each rule about floors, rooms and public headers can fail."""

import unittest

from check_fixture import CheckTestCase, HEADER, SOURCE


class FloorsTest(CheckTestCase):
    # -- floors

    def test_the_clean_tree_passes(self):
        self.expect_clean({})

    def include(self, floor, name, included):
        text = SOURCE.format(name, floor).replace("\n\nname", f"\n#include {included}\n\nname", 1)
        return {f"weir/{floor}/{name}.cpp": text}

    def test_a_lower_floor_may_be_included(self):
        self.expect_clean(self.include("http/server", "serve", '"weir/json/parse.hpp"'))
        self.expect_clean(self.include("http/server", "serve", "<vector>"))

    def test_an_upper_floor_may_not_be_included(self):
        self.expect("floors", "weir/base/error.cpp",
                    self.include("base", "error", '"weir/net/tcp.hpp"'), "not a lower floor")

    def test_json_never_includes_tls(self):
        self.expect("floors", "weir/json/codec.cpp",
                    self.include("json", "codec", '"weir/tls/wire.hpp"'), "must never")

    def test_only_tls_includes_libraries_for_cryptography(self):
        for header in ("<openssl/ssl.h>", "<intel-ipsec-mb.h>"):
            self.expect("floors", "weir/net/tcp.cpp", self.include("net", "tcp", header),
                        "only tls")
            (self.root / "weir/net/tcp.cpp").unlink()
            self.expect_clean(self.include("tls", "wire", header))

    def test_tls_and_json_do_not_know_each_other(self):
        self.expect("floors", "weir/tls/wire.cpp",
                    self.include("tls", "wire", '"weir/json/parse.hpp"'))
        self.expect("floors", "weir/json/parse.cpp",
                    self.include("json", "parse", '"weir/tls/wire.hpp"'))

    def test_only_tests_include_testing(self):
        self.expect("floors", "weir/net/tcp.cpp",
                    self.include("net", "tcp", '"weir/sim/world.hpp"'), "only tests")
        self.expect("floors", "examples/hello.cpp",
                    {"examples/hello.cpp": '// Hello.\n#include "weir/sim/world.hpp"\n'})
        text = '#include "weir/net/tcp.hpp"\n\n#include "weir/sim/world.hpp"\n'
        (self.root / "examples/hello.cpp").unlink()
        self.expect_clean({"weir/net/tcp.cpp": SOURCE.format("tcp", "net"),
                           "weir/net/tcp_test.cpp": text})

    def test_fixtures_are_for_tests(self):
        fixture = '// F.\n#pragma once\n#include <gtest/gtest.h>\n' \
                  '#include "weir/sim/world.hpp"\n'
        uses = '#include "weir/net/test/net_fixture.hpp"\n'
        self.expect_clean({"weir/net/test/net_fixture.hpp": fixture, "weir/net/tcp_test.cpp": uses})
        self.expect("floors", "weir/net/tcp.cpp",
                    {"weir/net/tcp.cpp": SOURCE.format("tcp", "net") + uses}, "fixture")

    def test_installed_headers_need_no_test_library(self):
        for_tests = '// F.\n#pragma once\n#include <gtest/gtest.h>\n'
        self.expect("installed-headers", "weir/loop/peers.hpp", {"weir/loop/peers.hpp": for_tests},
                    "gtest/gtest.h")
        (self.root / "weir/loop/peers.hpp").unlink()
        self.expect_clean({"weir/loop/test/peers_fixture.hpp": for_tests})

    def test_includes_exist_and_are_spelled_from_the_root(self):
        self.expect("floors", "weir/net/tcp.cpp",
                    self.include("net", "tcp", '"weir/base/gone.hpp"'), "does not exist")
        self.expect("floors", "weir/net/tcp.cpp",
                    self.include("net", "tcp", '"../base/error.hpp"'), "by its path")
        self.expect("floors", "weir/net/tcp.cpp", self.include("net", "tcp", '"error.hpp"'))

    def test_a_folder_that_is_no_floor(self):
        self.expect("floors", "weir/util/x.hpp", {"weir/util/x.hpp": HEADER.format("x")})

    # -- rooms

    def test_a_folder_that_is_no_room(self):
        self.expect("rooms", "weir/http/misc/x.hpp",
                    {"weir/http/misc/x.hpp": HEADER.format("x")}, "not a room")
        (self.root / "weir/http/misc/x.hpp").unlink()
        self.expect("rooms", "weir/http/x.hpp", {"weir/http/x.hpp": HEADER.format("x")})

    def test_a_lower_room_may_be_included_and_an_upper_one_may_not(self):
        upper = '"weir/http/server/serve.hpp"'
        low = {"weir/http/message/body.hpp": HEADER.format("body")}
        lower = '"weir/http/message/body.hpp"'
        self.expect_clean(low | self.include("http/server", "serve", lower))
        for path in ("weir/http/message/body.hpp", "weir/http/detail/h1/body.hpp",
                     "weir/http/message/body.hpp"):
            text = HEADER.format("body").replace("once\n", f"once\n#include {upper}\n")
            self.expect("rooms", path, {path: text}, "not in a lower room")
            (self.root / path).unlink()

    def test_fixtures_are_in_rooms_too(self):
        fixture = {"weir/http/message/body.hpp": HEADER.format("body").replace(
            "once\n", 'once\n#include "weir/http/test/body_fixture.hpp"\n'),
            "weir/http/test/body_fixture.hpp": HEADER.format("body_fixture")}
        self.expect("floors", "weir/http/message/body.hpp", fixture, "only tests")

    def test_an_umbrella_includes_all_public_headers_of_its_floor(self):
        umbrella = '// All of net.\n#pragma once\n'
        self.expect("umbrellas", "weir/net.hpp", {"weir/net.hpp": umbrella}, "weir/net/tcp.hpp")
        self.expect_clean({"weir/net.hpp": umbrella + '#include "weir/net/tcp.hpp"\n'})

    def test_examples_include_public_headers_only(self):
        example = '// E.\n#include "weir/net/{}tcp.hpp"\n'
        header = {"weir/net/detail/tcp.hpp": HEADER.format("tcp")}
        self.expect("public", "examples/tcp.cpp",
                    header | {"examples/tcp.cpp": example.format("detail/")}, "internal")
        self.expect_clean(header | {"examples/tcp.cpp": example.format("")})

    def test_an_umbrella_header_belongs_to_its_floor(self):
        umbrella = '// All.\n#pragma once\n#include "weir/http/server/serve.hpp"\n'
        self.expect("floors", "weir/net.hpp", {"weir/net.hpp": umbrella})

    def test_system_headers_do_not_leak_through_others(self):
        leaky = HEADER.format("error").replace("once\n", "once\n#include <sys/socket.h>\n")
        through = HEADER.format("tcp").replace("once\n", 'once\n#include "weir/base/error.hpp"\n')
        self.expect("system-headers", "weir/net/tcp.hpp",
                    {"weir/base/error.hpp": leaky, "weir/net/tcp.hpp": through}, "sys/socket.h")
        heavy = HEADER.format("serve").replace("once\n", "once\n#include <re2/re2.h>\n")
        path = "weir/http/server/serve.hpp"
        self.expect("system-headers", path, {path: heavy})


if __name__ == "__main__":
    unittest.main()
