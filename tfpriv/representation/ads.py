"""ADS: an adversarial scrubber without noise (Basu Roy Chowdhury et al. 2021)."""

from __future__ import annotations

from typing import Any

import keras

from tfpriv.representation.design import ReleaseDesign
from tfpriv.representation.presets import width_of
from tfpriv.representation.text_model import PrivateTextModel


@keras.saving.register_keras_serializable(package="tfpriv")
class ADS(PrivateTextModel):
    """A BERT and a scrubber of two dense layers that leaves an adversary unsure.

    Nothing is masked and no noise is added, so a release has no guarantee.

    Args:
        backbone, preprocessor, num_classes, num_private_classes: see
            `PrivateTextModel`.
        dimension: of the representation; None is the backbone's width.
        pooling, hidden_units, max_length, train_backbone: see `ReleaseDesign`.
        dropout, seed: see `PrivateTextModel`.

    Raises:
        InputError: a setting that cannot be used.
    """

    method = "ADS"

    def __init__(
        self,
        backbone: keras.Model,
        preprocessor: Any,
        *,
        num_classes: int,
        num_private_classes: int,
        dimension: int | None = None,
        pooling: str = "mean",
        hidden_units: int | None = None,
        max_length: int = 32,
        train_backbone: bool = True,
        dropout: float = 0.1,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            backbone,
            preprocessor,
            design=ReleaseDesign(
                dimension=width_of(backbone) if dimension is None else dimension,
                scale=None,
                pooling=pooling,
                hidden_units=hidden_units,
                max_length=max_length,
                train_backbone=train_backbone,
            ),
            num_classes=num_classes,
            num_private_classes=num_private_classes,
            objective="entropy",
            dropout=dropout,
            seed=seed,
            **kwargs,
        )
