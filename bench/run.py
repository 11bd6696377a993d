#!/usr/bin/env python3
"""Runs the benchmarks: `./dev bench`.

Measures each workload on each server in turn, round by round (A B C A B C ...). The server has one
processor, and the load generator has another. The main figure is requests per second of the
server's processor time, with the server's utilisation. Ratios compare neighbours in time.
"""

import argparse
import datetime
import json
import math
import os
import pathlib
import platform
import re
import subprocess
import sys
import time
import traceback

import allocators
import calls
import clients
import figures
import hardening
import http2
import idle
import inside
import measure
import peers
import plot
import programs
import scaling
import services
import tls
import tls_live
import verify
import web
from serving import Failure

KINDS = (measure, scaling, idle, calls, clients, inside, services, tls, tls_live,
         http2, web)
# These need no peer among the servers.
WITHOUT_PEERS = (scaling, clients, inside, services, tls_live, web)


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
    """Returns the abbreviated commit of the sources; empty if git does not know it."""
    folder = pathlib.Path(__file__).parent
    try:
        ran = subprocess.run(["git", "-C", folder, "describe", "--always", "--dirty"],
                             capture_output=True, text=True)
    except OSError:
        return ""
    return ran.stdout.strip()


def positive(text):
    value = float(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError("must be more than 0")
    return value


def not_negative(text):
    value = float(text)
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError("must be 0 or more")
    return value


def at_least_one(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return value


def parse_arguments():
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__.splitlines()[0],
                                     allow_abbrev=False)
    parser.add_argument("--build", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--allocators", action="store_true",
                        help="Weir with other allocators preloaded, at B1, B2, B13 and B15")
    parser.add_argument("--hardening", action="store_true",
                        help="Weir with and without hardening, at B1 and B2, with instructions")
    parser.add_argument("--plain", type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--only", action="append", default=[], metavar="NAME",
                        help="a work, a server, or a part of a server's name between hyphens; may "
                             "be repeated")
    parser.add_argument("--seconds", type=positive, default=1,
                        help="duration of each measurement (1)")
    parser.add_argument("--warm-up", type=not_negative, default=0.3, metavar="SECONDS",
                        help="load before each measurement (0.3)")
    parser.add_argument("--runs", type=at_least_one, default=9,
                        help="rounds of each server and work (9)")
    parser.add_argument("--server-cpu", type=int, default=0, metavar="N")
    parser.add_argument("--load-cpu", type=int, default=1, metavar="N")
    parser.add_argument("--peers", default="all", metavar="all|none|NAME,...",
                        help="peers to build and measure (all)")
    parser.add_argument("--plan", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--list", action="store_true", help="print the names for --only")
    return parser.parse_args()


def every_section(options, kinds=KINDS):
    """Returns the names of all sections of these kinds."""
    return [section.id for kind in kinds for section in kind.sections([], options)]


def variants_of(options):
    """Returns the module whose variants of Weir are compared; None in an ordinary run."""
    if options.hardening:
        return hardening
    return allocators if options.allocators else None


def named(options):
    """Returns (names of sections, servers) to run: those that --only names, or all."""
    own = variants_of(options)
    every = programs.SERVERS + ([] if own else programs.peers_called(options.peers))
    known = list(own.IDS) if own else every_section(options)
    parts = [name for name in options.only if name not in known]
    unknown = [part for part in parts if not any(is_called(server, part) for server in every)]
    if options.list or unknown:
        output = sys.stdout if options.list else sys.stderr
        print("works: ", ", ".join(sorted(known)), file=output)
        print("servers: ", ", ".join(server.name for server in every), file=output)
        raise SystemExit(0 if options.list else f"unknown name: {', '.join(unknown)}")
    servers = [server for server in every
               if not parts or any(is_called(server, part) for part in parts)]
    identities = [identity for identity in known if identity in options.only] or known
    if set(identities) <= set(every_section(options, WITHOUT_PEERS)):
        servers = [server for server in servers if server.kind != "peer"]
    return identities, servers


def is_called(server, part):
    """Returns true if `part` is the name or a part between hyphens: `uring`, `weir`, `net-http`."""
    return f"-{part}-" in f"-{server.name}-"


def chosen(options, identities, servers):
    """Builds the peers. Returns the sections to run, and {peer: reason} of the left out peers."""
    servers, left_out = peers.prepared(servers, options.build.parent / "bench/peers", say)
    if options.hardening:
        sections = hardening.sections(servers, options)
    elif options.allocators:
        sections = allocators.sections(servers, options, left_out)
    else:
        sections = [section for kind in KINDS for section in kind.sections(servers, options)]
    return [section for section in sections if section.id in identities], left_out


def is_full(options):
    """Returns true if this run measures everything. Only such a run is published as a full run."""
    return not options.only and (options.peers == "all" or variants_of(options) is not None)


def in_minutes(seconds):
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"


def run_all(sections, report, options):
    """Runs the sections. Writes the report after each section, so that no result is lost."""
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
    """Returns the outcome of a section. A section that fails is an error, and the others go on."""
    try:
        return section.run(say)
    except (Failure, verify.VerificationError, OSError, ArithmeticError, LookupError,
            ValueError) as reason:
        if not isinstance(reason, (Failure, verify.VerificationError, OSError)):
            traceback.print_exc()  # a bug of this section; the other sections go on
        say(f"  no figure: {reason}")
        return {"title": section.title, "kind": "failed", "summary": [], "errors": 1,
                "markdown": f"No figure: {reason}"}


def write(report, folder):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "bench.json").write_text(json.dumps(report, indent=1))
    text = [f"{figures.provenance(report)}\n"]
    text += [f"Without {name}: {reason}.\n" for name, reason in report["left_out"].items()]
    for identity, outcome in report["works"].items():
        text.append(f"### {identity}: {outcome['title']}\n\n{outcome['markdown']}\n")
    (folder / "bench.md").write_text("\n".join(text))
    (folder / "shares.svg").write_text(plot.shares(report))


def main():
    options = parse_arguments()
    usable = os.sched_getaffinity(0)
    if options.list:
        named(options)
    wanted = {options.server_cpu, options.load_cpu}
    if len(wanted) < 2 or not wanted <= usable:
        raise SystemExit(f"two processors are needed; this process may use {sorted(usable)}")
    identities, servers = named(options)
    if options.plan:
        print("peers" if any(server.kind == "peer" for server in servers) else "ours")
        return 0
    if own := variants_of(options):
        options.out = options.out / own.__name__
    if not is_full(options):
        options.out = options.out / "part"
    sections, left_out = chosen(options, identities, servers)
    if not sections:
        raise SystemExit("nothing to do")
    report = {"machine": machine(), "seconds": options.seconds, "runs": options.runs,
              "sections": every_section(options), "left_out": left_out, "works": {}}
    run_all(sections, report, options)
    errors = {identity: outcome["errors"] for identity, outcome in report["works"].items()
              if outcome["errors"]}
    if errors:
        say(f"errors: {errors}")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
