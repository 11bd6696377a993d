"""Tests, without servers, the choice of servers, the errors and the share of a processor."""

import contextlib
import pathlib
import types
import unittest
from unittest import mock

import measure
import programs
import works
from programs import Peer, Server
from serving import Failure

LIMITS = programs.LIMITS
OURS = programs.weir("epoll")
PEER = Peer("peer", "", source="peer")
OPTIONS = types.SimpleNamespace(runs=9, seconds=1, warm_up=0, build=pathlib.Path(), server_cpu=0,
                                load_cpu=1)
GOOD = {"figure": 100, "busy": 0.99, "rate": 100, "p50": 1, "p99": 2, "resident": 1, "errors": 0}


class ServedWorkTest(unittest.TestCase):
    def ran(self, servers=(*LIMITS, OURS, PEER), flaws=None, work=None, busy=lambda share: 0.99):
        """Runs a work. Returns the outcome, the section and the shares that were tried."""
        section = measure.ServedWork(work or works.Workload("W", "a work"), list(servers), OPTIONS)
        tried = []

        def measured(server, share=None, seconds=None):
            if flaws and server.name in flaws:
                return measure.failed(flaws[server.name])
            if seconds:
                tried.append(share)
            return GOOD | {"busy": busy(share)}

        def flaw_of(server):
            return (flaws or {}).get(server.name, "")

        with (mock.patch.object(section, "measure", measured),
              mock.patch.object(section, "flaw_of", flaw_of),
              mock.patch.object(measure, "serving", fake_serving),
              mock.patch.object(measure.cpu_share, "possible", lambda: True),
              mock.patch.object(measure.verify, "response_to", lambda *_: b"x" * 128)):
            return section.run(lambda _: None), section, tried

    def row(self, outcome, name):
        return next(row for row in outcome["summary"] if row["name"] == name)

    def test_leaves_out_a_peer_that_fails_the_work_without_error(self):
        outcome, _, _ = self.ran(flaws={"peer": "answers 404"})
        self.assertEqual(outcome["errors"], 0)
        self.assertEqual(outcome["left_out"], {"peer": "answers 404"})
        self.assertNotIn("peer", [row["name"] for row in outcome["summary"]])
        self.assertIn("Not measured: peer (answers 404).", outcome["markdown"])

    def test_our_server_that_fails_the_work_is_an_error(self):
        for broken in (OURS.name, LIMITS[0].name):
            outcome, _, _ = self.ran(flaws={broken: "answers 404"})
            self.assertEqual(outcome["errors"], OPTIONS.runs)
            self.assertNotIn("figure", self.row(outcome, broken))
            self.assertIn(f"Broken: {broken} (answers 404).", outcome["markdown"])

    def test_only_peers_skip_rounds(self):
        outcome, _, _ = self.ran()
        names = [set(results) for results in outcome["rounds"]]
        self.assertTrue(all(OURS.name in each and LIMITS[0].name in each for each in names))
        self.assertEqual(sum("peer" in each for each in names), 5)

    def test_takes_the_largest_share_that_saturates_the_limit_servers(self):
        busy = {0.9: 0.8, 0.75: 0.96, 0.6: 0.98}
        _, section, tried = self.ran(busy=lambda share: busy.get(share, 0.99))
        self.assertEqual(section.share, 0.6)
        self.assertEqual(sorted(set(tried)), [0.6, 0.75, 0.9])

    def test_without_any_limit_server_there_is_no_share(self):
        with self.assertRaisesRegex(Failure, "does not serve"):
            self.ran(servers=[OURS], flaws={limit.name: "does not serve" for limit in LIMITS})

    def test_a_work_about_latency_needs_no_probe(self):
        work = works.Workload("W", "a work", shares=(1,), saturates=False)
        self.assertEqual(self.ran(work=work)[2], [])

    def test_reports_responses_of_other_lengths(self):
        section = measure.ServedWork(works.Workload("W", "a work"), [], OPTIONS)
        section.response_bytes = 122
        section.lengths = {"weir-epoll": 122}
        self.assertEqual(section.other_lengths(), [])
        section.lengths["node"] = 146
        self.assertEqual(section.other_lengths(),
                         ["Responses have 122 bytes; other lengths: node 146."])

    def test_leaves_out_the_works_that_a_server_refuses(self):
        refusing = Server("refusing", "", refuses=(("W", "does not do it"),))
        section = measure.ServedWork(works.Workload("W-2", "a work"), [refusing, OURS], OPTIONS)
        self.assertEqual(section.left_out, {"refusing": "does not do it"})
        self.assertEqual(section.servers, [OURS])


@contextlib.contextmanager
def fake_serving(*_):
    yield types.SimpleNamespace(port=0)


if __name__ == "__main__":
    unittest.main()
