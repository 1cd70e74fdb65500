"""Makes the model in saved_models/ with tfpriv's own commands, from the bundled sample.

    python -m tools.make_saved_model --output saved_models/spam

A BERT of two layers with random weights learns to tell spam from ham (RMAT, epsilon 4
per release, the author's gender hidden), then `tfpriv export` writes it. Some minutes
on two cores; the noise in training is fresh, so that no two runs give the same weights.
"""

from __future__ import annotations

import argparse
import importlib.resources
import tempfile
from pathlib import Path

from tfpriv.cli import main as command
from tfpriv.cli._common import quiet_import

_LABELS = ["ham", "spam"]
_TRAIN = [
    *("--text", "text", "--label", "label", "--private", "gender"),
    *("--labels", ",".join(_LABELS), "--epsilon", "4", "--epochs", "8"),
    *("--learning-rate", "0.001", "--seed", "0", "--no-tensorboard"),
]


def main() -> int:
    """Trains and exports; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("saved_models/spam"))
    options = parser.parse_args()
    with quiet_import():
        from tfpriv.cli._demo_representation import save_small_bert
    source = importlib.resources.files("tfpriv.datasets") / "sample/comments.csv"
    with (
        importlib.resources.as_file(source) as file,
        tempfile.TemporaryDirectory() as folder,
    ):
        bert, run = Path(folder, "bert"), Path(folder, "run")
        save_small_bert(bert)
        _make_smaller(bert)
        line = ["rmat", "train", file, *_TRAIN, "--preset", bert, "--output", run]
        return _run(*line) or _run("export", run, options.output)


def _make_smaller(folder: Path) -> None:
    """Puts a BERT of half the width in the place of the demo's: 4 MB are the limit."""
    import keras_nlp

    tokenizer = keras_nlp.models.BertTokenizer.from_preset(str(folder))
    keras_nlp.models.BertBackbone(
        vocabulary_size=tokenizer.vocabulary_size(),
        num_layers=2,
        num_heads=4,
        hidden_dim=64,
        intermediate_dim=128,
        max_sequence_length=64,
    ).save_to_preset(str(folder))


def _run(*line: object) -> int:
    return command.run([str(part) for part in line])


if __name__ == "__main__":
    raise SystemExit(main())
