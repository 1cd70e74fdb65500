"""The command: which cells to run, where they lie, what to make of them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from experiments._cells.cell_folder import Cell, CellFolder
from experiments._cells.options import make_parser
from experiments._cells.progress import say
from experiments.rmat_tables import data, report
from experiments.rmat_tables.settings import (
    DATASETS,
    TABLE_ARMS,
    Arm,
    Settings,
)
from tfpriv._errors import InputError
from tfpriv._files import PUBLIC, write_json
from tfpriv._quiet import quiet_import

RunCell = Callable[[Settings, str, Arm, int], dict[str, Any]]


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
        datasets = _datasets(options.datasets)
        work = [
            (dataset, arm, seed)
            for seed in options.seeds
            for dataset in datasets
            for arm in _arms(options.only, settings, dataset)
        ]
        if not work:
            raise InputError(
                f"Expected the front on {settings.front_dataset}, received "
                f"--datasets {' '.join(datasets)}."
            )
        folder = CellFolder(options.output, settings.to_json())
    except (InputError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    for dataset in datasets:
        path = folder.path / "cells" / f"{dataset}_sizes.json"
        if not path.exists():
            sizes = {"dataset": dataset, **data.sizes(dataset)}
            write_json(path, sizes, mode=PUBLIC)
    run_cell = run_cell or _run_cell
    cells = [
        Cell(
            f"{dataset}_seed{seed}_{arm.key}",
            f"{dataset}, seed {seed}: {arm.key}",
            partial(run_cell, settings, dataset, arm, seed),
        )
        for dataset, arm, seed in work
    ]
    report_cells = partial(write_report, settings, folder, quick=options.quick)
    folder.complete(cells, partial(report_cells, plots=False))
    report_cells()
    say(f"wrote {folder.path / 'results.md'}")
    return 0


def write_report(
    settings: Settings, folder: CellFolder, *, quick: bool, plots: bool = True
) -> None:
    """Writes results.json, results.md and plots from every cell in the folder."""
    found = folder.finished()
    cells = [cell for cell in found if "arm" in cell]
    sizes = [cell for cell in found if "arm" not in cell]
    available = list(filter(data.available, DATASETS))
    results = report.results(settings, cells, sizes, available=available, quick=quick)
    write_json(folder.path / "results.json", results, mode=PUBLIC)
    if plots:
        report.write_plots(folder.path, results)
    pictures = sorted(path.name for path in folder.path.glob("*.png"))
    report.write_markdown(folder.path / "results.md", results, pictures)


def _run_cell(settings: Settings, dataset: str, arm: Arm, seed: int) -> dict[str, Any]:
    # Not before: a report of finished cells needs no TensorFlow.
    with quiet_import():
        from experiments.rmat_tables.cells import run_cell

    return run_cell(settings, dataset, arm, seed)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = make_parser(
        "rmat_tables",
        "The tables of RMAT (Wu and Luo 2023) on md_gender.",
        arms=f"some of {' '.join(TABLE_ARMS)}, front and l1@E; all but the last, if "
        "not given",
    )
    parser.set_defaults(seeds=[0])
    parser.add_argument(
        "--datasets",
        nargs="+",
        metavar="NAME",
        help=f"some of {' '.join(DATASETS)}; all whose files are there, if not given",
    )
    return parser.parse_args(arguments)


def _datasets(names: Sequence[str] | None) -> list[str]:
    """Those that are asked for, or all whose files are there."""
    for name in names or ():
        if name not in DATASETS:
            raise InputError(
                f"Expected data sets of {', '.join(DATASETS)}, received {name!r}."
            )
        if not data.available(name):
            raise InputError(
                f"Expected the files of md_gender/{name}, received none: data not "
                f"available here. Run: tfpriv datasets prepare md_gender/{name}, or "
                "set TFPRIV_DATA_DIR."
            )
    there = list(names or filter(data.available, DATASETS))
    if not there:
        raise InputError(
            "Expected files of md_gender, received none. Run: tfpriv datasets prepare "
            "md_gender/funpedia, or set TFPRIV_DATA_DIR."
        )
    return list(dict.fromkeys(there))


def _arms(only: Sequence[str] | None, settings: Settings, dataset: str) -> list[Arm]:
    """In the order they are asked for; the front on its own data set alone."""
    keys: list[str] = []
    for key in only or (*TABLE_ARMS, "front"):
        keys += settings.front() if key == "front" else [key]
    arms = [Arm.parse(key) for key in dict.fromkeys(keys)]
    return [a for a in arms if a.method != "front" or dataset == settings.front_dataset]
