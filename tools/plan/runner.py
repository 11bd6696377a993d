"""Prints a plan, runs its steps, and sums up."""

import shlex
import subprocess
import sys
import time

LINES_MAX = 6  # of the reasons for one step, and of other lists


def shortened(lines):
    """Returns the first of many lines, and how many others there are."""
    lines = list(dict.fromkeys(lines))
    if len(lines) <= LINES_MAX + 1:
        return lines
    return [*lines[:LINES_MAX], f"and {len(lines) - LINES_MAX} more"]


def describe(change, plan):
    """Returns the lines that show a plan to a reader."""
    count = f"{len(change.paths)} paths" if len(change.paths) != 1 else "1 path"
    lines = [f"verify: {count} changed since {change.since}:"]
    lines += [f"  {path}" for path in shortened(change.paths)]
    lines.append("verify: the plan:")
    for number, step in enumerate(plan.steps, 1):
        lines.append(f"  {number}. {step.title}")
        lines += [f"       {reason}" for reason in shortened(step.reasons)]
    return lines + left_lines(plan)


def left_lines(plan):
    if not plan.left:
        return []
    return ["verify: left to ./dev test:", *(f"  {line}" for line in shortened(plan.left))]


class Runner:
    """Runs the steps of plans in a folder. `say` prints a line."""

    def __init__(self, root, say=None):
        self.root = root
        self.say = say or (lambda line: print(line, file=sys.stderr, flush=True))

    def run(self, plan):
        """Runs the steps until one fails, sums up, and returns the exit status."""
        done = []
        failed = None
        for number, step in enumerate(plan.steps, 1):
            self.say(f"verify: step {number} of {len(plan.steps)}: {step.title}")
            begin = time.monotonic()
            status = self._status_of(step)
            done.append((step, time.monotonic() - begin, status))
            if status != 0:
                failed = step
                break
        for line in self._summary(plan, done):
            self.say(line)
        if failed is None:
            return 0
        self.say(f"verify: FAILED: {failed.title}; this repeats the step: "
                 f"{shlex.join(failed.command)}")
        return 1

    def _status_of(self, step):
        """Returns the exit status of a step's command."""
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT} if step.quiet else {}
        try:
            ran = subprocess.run(step.command, cwd=self.root, text=True, errors="replace",
                                 stdin=subprocess.DEVNULL, **streams)
        except OSError as error:
            self.say(f"verify: {step.command[0]} does not start: {error}")
            return 127
        if step.quiet and ran.returncode != 0:
            self.say(ran.stdout.rstrip("\n"))
        return ran.returncode

    @staticmethod
    def _summary(plan, done):
        lines = [f"verify: ran in {sum(seconds for _, seconds, _ in done):.0f} s:"]
        for step, seconds, status in done:
            verdict = "passed" if status == 0 else f"failed with exit status {status}"
            lines.append(f"  {seconds:6.1f} s  {verdict}: {step.title}")
        lines += [f"  not run: {step.title}" for step in plan.steps[len(done):]]
        return lines + left_lines(plan)
