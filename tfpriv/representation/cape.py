"""CAPE: noise on a frozen BERT, then adversarial layers (Plant et al. 2021)."""

from __future__ import annotations

from typing import Any

import keras

from tfpriv.representation.design import ReleaseDesign
from tfpriv.representation.presets import width_of
from tfpriv.representation.text_model import PrivateTextModel


@keras.saving.register_keras_serializable(package="tfpriv")
class CAPE(PrivateTextModel):
    """The mean of a frozen BERT, min-max, Laplace noise, two dense layers, reversal.

    The dense layers stand behind the noise: what they give is the release.

    Args:
        backbone, preprocessor, num_classes, num_private_classes: see
            `PrivateTextModel`.
        nominal_epsilon: noise of scale 1/epsilon; 1 if `epsilon` is not given.
        epsilon: certified instead.
        post_units: widths of the dense layers.
        scale, pooling, max_length: see `ReleaseDesign`.
        dropout, seed: see `PrivateTextModel`.

    Raises:
        InputError: a setting that cannot be used.
    """

    method = "CAPE"

    def __init__(
        self,
        backbone: keras.Model,
        preprocessor: Any,
        *,
        num_classes: int,
        num_private_classes: int,
        epsilon: float | None = None,
        nominal_epsilon: float | None = None,
        scale: str = "min_max",
        post_units: tuple[int, ...] = (256, 256),
        pooling: str = "mean",
        max_length: int = 32,
        train_backbone: bool = False,
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
                dimension=width_of(backbone),
                epsilon=epsilon,
                nominal_epsilon=nominal_epsilon,
                scale=scale,
                pooling=pooling,
                hidden_units=0,
                post_units=post_units,
                max_length=max_length,
                train_backbone=train_backbone,
            ),
            num_classes=num_classes,
            num_private_classes=num_private_classes,
            objective="reversal",
            dropout=dropout,
            seed=seed,
            **kwargs,
        )
