#!/usr/bin/env python3
"""Sends mutated requests to Weir and to other servers, and compares their readings.

reference.py decides which reading is right: it reads the same bytes by the grammar of the RFCs, in
the strict profile. This program fails if Weir differs from the reference. Differences of other
servers are counted by the broken rule: a server takes an invalid request, frames a request
otherwise, or refuses a valid request.
"""

import argparse
import collections
import concurrent.futures
import contextlib
import dataclasses
import json
import os
import pathlib
import subprocess
import sys

import mutate
import peers
import reference
import wire

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT / "tests/data"
FOUND = DATA / "http1-found.json"
KEPT_BYTES_MAX = 700
SERVED = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS")  # by reporter.cpp


@dataclasses.dataclass
class Case:
    name: str
    data: bytes
    reading: reference.Reading


@dataclasses.dataclass(frozen=True)
class Difference:
    """The difference between a server and the reference in one case."""
    kind: str  # "accepts", "frames", "refuses", "silent"
    rule: int  # the broken rule; 0: none
    reason: str


def compare(reading, understood, proxied=False):
    """Returns the Difference between the reference and a server's reading, or None.

    A proxy may change a target, and Weir behind the proxy does not report methods that it does not
    serve.
    """
    requests = reading.requests
    if proxied:
        requests = [each for each in requests if each.method in SERVED]
        understood = [each for each in understood if each.told or each.status not in (405, 501)]
    for index, right in enumerate(requests):
        if index == len(understood):
            return Difference("refuses", 0, "and closes")
        seen = understood[index]
        if not seen.told:
            return Difference("refuses", 0, f"with {seen.status}")
        same = (right.method == seen.method and len(right.body) == seen.body_bytes and
                right.body[:256].hex() == seen.body and
                (proxied or right.target == seen.target))
        if not same:
            return Difference("frames", reading.rule, reading.reason or "another request")
    if any(each.told for each in understood[len(requests):]):
        reason = {"refused": reading.reason, "closed": "a request after the close",
                  "incomplete": "a request that is not whole", "all": "nothing"}[reading.end]
        return Difference("accepts", reading.rule or (10 if reading.end == "closed" else 0), reason)
    return None


def weir_is_wrong(reading, understood):
    """Returns how Weir differs from the reference, or None. Weir answers methods that it does not
    serve with 404, 405 or 501, and OPTIONS * with 204. These count as understood."""
    requests = len(reading.requests)
    for index, right in enumerate(reading.requests):
        if index == len(understood):
            return f"request {index + 1} has no answer"
        seen = understood[index]
        if not seen.told:
            if seen.status not in (204, 404, 405, 501):
                return f"request {index + 1} is answered with {seen.status}"
        elif compare(reference.Reading([right], "all"), [seen]):
            return f"request {index + 1} is understood as {seen}"
    behind = understood[requests:]
    if reading.end == "refused" and [each.status >= 400 for each in behind] != [True]:
        return f"{reading.reason} is answered with {[each.status for each in behind]}"
    if reading.end == "incomplete" and any(each.status < 400 for each in behind):
        return "an incomplete request is answered"
    if reading.end in ("all", "closed") and behind:
        return f"extra answers after the last request: {[each.status for each in behind]}"
    return None


def ask(server, cases):
    """Returns the server's reading of each case: a list of ParsedRequest, or None."""
    made = []
    for case in cases:
        try:
            made.append(wire.send(server.port, case.data))
        except (wire.NoResponse, ConnectionError, ValueError) as trouble:
            print(f"{server.name}: {case.name}: {trouble}", file=sys.stderr)
            made.append(None)
    return made


def start(stack, options):
    """Starts the servers. Returns them, Weir first, and {name: reason} of the absent servers."""
    ours = stack.enter_context(peers.weir(options.weir))
    servers, absent = [ours], {}
    seconds_max = peers.TEST_SECONDS_MAX if options.as_test else peers.BUILD_SECONDS_MAX
    makers = {"node": peers.node, "go": lambda: peers.go(options.build, seconds_max),
              "nginx": lambda: peers.nginx(options.build, ours.port)}
    for name, make in makers.items():
        try:
            servers.append(stack.enter_context(make()))
        except (peers.MissingTool, OSError) as reason:
            absent[name] = str(reason)
    return servers, absent


def differences_of(server, cases, made):
    """Returns [(Case, Difference)] of a peer."""
    found = []
    for case, understood in zip(cases, made):
        if understood is None:
            found.append((case, Difference("silent", 0, "no answer and no end")))
        elif difference := compare(case.reading, understood, proxied=server.name == "nginx"):
            found.append((case, difference))
    return found


def print_differences(found):
    """Prints a table by kind, rule and reason, with the shortest example of each."""
    rows = collections.defaultdict(lambda: (collections.Counter(), []))
    for name, differences in found.items():
        for case, difference in differences:
            counts, examples = rows[difference]
            counts[name] += 1
            examples.append(case.data)
    order = ("accepts", "frames", "silent", "refuses")
    for difference in sorted(rows, key=lambda each: (order.index(each.kind), each.rule,
                                                     each.reason)):
        counts, examples = rows[difference]
        peers_found = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
        rule = f"rule {difference.rule}: " if difference.rule else ""
        print(f"  {difference.kind:8} {rule}{difference.reason} ({peers_found})")
        print(f"           {min(examples, key=len)!r}")


def expectation(reading):
    """Returns the expectation in the format of the files of cases, or None."""
    if reading.rule == 15 or any(each.method not in ("GET", "POST") for each in reading.requests):
        return None
    if reading.requests:
        return {"expect": ["200"],
                "answers": len(reading.requests) + (reading.end == "refused")}
    if reading.end == "refused":
        return {"expect": ["400"], "answers": 1}
    return {"expect": ["wait"], "answers": 0} if reading.end == "incomplete" else None


def keep(found):
    """Adds the shortest case of each new kind to the file of found cases."""
    kept = json.loads(FOUND.read_text()) if FOUND.exists() else []
    known = {case["why"].partition(" (")[0] for case in kept}
    shortest = {}
    for name, differences in found.items():
        for case, difference in differences:
            if difference.kind not in ("accepts", "frames") or len(case.data) > KEPT_BYTES_MAX:
                continue
            if difference.reason in known or expectation(case.reading) is None:
                continue
            best, who = shortest.get(difference.reason, (case, set()))
            best = min(best, case, key=lambda each: len(each.data))
            shortest[difference.reason] = (best, who | {f"{name} {difference.kind} it"})
    for reason, (case, who) in sorted(shortest.items()):
        rule = case.reading.rule or 10
        number = sum(each["id"].startswith(f"found-{rule:02}-") for each in kept) + 1
        kept.append({"id": f"found-{rule:02}-{number:02}", "bytes": case.data.decode("latin-1"),
                     **expectation(case.reading), "why": f"{reason} ({', '.join(sorted(who))})"})
    kept.sort(key=lambda case: case["id"])
    FOUND.write_text(json.dumps(kept, indent=1) + "\n")
    print(f"{len(shortest)} new cases in {FOUND.relative_to(ROOT)}")


def agrees_with_nghttp2(options):
    """Compares ten times as many conversations of HTTP/2, which need no sockets."""
    if options.http2 is None:
        return True
    chosen = {"WEIR_TEST_SEED": str(options.seed),
              "WEIR_DIFFERENTIAL_CASES": str(10 * options.cases)}
    return subprocess.run([options.http2], env={**os.environ, **chosen}).returncode == 0


def run(options):
    known = mutate.known_cases(DATA)
    cases = [Case(name, data, reference.read(data))
             for name, data in mutate.mutated(known, options.seed, options.cases)]
    with contextlib.ExitStack() as stack:
        servers, absent = start(stack, options)
        print(f"seed {options.seed}, {len(cases)} cases; "
              f"{', '.join(server.name for server in servers)}")
        for name, reason in absent.items():
            print(f"without {name}: {reason}")
        with concurrent.futures.ThreadPoolExecutor(len(servers)) as pool:
            made = dict(zip((server.name for server in servers),
                            pool.map(lambda server: ask(server, cases), servers)))
    wrong = 0
    for case, understood in zip(cases, made["weir"]):
        trouble = "silence" if understood is None else weir_is_wrong(case.reading, understood)
        if trouble:
            wrong += 1
            print(f"WEIR DIFFERS: {case.name}: {trouble}\n  {case.data!r}\n  "
                  f"reference: {case.reading}")
    found = {server.name: differences_of(server, cases, made[server.name])
             for server in servers[1:]}
    print_differences(found)
    if options.keep:
        keep(found)
    same = len(cases) - wrong
    print(f"weir: {same} of {len(cases)} cases read as the reference")
    return 0 if agrees_with_nghttp2(options) and wrong == 0 else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--http2", type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build",
                        help=argparse.SUPPRESS)
    parser.add_argument("--as-test", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=1, help="seed of the mutations (default: 1)")
    parser.add_argument("--cases", type=int, default=2000, help="number of cases (default: 2000)")
    parser.add_argument("--keep", action="store_true",
                        help="add a case of each new kind to tests/data/http1-found.json")
    return run(parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
