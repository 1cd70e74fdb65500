"""A whole release in seconds: a language of two dozen words, networks of 4 units."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator

import numpy as np
import pytest
import tensorflow as tf

from tfpriv.accounting import GaussianThreshold
from tfpriv.dp_training import DPTrainer, noise, optimizer
from tfpriv.mechanisms import GaussianCounts
from tfpriv.mechanisms.partition_selection import SelectedPartitions
from tfpriv.seqgan import class_gan, guaranteed
from tfpriv.seqgan.budget import ReleaseBudget
from tfpriv.seqgan.class_gan import GANSettings
from tfpriv.seqgan.guaranteed import GuaranteedMethod
from tfpriv.seqgan.run_store import RunStore
from tfpriv.text.prior import LanguagePrior
from tfpriv.text.vocabulary import Vocabulary

SETTINGS = GANSettings(
    max_length=3,
    embedding_dim=4,
    units=4,
    mle_epochs=1,
    discriminator_widths=(1, 2),
    discriminator_filters=3,
    warm_up_steps=2,
    rounds=2,
    g_steps=1,
    rollouts=1,
    batch_size=4,
)
PUBLIC = [
    "subscribe to my new channel now",
    "check out my new song",
    "watch this video to win a phone",
    "i like this great song so much",
    "this is the best video",
]
SPAM = ["subscribe to my channel", "win a phone now", "check out my channel"]
HAM = ["i like this song", "the best song", "this video is great"]
TEXTS = [*SPAM * 7, *HAM * 7]
LABELS = ["spam"] * 21 + ["ham"] * 21
# Records that have nothing in common with these.
OTHER_TEXTS = ["win", "", "quite other words 1 2 3", *HAM[:1] * 11, "now " * 40]
OTHER_LABELS = ["spam", "ham", "ham", *["spam"] * 11, "nobody's"]
SECRET = "xyzzyplugh"
# So large that 21 records are always enough to be found and counted.
EPSILON = 30.0


class Killed(BaseException):
    """What ends a process and no `except Exception` sees."""


def small_prior() -> LanguagePrior:
    return LanguagePrior.from_texts(PUBLIC, Vocabulary.from_texts(PUBLIC))


@contextlib.contextmanager
def small_world() -> Iterator[LanguagePrior]:
    """Makes fits small while it lasts: few seeds, no English, no graphs to compile."""
    prior = small_prior()
    eager = tf.config.functions_run_eagerly()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(guaranteed, "_SEEDS", 24)
        patch.setattr(guaranteed, "_JUDGED", 60)
        patch.setattr(class_gan, "_COMPARED", 60)
        patch.setattr(LanguagePrior, "load", classmethod(lambda cls, path=None: prior))
        tf.config.run_functions_eagerly(True)
        try:
            yield prior
        finally:
            tf.config.run_functions_eagerly(eager)


@contextlib.contextmanager
def pinned():
    """Mechanisms release the same whatever they are given; yields training plans."""
    plans = []

    def release(mechanism, counts):
        return np.random.default_rng(counts.size).normal(5, 3, counts.shape)

    def select(counts, noise_multiplier, delta):
        selected = SelectedPartitions(("ham", "spam"), np.array([20.0, 30.0]))
        return selected, GaussianThreshold(noise_multiplier, delta)

    def sums(trainer, *_):
        plans.append(trainer.plan)
        return trainer.engine.zeros()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GaussianCounts, "release", release)
        patch.setattr(guaranteed, "select_partitions", select)
        patch.setattr(DPTrainer, "_private_sums", sums)
        patch.setattr(
            optimizer,
            "noised_mean",
            lambda sums, _, *rest: noise.noised_mean(sums, 0.0, *rest),
        )
        yield plans


def fitted(
    folder,
    texts=TEXTS,
    labels=LABELS,
    *,
    epsilon=EPSILON,
    steps=0,
    declared=("ham", "spam"),
    rounds=SETTINGS.rounds,
    method=GuaranteedMethod,
):
    """Returns a fitted method and its ledger; without networks unless steps are."""
    budget = ReleaseBudget(
        epsilon, discriminator_steps=steps, select_labels=declared is None
    )
    settings = dataclasses.replace(SETTINGS, rounds=rounds)
    result = method(budget, settings, labels=declared, seed=0)
    ledger = result.fit(
        texts, labels, store=RunStore(folder), report=lambda stage, done: None
    )
    return result, ledger
