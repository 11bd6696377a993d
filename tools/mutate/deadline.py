"""The end of a run. No command of the run continues after it."""

import math
import time


class OutOfTime(Exception):
    """The time of the run is over."""


class Deadline:
    """A time of time.monotonic()."""

    def __init__(self):
        self._end = math.inf

    def set(self, seconds):
        """Ends the run after a number of seconds from now."""
        self._end = time.monotonic() + seconds

    def left(self):
        """Returns the seconds until the end; None without an end. Raises OutOfTime after it."""
        if self._end == math.inf:
            return None
        seconds = self._end - time.monotonic()
        if seconds <= 0:
            raise OutOfTime
        return seconds


OF_RUN = Deadline()
