"""Where and with what a figure was measured."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from pathlib import Path

PACKAGES = (
    "tensorflow",
    "keras",
    "tensorflow-privacy",
    "dp-accounting",
    "opendp",
    "numpy",
    "scikit-learn",
)


def machine() -> str:
    """Processor and number of cores, in words."""
    name = platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = info.read_text(encoding="utf-8", errors="replace").splitlines()
        names = [line for line in lines if line.startswith("model name")]
        if names:
            name = names[0].partition(":")[2].strip()
    return f"{name}, {os.cpu_count()} cores"


def versions(*more: str) -> dict[str, str]:
    """Versions of Python and of what the figures depend on, without importing it.

    Args:
        *more: distributions that one experiment adds.
    """
    from tfpriv import __version__

    names = (*PACKAGES, *more)
    return {
        "tfpriv": __version__,
        "python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in names},
    }


def peak_mib() -> float:
    """Largest resident memory of this process so far.

    Not `ru_maxrss`, in which a process begins with the memory of its parent.
    """
    status = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    (line,) = [line for line in status if line.startswith("VmHWM:")]
    return int(line.split()[1]) / 1024
