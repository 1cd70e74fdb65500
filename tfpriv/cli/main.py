"""The entry point: finds the command, runs it, turns errors into one line and a code.

Exit codes: 0 done; 2 found before work (arguments, files, budget); 1 failed after;
130 interrupted. `TFPRIV_DEBUG=1` shows tracebacks.
"""

from __future__ import annotations

import errno
import importlib
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from tfpriv._errors import InputError
from tfpriv._version import __version__
from tfpriv.cli._common import Interrupted

# Command -> (module, help). A module is imported when its command is run, and has a
# `typer.Typer` named `app`; the help stands here so that `tfpriv --help` imports none.
COMMANDS: dict[str, tuple[str, str]] = {
    "synthesize": (
        "tfpriv.cli.synthesize",
        "Rewrite a private labelled text file into a synthetic one to share.",
    ),
    "rmat": (
        "tfpriv.cli.rmat",
        "Train representations that do a task and hide an attribute; attack them.",
    ),
    "encode": (
        "tfpriv.cli.encode",
        "Release a private representation of each text of a file.",
    ),
    "audit": (
        "tfpriv.cli.audit",
        "Attack a release, to see what it tells of its records.",
    ),
    "export": (
        "tfpriv.cli.export",
        "Write a finished run as a model that TensorFlow Serving loads.",
    ),
    "account": (
        "tfpriv.cli.account",
        "Epsilon of a DP-SGD run or any mechanism, or what a target epsilon takes.",
    ),
    "budget": (
        "tfpriv.cli.budget",
        "Give a data set a privacy budget, and see what was spent.",
    ),
    "statement": (
        "tfpriv.cli.statement",
        "Say in words what a release guarantees, and check that it is true.",
    ),
    "report": (
        "tfpriv.cli.report",
        "Write one page about a run: its guarantee, its use, what attacks found.",
    ),
    "datasets": (
        "tfpriv.cli.datasets",
        "List the named data sets, or prepare the files of one.",
    ),
    "demo": (
        "tfpriv.cli.demo",
        "Both halves on a bundled artificial sample, in a few minutes.",
    ),
}


class LazyGroup(TyperGroup):
    """A group whose commands are imported when they run, not when they are listed."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        # Stand-ins that know a name and a help line: enough to list and to suggest.
        self.commands = {
            name: TyperCommand(name, help=text) for name, (_, text) in COMMANDS.items()
        }

    def resolve_command(self, ctx: typer.Context, args: list[str]) -> Any:
        """Returns the real command, imported now."""
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None:
            command = load(command.name)
        return name, command, rest


def load(name: str) -> Any:
    """Imports the command `name` of the table and returns it, ready to run."""
    module = importlib.import_module(COMMANDS[name][0])
    module.app._add_completion = False
    module.app.rich_markup_mode = None
    command = typer.main.get_command(module.app)
    command.name = name
    return command


app = typer.Typer(
    cls=LazyGroup,
    add_completion=False,
    pretty_exceptions_enable=False,
    # Plain help: Rich alone would take half of the half second that help may take.
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"tfpriv {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    ctx: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Print the version and exit.",
            callback=_print_version,
            is_eager=True,
        ),
    ] = False,
) -> None:
    """Make private text usable in TensorFlow, and say what it cost."""
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


def run(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line.

    Args:
        arguments: what follows `tfpriv`; `sys.argv[1:]` unless given.

    Returns:
        The exit code. Errors are one line on stderr, `tfpriv: error: ...`.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # started with the stream closed (2>&-)
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    try:
        code = app(given, prog_name="tfpriv", standalone_mode=False)
        sys.stdout.flush()
    except (KeyboardInterrupt, typer.Abort):
        return _fail("interrupted.", 130)
    except Exception as error:
        if os.environ.get("TFPRIV_DEBUG") == "1":
            traceback.print_exc()
        if isinstance(error, OSError) and error.errno == errno.EPIPE:
            # The reader went away (`| head`); Python would complain at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 1
        return _fail(*_explained(error))
    if code == 130:
        return _fail("interrupted.", 130)
    return code if isinstance(code, int) else 0


def _fail(message: str, code: int) -> int:
    print(f"tfpriv: error: {' '.join(message.split())}", file=sys.stderr)
    return code


def _explained(error: Exception) -> tuple[str, int]:
    """Returns the line and the exit code of an error."""
    if isinstance(error, InputError):
        return str(error), 2
    if isinstance(error, Interrupted):
        return str(error), 130
    if hasattr(error, "format_message"):  # typer's and click's errors of usage
        context = getattr(error, "ctx", None)
        path = context.command_path if context else "tfpriv"
        message = error.format_message().rstrip(".?")
        return f"{message}. Try '{path} --help'.", error.exit_code
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror}.", 1
    if isinstance(error, OSError | RuntimeError) and str(error):
        return str(error), 1
    # The text of an error that nobody foresaw may quote a private cell.
    return f"unexpected {type(error).__name__} {_place(error)}", 1


def _place(error: Exception) -> str:
    home = Path(__file__).parents[1]
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename)
        if path.is_relative_to(home) and path != Path(__file__):
            return (
                f"at {path.relative_to(home.parent)}:{frame.lineno}. "
                "TFPRIV_DEBUG=1 shows more, private text maybe among it."
            )
    return "TFPRIV_DEBUG=1 shows more."


if __name__ == "__main__":
    sys.exit(run())
