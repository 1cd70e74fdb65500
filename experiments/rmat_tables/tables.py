"""The tables of the report, each a list of Markdown lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from experiments.rmat_tables import figures
from experiments.rmat_tables.figures import Row
from experiments.rmat_tables.settings import DATASETS, TITLES, Arm, Settings
from tfpriv.accounting import LaplaceCertificate

METHODS = ("none", "dpnr", "ads", "cape", "rmat")


def missing(found: dict[str, Any], dataset: str) -> str:
    """Why a data set has no figures."""
    here = dataset in found["available"]
    return "not measured" if here else "not measured: data not available here"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    return [*lines, *(f"| {' | '.join(row)} |" for row in rows), ""]


# --- Table 1 -----------------------------------------------------------------


def sizes(found: dict[str, Any]) -> list[str]:
    there = {sizes["dataset"]: sizes for sizes in found["sizes"]}
    rows = []
    for dataset, title in DATASETS.items():
        published = found["published"]["sizes"].get(dataset)
        row = [title, "/".join(published) if published else "-"]
        if dataset in there:
            sizes = there[dataset]
            row += ["/".join(str(n) for n in sizes["rows"].values())]
            row += [
                _shares(sizes["private"]["train"]),
                _shares(sizes["labels"]["train"]),
            ]
            row += [str(sizes["texts_of_train_in_test"])]
        else:
            row += [missing(found, dataset), "-", "-", "-"]
        rows.append(row)
    head = ["data set", "published train/valid/test", "here"]
    head += ["private label (train)", "sentiment (train)", "held-out texts in train"]
    return ["## Table 1: sizes", "", *table(head, rows)]


def _shares(counts: dict[str, int]) -> str:
    total = sum(counts.values())
    return ", ".join(f"{name} {100 * n / total:.0f} %" for name, n in counts.items())


# --- Tables 2 and 3 ----------------------------------------------------------


def _published(found: dict[str, Any], table: str, dataset: str, method: str) -> str:
    value = found["published"][table].get(dataset, {}).get(method)
    return "-" if value is None else f"{value:.1f}"


def _unmeasured(rows: Sequence[Row], found: dict[str, Any], name: str) -> list[str]:
    """Published figures of the data sets that have none of ours."""
    there = set(figures.datasets_of(rows))
    shown = [
        [DATASETS[dataset], TITLES[method], f"{value:.1f}", missing(found, dataset)]
        for dataset, methods in found["published"][name].items()
        if dataset not in there
        for method, value in methods.items()
    ]
    head = ["data set", "method", "published macro-F1", "here"]
    return table(head, shown) if shown else []


def private(rows: Sequence[Row], found: dict[str, Any]) -> list[str]:
    shown = []
    for dataset in figures.datasets_of(rows):
        for method in METHODS:
            published = _published(found, "private", dataset, method)
            known = figures.attacks(rows, dataset, method)
            if not known:
                if figures.select(rows, dataset, method):
                    title = [DATASETS[dataset], TITLES[method]]
                    shown.append([*title, published, "no attack possible", *["-"] * 5])
                continue
            auc = figures.worst_auc(rows, dataset, method)
            bound = max(attack["null_auc_bound"] for attack in known)
            leaks = sum(attack["leaks"] for attack in known)
            f1 = figures.highest(rows, dataset, method, "macro_f1")
            balanced = figures.highest(rows, dataset, method, "balanced_accuracy")
            floors = (known[0]["constant_macro_f1"], known[0]["prior_macro_f1"])
            shown.append(
                [
                    DATASETS[dataset],
                    TITLES[method],
                    published,
                    f1.percent(),
                    " / ".join(f"{100 * floor:.1f}" for floor in floors),
                    balanced.percent(),
                    auc.interval(),
                    f"{bound:.3f}",
                    f"{leaks} of {auc.n}",
                ]
            )
    head = ["data set", "method", "published macro-F1", "macro-F1"]
    head += ["floors: constant / prior guess", "balanced accuracy"]
    head += ["AUC of the worst attacker", "chance stays below", "leaks"]
    lines = [
        "## Table 2: the private attribute (lower is better)",
        "",
        "Attackers are trained afresh on released training representations, noise "
        "included; macro-F1 and balanced accuracy are the highest of any, the AUC's "
        "interval is adjusted for their number. A macro-F1 below a floor says that the "
        "attacker guesses badly, not that there is privacy: read the AUC.",
        "",
        *table(head, shown),
    ]
    return [*lines, *_unmeasured(rows, found, "private")]


def task(rows: Sequence[Row], found: dict[str, Any]) -> list[str]:
    shown = []
    for dataset in figures.datasets_of(rows):
        for method in METHODS:
            some = figures.select(rows, dataset, method)
            if some:
                score = figures.task(rows, dataset, method)
                shown.append(
                    [
                        DATASETS[dataset],
                        TITLES[method],
                        str(score.n),
                        _published(found, "task", dataset, method),
                        score.percent(),
                        figures.task(rows, dataset, method, "reader").percent(),
                        *_epsilons(some[0]["certificate"]),
                    ]
                )
        floors = figures.select(rows, dataset, _any_arm(rows, dataset))[0]["floors"]
        both = f"{100 * floors['constant']:.1f} / {100 * floors['prior']:.1f}"
        title = [DATASETS[dataset], "constant / prior guess"]
        shown.append([*title, "-", "-", both, "-", "-", "-", "-"])
    head = ["data set", "method", "seeds", "published", "macro-F1", "fresh reader"]
    head += ["nominal epsilon", "certified, word", "certified, record"]
    lines = [
        "## Table 3: the task, sentiment (higher is better)",
        "",
        "The model's own head and, beside it, a logistic regression trained afresh, "
        "both on the release that the attackers saw. Epsilon is per release: the "
        "papers' reading, and what is certified for two texts of equal length that "
        "differ in one word and for any two texts.",
        "",
        *table(head, shown),
        f"Published: {found['published']['source']}.",
        "",
    ]
    return [*lines, *_unmeasured(rows, found, "task")]


def _any_arm(rows: Sequence[Row], dataset: str) -> str:
    """Any arm that the data set has: floors do not depend on it."""
    return next(row["arm"] for row in rows if row["dataset"] == dataset)


def _epsilons(certificate: dict[str, Any] | None) -> list[str]:
    if certificate is None:
        return ["-", "none", "none"]
    found = LaplaceCertificate.from_json(certificate)
    nominal = found.nominal_epsilon
    return [
        "-" if nominal is None else f"{nominal:g}",
        f"{found.word_epsilon:.3g}",
        f"{found.record_epsilon:.3g}",
    ]


# --- Certified releases ------------------------------------------------------


def certified(rows: Sequence[Row], settings: Settings) -> list[str]:
    shown = []
    for dataset in figures.datasets_of(rows):
        for epsilon in settings.certified_epsilons:
            for method in ("rr", "code", "l1"):
                arm = f"{method}@{epsilon:g}"
                score = figures.task(rows, dataset, arm)
                if score.n:
                    reader = figures.task(rows, dataset, arm, "reader")
                    shown.append(
                        [
                            DATASETS[dataset],
                            f"{epsilon:g}",
                            TITLES[method],
                            str(score.n),
                            score.percent(),
                            reader.percent(),
                            figures.worst_auc(rows, dataset, arm).interval(),
                        ]
                    )
    if not shown:
        return []
    head = ["data set", "epsilon", "release", "seeds", "task macro-F1", "fresh reader"]
    return [
        "## Certified releases: epsilon for any two texts, per release",
        "",
        "The first row of each epsilon is the label that the best unprotected "
        "classifier predicts, sent through k-ary randomised response: nearly the best "
        "there can be for one known task. Code of the class: RMAT's default, without a "
        "mask: its encoder learns codes as a classifier learns classes, so that it is "
        "such a label, of another training.",
        "",
        *table([*head, "AUC of the worst attacker"], shown),
    ]


def second(rows: Sequence[Row], settings: Settings) -> list[str]:
    shown = []
    for dataset in figures.datasets_of(rows):
        for epsilon in settings.certified_epsilons:
            for method, title in (
                ("second", TITLES["second"]),
                ("rr", "predicted sentiment, randomised response"),
                ("pair", "both predicted labels, each at half of epsilon"),
            ):
                arm = f"{method}@{epsilon:g}"
                second = figures.task(rows, dataset, arm, "intensity")
                if second.n:
                    shown.append(
                        [
                            DATASETS[dataset],
                            f"{epsilon:g}",
                            title,
                            str(second.n),
                            figures.task(rows, dataset, arm).percent(),
                            f"{100 * second.mean:.1f}",
                        ]
                    )
    if not shown:
        return []
    head = ["data set", "epsilon", "release", "seeds", "sentiment", "intensity"]
    return [
        "## A second task read from the same certified release",
        "",
        "Intensity is VADER's |compound|: none below .05, mild below .5, strong from "
        "there. A code of five symbols (the pairs of sentiment and intensity) is one "
        "release at epsilon; a sentiment label says nothing of mild and strong beyond "
        "what is commonest; two labels share the epsilon. The code is trained for both "
        "tasks: it is the label of the pair.",
        "",
        *table(head, shown),
    ]


# --- Front -------------------------------------------------


def front(rows: Sequence[Row], settings: Settings) -> list[str]:
    dataset = settings.front_dataset
    shown = []
    for key in settings.front():
        some = figures.select(rows, dataset, key)
        if some:
            arm = Arm.parse(key)
            _, word, record = _epsilons(some[0]["certificate"])
            shown.append(
                [
                    f"{arm.epsilon:g}",
                    word,
                    record,
                    f"{arm.mask_rate:g}",
                    f"{arm.adversary_weight:g}",
                    figures.task(rows, dataset, key).percent(),
                    figures.worst_auc(rows, dataset, key).interval(),
                ]
            )
    if not shown:
        return []
    head = ["nominal epsilon", "certified, word", "certified, record", "mu", "lambda"]
    some = "all" if settings.front_limit is None else f"{settings.front_limit}"
    return [
        f"## Privacy and utility of RMAT on {DATASETS[dataset]}",
        "",
        f"A shorter training than that of the tables: {settings.front_epochs} epochs "
        f"on {some} of the training rows, evenly spaced; whole test part.",
        "",
        *table([*head, "task macro-F1", "AUC of the worst attacker"], shown),
    ]
