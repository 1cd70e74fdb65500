"""The plots: methods, certified releases, and the front of RMAT."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.rmat_tables import figures
from experiments.rmat_tables.figures import Row
from experiments.rmat_tables.settings import DATASETS, TITLES, Arm, Settings
from tfpriv._files import PUBLIC, atomic_write
from tfpriv.accounting import LaplaceCertificate

_METHODS = ("none", "dpnr", "ads", "cape", "rmat")
_AXIS_AUC = "AUC of the worst fresh attacker"
_AXIS_TASK = "task macro-F1"


def write_plots(folder: Path, found: dict[str, Any]) -> list[str]:
    """Writes those plots for which there are figures; returns their file names."""
    import matplotlib

    matplotlib.use("Agg")
    settings = Settings(**found["settings"])
    rows = figures.rows_of(found["cells"], settings)
    made = {
        "methods.png": _methods(rows),
        "certified.png": _certified(rows, settings),
        "front.png": _front(rows, settings),
    }
    written = []
    for name, figure in made.items():
        if figure is None:
            continue
        with atomic_write(folder / name, mode=PUBLIC, binary=True) as file:
            figure.savefig(file, format="png", dpi=150)
        written.append(name)
        _close(figure)
    return written


def _close(figure: Any) -> None:
    import matplotlib.pyplot as plt

    plt.close(figure)


def _panels(datasets: Sequence[str]) -> tuple[Any, Sequence[Any]]:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        1,
        len(datasets),
        figsize=(4.2 * len(datasets) + 0.6, 4.2),
        layout="constrained",
        squeeze=False,
    )
    for axis, dataset in zip(axes[0], datasets, strict=True):
        axis.set_title(DATASETS[dataset], fontsize=10)
        axis.grid(alpha=0.3)
    return figure, axes[0]


def _methods(rows: Sequence[Row]) -> Any:
    """Task over leakage, a panel a data set."""
    datasets = [
        d
        for d in figures.datasets_of(rows)
        if any(figures.worst_auc(rows, d, method).n for method in _METHODS)
    ]
    if not datasets:
        return None
    figure, axes = _panels(datasets)
    for axis, dataset in zip(axes, datasets, strict=True):
        for place, method in enumerate(_METHODS):
            auc = figures.worst_auc(rows, dataset, method)
            score = figures.task(rows, dataset, method)
            if auc.n:
                axis.errorbar(
                    auc.mean,
                    score.mean,
                    xerr=auc.half,
                    yerr=score.half,
                    fmt="o",
                    capsize=3,
                    color=f"C{place}",
                    label=TITLES[method],
                )
        axis.axvline(0.5, color="grey", linestyle=":")
        axis.set(xlabel=_AXIS_AUC, ylabel=_AXIS_TASK)
        axis.legend(fontsize=8)
    return figure


def _certified(rows: Sequence[Row], settings: Settings) -> Any:
    """Task over the certified epsilon, beside the label at random."""
    epsilons = settings.certified_epsilons
    styles = {"rr": "k--s", "code": "C4-o", "l1": "C5-v"}
    datasets = [
        d
        for d in figures.datasets_of(rows)
        if any(figures.task(rows, d, f"{m}@{e:g}").n for m in styles for e in epsilons)
    ]
    if not datasets:
        return None
    figure, axes = _panels(datasets)
    for axis, dataset in zip(axes, datasets, strict=True):
        for method, style in styles.items():
            scores = {
                e: figures.task(rows, dataset, f"{method}@{e:g}") for e in epsilons
            }
            there = {e: score for e, score in scores.items() if score.n}
            if there:
                axis.errorbar(
                    list(there),
                    [score.mean for score in there.values()],
                    yerr=[score.half for score in there.values()],
                    fmt=style,
                    capsize=3,
                    label=TITLES[method],
                )
        unprotected = figures.task(rows, dataset, "none")
        if unprotected.n:
            axis.axhline(
                unprotected.mean, color="C0", linestyle=":", label=TITLES["none"]
            )
        axis.set_xscale("log", base=2)
        axis.set_xticks(epsilons, [f"{e:g}" for e in epsilons])
        axis.set(xlabel="certified epsilon of one release", ylabel=_AXIS_TASK)
        axis.legend(fontsize=8)
    return figure


def _front(rows: Sequence[Row], settings: Settings) -> Any:
    """Task over leakage: colour is epsilon, form lambda, filling mu."""
    dataset = settings.front_dataset
    keys = [k for k in settings.front() if figures.worst_auc(rows, dataset, k).n]
    if not keys:
        return None
    figure, (axis,) = _panels([dataset])
    figure.set_size_inches(7.5, 4.6)
    for key in keys:
        arm = Arm.parse(key)
        auc = figures.worst_auc(rows, dataset, key)
        score = figures.task(rows, dataset, key)
        colour = f"C{settings.front_epsilons.index(arm.epsilon)}"
        form = "osD^v"[settings.front_weights.index(arm.adversary_weight) % 5]
        filled = arm.mask_rate == settings.front_mask_rates[0]
        certificate = figures.select(rows, dataset, key)[0]["certificate"]
        record = LaplaceCertificate.from_json(certificate).record_epsilon
        axis.errorbar(
            auc.mean,
            score.mean,
            xerr=auc.half,
            yerr=score.half,
            fmt=form,
            color=colour,
            markerfacecolor=colour if filled else "white",
            elinewidth=0.6,
            label=f"epsilon {arm.epsilon:g} (certified {record:.3g}), mu "
            f"{arm.mask_rate:g}, lambda {arm.adversary_weight:g}",
        )
    axis.axvline(0.5, color="grey", linestyle=":")
    axis.set(xlabel=_AXIS_AUC, ylabel=_AXIS_TASK)
    axis.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure
