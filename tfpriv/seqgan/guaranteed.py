"""The default way from records to synthetic text: everything that reads them pays."""

from __future__ import annotations

import dataclasses
import io
import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import keras
import numpy as np

from tfpriv._errors import BudgetExceeded
from tfpriv._files import write_json
from tfpriv.accounting import (
    Compose,
    DPSGDPlan,
    Gaussian,
    PrivacyLedger,
    PrivateRead,
)
from tfpriv.mechanisms import GaussianCounts, select_partitions
from tfpriv.mechanisms.record_counts import (
    length_histogram,
    pair_presence,
    token_presence,
)
from tfpriv.seqgan.budget import ReleaseBudget
from tfpriv.seqgan.charges import private_reads
from tfpriv.seqgan.class_gan import ClassGAN, GANSettings
from tfpriv.seqgan.generated_texts import GeneratedTexts
from tfpriv.seqgan.run_store import RunStore
from tfpriv.seqgan.seed_model import NoisyCounts, SeedModel, token_weights
from tfpriv.seqgan.seqgan import Progress
from tfpriv.seqgan.word_ids import WordIds
from tfpriv.text.prior import LanguagePrior
from tfpriv.text.vocabulary import END, START

Report = Callable[[str, float], None]
Texts = list[list[int]]

_SEEDS = 2000
_JUDGED = 1000
# A measurement that was paid for and lost is made again with what is left.
_GIVE_UP = 64.0
_FEWEST = 1.0


@dataclasses.dataclass
class FittedClass:
    """What the release of one class draws from.

    Attributes:
        gan: the trained generator, or None.
        divergence: of each candidate from the released counts; see
            `SeedModel.divergence`.
        chosen: "seed", "pretrained" or "adversarial".
    """

    gan: GeneratedTexts | None
    divergence: dict[str, float]
    chosen: str


class GuaranteedMethod:
    """Noisy counts, a seed corpus, a GAN on it with a private discriminator.

    1. Label names by partition selection, unless declared.
    2. Noisy token and length counts of each class, then noisy counts of neighbouring
       tokens among those that turned out frequent.
    3. A seed corpus from a public language model tilted by these counts.
    4. For each class: a generator pre-trained on its seed corpus, a discriminator
       that tells records from generated text by DP-SGD, policy gradient.
    5. A class releases the generator if its texts are nearer to the released counts
       than the seed corpus is, else the seed corpus.

    The vocabulary and the language model are public. Steps 3 and 5 read nothing
    private. Every step of 1, 2 and 4 is charged before it is taken.

    Args:
        budget: ReleaseBudget.
        settings: GANSettings.
        labels: declared label names, or None.
        seed: int, of weights and drawn text.

    Attributes:
        collapsed: label -> round of `fit` after which its text had collapsed, of
            the labels whose generator is released.
    """

    def __init__(
        self,
        budget: ReleaseBudget,
        settings: GANSettings,
        *,
        labels: Sequence[str] | None,
        seed: int,
    ) -> None:
        self.budget = budget
        self.settings = settings
        self.declared = None if labels is None else tuple(labels)
        self.seed = seed
        self.prior = LanguagePrior.load()
        self.labels: tuple[str, ...] = ()
        self.seed_model: SeedModel | None = None
        self.classes: list[FittedClass] = []
        self.collapsed: dict[str, int] = {}

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

        Returns:
            The ledger of everything that was charged.
        """
        ledger = store.ledger(
            limit_epsilon=self.budget.epsilon, delta=self.budget.delta
        )
        report("reading", 0.0)
        vocabulary = self.prior.vocabulary
        rows = [
            vocabulary.ids(tokens, keep_unknown=False)
            for tokens in vocabulary.tokenizer.tokenize_all(texts)
        ]
        self.labels = self._label_names(labels, ledger, store)
        place = {name: i for i, name in enumerate(self.labels)}
        kept = [i for i, label in enumerate(labels) if label in place]
        rows = [rows[i] for i in kept]
        classes = [place[labels[i]] for i in kept]
        report("counting", 0.02)
        self.seed_model = SeedModel(
            self.prior, self._counts(rows, classes, ledger, store)
        )
        report("seed corpus", 0.06)
        self.classes, self.collapsed = [], {}
        for number, name in enumerate(self.labels):
            records = [r for r, c in zip(rows, classes, strict=True) if c == number]
            self.classes.append(
                self._fit_class(number, name, records, ledger, store, report)
            )
        report("done", 1.0)
        return ledger

    def _label_names(
        self, labels: Sequence[str], ledger: PrivacyLedger, store: RunStore
    ) -> tuple[str, ...]:
        if self.declared is not None:
            return self.declared
        saved = store.json("labels")
        if saved is None:
            multiplier = self._affordable("label names", ledger)
            event = dataclasses.replace(
                self.budget.events()["label names"], noise_multiplier=multiplier
            )
            ledger.charge("label names", event)
            selected, _ = select_partitions(
                Counter(labels), multiplier, self.budget.selection_delta
            )
            saved = list(selected.names)
            store.save_json("labels", saved)
        if not saved:
            raise RuntimeError(
                "Expected at least one label frequent enough to be named privately, "
                "found none. Declare the label names with --labels A,B, in Python "
                "labels=[...], if they are public."
            )
        return tuple(saved)

    def _counts(
        self,
        rows: Texts,
        classes: Sequence[int],
        ledger: PrivacyLedger,
        store: RunStore,
    ) -> NoisyCounts:
        num_classes = len(self.labels)

        def measured(
            part: str, count: Callable[[], np.ndarray], **beside: np.ndarray
        ) -> dict[str, np.ndarray]:
            saved = store.arrays(part)
            if saved is None:
                multiplier = self._affordable(part, ledger)
                ledger.charge(part, Gaussian(multiplier))
                mechanism = GaussianCounts(1.0, multiplier)
                noisy = mechanism.release(count())
                saved = {"counts": noisy, "noise": np.array(multiplier), **beside}
                store.save_arrays(part, saved)
            return saved

        weights = token_weights(self.prior)
        tokens = measured(
            "tokens", lambda: token_presence(rows, classes, num_classes, weights)
        )
        lengths = measured(
            "lengths", lambda: length_histogram(rows, classes, num_classes)
        )
        first = NoisyCounts(tokens["counts"], lengths["counts"], float(tokens["noise"]))
        ids = SeedModel(self.prior, first).pair_tokens()
        framed = [[START, *row, END] for row in rows]
        try:
            # With the tokens that were counted: a resumed run may rank them otherwise.
            pairs = measured(
                "pairs",
                lambda: pair_presence(framed, classes, num_classes, ids),
                ids=ids,
            )
        except BudgetExceeded:
            return first
        return dataclasses.replace(
            first,
            pair_ids=pairs["ids"],
            pairs=pairs["counts"],
            pair_noise=float(pairs["noise"]),
        )

    def _affordable(self, part: str, ledger: PrivacyLedger) -> float:
        """Noise multiplier of a part: the planned one, or what a lost one left."""
        events = self.budget.events()
        event = events[part]
        # Without both there is no release: the first leaves enough for the second.
        later = (events["lengths"],) if part in ("label names", "tokens") else ()
        factor = 1.0
        while factor <= _GIVE_UP:
            multiplier = event.noise_multiplier * factor
            noisier = dataclasses.replace(event, noise_multiplier=multiplier)
            if ledger.affords(Compose((noisier, *later))):
                return multiplier
            factor *= 1.25
        raise BudgetExceeded(
            f"Expected a budget that can pay for {part} with at most {_GIVE_UP:g} "
            "times the planned noise, but earlier, interrupted runs spent it. Start "
            "a new run in another folder: the records then pay anew."
        )

    def _fit_class(
        self,
        number: int,
        name: str,
        records: Texts,
        ledger: PrivacyLedger,
        store: RunStore,
        report: Report,
    ) -> FittedClass:
        model = self.seed_model
        key = f"class-{number}"
        size = model.class_sizes[number]
        share = 0.9 / len(self.labels)

        def on_progress(progress: Progress) -> None:
            done = _STAGES[progress.stage](progress.step / max(progress.total, 1))
            stage = f"{name}: {progress.stage}"
            report(stage, 0.08 + share * (number + done))

        rng = np.random.default_rng([self.seed, number])
        seeds = self.seed_corpus(number, rng)
        judged = model.sample(number, _JUDGED, rng)
        divergence = {"seed": model.divergence(judged, number)}
        if size < _FEWEST or not self.budget.discriminator_steps:
            return FittedClass(None, divergence, "seed")
        plan = DPSGDPlan(
            num_examples=max(1, round(size)),
            batch_size=max(1, round(size)),
            steps=self.budget.discriminator_steps,
            noise_multiplier=self.budget.noise_multiplier("discriminator"),
            sampling="full_batch",
        )
        gan = ClassGAN(seeds, self.settings, seed=self.seed + number)
        before = gan.train(
            records,
            plan,
            ledger=ledger,
            part=name,
            store=store,
            key=key,
            progress=on_progress,
        )
        after = self._filtered(gan.texts, number, _JUDGED, self.seed)
        kept = zip(before, model.accepts(before, number), strict=True)
        before = [text for text, good in kept if good][:_JUDGED]
        divergence["pretrained"] = model.divergence(before, number)
        divergence["adversarial"] = model.divergence(after, number)
        chosen = min(("seed", "adversarial"), key=divergence.get)
        if chosen == "adversarial" and gan.collapsed_in:
            self.collapsed[name] = gan.collapsed_in
        return FittedClass(gan.texts, divergence, chosen)

    def seed_corpus(
        self, number: int, rng: np.random.Generator | None = None
    ) -> list[list[int]]:
        """Returns what the networks of a class begin with, as token ids.

        It follows from what was released: drawn anew, it is the same.

        Args:
            number: of the class.
            rng: what it is drawn from; None begins where training did.
        """
        if rng is None:
            rng = np.random.default_rng([self.seed, number])
        return self.seed_model.sample(number, _SEEDS, rng)

    # --- Release -------------------------------------------------------------

    @property
    def class_sizes(self) -> np.ndarray:
        """Noisy number of records of each label, float64 (K,), at least 0."""
        return self.seed_model.class_sizes

    def sample(self, number: int, count: int, seed: int) -> list[str]:
        """Returns `count` synthetic texts of a class."""
        fitted = self.classes[number]
        if fitted.chosen == "seed":
            rng = np.random.default_rng([seed, number, 1])
            ids = self.seed_model.sample(number, count, rng)
        else:
            ids = self._filtered(fitted.gan, number, count, seed)
        vocabulary = self.prior.vocabulary
        return [
            vocabulary.tokenizer.detokenize(
                [vocabulary.tokens[i] for i in text],
                seed=(seed * 31 + number) * 1_000_003 + line,
            )
            for line, text in enumerate(ids)
        ]

    def reads(self, ledger: PrivacyLedger) -> list[PrivateRead]:
        """Returns what read private records, as the ledger recorded it."""
        notes = {
            "tokens": "which known tokens a record has, scaled to norm 1",
            "lengths": "how many tokens a record has",
            "pairs": "which frequent tokens stand side by side, scaled to norm 1",
            "label names": "labels that enough records share",
            "discriminator": "clipped gradients of every record of the class",
        }
        return private_reads(ledger, notes)

    def save(self, folder: Path) -> None:
        """Writes what `load` needs; all of it was released by a mechanism.

        Whoever calls it sees to it that a folder of which only half was written is
        none: see `model_folder`.
        """
        counts = self.seed_model.counts
        arrays = dataclasses.asdict(counts)
        for number, fitted in enumerate(self.classes):
            if fitted.gan is not None:
                arrays[f"words/{number}"] = fitted.gan.words.tokens
                path = folder / f"generator-{number}.keras"
                fitted.gan.generator.save(path)
        # Through memory: on a full disk, zipfile would complain once more, later.
        whole = io.BytesIO()
        np.savez(whole, **arrays)
        (folder / "counts.npz").write_bytes(whole.getbuffer())
        write_json(
            folder / "classes.json",
            [
                {"divergence": fitted.divergence, "chosen": fitted.chosen}
                for fitted in self.classes
            ],
        )

    def load(self, folder: Path, labels: tuple[str, ...]) -> None:
        """Reads what `save` wrote."""
        self.labels = labels
        with np.load(folder / "counts.npz", allow_pickle=False) as file:
            arrays = dict(file)
        fields = {f.name for f in dataclasses.fields(NoisyCounts)}
        values = {k: v for k, v in arrays.items() if k in fields}
        for name in ("token_noise", "pair_noise"):
            values[name] = float(values[name])
        self.seed_model = SeedModel(self.prior, NoisyCounts(**values))
        self.classes = []
        stored = json.loads((folder / "classes.json").read_text(encoding="utf-8"))
        for number, saved in enumerate(stored):
            gan = None
            if saved["chosen"] == "adversarial":
                words = WordIds(arrays[f"words/{number}"])
                generator = keras.saving.load_model(
                    folder / f"generator-{number}.keras"
                )
                gan = GeneratedTexts(words, generator)
            self.classes.append(FittedClass(gan, saved["divergence"], saved["chosen"]))

    def _filtered(
        self, gan: GeneratedTexts, number: int, count: int, seed: int
    ) -> Texts:
        kept: Texts = []
        for attempt in range(8):
            missing = count - len(kept)
            if missing <= 0:
                break
            texts = gan.sample(2 * missing, seed=seed * 101 + attempt + 1)
            texts = [text for text in texts if text]
            accepted = self.seed_model.accepts(texts, number)
            kept += [t for t, good in zip(texts, accepted, strict=True) if good]
        if len(kept) < count:
            rng = np.random.default_rng([seed, number, 2])
            kept += self.seed_model.sample(number, count - len(kept), rng)
        return kept[:count]


_STAGES: dict[str, Callable[[float], float]] = {
    "pretraining": lambda done: 0.4 * done,
    "discriminator": lambda done: 0.4 + 0.1 * done,
    "adversarial": lambda done: 0.5 + 0.5 * done,
}
