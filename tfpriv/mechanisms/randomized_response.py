"""One label of a public list, told with a chosen lack of candour."""

from __future__ import annotations

import collections
import dataclasses
import decimal
import numbers
import secrets
from collections.abc import Hashable, Iterable

from tfpriv._errors import InputError
from tfpriv._validation import positive
from tfpriv.accounting import Event, PureDP

# Every wrong label has this many chances, the right one floor(2^128 e^epsilon).
_CHANCES = 2**128
_LARGEST_EPSILON = 500.0


@dataclasses.dataclass(frozen=True)
class RandomizedResponse:
    """k-ary randomised response on labels.

    Guarantee: each released label is epsilon-differentially private in the label it
    stands for, whichever of `labels` that is replaced by whichever other. How many
    labels are released, and in which order, is not hidden. The right label is kept
    with probability e^epsilon / (e^epsilon + k - 1), each other one comes with the
    same probability 1 / (e^epsilon + k - 1) (Warner 1965; Kairouz, Bonawitz & Ramage
    2016, section 2).

    Every draw is one uniform integer of the operating system's entropy, compared
    with integers: the ratio of any two probabilities is at most e^epsilon exactly.
    There is no seed. Each call is a release and has to be paid for.

    Example:
        >>> mechanism = RandomizedResponse(["ham", "spam"], epsilon=2.0)
        >>> round(mechanism.keep_probability, 4)
        0.8808
        >>> len(mechanism.release(["spam", "spam", "ham"]))
        3
        >>> mechanism.event()
        PureDP(epsilon=2.0, count=1)

    Attributes:
        labels: at least two different texts or whole numbers, public.
        epsilon: float, up to 500.
    """

    labels: tuple[Hashable, ...]
    epsilon: float

    def __post_init__(self) -> None:
        positive(epsilon=self.epsilon)
        if self.epsilon > _LARGEST_EPSILON:
            raise InputError(
                f"Expected epsilon <= {_LARGEST_EPSILON:g}, received "
                f"epsilon={self.epsilon}. Beyond that nothing is ever changed."
            )
        if isinstance(self.labels, str) or not isinstance(self.labels, Iterable):
            raise InputError(
                f"Expected a list of labels, received {type(self.labels).__name__}."
            )
        labels = tuple(self.labels)
        if not all(isinstance(label, str | numbers.Integral) for label in labels):
            raise InputError("Expected texts or whole numbers as labels.")
        if len(set(labels)) != len(labels) or len(labels) < 2:
            raise InputError(
                f"Expected at least two labels, all different, received {len(labels)} "
                f"of which {len(set(labels))} are different."
            )
        object.__setattr__(self, "labels", labels)
        object.__setattr__(self, "epsilon", float(self.epsilon))
        object.__setattr__(self, "_right", _right_chances(self.epsilon))
        object.__setattr__(
            self, "_places", {label: place for place, label in enumerate(labels)}
        )

    @property
    def keep_probability(self) -> float:
        """Probability that a label is released as it is."""
        return self._right / self._all

    @property
    def change_probability(self) -> float:
        """Probability that a label is released as one given other label."""
        return _CHANCES / self._all

    def event(self) -> Event:
        """Returns the event of one release, for each label that is in it."""
        return PureDP(self.epsilon)

    def release(self, values: Iterable[Hashable]) -> list[Hashable]:
        """Returns one label for every label given, in the same order.

        Args:
            values: the true and private labels.

        Raises:
            InputError: a value that is none of the labels. The message has its row,
                from 1, and not the value.
        """
        return [self.labels[self._draw(place)] for place in self._rows(values)]

    def estimate_counts(self, released: Iterable[Hashable]) -> dict[Hashable, float]:
        """Returns unbiased estimates of how many records have each label.

        (c - n q) / (p - q) for a label seen c times among n, where p keeps a label
        and q makes one given other of it. May be negative; the sum is n.
        Post-processing: reads what was released alone.

        Args:
            released: what `release` returned.

        Raises:
            InputError: a value that is none of the labels.
        """
        seen = collections.Counter(self._rows(released))
        total = sum(seen.values())
        difference = (self._right - _CHANCES) / self._all
        return {
            label: (seen[place] - total * self.change_probability) / difference
            for label, place in self._places.items()
        }

    @property
    def _all(self) -> int:
        return self._right + (len(self.labels) - 1) * _CHANCES

    def _draw(self, place: int) -> int:
        number = secrets.randbelow(self._all)
        if number < self._right:
            return place
        other = (number - self._right) // _CHANCES
        return other + (other >= place)

    def _rows(self, values: Iterable[Hashable]) -> list[int]:
        places = []
        for row, value in enumerate(values, 1):
            if not isinstance(value, Hashable) or value not in self._places:
                raise InputError(
                    f"Expected one of the {len(self.labels)} labels, received another "
                    f"value in row {row}. Declare it as a label, or map it to one."
                )
            places.append(self._places[value])
        return places


def _right_chances(epsilon: float) -> int:
    """Returns floor(2^128 e^epsilon), or one less: never more."""
    with decimal.localcontext() as context:
        context.prec = 400
        power = decimal.Decimal(epsilon).exp() * _CHANCES
        right = int(power * (1 - decimal.Decimal(10) ** -390))
    if right <= _CHANCES:
        raise InputError(
            f"Expected an epsilon that makes a difference, received epsilon={epsilon}. "
            "Use at least 1e-30."
        )
    return right
