"""Measures HTTP clients: requests per second of the client's processor time.

Every client sends GET requests over 64 connections to one limit server and verifies the status and
the length of each response. `weir bench` is the limit: it sends prepared bytes and has no pool.
"""

import statistics

import cpu_share
import figures
import peers
import programs
import verify
import works
from serving import Failure, on_processors, output_of, serving

CONNECTIONS = 64
SECONDS_MORE = 1.5  # estimate for starting and ending a server and a client
# Shares of a processor, tried in order until the server keeps the generator busy.
SHARES = (0.9, 0.75, 0.6, 0.45, 0.3)
BUSY_ENOUGH = 0.97
PROBE_SECONDS = 0.5
GENERATOR = "weir bench"
OURS = "weir"
LEAST_OF_GENERATOR = 0.85
LEAST_OF_PEERS = 1
WORK = works.Workload("C1", "", connections=CONNECTIONS)


class Clients:
    """Each client in turn in every round, with the server on the other processor."""

    id = "C1"
    title = f"HTTP clients: GET, {CONNECTIONS} connections, per second of the client's CPU time"

    def __init__(self, options):
        self.options = options
        self.peers = [] if options.peers == "none" else programs.CLIENT_PEERS
        self.share = 1
        self.response_bytes = 0
        self.body_bytes = 0

    def seconds(self):
        each = self.options.seconds + self.options.warm_up + SECONDS_MORE
        return self.options.runs * (each * (2 + len(self.peers))
                                    + sum(peer.warm_up for peer in self.peers))

    def run(self, say):
        ready, left_out = peers.prepared(self.peers, self.options.build.parent / "bench/peers", say)
        model = programs.MODEL.command(self.options.build, WORK, 0)
        with serving(model, [self.options.server_cpu]) as server:
            self.response_bytes = len(verify.response_to(server.port, WORK.request()))
        with serving(self.server(), [self.options.server_cpu]) as server:
            response = verify.response_to(server.port, WORK.request())
            self.body_bytes = len(response.partition(b"\r\n\r\n")[2])
        self.share = self.saturating_share()
        say(f"{self.id}: {self.title}; {100 * self.share:.0f} % of a processor each")
        names = [GENERATOR, OURS, *(peer.name for peer in ready)]
        programs_of = {peer.name: peer for peer in ready}
        rounds = []
        for number in range(self.options.runs):
            turn = number % len(names)
            results = {}
            for name in names[turn:] + names[:turn]:
                results[name] = result = self.measure(name, programs_of.get(name))
                say(f"  {number + 1}/{self.options.runs} {in_a_line(name, result)}")
            rounds.append(results)
        rows = rows_of(rounds, names)
        without = [f"Without {name}: {reason}." for name, reason in left_out.items()]
        return {"title": self.title, "kind": "clients", "summary": rows, "rounds": rounds,
                "share_of_processor": self.share, "left_out": left_out,
                "errors": sum(row["errors"] for row in rows if row["name"] in (GENERATOR, OURS)),
                "markdown": "\n\n".join([table(rows), *without])}

    def server(self):
        """Returns the command of the server that all clients ask."""
        return programs.LIMITS[0].command(self.options.build, WORK, self.response_bytes)

    def saturating_share(self):
        """Returns the largest share of a processor at which the server keeps the generator busy."""
        if not cpu_share.possible():
            return 1
        for share in SHARES:
            look = self.measure(GENERATOR, None, share, PROBE_SECONDS)
            if look.get("busy", 0) >= BUSY_ENOUGH:
                return share
        raise Failure("the server keeps no client busy")

    def measure(self, name, peer, share=None, seconds=None):
        """Returns the numbers of one run of one client."""
        options = self.options
        seconds = seconds or options.seconds
        try:
            with (cpu_share.limited(share or self.share) as (allowed, limit),
                  serving(self.server(), [options.server_cpu]) as running):
                warm_up = options.warm_up + (peer.warm_up / allowed if peer else 0)
                command = self.command(name, peer, running.port, seconds, warm_up)
                said = output_of(on_processors([options.load_cpu], command),
                                 seconds + warm_up + SECONDS_MORE + 60, limit)
                used = numbers_of(name, said)
        except (Failure, KeyError, TypeError) as reason:
            return {"figure": 0, "errors": 1, "reason": str(reason)}
        requests, processor, errors = used
        if not requests or not processor:
            return {"figure": 0, "errors": errors or 1, "reason": "no request was answered"}
        return {"figure": requests / processor, "busy": processor / seconds / allowed,
                "rate": requests / seconds, "errors": errors}

    def command(self, name, peer, port, seconds, warm_up):
        url = f"http://127.0.0.1:{port}/"
        if name == GENERATOR:
            # The shell becomes the generator, so the generator measures its own processor time.
            words = [str(self.options.build / "bin/weir"), "bench", url, "--json", "--abandon",
                     "--connections", str(CONNECTIONS), "--seconds", str(seconds), "--warm-up",
                     str(warm_up)]
            return ["sh", "-c", 'exec "$@" --server-pid $$', "sh", *words]
        program = ([str(self.options.build / "bench/inside/inside_http_client")] if peer is None
                   else [part.format(home=peer.home) for part in peer.program.split()])
        return [*program, url, *map(str, (CONNECTIONS, seconds, warm_up, self.body_bytes))]


def numbers_of(name, said):
    """Returns (requests, seconds of processor time, errors) of a client's JSON."""
    if name == GENERATOR:
        used = said["server"]["responses_per_cpu_second"]
        errors = said["error_count"] + said["starved"]
        return said["responses"], used and said["responses"] / used, errors
    return said["requests"], said["processor_seconds"], said["failures"]


def rows_of(rounds, names):
    """Returns a row of numbers for each client. Weir's row has the verdicts."""
    others = {name for name in names if name not in (GENERATOR, OURS)}
    of_generator = figures.ratios(rounds, names, others={GENERATOR}, judging=True)
    rows = []
    for name in names:
        results = [each[name] for each in rounds if each[name]["figure"]]
        row = {"name": name, "kind": "weir" if name == OURS else "client",
               "errors": sum(each[name]["errors"] for each in rounds)}
        rows.append(row)
        if name == OURS:
            judge(row, of_generator[name], rounds, others)
        if not results:
            continue
        for key in ("figure", "busy", "rate"):
            row[key] = statistics.median(result[key] for result in results)
        if of_generator[name]:
            row["ratio"] = figures.spread(of_generator[name])
    return rows


def judge(row, of_generator, rounds, others):
    """Adds the lines on both targets to Weir's row. A target without ratios is not judged."""
    beside = {name: figures.ratios(rounds, [OURS], others={name}, judging=True)[OURS]
              for name in others}
    nearest = min((name for name, found in beside.items() if found), default="the best peer",
                  key=lambda name: statistics.median(beside[name]))
    for name, found, least in ((GENERATOR, of_generator, LEAST_OF_GENERATOR),
                               (nearest, beside.get(nearest, []), LEAST_OF_PEERS)):
        target = {"of": f"the client of Weir / {name}", "reached": "–"}
        row.setdefault("targets", []).append(target)
        if found:
            spread = figures.spread(found)
            target["reached"] = f"{spread['median']:.2f} ({spread['min']:.2f}..{spread['max']:.2f})"
        if row["errors"]:
            target["verdict"] = "missed: errors"
        elif len(found) < figures.PAIRS_MIN:
            target["verdict"] = f"not judged: saturated in {len(found)} rounds"
        else:
            target["verdict"] = f"{'met' if spread['median'] >= least else 'MISSED'} (≥ {least})"


def in_a_line(name, result):
    if not result["figure"]:
        return f"{name:14} no figure: {result['reason']}"
    errors = f", {result['errors']} ERRORS" if result["errors"] else ""
    return (f"{name:14} {figures.thousands(result['figure']):>8} k per CPU second, "
            f"{100 * result['busy']:5.1f} % busy{errors}")


def table(rows):
    lines = ["| client | k per CPU second | share of weir bench | min..max | busy | k per second "
             "| errors |", "|---|---|---|---|---|---|---|"]
    for row in rows:
        if "figure" not in row:
            lines.append(f"| {row['name']} | no figure | | | | | {row['errors']} |")
            continue
        ratio = row.get("ratio")
        shares = (f"{ratio['median']:.3f} | {ratio['min']:.3f}..{ratio['max']:.3f}" if ratio
                  else "– | –")
        mark = " (waits)" if figures.waited(row) else ""
        lines.append(f"| {row['name']} | {figures.thousands(row['figure'])} | {shares} "
                     f"| {100 * row['busy']:.1f} %{mark} | {figures.thousands(row['rate'])} "
                     f"| {row['errors']} |")
    lines += ["", "| | median (min..max) | target |", "|---|---|---|"]
    lines += [f"| {target['of']} | {target['reached']} | {target['verdict']} |"
              for row in rows for target in row.get("targets", [])]
    return "\n".join(lines)


def sections(_servers, options):
    return [Clients(options)]
