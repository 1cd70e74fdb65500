"""What the release of a text's representation guarantees to who wrote the text."""

from __future__ import annotations

import importlib.metadata
import math
import os
from collections.abc import Sequence
from typing import Any

from tfpriv._errors import InputError
from tfpriv._figures import rounded_up
from tfpriv._files import PUBLIC, write_json
from tfpriv._validation import integer
from tfpriv._version import __version__
from tfpriv.accounting.events import Event, NonPrivate
from tfpriv.accounting.laplace import LaplaceCertificate

SCHEMA_VERSION = 1
KIND = "representation"


class RepresentationStatement:
    """The guarantee for a person whose text is encoded and whose vector is released.

    `PrivacyStatement` is about the records that went into a release, this about a
    text that a finished model encodes. The papers' claim stands beside what is
    certified, and what is not covered follows from the facts given.

    >>> certificate = LaplaceCertificate.from_epsilon(4.0, 16, radius=1.0)
    >>> statement = RepresentationStatement(
    ...     certificate, method="RMAT", encoder_trained_on_private_text=False,
    ...     randomness="the noise comes from a cryptographic generator")
    >>> statement.epsilon, statement.delta
    (4.0, 0.0)

    Args:
        certificate: of one release; None if nothing random is done to the vector.
        method: name of the method, "RMAT".
        encoder_trained_on_private_text: whether the encoder or the layers between
            it and the noise were fitted to private texts without a guarantee.
        randomness: what is assumed of the random numbers; may be empty only where
            there is no certificate.
        releases: of one text, each with a draw of its own.
        training_facts: what the release shows of the records that the encoder was
            trained on, covered by nothing, in words: "the number of labels ...".
        public: what was declared public, for the reader.

    Raises:
        InputError: a value of the wrong type, or no assumption about randomness.
    """

    def __init__(
        self,
        certificate: LaplaceCertificate | None,
        *,
        method: str,
        encoder_trained_on_private_text: bool,
        randomness: str = "",
        releases: int = 1,
        training_facts: Sequence[str] = (),
        public: Sequence[str] = (),
    ) -> None:
        if not isinstance(certificate, LaplaceCertificate | None):
            raise InputError(
                "Expected a LaplaceCertificate or None, received "
                f"{type(certificate).__name__}."
            )
        if not isinstance(method, str) or not method:
            raise InputError(f"Expected the name of a method, received {method!r}.")
        if not isinstance(encoder_trained_on_private_text, bool):
            raise InputError(
                "Expected True or False for encoder_trained_on_private_text, received "
                f"{encoder_trained_on_private_text!r}."
            )
        if not isinstance(randomness, str) or (certificate and not randomness):
            raise InputError(
                "Expected randomness to say what is assumed of the random numbers, "
                f"received {randomness!r}."
            )
        integer(releases=releases)
        self.training_facts = _texts("training_facts", training_facts)
        self.public = _texts("public", public)
        self.certificate = certificate
        self.method = method
        self.encoder_trained_on_private_text = encoder_trained_on_private_text
        self.randomness = randomness
        self.releases = int(releases)
        cost = certificate.compose(self.releases) if certificate else None
        self.epsilon = cost.record_epsilon if cost else math.inf
        self.word_epsilon = cost.word_epsilon if cost else math.inf
        self.delta = cost.delta if cost else 0.0

    def event(self) -> Event:
        """Returns the event for the people whose texts are encoded."""
        if self.certificate is None:
            return NonPrivate()
        return self.certificate.event(self.releases)

    @property
    def covers(self) -> list[str]:
        """What the stated epsilon is about; empty if there is no guarantee."""
        if math.isinf(self.epsilon):
            return []
        return [
            "the text that is encoded: whoever sees the released vector, or anything "
            "computed from it alone, a predicted label for instance"
        ]

    @property
    def not_covered(self) -> list[str]:
        """What has no guarantee here."""
        lines = []
        if self.encoder_trained_on_private_text:
            lines.append(
                "the training data: the weights of the encoder and of the heads were "
                "fitted to private texts without a guarantee, and whoever has them, or "
                "the vectors of many texts, may learn about those texts"
            )
        lines += self.training_facts
        if math.isinf(self.epsilon):
            return lines
        lines += [
            "labels, names or anything else that is released beside the vector",
            "that a text was encoded, and when; where texts are cut to the encoder's "
            "window, what is beyond it is not read at all",
            "further releases of the same text, and of other texts by the same person: "
            "their epsilons add up",
        ]
        return lines

    @property
    def assumptions(self) -> list[str]:
        """What the figures rest on."""
        if math.isinf(self.epsilon):
            return []
        lines = [
            self.randomness,
            "nothing behind the noise sees anything from before it",
        ]
        if self.word_epsilon < self.epsilon:
            _, condition = self.certificate.masked_together(1)
            lines.append(f"at word level: {condition}")
        return lines

    def to_json(self) -> dict[str, Any]:
        """Returns the contents of a release's privacy.json.

        Keys: `schema_version`; `kind`, "representation"; `method`; `releases`;
        `unit`, `adjacency`; `epsilon` and `word_epsilon`, numbers, or null with
        `epsilon_finite` false; `delta`; `claimed_epsilon`, per release, or null;
        `certificate`, or null without noise; `event`;
        `encoder_trained_on_private_text`; `covers`, `not_covered`, `assumptions`,
        `training_facts`, `public`, lists of text; `randomness`; `versions`.
        """
        certificate = self.certificate
        return {
            "schema_version": SCHEMA_VERSION,
            "kind": KIND,
            "method": self.method,
            "releases": self.releases,
            "unit": "text",
            "adjacency": "replace-one",
            "epsilon": _finite(self.epsilon),
            "epsilon_finite": math.isfinite(self.epsilon),
            "word_epsilon": _finite(self.word_epsilon),
            "delta": self.delta,
            "claimed_epsilon": certificate.claimed_epsilon if certificate else None,
            "certificate": certificate.to_json() if certificate else None,
            "event": self.event().to_json(),
            "encoder_trained_on_private_text": self.encoder_trained_on_private_text,
            "covers": self.covers,
            "not_covered": self.not_covered,
            "assumptions": self.assumptions,
            "training_facts": list(self.training_facts),
            "public": list(self.public),
            "randomness": self.randomness,
            "versions": {
                "tfpriv": __version__,
                "dp-accounting": importlib.metadata.version("dp-accounting"),
            },
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> RepresentationStatement:
        """Builds the statement again; its figures are computed anew.

        Raises:
            InputError: another kind or schema version, or a key that is missing or
                malformed.
        """
        try:
            if value["kind"] != KIND or value["schema_version"] != SCHEMA_VERSION:
                raise InputError(
                    f"Expected a statement of kind {KIND!r} and version "
                    f"{SCHEMA_VERSION}, received {value['kind']!r} and "
                    f"{value['schema_version']!r}."
                )
            certificate = value["certificate"]
            return cls(
                None
                if certificate is None
                else LaplaceCertificate.from_json(certificate),
                method=value["method"],
                encoder_trained_on_private_text=value[
                    "encoder_trained_on_private_text"
                ],
                randomness=value["randomness"],
                releases=value["releases"],
                # Statements of before these were told have neither.
                training_facts=value.get("training_facts", ()),
                public=value.get("public", ()),
            )
        except (KeyError, TypeError) as error:
            raise InputError(
                f"Expected the JSON of a representation's statement, received none: "
                f"{error}."
            ) from None

    def save(self, path: str | os.PathLike) -> None:
        """Writes `to_json` to a file that anyone may read."""
        write_json(path, self.to_json(), mode=PUBLIC)

    def __str__(self) -> str:
        lines = [f"Privacy of a text's representation ({self.method}):"]
        if self.certificate is None:
            lines.append(
                "NO privacy guarantee (epsilon is infinite): no noise is added to the "
                "representation, whatever it hides from the attackers it was tried on."
            )
        else:
            lines.append(str(self.certificate))
            if self.releases > 1:
                lines.append(f"Together:  {self._together()}")
        for title, items in (
            ("Covers:", self.covers),
            ("Not covered:", self.not_covered),
            ("Declared public:", self.public),
            ("Assumptions:", self.assumptions),
        ):
            if items:
                lines += [title, *(f"  - {item}" for item in items)]
        return "\n".join(lines)

    def _together(self) -> str:
        if math.isinf(self.epsilon):
            return f"no guarantee for {self.releases:,} releases: delta reaches 1"
        beside = f" at delta {rounded_up(self.delta, 2)}" if self.delta else ""
        return (
            f"epsilon {rounded_up(self.epsilon)}{beside} for {self.releases:,} "
            "releases of one text, and any two texts"
        )


def _texts(name: str, given: Sequence[str]) -> tuple[str, ...]:
    lines = tuple(given) if isinstance(given, list | tuple) else (None,)
    if not all(isinstance(line, str) and line for line in lines):
        raise InputError(f"Expected {name} as a list of texts, received another value.")
    return lines


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
