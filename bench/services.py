"""Workloads of services and events: B9, B11, B12, the growth of an app with its number of services,
and the time to compile a typical file with twenty services."""

import math
import pathlib
import re
import shutil
import subprocess
import time

import figures
from inside import Inside, in_words, judged, published
from serving import Failure

ROOT = pathlib.Path(__file__).resolve().parent.parent


class SectionWithVerdicts(Inside):
    """Programs whose rows have several numbers, some with a target.

    `targets` are (row, number, comparison, bound, unit, digits).
    """

    arguments = ()
    targets = ()

    def rows(self, rounds):
        rows = super().rows(rounds)
        for row in rows:
            row["judged"] = []
            for name, number, sign, bound, unit, digits in self.targets:
                if name != row["name"]:
                    continue
                spread = figures.spread([each[name][number] for each in rounds])
                # Growth of memory in a single round is enough to miss the target.
                value = spread["max"] if unit == "bytes" else spread["median"]
                met = value <= bound if sign == "≤" else value >= bound
                verdict = judged(rounds, met, f"{sign} {bound:g} {unit}".rstrip())
                row["judged"].append({"of": number, "verdict": verdict,
                                      "reached": in_words(spread, digits, f" {unit}".rstrip())})
                published(row, f"{name}, {number}", row["judged"][-1]["reached"], verdict)
        return rows

    def table(self, rows):
        lines = ["| | | reached | target |", "|---|---|---|---|"]
        for row in rows:
            judged_numbers = {each["of"]: each for each in row["judged"]}
            for number in (key for key, value in row.items() if isinstance(value, (int, float))):
                each = judged_numbers.get(number, {"reached": f"{row[number]:,.3g}",
                                                   "verdict": ""})
                lines.append(f"| {row['name']} | {number} | {each['reached']} "
                             f"| {each['verdict']} |")
        return "\n".join(lines)


class Events(SectionWithVerdicts):
    id = "B9"
    title = "5,000,000 events pushed, then drained; an event to one handler on the same core"
    program = "bench/inside/inside_b9"
    round_seconds = 0.5
    targets = (("pushed, then drained", "millions", "≥", 50, "M/s", 1),
               ("pushed, then drained", "bytes each", "≤", 32, "bytes", 1),
               ("to one handler", "one after the other", "≤", 15, "ns", 1),
               ("to one handler", "a thousand at a time", "≤", 15, "ns", 1))


class Services(SectionWithVerdicts):
    id = "B11"
    title = "10,000 services with a logger each, from their registration until all have stopped"
    program = "bench/inside/inside_b11"
    round_seconds = 4
    targets = tuple((name, number, "≤", bound, unit, digits)
                    for name in ("by factory", "by constructor", "with start() and stop()")
                    for number, bound, unit, digits in (("milliseconds", 20, "ms", 2),
                                                        ("bytes each", 512, "bytes", 0)))
    targets += (("growth", "time", "≤", 1.15, "", 3), ("growth", "memory", "≤", 1.02, "", 3))
    company = "eight apps in eight threads"
    most_company = 1.15  # times the share of the processors
    counted = (0, 1_000, 64_000)
    most_instructions = 1.02

    def processors(self):
        return [self.options.server_cpu, self.options.load_cpu]

    def rows(self, rounds):
        rows = super().rows(rounds)
        eight = next((row for row in rows if row["name"] == self.company), None)
        if eight is not None:
            found = [self.beyond(each[self.company]) for each in rounds]
            spread = figures.spread(found)
            verdict = judged(rounds, spread["median"] <= self.most_company,
                             f"≤ {self.most_company}")
            eight["of its share"] = spread["median"]
            eight["judged"].append({"of": "of its share", "verdict": verdict,
                                    "reached": in_words(spread, 2)})
            published(eight, "eight apps / (8 / processors) x one app", in_words(spread, 2),
                      verdict)
        exponent = self.exponent_of_instructions()
        if exponent is not None:
            growth = next(row for row in rows if row["name"] == "growth")
            growth["instructions"] = exponent
            verdict = (f"{'met' if exponent <= self.most_instructions else 'MISSED'} "
                       f"(≤ {self.most_instructions})")  # a count, equal in every round
            growth["judged"].append({"of": "instructions", "verdict": verdict,
                                     "reached": f"{exponent:.4f}"})
            published(growth, "growth, instructions", f"{exponent:.4f}", verdict)
        return rows

    def beyond(self, row):
        """Returns the time of eight apps, relative to eight apps that wait only for processors."""
        return row["milliseconds"] / (row["one"] * 8 / min(8, row["processors"]))

    def exponent_of_instructions(self):
        """Returns the exponent e of instructions ~ services^e, or None without valgrind."""
        if shutil.which("valgrind") is None:
            return None
        nothing, few, many = (self.instructions(count) for count in self.counted)
        return (math.log((many - nothing) / (few - nothing))
                / math.log(self.counted[2] / self.counted[1]))

    def instructions(self, count):
        ran = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
                              str(self.options.build / self.program), "--count", str(count)],
                             capture_output=True, text=True, timeout=600)
        found = re.search(r"Collected : (\d+)", ran.stderr)
        if ran.returncode != 0 or found is None:
            raise Failure(f"callgrind: {ran.stderr.strip()[-400:]}")
        return int(found.group(1))


class Cycles(SectionWithVerdicts):
    id = "B12"
    title = "a provider stopped and started 1,000,000 times, and its dependant with it"
    program = "bench/inside/inside_b12"
    round_seconds = 1
    targets = tuple((name, number, sign, bound, unit, digits)
                    for name in ("by constructor", "by factory")
                    for number, sign, bound, unit, digits in (("millions", "≥", 3, "M/s", 2),
                                                              ("grown bytes", "≤", 0, "bytes", 0)))


class Compiling(SectionWithVerdicts):
    """Compiles a typical user's file, without a precompiled header and without a cache."""

    id = "compiling"
    title = "a file with twenty services, compiled by clang at -O1"
    round_seconds = 6
    source = ROOT / "bench/inside/twenty_services.cpp"
    compiler = "clang++-19"
    targets = (("twenty services", "seconds", "≤", 5, "s", 2),)

    def rounds(self):
        if shutil.which(self.compiler) is None:
            raise Failure(f"{self.compiler} is not installed")
        return [{"twenty services": {"seconds": self.seconds_of(self.source)}}
                for _ in range(self.options.runs)]

    def seconds_of(self, source):
        begun = time.monotonic()
        ran = subprocess.run([self.compiler, "-std=c++23", "-O1", f"-I{ROOT}", "-c", str(source),
                              "-o", "/dev/null"], capture_output=True, text=True, timeout=300)
        if ran.returncode != 0:
            raise Failure(f"{source.name}: {ran.stderr.strip()[:400]}")
        return time.monotonic() - begun


def sections(_servers, options):
    return [Events(options), Services(options), Cycles(options), Compiling(options)]
