"""Exported models of a moment's work, and one whose noise replays."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import tensorflow as tf

from tfpriv.layers._randomness import fresh_words

SPAM = Path(__file__).parents[2] / "saved_models" / "spam"
DIMENSION = 4


class _Model(tf.Module):
    """Some uniforms of 24 bits a text; the text "refused" is an error."""

    def __init__(self, draw):
        super().__init__()
        self._draw = draw

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
    def encode(self, text):
        refused = tf.reduce_any(text == "refused")
        with tf.control_dependencies([tf.debugging.Assert(~refused, ["refused"])]):
            words = self._draw(text)
        representation = tf.cast(words, tf.float32)
        broken = tf.cast(text == "not finite", tf.float32)[:, None]
        return {"representation": representation / (1 - broken)}


def fresh(text):
    words = fresh_words([tf.size(text), DIMENSION])
    return tf.bitwise.right_shift(words, tf.constant(8, tf.uint32))


def replayed(text):
    """The broken twin: noise that hangs on the text alone."""
    parts = [
        tf.strings.to_hash_bucket_fast(text + str(number), 2**24)
        for number in range(DIMENSION)
    ]
    return tf.stack(parts, axis=1)


def save_model(folder, draw=fresh, version=1):
    """Saves a model with what `tfpriv export` puts beside one."""
    model = _Model(draw)
    target = folder / str(version)
    tf.saved_model.save(model, str(target), signatures={"encode": model.encode})
    extra = target / "assets.extra"
    extra.mkdir()
    shutil.copy(SPAM / "1" / "assets.extra" / "privacy.json", extra)
    described = json.loads((SPAM / "1/assets.extra/serving.json").read_text())
    shape = ["float32", [None, DIMENSION]]
    described["signatures"]["encode"]["outputs"]["representation"] = shape
    (extra / "serving.json").write_text(json.dumps(described))
    return folder
