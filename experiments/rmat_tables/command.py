"""The command: which cells to run, where they lie, what to make of them."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

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
        folder = _prepare(settings, options)
    except (InputError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    for dataset in datasets:
        path = folder / "cells" / f"{dataset}_sizes.json"
        if not path.exists():
            sizes = {"dataset": dataset, **data.sizes(dataset)}
            write_json(path, sizes, mode=PUBLIC)
    for dataset, arm, seed in work:
        path = folder / "cells" / f"{dataset}_seed{seed}_{arm.key}.json"
        if path.exists():
            continue
        if run_cell is None:
            # Not before: a report of finished cells needs no TensorFlow.
            with quiet_import():
                from experiments.rmat_tables.cells import run_cell

        _say(f"{dataset}, seed {seed}: {arm.key}")
        cell = run_cell(settings, dataset, arm, seed)
        write_json(path, cell, mode=PUBLIC)
        _say(f"{dataset}, seed {seed}: {arm.key} took {cell['seconds']:.0f} s")
        write_report(settings, folder, quick=options.quick, plots=False)
    write_report(settings, folder, quick=options.quick)
    _say(f"wrote {folder / 'results.md'}")
    return 0


def write_report(
    settings: Settings, folder: Path, *, quick: bool, plots: bool = True
) -> None:
    """Writes results.json, results.md and plots from every cell in the folder."""
    found = [
        json.loads(path.read_text(encoding="utf-8"))
        for path in sorted((folder / "cells").glob("*.json"))
    ]
    cells = [cell for cell in found if "arm" in cell]
    sizes = [cell for cell in found if "arm" not in cell]
    available = list(filter(data.available, DATASETS))
    results = report.results(settings, cells, sizes, available=available, quick=quick)
    write_json(folder / "results.json", results, mode=PUBLIC)
    if plots:
        report.write_plots(folder, results)
    pictures = sorted(path.name for path in folder.glob("*.png"))
    report.write_markdown(folder / "results.md", results, pictures)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m experiments.rmat_tables",
        description="The tables of RMAT (Wu and Luo 2023) on md_gender.",
    )
    parser.add_argument("--quick", action="store_true", help="smallest sizes")
    parser.add_argument(
        "--seeds",
        type=int,
        nargs="+",
        metavar="N",
        default=[0],
        help="one run of every arm a seed",
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("runs/rmat_tables"),
        help="folder of the run; given again, the run goes on",
    )
    parser.add_argument(
        "--datasets",
        nargs="+",
        metavar="NAME",
        help=f"some of {' '.join(DATASETS)}; all whose files are there, if not given",
    )
    parser.add_argument(
        "--only",
        nargs="+",
        metavar="ARM",
        help=f"some of {' '.join(TABLE_ARMS)}, front and l1@E; all but the last, "
        "if not given",
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


def _prepare(settings: Settings, options: argparse.Namespace) -> Path:
    """Checks the folder before any work; several runs may share one."""
    folder: Path = options.output
    wanted = json.loads(json.dumps(settings.to_json()))
    kept = folder / "settings.json"
    folder.mkdir(parents=True, exist_ok=True)
    if kept.exists():
        saved = json.loads(kept.read_text(encoding="utf-8"))
        changed = [k for k in {**wanted, **saved} if saved.get(k) != wanted.get(k)]
        if changed:
            raise InputError(
                f"Expected {folder} to hold a run of these settings, received one of "
                f"another {changed[0]}. Choose another --output."
            )
    elif any(folder.iterdir()):
        raise InputError(
            f"Expected an empty folder, received {folder}. Choose another --output."
        )
    (folder / "cells").mkdir(exist_ok=True)
    write_json(kept, wanted, mode=PUBLIC)
    return folder


def _say(line: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {line}\n")
    sys.stderr.flush()
