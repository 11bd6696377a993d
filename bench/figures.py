"""Statistics of the measurements: medians, paired ratios with intervals, verdicts, tables."""

import random
import statistics

RESAMPLES = 2000
SATURATED = 0.95  # a less busy server has waited for the generator
PAIRS_MIN = 9  # minimum for a verdict
LIMITS = "the limit servers"


def median_interval(values, level=0.95):
    """Returns a bootstrap interval of the median. The result is deterministic."""
    source = random.Random(len(values))
    medians = sorted(
        statistics.median(source.choices(values, k=len(values))) for _ in range(RESAMPLES)
    )
    cut = int(RESAMPLES * (1 - level) / 2)
    return medians[cut], medians[RESAMPLES - 1 - cut]


def waited(result):
    """Returns true if the server was not saturated: its figure is then no measure of its speed."""
    return result.get("busy", 0) < SATURATED


def ratios(rounds, names, key="figure", others=None, judging=False):
    """Returns {server: [its number / the best number among `others` in the same round]}.

    `others` are all servers if None. A server that was not saturated is never the best figure per
    CPU second; if `judging`, its own round is left out, too.
    """
    found = {name: [] for name in names}
    for results in rounds:
        numbers = {name: result[key] for name, result in results.items() if result.get(key)}
        idle = {name for name in numbers if key == "figure" and waited(results[name])}
        best = max((value for name, value in numbers.items()
                    if (others is None or name in others) and name not in idle), default=0)
        for name, value in numbers.items():
            if best and name in found and not (judging and name in idle):
                found[name].append(value / best)
    return found


def spread(values):
    """Returns the median, the minimum, the maximum and the interval of the median."""
    low, high = median_interval(values)
    return {"median": statistics.median(values), "min": min(values), "max": max(values),
            "low": low, "high": high, "pairs": len(values)}


def summary(rounds, servers, work):
    """Returns one row of numbers for each server. With a target, Weir's rows have a verdict."""
    to_limit = work.target is not None and work.target.to == "limit"
    best = {server.name for server in servers
            if server.kind == "limit" or (server.kind != "anchor" and not to_limit)}
    key = "figure" if work.saturates else "rate"
    of_best = ratios(rounds, [server.name for server in servers], key, best)
    rows = []
    for server in servers:
        results = [results[server.name] for results in rounds if server.name in results]
        errors = sum(result["errors"] for result in results)
        results = [result for result in results if result["figure"]]
        row = {"name": server.name, "kind": server.kind, "errors": errors}
        rows.append(row)
        if not results:
            continue
        figures = [result["figure"] for result in results]
        row |= {"figure": statistics.median(figures), "figure_min": min(figures),
                "figure_max": max(figures),
                "resident": max(result["resident"] for result in results)}
        if of_best[server.name]:
            row["share"] = spread(of_best[server.name])
        for key in ("busy", "rate", "p50", "p99"):
            row[key] = statistics.median(result[key] for result in results)
    for row in rows:
        if row["kind"] == "weir" and work.target is not None:
            row["verdict"] = verdict(work, row, rows, rounds)
    return rows


def verdict(work, row, rows, rounds):
    """Returns whether a row of Weir reaches the workload's target, or why there is no verdict."""
    if row["errors"]:
        return "missed: errors"
    if "figure" not in row:
        return "not judged: no figure"
    if work.target.to == "peers":
        return verdict_among_peers(work, row, rows, rounds)
    limits = [each for each in rows if each["kind"] == "limit" and "figure" in each]
    if not limits:
        return "not judged: no limit server"
    beside = ratios_to_each(work, row, rows, rounds)
    pairs = len(beside[LIMITS])
    if pairs < PAIRS_MIN:
        why = "saturated in " if pairs < len(rounds) else ""
        return f"not judged: {why}{pairs} rounds"
    # Other servers run in some rounds only, so each is compared in its rounds; the worst decides.
    ahead = min(beside, key=lambda name: statistics.median(beside[name]))
    row["reached"] = spread(beside[ahead]) | {"of": ahead}
    reached = row["reached"]
    met = reached["median"] >= work.target.median and all(
        spread(found)["low"] >= work.target.low for found in beside.values())
    return met_or_missed(met, work.target) + ("" if ahead == LIMITS else f", beside {ahead}")


def ratios_to_each(work, row, rows, rounds):
    """Returns the ratios of a row's figures to those of the better limit server, in rounds of both.
    If the target is about all servers, also returns the ratios to each other server."""
    key = "figure" if work.saturates else "rate"
    others = {LIMITS: {each["name"] for each in rows if each["kind"] == "limit"}}
    if work.target.to == "all":
        others |= {each["name"]: {each["name"]} for each in rows
                   if each["kind"] != "limit" and each is not row}
    found = {name: ratios(rounds, [row["name"]], key, names, judging=True)[row["name"]]
             for name, names in others.items()}
    return {name: each for name, each in found.items() if each or name == LIMITS}


def faster_peers(rows, rounds):
    """Returns {name: median ratio to the better limit server} of the servers that are faster."""
    limits = {row["name"] for row in rows if row["kind"] == "limit"}
    shares = ratios(rounds, [row["name"] for row in rows if row["kind"] in ("weir", "peer")],
                    others=limits)
    medians = {name: statistics.median(found) for name, found in shares.items() if found}
    return {name: median for name, median in medians.items() if median > 1}


def verdict_among_peers(work, row, rows, rounds):
    """Returns the verdict that throughput, p50 and p99 are better than every peer's."""
    peers = [each for each in rows if each["kind"] == "peer" and "figure" in each]
    if not peers:
        return "not judged: no peers"
    names = {each["name"] for each in peers}
    found = ratios(rounds, [row["name"]], "rate", names)[row["name"]]
    if len(found) < PAIRS_MIN:
        return f"not judged: {len(found)} rounds"
    row["reached"] = spread(found) | {"of": "the best peer"}
    leads = {"rate": row["reached"]["median"]}
    leads |= {key: statistics.median(lead_ratios(row, rounds, names, key))
              for key in ("p50", "p99")}
    ahead = min(leads.values()) > work.target.median
    text = ", ".join(f"{key} {lead:.2f}" for key, lead in leads.items())
    return (f"{met_or_missed(ahead, work.target)}: times better than the best of {len(peers)}: "
            f"{text}")


def lead_ratios(row, rounds, names, key):
    """Returns, for each round, the best latency of other servers divided by this row's latency."""
    found = []
    for results in rounds:
        theirs = [results[name][key] for name in names if results.get(name, {}).get(key)]
        ours = results.get(row["name"], {}).get(key)
        if theirs and ours:
            found.append(min(theirs) / ours)
    return found


def met_or_missed(met, target):
    wanted = "ahead of all peers" if target.to == "peers" else f"{target.median:.2f}"
    return f"{'met' if met else 'MISSED'} ({wanted})"


def provenance(report):
    """Returns the machine, the date and the commit of a run."""
    machine = report["machine"]
    return (f"{machine['processor']}, {machine['processors']} processors, Linux "
            f"{machine['kernel']}, {machine['date']}, commit {machine['commit']}")


def thousands(value):
    return f"{value / 1000:,.0f}" if value >= 100_000 else f"{value / 1000:,.1f}"


def latency(nanoseconds):
    """Returns microseconds; a dash if the workload measures no latency."""
    return f"{nanoseconds / 1000:.0f}" if nanoseconds else "–"


def in_a_line(name, result):
    """Returns one measurement as a line of progress."""
    if not result["figure"]:
        return f"{name:14} no figure, {result['errors']} errors {result.get('reason', '')}"
    errors = f", {result['errors']} ERRORS" if result["errors"] else ""
    return (f"{name:14} {thousands(result['figure']):>8} k per CPU second, "
            f"{100 * result['busy']:5.1f} % busy, p99 {latency(result['p99'])} us{errors}")


def table(rows):
    """Returns a Markdown table. The figures are thousands of requests per second."""
    lines = [
        "| server | k per CPU second | min..max | share of the best | 95 % | target | busy "
        "| k per second | p50 us | p99 us | peak MiB | errors |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        if "figure" not in row:
            lines.append(f"| {row['name']} | no figure |" + " |" * 9 + f" {row['errors']} |")
            continue
        mark = "" if row["busy"] >= SATURATED else " (waits)"
        share = row.get("share")
        shares = (f"{share['median']:.3f} | {share['low']:.3f}..{share['high']:.3f}" if share
                  else "– | –")
        lines.append(
            f"| {row['name']} | {thousands(row['figure'])} "
            f"| {thousands(row['figure_min'])}..{thousands(row['figure_max'])} "
            f"| {shares} "
            f"| {row.get('verdict', '')} "
            f"| {100 * row['busy']:.1f} %{mark} | {thousands(row['rate'])} "
            f"| {latency(row['p50'])} | {latency(row['p99'])} "
            f"| {row['resident'] / 2**20:.1f} | {row['errors']} |"
        )
    return "\n".join(lines)
