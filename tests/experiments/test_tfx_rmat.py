"""The TFX module, called as a Trainer calls it, on files."""

from __future__ import annotations

import json
import types
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_text  # noqa: F401  its ops are in the graph

from experiments.tfx_rmat import trainer_module
from experiments.tfx_rmat.trainer_module import DEFAULTS, dataset, run_fn
from tests.representation.conftest import make_backbone
from tests.serving.models import tokenizer
from tfpriv._errors import InputError

SCHEMA = Path(trainer_module.__file__).with_name("schema.pbtxt")
DOMAINS = {"label": ["ham", "spam"], "private": ["female", "male"]}


def write(path, rows, compression=""):
    with tf.io.TFRecordWriter(str(path), compression) as writer:
        for row in rows:
            feature = {
                name: tf.train.Feature(
                    bytes_list=tf.train.BytesList(value=[value.encode()])
                )
                for name, value in zip(("text", "label", "gender"), row, strict=True)
            }
            example = tf.train.Example(features=tf.train.Features(feature=feature))
            writer.write(example.SerializeToString())


ROWS = [("she is good", "ham", "female"), ("he is bad", "spam", "male")] * 8


@pytest.fixture
def fn_args(tmp_path):
    preset = tmp_path / "bert"
    tokenizer().save_to_preset(str(preset))
    make_backbone().save_to_preset(str(preset))
    for split in ("train", "eval"):
        (tmp_path / split).mkdir()
        # As TFX's ExampleGen names and packs them.
        write(tmp_path / split / "data_tfrecord-00000-of-00001.gz", ROWS, "GZIP")
    return types.SimpleNamespace(
        train_files=[f"{tmp_path}/train/*"],
        eval_files=[f"{tmp_path}/eval/*"],
        train_steps=2,
        eval_steps=1,
        schema_path=str(SCHEMA),
        serving_model_dir=str(tmp_path / "model" / "Format-Serving"),
        model_run_dir=str(tmp_path / "run"),
        custom_config={"preset": str(preset), "batch_size": 4, "dimension": 8},
    )


@pytest.mark.slow
def test_run_fn_trains_and_exports_what_tfx_pushes(fn_args):
    run_fn(fn_args)
    folder = Path(fn_args.serving_model_dir)
    signatures = tf.saved_model.load(str(folder)).signatures
    assert {"serving_default", "encode", "classify", "tf_example"} <= set(signatures)
    told = signatures["serving_default"](text=tf.constant(["she is good"] * 3))
    assert set(told["label"].numpy()) <= {b"ham", b"spam"}
    vectors = signatures["encode"](text=tf.constant(["she is good"] * 2))
    first, second = vectors["representation"].numpy()
    assert first.shape == (8,)
    assert not np.array_equal(first, second)
    statement = json.loads((folder / "assets.extra" / "privacy.json").read_text())
    assert statement["epsilon"] == pytest.approx(4.0)
    assert [p.name for p in folder.parent.iterdir()] == ["Format-Serving"]


def test_labels_are_numbered_as_the_schema_orders_them(tmp_path):
    write(tmp_path / "a", ROWS[:3])
    write(tmp_path / "b.gz", [("x", "other", "male")], "GZIP")
    config = {**DEFAULTS, "batch_size": 10}
    (batch,) = dataset([f"{tmp_path}/*"], DOMAINS, config)
    texts, targets = batch
    assert texts.numpy().tolist() == [*(row[0].encode() for row in ROWS[:3]), b"x"]
    assert targets["label"].numpy().tolist() == [0, 1, 0, -1]
    assert targets["private"].numpy().tolist() == [0, 1, 0, 1]


BROKEN = {
    "no steps": ({"train_steps": None}, "num_steps"),
    "no files": ({"train_files": ["none/*"]}, "none"),
    "no schema": ({"schema_path": "none"}, "schema"),
    "unknown setting": ({"custom_config": {"epsilons": 1}}, "epsilons"),
    "unknown feature": ({"custom_config": {"private": "age"}}, "'age'"),
    "no domain": ({"custom_config": {"private": "text"}}, "string_domain"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_bad_arguments_are_refused_before_training(fn_args, monkeypatch, case):
    changes, word = BROKEN[case]
    monkeypatch.setattr(trainer_module.tfpriv, "RMAT", None)
    with pytest.raises(InputError, match=word):
        run_fn(types.SimpleNamespace(**{**vars(fn_args), **changes}))
    assert not Path(fn_args.serving_model_dir).exists()


def test_a_label_that_the_schema_does_not_declare_stops_training(fn_args, tmp_path):
    write(tmp_path / "train" / "more", [("my secret", "other", "male")] * 20)
    fn_args.train_steps = 8
    with pytest.raises(Exception, match="label") as caught:
        run_fn(fn_args)
    assert "my secret" not in str(caught.value)
    assert not Path(fn_args.serving_model_dir).exists()


def test_a_folder_that_holds_something_is_refused(fn_args):
    folder = Path(fn_args.serving_model_dir)
    folder.mkdir(parents=True)
    (folder / "saved_model.pb").touch()
    with pytest.raises(InputError, match="serving_model_dir"):
        run_fn(fn_args)


def test_tfx_is_not_needed():
    source = Path(trainer_module.__file__).read_text()
    assert "import tfx" not in source
    assert "from tfx" not in source
