"""A private labelled text data set in, a synthetic one out, and what it cost."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tfpriv._errors import InputError
from tfpriv._figures import as_given
from tfpriv._files import DAMAGED, raise_if_of_the_system, write_json
from tfpriv._validation import integer, one_of, probability
from tfpriv.accounting import (
    Compose,
    DataBudget,
    Event,
    GroupBound,
    NonPrivate,
    PrivacyStatement,
    PrivateRead,
)
from tfpriv.datasets import TextDataset
from tfpriv.dp_training.one_device import require_one_device
from tfpriv.seqgan.budget import ReleaseBudget
from tfpriv.seqgan.class_gan import GANSettings
from tfpriv.seqgan.guaranteed import GuaranteedMethod
from tfpriv.seqgan.model_folder import model_folder
from tfpriv.seqgan.progress_bar import terminal_report
from tfpriv.seqgan.published import PublishedMethod, PublishedSettings
from tfpriv.seqgan.run_store import RunStore

Report = Callable[[str, float], None]

MODES = ("guaranteed", "paper", "seqgan")
_PUBLIC = (
    "the vocabulary and the language prior of tfpriv (word frequencies and short "
    "English texts that are public)",
    "column names and settings, and that the records could be read",
)
_DECLARED = "the label names, which were declared public"
_FLOATS = (
    "the discriminator's Gaussian noise is drawn as float64 numbers and taken as "
    "exact; it is scaled for the rounding of the clipped sums that it is added to",
)


class DPSeqGAN:
    """Learns to write texts like those of a private labelled data set.

    By default everything in the release is covered by (epsilon, delta)-differential
    privacy with respect to adding or removing one record: label names, class sizes,
    lengths, words, their order, and the discriminator. `DPSeqGAN.paper()` is the
    published method with its published noise, which covers the discriminator at an
    epsilon of 4e8 and nothing else; `DPSeqGAN.seqgan()` has no noise at all.

    Args:
        epsilon: float. What the whole release may cost.
        delta: float. Below 1 / number of records.
        labels: label names, if they are public knowledge; else they are found by
            partition selection, which is paid for and leaves out rare ones.
        discriminator_steps: int. Private steps of each class's discriminator; 0
            leaves the adversarial part out and spends its share on counts.
        settings: GANSettings of the adversarial part.
        group: GroupBound, or None. How many records of one author there are at most,
            in a data set with `groups`; the statement then says what all of one's
            cost together.
        seed: int. Of initial weights and drawn text. Noise has no seed.

    Raises:
        InputError: an epsilon, delta or size that cannot be used.

    Examples:
        >>> import tfpriv
        >>> data = tfpriv.datasets.load("sample").train
        >>> model = tfpriv.DPSeqGAN(epsilon=8.0)
        >>> model.fit(data).generate(100).to_csv("synthetic.csv")  # doctest: +SKIP

    References:
        Zhang et al. 2020, doi 10.11959/j.issn.2096-109x.2020046 (the method);
        Yu et al. 2017, arXiv:1609.05473 (SeqGAN).
    """

    def __init__(
        self,
        epsilon: float = 8.0,
        delta: float = 1e-5,
        *,
        labels: Sequence[str] | None = None,
        discriminator_steps: int = 12,
        settings: GANSettings | None = None,
        seed: int = 0,
        mode: str = "guaranteed",
        published: PublishedSettings | None = None,
        group: GroupBound | None = None,
    ) -> None:
        one_of(MODES, mode=mode)
        probability("Use a value below 1 / number of records.", delta=delta)
        integer(0, discriminator_steps=discriminator_steps, seed=seed)
        self.epsilon = float(epsilon)
        self.delta = float(delta)
        if labels is not None and (isinstance(labels, str) or not labels):
            raise InputError(
                f"Expected a list of label names, received labels={labels!r}. Leave "
                "labels out to have the names found."
            )
        self.labels = None if labels is None else tuple(dict.fromkeys(labels))
        self.discriminator_steps = discriminator_steps
        self.settings = settings or GANSettings()
        self.seed = seed
        self.mode = mode
        self.published = published or PublishedSettings()
        if not isinstance(group, GroupBound | None):
            raise InputError(
                "Expected group=tfpriv.accounting.GroupBound('author', 3), say, "
                f"received {group!r}."
            )
        self.group = group
        self.method: GuaranteedMethod | PublishedMethod | None = None
        self._columns = ("text", "label")
        self._reads: tuple[PrivateRead, ...] = ()
        if mode == "guaranteed":
            self._budget()

    def __repr__(self) -> str:
        state = "not fitted" if self.method is None else "fitted"
        if self.mode != "guaranteed":
            return (
                f"DPSeqGAN.{self.mode}(delta={as_given(self.delta)}, "
                f"seed={self.seed}): no guarantee, {state}"
            )
        names = "" if self.labels is None else f", {len(self.labels)} declared labels"
        return (
            f"DPSeqGAN(epsilon={as_given(self.epsilon)}, delta={as_given(self.delta)}, "
            f"discriminator_steps={self.discriminator_steps}, "
            f"seed={self.seed}){names}, {state}"
        )

    @classmethod
    def paper(cls, *, delta: float = 1e-5, **settings: Any) -> DPSeqGAN:
        """The published setting: noise multiplier .001, clip 1, 727 steps.

        The generator is pre-trained on private text, so the whole has no guarantee;
        the statement says so.
        """
        return cls(math.inf, delta, mode="paper", **settings)

    @classmethod
    def seqgan(cls, **settings: Any) -> DPSeqGAN:
        """SeqGAN per class, without noise: the control. It has no guarantee."""
        return cls(math.inf, mode="seqgan", **settings)

    def fit(
        self,
        data: TextDataset,
        *,
        run_dir: str | os.PathLike | None = None,
        report: Report | None = None,
        data_budget: DataBudget | None = None,
    ) -> DPSeqGAN:
        """Trains on all records of a data set.

        Args:
            data: TextDataset with labels. Every record whose label is declared or
                selected is used, duplicates too.
            run_dir: folder for ledger and checkpoints (private). Given again after a
                kill, with the same records in the same order, training goes on from
                there. None keeps nothing.
            report: called with (stage, share done) now and then; None shows a
                progress bar on a terminal.
            data_budget: what all releases of the data set may cost together. The
                whole plan is charged to it before anything is measured, once a run.

        Returns:
            This model.

        Raises:
            InputError: no labels, fewer than two of them, more records of a group
                than the model's `group` says, or a run folder of another configuration
                or of other records.
            BudgetExceeded: earlier interrupted runs spent the budget, or the data
                set's does not cover this run.
        """
        require_one_device()
        if data.labels is None:
            raise InputError("Expected a data set with labels, received one without.")
        # Declared names are public: whether records have them decides nothing here.
        if self.labels is None and len(set(data.labels)) < 2:
            raise InputError(
                f"Expected at least two labels in column {data.label_column!r}, "
                f"received {len(set(data.labels))}. Choose the column that tells "
                "the classes apart."
            )
        if self.group is not None:
            if data.groups is None:
                raise InputError(
                    "Expected a data set with groups for a model with group=, received "
                    "one without. Read it with the column that tells who wrote what."
                )
            self.group.check(data.groups)
        method = self._make_method()
        with contextlib.ExitStack() as stack:
            store = stack.enter_context(contextlib.closing(RunStore(run_dir)))
            self._check_run(store, data)
            if data_budget is not None:
                ledger = store.ledger(limit_epsilon=self.epsilon, delta=self.delta)
                data_budget.charge(
                    self.event(), "synthetic text", run=ledger, group=self.group
                )
            if report is None:
                report = stack.enter_context(terminal_report())
            ledger = method.fit(data.texts, data.labels, store=store, report=report)
            reads = tuple(method.reads(ledger))
        # Last: a fit that was broken off leaves the model as it was.
        self._columns = (data.text_column, data.label_column)
        self._reads, self.method = reads, method
        return self

    @property
    def collapsed(self) -> dict[str, int]:
        """Label -> adversarial round in which its generator had collapsed.

        Its training ended there, with the weights of the round before. Known of
        `fit`; a loaded model has none.
        """
        return dict(self._fitted().collapsed)

    def event(self) -> Event:
        """Returns everything that `fit` means to do to the records, as one event."""
        if self.mode != "guaranteed":
            return NonPrivate()
        return Compose(tuple(self._budget().events().values()))

    def generate(
        self, rows: int | None = None, *, seed: int | None = None
    ) -> TextDataset:
        """Writes synthetic records, labels in the proportion of the noisy counts.

        Drawing is post-processing: it costs nothing, however often it is done.

        Args:
            rows: int, or None for the noisy number of records.
            seed: int or None for the model's.

        Returns:
            TextDataset with the text and label columns of the training data.
        """
        method = self._fitted()
        sizes = method.class_sizes
        if rows is None:
            rows = max(1, round(float(sizes.sum())))
        integer(rows=rows)
        seed = self.seed if seed is None else seed
        integer(0, seed=seed)
        # Too few records to be counted: every label alike.
        sizes = sizes if sizes.sum() > 0 else np.ones(len(sizes))
        counts = _apportion(sizes / sizes.sum(), rows)
        texts: list[str] = []
        labels: list[str] = []
        for number, (name, count) in enumerate(zip(method.labels, counts, strict=True)):
            if count:
                texts += method.sample(number, int(count), seed)
                labels += [name] * int(count)
        order = np.random.default_rng([seed, 3]).permutation(len(texts))
        return TextDataset(
            texts=tuple(texts[i] for i in order),
            labels=tuple(labels[i] for i in order),
            text_column=self._columns[0],
            label_column=self._columns[1],
            provenance={"source": "tfpriv synthetic text", "mode": self.mode},
        )

    def privacy_statement(self) -> PrivacyStatement:
        """Returns what the release guarantees, computed from what was charged."""
        self._fitted()
        return PrivacyStatement(
            self._reads,
            delta=self.delta,
            unit="record",
            public=self._public(),
            assumptions=_FLOATS if self._trained_privately() else (),
            group=self.group,
        )

    def plan(self) -> list[dict[str, Any]]:
        """Returns how the budget is divided, a dict a part, before any training."""
        if self.mode != "guaranteed":
            return self.published.plan(self.mode)
        budget = self._budget()
        return [
            {
                "part": part,
                "share": share,
                "noise_multiplier": budget.noise_multiplier(part),
                "times": self.discriminator_steps if part == "discriminator" else 1,
            }
            for part, share in budget.shares.items()
        ]

    def save(self, folder: str | os.PathLike) -> None:
        """Writes the fitted model to a folder: arrays, JSON and Keras weights.

        The folder is there as a whole or not at all, and takes the place of a model
        that was saved there before. In guaranteed mode nothing in it is more than
        what was paid for, and its files have the modes that the umask gives; in the
        other modes all of it is as private as the records, and only the owner may
        read it.

        Raises:
            InputError: the folder holds anything else than a saved model.
        """
        method = self._fitted()
        config = self._config() | {
            "columns": list(self._columns),
            "labels_found": list(method.labels),
            "reads": [read.to_json() for read in self._reads],
        }
        with model_folder(folder, private=self.mode != "guaranteed") as staged:
            method.save(staged)
            write_json(staged / "model.json", config)

    @classmethod
    def load(cls, folder: str | os.PathLike) -> DPSeqGAN:
        """Reads a model that `save` wrote.

        Raises:
            InputError: the folder holds none.
        """
        folder = Path(folder)
        try:
            config = json.loads((folder / "model.json").read_text(encoding="utf-8"))
            model = cls(
                math.inf if config["epsilon"] is None else config["epsilon"],
                config["delta"],
                labels=config["labels"],
                discriminator_steps=config["discriminator_steps"],
                settings=GANSettings(**_tuples(config["settings"])),
                seed=config["seed"],
                mode=config["mode"],
                published=PublishedSettings(**_tuples(config["published"])),
                group=_group_bound(config.get("group")),
            )
            model._columns = tuple(config["columns"])
            model._reads = tuple(map(PrivateRead.from_json, config["reads"]))
            model.method = model._make_method()
            model.method.load(folder, tuple(config["labels_found"]))
        except DAMAGED as error:
            raise_if_of_the_system(error)
            raise InputError(
                f"Expected a folder that DPSeqGAN.save wrote, received {folder} "
                f"({type(error).__name__})."
            ) from None
        return model

    # --- Parts ---------------------------------------------------------------

    def _public(self) -> tuple[str, ...]:
        if self.mode != "guaranteed":
            return ()
        return _PUBLIC if self.labels is None else (*_PUBLIC, _DECLARED)

    def _trained_privately(self) -> bool:
        return any(
            read.name == "discriminator" and read.event != NonPrivate()
            for read in self._reads
        )

    def _budget(self) -> ReleaseBudget:
        return ReleaseBudget(
            self.epsilon,
            self.delta,
            discriminator_steps=self.discriminator_steps,
            select_labels=self.labels is None,
            group_size=1 if self.group is None else self.group.size,
        )

    def _make_method(self) -> GuaranteedMethod | PublishedMethod:
        if self.mode == "guaranteed":
            return GuaranteedMethod(
                self._budget(), self.settings, labels=self.labels, seed=self.seed
            )
        return PublishedMethod(
            self.published,
            private=self.mode == "paper",
            delta=self.delta,
            seed=self.seed,
        )

    def _config(self) -> dict[str, Any]:
        return {
            "mode": self.mode,
            "epsilon": None if math.isinf(self.epsilon) else self.epsilon,
            "delta": self.delta,
            "labels": None if self.labels is None else list(self.labels),
            "discriminator_steps": self.discriminator_steps,
            "settings": dataclasses.asdict(self.settings),
            "seed": self.seed,
            "published": dataclasses.asdict(self.published),
            "group": None if self.group is None else dataclasses.asdict(self.group),
        }

    def _check_run(self, store: RunStore, data: TextDataset) -> None:
        if not store.claim(zip(data.texts, data.labels, strict=True)):
            raise InputError(
                f"Expected the records of the run in {store.folder}, received others. "
                "Give the same data set to go on, or take another run_dir."
            )
        config = json.loads(json.dumps(self._config()))
        saved = store.json("config")
        if saved is None:
            store.save_json("config", config)
            return
        # A setting that an older tfpriv had not is None there.
        changed = [key for key in config if saved.get(key) != config[key]]
        if changed:
            raise InputError(
                f"Expected the settings of the run in {store.folder}, received "
                f"another {changed[0]}. Give the same settings to go on, or another "
                "output folder."
            )

    def _fitted(self) -> GuaranteedMethod | PublishedMethod:
        if self.method is None:
            raise InputError("Expected a fitted model, received one that is not.")
        return self.method


def _group_bound(value: dict[str, Any] | None) -> GroupBound | None:
    return None if value is None else GroupBound(**value)


def _apportion(share: np.ndarray, rows: int) -> np.ndarray:
    """Whole numbers in given proportions that sum to `rows` (largest remainders)."""
    exact = share * rows
    counts = np.floor(exact).astype(int)
    largest = np.argsort(-(exact - counts), kind="stable")[: rows - counts.sum()]
    counts[largest] += 1
    return counts


def _tuples(values: dict[str, Any]) -> dict[str, Any]:
    return {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
