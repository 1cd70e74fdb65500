"""One cell: one arm at one seed, from the data set to everything measured of it."""

from __future__ import annotations

import gc
import time
from typing import Any

from experiments._cells.machine import machine, versions
from experiments._synthesis.measures import (
    Figures,
    downstream,
    majority,
    public_model,
    shuffled_perplexity,
    text_quality,
)
from experiments._synthesis.study import ORIGINAL, Arm, Study
from tfpriv import datasets
from tfpriv.datasets import Splits, TextDataset
from tfpriv.datasets.registry import data_folder
from tfpriv.seqgan.class_gan import GANSettings
from tfpriv.seqgan.dp_seqgan import DPSeqGAN
from tfpriv.seqgan.published import PublishedSettings

_EXAMPLES = 20


def run_cell(study: Study, arm: Arm, seed: int, part: str) -> dict[str, Any]:
    """Makes and measures a training set.

    Args:
        study: Study.
        arm: how the training set is made from S1.
        seed: of the split, the networks and drawn text.
        part: "test" (S3) or "validation" (S2), what classifiers are tested on.

    Returns:
        JSON of one cell; see `experiments/_synthesis/__init__.py`.
    """
    start = time.monotonic()
    splits = _split(study, seed)
    test = getattr(splits, part)
    cell: dict[str, Any] = {
        "experiment": study.name,
        "arm": arm.key,
        "seed": seed,
        "part": part,
        "sizes": {"train": len(splits.train), "test": len(test)},
    }
    if arm.method == ORIGINAL:
        cell["metrics"] = _measure_original(study, splits.train, test, seed)
    else:
        model = make_model(study, arm, seed)
        model.fit(splits.train, report=lambda stage, done: None)
        cell["fit_seconds"] = round(time.monotonic() - start, 1)
        cell |= _measure_synthetic(study, arm, model, test, seed)
    _forget()
    cell["seconds"] = round(time.monotonic() - start, 1)
    cell["machine"] = machine()
    cell["versions"] = versions()
    cell["finished"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return cell


def make_model(study: Study, arm: Arm, seed: int) -> DPSeqGAN:
    """The unfitted model of an arm."""
    published = PublishedSettings(**study.published)
    if arm.method == "paper":
        return DPSeqGAN.paper(seed=seed, published=published)
    if arm.method == "seqgan":
        return DPSeqGAN.seqgan(seed=seed, published=published)
    options: dict[str, Any] = {"settings": GANSettings(**study.gan)}
    if study.discriminator_steps is not None:
        options["discriminator_steps"] = study.discriminator_steps
    if arm.method == "counts":
        options["discriminator_steps"] = 0
    return DPSeqGAN(arm.epsilon, labels=study.labels, seed=seed, **options)


def _split(study: Study, seed: int) -> Splits:
    data = datasets.read(study.dataset).deduplicate()
    if study.limit is not None:
        step = max(1, len(data) // study.limit)
        data = data.select(range(0, len(data), step)[: study.limit])
    return datasets.split(data, seed=seed)


def _measure_original(
    study: Study, train: TextDataset, test: TextDataset, seed: int
) -> Figures:
    model = public_model(data_folder())
    return {
        **_downstream(study, train, test, seed),
        **text_quality(test.texts, model, rows=study.text_rows, seed=seed),
        **shuffled_perplexity(test.texts, model, seed),
        "majority": majority(test),
    }


def _measure_synthetic(
    study: Study, arm: Arm, model: DPSeqGAN, test: TextDataset, seed: int
) -> dict[str, Any]:
    synthetic = model.generate(study.rows, seed=seed)
    perplexity = public_model(data_folder())
    result: dict[str, Any] = {
        "metrics": {
            **_downstream(study, synthetic, test, seed),
            **text_quality(
                synthetic.texts, perplexity, rows=study.text_rows, seed=seed
            ),
        },
        "privacy": model.privacy_statement().to_json(),
    }
    if arm.method == "default":
        classes = zip(model.method.labels, model.method.classes, strict=True)
        result["routes"] = [
            {"label": label, "chosen": c.chosen, "divergence": c.divergence}
            for label, c in classes
        ]
    if arm.method in ("default", "counts"):
        # Never of the other arms: what they write may be a record word for word.
        pairs = zip(synthetic.labels, synthetic.texts, strict=True)
        result["examples"] = [list(pair) for pair in pairs][:_EXAMPLES]
    if arm.key == study.compared:
        result["candidates"] = _measure_candidates(
            study, model, test, seed, result["metrics"]
        )
    return result


def _measure_candidates(
    study: Study, model: DPSeqGAN, test: TextDataset, seed: int, released: Figures
) -> dict[str, Figures]:
    """Classifiers on the seed corpora alone, and on adversarial texts alone."""
    classes = model.method.classes
    chosen = [c.chosen for c in classes]
    results = {}
    for candidate in ("seed", "adversarial"):
        if candidate == "adversarial" and any(c.gan is None for c in classes):
            continue
        if all(name == candidate for name in chosen):
            results[candidate] = released
            continue
        for fitted in classes:
            fitted.chosen = candidate
        results[candidate] = _downstream(
            study, model.generate(study.rows, seed=seed), test, seed
        )
    for fitted, name in zip(classes, chosen, strict=True):
        fitted.chosen = name
    return results


def _downstream(
    study: Study, train: TextDataset, test: TextDataset, seed: int
) -> Figures:
    return downstream(
        train, test, study.classifiers, seed=seed, options=study.classifier_options
    )


def _forget() -> None:
    """Drops graphs: dozens of cells in one process would fill the memory."""
    import keras

    keras.backend.clear_session(free_memory=True)
    gc.collect()
