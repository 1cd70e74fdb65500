"""Checks of arguments that fail closed: NaN and infinity never pass.

Each function takes keyword arguments only, so that the message can name them::

    positive(epsilon=epsilon, noise_multiplier=noise_multiplier)
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable
from typing import Any

from tfpriv._errors import InputError

_LARGEST = 10**300


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InputError(
            f"Expected a number for {name}, received {name}={value!r} "
            f"({type(value).__name__})."
        )
    return float(value)


def finite(**values: Any) -> None:
    """Raises InputError unless every value is a finite number."""
    for name, value in values.items():
        if not math.isfinite(_number(name, value)):
            raise InputError(f"Expected a finite {name}, received {name}={value}.")


def positive(**values: Any) -> None:
    """Raises InputError unless every value is finite and above 0."""
    finite(**values)
    for name, value in values.items():
        if value <= 0:
            raise InputError(f"Expected {name} > 0, received {name}={value}.")


def non_negative(**values: Any) -> None:
    """Raises InputError unless every value is finite and at least 0."""
    finite(**values)
    for name, value in values.items():
        if value < 0:
            raise InputError(f"Expected {name} >= 0, received {name}={value}.")


def probability(hint: str = "", **values: Any) -> None:
    """Raises InputError unless every value lies strictly between 0 and 1.

    Args:
        hint: str. How to mend it, appended to the message.
        **values: the numbers to check.
    """
    finite(**values)
    for name, value in values.items():
        if not 0 < value < 1:
            raise InputError(
                f"Expected 0 < {name} < 1, received {name}={value}. {hint}".rstrip()
            )


def rate(**values: Any) -> None:
    """Raises InputError unless every value lies in (0, 1]."""
    finite(**values)
    for name, value in values.items():
        if not 0 < value <= 1:
            raise InputError(f"Expected 0 < {name} <= 1, received {name}={value}.")


def fraction(**values: Any) -> None:
    """Raises InputError unless every value lies in [0, 1)."""
    finite(**values)
    for name, value in values.items():
        if not 0 <= value < 1:
            raise InputError(f"Expected 0 <= {name} < 1, received {name}={value}.")


def boolean(**values: Any) -> None:
    """Raises InputError unless every value is True or False."""
    for name, value in values.items():
        if not isinstance(value, bool):
            raise InputError(
                f"Expected True or False for {name}, received {name}={value!r}."
            )


def seed_or_none(**values: Any) -> None:
    """Raises InputError unless every value is None or a whole number, at least 0."""
    integer(0, **{name: value for name, value in values.items() if value is not None})


def integer(minimum: int = 1, **values: Any) -> None:
    """Raises InputError unless every value is a whole number, at least `minimum`.

    And at most 1e300: what no float can hold would end in an overflow.
    """
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, numbers.Integral):
            raise InputError(
                f"Expected a whole number for {name}, received {name}={value!r}."
            )
        if value < minimum:
            raise InputError(f"Expected {name} >= {minimum}, received {name}={value}.")
        if value > _LARGEST:
            raise InputError(f"Expected {name} <= 1e300, received more.")


def one_of(choices: Iterable[Any], **values: Any) -> None:
    """Raises InputError unless every value is one of `choices`."""
    allowed = list(choices)
    for name, value in values.items():
        if value not in allowed:
            names = ", ".join(map(str, allowed))
            raise InputError(
                f"Expected {name} to be one of {names}, received {name}={value!r}."
            )
