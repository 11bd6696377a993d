"""What the measured numbers come to: medians, paired ratios with intervals, tables."""

import random
import statistics

RESAMPLES = 2000
SATURATED = 0.95  # a server that is less busy has waited for the generator


def median_interval(values, level=0.95):
    """A bootstrap interval of the median; the same for the same values."""
    source = random.Random(len(values))
    medians = sorted(
        statistics.median(source.choices(values, k=len(values))) for _ in range(RESAMPLES)
    )
    cut = int(RESAMPLES * (1 - level) / 2)
    return medians[cut], medians[RESAMPLES - 1 - cut]


def shares(rounds, names):
    """Of each server, its figure as a share of the best one's in the same round."""
    found = {name: [] for name in names}
    for results in rounds:
        figures = {name: result["figure"] for name, result in results.items() if result["figure"]}
        if not figures:
            continue
        best = max(figures.values())
        for name, figure in figures.items():
            found[name].append(figure / best)
    return found


def summary(rounds, names):
    """One row of numbers for each server that was measured at least once."""
    rows = []
    of_best = shares(rounds, names)
    for name in names:
        results = [results[name] for results in rounds if name in results]
        figures = [result["figure"] for result in results if result["figure"]]
        if not figures:
            rows.append({"name": name, "errors": sum(result["errors"] for result in results)})
            continue
        low, high = median_interval(of_best[name])
        rows.append({
            "name": name,
            "figure": statistics.median(figures),
            "figure_min": min(figures),
            "figure_max": max(figures),
            "share": statistics.median(of_best[name]),
            "share_low": low,
            "share_high": high,
            "pairs": len(of_best[name]),
            "busy": statistics.median(result["busy"] for result in results),
            "rate": statistics.median(result["rate"] for result in results),
            "p50": statistics.median(result["p50"] for result in results),
            "p99": statistics.median(result["p99"] for result in results),
            "resident": max(result["resident"] for result in results),
            "errors": sum(result["errors"] for result in results),
        })
    return rows


def thousands(value):
    return f"{value / 1000:,.0f}" if value >= 100_000 else f"{value / 1000:,.1f}"


def table(rows):
    """Markdown. The figures are thousands of requests per second."""
    lines = [
        "| server | per CPU second: median | min..max | share of the best | 95 % | busy "
        "| per second | p50 us | p99 us | MiB | errors |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        if "figure" not in row:
            lines.append(f"| {row['name']} | no figure |" + " |" * 8 + f" {row['errors']} |")
            continue
        mark = "" if row["busy"] >= SATURATED else " (not saturated)"
        lines.append(
            f"| {row['name']} | {thousands(row['figure'])} "
            f"| {thousands(row['figure_min'])}..{thousands(row['figure_max'])} "
            f"| {row['share']:.3f} | {row['share_low']:.3f}..{row['share_high']:.3f} "
            f"| {100 * row['busy']:.1f} %{mark} | {thousands(row['rate'])} "
            f"| {row['p50'] / 1000:.0f} | {row['p99'] / 1000:.0f} "
            f"| {row['resident'] / 2**20:.1f} | {row['errors']} |"
        )
    return "\n".join(lines)
