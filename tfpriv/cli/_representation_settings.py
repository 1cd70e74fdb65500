"""How a representation is trained, as plain settings checked without TensorFlow."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from tfpriv._errors import InputError
from tfpriv._validation import integer, non_negative, one_of, positive

METHODS = ("rmat", "dpnr", "ads", "cape", "none")
SCALES = ("code", "l1", "min_max")
_MASK_MODES = ("exact", "bernoulli")
# Options that mean something to some methods only.
_NOISE = frozenset({"epsilon", "nominal_epsilon", "scale"})
_ADVERSARY = frozenset({"adversary_weight", "adversary_steps"})
_TAKES = {
    "rmat": _NOISE | _ADVERSARY | {"dimension", "mask_rate", "mask_mode"},
    "dpnr": _NOISE | {"dimension", "mask_rate"},
    "ads": _ADVERSARY | {"dimension"},
    "cape": _NOISE | _ADVERSARY,
    "none": frozenset({"dimension"}),
}
_OPTIONAL = _NOISE | _ADVERSARY | {"dimension", "mask_rate", "mask_mode"}
_CLASSES = {
    "rmat": "RMAT",
    "dpnr": "DPNR",
    "ads": "ADS",
    "cape": "CAPE",
    "none": "Unprotected",
}


@dataclasses.dataclass(frozen=True)
class RepresentationSettings:
    """What `tfpriv rmat train` trains; None where the method has no such setting.

    `complete` checks the values and fills in defaults: a certified epsilon of 4 with
    randomised response of a code for RMAT; the published noise, nominal epsilon 1 on
    min-max scaled vectors, for DPNR and CAPE.

    Attributes:
        method: one of `METHODS`.
        epsilon: certified at record level, per release.
        nominal_epsilon: the papers' reading, instead.
        scale: one of `SCALES`.
        mask_rate: in [0, 1).
        mask_mode: "exact" or "bernoulli".
        dimension: of the representation; None leaves it to the method.
        adversary_weight: lambda.
        adversary_steps: steps of the adversary a batch.
        epochs, batch_size, learning_rate: of training, AdamW.
        preset: name, handle or folder of a BERT; None is MiniLM.
        max_length: word pieces that are read, [CLS] and [SEP] included.
        seed: of initialisation and of the order of batches, not of noise.
    """

    method: str = "rmat"
    epsilon: float | None = None
    nominal_epsilon: float | None = None
    scale: str | None = None
    mask_rate: float | None = None
    mask_mode: str | None = None
    dimension: int | None = None
    adversary_weight: float | None = None
    adversary_steps: int | None = None
    epochs: int = 4
    batch_size: int = 32
    learning_rate: float = 2e-4
    preset: str | None = None
    max_length: int = 32
    seed: int = 0

    def complete(self) -> RepresentationSettings:
        """Returns the settings with the defaults of their method.

        Raises:
            InputError: a value out of range, or one that the method has no use for.
        """
        self._check()
        takes = _TAKES[self.method]
        filled: dict[str, Any] = {}
        if takes >= _NOISE:
            epsilon, nominal = self.epsilon, self.nominal_epsilon
            if epsilon is None and nominal is None:
                epsilon, nominal = (4.0, None) if self.method == "rmat" else (None, 1.0)
            code = self.method == "rmat" and epsilon is not None
            filled = {
                "epsilon": epsilon,
                "nominal_epsilon": nominal,
                "scale": self.scale or ("code" if code else "min_max"),
            }
            if filled["scale"] == "code" and nominal is not None:
                raise InputError(
                    "Expected --epsilon with --scale code, received --nominal-epsilon: "
                    "no paper has a code. Give --epsilon, or another scale."
                )
        if "mask_rate" in takes and self.mask_rate is None:
            filled["mask_rate"] = 0.1
        if "mask_mode" in takes and self.mask_mode is None:
            filled["mask_mode"] = "exact"
        if takes >= _ADVERSARY:
            filled["adversary_weight"] = (
                1.0 if self.adversary_weight is None else self.adversary_weight
            )
            filled["adversary_steps"] = self.adversary_steps or 1
        if self.preset is not None and Path(self.preset).expanduser().is_dir():
            filled["preset"] = str(Path(self.preset).expanduser().resolve())
        return dataclasses.replace(self, **filled)

    def to_json(self) -> dict[str, Any]:
        """Returns the fields as plain JSON."""
        return dataclasses.asdict(self)

    def build(
        self,
        num_classes: int,
        num_private_classes: int,
        *,
        public_labels: bool = False,
    ) -> Any:
        """Builds and compiles the model: imports TensorFlow.

        Args:
            num_classes: of the task.
            num_private_classes: of the private attribute.
            public_labels: whether the task's labels were declared public.

        Raises:
            InputError: a preset that lacks a file or is no BERT, or settings that do
                not fit it.
        """
        import keras

        from tfpriv import representation

        # Weights and dropout; masks and noise never follow a seed.
        keras.utils.set_random_seed(self.seed)
        model = getattr(representation, _CLASSES[self.method]).from_preset(
            self.preset,
            num_classes=num_classes,
            num_private_classes=num_private_classes,
            max_length=self.max_length,
            seed=self.seed,
            public_labels=public_labels,
            **self._arguments(),
        )
        adversary = {
            name: getattr(self, name) for name in _ADVERSARY & _TAKES[self.method]
        }
        model.compile(
            keras.optimizers.AdamW(self.learning_rate, weight_decay=0.01), **adversary
        )
        return model

    def _arguments(self) -> dict[str, Any]:
        """Those of the method's class alone."""
        takes = _TAKES[self.method] - _ADVERSARY
        arguments = {name: getattr(self, name) for name in takes}
        if self.dimension is not None and self.method in ("dpnr", "none"):
            # Without dense layers they release the backbone's own vector.
            arguments["hidden_units"] = None
        return arguments

    def _check(self) -> None:
        one_of(METHODS, method=self.method)
        for name in sorted(_OPTIONAL - _TAKES[self.method]):
            value = getattr(self, name)
            if value is not None:
                option = name.replace("_", "-")
                raise InputError(
                    f"Expected no --{option} with --method {self.method}, received "
                    f"{name}={value}. Leave it out, or choose another method."
                )
        for name in ("epsilon", "nominal_epsilon"):
            if getattr(self, name) is not None:
                positive(**{name: getattr(self, name)})
        if self.epsilon is not None and self.nominal_epsilon is not None:
            raise InputError(
                "Expected one of --epsilon (certified) and --nominal-epsilon (the "
                "papers' reading), received both."
            )
        if self.scale is not None:
            one_of(SCALES, scale=self.scale)
        if self.mask_mode is not None:
            one_of(_MASK_MODES, mask_mode=self.mask_mode)
        if self.mask_rate is not None:
            non_negative(mask_rate=self.mask_rate)
            if self.mask_rate >= 1:
                raise InputError(
                    f"Expected mask_rate from 0 to below 1, received {self.mask_rate}."
                )
        if self.dimension is not None:
            integer(dimension=self.dimension)
        if self.adversary_weight is not None:
            non_negative(adversary_weight=self.adversary_weight)
        if self.adversary_steps is not None:
            integer(adversary_steps=self.adversary_steps)
        integer(epochs=self.epochs, batch_size=self.batch_size)
        integer(3, max_length=self.max_length)
        positive(learning_rate=self.learning_rate)
        integer(0, seed=self.seed)
        if self.seed >= 2**32:
            raise InputError(f"Expected seed < 2**32, received seed={self.seed}.")
