"""`tfpriv encode`: a private representation of each text of a file."""

from __future__ import annotations

import io
import json
import math
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tfpriv._errors import InputError
from tfpriv._figures import rounded_up
from tfpriv._files import PRIVATE, atomic_write, write_json
from tfpriv._validation import integer
from tfpriv.cli._common import (
    ConfigOption,
    JsonOption,
    UsageCommand,
    before_work,
    print_json,
    quiet_import,
    say,
)
from tfpriv.cli._data_budget import budget_of, check_unprotected_training
from tfpriv.cli._record_options import (
    GroupColumnOption,
    GroupSizeOption,
    group_bound,
)
from tfpriv.cli._representation_run import load_model, read_config
from tfpriv.cli._served_encoding import LoadedModel, ServedModel, Server, exported_at

if TYPE_CHECKING:
    import numpy as np

    from tfpriv.accounting import GroupBound, RepresentationStatement

app = typer.Typer()

_SUFFIXES = (".jsonl", ".npy", ".tfrecord")
_AT_ONCE = 1024
# In the ledger of a budget.
_WHAT = "representations of its texts"


@app.command(cls=UsageCommand)
def encode(
    directory: Annotated[
        Path,
        typer.Argument(
            metavar="DIR",
            help="A run of `tfpriv rmat train`, or an exported model.",
        ),
    ],
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="Texts: a .txt with one a line, or a table."
        ),
    ],
    text: Annotated[
        str | None,
        typer.Option(
            "--text",
            metavar="COL",
            help="Column of a table's texts. Default: the run's own.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            metavar="PATH",
            help="A .jsonl, .npy or .tfrecord, its statement beside it as "
            "PATH.privacy.json; else stdout, one JSON array a text.",
        ),
    ] = None,
    releases: Annotated[
        int,
        typer.Option("--releases", metavar="R", help="Of each text: R times the cost."),
    ] = 1,
    group: GroupColumnOption = None,
    group_size: GroupSizeOption = None,
    unprotected_training: Annotated[
        bool,
        typer.Option(
            "--unprotected-training",
            help="Release although a data set with a budget trained the encoder, which "
            "protects it not.",
        ),
    ] = False,
    format: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="csv, tsv, jsonl, tfrecord or txt, where the name does not tell.",
        ),
    ] = None,
    server: Annotated[
        str | None,
        typer.Option(
            "--server",
            metavar="HOST:PORT",
            help="Let TensorFlow Serving encode: gRPC, or REST as http(s)://HOST:PORT.",
        ),
    ] = None,
    served_model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="NAME",
            help="Of the model at the server. Default: the exported folder's.",
        ),
    ] = None,
    tls_ca: Annotated[
        Path | None,
        typer.Option(
            "--tls-ca",
            metavar="FILE.pem",
            help="Encrypt gRPC; who vouches for the server.",
        ),
    ] = None,
    deadline: Annotated[
        float,
        typer.Option(
            "--deadline", metavar="SECONDS", help="For each request to the server."
        ),
    ] = 30.0,
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Release a private representation of each text, in order.

    Every call is a new release, with noise of its own, and costs those whose texts
    are encoded; what it costs is said on stderr. It is no charge on the training data.
    An empty text is encoded like any other; of a long one the first words are read.
    If FILE has a budget (`tfpriv budget init`), the call is charged to it first.
    There is no --seed: noise that can be drawn again hides nothing.
    With --group, all the texts of one author cost as many times as much as there are,
    which the statement says.
    """
    del config
    with before_work():
        integer(releases=releases)
        bound = group_bound(group, group_size)
        exported = exported_at(directory, checked=server is None)
        run = None if exported else read_config(directory)
        _check_output(output, file, directory)
        model = None
        if exported is not None:
            trained_on = exported.training_budget(allowed=unprotected_training)
        else:
            trained_on = check_unprotected_training(
                directory, Path(run["file"]), allowed=unprotected_training
            )
        if server is not None:
            at = Server(server, served_model, tls_ca, deadline)
            model = ServedModel(directory, exported, at)
        elif exported is not None:
            model = LoadedModel(exported)
        budget = budget_of(file)
        if budget is not None:
            # What would go over is refused before a text is read.
            model = model or load_model(directory)
            event = model.privacy_statement(releases=releases).event()
            budget.require(event, _WHAT)
        column = "text" if run is None else run["text"]
        if bound is not None:
            _check_groups(file, bound, text or column, format)
        texts = _read(file, text, format, column)
        if model is None:
            model = load_model(directory)
        statement = model.privacy_statement(releases=releases).with_group(bound)
        if budget is not None:
            budget.charge(
                statement.event(),
                _WHAT,
                adjacency="replace-one",
                group=bound,
                local=True,
            )
        if trained_on is not None:
            trained_on.note_unprotected("representations by an encoder trained on it")
    say(cost(statement, len(texts)))
    vectors = _encode(model, texts, releases)
    if output is not None:
        _write(vectors, output, statement)
    if as_json:
        result: dict[str, Any] = {
            "texts": len(texts),
            "releases": releases,
            "dimension": vectors.shape[-1],
            "statement": statement.to_json(),
        }
        if output is None:
            result["representations"] = list(map(_plain, vectors))
        else:
            result["output"] = str(output)
            result["privacy"] = str(_beside(output))
        print_json(result)
    elif output is None:
        for vector in vectors:
            typer.echo(json.dumps(_plain(vector)))
    else:
        typer.echo(f"Wrote {len(texts)} representations to {output}")
        typer.echo(f"  what they cost: {_beside(output)}")


def cost(statement: RepresentationStatement, texts: int) -> str:
    """One line: what this call costs whom."""
    whose = f"{texts:,} text{'s' * (texts != 1)}"
    if math.isinf(statement.epsilon):
        return (
            f"NO guarantee for those who wrote the {whose}: method {statement.method} "
            "releases them without enough noise for any epsilon."
        )
    each = statement.certificate.record_epsilon
    line = (
        f"epsilon {rounded_up(each)}, certified for any two texts, for each of the "
        f"{whose}"
    )
    if statement.releases > 1:
        line += (
            f", times {statement.releases} releases: "
            f"{rounded_up(statement.epsilon)} together"
        )
    if statement.delta:
        line += f", at delta {rounded_up(statement.delta, 2)}"
    if statement.group is not None:
        group = statement.group
        together = statement.group_cost(group.size)
        line += (
            f"; {rounded_up(together.record_epsilon)} for all of one {group.unit}, "
            f"{group.size} at most"
        )
        if together.delta:
            line += f", at delta {rounded_up(together.delta, 2)}"
    return f"{line}. Every call adds as much; the training data is not charged."


def _read(file: Path, text: str | None, format: str | None, column: str) -> list[str]:
    from tfpriv.datasets.plain_texts import read_texts

    plain = format == "txt" or (format is None and file.suffix.casefold() == ".txt")
    return read_texts(
        file, text=text if plain or text is not None else column, format=format
    )


def _check_groups(file: Path, bound: GroupBound, text: str, format: str | None) -> None:
    """Refuses a file that has more texts of one author, before a text is read."""
    from tfpriv.datasets.plain_texts import read_groups

    if bound.unit == text:
        raise InputError(
            f"Expected different columns for the text and --group, received {text!r} "
            "for both."
        )
    bound.check(read_groups(file, group=bound.unit, format=format))


def _check_output(output: Path | None, file: Path, run: Path) -> None:
    if output is None:
        return
    if output.resolve().is_relative_to(run.resolve()):
        raise InputError(
            f"Expected a file outside the run {run} for --output, received {output}: "
            "the folder holds what the run made and nothing else."
        )
    if output.suffix not in _SUFFIXES:
        raise InputError(
            f"Expected a name in {', '.join(_SUFFIXES)} for --output, received "
            f"{output.name}."
        )
    if output.is_dir():
        raise InputError(f"Expected a file for --output, received the folder {output}.")
    if not output.parent.is_dir():
        raise InputError(
            f"Expected a file in a folder that exists for --output, received {output}. "
            "Make the folder first."
        )
    if output.exists() and file.exists() and output.samefile(file):
        raise InputError(
            f"Expected another file than FILE for --output, received {output} for both."
        )
    for path in (output, _beside(output)):
        if path.exists():
            raise InputError(
                f"Expected a new file for --output, received {path}, which exists: an "
                "earlier release, paid for. Name another, or move it away."
            )
    # A folder that cannot be written, or a full disk, is found out now.
    with tempfile.TemporaryFile(dir=output.parent):
        pass


def _encode(model: Any, texts: list[str], releases: int) -> np.ndarray:
    import numpy as np

    from tfpriv.seqgan.progress_bar import terminal_report

    if len(texts) <= _AT_ONCE:
        return model.encode(texts, releases=releases)
    parts = []
    with terminal_report() as report:
        for start in range(0, len(texts), _AT_ONCE):
            report("encoding", start / len(texts))
            parts.append(
                model.encode(texts[start : start + _AT_ONCE], releases=releases)
            )
    return np.concatenate(parts)


def _write(
    vectors: np.ndarray, output: Path, statement: RepresentationStatement
) -> None:
    """Writes the vectors, what they cost first."""
    write_json(_beside(output), statement.to_json(), mode=PRIVATE)
    try:
        with atomic_write(output, mode=PRIVATE, binary=True) as file:
            for chunk in _CHUNKS[output.suffix](vectors):
                file.write(chunk)
    except BaseException:
        # No vector is there, so nothing was released.
        _beside(output).unlink(missing_ok=True)
        raise


def _beside(output: Path) -> Path:
    return output.with_name(f"{output.name}.privacy.json")


def _jsonl(vectors: np.ndarray) -> Iterator[bytes]:
    for vector in vectors:
        yield json.dumps(_plain(vector)).encode() + b"\n"


def _npy(vectors: np.ndarray) -> Iterator[bytes]:
    import numpy as np

    # Through memory: NumPy would seek in the file.
    whole = io.BytesIO()
    np.save(whole, vectors, allow_pickle=False)
    yield whole.getvalue()


def _tfrecord(vectors: np.ndarray) -> Iterator[bytes]:
    """One tf.Example a text: `representation`, its floats, and `shape`."""
    with quiet_import():
        import tensorflow as tf

    with tempfile.TemporaryDirectory(prefix="tfpriv-") as folder:
        path = Path(folder, "whole")
        with tf.io.TFRecordWriter(str(path)) as writer:
            for vector in vectors:
                feature = {
                    "representation": tf.train.Feature(
                        float_list=tf.train.FloatList(value=vector.ravel())
                    ),
                    "shape": tf.train.Feature(
                        int64_list=tf.train.Int64List(value=vector.shape)
                    ),
                }
                example = tf.train.Example(features=tf.train.Features(feature=feature))
                writer.write(example.SerializeToString())
        yield path.read_bytes()


_CHUNKS = {".jsonl": _jsonl, ".npy": _npy, ".tfrecord": _tfrecord}


def _plain(vector: np.ndarray) -> list:
    """Nested lists; nine digits tell any two float32 apart."""
    if vector.ndim > 1:
        return [_plain(part) for part in vector]
    return [float(f"{value:.9g}") for value in vector]
