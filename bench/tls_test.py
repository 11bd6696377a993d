"""Tests the workloads of TLS: their servers, commands, comparisons and verdicts."""

import pathlib
import types
import unittest
from unittest import mock

import certificates
import programs
import serving
import tls
import tls_live
from programs import Peer
from serving import Failure

OPTIONS = types.SimpleNamespace(runs=9, seconds=1, warm_up=0, build=pathlib.Path("build"),
                                server_cpu=0, load_cpu=1)
SERVERS = {server.name: server for server in [*programs.SERVERS, *programs.PEERS]}
WORKS = {work.id: work for work in tls.WORKS}


def result(figure, busy=1.0):
    return {"figure": figure, "busy": busy, "rate": figure, "p50": 1, "p99": 1, "resident": 1,
            "errors": 0}


class ServersTest(unittest.TestCase):
    def setUp(self):
        made = mock.patch.object(certificates, "options", lambda build, key: ["--tls-cert", key])
        made.start()
        self.addCleanup(made.stop)

    def joined(self, identity):
        return {name for name, server in SERVERS.items() if server.joins(identity)}

    def test_servers_without_tls_join_no_work_of_tls(self):
        self.assertEqual(self.joined("T3-12"), {"limit-tls", "weir-uring", "weir-epoll", "nginx",
                                                "h2o", "go-net-http", "hyper", "node"})
        self.assertEqual(self.joined("T1") - self.joined("T3-12"),
                         {"weir-uring-plain", "weir-epoll-plain"})
        self.assertIn("openssl-speed", self.joined("T2-rsa"))
        self.assertTrue(self.joined("B2").isdisjoint({"limit-tls", "openssl-speed"}))

    def test_commands_have_a_certificate_of_the_right_kind(self):
        def command(name, identity):
            return SERVERS[name].command(pathlib.Path("build"), WORKS[identity], 128)

        self.assertEqual(command("weir-uring", "T2-rsa")[-2:], ["--tls-cert", "rsa"])
        self.assertEqual(command("limit-tls", "T3-13")[-3:], ["--close", "--tls-cert", "ecdsa"])
        self.assertNotIn("--tls-cert", command("weir-uring-plain", "T1"))
        node = Peer("node", "node server.js", source="node", tls="too")
        self.assertIn("--tls-cert", node.command(pathlib.Path("build"), WORKS["T1"], 128))

    def test_the_generator_uses_the_version_and_resumes(self):
        command = serving.generator(OPTIONS, 7, WORKS["T3-12"], secure=True)
        self.assertIn("https://127.0.0.1:7/", command)
        self.assertEqual(command[-3:], ["--tls-version", "1.2", "--resume"])
        self.assertIn("--new-connections", command)
        plain = serving.generator(OPTIONS, 7, WORKS["T1"])
        self.assertIn("http://127.0.0.1:7/", plain)
        self.assertNotIn("--tls-version", plain)

    def test_a_library_context_for_each_core_is_an_option_of_the_limit_server(self):
        section = tls.TwoCores(list(SERVERS.values()), OPTIONS)
        section.response_bytes = 128
        self.assertEqual([server.name for server in section.servers],
                         ["limit-tls", "weir-uring", "weir-epoll"])
        (command, processors), = section.commands(SERVERS["limit-tls"], "own")
        self.assertEqual(command[-1], "--own-library")
        self.assertEqual(command[command.index("--cores") + 1], "2")
        self.assertEqual(processors, [0, 1])


class TargetsTest(unittest.TestCase):
    def targets(self, identity, figures, rounds=9):
        """Returns {comparison: verdict} of weir-uring."""
        outcome = {"rounds": [{name: result(figure) for name, figure in figures.items()}] * rounds,
                   "summary": [{"name": name, "kind": SERVERS[name].kind} for name in figures]}
        row = {"name": "weir-uring", "errors": 0}
        found = tls.targets(row, WORKS[identity], outcome)
        return {target["of"].partition(" / ")[2]: target["verdict"] for target in found}

    def test_compares_with_each_peer_and_with_the_same_backend_without_tls(self):
        figures = {"weir-uring": 80, "weir-uring-plain": 99, "weir-epoll-plain": 1, "nginx": 79,
                   "hyper": 81}
        self.assertEqual(self.targets("T1", figures),
                         {"nginx": "met (≥ 1.00)", "hyper": "MISSED (≥ 1.00)",
                          "weir-uring-plain": "met (≥ 0.80)"})

    def test_compares_rsa_with_the_library_alone(self):
        self.assertEqual(self.targets("T2-rsa", {"weir-uring": 79, "openssl-speed": 100}),
                         {"openssl-speed": "MISSED (≥ 0.80)"})

    def test_large_responses_are_compared_with_nginx_only(self):
        figures = {"weir-uring": 2, "nginx": 1, "go-net-http": 3}
        self.assertEqual(self.targets("T6-1m", figures), {"nginx": "met (≥ 1.00)"})

    def test_few_rounds_and_errors_are_no_verdict(self):
        few = self.targets("T6-1m", {"weir-uring": 2, "nginx": 1}, rounds=8)
        self.assertTrue(few["nginx"].startswith("not judged"))
        self.assertEqual(tls.target("a / b", [2.0], 1, 1, 9)["verdict"], "missed: errors")

    def test_reads_the_signatures_of_the_library(self):
        said = types.SimpleNamespace(stdout="+H:2048\n+F2:2:2048:3838.5:71138.0\n")
        with mock.patch.object(tls.subprocess, "run", lambda *_, **__: said):
            self.assertEqual(tls.signatures("rsa", 0), 3838.5)
        said.stdout = "+F4:3:256:56620.2:17910.1\n"
        with mock.patch.object(tls.subprocess, "run", lambda *_, **__: said):
            self.assertEqual(tls.signatures("ecdsa", 0), 56620.2)


class LiveTest(unittest.TestCase):
    def test_the_p99_may_double(self):
        section = tls_live.BesideHandshakes(programs.SERVERS, OPTIONS)

        def verdict(with_them, errors=0, rounds=9):
            results = [{"with": with_them, "without": 100, "errors": errors}] * rounds
            return section.row(programs.weir("uring"), results)["verdict"]

        self.assertEqual(verdict(200), "met (≤ 2)")
        self.assertEqual(verdict(201), "MISSED (≤ 2)")
        self.assertEqual(verdict(100, errors=1), "missed: errors")
        self.assertEqual(verdict(100, rounds=3), "not judged: 3 rounds")

    def test_each_failed_request_and_closed_connection_counts(self):
        section = tls_live.Reloads(programs.SERVERS, OPTIONS)
        good = {"error_count": 0, "unanswered": 0, "unsent": 0, "starved": 0, "responses": 5,
                "closed_by_server": 0, "opened": section.kept.connections}

        def verdict(stale=0, **changes):
            row = section.row(programs.weir("uring"), good | changes, good, stale, 100)
            return row["verdict"].partition(" ")[0]

        self.assertEqual(verdict(), "met")
        for changes in ({"error_count": 1}, {"unanswered": 1}, {"closed_by_server": 1},
                        {"opened": section.kept.connections + 1}, {"stale": 1}):
            self.assertEqual(verdict(**changes), "MISSED", changes)


class CertificatesTest(unittest.TestCase):
    def test_a_failure_of_openssl_is_the_reason(self):
        for ran in (mock.Mock(side_effect=FileNotFoundError("openssl")),
                    mock.Mock(return_value=types.SimpleNamespace(returncode=1, stderr="no room"))):
            with (mock.patch.object(certificates.subprocess, "run", ran),
                  mock.patch.object(pathlib.Path, "mkdir"),
                  self.assertRaisesRegex(Failure, "makes no certificate: (openssl|no room)")):
                certificates.made(pathlib.Path("nowhere"), "ecdsa")


if __name__ == "__main__":
    unittest.main()
