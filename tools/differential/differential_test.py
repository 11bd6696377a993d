"""Tests the comparison: the reference, the mutations, and the reports of differences."""

import contextlib
import json
import os
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

import differential
import mutate
import peers
import reference
import wire

DATA = pathlib.Path(__file__).resolve().parents[2] / "tests/data"
HOST = b"Host: a.test\r\n"
METHODS = {name.decode() for name in reference.METHODS}


def all_cases():
    for name in ("http1-cases.json", "http1-more.json", "http1-smuggling.json",
                 "http1-found.json"):
        for case in json.loads((DATA / name).read_text()):
            text = case["bytes"]
            if "repeat" in case:
                text += case["repeat"][0] * case["repeat"][1] + case.get("rest", "")
            yield case, text.encode("latin-1")


def kinds_of(reading):
    """Returns the expectations that a reading meets."""
    if not reading.requests:
        return {"refused": {"400", "408", "413", "414", "417", "431", "501", "505"},
                "incomplete": {"wait", "100"}, "all": {"wait"}}[reading.end]
    first = reading.requests[0]
    kinds = {"200", "closeok", "100"} if first.method in METHODS else {"405", "501", "400"}
    return kinds | {"400"} if first.method in ("CONNECT", "TRACE") else kinds


class ReferenceTest(unittest.TestCase):
    def test_agrees_with_every_known_case(self):
        for case, data in all_cases():
            with self.subTest(case["id"], why=case["why"]):
                reading = reference.read(data)
                self.assertTrue(kinds_of(reading) & set(case["expect"]), reading)
                # A request that waits for its body after a 100 is one incomplete request.
                if "answers" in case and reading.end != "incomplete":
                    answers = len(reading.requests) + (reading.end == "refused")
                    self.assertEqual(answers, case["answers"], reading)

    def test_reads_requests_in_sequence(self):
        reading = reference.read(b"POST /a HTTP/1.1\r\n" + HOST + b"Content-Length: 2\r\n\r\nhi"
                                 b"POST /b HTTP/1.1\r\n" + HOST +
                                 b"Transfer-Encoding: chunked\r\n\r\n"
                                 b"2;a=\"b\"\r\nho\r\n0\r\nX: y\r\n\r\n"
                                 b"GET /c HTTP/1.0\r\n\r\nGET /d HTTP/1.1\r\n")
        self.assertEqual(reading.requests, [reference.Request("POST", "/a", b"hi"),
                                            reference.Request("POST", "/b", b"ho"),
                                            reference.Request("GET", "/c", b"")])
        self.assertEqual(reading.end, "closed")

    def test_names_the_broken_rule(self):
        for data, rule in ((b"GET / HTTP/1.1\n" + HOST + b"\r\n", 1),
                           (b"GET  / HTTP/1.1\r\n" + HOST + b"\r\n", 2),
                           (b"G(T / HTTP/1.1\r\n" + HOST + b"\r\n", 3),
                           (b"GET /# HTTP/1.1\r\n" + HOST + b"\r\n", 4),
                           (b"GET / HTTP/1.1\r\n\r\n", 5),
                           (b"GET / HTTP/1.1\r\n" + HOST + b"X : y\r\n\r\n", 6),
                           (b"GET / HTTP/1.1\r\n" + HOST + b"Content-Length: x\r\n\r\n", 7),
                           (b"GET / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: x\r\n\r\n", 8),
                           (b"GET / HTTP/1.1\r\n" + HOST +
                            b"Transfer-Encoding: chunked\r\n\r\nx\r\n", 9),
                           (b"GET / HTTP/1.1\r\n" + HOST + b"Connection: ()\r\n\r\n", 10),
                           (b"GET / HTTP/1.1\r\n" + HOST + b"Expect: x\r\n\r\n", 11),
                           (b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n" + HOST + b"\r\n", 15)):
            with self.subTest(data[:60]):
                self.assertEqual(reference.read(data).rule, rule)


class MutateTest(unittest.TestCase):
    def test_the_same_seed_makes_the_same_cases(self):
        known = mutate.known_cases(DATA)
        first = list(mutate.mutated(known, 7, 50))
        self.assertEqual(first, list(mutate.mutated(known, 7, 50)))
        self.assertNotEqual(first, list(mutate.mutated(known, 8, 50)))
        self.assertTrue(all(data for _, data in first))

    def test_some_cases_stay_valid_and_some_break_every_rule(self):
        readings = [reference.read(data)
                    for _, data in mutate.mutated(mutate.known_cases(DATA), 1, 3000)]
        self.assertGreater(sum(len(each.requests) > 1 for each in readings), 30)
        broken = {each.rule for each in readings if each.end == "refused"}
        self.assertLessEqual(set(range(1, 12)), broken)


class PeersTest(unittest.TestCase):
    def test_a_peer_that_does_not_start_is_ended(self):
        with mock.patch.object(peers, "START_SECONDS_MAX", 0.05):
            hangs = [sys.executable, "-c", "import time; time.sleep(3600)"]
            server = peers.Server("one that hangs", hangs, port=1)
            with self.assertRaises(peers.MissingTool), server:
                pass
        self.assertIsNotNone(server.process.poll())

    def test_builds_go_in_the_build_folder_and_again_if_it_is_old(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            compiler = pathlib.Path("bin/go")  # "go build -o PROGRAM ."
            compiler.parent.mkdir()
            compiler.write_text("#!/bin/sh\nprintf x >>count\ncp count \"$3\"\n".replace(
                "count", str(pathlib.Path(folder) / "count")))
            compiler.chmod(0o755)
            program = pathlib.Path("build/differential/go-reporter")
            with mock.patch.dict("os.environ", PATH=f"{folder}/bin:{os.environ['PATH']}"):
                for _ in range(2):
                    server = peers.go(pathlib.Path("build"))
                    self.assertEqual(server.command, [str(program.resolve())])
                self.assertEqual(program.read_text(), "x")
                os.utime(program, (0, 0))
                peers.go(pathlib.Path("build"))
                self.assertEqual(program.read_text(), "xx")


class CompareTest(unittest.TestCase):
    seen = wire.ParsedRequest(200, "GET", "/", 0, "")
    right = reference.Request("GET", "/", b"")

    def test_a_server_takes_frames_or_refuses_otherwise(self):
        compare = differential.compare
        refused = reference.Reading([], "refused", 7, "two lengths")
        one = reference.Reading([self.right], "all")
        self.assertIsNone(compare(one, [self.seen]))
        self.assertIsNone(compare(refused, [wire.ParsedRequest(400)]))
        self.assertEqual(compare(refused, [self.seen]),
                         differential.Difference("accepts", 7, "two lengths"))
        self.assertEqual(compare(one, [wire.ParsedRequest(400)]).kind, "refuses")
        other = wire.ParsedRequest(200, "GET", "/", 5, "68656c6c6f")
        self.assertEqual(compare(one, [other]).kind, "frames")

    def test_weir_must_equal_the_reference(self):
        wrong = differential.weir_is_wrong
        one = reference.Reading([self.right], "all")
        refused = reference.Reading([self.right], "refused", 7, "two lengths")
        self.assertIsNone(wrong(one, [self.seen]))
        self.assertIsNone(wrong(one, [wire.ParsedRequest(501)]))
        self.assertIsNone(wrong(refused, [self.seen, wire.ParsedRequest(400)]))
        self.assertTrue(wrong(one, []))
        self.assertTrue(wrong(one, [wire.ParsedRequest(400)]))
        self.assertTrue(wrong(one, [self.seen, wire.ParsedRequest(400)]))
        self.assertTrue(wrong(refused, [self.seen]))
        self.assertTrue(wrong(refused, [self.seen, self.seen]))

    def test_answers_are_read_to_their_ends(self):
        received = (b"HTTP/1.1 100 Continue\r\n\r\n"
                    b"HTTP/1.1 200 OK\r\nX-Understood: {\"method\":\"GET\",\"target\":\"/\","
                    b"\"body_bytes\":0,\"body\":\"\"}\r\nContent-Length: 3\r\n\r\nabc"
                    b"HTTP/1.1 400 Bad\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n"
                    b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n")
        self.assertEqual(list(wire.answers(received)),
                         [self.seen, wire.ParsedRequest(400), wire.ParsedRequest(404)])


if __name__ == "__main__":
    unittest.main()
