"""Draws makespans against pool sizes, with the automatic size as a horizontal line."""

import math

from plot import COLOURS, line, text
from pool_figures import AUTOMATIC

PROGRAMS = {"weir": COLOURS["weir"], "node": COLOURS["peer"], "node-cluster": "#8a5fb0"}
WIDTH, HEIGHT = 320, 210
LEFT, TOP, RIGHT, BOTTOM = 52, 34, 14, 30
HEAD = 66
COLUMNS = 3
MARKS = [base * 10**power for power in range(-1, 6) for base in (1, 2, 5)]


def decades(values):
    """Returns the ends of a logarithmic axis for these values, at least a factor of 2 apart."""
    low, high = min(values) / 1.15, max(values) * 1.15
    middle = math.sqrt(low * high)
    return min(low, middle / 1.5), max(high, middle * 1.5)


class Panel:
    """The panel of one work. `rows` is {(program, size): row}."""

    def __init__(self, title, rows, x, y):
        self.title, self.rows, self.x, self.y = title, rows, x, y
        self.sizes = sorted({int(size) for _, size in rows if size != AUTOMATIC}) or [1]
        self.low, self.high = decades([row["makespan"] for row in rows.values()])

    def at_size(self, size):
        first, last = math.log2(self.sizes[0]), math.log2(self.sizes[-1])
        part = (math.log2(size) - first) / (last - first) if last > first else 0.5
        return self.x + LEFT + part * (WIDTH - LEFT - RIGHT)

    def at_time(self, value):
        part = math.log(value / self.low) / math.log(self.high / self.low)
        return self.y + HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM)

    def axes(self):
        left, right, bottom = self.x + LEFT, self.x + WIDTH - RIGHT, self.y + HEIGHT - BOTTOM
        parts = [text(self.x + LEFT, self.y + 20, self.title, size=13, weight="bold")]
        for mark in MARKS:
            if self.low <= mark <= self.high:
                y = self.at_time(mark)
                parts.append(line(left, y, right, y, opacity=0.2))
                parts.append(text(left - 5, y + 4, f"{mark:,g} ms", anchor="end", size=10))
        for size in self.sizes:
            x = self.at_size(size)
            parts.append(line(x, bottom, x, bottom + 3))
            parts.append(text(x, bottom + 14, str(size), anchor="middle", size=9))
        return parts + [line(left, bottom, right, bottom)]

    def drawn(self):
        parts = self.axes()
        for program, colour in PROGRAMS.items():
            points = [(self.at_size(size), self.at_time(self.rows[program, str(size)]["makespan"]))
                      for size in self.sizes if (program, str(size)) in self.rows]
            if points:
                path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
                parts.append(f"<polyline points='{path}' fill='none' stroke='{colour}' "
                             "stroke-width='1.8'/>")
            parts += [f"<circle cx='{x:.1f}' cy='{y:.1f}' r='2.5' fill='{colour}'/>"
                      for x, y in points]
            if (program, AUTOMATIC) in self.rows:
                y = self.at_time(self.rows[program, AUTOMATIC]["makespan"])
                parts.append(
                    f"<line x1='{self.x + LEFT}' y1='{y:.1f}' x2='{self.x + WIDTH - RIGHT}' "
                    f"y2='{y:.1f}' stroke='{colour}' stroke-width='1.8' stroke-dasharray='6 4'/>")
        return parts


def legend(report, width):
    machine = report["machine"]
    parts = [text(12, 24, "Makespan against the size of the pool", size=15, weight="bold"),
             text(12, 42, f"medians; dashed: Weir's automatic size · {machine['processor']}, "
                          f"{machine['processors']} processors, Linux {machine['kernel']} · "
                          f"{machine['date']}")]
    at = width - 300
    for program, colour in PROGRAMS.items():
        parts.append(f"<rect x='{at}' y='14' width='12' height='12' fill='{colour}'/>")
        parts.append(text(at + 17, 24, program, size=12))
        at += 42 + 6.5 * len(program)
    return parts


def drawing(report, works):
    """Returns an SVG with a panel for each of `works`, {title: {(program, size): row}}."""
    width = COLUMNS * WIDTH + 12
    parts = legend(report, width)
    for number, (title, rows) in enumerate(works.items()):
        x, y = 12 + number % COLUMNS * WIDTH, HEAD + number // COLUMNS * HEIGHT
        parts += Panel(title, rows, x, y).drawn()
    height = HEAD + math.ceil(len(works) / COLUMNS) * HEIGHT + 6
    return (f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}' "
            f"viewBox='0 0 {width} {height}'>\n" + "\n".join(parts) + "\n</svg>\n")
