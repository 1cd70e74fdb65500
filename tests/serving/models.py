"""Small models to serve: a BERT of a few thousand weights, and stand-ins without."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

import tfpriv
from tests.representation.conftest import VOCABULARY, make_backbone

LABELS = ["ham", "spam"]


def tokenizer(**settings):
    import keras_nlp

    return keras_nlp.models.BertTokenizer(
        vocabulary=VOCABULARY, lowercase=True, strip_accents=True, **settings
    )


def noisy_model(**settings):
    """RMAT with masks and Laplace noise on eight coordinates."""
    return tfpriv.RMAT(
        make_backbone(),
        tokenizer(),
        **{
            "num_classes": 2,
            "num_private_classes": 2,
            "epsilon": 4.0,
            "scale": "l1",
            "dimension": 8,
            "mask_rate": 0.1,
            **settings,
        },
    )


def plain_model():
    """The same without noise: what the graph computes can be compared."""
    from tfpriv.representation import Unprotected

    return Unprotected(make_backbone(), tokenizer(), num_classes=2)


class StandIn(tf.Module):
    """Signatures like an exported model's, of a moment's work.

    A representation is the length of the text and a number nobody can guess.
    """

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
    def encode(self, text):
        length = tf.cast(tf.strings.length(text), tf.float32)
        draw = tf.random.uniform(tf.shape(text))
        return {"representation": tf.stack([length, draw], axis=1)}

    @tf.function(
        input_signature=[tf.TensorSpec([None, 2], tf.float32, name="representation")]
    )
    def classify(self, representation):
        share = tf.nn.sigmoid(representation[:, 0] - 3)
        long = tf.cast(share > 0.5, tf.int32)
        return {
            "probabilities": tf.stack([1 - share, share], axis=1),
            "label": tf.gather(tf.constant(["short", "long"]), long),
        }

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
    def predict(self, text):
        return self.classify(self.encode(text)["representation"])


def save_stand_in(folder, version=1):
    stand_in = StandIn()
    signatures = {
        "encode": stand_in.encode,
        "classify": stand_in.classify,
        "serving_default": stand_in.predict,
    }
    tf.saved_model.save(stand_in, str(folder / str(version)), signatures=signatures)
    return folder


def load(folder):
    return tf.saved_model.load(str(folder)).signatures


def encode(signatures, texts):
    return signatures["encode"](text=tf.constant(list(texts), tf.string))[
        "representation"
    ].numpy()


def same(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
