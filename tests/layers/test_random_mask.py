"""RandomMask: how many, which, and that a mask hides what it masks."""

import collections
import itertools
import math
from fractions import Fraction

import keras
import numpy as np
import pytest
import scipy.stats
import tensorflow as tf

from tests.layers.layer_checks import run_layer_test
from tfpriv._errors import InputError
from tfpriv.layers import RandomMask, _coins, _randomness

PAD, CLS, SEP, MASK = 0, 2, 3, 4
CONTINUING = [20, 21, 22]
WORDS = {"continuation": CONTINUING, "never": [CLS, SEP]}


def mask_of(rate, **settings):
    return RandomMask(rate, MASK, **{**WORDS, **settings})


def row(*words, length=12):
    """[CLS] words [SEP] and padding; a word is an id or a tuple of pieces."""
    ids = [CLS]
    for word in words:
        ids += word if isinstance(word, tuple) else (word,)
    ids += [SEP]
    return ids + [PAD] * (length - len(ids))


def rows(count, *words, length=12):
    return tf.constant([row(*words, length=length)] * count, tf.int32)


def test_layer(tmp_path):
    model, _ = run_layer_test(mask_of(0.5), rows(3, 10, 11), tmp_path)
    ids, is_token = model.predict(rows(3, 10, 11), verbose=0)
    assert ids.shape == is_token.shape == (3, 12)


def test_the_table_of_continuing_pieces_may_be_one_of_bools():
    table = np.zeros(30, bool)
    table[CONTINUING] = True
    assert mask_of(0.5, continuation=table).continuation == tuple(CONTINUING)
    assert mask_of(0.5, continuation=table.tolist()).continuation == tuple(CONTINUING)


def test_exactly_the_floor_of_the_share_is_masked():
    for rate, share in [
        (0.1, Fraction(1, 10)),
        (0.3, Fraction(3, 10)),
        (0.1 + 0.2, Fraction(3, 10)),
        (0.29, Fraction(29, 100)),
        (1 / 3, Fraction(1, 3)),
        (0.7, Fraction(7, 10)),
        (0.999, Fraction(999, 1000)),
        (0, Fraction(0)),
    ]:
        layer = mask_of(rate)
        texts = [row(*range(100, 100 + n), length=64) for n in range(61)]
        ids, is_token = layer(tf.constant(texts))
        masked = (ids.numpy() == MASK).sum(-1)
        assert masked.tolist() == [int(share * n) for n in range(61)]
        assert masked.tolist() == [layer.num_masked(n) for n in range(61)]
        assert is_token.numpy().sum(-1).tolist() == [n + 2 for n in range(61)]


def test_a_share_is_never_less_than_the_rate():
    rng = np.random.default_rng(0)
    for rate in [*rng.random(200), 1 / 7, 2 / 3, 0.1 + 0.2, 1e-7]:
        layer = mask_of(float(rate))
        for words in range(600):
            assert layer.num_masked(words) >= int(Fraction(float(rate)) * words)


def test_a_bernoulli_rate_is_met_to_the_last_bit(monkeypatch):
    """A word is masked up to the word of random bits that the rate names."""
    for rate in (1e-7, 0.1, 0.5, 1 / 3):
        layer = mask_of(rate, mode="bernoulli")
        last = math.ceil(Fraction(rate) * 2**128) - 1
        for value, masked in ((last, 1), (last + 1, 0), (0, 1), (2**128 - 1, 0)):
            words = _coins.to_words([value], 4)[0]

            def fixed(shape, words=words):
                shape = np.asarray(shape)
                rest = len(shape) == 2  # of the ties, word by word
                filled = np.broadcast_to(words[1:] if rest else words[0], shape)
                return tf.constant(filled)

            monkeypatch.setattr(_randomness, "fresh_words", fixed)
            ids, _ = layer(rows(1, 100))
            assert (ids.numpy() == MASK).sum() == masked


def test_rate_zero_changes_nothing():
    texts = tf.constant([row(10, (11, 20), 12), row(), [PAD] * 12])
    for mode, unit in itertools.product(["exact", "bernoulli"], ["words", "pieces"]):
        ids, is_token = mask_of(0, mode=mode, unit=unit)(texts)
        assert np.array_equal(ids, texts)
        assert np.array_equal(is_token, texts != PAD)


def chosen_sets(layer, size, words):
    ids, _ = layer(rows(size, *words))
    kept = ids.numpy()[:, 1 : 1 + len(words)]
    return [tuple(np.flatnonzero(line == MASK)) for line in kept]


def check_subsets_are_uniform(layer, size=20_000):
    words = range(100, 106)
    counts = collections.Counter(chosen_sets(layer, size, words))
    subsets = list(itertools.combinations(range(6), 2))
    assert set(counts) <= set(subsets)
    observed = np.array([counts[subset] for subset in subsets])
    expected = size / len(subsets)
    statistic = np.sum((observed - expected) ** 2 / expected)
    assert statistic < scipy.stats.chi2.isf(1e-10, len(subsets) - 1)


def test_every_set_of_words_is_as_likely():
    check_subsets_are_uniform(mask_of(0.34))


def test_bernoulli_masks_each_word_by_itself():
    size, rate = 20_000, 0.3
    words = [100, (101, 20, 21), 102, 103]
    ids, is_token = mask_of(rate, mode="bernoulli")(rows(size, *words))
    masked = (ids.numpy() == MASK).sum(-1)
    expected = scipy.stats.binom.pmf(range(5), 4, rate) * size
    statistic = np.sum((np.bincount(masked, minlength=5) - expected) ** 2 / expected)
    assert statistic < scipy.stats.chi2.isf(1e-10, 4)
    first = ids.numpy()[:, 1] == MASK
    second = ids.numpy()[:, 2] == MASK
    assert abs(np.corrcoef(first, second)[0, 1]) < 7 / np.sqrt(size)
    lost = second.sum() * 2
    assert is_token.numpy().sum() == size * 8 - lost
    assert abs(second.mean() - rate) < 7 * np.sqrt(rate / size)


def check_a_masked_word_leaves_no_trace(layer, size=400):
    """Where X is masked, texts that differ only in X give the same rows."""
    texts = [
        (100, 101, (102, 21), 103),
        (100, (110, 20, 22), (102, 21), 103),
        (100, (111, 20), (102, 21), 103),
    ]
    seen = []
    for text in texts:
        ids, is_token = layer(rows(size, *text))
        told = {101, 110, 111, 20, 22}
        pairs = {
            (tuple(line), tuple(token))
            for line, token in zip(ids.numpy(), is_token.numpy(), strict=True)
        }
        seen.append({pair for pair in pairs if not told & set(pair[0])})
    assert seen[0] == seen[1] == seen[2]
    assert len(seen[0]) > 0


@pytest.mark.parametrize("replacement", ["mask", "zero"])
@pytest.mark.parametrize("mode", ["exact", "bernoulli"])
def test_a_masked_word_leaves_no_trace(mode, replacement):
    layer = mask_of(0.5, mode=mode, replacement=replacement)
    check_a_masked_word_leaves_no_trace(layer)


class MasksEachPiece(RandomMask):
    """One mask a piece tells how many pieces the word had."""

    def _close_up(self, ids, kept):
        is_token = ids != PAD
        return ids, is_token


class LeavesAGap(RandomMask):
    """Drops the other pieces and does not close the row up."""

    def _close_up(self, ids, kept):
        return tf.where(kept, ids, PAD), ids != PAD


class TellsInTheMask(RandomMask):
    def _close_up(self, ids, kept):
        return super()._close_up(ids, kept)[0], ids != PAD


@pytest.mark.parametrize("twin", [MasksEachPiece, LeavesAGap, TellsInTheMask])
def test_a_broken_twin_leaves_a_trace(twin):
    with pytest.raises(AssertionError):
        check_a_masked_word_leaves_no_trace(twin(0.5, MASK, **WORDS))


def test_pieces_as_units_leave_a_trace():
    """Which is why nothing is claimed for them."""
    with pytest.raises(AssertionError):
        check_a_masked_word_leaves_no_trace(mask_of(0.5, unit="pieces"))


class MasksNeighbours(RandomMask):
    def _choose(self, is_maskable):
        first = super()._choose(is_maskable)
        at = tf.argmax(tf.cast(first, tf.int32), axis=-1, output_type=tf.int32)
        at = tf.minimum(at, 5)[:, tf.newaxis]
        places = tf.range(tf.shape(first)[1])[tf.newaxis]
        return (places >= at) & (places <= at + 1)


def test_dependent_choices_are_rejected():
    with pytest.raises(AssertionError):
        check_subsets_are_uniform(MasksNeighbours(0.34, MASK, **WORDS))


def test_specials_and_padding_are_never_masked_and_do_not_count():
    text = row(10, 11, CLS, 12, SEP, 13)
    for mode in ("exact", "bernoulli"):
        ids, is_token = mask_of(0.75, mode=mode)(tf.constant([text] * 500))
        ids = ids.numpy()
        assert (ids[:, [0, 3, 5, 7]] == [CLS, CLS, SEP, SEP]).all()
        assert (ids[:, 8:] == PAD).all()
        assert (is_token.numpy() == (np.arange(12) < 8)).all()
        if mode == "exact":
            assert ((ids == MASK).sum(-1) == 3).all()


def test_a_piece_that_has_nothing_to_continue_begins_a_word():
    layer = mask_of(0.999)  # masks all but one word
    text = tf.constant([[CLS, 20, 21, SEP, 22, PAD], [20, 21, 22, 10, 20, PAD]])
    ids, is_token = layer(text)
    assert is_token.numpy().sum(-1).tolist() in ([4, 3], [4, 4], [5, 3], [5, 4])
    assert (ids.numpy() == MASK).sum(-1).tolist() == [1, 1]
    masked_all, _ = mask_of(0.999999)(tf.constant([[CLS, 20, 21, SEP, PAD, PAD]] * 9))
    assert (masked_all.numpy() == [CLS, 20, 21, SEP, PAD, PAD]).all()


def test_zero_stays_a_position():
    ids, is_token = mask_of(0.5, replacement="zero")(rows(50, 10, (11, 20), 12, 13))
    ids, is_token = ids.numpy(), is_token.numpy()
    assert (((ids == PAD) & is_token).sum(-1) == 2).all()
    assert (ids[~is_token] == PAD).all()
    assert not (ids == MASK).any()


def test_rows_and_calls_are_masked_on_their_own():
    layer = mask_of(0.5)
    words = range(100, 110)
    first = chosen_sets(layer, 2, words) + chosen_sets(layer, 2, words)
    for _ in range(10):
        first += chosen_sets(layer, 2, words)
    # Twelve pairs that agree in all 252 outcomes each time: 252**-12.
    assert any(a != b for a, b in itertools.pairwise(first[::2]))
    assert any(a != b for a, b in zip(first[::2], first[1::2], strict=True))


def test_it_masks_at_inference_too():
    keras_input = keras.Input([12], dtype="int32")
    model = keras.Model(keras_input, mask_of(0.5)(keras_input))
    for training in (True, False, None):
        ids, _ = model(rows(1, *range(100, 110)), training=training)
        assert (ids.numpy() == MASK).sum() == 5


def test_lengths_known_late():
    layer = mask_of(0.5)
    run = tf.function(layer, input_signature=[tf.TensorSpec([None, None], tf.int64)])
    for length in (7, 12):
        ids, is_token = run(tf.cast(rows(2, 10, 11, length=length), tf.int64))
        assert ids.shape == is_token.shape == (2, length)
        assert ids.dtype == tf.int32
    assert run(tf.zeros([0, 5], tf.int64))[0].shape == (0, 5)
    assert run(tf.zeros([3, 0], tf.int64))[0].shape == (3, 0)


def test_another_padding_id():
    text = tf.constant([[7, 8, 20, 9, 1, 1]])
    ids, is_token = RandomMask(
        0.34, MASK, continuation=[20], mode="exact", pad_token_id=1
    )(text)
    assert (ids.numpy() == MASK).sum() == 1
    assert (ids.numpy()[~is_token.numpy()] == 1).all()


@pytest.mark.parametrize(
    "bad",
    [
        {"rate": 1.0},
        {"rate": 1 - 1e-9},
        {"rate": -0.1},
        {"rate": float("nan")},
        {"rate": "0.1"},
        {"mask_token_id": -1},
        {"mask_token_id": 20},
        {"continuation": None},
        {"continuation": [-1]},
        {"continuation": [1.5]},
        {"never": ["[CLS]"]},
        {"mode": "half"},
        {"unit": "letters"},
        {"replacement": "random"},
        {"pad_token_id": -1},
    ],
)
def test_bad_settings(bad):
    with pytest.raises(InputError, match=r"xpected"):
        RandomMask(**{"rate": 0.5, "mask_token_id": MASK, **WORDS, **bad})
