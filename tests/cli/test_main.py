import subprocess
import sys
from typing import Annotated

import pytest
import typer

from tfpriv._errors import BudgetExceeded, InputError
from tfpriv.cli import main
from tfpriv.cli._common import before_work


@pytest.fixture
def command(monkeypatch):
    """Makes a command `probe` whose body is a function of the test."""
    module = type(sys)("tfpriv.cli.probe")
    monkeypatch.setitem(sys.modules, "tfpriv.cli.probe", module)
    commands = {**main.COMMANDS, "probe": ("tfpriv.cli.probe", "A probe.")}
    monkeypatch.setattr(main, "COMMANDS", commands)
    monkeypatch.setattr(main, "app", _fresh_app())

    def install(body):
        module.app = typer.Typer()
        module.app.command()(body)

    return install


def _fresh_app():
    app = typer.Typer(cls=main.LazyGroup, add_completion=False, rich_markup_mode=None)
    app.callback(invoke_without_command=True)(main._root)
    return app


def _raise(error):
    def body():
        raise error

    return body


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (InputError("Expected x, received y."), 2, "Expected x, received y."),
        (BudgetExceeded("spent"), 1, "spent"),
        (RuntimeError("it\nbroke"), 1, "it broke"),
        (FileNotFoundError(2, "No such file or directory", "a.csv"), 1, "a.csv: No "),
        (KeyboardInterrupt(), 130, "interrupted"),
        (typer.Abort(), 130, "interrupted"),
        (ValueError("the private cell"), 1, "unexpected ValueError"),
        (KeyError("the private cell"), 1, "unexpected KeyError"),
    ],
)
def test_an_error_is_one_line_and_a_code(command, capsys, error, code, message):
    command(_raise(error))
    assert main.run(["probe"]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("tfpriv: error: ")
    assert message in err
    assert err.count("\n") == 1
    assert "private cell" not in err
    assert "Traceback" not in err


def test_a_traceback_is_shown_only_when_asked_for(command, capsys, monkeypatch):
    command(_raise(InputError("bad")))
    monkeypatch.setenv("TFPRIV_DEBUG", "1")
    assert main.run(["probe"]) == 2
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize("error", [BudgetExceeded("spent"), PermissionError(13, "no")])
def test_a_failure_before_work_is_code_2(command, error):
    def body():
        with before_work():
            raise error

    command(body)
    assert main.run(["probe"]) == 2


def test_a_command_that_ends_well_is_code_0(command):
    command(lambda: None)
    assert main.run(["probe"]) == 0


def test_a_command_may_choose_its_code(command):
    command(_raise(typer.Exit(3)))
    assert main.run(["probe"]) == 3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["acount"], "'account'"),
        (["--nonsense"], "--nonsense"),
        (["account"], "--examples"),
        (["account", "--examples", "many"], "--examples"),
    ],
)
def test_wrong_usage_is_one_line_and_code_2(capsys, arguments, words):
    assert main.run(arguments) == 2
    err = capsys.readouterr().err
    assert words in err
    assert "--help" in err
    assert err.count("\n") == 1


def test_help_lists_every_command_with_its_help(capsys):
    assert main.run(["--help"]) == 0
    out = capsys.readouterr().out
    for name, (_, text) in main.COMMANDS.items():
        assert f"  {name} " in out
        assert text[:30] in out


def test_nothing_at_all_shows_help(capsys):
    assert main.run([]) == 0
    assert "Usage: tfpriv" in capsys.readouterr().out


def test_version_is_printed(capsys):
    from tfpriv import __version__

    assert main.run(["--version"]) == 0
    assert capsys.readouterr().out == f"tfpriv {__version__}\n"


@pytest.mark.parametrize(
    "arguments", [["--help"], *([name, "--help"] for name in main.COMMANDS)], ids=str
)
def test_help_imports_nothing_heavy(arguments):
    code = (
        "import sys, tfpriv.cli.main as m; m.run(sys.argv[1:]);"
        "heavy = {'tensorflow', 'keras', 'dp_accounting', 'numpy', 'scipy', 'opendp'};"
        "print(heavy & set(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True
    )
    assert done.stderr.strip() == "set()"


def test_a_closed_stderr_does_not_send_errors_to_stdout():
    line = f"{sys.executable} -m tfpriv.cli.main account 2>&-"
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")


def test_a_reader_that_goes_away_is_no_traceback():
    code = "import sys, tfpriv.cli.main as m; sys.exit(m.run(['--help']))"
    reading = subprocess.Popen(["true"], stdin=subprocess.PIPE)
    reading.wait()
    with reading.stdin as closed_pipe:
        done = subprocess.run(
            [sys.executable, "-c", code],
            stdout=closed_pipe,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 1
    assert done.stderr == ""


@pytest.mark.parametrize("name", main.COMMANDS)
def test_every_listed_command_loads(name):
    assert main.load(name).name == name


def _said(capsys, *arguments):
    """What a command line prints, blanks and line breaks evened out."""
    assert main.run([*arguments, "--help"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return " ".join(out.split())


@pytest.mark.parametrize("name", main.COMMANDS)
def test_the_help_of_every_command_says_what_it_does_and_what_it_takes(capsys, name):
    command = main.load(name)
    said = _said(capsys, name)
    assert said.startswith(f"Usage: tfpriv {name} ")
    assert "-h, --help" in said
    _describes(command, said)
    parts = getattr(command, "commands", {}).values()
    # A group that only holds commands prints nothing of its own.
    assert " --json " in said or parts
    for part in parts:
        said = _said(capsys, name, part.name)
        assert said.startswith(f"Usage: tfpriv {name} {part.name} ")
        assert " --json " in said
        _describes(part, said)


def _describes(command, said):
    first_line = " ".join(command.help.split("\n\n")[0].split())
    assert first_line.endswith(".")
    assert first_line in said
    for parameter in command.params:
        names = [name for name in parameter.opts if name.startswith("-")]
        for name in names or [parameter.metavar or parameter.name.upper()]:
            assert f" {name} " in f" {said} ", name


def test_an_option_that_help_leaves_out_is_noticed(command, capsys):
    def body(
        odd: Annotated[int, typer.Option("--odd", hidden=True)] = 1,
    ) -> None:
        """Does a thing."""

    command(body)
    with pytest.raises(AssertionError, match="--odd"):
        _describes(main.load("probe"), _said(capsys, "probe"))
