"""Means, pooled scores and targets from the cells: plain numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from experiments._synthesis.figures import Interval
from experiments.dp_seqgan.settings import ARMS, ORIGINAL
from tfpriv.attacks import MembershipScore, score_membership

Cell = dict[str, Any]
# An RNN has converged at the first pass from which it stays this near its last one.
CONVERGED_WITHIN = 0.02
LARGEST_AUC, LARGEST_TPR, LEAST_AUC = 0.55, 0.02, 0.65


def of_arm(cells: Iterable[Cell], arm: str) -> list[Cell]:
    """The cells of an arm."""
    return [cell for cell in cells if cell["arm"] == arm]


def arms(cells: Sequence[Cell]) -> list[str]:
    """Those that have a cell, in the order of `ARMS`."""
    found = {cell["arm"] for cell in cells}
    return [arm for arm in ARMS if arm in found]


def attacks(cells: Sequence[Cell], arm: str) -> list[tuple[str, str]]:
    """(attack, class) pairs that an arm has, in the order of its cells."""
    return list(
        dict.fromkeys(
            (found["attack"], found["label"])
            for cell in of_arm(cells, arm)
            for found in cell.get("attacks", ())
        )
    )


def attack_mean(
    cells: Sequence[Cell],
    arm: str,
    attack: str,
    label: str,
    figure: Callable[[Cell], float],
) -> Interval:
    """Of a figure of an attack's JSON, over the seeds that have it."""
    return Interval.of(
        figure(found)
        for cell in of_arm(cells, arm)
        for found in cell.get("attacks", ())
        if (found["attack"], found["label"]) == (attack, label)
    )


def auc(found: Cell) -> float:
    return found["score"]["auc"]["value"]


def accuracy(found: Cell) -> float:
    return found["accuracy"]["value"]


def pooled(cells: Sequence[Cell], arm: str) -> list[MembershipScore]:
    """Each attack's score over all classes and seeds of an arm.

    A record's rank among all records of its class and seed, members and others, is
    put on one scale; where nothing is told, members' ranks are as good as drawn at
    random. A record that is in several seeds counts in each: intervals take these
    for independent, though noise and networks alone are.
    """
    ranks: dict[str, tuple[list, list]] = {}
    for cell in of_arm(cells, arm):
        for found in cell.get("attacks", ()):
            members = np.array(found["ranks"].split(), int)
            count = found["score"]["members"] + found["score"]["non_members"]
            others = np.setdiff1d(np.arange(count), members)
            place = ranks.setdefault(found["attack"], ([], []))
            for kept, part in zip(place, (members, others), strict=True):
                kept.append((part + 0.5) / count)
    return [
        score_membership(
            attack,
            np.concatenate(members),
            np.concatenate(others),
            attacks_tried=len(ranks),
        )
        for attack, (members, others) in ranks.items()
    ]


def member_ranks(members: np.ndarray, non_members: np.ndarray) -> str:
    """The ranks of members among all, 0 the lowest; equal scores in random order."""
    scores = np.concatenate([members, non_members])
    shuffled = np.random.default_rng(len(scores)).permutation(len(scores))
    order = shuffled[np.argsort(scores[shuffled], kind="stable")]
    ranks = np.empty(len(scores), int)
    ranks[order] = np.arange(len(scores))
    return " ".join(map(str, sorted(ranks[: len(members)])))


def epochs_to_converge(curve: Sequence[float]) -> int:
    """The first pass, from 1, from which accuracy stays near its last value."""
    far = [i for i, x in enumerate(curve) if abs(x - curve[-1]) > CONVERGED_WITHIN]
    return far[-1] + 2 if far else 1


def convergence(cells: Sequence[Cell], arm: str, rows: str) -> dict[str, Interval]:
    """Epochs, gradient steps and final accuracy of the RNN, over seeds."""
    epochs, steps, last = [], [], []
    for cell in of_arm(cells, arm):
        found = cell["convergence"].get(rows)
        if found is None:
            continue
        epoch = epochs_to_converge(found["accuracy"])
        epochs.append(epoch)
        # 32 texts a step, as `NetworkClassifier` has it.
        steps.append(min(found["steps"], epoch * found["rows"] // 32))
        last.append(found["accuracy"][-1])
    return {
        "epochs": Interval.of(epochs),
        "steps": Interval.of(steps),
        "accuracy": Interval.of(last),
    }


def regularisation(
    cells: Sequence[Cell], arm: str, figure: Callable[[Cell], float | None]
) -> Interval:
    """Of a figure of the discriminators' JSON, the mean over classes, over seeds."""
    means = []
    for cell in of_arm(cells, arm):
        found = [figure(one) for one in cell.get("regularisation", ())]
        found = [x for x in found if x is not None]
        if found:
            means.append(float(np.mean(found)))
    return Interval.of(means)


def gap(one: Cell) -> float:
    """How far D(r) of S1, which a discriminator saw, is above that of S2."""
    return one["train/mean"] - one["held_out/mean"]


def epsilon(cells: Sequence[Cell], arm: str) -> tuple[float | None, float | None]:
    """Of the whole release and of the discriminator alone, the largest over seeds.

    Returns:
        None for what has no guarantee.
    """
    whole, alone = [], []
    for cell in of_arm(cells, arm):
        statement = cell.get("privacy")
        if statement is None:
            return None, None
        whole.append(statement["epsilon"])
        alone += [
            event["epsilon"]
            for event in statement["events"]
            if event["name"] == "discriminator"
        ]
    return tuple(
        max(values) if values and None not in values else None
        for values in (whole, alone)
    )


def _accuracies(
    cells: Sequence[Cell], arm: str
) -> list[tuple[str, float, float, float]]:
    """Class, accuracy of the published attack, and its ends, means over seeds."""
    found: dict[str, list[Cell]] = {}
    for cell in of_arm(cells, arm):
        for one in cell.get("attacks", ()):
            if "accuracy" in one:
                found.setdefault(one["label"], []).append(one["accuracy"])
    rows = [
        (
            label,
            *(float(np.mean([x[k] for x in own])) for k in ("value", "low", "high")),
        )
        for label, own in found.items()
    ]
    return sorted(rows, key=lambda row: -row[1])


def targets(cells: Sequence[Cell], published: dict[str, Any]) -> list[dict[str, Any]]:
    """What was to come out beside what came out; what has no figures is left out."""
    rows: list[dict[str, Any]] = []

    def add(what: str, goal: str, value: str, met: bool) -> None:
        rows.append({"what": what, "goal": goal, "value": value, "met": bool(met)})

    eight = pooled(cells, "default@8")
    if eight:
        worst = max(eight, key=lambda s: s.auc.low)
        add(
            "epsilon 8: lower bound of the worst attack's AUC, corrected, pooled",
            f"<= {LARGEST_AUC:g}",
            f"{worst.auc.low:.3f} ({worst.name})",
            worst.auc.low <= LARGEST_AUC,
        )
        worst = max(eight, key=lambda s: s.tpr[0.01].low)
        add(
            "epsilon 8: lower bound of the worst attack's TPR at 1 % FPR",
            f"<= {LARGEST_TPR:g}",
            f"{worst.tpr[0.01].low:.3f} ({worst.name})",
            worst.tpr[0.01].low <= LARGEST_TPR,
        )
        worst = max(eight, key=lambda s: s.epsilon_lower)
        add(
            "epsilon 8: the largest epsilon that an attack shows",
            "<= 8",
            f"{worst.epsilon_lower:.2f} ({worst.name})",
            worst.epsilon_lower <= 8,
        )
    plain = pooled(cells, "seqgan")
    if plain:
        best = max(plain, key=lambda s: s.auc.value)
        add(
            "SeqGAN: AUC of the best attack",
            f">= {LEAST_AUC:g}",
            f"{best.auc} ({best.name})",
            best.auc.value >= LEAST_AUC,
        )
    for arm, printed in published["attack_accuracy"].items():
        # Which class a figure is of is not printed: the higher goes with the higher.
        for ours, theirs in zip(_accuracies(cells, arm), printed, strict=False):
            label, value, low, high = ours
            add(
                f"{ARMS[arm].title}, {label}: accuracy of the published attack",
                f"interval holds {theirs:g}",
                f"{value:.3f} [{low:.3f}, {high:.3f}]",
                low <= theirs <= high,
            )
    for name, aim in published["accuracy"]["paper"].items():
        found = Interval.of(
            cell["metrics"][f"accuracy/{name}"] for cell in of_arm(cells, "paper")
        )
        if found.n:
            add(
                f"paper mode: accuracy of the {name}, as published",
                f">= {aim:g}",
                found.show(),
                found.mean >= aim,
            )
    if of_arm(cells, ORIGINAL) and of_arm(cells, "paper"):
        ours = convergence(cells, "paper", "all rows")["epochs"]
        theirs = convergence(cells, ORIGINAL, "all rows")["epochs"]
        add(
            "paper mode: epochs of the RNN below original data",
            f"< {theirs.show(1)}",
            ours.show(1),
            ours.mean < theirs.mean,
        )
    return rows
