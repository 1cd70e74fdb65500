"""Texts as vectors of a public sentence model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_BATCH = 64
_TOKENS = 64


def minilm_embeddings(texts: Sequence[str]) -> np.ndarray:
    """Returns MiniLM's mean-pooled vectors, float32 of shape (n, 384).

    The weights are public and see each text alone. Texts are cut to 64 word pieces;
    one without any gets zeros. Imports TensorFlow.

    Raises:
        InputError: MiniLM is not installed; the message says how to.
    """
    from tfpriv.representation.presets import load_bert, minilm_folder

    minilm_folder()  # refused before TensorFlow is imported for it
    import keras_nlp
    import tensorflow as tf

    from tfpriv.layers import SequencePooling

    backbone, tokenizer = load_bert()
    packer = keras_nlp.layers.StartEndPacker(
        sequence_length=_TOKENS,
        start_value=tokenizer.cls_token_id,
        end_value=tokenizer.sep_token_id,
        pad_value=tokenizer.pad_token_id,
        return_padding_mask=True,
    )
    pool = SequencePooling("mean")

    @tf.function(reduce_retracing=True)
    def encode(ids: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        inputs = {
            "token_ids": ids,
            "padding_mask": mask,
            "segment_ids": tf.zeros_like(ids),
        }
        outputs = backbone(inputs, training=False)
        return pool({**outputs, "padding_mask": mask})

    # Texts alike in length are packed together: most of a batch is no padding.
    order = np.argsort([len(text) for text in texts], kind="stable")
    found = np.zeros((len(texts), backbone.hidden_dim), np.float32)
    for begin in range(0, len(order), _BATCH):
        rows = order[begin : begin + _BATCH]
        ids, mask = packer(tokenizer(tf.constant([texts[i] for i in rows])))
        longest = int(tf.reduce_max(tf.reduce_sum(tf.cast(mask, tf.int32), axis=1)))
        found[rows] = encode(ids[:, :longest], mask[:, :longest]).numpy()
    return found
