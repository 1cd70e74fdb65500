"""The table and the plot: what more rows cost."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from experiments._cells.cell_folder import CellFolder
from experiments.growth.tasks import MODEL, QUERIES, TASKS
from tfpriv._files import PUBLIC, atomic_write, write_json

Json = dict[str, Any]
STEP = "step"
# A row may cost so much more among ten times as many.
_LINEAR, _CONSTANT = 1.5, 1.25
HOW = f"""
Each line is a process of its own: CPU time of all its threads and peak resident memory,
as the operating system counts them, start-up and imports included. "A row more" is the
difference to the line above, divided by the rows between. `tfpriv encode` is that of
saved_models/{MODEL.name}; near copies are looked for {QUERIES:,} texts, nearest row and
longest copied run, both exact; a private step is the median one of a TextCNN on Poisson
batches of 64.

| task | rows | CPU, s | a row more, us | peak, MiB | a row more, bytes |
|---|---|---|---|---|---|
"""


def write(folder: CellFolder, *, quick: bool) -> None:
    """Writes results.json, results.md and growth.png, if there is any cell."""
    cells = folder.finished()
    if not cells:
        return
    found = results(cells, quick=quick)
    write_json(folder.path / "results.json", found, mode=PUBLIC)
    write_plot(folder.path / "growth.png", found["summary"])
    with atomic_write(folder.path / "results.md", mode=PUBLIC) as file:
        file.write(markdown(found))


def results(cells: Sequence[Json], *, quick: bool) -> Json:
    """Everything measured, and what the table is made of."""
    rows = summary(cells)
    return {
        "experiment": "growth",
        "title": "Growth: time and memory over the number of rows",
        "command": "python -m experiments.growth --output DIR",
        "quick": quick,
        "seeds": sorted({cell["seed"] for cell in cells}),
        "machine": cells[-1]["machine"],
        "versions": cells[-1]["versions"],
        "summary": rows,
        "targets": targets(rows),
        "cells": list(cells),
    }


def summary(cells: Sequence[Json]) -> list[Json]:
    """One row a task and number of rows: medians over seeds, and what a row adds."""
    lines: list[Json] = []
    for task in TASKS:
        of_task = [cell for cell in cells if cell["task"] == task]
        sizes = sorted({cell["rows"] for cell in of_task})
        for rows in sizes:
            taken = [cell for cell in of_task if cell["rows"] == rows]
            line = {"task": task, "rows": rows}
            for key in ("cpu_seconds", "peak_mib"):
                line[key] = float(np.median([cell[key] for cell in taken]))
            if task == STEP:
                line["step_ms"] = float(
                    np.median([cell["found"]["step_ms"] for cell in taken])
                )
            lines.append(line)
    for before, line in pairwise(lines):
        if line["task"] == before["task"]:
            more = line["rows"] - before["rows"]
            added = line["cpu_seconds"] - before["cpu_seconds"]
            memory = line["peak_mib"] - before["peak_mib"]
            line["row_us"] = 1e6 * added / more
            line["row_bytes"] = 2**20 * memory / more
    return lines


def targets(lines: Sequence[Json]) -> list[Json]:
    """Is time linear, and a private step's independent of the number of records?

    Judged between the two largest numbers of rows, where start-up hides nothing.
    """
    found = []
    for task, (title, _) in TASKS.items():
        of_task = [line for line in lines if line["task"] == task]
        if task == STEP and len(of_task) > 1:
            ratio = of_task[-1]["step_ms"] / of_task[0]["step_ms"]
            what = f"{title}: {of_task[-1]['rows']:,} records against the fewest"
            found.append(_target(what, ratio, _CONSTANT))
        elif len(of_task) > 2 and of_task[-2]["row_us"] > 0:
            ratio = of_task[-1]["row_us"] / of_task[-2]["row_us"]
            what = f"{title}: a row more, up to {of_task[-1]['rows']:,} against before"
            found.append(_target(what, ratio, _LINEAR))
    return found


def _target(what: str, ratio: float, most: float) -> Json:
    return {
        "what": what,
        "goal": f"<= {most} times",
        "value": f"{ratio:.2f}",
        "met": bool(ratio <= most),
    }


def markdown(found: Json) -> str:
    """The table, the targets and the plot."""
    warning = "**A quick run: the figures mean nothing.** " if found["quick"] else ""
    versions = ", ".join(f"{k} {v}" for k, v in found["versions"].items())
    text = f"# {found['title']}\n\n{warning}{found['machine']}; {versions}.\n{HOW}"
    for line in found["summary"]:
        cells = [
            TASKS[line["task"]].title,
            f"{line['rows']:,}",
            f"{line['cpu_seconds']:.1f}",
            _shown(line, "row_us"),
            f"{line['peak_mib']:.0f}",
            _shown(line, "row_bytes"),
        ]
        if line["task"] == STEP:
            cells[2:4] = [f"{line['step_ms']:.1f} ms a step", ""]
        text += f"| {' | '.join(cells)} |\n"
    text += "\n| target | goal | value | met |\n|---|---|---|---|\n"
    for target in found["targets"]:
        cells = [target["what"], target["goal"], target["value"]]
        text += f"| {' | '.join(cells)} | {'yes' if target['met'] else '**no**'} |\n"
    return f"{text}\n![Time and memory over rows](growth.png)\n"


def _shown(line: Json, key: str) -> str:
    return f"{line[key]:.3g}" if key in line else ""


def write_plot(path: Path, lines: Sequence[Json]) -> None:
    """CPU time and peak memory over rows, on log axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.5), layout="constrained")
    times, memory = figure.subplots(1, 2)
    for task, (title, _) in TASKS.items():
        of_task = [line for line in lines if line["task"] == task]
        if not of_task:
            continue
        rows = [line["rows"] for line in of_task]
        if task == STEP:
            seconds = [line["step_ms"] / 1e3 for line in of_task]
        else:
            seconds = [line["cpu_seconds"] for line in of_task]
        times.plot(rows, seconds, "o-", label=title.replace("`", ""))
        memory.plot(rows, [line["peak_mib"] for line in of_task], "o-")
    for axes, name in ((times, "CPU time, s"), (memory, "peak memory, MiB")):
        axes.set(xscale="log", yscale="log", xlabel="rows", ylabel=name)
        axes.grid(visible=True, which="major", alpha=0.3)
    figure.legend(loc="outside lower center", ncols=3, fontsize="small")
    with atomic_write(path, mode=PUBLIC, binary=True) as file:
        figure.savefig(file, format="png", dpi=120)
