"""Throughput of an exported `encode` beside the same BERT exported without tfpriv.

    python -m experiments.serving --seeds 0 --output runs/serving

MiniLM, 32 pieces, batches of 1, 8, 32 and 128 public texts, all loaded as a server
loads them, in turns. Some minutes on two cores; `--quick` takes a small BERT and its
figures mean nothing.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from experiments.serving import report
from tfpriv._files import PUBLIC, write_json
from tfpriv._quiet import quiet_import

BATCHES = (1, 8, 32, 128)
# Rounds a batch size gets at least and at most; none begins after so many seconds.
FULL = {"least": 5, "most": 200, "seconds": 60.0}
QUICK = {"least": 1, "most": 3, "seconds": 5.0}


def main(arguments: Sequence[str] | None = None) -> None:
    """Times each batch size and writes results.json and results.md."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--output", type=Path, default=Path("runs/serving"))
    options = parser.parse_args(arguments)
    try:
        if min(options.seeds) < 0:
            raise ValueError(f"Expected seeds >= 0, received {options.seeds}.")
        options.output.mkdir(parents=True, exist_ok=True)
        if any(options.output.iterdir()):
            raise ValueError(
                f"Expected an empty folder, received {options.output}. Choose another "
                "--output."
            )
    except (ValueError, OSError) as error:
        parser.exit(2, f"{error}\n")
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
            runs = {
                report.BARE: lambda ids=ids: loaded[report.BARE].signatures["encode"](
                    inputs=ids
                ),
                report.TEXT: lambda strings=strings: loaded[report.TEXT].signatures[
                    "encode"
                ](inputs=strings),
                report.OURS: lambda strings=strings: served.signatures["encode"](
                    text=strings
                ),
            }
            found += take_turns(runs, {"batch": batch, "seed": seed}, rng, **effort)
    return found


def take_turns(
    runs: dict,
    shared: dict,
    rng: np.random.Generator,
    *,
    least: int,
    most: int,
    seconds: float,
) -> list[dict]:
    """Times each contestant once a round, in an order drawn anew for each round.

    The first turns (tracing, cold caches) are no round.
    """
    found = {name: {**shared, "contestant": name, "seconds": []} for name in runs}
    for run in runs.values():
        _time(run)
        _time(run)
    start = time.monotonic()
    for turn in range(most):
        if turn >= least and time.monotonic() - start > seconds:
            break
        for name in rng.permutation(list(runs)):
            found[name]["seconds"].append(_time(runs[name]))
    return list(found.values())


def _time(run) -> float:
    start = time.perf_counter()
    for value in run().values():
        value.numpy()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
