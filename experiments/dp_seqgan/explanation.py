"""Why paper mode is not as published: what its discriminators and its text show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from experiments._synthesis.figures import Interval
from experiments.dp_seqgan import figures
from experiments.dp_seqgan.settings import ARMS, ORIGINAL
from experiments.dp_seqgan.tables import table

Found = dict[str, Any]
_PUBLISHED_ATTACK = "published (shadow SVM)"


def explanation(found: Found) -> list[str]:
    """The attack's accuracy beside what the attacked discriminators have learnt."""
    cells = found["cells"]
    if not (figures.of_arm(cells, "seqgan") and figures.of_arm(cells, "paper")):
        return []
    arms = [arm for arm in figures.arms(cells) if arm != ORIGINAL]
    head = ["", "noise multiplier", "gap of D", "accuracy", "called In", "AUC of LOGAN"]
    printed = found["published"]["attack_accuracy"]["paper"]
    return [
        "## Why paper mode is not as published",
        "",
        "Means over classes and seeds. The attack reads the discriminator, so it finds "
        "members where that tells S1 from S2. The published "
        f"{' and '.join(f'{one:.2f}' for one in printed)} are what it finds at a gap "
        "of 0, where a discriminator has learnt nothing of either set; they do not say "
        "how little their discriminator was trained.",
        "",
        *table(head, [_row(cells, arm) for arm in arms]),
        *_sentences(found),
        *_collapses(cells),
        "",
    ]


def _row(cells: Sequence[Found], arm: str) -> list[str]:
    attack = [
        one
        for cell in figures.of_arm(cells, arm)
        for one in cell["attacks"]
        if one["attack"] == _PUBLISHED_ATTACK
    ]
    return [
        ARMS[arm].title,
        _noise(cells, arm),
        _gap(cells, arm).show(),
        f"{_mean(one['accuracy']['value'] for one in attack):.3f}",
        f"{_mean(one['called_in'] for one in attack):.2f}",
        f"{_mean(_logan(cells, arm)):.3f}",
    ]


def _sentences(found: Found) -> list[str]:
    cells, printed = found["cells"], found["published"]["accuracy"]
    kept = _gap(cells, "paper").mean / _gap(cells, "seqgan").mean
    lines = [
        f"- Noise of {_noise(cells, 'paper')} clips leaves {100 * kept:.0f} % of the "
        "gap that SeqGAN's discriminator has without noise."
    ]
    if not figures.of_arm(cells, ORIGINAL):
        return lines
    epochs = {
        (arm, rows): figures.convergence(cells, arm, rows)["epochs"].mean
        for arm, rows in (
            (ORIGINAL, "all rows"),
            ("paper", "all rows"),
            ("paper", "rows of S1"),
        )
    }
    return [
        *lines,
        *(_accuracy(cells, printed, name) for name in ("RNN", "CNN")),
        f"- On all synthetic rows the RNN converges in "
        f"{epochs['paper', 'all rows']:.1f} epochs, on as many as S1 has in "
        f"{epochs['paper', 'rows of S1']:.1f}, on S1 itself in "
        f"{epochs[ORIGINAL, 'all rows']:.1f}: an epoch is as long as its set.",
    ]


def _accuracy(cells: Sequence[Found], printed: Found, name: str) -> str:
    """What a classifier reaches on S3 beside what is published of one."""
    ours = {
        arm: _mean(
            cell["metrics"][f"accuracy/{name}"] for cell in figures.of_arm(cells, arm)
        )
        for arm in (ORIGINAL, "seqgan", "paper")
    }
    line = (
        f"- The published {name} is at {printed[ORIGINAL][name]:.3f} after real rows "
        f"and {printed['paper'][name]:.3f} after synthetic ones; ours is at "
        f"{ours[ORIGINAL]:.3f}, at {ours['seqgan']:.3f} after SeqGAN's rows without "
        f"noise and at {ours['paper']:.3f} after paper mode's."
    )
    if ours[ORIGINAL] >= printed["paper"][name]:
        line += " What theirs gained by synthetic rows, ours has from real ones alone."
    return line


def _collapses(cells: Sequence[Found]) -> list[str]:
    """A sentence for each arm whose cells say where generators collapsed."""
    lines = []
    for arm in figures.arms(cells):
        own = [c for c in figures.of_arm(cells, arm) if "collapsed" in c]
        generators = sum(len(cell["sizes"]["S1"]) for cell in own)
        rounds = sorted(r for cell in own for r in cell["collapsed"].values())
        if not generators:
            continue
        line = f"- {ARMS[arm].title}: the text of {len(rounds)} of {generators} "
        line += "generators collapsed in adversarial training"
        if rounds:
            line += f", in round {', '.join(map(str, rounds))}: they go no further"
        lines.append(line + ".")
    return lines


def _noise(cells: Sequence[Found], arm: str) -> str:
    values = [
        event["event"]["noise_multiplier"]
        for cell in figures.of_arm(cells, arm)
        for event in (cell.get("privacy") or {"events": ()})["events"]
        if event["name"] == "discriminator" and "noise_multiplier" in event["event"]
    ]
    return f"{_mean(values):.3g}" if values else "none"


def _gap(cells: Sequence[Found], arm: str) -> Interval:
    return figures.regularisation(cells, arm, figures.gap)


def _logan(cells: Sequence[Found], arm: str) -> list[float]:
    return [
        figures.auc(one)
        for cell in figures.of_arm(cells, arm)
        for one in cell["attacks"]
        if one["attack"] == "LOGAN"
    ]


def _mean(values: Any) -> float:
    return Interval.of(values).mean
