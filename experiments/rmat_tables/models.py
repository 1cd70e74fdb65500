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

# Trained once, released at each certified epsilon.
CODES = ("code", "second")
# Of the noise the heads of codes learn; the encoder learns codes as a classifier does.
_TRAINED_AT = 4.0
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
    arm: Arm,
    settings: Settings,
    *,
    classes: int,
    private_classes: int,
    steps: int,
    seed: int,
) -> PrivateTextModel:
    """Builds and compiles the untrained model of an arm.

    Args:
        arm: Arm.
        settings: Settings.
        classes: of the label it is trained on.
        private_classes: of the private label.
        steps: of training, over which the learning rate falls.
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
        own = {"epsilon": _TRAINED_AT, "scale": "code"}
        own["mask_rate"] = settings.certified_mask_rate
        weight = settings.certified_adversary_weight
    else:
        own = {"epsilon": arm.epsilon, "scale": "l1"}
        own["mask_rate"] = settings.certified_mask_rate
        own["dimension"] = settings.l1_dimension
        weight = settings.certified_adversary_weight
    model = method(*load_backbone(settings.preset), **shared, **own)
    warmup = int(settings.warmup * steps)
    schedule = keras.optimizers.schedules.CosineDecay(
        0.0, steps - warmup, warmup_target=rate, warmup_steps=warmup
    )
    model.compile(keras.optimizers.AdamW(schedule), adversary_weight=weight)
    return model


def at_epsilon(trained: PrivateTextModel, epsilon: float) -> RMAT:
    """The same encoder, its codes released at another epsilon.

    A certificate holds for any encoder, so that one training serves every epsilon.

    Args:
        trained: from `make_model`, of the arms "code" and "second".
        epsilon: certified, of one release.
    """
    model = RMAT(
        trained.backbone,
        trained.tokenizer,
        num_classes=trained.num_classes,
        num_private_classes=trained.num_private_classes,
        epsilon=epsilon,
        scale="code",
        mask_rate=trained.design.mask_rate,
        max_length=trained.design.max_length,
    )
    pairs = zip(model.encoder.projection, trained.encoder.projection, strict=True)
    for copy, layer in pairs:
        copy.set_weights(layer.get_weights())
    return model


def silent_codes(
    trained: PrivateTextModel, *parts: Sequence[str]
) -> tuple[np.ndarray, ...]:
    """Returns each text's code before randomised response, one-hot (n, K) a part.

    They are no release.
    """
    model = at_epsilon(trained, _SILENT)
    return tuple(model.encode(texts) for texts in parts)
