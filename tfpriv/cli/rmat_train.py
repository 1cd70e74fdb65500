"""`tfpriv rmat train`: representations that do a task and hide an attribute."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tfpriv._errors import InputError
from tfpriv.cli._common import (
    ConfigOption,
    JsonOption,
    before_work,
    print_json,
    quiet_import,
    resumable,
    say,
)
from tfpriv.cli._data_budget import note_training
from tfpriv.cli._record_options import (
    FormatOption,
    RecordsArgument,
    RunOption,
    TextOption,
)
from tfpriv.cli._representation_run import (
    COMMAND,
    VADER,
    Columns,
    load_or_make_config,
    new_config,
    parts_of,
    records,
    warn_of_unseen,
)
from tfpriv.cli._representation_settings import RepresentationSettings
from tfpriv.cli._representation_training import (
    check_room,
    finished,
    train_and_release,
)
from tfpriv.cli.run_folder import RunFolder
from tfpriv.cli.synthesize import label_names

if TYPE_CHECKING:
    from tfpriv.datasets import Splits


def train(
    file: RecordsArgument,
    text: TextOption,
    label: Annotated[
        str,
        typer.Option(
            "--label",
            metavar="COL|vader",
            help="Column of the task's label; vader: the sentiment VADER finds.",
        ),
    ],
    private: Annotated[
        str,
        typer.Option("--private", metavar="COL", help="Column of what is to hide."),
    ],
    output: RunOption,
    labels: Annotated[
        str | None,
        typer.Option(
            "--labels",
            metavar="A,B",
            help="The task's label names, if they are public; else their number, which "
            "a code shows, is named as not covered.",
        ),
    ] = None,
    method: Annotated[
        str,
        typer.Option("--method", metavar="M", help="rmat, dpnr, ads, cape or none."),
    ] = "rmat",
    epsilon: Annotated[
        float | None,
        typer.Option(
            "--epsilon",
            metavar="E",
            help="Certified, for any two texts, per release. Default of rmat: 4.",
        ),
    ] = None,
    nominal_epsilon: Annotated[
        float | None,
        typer.Option(
            "--nominal-epsilon",
            metavar="E",
            help="The papers' reading instead, a claim. Default of dpnr and cape: 1.",
        ),
    ] = None,
    mask_rate: Annotated[
        float | None,
        typer.Option(
            "--mask-rate",
            metavar="M",
            help="Share of the words that is masked (rmat, dpnr). Default: 0.1.",
        ),
    ] = None,
    mask_mode: Annotated[
        str | None,
        typer.Option(
            "--mask-mode",
            metavar="MODE",
            help="exact (floor of the share) or bernoulli (rmat). Default: exact.",
        ),
    ] = None,
    scale: Annotated[
        str | None,
        typer.Option(
            "--scale",
            metavar="SCALE",
            help="code (randomised response), l1 or min_max. Default: code for a "
            "certified rmat, else min_max.",
        ),
    ] = None,
    dimension: Annotated[
        int | None,
        typer.Option(
            "--dimension",
            metavar="D",
            help="Of the representation. Default: the number of labels for code and "
            "l1, else the BERT's width.",
        ),
    ] = None,
    adversary_weight: Annotated[
        float | None,
        typer.Option(
            "--adversary-weight",
            metavar="L",
            help="Lambda (rmat, ads, cape). Default: 1.",
        ),
    ] = None,
    adversary_steps: Annotated[
        int | None,
        typer.Option(
            "--adversary-steps",
            metavar="N",
            help="Of the adversary, a batch. Default: 1.",
        ),
    ] = None,
    epochs: Annotated[
        int, typer.Option("--epochs", metavar="N", help="Of the training part.")
    ] = 4,
    batch_size: Annotated[
        int, typer.Option("--batch-size", metavar="N", help="Texts a training step.")
    ] = 32,
    learning_rate: Annotated[
        float, typer.Option("--learning-rate", metavar="R", help="Of AdamW.")
    ] = 2e-4,
    preset: Annotated[
        str | None,
        typer.Option(
            "--preset",
            metavar="NAME|FOLDER",
            help="A BERT: KerasNLP's name or handle, or a folder. Default: MiniLM.",
        ),
    ] = None,
    max_length: Annotated[
        int,
        typer.Option(
            "--max-length",
            metavar="N",
            help="Word pieces that are read; a longer text is cut, and an empty one "
            "is encoded as such.",
        ),
    ] = 32,
    format: FormatOption = None,
    seed: Annotated[
        int,
        typer.Option("--seed", metavar="N", help="Of weights and batches, not noise."),
    ] = 0,
    tensorboard: Annotated[
        bool,
        typer.Option(
            "--tensorboard/--no-tensorboard", help="Curves in internal/tensorboard."
        ),
    ] = True,
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Train a BERT whose representations do a task and hide an attribute.

    Rows of equal text count once; three fifths train, the rest validates and tests.
    DIR/release/ may leave: privacy.json, statement.txt, what one release costs whose
    text is encoded. DIR/internal/ must not: the model was trained on private text
    without a guarantee. A run that was killed goes on when the command is given again.
    """
    del config
    opened = contextlib.ExitStack()
    with opened, before_work():
        settings = RepresentationSettings(
            method=method,
            epsilon=epsilon,
            nominal_epsilon=nominal_epsilon,
            scale=scale,
            mask_rate=mask_rate,
            mask_mode=mask_mode,
            dimension=dimension,
            adversary_weight=adversary_weight,
            adversary_steps=adversary_steps,
            epochs=epochs,
            batch_size=batch_size,
            learning_rate=learning_rate,
            preset=preset,
            max_length=max_length,
            seed=seed,
        ).complete()
        columns = Columns(text, label, private, format, _declared(labels, label))
        data = columns.read(file)
        compared = {
            "command": COMMAND,
            **{name: getattr(columns, name) for name in ("text", "label", "private")},
            "labels": columns.labels and list(columns.labels),
            **settings.to_json(),
        }
        folder = opened.enter_context(RunFolder(output, records(data), compared))
        result, prepared = finished(folder), None
        if result is None:
            prepared = _prepare(folder, data, columns, settings, file)
            note_training(file, folder.internal)
        opened = opened.pop_all()
    with opened, resumable(output):
        if prepared is not None:
            model, parts, config = prepared
            result = train_and_release(
                model, parts, folder, config, tensorboard=tensorboard
            )
        else:
            say("the run was finished already: nothing was trained.")
    if as_json:
        print_json(result)
    else:
        show_result(result, output)


def _prepare(
    folder: RunFolder,
    data: Any,
    columns: Columns,
    settings: RepresentationSettings,
    file: Path,
) -> tuple[Any, Splits, dict[str, Any]]:
    """Returns the model, the parts of the records and the run's config."""
    fresh = new_config(data, columns, settings.to_json(), file)
    try:
        config = load_or_make_config(folder.internal, fresh)
        parts = parts_of(data, config["split_key"])
        warn_of_unseen(data, parts)
        with quiet_import():
            import tfpriv.representation  # noqa: F401
        model = settings.build(
            len(config["label_names"]),
            len(config["private_names"]),
            public_labels=columns.declared is not None,
        )
        check_room(model, folder.path)
    except Exception:
        folder.abandon()  # a new run; one that has begun stays
        raise
    return model, parts, config


def _declared(labels: str | None, label: str) -> tuple[str, ...] | None:
    names = label_names(labels)
    if names is None:
        return None
    if label == VADER:
        raise InputError(
            "Expected no --labels with --label vader, whose labels are public anyway: "
            f"received --labels {labels}. Leave it out."
        )
    if len(names) < 2:
        raise InputError(f"Expected at least two --labels, received {len(names)}.")
    return names


# Macro-F1 above a constant guess that counts as having learnt anything.
_LEARNT = 0.05


def show_result(result: dict[str, Any], output: Path) -> None:
    """Prints the task's score, the statement and what was written."""
    from rich.console import Console

    console = Console(highlight=False)
    console.print(
        f"Task: macro-F1 {result['task_macro_f1']:.3f}, accuracy "
        f"{result['task_accuracy']:.3f} on {result['test_rows']} held-out records "
        f"(a constant guess: macro-F1 {result['constant_macro_f1']:.3f}).",
        soft_wrap=True,
    )
    if result["task_macro_f1"] < result["constant_macro_f1"] + _LEARNT:
        console.print(
            "The task was not learnt: what is released says as little of it as of the "
            "private attribute. Try more epochs, a larger epsilon or another seed.",
            soft_wrap=True,
        )
    console.print(result["statement_text"], soft_wrap=True, markup=False)
    console.print("Wrote:")
    for name in ("privacy", "statement", "evaluation", "history", "model"):
        console.print(f"  {result[name]}", soft_wrap=True, markup=False)
    console.print(
        f"{result['model']} learnt from private text without a guarantee of its own: "
        "it stays inside.",
        soft_wrap=True,
        markup=False,
    )
    console.print(f"Next: tfpriv rmat attack {output}", soft_wrap=True, markup=False)
