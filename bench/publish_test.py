"""Tests the published texts: the table, the picture, and the unchanged rest of the page."""

import json
import pathlib
import tempfile
import types
import unittest
from xml.dom import minidom

import hardening
import inside
import plot
import programs
import publish


def row(name, kind, share):
    spread = {"median": share, "min": share / 2, "max": 1.0, "low": share, "high": share,
              "pairs": 5 if kind == "peer" else 9}
    return {"name": name, "kind": kind, "share": spread, "figure": 1e5 * share, "p50": 1000,
            "p99": 2000}


REPORT = {
    "machine": {"processor": "A & B", "processors": 2, "kernel": "6", "date": "2026-01-02",
                "commit": "abc"},
    "runs": 9,
    "seconds": 1,
    "left_out": {"nginx": "there is no nginx"},
    "works": {
        "B2": {"title": "GET", "kind": "served",
               "summary": [row("peer", "peer", 0.5), row("weir-uring", "weir", 0.97) |
                           {"verdict": "met (0.95)"}, {"name": "broken", "kind": "peer"}]},
        "B15-idle": {"title": "idle", "kind": "idle",
                     "summary": [{"name": "weir-uring", "bytes": 400.0}]},
    },
}


class PublishTest(unittest.TestCase):
    def test_the_best_comes_first_and_missing_figures_are_shown(self):
        lines = publish.table(REPORT).splitlines()
        self.assertEqual(lines[2], "| weir-uring | **0.97** (0.97..0.97; 9) | 400 |")
        self.assertEqual(lines[3], "| peer | 0.50 (0.50..0.50; 5) | – |")
        self.assertEqual(lines[4], "| broken | – | – |")

    def test_the_short_table_has_the_rows_of_the_readme(self):
        lines = publish.short_table(REPORT).splitlines()
        self.assertEqual(len(lines), 2 + 5)
        self.assertEqual(lines[2], "| Weir (io_uring) | 0.97 | – | – | 400 |")
        self.assertEqual(lines[3], "| nginx | – | – | – | – |")
        readme = (publish.ROOT / "README.md").read_text()
        self.assertIn(lines[0], readme)
        for title in publish.SHORT_ROWS.values():
            self.assertIn(f"\n| {title} |", readme)

    def test_shows_verdicts_dates_and_left_out_servers(self):
        text = publish.text(REPORT)
        self.assertIn("| 0.970 (0.970..0.970) | met (0.95) |", text)
        self.assertIn("2026-01-02, A & B, 2 processors", text)
        self.assertIn("nginx: there is no nginx", text)
        self.assertIn("9 rounds, others' servers in 5 of them", text)

    def test_a_reached_ratio_names_the_compared_server(self):
        reached = {"median": 1.1, "low": 1.0, "high": 1.2, "of": "the best peer"}
        compared = row("weir-uring", "weir", 0.9) | {"reached": reached}
        self.assertEqual(publish.reached_by(compared), "1.100 (1.000..1.200) of the best peer")

    def test_works_inside_one_process_have_their_own_lines(self):
        rounds = [{"weir::json": {"millions": 17.0}}] * 9
        options = types.SimpleNamespace(runs=9)
        report = REPORT | {"works": {"B10": {"summary": inside.Json(options).rows(rounds)}}}
        self.assertIn("| B10 | weir::json | 17.0 M/s (17.0..17.0) | met (≥ 10) |",
                      publish.verdicts(report))

    def test_changes_only_the_text_between_the_markers(self):
        page = f"before\n{publish.BEGIN}\nold\n{publish.END}\nafter\n"
        once = publish.between_markers(page, "new")
        self.assertEqual(once, page.replace("old", "new"))
        self.assertEqual(publish.between_markers(once, "old"), page)
        with self.assertRaises(SystemExit):
            publish.between_markers("no markers", "new")

    def test_only_a_full_run_of_a_commit_is_published(self):
        def row_of(name, kind="limit"):
            return {"name": name, "kind": kind, "figure": 1}

        ours = [row_of(server.name) for server in programs.SERVERS if server.joins("B2")]
        served = {"kind": "served", "summary": [*ours, row_of("nginx", "peer")]}
        hops = {"kind": "inside", "summary": [{"name": "hop"}]}
        full = {"machine": {"commit": "abc"}, "runs": 9, "seconds": 1,
                "sections": ["B2", "hop-uring"], "works": {"B2": served, "hop-uring": hops}}
        self.assertEqual(publish.missing_results(full), [])
        for wrong, reason in (
                ({"machine": {"commit": "abc-dirty"}}, "commit"),
                ({"machine": {"commit": ""}}, "commit"),
                ({"runs": 8}, "8 rounds"),
                ({"works": {"B2": served}}, "hop-uring was not"),
                ({"works": full["works"] | {"B2": served | {"kind": "failed"}}}, "B2 was not"),
                ({"seconds": 0.5}, "runs of 0.5 s"),
                ({"works": full["works"] | {"B2": served | {"errors": 1}}}, "B2 has errors"),
                ({"works": full["works"] | {"B2": served | {"summary": ours}}}, "has no peer"),
                ({"works": full["works"] | {"hop-uring": hops | {"summary": []}}},
                 "hop-uring was left out"),
                ({"works": full["works"] | {"B2": served | {"summary": [
                    *ours[1:], row_of("nginx", "peer")]}}}, f"no figure of {ours[0]['name']}")):
            lacking = publish.missing_results(full | wrong)
            self.assertEqual(len(lacking), 1)
            self.assertIn(reason, lacking[0])

    def test_variants_have_pages_of_their_own_and_a_line_each(self):
        with tempfile.TemporaryDirectory() as root:
            out, folder = pathlib.Path(root) / "out", pathlib.Path(root) / "docs"
            (out / "allocators").mkdir(parents=True)
            folder.mkdir()
            self.assertEqual(publish.pages_of(out), ({}, []))
            self.assertEqual(publish.write_pages({}, folder), [])
            (out / "allocators/bench.md").write_text("+3 %")
            (folder / "hardening.md").write_text("of an earlier run")
            lines = publish.write_pages(publish.pages_of(out)[0], folder)
            self.assertEqual([line.split("[")[1].split("]")[0] for line in lines],
                             ["allocators.md", "hardening.md"])
            self.assertEqual((folder / "allocators.md").read_text(), "+3 %")
            self.assertEqual((folder / "hardening.md").read_text(), "of an earlier run")

    def test_a_partial_run_has_a_page_with_its_commit(self):
        with tempfile.TemporaryDirectory() as root:
            out, folder = pathlib.Path(root) / "out", pathlib.Path(root) / "docs"
            (out / "part").mkdir(parents=True)
            folder.mkdir()
            page = "AMD, Linux 6, 2026-01-02, commit abc\n\n### B2: GET\n\n| a |\n"
            (out / "part/bench.md").write_text(page)
            (out / "part/bench.json").write_text(json.dumps(REPORT | {"works": {"B2": {}}}))
            [line] = publish.write_pages(publish.pages_of(out)[0], folder)
            self.assertIn("[only-b2.md](only-b2.md): a partial run of commit abc (B2: GET).", line)
            self.assertEqual((folder / "only-b2.md").read_text(), page)
            (out / "part/bench.json").write_text(json.dumps(REPORT | {"runs": 2}))
            pages, [why] = publish.pages_of(out)
            self.assertEqual(pages, {})
            self.assertIn("2 rounds, not", why)
            broken = {"works": {"B2": {"errors": 1}}}
            (out / "part/bench.json").write_text(json.dumps(REPORT | broken))
            self.assertIn("B2 has errors", publish.pages_of(out)[1][0])

    def test_writes_only_between_the_markers_of_the_folder(self):
        with tempfile.TemporaryDirectory() as root:
            out, folder = pathlib.Path(root) / "out", pathlib.Path(root) / "docs"
            (out / "allocators").mkdir(parents=True)
            folder.mkdir()
            begin, end = publish.PAGES_BEGIN, publish.PAGES_END
            (folder / "README.md").write_text(f"before\n{begin}\nold\n{end}\nafter\n")
            with self.assertRaises(SystemExit):
                publish.publish(out, folder)  # there are no results
            (out / "allocators/bench.md").write_text("+3 %")
            publish.publish(out, folder)
            page = (folder / "README.md").read_text()
            self.assertEqual(page.splitlines()[0], "before")
            self.assertEqual(page.splitlines()[-1], "after")
            self.assertIn("[allocators.md](allocators.md)", page)
            self.assertNotIn("old", page)

    def test_the_published_page_has_the_markers(self):
        page = (publish.ROOT / "docs/bench/README.md").read_text()
        for begin, end in ((publish.BEGIN, publish.END), (publish.PAGES_BEGIN, publish.PAGES_END)):
            self.assertIn(begin, publish.between_markers(page, "x", begin, end))

    def test_the_page_on_hardening_uses_the_rounds(self):
        with tempfile.TemporaryDirectory() as root:
            ran = pathlib.Path(root)
            works = dict.fromkeys(hardening.IDS, {"title": "GET", "kind": "counted",
                                                  "markdown": "+3 %"})
            (ran / "bench.json").write_text(json.dumps(REPORT | {"works": works}))
            (ran / "bench.md").write_text("of an older format")
            page = publish.page_of("hardening", ran)
            self.assertIn("commit abc\n", page)
            self.assertIn("### B2: GET\n\n+3 %\n", page)

    def test_the_picture_is_well_formed_and_has_a_bar_for_each_server(self):
        picture = minidom.parseString(plot.shares(REPORT))
        bars = [each for each in picture.getElementsByTagName("rect")
                if each.getAttribute("height") == str(plot.BAR_HEIGHT)]
        self.assertEqual(len(bars), 2)


if __name__ == "__main__":
    unittest.main()
