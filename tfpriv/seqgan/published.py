"""The published method, with its published noise or none: for comparison only."""

from __future__ import annotations

import dataclasses
import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

from tfpriv._errors import InputError
from tfpriv._files import write_json
from tfpriv._validation import integer, one_of, positive
from tfpriv.accounting import DPSGDPlan, NonPrivate, PrivacyLedger, PrivateRead
from tfpriv.dp_training import DPTrainer
from tfpriv.seqgan.charges import private_reads
from tfpriv.seqgan.discriminator import Discriminator
from tfpriv.seqgan.generator import Generator
from tfpriv.seqgan.private_step import PrivateDiscriminatorStep, discriminator_loss
from tfpriv.seqgan.run_store import RunStore
from tfpriv.seqgan.seqgan import Progress, SeqGAN
from tfpriv.text.vocabulary import PAD, START, UNK, Vocabulary

Report = Callable[[str, float], None]

_SIZES = "label names and class sizes"
_VOCABULARY = "vocabulary"
_PRETRAINING = "generator pre-training"
_DISCRIMINATOR = "discriminator"
_NOTES = {
    _SIZES: "taken from the private labels as they are",
    _VOCABULARY: "the most frequent tokens of the private texts, as they are",
    _PRETRAINING: "maximum likelihood on the private texts, which the generator may "
    "learn by heart",
}
_MODES = ("paper", "seqgan")


@dataclasses.dataclass(frozen=True)
class PublishedSettings:
    """The published method's sizes and lengths.

    Sizes and learning rates are those of SeqGAN's reference code, noise and clipping
    those of the DP-SeqGAN paper, which prints no number of steps: 727 gives the
    epsilon that it prints. Less than the reference: 40 epochs of pre-training against
    120, 8 rollouts against 16, a discriminator of 4 widths against 12, and a tenth of
    its rate of policy gradient, .01, at which text collapses (docs/dp_seqgan.md).

    Attributes:
        max_length: tokens of a text, its end included; longer texts are cut.
        vocabulary_size: most frequent tokens of the private texts that are kept.
        embedding_dim, units: of the generator.
        mle_epochs: epochs of pre-training on the private texts.
        batch_size: sequences a step.
        generator_learning_rate: Adam's, of pre-training.
        policy_learning_rate: Adam's, of policy gradient.
        discriminator_learning_rate: Adam's.
        discriminator_embedding_dim, discriminator_widths, discriminator_filters: of
            the TextCNN.
        noise_multiplier, l2_norm_clip: of the private discriminator steps.
        discriminator_steps: steps of each class's discriminator, all told.
        rounds: adversarial rounds.
        g_steps: policy-gradient steps a round.
        d_steps: discriminator steps a round; what is left of `discriminator_steps`
            comes before the first round.
        rollouts: rollouts a prefix.

    Raises:
        InputError: a size that cannot be used, or fewer discriminator steps than
            the rounds take.
    """

    max_length: int = 20
    vocabulary_size: int = 5000
    embedding_dim: int = 32
    units: int = 32
    mle_epochs: int = 40
    batch_size: int = 64
    generator_learning_rate: float = 0.01
    policy_learning_rate: float = 0.001
    discriminator_learning_rate: float = 1e-4
    discriminator_embedding_dim: int = 64
    discriminator_widths: tuple[int, ...] = (2, 3, 4, 5)
    discriminator_filters: int = 64
    noise_multiplier: float = 0.001
    l2_norm_clip: float = 1.0
    discriminator_steps: int = 727
    rounds: int = 20
    g_steps: int = 1
    d_steps: int = 5
    rollouts: int = 8

    def __post_init__(self) -> None:
        sizes = {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if field.type == "int"
        }
        may_be_zero = ("mle_epochs", "rounds", "g_steps", "d_steps")
        integer(0, **{name: sizes.pop(name) for name in may_be_zero})
        integer(**sizes)
        positive(
            generator_learning_rate=self.generator_learning_rate,
            policy_learning_rate=self.policy_learning_rate,
            discriminator_learning_rate=self.discriminator_learning_rate,
            noise_multiplier=self.noise_multiplier,
            l2_norm_clip=self.l2_norm_clip,
        )
        if self.discriminator_steps < self.rounds * self.d_steps:
            raise InputError(
                f"Expected discriminator_steps >= rounds * d_steps = "
                f"{self.rounds * self.d_steps}, received "
                f"discriminator_steps={self.discriminator_steps}. Take fewer rounds."
            )

    def plan(self, mode: str) -> list[dict[str, Any]]:
        """Returns what reads the records, a dict a part, before any training.

        Args:
            mode: "paper" or "seqgan".

        Returns:
            Dicts of `part`, `share` (None: there is no budget to share),
            `noise_multiplier` (None: it reads the records without noise), `times`.
        """
        one_of(_MODES, mode=mode)
        rows = [(_SIZES, None, 1), (_VOCABULARY, None, 1)]
        rows.append((_PRETRAINING, None, self.mle_epochs))
        noise = self.noise_multiplier if mode == "paper" else None
        rows.append((_DISCRIMINATOR, noise, self.discriminator_steps))
        return [
            {"part": part, "share": None, "noise_multiplier": noise, "times": times}
            for part, noise, times in rows
        ]


class PublishedMethod:
    """A SeqGAN a class, its discriminator with the published noise or without.

    Each class's generator is pre-trained on the class's private texts, so there is
    no guarantee for the whole, whatever the noise on the discriminator. Labels are
    inherited: a text has the label of the generator that wrote it.

    Args:
        settings: PublishedSettings.
        private: whether discriminators are trained by DP-SGD.
        delta: float, of the ledger and the statement.
        seed: int, of weights and drawn text; never of noise.

    Attributes:
        collapsed: label -> round of `fit` after which its text had collapsed.

    References:
        Zhang et al. 2020, doi 10.11959/j.issn.2096-109x.2020046; Yu et al. 2017,
        arXiv:1609.05473.
    """

    def __init__(
        self, settings: PublishedSettings, *, private: bool, delta: float, seed: int
    ) -> None:
        self.settings = settings
        self.private = private
        self.delta = delta
        self.seed = seed
        self.labels: tuple[str, ...] = ()
        self.vocabulary: Vocabulary | None = None
        self.generators: list[Generator] = []
        self.collapsed: dict[str, int] = {}
        self._sizes: list[int] = []

    # --- Training ------------------------------------------------------------

    def fit(
        self,
        texts: Sequence[str],
        labels: Sequence[str],
        *,
        store: RunStore,
        report: Report,
    ) -> PrivacyLedger:
        """Trains, or goes on training what `store` remembers.

        Args:
            texts: n private texts.
            labels: their n labels.
            store: where ledger and checkpoints lie.
            report: called with (stage, share done).

        Returns:
            The ledger of everything that was read.
        """
        ledger = store.ledger(limit_epsilon=math.inf, delta=self.delta)
        report("reading", 0.0)
        charged = {(charge.name, charge.part) for charge in ledger.events()}
        for name in (_SIZES, _VOCABULARY, _PRETRAINING):
            if (name, None) not in charged:
                ledger.charge(name, NonPrivate())
        sizes = Counter(labels)
        self.labels = tuple(sorted(sizes))
        self._sizes = [sizes[name] for name in self.labels]
        self.vocabulary = Vocabulary.from_texts(
            texts, size=self.settings.vocabulary_size
        )
        rows = self.vocabulary.encode(
            texts, self.settings.max_length, keep_unknown=False
        )
        labels = np.asarray(labels)
        self.generators, self.collapsed = [], {}
        for number, name in enumerate(self.labels):
            gan = self._gan(number)
            self.generators.append(gan.generator)
            records = rows[labels == name]
            if self.private:
                self._make_private(gan, records, ledger, name)
            elif (_DISCRIMINATOR, name) not in charged:
                ledger.charge(_DISCRIMINATOR, NonPrivate(), part=name)
            self._train(gan, number, records, store, report)
            if gan.collapsed:
                self.collapsed[name] = gan.counters["rounds"]
        report("done", 1.0)
        return ledger

    def _gan(self, number: int) -> SeqGAN:
        settings = self.settings
        seed = self.seed * 1_000 + number
        generator = Generator(
            len(self.vocabulary),
            settings.max_length,
            settings.embedding_dim,
            settings.units,
            forbidden_ids=(PAD, START, UNK),
            seed=seed,
        )
        discriminator = Discriminator(
            len(self.vocabulary),
            settings.max_length,
            settings.discriminator_embedding_dim,
            settings.discriminator_widths,
            settings.discriminator_filters,
            seed=seed,
        )
        return SeqGAN(
            generator,
            discriminator,
            reward="rollout",
            rollouts=settings.rollouts,
            batch_size=settings.batch_size,
            pretraining_learning_rate=settings.generator_learning_rate,
            learning_rate=settings.policy_learning_rate,
            discriminator_learning_rate=settings.discriminator_learning_rate,
            seed=seed,
        )

    def _make_private(
        self, gan: SeqGAN, records: np.ndarray, ledger: PrivacyLedger, name: str
    ) -> None:
        settings = self.settings
        plan = DPSGDPlan(
            num_examples=len(records),
            batch_size=min(settings.batch_size, len(records)),
            steps=settings.discriminator_steps,
            noise_multiplier=settings.noise_multiplier,
            l2_norm_clip=settings.l2_norm_clip,
            sampling="none",
        )
        trainer = DPTrainer(
            gan.discriminator,
            discriminator_loss,
            plan,
            learning_rate=settings.discriminator_learning_rate,
            ledger=ledger,
            name=_DISCRIMINATOR,
            part=name,
        )
        gan.discriminator_step = PrivateDiscriminatorStep(trainer, records)

    def _train(
        self,
        gan: SeqGAN,
        number: int,
        records: np.ndarray,
        store: RunStore,
        report: Report,
    ) -> None:
        settings, key = self.settings, f"class-{number}"
        gan.use_corpus(records)
        state = store.arrays(key)
        if state is not None:
            gan.load_state_dict(state)

        def on_progress(progress: Progress) -> None:
            done = _STAGES[progress.stage](progress.step / max(progress.total, 1))
            stage = f"{self.labels[number]}: {progress.stage}"
            report(stage, (number + done) / len(self.labels))
            every = _SAVE_EVERY[progress.stage]
            if progress.step % every == 0 or progress.step == progress.total:
                store.save_arrays(key, gan.state_dict())

        gan.pretrain_generator(settings.mle_epochs, callbacks=[on_progress])
        gan.pretrain_discriminator(
            settings.discriminator_steps - settings.rounds * settings.d_steps,
            callbacks=[on_progress],
        )
        gan.train_adversarially(
            settings.rounds,
            g_steps=settings.g_steps,
            d_steps=settings.d_steps,
            callbacks=[on_progress],
        )

    # --- Release -------------------------------------------------------------

    @property
    def class_sizes(self) -> np.ndarray:
        """Number of records of each label, float64 (K,): exact, not private."""
        return np.asarray(self._sizes, np.float64)

    def sample(self, number: int, count: int, seed: int) -> list[str]:
        """Returns `count` synthetic texts of a class; none empty if that can be."""
        kept: list[np.ndarray] = []
        missing = count
        for attempt in range(_ATTEMPTS):
            rows = self.generators[number].sample(
                missing, seed=(seed * 101 + number) * _ATTEMPTS + attempt
            )
            if attempt < _ATTEMPTS - 1:
                rows = rows[rows[:, 0] > UNK]
            kept.append(rows)
            missing -= len(rows)
            if not missing:
                break
        return self.vocabulary.decode(np.concatenate(kept), seed=seed * 31 + number)

    def reads(self, ledger: PrivacyLedger) -> list[PrivateRead]:
        """Returns what read private records, as the ledger recorded it."""
        note = (
            "clipped gradients of the class's texts; the generator's have no noise"
            if self.private
            else "trained on the private texts without noise"
        )
        return private_reads(ledger, {**_NOTES, _DISCRIMINATOR: note})

    def save(self, folder: Path) -> None:
        """Writes what `load` needs. All of it is as private as the records."""
        value = {"sizes": self._sizes, "vocabulary": self.vocabulary.to_json()}
        write_json(folder / "published.json", value)
        for number, generator in enumerate(self.generators):
            generator.save(folder / f"generator-{number}.keras")

    def load(self, folder: Path, labels: tuple[str, ...]) -> None:
        """Reads what `save` wrote."""
        value = json.loads((folder / "published.json").read_text(encoding="utf-8"))
        self.labels = labels
        self._sizes = value["sizes"]
        self.vocabulary = Vocabulary.from_json(value["vocabulary"])
        self.generators = [
            keras.saving.load_model(folder / f"generator-{number}.keras")
            for number in range(len(labels))
        ]


_ATTEMPTS = 8
_SAVE_EVERY = {"pretraining": 10, "discriminator": 50, "adversarial": 1}
_STAGES: dict[str, Callable[[float], float]] = {
    "pretraining": lambda done: 0.3 * done,
    "discriminator": lambda done: 0.3 + 0.4 * done,
    "adversarial": lambda done: 0.7 + 0.3 * done,
}
