"""A classifier on a private encoder, and the adversary it is trained against."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import keras
import numpy as np
import tensorflow as tf

from tfpriv._errors import InputError
from tfpriv._validation import fraction, integer, non_negative, one_of, seed_or_none
from tfpriv.accounting import LaplaceCertificate, RepresentationStatement
from tfpriv.layers import RANDOMNESS_ASSUMPTION
from tfpriv.representation import presets
from tfpriv.representation.adversarial_steps import OBJECTIVES, AdversarialSteps
from tfpriv.representation.batches import TextBatches, pad, tokenise
from tfpriv.representation.compiled_update import CompiledUpdate
from tfpriv.representation.dataset_checks import (
    checked_dataset,
    checked_texts,
    values_told,
)
from tfpriv.representation.design import ReleaseDesign
from tfpriv.representation.encoder import PrivateEncoder
from tfpriv.representation.replicas import check_strategy
from tfpriv.representation.targets import (
    check_class_weights,
    check_targets,
    check_texts,
    check_validation_data,
    check_weights,
)

_DESIGN = frozenset(field.name for field in dataclasses.fields(ReleaseDesign))


class PrivateTextModel(AdversarialSteps, keras.Model):
    """What RMAT and the methods it is compared with share.

    A text goes through a `PrivateEncoder`; from the released representation a task
    head predicts the task label and, in training only, an adversary the private
    attribute. One training step: the adversary learns on the batch's released
    representations as they are; then encoder and task head step on

        cross-entropy(task) + weight * penalty,

    where the penalty makes the updated adversary's work harder. Its form is the
    method's objective: "maximise" the adversary's cross-entropy, "entropy" of its
    prediction, "reversal" of its gradient, or None for no adversary.

    Args:
        backbone: `keras_nlp.models.BertBackbone`.
        preprocessor: its `BertTokenizer`, or a KerasNLP preprocessor that has one.
        design: ReleaseDesign.
        num_classes: of the task, int >= 2.
        num_private_classes: of the private attribute, int >= 2; None without
            adversary.
        objective: see above.
        cap_adversary: with "maximise": leave the adversary alone once its
            cross-entropy is that of a guess, log(num_private_classes). Without a cap
            the objective has no lower bound.
        dropout: before each head.
        seed: int or None: of the order of the batches. Never of masks and noise.
        public_backbone: whether no private text has been near the backbone's weights.
            `from_preset` knows; of a backbone that is given it has to be said, else
            statements take it for trained on private text.
        public_labels: whether the number of classes was declared public, and not read
            off the training records: statements say so where it is the dimension of
            what is released.

    Raises:
        InputError: a setting that cannot be used.
    """

    method: ClassVar[str] = "text model"

    def __init__(
        self,
        backbone: keras.Model,
        preprocessor: Any,
        *,
        design: ReleaseDesign,
        num_classes: int,
        num_private_classes: int | None = None,
        objective: str | None = None,
        cap_adversary: bool = False,
        dropout: float = 0.1,
        seed: int | None = None,
        public_backbone: bool = False,
        public_labels: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        tokenizer = presets.tokenizer_of(preprocessor)
        presets.check_matching(backbone, tokenizer, design.max_length)
        integer(2, num_classes=num_classes)
        one_of(OBJECTIVES, objective=objective)
        fraction(dropout=dropout)
        seed_or_none(seed=seed)
        if objective is not None or num_private_classes is not None:
            integer(2, num_private_classes=num_private_classes)
        self.design = design
        self.num_classes = int(num_classes)
        self.num_private_classes = num_private_classes
        self.objective = objective
        self.cap_adversary = bool(cap_adversary)
        self.dropout = float(dropout)
        self.seed = seed
        self.public_backbone = bool(public_backbone)
        self.public_labels = bool(public_labels)
        self.encoder = PrivateEncoder(backbone, tokenizer, design, name="encoder")
        self.task_head = self._head(self.num_classes, "task_head")
        self.adversary_head = None
        if objective is not None:
            self.adversary_head = self._head(num_private_classes, "adversary_head")
        self.trained_steps = self._make_step_counter()
        self._compiled_release = None
        self._make_metrics()
        self.built = True

    # --- Building and keeping --------------------------------------------------

    @classmethod
    def from_preset(cls, preset: str | None = None, **kwargs: Any) -> Self:
        """Builds the method on a pretrained BERT.

        Args:
            preset: name or handle of KerasNLP, a local folder in Keras' or Hugging
                Face's layout, a folder that `save_to_preset` wrote, or None: MiniLM
                from the locks.
            **kwargs: arguments of the class.

        Raises:
            InputError: a folder that lacks a file, or a preset that is no BERT.
        """
        saved = presets.saved_model(preset, cls, kwargs)
        if saved is not None:
            return saved
        backbone, tokenizer = presets.load_bert(preset)
        return cls(backbone, tokenizer, **{"public_backbone": True, **kwargs})

    def save_to_preset(self, folder: Any) -> None:
        """Writes backbone, tokenizer and the rest so that `from_preset` reads them."""
        presets.save_model(self, folder)

    @property
    def backbone(self) -> keras.Model:
        """The BERT inside."""
        return self.encoder.backbone

    @property
    def tokenizer(self) -> Any:
        """Its tokenizer."""
        return self.encoder.tokenizer

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments, JSON-serialisable."""
        serialize = keras.saving.serialize_keras_object
        config = {
            "name": self.name,
            "backbone": serialize(self.backbone),
            "preprocessor": serialize(self.tokenizer),
            "public_backbone": self.public_backbone,
            "public_labels": self.public_labels,
        }
        for name in inspect.signature(type(self).__init__).parameters:
            if name in _DESIGN:
                config[name] = getattr(self.design, name)
            elif name in _KEPT:
                config[name] = getattr(self, name)
        return config

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Self:
        """Builds the model that `get_config` described."""
        config = dict(config)
        deserialize = keras.saving.deserialize_keras_object
        for name in ("backbone", "preprocessor"):
            config[name] = deserialize(config[name], custom_objects=custom_objects)
        return cls(config.pop("backbone"), config.pop("preprocessor"), **config)

    def compile(
        self,
        optimizer: Any = None,
        adversary_optimizer: Any = None,
        *,
        adversary_weight: Any = 1.0,
        adversary_steps: int = 1,
        class_weights: Mapping[str, Sequence[float]] | None = None,
        jit_compile: bool = False,
        **kwargs: Any,
    ) -> None:
        """Configures training.

        Args:
            optimizer: of encoder and task head; None is AdamW at 2e-4.
            adversary_optimizer: of the adversary; None is Adam at 1e-3.
            adversary_weight: lambda, a number or a Keras LearningRateSchedule over
                steps.
            adversary_steps: steps of the adversary a batch.
            class_weights: {"label": (C,), "private": (Z,)} weights of the losses.
            jit_compile: trains the backbone under XLA, everything else as before. Every
                shape of a batch is compiled once, so short runs only lose by it.
            **kwargs: of `keras.Model.compile`; losses and metrics are set here.
        """
        integer(adversary_steps=adversary_steps)
        if not callable(adversary_weight):
            non_negative(adversary_weight=adversary_weight)
        optimizer = keras.optimizers.get(
            optimizer or keras.optimizers.AdamW(2e-4, weight_decay=0.01)
        )
        # Of the whole step it would be refused: noise cannot be drawn under XLA.
        super().compile(optimizer=optimizer, jit_compile=False, **kwargs)
        self.encoder.compile_backbone(bool(jit_compile))
        self._jit_backbone = bool(jit_compile)
        self.adversary_optimizer = keras.optimizers.get(
            adversary_optimizer or keras.optimizers.Adam(1e-3)
        )
        self.adversary_weight = adversary_weight
        self.adversary_steps = int(adversary_steps)
        self.class_weights = check_class_weights(
            class_weights or {},
            {"label": self.num_classes, "private": self.num_private_classes},
        )
        self.optimizer.build(self._task_variables())
        self._update = CompiledUpdate(self.optimizer, self._task_variables())
        if self.adversary_head is not None:
            self.adversary_optimizer.build(self.adversary_head.trainable_variables)

    def get_compile_config(self) -> dict[str, Any] | None:
        """Returns the arguments of `compile`, JSON-serialisable."""
        if not self.compiled:
            return None
        serialize = keras.saving.serialize_keras_object
        return {
            "optimizer": serialize(self.optimizer),
            "adversary_optimizer": serialize(self.adversary_optimizer),
            "adversary_weight": serialize(self.adversary_weight),
            "adversary_steps": self.adversary_steps,
            "class_weights": self.class_weights,
            "jit_compile": self._jit_backbone,
        }

    def compile_from_config(self, config: dict[str, Any]) -> None:
        """Compiles as `get_compile_config` described."""
        deserialize = keras.saving.deserialize_keras_object
        names = ("optimizer", "adversary_optimizer", "adversary_weight")
        self.compile(
            **{**config, **{name: deserialize(config[name]) for name in names}}
        )

    # --- Using -----------------------------------------------------------------

    def call(self, inputs: Any, training: bool | None = None) -> tf.Tensor:
        """Predicts the task from a fresh release of each text.

        Args:
            inputs: string tensor (B,), or int32 word pieces (B, T).
            training: whether dropout is on.

        Returns:
            float32 probabilities (B, num_classes).
        """
        released = self.release(inputs, training=training)
        logits = self.task_head(released, training=training)
        return tf.nn.softmax(tf.cast(logits, tf.float32))

    def release(self, inputs: Any, training: bool | None = None) -> tf.Tensor:
        """Releases representations, float32 (B, d), of strings or word pieces."""
        if not isinstance(inputs, keras.KerasTensor):
            inputs = tf.convert_to_tensor(inputs)
            if inputs.dtype == tf.string:
                inputs = self.encoder.word_pieces(inputs)
        return self.encoder(inputs, training=training)

    def encode(
        self, texts: Sequence[str], batch_size: int = 64, *, releases: int = 1
    ) -> np.ndarray:
        """Releases a representation of each text; every call is a new release.

        Args:
            texts: n str.
            batch_size: texts a batch.
            releases: r, times each text is released. It costs r times as much.

        Returns:
            float32 (n, d), or (n, r, d) for more than one.
        """
        texts = check_texts(texts)
        integer(releases=releases, batch_size=batch_size)
        rows = tokenise(self.encoder.word_pieces, texts)
        released = np.empty((releases, len(rows), self.encoder.output_dim), np.float32)
        run = self._release_function()
        for number in range(releases):
            # In their own order: were they sorted by length, whom a text is computed
            # with would depend on all the others.
            for start in range(0, len(rows), batch_size):
                index = np.arange(start, min(start + batch_size, len(rows)))
                ids = pad(rows, index, self.tokenizer.pad_token_id)
                released[number, index] = run(tf.constant(ids)).numpy()
        return released[0] if releases == 1 else released.transpose(1, 0, 2)

    def fit(
        self,
        x: Any = None,
        y: Any = None,
        *,
        batch_size: int = 32,
        validation_data: Any = None,
        sample_weight: Any = None,
        shuffle: bool = True,
        **kwargs: Any,
    ) -> keras.callbacks.History:
        """Trains, on batches of like length.

        Args:
            x: n str, or a tf.data.Dataset of batches (texts, targets), with weights
                as a third part if there are any.
            y: {"label": (n,) ints, "private": (n,) ints}; "private" only with an
                adversary.
            batch_size: records a batch.
            validation_data: (texts, targets) or such a data set.
            sample_weight: (n,) or None.
            shuffle: whether every epoch has an order of its own.
            **kwargs: of `keras.Model.fit`.

        Raises:
            InputError: texts or targets that cannot be used; names the row only.
                Those of a data set are found when their batch is reached.
        """
        check_strategy(self)
        data = self._batches(
            x, y, sample_weight, batch_size, shuffle=shuffle, training=True
        )
        if isinstance(validation_data, tf.data.Dataset):
            validation_data = self._batches(validation_data, None, None, None)
        elif validation_data is not None:
            validation_data = self._batches(
                *check_validation_data(validation_data), batch_size
            )
        with values_told():
            return super().fit(
                data, validation_data=validation_data, shuffle=False, **kwargs
            )

    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        *,
        batch_size: int = 64,
        sample_weight: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Returns losses and metrics, as `keras.Model.evaluate`; data as in `fit`."""
        data = self._batches(x, y, sample_weight, batch_size)
        with values_told():
            return super().evaluate(data, **kwargs)

    def predict(self, x: Any, *, batch_size: int = 64, **kwargs: Any) -> np.ndarray:
        """Returns task probabilities, float32 (n, num_classes), one release a text."""
        if isinstance(x, tf.data.Dataset):
            data = checked_texts(x, self.tokenizer.vocabulary_size())
            with values_told():
                return super().predict(data.map(self._tokenised), **kwargs)
        integer(batch_size=batch_size)
        batches = TextBatches(
            self.encoder.word_pieces, check_texts(x), {}, batch_size, shuffle=False
        )
        return super().predict(batches.dataset().map(lambda ids, _: ids), **kwargs)

    # --- Privacy ---------------------------------------------------------------

    def certificate(
        self, texts: Sequence[str] | None = None
    ) -> LaplaceCertificate | None:
        """Returns what one release costs; with `texts`, for texts of their lengths.

        None if there is no noise.
        """
        lengths = None
        if texts is not None:
            rows = tokenise(self.encoder.word_pieces, check_texts(texts))
            # A text without words has none that could differ.
            words = [number for number in map(self._words, rows) if number]
            lengths = (min(words), max(words)) if words else None
        return self.encoder.certificate(lengths)

    def privacy_statement(self, *, releases: int = 1) -> RepresentationStatement:
        """Returns what a release guarantees, to whom, and what it does not cover.

        Args:
            releases: of one text, as in `encode`.
        """
        trained = bool(self.trained_steps.numpy())
        shows = trained and self.encoder.output_dim == self.num_classes
        return RepresentationStatement(
            self.certificate(),
            method=self.method,
            encoder_trained_on_private_text=not self.public_backbone or trained,
            training_facts=[_LABELS_SHOW] if shows and not self.public_labels else [],
            public=[_LABELS_DECLARED] if shows and self.public_labels else [],
            randomness=RANDOMNESS_ASSUMPTION if self.design.scale else "",
            releases=releases,
        )

    def _head(self, units: int, name: str) -> keras.Sequential:
        code = self.design.scale == "code"
        head = keras.Sequential(
            [
                # A code is one number: without it nothing is left.
                keras.layers.Dropout(0.0 if code else self.dropout, dtype="float32"),
                keras.layers.Dense(units, dtype="float32"),
            ],
            name=name,
        )
        head.build((None, self.encoder.output_dim))
        if code and name == "task_head":
            # Codes begin as the classes in turn, with the log odds of the noise:
            # from random weights a head of K rows takes an epoch to tell them apart.
            turns = np.arange(self.design.dimension)[:, None] % units
            odds = min(self.design.epsilon, _LARGEST_LOG_ODDS)
            kernel = odds * (turns == np.arange(units)).astype(np.float32)
            head.layers[-1].kernel.assign(kernel)
        return head

    def _batches(
        self,
        x: Any,
        y: Any,
        sample_weight: Any,
        batch_size: int | None,
        *,
        shuffle: bool = False,
        training: bool = False,
    ) -> tf.data.Dataset:
        classes = {
            "label": self.num_classes,
            "private": self.num_private_classes if self.objective else None,
        }
        if isinstance(x, tf.data.Dataset):
            for name, given in (("targets", y), ("sample_weight", sample_weight)):
                if given is not None:
                    raise InputError(
                        f"Expected no {name} beside a data set, which has its own, "
                        f"received {type(given).__name__}."
                    )
            adversary = ("private",) if training and self.objective else ()
            data = checked_dataset(
                x,
                classes,
                vocabulary=self.tokenizer.vocabulary_size(),
                needed=("label", *adversary),
            )
            return data.map(self._tokenised, num_parallel_calls=tf.data.AUTOTUNE)
        texts = check_texts(x)
        targets = check_targets(y, len(texts), classes)
        if sample_weight is not None:
            targets["sample_weight"] = check_weights(sample_weight, len(texts))
        integer(batch_size=batch_size)
        return TextBatches(
            self.encoder.word_pieces,
            texts,
            targets,
            batch_size,
            shuffle=shuffle,
            seed=self.seed,
        ).dataset()

    def _tokenised(self, texts: tf.Tensor, *targets: Any) -> Any:
        if texts.dtype == tf.string:
            texts = self.encoder.word_pieces(texts)
        return (texts, *targets) if targets else texts

    def _words(self, row: np.ndarray) -> int:
        continues = np.isin(row, self.encoder.word_pieces.continuation_ids)
        return len(row) - int(continues.sum())

    def _release_function(self) -> Any:
        if self.run_eagerly:
            return self.encoder
        if self._compiled_release is None:
            self._compiled_release = tf.function(
                lambda ids: self.encoder(ids, training=False),
                input_signature=[tf.TensorSpec([None, None], tf.int32)],
            )
        return self._compiled_release


_LARGEST_LOG_ODDS = 6.0
_LABELS_SHOW = (
    "the number of labels of the training records: it is the dimension of what is "
    "released, and nobody declared it public"
)
_LABELS_DECLARED = "the number of labels, which is the dimension of what is released"
_KEPT = ("num_classes", "num_private_classes", "cap_adversary", "dropout", "seed")
