"""Makes the model in saved_models/ with tfpriv's own commands, from the bundled sample.

    python -m tools.make_saved_model --output saved_models/spam

A BERT of two layers with random weights learns to tell spam from ham (RMAT, epsilon 4
per release, the author's gender hidden), then `tfpriv export` writes it. Some minutes
on two cores; the noise in training is fresh, so that no two runs give the same weights.
`--again FOLDER` trains nothing: it exports the weights of a version made before, in the
graph of today.
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
    parser.add_argument("--again", type=Path, metavar="FOLDER/<version>")
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
        if options.again is not None:
            return _export_again(options.again, bert, options.output)
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


def _export_again(version: Path, bert: Path, output: Path) -> int:
    """Exports the weights of a version in the graph that is traced now."""
    import tensorflow as tf

    from tfpriv.cli._representation_settings import RepresentationSettings
    from tfpriv.serving import export
    from tfpriv.serving.served_representation import ServedRepresentation

    settings = RepresentationSettings(preset=str(bert), epsilon=4.0).complete()
    model = settings.build(len(_LABELS), 2, public_labels=True)
    saved = tf.train.load_checkpoint(str(version / "variables" / "variables"))
    for number, weight in enumerate(ServedRepresentation(model, _LABELS).weights):
        weight.assign(saved.get_tensor(f"weights/{number}/.ATTRIBUTES/VARIABLE_VALUE"))
    # They were trained, and the statement says so.
    model.trained_steps.assign(1)
    export(model, output, label_names=_LABELS)
    return 0


def _run(*line: object) -> int:
    return command.run([str(part) for part in line])


if __name__ == "__main__":
    raise SystemExit(main())
