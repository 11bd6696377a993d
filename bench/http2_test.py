"""Tests the workloads of HTTP/2: the report of h2load, their servers, commands and verdicts."""

import pathlib
import types
import unittest
from unittest import mock

import h2load
import http2
import programs
import serving
from serving import Failure

OPTIONS = types.SimpleNamespace(runs=9, seconds=1, warm_up=0, build=pathlib.Path("build"),
                                server_cpu=0, load_cpu=1)
SERVERS = {server.name: server for server in [*programs.SERVERS, *programs.PEERS]}
WORKS = {work.id: work for work in http2.WORKS}
REPORT = """\
starting benchmark...
progress: 100% done

finished in 321.25ms, 311281.84 req/s, 10.69MB/s
requests: 100000 total, 100000 started, 100000 done, {} succeeded, {} failed, 0 errored, 0 timeout
status codes: {} 2xx, 0 3xx, {} 4xx, 0 5xx
traffic: 3.43MB (3600384) total, 683.59KB (700000) headers (saved 91%), 1.05MB (1100000) data
                     min         max         mean         sd        +/- sd
time for request:       22us      5.13ms      1.47ms       821us    66.31%
"""


def joined(identity):
    return {name for name, server in SERVERS.items() if server.joins(identity)}


def section(identity):
    return http2.Http2Work(WORKS[identity], [SERVERS[name] for name in joined(identity)], OPTIONS)


class H2loadTest(unittest.TestCase):
    def test_reads_requests_time_and_data(self):
        said = h2load.numbers(REPORT.format(100000, 0, 100000, 0))
        self.assertEqual(said, {"requests": 100000, "errors": 0, "seconds": 0.32125,
                                "data": 1100000})

    def test_each_request_without_a_2xx_response_is_an_error(self):
        said = h2load.numbers(REPORT.format(100000, 0, 99990, 10))
        self.assertEqual(said["errors"], 10)
        said = h2load.numbers(REPORT.format(99000, 1000, 99990, 10))
        self.assertEqual(said["errors"], 1000)

    def test_units_of_time(self):
        for text, seconds in (("2.50s", 2.5), ("950us", 0.00095)):
            report = REPORT.format(1, 0, 1, 0).replace("321.25ms", text)
            self.assertAlmostEqual(h2load.numbers(report)["seconds"], seconds)

    def test_a_report_without_numbers_is_a_failure_with_its_reason(self):
        with self.assertRaisesRegex(Failure, "could not connect"):
            h2load.numbers("starting benchmark...", "could not connect")

    def test_the_command_has_the_protocol_and_the_upload(self):
        words = h2load.command("http://127.0.0.1:1/", 64, 8, 4)
        self.assertNotIn("--h1", words)
        self.assertEqual(words[words.index("--max-concurrent-streams") + 1], "4")
        self.assertEqual(h2load.command("u", 1, 1, 1, http1=True, upload="f")[-4:],
                         ["--h1", "--data", "f", "u"])


class ServersTest(unittest.TestCase):
    def test_each_work_has_its_servers(self):
        ours = {"weir-uring", "weir-epoll"}
        peers = {"nginx-http2", "nghttpd", "h2o", "go-net-http", "hyper-http2"}
        self.assertEqual(joined("H1"), ours | peers | {"limit-http2"})
        self.assertEqual(joined("H2"), ours | peers | {"weir-uring-plain", "weir-epoll-plain"})
        http1 = {"weir-uring-http1", "weir-epoll-http1"}
        self.assertEqual(joined("H4"), ours | http1)
        self.assertEqual(joined("H6-tls"), ours | {"h2o"})
        self.assertNotIn("nginx-http2", joined("T1"))

    def test_the_share_saturates_the_limit_server_or_the_servers_of_weir(self):
        self.assertEqual([server.name for server in section("H1").limits], ["limit-http2"])
        self.assertEqual({server.name for server in section("H2").limits},
                         {"weir-uring", "weir-epoll", "weir-uring-plain", "weir-epoll-plain"})

    def test_anchors_of_http1_are_asked_by_http1(self):
        commands = {}
        running = types.SimpleNamespace(port=7, processor_seconds=lambda: 0)
        for name in ("weir-uring", "weir-uring-http1"):
            with mock.patch.object(h2load, "run", lambda _, words: commands.update({name: words})):
                section("H3").ask(SERVERS[name], running, 64)
        self.assertIn("--h1", commands["weir-uring-http1"])
        self.assertNotIn("--h1", commands["weir-uring"])

    def test_each_stream_has_the_same_number_of_requests(self):
        work = section("H1")
        work.speeds = {"weir-uring": 300_000}
        self.assertEqual(work.requests_of(SERVERS["weir-uring"], 1), 47 * 6400)
        self.assertEqual(work.requests_of(SERVERS["weir-uring"], 0.001), 6400)


class FlawTest(unittest.TestCase):
    def flaw(self, identity, name, **said):
        work = section(identity)
        said = {"requests": 10, "errors": 0, "data": 10 * work.work.body_bytes} | said
        with (mock.patch.object(work, "started"),
              mock.patch.object(work, "ask", lambda *_: (said, 2.0))):
            return work.flaw_of(SERVERS[name]), work.speeds

    def test_a_server_that_does_the_work_has_a_speed(self):
        self.assertEqual(self.flaw("H1", "weir-uring"), ("", {"weir-uring": 5}))
        self.assertEqual(self.flaw("H1", "nginx-http2", data=130), ("", {"nginx-http2": 5}))

    def test_failed_requests_and_wrong_bodies_are_flaws(self):
        self.assertEqual(self.flaw("H1", "weir-uring", errors=1)[0], "1 of 10 requests failed")
        self.assertEqual(self.flaw("H1", "weir-uring", data=120)[0], "answers 12.0 bytes, not 11")
        self.assertEqual(self.flaw("H1", "nghttpd", data=0)[0], "answers 0.0 bytes, not 11")
        self.assertEqual(self.flaw("H1", "nghttpd", data=15)[0], "answers 1.5 bytes, not 11")


class MeasureTest(unittest.TestCase):
    def measured(self, identity, errors=0):
        """Returns the result of loads that cost 1 s of CPU time, and 0.1 s for each request."""
        work = section(identity)
        work.speeds = {"weir-uring": 6400}

        def ask(_server, _running, requests):
            processor = 1 + requests / 10
            return {"requests": requests, "errors": errors, "seconds": 4 * processor}, processor

        running = mock.MagicMock()
        running.__enter__.return_value = types.SimpleNamespace(
            processes=lambda: [], peak_bytes=lambda: 6400, resident_bytes=lambda: 0)
        with (mock.patch.object(work, "started", lambda _: running),
              mock.patch.object(http2.cpu_share, "limited") as limited,
              mock.patch.object(work, "ask", ask)):
            limited.return_value.__enter__.return_value = (0.25, None)
            return work.measure(SERVERS["weir-uring"])

    def test_figures_count_requests_or_mib_per_second_of_cpu_time(self):
        found = self.measured("H1")
        self.assertAlmostEqual(found["figure"], 10)  # without the connections
        self.assertAlmostEqual(found["rate"], 2.5)
        self.assertAlmostEqual(found["busy"], 1.0)
        self.assertAlmostEqual(self.measured("H4")["figure"], 100 * 1600 / 161)
        self.assertEqual(self.measured("H5")["grown"], 100)

    def test_errors_are_counted_and_no_success_is_no_figure(self):
        self.assertEqual(self.measured("H1", errors=3)["errors"], 6)
        self.assertEqual(self.measured("H1", errors=12800)["figure"], 0)


class TargetsTest(unittest.TestCase):
    def test_compares_with_anchors_of_the_same_backend(self):
        def row(figure):
            return {"figure": figure, "busy": 1.0, "errors": 0}

        outcome = {"rounds": [{"weir-uring": row(89), "weir-uring-http1": row(100)}] * 9,
                   "summary": []}
        found = http2.tls.targets({"name": "weir-uring", "errors": 0}, WORKS["H4"], outcome,
                                  http2.ANCHORS)
        self.assertEqual([(line["of"], line["verdict"]) for line in found],
                         [("weir-uring / weir-uring-http1", "MISSED (≥ 0.90)")])

    def test_memory_of_uploads_and_beside_h2o(self):
        def line(identity, **numbers):
            ours = {"figure": 1, "errors": 0, "resident": 99, "grown": http2.MIB} | numbers
            rounds = [{"weir-uring": ours, "h2o": {"figure": 1, "resident": 100}}] * 3
            return section(identity).memory_target("weir-uring", rounds)

        self.assertEqual(line("H5")["verdict"], "met (≤ 1,048,576)")
        self.assertEqual(line("H5", grown=http2.MIB + 1)["verdict"], "MISSED (≤ 1,048,576)")
        self.assertEqual(line("H7")["reached"], "0.99 (0.99..0.99)")
        self.assertEqual(line("H7", resident=101)["verdict"], "MISSED (≤ 1)")
        self.assertEqual(line("H7", errors=1)["verdict"], "missed: errors")
        self.assertTrue(line("H7", figure=0, errors=0)["verdict"].startswith("not judged"))


class IdleTest(unittest.TestCase):
    class Connection:
        def __init__(self, *pieces):
            self.pieces = list(pieces)
            self.sent = b""

        def recv(self, _):
            return self.pieces.pop(0) if self.pieces else b""

        def sendall(self, data):
            self.sent += data

    idle = http2.Http2IdleMemory([], OPTIONS)
    head = http2.frame(http2.HEADERS, http2.END_HEADERS, 1, b"\x88\x00")
    body = http2.frame(http2.DATA, http2.END_STREAM, 1, b"hello")

    def test_only_the_first_request_has_the_preface(self):
        connection = self.Connection()
        self.idle.ask(connection, 1)
        self.assertTrue(connection.sent.startswith(http2.PREFACE))
        first = len(connection.sent)
        self.idle.ask(connection, 2)
        self.assertEqual(connection.sent[first + 3:first + 9], b"\x01\x05\x00\x00\x00\x03")

    def test_a_response_ends_with_its_stream(self):
        settings = http2.frame(http2.SETTINGS, 0, 0)
        connection = self.Connection(settings + self.head[:5], self.head[5:] + self.body, b"more")
        self.idle.receive(connection)
        self.assertEqual(connection.pieces, [b"more"])

    def test_other_answers_are_failures(self):
        refused = http2.frame(http2.HEADERS, http2.END_HEADERS | http2.END_STREAM, 1, b"\x8d")
        with self.assertRaisesRegex(Failure, "no 200"):
            self.idle.receive(self.Connection(refused))
        with self.assertRaisesRegex(Failure, "closed"):
            self.idle.receive(self.Connection(self.head))


class ProcessorTimeTest(unittest.TestCase):
    def test_sums_the_threads_of_a_process(self):
        with mock.patch.object(serving.pathlib.Path, "iterdir",
                               lambda _: [pathlib.Path("/a"), pathlib.Path("/b")]):
            with mock.patch.object(serving.pathlib.Path, "read_text", lambda _: "1500000000 2 3\n"):
                self.assertEqual(serving.processor_seconds(1), 3.0)


if __name__ == "__main__":
    unittest.main()
