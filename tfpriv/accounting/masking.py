"""What masking words before a private release is worth.

A text of D words has some of them replaced by [MASK]; what is left goes through a
private mechanism, the base. Two texts of equal length that differ in k words become
the same text if all k places are masked: with that probability the base has nothing
to tell. `LaplaceCertificate` says when this may be claimed.
"""

from __future__ import annotations

import fractions
import math

import numpy as np

from tfpriv._errors import InputError
from tfpriv._validation import finite, integer, non_negative, one_of

MASK_MODES = ("exact", "bernoulli")
MASK_UNITS = ("words", "pieces")
TRUNCATIONS = ("words", "pieces")

# Far beyond any encoder's window; the loop below goes over all lengths.
_LONGEST_TEXT = 100_000
# Masks that hide more words than this are worth nothing anyway.
_MOST_CHANGED = 1000


def masking_amplification(epsilon: float, mask_probability: float) -> float:
    """Returns ln(r + (1 - r) e^epsilon).

    The price of an epsilon-private base behind a mask that hides all differing words
    with probability r (Balle, Barthe & Gaboardi 2018, arXiv:1807.01647, theorem 2),
    provided that

    - the base is epsilon-private for ANY two inputs, under either kind of mask; or
    - the texts differ in one word, words are masked independently, and the base is
      epsilon-private for texts of words and [MASK] that differ in one place.

    >>> round(masking_amplification(1.0, 0.5), 3)
    0.62

    Args:
        epsilon: of the base.
        mask_probability: r, in [0, 1].

    Raises:
        InputError: a bad epsilon or probability.
    """
    non_negative(epsilon=epsilon)
    _fraction(mask_probability=mask_probability)
    value, r = float(epsilon), float(mask_probability)
    if value < 1:
        return math.log1p((1 - r) * math.expm1(value))
    # The same with e^epsilon taken out, which might overflow.
    return value + math.log1p(r * math.expm1(-value)) if r < 1 else 0.0


def fixed_mask_amplification(epsilon: float, masked_fraction: float) -> float:
    """Returns ln[(mu + (1 - mu) e^(2 epsilon)) / (mu + (1 - mu) e^epsilon)].

    The price of a base that is epsilon-private only for texts that differ in one
    place, where a fixed number mu * D of words is masked. To mask a differing word
    is then to leave another word unmasked: two places change, and the masked texts
    are 2 epsilon apart, not epsilon. Weaker than `masking_amplification`, and
    attained.

    Source: let p, q be the base's probabilities of an output with the word unmasked
    in either text, and 1 that with the word masked. The bound is the largest
    (mu + (1 - mu) p) / (mu + (1 - mu) q) with p <= e^(2 epsilon), p <= e^epsilon q.

    >>> round(fixed_mask_amplification(1.0, 0.5), 3)
    0.814

    Args:
        epsilon: of the base, for texts that differ in one place.
        masked_fraction: mu, in [0, 1]: words masked over words.

    Raises:
        InputError: a bad epsilon or fraction.
    """
    return masking_amplification(2 * epsilon, masked_fraction) - masking_amplification(
        epsilon, masked_fraction
    )


def mask_fraction(mask_rate: float) -> fractions.Fraction:
    """Returns the fraction that a rate stands for, everywhere in tfpriv.

    The nearest one with a denominator of up to a million: .29 * 100 is 28.999... in
    floating point, and the decimal is what was meant.

    >>> mask_fraction(0.29)
    Fraction(29, 100)
    """
    return fractions.Fraction(repr(float(mask_rate))).limit_denominator(1_000_000)


def masked_words(mask_rate: float, words: int) -> int:
    """Returns floor(mask_rate * words).

    The rate is read as the fraction nearest to it with a denominator of up to a
    million, as `tfpriv.layers.RandomMask` reads it.

    >>> masked_words(0.29, 100), math.floor(0.29 * 100)
    (29, 28)
    >>> masked_words(1 / 3, 3)
    1

    Args:
        mask_rate: in [0, 1).
        words: at least 0.

    Raises:
        InputError: a bad rate or number of words.
    """
    check_mask_rate(mask_rate)
    integer(minimum=0, words=words)
    return _floor(mask_rate, [int(words)])[0]


def all_masked_probability(
    changed: int,
    mask_rate: float,
    mask_mode: str,
    lengths: tuple[int, int] | None = None,
) -> float:
    """Returns the least probability that `changed` given words are all masked.

    Independent masks: mu^k. A fixed number m = floor(mu * D) of masks:
    C(D - k, m - k) / C(D, m), the smallest over all lengths D; 0 if a text may be so
    short that m < k. A text of fewer than k words differs in all of its words. Nothing
    is claimed, 0, for more than 1,000 words.

    >>> all_masked_probability(1, 0.5, "bernoulli")
    0.5
    >>> all_masked_probability(2, 0.5, "exact", (4, 4))  # 1 of C(4, 2) = 6
    0.1666...

    Args:
        changed: k, at least 1.
        mask_rate: mu, in [0, 1).
        mask_mode: "exact", a fixed number, or "bernoulli", independent.
        lengths: fewest and most words that a text has; None if unknown.

    Raises:
        InputError: a bad value.
    """
    integer(changed=changed)
    check_mask_rate(mask_rate)
    one_of(MASK_MODES, mask_mode=mask_mode)
    check_lengths(lengths)
    if mask_mode == "bernoulli":
        changed = min(changed, lengths[1]) if lengths else changed
        return (
            min(float(mask_fraction(mask_rate)), float(mask_rate)) ** changed
            if changed <= _MOST_CHANGED
            else 0.0
        )
    if lengths is None or changed > _MOST_CHANGED:
        return 0.0
    words = np.arange(lengths[0], lengths[1] + 1)
    masked = np.array(_floor(mask_rate, words.tolist()))
    together = np.ones(len(words))
    for place in range(min(changed, int(masked.min()) + 1)):
        together *= (masked - place) / (words - place)
    return float(together.min())


def claimable_probability(
    changed: int,
    mask_rate: float,
    mask_mode: str | None,
    *,
    mask_unit: str,
    truncation: str,
    lengths: tuple[int, int] | None,
) -> tuple[float, str]:
    """Returns the r of `masking_amplification` that may be claimed, and why.

    For a base that is private for any two inputs. `LaplaceCertificate` has the
    meaning of the arguments, and has checked them.

    Returns:
        (r, the condition it holds under; or 0 and why nothing may be claimed).
    """
    if mask_rate == 0:
        return 0.0, "no word is masked"
    if mask_unit == "pieces":
        return 0.0, (
            "no amplification: a [MASK] for every word-piece shows how many pieces a "
            "masked word had"
        )
    if truncation == "pieces":
        return 0.0, (
            "no amplification: texts are cut by word-pieces, so that a word, masked or "
            "not, decides which other words are read"
        )
    if mask_mode == "exact" and lengths is None:
        return 0.0, (
            "no amplification: lengths are unknown, and of a text with fewer than "
            f"1 / mu = {1 / mask_rate:.4g} words floor(mu * D) = 0 are masked"
        )
    together = all_masked_probability(changed, mask_rate, mask_mode, lengths)
    words = "one word" if changed == 1 else f"up to {changed} words"
    texts = (
        f"two texts with the same number of words that differ in {words}, each within "
        "the encoder's window or cut by number of words; one [MASK] a masked word"
    )
    if mask_mode == "bernoulli":
        return together, f"{texts}; every word masked independently"
    if together == 0:
        return 0.0, (
            f"no amplification: of a text of {lengths[0]} words "
            f"floor(mu * D) = {masked_words(mask_rate, lengths[0])} are masked"
        )
    return together, (
        f"{texts}; for texts of {lengths[0]} to {lengths[1]} words as they are read, "
        "the lengths this was computed for: of a text of another length, which nothing "
        "here refuses, the word-level figure says nothing; floor(mu * D) of D words "
        "masked, at the length where that helps least"
    )


def check_mask_rate(mask_rate: float) -> None:
    """Raises InputError unless 0 <= mask_rate < 1, to a millionth."""
    finite(mask_rate=mask_rate)
    if not 0 <= mask_rate < 1 or mask_fraction(mask_rate) == 1:
        raise InputError(
            f"Expected 0 <= mask_rate < 1, received mask_rate={mask_rate}. At 1 "
            "nothing of a text would be left."
        )


def check_lengths(lengths: tuple[int, int] | None) -> None:
    """Raises InputError unless lengths are None or (smallest, largest), from 1."""
    if lengths is None:
        return
    if not isinstance(lengths, tuple | list) or len(lengths) != 2:
        raise InputError(
            "Expected lengths=(fewest words, most words) or None, received "
            f"{type(lengths).__name__}."
        )
    integer(fewest_words=lengths[0], most_words=lengths[1])
    if lengths[0] > lengths[1]:
        raise InputError(
            "Expected lengths=(fewest words, most words), received "
            f"lengths=({lengths[0]}, {lengths[1]}). Swap them."
        )
    if lengths[1] > _LONGEST_TEXT:
        raise InputError(
            f"Expected at most {_LONGEST_TEXT:,} words, received lengths=({lengths[0]},"
            f" {lengths[1]}). Give what the encoder's window lets through."
        )


def _fraction(**values: float) -> None:
    non_negative(**values)
    for name, value in values.items():
        if value > 1:
            raise InputError(f"Expected 0 <= {name} <= 1, received {name}={value}.")


def _floor(mask_rate: float, words: list[int]) -> list[int]:
    rate = mask_fraction(mask_rate)
    return [rate.numerator * count // rate.denominator for count in words]
