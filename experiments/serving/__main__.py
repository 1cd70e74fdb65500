"""Throughput of an exported `encode` beside the same BERT exported without tfpriv.

    python -m experiments.serving --seeds 0 --output runs/serving

MiniLM, 32 pieces, batches of 1, 8, 32 and 128 public texts, all loaded as a server
loads them, in turns. Some minutes on two cores; `--quick` takes a small BERT and its
figures mean nothing.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments._cells.turns import parsed, take_turns, timing_parser
from experiments.serving import report
from tfpriv._files import PUBLIC, write_json
from tfpriv._quiet import quiet_import

BATCHES = (1, 8, 32, 128)
# Rounds a batch size gets at least and at most; none begins after so many seconds.
FULL = {"least": 5, "most": 200, "seconds": 60.0}
QUICK = {"least": 1, "most": 3, "seconds": 5.0}


def main(arguments: Sequence[str] | None = None) -> None:
    """Times each batch size and writes results.json and results.md."""
    options = parsed(timing_parser("serving", __doc__.splitlines()[0]), arguments)
    with quiet_import():
        from experiments._cells.machine import machine, versions
    effort = QUICK if options.quick else FULL
    start, load = time.monotonic(), os.getloadavg()[0]
    measurements = []
    for seed in options.seeds:
        measurements += measure(seed, options.quick, effort)
    summary = report.summary(measurements)
    results = {
        "experiment": "serving",
        "quick": options.quick,
        "seeds": options.seeds,
        "settings": {**effort, "batches": BATCHES},
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "wall_seconds": round(time.monotonic() - start, 1),
        "machine": machine(),
        "load_average": [round(load, 2), round(os.getloadavg()[0], 2)],
        "versions": versions(),
        "summary": summary,
        "targets": report.targets(summary),
        "measurements": measurements,
    }
    write_json(options.output / "results.json", results, mode=PUBLIC)
    report.write(options.output, results)


def measure(seed: int, quick: bool, effort: dict) -> list[dict]:
    """Exports the contestants, loads them, and lets them take turns."""
    import tensorflow as tf

    import tfpriv
    from experiments.serving.models import export_bare, make_model

    texts = tfpriv.datasets.load("sample").train.texts
    model = make_model(seed, quick=quick)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        ours = tfpriv.serving.export(model, Path(folder, "ours"))
        paths = {report.BARE: Path(folder, "bare"), report.TEXT: Path(folder, "text")}
        for name, path in paths.items():
            export_bare(model, path, with_tokenizer=name == report.TEXT)
        loaded = {name: tf.saved_model.load(str(path)) for name, path in paths.items()}
        served = tf.saved_model.load(str(ours))
        rng = np.random.default_rng(seed)
        for batch in BATCHES:
            sys.stderr.write(
                f"{time.strftime('%H:%M:%S')} seed {seed}: batch {batch}\n"
            )
            chosen = rng.choice(len(texts), batch, replace=batch > len(texts))
            strings = tf.constant([texts[i] for i in chosen])
            ids = loaded[report.BARE].pack(strings)
            signatures = {
                report.BARE: (loaded[report.BARE], {"inputs": ids}),
                report.TEXT: (loaded[report.TEXT], {"inputs": strings}),
                report.OURS: (served, {"text": strings}),
            }
            runs = {
                name: _answered(model.signatures["encode"], **inputs)
                for name, (model, inputs) in signatures.items()
            }
            found += take_turns(runs, {"batch": batch, "seed": seed}, rng, **effort)
    return found


def _answered(signature: Callable, **inputs: Any) -> Callable[[], list]:
    """A call that ends when the answer is there."""
    return lambda: [value.numpy() for value in signature(**inputs).values()]


if __name__ == "__main__":
    main()
