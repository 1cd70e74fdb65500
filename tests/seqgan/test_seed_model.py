"""Texts from counts: the class's words at the class's lengths, in public order."""

import itertools
import math

import numpy as np
import pytest

from tests.seqgan.small_release import HAM, SPAM, small_prior
from tfpriv.mechanisms.record_counts import (
    length_bucket,
    length_histogram,
    pair_presence,
    token_presence,
)
from tfpriv.seqgan.seed_model import NoisyCounts, SeedModel, token_weights
from tfpriv.text.vocabulary import END, START, UNK

NOISE = 0.5
TIMES = 60


@pytest.fixture(scope="module")
def prior():
    return small_prior()


def encode(prior, texts):
    vocabulary = prior.vocabulary
    return [vocabulary.ids(vocabulary.tokenizer.tokenize(text)) for text in texts]


def make(prior, seed=0, noise=NOISE, with_pairs=True):
    rows = encode(prior, [*HAM, *SPAM] * TIMES)
    labels = ([0] * len(HAM) + [1] * len(SPAM)) * TIMES
    rng = np.random.default_rng(seed)

    def noisy(counts):
        return counts + rng.normal(0, noise, counts.shape)

    tokens = noisy(token_presence(rows, labels, 2, token_weights(prior)))
    counts = NoisyCounts(tokens, noisy(length_histogram(rows, labels, 2)), noise)
    if with_pairs:
        ids = SeedModel(prior, counts).pair_tokens()
        framed = [[START, *row, END] for row in rows]
        pairs = noisy(pair_presence(framed, labels, 2, ids))
        counts = NoisyCounts(tokens, counts.lengths, noise, ids, pairs, noise)
    return SeedModel(prior, counts)


@pytest.fixture(scope="module")
def model(prior):
    return make(prior)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def neighbours(texts):
    return {pair for text in texts for pair in itertools.pairwise(text)}


def test_frequent_words_weigh_less_and_special_ids_nothing(prior):
    weights = token_weights(prior)
    assert not weights[: UNK + 1].any()
    words = np.argsort(prior.unigram[UNK + 1 :]) + UNK + 1
    assert np.all(np.diff(weights[words]) <= 0)
    assert weights.max() <= 1
    assert weights[words].min() > 0


def test_a_class_writes_with_its_own_words(prior, model, rng):
    for label, texts in enumerate((HAM, SPAM)):
        own = {token for text in encode(prior, texts) for token in text}
        found = [token for text in model.sample(label, 300, rng) for token in text]
        assert np.isin(found, list(own)).mean() > 0.9
        assert own <= set(found)


def test_as_many_texts_as_asked_for_and_none_empty(model, rng):
    for count in (0, 1, 77):
        texts = model.sample(0, count, rng)
        assert len(texts) == count
        assert all(texts)


def test_texts_look_like_their_class_to_the_label_model(model, rng):
    for label in (0, 1):
        assert model.accepts(model.sample(label, 100, rng), label).mean() > 0.95


def test_a_class_that_the_label_model_never_sees_is_still_written(prior, rng):
    empty = NoisyCounts(
        np.zeros((2, len(prior.vocabulary))), np.array([[9.0] * 16, [0.0] * 16]), 1.0
    )
    model = SeedModel(prior, empty)
    assert len(model.sample(1, 30, rng)) == 30


def test_lengths_follow_the_histogram(model, rng):
    lengths = model.draw_lengths(0, 2000, rng)
    assert set(lengths) >= {3, 4}
    share = np.bincount([length_bucket(n) for n in lengths], minlength=16) / 2000
    expected = model.lengths[0] / model.lengths[0].sum()
    np.testing.assert_allclose(share, expected, atol=0.05)


def test_counted_neighbours_bring_order(prior, model, rng):
    true = neighbours(encode(prior, SPAM))

    def share(some_model):
        texts = some_model.sample(1, 300, np.random.default_rng(3))
        pairs = [pair for text in texts for pair in itertools.pairwise(text)]
        return np.mean([pair in true for pair in pairs])

    assert share(model) > share(make(prior, with_pairs=False)) + 0.05


def test_start_and_end_are_never_words_of_a_text(prior, rng):
    # Noise that makes every pair stand out, impossible ones too.
    loud = make(prior, noise=40.0)
    texts = loud.draw(0, 300, rng)
    assert min(token for text in texts for token in text) > UNK


def test_neighbours_are_looked_for_among_different_words(model):
    ids = model.pair_tokens()
    assert ids[:2].tolist() == [START, END]
    assert len(set(ids.tolist())) == len(ids)
    assert ids[2:].min() > UNK


def test_class_sizes_are_right_on_average_whatever_the_noise(prior):
    true = np.array([len(HAM), len(SPAM)]) * TIMES
    sizes = [
        make(prior, seed=s, noise=10.0, with_pairs=False).class_sizes for s in range(40)
    ]
    # A mean over 16 buckets and 40 draws: standard error 10 * 4 / sqrt(40).
    np.testing.assert_allclose(np.mean(sizes, 0), true, atol=4 * 6.4)


def test_divergence_is_small_for_the_class_itself_and_large_for_the_other(prior, model):
    own, other = (model.divergence(encode(prior, texts), 0) for texts in (HAM, SPAM))
    assert 0 <= own < 0.1
    assert other > 5 * own
    assert other <= math.log(2)
    assert model.divergence([], 0) <= math.log(2)


def test_what_is_drawn_follows_the_seed_alone(prior, model):
    first, second, other = (
        model.sample(0, 20, np.random.default_rng(seed)) for seed in (1, 1, 2)
    )
    assert first == second
    assert first != other
