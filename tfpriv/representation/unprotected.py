"""The control: a fine-tuned BERT whose representation nothing protects."""

from __future__ import annotations

from typing import Any

import keras

from tfpriv.representation.design import ReleaseDesign
from tfpriv.representation.presets import width_of
from tfpriv.representation.text_model import PrivateTextModel


@keras.saving.register_keras_serializable(package="tfpriv")
class Unprotected(PrivateTextModel):
    """A BERT and a task head: no mask, no noise, no adversary, no guarantee.

    Args:
        backbone, preprocessor, num_classes: see `PrivateTextModel`.
        num_private_classes: of an attribute nobody is trained on; may be None.
        dimension: of the representation; None is the backbone's width.
        pooling, hidden_units, max_length, train_backbone: see `ReleaseDesign`;
            hidden_units 0 releases the backbone's own vector.
        dropout, seed: see `PrivateTextModel`.

    Raises:
        InputError: a setting that cannot be used.
    """

    method = "none"

    def __init__(
        self,
        backbone: keras.Model,
        preprocessor: Any,
        *,
        num_classes: int,
        num_private_classes: int | None = None,
        dimension: int | None = None,
        pooling: str = "mean",
        hidden_units: int = 0,
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
            dropout=dropout,
            seed=seed,
            **kwargs,
        )
