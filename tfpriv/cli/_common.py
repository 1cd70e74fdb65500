"""Options and manners that all commands share."""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from tfpriv._errors import BudgetExceeded, InputError


class Interrupted(Exception):
    """Ctrl-C during work, with a line that says how to go on: exit code 130."""


@contextlib.contextmanager
def before_work() -> Iterator[None]:
    """Marks what a command does before it works: its failures get exit code 2.

    A file that is not there, a folder that cannot be written or a budget that is
    used up is an `InputError` here, and a failure (exit code 1) later.
    """
    try:
        yield
    except BudgetExceeded as error:
        raise InputError(str(error)) from error
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise InputError(f"{where}{error.strerror or error}") from error


@contextlib.contextmanager
def resumable(folder: Path) -> Iterator[None]:
    """Marks work that goes on when the command is given again; failures say so."""
    mend = f"Run the same command again to go on from the checkpoint in {folder}"
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted. {mend}.") from None
    except OSError as error:
        if not _is_full(error):
            raise
        raise OSError(
            f"Expected room for the files of the run, received a full disk "
            f"({os.strerror(error.errno or errno.ENOSPC)}). Free some. {mend}; what is "
            "in release/ is untouched."
        ) from error


def _is_full(error: OSError) -> bool:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return True
    # HDF5, in which Keras keeps weights, has the reason in its message alone.
    return error.errno is None and os.strerror(errno.ENOSPC) in str(error)


@contextlib.contextmanager
def quiet_import() -> Iterator[None]:
    """Keeps what TensorFlow logs while it is imported, past Python, off stderr."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    try:
        kept = None if os.environ.get("TFPRIV_DEBUG") == "1" else os.dup(2)
    except OSError:  # started without a stderr
        kept = None
    if kept is None:
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
        if "tensorflow" in sys.modules:
            # Looks for a GPU now: the complaint that there is none goes nowhere too.
            sys.modules["tensorflow"].config.list_physical_devices("GPU")
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def print_json(value: Any) -> None:
    """Prints one JSON value; infinity, as of an epsilon, becomes null."""
    typer.echo(json.dumps(_without_infinity(value), indent=2, allow_nan=False))


def _without_infinity(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_infinity(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_without_infinity(part) for part in value]
    if isinstance(value, float) and math.isinf(value):
        return None
    return value


def _read_config(ctx: typer.Context, path: Path | None) -> None:
    """Makes the values of a YAML file the defaults of the other options."""
    if path is None or ctx.resilient_parsing:
        return
    import yaml

    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(
            f"Expected a YAML file for --config, received {path}: "
            f"{getattr(error, 'strerror', None) or 'it cannot be parsed'}."
        ) from None
    if not isinstance(values, dict):
        raise InputError(f"Expected option: value lines in {path}, received none.")
    names = {
        declared.lstrip("-"): parameter.name
        for parameter in ctx.command.params
        for declared in (*parameter.opts, parameter.name)
        if parameter.name != "config"
    }
    unknown = sorted(str(key) for key in values if key not in names)
    if unknown:
        raise InputError(
            f"Expected options of {ctx.info_name} in {path}, received {unknown[0]!r}."
        )
    ctx.default_map = {names[key]: value for key, value in values.items()}


ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE.yaml",
        help="Defaults for the other options, one `option: value` a line.",
        callback=_read_config,
        is_eager=True,
        expose_value=True,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
