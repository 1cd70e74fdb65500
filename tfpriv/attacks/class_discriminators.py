"""The networks of each class of a run, as one who has its folder sees them."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from tfpriv._errors import InputError
from tfpriv.seqgan.class_gan import ClassGAN
from tfpriv.seqgan.discriminator import Discriminator
from tfpriv.seqgan.discriminator_step import variables_from_dict
from tfpriv.seqgan.dp_seqgan import DPSeqGAN
from tfpriv.seqgan.generator import Generator
from tfpriv.seqgan.guaranteed import GuaranteedMethod
from tfpriv.seqgan.published import PublishedMethod
from tfpriv.seqgan.run_store import RunStore

_CHUNK = 256


@dataclasses.dataclass(frozen=True)
class ClassDiscriminator:
    """The discriminator and the generator of one class, and how they read text.

    Attributes:
        label: str, the class.
        discriminator: Discriminator, after its last step.
        generator: Generator, after its last step.
        encode: texts to ids, int32 (n, max_length).
        start: weights that the discriminator had before its first private step, if
            those came from no record; else None.
    """

    label: str
    discriminator: Discriminator
    generator: Generator
    encode: Callable[[Sequence[str]], np.ndarray]
    start: list[np.ndarray] | None = None

    def logits(self, texts: Sequence[str]) -> np.ndarray:
        """Log odds of being real, float64 (n,): log D(r) - log(1 - D(r))."""
        return real_logits(self.discriminator, self.encode(texts))

    def log_likelihoods(self, texts: Sequence[str]) -> np.ndarray:
        """Mean log probability of a text's tokens under the generator, float64 (n,)."""
        if not len(texts):
            return np.zeros(0)
        ids = self.encode(texts)
        tokens = np.asarray(self.generator.token_mask(ids)).sum(axis=1)
        total = self.generator.log_probs(ids).astype(np.float64).sum(axis=1)
        return total / np.maximum(tokens, 1)


def real_logits(discriminator: Discriminator, ids: np.ndarray) -> np.ndarray:
    """Log odds of being real under a discriminator: int (n, T) -> float64 (n,)."""
    parts = [np.zeros((0, 2), np.float32)]
    for start in range(0, len(ids), _CHUNK):
        rows = np.asarray(ids[start : start + _CHUNK], np.int32)
        parts.append(np.asarray(discriminator(rows, training=False)))
    logits = np.concatenate(parts).astype(np.float64)
    return logits[:, 1] - logits[:, 0]


def class_discriminators(
    model: DPSeqGAN, run_dir: str | os.PathLike
) -> list[ClassDiscriminator]:
    """Reads the networks of every class that has a discriminator.

    Args:
        model: the fitted model, as it was or loaded.
        run_dir: the folder of the run that `fit` wrote checkpoints to.

    Returns:
        One a class, in the order of the labels; classes that were released without
        an adversarial part are left out.

    Raises:
        InputError: the model is not fitted, or the folder holds another run.
    """
    if model.method is None:
        raise InputError("Expected a fitted model, received one that is not.")
    if not Path(run_dir).is_dir():
        raise InputError(f"Expected the folder of a run, received {run_dir}.")
    store = RunStore(run_dir)
    read = _guaranteed if isinstance(model.method, GuaranteedMethod) else _published
    found = []
    for number in range(len(model.method.labels)):
        state = store.arrays(f"class-{number}")
        if state is not None:
            found.append(read(model.method, number, state, store))
    return found


def _published(
    method: PublishedMethod, number: int, state: dict[str, np.ndarray], store: RunStore
) -> ClassDiscriminator:
    settings = method.settings
    discriminator = Discriminator(
        len(method.vocabulary),
        settings.max_length,
        settings.discriminator_embedding_dim,
        settings.discriminator_widths,
        settings.discriminator_filters,
        seed=0,
    )
    variables_from_dict(discriminator, state, "discriminator/")
    return ClassDiscriminator(
        method.labels[number],
        discriminator,
        method.generators[number],
        lambda texts: method.vocabulary.encode(
            texts, settings.max_length, keep_unknown=False
        ),
    )


def _guaranteed(
    method: GuaranteedMethod, number: int, state: dict[str, np.ndarray], store: RunStore
) -> ClassDiscriminator:
    gan = ClassGAN(
        method.seed_corpus(number), method.settings, seed=method.seed + number
    )
    gan.discriminator.embedding.trainable = False
    before = store.arrays(f"class-{number}-pretrained") or {}
    start = [before[k] for k in _numbered(before, "discriminator/")]
    variables_from_dict(gan.discriminator, state, "discriminator/")
    variables_from_dict(gan.generator, state, "generator/")
    vocabulary, length = method.prior.vocabulary, method.settings.max_length

    def encode(texts: Sequence[str]) -> np.ndarray:
        tokens = vocabulary.tokenizer.tokenize_all(list(texts))
        rows = [vocabulary.ids(line, keep_unknown=False) for line in tokens]
        return gan.words.rows(rows, length)

    return ClassDiscriminator(
        method.labels[number], gan.discriminator, gan.generator, encode, start or None
    )


def _numbered(arrays: dict[str, np.ndarray], prefix: str) -> list[str]:
    """Names such as "discriminator/0", "discriminator/1", ... in their order."""
    names = [name for name in arrays if name.startswith(prefix)]
    return sorted(names, key=lambda name: int(name.removeprefix(prefix)))
