"""results.json, the tables and the plot of a study."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments._synthesis.figures import (
    Cell,
    Interval,
    difference,
    mean,
    routes,
    targets,
)
from experiments._synthesis.study import ORIGINAL, PART_NAMES, Arm, Study
from tfpriv._files import PUBLIC, atomic_write

_COLOURS = {"LR": "C0", "CNN": "C1", "RNN": "C2"}


def results(
    study: Study, cells: Sequence[Cell], *, quick: bool, part: str
) -> dict[str, Any]:
    """Everything measured, and what the tables and the plot are made of."""
    order = {key: i for i, key in enumerate(study.arms)}
    cells = sorted(cells, key=lambda c: (order.get(c["arm"], 99), c["seed"]))
    published = Path(__file__).parents[1] / study.name / "published.json"
    seeds = sorted({cell["seed"] for cell in cells})
    return {
        "experiment": study.name,
        "title": study.title,
        "command": f"python -m experiments.{study.name}"
        + (" --quick" if quick else "")
        + f" --seeds {' '.join(map(str, seeds))}"
        + (f" --part {part}" if part != "test" else "")
        + " --output DIR",
        "quick": quick,
        "part": PART_NAMES[part],
        "seeds": seeds,
        "settings": study.to_json(),
        "remarks": list(study.remarks),
        "published": (
            json.loads(published.read_text(encoding="utf-8"))
            if published.exists()
            else None
        ),
        "targets": targets(study, cells),
        "machine": sorted({cell["machine"] for cell in cells}),
        "versions": cells[-1]["versions"],
        "cells": cells,
    }


# --- Tables ------------------------------------------------------------------


def write_markdown(path: Path, found: dict[str, Any]) -> None:
    """The tables beside the published figures."""
    seeds = ", ".join(map(str, found["seeds"]))
    warning = " (quick run: the figures mean nothing)" if found["quick"] else ""
    part = found["part"]
    tuned = " **S2: for tuning, not a result.**" if part != "S3" else ""
    lines = [
        f"# {found['title']}",
        "",
        f"Seeds: {seeds}{warning}. Mean and 95 % interval (Student's) over seeds; a "
        f"seed is a split, networks and noise of its own. Trained on S1 or on "
        f"{found['settings']['rows']} synthetic rows made from S1, tested on "
        f"{part}, exact duplicates removed before the split.{tuned}",
        "",
        *_accuracy(found),
        *_routes(found),
        *_text(found),
        *_targets(found),
        *_remarks(found),
        "![Accuracy over epsilon](accuracy.png)",
        "",
        *_examples(found),
    ]
    with atomic_write(path, mode=PUBLIC) as file:
        file.write("\n".join(lines).rstrip() + "\n")


def _arms(found: dict[str, Any]) -> list[str]:
    return list(dict.fromkeys(cell["arm"] for cell in found["cells"]))


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    return [*lines, *(f"| {' | '.join(row)} |" for row in rows), ""]


def guarantee(cells: Sequence[Cell], arm: str) -> str:
    """What the statements of an arm say, in a few words."""
    statements = [c["privacy"] for c in cells if c["arm"] == arm and "privacy" in c]
    if not statements:
        return "-"
    if all(s["epsilon_finite"] for s in statements):
        return f"{max(s['epsilon'] for s in statements):.3g} for everything"
    alone = [
        event["epsilon"]
        for statement in statements
        for event in statement["events"]
        if event["name"] == "discriminator" and event["epsilon"] is not None
    ]
    if not alone:
        return "none"
    price = f"{max(alone):.0e}".replace("e+0", "e").replace("e+", "e")
    return f"none (discriminator alone: {price})"


def _accuracy(found: dict[str, Any]) -> list[str]:
    cells, names = found["cells"], found["settings"]["classifiers"]
    lines = [f"## Accuracy on {found['part']}", ""]
    rows = []
    for arm in _arms(found):
        # Named where an unfinished run has fewer of one arm than of another.
        seeds = str(mean(cells, arm, f"accuracy/{names[0]}").n)
        row = [Arm.parse(arm).title, seeds, guarantee(cells, arm)]
        for name in names:
            cell = mean(cells, arm, f"accuracy/{name}").show()
            if arm != ORIGINAL:
                gap = difference(cells, arm, ORIGINAL, f"accuracy/{name}")
                cell += f" ({gap.show(signed=True)})" if gap.n else ""
            row.append(cell)
        rows.append(row)
    floor = mean(cells, ORIGINAL, "majority")
    rows.append(["constant guess", str(floor.n), "0", *[floor.show()] * len(names)])
    if found["published"]:
        for row_name, figures in found["published"]["accuracy"].items():
            shown = [f"{figures[n]:.3f}" if n in figures else "-" for n in names]
            rows.append([f"published: {row_name}", "-", "-", *shown])
    head = ["trained on", "seeds", "epsilon at delta 1e-5", *names]
    lines += _table(head, rows)
    lines += ["In brackets: the difference from original data, seed by seed.", ""]
    rows = [
        [
            Arm.parse(arm).title,
            *(mean(cells, arm, f"macro_f1/{name}").show() for name in names),
        ]
        for arm in _arms(found)
    ]
    lines += ["Macro-F1:", "", *_table(["trained on", *names], rows)]
    if found["published"]:
        lines += [f"Published: {found['published']['source']}.", ""]
    return lines


def _routes(found: dict[str, Any]) -> list[str]:
    cells, names = found["cells"], found["settings"]["classifiers"]
    compared = found["settings"]["compared"]
    rows = [
        [
            Arm.parse(row["arm"]).title,
            row["label"],
            f"{row['won']} of {row['of']}",
            *("-" if row[n] is None else f"{row[n]:.4f}" for n in _CANDIDATES),
        ]
        for row in routes(cells)
    ]
    if not rows:
        return []
    lines = [
        "## What the adversarial part gained",
        "",
        "A class releases adversarial text if its tokens are nearer to the released "
        "noisy counts than the seed corpus's: Jensen-Shannon divergence, in nats.",
        "",
        *_table(["", "class", "adversarial released", *_CANDIDATES], rows),
    ]
    counts = f"counts@{Arm.parse(compared).epsilon:g}"
    settings = {
        "as released": compared,
        "seed corpus of every class": f"{compared}/seed",
        "adversarial text of every class": f"{compared}/adversarial",
        "without the adversarial part (its budget spent on counts)": counts,
    }
    rows = [
        [title, *(mean(cells, key, f"accuracy/{name}").show() for name in names)]
        for title, key in settings.items()
        if mean(cells, key, f"accuracy/{names[0]}").n
    ]
    for title, ours, theirs in (
        ("adversarial minus seed corpus", "/adversarial", "/seed"),
        ("as released minus seed corpus", "", "/seed"),
    ):
        gains = [
            difference(cells, compared + ours, compared + theirs, f"accuracy/{name}")
            for name in names
        ]
        rows.append([title, *(gain.show(signed=True) for gain in gains)])
    lines += [
        f"Accuracy, {Arm.parse(compared).title}:",
        "",
        *_table(["", *names], rows),
    ]
    return lines


_CANDIDATES = ("seed", "pretrained", "adversarial")


def _text(found: dict[str, Any]) -> list[str]:
    cells = found["cells"]

    def row(title: str, arm: str, perplexity: str = "perplexity") -> list[str]:
        cells_of_row = [title, mean(cells, arm, perplexity).show(0)]
        if perplexity != "perplexity":
            return cells_of_row + ["-"] * 4
        for metric in ("coverage", "self_bleu_4", "distinct_2", "duplicates"):
            cells_of_row.append(mean(cells, arm, metric).show())  # noqa: PERF401
        return cells_of_row

    rows = [
        row(f"{found['part']} (real)", ORIGINAL),
        row(
            f"{found['part']} with the words of a text shuffled",
            ORIGINAL,
            "perplexity/shuffled",
        ),
        *(row(Arm.parse(arm).title, arm) for arm in _arms(found) if arm != ORIGINAL),
    ]
    head = ["", "perplexity", "coverage", "self-BLEU-4", "distinct-2", "duplicates"]
    return [
        "## Text",
        "",
        "Perplexity under an interpolated trigram model of ConvAI2's validation texts "
        "and LIGHT's personas, which had no part in making any text; coverage is the "
        "share of tokens that it knows and scores. Diversity is that of "
        f"{found['settings']['text_rows']} texts.",
        "",
        *_table(head, rows),
    ]


def _targets(found: dict[str, Any]) -> list[str]:
    rows = [
        [t["what"], t["goal"], t["value"], "met" if t["met"] else "**missed**"]
        for t in found["targets"]
    ]
    if not rows:
        return []
    return ["## Targets", "", *_table(["what", "goal", "measured", ""], rows)]


def _remarks(found: dict[str, Any]) -> list[str]:
    lines = [f"- {remark}" for remark in found["remarks"]]
    fits = [
        f"{arm} {Interval.of(seconds).mean:.0f} s"
        for arm in _arms(found)
        if (
            seconds := [
                c["fit_seconds"]
                for c in found["cells"]
                if c["arm"] == arm and "fit_seconds" in c
            ]
        )
    ]
    if fits:
        lines.append(f"- Training, mean over seeds: {'; '.join(fits)}.")
    return [*lines, ""]


def _examples(found: dict[str, Any]) -> list[str]:
    compared = found["settings"]["compared"]
    with_rows = [
        c for c in found["cells"] if c["arm"] == compared and c.get("examples")
    ]
    if not with_rows:
        return []
    first = min(with_rows, key=lambda cell: cell["seed"])
    rows = [[label, _escaped(text)] for label, text in first["examples"]]
    return [
        f"## Synthetic rows: {Arm.parse(compared).title}, seed {first['seed']}, the "
        "first as they came",
        "",
        *_table(["label", "text"], rows),
    ]


def _escaped(text: str) -> str:
    for mark in ("\\", "|", "<", "*", "_", "`", "[", "~"):
        text = text.replace(mark, f"\\{mark}")
    return " ".join(text.split())


# --- Plot --------------------------------------------------------------------


def write_plot(path: Path, found: dict[str, Any]) -> None:
    """Accuracy over epsilon with intervals; original data as lines."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    cells = found["cells"]
    arms = [Arm.parse(key) for key in _arms(found)]
    private = sorted(
        (a for a in arms if a.method == "default"), key=lambda a: a.epsilon
    )
    others = [a for a in arms if a.method in ("paper", "seqgan")]
    ticks = [f"{a.epsilon:g}" for a in private]
    ticks += [{"paper": "paper mode", "seqgan": "SeqGAN"}[a.method] for a in others]
    figure, axes = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
    for shift, name in enumerate(found["settings"]["classifiers"]):
        colour = _COLOURS.get(name, f"C{shift}")
        for first, group, style in ((0, private, "o-"), (len(private), others, "s")):
            found_there = [mean(cells, a.key, f"accuracy/{name}") for a in group]
            axes.errorbar(
                [first + i + 0.08 * (shift - 1) for i in range(len(group))],
                [x.mean for x in found_there],
                # Of one seed there is none, and NaN draws none.
                yerr=[x.half for x in found_there],
                fmt=style,
                color=colour,
                capsize=3,
                label=name if first == 0 else None,
            )
        original = mean(cells, ORIGINAL, f"accuracy/{name}")
        if original.n:
            axes.axhline(original.mean, color=colour, linestyle=":")
    axes.set_xticks(range(len(ticks)), ticks)
    axes.set_xlabel("epsilon of the whole release at delta 1e-5 (the last: none)")
    if not others:
        axes.set_xlabel("epsilon of the whole release at delta 1e-5")
    axes.set_ylabel(f"accuracy on {found['part']}; dotted: original data")
    # The interval of two seeds may reach far beyond what an accuracy can be.
    axes.set_ylim(top=min(1.0, axes.get_ylim()[1]))
    axes.legend()
    with atomic_write(path, mode=PUBLIC, binary=True) as file:
        figure.savefig(file, format="png", dpi=150)
    plt.close(figure)
