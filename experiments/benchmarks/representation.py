"""RMAT's training and its `encode`, each beside what it saves or adds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import tensorflow as tf

BATCH, MAX_LENGTH, TEXTS = 32, 32, 256
Runs = dict[str, Callable[[], None]]


def training(seed: int) -> Runs:
    """Steps on 256 texts, batched by length or all padded to the longest."""
    batches = _batches(_model(seed), seed, shuffle=True)
    longest = max(ids.shape[1] for ids, _ in batches)
    # 0 is BERT's [PAD].
    padded = [
        (np.pad(ids, [[0, 0], [0, longest - ids.shape[1]]]), targets)
        for ids, targets in batches
    ]

    def run(batches):
        model = _model(seed)
        model.compile()
        step = tf.function(model.train_step, reduce_retracing=True)

        def epoch():
            for ids, targets in batches:
                losses = step((tf.constant(ids), targets))
            return {name: float(value) for name, value in losses.items()}

        return epoch

    return {"all padded to the longest": run(padded), "tfpriv, by length": run(batches)}


def encoding(seed: int) -> Runs:
    """256 texts to representations, beside the backbone alone on the same batches."""
    import tfpriv

    model = _model(seed)
    texts = tfpriv.datasets.load("sample").train.texts[:TEXTS]
    batches = [tf.constant(ids) for ids, _ in _batches(model, seed, shuffle=False)]

    @tf.function(reduce_retracing=True)
    def backbone(ids):
        mask = tf.cast(ids != model.tokenizer.pad_token_id, tf.int32)
        inputs = {
            "token_ids": ids,
            "segment_ids": tf.zeros_like(ids),
            "padding_mask": mask,
        }
        return model.backbone(inputs, training=False)["sequence_output"][:, 0]

    return {
        "backbone alone": lambda: [backbone(ids).numpy() for ids in batches],
        "tfpriv, `encode`": lambda: model.encode(texts, batch_size=BATCH),
    }


def _batches(model, seed: int, *, shuffle: bool) -> list:
    import tfpriv
    from tfpriv.representation.batches import TextBatches

    train = tfpriv.datasets.load("sample").train
    targets = {name: part[:TEXTS] for name, part in train.targets().items()}
    pieces = model.encoder.word_pieces
    texts = train.texts[:TEXTS]
    return list(TextBatches(pieces, texts, targets, BATCH, shuffle=shuffle, seed=seed))


def _model(seed: int):
    import keras

    import tfpriv

    keras.utils.set_random_seed(seed)
    return tfpriv.RMAT.from_preset(
        num_classes=2,
        num_private_classes=2,
        epsilon=4.0,
        scale="code",
        max_length=MAX_LENGTH,
    )
