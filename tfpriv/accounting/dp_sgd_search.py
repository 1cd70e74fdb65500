"""The longest run, and the largest batch, that a budget pays for at given noise."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from tfpriv._errors import InputError
from tfpriv._figures import rounded_up
from tfpriv._validation import positive, probability
from tfpriv.accounting.composition import DELTA_HINT, epsilon
from tfpriv.accounting.dp_sgd import DPSGDPlan

# No run takes more.
_MOST_STEPS = 10**9


def most_steps(
    *,
    target_epsilon: float,
    delta: float,
    num_examples: int,
    batch_size: int,
    noise_multiplier: float,
    sampling: str = "poisson",
    accountant: str = "rdp",
) -> DPSGDPlan:
    """Finds the plan with the most steps that keeps to a budget.

    >>> plan = most_steps(target_epsilon=8.0, delta=1e-5, num_examples=1956,
    ...                   batch_size=64, noise_multiplier=0.9431)
    >>> plan.steps >= 918 and plan.epsilon(1e-5) <= 8.0
    True

    Args:
        target_epsilon: the budget; the plan's own epsilon is never above it.
        delta: strictly between 0 and 1.
        num_examples: records to sample from.
        batch_size: expected number of records in a batch.
        noise_multiplier: standard deviation of the noise over the clipping norm.
        sampling: how records get into a batch, one of `SAMPLINGS`.
        accountant: "rdp" or "pld".

    Returns:
        A plan to which no step could be added; of at most 10^9 steps.

    Raises:
        InputError: a bad value, or a budget that one step exceeds.
    """

    def plan(steps: int) -> DPSGDPlan:
        return DPSGDPlan(
            num_examples, batch_size, steps, noise_multiplier, sampling=sampling
        )

    steps = _largest(plan, _MOST_STEPS, target_epsilon, delta, accountant, "step")
    return plan(steps)


def largest_batch(
    *,
    target_epsilon: float,
    delta: float,
    num_examples: int,
    steps: int,
    noise_multiplier: float,
    sampling: str = "poisson",
    accountant: str = "rdp",
) -> DPSGDPlan:
    """Finds the plan with the largest batch that keeps to a budget.

    Args:
        target_epsilon: as for `most_steps`, like the rest.
        delta: strictly between 0 and 1.
        num_examples: records to sample from.
        steps: number of noisy gradients.
        noise_multiplier: standard deviation of the noise over the clipping norm.
        sampling: "poisson" or "once_per_epoch"; elsewhere the batch decides nothing.
        accountant: "rdp" or "pld".

    Raises:
        InputError: a bad value, or a budget that a batch of one record exceeds.
    """
    if sampling not in ("poisson", "once_per_epoch"):
        raise InputError(
            "Expected sampling 'poisson' or 'once_per_epoch', where the batch decides "
            f"the price, received sampling={sampling!r}."
        )

    def plan(batch_size: int) -> DPSGDPlan:
        return DPSGDPlan(
            num_examples, batch_size, steps, noise_multiplier, sampling=sampling
        )

    smallest = plan(1)
    size = _largest(
        plan, smallest.num_examples, target_epsilon, delta, accountant, "record"
    )
    return dataclasses.replace(smallest, batch_size=size)


def _largest(
    plan: Callable[[int], DPSGDPlan],
    most: int,
    budget: float,
    delta: float,
    accountant: str,
    unit: str,
) -> int:
    """The largest whole number whose plan is within the budget; prices grow."""
    positive(target_epsilon=budget)
    probability(DELTA_HINT, delta=delta)

    def fits(number: int) -> bool:
        return epsilon(plan(number).event(), delta, accountant) <= budget

    if not fits(1):
        price = epsilon(plan(1).event(), delta, accountant)
        raise InputError(
            f"Expected a budget that one {unit} fits into, received target_epsilon="
            f"{budget} where one costs {rounded_up(price)}. Raise it, or add noise."
        )
    low, high = 1, min(2, most)
    while high < most and fits(high):
        low, high = high, min(2 * high, most)
    if fits(high):
        return high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
