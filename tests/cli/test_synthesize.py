from __future__ import annotations

import csv
import functools
import gc
import json
import os
import re
import resource
import signal
import socket
import stat
import subprocess
import sys

import pytest
import yaml

from tests.cli.conftest import SECRET, rows, write
from tfpriv.cli.run_folder import RunFolder
from tfpriv.cli.synthesize import check_classes
from tfpriv.datasets import TextDataset, write_table

COLUMNS = ["--text", "CONTENT", "--label", "CLASS"]
NO_GAN = ["--discriminator-steps", "0"]
RELEASE = {"synthetic.csv", "privacy.json", "statement.txt"}


@pytest.fixture
def output(tmp_path):
    return tmp_path / "run"


@pytest.fixture
def command(private, output):
    """A whole command line that takes a moment with `tiny`."""
    return ["synthesize", private, *COLUMNS, "--output", output, *NO_GAN]


def ledger(output) -> list[dict]:
    lines = (output / "internal" / "ledger.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines[1:]]


def files(folder) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def synthetic(output) -> list[list[str]]:
    with (output / "release" / "synthetic.csv").open(newline="") as file:
        return list(csv.reader(file))


# Found before work: code 2, one line, nothing written, no TensorFlow.


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty file"),
        (b"\xef\xbb\xbf\r\n", "empty file"),
        (b"CONTENT,CLASS\n", "rows below the header"),
        (b"CONTENT,CLASS\nhunter2 \xe9,ham\n", "UTF-8"),
        ("CONTENT,CLASS\nhunter2,ham\n".encode("utf-16"), "UTF-16"),
        (b"WORDS,CLASS\nhunter2,ham\n", "WORDS, CLASS"),
        (b"CONTENT;KIND\nhunter2;ham\n", "KIND"),
        (b"CONTENT,CLASS,CLASS\nhunter2,ham,ham\n", "one column 'CLASS'"),
        (b"CONTENT,CLASS\nhunter2,ham\nhunter2,ham\n", "at least two labels"),
        (b"CONTENT,CLASS\nhunter2,ham\nhunter2, spam,eggs\n", "row 3"),
        (b'CONTENT,CLASS\n"hunter2,ham\nhunter2,spam\n', "does not close"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_file_that_cannot_be_used_is_refused(
    refused, private, command, output, content, words
):
    private.write_bytes(content)
    line = refused(*command)
    assert words in line
    assert private.name in line or "CLASS" in line
    assert not output.exists()


def test_a_file_that_is_not_there_or_is_none_is_refused(refused, command, output):
    for path in ("none.csv", "none", ".", "/"):
        refused("synthesize", path, *command[2:])
    assert not output.exists()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (["--epsilon", "0"], "epsilon=0"),
        (["--epsilon", "-1"], "epsilon=-1"),
        (["--epsilon", "nan"], "epsilon=nan"),
        (["--epsilon", "inf"], "epsilon=inf"),
        (["--epsilon", "much"], "--epsilon"),
        (["--delta", "0"], "delta=0"),
        (["--delta", "1"], "delta=1"),
        (["--delta", "2"], "delta=2"),
        (["--delta", "nan"], "delta=nan"),
        (["--delta", "1e-13"], "--labels"),
        (["--rows", "0"], "rows=0"),
        (["--rows", "-3"], "rows=-3"),
        (["--rows", "1.5"], "--rows"),
        (["--seed", "-1"], "seed=-1"),
        (["--discriminator-steps", "-1"], "discriminator_steps=-1"),
        (["--mode", "private"], "guaranteed, paper, seqgan"),
        (["--format", "xlsx"], "csv, tsv, jsonl, tfrecord"),
        (["--format", "jsonl"], "line 1"),
        (["--labels", ""], "separated by commas"),
        (["--labels", "ham,,spam"], "separated by commas"),
        (["--labels", "ham"], "at least two --labels"),
        (["--text", "TEXT"], "AUTHOR, CONTENT, CLASS"),
        (["--label", "Class"], "'CLASS'"),
        (["--label", "CONTENT"], "different columns"),
        (["--nonsense"], "--nonsense"),
        (["--config", "none.yaml"], "none.yaml"),
    ],
)
def test_a_wrong_option_is_refused(refused, command, output, change, words):
    assert words in refused(*command, *change)
    assert not output.exists()


def test_options_that_are_missing_are_named(refused, private):
    assert "--text" in refused("synthesize", private)
    assert "FILE" in refused("synthesize", *COLUMNS, "--output", "x")


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "tfrecord"])
def test_a_text_too_long_is_refused_before_work_and_only_its_place_is_named(
    refused, private, command, output, kind
):
    texts = [text for _, text, _ in rows(ham=3, spam=3)]
    texts[1] = f"{SECRET} " * 12_501
    data = TextDataset(
        texts,
        ["ham"] * 3 + ["spam"] * 3,
        text_column="CONTENT",
        label_column="CLASS",
    )
    path = private.with_suffix(f".{kind}")
    write_table(data, path)
    line = refused("synthesize", path, *command[2:])
    # The header of a table is its row 1.
    place = {"jsonl": "line 2", "tfrecord": "record 2"}.get(kind, "row 3")
    assert f"at most 100000 characters in column 'CONTENT' of {place} " in line
    assert str(len(texts[1])) not in line
    assert not output.exists()


def test_a_text_of_the_greatest_length_is_read(tiny, run, private, command):
    records = rows(ham=60, spam=60)
    records[0][1] = "song " * 20_000
    write(private, records)
    code, _, err = run(*command)
    assert code == 0, err


def test_a_file_of_empty_texts_is_refused(refused, private, command):
    write(private, [[SECRET, "", "ham"], [SECRET, "  ", "spam"]])
    assert "at least one row with a text" in refused(*command)


@pytest.mark.parametrize(
    ("delta", "warned"), [(1e-5, False), (1 / 400, False), (1 / 200, True)]
)
def test_a_delta_above_one_record_in_n_is_warned_of(capsys, delta, warned):
    data = TextDataset([SECRET] * 300, ["ham", "spam"] * 150)
    check_classes(data, None, delta, "guaranteed")
    err = capsys.readouterr().err
    assert err.count("\n") == warned
    assert ("1 / number of records" in err) == warned
    assert "300" not in err


def test_a_declared_label_without_records_is_told_and_not_refused(capsys):
    data = TextDataset([SECRET] * 5, ["ham"] * 5)
    check_classes(data, ("ham", "eggs"), 1e-5, "guaranteed")
    err = capsys.readouterr().err
    assert "'eggs'" in err
    assert SECRET not in err


def test_records_outside_the_declared_labels_are_counted(capsys):
    data = TextDataset([SECRET] * 5, ["ham", "spam", "eggs", "ham", "eggs"])
    check_classes(data, ("ham", "spam"), 1e-5, "guaranteed")
    err = capsys.readouterr().err
    assert "2 of 5 records" in err
    assert SECRET not in err


def test_refusing_brings_no_tensorflow_and_help_neither(private, output):
    code = (
        "import sys, tfpriv.cli.main as m; m.run(sys.argv[1:]);"
        "sys.exit('tensorflow' in sys.modules)"
    )
    wrong = [str(private), *COLUMNS, "--output", str(output), "--labels", "a"]
    for arguments in (["--help"], wrong):
        line = [sys.executable, "-c", code, "synthesize", *arguments]
        done = subprocess.run(line, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_help_takes_less_than_half_a_second():
    def spent(*arguments: str) -> float:
        """Processor time: the tests may share the machine."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *arguments], capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    # Half a second where Typer and Pydantic take 0.35 of it, else in proportion.
    limit = max(0.5, 0.5 / 0.35 * spent("-c", "import typer._adapters"))
    line = ["-m", "tfpriv.cli.main", "synthesize", "--help"]
    assert any(spent(*line) < limit for _ in range(5))


def test_help_names_options_and_defaults(run):
    code, out, _ = run("synthesize", "--help")
    assert code == 0
    for words in ("--text", "--labels", "--config", "--json", "[default: 8.0]"):
        assert words in out


# The output folder.


def test_an_output_that_is_a_file_or_lies_in_one_is_refused(
    refused, private, command, output
):
    kept = private.read_bytes()
    for path in (private, private / "run"):
        refused(*command, "--output", path)
    assert private.read_bytes() == kept


@pytest.mark.parametrize("name", ["notes.txt", "release/notes.txt", "internal/x"])
def test_an_output_with_anything_of_somebody_else_is_refused(
    refused, command, output, name
):
    (output / name).parent.mkdir(parents=True)
    (output / name).write_text("mine")
    assert name in refused(*command)
    assert files(output) == {name: b"mine"}


def test_an_output_that_cannot_be_written_is_refused(
    refused, command, output, monkeypatch
):
    output.mkdir()
    with monkeypatch.context() as patch:
        # Root may write anywhere, so modes say nothing here.
        patch.setattr(os, "access", lambda path, mode: not mode & os.W_OK)
        assert "can be written" in refused(*command)

    def failing(*args, **kwargs):
        raise OSError(30, "Read-only file system", "run")

    with monkeypatch.context() as patch:
        patch.setattr("pathlib.Path.mkdir", failing)
        assert "Read-only" in refused(*command)
    with monkeypatch.context() as patch:
        patch.setattr("tfpriv._files.tempfile.mkstemp", failing)
        assert "Read-only" in refused(*command)
    assert list((output / "release").iterdir()) == []


def test_too_little_disk_is_refused_before_work(refused, command, monkeypatch):
    usage = type("Usage", (), {"free": 5 * 2**20})
    monkeypatch.setattr("shutil.disk_usage", lambda path: usage)
    assert "received 5 MB" in refused(*command)


def test_a_second_run_on_one_output_is_refused_while_the_first_works(
    refused, command, output
):
    with RunFolder(output, []):
        assert "no other run uses" in refused(*command)


def test_another_run_is_refused_and_left_alone(tiny, run, refused, command, private):
    assert run(*command)[0] == 0
    output = private.parent / "run"
    before = files(output)
    for change, words in (
        (["--epsilon", "4"], "epsilon=8.0"),
        (["--delta", "1e-6"], "delta=1e-05"),
        (["--labels", "ham,spam"], "labels=None"),
        (["--discriminator-steps", "3"], "discriminator_steps=0"),
        (["--seed", "1"], "seed=0"),
        (["--mode", "paper"], "mode=guaranteed"),
    ):
        assert words in refused(*command, *change)
    write(private, rows(ham=63, spam=63))
    assert "the file changed" in refused(*command)
    assert files(output) == before


def test_a_run_whose_ledger_is_lost_or_edited_is_refused(
    tiny, run, refused, command, output
):
    assert run(*command)[0] == 0
    path = output / "internal" / "ledger.jsonl"
    kept = path.read_bytes()
    path.unlink()
    (output / "internal" / "ledger.jsonl.head").unlink()
    assert "what it spent is not known" in refused(*command)
    path.write_bytes(kept.replace(b'"tokens"', b'"tokeno"'))
    assert "privacy ledger" in refused(*command)


# What comes out.


def test_a_release_holds_what_it_may_and_nothing_else(tiny, run, command, output):
    code, out, err = run(*command)
    assert code == 0, err
    assert SECRET not in out + err
    release, internal = output / "release", output / "internal"
    assert {path.name for path in release.iterdir()} == RELEASE
    for path in release.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o644
        assert str(path) in out
        text = path.read_text(encoding="utf-8")
        for private in (SECRET, str(output), str(output.parent), socket.gethostname()):
            assert private not in text
        assert not re.search(r"/(home|root|tmp|work|Users)/", text)
        # 63 and 64 rows of the classes, 127 in all.
        assert not {"63", "64", "127"} & set(re.findall(r"[\d.]+", text))
    for path in (internal, *internal.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)
    statement = json.loads((release / "privacy.json").read_text())
    assert 0 < statement["epsilon"] <= 8
    assert statement["delta"] == 1e-5
    assert [event["name"] for event in statement["events"]] == [
        "label names",
        "tokens",
        "lengths",
        "pairs",
    ]
    assert "epsilon = 8" in (release / "statement.txt").read_text()


def test_the_synthetic_file_has_the_two_columns_and_no_formula(
    tiny, run, private, output
):
    records = [
        [f"= + - @ {text}", label.replace("ham", "=ham"), author]
        for author, text, label in rows(ham=63, spam=64)
    ]
    write(private, records, ["Der Text, roh", "Klasse \u20ac", "AUTHOR"])
    columns = ["--text", "Der Text, roh", "--label", "Klasse \u20ac"]
    arguments = ["synthesize", private, *columns, "--output", output, *NO_GAN]
    code, _, err = run(*arguments, "--rows", "40")
    assert code == 0, err
    header, *lines = synthetic(output)
    assert header == ["Der Text, roh", "Klasse \u20ac"]
    assert len(lines) == 40
    assert {label for _, label in lines} == {"'=ham", "spam"}
    for cell in (cell for line in lines for cell in line):
        assert not re.match(r"\s*[=+\-@\t\r\n]", cell)


@pytest.mark.parametrize(
    ("change", "warning"),
    [
        (lambda table: table.replace(b"\n", b"\r"), ""),
        (lambda table: b"\xef\xbb\xbf" + table.replace(b"\n", b"\r\n"), ""),
        (lambda table: table.replace(b" good ", b" go\0od "), "NUL"),
        (lambda table: table.replace(b"hunter2", b'hunter2, ""said""\r\n\r'), ""),
        (lambda table: table.replace(b"song", b"song " * 2000), ""),
        (lambda table: table + b'\n"",ham\n" ",spam\n', "2 of 122 rows"),
    ],
    ids=["CR", "BOM, CRLF", "NUL", "quoted", "10,000 characters", "empty texts"],
)
def test_files_of_the_real_world_work(tiny, run, private, command, change, warning):
    lines = [f'"{text}",{label}' for _, text, label in rows(ham=60, spam=60)]
    private.write_bytes(change("\n".join(["CONTENT,CLASS", *lines, ""]).encode()))
    code, out, err = run(*command, "--json")
    assert code == 0, err
    assert SECRET not in out + err
    assert set(json.loads(out)["labels"]) == {"ham", "spam"}
    assert err.count("tfpriv: warning: ") == bool(warning)
    assert warning in err


@pytest.mark.parametrize("kind", ["tsv", "jsonl", "tfrecord"])
def test_every_format_works(tiny, run, private, command, output, kind):
    records = rows(ham=60, spam=60)
    data = TextDataset(
        [text for _, text, _ in records],
        [label for _, _, label in records],
        text_column="CONTENT",
        label_column="CLASS",
    )
    path = private.with_suffix(f".{kind}")
    write_table(data, path)
    code, _, err = run("synthesize", path, *command[2:])
    assert code == 0, err
    assert synthetic(output)[0] == ["CONTENT", "CLASS"]


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["paper", "seqgan"])
def test_the_published_modes_say_that_they_guarantee_nothing(
    tiny, run, command, output, monkeypatch, mode
):
    from tfpriv.seqgan.published import PublishedSettings

    short = functools.partial(
        PublishedSettings,
        max_length=4,
        vocabulary_size=10,
        embedding_dim=3,
        units=3,
        mle_epochs=1,
        discriminator_embedding_dim=3,
        discriminator_widths=(1,),
        discriminator_filters=2,
        discriminator_steps=1,
        rounds=1,
        d_steps=1,
        rollouts=1,
    )
    monkeypatch.setattr("tfpriv.seqgan.dp_seqgan.PublishedSettings", short)
    monkeypatch.setattr("tfpriv.seqgan.seqgan.has_collapsed", lambda *_, **__: True)
    code, out, err = run(*command, "--mode", mode, "--rows", "4")
    assert code == 0, err
    assert "NO guarantee" in err
    assert err.count("(mode collapse)") == 2
    assert "Guarantee: none" in out
    statement = json.loads((output / "release" / "privacy.json").read_text())
    assert statement["epsilon"] is None
    assert statement["epsilon_finite"] is False
    code, out, err = run(*command, "--mode", mode, "--rows", "4", "--json")
    assert code == 0, err
    assert json.loads(out)["epsilon"] is None
    assert set(json.loads(out)["collapsed"].values()) == {1}
    assert json.loads(out)["finished_before"] is True


@pytest.mark.parametrize(
    "names", [("not spam", " spam "), ("0", "1"), ("01", "1.0"), ("-1", "1")]
)
def test_labels_with_blanks_or_numbers_stay_as_they_are(
    tiny, run, private, command, output, names
):
    records = [
        [author, text, names[label == "spam"]]
        for author, text, label in rows(ham=60, spam=60)
    ]
    write(private, records)
    assert run(*command)[0] == 0
    _, *lines = synthetic(output)
    assert {label for _, label in lines} == {name.strip() for name in names}


def test_a_class_of_three_rows_is_left_out_unless_it_is_declared(
    tiny, run, private, command, output
):
    write(private, rows(ham=60, spam=60, rare=3))
    code, out, err = run(*command, "--json")
    assert code == 0, err
    assert set(json.loads(out)["labels"]) == {"ham", "spam"}
    for path in (output / "release").iterdir():
        assert "rare" not in path.read_text()
    declared = ["--labels", "ham, spam,rare", "--output", output.with_name("b")]
    code, out, err = run(*command, *declared, "--json")
    assert code == 0, err
    assert json.loads(out)["epsilon"] <= 8


def test_no_label_that_is_frequent_enough_is_a_failure_that_tells_the_mend(
    tiny, run, private, command, output
):
    write(private, rows(ham=2, spam=2))
    for _ in range(2):
        code, out, err = run(*command)
        assert (code, out) == (1, "")
        assert "Declare the label names" in err.splitlines()[-1]
    assert [charge["name"] for charge in ledger(output)] == ["label names"]


def test_json_alone_is_on_stdout(tiny, run, command, output):
    code, out, err = run(*command, "--json", "--rows", "7")
    assert code == 0
    result = json.loads(out)
    assert result["rows"] == sum(result["labels"].values()) == 7
    assert result["text_column"] == "CONTENT"
    assert result["finished_before"] is False
    assert result["synthetic"] == str(output / "release" / "synthetic.csv")
    assert "Plan" in err


def test_a_config_file_gives_defaults_that_options_override(
    tiny, run, refused, private, output
):
    config = private.with_name("run.yaml")
    values = {"text": "CONTENT", "label": "CLASS", "epsilon": 4, "rows": 3}
    values |= {"output": str(output), "discriminator-steps": 0, "json": True}
    config.write_text(yaml.safe_dump(values))
    code, out, err = run("synthesize", private, "--config", config, "--rows", "5")
    assert code == 0, err
    result = json.loads(out)
    assert result["rows"] == 5
    assert 3.9 < result["epsilon"] <= 4
    config.write_text(yaml.safe_dump(values | {"epsilon": [1, 2]}))
    refused("synthesize", private, "--config", config)
    config.write_text(yaml.safe_dump(values | {"epsilom": 4}))
    assert "epsilom" in refused("synthesize", private, "--config", config)


@pytest.mark.parametrize("epsilon", ["0.001", "1e-9", "100000"])
def test_extreme_budgets_run_and_are_kept(tiny, run, command, output, epsilon):
    declared = ["--labels", "ham,spam", "--rows", "4"]
    code, out, err = run(*command, *declared, "--epsilon", epsilon, "--json")
    assert code == 0, err
    assert json.loads(out)["epsilon"] <= float(epsilon)
    assert len(synthetic(output)) == 5


# Going on.


def test_a_finished_run_given_again_charges_nothing_and_leaves_its_release(
    tiny, run, command, output
):
    assert run(*command)[0] == 0
    before = files(output)
    code, _, err = run(*command)
    assert code == 0
    assert "finished already: nothing more was charged" in err
    after = files(output)
    kept = [f"release/{name}" for name in RELEASE] + ["internal/ledger.jsonl"]
    assert {name: after[name] for name in kept} == {name: before[name] for name in kept}
    code, out, _ = run(*command, "--rows", "300", "--json")
    assert json.loads(out)["finished_before"] is True
    assert len(synthetic(output)) == 301
    assert files(output)["internal/ledger.jsonl"] == before["internal/ledger.jsonl"]


@pytest.mark.parametrize("step", ["token_presence", "length_histogram"])
def test_ctrl_c_tells_how_to_go_on_and_what_was_lost_is_paid_again(
    tiny, run, command, output, monkeypatch, step
):
    def interrupt(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(f"tfpriv.seqgan.guaranteed.{step}", interrupt)
        code, out, err = run(*command)
    assert (code, out) == (130, "")
    assert err.count("tfpriv: error:") == 1
    assert "interrupted. Run the same command again" in err.splitlines()[-1]
    assert "going on" not in err
    assert list((output / "release").iterdir()) == []
    charged = ledger(output)
    code, out, err = run(*command, "--json")
    assert code == 0, err
    assert f"going on from step {len(charged) + 1}: " in err
    assert json.loads(out)["finished_before"] is False
    assert json.loads(out)["epsilon"] <= 8
    assert ledger(output)[: len(charged)] == charged
    names = [charge["name"] for charge in ledger(output)]
    assert names.count(charged[-1]["name"]) == 2


def test_a_disk_that_fills_up_during_work_loses_nothing(
    tiny, run, command, output, full_disk, monkeypatch
):
    ignored = []
    monkeypatch.setattr(sys, "unraisablehook", ignored.append)
    full_disk.append("tokens.npz")
    code, out, err = run(*command)
    assert (code, out) == (1, "")
    gc.collect()
    assert ignored == []
    last = err.splitlines()[-1]
    assert err.count("tfpriv: error:") == 1
    assert "full disk" in last
    assert "same command again" in last
    assert list((output / "release").iterdir()) == []
    assert not [name for name in files(output) if "tokens" in name]
    full_disk.clear()
    code, out, err = run(*command, "--json")
    assert code == 0, err
    assert json.loads(out)["epsilon"] <= 8
    names = [charge["name"] for charge in ledger(output)]
    assert names.count("tokens") == 2


def test_a_release_that_does_not_fit_leaves_the_earlier_one(
    tiny, run, command, output, full_disk
):
    assert run(*command, "--rows", "5")[0] == 0
    before = files(output / "release")
    for name in ("statement.txt", "privacy.json", "synthetic.csv"):
        full_disk[:] = [name]
        assert run(*command, "--rows", "6")[0] == 1
        assert files(output / "release") == before
    assert not list(output.glob("internal/staged*"))


def test_a_ledger_that_cannot_be_written_stops_the_run_before_the_records(
    tiny, run, command, output, monkeypatch
):
    def full(descriptor, data):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("tfpriv.accounting.ledger.os.write", full)
        assert run(*command)[0] == 1
    assert ledger(output) == []
    assert run(*command)[0] == 0


def test_a_failure_after_work_began_is_code_1_and_quotes_no_record(
    tiny, run, command, output, monkeypatch
):
    def fail(rows, *args):
        raise ValueError(f"cannot count {SECRET}")

    monkeypatch.setattr("tfpriv.seqgan.guaranteed.token_presence", fail)
    code, out, err = run(*command)
    assert (code, out) == (1, "")
    assert SECRET not in err
    assert "unexpected ValueError" in err.splitlines()[-1]


CHILD = """
import dataclasses, functools, os, signal, sys
from tfpriv.cli import main
from tfpriv.seqgan import dp_seqgan, guaranteed, seed_model
from tfpriv.seqgan.class_gan import DPTrainer
from tfpriv.text import LanguagePrior

prior = LanguagePrior.load(sys.argv[1])
guaranteed.LanguagePrior.load = lambda: prior
guaranteed._SEEDS = guaranteed._JUDGED = 64
seed_model.NUM_PAIR_TOKENS = 6
dp_seqgan.GANSettings = functools.partial(
    dp_seqgan.GANSettings, max_length=6, embedding_dim=8, units=8, mle_epochs=1,
    discriminator_filters=4, warm_up_steps=2, rounds=3, g_steps=1, rollouts=1,
    batch_size=16,
)
left = int(sys.argv[2])
step = DPTrainer.step

def counted(self, *args):
    global left
    result = step(self, *args)
    left -= 1
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
    return result

DPTrainer.step = counted
sys.exit(main.run(sys.argv[3:]))
"""


@pytest.mark.slow
def test_a_killed_run_goes_on_within_its_budget(small_prior, tmp_path, private, output):
    prior = tmp_path / "prior.npz"
    small_prior.save(prior)

    def start(kill_after: int) -> subprocess.CompletedProcess:
        line = [sys.executable, "-c", CHILD, prior, kill_after, "synthesize", private]
        line += [*COLUMNS, "--output", output, "--discriminator-steps", "6", "--json"]
        return subprocess.run(
            [str(part) for part in line], capture_output=True, text=True
        )

    # Two steps a round: the kill falls on the second step of the second round.
    assert start(4).returncode == -signal.SIGKILL
    before = ledger(output)
    steps = [charge for charge in before if charge["name"] == "discriminator"]
    assert len(steps) == 4
    assert list((output / "release").iterdir()) == []

    done = start(0)
    assert done.returncode == 0, done.stderr
    assert SECRET not in done.stdout + done.stderr
    assert f"going on from step {len(before) + 1}: " in done.stderr
    assert json.loads(done.stdout)["finished_before"] is False
    after = ledger(output)
    assert after[: len(before)] == before
    taken = {"ham": 0, "spam": 0}
    for charge in after:
        if charge["name"] == "discriminator":
            taken[charge["part"]] += 1
    # Steps 3 and 4 were taken twice, so the budget ends before steps 5 and 6.
    assert taken == {"ham": 6, "spam": 6}
    statement = json.loads((output / "release" / "privacy.json").read_text())
    assert 7.5 < statement["epsilon"] <= 8
    counts = {
        event["part"]: event["event"]["count"]
        for event in statement["events"]
        if event["name"] == "discriminator"
    }
    assert counts == taken

    kept = files(output / "release")
    done = start(0)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["finished_before"] is True
    assert ledger(output) == after
    assert files(output / "release") == kept
