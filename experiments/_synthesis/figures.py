"""Means, intervals and targets from the cells of a study: plain numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from experiments._synthesis.study import ORIGINAL, Study

Cell = dict[str, Any]


class Interval(NamedTuple):
    """A mean over seeds and half the width of its 95 % interval (Student's)."""

    mean: float
    half: float
    n: int

    @classmethod
    def of(cls, values: Iterable[float]) -> Interval:
        """NaN for no values; half is NaN for one."""
        from scipy import stats

        values = list(values)
        n = len(values)
        if not n:
            return cls(math.nan, math.nan, 0)
        half = math.nan
        if n > 1:
            half = float(stats.t.ppf(0.975, n - 1) * np.std(values, ddof=1) / n**0.5)
        return cls(float(np.mean(values)), half, n)

    def show(self, digits: int = 3, *, signed: bool = False) -> str:
        """As text: "0.912 +- 0.010", or "-" for nothing."""
        if not self.n:
            return "-"
        mean = f"{self.mean:{'+' if signed else ''}.{digits}f}"
        return mean if math.isnan(self.half) else f"{mean} +- {self.half:.{digits}f}"


def values(cells: Sequence[Cell], arm: str, metric: str) -> dict[int, float]:
    """Seed -> value; "default@8/seed" is a candidate of an arm."""
    arm, _, candidate = arm.partition("/")
    found = {}
    for cell in cells:
        if cell["arm"] != arm:
            continue
        metrics = cell["metrics"]
        if candidate:
            metrics = cell.get("candidates", {}).get(candidate, {})
        if metric in metrics:
            found[cell["seed"]] = metrics[metric]
    return found


def mean(cells: Sequence[Cell], arm: str, metric: str) -> Interval:
    """Over all seeds that have it."""
    return Interval.of(values(cells, arm, metric).values())


def difference(cells: Sequence[Cell], arm: str, other: str, metric: str) -> Interval:
    """Of `arm` minus `other`, seed by seed: both have the same split."""
    ours, theirs = values(cells, arm, metric), values(cells, other, metric)
    return Interval.of(ours[seed] - theirs[seed] for seed in ours if seed in theirs)


def routes(cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """For each arm with an adversarial part and each label, how often it won.

    Returns:
        dicts of `arm`, `label`, `won`, `of`, and the mean divergence of each
        candidate from the released counts.
    """
    table: dict[tuple[str, str], list[dict]] = {}
    for cell in cells:
        for route in cell.get("routes", ()):
            table.setdefault((cell["arm"], route["label"]), []).append(route)
    rows = []
    for (arm, label), found in sorted(table.items(), key=lambda item: item[0]):
        row: dict[str, Any] = {"arm": arm, "label": label, "of": len(found)}
        row["won"] = sum(route["chosen"] != "seed" for route in found)
        for name in ("seed", "pretrained", "adversarial"):
            known = [r["divergence"][name] for r in found if name in r["divergence"]]
            row[name] = float(np.mean(known)) if known else None
        rows.append(row)
    return rows


def targets(study: Study, cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """What was to come out beside what came out, from the mean over seeds.

    Returns:
        dicts of `what`, `goal` and `value` in words, and `met`; one with no figures
        yet is left out.
    """
    rows: list[dict[str, Any]] = []

    def add(
        what: str, goal: str, interval: Interval, met: bool, digits: int = 3
    ) -> None:
        if interval.n:
            value = interval.show(digits)
            rows.append({"what": what, "goal": goal, "value": value, "met": bool(met)})

    for name, least in study.least.items():
        reached = mean(cells, ORIGINAL, f"accuracy/{name}")
        what = f"{name} on original data: accuracy"
        add(what, f">= {least:g}", reached, reached.mean >= least)
    for name, largest in study.largest_gaps.items():
        gap = difference(cells, ORIGINAL, "default@8", f"accuracy/{name}")
        what = f"{name} at epsilon 8: accuracy below original data"
        add(what, f"<= {largest:g}", gap, gap.mean <= largest)
    for name, aim in study.aims.items():
        reached = mean(cells, "default@8", f"accuracy/{name}")
        what = f"aim: {name} at epsilon 8, the published accuracy at epsilon 4e8"
        add(what, f"> {aim:g}", reached, reached.mean > aim)
    real = mean(cells, ORIGINAL, "perplexity")
    mixed = mean(cells, ORIGINAL, "perplexity/shuffled")
    ours = mean(cells, "default@8", "perplexity")
    if real.n:
        middle = (real.mean + mixed.mean) / 2
        add(
            "text at epsilon 8: perplexity nearer to real text than to shuffled",
            f"< {middle:.0f} ({real.mean:.0f} real, {mixed.mean:.0f} shuffled)",
            ours,
            abs(ours.mean - real.mean) < abs(ours.mean - mixed.mean),
            digits=0,
        )
    return rows
