"""Servers that take turns at one work, and the ratios of Weir to each of the others. The works of
web.py are contests: each has its own servers and its own load."""

import contextlib
import dataclasses
import pathlib
import statistics
import tempfile

import cpu_share
import figures
import peers
from serving import Failure, serving

SECONDS_MORE = 2  # of a round: the start and the end of a server
JUDGED = ("weir", "limit")  # kinds whose errors count


@dataclasses.dataclass(frozen=True)
class Entry:
    """A program that takes part. It listens on a free port of 127.0.0.1 and prints the port."""

    name: str
    kind: str  # "limit", "weir", "peer" or "anchor"
    command: tuple = ()  # may contain {build}, {place} and, for a peer of peers/, {home}
    peer: object = None  # the programs.Peer that is built for it
    runs: float = 1  # the share of rounds in which it takes part

    def words(self, build, place):
        home = self.peer.home if self.peer else ""
        return [str(part).format(build=build, place=place, home=home) for part in self.command]


@dataclasses.dataclass(frozen=True)
class Target:
    """The least median ratio of Weir to an entry, or to the best one of a kind."""

    of: str
    least: float


class Contest:
    """One work. Subclasses have its entries, and the load of one round."""

    unit = "requests"
    targets = ()
    share = 1  # of a processor for each server, so that the load saturates all of them

    def __init__(self, identity, title, options):
        self.id = identity
        self.title = title
        self.options = options

    def entries(self):
        raise NotImplementedError

    def prepare(self, place):
        """Writes what the servers need into a folder. It is a context of all rounds."""
        del place
        return contextlib.nullcontext()

    def load(self, entry, running):
        """Returns (units of work, seconds, seconds of the server's CPU time) of one round."""
        raise NotImplementedError

    def measure(self, entry, place):
        """Returns the numbers of one round of one entry."""
        try:
            command = entry.words(self.options.build, place)
            with (cpu_share.limited(self.share) as (allowed, limit),
                  serving(command, [self.options.server_cpu]) as running):
                for process in running.processes():
                    limit(process)
                work, seconds, used = self.load(entry, running)
        except Failure as reason:
            return {"figure": 0, "errors": 1, "reason": str(reason)}
        if not work or not used:
            return {"figure": 0, "errors": 1, "reason": "nothing was done"}
        return {"figure": work / used, "rate": work / seconds,
                "busy": used / seconds / allowed, "errors": 0}

    def seconds(self):
        each = self.options.seconds + self.options.warm_up + SECONDS_MORE
        return self.options.runs * each * len(self.entries())

    def run(self, say):
        say(f"{self.id}: {self.title}")
        entries, left_out = self.prepared(say)
        rounds = []
        with tempfile.TemporaryDirectory(prefix="weir-bench-") as folder:
            with self.prepare(pathlib.Path(folder)):
                for number in range(self.options.runs):
                    turn = number % len(entries)
                    results = {}
                    for entry in entries[turn:] + entries[:turn]:
                        results[entry.name] = result = self.measure(entry, folder)
                        say(f"  {number + 1}/{self.options.runs} {self.in_a_line(entry, result)}")
                    rounds.append(results)
        rows = [self.row(entry, rounds, entries) for entry in entries]
        without = [f"Without {name}: {reason}." for name, reason in left_out.items()]
        return {"title": self.title, "kind": "contest", "summary": rows, "rounds": rounds,
                "left_out": left_out,
                "errors": sum(row["errors"] for row in rows if row["kind"] in JUDGED),
                "markdown": "\n\n".join([self.table(rows), *without])}

    def prepared(self, say):
        """Builds the peers of peers/. Returns the entries that can start, and why others cannot."""
        entries = [each for each in self.entries()
                   if each.kind != "peer" or self.options.peers != "none"]
        wanted = [each.peer for each in entries if each.peer]
        ready, left_out = peers.prepared(wanted, self.options.build.parent / "bench/peers", say)
        built = {peer.name: peer for peer in ready}
        return [dataclasses.replace(each, peer=built.get(each.name)) for each in entries
                if not each.peer or each.name in built], left_out

    def row(self, entry, rounds, entries):
        results = [each[entry.name] for each in rounds]
        row = {"name": entry.name, "kind": entry.kind,
               "errors": sum(each["errors"] for each in results), "targets": []}
        results = [each for each in results if each["figure"]]
        if results:
            found = [each["figure"] for each in results]
            row |= {"figure": statistics.median(found), "figure_min": min(found),
                    "figure_max": max(found)}
            for key in ("rate", "busy"):
                row[key] = statistics.median(each[key] for each in results)
        if entry.kind == "weir":
            row["targets"] = [self.reached(entry, target, rounds, entries)
                              for target in self.targets]
        return row

    def reached(self, entry, target, rounds, entries):
        """Returns the line of a target of Weir."""
        others = {each.name for each in entries if target.of in (each.name, each.kind)}
        pairs = []
        for each in rounds:
            best = max((each[name]["figure"] for name in others), default=0)
            if best and each[entry.name]["figure"]:
                pairs.append(each[entry.name]["figure"] / best)
        line = {"of": f"{entry.name} / {target.of}", "reached": "–"}
        if pairs:
            spread = figures.spread(pairs)
            line["reached"] = f"{spread['median']:.2f} ({spread['min']:.2f}..{spread['max']:.2f})"
        if len(pairs) < figures.PAIRS_MIN:
            line["verdict"] = f"not judged: {len(pairs)} rounds"
        else:
            met = spread["median"] >= target.least
            line["verdict"] = f"{'met' if met else 'MISSED'} (≥ {target.least})"
        return line

    def in_a_line(self, entry, result):
        if not result["figure"]:
            return f"{entry.name:16} no figure: {result['reason']}"
        return (f"{entry.name:16} {result['figure']:12,.0f} {self.unit} per CPU second, "
                f"{100 * result['busy']:5.1f} % busy")

    def table(self, rows):
        lines = [f"| server | {self.unit} per CPU second | min..max | busy | per second | errors |",
                 "|---|---|---|---|---|---|"]
        for row in rows:
            if "figure" not in row:
                lines.append(f"| {row['name']} | no figure | | | | {row['errors']} |")
                continue
            lines.append(f"| {row['name']} | {row['figure']:,.0f} | {row['figure_min']:,.0f}.."
                         f"{row['figure_max']:,.0f} | {100 * row['busy']:.0f} % "
                         f"| {row['rate']:,.0f} | {row['errors']} |")
        lines += ["", "| | median (min..max) | target |", "|---|---|---|"]
        lines += [f"| {target['of']} | {target['reached']} | {target['verdict']} |"
                  for row in rows for target in row["targets"]]
        return "\n".join(lines)
