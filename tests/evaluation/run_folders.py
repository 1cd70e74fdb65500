"""Run folders as the commands leave them, written in a moment and without training."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np

from tfpriv.accounting import (
    Gaussian,
    LaplaceCertificate,
    NonPrivate,
    PrivacyLedger,
    PrivacyStatement,
    PrivateRead,
)
from tfpriv.accounting.representation_statement import RepresentationStatement
from tfpriv.attacks.audit_result import AuditResult
from tfpriv.attacks.membership_score import score_membership
from tfpriv.datasets import TextDataset, write_table
from tfpriv.seqgan.run_store import RunStore

SECRET = "xyzzyplugh"
WORDS = [
    "song",
    "love",
    "channel",
    "video",
    "free",
    "great",
    "money",
    "click",
    "voice",
    "music",
]
CANDIDATES = [
    {"divergence": {"seed": 0.125}, "chosen": "seed"},
    {"divergence": {"seed": 0.5, "adversarial": 0.25}, "chosen": "adversarial"},
]


def texts(count: int, seed: int, mark: str = "") -> TextDataset:
    """Short texts of two labels; each has the mark, if there is one."""
    draw = np.random.default_rng(seed)
    found = [
        " ".join([*draw.choice(WORDS, draw.integers(2, 7)), f"w{i % 40}", mark]).strip()
        for i in range(count)
    ]
    return TextDataset(found, [("ham", "spam")[i % 2] for i in range(count)])


def private_records(count: int = 60) -> TextDataset:
    return texts(count, 0, SECRET)


def synthetic_run(
    folder: Path,
    *,
    records: TextDataset | None = None,
    synthetic: TextDataset | None = None,
    guaranteed: bool = True,
    labels: list[str] | None = None,
) -> Path:
    """A finished run of `tfpriv synthesize` of these records."""
    records = private_records() if records is None else records
    synthetic = texts(50, 1) if synthetic is None else synthetic
    release, internal = folder / "release", folder / "internal"
    release.mkdir(parents=True)
    internal.mkdir(mode=0o700)
    event = Gaussian(2.0) if guaranteed else NonPrivate()
    reads = [PrivateRead("tokens", event, "which known tokens a record has")]
    statement = PrivacyStatement(reads, delta=1e-5, public=["the vocabulary"])
    statement.write(release / "privacy.json")
    write_table(synthetic, release / "synthetic.csv", mode=0o644)
    RunStore(internal).claim(zip(records.texts, records.labels, strict=True))
    ledger = PrivacyLedger(
        internal / "ledger.jsonl",
        limit_epsilon=8.0 if guaranteed else math.inf,
        delta=1e-5,
    )
    ledger.charge("tokens", event)
    config = {
        "mode": "guaranteed" if guaranteed else "seqgan",
        "epsilon": 8.0 if guaranteed else None,
        "delta": 1e-5,
        "labels": labels,
        "seed": 0,
    }
    write(internal / "config.json", config)
    write(internal / "labels.json", ["ham", "spam"])
    (internal / "model").mkdir()
    write(internal / "model" / "classes.json", CANDIDATES)
    return folder


def representation_run(folder: Path) -> Path:
    """A finished run of `tfpriv rmat train`."""
    release, internal = folder / "release", folder / "internal"
    release.mkdir(parents=True)
    internal.mkdir(mode=0o700)
    statement = RepresentationStatement(
        LaplaceCertificate.from_epsilon(4.0, 16, radius=1.0),
        method="RMAT",
        encoder_trained_on_private_text=True,
        randomness="random bits are random",
    )
    statement.save(release / "privacy.json")
    config = {
        "schema_version": 1,
        "command": "rmat train",
        "text": "CONTENT",
        "label": "MOOD",
        "private": "GENDER",
        "labels": None,
        "method": "rmat",
        "epsilon": 4.0,
        "epochs": 2,
        "seed": 0,
        "file": f"{SECRET}.csv",
        "label_names": [f"{SECRET}-good", f"{SECRET}-bad"],
        "private_names": [f"{SECRET}-x", f"{SECRET}-y"],
        "split_key": f"{SECRET}00",
    }
    write(internal / "config.json", config)
    scores = {"task_macro_f1": 0.75, "task_accuracy": 0.8, "constant_macro_f1": 0.35}
    write(internal / "evaluation.json", {"test_rows": 40, **scores})
    history = [
        {"epoch": 1, "task_f1": 0.5, "val_task_f1": 0.4, "loss": 2.0},
        {"epoch": 2, "task_f1": 0.75, "val_task_f1": None, "loss": 1.0},
    ]
    write(internal / "history.json", history)
    return folder


def audit(strength: float = 0.0, names=("nearest text", "n-grams")) -> dict:
    """What `tfpriv audit` writes about a synthetic text."""
    draw = np.random.default_rng(0)
    scores = [
        score_membership(
            name,
            draw.normal(strength, 1, 400),
            draw.normal(0, 1, 400),
            attacks_tried=len(names),
        )
        for name in names
    ]
    value = AuditResult(tuple(scores), claimed_epsilon=8.0).to_json()
    return {"kind": "membership", **value}


def attribute_attack(leaks: bool = False) -> dict:
    """What `tfpriv rmat attack` writes."""
    found = {"value": 0.55, "low": 0.5, "high": 0.6}
    measures = ("auc", "macro_f1", "balanced_accuracy", "accuracy", "adjusted_auc")
    score = {"name": "mlp", **dict.fromkeys(measures, found), "auc_by_run": [0.55]}
    return {
        "worst": "mlp",
        "leaks": leaks,
        "attackers": [score, {**score, "name": "logistic_regression"}],
        "confidence": 0.95,
        "null_auc": 0.52,
        "null_auc_bound": 0.57,
        "p_value": 0.2,
        "constant_macro_f1": 0.35,
        "prior_macro_f1": 0.5,
        "majority_accuracy": 0.6,
        "num_classes": 2,
        "train_rows": 120,
        "test_rows": 40,
        "releases": 1,
    }


def inversion(leaks: bool = False) -> dict:
    """What `tfpriv audit` writes about words of a representation."""
    found = {"value": 0.25, "low": 0.2, "high": 0.3}
    measures = ("f1", "precision", "f1_gain", "precision_gain")
    score = {"name": "nearest_neighbour", **dict.fromkeys(measures, found)}
    return {
        "worst": "nearest_neighbour",
        "leaks": leaks,
        "attackers": [score],
        "blind": {**score, "name": "blind"},
        "words": 1000,
        "k": 5,
        "reference_rows": 120,
        "test_rows": 40,
        "confidence": 0.95,
    }


def write(path: Path, value) -> None:
    path.write_text(json.dumps(value), encoding="utf-8")
