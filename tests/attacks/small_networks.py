"""Tiny discriminators that have learnt by heart, or nothing, and their texts."""

from __future__ import annotations

import numpy as np

from tfpriv.attacks.class_discriminators import ClassDiscriminator
from tfpriv.attacks.shadow_discriminators import ShadowDiscriminators
from tfpriv.seqgan import Discriminator, Generator

LENGTH, WORDS = 6, 40


def rows(count: int, seed: int) -> np.ndarray:
    """Sequences of random words: nothing but membership tells them apart."""
    draw = np.random.default_rng(seed)
    return draw.integers(4, WORDS, (count, LENGTH)).astype(np.int32)


def texts(ids: np.ndarray) -> list[str]:
    return [" ".join(map(str, row)) for row in ids]


def encode(lines) -> np.ndarray:
    ids = [[int(word) for word in line.split()] for line in lines]
    return np.array(ids, np.int32).reshape(-1, LENGTH)


def discriminator(seed: int = 0) -> Discriminator:
    return Discriminator(WORDS, LENGTH, 6, widths=(2, 3), filters=12, seed=seed)


def shadows(steps: int, **settings) -> ShadowDiscriminators:
    return ShadowDiscriminators(
        discriminator(),
        rows(300, 99),
        **{"steps": steps, "batch_size": 32, "learning_rate": 0.02, **settings},
    )


def target(members: np.ndarray, *, steps: int) -> ClassDiscriminator:
    """A discriminator after `steps` updates on `members`; of none, an untrained one."""
    trained = discriminator()
    if steps:
        train = shadows(steps)
        train(members, members[:1], seed=0)
        trained = train.discriminator
    generator = Generator(WORDS, LENGTH, 4, 5, seed=0)
    return ClassDiscriminator("spam", trained, generator, encode)
