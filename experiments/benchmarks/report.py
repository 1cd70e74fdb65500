"""Medians, quartiles and ratios of the turns; the tables and the plot."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from experiments.benchmarks.contests import ACCOUNT
from tfpriv._files import PUBLIC, atomic_write

HOW = f"""
Contestants take turns, in a new order each round; processes are started one by one,
steps run in one process. Ratio and difference to the first line of a contest are taken
within each round. All are medians, quartiles in brackets. First turns (model, tracing,
compilation, cold files) do not count; their CPU time stands in a column of its own. CPU
time is that of all threads. Accounting is `tfpriv {ACCOUNT}`.

Steps: Adam in float32 on the same 64 rows; a TextCNN discriminator (widths 1-5 x 100
filters, V 5000, T 20), a logistic model (5,000 inputs, 2 logits). tfpriv: all of
`DPTrainer.step` without a ledger: rows drawn at rate 1, clipping, noise from the
operating system, Adam. TF-Privacy's stock DPKerasAdamOptimizer: noise from TensorFlow's
own generator. Plain Keras: `train_on_batch` without XLA, as the private steps are, and
with it.

| contest | contestant | ms | ratio | difference, ms | CPU ms | CPU ratio | first, CPU s | rounds |
|---|---|---|---|---|---|---|---|---|
"""  # noqa: E501
HELD = """
Peak memory of three steps above that of all imports, each in a process of its own:

| contest | plain Keras, MiB | tfpriv, MiB | ratio |
|---|---|---|---|
"""
VARIED = """
Rewards of equal variance: of {published} rollouts as published, by networks that have
learnt (maximum likelihood, then {steps} steps of the discriminator); `tfpriv` takes the
fewest that vary as little.

| rollouts | variance, mean over prefixes |
|---|---|
"""


def summary(measurements: Sequence[dict]) -> list[dict]:
    """One row a contestant, over all rounds and seeds: [low, median, high]."""
    taken: dict[str, dict[str, dict[str, list[float]]]] = {}
    for m in measurements:
        runs = taken.setdefault(m["contest"], {})
        run = runs.setdefault(m["contestant"], {"wall": [], "cpu": [], "first": []})
        run["wall"] += m["seconds"]
        run["cpu"] += m["cpu_seconds"]
        run["first"].append(m["first"]["cpu_seconds"])
    return [
        {
            "contest": contest,
            "contestant": name,
            "rounds": len(run["wall"]),
            "ms": _quartiles(1e3 * np.array(run["wall"])),
            "ratio": _quartiles(np.divide(run["wall"], base["wall"])),
            "difference_ms": _quartiles(1e3 * np.subtract(run["wall"], base["wall"])),
            "cpu_ms": _quartiles(1e3 * np.array(run["cpu"])),
            "cpu_ratio": _quartiles(np.divide(run["cpu"], base["cpu"])),
            "first_cpu_seconds": float(np.median(run["first"])),
        }
        for contest, runs in taken.items()
        for base in [next(iter(runs.values()))]
        for name, run in runs.items()
    ]


def write(folder: Path, found: dict) -> None:
    """Writes results.md, one table, and turns.png: turns as dots, medians as bars."""
    from matplotlib.figure import Figure

    warning = "**A quick run: the figures mean nothing.** " if found["quick"] else ""
    versions = ", ".join(f"{k} {v}" for k, v in found["versions"].items())
    text = (
        f"# Benchmarks\n\n{warning}{found['date']}, {found['machine']}, load average "
        f"{found['load_average']}; {versions}; seeds {found['seeds']}.\n{HOW}"
    )
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots(subplot_kw={"xscale": "log"})
    for place, row in enumerate(found["summary"]):
        key = (row["contest"], row["contestant"])
        shown = ("ms", "ratio", "difference_ms", "cpu_ms", "cpu_ratio")
        cells = [*(_show(row[column]) for column in shown)]
        cells += [f"{row['first_cpu_seconds']:.3g}", str(row["rounds"])]
        text += f"| {' | '.join([*key, *cells])} |\n"
        axes.plot(row["ms"][1], place, "k|", markersize=14)
        for m in found["measurements"]:
            if (m["contest"], m["contestant"]) == key:
                ms = 1e3 * np.array(m["seconds"])
                axes.plot(ms, [place] * len(ms), "C0.", alpha=0.4)
    text += HELD
    for row in found["memory"]:
        held = (f"{row[key]:.3g}" for key in ("plain_mib", "private_mib", "ratio"))
        text += f"| {' | '.join([row['contest'], *held])} |\n"
    for varied in found["variance"]:
        text += _varied(varied)
    text += "\n| target | goal | measured | |\n|---|---|---|---|\n"
    for target in found["targets"]:
        cells = (target["what"], target["goal"], target["value"])
        met = "met" if target["met"] else "**missed**"
        text += f"| {' | '.join(cells)} | {met} |\n"
    with atomic_write(folder / "results.md", mode=PUBLIC) as file:
        file.write(text + "\n![Every turn](turns.png)\n")
    names = [f"{r['contest']}: {r['contestant']}" for r in found["summary"]]
    axes.set_yticks(range(len(names)), names)
    axes.set_xlabel("ms; a bar is a median")
    axes.invert_yaxis()
    with atomic_write(folder / "turns.png", mode=PUBLIC, binary=True) as file:
        figure.savefig(file, format="png", dpi=150)


def _varied(found: dict) -> str:
    from experiments.benchmarks.equal_variance import DISCRIMINATOR_STEPS

    text = VARIED.format(published=found["rollouts"], steps=DISCRIMINATOR_STEPS)
    text += f"| {found['rollouts']}, as published | {found['published']:.3g} |\n"
    for rollouts, variance in sorted(found["ours"].items()):
        text += f"| {rollouts}, tfpriv | {variance:.3g} |\n"
    return text


def _quartiles(values: np.ndarray) -> list[float]:
    return [float(x) for x in np.quantile(values, (0.25, 0.5, 0.75))]


def _show(quartiles: Sequence[float]) -> str:
    low, median, high = (float(f"{x:.3g}") for x in quartiles)
    return f"{median:g} ({low:g}, {high:g})"
