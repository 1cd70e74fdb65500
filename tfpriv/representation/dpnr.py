"""DPNR: word dropout and noise, no adversary (Lyu et al. 2020)."""

from __future__ import annotations

from typing import Any

import keras

from tfpriv.representation.design import ReleaseDesign
from tfpriv.representation.presets import width_of
from tfpriv.representation.text_model import PrivateTextModel


@keras.saving.register_keras_serializable(package="tfpriv")
class DPNR(PrivateTextModel):
    """Each word dropped by chance, a BERT, min-max, Laplace noise.

    Args:
        backbone, preprocessor, num_classes: see `PrivateTextModel`.
        num_private_classes: of an attribute nobody is trained on; may be None.
        nominal_epsilon: noise of scale 1/epsilon; 1 if `epsilon` is not given.
        epsilon: certified instead.
        mask_rate: chance of a word to be masked.
        pooling, scale, dimension, hidden_units, max_length, train_backbone: see
            `ReleaseDesign`; hidden_units 0 releases the backbone's own vector.
        dropout, seed: see `PrivateTextModel`.

    Raises:
        InputError: a setting that cannot be used.
    """

    method = "DPNR"

    def __init__(
        self,
        backbone: keras.Model,
        preprocessor: Any,
        *,
        num_classes: int,
        num_private_classes: int | None = None,
        epsilon: float | None = None,
        nominal_epsilon: float | None = None,
        scale: str = "min_max",
        dimension: int | None = None,
        mask_rate: float = 0.1,
        pooling: str = "mean",
        hidden_units: int = 0,
        max_length: int = 32,
        train_backbone: bool = True,
        dropout: float = 0.1,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        if epsilon is None and nominal_epsilon is None:
            nominal_epsilon = 1.0
        super().__init__(
            backbone,
            preprocessor,
            design=ReleaseDesign(
                dimension=width_of(backbone) if dimension is None else dimension,
                epsilon=epsilon,
                nominal_epsilon=nominal_epsilon,
                scale=scale,
                mask_rate=mask_rate,
                mask_mode="bernoulli",
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
