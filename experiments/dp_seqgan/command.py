"""The command: which cells to run, where they lie, what to make of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from experiments._cells.cell_folder import Cell, CellFolder
from experiments._cells.options import make_parser
from experiments._cells.progress import say
from experiments.dp_seqgan import report
from experiments.dp_seqgan.settings import (
    ARMS,
    CANARIES,
    CANARY_ARMS,
    DEFAULT_ARMS,
    Settings,
)
from tfpriv._errors import InputError
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
    from tfpriv import datasets

    options = make_parser(
        "dp_seqgan",
        "DP-SeqGAN's table 1 and figures 3 and 4 on YouTube spam.",
        arms=f"some of {' '.join([*ARMS, *CANARY_ARMS])}; all but seqgan_full, if not "
        "given",
    ).parse_args(arguments)
    if options.quick:
        settings = settings.quick()
    try:
        arms = _arms(options.only)
        datasets.read(settings.study.dataset)
        folder = CellFolder(options.output, settings.to_json())
    except (InputError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    work = folder.path / "work"
    work.mkdir(exist_ok=True)
    run_cell = run_cell or _run_cell
    cells = []
    for seed in options.seeds or settings.seeds:
        for arm in arms:
            name = f"seed{seed}_{arm.replace('/', '_')}"
            run = partial(run_cell, settings, arm, seed, work / name)
            cells.append(Cell(name, f"seed {seed}: {arm}", run))
    write_report = partial(report.write, settings, folder, quick=options.quick)
    folder.complete(cells, write_report)
    write_report()
    say(f"wrote {folder.path / 'results.md'}")
    return 0


def _run_cell(settings: Settings, arm: str, seed: int, work: Path) -> dict[str, Any]:
    # Not before: a report of finished cells needs no TensorFlow.
    with quiet_import():
        from experiments.dp_seqgan.canary_cells import run_canary_cell
        from experiments.dp_seqgan.cells import run_cell

    run = run_canary_cell if arm.startswith(CANARIES) else run_cell
    return run(settings, arm, seed, work)


def _arms(only: Sequence[str] | None) -> list[str]:
    arms = list(only or (*DEFAULT_ARMS, *CANARY_ARMS))
    known = [*ARMS, *CANARY_ARMS]
    for arm in arms:
        if arm not in known:
            raise InputError(
                f"Expected --only to name some of {', '.join(known)}, received {arm!r}."
            )
    return arms
