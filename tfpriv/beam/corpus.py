"""A corpus of text files to a folder of releases: the whole pipeline."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfpriv._errors import InputError
from tfpriv._validation import boolean, integer, one_of
from tfpriv.beam._require import require_beam
from tfpriv.beam.budgets import CorpusBudgets
from tfpriv.beam.exported_model import find_model
from tfpriv.beam.places import (
    INTERNAL,
    OUTPUT_FORMATS,
    RELEASE,
    checked_output,
    find_files,
    mark_finished,
    open_file,
    staged,
    write_json_to,
)
from tfpriv.beam.records import Columns, check_head, format_of
from tfpriv.beam.runners import checked_options, made_runner, why
from tfpriv.datasets.plain_texts import LONGEST

if TYPE_CHECKING:
    import apache_beam as beam

    from tfpriv.accounting import RepresentationStatement


@dataclasses.dataclass(frozen=True)
class CorpusRelease:
    """What `privatize_corpus` made.

    Attributes:
        output: str. The folder.
        statement: what each release guarantees.
        charged: id of a data set -> how many releases its budget paid for.
        counters: name -> exact count, which is private: `read`, `released`,
            `dead_letters`, `unread_files`. Empty where the runner tells none.
    """

    output: str
    statement: RepresentationStatement
    charged: dict[str, int]
    counters: dict[str, int]


def privatize_corpus(
    inputs: str | Sequence[str],
    output: str | os.PathLike,
    model_dir: str | os.PathLike,
    *,
    text: str | None = None,
    key: str | None = None,
    format: str | None = None,
    output_format: str = "tfrecord",
    batch_size: int = 64,
    max_chars: int = LONGEST,
    shards: int = 0,
    unprotected_training: bool = False,
    runner: Any = "DirectRunner",
    options: Sequence[str] = (),
) -> CorpusRelease:
    """Releases a private representation of each record of some files.

    The output is a folder:

    - `release/part-*.tfrecord` (or `.parquet`) in the format of `WriteReleases`;
    - `release/privacy.json`, what each release guarantees;
    - `internal/dead_letters.jsonl`, `key` and `reason` of what was not released, and
      `internal/counters.json`;
    - `_SUCCESS`, written last: a folder without it is not finished. On a local disk
      the folder itself appears when all is done; what a process leaves behind that is
      killed starts with a dot, and may hold draws.

    Without `key` a record's key is its file and place, "part1.csv:17", a file that is
    named twice being read once. Keys are released as they are.

    Files on this machine's disk are charged to their data budgets (`tfpriv budget
    init`), if they have any, before a record is encoded; see `CorpusBudgets`. A run
    that fails stays charged.

    Args:
        inputs: a path or glob of files, or several; gzip or not.
        output: a folder that does not exist.
        model_dir: what `tfpriv export` wrote, where workers can read it.
        text: str. Column of the texts; None for plain text, one a line.
        key: str. Column that tells records apart.
        format: "txt", "csv", "tsv", "jsonl" or "tfrecord"; None is told from names.
        output_format: "tfrecord" or "parquet".
        batch_size: int. As of `Privatize`.
        max_chars: int. Likewise.
        shards: int. Number of output files; 0 leaves it to the runner.
        unprotected_training: bool. As of `Privatize`; a budget on this machine is told.
        runner: str, one of `RUNNERS`, or a Beam runner.
        options: further options of Beam's, as on a command line.

    Returns:
        CorpusRelease.

    Raises:
        InputError: found before anything is released: a bad argument, no such model,
            no file, a missing column, an output that exists, a changed data set.
        BudgetExceeded: a data budget does not allow it; nothing was charged.
        RuntimeError: the pipeline failed, or no record could be released; nothing of
            the output is left.
    """
    require_beam()
    import apache_beam as beam

    from tfpriv.beam.privatize import Privatize
    from tfpriv.beam.sinks import WriteDeadLetters, WriteReleases

    integer(batch_size=batch_size, max_chars=max_chars)
    boolean(unprotected_training=unprotected_training)
    integer(0, shards=shards)
    one_of(OUTPUT_FORMATS, output_format=output_format)
    beam_options = checked_options(options)
    made = made_runner(runner)
    files = find_files(inputs)
    _check_places(runner, [path for path, _ in files], output, model_dir)
    target = checked_output(output)
    model = find_model(model_dir)
    if Path(target).resolve().is_relative_to(Path(model_dir).resolve()):
        raise InputError(
            f"Expected an output outside the model {model_dir}, received {target}: the "
            "folder holds what was exported and nothing else."
        )
    trained_on = model.training_budget(allowed=unprotected_training)
    budgets = CorpusBudgets([path for path, _ in files], model, keyed=key is not None)
    # What would go over is refused before a text is read.
    budgets.require()
    read = _formats(files, format, Columns(text, key))
    statement = model.privacy_statement()
    budgets.charge()
    if trained_on is not None:
        trained_on.note_unprotected("representations by an encoder trained on it")
    with staged(target) as folder:
        write_json_to(f"{folder}/{RELEASE}/privacy.json", statement.to_json())
        pipeline = beam.Pipeline(runner=made, options=beam_options)
        _build(
            pipeline,
            read,
            Privatize(
                model,
                batch_size=batch_size,
                max_chars=max_chars,
                unprotected_training=unprotected_training,
            ),
            WriteReleases(f"{folder}/{RELEASE}/part", output_format, shards),
            WriteDeadLetters(f"{folder}/{INTERNAL}/dead_letters.jsonl"),
        )
        counters = _finish(pipeline)
        write_json_to(f"{folder}/{INTERNAL}/counters.json", counters)
        mark_finished(folder)
    return CorpusRelease(target, statement, budgets.counts, counters)


def _formats(
    files: list[tuple[str, str]], format: str | None, columns: Columns
) -> list[tuple[str, str, str, Columns]]:
    """(path, name, format, columns) of each file, whose beginning fits."""
    read = []
    records = False
    for path, name in files:
        kind = format_of(path, format)
        if kind == "txt" and any(columns):
            raise InputError(
                f"Expected no columns for {path}, plain text with a text a line, "
                "received some. Leave --text and --key out, or give the format."
            )
        if kind != "txt" and columns.text is None:
            raise InputError(
                f"Expected the name of the text column of {path}, received none."
            )
        if columns.text is not None and columns.text == columns.key:
            raise InputError(
                "Expected different columns for text and key, received "
                f"{columns.text!r} for both."
            )
        with open_file(path) as file:
            records |= check_head(file, path, kind, columns)
        read.append((path, name, kind, columns))
    if not records:
        raise InputError(
            f"Expected records in {files[0][0]}, received none"
            f"{' in any file' if len(files) > 1 else ''}."
        )
    return read


def _check_places(runner: Any, paths: list[str], output: Any, model_dir: Any) -> None:
    if runner != "DataflowRunner":
        return
    local = [p for p in (*paths, str(output), str(model_dir)) if "://" not in p]
    if local:
        raise InputError(
            f"Expected gs:// paths for DataflowRunner, whose workers do not see this "
            f"machine's disk, received {local[0]}."
        )


def _build(
    pipeline: beam.Pipeline,
    files: list[tuple[str, str, str, Columns]],
    privatize: beam.PTransform,
    write_releases: beam.PTransform,
    write_dead_letters: beam.PTransform,
) -> None:
    import apache_beam as beam

    from tfpriv.beam.read_files import ReadFiles

    read = pipeline | "Files" >> beam.Create(files) | "Read" >> ReadFiles()
    made = read.records | privatize
    _ = made.releases | "WriteReleases" >> write_releases
    letters = (read.dead_letters, made.dead_letters) | beam.Flatten()
    _ = letters | "WriteDeadLetters" >> write_dead_letters


def _finish(pipeline: beam.Pipeline) -> dict[str, int]:
    """Runs the pipeline; returns its counters."""
    from apache_beam.runners.runner import PipelineState

    ended: dict[str, Any] = {}

    def work() -> None:
        try:
            ended["result"] = pipeline.run()
            ended["state"] = ended["result"].wait_until_finish()
        except BaseException as error:  # raised below, in the caller's thread
            ended["error"] = error

    # Beam's local runner would finish what its workers have before it heard of Ctrl-C.
    thread = threading.Thread(target=work, daemon=True, name="tfpriv.beam")
    thread.start()
    try:
        while thread.is_alive():
            thread.join(0.2)
    except KeyboardInterrupt:
        if "result" in ended:
            with contextlib.suppress(Exception):
                ended["result"].cancel()
        raise
    if (error := ended.get("error")) is not None:
        if os.environ.get("TFPRIV_DEBUG") == "1":
            raise error
        raise RuntimeError(why(error)) from None
    result, state = ended["result"], ended["state"]
    if state not in (None, PipelineState.DONE):
        raise RuntimeError(
            f"Expected the pipeline to finish, received the state {state}. What it "
            "wrote is gone; the log of the runner says more."
        )
    return _counters(result)


def _counters(result: Any) -> dict[str, int]:
    from tfpriv.beam.privatize import NAMESPACE

    counters: dict[str, int] = {}
    for found in result.metrics().query()["counters"]:
        name = found.key.metric
        if name.namespace == NAMESPACE:
            value = found.committed if found.committed is not None else found.attempted
            counters[name.name] = counters.get(name.name, 0) + int(value or 0)
    if not counters:
        return {}
    counters = {
        name: counters.get(name, 0)
        for name in ("read", "released", "dead_letters", "unread_files")
    }
    if not counters["released"]:
        raise RuntimeError(
            f"Expected at least one release, received none: all "
            f"{counters['dead_letters']} records are dead letters. Nothing was "
            "written. Are format and columns right?"
        )
    return counters
