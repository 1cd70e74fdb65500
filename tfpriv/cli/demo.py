"""`tfpriv demo`: both halves of the package on the bundled sample."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tfpriv._errors import InputError
from tfpriv._validation import integer, one_of
from tfpriv.cli._common import (
    ConfigOption,
    JsonOption,
    before_work,
    print_json,
    quiet_import,
    resumable,
    say,
)
from tfpriv.cli._demo_representation import RepresentationDemo, show_comparison
from tfpriv.cli.run_folder import RunFolder
from tfpriv.cli.synthesize import (
    check_classes,
    release,
    say_resuming,
    show_plan,
    show_result,
)

if TYPE_CHECKING:
    from tfpriv.datasets import TextDataset

app = typer.Typer()

_EPSILON, _DELTA = 8.0, 1e-5
_ROWS = 2000
_SPLIT_SEED = 0
_HALVES = ("both", "synthetic", "representation")


@app.command()
def demo(
    output: Annotated[
        Path, typer.Option("--output", metavar="DIR", help="Folder of the run.")
    ] = Path("demo"),
    half: Annotated[
        str,
        typer.Option(
            "--half", metavar="HALF", help="both, synthetic or representation."
        ),
    ] = "both",
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", help="Of weights and text.")
    ] = 0,
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Synthesize from the bundled sample, and encode it, beside the real data.

    Three fifths of the sample are the private records. Classifiers are trained once
    on them and once on the synthetic rows, and tested on a fifth that neither saw.
    Then a BERT learns representations that tell spam from ham and not the author's
    gender; attackers try them, and the BERT's own vectors without protection. This
    half is in a folder of its own, DIR-rmat.
    """
    del config
    started = time.monotonic()
    result: dict[str, Any] = {}
    with contextlib.ExitStack() as opened:
        with before_work():
            integer(0, seed=seed)
            one_of(_HALVES, half=half)
            # Both before any work: a folder that is in the way is found out now.
            if half != "representation":
                synthesis = SynthesisDemo(output, seed)
                opened.enter_context(synthesis.folder)
            if half != "synthetic":
                beside = output.with_name(f"{output.name}-rmat")
                try:
                    representation = RepresentationDemo(beside, seed)
                except InputError:
                    if half == "both":
                        synthesis.folder.abandon()
                    raise
                opened.enter_context(representation.folder)
        # Each half is shown when it is done: the second takes minutes.
        if half != "representation":
            say(_titled(half, 1, "a synthetic data set, by DP-SeqGAN."))
            with resumable(output):
                result |= synthesis.run()
            if not as_json:
                typer.echo(f"\n{_titled(half, 1, 'the synthetic data set')}\n")
                show_result(result)
                _show_accuracy(result["accuracy"])
                typer.echo()
        if half != "synthetic":
            say(_titled(half, 2, "representations that hide gender, by RMAT."))
            with resumable(beside):
                result["representation"] = representation.run()
            if not as_json:
                typer.echo(f"\n{_titled(half, 2, 'the representations')}")
                show_comparison(result["representation"])
    result["seconds"] = round(time.monotonic() - started)
    if as_json:
        print_json(result)


def _titled(half: str, number: int, what: str) -> str:
    """A heading; of two halves it says which."""
    if half == "both":
        return f"Half {number} of 2: {what}"
    return what[0].upper() + what[1:]


class SynthesisDemo:
    """DP-SeqGAN on the bundled sample.

    Args:
        path: folder of the run, an ordinary one of `tfpriv synthesize`.
        seed: of weights and text.

    Raises:
        InputError: the folder cannot be used.
    """

    def __init__(self, path: Path, seed: int) -> None:
        from tfpriv.datasets import load

        self.parts = load("sample", seed=_SPLIT_SEED)
        train = self.parts.train
        check_classes(train, None, _DELTA, "guaranteed")
        self.settings = {"epsilon": _EPSILON, "delta": _DELTA, "seed": seed}
        records = zip(train.texts, train.labels, strict=True)
        self.folder = RunFolder(path, records, self.settings)

    def run(self) -> dict[str, Any]:
        """Trains or goes on training, releases, and compares accuracies."""
        with quiet_import():
            from tfpriv.seqgan.dp_seqgan import DPSeqGAN

        parts = self.parts
        model = DPSeqGAN(**self.settings)
        say_resuming(model, self.folder)
        show_plan(model)
        result, synthetic = release(model, parts.train, self.folder, _ROWS)
        result["accuracy"] = _accuracy(parts.train, synthetic, parts.test)
        return result


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
