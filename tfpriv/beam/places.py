"""Files and folders, on this machine's disk or wherever Beam's file systems reach."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tfpriv._errors import InputError
from tfpriv._files import write_json

RELEASE = "release"
INTERNAL = "internal"
FINISHED = "_SUCCESS"
OUTPUT_FORMATS = ("tfrecord", "parquet")


def find_files(inputs: str | Sequence[str]) -> list[tuple[str, str]]:
    """Finds the files of paths and globs.

    Returns:
        (path, name) of each file, once, sorted; the name is what follows the folder
        that all are in.

    Raises:
        InputError: one of them matches no file.
    """
    from apache_beam.io.filesystems import FileSystems

    patterns = [inputs] if isinstance(inputs, str) else list(inputs)
    if not patterns or not all(isinstance(p, str) and p for p in patterns):
        raise InputError("Expected a path or a glob of files, received none.")
    paths: set[str] = set()
    for pattern in patterns:
        try:
            found = FileSystems.match([pattern])[0].metadata_list
        except (OSError, ValueError) as error:
            raise InputError(
                f"Expected files at {pattern}, received {type(error).__name__} when "
                "they were looked for."
            ) from None
        matched = {metadata.path for metadata in found}
        paths |= {_once(path) for path in matched if not os.path.isdir(path)}
        if not matched:
            raise InputError(
                f"Expected files at {pattern}, received none. Quote a glob, so that "
                "the shell leaves it alone."
            )
    if not paths:
        raise InputError(f"Expected files at {patterns[0]}, received folders alone.")
    ordered = sorted(paths)
    folders = [path.split("/")[:-1] for path in ordered]
    shared = itertools.takewhile(
        lambda parts: len(set(parts)) == 1, zip(*folders, strict=False)
    )
    depth = len(list(shared))
    return [(path, "/".join(path.split("/")[depth:])) for path in ordered]


def _once(path: str) -> str:
    """The same string for the same local file."""
    return os.path.realpath(path) if os.path.exists(path) else path


@contextlib.contextmanager
def open_file(path: str) -> Iterator[Any]:
    """Opens a file of any file system, for reading its bytes as they are.

    Raises:
        InputError: it cannot be opened.
    """
    from apache_beam.io.filesystem import CompressionTypes
    from apache_beam.io.filesystems import FileSystems

    try:
        file = FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED)
    except OSError as error:
        raise InputError(
            f"Expected a file that can be read, received {path}: "
            f"{error.strerror or type(error).__name__}."
        ) from None
    with contextlib.closing(file):
        yield file


def checked_output(output: str | os.PathLike) -> str:
    """Returns the path of a folder that is not there and can be made.

    Raises:
        InputError: it is there, or its folder is not, or cannot be written.
    """
    from apache_beam.io.filesystems import FileSystems

    output = os.fspath(output).rstrip("/")
    if not output:
        raise InputError("Expected a new folder for the output, received none.")
    if "://" not in output:
        output = os.path.abspath(output)
        parent = os.path.dirname(output)
        if not os.path.isdir(parent) or not os.access(parent, os.W_OK | os.X_OK):
            raise InputError(
                f"Expected an output in a folder that can be written, received "
                f"{output}. Make {parent} first."
            )
    there = os.path.lexists(output) if "://" not in output else False
    try:
        there = there or bool(FileSystems.match([f"{output}/**"])[0].metadata_list)
    except (OSError, ValueError) as error:
        raise InputError(
            f"Expected an output that can be written, received {output}: "
            f"{type(error).__name__} when it was looked for."
        ) from None
    if there:
        raise InputError(
            f"Expected a new folder for the output, received {output}, which exists: "
            "an earlier release, paid for. Name another, or move it away."
        )
    return output


@contextlib.contextmanager
def staged(output: str) -> Iterator[str]:
    """A folder to write to, which is the output once the block ends well."""
    from apache_beam.io.filesystems import FileSystems

    if "://" in output:
        try:
            yield output
        except BaseException:
            with contextlib.suppress(Exception):
                FileSystems.delete([f"{output}/"])
            raise
        return
    path = Path(output)
    folder = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
    # Also what the workers make that are started on this machine.
    mask = os.umask(0o077)
    try:
        for name in (RELEASE, INTERNAL):
            (folder / name).mkdir(mode=0o700)
        yield str(folder)
        # Onto a folder that appeared meanwhile it fails, unless that one is empty.
        os.rename(folder, path)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    finally:
        os.umask(mask)


def write_json_to(path: str, value: Any) -> None:
    """Writes JSON to a path of any file system; on a local disk for the owner alone."""
    if "://" not in path:
        write_json(path, value)
        return
    from apache_beam.io.filesystems import FileSystems

    with contextlib.closing(FileSystems.create(path)) as file:
        file.write(json.dumps(value, indent=2, allow_nan=False).encode() + b"\n")


def mark_finished(folder: str) -> None:
    """Writes the empty file that says that a folder is whole."""
    from apache_beam.io.filesystems import FileSystems

    FileSystems.create(f"{folder}/{FINISHED}").close()
