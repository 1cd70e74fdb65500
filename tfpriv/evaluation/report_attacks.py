"""The chapter on attacks: what those that were made found; internal."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tfpriv._figures import rounded_up
from tfpriv.attacks import Estimate
from tfpriv.attacks.audit_result import AuditResult
from tfpriv.evaluation.report_blocks import Block, Figure, Paragraph, Section, Table
from tfpriv.evaluation.report_plots import areas_picture, roc_picture

if TYPE_CHECKING:
    from tfpriv.evaluation.report_run import InternalFiles

# A picture of more curves than these cannot be read; the table has all.
_MOST_CURVES = 4
_MALFORMED = (KeyError, TypeError, ValueError, AttributeError)


def attacks(
    files: InternalFiles, made_by: str, release: str | None = None
) -> tuple[Section, list[Figure]]:
    """Returns the chapter, and what of it goes into the summary.

    Args:
        files: of the run.
        made_by: the command that makes attacks on such a run.
        release: SHA-256 of the released text; None where none is released.
    """
    blocks: list[Block] = []
    figures: list[Figure] = []
    for name, value in _found(files):
        of = value.get("synthetic_sha256", release) if name == "membership" else release
        if of != release:
            blocks.append(
                Paragraph(
                    f"The audit that was made is of another synthetic text ({of}) than "
                    f"the one that is released now: it is not shown. Make it again: "
                    f"{made_by}",
                    "warning",
                )
            )
            continue
        try:
            show = _SHOWN[name]
            found, figure = show(value)
        except _MALFORMED:
            blocks.append(_unreadable(name))
            continue
        blocks += found
        if figure.title not in {other.title for other in figures}:
            figures.append(figure)
    blocks += [_unreadable(name) for name in files.damaged if name in _WRITTEN_BY]
    if not blocks:
        blocks.append(
            Paragraph(
                "No attack was made yet, which says nothing about what one would find. "
                f"Make some: {made_by}"
            )
        )
    return Section("Attacks", blocks), figures


def _found(files: InternalFiles) -> list[tuple[str, dict[str, Any]]]:
    """Results by what they are; an attribute attack that found a leak comes first.

    `tfpriv audit` and `tfpriv rmat attack` may have seen other releases and other
    numbers of them: neither stands for the other.
    """
    audit = files.audit or {}
    found: list[tuple[str, dict[str, Any]]] = []
    if files.audit is not None and not {"attribute_inference", "inversion"} & {*audit}:
        found.append(("membership", audit))
    made = (audit.get("attribute_inference"), files.attribute_attack)
    attributes = [value for value in made if value is not None]
    attributes.sort(key=lambda v: not (isinstance(v, dict) and v.get("leaks")))
    found += [("attribute inference", value) for value in attributes]
    if audit.get("inversion") is not None:
        found.append(("inversion", audit["inversion"]))
    return found


def _unreadable(name: str) -> Paragraph:
    return Paragraph(
        f"The result of the {_WRITTEN_BY.get(name, name)} is damaged or another "
        "version's: it is not shown. Make the attack again.",
        "warning",
    )


def _membership(value: dict[str, Any]) -> tuple[list[Block], Figure]:
    result = AuditResult.from_json(value)
    epsilon = result.claimed_epsilon
    level = f"{100 * result.confidence:g} %"
    rates = list(result.scores[0].tpr)
    columns = ["Membership attack", "AUC", "advantage"]
    columns += [f"TPR at {100 * rate:g} % FPR" for rate in rates]
    columns += ["ε at least"]
    rows = [
        [
            score.name,
            str(score.auc),
            str(score.advantage),
            *(str(score.tpr[rate]) for rate in rates),
            f"{score.epsilon_lower:.2f}",
        ]
        for score in result.scores
    ]
    worst_first = sorted(result.scores, key=lambda s: -s.auc.value)
    tone = "warning" if result.succeeds or result.groups_differ else "plain"
    blocks: list[Block] = [
        Paragraph(result.verdict(), tone),
        roc_picture(worst_first[:_MOST_CURVES], of=len(worst_first)),
        Table(
            columns,
            rows,
            f"Who was in the data? Intervals of {level} for all "
            f"{result.attacks_tried} attacks together.",
        ),
        Paragraph(result.setting(), "note"),
    ]
    beside = "no epsilon claimed"
    if epsilon is not None and math.isfinite(epsilon):
        beside = f"claimed: {rounded_up(epsilon)}"
    worst = result.worst
    figure = Figure(
        "Worst membership attack",
        f"AUC {worst.auc.value:.3f}",
        f"ε at least {worst.epsilon_lower:.2f}, {beside}",
    )
    return blocks, figure


def _attribute(value: dict[str, Any]) -> tuple[list[Block], Figure]:
    """What `AttributeInferenceResult.to_json` wrote."""
    level = f"{100 * value['confidence']:g} %"
    scores = [
        (
            score["name"],
            *(
                Estimate(**score[key])
                for key in ("auc", "macro_f1", "balanced_accuracy", "adjusted_auc")
            ),
        )
        for score in value["attackers"]
    ]
    rows = [
        (name.replace("_", " "), str(auc), str(f1), str(even))
        for name, auc, f1, even, _ in scores
    ]
    rows += [
        ("best constant guess", "0.500", f"{value['constant_macro_f1']:.3f}", ""),
        ("guess by training shares", "0.500", f"{value['prior_macro_f1']:.3f}", ""),
    ]
    worst = next(score for score in scores if score[0] == value["worst"])
    name = worst[0].replace("_", " ")
    releases = value["releases"]
    text = (
        f"The worst attacker is {name}, AUC {worst[1].value:.3f}; corrected for "
        f"{len(scores)} attackers the interval is [{worst[4].low:.3f}, "
        f"{worst[4].high:.3f}]. Where nothing is told, the largest AUC of so many "
        f"attackers stays below {value['null_auc_bound']:.3f} in {level} of cases "
        f"(p = {value['p_value']:.3f}). "
    )
    if value["leaks"]:
        text += "So the private attribute LEAKS."
    else:
        text += "So no leak was found, which is no proof that there is none."
    blocks: list[Block] = [
        Paragraph(text, "warning" if value["leaks"] else "plain"),
        areas_picture([score[:2] for score in scores], value["null_auc_bound"]),
        Table(
            ("Attacker", "AUC", "macro-F1", "balanced accuracy"),
            rows,
            "Which private label does a text have, judging by its representation? "
            f"Intervals of {level}.",
        ),
        Paragraph(
            f"Trained on {value['train_rows']:,} rows, tested on "
            f"{value['test_rows']:,} others, {releases} "
            f"{'release' if releases == 1 else 'releases'} of each text, fresh noise.",
            "note",
        ),
    ]
    figure = Figure(
        "Worst attribute attack",
        f"AUC {worst[1].value:.3f}",
        "leaks" if value["leaks"] else "no leak found; chance: 0.500",
    )
    return blocks, figure


def _inversion(value: dict[str, Any]) -> tuple[list[Block], Figure]:
    """What `InversionResult.to_json` wrote."""
    level = f"{100 * value['confidence']:g} %"
    blind = value["blind"]
    rows = [
        (
            score["name"].replace("_", " "),
            str(Estimate(**score["f1"])),
            str(Estimate(**score["precision"])),
            _gain(score["f1_gain"]),
        )
        for score in value["attackers"]
    ]
    rows.append(
        (
            "a guess without the representation",
            str(Estimate(**blind["f1"])),
            str(Estimate(**blind["precision"])),
            "",
        )
    )
    text = (
        "Words ARE recovered from representations, more than by guessing blindly."
        if value["leaks"]
        else "No more words were recovered than by guessing blindly, which is no proof "
        "that there are none to find."
    )
    blocks: list[Block] = [
        Paragraph(text, "warning" if value["leaks"] else "plain"),
        Table(
            (
                "Attacker",
                "F1",
                f"precision at {value['k']}",
                "F1 above blind",
            ),
            rows,
            f"Which of {value['words']:,} words does a text have, judging by its "
            f"representation? Intervals of {level}.",
        ),
        Paragraph(
            f"Learnt from {value['reference_rows']:,} texts, tested on "
            f"{value['test_rows']:,} others.",
            "note",
        ),
    ]
    worst = next(s for s in value["attackers"] if s["name"] == value["worst"])
    figure = Figure(
        "Words recovered",
        f"F1 {worst['f1']['value']:.3f}",
        f"a blind guess: {blind['f1']['value']:.3f}",
    )
    return blocks, figure


def _gain(value: dict[str, float]) -> str:
    return f"{value['value']:+.3f} [{value['low']:+.3f}, {value['high']:+.3f}]"


_SHOWN = {
    "membership": _membership,
    "attribute inference": _attribute,
    "inversion": _inversion,
}
# What is in a file, where the file cannot be read.
_WRITTEN_BY = {"audit.json": "audit", "attack.json": "attribute attack"}
