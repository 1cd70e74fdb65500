"""Splits in which one record moves no other."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import math
from collections.abc import Iterator, Sequence

from tfpriv import _validation
from tfpriv._errors import InputError
from tfpriv.datasets.text_dataset import TextDataset

_BITS = 64


@dataclasses.dataclass(frozen=True)
class Splits:
    """The three parts of a data set, S1, S2 and S3 in the DP-SeqGAN paper.

    Args:
        train: TextDataset. S1, what a private model is trained on.
        validation: TextDataset. S2, for tuning, and the non-members of an attack.
        test: TextDataset. S3, held out, and the shadow test set of an attack.

    A guarantee is over `train` alone: experiments read the other two as they are.
    """

    train: TextDataset
    validation: TextDataset
    test: TextDataset

    def __iter__(self) -> Iterator[TextDataset]:
        return iter((self.train, self.validation, self.test))


def split(
    dataset: TextDataset,
    *,
    seed: int = 0,
    fractions: Sequence[float] = (0.6, 0.2, 0.2),
) -> Splits:
    """Splits by a keyed hash of each record's group.

    A record's part depends on its own group, the seed and the fractions, and on
    nothing else: taking a record out or putting one in moves no other, and records
    of a group stay together. Without declared groups the group is the canonical
    text, so that no text is in two parts. The fractions hold for groups on average,
    not exactly: exact sizes would make parts depend on each other.

    Args:
        dataset: what to split.
        seed: int >= 0. Each seed is a key of its own, so its splits are independent
            of any other seed's.
        fractions: three numbers >= 0 that sum to 1, for train, validation, test.

    Raises:
        InputError: the seed or the fractions cannot be used.

    Examples:
        >>> data = TextDataset([f"text number {i}" for i in range(1000)])
        >>> [len(part) for part in split(data, seed=3)]
        [597, 195, 208]
    """
    _validation.integer(0, seed=seed)
    thresholds = _thresholds(fractions)
    positions: tuple[list[int], ...] = ([], [], [])
    for position, group in enumerate(dataset.group_keys()):
        value = _hash(group, seed)
        part = next(i for i, end in enumerate(thresholds) if value < end)
        positions[part].append(position)
    return Splits(*(dataset.select(part) for part in positions))


def _thresholds(fractions: Sequence[float]) -> list[int]:
    if len(fractions) != 3:
        raise InputError(
            "Expected three fractions (train, validation, test), received "
            f"{len(fractions)}."
        )
    for fraction in fractions:
        _validation.non_negative(fraction=fraction)
    if not math.isclose(sum(fractions), 1.0, abs_tol=1e-9):
        raise InputError(
            f"Expected fractions that sum to 1, received {tuple(fractions)}, which sum "
            f"to {sum(fractions):g}."
        )
    ends = [round(end * 2**_BITS) for end in itertools.accumulate(fractions)]
    # The sum may stop a rounding error short; a last part of size 0 stays empty.
    last = max(i for i, fraction in enumerate(fractions) if fraction > 0)
    return ends[:last] + [2**_BITS] * (3 - last)


def _hash(group: str, seed: int) -> int:
    digest = hashlib.blake2b(
        group.encode("utf-8", "surrogatepass"),
        digest_size=_BITS // 8,
        key=hashlib.blake2b(str(seed).encode(), digest_size=32).digest(),
        person=b"tfpriv.split",
    )
    return int.from_bytes(digest.digest(), "big")
