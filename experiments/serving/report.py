"""Medians, quartiles and ratios of the turns, and one table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tfpriv._files import PUBLIC, atomic_write

BARE = "backbone alone, ids in"
TEXT = "backbone alone, text in"
OURS = "tfpriv `encode`, text in"
GOAL = 0.95

_HOW = """
All are SavedModels of one BERT (MiniLM, 32 pieces), loaded by TensorFlow in one
process; contestants take turns, in a new order each round. The first two are the
backbone and the mean of its output, exported without tfpriv: from ids that were made
before, and from text with the same tokenizer in the graph. The third is tfpriv's
default release of a text: tokenizer, mask, backbone, two dense layers, randomised
response at epsilon 4. Latency of a batch and throughput are medians, quartiles in
brackets; the ratio is that of throughputs, taken within each round. First turns do not
count.

| batch | contestant | latency, ms | texts/s | throughput, times "ids in" | \
times "text in" | rounds |
|---|---|---|---|---|---|---|
"""


def summary(measurements: Sequence[dict]) -> list[dict]:
    """One row a batch size and contestant, over all seeds: [low, median, high]."""
    taken: dict[int, dict[str, list[float]]] = {}
    for m in measurements:
        runs = taken.setdefault(m["batch"], {})
        runs.setdefault(m["contestant"], []).extend(m["seconds"])
    return [
        {
            "batch": batch,
            "contestant": name,
            "rounds": len(values),
            "ms": _quartiles(1e3 * np.array(values)),
            "texts_per_second": _quartiles(batch / np.array(values)),
            "of_ids": _quartiles(np.divide(runs[BARE], values)),
            "of_text": _quartiles(np.divide(runs[TEXT], values)),
        }
        for batch, runs in taken.items()
        for name, values in runs.items()
    ]


def targets(rows: Sequence[dict]) -> list[dict]:
    """Whether `encode` has the throughput that is aimed at, batch by batch."""
    return [
        {
            "what": f"throughput of `encode`, times the bare backbone's from {kind}, "
            f"batch {row['batch']}",
            "goal": f">= {GOAL}",
            "value": f"{row[key][1]:.3f}",
            "met": bool(row[key][1] >= GOAL),
        }
        for row in rows
        if row["contestant"] == OURS
        for kind, key in (("ids", "of_ids"), ("text", "of_text"))
    ]


def write(folder: Path, found: dict) -> None:
    """Writes results.md."""
    warning = "**A quick run: the figures mean nothing.** " if found["quick"] else ""
    versions = ", ".join(f"{k} {v}" for k, v in found["versions"].items())
    text = (
        f"# Serving\n\n{warning}{found['date']}, {found['machine']}, load average "
        f"{found['load_average']}; {versions}; seeds {found['seeds']}.\n{_HOW}"
    )
    for row in found["summary"]:
        keys = ("ms", "texts_per_second", "of_ids", "of_text")
        cells = [_show(row[key]) for key in keys]
        cells = [row["batch"], row["contestant"], *cells, row["rounds"]]
        text += f"| {' | '.join(map(str, cells))} |\n"
    with atomic_write(folder / "results.md", mode=PUBLIC) as file:
        file.write(text)


def _quartiles(values: np.ndarray) -> list[float]:
    return [float(x) for x in np.quantile(values, (0.25, 0.5, 0.75))]


def _show(quartiles: Sequence[float]) -> str:
    low, median, high = (float(f"{x:.3g}") for x in quartiles)
    return f"{median:g} ({low:g}, {high:g})"
