"""One cell: one arm at one seed, fitted, attacked, looked into and learnt from."""

from __future__ import annotations

import dataclasses
import gc
import json
import shutil
import time
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from experiments._cells.machine import machine, versions
from experiments._synthesis.cells import make_model
from experiments._synthesis.measures import downstream
from experiments.dp_seqgan import measures
from experiments.dp_seqgan.settings import ARMS, ORIGINAL, Settings
from tfpriv import datasets
from tfpriv.attacks.class_discriminators import class_discriminators
from tfpriv.datasets import Splits, TextDataset
from tfpriv.seqgan.dp_seqgan import DPSeqGAN

Json = dict[str, Any]
_NETWORKS = ("CNN", "RNN")
_MEASURED = Path(__file__).parents[1] / "youtube_spam" / "results" / "results.json"


def run_cell(settings: Settings, arm: str, seed: int, work: Path) -> Json:
    """Makes and measures one cell.

    Args:
        settings: Settings.
        arm: key of `settings.ARMS`.
        seed: of the split, the networks and drawn text; never of noise.
        work: folder of the fit's checkpoints, from which a killed cell goes on; it is
            removed at the end.

    Returns:
        JSON of one cell: sizes, statement, attacks, what the discriminators do,
        accuracy and convergence of classifiers, times.
    """
    start, cpu = time.monotonic(), time.process_time()
    # It warns of functions that are traced again: each cell has models of its own.
    tf.get_logger().setLevel("ERROR")
    splits = split(settings, seed)
    cell: Json = {
        "experiment": "dp_seqgan",
        "arm": arm,
        "seed": seed,
        "sizes": {
            name: {label: len(part) for label, part in data.by_label().items()}
            for name, data in zip(("S1", "S2", "S3"), splits, strict=True)
        },
    }
    trained_on = splits.train
    if arm != ORIGINAL:
        model = fitted(settings, arm, seed, splits, work)
        cell["fit_seconds"] = round(time.monotonic() - start, 1)
        cell["privacy"] = model.privacy_statement().to_json()
        cell["collapsed"] = model.collapsed
        trained_on = model.generate(settings.rows, seed=seed)
        cell |= _attacks(settings, model, trained_on, splits, seed, work)
        cell["mixtures"] = measures.augmentation(
            splits.train,
            trained_on,
            splits.test,
            seed=seed,
            options=settings.study.classifier_options,
        )
    cell["metrics"], cell["metrics_from"] = _accuracy(
        settings, arm, seed, trained_on, splits.test
    )
    cell["convergence"] = _convergence(settings, trained_on, splits, seed)
    keras.backend.clear_session(free_memory=True)
    gc.collect()
    shutil.rmtree(work, ignore_errors=True)
    cell["seconds"] = round(time.monotonic() - start, 1)
    cell["cpu_seconds"] = round(time.process_time() - cpu, 1)
    cell["machine"], cell["versions"] = machine(), versions()
    cell["finished"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return cell


def split(settings: Settings, seed: int) -> Splits:
    """S1, S2 and S3 of a seed, exact duplicates left out."""
    data = datasets.read(settings.study.dataset).deduplicate()
    limit = settings.study.limit
    if limit is not None:
        data = data.select(range(0, len(data), max(1, len(data) // limit)))
    return datasets.split(data, seed=seed)


def fitted(
    settings: Settings, arm: str, seed: int, splits: Splits, work: Path
) -> DPSeqGAN:
    """The fitted model of an arm; its checkpoints lie in `work`."""
    info = ARMS[arm]
    published = info.published | settings.study.published
    study = dataclasses.replace(settings.study, published=published)
    model = make_model(study, info.arm, seed)
    return model.fit(splits.train, run_dir=work, report=lambda stage, done: None)


def _attacks(
    settings: Settings,
    model: DPSeqGAN,
    synthetic: TextDataset,
    splits: Splits,
    seed: int,
    work: Path,
) -> Json:
    few = synthetic.select(range(min(settings.attack_rows, len(synthetic))))
    found = measures.attack_text(few, splits)
    regularisation = []
    for target in class_discriminators(model, work):
        found += measures.attack_networks(
            settings, model, target, synthetic, splits, seed=seed
        )
        regularisation.append(
            measures.regularisation(target, splits, outliers=settings.outliers)
        )
    return {
        "attacks": [scored.to_json(len(found)) for scored in found],
        "regularisation": regularisation,
    }


def _accuracy(
    settings: Settings, arm: str, seed: int, train: TextDataset, test: TextDataset
) -> tuple[Json, str]:
    """Of the paper's classifiers; taken over where `youtube_spam` has measured it."""
    known = measured_before(settings, arm, seed)
    if known is not None:
        return known, "experiments.youtube_spam"
    figures = downstream(
        train,
        test,
        _NETWORKS,
        seed=seed,
        options=settings.study.classifier_options,
    )
    kept = {k: v for k, v in figures.items() if k.startswith("accuracy/")}
    return kept, "this cell"


def measured_before(settings: Settings, arm: str, seed: int) -> Json | None:
    """Accuracies that the same arm, seed and settings had in `youtube_spam`."""
    if not _MEASURED.exists():
        return None
    results = json.loads(_MEASURED.read_text(encoding="utf-8"))
    study = json.loads(json.dumps(settings.study.to_json()))
    same = results["settings"] == study and results["part"] == "S3"
    if not same or study["rows"] != settings.rows:
        return None
    for cell in results["cells"]:
        if (cell["arm"], cell["seed"]) == (arm, seed):
            names = [f"accuracy/{name}" for name in _NETWORKS]
            return {name: cell["metrics"][name] for name in names}
    return None


def _convergence(
    settings: Settings, trained_on: TextDataset, splits: Splits, seed: int
) -> Json:
    """The RNN's accuracy pass by pass: on all rows, and on as many as S1 has."""
    sets = {"all rows": trained_on}
    if len(trained_on) > len(splits.train):
        sets["rows of S1"] = trained_on.select(range(len(splits.train)))
    return {
        name: {
            "rows": len(data),
            "steps": settings.curve_steps,
            "accuracy": measures.convergence(
                data, splits.test, steps=settings.curve_steps, seed=seed
            ),
        }
        for name, data in sets.items()
    }
