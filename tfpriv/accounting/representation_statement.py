"""What the release of a text's representation guarantees to who wrote the text."""

from __future__ import annotations

import dataclasses
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
from tfpriv.accounting.group import GroupBound
from tfpriv.accounting.laplace import LaplaceCertificate, ReleaseCost

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
        group: GroupBound or None. What shares texts that are released together, and
            how many at most; the statement then has the cost for all of one as well.

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
        group: GroupBound | None = None,
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
        if not isinstance(group, GroupBound | None):
            raise InputError(
                f"Expected a GroupBound or None, received {type(group).__name__}."
            )
        integer(releases=releases)
        self.group = group
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
        if group is not None:
            self.group_cost(group.size)  # or it is refused now

    def event(self) -> Event:
        """Returns the event for the people whose texts are encoded."""
        if self.certificate is None:
            return NonPrivate()
        return self.certificate.event(self.releases)

    def group_cost(self, size: int) -> ReleaseCost:
        """Returns what all releases of `size` texts together cost who wrote them.

        Each text goes through a mechanism of its own (the local model), so the
        releases of `size` texts are so many mechanisms that do not share an input:
        epsilon and delta of one are multiplied, whichever mechanism it is, a code,
        Laplace noise or either behind a mask (basic composition, Dwork et al. 2006).
        At word level one word differs in each of the texts.

        Args:
            size: at least 1. All of these texts may be replaced at once.

        Returns:
            ReleaseCost; infinite without a certificate.

        Raises:
            InputError: not a whole number of at least 1.
        """
        integer(size=size)
        if self.certificate is None:
            return ReleaseCost(self.releases * int(size), math.inf, math.inf, 0.0)
        return self.certificate.compose(self.releases * int(size))

    def group_epsilon(self, size: int) -> float:
        """Returns the epsilon of `group_cost`."""
        return self.group_cost(size).record_epsilon

    def with_group(self, group: GroupBound | None) -> RepresentationStatement:
        """Returns the same statement with another bound on texts of one author."""
        stated = None if group is None else dataclasses.asdict(group)
        return self.from_json(self.to_json() | {"group": stated})

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
        if self.group is not None:
            lines.append(
                f"more than {self.group.size} texts of one {self.group.unit}, and "
                "texts that one person has under several names"
            )
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
        `certificate`, or null without noise; `event`; `group`, null or the `unit` that
        shares at most `size` texts, with `epsilon`, `word_epsilon` and `delta` for all
        the releases of one's texts;
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
            "group": self._group(),
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
                group=GroupBound.from_json(value.get("group")),
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
            if self.group is not None:
                lines.append(self._group_line())
        for title, items in (
            ("Covers:", self.covers),
            ("Not covered:", self.not_covered),
            ("Declared public:", self.public),
            ("Assumptions:", self.assumptions),
        ):
            if items:
                lines += [title, *(f"  - {item}" for item in items)]
        return "\n".join(lines)

    def _group(self) -> dict[str, Any] | None:
        if self.group is None:
            return None
        cost = self.group_cost(self.group.size)
        return dataclasses.asdict(self.group) | {
            "epsilon": _finite(cost.record_epsilon),
            "word_epsilon": _finite(cost.word_epsilon),
            "delta": cost.delta,
        }

    def _group_line(self) -> str:
        group, cost = self.group, self.group_cost(self.group.size)
        found = "no bound, delta reaches 1"
        if math.isfinite(cost.record_epsilon):
            beside = f" at delta {rounded_up(cost.delta, 2)}" if cost.delta else ""
            found = f"epsilon {rounded_up(cost.record_epsilon)}{beside}"
        return f"For all the texts of one {group.unit}, {group.size} at most: {found}"

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
