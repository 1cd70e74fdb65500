"""Figures 3 and 4, and the attacks, as pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from experiments._synthesis.figures import Interval
from experiments.dp_seqgan import figures
from experiments.dp_seqgan.settings import ARMS, ORIGINAL
from tfpriv._files import PUBLIC, atomic_write

Found = dict[str, Any]
NAMES = ("attacks.png", "accuracy.png", "convergence.png")


def write(folder: Path, found: Found) -> list[str]:
    """Draws what there are cells for; returns the names of the files."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    written = []
    for name, draw in zip(NAMES, (_attacks, _accuracy, _convergence), strict=True):
        figure, axes = plt.subplots(figsize=(8.0, 4.6), layout="constrained")
        if draw(axes, found):
            with atomic_write(folder / name, mode=PUBLIC, binary=True) as file:
                figure.savefig(file, format="png", dpi=150)
            written.append(name)
        plt.close(figure)
    return written


def _attacks(axes: Any, found: Found) -> bool:
    """Pooled AUC of every attack, an arm a colour."""
    cells = found["cells"]
    attacked = [arm for arm in figures.arms(cells) if arm != ORIGINAL]
    scores = {arm: figures.pooled(cells, arm) for arm in attacked}
    names = list(dict.fromkeys(s.name for one in scores.values() for s in one))
    if not names:
        return False
    for number, (arm, one) in enumerate(scores.items()):
        shift = (number - (len(scores) - 1) / 2) * 0.11
        places = [names.index(s.name) + shift for s in one]
        values = [s.auc.value for s in one]
        ends = np.array(
            [[s.auc.value - s.auc.low, s.auc.high - s.auc.value] for s in one]
        ).T
        axes.errorbar(
            values,
            places,
            xerr=ends,
            fmt="o",
            markersize=4,
            capsize=2,
            color=f"C{number}",
            label=ARMS[arm].title,
        )
    axes.axvline(0.5, color="grey", linewidth=1)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlabel("AUC, pooled; intervals hold for all attacks on an arm together")
    axes.legend(fontsize="small")
    return True


def _accuracy(axes: Any, found: Found) -> bool:
    """Bars of the RNN and the CNN, the published figures as marks."""
    cells, published = found["cells"], found["published"]["accuracy"]
    shown = figures.arms(cells)
    if not shown:
        return False
    for number, name in enumerate(("RNN", "CNN")):
        intervals = [
            Interval.of(
                c["metrics"][f"accuracy/{name}"] for c in figures.of_arm(cells, arm)
            )
            for arm in shown
        ]
        places = np.arange(len(shown)) + 0.36 * (number - 0.5)
        axes.bar(
            places,
            [i.mean for i in intervals],
            0.34,
            # Of one seed there is none, and NaN draws none.
            yerr=[i.half for i in intervals],
            capsize=3,
            color=f"C{number}",
            label=name,
        )
        marks = [
            (place, published[arm][name])
            for place, arm in zip(places, shown, strict=True)
            if arm in published
        ]
        if marks:
            axes.plot(
                *zip(*marks, strict=True), "k_", markersize=22, label=_once(number)
            )
    labels = [ARMS[arm].title.replace(", ", ",\n") for arm in shown]
    axes.set_xticks(range(len(shown)), labels, fontsize="small")
    axes.set_ylabel("accuracy on S3")
    axes.set_ylim(0.5, 1.05)
    axes.legend(fontsize="small", loc="upper center", ncols=3)
    return True


def _once(number: int) -> str | None:
    return "published" if number == 0 else None


def _convergence(axes: Any, found: Found) -> bool:
    """Accuracy of the RNN after each pass over as many rows as S1 has."""
    cells = found["cells"]
    drawn = False
    for number, arm in enumerate(figures.arms(cells)):
        kind = "all rows" if arm == ORIGINAL else "rows of S1"
        curves = [
            c["convergence"][kind]["accuracy"]
            for c in figures.of_arm(cells, arm)
            if kind in c["convergence"]
        ]
        if not curves:
            continue
        # Seeds have nearly the same number of rows, so of passes.
        shortest = min(map(len, curves))
        mean = np.mean([curve[:shortest] for curve in curves], axis=0)
        passes = np.arange(1, shortest + 1)
        axes.plot(passes, mean, "o-", color=f"C{number}", label=ARMS[arm].title)
        drawn = True
    if not drawn:
        return False
    axes.set_xlabel("passes over as many rows as S1 has")
    axes.set_ylabel("accuracy of the RNN on S3")
    axes.legend(fontsize="small")
    return True
