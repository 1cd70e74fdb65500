"""What is drawn has the given words in public order, and nothing else."""

import itertools
from collections import Counter

import numpy as np
import pytest

from tfpriv.text import tilted_model
from tfpriv.text.prior import LanguagePrior
from tfpriv.text.tilted_model import TiltedModel
from tfpriv.text.vocabulary import END, START, UNK, Vocabulary

PUBLIC = ["the cat sat", "the dog sat", "the dog ran", "a bird sang", "a cat ran"] * 3
DRAWS = 20_000


@pytest.fixture(scope="module")
def prior():
    return LanguagePrior.from_texts(PUBLIC, Vocabulary.from_texts(PUBLIC))


@pytest.fixture
def index(prior):
    return prior.vocabulary.index


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="module")
def frequencies(prior):
    values = np.random.default_rng(5).uniform(0.2, 1.0, len(prior.vocabulary))
    values[: UNK + 1] = 0
    return values / values.sum()


def words_of(texts):
    return Counter(token for text in texts for token in text)


def shares(tokens, size):
    return np.bincount(tokens, minlength=size) / len(tokens)


def public(prior, before, previous):
    """The interpolated trigram, words alone."""
    table = 0.15 * prior.unigram
    for weight, (ids, probabilities) in (
        (0.40, prior.following(previous)),
        (0.45, prior.following2(before, previous)),
    ):
        words = ids > UNK
        np.add.at(table, ids[words], weight * probabilities[words])
    return table


def test_the_next_token_is_drawn_from_the_stated_mixture(
    prior, index, frequencies, rng
):
    the, dog, cat = index["the"], index["dog"], index["cat"]
    pairs = {the: (np.array([cat, index["sang"]]), np.array([0.3, 0.2]))}
    model = TiltedModel(prior, frequencies, pairs, trust=0.6, prior_weight=0.9)
    tilted = public(prior, START, the) * frequencies / np.maximum(prior.unigram, 1e-12)
    expected = 0.9 * tilted / tilted.sum() + 0.1 * frequencies
    # The neighbours sum to a half; the rest of their weight is the tilted part's.
    expected *= 1 - 0.6 * 0.5
    expected[cat] += 0.6 * 0.3
    expected[index["sang"]] += 0.6 * 0.2
    drawn = [model._next(START, the, rng) for _ in range(DRAWS)]
    assert np.abs(shares(drawn, len(expected)) - expected).sum() / 2 < 0.02
    assert shares(drawn, len(expected))[dog] > 0


def test_without_the_prior_words_are_independent(prior, frequencies, rng):
    model = TiltedModel(prior, frequencies, {}, prior_weight=0.0)
    tokens = [t for text in model.sample([5] * 4000, rng) for t in text]
    assert np.abs(shares(tokens, len(frequencies)) - frequencies).sum() / 2 < 0.02


def test_a_word_without_frequency_and_the_special_ids_never_come(prior, index, rng):
    frequencies = np.ones(len(prior.vocabulary))
    frequencies[index["dog"]] = 0
    texts = TiltedModel(prior, frequencies, {}).sample([6] * 500, rng)
    found = words_of(texts)
    assert index["dog"] not in found
    assert min(found) > UNK
    assert set(found) == set(range(UNK + 1, len(frequencies))) - {index["dog"]}


def test_the_order_of_words_is_public(prior, index, frequencies, rng):
    def follows(prior_weight):
        model = TiltedModel(prior, frequencies, {}, prior_weight=prior_weight)
        text = list(model.sample([30] * 100, rng))
        pairs = [pair for t in text for pair in itertools.pairwise(t)]
        after = [second for first, second in pairs if first == index["the"]]
        public_after = {index["dog"], index["cat"]}
        return sum(second in public_after for second in after) / len(after)

    assert follows(1.0) > 2 * follows(0.0)


def test_neighbours_that_are_trusted_wholly_always_come(prior, index, rng):
    sat, sang = index["sat"], index["sang"]
    pairs = {sat: (np.array([sang]), np.array([1.0]))}
    model = TiltedModel(prior, np.ones(len(prior.vocabulary)), pairs, trust=1.0)
    for text in model.sample([9] * 200, rng):
        for first, second in itertools.pairwise(text):
            assert second == sang or first != sat


def test_texts_have_the_lengths_that_were_asked_for(prior, frequencies, rng):
    model = TiltedModel(prior, frequencies, {})
    assert [len(t) for t in model.sample([1, 7, 50], rng)] == [1, 7, 50]


def test_a_text_may_end_a_little_early_where_a_sentence_does(prior, rng):
    words = range(UNK + 1, len(prior.vocabulary))
    pairs = {i: (np.array([END]), np.array([1.0])) for i in words}
    model = TiltedModel(prior, np.ones(len(prior.vocabulary)), pairs, trust=0.5)
    lengths = [len(t) for t in model.sample([60] * 50, rng)]
    assert all(57 <= n <= 60 for n in lengths)
    assert min(lengths) < 60


def test_neighbours_that_only_end_do_not_keep_a_text_from_being_written(prior, rng):
    ends = (np.array([END]), np.array([1.0]))
    pairs = dict.fromkeys(range(len(prior.vocabulary)), ends)
    model = TiltedModel(prior, np.ones(len(prior.vocabulary)), pairs, trust=1.0)
    texts = model.sample([1, 12], rng)
    assert [len(text) for text in texts] == [1, 12]
    assert END not in words_of(texts)


def test_texts_depend_on_the_generator_alone(prior, frequencies):
    model = TiltedModel(prior, frequencies, {})
    first, second, other = (
        model.sample([5] * 20, np.random.default_rng(seed)) for seed in (1, 1, 2)
    )
    assert first == second
    assert first != other


def test_what_is_kept_of_contexts_has_an_end_and_changes_no_text(
    prior, frequencies, monkeypatch
):
    def texts(kept):
        monkeypatch.setattr(tilted_model, "_PAIRS_KEPT", kept)
        model = TiltedModel(prior, frequencies, {})
        drawn = model.sample([8] * 100, np.random.default_rng(0))
        return drawn, model._behind_two.cache_info()

    few, info = texts(3)
    assert info.currsize == 3
    assert info.misses > 100
    assert few == texts(10_000)[0]
