"""A cell with canaries: what one run says against the claimed epsilon."""

from __future__ import annotations

import dataclasses
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments._cells.machine import machine, versions
from experiments.dp_seqgan import cells
from experiments.dp_seqgan.settings import CANARIES, Settings
from tfpriv.attacks.canaries import (
    Canary,
    exposure_p_value,
    insert_canaries,
    make_canaries,
    measure_exposure,
)
from tfpriv.attacks.class_discriminators import ClassDiscriminator, class_discriminators
from tfpriv.attacks.one_run import audit_one_run
from tfpriv.attacks.released_text_model import ReleasedTextModel

Json = dict[str, Any]
Score = Callable[[Sequence[str]], np.ndarray]


def run_canary_cell(settings: Settings, arm: str, seed: int, work: Path) -> Json:
    """Fits an arm on S1 and on canaries that a fair coin each puts in.

    Prefixes come from S3. The coins are drawn from the operating system: the bound
    rests on nobody else knowing them.

    Args:
        settings: Settings.
        arm: key of `settings.ARMS` behind "canaries/".
        seed: as of any cell.
        work: as of any cell.

    Returns:
        JSON: for each attack a one-run audit, and the exposures of canaries that
        were put in and of those that were not.
    """
    start, cpu = time.monotonic(), time.process_time()
    splits = cells.split(settings, seed)
    labels = sorted(splits.test.by_label())
    canaries = [
        canary
        for number, label in enumerate(labels)
        for canary in make_canaries(
            splits.test.by_label()[label].texts,
            settings.canaries // len(labels),
            label=label,
            alternatives=settings.alternatives,
            seed=seed * 100 + number,
        )
    ]
    coins = np.random.default_rng().random(len(canaries)) < 0.5
    chosen = [c for c, coin in zip(canaries, coins, strict=True) if coin]
    train = insert_canaries(splits.train, chosen)
    # A run that was killed had other coins, and so other records.
    shutil.rmtree(work, ignore_errors=True)
    model = cells.fitted(
        settings,
        arm.removeprefix(CANARIES),
        seed,
        dataclasses.replace(splits, train=train),
        work,
    )
    synthetic = model.generate(settings.rows, seed=seed)
    found = []
    scores = _scores(class_discriminators(model, work), synthetic.texts, canaries)
    for name, score in scores.items():
        audit = audit_one_run(
            coins,
            _by_class(canaries, score),
            guesses=len(canaries) // 4 * 2,
            audits_tried=len(scores),
        )
        exposures = [measure_exposure(c, score[c.label]) for c in canaries]
        inside = [e for e, coin in zip(exposures, coins, strict=True) if coin]
        outside = [e for e, coin in zip(exposures, coins, strict=True) if not coin]
        found.append(
            {
                "attack": name,
                "audit": audit.to_json(),
                "exposure/in": float(np.mean([e.exposure for e in inside])),
                "exposure/out": float(np.mean([e.exposure for e in outside])),
                "exposure/ceiling": exposures[0].ceiling,
                "exposure/p_value": exposure_p_value(inside),
            }
        )
    shutil.rmtree(work, ignore_errors=True)
    return {
        "experiment": "dp_seqgan",
        "arm": arm,
        "seed": seed,
        "canaries": found,
        "privacy": model.privacy_statement().to_json(),
        "seconds": round(time.monotonic() - start, 1),
        "cpu_seconds": round(time.process_time() - cpu, 1),
        "machine": machine(),
        "versions": versions(),
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def _scores(
    targets: Sequence[ClassDiscriminator],
    released: Sequence[str],
    canaries: Sequence[Canary],
) -> dict[str, dict[str, Score]]:
    """Attack -> class -> what scores texts of the class."""
    text = ReleasedTextModel(released, more=[t for c in canaries for t in c.candidates])
    found = {"released text": {c.label: text.log_likelihoods for c in canaries}}
    if {target.label for target in targets} >= {c.label for c in canaries}:
        found["discriminator"] = {t.label: t.logits for t in targets}
        found["generator"] = {t.label: t.log_likelihoods for t in targets}
    return found


def _by_class(canaries: Sequence[Canary], score: dict[str, Score]) -> np.ndarray:
    """Scores of canaries, each less the mean of its class: classes differ in scale."""
    labels = np.array([canary.label for canary in canaries])
    scores = np.zeros(len(canaries))
    for label in np.unique(labels):
        places = np.flatnonzero(labels == label)
        scores[places] = score[label]([canaries[i].text for i in places])
        scores[places] -= scores[places].mean()
    return scores
