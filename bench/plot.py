"""Draws the results as SVG: a panel of bars for each workload, readable on light and dark pages."""

from xml.sax.saxutils import escape

COLOURS = {"limit": "#b0b5be", "weir": "#1f83c6", "peer": "#d08a2e"}
INK = "#7c828c"  # for text and lines; readable on white and on black
WHISKER = "#565c66"
FONT = "font-family='Helvetica, Arial, sans-serif'"
PANEL_WIDTH = 440
NAME_WIDTH = 96
VALUE_WIDTH = 46
BAR_WIDTH = PANEL_WIDTH - NAME_WIDTH - VALUE_WIDTH - 20
BAR_HEIGHT = 13
BAR_STEP = 18
HEAD_HEIGHT = 44
COLUMNS = 2
LEGEND_HEIGHT = 62


def text(x, y, what, size=11, anchor="start", weight="normal"):
    return (f"<text x='{x:.1f}' y='{y:.1f}' font-size='{size}' text-anchor='{anchor}' "
            f"font-weight='{weight}' fill='{INK}' {FONT}>{escape(what)}</text>")


def line(x1, y1, x2, y2, colour=INK, opacity=1.0):
    return (f"<line x1='{x1:.1f}' y1='{y1:.1f}' x2='{x2:.1f}' y2='{y2:.1f}' stroke='{colour}' "
            f"stroke-width='1.2' stroke-opacity='{opacity}'/>")


def bar(row, x, y):
    """Draws one server: its name, a bar for its share, and a whisker from minimum to maximum."""
    share = row["share"]
    middle = y + BAR_HEIGHT / 2
    left, right = (x + NAME_WIDTH + BAR_WIDTH * share[end] for end in ("min", "max"))
    return [
        text(x + NAME_WIDTH - 6, middle + 4, row["name"], anchor="end",
             weight="bold" if row["kind"] == "weir" else "normal"),
        f"<rect x='{x + NAME_WIDTH:.1f}' y='{y:.1f}' width='{BAR_WIDTH * share['median']:.1f}' "
        f"height='{BAR_HEIGHT}' fill='{COLOURS[row['kind']]}'/>",
        line(left, middle, right, middle, WHISKER),
        line(left, middle - 3, left, middle + 3, WHISKER),
        line(right, middle - 3, right, middle + 3, WHISKER),
        text(x + PANEL_WIDTH - 20, middle + 4, f"{share['median']:.2f}", anchor="end"),
    ]


def panel(identity, outcome, rows, x, y):
    """Draws one workload: its servers, the best first."""
    key = outcome.get("share_of", "figure")
    to_limits = outcome.get("share_to") == "limit"
    best = max((row[key] for row in rows if row["kind"] == "limit" or not to_limits), default=0)
    of = "CPU time" if key == "figure" else "time, regardless of CPU use"
    of += ", the better limit server" if to_limits else ""
    parts = [
        text(x, y + 14, f"{identity}: {outcome['title']}", size=13, weight="bold"),
        text(x, y + 30, f"1.00 = {best / 1000:,.0f} thousand requests per second of {of}"),
    ]
    top = y + HEAD_HEIGHT
    bottom = top + len(rows) * BAR_STEP
    for mark in (0, 0.25, 0.5, 0.75, 1):
        at = x + NAME_WIDTH + BAR_WIDTH * mark
        parts.append(line(at, top - 4, at, bottom, opacity=0.35 if mark in (0, 1) else 0.15))
    for number, row in enumerate(rows):
        parts += bar(row, x, top + number * BAR_STEP)
    return parts


def rounds_of(report):
    """Returns the number of rounds in words: peers joined some of them."""
    joined = {row["share"]["pairs"] for outcome in report["works"].values()
              for row in outcome["summary"] if row.get("kind") == "peer" and "share" in row}
    few = min(joined, default=report["runs"])
    if few == report["runs"]:
        return f"{few} rounds"
    many = max(joined)
    others = f"{few}" if few == many else f"{few} to {many}"
    return f"{report['runs']} rounds, others' servers in {others} of them"


def legend(report, width):
    machine = report["machine"]
    parts = [text(12, 24, "Share of the best program of the same round", size=15, weight="bold"),
             text(12, 42, f"median and min..max of {rounds_of(report)} · "
                          f"{machine['processor']}, {machine['processors']} processors, "
                          f"Linux {machine['kernel']} · {machine['date']}")]
    at = width - 280
    for kind, name in (("limit", "limit servers"), ("weir", "Weir"), ("peer", "others")):
        parts.append(f"<rect x='{at}' y='14' width='12' height='12' fill='{COLOURS[kind]}'/>")
        parts.append(text(at + 17, 24, name, size=12))
        at += 30 + 6.5 * len(name) + 12
    return parts


def shares(report):
    """Returns an SVG of all workloads of servers."""
    panels = []
    for identity, outcome in report["works"].items():
        rows = [row for row in outcome["summary"]
                if "share" in row and row["kind"] != "anchor"]
        if outcome["kind"] == "served" and rows:
            rows.sort(key=lambda row: -row["share"]["median"])
            panels.append((identity, outcome, rows))
    width = COLUMNS * PANEL_WIDTH + 12
    parts = legend(report, width)
    y = LEGEND_HEIGHT
    for first in range(0, len(panels), COLUMNS):
        in_row = panels[first:first + COLUMNS]
        for column, (identity, outcome, rows) in enumerate(in_row):
            parts += panel(identity, outcome, rows, 12 + column * PANEL_WIDTH, y)
        y += HEAD_HEIGHT + max(len(rows) for _, _, rows in in_row) * BAR_STEP + 26
    return (f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{y}' "
            f"viewBox='0 0 {width} {y}'>\n" + "\n".join(parts) + "\n</svg>\n")
