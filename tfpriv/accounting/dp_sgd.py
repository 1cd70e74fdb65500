"""One DP-SGD run: sampler, clipping, noise and price in one place."""

from __future__ import annotations

import dataclasses
import warnings

from tfpriv._errors import InputError
from tfpriv._validation import integer, one_of, positive, probability
from tfpriv.accounting.composition import (
    DELTA_HINT,
    Decimals,
    epsilon,
    smallest_fitting,
)
from tfpriv.accounting.events import Compose, Event, Gaussian, PoissonGaussian

# Of its budget: what a calibrated plan uses at least, if any noise does.
_NEAR_ENOUGH = 0.99

SAMPLINGS = ("poisson", "full_batch", "once_per_epoch", "none")


class PrivacyWarning(UserWarning):
    """A guarantee that is true, and weaker than its reader may think."""


@dataclasses.dataclass(frozen=True)
class DPSGDPlan:
    """What a DP-SGD run does to its records, and what that costs.

    `tfpriv.dp_training` builds its sampler, clipping and noise from a plan and from
    nothing else, so the price cannot drift from the training.

    Every step sums per-example gradients clipped to `l2_norm_clip`, adds one
    Gaussian draw of standard deviation `noise_multiplier * l2_norm_clip` to every
    coordinate, and divides by `batch_size`, a constant. How records get into a
    batch decides the price:

    - "poisson": each record joins each batch independently with probability
      `batch_size / num_examples`. Amplification by sampling is proven for this
      alone. Adding or removing one record.
    - "full_batch": every record is in every batch. Adding or removing one record.
    - "once_per_epoch": passes over the records follow one another without a gap,
      the batches cut from them; no record comes twice in a pass. Nothing is
      claimed for the order: a record meets as many Gaussian releases as passes are
      begun. Zero-out adjacency: one record is replaced by an empty one. (A
      pipeline that drops the rest of each pass and shuffles again begins more
      passes than this counts.)
    - "none": a record might be in every batch; all steps compose. Zero-out.

    >>> plan = DPSGDPlan(
    ...     num_examples=1956, batch_size=64, steps=306, noise_multiplier=1.0)
    >>> round(plan.epsilon(delta=1e-5), 4)
    4.2012
    >>> DPSGDPlan.calibrate(
    ...     epsilon=8.0, delta=1e-5, num_examples=1956, batch_size=64, steps=918
    ... ).noise_multiplier
    0.9431

    Attributes:
        num_examples: int. Records to sample from. A private number: give one that
            is known or noisy, for `batch_size / num_examples` is published.
        batch_size: int. Expected number of records in a batch.
        steps: int. Number of noisy gradients.
        noise_multiplier: float. Standard deviation of the noise over `l2_norm_clip`.
        l2_norm_clip: float. Largest L2 norm of one record's gradient.
        sampling: str. One of the above.
    """

    num_examples: int
    batch_size: int
    steps: int
    noise_multiplier: float
    l2_norm_clip: float = 1.0
    sampling: str = "poisson"

    def __post_init__(self) -> None:
        integer(
            num_examples=self.num_examples,
            batch_size=self.batch_size,
            steps=self.steps,
        )
        positive(noise_multiplier=self.noise_multiplier, l2_norm_clip=self.l2_norm_clip)
        one_of(SAMPLINGS, sampling=self.sampling)
        if self.batch_size > self.num_examples:
            raise InputError(
                f"Expected batch_size <= num_examples={self.num_examples}, received "
                f"batch_size={self.batch_size}. Use a smaller batch."
            )
        if self.sampling == "full_batch" and self.batch_size != self.num_examples:
            raise InputError(
                f"Expected batch_size == num_examples={self.num_examples} for "
                f"sampling='full_batch', received batch_size={self.batch_size}."
            )

    @property
    def sampling_rate(self) -> float:
        """Probability of a record to be in a batch; 1 where no chance is claimed."""
        return self.batch_size / self.num_examples if self.sampling == "poisson" else 1

    @property
    def passes(self) -> int:
        """How many passes over the records the steps begin."""
        return self._passes_begun(self.steps)

    def _passes_begun(self, steps: int) -> int:
        # Whole numbers throughout: the ceiling of a float quotient may be one off.
        return -(-steps * self.batch_size // self.num_examples)

    @property
    def adjacency(self) -> str:
        """Which neighbouring data sets the price is about."""
        if self.sampling in ("poisson", "full_batch"):
            return "add-or-remove-one"
        return "zero-out-one"

    def event(self) -> Event:
        """Returns the event of the whole run."""
        if self.sampling == "poisson":
            return PoissonGaussian(
                self.sampling_rate, self.noise_multiplier, self.steps
            )
        count = self.passes if self.sampling == "once_per_epoch" else self.steps
        return Gaussian(self.noise_multiplier, count)

    def step_event(self, step: int = 0) -> Event:
        """Returns the event of one step, for a ledger; all steps make `event()`.

        Args:
            step: index of the step, from 0. It matters for "once_per_epoch" alone,
                where the step in which a pass begins pays for the whole pass.
        """
        integer(minimum=0, step=step)
        if self.sampling == "poisson":
            return PoissonGaussian(self.sampling_rate, self.noise_multiplier)
        if self.sampling == "once_per_epoch":
            begins = self._passes_begun(step + 1) > self._passes_begun(step)
            return Gaussian(self.noise_multiplier) if begins else Compose(())
        return Gaussian(self.noise_multiplier)

    def epsilon(self, delta: float, accountant: str = "rdp") -> float:
        """Returns the epsilon of the whole run.

        Args:
            delta: strictly between 0 and 1; above 1/num_examples it warns.
            accountant: "rdp" or "pld".
        """
        value = epsilon(self.event(), delta, accountant)
        message = self.delta_warning(delta)
        if message:
            warnings.warn(message, PrivacyWarning, stacklevel=2)
        return value

    def delta_warning(self, delta: float) -> str | None:
        """Explains a delta that is too large for this many records, if it is."""
        if delta * self.num_examples <= 1:
            return None
        return (
            f"delta={delta:g} is above 1/n = {1 / self.num_examples:.2g} for "
            f"n={self.num_examples}: a mechanism that publishes one random record in "
            "full would satisfy it. Use a smaller delta."
        )

    @classmethod
    def calibrate(
        cls,
        *,
        epsilon: float,
        delta: float,
        num_examples: int,
        batch_size: int,
        steps: int,
        l2_norm_clip: float = 1.0,
        sampling: str = "poisson",
        accountant: str = "rdp",
    ) -> DPSGDPlan:
        """Finds the plan with the least noise that keeps to a budget.

        Args:
            epsilon: the budget; the plan's own epsilon is never above it.
            delta: strictly between 0 and 1.
            num_examples: as above, like the rest.
            batch_size: expected number of records in a batch.
            steps: number of noisy gradients.
            l2_norm_clip: largest L2 norm of one record's gradient.
            sampling: how records get into a batch.
            accountant: "rdp" or "pld".

        Returns:
            A plan whose `noise_multiplier` is the smallest to four decimals; to six
            or eight where its epsilon would else be over 1 % below the budget.

        Raises:
            InputError: a bad value, or no noise multiplier up to 1e6 is enough.
        """
        positive(epsilon=epsilon)
        probability(DELTA_HINT, delta=delta)
        plan = cls(num_examples, batch_size, steps, 1.0, l2_norm_clip, sampling)

        def price(noise_multiplier: float) -> float:
            noisy = dataclasses.replace(plan, noise_multiplier=noise_multiplier)
            return _price(noisy.event(), delta, accountant)

        for places in (4, 6, 8):
            noise_multiplier = smallest_fitting(price, epsilon, Decimals(places))
            if noise_multiplier is None:
                raise InputError(
                    "Expected an epsilon that noise can reach, received epsilon="
                    f"{epsilon} at delta={delta} for {steps} steps. Raise it or take "
                    "fewer steps."
                )
            if price(noise_multiplier) >= _NEAR_ENOUGH * epsilon:
                break
        return dataclasses.replace(plan, noise_multiplier=noise_multiplier)


# `calibrate` and the method call their budget and themselves epsilon.
_price = epsilon
