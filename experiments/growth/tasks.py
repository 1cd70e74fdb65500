"""What is measured: one function a task, run in a process of its own.

    python -m experiments.growth.tasks TASK ROWS SEED FOLDER

prints what the task measured by itself, as JSON.
"""

from __future__ import annotations

import csv
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from experiments._cells.machine import peak_mib

QUERIES = 1_000
MODEL = Path(__file__).parents[2] / "saved_models" / "spam"
BATCH, LENGTH, VOCABULARY = 64, 20, 5_000
_STEPS = 30
Json = dict[str, Any]


class Task(NamedTuple):
    """How a task is called, and what does it."""

    title: str
    run: Callable[[int, int, Path], Json]


def corpus(folder: Path, rows: int, seed: int) -> Path:
    """A CSV of made-up texts of common English words and a label, made when missing."""
    path = folder / f"corpus_{rows}_seed{seed}.csv"
    if not path.exists():
        unfinished = path.with_suffix(".part")
        with unfinished.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["text", "label"])
            for number, text in enumerate(made_up_texts(rows, seed)):
                writer.writerow([text, "ab"[number % 2]])
        unfinished.rename(path)
    return path


def made_up_texts(rows: int, seed: int) -> Iterator[str]:
    """Texts of 12 words, by their frequency in English."""
    from wordfreq import top_n_list, word_frequency

    words = np.array(top_n_list("en", VOCABULARY))
    weights = np.array([word_frequency(word, "en") for word in words])
    rng = np.random.default_rng([seed, rows])
    for start in range(0, rows, 10_000):
        drawn = rng.choice(
            words, (min(10_000, rows - start), 12), p=weights / weights.sum()
        )
        yield from map(" ".join, drawn)


def read(rows: int, seed: int, folder: Path) -> Json:
    """A table, into memory."""
    from tfpriv import datasets

    data = datasets.read_table(corpus(folder, rows, seed), text="text", label="label")
    return {"read": len(data)}


def encode(rows: int, seed: int, folder: Path) -> Json:
    """`tfpriv encode` with the small BERT of saved_models, CSV in, .npy out."""
    from typer.testing import CliRunner

    from tfpriv.cli.main import app

    output = folder / f"vectors_{rows}_seed{seed}.npy"
    arguments = ["encode", str(MODEL), str(corpus(folder, rows, seed))]
    arguments += ["--text", "text", "--output", str(output)]
    result = CliRunner().invoke(app, arguments)
    if result.exit_code:
        raise RuntimeError(result.output)
    shape = np.load(output, mmap_mode="r").shape
    for path in folder.glob(f"{output.name}*"):
        path.unlink()
    return {"encoded": shape[0]}


def sample(rows: int, seed: int, folder: Path) -> Json:
    """Rows of a fitted DPSeqGAN, into a CSV."""
    import tfpriv

    data = tfpriv.DPSeqGAN.load(folder / "model").generate(rows, seed=seed)
    path = folder / f"synthetic_{rows}_seed{seed}.csv"
    data.to_csv(path)
    path.unlink()
    return {"sampled": len(data)}


def generator(rows: int, seed: int, folder: Path) -> Json:
    """Sequences of an LSTM of 32 units, 20 tokens of 5,000 words."""
    from tfpriv.seqgan.generator import Generator

    del folder
    model = Generator(VOCABULARY, LENGTH, units=32, end_id=None, seed=seed)
    return {"sampled": len(model.sample(rows, seed=seed))}


def near_copies(rows: int, seed: int, folder: Path) -> Json:
    """The nearest row of the table, and the longest copied run, of 1,000 texts."""
    from tfpriv.attacks.near_copies import longest_runs, nearest_texts
    from tfpriv.text import Tokenizer

    path, tokenize = corpus(folder, rows, seed), Tokenizer().tokenize

    def texts() -> Iterator[str]:
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                yield row["text"]

    queries = [tokenize(text) for text in made_up_texts(QUERIES, seed + 1)]
    nearest = nearest_texts(queries, map(tokenize, texts()))
    longest = longest_runs(queries, map(tokenize, texts()))
    return {
        "similarity": float(nearest.similarity.mean()),
        "longest": int(longest.max()),
    }


def step(rows: int, seed: int, folder: Path) -> Json:
    """DP-SGD steps of a TextCNN on Poisson batches of 64 of so many records."""
    import keras

    from tfpriv.accounting import DPSGDPlan
    from tfpriv.dp_training import DPTrainer
    from tfpriv.seqgan.discriminator import Discriminator

    del folder
    rng = np.random.default_rng(seed)
    ids = rng.integers(0, VOCABULARY, (rows, LENGTH), np.int32)
    labels = rng.integers(0, 2, rows, np.int32)
    plan = DPSGDPlan(rows, min(BATCH, rows), 10**6, 1.0, 1.0, sampling="poisson")

    def loss(model, x, y):
        return keras.losses.sparse_categorical_crossentropy(
            y, model(x, training=True), from_logits=True
        )

    model = Discriminator(VOCABULARY, LENGTH, seed=seed)
    trainer = DPTrainer(model, loss, plan, 1e-3)
    times = []
    for _ in range(_STEPS):
        start = time.process_time()
        trainer.step((ids, labels))
        times.append(time.process_time() - start)
    # The first ones trace and compile.
    return {"step_ms": float(1e3 * np.median(times[_STEPS // 3 :]))}


TASKS = {
    "read": Task("read a CSV", read),
    "encode": Task("`tfpriv encode`, a small BERT", encode),
    "sample": Task("rows of a DPSeqGAN", sample),
    "generator": Task("sequences of an LSTM", generator),
    "near_copies": Task("near copies of 1,000 texts", near_copies),
    "step": Task("a private step", step),
}


if __name__ == "__main__":
    name, rows, seed, folder = sys.argv[1:]
    found = TASKS[name].run(int(rows), int(seed), Path(folder))
    sys.stdout.write(json.dumps({"peak_mib": peak_mib(), "found": found}))
