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
from typer.core import TyperCommand

from tfpriv._errors import BudgetExceeded, InputError
from tfpriv._files import is_full
from tfpriv._quiet import quiet_import

__all__ = [
    "ConfigOption",
    "Interrupted",
    "JsonOption",
    "UsageCommand",
    "before_work",
    "print_json",
    "quiet_import",
    "resumable",
    "say",
    "warn",
]


class Interrupted(Exception):
    """Ctrl-C during work, with a line that says how to go on: exit code 130."""


# Lines that wait for the end of `before_work`.
_waiting: list[str] | None = None


class UsageCommand(TyperCommand):
    """A command whose usage line names arguments as its help does: FILE, not {FILE}."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Returns the parts of the usage line."""
        return [part.strip("{}") for part in super().collect_usage_pieces(ctx)]


@contextlib.contextmanager
def before_work() -> Iterator[None]:
    """Marks what a command does before it works: its failures get exit code 2.

    A file that is not there, a folder that cannot be written or a budget that is
    used up is an `InputError` here, and a failure (exit code 1) later. What is said
    meanwhile, that rows were left out for instance, appears when the block ends well:
    a command that is refused prints its one line and no other.
    """
    global _waiting
    outer, _waiting = _waiting, []
    try:
        yield
    except BudgetExceeded as error:
        raise InputError(str(error)) from error
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise InputError(f"{where}{error.strerror or error}") from error
    finally:
        said, _waiting = _waiting, outer
    for line in said:
        say(line)


def warn(message: str) -> None:
    """Prints a warning of one line on stderr."""
    say(f"warning: {message}")


def say(message: str) -> None:
    """Prints one line on stderr, or keeps it until `before_work` ends well."""
    line = " ".join(message.split())
    if _waiting is not None:
        _waiting.append(line)
    else:
        print(f"tfpriv: {line}", file=sys.stderr)


@contextlib.contextmanager
def resumable(folder: Path) -> Iterator[None]:
    """Marks work that goes on when the command is given again; failures say so."""
    mend = f"Run the same command again to go on from the checkpoint in {folder}"
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted. {mend}.") from None
    except OSError as error:
        if not is_full(error):
            raise
        raise OSError(
            f"Expected room for the files of the run, received a full disk "
            f"({os.strerror(error.errno or errno.ENOSPC)}). Free some. {mend}; what is "
            "in release/ is untouched."
        ) from error


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
