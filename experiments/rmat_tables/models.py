"""From an arm to a trained model, and to what it releases."""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from experiments.rmat_tables.settings import TINY, Arm, Settings
from tfpriv.representation import (
    ADS,
    CAPE,
    DPNR,
    RMAT,
    PrivateTextModel,
    Unprotected,
    load_bert,
)

# Trained once as classifiers, released as codes at each certified epsilon.
CODES = ("code", "second")
# At this epsilon randomised response keeps every code: e^-500 changes one.
_SILENT = 500.0


def load_backbone(preset: str | None) -> tuple[keras.Model, Any]:
    """Returns a BERT and its tokenizer, fresh: training changes a backbone."""
    if preset != TINY:
        return load_bert(preset)
    import keras_nlp

    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    letters = string.ascii_lowercase + string.digits
    vocabulary += [*letters, *string.punctuation, *(f"##{x}" for x in letters)]
    tokenizer = keras_nlp.models.BertTokenizer(vocabulary=vocabulary, lowercase=True)
    backbone = keras_nlp.models.BertBackbone(
        vocabulary_size=len(vocabulary),
        num_layers=1,
        num_heads=2,
        hidden_dim=16,
        intermediate_dim=32,
        max_sequence_length=32,
    )
    return backbone, tokenizer


def make_model(
    arm: Arm, settings: Settings, *, classes: int, private_classes: int, seed: int
) -> PrivateTextModel:
    """Builds and compiles the untrained model of an arm.

    Args:
        arm: Arm.
        settings: Settings.
        classes: of the label it is trained on.
        private_classes: of the private label.
        seed: of initialisation and the order of batches, never of noise.
    """
    keras.utils.set_random_seed(seed)
    shared = {
        "num_classes": classes,
        "num_private_classes": private_classes,
        "seed": seed,
    }
    nominal = {"nominal_epsilon": settings.nominal_epsilon}
    rate, weight = settings.learning_rate, 0.0
    method: type[PrivateTextModel] = RMAT
    if arm.method == "none":
        method, own = Unprotected, {}
    elif arm.method == "dpnr":
        method, own = DPNR, {**nominal, "mask_rate": settings.mask_rate}
    elif arm.method == "ads":
        method, own, weight = ADS, {}, settings.adversary_weights["ads"]
    elif arm.method == "cape":
        method, own, weight = CAPE, nominal, settings.adversary_weights["cape"]
        rate = settings.cape_learning_rate
    elif arm.method == "front":
        own = {
            "nominal_epsilon": arm.epsilon,
            "mask_rate": arm.mask_rate,
            "scale": "min_max",
        }
        weight = arm.adversary_weight
    elif arm.method == "rmat" and arm.epsilon is None:
        own = {**nominal, "mask_rate": settings.mask_rate, "scale": "min_max"}
        weight = settings.adversary_weights["rmat"]
    elif arm.method in CODES:
        # A classifier whose logits are the representation: `code_of` makes a code.
        method = Unprotected
        own = {"dimension": classes, "hidden_units": None, "dropout": 0.0}
    else:
        own = {
            "epsilon": arm.epsilon,
            "mask_rate": settings.certified_mask_rate,
            "scale": "l1" if arm.method == "l1" else "code",
        }
        if arm.method == "l1":
            own["dimension"] = settings.l1_dimension
        weight = settings.certified_adversary_weight
    model = method(*load_backbone(settings.preset), **shared, **own)
    if arm.method in CODES:
        _make_identity(model)
    model.compile(keras.optimizers.AdamW(rate), adversary_weight=weight)
    return model


def code_of(classifier: PrivateTextModel, epsilon: float) -> RMAT:
    """The model that releases a classifier's prediction as a code at an epsilon.

    It shares the classifier's weights: a certificate holds for any encoder, so that
    one training serves every epsilon. Code k stands for class k.

    Args:
        classifier: from `make_model`, of the arms "code" and "second".
        epsilon: certified, of one release.
    """
    model = RMAT(
        classifier.backbone,
        classifier.tokenizer,
        num_classes=classifier.num_classes,
        num_private_classes=classifier.num_private_classes,
        epsilon=epsilon,
        scale="code",
        mask_rate=0.0,
        max_length=classifier.design.max_length,
    )
    pairs = zip(model.encoder.projection, classifier.encoder.projection, strict=True)
    for copy, layer in pairs:
        copy.set_weights(layer.get_weights())
    _make_identity(model)
    return model


def silent_codes(
    classifier: PrivateTextModel, *parts: Sequence[str]
) -> tuple[np.ndarray, ...]:
    """Returns each text's code before randomised response, one-hot (n, K) a part.

    They are no release.
    """
    model = code_of(classifier, _SILENT)
    return tuple(model.encode(texts) for texts in parts)


def _make_identity(model: PrivateTextModel) -> None:
    """Fixes the task head: what is represented is the logits of the classes."""
    head = model.task_head.layers[-1]
    head.set_weights([np.eye(model.num_classes), np.zeros(model.num_classes)])
    head.trainable = False
