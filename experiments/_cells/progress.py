"""Progress on the terminal."""

from __future__ import annotations

import sys
import time


def say(line: str) -> None:
    """Prints a line with the time of day, on standard error."""
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {line}\n")
    sys.stderr.flush()
