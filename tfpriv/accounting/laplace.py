"""What a released representation of a text costs the person who wrote it."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from tfpriv._errors import InputError
from tfpriv._validation import integer, non_negative, one_of, positive
from tfpriv.accounting.events import ApproxDP, Event, PureDP
from tfpriv.accounting.laplace_figures import (
    CertifiedFigure,
    figures_of,
    side_by_side,
)
from tfpriv.accounting.masking import (
    MASK_MODES,
    MASK_UNITS,
    TRUNCATIONS,
    check_lengths,
    check_mask_rate,
    claimable_probability,
    masking_amplification,
)

DOMAINS = ("unit_box", "l1_ball", "code")
SCHEMA_VERSION = 1


@dataclasses.dataclass(frozen=True)
class ReleaseCost:
    """What several releases of one text cost together.

    Attributes:
        releases: how many, each with a mask and noise of its own.
        record_epsilon: for any two texts.
        word_epsilon: for texts of equal length that differ in one word.
        delta: beside either.
    """

    releases: int
    record_epsilon: float
    word_epsilon: float
    delta: float


@dataclasses.dataclass(frozen=True)
class LaplaceCertificate:
    """The price of releasing one text's representation, claimed and certified.

    A text loses some words to a mask, an encoder makes a vector of the rest, the
    vector is brought into a bounded domain and every coordinate gets Laplace noise
    of its own; or the encoder chooses one of K symbols, which goes through
    randomised response. The certificate is about the text that is encoded: it holds
    for any encoder, and says nothing about the texts an encoder was trained on.

    Two texts are neighbours at record level whatever they are, at word level if
    they have the same number of words and differ in one of them.

    >>> paper = LaplaceCertificate.nominal(1.0, 384, mask_rate=0.5, mask_mode="exact",
    ...                                    lengths=(8, 32))
    >>> round(paper.claimed_epsilon, 3), paper.record_epsilon
    (0.62, 384.0)
    >>> ball = LaplaceCertificate.from_epsilon(4.0, 16, "l1_ball", radius=1.0)
    >>> ball.scale, ball.record_epsilon
    (0.5, 4.0)

    Attributes:
        dimension: int. Coordinates of the vector; for a code, number of symbols K.
        scale: float. Of the Laplace noise on every coordinate; None for a code.
        domain: str. "unit_box", all of [0, 1]^d (min-max scaling too: its vectors
            reach the L1 distance d); "l1_ball", L1 norm up to `radius`; "code".
        radius: float. Of the L1 ball; None elsewhere.
        code_epsilon: float. Of the randomised response; None elsewhere.
        mask_rate: float in [0, 1). Share mu of the words that is masked.
        mask_mode: str. "exact", floor(mu * D) of D words, each set of that size
            equally likely; "bernoulli", each word independently; None without mask.
        mask_unit: str. "words": a masked word leaves one [MASK]; "pieces": one for
            every word-piece, which shows how many there were.
        truncation: str. "words": texts fit the encoder's window, or are cut by
            number of words before they are masked; "pieces": cut by number of
            word-pieces, so that one word may push others in or out.
        lengths: (int, int). Fewest and most words of the texts that the figures at
            word level are about, as the encoder reads them; None if unknown. Nothing
            here refuses a text of another length: it has the record-level figure.
        nominal_epsilon: float. In the papers' reading the scale is its reciprocal.
        slack: float. What the sampler of the noise adds to epsilon in one release.
        tail_delta: float. The delta of one release, since a sampler cuts off the
            tails of the noise: with the slack, one release over all coordinates is
            (record_epsilon, tail_delta)-private. A total variation of t between the
            sampler and its ideal is not enough: that takes (1 + e^epsilon) t.

    Raises:
        InputError: a value out of range, or values that contradict each other.
    """

    dimension: int
    scale: float | None
    domain: str = "unit_box"
    radius: float | None = None
    code_epsilon: float | None = None
    mask_rate: float = 0.0
    mask_mode: str | None = None
    mask_unit: str = "words"
    truncation: str = "words"
    lengths: tuple[int, int] | None = None
    nominal_epsilon: float | None = None
    slack: float = 0.0
    tail_delta: float = 0.0

    def __post_init__(self) -> None:
        one_of(DOMAINS, domain=self.domain)
        integer(2 if self.domain == "code" else 1, dimension=self.dimension)
        for name, domains in _NEEDED.items():
            value = getattr(self, name)
            if self.domain in domains:
                positive(**{name: value})
            elif value is not None:
                raise InputError(
                    f"Expected no {name} for domain={self.domain!r}, received "
                    f"{name}={value!r}. Leave it out."
                )
        self._check_mask()
        non_negative(slack=self.slack, tail_delta=self.tail_delta)
        if self.tail_delta >= 1:
            raise InputError(
                f"Expected 0 <= tail_delta < 1, received tail_delta={self.tail_delta}."
            )
        if self.nominal_epsilon is not None:
            positive(nominal_epsilon=self.nominal_epsilon)
            product = self.nominal_epsilon * (self.scale or 0.0)
            if not math.isclose(product, 1, rel_tol=1e-6):
                raise InputError(
                    f"Expected scale = 1 / nominal_epsilon = "
                    f"{1 / self.nominal_epsilon:g}, received scale={self.scale}. Leave "
                    "nominal_epsilon out where the scale was chosen otherwise."
                )
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value is not None and field.name not in _NOT_FLOATS:
                object.__setattr__(self, field.name, float(value))
        object.__setattr__(self, "dimension", int(self.dimension))
        if not math.isfinite(self.record_epsilon):
            raise InputError(
                "Expected noise that some finite epsilon describes, received "
                f"scale={self.scale}. Use a larger one."
            )

    def _check_mask(self) -> None:
        check_mask_rate(self.mask_rate)
        one_of(MASK_UNITS, mask_unit=self.mask_unit)
        one_of(TRUNCATIONS, truncation=self.truncation)
        check_lengths(self.lengths)
        if self.mask_mode is not None:
            one_of(MASK_MODES, mask_mode=self.mask_mode)
        elif self.mask_rate > 0:
            raise InputError(
                "Expected mask_mode 'exact' or 'bernoulli' with "
                f"mask_rate={self.mask_rate}, received None."
            )
        if self.lengths is not None:
            lengths = (int(self.lengths[0]), int(self.lengths[1]))
            object.__setattr__(self, "lengths", lengths)

    @classmethod
    def from_epsilon(
        cls,
        epsilon: float,
        dimension: int,
        domain: str = "l1_ball",
        *,
        radius: float | None = None,
        slack: float = 0.0,
        **settings: Any,
    ) -> LaplaceCertificate:
        """Finds the least noise whose certified record epsilon is within a budget.

        Args:
            epsilon: the budget for one release, never exceeded.
            dimension: coordinates, or symbols of a code.
            domain: as above.
            radius: of an L1 ball.
            slack: as above; it has to fit into the budget.
            **settings: the other attributes.

        Raises:
            InputError: a bad value, or a budget that the slack uses up.
        """
        positive(epsilon=epsilon)
        non_negative(slack=slack)
        if not epsilon > slack:
            raise InputError(
                f"Expected epsilon above slack={slack}, received epsilon={epsilon}."
            )
        settings |= {"domain": domain, "radius": radius, "slack": slack}
        if domain == "code":
            code_epsilon = float(epsilon) - slack
            while code_epsilon + slack > epsilon:
                code_epsilon = math.nextafter(code_epsilon, 0)
            return cls(dimension, None, code_epsilon=code_epsilon, **settings)
        sensitivity = cls(dimension, 1.0, domain, radius).l1_sensitivity
        scale = _smallest_scale(sensitivity, float(epsilon), float(slack))
        return cls(dimension, scale, **settings)

    @classmethod
    def nominal(
        cls,
        nominal_epsilon: float,
        dimension: int,
        domain: str = "unit_box",
        **settings: Any,
    ) -> LaplaceCertificate:
        """Takes the scale 1 / nominal_epsilon, as the papers do.

        Args:
            nominal_epsilon: the papers' epsilon.
            dimension: coordinates of the vector.
            domain: "unit_box" or "l1_ball".
            **settings: the other attributes.

        Raises:
            InputError: a bad value.
        """
        positive(nominal_epsilon=nominal_epsilon)
        scale = 1 / float(nominal_epsilon)
        return cls(
            dimension, scale, domain, nominal_epsilon=nominal_epsilon, **settings
        )

    @property
    def claimed_epsilon(self) -> float | None:
        """The papers' figure; None where the scale was not chosen their way."""
        if self.nominal_epsilon is None:
            return None
        return masking_amplification(self.nominal_epsilon, self.mask_rate)

    @property
    def l1_sensitivity(self) -> float | None:
        """Most that two texts' vectors differ, in L1 norm; None for a code."""
        if self.domain == "code":
            return None
        if self.domain == "l1_ball":
            return 2 * self.radius
        return float(self.dimension)

    @property
    def record_epsilon(self) -> float:
        """Certified for one release and any two texts."""
        if self.domain == "code":
            return self.code_epsilon + self.slack
        return self.l1_sensitivity / self.scale + self.slack

    @property
    def word_epsilon(self) -> float:
        """Certified for one release and texts that differ in one word."""
        return self.words_epsilon(1)

    @property
    def delta(self) -> float:
        """Beside either certified epsilon; 0 for a sampler without cut-off tails.

        At word level masking would take a little off it, too.
        """
        return self.tail_delta

    @property
    def claim_holds(self) -> bool:
        """Whether the certified word epsilon is no larger than the claimed one."""
        claim = self.claimed_epsilon
        return claim is None or self.word_epsilon <= claim * (1 + 1e-9)

    def words_epsilon(self, changed: int) -> float:
        """Certified for one release and texts that differ in up to `changed` words.

        Args:
            changed: at least 1. The texts have the same number of words.

        Raises:
            InputError: not a whole number of at least 1.
        """
        integer(changed=changed)
        together, _ = self.masked_together(changed)
        return masking_amplification(self.record_epsilon, together)

    def masked_together(self, changed: int) -> tuple[float, str]:
        """Returns the least probability that all differing words are masked.

        Args:
            changed: at least 1; up to so many words differ.

        Returns:
            (the probability that may be claimed, under which condition or why not).
        """
        return claimable_probability(
            changed,
            self.mask_rate,
            self.mask_mode,
            mask_unit=self.mask_unit,
            truncation=self.truncation,
            lengths=self.lengths,
        )

    def compose(self, releases: int) -> ReleaseCost:
        """Returns what so many releases of one text cost: so many times as much.

        Fresh noise averages out (basic composition, Dwork et al. 2006).

        Args:
            releases: at least 1, each with a mask and noise of its own.

        Raises:
            InputError: not a whole number of at least 1.
        """
        integer(releases=releases)
        delta = releases * self.delta
        if delta >= 1:
            return ReleaseCost(int(releases), math.inf, math.inf, 1.0)
        return ReleaseCost(
            int(releases),
            releases * self.record_epsilon,
            releases * self.word_epsilon,
            delta,
        )

    def event(self, releases: int = 1) -> Event:
        """Returns the event for the people whose texts are encoded.

        At record level: one text replaced by any other. It is no charge on the
        records that an encoder was trained on.

        Args:
            releases: of every text, at least 1.
        """
        integer(releases=releases)
        if self.delta > 0:
            return ApproxDP(self.record_epsilon, self.delta, releases)
        return PureDP(self.record_epsilon, releases)

    def explain(self) -> list[CertifiedFigure]:
        """Returns every figure with its formula, source and condition."""
        return figures_of(self)

    def to_json(self) -> dict[str, Any]:
        """Returns `schema_version`, `parameters` (the attributes) and `figures`."""
        parameters = dataclasses.asdict(self)
        if self.lengths is not None:
            parameters["lengths"] = list(self.lengths)
        return {
            "schema_version": SCHEMA_VERSION,
            "parameters": parameters,
            "figures": [figure.to_json() for figure in self.explain()],
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> LaplaceCertificate:
        """Builds the certificate again; its figures are computed anew.

        Raises:
            InputError: another schema version, or parameters that are missing,
                unknown or malformed.
        """
        try:
            if value["schema_version"] != SCHEMA_VERSION:
                raise InputError(
                    f"Expected a certificate of version {SCHEMA_VERSION}, received "
                    f"version {value['schema_version']!r}."
                )
            return cls(**value["parameters"])
        except (KeyError, TypeError) as error:
            raise InputError(
                f"Expected the JSON of a certificate, received none: {error}."
            ) from None

    def __str__(self) -> str:
        return side_by_side(self)


_NEEDED = {
    "scale": ("unit_box", "l1_ball"),
    "radius": ("l1_ball",),
    "code_epsilon": ("code",),
}
_NOT_FLOATS = frozenset(
    {"dimension", "domain", "mask_mode", "mask_unit", "truncation", "lengths"}
)


def _smallest_scale(sensitivity: float, epsilon: float, slack: float) -> float:
    """The smallest float s with sensitivity / s + slack <= epsilon, as computed."""
    low = high = max(sensitivity / (epsilon - slack), 1e-300)
    if math.isinf(high):
        raise InputError(
            f"Expected an epsilon that some scale meets, received epsilon={epsilon}."
        )
    while sensitivity / high + slack > epsilon:
        high *= 2
    while low > 0 and sensitivity / low + slack <= epsilon:
        low /= 2
    if not 0 < low < high < math.inf:
        raise InputError(
            f"Expected an epsilon that some scale meets, received epsilon={epsilon} "
            f"with sensitivity {sensitivity} and slack={slack}."
        )
    while low < (middle := low + (high - low) / 2) < high:
        if sensitivity / middle + slack <= epsilon:
            high = middle
        else:
            low = middle
    return high
