"""The membership attack of the DP-SeqGAN paper, as it was published."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfpriv._errors import InputError
from tfpriv._validation import integer, positive
from tfpriv.attacks.class_discriminators import ClassDiscriminator
from tfpriv.attacks.estimate import Estimate
from tfpriv.attacks.membership_score import MembershipScore, score_membership
from tfpriv.attacks.shadow_discriminators import ShadowDiscriminators
from tfpriv.seqgan.discriminator import Discriminator
from tfpriv.seqgan.generator import Generator
from tfpriv.seqgan.seqgan import SeqGAN

_LEAST_ROWS = 2
_FAKES = 512


@dataclasses.dataclass(frozen=True, eq=False)
class PublishedAttackResult:
    """What the published attack found on one class.

    Attributes:
        accuracy: share of right answers, In or Out, on a test set that is half S1 and
            half S2: .5 is chance, and the figure that the paper prints. The interval
            pays for the attacks tried (Clopper and Pearson 1934).
        score: MembershipScore of the SVM's decision value on all of S1 and S2.
        called_in: share of that test set which the SVM called In: near 0 or 1 it gives
            every record the same answer, and an accuracy of .5 says nothing.
        tested: records of the accuracy's test set.
        shadows: how many shadow discriminators taught the SVM.
        member_decisions: float, the SVM's decision value of each record of S1.
        non_member_decisions: the same of S2.
    """

    accuracy: Estimate
    score: MembershipScore
    called_in: float
    tested: int
    shadows: int
    member_decisions: np.ndarray
    non_member_decisions: np.ndarray

    def to_json(self) -> dict[str, Any]:
        """Returns the figures as plain JSON, no record's own."""
        return {
            "accuracy": self.accuracy.to_json(),
            "score": self.score.to_json(),
            "called_in": self.called_in,
            "tested": self.tested,
            "shadows": self.shadows,
        }


@dataclasses.dataclass(frozen=True)
class PublishedAttack:
    """Shadow discriminators on generated text teach an SVM what a member looks like.

    1. Each shadow takes other generated rows of the class for its real ones, and
       learns to tell them from the samples of a generator that was pre-trained on
       these same rows: a SeqGAN whose private text is synthetic.
    2. A pair (D(r), In) for rows of its own, (D(r), Out) for as many records of S3, all
       of whichever are fewer; D(r) is the shadow's probability that r is real.
    3. All shadows' pairs train one SVM.
    4. The SVM answers In or Out for the attacked discriminator's D(r), r from S1 (In)
       or S2 (Out).

    **Its weakness:** In rows are generated and Out rows are real, so the SVM may learn
    to tell generated text from real text, which has nothing to do with membership:
    S1 and S2 are both real. An accuracy of .5 is then no sign of privacy. Set it
    beside the attacks of `discriminator_membership` and `lira`.

    What the paper does not print, and what stands here for it: how many shadows, how
    many rows each, what a shadow's generated rows are, the SVM's kernel (scikit-learn's
    default, Gaussian).

    Attributes:
        shadows: int. Shadow discriminators.
        epochs: int. Of a shadow's generator.
        steps: int. Updates of a shadow discriminator.
        learning_rate: float. Of a shadow discriminator.
        seed: int. Of everything that is drawn.

    Raises:
        InputError: a number out of range.

    References:
        Zhang et al. 2020, doi 10.11959/j.issn.2096-109x.2020046, section 4.1.2.
    """

    shadows: int = 5
    epochs: int = 40
    steps: int = 727
    learning_rate: float = 1e-4
    seed: int = 0

    def __post_init__(self) -> None:
        integer(shadows=self.shadows, epochs=self.epochs, steps=self.steps)
        integer(0, seed=self.seed)
        positive(learning_rate=self.learning_rate)

    def run(
        self,
        target: ClassDiscriminator,
        generated: Sequence[str],
        held_out: Sequence[str],
        members: Sequence[str],
        non_members: Sequence[str],
        **options: Any,
    ) -> PublishedAttackResult:
        """Attacks one class.

        Args:
            target: the attacked networks.
            generated: generated texts of the class, for the shadows to share.
            held_out: S3, the shadows' Out.
            members: S1.
            non_members: S2.
            **options: of `score_membership`.

        Raises:
            InputError: too few texts of one kind, before anything is trained.
        """
        for name, texts, least in (
            ("generated", generated, _LEAST_ROWS * self.shadows),
            ("held_out", held_out, _LEAST_ROWS),
            ("members", members, _LEAST_ROWS),
            ("non_members", non_members, _LEAST_ROWS),
        ):
            if len(texts) < least:
                raise InputError(
                    f"Expected at least {least} texts for {name}, received "
                    f"{len(texts)}."
                )
        draw = np.random.default_rng([self.seed, len(generated)])
        pairs = self._pairs(target, target.encode(generated), held_out, draw)
        svm = _train_svm(*pairs)
        inside, outside = (
            svm.decision_function(_probabilities(target.logits(texts)))
            for texts in (members, non_members)
        )
        size = min(len(inside), len(outside))
        hits = int((draw.permutation(inside)[:size] > 0).sum())
        false_alarms = int((draw.permutation(outside)[:size] > 0).sum())
        score = score_membership("published (shadow SVM)", inside, outside, **options)
        error = (1 - score.confidence) / score.attacks_tried
        return PublishedAttackResult(
            accuracy=_share(hits + size - false_alarms, 2 * size, error),
            score=score,
            called_in=(hits + false_alarms) / (2 * size),
            tested=2 * size,
            shadows=self.shadows,
            member_decisions=inside,
            non_member_decisions=outside,
        )

    def _pairs(
        self,
        target: ClassDiscriminator,
        generated_ids: np.ndarray,
        held_out: Sequence[str],
        draw: np.random.Generator,
    ) -> tuple[np.ndarray, np.ndarray]:
        """D(r) of every shadow, and whether r was in its training set."""
        out_ids = target.encode(held_out)
        generators = _ShadowGenerators(target, self.epochs)
        train = None
        answers, inside = [], []
        order = draw.permutation(len(generated_ids))
        for number, rows in enumerate(np.array_split(order, self.shadows)):
            seed = self.seed * 1_000 + number
            real = generated_ids[rows]
            fakes = generators(real, seed=seed)
            if train is None:
                train = ShadowDiscriminators(
                    target.discriminator,
                    fakes,
                    steps=self.steps,
                    learning_rate=self.learning_rate,
                    start=target.start,
                )
            train.fake_ids = fakes
            size = min(len(real), len(out_ids))
            scored = np.concatenate(
                [draw.permutation(real)[:size], draw.permutation(out_ids)[:size]]
            )
            answers.append(_probabilities(train(real, scored, seed=seed)))
            inside.append(np.repeat([True, False], size))
        return np.concatenate(answers), np.concatenate(inside)


class _ShadowGenerators:
    """Generators like the attacked one, pre-trained on a shadow's own rows.

    Args:
        target: the attacked networks; their weights are not read.
        epochs: int, of pre-training.
    """

    def __init__(self, target: ClassDiscriminator, epochs: int) -> None:
        generator = Generator.from_config(target.generator.get_config())
        discriminator = Discriminator.from_config(target.discriminator.get_config())
        self._gan = SeqGAN(generator, discriminator, seed=0)
        self._fresh = self._gan.state_dict()
        self._epochs = epochs

    def __call__(self, real: np.ndarray, *, seed: int) -> np.ndarray:
        """Trains one on int32 (n, T) rows and returns its samples."""
        gan = self._gan
        gan.load_state_dict(self._fresh)
        gan.seed = seed
        gan.use_corpus(real)
        gan.pretrain_generator(self._epochs)
        return gan.generator.sample(_FAKES, seed=seed)


def _probabilities(logits: np.ndarray) -> np.ndarray:
    """D(r) as a column: float (n,) log odds -> float (n, 1)."""
    from scipy.special import expit

    return expit(logits)[:, None]


def _train_svm(answers: np.ndarray, inside: np.ndarray) -> Any:
    from sklearn.svm import SVC

    return SVC().fit(answers, inside)


def _share(right: int, tested: int, error: float) -> Estimate:
    from scipy.stats import beta

    low = beta.ppf(error / 2, right, tested - right + 1) if right else 0.0
    high = 1.0
    if right < tested:
        high = beta.ppf(1 - error / 2, right + 1, tested - right)
    return Estimate(right / tested, float(low), float(high))
