"""`tfpriv demo`: the main job on the bundled sample, from records to a release."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tfpriv._validation import integer
from tfpriv.cli._common import (
    ConfigOption,
    JsonOption,
    before_work,
    print_json,
    quiet_import,
    resumable,
)
from tfpriv.cli.run_folder import RunFolder
from tfpriv.cli.synthesize import (
    check_classes,
    release,
    show_plan,
    show_result,
)

if TYPE_CHECKING:
    from tfpriv.datasets import TextDataset

app = typer.Typer()

_EPSILON, _DELTA = 8.0, 1e-5
_ROWS = 2000
_SPLIT_SEED = 0


@app.command()
def demo(
    output: Annotated[
        Path, typer.Option("--output", metavar="DIR", help="Folder of the run.")
    ] = Path("demo"),
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", help="Of weights and text.")
    ] = 0,
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Synthesize from the bundled sample, and compare it with the real data.

    Three fifths of the sample are the private records. Classifiers are trained once
    on them and once on the synthetic rows, and tested on a fifth that neither saw.
    """
    del config
    started = time.monotonic()
    with before_work():
        integer(0, seed=seed)
        from tfpriv.datasets import load

        parts = load("sample", seed=_SPLIT_SEED)
        check_classes(parts.train, None, _DELTA, "guaranteed")
        settings = {"epsilon": _EPSILON, "delta": _DELTA, "seed": seed}
        records = zip(parts.train.texts, parts.train.labels, strict=True)
        folder = RunFolder(output, records, settings)
    with folder, resumable(output):
        with quiet_import():
            from tfpriv.seqgan.dp_seqgan import DPSeqGAN

        model = DPSeqGAN(**settings)
        show_plan(model)
        result, synthetic = release(model, parts.train, folder, _ROWS)
        result["accuracy"] = _accuracy(parts.train, synthetic, parts.test)
    result["seconds"] = round(time.monotonic() - started)
    if as_json:
        print_json(result)
        return
    show_result(result)
    _show_accuracy(result["accuracy"])


def _accuracy(
    real: TextDataset, synthetic: TextDataset, test: TextDataset
) -> dict[str, dict[str, float]]:
    from tfpriv.evaluation import LogisticRegressionClassifier, TextCNNClassifier

    table = {}
    for classifier in (LogisticRegressionClassifier, TextCNNClassifier):
        table[classifier.__name__.removesuffix("Classifier")] = {
            "real": float(classifier(seed=0).fit(real).score(test)),
            "synthetic": float(classifier(seed=0).fit(synthetic).score(test)),
        }
    return table


def _show_accuracy(table: dict[str, dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    shown = Table(
        title="Accuracy on held-out real rows, trained on", title_justify="left"
    )
    for column in ("classifier", "real rows", "synthetic rows"):
        shown.add_column(column)
    for name, row in table.items():
        shown.add_row(name, f"{row['real']:.3f}", f"{row['synthetic']:.3f}")
    Console().print(shown)
