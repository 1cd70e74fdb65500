"""Training sets of real and synthetic rows: does synthetic text help the real one?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tfpriv._errors import InputError
from tfpriv._validation import integer, non_negative
from tfpriv.datasets import TextDataset, concatenate
from tfpriv.evaluation._labels import require_labelled

Shares = tuple[float, float]


def mix(
    real: TextDataset,
    synthetic: TextDataset,
    *,
    real_shares: Sequence[float] = (0.1, 1.0),
    synthetic_shares: Sequence[float] = (0.0, 0.5, 1.0, 2.0, 5.0),
    seed: int = 0,
) -> dict[Shares, TextDataset]:
    """Mixes some of the real rows with some synthetic ones, in steps.

    Sets are nested: of one seed a larger share holds the rows of each smaller one, so
    that steps differ by what is added alone. A share of the real rows is drawn class
    by class, at least one row each; synthetic rows are the first of their data set,
    whose order is random as `DPSeqGAN.generate` makes it.

    Mixing takes private rows: the sets are internal, and what is trained on them has
    the guarantee of its own training only.

    Args:
        real: n labelled rows.
        synthetic: labelled rows.
        real_shares: of the real rows, each in [0, 1].
        synthetic_shares: synthetic rows as shares of n, each at least 0.
        seed: which real rows.

    Returns:
        (real share, synthetic share) to the set, without the pair of zeros.

    Raises:
        InputError: shares out of range, too few synthetic rows, or no labels.

    >>> from tfpriv.datasets import TextDataset
    >>> real = TextDataset(texts=("a", "b", "c", "d"), labels=("x", "y", "x", "y"))
    >>> fake = TextDataset(texts=("e", "f"), labels=("x", "y"))
    >>> sets = mix(real, fake, real_shares=[0.5], synthetic_shares=[0, 0.5])
    >>> {shares: len(mixed) for shares, mixed in sets.items()}
    {(0.5, 0.0): 2, (0.5, 0.5): 4}
    """
    require_labelled(real, "real")
    require_labelled(synthetic, "synthetic")
    integer(0, seed=seed)
    for share in real_shares:
        if not 0 <= share <= 1:
            raise InputError(
                f"Expected real_shares in [0, 1], received {share!r}. 1 takes all rows."
            )
    for share in synthetic_shares:
        non_negative(synthetic_shares=share)
        if round(share * len(real)) > len(synthetic):
            raise InputError(
                f"Expected {round(share * len(real))} synthetic rows for a share of "
                f"{share:g} of {len(real)} real ones, received {len(synthetic)}. Draw "
                "more with generate()."
            )
    order = _by_class(real, seed)
    sets: dict[Shares, TextDataset] = {}
    for real_share in real_shares:
        kept = [
            i for rows in order for i in rows[: _count(real_share, len(rows))].tolist()
        ]
        for synthetic_share in synthetic_shares:
            added = range(round(synthetic_share * len(real)))
            parts = [real.select(sorted(kept)), synthetic.select(added)]
            parts = [_text_alone(part) for part in parts if len(part)]
            if parts:
                sets[float(real_share), float(synthetic_share)] = concatenate(parts)
    return sets


def _by_class(data: TextDataset, seed: int) -> list[np.ndarray]:
    """Row numbers of each class, in an order of the seed."""
    rng = np.random.default_rng(seed)
    labels = np.array(data.labels)
    return [
        rng.permutation(np.flatnonzero(labels == name)) for name in data.label_names
    ]


def _count(share: float, rows: int) -> int:
    return max(1, round(share * rows)) if share else 0


def _text_alone(data: TextDataset) -> TextDataset:
    """Texts and labels: other columns and names the two sides need not share."""
    return TextDataset(texts=data.texts, labels=data.labels)
