"""RMAT: random masking and adversarial training (Wu and Luo 2023)."""

from __future__ import annotations

from typing import Any, Self

import keras

from tfpriv._validation import integer
from tfpriv.representation.design import ReleaseDesign
from tfpriv.representation.presets import width_of
from tfpriv.representation.text_model import PrivateTextModel


@keras.saving.register_keras_serializable(package="tfpriv")
class RMAT(PrivateTextModel):
    """Masked words, a BERT, two dense layers, Laplace noise, an adversary.

    Args:
        backbone: `keras_nlp.models.BertBackbone`.
        preprocessor: its tokenizer, or a KerasNLP preprocessor.
        num_classes: of the task.
        num_private_classes: of the private attribute.
        epsilon: certified, of one release of one text at record level. 4 if neither
            this nor `nominal_epsilon` is given.
        nominal_epsilon: the papers' reading instead: noise of scale 1/epsilon.
        scale: "code", "l1" or "min_max" (the paper's); see `ReleaseDesign`. None is
            "code", or with `nominal_epsilon` "min_max".
        dimension: of the representation. None: `num_classes` with "l1" and "code",
            the backbone's width with "min_max".
        mask_rate, mask_mode, mask_unit, mask_replacement, pooling, hidden_units,
            radius, max_length, train_backbone: see `ReleaseDesign`.
        cap_adversary, dropout, seed: see `PrivateTextModel`.

    Raises:
        InputError: a setting that cannot be used.
    """

    method = "RMAT"

    def __init__(
        self,
        backbone: keras.Model,
        preprocessor: Any,
        *,
        num_classes: int,
        num_private_classes: int,
        epsilon: float | None = None,
        nominal_epsilon: float | None = None,
        scale: str | None = None,
        dimension: int | None = None,
        mask_rate: float = 0.1,
        mask_mode: str = "exact",
        mask_unit: str = "words",
        mask_replacement: str = "mask",
        pooling: str = "mean",
        hidden_units: int | None = None,
        radius: float = 1.0,
        max_length: int = 32,
        train_backbone: bool = True,
        cap_adversary: bool = True,
        dropout: float = 0.1,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        if epsilon is None and nominal_epsilon is None:
            epsilon = 4.0
        if scale is None:
            scale = "code" if nominal_epsilon is None else "min_max"
        integer(2, num_classes=num_classes)
        if dimension is None:
            wide = scale == "min_max"
            dimension = width_of(backbone) if wide else num_classes
        super().__init__(
            backbone,
            preprocessor,
            design=ReleaseDesign(
                dimension=dimension,
                epsilon=epsilon,
                nominal_epsilon=nominal_epsilon,
                scale=scale,
                radius=radius,
                mask_rate=mask_rate,
                mask_mode=mask_mode,
                mask_unit=mask_unit,
                mask_replacement=mask_replacement,
                pooling=pooling,
                hidden_units=hidden_units,
                max_length=max_length,
                train_backbone=train_backbone,
            ),
            num_classes=num_classes,
            num_private_classes=num_private_classes,
            objective="maximise",
            cap_adversary=cap_adversary,
            dropout=dropout,
            seed=seed,
            **kwargs,
        )

    @classmethod
    def paper(
        cls,
        preset: str | None = None,
        *,
        num_classes: int,
        num_private_classes: int,
        nominal_epsilon: float = 1.0,
        mask_rate: float = 0.1,
        **kwargs: Any,
    ) -> Self:
        """Builds and compiles the paper's model with the settings of ADS' code.

        Wu and Luo print no mask rate, epsilon or lambda; the rest is that of Basu Roy
        Chowdhury et al. (2021): pooled output, 32 pieces, lambda 10, AdamW at 2e-5
        with betas .5 and .999, dropout .1, to be trained for 3 epochs in batches of
        16. A masked word becomes zero, and the vector is as wide as the backbone.
        """
        settings = {
            "nominal_epsilon": nominal_epsilon,
            "mask_rate": mask_rate,
            "scale": "min_max",
            "mask_replacement": "zero",
            "pooling": "pooled",
            "cap_adversary": False,
            **kwargs,
        }
        model = cls.from_preset(
            preset,
            num_classes=num_classes,
            num_private_classes=num_private_classes,
            **settings,
        )
        adam = {"learning_rate": 2e-5, "beta_1": 0.5, "beta_2": 0.999}
        model.compile(
            keras.optimizers.AdamW(**adam),
            keras.optimizers.AdamW(**adam),
            adversary_weight=10.0,
        )
        return model
