"""Table and plot from the measurements of all seeds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from tfpriv._files import PUBLIC, atomic_write
from tfpriv.seqgan import share_of_gap_closed

PUBLISHED = json.loads(
    (Path(__file__).parent / "published.json").read_text(encoding="utf-8")
)
METRICS = ("nll_oracle", "nll_test", "self_bleu_2", "distinct_2")
ROWS = (
    "random",
    "MLE",
    "overtrained MLE",
    "tempered MLE",
    "constant reward",
    "SeqGAN",
    "oracle",
)
_COLOURS = {"tempered MLE": "0.4", "constant reward": "C1", "SeqGAN": "C0"}
PUBLISHED_NAMES = {"random": "random", "MLE": "MLE", "SeqGAN": "SeqGAN"}


def measurements(seeds: dict[int, dict[str, Any]]) -> list[dict[str, Any]]:
    """Every figure as one row: seed, setting, metric, value."""
    rows = []
    for seed, parts in seeds.items():
        parts = {
            **parts,
            "random": parts["oracle"]["random"],
            "overtrained MLE": parts["MLE"]["last epoch"],
        }
        for setting in ROWS:
            values = {metric: parts[setting][metric] for metric in METRICS}
            if setting not in ("random", "oracle"):
                values["share_of_gap_closed"] = share_of_gap_closed(
                    parts[setting]["nll_oracle"],
                    mle=parts["MLE"]["nll_oracle"],
                    oracle_entropy=parts["oracle"]["nll_oracle"],
                )
            if "temperature" in parts[setting]:
                values["temperature"] = parts[setting]["temperature"]
            rows += [
                {"seed": seed, "setting": setting, "metric": key, "value": value}
                for key, value in values.items()
            ]
    return rows


def _cell(rows: list[dict], setting: str, metric: str, digits: int = 3) -> str:
    values = [
        r["value"] for r in rows if r["setting"] == setting and r["metric"] == metric
    ]
    if not values:
        return "-"
    if len(values) == 1:
        return f"{values[0]:.{digits}f}"
    from scipy import stats

    half = stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1)
    return f"{np.mean(values):.{digits}f} +- {half / len(values) ** 0.5:.{digits}f}"


def _published_share(name: str | None) -> str:
    published = PUBLISHED["nll_oracle"].get(name)
    return "-" if published is None else f"{published:.3f}"


def write_markdown(path: Path, results: dict[str, Any]) -> None:
    """The table beside the published figures, and what differs."""
    rows, schedule = results["measurements"], results["schedule"]
    lines = [
        "# SeqGAN on synthetic data",
        "",
        f"Seeds: {', '.join(map(str, results['seeds']))}"
        + (" (quick run: the figures mean nothing)" if results["quick"] else "")
        + ". Mean and 95 % interval over seeds, nats a token, temperature 1 unless "
        "the row says otherwise.",
        "",
        "| | NLL_oracle | share of gap closed | NLL_test | self-BLEU-2 | distinct-2 "
        "| published NLL_oracle |",
        "|---|---|---|---|---|---|---|",
    ]
    for setting in ROWS:
        label = {
            "oracle": "the oracle itself",
            "tempered MLE": "MLE at temperature " + _cell(rows, setting, "temperature"),
            "SeqGAN": "SeqGAN (ours)",
            "overtrained MLE": f"MLE after {schedule['mle_epochs']} epochs",
        }.get(setting, setting)
        cells = [
            _cell(rows, setting, metric)
            for metric in (
                "nll_oracle",
                "share_of_gap_closed",
                "nll_test",
                "self_bleu_2",
                "distinct_2",
            )
        ]
        published = _published_share(PUBLISHED_NAMES.get(setting))
        lines.append(f"| {label} | {' | '.join(cells)} | {published} |")
    others = ", ".join(
        f"{name} {value:.3f}"
        for name, value in PUBLISHED["nll_oracle"].items()
        if name not in PUBLISHED_NAMES
    )
    lines += [
        "",
        f"Published: {PUBLISHED['source']}; also {others}. Each seed here has an "
        "oracle of its own with another entropy than the published one, so columns "
        "compare within a row set, not across: read the share of the gap between MLE "
        "and the oracle's own entropy.",
        "",
        "Sharpening alone lowers NLL_oracle and raises NLL_test; softening does the "
        "contrary as long as MLE is too sure of itself. The row of tempered MLE is MLE "
        "at the temperature where its NLL_test is SeqGAN's: an adversary has earned "
        "something only where SeqGAN's NLL_oracle is below it. Training MLE on past "
        "its best NLL_test sharpens as well. The constant reward is the same policy "
        "gradient, as many steps, with nothing to learn from.",
        "",
        "What differs from the published run: the schedule. "
        f"MLE {schedule['mle_epochs']} epochs, the best by validation NLL being "
        "MLE here, against 120; "
        f"{schedule['discriminator_pretraining_steps']} discriminator steps before "
        f"the game at Adam {schedule['discriminator_learning_rate']:g}, against 46,800 "
        f"at 1e-4; {schedule['rounds']} rounds of one generator step and "
        f"{schedule['d_steps']} discriminator steps, with {schedule['rollouts']} "
        f"rollouts a prefix, the generator at Adam {schedule['learning_rate']:g}, "
        "against 200 rounds of 4,680 with 16 at 0.01; a "
        "discriminator step sees as many real and generated rows as a generator batch "
        f"({schedule['batch_size']} each). Rewards have a per-step baseline; SeqGAN "
        "has none.",
        "",
        "Wall time: "
        + "; ".join(f"{k} {v:.0f} s" for k, v in results["seconds"].items())
        + " (mean over seeds).",
        "",
        "![NLL_oracle against NLL_test](tradeoff.png)",
        "",
    ]
    with atomic_write(path, mode=PUBLIC) as file:
        file.write("\n".join(lines))


def write_plot(path: Path, seeds: dict[int, dict[str, Any]]) -> None:
    """NLL_oracle against NLL_test: what sharpening gives, and where each arm goes."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
    for axes in panels:
        for parts in seeds.values():
            _draw(axes, parts, first=parts is next(iter(seeds.values())))
        axes.set_xlabel("NLL_test (nats a token): lower covers the data better")
    whole, near = panels
    whole.set_ylabel("NLL_oracle (nats a token)")
    whole.legend()
    near.set_title("where the arms are")
    for axis, metric in ((near.set_xlim, "nll_test"), (near.set_ylim, "nll_oracle")):
        values = [
            point[metric]
            for parts in seeds.values()
            for setting in ("constant reward", "SeqGAN")
            for point in (parts["MLE"], *parts[setting]["curve"])
        ]
        margin = 0.15 * (max(values) - min(values)) or 0.01
        axis(min(values) - margin, max(values) + margin)
    with atomic_write(path, mode=PUBLIC, binary=True) as file:
        figure.savefig(file, format="png", dpi=150)
    plt.close(figure)


def _draw(axes: Any, parts: dict[str, Any], *, first: bool) -> None:
    """One seed's curves, named in the legend if it is the first."""
    start = parts["MLE"]
    for setting, colour in _COLOURS.items():
        points = parts[setting]["curve"]
        if setting != "tempered MLE":
            points = [start, *points]
        axes.plot(
            [p["nll_test"] for p in points],
            [p["nll_oracle"] for p in points],
            marker="o",
            markersize=3,
            color=colour,
            label=setting if first else None,
        )
    axes.plot(
        start["nll_test"],
        start["nll_oracle"],
        "k*",
        markersize=10,
        label="MLE" if first else None,
    )
    axes.axhline(
        parts["oracle"]["nll_oracle"],
        color="C2",
        linestyle=":",
        label="entropy of the oracle" if first else None,
    )
