"""The tables: what was measured beside what was published."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from experiments._synthesis.figures import Interval
from experiments.dp_seqgan import figures
from experiments.dp_seqgan.settings import (
    ARMS,
    CANARIES,
    CANARY_ARMS,
    MIXED_FOR,
    ORIGINAL,
    REAL_SHARES,
    SYNTHETIC_SHARES,
)

Found = dict[str, Any]
_PUBLISHED_ATTACK = "published (shadow SVM)"
_NETWORKS = ("RNN", "CNN")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a Markdown table and an empty one."""
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    return [*lines, *(f"| {' | '.join(row)} |" for row in rows), ""]


def attack_accuracy(found: Found) -> list[str]:
    """Table 1: the paper's attack, one column a class."""
    cells, published = found["cells"], found["published"]["attack_accuracy"]
    attacked = [arm for arm in figures.arms(cells) if arm != ORIGINAL]
    labels = sorted(
        {
            label
            for arm in attacked
            for attack, label in figures.attacks(cells, arm)
            if attack == _PUBLISHED_ATTACK
        }
    )
    rows = []
    for arm in attacked:
        row = [ARMS[arm].title, str(len(figures.of_arm(cells, arm)))]
        for label in labels:
            args = (cells, arm, _PUBLISHED_ATTACK, label)
            right = figures.attack_mean(*args, figures.accuracy).show()
            row.append(
                f"{right} (AUC {figures.attack_mean(*args, figures.auc).show()})"
            )
        shown = " and ".join(f"{x:.2f}" for x in published.get(arm, ()))
        rows.append([*row, shown or "-"])
    head = ["", "seeds", *labels, "published, one figure a class"]
    return [
        "## Table 1: accuracy of the published attack",
        "",
        "Half of the test records are members (S1), half are not (S2); .5 is chance. "
        "The attack learns In from generated and Out from real records, so that it may "
        "tell generated from real text and nothing of membership: where it calls all "
        "records In, or none, an accuracy of .5 says nothing.",
        "",
        *table(head, rows),
    ]


def every_attack(found: Found) -> list[str]:
    """AUC of all attacks, class by class, and pooled with corrected intervals."""
    cells = found["cells"]
    attacked = [arm for arm in figures.arms(cells) if arm != ORIGINAL]
    pairs = list(
        dict.fromkeys(p for arm in attacked for p in figures.attacks(cells, arm))
    )
    rows = [
        [
            attack,
            label,
            *(
                figures.attack_mean(cells, arm, attack, label, figures.auc).show()
                for arm in attacked
            ),
        ]
        for attack, label in pairs
    ]
    lines = [
        "## All attacks",
        "",
        "AUC of telling S1 from S2, mean and 95 % interval over seeds (none for one "
        "seed); .5 is chance.",
        "",
        *table(["attack", "class", *(ARMS[arm].title for arm in attacked)], rows),
        "Pooled over classes and seeds; the intervals hold for all attacks on an arm "
        "together (95 %), and pay for none of the records being in several seeds. "
        "What an attack does not show may be there all the same.",
        "",
    ]
    rows = [
        [
            ARMS[arm].title,
            score.name,
            f"{score.members} / {score.non_members}",
            str(score.auc),
            str(score.advantage),
            str(score.tpr[0.01]),
            str(score.tpr[0.001]),
            f"{score.epsilon_lower:.2f}",
            claimed(cells, arm),
        ]
        for arm in attacked
        for score in figures.pooled(cells, arm)
    ]
    head = ["", "attack", "members / others", "AUC", "advantage"]
    head += ["TPR at 1 % FPR", "TPR at .1 % FPR", "epsilon at least", "claimed"]
    return [*lines, *table(head, rows)]


def claimed(cells: Sequence[Found], arm: str) -> str:
    """What the statements of an arm say, in a few words."""
    whole, alone = figures.epsilon(cells, arm)
    if whole is not None:
        return f"{whole:.3g}"
    if alone is None:
        return "nothing"
    return f"nothing (discriminator: {alone:,.0f})"


def usefulness(found: Found) -> list[str]:
    """Figure 3: accuracy on S3 of networks trained on each set."""
    cells, published = found["cells"], found["published"]["accuracy"]
    rows = []
    for arm in figures.arms(cells):
        own = figures.of_arm(cells, arm)
        row = [ARMS[arm].title, str(len(own))]
        for name in _NETWORKS:
            row.append(  # noqa: PERF401
                Interval.of(c["metrics"][f"accuracy/{name}"] for c in own).show()
            )
        printed = published.get(arm, {})
        row += [f"{printed[n]:.3f}" if n in printed else "-" for n in _NETWORKS]
        before = sum(c["metrics_from"] == "experiments.youtube_spam" for c in own)
        rows.append([*row, f"{before} of {len(own)}"])
    head = ["trained on", "seeds", *_NETWORKS]
    head += [f"published {name}" for name in _NETWORKS]
    head += ["cells measured by youtube_spam"]
    return [
        "## Figure 3: accuracy on S3",
        "",
        "Where `experiments.youtube_spam` has measured an arm and seed with these "
        "settings, its figure stands here: of another model of the same kind, with "
        "noise of its own.",
        "",
        *table(head, rows),
    ]


def augmentation(found: Found) -> list[str]:
    """Accuracy after training on real rows with synthetic ones added in steps."""
    cells = found["cells"]
    rows = []
    for arm in figures.arms(cells):
        own = [c for c in figures.of_arm(cells, arm) if c.get("mixtures")]
        if not own:
            continue
        for real in REAL_SHARES:
            for name in MIXED_FOR:
                row = [ARMS[arm].title, str(len(own)), f"{real:.0%}", name]
                for synthetic in SYNTHETIC_SHARES:
                    values = [
                        one[f"accuracy/{name}"]
                        for cell in own
                        for one in cell["mixtures"]
                        if (one["real"], one["synthetic"]) == (real, synthetic)
                    ]
                    row.append(Interval.of(values).show() if values else "-")
                rows.append(row)
    if not rows:
        return []
    head = ["synthetic rows of", "seeds", "real rows", "trained"]
    head += [f"+ {share:g} x" if share else "alone" for share in SYNTHETIC_SHARES]
    return [
        "## Real rows with synthetic ones added",
        "",
        "Accuracy on S3 after training on a share of S1 alone, and with synthetic rows "
        "added, as multiples of the rows of S1 (section 3.2 of the paper proposes it "
        "and prints no figure). What is trained on real rows has no guarantee from "
        "the synthetic ones.",
        "",
        *table(head, rows),
    ]


def convergence(found: Found) -> list[str]:
    """Figure 4: how soon the RNN has converged, in epochs and in steps."""
    cells, published = found["cells"], found["published"]["epochs"]
    rows = []
    for arm in figures.arms(cells):
        for kind in ("all rows", "rows of S1"):
            shown = figures.convergence(cells, arm, kind)
            if not shown["epochs"].n:
                continue
            printed = published.get(arm, "-") if kind == "all rows" else "-"
            rows.append(
                [
                    ARMS[arm].title,
                    kind,
                    shown["epochs"].show(1),
                    str(printed),
                    shown["steps"].show(0),
                    shown["accuracy"].show(),
                ]
            )
    head = ["trained on", "", "epochs", "published", "gradient steps", "accuracy then"]
    return [
        "## Figure 4: epochs until the RNN has converged",
        "",
        "The first pass from which accuracy on S3 stays within "
        f"{figures.CONVERGED_WITHIN:g} of its last value. An epoch over more rows has "
        "more gradient steps: synthetic sets are also cut to the number of rows of S1, "
        "which makes epochs alike.",
        "",
        *table(head, rows),
    ]


def regularisation(found: Found) -> list[str]:
    """The paper's explanation: noise keeps the discriminator from memorising."""
    cells = found["cells"]
    rows = []
    for arm in figures.arms(cells):
        if not any(c.get("regularisation") for c in figures.of_arm(cells, arm)):
            continue
        row = [ARMS[arm].title]
        for figure in _REGULARISATION.values():
            row.append(figures.regularisation(cells, arm, figure).show())  # noqa: PERF401
        rows.append(row)
    return [
        "## Does noise act as a regulariser?",
        "",
        "Mean D(r) over classes. The gap is that of S1, which the discriminator saw, "
        "above S2. Outliers are the tenth of a class's records that are least likely "
        "under n-grams of S3; the paper has noise call them generated. Where the gap "
        "is as large with noise as without, noise was no regulariser.",
        "",
        *table(["", *_REGULARISATION], rows),
    ]


def _less(one: Found, first: str, second: str) -> float | None:
    if one[first] is None or one[second] is None:
        return None
    return one[first] - one[second]


_REGULARISATION = {
    "D on S1": lambda one: one["train/mean"],
    "D on S2": lambda one: one["held_out/mean"],
    "gap": figures.gap,
    "S1 taken for real": lambda one: one["train/taken_for_real"],
    "S2 taken for real": lambda one: one["held_out/taken_for_real"],
    "outliers of S1": lambda one: one["train/outliers"],
    "outliers of S1, less the others": lambda one: _less(
        one, "train/outliers", "train/others"
    ),
    "outliers of S2, less the others": lambda one: _less(
        one, "held_out/outliers", "held_out/others"
    ),
}


def canaries(found: Found) -> list[str]:
    """Exposure of canaries, and what one run says against the claim."""
    rows = []
    for arm in CANARY_ARMS:
        for cell in figures.of_arm(found["cells"], arm):
            for one in cell["canaries"]:
                audit = one["audit"]
                rows.append(
                    [
                        ARMS[arm.removeprefix(CANARIES)].title,
                        str(cell["seed"]),
                        one["attack"],
                        f"{one['exposure/in']:.2f}",
                        f"{one['exposure/out']:.2f}",
                        f"{one['exposure/ceiling']:.2f}",
                        f"{one['exposure/p_value']:.2g}",
                        f"{audit['correct']} of {audit['guesses']}",
                        f"{audit['epsilon_lower']:.2f}",
                        f"{audit['ceiling']:.2f} / {audit['records_ceiling']:.2f}",
                        claimed(found["cells"], arm),
                    ]
                )
    if not rows:
        return []
    head = ["", "seed", "attack", "exposure in", "exposure out", "at most", "p"]
    head += ["guesses right", "epsilon at least", "ceiling", "claimed"]
    return [
        "## Canaries, and a one-run audit",
        "",
        "A canary has a prefix of a record of S3 and three random words; a fair "
        "coin each puts it in. Exposure is in bits, among candidates with other words; "
        "p is how likely those that were put in rank so high if they left no trace. "
        "The ceiling is what the bound were if every guess were right, and if all "
        "coins were guessed rightly: a claim above it cannot be refuted so.",
        "",
        *table(head, rows),
    ]


def targets(found: Found) -> list[str]:
    """What was to come out."""
    rows = [
        [t["what"], t["goal"], t["value"], "met" if t["met"] else "**missed**"]
        for t in found["targets"]
    ]
    if not rows:
        return []
    return ["## Targets", "", *table(["what", "goal", "measured", ""], rows)]
