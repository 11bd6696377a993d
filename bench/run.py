#!/usr/bin/env python3
"""Runs the benchmarks: `./dev bench`.

Each server in turn does each work, again and again (A B C A B C ...), on a processor of its own,
with the load generator on another. The main figure is requests per second of the server's own
processor time, next to how busy it was; ratios are of neighbours in time.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import time

import allocators
import calls
import idle
import inside
import measure
import peers
import plot
import programs
import scaling
import verify
from serving import Failure

KINDS = (measure, scaling, idle, calls, inside)


def say(text):
    print(text, file=sys.stderr, flush=True)


def machine():
    model = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    return {
        "processor": model.group(1) if model else platform.machine(),
        "processors": os.cpu_count(),
        "kernel": platform.release(),
        "date": datetime.date.today().isoformat(),
        "commit": commit(),
    }


def commit():
    """Of the sources, as git abbreviates it; empty where it does not know."""
    folder = pathlib.Path(__file__).parent
    try:
        ran = subprocess.run(["git", "-C", folder, "describe", "--always", "--dirty"],
                             capture_output=True, text=True)
    except OSError:
        return ""
    return ran.stdout.strip()


def parse_arguments():
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--allocators", action="store_true",
                        help="Weir with other allocators preloaded, at B1, B2 and B13")
    parser.add_argument("--only", action="append", default=[], metavar="NAME",
                        help="a work, or a server (a part of its name will do); may be repeated")
    parser.add_argument("--seconds", type=float, default=1, help="of each measurement (1)")
    parser.add_argument("--warm-up", type=float, default=0.3, metavar="SECONDS",
                        help="of load before each (0.3)")
    parser.add_argument("--runs", type=int, default=9, help="of each server and work (9)")
    parser.add_argument("--server-cpu", type=int, default=0, metavar="N")
    parser.add_argument("--load-cpu", type=int, default=1, metavar="N")
    parser.add_argument("--peers", default="all", metavar="all|none|NAME,...",
                        help="others' servers to build and measure (all)")
    parser.add_argument("--list", action="store_true", help="print the names for --only")
    return parser.parse_args()


def chosen(options):
    """The sections to run, with the servers that --only names; all where it names none."""
    every = programs.SERVERS + ([] if options.allocators else programs.peers_called(options.peers))
    known = {section.id for kind in KINDS for section in kind.sections([], options)}
    parts = [name for name in options.only if name not in known]
    servers = [server for server in every
               if not parts or any(part in server.name for part in parts)]
    if options.list or not servers:
        print("works: ", ", ".join(sorted(known)))
        print("servers: ", ", ".join(server.name for server in every))
        raise SystemExit(0 if options.list else f"nothing is called {', '.join(parts)}")
    servers, left_out = peers.prepared(servers, options.build.parent / "bench/peers", say)
    if options.allocators:
        sections = allocators.sections(servers, options, say)
    else:
        sections = [section for kind in KINDS for section in kind.sections(servers, options)]
    wanted = known.intersection(options.only)
    return [section for section in sections if not wanted or section.id in wanted], left_out


def in_minutes(seconds):
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"


def run_all(sections, report, options):
    """Runs the sections, and writes the report after each, so that none is lost."""
    began = time.monotonic()
    left = sum(section.seconds() for section in sections)
    planned = left
    say(f"{len(sections)} works, about {in_minutes(left)}; load {os.getloadavg()[0]:.1f}")
    for number, section in enumerate(sections, 1):
        elapsed = time.monotonic() - began
        pace = elapsed / (planned - left) if planned > left else 1
        say(f"-- {number} of {len(sections)}, {in_minutes(left * pace)} left")
        left -= section.seconds()
        outcome = outcome_of(section)
        report["works"][section.id] = outcome
        print(f"### {section.id}: {outcome['title']}\n\n{outcome['markdown']}\n", flush=True)
        write(report, options.out)
    say(f"took {in_minutes(time.monotonic() - began)}; written to {options.out}")


def outcome_of(section):
    """What a section comes to; one that cannot run is an error of its own, and the others go on."""
    try:
        return section.run(say)
    except (Failure, verify.Flaw, OSError) as reason:
        say(f"  no figure: {reason}")
        return {"title": section.title, "kind": "failed", "summary": [], "errors": 1,
                "markdown": f"No figure: {reason}"}


def write(report, folder):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "bench.json").write_text(json.dumps(report, indent=1))
    text = [f"{report['machine']['processor']}, {report['machine']['processors']} processors, "
            f"Linux {report['machine']['kernel']}, {report['machine']['date']}, "
            f"commit {report['machine']['commit']}\n"]
    text += [f"Without {name}: {reason}.\n" for name, reason in report["left_out"].items()]
    for identity, outcome in report["works"].items():
        text.append(f"### {identity}: {outcome['title']}\n\n{outcome['markdown']}\n")
    (folder / "bench.md").write_text("\n".join(text))
    (folder / "shares.svg").write_text(plot.shares(report))


def main():
    options = parse_arguments()
    usable = os.sched_getaffinity(0)
    if not {options.server_cpu, options.load_cpu} <= usable:
        raise SystemExit(f"needs two processors; this process may use {sorted(usable)}")
    if options.allocators:
        options.out = options.out / "allocators"
    sections, left_out = chosen(options)
    if not sections:
        raise SystemExit("nothing to do")
    report = {"machine": machine(), "seconds": options.seconds, "runs": options.runs,
              "left_out": left_out, "works": {}}
    run_all(sections, report, options)
    errors = {identity: outcome["errors"] for identity, outcome in report["works"].items()
              if outcome["errors"]}
    if errors:
        say(f"errors: {errors}")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
