from __future__ import annotations

import json
import os
import stat

import numpy as np
import pytest

from tests.cli.conftest import SECRET
from tests.cli.test_rmat_train import files

TEXTS = [
    f"she is good {SECRET}",
    "",
    "  \t ",
    "love",
    "\U0001f600\U0001f600",
    "[MASK] [SEP] [PAD] he",
    "word " * 10_000,
]


@pytest.fixture
def texts(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    return path


def test_a_representation_a_line_and_what_it_costs_on_stderr(trained, run, texts):
    before = files(trained[0])
    code, out, err = run("encode", trained[0], texts)
    assert code == 0, err
    vectors = [json.loads(line) for line in out.splitlines()]
    assert len(vectors) == len(TEXTS)
    # The default is a code of two symbols, sent through randomised response.
    assert all(sorted(vector) == [0.0, 1.0] for vector in vectors)
    assert err.count("\n") == 1
    assert "epsilon 4" in err
    assert "7 texts" in err
    assert "training data is not charged" in err
    assert SECRET not in out + err
    assert files(trained[0]) == before


def test_json_is_one_object_with_the_statement(preloaded, trained, run, texts):
    code, out, err = run("encode", trained[0], texts, "--releases", "3", "--json")
    assert code == 0, err
    result = json.loads(out)
    assert np.shape(result["representations"]) == (len(TEXTS), 3, 2)
    assert result["statement"]["epsilon"] == pytest.approx(12)
    assert result["statement"]["releases"] == result["releases"] == 3
    assert "12 together" in err


@pytest.mark.parametrize("kind", ["jsonl", "npy", "tfrecord"])
@pytest.mark.parametrize("releases", [1, 2])
def test_files_hold_what_was_released_and_their_statement(
    preloaded, trained, run, texts, tmp_path, kind, releases
):
    path = tmp_path / f"out.{kind}"
    line = ["encode", trained[0], texts, "--output", path, "--releases", releases]
    code, out, err = run(*line)
    assert code == 0, err
    shape = (len(TEXTS), 2) if releases == 1 else (len(TEXTS), releases, 2)
    assert read(path, kind).shape == shape
    beside = path.with_name(f"{path.name}.privacy.json")
    assert json.loads(beside.read_text())["epsilon"] == pytest.approx(4 * releases)
    for file in (path, beside):
        assert str(file) in out
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def read(path, kind) -> np.ndarray:
    if kind == "npy":
        return np.load(path, allow_pickle=False)
    if kind == "jsonl":
        return np.array([json.loads(line) for line in path.read_text().splitlines()])
    import tensorflow as tf

    vectors = []
    for record in tf.data.TFRecordDataset(str(path)):
        feature = tf.train.Example.FromString(record.numpy()).features.feature
        values = feature["representation"].float_list.value
        vectors.append(np.reshape(values, feature["shape"].int64_list.value))
    return np.stack(vectors)


def test_order_is_kept_and_a_table_has_the_column_of_the_run(
    preloaded, trained, run, tmp_path, monkeypatch
):
    class Model:
        """Its representation of a text is the text's length."""

        def __init__(self, model):
            self._model = model

        def encode(self, texts, *, releases):
            return np.array([[len(text)] for text in texts], np.float32)

        def __getattr__(self, name):
            return getattr(self._model, name)

    from tfpriv.cli import encode

    load = encode.load_model
    monkeypatch.setattr(encode, "load_model", lambda folder: Model(load(folder)))
    monkeypatch.setattr(encode, "_AT_ONCE", 2)
    path = tmp_path / "table.csv"
    path.write_text('ID,CONTENT,OTHER\n1,abc,a\n2,"",ab\n3,a,abcd\n4," ",x\n5,ab,y\n')
    code, out, err = run("encode", trained[0], path)
    assert code == 0, err
    assert [json.loads(line) for line in out.splitlines()] == [[3], [0], [1], [1], [2]]
    code, out, _ = run("encode", trained[0], path, "--text", "OTHER")
    assert [json.loads(line) for line in out.splitlines()] == [[1], [2], [4], [1], [1]]


def test_nine_digits_tell_any_two_numbers_apart():
    from tfpriv.cli.encode import _plain

    numbers = np.random.default_rng(0).normal(size=2000).astype(np.float32)
    numbers = np.concatenate([numbers, np.nextafter(numbers, np.float32(9))])
    back = np.array(json.loads(json.dumps(_plain(numbers))), np.float32)
    np.testing.assert_array_equal(back, numbers)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (["--releases", "0"], "releases=0"),
        (["--output", "out.csv"], ".jsonl, .npy, .tfrecord"),
        (["--output", "none/out.npy"], "Make the folder"),
        (["--text", "CONTENT"], "no column"),
        (["--format", "pdf"], "csv, tsv, jsonl, tfrecord"),
    ],
)
def test_a_wrong_option_is_refused(trained, refused, texts, change, words):
    assert words in refused("encode", trained[0], texts, *change)


def test_a_file_that_cannot_be_used_is_refused(trained, refused, tmp_path):
    run_folder = trained[0]
    assert "does not exist" in refused("encode", run_folder, tmp_path / "none.txt")
    (tmp_path / "empty.txt").write_text("")
    assert "received none" in refused("encode", run_folder, tmp_path / "empty.txt")
    (tmp_path / "a.csv").write_text("ID,WORDS\n1,x\n")
    assert "ID, WORDS" in refused("encode", run_folder, tmp_path / "a.csv")
    (tmp_path / "a.jsonl").write_text('{"CONTENT": "x"}\n')
    same = ["--output", tmp_path / "a.jsonl"]
    assert "for both" in refused("encode", run_folder, tmp_path / "a.jsonl", *same)
    assert "rmat train" in refused("encode", tmp_path, tmp_path / "a.jsonl")


def test_an_earlier_release_is_not_overwritten(trained, refused, texts, tmp_path):
    path = tmp_path / "out.jsonl"
    path.write_text("earlier")
    assert "paid for" in refused("encode", trained[0], texts, "--output", path)
    assert path.read_text() == "earlier"
    inside = trained[0] / "out.npy"
    assert "outside" in refused("encode", trained[0], texts, "--output", inside)


def test_a_full_disk_leaves_nothing(
    preloaded, trained, run, texts, tmp_path, full_disk
):
    path = tmp_path / "out.jsonl"
    full_disk.append("out.jsonl")
    code, out, err = run("encode", trained[0], texts, "--output", path)
    assert (code, out) == (1, "")
    assert "No space left" in err.splitlines()[-1]
    assert not [name for name in os.listdir(tmp_path) if "out" in name]


def test_ctrl_c_is_code_130(preloaded, trained, run, texts, monkeypatch):
    def interrupt(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr("tfpriv.cli.encode._encode", interrupt)
    code, out, err = run("encode", trained[0], texts)
    assert (code, out) == (130, "")
    assert "interrupted" in err
