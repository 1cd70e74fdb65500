"""The check of a graph names the op that a server cannot run or could replay."""

from __future__ import annotations

import pytest
import tensorflow as tf
import tensorflow_text as tf_text

from tests.serving.models import save_stand_in
from tfpriv.serving.graph_check import TEXT_OPS, check_graph

TEXT = [tf.TensorSpec([None], tf.string, name="text")]
SEED = tf.Variable([1, 2], dtype=tf.int64, trainable=False, name="seed_state")

BROKEN = {
    "WhitespaceTokenizeWithOffsetsV2": lambda text: (
        tf_text.WhitespaceTokenizer().tokenize(text).to_tensor()
    ),
    "EagerPyFunc": lambda text: tf.py_function(len, [text], tf.int32),
    "RandomUniform": lambda text: tf.random.uniform(tf.shape(text)),
    "StatelessRandom": lambda text: tf.random.stateless_uniform([3], [1, 2]),
    "NonDeterministicInts": lambda text: tf.raw_ops.NonDeterministicInts(
        shape=[3], dtype=tf.int64
    ),
    "seed_state": lambda text: SEED + 1,
}


def save(function, folder):
    module = tf.Module()
    module.state = SEED
    module.run = tf.function(function, input_signature=TEXT)
    tf.saved_model.save(module, str(folder), signatures={"run": module.run})
    return folder


@pytest.mark.parametrize("name", BROKEN)
def test_what_may_not_be_served_is_named(name, tmp_path):
    with pytest.raises(RuntimeError, match=name):
        check_graph(save(BROKEN[name], tmp_path))


def test_allowed_ops_pass_and_are_told(tmp_path):
    module = tf.Module()
    module.run = tf.function(tf_text.case_fold_utf8, input_signature=TEXT)
    tf.saved_model.save(module, str(tmp_path), signatures={"run": module.run})
    ops = check_graph(tmp_path)
    assert ops & TEXT_OPS == {"CaseFoldUTF8"}
    assert "Placeholder" in ops


def test_the_stand_in_of_the_client_tests_would_not_be_exported(tmp_path):
    with pytest.raises(RuntimeError, match="RandomUniform"):
        check_graph(save_stand_in(tmp_path) / "1")
