"""What stands between a text and its released representation, as plain settings."""

from __future__ import annotations

import dataclasses

from tfpriv._errors import InputError
from tfpriv._validation import boolean, integer, one_of, positive
from tfpriv.accounting import LaplaceCertificate
from tfpriv.accounting.masking import check_mask_rate

SCALES = ("l1", "min_max", "code", None)
POOLINGS = ("mean", "cls", "pooled")
MASK_MODES = ("exact", "bernoulli")


@dataclasses.dataclass(frozen=True)
class ReleaseDesign:
    """The mechanism of an encoder; everything its certificate depends on.

    Attributes:
        dimension: coordinates d of the bounded vector, or number of codes K.
        epsilon: certified, of one release of one text: whatever the text is replaced
            with. None without noise or with `nominal_epsilon`.
        nominal_epsilon: the papers' reading, Laplace noise of scale 1/epsilon; what
            is certified follows from it.
        scale: how the vector is bounded before noise: "l1" (into an L1 ball), "min_max"
            (per record to [0, 1], as the papers do), "code" (the nearest of K codes,
            sent through randomised response) or None: no noise and no guarantee.
        radius: of the L1 ball.
        mask_rate: share of the words that is masked, in [0, 1).
        mask_mode: "exact" (floor(mask_rate * D) of D words) or "bernoulli".
        mask_unit: "words" or "pieces".
        mask_replacement: "mask" ([MASK]) or "zero", as in the paper.
        pooling: "mean", "cls" or "pooled".
        hidden_units: width of the first of the two dense layers; None is the
            backbone's, 0 leaves the dense layers out.
        post_units: dense layers behind the noise that are part of the release.
        max_length: word pieces that the backbone reads, [CLS] and [SEP] included.
        train_backbone: whether the backbone is fine-tuned.

    Raises:
        InputError: a value that cannot be used.
    """

    dimension: int
    epsilon: float | None = None
    nominal_epsilon: float | None = None
    scale: str | None = "l1"
    radius: float = 1.0
    mask_rate: float = 0.0
    mask_mode: str = "exact"
    mask_unit: str = "words"
    mask_replacement: str = "mask"
    pooling: str = "mean"
    hidden_units: int | None = None
    post_units: tuple[int, ...] = ()
    max_length: int = 32
    train_backbone: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.post_units, tuple | list):
            raise InputError(
                "Expected post_units as a tuple of widths, received "
                f"{self.post_units!r}."
            )
        object.__setattr__(self, "post_units", tuple(self.post_units))
        one_of(SCALES, scale=self.scale)
        one_of(POOLINGS, pooling=self.pooling)
        one_of(MASK_MODES, mask_mode=self.mask_mode)
        one_of(("words", "pieces"), mask_unit=self.mask_unit)
        one_of(("mask", "zero"), mask_replacement=self.mask_replacement)
        integer(2 if self.scale == "code" else 1, dimension=self.dimension)
        integer(3, max_length=self.max_length)
        positive(radius=self.radius)
        if self.hidden_units is not None:
            integer(0, hidden_units=self.hidden_units)
        integer(**{f"post_units {i}": n for i, n in enumerate(self.post_units)})
        check_mask_rate(self.mask_rate)
        boolean(train_backbone=self.train_backbone)
        if self.scale == "code" and self.post_units:
            raise InputError(
                "Expected no dense layers behind a code, received "
                f"post_units={self.post_units}. Use scale='min_max' or 'l1'."
            )
        given = [e for e in (self.epsilon, self.nominal_epsilon) if e is not None]
        if self.scale is None and given:
            raise InputError(
                f"Expected no epsilon without noise, received {given[0]}. Give scale "
                "as well: l1, min_max or code."
            )
        if self.scale is not None and len(given) != 1:
            raise InputError(
                f"Expected epsilon (certified) or nominal_epsilon (the papers' "
                f"reading), one of them, received {len(given)}."
            )
        if self.scale == "code" and self.nominal_epsilon is not None:
            raise InputError(
                "Expected epsilon with scale='code', received nominal_epsilon: no "
                "paper has it."
            )
        for value in given:
            positive(epsilon=value)

    @property
    def max_words(self) -> int:
        """Words that are read: those after it are cut off before masking."""
        return self.max_length - 2

    @property
    def noise_scale(self) -> float | None:
        """Scale of the Laplace noise on every coordinate; None where there is none."""
        certificate = self.certificate()
        return certificate.scale if certificate else None

    def certificate(
        self,
        lengths: tuple[int, int] | None = None,
        *,
        tail_delta: float = 0.0,
    ) -> LaplaceCertificate | None:
        """Returns what one release costs; None if there is no noise.

        Args:
            lengths: smallest and largest number of words of the texts, if known.
            tail_delta: of the sampler of the noise.
        """
        if self.scale is None:
            return None
        settings = {
            "mask_rate": self.mask_rate,
            "mask_mode": self.mask_mode if self.mask_rate else None,
            "mask_unit": self.mask_unit,
            # Whole words are cut before the mask, pieces only after it.
            "truncation": "words" if self.mask_unit == "words" else "pieces",
            "lengths": lengths and tuple(min(n, self.max_words) for n in lengths),
            "radius": self.radius if self.scale == "l1" else None,
            "tail_delta": tail_delta,
        }
        domain = _DOMAINS[self.scale]
        if self.epsilon is None:
            return LaplaceCertificate.nominal(
                self.nominal_epsilon, self.dimension, domain, **settings
            )
        return LaplaceCertificate.from_epsilon(
            self.epsilon, self.dimension, domain, **settings
        )


_DOMAINS = {"l1": "l1_ball", "min_max": "unit_box", "code": "code"}
