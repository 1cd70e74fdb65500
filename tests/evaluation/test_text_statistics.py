from __future__ import annotations

import json

import pytest

from tfpriv.evaluation import PublicPerplexity
from tfpriv.evaluation.text_statistics import TextStatistics, word_distance
from tfpriv.text import LanguagePrior

TEXTS = ["I like this song", "i like this SONG", "buy now", "a b c d e f g h"]


def test_counts_are_those_of_the_tokens():
    found = TextStatistics.of(TEXTS, longest=5)
    assert found.rows == found.sample == 4
    assert found.lengths == (0, 0, 1, 0, 2, 1)
    assert sum(found.lengths) == 4
    assert found.duplicate_rate == 0.25
    assert found.length_quantiles[0.5] == 4
    assert found.distinct_n[1] == pytest.approx(14 / 18)
    assert found.word_shares["song"] == pytest.approx(2 / 18)
    assert sum(found.word_shares.values()) == pytest.approx(1)
    assert found.perplexity is found.coverage is None


def test_diversity_is_counted_on_a_sample_and_the_rest_on_all_texts():
    found = TextStatistics.of(TEXTS * 50, sample=10)
    assert (found.rows, found.sample) == (200, 10)
    assert sum(found.lengths) == 200
    assert found.duplicate_rate == pytest.approx(197 / 200)
    assert found.distinct_n[1] > TextStatistics.of(TEXTS * 50).distinct_n[1]


def test_perplexity_stands_beside_that_of_shuffled_words():
    public = ["the cat sat on the mat", "the cat ran to the door"] * 3
    model = PublicPerplexity(public)
    found = TextStatistics.of(["the cat sat on the mat"], model=model)
    assert found.perplexity < found.shuffled_perplexity
    assert found.coverage == 1
    unknown = TextStatistics.of(["zzz"], model=model)
    assert (unknown.perplexity, unknown.coverage) == (None, 0)


def test_one_text_or_none_with_tokens_has_no_self_bleu():
    assert TextStatistics.of(["alone"]).self_bleu is None
    assert TextStatistics.of(["", " "]).self_bleu is None
    assert TextStatistics.of(["", " "]).word_shares == {}


def test_the_json_has_numbers_and_no_words():
    text = json.dumps(TextStatistics.of(["hunter2 was here", "x"]).to_json())
    assert "hunter2" not in text
    assert "hunter2" not in repr(TextStatistics.of(["hunter2 was here", "x"]))


def test_no_text_is_refused():
    with pytest.raises(ValueError, match="at least one text"):
        TextStatistics.of([])


def test_word_distance_is_what_has_to_be_changed():
    def distance(first, second):
        return word_distance(TextStatistics.of(first), TextStatistics.of(second))

    assert distance(["a b"], ["b a"]) == 0
    assert distance(["a b"], ["c d"]) == pytest.approx(1)
    assert distance(["a a b b"], ["a b c d"]) == pytest.approx(0.5)


def test_the_model_of_a_prior_sums_to_one_and_likes_its_texts():
    from tests.evaluation.test_text_quality import TEXTS as PUBLIC
    from tests.evaluation.test_text_quality import VOCABULARY, ids
    from tfpriv.text.vocabulary import START, UNK

    model = PublicPerplexity.of_prior(LanguagePrior.from_texts(PUBLIC, VOCABULARY))
    size = len(VOCABULARY)
    import numpy as np

    for before, previous in ((START, ids("the")[0]), (UNK, START), (UNK, UNK)):
        total = model.probabilities(
            np.full(size, before), np.full(size, previous), np.arange(size)
        ).sum()
        assert total == pytest.approx(1)
    assert model.perplexity(PUBLIC) < model.perplexity(
        [t[::-1] for t in PUBLIC] + ["the"]
    )
