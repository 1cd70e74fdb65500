"""A stream of batches: what is wrong is told by row and batch, and no label with it."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tests.representation.test_methods import (
    LABELS,
    PRIVATE,
    TARGETS,
    TEXTS,
    build,
    compiled,
)
from tfpriv._errors import InputError
from tfpriv.representation import RMAT, Unprotected
from tfpriv.representation.dataset_checks import (
    checked_dataset,
    checked_texts,
    values_told,
)

CLASSES = {"label": 3, "private": 2}
ODD = 77  # a label that no message may show


def stream(targets, *weights, texts=TEXTS):
    parts = (texts, targets, *weights)
    return tf.data.Dataset.from_tensor_slices(parts).batch(5)


def checked(dataset, needed=("label", "private")):
    return checked_dataset(dataset, CLASSES, vocabulary=50, needed=needed)


def changed(values, row, value, dtype=None):
    values = np.array(values, dtype)
    values[row] = value
    return values


WRONG_VALUES = {
    "large": ({**TARGETS, "label": changed(LABELS, 7, ODD)}, (), "label", 2, 1),
    "negative": ({**TARGETS, "label": changed(LABELS, 11, -ODD)}, (), "label", 1, 2),
    "private": ({**TARGETS, "private": changed(PRIVATE, 0, ODD)}, (), "private", 0, 0),
    "half": (
        {**TARGETS, "label": changed(LABELS, 6, 0.5, float)},
        (),
        "label",
        1,
        1,
    ),
    "nan": (
        {**TARGETS, "label": changed(LABELS, 5, np.nan, float)},
        (),
        "label",
        0,
        1,
    ),
    "tuple": ((LABELS, changed(PRIVATE, 3, ODD)), (), "private", 3, 0),
    "weight": (TARGETS, (changed(np.ones(12), 9, -1.0),), "weights", 4, 1),
    "infinite": (TARGETS, (changed(np.ones(12), 9, np.inf),), "weights", 4, 1),
}


@pytest.mark.parametrize("name", WRONG_VALUES)
def test_a_wrong_value_is_told_by_its_row_and_batch(name):
    targets, weights, named, row, batch = WRONG_VALUES[name]
    with pytest.raises(InputError) as refused, values_told():
        list(checked(stream(targets, *weights)))
    message = str(refused.value)
    assert named in message
    assert message.endswith(f"received another in row {row} of batch {batch}.")
    assert str(ODD) not in message
    assert "\n" not in message


WRONG_KINDS = {
    "one-hot": ({**TARGETS, "label": np.eye(3)[LABELS]}, (), "shape"),
    "texts": ({**TARGETS, "private": ["female"] * 12}, (), "received string"),
    "missing": ({"label": LABELS}, (), "no 'private'"),
    "first alone": (LABELS, (), "no 'private'"),
    "other": ({"gender": PRIVATE}, (), "no 'label'"),
    "weights": (TARGETS, (["a"] * 12,), "sample weights"),
    "four": (TARGETS, (np.ones(12), np.ones(12)), "4 components"),
}


@pytest.mark.parametrize("name", WRONG_KINDS)
def test_a_wrong_kind_is_refused_before_a_batch_is_read(name):
    targets, weights, words = WRONG_KINDS[name]
    dataset = stream(targets, *weights).map(_unread)
    with pytest.raises(InputError, match=words) as refused:
        checked(dataset)
    assert "female" not in str(refused.value)


def _unread(*parts):
    with tf.control_dependencies([tf.debugging.Assert(False, ["was read"])]):
        return tf.nest.map_structure(tf.identity, parts)


def test_texts_without_targets_are_refused():
    with pytest.raises(InputError, match="1 components"):
        checked(tf.data.Dataset.from_tensor_slices(TEXTS).batch(3))


def test_batches_pass_as_they_are():
    weights = np.linspace(0, 1, 12)
    forms = [
        TARGETS,
        (LABELS, PRIVATE),
        {name: values.astype(float) for name, values in TARGETS.items()},
        {**TARGETS, "more": np.zeros(12)},
    ]
    for targets in forms:
        batches = list(checked(stream(targets, weights)))
        assert len(batches) == 3
        for name, values in TARGETS.items():
            found = np.concatenate([targets[name] for _, targets, _ in batches])
            np.testing.assert_array_equal(found, values)
            assert found.dtype == np.int32
        found = np.concatenate([batch[2] for batch in batches])
        np.testing.assert_allclose(found, weights, rtol=1e-6)
    [text, *_], *_ = next(iter(checked(stream(TARGETS))))
    assert text.numpy().decode() == TEXTS[0]
    inside = checked(stream({**TARGETS, "sample_weight": weights}))
    np.testing.assert_allclose(next(iter(inside))[2], weights[:5], rtol=1e-6)


def test_targets_of_a_shape_that_only_the_data_tell():
    def batches():
        yield TEXTS[:4], LABELS[:4]
        yield TEXTS[:4], LABELS[:3]

    spec = (tf.TensorSpec([None], tf.string), tf.TensorSpec(None, tf.int32))
    dataset = tf.data.Dataset.from_generator(batches, output_signature=spec)
    with (
        pytest.raises(InputError, match=r"as many .* in batch 1") as refused,
        values_told(),
    ):
        list(checked(dataset, needed=("label",)))
    assert "'label'" in str(refused.value)


def test_word_pieces_beyond_the_vocabulary_are_told():
    ids = np.zeros((12, 4), np.int32)
    ids[8, 1] = 50
    for dataset in (
        checked(stream(TARGETS, texts=ids)),
        checked_texts(tf.data.Dataset.from_tensor_slices(ids).batch(5), 50),
    ):
        with pytest.raises(InputError, match="row 3 of batch 1"), values_told():
            list(dataset)


def test_other_faults_of_a_stream_stay_what_they_are():
    with pytest.raises(tf.errors.InvalidArgumentError), values_told():
        list(checked(stream(TARGETS).map(_unread)))


@pytest.mark.slow
@pytest.mark.parametrize("eagerly", [True, False])
def test_models_tell_it_as_well(eagerly, tokenizer):
    model = build(RMAT, tokenizer)
    model.compile(run_eagerly=eagerly)
    wrong = stream({**TARGETS, "label": changed(LABELS, 7, ODD)})
    with pytest.raises(InputError, match="row 2 of batch 1") as refused:
        model.fit(wrong, verbose=0)
    assert str(ODD) not in str(refused.value)
    with pytest.raises(InputError, match="row 2 of batch 1"):
        model.fit(stream(TARGETS), validation_data=wrong, verbose=0)
    with pytest.raises(InputError, match="row 2 of batch 1"):
        model.evaluate(wrong, verbose=0)


def test_without_the_check_tensorflow_prints_the_labels(tokenizer, monkeypatch):
    """What the check is for: TensorFlow's own message has all labels of the batch."""
    model = compiled(build(Unprotected, tokenizer))
    wrong = stream({"label": changed(LABELS, 7, ODD)})
    monkeypatch.setattr(
        "tfpriv.representation.text_model.checked_dataset",
        lambda dataset, *args, **kwargs: dataset,
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match=str(ODD)):
        model.fit(wrong, verbose=0)


def test_targets_beside_a_data_set_are_refused(tokenizer):
    model = compiled(build(RMAT, tokenizer))
    with pytest.raises(InputError, match="no targets beside"):
        model.fit(stream(TARGETS), TARGETS, verbose=0)
    with pytest.raises(InputError, match="no sample_weight beside"):
        model.evaluate(stream(TARGETS), sample_weight=np.ones(12), verbose=0)


def test_an_adversary_is_needed_for_training_alone(tokenizer):
    model = compiled(build(RMAT, tokenizer))
    task = stream({"label": LABELS})
    with pytest.raises(InputError, match="no 'private'"):
        model.fit(task, verbose=0)
    assert "task_f1" in model.evaluate(task, return_dict=True, verbose=0)
