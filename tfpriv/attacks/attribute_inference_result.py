"""What an attribute inference attack found, as a table and as JSON."""

from __future__ import annotations

import dataclasses
from typing import Any

from tfpriv.attacks.estimate import Estimate


@dataclasses.dataclass(frozen=True)
class AttackerScore:
    """How well one attacker guesses the private attribute of test rows.

    Attributes:
        name: what the attacker is, and what it looked at.
        auc: area under the ROC curve; .5 for guesses without information.
        macro_f1: mean over classes of the F1 score.
        balanced_accuracy: mean over classes of the recall.
        accuracy: share of right guesses.
        adjusted_auc: `auc` with the interval of one of several attackers, Bonferroni.
        auc_by_run: the AUC of each training.
    """

    name: str
    auc: Estimate
    macro_f1: Estimate
    balanced_accuracy: Estimate
    accuracy: Estimate
    adjusted_auc: Estimate
    auc_by_run: tuple[float, ...]

    def to_json(self) -> dict[str, Any]:
        """Returns the fields as plain JSON."""
        value = dataclasses.asdict(self)
        return {**value, "auc_by_run": list(self.auc_by_run)}


@dataclasses.dataclass(frozen=True)
class AttributeInferenceResult:
    """Scores of all attackers beside what can be guessed blindly.

    It is computed from private records: internal, and without an epsilon. It names no
    class and shows no row.

    Attributes:
        attackers: one score an attacker.
        confidence: probability of the intervals.
        null_auc: mean of the largest AUC of as many attackers where nothing is told.
        null_auc_bound: what that AUC stays below with probability `confidence`.
        p_value: how often it is as large as the worst attacker's.
        constant_macro_f1: macro-F1 on the test rows of the best constant guess.
        prior_macro_f1: macro-F1 there of a guess drawn from the training shares.
        majority_accuracy: accuracy there of the best constant guess.
        num_classes: classes of the test rows, over which means are taken.
        unseen_classes: those of them that no training row has.
        train_rows: rows that the attackers were trained on.
        test_rows: rows that they were scored on.
        test_groups: groups of test rows that were resampled, None for single rows.
        releases: representations of each text that the attackers saw.
        dimension: features of one representation.
        seconds: how long it took.
    """

    attackers: tuple[AttackerScore, ...]
    confidence: float
    null_auc: float
    null_auc_bound: float
    p_value: float
    constant_macro_f1: float
    prior_macro_f1: float
    majority_accuracy: float
    num_classes: int
    unseen_classes: int
    train_rows: int
    test_rows: int
    test_groups: int | None
    releases: int
    dimension: int
    seconds: float

    @property
    def worst(self) -> AttackerScore:
        """The attacker with the highest AUC."""
        return max(self.attackers, key=lambda score: score.auc.value)

    @property
    def highest_macro_f1(self) -> AttackerScore:
        """The attacker with the highest macro-F1, which may be another one."""
        return max(self.attackers, key=lambda score: score.macro_f1.value)

    @property
    def leaks(self) -> bool:
        """Whether the worst attacker does better than chance can explain.

        Its adjusted interval lies above .5 and its p-value is at most
        1 - `confidence`: on few rows the interval alone is too narrow. An AUC
        reliably below .5 is no use to an attacker, but a sign that training and test
        rows differ.
        """
        above = self.worst.adjusted_auc.low > 0.5
        return above and self.p_value <= 1 - self.confidence + 1e-12

    def to_json(self) -> dict[str, Any]:
        """Returns fields, the worst attacker's name and the verdict as plain JSON."""
        value = {
            field.name: getattr(self, field.name) for field in dataclasses.fields(self)
        }
        return {
            "worst": self.worst.name,
            "leaks": self.leaks,
            **value,
            "attackers": [score.to_json() for score in self.attackers],
        }

    def to_markdown(self) -> str:
        """Returns a table and what it says, in Markdown."""
        percent = f"{100 * self.confidence:g} %"
        rows = [
            f"| attacker | AUC [{percent}] | macro-F1 | balanced accuracy | accuracy |",
            "|---|---|---|---|---|",
        ]
        for score in self.attackers:
            name = f"**{score.name}**" if score is self.worst else score.name
            cells = (
                score.auc,
                score.macro_f1,
                score.balanced_accuracy,
                score.accuracy,
            )
            rows.append(f"| {name} | {' | '.join(map(str, cells))} |")
        even = f"{1 / self.num_classes:.3f}"
        rows += [
            f"| the best constant guess | 0.500 | {self.constant_macro_f1:.3f} "
            f"| {even} | {self.majority_accuracy:.3f} |",
            f"| a guess from the training shares | 0.500 | {self.prior_macro_f1:.3f} "
            f"| {even} | |",
        ]
        return "\n".join([*rows, "", self._verdict(), "", self._setting()])

    def __str__(self) -> str:
        return self.to_markdown()

    def _verdict(self) -> str:
        worst, count = self.worst, len(self.attackers)
        adjusted = f"adjusted for {count} attackers " if count > 1 else ""
        text = (
            f"Worst attacker: {worst.name}, AUC {worst.auc.value:.3f}, "
            f"{adjusted}[{worst.adjusted_auc.low:.3f}, {worst.adjusted_auc.high:.3f}], "
            f"macro-F1 {worst.macro_f1.value:.3f}. "
        )
        if count > 1:
            text += (
                "The best of several attackers looks better than it is: where nothing "
                f"is told, the largest of these {count} AUCs is {self.null_auc:.3f} on "
                f"average and stays below {self.null_auc_bound:.3f} in "
            )
        else:
            text += (
                f"Where nothing is told, it stays below {self.null_auc_bound:.3f} in "
            )
        text += f"{100 * self.confidence:g} % of cases (p = {self.p_value:.3f}). "
        if self.leaks:
            return text + "So the private attribute LEAKS."
        return text + "So no leak was found, which is no proof that there is none."

    def _setting(self) -> str:
        text = f"Trained on {self.train_rows} rows and tested on {self.test_rows}"
        if self.test_groups is not None:
            text += f" in {self.test_groups} groups"
        text += f", {self.dimension} features"
        if self.releases > 1:
            text += f" of each of {self.releases} releases a text"
        text += f", {self.num_classes} classes"
        if self.unseen_classes:
            text += f" ({self.unseen_classes} of them in no training row)"
        return f"{text}. Intervals are over trainings and test rows."
