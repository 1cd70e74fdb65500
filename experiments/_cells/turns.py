"""What the timings share: options that need an empty folder, and turns."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from experiments._cells.options import make_parser

Json = dict[str, Any]


def timing_parser(name: str, description: str) -> argparse.ArgumentParser:
    """Returns a parser with --quick, --seeds (0) and --output."""
    parser = make_parser(name, description, folder="an empty folder, or a new one")
    parser.set_defaults(seeds=[0])
    return parser


def parsed(
    parser: argparse.ArgumentParser, arguments: Sequence[str] | None
) -> argparse.Namespace:
    """Options whose folder is there and empty; others end with exit code 2."""
    options = parser.parse_args(arguments)
    try:
        if min(options.seeds) < 0:
            raise ValueError(f"Expected seeds >= 0, received {options.seeds}.")
        options.output.mkdir(parents=True, exist_ok=True)
        if any(options.output.iterdir()):
            raise ValueError(
                f"Expected an empty folder, received {options.output}: timings are of "
                "one run. Choose another --output (make bench ARGS='--output DIR')."
            )
    except (ValueError, OSError) as error:
        parser.exit(2, f"{error}\n")
    return options


def take_turns(
    runs: Mapping[str, Callable[[], object]],
    shared: Json,
    rng: np.random.Generator,
    *,
    least: int,
    most: int,
    seconds: float,
) -> list[Json]:
    """Times each contestant once a round, in an order drawn anew for each round.

    The first turn of each (tracing, compilation, cold files) is no round.

    Args:
        runs: name to a call that ends when its result is there.
        shared: what is written beside each contestant.
        rng: of the orders.
        least, most: rounds.
        seconds: after which no round begins, but for the least.

    Returns:
        A contestant each: its name, its first turn, and wall and processor seconds
        of the others.
    """
    found = {
        name: {
            **shared,
            "contestant": name,
            "first": _time(run),
            "seconds": [],
            "cpu_seconds": [],
        }
        for name, run in runs.items()
    }
    start = time.monotonic()
    for turn in range(most):
        if turn >= least and time.monotonic() - start > seconds:
            break
        for name in rng.permutation(list(runs)):
            taken = _time(runs[name])
            for unit in ("seconds", "cpu_seconds"):
                found[name][unit].append(taken[unit])
    return list(found.values())


def _time(run: Callable[[], object]) -> dict[str, float]:
    start, cpu = time.perf_counter(), _cpu_seconds()
    run()
    return {
        "seconds": time.perf_counter() - start,
        "cpu_seconds": _cpu_seconds() - cpu,
    }


def _cpu_seconds() -> float:
    """Of all threads, and of processes that have ended."""
    taken = os.times()
    return time.process_time() + taken.children_user + taken.children_system
