"""How a release's epsilon is divided, fixed before a record is read."""

from __future__ import annotations

import dataclasses
import math
from functools import cached_property

from tfpriv._errors import InputError
from tfpriv._validation import integer, positive, probability
from tfpriv.accounting import (
    Compose,
    Event,
    Gaussian,
    GaussianThreshold,
    calibrate_scale,
)
from tfpriv.mechanisms.partition_selection import selection_threshold

# Parts of 1/sigma^2, which add up under composition of Gaussian mechanisms. Token
# counts carry the utility. Chosen on S2 of YouTube spam.
SHARES: dict[str, float] = {
    "label names": 0.05,
    "tokens": 0.55,
    "lengths": 0.07,
    "pairs": 0.25,
    "discriminator": 0.08,
}
_SELECTION_DELTA = 0.1
# Where several records may be of one author: a name that all of his bring in passes
# more often, and the group's delta has to be within that of the release.
_GROUP_SELECTION_DELTA = 1e-6
_LEAST_SELECTION_DELTA = 1e-12


@dataclasses.dataclass(frozen=True)
class ReleaseBudget:
    """Noise multipliers of every mechanism of a release, from one epsilon.

    All parts are Gaussian mechanisms of L2 sensitivity 1, so they share one scale:
    a part with share s has noise multiplier scale / sqrt(s). The scale is the
    smallest, to four digits, at which everything together costs at most epsilon
    under Renyi composition.

    Attributes:
        epsilon: what the whole release may cost.
        delta: its delta.
        discriminator_steps: private steps of each class's discriminator.
        select_labels: whether label names are found by partition selection, or given.
        group_size: records of one author, at most. It moves no noise; a label takes
            more records to be named.

    Raises:
        InputError: a number that cannot be used, or a delta too small to find labels.
    """

    epsilon: float
    delta: float = 1e-5
    discriminator_steps: int = 12
    select_labels: bool = True
    group_size: int = 1

    def __post_init__(self) -> None:
        positive(epsilon=self.epsilon)
        probability("Use a value below 1 / number of records.", delta=self.delta)
        integer(0, discriminator_steps=self.discriminator_steps)
        if self.select_labels:
            self._check_selection()

    @property
    def shares(self) -> dict[str, float]:
        """Share of each part that is used, summing to 1."""
        used = dict(SHARES)
        if not self.select_labels:
            del used["label names"]
        if not self.discriminator_steps:
            del used["discriminator"]
        total = sum(used.values())
        return {name: share / total for name, share in used.items()}

    @property
    def selection_delta(self) -> float:
        """Part of delta that partition selection takes."""
        usual = self.delta * _SELECTION_DELTA
        if self.group_size == 1:
            return usual
        least = max(_LEAST_SELECTION_DELTA, self.delta * _GROUP_SELECTION_DELTA)
        return min(usual, least)

    @cached_property
    def scale(self) -> float:
        """Noise multiplier that the whole release has as one Gaussian mechanism."""
        return calibrate_scale(
            lambda scale: Compose(tuple(self._events(scale).values())),
            self.epsilon,
            self.delta,
        )

    def events(self) -> dict[str, Event]:
        """Part -> event; the discriminator's is that of all its steps."""
        return self._events(self.scale)

    def noise_multiplier(self, part: str) -> float:
        """Noise multiplier of a part; of one step, for the discriminator."""
        return self._noise_multiplier(part, self.scale)

    def _check_selection(self) -> None:
        try:
            selection_threshold(1.0, self.selection_delta)
        except InputError as error:
            raise InputError(
                f"Expected a larger delta, of which finding label names takes "
                f"{_SELECTION_DELTA:.0%}, received delta={self.delta:g}. Declare the "
                "label names (--labels A,B, in Python labels=[...]) if they are public."
            ) from error

    def _noise_multiplier(self, part: str, scale: float) -> float:
        times = self.discriminator_steps if part == "discriminator" else 1
        return scale * math.sqrt(times / self.shares[part])

    def _events(self, scale: float) -> dict[str, Event]:
        events: dict[str, Event] = {}
        for part in self.shares:
            multiplier = self._noise_multiplier(part, scale)
            if part == "label names":
                events[part] = GaussianThreshold(multiplier, self.selection_delta)
            elif part == "discriminator":
                events[part] = Gaussian(multiplier, count=self.discriminator_steps)
            else:
                events[part] = Gaussian(multiplier)
        return events
