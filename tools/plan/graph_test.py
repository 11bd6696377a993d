"""Tests of the include graph."""

import unittest

import graph
from plan_fixture import TREE, PlanTestCase


class GraphTest(PlanTestCase):
    def setUp(self):
        super().setUp()
        self.write(TREE)

    def reached(self, path, more=()):
        self.write(dict(more))
        return list(graph.Graph(self.root).floors_reached(path))

    def test_a_header_reaches_the_floors_that_include_it_directly_or_not(self):
        self.assertEqual(self.reached("weir/base/time.hpp"),
                         ["base", "task", "net", "tls", "http"])
        self.assertEqual(self.reached("weir/base/text/hex.hpp"), ["base"])

    def test_a_source_reaches_the_floors_that_see_its_header(self):
        self.assertEqual(self.reached("weir/net/tcp.cpp"), ["net", "tls", "http"])

    def test_a_source_passes_on_what_it_includes(self):
        # tls includes tcp.hpp, and only tcp.cpp includes sleep.hpp.
        self.assertIn("tls", self.reached("weir/task/sleep.cpp"))

    def test_a_source_without_header_reaches_the_users_of_the_headers_of_its_room(self):
        more = {"weir/net/tcp_accept.cpp": '#include "weir/net/tcp.hpp"\n'}
        self.assertEqual(self.reached("weir/net/tcp_accept.cpp", more), ["net", "tls", "http"])

    def test_a_test_reaches_its_own_floor(self):
        self.assertEqual(self.reached("weir/base/time_test.cpp"), ["base"])

    def test_a_fixture_reaches_the_floors_whose_tests_include_it(self):
        self.assertEqual(self.reached("weir/net/test/net_fixture.hpp"), ["net", "tls"])

    def test_tests_do_not_make_their_floor_reached_by_higher_floors(self):
        more = {"weir/base/late_test.cpp": '#include "weir/sim/world.hpp"\n',
                "weir/sim/world.hpp": '#include "weir/net/tcp.hpp"\n'}
        self.assertEqual(self.reached("weir/sim/world.hpp", more), ["base", "sim"])
        self.assertNotIn("base", self.reached("weir/net/tcp.hpp", more))

    def test_a_deleted_file_reaches_its_floor_and_its_users(self):
        more = {"weir/net/udp.hpp": '#include "weir/base/gone.hpp"\n'}
        self.assertEqual(self.reached("weir/base/gone.hpp", more), ["base", "net"])
        self.assertEqual(self.reached("weir/base/gone.cpp"), ["base"])

    def test_files_outside_weir_reach_no_floor(self):
        self.assertEqual(self.reached("docs/guide/first.md"), [])

    def test_the_user_is_a_file_of_the_floor(self):
        users = graph.Graph(self.root).floors_reached("weir/base/time.hpp")
        self.assertEqual(users["tls"], "weir/tls/stream.hpp")

    def test_headers_of_a_source_without_header_lie_beside_it(self):
        self.write({"weir/net/poll.cpp": '#include "weir/net/tcp.hpp"\n'
                                         '#include "weir/base/time.hpp"\n'})
        seen = graph.Graph(self.root)
        self.assertEqual(seen.headers_of("weir/net/poll.cpp"), ["weir/net/tcp.hpp"])
        self.assertEqual(seen.headers_of("weir/net/tcp.cpp"), ["weir/net/tcp.hpp"])


if __name__ == "__main__":
    unittest.main()
