"""What is in an exported folder, and that its graph computes what the model does."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import stat
import sys
import time

import hypothesis
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import strategies as st
from tensorflow_serving.apis import prediction_log_pb2

from tests.representation.conftest import VOCABULARY, make_backbone
from tests.serving.models import (
    LABELS,
    encode,
    load,
    noisy_model,
    plain_model,
    same,
    tokenizer,
)
from tfpriv._errors import InputError
from tfpriv.representation import RMAT, WordPieces
from tfpriv.representation.batches import tokenise
from tfpriv.serving import export
from tfpriv.serving.served_representation import ServedRepresentation
from tfpriv.serving.warm_up import WARM_UP

STRANGE = [
    "she is good",
    "",
    "  \n\t ",
    "\0",
    "go\0od",
    "\ufeffshe",
    "😀😀 👩‍👩‍👧",
    "[MASK] [SEP] [PAD]",
    "Ünbelievable ＡＢＣ ß ǆ İ",
    "猫の the",
    "she\u200bis\u00a0good\u2028!",
    "e\u0301" * 40,
    "x" * 10_000,
    "the " * 10_000,
]
INVALID = b"she \xff\xfe good"


@pytest.fixture(scope="module")
def model():
    return plain_model()


@pytest.fixture(scope="module")
def folder(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("served") / "model"
    return export(model, path, label_names=LABELS)


@pytest.fixture(scope="module")
def served(folder):
    return load(folder)


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    path, model = tmp_path_factory.mktemp("parts"), noisy_model()
    return {
        part: export(model, path / part, label_names=LABELS, part=part)
        for part in ("client", "server")
    }


# --- Signatures --------------------------------------------------------------


def test_signatures_have_stable_names_and_fixed_sizes(folder):
    told = json.loads((folder / "assets.extra/serving.json").read_text())["signatures"]
    labelled = {"probabilities": ["float32", [None, 2]], "label": ["string", [None]]}
    vector = {"representation": ["float32", [None, 16]]}
    text = {"text": ["string", [None]]}
    assert told == {
        "serving_default": {"inputs": text, "outputs": labelled},
        "encode": {"inputs": text, "outputs": vector},
        "encode_ids": {"inputs": {"ids": ["int32", [None, None]]}, "outputs": vector},
        "classify": {"inputs": vector, "outputs": labelled},
        "tf_example": {"inputs": {"examples": text["text"]}, "outputs": labelled},
    }
    names = [key for s in told.values() for side in s.values() for key in side]
    assert not [name for name in names if name.endswith("_bytes")]


def test_encode_is_what_the_model_computes(model, served):
    same(encode(served, STRANGE), model.encode(STRANGE))


def test_the_other_signatures_agree_with_encode(model, served):
    texts = tf.constant(STRANGE)
    vectors = served["encode"](text=texts)["representation"]
    ids = model.encoder.word_pieces(texts)
    same(served["encode_ids"](ids=ids)["representation"], vectors)
    told = served["serving_default"](text=texts)
    same(told["probabilities"], model.predict(STRANGE, verbose=0))
    best = np.argmax(told["probabilities"], axis=1)
    assert [LABELS[i].encode() for i in best] == list(told["label"].numpy())
    examples = tf.constant([example(text=text.encode()) for text in STRANGE])
    for other in (
        served["classify"](representation=vectors),
        served["tf_example"](examples=examples),
    ):
        same(other["probabilities"], told["probabilities"])
        assert list(other["label"].numpy()) == list(told["label"].numpy())


def example(**features):
    values = {
        name: tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))
        for name, value in features.items()
    }
    whole = tf.train.Example(features=tf.train.Features(feature=values))
    return whole.SerializeToString()


def test_the_encoder_is_traced_once_for_all_signatures(model):
    served = ServedRepresentation(model, LABELS)
    for function in served.signatures().values():
        function.get_concrete_function()
    assert served._release.experimental_get_tracing_count() == 1


# --- The tokenizer in the graph ----------------------------------------------


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "no accents"])
def both_ways(request, tmp_path_factory):
    """The pieces of a model, by Python's path and by a graph that was saved."""
    import keras_nlp

    pieces = keras_nlp.models.BertTokenizer(
        vocabulary=VOCABULARY, lowercase=True, strip_accents=request.param
    )
    model = RMAT(
        make_backbone(),
        pieces,
        num_classes=2,
        num_private_classes=2,
        epsilon=1.0,
        scale="code",
        dimension=2,
    )
    served = ServedRepresentation(model, LABELS)
    module = tf.Module()
    module.run = tf.function(
        served.pieces, input_signature=[tf.TensorSpec([None], tf.string)]
    )
    folder = str(tmp_path_factory.mktemp("pieces"))
    tf.saved_model.save(module, folder)
    return model.encoder.word_pieces, tf.saved_model.load(folder)


def check_pieces(both_ways, texts):
    in_python, module = both_ways
    rows = tokenise(in_python, texts)
    in_graph = module.run(tf.constant(texts)).numpy()
    for row, ids in zip(rows, in_graph, strict=True):
        assert list(row) == list(ids[: len(row)])
        assert not ids[len(row) :].any()


def test_strange_texts_have_the_ids_of_the_python_path(both_ways):
    check_pieces(both_ways, STRANGE)


@hypothesis.given(
    st.lists(
        st.one_of(
            st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
            st.text(st.sampled_from("abes !?[]#.\u0301é\0\u200b猫😀ß"), max_size=40),
            st.lists(st.sampled_from(VOCABULARY)).map(" ".join),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_any_text_has_the_ids_of_the_python_path(both_ways, texts):
    check_pieces(both_ways, texts)


def test_a_text_cut_to_fewer_words_would_be_noticed(both_ways):
    in_python, module = both_ways
    fewer = WordPieces(in_python.tokenizer, max_words=2)
    with pytest.raises(AssertionError):
        check_pieces((fewer, module), STRANGE)


def test_ids_are_admitted_as_the_tokenizer_gives_them(model, served):
    long = model.encoder.word_pieces(tf.constant(["the unbelievable door " * 20]))
    unknown = VOCABULARY.index("[UNK]")
    pad = tf.zeros([1, 3], tf.int32)

    def vectors(ids):
        return served["encode_ids"](ids=tf.constant(ids, tf.int32))["representation"]

    more = tf.concat([long, tf.fill([1, 50], VOCABULARY.index("she"))], axis=1)
    same(vectors(more), vectors(long))  # no more words than `max_words`
    same(vectors([[5, -1, 10_000]]), vectors([[5, unknown, unknown]]))
    same(vectors(tf.concat([long, pad], axis=1)), vectors(long))
    assert vectors(tf.zeros([2, 0], tf.int32)).shape == (2, 16)


# --- Bad input ---------------------------------------------------------------


def test_an_empty_batch_gives_an_empty_answer(served):
    assert encode(served, []).shape == (0, 16)
    told = served["serving_default"](text=tf.constant([], tf.string))
    assert told["probabilities"].shape == (0, 2)
    assert told["label"].shape == (0,)


def test_bytes_that_are_no_text_fail_nobody_else(served):
    alone = encode(served, ["she is good"])
    mixed = encode(served, [INVALID, "she is good", b"\xed\xa0\x80", b"\xc3"])
    assert np.isfinite(mixed).all()
    same(mixed[1:2], alone)
    same(mixed[:1], encode(served, ["she \ufffd\ufffd good"]))


def test_a_megabyte_of_text_takes_seconds_at_most(served):
    encode(served, ["she"])
    start = time.process_time()
    vectors = encode(served, ["the " * 262_144])
    assert time.process_time() - start < 20
    same(vectors, encode(served, ["the " * 100]))


def test_ten_thousand_texts_at_once(served):
    vectors = encode(served, ["she is good", "he was bad"] * 5_000)
    assert vectors.shape == (10_000, 16)
    same(vectors[-2:], encode(served, ["she is good", "he was bad"]))


@pytest.mark.parametrize(
    "inputs",
    [
        {"text": [1, 2]},
        {"text": [["she"]]},
        {"text": "she"},
        {"words": ["she"]},
    ],
)
def test_another_type_shape_or_name_is_refused(served, inputs):
    tensors = {name: tf.constant(value) for name, value in inputs.items()}
    with pytest.raises((TypeError, ValueError, tf.errors.InvalidArgumentError)):
        served["encode"](**tensors)


def test_an_example_without_text_is_refused(served):
    for bad in (example(words=b"she"), b"no example at all"):
        with pytest.raises(tf.errors.InvalidArgumentError):
            served["tf_example"](examples=tf.constant([bad]))


@pytest.mark.slow
def test_no_device_of_random_bits_means_no_release(parts, tmp_path):
    """The same graph, where /dev/urandom is not: nothing comes out."""
    broken = shutil.copytree(parts["client"], tmp_path / "1")
    graph = broken / "saved_model.pb"
    data = graph.read_bytes()
    assert data.count(b"/dev/urandom") > 0
    graph.write_bytes(data.replace(b"/dev/urandom", b"/dev/urandoX"))
    with pytest.raises(tf.errors.NotFoundError, match="urandoX"):
        encode(load(broken), ["she is good"])
    assert np.isfinite(encode(load(parts["client"]), ["she is good"])).all()


# --- Two parts ---------------------------------------------------------------


def weights(folder):
    found = tf.train.list_variables(str(folder / "variables" / "variables"))
    bookkeeping = ("_CHECKPOINTABLE_OBJECT_GRAPH", "save_counter")
    return [tuple(s) for name, s in found if not name.startswith(bookkeeping)]


def check_no_encoder_weights(folder, model):
    head = [tuple(weight.shape) for weight in model.task_head.weights]
    assert sorted(weights(folder)) == sorted(head)


def test_the_server_part_has_no_weight_of_the_encoder(parts, folder):
    check_no_encoder_weights(parts["server"], noisy_model())
    for other in (parts["client"], folder):
        with pytest.raises(AssertionError):
            check_no_encoder_weights(other, noisy_model())
    assert b"urandom" not in (parts["server"] / "saved_model.pb").read_bytes()


def test_the_parts_together_are_the_whole(parts):
    client, server = load(parts["client"]), load(parts["server"])
    assert set(client) == {"serving_default", "encode", "encode_ids"}
    assert set(server) == {"serving_default", "classify"}
    vectors = tf.constant(encode(client, STRANGE))
    told = server["serving_default"](representation=vectors)
    assert set(told) == {"probabilities", "label"}
    same(tf.reduce_sum(told["probabilities"], axis=1), np.ones(len(STRANGE)))


# --- What travels along ------------------------------------------------------


def test_warm_up_has_requests_for_every_signature(folder, served):
    found = {}
    for record in tf.data.TFRecordDataset(str(folder / WARM_UP)):
        log = prediction_log_pb2.PredictionLog.FromString(record.numpy())
        request = log.predict_log.request
        assert request.model_spec.name == "model"
        sizes = [t.tensor_shape.dim[0].size for t in request.inputs.values()]
        found.setdefault(request.model_spec.signature_name, []).extend(sizes)
    assert found == {key: [1, 3, 32] for key in served}


def test_statement_labels_and_card_travel_along(parts):
    extra = parts["client"] / "assets.extra"
    statement = noisy_model().privacy_statement()
    assert json.loads((extra / "privacy.json").read_text()) == statement.to_json()
    assert json.loads((extra / "labels.json").read_text()) == LABELS
    card = (extra / "model_card.md").read_text()
    assert "r releases of one text cost r times" in " ".join(card.split())
    assert str(statement) in card


def test_files_name_no_machine(folder):
    here = os.fsencode(pathlib.Path(__file__).parents[2])
    for path in folder.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            assert here not in data
            assert os.fsencode(folder.parent) not in data


def test_weights_of_private_text_are_the_owners_alone(parts, tmp_path):
    def modes(folder):
        return {
            stat.S_IMODE(path.stat().st_mode)
            for path in folder.rglob("*")
            if path.is_file()
        }

    assert modes(parts["client"]) == {0o600}
    assert stat.S_IMODE(parts["client"].stat().st_mode) == 0o700
    public = noisy_model(public_backbone=True)
    shared = export(public, tmp_path / "public", part="server")
    assert modes(shared) == {0o644}


# --- Versions, and what is refused -------------------------------------------


def test_versions_follow_each_other_and_are_not_overwritten(tmp_path):
    model = noisy_model()
    assert export(model, tmp_path / "m", part="server").name == "1"
    assert export(model, tmp_path / "m", 7, part="server").name == "7"
    assert export(model, tmp_path / "m", part="server").name == "8"
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InputError, match="version=7"):
        export(model, tmp_path / "m", 7, part="server")
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"label_names": ["a"]}, "2 different label names"),
        ({"label_names": ["a", "a"]}, "2 different label names"),
        ({"label_names": "ab"}, "list of texts"),
        ({"part": "both"}, "part"),
        ({"version": 0}, "version"),
        ({"version": 1.5}, "version"),
        ({"model": "rmat.keras"}, "received str"),
        ({"trained_on": "mine.csv"}, "DataBudget"),
    ],
)
def test_what_cannot_be_used_is_refused_before_work(tmp_path, change, words):
    arguments = {"model": noisy_model(), "path": tmp_path / "m", **change}
    with pytest.raises(InputError, match=words):
        export(**arguments)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("")
    for name, words in (("file", "received the file"), ("other", "'notes.txt'")):
        with pytest.raises(InputError, match=words):
            export(noisy_model(), tmp_path / name)


@pytest.mark.parametrize("fails", ["check_graph", "write_warm_up", "replay_warm_up"])
def test_a_failure_leaves_nothing_behind(tmp_path, monkeypatch, fails):
    def fail(*_, **__):
        raise RuntimeError("no")

    module = sys.modules["tfpriv.serving.export"]  # the package has the function
    monkeypatch.setattr(module, fails, fail)
    with pytest.raises(RuntimeError, match="no"):
        export(noisy_model(), tmp_path / "m", part="server")
    assert list(tmp_path.iterdir()) == []


def test_a_signature_that_is_not_warmed_up_is_refused(tmp_path, monkeypatch):
    examples = ServedRepresentation.examples

    def fewer(self, texts):
        return {k: v for k, v in examples(self, texts).items() if k != "classify"}

    monkeypatch.setattr(ServedRepresentation, "examples", fewer)
    with pytest.raises(RuntimeError, match="'classify'"):
        export(noisy_model(), tmp_path / "m", part="server")


def test_a_tokenizer_that_knows_special_tokens_stays_refused():
    with pytest.raises(InputError, match="special_tokens_in_strings"):
        RMAT(
            make_backbone(),
            tokenizer(special_tokens_in_strings=True),
            num_classes=2,
            num_private_classes=2,
            epsilon=1.0,
        )
