"""The command: which cells to run, where they lie, what to make of them."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from experiments.dp_seqgan import report
from experiments.dp_seqgan.settings import (
    ARMS,
    CANARIES,
    CANARY_ARMS,
    DEFAULT_ARMS,
    Settings,
)
from tfpriv._errors import InputError
from tfpriv._files import PUBLIC, write_json
from tfpriv._quiet import quiet_import

RunCell = Callable[[Settings, str, int, Path], dict[str, Any]]


def main(
    settings: Settings,
    arguments: Sequence[str] | None = None,
    run_cell: RunCell | None = None,
) -> int:
    """Runs the cells that are missing, then writes the report of all there are.

    Args:
        settings: Settings.
        arguments: of the command line, or None for this process's own.
        run_cell: what makes a cell, or None for `cells.run_cell`.

    Returns:
        Exit code: 2 for what is found before work starts.
    """
    options = _options(arguments)
    if options.quick:
        settings = settings.quick()
    try:
        arms = _arms(options.only)
        folder = _prepare(settings, options)
    except (InputError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    seeds = options.seeds if options.seeds is not None else list(settings.seeds)
    for seed in seeds:
        for arm in arms:
            name = f"seed{seed}_{arm.replace('/', '_')}"
            path = folder / "cells" / f"{name}.json"
            if path.exists():
                continue
            _say(f"seed {seed}: {arm}")
            run = run_cell or _runner(arm)
            cell = run(settings, arm, seed, folder / "work" / name)
            write_json(path, cell, mode=PUBLIC)
            _say(f"seed {seed}: {arm} took {cell['seconds']:.0f} s")
            report.write(settings, folder, quick=options.quick)
    report.write(settings, folder, quick=options.quick)
    _say(f"wrote {folder / 'results.md'}")
    return 0


def _runner(arm: str) -> RunCell:
    """What makes a cell; not before: a report of finished ones needs no TensorFlow."""
    with quiet_import():
        from experiments.dp_seqgan.canary_cells import run_canary_cell
        from experiments.dp_seqgan.cells import run_cell

    return run_canary_cell if arm.startswith(CANARIES) else run_cell


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m experiments.dp_seqgan",
        description="DP-SeqGAN's table 1 and figures 3 and 4 on YouTube spam.",
    )
    parser.add_argument("--quick", action="store_true", help="smallest sizes")
    parser.add_argument(
        "--seeds", type=int, nargs="+", metavar="N", help="one run of every arm a seed"
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("runs/dp_seqgan"),
        help="folder of the run; given again, the run goes on",
    )
    parser.add_argument(
        "--only",
        nargs="+",
        metavar="ARM",
        help=f"some of {' '.join([*ARMS, *CANARY_ARMS])}; all but seqgan_full, if not "
        "given",
    )
    return parser.parse_args(arguments)


def _arms(only: Sequence[str] | None) -> list[str]:
    arms = list(only or (*DEFAULT_ARMS, *CANARY_ARMS))
    known = [*ARMS, *CANARY_ARMS]
    for arm in arms:
        if arm not in known:
            raise InputError(
                f"Expected --only to name some of {', '.join(known)}, received {arm!r}."
            )
    return arms


def _prepare(settings: Settings, options: argparse.Namespace) -> Path:
    """Checks data and folder before any work; several runs may share a folder."""
    from tfpriv import datasets

    folder: Path = options.output
    wanted = json.loads(json.dumps(settings.to_json()))
    kept = folder / "settings.json"
    folder.mkdir(parents=True, exist_ok=True)
    if kept.exists():
        saved = json.loads(kept.read_text(encoding="utf-8"))
        changed = [key for key in wanted if saved.get(key) != wanted[key]]
        if changed:
            raise InputError(
                f"Expected {folder} to hold a run of these settings, received one "
                f"of another {changed[0]}. Choose another --output."
            )
    elif any(folder.iterdir()):
        raise InputError(
            f"Expected an empty folder, received {folder}. Choose another --output."
        )
    datasets.read(settings.study.dataset)
    for name in ("cells", "work"):
        (folder / name).mkdir(exist_ok=True)
    write_json(kept, wanted, mode=PUBLIC)
    return folder


def _say(line: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {line}\n")
    sys.stderr.flush()
