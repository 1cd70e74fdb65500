from __future__ import annotations

import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys

import pytest
import yaml

from tests.cli.conftest import (
    QUICK,
    SECRET,
    TASK,
    gendered,
    rows,
    write,
    write_gendered,
)
from tfpriv._errors import InputError
from tfpriv.cli._representation_settings import RepresentationSettings
from tfpriv.cli.run_folder import RunFolder

RELEASE = {"privacy.json", "statement.txt"}


@pytest.fixture
def private(tmp_path):
    return write_gendered(tmp_path / "private.csv")


@pytest.fixture
def output(tmp_path):
    return tmp_path / "run"


@pytest.fixture
def command(private, output):
    return ["rmat", "train", private, *TASK, "--output", output, *QUICK]


def files(folder) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


# Found before work: code 2, one line, nothing written.


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (["--epsilon", "0"], "epsilon=0"),
        (["--epsilon", "nan"], "epsilon=nan"),
        (["--epsilon", "-1"], "epsilon=-1"),
        (["--nominal-epsilon", "inf"], "nominal_epsilon=inf"),
        (["--epsilon", "1", "--nominal-epsilon", "1"], "received both"),
        (["--nominal-epsilon", "1", "--scale", "code"], "--epsilon with --scale code"),
        (["--mask-rate", "1"], "below 1"),
        (["--mask-rate", "-0.1"], "mask_rate=-0.1"),
        (["--mask-rate", "nan"], "mask_rate=nan"),
        (["--mask-mode", "some"], "exact, bernoulli"),
        (["--scale", "l2"], "code, l1, min_max"),
        (["--dimension", "0"], "dimension=0"),
        (["--method", "bert"], "rmat, dpnr, ads, cape, none"),
        (["--method", "ads", "--epsilon", "4"], "no --epsilon with --method ads"),
        (["--method", "none", "--adversary-weight", "1"], "--adversary-weight"),
        (["--method", "dpnr", "--mask-mode", "exact"], "--mask-mode"),
        (["--method", "cape", "--dimension", "8"], "--dimension"),
        (["--adversary-weight", "-1"], "adversary_weight=-1"),
        (["--adversary-steps", "0"], "adversary_steps=0"),
        (["--epochs", "0"], "epochs=0"),
        (["--batch-size", "0"], "batch_size=0"),
        (["--learning-rate", "nan"], "learning_rate=nan"),
        (["--max-length", "2"], "max_length=2"),
        (["--seed", "-1"], "seed=-1"),
        (["--format", "xlsx"], "csv, tsv, jsonl, tfrecord"),
        (["--text", "WORDS"], "CONTENT, MOOD, GENDER"),
        (["--private", "SEX"], "CONTENT, MOOD, GENDER"),
        (["--private", "MOOD"], "different columns for --label and --private"),
        (["--private", "CONTENT"], "different columns for --text and --private"),
        (["--nonsense"], "--nonsense"),
        (["--config", "none.yaml"], "none.yaml"),
        (["--labels", "good"], "two --labels"),
        (["--labels", "good,"], "--labels"),
        (["--labels", "some,other"], "received 0"),
        (["--label", "vader", "--labels", "good,bad"], "--label vader"),
    ],
)
def test_a_wrong_option_is_refused(refused, command, output, change, words):
    assert words in refused(*command, *change)
    assert not output.exists()


def test_a_label_that_is_the_same_everywhere_is_refused(
    refused, command, private, output
):
    records = gendered()
    for column, name in ((1, "MOOD"), (2, "GENDER")):
        constant = [[*row[:column], "x", *row[column + 1 :]] for row in records]
        write_gendered(private, constant)
        assert f"'{name}'" in refused(*command)
    texts = [[f"the table {i}", "x", "fm"[i % 2]] for i in range(40)]
    write_gendered(private, texts)
    assert "'vader'" in refused(*command, "--label", "vader")
    assert not output.exists()


def test_what_was_left_out_is_not_told_of_what_is_refused(
    refused, command, private, output
):
    """One line: `refused` counts. Of a run that begins it is told, see test_common."""
    few = [["a", "good", "male"], ["b", "bad", "female"], ["c", "", "male"]]
    write_gendered(private, few)
    refused(*command)
    assert not output.exists()


def test_too_few_records_are_refused_and_leave_nothing(
    refused, command, private, output
):
    write_gendered(private, [gendered()[0], gendered()[3]] * 5)
    assert "distinct texts" in refused(*command)
    assert not output.exists()


def test_a_file_that_cannot_be_used_is_refused(refused, command, private, output):
    refused("rmat", "train", "none.csv", *command[3:])
    refused("rmat", "train", ".", *command[3:])
    write_gendered(private, [["a", "good", ""], ["b", "bad", "male"]])
    assert "row 2" in refused(*command)
    private.write_bytes(b"CONTENT,MOOD,GENDER\nhunter2 \xe9,good,male\n")
    assert "UTF-8" in refused(*command)
    private.write_bytes(b"")
    assert "empty file" in refused(*command)
    assert not output.exists()


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        ("config.json", "config.json"),
        ("model.weights.h5", "model.weights.h5"),
        ("assets/tokenizer/vocabulary.txt", "vocabulary"),
        (None, "none there"),
    ],
)
def test_a_preset_that_lacks_a_file_is_refused_and_leaves_nothing(
    refused, command, output, bert, tmp_path, missing, words
):
    preset = tmp_path / "preset"
    if missing is not None:
        shutil.copytree(bert, preset)
        (preset / missing).unlink()
    assert words in refused(*command, "--preset", preset)
    assert not output.exists()


def test_refusing_brings_no_tensorflow(private, output):
    code = (
        "import sys, tfpriv.cli.main as m; m.run(sys.argv[1:]);"
        "sys.exit('tensorflow' in sys.modules or 'keras' in sys.modules)"
    )
    (output / "release").mkdir(parents=True)
    (output / "release" / "notes").write_text("mine")
    line = [sys.executable, "-c", code, "rmat", "train", str(private), *TASK]
    line += ["--output", str(output)]
    for arguments in (line, [*line, "--epsilon", "0"]):
        done = subprocess.run(arguments, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_a_folder_of_something_else_is_refused(refused, command, output):
    with RunFolder(output, []):
        assert "no other run uses" in refused(*command)
    config = output / "internal" / "config.json"
    config.write_text('{"mode": "guaranteed", "epsilon": 8.0}')
    assert "a run of another" in refused(*command)


def test_too_little_disk_is_refused_before_work(refused, command, monkeypatch, output):
    usage = type("Usage", (), {"free": 5 * 2**20})
    monkeypatch.setattr("shutil.disk_usage", lambda path: usage)
    assert "received 5 MB" in refused(*command)


# Settings.


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({}, {"epsilon": 4.0, "scale": "code", "mask_rate": 0.1, "mask_mode": "exact"}),
        ({"nominal_epsilon": 1.0}, {"epsilon": None, "scale": "min_max"}),
        ({"scale": "l1"}, {"epsilon": 4.0, "scale": "l1"}),
        ({"method": "dpnr"}, {"epsilon": None, "nominal_epsilon": 1.0}),
        ({"method": "dpnr", "epsilon": 2.0}, {"nominal_epsilon": None}),
        ({"method": "cape"}, {"scale": "min_max", "adversary_weight": 1.0}),
        ({"method": "ads"}, {"epsilon": None, "scale": None, "mask_rate": None}),
        ({"method": "none"}, {"adversary_weight": None, "scale": None}),
        ({"adversary_weight": 0.0}, {"adversary_weight": 0.0}),
    ],
)
def test_defaults_follow_the_method(given, wanted):
    settings = RepresentationSettings(**given).complete()
    for name, value in wanted.items():
        assert getattr(settings, name) == value
    # A run that goes on completes what is complete.
    assert settings.complete() == settings


@pytest.mark.parametrize(
    ("given", "epsilon"),
    [
        ({}, 4.0),
        ({"scale": "l1", "epsilon": 2.0, "dimension": 3}, 2.0),
        ({"scale": "min_max", "epsilon": 1.0, "mask_mode": "bernoulli"}, 1.0),
        ({"method": "dpnr", "dimension": 4}, 4.0),
        ({"method": "cape", "epsilon": 3.0}, 3.0),
        ({"method": "ads", "dimension": 5}, None),
        ({"method": "none"}, None),
    ],
)
def test_every_method_is_built_as_it_was_set(bert, given, epsilon):
    settings = RepresentationSettings(**given, preset=str(bert)).complete()
    model = settings.build(3, 2)
    assert model.compiled
    certificate = model.certificate()
    if epsilon is None:
        assert certificate is None
        return
    assert certificate.record_epsilon == pytest.approx(epsilon)
    if "dimension" in given:
        assert model.design.dimension == given["dimension"]


# Labels: names of the task are public where they are declared.


def _columns(file, **given):
    from tfpriv.cli._representation_run import Columns, columns_of, new_config

    columns = Columns("CONTENT", "MOOD", "GENDER", **given)
    data = columns.read(file)
    config = new_config(data, columns, {}, file)
    assert columns_of(json.loads(json.dumps(config))) == columns
    return columns, data, config


def test_declared_labels_are_taken_and_others_left_out(private, capsys):
    columns, data, config = _columns(private)
    assert columns.declared is None
    assert config["label_names"] == ["bad", "good"]
    columns, data, config = _columns(private, labels=("good", "bad", "ugly"))
    assert columns.declared == ("good", "bad", "ugly")
    assert config["label_names"] == ["good", "bad", "ugly"]
    assert len(data) == 160
    assert "no record has 1 of the 3 labels" in capsys.readouterr().err
    records = [*gendered(), [f"{SECRET} odd", f"{SECRET}", "male"]]
    write_gendered(private, records)
    _, data, config = _columns(private, labels=("good", "bad"))
    assert len(data) == 160
    err = capsys.readouterr().err
    assert "1 of 161 records" in err
    assert SECRET not in err


def test_the_sentiments_of_vader_are_public(private):
    from tfpriv.cli._representation_run import Columns

    columns = Columns("CONTENT", "vader", "GENDER")
    assert columns.declared == ("negative", "neutral", "positive")


def test_the_release_says_whether_the_number_of_labels_is_covered(trained):
    output, _ = trained
    statement = json.loads((output / "release" / "privacy.json").read_text())
    assert statement["certificate"]["parameters"]["dimension"] == 2
    assert any("number of labels" in line for line in statement["not_covered"])
    assert statement["public"] == []


def test_a_model_of_declared_labels_says_so(bert):
    settings = RepresentationSettings(preset=str(bert)).complete()
    model = settings.build(2, 2, public_labels=True)
    model.trained_steps.assign(1)
    statement = model.privacy_statement()
    assert any("number of labels" in line for line in statement.public)
    assert statement.training_facts == ()


# What comes out.


def test_release_holds_the_statement_and_no_private_word(trained):
    output, _ = trained
    release, internal = output / "release", output / "internal"
    assert {path.name for path in release.iterdir()} == RELEASE
    for path in release.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o644
        text = path.read_text(encoding="utf-8")
        for private in (SECRET, "CONTENT", "GENDER", "female", str(output)):
            assert private not in text
        assert not {"160"} & set(re.findall(r"[\d.]+", text))
    for path in (internal, *internal.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)
    statement = json.loads((release / "privacy.json").read_text())
    assert statement["epsilon"] == pytest.approx(4)
    assert statement["encoder_trained_on_private_text"] is True
    assert statement["releases"] == 1
    names = {"model.keras", "config.json", "history.json", "evaluation.json"}
    assert names <= {path.name for path in internal.iterdir()}
    assert not list(internal.glob("checkpoint-*"))
    history = json.loads((internal / "history.json").read_text())
    assert [entry["epoch"] for entry in history] == [1, 2]
    assert {"task_f1", "val_task_f1", "private_f1"} <= set(history[0])
    evaluation = json.loads((internal / "evaluation.json").read_text())
    assert 0 <= evaluation["task_macro_f1"] <= 1
    assert 0 < evaluation["constant_macro_f1"] <= 0.5


def test_a_finished_run_given_again_trains_nothing(trained, run, refused, bert):
    output, file = trained
    command = ["rmat", "train", file, *TASK, "--output", output, *QUICK]
    command += ["--preset", bert]
    before = files(output)
    code, out, err = run(*command)
    assert code == 0, err
    assert "finished already" in err
    for words in ("macro-F1", "Certified: epsilon 4", "Next: tfpriv rmat attack"):
        assert words in out
    assert str(output / "release" / "privacy.json") in out
    assert SECRET not in out + err
    code, out, _ = run(*command, "--json")
    assert json.loads(out)["finished_before"] is True
    for change, words in (
        (["--epsilon", "2"], "epsilon=4"),
        (["--method", "ads"], "method=rmat"),
        (["--label", "vader"], "label=MOOD"),
        (["--epochs", "3"], "epochs=2"),
        (["--mask-rate", "0"], "mask_rate=0.1"),
    ):
        assert words in refused(*command, *change)
    assert files(output) == before


def test_other_records_and_other_commands_are_refused(trained, refused, tmp_path):
    output, _ = trained
    before = files(output)
    other = write_gendered(tmp_path / "other.csv", gendered(150))
    command = ["rmat", "train", other, *TASK, "--output", output]
    refused(*command, *QUICK)
    spam = write(tmp_path / "spam.csv", rows(ham=20, spam=20))
    columns = ["--text", "CONTENT", "--label", "CLASS"]
    line = refused("synthesize", spam, *columns, "--output", output)
    assert "a run of another" in line
    assert files(output) == before


@pytest.mark.slow
def test_curves_hold_numbers_alone_and_ctrl_c_and_a_full_disk_lose_nothing(
    run, command, output, bert, monkeypatch, tmp_path
):
    from tfpriv.cli import _representation_training as training

    values = yaml.safe_dump({"tensorboard": True, "preset": str(bert), "epochs": 3})
    (tmp_path / "run.yaml").write_text(values)
    command = command[: command.index("--epochs")]
    command += ["--config", tmp_path / "run.yaml"]
    save = training._save

    def interrupted(model, internal, done):
        save(model, internal, done)
        if done == 1:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(training, "_save", interrupted)
        code, out, err = run(*command)
    assert (code, out) == (130, "")
    assert "same command again" in err.splitlines()[-1]
    assert list((output / "release").iterdir()) == []

    def full(model, folder):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(training, "save_model", full)
        code, out, err = run(*command)
    assert (code, out) == (1, "")
    assert "going on from epoch 2 of 3" in err
    assert "epoch 1 of 3:" not in err
    assert "full disk" in err.splitlines()[-1]
    assert list((output / "release").iterdir()) == []

    code, out, err = run(*command, "--json")
    assert code == 0, err
    assert "epoch 3 of 3:" not in err  # it was trained already
    assert json.loads(out)["finished_before"] is False
    history = json.loads((output / "internal" / "history.json").read_text())
    assert [entry["epoch"] for entry in history] == [1, 2, 3]
    curves = [p for p in output.rglob("*tfevents*") if p.is_file()]
    assert curves
    for path in curves:
        content = path.read_bytes()
        for word in (SECRET, "awful", "female", "unbeliev"):
            assert word.encode() not in content
    assert {p.parent.name for p in curves} == {"train", "validation"}


def test_curves_are_scalars_that_can_be_read_back(tmp_path):
    import tensorflow as tf

    from tfpriv.cli._representation_training import write_scalars

    write_scalars(tmp_path, 3, {"task_f1": 0.5, "val_task_f1": 0.25})
    for part, value in (("train", 0.5), ("validation", 0.25)):
        [path] = (tmp_path / part).iterdir()
        events = list(tf.compat.v1.train.summary_iterator(str(path)))
        [summary] = [value for event in events for value in event.summary.value]
        assert summary.tag == "epoch_task_f1"
        assert tf.make_ndarray(summary.tensor) == value
        assert summary.metadata.plugin_data.plugin_name == "scalars"
        assert events[-1].step == 3


def test_a_half_written_checkpoint_is_not_taken_for_one(tmp_path):
    from tfpriv.cli._representation_training import _checkpoints, _restore

    (tmp_path / ".checkpoint-2.weights.h5").write_bytes(b"half")
    assert _checkpoints(tmp_path) == {}
    assert _restore(None, tmp_path) == 0
    (tmp_path / "checkpoint-1.weights.h5").write_bytes(b"damaged")

    class Model:
        def __init__(self, *error):
            self.error = OSError(*error)

        def load_weights(self, path):
            raise self.error

    with pytest.raises(InputError, match="damaged"):
        _restore(Model("Unable to open file"), tmp_path)
    with pytest.raises(OSError, match="full disk"):
        _restore(Model(28, "No space left on device"), tmp_path)


CHILD = """
import os, signal, sys
from tfpriv.cli import main, _representation_training as training

left = int(sys.argv[1])
save = training._save

def counted(model, internal, done):
    global left
    left -= 1
    if not left:
        model.save_weights(internal / f".checkpoint-{done}.weights.h5")
        os.kill(os.getpid(), signal.SIGKILL)
    save(model, internal, done)

training._save = counted
sys.exit(main.run(sys.argv[2:]))
"""


@pytest.mark.slow
def test_a_killed_run_goes_on_from_its_last_whole_epoch(command, output, bert):
    def start(kill_at: int) -> subprocess.CompletedProcess:
        line = [sys.executable, "-c", CHILD, kill_at, *command, "--preset", bert]
        return subprocess.run(
            [str(part) for part in [*line, "--epochs", "3", "--json"]],
            capture_output=True,
            text=True,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        )

    # While the second epoch's checkpoint is half written.
    assert start(2).returncode == -signal.SIGKILL
    assert list((output / "release").iterdir()) == []
    done = start(0)
    assert done.returncode == 0, done.stderr
    assert SECRET not in done.stdout + done.stderr
    assert "going on from epoch 2 of 3" in done.stderr
    history = json.loads((output / "internal" / "history.json").read_text())
    assert [entry["epoch"] for entry in history] == [1, 2, 3]
    assert not list((output / "internal").glob(".*"))
    assert {path.name for path in (output / "release").iterdir()} == RELEASE


@pytest.mark.slow
@pytest.mark.parametrize("method", ["dpnr", "ads", "cape", "none"])
def test_every_method_runs_from_records_to_representations(
    run, command, output, bert, method, tmp_path
):
    given = ["--method", method, "--preset", bert, "--label", "vader", "--epochs", "1"]
    code, out, err = run(*command, *given, "--json")
    assert code == 0, err
    result = json.loads(out)
    assert (result["epsilon"] is None) == (method in ("ads", "none"))
    (tmp_path / "texts.txt").write_text("she is good\n")
    code, out, err = run("encode", output, tmp_path / "texts.txt")
    assert code == 0, err
    assert ("NO guarantee" in err) == (method in ("ads", "none"))
    assert len(json.loads(out)) in (16, 256)


def test_a_class_that_only_the_test_part_has_is_told_and_scored(capsys):
    from tfpriv.cli import _representation_run as shared
    from tfpriv.datasets import Splits, TextDataset

    def part(labels):
        texts = [f"{SECRET} {label}" for label in labels]
        return TextDataset(texts, list(labels), private=list(labels))

    parts = Splits(part("aabb"), part("ab"), part("abc"))
    shared.warn_of_unseen(part("abc"), parts)
    err = capsys.readouterr().err
    assert err.count("1 of 3") == 2
    assert SECRET not in err
    config = {"label_names": list("abc"), "private_names": list("abc")}
    assert shared.targets(parts.test, config)["label"].tolist() == [0, 1, 2]

    from tfpriv.cli._representation_training import evaluate

    class Model:
        def predict(self, texts, verbose):
            import numpy as np

            return np.eye(3)[[0, 1, 0]]

    found = evaluate(Model(), parts, config)
    assert found["task_macro_f1"] == pytest.approx((2 / 3 + 1 + 0) / 3)
