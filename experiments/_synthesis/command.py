"""The command of a study: which cells to run, where they lie, what to make of them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from experiments._cells.cell_folder import Cell, CellFolder
from experiments._cells.options import make_parser
from experiments._cells.progress import say
from experiments._synthesis import report
from experiments._synthesis.study import PART_NAMES, Arm, Study
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
        _check_data(study)
        settings = {**study.to_json(), "part": options.part}
        folder = CellFolder(options.output, settings)
    except (ValueError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    run_cell = run_cell or _run_cell
    cells = [
        Cell(
            f"seed{seed}_{arm.key}",
            f"seed {seed}: {arm.key}",
            partial(run_cell, study, arm, seed, options.part),
        )
        for seed in options.seeds or study.seeds
        for arm in arms
    ]
    folder.complete(cells, partial(write_report, study, folder, options))
    write_report(study, folder, options)
    say(f"wrote {folder.path / 'results.md'}")
    return 0


def write_report(study: Study, folder: CellFolder, options: argparse.Namespace) -> None:
    """Writes results.json, results.md and the plot from every cell in the folder."""
    cells = folder.finished()
    if not cells:
        return
    results = report.results(study, cells, quick=options.quick, part=options.part)
    write_json(folder.path / "results.json", results, mode=PUBLIC)
    report.write_markdown(folder.path / "results.md", results)
    report.write_plot(folder.path / "accuracy.png", results)


def _run_cell(study: Study, arm: Arm, seed: int, part: str) -> dict[str, Any]:
    # Not before: a report of finished cells needs no TensorFlow.
    with quiet_import():
        from experiments._synthesis.cells import run_cell

    return run_cell(study, arm, seed, part)


def _options(study: Study, arguments: Sequence[str] | None) -> argparse.Namespace:
    arms = f"some of {' '.join(study.arms)}"
    parser = make_parser(study.name, study.title, arms=arms)
    parser.add_argument(
        "--part",
        choices=tuple(PART_NAMES),
        default="test",
        help="what classifiers are tested on: S3, or S2 for tuning",
    )
    return parser.parse_args(arguments)


def _check_data(study: Study) -> None:
    """Raises before any work where the data set or the public text is not there."""
    from experiments._synthesis.measures import public_model
    from tfpriv import datasets
    from tfpriv.datasets.registry import data_folder

    datasets.read(study.dataset)
    public_model(data_folder())
