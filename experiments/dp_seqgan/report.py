"""results.json and results.md from every cell in a folder."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments._cells.cell_folder import CellFolder
from experiments._synthesis.figures import Interval
from experiments.dp_seqgan import figures, plots, tables
from experiments.dp_seqgan.explanation import explanation
from experiments.dp_seqgan.settings import ARMS, CANARY_ARMS, Settings
from tfpriv._files import PUBLIC, atomic_write, write_json

REMARKS = (
    "Paper mode and SeqGAN have SeqGAN's sizes and a shorter schedule: 40 epochs of "
    "pre-training against 120, 20 rounds with 8 rollouts, 727 discriminator steps, a "
    "discriminator of 4 widths x 64 filters, and a tenth of its rate of policy "
    "gradient, .001; the arm seqgan_full has the full schedule at .01.",
    "The paper's split, its duplicates, the sizes of its networks, its shadows and its "
    "number of runs are not printed; here exact duplicates are removed first.",
    "LiRA's shadows are real ones: the attacked discriminator's own training (with "
    "fresh DP noise where it had some) on random halves of S1 and S2.",
    "Attacks on text see the released rows alone, with S3 for reference; those on "
    "networks see the discriminator or the generator, which no release contains.",
)


def write(settings: Settings, folder: CellFolder, *, quick: bool) -> None:
    """Writes results.json, results.md and the plots, if there is any cell."""
    cells = folder.finished()
    if not cells:
        return
    found = results(settings, cells, quick=quick)
    write_json(folder.path / "results.json", found, mode=PUBLIC)
    pictures = plots.write(folder.path, found)
    with atomic_write(folder.path / "results.md", mode=PUBLIC) as file:
        file.write(markdown(found, pictures))


def results(
    settings: Settings, cells: Sequence[dict[str, Any]], *, quick: bool
) -> dict[str, Any]:
    """Everything measured, and what the tables and the plots are made of."""
    order = {arm: i for i, arm in enumerate([*ARMS, *CANARY_ARMS])}
    cells = sorted(cells, key=lambda c: (order[c["arm"]], c["seed"]))
    seeds = sorted({cell["seed"] for cell in cells})
    published = json.loads(
        (Path(__file__).parent / "published.json").read_text(encoding="utf-8")
    )
    return {
        "experiment": "dp_seqgan",
        "title": "DP-SeqGAN on YouTube spam: table 1, figures 3 and 4",
        "command": "python -m experiments.dp_seqgan"
        + (" --quick" if quick else "")
        + f" --seeds {' '.join(map(str, seeds))} --output DIR",
        "quick": quick,
        "seeds": seeds,
        "settings": settings.to_json(),
        "remarks": list(REMARKS),
        "published": published,
        "targets": figures.targets(cells, published),
        "machine": sorted({cell["machine"] for cell in cells}),
        "versions": cells[-1]["versions"],
        "cells": cells,
    }


def markdown(found: dict[str, Any], pictures: Sequence[str]) -> str:
    """The tables and pictures."""
    warning = " (quick run: the figures mean nothing)" if found["quick"] else ""
    seeds = ", ".join(map(str, found["seeds"]))
    cells, printed = found["cells"], found["published"]
    lines = [
        f"# {found['title']}",
        "",
        f"Seeds: {seeds}{warning}. A seed is a split, networks and noise of its own; "
        "mean and 95 % interval (Student's) over seeds. Epsilon at delta "
        f"{printed['delta']:g}; published: {printed['epsilon']:.0e} for the "
        f"discriminator. Published figures: {printed['source']}.",
        "",
        *tables.attack_accuracy(found),
        *tables.every_attack(found),
        *tables.usefulness(found),
        *tables.augmentation(found),
        *tables.convergence(found),
        *tables.regularisation(found),
        *explanation(found),
        *tables.canaries(found),
        *tables.targets(found),
        *(f"- {remark}" for remark in found["remarks"]),
        f"- {_times(cells)}",
        "",
        *(f"![{name.removesuffix('.png')}]({name})" for name in pictures),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _times(cells: Sequence[dict[str, Any]]) -> str:
    shown = [
        f"{arm} {Interval.of(c['cpu_seconds'] / 60 for c in own).mean:.1f} min"
        for arm in [*figures.arms(cells), *CANARY_ARMS]
        if (own := figures.of_arm(cells, arm))
    ]
    return (
        "Processor time of a cell, since it was taken up again where a run was broken "
        f"off, mean over seeds: {', '.join(shown)}."
    )
