"""A discrete code, released by randomised response."""

from __future__ import annotations

import decimal
from typing import Any

import keras
import tensorflow as tf

from tfpriv._errors import InputError
from tfpriv._validation import integer, positive
from tfpriv.layers import _coins, _randomness
from tfpriv.layers._wide_layer import WideLayer

_NUM_WORDS = 4
_BITS = _NUM_WORDS * _coins.WORD_BITS
_SMALLEST_EPSILON = 2.0**-40
_LARGEST_EPSILON = 1000.0
_MOST_CODES = 1 << 20


@keras.saving.register_keras_serializable(package="tfpriv")
class RandomizedResponseCode(WideLayer):
    """Sends the most likely of K codes through K-ary randomised response.

    The code of a record is the argmax of its logits (code 0 where one is not
    finite). It is kept with probability e^epsilon / (e^epsilon + K - 1); else one of
    the others takes its place, each as likely.

    Guarantee: one call is `epsilon`-differentially private for any two records
    whatever, with no delta. The probabilities are whole multiples of 2^-128: each
    other code has ceil(2^128 / (e^epsilon + K - 1)) of them and the record's own
    has the rest, so their ratio is e^epsilon or just less, never more.

    The gradient is that of softmax(logits), straight through. The noise is fresh on
    each call, in training and inference alike, and after every reload; there is no
    seed. Each call is a release and has to be paid for. XLA cannot compile it.

    >>> code = RandomizedResponseCode(num_codes=3, epsilon=1.0)
    >>> round(code.keep_probability, 4)
    0.5761
    >>> code(tf.constant([[0.1, 2.0, -1.0]])).shape
    TensorShape([1, 3])

    Args:
        num_codes: int >= 2. K.
        epsilon: float in [2^-40, 1000].

    Call arguments:
        inputs: float (..., K). Logits.

    Returns (call):
        float32 (float64 under that policy) (..., K): one-hot.

    Raises:
        InputError: a bad value, or logits of another length than K.

    References:
        Kairouz, Oh and Viswanath 2014, "Extremal mechanisms for local differential
        privacy", arXiv:1407.1338, section 3.
    """

    def __init__(self, num_codes: int, epsilon: float, **kwargs: Any) -> None:
        integer(minimum=2, num_codes=num_codes)
        positive(epsilon=epsilon)
        if num_codes > _MOST_CODES:
            raise InputError(
                f"Expected num_codes <= {_MOST_CODES}, received num_codes={num_codes}."
            )
        if not _SMALLEST_EPSILON <= epsilon <= _LARGEST_EPSILON:
            raise InputError(
                f"Expected 2**-40 <= epsilon <= 1000, received epsilon={epsilon}. "
                "Below, a code says nothing; above, it is not protected."
            )
        super().__init__(**kwargs)
        self.supports_jit = False
        self.num_codes = int(num_codes)
        self.epsilon = float(epsilon)
        self.other_weight = _other_weight(self.num_codes, self.epsilon)
        self.keep_weight = 2**_BITS - (self.num_codes - 1) * self.other_weight

    @property
    def keep_probability(self) -> float:
        """Probability that a code stays: `keep_weight` of 2^128."""
        return self.keep_weight / 2**_BITS

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """The released codes, one-hot."""
        logits = tf.convert_to_tensor(inputs)
        if logits.shape[-1] != self.num_codes:
            raise InputError(
                f"Expected logits of length num_codes={self.num_codes}, received "
                f"length {logits.shape[-1]}."
            )

        @tf.custom_gradient
        def release(values: tf.Tensor) -> tuple[tf.Tensor, Any]:
            finite = tf.math.is_finite(values)
            safe = tf.where(finite, values, tf.zeros_like(values))
            whole = tf.reduce_all(finite, axis=-1)
            code = tf.argmax(safe, axis=-1, output_type=tf.int64)
            code = self._respond(tf.where(whole, code, tf.zeros_like(code)))
            one_hot = tf.one_hot(code, self.num_codes, dtype=self.output_dtype)

            def gradient(upstream: tf.Tensor) -> tf.Tensor:
                share = tf.nn.softmax(tf.cast(safe, self.output_dtype))
                mean = tf.reduce_sum(share * upstream, axis=-1, keepdims=True)
                slope = tf.cast(share * (upstream - mean), values.dtype)
                return tf.where(whole[..., tf.newaxis], slope, tf.zeros_like(slope))

            return one_hot, gradient

        return release(logits)

    def _respond(self, code: tf.Tensor) -> tf.Tensor:
        """K-ary randomised response on int64 codes of any shape."""
        with tf.device("/CPU:0"):
            # Of a uniform number U in [0, 2^128), keep_weight values keep the code,
            # the next other_weight values add 1 to it, the next add 2, ...
            bounds = [
                self.keep_weight + place * self.other_weight
                for place in range(self.num_codes - 1)
            ]
            table = tf.constant(_coins.to_words(bounds, _NUM_WORDS))
            shape = tf.concat([tf.shape(code), [1, _NUM_WORDS]], axis=0)
            passed = ~_coins.less(_randomness.fresh_words(shape), table)
            added = tf.reduce_sum(tf.cast(passed, tf.int64), axis=-1)
            return (code + added) % self.num_codes

    def get_config(self) -> dict[str, Any]:
        """Every argument of the constructor."""
        config = super().get_config()
        config.update(num_codes=self.num_codes, epsilon=self.epsilon)
        return config


def _other_weight(num_codes: int, epsilon: float) -> int:
    """ceil(2^128 / (e^epsilon + K - 1)), never less."""
    with decimal.localcontext() as context:
        context.prec = 100
        # A hair less than e^epsilon, so that the quotient errs upwards alone.
        odds = decimal.Decimal(epsilon).exp() * (1 - decimal.Decimal(10) ** -90)
        exact = 2**_BITS / (odds + num_codes - 1)
        return int(exact.to_integral_value(decimal.ROUND_CEILING))
