"""`tfpriv export`: a finished run as a model that TensorFlow Serving loads."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tfpriv._errors import InputError
from tfpriv._figures import rounded_up
from tfpriv._validation import integer, one_of
from tfpriv.cli._common import (
    ConfigOption,
    JsonOption,
    UsageCommand,
    before_work,
    print_json,
    quiet_import,
    say,
    warn,
)
from tfpriv.cli._data_budget import check_unprotected_training
from tfpriv.cli._representation_run import load_model, read_config

if TYPE_CHECKING:
    from tfpriv.accounting import DataBudget
    from tfpriv.seqgan import DPSeqGAN

app = typer.Typer()

_PARTS = ("whole", "client", "server")


@app.command(cls=UsageCommand)
def export(
    directory: Annotated[
        Path,
        typer.Argument(
            metavar="DIR", help="A run of `tfpriv rmat train` or `tfpriv synthesize`."
        ),
    ],
    target: Annotated[
        Path,
        typer.Argument(
            metavar="NAME", help="Folder of the model's versions; names the model."
        ),
    ],
    version: Annotated[
        int | None,
        typer.Option(
            "--version", metavar="N", help="Default: one more than the highest there."
        ),
    ] = None,
    part: Annotated[
        str,
        typer.Option(
            "--part",
            metavar="PART",
            help="whole; or client (text to representation) and server "
            "(representation to label), so that no text leaves the client.",
        ),
    ] = "whole",
    unprotected_training: Annotated[
        bool,
        typer.Option(
            "--unprotected-training",
            help="Export although a data set with a budget trained the encoder, which "
            "protects it not.",
        ),
    ] = False,
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Write a finished run to NAME/<version>/, which TensorFlow Serving loads.

    The folder has graph, weights, privacy statement, model card and warm-up requests,
    and is there whole or not at all. A server needs nothing of tfpriv. Of a
    representation, every answer that reads a text is a release of it; a generator's
    texts are released already and cost nothing more. Nothing is charged here.
    """
    del config
    with before_work():
        one_of(_PARTS, part=part)
        if version is not None:
            integer(version=version)
        if target.resolve().is_relative_to(directory.resolve()):
            raise InputError(
                f"Expected a folder outside the run {directory} for NAME, received "
                f"{target}: the folder holds what the run made and nothing else."
            )
        from tfpriv.serving.export import checked_target

        checked_target(target, version)
        model, labels, trained_on = _load(directory, part, unprotected_training)
        if trained_on is not None:
            trained_on.note_unprotected("an exported encoder trained on it")
    say("tracing the graph, then loading it as a server does.")
    from tfpriv.serving import export as write

    folder = write(
        model, target, version, label_names=labels, part=part, trained_on=trained_on
    )
    statement = json.loads(
        (folder / "assets.extra" / "privacy.json").read_text(encoding="utf-8")
    )
    if folder.stat().st_mode & 0o077 == 0:
        warn(
            "its weights were fitted to private text without a guarantee: whoever has "
            "the files may learn about that text. They have mode 0600."
        )
    result = _told(folder, statement)
    if as_json:
        print_json(result)
        return
    typer.echo(f"Wrote {folder}")
    typer.echo(f"  signatures: {', '.join(result['signatures'])}")
    typer.echo(f"  {_cost(statement)}")
    for name in ("model_card", "privacy"):
        typer.echo(f"  {result[name]}")


def _load(
    directory: Path, part: str, unprotected_training: bool
) -> tuple[Any, list[str] | None, DataBudget | None]:
    """Returns the model of a run, its labels' names, and a budget to be told.

    A generator has label names of its own, and what it releases was charged.
    """
    generator = directory / "internal" / "model"
    if (generator / "model.json").is_file():
        if part != "whole":
            raise InputError(
                f"Expected --part whole for the generator in {directory}, received "
                f"{part}: it has no parts."
            )
        return _load_generator(generator), None, None
    if not (directory / "internal" / "config.json").is_file():
        raise InputError(
            "Expected the folder of a finished run of `tfpriv rmat train` or `tfpriv "
            f"synthesize`, received {directory}. Finish a run first."
        )
    run = read_config(directory)
    trained_on = check_unprotected_training(
        directory, Path(run["file"]), allowed=unprotected_training
    )
    return load_model(directory), list(run["label_names"]), trained_on


def _load_generator(folder: Path) -> DPSeqGAN:
    with quiet_import():
        from tfpriv.seqgan.dp_seqgan import DPSeqGAN

    return DPSeqGAN.load(folder)


def _told(folder: Path, statement: dict[str, Any]) -> dict[str, Any]:
    extra = folder / "assets.extra"
    described = json.loads((extra / "serving.json").read_text(encoding="utf-8"))
    return {
        "folder": str(folder),
        "kind": described["kind"],
        "part": described["part"],
        "signatures": list(described["signatures"]),
        "model_card": str(extra / "model_card.md"),
        "privacy": str(extra / "privacy.json"),
        "statement": statement,
    }


def _cost(statement: dict[str, Any]) -> str:
    epsilon = statement["epsilon"]
    if epsilon is None or math.isinf(epsilon):
        return "NO guarantee: see privacy.json for why."
    if statement.get("kind") == "representation":
        return (
            f"epsilon {rounded_up(epsilon)} for each answer that reads a text; r of "
            "one text cost r times as much."
        )
    return f"epsilon {rounded_up(epsilon)}, paid; drawing texts costs nothing more."
