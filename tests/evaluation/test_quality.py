from __future__ import annotations

import json

import numpy as np
import pytest

from tfpriv._errors import InputError
from tfpriv.datasets import TextDataset
from tfpriv.evaluation.quality import Overlap, measure_quality

PRIVATE = [f"private words number x{i} about the weather in town" for i in range(60)]
OTHER = [f"quite different talk y{i} of cats and dogs" for i in range(60)]
REAL = TextDataset(PRIVATE, ["a", "b"] * 30)


def embed(texts):
    """Vectors of length 4: what a text talks of, and some chance."""
    draw = np.random.default_rng(len(texts))
    found = draw.normal(scale=0.1, size=(len(texts), 4))
    found[:, 0] += [1.0 if "weather" in text else -1.0 for text in texts]
    found[:, 1] += 1
    return found


def test_without_real_rows_nothing_private_is_measured():
    found = measure_quality(OTHER)
    value = found.to_json()
    assert value["synthetic"]["rows"] == 60
    assert {k: v for k, v in value.items() if k != "synthetic" and v} == {}


def test_copies_are_told_from_other_texts():
    copied = measure_quality(PRIVATE[:30] + OTHER[:30], REAL)
    other = measure_quality(OTHER, REAL, held_out=PRIVATE[:5])
    assert copied.overlap.whole == copied.overlap.near == 30
    assert copied.overlap.nearest == 1
    assert copied.overlap.longest == 9
    assert other.overlap.whole == other.overlap.near == 0
    assert other.overlap.longest <= 1
    assert other.overlap.shares[2] == 0 < copied.overlap.shares[8]
    assert other.held_out_overlap.whole == 5
    assert copied.word_distance < other.word_distance <= 1


def test_shares_are_of_all_ngrams_of_all_texts():
    """Worked out by hand: case, spacing and which link do not count."""
    texts = ["See  MY page http://a.example/1 now", "see me", ""]
    private = ["see my page http://b.example/2 NOW", "my name"]
    found = Overlap.of(texts, private)
    assert found.longest == 5
    assert found.mean == (5 + 1 + 0) / 3
    # Pairs: four of the first text and none of the one pair of the second.
    assert found.shares == {2: 4 / 5, 4: 1.0, 6: 0.0, 8: 0.0}
    assert Overlap.of([], private).shares[2] == 0.0


def test_a_text_of_one_token_is_not_called_a_whole_copy():
    assert Overlap.of(["weather", "in town", ""], PRIVATE).whole == 1


def test_texts_of_another_kind_are_far_by_their_vectors():
    alike = measure_quality(PRIVATE[::-1], REAL, embed=embed)
    far = measure_quality(OTHER, REAL, embed=embed)
    assert far.divergence.area.high < alike.divergence.area.low
    assert alike.real_divergence.area.value > 0.5
    assert far.divergence.rows == far.real_divergence.rows == 30


def test_a_missing_model_is_said_and_not_raised():
    def missing(texts):
        raise InputError("Expected MiniLM to be installed, received none.")

    found = measure_quality(OTHER, REAL, embed=missing)
    assert found.divergence is None
    assert "MiniLM" in found.without_divergence
    few = measure_quality(OTHER, REAL.select(range(10)), embed=embed)
    assert "at least 20 texts" in few.without_divergence


def test_the_result_is_json_without_any_text():
    text = json.dumps(measure_quality(OTHER, REAL, OTHER, embed=embed).to_json())
    for word in ("weather", "x1", "different"):
        assert word not in text


def test_both_sides_are_sampled_alike():
    found = measure_quality(OTHER * 3, REAL, sample=40)
    assert found.synthetic.sample == found.real.sample == 40


@pytest.mark.slow
def test_minilm_tells_comments_from_other_talk():
    from tfpriv.evaluation.embeddings import minilm_embeddings

    vectors = minilm_embeddings(["a cat", "a small kitten", "tax law of 1984", ""])
    assert vectors.shape == (4, 384)
    unit = vectors[:3] / np.linalg.norm(vectors[:3], axis=1, keepdims=True)
    assert unit[0] @ unit[1] > unit[0] @ unit[2] + 0.2
