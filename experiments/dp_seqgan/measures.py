"""What is measured of a fitted model: attacks, its discriminators, what RNNs learn."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from experiments._synthesis.measures import downstream
from experiments.dp_seqgan.figures import member_ranks
from experiments.dp_seqgan.settings import (
    MIXED_FOR,
    REAL_SHARES,
    SYNTHETIC_SHARES,
    Settings,
)
from tfpriv.accounting import DPSGDPlan
from tfpriv.attacks import score_membership
from tfpriv.attacks.audit_texts import AuditTexts
from tfpriv.attacks.class_discriminators import ClassDiscriminator, real_logits
from tfpriv.attacks.lira import LiRA
from tfpriv.attacks.published_attack import PublishedAttack
from tfpriv.attacks.released_text_model import ReleasedTextModel
from tfpriv.attacks.shadow_discriminators import ShadowDiscriminators
from tfpriv.attacks.text_membership import TextMembershipAttack
from tfpriv.datasets import Splits, TextDataset
from tfpriv.evaluation import mix
from tfpriv.evaluation.rnn import RNNClassifier
from tfpriv.seqgan.dp_seqgan import DPSeqGAN

Json = dict[str, Any]
EVERY_CLASS = "all"
LOGAN = "LOGAN"
GENERATOR = "generator likelihood"
PUBLISHED = "published (shadow SVM)"
ONLINE, OFFLINE = "LiRA online", "LiRA offline"


@dataclasses.dataclass(frozen=True)
class Scored:
    """Scores of one attack, before they are judged.

    Attributes:
        attack: its name.
        label: class, or `EVERY_CLASS`.
        members, non_members: float arrays.
        more: whatever else the attack found.
    """

    attack: str
    label: str
    members: np.ndarray
    non_members: np.ndarray
    more: Json = dataclasses.field(default_factory=dict)

    def to_json(self, attacks_tried: int) -> Json:
        """The score, and the members' ranks, from which seeds are pooled."""
        score = score_membership(
            self.attack, self.members, self.non_members, attacks_tried=attacks_tried
        ).to_json()
        del score["curve"]
        return {
            "attack": self.attack,
            "label": self.label,
            "score": score,
            "ranks": member_ranks(self.members, self.non_members),
            **self.more,
        }


# --- Attacks -----------------------------------------------------------------


def attack_text(synthetic: TextDataset, splits: Splits) -> list[Scored]:
    """All attacks that need nothing but the released text; S3 is their reference."""
    texts = AuditTexts.make(
        synthetic, splits.train, splits.validation, reference=splits.test
    )
    attack = TextMembershipAttack()
    members = len(texts.members)
    found = []
    for name in attack.names(texts):
        scores = attack.scores(texts, name)
        found.append(Scored(name, EVERY_CLASS, scores[:members], scores[members:]))
    return found


def attack_networks(
    settings: Settings,
    model: DPSeqGAN,
    target: ClassDiscriminator,
    synthetic: TextDataset,
    splits: Splits,
    *,
    seed: int,
) -> list[Scored]:
    """The attacks on one class's discriminator and generator."""
    s1, s2, s3, written = (
        part.by_label()[target.label].texts for part in (*splits, synthetic)
    )
    found = [
        Scored(LOGAN, target.label, target.logits(s1), target.logits(s2)),
        Scored(
            GENERATOR,
            target.label,
            target.log_likelihoods(s1),
            target.log_likelihoods(s2),
        ),
        _published(settings, target, (written, s3, s1, s2), seed),
    ]
    if seed in settings.lira_seeds:
        train = shadows(model, target, written)
        found += _lira(settings, train, target, (s1, s2), seed)
    return found


def _published(
    settings: Settings,
    target: ClassDiscriminator,
    parts: Sequence[Sequence[str]],
    seed: int,
) -> Scored:
    attack = PublishedAttack(
        shadows=settings.published_shadows,
        epochs=settings.published_epochs,
        steps=settings.published_steps,
        seed=seed,
    )
    written, s3, s1, s2 = parts
    # As many rows a shadow as the attacked discriminator had.
    written = written[: settings.published_shadows * len(s1)]
    result = attack.run(target, written, s3, s1, s2)
    more = {
        "accuracy": result.accuracy.to_json(),
        "called_in": result.called_in,
        "tested": result.tested,
        "shadows": result.shadows,
    }
    scores = result.member_decisions, result.non_member_decisions
    return Scored(PUBLISHED, target.label, *scores, more)


def _lira(
    settings: Settings,
    train: ShadowDiscriminators,
    target: ClassDiscriminator,
    parts: tuple[Sequence[str], Sequence[str]],
    seed: int,
) -> list[Scored]:
    s1, s2 = parts
    population = target.encode([*s1, *s2])
    attack = LiRA(train, shadows=settings.lira_shadows, seed=seed).fit(population)
    phi = real_logits(target.discriminator, population)
    found = []
    for name, offline in ((ONLINE, False), (OFFLINE, True)):
        scores = attack.scores(phi, offline=offline)
        found.append(Scored(name, target.label, scores[: len(s1)], scores[len(s1) :]))
    return found


def shadows(
    model: DPSeqGAN, target: ClassDiscriminator, written: Sequence[str]
) -> ShadowDiscriminators:
    """Training of discriminators as this model trained its own."""
    if model.mode != "guaranteed":
        # Paper mode's noise of .001 is taken for none; steps are what matters.
        return ShadowDiscriminators(
            target.discriminator,
            target.encode(written),
            steps=model.published.discriminator_steps,
            batch_size=model.published.batch_size,
            learning_rate=model.published.discriminator_learning_rate,
        )
    number = model.method.labels.index(target.label)
    size = max(1, round(float(model.method.class_sizes[number])))
    (part,) = [p for p in model.plan() if p["part"] == "discriminator"]
    return ShadowDiscriminators(
        target.discriminator,
        target.encode(written),
        batch_size=model.settings.batch_size,
        # That of `ClassGAN`.
        learning_rate=2e-3,
        start=target.start,
        plan=DPSGDPlan(
            num_examples=size,
            batch_size=size,
            steps=part["times"],
            noise_multiplier=part["noise_multiplier"],
            sampling="full_batch",
        ),
    )


# --- Does noise act as a regulariser? ----------------------------------------


def regularisation(
    target: ClassDiscriminator, splits: Splits, *, outliers: float
) -> Json:
    """How a discriminator treats records it saw, others, and outliers among both.

    Outliers are the records of S1 and S2 that are least likely under n-grams of S3's
    texts of the class, which no discriminator saw.

    Returns:
        Mean D(r) and share with D(r) > 1/2 for S1 and S2, and mean D(r) of outliers
        and of the other records of each.
    """
    s1, s2, s3 = (part.by_label()[target.label].texts for part in splits)
    known = ReleasedTextModel(s3, more=[*s1, *s2])
    likelihoods = known.log_likelihoods([*s1, *s2])
    unusual = likelihoods <= np.quantile(likelihoods, outliers)
    real = 1 / (1 + np.exp(-target.logits([*s1, *s2])))
    seen = np.arange(len(real)) < len(s1)
    figures: Json = {"label": target.label}
    for name, part in (("train", seen), ("held_out", ~seen)):
        figures[f"{name}/mean"] = float(real[part].mean())
        figures[f"{name}/taken_for_real"] = float((real[part] > 0.5).mean())
        for kind, chosen in (("outliers", unusual), ("others", ~unusual)):
            kept = real[part & chosen]
            figures[f"{name}/{kind}"] = float(kept.mean()) if len(kept) else None
    return figures


# --- Does synthetic text help real text? ---


def augmentation(
    real: TextDataset,
    synthetic: TextDataset,
    test: TextDataset,
    *,
    seed: int,
    options: dict[str, Any],
) -> list[Json]:
    """Accuracy on `test` after training on some real rows and some synthetic ones.

    Returns:
        For each mixture its shares, both of the number of real rows, its rows, and the
        accuracy of each classifier.
    """
    shares = [x for x in SYNTHETIC_SHARES if x * len(real) <= len(synthetic)]
    sets = mix(
        real,
        synthetic,
        real_shares=REAL_SHARES,
        synthetic_shares=shares,
        seed=seed,
    )
    found = []
    for (real_share, synthetic_share), mixed in sets.items():
        figures = downstream(mixed, test, MIXED_FOR, seed=seed, options=options)
        found.append(
            {
                "real": real_share,
                "synthetic": synthetic_share,
                "rows": len(mixed),
                **{k: v for k, v in figures.items() if k.startswith("accuracy/")},
            }
        )
    return found


# --- How fast does an RNN converge? ------------------------------------------


def convergence(
    train: TextDataset, test: TextDataset, *, steps: int, seed: int
) -> list[float]:
    """Accuracy on `test` after each pass over `train`, and after the last step."""
    return RNNClassifier(steps=steps, seed=seed).fit(train, test).curve_
