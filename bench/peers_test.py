"""Tests building peers: builds, skipped rebuilds, and peers that are left out."""

import os
import pathlib
import tempfile
import unittest

import peers
import works
from programs import Peer, Server

COUNT = ("sh", "-c", "echo built >> ../count")


class PeersTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.addCleanup(setattr, peers, "SOURCES", peers.SOURCES)
        self.addCleanup(os.environ.__setitem__, "PATH", os.environ["PATH"])
        peers.SOURCES = self.root / "sources"
        (peers.SOURCES / "one/inner").mkdir(parents=True)
        (peers.SOURCES / "one/inner/main.c").write_text("first")
        self.said = []

    def prepared(self, *servers):
        return peers.prepared(servers, self.root / "built", self.said.append)

    def builds(self):
        count = self.root / "built/count"
        return len(count.read_text().split()) if count.exists() else 0

    def test_our_own_servers_are_ready(self):
        ours = Server("ours", "program")
        self.assertEqual(self.prepared(ours), ([ours], {}))

    def test_a_peer_is_built_in_a_copy(self):
        peer = Peer("one", "{home}/program --fast", source="one", steps=(COUNT,))
        ready, left_out = self.prepared(peer)
        home = self.root.resolve() / "built/one"
        self.assertEqual(left_out, {})
        self.assertEqual(ready[0].command(None, works.Workload("W", ""), 128),
                         [f"{home}/program", "--fast", "--port", "0"])
        self.assertEqual((home / "inner/main.c").read_text(), "first")
        self.assertEqual(self.builds(), 1)

    def test_rebuilds_only_changed_peers(self):
        peer = Peer("one", "program", source="one", steps=(COUNT,))
        self.prepared(peer)
        self.prepared(peer)
        self.assertEqual(self.builds(), 1)
        (peers.SOURCES / "one/inner/main.c").write_text("second")
        self.prepared(peer)
        self.assertEqual(self.builds(), 2)
        self.prepared(Peer("one", "program", source="one", steps=(COUNT, ("true",))))
        self.assertEqual(self.builds(), 3)

    def test_a_failed_build_is_tried_again(self):
        peer = Peer("one", "program", source="one", steps=(COUNT, ("false",)))
        self.prepared(peer)
        self.prepared(peer)
        self.assertEqual(self.builds(), 2)

    def test_leaves_out_a_peer_that_cannot_be_built(self):
        failing = Peer("failing", "program", source="one", library="libnone",
                       steps=(("sh", "-c", "echo because; false"),))
        toolless = Peer("toolless", "program", source="one", tools=("weir-no-such-tool",))
        fine = Peer("fine", "program", source="one", steps=(("true",),))
        ready, left_out = self.prepared(failing, toolless, fine)
        self.assertEqual([peer.name for peer in ready], ["fine"])
        self.assertEqual(left_out["toolless"], "weir-no-such-tool is not installed")
        self.assertIn("it needs libnone", left_out["failing"])
        self.assertIn("without toolless: weir-no-such-tool is not installed", self.said)

    def test_a_failed_build_leaves_its_log(self):
        failing = Peer("failing", "program", source="one",
                       steps=(("sh", "-c", "echo because; false"),))
        reason = self.prepared(failing)[1]["failing"]
        log = pathlib.Path(reason.rpartition("see ")[2])
        self.assertEqual(log.read_text(), "because\n")

    def test_gives_up_an_endless_build(self):
        self.addCleanup(setattr, peers, "BUILD_SECONDS_MAX", peers.BUILD_SECONDS_MAX)
        peers.BUILD_SECONDS_MAX = 0.1
        endless = Peer("endless", "program", source="one", steps=(("sleep", "60"),))
        self.assertIn("took more than", self.prepared(endless)[1]["endless"])


if __name__ == "__main__":
    unittest.main()
