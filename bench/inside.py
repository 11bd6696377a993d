"""Workloads inside one process: the radix tree, JSON, coroutines, synchronisation, timers, hops to
a pool, hops and messages between loops, datagrams. Each program runs its rounds alone, measures all
candidates in each round, and prints one line of JSON per round."""

import json
import statistics
import subprocess

import figures
from serving import Failure, on_processors

SECONDS_MAX = 1800


class Inside:
    """One program of bench/inside/."""

    def __init__(self, options):
        self.options = options

    def seconds(self):
        return self.round_seconds * self.options.runs

    def run(self, say):
        say(f"{self.id}: {self.title}")
        try:
            rounds = self.rounds()
            rows = self.rows(rounds)
        except Failure as reason:
            say(f"  no figure: {reason}")
            return {"title": self.title, "kind": "inside", "summary": [], "errors": 1,
                    "markdown": f"No figure: {reason}"}
        return {"title": self.title, "kind": "inside", "summary": rows, "rounds": rounds,
                "errors": 0, "markdown": self.table(rows)}

    def rounds(self):
        command = [str(self.options.build / self.program), str(self.options.runs), *self.arguments]
        try:
            ran = subprocess.run(on_processors(self.processors(), command), capture_output=True,
                                 text=True, timeout=SECONDS_MAX)
        except subprocess.TimeoutExpired:
            raise Failure(f"{self.program} did not end in time") from None
        if ran.returncode != 0:
            raise Failure(f"{self.program}: {ran.stderr.strip()}")
        try:
            rounds = [json.loads(line) for line in ran.stdout.splitlines()]
        except ValueError as reason:
            raise Failure(f"{self.program}: prints no JSON: {reason}") from None
        if len(rounds) != self.options.runs:
            raise Failure(f"{self.program}: {len(rounds)} of {self.options.runs} rounds")
        return rounds

    def rows(self, rounds):
        return [{"name": name, "kind": "inside",
                 **{key: statistics.median(each[name][key] for each in rounds)
                    for key in rounds[0][name]}}
                for name in rounds[0]]

    def processors(self):
        return [self.options.server_cpu]


def judged(rounds, met, target):
    """Returns the verdict on a median. Needs at least PAIRS_MIN rounds."""
    if len(rounds) < figures.PAIRS_MIN:
        return f"not judged: {len(rounds)} rounds"
    return f"{'met' if met else 'MISSED'} ({target})"


def verdict(found, target):
    """Returns the verdict on paired ratios, whose median must be at least the target."""
    return judged(found, statistics.median(found) >= target, f"≥ {target:g}")


def published(row, of, reached, verdict):
    """Adds a line on a target to the row, for docs/bench."""
    row.setdefault("targets", []).append({"of": of, "reached": reached, "verdict": verdict})


def in_words(spread, digits, unit=""):
    return (f"{spread['median']:,.{digits}f}{unit} ({spread['low']:,.{digits}f}.."
            f"{spread['high']:,.{digits}f})")


class RadixTree(Inside):
    id = "B5"
    title = "radix tree, 1,600,000 keys: ns per operation, and bytes per key"
    program = "bench/inside/inside_radix_tree"
    arguments = ()
    round_seconds = 13
    operations = ("insert", "hit", "miss", "walk", "remove", "bytes")
    targets = {"std::map": dict.fromkeys(operations, 1),
               "std::unordered_map": {"hit": 1, "miss": 0.6}}

    def rows(self, rounds):
        rows = super().rows(rounds)
        if len({each[row["name"]]["sum"] for row in rows for each in rounds}) != 1:
            raise Failure("the containers have not walked in the same order")
        for row in rows:
            row["ratios"] = {}
            if row["name"] == "weir::RadixTree":
                continue
            for operation in self.operations:
                found = [each[row["name"]][operation] / each["weir::RadixTree"][operation]
                         for each in rounds]
                row["ratios"][operation] = figures.spread(found)
                target = self.targets[row["name"]].get(operation)
                if target is not None:
                    ratio = row["ratios"][operation]
                    ratio["verdict"] = verdict(found, target)
                    published(row, f"{operation}, {row['name']} / weir", in_words(ratio, 2),
                              ratio["verdict"])
        return rows

    def table(self, rows):
        head = "".join(f" {operation} |" for operation in self.operations)
        lines = [f"| |{head}", "|---|" + "---|" * len(self.operations)]
        for row in rows:
            cells = "".join(f" {row[operation]:.0f} |" for operation in self.operations)
            lines.append(f"| {row['name']} |{cells}")
        for row in rows:
            if not row["ratios"]:
                continue
            cells = ""
            for operation in self.operations:
                ratio = row["ratios"][operation]
                cells += (f" {ratio['median']:.2f} ({ratio['low']:.2f}..{ratio['high']:.2f}) "
                          f"{ratio.get('verdict', '')} |")
            lines.append(f"| {row['name']} / weir |{cells}")
        return "\n".join(lines)


class OneFigure(Inside):
    """Programs that print one number for each row. The first row has the target."""

    arguments = ()

    def rows(self, rounds):
        rows = super().rows(rounds)
        for row in rows:
            row |= figures.spread([each[row["name"]][self.key] for each in rounds])
        first = rows[0]
        first["verdict"] = judged(rounds, self.met(first["median"]), self.target)
        published(first, first["name"], in_words(first, 1, f" {self.unit}"), first["verdict"])
        return rows

    def table(self, rows):
        lines = [f"| | {self.unit} | min..max | target |", "|---|---|---|---|"]
        for row in rows:
            lines.append(f"| {row['name']} | {row['median']:.1f} "
                         f"| {row['min']:.1f}..{row['max']:.1f} | {row.get('verdict', '')} |")
        return "\n".join(lines)


class Tasks(OneFigure):
    id = "task"
    title = "a Task created, run and destroyed: ns, beside a bare coroutine handle"
    program = "bench/inside/inside_task"
    round_seconds = 0.1
    key = "all"
    unit = "ns"
    target = "≤ 15 ns"

    @staticmethod
    def met(median):
        return median <= 15


class Json(OneFigure):
    id = "B10"
    title = 'JSON round trip, {"id":20,"val":"five hundred"}, one thread: millions per second'
    program = "bench/inside/inside_json"
    round_seconds = 1.5
    key = "millions"
    unit = "M/s"
    target = "≥ 10"

    @staticmethod
    def met(median):
        return median >= 10


class PoolHops(Inside):
    id = "pool-hop"
    title = "a no-op call in a thread pool and back to the loop: ns"
    program = "bench/inside/inside_pool_hop"
    arguments = ()
    round_seconds = 2.5
    kinds = ("one", "sixty-four")
    judged_rows = ("Weir", "Weir, epoll")

    def processors(self):
        return [self.options.server_cpu, self.options.load_cpu]

    def rows(self, rounds):
        rows = super().rows(rounds)
        others = [row["name"] for row in rows if not row["name"].startswith("Weir")]
        for row in rows:
            row["beside"] = {}
            for other in others if row["name"] in self.judged_rows else ():
                row["beside"][other] = {}
                for kind in self.kinds:
                    found = [each[other][kind] / each[row["name"]][kind] for each in rounds]
                    ratio = figures.spread(found)
                    ratio["verdict"] = verdict(found, 1)
                    row["beside"][other][kind] = ratio
                    published(row, f"{other} / {row['name']}, {kind} at a time",
                              in_words(ratio, 2), ratio["verdict"])
        return rows

    def table(self, rows):
        lines = ["| | one at a time | sixty-four at a time |", "|---|---|---|"]
        lines += [f"| {row['name']} | {row['one']:,.0f} | {row['sixty-four']:,.0f} |"
                  for row in rows]
        for row in rows:
            for other, ratios in row["beside"].items():
                cells = "".join(f" {in_words(ratios[kind], 2)} {ratios[kind]['verdict']} |"
                                for kind in self.kinds)
                lines.append(f"| {other} / {row['name']} |{cells}")
        return "\n".join(lines)


class Coroutines(Inside):
    id = "B8"
    title = "a coroutine waits on an event, a queued one sets it: millions per second and core"
    program = "bench/inside/inside_b8"
    arguments = ()
    round_seconds = 2.5
    least_millions = 30
    least_ratio = 0.5
    most_grown_kib = 64  # against 5,000,000 frames of at least 100 bytes

    def processors(self):
        return [self.options.server_cpu, self.options.load_cpu]

    def rows(self, rounds):
        rows = super().rows(rounds)
        bare = [row["name"] for row in rows if not row["name"].startswith("Weir")]
        for row in rows:
            name = row["name"]
            row |= figures.spread([each[name]["millions"] for each in rounds])
            row["peak KiB"] = max(each[name]["peak KiB"] for each in rounds)
            # Growth in a single round is enough to miss the target.
            row["grown KiB"] = max(each[name]["grown KiB"] for each in rounds)
            if name in bare:
                continue
            row["verdict"] = judged(rounds, row["median"] >= self.least_millions,
                                    f"≥ {self.least_millions}")
            published(row, name, in_words(row, 1, " M/s"), row["verdict"])
            row["beside"] = {}
            for other in bare:
                found = [each[name]["millions"] / each[other]["millions"] for each in rounds]
                ratio = row["beside"][other] = figures.spread(found)
                ratio["verdict"] = verdict(found, self.least_ratio)
                published(row, f"{name} / {other}", in_words(ratio, 2), ratio["verdict"])
            row["flat"] = judged(rounds, row["grown KiB"] <= self.most_grown_kib,
                                 f"≤ {self.most_grown_kib} KiB")
            published(row, f"{name}, growth of its memory", f"{row['grown KiB']:,.0f} KiB",
                      row["flat"])
        return rows

    def table(self, rows):
        lines = ["| | cores | millions a second, each | target | peak KiB | grown KiB | target |",
                 "|---|---|---|---|---|---|---|"]
        for row in rows:
            lines.append(f"| {row['name']} | {row['cores']:.0f} | {in_words(row, 1)} "
                         f"| {row.get('verdict', '')} | {row['peak KiB']:,.0f} "
                         f"| {row['grown KiB']:,.0f} | {row.get('flat', '')} |")
        for row in rows:
            for other, ratio in row.get("beside", {}).items():
                lines.append(f"| {row['name']} / {other} | | {in_words(ratio, 2)} "
                             f"| {ratio['verdict']} | | | |")
        return "\n".join(lines)


class Uncontended(Inside):
    id = "uncontended"
    title = "an uncontended mutex, semaphore and channel: ns per operation"
    program = "bench/inside/inside_uncontended"
    arguments = ()
    round_seconds = 0.4
    most = 10

    def rows(self, rounds):
        rows = super().rows(rounds)
        for row in rows:
            row |= figures.spread([each[row["name"]]["each"] for each in rounds])
            if not row["name"].startswith("std::"):
                row["verdict"] = judged(rounds, row["median"] <= self.most, f"≤ {self.most} ns")
                published(row, row["name"], in_words(row, 1, " ns"), row["verdict"])
        return rows

    def table(self, rows):
        lines = ["| | ns | target |", "|---|---|---|"]
        lines += [f"| {row['name']} | {in_words(row, 1)} | {row.get('verdict', '')} |"
                  for row in rows]
        return "\n".join(lines)


class Metrics(Inside):
    id = "metrics"
    title = "a counter or a histogram, on one thread and on two at once: ns per measurement"
    program = "bench/inside/inside_metrics"
    arguments = ()
    round_seconds = 4
    parts = ("alone", "together")
    most = 5
    peer = "prometheus-cpp, "

    def processors(self):
        return [self.options.server_cpu, self.options.load_cpu]

    def rows(self, rounds):
        rows = super().rows(rounds)
        for row in rows:
            row |= figures.spread([each[row["name"]]["alone"] for each in rounds])
            row["beside"] = {}
            beside = self.peer + row["name"].removeprefix("Weir, ")
            if row["name"].startswith("Weir, ") and beside in rounds[0]:
                for part in self.parts:
                    found = [each[beside][part] / each[row["name"]][part] for each in rounds]
                    ratio = row["beside"][part] = figures.spread(found)
                    ratio["verdict"] = verdict(found, 1)
                    published(row, f"{beside} / Weir, {part}", in_words(ratio, 2),
                              ratio["verdict"])
        rows[0]["verdict"] = judged(rounds, rows[0]["median"] <= self.most, f"≤ {self.most} ns")
        published(rows[0], rows[0]["name"], in_words(rows[0], 1, " ns"), rows[0]["verdict"])
        return rows

    def table(self, rows):
        lines = ["| | alone | two threads | target | prometheus-cpp / Weir, alone | two threads |",
                 "|---|---|---|---|---|---|"]
        for row in rows:
            ratios = [f"{in_words(row['beside'][part], 1)} {row['beside'][part]['verdict']}"
                      if part in row["beside"] else "" for part in self.parts]
            lines.append(f"| {row['name']} | {in_words(row, 1)} | {row['together']:.1f} "
                         f"| {row.get('verdict', '')} | {ratios[0]} | {ratios[1]} |")
        return "\n".join(lines)


class Timers(Inside):
    id = "timers"
    title = "a million timers started, half cancelled, the rest fired: ns per timer"
    program = "bench/inside/inside_timers"
    arguments = ()
    round_seconds = 3
    most = 100
    parts = ("start", "cancel", "fire")

    def rows(self, rounds):
        rows = super().rows(rounds)
        for row in rows:
            row |= figures.spread([each[row["name"]]["all"] for each in rounds])
        rows[0]["verdict"] = judged(rounds, rows[0]["median"] <= self.most, f"≤ {self.most} ns")
        published(rows[0], rows[0]["name"], in_words(rows[0], 1, " ns"), rows[0]["verdict"])
        return rows

    def table(self, rows):
        head = "".join(f" {part} |" for part in self.parts)
        lines = [f"| |{head} all | target |", "|---|" + "---|" * (len(self.parts) + 2)]
        for row in rows:
            cells = "".join(f" {row[part]:.1f} |" for part in self.parts)
            lines.append(f"| {row['name']} |{cells} {in_words(row, 1)} "
                         f"| {row.get('verdict', '')} |")
        return "\n".join(lines)


class BetweenCores(Inside):
    """A program that uses two processors and one backend."""

    def __init__(self, options, backend):
        super().__init__(options)
        self.id = f"{self.name}-{backend}"
        self.title = f"{self.what} on {backend}: {self.unit}"
        self.arguments = (backend,)

    def processors(self):
        return [self.options.server_cpu, self.options.load_cpu]


class Hops(BetweenCores):
    name = "hop"
    what = "a hop between two loops"
    unit = "ns"
    program = "bench/inside/inside_hop"
    round_seconds = 0.6
    most = 1000

    def rows(self, rounds):
        rows = super().rows(rounds)
        for row in rows:
            if row["name"] == "loop that is awake":
                row["verdict"] = judged(rounds, row["there and back"] <= self.most,
                                        f"≤ {self.most:,} ns")
                back = figures.spread([each[row["name"]]["there and back"] for each in rounds])
                published(row, f"{row['name']}, there and back", in_words(back, 0, " ns"),
                          row["verdict"])
        return rows

    def table(self, rows):
        lines = ["| | one way | there and back | target |", "|---|---|---|---|"]
        for row in rows:
            lines.append(f"| {row['name']} | {row['one way']:,.0f} "
                         f"| {row['there and back']:,.0f} | {row.get('verdict', '')} |")
        return "\n".join(lines)


class Messages(BetweenCores):
    name = "messages"
    what = "messages from one core to another"
    unit = "millions a second, one way"
    program = "bench/inside/inside_messages"
    round_seconds = 1
    baseline = "an eventfd for each message"
    figure = "millions a second"
    least_millions = 10
    least_ratio = 5

    def rows(self, rounds):
        rows = super().rows(rounds)
        for row in rows:
            row |= figures.spread([each[row["name"]][self.figure] for each in rounds])
            if row["name"] == self.baseline:
                continue
            ratios = [each[row["name"]][self.figure] / each[self.baseline][self.figure]
                      for each in rounds]
            row["ratio"] = figures.spread(ratios)
            row["ratio"]["verdict"] = verdict(ratios, self.least_ratio)
            row["verdict"] = judged(rounds, row["median"] >= self.least_millions,
                                    f"≥ {self.least_millions}")
            published(row, row["name"], in_words(row, 1, " M/s"), row["verdict"])
            published(row, f"{row['name']} / {self.baseline}", in_words(row["ratio"], 1),
                      row["ratio"]["verdict"])
        return rows

    def table(self, rows):
        lines = ["| | millions a second | target | wakes a million "
                 "| times the eventfd's | target |", "|---|---|---|---|---|---|"]
        for row in rows:
            ratio = row.get("ratio")
            beside = (f" {ratio['median']:.1f} ({ratio['low']:.1f}..{ratio['high']:.1f}) "
                      f"| {ratio['verdict']} |" if ratio else " | |")
            lines.append(f"| {row['name']} | {row['median']:.2f} ({row['min']:.2f}.."
                         f"{row['max']:.2f}) | {row.get('verdict', '')} "
                         f"| {row['wakes a million']:,.0f} |{beside}")
        return "\n".join(lines)


class Datagrams(BetweenCores):
    name = "udp"
    what = "datagrams of 64 bytes sent back by one core"
    unit = "millions a second"
    program = "bench/inside/inside_datagrams"
    round_seconds = 14
    figures_of = ("one peer", "16 peers", "one peer, as one")
    baselines = {"weir, joined by the kernel": "epoll, recvmmsg and sendmmsg",
                 "weir, many at once": "epoll, recvmmsg and sendmmsg",
                 "weir, one by one": "epoll, recvfrom and sendto"}
    least_ratio = 0.95

    def rows(self, rounds):
        rows = super().rows(rounds)
        for row in rows:
            baseline = self.baselines.get(row["name"])
            row["ratios"] = {}
            for figure in self.figures_of if baseline else ():
                found = [each[row["name"]][figure] / each[baseline][figure] for each in rounds]
                row["ratios"][figure] = (figures.spread(found)
                                         | {"verdict": verdict(found, self.least_ratio)})
        return rows

    def table(self, rows):
        head = "".join(f" {figure} | times the plain loop's |" for figure in self.figures_of)
        lines = [f"| |{head}", "|---|" + "---|" * 2 * len(self.figures_of)]
        for row in rows:
            cells = ""
            for figure in self.figures_of:
                ratio = row["ratios"].get(figure)
                beside = (f"{ratio['median']:.2f} ({ratio['low']:.2f}..{ratio['high']:.2f}) "
                          f"{ratio['verdict']}" if ratio else "")
                cells += f" {row[figure]:.2f} | {beside} |"
            lines.append(f"| {row['name']} |{cells}")
        return "\n".join(lines)


def sections(_servers, options):
    return [RadixTree(options), Json(options), Coroutines(options), Tasks(options),
            Uncontended(options), Metrics(options), Timers(options), PoolHops(options),
            Hops(options, "uring"), Hops(options, "epoll"),
            Messages(options, "uring"), Messages(options, "epoll"),
            Datagrams(options, "uring"), Datagrams(options, "epoll"), Datagrams(options, "poll")]
