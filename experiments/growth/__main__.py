"""What reading, encoding, sampling and near-copy search cost from 1e3 to 1e6 rows.

    python -m experiments.growth --output runs/growth

Run again on the same folder it goes on where it was. About half an hour on two cores;
`--quick` takes small numbers of rows and its figures mean nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

from experiments._cells.cell_folder import Cell, CellFolder
from experiments._cells.options import make_parser
from experiments._cells.progress import say
from experiments.growth import report
from experiments.growth.measure import measure, prepare
from experiments.growth.tasks import TASKS
from tfpriv._errors import InputError

ROWS = (1_000, 10_000, 100_000, 1_000_000)
QUICK_ROWS = (50, 200)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the cells that are missing, then writes the report of all there are."""
    parser = make_parser(
        "growth",
        __doc__.splitlines()[0],
        arms=f"some of {' '.join(TASKS)}; all, if not given",
    )
    parser.set_defaults(seeds=[0])
    options = parser.parse_args(arguments)
    sizes = QUICK_ROWS if options.quick else ROWS
    try:
        chosen = _tasks(options.only)
        settings: dict[str, Any] = {"rows": sizes, "quick": options.quick}
        folder = CellFolder(options.output, settings)
    except (InputError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    work = folder.path / "work"
    prepare(work)
    cells = [
        Cell(
            f"{task}_{rows}_seed{seed}",
            f"{TASKS[task].title}, {rows:,} rows, seed {seed}",
            partial(measure, task, rows, seed, work),
        )
        for seed in options.seeds
        for rows in sizes
        for task in chosen
    ]
    write_report = partial(report.write, folder, quick=options.quick)
    folder.complete(cells, write_report)
    write_report()
    say(f"wrote {folder.path / 'results.md'}")
    return 0


def _tasks(only: Sequence[str] | None) -> list[str]:
    for name in only or ():
        if name not in TASKS:
            raise InputError(
                f"Expected --only to name some of {', '.join(TASKS)}, received "
                f"{name!r}."
            )
    return list(dict.fromkeys(only or TASKS))


if __name__ == "__main__":
    raise SystemExit(main())
