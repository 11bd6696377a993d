"""Statistics of operations in a pool: rows, the best fixed size, targets, tables."""

import statistics

import figures

AUTOMATIC = "auto"
PEER_SIZE = "4"  # libuv's default
CPU_MOST = 1.05  # times the best fixed size's makespan and average
BLOCKED_MOST = 1.10  # times its makespan, plus:
BLOCKED_MORE_MS = 200
CHEAP_MOST = 3  # times the cheap endpoint's p99 with an idle pool, or:
CHEAP_MOST_US = 1000


def times(sent_ns, operations):
    """Returns the time of each operation in milliseconds, from sending its request to its end. The
    time of arrival at the server is not used, because a busy server reads requests late. Requests
    are assumed to be read in the order of sending."""
    each_request = len(operations) // len(sent_ns)
    ordered = sorted(operations, key=lambda each: each["arrived_ns"])
    return [(each["arrived_ns"] + each["took_ns"] - sent_ns[number // each_request]) / 1e6
            for number, each in enumerate(ordered)]


def outcome(sent_ns, operations, pools):
    """Returns the result of one measurement, in milliseconds."""
    took = times(sent_ns, operations)
    last = max(each["arrived_ns"] + each["took_ns"] for each in operations)
    makespan = (last - sent_ns[0]) / 1e6
    since_start = statistics.fmean(each["arrived_ns"] + each["took_ns"] for each in operations)
    return {"min": min(took), "average": statistics.fmean(took), "max": max(took),
            "makespan": makespan,
            "average_since_start": (since_start - sent_ns[0]) / 1e6,
            "throughput": 1000 * len(took) / makespan,
            "size": max(pool["size"] for pool in pools),
            "reasons": sorted({pool["reason"] for pool in pools})}


def row(results):
    """Returns the medians of repeated measurements."""
    keys = ("min", "average", "max", "makespan", "average_since_start", "throughput",
            "cheap_idle_us", "cheap_us")
    found = {key: [result[key] for result in results if result.get(key) is not None]
             for key in keys}
    summary = {key: statistics.median(values) for key, values in found.items() if values}
    return summary | {"runs": len(results), "size": max(result["size"] for result in results),
                      "makespan_min": min(found["makespan"]),
                      "makespan_max": max(found["makespan"])}


def best_fixed(rounds, key):
    """Returns the fixed size with the lowest median over the rounds ({size: result} each)."""
    values = {}
    for results in rounds:
        for size, result in results.items():
            if size != AUTOMATIC:
                values.setdefault(size, []).append(result[key])
    return min(values, key=lambda size: statistics.median(values[size]), default=None)


def against_best(rounds, key, more=0):
    """Returns the best fixed size, and the ratio of each round: the automatic pool's figure less
    `more`, divided by that size's figure."""
    best = best_fixed(rounds, key)
    return best, [(results[AUTOMATIC][key] - more) / results[best][key] for results in rounds
                  if AUTOMATIC in results and best in results]


def targets_of(kind):
    """Returns [(figure, maximum of the ratio, milliseconds in addition)]. Averages count from the
    start of the case: a client sends its next request after the previous answer, and a server that
    answers late must not profit from that."""
    if kind == "cpu":
        return [("makespan", CPU_MOST, 0), ("average_since_start", CPU_MOST, 0)]
    return [("makespan", BLOCKED_MOST, BLOCKED_MORE_MS)]


def judged(kind, case, rounds):
    """Returns a line of the table of targets for each target of one workload."""
    lines = []
    for key, most, more in targets_of(kind):
        best, ratios = against_best(rounds, key, more)
        if not ratios:
            continue
        spread = figures.spread(ratios)
        met = "met" if spread["median"] <= most else "MISSED"
        if spread["pairs"] < figures.PAIRS_MIN:
            met += f" (not judged: {spread['pairs']} of {figures.PAIRS_MIN} rounds)"
        lines.append({"work": f"{kind}, {case}", "figure": key, "best": best, "more_ms": more,
                      "most": most, "verdict": met, **spread})
    return lines


def cheap_lines(programs_rounds):
    """Returns {program: latency of its cheap endpoint with an idle and with a busy pool}, for
    Weir's automatic size and for the default size of peers."""
    lines = {}
    for program, rounds in programs_rounds.items():
        size = AUTOMATIC if program == "weir" else PEER_SIZE
        results = [results[size] for results in rounds if size in results]
        summary = row(results) if results else {}
        if "cheap_us" not in summary or "cheap_idle_us" not in summary:
            continue
        most = max(CHEAP_MOST * summary["cheap_idle_us"], CHEAP_MOST_US)
        met = "met" if summary["cheap_us"] <= most else "MISSED"
        lines[program] = {"idle_us": summary["cheap_idle_us"], "busy_us": summary["cheap_us"],
                          "most_us": most, "verdict": met}
    return lines


def number(value, digits=0):
    return "–" if value is None else f"{value:,.{digits}f}"


def table(rows):
    """Returns the table of one workload. `rows` is {(program, size): row}."""
    lines = ["| program | size | makespan ms | min..max | since the start, on average "
             "| operation: min | average | max | per second | cheap p99 us | idle |",
             "|" + "---|" * 11]
    for (program, size), each in rows.items():
        shown = f"{size} (to {each['size']})" if size == AUTOMATIC else size
        lines.append(
            f"| {program} | {shown} | {number(each['makespan'])} "
            f"| {number(each['makespan_min'])}..{number(each['makespan_max'])} "
            f"| {number(each['average_since_start'])} "
            f"| {number(each['min'])} | {number(each['average'])} | {number(each['max'])} "
            f"| {number(each['throughput'])} | {number(each.get('cheap_us'))} "
            f"| {number(each.get('cheap_idle_us'))} |")
    return "\n".join(lines)


def target_table(lines, cheap):
    text = ["| workload | automatic / best fixed size | 95 % | best | target |",
            "|---|---|---|---|---|"]
    for line in lines:
        less = f", less {line['more_ms']} ms" if line["more_ms"] else ""
        text.append(f"| {line['work']}: {line['figure'].replace('_', ' ')}{less} "
                    f"| {line['median']:.3f} | {line['low']:.3f}..{line['high']:.3f} "
                    f"| {line['best']} threads "
                    f"| {line['verdict']} (≤ {line['most']:.2f}) |")
    for program, each in cheap.items():
        verdict = f"{each['verdict']} (≤ {each['most_us']:,.0f})" if program == "weir" else ""
        text.append(f"| p99 of the cheap endpoint, {program} | {each['busy_us']:,.0f} us, "
                    f"{each['idle_us']:,.0f} us with an idle pool | | | {verdict} |")
    return "\n".join(text)
