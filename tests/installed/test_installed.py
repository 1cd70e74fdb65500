"""The built wheel, installed alone, tried from a folder that is not the repository.

`.ci/run` copies this file elsewhere and runs it in an environment that holds the
wheel; TFPRIV_WHEEL names the wheel's file, TFPRIV_SOURCE the tree it was built from.
"""

from __future__ import annotations

import csv
import importlib.metadata
import importlib.resources
import json
import os
import pathlib
import re
import subprocess
import sys
import zipfile

import tfpriv

COMMAND = pathlib.Path(sys.executable).with_name("tfpriv")


def _run(*arguments: str) -> str:
    done = subprocess.run(
        [COMMAND, *arguments],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_package_under_test_is_the_installed_one():
    here = pathlib.Path(tfpriv.__file__).resolve()
    assert pathlib.Path(sys.prefix).resolve() in here.parents


def test_the_version_is_the_same_everywhere():
    assert tfpriv.__version__ == importlib.metadata.version("tfpriv")
    wheel = pathlib.Path(os.environ["TFPRIV_WHEEL"])
    assert wheel.name.startswith(f"tfpriv-{tfpriv.__version__}-")


def test_the_metadata_names_licence_and_readme():
    metadata = importlib.metadata.metadata("tfpriv")
    licence = metadata.get("License-Expression") or metadata.get("License")
    assert licence == "Apache-2.0"
    assert metadata.get_payload() or metadata.get("Description")


def test_the_sample_is_there():
    sample = importlib.resources.files("tfpriv.datasets") / "sample" / "comments.csv"
    with sample.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) >= 1000
    assert {"text", "label", "gender", "author"} <= set(rows[0])


def test_the_prior_is_there():
    prior = importlib.resources.files("tfpriv.text") / "prior"
    assert [entry.name for entry in prior.iterdir() if entry.is_file()]


def test_the_wheel_holds_the_package_and_nothing_else():
    with zipfile.ZipFile(os.environ["TFPRIV_WHEEL"]) as wheel:
        entries = wheel.infolist()
    names = [entry.filename for entry in entries]
    roots = {name.split("/")[0] for name in names}
    assert roots == {"tfpriv", f"tfpriv-{tfpriv.__version__}.dist-info"}
    assert [name for name in names if re.search("minilm|bert", name, re.I)] == []
    assert [name for name in names if name.endswith((".pyc", ".pkl"))] == []
    assert sum(entry.compress_size for entry in entries) < 20_000_000


def test_the_wheel_holds_every_file_of_the_package():
    source = pathlib.Path(os.environ["TFPRIV_SOURCE"])
    with zipfile.ZipFile(os.environ["TFPRIV_WHEEL"]) as wheel:
        held = set(wheel.namelist())
    written = {
        path.relative_to(source).as_posix()
        for path in (source / "tfpriv").rglob("*")
        if path.is_file()
    }
    assert written
    assert sorted(written - held) == []


def test_the_commands_list_themselves():
    text = _run("--help")
    assert "synthesize" in text
    assert "account" in text


def test_account_gives_the_golden_epsilon():
    arguments = "--examples 1956 --batch 64 --steps 306 --noise-multiplier 1"
    text = _run("account", *arguments.split(), "--delta", "1e-5", "--json")
    assert abs(json.loads(text)["epsilon"]["rdp"] - 4.2012) < 1e-3
