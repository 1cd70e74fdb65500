"""Two SavedModels of one BERT: exported by us, and as anybody would without us."""

from __future__ import annotations

from pathlib import Path

import tensorflow as tf

MAX_LENGTH = 32


def make_model(seed: int, *, quick: bool):
    """RMAT with tfpriv's default mechanism on MiniLM; quick: a BERT of no size."""
    import keras

    import tfpriv

    keras.utils.set_random_seed(seed)
    settings = {
        "num_classes": 2,
        "num_private_classes": 2,
        "epsilon": 4.0,
        "scale": "code",
        "dimension": 2,
        "mask_rate": 0.1,
        "max_length": MAX_LENGTH,
    }
    if not quick:
        return tfpriv.RMAT.from_preset(**settings)
    import tempfile

    from tfpriv.cli._demo_representation import save_small_bert

    with tempfile.TemporaryDirectory() as folder:
        save_small_bert(Path(folder))
        return tfpriv.RMAT.from_preset(folder, **settings)


def export_bare(model, folder: Path, *, with_tokenizer: bool) -> None:
    """Writes the backbone and the mean of its output, without anything of ours.

    Args:
        model: whose backbone and tokenizer are taken.
        folder: where to.
        with_tokenizer: whether it reads texts, or ids that somebody else made.
    """
    backbone, tokenizer = model.backbone, model.tokenizer

    def pooled(ids):
        mask = tf.cast(ids != tokenizer.pad_token_id, tf.int32)
        inputs = {
            "token_ids": ids,
            "segment_ids": tf.zeros_like(ids),
            "padding_mask": mask,
        }
        sequence = backbone(inputs, training=False)["sequence_output"]
        weight = tf.cast(mask, tf.float32)[..., None]
        total = tf.reduce_sum(sequence * weight, axis=1)
        return total / tf.maximum(tf.reduce_sum(weight, axis=1), 1)

    def packed(text):
        pieces = tokenizer.tokenize(text)[:, : MAX_LENGTH - 2]
        rows = [tf.size(text), 1]
        start = tf.fill(rows, tokenizer.cls_token_id)
        end = tf.fill(rows, tokenizer.sep_token_id)
        ids = tf.concat([start, tf.cast(pieces, tf.int32), end], axis=1)
        shape = [None, MAX_LENGTH]
        return ids.to_tensor(default_value=tokenizer.pad_token_id, shape=shape)

    holder = tf.Module()
    holder.weights = [weight.value for weight in backbone.weights]
    if with_tokenizer:
        spec = tf.TensorSpec([None], tf.string, name="inputs")
        run = tf.function(lambda inputs: pooled(packed(inputs)), [spec])
    else:
        spec = tf.TensorSpec([None, MAX_LENGTH], tf.int32, name="inputs")
        run = tf.function(pooled, [spec])
        holder.pack = tf.function(packed, [tf.TensorSpec([None], tf.string)])
    tf.saved_model.save(holder, str(folder), signatures={"encode": run})
