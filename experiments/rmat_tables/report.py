"""results.json and results.md; see `tables.py` and `plots.py`."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from experiments.rmat_tables import figures, plots, tables
from experiments.rmat_tables.figures import Row
from experiments.rmat_tables.settings import (
    DATASETS,
    TABLE_ARMS,
    Settings,
)
from tfpriv._files import PUBLIC, atomic_write

TITLE = "RMAT: text representations without the private attribute"

write_plots: Callable[[Path, dict[str, Any]], list[str]] = plots.write_plots


def results(
    settings: Settings,
    cells: Sequence[Row],
    sizes: Sequence[Row],
    *,
    available: Sequence[str],
    quick: bool,
) -> dict[str, Any]:
    """Everything measured, and what tables and plots are made of."""
    published = Path(__file__).with_name("published.json")
    seeds = sorted({cell["seed"] for cell in cells})
    order = {name: place for place, name in enumerate(DATASETS)}
    arms = {key: place for place, key in enumerate(TABLE_ARMS)}
    cells = sorted(
        cells,
        key=lambda c: (
            order[c["dataset"]],
            arms.get(c["arm"], 99),
            c["arm"],
            c["seed"],
        ),
    )
    rows = figures.rows_of(cells, settings)
    quickly = " --quick" if quick else ""
    return {
        "experiment": "rmat_tables",
        "title": TITLE,
        "command": f"python -m experiments.rmat_tables{quickly} --seeds "
        f"{' '.join(map(str, seeds))} --output DIR",
        "quick": quick,
        "seeds": seeds,
        "settings": settings.to_json(),
        "published": json.loads(published.read_text(encoding="utf-8")),
        "sizes": sorted(sizes, key=lambda found: order[found["dataset"]]),
        "available": list(available),
        "targets": figures.targets(rows, settings),
        "machine": sorted({cell["machine"] for cell in cells}),
        "versions": cells[-1]["versions"] if cells else {},
        "labels_at_random": [
            row for row in rows if row["arm"].startswith(("rr@", "pair@"))
        ],
        "cells": cells,
    }


def write_markdown(path: Path, found: dict[str, Any], pictures: Sequence[str]) -> None:
    """The tables beside the published figures."""
    settings = Settings(**found["settings"])
    rows = figures.rows_of(found["cells"], settings)
    seeds = ", ".join(map(str, found["seeds"])) or "none yet"
    warning = " (quick run: the figures mean nothing)" if found["quick"] else ""
    lines = [
        f"# {found['title']}",
        "",
        f"Seeds: {seeds}{warning}. Macro-F1 in per cent. Figures are means over seeds; "
        "+- and brackets are 95 % intervals over test rows and seeds. Trained on the "
        "official training part, tested on the official test part, both Wizards on "
        "validation and test together. Nothing was selected on either.",
        "",
        *tables.sizes(found),
        *tables.private(rows, found),
        *tables.task(rows, found),
        *tables.certified(rows, settings),
        *tables.second(rows, settings),
        *tables.front(rows, settings),
        *_targets(found),
        *_remarks(found, settings),
    ]
    for picture in pictures:
        lines += [f"![{picture.partition('.')[0]}]({picture})", ""]
    with atomic_write(path, mode=PUBLIC) as file:
        file.write("\n".join(lines).rstrip() + "\n")


def _targets(found: dict[str, Any]) -> list[str]:
    rows = [
        [t["what"], t["goal"], t["value"], "met" if t["met"] else "**missed**"]
        for t in found["targets"]
    ]
    if not rows:
        return []
    return ["## Targets", "", *tables.table(["what", "goal", "measured", ""], rows)]


def _remarks(found: dict[str, Any], settings: Settings) -> list[str]:
    weights = settings.adversary_weights
    model = settings.preset or "MiniLM (6 layers, width 384, mean pooling)"
    there = {cell["dataset"] for cell in found["cells"]}
    epochs = ", ".join(
        f"{settings.epochs_of.get(name, settings.epochs)} on {title}"
        for name, title in DATASETS.items()
        if name in there
    )
    lines = [
        f"- BERT: {model}. epochs: {epochs or 'none'}. Batches of "
        f"{settings.batch_size} texts of like length, AdamW at "
        f"{settings.learning_rate:g} (CAPE, its BERT frozen, "
        f"{settings.cape_learning_rate:g}), reached over the first "
        f"{settings.warmup:.0%} of the steps, then falling to 0 as a cosine.",
        f"- DPNR, CAPE and RMAT in the papers' reading: min-max and Laplace noise of "
        f"scale 1/{settings.nominal_epsilon:g} on every coordinate; mask rate "
        f"{settings.mask_rate:g} in DPNR and RMAT. lambda: RMAT {weights['rmat']:g}, "
        f"ADS {weights['ads']:g}, CAPE {weights['cape']:g}. Wu and Luo print neither "
        "epsilon nor mu nor lambda, so that theirs may differ.",
        "- Certified releases have no mask, which buys nothing at record level: "
        f"mask rate {settings.certified_mask_rate:g}, lambda "
        f"{settings.certified_adversary_weight:g}.",
        "- A certificate covers the text that is encoded, not the texts that the "
        "encoder was trained on.",
        "- Sentiment is VADER's of the text itself, so that a label is a function of "
        "the words. Genders are those of the page or the topic.",
        "- Test rows of Wizard that belong to one dialogue are resampled as if they "
        "were independent: which belong together is not in the files here.",
    ]
    compiled = [c for c in found["cells"] if c.get("jit_compile", True)]
    if compiled:
        lines.append(
            f"- {len(compiled)} of {len(found['cells'])} cells trained the backbone "
            "under XLA, which adds the same sums in another order; the others did not."
        )
    rows = [c for c in found["cells"] if not c.get("whole_gradients")]
    if rows:
        lines.append(
            f"- {len(rows)} of {len(found['cells'])} cells were trained by AdamW on "
            "the rows of the word embeddings' gradient, which Keras squares before "
            "it adds up those of one word; the others on whole gradients."
        )
    diverged = [c for c in found["cells"] if c.get("diverged")]
    if diverged:
        names = ", ".join(f"{c['dataset']} {c['arm']} {c['seed']}" for c in diverged)
        lines.append(f"- Training diverged and nothing was measured: {names}.")
    seconds: dict[str, list[float]] = {}
    for cell in found["cells"]:
        seconds.setdefault(cell["dataset"], []).append(cell["seconds"])
    for dataset, values in seconds.items():
        mean = sum(values) / len(values)
        lines.append(f"- {DATASETS[dataset]}: {len(values)} cells, {mean:.0f} s each.")
    return [*lines, ""]
