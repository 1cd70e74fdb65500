"""Random masking of words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tfpriv._errors import InputError
from tfpriv._validation import integer, non_negative, one_of
from tfpriv.accounting.masking import mask_fraction, masked_words
from tfpriv.layers import _coins, _randomness

MODES = ("exact", "bernoulli")
UNITS = ("words", "pieces")
REPLACEMENTS = ("mask", "zero")
_NUM_WORDS = 4


@keras.saving.register_keras_serializable(package="tfpriv")
class RandomMask(keras.layers.Layer):
    """Replaces random words of each text; what is left does not tell which they were.

    A word is a word-piece that does not continue another one, with the pieces that
    continue it. Of a row with D maskable words

    - "exact" masks floor(rate D), every set of that size as likely;
    - "bernoulli" masks each word independently with probability `rate`.

    A masked word becomes ONE id, however many pieces it had, and the row is closed
    up to the left: a [MASK] a piece would tell how long the word was, and the
    amplification that is claimed for masking would not hold. Two texts that differ
    in one word give the same row whenever that word is masked. Only whole rows keep
    that promise: where a tokenizer cut a row at the length T, how long a word was
    shows in how much of the text is left.

    It masks in training and inference alike (there is no `training` argument): the
    masked row is what is released, so an encoder must never see another one. The
    masks are fresh on each call, for each row, after every reload, and whatever seed
    is set.

    For "exact" a rate stands for the fraction nearest to it with a denominator of
    up to a million, so that 0.1 of 30 words is 3, and 1/3 of 3 words is 1. That is
    never less than the floor of the float's own product, up to a million words.

    >>> layer = RandomMask(0.5, mask_token_id=4, continuation=[7], never=[2, 3])
    >>> ids, mask = layer(tf.constant([[2, 5, 7, 6, 3, 0]]))
    >>> int((ids == 4).numpy().sum()), layer.num_masked(2)
    (1, 1)

    Args:
        rate: float in [0, 1). mu, the share of words that is masked.
        mask_token_id: int. The id of [MASK].
        continuation: the ids of pieces that continue a word ("##ing"), or a table
            with one bool an id. Needed for unit="words".
        never: ids that are never masked and do not count as words: [CLS], [SEP].
            A piece that follows one begins a word. Padding is never masked.
        mode: str. "exact" or "bernoulli".
        unit: str. "words", or "pieces": each piece is a word by itself. No
            amplification holds for pieces.
        replacement: str. "mask", or "zero": `pad_token_id` that stays a position, as
            a product of ids and a 0/1 mask gives.
        pad_token_id: int. The id of padding.

    Call arguments:
        inputs: whole numbers (batch, T). Word-piece ids, padding at the right.

    Returns (call):
        A tuple: the ids, int32 (batch, T), and which positions hold a token, bool
        (batch, T). With "zero" the ids alone do not tell that.

    Raises:
        InputError: a bad value; a mask token that continues a word.

    References:
        Lyu, He and Li 2020, "Differentially private representation for NLP",
        arXiv:2010.01285, section 3.2 (Bernoulli). Wu and Luo 2023, doi
        10.16791/ki.sjg.2023.08.011 (a fixed share).
    """

    def __init__(
        self,
        rate: float,
        mask_token_id: int,
        *,
        continuation: Sequence[int] | Sequence[bool] | np.ndarray | None = None,
        never: Sequence[int] = (),
        mode: str = "exact",
        unit: str = "words",
        replacement: str = "mask",
        pad_token_id: int = 0,
        **kwargs: Any,
    ) -> None:
        non_negative(rate=rate)
        if rate >= 1:
            raise InputError(f"Expected 0 <= rate < 1, received rate={rate}.")
        integer(minimum=0, mask_token_id=mask_token_id, pad_token_id=pad_token_id)
        one_of(MODES, mode=mode)
        one_of(UNITS, unit=unit)
        one_of(REPLACEMENTS, replacement=replacement)
        if unit == "words" and continuation is None:
            raise InputError(
                "Expected continuation for unit='words', received None. Give the ids "
                "of the pieces that continue a word, [] if there are none."
            )
        super().__init__(**kwargs)
        self.supports_jit = False
        self.rate = float(rate)
        self.mask_token_id = int(mask_token_id)
        self.continuation = _ids("continuation", continuation)
        self.never = _ids("never", never)
        self.mode = mode
        self.unit = unit
        self.replacement = replacement
        self.pad_token_id = int(pad_token_id)
        if self.continuation is not None and mask_token_id in self.continuation:
            raise InputError(
                f"Expected a mask token that continues no word, received "
                f"mask_token_id={mask_token_id}, which is in continuation."
            )
        self._fraction = mask_fraction(self.rate)
        if self._fraction >= 1:
            raise InputError(
                f"Expected a rate up to 1 - 1e-6, received rate={rate}. It is read as "
                "a fraction with a denominator of up to a million."
            )

    def num_masked(self, num_words: int) -> int:
        """How many of `num_words` maskable words mode="exact" masks."""
        return masked_words(self.rate, num_words)

    def call(self, inputs: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """The masked rows, and which of their positions hold a token."""
        ids = tf.cast(inputs, tf.int32)
        is_token = ids != self.pad_token_id
        is_start, is_maskable = self._words(ids, is_token)
        chosen = self._choose(is_maskable)
        # Position of the start of each token's word: of the k-th start, for the k-th
        # word. Padding takes some word; it is dropped below.
        starts = tf.argsort(tf.cast(~is_start, tf.int32), axis=-1, stable=True)
        word = tf.maximum(tf.cumsum(tf.cast(is_start, tf.int32), axis=-1) - 1, 0)
        start = tf.gather(starts, word, batch_dims=1)
        masked = tf.gather(chosen, start, batch_dims=1)
        replacement = (
            self.mask_token_id if self.replacement == "mask" else self.pad_token_id
        )
        ids = tf.where(masked, replacement, ids)
        return self._close_up(ids, is_token & (is_start | ~masked))

    def _words(
        self, ids: tf.Tensor, is_token: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Where units begin, and which of those may be masked."""
        is_special = _is_in(ids, self.never) & is_token
        ordinary = is_token & ~is_special
        if self.unit == "pieces":
            return is_token, ordinary
        follows = tf.pad(ordinary[:, :-1], [[0, 0], [1, 0]])
        continues = ordinary & follows & _is_in(ids, self.continuation)
        return is_token & ~continues, ordinary & ~continues

    def _choose(self, is_maskable: tf.Tensor) -> tf.Tensor:
        """Which maskable starts are masked, bool (batch, T)."""
        shape = tf.shape(is_maskable)
        if self.rate == 0:
            return tf.zeros(shape, tf.bool)
        if self.mode == "bernoulli":
            # Rounded up: a word is never masked less often than the rate says.
            whole = 1 << (_NUM_WORDS * _coins.WORD_BITS)
            threshold = math.ceil(Fraction(self.rate) * whole)
            coins = _coins.fresh_coins([threshold], _NUM_WORDS, shape)
            return coins[..., 0] & is_maskable
        # The words with the smallest of independent keys are a uniform subset. Two of
        # T keys are equal with probability below T^2 2^-64; the left one goes first.
        keys = tf.where(is_maskable, _randomness.fresh_bits(shape), tf.int64.max)
        order = tf.argsort(keys, axis=-1, stable=True)
        rank = tf.argsort(order, axis=-1, stable=True)
        count = tf.reduce_sum(tf.cast(is_maskable, tf.int64), axis=-1, keepdims=True)
        masked = count * self._fraction.numerator // self._fraction.denominator
        return (tf.cast(rank, tf.int64) < masked) & is_maskable

    def _close_up(self, ids: tf.Tensor, kept: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Moves what is kept to the left and fills up with padding."""
        order = tf.argsort(tf.cast(~kept, tf.int32), axis=-1, stable=True)
        count = tf.reduce_sum(tf.cast(kept, tf.int32), axis=-1, keepdims=True)
        is_token = tf.range(tf.shape(ids)[1])[tf.newaxis] < count
        ids = tf.gather(ids, order, batch_dims=1)
        return tf.where(is_token, ids, self.pad_token_id), is_token

    def compute_output_shape(self, input_shape: tuple) -> tuple[tuple, tuple]:
        """The shape of the input, twice."""
        return tuple(input_shape), tuple(input_shape)

    def compute_output_spec(
        self, inputs: Any, **kwargs: Any
    ) -> tuple[keras.KerasTensor, keras.KerasTensor]:
        """Shapes and dtypes of the outputs, for functional models."""
        return (
            keras.KerasTensor(inputs.shape, "int32"),
            keras.KerasTensor(inputs.shape, "bool"),
        )

    def get_config(self) -> dict[str, Any]:
        """Every argument of the constructor."""
        config = super().get_config()
        config.update(
            rate=self.rate,
            mask_token_id=self.mask_token_id,
            continuation=self.continuation and list(self.continuation),
            never=list(self.never),
            mode=self.mode,
            unit=self.unit,
            replacement=self.replacement,
            pad_token_id=self.pad_token_id,
        )
        return config


def _ids(name: str, values: Any) -> tuple[int, ...] | None:
    """Sorted ids from ids or from a table of bools."""
    if values is None:
        return None
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "biu"):
        raise InputError(
            f"Expected a sequence of ids for {name}, received dtype {array.dtype} and "
            f"shape {array.shape}."
        )
    if array.dtype.kind == "b":
        array = np.flatnonzero(array)
    if array.size and array.min() < 0:
        raise InputError(f"Expected ids >= 0 for {name}, received {array.min()}.")
    return tuple(int(value) for value in np.unique(array))


def _is_in(ids: tf.Tensor, members: tuple[int, ...] | None) -> tf.Tensor:
    """Whether each id is a member, by a table: a vocabulary has thousands."""
    if not members:
        return tf.zeros_like(ids, tf.bool)
    # One more entry than the largest member: all ids beyond share it, and it is False.
    table = np.zeros(max(members) + 2, bool)
    table[list(members)] = True
    return tf.gather(table, tf.clip_by_value(ids, 0, max(members) + 1))
