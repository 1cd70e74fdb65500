"""Numbers for people: what something cost is never shown below what it is.

Imports nothing but the standard library. JSON holds the numbers themselves.
"""

from __future__ import annotations

import decimal
import math

from tfpriv._errors import InputError

_LARGEST_PLAIN = 10_000
_SMALLEST_PLAIN = 1e-4


def rounded_up(value: float, digits: int = 4, *, places: int | None = None) -> str:
    """Returns an epsilon or a delta in few digits, rounded away from zero.

    To the nearest, 7.99996 would read 8 and 8.00004 read 8 as well: the second is
    more than what is claimed. From 10,000 on all digits before the point are shown.

    >>> rounded_up(8.00004), rounded_up(7.99996), rounded_up(8.0)
    ('8.001', '8', '8')
    >>> rounded_up(1.5e-7, 1), rounded_up(399850111.5), rounded_up(4.20116, places=2)
    ('2e-07', '399,850,112', '4.21')
    >>> rounded_up(0.1), rounded_up(3 * 0.1)  # the float 3 * 0.1 is above 0.3
    ('0.1', '0.3001')

    Args:
        value: at least 0; infinity is spelt out.
        digits: significant ones that are kept.
        places: behind the point, instead; then zeros at the end stay.

    Raises:
        InputError: NaN or a negative number.
    """
    value = float(value)
    if math.isnan(value) or value < 0:
        raise InputError(f"Expected a number >= 0 to show, received {value}.")
    if math.isinf(value):
        return "infinite"
    # The shortest decimal of this very float, as in JSON: .1 is not .1 + 5e-18 here.
    exact = decimal.Decimal(repr(value))
    if places is not None:
        return f"{_ceiling(exact, -places):,f}"
    if value >= _LARGEST_PLAIN:
        return f"{_ceiling(exact, 0):,f}"
    if not value:
        return "0"
    shown = _ceiling(exact, exact.adjusted() - digits + 1).normalize()
    if shown < decimal.Decimal(str(_SMALLEST_PLAIN)):
        mantissa, exponent = f"{shown:e}".split("e")
        return f"{mantissa}e{int(exponent):03d}"
    return f"{shown:,f}"


def as_given(value: float) -> str:
    """Returns a number that a user gave with all of its digits, and no more.

    >>> as_given(8.0), as_given(0.1234567), as_given(1e-5)
    ('8', '0.1234567', '1e-05')
    """
    return repr(float(value)).removesuffix(".0")


def percent(share: float) -> str:
    """Returns a share as a percentage, to a tenth.

    >>> percent(0.55), percent(1 / 3)
    ('55 %', '33.3 %')
    """
    return f"{100 * share:.1f}".removesuffix(".0") + " %"


def _ceiling(value: decimal.Decimal, exponent: int) -> decimal.Decimal:
    # Enough digits for any float: the default of 28 would refuse small quanta.
    with decimal.localcontext(prec=1200):
        return value.quantize(
            decimal.Decimal((0, (1,), exponent)), decimal.ROUND_CEILING
        )
