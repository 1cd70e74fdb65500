"""One cell: a task in a process of its own, watched from outside."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from experiments._cells.machine import machine, versions
from experiments.growth.tasks import corpus
from tfpriv._quiet import quiet_import

_EPSILON = 8.0


def prepare(folder: Path) -> None:
    """Makes what every cell needs: a small model, fitted to the bundled sample."""
    if (folder / "model").exists():
        return
    folder.mkdir(exist_ok=True)
    with quiet_import():
        import tfpriv

    # Nothing adversarial, which the default hardly ever chooses: seed corpora alone.
    model = tfpriv.DPSeqGAN(_EPSILON, discriminator_steps=0, seed=0)
    model.fit(tfpriv.datasets.load("sample").train)
    model.save(folder / "model")


def measure(task: str, rows: int, seed: int, folder: Path) -> dict[str, Any]:
    """Runs a task and returns what it took.

    Returns:
        JSON: wall and CPU seconds of the whole process, its peak memory in MiB, and
        what the task found by itself.
    """
    corpus(folder, rows, seed)
    command = [sys.executable, "-m", "experiments.growth.tasks", task]
    command += [str(rows), str(seed), str(folder)]
    start = time.monotonic()
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors) as process,
    ):
        output = process.stdout.read()
        # In place of `process.wait()`, which does not tell the CPU time.
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            errors.seek(0)
            raise RuntimeError(f"{' '.join(command)} failed:\n{errors.read()}")
    told = json.loads(output)
    return {
        "experiment": "growth",
        "task": task,
        "rows": rows,
        "seed": seed,
        "seconds": round(time.monotonic() - start, 3),
        "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 3),
        "peak_mib": round(told["peak_mib"], 1),
        "found": told["found"],
        "machine": machine(),
        "versions": versions(),
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
