from __future__ import annotations

import functools
import logging
import re
from fractions import Fraction

import hypothesis
import hypothesis.strategies as st
import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

from tests.dp_training import models
from tfpriv.dp_training import bookkeeping_engine, example_block, make_engine
from tfpriv.dp_training.bookkeeping_engine import BookkeepingEngine
from tfpriv.dp_training.closed_forms import outer_products
from tfpriv.dp_training.closed_forms.uses import NoClosedForm
from tfpriv.dp_training.example_block import (
    LONGER,
    ExampleBlock,
    refuse_rows_that_mix,
    same_row,
)
from tfpriv.seqgan.discriminator import Discriminator
from tfpriv.seqgan.generator import Generator

VOCABULARY, LENGTH = 9, 5
# How far a coordinate of one example may be from the loop's, in clips.
RESOLUTION = 1e-5


@pytest.fixture(params=["factors", "as they come"])
def smallness(request, monkeypatch):
    """Small matrices are written out; without that, every one is in factors."""
    if request.param == "factors":
        monkeypatch.setattr(outer_products, "_SMALL", 0)
        monkeypatch.setattr(outer_products, "_MEDIUM", 0)


@pytest.fixture
def factors(monkeypatch):
    monkeypatch.setattr(outer_products, "_SMALL", 0)
    monkeypatch.setattr(outer_products, "_MEDIUM", 0)


def tokens(size: int, length: int = LENGTH, seed: int = 0) -> tf.Tensor:
    generator = np.random.default_rng(seed)
    return tf.constant(generator.integers(0, VOCABULARY, (size, length)), tf.int32)


def labels(size: int, seed: int = 0) -> tf.Tensor:
    return tf.constant(np.random.default_rng(seed).integers(0, 2, size), tf.int32)


def chain(*parts: layers.Layer) -> keras.Model:
    """Embedded tokens (5, 3), some layers, the maximum over time, two logits."""
    ids = keras.Input((LENGTH,), dtype="int32")
    x = layers.Embedding(VOCABULARY, 3)(ids)
    for part in parts:
        x = part(x)
    if len(x.shape) == 3:
        x = layers.GlobalMaxPooling1D()(x)
    return keras.Model(ids, layers.Dense(2)(x))


def attention() -> keras.Model:
    ids = keras.Input((LENGTH,), dtype="int32")
    x = layers.Embedding(VOCABULARY, 4)(ids)
    x = layers.LayerNormalization()(x + layers.MultiHeadAttention(2, 2)(x, x))
    return keras.Model(ids, layers.Dense(2)(layers.GlobalAveragePooling1D()(x)))


def shared() -> keras.Model:
    again = layers.Dense(3, activation="tanh")
    return chain(again, again, layers.Flatten())


def frozen() -> keras.Model:
    model = chain(layers.Dense(4, activation="tanh"), layers.Dense(3))
    model.layers[2].trainable = False
    return model


KINDS = {
    "dense over time": lambda: chain(layers.Dense(4, activation="tanh")),
    "convolutions": lambda: chain(
        layers.Conv1D(3, 2, padding="same", activation="relu"),
        layers.Conv1D(3, 2, strides=2, padding="causal"),
    ),
    "no maximum": lambda: chain(layers.Conv1D(3, 3), layers.Flatten()),
    "normalisation": lambda: chain(layers.LayerNormalization(), layers.Dense(2)),
    "attention": attention,
    "unrolled LSTM": lambda: chain(layers.LSTM(2, unroll=True)),
    "shared layer": shared,
    "frozen layer": frozen,
    "discriminator": lambda: Discriminator(
        VOCABULARY, LENGTH, 3, widths=(1, 2, 5), filters=2, highway=True, seed=0
    ),
}


def run(name: str, model, inputs, clip: float, loss=models.cross_entropy, mask=None):
    engine = make_engine(name, model, loss, clip)
    mask = tf.ones(len(inputs[0]), bool) if mask is None else mask
    sums = [s.numpy() for s in engine.clipped_sum(inputs, mask)]
    assert getattr(engine, "_loop", None) is None
    return sums


def assert_equals_the_loop(model, inputs, clip, loss=models.cross_entropy) -> None:
    ours = run("bookkeeping", model, inputs, clip, loss)
    theirs = run("loop", model, inputs, clip, loss)
    for one, other in zip(ours, theirs, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(
            one, other, rtol=0, atol=RESOLUTION * clip * max(1, len(inputs[0])) ** 0.5
        )


@pytest.mark.parametrize("kind", ["convolutions", "frozen layer", "unrolled LSTM"])
def test_it_equals_the_loop(kind, factors):
    assert_equals_the_loop(KINDS[kind](), (tokens(4), labels(4)), 0.05)


@pytest.mark.slow
@pytest.mark.parametrize("clip", [0.05, 100.0])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_equals_the_loop(kind, clip, smallness):
    assert_equals_the_loop(KINDS[kind](), (tokens(4), labels(4)), clip)


def check_no_sum_hangs_on_timing(kind):
    """AddN of more than two begins with whichever tensor nobody else reads any more."""
    engine = BookkeepingEngine(KINDS[kind](), models.cross_entropy, 1.0)
    block = engine._block(((tf.int32, (LENGTH,)), (tf.int32, ())), 24)
    operations = block.clip.graph.get_operations()
    assert len(operations) > 20
    assert all(len(op.inputs) <= 2 for op in operations if op.type == "AddN")


@pytest.mark.parametrize("kind", ["attention", "discriminator", "unrolled LSTM"])
def test_no_sum_of_a_block_hangs_on_timing(kind):
    check_no_sum_hangs_on_timing(kind)


@pytest.mark.parametrize(
    ("module", "name", "twin"),
    [
        (example_block, "sum_in_order", tf.add_n),
        (
            tf,
            "gradients",
            functools.partial(lambda of, y, x, **_: of(y, x), tf.gradients),
        ),
    ],
    ids=["sizes", "gradients"],
)
def test_a_twin_that_adds_many_at_once_is_rejected(module, name, twin, monkeypatch):
    monkeypatch.setattr(module, name, twin)
    with pytest.raises(AssertionError):
        check_no_sum_hangs_on_timing("attention")


@pytest.mark.slow
def test_a_generators_likelihood_equals_the_loops(factors):
    model = Generator(VOCABULARY, LENGTH, 3, 2, seed=0)

    def loss(model, ids):
        logits = model(ids)
        return tf.reduce_sum(
            tf.nn.sparse_softmax_cross_entropy_with_logits(ids, logits), axis=1
        )

    ids = 2 + tokens(4) % (VOCABULARY - 2)
    assert_equals_the_loop(model, (ids,), 0.1, loss)


@pytest.mark.slow
@pytest.mark.parametrize("size", [0, 1])
def test_no_rows_and_one_row_equal_the_loops(size):
    assert_equals_the_loop(models.text_cnn(), (tokens(size, 6), labels(size)), 0.1)


@pytest.mark.slow
def test_half_precision_is_near_the_loops():
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        model = KINDS["convolutions"]()
    finally:
        keras.config.set_dtype_policy("float32")
    inputs = tokens(4), labels(4)
    ours = run("bookkeeping", model, inputs, 0.05)
    theirs = run("loop", model, inputs, 0.05)
    for one, other in zip(ours, theirs, strict=True):
        # The loop rounds gradients to eight bits, this engine the factors alone.
        np.testing.assert_allclose(one, other, rtol=0, atol=0.05 * 2e-2)
    assert sum(np.abs(s).sum() for s in ours) > 0


LAYERS = st.sampled_from(
    [
        lambda: layers.Dense(3, activation="tanh"),
        lambda: layers.Dense(2, use_bias=False),
        lambda: layers.Conv1D(2, 2, activation="tanh", padding="same"),
        lambda: layers.Conv1D(3, 1),
        lambda: layers.LayerNormalization(),
        lambda: layers.LSTM(2, unroll=True, return_sequences=True),
        lambda: layers.Dropout(0.5),
    ]
)


@pytest.mark.slow
@pytest.mark.usefixtures("factors")
@hypothesis.settings(
    max_examples=25,
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
)
@hypothesis.given(
    makers=st.lists(LAYERS, max_size=3),
    size=st.integers(0, 3),
    clip=st.sampled_from([1e-3, 0.1, 7.0]),
    seed=st.integers(0, 99),
)
def test_random_models_equal_the_loops(makers, size, clip, seed):
    keras.utils.set_random_seed(seed)
    model = chain(*(make() for make in makers))
    assert_equals_the_loop(model, (tokens(size, seed=seed), labels(size)), clip)


# --- Rounding ---------------------------------------------------------------------

CLIP = 0.3


def exact_sum(run, ids) -> list[Fraction]:
    sums = run((tf.constant(ids), labels(len(ids))), tf.ones(len(ids), bool))
    return [Fraction(float(x)) for s in sums for x in np.ravel(s)]


def compiled(engine):
    signature = (
        (tf.TensorSpec((None, LENGTH), tf.int32), tf.TensorSpec((None,), tf.int32)),
        tf.TensorSpec((None,), tf.bool),
    )
    return tf.function(engine.clipped_sum, signature, autograph=False)


def one_label(model, ids, _):
    zeros = tf.zeros_like(ids[:, 0])
    return models.cross_entropy(model, ids, zeros) * 50.0


def far_apart(one: list[Fraction], other: list[Fraction]) -> float:
    return float(sum((a - b) ** 2 for a, b in zip(one, other, strict=True))) ** 0.5


def check_sums_are_near_those_of_their_parts(run, ids) -> None:
    """In any order, whatever the size of the blocks and groups they fall into."""
    whole = exact_sum(run, ids)
    order = np.random.default_rng(0).permutation(len(ids))
    assert far_apart(exact_sum(run, ids[order]), whole) < CLIP * 2.0**-16
    first, second = exact_sum(run, ids[:60]), exact_sum(run, ids[60:])
    parts = [a + b for a, b in zip(first, second, strict=True)]
    assert far_apart(parts, whole) < CLIP * 2.0**-16
    for i in range(3):
        alone = exact_sum(run, ids[i : i + 1])
        length = far_apart(alone, [Fraction(0)] * len(alone))
        assert CLIP * (1 - 1e-5) < length <= CLIP * (1 + 2.0**-24)
        rest = exact_sum(run, np.delete(ids, i, axis=0))
        moved = [a - b for a, b in zip(whole, rest, strict=True)]
        assert far_apart(moved, alone) < CLIP * 2.0**-16


class HalfPrecisionSums(BookkeepingEngine):
    """A twin that adds up in half precision."""

    def _group_sum(self, blocks, inputs, rows):
        sums = super()._group_sum(blocks, inputs, rows)
        return [tf.cast(tf.cast(s, tf.bfloat16), s.dtype) for s in sums]


class ClippedOverTheBatch(BookkeepingEngine):
    """A twin whose examples know each other: all are scaled as the longest."""

    def _block(self, key, rows):
        mine = super()._block(key, rows)

        class Block(ExampleBlock):
            def _clip(self, *tensors):
                clipped = super()._clip(*tensors)
                share = tf.cast(tf.reduce_max(clipped.mass), tf.float32)
                factors = [
                    f * (1 + 0.1 * share) if f.dtype == tf.float32 else f
                    for f in clipped.factors
                ]
                return clipped._replace(factors=tuple(factors))

            def check(self, like=None):
                self._one_row = []

        return Block(mine._losses, mine._variables, mine._l2_norm_clip, key, mine.rows)


@pytest.mark.parametrize("kind", ["convolutions"])
def test_sums_are_near_those_of_their_parts(kind, factors):
    model, ids = KINDS[kind](), tokens(140, seed=3).numpy()
    check_sums_are_near_those_of_their_parts(
        compiled(BookkeepingEngine(model, one_label, CLIP)), ids
    )
    for twin in (HalfPrecisionSums, ClippedOverTheBatch):
        with pytest.raises(AssertionError):
            check_sums_are_near_those_of_their_parts(
                compiled(twin(model, one_label, CLIP)), ids
            )


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["discriminator", "unrolled LSTM", "attention"])
def test_sums_of_larger_networks_are_near_those_of_their_parts(kind, factors):
    model, ids = KINDS[kind](), tokens(140, seed=3).numpy()
    check_sums_are_near_those_of_their_parts(
        compiled(BookkeepingEngine(model, one_label, CLIP)), ids
    )


@pytest.mark.parametrize(
    ("mixes", "words"),
    [
        (lambda x: x + np.eye(24, 3)[:, ::-1] * 1e-7, "its place"),
        (lambda x: x - np.mean(x), "other rows"),
        (lambda x: np.roll(x, 2, axis=0), "other rows"),
    ],
)
def test_rows_that_do_not_stay_apart_are_noticed(mixes, words):
    kept = np.arange(24) % 3 != 1
    alike = np.ones((24, 3))
    mixed = np.where(kept[:, None], alike, 2.0)
    refuse_rows_that_mix(same_row(alike * alike), (mixed * mixed)[kept])
    with pytest.raises(NoClosedForm, match=words):
        refuse_rows_that_mix(same_row(mixes(alike)), mixes(mixed)[kept])


def summed(model, x):
    return tf.reduce_sum(model(x), axis=[1, 2])


def through_time(positions: int) -> keras.Model:
    return keras.Sequential(
        [keras.Input((positions, 4)), layers.Dense(3, use_bias=False)]
    )


def crafted(rows: int) -> tf.Tensor:
    """Two positions whose gradients cancel but for four millionths."""
    one = np.random.default_rng(0).normal(size=(rows, 1, 4)).astype(np.float32) * 1e6
    return tf.constant(np.concatenate([one, -one * (1 + 2.0**-18)], axis=1))


class MassIgnored(ExampleBlock):
    """A twin that takes factors to be rounded like the gradients they make."""

    def _clip(self, *tensors):
        clipped = super()._clip(*tensors)
        form = next(f for f in self._forms if f is not None)
        size = form.size()
        scale = self._l2_norm_clip / tf.maximum(
            tf.sqrt(size.squared_norm), self._l2_norm_clip
        )
        return clipped._replace(factors=form.factors(scale, tensors[-1]))


def longest(block: ExampleBlock, x: tf.Tensor) -> float:
    """The largest norm, in float64, of a gradient that a row's factors make."""
    a, b = block.clip(x, tf.ones(len(x), bool)).factors
    gradients = np.einsum("bpn,bpm->bnm", np.float64(a), np.float64(b))
    return float(np.linalg.norm(gradients, axis=(1, 2)).max())


def test_factors_that_cancel_are_scaled_down_for_their_rounding(factors):
    model, x = through_time(2), crafted(24)

    def make(kind):
        losses = lambda inputs: summed(model, *inputs)  # noqa: E731
        specs = [(tf.float32, (2, 4))]
        return kind(losses, model.trainable_variables, 1.0, specs, len(x))

    assert 0 < longest(make(ExampleBlock), x) <= LONGER
    assert longest(make(MassIgnored), x) > 1 + 1e-4


def exact_squared_norms(x, delta) -> list[Fraction]:
    """In rational numbers, so that nothing is rounded."""
    found = []
    for a, b in zip(x.numpy(), delta.numpy(), strict=True):
        gradient = [
            sum(
                Fraction(float(u)) * Fraction(float(v))
                for u, v in zip(column, other, strict=True)
            )
            for column in a.T
            for other in b.T
        ]
        found.append(sum(entry**2 for entry in gradient))
    return found


def check_norms_are_as_near_as_they_say(form_class, x, delta) -> None:
    size = form_class(x, delta, (x.shape[2], delta.shape[2])).size()
    for i, exact in enumerate(exact_squared_norms(x, delta)):
        away = abs(Fraction(float(size.squared_norm[i])) - exact)
        # And what float64 rounds.
        doubt = Fraction(float(size.doubt[i])) + exact * Fraction(2) ** -24
        assert away <= doubt
        # No more than the absolute products make.
        absolute = np.abs(x[i]).T.astype("float64") @ np.abs(delta[i])
        assert float(size.squared_mass[i]) >= (absolute**2).sum() * (1 - 1e-9)


class NoDoubt(outer_products.OuterProducts):
    """A twin that takes float32's inner products as they come."""

    def size(self):
        size = super().size()
        return size._replace(doubt=tf.zeros_like(size.doubt))


@hypothesis.settings(max_examples=30, deadline=None)
@hypothesis.given(
    positions=st.integers(2, 5),
    height=st.integers(1, 3),
    width=st.integers(1, 9),
    cancels=st.booleans(),
    log_size=st.integers(-70, 55),
    seed=st.integers(0, 99),
)
def test_norms_in_float32_are_as_near_as_they_say(
    positions, height, width, cancels, log_size, seed
):
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(2, positions, height))
    delta = generator.normal(size=(2, positions, width)) * 2.0**log_size
    if cancels:
        x[:, 1] = -x[:, 0]
        delta[:, 1] = delta[:, 0] * (1 + 2.0**-18)
    factors = (tf.constant(f, tf.float32) for f in (x, delta))
    check_norms_are_as_near_as_they_say(outer_products.OuterProducts, *factors)


def test_norms_whose_rounding_is_not_counted_are_refused():
    generator = np.random.default_rng(0)
    x = tf.constant(generator.normal(size=(4, 2, 1)), tf.float32)
    one = generator.normal(size=(4, 1, 40))
    x = tf.concat([x[:, :1], -x[:, :1]], axis=1)
    delta = tf.constant(np.concatenate([one, one * (1 + 2.0**-18)], axis=1), tf.float32)
    check_norms_are_as_near_as_they_say(outer_products.OuterProducts, x, delta)
    with pytest.raises(AssertionError):
        check_norms_are_as_near_as_they_say(NoDoubt, x, delta)


def sums_of_rows(x, delta, narrow):
    form = outer_products.OuterProducts(x, delta, (x.shape[2], delta.shape[2]))
    return form.total((x, delta), narrow).numpy().astype(np.float64), form


@pytest.mark.parametrize("positions", [2, 20, 50, 200])
def test_float32_sums_through_time_are_within_their_bound(positions):
    generator = np.random.default_rng(positions)
    x, delta = (
        tf.constant(generator.uniform(1, 2, (24, positions, n)), tf.float32)
        for n in (3, 40)
    )
    narrow, form = sums_of_rows(x, delta, narrow=True)
    exact, _ = sums_of_rows(x, delta, narrow=False)
    # All products are positive: the exact sum is that of their absolute values.
    assert np.all(np.abs(narrow - exact) <= form.narrow_terms * 2.0**-24 * exact)
    assert not np.array_equal(narrow, exact)


def test_many_products_are_added_in_float64():
    """Where the bound on float32's error is too large for the steps planned."""
    model = flat(20_000)
    x = tf.constant(np.random.default_rng(0).normal(size=(100, 20_000)), tf.float32)

    def sums(largest_step):
        engine = BookkeepingEngine(model, lambda m, x: m(x)[:, 0], 1.0, largest_step)
        (total,) = engine.clipped_sum((x,), tf.ones(100, bool))
        return total.numpy().astype(np.float64)[:, 0]

    wide = x.numpy().astype(np.float64)
    exact = (wide / np.linalg.norm(wide, axis=1, keepdims=True)).sum(axis=0)
    narrow, careful = (np.abs(sums(n) - exact).max() for n in (100, 8000))
    assert careful <= narrow <= 1e-6


@pytest.mark.parametrize(("expected", "tried"), [(64, 66), (32, 32), (None, 66)])
def test_steps_of_few_examples_go_through_small_blocks(expected, tried, monkeypatch):
    """And add up to the same, however many examples one has."""
    sizes = []
    made = bookkeeping_engine.ExampleBlock

    def noted(losses, variables, clip, key, rows):
        sizes.append(rows)
        return made(losses, variables, clip, key, rows)

    monkeypatch.setattr(bookkeeping_engine, "ExampleBlock", noted)
    options = {} if expected is None else {"expected_step": expected}
    engine = BookkeepingEngine(
        models.linear(3), models.linear_loss, 1.0, 256, **options
    )
    for count in (1, 15, 16, 17, 31, 32, 33, 47, 48, 49, 65, 66, 67, 130):
        kernel, _ = engine.clipped_sum((tf.ones((140, 3)),), tf.range(140) < count)
        np.testing.assert_allclose(kernel[:, 0], [count / 2] * 3, rtol=1e-6)
    assert sizes[0] == tried


def test_rows_added_in_one_float32_product_divide_every_size_of_a_block():
    for large, small in (
        *bookkeeping_engine._BLOCK_SIZES,
        *bookkeeping_engine._BLOCK_SIZES_OF_FEW,
    ):
        for positions in range(2, 130):
            rows = outer_products.OuterProducts(
                tf.zeros([large, positions, 1]), tf.zeros([large, positions, 1]), (1, 1)
            )._rows_at_once
            assert large % rows == small % rows == 0


def flat(size: int) -> keras.Model:
    return keras.Sequential([keras.Input((size,)), layers.Dense(1, use_bias=False)])


def test_rows_that_are_masked_or_not_finite_add_nothing(factors):
    rows = np.ones((40, 3), np.float32)
    rows[1] = np.nan
    rows[30] = np.inf
    mask = np.arange(40) != 2
    engine = make_engine("bookkeeping", models.linear(3), models.linear_loss, 1.0)
    kernel, bias = engine.clipped_sum((tf.constant(rows),), tf.constant(mask))
    np.testing.assert_allclose(kernel[:, 0], [37 / 2] * 3, rtol=1e-5)
    np.testing.assert_allclose(bias, [37 / 2], rtol=1e-5)


def test_more_rows_than_a_group_add_up():
    rows = tf.ones((500, 3))
    engine = make_engine("bookkeeping", models.linear(3), models.linear_loss, 1.0, 500)
    kernel, _ = engine.clipped_sum((rows,), tf.ones(500, bool))
    np.testing.assert_allclose(kernel[:, 0], [250] * 3, rtol=1e-6)


# --- Falling back -----------------------------------------------------------------


def tied() -> keras.Model:
    table = layers.Embedding(VOCABULARY, 3, name="words")

    class Tied(keras.Model):
        def __init__(self):
            super().__init__(name="tied")
            self.table = table

        def call(self, ids):
            hidden = tf.reduce_mean(self.table(ids), axis=1)
            return tf.matmul(hidden, self.table.embeddings, transpose_b=True)

    model = Tied()
    model(tokens(1))
    return model


def turned(model, ids, y):
    return tf.roll(models.cross_entropy(model, tf.roll(ids, 2, 0), y), -2, 0)


@pytest.mark.parametrize(
    ("make", "loss", "words"),
    [
        (lambda: chain(layers.LSTM(2)), models.cross_entropy, "lstm.*While"),
        (tied, models.cross_entropy, "words/embeddings is tied"),
        (KINDS["frozen layer"], turned, "other rows"),
    ],
    ids=["while loop", "tied table", "rows that mix"],
)
def test_without_a_closed_form_it_is_the_loop_and_says_so(make, loss, words, caplog):
    model, inputs = make(), (tokens(3), tf.zeros(3, tf.int32))
    engine = make_engine("bookkeeping", model, loss, 0.1)
    with caplog.at_level(logging.WARNING):
        sums = [engine.clipped_sum(inputs, tf.ones(3, bool)) for _ in range(2)]
    (record,) = caplog.records
    assert "falls back to the loop" in record.getMessage()
    assert re.search(words, record.getMessage())
    if loss is not turned:
        for one, other in zip(
            sums[0], run("loop", model, inputs, 0.1, loss), strict=True
        ):
            # Rounded to the type of the other engine's sums.
            np.testing.assert_array_equal(one, other.astype(np.float32))


def test_dropout_is_drawn_for_every_example():
    model = keras.Sequential(
        [keras.Input((200,)), layers.Dropout(0.5), layers.Dense(1, use_bias=False)]
    )
    (kernel,) = run(
        "bookkeeping",
        model,
        (tf.ones((2, 200)),),
        1e6,
        lambda model, x: model(x, training=True)[:, 0],
    )
    assert set(np.round(kernel.ravel(), 3)) == {0.0, 2.0, 4.0}
