"""Means, intervals and targets from cells: plain numbers."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from experiments._synthesis.figures import Interval
from experiments.rmat_tables import measures
from experiments.rmat_tables.data import JOINT
from experiments.rmat_tables.settings import DATASETS, TITLES, Settings

Row = dict[str, Any]
BASELINES = ("dpnr", "ads", "cape")
# By how much less a code may score and still count as equal to the label.
_EQUAL = 0.01


class Measured(NamedTuple):
    """A mean over seeds, and half of its 95 % interval over test rows and seeds.

    All seeds are tested on the same rows, so that the variance of the rows is not
    divided by the number of seeds: the squared halves of the two are added.
    """

    mean: float
    half: float
    n: int

    @classmethod
    def of(cls, values: Iterable[float], halves: Iterable[float]) -> Measured:
        """From the value of each seed and half of its interval over test rows."""
        values, halves = list(values), list(halves)
        over_seeds = Interval.of(values)
        if not values:
            return cls(math.nan, math.nan, 0)
        seeds = 0.0 if math.isnan(over_seeds.half) else over_seeds.half
        rows = float(np.mean(np.square(halves)))
        return cls(over_seeds.mean, math.sqrt(rows + seeds**2), len(values))

    def percent(self) -> str:
        """As "86.6 +- 2.1", or "-" for nothing."""
        if not self.n:
            return "-"
        return f"{100 * self.mean:.1f} +- {100 * self.half:.1f}"

    def interval(self) -> str:
        """As "0.512 [0.480, 0.544]", or "-" for nothing."""
        if not self.n:
            return "-"
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"

    @property
    def low(self) -> float:
        """The lower end, cut at 0."""
        return max(self.mean - self.half, 0.0)

    @property
    def high(self) -> float:
        """The upper end, cut at 1."""
        return min(self.mean + self.half, 1.0)


def rows_of(cells: Sequence[Row], settings: Settings) -> list[Row]:
    """One row a release: cells, their certified releases, labels at random.

    Rows of "rr@E" are those of the unprotected classifier's label through randomised
    response; "pair@E" is a label of each task, each at half of E.
    """
    rows = []
    for cell in cells:
        if cell.get("diverged"):
            continue
        about = {key: cell[key] for key in ("dataset", "seed", "floors")}
        for epsilon, release in cell.get("certified", {}).items():
            rows.append({**about, "arm": f"{cell['arm']}@{epsilon}", **release})
        if "task" in cell:
            rows.append(cell)
        if "counts" in cell:
            respond = _label_rows if cell["arm"] == "none" else _pair_rows
            counts = json.dumps(cell["counts"])
            rows += [
                {**about, **respond(counts, epsilon)}
                for epsilon in settings.certified_epsilons
            ]
    return rows


# A report is written after every cell, and simulates all labels at random.
@functools.lru_cache(maxsize=1024)
def _label_rows(counts: str, epsilon: float) -> Row:
    found = json.loads(counts)
    train, test = np.array(found["train"]), np.array(found["test"])
    return {
        "arm": f"rr@{epsilon:g}",
        "task": measures.label_by_response(test.sum((0, 2)), epsilon),
        "told": measures.label_auc(train.sum((1, 2)), test.sum((1, 2)), epsilon),
        "intensity": measures.second_from_label(
            train.sum((0, 1)), test.sum((0, 1)), epsilon
        ),
    }


@functools.lru_cache(maxsize=1024)
def _pair_rows(counts: str, epsilon: float) -> Row:
    test = np.array(json.loads(counts)["test"]).sum(0)
    first, second = np.zeros((2, *[len(test)] * 2), np.int64)
    for place, (sentiment, intensity) in enumerate(JOINT):
        first[:, sentiment] += test[:, :, place].sum(1)
        second[:, intensity] += test[:, :, place].sum(0)
    return {
        "arm": f"pair@{epsilon:g}",
        "task": measures.label_by_response(first, epsilon / 2),
        "intensity": measures.label_by_response(second, epsilon / 2),
    }


def select(rows: Sequence[Row], dataset: str, arm: str) -> list[Row]:
    """The rows of all seeds."""
    return [row for row in rows if (row["dataset"], row["arm"]) == (dataset, arm)]


def task(rows: Sequence[Row], dataset: str, arm: str, name: str = "task") -> Measured:
    """Macro-F1 of the head on "task", of a fresh reader on "reader", or "intensity"."""
    found = [
        row for row in select(rows, dataset, arm) if name in row or name[-1] == "r"
    ]
    if name == "reader":
        scores = [row["task"]["reader"] for row in found if "reader" in row["task"]]
    else:
        scores = [row[name] for row in found]
    return Measured.of(
        [s["macro_f1"] for s in scores], [s.get("half", 0.0) for s in scores]
    )


def attacks(rows: Sequence[Row], dataset: str, arm: str) -> list[Row]:
    """What fresh attackers found, of the seeds where there could be any."""
    found = [row.get("attack", {}) for row in select(rows, dataset, arm)]
    return [attack for attack in found if "worst" in attack]


def worst_auc(rows: Sequence[Row], dataset: str, arm: str) -> Measured:
    """AUC of the worst attacker, its interval adjusted for their number."""
    told = [row["told"] for row in select(rows, dataset, arm) if "told" in row]
    if told:
        return Measured.of([t["auc"] for t in told], [t["half"] for t in told])
    worst = [_worst(attack)["adjusted_auc"] for attack in attacks(rows, dataset, arm)]
    # The interval is cut to [0, 1] and may be lopsided: the longer side counts.
    halves = [max(w["high"] - w["value"], w["value"] - w["low"]) for w in worst]
    return Measured.of([w["value"] for w in worst], halves)


def highest(rows: Sequence[Row], dataset: str, arm: str, metric: str) -> Measured:
    """The highest of all attackers by "macro_f1" or "balanced_accuracy"."""
    best = [
        max((a[metric] for a in attack["attackers"]), key=lambda e: e["value"])
        for attack in attacks(rows, dataset, arm)
    ]
    return Measured.of(
        [b["value"] for b in best], [(b["high"] - b["low"]) / 2 for b in best]
    )


def _worst(attack: Row) -> Row:
    return next(a for a in attack["attackers"] if a["name"] == attack["worst"])


def datasets_of(rows: Sequence[Row]) -> list[str]:
    """Those that have rows, in the order of the tables."""
    there = {row["dataset"] for row in rows}
    return [name for name in DATASETS if name in there]


# --- Targets -----------------------------------------------------------------

_LEAST_UNPROTECTED = {"wizard_as_published": 0.85, "funpedia": 0.90}
_AIMS = {"wizard_as_published": 0.858, "funpedia": 0.912}


def targets(rows: Sequence[Row], settings: Settings) -> list[Row]:
    """What was to come out beside what came out, from means over seeds.

    Returns:
        dicts of `what`, `goal` and `value` in words, and `met`; one with no figures
        yet is left out.
    """
    found: list[Row] = []

    def add(what: str, goal: str, value: str, met: bool) -> None:
        found.append({"what": what, "goal": goal, "value": value, "met": bool(met)})

    for dataset in datasets_of(rows):
        _control_targets(rows, dataset, add)
        _nominal_targets(rows, dataset, add)
        _certified_targets(rows, dataset, settings, add)
    return found


def _control_targets(rows: Sequence[Row], dataset: str, add: Any) -> None:
    name = DATASETS[dataset]
    reached = task(rows, dataset, "none")
    least = _LEAST_UNPROTECTED.get(dataset)
    if reached.n and least:
        what = f"{name}, no protection: task macro-F1"
        add(what, f">= {100 * least:.0f}", reached.percent(), reached.mean >= least)
    auc = worst_auc(rows, dataset, "none")
    if auc.n:
        what = f"{name}, no protection: the attack is real, AUC"
        add(what, "interval above .5", auc.interval(), auc.low > 0.5)


def _nominal_targets(rows: Sequence[Row], dataset: str, add: Any) -> None:
    name = f"{DATASETS[dataset]}, RMAT"
    reached, auc = task(rows, dataset, "rmat"), worst_auc(rows, dataset, "rmat")
    aim = _AIMS.get(dataset)
    if reached.n and aim:
        goal = f">= {100 * aim:.1f}"
        add(f"{name}: task macro-F1", goal, reached.percent(), reached.mean >= aim)
    if not auc.n:
        return
    within = auc.low <= 0.5 <= auc.high
    goal = "interval contains .5"
    if dataset == "funpedia":
        within, goal = within and auc.high < 0.55, f"{goal} and ends below .55"
    add(f"{name}: AUC of the worst attacker", goal, auc.interval(), within)
    for method in BASELINES:
        theirs = task(rows, dataset, method)
        their_auc = worst_auc(rows, dataset, method)
        if theirs.n and their_auc.n:
            better = their_auc.mean <= auc.mean and theirs.mean > reached.mean
            add(
                f"{name} against {TITLES[method]}: not more task at no more leakage",
                f"AUC > {auc.mean:.3f} or task <= {100 * reached.mean:.1f}",
                f"{their_auc.mean:.3f}, {100 * theirs.mean:.1f}",
                not better,
            )


def _certified_targets(
    rows: Sequence[Row], dataset: str, settings: Settings, add: Any
) -> None:
    for epsilon in settings.certified_epsilons:
        name = f"{DATASETS[dataset]}, certified epsilon {epsilon:g}"
        label = task(rows, dataset, f"rr@{epsilon:g}")
        code, arm = best_certified(rows, dataset, epsilon)
        if code.n and label.n:
            goal = label.mean - _EQUAL
            what = f"{name}: {TITLES[arm]}, matches the label, task macro-F1"
            add(what, f">= {100 * goal:.1f}", code.percent(), code.mean >= goal)
        if code.n and dataset == "funpedia" and epsilon == 4:
            what = f"{name}: task macro-F1"
            add(what, ">= 85", code.percent(), code.mean >= 0.85)
        second = task(rows, dataset, f"second@{epsilon:g}", "intensity")
        label = task(rows, dataset, f"rr@{epsilon:g}", "intensity")
        if second.n and label.n:
            what = f"{name}: intensity from the same release, macro-F1"
            goal = f"> {100 * label.mean:.1f} (from the label)"
            add(what, goal, second.percent(), second.mean > label.mean)


def best_certified(
    rows: Sequence[Row], dataset: str, epsilon: float
) -> tuple[Measured, str]:
    """The certified design with the highest task macro-F1, and its method.

    The choice is made on the mean over seeds of the test part: it flatters a little
    where designs are close.
    """
    found = {
        method: task(rows, dataset, f"{method}@{epsilon:g}")
        for method in ("code", "l1")
    }
    measured = {m: value for m, value in found.items() if value.n}
    if not measured:
        return Measured.of([], []), "code"
    method = max(measured, key=lambda m: measured[m].mean)
    return measured[method], method
