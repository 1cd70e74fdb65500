"""The transform: texts to private representations, one for each record."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
from apache_beam.metrics import Metrics
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.shared import Shared

from tfpriv._errors import InputError
from tfpriv._validation import boolean, integer
from tfpriv.beam.exported_model import ExportedModel, find_model
from tfpriv.datasets.plain_texts import LONGEST

NAMESPACE = "tfpriv"
"""Of the counters."""
RELEASED = "released"
DEAD_LETTERS = "dead_letters"
_BAD = "bad"


class Letter(NamedTuple):
    """A record that was not released, and why. It never holds the text.

    Attributes:
        key: str or None: of the record, where it has one that can be told.
        reason: str. Tells no content.
    """

    key: str | None
    reason: str


class Privatized(NamedTuple):
    """What `Privatize` makes.

    Attributes:
        releases: PCollection of (key, float32 (dimension,)), or of the vectors alone.
        dead_letters: PCollection of `Letter`.
    """

    releases: beam.PCollection
    dead_letters: beam.PCollection


class Privatize(beam.PTransform):
    """Releases a private representation of each text, by an exported model.

    What leaves the transform is one release for each record, at the price that the
    model's `privacy.json` states:

    - With `keyed`, a record is a key: of several texts under one key, in whatever
      windows, one is released and the others become dead letters. Which one is not
      determined. Without, every element is a record of its own.
    - A runner does failed work again, and noise cannot be drawn again: a second try
      draws afresh. Outputs of a failed try are thrown away by every runner, so that
      `releases` holds one draw of each record and no more. Behind the noise stands a
      Reshuffle: where the runner keeps what was shuffled (DirectRunner; Dataflow in
      batch), steps further down that are done again read the same draws.
    - Beam does not promise that of every runner. One that computes a lost shuffle
      anew (Flink and Spark after a lost worker) draws once more, and a sink that had
      written already may then hold a second draw of a record. Sinks that appear when
      all is done (Beam's file sinks, `privatize_corpus`) show one draw; each copy
      beyond that, in a data base that was written to on the way or in temporary files
      of a job that died, is another release, to whoever can read it.
    - A pipeline that runs twice releases twice.

    Texts are read as `tfpriv encode` reads them: NUL characters are taken out, lone
    surrogates become U+FFFD, an empty text is encoded like any other, and of a long
    one the model reads the first words.

    The model is loaded once in each worker process; its threads share it. Counters:
    `released`, `dead_letters`, and the distribution `batch_size`, in the namespace
    "tfpriv". They are exact, hence not private, like the keys.

    Args:
        model_dir: what `tfpriv export` wrote, where workers can read it.
        keyed: bool. Whether elements are (key, text), keys being str; else they are
            texts. A text is str, or bytes in UTF-8.
        batch_size: int. The most texts that the model gets at once.
        max_chars: int. A longer text is a dead letter.
        unprotected_training: bool. Release although a data set with a budget trained
            the encoder, which protects it not.

    Raises:
        InputError: no such model, one that encodes no text, one whose noise can be
            replayed, one that may not leave, or, when applied, an unbounded
            collection, in which no end tells that a key will not come again.

    Examples:
        >>> import apache_beam as beam
        >>> from tfpriv.beam import Privatize
        >>> with beam.Pipeline() as pipeline:  # doctest: +SKIP
        ...     texts = pipeline | beam.Create([("ann", "Great song!")])
        ...     made = texts | Privatize("saved_models/spam")
        ...     _ = made.releases | beam.Map(print)
        ('ann', array([1., 0.], dtype=float32))
    """

    def __init__(
        self,
        model_dir: str | os.PathLike | ExportedModel,
        *,
        keyed: bool = True,
        batch_size: int = 64,
        max_chars: int = LONGEST,
        unprotected_training: bool = False,
    ) -> None:
        super().__init__()
        boolean(keyed=keyed, unprotected_training=unprotected_training)
        integer(batch_size=batch_size, max_chars=max_chars)
        if isinstance(model_dir, ExportedModel):
            self.model = model_dir
        else:
            self.model = find_model(model_dir)
        self.model.training_budget(allowed=unprotected_training)
        self.keyed = keyed
        self.batch_size = batch_size
        self.max_chars = max_chars

    def expand(self, elements: beam.PCollection) -> Privatized:
        """Applies the transform."""
        if not elements.is_bounded:
            raise InputError(
                "Expected a bounded collection, received an unbounded one: whether a "
                "key comes again is never known. Privatize batches of it."
            )
        checked = elements | "Check" >> beam.ParDo(
            _Check(self.keyed, self.max_chars)
        ).with_outputs(_BAD, main="texts")
        texts, bad = checked.texts, [checked[_BAD]]
        if self.keyed:
            texts.element_type = tuple[str, str]
            once = (
                texts
                # A key in two windows is still one record.
                | "AllWindows" >> beam.WindowInto(GlobalWindows())
                | "ByKey" >> beam.GroupByKey()
                | "Once" >> beam.ParDo(_Once()).with_outputs(_BAD, main="texts")
            )
            texts = once.texts
            bad.append(once[_BAD])
        encoded = (
            texts
            | "Batch"
            >> beam.BatchElements(min_batch_size=1, max_batch_size=self.batch_size)
            | "Encode"
            >> beam.ParDo(_Encode(self.model, self.keyed)).with_outputs(
                _BAD, main="releases"
            )
        )
        bad.append(encoded[_BAD])
        packed = encoded.releases
        packed.element_type = tuple[str, bytes] if self.keyed else bytes
        unpack = _unpacked_pair if self.keyed else _unpacked
        releases = (
            packed | "KeepDraws" >> beam.Reshuffle() | "Unpack" >> beam.Map(unpack)
        )
        if self.keyed:
            # Letters of other windows than the global one cannot be joined.
            bad = [
                part | f"AllWindows{number}" >> beam.WindowInto(GlobalWindows())
                for number, part in enumerate(bad)
            ]
        letters = (
            bad
            | "DeadLetters" >> beam.Flatten()
            | "CountDeadLetters" >> beam.ParDo(_Count(DEAD_LETTERS))
        )
        return Privatized(releases, letters)


class _Check(beam.DoFn):
    """Lets (key, text) pass whose text is one; keys are None without `keyed`."""

    def __init__(self, keyed: bool, max_chars: int) -> None:
        self._keyed = keyed
        self._max_chars = max_chars

    def process(self, element: Any) -> Iterator[Any]:
        key: Any = None
        text = element
        if self._keyed:
            if not isinstance(element, tuple) or len(element) != 2:
                yield _letter(None, f"no (key, text), but {type(element).__name__}")
                return
            key, text = element
            fault = _fault_of_key(key)
            if fault:
                yield _letter(None, fault)
                return
        if isinstance(text, bytes):
            try:
                text = text.decode("utf-8")
            except UnicodeDecodeError:
                yield _letter(key, "the text is not UTF-8")
                return
        if not isinstance(text, str):
            yield _letter(key, f"no text, but {type(text).__name__}")
        elif len(text) > self._max_chars:
            yield _letter(key, f"the text is longer than {self._max_chars} characters")
        else:
            yield key, _mended(text)


class _Once(beam.DoFn):
    """One text of each key; the others are dead letters."""

    def process(self, group: tuple[str, Iterable[str]]) -> Iterator[Any]:
        key, texts = group
        for number, text in enumerate(texts):
            if number == 0:
                yield key, text
            else:
                yield _letter(key, "the key came before: a record is released once")


class _Encode(beam.DoFn):
    """Batches of (key, text) to releases."""

    def __init__(self, model: ExportedModel, keyed: bool) -> None:
        self._model = model
        self._keyed = keyed
        self._shared = Shared()
        self._released = Metrics.counter(NAMESPACE, RELEASED)
        self._sizes = Metrics.distribution(NAMESPACE, "batch_size")

    def setup(self) -> None:
        """Loads the model, unless another thread of this process did."""
        self._encode = self._shared.acquire(
            lambda: _Held(self._model.load()), tag=self._model.folder
        )

    def process(self, batch: Sequence[tuple[str | None, str]]) -> Iterator[Any]:
        vectors = self._vectors([text for _, text in batch])
        if vectors is None and len(batch) > 1:
            # Nothing of the failed call was seen; each text on its own tells which.
            for record in batch:
                yield from self.process([record])
            return
        self._sizes.update(len(batch))
        if vectors is None:
            yield _letter(batch[0][0], "the model refused the text")
            return
        for (key, _), vector in zip(batch, vectors, strict=True):
            if not np.isfinite(vector).all():
                yield _letter(key, "the model made no finite representation")
                continue
            self._released.inc()
            packed = vector.tobytes()
            yield (key, packed) if self._keyed else packed

    def _vectors(self, texts: list[str]) -> np.ndarray | None:
        import tensorflow as tf

        try:
            vectors = self._encode.call(texts)
        except tf.errors.InvalidArgumentError:
            return None
        except tf.errors.OpError as error:
            # Its message may quote a text.
            code = type(error).__name__
            raise RuntimeError(
                f"Expected representations from {self._model.folder}, received "
                f"{code}. What TensorFlow said is not shown: it may quote a text."
            ) from None
        expected = (len(texts), self._model.dimension)
        if vectors.shape != expected:
            raise RuntimeError(
                f"Expected representations of shape {expected} from "
                f"{self._model.folder}, received {vectors.shape}."
            )
        return vectors.astype(np.float32, copy=False)


class _Count(beam.DoFn):
    """Counts elements, and lets them pass."""

    def __init__(self, name: str) -> None:
        self._counter = Metrics.counter(NAMESPACE, name)

    def process(self, element: Any) -> Iterator[Any]:
        self._counter.inc()
        yield element


class _Held:
    """Keeps a function where Beam's `Shared` wants something to refer to weakly."""

    def __init__(self, call: Any) -> None:
        self.call = call


def _unpacked(packed: bytes) -> np.ndarray:
    return np.frombuffer(packed, np.float32)


def _unpacked_pair(release: tuple[str, bytes]) -> tuple[str, np.ndarray]:
    key, packed = release
    return key, _unpacked(packed)


def _letter(key: str | None, reason: str) -> beam.pvalue.TaggedOutput:
    return beam.pvalue.TaggedOutput(_BAD, Letter(key, reason))


def _fault_of_key(key: Any) -> str | None:
    if not isinstance(key, str):
        return f"no text as the key, but {type(key).__name__}"
    if not key:
        return "the key is empty"
    try:
        key.encode()
    except UnicodeEncodeError:
        return "the key is not UTF-8"
    return None


def _mended(text: str) -> str:
    text = text.replace("\0", "")
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
