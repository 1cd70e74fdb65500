"""`tfpriv account` beside `import dp_accounting`: what is ours of its time."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

LINE = "account --examples 1956 --batch 64 --steps 306 --noise-multiplier 1"
RUNS = 7
MOST = 1.3


def cpu_seconds(command):
    """User and system time of a process, its bytecode kept as an installation has."""
    environment = {
        k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"
    }
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.slow
def test_an_account_takes_little_more_than_the_import_of_its_library(capsys):
    tfpriv = str(Path(sys.executable).with_name("tfpriv"))
    commands = {
        "import dp_accounting": [sys.executable, "-c", "import dp_accounting"],
        "tfpriv account": [tfpriv, *LINE.split()],
    }
    for command in commands.values():
        cpu_seconds(command)  # cold files
    found = {name: [] for name in commands}
    for _ in range(RUNS):
        for name, command in commands.items():
            found[name].append(cpu_seconds(command))
    first, second = (statistics.median(times) for times in found.values())
    with capsys.disabled():
        print(f"\nCPU seconds {first:.2f} and {second:.2f}: {second / first:.2f} x")
    assert second / first <= MOST
