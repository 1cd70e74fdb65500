"""The committed model, in a process that has TensorFlow and tensorflow-text alone."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys

import pytest

from tests.contracts.test_served_noise import check_the_graph_has_no_seed
from tfpriv import datasets
from tfpriv.accounting import RepresentationStatement

ROOT = pathlib.Path(__file__).parents[2]
FOLDER = ROOT / "saved_models" / "spam"
VERSION = FOLDER / "1"
ALONE = """
import json, sys

class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"tfpriv", "keras_nlp", "keras_hub"}:
            raise ImportError(name)

sys.meta_path.insert(0, Nothing())
import tensorflow as tf
import tensorflow_text

signatures = tf.saved_model.load(sys.argv[1]).signatures
texts = tf.constant(json.load(sys.stdin))
told = signatures["serving_default"](text=texts)
vectors = signatures["encode"](text=texts)["representation"]
print(json.dumps({
    "signatures": sorted(signatures),
    "labels": [name.decode() for name in told["label"].numpy()],
    "sums": tf.reduce_sum(told["probabilities"], axis=1).numpy().tolist(),
    "vectors": vectors.numpy().tolist(),
}))
"""


@pytest.fixture(scope="module")
def sample():
    return datasets.read("sample")


@pytest.fixture(scope="module")
def answered(sample, tmp_path_factory):
    done = subprocess.run(
        [sys.executable, "-c", ALONE, str(VERSION)],
        input=json.dumps([*sample.texts, ""]),
        cwd=tmp_path_factory.mktemp("elsewhere"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_it_answers_without_tfpriv(answered):
    told = json.loads((VERSION / "assets.extra" / "serving.json").read_text())
    assert answered["signatures"] == sorted(told["signatures"])
    assert set(answered["labels"]) <= {"ham", "spam"}
    assert answered["sums"] == pytest.approx([1] * len(answered["labels"]), abs=1e-5)
    assert all(sorted(vector) == [0, 1] for vector in answered["vectors"])


def test_it_has_learnt_the_task(answered, sample):
    # Of the sample it was trained on, most of it: what a bad export would lose.
    pairs = zip(answered["labels"], sample.labels, strict=False)
    right = [told == label for told, label in pairs]
    assert len(right) == len(sample)
    assert sum(right) / len(right) > 0.85


def test_it_is_small_and_says_what_it_costs():
    files = [path for path in FOLDER.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= 4_000_000
    text = (VERSION / "assets.extra" / "privacy.json").read_text()
    statement = RepresentationStatement.from_json(json.loads(text))
    assert statement.epsilon == pytest.approx(4)
    check_the_graph_has_no_seed(VERSION)


def test_its_files_name_the_model_as_its_folder_does():
    # A server knows it by its folder's name, and warms up by these requests.
    told = json.loads((VERSION / "assets.extra" / "serving.json").read_text())
    assert told["name"] == FOLDER.name
    named = {request.model_spec.name for request in warm_up_requests()}
    assert named == {FOLDER.name}


def warm_up_requests():
    import tensorflow as tf

    apis = pytest.importorskip("tensorflow_serving.apis.prediction_log_pb2")
    path = VERSION / "assets.extra" / "tf_serving_warmup_requests"
    for record in tf.data.TFRecordDataset(str(path)):
        log = apis.PredictionLog.FromString(record.numpy())
        yield log.predict_log.request


def test_the_folder_holds_the_model_and_its_page_alone():
    assert {path.name for path in FOLDER.parent.iterdir()} == {"README.md", "spam"}
    assert {path.name for path in FOLDER.iterdir()} == {"1"}
