"""A certificate in words: every figure with its formula, source and condition."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from tfpriv._figures import as_given, rounded_up

if TYPE_CHECKING:
    from tfpriv.accounting.laplace import LaplaceCertificate

_LAPLACE = "Dwork, McSherry, Nissim & Smith 2006 (Laplace mechanism)"
_RESPONSE = "Kairouz, Bonawitz & Ramage 2016 (k-ary randomised response)"
_BALLE = "Balle, Barthe & Gaboardi 2018, theorem 2 (advanced joint convexity)"
_RMAT = "Wu & Luo 2023 (RMAT)"


@dataclasses.dataclass(frozen=True)
class CertifiedFigure:
    """One number of a certificate, with what it rests on.

    Attributes:
        name: "record_epsilon", ...
        value: the number.
        formula: how it was computed.
        source: where that is proven; for a claim, where it is claimed.
        condition: when it holds, in words.
    """

    name: str
    value: float
    formula: str
    source: str
    condition: str

    def to_json(self) -> dict[str, Any]:
        """Returns the fields as plain JSON."""
        return dataclasses.asdict(self)


def figures_of(certificate: LaplaceCertificate) -> list[CertifiedFigure]:
    """Returns every figure of a certificate."""
    figures = []
    if certificate.claimed_epsilon is not None:
        figures.append(
            CertifiedFigure(
                "claimed_epsilon",
                certificate.claimed_epsilon,
                "ln[(1 - mu) e^epsilon + mu], epsilon = 1 / scale",
                _RMAT,
                "takes the L1 sensitivity of the vector to be 1, where it is "
                f"{certificate.l1_sensitivity:g}, and every text to have a share mu of "
                "its words masked: a claim, not a guarantee",
            )
        )
    if certificate.l1_sensitivity is not None:
        box = certificate.domain == "unit_box"
        figures.append(
            CertifiedFigure(
                "l1_sensitivity",
                certificate.l1_sensitivity,
                "d" if box else "2 * radius",
                "the vectors (0, ..., 0) and (1, ..., 1); after min-max scaling "
                "(0, 1, ...) and (1, 0, ...) from d = 2 on"
                if box
                else "triangle inequality, attained by opposite vertices",
                "any two vectors of the domain, which is enforced",
            )
        )
    code = certificate.domain == "code"
    figures.append(
        CertifiedFigure(
            "record_epsilon",
            certificate.record_epsilon,
            "epsilon of the randomised response + slack"
            if code
            else "l1_sensitivity / scale + slack",
            _RESPONSE if code else _LAPLACE,
            "any two texts; one release, with a draw of its own"
            + ("" if code else " for every coordinate")
            + (", and delta beside it" if certificate.delta else ""),
        )
    )
    together, condition = certificate.masked_together(1)
    figures.append(
        CertifiedFigure(
            "word_epsilon",
            certificate.word_epsilon,
            f"ln(r + (1 - r) e^record_epsilon), r = {together:.6g}"
            if together
            else "record_epsilon",
            _BALLE if together else "two such texts are any two texts",
            condition,
        )
    )
    figures.append(
        CertifiedFigure(
            "delta",
            certificate.delta,
            "tail_delta" if certificate.delta else "0",
            "the sampler of the noise: outputs beyond its cut-off tails for the other "
            "text; masking never adds to it (Balle, Barthe & Gaboardi 2018, theorem 2)",
            "beside either certified epsilon",
        )
    )
    return figures


def side_by_side(certificate: LaplaceCertificate) -> str:
    """Returns for a person what the papers claim, if they do, and what is certified.

    Figures are rounded up: none is below what it stands for.
    """
    lines = []
    if certificate.claimed_epsilon is not None:
        verdict = "" if certificate.claim_holds else "; NOT what is certified"
        lines.append(
            f"Claimed:   epsilon {rounded_up(certificate.claimed_epsilon)} per "
            "release, for texts that differ in one word (nominal epsilon "
            f"{as_given(certificate.nominal_epsilon)}, mask rate "
            f"{certificate.mask_rate:g}, sensitivity taken as 1{verdict})"
        )
    delta = certificate.delta
    beside = f" at delta {rounded_up(delta, 2)}" if delta else ""
    certified = (
        f"Certified: epsilon {rounded_up(certificate.record_epsilon)}{beside} per "
        "release, for any two texts"
    )
    if certificate.word_epsilon < certificate.record_epsilon:
        certified += (
            f"; {rounded_up(certificate.word_epsilon)} for texts of equal length that "
            "differ in one word"
        )
    return "\n".join([*lines, certified])
