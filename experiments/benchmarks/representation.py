"""RMAT's training and its `encode`, each beside what it saves or adds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import tensorflow as tf

BATCH, MAX_LENGTH, TEXTS = 32, 32, 256
Runs = dict[str, Callable[[], None]]


def training(seed: int) -> Runs:
    """Steps on 256 texts, as wide as the longest of a batch or all of 32 pieces."""

    def run(padded: bool) -> Callable[[], None]:
        model = _model(seed)
        batches = _batches(model, seed, shuffle=True)
        if padded:
            _never_cut(model)
        model.compile()
        step = tf.function(model.train_step, reduce_retracing=True)

        def epoch() -> dict[str, float]:
            for ids, targets in batches:
                losses = step((tf.constant(ids), targets))
            return {name: float(value) for name, value in losses.items()}

        return epoch

    return {"all padded to 32": run(padded=True), "tfpriv": run(padded=False)}


def encoding(seed: int) -> Runs:
    """256 texts to representations, beside the backbone alone on as many pieces."""
    import tfpriv

    model = _model(seed)
    texts = tfpriv.datasets.load("sample").train.texts[:TEXTS]
    # A release is always computed at full width: nothing of it depends on others.
    batches = [
        tf.constant(np.pad(ids, [[0, 0], [0, MAX_LENGTH]])[:, :MAX_LENGTH])
        for ids, _ in _batches(model, seed, shuffle=False)
    ]

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


def _never_cut(model) -> None:
    """Takes the one thing away that is compared: batches as wide as their longest."""
    encoder = model.encoder
    packed = encoder._packed
    encoder._packed = lambda ids, present, **_: packed(ids, present, short=False)


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
