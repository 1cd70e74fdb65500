from __future__ import annotations

import math

import numpy as np
import pytest

from tfpriv.evaluation import PublicPerplexity, shuffled
from tfpriv.text import Tokenizer, Vocabulary
from tfpriv.text.vocabulary import END, START, UNK

TEXTS = ["the cat sat", "the cat ran", "the dog ran", "a dog sat down", "the cat sat"]
VOCABULARY = Vocabulary(["the", "cat", "dog", "sat", "ran", "a"])


@pytest.fixture(scope="module")
def model() -> PublicPerplexity:
    return PublicPerplexity(TEXTS, VOCABULARY)


def ids(*tokens):
    return np.array([VOCABULARY.index[token] for token in tokens])


@pytest.mark.parametrize(
    ("before", "previous"),
    [
        (START, "the"),
        ("the", "cat"),
        ("dog", "cat"),
        ("cat", UNK),
        (UNK, START),
        ("<end>", "<end>"),
    ],
)
def test_the_probabilities_of_a_context_sum_to_one(model, before, previous):
    size = len(VOCABULARY)
    context = [VOCABULARY.index.get(token, token) for token in (before, previous)]
    total = model.probabilities(
        np.full(size, context[0]), np.full(size, context[1]), np.arange(size)
    ).sum()
    assert total == pytest.approx(1)


def test_a_probability_is_interpolated_by_hand(model):
    # Tokens and ends: 5 sat/ran/... counted: the 4, cat 3, dog 2, sat 3, ran 2, a 1,
    # and 5 ends; "down" is outside. One is added to each of the 7.
    unigram = (3 + 1) / (20 + 7)
    bigram, trigram = 2 / 3, 2 / 3  # cat -> sat, sat, ran; all after "the"
    found = model.probabilities(ids("the"), ids("cat"), ids("sat"))
    expected = 0.1 * unigram + 0.9 * (0.4 * bigram + 0.6 * trigram)
    assert found[0] == pytest.approx(expected)
    # "dog cat" never came: the bigram has the trigram's weight.
    found = model.probabilities(ids("dog"), ids("cat"), ids("sat"))
    assert found[0] == pytest.approx(0.1 * unigram + 0.9 * bigram)
    # Behind an unknown token there is the unigram alone.
    found = model.probabilities(ids("dog"), np.array([UNK]), ids("sat"))
    assert found[0] == pytest.approx(unigram)


def test_perplexity_is_that_of_scoring_one_token_after_another(model):
    texts = ["the cat ran", "a bird sat", ""]
    logs = []
    for text in texts:
        tokens = VOCABULARY.ids(text.split())
        context = (UNK, START)
        for token in [*tokens, END] if tokens else []:
            if token != UNK:
                found = model.probabilities(
                    np.array([context[0]]), np.array([context[1]]), np.array([token])
                )
                logs.append(math.log(found[0]))
            context = (context[1], token)
    assert len(logs) == 7
    expected = math.exp(-np.mean(logs))
    assert model.perplexity(texts) == pytest.approx(expected)


def test_texts_in_order_are_likelier_than_shuffled_ones(model):
    texts = [" ".join(text.split()[::-1]) for text in TEXTS]
    assert model.perplexity(TEXTS) < model.perplexity(texts)


def test_coverage_is_the_share_of_known_tokens(model):
    assert model.coverage(["the bird sat", "zzz"]) == 0.5
    assert model.coverage([]) == 0.0


def test_without_a_vocabulary_it_is_what_the_texts_hold_twice():
    tokens = PublicPerplexity(TEXTS).vocabulary.tokens
    assert set(tokens[4:]) == {"the", "cat", "dog", "sat", "ran"}


def test_nothing_to_train_on_or_to_score_is_refused(model):
    with pytest.raises(ValueError, match="to train on"):
        PublicPerplexity(["", " "])
    with pytest.raises(ValueError, match="received none"):
        model.perplexity([""])


def test_shuffling_keeps_the_words_of_each_text_and_follows_its_seed():
    texts = ["one two three four five six seven", "a b c d e f g", ""]
    once, again, other = shuffled(texts, 1), shuffled(texts, 1), shuffled(texts, 2)
    assert once == again != other
    tokenizer = Tokenizer()
    for text, mixed in zip(texts, once, strict=True):
        assert sorted(tokenizer.tokenize(text)) == sorted(tokenizer.tokenize(mixed))
    assert once != texts


@pytest.mark.slow
def test_real_comments_are_likelier_than_shuffled_ones(data_dir):
    from tfpriv.datasets import load

    public = (data_dir / "convai2" / "valid_text.txt").read_text(encoding="utf-8")
    model = PublicPerplexity(public.splitlines())
    texts = load("youtube_spam", data_dir=data_dir).test.texts
    assert 2 * model.perplexity(texts) < model.perplexity(shuffled(texts))
