from __future__ import annotations

import hashlib
import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from tfpriv._errors import InputError
from tfpriv.cli.datasets import app
from tfpriv.datasets import youtube_spam


@pytest.fixture
def source(tmp_path, monkeypatch):
    folder = tmp_path / "source"
    folder.mkdir()
    content = b"COMMENT_ID,AUTHOR,DATE,CONTENT,CLASS\na,b,c,hi,0\n"
    (folder / "one.csv").write_bytes(content)
    sums = {"one.csv": (len(content), hashlib.sha256(content).hexdigest())}
    monkeypatch.setattr(youtube_spam, "checksums", lambda: sums)
    return folder


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_the_list_names_every_data_set_and_says_which_are_here(tmp_path):
    result = run("--data-dir", tmp_path, "--json")
    assert result.exit_code == 0
    ready = {row["name"]: row["ready"] for row in json.loads(result.output)}
    assert ready["sample"]
    assert not ready["youtube_spam"]
    assert "youtube_spam" in run("--data-dir", tmp_path).output


def test_prepare_copies_verified_files_and_says_where(source, tmp_path):
    arguments = ["youtube_spam", "--source", source, "--data-dir", tmp_path / "data"]
    result = run("prepare", *arguments)
    assert result.exit_code == 0, result.output
    assert str(tmp_path / "data" / "youtube_spam") in result.output
    assert (tmp_path / "data" / "youtube_spam" / "one.csv").is_file()
    result = run("prepare", *arguments, "--json")
    assert json.loads(result.output)["name"] == "youtube_spam"


def test_errors_reach_the_caller_as_input_errors(tmp_path):
    result = run("prepare", "spam", "--data-dir", tmp_path)
    assert isinstance(result.exception, InputError)
    result = run("prepare", "youtube_spam", "--source", tmp_path / "no")
    assert isinstance(result.exception, InputError)


def test_the_command_brings_no_tensorflow():
    code = (
        "import sys\n"
        "from tfpriv.cli.datasets import app\n"
        "app([], standalone_mode=False)\n"
        "print([m for m in ('tensorflow', 'tensorflow_datasets', 'pandas') "
        "if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip().endswith("[]")
