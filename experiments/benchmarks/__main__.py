"""Speed of private steps and of starting up, each beside something real.

    python -m experiments.benchmarks --seeds 0 --output runs/benchmarks

Minutes on two cores; the figures of `--quick` mean nothing. Where other programs run,
compare CPU time, with one thread (TF_NUM_INTRAOP_THREADS=1): threads that wait for
each other count as working.
"""

from __future__ import annotations

import argparse
import dataclasses
import logging
import os
import shlex
import sys
import time
from collections.abc import Sequence

import numpy as np

from experiments._cells.turns import parsed, take_turns, timing_parser
from experiments.benchmarks import memory, report
from experiments.benchmarks.contests import CONTESTS, EQUAL_REWARDS
from experiments.benchmarks.targets import targets
from tfpriv._files import PUBLIC, write_json

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

# Rounds a contest gets at least and at most; none begins after so many seconds.
FULL = {"least": 3, "most": 60, "seconds": 50}
QUICK = {"least": 1, "most": 3, "seconds": 5}


def main(arguments: Sequence[str] | None = None) -> None:
    """Times every contest and writes results.json, results.md and turns.png."""
    parser = timing_parser("benchmarks", __doc__.splitlines()[0])
    parser.add_argument(
        "--only",
        nargs="+",
        choices=CONTESTS,
        default=[*CONTESTS],
        metavar="CONTEST",
        help=f"some of: {'; '.join(CONTESTS)}",
    )
    options = parsed(parser, arguments)
    logging.getLogger("tensorflow").setLevel(logging.ERROR)
    effort = QUICK if options.quick else FULL
    start, load = time.monotonic(), os.getloadavg()[0]
    measurements = []
    for contest in options.only:
        for seed in options.seeds:
            sys.stderr.write(f"{time.strftime('%H:%M:%S')} seed {seed}: {contest}\n")
            measurements += take_turns(
                CONTESTS[contest](seed),
                {"contest": contest, "seed": seed},
                np.random.default_rng(seed),
                **effort,
            )
    held = []
    steps = [contest for contest in memory.STEPS if contest in options.only]
    for contest in steps[:1] if options.quick else steps:
        for seed in options.seeds:
            sys.stderr.write(f"{time.strftime('%H:%M:%S')} memory: {contest}\n")
            held.append(memory.measure(contest, seed))
    varied = []
    if EQUAL_REWARDS in options.only:
        from experiments.benchmarks import equal_variance

        varied = [dataclasses.asdict(equal_variance.measure(s)) for s in options.seeds]
    # It imports TensorFlow, so not before the processes were timed.
    from experiments._cells.machine import machine, versions

    summary = report.summary(measurements)
    results = {
        "experiment": "benchmarks",
        "command": _command(options),
        "quick": options.quick,
        "seeds": options.seeds,
        "settings": effort,
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "wall_seconds": round(time.monotonic() - start, 1),
        "machine": machine(),
        "load_average": [round(load, 2), round(os.getloadavg()[0], 2)],
        "versions": versions(),
        "summary": summary,
        "memory": held,
        "variance": varied,
        "targets": targets(summary, held),
        "measurements": measurements,
    }
    write_json(options.output / "results.json", results, mode=PUBLIC)
    report.write(options.output, results)


def _command(options: argparse.Namespace) -> str:
    line = "python -m experiments.benchmarks"
    if options.only != [*CONTESTS]:
        line += f" --only {' '.join(map(shlex.quote, options.only))}"
    seeds = " ".join(map(str, options.seeds))
    return f"{line} --seeds {seeds} --output DIR"


if __name__ == "__main__":
    main()
