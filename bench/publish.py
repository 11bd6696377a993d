#!/usr/bin/env python3
"""Writes the latest full run into docs/bench: its table into README.md there, between the markers,
all figures and the plot. A partial run gets its own page: `./dev bench --publish`."""

import argparse
import json
import pathlib
import sys

import figures
import hardening
import plot
import programs

ROOT = pathlib.Path(__file__).resolve().parent.parent
BEGIN = "<!-- bench: written by ./dev bench --publish -->"
END = "<!-- bench: end -->"
PAGES_BEGIN = "<!-- bench pages: written by ./dev bench --publish -->"
PAGES_END = "<!-- bench pages: end -->"
SECONDS_MIN = 1
# Runs of variants of Weir. Each has its own page, which names its commit.
VARIANTS = {"allocators": "Weir with mimalloc, jemalloc or tcmalloc in place of malloc",
            "hardening": "the costs of hardening"}
# The rows and columns of the short table in README.md.
SHORT_ROWS = {"weir-uring": "Weir (io_uring)", "nginx": "nginx", "hyper": "hyper (Rust, tokio)",
              "go-net-http": "net/http (Go)", "node": "http (Node.js)"}
SHORT_WORKS = {"B2": "GET", "B13": "JSON", "B15": "new connections"}
WORKS = ("B1", "B2", "B3", "B13", "B13-2", "B13-19000", "B15")


def cell(identity, row):
    """Returns the cell of one server at one workload."""
    if row is None or "share" not in row:
        return "–"
    if identity == "B13-2":
        return f"{row['p50'] / 1000:.0f} / {row['p99'] / 1000:.0f} us"
    share = row["share"]
    if row["kind"] == "weir":
        share = row.get("reached", share)  # the judged ratio, to the best server
    median = f"{share['median']:.2f}"
    if row["kind"] == "weir":
        median = f"**{median}**"
    return f"{median} ({share['low']:.2f}..{share['high']:.2f}; {share['pairs']})"


def table(report):
    """Returns a table with a row for each server and a column for each workload."""
    ids = [identity for identity in WORKS if identity in report["works"]]
    rows = {identity: {row["name"]: row for row in report["works"][identity]["summary"]}
            for identity in ids}
    idle = {row["name"]: row for row in report["works"].get("B15-idle", {}).get("summary", [])}
    names = list(dict.fromkeys(name for identity in ids for name in rows[identity]))

    def order(name):
        shares = [rows[identity][name]["share"]["median"] for identity in ids
                  if "share" in rows[identity].get(name, {})]
        return -sum(shares) / len(shares) if shares else 0

    names.sort(key=order)
    titles = "".join(f" {identity}{' p50 / p99' if identity == 'B13-2' else ''} |"
                     for identity in ids)
    lines = [f"| |{titles} bytes per idle connection |", "|---|" + "---|" * (len(ids) + 1)]
    for name in names:
        cells = "".join(f" {cell(identity, rows[identity].get(name))} |" for identity in ids)
        bytes_each = f"{idle[name]['bytes']:,.0f}" if "bytes" in idle.get(name, {}) else "–"
        lines.append(f"| {name} |{cells} {bytes_each} |")
    return "\n".join(lines)


def short_table(report):
    """Returns the table of README.md, which its editor copies there by hand."""
    works = report["works"]
    idle = {row["name"]: row for row in works.get("B15-idle", {}).get("summary", [])}
    titles = "".join(f" {title} |" for title in SHORT_WORKS.values())
    lines = [f"| server |{titles} bytes per idle connection |",
             "|---|" + "---|" * (len(SHORT_WORKS) + 1)]
    for name, title in SHORT_ROWS.items():
        cells = ""
        for identity in SHORT_WORKS:
            rows = {row["name"]: row for row in works.get(identity, {}).get("summary", [])}
            median = cell(identity, rows.get(name)).partition(" ")[0].strip("*")
            cells += f" {median} |"
        bytes_each = f"{idle[name]['bytes']:,.0f}" if "bytes" in idle.get(name, {}) else "–"
        lines.append(f"| {title} |{cells} {bytes_each} |")
    return "\n".join(lines)


def verdicts(report):
    """Returns a table with a line for each target of a server in a workload."""
    lines = ["| workload | server or operation | reached | target |", "|---|---|---|---|"]
    for identity, outcome in report["works"].items():
        for row in outcome["summary"]:
            if "verdict" in row and "targets" not in row:
                named = ", ".join(filter(None, (row["name"], row.get("compared"))))
                lines.append(f"| {identity} | {named} | {reached_by(row)} | {row['verdict']} |")
            lines += [f"| {identity} | {target['of']} | {target['reached']} "
                      f"| {target['verdict']} |" for target in row.get("targets", [])]
    return "\n".join(lines)


def reached_by(row):
    spread = row.get("reached") or row.get("ratio") or row.get("share")
    if spread:
        of = f" of {spread['of']}" if "of" in spread else ""
        return f"{spread['median']:.3f} ({spread['low']:.3f}..{spread['high']:.3f}){of}"
    if "bytes" in row:
        return f"{row['bytes']:.0f} bytes"
    calls = [value for key, value in row.items() if "sys_enter" in key]
    return " / ".join(f"{value:.3f}" for value in calls) or "–"


def text(report):
    machine = report["machine"]
    titles = ", ".join(f"{identity}: {report['works'][identity]['title']}" for identity in WORKS
                       if identity in report["works"])
    left_out = "; ".join(f"{name}: {reason}" for name, reason in report["left_out"].items())
    limited = [identity for identity in WORKS
               if report["works"].get(identity, {}).get("share_to") == "limit"]
    of_limits = (f" (at {', '.join(limited)} of the better limit server)" if limited else "")
    parts = [
        f"{machine['date']}, {machine['processor']}, {machine['processors']} processors, Linux "
        f"{machine['kernel']}, commit {machine['commit']}. The measurement had "
        f"{plot.rounds_of(report)}. The servers took turns, and each ran for "
        f"{report['seconds']:g} s per round. Each cell is the median of the requests per second of "
        "the server's CPU time, as a share of the best program in the same round"
        f"{of_limits}. The parentheses have the 95 % interval and the number of rounds. For Weir, "
        "the share is the ratio to the best other server.",
        table(report),
        titles + ".",
        "![The table as bars](shares.svg)",
        "All figures: [bench.md](bench.md).",
        "<details><summary>Targets</summary>\n\n" + verdicts(report) + "\n\n</details>",
    ]
    if left_out:
        parts.append(f"Left out: {left_out}.")
    return "\n\n".join(parts)


def between_markers(page, inserted, begin=BEGIN, end=END):
    """Returns the page with the text between the markers replaced."""
    before, has_begin, rest = page.partition(begin)
    _, has_end, after = rest.partition(end)
    if not has_begin or not has_end:
        raise SystemExit(f"publish: the page lacks the marker {begin} or {end}")
    return f"{before}{begin}\n{inserted}\n{end}{after}"


def missing_results(report):
    """Returns the reasons against publishing a run as a full run."""
    found = []
    for identity in report["sections"]:
        outcome = report["works"].get(identity)
        if outcome is None or outcome["kind"] == "failed":
            found.append(f"{identity} was not measured")
        elif outcome["kind"] == "served":
            with_figure = {row["name"] for row in outcome["summary"] if "figure" in row}
            found += [f"{identity} has no figure of {server.name}" for server in programs.SERVERS
                      if server.joins(identity) and server.name not in with_figure]
            if not any(row.get("kind") == "peer" for row in outcome["summary"]):
                found.append(f"{identity} has no peer")
        elif not outcome["summary"]:
            found.append(f"{identity} was left out")
    return found + untrustworthy(report)


def untrustworthy(report):
    """Returns the reasons against publishing the figures of any run."""
    found = [f"{identity} has errors" for identity, outcome in report["works"].items()
             if outcome.get("errors")]
    if report["runs"] < figures.PAIRS_MIN:
        found.append(f"{report['runs']} rounds, not {figures.PAIRS_MIN}")
    if report["seconds"] < SECONDS_MIN:
        found.append(f"runs of {report['seconds']} s, not {SECONDS_MIN}")
    commit = report["machine"]["commit"]
    if not commit or commit.endswith("-dirty"):
        found.append("its sources are not those of a commit")
    return found


def pages_of(out):
    """Returns {file name: page} of the variants and of a partial run, and the reasons why a partial
    run is left out."""
    pages, left_out = {}, []
    for name in VARIANTS:
        if (out / name / "bench.md").exists():
            pages[f"{name}.md"] = page_of(name, out / name)
    part = out / "part"
    if (part / "bench.json").exists():
        report = json.loads((part / "bench.json").read_text())
        works = "-".join(report["works"])
        if lacking := untrustworthy(report):
            left_out.append(f"{works} alone: {'; '.join(lacking)}")
        else:
            pages[f"only-{works.lower()}.md"] = (part / "bench.md").read_text()
    return pages, left_out


def write_pages(pages, folder):
    """Writes the pages. Returns a line for each published page, also for those of earlier runs."""
    for name, page in pages.items():
        (folder / name).write_text(page)
    lines = []
    for page in sorted(folder.glob("only-*.md")):
        titles = [line.removeprefix("### ") for line in page.read_text().splitlines()
                  if line.startswith("### ")]
        commit = page.read_text().splitlines()[0].rpartition(" ")[2]
        lines.append(f"[{page.name}]({page.name}): a partial run of commit {commit} "
                     f"({'; '.join(titles)}).")
    for name, what in VARIANTS.items():
        if (folder / f"{name}.md").exists():
            lines.append(f"[{name}.md]({name}.md): {what}.")
    return lines


def page_of(name, ran):
    """Returns the page of a run of variants. The page on hardening is computed from the rounds."""
    if name == "hardening":
        return hardening.page(json.loads((ran / "bench.json").read_text()))
    return (ran / "bench.md").read_text()


def publish(out, folder):
    """Writes the pages of the runs in `out`. `folder` has a README.md with the markers."""
    readme = folder / "README.md"
    page = readme.read_text()
    # All checks run before the first file is written.
    pages, left_out = pages_of(out)
    full = out / "bench.json"
    if full.exists():
        report = json.loads(full.read_text())
        if lacking := missing_results(report):
            raise SystemExit(f"publish: not a full run: {'; '.join(lacking)}")
        pages["shares.svg"] = plot.shares(report)
        pages["bench.md"] = (out / "bench.md").read_text()
        page = between_markers(page, text(report))
        print(f"publish: copy this table into README.md, with its date and commit:\n\n"
              f"{short_table(report)}\n")
    for each in left_out:
        print(f"publish: left out: {each}")
    if not pages:
        raise SystemExit("publish: no results (run ./dev bench first)")
    lines = write_pages(pages, folder)
    readme.write_text(between_markers(page, "\n\n".join(lines), PAGES_BEGIN, PAGES_END))


def main():
    parser = argparse.ArgumentParser(prog="./dev bench --publish",
                                     description="Writes the latest full run into docs/bench.")
    parser.add_argument("--out", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    options = parser.parse_args()
    publish(options.out, ROOT / "docs" / "bench")
    print("publish: wrote docs/bench/")
    return 0


if __name__ == "__main__":
    sys.exit(main())
