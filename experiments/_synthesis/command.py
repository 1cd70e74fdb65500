"""The command of a study: which cells to run, where they lie, what to make of them."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from experiments._synthesis import report
from experiments._synthesis.study import PART_NAMES, Arm, Study
from tfpriv._errors import InputError
from tfpriv._files import PUBLIC, write_json
from tfpriv._quiet import quiet_import

RunCell = Callable[[Study, Arm, int, str], dict[str, Any]]


def main(
    study: Study,
    arguments: Sequence[str] | None = None,
    run_cell: RunCell | None = None,
) -> int:
    """Runs the cells that are missing, then writes the report of all there are.

    Args:
        study: Study.
        arguments: of the command line, or None for this process's own.
        run_cell: what makes a cell, or None for `cells.run_cell`.

    Returns:
        Exit code: 2 for what is found before work starts.
    """
    options = _options(study, arguments)
    try:
        if options.quick:
            study = study.quick()
        arms = [Arm.parse(key) for key in options.only or study.arms]
        folder = _prepare(study, options)
    except (ValueError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    seeds = options.seeds if options.seeds is not None else list(study.seeds)
    for seed in seeds:
        for arm in arms:
            path = folder / "cells" / f"seed{seed}_{arm.key}.json"
            if path.exists():
                continue
            if run_cell is None:
                # Not before: a report of finished cells needs no TensorFlow.
                with quiet_import():
                    from experiments._synthesis.cells import run_cell

            _say(f"seed {seed}: {arm.key}")
            cell = run_cell(study, arm, seed, options.part)
            write_json(path, cell, mode=PUBLIC)
            _say(f"seed {seed}: {arm.key} took {cell['seconds']:.0f} s")
            write_report(study, folder, options)
    write_report(study, folder, options)
    _say(f"wrote {folder / 'results.md'}")
    return 0


def write_report(study: Study, folder: Path, options: argparse.Namespace) -> None:
    """Writes results.json, results.md and the plot from every cell in the folder."""
    cells = [
        json.loads(path.read_text(encoding="utf-8"))
        for path in sorted((folder / "cells").glob("*.json"))
    ]
    if not cells:
        return
    results = report.results(study, cells, quick=options.quick, part=options.part)
    write_json(folder / "results.json", results, mode=PUBLIC)
    report.write_markdown(folder / "results.md", results)
    report.write_plot(folder / "accuracy.png", results)


def _options(study: Study, arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=f"python -m experiments.{study.name}", description=study.title
    )
    parser.add_argument("--quick", action="store_true", help="smallest sizes")
    parser.add_argument(
        "--seeds", type=int, nargs="+", metavar="N", help="one run of every arm a seed"
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path(f"runs/{study.name}"),
        help="folder of the run; given again, the run goes on",
    )
    parser.add_argument(
        "--part",
        choices=tuple(PART_NAMES),
        default="test",
        help="what classifiers are tested on: S3, or S2 for tuning",
    )
    parser.add_argument(
        "--only", nargs="+", metavar="ARM", help=f"some of {' '.join(study.arms)}"
    )
    return parser.parse_args(arguments)


def _prepare(study: Study, options: argparse.Namespace) -> Path:
    """Checks data and folder before any work; several runs may share a folder."""
    from experiments._synthesis.measures import public_model
    from tfpriv import datasets
    from tfpriv.datasets.registry import data_folder

    folder: Path = options.output
    settings: dict[str, Any] = {**study.to_json(), "part": options.part}
    settings = json.loads(json.dumps(settings))
    kept = folder / "settings.json"
    folder.mkdir(parents=True, exist_ok=True)
    if kept.exists():
        saved = json.loads(kept.read_text(encoding="utf-8"))
        changed = [key for key in settings if saved.get(key) != settings[key]]
        if changed:
            raise InputError(
                f"Expected {folder} to hold a run of these settings, received one "
                f"of another {changed[0]}. Choose another --output."
            )
    elif any(folder.iterdir()):
        raise InputError(
            f"Expected an empty folder, received {folder}. Choose another --output."
        )
    datasets.read(study.dataset)
    public_model(data_folder())
    (folder / "cells").mkdir(exist_ok=True)
    write_json(kept, settings, mode=PUBLIC)
    return folder


def _say(line: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {line}\n")
    sys.stderr.flush()
