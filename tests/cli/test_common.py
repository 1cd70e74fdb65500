"""What commands share: what is said when, usage lines, figures."""

from __future__ import annotations

import math
import os
import subprocess
import sys

import pytest
import typer

from tests.cli.conftest import rows, write
from tfpriv._errors import BudgetExceeded, InputError
from tfpriv.cli import main
from tfpriv.cli._common import UsageCommand, before_work, say, warn
from tfpriv.cli.encode import cost

# Those that other commands of the table may do as they like.
MINE = {"synthesize", "encode", "datasets", "demo", "rmat"}


def _commands():
    for name in sorted(MINE & set(main.COMMANDS)):
        command = main.load(name)
        parts = getattr(command, "commands", {})
        for part in [command, *parts.values()]:
            yield pytest.param(part, id=f"{name} {part.name}")


@pytest.mark.parametrize("kind", [InputError, BudgetExceeded, OSError])
def test_of_what_is_refused_nothing_else_is_said(capsys, kind):
    def refuse():
        with before_work():
            warn("rows were left out")
            raise kind("no")

    with pytest.raises(InputError, match="no"):
        refuse()
    assert capsys.readouterr().err == ""
    say("later")
    assert capsys.readouterr().err == "tfpriv: later\n"


def test_what_is_said_before_work_that_begins_is_said(capsys):
    with before_work():
        warn("rows were\nleft out")
        with before_work():
            say("inner")
    assert capsys.readouterr().err.splitlines() == [
        "tfpriv: warning: rows were left out",
        "tfpriv: inner",
    ]


def test_a_warning_that_does_not_wait_is_found_out(refused, tmp_path, monkeypatch):
    """The twin: printed at once, it stands before the one line of the error."""
    file = write(tmp_path / "a.csv", [["", "words", ""], *rows(ham=3)])
    command = ["synthesize", file, "--text", "CONTENT", "--label", "CLASS"]
    command += ["--output", tmp_path / "run"]
    assert "two labels" in refused(*command)

    def at_once(message):
        print(f"tfpriv: warning: {message}", file=sys.stderr)

    monkeypatch.setattr("tfpriv.cli.synthesize.warn", at_once)
    with pytest.raises(AssertionError):
        refused(*command)


@pytest.mark.parametrize("command", _commands())
def test_usage_names_arguments_as_help_does(command):
    context = typer.Context(command, info_name=command.name)
    assert "{" not in command.get_usage(context)


def test_usage_in_braces_is_found_out():
    app = typer.Typer()
    app.command()(_with_an_argument)
    plain = typer.Typer()
    plain.command(cls=UsageCommand)(_with_an_argument)
    usages = []
    for one in (app, plain):
        command = typer.main.get_command(one)
        usages.append(command.get_usage(typer.Context(command)))
    assert "{file}" in usages[0]
    assert usages[1].endswith(" file")


def _with_an_argument(file: str) -> None:
    pass


@pytest.mark.parametrize("command", _commands())
def test_every_option_says_what_it_is(command):
    for parameter in command.params:
        assert parameter.help, parameter.name


def test_costs_are_rounded_up():
    class Statement:
        method, releases, delta, epsilon = "RMAT", 3, 1.01e-20, 12.00012
        group = None

        class certificate:
            record_epsilon = 4.00004

    line = cost(Statement, 2)
    assert "epsilon 4.001," in line
    assert "12.01 together" in line
    assert "delta 1.1e-20" in line
    Statement.epsilon = math.inf
    assert "NO guarantee" in cost(Statement, 2)


CHILD = """
import os, sys
from tfpriv._quiet import quiet_import
try:
    with quiet_import():
        os.write(2, b"noise of a library\\n")
        if sys.argv[1] == "fails":
            raise ImportError("no AVX")
except ImportError:
    pass
os.write(2, b"afterwards\\n")
"""


@pytest.mark.parametrize(
    ("how", "debug", "said"),
    [
        ("works", "0", "afterwards\n"),
        ("works", "1", "noise of a library\nafterwards\n"),
        ("fails", "0", "noise of a library\nafterwards\n"),
    ],
)
def test_a_quiet_import_is_quiet_unless_it_fails(how, debug, said):
    done = subprocess.run(
        [sys.executable, "-c", CHILD, how],
        capture_output=True,
        text=True,
        env={**os.environ, "TFPRIV_DEBUG": debug},
    )
    assert (done.returncode, done.stderr) == (0, said)
