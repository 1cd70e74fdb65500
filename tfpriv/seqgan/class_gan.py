"""The adversarial part of one class: from a seed corpus to a trained generator."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import keras
import numpy as np

from tfpriv._errors import BudgetExceeded, InputError
from tfpriv._validation import integer, non_negative
from tfpriv.accounting import DPSGDPlan, PrivacyLedger
from tfpriv.dp_training import DPTrainer
from tfpriv.seqgan.discriminator import Discriminator
from tfpriv.seqgan.generated_texts import GeneratedTexts
from tfpriv.seqgan.generator import Generator
from tfpriv.seqgan.private_step import PrivateDiscriminatorStep, discriminator_loss
from tfpriv.seqgan.run_store import RunStore
from tfpriv.seqgan.seqgan import Progress, SeqGAN
from tfpriv.seqgan.word_ids import WordIds
from tfpriv.text.vocabulary import PAD, START, UNK

# Texts of the pre-trained generator that the adversarial part is compared with.
_COMPARED = 2000


_MAY_BE_ZERO = ("mle_epochs", "warm_up_steps", "rounds", "g_steps")
_SIZES = ("max_length", "units", "discriminator_filters", "rollouts", "batch_size")


@dataclasses.dataclass(frozen=True)
class GANSettings:
    """Sizes and lengths of the adversarial part; public, none is fitted.

    Attributes:
        max_length: tokens of a generated text, its end included.
        embedding_dim, units: of the generator.
        mle_epochs: epochs of pre-training on the seed corpus.
        discriminator_widths, discriminator_filters: of the TextCNN.
        warm_up_steps: steps in which the discriminator learns the seed corpus from
            generated text, at no cost; its embedding is frozen afterwards.
        rounds: adversarial rounds; the private discriminator steps are spread over
            them.
        g_steps: policy-gradient steps a round.
        rollouts: rollouts a prefix.
        batch_size: sequences a step.
        mle_weight: how firmly policy gradient is held near the seed corpus.

    Raises:
        InputError: a size that cannot be used: before counts are paid for.
    """

    max_length: int = 32
    embedding_dim: int = 64
    units: int = 96
    mle_epochs: int = 5
    discriminator_widths: tuple[int, ...] = (1, 2, 3)
    discriminator_filters: int = 24
    warm_up_steps: int = 40
    rounds: int = 3
    g_steps: int = 2
    rollouts: int = 3
    batch_size: int = 64
    mle_weight: float = 0.5

    def __post_init__(self) -> None:
        integer(0, **{name: getattr(self, name) for name in _MAY_BE_ZERO})
        integer(**{name: getattr(self, name) for name in _SIZES})
        # The discriminator's is half the generator's.
        integer(2, embedding_dim=self.embedding_dim)
        integer(**{f"width {i}": i for i in self.discriminator_widths})
        if not 0 < max(self.discriminator_widths, default=0) <= self.max_length:
            raise InputError(
                f"Expected discriminator_widths from 1 to max_length="
                f"{self.max_length}, received {self.discriminator_widths}."
            )
        non_negative(mle_weight=self.mle_weight)


class ClassGAN:
    """Generator and private discriminator of one class.

    Pre-training reads the seed corpus, which is released already. Only the private
    discriminator steps read records: `DPTrainer` charges the ledger for each.

    Args:
        seeds: texts of the class as token-id lists, from released counts.
        settings: GANSettings.
        seed: int, of initial weights and generated text; never of noise.

    Attributes:
        collapsed_in: round of `train` after which its text had collapsed, or 0.
    """

    def __init__(
        self, seeds: Sequence[Sequence[int]], settings: GANSettings, *, seed: int
    ) -> None:
        self.settings = settings
        self.seed = seed
        self.collapsed_in = 0
        self.words = WordIds(token for text in seeds for token in text)
        self._corpus = self.words.rows(seeds, settings.max_length)
        self.generator = Generator(
            len(self.words),
            settings.max_length,
            settings.embedding_dim,
            settings.units,
            forbidden_ids=(PAD, START, UNK),
            seed=seed,
        )
        self.discriminator = Discriminator(
            len(self.words),
            settings.max_length,
            settings.embedding_dim // 2,
            settings.discriminator_widths,
            settings.discriminator_filters,
            seed=seed,
        )
        self.texts = GeneratedTexts(self.words, self.generator)

    def train(
        self,
        records: Sequence[Sequence[int]],
        plan: DPSGDPlan | None,
        *,
        ledger: PrivacyLedger,
        part: str,
        store: RunStore,
        key: str,
        progress: Callable[[Progress], None] = lambda _: None,
    ) -> list[list[int]]:
        """Trains as far as is not done yet, or as the budget lasts.

        Args:
            records: ALL private texts of the class, token-id lists.
            plan: of the discriminator, or None to stop after pre-training.
            ledger: charged for every private step.
            part: name of the class for parallel composition.
            store: where checkpoints go.
            key: name of the checkpoint.
            progress: called after each epoch and round.

        Returns:
            What the pre-trained generator wrote before any adversarial step, for
            comparison: token-id lists.
        """
        settings = self.settings
        gan = SeqGAN(
            self.generator,
            self.discriminator,
            reward="rollout",
            rollouts=settings.rollouts,
            batch_size=settings.batch_size,
            learning_rate=1e-3,
            pretraining_learning_rate=3e-3,
            mle_weight=settings.mle_weight,
            discriminator_learning_rate=1e-3,
            seed=self.seed,
        )
        before = self._pretrain(gan, store, key, progress)
        if plan is None or not plan.steps:
            return before
        trainer = DPTrainer(
            self.discriminator,
            discriminator_loss,
            plan,
            learning_rate=2e-3,
            ledger=ledger,
            name="discriminator",
            part=part,
        )
        gan.discriminator_step = PrivateDiscriminatorStep(
            trainer, self.words.rows(records, settings.max_length)
        )
        checkpoint = store.arrays(key)
        if checkpoint is not None:
            gan.load_state_dict(checkpoint)
        self._play(gan, plan, store, key, progress)
        return before

    def _pretrain(
        self,
        gan: SeqGAN,
        store: RunStore,
        key: str,
        progress: Callable[[Progress], None],
    ) -> list[list[int]]:
        gan.use_corpus(self._corpus)
        saved = store.arrays(f"{key}-pretrained")
        if saved is None:
            gan.pretrain_generator(self.settings.mle_epochs, callbacks=[progress])
            gan.pretrain_discriminator(
                self.settings.warm_up_steps, callbacks=[progress]
            )
            saved = self._weights()
            store.save_arrays(f"{key}-pretrained", saved)
        for name, model in self._models().items():
            count = len(model.get_weights())
            model.set_weights([saved[f"{name}/{i}"] for i in range(count)])
        # Noise on the embedding of thousands of words would drown the rest.
        self.discriminator.embedding.trainable = False
        gan.counters["d_steps"] = 0
        return self.texts.sample(_COMPARED, seed=self.seed)

    def _play(
        self,
        gan: SeqGAN,
        plan: DPSGDPlan,
        store: RunStore,
        key: str,
        progress: Callable[[Progress], None],
    ) -> None:
        rounds = self.settings.rounds
        d_steps = np.diff(np.linspace(0, plan.steps, rounds + 1).round().astype(int))
        store.save_arrays(key, gan.state_dict())
        try:
            for number in range(gan.counters["rounds"], rounds):
                if gan.collapsed:
                    break
                # The discriminator goes first: its warm-up saw no record.
                if d_steps[number]:
                    gan.train_discriminator(int(d_steps[number]))
                gan.train_adversarially(
                    number + 1, g_steps=self.settings.g_steps, d_steps=0
                )
                store.save_arrays(key, gan.state_dict())
                progress(Progress("adversarial", number + 1, rounds, {}))
        except BudgetExceeded:
            # Replayed steps were paid for twice: the run ends early, within budget.
            store.save_arrays(key, gan.state_dict())
        self.collapsed_in = gan.counters["rounds"] if gan.collapsed else 0

    def _models(self) -> dict[str, keras.Model]:
        return {"generator": self.generator, "discriminator": self.discriminator}

    def _weights(self) -> dict[str, np.ndarray]:
        return {
            f"{name}/{i}": weight
            for name, model in self._models().items()
            for i, weight in enumerate(model.get_weights())
        }
